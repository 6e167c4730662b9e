"""Leaderboards: agents' means with intervals for new tasks and for the same tasks, paired differences, rank sets.

As published, an agent's Overall is the mean over its runs of a track, then the unweighted mean of tracks. For new tasks
the spread is between tasks within tracks (t with tasks minus tracks degrees of freedom); for the same tasks, between
repeats within cells. Rank sets come from all paired differences at once (Mogstad, Romano, Shaikh and Wilhelm).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..judge.scoring import VALID_SHARE
from ..tracks import TRACKS
from .design import READ_SCORES, Design, design, pointless, prepared, task_key, unread
from .estimate import Bools, Estimate, Floats, Ints, Rows, adjusted, detectable, estimate, t_quantile, tidy
from .jackknife import group_sums
from .outcomes import SHARES

LEADERBOARD_KEYS: dict[str, Any] = {
    "scope": pl.String, "name": pl.String, "rank": pl.Int64, "agent": pl.String, "runs": pl.Int64, "tasks": pl.Int64,
    "value_missing_zero": pl.Float64, "rank_lo": pl.Int64, "rank_hi": pl.Int64, "p_first": pl.Float64,
    "unread": pl.Int64, "range_lo": pl.Float64, "range_hi": pl.Float64,
}  # fmt: skip
SIDE_COLUMNS = (
    "agentic", "task_score", "S1", "S2", "S3", "S4", "S5", "turns", "wall_time_s", "input_tokens", "output_tokens",
    "cost_usd", "failed", "presumed", "read_share", *SHARES,
)  # fmt: skip
SEED = 20260601


@dataclass(frozen=True)
class Grid:
    """Sums of an outcome by agent and task: counts, sums (agents x tasks), within-cell variance terms, tracks of tasks."""

    agents: tuple[str, ...]
    tasks: tuple[str, ...]
    track: Ints
    count: Floats
    total: Floats
    spread: Floats
    """Sum over an agent's cells on the task of n_c s_c^2, the variance of the sum of its runs (same tasks)."""
    repeats: float

    @property
    def mean(self) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.total / self.count)


def grid(d: Design) -> Grid:
    """The grid of a design's outcome."""
    n_agents, n_tasks = len(d.agents), len(d.tasks)
    pair = d.agent * max(n_tasks, 1) + d.task
    sums = group_sums(np.column_stack([np.ones(d.n), d.y]), pair, n_agents * n_tasks)
    size = np.bincount(d.cell, minlength=d.n_cells)
    cell_sums = group_sums(np.column_stack([d.y - d.y.mean() if d.n else d.y]), d.cell, d.n_cells)[:, 0]
    centred = (d.y - d.y.mean() if d.n else d.y) - (cell_sums / np.maximum(size, 1))[d.cell]
    squares = np.bincount(d.cell, centred**2, minlength=d.n_cells)
    df = float((size - 1).sum()) if d.n else 0.0
    pooled = squares.sum() / df if df > 0 else math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(size > 1, squares / (size - 1), pooled)
    first = np.full(d.n_cells, 0, dtype=np.int64)
    first[d.cell] = pair
    spread = np.bincount(first, size * variance, minlength=n_agents * n_tasks) if d.n else np.zeros(0)
    track = np.zeros(n_tasks, dtype=np.int64)
    track[d.task] = d.track
    shape = (n_agents, n_tasks)
    return Grid(
        d.agents, d.tasks, track, sums[:, 0].reshape(shape), sums[:, 1].reshape(shape), np.reshape(spread, shape), df
    )


@dataclass(frozen=True)
class Score:
    """An agent's score on some tasks: value, task residuals u_t (new tasks), variance for the same tasks."""

    value: float
    residual: Floats
    factor: Floats
    """T_k / (T_k - 1) of each task's track; NaN where a track has one task."""
    variance_same: float
    n_tracks: int
    n_runs: int

    track_of: Ints
    """-1 where the agent has no run."""


def agent_score(g: Grid, a: int, tasks: Bools) -> Score | None:
    """Mean over runs by track, then over tracks, of agent `a` on `tasks`; None without runs."""
    use = tasks & (g.count[a] > 0)
    if not use.any():
        return None
    tracks = np.unique(g.track[use])
    residual, factor = np.zeros(len(use)), np.full(len(use), np.nan)
    value = same = 0.0
    for track in tracks:
        inside = use & (g.track == track)
        n = g.count[a, inside].sum()
        mean = g.total[a, inside].sum() / n
        value += mean / len(tracks)
        residual[inside] = (g.total[a, inside] - g.count[a, inside] * mean) / n / len(tracks)
        same += g.spread[a, inside].sum() / n**2 / len(tracks) ** 2
        size = int(inside.sum())
        factor[inside] = size / (size - 1) if size > 1 else np.nan
    factor[~use] = 0.0
    return Score(value, residual, factor, same, len(tracks), int(g.count[a, use].sum()), np.where(use, g.track, -1))


def variance_new(residual: Floats, score: Score) -> tuple[float, int, str | None]:
    """(variance for new tasks, df, warning). Tracks with one task borrow the task spread of the other tracks."""
    use = score.track_of >= 0
    multi = use & np.isfinite(score.factor)
    lonely = use & ~np.isfinite(score.factor)
    tracks = np.unique(score.track_of[multi])
    df = int(multi.sum()) - len(tracks)
    if df < 1:
        return math.nan, 0, "one task a track: nothing says how tasks differ"
    total = float((score.factor[multi] * residual[multi] ** 2).sum())
    if not lonely.any():
        return total, df, None
    k = score.n_tracks
    sizes = np.array([(score.track_of[multi] == track).sum() for track in tracks])
    inside = [multi & (score.track_of == track) for track in tracks]
    pooled = sum(float((residual[i] ** 2).sum()) * k**2 * m**2 for i, m in zip(inside, sizes, strict=True)) / df
    extra = int(lonely.sum()) * pooled / k**2
    return total + extra, df, f"{int(lonely.sum())} tracks have one task: their task spread is borrowed from the others"


def _rows(g: Grid, tasks: Bools, label: str, notes: tuple[str, ...]) -> list[tuple[int, Estimate, Estimate]]:
    out = []
    most = max((len(np.unique(g.track[tasks & (g.count[a] > 0)])) for a in range(len(g.agents))), default=0)
    for a in range(len(g.agents)):
        score = agent_score(g, a, tasks)
        if score is None:
            continue
        variance, df, warning = variance_new(score.residual, score)
        warnings = [*notes, *([warning] if warning and df else [])]
        if score.n_tracks < most:
            warnings.append(f"{score.n_tracks} of {most} tracks only: not comparable with agents on all tracks")
        n_tasks = int((score.track_of >= 0).sum())
        method = "mean of runs by track, mean of tracks"
        new = estimate(
            label, "new", score.value, math.sqrt(variance) if df else None, df, n=score.n_runs, n_clusters=n_tasks,
            method=f"{method}; tasks within tracks, t", reason=None if df else "one task a track: nothing says how tasks differ",
            warnings=warnings, test=False,
        )  # fmt: skip
        same = estimate(
            label, "same", score.value, math.sqrt(score.variance_same) if g.repeats >= 1 else None, g.repeats, n=score.n_runs,
            n_clusters=n_tasks, method=f"{method}; repeats within cells, t", reason=None if g.repeats >= 1 else "no repeats",
            warnings=warnings, test=False,
        )  # fmt: skip
        out.append((a, new, same))
    return sorted(out, key=lambda row: -(row[1].value if row[1].value is not None else -math.inf))


def leaderboard(
    table: pl.DataFrame,
    outcome: str = "overall",
    *,
    scopes: tuple[str, ...] = ("overall", "track", "task"),
    prepare: bool = True,
) -> pl.DataFrame:
    """Agents ranked overall, by track and by task; two rows an agent (new tasks, same tasks) with both intervals.

    Beside the value stand the means of stages and resources (averaged the same way), `value_missing_zero` (runs without
    a score counted as 0), and overall the rank set (`rank_lo`..`rank_hi`, joint 95 %) and the share of task resamplings
    in which the agent comes first. Disqualified runs count with their 0. `range_lo`..`range_hi`: means of the bounds over
    all runs of the agent. An agent without points (`design.pointless`), of which `unread` runs were not read enough, has a
    row with its range and without rank.
    """
    d = design(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    full = prepared(table)[0] if prepare else table
    g = grid(d)
    zero_frame = full.with_columns(pl.col(outcome).fill_null(0.0).fill_nan(0.0))
    zeros = grid(design(zero_frame, outcome, keep_breach=True, prepare=False, need_codes=False))
    keys = {**LEADERBOARD_KEYS, **dict.fromkeys(SIDE_COLUMNS, pl.Float64)}
    rows: Rows = []
    sides, without = _sides(full, outcome), _without_points(full, outcome)
    plans: list[tuple[str, str, Bools]] = []
    everything = np.ones(len(g.tasks), dtype=bool)
    if "overall" in scopes:
        plans.append(("overall", "overall", everything))
    if "track" in scopes:
        plans += [("track", name, g.track == k) for k, name in enumerate(d.tracks)]
    if "task" in scopes:
        plans += [("task", name, np.arange(len(g.tasks)) == k) for k, name in enumerate(g.tasks)]
    names = {(scope, name) for scope, name, _ in plans}
    nothing = np.zeros(len(g.tasks), dtype=bool)
    plans += [
        (*board, nothing)
        for board in dict.fromkeys(k[:2] for k in without)
        if board not in names and board[0] in scopes
    ]
    for scope, name, tasks in plans:
        ranked = _rows(g, tasks, f"mean {outcome}", d.notes)
        extra = _rank_columns(g) if scope == "overall" else {}
        zero_tasks = (
            np.isin(np.array(zeros.tasks), np.array(g.tasks)[tasks])
            if scope != "overall"
            else np.ones(len(zeros.tasks), dtype=bool)
        )
        for rank, (a, new, same) in enumerate(ranked, 1):
            agent = g.agents[a]
            zero = agent_score(zeros, zeros.agents.index(agent), zero_tasks)
            key = {
                "scope": scope, "name": name, "rank": rank, "agent": agent, "runs": new.n, "tasks": new.n_clusters,
                "value_missing_zero": zero.value if zero else None, **extra.get(agent, {}), **sides.get((scope, name, agent), {}),
            }  # fmt: skip
            rows += [(key, new), (key, same)]
        for agent in (key[2] for key in without if key[:2] == (scope, name)):
            runs, lacking = without[scope, name, agent]
            key = {
                "scope": scope,
                "name": name,
                "agent": agent,
                "runs": runs,
                "unread": lacking,
                **sides[scope, name, agent],
            }
            reason = (
                f"{lacking} of {runs} runs have a range and no point"
                if lacking
                else "too little of other runs was read"
            )
            rows += [(key, Estimate(f"mean {outcome}", kind, None, n=0, reason=reason)) for kind in ("new", "same")]
    return tidy(rows, keys)


def _without_points(table: pl.DataFrame, outcome: str) -> dict[tuple[str, str, str], tuple[int, int]]:
    """(scope, name, agent) -> (runs, runs of which too little was read) of agents that have no point on this board for that."""
    if outcome not in READ_SCORES:
        return {}
    found = {}
    data = table.with_columns(unread().alias("_unread"), task_key().alias("_task"), pointless().alias("_none"))
    for scope, by in (("overall", pl.lit("overall")), ("track", pl.col("track")), ("task", pl.col("_task"))):
        groups = data.group_by(by.alias("name"), "agent", maintain_order=True)
        for row in groups.agg(pl.len(), pl.col("_unread").sum(), pl.col("_none").all()).iter_rows():
            if row[4]:
                found[scope, row[0], row[1]] = row[2], row[3]
    return found


def failed() -> pl.Expr:
    """Failure by track rule: no scoreable submission, or a task score below what the track asks for.

    A submission of answers can be scored from a share of valid ones on, which S5 tells, else the completion.
    """
    out = pl.col("disqualified").fill_null(False)
    base = ~pl.col("completed") | out
    for track in TRACKS:
        if track.output == "answers":
            short = pl.coalesce(pl.col("S5") < 1, pl.col("completion") < VALID_SHARE, ~pl.col("completed")) | out
            base = pl.when(pl.col("track") == track.name).then(short).otherwise(base)
        if track.fails_below is not None:
            short = base | (pl.col("task_score") < track.fails_below)
            base = pl.when(pl.col("track") == track.name).then(short).otherwise(base)
    return base


def _sides(table: pl.DataFrame, outcome: str) -> dict[tuple[str, str, str], dict[str, float | None]]:
    """Means of SIDE_COLUMNS and of the outcome's bounds by scope and agent."""
    data = table.with_columns(failed().cast(pl.Float64).alias("failed"), task_key().alias("_task"), **SHARES)
    bounded = pl.col("task_score").is_not_null() if outcome == "overall" else pl.lit(outcome == "agentic")
    data = data.with_columns(
        pl.when(bounded)
        .then(pl.col(f"{outcome}_{end}") if f"{outcome}_{end}" in data.columns else None)
        .cast(pl.Float64)
        .alias(f"range_{end}")
        for end in ("lo", "hi")
    )
    columns = (*SIDE_COLUMNS, "range_lo", "range_hi")
    means = [pl.col(name).cast(pl.Float64).mean() for name in columns]
    by_track = data.group_by("agent", "track", maintain_order=True).agg(means)
    parts = {
        "track": by_track.rename({"track": "name"}),
        "overall": by_track.group_by("agent")
        .agg(pl.col(name).mean() for name in columns)
        .with_columns(name=pl.lit("overall")),
        "task": data.group_by("agent", pl.col("_task").alias("name")).agg(means),
    }
    return {
        (scope, row["name"], row["agent"]): {name: row[name] for name in columns}
        for scope, part in parts.items()
        for row in part.iter_rows(named=True)
    }


@dataclass(frozen=True)
class Contrast:
    """Difference of two agents on their common tasks, with its task residuals scaled so that squares sum to the variance."""

    a: int
    b: int
    value: float
    scaled: Floats
    se: float
    se_same: float
    df: int
    n: int
    n_tasks: int


def contrasts(g: Grid) -> list[Contrast]:
    """All pairs of agents with at least one common task."""
    out = []
    for a in range(len(g.agents)):
        for b in range(a + 1, len(g.agents)):
            common = (g.count[a] > 0) & (g.count[b] > 0)
            first, second = agent_score(g, a, common), agent_score(g, b, common)
            if first is None or second is None:
                continue
            residual = first.residual - second.residual
            variance, df, _ = variance_new(residual, first)
            scaled = np.sqrt(np.nan_to_num(first.factor)) * residual
            same = math.sqrt(first.variance_same + second.variance_same)
            se = math.sqrt(variance) if df else math.nan
            n = first.n_runs + second.n_runs
            out.append(Contrast(a, b, first.value - second.value, scaled, se, same, df, n, int(common.sum())))
    return out


def pairwise(table: pl.DataFrame, outcome: str = "overall", *, prepare: bool = True) -> pl.DataFrame:
    """Differences between agents, paired by task (two rows a pair), Holm over pairs, and the difference found with power .8."""
    d = design(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    g = grid(d)
    keys: dict[str, Any] = {"agent": pl.String, "other": pl.String, "p_holm": pl.Float64, "mde80": pl.Float64}
    pairs = contrasts(g)
    blocks: list[Rows] = [[], []]
    for pair in pairs:
        common: dict[str, Any] = {"n": pair.n, "n_clusters": pair.n_tasks, "warnings": d.notes}
        label = f"difference in mean {outcome}"
        new = estimate(label, "new", pair.value, pair.se, pair.df, method="paired by task within tracks, t", **common)
        se = pair.se_same if g.repeats >= 1 else None
        same = estimate(label, "same", pair.value, se, g.repeats, method="repeats within cells, t", **common)
        for at, est in enumerate((new, same)):
            mde = detectable(est.se, est.df) if est.se and est.df else None
            blocks[at].append(({"agent": g.agents[pair.a], "other": g.agents[pair.b], "mde80": mde}, est))
    for block in blocks:
        for (key, _), p in zip(block, adjusted([est.p for _, est in block], "holm"), strict=True):
            key["p_holm"] = p
    return tidy(blocks[0] + blocks[1], keys)


def _critical(pairs: list[Contrast], level: float, draws: int, seed: int) -> float:
    """Critical value of the largest |t| over all pairs: Gaussian multipliers on task residuals, widened by t/z."""
    rng = np.random.default_rng(seed)
    t = np.array([pair.scaled / pair.se for pair in pairs])
    xi = rng.standard_normal((draws, t.shape[1]))
    largest = np.abs(xi @ t.T).max(1)
    q = float(np.quantile(largest, level))
    return q * t_quantile((1 + level) / 2, min(pair.df for pair in pairs)) / t_quantile((1 + level) / 2, math.inf)


def rank_sets(
    table: pl.DataFrame,
    outcome: str = "overall",
    *,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = SEED,
    prepare: bool = True,
) -> pl.DataFrame:
    """For each agent the ranks that new tasks leave possible (jointly for all agents), and how often it is first.

    `p_first` describes resamplings of tasks within tracks; it is no confidence. Undefined without two tasks a track.
    """
    d = design(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    g = grid(d)
    rows = _rank_columns(g, level, draws, seed)
    schema: dict[str, Any] = {
        "agent": pl.String, "rank_lo": pl.Int64, "rank_hi": pl.Int64, "p_first": pl.Float64, "n_agents": pl.Int64,
        "reason": pl.String,
    }  # fmt: skip
    reason = "one agent, or no two tasks in a track"
    data = [
        {"agent": agent, "n_agents": len(g.agents), **row, "reason": None if row["rank_lo"] else reason}
        for agent, row in rows.items()
    ]
    return pl.DataFrame(data, schema=schema).sort("rank_lo", "rank_hi", nulls_last=True)


def _rank_columns(g: Grid, level: float = 0.95, draws: int = 2000, seed: int = SEED) -> dict[str, dict[str, Any]]:
    n = len(g.agents)
    pairs = contrasts(g)
    usable = [pair for pair in pairs if pair.df >= 1 and pair.se > 0]
    first = _first_shares(g, min(draws, 1000), seed)
    if not usable or len(pairs) < n * (n - 1) // 2:
        return {agent: {"rank_lo": None, "rank_hi": None, "p_first": first.get(agent)} for agent in g.agents}
    critical = _critical(usable, level, draws, seed)
    better, worse = np.zeros(n, dtype=int), np.zeros(n, dtype=int)
    for pair in usable:
        if abs(pair.value) > critical * pair.se:
            up, down = (pair.a, pair.b) if pair.value > 0 else (pair.b, pair.a)
            better[down] += 1
            worse[up] += 1
    return {
        agent: {"rank_lo": int(1 + better[a]), "rank_hi": int(n - worse[a]), "p_first": first.get(agent)}
        for a, agent in enumerate(g.agents)
    }


def _first_shares(g: Grid, draws: int, seed: int) -> dict[str, float]:
    """How often each agent has the highest score when tasks are resampled within tracks; empty unless all share all tasks."""
    if len(g.agents) < 2 or (g.count == 0).any() or max(np.bincount(g.track), default=0) < 2:
        return {}
    rng = np.random.default_rng(seed)
    scores = np.zeros((draws, len(g.agents)))
    tracks = np.unique(g.track)
    for track in tracks:
        inside = np.flatnonzero(g.track == track)
        weights = rng.multinomial(len(inside), np.full(len(inside), 1 / len(inside)), size=draws)
        scores += (weights @ g.total[:, inside].T) / (weights @ g.count[:, inside].T) / len(tracks)
    shares = np.bincount(scores.argmax(1), minlength=len(g.agents)) / draws
    return dict(zip(g.agents, shares.tolist(), strict=True))
