"""Reads fields of untrusted JSON: each function returns the expected type, or an empty value."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ..reading.json_bytes import count, loads, number, text_or_none


def as_object(value: Any) -> dict[str, Any]:
    """The object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; empty for anything else."""
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, dict)]


def parse_object(value: Any) -> dict[str, Any]:
    """The object, also if it is kept as JSON text; an empty one for anything else."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = loads(value)
        except ValueError:
            return {}
    return as_object(value)


def as_id(value: Any) -> str | None:
    """An id as text: a non-empty string, or an integer; None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return text_or_none(value)


def first_of(value: dict[str, Any], *keys: str) -> Any:
    """The first of these fields that is not null; None if all are."""
    for key in keys:
        if value.get(key) is not None:
            return value[key]
    return None


def first_nonempty(value: dict[str, Any], *keys: str) -> Any:
    """The first of these fields that is neither null, zero nor empty; None if all are."""
    for key in keys:
        if value.get(key):
            return value[key]
    return None


def sum_counts(*values: Any) -> int | None:
    """The sum of those values that are counts; None if none is."""
    counts = [n for n in map(count, values) if n is not None]
    return sum(counts) if counts else None


def unix_time(timestamp: Any) -> float | None:
    """Seconds since 1970 of an ISO 8601 time (UTC if it has no zone) or a Unix time.

    None for anything else.
    """
    if not isinstance(timestamp, str):
        return number(timestamp)
    try:
        moment = datetime.fromisoformat(timestamp)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
    except (ValueError, OverflowError):
        return None


def unwrap_text(content: Any) -> Any:
    """The text of a single plain text block; None for no blocks; any other content as it is."""
    if content == []:
        return None
    if not isinstance(content, list) or len(content) != 1:
        return content
    block = content[0]
    if not isinstance(block, dict) or block.get("type") != "text":
        return content
    if any(block[key] for key in set(block) - {"type", "text"}):
        return content
    return block.get("text")
