"""Lines of text with styles and targets, as the side panel and the windows show them, and how
values are written there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Part = tuple[str, str]
"""Text and the name of its style ("" for plain)."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a line leads to. `turns` are where it is to be seen, `quotes` the words to look for in
    each of them."""

    kind: Literal["stage", "criterion", "evidence", "code", "contradiction", "episode", "plan"]
    id: str
    turns: tuple[int, ...] = ()
    quotes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A line before it is wrapped. A `selectable` one is a stop of the cursor; `indent` is that of
    its further rows."""

    parts: tuple[Part, ...]
    target: Target | None = None
    selectable: bool = False
    indent: int = 0

    @property
    def text(self) -> str:
        return "".join(part for part, _ in self.parts)


def line(*parts: Part | str, indent: int = 0, target: Target | None = None) -> Line:
    """A line that a click may follow to its target."""
    return Line(
        tuple((part, "") if isinstance(part, str) else part for part in parts),
        target,
        indent=indent,
    )


def stop(target: Target, *parts: Part | str, indent: int) -> Line:
    """A line that the cursor stops at."""
    return replace(line(*parts, indent=indent, target=target), selectable=True)


def section(title: str, note: str = "") -> list[Line]:
    """An empty line and a heading."""
    return [line(""), line((title, "head"), (note, "dim"))]


def numbers(turns: Sequence[int]) -> str:
    """1-3, 5 for [1, 2, 3, 5]; 0 is the plan."""
    parts: list[list[int]] = []
    for n in sorted(set(turns)):
        if parts and n == parts[-1][-1] + 1:
            parts[-1].append(n)
        else:
            parts.append([n])
    words = [str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts]
    return ", ".join("plan" if word == "0" else word for word in words)


def bar(score: float | None, width: int = 8) -> str:
    """A score in [0, 1] as a bar of eighths of a cell; points where it is unknown."""
    if score is None:
        return "·" * width
    full, rest = divmod(round(score * width * 8), 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(width, "·")


def grade(score: float | None) -> str:
    """The style of a score in [0, 1]: good from .8, warn from .4, bad below, unknown for None."""
    return (
        "unknown"
        if score is None
        else "good"
        if score >= 0.8
        else "warn"
        if score >= 0.4
        else "bad"
    )


def decimals(score: float | None, digits: int = 2) -> str:
    """A score, `·` for None."""
    return "·" if score is None else f"{score:.{digits}f}"
