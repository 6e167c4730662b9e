"""Results of other harnesses about a run: scores, flags and short texts by name, with their source.

An outcome is carried, never interpreted. It becomes the Task score only if the user names it, and a
column `outcome.NAME` of the run frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..models import Outcome
from .json_bytes import number

MAX_OUTCOMES = 64
"""Outcomes of one run. Harnesses have a handful, or one a test; more are another kind of table."""
MAX_NAME = 80
"""Characters of an outcome's name."""
MAX_TEXT = 200
"""Characters of a text value; longer text is a document, not an outcome."""
_MAX_DEPTH = 3


def flatten_outcomes(
    value: Any, source: str, name: str = "", depth: int = _MAX_DEPTH
) -> Iterator[tuple[str, Outcome | None]]:
    """The (name, outcome) pairs of a value; None for what is not an outcome.

    Objects are flattened with dots between the keys, down to three levels; deeper values are not
    outcomes. Nulls are left out.
    """
    if isinstance(value, dict) and depth:
        for key, item in value.items():
            item_name = f"{name}.{key}" if name else str(key)
            yield from flatten_outcomes(item, source, item_name, depth - 1)
    elif value is not None:
        simple = outcome_value(value)
        outcome = None if simple is None else Outcome(value=simple, source=source)
        yield _shorten_name(name), outcome


def outcome_value(value: Any) -> bool | float | str | None:
    """The value of an outcome; None for lists, objects, infinite numbers and long text."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.strip() if len(value) <= MAX_TEXT and value.strip() else None
    return number(value)


def _shorten_name(name: str) -> str:
    return " ".join(name[: 4 * MAX_NAME].split())[:MAX_NAME] or "outcome"


def read_outcomes(value: Any, warnings: list[str]) -> dict[str, Outcome]:
    """The `outcomes` of a conversation.json: name -> {"value", "source"}, or the bare value."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        warnings.append("outcomes: not an object; left out")
        return {}
    outcomes: dict[str, Outcome] = {}
    for name, item in list(value.items())[:MAX_OUTCOMES]:
        body = item if isinstance(item, dict) else {"value": item}
        simple = outcome_value(body.get("value"))
        if simple is not None:
            source = str(outcome_value(body.get("source")) or "")
            outcomes[_shorten_name(name)] = Outcome(value=simple, source=source)
    if len(outcomes) < len(value):
        warnings.append(
            f"outcomes: {len(value) - len(outcomes)} left out; an outcome is a number, a flag or a"
            " short text"
        )
    return outcomes
