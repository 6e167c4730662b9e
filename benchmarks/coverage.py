"""Intervals, rank sets and findings against planted truth: `python benchmarks/coverage.py [part...]
--cohorts N --seed S --into FILE`.

Prints every quantity with its target, what was measured and its Monte Carlo error (of cohort
means); exit code 1 when one is missed by more than two of these. Targets: intervals cover .93 to
.975, rank sets hold jointly in .93 of the cohorts or more, a cohort without an effect yields a
false finding in .06 or fewer, corrections and agreement with labels drawn by `label next` cover .93
to .97, and estimators known to be wrong cover less than .8. FILE keeps what was measured after
every few cohorts; a later run with other seeds adds to it.
"""

from __future__ import annotations

import os

# small matrices: threads cost more than they give
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("POLARS_MAX_THREADS", "1")

import argparse
import functools
import json
import math
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from ambjudge.analysis.report.findings import findings
from ambjudge.analysis.simulated.simulation import Settings, Simulation, sample_truth, simulate
from ambjudge.analysis.statistics.corrected_effects import FEW_POSITIVES, corrected_code_effects
from ambjudge.analysis.statistics.corrected_means import corrected_leaderboard, human_scores
from ambjudge.analysis.statistics.effects import code_effects
from ambjudge.analysis.statistics.interval_estimates import t_quantile
from ambjudge.analysis.statistics.jackknife import cr3, demean, group_ids
from ambjudge.analysis.statistics.overlap_weighting import overlap_weighted_effect
from ambjudge.analysis.statistics.ranking import leaderboard, pairwise, rank_sets
from ambjudge.analysis.statistics.raters import agreement
from ambjudge.analysis.tables.codes_read import CODES
from ambjudge.analysis.tables.frames import WEIGHTS
from ambjudge.analysis.tables.label_tables import weighted
from labelled_cohorts import JUDGES, human_overall, some_labels, through_commands, whole

COVER, JOINT, FALSE, LABELS, WRONG, EQUALS = (
    (0.93, 0.975),
    (0.93, 1.0),
    (0.0, 0.06),
    (0.93, 0.97),
    (0.0, 0.8),
    (1.0, 1.0),
)
WARNED = "(warned where it is off)"
DESIGNS: dict[str, tuple[dict[str, Any], bool]] = {
    "baseline": ({}, False),
    "agents differ much": ({"ability": (2.2, 1.2, 0.6, 0.0, -0.8, -1.6), "cell_sd": 0.8}, False),
    "unequal repeats": ({}, True),
    "8 tasks": ({"n_tasks": 8}, False),
    "4 tasks, 1 track": ({"n_tasks": 4, "n_tracks": 1}, False),
    "3 repeats": ({"n_rep": 3}, False),
}
"""Switches of the simulator, and whether tasks are repeated unequally."""
RARE = {"rare codes": ({"alpha": (-5.12, -4.9, -5.2, -5.2, -5.4)}, False)}
CONFOUNDED = {"confounding by the run": ({"conf": 0.5}, False)}


class Tally(dict[str, tuple[tuple[float, float], list[float]]]):
    """Quantity -> its target and one share a cohort."""

    def add(self, quantity: str, target: tuple[float, float], shares: Iterable[float]) -> None:
        """One cohort's share: the mean of its rows'; a cohort that refuses them all has none."""
        known = list(shares)
        self.setdefault(quantity, (target, []))[1].extend([float(np.mean(known))] if known else [])


EQUAL = {"ability": (0.0,) * 6, "n_tracks": 1}
TRACKS: dict[str, tuple[int, ...]] = {
    "5 5 5 5 4": (5, 5, 5, 5, 4),
    "12 12": (12, 12),
    "8": (8,),
    "4 4": (4, 4),
    "3 3 3": (3, 3, 3),
    "2 x 7": (2,) * 7,
    "4": (4,),
    "20 2": (20, 2),
    "5 5 5 5 1": (5, 5, 5, 5, 1),
    "6 6 1": (6, 6, 1),
    "2 2 2 1 1": (2, 2, 2, 1, 1),
    "3 1 1 1 1": (3, 1, 1, 1, 1),
    "10 8 1 1": (10, 8, 1, 1),
}


def in_tracks(frame: pl.DataFrame, sizes: tuple[int, ...]) -> pl.DataFrame:
    """The tasks dealt into tracks of these sizes."""
    tasks = frame["task"].unique().sort().to_list()
    track = [f"track-{i}" for i, size in enumerate(sizes) for _ in range(size)]
    return frame.with_columns(
        track=pl.col("task").replace_strict(dict(zip(tasks, track, strict=True)))
    )


def thinned(frame: pl.DataFrame, seed: int, spread: float = 1.0, least: int = 2) -> pl.DataFrame:
    """Tasks repeated unequally: a log-normal share of the runs of the fullest of 24 tasks, at least
    `least` repeats a cell."""
    rng = np.random.default_rng(seed)
    tasks = frame["task"].unique().sort().to_list()
    most = frame["repeat"].max()
    keep = np.exp(spread * rng.standard_normal(len(tasks)))
    blocks = np.arange(len(tasks)) // 24
    largest = np.array([keep[blocks == block].max() for block in np.unique(blocks)])[blocks]
    keep = np.clip(np.round(most * keep / largest), least, most).astype(int)  # type: ignore[operator]
    return frame.filter(
        pl.col("repeat")
        <= pl.col("task").replace_strict(dict(zip(tasks, keep.tolist(), strict=True)))
    )


def part_of(sim: Simulation, mask: Any) -> Simulation:
    """Some runs of a simulation."""
    arrays = {
        name: getattr(sim, name)[mask]
        for name in ("agent", "task", "tier", "repeat", "eta", "luck", "codes")
    }
    return replace(sim, **arrays, noise={name: values[mask] for name, values in sim.noise.items()})


def drawn(
    design: tuple[dict[str, Any], bool], seed: int, **more: Any
) -> tuple[Simulation, pl.DataFrame]:
    """A cohort of a design, and its frame."""
    switches, thin = design
    sim = simulate(**{**switches, **more}, seed=seed)
    frame = sim.frame()
    if thin:
        left = thinned(frame, seed)
        mask = frame["run_id"].is_in(left["run_id"].implode()).to_numpy()
        return part_of(sim, mask), left
    return sim, frame


def covered(rows: pl.DataFrame, truth: dict[Any, float], *key: str) -> list[float]:
    """For each row with an interval whether it holds the truth of its key."""
    return [float(holds) for _, holds in held(rows, truth, *key)]


def held(
    rows: pl.DataFrame, truth: dict[Any, float], *key: str
) -> list[tuple[dict[str, Any], bool]]:
    """The rows that have an interval and a truth, and whether one holds the other."""
    out = []
    for row in rows.iter_rows(named=True):
        target = truth.get(row[key[0]] if len(key) == 1 else tuple(row[k] for k in key))
        if row["lo"] is not None and target is not None:
            out.append((row, row["lo"] <= target <= row["hi"]))
    return out


def ranks(tally: Tally, seed: int) -> None:
    """Equal agents: no rank may be excluded and no pair told apart, whatever the tasks of the
    tracks."""
    for name, sizes in TRACKS.items():
        frame = in_tracks(simulate(**EQUAL, n_tasks=sum(sizes), n_rep=2, seed=seed).frame(), sizes)
        sets = rank_sets(frame, prepare=False)
        open_ = sets["rank_lo"].null_count() > 0 or (
            (sets["rank_lo"] == 1).all() and (sets["rank_hi"] == 6).all()
        )
        tally.add(f"joint rank sets, equal agents, tasks by track {name}", JOINT, [float(open_)])


@functools.cache
def board_truth(name: str) -> dict[Any, float]:
    """Agents' means in the population of tasks of a design, and all differences."""
    s = Settings(**DESIGNS[name][0])
    frame = simulate(settings=replace(s, n_tasks=400 * s.n_tracks, n_rep=2), seed=4242).frame()
    by_agent = dict(board_of(frame).select("agent", "value").iter_rows())
    return by_agent | {(a, b): x - y for a, x in by_agent.items() for b, y in by_agent.items()}


def board_of(frame: pl.DataFrame) -> pl.DataFrame:
    """The leaderboard of all runs, for new tasks."""
    return leaderboard(frame, scopes=("overall",), prepare=False).filter(
        pl.col("population") == "new"
    )


def boards(tally: Tally, seed: int) -> None:
    """Agents' means and paired differences for new tasks; intervals of runs as independent, which
    must fail."""
    for name, design in DESIGNS.items():
        truth = board_truth(name)
        _, frame = drawn(design, seed)
        tally.add(f"agents' means, {name}", COVER, covered(board_of(frame), truth, "agent"))
        pairs = pairwise(frame, prepare=False).filter(pl.col("population") == "new")
        tally.add(f"pairs, {name}", COVER, covered(pairs, truth, "agent", "other"))
        sets = rank_sets(frame, prepare=False)
        true = {a: 1 + sum(truth[b] > truth[a] for b in sets["agent"]) for a in sets["agent"]}
        holds = all(
            row["rank_lo"] is None or row["rank_lo"] <= true[row["agent"]] <= row["rank_hi"]
            for row in sets.to_dicts()
        )
        tally.add(f"joint rank sets, {name}", JOINT, [float(holds)])
        if name == "baseline":
            half = 1.96 * pl.col("overall").std() / pl.len().sqrt()
            alone = frame.group_by("agent").agg(
                lo=pl.col("overall").mean() - half, hi=pl.col("overall").mean() + half
            )
            tally.add(
                "agents' means, runs as independent: wrong", WRONG, covered(alone, truth, "agent")
            )
    # One agent has a quarter of its repeats on the hard half of the tasks: it must not look better
    # for that.
    frame = simulate(**EQUAL, seed=seed).frame()
    hard = (
        frame.group_by("task")
        .agg(pl.col("overall").mean())
        .sort("overall")["task"]
        .head(12)
        .to_list()
    )
    fewer = (pl.col("agent") == "agent-1") & pl.col("task").is_in(hard) & (pl.col("repeat") > 3)
    found = pairwise(frame.filter(~fewer), prepare=False).filter(pl.col("population") == "new")
    few = "any pair found, equal agents, one with few repeats of hard tasks"
    tally.add(few, FALSE, [float((found["p_holm"] < 0.05).any())])


@functools.cache
def effect_truth(name: str) -> dict[str, float]:
    """The counterfactual effect of each code in the population of tasks of a design, with the
    weights of the estimand.

    Of 4,800 tasks: with 1,200 its own error, the same in all cohorts, costs a hundredth of
    coverage.
    """
    found = [
        sample_truth(drawn((DESIGNS | RARE)[name], 12345 + i, n_tasks=1200)[0]) for i in range(4)
    ]
    return {code: float(np.mean([each[code]["overlap"] for each in found])) for code in CODES}


def effects(tally: Tally, seed: int) -> None:
    """Effects of codes for new tasks against their counterfactual truth; additive codes, which must
    fail; and what is claimed."""
    for name, design in (DESIGNS | RARE | CONFOUNDED).items():
        sim, frame = drawn(design, seed)
        found = code_effects(frame, prepare=False)
        if name in ("baseline", *CONFOUNDED):
            least = FALSE if name in CONFOUNDED else JOINT
            tally.add(
                f"an effect is claimed where codes have effects, {name}", least, [claimed(found)]
            )
        if name in CONFOUNDED:
            continue
        for row, holds in held(
            found.filter(pl.col("population") == "new"), effect_truth(name), "code"
        ):
            tally.add(f"effect of {row['code']}, {name}", COVER, [float(holds)])
            if not holds:
                tally.add(
                    f"effect of {row['code']}, {name} {WARNED}",
                    JOINT,
                    [float(bool(row["warnings"]))],
                )
        if name == "baseline":
            cell, n = group_ids(sim.agent, sim.task, sim.tier)
            b, v = cr3(
                demean(sim.codes * 1.0, cell, n),
                demean(sim.true.overall[:, None], cell, n)[:, 0],
                sim.task,
            )
            half = t_quantile(0.975, sim.settings.n_tasks - 1) * math.sqrt(v[4, 4])
            tally.add(
                "effect of E5, additive codes: wrong",
                WRONG,
                [float(abs(b[4] - effect_truth(name)["E5"]) <= half)],
            )


def same_tasks(tally: Tally, seed: int, redraws: int = 20) -> None:
    """Effects for these tasks run again: redraws of the repeats of a cohort stand for its truth."""
    for name in ("baseline", "agents differ much", "3 repeats", "8 tasks"):
        switches = DESIGNS[name][0]
        n = switches.get("n_rep", 12)
        many = simulate(**{**switches, "n_rep": n * (redraws + 1)}, seed=seed)
        values = np.full((redraws, len(CODES)), np.nan)
        for i in range(redraws):
            again = part_of(many, many.repeat // n == i + 1)
            cell, _ = group_ids(again.agent, again.task, again.tier)
            for k in range(len(CODES)):
                fit = overlap_weighted_effect(
                    again.codes, k, again.true.overall[:, None], cell, again.task
                )
                values[i, k] = np.nan if fit is None else fit.value[0]
        target: dict[Any, float] = dict(zip(CODES, np.nanmean(values, 0).tolist(), strict=True))
        rows = code_effects(part_of(many, many.repeat // n == 0).frame(), prepare=False)
        # The mean of redraws has an error of its own, which is allowed for.
        half = (pl.col("hi") - pl.col("value")) * math.sqrt(1 + 1 / redraws)
        wider = rows.filter(pl.col("population") == "same").with_columns(
            lo=pl.col("value") - half, hi=pl.col("value") + half
        )
        for row, holds in held(wider, target, "code"):
            tally.add(f"effect of {row['code']}, same tasks, {name}", COVER, [float(holds)])
            if not holds:
                tally.add(
                    f"effect of {row['code']}, same tasks, {name} {WARNED}",
                    JOINT,
                    [float(bool(row["warnings"]))],
                )


def nulls(tally: Tally, seed: int) -> None:
    """Cohorts in which no code has an effect on Overall: how many of them yield a sentence that one
    has."""
    flat = {"slope_sd": 0.0}
    cohort_ = null_frame(simulate(**flat, seed=seed))
    for name, (switches, thin) in (
        {key: DESIGNS[key] for key in list(DESIGNS)[:4]} | CONFOUNDED
    ).items():
        frame = null_frame(simulate(**flat, **switches, seed=seed)) if switches else cohort_
        tally.add(
            f"an effect is claimed, null, {name}",
            FALSE,
            [claims(thinned(frame, seed) if thin else frame)],
        )
    rng = np.random.default_rng(seed)
    tasks = cohort_["task"].unique().sort().to_list()
    lift = pl.lit(0.0)
    for code in CODES:
        by_task = dict(zip(tasks, (8 * rng.standard_normal(len(tasks))).tolist(), strict=True))
        lift = lift + pl.when(pl.col(code)).then(pl.col("task").replace_strict(by_task)).otherwise(
            0.0
        )
    moved = cohort_.with_columns(overall=pl.col("overall") + lift)
    for name, frame in (("", moved), (", unequal repeats", thinned(moved, seed))):
        tally.add(
            f"an effect is claimed, effects of 0 on average, sd 8 over tasks{name}",
            FALSE,
            [claims(frame)],
        )
    for share in (0.2, 0.4):
        # A rule tags the lowest scores E3, until this share of its tags is the rule's.
        wanted = int(cohort_["E3"].sum() * share / (1 - share))
        low = cohort_.filter(~pl.col("E3")).sort("overall").head(wanted)["run_id"]
        tagged = pl.col("run_id").is_in(low.implode())
        frame = cohort_.with_columns(E3=pl.col("E3") | tagged, E3_score=tagged)
        tally.add(
            f"an effect is claimed, null, {share:.0%} of E3's tags read off the score",
            FALSE,
            [claims(frame)],
        )


def null_frame(sim: Simulation) -> pl.DataFrame:
    """A cohort with its codes, and scores as they would be had none fired."""
    out = sim.outcome(np.zeros_like(sim.codes))
    stages = {f"S{i + 1}": out.stages[:, i] for i in range(5)}
    facts = {
        "task_score": out.task,
        "completed": out.completed,
        "completion": out.completion,
        "format_valid": out.format_valid,
    }
    agentic = out.stages @ np.array(list(WEIGHTS.values()))
    columns = {**stages, **facts, "agentic": agentic, "overall": out.overall}
    return sim.frame().with_columns(pl.Series(name, values) for name, values in columns.items())


def claims(frame: pl.DataFrame) -> float:
    """Whether the findings name an effect of a code."""
    return claimed(code_effects(frame, prepare=False))


def claimed(found: pl.DataFrame) -> float:
    said = findings({"code_effects": found})
    return float(any(line.text.startswith("Codes that go with") for line in said))


ITEMS = ("E2", "E3", "E4", "E5", "S1a", "S2b", "S3")


@functools.cache
def label_truth(judge: str) -> tuple[dict[Any, float], dict[Any, float], dict[str, float]]:
    """In the population of tasks: agreement, agents' means by people, effects by people's codes in
    the additive model."""
    sim = simulate(**JUDGES[judge], n_tasks=1000, n_rep=3, seed=4242)
    many = whole(sim)
    target = {
        (row["item"], row["coefficient"]): row["value"] for row in agreement(*many).to_dicts()
    }
    means = dict(board_of(human_overall(*many)).select("agent", "value").iter_rows())
    frame = many[0].runs
    both = np.column_stack([sim.codes, frame["overall"].to_numpy()]).astype(float)
    # a balanced design: one after the other is all at once
    for axis in (sim.agent, sim.task, sim.tier):
        dense, n = group_ids(axis)
        both = demean(both, dense, n)
    additive = np.linalg.lstsq(both[:, :-1], both[:, -1], rcond=None)[0]
    return target, means, dict(zip(CODES, additive.tolist(), strict=True))


def labelled(tally: Tally, seed: int) -> None:
    """Corrected means, effects and agreement from labels drawn by `label next`: 60 (10 an agent)
    and 300 of 3,456 runs, two judges."""
    for judge, switches in JUDGES.items():
        target, new, additive = label_truth(judge)
        cards, gold = whole(simulate(**switches, seed=seed))
        these = dict(board_of(human_overall(cards, gold)).select("agent", "value").iter_rows())
        for budget in (60, 300):
            labels = some_labels(cards, gold, budget, seed)
            human, notes = human_scores(cards, labels, "gold")
            found = corrected_leaderboard(cards.runs, human, notes=notes).filter(
                pl.col("kind") == "corrected"
            )
            name = f"{judge}, {budget} labels"
            for population, said, truth in (
                ("same", "these runs", these),
                ("new", "new tasks", new),
            ):
                rows = found.filter(pl.col("population") == population)
                tally.add(f"corrected means, {said}, {name}", LABELS, covered(rows, truth, "agent"))
        rows = agreement(cards, labels).filter(pl.col("item").is_in(ITEMS))
        for coefficient in rows["coefficient"].unique().sort():
            shares = covered(
                rows.filter(pl.col("coefficient") == coefficient), target, "item", "coefficient"
            )
            tally.add(f"{coefficient}, {name}", LABELS, shares)
        codes, _ = weighted(labels.codes.drop("annotator"), labels.drawn)
        found = corrected_code_effects(cards.runs, codes, prepare=False)
        for row, holds in held(found.filter(pl.col("kind") == "corrected"), additive, "code"):
            said = f"corrected effect of {row['code']}, {name}"
            tally.add(said, COVER, [float(holds)])
            if not holds:
                tally.add(
                    f"{said} {WARNED}", JOINT, [float(row["human_positives"] < FEW_POSITIVES)]
                )
        raw = found.filter((pl.col("kind") == "judge") & pl.col("code").is_in(["E3", "E5"]))
        tally.add(
            f"effects on tags as they are: wrong, {name}", WRONG, covered(raw, additive, "code")
        )


def commands(tally: Tally, seed: int) -> None:
    """The command line gives what `labelled` measures, number by number (scorecards keep six digits
    of a score)."""
    for judge, switches in JUDGES.items():
        sim = simulate(**switches, seed=seed)
        cards, gold = whole(sim)
        labels = some_labels(cards, gold, 300, seed)
        human, notes = human_scores(cards, labels, "gold")
        ours = {
            "corrected_leaderboard": corrected_leaderboard(cards.runs, human, notes=notes),
            "agreement": agreement(cards, labels),
        }
        theirs = through_commands(sim, gold, 300, seed, tuple(ours))
        for name, table in ours.items():
            keys = [
                key
                for key in ("item", "coefficient", "agent", "kind", "population")
                if key in table.columns
            ]
            pairs = zip(
                *(
                    sorted(rows, key=lambda row: [str(row[key]) for key in keys])
                    for rows in (table.to_dicts(), theirs[name])
                ),
                strict=True,
            )
            alike = all(
                a[end] == b[end] or abs(a[end] - b[end]) < 1e-3
                for a, b in pairs
                for end in ("value", "lo", "hi")
            )
            tally.add(f"{name} by the command line as by Python, {judge}", EQUALS, [float(alike)])


PARTS: dict[str, Callable[[Tally, int], None]] = {
    "ranks": ranks,
    "boards": boards,
    "effects": effects,
    "same_tasks": same_tasks,
    "nulls": nulls,
    "labelled": labelled,
    "commands": commands,
}
SAVED_EVERY = 10
"""Cohorts."""


def report(tally: Tally) -> int:
    """Prints what was measured and returns how many targets are missed by more than two standard
    errors.

    An interval off its target is none where .9 of the cohorts in which it is off were warned.
    """
    missed = 0
    for quantity, ((lo, hi), shares) in tally.items():
        if quantity.endswith(WARNED):
            continue
        if not shares:
            print(f"{quantity:78} {lo:g}-{hi:g}  refused in all cohorts")
            continue
        value, n = float(np.mean(shares)), len(shares)
        # Where nothing varies, as much as a share of .95 would.
        error = max(float(np.std(shares)), 0.0 if lo == hi else 0.05) / math.sqrt(n)
        _, warned = tally.get(f"{quantity} {WARNED}", (None, []))
        verdict = "MISSED"
        if lo <= value <= hi:
            verdict = "ok"
        elif warned and np.mean(warned) >= 0.9:
            verdict = "warned"
        elif lo - 2 * error <= value <= hi + 2 * error:
            verdict = "within chance"
        missed += verdict == "MISSED"
        print(f"{quantity:78} {lo:g}-{hi:g}  {value:6.3f} ± {error:.3f} of {n:4d}  {verdict}")
    return missed


def kept(path: Path | None) -> Tally:
    """What earlier runs measured."""
    lines = json.loads(path.read_text("utf-8")) if path and path.exists() else {}
    return Tally({name: (tuple(goal), shares) for name, (goal, shares) in lines.items()})


def main(arguments: Iterable[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=", ".join(PARTS)
    )
    parser.add_argument("--cohorts", type=int, default=100)
    parser.add_argument("--seed", type=int, default=70_000)
    parser.add_argument("--into", type=Path, help="a JSON file to which what is measured is added")
    asked = parser.parse_args(list(arguments))
    tally = kept(asked.into)
    for name in asked.parts or PARTS:
        start = time.process_time()
        for r in range(asked.cohorts):
            PARTS[name](tally, asked.seed + r)
            if asked.into and ((r + 1) % SAVED_EVERY == 0 or r + 1 == asked.cohorts):
                asked.into.write_text(json.dumps(tally), encoding="utf-8")
        print(
            f"{name}: {asked.cohorts} cohorts from seed {asked.seed},"
            f" {time.process_time() - start:.0f} s of CPU",
            flush=True,
        )
    return 1 if report(tally) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
