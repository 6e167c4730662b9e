"""One run to one ScoreCard: segment, judge S1-S3, check S4-S5, tag codes, aggregate.

`score` is the synchronous door, `score_run` the asynchronous one that batches use. Nothing here decides a grade: the
judge, the checks, the detectors and the pure functions of `scoring` do.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import __version__
from ..rubrics.load import load_rubric, rubric_for
from ..rubrics.model import Rubric
from ..trajectories.models import STAGES, Run, Segmentation, Stage
from ..trajectories.segment import segment
from ..trajectories.summary import run_info, stage_costs
from .base import JUDGED, Judge, StageReply, StageRequest, Usage
from .checks import OutputCheck, check_outputs
from .contradictions import find_contradictions
from .heuristic import HeuristicJudge
from .scorecard import (
    CardResources,
    CardStatus,
    CriterionResult,
    JudgeInfo,
    Policy,
    RubricInfo,
    RunInfo,
    ScoreCard,
    StageResult,
    StageUse,
)
from .scoring import Cap, Split, aggregate, apply_breach, apply_caps, apply_requires, split_criteria, stage_score
from .tagging import diagnose


@dataclass(frozen=True)
class Prepared:
    """A run ready to be judged: its stages, the facts about its outputs, and what a judge still has to say."""

    run: Run
    rubric: Rubric
    segmentation: Segmentation
    check: OutputCheck
    policy: Policy
    splits: Mapping[Stage, Split]
    public: Path | None = None

    def requests(self) -> tuple[StageRequest, ...]:
        """One request for each stage that has criteria to judge."""
        return tuple(
            StageRequest(self.run, self.segmentation, self.rubric, stage, split.to_judge)
            for stage, split in self.splits.items()
            if split.to_judge
        )


def score(
    run: Run,
    judge: Judge | None = None,
    *,
    rubric: Rubric | str | Path | None = None,
    policy: Policy | None = None,
    public: str | Path | None = None,
) -> ScoreCard:
    """The scorecard of one run, by the heuristic judge unless given one.

    `rubric` is a Rubric, a built-in id or a file (default: the track's); `public` a folder with the public inputs.
    Works inside a running event loop too (notebooks). JudgeError when the judge cannot be used at all.
    """
    work = score_run(run, judge or HeuristicJudge(), rubric=rubric, policy=policy, public=public)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def score_run(
    run: Run,
    judge: Judge,
    *,
    rubric: Rubric | str | Path | None = None,
    policy: Policy | None = None,
    public: str | Path | None = None,
) -> ScoreCard:
    """The same, asynchronously: the three stages are judged at the same time."""
    ready = prepare(run, rubric=rubric, policy=policy, public=public)
    requests = ready.requests()
    replies = await asyncio.gather(*(judge.judge(request) for request in requests))
    return assemble(ready, judge, {r.stage: reply for r, reply in zip(requests, replies, strict=True)})


def prepare(
    run: Run,
    *,
    rubric: Rubric | str | Path | None = None,
    policy: Policy | None = None,
    public: str | Path | None = None,
) -> Prepared:
    """Everything that needs no judge."""
    policy = policy or Policy()
    chosen = (
        rubric if isinstance(rubric, Rubric) else load_rubric(rubric) if rubric else rubric_for(run.track, run.task)
    )
    return Prepared(
        run=run,
        rubric=chosen,
        segmentation=segment(run),
        check=check_outputs(run, public=Path(public) if public else None, policy=policy),
        public=Path(public) if public else None,
        policy=policy,
        splits={stage: split_criteria(chosen.stages[stage], run.tier) for stage in JUDGED if stage in chosen.stages},
    )


def assemble(ready: Prepared, judge: Judge, replies: Mapping[Stage, StageReply]) -> ScoreCard:
    """The scorecard from a prepared run and a judge's replies. Stages without a reply are unscored."""
    run, rubric, policy, check = ready.run, ready.rubric, ready.policy, ready.check
    results = {stage: _stage_results(ready, stage, replies.get(stage)) for stage in JUDGED}
    caps: dict[Stage, Sequence[Cap]] = {
        "S4": check.s4_caps,
        **{stage: (cap,) for stage, cap in check.stage_caps.items()},
    }
    scores: dict[Stage, float | None] = {"S4": check.s4, "S5": check.s5}
    bounds: dict[Stage, tuple[float, float]] = {"S4": check.s4_bounds, "S5": check.s5_bounds}
    for stage in JUDGED:
        criteria = rubric.stages[stage].criteria if stage in rubric.stages else ()
        value, span = stage_score(results[stage], criteria, policy.missing)
        scores[stage], bounds[stage] = apply_caps(value, span, caps.get(stage, ()))
    task, task_from = check.task, check.task_from
    zeroed: Sequence[Stage] = ()
    if run.status.disqualified:
        at = run.status.breach_turn
        known = at is not None and 1 <= at <= len(run.turns)
        stage_of_breach = ready.segmentation.turn_stages[at - 1] if known and at is not None else None
        after = apply_breach(scores, bounds, task, policy.breach, stage_of_breach)
        scores, bounds, task, zeroed, task_from = after.scores, after.bounds, after.task, after.stages, "policy"
    total = aggregate(scores, bounds, rubric.weights, task, policy.missing)
    judge_codes = tuple(code for reply in replies.values() for code in reply.codes)
    diagnosis = diagnose(run, ready.segmentation, check, judge_codes, ready.public)
    stages = {
        stage: StageResult(
            score=scores[stage],
            method="policy"
            if stage in zeroed
            else "unscored"
            if scores[stage] is None
            else "judge"
            if stage in JUDGED
            else "deterministic",
            bounds=bounds[stage],
            failure=diagnosis.failures.get(stage),
            criteria=results.get(stage, ()),
            checks={"S4": check.s4_checks, "S5": check.s5_checks}.get(stage),
            **_cap(caps.get(stage, ())),
        )
        for stage in STAGES
    }
    usage = sum((reply.usage for reply in replies.values()), Usage())
    costs = stage_costs(run, ready.segmentation)
    return ScoreCard(
        ambjudge=__version__,
        run=RunInfo(**run_info(run)),
        rubric=RubricInfo(id=rubric.id, version=rubric.version, sha256=rubric.sha256),
        judge=JudgeInfo(
            name=judge.name, members=judge.members, prompt_sha256=judge.prompt_sha256, calls=usage.calls,
            input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cost_usd=usage.cost_usd,
        ),
        policy=policy,
        stages=stages,
        agentic=total.agentic,
        agentic_bounds=total.agentic_bounds,
        task=task,
        task_from=task_from,
        overall=total.overall,
        overall_bounds=total.overall_bounds,
        codes=diagnosis.codes,
        primary_failure=diagnosis.primary_failure,
        episodes=diagnosis.episodes,
        answer_codes=dict(sorted(Counter(a.code for a in diagnosis.answers).items())),
        segments=ready.segmentation.segments,
        turn_stages=ready.segmentation.turn_stages,
        resources=_resources(run),
        stage_use={stage: StageUse(**cost.model_dump()) for stage, cost in costs.items()},
        status=_status(run),
        contradictions=(*find_contradictions(run, ready.segmentation, results, check), *diagnosis.conflicts),
        warnings=_warnings(ready, replies),
    )  # fmt: skip


def _stage_results(ready: Prepared, stage: Stage, reply: StageReply | None) -> tuple[CriterionResult, ...]:
    """Judged, credited and inapplicable items in the rubric's order, with requirements applied."""
    if stage not in ready.splits:
        return ()
    split = ready.splits[stage]
    found = {r.id: r for r in (*split.credited, *split.not_applicable, *(reply.results if reply else ()))}
    criteria = ready.rubric.stages[stage].criteria
    silent = CriterionResult(
        id="", value=None, status="unscored", reason="judge_error", detail="the judge gave no result"
    )
    results = [found.get(c.id) or silent.model_copy(update={"id": c.id}) for c in criteria]
    return apply_requires(results, criteria)


def _cap(caps: Sequence[Cap]) -> dict[str, Any]:
    if not caps:
        return {}
    lowest = min(caps, key=lambda cap: cap.value)
    return {"cap": lowest.value, "cap_reason": lowest.reason}


def _resources(run: Run) -> CardResources:
    return CardResources(**run.resources.model_dump(exclude={"source"}))


def _status(run: Run) -> CardStatus:
    status = run.status
    return CardStatus(
        submitted=status.submitted, completed=status.completed, disqualified=status.disqualified,
        violations=len(status.violations), ended=status.ended,
    )  # fmt: skip


def _warnings(ready: Prepared, replies: Mapping[Stage, StageReply]) -> tuple[str, ...]:
    lines = [*ready.run.warnings, *ready.check.warnings]
    if ready.run.track is None:
        lines.append("track unknown: judged by the shared workflow, S4 and S5 unscored (--track names it)")
    if ready.run.tier is None:
        lines.append("tier unknown: no item is credited and every item is judged (--tier names it)")
    if ready.rubric.derived:
        lines.append(
            f"rubric {ready.rubric.id}: no per-item rubric is published for it; derived from the shared workflow"
        )
    for reply in replies.values():
        lines.extend(reply.warnings)
    return tuple(dict.fromkeys(lines))
