"""Leaderboards: agents' means with intervals for new tasks and for the same tasks, paired
differences, rank sets.

As published, an agent's Overall is the mean of a track, then the unweighted mean of tracks; within
a track tasks weigh the same, so that a task that was repeated more often does not count for more
(equal to the mean over runs where repeats are equal). For new tasks the spread is between tasks
within tracks (t); for the same tasks, between repeats within cells. Rank sets come from all paired
differences at once (Mogstad, Romano, Shaikh and Wilhelm, with Holm's procedure).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ...judge.card.read_share import ENOUGH
from ...judge.card.scoring import VALID_SHARE
from ...tracks import TRACKS
from .agent_scores import (
    METHOD,
    ONE_TASK_PER_TRACK,
    CellMeans,
    Contrast,
    agent_contrasts,
    agent_score,
    balance_notes,
    cell_means,
    contrast_estimates,
    variance_between_tasks,
)
from .benchmark_ratings import SHARES
from .interval_estimates import (
    Bools,
    Estimate,
    Floats,
    Ints,
    KeyedEstimates,
    adjust_p_values,
    t_estimate,
    tidy,
    two_sided_p,
)
from .run_arrays import (
    READ_SCORES,
    build_arrays,
    excluded_for_reading,
    insufficiently_read,
    select_runs,
    task_key,
)

LEADERBOARD_KEYS: dict[str, Any] = {
    "scope": pl.String,
    "name": pl.String,
    "rank": pl.Int64,
    "agent": pl.String,
    "runs": pl.Int64,
    "tasks": pl.Int64,
    "value_missing_zero": pl.Float64,
    "value_missing_best": pl.Float64,
    "rank_lo": pl.Int64,
    "rank_hi": pl.Int64,
    "p_first": pl.Float64,
    "unread": pl.Int64,
    "range_lo": pl.Float64,
    "range_hi": pl.Float64,
}
SIDE_COLUMNS = (
    "agentic",
    "task_score",
    "S1",
    "S2",
    "S3",
    "S4",
    "S5",
    "turns",
    "wall_time_s",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "failed",
    "presumed",
    "read_share",
    *SHARES,
)
SEED = 20260601
UNSETTLED = "no rank: what nobody read decides between agents whose ranges meet"


def _rows(
    g: CellMeans, tasks: Bools, label: str, notes: tuple[str, ...], limits: tuple[float, float]
) -> list[tuple[int, Estimate, Estimate]]:
    out = []
    there = np.asarray((g.count > 0).any(axis=2))
    most = max((len(np.unique(g.track[tasks & there[a]])) for a in range(len(g.agents))), default=0)
    for a in range(len(g.agents)):
        score = agent_score(g, a, tasks)
        if score is None:
            continue
        variance, df, warning = variance_between_tasks(score.residual, score.track_of)
        warnings = [*notes, *([warning] if warning and df else [])]
        if score.n_tracks < most:
            warnings.append(
                f"{score.n_tracks} of {most} tracks only: not comparable with agents on all tracks"
            )
        common: dict[str, Any] = {
            "n": score.n_runs,
            "n_clusters": int((score.track_of >= 0).sum()),
            "warnings": warnings,
            "test": False,
            "limits": limits,
        }
        new = t_estimate(
            label,
            "new",
            score.value,
            math.sqrt(variance) if df else None,
            df,
            method=f"{METHOD}; tasks within tracks, t",
            reason=None if df else ONE_TASK_PER_TRACK,
            **common,
        )
        same = t_estimate(
            label,
            "same",
            score.value,
            math.sqrt(score.variance_same) if g.repeats >= 1 else None,
            g.repeats,
            method=f"{METHOD}; repeats within cells, t",
            reason=None if g.repeats >= 1 else "no repeats",
            **common,
        )
        out.append((a, new, same))
    return sorted(out, key=lambda row: -(row[1].value if row[1].value is not None else -math.inf))


def leaderboard(
    table: pl.DataFrame,
    outcome: str = "overall",
    *,
    scopes: tuple[str, ...] = ("overall", "track", "task"),
    prepare: bool = True,
) -> pl.DataFrame:
    """Agents ranked overall, by track and by task; two rows an agent (new tasks, same tasks) with
    both intervals.

    Beside the value stand the means of stages and resources (averaged the same way), its bounds
    when runs without a score count as 0 (`value_missing_zero`) and as the scale's top
    (`value_missing_best`), and overall the rank set (`rank_lo`..`rank_hi`, joint 95 %) and the
    share of task resamplings in which the agent comes first. Disqualified runs count with their 0.
    `range_lo`..`range_hi`: means of the bounds over all runs of the agent; where they meet
    another's and one of the two was read less than `read_share.ENOUGH`, neither has a rank. An
    agent without points (`design.pointless`), of which `unread` runs were not read enough, has a
    row with its range and without rank.
    """
    d = build_arrays(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    full = select_runs(table)[0] if prepare else table
    g = cell_means(d)
    filled = {
        column: cell_means(
            build_arrays(
                full.with_columns(pl.col(outcome).fill_nan(None).fill_null(end)),
                outcome,
                keep_breach=True,
                prepare=False,
                need_codes=False,
            )
        )
        for column, end in zip(
            ("value_missing_zero", "value_missing_best"), (0.0, d.limits[1]), strict=True
        )
        if math.isfinite(end)
    }
    keys = {**LEADERBOARD_KEYS, **dict.fromkeys(SIDE_COLUMNS, pl.Float64)}
    rows: KeyedEstimates = []
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
        ranked = _rows(g, tasks, f"mean {outcome}", (*d.notes, *balance_notes(g)), d.limits)
        extra = _rank_columns(g) if scope == "overall" else {}
        alike = not any("not comparable" in note for _, new, _ in ranked for note in new.warnings)
        unsettled = (
            _unsettled({g.agents[a]: sides[scope, name, g.agents[a]] for a, _, _ in ranked})
            if alike
            else set()
        )
        for rank, (a, new, same) in enumerate(ranked, 1):
            agent = g.agents[a]
            if agent in unsettled:
                new = replace(new, warnings=(*new.warnings, UNSETTLED))
            bounds = {}
            for column, whole in filled.items():
                inside = np.isin(whole.tasks, np.array(g.tasks)[tasks]) | (scope == "overall")
                score = agent_score(whole, whole.agents.index(agent), inside)
                bounds[column] = score.value if score else None
            key = {
                "scope": scope,
                "name": name,
                "rank": rank if alike and agent not in unsettled else None,
                "agent": agent,
                "runs": new.n,
                "tasks": new.n_clusters,
                **bounds,
                **({} if agent in unsettled else extra.get(agent, {})),
                **sides.get((scope, name, agent), {}),
            }
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
            rows += [
                (key, Estimate(f"mean {outcome}", kind, None, n=0, reason=reason))
                for kind in ("new", "same")
            ]
    return tidy(rows, keys)


def _unsettled(board: Mapping[str, Mapping[str, float | None]]) -> set[str]:
    """Agents whose place the unread criteria decide: of two whose ranges meet, where one of them
    was read too little."""
    ends = sorted(
        (
            low,
            side["range_hi"] or low,
            (side["read_share"] if side["read_share"] is not None else 1.0) < ENOUGH,
            agent,
        )
        for agent, side in board.items()
        if (low := side.get("range_lo")) is not None
    )
    found: set[str] = set()
    for here, one in enumerate(ends):
        for other in ends[here + 1 :]:
            if other[0] > one[1]:
                break
            if one[2] or other[2]:
                found |= {one[3], other[3]}
    return found


def _without_points(
    table: pl.DataFrame, outcome: str
) -> dict[tuple[str, str, str], tuple[int, int]]:
    """(scope, name, agent) -> (runs, runs of which too little was read) of agents that have no
    point on this board for that."""
    if outcome not in READ_SCORES:
        return {}
    found = {}
    data = table.with_columns(
        insufficiently_read().alias("_unread"),
        task_key().alias("_task"),
        excluded_for_reading().alias("_none"),
    )
    for scope, by in (
        ("overall", pl.lit("overall")),
        ("track", pl.col("track")),
        ("task", pl.col("_task")),
    ):
        groups = data.group_by(by.alias("name"), "agent", maintain_order=True)
        for row in groups.agg(pl.len(), pl.col("_unread").sum(), pl.col("_none").all()).iter_rows():
            if row[4]:
                found[scope, row[0], row[1]] = row[2], row[3]
    return found


def failed() -> pl.Expr:
    """Failure by track rule: no scoreable submission, or a task score below what the track asks
    for.

    A submission of answers can be scored from a share of valid ones on, which S5 tells, else the
    completion.
    """
    out = pl.col("disqualified").fill_null(False)
    base = ~pl.col("completed") | out
    for track in TRACKS:
        if track.output == "answers":
            short = (
                pl.coalesce(
                    pl.col("S5") < 1, pl.col("completion") < VALID_SHARE, ~pl.col("completed")
                )
                | out
            )
            base = pl.when(pl.col("track") == track.name).then(short).otherwise(base)
        if track.fails_below is not None:
            short = base | (pl.col("task_score") < track.fails_below)
            base = pl.when(pl.col("track") == track.name).then(short).otherwise(base)
    return base


def _sides(
    table: pl.DataFrame, outcome: str
) -> dict[tuple[str, str, str], dict[str, float | None]]:
    """Means of SIDE_COLUMNS and of the outcome's bounds by scope and agent, averaged as the scores
    are."""
    data = table.with_columns(
        failed().cast(pl.Float64).alias("failed"), task_key().alias("_task"), **SHARES
    )
    bounded = (
        pl.col("task_score").is_not_null() if outcome == "overall" else pl.lit(outcome == "agentic")
    )
    data = data.with_columns(
        pl.when(bounded)
        .then(pl.col(f"{outcome}_{end}") if f"{outcome}_{end}" in data.columns else None)
        .cast(pl.Float64)
        .alias(f"range_{end}")
        for end in ("lo", "hi")
    )
    columns = (*SIDE_COLUMNS, "range_lo", "range_hi")
    means = [pl.col(name).cast(pl.Float64).mean() for name in columns]
    # In order: a mean of means in any order is another one in its last digit.
    by_tier = data.group_by("agent", "track", "_task", "tier", maintain_order=True).agg(means)
    by_task = by_tier.group_by("agent", "track", "_task", maintain_order=True).agg(means)
    by_track = by_task.group_by("agent", "track", maintain_order=True).agg(means)
    parts = {
        "track": by_track.rename({"track": "name"}),
        "overall": (
            by_track.group_by("agent")
            .agg(pl.col(name).mean() for name in columns)
            .with_columns(name=pl.lit("overall"))
        ),
        "task": by_task.rename({"_task": "name"}),
    }
    return {
        (scope, row["name"], row["agent"]): {name: row[name] for name in columns}
        for scope, part in parts.items()
        for row in part.iter_rows(named=True)
    }


def pairwise(
    table: pl.DataFrame, outcome: str = "overall", *, prepare: bool = True
) -> pl.DataFrame:
    """Differences between agents, paired by task (two rows a pair), Holm over pairs, and the
    difference found with power .8."""
    d = build_arrays(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    g = cell_means(d)
    keys: dict[str, Any] = {
        "agent": pl.String,
        "other": pl.String,
        "p_holm": pl.Float64,
        "mde80": pl.Float64,
    }
    blocks: list[KeyedEstimates] = [[], []]
    for pair in agent_contrasts(g):
        for block, (est, mde) in zip(
            blocks, contrast_estimates(pair, g, outcome, (*d.notes, *balance_notes(g))), strict=True
        ):
            block.append(
                ({"agent": g.agents[pair.a], "other": g.agents[pair.b], "mde80": mde}, est)
            )
    for block in blocks:
        for (key, _), p in zip(
            block, adjust_p_values([est.p for _, est in block], "holm"), strict=True
        ):
            key["p_holm"] = p
    return tidy(blocks[0] + blocks[1], keys)


def rank_sets(
    table: pl.DataFrame,
    outcome: str = "overall",
    *,
    level: float = 0.95,
    seed: int = SEED,
    prepare: bool = True,
) -> pl.DataFrame:
    """For each agent the ranks that new tasks leave possible (jointly for all agents), and how
    often it is first.

    An agent's rank is bounded by those whose paired difference from it Holm's procedure over all
    pairs finds: with probability `level` no such finding is false, so all sets hold at once,
    whatever the design. `p_first` describes resamplings of tasks within tracks; it is no
    confidence. Undefined where a pair of agents cannot be compared for new tasks.
    """
    d = build_arrays(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    g = cell_means(d)
    rows = _rank_columns(g, level, seed)
    schema: dict[str, Any] = {
        "agent": pl.String,
        "rank_lo": pl.Int64,
        "rank_hi": pl.Int64,
        "p_first": pl.Float64,
        "n_agents": pl.Int64,
        "reason": pl.String,
    }
    reason = "one agent, or no two tasks in a track"
    data = [
        {
            "agent": agent,
            "n_agents": len(g.agents),
            **row,
            "reason": None if row["rank_lo"] else reason,
        }
        for agent, row in rows.items()
    ]
    return pl.DataFrame(data, schema=schema).sort("rank_lo", "rank_hi", nulls_last=True)


def _rank_columns(g: CellMeans, level: float = 0.95, seed: int = SEED) -> dict[str, dict[str, Any]]:
    n = len(g.agents)
    pairs = agent_contrasts(g)
    first = _first_shares(g, 1000, seed)
    if n < 2 or len(pairs) < n * (n - 1) // 2 or any(pair.df < 1 for pair in pairs):
        return {
            agent: {"rank_lo": None, "rank_hi": None, "p_first": first.get(agent)}
            for agent in g.agents
        }
    sets = possible_ranks(pairs, n, level)
    return {
        agent: {"rank_lo": lo, "rank_hi": hi, "p_first": first.get(agent)}
        for agent, (lo, hi) in zip(g.agents, sets, strict=True)
    }


def possible_ranks(pairs: Sequence[Contrast], n: int, level: float = 0.95) -> list[tuple[int, int]]:
    """First and last rank of each of n agents that Holm's procedure over all their differences
    leaves possible."""
    lo, hi = [1] * n, [n] * n
    tests = [two_sided_p(pair.value / pair.se, pair.df) if pair.se > 0 else None for pair in pairs]
    for pair, p in zip(pairs, adjust_p_values(tests, "holm"), strict=True):
        if p is not None and p < 1 - level:
            up, down = (pair.a, pair.b) if pair.value > 0 else (pair.b, pair.a)
            lo[down] += 1
            hi[up] -= 1
    return list(zip(lo, hi, strict=True))


def _first_shares(g: CellMeans, draws: int, seed: int) -> dict[str, float]:
    """How often each agent has the highest score when tasks are resampled within tracks; empty
    unless all share all cells."""
    if len(g.agents) < 2 or (g.count == 0).any() or max(np.bincount(g.track), default=0) < 2:
        return {}
    rng = np.random.default_rng(seed)
    scores = _reweighed(
        g.mean.mean(2), g.track, lambda n: rng.multinomial(n, np.full(n, 1 / n), size=draws) / n
    )
    shares = np.bincount(scores.argmax(1), minlength=len(g.agents)) / draws
    return dict(zip(g.agents, shares.tolist(), strict=True))


def _reweighed(means: Floats, track: Ints, weights: Callable[[int], Floats]) -> Floats:
    """Scores (draws x agents) when the n tasks of each track weigh as `weights(n)` (draws x n)
    says; means are agents x tasks."""
    tracks = np.unique(track)
    inside = [np.flatnonzero(track == one) for one in tracks]
    return np.asarray(
        sum(weights(len(tasks)) @ means[:, tasks].T for tasks in inside) / len(tracks)
    )


SUBSETS = (0.75, 0.5, 0.25)


def rank_stability(
    table: pl.DataFrame,
    outcome: str = "overall",
    *,
    draws: int = 2000,
    seed: int = SEED,
    prepare: bool = True,
) -> pl.DataFrame:
    """How far the order of all tasks is that of some: without any one task, and on random subsets
    of the tasks of each track.

    `same_first`, `same_order`: share of subsets with the first agent, and all, in their places;
    `kendall_tau`: mean rank correlation with the whole order. Only cells that all agents have
    count. It describes these tasks: subsets of them differ less from the whole than new ones would
    (`order`).
    """
    d = build_arrays(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    g = cell_means(d)
    common = np.asarray((g.count > 0).all(0)) if g.agents else np.zeros((0, 0), dtype=bool)
    kept = common.any(1)
    n, t = len(g.agents), int(kept.sum())
    schema: dict[str, Any] = {
        "subset": pl.String,
        "tasks": pl.Int64,
        "same_first": pl.Float64,
        "same_order": pl.Float64,
        "kendall_tau": pl.Float64,
        "reason": pl.String,
    }
    if n < 2 or t < 4:
        return pl.DataFrame(
            [{"subset": "all", "tasks": t, "reason": "needs two agents and four common tasks"}],
            schema=schema,
        )
    means = (np.where(common, g.mean, 0.0).sum(2) / np.maximum(common.sum(1), 1))[:, kept]
    track = g.track[kept]
    whole = _reweighed(means, track, lambda size: np.full((1, size), 1 / size))[0]
    rng = np.random.default_rng(seed)
    left = [np.delete(np.arange(t), k) for k in range(t)]
    found = {
        "one left out": (
            t - 1,
            np.vstack(
                [
                    _reweighed(
                        means[:, keep], track[keep], lambda size: np.full((1, size), 1 / size)
                    )
                    for keep in left
                ]
            ),
        )
    }
    for share in SUBSETS:

        def subset(size: int, share: float = share) -> Floats:
            some = max(1, round(share * size))
            return np.asarray((rng.random((draws, size)).argsort(1).argsort(1) < some) / some)

        tasks = sum(max(1, round(share * size)) for size in np.unique_counts(track).counts.tolist())
        found[f"{100 * share:g} % of each track"] = tasks, _reweighed(means, track, subset)
    rows = [
        {"subset": name, "tasks": tasks, **_like_whole(scores, whole)}
        for name, (tasks, scores) in found.items()
    ]
    return pl.DataFrame(rows, schema=schema)


def _like_whole(scores: Floats, whole: Floats) -> dict[str, float]:
    """Shares of draws (draws x agents) with the first, and the order, of the whole; and the mean
    Kendall's tau."""
    order = np.argsort(-scores, axis=1)
    a, b = np.triu_indices(len(whole), 1)
    alike = np.sign(scores[:, a] - scores[:, b]) * np.sign(whole[a] - whole[b])
    truth = np.argsort(-whole)
    return {
        "same_first": float((order[:, 0] == truth[0]).mean()),
        "same_order": float((order == truth).all(1).mean()),
        "kendall_tau": float(alike.mean()),
    }
