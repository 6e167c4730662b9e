"""ambjudge agreement: judge against human labels, judge against judge, rater against rater."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from .. import console
from ..errors import InputError
from .cohort_input import labels_of, read_cards, say_json
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import OPTIONAL_PATHS, cohort_options, json_option
from .path_types import LocalPath

if TYPE_CHECKING:
    import polars as pl

_HEADINGS = {
    "agreement": "Agreement",
    "kappa": "Kappa",
    "ac1": "AC1",
    "sensitivity": "Sensitivity",
    "specificity": "Specificity",
}
_COEFFICIENTS = tuple(_HEADINGS)


@grouped_command(
    "agreement",
    "ambjudge agreement cards.jsonl --labels labels/",
    "ambjudge agreement a.jsonl b.jsonl  (two judges)",
)
@OPTIONAL_PATHS
@option(
    "--labels",
    metavar="DIR|STORE",
    type=LocalPath(),
    help="Human labels: a file, a folder or a store.",
)
@option(
    "--annotator",
    metavar="NAME",
    help="Use the labels of this person.  [gold, else the first by name]",
)
@option(
    "--against",
    metavar="NAME",
    help="Compare the annotator with this second one instead of with the judge.",
)
@cohort_options
@json_option("Print one JSON object.")
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Measure how far a judge agrees with people, item by item: raw agreement, kappa, AC1, alpha,
    sensitivity, specificity.

    Labels are weighted by how their runs were sampled (`label next`); intervals allow for tasks.
    Without --labels, the judges among the scorecards are compared with one another.
    """
    return run(obj, paths, flags)


class _Table(NamedTuple):
    """Coefficients of two raters by item."""

    title: str
    rows: pl.DataFrame
    raters: tuple[str, str]
    """What the two are called in the heads of the columns."""
    is_complete: bool = True
    """Whether all inputs could be read."""


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 if some inputs could not be read."""
    from ..analysis.tables.flat_tables import json_rows

    if not paths and not flags["against"]:
        raise InputError("no PATH given", "name scorecards, a store or a folder of runs")
    if flags["against"]:
        table = _compare_annotators(flags)
    elif flags["labels"]:
        table = _compare_with_labels(obj, paths, flags)
    else:
        table = _compare_judges(obj, paths, flags)
    if table.rows.is_empty():
        raise InputError(
            "nothing to compare: the two have no run and item in common",
            "give --labels whose run names match the scorecards, or scorecards of two judges",
        )
    if flags["as_json"]:
        data = {"title": table.title, "rows": json_rows(table.rows)}
        say_json({"schema": "ambjudge.agreement/1", **data})
    else:
        console.say(table.title)
        _show(table)
    return 0 if table.is_complete else 1


def _compare_annotators(flags: dict[str, Any]) -> _Table:
    from ..analysis.statistics.raters import rater_agreement

    labels = labels_of(flags)
    first, second = flags["annotator"] or labels.default_annotator, flags["against"]
    _check_annotators(labels.annotators, first, second)
    rows = rater_agreement(labels.by_annotator(first), labels.by_annotator(second))
    title = f"Annotator {first} against {second}"
    return _Table(title, rows, ("first", "second"), is_complete=not labels.n_problems)


def _compare_with_labels(
    obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]
) -> _Table:
    from ..analysis.report.results import read
    from ..analysis.statistics.raters import agreement

    labels = labels_of(flags)
    annotator = flags["annotator"] or labels.default_annotator
    _check_annotators(labels.annotators, annotator)
    cohort = read_cards(obj, paths, flags, read)
    names = ", ".join(map(str, cohort.runs["judge"].drop_nulls().unique().sort()))
    rows = agreement(cohort, labels, annotator=annotator)
    title = f"Judge {names} against labels of {annotator}"
    is_complete = not (cohort.problems or labels.n_problems)
    return _Table(title, rows, ("human", "judge"), is_complete=is_complete)


def _compare_judges(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> _Table:
    from ..analysis.report.results import read
    from ..analysis.statistics.raters import judge_pairs

    cohort = read_cards(obj, paths, flags, read)
    return _Table(
        "Judge against judge",
        judge_pairs(cohort),
        ("first", "second"),
        is_complete=not cohort.problems,
    )


def _check_annotators(existing: Sequence[str], *names: str) -> None:
    for name in names:
        if name not in existing:
            raise InputError(
                f"there are no labels of annotator {name!r}",
                f"choose from {', '.join(existing) or 'none'}",
            )


def _show(table: _Table) -> None:
    """Print one table, or one for each pair of judges."""
    import polars as pl

    rows = table.rows
    if "first" not in rows.columns:
        _show_pair(rows, table.raters)
        return
    for first, second in rows.select("first", "second").unique(maintain_order=True).rows():
        console.say(f"{first} / {second}")
        pair = rows.filter((pl.col("first") == first) & (pl.col("second") == second))
        _show_pair(pair, table.raters)


def _show_pair(rows: pl.DataFrame, raters: tuple[str, str]) -> None:
    """Print one line an item, with the coefficients side by side so that none is read alone."""
    items: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows.iter_rows(named=True):
        items.setdefault(row["item"], {})[row["coefficient"]] = row
    console.table(
        [
            "Item",
            "n",
            *(f"mean {rater}" for rater in raters),
            *_HEADINGS.values(),
        ],
        [_cells(item, coefficients) for item, coefficients in items.items()],
        right=range(1, 4),
    )
    _show_methods(items)
    _show_reasons(items)
    _show_warnings(items)


def _cells(item: str, coefficients: Mapping[str, Mapping[str, Any]]) -> list[str]:
    from ..analysis.tables.number_format import interval, number

    agreement = coefficients["agreement"]
    cells = [
        item,
        str(agreement["n"]),
        number(agreement["prevalence_human"]),
        number(agreement["prevalence_judge"]),
    ]
    for name in _COEFFICIENTS:
        row = _row_of(coefficients, name)
        if row is None or row["value"] is None:
            cells.append("–")
        elif row["lo"] is None:
            cells.append(number(row["value"]))
        else:
            cells.append(f"{number(row['value'])} {interval(row['lo'], row['hi'])}")
    return cells


def _row_of(coefficients: Mapping[str, Mapping[str, Any]], name: str) -> Mapping[str, Any] | None:
    """The coefficient in a column; criteria with more than two levels have a weighted kappa."""
    if name == "kappa" and "weighted_kappa" in coefficients:
        return coefficients["weighted_kappa"]
    return coefficients.get(name)


def _show_methods(items: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Print how the intervals of each column are made."""
    columns: dict[str, dict[str, None]] = {}
    for coefficients in items.values():
        for name in _COEFFICIENTS:
            row = _row_of(coefficients, name)
            if row is not None and row["lo"] is not None:
                columns.setdefault(row["method"], {})[_HEADINGS[name]] = None
    if columns:
        methods = "; ".join(f"{', '.join(names)}: {method}" for method, names in columns.items())
        console.say(console.wrap(f"95 % intervals. {methods}.", "  "))


def _show_reasons(items: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Print why a coefficient has no interval, the columns of each reason with their items."""
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
        console.say(console.wrap(f"No interval for {subjects}: {reason}.", "  "))


def _show_warnings(items: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Print the warnings that all coefficients share, then the items with more of them."""
    warnings = [
        set(row["warnings"]) for coefficients in items.values() for row in coefficients.values()
    ]
    shared = set.intersection(*warnings) if warnings else set()
    for text in sorted(shared):
        console.say(console.wrap(text, "  "))
    rare = [
        item
        for item, coefficients in items.items()
        if any(set(row["warnings"]) - shared for row in coefficients.values())
    ]
    if rare:
        text = (
            f"{', '.join(rare)}: the rarer value occurs fewer than five times; read AC1,"
            " sensitivity and specificity, not kappa."
        )
        console.say(console.wrap(text, "  "))
