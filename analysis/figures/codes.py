"""Codes as figures: how often they fire, what they go with, how the score falls with their number,
how firm that is."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ..statistics.run_arrays import build_arrays
from ..statistics.score_by_code_count import GROUPS
from ..tables.codes_read import CODES
from ..tables.score_names import OVERALL, Score
from . import style
from .figure_result import (
    Drawn,
    Nothing,
    Row,
    Tables,
    both_populations,
    counted,
    tidy_rows,
    with_value,
)
from .style import BLUE, GREEN, INK, ORANGE, PINK, SKY, YELLOW, Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CODE_NAMES = {
    "E1": "understanding",
    "E2": "data, model setup",
    "E3": "verification",
    "E4": "implementation",
    "E5": "deliverable",
}
PARTS = (
    ("judge part", "judged stages S1–S3", SKY),
    ("rule part", "checked stages S4–S5", YELLOW),
    ("task part: zeroed", "Task of 0, a rule", ORANGE),
    ("task part: quality", "Task above 0", BLUE),
)
LEFT = (
    (0.0, "nothing left", ORANGE, 2.2),
    (0.25, "a quarter", PINK, 1.1),
    (0.5, "half", SKY, 1.1),
    (0.75, "three quarters", BLUE, 1.1),
)
SEED = 20260601
"""Of the sideways scatter of single runs: looks only."""


def _named(code: str) -> str:
    return f"{code} {CODE_NAMES[code]}" if code in CODE_NAMES else style.label(code)


def code_rates(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> Drawn:
    """How often each code fires per run, and its share of all fired codes."""
    rows = tidy_rows(tables, "codes")
    rows = [row for row in rows if row["code"] in CODES and row.get("agent") in (None, "(all)")]
    measures = [
        ("rate per run", "runs that fired it, %"),
        ("share of fired codes", "share of fired codes, %"),
    ]
    with_value(rows)
    with style.styled():
        figure, axes = sheet.beside([sheet.tall(len(CODES), 0.34)] * 2, (1, 1), 0.7)
        for ax, (measure, title) in zip(axes, measures, strict=True):
            shares = measure != "rate per run"
            for at, code in enumerate(CODES):
                pair = both_populations(
                    (r for r in rows if r["measure"] == measure and r["code"] == code), "code"
                )
                for new, _ in pair:
                    if new["value"] is None:
                        _missing(ax, at, new)
                        continue
                    ax.barh(
                        at,
                        100 * new["value"],
                        height=sheet.bar,
                        color=ORANGE,
                        alpha=0.4,
                        linewidth=0,
                    )
                    lo, hi = (new["lo"], new["hi"]) if new["lo"] is not None else (None, None)
                    if lo is not None and hi is not None:
                        style.interval(ax, at, 100 * max(0.0, lo), 100 * hi, ORANGE, thick=False)
                    end = 100 * (hi if hi is not None else new["value"])
                    ax.annotate(
                        f"{100 * new['value']:.1f}{'' if shares else _read(new)}",
                        (end, at),
                        xytext=(5, 0),
                        textcoords="offset points",
                        va="center",
                        fontsize=8.5,
                    )
            partly = next(
                (_read(row) for row in rows if row["measure"] == measure and _read(row)), ""
            )
            ax.set_title(title + (partly if shares else ""))
            ax.grid(axis="x")
            ax.margins(x=0.3 if partly and not shares else 0.12)
            ax.set_xlim(left=0)
            sheet.named_rows(ax, [_named(code) for code in CODES])
            ax.tick_params(labelleft=ax is axes[0])
    return Drawn(
        figure,
        "A code that fired twice in a run counts once. Lines: 95 % intervals for new tasks. Shares"
        " add up to 100 %, so one falls when another rises: read the rates too." + _unread(rows),
        "Rates per run and shares of the codes E1 to E5." + _unread(rows),
    )


def _read(row: Row) -> str:
    """` (60 of 120 read)` behind a number that does not rest on all runs."""
    return "" if row["read"] in (None, row["runs"]) else f" ({row['read']} of {row['runs']} read)"


def _missing(ax: Axes, at: int, row: Row) -> None:
    """Hatched, with words, where there is no number: an empty row would pass for zero."""
    from matplotlib.patches import Rectangle

    unknown = row["read"] is None or row["read"] < row["runs"]
    words = "not counted" if row["read"] is None else "not read" if unknown else "none fired"
    ax.text(
        0.02,
        at,
        f"{words}{_read(row)}",
        transform=ax.get_yaxis_transform(),
        va="center",
        fontsize=8,
        style="italic",
    )
    if unknown:
        hatched = Rectangle(
            (0.52, at - 0.31),
            0.48,
            0.62,
            transform=ax.get_yaxis_transform(),
            fill=False,
            hatch="////",
        )
        hatched.set(edgecolor=INK, alpha=0.35, linewidth=0)
        ax.add_patch(hatched)


def _unread(rows: list[Row]) -> str:
    """For captions: which codes were not read in all runs."""
    rates = {row["code"]: row for row in rows if row["measure"] == "rate per run"}
    if not any(map(_read, rates.values())):
        return ""
    runs = next(iter(rates.values()))["runs"]
    read = ", ".join(f"{code} in {row['read']}" for code, row in rates.items())
    return (
        f" Read, of {runs} runs: {read}. What was not read (hatched) is unknown, not zero; shares"
        " are of codes read together."
    )


def code_effects(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> Drawn:
    """Overlap-weighted effects of the codes, and for Overall their exact split into judged and
    checked stages, Task and zeros."""
    pairs = both_populations(tidy_rows(tables, "code_effects"), "code")
    rows = [new for new, _ in pairs]
    with_value(rows)
    parts = tidy_rows(tables, "effect_parts") if score == OVERALL else []
    with style.styled():
        side, n = (1.0 if _partly(rows) else 0.85), len(pairs)
        heights = [sheet.tall(n, 0.42, said=True), *([sheet.tall(n, 0.42)] if parts else [])]
        figure, axes = sheet.beside(heights, (1.25, 1, side) if parts else (2.2, side), 1.35)
        ax, bars = axes[0], axes[1] if parts else None
        for at, (new, same) in enumerate(pairs):
            if new["value"] is None:
                reason = "\n".join(wrap(style.label(new["reason"] or "not estimated", 76), 40)[:2])
                ax.text(
                    0,
                    at,
                    reason,
                    transform=ax.get_yaxis_transform(),
                    va="center",
                    fontsize=7.5,
                    style="italic",
                    in_layout=False,
                )
                continue
            hollow = new["status"] != "ok"
            style.interval(ax, at, new["lo"], new["hi"], BLUE, thick=True)
            if same is not None:
                style.interval(ax, at, same["lo"], same["hi"], BLUE, thick=False)
            style.point(ax, new["value"], at, BLUE, hollow=hollow)
        ends = [
            new[end] for new, _ in pairs for end in ("lo", "value", "hi") if new[end] is not None
        ]
        room = (score.high or max(map(abs, ends))) / 10
        ax.set_title(f"effect on {score.titled}")
        ax.set_xlim(min(-room, *ends) * 1.04, max(room / 10, *ends) * 1.04)
        if bars is not None:
            _split(bars, rows, parts, sheet.bar)
            bars.set_xlim(ax.get_xlim())
            bars.set_title("the same effect, split")
            if bars.patches:
                figure.legend(
                    loc="outside lower center",
                    ncols=2 if sheet.narrow else 3,
                    handlelength=1,
                    columnspacing=1.5,
                )
        for axis in (ax, bars):
            if axis is not None:
                axis.axvline(0, color=INK, linewidth=0.8)
                axis.grid(axis="x")
        sheet.table(
            axes,
            [_named(new["code"]) for new in rows],
            [
                (
                    0.2,
                    "right",
                    "effect",
                    [style.signed(new["value"], score.digits) for new in rows],
                ),
                (
                    0.25,
                    "left",
                    "95 %",
                    [style.span(new["lo"], new["hi"], score.digits) for new in rows],
                ),
                (
                    1.0,
                    "right",
                    "fired / read" if _partly(rows) else "fired",
                    [_fired(new, _partly(rows)) for new in rows],
                ),
            ],
        )
    return Drawn(
        figure,
        "Pale bar: 95 % interval for new tasks; thin line: for these tasks again; hollow: too few"
        " firings to inform, or runs that differed before the code. An association among repeats"
        " with the same other codes, not a cause."
        + (
            " Only “Task above 0” is neither a judge's word nor a rule; for E5 the checked part"
            " holds by definition."
            if parts
            else ""
        )
        + _partly(rows),
        f"Effects of fired codes on {score.name}: "
        + ", ".join(
            f"{r['code']} {style.signed(r['value'], score.digits)}"
            for r in rows
            if r["value"] is not None
        ),
    )


def _fired(row: Row, beside: str) -> str:
    """Runs that fired a code, where some runs were not read with how many were."""
    fired = "–" if row["fired"] is None else str(row["fired"])
    return f"{fired} / {row['read']}" if beside else fired


def _partly(rows: Iterable[Row]) -> str:
    partial = [
        f"{row['code']} in {row['read']} of {row['runs']}"
        for row in rows
        if row["read"] < row["runs"]
    ]
    return f" Runs read: {', '.join(partial)}; effects are of these." if partial else ""


def _split(ax: Axes, effects: list[Row], parts: list[Row], height: float) -> None:
    for name, title, colour in PARTS:
        first = True
        for at, effect in enumerate(effects):
            own = {row["part"]: row["value"] for row in parts if row["code"] == effect["code"]}
            value = own.get(name)
            if effect["value"] is None or value is None:
                continue
            before = [
                own[other]
                for other, _, _ in PARTS[: [p[0] for p in PARTS].index(name)]
                if own.get(other) is not None
            ]
            start = sum(v for v in before if (v < 0) == (value < 0))
            title_once = title if first else None
            ax.barh(
                at,
                value,
                left=start,
                height=height,
                color=colour,
                alpha=0.75,
                linewidth=0,
                label=title_once,
            )
            first = False


def cliff(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> Drawn:
    """The score by number of fired codes, and the drop in percent, raw and within cells."""
    rows = [row for row in tidy_rows(tables, "cliff") if row["population"] != "same"]
    means = [row for row in rows if row["kind"] == "mean"]
    with_value(means)
    d = build_arrays(runs, score.column)
    rng = np.random.default_rng(SEED)
    jitter = rng.uniform(-0.3, 0.3, d.n)
    step, sampled = style.thinned(d.n)
    drawn = np.arange(d.n) % step == 0
    with style.styled():
        figure, (ax, drops) = sheet.beside([2.6, sheet.tall(2 + len(CODES), 0.37)], (1.2, 1), 0.7)
        y, x = d.y, np.minimum(d.codes.sum(1), 3)
        for at, row in enumerate(means):
            if row["value"] is None:
                continue
            here = (x == at) & drawn
            style.points_cloud(
                ax, at + jitter[here], y[here], SKY, size=8 if d.n > 200 else 18, alpha=0.4
            )
            style.interval(ax, at, row["lo"], row["hi"], BLUE, thick=False, vertical=True)
            style.point(ax, at, row["value"], BLUE, size=7)
            ax.annotate(
                style.plain(row["value"], score.digits),
                (at + 0.33, row["value"]),
                va="center",
                fontweight="bold",
                annotation_clip=False,
            )
        known = [(at, row["value"]) for at, row in enumerate(means) if row["value"] is not None]
        ax.plot([a for a, _ in known], [v for _, v in known], color=BLUE, linewidth=1, zorder=2)
        ax.set_xticks(
            range(4),
            [
                f"{group}\n{_percent(row['share'])}"
                for group, row in zip(GROUPS, means, strict=True)
            ],
        )
        ax.set_xlim(-0.5, 3.6)
        of = f"{d.n} runs read, of {d.n_scored}" if d.n < d.n_scored else "runs"
        ax.set_xlabel(f"fired codes{d.among_codes()} (share of {of})")
        ax.set_title(f"{score.titled} of runs, mean and 95 %")
        ax.grid(axis="y")
        _drops(drops, rows, sheet)
    one = next((row for row in rows if row["kind"] == "drop_raw" and row["group"] == "1"), None)
    return Drawn(
        figure,
        "Runs (spread sideways) and means; beside or below: change against runs without codes, raw"
        " and among repeats of the same agent, task and tier; 95 % intervals for new tasks. The"
        " within-cell change is free of ‘harder cells fire more codes’." + sampled + counted(d),
        f"{score.name} by number of fired codes; one code against none:"
        f" {style.signed(one['value'] if one else None)} %.",
    )


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


def _drops(ax: Axes, rows: list[Row], sheet: Sheet) -> None:
    """Changes in percent, raw beside within-cell: one code, two or more, and each code alone."""
    names = [
        ("1", "drop", "any one code"),
        ("2+", "drop", "two or more"),
        *((c, "single", f"{c} alone") for c in CODES),
    ]
    for at, (group, kind, _) in enumerate(names):
        for suffix, offset, colour in (("raw", -0.17, ORANGE), ("within_cell", 0.17, GREEN)):
            found = [
                row for row in rows if row["kind"] == f"{kind}_{suffix}" and row["group"] == group
            ]
            if not found or found[0]["value"] is None:
                continue
            style.interval(ax, at + offset, found[0]["lo"], found[0]["hi"], colour, thick=False)
            style.point(ax, found[0]["value"], at + offset, colour, size=4.5)
    drawn = bool(ax.lines)
    for at, (group, kind, _) in enumerate(names):
        if drawn and kind == "single" and group not in str(rows[0].get("codes") or group):
            ax.text(
                0.02,
                at,
                "not read",
                transform=ax.get_yaxis_transform(),
                va="center",
                fontsize=8,
                style="italic",
            )
    sheet.named_rows(ax, [name for _, _, name in names])
    if not ax.lines:
        reason = next(
            (row["reason"] for row in rows if row["kind"] == "drop_raw" and row["reason"]),
            "not defined",
        )
        words = "\n".join(wrap(style.label(reason, 90), 32))
        ax.text(
            0.5,
            0.5,
            words,
            transform=ax.transAxes,
            ha="center",
            va="center",
            fontsize=8,
            style="italic",
        )
        ax.set_xticks([])
        ax.set_title("change against no code, %")
        return
    ax.axvline(0, color=INK, linewidth=0.8)
    ax.grid(axis="x")
    ax.plot([], [], "o-", color=ORANGE, markersize=4.5, label="raw")
    ax.plot([], [], "o-", color=GREEN, markersize=4.5, label="within cell")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2)
    ax.set_title("change against no code, %")


def sensitivity(tables: Tables, runs: pl.DataFrame, score: Score, sheet: Sheet) -> Drawn:
    """How strong an unobserved cause would have to be, with the code and with the score, to erase
    each effect."""
    rows = [
        row
        for row in tidy_rows(tables, "code_effects")
        if row["population"] != "same"
        and row["value"] is not None
        and row["robustness_value"]
        and row["status"] != "uninformative"
    ]
    if not rows:
        raise Nothing("no code has an informative effect")
    rows = sorted(rows, key=lambda row: -row["robustness_value"])
    with style.styled():
        columns = 2 if sheet.narrow else 4
        figure, grid = sheet.small_multiples(len(rows), columns, 1.8 if sheet.narrow else 2.1, 1.2)
        limit = 1.0 if rows[0]["robustness_value"] > 0.75 else 0.8
        x = np.geomspace(1e-4, min(limit, 0.999), 300)
        for row, ax in zip(rows, grid, strict=True):
            rv = min(row["robustness_value"], 0.999)
            # From bias / estimate = sqrt(R2_score * R2_code / (1 - R2_code)) / f, with f2 = RV2 /
            # (1 - RV).
            for share, _, colour, width in LEFT:
                needed = ((1 - share) * rv) ** 2 / (1 - rv) * (1 - x) / x
                ax.plot(
                    x,
                    np.where(needed <= 1.2 * limit, needed, np.nan),
                    color=colour,
                    linewidth=width,
                )
            style.point(ax, rv, rv, ORANGE, size=5)
            ax.annotate(
                f"RV {rv:.2f}", (rv, rv), xytext=(6, 4), textcoords="offset points", fontsize=8.5
            )
            ax.set_title(f"{row['code']}: {style.signed(row['value'], score.digits)}")
            ax.set_xlim(0, limit)
            ax.set_ylim(0, limit)
            ax.set_aspect("equal")
        from matplotlib.lines import Line2D

        handles = [
            Line2D([], [], color=colour, linewidth=width, label=text)
            for _, text, colour, width in LEFT
        ]
        figure.legend(
            handles=handles,
            loc="outside upper center",
            ncols=columns,
            title="left of the effect",
            handlelength=1.6,
        )
        figure.supxlabel("partial R² of an unobserved cause with the code", fontsize=9)
        figure.supylabel(f"partial R² with {score.name}", fontsize=9)
    return Drawn(
        figure,
        "Lines: what is left of the effect if an unobserved cause of that strength acted within"
        " cells; on the thick line nothing is left. RV: the strength, equal on both sides, that"
        " erases the effect (Cinelli and Hazlett).",
        "Robustness values: "
        + ", ".join(f"{row['code']} {row['robustness_value']:.2f}" for row in rows),
    )


__all__ = ["cliff", "code_effects", "code_rates", "sensitivity"]
