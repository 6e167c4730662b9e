"""Rows and texts of `export`: the same in every format, honest about what is unknown, harmless in a
spreadsheet."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import polars as pl
import pytest
from ambjudge import load_run, score
from ambjudge.analysis.tables.flat_tables import (
    CODES,
    CRITERIA,
    LABELS,
    SCHEMAS,
    batches,
    code_rows,
    criterion_rows,
    label_rows,
    to_jsonl,
)
from ambjudge.analysis.tables.spreadsheets import FORMULA, from_csv, to_csv
from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.judge.trust.human_labels import parse_labels
from hypothesis import given
from hypothesis import strategies as st

RECORDED = Path(__file__).parents[1] / "data" / "recorded"


@pytest.fixture(scope="module")
def cards() -> list[ScoreCard]:
    return [score(load_run(path)) for path in sorted((RECORDED / "runs").iterdir())]


def table(rows, schema) -> pl.DataFrame:
    return pl.concat(batches(rows, schema, size=7))


def cells(frame: pl.DataFrame) -> list[list[str]]:
    return list(csv.reader(io.StringIO(to_csv(frame))))


# Rows


def test_criteria_say_what_the_scorecards_say(cards) -> None:
    found = table((row for card in cards for row in criterion_rows(card)), CRITERIA)
    assert (
        found.height
        == sum(len(stage.criteria) for card in cards for stage in card.stages.values())
        == 180
    )
    rows = iter(found.iter_rows(named=True))
    for card in cards:
        for stage, result in card.stages.items():
            for item in result.criteria:
                row = next(rows)
                assert (row["run_id"], row["stage"], row["criterion"]) == (
                    card.run.id,
                    stage,
                    item.id,
                )
                assert (row["value"], row["status"], row["rationale"]) == (
                    item.judged,
                    item.status,
                    item.rationale,
                )
                assert row["quotes_verified"] == sum(
                    e.check == "verified" and e.quote != "" for e in item.evidence
                )
                assert row["quotes"] >= row["quotes_verified"]
                assert set(row["evidence_turns"]) == {e.turn for e in item.evidence}


def test_codes_keep_turns_reason_and_source(cards) -> None:
    found = table((row for card in cards for row in code_rows(card)), CODES)
    fired = [code for card in cards for code in card.codes]
    assert found["turns"].to_list() == [list(code.turns) for code in fired]
    assert found["why"].to_list() == [code.why for code in fired]
    assert found["by"].to_list() == [code.by for code in fired]


def test_unscored_is_null_with_a_reason_in_every_format(cards) -> None:
    card = cards[0]
    stage = card.stages["S1"]
    failed = stage.criteria[0].model_copy(
        update={"value": None, "status": "unscored", "reason": "refused"}
    )
    stages = {**card.stages, "S1": stage.model_copy(update={"criteria": (failed,)})}
    found = table(criterion_rows(card.model_copy(update={"stages": stages})), CRITERIA).head(1)
    assert json.loads(to_jsonl(found))["value"] is None
    row = dict(zip(*cells(found), strict=True))
    assert (row["value"], row["status"], row["reason"]) == ("", "unscored", "refused")


def test_labels_have_a_row_for_each_thing_labelled() -> None:
    data = {
        "run": "r",
        "annotator": "a",
        "stages": {"10": "S2", "2": "S1"},
        "criteria": {"S1b": None, "S1a": 1},
        "evidence": {"S1a": [2]},
        "codes": {"E4": {"turns": [3], "why": "crashed"}},
        "notes": "short",
    }
    rows = [row[2:] for row in label_rows(parse_labels(data))]
    assert rows[:4] == [
        ("stage", "S1", 2, None, None, None),
        ("stage", "S2", 10, None, None, None),
        ("criterion", "S1a", None, 1, [2], None),
        ("criterion", "S1b", None, None, None, None),
    ]
    assert [(r[1], r[3], r[5]) for r in rows if r[0] == "code"] == [
        ("E1", 0.0, None),
        ("E2", 0.0, None),
        ("E3", 0.0, None),
        ("E4", 1.0, "crashed"),
        ("E5", 0.0, None),
    ]
    assert rows[-1] == ("notes", None, None, None, None, "short")
    nobody_looked = {key: value for key, value in data.items() if key != "codes"}
    assert not [row for row in label_rows(parse_labels(nobody_looked)) if row[2] == "code"]
    assert table(label_rows(parse_labels(data)), LABELS).height == 10


# Formats


@pytest.mark.parametrize("what", SCHEMAS)
def test_an_empty_table_still_has_its_columns(what: str) -> None:
    (found,) = batches([], SCHEMAS[what])
    assert found.columns == list(SCHEMAS[what])
    assert to_csv(found) == ",".join(SCHEMAS[what]) + "\n"
    assert to_csv(found, header=False) == to_jsonl(found) == ""


def test_nan_and_infinity_are_unknown() -> None:
    (found,) = batches(
        [(value,) for value in (float("nan"), float("inf"), -0.5, None)], {"x": pl.Float64}
    )
    assert found["x"].to_list() == [None, None, -0.5, None]


CELLS = [
    pytest.param("=1+1", "'=1+1", id="formula"),
    pytest.param("+1", "'+1", id="plus"),
    pytest.param("-2+3", "'-2+3", id="minus"),
    pytest.param("@SUM(A1)", "'@SUM(A1)", id="at"),
    pytest.param("＝1", "'＝1", id="full width"),
    pytest.param("\t=1", "'\t=1", id="tab"),
    pytest.param("\r\n=1", "'\r\n=1", id="line break"),
    pytest.param(" \u200b=1", "' \u200b=1", id="hidden behind blanks"),
    pytest.param("\x00=1", "'\x00=1", id="hidden behind NUL"),
    pytest.param("'=1", "''=1", id="quoted already, so that it can be told apart"),
    pytest.param("kidney-01", "kidney-01", id="harmless id"),
    pytest.param("'tis", "'tis", id="harmless apostrophe"),
    pytest.param("a=b", "a=b", id="sign inside"),
    pytest.param("\x1b[31mred", "\x1b[31mred", id="control characters stay in files"),
    pytest.param('a"b,c\nd', 'a"b,c\nd', id="quoting"),
]


@pytest.mark.parametrize(("text", "cell"), CELLS)
def test_a_spreadsheet_executes_nothing(text: str, cell: str) -> None:
    (found,) = batches([(text, -1.5)], {"x": pl.String, "y": pl.Float64})
    reader = csv.reader(io.StringIO(to_csv(found, header=False), newline=""))
    assert next(reader) == [cell, "-1.5"]
    assert from_csv(pl.DataFrame({"x": [cell]}))["x"].to_list() == [text]
    assert json.loads(to_jsonl(found))["x"] == text


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), min_size=1, max_size=5)
)
def test_any_text_comes_back_from_csv_and_jsonl(texts: list[str]) -> None:
    (found,) = batches([(text,) for text in texts], {"x": pl.String})
    assert [json.loads(line)["x"] for line in to_jsonl(found).split("\n")[:-1]] == texts
    again = pl.read_csv(io.StringIO(to_csv(found)), schema={"x": pl.String})["x"].to_list()
    safe = found.select(
        pl.when(pl.col("x").str.contains(FORMULA)).then("'" + pl.col("x")).otherwise("x").alias("x")
    )
    assert again == safe["x"].to_list()
    assert from_csv(pl.DataFrame({"x": again}))["x"].to_list() == texts
    assert not any(re.match(r"[=+\-@\t\r\n]", text) for text in again)


def test_lists_are_joined_in_csv_and_stay_lists_in_jsonl() -> None:
    (found,) = batches([([1, 22],), ([],), (None,)], {"turns": pl.List(pl.Int64)})
    assert to_csv(found) == 'turns\n1; 22\n""\n\n'
    assert [json.loads(line)["turns"] for line in to_jsonl(found).splitlines()] == [
        [1, 22],
        [],
        None,
    ]
