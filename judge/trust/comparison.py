"""A judge's verdicts on one labelled run beside the labels, and the judge's figures over many runs.

Compared are values of criteria, error codes and stages of turns, and stated probabilities with
whether they were right. `figures` is a pure function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal

from ...error_codes.paper_codes import CODES
from ...trajectories.models import STAGES, Stage
from ..base import QuestionName, Usage
from .measures import (
    Calibration,
    Figure,
    calibration,
    cohen_kappa,
    f1,
    gain_over_runs,
    macro_f1,
    on_tables,
    over_runs,
    ratio,
    share,
)

CodeOrigin = Literal["reading", "facts", "both"]
"""reading: codes that the judge read and proved; facts: those of detectors, without a judge; both:
merged, as on a scorecard."""
CODE_ORIGINS: tuple[CodeOrigin, ...] = ("reading", "facts", "both")
Confidence = tuple[float, bool]
"""A stated probability of being right, and whether the answer was right."""
TurnStages = tuple[Stage, Stage, Stage]
"""A turn's stage: by the label, by the judge, by rules."""


@dataclass(frozen=True)
class JudgedItem:
    """A labelled criterion with the judge's value and those of the null models."""

    id: str
    stage: QuestionName
    label: float
    value: float | None
    """By the judge."""
    unscored: bool
    rules: float | None
    """On a scorecard without a judge: scored or presumed."""
    highest: float
    """The highest value of the criterion's scale."""
    confidences: tuple[Confidence, ...] = ()
    """Of the votes that carry a probability, which are those of local judges."""
    presumed: bool = False
    """Whether `rules` is presumed."""


@dataclass(frozen=True)
class JudgedCodes:
    """Error codes of a run whose label says which apply."""

    labelled: frozenset[str]
    fired: Mapping[CodeOrigin, frozenset[str]]
    """Without `reading` and `both` if the judge is not asked for codes."""
    unread: int = 0
    """Codes that the judge was asked for and gave no usable answer about; `cannot_tell` is one."""
    cannot_tell: int = 0
    unproven: int = 0
    """Codes called present whose quote was not found, or that name no turn: they do not count."""
    quotes: tuple[bool, ...] = ()
    """For each code called present with a quote: whether the quote was found."""
    confidences: tuple[Confidence, ...] = ()
    """Of the readings present or absent."""


@dataclass(frozen=True)
class RunComparison:
    """One run's verdicts beside its labels: as far as it is labelled and the judge is asked."""

    run: str
    criteria: tuple[JudgedItem, ...] = ()
    codes: JudgedCodes | None = None
    stages: tuple[TurnStages, ...] = ()
    """Labelled turns; empty if the judge was not asked for stages, or gave none."""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class ItemFigures:
    """Figures of criteria of one kind."""

    equal: Figure
    """Share of values equal to the label; an unscored verdict equals none."""
    kappa: Figure
    """Of the verdicts with a value."""
    unscored: int


@dataclass(frozen=True)
class CriteriaFigures:
    """Figures of criteria, beside two null models.

    `rules` is a scorecard without a judge, `always_met` the highest value everywhere.
    """

    overall: ItemFigures
    by_stage: Mapping[str, ItemFigures]
    by_criterion: Mapping[str, ItemFigures]
    rules: ItemFigures
    rules_scored: Figure
    """`rules` without the values presumed from this project's labelled runs: what facts decided."""
    always_met: Figure
    over_rules: Figure
    """How much more often the judge equals the label than `rules` does."""
    over_always_met: Figure
    calibration: Calibration | None


Comparison = Literal["better", "worse", "undecided"]
MIN_RUNS = 5
"""Labelled runs below which no judge is called better than another."""


def compare_with_rules(criteria: CriteriaFigures | None, runs: int) -> Comparison:
    """Whether the judge is better than the rules judge on the labelled criteria of these runs.

    Undecided with fewer than `MIN_RUNS` runs, and if the interval of the gain holds 0.
    """
    interval = criteria.over_rules.interval if criteria is not None else None
    if interval is None or runs < MIN_RUNS:
        return "undecided"
    if interval[0] > 0:
        return "better"
    return "worse" if interval[1] < 0 else "undecided"


@dataclass(frozen=True)
class CodeFigures:
    """Figures of one code, or of all of them (micro)."""

    precision: Figure
    recall: Figure
    f1: Figure


@dataclass(frozen=True)
class CodesFigures:
    """Figures of codes of one origin over runs."""

    micro: CodeFigures
    by_code: Mapping[str, CodeFigures]
    clean: Figure
    """Share of the runs without a labelled code on which one fired all the same."""


@dataclass(frozen=True)
class ReadingFigures:
    """Figures of a judge's readings of codes."""

    unproven: int
    cannot_tell: int
    unread: int
    quotes: Figure
    """Share of the quotes that were found."""
    calibration: Calibration


@dataclass(frozen=True)
class StageFigures:
    """Figures of the stages of turns."""

    accuracy: Figure
    macro_f1: Figure


@dataclass(frozen=True)
class Figures:
    """All figures of a judge from some labelled runs; None where nothing was labelled or asked."""

    runs: int
    criteria: CriteriaFigures | None
    codes: Mapping[CodeOrigin, CodesFigures] | None
    reading: ReadingFigures | None
    stages: Mapping[Literal["reading", "rules"], StageFigures] | None
    usage: Usage


def figures(comparisons: Sequence[RunComparison]) -> Figures:
    """The figures of these runs together."""
    with_criteria = [run.criteria for run in comparisons if run.criteria]
    with_codes = [run.codes for run in comparisons if run.codes is not None]
    with_stages = [run.stages for run in comparisons if run.stages]
    read = [codes for codes in with_codes if "reading" in codes.fired]
    code_figures: dict[CodeOrigin, CodesFigures] = {}
    for origin in CODE_ORIGINS:
        runs = with_codes if origin == "facts" else read
        if runs:
            code_figures[origin] = _code_figures(runs, origin)
    stages: dict[Literal["reading", "rules"], StageFigures] = {}
    if with_stages:
        stages = {
            "reading": _stage_figures(
                [[(label, read) for label, read, _ in turns] for turns in with_stages]
            ),
            "rules": _stage_figures(
                [[(label, rules) for label, _, rules in turns] for turns in with_stages]
            ),
        }
    return Figures(
        runs=len(comparisons),
        criteria=_criteria_figures(with_criteria) if with_criteria else None,
        codes=code_figures or None,
        reading=_reading_figures(read) if read else None,
        stages=stages or None,
        usage=sum((run.usage for run in comparisons), Usage()),
    )


def equals_label(value: float | None, label: float) -> bool:
    """Whether a verdict is the label.

    Scales have steps of .25 at least, so the tolerance is for rounding alone.
    """
    return value is not None and abs(value - label) < 1e-6


# Criteria

_Runs = Sequence[Sequence[JudgedItem]]
_Rater = Callable[[JudgedItem], float | None]
"""Whose value of an item is meant: the judge's or a null model's."""


def _by_judge(item: JudgedItem) -> float | None:
    return item.value


def _by_rules(item: JudgedItem) -> float | None:
    return item.rules


def _always_met(item: JudgedItem) -> float | None:
    return item.highest


def _criteria_figures(runs: _Runs) -> CriteriaFigures:
    by_stage = _group_items(runs, attrgetter("stage"))
    by_criterion = _group_items(runs, attrgetter("id"))
    decided = [
        [item for item in run if item.rules is not None and not item.presumed] for run in runs
    ]
    confidences = [[pair for item in run for pair in item.confidences] for run in runs]
    return CriteriaFigures(
        overall=_item_figures(runs, _by_judge),
        by_stage={stage: _item_figures(group, _by_judge) for stage, group in by_stage.items()},
        by_criterion={id: _item_figures(group, _by_judge) for id, group in by_criterion.items()},
        rules=_item_figures(runs, _by_rules),
        rules_scored=_item_figures(decided, _by_rules).equal,
        always_met=_item_figures(runs, _always_met).equal,
        over_rules=_gain(runs, _by_judge, _by_rules),
        over_always_met=_gain(runs, _by_judge, _always_met),
        calibration=calibration(confidences) if any(confidences) else None,
    )


def _group_items(
    runs: _Runs, key: Callable[[JudgedItem], str]
) -> dict[str, list[list[JudgedItem]]]:
    """Key -> the items with that key by run, in order of the keys.

    Runs without such an item are left out.
    """
    groups: dict[str, list[list[JudgedItem]]] = {}
    for run in runs:
        run_groups: dict[str, list[JudgedItem]] = {}
        for item in run:
            run_groups.setdefault(key(item), []).append(item)
        for name, items in run_groups.items():
            groups.setdefault(name, []).append(items)
    return dict(sorted(groups.items()))


def _item_figures(runs: _Runs, rater: _Rater) -> ItemFigures:
    """Equality and kappa of a rater's values and the labels."""
    equal_counts = []
    scored: list[list[tuple[float, float]]] = []
    for run in runs:
        values = [(item.label, rater(item)) for item in run]
        equal_counts.append([sum(equals_label(value, label) for label, value in values), len(run)])
        scored.append([(label, value) for label, value in values if value is not None])
    levels = sorted({round(value, 6) for pairs in scored for pair in pairs for value in pair})
    index = {level: position for position, level in enumerate(levels)}
    tables = []
    for pairs in scored:
        if pairs:
            cells = [(index[round(label, 6)], index[round(value, 6)]) for label, value in pairs]
            tables.append(_count_table(cells, len(levels)))
    n_scored = sum(len(pairs) for pairs in scored)
    return ItemFigures(
        equal=_share_over_runs(equal_counts),
        kappa=over_runs(tables, on_tables(cohen_kappa, len(levels)), n_scored),
        unscored=sum(item.unscored for run in runs for item in run),
    )


def _gain(runs: _Runs, first: _Rater, second: _Rater) -> Figure:
    """How much more often the first rater equals the label than the second, in [-1, 1]."""
    counts = []
    for run in runs:
        gain = 0
        for item in run:
            gain += equals_label(first(item), item.label)
            gain -= equals_label(second(item), item.label)
        counts.append([gain, len(run)])
    return gain_over_runs(counts)


# Codes and stages


def _code_figures(runs: Sequence[JudgedCodes], origin: CodeOrigin) -> CodesFigures:
    clean = [run for run in runs if not run.labelled]
    return CodesFigures(
        micro=_figures_of_codes(runs, origin, frozenset(CODES)),
        by_code={code: _figures_of_codes(runs, origin, frozenset({code})) for code in CODES},
        clean=share(sum(bool(run.fired[origin]) for run in clean), len(clean)),
    )


def _figures_of_codes(
    runs: Sequence[JudgedCodes], origin: CodeOrigin, codes: frozenset[str]
) -> CodeFigures:
    """Precision, recall and F1 of these codes, counted together."""
    counts = []
    for run in runs:
        fired, labelled = run.fired[origin] & codes, run.labelled & codes
        counts.append([len(fired & labelled), len(fired - labelled), len(labelled - fired)])
    hits = sum(row[0] for row in counts)
    false_alarms = sum(row[1] for row in counts)
    misses = sum(row[2] for row in counts)
    return CodeFigures(
        precision=share(hits, hits + false_alarms),
        recall=share(hits, hits + misses),
        f1=over_runs(counts, f1, hits + false_alarms + misses),
    )


def _reading_figures(runs: Sequence[JudgedCodes]) -> ReadingFigures:
    quotes = [quote_found for run in runs for quote_found in run.quotes]
    return ReadingFigures(
        unproven=sum(run.unproven for run in runs),
        cannot_tell=sum(run.cannot_tell for run in runs),
        unread=sum(run.unread for run in runs),
        quotes=share(sum(quotes), len(quotes)),
        calibration=calibration([run.confidences for run in runs]),
    )


def _stage_figures(runs: Sequence[Sequence[tuple[Stage, Stage]]]) -> StageFigures:
    """From pairs of a turn's labelled stage and the stage it was given, by run."""
    size = len(STAGES)
    tables, equal_counts = [], []
    for run in runs:
        cells = [(STAGES.index(label), STAGES.index(stage)) for label, stage in run]
        tables.append(_count_table(cells, size))
        equal_counts.append([sum(label == stage for label, stage in run), len(run)])
    n_turns = sum(len(run) for run in runs)
    return StageFigures(
        accuracy=_share_over_runs(equal_counts),
        macro_f1=over_runs(tables, on_tables(macro_f1, size), n_turns),
    )


def _share_over_runs(counts: Sequence[Sequence[int]]) -> Figure:
    """The share of (right, all) counts by run; with one case per run, a simple share."""
    total = sum(n for _, n in counts)
    if all(n <= 1 for _, n in counts):
        return share(sum(right for right, _ in counts), total)
    return over_runs(counts, ratio, total)


def _count_table(cells: Iterable[tuple[int, int]], size: int) -> list[int]:
    """Counts of a size x size table (label, value), row after row."""
    counts = [0] * (size * size)
    for row, column in cells:
        counts[row * size + column] += 1
    return counts
