"""One look for all figures: colours by role, labels from data made safe, SVG and PNG that come out
the same every time.

Colours stand for roles. In a file they are mid-tones, readable on a white and on a dark page;
inside the report each becomes a CSS variable, so that the page's theme decides.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from ...console import cells, fit
from ...sanitize import sanitize_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#6e7681"
"""Text, axes and grid: 4.6:1 against white, 4.1:1 against a near-black page."""
BLUE, ORANGE, GREEN, PINK, SKY, YELLOW = (
    "#0173b2",
    "#d55e00",
    "#029e73",
    "#cc78bc",
    "#56a5d9",
    "#c79100",
)
"""After the colour-blind-safe palettes of Okabe and Ito, mid-tones only. Pairs that must be told
apart: blue, orange."""
ROLES = dict(
    zip(
        ("ink", "blue", "orange", "green", "pink", "sky", "yellow"),
        (INK, BLUE, ORANGE, GREEN, PINK, SKY, YELLOW),
        strict=True,
    )
)
SERIES = (BLUE, ORANGE, GREEN, PINK, YELLOW, SKY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MOST_POINTS = 600
"""Runs that a cloud of points shows: thousands of marks would make the page heavy, and hide each
other."""

_RC: dict[str, Any] = {
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": False,
    "axes.axisbelow": True,
    "grid.linewidth": 0.6,
    "grid.alpha": 0.22,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "xtick.major.width": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.solid_capstyle": "butt",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "savefig.transparent": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "ambjudge",
    "text.parse_math": False,
    **dict.fromkeys(
        (
            "text.color",
            "axes.edgecolor",
            "axes.labelcolor",
            "axes.titlecolor",
            "xtick.color",
            "ytick.color",
            "grid.color",
            "legend.labelcolor",
        ),
        INK,
    ),
}


@contextmanager
def styled() -> Iterator[None]:
    """The style, for drawing and for saving. Names in scripts that the font lacks are no reason for
    a warning."""
    import matplotlib

    with matplotlib.rc_context(_RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        warnings.filterwarnings("ignore", message=".*missing from font.*")
        yield


@dataclass(frozen=True)
class Sheet:
    """What a figure is drawn on: a page's column, or, narrow, a telephone's, where a picture is
    legible when it fills it.

    Narrow, axes stand below each other, and what stands beside a row on a page stands above it.
    """

    narrow: bool = False

    @property
    def width(self) -> float:
        """Inches; the report scales a figure to its column. 7 pt, the smallest, are 10 pixels of a
        column of 368."""
        return 3.5 if self.narrow else 8.4

    def blank(self, height: float, width: float | None = None) -> Figure:
        """An empty figure in inches, laid out so that labels never overlap axes. No global state is
        touched."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width or self.width, height), layout="constrained")
        FigureCanvasAgg(figure)
        return figure

    @property
    def bar(self) -> float:
        """Of a row's height, what a bar takes."""
        return 0.3 if self.narrow else 0.62

    def tall(self, n: int, height: float, *, said: bool = False) -> float:
        """Inches of `n` rows that take `height` each on a page; narrow a line of words stands in
        each, or two."""
        return n * ((0.6 if said else 0.42) if self.narrow else height)

    def beside(
        self, heights: Sequence[float], ratios: Sequence[float], more: float
    ) -> tuple[Figure, list[Axes]]:
        """Axes of these heights in inches, and `more` around them: beside each other with widths by
        `ratios`, where those beyond `heights` are for text; narrow below each other."""
        if not self.narrow:
            figure = self.blank(max(heights) + more)
            return figure, list(
                figure.subplots(1, len(ratios), width_ratios=ratios, squeeze=False).flat
            )
        figure = self.blank(sum(heights) + 0.55 * (len(heights) - 1) + more)
        return figure, list(
            figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False).flat
        )

    def small_multiples(
        self, n: int, most: int, height: float, around: float
    ) -> tuple[Figure, list[Axes]]:
        """`n` axes of one scale, of `height` inches each, in lines of at most `most`, and `around`
        inches around them all."""
        columns = min(most, n)
        lines = -(-n // columns)
        figure = self.blank(lines * height + around)
        grid = list(figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).flat)
        for ax in grid[:n]:
            ax.tick_params(labelbottom=True)
        for ax in grid[n:]:
            ax.remove()
        return figure, grid[:n]

    def field(self, ax: Axes, x: float, y: float, colour: str, alpha: float) -> float:
        """The coloured ground of one field of a matrix; its middle."""
        from matplotlib.patches import Rectangle

        top = 0.28 if self.narrow else 0.46
        ax.add_patch(
            Rectangle(
                (x - 0.485, y - top), 0.97, top + 0.46, facecolor=colour, alpha=alpha, linewidth=0
            )
        )
        return y + (0.46 - top) / 2

    def table(self, axes: Sequence[Axes], names: Sequence[str], columns: Sequence[Column]) -> None:
        """Rows of the same names in all axes, and columns of text: on a page in the last axes,
        which hold nothing else; narrow above each row of the first."""
        if not self.narrow:
            *plots, side = axes
            for ax in plots:
                rows_axis(ax, names)
                ax.tick_params(labelleft=ax is plots[0])
            side.set_ylim(plots[0].get_ylim())
            _panel(side, columns)
            return
        said = [
            " · ".join(f"{head} {texts[at]}" for _, _, head, texts in columns if texts[at])
            for at in range(len(names))
        ]
        for ax in axes:
            self.named_rows(ax, names, said if ax is axes[0] else ())

    def named_rows(
        self, ax: Axes, names: Sequence[str], said: Sequence[str] = (), points: float = 8.0
    ) -> None:
        """Names down the y axis; narrow they stand `points` above the middle of the rows, with what
        is `said` of each below."""
        rows_axis(ax, [""] * len(names) if self.narrow else names)
        if self.narrow:
            ax.set_ylim(len(names) - 0.5, -0.7)
            for at, name in enumerate(names):
                _above(ax, at, name, points + (11 if said else 0), 8.5)
            for at, text in enumerate(said):
                _above(ax, at, text, points, 7.5)


Column = tuple[float, str, str, Sequence[str]]
"""Of text beside rows: its place (0-1), left or right, its heading, its texts."""


def _above(ax: Axes, at: int, text: str, points: float, size: float) -> None:
    ax.annotate(
        text,
        (0, at),
        xycoords=("axes fraction", "data"),
        xytext=(0, points),
        textcoords="offset points",
        fontsize=size,
        va="bottom",
        in_layout=False,
        zorder=5,
    )


def bare_columns(ax: Axes) -> None:
    """Names along the x axis, nothing else on it."""
    ax.spines["bottom"].set_visible(False)
    ax.tick_params(axis="x", length=0)


def label(text: object, columns: int = 26) -> str:
    """A name from the data as it may stand in a figure: on one line, without control characters,
    cut to `columns`."""
    return fit(sanitize_line(str(text)), columns)


def spoken(track: str) -> str:
    """A track's name with spaces."""
    return label(track.replace("_", " "))


def labels(texts: Sequence[object], columns: int = 26) -> list[str]:
    """Labels that stay distinct: those that would be cut to the same text keep their ends."""
    whole = [sanitize_line(str(text)) for text in texts]
    short = [fit(text, columns) for text in whole]
    return [
        cut if short.count(cut) == 1 or cells(text) <= columns else "…" + text[-(columns - 1) :]
        for text, cut in zip(whole, short, strict=True)
    ]


def rows_axis(ax: Axes, names: Sequence[str]) -> None:
    """Names down the y axis, the first on top, nothing else on it."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)


def interval(
    ax: Axes,
    y: float,
    lo: float | None,
    hi: float | None,
    colour: str,
    *,
    thick: bool,
    vertical: bool = False,
) -> None:
    """An interval as a line: thick and pale for new tasks, thin and full for the same tasks.
    Nothing when unknown."""
    if lo is None or hi is None:
        return
    style: dict[str, Any] = {"color": colour, "zorder": 2 if thick else 3, "solid_capstyle": "butt"}
    style |= {"linewidth": 6, "alpha": 0.32} if thick else {"linewidth": 1.5}
    if vertical:
        ax.plot([y, y], [lo, hi], **style)
    else:
        ax.plot([lo, hi], [y, y], **style)


def point(
    ax: Axes, x: float, y: float, colour: str, *, hollow: bool = False, size: float = 6
) -> None:
    """The estimate itself; hollow when it says little."""
    face = "none" if hollow else colour
    ax.plot(
        [x],
        [y],
        "o",
        markersize=size,
        markerfacecolor=face,
        markeredgecolor=colour,
        markeredgewidth=1.4,
        zorder=4,
    )


def _panel(ax: Axes, columns: Sequence[Column]) -> None:
    ax.axis("off")
    ax.set_title(" ")  # reserves the line of headings
    for x, align, title, texts in columns:
        for at, text in enumerate(texts):
            ax.annotate(
                text,
                (x, at),
                xycoords=("axes fraction", "data"),
                va="center",
                ha=align,
                fontsize=8.5,
                in_layout=False,
            )
        ax.annotate(
            title,
            (x, 1),
            xycoords="axes fraction",
            xytext=(0, 8),
            textcoords="offset points",
            va="bottom",
            ha=align,
            fontsize=8.5,
            in_layout=False,
        )


def thinned(n: int) -> tuple[int, str]:
    """Of `n` runs each how many-th is a point in a cloud, and a sentence on it for the caption."""
    step = -(-n // MOST_POINTS)
    return step, f" A dot stands for every {step}th run." if step > 1 else ""


def points_cloud(
    ax: Axes, x: Any, y: Any, colour: str, *, size: float = 6, alpha: float = 0.35
) -> None:
    """Single runs, as background."""
    ax.plot(x, y, "o", markersize=size**0.5, color=colour, alpha=alpha, markeredgewidth=0, zorder=1)


def signed(value: float | None, digits: int = 1) -> str:
    """With its sign, a real minus, and no negative zero."""
    if value is None:
        return "–"
    text = f"{abs(value):.{digits}f}"
    zero = not text.strip("0.")
    return text if zero else ("+" if value > 0 else "−") + text


def span(lo: float | None, hi: float | None, digits: int = 1) -> str:
    """An interval as text, or nothing."""
    if lo is None or hi is None:
        return ""
    return f"[{plain(lo, digits)}, {plain(hi, digits)}]"


def ranks(lo: int | None, hi: int | None) -> str:
    """A set of ranks: 2–4, 1, or a dash."""
    return "–" if lo is None or hi is None else str(lo) if lo == hi else f"{lo}–{hi}"


def plain(value: float | None, digits: int = 1) -> str:
    """Without a plus sign, with a real minus."""
    return signed(value, digits).removeprefix("+")


def settle(figure: Figure) -> None:
    """Finds the layout once, for all formats: finding it takes as long as drawing, and each saving
    would do it again."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")


def to_svg(figure: Figure) -> str:
    """The figure as SVG with text as text; the same figure gives the same bytes."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    # Not by savefig, which draws once more to find a layout that is settled already.
    out = io.StringIO()
    FigureCanvasSVG(figure).print_svg(out, metadata={"Date": None, "Creator": None})
    return out.getvalue()


def to_png(figure: Figure, dpi: int = 144) -> bytes:
    """The figure as PNG on a transparent ground."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    out, figure.dpi = io.BytesIO(), dpi
    FigureCanvasAgg(figure).print_png(
        out, metadata={"Software": None}, pil_kwargs={"compress_level": 4}
    )
    return out.getvalue()


_PROLOG = re.compile(
    r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", re.DOTALL
)
_GROUP_ID = re.compile(r'<g id="[^"]*"')
_ROLE = re.compile("|".join(ROLES.values()))
_NAMES = {value: name for name, value in ROLES.items()}


def inline(svg: str, description: str, *, narrow: bool = False) -> str:
    """The SVG for a place inside HTML: no prolog, no own size, a description for readers, colours
    as CSS variables.

    A narrow one that needs more than a narrow sheet is wider than its place, in which it scrolls.

    Only style values are touched: a text that happens to spell a colour stays as it is.
    """
    out = _GROUP_ID.sub("<g", _PROLOG.sub("", svg))
    out = re.sub(r'(<svg\b[^>]*?) height="[\d.]+pt"', r"\1", out, count=1)
    out = re.sub(r'(<svg\b[^>]*?) width="[\d.]+pt"', r"\1", out, count=1)
    out = re.sub(
        r'style="[^"]*"', lambda m: _ROLE.sub(lambda c: f"var(--{_NAMES[c[0]]})", m[0]), out
    )
    out = out.replace("<svg", f'<svg role="img" aria-label="{escape(description, quote=True)}"', 1)
    size = re.search(r'viewBox="0 0 ([\d.]+)', out) if narrow else None
    if size and (share := float(size[1]) / (72 * Sheet(narrow=True).width)) > 1.01:
        out = out.replace("<svg", f'<svg style="width: {100 * share:.0f}%"', 1)
    return re.sub(r"\s*\n\s*", "\n", out).strip()
