"""Answers of `ambjudge ask` as files and as a column of the run frame."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ambjudge.analysis.tables.answer_tables import (
    answer_rows,
    read_answers,
    schema_of,
    with_answers,
)
from ambjudge.analysis.tables.flat_tables import batches
from ambjudge.analysis.tables.spreadsheets import to_csv
from ambjudge.errors import InputError
from ambjudge.judge.ad_hoc import RunAnswer

QUESTION = "Did it look?"
RUN = {
    "path": "p",
    "agent": None,
    "model": None,
    "task": None,
    "track": None,
    "tier": None,
    "repeat": None,
    "turns": 3,
    "format": "list",
}


def said(id: str, sha: str, answer: Any, kind: str = "yes_no", **more: Any) -> RunAnswer:
    status = (
        {"status": "scored"}
        if answer is not None
        else {"status": "unscored", "reason": "no_evidence"}
    )
    return RunAnswer.model_validate(
        {
            "run": {"id": id, "sha256": sha, **RUN},
            "question": QUESTION,
            "kind": kind,
            "judge": {"name": "m"},
            "answer": answer,
            **status,
            **more,
        }
    )


def write(folder: Path, suffix: str, answers: list[RunAnswer]) -> Path:
    path = folder / f"a{suffix}"
    if suffix == ".jsonl":
        path.write_text("".join(one.to_json() + "\n" for one in answers), "utf-8")
        return path
    table = pl.concat(batches(answer_rows(answers), schema_of(answers[0].kind)))
    if suffix == ".csv":
        path.write_text(to_csv(table), "utf-8")
    else:
        table.write_parquet(path)
    return path


VALUES = [
    ("yes_no", [True, False, None], [True, False, None], pl.Boolean),
    ("number", [3, -2.5, None], [3.0, -2.5, None], pl.Float64),
    ("choice", ["=dice", "true", None], ["=dice", "true", None], pl.String),
    ("text", ['a, "b"\nc', "12", None], ['a, "b"\nc', "12", None], pl.String),
    ("json", [{"b": 1, "a": ["=x"]}, [], None], ['{"a": ["=x"], "b": 1}', "[]", None], pl.String),
]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
@pytest.mark.parametrize(("kind", "answers", "expected", "dtype"), VALUES)
def test_files_come_back_as_they_were(tmp_path, suffix, kind, answers, expected, dtype) -> None:
    told = [said(f"r{i}", f"h{i}", answer, kind) for i, answer in enumerate(answers)]
    table = read_answers(write(tmp_path, suffix, told))
    assert table.to_dict(as_series=False) == {
        "run_id": ["r0", "r1", "r2"],
        "sha256": ["h0", "h1", "h2"],
        "answer": expected,
    }
    assert table.schema["answer"] == dtype


def frame(*runs: tuple[str, str | None]) -> pl.DataFrame:
    return pl.DataFrame(runs, schema={"run_id": pl.String, "sha256": pl.String}, orient="row")


def test_a_column_of_the_frame(tmp_path: Path) -> None:
    """By hash, whatever the run is called now; by both where one conversation has two answers; a
    changed run has none."""
    told = [
        said("a", "h1", True),
        said("b", "h2", False),
        said("c", "h2", True),
        said("d", "h4", None),
    ]
    answers = read_answers(write(tmp_path, ".jsonl", told))
    runs = frame(
        ("x/a", "h1"),
        ("b", "h2"),
        ("c", "h2"),
        ("y/b", "h2"),
        ("d", "h4"),
        ("a", "new"),
        ("a", None),
        ("b", "h2"),
    )
    found = with_answers(runs, answers, "looked")
    assert found["looked"].to_list() == [True, False, True, None, None, None, True, False]
    assert found.columns == ["run_id", "sha256", "looked"]


def test_answers_without_a_hash_go_by_the_id(tmp_path: Path) -> None:
    told = [said("a", "", True), said("b", "", False)]
    answers = read_answers(write(tmp_path, ".csv", told))
    assert with_answers(frame(("a", "h1"), ("b", "h2"), ("c", "h3")), answers, "looked")[
        "looked"
    ].to_list() == [True, False, None]


def test_answers_that_cannot_be_a_column(tmp_path: Path) -> None:
    answers = read_answers(write(tmp_path, ".jsonl", [said("a", "h1", True)]))
    for name in ("", "run_id"):
        with pytest.raises(InputError, match="is empty or taken"):
            with_answers(frame(("a", "h1")), answers, name)
    with pytest.raises(InputError, match="none of the 1 answers"):
        with_answers(frame(("b", "h2")), answers, "looked")


GOOD = said("a", "h1", True).to_json()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no answers"),
        ("{", "line 1 column 2"),
        ("[1]\n", "not an object"),
        ('{"schema": "ambjudge.scorecard/1"}', "line 1 is not an answer"),
        (
            GOOD + "\n" + GOOD.replace('"id":"a"', '"id":7').replace("h1", "h2"),
            "record 2 is not an answer",
        ),
        (GOOD.replace('"answer":true', '"answer":"yes"'), "the answer is not yes/no"),
        (GOOD.replace('"yes_no"', '"maybe"'), "record 1 is not an answer"),
        (GOOD + "\n" + GOOD.replace(QUESTION, "Another?"), "holds answers to 2 questions"),
        (
            GOOD + "\n" + GOOD.replace('"answer":true', '"answer":false'),
            "two answers about run 'a'",
        ),
        (GOOD.replace('"answer":true', '"answer":' + "[" * 5_000), "nested"),
    ],
)
def test_what_is_no_file_of_answers(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=says):
        read_answers(path)


@pytest.mark.parametrize(
    ("name", "data"), [("a.csv", b"x,y\n1,2\n"), ("a.parquet", b"PAR1"), ("no.csv", None)]
)
def test_what_is_no_table_of_answers(tmp_path: Path, name: str, data: bytes | None) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match="not a readable table of answers"):
        read_answers(tmp_path / name)


def test_the_same_line_twice_is_one_answer(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f"{GOOD}\n{GOOD}\n", "utf-8")
    assert read_answers(path).height == 1
    assert json.loads(GOOD)["schema"] == "ambjudge.answer/1"
