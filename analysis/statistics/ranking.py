"""Leaderboards: agents' means with intervals, paired differences, rank sets and rank stability.

As published, an agent's Overall is the mean of each track, then the unweighted mean of the tracks;
within a track all tasks have equal weights, so that a task that was repeated more often does not
count for more (equal to the mean over runs if repeats are equal). `agent_scores` computes scores
and errors. Rank sets come from all paired differences at once (Mogstad, Romano, Shaikh and Wilhelm
2024, with Holm's procedure).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ...judge.card.read_share import ENOUGH
from ...judge.scoring.formulas import VALID_SHARE
from ...tracks import TRACKS
from ..tables.grouping import BOARDS, UNKNOWN
from .agent_scores import (
    METHOD,
    AgentScore,
    CellMeans,
    Contrast,
    agent_contrasts,
    agent_score,
    balance_notes,
    cell_means,
    contrast_estimates,
    new_tasks_error,
)
from .benchmark_ratings import SHARES
from .interval_estimates import (
    LEVEL,
    Bools,
    Estimate,
    Floats,
    Ints,
    KeyedEstimates,
    Population,
    adjust_p_values,
    t_estimate,
    tidy,
    two_sided_p,
)
from .run_arrays import (
    READ_SCORES,
    RunArrays,
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
    "cells": pl.Int64,
    "of_cells": pl.Int64,
    "value_common": pl.Float64,
    "value_missing_zero": pl.Float64,
    "value_missing_best": pl.Float64,
    "rank_lo": pl.Int64,
    "rank_hi": pl.Int64,
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
"""Columns whose means are shown beside the score."""
SEED = 20260601
UNSETTLED = "no rank: the ranges of agents overlap, and unjudged criteria decide their order"
POPULATIONS: tuple[Population, ...] = ("new", "same")

BoardKey = tuple[str, str, str]
"""Scope (overall, track, task), name of the board, agent."""


def leaderboard(
    table: pl.DataFrame,
    outcome: str = "overall",
    *,
    scopes: tuple[str, ...] = ("overall", "track", "task"),
    prepare: bool = True,
) -> pl.DataFrame:
    """Agents ranked overall, by track and by task; one row each for new tasks and same tasks.

    Further columns are SIDE_COLUMNS, averaged like the score, and the score if runs without one
    count as 0 (`value_missing_zero`) or as the top of the scale (`value_missing_best`). The overall
    board also has the rank set (`rank_lo`..`rank_hi`, joint 95 %). Disqualified runs count with
    their 0.

    `cells` of `of_cells`: the tasks and tiers on which the agent has a score, of those on which any
    agent has one. An agent that lacks some may have missed the hard ones: it has no rank and stands
    below those that have them all. `value_common` is the mean over those that all agents have, and
    the two bounds count cells without a run as well.

    `range_lo`..`range_hi`: means of the bounds over all runs of the agent. If the ranges of two
    agents overlap and one of them was read less than `read_share.ENOUGH`, neither has a rank. An
    agent without a point score (`excluded_for_reading`) has a row with its range and without a
    rank; `unread` is the number of its runs with too few judged criteria.
    """
    runs = build_arrays(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    all_runs = select_runs(table)[0] if prepare else table
    context = _LeaderboardContext(
        cells=cell_means(runs),
        runs=runs,
        filled=_cells_with_missing_filled(all_runs, outcome, runs.limits[1]),
        side_means=side_means(all_runs, outcome),
        without_score=_agents_without_score(all_runs, outcome),
    )
    rows: KeyedEstimates = []
    for scope, name, tasks in _boards(context, scopes):
        rows += _board_rows(context, scope, name, tasks)
        rows += _rows_without_score(context, scope, name)
    return tidy(rows, {**LEADERBOARD_KEYS, **dict.fromkeys(SIDE_COLUMNS, pl.Float64)})


def boards_by(runs: pl.DataFrame, outcome: str, boards: Sequence[str]) -> pl.DataFrame:
    """`leaderboard` for kinds of boards (`grouping.BOARDS`), each named by its values."""
    scopes = tuple(name for name in boards if name in ("overall", "track", "task"))
    tables = [leaderboard(runs, outcome, scopes=scopes)] if scopes else []
    for kind in boards:
        if kind in scopes:
            continue
        columns = BOARDS[kind]
        names = [pl.col(column).fill_null(UNKNOWN) for column in columns]
        named = runs.with_columns(_board=pl.concat_str(names, separator=" · "))
        for name in named["_board"].unique().sort():
            part = named.filter(pl.col("_board") == name).drop("_board")
            board = leaderboard(part, outcome, scopes=("overall",))
            tables.append(board.with_columns(scope=pl.lit(kind), name=pl.lit(name)))
    return pl.concat(tables, how="vertical_relaxed")


@dataclass(frozen=True)
class _LeaderboardContext:
    """The data that the rows of all boards are computed from."""

    cells: CellMeans
    runs: RunArrays
    filled: Mapping[str, CellMeans]
    """Column -> the cells if runs without a score count as 0, or as the top of the scale."""
    side_means: Mapping[BoardKey, dict[str, float | None]]
    without_score: Mapping[BoardKey, tuple[int, int]]
    """Runs, and runs with too few judged criteria, of agents without a score on a board."""


def _cells_with_missing_filled(
    table: pl.DataFrame, outcome: str, highest: float
) -> dict[str, CellMeans]:
    """For each column of filled scores the cell means; none for a scale without a top."""
    fills = {"value_missing_zero": 0.0, "value_missing_best": highest}
    filled = {}
    for column, fill in fills.items():
        if not math.isfinite(fill):
            continue
        complete = table.with_columns(pl.col(outcome).fill_nan(None).fill_null(fill))
        runs = build_arrays(complete, outcome, keep_breach=True, prepare=False, need_codes=False)
        filled[column] = _with_cells_never_run(cell_means(runs), fill)
    return filled


def _with_cells_never_run(cells: CellMeans, fill: float) -> CellMeans:
    """The cells, where an agent has `fill` on the tasks and tiers that only others ran."""
    never_run = (cells.count == 0) & (cells.count > 0).any(axis=0)
    return replace(
        cells,
        count=np.where(never_run, 1.0, cells.count),
        total=np.where(never_run, fill, cells.total),
    )


def _boards(context: _LeaderboardContext, scopes: tuple[str, ...]) -> list[tuple[str, str, Bools]]:
    """(scope, name, mask of its tasks) of each leaderboard; those without scores come last."""
    cells = context.cells
    boards: list[tuple[str, str, Bools]] = []
    if "overall" in scopes:
        boards.append(("overall", "overall", np.ones(len(cells.tasks), dtype=bool)))
    if "track" in scopes:
        boards += [
            ("track", track, cells.track == k) for k, track in enumerate(context.runs.tracks)
        ]
    if "task" in scopes:
        indices = np.arange(len(cells.tasks))
        boards += [("task", task, indices == k) for k, task in enumerate(cells.tasks)]
    names = {(scope, name) for scope, name, _ in boards}
    no_tasks = np.zeros(len(cells.tasks), dtype=bool)
    for scope, name, _ in context.without_score:
        if scope in scopes and (scope, name) not in names:
            names.add((scope, name))
            boards.append((scope, name, no_tasks))
    return boards


def _board_rows(
    context: _LeaderboardContext, scope: str, name: str, tasks: Bools
) -> KeyedEstimates:
    """The rows of the agents that have a score on this board, best first."""
    cells = context.cells
    scores = ranked_scores(cells, tasks)
    n_tracks = count_tracks(cells, tasks)
    comparable = all(score.n_tracks == n_tracks for _, score in scores)
    unsettled: set[str] = set()
    if comparable:
        agents = [cells.agents[a] for a, _ in scores]
        unsettled = _unsettled({agent: context.side_means[scope, name, agent] for agent in agents})
    rank_columns = _rank_columns(cells) if scope == "overall" else {}
    coverage = cell_coverage(cells, [a for a, _ in scores], tasks)
    scores.sort(key=lambda pair: not coverage[pair[0]].is_complete)
    rows: KeyedEstimates = []
    for rank, (a, score) in enumerate(scores, 1):
        agent = cells.agents[a]
        has_rank = comparable and agent not in unsettled and coverage[a].is_complete
        new, same = score_estimates(context.runs, cells, score, n_tracks)
        if agent in unsettled:
            new = replace(new, warnings=(*new.warnings, UNSETTLED))
        new = coverage[a].with_warning(new)
        key: dict[str, Any] = {
            "scope": scope,
            "name": name,
            "rank": rank if has_rank else None,
            "agent": agent,
            "runs": new.n,
            "tasks": new.n_clusters,
            "cells": coverage[a].cells,
            "of_cells": coverage[a].of_cells,
            "value_common": coverage[a].value_common,
            **_values_with_missing_filled(context, scope, tasks, agent),
            **context.side_means.get((scope, name, agent), {}),
        }
        if agent not in unsettled:
            key |= rank_columns.get(agent, {})
        rows += [(key, new), (key, same)]
    return rows


@dataclass(frozen=True)
class CellCoverage:
    """How many of the tasks and tiers of a board an agent has a score on."""

    cells: int
    of_cells: int
    """Those on which any agent of the board has a score."""
    common: int
    """Those on which all have one."""
    value_common: float | None
    """The agent's mean over the latter; None if there are none."""

    @property
    def is_complete(self) -> bool:
        return self.cells == self.of_cells

    def with_warning(self, estimate: Estimate) -> Estimate:
        """A mean of the agent, with a warning if the agent lacks cells."""
        if self.is_complete:
            return estimate
        if self.value_common is None:
            consequence = "no such task and tier is common to all agents"
        else:
            consequence = f"see its mean over the {self.common} that all agents have"
        warning = (
            f"ran other tasks: it has a score on {self.cells} of {self.of_cells} tasks and tiers of"
            f" this board, so that it has no rank; {consequence}"
        )
        return replace(estimate, warnings=(*estimate.warnings, warning))


def cell_coverage(cells: CellMeans, agents: Sequence[int], tasks: Bools) -> dict[int, CellCoverage]:
    """For each of these agents the cells of these tasks that it has, and its common mean."""
    has_score = (cells.count > 0) & tasks[:, None]
    of_board = has_score[list(agents)]
    any_agent, common = np.asarray(of_board.any(axis=0)), np.asarray(of_board.all(axis=0))
    coverage = {}
    for a in agents:
        on_common = agent_score(cells, a, common)
        coverage[a] = CellCoverage(
            cells=int(has_score[a].sum()),
            of_cells=int(any_agent.sum()),
            common=int(common.sum()),
            value_common=on_common.value if on_common else None,
        )
    return coverage


def ranked_scores(cells: CellMeans, tasks: Bools) -> list[tuple[int, AgentScore]]:
    """(agent, score) of the agents with runs on these tasks, best first."""
    scores = []
    for a in range(len(cells.agents)):
        score = agent_score(cells, a, tasks)
        if score is not None:
            scores.append((a, score))
    return sorted(scores, key=lambda pair: -pair[1].value)


def count_tracks(cells: CellMeans, tasks: Bools) -> int:
    """The number of tracks of these tasks on which some agent has a score."""
    has_runs = (cells.count > 0).any(axis=(0, 2))
    return len(np.unique(cells.track[tasks & has_runs]))


def score_estimates(
    runs: RunArrays, cells: CellMeans, score: AgentScore, n_tracks: int
) -> tuple[Estimate, Estimate]:
    """The score for new tasks and for the same tasks.

    `n_tracks`: the tracks of all agents (`count_tracks`); an agent with fewer is warned of.
    """
    error = new_tasks_error(score.residual, score.track_of, score.variance_same, cells.repeat_df)
    warnings = [*runs.notes, *balance_notes(cells)]
    if error.warning:
        warnings.append(error.warning)
    if score.n_tracks < n_tracks:
        warnings.append(
            f"has scores on only {score.n_tracks} of the {n_tracks} tracks of this board: not"
            " comparable with agents on other tracks"
        )
    common: dict[str, Any] = {
        "n": score.n_runs,
        "n_clusters": int((score.track_of >= 0).sum()),
        "warnings": warnings,
        "test": False,
        "limits": runs.limits,
    }
    label = f"mean {runs.outcome}"
    new = t_estimate(
        label,
        "new",
        score.value,
        error.se,
        error.df,
        method=f"{METHOD}; tasks within tracks, t",
        reason=error.reason,
        **common,
    )
    has_repeats = cells.repeat_df >= 1
    same = t_estimate(
        label,
        "same",
        score.value,
        math.sqrt(score.variance_same) if has_repeats else None,
        cells.repeat_df,
        method=f"{METHOD}; repeats within cells, t",
        reason=None if has_repeats else "no repeats",
        **common,
    )
    return new, same


def _values_with_missing_filled(
    context: _LeaderboardContext, scope: str, tasks: Bools, agent: str
) -> dict[str, float | None]:
    """The agent's score on these tasks if missing scores are filled, by column."""
    board_tasks = np.array(context.cells.tasks)[tasks]
    values = {}
    for column, cells in context.filled.items():
        # The overall board includes tasks on which no run has a score.
        on_board = np.isin(cells.tasks, board_tasks) | (scope == "overall")
        score = agent_score(cells, cells.agents.index(agent), on_board)
        values[column] = score.value if score else None
    return values


def _rows_without_score(context: _LeaderboardContext, scope: str, name: str) -> KeyedEstimates:
    """The rows of agents that have a range but no point score on this board."""
    rows: KeyedEstimates = []
    for (board_scope, board_name, agent), (n_runs, n_unread) in context.without_score.items():
        if (board_scope, board_name) != (scope, name):
            continue
        key = {
            "scope": scope,
            "name": name,
            "agent": agent,
            "runs": n_runs,
            "unread": n_unread,
            **context.side_means[scope, name, agent],
        }
        reason = "too few criteria of the other runs were judged"
        if n_unread:
            reason = f"{n_unread} of {n_runs} runs have too few judged criteria for a point score"
        label = f"mean {context.runs.outcome}"
        rows += [
            (key, Estimate(label, population, None, n=0, reason=reason))
            for population in POPULATIONS
        ]
    return rows


def _unsettled(side_means: Mapping[str, Mapping[str, float | None]]) -> set[str]:
    """Agents whose rank depends on unjudged criteria.

    If the ranges of two agents overlap and one of the two was read too little, both are unsettled.
    `side_means` has `range_lo`, `range_hi` and `read_share` by agent.
    """
    ranges = []
    for agent, means in side_means.items():
        low = means.get("range_lo")
        if low is None:
            continue
        read_share = means["read_share"]
        read_too_little = read_share is not None and read_share < ENOUGH
        ranges.append((low, means["range_hi"] or low, read_too_little, agent))
    ranges.sort()
    unsettled: set[str] = set()
    for i, (_, high, read_too_little, agent) in enumerate(ranges):
        for other_low, _, other_read_too_little, other in ranges[i + 1 :]:
            if other_low > high:
                break
            if read_too_little or other_read_too_little:
                unsettled |= {agent, other}
    return unsettled


def _agents_without_score(table: pl.DataFrame, outcome: str) -> dict[BoardKey, tuple[int, int]]:
    """(runs, runs with too few judged criteria) of agents without a score because of the latter."""
    if outcome not in READ_SCORES:
        return {}
    data = table.with_columns(
        insufficiently_read().alias("_unread"),
        task_key().alias("_task"),
        excluded_for_reading().alias("_excluded"),
    )
    scopes = {"overall": pl.lit("overall"), "track": pl.col("track"), "task": pl.col("_task")}
    without_score = {}
    for scope, board_name in scopes.items():
        counts = data.group_by(board_name.alias("name"), "agent", maintain_order=True).agg(
            pl.len().alias("n_runs"),
            pl.col("_unread").sum().alias("n_unread"),
            pl.col("_excluded").all().alias("no_score"),
        )
        for row in counts.filter("no_score").iter_rows(named=True):
            key = scope, row["name"], row["agent"]
            without_score[key] = row["n_runs"], row["n_unread"]
    return without_score


def failed() -> pl.Expr:
    """Whether a run failed by the rule of its track.

    A run fails if it has no scoreable submission, if Task is below the limit of its track, or if it
    is disqualified. A submission of answers is scoreable if a share of VALID_SHARE is valid: S5 is
    then 1; without S5 the completion decides.
    """
    disqualified = pl.col("disqualified").fill_null(False)
    no_submission = ~pl.col("completed") | disqualified
    failure = no_submission
    for track in TRACKS:
        rule = no_submission
        if track.output == "answers":
            # The first of these conditions that is known decides.
            too_few_valid = pl.coalesce(
                pl.col("S5") < 1, pl.col("completion") < VALID_SHARE, ~pl.col("completed")
            )
            rule = too_few_valid | disqualified
        if track.fails_below is not None:
            rule = rule | (pl.col("task_score") < track.fails_below)
        failure = pl.when(pl.col("track") == track.name).then(rule).otherwise(failure)
    return failure


def side_means(table: pl.DataFrame, outcome: str) -> dict[BoardKey, dict[str, float | None]]:
    """Means of SIDE_COLUMNS and of the outcome's bounds by board, averaged as scores are."""
    data = table.with_columns(
        failed().cast(pl.Float64).alias("failed"), task_key().alias("_task"), **SHARES
    )
    if outcome == "overall":
        has_bounds = pl.col("task_score").is_not_null()
    else:
        has_bounds = pl.lit(outcome == "agentic")
    bounds = []
    for end in ("lo", "hi"):
        column = f"{outcome}_{end}"
        bound = pl.when(has_bounds).then(pl.col(column) if column in data.columns else None)
        bounds.append(bound.cast(pl.Float64).alias(f"range_{end}"))
    data = data.with_columns(bounds)
    columns = (*SIDE_COLUMNS, "range_lo", "range_hi")
    means = [pl.col(name).cast(pl.Float64).mean() for name in columns]
    # The order is kept because the last digit of a mean depends on the order of its numbers.
    by_tier = data.group_by("agent", "track", "_task", "tier", maintain_order=True).agg(means)
    by_task = by_tier.group_by("agent", "track", "_task", maintain_order=True).agg(means)
    by_track = by_task.group_by("agent", "track", maintain_order=True).agg(means)
    overall = by_track.group_by("agent").agg(pl.col(name).mean() for name in columns)
    by_scope = {
        "track": by_track.rename({"track": "name"}),
        "overall": overall.with_columns(name=pl.lit("overall")),
        "task": by_task.rename({"_task": "name"}),
    }
    means_by_board = {}
    for scope, board in by_scope.items():
        for row in board.iter_rows(named=True):
            means_by_board[scope, row["name"], row["agent"]] = {name: row[name] for name in columns}
    return means_by_board


def pairwise(
    table: pl.DataFrame, outcome: str = "overall", *, prepare: bool = True
) -> pl.DataFrame:
    """Differences between agents, paired by task: one row each for new tasks and same tasks.

    `p_holm` is adjusted over all pairs, `mde80` the difference that is detected with power .8.
    """
    runs = build_arrays(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    cells = cell_means(runs)
    notes = (*runs.notes, *balance_notes(cells))
    blocks: list[KeyedEstimates] = [[], []]
    for contrast in agent_contrasts(cells):
        estimates = contrast_estimates(contrast, cells, outcome, notes)
        for block, (est, mde80) in zip(blocks, estimates, strict=True):
            agent, other = cells.agents[contrast.a], cells.agents[contrast.b]
            block.append(({"agent": agent, "other": other, "mde80": mde80}, est))
    for block in blocks:
        adjusted = adjust_p_values([est.p for _, est in block], "holm")
        for (key, _), p in zip(block, adjusted, strict=True):
            key["p_holm"] = p
    keys: dict[str, Any] = {
        "agent": pl.String,
        "other": pl.String,
        "p_holm": pl.Float64,
        "mde80": pl.Float64,
    }
    return tidy(blocks[0] + blocks[1], keys)


def rank_sets(
    table: pl.DataFrame,
    outcome: str = "overall",
    *,
    level: float = LEVEL,
    prepare: bool = True,
) -> pl.DataFrame:
    """The ranks that are possible for each agent on new tasks, jointly for all agents.

    An agent's rank is bounded by the agents from which it differs significantly, by Holm's
    procedure over all pairs. With probability `level` none of these differences is a false
    positive, so that all sets hold at once, whatever the numbers of tasks and repeats. Rank sets
    are undefined if a pair of agents cannot be compared for new tasks.
    """
    runs = build_arrays(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    cells = cell_means(runs)
    schema: dict[str, Any] = {
        "agent": pl.String,
        "rank_lo": pl.Int64,
        "rank_hi": pl.Int64,
        "n_agents": pl.Int64,
        "reason": pl.String,
    }
    rows = []
    for agent, columns in _rank_columns(cells, level).items():
        reason = None if columns["rank_lo"] else "there is only one agent, or too few tasks"
        rows.append({"agent": agent, "n_agents": len(cells.agents), **columns, "reason": reason})
    return pl.DataFrame(rows, schema=schema).sort("rank_lo", "rank_hi", nulls_last=True)


def _rank_columns(cells: CellMeans, level: float = LEVEL) -> dict[str, dict[str, Any]]:
    """`rank_lo` and `rank_hi` by agent; None if a pair cannot be compared."""
    n_agents = len(cells.agents)
    contrasts = agent_contrasts(cells)
    sets: Sequence[tuple[int | None, int | None]] = [(None, None)] * n_agents
    all_pairs = len(contrasts) == n_agents * (n_agents - 1) // 2
    if n_agents >= 2 and all_pairs and all(contrast.new.se is not None for contrast in contrasts):
        sets = possible_ranks(contrasts, n_agents, level)
    return {
        agent: {"rank_lo": lo, "rank_hi": hi}
        for agent, (lo, hi) in zip(cells.agents, sets, strict=True)
    }


def possible_ranks(
    contrasts: Sequence[Contrast], n_agents: int, level: float = LEVEL
) -> list[tuple[int, int]]:
    """First and last possible rank of each agent, by Holm's procedure over all contrasts.

    first = 1 + agents that are significantly better, last = n_agents - agents significantly worse.
    """
    first, last = [1] * n_agents, [n_agents] * n_agents
    p_values = [
        two_sided_p(contrast.value / contrast.new.se, contrast.new.df) if contrast.new.se else None
        for contrast in contrasts
    ]
    for contrast, p in zip(contrasts, adjust_p_values(p_values, "holm"), strict=True):
        if p is None or p >= 1 - level:
            continue
        better, worse = contrast.a, contrast.b
        if contrast.value <= 0:
            better, worse = worse, better
        first[worse] += 1
        last[better] -= 1
    return list(zip(first, last, strict=True))


def _reweighted_scores(means: Floats, track: Ints, weights: Callable[[int], Floats]) -> Floats:
    """Scores (draws x agents) from task means (agents x tasks) under random task weights.

    `weights(n)` (draws x n) gives the weights of the n tasks of a track; tracks weigh the same.
    """
    tracks = np.unique(track)
    total: Any = 0
    for k in tracks:
        tasks = np.flatnonzero(track == k)
        total = total + weights(len(tasks)) @ means[:, tasks].T
    return np.asarray(total / len(tracks))


def _equal_weights(n_tasks: int) -> Floats:
    """One draw of equal weights (1 x n_tasks)."""
    return np.full((1, n_tasks), 1 / n_tasks)


SUBSETS = (0.75, 0.5, 0.25)
"""Shares of the tasks of each track in the random subsets of `rank_stability`."""


def rank_stability(
    table: pl.DataFrame,
    outcome: str = "overall",
    *,
    draws: int = 2000,
    seed: int = SEED,
    prepare: bool = True,
) -> pl.DataFrame:
    """How well fewer tasks reproduce the order of agents: without one task, and on random subsets.

    `same_order`: share of subsets with the same order; `kendall_tau`: mean rank correlation with
    the order of all tasks. Subsets are drawn within tracks, and only cells that all agents have
    count. The result describes these tasks only: subsets of them differ less from the full set than
    new tasks would (table `order`).
    """
    runs = build_arrays(table, outcome, keep_breach=True, prepare=prepare, need_codes=False)
    cells = cell_means(runs)
    common = np.asarray((cells.count > 0).all(0))
    has_task = common.any(1)
    n_tasks = int(has_task.sum())
    schema: dict[str, Any] = {
        "subset": pl.String,
        "tasks": pl.Int64,
        "same_order": pl.Float64,
        "kendall_tau": pl.Float64,
        "reason": pl.String,
    }
    if len(cells.agents) < 2 or n_tasks < 4:
        reason = "needs two agents and four common tasks"
        return pl.DataFrame([{"subset": "all", "tasks": n_tasks, "reason": reason}], schema=schema)
    means = np.where(common, cells.mean, 0.0).sum(2) / np.maximum(common.sum(1), 1)
    means, track = means[:, has_task], cells.track[has_task]
    full = _reweighted_scores(means, track, _equal_weights)[0]
    subsets = {"one left out": (n_tasks - 1, _leave_one_out_scores(means, track))}
    rng = np.random.default_rng(seed)
    for share in SUBSETS:
        n_subset = sum(_subset_size(share, n) for n in np.unique_counts(track).counts.tolist())
        scores = _random_subset_scores(means, track, share, draws, rng)
        subsets[f"{100 * share:g} % of each track"] = n_subset, scores
    rows = [
        {"subset": name, "tasks": n_subset, **_order_agreement(scores, full)}
        for name, (n_subset, scores) in subsets.items()
    ]
    return pl.DataFrame(rows, schema=schema)


def _leave_one_out_scores(means: Floats, track: Ints) -> Floats:
    """Scores (tasks x agents) without each task in turn."""
    n_tasks = means.shape[1]
    scores = []
    for k in range(n_tasks):
        remaining = np.delete(np.arange(n_tasks), k)
        scores.append(_reweighted_scores(means[:, remaining], track[remaining], _equal_weights))
    return np.vstack(scores)


def _subset_size(share: float, n_tasks: int) -> int:
    return max(1, round(share * n_tasks))


def _random_subset_scores(
    means: Floats, track: Ints, share: float, draws: int, rng: np.random.Generator
) -> Floats:
    """Scores (draws x agents) on random subsets of the tasks of each track."""

    def subset_weights(n_tasks: int) -> Floats:
        size = _subset_size(share, n_tasks)
        random_rank = rng.random((draws, n_tasks)).argsort(1).argsort(1)
        return np.asarray((random_rank < size) / size)

    return _reweighted_scores(means, track, subset_weights)


def _order_agreement(scores: Floats, full: Floats) -> dict[str, float]:
    """How well the orders of `scores` (draws x agents) agree with that of `full` (agents)."""
    order, full_order = np.argsort(-scores, axis=1), np.argsort(-full)
    a, b = np.triu_indices(len(full), 1)
    concordance = np.sign(scores[:, a] - scores[:, b]) * np.sign(full[a] - full[b])
    return {
        "same_order": float((order == full_order).all(1).mean()),
        "kendall_tau": float(concordance.mean()),
    }
