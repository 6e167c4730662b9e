"""The look that all figures share: colours by role, labels, number formats, and marks.

Colours stand for roles. In a file they are mid-tones that can be read on a white and on a dark
page. In the report, `rendering.inline` turns each into a CSS variable, so that the page's theme
decides.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
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

TITLE_SIZE = 8.5
TEXT_SIZE = 8.0
NOTE_SIZE = 7.0
"""Sizes of text in points. On a narrow sheet the smallest has 10 pixels on a screen of 368."""

_RC: dict[str, Any] = {
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": TEXT_SIZE,
    "axes.titlesize": TITLE_SIZE,
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.labelsize": TEXT_SIZE,
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
    "legend.fontsize": TEXT_SIZE,
    "legend.title_fontsize": TEXT_SIZE,
    "lines.solid_capstyle": "butt",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "savefig.transparent": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "ambjudge",
    "pdf.fonttype": 42,  # text that can be edited; journals refuse type 3
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

    Texts that would be cut to the same label lose their middle instead of their end; if that does
    not distinguish them, they are numbered.
    """
    full_texts = [sanitize_line(str(text)) for text in texts]
    labels = _cut_ambiguous(full_texts, [fit(text, max_width) for text in full_texts], max_width)
    counts = Counter(labels)
    numbers: Counter[str] = Counter()
    for index, text in enumerate(labels):
        if counts[text] > 1 and full_texts.count(full_texts[index]) == 1:
            numbers[text] += 1
            suffix = f" ({numbers[text]})"
            labels[index] = fit(text, max_width - len(suffix)) + suffix
    return labels


def _cut_ambiguous(full_texts: list[str], cut_texts: list[str], max_width: int) -> list[str]:
    """The cut texts, with those that are alike cut in their middle."""
    counts = Counter(cut_texts)
    labels = []
    for full, cut in zip(full_texts, cut_texts, strict=True):
        is_ambiguous = counts[cut] > 1 and cells(full) > max_width
        labels.append(_without_middle(full, max_width) if is_ambiguous else cut)
    return labels


def _without_middle(text: str, max_width: int) -> str:
    """The beginning and the end of a text, in at most `max_width` columns."""
    tail_length = max_width - 1 - max_width // 2
    while True:
        tail = text[-tail_length:] if tail_length else ""
        label = fit(text, max_width - cells(tail)) + tail
        if cells(label) <= max_width or not tail_length:
            return label
        tail_length -= 1


def wrap_name(name: str, max_width: int) -> str:
    """A name on one line or, if it is wider than `max_width` columns, on two.

    It is broken after a separator where there is one.
    """
    if cells(name) <= max_width:
        return name
    ends = [match.end() for match in _SEPARATOR.finditer(name)]
    fitting = [end for end in ends if max_width // 2 <= cells(name[:end]) <= max_width]
    end = fitting[-1] if fitting else max_width
    return f"{name[:end].rstrip()}\n{name[end:].lstrip()}"


_SEPARATOR = re.compile(r"[-_./: ]")
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


NAME_WIDTH = 24
"""Columns of text beside the rows of a page; longer names take two lines."""


def set_row_names(ax: Axes, names: Sequence[str]) -> None:
    """Write names down the y axis, the first on top, and nothing else on it."""
    ax.set_yticks(range(len(names)), [wrap_name(name, NAME_WIDTH) for name in names])
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
        clip_on=False,
    )


def draw_runs(ax: Axes, x: Any, y: Any, colour: str, *, size: float, alpha: float) -> None:
    """Draw single runs as dots in the background. `size`: area of a dot in square points."""
    ax.plot(x, y, "o", markersize=size**0.5, color=colour, alpha=alpha, markeredgewidth=0, zorder=1)


REFERENCE_LINE = "_reference"
"""Label of a line, such as that at zero, which leaves out the texts that it meets."""


def draw_reference_line(ax: Axes, x: float) -> None:
    """Draw a line across all rows."""
    ax.axvline(x, color=INK, linewidth=0.8, label=REFERENCE_LINE)


def draw_row_note(
    ax: Axes, row: int, text: str, *, x: float = 0.02, size: float = TEXT_SIZE
) -> Text:
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


def label_log_axis(ax: Axes, low: float, high: float) -> None:
    """Limits and ticks of a logarithmic x axis for values from `low` to `high`.

    At least two ticks have labels, however narrow the range is.
    """
    room = max(1.15, (high / low) ** 0.06)
    low, high = low / room, high * room
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    ax.minorticks_off()
    ticks = _log_ticks(low, high)
    ax.set_xticks(ticks, [_short_number(tick) for tick in ticks])


_TICK_DIGITS: tuple[tuple[float, ...], ...] = (
    (1,),
    (1, 3),
    (1, 2, 5),
    (1, 1.5, 2, 3, 5, 7),
    tuple(number / 10 for number in range(10, 100)),
)
"""Leading digits of ticks in a decade, from few to many."""


def _log_ticks(low: float, high: float) -> list[float]:
    """Two to five ticks between two positive numbers; more if there is no such choice."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for digits in _TICK_DIGITS:
        candidates = [digit * 10.0**decade for decade in decades for digit in digits]
        ticks = [tick for tick in candidates if low <= tick <= high]
        if len(ticks) >= 3:
            break
    step = -(-len(ticks) // 5)
    return ticks[::step]


def _short_number(value: float) -> str:
    """`0.03`, `20`, `150k`, `2M`."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9999 * size:
            return f"{value / size:.4g}{unit}"
    return f"{value:.4g}"


def sampling_step(n_runs: int) -> tuple[int, str]:
    """Every how many-th of `n_runs` is drawn as a dot, and a sentence on that for the caption."""
    step = -(-n_runs // MAX_POINTS)
    return step, f" A dot stands for every {step}th run." if step > 1 else ""
