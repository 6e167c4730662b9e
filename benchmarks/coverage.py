"""Intervals, rank sets and findings against planted truth, design by design: `python benchmarks/coverage.py [part...] --cohorts N --seed S`.

Prints every quantity with its target and what was measured; exit code 1 when one is missed by more than two Monte Carlo
standard errors. Targets: intervals cover .93 to .975, rank sets hold jointly in .93 of the cohorts or more, a cohort without an
effect yields a false finding in .06 or fewer, corrections and agreement with labels drawn by `label next` cover .93 to .97.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads cost more than they give
os.environ.setdefault("POLARS_MAX_THREADS", "1")

import argparse
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from ambjudge.analysis.codes_read import CODES
from ambjudge.analysis.cohorts import Cohort, cohort
from ambjudge.analysis.effects import code_effects
from ambjudge.analysis.findings import findings
from ambjudge.analysis.frames import WEIGHTS
from ambjudge.analysis.judge_error import corrected_leaderboard, human_scores
from ambjudge.analysis.label_tables import DRAWN, Labels
from ambjudge.analysis.ranking import leaderboard, pairwise, rank_sets
from ambjudge.analysis.raters import agreement
from ambjudge.analysis.sample_sizes import label_plan
from ambjudge.analysis.simulation import Settings, Simulation, sample_truth, simulate

COVER, JOINT, FALSE, LABELS = (0.93, 0.975), (0.93, 1.0), (0.0, 0.06), (0.93, 0.97)
Tally = dict[tuple[str, tuple[float, float]], list[float]]
"""(quantity, target) -> one share a cohort."""
EQUAL = {"ability": (0.0,) * 6, "n_tracks": 1}
TRACKS: dict[str, tuple[int, ...]] = {
    "5 5 5 5 4": (5, 5, 5, 5, 4), "12 12": (12, 12), "8": (8,), "4 4": (4, 4), "3 3 3": (3, 3, 3), "2 x 7": (2,) * 7,
    "4": (4,), "20 2": (20, 2), "5 5 5 5 1": (5, 5, 5, 5, 1), "6 6 1": (6, 6, 1), "2 2 2 1 1": (2, 2, 2, 1, 1),
    "3 1 1 1 1": (3, 1, 1, 1, 1), "10 8 1 1": (10, 8, 1, 1),
}  # fmt: skip


def in_tracks(frame: pl.DataFrame, sizes: tuple[int, ...]) -> pl.DataFrame:
    """The tasks dealt into tracks of these sizes."""
    tasks = frame["task"].unique().sort().to_list()
    track = [f"track-{i}" for i, size in enumerate(sizes) for _ in range(size)]
    return frame.with_columns(track=pl.col("task").replace_strict(dict(zip(tasks, track, strict=True))))


def thinned(frame: pl.DataFrame, seed: int, spread: float = 1.0, least: int = 2) -> pl.DataFrame:
    """Tasks repeated unequally: a log-normal share of the runs of the fullest of 24 tasks, at least `least` repeats a cell."""
    rng = np.random.default_rng(seed)
    tasks = frame["task"].unique().sort().to_list()
    most = frame["repeat"].max()
    keep = np.exp(spread * rng.standard_normal(len(tasks)))
    blocks = np.arange(len(tasks)) // 24
    largest = np.array([keep[blocks == block].max() for block in np.unique(blocks)])[blocks]
    keep = np.clip(np.round(most * keep / largest), least, most).astype(int)  # type: ignore[operator]
    return frame.filter(pl.col("repeat") <= pl.col("task").replace_strict(dict(zip(tasks, keep.tolist(), strict=True))))


def kept(sim: Simulation, seed: int) -> Simulation:
    """The runs of a simulation that `thinned` keeps."""
    left = set(thinned(sim.frame(), seed)["run_id"])
    mask = np.array([run in left for run in sim.frame()["run_id"]])
    arrays = {name: getattr(sim, name)[mask] for name in ("agent", "task", "tier", "repeat", "eta", "luck", "codes")}
    return replace(sim, **arrays, noise={name: values[mask] for name, values in sim.noise.items()})


def covered(rows: pl.DataFrame, truth: dict[Any, float], *key: str) -> list[float]:
    """For each row with an interval whether it holds the truth of its key."""
    out = []
    for row in rows.iter_rows(named=True):
        target = truth.get(row[key[0]] if len(key) == 1 else tuple(row[k] for k in key))
        if row["lo"] is not None and target is not None:
            out.append(float(row["lo"] <= target <= row["hi"]))
    return out


def ranks(cohorts: int, seed: int) -> Tally:
    """Equal agents: no rank may be excluded and no pair told apart, whatever the tasks of the tracks."""
    out: Tally = defaultdict(list)
    for name, sizes in TRACKS.items():
        for r in range(cohorts):
            frame = in_tracks(simulate(**EQUAL, n_tasks=sum(sizes), n_rep=2, seed=seed + r).frame(), sizes)
            sets = rank_sets(frame, prepare=False)
            refused = sets["rank_lo"].null_count() > 0
            out[f"joint rank sets, equal agents, tasks by track {name}", JOINT].append(
                float(refused or ((sets["rank_lo"] == 1).all() and (sets["rank_hi"] == 6).all()))
            )
    return out


def board_truth(settings: Settings) -> dict[Any, float]:
    """Agents' means in the population of tasks, and all differences."""
    s = settings
    whole = simulate(settings=Settings(**{**vars(s), "n_tasks": 400 * s.n_tracks, "n_rep": 2}), seed=4242).frame()
    means = leaderboard(whole, scopes=("overall",), prepare=False).filter(pl.col("population") == "new")
    by_agent: dict[Any, float] = dict(means.select("agent", "value").iter_rows())
    return by_agent | {(a, b): x - y for a, x in by_agent.items() for b, y in by_agent.items()}


def boards(cohorts: int, seed: int) -> Tally:
    """Agents' means and paired differences for new tasks."""
    out: Tally = defaultdict(list)
    designs: dict[str, tuple[dict[str, Any], bool]] = {
        "baseline": ({}, False), "agents differ much": ({"ability": (2.2, 1.2, 0.6, 0.0, -0.8, -1.6), "cell_sd": 0.8}, False),
        "unequal repeats": ({}, True), "8 tasks, 5 tracks": ({"n_tasks": 8}, False), "4 tasks, 1 track": ({"n_tasks": 4, "n_tracks": 1}, False),
        "3 repeats": ({"n_rep": 3}, False),
    }  # fmt: skip
    for name, (switches, thin) in designs.items():
        truth = board_truth(Settings(**switches))
        for r in range(cohorts):
            frame = simulate(**switches, seed=seed + r).frame()
            frame = thinned(frame, seed + r) if thin else frame
            new = pl.col("population") == "new"
            board = leaderboard(frame, scopes=("overall",), prepare=False).filter(new)
            out[f"agents' means, {name}", COVER] += covered(board, truth, "agent")
            out[f"pairs, {name}", COVER] += covered(pairwise(frame, prepare=False).filter(new), truth, "agent", "other")
            sets = rank_sets(frame, prepare=False)
            true = {a: 1 + sum(truth[b] > truth[a] for b in sets["agent"]) for a in sets["agent"]}
            holds = all(
                row["rank_lo"] is None or row["rank_lo"] <= true[row["agent"]] <= row["rank_hi"]
                for row in sets.to_dicts()
            )
            out[f"joint rank sets, {name}", JOINT].append(float(holds))
    # One agent has a quarter of its repeats on the hard half of the tasks: it must not look better for that.
    for r in range(cohorts):
        frame = simulate(**EQUAL, seed=seed + r).frame()
        hard = frame.group_by("task").agg(pl.col("overall").mean()).sort("overall")["task"].head(12).to_list()
        fewer = (pl.col("agent") == "agent-1") & pl.col("task").is_in(hard) & (pl.col("repeat") > 3)
        found = pairwise(frame.filter(~fewer), prepare=False).filter(pl.col("population") == "new")
        out["any pair found, equal agents, one with few repeats of hard tasks", FALSE].append(
            float((found["p_holm"] < 0.05).any())
        )
    return out


def effects(cohorts: int, seed: int) -> Tally:
    """The effect of each code, for new tasks, against the counterfactual truth of the same estimand; and for these very tasks."""
    out: Tally = defaultdict(list)
    rare = {"alpha": (-5.12, -4.9, -5.2, -5.2, -5.4)}
    designs: dict[str, tuple[dict[str, Any], bool]] = {
        "baseline": ({}, False), "agents differ much": ({"ability": (2.2, 1.2, 0.6, 0.0, -0.8, -1.6), "cell_sd": 0.8}, False),
        "rare codes": (rare, False), "unequal repeats": ({}, True), "8 tasks": ({"n_tasks": 8}, False),
        "4 tasks, 1 track": ({"n_tasks": 4, "n_tracks": 1}, False), "3 repeats": ({"n_rep": 3}, False),
    }  # fmt: skip
    for name, (switches, thin) in designs.items():
        many = simulate(**{**switches, "n_tasks": 1200}, seed=12345)
        target = {code: each["overlap"] for code, each in sample_truth(kept(many, 12345) if thin else many).items()}
        for r in range(cohorts):
            sim = simulate(**switches, seed=seed + r)
            frame = thinned(sim.frame(), seed + r) if thin else sim.frame()
            found = code_effects(frame, prepare=False).filter(pl.col("status") != "refused")
            new = found.filter(pl.col("population") == "new")
            for code in target:
                row = new.filter(pl.col("code") == code)
                out[f"effect of {code}, {name}", COVER] += covered(row, target, "code")
    return out


def same_tasks(cohorts: int, seed: int) -> Tally:
    """Effects and agents' means for these tasks run again: 20 redraws of the repeats of a cohort stand for its truth."""
    out: Tally = defaultdict(list)
    for r in range(cohorts):
        base = simulate(seed=seed + r, n_rep=132)
        many = base.frame()
        whole = many.filter(pl.col("repeat") > 12)
        parts = [whole.filter((pl.col("repeat") - 13) // 12 == i) for i in range(10)]
        truths = [code_effects(part, prepare=False).filter(pl.col("population") == "same") for part in parts]
        target: dict[Any, float] = dict(pl.concat(truths).group_by("code").agg(pl.col("value").mean()).iter_rows())
        # The mean of ten redraws has an error of its own: a tenth of the variance is allowed for.
        row = code_effects(many.filter(pl.col("repeat") <= 12), prepare=False).filter(pl.col("population") == "same")
        wider = row.with_columns(half=(pl.col("hi") - pl.col("value")) * math.sqrt(1.1))
        wider = wider.with_columns(lo=pl.col("value") - pl.col("half"), hi=pl.col("value") + pl.col("half"))
        for code in ("E2", "E3", "E4", "E5"):
            out[f"effect of {code}, same tasks", COVER] += covered(wider.filter(pl.col("code") == code), target, "code")
    return out


def nulls(cohorts: int, seed: int) -> Tally:
    """Cohorts in which no code has an effect on Overall: how many of them yield a sentence that one has."""
    out: Tally = defaultdict(list)
    flat = {"slope_sd": 0.0}
    designs: dict[str, tuple[dict[str, Any], bool]] = {
        "baseline": ({}, False), "agents differ much": ({"ability": (2.2, 1.2, 0.6, 0.0, -0.8, -1.6), "cell_sd": 0.8}, False),
        "unequal repeats": ({}, True), "8 tasks": ({"n_tasks": 8}, False), "confounding by the run": ({"conf": 0.5}, False),
    }  # fmt: skip
    for name, (switches, thin) in designs.items():
        for r in range(cohorts):
            frame = null_frame(simulate(**flat, **switches, seed=seed + r))
            out[f"an effect is claimed, null, {name}", FALSE].append(
                claims(thinned(frame, seed + r) if thin else frame)
            )
    for name, thin in (("", False), (", unequal repeats", True)):
        for r in range(cohorts):
            frame = null_frame(simulate(**flat, seed=seed + r))
            rng = np.random.default_rng(seed + r)
            tasks = frame["task"].unique().sort().to_list()
            lift = pl.lit(0.0)
            for code in CODES:
                by_task = dict(zip(tasks, (8 * rng.standard_normal(len(tasks))).tolist(), strict=True))
                lift = lift + pl.when(pl.col(code)).then(pl.col("task").replace_strict(by_task)).otherwise(0.0)
            frame = frame.with_columns(overall=pl.col("overall") + lift)
            frame = thinned(frame, seed + r) if thin else frame
            out[f"an effect is claimed, effects of 0 on average, sd 8 over tasks{name}", FALSE].append(claims(frame))
    for share in (0.2, 0.4):
        for r in range(cohorts):
            frame = null_frame(simulate(**flat, seed=seed + r))
            # A rule tags the lowest scores E3, until this share of its tags is the rule's.
            wanted = int(frame["E3"].sum() * share / (1 - share))
            low = frame.filter(~pl.col("E3")).sort("overall").head(wanted)["run_id"]
            tagged = pl.col("run_id").is_in(low.implode())
            frame = frame.with_columns(E3=pl.col("E3") | tagged, E3_score=tagged)
            out[f"an effect is claimed, null, {share:.0%} of E3's tags read off the score", FALSE].append(claims(frame))
    return out


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
    return float(
        any(
            "Codes that go with" in line and "Caution" not in line
            for line in findings({"code_effects": code_effects(frame, prepare=False)})
        )
    )


HALO, NOISY = {"preset": "halo"}, {"preset": "judge", "sens": (0.6,) * 5, "spec": (0.99, 0.9, 0.85, 0.9, 0.85)}


def labelled(cohorts: int, seed: int) -> Tally:
    """Corrected means and agreement from labels drawn by `label next`: 60 (10 an agent) and 300 of 3,456 runs, two judges."""
    out: Tally = defaultdict(list)
    for judge, switches in (("halo", HALO), ("25 % wrong", NOISY)):
        many = whole(simulate(**switches, n_tasks=1000, n_rep=3, seed=4242))
        target = {(row["item"], row["coefficient"]): row["value"] for row in agreement(*many).to_dicts()}
        board = leaderboard(human_overall(*many), scopes=("overall",), prepare=False)
        new: dict[Any, float] = dict(board.filter(pl.col("population") == "new").select("agent", "value").iter_rows())
        for budget in (60, 300):
            for r in range(cohorts):
                cards, gold = whole(simulate(**switches, seed=seed + r))
                plan = label_plan(cards.runs, budget, seed=seed + r)
                drawn = plan.select("run_id", "probability", "stratum", annotator=pl.lit("gold"), size="stratum_size")
                chosen = pl.col("run_id").is_in(plan["run_id"].implode())
                labels = Labels(
                    gold.criteria.filter(chosen), gold.codes.filter(chosen), drawn.select(*DRAWN).cast(DRAWN)
                )
                human, notes = human_scores(cards, labels, "gold")
                found = corrected_leaderboard(cards.runs, human, notes=notes).filter(pl.col("kind") == "corrected")
                true = leaderboard(human_overall(cards, gold), scopes=("overall",), prepare=False)
                these: dict[Any, float] = dict(
                    true.filter(pl.col("population") == "new").select("agent", "value").iter_rows()
                )
                name = f"{judge}, {budget} labels"
                out[f"corrected means, these runs, {name}", LABELS] += covered(
                    found.filter(pl.col("population") == "same"), these, "agent"
                )
                out[f"corrected means, new tasks, {name}", LABELS] += covered(
                    found.filter(pl.col("population") == "new"), new, "agent"
                )
                if budget == 300:
                    rows = agreement(cards, labels).filter(pl.col("item").is_in(["E2", "E3", "E4", "E5", "S3"]))
                    for coefficient in rows["coefficient"].unique().sort():
                        part = rows.filter(pl.col("coefficient") == coefficient)
                        out[f"{coefficient}, {name}", LABELS] += covered(part, target, "item", "coefficient")
    return out


def whole(sim: Simulation) -> tuple[Cohort, Labels]:
    """A simulated cohort as frames with criteria, and labels of all its runs: what is true."""
    frame, true = sim.frame(), sim.true
    ids = frame["run_id"]
    s1, s2, s3 = sim.judged
    lite = np.array([name == "lite" for name in sim.settings.tiers])[sim.tier]
    judged, gold = [], []
    columns = [(f"S1{'abcdef'[i]}", s1[:, i], true.s1_items[:, i], lite & (i > 2)) for i in range(6)]
    columns += [(f"S2{'abcde'[i]}", s2[:, i], true.s2_items[:, i], lite & False) for i in range(5)]
    columns += [("S3", s3, true.s3, lite & False)]
    for name, said, right, credited in columns:
        both = pl.DataFrame(
            {
                "run_id": ids,
                "criterion": [name] * sim.n,
                "value": said,
                "status": np.where(credited, "credited", "scored"),
            }
        )
        judged.append(both.with_columns(judge=pl.lit("simulated"), rubric=pl.lit("simulated")))
        gold.append(
            pl.DataFrame({"run_id": ids, "criterion": [name] * sim.n, "value": right}).filter(pl.Series(~credited))
        )
    criteria = pl.concat(gold).select("run_id", pl.lit("gold").alias("annotator"), "criterion", "value")
    codes = frame.select("run_id", pl.lit("gold").alias("annotator"), *(pl.col(f"{c}_human").alias(c) for c in CODES))
    return Cohort(frame, pl.concat(judged), cohort([]).codes), Labels(criteria, codes)


def human_overall(cards: Cohort, gold: Labels) -> pl.DataFrame:
    """The runs with Overall as people would have it."""
    human, _ = human_scores(cards, gold, "gold")
    return cards.runs.drop("overall").join(human.select("run_id", overall="human"), on="run_id")


PARTS: dict[str, Callable[[int, int], Tally]] = {
    "ranks": ranks,
    "boards": boards,
    "effects": effects,
    "same_tasks": same_tasks,
    "nulls": nulls,
    "labelled": labelled,
}


def report(tally: Tally, cohorts: int) -> int:
    """Prints the lines of a part and returns how many are missed by more than two standard errors of `cohorts` cohorts."""
    missed = 0
    for (quantity, (lo, hi)), shares in tally.items():
        value, n = float(np.mean(shares)) if shares else 0.0, len(shares)
        if not shares:
            print(f"{quantity:72} {lo:g}-{hi:g}  refused in all cohorts", flush=True)
            continue
        error = 2 * math.sqrt(max(value * (1 - value), 0.0475) / cohorts)
        verdict = "ok" if lo <= value <= hi else "within chance" if lo - error <= value <= hi + error else "MISSED"
        missed += verdict == "MISSED"
        print(f"{quantity:72} {lo:g}-{hi:g}  {value:6.3f}  of {n:5d}  {verdict}", flush=True)
    return missed


def main(arguments: Iterable[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--cohorts", type=int, default=100)
    parser.add_argument("--seed", type=int, default=70_000)
    asked = parser.parse_args(list(arguments))
    missed = 0
    for name in asked.parts or PARTS:
        start = time.perf_counter()
        tally = PARTS[name](asked.cohorts, asked.seed)
        print(f"\n== {name}: {asked.cohorts} cohorts from seed {asked.seed} ({time.perf_counter() - start:.0f} s)")
        missed += report(tally, asked.cohorts)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
