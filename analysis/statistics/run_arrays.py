"""Selects the runs of a run frame to analyse, and turns them into arrays by cell, task and code.

`select_runs` leaves one scorecard of one judge for each run. `build_arrays` turns the runs that
have an outcome into a `RunArrays`; `arrays_by_code` does so for the effect of each code. Notes name
everything that is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from ...errors import ConfigError
from ...judge.card.read_share import ENOUGH, READ_STAGES
from ..tables.codes_read import CODES, sampled
from ..tables.cohorts import runs_in_force
from ..tables.frames import FREE, GROUP, OUTCOME
from ..tables.score_names import limits_of
from .interval_estimates import Bools, Floats, Ints
from .jackknife import group_ids

UNKNOWN = "(unknown)"
DIMENSIONS = ("agent", "task", "track", "tier")
NO_POINT_REASON = (
    f"a judged stage is unscored, or less than {100 * ENOUGH:.0f} % of the weight of S1-S3 has a"
    " value"
)
READ_SCORES = ("agentic", "overall", "S1", "S2", "S3", *FREE)
"""Scores that need criteria to be judged."""


def select_runs(table: pl.DataFrame, *, keep_breach: bool = True) -> tuple[pl.DataFrame, list[str]]:
    """One row a run (`runs_in_force`, names filled), and notes on what is left out.

    `keep_breach`: whether disqualified runs stay. READ_SCORES are null for runs that
    `excluded_for_reading` marks.
    """
    runs, left_out = runs_in_force(table)
    notes = [left_out] if left_out else []
    if not keep_breach:
        runs = _without_breaches(runs, notes)
    runs = _without_unread_scores(runs, notes)
    for name in DIMENSIONS:
        n_unknown = runs[name].null_count()
        if n_unknown:
            notes.append(f"{n_unknown} runs have no {name} and are grouped as {UNKNOWN}")
    return runs.with_columns(pl.col(name).fill_null(UNKNOWN) for name in DIMENSIONS), notes


def _without_breaches(table: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    disqualified = pl.col("disqualified").fill_null(False)
    runs = table.filter(~disqualified)
    if runs.height < table.height:
        notes.append(f"{table.height - runs.height} disqualified runs are left out")
    return runs


def _without_unread_scores(table: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    n_unread = int(table.select(insufficiently_read().sum()).item())
    if not n_unread:
        return table
    excluded = table.select(excluded_for_reading()).to_series()
    note = (
        f"{n_unread} of {table.height} runs have too few judged criteria for a point score"
        f" ({NO_POINT_REASON})"
    )
    n_more = int(excluded.sum()) - n_unread
    if n_more:
        note += f"; {n_more} more of the same agents and tracks are left out with them"
    notes.append(note)
    return table.with_columns(
        pl.when(~excluded).then(pl.col(name)).alias(name)
        for name in READ_SCORES
        if name in table.columns
    )


def insufficiently_read() -> pl.Expr:
    """Whether too few criteria of a run were judged for a point score (`read_share.standing`)."""
    unscored = pl.any_horizontal(
        pl.col(f"{stage}_method").is_in(["unscored", "withheld"]).fill_null(False)
        for stage in READ_STAGES
    )
    share_with_value = pl.col("read_share") + pl.col("presumed").fill_null(0.0)
    return unscored | (share_with_value < ENOUGH - 1e-9).fill_null(False)


def excluded_for_reading() -> pl.Expr:
    """Whether a run's scores are left out of the analysis because of unjudged criteria.

    Either too few of its own criteria were judged, or this holds for too many runs of its agent and
    track or of the cohort: the remaining runs would be a selection by what happened to be judged.
    """
    unread = insufficiently_read()
    tolerated = 1 - ENOUGH + 1e-9
    too_many_of_agent_and_track = unread.mean().over("agent", "track") > tolerated
    too_many_of_cohort = unread.mean() > tolerated
    return unread | too_many_of_agent_and_track | too_many_of_cohort


def factorize(values: pl.Series) -> tuple[Ints, list[str]]:
    """For each value its number in the sorted distinct values, and these values."""
    labels = sorted(values.unique().to_list())
    if not labels:
        return np.zeros(0, dtype=np.int64), []
    numbers = values.rank("dense").to_numpy().astype(np.int64) - 1
    return numbers, labels


@dataclass(frozen=True)
class RunArrays:
    """The n runs that have an outcome, as arrays. A cell is one agent on one task and tier."""

    table: pl.DataFrame
    """The runs as rows of the run frame (n)."""
    outcome: str
    y: Floats
    """The outcome (n)."""
    codes: Bools
    """Whether each code fired (n x code_names)."""
    codes_read: Bools
    """Whether the run was read for the code (n x code_names); all if `need_codes`."""
    code_names: tuple[str, ...]
    n_read: Mapping[str, int]
    """E1..E5 -> how many of the `n_scored` runs were read for it."""
    n_scored: int
    """Number of all runs with the outcome, whether read for codes or not."""
    agent: Ints
    """Index into `agents` (n); `task`, `track` and `tier` likewise."""
    task: Ints
    track: Ints
    tier: Ints
    agents: tuple[str, ...]
    tasks: tuple[str, ...]
    tracks: tuple[str, ...]
    tiers: tuple[str, ...]
    notes: tuple[str, ...]
    n_tagged: Mapping[str, int]
    """E1..E5 -> number of its firings by any source in the `n_scored` runs."""
    n_from_score: Mapping[str, int]
    """How many of these firings rest on the score alone."""

    @property
    def n(self) -> int:
        return len(self.y)

    @cached_property
    def cell(self) -> Ints:
        """The number of each run's cell (n)."""
        return group_ids(self.agent, self.task, self.tier)[0]

    @cached_property
    def n_cells(self) -> int:
        return int(self.cell.max(initial=-1)) + 1

    @property
    def n_tasks(self) -> int:
        return len(self.tasks)

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The range of the outcome (infinite: unknown); intervals end there."""
        return limits_of(self.outcome, self.table)

    @cached_property
    def difference_limits(self) -> tuple[float, float]:
        """The range of differences of two values of the outcome."""
        return self.limits[0] - self.limits[1], self.limits[1] - self.limits[0]

    def with_outcome(self, outcome: str) -> RunArrays:
        """The same runs with another outcome, which all of them have."""
        y = self.table[outcome].to_numpy().astype(np.float64)
        return replace(self, outcome=outcome, y=y)

    def axis(self, name: str) -> tuple[Ints, tuple[str, ...]]:
        """The index of each run and the names, of one of DIMENSIONS or a text column."""
        if name in DIMENSIONS:
            return getattr(self, name), getattr(self, f"{name}s")
        index, names = factorize(self.table[name].fill_null(UNKNOWN))
        return index, tuple(names)

    def among_codes(self) -> str:
        """ " among E2, E4, E5" if only some of the codes are counted, else ""."""
        if len(self.code_names) == len(CODES):
            return ""
        return f" among {', '.join(self.code_names)}"

    def reading_count(self, code: str) -> str:
        """How many runs were read for a code, as a clause."""
        return f"{code} was read in {self.n_read[code]} of {self.n_scored} runs"


def task_key() -> pl.Expr:
    """A task's name with that of its track, as two tracks may have tasks of the same name."""
    return pl.concat_str([pl.col("track"), pl.col("task")], separator="/")


MIN_READ = 10
"""The fewest runs that must have been read for a code to give its rate or effect."""
JOINT_SHARE = 0.5
"""Codes are analysed together as long as this share of the runs was read for all of them.

Fewer codes would keep more runs, but an effect that is not adjusted for the codes that fire with it
is biased by several points, which is worse than the loss of half the runs.
"""


def build_arrays(
    table: pl.DataFrame,
    outcome: str = "overall",
    *,
    source: str = "any",
    keep_breach: bool = False,
    prepare: bool = True,
    need_codes: bool = True,
    explain: bool = True,
) -> RunArrays:
    """The runs that have `outcome`, as arrays.

    `source`: any, or a code source of the frame (judge, detector, fact, score, human);
    `independent` is judge or detector, without codes that were derived from the score.
    `prepare`: whether to apply `select_runs` first.
    `explain`: the codes are to explain the outcome, so that with source `any` those that rest on
    the score alone count as not fired; a note says how many.
    `need_codes`: keep the codes for which at least half of the runs were read together, and these
    runs; notes name them. Without it all runs stay, and an unknown code is False.
    Raises ConfigError for an unknown outcome or source.
    """
    coded = _read_codes(
        table,
        outcome,
        source=source,
        keep_breach=keep_breach,
        prepare=prepare,
        explain=explain,
    )
    if need_codes:
        columns, mask = jointly_read(coded.codes_read, None)
        return _subset_arrays(coded, columns, mask, _reading_notes(coded, columns, mask))
    all_columns = tuple(range(len(CODES)))
    return _subset_arrays(coded, all_columns, np.ones(coded.runs.height, dtype=bool), ())


def arrays_by_code(
    table: pl.DataFrame, outcome: str = "overall", *, source: str = "any", prepare: bool = True
) -> list[tuple[RunArrays, tuple[str, ...]]]:
    """For each code, the runs read for it and for the other codes that `jointly_read` selects.

    Codes with the same runs share arrays; a cohort that was read completely has one entry. A code
    for which no run was read has arrays without runs. Disqualified runs are left out. Raises
    ConfigError as `build_arrays` does.
    """
    coded = _read_codes(
        table, outcome, source=source, keep_breach=False, prepare=prepare, explain=True
    )
    codes_by_key: dict[tuple[tuple[int, ...], bytes], list[str]] = {}
    mask_by_key: dict[tuple[tuple[int, ...], bytes], Bools] = {}
    for k, code in enumerate(CODES):
        columns, mask = jointly_read(coded.codes_read, k)
        key = columns, mask.tobytes()
        codes_by_key.setdefault(key, []).append(code)
        mask_by_key[key] = mask
    parts = []
    for key, codes in codes_by_key.items():
        columns, mask = key[0], mask_by_key[key]
        notes = _reading_notes(coded, columns, mask, adjusting=True)
        parts.append((_subset_arrays(coded, columns, mask, notes), tuple(codes)))
    return parts


def jointly_read(codes_read: Bools, lead: int | None) -> tuple[tuple[int, ...], Bools]:
    """Columns of `codes_read` (n x codes) to analyse together, and the runs (n) read for all.

    Columns enter by how often they were read, as long as JOINT_SHARE of the runs read for column
    `lead` remain (without one: of the runs read for any code). If nothing was read: all columns (or
    `lead` alone), and no run.
    """
    if lead is None:
        mask: Bools = np.asarray(codes_read.any(axis=1))
    else:
        mask = codes_read[:, lead]
    minimum = JOINT_SHARE * int(mask.sum())
    selected = [] if lead is None else [lead]
    n_read = codes_read[mask].sum(axis=0)
    for k in sorted(range(codes_read.shape[1]), key=lambda k: -int(n_read[k])):
        joint = mask & codes_read[:, k]
        if k == lead or not joint.any():
            continue
        if joint.sum() >= minimum or not selected:
            selected.append(k)
            mask = joint
    return tuple(sorted(selected or range(codes_read.shape[1]))), mask


@dataclass(frozen=True)
class _CodedRuns:
    """The runs with an outcome, which codes they have, and for which they were read."""

    runs: pl.DataFrame
    outcome: str
    codes: Bools
    """Runs x CODES."""
    codes_read: Bools
    notes: tuple[str, ...]
    n_tagged: Mapping[str, int]
    n_from_score: Mapping[str, int]


def check_outcome(table: pl.DataFrame, outcome: str) -> None:
    """ConfigError if the outcome is not a numeric column; the hint names those of the runs."""
    if outcome in table.columns and table.schema[outcome].is_numeric():
        return
    available = [
        name.removeprefix(OUTCOME)
        for name in table.columns
        if name.startswith((OUTCOME, GROUP)) and table.schema[name].is_numeric()
    ]
    hint = "choose overall, agentic, task_score, S1..S5, turns, time, tokens or cost"
    if available:
        hint += f"; these runs also have {', '.join(available[:20])}"
    raise ConfigError(f"there is no numeric outcome {outcome.removeprefix(OUTCOME)!r}", hint)


def _read_codes(
    table: pl.DataFrame,
    outcome: str,
    *,
    source: str,
    keep_breach: bool,
    prepare: bool,
    explain: bool,
) -> _CodedRuns:
    check_outcome(table, outcome)
    notes: list[str] = []
    if prepare:
        table, notes = select_runs(table, keep_breach=keep_breach)
    scored = table.filter(pl.col(outcome).is_not_null() & pl.col(outcome).is_finite())
    if scored.height < table.height:
        notes.append(f"{table.height - scored.height} runs without {outcome} are left out")

    columns = code_columns(scored, source)
    on_score_alone = {code: _rests_on_score(scored, code) for code in CODES}
    circular = scored.select(
        (columns[code] & on_score_alone[code]).fill_null(False).alias(code) for code in CODES
    )
    n_from_score = {code: int(circular[code].sum()) for code in CODES}
    fired_sums = scored.select(**columns).sum().row(0, named=True)
    n_tagged = {code: int(total or 0) for code, total in fired_sums.items()}
    if explain and source == "any":
        notes += [
            f"{code}: {n} of {n_tagged[code]} firings were derived from the score alone and count"
            " as not fired"
            for code, n in n_from_score.items()
            if n
        ]
        columns = {code: columns[code] & ~on_score_alone[code] for code in CODES}

    codes = scored.select(**columns)
    if source != "human" and "diagnosed" in scored.columns:
        codes = scored.with_columns(codes.get_columns()).select(sampled(code) for code in CODES)
    shape = (scored.height, len(CODES))
    codes_read = codes.select(pl.all().is_not_null()).to_numpy().astype(bool).reshape(shape)
    fired = codes.fill_null(False).to_numpy().astype(bool).reshape(shape)
    return _CodedRuns(scored, outcome, fired, codes_read, tuple(notes), n_tagged, n_from_score)


def _rests_on_score(table: pl.DataFrame, code: str) -> pl.Expr:
    """Whether a firing rests on the score and on nothing else, by its recorded sources."""
    if not {f"{code}_score", f"{code}_judge", f"{code}_detector"} <= set(table.columns):
        return pl.lit(False)
    independent = pl.col(f"{code}_judge").fill_null(False) | pl.col(f"{code}_detector").fill_null(
        False
    )
    return pl.col(f"{code}_score").fill_null(False) & ~independent


def _subset_arrays(
    coded: _CodedRuns, columns: Sequence[int], mask: Bools, notes: Sequence[str]
) -> RunArrays:
    """The arrays of the runs in `mask` with the codes in `columns`."""
    runs = coded.runs.filter(pl.Series(mask, dtype=pl.Boolean))
    agent, agents = factorize(runs["agent"])
    track, tracks = factorize(runs["track"])
    tier, tiers = factorize(runs["tier"])
    task_names = runs.select(task_key()).to_series() if runs.height else runs["task"]
    task, tasks = factorize(task_names)
    block = np.ix_(mask, np.array(columns))
    return RunArrays(
        table=runs,
        outcome=coded.outcome,
        y=runs[coded.outcome].to_numpy().astype(np.float64),
        codes=coded.codes[block],
        codes_read=coded.codes_read[block],
        code_names=tuple(CODES[k] for k in columns),
        n_read=dict(zip(CODES, coded.codes_read.sum(0).tolist(), strict=True)),
        n_scored=len(mask),
        agent=agent,
        task=task,
        track=track,
        tier=tier,
        agents=tuple(agents),
        tasks=tuple(tasks),
        tracks=tuple(tracks),
        tiers=tuple(tiers),
        notes=(*coded.notes, *notes),
        n_tagged=coded.n_tagged,
        n_from_score=coded.n_from_score,
    )


def _reading_notes(
    coded: _CodedRuns, columns: Sequence[int], mask: Bools, *, adjusting: bool = False
) -> list[str]:
    """Notes on runs and codes that are left out because they were not read; [] if there are none.

    `adjusting`: the codes are those that an effect is adjusted for.
    """
    names = [CODES[k] for k in columns]
    n_all, n_used = len(mask), int(mask.sum())
    if n_used == n_all and len(names) == len(CODES):
        return []
    note = f"codes {', '.join(names)}: read in {n_used} of {n_all} runs"
    if n_used < n_all:
        note += "; the others are left out"
    notes = [note]
    missing = [
        f"{code} (read in {int(coded.codes_read[:, k].sum())} of {n_all})"
        for k, code in enumerate(CODES)
        if code not in names
    ]
    if missing and adjusting:
        notes.append(
            f"the number is not adjusted for {', '.join(missing)}, and may include their effects"
        )
    elif missing:
        notes.append(f"codes that are not counted: {', '.join(missing)}")
    return notes


def code_columns(table: pl.DataFrame, source: str) -> dict[str, pl.Expr]:
    """Expressions for E1..E5: whether the code fired by one source of tags; null if unknown.

    Raises ConfigError if the frame has no such source.
    """
    if source == "any":
        return {code: pl.col(code) for code in CODES}
    if source == "independent":
        return {code: _by_judge_or_detector(code) for code in CODES}
    for code in CODES:
        if table.schema.get(f"{code}_{source}") != pl.Boolean:
            raise ConfigError(
                f"the run frame has no column {code}_{source}",
                "code sources are any, independent, judge, detector, fact, score, human",
            )
    return {code: pl.col(f"{code}_{source}") for code in CODES}


def _by_judge_or_detector(code: str) -> pl.Expr:
    """Whether the judge or a detector fired the code; null only if neither looked for it."""
    judge, detector = pl.col(f"{code}_judge"), pl.col(f"{code}_detector")
    looked = judge.is_not_null() | detector.is_not_null()
    return pl.when(looked).then(judge.fill_null(False) | detector.fill_null(False))


def reading_refusal(code: str, n_read: int, n_runs: int) -> str | None:
    """The reason if too few runs were read for a code to analyse it, else None."""
    minimum = min(MIN_READ, n_runs)
    if n_read >= minimum:
        return None
    return f"{code} was read in {n_read or 'none'} of {n_runs} runs; at least {minimum} are needed"
