"""One line for a finding and a reading of the same thing; codes say whose taxonomy they are of."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import ambjudge
import pytest
from ambjudge.commands.codes import RunDiagnosis, show_diagnosis
from ambjudge.error_codes.detectors.files import _describe
from ambjudge.error_codes.models import FiredCode
from ambjudge.error_codes.output_facts import OutputIssue
from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.judge.card.view import scorecard_view

DATA = Path(__file__).parents[1] / "data" / "tui"
RUN = DATA.parent / "recorded" / "runs" / "bccd-lite-01"
FACT, READING = "detector:repeated_code_failure", "judge:m"


def code(name: str, by: str, *turns: int) -> FiredCode:
    independence = "from_judge" if by == READING else "from_trace"
    return FiredCode(
        code=name,
        taxonomy="paper",
        stage="S3",
        turns=turns,
        why=f"{name} says {by}.",
        by=by,
        confidence=0.9,
        independence=independence,  # type: ignore[arg-type]
    )


CASES: dict[str, tuple[list[FiredCode], list[tuple[str, int]]]] = {
    "one-thing": ([code("E4", FACT, 3, 4), code("E4", READING, 4)], [("E4", 1)]),
    "reading-first": ([code("E4", READING, 4), code("E4", FACT, 3, 4)], [("E4", 1)]),
    "other-turns": ([code("E4", FACT, 3), code("E4", READING, 7)], [("E4", 0), ("E4", 0)]),
    "other-codes": ([code("E2", FACT, 3), code("E4", READING, 3)], [("E2", 0), ("E4", 0)]),
    "two-findings": ([code("E4", FACT, 3), code("E4", FACT, 5)], [("E4", 0), ("E4", 0)]),
    "a-reading-alone": ([code("E1", READING, 3)], [("E1", 0)]),
}
"""Fired codes, and the lines that are shown with their number of readings."""


@pytest.mark.parametrize(("codes", "lines"), CASES.values(), ids=CASES)
def test_a_fact_and_a_reading_of_it_are_one_line(
    codes: list[FiredCode], lines: list[tuple[str, int]]
) -> None:
    values: dict[str, Any] = json.loads((DATA / "cards.jsonl").read_text("utf-8").splitlines()[0])
    card = ScoreCard.model_validate(values).model_copy(update={"codes": tuple(codes)})
    section = next(section for section in scorecard_view(card) if section.kind == "codes")
    readings = [[line for line in item.details if line.role == "reading"] for item in section.items]
    names = [item.name for item in section.items]
    assert list(zip(names, map(len, readings), strict=True)) == lines
    texts = " ".join([item.text for item in section.items] + [r.text for e in readings for r in e])
    assert all(fired.why in texts for fired in codes), "nothing is lost"


@pytest.mark.parametrize(("codes", "lines"), CASES.values(), ids=CASES)
def test_the_command_has_the_same_lines(
    capsys: pytest.CaptureFixture[str], codes: list[FiredCode], lines: list[tuple[str, int]]
) -> None:
    combined = replace(ambjudge.diagnose(RUN), codes=tuple(codes))
    show_diagnosis(
        RunDiagnosis(ambjudge.load_run(RUN), combined, "paper", "nobody read it"), with_plan=False
    )
    printed = capsys.readouterr().out
    assert re.findall(r"^  (E\d) S", printed, re.MULTILINE) == [name for name, _ in lines]
    assert printed.count(f"{READING} reads: ") == sum(count for _, count in lines)
    assert all(fired.why in " ".join(printed.split()) for fired in codes), "nothing is lost"


def test_codes_of_the_harness_say_so() -> None:
    lines = (DATA / "cards.jsonl").read_text("utf-8").splitlines()
    named = 0
    for card in map(ScoreCard.model_validate_json, lines):
        for section in scorecard_view(card):
            failure = card.stages[section.key].failure if section.kind == "stage" else None
            head = "".join(part.text for part in section.head)
            assert not failure or f"harness {failure}" in head
            named += bool(failure)
    assert named


@pytest.mark.parametrize(
    ("issues", "text"),
    [
        (
            [OutputIssue("missing", "has no row", f"c{n}", "predictions.csv") for n in range(3)],
            "predictions.csv has no row in 3 cases",
        ),
        ([OutputIssue("missing", "a.nii.gz is missing", "c1", "a.nii.gz")], "a.nii.gz is missing"),
    ],
    ids=["without-subject", "with-subject"],
)
def test_an_issue_reads_as_a_sentence(issues: list[OutputIssue], text: str) -> None:
    assert _describe(tuple(issues)) == text
