"""The sink: raw text made safe to draw. All text from a transcript that the browser draws passes
`paint`, `safe` or `Entry`.

Markup is never interpreted, links are never made, and what `sanitize_line` replaced is styled so
that it is seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.widgets import Input

from ..sanitize import sanitize, sanitize_line

Mark = tuple[int, int, Style]
"""Characters `start` to `end` and the style laid over them."""


def paint(
    raw: str, base: Style, marks: Iterable[Mark] = (), replaced: Style | None = None
) -> list[Segment]:
    """One row of raw text as segments: `base`, then `marks` in their order, then `replaced` on
    replaced characters."""
    text = sanitize_line(raw)
    overlays = [(max(0, start), min(len(text), end), style) for start, end, style in marks]
    if replaced is not None and text != raw:
        overlays += [(start, end, replaced) for start, end in _changed(raw, text)]
    if not overlays:
        return [Segment(text, base)] if text else []
    edges = sorted(
        {0, len(text), *(e for start, end, _ in overlays if start < end for e in (start, end))}
    )
    segments = []
    for start, end in pairwise(edges):
        style = base
        for low, high, over in overlays:
            if low <= start and end <= high:
                style += over
        segments.append(Segment(text[start:end], style))
    return segments


def _changed(raw: str, text: str) -> list[tuple[int, int]]:
    """Stretches that the sanitiser replaced; a tab made a space hides nothing and does not count."""
    spans: list[tuple[int, int]] = []
    for at, (before, after) in enumerate(zip(raw, text, strict=True)):
        if before != after and before != "\t":
            if spans and spans[-1][1] == at:
                spans[-1] = (spans[-1][0], at + 1)
            else:
                spans.append((at, at + 1))
    return spans


def safe(text: str) -> Content:
    """Text for a widget: sanitised, and as Content, in which square brackets are only square
    brackets."""
    return Content(sanitize(text))


def safe_line(text: str) -> Content:
    """The same on one line."""
    return Content(sanitize_line(text))


class Entry(Input):
    """An `Input` whose value is sanitised however it came: given, typed or pasted. No character is
    added or lost."""

    def validate_value(self, value: str) -> str:
        return sanitize_line(value)
