"""Measuring a judge on runs that people have labelled: what it says of them, beside labels, rules
and "always met".

    report = await against_labels(judge, runs, labels)      # runs: an iterable of Run, labels: by
    run id
    report.columns["dev"].criteria.overall.kappa            # a Figure: value, interval, n, method

Runs are split into dev and test by their content (`splits`), so that who edits prompts looks at dev
alone. Put a `StoredJudge` around the judge and what the store knows is not asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...error_codes.models import FiredCode
from ...error_codes.paper_codes import CODES
from ...errors import InputError
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
from ..engine import Prepared, ask_all, read_stages
from ..facts.diagnosis import diagnose
from ..judges.rules import RulesJudge
from ..runner import Progress, run_batch
from ..scope import Scope
from ..scoring.formulas import apply_requires
from ..store.reuse import StoredJudge
from .comparison import (
    CodesBy,
    Compared,
    Figures,
    JudgedCodes,
    JudgedItem,
    Sure,
    TurnStages,
    equal,
    figures,
)
from .human_labels import Labels
from .label_sources import each_label
from .splits import SPLITS, Split, split_of


@dataclass(frozen=True)
class LabelReport:
    """`columns`: the figures of each split that was asked for; `all_runs`: of these together."""

    judge: str
    test_share: float
    columns: Mapping[Split, Figures]
    all_runs: Figures


@dataclass(frozen=True)
class Selection:
    """Which runs are measured: labelled ones of these splits, read under this scope."""

    labels: Mapping[str, Labels]
    """By run id."""
    scope: Scope = field(default_factory=Scope)
    splits: tuple[Split, ...] = SPLITS
    test_share: float = 0.5

    def jobs(self, runs: Iterable[Run]) -> Iterator[tuple[Split, Prepared, Labels]]:
        """Each of the runs that is measured, ready to be judged. InputError for a label off its
        criterion's scale."""
        for run in runs:
            split, said = split_of(run, self.test_share), self.labels.get(run.id)
            if said is None or split not in self.splits:
                continue
            ready = self.scope.prepare(self.scope.apply(run))
            for item in ready.rubric.criteria():
                label = said.criteria.get(item.id)
                if label is not None and not any(equal(value, label) for value in item.values):
                    scale = ", ".join(f"{value:g}" for value in item.values)
                    raise InputError(
                        f"labels of {run.id}: {item.id} is {label:g}, not one of {scale}",
                        f"see: ambjudge rubric show {ready.rubric.id}",
                    )
            yield split, ready, said


async def against_labels(
    judge: Judge,
    runs: Iterable[Run],
    chosen: Selection,
    *,
    concurrency: int = 8,
    on_progress: Callable[[Progress], None] | None = None,
) -> LabelReport:
    """The judge's figures on the labelled ones of these runs. JudgeError when it cannot work at
    all."""
    found: list[tuple[Split, Compared]] = []

    async def call(job: tuple[Split, Prepared, Labels]) -> Compared:
        return await compare(job[1], job[2], judge)

    summary = await run_batch(
        chosen.jobs(runs),
        call,
        concurrency=concurrency,
        on_progress=on_progress,
        on_result=lambda job, compared: found.append((job[0], compared)),
    )
    if summary.interrupted:
        raise KeyboardInterrupt
    found.sort(key=lambda each: each[1].run)  # the bootstrap draws runs by their place
    columns = {split: figures([c for s, c in found if s == split]) for split in chosen.splits}
    return LabelReport(judge.name, chosen.test_share, columns, figures([c for _, c in found]))


def planned(judge: Judge, runs: Iterable[Run], chosen: Selection) -> tuple[int, int, Usage]:
    """Without asking: runs to measure, calls to make beyond what a store has, and the most that
    these would use."""
    count = calls = 0
    most = Usage()
    for _, ready, _ in chosen.jobs(runs):
        count += 1
        for request in ready.requests(judge):
            if isinstance(judge, StoredJudge) and not judge.look_up(request).missing(
                request.criteria
            ):
                continue
            calls += 1
            most += judge.estimate(request).high if isinstance(judge, EstimatingJudge) else Usage()
    return count, calls, most


def labels_by_run(source: str | Path, annotator: str | None = None) -> dict[str, Labels]:
    """Labels in a file, below a folder (recursively) or in a verdict store (a .db file or an
    address), by run id.

    Of several annotators of a run the named one; else gold, else the first by name. InputError for
    what is no label file, and where there is none.
    """
    found = []
    for _, labels in each_label(source, strict=False):
        if isinstance(labels, InputError):
            raise labels
        found.append(labels)
    kept = [labels for labels in found if annotator in (None, labels.annotator)]
    if not kept:
        raise InputError(
            f"no labels{f' of {annotator}' if annotator else ''}",
            "see docs/labels.md",
            Path(source),
        )
    by_run: dict[str, Labels] = {}
    for labels in sorted(kept, key=lambda labels: (labels.annotator != "gold", labels.annotator)):
        by_run.setdefault(labels.run, labels)
    return by_run


async def compare(ready: Prepared, labels: Labels, judge: Judge) -> Compared:
    """Ask the judge about one run, and hold what it says beside the labels."""
    requests = ready.requests(judge)
    replies = await ask_all(judge, requests)
    return Compared(
        run=labels.run,
        criteria=await _criteria(requests, replies, labels),
        codes=(
            _codes(ready, replies.get("diagnosis"), labels, judge.name)
            if "codes" in labels.model_fields_set
            else None
        ),
        stages=_stages(ready, replies, labels),
        usage=total_usage(replies.values()),
    )


async def _criteria(
    requests: Sequence[Request], replies: Mapping[QuestionName, Reply], labels: Labels
) -> tuple[JudgedItem, ...]:
    found = []
    null = RulesJudge()
    for request in (request for request in requests if is_criteria(request.question)):
        rules = {result.id: result for result in await _by_rules(null, request)}
        said = {result.id: result for result in replies[request.question].results}
        for item in request.criteria:
            label = labels.criteria.get(item.id)
            if label is None:
                continue
            result = said[item.id]
            # what the rules leave to a reader is no answer of theirs
            if result.reason == "not_read":
                continue
            sure = tuple(
                (vote.probability, equal(vote.value, label))
                for vote in result.votes
                if vote.probability is not None
            )
            found.append(
                JudgedItem(
                    id=item.id,
                    stage=request.question,
                    label=label,
                    value=result.value,
                    unscored=result.status == "unscored",
                    rules=rules[item.id].value,
                    presumed=rules[item.id].status == "presumed",
                    highest=max(item.values),
                    sure=sure,
                )
            )
    return tuple(found)


async def _by_rules(null: RulesJudge, request: Request) -> tuple[CriterionResult, ...]:
    """What a scorecard without a reader says of these criteria: scored or presumed, with the
    rubric's requirements."""
    items = {item.id: item for item in request.criteria}
    results = [presume(result, items[result.id]) for result in (await null.judge(request)).results]
    return apply_requires(results, request.criteria)


def _codes(ready: Prepared, reply: Reply | None, labels: Labels, judge: str) -> JudgedCodes:
    labelled = frozenset(labels.codes) & frozenset(CODES)
    alone = diagnose(ready.run, ready.segmentation, ready.detected)
    found: dict[CodesBy, frozenset[str]] = {"facts": _fired(alone.codes)}
    if reply is None:
        return JudgedCodes(labelled, found)
    merged = diagnose(ready.run, ready.segmentation, ready.detected, reply, judge)
    found |= {
        "both": _fired(merged.codes),
        "reading": _fired(c for c in merged.codes if c.independence == "from_judge"),
    }
    results = [result for result in reply.results if result.id in CODES]
    present = [result for result in results if result.value is not None and result.value > 0.5]
    return JudgedCodes(
        labelled,
        found,
        unread=sum(result.value is None and result.reason != "no_evidence" for result in results),
        cannot_tell=sum(result.reason == "no_evidence" for result in results),
        unproven=len(merged.unproven),
        quotes=tuple(
            any(e.check != "not_found" for e in r.evidence) for r in present if r.evidence
        ),
        sure=tuple(
            pair for result in results if (pair := _sure(result, result.id in labelled)) is not None
        ),
    )


def _fired(codes: Iterable[FiredCode]) -> frozenset[str]:
    """Codes that were read off the score itself say nothing about the run."""
    return frozenset(code.code for code in codes if code.independence != "from_score")


def _sure(result: CriterionResult, there: bool) -> Sure | None:
    """The confidence of a reading present or absent, and whether the label says so too."""
    if result.value is None:
        return None
    said = result.answer.get("confidence") if isinstance(result.answer, dict) else None
    if said is None:
        said = next(
            (vote.probability for vote in result.votes if vote.probability is not None), None
        )
    if not isinstance(said, int | float) or not 0 <= said <= 1:
        return None
    return float(said), (result.value > 0.5) == there


def _stages(
    ready: Prepared, replies: Mapping[QuestionName, Reply], labels: Labels
) -> tuple[TurnStages, ...]:
    read, by = read_stages(ready, replies.get("stages"))
    if by == "rules":
        return ()
    rules = ready.segmentation.turn_stages
    return tuple(
        (label, read.turn_stages[turn - 1], rules[turn - 1])
        for turn, label in sorted(labels.stages.items())
        if turn <= len(rules)
    )
