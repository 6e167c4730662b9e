"""From a run frame to arrays: which runs can be analysed, their cells, tasks and codes, and what
was left out and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from ...errors import ConfigError
from ...judge.card.fields import RULES
from ...judge.card.read_share import ENOUGH, READ_STAGES
from ..tables.codes_read import CODES, sampled
from ..tables.frames import FREE, GROUP, OUTCOME, WEIGHTS
from ..tables.score_names import limits_of
from .interval_estimates import Bools, Floats, Ints
from .jackknife import group_ids

UNKNOWN = "(unknown)"
DIMENSIONS = ("agent", "task", "track", "tier")


def select_runs(table: pl.DataFrame, *, keep_breach: bool = True) -> tuple[pl.DataFrame, list[str]]:
    """One row a run: one judge, no duplicates, names filled; with notes on everything that was left
    out.

    With several judges the one with most runs stays (ties: one that reads before the rules, then
    the first by name). Agentic, Overall and S1-S3 are null where they are no points (`pointless`).
    Duplicates are rows with the same run id and judge, or with the same agent, task, tier, repeat
    and content hash; the last stays.
    """
    notes: list[str] = []
    out = table
    if out["judge"].n_unique() > 1:
        chosen = judges_by_use(out)[0]
        out = out.filter(pl.col("judge").eq_missing(pl.lit(chosen)))
        notes.append(
            f"only the scorecards of judge {chosen} are used; {table.height - out.height} of others"
            " are left out"
        )
    before = out.height
    if before:
        out = out.unique(subset=["run_id", "judge"], keep="last", maintain_order=True)
        hashed = out.filter(pl.col("sha256").is_not_null() & (pl.col("sha256") != ""))
        bare = out.filter(pl.col("sha256").is_null() | (pl.col("sha256") == ""))
        if hashed.height:
            key = ["sha256", "agent", "task", "tier", "repeat", "judge"]
            out = pl.concat([hashed.unique(subset=key, keep="last", maintain_order=True), bare])
    if out.height < before:
        notes.append(f"{before - out.height} duplicate scorecards are left out")
    if not keep_breach:
        breached = int(out["disqualified"].fill_null(False).sum())
        if breached:
            out = out.filter(~pl.col("disqualified").fill_null(False))
            notes.append(f"{breached} disqualified runs are left out")
    if n := int(out.select(insufficiently_read().sum()).item()):
        gone = out.select(excluded_for_reading()).to_series()
        beside = (
            f"; {more} more of the same agents and tracks are left out with them"
            if (more := int(gone.sum()) - n)
            else ""
        )
        notes.append(
            f"{n} of {out.height} runs have a range and no point ({NO_POINT_REASON}){beside}"
        )
        out = out.with_columns(
            pl.when(~gone).then(pl.col(name)).alias(name)
            for name in READ_SCORES
            if name in out.columns
        )
    for name in DIMENSIONS:
        unknown = out[name].null_count()
        if unknown:
            notes.append(f"{unknown} runs name no {name}: they are grouped as {UNKNOWN}")
    return out.with_columns(pl.col(name).fill_null(UNKNOWN) for name in DIMENSIONS), notes


NO_POINT_REASON = (
    f"a judged stage is unscored, or less than {ENOUGH:.0%} of the weight of S1-S3 has a value"
)
READ_SCORES = ("agentic", "overall", "S1", "S2", "S3", *FREE)
"""Scores that take reading."""


def judges_by_use(table: pl.DataFrame) -> list[str | None]:
    """The judges of a run frame, the one whose scorecards are analysed first."""
    counts = table.group_by("judge").len().with_columns(rules=pl.col("judge") == RULES)
    order = counts.sort(["len", "rules", "judge"], descending=[True, False, False], nulls_last=True)
    return order["judge"].to_list()


def insufficiently_read() -> pl.Expr:
    """Whether too little of a run was read for a point (`read_share.standing` says "open")."""
    unscored = pl.any_horizontal(
        pl.col(f"{stage}_method").eq("unscored").fill_null(False) for stage in READ_STAGES
    )
    known = pl.col("read_share") + pl.col("presumed").fill_null(0.0)
    return unscored | (known < ENOUGH - 1e-9).fill_null(False)


def excluded_for_reading() -> pl.Expr:
    """Whether a run's scores take no part in an analysis: too little of it was read, or of too many
    runs of its agent and track, or of the cohort; the rest would be what happened to be read."""
    most = 1 - ENOUGH + 1e-9
    return (
        insufficiently_read()
        | (insufficiently_read().mean().over("agent", "track") > most)
        | (insufficiently_read().mean() > most)
    )


def factorize(values: pl.Series) -> tuple[Ints, list[str]]:
    """Dense numbers of the sorted distinct values, and these values."""
    labels = sorted(values.unique().to_list())
    if not labels:
        return np.zeros(0, dtype=np.int64), []
    ranks = values.rank("dense").to_numpy().astype(np.int64) - 1
    return ranks, labels


@dataclass(frozen=True)
class RunArrays:
    """Runs with an outcome: arrays of equal length. A cell is an agent on a task in a tier."""

    table: pl.DataFrame
    outcome: str
    y: Floats
    codes: Bools
    """Runs x `code_names`."""
    read: Bools
    """Like `codes`: whether the run was read for the code. All are, unless codes were not needed.
    """
    code_names: tuple[str, ...]
    n_read: Mapping[str, int]
    """Runs that were read for each of E1..E5, of all `n_scored` with the outcome."""
    n_scored: int
    agent: Ints
    task: Ints
    track: Ints
    tier: Ints
    agents: tuple[str, ...]
    tasks: tuple[str, ...]
    tracks: tuple[str, ...]
    tiers: tuple[str, ...]
    notes: tuple[str, ...]
    tagged: Mapping[str, int]
    """Firings of each of E1..E5 by any source, in all `n_scored` runs."""
    from_score: Mapping[str, int]
    """Of these, how many were read off the score alone."""

    @property
    def n(self) -> int:
        return len(self.y)

    @cached_property
    def cell(self) -> Ints:
        return group_ids(self.agent, self.task, self.tier)[0]

    @cached_property
    def n_cells(self) -> int:
        return int(self.cell.max(initial=-1)) + 1

    @property
    def n_tasks(self) -> int:
        return len(self.tasks)

    @cached_property
    def limits(self) -> tuple[float, float]:
        """Where the values of the outcome can be (infinite: unknown); intervals end there."""
        return limits_of(self.outcome, self.table)

    @cached_property
    def gap_limits(self) -> tuple[float, float]:
        """Where differences of two values of the outcome can be."""
        return self.limits[0] - self.limits[1], self.limits[1] - self.limits[0]

    def axis(self, name: str) -> tuple[Ints, tuple[str, ...]]:
        """Numbers and names of agent, task, track or tier."""
        return getattr(self, name), getattr(self, f"{name}s")

    def among(self) -> str:
        """` among E2, E4, E5` where a number of codes is of some codes only, else nothing."""
        return "" if len(self.code_names) == len(CODES) else f" among {', '.join(self.code_names)}"

    def not_read(self, code: str) -> str:
        """Says how many runs were read for a code."""
        return f"{code} was read in {self.n_read[code]} of {self.n_scored} runs"


def task_key() -> pl.Expr:
    """Tasks are told apart within their track."""
    return pl.concat_str([pl.col("track"), pl.col("task")], separator="/")


MIN_READ = 10
"""Runs that must have been read for a code where others were not: below, there is no rate and no
effect."""
JOINT_SHARE = 0.5
"""Codes stand together, in a count or beside the one whose effect is meant, while this share of
runs was read for all of them: an effect that is not adjusted for the codes it comes with is biased
by several points, which costs more than half the runs."""


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
    """Arrays of the runs that have `outcome`.

    `source`: any, or a code source of the frame (judge, detector, fact, score, human);
    `independent` is judge or detector, leaving out codes read off the score. `explain`: codes are
    to explain the outcome, so that among `any` those that were read off the score alone count as
    not fired, and a note says how many. `need_codes`: the codes that at least half of the runs were
    read for together, and these runs; notes say which. Without it all runs stay, and codes that are
    not known are False. Raises ConfigError for an unknown outcome or source.
    """
    base = _base(table, outcome, source, keep_breach, prepare, explain)
    if need_codes:
        return _built(base, *jointly_read(base.read, None))
    return _built(base, tuple(range(len(CODES))), np.ones(base.runs.height, dtype=bool), whole=True)


def arrays_by_code(
    table: pl.DataFrame, outcome: str = "overall", *, source: str = "any", prepare: bool = True
) -> list[tuple[RunArrays, tuple[str, ...]]]:
    """For the effect of each code, runs that were read for it, with the other codes that at least
    half of these were read for.

    Codes with the same runs share a design; a cohort that was read throughout has one. A code that
    nobody read the runs for has a design without runs. Disqualified runs are left out. Raises
    ConfigError as `design` does.
    """
    base = _base(table, outcome, source, False, prepare, True)
    shared: dict[tuple[tuple[int, ...], bytes], list[int]] = {}
    chosen: dict[tuple[tuple[int, ...], bytes], Bools] = {}
    for k in range(len(CODES)):
        columns, mask = jointly_read(base.read, k)
        key = columns, mask.tobytes()
        shared.setdefault(key, []).append(k)
        chosen[key] = mask
    return [
        (_built(base, key[0], chosen[key], lead=ks), tuple(CODES[k] for k in ks))
        for key, ks in shared.items()
    ]


def jointly_read(read: Bools, lead: int | None) -> tuple[tuple[int, ...], Bools]:
    """Columns of `read` (runs x codes) that can stand together, and the runs that were read for all
    of them.

    Columns enter by how often they were read, while KEEP of the runs read for `lead` stay (without
    one: of those read for any code). When nothing was read at all: every column (or `lead` alone),
    and no run.
    """
    mask: Bools = np.asarray(read.any(axis=1)) if lead is None else read[:, lead]
    least = JOINT_SHARE * int(mask.sum())
    taken = [] if lead is None else [lead]
    for k in sorted(range(read.shape[1]), key=lambda k: -int(read[mask, k].sum())):
        left = mask & read[:, k]
        if k != lead and left.any() and (left.sum() >= least or not taken):
            taken.append(k)
            mask = left
    return tuple(sorted(taken or range(read.shape[1]))), mask


@dataclass(frozen=True)
class _Base:
    """Runs with an outcome, which codes they have, and for which they were read."""

    runs: pl.DataFrame
    outcome: str
    codes: Bools
    read: Bools
    notes: tuple[str, ...]
    tagged: Mapping[str, int]
    from_score: Mapping[str, int]


def check_outcome(table: pl.DataFrame, outcome: str) -> None:
    """ConfigError when this is no column of numbers, naming those that the runs brought along."""
    if outcome in table.columns and table.schema[outcome].is_numeric():
        return
    told = [
        n.removeprefix(OUTCOME)
        for n in table.columns
        if n.startswith((OUTCOME, GROUP)) and table.schema[n].is_numeric()
    ]
    hint = "overall, agentic, task_score or S1..S5" + (
        f"; of the runs: {', '.join(told[:20])}" if told else ""
    )
    raise ConfigError(f"no numeric outcome {outcome.removeprefix(OUTCOME)!r}", hint)


def _base(
    table: pl.DataFrame, outcome: str, source: str, keep_breach: bool, prepare: bool, explain: bool
) -> _Base:
    check_outcome(table, outcome)
    notes: list[str] = []
    if prepare:
        table, notes = select_runs(table, keep_breach=keep_breach)
    scored = table.filter(pl.col(outcome).is_not_null() & pl.col(outcome).is_finite())
    if scored.height < table.height:
        notes.append(f"{table.height - scored.height} runs without {outcome} are left out")
    columns = code_columns(scored, source)
    by_score = {code: _score_alone(scored, code) for code in CODES}
    alone = scored.select(
        (columns[code] & by_score[code]).fill_null(False).alias(code) for code in CODES
    )
    counted = {code: int(alone[code].sum()) for code in CODES}
    tagged = {
        code: int(n or 0) for code, n in scored.select(**columns).sum().row(0, named=True).items()
    }
    if explain and source == "any":
        notes += [
            f"{code}: {n} of {tagged[code]} firings were read off the score alone and count as not"
            " fired"
            for code, n in counted.items()
            if n
        ]
        columns = {code: columns[code] & ~by_score[code] for code in CODES}
    codes = scored.select(**columns)
    if source != "human" and "diagnosed" in scored.columns:
        codes = scored.with_columns(codes.get_columns()).select(sampled(code) for code in CODES)
    shape = (scored.height, len(CODES))
    known = codes.select(pl.all().is_not_null()).to_numpy().astype(bool).reshape(shape)
    fired = codes.fill_null(False).to_numpy().astype(bool).reshape(shape)
    return _Base(scored, outcome, fired, known, tuple(notes), tagged, counted)


def _score_alone(table: pl.DataFrame, code: str) -> pl.Expr:
    """Whether a firing rests on the score and on nothing else, by its recorded sources."""
    if not {f"{code}_score", f"{code}_judge", f"{code}_detector"} <= set(table.columns):
        return pl.lit(False)
    other = pl.col(f"{code}_judge").fill_null(False) | pl.col(f"{code}_detector").fill_null(False)
    return pl.col(f"{code}_score").fill_null(False) & ~other


def _built(
    base: _Base,
    columns: tuple[int, ...],
    mask: Bools,
    *,
    lead: Sequence[int] = (),
    whole: bool = False,
) -> RunArrays:
    runs = base.runs.filter(pl.Series(mask, dtype=pl.Boolean))
    axes = {name: factorize(runs[name]) for name in ("agent", "track", "tier")}
    task, tasks = factorize(runs.select(task_key()).to_series() if runs.height else runs["task"])
    names, kept = tuple(CODES[k] for k in columns), np.ix_(mask, np.array(columns))
    n_read = dict(zip(CODES, base.read.sum(0).tolist(), strict=True))
    notes = (
        base.notes
        if whole
        else (*base.notes, *_reading_notes(n_read, len(mask), names, int(mask.sum()), bool(lead)))
    )
    return RunArrays(
        runs,
        base.outcome,
        runs[base.outcome].to_numpy().astype(np.float64),
        base.codes[kept],
        base.read[kept],
        names,
        n_read,
        len(mask),
        axes["agent"][0],
        task,
        axes["track"][0],
        axes["tier"][0],
        tuple(axes["agent"][1]),
        tuple(tasks),
        tuple(axes["track"][1]),
        tuple(axes["tier"][1]),
        notes,
        base.tagged,
        base.from_score,
    )


def _reading_notes(
    n_read: Mapping[str, int], total: int, names: tuple[str, ...], n: int, beside: bool
) -> list[str]:
    """What was left out because nobody read it; nothing when all runs were read for all codes."""
    if n == total and len(names) == len(CODES):
        return []
    notes = [
        f"codes {', '.join(names)}: read in {n} of {total} runs"
        + ("; the others are left out" if n < total else "")
    ]
    missing = [f"{code} (read in {n_read[code]} of {total})" for code in CODES if code not in names]
    if missing:
        what = "not adjusted for, so their part may be in the number" if beside else "not counted"
        notes.append(f"{what}: {', '.join(missing)}")
    return notes


def code_columns(table: pl.DataFrame, source: str) -> dict[str, pl.Expr]:
    """Expressions of E1..E5 from one source of tags; null where a code is not known."""
    if source == "any":
        return {code: pl.col(code) for code in CODES}
    if source == "independent":
        # Either may not have looked: what one of them says counts.
        return {
            code: (
                pl.when(
                    pl.col(f"{code}_judge").is_not_null() | pl.col(f"{code}_detector").is_not_null()
                ).then(
                    pl.col(f"{code}_judge").fill_null(False)
                    | pl.col(f"{code}_detector").fill_null(False)
                )
            )
            for code in CODES
        }
    missing = [
        f"{code}_{source}" for code in CODES if table.schema.get(f"{code}_{source}") != pl.Boolean
    ]
    if missing:
        raise ConfigError(
            f"no column {missing[0]}",
            "code sources are any, independent, judge, detector, fact, score, human",
        )
    return {code: pl.col(f"{code}_{source}") for code in CODES}


def reading_refusal(code: str, read: int, runs: int) -> str | None:
    """The sentence that refuses a code that too few of the runs were read for, or None."""
    if read >= min(MIN_READ, runs):
        return None
    return (
        f"{code} was read in {read or 'none'} of {runs} runs, at least {min(MIN_READ, runs)} are"
        " needed"
    )


PARTS = ("S1", "S2", "S3", "S4", "S5", "task", "other")
"""Of Overall, in points: 50 w_j S_j, 50 Task, and what these do not explain (0 when the frame is
consistent)."""


def zero_task_loss(d: RunArrays) -> Floats:
    """The part of 50 Task that runs lose by a Task of 0 (a gate, nothing to score, a worthless
    result), n values of 0 or below: minus 50 times the mean Task above 0 of the cell (without any,
    of all runs). The rest is how good a result is."""
    task = d.table["task_score"].cast(pl.Float64).fill_null(0.0).to_numpy()
    above = task > 0
    whole = float(task[above].mean()) if above.any() else 0.0
    count = np.bincount(d.cell, above, minlength=d.n_cells)
    mean = np.where(
        count > 0, np.bincount(d.cell, task, minlength=d.n_cells) / np.maximum(count, 1), whole
    )
    return np.asarray(np.where(above, 0.0, -50 * mean[d.cell]))


def overall_parts(table: pl.DataFrame) -> Floats:
    """Overall split into PARTS (n x 7). Unscored stages follow the row's policy: weights rescaled,
    or counted as 0."""
    stages = table.select(list(WEIGHTS)).to_numpy().astype(np.float64).reshape(-1, 5)
    weights = np.broadcast_to(np.array(list(WEIGHTS.values())), stages.shape)
    scored = np.isfinite(stages)
    zero = (table["missing_policy"].fill_null("renormalize") == "zero").to_numpy()
    total = np.where(zero, 1.0, (weights * scored).sum(1))
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = (
            50
            * np.where(scored, weights * np.where(scored, stages, 0.0), 0.0)
            / np.where(total > 0, total, 1.0)[:, None]
        )
    task = 50 * np.nan_to_num(table["task_score"].to_numpy().astype(np.float64))
    overall = table["overall"].to_numpy().astype(np.float64)
    other = overall - parts.sum(1) - task
    return np.column_stack([parts, task, np.where(np.abs(other) < 0.02, 0.0, other)])
