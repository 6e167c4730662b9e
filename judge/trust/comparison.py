"""A judge's answers on one labelled run beside its labels, and all figures of a judge from many of
these.

Values of criteria, error codes and stages of turns; stated probabilities beside what was right.
`figures` is pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
    macro_f1,
    on_tables,
    over_runs,
    paired_gain,
    ratio,
    share,
)

CodesBy = Literal["reading", "facts", "both"]
"""reading: what a reader found and proved; facts: detectors, nobody read; both: merged as on a
scorecard."""
CODES_BY: tuple[CodesBy, ...] = ("reading", "facts", "both")
Sure = tuple[float, bool]
"""A stated probability of being right, and whether it was."""
TurnStages = tuple[Stage, Stage, Stage]
"""A turn's stage: labelled, by the judge, by rules."""


@dataclass(frozen=True)
class JudgedItem:
    """A labelled criterion: the judge's value, that of a scorecard without a reader (`rules`,
    scored or presumed), and the highest of the scale."""

    id: str
    stage: QuestionName
    label: float
    value: float | None
    unscored: bool
    rules: float | None
    highest: float
    sure: tuple[Sure, ...] = ()
    """Of votes that carry a probability: local judges'."""
    presumed: bool = False
    """`rules` is presumed."""


@dataclass(frozen=True)
class JudgedCodes:
    """Error codes of a run whose label says which apply. `found` has no reading where the judge is
    not asked for codes."""

    labelled: frozenset[str]
    found: Mapping[CodesBy, frozenset[str]]
    unread: int = 0
    """Codes that the judge was asked for without a usable answer; `cannot_tell` is one."""
    cannot_tell: int = 0
    unproven: int = 0
    """Codes said to be present whose quote stands nowhere in the run, or that name no turn: they do
    not count."""
    quotes: tuple[bool, ...] = ()
    """Of the codes said to be present with a quote: whether it was found."""
    sure: tuple[Sure, ...] = ()
    """Of readings present or absent."""


@dataclass(frozen=True)
class Compared:
    """One run: what it is asked about depends on its labels and on the judge."""

    run: str
    criteria: tuple[JudgedItem, ...] = ()
    codes: JudgedCodes | None = None
    stages: tuple[TurnStages, ...] = ()
    """Labelled turns; empty where the judge was not asked for stages, or gave none."""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class ItemFigures:
    """Criteria of one kind. `equal`: share of values equal to the label, an unscored verdict equals
    none; `kappa`: of the verdicts with a value."""

    equal: Figure
    kappa: Figure
    unscored: int


@dataclass(frozen=True)
class CriteriaFigures:
    """`rules` and `always_met` are the two null models: a scorecard without a reader, and the
    highest value everywhere. `rules_scored`: of the former, what facts decided; the rest is
    presumed from this project's labelled runs."""

    overall: ItemFigures
    by_stage: Mapping[str, ItemFigures]
    by_criterion: Mapping[str, ItemFigures]
    rules: ItemFigures
    rules_scored: Figure
    always_met: Figure
    over_rules: Figure
    over_always_met: Figure
    calibration: Calibration | None


@dataclass(frozen=True)
class CodeFigures:
    """One code, or all of them (micro)."""

    precision: Figure
    recall: Figure
    f1: Figure


@dataclass(frozen=True)
class CodesFigures:
    """Codes of one origin over runs. `clean`: share of runs without a labelled code on which one
    fired all the same."""

    micro: CodeFigures
    by_code: Mapping[str, CodeFigures]
    clean: Figure


@dataclass(frozen=True)
class ReadingFigures:
    """What became of a reader's answers on codes."""

    unproven: int
    cannot_tell: int
    unread: int
    quotes: Figure
    calibration: Calibration


@dataclass(frozen=True)
class StageFigures:
    accuracy: Figure
    macro_f1: Figure


@dataclass(frozen=True)
class Figures:
    """Everything that is known of a judge from some labelled runs. None: nothing was labelled or
    asked."""

    runs: int
    criteria: CriteriaFigures | None
    codes: Mapping[CodesBy, CodesFigures] | None
    reading: ReadingFigures | None
    stages: Mapping[Literal["reading", "rules"], StageFigures] | None
    usage: Usage


def figures(compared: Sequence[Compared]) -> Figures:
    """The figures of these runs together."""
    codes = [each.codes for each in compared if each.codes is not None]
    staged = [each.stages for each in compared if each.stages]
    read = [each for each in codes if "reading" in each.found]
    origins = [by for by in CODES_BY if by == "facts" or read]
    return Figures(
        runs=len(compared),
        criteria=_criteria([each.criteria for each in compared if each.criteria]),
        codes=(
            {by: _codes(read if by != "facts" else codes, by) for by in origins} if codes else None
        ),
        reading=_reading(read) if read else None,
        stages={"reading": _stages(staged, 1), "rules": _stages(staged, 2)} if staged else None,
        usage=sum((each.usage for each in compared), Usage()),
    )


def equal(value: float | None, label: float) -> bool:
    """Whether a verdict is the label: scales have steps of .25 at the least, so this is about
    rounding alone."""
    return value is not None and abs(value - label) < 1e-6


_Runs = Sequence[Sequence[JudgedItem]]
_Value = Callable[[JudgedItem], float | None]


def _criteria(runs: _Runs) -> CriteriaFigures | None:
    if not runs:
        return None

    def said(item: JudgedItem) -> float | None:
        return item.value

    def some(keep: Callable[[JudgedItem], bool]) -> ItemFigures:
        kept = [[item for item in run if keep(item)] for run in runs]
        return _items([run for run in kept if run], said)

    ids = sorted({item.id for run in runs for item in run})
    stages = sorted({item.stage for run in runs for item in run})
    sure = [[pair for item in run for pair in item.sure] for run in runs]
    return CriteriaFigures(
        overall=_items(runs, said),
        by_stage={
            stage: found
            for stage in stages
            if (found := some(lambda i, s=stage: i.stage == s)).equal.n
        },  # type: ignore[misc]
        by_criterion={id: some(lambda i, id=id: i.id == id) for id in ids},  # type: ignore[misc]
        rules=_items(runs, lambda i: i.rules),
        rules_scored=_items(
            [[i for i in run if i.rules is not None and not i.presumed] for run in runs],
            lambda i: i.rules,
        ).equal,
        always_met=_items(runs, lambda i: i.highest).equal,
        over_rules=_gain(runs, said, lambda i: i.rules),
        over_always_met=_gain(runs, said, lambda i: i.highest),
        calibration=calibration(sure) if any(sure) else None,
    )


def _items(runs: _Runs, value: _Value) -> ItemFigures:
    pairs = [[(item.label, value(item)) for item in run] for run in runs]
    right = [[sum(equal(said, label) for label, said in run), len(run)] for run in pairs]
    scored = [[(label, said) for label, said in run if said is not None] for run in pairs]
    levels = sorted({round(value, 6) for run in scored for pair in run for value in pair})
    place = {level: i for i, level in enumerate(levels)}
    tables = [
        _table(
            ((place[round(label, 6)], place[round(said, 6)]) for label, said in run), len(levels)
        )
        for run in scored
        if run
    ]
    return ItemFigures(
        equal=_share(right),
        kappa=over_runs(tables, on_tables(cohen_kappa, len(levels)), sum(map(len, scored))),
        unscored=sum(item.unscored for run in runs for item in run),
    )


def _gain(runs: _Runs, ours: _Value, theirs: _Value) -> Figure:
    pairs = [(equal(ours(i), i.label), equal(theirs(i), i.label)) for run in runs for i in run]
    return paired_gain(
        sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs), len(pairs)
    )


def _codes(runs: Sequence[JudgedCodes], by: CodesBy) -> CodesFigures:
    def counts(codes: Iterable[str]) -> CodeFigures:
        kept = frozenset(codes)
        pairs = [(run.found[by] & kept, run.labelled & kept) for run in runs]
        cells = [[len(found & true), len(found - true), len(true - found)] for found, true in pairs]
        hits, false, missed = (sum(cell[i] for cell in cells) for i in range(3))
        return CodeFigures(
            share(hits, hits + false),
            share(hits, hits + missed),
            over_runs(cells, f1, hits + false + missed),
        )

    clean = [run for run in runs if not run.labelled]
    return CodesFigures(
        micro=counts(CODES),
        by_code={code: counts([code]) for code in CODES},
        clean=share(sum(bool(run.found[by]) for run in clean), len(clean)),
    )


def _reading(runs: Sequence[JudgedCodes]) -> ReadingFigures:
    quotes = [found for run in runs for found in run.quotes]
    return ReadingFigures(
        unproven=sum(run.unproven for run in runs),
        cannot_tell=sum(run.cannot_tell for run in runs),
        unread=sum(run.unread for run in runs),
        quotes=share(sum(quotes), len(quotes)),
        calibration=calibration([run.sure for run in runs]),
    )


def _stages(runs: Sequence[Sequence[TurnStages]], which: Literal[1, 2]) -> StageFigures:
    size, n = len(STAGES), sum(map(len, runs))
    tables = [
        _table(((STAGES.index(turn[0]), STAGES.index(turn[which])) for turn in run), size)
        for run in runs
    ]
    right = [[sum(turn[0] == turn[which] for turn in run), len(run)] for run in runs]
    return StageFigures(_share(right), over_runs(tables, on_tables(macro_f1, size), n))


def _share(rows: Sequence[Sequence[int]]) -> Figure:
    """The share of (right, all) over runs; one case a run is a simple share."""
    n = sum(total for _, total in rows)
    if all(total <= 1 for _, total in rows):
        return share(sum(right for right, _ in rows), n)
    return over_runs(rows, ratio, n)


def _table(cells: Iterable[tuple[int, int]], size: int) -> list[int]:
    """Counts of a size x size table (label, said), row after row."""
    flat = [0] * (size * size)
    for row, column in cells:
        flat[row * size + column] += 1
    return flat
