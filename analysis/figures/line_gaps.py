"""Lines that leave out the texts that they would strike through.

A figure has a transparent ground, so that a text cannot cover what is behind it: the lines of the
grid and reference lines are interrupted instead. This is done once the layout is fixed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from .style import REFERENCE_LINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.transforms import Bbox

_ROOM = 1.5
"""Points between a text and the ends of a line."""
Span = tuple[float, float]
"""From one end to the other, as shares of the length of the axes."""


class _Line(NamedTuple):
    """A line across the axes."""

    artist: Line2D
    position: float
    """Its place on the other axis, in data."""
    is_vertical: bool


def interrupt_lines(figure: Figure) -> None:
    """Interrupt the lines of all axes where they meet a text."""
    for ax in figure.axes:
        if not ax.get_visible():
            continue
        boxes = list(_text_boxes(ax))
        if not boxes:
            continue
        for line in list(_lines_across(ax)):
            spans = _free_spans(ax, line, boxes)
            if spans != [(0.0, 1.0)]:
                _replace(ax, line, spans)


def _text_boxes(ax: Axes) -> Iterator[Bbox]:
    """Where the texts within the axes are, in display units, with some room around them."""
    from matplotlib.text import Text

    room = _ROOM * ax.figure.dpi / 72
    for text in ax.texts:
        if text.get_visible() and text.get_text().strip():
            # An annotation is placed by its own method, whose box includes its arrow.
            text.get_window_extent()
            yield Text.get_window_extent(text).padded(room)


def _lines_across(ax: Axes) -> Iterator[_Line]:
    for axis, is_vertical in ((ax.xaxis, True), (ax.yaxis, False)):
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks():
            position = tick.get_loc()
            if tick.gridline.get_visible() and low <= position <= high:
                yield _Line(tick.gridline, position, is_vertical)
    for line in ax.lines:
        if line.get_label() == REFERENCE_LINE:
            yield _Line(line, float(line.get_xdata()[0]), is_vertical=True)  # type: ignore[index, arg-type]


def _free_spans(ax: Axes, line: _Line, boxes: list[Bbox]) -> list[Span]:
    """The parts of a line that meet no text."""
    box = ax.bbox
    if line.is_vertical:
        place = ax.transData.transform((line.position, ax.get_ylim()[0]))[0]
        start, length = box.y0, box.height
        met = [(b.y0, b.y1) for b in boxes if b.x0 < place < b.x1]
    else:
        place = ax.transData.transform((ax.get_xlim()[0], line.position))[1]
        start, length = box.x0, box.width
        met = [(b.x0, b.x1) for b in boxes if b.y0 < place < b.y1]
    spans, end = [], 0.0
    for low, high in sorted(((low - start) / length, (high - start) / length) for low, high in met):
        if low > end:
            spans.append((end, min(low, 1.0)))
        end = max(end, high)
    if end < 1.0:
        spans.append((end, 1.0))
    return spans


def _replace(ax: Axes, line: _Line, spans: list[Span]) -> None:
    """Draw the spans in the look of the line, and hide the line."""
    old = line.artist
    old.set_visible(False)
    transform = ax.get_xaxis_transform() if line.is_vertical else ax.get_yaxis_transform()
    for span in spans:
        across, along = [line.position] * 2, list(span)
        ax.plot(
            across if line.is_vertical else along,
            along if line.is_vertical else across,
            transform=transform,
            color=old.get_color(),
            alpha=old.get_alpha(),
            linewidth=old.get_linewidth(),
            zorder=old.get_zorder(),
            scalex=False,
            scaley=False,
        )
