"""The main results of a cohort in sentences, each with its interval, in the order of a reader's questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from ..judge.read_share import ENOUGH
from .basis import sentences
from .codes_read import CODES
from .design import MIN_READ
from .display import interval, number
from .frames import OUTCOME

Row = dict[str, Any]


class Finding(NamedTuple):
    """A sentence, and the filter of the browser that shows the runs it speaks of ("" where that is all of them)."""

    text: str
    runs: str = ""


def findings(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
    """Sentences from the tables that exist; a table without numbers says nothing here."""
    out: list[Finding] = []
    for write in (_basis, _lead, _stages, _codes, _cliff, _effects, _tiers, _cost, _trouble, _alarms, _checks):
        out += write(tables)
    return out


def _basis(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
    """What has to be known before the rest: nothing where all runs were read and all quotes found."""
    table = tables.get("basis")
    if table is None or "judge" not in table.columns or table.is_empty():
        return []
    row = table.row(0, named=True)
    flawed = row["presumed_runs"] or row["unread_runs"] or row["quotes_found"] < row["quotes"] or row["contradictions"]
    return [Finding(" ".join(sentences(row)))] if flawed else []


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


def _score(row: Row) -> str:
    """What a row's estimate is of, as people call it."""
    name = str(row["estimand"]).removeprefix("mean ")
    name = row.get("outcome") or name.rpartition(" with ")[2]
    return "Overall" if name == "overall" else str(name).removeprefix(OUTCOME)


def _lead(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
    rows = _rows(tables, "leaderboard", scope="overall")
    if len(rows) < 2:
        return [
            Finding(f"{row['agent']} has a mean {_score(row)} of {_with(row)} over {row['runs']} runs.", named("agent", row["agent"]))
            for row in rows
        ]  # fmt: skip
    first = rows[0]
    if any("not comparable" in text for row in rows for text in row["warnings"] or ()):
        text = "Agents ran different tracks, so their overall means cannot be compared: read the boards by track."
        return [Finding(text)]
    runs = named("agent", first["agent"])
    if first["rank_hi"] is None:
        text = f"{first['agent']} leads with a mean {_score(first)} of {_with(first)}; these tasks do not suffice to say which ranks are possible."
        return [Finding(text, runs)]
    if first["rank_hi"] == 1:
        text = f"{first['agent']} leads with a mean {_score(first)} of {_with(first)}, and does so for new tasks of the kind as well."
        return [Finding(text, runs)]
    rivals = sum(1 for row in rows[1:] if row["rank_lo"] == 1)
    text = (
        f"{first['agent']} leads with a mean {_score(first)} of {_with(first)}, but for new tasks {rivals} other agent{'s' if rivals != 1 else ''} could be first: "
        f"its rank is 1 to {first['rank_hi']}."
    )
    return [Finding(text, runs)]


def _stages(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
    rows = [row for row in _rows(tables, "stages", agent="(all)") if row["stage"] in ("S1", "S2", "S3", "S4", "S5")]
    runs = [row["n"] for row in rows]
    # Stages that were scored on other runs than the rest cannot be held against them.
    if len(rows) < 5 or min(runs) < ENOUGH * max(runs):
        return []
    low, high = min(rows, key=lambda r: r["value"]), max(rows, key=lambda r: r["value"])
    text = f"{low['stage']} is the weakest stage with a mean of {_with(low)}, {high['stage']} the strongest with {_with(high)}."
    return [Finding(text, f"{low['stage']}<0.5")]


def _codes(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
    out: list[Finding] = []
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
        text = f"Of {of} most are {shares}{_share_read(rows[0])}.{tail}"
        out.append(Finding(text, " ".join(f"code:{row['code']}" for row in top)))
    return out + _unread(tables)


def _share_read(row: Row) -> str:
    return f", in {row['read']} of {row['runs']} runs that were read for them" if row["read"] < row["runs"] else ""


def _unread(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
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
    text = f"{'; '.join(said)}: nothing is known of how often a code occurs in the others.{tail}"
    return [Finding(text, " ".join(f"unread:{row['code']}" for row in rows))]


def _cliff(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
    raw = _rows(tables, "cliff", kind="drop_raw", group="1")
    within = _rows(tables, "cliff", kind="drop_within_cell", group="1")
    if not raw:
        return []
    counted = raw[0].get("codes") or ""
    among = "" if not counted or counted == ", ".join(CODES) else f" of {counted}"
    text = f"Runs with one fired code{among} score {_with(raw[0], ' %')} against runs with none{' of these' if among else ''}"
    text += f"; among repeats of the same agent, task and tier it is {_with(within[0], ' %')}." if within else "."
    return [Finding(text, "codes=1")]


def _effects(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
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
    text = (
        f"The code that goes with the largest loss is {worst['code']}: {_with(worst)} points of {_score(worst)} against repeats of the same "
        f"cell without it{tail}. This is an association, not a cause.{but}"
    )
    return [Finding(text, f"code:{worst['code']}")]


def _tiers(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
    rows = _rows(tables, "tiers", agent="(all)", outcome="overall")
    return [
        Finding(
            f"Overall in {row['tier']} differs by {_with(row, ' %')} from {row['baseline']} on tasks that have both.",
            f"tier:{row['tier']}",
        )
        for row in rows
    ]


def _cost(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
    runs = _rows(tables, "cost", track="(all)", cost="cost_usd", kind="runs")
    cell = _rows(tables, "cost", track="(all)", cost="cost_usd", kind="within_cell")
    if not runs or not cell:
        return []
    text = f"Cost and {_score(runs[0])} correlate with r = {_with(runs[0])} over runs, and {_with(cell[0])} between repeats of the same cell."
    return [Finding(text)]


def _trouble(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
    table = tables.get("clusters")
    if table is None or "rank" not in table.columns:
        return []
    wordy = pl.col("example").str.count_matches(" ") >= 2
    rows = table.filter((pl.col("rank") == 1) & wordy).sort("runs", descending=True).to_dicts()
    return [
        Finding(f"The commonest trouble in words: “{row['example']}” and its like, in {row['runs']} runs.", _any_of(row["example_runs"]))
        for row in rows[:1]
    ]  # fmt: skip


def _alarms(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
    out = []
    circular = tables.get("circularity")
    if circular is not None and {"code", "verdict"} <= set(circular.columns):
        for row in circular.iter_rows(named=True):
            if str(row["verdict"]).endswith("by outcome"):
                text = f"Caution: {row['code']} {row['verdict']}; it cannot explain the score that it restates."
                out.append(Finding(text, f"code:{row['code']}"))
    placebo = tables.get("placebo")
    if placebo is not None and {"code", "stage", "verdict"} <= set(placebo.columns):
        for row in placebo.iter_rows(named=True):
            if str(row["verdict"]).startswith("alarm"):
                text = f"Caution: {row['code']} goes with {row['stage']}, a stage before it could act: something else drives both."
                out.append(Finding(text, f"code:{row['code']}"))
    return out


def _checks(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
    table = tables.get("checks")
    if table is None or "status" not in table.columns:
        return []
    bad = table.filter(pl.col("status") == "problem")
    if bad.is_empty():
        return []
    text = f"{bad.height} checks of the scores found problems: {', '.join(bad['check'].to_list()[:6])}."
    examples = bad["examples"].explode().drop_nulls().to_list() if "examples" in bad.columns else []
    return [Finding(text, _any_of(examples[:5]))]


def named(facet: str, name: str) -> str:
    """A facet of the browser's filter for a whole name; one with a quotation mark up to that."""
    whole = name.partition('"')[0]
    return f'{facet}:"{whole}"'


def _any_of(ids: list[str] | None) -> str:
    return " ".join(named("id", id) for id in ids or ())


__all__ = ["Finding", "findings", "named"]
