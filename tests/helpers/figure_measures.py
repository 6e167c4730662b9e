"""What is wrong with a drawn figure, measured on its bounding boxes: texts that overlap or leave
the figure, lines through texts, axes with fewer than two labelled ticks, marks that are cut."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

SLACK = 1.0
"""Points by which boxes may meet: a box has the height of a line, not of its letters."""


def texts_of(figure: Figure) -> list[Text]:
    """All texts that are drawn, with ticks, titles and legends."""
    figure.draw_without_rendering()
    drawn = []
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and _is_drawn(figure, text):
            drawn.append(text)
    return drawn


def _is_drawn(figure: Figure, text: Text) -> bool:
    """Whether a text is a label of a tick only if the tick is in view and has labels."""
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if text in (tick.label1, tick.label2):
                    is_in_view = low - 1e-9 <= tick.get_loc() <= high + 1e-9
                    return ax.get_visible() and ax.axison and axis.get_visible() and is_in_view
            if text in (axis.label, axis.offsetText):
                return ax.axison
    return True


def box_of(text: Text) -> Bbox:
    """Where a text stands, in points, without the room between lines."""
    # An annotation is placed by its own method, whose box includes its arrow.
    text.get_window_extent()
    box = Text.get_window_extent(text)
    points = box.get_points() * 72 / text.figure.dpi
    return Bbox(points).padded(-SLACK)


def smallest_text(figure: Figure) -> float:
    return min(float(text.get_fontsize()) for text in texts_of(figure))


def faults(figure: Figure) -> list[str]:
    return [
        *_overlapping_texts(figure),
        *_texts_outside(figure),
        *_struck_texts(figure),
        *_axes_without_ticks(figure),
        *_cut_marks(figure),
    ]


def _overlapping_texts(figure: Figure) -> Iterator[str]:
    boxes = [(text.get_text(), box_of(text)) for text in texts_of(figure)]
    for (first, first_box), (second, second_box) in combinations(boxes, 2):
        if Bbox.intersection(first_box, second_box) is not None:
            yield f"{first!r} overlaps {second!r}"


def _texts_outside(figure: Figure) -> Iterator[str]:
    width, height = figure.get_size_inches() * 72
    for text in texts_of(figure):
        box = box_of(text)
        if box.x0 < 0 or box.y0 < 0 or box.x1 > width or box.y1 > height:
            yield f"{text.get_text()!r} leaves the figure"


def _struck_texts(figure: Figure) -> Iterator[str]:
    """Texts within axes that a line crosses: a line of data, of the grid, or at zero."""
    scale = 72 / figure.dpi
    for ax in figure.axes:
        boxes = [(text.get_text(), box_of(text)) for text in texts_of(figure) if text in ax.texts]
        for line in _drawn_lines(ax):
            points = line.get_transform().transform(line.get_xydata()) * scale
            for start, end in pairwise(points):
                for text, box in boxes:
                    if np.isfinite([*start, *end]).all() and _crosses(start, end, box):
                        yield f"a line crosses {text!r}"


def _drawn_lines(ax: Axes) -> Iterator[Line2D]:
    for line in ax.lines:
        if line.get_visible() and line.get_linestyle() not in ("None", "", " "):
            yield line
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks():
            if tick.gridline.get_visible() and low <= tick.get_loc() <= high:
                yield tick.gridline


def _crosses(start: np.ndarray, end: np.ndarray, box: Bbox) -> bool:
    """Whether a segment passes through a box (Liang and Barsky)."""
    low, high = 0.0, 1.0
    for axis in (0, 1):
        delta = end[axis] - start[axis]
        near, far = box.min[axis] - start[axis], box.max[axis] - start[axis]
        if abs(delta) < 1e-12:
            if near > 0 or far < 0:
                return False
            continue
        first, second = sorted((near / delta, far / delta))
        low, high = max(low, first), min(high, second)
    return low < high


def _axes_without_ticks(figure: Figure) -> Iterator[str]:
    """Scales, which have a line or a grid, with fewer than two labelled ticks."""
    figure.draw_without_rendering()
    for number, ax in enumerate(figure.axes):
        if not ax.axison or not ax.get_visible():
            continue
        for name, axis, spine in (("x", ax.xaxis, "bottom"), ("y", ax.yaxis, "left")):
            if not ax.spines[spine].get_visible():
                continue
            low, high = sorted(axis.get_view_interval())
            ticks = axis.get_major_ticks()
            in_view = [tick for tick in ticks if low - 1e-9 <= tick.get_loc() <= high + 1e-9]
            labelled = [tick for tick in in_view if tick.label1.get_text().strip()]
            if len(in_view) and not any(tick.label1.get_visible() for tick in in_view):
                continue  # shares the labels of its neighbour
            if len(labelled) < 2:
                yield f"{name} of axes {number} has {len(labelled)} labelled ticks"


def _cut_marks(figure: Figure) -> Iterator[str]:
    """Marks that the axes or the figure cut."""
    figure.draw_without_rendering()
    scale = 72 / figure.dpi
    sheet = Bbox([[0, 0], figure.get_size_inches() * 72])
    for ax in figure.axes:
        inside = Bbox(ax.bbox.get_points() * scale)
        for line in ax.lines:
            if line.get_marker() in ("None", "", " ", None) or not line.get_visible():
                continue
            half = line.get_markersize() / 2
            bounds = inside if line.get_clip_on() else sheet
            for x, y in line.get_transform().transform(line.get_xydata()) * scale:
                is_whole = (
                    bounds.x0 <= x - half
                    and x + half <= bounds.x1
                    and bounds.y0 <= y - half
                    and y + half <= bounds.y1
                )
                if np.isfinite([x, y]).all() and not is_whole:
                    yield f"a mark of {ax.get_title()!r} at {x:.0f}, {y:.0f} is cut"
