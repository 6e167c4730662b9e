"""Simulated cohorts with true labels of all runs, samples of these, and the commands on both."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from ambjudge.analysis.simulated.simulated_cards import simulated_scorecards
from ambjudge.analysis.simulated.simulation import Simulation
from ambjudge.analysis.statistics.corrected_means import human_scores
from ambjudge.analysis.statistics.label_sampling import label_plan
from ambjudge.analysis.tables.codes_read import CODES
from ambjudge.analysis.tables.cohorts import Cohort, cohort
from ambjudge.analysis.tables.label_tables import SAMPLING_SCHEMA, Labels
from ambjudge.cli import run
from ambjudge.judge.trust.label_sources import LabelEntry, each_label

JUDGES: dict[str, dict[str, Any]] = {
    "halo": {"preset": "halo"},
    "25 % wrong": {"preset": "judge", "sens": (0.6,) * 5, "spec": (0.99, 0.9, 0.85, 0.9, 0.85)},
}


def labelled_cohort(sim: Simulation) -> tuple[Cohort, Labels]:
    """A simulated cohort with its criteria, and the true labels of all its runs."""
    frame, true = sim.frame(), sim.true
    ids = frame["run_id"]
    s1, s2, s3 = sim.judged
    lite = np.array([name == "lite" for name in sim.settings.tiers])[sim.tier]
    judged, gold = [], []
    columns = [
        (f"S1{'abcdef'[i]}", s1[:, i], true.s1_items[:, i], lite & (i > 2)) for i in range(6)
    ]
    columns += [(f"S2{'abcde'[i]}", s2[:, i], true.s2_items[:, i], lite & False) for i in range(5)]
    columns += [("S3", s3, true.s3, lite & False)]
    for name, judge_value, true_value, credited in columns:
        criterion = pl.DataFrame(
            {
                "run_id": ids,
                "criterion": [name] * sim.n,
                "value": judge_value,
                "status": np.where(credited, "credited", "scored"),
            }
        )
        judged.append(
            criterion.with_columns(
                judge=pl.lit("simulated"),
                rubric=pl.lit("simulated"),
                by=pl.lit(None, dtype=pl.String),
            )
        )
        gold.append(
            pl.DataFrame({"run_id": ids, "criterion": [name] * sim.n, "value": true_value}).filter(
                pl.Series(~credited)
            )
        )
    criteria = pl.concat(gold).select(
        "run_id", pl.lit("gold").alias("annotator"), "criterion", "value"
    )
    codes = frame.select(
        "run_id", pl.lit("gold").alias("annotator"), *(pl.col(f"{c}_human").alias(c) for c in CODES)
    )
    return Cohort(frame, pl.concat(judged), cohort([]).codes), Labels(criteria, codes)


def human_overall(cards: Cohort, gold: Labels) -> pl.DataFrame:
    """The runs with the Overall that human labels give."""
    human, _ = human_scores(cards, gold, "gold")
    return cards.runs.drop("overall").join(human.select("run_id", overall="human"), on="run_id")


def sampled_labels(cards: Cohort, gold: Labels, budget: int, seed: int) -> Labels:
    """The labels of a sample of runs, drawn as `label next` draws them."""
    plan = label_plan(cards.runs, budget, seed=seed)
    design = plan.select(
        "run_id", "probability", "stratum", annotator=pl.lit("gold"), size="stratum_size"
    )
    chosen = pl.col("run_id").is_in(plan["run_id"].implode())
    return Labels(
        gold.criteria.filter(chosen),
        gold.codes.filter(chosen),
        design.select(*SAMPLING_SCHEMA).cast(SAMPLING_SCHEMA),
    )


def tables_by_commands(
    sim: Simulation, gold: Labels, budget: int, seed: int, names: tuple[str, ...]
) -> dict[str, Any]:
    """Rows of tables of `analyze --labels`, after `label next` whose files hold the true labels."""
    values = {
        name: dict(part.select("criterion", "value").iter_rows())
        for (name,), part in gold.criteria.group_by("run_id")
    }
    fired = {row["run_id"]: row for row in gold.codes.to_dicts()}
    with tempfile.TemporaryDirectory() as folder:
        file, label_folder = Path(folder) / "cards.jsonl", Path(folder) / "labels"
        file.write_text(
            "".join(card.to_json() + "\n" for card in simulated_scorecards(sim)), encoding="utf-8"
        )
        output_of(
            "-q",
            "label",
            "next",
            file,
            "-n",
            budget,
            "--seed",
            seed,
            "--out",
            label_folder,
            "--annotator",
            "gold",
        )
        forms = [each for each in each_label(label_folder) if isinstance(each, LabelEntry)]
        for form in forms:
            run_id = form.labels.run
            label = {
                "run": run_id,
                "annotator": "gold",
                "criteria": values[run_id],
                "codes": {code: {} for code in CODES if fired[run_id][code]},
            }
            form.location.with_suffix(".json").write_text(json.dumps(label), encoding="utf-8")
        chosen = [word for name in names for word in ("--table", name)]
        output = json.loads(
            output_of(
                "-q",
                "analyze",
                file,
                "--labels",
                label_folder,
                "--store",
                "none",
                "--json",
                *chosen,
            )
        )
    return {name: output["tables"][name]["rows"] for name in names}


def output_of(*arguments: Any) -> str:
    """What a command prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        if run([str(each) for each in arguments]):
            raise SystemExit(f"failed: {arguments}")
    return out.getvalue()
