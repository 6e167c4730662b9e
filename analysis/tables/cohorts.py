"""Scorecards as polars frames: one row a run, and beside it one row a criterion and one row a fired
code.

`cohort` reads scorecards (JSON Lines, JSON, Parquet, CSV, a folder of them, a folder of runs, or
objects) in batches, so that memory grows with the columns kept and not with the text of the cards.
`frame` and `criteria` are its parts.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import polars as pl

from ...errors import InputError
from ...judge.base import JUDGED
from ...judge.card.fields import JudgeInfo
from ...judge.card.scorecard import ScoreCard
from ...trajectories.models import STAGES, Outcome
from .card_sources import Scoring, read_cards
from .codes_read import CODE_SOURCES, CODES, with_readings
from .frames import FREE, GROUP, OUTCOME, PARTS_SCHEMA, RUN_SCHEMA, conform
from .run_ids import told_apart

log = logging.getLogger(__name__)

BATCH = 4096
MOST_OUTCOMES = 200
"""Columns of outcomes, those that most runs have first."""
_TEXT, _REAL, _WHOLE = pl.String, pl.Float64, pl.Int64
CRITERIA_SCHEMA: dict[str, Any] = {
    "run_id": _TEXT,
    "judge": _TEXT,
    "rubric": _TEXT,
    "stage": pl.Categorical,
    "criterion": pl.Categorical,
    "value": _REAL,
    "status": pl.Categorical,
    "reason": pl.Categorical,
}
CODES_SCHEMA: dict[str, Any] = {
    "run_id": _TEXT,
    "judge": _TEXT,
    "taxonomy": _TEXT,
    "code": _TEXT,
    "stage": pl.Enum(STAGES),
    "by": _TEXT,
    "independence": _TEXT,
    "confidence": _REAL,
}


@dataclass(frozen=True)
class Cohort:
    """Runs (RUN_SCHEMA plus FREE, and `group.NAME`, `outcome.NAME` where scorecards have such),
    criteria (CRITERIA_SCHEMA), codes (CODES_SCHEMA), what could not be read, and scores of parts of
    the cases (PARTS_SCHEMA)."""

    runs: pl.DataFrame
    criteria: pl.DataFrame
    codes: pl.DataFrame
    problems: tuple[str, ...] = ()
    parts: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PARTS_SCHEMA))
    titles: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Rubric of a user's own -> titles of its criteria by id."""


class _Builder:
    """Columns filled row by row and turned into polars chunks every BATCH rows."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = dict(schema)
        self.rows: list[tuple[Any, ...]] = []
        self.chunks: list[pl.DataFrame] = []

    def add(self, row: tuple[Any, ...]) -> None:
        self.rows.append(row)
        if len(self.rows) >= BATCH:
            self.flush()

    def flush(self) -> None:
        if self.rows:
            self.chunks.append(pl.DataFrame(self.rows, schema=self.schema, orient="row"))
            self.rows = []

    def frame(self) -> pl.DataFrame:
        self.flush()
        return (
            pl.concat(self.chunks, rechunk=True)
            if self.chunks
            else pl.DataFrame(schema=self.schema)
        )


@cache
def _proving() -> frozenset[str]:
    """Detectors whose findings stand whatever is read."""
    from ...error_codes.registry import detectors

    return frozenset(
        f"detector:{detector.name}" for detector in detectors() if detector.fact is not None
    )


def _run_row(card: ScoreCard) -> tuple[Any, ...]:
    run, stages, status, use, grades = (
        card.run,
        card.stages,
        card.status,
        card.resources,
        card.grades,
    )
    paper = [code for code in card.codes if code.taxonomy == "paper"]
    fired = {code.code for code in paper}
    source = {
        "from_judge": "judge",
        "from_trace": "detector",
        "from_files": "detector",
        "from_score": "score",
    }
    by_source = {(code.code, source[code.independence]) for code in paper}
    by_source |= {(code.code, "fact") for code in paper if code.by in _proving()}
    checks = [stages[s].checks if s in stages else None for s in ("S4", "S5")]

    def check(name: str) -> Any:
        values = (getattr(c, name) for c in checks if c is not None)
        return next((value for value in values if value is not None), None)

    def per_stage(name: str) -> list[Any]:
        return [getattr(stages[s], name) if s in stages else None for s in STAGES]

    counted = [card.stage_use.get(s) for s in STAGES]
    turns = [
        card.turn_stages.count(s) if card.turn_stages else (u.turns if u else None)
        for s, u in zip(STAGES, counted, strict=True)
    ]
    return (
        run.id,
        run.path,
        run.sha256,
        run.agent,
        run.model,
        run.task,
        run.track,
        run.tier,
        run.repeat,
        card.judge.name,
        card.rubric.id,
        card.rubric.version,
        card.policy.like,
        card.policy.missing,
        card.policy.breach,
        card.policy.strict_evidence,
        *per_stage("score"),
        *per_stage("method"),
        *per_stage("failure"),
        card.agentic,
        *card.agentic_bounds,
        card.task,
        card.task_from,
        grades.medal,
        grades.rating,
        grades.resolved,
        grades.progress,
        grades.failure,
        grades.pass_rate,
        grades.shuffled,
        card.overall,
        *card.overall_bounds,
        card.read_share,
        *_presumed(card),
        *(c in fired for c in CODES),
        *((c, s) in by_source for c in CODES for s in CODE_SOURCES),
        *(card.codes_read.get(c) for c in CODES),
        None,
        None,
        len({(code.stage, code.code) for code in paper}),
        card.primary_failure,
        check("completion"),
        check("format_valid"),
        check("has_valid_results"),
        use.turns,
        use.calls,
        use.failed_calls,
        use.wall_time_s,
        use.input_tokens,
        use.output_tokens,
        use.cost_usd,
        status.submitted,
        status.completed,
        status.disqualified,
        status.violations,
        status.ended,
        *turns,
        *(u.calls if u else None for u in counted),
        *(u.failed_calls if u else None for u in counted),
        *(u.exec_time_s if u else None for u in counted),
        *card.quotes,
        len(card.contradictions),
        len(card.warnings),
        *_judge_use(card.judge),
    )


def _judge_use(judge: JudgeInfo) -> tuple[Any, ...]:
    """Calls, tokens and dollars of the judge. Cards of versions that did not count caches leave
    these unknown, not 0."""
    told = not judge.input_tokens or bool(
        {"cached_tokens", "cache_write_tokens"} & judge.model_fields_set
    )
    caches = (judge.cached_tokens, judge.cache_write_tokens) if told else (None, None)
    return judge.calls, judge.input_tokens, *caches, judge.output_tokens, judge.cost_usd


def _presumed(card: ScoreCard) -> list[float | None]:
    """PRESUMED of a scorecard."""
    judged = [card.stages.get(stage) for stage in JUDGED]
    counts = [
        (0, 0) if s is None else (s.presumed, sum(r.value is not None for r in s.criteria))
        for s in judged
    ]
    return [card.presumed_share, *(part / whole if whole else None for part, whole in counts)]


def _free_means(runs: pl.DataFrame, criteria: pl.DataFrame) -> pl.DataFrame:
    """Adds FREE; `card` numbers the rows, `counted` is what a criterion counts in the score. A
    criterion that is credited in any run of its rubric leaves every run's mean."""
    credited = (
        criteria.filter(pl.col("status").cast(pl.String) == "credited")
        .select("rubric", "criterion")
        .unique()
    )
    means = (
        criteria.join(credited, on=["rubric", "criterion"], how="anti")
        .filter(pl.col("counted").is_not_null())
        .group_by("card", "stage")
        .agg(pl.col("counted").mean())
        .pivot("stage", index="card", values="counted")
        .rename({stage: f"{stage}_free" for stage in ("S1", "S2", "S3")}, strict=False)
    )
    means = means.select("card", *(name for name in FREE if name in means.columns))
    numbered = runs.with_columns(card=pl.int_range(pl.len(), dtype=pl.Int64))
    out = numbered.join(means, on="card", how="left", maintain_order="left")
    missing = [
        pl.lit(None, dtype=pl.Float64).alias(name) for name in FREE if name not in out.columns
    ]
    zeroed = [
        pl.when(pl.col(f"{name[:2]}_method") == "policy")
        .then(pl.col(name[:2]))
        .otherwise(pl.col(name))
        .alias(name)
        for name in FREE
    ]
    return out.with_columns(missing).with_columns(zeroed).select(*runs.columns, *FREE)


def _group_columns(told: Sequence[Mapping[str, float | None]]) -> list[pl.Series]:
    """`group.NAME` of every run: the scores of groups of criteria that are no S1-S5."""
    counted = Counter(name for groups in told for name in groups)
    if len(counted) > MOST_OUTCOMES:
        log.warning(
            "%d groups are left out: they have %d names", len(counted) - MOST_OUTCOMES, len(counted)
        )
    names = [name for name, _ in counted.most_common(MOST_OUTCOMES)]
    return [
        pl.Series(GROUP + name, [groups.get(name) for groups in told], dtype=pl.Float64)
        for name in names
    ]


def _outcome_columns(told: Sequence[Mapping[str, Outcome]]) -> list[pl.Series]:
    """`outcome.NAME` of every run: numbers where all that is known is a number, yes or no, else
    texts."""
    counted = Counter(name for outcomes in told for name in outcomes)
    if len(counted) > MOST_OUTCOMES:
        log.warning(
            "%d outcomes are left out: they have %d names",
            len(counted) - MOST_OUTCOMES,
            len(counted),
        )
    columns = []
    for name, _ in counted.most_common(MOST_OUTCOMES):
        values = [outcomes[name].value if name in outcomes else None for outcomes in told]
        if any(isinstance(value, str) for value in values):
            texts = [value if isinstance(value, str | None) else f"{value:g}" for value in values]
            columns.append(pl.Series(OUTCOME + name, texts, dtype=pl.String))
        else:
            numbers = [None if value is None else float(value) for value in values]
            columns.append(pl.Series(OUTCOME + name, numbers, dtype=pl.Float64))
    return columns


def cohort(source: Any, scoring: Scoring | None = None) -> Cohort:
    """Reads scorecards into frames. `scoring` says how runs without a scorecard are scored (see
    `card_sources`).

    `source`: a .jsonl/.json file of scorecards, a .parquet/.csv frame written before, a folder of
    these, a folder of runs (scored first), a list of any of them, or an iterable of ScoreCards or
    their dicts. A card that cannot be read is named in `problems` and left out. Different runs with
    the same id get longer ones (see `run_ids`). Raises InputError when nothing can be read at all.
    """
    frames: list[pl.DataFrame] = []
    rows = _Builder(RUN_SCHEMA)
    parts = [
        _Builder({**schema, "card": _WHOLE, **more})
        for schema, more in (
            (CRITERIA_SCHEMA, {"counted": _REAL}),
            (CODES_SCHEMA, {}),
            (PARTS_SCHEMA, {}),
        )
    ]
    problems: list[str] = []
    told: list[Mapping[str, Outcome]] = []
    groups: list[Mapping[str, float | None]] = []
    titles: dict[str, dict[str, str]] = {}
    for number, card in enumerate(read_cards(source, frames, problems, scoring or Scoring())):
        told.append(card.outcomes)
        if card.rubric.titles:
            titles.setdefault(card.rubric.id, {}).update(card.rubric.titles)
        groups.append(
            {name: stage.score for name, stage in card.stages.items() if name not in STAGES}
        )
        run, judge = card.run.id, card.judge.name
        rows.add(_run_row(card))
        for stage, result in card.stages.items():
            for item in result.criteria:
                value = item.judged, item.status, item.reason
                parts[0].add(
                    (run, judge, card.rubric.id, stage, item.id, *value, number, item.value)
                )
        for code in card.codes:
            what = code.taxonomy, code.code, code.stage, code.by
            parts[1].add((run, judge, *what, code.independence, code.confidence, number))
        for part in card.grades.parts:
            parts[2].add((run, judge, part.by, part.name, part.cases, part.value, number))
    tables = [part.frame() for part in parts]
    runs = _free_means(with_readings(rows.frame()), tables[0]).with_columns(
        *_group_columns(groups), *_outcome_columns(told)
    )
    if frames:
        runs = pl.concat([runs, *frames] if runs.height else frames, how="diagonal_relaxed")
    for problem in problems[:20]:
        log.warning("%s", problem)
    if problems and runs.is_empty():
        raise InputError(
            f"no scorecard could be read; first: {problems[0]}",
            "check that the files hold scorecards",
        )
    ids = told_apart(runs)
    changed = int((ids != runs["run_id"]).sum())
    if changed:
        log.warning(
            "%d scorecards share their run's id with another run; told apart by their folders",
            changed,
        )
        runs = runs.with_columns(ids)
        tables = [table.with_columns(run_id=ids.gather(table["card"])) for table in tables]
    return Cohort(
        runs,
        tables[0].drop("card", "counted"),
        tables[1].drop("card"),
        tuple(problems),
        tables[2].drop("card"),
        titles,
    )


def frame(source: Any) -> pl.DataFrame:
    """One row a run (RUN_SCHEMA plus FREE); see `cohort` for what `source` may be."""
    if isinstance(source, pl.DataFrame):
        return conform(source)
    return cohort(source).runs


def criteria(source: Any) -> pl.DataFrame:
    """One row a run, judge and criterion (CRITERIA_SCHEMA); see `cohort`."""
    return cohort(source).criteria
