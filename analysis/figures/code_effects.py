"""Effects of codes as figures: the effects with their parts, and their robustness."""

from __future__ import annotations

from collections import defaultdict
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...rounding import fixed
from ..statistics.effects import FEW_FIRINGS
from ..tables.score_names import OVERALL, Score
from .figure_result import (
    FigureResult,
    NothingToDraw,
    Row,
    Tables,
    pair_populations,
    rows_with_value,
    tidy_rows,
)
from .sheet import Sheet, TextColumn
from .style import (
    BLUE,
    NOTE_SIZE,
    ORANGE,
    PINK,
    SKY,
    TEXT_SIZE,
    YELLOW,
    code_label,
    draw_estimate,
    draw_interval,
    draw_reference_line,
    draw_row_note,
    format_interval,
    format_signed,
    label,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = (
    ("judge part", "judged stages S1–S3", SKY),
    ("rule part", "checked stages S4–S5", YELLOW),
    ("task part: zeroed", "Task of 0, a rule", ORANGE),
    ("task part: quality", "Task above 0", BLUE),
)
"""Parts of an effect: in the table `effect_parts`, in the legend, and colour."""
REMAINING_SHARES = (
    (0.0, "nothing left", ORANGE, 2.2),
    (0.25, "a quarter", PINK, 1.1),
    (0.5, "half", SKY, 1.1),
    (0.75, "three quarters", BLUE, 1.1),
)
"""Lines of `sensitivity`: share of the effect that remains, name, colour, width in points."""
MAX_ROBUSTNESS = 0.999
"""A robustness value of 1 would divide by 0."""


def code_effects(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> FigureResult:
    """Overlap-weighted effects of the codes; for Overall with their exact split into parts.

    The parts are judged stages, checked stages, and Task with and without zeros.
    """
    pairs = pair_populations(tidy_rows(tables, "code_effects"), "code")
    effects = [new_tasks for new_tasks, _ in pairs]
    rows_with_value(effects)
    parts = tidy_rows(tables, "effect_parts") if score == OVERALL else []
    reading_note = _reading_note(effects)
    columns = _effect_columns(effects, score.digits, with_read_counts=bool(reading_note))
    figure, axes = _effect_axes(sheet, len(effects), columns, with_parts=bool(parts))
    effect_axes = axes[0]
    for row_index, (new_tasks, same_tasks) in enumerate(pairs):
        _draw_effect(effect_axes, row_index, new_tasks, same_tasks)
    effect_axes.set_title(f"effect on {score.titled}")
    effect_axes.set_xlim(_effect_limits(effects, score))
    _add_zero_line(effect_axes)
    if parts:
        part_axes = axes[1]
        _draw_parts(part_axes, effects, parts, sheet.bar_height)
        part_axes.set_xlim(effect_axes.get_xlim())
        part_axes.set_title("the same effect, split")
        if part_axes.patches:
            _add_part_legend(figure, sheet)
        _add_zero_line(part_axes)
    sheet.label_rows(axes, [code_label(row["code"]) for row in effects], columns)
    parts_note = ""
    if parts:
        parts_note = (
            " Only “Task above 0” depends on neither a judge nor a rule; for E5 the checked part"
            " holds by definition."
        )
    effect_list = ", ".join(
        f"{row['code']} {format_signed(row['value'], score.digits)}"
        for row in effects
        if row["value"] is not None
    )
    return FigureResult(
        figure,
        caption=(
            "Pale bar: 95 % interval for new tasks; thin line: for repeats of these tasks; hollow:"
            " too few firings to be informative, or runs that differed before the code could act."
            " An association among repeats with the same other codes, not a cause."
            f"{parts_note}{reading_note}"
        ),
        description=f"Effects of fired codes on {score.name}: {effect_list}",
    )


def _effect_axes(
    sheet: Sheet, n_codes: int, columns: list[TextColumn], *, with_parts: bool
) -> tuple[Figure, list[Axes]]:
    """Axes for effects, for parts if there are any, and, on a page, for columns of text."""
    heights = [sheet.rows_height(n_codes, 0.42, with_texts=True)]
    width_ratios = [1.0]
    if with_parts:
        heights.append(sheet.rows_height(n_codes, 0.42))
        width_ratios = [1.25, 1.0]
    return sheet.adjacent_axes(heights, width_ratios, margin=1.35, columns=columns)


def _draw_effect(ax: Axes, row_index: int, new_tasks: Row, same_tasks: Row | None) -> None:
    """Draw an effect with its intervals, or the reason why it was not estimated."""
    if new_tasks["value"] is None:
        reason = label(new_tasks["reason"] or "not estimated", 76)
        lines = wrap(reason, 40)[:2]
        note = draw_row_note(ax, row_index, "\n".join(lines), x=0, size=NOTE_SIZE)
        note.set_in_layout(False)
        return
    draw_interval(ax, row_index, new_tasks["lo"], new_tasks["hi"], BLUE, thick=True)
    if same_tasks is not None:
        draw_interval(ax, row_index, same_tasks["lo"], same_tasks["hi"], BLUE, thick=False)
    draw_estimate(ax, new_tasks["value"], row_index, BLUE, hollow=new_tasks["status"] != "ok")


def _effect_limits(effects: list[Row], score: Score) -> tuple[float, float]:
    """Limits of the axis of effects: zero, all estimates and intervals, and some room."""
    ends = [row[name] for row in effects for name in ("lo", "value", "hi") if row[name] is not None]
    scale = score.high or max(map(abs, ends))
    room_below_zero, room_above_zero = scale / 10, scale / 100
    return min(-room_below_zero, *ends) * 1.04, max(room_above_zero, *ends) * 1.04


def _add_zero_line(ax: Axes) -> None:
    draw_reference_line(ax, 0)
    ax.grid(axis="x")


def _draw_parts(ax: Axes, effects: list[Row], parts: list[Row], bar_height: float) -> None:
    """Draw each effect as a stack of its parts: losses to the left of zero, gains to the right."""
    value_of_part = {(row["code"], row["part"]): row["value"] for row in parts}
    # Ends of the stacks so far, by code and whether the part is a loss.
    ends: defaultdict[tuple[str, bool], float] = defaultdict(float)
    for part, title, colour in PARTS:
        legend_label: str | None = title
        for row_index, effect in enumerate(effects):
            code = effect["code"]
            value = value_of_part.get((code, part))
            if effect["value"] is None or value is None:
                continue
            is_loss = value < 0
            ax.barh(
                row_index,
                value,
                left=ends[code, is_loss],
                height=bar_height,
                color=colour,
                alpha=0.75,
                linewidth=0,
                label=legend_label,
            )
            ends[code, is_loss] += value
            legend_label = None  # once is enough for the legend


def _add_part_legend(figure: Figure, sheet: Sheet) -> None:
    figure.legend(
        loc="outside lower center",
        ncols=2 if sheet.narrow else 3,
        handlelength=1,
        columnspacing=1.5,
    )


def _effect_columns(effects: list[Row], digits: int, *, with_read_counts: bool) -> list[TextColumn]:
    estimates = [format_signed(row["value"], digits) for row in effects]
    intervals = [format_interval(row["lo"], row["hi"], digits) for row in effects]
    fired = ["–" if row["fired"] is None else str(row["fired"]) for row in effects]
    heading = "fired"
    if with_read_counts:
        heading = "fired / read"
        fired = [f"{n} / {row['read']}" for n, row in zip(fired, effects, strict=True)]
    return [
        TextColumn("right", "effect", estimates),
        TextColumn("left", "95 %", intervals),
        TextColumn("right", heading, fired),
    ]


def _reading_note(effects: list[Row]) -> str:
    """A sentence for captions on the codes that were not read in all runs."""
    partly_read = [
        f"{row['code']} in {row['read']} of {row['runs']}"
        for row in effects
        if row["read"] < row["runs"]
    ]
    if not partly_read:
        return ""
    return f" Runs read: {', '.join(partly_read)}; effects are estimated on these."


def sensitivity(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> FigureResult:
    """How strong an unobserved cause would have to be to erase each effect.

    Strength is the cause's partial R² with the code (x) and with the score (y).
    """
    effects = _informative_effects(tables)
    n_columns = 2 if sheet.narrow else 4
    figure, grid = sheet.small_multiples(
        len(effects), n_columns, height=1.8 if sheet.narrow else 2.1, margin=1.2
    )
    limit = 1.0 if effects[0]["robustness_value"] > 0.75 else 0.8
    for row, ax in zip(effects, grid, strict=True):
        _draw_sensitivity(ax, row["robustness_value"], limit)
        effect = format_signed(row["value"], score.digits)
        ax.set_title(f"{row['code']}: {effect}\nRV {row['robustness_value']:.2f}")
    _add_sensitivity_legend(figure, n_columns)
    figure.supxlabel("partial R² of an unobserved cause with the code", fontsize=TEXT_SIZE)
    figure.supylabel(f"partial R² with {score.name}", fontsize=TEXT_SIZE)
    robustness_list = ", ".join(
        f"{row['code']} {fixed(row['robustness_value'], 2)}" for row in effects
    )
    return FigureResult(
        figure,
        caption=(
            "Lines: what is left of the effect if an unobserved cause of that strength acted within"
            " cells; on the thick line nothing is left. RV: the strength, equal on both sides, that"
            " erases the effect (Cinelli and Hazlett)."
        ),
        description=f"Robustness values: {robustness_list}",
    )


def _informative_effects(tables: Tables) -> list[Row]:
    """Effects for new tasks that are informative, the most robust first."""
    effects = [
        row
        for row in tidy_rows(tables, "code_effects")
        if row["population"] != "same"
        and row["value"] is not None
        and row["robustness_value"]
        and row["status"] != FEW_FIRINGS
    ]
    if not effects:
        raise NothingToDraw("no code has an informative effect")
    return sorted(effects, key=lambda row: -row["robustness_value"])


def _draw_sensitivity(ax: Axes, robustness_value: float, limit: float) -> None:
    """Draw the strengths of an unobserved cause at which some share of the effect remains.

    Both axes end at `limit`. The lines follow from Cinelli and Hazlett (2020):
    bias / estimate = sqrt(R2_score * R2_code / (1 - R2_code)) / f, with f2 = RV2 / (1 - RV).
    """
    rv = min(robustness_value, MAX_ROBUSTNESS)
    r2_code = np.geomspace(1e-4, min(limit, MAX_ROBUSTNESS), 300)
    for remaining_share, _, colour, width in REMAINING_SHARES:
        r2_score = ((1 - remaining_share) * rv) ** 2 / (1 - rv) * (1 - r2_code) / r2_code
        within_axes = np.where(r2_score <= 1.2 * limit, r2_score, np.nan)
        ax.plot(r2_code, within_axes, color=colour, linewidth=width)
    draw_estimate(ax, rv, rv, ORANGE, size=5)
    ax.set_xlim(0, limit)
    ax.set_ylim(0, limit)
    ax.set_aspect("equal")


def _add_sensitivity_legend(figure: Figure, n_columns: int) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, linewidth=width, label=name)
        for _, name, colour, width in REMAINING_SHARES
    ]
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=n_columns,
        title="left of the effect",
        handlelength=1.6,
    )


__all__ = ["code_effects", "sensitivity"]
