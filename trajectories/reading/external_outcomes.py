"""What another harness found out about a run: scores, flags and words by name, each with where it
stood.

An outcome is carried, never interpreted: it becomes the Task score only where the user names it,
and a column `outcome.NAME` of the run frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..models import Outcome
from .json_bytes import number

MAX_OUTCOMES = 64
"""Of one run. Harnesses have a handful, or one a test; more is a table of something else."""
MAX_NAME = 80
MAX_TEXT = 200
"""Characters of a value that is text; longer text is a document, not an outcome."""
_DEPTH = 3


def outcomes(
    value: Any, source: str, name: str = "", depth: int = _DEPTH
) -> Iterator[tuple[str, Outcome | None]]:
    """(name, outcome) of a value, objects taken apart with dots between the keys; None for what is
    no outcome.

    Nulls say nothing and are left out. Linear in what is looked at: nesting below three levels is
    no outcome.
    """
    if isinstance(value, dict) and depth:
        for key, item in value.items():
            yield from outcomes(item, source, f"{name}.{key}" if name else str(key), depth - 1)
    elif value is not None:
        found = scalar(value)
        yield _name(name), None if found is None else Outcome(value=found, source=source)


def scalar(value: Any) -> bool | float | str | None:
    """The value as an outcome has it; None for lists, objects, endless numbers and long text."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.strip() if len(value) <= MAX_TEXT and value.strip() else None
    return number(value)


def _name(text: str) -> str:
    return " ".join(text[: 4 * MAX_NAME].split())[:MAX_NAME] or "outcome"


def read_outcomes(value: Any, warnings: list[str]) -> dict[str, Outcome]:
    """The `outcomes` of a conversation.json: name -> {"value", "source"}, or the bare value."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        warnings.append("outcomes: no object; left out")
        return {}
    found: dict[str, Outcome] = {}
    for name, told in list(value.items())[:MAX_OUTCOMES]:
        body = told if isinstance(told, dict) else {"value": told}
        known = scalar(body.get("value"))
        if known is not None:
            found[_name(name)] = Outcome(value=known, source=str(scalar(body.get("source")) or ""))
    if len(found) < len(value):
        warnings.append(
            f"outcomes: {len(value) - len(found)} without a number, a flag or a short text;"
            " left out"
        )
    return found
