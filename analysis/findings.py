"""The main results of a cohort in sentences, each with its interval, in the order of a reader's questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from ..judge.read_share import ENOUGH
from .basis import sentences
from .codes_read import CODES
from .design import MIN_READ
from .display import interval, number

Row = dict[str, Any]


def findings(tables: Mapping[str, pl.DataFrame]) -> list[str]:
    """Sentences from the tables that exist; a table without numbers says nothing here."""
    out: list[str] = []
    for write in (_basis, _lead, _stages, _codes, _cliff, _effects, _tiers, _cost, _trouble, _alarms, _checks):
        out += write(tables)
    return out


def _basis(tables: Mapping[str, pl.DataFrame]) -> list[str]:
    """What has to be known before the rest: nothing where all runs were read and all quotes found."""
    table = tables.get("basis")
    if table is None or "judge" not in table.columns or table.is_empty():
        return []
    row = table.row(0, named=True)
    flawed = row["presumed_runs"] or row["unread_runs"] or row["quotes_found"] < row["quotes"] or row["contradictions"]
    return [" ".join(sentences(row))] if flawed else []


def _rows(tables: Mapping[str, pl.DataFrame], name: str, **where: Any) -> list[Row]:
    """Rows for new tasks with a value."""
    table = tables.get(name)
    if table is None or "value" not in table.columns or not set(where) <= set(table.columns):
        return []
    rows = table.filter(pl.all_horizontal(pl.lit(True), *(pl.col(c) == v for c, v in where.items()))).to_dicts()
    return [row for row in rows if row["value"] is not None and row.get("population") != "same"]


def _with(row: Row, unit: str = "") -> str:
    found = f" {interval(row['lo'], row['hi'])}" if row["lo"] is not None or row["hi"] is not None else ""
    return f"{number(row['value'])}{unit}{found}"


def _lead(tables: Mapping[str, pl.DataFrame]) -> list[str]:
    rows = _rows(tables, "leaderboard", scope="overall")
    if len(rows) < 2:
        return [f"{row['agent']} has a mean Overall of {_with(row)} over {row['runs']} runs." for row in rows]
    first = rows[0]
    if any("not comparable" in text for row in rows for text in row["warnings"] or ()):
        return ["Agents ran different tracks, so their overall means cannot be compared: read the boards by track."]
    if first["rank_hi"] is None:
        return [
            f"{first['agent']} leads with a mean Overall of {_with(first)}; these tasks do not suffice to say which ranks are possible."
        ]
    if first["rank_hi"] == 1:
        return [
            f"{first['agent']} leads with a mean Overall of {_with(first)}, and does so for new tasks of the kind as well."
        ]
    rivals = sum(1 for row in rows[1:] if row["rank_lo"] == 1)
    return [
        f"{first['agent']} leads with a mean Overall of {_with(first)}, but for new tasks {rivals} other agent{'s' if rivals != 1 else ''} could be first: "
        f"its rank is 1 to {first['rank_hi']}."
    ]


def _stages(tables: Mapping[str, pl.DataFrame]) -> list[str]:
    rows = [row for row in _rows(tables, "stages", agent="(all)") if row["stage"] in ("S1", "S2", "S3", "S4", "S5")]
    runs = [row["n"] for row in rows]
    # Stages that were scored on other runs than the rest cannot be held against them.
    if len(rows) < 5 or min(runs) < ENOUGH * max(runs):
        return []
    low, high = min(rows, key=lambda r: r["value"]), max(rows, key=lambda r: r["value"])
    return [
        f"{low['stage']} is the weakest stage with a mean of {_with(low)}, {high['stage']} the strongest with {_with(high)}."
    ]


def _codes(tables: Mapping[str, pl.DataFrame]) -> list[str]:
    out: list[str] = []
    rows = _rows(tables, "codes", measure="share of fired codes")
    if rows:
        top = sorted(rows, key=lambda row: -row["value"])[:2]
        shares = " and ".join(f"{row['code']} ({100 * row['value']:.1f} %)" for row in top)
        ratio = _rows(tables, "codes", measure="ratio")
        tail = (
            f" There are {number(ratio[0]['value'])} engineering codes (E2–E5) per knowledge code (E1)."
            if ratio
            else ""
        )
        counted = [row["code"] for row in rows]
        of = "the fired codes" if len(counted) == len(CODES) else f"the fired codes {', '.join(counted)}"
        out.append(f"Of {of} most are {shares}{_share_read(rows[0])}.{tail}")
    return out + _unread(tables)


def _share_read(row: Row) -> str:
    return f", in {row['read']} of {row['runs']} runs that were read for them" if row["read"] < row["runs"] else ""


def _unread(tables: Mapping[str, pl.DataFrame]) -> list[str]:
    """Says of every code that was not read in all runs how many were; silence would pass for a clean record."""
    table = tables.get("codes_read")
    if table is None or "read" not in table.columns:
        return []
    rows = table.filter(pl.col("read") < pl.col("runs")).to_dicts()
    if not rows:
        return []
    runs = rows[0]["runs"]
    by_count: dict[int, list[Row]] = {}
    for row in rows:
        by_count.setdefault(row["read"], []).append(row)
    said = []
    for n, group in sorted(by_count.items()):
        names = " and ".join(row["code"] for row in group)
        said.append(f"{names} {'was' if len(group) == 1 else 'were'} read in {n if n else 'none'} of {runs} runs")
    shown = ", ".join(f"{row['code']} in {row['fired_unread']}" for row in rows if row["fired_unread"])
    tail = f" Facts show {shown} of the runs that nobody read." if shown else ""
    return [f"{'; '.join(said)}: nothing is known of how often a code occurs in the others.{tail}"]


def _cliff(tables: Mapping[str, pl.DataFrame]) -> list[str]:
    raw = _rows(tables, "cliff", kind="drop_raw", group="1")
    within = _rows(tables, "cliff", kind="drop_within_cell", group="1")
    if not raw:
        return []
    counted = raw[0].get("codes") or ""
    among = "" if not counted or counted == ", ".join(CODES) else f" of {counted}"
    text = f"Runs with one fired code{among} score {_with(raw[0], ' %')} against runs with none{' of these' if among else ''}"
    return [
        text + (f"; among repeats of the same agent, task and tier it is {_with(within[0], ' %')}." if within else ".")
    ]


def _effects(tables: Mapping[str, pl.DataFrame]) -> list[str]:
    rows = [row for row in _rows(tables, "code_effects") if row["status"] == "ok"]
    if not rows:
        return []
    worst = min(rows, key=lambda row: row["value"])
    part = _rows(tables, "effect_parts", code=worst["code"], part="task part")
    tail = (
        f", of which {number(part[0]['value'])} are Task, the only part that no judge and no rule decides"
        if part
        else ""
    )
    all_rows = tables["code_effects"].filter(pl.col("population") == "new").to_dicts()
    unread = [row["code"] for row in all_rows if row["read"] < min(MIN_READ, row["runs"])]
    but = f" Too few runs were read for {' and '.join(unread)} to say." if unread else ""
    return [
        f"The code that goes with the largest loss is {worst['code']}: {_with(worst)} points of Overall against repeats of the same "
        f"cell without it{tail}. This is an association, not a cause.{but}"
    ]


def _tiers(tables: Mapping[str, pl.DataFrame]) -> list[str]:
    rows = _rows(tables, "tiers", agent="(all)", outcome="overall")
    return [
        f"Overall in {row['tier']} differs by {_with(row, ' %')} from {row['baseline']} on tasks that have both."
        for row in rows
    ]


def _cost(tables: Mapping[str, pl.DataFrame]) -> list[str]:
    runs = _rows(tables, "cost", track="(all)", cost="cost_usd", kind="runs")
    cell = _rows(tables, "cost", track="(all)", cost="cost_usd", kind="within_cell")
    if not runs or not cell:
        return []
    return [
        f"Cost and Overall correlate with r = {_with(runs[0])} over runs, and {_with(cell[0])} between repeats of the same cell."
    ]


def _trouble(tables: Mapping[str, pl.DataFrame]) -> list[str]:
    table = tables.get("clusters")
    if table is None or "rank" not in table.columns:
        return []
    wordy = pl.col("example").str.count_matches(" ") >= 2
    rows = table.filter((pl.col("rank") == 1) & wordy).sort("runs", descending=True).to_dicts()
    return [
        f"The commonest trouble in words: “{row['example']}” and its like, in {row['runs']} runs." for row in rows[:1]
    ]


def _alarms(tables: Mapping[str, pl.DataFrame]) -> list[str]:
    out = []
    circular = tables.get("circularity")
    if circular is not None and {"code", "verdict"} <= set(circular.columns):
        for row in circular.iter_rows(named=True):
            if str(row["verdict"]).endswith("by outcome"):
                out.append(f"Caution: {row['code']} {row['verdict']}; it cannot explain the score that it restates.")
    placebo = tables.get("placebo")
    if placebo is not None and {"code", "stage", "verdict"} <= set(placebo.columns):
        for row in placebo.iter_rows(named=True):
            if str(row["verdict"]).startswith("alarm"):
                out.append(
                    f"Caution: {row['code']} goes with {row['stage']}, a stage before it could act: something else drives both."
                )
    return out


def _checks(tables: Mapping[str, pl.DataFrame]) -> list[str]:
    table = tables.get("checks")
    if table is None or "status" not in table.columns:
        return []
    bad = table.filter(pl.col("status") == "problem")
    return (
        [f"{bad.height} checks of the scores found problems: {', '.join(bad['check'].to_list()[:6])}."]
        if bad.height
        else []
    )


__all__ = ["findings"]
