"""The columns of the table of runs. Orders and saved views name them by key, never by position."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..judge.card.view_parts import UNKNOWN, grade, score_text
from ..trajectories.stages import STAGES
from .run_fields import NUMBER_FIELDS, TEXT_FIELDS
from .run_rows import RunRow

_BARS = "▁▂▃▄▅▆▇█"
_ENDINGS = {"submitted": "sub", "stopped": "stop", "breach": "BRCH", "cut": "cut"}
_TIERS = {"standard": "std"}
WIDEST = 60
"""Cells that a growing column takes at most."""


@dataclass(frozen=True)
class RunColumn:
    """A column: what it shows of a run, what it sorts by, and how it is laid out."""

    key: str
    """Names the column in orders and saved views; never changes."""
    title: str
    width: int
    """Cells."""
    text: Callable[[RunRow], str]
    sort_key: Callable[[RunRow], Any]
    """None for what is unknown, which sorts last."""
    style: Callable[[RunRow], str] | None = None
    drop_rank: int = 0
    """Where the table is too narrow, columns of the highest rank are left out first; 0: never."""
    grows: bool = False
    """Whether it takes what width is left."""
    right: bool = False
    """Whether it is aligned right."""
    long_title: str = ""
    """Where there is room for more than `title`."""

    @property
    def full_title(self) -> str:
        return self.long_title or self.title


def _text_column(
    key: str,
    title: str,
    width: int,
    text: Callable[[RunRow], str] | None = None,
    **layout: Any,
) -> RunColumn:
    """A column of one text field, which sorts without regard to case; `text` shortens it."""
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
    """A column of one score, coloured by its grade; `full` is the highest score."""
    field = NUMBER_FIELDS[key]

    def style(row: RunRow) -> str:
        value = field.of(row)
        return grade(None if value is None else value / full)

    return RunColumn(key, title, width, text, field.of, style, **layout)


def _stage_column(place: int, name: str) -> RunColumn:
    return _score_column(name.lower(), name, 4, lambda row: meter(row.stages[place]), full=1)


def meter(score: float | None) -> str:
    """A score in [0, 1] in four cells: a bar and two digits, `█1.0` for 1, a dash for unknown."""
    if score is None:
        return f" {UNKNOWN}  "
    bar = _BARS[min(7, int(score * 8))]
    return f"{bar}1.0" if score >= 0.995 else f"{bar}{f'{score:.2f}'[1:]}"


def overall_text(row: RunRow) -> str:
    """Overall as a point, ~ before it where it rests on presumed criteria, or as a range where too
    few criteria were judged for a point."""
    if row.overall is None:
        return range_text(row) or UNKNOWN
    return score_text(row.overall, presumed=row.span is not None, digits=1)


def range_text(row: RunRow) -> str:
    """The range of Overall where not all criteria were judged."""
    return f"{row.span[0]:.0f}–{row.span[1]:.0f}" if row.span else ""


def codes_text(row: RunRow) -> str:
    """The codes that fired, with a question mark where others are unknown."""
    return " ".join([*row.codes, "?"] if row.unknown else row.codes)


def _codes_sort_key(row: RunRow) -> tuple[str, ...] | None:
    known = row.codes or (row.read and not row.unknown)
    return row.codes if known else None


def _end_style(row: RunRow) -> str:
    return "bad" if row.disqualified or row.ended in ("cut", "breach") else ""


def flags_text(row: RunRow) -> str:
    """Signs for what deserves a look.

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
    *(_stage_column(place, name) for place, name in enumerate(STAGES)),
    _score_column(
        "agentic",
        "Agnt",
        4,
        lambda row: score_text(row.agentic),
        full=1,
        right=True,
        long_title="Agentic",
    ),
    _score_column(
        "taskscore",
        "Task",
        4,
        lambda row: score_text(row.task_score),
        full=1,
        drop_rank=3,
        right=True,
        long_title="Task score",
    ),
    _score_column("overall", "Ovrl", 6, overall_text, full=100, right=True, long_title="Overall"),
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
        right=True,
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
    """The column of a key; None if there is none."""
    return next((column for column in COLUMNS if column.key == key), None)


def fit_columns(width: int) -> list[tuple[RunColumn, int]]:
    """The columns that fit into so many cells, with their widths."""
    chosen = list(COLUMNS)
    while (needed := sum(column.width + 1 for column in chosen) + 1) > width:
        first_to_go = max(chosen, key=lambda column: column.drop_rank)
        if not first_to_go.drop_rank:
            break
        chosen.remove(first_to_go)
    spare = max(0, width - needed)
    return [
        (column, min(column.width + spare, WIDEST) if column.grows else column.width)
        for column in chosen
    ]


def sort_rows(
    rows: Sequence[RunRow], order: Iterable[int], column: RunColumn, descending: bool
) -> list[int]:
    """Indexes of rows in the order of a column.

    Unknown values come last either way; rows with equal values stay in place.
    """
    keyed = [(column.sort_key(rows[index]), index) for index in order]
    known = [(key, index) for key, index in keyed if key is not None]
    unknown = [index for key, index in keyed if key is None]
    known.sort(key=lambda pair: pair[0], reverse=descending)
    return [index for _, index in known] + unknown
