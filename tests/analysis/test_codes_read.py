"""What nobody read stays unknown: in frames, files, rates, counts, effects, figures and
sentences."""

from __future__ import annotations

import random

import polars as pl
import pytest
from ambjudge.analysis import (
    agreement,
    all_tables,
    cliff,
    code_effects,
    code_prevalence,
    cohort,
    frame,
    label_plan,
    placebo,
    read_frame,
    recovery,
    simulate,
    write_frame,
)
from ambjudge.analysis.figures import draw
from ambjudge.analysis.report.display import display
from ambjudge.analysis.report.findings import findings
from ambjudge.analysis.simulated.simulated_cards import simulated_scorecards
from ambjudge.analysis.statistics.run_arrays import arrays_by_code, build_arrays
from ambjudge.analysis.tables.codes_read import CODES, READ_SCHEMA
from ambjudge.analysis.tables.label_tables import Labels, read_labels
from ambjudge.error_codes.models import FiredCode
from ambjudge.judge.card.scorecard import ScoreCard
from polars.testing import assert_frame_equal

SIM = simulate(seed=4, n_tasks=8, n_rep=6, n_agents=4)
CARDS = list(simulated_scorecards(SIM))
N = len(CARDS)


def fired(code: str, independence: str = "from_judge") -> FiredCode:
    by = "judge:m" if independence == "from_judge" else "detector:d"
    return FiredCode(
        code=code,
        taxonomy="paper",
        stage="S3",
        turns=(1,),
        why="w",
        by=by,
        confidence=1.0,
        independence=independence,
    )


def unread(card: ScoreCard, kept: float = 0.15) -> ScoreCard:
    """The card as rules alone write it: facts decide E2, E4, E5 and show a few of E1 and E3, nobody
    reads the run."""
    chance = random.Random(card.run.id)
    codes = [c for c in card.codes if c.code not in ("E1", "E3") or chance.random() < kept]
    codes = [c.model_copy(update={"by": "detector:d", "independence": "from_trace"}) for c in codes]
    said = {c.code for c in codes}
    read = {
        c: "present" if c in said else "not_read" if c in ("E1", "E3") else "absent" for c in CODES
    }
    return card.model_copy(update={"codes": tuple(codes), "codes_read": read})


RULES = frame([unread(card) for card in CARDS])
MIXED = frame([unread(card) if i % 3 == 0 else card for i, card in enumerate(CARDS)])
READ = N - len(range(0, N, 3))
FEW = frame([card if i % 60 == 0 else unread(card) for i, card in enumerate(CARDS)])


# Frames


def test_the_four_readings_of_a_card_are_true_false_and_null() -> None:
    said = {"E1": "cannot_tell", "E2": "absent", "E3": "present", "E4": "not_read", "E5": "absent"}
    row = frame([CARDS[0].model_copy(update={"codes": (fired("E3"),), "codes_read": said})]).row(
        0, named=True
    )
    assert [row[code] for code in CODES] == [None, False, True, None, False]
    assert [row[f"{code}_read"] for code in CODES] == list(said.values())
    assert [row[f"{code}_judge"] for code in CODES] == [None, False, True, None, False]
    assert (row["E3_fact"], row["E4_fact"]) == (False, None)
    assert (row["diagnosed"], row["n_codes"], row["code_pairs"]) == (True, None, None)


def test_cards_of_older_versions_are_absent_by_facts_and_not_read_for_the_rest() -> None:
    old = CARDS[0].model_copy(
        update={"codes": (fired("E1"), fired("E4", "from_files")), "codes_read": {}}
    )
    row = frame([old]).row(0, named=True)
    assert [row[f"{code}_read"] for code in CODES] == [
        "present",
        "absent",
        "not_read",
        "present",
        "absent",
    ]
    assert [row[code] for code in CODES] == [True, False, None, True, False]
    assert row["diagnosed"] is False


def test_a_fired_code_is_present_whatever_else_the_card_says() -> None:
    card = CARDS[0].model_copy(
        update={"codes": (fired("E3"),), "codes_read": dict.fromkeys(CODES, "absent")}
    )
    assert frame([card])["E3"].item() is True


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_null_survives_files(tmp_path, suffix) -> None:
    path = tmp_path / f"runs.{suffix}"
    write_frame(MIXED, path)
    assert_frame_equal(read_frame(path).select(list(READ_SCHEMA)), MIXED.select(list(READ_SCHEMA)))


def test_a_frame_of_an_older_version_is_read_as_its_cards_are(tmp_path) -> None:
    new = [name for name in READ_SCHEMA if name.endswith("_read") or name == "diagnosed"]
    old = RULES.drop(new).with_columns(pl.col(c).fill_null(False) for c in CODES)
    write_frame(old, tmp_path / "runs.parquet")
    again = read_frame(tmp_path / "runs.parquet")
    assert_frame_equal(again.select(list(READ_SCHEMA)), RULES.select(list(READ_SCHEMA)))


# Nobody read E1 and E3


@pytest.fixture(scope="module")
def rules() -> dict[str, pl.DataFrame]:
    return all_tables(
        RULES,
        only=[n for n in all_tables(RULES.head(1)) if n not in ("explained", "leave_agent_out")],
    )


def test_no_table_of_an_unread_cohort_has_a_number_for_what_was_not_read(rules) -> None:
    for name, table in rules.items():
        if "code" not in table.columns or name in ("codes_read", "code_stages"):
            continue
        part = table.filter(pl.col("code").is_in(["E1", "E3"]))
        assert part.height
        for column in {"value", "lo", "fired", "cells_varying", "p_code_given_high"} & set(
            part.columns
        ):
            assert part[column].null_count() == part.height, (name, column)
        assert part["reason"].null_count() == 0
    single = rules["cliff"].filter(pl.col("group").is_in(["E1", "E3"]))
    assert single["runs"].null_count() == single["share"].null_count() == single.height == 4


def test_the_cliff_says_which_codes_it_counts(rules) -> None:
    for name in ("cliff", "recovery"):
        assert rules[name]["codes"].unique().to_list() == ["E2, E4, E5"]
        warned = rules[name].filter(pl.col("value").is_not_null())["warnings"].list.join(" ")
        assert warned.str.contains(f"read in {N} of {N} runs").all()
        assert warned.str.contains(r"codes that are not counted: E1 \(read in 0 of").all()
    clean = RULES.filter(~pl.any_horizontal("E2", "E4", "E5"))["overall"].mean()
    first = rules["cliff"].filter((pl.col("group") == "0") & (pl.col("population") == "new"))
    assert first["value"].item() == pytest.approx(clean)


def test_what_facts_show_is_no_rate_but_a_bound(rules) -> None:
    shown = int(RULES["E3"].sum())
    row = (
        rules["codes"]
        .filter((pl.col("code") == "E3") & (pl.col("measure") == "rate per run"))
        .row(0, named=True)
    )
    assert shown > 0
    assert (row["value"], row["read"], row["runs"]) == (None, 0, N)
    assert f"it fired in {shown} of all" in row["reason"]
    counts = rules["codes_read"].filter(pl.col("code") == "E3").row(0, named=True)
    assert (counts["present"], counts["fired_unread"], counts["absent"]) == (shown, shown, 0)


def test_sentences_name_what_was_not_read(rules) -> None:
    said = [finding.text for finding in findings(rules)]
    assert any(f"E1 and E3 were read in none of {N} runs" in line for line in said)
    assert any("the fired codes E2, E4, E5" in line for line in said)
    assert any("one fired code of E2, E4, E5" in line for line in said)
    assert any("Too few runs were read for E1 and E3" in line for line in said)
    assert not any("knowledge code" in line for line in said)


def test_checks_note_it_and_call_no_unread_code_rare(rules) -> None:
    checks = {row["check"]: row for row in rules["checks"].to_dicts()}
    assert checks["codes read"]["status"] == "note"
    assert checks["codes read"]["count"] > 0.9 * N
    assert "E3" not in checks["firings"]["detail"]


def test_figures_show_it_as_not_read(rules) -> None:
    rates = draw("code_rates", rules, RULES, png=False)
    assert f"not read (0 of {N} read)" in rates.svg
    assert "E3 in 0" in rates.caption
    assert "unknown, not zero" in rates.caption
    steps = draw("cliff", rules, RULES, png=False)
    assert "not read" in steps.svg
    assert f"Codes counted: E2, E4, E5, read in {N} of {N} runs" in steps.caption
    assert f"E3 in 0 of {N}" in draw("code_effects", rules, RULES, png=False).caption
    assert "Codes counted: E2, E4, E5" in draw("recovery", rules, RULES, png=False).caption


def test_unread_runs_are_a_stratum_of_their_own_when_labels_are_planned() -> None:
    plan = label_plan(RULES, 50)
    assert "not read" in plan["stratum"].to_list()
    assert "none" not in plan["stratum"].to_list()


def test_a_judge_that_did_not_read_gets_no_agreement_from_what_facts_show() -> None:
    human = SIM.frame().select(
        "run_id", pl.lit("gold").alias("annotator"), *(pl.col(f"{c}_human").alias(c) for c in CODES)
    )
    found = agreement(
        cohort([unread(card) for card in CARDS]), Labels(read_labels([]).criteria, human)
    )
    e3 = found.filter(pl.col("item") == "E3").row(0, named=True)
    assert (e3["value"], e3["n"]) == (None, 0)
    assert "was read in none" in e3["reason"]
    assert (
        found.filter((pl.col("item") == "E5") & (pl.col("coefficient") == "agreement"))["n"].item()
        == N
    )


def test_the_tags_of_a_judge_are_unknown_where_none_looked() -> None:
    found = code_prevalence(RULES, source="judge").filter(pl.col("measure") == "rate per run")
    assert found["value"].null_count() == found.height
    assert (
        code_prevalence(RULES, source="independent").filter(pl.col("code") == "E5")["read"][0] == N
    )


# Some runs were read


def test_rates_are_of_the_runs_that_were_read() -> None:
    found = code_prevalence(MIXED).filter(pl.col("population") == "new")
    truth = SIM.frame()["E3"].to_numpy()[[i % 3 != 0 for i in range(N)]]
    rate = found.filter((pl.col("code") == "E3") & (pl.col("measure") == "rate per run")).row(
        0, named=True
    )
    # Runs that nobody read and where a fact shows the code would push the rate up: they are no part
    # of the sample.
    assert rate["value"] == pytest.approx(truth.mean())
    assert (rate["read"], rate["runs"], rate["fired"]) == (READ, N, int(truth.sum()))
    e5 = found.filter((pl.col("code") == "E5") & (pl.col("measure") == "rate per run")).row(
        0, named=True
    )
    assert e5["read"] == N
    shares = found.filter(pl.col("measure") == "share of fired codes")
    assert shares["value"].sum() == pytest.approx(1)
    assert set(shares["read"]) == {READ}
    shown = display(code_prevalence(MIXED), "codes")
    assert f"{READ} of {N}" in {cell.text for row in shown.rows for cell in row}


def test_effects_and_counts_use_the_runs_that_were_read() -> None:
    d = build_arrays(MIXED)
    assert (d.n, d.n_scored, d.code_names) == (READ, N, CODES)
    assert any(f"read in {READ} of {N} runs" in note for note in d.notes)
    alone = SIM.frame().filter(pl.Series([i % 3 != 0 for i in range(N)]))
    columns = ["code", "population", "value", "se", "p_holm", "fired"]
    assert_frame_equal(
        code_effects(MIXED).select(columns), code_effects(alone).select(columns), abs_tol=0.01
    )
    assert (
        code_effects(MIXED)
        .filter(pl.col("value").is_not_null())["warnings"]
        .list.join(" ")
        .str.contains(f"read in {READ} of {N} runs")
        .all()
    )
    assert set(cliff(MIXED)["n"]) == {READ}
    assert recovery(MIXED)["runs"][0] == int((alone["n_codes"] >= 2).sum())


def test_too_few_readings_are_refused_with_a_sentence() -> None:
    words = f"E3 was read in {-(-N // 60)} of {N} runs; at least 10 are needed"
    rate = code_prevalence(FEW).filter(
        (pl.col("code") == "E3") & (pl.col("measure") == "rate per run")
    )
    for table in (rate, code_effects(FEW), placebo(FEW)):
        part = table.filter(pl.col("code") == "E3")
        assert part["value"].null_count() == part.height
        assert part["reason"].str.contains(words).all()
    # The others go on without it, and say so.
    assert build_arrays(FEW).code_names == ("E2", "E4", "E5")
    e5 = code_effects(FEW).filter(pl.col("code") == "E5").row(0, named=True)
    assert e5["value"] < -20
    assert any("not adjusted for" in text and "E3 (read in" in text for text in e5["warnings"])


def test_cannot_tell_now_and_then_costs_these_runs_only() -> None:
    said = [
        (
            card.model_copy(update={"codes_read": {**card.codes_read, "E1": "cannot_tell"}})
            if i % 10 == 0
            else card
        )
        for i, card in enumerate(CARDS)
    ]
    runs = frame([card for card in said if not any(c.code == "E1" for c in card.codes)])
    parts = arrays_by_code(runs)
    assert [codes for _, codes in parts] == [CODES]
    assert parts[0][0].n == runs["E1"].is_not_null().sum() < runs.height


def test_a_cohort_that_was_read_throughout_has_no_word_about_it() -> None:
    whole = frame(CARDS)
    assert build_arrays(whole).notes == ()
    assert not any(
        "read" in line.text
        for line in findings(all_tables(whole, only=["codes", "codes_read", "cliff"]))
    )


# What judging cost


def test_judge_cost_splits_input_tokens_where_every_card_says() -> None:
    def spent(card: ScoreCard, **use: int | None) -> ScoreCard:
        return card.model_copy(
            update={"judge": card.judge.model_validate({"name": "m", "input_tokens": 100, **use})}
        )

    told = [spent(card, cached_tokens=60, cache_write_tokens=30) for card in CARDS[:3]]
    row = all_tables(cohort(told), only=["judge_cost"])["judge_cost"].row(0, named=True)
    assert row["input_tokens"] == 300
    assert row["uncached_tokens"] == 30
    assert row["cached_tokens"] == 180
    assert row["cache_write_tokens"] == 90
    assert row["reason"] is None
    mixed = all_tables(
        cohort([*told, spent(CARDS[3]), spent(CARDS[4], cached_tokens=None)]), only=["judge_cost"]
    )["judge_cost"]
    row = mixed.row(0, named=True)
    assert (row["input_tokens"], row["uncached_tokens"], row["cached_tokens"]) == (500, None, None)
    assert "caches known for 3 of 5 scorecards" in row["reason"]
