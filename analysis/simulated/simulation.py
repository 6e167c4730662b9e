"""A cohort with known true effects: runs whose codes, stages and Task follow known equations.

The exogenous draws are separate from the equations, so that the true effect of a code is found by
setting it with everything else unchanged (`sample_truth`). Presets: `paper` (bounded scores, gates,
discrete stages; levels calibrated to the published pattern), `null` (E3 without any effect),
`judge` (wrong tags and scores) and `halo` (wrong tags that follow a low Task). Levels that no
publication gives are assumptions; see docs/statistics.md.

Shapes: n runs; codes in the order E1..E5.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from ...errors import ConfigError
from ...judge.card.fields import SIMULATED
from ...tracks import BUILT_IN
from ..statistics.interval_estimates import Bools, Floats, Ints
from ..tables.codes_read import CODES
from ..tables.frames import WEIGHTS, conform
from .switches import checked_switches

CAUSAL_ORDER = (0, 1, 3, 2, 4)
"""The order in which codes arise: E1, E2, E4, E3, E5."""
TURN_SHARES = (0.15, 0.2, 0.25, 0.3, 0.1)
"""The share of a run's turns in each stage (assumed)."""
LEVELS = np.array([0.0, 0.2, 0.5, 1.0])
"""The values of S3."""
S3_THRESHOLDS = (-1.5, -0.7, 0.65)
"""Of S3's latent variable, between LEVELS."""
TRACK_NAMES = BUILT_IN


@dataclass(frozen=True)
class Settings:
    """Everything that determines a simulated cohort; its fields are the switches of `simulate`.

    Vectors over codes are in the order E1..E5.
    """

    n_agents: int = 6
    n_tasks: int = 24
    n_tracks: int = 5
    tiers: tuple[str, ...] = ("lite", "standard")
    n_rep: int = 12
    ability: tuple[float, ...] = (0.74, 0.34, 0.29, 0.04, -0.20, -0.20)
    """By agent; further agents continue downwards in steps of 0.1."""
    task_sd: float = 0.45
    """Standard deviation of the difficulty of tasks."""
    cell_sd: float = 0.40
    """Standard deviation of the agent x task x tier interaction."""
    tier_shift: float = 0.25
    """How much harder a tier other than lite is."""
    alpha: tuple[float, ...] = (-5.12, -2.92, -1.19, -2.48, -1.51)
    """Intercepts of the codes' logits."""
    alpha_tier: tuple[float, ...] = (0.0, 0.2, 0.1, 0.2, 0.2)
    """What a tier other than lite adds to them."""
    lam: tuple[float, ...] = (0.3, 0.6, 0.8, 0.9, 0.9)
    """How much `eta` lowers them."""
    conf: float = 0.0
    """Run-level confounding: the weight of the run's own luck in the codes' logits (0: none, .5:
    strong)."""
    slope_sd: float = 0.4
    """Standard deviation of the log of the task-specific multiplier of effects; 0: the same effect
    for all tasks."""
    s1: float = 0.65
    """Intercept of the logit of S1's items."""
    s2: float = 2.10
    """Intercept of the logit of S2's items."""
    s3_code: float = 3.4
    task_code: float = 2.9
    completed_code: float = 0.8
    """Effects of E3 on S3's latent variable, on Task's logit, on completion's logit; all 0: a code
    without effect."""
    task_level: float = 1.55
    """Intercept of Task's logit."""
    sens: tuple[float, ...] = (0.70, 0.80, 0.75, 0.80, 0.92)
    spec: tuple[float, ...] = (0.997, 0.98, 0.94, 0.97, 0.97)
    tag_error: bool = False
    """Tags by a judge with `sens` and `spec`; otherwise tags are the true codes."""
    halo: float = 0.0
    """Added to the logit of a false tag when Task < .3."""
    circ_thr: float = 0.0
    """> 0: every run with valid format and Task below it is tagged E3 by a rule that reads the
    score."""
    score_error: bool = False
    """Judged S1-S3 differ from the true ones: items flip with probability .10/.08, S3 moves up
    (.25) or down (.07)."""


PRESETS: dict[str, Settings] = {
    "paper": Settings(),
    "null": Settings(s3_code=0.0, task_code=0.0, completed_code=0.0),
    "judge": Settings(tag_error=True, score_error=True),
    "halo": Settings(tag_error=True, score_error=True, halo=1.5),
}


def _expit(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


@dataclass(frozen=True)
class Outcome:
    """The results of the equations: true stages, Task, Overall and the facts behind S4-S5 (n)."""

    s1_items: Floats
    """n x 6, 0 or 1."""
    s2_items: Floats
    """n x 5, 0 or 1."""
    s3: Floats
    completion: Floats
    completed: Bools
    format_valid: Bools
    task: Floats
    """0-1."""
    stages: Floats
    """S1..S5 (n x 5), 0-1."""
    overall: Floats
    """0-100."""


@dataclass(frozen=True)
class Simulation:
    """The draws of one cohort."""

    settings: Settings
    seed: int
    agent: Ints
    """The number of each run's agent (n); so `task`, `tier` and `repeat`."""
    task: Ints
    tier: Ints
    repeat: Ints
    eta: Floats
    """Ability minus difficulty, with the cell's interaction (n)."""
    slopes: Floats
    """Multipliers of the effects of codes on scores (tasks x codes)."""
    luck: Floats
    """The run's own deviation (n)."""
    codes: Bools
    """The true codes (n x 5)."""
    noise: dict[str, Floats] = field(repr=False)
    """All other draws, by name; the first axis is runs."""

    @property
    def n(self) -> int:
        return len(self.agent)

    @cached_property
    def is_lite(self) -> Bools:
        """Whether each run (n) is of the tier lite."""
        return np.array([name == "lite" for name in self.settings.tiers])[self.tier]

    def outcome(self, codes: Bools | None = None) -> Outcome:
        """The scores with these codes (n x 5; default: the true ones) and the same draws."""
        s, z = self.settings, self.noise
        fired = self.codes if codes is None else codes
        e = fired * self.slopes[self.task]
        h = self.eta + 0.5 * self.luck

        s1_logit = s.s1 + 0.5 * h - 1.5 * e[:, 0]
        s1_items = (z["s1"] < _expit(s1_logit)[:, None]).astype(float)
        s1_items[:, 3:] = np.where(self.is_lite[:, None], 1.0, s1_items[:, 3:])
        s2_logit = s.s2 + 0.4 * h - e[:, 1] - 1.2 * e[:, 3]
        s2_items = (z["s2"] < _expit(s2_logit)[:, None]).astype(float)
        s3_latent = 0.7 * h - s.s3_code * e[:, 2] + z["s3"]
        s3 = LEVELS[np.searchsorted(S3_THRESHOLDS, s3_latent)]

        completed_logit = (
            3.2
            + 0.6 * h
            - 1.2 * e[:, 1]
            - 1.6 * e[:, 3]
            - 2.2 * e[:, 4]
            - s.completed_code * e[:, 2]
        )
        completed = z["completed"] < _expit(completed_logit)
        partial = np.where(z["none"] < 0.5, 0.0, z["share"])
        completion = np.where(completed, 1.0, partial)
        format_valid = completed & ~(fired[:, 4] & (z["format"] < 0.9))

        task_logit = (
            s.task_level
            + 0.7 * h
            - 0.8 * e[:, 0]
            - 0.1 * e[:, 1]
            - s.task_code * e[:, 2]
            - 0.5 * e[:, 3]
        )
        task = _expit(task_logit + 0.57 * z["task"])
        # Gates: no complete submission, or E5 and a scorer that rejects it.
        task = np.where(~completed | (fired[:, 4] & (z["scorer"] < 0.9)), 0.0, task)

        s4 = 0.5 * completion + 0.5 * format_valid
        s5 = 0.5 * ((completion > 0) & (task > 0)) + 0.5 * format_valid
        stages = np.column_stack([s1_items.mean(1), s2_items.mean(1), s3, s4, s5])
        return Outcome(
            s1_items=s1_items,
            s2_items=s2_items,
            s3=s3,
            completion=completion,
            completed=completed,
            format_valid=format_valid,
            task=task,
            stages=stages,
            overall=50 * (stages @ np.array(list(WEIGHTS.values()))) + 50 * task,
        )

    @cached_property
    def true(self) -> Outcome:
        """The scores with the true codes."""
        return self.outcome()

    @cached_property
    def judged(self) -> tuple[Floats, Floats, Floats]:
        """S1 items (n x 6), S2 items (n x 5) and S3 (n) as the judge scored them."""
        out, z = self.true, self.noise
        if not self.settings.score_error:
            return out.s1_items, out.s2_items, out.s3
        is_credited = np.zeros_like(out.s1_items, dtype=bool)
        is_credited[:, 3:] = self.is_lite[:, None]
        s1_flips = (z["flip1"] < 0.10) & ~is_credited
        s1_items = np.where(s1_flips, 1 - out.s1_items, out.s1_items)
        s2_items = np.where(z["flip2"] < 0.08, 1 - out.s2_items, out.s2_items)
        moves_up, moves_down = z["flip3"] < 0.25, z["flip3"] > 0.93
        level = np.searchsorted(LEVELS, out.s3) + moves_up.astype(int) - moves_down.astype(int)
        return s1_items, s2_items, LEVELS[np.clip(level, 0, 3)]

    @cached_property
    def tags(self) -> tuple[Bools, Bools]:
        """(tagged by the judge, tagged by a rule that reads the score), n x 5 each."""
        s, out = self.settings, self.true
        by_rule = np.zeros_like(self.codes)
        if s.circ_thr > 0:
            by_rule[:, 2] = (out.task < s.circ_thr) & out.format_valid
        if not s.tag_error:
            return self.codes, by_rule
        spec = np.array(s.spec)
        with np.errstate(divide="ignore"):  # a tag that is never or always false
            false_logit = np.log((1 - spec) / spec) + s.halo * (out.task < 0.3)[:, None]
        true_tag = self.noise["tag"] < np.array(s.sens)
        false_tag = self.noise["tag"] < _expit(false_logit)
        return np.where(self.codes, true_tag, false_tag), by_rule

    def frame(self) -> pl.DataFrame:
        """The run frame, equal to reading the scorecards of `simulated_cards`.

        Beside them it has the true codes as human ones, `E1_human` to `E5_human`.
        """
        return _simulated_frame(self)


def settings_of(preset: str = "paper", **switches: Any) -> Settings:
    """A preset with fields of Settings replaced (`checked_switches`).

    ConfigError for an unknown preset or switch, or for a value that it cannot have.
    """
    if preset not in PRESETS:
        raise ConfigError(f"unknown preset {preset!r}", f"choose from {', '.join(PRESETS)}")
    defaults = {name: getattr(PRESETS[preset], name) for name in Settings.__dataclass_fields__}
    checked = checked_switches(switches, defaults, max_tracks=len(TRACK_NAMES))
    return replace(PRESETS[preset], **checked)


CODE_EFFECTS = {(1, 4): 0.8, (3, 4): 0.8, (2, 4): 0.4, (3, 2): 0.4, (0, 3): 0.5}
"""(cause, later code) -> what the cause adds to the logit of the later code."""


def _code_logit(
    s: Settings, k: int, eta: Floats, is_hinted: Floats, luck: Floats, codes: Bools
) -> Floats:
    """The logit (n) of code `k` given the codes (n x 5) that arise before it."""
    logit = s.alpha[k] - s.lam[k] * eta + s.alpha_tier[k] * is_hinted - s.conf * luck
    from_codes: Any = 0
    for (cause, later), weight in CODE_EFFECTS.items():
        if later == k:
            from_codes = from_codes + weight * codes[:, cause]
    return np.asarray(logit + from_codes)


def _is_hinted(settings: Settings, tier: Ints) -> Floats:
    """1 for runs of a tier other than lite, else 0 (n)."""
    return np.array([0.0 if name == "lite" else 1.0 for name in settings.tiers])[tier]


def firing_probability(sim: Simulation, k: int) -> Floats:
    """P(code `k` | cell, other codes) of each run (n), averaged over luck (Gauss-Hermite)."""
    s = sim.settings
    is_hinted = _is_hinted(s, sim.tier)
    nodes, weights = np.zeros(1), np.ones(1)
    if s.conf:
        nodes, weights = np.polynomial.hermite_e.hermegauss(9)
    # P(all codes) with code k absent and present; Bayes gives the conditional probability.
    joint = np.zeros((2, sim.n))
    for value in (0, 1):
        codes = sim.codes.copy()
        codes[:, k] = bool(value)
        for node, weight in zip(nodes, weights, strict=True):
            luck = np.full(sim.n, node)
            likelihood = np.full(sim.n, float(weight))
            for j in range(codes.shape[1]):
                p = _expit(_code_logit(s, j, sim.eta, is_hinted, luck, codes))
                likelihood *= np.where(codes[:, j], p, 1 - p)
            joint[value] += likelihood
    return np.asarray(joint[1] / joint.sum(0))


def stratum_sizes(sim: Simulation, k: int) -> Ints:
    """For each run (n) the runs of its cell with the same other codes than `k`, itself included."""
    cell = (sim.agent * sim.settings.n_tasks + sim.task) * len(sim.settings.tiers) + sim.tier
    others = np.delete(sim.codes, k, 1) @ (1 << np.arange(sim.codes.shape[1] - 1))
    _, stratum, size = np.unique(cell * 16 + others, return_inverse=True, return_counts=True)
    return np.asarray(size[stratum])


MAX_RUNS = 2_000_000
"""Of one cohort: a run takes some 500 bytes."""


def simulate(
    preset: str = "paper", *, seed: int = 0, settings: Settings | None = None, **switches: Any
) -> Simulation:
    """Draw a cohort: from `settings`, or from a preset with fields of Settings as keywords.

    ConfigError for more than MAX_RUNS runs.
    """
    s = settings or settings_of(preset, **switches)
    rng = np.random.default_rng(seed)
    n_agents, n_tasks, n_tiers = s.n_agents, s.n_tasks, len(s.tiers)
    n = n_agents * n_tasks * n_tiers * s.n_rep
    if n > MAX_RUNS:
        raise ConfigError(
            f"{n:,} runs are more than {MAX_RUNS:,}", "take fewer agents, tasks or repeats"
        )
    grid = np.meshgrid(
        np.arange(n_agents),
        np.arange(n_tasks),
        np.arange(n_tiers),
        np.arange(s.n_rep),
        indexing="ij",
    )
    agent, task, tier, repeat = (axis.ravel() for axis in grid)
    # The order of the draws is part of the result: a seed always gives the same cohort.
    task_difficulty = s.task_sd * rng.standard_normal(n_tasks)
    interaction = s.cell_sd * rng.standard_normal((n_agents, n_tasks, n_tiers))
    track_difficulty = np.zeros(1)
    if s.n_tracks > 1:
        track_difficulty = 0.25 * np.linspace(-1.4, 1.4, s.n_tracks)
    is_hinted = _is_hinted(s, tier)
    eta = (
        _abilities(s)[agent]
        - task_difficulty[task]
        - track_difficulty[task % s.n_tracks]
        + interaction[agent, task, tier]
        - s.tier_shift * is_hinted
    )
    slopes = np.exp(s.slope_sd * rng.standard_normal((n_tasks, 5)) - s.slope_sd**2 / 2)
    luck = rng.standard_normal(n)
    code_draws = rng.random((n, 5))
    codes = np.zeros((n, 5), dtype=bool)
    for k in CAUSAL_ORDER:
        p = _expit(_code_logit(s, k, eta, is_hinted, luck, codes))
        codes[:, k] = code_draws[:, k] < p
    noise = {
        "s1": rng.random((n, 6)),
        "s2": rng.random((n, 5)),
        "s3": rng.logistic(size=n),
        "completed": rng.random(n),
        "none": rng.random(n),
        "share": rng.random(n),
        "format": rng.random(n),
        "scorer": rng.random(n),
        "task": rng.standard_normal(n),
        "tag": rng.random((n, 5)),
        "flip1": rng.random((n, 6)),
        "flip2": rng.random((n, 5)),
        "flip3": rng.random(n),
        "size": rng.standard_normal((n, 4)),
    }
    return Simulation(
        settings=s,
        seed=seed,
        agent=agent,
        task=task,
        tier=tier,
        repeat=repeat,
        eta=eta,
        slopes=slopes,
        luck=luck,
        codes=codes,
        noise=noise,
    )


def _abilities(s: Settings) -> Floats:
    """The ability of each agent (agents)."""
    n_further = max(0, s.n_agents - len(s.ability))
    further = [s.ability[-1] - 0.1 * (i + 1) for i in range(n_further)]
    return np.array([*s.ability, *further])[: s.n_agents]


def sample_truth(sim: Simulation) -> dict[str, Any]:
    """The true effects of each code on these runs, by setting it with all else unchanged.

    For each code: `ate` (all runs), `att` (runs that fired it), `overlap` (what `code_effects`
    estimates: over strata of n runs with the same cell and other codes, weighted by
    (n - 1) p (1 - p), p the probability of firing there), and `parts`, the latter split into S1..S5
    and task (points of Overall).
    """
    points = 50 * np.array([*WEIGHTS.values(), 1.0])
    truths: dict[str, Any] = {}
    for k, code in enumerate(CODES):
        present, absent = sim.codes.copy(), sim.codes.copy()
        present[:, k], absent[:, k] = True, False
        with_code, without_code = sim.outcome(present), sim.outcome(absent)
        effect = with_code.overall - without_code.overall
        fired = sim.codes[:, k]
        p = firing_probability(sim, k)
        weight = p * (1 - p) * (1 - 1 / stratum_sizes(sim, k))
        if weight.any():
            weight = weight / weight.sum()
        differences = np.column_stack(
            [with_code.stages - without_code.stages, with_code.task - without_code.task]
        )
        parts = (weight @ differences * points).tolist()
        truths[code] = {
            "ate": float(effect.mean()),
            "att": float(effect[fired].mean()) if fired.any() else None,
            "overlap": float(effect @ weight),
            "parts": dict(zip([*WEIGHTS, "task"], parts, strict=True)),
        }
    return truths


def truth(
    settings: Settings | None = None, *, n_tasks: int = 600, seed: int = 12345
) -> dict[str, Any]:
    """The true effects in the population of tasks: `sample_truth` with many tasks."""
    many_tasks = replace(settings or Settings(), n_tasks=n_tasks)
    return sample_truth(simulate(settings=many_tasks, seed=seed))


def cohort_names(sim: Simulation) -> tuple[list[str], list[str], list[str]]:
    """Names of the agents, of the tasks, and of each task's track."""
    s = sim.settings
    agents = [f"agent-{i + 1}" for i in range(s.n_agents)]
    tracks = [TRACK_NAMES[t % s.n_tracks] for t in range(s.n_tasks)]
    tasks = [f"{track[:3]}-{t // s.n_tracks + 1:02d}-task" for t, track in enumerate(tracks)]
    return agents, tasks, tracks


def simulated_resources(sim: Simulation) -> dict[str, Any]:
    """Turns, seconds, tokens and dollars of each run (n each).

    Log-normal around levels of agents and tracks (assumed).
    """
    s, z = sim.settings, sim.noise["size"]
    agent_level, track_level = np.zeros(1), np.zeros(1)
    if s.n_agents > 1:
        agent_level = np.linspace(-0.5, 0.4, s.n_agents)[::-1]
    if s.n_tracks > 1:
        track_level = 0.3 * np.linspace(-1, 1, s.n_tracks)
    level = agent_level[sim.agent] + track_level[sim.task % s.n_tracks]
    turns = np.maximum(5, np.round(np.exp(3.4 + 0.5 * level + 0.25 * z[:, 0]))).astype(int)
    tokens = np.round(turns * np.exp(10.3 + 0.2 * z[:, 1])).astype(int)
    failed_calls = np.round(np.exp(0.8 + 0.6 * z[:, 2])).astype(int)
    return {
        "turns": turns,
        "calls": turns,
        "failed_calls": np.minimum(turns, failed_calls),
        "wall_time_s": np.round(turns * np.exp(3.8 + 0.5 * z[:, 3]), 1),
        "input_tokens": tokens,
        "output_tokens": tokens // 30,
        "cost_usd": np.round(tokens * 2e-6 * np.exp(2.0 * agent_level[sim.agent]), 4),
    }


def _simulated_frame(sim: Simulation) -> pl.DataFrame:
    agents, tasks, tracks = cohort_names(sim)
    columns: dict[str, Any] = {
        "run_id": [f"run-{i:06d}" for i in range(sim.n)],
        "agent": np.array(agents)[sim.agent],
        "model": np.array(agents)[sim.agent],
        "task": np.array(tasks)[sim.task],
        "track": np.array(tracks)[sim.task],
        "tier": np.array(sim.settings.tiers)[sim.tier],
        "repeat": sim.repeat + 1,
        "judge": np.full(sim.n, SIMULATED),
        "missing_policy": np.full(sim.n, "renormalize"),
        "submitted": np.ones(sim.n, dtype=bool),
        "disqualified": np.zeros(sim.n, dtype=bool),
        **simulated_resources(sim),
    }
    columns |= _stage_turn_columns(columns["turns"])
    columns |= _score_columns(sim)
    columns |= _code_columns(sim)
    return conform(pl.DataFrame(columns))


def _stage_turn_columns(turns: Ints) -> dict[str, Any]:
    """S1_turns to S5_turns: a run's turns divided by TURN_SHARES."""
    ends = np.round(np.outer(turns, np.cumsum(TURN_SHARES))).astype(int)
    turns_by_stage = np.diff(ends, axis=1, prepend=0)
    return {f"S{i + 1}_turns": turns_by_stage[:, i] for i in range(5)}


def _score_columns(sim: Simulation) -> dict[str, Any]:
    out = sim.true
    s1_items, s2_items, s3 = sim.judged
    stages = np.column_stack([s1_items.mean(1), s2_items.mean(1), s3, out.stages[:, 3:]])
    agentic = stages @ np.array(list(WEIGHTS.values()))
    n_never_credited = 3 if "lite" in sim.settings.tiers else 6
    return {
        **{f"S{i + 1}": stages[:, i] for i in range(5)},
        "S1_free": s1_items[:, :n_never_credited].mean(1),
        "S2_free": s2_items.mean(1),
        "S3_free": s3,
        "agentic": agentic,
        "task_score": out.task,
        "overall": 100 * (0.5 * agentic + 0.5 * out.task),
        "completion": out.completion,
        "format_valid": out.format_valid,
        "completed": out.completed,
    }


def _code_columns(sim: Simulation) -> dict[str, Any]:
    judged, by_rule = sim.tags
    fired = judged | by_rule
    columns: dict[str, Any] = {
        "n_codes": fired.sum(1),
        "diagnosed": np.ones(sim.n, dtype=bool),
    }
    for k, code in enumerate(CODES):
        columns |= {
            code: fired[:, k],
            f"{code}_judge": judged[:, k],
            f"{code}_detector": np.zeros(sim.n, dtype=bool),
            f"{code}_fact": np.zeros(sim.n, dtype=bool),
            f"{code}_score": by_rule[:, k],
            f"{code}_human": sim.codes[:, k],
            f"{code}_read": np.where(fired[:, k], "present", "absent"),
        }
    return columns
