"""Scorecards in, frames out: equal whatever they come from, honest about what cannot be read."""

from __future__ import annotations

import csv
import json

import polars as pl
import pytest
from ambjudge import analysis
from ambjudge.analysis import cohort, frame, read_frame, simulate, validate_scores, write_frame
from ambjudge.analysis.figures import draw
from ambjudge.analysis.simulated.simulated_cards import simulated_scorecards
from ambjudge.analysis.tables.frames import FREE, RUN_SCHEMA, conform, stage_columns
from ambjudge.error_codes.models import FiredCode
from ambjudge.errors import InputError
from ambjudge.judge.card.scorecard import ScoreCard
from polars.testing import assert_frame_equal


@pytest.fixture(scope="module")
def sim():
    return simulate(n_tasks=6, n_rep=3, seed=3, circ_thr=0.3)


@pytest.fixture(scope="module")
def written(sim, tmp_path_factory):
    path = tmp_path_factory.mktemp("cohort") / "scorecards.jsonl"
    path.write_text(
        "".join(card.to_json() + "\n" for card in simulated_scorecards(sim)), encoding="utf-8"
    )
    return path


def test_the_simulated_frame_is_what_reading_its_cards_gives(sim, written):
    read, direct = frame(written), sim.frame()
    filled = [
        name
        for name in direct.columns
        if name in read.columns and direct[name].null_count() < direct.height
    ]
    assert len(filled) > 40
    # Serialised scores have 4 decimals and Overall 2.
    assert_frame_equal(read.select(filled), direct.select(filled), abs_tol=0.006, check_exact=False)
    assert list(read.columns) == [*RUN_SCHEMA, *FREE]


def test_cards_objects_dicts_and_files_agree(sim, written, tmp_path):
    cards = list(simulated_scorecards(sim))[:20]
    as_dicts = frame([card.to_dict() for card in cards])
    listed = tmp_path / "cards.json"
    listed.write_text(json.dumps([card.to_dict() for card in cards]))
    assert_frame_equal(frame(listed), as_dicts)
    lines = tmp_path / "cards.jsonl"
    lines.write_text("".join(card.to_json() + "\n" for card in cards))
    assert_frame_equal(frame(lines), as_dicts)
    assert frame(cards).height == 20
    assert ScoreCard.model_validate_json(cards[0].to_json()).run.id == "run-000000"


def test_groups_of_ones_own_have_columns_tables_and_a_leaderboard(sim, tmp_path):
    cards = []
    for card in list(simulated_scorecards(sim))[:60]:
        stages = {"care": card.stages["S1"], "honesty": card.stages["S3"]}
        cards.append(
            card.model_copy(
                update={"stages": stages, "overall": None, "overall_bounds": (0.0, 100.0)}
            )
        )
    whole = cohort(cards)
    assert whole.runs["group.care"].to_list() == [card.stages["care"].score for card in cards]
    assert stage_columns(whole.runs) == ["group.care", "group.honesty"]
    tables = analysis.all_tables(
        whole, outcome="group.care", only=["leaderboard", "stages", "tiers", "pairwise"]
    )
    assert set(tables["stages"]["stage"]) == {"care", "honesty", "agentic", "task", "overall"}
    assert tables["leaderboard"]["value"].count()
    assert "group.care" in tables["tiers"]["outcome"].to_list()
    drawn = draw("stage_profile", tables, whole.runs, "group.care", png=False, narrow=True)
    assert "honesty" in drawn.svg
    assert "honesty" in drawn.narrow
    write_frame(whole.runs, tmp_path / "runs.parquet")
    assert read_frame(tmp_path / "runs.parquet")["group.care"].equals(whole.runs["group.care"])


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_frames_survive_files(sim, tmp_path, suffix):
    table = sim.frame()
    path = tmp_path / f"runs.{suffix}"
    write_frame(table, path)
    again = read_frame(path)
    assert_frame_equal(
        again.select(list(RUN_SCHEMA)), table.select(list(RUN_SCHEMA)), check_exact=False
    )
    assert frame(path).height == table.height


@pytest.mark.parametrize(
    "text",
    [
        "007",
        "1.50",
        "true",
        "1e5",
        "=1+1",
        "'=1",
        " ",
        "a\r\nb",
        '"',
        "2026-01-01",
        "NaN",
        "\ufeffx",
    ],
)
def test_texts_survive_csv_as_they_are(sim, tmp_path, text):
    table = sim.frame().head(2).with_columns(run_id=pl.lit(text), agent=pl.lit(text), model=None)
    write_frame(table, tmp_path / "runs.csv")
    again = read_frame(tmp_path / "runs.csv")
    assert again.select("run_id", "agent", "model").rows() == [(text, text, None)] * 2
    cell = next(csv.DictReader((tmp_path / "runs.csv").open(encoding="utf-8", newline="")))[
        "run_id"
    ]
    assert not cell.startswith(("=", "+", "-", "@"))


def test_criteria_and_codes_stand_beside_the_runs(sim):
    whole = cohort(simulated_scorecards(sim))
    assert whole.criteria.height == sim.n * 12
    assert set(whole.criteria["status"].cast(pl.String).unique()) == {"scored", "credited"}
    assert whole.codes.filter(pl.col("independence") == "from_score").height == int(
        sim.tags[1].sum()
    )


@pytest.mark.parametrize(
    ("by", "independence", "columns"),
    [
        ("detector:missing_files", "from_files", ["E3_detector", "E3_fact"]),
        ("detector:wrong_files_unnoticed", "from_files", ["E3_detector"]),
        ("judge:heuristic", "from_judge", ["E3_judge"]),
        ("detector:near_zero_metric", "from_score", ["E3_score"]),
    ],
    ids=["fact", "detector", "judge", "score"],
)
def test_columns_say_what_a_code_was_read_from(sim, by, independence, columns):
    code = FiredCode(
        code="E3",
        taxonomy="paper",
        stage="S5",
        turns=(1,),
        why="x",
        by=by,
        confidence=0.8,
        independence=independence,
    )
    row = frame([next(iter(simulated_scorecards(sim))).model_copy(update={"codes": (code,)})]).row(
        0, named=True
    )
    assert [name for name in row if name.startswith("E3_") and row[name] is True] == columns


def test_credited_items_leave_the_free_mean_in_every_tier(sim):
    runs = cohort(simulated_scorecards(sim)).runs
    expected = sim.judged[0][:, :3].mean(1)
    assert abs(runs["S1_free"].to_numpy() - expected).max() < 1e-9


def test_bad_lines_are_named_and_the_rest_is_read(sim, tmp_path):
    cards = [card.to_json() for card in list(simulated_scorecards(sim))[:3]]
    path = tmp_path / "cards.jsonl"
    path.write_text(
        "\n".join([cards[0], "{broken", '{"schema": "other/1"}', "[]", "null", "\x00", cards[1]])
        + "\n"
    )
    whole = cohort(path)
    assert whole.runs.height == 2
    assert len(whole.problems) == 5
    assert ":2: " in whole.problems[0]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", b"nonsense\n"),
        ("a.parquet", b"nonsense"),
        ("a.csv", b"x,y\n1,2\n"),
        ("a.json", b"\xff\xfe"),
    ],
    ids=["jsonl", "parquet", "csv", "binary"],
)
def test_unreadable_files_are_one_line_errors(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        frame(path)
    assert "\n" not in str(error.value)


def test_missing_and_empty_places(tmp_path):
    with pytest.raises(InputError):
        frame(tmp_path / "absent")
    with pytest.raises(InputError):
        frame(tmp_path)
    assert frame([]).height == 0
    with pytest.raises(InputError):
        conform(pl.DataFrame({"a": [1]}))


TAMPERED = {
    "identity": (pl.col("overall") + 1, "overall", "overall = 50 agentic + 50 task"),
    "agentic": ((pl.col("agentic") * 0.5), "agentic", "agentic = weighted stages"),
    "range": (pl.lit(1.5), "S1", "values in range"),
    "copies": (pl.lit("same"), "sha256", "same content twice"),
    "ids": (pl.lit("run"), "run_id", "same run twice"),
    "policies": (
        pl.when(pl.col("repeat") == 1).then(pl.lit("zero")).otherwise(pl.lit("renormalize")),
        "missing_policy",
        "one missing_policy",
    ),
    "evidence": (pl.col("repeat") == 1, "strict_evidence", "one strict_evidence"),
}


@pytest.mark.parametrize(("value", "column", "check"), TAMPERED.values(), ids=TAMPERED)
def test_validation_names_what_is_wrong(sim, value, column, check):
    clean = validate_scores(sim.frame())
    assert clean.filter(pl.col("status") == "problem").is_empty()
    found = validate_scores(sim.frame().with_columns(value.alias(column))).filter(
        pl.col("check") == check
    )
    assert found["status"].item() == "problem"
    assert found["count"].item() > 0


def test_validation_tells_which_missing_policy_was_used(sim):
    stage = pl.when(pl.col("repeat") == 1).then(None).otherwise(pl.col("S2"))
    table = sim.frame().with_columns(stage.alias("S2"))
    rescaled = sum(
        w * pl.col(s).fill_null(0)
        for s, w in (("S1", 0.25), ("S2", 0.15), ("S3", 0.35), ("S4", 0.15), ("S5", 0.1))
    )
    table = table.with_columns(agentic=rescaled).with_columns(
        overall=50 * (pl.col("agentic") + pl.col("task_score"))
    )
    found = validate_scores(table)
    assert found.filter(pl.col("check") == "missing policy renormalize")["count"].item() > 0
