"""Figures of a cohort: leaderboards, stages, codes and their effects, the cliff, recovery, cost,
agreement, sensitivity.

`FIGURES` names them in the order of the report; `draw` makes one from the tables of `all_tables`
and the run frame. matplotlib loads with the first drawing. The same data give the same bytes.
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
    from .figure_result import Drawn, Tables
    from .style import Sheet

# name -> (module of this package, title, which may name the {score})
FIGURES: dict[str, tuple[str, str]] = {
    "leaderboard": ("boards", "Leaderboard by {score}"),
    "leaderboard_tracks": ("boards", "Leaderboards of tracks by {score}"),
    "pairwise": ("boards", "Paired differences of {score}"),
    "stage_profile": ("profiles", "Stages by agent"),
    "code_rates": ("codes", "Error codes"),
    "code_effects": ("codes", "What fired codes go with: {score}"),
    "cliff": ("codes", "{score} by number of fired codes"),
    "recovery": ("boards", "Recovery from several codes"),
    "cost_score": ("profiles", "Cost against {score}"),
    "sensitivity": ("codes", "How firm the effects are"),
    "agreement": ("judges", "Judge against people"),
    "judge_correction": ("judges", "{score} corrected for the judge"),
}


@dataclass(frozen=True)
class Figure:
    """A drawn figure as bytes, or `svg` and `png` None with the reason."""

    name: str
    title: str
    svg: str | None = None
    narrow: str | None = None
    """The same as SVG for a screen as narrow as a telephone's."""
    png: bytes | None = None
    caption: str = ""
    description: str = ""
    reason: str | None = None


def draw(
    name: str,
    tables: Tables,
    runs: pl.DataFrame,
    outcome: str = "overall",
    *,
    png: bool = True,
    narrow: bool = False,
) -> Figure:
    """One figure of FIGURES from tables (by name) and the run frame; with a reason instead when
    there is nothing to draw.

    `outcome`: the score that the tables are about. `narrow`: also for a narrow screen.
    """
    from ..tables.score_names import score_of
    from .figure_result import Nothing
    from .style import Sheet, settle, styled, to_png, to_svg

    score = score_of(outcome, runs)
    module, title = FIGURES[name][0], FIGURES[name][1].format(score=score.name)
    function: Callable[[Tables, pl.DataFrame, Score, Sheet], Drawn] = getattr(
        import_module(f".{module}", __name__), name
    )
    sheets = [Sheet(), *([Sheet(narrow=True)] if narrow else [])]
    try:
        drawn = [function(tables, runs, score, sheet) for sheet in sheets]
    except Nothing as nothing:
        return Figure(name, title, reason=str(nothing))
    with styled():
        for one in drawn:
            settle(one.figure)
        wide, *other = [to_svg(one.figure) for one in drawn]
        image = to_png(drawn[0].figure) if png else None
        return Figure(
            name,
            title,
            wide,
            other[0] if other else None,
            image,
            drawn[0].caption,
            drawn[0].description,
        )


def draw_all(
    tables: Tables,
    runs: pl.DataFrame,
    outcome: str = "overall",
    *,
    png: bool = True,
    narrow: bool = False,
) -> list[Figure]:
    """Every figure, in order; those without data carry their reason. See `draw`."""
    return [draw(name, tables, runs, outcome, png=png, narrow=narrow) for name in FIGURES]


def write(figures: list[Figure], folder: Path) -> list[Path]:
    """Writes <name>.svg and <name>.png of the figures that could be drawn; returns the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    out = []
    for figure in figures:
        for suffix, data in (
            ("svg", figure.svg and figure.svg.encode("utf-8", "replace")),
            ("png", figure.png),
        ):
            if data:
                path = folder / f"{figure.name}.{suffix}"
                with atomic_write(path) as part:
                    part.write_bytes(data)
                out.append(path)
    return out
