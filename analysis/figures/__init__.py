"""Figures of a cohort: leaderboards, stages, codes and their effects, cost, and judge agreement.

`FIGURES` lists them in the order of the report. `draw` makes one from the tables of `all_tables`
and the run frame: a function of the figure's name, in the module that `FIGURES` gives, draws on a
`sheet` and returns a `figure_result`; `rendering` turns that into SVG and PNG. The same data give
the same bytes. matplotlib is imported with the first drawing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ...atomic_files import atomic_write, refuse_links

if TYPE_CHECKING:
    import polars as pl

    from ..tables.grouping import RowKind
    from ..tables.score_names import Score
    from .figure_result import FigureResult, Tables
    from .sheet import Sheet

FIGURES: dict[str, tuple[str, str]] = {
    "leaderboard": ("leaderboards", "Leaderboard by {score}"),
    "leaderboard_tracks": ("leaderboards", "Leaderboards of tracks by {score}"),
    "pairwise": ("leaderboards", "Paired differences of {score}"),
    "stage_profile": ("stages", "Stages by {row}"),
    "code_rates": ("code_frequency", "Error codes"),
    "code_effects": ("code_effects", "What fired codes go with: {score}"),
    "cliff": ("code_frequency", "{score} by number of fired codes"),
    "recovery": ("code_frequency", "Recovery from several codes"),
    "cost_score": ("cost", "Cost against {score}"),
    "sensitivity": ("code_effects", "How firm the effects are"),
    "agreement": ("judges", "Judge against people"),
    "judge_correction": ("judges", "{score} corrected for the judge"),
}
"""Name of a figure -> module of this package, and title, which may name the {score} and what a
{row} stands for."""


@dataclass(frozen=True)
class Figure:
    """A figure as bytes, or, if it could not be drawn, with the reason."""

    name: str
    title: str
    svg: str | None = None
    narrow: str | None = None
    """The same as SVG for one column of a page, or a phone's screen."""
    png: bytes | None = None
    pdf: bytes | None = None
    narrow_pdf: bytes | None = None
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
    pdf: bool = False,
    rows: RowKind | None = None,
) -> Figure:
    """Draw one of FIGURES from tables (by name) and the run frame.

    `outcome`: the score that the tables are about. `narrow`: also for one column of a page. `rows`:
    what stands in place of agents, in the runs too (`grouping.with_row_names`). If there is nothing
    to draw, the figure has a reason instead.
    """
    from ..tables.grouping import AGENTS
    from ..tables.score_names import score_of
    from .figure_result import NothingToDraw
    from .rendering import to_pdf, to_png, to_svg
    from .style import figure_style

    rows = rows or AGENTS
    title = rows.fill(FIGURES[name][1].replace("{score}", score_of(outcome, runs).name))
    narrow_svg = narrow_pdf = None
    try:
        with figure_style():
            result = draw_on_sheet(name, tables, runs, outcome, rows=rows)
            svg = to_svg(result.figure)
            document = to_pdf(result.figure) if pdf else None
            image = to_png(result.figure) if png else None
            if narrow:
                on_narrow_sheet = draw_on_sheet(name, tables, runs, outcome, narrow=True, rows=rows)
                narrow_figure = on_narrow_sheet.figure
                narrow_svg = to_svg(narrow_figure)
                narrow_pdf = to_pdf(narrow_figure) if pdf else None
    except NothingToDraw as nothing:
        return Figure(name, title, reason=str(nothing))
    return Figure(
        name,
        title,
        svg=svg,
        narrow=narrow_svg,
        png=image,
        pdf=document,
        narrow_pdf=narrow_pdf,
        caption=result.caption,
        description=result.description,
    )


def draw_on_sheet(
    name: str,
    tables: Tables,
    runs: pl.DataFrame,
    outcome: str = "overall",
    *,
    narrow: bool = False,
    rows: RowKind | None = None,
) -> FigureResult:
    """One of FIGURES as a figure of matplotlib with its layout fixed, under `figure_style`.

    Raises NothingToDraw with the reason.
    """
    from ..tables.grouping import AGENTS
    from ..tables.score_names import score_of
    from .rendering import fix_layout
    from .sheet import Sheet

    result = _figure_function(name)(
        tables, runs, score_of(outcome, runs), Sheet(narrow, rows or AGENTS)
    )
    fix_layout(result.figure)
    return result


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
    pdf: bool = False,
    rows: RowKind | None = None,
) -> list[Figure]:
    """Draw every figure, in order; those without data have a reason. Arguments as for `draw`."""
    return [
        draw(name, tables, runs, outcome, png=png, narrow=narrow, pdf=pdf, rows=rows)
        for name in FIGURES
    ]


def write(figures: list[Figure], folder: Path, below: Path | None = None) -> list[Path]:
    """Write the figures that were drawn; return the paths.

    `<name>.svg`, `.pdf` and `.png` are 183 mm wide, two columns of a journal; `<name>-89mm.svg` and
    `.pdf` are one column wide and left out where they would be higher than a page. No link is
    followed between `below` (by default `folder`) and the files.
    """
    below = folder if below is None else below
    refuse_links(folder, below)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for figure in figures:
        files: dict[str, str | bytes | None] = {
            ".svg": figure.svg,
            ".pdf": figure.pdf,
            ".png": figure.png,
        }
        if figure.narrow is not None and _fits_page(figure.narrow):
            files |= {"-89mm.svg": figure.narrow, "-89mm.pdf": figure.narrow_pdf}
        for ending, content in files.items():
            if content is None:
                continue
            # "replace": a name from the data may hold half a surrogate pair.
            data = content.encode("utf-8", "replace") if isinstance(content, str) else content
            paths.append(_write_file(folder / f"{figure.name}{ending}", data, below))
    return paths


MAX_PAGE_MM = 240.0
"""Height of a journal's page within its margins."""


def _fits_page(svg: str) -> bool:
    """Whether a drawing is no higher than a page."""
    height = re.search(r'<svg [^>]*?height="([\d.]+)pt"', svg)
    return height is None or float(height[1]) * 25.4 / 72 <= MAX_PAGE_MM


def _write_file(path: Path, data: bytes, below: Path) -> Path:
    with atomic_write(path, below=below) as temporary_path:
        temporary_path.write_bytes(data)
    return path
