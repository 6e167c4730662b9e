"""The look that all figures share: colours by role, labels, number formats, and marks.

Colours stand for roles. In a file they are mid-tones that can be read on a white and on a dark
page. In the report, `rendering.inline` turns each into a CSS variable, so that the page's theme
decides.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...console import cells, fit
from ...rounding import fixed
from ...sanitize import sanitize_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

INK = "#6e7681"
"""Text, axes and grid: contrast 4.6:1 against white, 4.1:1 against a near-black page."""
BLUE = "#0173b2"
ORANGE = "#d55e00"
GREEN = "#029e73"
PINK = "#cc78bc"
SKY = "#56a5d9"
YELLOW = "#c79100"
# After the colour-blind-safe palettes of Okabe and Ito, mid-tones only. Where two colours must be
# distinguished, they are blue and orange.

ROLES = {
    "ink": INK,
    "blue": BLUE,
    "orange": ORANGE,
    "green": GREEN,
    "pink": PINK,
    "sky": SKY,
    "yellow": YELLOW,
}
"""CSS variable -> the colour that it replaces."""
SERIES = (BLUE, ORANGE, GREEN, PINK, YELLOW, SKY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MAX_AGENTS = 40
"""Agents in a figure; the tables have all."""
MAX_POINTS = 600
"""Runs in one scatter of points: more would make the page heavy and hide each other."""

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
def figure_style() -> Iterator[None]:
    """Apply the style while drawing and saving.

    Glyphs that the font lacks (names in other scripts) give no warning.
    """
    import matplotlib

    with matplotlib.rc_context(_RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        warnings.filterwarnings("ignore", message=".*missing from font.*")
        yield


# Labels from the data


def label(text: object, max_width: int = 26) -> str:
    """A name from the data on one line, without control characters, cut to `max_width` columns."""
    return fit(sanitize_line(str(text)), max_width)


def track_label(track: str) -> str:
    """A track's name with spaces."""
    return label(track.replace("_", " "))


def distinct_labels(texts: Sequence[object], max_width: int = 26) -> list[str]:
    """Labels cut to `max_width` columns that stay distinct.

    Texts that would be cut to the same label keep their ends instead of their beginnings.
    """
    full_texts = [sanitize_line(str(text)) for text in texts]
    cut_texts = [fit(text, max_width) for text in full_texts]
    labels = []
    for full, cut in zip(full_texts, cut_texts, strict=True):
        is_ambiguous = cut_texts.count(cut) > 1 and cells(full) > max_width
        labels.append("…" + full[-(max_width - 1) :] if is_ambiguous else cut)
    return labels


_CODE_NAMES = {
    "E1": "understanding",
    "E2": "data, model setup",
    "E3": "verification",
    "E4": "implementation",
    "E5": "deliverable",
}


def code_label(code: str) -> str:
    """A code with the short name that figures have room for."""
    name = _CODE_NAMES.get(code)
    return f"{code} {name}" if name else label(code)


# Numbers as text


def format_signed(value: float | None, digits: int = 1) -> str:
    """A number with its sign, a real minus and no negative zero; a dash for None."""
    if value is None:
        return "–"
    text = fixed(abs(value), digits)
    is_zero = not text.strip("0.")
    if is_zero:
        return text
    return f"+{text}" if value > 0 else f"−{text}"


def format_number(value: float | None, digits: int = 1) -> str:
    """A number without a plus sign, with a real minus; a dash for None."""
    return format_signed(value, digits).removeprefix("+")


def format_interval(lo: float | None, hi: float | None, digits: int = 1) -> str:
    """`[lo, hi]`; empty where there is no interval."""
    if lo is None or hi is None:
        return ""
    return f"[{format_number(lo, digits)}, {format_number(hi, digits)}]"


def format_ranks(lo: int | None, hi: int | None) -> str:
    """A set of ranks: `2–4`, `1`, or a dash."""
    if lo is None or hi is None:
        return "–"
    return str(lo) if lo == hi else f"{lo}–{hi}"


def format_percent(share: float | None) -> str:
    """A share (0-1) as whole percent; a dash for None."""
    return "–" if share is None else f"{fixed(100 * share, 0)} %"


# Axes and marks


def set_row_names(ax: Axes, names: Sequence[str]) -> None:
    """Write names down the y axis, the first on top, and nothing else on it."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)


def strip_x_axis(ax: Axes) -> None:
    """Leave only names along the x axis: no line, no ticks."""
    ax.spines["bottom"].set_visible(False)
    ax.tick_params(axis="x", length=0)


def draw_interval(
    ax: Axes,
    position: float,
    lo: float | None,
    hi: float | None,
    colour: str,
    *,
    thick: bool,
    vertical: bool = False,
) -> None:
    """Draw an interval as a line: thick and pale for new tasks, thin for the same tasks.

    `position`: y of a horizontal line, x of a vertical one. Draws nothing where a limit is None.
    """
    if lo is None or hi is None:
        return
    line: dict[str, Any] = {"color": colour, "zorder": 2 if thick else 3, "solid_capstyle": "butt"}
    line |= {"linewidth": 6, "alpha": 0.32} if thick else {"linewidth": 1.5}
    if vertical:
        ax.plot([position, position], [lo, hi], **line)
    else:
        ax.plot([lo, hi], [position, position], **line)


def draw_estimate(
    ax: Axes, x: float, y: float, colour: str, *, hollow: bool = False, size: float = 6
) -> None:
    """Draw a point estimate; hollow when nothing is claimed of it."""
    ax.plot(
        [x],
        [y],
        "o",
        markersize=size,
        markerfacecolor="none" if hollow else colour,
        markeredgecolor=colour,
        markeredgewidth=1.4,
        zorder=4,
    )


def draw_runs(ax: Axes, x: Any, y: Any, colour: str, *, size: float, alpha: float) -> None:
    """Draw single runs as dots in the background. `size`: area of a dot in square points."""
    ax.plot(x, y, "o", markersize=size**0.5, color=colour, alpha=alpha, markeredgewidth=0, zorder=1)


def draw_row_note(ax: Axes, row: int, text: str, *, x: float = 0.02, size: float = 8) -> Text:
    """Write a note in a row that has no number. `x`: share of the width of the axes."""
    return ax.text(
        x,
        row,
        text,
        transform=ax.get_yaxis_transform(),
        va="center",
        fontsize=size,
        style="italic",
    )


def sampling_step(n_runs: int) -> tuple[int, str]:
    """Every how many-th of `n_runs` is drawn as a dot, and a sentence on that for the caption."""
    step = -(-n_runs // MAX_POINTS)
    return step, f" A dot stands for every {step}th run." if step > 1 else ""
