"""Leaderboards: agents' means with intervals for new tasks and for the same tasks, paired differences, rank sets.

As published, an agent's Overall is the mean of a track, then the unweighted mean of tracks; within a track tasks weigh the
same, so that a task that was repeated more often does not count for more (equal to the mean over runs where repeats are equal).
For new tasks the spread is between tasks within tracks (t); for the same tasks, between repeats within cells. Rank sets come
from all paired differences at once (Mogstad, Romano, Shaikh and Wilhelm, with Holm's procedure).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from ..judge.scoring import VALID_SHARE
from ..tracks import TRACKS
from .design import READ_SCORES, Design, design, pointless, prepared, task_key, unread
from .estimate import (
    NO_LIMITS,
    SCALES,
    Bools,
    Estimate,
    Floats,
    Ints,
    Rows,
    adjusted,
    detectable,
    estimate,
    t_two_sided,
    tidy,
)
from .outcomes import SHARES

LEADERBOARD_KEYS: dict[str, Any] = {
    "scope": pl.String, "name": pl.String, "rank": pl.Int64, "agent": pl.String, "runs": pl.Int64, "tasks": pl.Int64,
    "value_missing_zero": pl.Float64, "value_missing_best": pl.Float64, "rank_lo": pl.Int64, "rank_hi": pl.Int64, "p_first": pl.Float64,
    "unread": pl.Int64, "range_lo": pl.Float64, "range_hi": pl.Float64,
}  # fmt: skip
SIDE_COLUMNS = (
    "agentic", "task_score", "S1", "S2", "S3", "S4", "S5", "turns", "wall_time_s", "input_tokens", "output_tokens",
    "cost_usd", "failed", "presumed", "read_share", *SHARES,
)  # fmt: skip
SEED = 20260601
METHOD = "mean of runs by cell, of tiers by task, of tasks by track, of tracks"
ONE_TASK = "one task a track: nothing says how tasks differ"


@dataclass(frozen=True)
class Grid:
    """An outcome by agent, task and tier (agents x tasks x tiers): runs, sums, and the variance of a run within the cell."""

    agents: tuple[str, ...]
    tasks: tuple[str, ...]
    track: Ints
    """Of each task."""
    count: Floats
    total: Floats
    spread: Floats
    """Variance between repeats; where a cell has no repeats, the pooled one (NaN without any repeats)."""
    repeats: float

    @cached_property
    def mean(self) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.total / self.count)


def grid(d: Design) -> Grid:
    """The grid of a design's outcome."""
    shape = (len(d.agents), len(d.tasks), len(d.tiers))
    at = (d.agent * max(shape[1], 1) + d.task) * max(shape[2], 1) + d.tier
    count = np.bincount(at, minlength=math.prod(shape)).astype(float)
    total = np.bincount(at, d.y, minlength=math.prod(shape)) if d.n else count
    centred = d.y - (total / np.maximum(count, 1))[at]
    squares = np.bincount(at, centred**2, minlength=math.prod(shape)) if d.n else count
    df = float(np.maximum(count - 1, 0).sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.where(count > 1, squares / (count - 1), squares.sum() / df if df else math.nan)
    track = np.zeros(len(d.tasks), dtype=np.int64)
    track[d.task] = d.track
    return Grid(
        d.agents, d.tasks, track, count.reshape(shape), np.reshape(total, shape), np.reshape(spread, shape), df
    )  # fmt: skip


@dataclass(frozen=True)
class Score:
    """An agent's score on some cells: value, task residuals u_t (new tasks), variance for the same tasks."""

    value: float
    residual: Floats
    variance_same: float
    n_tracks: int
    n_runs: int
    track_of: Ints
    """Of each task; -1 where the agent has no run."""


def agent_score(g: Grid, a: int, use: Bools) -> Score | None:
    """Mean over repeats by cell, over tiers by task, over tasks by track, then over tracks, of agent `a` on the cells `use`
    (tasks x tiers, or tasks); None without runs. Tasks weigh the same however often they were repeated."""
    cells = (use if use.ndim == 2 else use[:, None]) & (g.count[a] > 0)
    tiers = cells.sum(1)
    there = tiers > 0
    if not there.any():
        return None
    means = np.where(cells, g.mean[a], 0.0).sum(1) / np.maximum(tiers, 1)
    noise = np.where(cells, g.spread[a] / np.maximum(g.count[a], 1), 0.0).sum(1) / np.maximum(tiers, 1) ** 2
    tracks = np.unique(g.track[there])
    residual = np.zeros(len(there))
    value = same = 0.0
    for track in tracks:
        inside = there & (g.track == track)
        size = int(inside.sum())
        mean = means[inside].mean()
        value += float(mean) / len(tracks)
        residual[inside] = (means[inside] - mean) / size / len(tracks)
        same += float(noise[inside].sum()) / (size * len(tracks)) ** 2
    runs = int(g.count[a][cells].sum())
    return Score(value, residual, same, len(tracks), runs, np.where(there, g.track, -1))


def variance_new(residual: Floats, track_of: Ints) -> tuple[float, float, str | None]:
    """(variance for new tasks, df, warning) of a mean of tracks from its task residuals.

    A track with one task says nothing of its own spread and takes the pooled one of the others. The df are Satterthwaite's
    for tasks that spread alike in all tracks (Bell and McCaffrey's working model): unequal tracks leave fewer than tasks minus
    tracks.
    """
    tracks, size = np.unique(track_of[track_of >= 0], return_counts=True)
    k, several = len(tracks), size > 1
    free = size[several] - 1
    if not several.any():
        return math.nan, 0, ONE_TASK
    lonely = int((~several).sum())
    squares = (
        np.array([(residual[track_of == track] ** 2).sum() for track in tracks[several]]) * (k * size[several]) ** 2
    )
    # Each track's variance s2 = squares / free enters with 1 / (size k^2), and its share of the pooled one for lonely tracks.
    weight = (1 / size[several] + lonely * free / free.sum()) / k**2
    variance = float((weight * squares / free).sum())
    df = float(weight.sum() ** 2 / (weight**2 / free).sum())
    few = f"{lonely} track{'s have' if lonely > 1 else ' has'} one task: the spread of tasks there is borrowed from the others"
    return variance, df, few if lonely else None


def _rows(
    g: Grid, tasks: Bools, label: str, notes: tuple[str, ...], limits: tuple[float, float]
) -> list[tuple[int, Estimate, Estimate]]:
    out = []
    there = np.asarray((g.count > 0).any(axis=2))
    most = max((len(np.unique(g.track[tasks & there[a]])) for a in range(len(g.agents))), default=0)
    for a in range(len(g.agents)):
        score = agent_score(g, a, tasks)
        if score is None:
            continue
        variance, df, warning = variance_new(score.residual, score.track_of)
        warnings = [*notes, *([warning] if warning and df else [])]
        if score.n_tracks < most:
            warnings.append(f"{score.n_tracks} of {most} tracks only: not comparable with agents on all tracks")
        common: dict[str, Any] = {
            "n": score.n_runs, "n_clusters": int((score.track_of >= 0).sum()), "warnings": warnings, "test": False,
            "limits": limits,
        }  # fmt: skip
        new = estimate(
            label, "new", score.value, math.sqrt(variance) if df else None, df, method=f"{METHOD}; tasks within tracks, t",
            reason=None if df else ONE_TASK, **common,
        )  # fmt: skip
        same = estimate(
            label, "same", score.value, math.sqrt(score.variance_same) if g.repeats >= 1 else None, g.repeats,
            method=f"{METHOD}; repeats within cells, t", reason=None if g.repeats >= 1 else "no repeats", **common,
        )  # fmt: skip
        out.append((a, new, same))
    return sorted(out, key=lambda row: -(row[1].value if row[1].value is not None else -math.inf))


def unbalanced(g: Grid) -> tuple[str, ...]:
    """A note where cells have unlike numbers of runs: what then weighs how."""
    counts = g.count[g.count > 0]
    if not len(counts) or (counts.min() == counts.max() and len(counts) == g.count.size):
        return ()
    missing = int(g.count.size - len(counts))
    gaps = f", and {missing} cell{'s have' if missing > 1 else ' has'} none" if missing else ""
    return (
        f"{counts.min():.0f} to {counts.max():.0f} runs a cell{gaps}: tasks weigh the same, however many runs they have",
    )


def leaderboard(
    table: pl.DataFrame,
    outcome: str = "overall",
    *,
    scopes: tuple[str, ...] = ("overall", "track", "task"),
    prepare: bool = True,
) -> pl.DataFrame:
    """Agents ranked overall, by track and by task; two rows an agent (new tasks, same tasks) with both intervals.

    Beside the value stand the means of stages and resources (averaged the same way), its bounds when runs without a score count
    as 0 (`value_missing_zero`) and as the scale's top (`value_missing_best`), and overall the rank set (`rank_lo`..`rank_hi`,
    joint 95 %) and the share of task resamplings in which the agent comes first. Disqualified runs count with their 0.
    `range_lo`..`range_hi`: means of the bounds over all runs of the agent. An agent without points (`design.pointless`), of which
    `unread` runs were not read enough, has a row with its range and without rank.
    """
    d = design(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    full = prepared(table)[0] if prepare else table
    g = grid(d)
    filled = {
        column: grid(design(full.with_columns(pl.col(outcome).fill_nan(None).fill_null(end)), outcome, keep_breach=True, prepare=False, need_codes=False))
        for column, end in zip(("value_missing_zero", "value_missing_best"), SCALES.get(outcome, (0.0, None)), strict=True)
        if end is not None
    }  # fmt: skip
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
        ranked = _rows(g, tasks, f"mean {outcome}", (*d.notes, *unbalanced(g)), SCALES.get(outcome, NO_LIMITS))
        extra = _rank_columns(g) if scope == "overall" else {}
        alike = not any("not comparable" in note for _, new, _ in ranked for note in new.warnings)
        for rank, (a, new, same) in enumerate(ranked, 1):
            agent = g.agents[a]
            bounds = {}
            for column, whole in filled.items():
                inside = np.isin(whole.tasks, np.array(g.tasks)[tasks]) | (scope == "overall")
                score = agent_score(whole, whole.agents.index(agent), inside)
                bounds[column] = score.value if score else None
            key = {
                "scope": scope, "name": name, "rank": rank if alike else None, "agent": agent, "runs": new.n, "tasks": new.n_clusters,
                **bounds, **extra.get(agent, {}), **sides.get((scope, name, agent), {}),
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
    """Means of SIDE_COLUMNS and of the outcome's bounds by scope and agent, averaged as the scores are."""
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
    by_task = data.group_by("agent", "track", "_task", "tier").agg(means).group_by("agent", "track", "_task").agg(means)
    by_track = by_task.group_by("agent", "track").agg(means)
    parts = {
        "track": by_track.rename({"track": "name"}),
        "overall": by_track.group_by("agent")
        .agg(pl.col(name).mean() for name in columns)
        .with_columns(name=pl.lit("overall")),
        "task": by_task.rename({"_task": "name"}),
    }
    return {
        (scope, row["name"], row["agent"]): {name: row[name] for name in columns}
        for scope, part in parts.items()
        for row in part.iter_rows(named=True)
    }


@dataclass(frozen=True)
class Contrast:
    """Difference of two agents on the cells that both have, paired by task."""

    a: int
    b: int
    value: float
    se: float
    se_same: float
    df: float
    n: int
    n_tasks: int
    warning: str | None


def contrasts(g: Grid) -> list[Contrast]:
    """All pairs of agents with at least one common cell."""
    out = []
    for a in range(len(g.agents)):
        for b in range(a + 1, len(g.agents)):
            common = (g.count[a] > 0) & (g.count[b] > 0)
            first, second = agent_score(g, a, common), agent_score(g, b, common)
            if first is None or second is None:
                continue
            variance, df, warning = variance_new(first.residual - second.residual, first.track_of)
            same = math.sqrt(first.variance_same + second.variance_same)
            n, tasks = first.n_runs + second.n_runs, int(common.any(1).sum())
            value, se = first.value - second.value, math.sqrt(variance) if df else math.nan
            out.append(Contrast(a, b, value, se, same, df, n, tasks, warning if df else None))
    return out


def pairwise(table: pl.DataFrame, outcome: str = "overall", *, prepare: bool = True) -> pl.DataFrame:
    """Differences between agents, paired by task (two rows a pair), Holm over pairs, and the difference found with power .8."""
    d = design(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    g = grid(d)
    keys: dict[str, Any] = {"agent": pl.String, "other": pl.String, "p_holm": pl.Float64, "mde80": pl.Float64}
    blocks: list[Rows] = [[], []]
    top = SCALES.get(outcome, NO_LIMITS)[1]
    for pair in contrasts(g):
        notes = (*d.notes, *unbalanced(g), *([pair.warning] if pair.warning else []))
        common: dict[str, Any] = {"n": pair.n, "n_clusters": pair.n_tasks, "warnings": notes, "limits": (-top, top)}
        label = f"difference in mean {outcome}"
        new = estimate(
            label, "new", pair.value, pair.se, pair.df, method="paired by task within tracks, t",
            reason=None if pair.df else ONE_TASK, **common,
        )  # fmt: skip
        se = pair.se_same if g.repeats >= 1 else None
        same = estimate(label, "same", pair.value, se, g.repeats, method="repeats within cells, t", **common)
        for at, est in enumerate((new, same)):
            mde = detectable(est.se, est.df) if est.se and est.df else None
            blocks[at].append(({"agent": g.agents[pair.a], "other": g.agents[pair.b], "mde80": mde}, est))
    for block in blocks:
        for (key, _), p in zip(block, adjusted([est.p for _, est in block], "holm"), strict=True):
            key["p_holm"] = p
    return tidy(blocks[0] + blocks[1], keys)


def rank_sets(
    table: pl.DataFrame, outcome: str = "overall", *, level: float = 0.95, seed: int = SEED, prepare: bool = True
) -> pl.DataFrame:
    """For each agent the ranks that new tasks leave possible (jointly for all agents), and how often it is first.

    An agent's rank is bounded by those whose paired difference from it Holm's procedure over all pairs finds: with probability
    `level` no such finding is false, so all sets hold at once, whatever the design. `p_first` describes resamplings of tasks
    within tracks; it is no confidence. Undefined where a pair of agents cannot be compared for new tasks.
    """
    d = design(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    g = grid(d)
    rows = _rank_columns(g, level, seed)
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


def _rank_columns(g: Grid, level: float = 0.95, seed: int = SEED) -> dict[str, dict[str, Any]]:
    n = len(g.agents)
    pairs = contrasts(g)
    first = _first_shares(g, 1000, seed)
    if n < 2 or len(pairs) < n * (n - 1) // 2 or any(pair.df < 1 for pair in pairs):
        return {agent: {"rank_lo": None, "rank_hi": None, "p_first": first.get(agent)} for agent in g.agents}
    sets = possible_ranks(pairs, n, level)
    return {
        agent: {"rank_lo": lo, "rank_hi": hi, "p_first": first.get(agent)}
        for agent, (lo, hi) in zip(g.agents, sets, strict=True)
    }


def possible_ranks(pairs: Sequence[Contrast], n: int, level: float = 0.95) -> list[tuple[int, int]]:
    """First and last rank of each of n agents that Holm's procedure over all their differences leaves possible."""
    lo, hi = [1] * n, [n] * n
    tests = [t_two_sided(pair.value / pair.se, pair.df) if pair.se > 0 else None for pair in pairs]
    for pair, p in zip(pairs, adjusted(tests, "holm"), strict=True):
        if p is not None and p < 1 - level:
            up, down = (pair.a, pair.b) if pair.value > 0 else (pair.b, pair.a)
            lo[down] += 1
            hi[up] -= 1
    return list(zip(lo, hi, strict=True))


def _first_shares(g: Grid, draws: int, seed: int) -> dict[str, float]:
    """How often each agent has the highest score when tasks are resampled within tracks; empty unless all share all cells."""
    if len(g.agents) < 2 or (g.count == 0).any() or max(np.bincount(g.track), default=0) < 2:
        return {}
    rng = np.random.default_rng(seed)
    scores = np.zeros((draws, len(g.agents)))
    means = g.mean.mean(2)
    for track in np.unique(g.track):
        inside = np.flatnonzero(g.track == track)
        weights = rng.multinomial(len(inside), np.full(len(inside), 1 / len(inside)), size=draws) / len(inside)
        scores += weights @ means[:, inside].T
    shares = np.bincount(scores.argmax(1), minlength=len(g.agents)) / draws
    return dict(zip(g.agents, shares.tolist(), strict=True))
