"""The main results of a cohort as sentences, each with its interval.

They come in the order of a reader's questions. All pass the same gate: a result needs at least
MIN_RUNS runs, and a difference must be significant by a test that allows for its family. Ties are
named as ties, and numbers are the corrected ones if there are labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from ...judge.card.read_share import ENOUGH
from ...rounding import fixed
from ...trajectories.stages import STAGES
from ..statistics.corrected_effects import FEW_POSITIVES
from ..statistics.interval_estimates import MIN_RUNS, NARROWER, adjust_p_values
from ..statistics.run_arrays import MIN_READ
from ..tables.codes_read import CODES
from ..tables.frames import OUTCOME
from ..tables.grouping import AGENTS, RowKind
from ..tables.number_format import column_digits, interval, number, probability
from ..tables.score_names import OVERALL, Score
from .basis import sentences

Row = dict[str, Any]
Tables = Mapping[str, pl.DataFrame]

_MAX_NAMED_CHECKS = 6
_FILTERED_BY = ("agent", "model", "task", "track", "tier", "judge", "rubric", "ended")
"""Columns of the runs that are fields of the browser's filter."""
MAX_FILTERED = 400
"""Runs that a filter names one by one; for more, no filter is offered."""


class Finding(NamedTuple):
    """A sentence, and the browser's filter for the runs that it is about ("" for all of them)."""

    text: str
    runs: str = ""


def findings(tables: Tables, score: Score = OVERALL, row_kind: RowKind = AGENTS) -> list[Finding]:
    """Sentences about a score from the tables that exist; tables without numbers give none.

    `row_kind`: what the rows of the tables about agents stand for.
    """
    results = [
        *_basis(tables),
        *_leaderboard(tables, score, row_kind),
        *_stages(tables),
        *_codes(tables),
        *_unread_codes(tables),
        *_cliff(tables, score),
        *_effects(tables, score),
        *_tiers(tables, score),
        *_cost(tables, score),
        *_common_failure(tables),
        *_circular_codes(tables),
        *_failed_checks(tables),
    ]
    return [*_checked_by_people(tables), *results] if results else []


# Rows and wording


def _rows(tables: Tables, name: str, **conditions: Any) -> list[Row]:
    """Rows of a table with these values, with an estimate, and for new tasks if for any."""
    table = tables.get(name)
    if table is None or not {"value", *conditions} <= set(table.columns):
        return []
    for column, value in conditions.items():
        table = table.filter(pl.col(column) == value)
    return [
        row
        for row in table.to_dicts()
        if row["value"] is not None and row.get("population") not in NARROWER
    ]


def _has_columns(tables: Tables, name: str, *columns: str) -> bool:
    return name in tables and set(columns) <= set(tables[name].columns)


def _estimate(row: Row, unit: str = "", scale: float = 1.0) -> str:
    """A value with its unit and its interval, if it has one."""
    value = scale * row["value"]
    low, high = (None if row[end] is None else scale * row[end] for end in ("lo", "hi"))
    if low is None and high is None:
        return f"{number(value)}{unit}"
    digits = column_digits([value, low, high])
    return f"{number(value, digits)}{unit} {interval(low, high, digits)}"


def _relative_change(row: Row) -> str:
    """A change in percent, with its direction in words."""
    low, high = sorted((abs(row["lo"]), abs(row["hi"])))
    direction = "higher" if row["value"] > 0 else "lower"
    value = abs(row["value"])
    digits = column_digits([value, low, high])
    return f"{number(value, digits)} % {interval(low, high, digits)} {direction}"


def _count_runs(count: int) -> str:
    return f"{count} run" if count == 1 else f"{count} runs"


def _enumerate(names: Sequence[str]) -> str:
    """`A`, `A and B`, `A, B and C`."""
    if len(names) <= 1:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def named(field: str, name: str) -> str:
    """A term of the browser's filter for exactly this name.

    A term cannot hold a quotation mark: of such a name it finds what stands before the mark.
    """
    before, mark, _ = name.partition('"')
    return f'{field}:"{before}"' if mark else f'{field}="{name}"'


def _runs_of_rows(names: Sequence[str], kind: RowKind) -> str:
    """The filter for the runs of these rows; "" if no filter selects them."""
    rows = [kind.values(name) for name in names]
    if len(kind.columns) > 1 and len(rows) > 1:
        return ""  # terms of two fields would also find the other pairs
    terms = []
    for row in rows:
        for column, value in row.items():
            if column.startswith(OUTCOME) and value is not None and '"' not in value:
                terms.append(f'{column}:"{value}"')
            elif column in _FILTERED_BY:
                terms.append(f"{column}:none" if value is None else named(column, value))
            else:
                return ""
    return " ".join(terms)


def _these_runs(run_ids: Sequence[str] | None) -> str:
    """The filter for exactly these runs; "" for too many.

    An analysis writes folders in front of ids that runs share; the browser's ids have none.
    """
    ids = dict.fromkeys(run_id.rpartition("/")[2] or run_id for run_id in run_ids or ())
    return "" if len(ids) > MAX_FILTERED else " ".join(named("id", id) for id in ids)


def _has_labels(tables: Tables) -> bool:
    return "corrected_leaderboard" in tables or "corrected_effects" in tables


# Which differences may be named


def _excludes_zero(row: Row) -> bool:
    """Whether an estimate from enough runs has an interval on one side of 0."""
    has_interval = row["lo"] is not None and row["hi"] is not None
    return row["n"] >= MIN_RUNS and has_interval and row["lo"] * row["hi"] > 0


def _significant(family: list[Row]) -> list[Row]:
    """The rows of a family of tests that may be named.

    They are significant at 5 % after Holm's adjustment over the whole family; to adjust over rows
    that were selected by their intervals would promise too much. Their intervals exclude 0.
    """
    adjusted = adjust_p_values([row["p"] for row in family], "holm")
    return [
        row
        for row, p in zip(family, adjusted, strict=True)
        if p is not None and p < 0.05 and _excludes_zero(row)
    ]


def _extreme_group(rows: Sequence[Row], *, highest: bool) -> list[Row]:
    """The highest (lowest) row and all rows that do not differ from it.

    Two rows do not differ if their intervals overlap or one has none.
    """
    ordered = sorted(rows, key=lambda row: -row["value"] if highest else row["value"])
    extreme = ordered[0]
    group = [extreme]
    for row in ordered[1:]:
        upper, lower = (row["hi"], extreme["lo"]) if highest else (extreme["hi"], row["lo"])
        if upper is None or lower is None or upper >= lower:
            group.append(row)
    return group


# The sentences


def _checked_by_people(tables: Tables) -> list[Finding]:
    """Whether people checked the judge, and which numbers their labels correct."""
    if not _has_labels(tables):
        if "basis" not in tables:
            return []
        text = (
            "Nobody has checked this judge’s verdicts against people’s labels: all numbers are as"
            " judged."
        )
        return [Finding(text)]
    corrected = []
    if _leaderboard_rows(tables)[1]:
        corrected.append("the highest mean")
    if _rows(tables, "corrected_effects", kind="corrected"):
        corrected.append("the effects of codes")
    if not corrected:
        text = "People’s labels are too few, or not drawn at random: all numbers are as judged."
        return [Finding(text)]
    text = f"People’s labels correct {_enumerate(corrected)}; all other numbers are as judged."
    return [Finding(text)]


def _basis(tables: Tables) -> list[Finding]:
    """What has to be known first; nothing if all runs were read and all quotes found."""
    table = tables.get("basis")
    if table is None or "judge" not in table.columns or table.is_empty():
        return []
    row = table.row(0, named=True)
    is_flawed = (
        row["presumed_runs"]
        or row["unread_runs"]
        or row["quotes_found"] < row["quotes"]
        or row["contradictions"]
    )
    return [Finding(" ".join(sentences(row)))] if is_flawed else []


def _leaderboard(tables: Tables, score: Score, kind: RowKind) -> list[Finding]:
    """Who is first, and whether that would hold for new tasks."""
    rows, how = _leaderboard_rows(tables)
    if len(rows) < 2:
        return [_single_row(row, score, kind) for row in rows]
    if any("not comparable" in warning for row in rows for warning in row["warnings"] or ()):
        text = (
            f"{kind.plural.capitalize()} have runs of different tracks, so their overall means"
            " cannot be compared: read the boards by track."
        )
        return [Finding(text)]
    complete = [row for row in rows if not _ran_other_tasks(row)]
    if not complete:
        return [_no_common_tasks(rows, score, kind)]
    first = complete[0]
    tied = [row["agent"] for row in complete if abs(row["value"] - first["value"]) < 1e-9]
    runs = _runs_of_rows(tied, kind)
    mean = f"the highest mean {score.titled}{how} {_estimate(first)}"
    others = _other_tasks(rows, first)
    if others:
        mean += f", of those that have a score on all {first['of_cells']} tasks and tiers"
    if len(tied) > 1:
        return [Finding(f"{_enumerate(tied)} share {mean}.{others}", runs)]
    caveat = _missing_scores_caveat([first, *(row for row in rows if row is not first)], score)
    claim = _first_place_claim(
        [first, *(row for row in rows if row is not first)], kind, bool(caveat)
    )
    return [Finding(f"{first['agent']} has {mean}{claim}.{others}{caveat}", runs)]


def _ran_other_tasks(row: Row) -> bool:
    """Whether an agent has no score on a task and tier on which another agent has one."""
    return row.get("cells") is not None and row["cells"] < row["of_cells"]


def _other_tasks(rows: Sequence[Row], first: Row) -> str:
    """A sentence on the agents that are not ranked because they did not run the same tasks."""
    others = [row for row in rows if _ran_other_tasks(row)]
    if not others:
        return ""
    counts = [f"{row['agent']} ({row['cells']})" for row in others[:_MAX_NAMED_CHECKS]]
    more = len(others) - len(counts)
    names = _enumerate(counts if not more else [*counts, f"{more} more"])
    because = "it has" if len(others) == 1 else "they have"
    text = f" Not ranked, because {because} fewer of them: {names}"
    if first["value_common"] is None:
        return f"{text}."
    means = [f"{row['agent']} {number(row['value_common'])}" for row in [first, *others[:3]]]
    return f"{text}; means over those that all have: {_enumerate(means)}."


def _no_common_tasks(rows: Sequence[Row], score: Score, kind: RowKind) -> Finding:
    """What can be said if every agent lacks tasks that another has."""
    text = (
        f"Every {kind.singular} lacks a score on tasks and tiers that another one has, so none is"
        " ranked by its mean"
    )
    with_common = [row for row in rows if row["value_common"] is not None]
    if not with_common:
        return Finding(f"{text}, and they have no task and tier in common.")
    best = max(with_common, key=lambda row: row["value_common"])
    return Finding(
        f"{text}; over those that all have, {best['agent']} has the highest mean {score.titled}"
        f" ({number(best['value_common'])}).",
        _runs_of_rows([best["agent"]], kind),
    )


def _leaderboard_rows(tables: Tables) -> tuple[list[Row], str]:
    """Rows by mean, corrected by labels if all agents are; and how."""
    rows = _rows(tables, "leaderboard", scope="overall")
    by_agent = {row["agent"]: row for row in rows}
    sampled = _agents_with_interval(tables)
    corrected = {
        row["agent"]: row
        for row in _rows(tables, "corrected_leaderboard", kind="corrected")
        if row["agent"] in sampled
    }
    if not rows or not set(by_agent) <= set(corrected):
        return rows, ""
    merged = [by_agent[agent] | corrected[agent] for agent in corrected if agent in by_agent]
    merged.sort(key=lambda row: (_ran_other_tasks(row), -row["value"]))
    return merged, ", corrected by labels,"


def _agents_with_interval(tables: Tables) -> set[str]:
    """Agents whose corrected mean has an interval, be it for these very runs alone.

    Labels of a convenience sample give none.
    """
    table = tables.get("corrected_leaderboard")
    if table is None or "lo" not in table.columns:
        return set()
    return set(table.filter(pl.col("lo").is_not_null())["agent"])


def _single_row(row: Row, score: Score, kind: RowKind) -> Finding:
    text = (
        f"{row['agent']} has a mean {score.titled} of {_estimate(row)} over"
        f" {_count_runs(row['runs'])}."
    )
    return Finding(text, _runs_of_rows([row["agent"]], kind))


def _first_place_claim(rows: Sequence[Row], kind: RowKind, has_caveat: bool) -> str:
    """What may be said about the first place for new tasks."""
    first = rows[0]
    if first["rank_hi"] is None:
        return "; these tasks do not suffice to say whether that holds for new ones"
    if first["rank_hi"] == 1 and not has_caveat:
        return ", and is first for new tasks of the kind as well (Holm over all pairs, 95 %)"
    rivals = sum(row["rank_lo"] == 1 for row in rows[1:])
    if rivals == 0:
        return ""
    others = f"1 other {kind.singular}" if rivals == 1 else f"{rivals} other {kind.plural}"
    return f", but for new tasks {others} could be first: its rank is 1 to {first['rank_hi']}"


def _missing_scores_caveat(rows: Sequence[Row], score: Score) -> str:
    """A sentence if runs without a score could change who is first."""
    first, others = rows[0], rows[1:]
    worst_of_first = first.get("value_missing_zero")
    best_of_others = [
        row["value_missing_best"] for row in others if row.get("value_missing_best") is not None
    ]
    nothing_missing = all(
        row.get("value_missing_zero") == row.get("value_missing_best") for row in rows
    )
    if worst_of_first is None or not best_of_others or nothing_missing:
        return ""
    if max(best_of_others) < worst_of_first:
        return ""
    widest = max(rows, key=_width_of_missing)
    return (
        f" Missing scores could change the order: counted as 0 and as {score.high or 1:g}"
        f" they leave {widest['agent']} between {number(widest['value_missing_zero'])} and"
        f" {number(widest['value_missing_best'])}."
    )


def _width_of_missing(row: Row) -> float:
    low, high = row.get("value_missing_zero"), row.get("value_missing_best")
    return -1.0 if low is None or high is None else high - low


def _stages(tables: Tables) -> list[Finding]:
    """Which stages have the lowest and the highest mean."""
    rows = [row for row in _rows(tables, "stages", agent="(all)") if row["stage"] in STAGES]
    counts = [row["n"] for row in rows]
    # Stages that were scored on other runs than the rest cannot be compared with them.
    if len(rows) < len(STAGES) or min(counts) < max(MIN_RUNS, ENOUGH * max(counts)):
        return []
    if any(row["lo"] is None for row in rows):
        return []
    rows.sort(key=lambda row: row["value"])
    pairs = [(low, high) for low in rows for high in rows if _is_below(low, high)]
    if not pairs:
        text = "No two stages differ significantly in their means."
        return [Finding(text)]
    lowest = _extreme_group(rows, highest=False)
    highest = _extreme_group(rows, highest=True)
    is_clear = not any(row in highest for row in lowest)
    claim = _lowest_and_highest(lowest, highest) if is_clear else _pairs_of_stages(pairs)
    text = f"Of the stages {claim}."
    return [Finding(text, f"{rows[0]['stage']}<0.5")]


def _is_below(low: Row, high: Row) -> bool:
    """Whether two rows differ significantly, the first being lower: their intervals are apart."""
    return bool(low["hi"] < high["lo"])


def _stage(row: Row) -> str:
    return f"{row['stage']} ({_estimate(row)})"


def _lowest_and_highest(lowest: Sequence[Row], highest: Sequence[Row]) -> str:
    """The extreme stages, each with those that it is not told apart from."""
    low, *not_above = lowest
    high, *not_below = highest
    text = f"{_stage(low)} has the lowest mean"
    if not_above:
        text += f", not significantly below {_enumerate([_stage(row) for row in not_above])}"
    text += f"; {_stage(high)} has the highest"
    if not_below:
        text += f", not significantly above {_enumerate([_stage(row) for row in not_below])}"
    return text


def _pairs_of_stages(pairs: Sequence[tuple[Row, Row]]) -> str:
    """All pairs that are told apart, if a stage is among the lowest and among the highest."""
    higher_by_low: dict[str, list[Row]] = {}
    rows_by_stage: dict[str, Row] = {}
    for low, high in pairs:
        rows_by_stage[low["stage"]] = low
        higher_by_low.setdefault(low["stage"], []).append(high)
    claims = []
    introduced: set[str] = set()

    def name(row: Row) -> str:
        """A stage, with its mean where it is named first."""
        if row["stage"] in introduced:
            return str(row["stage"])
        introduced.add(row["stage"])
        return _stage(row)

    for stage, higher in higher_by_low.items():
        subject = name(rows_by_stage[stage])
        others = _enumerate([name(row) for row in higher])
        claims.append(f"{subject} has a lower mean than {others}")
    return f"{'; '.join(claims)}; no other two differ significantly"


def _codes(tables: Tables) -> list[Finding]:
    """Which codes fire most often."""
    rows = _rows(tables, "codes", measure="share of fired codes")
    fired = [row for row in rows if row["fired"]]
    total = sum(row["fired"] for row in fired)
    if not fired or total < MIN_RUNS:
        return []
    counted = [row["code"] for row in rows]
    population = "the fired codes"
    if len(counted) < len(CODES):
        population += f" {', '.join(counted)}"
    top = _extreme_group(fired, highest=True)
    shares = [f"{row['code']} {_estimate(row, ' %', 100)}" for row in top]
    if len(fired) == 1:
        text = f"All {total} of {population} are {fired[0]['code']}"
    elif any(row["lo"] is None for row in fired):
        # Without intervals nothing is tested, and all codes are in the group.
        text = f"Shares of {population}: {_enumerate(shares)}"
    elif len(top) == len(fired):
        text = (
            f"Of {population} none is significantly more frequent than all others:"
            f" {_enumerate(shares)}"
        )
    else:
        text = f"Most frequent of {population}: {shares[0]}"
        if len(top) > 1:
            text += f", not significantly more than {_enumerate(shares[1:])}"
    text = f"{text}{_share_read(rows[0])}.{_engineering_ratio(tables)}"
    return [Finding(text, " ".join(f"code:{row['code']}" for row in top))]


def _engineering_ratio(tables: Tables) -> str:
    rows = _rows(tables, "codes", measure="ratio")
    if not rows or rows[0]["lo"] is None:
        return ""
    return f" There are {_estimate(rows[0])} engineering codes (E2–E5) per knowledge code (E1)."


def _share_read(row: Row) -> str:
    if row["read"] >= row["runs"]:
        return ""
    return f", in {row['read']} of {_count_runs(row['runs'])} that were read for them"


def _unread_codes(tables: Tables) -> list[Finding]:
    """How many runs were read for codes that were not read in all: silence would look clean."""
    if not _has_columns(tables, "codes_read", "read"):
        return []
    rows = tables["codes_read"].filter(pl.col("read") < pl.col("runs")).to_dicts()
    if not rows:
        return []
    by_count: dict[int, list[str]] = {}
    for row in rows:
        by_count.setdefault(row["read"], []).append(row["code"])
    parts = []
    for count, codes in sorted(by_count.items()):
        verb = "was" if len(codes) == 1 else "were"
        total = _count_runs(rows[0]["runs"])
        parts.append(f"{' and '.join(codes)} {verb} read in {count or 'none'} of {total}")
    text = f"{'; '.join(parts)}: nothing is known of how often a code occurs in the others."
    by_facts = [f"{row['code']} in {row['fired_unread']}" for row in rows if row["fired_unread"]]
    if by_facts:
        text += f" Facts show {', '.join(by_facts)} of the runs that nobody read."
    return [Finding(text, " ".join(f"unread:{row['code']}" for row in rows))]


def _cliff(tables: Tables, score: Score) -> list[Finding]:
    """How much lower runs with one code score than runs without any."""
    raw = [row for row in _rows(tables, "cliff", kind="drop_raw", group="1") if _excludes_zero(row)]
    within_cells = [
        row
        for row in _rows(tables, "cliff", kind="drop_within_cell", group="1")
        if _excludes_zero(row)
    ]
    if not raw:
        return []
    counted = raw[0].get("codes") or ""
    among, none = "", "none"
    if counted and counted != ", ".join(CODES):
        among, none = f" of {counted}", "none of these"
    text = (
        f"Runs with one fired code{among} have a mean {score.name} {_relative_change(raw[0])} than"
        f" runs with {none}"
    )
    if within_cells:
        change = _relative_change(within_cells[0])
        text += f"; among repeats of the same agent, task and tier {change}"
    return [Finding(f"{text}.", "codes=1")]


def _effects(tables: Tables, score: Score) -> list[Finding]:
    """Which codes go with a difference of the score."""
    if not _has_columns(tables, "code_effects", "status"):
        return []
    all_rows = [row for row in tables["code_effects"].to_dicts() if row["population"] == "new"]
    rows = [row for row in all_rows if row["value"] is not None]
    if any(row["status"] == "confounded" for row in rows):
        return [_confounded(rows)]
    claimed = _claimed_effects(tables, rows)
    if not claimed:
        return []
    claimed.sort(key=lambda row: -abs(row["value"]))
    effects = "; ".join(_effect(tables, row, score) for row in claimed)
    text = (
        f"Codes that go with a difference, in {_effect_unit(tables, score)}: {effects}. These are"
        f" associations, not causes{_robustness_explained(tables)}."
    )
    unread = [row["code"] for row in all_rows if row["read"] < min(MIN_READ, row["runs"])]
    if unread:
        text += f" Too few runs were read for {_enumerate(unread)} to say."
    return [Finding(text, " ".join(f"code:{row['code']}" for row in claimed))]


def _confounded(rows: Sequence[Row]) -> Finding:
    p = min(row["placebo_p"] for row in rows if row["placebo_p"] is not None)
    text = (
        "Caution: runs with E3, E4 or E5 already differ in stages that were over before"
        f" (placebo p = {probability(p)}): something else may drive both, and no effect of a"
        " code is claimed."
    )
    return Finding(text, "code:E3 code:E4 code:E5")


def _claimed_effects(tables: Tables, rows: Sequence[Row]) -> list[Row]:
    """Effects that may be named; with labels by their corrected numbers alone.

    The judge may hide an effect as well as make one, so its own test decides nothing then. Tests
    are adjusted over all corrected effects. Rough intervals of few labels name none.
    """
    circular = {row["code"] for row in _circular_rows(tables)}
    testable = [row for row in rows if row["status"] == "ok" and row["code"] not in circular]
    if not _has_labels(tables):
        return [row for row in testable if _is_claimable(row)]
    corrected = _rows(tables, "corrected_effects", kind="corrected")
    significant = {
        row["code"]: row
        for row in _significant(corrected)
        if row["human_positives"] >= FEW_POSITIVES
    }
    return [
        row | significant[row["code"]]
        for row in testable
        if row["code"] in significant and _survives_missing(row)
    ]


def _is_claimable(row: Row) -> bool:
    """Whether an effect is significant, also under either extreme of the missing scores."""
    is_significant = row["p_holm"] is not None and row["p_holm"] < 0.05
    return is_significant and _excludes_zero(row) and _survives_missing(row)


def _survives_missing(row: Row) -> bool:
    return row["missing_lo"] is None or bool(row["missing_lo"] * row["missing_hi"] > 0)


def _effect_unit(tables: Tables, score: Score) -> str:
    unit = f"points of {score.name}" if score == OVERALL else score.titled
    tests = "Holm over the codes"
    if _has_labels(tables):
        tests = f"corrected by labels; {tests}"
    return f"{unit} against repeats of the same cell with the same other codes ({tests})"


def _robustness_explained(tables: Tables) -> str:
    if _has_labels(tables):
        return ""
    return (
        ": RV is the share of the remaining variance of both that an unseen cause would have to"
        " explain to erase one"
    )


def _effect(tables: Tables, row: Row, score: Score) -> str:
    """One effect with its share of result quality and its reasons for doubt."""
    text = f"{row['code']} {_estimate(row)}"
    doubts = []
    if not _has_labels(tables):
        # Part and robustness value are those of the uncorrected number.
        if score == OVERALL:
            text += _quality_share(tables, row["code"])
        if row["robustness_value"] is not None:
            doubts.append(f"RV {fixed(100 * row['robustness_value'], 0)} %")
    if row["placebo_p"] is not None:
        doubts.append(f"placebo p {probability(row['placebo_p'])}")
    return f"{text} ({', '.join(doubts)})" if doubts else text


def _quality_share(tables: Tables, code: str) -> str:
    parts = _rows(tables, "effect_parts", code=code, part="task part: quality")
    if not parts:
        return ""
    points = number(parts[0]["value"])
    return (
        f", of which {points} come from the quality of results alone, not from rules or the judge"
    )


def _tiers(tables: Tables, score: Score) -> list[Finding]:
    """How scores differ by tier, without the points that the rubric credits in one of them."""
    rows = _rows(tables, "tiers", agent="(all)", outcome=f"{score.column}_free")
    without = ", without the criteria that a tier credits"
    if not rows:
        rows, without = _rows(tables, "tiers", agent="(all)", outcome=score.column), ""
    return [
        Finding(
            f"{score.name}{without}{',' if without else ''} in {row['tier']} is"
            f" {_relative_change(row)} than in {row['baseline']}, on tasks that have both.",
            f"tier:{row['tier']}",
        )
        for row in _significant(rows)
    ]


def _cost(tables: Tables, score: Score) -> list[Finding]:
    """Whether runs that cost more score higher or lower."""
    wording = {"runs": "over all runs", "within_cell": "between repeats of the same cell"}
    rows = [
        row
        for kind in wording
        for row in _rows(tables, "cost", track="(all)", cost="cost_usd", kind=kind)
    ]
    parts = []
    for row in _significant(rows):
        direction = "higher" if row["value"] > 0 else "lower"
        population = wording[row["kind"]]
        parts.append(f"{population} dearer runs score {direction}, r = {_estimate(row)}")
    if not parts:
        return []
    return [Finding(f"Cost and {score.name}: {'; '.join(parts)}.")]


def _common_failure(tables: Tables) -> list[Finding]:
    """The group of failures in most runs, if one is in more runs than any other."""
    if not _has_columns(tables, "clusters", "rank", "run_ids"):
        return []
    has_words = pl.col("example").str.count_matches(" ") >= 2
    rows = tables["clusters"].filter(has_words).sort("runs", descending=True).to_dicts()
    if not rows or rows[0]["runs"] < 2:
        return []
    if len(rows) > 1 and rows[1]["runs"] == rows[0]["runs"]:
        return []
    text = (
        f"The most common failure ({rows[0]['runs']} runs) is of this kind:"
        f" “{rows[0]['example'].rstrip('.')}”."
    )
    return [Finding(text, _these_runs(rows[0]["run_ids"]))]


def _circular_rows(tables: Tables) -> list[Row]:
    if not _has_columns(tables, "circularity", "code", "verdict"):
        return []
    rows = tables["circularity"].to_dicts()
    return [row for row in rows if str(row["verdict"]).endswith("by outcome")]


def _circular_codes(tables: Tables) -> list[Finding]:
    return [
        Finding(
            f"Caution: {row['code']} {row['verdict']}; it cannot explain the score that it"
            " restates.",
            f"code:{row['code']}",
        )
        for row in _circular_rows(tables)
    ]


def _failed_checks(tables: Tables) -> list[Finding]:
    if not _has_columns(tables, "checks", "status", "run_ids"):
        return []
    problems = tables["checks"].filter(pl.col("status") == "problem")
    if problems.is_empty():
        return []
    checks = "1 check" if problems.height == 1 else f"{problems.height} checks"
    names = ", ".join(problems["check"].to_list()[:_MAX_NAMED_CHECKS])
    run_ids = problems["run_ids"].explode().drop_nulls().to_list()
    text = f"{checks} of the scores found problems: {names}."
    return [Finding(text, _these_runs(run_ids))]
