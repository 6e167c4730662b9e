"""Tables as people read them: columns chosen and named, numbers rounded to what they can bear,
notes numbered.

The same display goes to the terminal and, escaped, into the report. Two populations of one subject
stand on one row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ..statistics.benchmark_ratings import SHARES
from ..statistics.interval_estimates import finite_or_none, wide

NONE = "–"
ESTIMATE = ("value", "interval", "same_interval")
HEADINGS = {
    "value": "estimate",
    "interval": "95 %, new tasks",
    "same_interval": "95 %, same tasks",
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
    "p_first": "share first",
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
        "read_share",
        "rank_set",
        "p_first",
        "runs",
        "tasks",
        "agentic",
        "task_score",
        "S1",
        "S2",
        "S3",
        "S4",
        "S5",
        "turns",
        "wall_time_s",
        "input_tokens",
        "output_tokens",
        "cost_usd",
        "failed",
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
_WORDS = frozenset(
    {"kind", "model", "measure", "source", "independence", "coefficient", "outcome", "cost"}
)
"""Columns whose values are this program's own words: shown with spaces."""
_P = frozenset({"p", "p_holm", "p_bh", "placebo_p"})
RUNS = frozenset({"example_runs", "examples"})
"""Columns that hold ids of runs."""
_JUDGED = frozenset({"S1", "S2", "S3", "agentic", "overall"})
"""Scores that rest on criteria, by the last word of an estimand or as a column beside it."""
_SHARES = frozenset(
    {
        *SHARES,
        "usual_share",
        "share",
        "presumed",
        "read_share",
        "p_first",
        "failed",
        "same_order",
        "same_first",
        "unbroken",
        "probability",
        "p_low_given_code",
        "p_code_given_high",
        "passed",
    }
)


@dataclass(frozen=True)
class Cell:
    """Text, a key to sort by (None: unknown, last), and the numbers of the notes that belong to it."""

    text: str
    key: float | str | None = None
    notes: tuple[int, ...] = ()
    runs: tuple[tuple[str, int | None], ...] = ()
    """The runs that the text names: id, and the turn that is meant."""


@dataclass(frozen=True)
class Display:
    """A table ready to print. `numeric` marks columns to align right; `notes` are numbered from 1."""

    columns: tuple[str, ...]
    headings: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...]
    left_out: int = 0


def number(value: float | None, *, whole: bool = False) -> str:
    """Three significant digits or the whole units, with a real minus; a dash for None."""
    value = finite_or_none(value)
    if value is None:
        return NONE
    size = abs(value)
    if whole:
        text = f"{size:,.0f}"
    else:
        digits = 0 if size >= 1000 else 1 if size >= 10 else 2 if size >= 1 else 3
        text = f"{size:,.{digits}f}"
    return ("−" if value < 0 and text.strip("0.,") else "") + text


def probability(p: float | None) -> str:
    """A p value; below .001 only that."""
    return NONE if p is None else "<.001" if p < 0.001 else f"{p:.3f}".lstrip("0") if p < 1 else "1"


def interval(lo: float | None, hi: float | None) -> str:
    """[lo, hi] with as many digits on both ends as the wider needs; a one-sided one with ∞ in
    words."""
    if lo is None and hi is None:
        return NONE
    if lo is None or hi is None:
        return f"at least {number(lo)}" if hi is None else f"at most {number(hi)}"
    size = max(abs(lo), abs(hi))
    digits = 0 if size >= 1000 else 1 if size >= 10 else 2 if size >= 1 else 3
    ends = [
        ("−" if v < 0 and f"{abs(v):.{digits}f}".strip("0.") else "") + f"{abs(v):,.{digits}f}"
        for v in (lo, hi)
    ]
    return f"[{ends[0]}, {ends[1]}]"


def display(
    table: pl.DataFrame,
    name: str = "",
    *,
    most: int | None = None,
    hide: Sequence[str] = (),
    only: Sequence[str] | None = None,
) -> Display:
    """A table of TABLES for people; ~ marks scores that rest on presumed criteria. `hide` leaves
    columns out, `only` chooses and orders them, `most` limits the rows."""
    data = wide(table)
    shown = data.height if most is None else min(most, data.height)
    left_out = data.height - shown
    rows = data.head(shown).to_dicts()
    for row in rows:
        _derive(row)
    have = _placed(list(rows[0])) if rows else [c for c in data.columns if c not in HIDDEN]
    columns = [
        c for c in only or _columns(name, have) if c in have and c not in HIDDEN and c not in hide
    ]
    constant = {c for c in _CONSTANT if c in data.columns and data[c].n_unique() < 2}
    columns = [c for c in columns if c not in constant]
    columns = [
        c
        for c in columns
        if c == "value" or not rows or any(row.get(c) is not None for row in rows)
    ]
    notes: dict[str, int] = {}
    body = []
    for row in rows:
        numbers = tuple(notes.setdefault(text, len(notes) + 1) for text in _remarks(row))
        cells = [
            _cell(c, row.get(c)) if c not in RUNS else _runs(row.get(c), row.get("example_turns"))
            for c in columns
        ]
        if row.get("presumed"):
            cells = [
                _about(cell) if _rests(c, row) else cell
                for c, cell in zip(columns, cells, strict=True)
            ]
        if numbers and cells:
            at = columns.index("value") if "value" in columns else 0
            cells[at] = Cell(cells[at].text, cells[at].key, numbers)
        body.append(tuple(cells))
    numeric = tuple(
        any(
            isinstance(row.get(c), int | float) and not isinstance(row.get(c), bool) for row in rows
        )
        or c in ("interval", "same_interval", "range", "rank_set")
        for c in columns
    )
    named = (
        HEADINGS
        if any(row.get("population") == "new" for row in rows)
        else {**HEADINGS, "interval": "95 %"}
    )
    headings = tuple(named.get(c, c.replace("_", " ")) for c in columns)
    return Display(tuple(columns), headings, numeric, tuple(body), tuple(notes), left_out)


def _rests(column: str, row: Mapping[str, Any]) -> bool:
    """Whether a cell holds a score that rests on criteria, some of which are presumed in this row."""
    judged = str(row.get("estimand")).rsplit(" ", 1)[-1] in _JUDGED
    return column in _JUDGED or (column == "value" and judged)


def _about(cell: Cell) -> Cell:
    return cell if cell.key is None else Cell(f"~{cell.text}", cell.key, cell.notes)


def _placed(have: list[str]) -> list[str]:
    """`read` and `runs` are shown as one column, in the place of the first."""
    if "read_of" not in have:
        return have
    return ["read_of" if c == "read" else c for c in have if c not in ("runs", "read_of")]


def _derive(row: dict[str, Any]) -> None:
    """Intervals and rank sets as columns of their own, which sort by their lower end; "N of M" runs
    read where codes fired."""
    if "lo" in row:
        row["interval"] = (
            None if row["lo"] is None and row["hi"] is None else (row["lo"], row["hi"])
        )
        if row.get("population") == "same":
            row["same_interval"], row["interval"] = row["interval"], None
        elif "same_lo" in row:
            row["same_interval"] = (
                None if row["same_lo"] is None else (row["same_lo"], row["same_hi"])
            )
    if "fired" in row and "read" in row:
        row["read_of"] = (
            None
            if row["read"] is None
            else f"{number(row['read'], whole=True)} of {number(row['runs'], whole=True)}"
        )
    if "range_lo" in row:
        lo, hi = row["range_lo"], row["range_hi"]
        row["range"] = (lo, hi) if lo is not None and hi is not None and hi - lo > 0.005 else None
    if "rank_lo" in row:
        lo, hi = row["rank_lo"], row["rank_hi"]
        row["rank_set"] = None if lo is None else str(lo) if lo == hi else f"{lo}–{hi}"


def _columns(name: str, have: Sequence[str]) -> list[str]:
    first = list(ORDER.get(name, ()))
    if name in ("leaderboard", "leaderboard_ratings", "clusters"):
        return first
    keys = [c for c in have if c not in ESTIMATE and c not in ("p", "n", "n_clusters")]
    tail = [
        c
        for c in (*ESTIMATE, "p", "p_holm", "p_bh", "n", "n_clusters")
        if c in have and c not in first
    ]
    keys = [c for c in keys if c not in first and c not in tail]
    return [*first, *keys, *tail] if first else [*keys, *tail]


def _remarks(row: Mapping[str, Any]) -> list[str]:
    out = [row["reason"]] if row.get("reason") else []
    out += [text for text in row.get("warnings") or [] if text]
    return list(dict.fromkeys(str(text) for text in out))


def _cell(column: str, value: Any) -> Cell:
    if value is None:
        return Cell(NONE)
    if isinstance(value, tuple):
        return Cell(
            interval(*value), finite_or_none(value[0] if value[0] is not None else value[1])
        )
    if isinstance(value, bool):
        return Cell("yes" if value else "no", float(value))
    if column in _P:
        return Cell(probability(finite_or_none(value)), finite_or_none(value))
    if column in _SHARES and isinstance(value, float):
        return Cell(
            f"{100 * value:.1f} %" if finite_or_none(value) is not None else NONE,
            finite_or_none(value),
        )
    if isinstance(value, int):
        return Cell(number(value, whole=True), float(value))
    if isinstance(value, float):
        whole = column in ("wall_time_s", "input_tokens", "output_tokens") or (
            value.is_integer() and abs(value) >= 10
        )
        return Cell(number(value, whole=whole), finite_or_none(value))
    if isinstance(value, list):
        text = ", ".join(str(item) for item in value)
        return Cell(text or NONE, text)
    text = str(value).replace("_", " ") if column in _WORDS else str(value)
    return Cell(text, text)


def _runs(ids: list[str] | None, turns: list[int | None] | None) -> Cell:
    """Runs that a row names."""
    some = tuple(
        (str(id), turn)
        for id, turn in zip(ids or (), turns or [None] * len(ids or ()), strict=True)
    )
    text = ", ".join(id for id, _ in some)
    return Cell(text or NONE, text or None, runs=some)


def methods(table: pl.DataFrame) -> list[dict[str, str]]:
    """How the numbers of a table came about: one row an estimand, population and method, with
    ranges of n, clusters, df."""
    if not {"estimand", "population", "method"} <= set(table.columns):
        return []
    grouped = table.group_by("estimand", "population", "method", maintain_order=True).agg(
        pl.len().alias("numbers"),
        *(pl.col(c).min().alias(f"{c}_lo") for c in ("n", "n_clusters", "df")),
        *(pl.col(c).max().alias(f"{c}_hi") for c in ("n", "n_clusters", "df")),
        pl.col("warnings").explode().drop_nulls().unique(maintain_order=True),
        pl.col("reason").drop_nulls().unique(maintain_order=True).alias("reasons"),
    )
    words = {"new": "new tasks", "same": "same tasks", None: "these runs"}
    return [
        {
            "estimand": str(row["estimand"]),
            "population": words.get(row["population"], str(row["population"])),
            "method": row["method"] or NONE,
            "numbers": str(row["numbers"]),
            **{c: _range(row[f"{c}_lo"], row[f"{c}_hi"]) for c in ("n", "n_clusters", "df")},
            "warnings": "; ".join([*row["reasons"], *row["warnings"]]) or NONE,
        }
        for row in grouped.iter_rows(named=True)
    ]


def _range(lo: float | None, hi: float | None) -> str:
    if lo is None or hi is None:
        return NONE
    a, b = number(lo, whole=True), number(hi, whole=True)
    return a if a == b else f"{a} to {b}"
