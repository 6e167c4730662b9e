"""Raw text made safe to draw: all text of a run that is drawn passes `paint`, `safe` or `Entry`.

Markup is never interpreted and links are never made. What `sanitize_line` replaced is styled so
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
    """One row of raw text as segments.

    The style is `base`, with `marks` laid over it in order, and `replaced` over what was sanitised.
    """
    text = sanitize_line(raw)
    overlays = [(max(0, start), min(len(text), end), style) for start, end, style in marks]
    if replaced is not None and text != raw:
        overlays += [(start, end, replaced) for start, end in _replaced_spans(raw, text)]
    if not overlays:
        return [Segment(text, base)] if text else []
    # Between two neighbouring edges the style does not change.
    edges = {0, len(text)}
    for start, end, _ in overlays:
        if start < end:
            edges |= {start, end}
    segments = []
    for start, end in pairwise(sorted(edges)):
        style = base
        for low, high, overlay in overlays:
            if low <= start and end <= high:
                style += overlay
        segments.append(Segment(text[start:end], style))
    return segments


def _replaced_spans(raw: str, text: str) -> list[tuple[int, int]]:
    """Where the sanitiser replaced characters. A tab hides nothing and does not count."""
    spans: list[tuple[int, int]] = []
    for offset, (before, after) in enumerate(zip(raw, text, strict=True)):
        if before == after or before == "\t":
            continue
        if spans and spans[-1][1] == offset:
            spans[-1] = (spans[-1][0], offset + 1)
        else:
            spans.append((offset, offset + 1))
    return spans


def safe(text: str) -> Content:
    """Text for a widget: sanitised, and as Content, in which square brackets mean nothing."""
    return Content(sanitize(text))


def safe_line(text: str) -> Content:
    """Text for a widget, made safe and put on one line."""
    return Content(sanitize_line(text))


class Entry(Input):
    """An `Input` that sanitises its value, set, typed or pasted, without a change of length."""

    def validate_value(self, value: str) -> str:
        return sanitize_line(value)
