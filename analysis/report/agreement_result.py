"""Agreement of a judge with people, of judges with one another, and of two annotators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ...console import counted
from ...errors import InputError
from ..statistics.raters import agreement, judge_pairs, rater_agreement, runs_by_judge
from ..tables.cohorts import Cohort
from ..tables.flat_tables import json_rows
from ..tables.label_tables import Labels
from ..tables.number_format import NONE, interval, number
from .cohort_result import CohortResult, TitledTable
from .display import Cell, Display

_HEADINGS = {
    "agreement": "Agreement",
    "kappa": "Kappa",
    "ac1": "AC1",
    "sensitivity": "Sensitivity",
    "specificity": "Specificity",
}
_COEFFICIENTS = tuple(_HEADINGS)

_DIGITS = 3
"""Decimals of means and coefficients."""
_MAX_NAMED = 5
"""Labelled runs without a scorecard that a sentence names."""

Items = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""The rows of two raters by item and coefficient."""


@dataclass(frozen=True, repr=False)
class Agreement(CohortResult):
    """Coefficients of two raters, or of each pair of judges, item by item."""

    heading: str
    rows: pl.DataFrame
    """A row for each item and coefficient; of judges for each pair too."""
    raters: tuple[str, str]
    """What the two are called in the heads of the columns."""
    left_out: Mapping[str, tuple[str, ...]]
    """Runs without a counterpart, as sentences; by pair of judges, else under ""."""
    cohort: Cohort | None = None
    """None for two annotators."""

    @property
    def title(self) -> str:
        return self.heading

    @property
    def table(self) -> pl.DataFrame:
        return self.rows

    @property
    def cohorts(self) -> tuple[Cohort, ...]:
        return () if self.cohort is None else (self.cohort,)

    @property
    def sentences(self) -> tuple[str, ...]:
        lines = []
        for table in self.displays():
            opening = f"{table.title}: " if table.title else ""
            lines += [f"{opening}{text}" for text in table.remarks]
        return tuple(lines)

    def displays(self) -> Iterator[TitledTable]:
        if "first" not in self.rows.columns:
            yield self._pair_table("", self.rows)
            return
        pairs = self.rows.select("first", "second").unique(maintain_order=True)
        for first, second in pairs.iter_rows():
            pair = self.rows.filter((pl.col("first") == first) & (pl.col("second") == second))
            yield self._pair_table(_pair_name(first, second), pair)

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": "ambjudge.agreement/1",
            "title": self.heading,
            "left_out": {pair: list(sentences) for pair, sentences in self.left_out.items()},
            "rows": json_rows(self.rows),
        }

    def _repr_html_(self) -> str:
        # The sentences are the remarks below the tables.
        from .cohort_result import result_html

        return result_html(self.title, (), self.displays(), self.selection)

    def _pair_table(self, title: str, rows: pl.DataFrame) -> TitledTable:
        """A line for each item, its coefficients side by side so that none is read alone."""
        items: dict[str, dict[str, dict[str, Any]]] = {}
        for row in rows.iter_rows(named=True):
            items.setdefault(row["item"], {})[row["coefficient"]] = row
        columns = ("item", "n", *self.raters, *_COEFFICIENTS)
        item_display = Display(
            columns=columns,
            headings=("Item", "n", *(f"mean {name}" for name in self.raters), *_HEADINGS.values()),
            numeric=(False, True, True, True, *(False for _ in _COEFFICIENTS)),
            rows=tuple(_cells(item, coefficients) for item, coefficients in items.items()),
            notes=(),
        )
        remarks = (
            *self.left_out.get(title, ()),
            *_methods(items),
            *_reasons(items),
            *_warnings(items),
        )
        return TitledTable(title, item_display, remarks)


def agreement_with_labels(
    cohort: Cohort, labels: Labels, annotator: str | None = None
) -> Agreement:
    """The judge in force against the labels of an annotator (`Labels.default_annotator`).

    InputError for an unknown annotator, and if no run and item has both.
    """
    labels = labels.of_runs(cohort.aliases)
    annotator = annotator or labels.default_annotator
    _check_annotators(labels.annotators, annotator)
    names = ", ".join(map(str, cohort.runs["judge"].drop_nulls().unique().sort()))
    rows = agreement(cohort, labels, annotator=annotator)
    heading = f"Judge {names} against labels of {annotator}"
    scored, labelled = set(cohort.runs["run_id"]), _labelled_runs(labels, annotator)
    sentences = list(_without_labels(scored, labelled, annotator))
    if any(n < len(scored & labelled) for n in rows["n"]):
        sentences.append(
            "An item counts in runs in which the judge scored it itself and the label has it; what"
            " is credited, presumed, unscored, decided by facts or not read is left out."
        )
    return _checked(Agreement(heading, rows, ("human", "judge"), {"": tuple(sentences)}, cohort))


def agreement_of_judges(cohort: Cohort) -> Agreement:
    """Each pair of judges on the runs that both scored; InputError without such runs."""
    rows = judge_pairs(cohort)
    return _checked(
        Agreement("Judge against judge", rows, ("first", "second"), _unpaired(cohort, rows), cohort)
    )


def agreement_of_annotators(labels: Labels, first: str | None, second: str) -> Agreement:
    """Two annotators on the runs that both labelled; InputError if one is unknown or none are."""
    first = first or labels.default_annotator
    _check_annotators(labels.annotators, first, second)
    rows = rater_agreement(labels.by_annotator(first), labels.by_annotator(second))
    sentence = _one_sided(
        (f"annotator {first}", _labelled_runs(labels, first)),
        (f"annotator {second}", _labelled_runs(labels, second)),
    )
    heading = f"Annotator {first} against {second}"
    return _checked(Agreement(heading, rows, ("first", "second"), {"": sentence}))


def _pair_name(first: str, second: str) -> str:
    return f"{first} / {second}"


def _labelled_runs(labels: Labels, annotator: str) -> set[str]:
    own = labels.by_annotator(annotator)
    return {*own.criteria["run_id"], *own.codes["run_id"]}


def _without_labels(scored: set[str], labelled: set[str], annotator: str) -> Iterator[str]:
    """Scored runs without a label, and labelled runs without a scorecard."""
    if not scored <= labelled:
        count = len(scored & labelled)
        yield (
            f"{count} of {counted(len(scored), 'scored run')} have labels of {annotator}; the"
            " others are left out."
        )
    unscored = sorted(labelled - scored)
    if unscored:
        names = ", ".join(unscored[:_MAX_NAMED])
        more = len(unscored) - _MAX_NAMED
        names += f" and {more} more" if more > 0 else ""
        noun = counted(len(unscored), "labelled run")
        verb = "is" if len(unscored) == 1 else "are"
        yield f"{noun} without a scorecard here {verb} left out: {names}."


def _unpaired(cohort: Cohort, rows: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    """For each pair of judges, how many runs only one of them scored."""
    by_judge = runs_by_judge(cohort)
    pairs = rows.select("first", "second").unique(maintain_order=True)
    return {
        _pair_name(first, second): _one_sided((first, by_judge[first]), (second, by_judge[second]))
        for first, second in pairs.iter_rows()
    }


def _one_sided(first: tuple[str, set[str]], second: tuple[str, set[str]]) -> tuple[str, ...]:
    """How many runs only one of two raters has; nothing if both have the same runs."""
    (name, runs), (other_name, other_runs) = first, second
    if runs == other_runs:
        return ()
    return (
        f"{counted(len(runs & other_runs), 'run')} of both; left out are"
        f" {counted(len(runs - other_runs), 'run')} of {name} alone and"
        f" {counted(len(other_runs - runs), 'run')} of {other_name} alone.",
    )


def _checked(result: Agreement) -> Agreement:
    if result.rows.is_empty():
        raise InputError(
            "nothing to compare: the two have no run and item in common",
            "give --labels whose run names match the scorecards, or scorecards of two judges",
        )
    return result


def _check_annotators(existing: Sequence[str], *names: str) -> None:
    for name in names:
        if name not in existing:
            raise InputError(
                f"there are no labels of annotator {name!r}",
                f"choose from {', '.join(existing) or 'none'}",
            )


def _cells(item: str, coefficients: Mapping[str, Mapping[str, Any]]) -> tuple[Cell, ...]:
    agreement_row = coefficients["agreement"]
    texts = [
        item,
        str(agreement_row["n"]),
        number(agreement_row["prevalence_human"], _DIGITS),
        number(agreement_row["prevalence_judge"], _DIGITS),
    ]
    for name in _COEFFICIENTS:
        row = _row_of(coefficients, name)
        if row is None or row["value"] is None:
            texts.append(NONE)
        elif row["lo"] is None:
            texts.append(number(row["value"], _DIGITS))
        else:
            span = interval(row["lo"], row["hi"], _DIGITS)
            texts.append(f"{number(row['value'], _DIGITS)} {span}")
    return tuple(map(Cell, texts))


def _row_of(coefficients: Mapping[str, Mapping[str, Any]], name: str) -> Mapping[str, Any] | None:
    """The coefficient in a column; criteria with more than two levels have a weighted kappa."""
    if name == "kappa" and "weighted_kappa" in coefficients:
        return coefficients["weighted_kappa"]
    return coefficients.get(name)


def _methods(items: Items) -> Iterator[str]:
    """How the intervals of each column are made."""
    columns: dict[str, dict[str, None]] = {}
    for coefficients in items.values():
        for name in _COEFFICIENTS:
            row = _row_of(coefficients, name)
            if row is not None and row["lo"] is not None:
                columns.setdefault(row["method"], {})[_HEADINGS[name]] = None
    if columns:
        methods = "; ".join(f"{', '.join(names)}: {method}" for method, names in columns.items())
        yield f"95 % intervals. {methods}."


def _reasons(items: Items) -> Iterator[str]:
    """Why a coefficient has no interval: the columns of each reason with their items."""
    places: dict[str, dict[str, dict[str, None]]] = {}
    for item, coefficients in items.items():
        for name in _COEFFICIENTS:
            row = _row_of(coefficients, name)
            if row is not None and row["value"] is not None and row["lo"] is None:
                names = places.setdefault(row["reason"] or "unknown", {})
                names.setdefault(item, {})[_HEADINGS[name]] = None
    all_columns = list(_HEADINGS.values())
    for reason, by_item in places.items():
        used = {name for names in by_item.values() for name in names}
        columns = [name for name in all_columns if name in used]
        subjects = ", ".join(by_item) if len(by_item) < len(items) else "every item"
        subjects = f"{', '.join(columns)} of {subjects}" if columns != all_columns else subjects
        yield f"No interval for {subjects}: {reason}."


def _warnings(items: Items) -> Iterator[str]:
    """The warnings that all coefficients share, then the items with more of them."""
    warnings = [
        set(row["warnings"]) for coefficients in items.values() for row in coefficients.values()
    ]
    shared = set.intersection(*warnings) if warnings else set()
    yield from sorted(shared)
    rare = [
        item
        for item, coefficients in items.items()
        if any(set(row["warnings"]) - shared for row in coefficients.values())
    ]
    if rare:
        yield (
            f"{', '.join(rare)}: the rarer value occurs fewer than five times; read AC1,"
            " sensitivity and specificity, not kappa."
        )
