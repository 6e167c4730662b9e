"""Simulated runs as scorecards, valid against the contract, so that a whole pipeline can be driven
from them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from ...error_codes.models import FiredCode
from ...error_codes.output_facts import StageChecks
from ...judge.card.fields import (
    JudgeInfo,
    Policy,
    RubricInfo,
    RunInfo,
)
from ...judge.card.scorecard import ScoreCard
from ...judge.card.stage_results import CriterionResult, StageResult
from ...trajectories.models import STAGES, CardResources, CardStatus, Segment, Stage
from ...trajectories.summary import StageUse
from ...version import __version__
from ..tables.codes_read import CODES
from ..tables.frames import WEIGHTS
from .simulation import TURN_SHARES, Simulation, cohort_names, simulated_resources

CODE_STAGES: dict[str, Stage] = {"E1": "S1", "E2": "S2", "E3": "S3", "E4": "S4", "E5": "S5"}


def simulated_scorecards(sim: Simulation) -> Iterator[ScoreCard]:
    """One scorecard a run, in the order of `sim.frame()`."""
    s, out = sim.settings, sim.true
    agents, tasks, tracks = cohort_names(sim)
    items1, items2, s3 = sim.judged
    judged, rule = sim.tags
    use = {name: values.tolist() for name, values in simulated_resources(sim).items()}
    rubric = RubricInfo(id="simulated", version="1", sha256="0" * 64)
    judge = JudgeInfo(name="simulated")
    policy = Policy()
    for i in range(sim.n):
        tier = s.tiers[sim.tier[i]]
        task = tasks[sim.task[i]]
        run_id = f"run-{i:06d}"
        stages: dict[str, StageResult] = {
            "S1": _judged("S1", items1[i].tolist(), credited=3 if tier == "lite" else 6),
            "S2": _judged("S2", items2[i].tolist(), credited=5),
            "S3": StageResult(
                score=float(s3[i]),
                method="judge",
                bounds=(float(s3[i]),) * 2,
                criteria=(CriterionResult(id="S3", value=float(s3[i]), status="scored"),),
            ),
        }
        checks = StageChecks(
            completion=float(out.completion[i]),
            format_valid=bool(out.format_valid[i]),
            source="report",
            cases_from="report",
        )
        for at, stage in ((3, STAGES[3]), (4, STAGES[4])):
            score = float(out.stages[i, at])
            stages[stage] = StageResult(
                score=score, method="deterministic", bounds=(score, score), checks=checks
            )
        agentic = sum(
            weight * (stages[stage].score or 0.0)
            for stage, weight in zip(STAGES, WEIGHTS.values(), strict=True)
        )
        score = float(out.task[i])
        overall = 100 * (0.5 * agentic + 0.5 * score)
        segments, turn_stages = _segments(use["turns"][i])
        yield ScoreCard(
            ambjudge=__version__,
            run=RunInfo(
                id=run_id,
                path=run_id,
                sha256=hashlib.sha256(f"{sim.seed}/{run_id}".encode()).hexdigest(),
                agent=agents[sim.agent[i]],
                model=agents[sim.agent[i]],
                task=task,
                track=tracks[sim.task[i]],
                tier=tier,
                repeat=int(sim.repeat[i]) + 1,
                turns=use["turns"][i],
                format="simulated",
            ),
            rubric=rubric,
            judge=judge,
            policy=policy,
            stages=stages,
            read_share=1.0,
            presumed_share=0.0,
            agentic=agentic,
            agentic_bounds=(agentic, agentic),
            task=score,
            task_from="report" if out.completed[i] else "gate",
            overall=overall,
            overall_bounds=(overall, overall),
            codes=tuple(_codes(judged[i], rule[i])),
            codes_read={
                code: "present" if judged[i][k] else "absent" for k, code in enumerate(CODES)
            },
            segments=segments,
            turn_stages=turn_stages,
            stage_use={
                stage: StageUse(turns=n, calls=n, failed_calls=0, exec_time_s=None)
                for stage in STAGES
                if (n := turn_stages.count(stage))
            },
            resources=CardResources(**{name: values[i] for name, values in use.items()}),
            status=CardStatus(
                submitted=True,
                completed=bool(out.completed[i]),
                disqualified=False,
                violations=0,
                ended="submitted",
            ),
        )


def _judged(stage: str, values: list[float], credited: int) -> StageResult:
    score = sum(values) / len(values)
    criteria = tuple(
        CriterionResult(
            id=f"{stage}{'abcdef'[k]}", value=value, status="scored" if k < credited else "credited"
        )
        for k, value in enumerate(values)
    )
    return StageResult(score=score, method="judge", bounds=(score, score), criteria=criteria)


def _codes(judged: Any, rule: Any) -> Iterator[FiredCode]:
    for k, code in enumerate(CODES):
        if judged[k]:
            yield FiredCode(
                code=code,
                taxonomy="paper",
                stage=CODE_STAGES[code],
                turns=(),
                why="simulated",
                by="judge:simulated",
                confidence=1.0,
                independence="from_judge",
            )
        if rule[k]:
            yield FiredCode(
                code=code,
                taxonomy="paper",
                stage=CODE_STAGES[code],
                turns=(),
                why="Task below the threshold",
                by="detector:score",
                confidence=1.0,
                independence="from_score",
            )


def _segments(turns: int) -> tuple[tuple[Segment, ...], tuple[Stage, ...]]:
    """Turns dealt to the stages in order, by fixed shares."""
    ends = [round(turns * sum(TURN_SHARES[: k + 1])) for k in range(5)]
    starts = [0, *ends[:-1]]
    segments = tuple(
        Segment(stage=stage, first_turn=a + 1, last_turn=b)
        for stage, a, b in zip(STAGES, starts, ends, strict=True)
        if b > a
    )
    return segments, tuple(
        segment.stage
        for segment in segments
        for _ in range(segment.first_turn, segment.last_turn + 1)
    )
