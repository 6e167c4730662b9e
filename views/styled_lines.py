"""Lines of text with styles and targets, as the browser's panels and windows show them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..judge.card.view_parts import Target

StyledText = tuple[str, str]
"""Text and the name of its style ("" for plain)."""


@dataclass(frozen=True, slots=True)
class StyledLine:
    """A line before it is wrapped.

    The cursor stops at `selectable` lines; `indent` is that of the rows after the first.
    """

    parts: tuple[StyledText, ...]
    target: Target | None = None
    selectable: bool = False
    indent: int = 0

    @property
    def text(self) -> str:
        return "".join(part for part, _ in self.parts)


def line(*parts: StyledText | str, indent: int = 0, target: Target | None = None) -> StyledLine:
    """A line that a click may follow to its target."""
    return StyledLine(
        tuple((part, "") if isinstance(part, str) else part for part in parts),
        target,
        indent=indent,
    )


def item_line(target: Target, *parts: StyledText | str, indent: int) -> StyledLine:
    """A line that the cursor stops at."""
    return replace(line(*parts, indent=indent, target=target), selectable=True)


def heading(title: str, note: str = "") -> list[StyledLine]:
    """An empty line and a heading."""
    return [line(""), line((title, "head"), (note, "dim"))]
