"""Checks of a run frame: scores that add up, one policy, no duplicates, codes with evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl

from ..tables.codes_read import CODES, reading_counts, sampled
from ..tables.frames import WEIGHTS
from .interval_estimates import Bools, Floats
from .overall_parts import PARTS, overall_parts
from .overlap_weighting import REFUSE_FIRED
from .run_arrays import NO_POINT_REASON, insufficiently_read

OVERALL_TOLERANCE = 0.02
"""Overall has 2 decimals in a scorecard, and Agentic 4."""
AGENTIC_TOLERANCE = 2e-4
MAX_EXAMPLES = 5
UNIFORM_COLUMNS = (
    "like",
    "missing_policy",
    "breach_policy",
    "strict_evidence",
    "judge",
    "rubric_version",
)
"""Columns that have one value in a cohort whose scores can be compared."""

Severity = Literal["note", "problem"]


def validate_scores(table: pl.DataFrame) -> pl.DataFrame:
    """One row a check: `check`, `status`, `count`, `detail`, first `examples`, `run_ids`.

    `status`: ok, note or problem. `count`: runs concerned (of the check `runs` all, of `firings`
    the fired codes). `examples`: run ids; `run_ids`: of all runs with a problem. Checked are:
    values in range, Overall = 50 Agentic + 50 Task, Agentic = weighted stages under the row's own
    missing policy (and which policy fits), criteria without verdicts, mixed policies, judges and
    rubrics, duplicates, breaches, and codes that rest on the score.
    """
    checks = _Checks(table)
    _check_size(checks)
    _check_sums(checks)
    _check_evidence(checks)
    _check_missing_scores(checks)
    _check_uniformity(checks)
    _check_duplicates(checks)
    _check_breaches(checks)
    _check_names(checks)
    _check_codes(checks)
    return checks.as_table()


@dataclass
class _Checks:
    """A run frame with the results of its checks as they are added."""

    table: pl.DataFrame
    rows: list[dict[str, Any]] = field(default_factory=list)

    @cached_property
    def disqualified(self) -> Bools:
        """Whether a run is disqualified."""
        return self.table["disqualified"].fill_null(False).to_numpy()

    @cached_property
    def stage_scores(self) -> Floats:
        """Stage scores, (runs, 5); NaN where a stage is unscored."""
        return self.table.select(list(WEIGHTS)).to_numpy().astype(float).reshape(-1, len(WEIGHTS))

    @cached_property
    def partly_scored(self) -> Bools:
        """Whether some but not all stages are scored; False for disqualified runs."""
        has_score = np.isfinite(self.stage_scores)
        return has_score.any(1) & ~has_score.all(1) & ~self.disqualified

    def add(
        self, check: str, concerned: pl.Series | Bools, detail: str, severity: Severity = "problem"
    ) -> None:
        """Add a check. `concerned`: for each run whether it fails; nulls count as passed."""
        runs = self.table.filter(pl.Series(concerned, dtype=pl.Boolean))
        self.rows.append(
            {
                "check": check,
                "status": severity if runs.height else "ok",
                "count": runs.height,
                "detail": detail if runs.height else "",
                "examples": runs["run_id"].head(MAX_EXAMPLES).to_list(),
                "run_ids": runs["run_id"].to_list() if severity == "problem" else [],
            }
        )

    def add_summary(self, check: str, count: int, detail: str, status: str) -> None:
        """Add a check of the cohort as a whole, without examples."""
        row = {"check": check, "status": status, "count": count, "detail": detail}
        self.rows.append({**row, "examples": [], "run_ids": []})

    def as_table(self) -> pl.DataFrame:
        schema: dict[str, Any] = {
            "check": pl.String,
            "status": pl.String,
            "count": pl.Int64,
            "detail": pl.String,
            "examples": pl.List(pl.String),
            "run_ids": pl.List(pl.String),
        }
        return pl.DataFrame(self.rows, schema=schema)


def _check_size(checks: _Checks) -> None:
    n_runs = checks.table.height
    if n_runs:
        checks.add_summary("runs", n_runs, "", "ok")
    else:
        checks.add_summary("runs", 0, "no runs", "problem")


def _check_sums(checks: _Checks) -> None:
    """Values in range, and Overall and Agentic that follow from their parts."""
    table = checks.table
    out_of_range = pl.any_horizontal(
        (pl.col(name) < 0) | (pl.col(name) > 1) | pl.col(name).is_nan()
        for name in (*WEIGHTS, "agentic", "task_score")
    )
    checks.add(
        "values in range",
        table.select(out_of_range.fill_null(False)).to_series(),
        "stages, agentic and task must be in 0..1",
    )
    overall_gap = (table["overall"] - 50 * (table["agentic"] + table["task_score"])).abs()
    checks.add(
        "overall = 50 agentic + 50 task",
        (overall_gap > OVERALL_TOLERANCE).fill_null(False),
        "the three do not add up: scores from another tool, or an edited scorecard",
    )
    _check_agentic(checks)


def _check_agentic(checks: _Checks) -> None:
    """Whether Agentic is the weighted mean of stages, and under which missing policy."""
    table = checks.table
    gaps = _agentic_gaps(checks)
    policy = table["missing_policy"].fill_null("renormalize").to_numpy().astype(str)
    gap = np.where(policy == "zero", gaps["zero"], gaps["renormalize"])
    is_wrong = gap > AGENTIC_TOLERANCE
    # The harness blends tool usage into the S3 and S4 that it reports after it has computed
    # Agentic.
    scored_like_harness = (table["like"] == "harness").fill_null(False).to_numpy()
    checks.add(
        "agentic = weighted stages",
        is_wrong & ~checks.disqualified & ~scored_like_harness,
        "agentic is not the weighted stage mean under the row's policy",
    )
    # With all stages scored the policies agree, so that only partly scored runs can tell.
    for name, other in (("renormalize", "zero"), ("zero", "renormalize")):
        fits_other = gaps[other] <= AGENTIC_TOLERANCE
        checks.add(
            f"missing policy {name}",
            (policy == name) & checks.partly_scored & is_wrong & fits_other,
            f"the policy is {name}, but agentic was computed with {other}",
        )


def _agentic_gaps(checks: _Checks) -> dict[str, Floats]:
    """Distance of Agentic from the weighted stages under each missing policy; NaN if unknown."""
    agentic = checks.table["agentic"].to_numpy().astype(float)
    weights = np.array(list(WEIGHTS.values()))
    has_score = np.isfinite(checks.stage_scores)
    weighted_sum = np.where(has_score, checks.stage_scores, 0.0) @ weights
    scored_weight = has_score @ weights
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "renormalize": np.abs(weighted_sum / scored_weight - agentic),
            "zero": np.abs(weighted_sum - agentic),
        }


def _check_evidence(checks: _Checks) -> None:
    """Verdicts that are presumed, missing, without a verified quote, or refuted by facts."""
    table = checks.table
    checks.add(
        "presumed criteria",
        (table["presumed"] > 0).fill_null(False),
        "S1-S3, agentic and overall rest partly on presumed values of criteria without a verdict"
        " (~)",
        "note",
    )
    checks.add(
        "runs read enough",
        table.select(insufficiently_read()).to_series(),
        f"too few judged criteria for a point score, so only a range is given ({NO_POINT_REASON})",
    )
    checks.add(
        "quotes found",
        (table["quotes_found"] < table["quotes"]).fill_null(False),
        f"{table['quotes_found'].sum()} of {table['quotes'].sum()} quotes were found in the runs:"
        " verdicts that cite the others are unproven (strict_evidence in a --policy file)",
        "note",
    )
    checks.add(
        "verdicts contradicted",
        (table["contradictions"] > 0).fill_null(False),
        f"facts of the runs contradict {table['contradictions'].sum()} verdicts",
        "note",
    )


def _check_missing_scores(checks: _Checks) -> None:
    table = checks.table
    checks.add(
        "unscored stages",
        checks.partly_scored,
        "some stages are unscored: the missing policy decides how their weight counts",
        "note",
    )
    unexplained = np.nan_to_num(overall_parts(table)[:, PARTS.index("other")])
    checks.add(
        "parts of overall",
        np.abs(unexplained) > OVERALL_TOLERANCE,
        "stages and Task do not explain Overall exactly",
        "note",
    )
    checks.add(
        "no overall",
        table["overall"].is_null(),
        "Overall is unknown (no Task): left out of leaderboards; value_missing_zero counts it as 0",
        "note",
    )


def _check_uniformity(checks: _Checks) -> None:
    """Whether all runs were scored in the same way."""
    table = checks.table
    for column in UNIFORM_COLUMNS:
        values = table[column].drop_nulls().unique().sort().to_list()
        is_mixed = len(values) > 1
        if column == "rubric_version":
            # Versions are those of a rubric: different rubrics may well differ in them.
            versions = table.group_by("rubric").agg(pl.col(column).n_unique())
            is_mixed = bool((versions[column] > 1).any())
        first_values = ", ".join(map(str, values[:5]))
        checks.add(
            f"one {column}",
            np.full(table.height, is_mixed),
            f"mixed: {first_values}",
            "note" if column == "judge" else "problem",
        )


def _check_duplicates(checks: _Checks) -> None:
    table = checks.table
    checks.add(
        "same run twice",
        _is_duplicated(table, "run_id", "judge"),
        "several scorecards of a run by one judge",
    )
    has_hash = table["sha256"].is_not_null() & (table["sha256"] != "")
    checks.add(
        "same content twice",
        _is_duplicated(table, "sha256", "judge") & has_hash,
        "runs with identical content: copies of one run?",
    )
    checks.add(
        "same repeat twice",
        _is_duplicated(table, "agent", "task", "tier", "repeat", "judge")
        & table["repeat"].is_not_null(),
        "two runs claim the same repeat of a cell",
    )


def _is_duplicated(table: pl.DataFrame, *columns: str) -> pl.Series:
    if table.is_empty():
        return pl.Series(dtype=pl.Boolean)
    return table.select(columns).is_duplicated()


def _check_breaches(checks: _Checks) -> None:
    table = checks.table
    checks.add(
        "disqualified",
        checks.disqualified,
        "runs with a breach: 0 by policy, left out of code effects",
        "note",
    )
    overall = np.nan_to_num(table["overall"].to_numpy().astype(float))
    zero_by_policy = (table["breach_policy"] == "zero-all").fill_null(False).to_numpy()
    checks.add(
        "disqualified but above 0",
        checks.disqualified & (overall > 0) & zero_by_policy,
        "the breach policy zero-all was not applied",
    )


def _check_names(checks: _Checks) -> None:
    for column in ("agent", "task", "track", "tier"):
        checks.add(
            f"{column} known",
            checks.table[column].is_null(),
            f"runs without {column} are grouped as unknown",
            "note",
        )


def _check_codes(checks: _Checks) -> None:
    """Whether codes rest on more than the score, were read in all runs, and fired often enough."""
    table = checks.table
    for code in CODES:
        from_score, from_judge, from_detector = (
            table[f"{code}_{source}"].fill_null(False) for source in ("score", "judge", "detector")
        )
        checks.add(
            f"{code} independent of the score",
            from_score & ~from_judge & ~from_detector,
            "the code rests on the score alone: relating it to the score is circular",
            "note",
        )
    counts = reading_counts(table).to_dicts()
    _check_codes_read(checks, counts)
    n_fired = {row["code"]: row["present"] for row in counts if row["read"]}
    too_rare = [f"{code} {n}" for code, n in n_fired.items() if n < REFUSE_FIRED]
    checks.add_summary(
        "firings",
        sum(n_fired.values()),
        f"too rare for effects: {', '.join(too_rare)}" if too_rare else "",
        "note" if too_rare else "ok",
    )


def _check_codes_read(checks: _Checks, counts: list[dict[str, Any]]) -> None:
    """Add the runs that were not read for every code. `counts`: rows of `reading_counts`."""
    table = checks.table
    partly_read = [f"{row['code']} {row['read']}" for row in counts if row["read"] < table.height]
    is_unread = pl.any_horizontal(sampled(code).is_null() for code in CODES)
    checks.add(
        "codes read",
        table.select(is_unread).to_series(),
        f"read in fewer than all {table.height} runs: {', '.join(partly_read)}; the code is unknown"
        " in the others, not absent",
        "note",
    )
