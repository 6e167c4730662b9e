"""Is the frame what it says: scores that add up, one policy, no duplicates, no scores without
evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..tables.codes_read import CODES, reading_counts, sampled
from ..tables.frames import WEIGHTS
from .overall_parts import PARTS, overall_parts
from .overlap_weighting import REFUSE_FIRED
from .run_arrays import NO_POINT_REASON, insufficiently_read

TOLERANCE = 0.02
"""Overall and agentic are serialised with 2 and 4 decimals."""


def validate_scores(table: pl.DataFrame) -> pl.DataFrame:
    """One row a check: `check`, `status` (ok, note, problem), `count` of runs concerned, `detail`,
    first `examples`.

    Checks: values in range, Overall = 50 Agentic + 50 Task, Agentic = weighted stages under the
    row's own missing policy (and which policy fits), mixed policies, judges, rubrics, duplicates,
    breaches, codes read off the score.
    """
    rows: list[dict[str, Any]] = []
    nothing = np.zeros(table.height, dtype=bool)

    def add(
        check: str, mask: pl.Series | np.ndarray[Any, Any], detail: str, bad: str = "problem"
    ) -> None:
        hit = table.filter(pl.Series(mask, dtype=pl.Boolean))
        rows.append(
            {
                "check": check,
                "status": bad if hit.height else "ok",
                "count": hit.height,
                "detail": detail if hit.height else "",
                "examples": hit["run_id"].head(5).to_list(),
            }
        )

    def twice(*columns: str) -> pl.Series:
        return (
            table.select(columns).is_duplicated() if table.height else pl.Series(dtype=pl.Boolean)
        )

    add("runs", nothing, "")
    if table.height:
        rows[-1]["count"] = table.height
    else:
        rows[-1] |= {"status": "problem", "detail": "no runs"}
    unit = [*WEIGHTS, "agentic", "task_score"]
    beyond = pl.any_horizontal(
        (pl.col(c) < 0) | (pl.col(c) > 1) | pl.col(c).is_nan() for c in unit
    ).fill_null(False)
    add(
        "values in range",
        table.select(beyond).to_series(),
        "stages, agentic and task must be in 0..1",
    )
    gap = (table["overall"] - 50 * (table["agentic"] + table["task_score"])).abs()
    apart = "the three do not add up: foreign scores or an edited card"
    add("overall = 50 agentic + 50 task", (gap > TOLERANCE).fill_null(False), apart)
    stages = table.select(list(WEIGHTS)).to_numpy().astype(float).reshape(-1, 5)
    weights, scored = np.array(list(WEIGHTS.values())), np.isfinite(stages)
    agentic = table["agentic"].to_numpy().astype(float)
    weighted = np.where(scored, stages, 0.0) @ weights
    total = scored @ weights
    with np.errstate(divide="ignore", invalid="ignore"):
        off = {
            "renormalize": np.abs(weighted / total - agentic),
            "zero": np.abs(weighted - agentic),
        }
    zeroed = table["disqualified"].fill_null(False).to_numpy()
    partial = scored.any(1) & ~scored.all(1) & ~zeroed
    policy = table["missing_policy"].fill_null("renormalize").to_numpy().astype(str)
    own = np.where(policy == "zero", off["zero"], off["renormalize"])
    unlike = "agentic is not the weighted stage mean under the row's policy"
    # The harness blends tool usage into the S3 and S4 that it reports after it has computed
    # Agentic.
    theirs = (table["like"] == "harness").fill_null(False).to_numpy()
    add("agentic = weighted stages", (own > 2e-4) & ~zeroed & ~theirs, unlike)
    for name, other in (("renormalize", "zero"), ("zero", "renormalize")):
        swapped = (policy == name) & partial & (own > 2e-4) & (off[other] <= 2e-4)
        add(f"missing policy {name}", swapped, f"says {name}, but agentic was computed by {other}")
    guessed = (table["presumed"] > 0).fill_null(False).to_numpy()
    add(
        "presumed criteria",
        guessed,
        "S1-S3, agentic and overall rest in part on criteria that nobody read (~)",
        "note",
    )
    lacking = table.select(insufficiently_read()).to_series()
    add("runs read enough", lacking, f"a range and no point: {NO_POINT_REASON}", "problem")
    missed = (table["quotes_found"] < table["quotes"]).fill_null(False)
    rate = f"{table['quotes_found'].sum()} of {table['quotes'].sum()} quotes were found in the runs"
    add(
        "quotes found",
        missed,
        f"{rate}: verdicts on the others are not proven (strict_evidence in a --policy file)",
        "note",
    )
    against = (table["contradictions"] > 0).fill_null(False)
    add(
        "verdicts contradicted",
        against,
        f"facts of the runs contradict {table['contradictions'].sum()} verdicts",
        "note",
    )
    add(
        "unscored stages",
        partial,
        "some stages are unscored: their weight goes by the missing policy",
        "note",
    )
    rest = np.nan_to_num(overall_parts(table)[:, PARTS.index("other")])
    add(
        "parts of overall",
        np.abs(rest) > TOLERANCE,
        "stages and Task do not explain Overall exactly",
        "note",
    )
    without = "Overall is unknown (no Task): left out of leaderboards, or 0 beside them"
    add("no overall", table["overall"].is_null(), without, "note")
    for what in (
        "like",
        "missing_policy",
        "breach_policy",
        "strict_evidence",
        "judge",
        "rubric_version",
    ):
        kinds = table[what].drop_nulls().unique().sort().to_list()
        mixed = len(kinds) > 1
        if what == "rubric_version":
            mixed = bool((table.group_by("rubric").agg(pl.col(what).n_unique())[what] > 1).any())
        told = f"mixed: {', '.join(map(str, kinds[:5]))}"
        add(
            f"one {what}",
            np.full(table.height, mixed),
            told,
            "note" if what == "judge" else "problem",
        )
    add("same run twice", twice("run_id", "judge"), "several scorecards of a run by one judge")
    known = table["sha256"].is_not_null() & (table["sha256"] != "")
    copies = "runs with identical content: copies of one run?"
    add("same content twice", twice("sha256", "judge") & known, copies)
    again = twice("agent", "task", "tier", "repeat", "judge") & table["repeat"].is_not_null()
    add("same repeat twice", again, "two runs claim the same repeat of a cell")
    add("disqualified", zeroed, "breach runs: 0 by policy, left out of code effects", "note")
    inside = zeroed & (np.nan_to_num(table["overall"].to_numpy().astype(float)) > 0)
    inside &= (table["breach_policy"] == "zero-all").fill_null(False).to_numpy()
    add("disqualified but above 0", inside, "the breach policy zero-all was not applied")
    for name in ("agent", "task", "track", "tier"):
        add(
            f"{name} known",
            table[name].is_null(),
            f"runs without {name} are grouped as unknown",
            "note",
        )
    circular = "tags read off the score: circular when related to it"
    for code in CODES:
        score, judge, detector = (
            table[f"{code}_{name}"].fill_null(False) for name in ("score", "judge", "detector")
        )
        add(f"{code} independent of the score", score & ~judge & ~detector, circular, "note")
    counts = {row["code"]: row for row in reading_counts(table).to_dicts()}
    few = [f"{code} {row['read']}" for code, row in counts.items() if row["read"] < table.height]
    not_read = (
        table.select(pl.any_horizontal(sampled(code).is_null() for code in CODES)).to_series()
        if few
        else nothing
    )
    where = (
        f"read in fewer than all {table.height} runs: {', '.join(few)}; the rest is unknown, not"
        " clean"
    )
    add("codes read", not_read, where, "note")
    fired = {code: row["present"] for code, row in counts.items() if row["read"]}
    rare = [f"{code} {n}" for code, n in fired.items() if n < REFUSE_FIRED]
    rows.append(
        {
            "check": "firings",
            "status": "note" if rare else "ok",
            "count": sum(fired.values()),
            "detail": f"too rare for effects: {', '.join(rare)}" if rare else "",
            "examples": [],
        }
    )
    schema: dict[str, Any] = {
        "check": pl.String,
        "status": pl.String,
        "count": pl.Int64,
        "detail": pl.String,
        "examples": pl.List(pl.String),
    }
    return pl.DataFrame(rows, schema=schema)
