"""One run to one ScoreCard: segment, check S4-S5, find facts, ask the judge, tag codes, aggregate.

`score` is the synchronous door, `score_run` the asynchronous one that batches use. Nothing here
decides a grade: the judge, the checks, the detectors and the pure functions of `scoring` do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from ..error_codes.models import FiredCode
from ..error_codes.registry import detector_packages
from ..error_codes.trace_facts import bare_facts
from ..plugins import stamps
from ..rubrics.load import builtin_ids, load_rubric, rubric_for
from ..rubrics.model import Rubric, has_all_stages
from ..tracks import TRACKS
from ..trajectories.models import Run, Segmentation, Stage
from ..trajectories.record.facts import Fact, FactInfo
from ..trajectories.summary import run_info, stage_uses
from ..trajectories.turns.segment import segment
from ..version import __version__
from .base import EstimatingJudge, Judge, QuestionName, Reply, Request, answers, used
from .card.fields import (
    JudgeInfo,
    Policy,
    RubricInfo,
    RunInfo,
)
from .card.presumed import presume
from .card.read_share import shares
from .card.scorecard import ScoreCard
from .card.scoring import (
    Cap,
    Split,
    aggregate,
    apply_breach,
    apply_caps,
    apply_requires,
    split_criteria,
    stage_score,
)
from .card.scoring_rules import LIKE, Like
from .card.stage_results import CriterionResult, StageResult, unscored
from .checks.check_outputs import OutputCheck, check_outputs
from .checks.grades import grades
from .checks.harness_branch import (
    DIGITS,
    branch_of,
    penalty,
    reported,
    reported_bounds,
    settled,
    setup_facts,
    setup_score,
    usage_parts,
)
from .checks.public_inputs import demanded_format
from .facts.contradictions import find_contradictions, strict_result
from .facts.diagnosis import Detected, detect, diagnose
from .facts.run_facts import run_facts
from .judges.rules import RULES, RulesJudge
from .questions.items import QuestionSet, StagesFrom, is_unsure, unsure_below
from .runner import finished


@dataclass(frozen=True)
class Prepared:
    """A run ready to be judged: its stages, the facts about its outputs, and what a judge still has
    to say."""

    run: Run
    rubric: Rubric
    policy: Policy
    questions: QuestionSet
    public: Path | None = None
    wished: Like = "paper"
    """The choice as it was given; the policy has the one that the track allows."""

    @cached_property
    def segmentation(self) -> Segmentation:
        """By rules."""
        return segment(self.run)

    @cached_property
    def check(self) -> OutputCheck:
        """What stands in the delivered files, by the paper's rules: what a judge is shown, whatever
        numbers are wanted."""
        return check_outputs(
            self.run, public=self.public, policy=self.policy.model_copy(update={"like": "paper"})
        )

    @cached_property
    def counted(self) -> OutputCheck:
        """The same by the rules that numbers go by."""
        if self.policy.like == "paper":
            return self.check
        return check_outputs(self.run, public=self.public, policy=self.policy)

    @cached_property
    def detected(self) -> Detected:
        """What detectors found."""
        return detect(self.run, self.segmentation, self.check.s4_checks, self.public)

    @cached_property
    def splits(self) -> Mapping[str, Split]:
        """Criteria to judge, credited and inapplicable ones, by stage."""
        return {
            stage: split_criteria(self.rubric.stages[stage], self.run.tier)
            for stage in self.rubric.judged_stages
        }

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """What checks and detectors know, as a reader is shown it."""
        return run_facts(
            self.run, self.segmentation, self.check, self.detected.paper, self.detected.context
        )

    @cached_property
    def memo(self) -> dict[Hashable, Any]:
        """What judges work out about the run (`Request.kept`)."""
        return {}

    def requests(self, judge: Judge) -> tuple[Request, ...]:
        """Every question that this judge is asked about the run, in the order of asking."""
        able = answers(judge)
        items = self.questions.items(able, self.rubric, self.run.tier, self.run.track)
        if self.questions.stages == "mixed" and not is_unsure(self.segmentation, self.run.track):
            items.pop("stages", None)
        # A judge that answers criteria alone has its own view of a run.
        facts = self.facts if able else ()
        return tuple(
            Request(
                self.run,
                self.segmentation,
                self.rubric,
                question,
                asked,
                facts=facts,
                public=self.public,
                check=self.check,
                warm=number > 0,
                memo=self.memo,
            )
            for number, (question, asked) in enumerate(items.items())
        )


def score(
    run: Run,
    judge: Judge | None = None,
    *,
    rubric: Rubric | str | Path | None = None,
    policy: Policy | None = None,
    public: str | Path | None = None,
    questions: QuestionSet | None = None,
) -> ScoreCard:
    """The scorecard of one run, by the rules judge unless given one.

    `rubric` is a Rubric, a built-in id or a file (default: the track's); `public` a folder with the
    public inputs; `questions`: what a judge that reads is asked (default: criteria and codes, stages
    by rules). Works inside a running event loop too (notebooks). JudgeError when the judge cannot be
    used at all.
    """
    return finished(
        score_run(
            run,
            judge or RulesJudge(),
            rubric=rubric,
            policy=policy,
            public=public,
            questions=questions,
        )
    )


async def score_run(
    run: Run,
    judge: Judge,
    *,
    rubric: Rubric | str | Path | None = None,
    policy: Policy | None = None,
    public: str | Path | None = None,
    questions: QuestionSet | None = None,
    right: Mapping[str, float] | None = None,
) -> ScoreCard:
    """The same, asynchronously. `right`: see `facts.diagnosis.diagnose`."""
    ready = prepare(run, rubric=rubric, policy=policy, public=public, questions=questions)
    return assemble(ready, judge, await ask_all(judge, ready.requests(judge)), right)


async def ask_all(judge: Judge, requests: Sequence[Request]) -> dict[QuestionName, Reply]:
    """The answers to all questions on one run.

    Where calls are billed, the first one that really is made goes alone: the others then find the
    record in the provider's cache. The rest is asked at the same time.
    """
    replies: dict[QuestionName, Reply] = {}
    left = list(requests)
    while left and isinstance(judge, EstimatingJudge):
        request = left.pop(0)
        replies[request.question] = reply = await judge.judge(request)
        if reply.usage.calls:
            break
    others = await asyncio.gather(*(judge.judge(request) for request in left))
    return replies | {request.question: reply for request, reply in zip(left, others, strict=True)}


def prepare(
    run: Run,
    *,
    rubric: Rubric | str | Path | None = None,
    policy: Policy | None = None,
    public: str | Path | None = None,
    questions: QuestionSet | None = None,
) -> Prepared:
    """Everything that needs no judge; each part is worked out when it is first asked for."""
    chosen = (
        rubric
        if isinstance(rubric, Rubric)
        else load_rubric(rubric)
        if rubric
        else rubric_for(run.track, run.task)
    )
    demanded = None if public is None else demanded_format(Path(public), run.task)
    if demanded is not None:
        run = run.model_copy(update={"output_format": demanded})
    policy = policy or Policy()
    whole = has_all_stages(chosen.stages)
    fixed = settled(policy, run) if whole else policy.model_copy(update={"like": "paper"})
    return Prepared(
        run,
        chosen,
        fixed,
        questions or QuestionSet(),
        Path(public) if public else None,
        policy.like,
    )


def read_stages(ready: Prepared, reply: Reply | None) -> tuple[Segmentation, StagesFrom]:
    """The stages of all turns, and who labelled them: a reader's where it gave them, else the
    rules'.

    `mixed` takes the reader's word for the turns that the rules are unsure of alone.
    """
    rules = ready.segmentation
    said = reply.results[0].answer if reply is not None and reply.results else None
    if not isinstance(said, list) or len(said) != len(rules.turn_stages):
        return rules, "rules"
    read = cast("tuple[Stage, ...]", tuple(said))
    if ready.questions.stages == "judge":
        return Segmentation.from_stages(read), "judge"
    mixed = tuple(
        theirs if sure < unsure_below(ready.run.track) else ours
        for ours, theirs, sure in zip(rules.turn_stages, read, rules.confidence, strict=True)
    )
    return Segmentation.from_stages(mixed), "mixed"


def assemble(
    ready: Prepared,
    judge: Judge,
    replies: Mapping[QuestionName, Reply],
    right: Mapping[str, float] | None = None,
) -> ScoreCard:
    """The scorecard from a prepared run and a judge's replies. Stages without a reply are unscored."""
    run, rubric, policy, check, counted = (
        ready.run,
        ready.rubric,
        ready.policy,
        ready.check,
        ready.counted,
    )
    branch = branch_of(policy, run.track)
    segmentation, stages_from = read_stages(ready, replies.get("stages"))
    results = {
        stage: _stage_results(ready, stage, replies.get(stage)) for stage in rubric.judged_stages
    }
    contradictions = find_contradictions(run, results)
    if policy.strict_evidence:
        against = {found.criterion for found in contradictions}
        results = {
            stage: tuple(strict_result(result, against, judge.name == RULES) for result in found)
            for stage, found in results.items()
        }
    caps: dict[str, Sequence[Cap]] = {
        "S4": counted.s4_caps,
        **{stage: (cap,) for stage, cap in counted.stage_caps.items()},
    }
    known = {"S4": (counted.s4, counted.s4_bounds), "S5": (counted.s5, counted.s5_bounds)}
    for stage in rubric.judged_stages:
        digits = None if branch is None else branch.judged_digits
        value, span = stage_score(
            results[stage], rubric.stages[stage].criteria, policy.missing, digits
        )
        known[stage] = apply_caps(
            value, span, caps.get(stage, ()), LIKE[policy.like].unscored_is_cap
        )
    space = counted.workspace
    parts: dict[str, dict[str, float]] = {}
    if space is not None:
        parts["S2"] = setup_facts(space, counted.s4_checks.completion)
        setup = setup_score(parts["S2"])
        known["S2"] = setup, (setup, setup)
    order = sorted(rubric.stages)
    scores: dict[str, float | None] = {stage: known[stage][0] for stage in order}
    bounds: dict[str, tuple[float, float]] = {stage: known[stage][1] for stage in order}
    task, task_from = counted.task, counted.task_from
    zeroed: Sequence[str] = ()
    if run.status.disqualified and policy.breach != "ignored":
        at = run.status.breach_turn
        stage_of_breach = (
            segmentation.turn_stages[at - 1]
            if at is not None and 1 <= at <= len(run.turns)
            else None
        )
        if policy.breach == "from-turn":
            after = penalty(branch, at)
        else:
            after = apply_breach(scores, bounds, task, policy.breach, stage_of_breach)
        scores, bounds, task, zeroed, task_from = (
            after.scores,
            after.bounds,
            after.task,
            after.stages,
            "policy",
        )
    total = aggregate(
        scores, bounds, rubric.weights, task, policy.missing, DIGITS if branch is not None else None
    )
    if space is not None:
        blended = usage_parts(space, scores["S3"], scores["S4"], counted.s4_caps)
        parts |= blended
        scores |= {stage: reported(found, found["counted"]) for stage, found in blended.items()}
        bounds |= {stage: reported_bounds(found, bounds[stage]) for stage, found in blended.items()}
    diagnosis = diagnose(
        run, segmentation, ready.detected, replies.get("diagnosis"), judge.name, right
    )
    failures: dict[str, str] = {str(stage): code for stage, code in diagnosis.failures.items()}
    stages = {
        stage: StageResult(
            score=scores[stage],
            method=(
                "policy"
                if stage in zeroed
                else (
                    "unscored"
                    if scores[stage] is None
                    else (
                        "judge"
                        if stage in results and not (stage == "S2" and space is not None)
                        else "deterministic"
                    )
                )
            ),
            bounds=bounds[stage],
            failure=failures.get(stage),
            criteria=results.get(stage, ()),
            checks={"S4": counted.s4_checks, "S5": counted.s5_checks}.get(stage),
            parts=parts.get(stage, {}),
            **_cap(caps.get(stage, ())),
        )
        for stage in order
    }
    usage = used(replies.values())
    share = shares(stages, rubric)
    return ScoreCard(
        ambjudge=__version__,
        run=RunInfo(**run_info(run)),
        rubric=RubricInfo(
            id=rubric.id, version=rubric.version, sha256=rubric.sha256, titles=_own_titles(rubric)
        ),
        judge=JudgeInfo(
            name=judge.name,
            members=judge.members,
            prompt_sha256=judge.prompt_sha256,
            **asdict(usage),
        ),
        policy=policy,
        stages=stages,
        read_share=share.read,
        presumed_share=share.presumed,
        agentic=total.agentic,
        agentic_bounds=total.agentic_bounds,
        task=task,
        task_from=task_from,
        grades=grades(run, check),
        overall=total.overall,
        overall_bounds=total.overall_bounds,
        outcomes=run.outcomes,
        imported=run.imported,
        codes=diagnosis.codes,
        codes_read=dict(diagnosis.codes_read),
        unproven=diagnosis.unproven,
        facts=_named(ready.facts, (*diagnosis.codes, *diagnosis.unproven)),
        plan=diagnosis.plan,
        primary_failure=diagnosis.primary_failure,
        episodes=diagnosis.episodes,
        answer_codes=dict(diagnosis.answer_codes),
        stages_from=stages_from,
        segments=segmentation.segments,
        turn_stages=segmentation.turn_stages,
        resources=run.resources,
        stage_use=stage_uses(run, segmentation),
        status=run.status,
        plugins=_plugins(run, judge),
        contradictions=(*contradictions, *diagnosis.contradictions),
        warnings=_warnings(ready, replies),
    )


def _named(facts: Sequence[Fact], codes: Sequence[FiredCode]) -> tuple[FactInfo, ...]:
    """The facts that codes rest on."""
    ids = {id for code in codes for id in code.facts}
    return tuple(fact for fact in facts if fact.id in ids)


def _stage_results(ready: Prepared, stage: str, reply: Reply | None) -> tuple[CriterionResult, ...]:
    """Judged, presumed, credited and inapplicable items in the rubric's order, with requirements
    applied."""
    split = ready.splits[stage]
    found = {
        r.id: r for r in (*split.credited, *split.not_applicable, *(reply.results if reply else ()))
    }
    criteria = ready.rubric.stages[stage].criteria
    silent = {c.id: c for c in unscored(criteria, "judge_error", "the judge gave no result")}
    results = [presume(found.get(c.id) or silent[c.id], c) for c in criteria]
    return apply_requires(results, criteria)


def _cap(caps: Sequence[Cap]) -> dict[str, Any]:
    if not caps:
        return {}
    lowest = min(caps, key=lambda cap: cap.value)
    return {"cap": lowest.value, "cap_reason": lowest.reason}


def _own_titles(rubric: Rubric) -> dict[str, str]:
    """Titles of the criteria of a rubric that does not ship with ambjudge: nobody else could say
    them."""
    if rubric.id in builtin_ids() and load_rubric(rubric.id).sha256 == rubric.sha256:
        return {}
    return {criterion.id: criterion.title for criterion in rubric.criteria()}


def _plugins(run: Run, judge: Judge) -> tuple[str, ...]:
    """The packages that had a say: all with detectors, the track's, the judge's or those of a
    panel's members."""
    judges = [
        str(value) for key, value in judge.parameters.items() if key.rpartition(".")[2] == "plugin"
    ]
    track = [stamp for stamp in stamps(TRACKS) if stamp.startswith(f"tracks:{run.track} ")]
    return tuple(sorted({*detector_packages(), *track, *judges}))


def _warnings(ready: Prepared, replies: Mapping[QuestionName, Reply]) -> tuple[str, ...]:
    checked = {"S4", "S5"} & ready.rubric.stages.keys()
    lines = [*ready.run.warnings, *(ready.counted.warnings if checked else ())]
    if ready.wished != ready.policy.like:
        why = (
            "no branch of the public harness"
            if has_all_stages(ready.rubric.stages)
            else "a rubric of other stages"
        )
        lines.append(f"track {ready.run.track}: {why}, scored by the paper's rules")
    if ready.run.track is None:
        lines += [fact.text for fact in bare_facts(ready.detected.context)]
    if ready.run.track is None and has_all_stages(ready.rubric.stages):
        lines.append(
            "track unknown: judged by the shared workflow, S4 and S5 unscored (--track names it)"
        )
    if ready.run.tier is None and any(c.credit or c.tiers for c in ready.rubric.criteria()):
        lines.append("tier unknown: no item is credited and every item is judged (--tier names it)")
    if ready.rubric.derived:
        lines.append(
            f"rubric {ready.rubric.id}: no per-item rubric is published for it; derived from the"
            " shared workflow"
        )
    for reply in replies.values():
        lines.extend(reply.warnings)
    return tuple(dict.fromkeys(lines))
