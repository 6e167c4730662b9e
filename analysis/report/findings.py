"""The main results of a cohort in sentences, each with its interval, in the order of a reader's
questions.

One gate for all: at least MIN_RUNS runs, a difference only where a test that allows for its family
finds it, ties named as ties, corrected numbers where labels exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from ...judge.card.read_share import ENOUGH
from ..statistics.interval_estimates import MIN_RUNS, adjust_p_values
from ..statistics.run_arrays import MIN_READ
from ..tables.codes_read import CODES
from ..tables.score_names import OVERALL, Score
from .basis import sentences
from .display import interval, number, probability

Row = dict[str, Any]


class Finding(NamedTuple):
    """A sentence, and the filter of the browser that shows the runs it speaks of ("" where that is
    all of them)."""

    text: str
    runs: str = ""


def findings(tables: Mapping[str, pl.DataFrame], score: Score = OVERALL) -> list[Finding]:
    """Sentences from the tables that exist, which are about a score; a table without numbers says
    nothing here."""
    return [
        *_basis(tables),
        *_lead(tables, score),
        *_stages(tables),
        *_codes(tables),
        *_cliff(tables, score),
        *_effects(tables, score),
        *_tiers(tables, score),
        *_cost(tables, score),
        *_trouble(tables),
        *_alarms(tables),
        *_checks(tables),
    ]


def _basis(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
    """What has to be known before the rest: nothing where all runs were read and all quotes found."""
    table = tables.get("basis")
    if table is None or "judge" not in table.columns or table.is_empty():
        return []
    row = table.row(0, named=True)
    flawed = (
        row["presumed_runs"]
        or row["unread_runs"]
        or row["quotes_found"] < row["quotes"]
        or row["contradictions"]
    )
    return [Finding(" ".join(sentences(row)))] if flawed else []


def _rows(tables: Mapping[str, pl.DataFrame], name: str, **where: Any) -> list[Row]:
    """Rows for new tasks with a value."""
    table = tables.get(name)
    if table is None or "value" not in table.columns or not set(where) <= set(table.columns):
        return []
    rows = table.filter(
        pl.all_horizontal(pl.lit(True), *(pl.col(c) == v for c, v in where.items()))
    ).to_dicts()
    return [row for row in rows if row["value"] is not None and row.get("population") != "same"]


def _with(row: Row, unit: str = "", scale: float = 1.0) -> str:
    lo, hi = (None if row[end] is None else scale * row[end] for end in ("lo", "hi"))
    found = f" {interval(lo, hi)}" if lo is not None or hi is not None else ""
    return f"{number(scale * row['value'])}{unit}{found}"


def _runs(n: int) -> str:
    return f"{n} run" if n == 1 else f"{n} runs"


def _named(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 2 else list(names))


def _apart(row: Row) -> bool:
    """Whether the interval leaves 0 on one side, from enough runs."""
    return (
        row["n"] >= MIN_RUNS
        and row["lo"] is not None
        and row["hi"] is not None
        and row["lo"] * row["hi"] > 0
    )


def _holm(rows: list[Row]) -> list[Row]:
    """Those of a family of tests that Holm's procedure finds."""
    return [
        row
        for row, p in zip(rows, adjust_p_values([row["p"] for row in rows], "holm"), strict=True)
        if p is not None and p < 0.05
    ]


def _together(rows: Sequence[Row], highest: bool) -> list[Row]:
    """The row at one end and those whose intervals meet its own, or that have none: nobody can tell
    them from it."""
    ends = sorted(rows, key=lambda row: -row["value"] if highest else row["value"])
    first = ends[0]
    out = [first]
    for row in ends[1:]:
        near, far = (row["hi"], first["lo"]) if highest else (first["hi"], row["lo"])
        if near is None or far is None or near >= far:
            out.append(row)
    return out


def _labelled(tables: Mapping[str, pl.DataFrame]) -> bool:
    return "corrected_leaderboard" in tables or "corrected_effects" in tables


def _as_judged(tables: Mapping[str, pl.DataFrame]) -> str:
    """What a sentence says whose numbers no label corrects, although there are labels."""
    return " (as judged: no label corrects this number)" if _labelled(tables) else ""


def _lead(tables: Mapping[str, pl.DataFrame], score: Score) -> list[Finding]:
    rows = _rows(tables, "leaderboard", scope="overall")
    known = {row["agent"]: row for row in rows}
    corrected = [
        row
        for row in _rows(tables, "corrected_leaderboard", kind="corrected")
        if row["lo"] is not None
    ]
    by, tail = "", _as_judged(tables)
    if rows and {row["agent"] for row in corrected} >= set(known):
        rows = sorted(
            ({**known[row["agent"]], **row} for row in corrected if row["agent"] in known),
            key=lambda row: -row["value"],
        )
        by, tail = ", corrected by labels,", ""
    if len(rows) < 2:
        return [
            Finding(
                f"{row['agent']} has a mean {score.titled} of {_with(row)} over"
                f" {_runs(row['runs'])}{tail}.",
                named("agent", row["agent"]),
            )
            for row in rows
        ]
    if any("not comparable" in text for row in rows for text in row["warnings"] or ()):
        text = (
            "Agents ran different tracks, so their overall means cannot be compared: read the"
            " boards by track."
        )
        return [Finding(text)]
    first = rows[0]
    ties = [row["agent"] for row in rows if abs(row["value"] - first["value"]) < 1e-9]
    runs = " ".join(named("agent", agent) for agent in ties)
    if len(ties) > 1:
        return [
            Finding(
                f"{_named(ties)} share the highest mean {score.titled}{by} {_with(first)}{tail}.",
                runs,
            )
        ]
    start = f"{first['agent']} has the highest mean {score.titled}{by} {_with(first)}"
    hidden = _order_hidden(rows, score)
    if first["rank_hi"] is None:
        text = (
            f"{start}{tail}; these tasks do not suffice to say whether that holds for new"
            f" ones.{hidden}"
        )
        return [Finding(text, runs)]
    if first["rank_hi"] == 1 and not hidden:
        text = (
            f"{start}{tail}, and is first for new tasks of the kind as well (Holm over all pairs,"
            " 95 %)."
        )
        return [Finding(text, runs)]
    rivals = sum(1 for row in rows[1:] if row["rank_lo"] == 1)
    others = f"{rivals} other agent{'s' if rivals != 1 else ''}"
    but = (
        f", but for new tasks {others} could be first: its rank is 1 to {first['rank_hi']}"
        if rivals
        else ""
    )
    return [Finding(f"{start}{tail}{but}.{hidden}", runs)]


def _order_hidden(rows: list[Row], score: Score) -> str:
    """Says where runs without a score could turn the order."""
    first, others = rows[0], rows[1:]
    worst = first.get("value_missing_zero")
    best = [
        row["value_missing_best"] for row in others if row.get("value_missing_best") is not None
    ]
    if (
        worst is None
        or not best
        or max(best) < worst
        or all(row.get("value_missing_zero") == row.get("value_missing_best") for row in rows)
    ):
        return ""
    return (
        f" Runs without a score could change the order: counted as 0 and as {score.high or 1:g}"
        f" they leave {first['agent']} between {number(worst)} and"
        f" {number(first['value_missing_best'])}."
    )


def _stages(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
    rows = [
        row
        for row in _rows(tables, "stages", agent="(all)")
        if row["stage"] in ("S1", "S2", "S3", "S4", "S5")
    ]
    counts = [row["n"] for row in rows]
    # Stages that were scored on other runs than the rest cannot be held against them.
    if len(rows) < 5 or min(counts) < max(MIN_RUNS, ENOUGH * max(counts)):
        return []
    said, lowest = [], ""
    for highest, word in ((False, "lowest"), (True, "highest")):
        group = _together(rows, highest)
        if len(group) == len(rows):
            return [
                Finding(f"No stage is told apart from all others by its mean{_as_judged(tables)}.")
            ]
        lowest = lowest or " ".join(f"{row['stage']}<0.5" for row in group[:1])
        each = _named([f"{row['stage']} ({_with(row)})" for row in group])
        said.append(
            f"{each} {'has' if len(group) == 1 else 'have'} the {word}"
            f" mean{'' if len(group) == 1 else 's, not told apart'}"
        )
    return [Finding(f"Of the stages {said[0]}; {said[1]}{_as_judged(tables)}.", lowest)]


def _codes(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
    out: list[Finding] = []
    rows = _rows(tables, "codes", measure="share of fired codes")
    fired = [row for row in rows if row["fired"]]
    total = sum(row["fired"] for row in fired)
    if fired and total >= MIN_RUNS:
        ratio = _rows(tables, "codes", measure="ratio")
        tail = ""
        if ratio and ratio[0]["lo"] is not None:
            tail = (
                f" There are {_with(ratio[0])} engineering codes (E2–E5) per knowledge code (E1)."
            )
        counted = [row["code"] for row in rows]
        of = (
            "the fired codes"
            if len(counted) == len(CODES)
            else f"the fired codes {', '.join(counted)}"
        )
        top = _together(fired, True)
        shares = _named([f"{row['code']} {_with(row, ' %', 100)}" for row in top])
        if len(fired) == 1:
            text = f"All {total} of {of} are {fired[0]['code']}"
        elif len(top) == len(fired):
            text = f"Of {of} none is told apart as the most frequent: {shares}"
        else:
            none = ", not told apart from each other" if len(top) > 1 else ""
            text = f"Most frequent of {of}{_as_judged(tables)}: {shares}{none}"
        out.append(
            Finding(
                f"{text}{_share_read(rows[0])}.{tail}",
                " ".join(f"code:{row['code']}" for row in top),
            )
        )
    return out + _unread(tables)


def _share_read(row: Row) -> str:
    return (
        f", in {row['read']} of {_runs(row['runs'])} that were read for them"
        if row["read"] < row["runs"]
        else ""
    )


def _unread(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
    """Says of every code that was not read in all runs how many were; silence would pass for a
    clean record."""
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
        said.append(
            f"{names} {'was' if len(group) == 1 else 'were'} read in {n if n else 'none'} of"
            f" {_runs(runs)}"
        )
    shown = ", ".join(
        f"{row['code']} in {row['fired_unread']}" for row in rows if row["fired_unread"]
    )
    tail = f" Facts show {shown} of the runs that nobody read." if shown else ""
    text = f"{'; '.join(said)}: nothing is known of how often a code occurs in the others.{tail}"
    return [Finding(text, " ".join(f"unread:{row['code']}" for row in rows))]


def _cliff(tables: Mapping[str, pl.DataFrame], score: Score) -> list[Finding]:
    raw = [row for row in _rows(tables, "cliff", kind="drop_raw", group="1") if _apart(row)]
    within = [
        row for row in _rows(tables, "cliff", kind="drop_within_cell", group="1") if _apart(row)
    ]
    if not raw:
        return []
    counted = raw[0].get("codes") or ""
    among = "" if not counted or counted == ", ".join(CODES) else f" of {counted}"
    text = (
        f"Runs with one fired code{among} have a mean {score.name} {_moved(raw[0])} than runs with"
        f" none{' of these' if among else ''}"
    )
    tail = f"; among repeats of the same agent, task and tier {_moved(within[0])}" if within else ""
    return [Finding(f"{text}{tail}{_as_judged(tables)}.", "codes=1")]


def _moved(row: Row) -> str:
    """A change in percent with its direction in words."""
    size = {end: abs(row[end]) for end in ("value", "lo", "hi")}
    ends = sorted((size["lo"], size["hi"]))
    return (
        f"{number(size['value'])} % {interval(*ends)} {'higher' if row['value'] > 0 else 'lower'}"
    )


def _effects(tables: Mapping[str, pl.DataFrame], score: Score) -> list[Finding]:
    table = tables.get("code_effects")
    if table is None or "status" not in table.columns:
        return []
    rows = [
        row for row in table.to_dicts() if row["population"] == "new" and row["value"] is not None
    ]
    if any(row["status"] == "confounded" for row in rows):
        p = min(row["placebo_p"] for row in rows if row["placebo_p"] is not None)
        text = (
            "Caution: runs with E3, E4 or E5 differ already in stages that were over before"
            f" (placebo p = {probability(p)}): something else may drive both, and no effect of a"
            " code is claimed."
        )
        return [Finding(text, "code:E3 code:E4 code:E5")]
    unit = f"points of {score.name}" if score == OVERALL else score.titled
    circular = tables.get(
        "circularity", pl.DataFrame(schema={"code": pl.String, "verdict": pl.String})
    )
    restate = (
        set(circular.filter(pl.col("verdict").str.ends_with("by outcome"))["code"])
        if "verdict" in circular.columns
        else set()
    )
    claimed = [
        row
        for row in rows
        if row["status"] == "ok"
        and row["p_holm"] is not None
        and row["p_holm"] < 0.05
        and _apart(row)
        and row["code"] not in restate
        and (row["missing_lo"] is None or row["missing_lo"] * row["missing_hi"] > 0)
    ]
    how = f"{unit} against repeats of the same cell with the same other codes (Holm over the codes)"
    if _labelled(tables):
        fixed = {
            row["code"]: row
            for row in _rows(tables, "corrected_effects", kind="corrected")
            if _apart(row)
        }
        kept = {row["code"] for row in _holm(list(fixed.values()))}
        claimed = [{**row, **fixed[row["code"]]} for row in claimed if row["code"] in kept]
        how = (
            f"{unit}, tags corrected by labels (predict-then-debias, additive; Holm over the codes)"
        )
    if not claimed:
        return []
    claimed.sort(key=lambda row: -abs(row["value"]))
    said = []
    for row in claimed:
        part = (
            _rows(tables, "effect_parts", code=row["code"], part="task part: quality")
            if score == OVERALL
            else []
        )
        less = (
            ""
            if _labelled(tables) or not part
            else (
                f", of which {number(part[0]['value'])} are how good results are, not a rule's or a"
                " judge's word"
            )
        )
        # The robustness value is that of the uncorrected number.
        rv = None if _labelled(tables) else row["robustness_value"]
        doubt = [f"RV {100 * rv:.0f} %"] if rv is not None else []
        doubt += (
            [f"placebo p {probability(row['placebo_p'])}"] if row["placebo_p"] is not None else []
        )
        said.append(
            f"{row['code']} {_with(row)}{less}" + (f" ({', '.join(doubt)})" if doubt else "")
        )
    rv_words = (
        ": RV is the share of what is left of both that an unseen cause would have to explain to"
        " erase one"
    )
    rv_words = "" if _labelled(tables) else rv_words
    unread = [
        row["code"]
        for row in table.to_dicts()
        if row["population"] == "new" and row["read"] < min(MIN_READ, row["runs"])
    ]
    but = f" Too few runs were read for {_named(unread)} to say." if unread else ""
    text = (
        f"Codes that go with a difference, in {how}: {'; '.join(said)}. These are associations, not"
        f" causes{rv_words}.{but}"
    )
    return [Finding(text, " ".join(f"code:{row['code']}" for row in claimed))]


def _tiers(tables: Mapping[str, pl.DataFrame], score: Score) -> list[Finding]:
    rows = [
        row for row in _rows(tables, "tiers", agent="(all)", outcome=score.column) if _apart(row)
    ]
    return [
        Finding(
            f"{score.name} in {row['tier']} is {_moved(row)} than in {row['baseline']}, on tasks"
            f" that have both{_as_judged(tables)}.",
            f"tier:{row['tier']}",
        )
        for row in _holm(rows)
    ]


def _cost(tables: Mapping[str, pl.DataFrame], score: Score) -> list[Finding]:
    runs = [
        row
        for row in _rows(tables, "cost", track="(all)", cost="cost_usd", kind="runs")
        if _apart(row)
    ]
    cell = [
        row
        for row in _rows(tables, "cost", track="(all)", cost="cost_usd", kind="within_cell")
        if _apart(row)
    ]
    both = {id(row) for row in _holm(runs + cell)}
    said = [
        f"{where} dearer runs score {'higher' if row['value'] > 0 else 'lower'}, r = {_with(row)}"
        for row, where in [
            *((row, "over all runs") for row in runs),
            *((row, "between repeats of the same cell") for row in cell),
        ]
        if id(row) in both
    ]
    return (
        [Finding(f"Cost and {score.name}: {'; '.join(said)}{_as_judged(tables)}.")] if said else []
    )


def _trouble(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
    table = tables.get("clusters")
    if table is None or "rank" not in table.columns:
        return []
    wordy = pl.col("example").str.count_matches(" ") >= 2
    rows = table.filter(wordy).sort("runs", descending=True).to_dicts()
    if not rows or rows[0]["runs"] < 2 or (len(rows) > 1 and rows[1]["runs"] == rows[0]["runs"]):
        return []
    text = (
        f"The group of troubles in most runs ({rows[0]['runs']}) is of this kind:"
        f" “{rows[0]['example'].rstrip('.')}”."
    )
    return [Finding(text, _any_of(rows[0]["example_runs"]))]


def _alarms(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
    circular = tables.get("circularity")
    if circular is None or not {"code", "verdict"} <= set(circular.columns):
        return []
    return [
        Finding(
            f"Caution: {row['code']} {row['verdict']}; it cannot explain the score that it"
            " restates.",
            f"code:{row['code']}",
        )
        for row in circular.iter_rows(named=True)
        if str(row["verdict"]).endswith("by outcome")
    ]


def _checks(tables: Mapping[str, pl.DataFrame]) -> list[Finding]:
    table = tables.get("checks")
    if table is None or "status" not in table.columns:
        return []
    bad = table.filter(pl.col("status") == "problem")
    if bad.is_empty():
        return []
    count = "1 check of the scores" if bad.height == 1 else f"{bad.height} checks of the scores"
    examples = bad["examples"].explode().drop_nulls().to_list() if "examples" in bad.columns else []
    return [
        Finding(
            f"{count} found problems: {', '.join(bad['check'].to_list()[:6])}.",
            _any_of(examples[:5]),
        )
    ]


def named(facet: str, name: str) -> str:
    """A facet of the browser's filter for a whole name; one with a quotation mark up to that."""
    whole = name.partition('"')[0]
    return f'{facet}:"{whole}"'


def _any_of(ids: list[str] | None) -> str:
    return " ".join(named("id", id) for id in ids or ())


__all__ = ["Finding", "findings", "named"]
