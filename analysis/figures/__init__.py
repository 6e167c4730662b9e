"""Figures of a cohort: leaderboards, stages, codes and their effects, the cliff, recovery, cost, agreement, sensitivity.

`FIGURES` names them in the order of the report; `draw` makes one from the tables of `all_tables` and the run frame.
matplotlib loads with the first drawing. The same data give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ...whole_files import whole

if TYPE_CHECKING:
    import polars as pl

    from .drawn import Drawn, Tables

# name -> (module of this package, title)
FIGURES: dict[str, tuple[str, str]] = {
    "leaderboard": ("boards", "Leaderboard"),
    "leaderboard_tracks": ("boards", "Leaderboards by track"),
    "pairwise": ("boards", "Paired differences"),
    "stage_profile": ("profiles", "Stages by agent"),
    "code_rates": ("codes", "Error codes"),
    "code_effects": ("codes", "What fired codes go with"),
    "cliff": ("codes", "Overall by number of fired codes"),
    "recovery": ("boards", "Recovery from several codes"),
    "cost_score": ("profiles", "Cost against score"),
    "sensitivity": ("codes", "How firm the effects are"),
    "agreement": ("judges", "Judge against people"),
    "judge_correction": ("judges", "Scores corrected for the judge"),
}


@dataclass(frozen=True)
class Figure:
    """A drawn figure as bytes, or `svg` and `png` None with the reason."""

    name: str
    title: str
    svg: str | None = None
    png: bytes | None = None
    caption: str = ""
    description: str = ""
    reason: str | None = None


def draw(name: str, tables: Tables, runs: pl.DataFrame, *, png: bool = True) -> Figure:
    """One figure of FIGURES from tables (by name) and the run frame; with a reason instead when there is nothing to draw."""
    from .drawn import Nothing
    from .style import settle, styled, to_png, to_svg

    module, title = FIGURES[name]
    function: Callable[[Tables, pl.DataFrame], Drawn] = getattr(import_module(f".{module}", __name__), name)
    try:
        drawn = function(tables, runs)
    except Nothing as nothing:
        return Figure(name, title, reason=str(nothing))
    with styled():
        settle(drawn.figure)
        svg = to_svg(drawn.figure)
        return Figure(name, title, svg, to_png(drawn.figure) if png else None, drawn.caption, drawn.description)


def draw_all(tables: Tables, runs: pl.DataFrame, *, png: bool = True) -> list[Figure]:
    """Every figure, in order; those without data carry their reason."""
    return [draw(name, tables, runs, png=png) for name in FIGURES]


def write(figures: list[Figure], folder: Path) -> list[Path]:
    """Writes <name>.svg and <name>.png of the figures that could be drawn; returns the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    out = []
    for figure in figures:
        for suffix, data in (("svg", figure.svg and figure.svg.encode("utf-8", "replace")), ("png", figure.png)):
            if data:
                path = folder / f"{figure.name}.{suffix}"
                with whole(path) as part:
                    part.write_bytes(data)
                out.append(path)
    return out
