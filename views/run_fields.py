"""What filters and orders look at in a row of the table of runs, each field named once.

The filter language (`run_filter.py`) and the columns (`run_columns.py`) take fields by key. The
pages of a site carry `filter_fields()` for the same filter in JavaScript (`web/run_filter.js`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..trajectories.stages import STAGES
from .run_rows import RunRow

TextValue = Callable[[RunRow], str | None]
NumberValue = Callable[[RunRow], float | None]
Flag = Callable[[RunRow], bool]


@dataclass(frozen=True)
class RunField:
    """A value of a row: an attribute of `RunRow`, or one place in an attribute that is a tuple."""

    attribute: str
    place: int | None = None

    def of(self, row: RunRow) -> Any:
        value = getattr(row, self.attribute)
        return value if self.place is None else value[self.place]


TEXT_FIELDS: dict[str, RunField] = {
    "id": RunField("id"),
    "run": RunField("id"),
    "agent": RunField("agent"),
    "model": RunField("model"),
    "task": RunField("task"),
    "track": RunField("track"),
    "tier": RunField("tier"),
    "ended": RunField("ended"),
    "judge": RunField("judge"),
    "rubric": RunField("rubric"),
    "path": RunField("path"),
    "primary": RunField("primary"),
}
"""Fields that hold text, by their name in filters (`track:vqa`)."""

NUMBER_FIELDS: dict[str, RunField] = {
    **{name.lower(): RunField("stages", place) for place, name in enumerate(STAGES)},
    "agentic": RunField("agentic"),
    "taskscore": RunField("task_score"),
    "overall": RunField("overall"),
    "turns": RunField("turns"),
    "failed": RunField("failed_calls"),
    "failedsteps": RunField("failed_steps"),
    "cost": RunField("cost"),
    "repeat": RunField("repeat"),
    "parts": RunField("parts"),
}
"""Fields that hold numbers, by their name in filters (`S3<0.5`); None where unknown."""

COUNT_FLAGS: dict[str, RunField] = {
    "contradictions": RunField("contradictions"),
    "disqualified": RunField("disqualified"),
    "unverified": RunField("unverified"),
    "presumed": RunField("presumed"),
}
"""Words that find rows in which the field is above 0, or true."""

STATE_FLAGS = ("scored", "waiting", "error")
"""Words that find rows in this state."""

WORD_FIELDS = ("id", "agent", "model", "task", "track", "tier")
"""Text fields in which a plain word is looked for."""


def lowest_stage(row: RunRow) -> float | None:
    """The lowest known score of a stage."""
    return min((score for score in row.stages if score is not None), default=None)


def code_count(row: RunRow) -> int | None:
    """How many codes fired; None where the run is not scored."""
    return len(row.codes) if row.state == "scored" else None


def is_unscored(row: RunRow) -> bool:
    """Whether something of the run, or all of it, has no verdict."""
    return row.unscored > 0 or row.state != "scored"


DERIVED_NUMBERS: dict[str, NumberValue] = {"stage": lowest_stage, "codes": code_count}
"""Numbers that are computed from a row. `web/run_filter.js` has them too."""
DERIVED_FLAGS: dict[str, Flag] = {"unscored": is_unscored}
"""The same of words."""


def filter_fields() -> dict[str, Any]:
    """The fields as plain values, for the filter in JavaScript.

    A field is [attribute] or [attribute, place]. A site's rows have a page and no path.
    """

    def plain(fields: dict[str, RunField]) -> dict[str, list[str | int]]:
        return {
            name: [field.attribute] if field.place is None else [field.attribute, field.place]
            for name, field in fields.items()
        }

    return {
        "words": WORD_FIELDS,
        "texts": {**plain(TEXT_FIELDS), "path": ["page"]},
        "numbers": plain(NUMBER_FIELDS),
        "counts": plain(COUNT_FLAGS),
        "states": STATE_FLAGS,
    }
