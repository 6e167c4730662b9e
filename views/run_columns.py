"""The columns of the table of runs. Orders and saved views name them by key, never by position."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..judge.card.view_parts import UNKNOWN, grade, score_text
from ..rounding import fixed
from ..trajectories.stages import STAGES
from .run_fields import NUMBER_FIELDS, TEXT_FIELDS
from .run_rows import RunRow

_BARS = "▁▂▃▄▅▆▇█"
_ENDINGS = {"submitted": "sub", "stopped": "stop", "breach": "BRCH", "cut": "cut"}
"""Short forms of `Status.ended`."""
_TIERS = {"standard": "std"}
"""Short forms of tiers; the others are short enough."""
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


COLUMNS: tuple[RunColumn, ...] = (
    _text_column("run", "Run", 14, grows=True),
    _text_column("agent", "Agent", 12, drop_rank=4),
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
        "turns",
        "Turns",
        5,
        lambda row: "" if row.turns is None else str(row.turns),
        drop_rank=7,
        align_right=True,
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


def column_named(key: str) -> RunColumn | None:
    """The column with this key; None if there is none."""
    return next((column for column in COLUMNS if column.key == key), None)


def fit_columns(width: int) -> list[tuple[RunColumn, int]]:
    """The columns that fit into a table of `width` cells, each with its own width."""
    columns = list(COLUMNS)
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
