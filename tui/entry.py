"""A line to type in that draws what it holds as safely as everything else."""

from __future__ import annotations

from textual.widgets import Input

from ..sanitize import sanitize_line


class Entry(Input):
    """An `Input` whose value is sanitised however it came: given, typed or pasted. No character is added or lost."""

    def validate_value(self, value: str) -> str:
        return sanitize_line(value)
