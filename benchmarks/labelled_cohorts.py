"""Simulated cohorts with human labels of all their runs: what is true, labels as `label next` draws
them, and the commands on both."""

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
from ambjudge.analysis.tables.label_tables import DRAWN_SCHEMA, Labels
from ambjudge.cli import run

JUDGES: dict[str, dict[str, Any]] = {
    "halo": {"preset": "halo"},
    "25 % wrong": {"preset": "judge", "sens": (0.6,) * 5, "spec": (0.99, 0.9, 0.85, 0.9, 0.85)},
}


def whole(sim: Simulation) -> tuple[Cohort, Labels]:
    """A simulated cohort as frames with criteria, and labels of all its runs: what is true."""
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
            pl.DataFrame({"run_id": ids, "criterion": [name] * sim.n, "value": right}).filter(
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
    """The runs with Overall as people would have it."""
    human, _ = human_scores(cards, gold, "gold")
    return cards.runs.drop("overall").join(human.select("run_id", overall="human"), on="run_id")


def some_labels(cards: Cohort, gold: Labels, budget: int, seed: int) -> Labels:
    """The labels of runs drawn as `label next` draws them."""
    plan = label_plan(cards.runs, budget, seed=seed)
    how = plan.select(
        "run_id", "probability", "stratum", annotator=pl.lit("gold"), size="stratum_size"
    )
    chosen = pl.col("run_id").is_in(plan["run_id"].implode())
    return Labels(
        gold.criteria.filter(chosen), gold.codes.filter(chosen), how.select(*DRAWN_SCHEMA).cast(DRAWN_SCHEMA)
    )


def through_commands(
    sim: Simulation, gold: Labels, budget: int, seed: int, names: tuple[str, ...]
) -> dict[str, Any]:
    """Rows of tables of `analyze --labels` after `label next`, whose files were filled in with the
    truth."""
    values = {
        name: dict(part.select("criterion", "value").iter_rows())
        for (name,), part in gold.criteria.group_by("run_id")
    }
    fired = {row["run_id"]: row for row in gold.codes.to_dicts()}
    with tempfile.TemporaryDirectory() as folder:
        file, place = Path(folder) / "cards.jsonl", Path(folder) / "labels"
        file.write_text(
            "".join(card.to_json() + "\n" for card in simulated_scorecards(sim)), encoding="utf-8"
        )
        said(
            "-q",
            "label",
            "next",
            file,
            "-n",
            budget,
            "--seed",
            seed,
            "--out",
            place,
            "--annotator",
            "gold",
        )
        for path in (place / "gold").iterdir():
            label = json.loads(path.read_text("utf-8"))
            label["criteria"] = values[label["run"]]
            label["codes"] = {
                code: {"turns": [], "why": ""} for code in CODES if fired[label["run"]][code]
            }
            path.write_text(json.dumps(label), encoding="utf-8")
        chosen = [word for name in names for word in ("--table", name)]
        found = json.loads(
            said("-q", "analyze", file, "--labels", place, "--store", "none", "--json", *chosen)
        )
    return {name: found["tables"][name]["rows"] for name in names}


def said(*arguments: Any) -> str:
    """What a command prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        if run([str(each) for each in arguments]):
            raise SystemExit(f"failed: {arguments}")
    return out.getvalue()
