"""How often codes fire, as figures: rates and shares, the score by their number, and recovery."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...rounding import fixed
from ..statistics.run_arrays import RunArrays, build_arrays
from ..statistics.score_by_code_count import GROUPS, completion_arrays
from ..tables.codes_read import CODES
from ..tables.score_names import Score
from .figure_result import (
    FigureResult,
    Row,
    Tables,
    counted_codes_note,
    rows_with_value,
    tidy_rows,
)
from .sheet import Sheet, TextColumn
from .style import (
    BLUE,
    GREEN,
    INK,
    MAX_AGENTS,
    ORANGE,
    SKY,
    TEXT_SIZE,
    code_label,
    draw_estimate,
    draw_interval,
    draw_reference_line,
    draw_row_note,
    draw_runs,
    format_interval,
    format_number,
    format_percent,
    format_signed,
    label,
    sampling_step,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RATE = "rate per run"
SHARE = "share of fired codes"
"""Measures of the table `codes`."""
JITTER_SEED = 20260601
"""Seed of the sideways scatter of single runs, which only separates the dots."""


def code_rates(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> FigureResult:
    """How often each code fires per run, and its share of all fired codes."""
    rows = [
        row
        for row in tidy_rows(tables, "codes")
        if row["code"] in CODES and row.get("agent") in (None, "(all)")
    ]
    rows_with_value(rows)
    heights = [sheet.rows_height(len(CODES), 0.34)] * 2
    figure, (rate_axes, share_axes) = sheet.adjacent_axes(heights, width_ratios=(1, 1), margin=0.7)
    rate_rows = [row for row in rows if row["measure"] == RATE]
    share_rows = [row for row in rows if row["measure"] == SHARE]
    for row_index, code in enumerate(CODES):
        for row in _rows_for_new_tasks(rate_rows, code):
            _draw_rate(rate_axes, sheet, row_index, row, note=_read_note(row))
        for row in _rows_for_new_tasks(share_rows, code):
            _draw_rate(share_axes, sheet, row_index, row)
    rate_axes.set_title("runs that fired it, %")
    share_axes.set_title("share of fired codes, %" + _first_read_note(share_rows))
    # The notes behind the numbers need room.
    rate_axes.margins(x=0.3 if _first_read_note(rate_rows) else 0.12)
    share_axes.margins(x=0.12)
    for ax in (rate_axes, share_axes):
        ax.grid(axis="x")
        ax.set_xlim(left=0)
        sheet.name_rows(ax, [code_label(code) for code in CODES])
        ax.tick_params(labelleft=ax is rate_axes)
    unread_note = _unread_note(rate_rows)
    return FigureResult(
        figure,
        caption=(
            "A code that fired twice in a run counts once. Lines: 95 % intervals for new tasks."
            " Shares add up to 100 %, so one falls when another rises: read the rates too."
            f"{unread_note}"
        ),
        description=f"Rates per run and shares of the codes E1 to E5.{unread_note}",
    )


def _rows_for_new_tasks(rows: list[Row], code: str) -> list[Row]:
    return [row for row in rows if row["code"] == code and row["population"] != "same"]


def _draw_rate(ax: Axes, sheet: Sheet, row_index: int, row: Row, note: str = "") -> None:
    """Draw a rate or share as a bar with its interval and its number, followed by the note."""
    if row["value"] is None:
        _draw_missing_rate(ax, row_index, row)
        return
    percent = 100 * row["value"]
    ax.barh(row_index, percent, height=sheet.bar_height, color=ORANGE, alpha=0.4, linewidth=0)
    end = percent
    if row["lo"] is not None and row["hi"] is not None:
        lo, end = 100 * max(0.0, row["lo"]), 100 * row["hi"]
        draw_interval(ax, row_index, lo, end, ORANGE, thick=False)
    ax.annotate(
        f"{fixed(percent, 1)}{note}",
        (end, row_index),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=TEXT_SIZE,
    )


def _draw_missing_rate(ax: Axes, row_index: int, row: Row) -> None:
    """Say why a row has no number, with hatching where the rate is unknown.

    An empty row would pass for zero.
    """
    from matplotlib.patches import Rectangle

    is_unknown = row["read"] is None or row["read"] < row["runs"]
    if row["read"] is None:
        reason = "not counted"
    elif is_unknown:
        reason = "not read"
    else:
        reason = "none fired"
    draw_row_note(ax, row_index, f"{reason}{_read_note(row)}")
    if is_unknown:
        hatched = Rectangle(
            (0.52, row_index - 0.31),
            0.48,
            0.62,
            transform=ax.get_yaxis_transform(),
            fill=False,
            hatch="////",
        )
        hatched.set(edgecolor=INK, alpha=0.35, linewidth=0)
        ax.add_patch(hatched)


def _read_note(row: Row) -> str:
    """` (60 of 120 read)` behind a number that does not rest on all runs, else nothing."""
    if row["read"] in (None, row["runs"]):
        return ""
    return f" ({row['read']} of {row['runs']} read)"


def _first_read_note(rows: list[Row]) -> str:
    for row in rows:
        if note := _read_note(row):
            return note
    return ""


def _unread_note(rate_rows: list[Row]) -> str:
    """A sentence for captions on the codes that were not read in all runs."""
    if not _first_read_note(rate_rows):
        return ""
    by_code = {row["code"]: row for row in rate_rows}
    n_runs = rate_rows[0]["runs"]
    read_counts = ", ".join(f"{code} in {row['read']}" for code, row in by_code.items())
    return (
        f" Read, of {n_runs} runs: {read_counts}. What was not read (hatched) is unknown, not zero;"
        " shares count only codes that were read together."
    )


def cliff(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> FigureResult:
    """The score by number of fired codes, and its change in percent, raw and within cells."""
    rows = [row for row in tidy_rows(tables, "cliff") if row["population"] != "same"]
    means = [row for row in rows if row["kind"] == "mean"]
    rows_with_value(means)
    arrays = build_arrays(runs, score.column)
    heights = [2.6, sheet.rows_height(2 + len(CODES), 0.37)]
    figure, (mean_axes, change_axes) = sheet.adjacent_axes(
        heights, width_ratios=(1.2, 1), margin=0.7
    )
    sampling_note = _draw_scores_by_code_count(mean_axes, means, arrays, score)
    _draw_changes(change_axes, rows, sheet)
    changes_with_one_code = [
        row["value"] for row in rows if row["kind"] == "drop_raw" and row["group"] == "1"
    ]
    change = changes_with_one_code[0] if changes_with_one_code else None
    return FigureResult(
        figure,
        caption=(
            "Dots: runs, spread sideways, with their means. Beside or below: change against runs"
            " without codes, raw and among repeats of the same agent, task and tier (within cell);"
            " 95 % intervals for new tasks. Harder cells fire more codes, which distorts the raw"
            " change but not the one within cells."
            f"{sampling_note}{counted_codes_note(arrays)}"
        ),
        description=(
            f"{score.name} by number of fired codes; one code against none:"
            f" {format_signed(change)} %."
        ),
    )


def _draw_scores_by_code_count(ax: Axes, means: list[Row], arrays: RunArrays, score: Score) -> str:
    """Draw runs and their means for 0, 1, 2, and 3 or more codes; return the note on sampling."""
    jitter = np.random.default_rng(JITTER_SEED).uniform(-0.3, 0.3, arrays.n)
    step, sampling_note = sampling_step(arrays.n)
    is_drawn = np.arange(arrays.n) % step == 0
    group_of_run = np.minimum(arrays.codes.sum(1), len(GROUPS) - 1)
    dot_size = 8 if arrays.n > 200 else 18
    for group_index, row in enumerate(means):
        if row["value"] is None:
            continue
        in_group = (group_of_run == group_index) & is_drawn
        x = group_index + jitter[in_group]
        draw_runs(ax, x, arrays.y[in_group], SKY, size=dot_size, alpha=0.4)
        draw_interval(ax, group_index, row["lo"], row["hi"], BLUE, thick=False, vertical=True)
        draw_estimate(ax, group_index, row["value"], BLUE, size=7)
    groups_with_mean = [index for index, row in enumerate(means) if row["value"] is not None]
    values = [means[index]["value"] for index in groups_with_mean]
    ax.plot(groups_with_mean, values, color=BLUE, linewidth=1, zorder=2)
    _write_means(ax, groups_with_mean, values, score)
    group_names = [
        f"{group}\n{format_percent(row['share'])}" for group, row in zip(GROUPS, means, strict=True)
    ]
    ax.set_xticks(range(len(GROUPS)), group_names)
    ax.set_xlim(-0.5, 3.6)
    base = "runs"
    if arrays.n < arrays.n_scored:
        base = f"{arrays.n} runs read, of {arrays.n_scored}"
    ax.set_xlabel(f"fired codes{arrays.among_codes()} (share of {base})")
    ax.set_title(f"{score.titled} of runs, mean and 95 %")
    ax.grid(axis="y")
    return sampling_note


def _write_means(ax: Axes, groups: list[int], means: list[float], score: Score) -> None:
    """Write each mean at the right of its mark, on the side where the line to the next is not."""
    for position, (group, mean) in enumerate(zip(groups, means, strict=True)):
        is_rising = position + 1 < len(means) and means[position + 1] > mean
        ax.annotate(
            format_number(mean, score.digits),
            (group, mean),
            xytext=(7, -4 if is_rising else 4),
            textcoords="offset points",
            va="top" if is_rising else "bottom",
            fontweight="bold",
            annotation_clip=False,
        )


CHANGE_SERIES = (("raw", "raw", -0.17, ORANGE), ("within_cell", "within cell", 0.17, GREEN))
"""Suffix of `kind` in the table `cliff`, name in the legend, vertical offset in the row, colour."""
CHANGE_ROWS = (
    ("1", "drop", "any one code"),
    ("2+", "drop", "two or more"),
    *((code, "single", f"{code} alone") for code in CODES),
)
"""Group and beginning of `kind` in the table `cliff`, and name of the row."""


def _draw_changes(ax: Axes, rows: list[Row], sheet: Sheet) -> None:
    """Draw changes against no code in percent, raw beside within-cell, for groups and codes."""
    by_kind_and_group: dict[tuple[str, str], Row] = {}
    for row in rows:
        by_kind_and_group.setdefault((row["kind"], row["group"]), row)
    has_changes = False
    for row_index, (group, kind, _) in enumerate(CHANGE_ROWS):
        for suffix, _, offset, colour in CHANGE_SERIES:
            change = by_kind_and_group.get((f"{kind}_{suffix}", group))
            if change is None or change["value"] is None:
                continue
            has_changes = True
            y = row_index + offset
            draw_interval(ax, y, change["lo"], change["hi"], colour, thick=False)
            draw_estimate(ax, change["value"], y, colour, size=4.5)
    if has_changes:
        _note_unread_codes(ax, counted_codes=str(rows[0].get("codes") or ""))
    sheet.name_rows(ax, [name for _, _, name in CHANGE_ROWS])
    ax.set_title("change against no code, %")
    if not has_changes:
        _write_missing_changes(ax, rows)
        return
    draw_reference_line(ax, 0)
    ax.grid(axis="x")
    for _, name, _, colour in CHANGE_SERIES:
        ax.plot([], [], "o-", color=colour, markersize=4.5, label=name)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2)


def _note_unread_codes(ax: Axes, counted_codes: str) -> None:
    """Mark the rows of codes that were not counted; nothing if it is unknown which were."""
    if not counted_codes:
        return
    for row_index, (group, kind, _) in enumerate(CHANGE_ROWS):
        if kind == "single" and group not in counted_codes:
            draw_row_note(ax, row_index, "not read")


def _write_missing_changes(ax: Axes, rows: list[Row]) -> None:
    """Write the reason why there are no changes into the empty axes."""
    reasons = [row["reason"] for row in rows if row["kind"] == "drop_raw" and row["reason"]]
    reason = reasons[0] if reasons else "not defined"
    ax.text(
        0.5,
        0.5,
        "\n".join(wrap(label(reason, 90), 32)),
        transform=ax.transAxes,
        ha="center",
        va="center",
        fontsize=TEXT_SIZE,
        style="italic",
    )
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)


def recovery(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> FigureResult:
    """How often runs with two or more codes still hand in a scorable submission."""
    all_rows = tidy_rows(tables, "recovery")
    # One row more than there are agents: that of all agents.
    rows = rows_with_value(row for row in all_rows if row["population"] != "same")[: MAX_AGENTS + 1]
    height = sheet.rows_height(len(rows), 0.34, with_texts=True)
    columns = _recovery_columns(rows)
    figure, axes = sheet.adjacent_axes([height], width_ratios=(1,), margin=1.0, columns=columns)
    ax = axes[0]
    for row_index, row in enumerate(rows):
        colour = INK if _is_all_agents(row) else GREEN
        ax.barh(
            row_index, row["value"], height=sheet.bar_height, color=colour, alpha=0.45, linewidth=0
        )
        draw_interval(ax, row_index, row["lo"], row["hi"], colour, thick=False)
    ax.set_xlim(0, 1)
    ax.grid(axis="x")
    ax.set_xlabel("share of runs with two or more codes\nthat reach a scored submission")
    names = [f"all {sheet.rows.plural}" if _is_all_agents(row) else row["agent"] for row in rows]
    sheet.label_rows(axes, names, columns)
    return FigureResult(
        figure,
        caption=(
            "Interval: jackknife over tasks, or Wilson's where there are few runs (the table says"
            f" which). Two codes are reached on runs of different difficulty: this is not a fair"
            f" comparison of {sheet.rows.plural}."
            f"{counted_codes_note(completion_arrays(runs))}"
        ),
        description=f"Recovery rates of {len(rows)} rows; overall {fixed(rows[0]['value'], 2)}.",
    )


def _is_all_agents(row: Row) -> bool:
    return bool(row["agent"] == "(all)")


def _recovery_columns(rows: list[Row]) -> list[TextColumn]:
    return [
        TextColumn("right", "share", [fixed(row["value"], 2) for row in rows]),
        TextColumn("left", "95 %", [format_interval(row["lo"], row["hi"], 2) for row in rows]),
        TextColumn("right", "runs", [str(row["runs"]) for row in rows]),
        TextColumn(
            "right", "codes a run", [format_number(row["codes_per_run"], 2) for row in rows]
        ),
    ]


__all__ = ["cliff", "code_rates", "recovery"]
