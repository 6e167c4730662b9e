"""A cohort with planted truth: agents, tasks, tiers and repeats whose codes, stages and Task follow
known equations.

The exogenous draws are separate from the equations, so that the effect of a code can be read off by
setting it with everything else unchanged (`truth`). Presets: `paper` (bounded scores, gates,
discrete stages; levels calibrated to the published pattern), `null` (E3 without any effect). Levels
that no publication gives are assumptions; see docs/statistics.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from ...errors import ConfigError
from ...tracks import BUILT_IN
from ..statistics.interval_estimates import Bools, Floats, Ints
from ..tables.codes_read import CODES
from ..tables.frames import RUN_SCHEMA, WEIGHTS, conform

ORDER = (0, 1, 3, 2, 4)
"""The order in which codes arise: E1, E2, E4, E3, E5."""
TURN_SHARES = (0.15, 0.2, 0.25, 0.3, 0.1)
"""Of a run's turns by stage, in order (assumed)."""
LEVELS = np.array([0.0, 0.2, 0.5, 1.0])
TRACK_NAMES = BUILT_IN


@dataclass(frozen=True)
class Settings:
    """Everything that decides a simulated cohort. Vectors over codes are in the order E1..E5."""

    n_agents: int = 6
    n_tasks: int = 24
    n_tracks: int = 5
    tiers: tuple[str, ...] = ("lite", "standard")
    n_rep: int = 12
    ability: tuple[float, ...] = (0.74, 0.34, 0.29, 0.04, -0.20, -0.20)
    """theta by agent; more agents repeat the last steps downwards."""
    task_sd: float = 0.45
    cell_sd: float = 0.40
    tier_shift: float = 0.25
    alpha: tuple[float, ...] = (-5.12, -2.92, -1.19, -2.48, -1.51)
    alpha_tier: tuple[float, ...] = (0.0, 0.2, 0.1, 0.2, 0.2)
    lam: tuple[float, ...] = (0.3, 0.6, 0.8, 0.9, 0.9)
    conf: float = 0.0
    """Run-level confounding: weight of the run's own luck in the codes' logits (0 = none, .5 =
    strong)."""
    slope_sd: float = 0.4
    """Standard deviation of the log of the task-specific multiplier of effects; 0 = same effect
    everywhere."""
    s1: float = 0.65
    s2: float = 2.10
    s3_code: float = 3.4
    task_code: float = 2.9
    completed_code: float = 0.8
    """Effects of E3 on S3's latent, on Task's logit, on completion's logit; all 0 = a null code."""
    task_level: float = 1.55
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
    """What the equations yield: true stages, Task, Overall (0-100) and the facts behind S4-S5."""

    s1_items: Floats
    s2_items: Floats
    s3: Floats
    completion: Floats
    completed: Bools
    format_valid: Bools
    task: Floats
    stages: Floats
    overall: Floats


@dataclass(frozen=True)
class Simulation:
    """Draws of one cohort. `agent`, `task`, `tier` index runs; `codes` are the true ones (n x 5)."""

    settings: Settings
    seed: int
    agent: Ints
    task: Ints
    tier: Ints
    repeat: Ints
    eta: Floats
    slopes: Floats
    """Task multipliers of score effects, tasks x codes."""
    luck: Floats
    codes: Bools
    noise: dict[str, Floats] = field(repr=False)

    @property
    def n(self) -> int:
        return len(self.agent)

    def outcome(self, codes: Bools | None = None) -> Outcome:
        """Scores when the codes are as given (default: as they arose), with the same draws."""
        s, z = self.settings, self.noise
        fired = self.codes if codes is None else codes
        e = fired * self.slopes[self.task]
        h = self.eta + 0.5 * self.luck
        lite = np.array([name == "lite" for name in s.tiers])[self.tier]
        s1 = (z["s1"] < _expit(s.s1 + 0.5 * h - 1.5 * e[:, 0])[:, None]).astype(float)
        s1[:, 3:] = np.where(lite[:, None], 1.0, s1[:, 3:])
        s2 = (z["s2"] < _expit(s.s2 + 0.4 * h - e[:, 1] - 1.2 * e[:, 3])[:, None]).astype(float)
        latent = 0.7 * h - s.s3_code * e[:, 2] + z["s3"]
        s3 = LEVELS[np.searchsorted([-1.5, -0.7, 0.65], latent)]
        logit = (
            3.2
            + 0.6 * h
            - 1.2 * e[:, 1]
            - 1.6 * e[:, 3]
            - 2.2 * e[:, 4]
            - s.completed_code * e[:, 2]
        )
        completed = z["completed"] < _expit(logit)
        partial = np.where(z["none"] < 0.5, 0.0, z["share"])
        completion = np.where(completed, 1.0, partial)
        format_valid = completed & ~(fired[:, 4] & (z["format"] < 0.9))
        mu = (
            s.task_level
            + 0.7 * h
            - 0.8 * e[:, 0]
            - 0.1 * e[:, 1]
            - s.task_code * e[:, 2]
            - 0.5 * e[:, 3]
        )
        task = _expit(mu + 0.57 * z["task"])
        task = np.where(~completed | (fired[:, 4] & (z["scorer"] < 0.9)), 0.0, task)
        s4 = 0.5 * completion + 0.5 * format_valid
        s5 = 0.5 * ((completion > 0) & (task > 0)) + 0.5 * format_valid
        stages = np.column_stack([s1.mean(1), s2.mean(1), s3, s4, s5])
        overall = 50 * (stages @ np.array(list(WEIGHTS.values()))) + 50 * task
        return Outcome(s1, s2, s3, completion, completed, format_valid, task, stages, overall)

    @cached_property
    def true(self) -> Outcome:
        return self.outcome()

    @cached_property
    def judged(self) -> tuple[Floats, Floats, Floats]:
        """S1 items, S2 items and S3 as the judge saw them."""
        out, z = self.true, self.noise
        if not self.settings.score_error:
            return out.s1_items, out.s2_items, out.s3
        lite = np.array([name == "lite" for name in self.settings.tiers])[self.tier]
        credited = np.zeros_like(out.s1_items, dtype=bool)
        credited[:, 3:] = lite[:, None]
        s1 = np.where((z["flip1"] < 0.10) & ~credited, 1 - out.s1_items, out.s1_items)
        s2 = np.where(z["flip2"] < 0.08, 1 - out.s2_items, out.s2_items)
        level = np.searchsorted(LEVELS, out.s3)
        move = np.where(z["flip3"] < 0.25, 1, np.where(z["flip3"] > 0.93, -1, 0))
        return s1, s2, LEVELS[np.clip(level + move, 0, 3)]

    @cached_property
    def tags(self) -> tuple[Bools, Bools]:
        """(tagged by the judge, tagged by a rule that reads the score), n x 5 each."""
        s, out = self.settings, self.true
        rule = np.zeros_like(self.codes)
        if s.circ_thr > 0:
            rule[:, 2] = (out.task < s.circ_thr) & out.format_valid
        if not s.tag_error:
            return self.codes, rule
        false = (
            np.log((1 - np.array(s.spec)) / np.array(s.spec)) + s.halo * (out.task < 0.3)[:, None]
        )
        return (
            np.where(
                self.codes, self.noise["tag"] < np.array(s.sens), self.noise["tag"] < _expit(false)
            ),
            rule,
        )

    def frame(self) -> pl.DataFrame:
        """The run frame, equal to reading the scorecards of `simulated_cards`, with human codes
        `E1_human`.. (the truth) beside."""
        return _simulated_frame(self)


def settings_of(preset: str = "paper", **switches: Any) -> Settings:
    """A preset with fields of Settings replaced. Raises ConfigError for unknown names or sizes
    below 1."""
    if preset not in PRESETS:
        raise ConfigError(f"unknown preset {preset!r}", f"choose from {', '.join(PRESETS)}")
    unknown = set(switches) - set(Settings.__dataclass_fields__)
    if unknown:
        raise ConfigError(
            f"unknown switch {min(unknown)!r}",
            f"choose from {', '.join(Settings.__dataclass_fields__)}",
        )
    out = replace(PRESETS[preset], **switches)
    if min(
        out.n_agents, out.n_tasks, out.n_tracks, out.n_rep, len(out.tiers)
    ) < 1 or out.n_tracks > len(TRACK_NAMES):
        raise ConfigError(
            "a cohort needs at least one agent, task, tier and repeat, and 1 to 7 tracks",
            "change the sizes",
        )
    return out


KAPPA = {(1, 4): 0.8, (3, 4): 0.8, (2, 4): 0.4, (3, 2): 0.4, (0, 3): 0.5}
"""What a code adds to the logit of a later one: (cause, effect)."""


def _logit(s: Settings, k: int, eta: Floats, hinted: Floats, luck: Floats, codes: Bools) -> Floats:
    """Of code `k` given the codes before it."""
    out = s.alpha[k] - s.lam[k] * eta + s.alpha_tier[k] * hinted - s.conf * luck
    return np.asarray(
        out
        + sum(weight * codes[:, cause] for (cause, effect), weight in KAPPA.items() if effect == k)
    )


def firing_probability(sim: Simulation, k: int) -> Floats:
    """Of each run, the probability that it fires code `k`, given its cell and its other codes; luck
    is averaged over."""
    s = sim.settings
    hinted = np.array([0.0 if name == "lite" else 1.0 for name in s.tiers])[sim.tier]
    nodes, weights = np.polynomial.hermite_e.hermegauss(9) if s.conf else (np.zeros(1), np.ones(1))
    joint = np.zeros((2, sim.n))
    for end in (0, 1):
        codes = sim.codes.copy()
        codes[:, k] = bool(end)
        for node, weight in zip(nodes, weights, strict=True):
            each = np.full(sim.n, float(weight))
            for j in range(codes.shape[1]):
                p = _expit(_logit(s, j, sim.eta, hinted, np.full(sim.n, node), codes))
                each *= np.where(codes[:, j], p, 1 - p)
            joint[end] += each
    return np.asarray(joint[1] / joint.sum(0))


def stratum_sizes(sim: Simulation, k: int) -> Ints:
    """Of each run, how many runs (itself included) are of its cell and have the same codes beside
    code `k`."""
    cell = (sim.agent * sim.settings.n_tasks + sim.task) * len(sim.settings.tiers) + sim.tier
    others = np.delete(sim.codes, k, 1) @ (1 << np.arange(sim.codes.shape[1] - 1))
    _, stratum, size = np.unique(cell * 16 + others, return_inverse=True, return_counts=True)
    return np.asarray(size[stratum])


MOST_RUNS = 2_000_000
"""Of one cohort: it takes some 500 bytes a run."""


def simulate(
    preset: str = "paper", *, seed: int = 0, settings: Settings | None = None, **switches: Any
) -> Simulation:
    """Draws a cohort: `settings`, or a preset with fields of Settings replaced by keyword.

    ConfigError for more than MOST_RUNS runs.
    """
    s = settings or settings_of(preset, **switches)
    rng = np.random.default_rng(seed)
    A, T, V, N = s.n_agents, s.n_tasks, len(s.tiers), s.n_rep
    if A * T * V * N > MOST_RUNS:
        raise ConfigError(
            f"{A * T * V * N:,} runs are more than {MOST_RUNS:,}",
            "take fewer agents, tasks or repeats",
        )
    agent, task, tier, repeat = (
        axis.ravel()
        for axis in np.meshgrid(
            np.arange(A), np.arange(T), np.arange(V), np.arange(N), indexing="ij"
        )
    )
    n = agent.size
    ability = np.array(
        [*s.ability, *(s.ability[-1] - 0.1 * (i + 1) for i in range(max(0, A - len(s.ability))))]
    )[:A]
    tracks = 0.25 * np.linspace(-1.4, 1.4, s.n_tracks) if s.n_tracks > 1 else np.zeros(1)
    hard = s.task_sd * rng.standard_normal(T)
    cell = s.cell_sd * rng.standard_normal((A, T, V))
    hinted = np.array([0.0 if name == "lite" else 1.0 for name in s.tiers])
    eta = (
        ability[agent]
        - hard[task]
        - tracks[task % s.n_tracks]
        + cell[agent, task, tier]
        - s.tier_shift * hinted[tier]
    )
    slopes = np.exp(s.slope_sd * rng.standard_normal((T, 5)) - s.slope_sd**2 / 2)
    luck = rng.standard_normal(n)
    draws = rng.random((n, 5))
    codes = np.zeros((n, 5), dtype=bool)
    for k in ORDER:
        codes[:, k] = draws[:, k] < _expit(_logit(s, k, eta, hinted[tier], luck, codes))
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
    return Simulation(s, seed, agent, task, tier, repeat, eta, slopes, luck, codes, noise)


def sample_truth(sim: Simulation) -> dict[str, Any]:
    """Effects of each code on these runs, by setting it with all else unchanged.

    For each code: `ate` (all runs), `att` (runs that fired it), `overlap` (over strata of n runs
    with the same cell and other codes, weighted by (n - 1) p (1 - p), p the chance to fire it
    there: what `code_effects` estimates), and `parts`, the latter split into S1..S5 and task
    (points of Overall).
    """
    weights = 50 * np.array([*WEIGHTS.values(), 1.0])
    out: dict[str, Any] = {}
    for k, code in enumerate(CODES):
        ends = []
        for value in (True, False):
            codes = sim.codes.copy()
            codes[:, k] = value
            ends.append(sim.outcome(codes))
        gain = ends[0].overall - ends[1].overall
        fired = sim.codes[:, k]
        p, alike = firing_probability(sim, k), stratum_sizes(sim, k)
        weight = p * (1 - p) * (1 - 1 / alike)
        weight = weight / weight.sum() if weight.any() else weight
        row: dict[str, Any] = {
            "ate": float(gain.mean()),
            "att": float(gain[fired].mean()) if fired.any() else None,
            "overlap": float(gain @ weight),
        }
        split = (
            weight
            @ np.column_stack([ends[0].stages - ends[1].stages, ends[0].task - ends[1].task])
            * weights
        )
        row["parts"] = {
            name: float(part) for name, part in zip([*WEIGHTS, "task"], split, strict=True)
        }
        out[code] = row
    return out


def truth(
    settings: Settings | None = None, *, n_tasks: int = 600, seed: int = 12345
) -> dict[str, Any]:
    """Effects in the population of tasks (many tasks drawn, repeated as often)."""
    return sample_truth(
        simulate(settings=replace(settings or Settings(), n_tasks=n_tasks), seed=seed)
    )


def cohort_names(sim: Simulation) -> tuple[list[str], list[str], list[str]]:
    """Names of agents, tasks and the tasks' tracks."""
    s = sim.settings
    tracks = [TRACK_NAMES[t % s.n_tracks] for t in range(s.n_tasks)]
    tasks = [
        f"{TRACK_NAMES[t % s.n_tracks][:3]}-{t // s.n_tracks + 1:02d}-task"
        for t in range(s.n_tasks)
    ]
    return [f"agent-{i + 1}" for i in range(s.n_agents)], tasks, tracks


def simulated_resources(sim: Simulation) -> dict[str, Any]:
    """Turns, seconds, tokens and dollars of each run: log-normal around agent and track levels
    (assumed)."""
    s, z = sim.settings, sim.noise["size"]
    spread = np.linspace(-0.5, 0.4, s.n_agents)[::-1] if s.n_agents > 1 else np.zeros(1)
    track = 0.3 * np.linspace(-1, 1, s.n_tracks) if s.n_tracks > 1 else np.zeros(1)
    level = spread[sim.agent] + track[sim.task % s.n_tracks]
    turns = np.maximum(5, np.round(np.exp(3.4 + 0.5 * level + 0.25 * z[:, 0]))).astype(int)
    tokens = np.round(turns * np.exp(10.3 + 0.2 * z[:, 1])).astype(int)
    return {
        "turns": turns,
        "calls": turns,
        "failed_calls": np.minimum(turns, np.round(np.exp(0.8 + 0.6 * z[:, 2])).astype(int)),
        "wall_time_s": np.round(turns * np.exp(3.8 + 0.5 * z[:, 3]), 1),
        "input_tokens": tokens,
        "output_tokens": tokens // 30,
        "cost_usd": np.round(tokens * 2e-6 * np.exp(2.0 * spread[sim.agent]), 4),
    }


def _simulated_frame(sim: Simulation) -> pl.DataFrame:
    s, out = sim.settings, sim.true
    agents, tasks, tracks = cohort_names(sim)
    s1, s2, s3 = sim.judged
    stages = np.column_stack([s1.mean(1), s2.mean(1), s3, out.stages[:, 3], out.stages[:, 4]])
    agentic = stages @ np.array(list(WEIGHTS.values()))
    overall = 100 * (0.5 * agentic + 0.5 * out.task)
    judged, rule = sim.tags
    fired = judged | rule
    n = sim.n
    tier = np.array(s.tiers)[sim.tier]
    data: dict[str, Any] = {
        "run_id": [f"run-{i:06d}" for i in range(n)],
        "agent": np.array(agents)[sim.agent],
        "model": np.array(agents)[sim.agent],
        "task": np.array(tasks)[sim.task],
        "track": np.array(tracks)[sim.task],
        "tier": tier,
        "repeat": sim.repeat + 1,
        "overall": overall,
        **simulated_resources(sim),
    }
    ends = np.round(np.outer(data["turns"], np.cumsum(TURN_SHARES))).astype(int)
    data |= {f"S{i + 1}_turns": ends[:, i] - (ends[:, i - 1] if i else 0) for i in range(5)}
    data |= {"judge": np.full(n, "simulated"), "missing_policy": np.full(n, "renormalize")}
    data |= {f"S{i + 1}": stages[:, i] for i in range(5)}
    data |= {
        "agentic": agentic,
        "task_score": out.task,
        "completion": out.completion,
        "format_valid": out.format_valid,
    }
    data |= {"completed": out.completed, "submitted": np.ones(n, dtype=bool)}
    credited = 3 if "lite" in s.tiers else 6
    data |= {"S1_free": s1[:, :credited].mean(1), "S2_free": s2.mean(1), "S3_free": s3}
    data["disqualified"] = np.zeros(n, dtype=bool)
    for k, code in enumerate(CODES):
        data |= {code: fired[:, k], f"{code}_judge": judged[:, k]}
        data |= {f"{code}_{source}": np.zeros(n, dtype=bool) for source in ("detector", "fact")}
        data |= {f"{code}_score": rule[:, k], f"{code}_human": sim.codes[:, k]}
        data[f"{code}_read"] = np.where(fired[:, k], "present", "absent")
    data |= {"n_codes": fired.sum(1), "diagnosed": np.ones(n, dtype=bool)}
    assert set(data) <= {
        *RUN_SCHEMA,
        "S1_free",
        "S2_free",
        "S3_free",
        *(f"{c}_human" for c in CODES),
    }
    return conform(pl.DataFrame(data))
