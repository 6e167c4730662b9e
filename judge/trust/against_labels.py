"""Measure a judge on runs that people have labelled, beside rules and "always met".

    report = await against_labels(judge, runs, selection)     # runs: an iterable of Run
    report.columns["dev"].criteria.overall.kappa              # a Figure: value, interval, n, method

Runs are split into dev and test by their content (`splits`), so that whoever edits prompts looks at
dev alone. With a `StoredJudge` around the judge, what the store knows is not asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ...error_codes.models import FiredCode
from ...error_codes.paper_codes import CODES
from ...errors import InputError
from ...rubrics.model import Rubric
from ...trajectories.models import Run
from ..base import (
    EstimatingJudge,
    Judge,
    QuestionName,
    Reply,
    Request,
    Usage,
    is_criteria,
    total_usage,
)
from ..card.presumed import presume
from ..card.stage_results import CriterionResult
from ..engine import PreparedRun, ask_all, choose_stages
from ..facts.diagnosis import diagnose
from ..judges.panel import vote_requests
from ..judges.rules import RulesJudge
from ..runner import Progress, run_batch
from ..scope import Scope
from ..scoring.criteria import apply_requires
from ..store.reuse import StoredJudge
from .comparison import (
    CodeOrigin,
    Confidence,
    Figures,
    JudgedCodes,
    JudgedItem,
    RunComparison,
    TurnStages,
    equals_label,
    figures,
)
from .human_labels import Labels, problems
from .label_sources import each_label
from .splits import SPLITS, Split, split_of


@dataclass(frozen=True)
class LabelReport:
    """A judge's figures on labelled runs."""

    judge: str
    test_share: float
    columns: Mapping[Split, Figures]
    """By split, for those that were asked for."""
    all_runs: Figures
    """Of the runs of all these splits together."""


class LabelledRun(NamedTuple):
    """A run to measure: its split, the run ready to be judged, and its labels."""

    split: Split
    prepared: PreparedRun
    labels: Labels


@dataclass(frozen=True)
class Selection:
    """Which runs are measured: labelled ones of these splits, read under this scope."""

    labels: Mapping[str, Labels]
    """By run id."""
    scope: Scope = field(default_factory=Scope)
    splits: tuple[Split, ...] = SPLITS
    test_share: float = 0.5

    def select(self, runs: Iterable[Run]) -> Iterator[LabelledRun]:
        """Those of the runs that are measured. InputError for labels that contradict their run."""
        for run in runs:
            split, labels = split_of(run, self.test_share), self.labels.get(run.id)
            if labels is not None and split in self.splits:
                prepared = self.scope.prepare(self.scope.apply(run))
                _check(run, prepared.rubric, labels)
                yield LabelledRun(split, prepared, labels)


def _check(run: Run, rubric: Rubric, labels: Labels) -> None:
    """InputError for labels that contradict the run or its rubric."""
    for line in problems(labels, run, rubric):
        raise InputError(f"labels of {run.id}: {line}", f"see: ambjudge rubric show {rubric.id}")


async def against_labels(
    judge: Judge,
    runs: Iterable[Run],
    selection: Selection,
    *,
    concurrency: int = 8,
    on_progress: Callable[[Progress], None] | None = None,
) -> LabelReport:
    """The judge's figures on the labelled ones of these runs.

    JudgeError if the judge cannot be used at all.
    """
    comparisons: list[tuple[Split, RunComparison]] = []

    async def call(labelled: LabelledRun) -> RunComparison:
        return await compare_run(labelled.prepared, labelled.labels, judge)

    def add_result(labelled: LabelledRun, comparison: RunComparison) -> None:
        comparisons.append((labelled.split, comparison))

    summary = await run_batch(
        selection.select(runs),
        call,
        concurrency=concurrency,
        on_progress=on_progress,
        on_result=add_result,
    )
    if summary.interrupted:
        raise KeyboardInterrupt
    # The bootstrap draws runs by their position, so the order must not depend on who was first.
    comparisons.sort(key=lambda pair: pair[1].run)
    columns = {
        split: figures([comparison for side, comparison in comparisons if side == split])
        for split in selection.splits
    }
    all_runs = figures([comparison for _, comparison in comparisons])
    return LabelReport(judge.name, selection.test_share, columns, all_runs)


def estimate_calls(
    judge: Judge, runs: Iterable[Run], selection: Selection
) -> tuple[int, int, Usage]:
    """How many runs would be measured, the calls to make, and the most that these would use.

    Makes no call. Calls whose verdicts a store already has are not counted.
    """
    count = calls = 0
    most = Usage()
    for labelled in selection.select(runs):
        count += 1
        for request in labelled.prepared.requests(judge):
            for voting, asked in vote_requests(judge, request):
                if _is_stored(voting, asked):
                    continue
                calls += 1
                if isinstance(voting, EstimatingJudge):
                    most += voting.estimate(asked).high
    return count, calls, most


def _is_stored(judge: Judge, request: Request) -> bool:
    """Whether a store already has every verdict that a request asks for."""
    if not isinstance(judge, StoredJudge):
        return False
    return not judge.look_up(request).missing(request.criteria)


def labels_by_run(source: str | Path, annotator: str | None = None) -> dict[str, Labels]:
    """Labels by run id, from a file, a folder or a verdict store.

    A folder is read recursively; a store is a .db file or an address.

    Of several annotators of a run: the named one, else gold, else the first by name. InputError for
    a file that does not hold labels, and if there are none.
    """
    selected: list[Labels] = []
    for entry in each_label(source):
        if isinstance(entry, InputError):
            raise entry
        if annotator in (None, entry.labels.annotator) and entry.labels.has_labels:
            selected.append(entry.labels)
    if not selected:
        whose = f" of {annotator}" if annotator else ""
        raise InputError(f"no labels{whose}", "see docs/labels.md", Path(source))
    by_run: dict[str, Labels] = {}
    for labels in sorted(selected, key=_annotator_order):
        by_run.setdefault(labels.run, labels)
    return by_run


def _annotator_order(labels: Labels) -> tuple[bool, str]:
    return labels.annotator != "gold", labels.annotator


async def compare_run(prepared: PreparedRun, labels: Labels, judge: Judge) -> RunComparison:
    """Ask the judge about one run, and put its verdicts beside the labels."""
    requests = prepared.requests(judge)
    replies = await ask_all(judge, requests)
    codes = None
    if "codes" in labels.model_fields_set:
        codes = _judged_codes(prepared, replies.get("diagnosis"), labels, judge.name)
    return RunComparison(
        run=labels.run,
        criteria=await _judged_items(requests, replies, labels),
        codes=codes,
        stages=_turn_stages(prepared, replies, labels),
        usage=total_usage(replies.values()),
    )


async def _judged_items(
    requests: Sequence[Request], replies: Mapping[QuestionName, Reply], labels: Labels
) -> tuple[JudgedItem, ...]:
    """The labelled criteria with the judge's values and those of rules."""
    items = []
    for request in requests:
        if not is_criteria(request.question):
            continue
        by_rules = {result.id: result for result in await _results_by_rules(request)}
        by_judge = {result.id: result for result in replies[request.question].results}
        for criterion in request.criteria:
            label = labels.criteria.get(criterion.id)
            if label is None:
                continue
            result = by_judge[criterion.id]
            if result.reason == "not_read":  # the rules judge left it to a model: no answer
                continue
            confidences = tuple(
                (vote.probability, equals_label(vote.value, label))
                for vote in result.votes
                if vote.probability is not None
            )
            items.append(
                JudgedItem(
                    id=criterion.id,
                    stage=request.question,
                    label=label,
                    value=result.value,
                    unscored=result.status == "unscored",
                    rules=by_rules[criterion.id].value,
                    presumed=by_rules[criterion.id].status == "presumed",
                    highest=max(criterion.values),
                    confidences=confidences,
                )
            )
    return tuple(items)


async def _results_by_rules(request: Request) -> tuple[CriterionResult, ...]:
    """What a scorecard without a judge holds for these criteria.

    Scored or presumed values, with the rubric's requirements applied.
    """
    criteria = {criterion.id: criterion for criterion in request.criteria}
    reply = await RulesJudge().judge(request)
    results = [presume(result, criteria[result.id]) for result in reply.results]
    return apply_requires(results, request.criteria)


def _judged_codes(
    prepared: PreparedRun, reply: Reply | None, labels: Labels, judge: str
) -> JudgedCodes:
    """The labelled codes, and those that fired by origin."""
    labelled = frozenset(labels.codes) & frozenset(CODES)
    facts_alone = diagnose(prepared.run, prepared.segmentation, prepared.detected)
    fired: dict[CodeOrigin, frozenset[str]] = {"facts": _fired(facts_alone.codes)}
    if reply is None:
        return JudgedCodes(labelled, fired)
    merged = diagnose(prepared.run, prepared.segmentation, prepared.detected, reply, judge)
    fired["both"] = _fired(merged.codes)
    fired["reading"] = _fired(code for code in merged.codes if code.independence == "from_judge")
    results = [result for result in reply.results if result.id in CODES]
    quotes = []
    confidences = []
    for result in results:
        if result.value is not None and result.value > 0.5 and result.evidence:
            quotes.append(any(evidence.check != "not_found" for evidence in result.evidence))
        confidence = _confidence(result, result.id in labelled)
        if confidence is not None:
            confidences.append(confidence)
    return JudgedCodes(
        labelled,
        fired,
        unread=sum(result.value is None and result.reason != "no_evidence" for result in results),
        cannot_tell=sum(result.reason == "no_evidence" for result in results),
        unproven=len(merged.unproven),
        quotes=tuple(quotes),
        confidences=tuple(confidences),
    )


def _fired(codes: Iterable[FiredCode]) -> frozenset[str]:
    """The fired codes, without those derived from the score, which say nothing about the run."""
    return frozenset(code.code for code in codes if code.independence != "from_score")


def _confidence(result: CriterionResult, labelled: bool) -> Confidence | None:
    """The confidence of a reading present or absent, and whether the label agrees.

    None if the reading states no confidence in [0, 1].
    """
    if result.value is None:
        return None
    stated = result.answer.get("confidence") if isinstance(result.answer, dict) else None
    if stated is None:
        probabilities = (vote.probability for vote in result.votes)
        stated = next((value for value in probabilities if value is not None), None)
    if not isinstance(stated, int | float) or not 0 <= stated <= 1:
        return None
    return float(stated), (result.value > 0.5) == labelled


def _turn_stages(
    prepared: PreparedRun, replies: Mapping[QuestionName, Reply], labels: Labels
) -> tuple[TurnStages, ...]:
    """The labelled turns with their stages; empty if the judge gave no stages."""
    segmentation, source = choose_stages(prepared, replies.get("stages"))
    if source == "rules":
        return ()
    by_judge, by_rules = segmentation.turn_stages, prepared.segmentation.turn_stages
    return tuple(
        (label, by_judge[turn - 1], by_rules[turn - 1])
        for turn, label in sorted(labels.stages.items())
        if turn <= len(by_rules)
    )
