"""From a run frame to arrays: which runs can be analysed, their cells, tasks and codes, and what was left out and why."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from ..errors import ConfigError
from .estimate import Bools, Floats, Ints
from .frames import CODES, WEIGHTS
from .jackknife import codes_of

UNKNOWN = "(unknown)"
DIMENSIONS = ("agent", "task", "track", "tier")


def prepared(table: pl.DataFrame, *, keep_breach: bool = True) -> tuple[pl.DataFrame, list[str]]:
    """One row a run: one judge, no duplicates, names filled; with notes on everything that was left out.

    With several judges the one with most runs stays (ties: the first by name). Duplicates are rows with the same run id
    and judge, or with the same agent, task, tier, repeat and content hash; the last stays.
    """
    notes: list[str] = []
    out = table
    if out["judge"].n_unique() > 1:
        counts = out.group_by("judge").len().sort(["len", "judge"], descending=[True, False], nulls_last=True)
        chosen = counts["judge"][0]
        out = out.filter(pl.col("judge").eq_missing(pl.lit(chosen)))
        notes.append(
            f"only the scorecards of judge {chosen} are used; {table.height - out.height} of others are left out"
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
    for name in DIMENSIONS:
        unknown = out[name].null_count()
        if unknown:
            notes.append(f"{unknown} runs name no {name}: they are grouped as {UNKNOWN}")
    return out.with_columns(pl.col(name).fill_null(UNKNOWN) for name in DIMENSIONS), notes


def numbers(values: pl.Series) -> tuple[Ints, list[str]]:
    """Dense numbers of the sorted distinct values, and these values."""
    labels = sorted(values.unique().to_list())
    if not labels:
        return np.zeros(0, dtype=np.int64), []
    ranks = values.rank("dense").to_numpy().astype(np.int64) - 1
    return ranks, labels


@dataclass(frozen=True)
class Design:
    """Runs with an outcome: arrays of equal length. A cell is an agent on a task in a tier."""

    table: pl.DataFrame
    outcome: str
    y: Floats
    codes: Bools
    code_names: tuple[str, ...]
    agent: Ints
    task: Ints
    track: Ints
    tier: Ints
    agents: tuple[str, ...]
    tasks: tuple[str, ...]
    tracks: tuple[str, ...]
    tiers: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def n(self) -> int:
        return len(self.y)

    @cached_property
    def cell(self) -> Ints:
        return codes_of(self.agent, self.task, self.tier)[0]

    @cached_property
    def n_cells(self) -> int:
        return int(self.cell.max(initial=-1)) + 1

    @property
    def n_tasks(self) -> int:
        return len(self.tasks)


def task_key() -> pl.Expr:
    """Tasks are told apart within their track."""
    return pl.concat_str([pl.col("track"), pl.col("task")], separator="/")


def design(
    table: pl.DataFrame,
    outcome: str = "overall",
    *,
    source: str = "any",
    keep_breach: bool = False,
    prepare: bool = True,
    need_codes: bool = True,
) -> Design:
    """Arrays of the runs that have `outcome`.

    `source`: any, or a code source of the frame (judge, detector, fact, score, human); `independent` is judge or detector,
    leaving out codes read off the score. `need_codes`: leave out runs whose codes are unknown. Raises ConfigError for an unknown outcome or source.
    """
    if outcome not in table.columns or not table.schema[outcome].is_numeric():
        raise ConfigError(f"no numeric column {outcome!r} to explain", "overall, agentic, task_score or S1..S5")
    notes: list[str] = []
    if prepare:
        table, notes = prepared(table, keep_breach=keep_breach)
    scored = table.filter(pl.col(outcome).is_not_null() & pl.col(outcome).is_finite())
    if scored.height < table.height:
        notes.append(f"{table.height - scored.height} runs without {outcome} are left out")
    columns = code_columns(scored, source)
    codes = scored.select(**columns)
    unknown = int(codes.select(pl.any_horizontal(pl.all().is_null()).sum()).item()) if scored.height else 0
    if not need_codes:
        codes = codes.fill_null(False)
    elif unknown:
        keep = ~codes.select(pl.any_horizontal(pl.all().is_null())).to_series()
        scored, codes = scored.filter(keep), codes.filter(keep)
        notes.append(f"{unknown} runs whose codes are unknown are left out")
    axes = {name: numbers(scored[name]) for name in ("agent", "track", "tier")}
    task, tasks = numbers(scored.select(task_key()).to_series() if scored.height else scored["task"])
    return Design(
        scored, outcome, scored[outcome].to_numpy().astype(np.float64), codes.to_numpy().astype(bool).reshape(-1, len(CODES)),
        CODES, axes["agent"][0], task, axes["track"][0], axes["tier"][0], tuple(axes["agent"][1]), tuple(tasks),
        tuple(axes["track"][1]), tuple(axes["tier"][1]), tuple(notes),
    )  # fmt: skip


def code_columns(table: pl.DataFrame, source: str) -> dict[str, pl.Expr]:
    """Expressions of E1..E5 from one source of tags."""
    if source == "any":
        return {code: pl.col(code) for code in CODES}
    if source == "independent":
        return {code: pl.col(f"{code}_judge") | pl.col(f"{code}_detector") for code in CODES}
    missing = [f"{code}_{source}" for code in CODES if f"{code}_{source}" not in table.columns]
    if missing:
        raise ConfigError(
            f"no column {missing[0]}", "code sources are any, independent, judge, detector, fact, score, human"
        )
    return {code: pl.col(f"{code}_{source}") for code in CODES}


PARTS = ("S1", "S2", "S3", "S4", "S5", "task", "other")
"""Of Overall, in points: 50 w_j S_j, 50 Task, and what these do not explain (0 when the frame is consistent)."""


def overall_parts(table: pl.DataFrame) -> Floats:
    """Overall split into PARTS (n x 7). Unscored stages follow the row's policy: weights rescaled, or counted as 0."""
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
