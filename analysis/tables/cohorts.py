"""Scorecards as polars frames: one row for each run, each criterion and each fired code.

`cohort` reads scorecards (JSON Lines, JSON, Parquet, CSV, a folder of them, a folder of runs, or
objects) in batches, so that memory grows with the columns and not with the text of the scorecards.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from ...console import counted
from ...errors import InputError
from ...judge.base import JUDGED_STAGES
from ...judge.card.choice import (
    CardChoice,
    CardHead,
    Selection,
    choose,
    head_of,
    identified,
    ids_of,
)
from ...judge.card.fields import JudgeInfo
from ...judge.card.scorecard import ScoreCard
from ...trajectories.models import STAGES, Outcome
from ...trajectories.reading.layout import run_id as folder_id
from .card_sources import CardFilter, CardReading, iter_cards_and_frames
from .codes_read import CODE_SOURCES, CODES, with_readings
from .frames import FREE, GROUP, OUTCOME, PARTS_SCHEMA, PRESUMED, RUN_SCHEMA, conform

log = logging.getLogger(__name__)

BATCH = 4096
"""Rows that are held as Python objects before they become a polars chunk."""
MAX_NAMED_COLUMNS = 200
"""Most columns of outcomes, and most of groups of criteria; those that most runs have are kept."""
MAX_LOGGED_PROBLEMS = 20
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
    "by": _TEXT,
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
    """The runs that are analysed together, each with the scorecard that counts."""

    runs: pl.DataFrame
    """One row a run: RUN_SCHEMA, FREE, and columns `group.NAME` and `outcome.NAME` for the groups
    of criteria and the outcomes that scorecards have."""
    criteria: pl.DataFrame
    """One row for each criterion of each run: CRITERIA_SCHEMA."""
    codes: pl.DataFrame
    """One row for each fired code: CODES_SCHEMA."""
    problems: tuple[str, ...] = ()
    """Messages on what could not be read."""
    parts: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PARTS_SCHEMA))
    """Scores of parts of the cases: PARTS_SCHEMA."""
    titles: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Titles of criteria, by rubric and criterion, of rubrics that do not ship with ambjudge."""
    selection: Selection | None = None
    """Which scorecards of the source these are, by their positions; None if made by hand."""
    other_judges: Cohort | None = None
    """The same runs by the judges that are not in force; None if there are none."""
    running: int = 0
    """Runs that were left out as they still go on (`without_running`)."""
    selected_ids: tuple[str, ...] = ()
    """Ids of the runs of `selection`, those that still go on among them; empty if made by hand."""

    def without_running(self) -> Cohort:
        """The runs that have ended: those that still go on have no scores to average."""
        others = self.other_judges
        ids = self.runs.filter(pl.col("ended") == "running")["run_id"]
        selected_ids = tuple(self.runs["run_id"].to_list())
        names = ("runs", "criteria", "codes", "parts") if ids.len() else ()
        tables = {
            name: getattr(self, name).filter(~pl.col("run_id").is_in(ids.implode()))
            for name in names
        }
        return replace(
            self,
            **tables,
            running=ids.len(),
            selected_ids=selected_ids,
            other_judges=None if others is None else others.without_running(),
        )

    @property
    def running_sentence(self) -> str:
        """How many runs were left out as they still go on; "" for none."""
        if not self.running:
            return ""
        verb = "goes on" if self.running == 1 else "go on"
        return f"{counted(self.running, 'run')} still {verb}: not counted"

    aliases: Mapping[str, str] = field(default_factory=dict)
    """The ids of runs by the names of their folders, where these differ; of several runs of one
    name the oldest has it."""

    @property
    def all_judges(self) -> Cohort:
        """The runs with a row for each judge, to compare judges."""
        other = self.other_judges
        if other is None:
            return self
        tables = {
            name: pl.concat([getattr(self, name), getattr(other, name)], how="diagonal_relaxed")
            for name in ("runs", "criteria", "codes", "parts")
        }
        return replace(self, **tables, other_judges=None)


def cohort(
    source: Any,
    reading: CardReading | None = None,
    choice: CardChoice | None = None,
    run_filter: CardFilter | None = None,
    on_item: Callable[[ScoreCard | pl.DataFrame], None] | None = None,
) -> Cohort:
    """Read the scorecards of a source into frames, one scorecard a run (`card.choice.choose`).

    `source`: a .jsonl or .json file of scorecards, a .parquet or .csv run frame, a folder of these,
    a store, a folder of runs (its scorecards in its store; without one it is scored first), a list
    of any of them, or an iterable of ScoreCards or their dicts. `reading`: see `card_sources`. A
    scorecard that cannot be read is named in `problems` and left out. Of the runs, only those that
    `run_filter` lets through count. `on_item` is called with every scorecard and frame that is
    read, also with those that do not count in the end: the first have the numbers of the
    `selection`. Different runs with the same id get longer ids (`card.run_ids`). InputError if
    nothing can be read at all, or no scorecard is of the judge and rubric that `choice` asks for.
    """
    problems: list[str] = []
    tables = CardTables()
    frames: list[pl.DataFrame] = []
    accepted: set[int] = set()
    n_cards = 0
    for item in iter_cards_and_frames(source, problems, reading, choice):
        if on_item is not None:
            on_item(item if isinstance(item, pl.DataFrame) else item.card)
        if isinstance(item, pl.DataFrame):
            frames.append(item)
            continue
        tables.add(item.card, item.head)
        if run_filter is not None and run_filter.accepts(item.card):
            accepted.add(n_cards)
        n_cards += 1
    if run_filter is not None:
        rows = [flag for frame in frames for flag in run_filter.accepted_rows(frame)]
        accepted.update(n_cards + position for position, flag in enumerate(rows) if flag)
    _report_problems(problems, nothing_read=not n_cards and not frames)
    read_cohort = tables.cohort(choice, frames, None if run_filter is None else accepted)
    return replace(read_cohort, problems=tuple(problems))


def _report_problems(problems: Sequence[str], *, nothing_read: bool) -> None:
    """Log the first problems; InputError if they left nothing to analyse."""
    for problem in problems[:MAX_LOGGED_PROBLEMS]:
        log.warning("%s", problem)
    if problems and nothing_read:
        raise InputError(
            f"no scorecard could be read; first: {problems[0]}",
            "check that the files hold scorecards",
        )


def frame(source: Any) -> pl.DataFrame:
    """One row a run (RUN_SCHEMA and FREE); see `cohort` for what `source` may be."""
    if isinstance(source, pl.DataFrame):
        return conform(source)
    return cohort(source).runs


def criteria(source: Any) -> pl.DataFrame:
    """One row for each run, judge and criterion (CRITERIA_SCHEMA); see `cohort`."""
    return cohort(source).criteria


class _TableBuilder:
    """A table that is filled row by row, and held in polars chunks of BATCH rows."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = dict(schema)
        self._rows: list[tuple[Any, ...]] = []
        self._chunks: list[pl.DataFrame] = []

    def add(self, **row: Any) -> None:
        """Add a row; its keywords are the columns of the schema."""
        self._rows.append(tuple(row[name] for name in self.schema))
        if len(self._rows) >= BATCH:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._chunks.append(pl.DataFrame(self._rows, schema=self.schema, orient="row"))
            self._rows = []

    def frame(self) -> pl.DataFrame:
        """The table so far."""
        self._flush()
        if not self._chunks:
            return pl.DataFrame(schema=self.schema)
        return pl.concat(self._chunks, rechunk=True)


class CardTables:
    """Tables of runs, criteria, codes and parts, filled scorecard by scorecard.

    The column `card` is the number of the row's scorecard, `counted` the value with which a
    criterion enters the score: presumed values too, which `value` leaves out.
    """

    def __init__(self) -> None:
        self._runs = _TableBuilder(RUN_SCHEMA)
        self.criteria = _TableBuilder({**CRITERIA_SCHEMA, "card": _WHOLE, "counted": _REAL})
        self.codes = _TableBuilder({**CODES_SCHEMA, "card": _WHOLE})
        self.parts = _TableBuilder({**PARTS_SCHEMA, "card": _WHOLE})
        self.titles: dict[str, dict[str, str]] = {}
        self._heads: list[CardHead] = []
        self._outcomes: list[Mapping[str, Outcome]] = []
        self._groups: list[Mapping[str, float | None]] = []

    @property
    def is_empty(self) -> bool:
        """Whether no scorecard was added."""
        return not self._outcomes

    def add(self, card: ScoreCard, head: CardHead | None = None) -> None:
        """Add the rows of one scorecard to all tables; `head`: what is known of it beyond that."""
        number = len(self._outcomes)
        self._heads.append(head or head_of(card))
        self._outcomes.append(card.outcomes)
        self._groups.append(
            {name: stage.score for name, stage in card.stages.items() if name not in STAGES}
        )
        if card.rubric.titles:
            self.titles.setdefault(card.rubric.id, {}).update(card.rubric.titles)
        self._runs.add(**_run_row(card))
        keys = {"run_id": card.run.id, "judge": card.judge.name, "card": number}
        for stage, result in card.stages.items():
            for item in result.criteria:
                self.criteria.add(
                    **keys,
                    rubric=card.rubric.id,
                    stage=stage,
                    criterion=item.id,
                    value=item.judged,
                    status=item.status,
                    reason=item.reason,
                    by=item.by,
                    counted=item.value,
                )
        for code in card.codes:
            self.codes.add(
                **keys,
                taxonomy=code.taxonomy,
                code=code.code,
                stage=code.stage,
                by=code.by,
                independence=code.independence,
                confidence=code.confidence,
            )
        for part in card.grades.parts:
            self.parts.add(**keys, by=part.by, part=part.name, cases=part.cases, value=part.value)

    def cohort(
        self,
        choice: CardChoice | None = None,
        frames: Sequence[pl.DataFrame] = (),
        accepted: Container[int] | None = None,
    ) -> Cohort:
        """The scorecards that count (`card.choice.choose`), as a cohort.

        `frames` are run frames that stand after the scorecards. `accepted`: numbers of the
        scorecards that a filter lets through, of those that count; None for all.
        """
        runs = self._runs.frame()
        if frames:
            runs = pl.concat([runs, *frames] if runs.height else frames, how="diagonal_relaxed")
        heads = self._heads + [head for frame in frames for head in card_heads(frame)]
        heads = identified(heads)
        selection = choose(heads, choice, accepted)
        numbers = [*selection.numbers, *selection.other_judges]
        all_ids = ids_of(heads)
        ids = pl.Series("run_id", [all_ids[number] for number in numbers], dtype=pl.String)
        changed = int((ids != runs[numbers]["run_id"]).sum())
        if changed:
            log.warning(
                "%s the id of another run; names of folders were added to these ids",
                "1 scorecard has" if changed == 1 else f"{changed} scorecards have",
            )
        first = len(selection.numbers)
        in_force = self._part(runs, selection.numbers, ids[:first])
        other_judges = None
        if selection.other_judges:
            other_judges = self._part(runs, selection.other_judges, ids[first:])
        return replace(
            in_force,
            selection=selection,
            other_judges=other_judges,
            aliases=_aliases(heads, all_ids),
        )

    def _part(self, runs: pl.DataFrame, numbers: Sequence[int], ids: pl.Series) -> Cohort:
        """The tables of these scorecards, with the ids of their runs."""
        cards = pl.DataFrame({"card": numbers, "run_id": ids}, schema_overrides={"card": _WHOLE})

        def rows_of(table: pl.DataFrame) -> pl.DataFrame:
            """The rows of these scorecards; they keep the number of their scorecard."""
            selected = table.drop("run_id").join(cards, on="card", maintain_order="left")
            return selected.select(table.columns)

        criteria = rows_of(self.criteria.frame())
        selected_runs = runs[list(numbers)].with_columns(ids.alias("run_id"))
        if not self.is_empty:
            selected_runs = self._with_card_columns(selected_runs, numbers, criteria)
        return Cohort(
            runs=selected_runs,
            criteria=criteria.drop("card", "counted"),
            codes=rows_of(self.codes.frame()).drop("card"),
            parts=rows_of(self.parts.frame()).drop("card"),
            titles=self.titles,
        )

    def _with_card_columns(
        self, runs: pl.DataFrame, numbers: Sequence[int], criteria: pl.DataFrame
    ) -> pl.DataFrame:
        """Add the columns that need all scorecards: readings, means, groups and outcomes.

        Rows of frames, whose numbers follow those of the scorecards, have theirs already.
        """
        count = len(self._outcomes)
        positions = [n for n in numbers if n < count]
        of_cards = with_readings(runs[: len(positions)].select(*RUN_SCHEMA))
        of_cards = _with_free_means(of_cards, positions, criteria)
        of_cards = of_cards.with_columns(
            *_group_columns([self._groups[n] for n in positions]),
            *_outcome_columns([self._outcomes[n] for n in positions]),
        )
        of_frames = runs[len(positions) :]
        if of_frames.is_empty():
            return of_cards
        return pl.concat([of_cards, of_frames], how="diagonal_relaxed")


def _aliases(heads: Sequence[CardHead], ids: Sequence[str]) -> dict[str, str]:
    """The ids that were longer than their folders' names, by these names."""
    aliases: dict[str, str] = {}
    for head, run_id in zip(heads, ids, strict=True):
        if head.path and "/" in run_id:
            aliases.setdefault(folder_id(Path(head.path)), run_id)
    return {name: run_id for name, run_id in aliases.items() if name not in ids}


def runs_in_force(runs: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """The rows of a run frame that count (`card.choice.choose`), and what was left out.

    The rows of a Cohort all count; other frames may have several rows of a run.
    """
    if _has_distinct_runs(runs):
        return runs, ""
    selection = choose(card_heads(runs))
    return runs[list(selection.numbers)], selection.sentence()


def _has_distinct_runs(runs: pl.DataFrame) -> bool:
    """Whether all rows are by one judge and of different runs, at a glance."""
    if runs["judge"].n_unique() > 1:
        return False
    for name in ("path", "sha256"):
        values = runs[name].drop_nulls()
        if values.len() < runs.height or values.n_unique() < values.len():
            return False
    return True


def card_heads(runs: pl.DataFrame) -> list[CardHead]:
    """What `card.choice.choose` looks at in the scorecards of a run frame."""
    names = {"version": "rubric_version"}
    columns = [names.get(name, name) for name in CardHead._fields if name != "identity"]
    return [CardHead(*row) for row in runs.select(columns).iter_rows()]


# One scorecard as a row of the run frame


def _run_row(card: ScoreCard) -> dict[str, Any]:
    """The columns of RUN_SCHEMA; those about codes are completed by `with_readings`."""
    return {
        **_source_columns(card),
        **_stage_columns(card),
        **_score_columns(card),
        **dict(zip(PRESUMED, _presumed_shares(card), strict=True)),
        **_code_columns(card),
        "primary_failure": card.primary_failure,
        **{name: _output_check(card, name) for name in _OUTPUT_CHECKS},
        **_resource_columns(card),
        **_stage_use_columns(card),
        "quotes": card.quotes[0],
        "quotes_found": card.quotes[1],
        "contradictions": len(card.contradictions),
        "n_warnings": len(card.warnings),
        **_judge_columns(card.judge),
    }


_OUTPUT_CHECKS = ("completion", "format_valid", "has_valid_results")


def _source_columns(card: ScoreCard) -> dict[str, Any]:
    """Which run it is, and by which judge, rubric and policy it was scored."""
    run = card.run
    names = ("path", "sha256", "agent", "model", "task", "track", "tier", "repeat")
    return {
        "run_id": run.id,
        **{name: getattr(run, name) for name in names},
        "judge": card.judge.name,
        "rubric": card.rubric.id,
        "rubric_version": card.rubric.version,
        "rubric_sha256": card.rubric.sha256,
        "ambjudge": card.ambjudge,
        "like": card.policy.like,
        "missing_policy": card.policy.missing,
        "breach_policy": card.policy.breach,
        "strict_evidence": card.policy.strict_evidence,
    }


def _score_columns(card: ScoreCard) -> dict[str, Any]:
    """The scores of the whole run with their bounds, and grades of the outputs."""
    grades = card.grades
    names = ("medal", "rating", "resolved", "progress", "pass_rate", "shuffled")
    return {
        "agentic": card.agentic,
        "agentic_lo": card.agentic_bounds[0],
        "agentic_hi": card.agentic_bounds[1],
        "task_score": card.task,
        "task_from": card.task_from,
        **{name: getattr(grades, name) for name in names},
        "failure_kind": grades.failure,
        "overall": card.overall,
        "overall_lo": card.overall_bounds[0],
        "overall_hi": card.overall_bounds[1],
        "read_share": card.read_share,
    }


def _resource_columns(card: ScoreCard) -> dict[str, Any]:
    """What the run used and how it ended."""
    of_resources = (
        "turns",
        "calls",
        "failed_calls",
        "wall_time_s",
        "input_tokens",
        "output_tokens",
        "cost_usd",
    )
    of_status = ("submitted", "completed", "disqualified", "violations", "ended")
    return {
        **{name: getattr(card.resources, name) for name in of_resources},
        "failed_steps": len(card.episodes),
        **{name: getattr(card.status, name) for name in of_status},
    }


def _stage_columns(card: ScoreCard) -> dict[str, Any]:
    """Score, method and failure of S1-S5; null for a stage that the rubric lacks."""
    columns: dict[str, Any] = {}
    for stage in STAGES:
        result = card.stages.get(stage)
        columns[stage] = None if result is None else result.score
        columns[f"{stage}_method"] = None if result is None else result.method
        columns[f"{stage}_failure"] = None if result is None else result.failure
    return columns


@cache
def _proving_detectors() -> frozenset[str]:
    """Detectors whose findings no judge's reading can overrule, as values of `FiredCode.by`."""
    from ...error_codes.registry import detectors

    return frozenset(
        f"detector:{detector.name}" for detector in detectors() if detector.fact is not None
    )


_CODE_SOURCE = {
    "from_judge": "judge",
    "from_trace": "detector",
    "from_files": "detector",
    "from_score": "score",
}
"""The source of a fired code, by its independence."""


def _code_columns(card: ScoreCard) -> dict[str, Any]:
    """Which codes fired, by which sources, and how a judge read each code."""
    paper_codes = [code for code in card.codes if code.taxonomy == "paper"]
    fired = {code.code for code in paper_codes}
    fired_by = {(code.code, _CODE_SOURCE[code.independence]) for code in paper_codes}
    fired_by |= {(code.code, "fact") for code in paper_codes if code.by in _proving_detectors()}
    columns: dict[str, Any] = {
        "diagnosed": None,  # this and the next are filled by `with_readings`
        "n_codes": None,
        "code_pairs": len({(code.stage, code.code) for code in paper_codes}),
    }
    for code in CODES:
        columns[code] = code in fired
        columns[f"{code}_read"] = card.codes_read.get(code)
        for source in CODE_SOURCES:
            columns[f"{code}_{source}"] = (code, source) in fired_by
    return columns


def _output_check(card: ScoreCard, name: str) -> Any:
    """A value of the output checks, from S4 or else from S5; None if neither has it."""
    for stage in ("S4", "S5"):
        result = card.stages.get(stage)
        if result is None or result.checks is None:
            continue
        value = getattr(result.checks, name)
        if value is not None:
            return value
    return None


def _stage_use_columns(card: ScoreCard) -> dict[str, Any]:
    """Turns, calls, failed calls and seconds by stage; null if they were not counted."""
    columns: dict[str, Any] = {}
    for stage in STAGES:
        use = card.stage_use.get(stage)
        turns = None if use is None else use.turns
        if card.turn_stages:
            turns = card.turn_stages.count(stage)
        columns[f"{stage}_turns"] = turns
        columns[f"{stage}_calls"] = None if use is None else use.calls
        columns[f"{stage}_failed_calls"] = None if use is None else use.failed_calls
        columns[f"{stage}_seconds"] = None if use is None else use.exec_time_s
    return columns


def _judge_columns(judge: JudgeInfo) -> dict[str, Any]:
    """Who judged, how and when, and its calls, tokens and dollars.

    The cache columns are null, not 0, for scorecards of versions that did not count cached tokens.
    """
    counts_caches = not judge.input_tokens or bool(
        {"cached_tokens", "cache_write_tokens"} & judge.model_fields_set
    )
    return {
        "judge_members": "; ".join(judge.members) or None,
        "judge_served": judge.served_model,
        "judge_temperature": judge.temperature,
        "judge_samples": judge.samples,
        "judge_prompts": judge.prompt_sha256,
        "first_verdict": _iso_day(judge.first_verdict),
        "last_verdict": _iso_day(judge.last_verdict),
        "judge_calls": judge.calls,
        "judge_input_tokens": judge.input_tokens,
        "judge_cached_tokens": judge.cached_tokens if counts_caches else None,
        "judge_cache_write_tokens": judge.cache_write_tokens if counts_caches else None,
        "judge_output_tokens": judge.output_tokens,
        "judge_cost_usd": judge.cost_usd,
    }


def _iso_day(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _presumed_shares(card: ScoreCard) -> list[float | None]:
    """The values of PRESUMED: the presumed share of the run, then of each judged stage."""
    shares: list[float | None] = [card.presumed_share]
    for stage in JUDGED_STAGES:
        share = None
        result = card.stages.get(stage)
        if result is not None:
            with_value = sum(item.value is not None for item in result.criteria)
            if with_value:
                share = result.presumed / with_value
        shares.append(share)
    return shares


# Columns that need all rows


def _with_free_means(
    runs: pl.DataFrame, numbers: Sequence[int], criteria: pl.DataFrame
) -> pl.DataFrame:
    """Add the columns FREE: stage means over criteria that no tier credits.

    `criteria` has the columns `card`, the number of the run's scorecard, and `counted`; `numbers`
    are those of the rows of `runs`. A criterion that is credited in any run of its rubric is left
    out of the mean of every run, so that tiers compare.
    """
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
        .rename({stage: f"{stage}_free" for stage in JUDGED_STAGES}, strict=False)
    )
    means = means.select("card", *(name for name in FREE if name in means.columns))
    numbered = runs.with_columns(card=pl.Series(numbers, dtype=_WHOLE))
    joined = numbered.join(means, on="card", how="left", maintain_order="left")
    for name in FREE:
        if name not in joined.columns:
            joined = joined.with_columns(pl.lit(None, dtype=pl.Float64).alias(name))
        stage = name.removesuffix("_free")
        # A stage that a policy set to 0 is 0 here too.
        is_set_by_policy = pl.col(f"{stage}_method") == "policy"
        joined = joined.with_columns(
            pl.when(is_set_by_policy).then(pl.col(stage)).otherwise(pl.col(name)).alias(name)
        )
    return joined.select(*runs.columns, *FREE)


def _most_common_names(values: Sequence[Mapping[str, Any]], noun: str) -> list[str]:
    """The names that most runs have values of, at most MAX_NAMED_COLUMNS."""
    counts = Counter(name for by_name in values for name in by_name)
    dropped = len(counts) - MAX_NAMED_COLUMNS
    if dropped > 0:
        log.warning("%d %s are left out: they have %d names", dropped, noun, len(counts))
    return [name for name, _ in counts.most_common(MAX_NAMED_COLUMNS)]


def _group_columns(groups: Sequence[Mapping[str, float | None]]) -> list[pl.Series]:
    """Columns `group.NAME`: the score of each group of criteria other than S1-S5."""
    return [
        pl.Series(GROUP + name, [scores.get(name) for scores in groups], dtype=pl.Float64)
        for name in _most_common_names(groups, "groups")
    ]


def _outcome_columns(outcomes: Sequence[Mapping[str, Outcome]]) -> list[pl.Series]:
    """Columns `outcome.NAME`: numbers (true 1, false 0), or texts if any value is a text."""
    columns = []
    for name in _most_common_names(outcomes, "outcomes"):
        values = [by_name[name].value if name in by_name else None for by_name in outcomes]
        if any(isinstance(value, str) for value in values):
            texts = [value if isinstance(value, str | None) else f"{value:g}" for value in values]
            columns.append(pl.Series(OUTCOME + name, texts, dtype=pl.String))
        else:
            numbers = [None if value is None else float(value) for value in values]
            columns.append(pl.Series(OUTCOME + name, numbers, dtype=pl.Float64))
    return columns
