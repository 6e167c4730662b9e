"""The columns of the table of runs. Orders and saved views name them by key, never by position."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from ..console import cells, fit
from ..judge.card.view_parts import UNKNOWN, grade, score_text
from ..rounding import fixed
from ..sanitize import sanitize_line
from ..trajectories.stages import STAGES
from .outcome_columns import OutcomeColumn, outcome_columns, outcome_order
from .run_fields import NUMBER_FIELDS, TEXT_FIELDS
from .run_rows import RunRow

_BARS = "▁▂▃▄▅▆▇█"
_ENDINGS = {
    "submitted": "sub",
    "stopped": "stop",
    "breach": "BRCH",
    "cut": "cut",
    "running": "run…",
}
"""Short forms of `Status.ended`."""
_TIERS = {"standard": "std"}
"""Short forms of tiers; the others are short enough."""
OUTCOME, GROUP = "outcome.", "group."
"""Before the names of outcomes and groups in keys, as in the columns of run frames."""
MAX_GROWN_WIDTH = 60
"""Most cells of a column that grows."""


@dataclass(frozen=True)
class RunColumn:
    """A column: what it shows of a run, what it sorts by, and how it is laid out."""

    key: str
    """The column's name in saved orders and views; it must never change."""
    title: str
    width: int
    """Cells of the terminal, without the gap between columns."""
    text: Callable[[RunRow], str]
    sort_key: Callable[[RunRow], Any]
    """The value to sort by; None if it is unknown, which sorts last."""
    style: Callable[[RunRow], str] | None = None
    """Name of the style of a cell, as the theme defines it."""
    drop_rank: int = 0
    """If the table is too narrow, columns of the highest rank are left out first; 0: never."""
    grows: bool = False
    """Whether the column takes the width that the others leave."""
    align_right: bool = False
    long_title: str = ""
    """A title for places with more room; "" if `title` is not shortened."""

    @property
    def full_title(self) -> str:
        """The title without abbreviations."""
        return self.long_title or self.title


def _text_column(
    key: str,
    title: str,
    width: int,
    text: Callable[[RunRow], str] | None = None,
    **layout: Any,
) -> RunColumn:
    """A column of one text field, sorted without regard to case; `text` gives a shorter form."""
    field = TEXT_FIELDS[key]

    def value(row: RunRow) -> str:
        return field.of(row) or ""

    def sort_key(row: RunRow) -> str | None:
        return value(row).casefold() or None

    return RunColumn(key, title, width, text or value, sort_key, **layout)


def _number_column(
    key: str, title: str, width: int, text: Callable[[RunRow], str], **layout: Any
) -> RunColumn:
    """A column of one number field."""
    return RunColumn(key, title, width, text, NUMBER_FIELDS[key].of, **layout)


def _score_column(
    key: str, title: str, width: int, text: Callable[[RunRow], str], full: float, **layout: Any
) -> RunColumn:
    """A column of one score, coloured by its grade; `full` is the highest possible score."""
    field = NUMBER_FIELDS[key]

    def style(row: RunRow) -> str:
        value = field.of(row)
        return grade(None if value is None else value / full)

    return RunColumn(key, title, width, text, field.of, style, **layout)


def _stage_column(index: int, stage: str) -> RunColumn:
    """The column of a stage's score; `index` is its place in STAGES."""
    return _score_column(stage.lower(), stage, 4, lambda row: meter(row.stages[index]), full=1)


def meter(score: float | None) -> str:
    """A score in [0, 1] in four cells: `▅.63`, `█1.0` for 1, a dash for an unknown score."""
    if score is None:
        return f" {UNKNOWN}  "
    bar = _BARS[min(7, int(score * 8))]
    if score >= 0.995:
        return f"{bar}1.0"
    decimals = fixed(score, 2).removeprefix("0")
    return f"{bar}{decimals}"


def overall_text(row: RunRow) -> str:
    """Overall as a point, or as a range if too few criteria were judged for a point.

    A ~ before the point means that it rests on presumed criteria.
    """
    if row.overall is None:
        return range_text(row) or UNKNOWN
    return score_text(row.overall, presumed=row.span is not None, digits=1)


def range_text(row: RunRow) -> str:
    """The range of Overall, such as `41–63`; "" if all criteria were judged."""
    if not row.span:
        return ""
    low, high = row.span
    return f"{fixed(low, 0)}–{fixed(high, 0)}"


def codes_text(row: RunRow) -> str:
    """The codes that fired, followed by a question mark if it is unknown whether others apply."""
    codes = list(row.codes)
    if row.unknown:
        codes.append("?")
    return " ".join(codes)


def _codes_sort_key(row: RunRow) -> tuple[str, ...] | None:
    """The codes that fired; None if none fired but some were not read."""
    is_unknown = not row.read or bool(row.unknown)
    if not row.codes and is_unknown:
        return None
    return row.codes


def _end_style(row: RunRow) -> str:
    return "bad" if row.disqualified or row.ended in ("cut", "breach") else ""


def flags_text(row: RunRow) -> str:
    """One sign for each thing about a run that deserves a look.

    ! contradicted, ? unscored, ≠ quotes not found, ~ presumed, ✗ unreadable, … not scored yet.
    """
    if row.state == "error":
        return "✗"
    if row.state == "waiting":
        return "…"
    signs = (
        ("!", row.contradictions),
        ("?", row.unscored),
        ("≠", row.unverified),
        ("~", row.presumed),
    )
    return "".join(sign for sign, count in signs if count)


def model_text(model: str | None, agent: str | None) -> str:
    """The agent's model; "" if the agent is named after it."""
    return "" if model is None or model == agent else model


def cost_text(cost: float | None) -> str:
    """What a run cost, in US dollars; "" if unknown."""
    return "" if cost is None else f"${fixed(cost, 2)}"


def _count_text(count: int | None) -> str:
    return "" if count is None else str(count)


COLUMNS: tuple[RunColumn, ...] = (
    _text_column("run", "Run", 14, grows=True),
    _text_column("agent", "Agent", 12, drop_rank=4),
    _text_column(
        "model", "Model", 14, drop_rank=8, text=lambda row: model_text(row.model, row.agent)
    ),
    _text_column("task", "Task", 18, drop_rank=6),
    _text_column(
        "tier", "Tier", 5, drop_rank=5, text=lambda row: _TIERS.get(row.tier or "", row.tier or "")
    ),
    *(_stage_column(index, stage) for index, stage in enumerate(STAGES)),
    _score_column(
        "agentic",
        "Agnt",
        4,
        lambda row: score_text(row.agentic),
        full=1,
        align_right=True,
        long_title="Agentic",
    ),
    _score_column(
        "taskscore",
        "Task",
        4,
        lambda row: score_text(row.task_score),
        full=1,
        drop_rank=3,
        align_right=True,
        long_title="Task score",
    ),
    _score_column(
        "overall", "Ovrl", 6, overall_text, full=100, align_right=True, long_title="Overall"
    ),
    RunColumn(
        "range",
        "Range",
        6,
        range_text,
        lambda row: row.span,
        lambda row: "unknown",
        drop_rank=4,
        long_title="Range of Overall",
    ),
    RunColumn("codes", "Codes", 9, codes_text, _codes_sort_key, lambda row: "code"),
    _text_column(
        "ended",
        "End",
        4,
        text=lambda row: _ENDINGS.get(row.ended or "", row.ended or ""),
        style=_end_style,
        drop_rank=2,
    ),
    _number_column(
        "turns", "Turns", 5, lambda row: _count_text(row.turns), drop_rank=7, align_right=True
    ),
    _number_column(
        "parts",
        "Parts",
        5,
        lambda row: _count_text(row.parts),
        drop_rank=11,
        align_right=True,
        long_title="Parts of other agents",
    ),
    _number_column(
        "failedsteps",
        "Steps✗",
        6,
        lambda row: _count_text(row.failed_steps),
        drop_rank=9,
        align_right=True,
        long_title="Failed steps",
    ),
    _number_column(
        "cost", "Cost", 7, lambda row: cost_text(row.cost), drop_rank=10, align_right=True
    ),
    RunColumn(
        "flags",
        "Flags",
        5,
        flags_text,
        lambda row: (row.contradictions, row.unscored, row.unverified),
        lambda row: "warn",
        drop_rank=1,
    ),
)


"""The columns that any run may have a value in; outcomes and groups of criteria come with runs."""
_ALWAYS = ("run", "codes")
_FIRST_STAGE, _LAST_STAGE = STAGES[0].lower(), STAGES[-1].lower()
_KEPT_GROUPS = 6
"""Groups of criteria that narrow screens keep."""


def columns_of(rows: Sequence[RunRow]) -> tuple[RunColumn, ...]:
    """The columns in which some run has a value; before any run is scored, all of `COLUMNS`.

    Outcomes stand before the stages, groups of criteria of rubrics of one's own behind them.
    """
    scored = [row for row in rows if row.state == "scored"]
    if not scored:
        return tuple(
            column for column in COLUMNS if column.key != "parts" or has_value(column, rows)
        )
    outcomes = map(_outcome_column, outcome_columns(row.outcomes for row in scored), count())
    names = dict.fromkeys(name for row in scored for name in row.groups)
    groups = map(_group_column, names, count())
    columns: list[RunColumn] = []
    for column in COLUMNS:
        columns += outcomes if column.key == _FIRST_STAGE else ()
        columns.append(column)
        columns += groups if column.key == _LAST_STAGE else ()
    return tuple(column for column in columns if has_value(column, scored))


def has_value(column: RunColumn, rows: Sequence[RunRow]) -> bool:
    """Whether the column says anything of any of these runs."""
    if column.key in _ALWAYS:
        return True
    return any(
        column.sort_key(row) is not None and column.text(row) not in ("", UNKNOWN) for row in rows
    )


def _outcome_column(outcome: OutcomeColumn, place: int) -> RunColumn:
    """The column of an outcome, which is the `place`-th in worth."""

    def value(row: RunRow) -> bool | float | str | None:
        return row.outcomes.get(outcome.name)

    def style(row: RunRow) -> str:
        flag = value(row)
        if isinstance(flag, bool):
            return "good" if flag else "bad"
        return "unknown" if flag is None else ""

    return RunColumn(
        f"{OUTCOME}{outcome.name}",
        outcome.title,
        max(cells(outcome.title), min(outcome.width, 12)),
        lambda row: outcome.text(value(row)),
        lambda row: outcome_order(value(row)),
        style,
        drop_rank=3 * place,
        align_right=not outcome.is_text,
        long_title=outcome.name,
    )


def _group_column(name: str, place: int) -> RunColumn:
    """The column of a group of criteria."""

    def score(row: RunRow) -> float | None:
        return row.groups.get(name)

    title = fit(sanitize_line(name), 10)
    return RunColumn(
        f"{GROUP}{name}",
        title,
        max(4, cells(title)),
        lambda row: meter(score(row)),
        score,
        lambda row: grade(score(row)),
        drop_rank=0 if place < _KEPT_GROUPS else 10 + place,
        long_title=name,
    )


def column_named(key: str, columns: Sequence[RunColumn] | None = None) -> RunColumn | None:
    """The column with this key among these, or all; None if there is none."""
    return next((column for column in columns or COLUMNS if column.key == key), None)


def fit_columns(
    width: int, columns: Sequence[RunColumn] | None = None
) -> list[tuple[RunColumn, int]]:
    """Those of the columns that fit into a table of `width` cells, each with its own width."""
    columns = list(columns or COLUMNS)
    while _table_width(columns) > width:
        least_needed = max(columns, key=lambda column: column.drop_rank)
        if least_needed.drop_rank == 0:
            break
        columns.remove(least_needed)
    spare = max(0, width - _table_width(columns))
    widths = []
    for column in columns:
        grown = min(column.width + spare, MAX_GROWN_WIDTH)
        widths.append((column, grown if column.grows else column.width))
    return widths


def _table_width(columns: Sequence[RunColumn]) -> int:
    """Cells of a table of these columns, with a gap before each one and one at the end."""
    return sum(column.width + 1 for column in columns) + 1


def sort_rows(
    rows: Sequence[RunRow], order: Iterable[int], column: RunColumn, descending: bool
) -> list[int]:
    """The indexes in `order`, sorted by the values of a column.

    Unknown values come last either way; rows with equal values keep their order.
    """
    with_key: list[tuple[Any, int]] = []
    without_key: list[int] = []
    for index in order:
        key = column.sort_key(rows[index])
        if key is None:
            without_key.append(index)
        else:
            with_key.append((key, index))
    with_key.sort(key=lambda pair: pair[0], reverse=descending)
    return [index for _, index in with_key] + without_key
