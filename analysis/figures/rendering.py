"""Drawn figures as bytes: SVG, PDF and PNG files, and SVG to place in a page.

The same figure gives the same bytes.
"""

from __future__ import annotations

import io
import re
from html import escape
from typing import TYPE_CHECKING

from .line_gaps import interrupt_lines
from .sheet import Sheet
from .style import ROLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS_PER_INCH = 72
LAYOUT_DIGITS = 6
"""Digits of a position, as a share of the figure: a thousandth of a point."""


def fix_layout(figure: Figure) -> None:
    """Compute the layout once for all formats.

    It takes as long as drawing, and each saving would compute it again. The solver of the layout
    differs in the last digits from process to process; rounded, the same tables give the same SVG.
    """
    engine = figure.get_layout_engine()
    if engine is None:
        return
    engine.execute(figure)
    figure.set_layout_engine("none")
    for axes in figure.axes:
        x, y, width, height = (round(edge, LAYOUT_DIGITS) for edge in axes.get_position().bounds)
        axes.set_position((x, y, width, height))
    interrupt_lines(figure)


def to_pdf(figure: Figure) -> bytes:
    """The figure as PDF, with its fonts embedded as text."""
    from matplotlib.backends.backend_pdf import FigureCanvasPdf

    buffer = io.BytesIO()
    # No date: the same figure gives the same bytes.
    FigureCanvasPdf(figure).print_pdf(
        buffer, metadata={"CreationDate": None, "Creator": None, "Producer": None}
    )
    return buffer.getvalue()


def to_svg(figure: Figure) -> str:
    """The figure as SVG, with text as text."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    # Not by savefig, which draws once more to find a layout that is fixed already.
    buffer = io.StringIO()
    FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def to_png(figure: Figure, dpi: int = 300) -> bytes:
    """The figure as PNG on a transparent ground."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    buffer = io.BytesIO()
    figure.dpi = dpi
    FigureCanvasAgg(figure).print_png(
        buffer, metadata={"Software": None}, pil_kwargs={"compress_level": 4}
    )
    return buffer.getvalue()


_PROLOG = re.compile(
    r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", re.DOTALL
)
_GROUP_ID = re.compile(r'<g id="[^"]*"')
_STYLE_ATTRIBUTE = re.compile(r'style="[^"]*"')
_COLOUR = re.compile("|".join(ROLES.values()))
_ROLE_OF_COLOUR = {colour: role for role, colour in ROLES.items()}


def inline(svg: str, description: str, *, narrow: bool = False) -> str:
    """The SVG for a place inside HTML.

    It has no prolog and no size of its own, a description for screen readers, and CSS variables
    for colours. `narrow`: a figure that needs more than a narrow sheet becomes wider than its place
    in the page, in which it scrolls.
    """
    result = _GROUP_ID.sub("<g", _PROLOG.sub("", svg))
    result = re.sub(r'(<svg\b[^>]*?) height="[\d.]+pt"', r"\1", result, count=1)
    result = re.sub(r'(<svg\b[^>]*?) width="[\d.]+pt"', r"\1", result, count=1)
    # Only style attributes are changed: a text that happens to spell a colour stays as it is.
    result = _STYLE_ATTRIBUTE.sub(_with_colour_variables, result)
    attributes = f'role="img" aria-label="{escape(description, quote=True)}"'
    result = result.replace("<svg", f"<svg {attributes}", 1)
    if narrow:
        result = _widened(result)
    return re.sub(r"\s*\n\s*", "\n", result).strip()


def _with_colour_variables(style_attribute: re.Match[str]) -> str:
    """The style attribute with CSS variables in place of the colours of roles."""
    return _COLOUR.sub(lambda m: f"var(--{_ROLE_OF_COLOUR[m[0]]})", style_attribute[0])


def _widened(svg: str) -> str:
    """The SVG with a width of more than 100 % if it was drawn wider than a narrow sheet."""
    view_box = re.search(r'viewBox="0 0 ([\d.]+)', svg)
    if view_box is None:
        return svg
    sheet_width = _POINTS_PER_INCH * Sheet(narrow=True).width
    ratio = float(view_box[1]) / sheet_width
    if ratio <= 1.01:
        return svg
    return svg.replace("<svg", f'<svg style="width: {100 * ratio:.0f}%"', 1)
