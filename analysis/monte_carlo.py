"""The estimators against planted truth: bias, coverage and false alarms over simulated cohorts, beside their targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from .codes_read import CODES
from .design import design
from .estimate import Floats, t_quantile
from .jackknife import codes_of, cr3, demean
from .judge_error import additive_design, predict_then_debias, weighted_fit
from .overlap import overlap
from .ranking import agent_score, grid, variance_new
from .simulation import PRESETS, Settings, Simulation, simulate, truth

SHOWN = ("E2", "E3", "E4", "E5")
PART_NAMES = ("additive", "structural", "labels", "leaderboard", "parity")


@dataclass(frozen=True)
class Gate:
    """A number and the range it must be in."""

    part: str
    quantity: str
    value: float
    lo: float
    hi: float
    error: float | None = None
    """Monte Carlo standard error; None: that of a rate, or none."""

    @property
    def passed(self) -> bool:
        return bool(self.lo <= self.value <= self.hi)


def _effects(sim: Simulation) -> tuple[Floats, Floats, Floats]:
    """Values, errors and t quantiles of the five codes' effects."""
    cell, _ = codes_of(sim.agent, sim.task, sim.tier)
    fits = [overlap(sim.codes, k, sim.true.overall[:, None], cell, sim.task) for k in range(len(CODES))]
    rows = [
        (fit.value[0], fit.se_new[0], t_quantile(0.975, fit.df_new)) if fit and fit.df_new > 0 else (np.nan,) * 3
        for fit in fits
    ]
    value, se, t = np.array(rows).T
    return value, se, t


def _additive_ols(sim: Simulation) -> Floats:
    """Half-width and value of E1..E5 (2 x 5) in the regression with additive codes and cell effects."""
    cell, n = codes_of(sim.agent, sim.task, sim.tier)
    x, y = demean(sim.codes.astype(float), cell, n), demean(sim.true.overall[:, None], cell, n)[:, 0]
    b, v = cr3(x, y, sim.task)
    return np.array([t_quantile(0.975, sim.settings.n_tasks - 1) * np.sqrt(np.diag(v)), b])


def _additive(replicates: int, seed: int, base: Settings) -> list[Gate]:
    """The default on additive truth; E2 has no effect, so its rejections are false. Naive OLS must show its bias."""
    s = replace(PRESETS["additive"], n_tasks=base.n_tasks, n_rep=base.n_rep)
    target = np.array(s.delta)
    values, covered, naive = [], [], []
    for r in range(replicates):
        sim = simulate(settings=s, seed=seed + r)
        value, se, t = _effects(sim)
        values.append(value)
        covered.append(np.abs(value - target) <= t * se)
        plain = np.hstack([sim.codes.astype(float), np.ones((sim.n, 1))])
        naive.append(weighted_fit(plain, sim.true.overall, np.ones(sim.n), 5)[0])
    gates = []
    bias, cover = np.mean(values, 0) - target, np.mean(covered, 0)
    error = np.std(values, axis=0) / np.sqrt(replicates)
    for code in SHOWN:
        k = CODES.index(code)
        gates.append(Gate("additive", f"bias of {code}, points", float(bias[k]), -0.5, 0.5, float(error[k])))
        gates.append(Gate("additive", f"coverage of {code}", float(cover[k]), 0.90, 0.98))
    gates.append(Gate("additive", "false rejections of E2", float(1 - cover[1]), 0.0, 0.09))
    off = float(abs(np.mean(naive, 0)[2] - target[2]))
    return [*gates, Gate("additive", "|bias| of E3 in naive OLS (must fail)", off, 3.0, np.inf)]


def _structural(replicates: int, seed: int, base: Settings) -> list[Gate]:
    """The default against the counterfactual truth of bounded, gated scores; additive cell OLS beside it for contrast."""
    s = replace(PRESETS["paper"], n_tasks=base.n_tasks, n_rep=base.n_rep)
    target = np.array([effect["overlap"] for effect in truth(s, n_tasks=1500).values()])
    covered, plain, values = [], [], []
    for r in range(replicates):
        sim = simulate(settings=s, seed=seed + 10_000 + r)
        value, se, t = _effects(sim)
        values.append(value)
        covered.append(np.where(np.isfinite(value), np.abs(value - target) <= t * se, np.nan))
        half, value = _additive_ols(sim)
        plain.append(np.abs(value - target) <= half)
    cover, bias = np.nanmean(covered, 0), np.nanmean(values, 0) - target
    gates = [
        Gate("structural", f"coverage of the effect of {code}", float(cover[k]), 0.90, 1.0)
        for k, code in enumerate(CODES)
    ]
    error = np.nanstd(values, axis=0) / np.sqrt(replicates)
    gates += [
        Gate("structural", f"bias of {code}, points", float(bias[k]), -1.0, 1.0, float(error[k]))
        for k, code in enumerate(CODES)
    ]
    off = float(np.mean(plain, 0)[4])
    return [*gates, Gate("structural", "coverage of E5 by additive codes (must fail)", off, 0.0, 0.80)]


def _labels(replicates: int, seed: int, base: Settings, m: int = 300) -> list[Gate]:
    """PTD with m random labels under halo, against the additive fit that true codes of all tasks would give."""
    s = replace(PRESETS["halo"], n_tasks=base.n_tasks, n_rep=base.n_rep)
    fits, oracle, naive = [], [], []
    for r in range(replicates):
        sim = simulate(settings=s, seed=seed + 20_000 + r)
        d = design(sim.frame(), prepare=False)
        fixed = additive_design(d)
        human = d.table.select(f"{c}_human" for c in CODES).to_numpy().astype(float)
        labelled = np.zeros(d.n, dtype=bool)
        labelled[np.random.default_rng(seed + r).choice(d.n, min(m, d.n), replace=False)] = True
        fits.append(predict_then_debias(human, d.codes.astype(float), fixed, d.y, labelled, d.task))
        naive.append(fits[-1]["judge_only"])
        oracle.append(weighted_fit(np.hstack([human, fixed]), d.y, np.ones(d.n), 5)[0])
    target = np.mean(oracle, 0)
    t = t_quantile(0.975, s.n_tasks - 1)
    covered = np.mean([np.abs(fit["theta"] - target) <= t * fit["se"] for fit in fits], 0)
    gates = [
        Gate("labels", f"coverage of {code}, PTD, m={m}", float(covered[CODES.index(code)]), 0.90, 1.0)
        for code in SHOWN
    ]
    off = float(abs(np.mean(naive, 0)[2] - target[2]))
    return [*gates, Gate("labels", "|bias| of E3, judge tags as they are (must fail)", off, 3.0, np.inf)]


def _leaderboard(replicates: int, seed: int, base: Settings) -> list[Gate]:
    """An agent's mean for new tasks: coverage of the task interval, and of the iid interval that must fail."""
    s = replace(PRESETS["paper"], n_tasks=base.n_tasks, n_rep=base.n_rep)
    values, ses, iid, df = [], [], [], 0.0
    for r in range(replicates):
        sim = simulate(settings=s, seed=seed + 30_000 + r)
        g = grid(design(sim.frame(), prepare=False))
        everything = np.ones(len(g.tasks), dtype=bool)
        for a in range(s.n_agents):
            score = agent_score(g, a, everything)
            if score is None:
                continue
            variance, df, _ = variance_new(score.residual, score.track_of)
            values.append((a, score.value))
            ses.append(np.sqrt(variance))
            y = sim.true.overall[sim.agent == a]
            iid.append(y.std(ddof=1) / np.sqrt(len(y)))
    population = simulate(settings=replace(s, n_tasks=200 * s.n_tracks, n_rep=4), seed=4242)
    everything = np.ones(population.settings.n_tasks, dtype=bool)
    whole = grid(design(population.frame(), prepare=False))
    scores = [agent_score(whole, a, everything) for a in range(s.n_agents)]
    target = np.array([score.value if score else np.nan for score in scores])
    gap = np.array([abs(value - target[a]) for a, value in values])
    by_task = float((gap <= t_quantile(0.975, df) * np.array(ses)).mean())
    as_iid = float((gap <= 1.96 * np.array(iid)).mean())
    return [
        Gate("leaderboard", "coverage of the task interval", by_task, 0.91, 0.98),
        Gate("leaderboard", "coverage of the iid interval (must fail)", as_iid, 0.0, 0.80),
    ]


def _parity(replicates: int, seed: int, base: Settings) -> list[Gate]:
    """CR3 against statsmodels' cluster-crv3 on demeaned data."""
    import statsmodels.api as sm

    sim = simulate(seed=seed, n_tasks=base.n_tasks, n_rep=base.n_rep)
    cell, n_cells = codes_of(sim.agent, sim.task, sim.tier)
    x, y = demean(sim.codes.astype(float), cell, n_cells), demean(sim.true.overall[:, None], cell, n_cells)[:, 0]
    _, covariance = cr3(x, y, sim.task)
    other = sm.OLS(y, x).fit(cov_type="cluster-crv3", cov_kwds={"groups": sim.task}, use_t=True)
    gap = float(np.max(np.abs(np.sqrt(np.diag(covariance)) / np.asarray(other.bse) - 1)))
    return [Gate("parity", "largest relative gap of CR3 errors to statsmodels", gap, 0.0, 1e-8)]


_PARTS: dict[str, Callable[[int, int, Settings], list[Gate]]] = {
    "additive": _additive, "structural": _structural, "labels": _labels, "leaderboard": _leaderboard, "parity": _parity,
}  # fmt: skip


def selfcheck(
    replicates: int = 40, *, parts: tuple[str, ...] = PART_NAMES, seed: int = 1, settings: Settings | None = None
) -> pl.DataFrame:
    """Runs the gates: `part`, `quantity`, `value`, `target_lo`, `target_hi`, `mc_error`, `passed`, `replicates`.

    Targets are for 200 replicates; with fewer, a coverage may miss by chance: `within_error` allows two Monte Carlo
    standard errors. `settings` gives the sizes (tasks, repeats) of the simulated cohorts.
    """
    base = settings or Settings()
    rows: list[dict[str, Any]] = []
    for part in parts:
        for gate in _PARTS[part](replicates, seed, base):
            rate = gate.quantity.startswith(("coverage", "false"))
            error = float(np.sqrt(max(gate.value * (1 - gate.value), 0.05 * 0.95) / replicates)) if rate else gate.error
            slack = 2 * (error or 0.0)
            rows.append({
                "part": part, "quantity": gate.quantity, "value": gate.value, "target_lo": gate.lo,
                "target_hi": gate.hi if np.isfinite(gate.hi) else None, "mc_error": error, "passed": gate.passed,
                "within_error": bool(gate.lo - slack <= gate.value <= gate.hi + slack), "replicates": replicates,
            })  # fmt: skip
    schema: dict[str, Any] = {
        "part": pl.String, "quantity": pl.String, "value": pl.Float64, "target_lo": pl.Float64, "target_hi": pl.Float64,
        "mc_error": pl.Float64, "passed": pl.Boolean, "within_error": pl.Boolean, "replicates": pl.Int64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema)
