"""Custom rubrics: the starter, the notes on a file, and the verdicts that a preamble decides."""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.rubrics.diff import diff_rubrics
from ambjudge.rubrics.load import (
    builtin_ids,
    criterion_sha256,
    dump_rubric,
    file_notes,
    load_rubric,
    starter_rubric,
    validate_file,
)


@pytest.mark.parametrize("name", [None, *builtin_ids()])
def test_what_one_begins_with_is_valid_at_once_and_commented(
    name: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(starter_rubric(name), "utf-8")
    assert validate_file(file) == file_notes(file) == []
    assert file.read_text("utf-8").startswith("#")
    copy = load_rubric(file)
    if name is not None:
        original = load_rubric(name)
        assert copy.id == f"my-{name}"
        assert (diff := diff_rubrics(original, copy)).added == diff.changed == ()
    file.write_text(dump_rubric(copy), "utf-8")
    assert load_rubric(file) == copy


def test_a_stage_of_the_benchmark_left_out_is_noted(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        starter_rubric("vqa")
        .replace("  S5:\n    weight: 0.10\n", "")
        .replace("S3:\n    weight: 0.35", "S3:\n    weight: 0.45"),
        "utf-8",
    )
    (note,) = file_notes(file)
    assert "no S5" in note.message
    assert "Overall" in note.hint


def test_verdicts_go_stale_with_the_preamble_they_were_told(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(starter_rubric(), "utf-8")
    before = load_rubric(file)
    file.write_text(
        starter_rubric().replace("Labels of the test set", "Labels of the last fold"), "utf-8"
    )
    after = load_rubric(file)
    assert diff_rubrics(before, after).stale == ("checked", "labels")
    plain = before.criteria()[0].model_copy(update={"preamble": None})
    assert criterion_sha256(plain) != criterion_sha256(before.criteria()[0])
