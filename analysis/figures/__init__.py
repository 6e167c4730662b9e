"""Figures of a cohort: leaderboards, stages, codes and their effects, cost, and judge agreement.

`FIGURES` lists them in the order of the report. `draw` makes one from the tables of `all_tables`
and the run frame: a function of the figure's name, in the module that `FIGURES` gives, draws on a
`sheet` and returns a `figure_result`; `rendering` turns that into SVG and PNG. The same data give
the same bytes. matplotlib is imported with the first drawing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ...atomic_files import atomic_write

if TYPE_CHECKING:
    import polars as pl

    from ..tables.score_names import Score
    from .figure_result import FigureResult, Tables
    from .sheet import Sheet

FIGURES: dict[str, tuple[str, str]] = {
    "leaderboard": ("leaderboards", "Leaderboard by {score}"),
    "leaderboard_tracks": ("leaderboards", "Leaderboards of tracks by {score}"),
    "pairwise": ("leaderboards", "Paired differences of {score}"),
    "stage_profile": ("stages", "Stages by agent"),
    "code_rates": ("code_frequency", "Error codes"),
    "code_effects": ("code_effects", "What fired codes go with: {score}"),
    "cliff": ("code_frequency", "{score} by number of fired codes"),
    "recovery": ("code_frequency", "Recovery from several codes"),
    "cost_score": ("cost", "Cost against {score}"),
    "sensitivity": ("code_effects", "How firm the effects are"),
    "agreement": ("judges", "Judge against people"),
    "judge_correction": ("judges", "{score} corrected for the judge"),
}
"""Name of a figure -> module of this package, and title, which may name the {score}."""


@dataclass(frozen=True)
class Figure:
    """A figure as bytes, or, if it could not be drawn, with the reason."""

    name: str
    title: str
    svg: str | None = None
    narrow: str | None = None
    """The same as SVG for a phone's screen."""
    png: bytes | None = None
    caption: str = ""
    """How to read the figure."""
    description: str = ""
    """What the figure shows, for those who cannot see it."""
    reason: str | None = None
    """Why there is nothing to draw; None if the figure was drawn."""


def draw(
    name: str,
    tables: Tables,
    runs: pl.DataFrame,
    outcome: str = "overall",
    *,
    png: bool = True,
    narrow: bool = False,
) -> Figure:
    """Draw one of FIGURES from tables (by name) and the run frame.

    `outcome`: the score that the tables are about. `narrow`: also for a phone's screen. If there is
    nothing to draw, the figure has a reason instead.
    """
    from ..tables.score_names import score_of
    from .figure_result import NothingToDraw
    from .rendering import fix_layout, to_png, to_svg
    from .sheet import Sheet
    from .style import figure_style

    score = score_of(outcome, runs)
    title = FIGURES[name][1].format(score=score.name)
    draw_on_sheet = _figure_function(name)
    narrow_svg = None
    try:
        with figure_style():
            result = draw_on_sheet(tables, runs, score, Sheet())
            fix_layout(result.figure)
            svg = to_svg(result.figure)
            image = to_png(result.figure) if png else None
            if narrow:
                narrow_result = draw_on_sheet(tables, runs, score, Sheet(narrow=True))
                fix_layout(narrow_result.figure)
                narrow_svg = to_svg(narrow_result.figure)
    except NothingToDraw as nothing:
        return Figure(name, title, reason=str(nothing))
    return Figure(
        name,
        title,
        svg=svg,
        narrow=narrow_svg,
        png=image,
        caption=result.caption,
        description=result.description,
    )


def _figure_function(
    name: str,
) -> Callable[[Tables, pl.DataFrame, Score, Sheet], FigureResult]:
    module = import_module(f".{FIGURES[name][0]}", __name__)
    return getattr(module, name)  # type: ignore[no-any-return]


def draw_all(
    tables: Tables,
    runs: pl.DataFrame,
    outcome: str = "overall",
    *,
    png: bool = True,
    narrow: bool = False,
) -> list[Figure]:
    """Draw every figure, in order; those without data have a reason. Arguments as for `draw`."""
    return [draw(name, tables, runs, outcome, png=png, narrow=narrow) for name in FIGURES]


def write(figures: list[Figure], folder: Path) -> list[Path]:
    """Write <name>.svg and <name>.png of the figures that were drawn; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for figure in figures:
        if figure.svg is not None:
            # "replace": a name from the data may hold half a surrogate pair.
            data = figure.svg.encode("utf-8", "replace")
            paths.append(_write_file(folder / f"{figure.name}.svg", data))
        if figure.png is not None:
            paths.append(_write_file(folder / f"{figure.name}.png", figure.png))
    return paths


def _write_file(path: Path, data: bytes) -> Path:
    with atomic_write(path) as temporary_path:
        temporary_path.write_bytes(data)
    return path
