"""Simulated runs as valid scorecards, to drive the whole pipeline without any run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from ...error_codes.models import FiredCode
from ...error_codes.output_facts import StageChecks
from ...judge.card.fields import SIMULATED, JudgeInfo, Policy, RubricInfo, RunInfo
from ...judge.card.scorecard import ScoreCard
from ...judge.card.stage_results import CriterionResult, StageResult
from ...trajectories.models import STAGES, CardResources, CardStatus, Segment, Stage
from ...trajectories.summary import StageUse
from ...version import __version__
from ..statistics.interval_estimates import Bools
from ..tables.codes_read import CODES
from ..tables.frames import WEIGHTS
from .simulation import TURN_SHARES, Simulation, cohort_names, simulated_resources

CODE_STAGES: dict[str, Stage] = {"E1": "S1", "E2": "S2", "E3": "S3", "E4": "S4", "E5": "S5"}


def simulated_scorecards(sim: Simulation) -> Iterator[ScoreCard]:
    """One scorecard for each run, in the order of `sim.frame()`."""
    agents, tasks, tracks = cohort_names(sim)
    by_judge, by_rule = sim.tags
    resources = {name: values.tolist() for name, values in simulated_resources(sim).items()}
    rubric = RubricInfo(id="simulated", version="1", sha256="0" * 64)
    judge = JudgeInfo(name=SIMULATED)
    policy = Policy()
    for i in range(sim.n):
        agent, task_index, n_turns = agents[sim.agent[i]], sim.task[i], resources["turns"][i]
        run_id = f"run-{i:06d}"
        stages = _stages(sim, i)
        agentic = sum(
            weight * (stages[stage].score or 0.0)
            for stage, weight in zip(STAGES, WEIGHTS.values(), strict=True)
        )
        task_score = float(sim.true.task[i])
        overall = 100 * (0.5 * agentic + 0.5 * task_score)
        is_completed = bool(sim.true.completed[i])
        segments = _segments(n_turns)
        turn_stages = _turn_stages(segments)
        yield ScoreCard(
            ambjudge=__version__,
            run=RunInfo(
                id=run_id,
                path=run_id,
                sha256=hashlib.sha256(f"{sim.seed}/{run_id}".encode()).hexdigest(),
                agent=agent,
                model=agent,
                task=tasks[task_index],
                track=tracks[task_index],
                tier=sim.settings.tiers[sim.tier[i]],
                repeat=int(sim.repeat[i]) + 1,
                turns=n_turns,
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
            task=task_score,
            task_from="report" if is_completed else "gate",
            overall=overall,
            overall_bounds=(overall, overall),
            codes=tuple(_fired_codes(by_judge[i], by_rule[i])),
            codes_read={
                code: "present" if by_judge[i][k] else "absent" for k, code in enumerate(CODES)
            },
            segments=segments,
            turn_stages=turn_stages,
            stage_use=_stage_use(turn_stages),
            resources=CardResources(**{name: values[i] for name, values in resources.items()}),
            status=CardStatus(
                submitted=True,
                completed=is_completed,
                disqualified=False,
                violations=0,
                ended="submitted",
            ),
        )


def _stages(sim: Simulation, i: int) -> dict[str, StageResult]:
    """The stage results of run `i`: S1-S3 as judged, S4 and S5 as computed."""
    s1_items, s2_items, s3 = sim.judged
    s3_score = float(s3[i])
    checks = StageChecks(
        completion=float(sim.true.completion[i]),
        format_valid=bool(sim.true.format_valid[i]),
        source="report",
        cases_from="report",
    )
    stages = {
        # The tier lite credits the last three criteria of S1.
        "S1": _judged_stage("S1", s1_items[i].tolist(), n_scored=3 if sim.is_lite[i] else 6),
        "S2": _judged_stage("S2", s2_items[i].tolist(), n_scored=5),
        "S3": StageResult(
            score=s3_score,
            method="judge",
            bounds=(s3_score, s3_score),
            criteria=(CriterionResult(id="S3", value=s3_score, status="scored"),),
        ),
    }
    for index in (3, 4):
        score = float(sim.true.stages[i, index])
        stages[STAGES[index]] = StageResult(
            score=score, method="deterministic", bounds=(score, score), checks=checks
        )
    return stages


def _judged_stage(stage: str, values: Sequence[float], n_scored: int) -> StageResult:
    """A stage of which the first `n_scored` criteria are scored and the others credited."""
    criteria = tuple(
        CriterionResult(
            id=f"{stage}{'abcdef'[k]}",
            value=value,
            status="scored" if k < n_scored else "credited",
        )
        for k, value in enumerate(values)
    )
    score = sum(values) / len(values)
    return StageResult(score=score, method="judge", bounds=(score, score), criteria=criteria)


def _fired_codes(by_judge: Bools, by_rule: Bools) -> Iterator[FiredCode]:
    """The codes of a run that the judge tagged, and those that a rule derived from the score."""
    for k, code in enumerate(CODES):
        if by_judge[k]:
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
        if by_rule[k]:
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


def _segments(n_turns: int) -> tuple[Segment, ...]:
    """The turns divided between the stages in order, by TURN_SHARES."""
    ends = [round(n_turns * sum(TURN_SHARES[: k + 1])) for k in range(5)]
    starts = [0, *ends[:-1]]
    return tuple(
        Segment(stage=stage, first_turn=start + 1, last_turn=end)
        for stage, start, end in zip(STAGES, starts, ends, strict=True)
        if end > start
    )


def _turn_stages(segments: Sequence[Segment]) -> tuple[Stage, ...]:
    """The stage of each turn."""
    stages: list[Stage] = []
    for segment in segments:
        stages += [segment.stage] * (segment.last_turn - segment.first_turn + 1)
    return tuple(stages)


def _stage_use(turn_stages: Sequence[Stage]) -> dict[Stage, StageUse]:
    """One call a turn, without times, for each stage that has turns."""
    use = {}
    for stage in STAGES:
        n = turn_stages.count(stage)
        if n:
            use[stage] = StageUse(turns=n, calls=n, failed_calls=0, exec_time_s=None)
    return use
