"""An outcome by agent, task and tier; an agent's score on some of its cells, and the paired
difference of two agents' scores.

Repeats are averaged by cell, cells by task, tasks by track, then tracks, so that tasks weigh the
same. For new tasks the spread is between tasks within tracks; for the same tasks, between repeats
within cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .interval_estimates import Bools, Estimate, Floats, Ints, minimum_detectable_effect, t_estimate
from .run_arrays import RunArrays

METHOD = "mean of runs by cell, of tiers by task, of tasks by track, of tracks"
ONE_TASK_PER_TRACK = "one task a track: nothing says how tasks differ"


@dataclass(frozen=True)
class CellMeans:
    """An outcome by agent, task and tier (agents x tasks x tiers): runs, sums, and the variance of
    a run within the cell."""

    agents: tuple[str, ...]
    tasks: tuple[str, ...]
    track: Ints
    """Of each task."""
    count: Floats
    total: Floats
    spread: Floats
    """Variance between repeats; where a cell has no repeats, the pooled one (NaN without any
    repeats)."""
    repeats: float
    limits: tuple[float, float]
    """Where differences of two values can be."""

    @cached_property
    def mean(self) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.total / self.count)


def cell_means(d: RunArrays) -> CellMeans:
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
    return CellMeans(
        d.agents,
        d.tasks,
        track,
        count.reshape(shape),
        np.reshape(total, shape),
        np.reshape(spread, shape),
        df,
        d.difference_limits,
    )


@dataclass(frozen=True)
class AgentScore:
    """An agent's score on some cells: value, task residuals u_t (new tasks), variance for the same
    tasks."""

    value: float
    residual: Floats
    variance_same: float
    n_tracks: int
    n_runs: int
    track_of: Ints
    """Of each task; -1 where the agent has no run."""


def agent_score(g: CellMeans, a: int, use: Bools) -> AgentScore | None:
    """Mean over repeats by cell, over tiers by task, over tasks by track, then over tracks, of
    agent `a` on the cells `use` (tasks x tiers, or tasks); None without runs. Tasks weigh the same
    however often they were repeated."""
    cells = (use if use.ndim == 2 else use[:, None]) & (g.count[a] > 0)
    tiers = cells.sum(1)
    there = tiers > 0
    if not there.any():
        return None
    means = np.where(cells, g.mean[a], 0.0).sum(1) / np.maximum(tiers, 1)
    noise = (
        np.where(cells, g.spread[a] / np.maximum(g.count[a], 1), 0.0).sum(1)
        / np.maximum(tiers, 1) ** 2
    )
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
    return AgentScore(value, residual, same, len(tracks), runs, np.where(there, g.track, -1))


def variance_between_tasks(residual: Floats, track_of: Ints) -> tuple[float, float, str | None]:
    """(variance for new tasks, df, warning) of a mean of tracks from its task residuals.

    A track with one task says nothing of its own spread and takes the pooled one of the others. The
    df are Satterthwaite's for tasks that spread alike in all tracks (Bell and McCaffrey's working
    model): unequal tracks leave fewer than tasks minus tracks.
    """
    tracks, size = np.unique(track_of[track_of >= 0], return_counts=True)
    k, several = len(tracks), size > 1
    free = size[several] - 1
    if not several.any():
        return math.nan, 0, ONE_TASK_PER_TRACK
    lonely = int((~several).sum())
    squares = (
        np.array([(residual[track_of == track] ** 2).sum() for track in tracks[several]])
        * (k * size[several]) ** 2
    )
    # Each track's variance s2 = squares / free enters with 1 / (size k^2), and its share of the
    # pooled one for lonely tracks.
    weight = (1 / size[several] + lonely * free / free.sum()) / k**2
    variance = float((weight * squares / free).sum())
    df = float(weight.sum() ** 2 / (weight**2 / free).sum())
    few = (
        f"{lonely} track{'s have' if lonely > 1 else ' has'} one task: the spread of tasks there is"
        " borrowed from the others"
    )
    return variance, df, few if lonely else None


def balance_notes(g: CellMeans) -> tuple[str, ...]:
    """A note where cells have unlike numbers of runs: what then weighs how."""
    counts = g.count[g.count > 0]
    if not len(counts) or (counts.min() == counts.max() and len(counts) == g.count.size):
        return ()
    missing = int(g.count.size - len(counts))
    gaps = f", and {missing} cell{'s have' if missing > 1 else ' has'} none" if missing else ""
    low, high = int(counts.min()), int(counts.max())
    between = f"{low} to {high} runs" if low < high else f"{low} run{'s' if low > 1 else ''}"
    return (f"{between} a cell{gaps}: tasks weigh the same, however many runs they have",)


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


def agent_contrasts(g: CellMeans) -> list[Contrast]:
    """All pairs of agents with at least one common cell."""
    out = []
    for a in range(len(g.agents)):
        for b in range(a + 1, len(g.agents)):
            common = (g.count[a] > 0) & (g.count[b] > 0)
            first, second = agent_score(g, a, common), agent_score(g, b, common)
            if first is None or second is None:
                continue
            variance, df, warning = variance_between_tasks(
                first.residual - second.residual, first.track_of
            )
            same = math.sqrt(first.variance_same + second.variance_same)
            n, tasks = first.n_runs + second.n_runs, int(common.any(1).sum())
            value, se = first.value - second.value, math.sqrt(variance) if df else math.nan
            out.append(Contrast(a, b, value, se, same, df, n, tasks, warning if df else None))
    return out


def contrast_estimates(
    pair: Contrast, g: CellMeans, outcome: str, notes: Sequence[str]
) -> list[tuple[Estimate, float | None]]:
    """A difference for new tasks and for the same ones, each with the smallest true one found with
    power .8 (MDE80)."""
    common: dict[str, Any] = {
        "n": pair.n,
        "n_clusters": pair.n_tasks,
        "limits": g.limits,
        "warnings": (*notes, *([pair.warning] if pair.warning else [])),
    }
    label = f"difference in mean {outcome}"
    new = t_estimate(
        label,
        "new",
        pair.value,
        pair.se,
        pair.df,
        method="paired by task within tracks, t",
        reason=None if pair.df else ONE_TASK_PER_TRACK,
        **common,
    )
    se = pair.se_same if g.repeats >= 1 else None
    same = t_estimate(
        label, "same", pair.value, se, g.repeats, method="repeats within cells, t", **common
    )
    return [
        (est, minimum_detectable_effect(est.se, est.df) if est.se and est.df else None)
        for est in (new, same)
    ]
