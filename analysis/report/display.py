"""Tables as people read them: chosen and named columns, rounded numbers, numbered notes.

The same display goes to the terminal and, escaped, into the report. Two populations of one subject
stand on one row.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ...rounding import fixed
from ..statistics.benchmark_ratings import SHARES
from ..statistics.interval_estimates import NARROWER, finite_or_none, wide
from ..tables.number_format import NONE, column_digits, interval, number, probability

ESTIMATE = ("value", "interval", "same_interval", "runs_interval")
HEADINGS = {
    "value": "estimate",
    "interval": "95 %, new tasks",
    "same_interval": "95 %, same tasks",
    "runs_interval": "95 %, these runs",
    "p": "p (this one alone)",
    "p_holm": "p (Holm)",
    "p_bh": "p (BH)",
    "n": "runs used",
    "n_clusters": "clusters",
    "n_tasks": "tasks",
    "mde80": "MDE80",
    "robustness_value": "RV",
    "loo_min": "LOO min",
    "loo_max": "LOO max",
    "loo_task": "most influential task",
    "cells_scored": "cells scored",
    "not_run": "tasks that only others ran",
    "value_common": "mean, common tasks",
    "value_missing_zero": "missing as 0",
    "value_missing_best": "missing as best",
    "placebo_p": "placebo p",
    "task_score": "Task",
    "agentic": "Agentic",
    "wall_time_s": "time, s",
    "input_tokens": "tokens in",
    "output_tokens": "tokens out",
    "cost_usd": "cost, $",
    "failed": "failure rate",
    "cells_varying": "cells varying",
    "codes_per_run": "codes a run",
    "i2": "I²",
    "halo_note": "caution",
    "p_low_given_code": "P(low | code)",
    "p_code_given_high": "P(code | high)",
    "rank_set": "ranks",
    "mean_baseline": "baseline mean",
    "example_runs": "example runs",
    "s2_repeat": "variance: repeats",
    "s2_agent_task": "variance: agent × task",
    "s2_task": "variance: tasks",
    "prevalence_human": "human mean",
    "prevalence_judge": "judge mean",
    "notes": "notes",
    "read_of": "runs read",
    "cannot_tell": "cannot tell",
    "fired_unread": "fired unread",
    "read_share": "criteria read",
    "uncached_tokens": "tokens in, not cached",
    "cached_tokens": "read from cache",
    "cache_write_tokens": "written to cache",
    "pass_at_k": "pass@k",
    "at_risk": "runs that got there",
    "kendall_tau": "Kendall's tau",
}
HIDDEN = frozenset(
    {
        "estimand",
        "population",
        "se",
        "lo",
        "hi",
        "same_se",
        "same_lo",
        "same_hi",
        "runs_se",
        "runs_lo",
        "runs_hi",
        "df",
        "method",
        "reason",
        "warnings",
        "rank_lo",
        "rank_hi",
        "halo_note",
        "range_lo",
        "range_hi",
        "unread",
        "example_turns",
        "run_ids",
        "title",
    }
)
"""Columns that stand elsewhere: in intervals, in the notes, in the methods."""
_CONSTANT = ("outcome", "scope", "by", "axis", "kind", "taxonomy", "what", "codes")
"""Columns that say nothing while they hold one value."""
ORDER = {
    "leaderboard": (
        "rank",
        "name",
        "agent",
        *ESTIMATE,
        "range",
        "rank_set",
        "value_common",
        "cells",
        "of_cells",
        "agentic",
        "task_score",
        "failed",
        "cost_usd",
        "runs",
        "tasks",
        "read_share",
        "S1",
        "S2",
        "S3",
        "S4",
        "S5",
        "turns",
        "wall_time_s",
        "input_tokens",
        "output_tokens",
        "value_missing_zero",
        "value_missing_best",
        "notes",
    ),
    "code_effects": (
        "code",
        *ESTIMATE,
        "p_holm",
        "status",
        "placebo_p",
        "robustness_value",
        "fired",
        "compared",
        "read_of",
    ),
    "clusters": (
        "kind",
        "example",
        "runs",
        "share",
        "where",
        "example_runs",
        "agents",
        "mentions",
        "patterns",
    ),
    "who_ran": ("agent", "cells", "cells_scored", "of_cells", "runs", "read", "scored", "not_run"),
    "leaderboard_ratings": (
        "agent",
        "value",
        "resolved",
        "valid",
        "pass_rate",
        "breach",
        "timeout",
        "no_output",
        "below_band",
        "notes",
    ),
    "first_breaks": ("agent", "stage", "at_risk", "broke", *ESTIMATE, "unbroken", "notes"),
    "pass_k": ("agent", "k", *ESTIMATE, "pass_at_k", "notes"),
    "compare": (*ESTIMATE, "p", "mde80", "notes"),
    "pairwise": ("agent", "other", *ESTIMATE, "p", "p_holm", "mde80"),
}
WORTH = {
    "leaderboard": (
        "rank",
        "agent",
        "value",
        "interval",
        "range",
        "rank_set",
        "agentic",
        "task_score",
        "failed",
        "cost_usd",
        "same_interval",
        "runs",
        "tasks",
        "read_share",
    ),
}
"""The columns that a narrow terminal keeps longest, most important first; the others go before
them, from the right."""
_WORDS = frozenset(
    {"kind", "model", "measure", "source", "independence", "coefficient", "outcome", "cost"}
)
"""Columns whose values are this program's own words: shown with spaces."""
_P_VALUES = frozenset({"p", "p_holm", "p_bh", "placebo_p"})
RUNS = frozenset({"example_runs", "examples"})
"""Columns that hold ids of runs."""
_JUDGED = frozenset({"S1", "S2", "S3", "agentic", "overall"})
"""Scores that rest on criteria, by the last word of an estimand or as a column beside it."""
_MISSING = ("value_missing_zero", "value_missing_best")
"""Means if runs without a score had the lowest or the highest one."""
_CELLS = ("value_common", "cells", "of_cells")
"""What is told of agents that have scores on other tasks and tiers than others."""
_UNITS = ("stage", "what", "outcome", "measure", "kind", "cost", "coefficient", "part")
"""Columns that tell what the numbers of a row are of, and so on what scale."""
_WHOLE_UNITS = ("wall_time_s", "input_tokens", "output_tokens")
MIN_RANGE = 0.005
_SHARES = frozenset(
    {
        *SHARES,
        "usual_share",
        "share",
        "presumed",
        "read_share",
        "failed",
        "same_order",
        "unbroken",
        "probability",
        "p_low_given_code",
        "p_code_given_high",
        "passed",
    }
)


@dataclass(frozen=True)
class Cell:
    """A cell as people read it."""

    text: str
    key: float | str | None = None
    """What the column is sorted by; None if the value is unknown, which sorts last."""
    notes: tuple[int, ...] = ()
    """Numbers of the notes that belong to the cell."""
    runs: tuple[tuple[str, int | None], ...] = ()
    """The runs that the text names: id, and the turn that is meant, if any."""


@dataclass(frozen=True)
class Display:
    """A table ready to print."""

    columns: tuple[str, ...]
    headings: tuple[str, ...]
    numeric: tuple[bool, ...]
    """Which columns are aligned right."""
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...]
    """Numbered from 1."""
    spare: tuple[int, ...] | None = None
    """The columns that a narrow terminal does without, in this order; None: from the right."""
    left_out: int = 0
    """Rows beyond the limit."""


def display(
    table: pl.DataFrame,
    name: str = "",
    *,
    most: int | None = None,
    hide: Sequence[str] = (),
    only: Sequence[str] | None = None,
    rows_of: str = "agent",
) -> Display:
    """A table of `report_tables.TABLES` as people read it.

    `~` marks scores that rest on presumed criteria. `hide` leaves columns out, `only` chooses and
    orders them, `most` limits the rows; `rows_of` is the heading of the column `agent`.
    """
    data = wide(table)
    rows = data.head(data.height if most is None else most).to_dicts()
    for row in rows:
        _add_derived_columns(row)
    columns = _displayed_columns(data, rows, name, hide, only)
    notes: dict[str, int] = {}
    digits = _column_digits(rows, columns)
    body = tuple(_body_row(row, columns, digits, notes) for row in rows)
    headings = {**HEADINGS, "agent": rows_of}
    if not any(row.get("population") == "new" for row in rows):
        headings["interval"] = "95 %"
    return Display(
        columns=tuple(columns),
        headings=tuple(headings.get(column, column.replace("_", " ")) for column in columns),
        numeric=tuple(_is_numeric(column, rows) for column in columns),
        rows=body,
        notes=tuple(notes),
        spare=_spare_columns(name, columns),
        left_out=data.height - len(rows),
    )


def _spare_columns(name: str, columns: Sequence[str]) -> tuple[int, ...] | None:
    """The numbers of columns, least worth first, without the two most important ones."""
    if name not in WORTH:
        return None
    worth = list(WORTH[name])
    if "interval" not in columns and "same_interval" in columns:
        # The only interval stands in for the other.
        worth.remove("same_interval")
        worth[worth.index("interval")] = "same_interval"
    ranked = [columns.index(column) for column in worth if column in columns]
    others = [i for i in range(len(columns)) if i not in ranked]
    return (*reversed(others), *reversed(ranked[2:]))


def _add_derived_columns(row: dict[str, Any]) -> None:
    """Add intervals and rank sets as columns, and `N of M` runs read where codes fired."""
    if "lo" in row:
        _add_intervals(row)
    if "fired" in row and "read" in row:
        row["read_of"] = None
        if row["read"] is not None:
            read, total = number(row["read"], 0), number(row["runs"], 0)
            row["read_of"] = f"{read} of {total}"
    if "range_lo" in row:
        row["range"] = _pair(row["range_lo"], row["range_hi"])
        # A range that rounds to a point says nothing beside the point.
        if row["range"] is not None and row["range_hi"] - row["range_lo"] <= MIN_RANGE:
            row["range"] = None
    if "rank_lo" in row:
        row["rank_set"] = _rank_set(row["rank_lo"], row["rank_hi"])


def _add_intervals(row: dict[str, Any]) -> None:
    row["interval"] = None
    if row["lo"] is not None or row["hi"] is not None:
        row["interval"] = (row["lo"], row["hi"])
    population = row.get("population")
    if population in NARROWER:
        row[f"{population}_interval"], row["interval"] = row["interval"], None
        return
    for other in NARROWER:
        if f"{other}_lo" in row:
            row[f"{other}_interval"] = _pair(row[f"{other}_lo"], row[f"{other}_hi"])


def _pair(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (low, high)


def _rank_set(low: int | None, high: int | None) -> str | None:
    if low is None:
        return None
    return str(low) if low == high else f"{low}–{high}"


def _displayed_columns(
    data: pl.DataFrame,
    rows: Sequence[Mapping[str, Any]],
    name: str,
    hide: Sequence[str],
    only: Sequence[str] | None,
) -> list[str]:
    """The columns in order, without those that hold nothing or the same everywhere."""
    available = list(data.columns)
    if rows:
        available = _with_read_of(list(rows[0]))
    constant = {
        column for column in _CONSTANT if column in data.columns and data[column].n_unique() < 2
    }
    excluded = HIDDEN | constant | set(hide)
    if _is_nothing_missing(data):
        excluded |= set(_MISSING)
    if _all_ran_the_same(data):
        excluded |= set(_CELLS)
    columns = []
    for column in only or _ordered_columns(name, available):
        is_empty = bool(rows) and all(row.get(column) is None for row in rows)
        if column in available and column not in excluded and (column == "value" or not is_empty):
            columns.append(column)
    return columns


def _all_ran_the_same(data: pl.DataFrame) -> bool:
    """Whether every agent has a score on all tasks and tiers of its board."""
    if "of_cells" not in data.columns:
        return False
    return bool(data.select((pl.col("cells") == pl.col("of_cells")).fill_null(True).all()).item())


def _is_nothing_missing(data: pl.DataFrame) -> bool:
    """Whether the means with missing scores filled in only repeat the means."""
    columns = [column for column in _MISSING if column in data.columns]
    if not columns or "value" not in data.columns:
        return False
    is_equal = ((pl.col(column) - pl.col("value")).abs() < MIN_RANGE for column in columns)
    return bool(data.select(pl.all_horizontal(is_equal).fill_null(True).all()).item())


def _with_read_of(columns: list[str]) -> list[str]:
    """`read` and `runs` as the one column `read_of`, in the place of the first."""
    if "read_of" not in columns:
        return columns
    kept_columns = [column for column in columns if column not in ("runs", "read_of")]
    return ["read_of" if column == "read" else column for column in kept_columns]


def _ordered_columns(name: str, available: Sequence[str]) -> list[str]:
    """The table's own first columns, then what identifies a row, then the estimate."""
    first = list(ORDER.get(name, ()))
    if name in ("leaderboard", "leaderboard_ratings", "clusters"):
        return first
    estimate = (*ESTIMATE, "p", "p_holm", "p_bh", "n", "n_clusters")
    always_last = {*ESTIMATE, "p", "n", "n_clusters"}
    last = [column for column in estimate if column in available and column not in first]
    middle = [
        column
        for column in available
        if column not in always_last and column not in first and column not in last
    ]
    return [*first, *middle, *last]


def _is_numeric(column: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    if column in ("interval", "same_interval", "runs_interval", "range", "rank_set"):
        return True
    values = (row.get(column) for row in rows)
    return any(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


Digits = Mapping[tuple[str, Hashable], int]
"""Decimals of each column and unit."""


def _unit(row: Mapping[str, Any]) -> Hashable:
    """What tells rows apart whose numbers are on different scales."""
    return tuple(row.get(name) for name in _UNITS)


def _column_digits(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Digits:
    """One number of decimals for the numbers of a column that are on one scale, and for an estimate
    with its intervals."""
    numbers: dict[tuple[str, Hashable], list[float]] = {}
    for row in rows:
        for column in columns:
            value = row.get(column)
            values = value if isinstance(value, tuple) else (value,)
            own = numbers.setdefault((_with_estimate(column), _unit(row)), [])
            own += [part for part in values if isinstance(part, float)]
    return {key: column_digits(values) for key, values in numbers.items()}


def _with_estimate(column: str) -> str:
    """The column whose decimals a column has: an interval those of its estimate."""
    return "value" if column in ESTIMATE else column


def _body_row(
    row: Mapping[str, Any], columns: Sequence[str], digits: Digits, notes: dict[str, int]
) -> tuple[Cell, ...]:
    """The cells of a row; its remarks get numbers in `notes`."""
    unit = _unit(row)
    cells = []
    for column in columns:
        if column in RUNS:
            cell = _runs_cell(row.get(column), row.get("example_turns"))
        else:
            cell = _cell(column, row.get(column), digits.get((_with_estimate(column), unit)))
        if row.get("presumed") and _rests_on_criteria(column, row) and cell.key is not None:
            cell = Cell(f"~{cell.text}", cell.key, cell.notes)
        cells.append(cell)
    numbers = tuple(notes.setdefault(text, len(notes) + 1) for text in _remarks(row))
    if numbers and cells:
        position = columns.index("value") if "value" in columns else 0
        cells[position] = Cell(cells[position].text, cells[position].key, numbers)
    return tuple(cells)


def _rests_on_criteria(column: str, row: Mapping[str, Any]) -> bool:
    """Whether a column of this row holds a score that rests on judged criteria."""
    estimand = str(row.get("estimand")).rsplit(" ", 1)[-1]
    return column in _JUDGED or (column == "value" and estimand in _JUDGED)


def _remarks(row: Mapping[str, Any]) -> list[str]:
    """The reason and the warnings of a row, each once."""
    texts = [row.get("reason"), *(row.get("warnings") or [])]
    return list(dict.fromkeys(str(text) for text in texts if text))


def _cell(column: str, value: Any, digits: int | None) -> Cell:
    """A value as text, by its type and its column; `digits` of its column."""
    if value is None:
        return Cell(NONE)
    if isinstance(value, tuple):
        low, high = value
        return Cell(interval(low, high, digits), finite_or_none(high if low is None else low))
    if isinstance(value, bool):
        return Cell("yes" if value else "no", float(value))
    if column in _P_VALUES:
        return Cell(probability(finite_or_none(value)), finite_or_none(value))
    if isinstance(value, int):
        return Cell(number(value, 0), float(value))
    if isinstance(value, float):
        return Cell(_float_text(column, value, digits), finite_or_none(value))
    if isinstance(value, list):
        text = ", ".join(map(str, value))
        return Cell(text or NONE, text)
    text = str(value)
    if column in _WORDS:
        text = text.replace("_", " ")
    return Cell(text, text)


def _float_text(column: str, value: float, digits: int | None) -> str:
    if column in _SHARES:
        return NONE if finite_or_none(value) is None else f"{fixed(100 * value, 1)} %"
    return number(value, 0 if column in _WHOLE_UNITS else digits)


def _runs_cell(run_ids: list[str] | None, turns: list[int | None] | None) -> Cell:
    """The runs that a row names, with the turn that is meant in each."""
    names = [str(run_id) for run_id in run_ids or ()]
    text = ", ".join(names)
    runs = tuple(zip(names, turns or [None] * len(names), strict=True))
    return Cell(text or NONE, text or None, runs=runs)


# Methods


def methods(table: pl.DataFrame) -> list[dict[str, str]]:
    """How the numbers of a table came about.

    One row for each estimand, population and method, with ranges of n, clusters and df; none for a
    table without estimates.
    """
    keys, counts = ("estimand", "population", "method"), ("n", "n_clusters", "df")
    if not set(keys) <= set(table.columns):
        return []
    grouped = table.group_by(keys, maintain_order=True).agg(
        pl.len().alias("numbers"),
        *(pl.col(count).min().alias(f"{count}_lo") for count in counts),
        *(pl.col(count).max().alias(f"{count}_hi") for count in counts),
        pl.col("warnings").explode().drop_nulls().unique(maintain_order=True),
        pl.col("reason").drop_nulls().unique(maintain_order=True).alias("reasons"),
    )
    populations = {
        "new": "new tasks",
        "same": "same tasks",
        "runs": "these very runs",
        None: "these runs",
    }
    rows = []
    for row in grouped.iter_rows(named=True):
        ranges = {count: _range(row[f"{count}_lo"], row[f"{count}_hi"]) for count in counts}
        rows.append(
            {
                "estimand": str(row["estimand"]),
                "population": populations.get(row["population"], str(row["population"])),
                "method": row["method"] or NONE,
                "numbers": str(row["numbers"]),
                **ranges,
                "warnings": "; ".join([*row["reasons"], *row["warnings"]]) or NONE,
            }
        )
    return rows


def _range(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return NONE
    first, last = number(low, 0), number(high, 0)
    return first if first == last else f"{first} to {last}"
