"""Panel contents: every criterion can be reached, reasons are shown, plans keep every word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.error_codes.models import FiredCode
from ambjudge.error_codes.paper_codes import CODES
from ambjudge.judge.card.fields import PlanItem
from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.record.quotes import Evidence
from ambjudge.views.run_columns import codes_text
from ambjudge.views.run_rows import row_of
from ambjudge.views.run_tabs import file_lines, json_lines, plan_lines
from ambjudge.views.runs_summary import mean, summary_lines
from ambjudge.views.scorecard_differences import difference_lines
from ambjudge.views.scorecard_panel import scorecard_lines
from ambjudge.views.styled_lines import StyledLine

DATA = Path(__file__).parents[1] / "data"
CARDS = {
    (value := json.loads(line))["run"]["id"]: ScoreCard.model_validate(value)
    for line in (DATA / "tui" / "cards.jsonl").read_text().splitlines()
}


def words(lines: list[StyledLine]) -> str:
    return "\n".join("".join(part for part, _ in line.parts) for line in lines)


def wholly_read(card: ScoreCard) -> ScoreCard:
    """As if a judge had read the run and found what is on the card."""
    known = {code.code for code in card.codes}
    return card.model_copy(
        update={"codes_read": {c: "present" if c in known else "absent" for c in CODES}}
    )


def with_readings(card: ScoreCard) -> ScoreCard:
    """As if a judge had read the run: one code with proof, one without, one promise broken."""
    said = {
        "taxonomy": "paper",
        "why": "Read so.",
        "by": "judge:m",
        "confidence": 0.9,
        "independence": "from_judge",
    }
    moved = Evidence(turn=2, quote="words of turn three", check="moved", found_turn=3)
    nowhere = Evidence(turn=1, quote="words of no turn", check="not_found")
    return card.model_copy(
        update={
            "codes": (
                FiredCode(
                    code="E1", stage="S1", turns=(3, 5), facts=("F1", "F4"), quote=moved, **said
                ),
            ),
            "unproven": (FiredCode(code="E5", stage="S5", turns=(1,), quote=nowhere, **said),),
            "codes_read": {
                "E1": "present",
                "E2": "absent",
                "E3": "cannot_tell",
                "E4": "not_read",
                "E5": "cannot_tell",
            },
            "plan": (PlanItem(commitment="Check every mask", state="broken", turns=(4,)),),
        }
    )


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_every_criterion_and_code_is_a_stop_and_opens(card: ScoreCard) -> None:
    rubric = load_rubric(card.rubric.id)
    stops = {
        line.target.id: line.target
        for line in scorecard_lines(card, rubric)
        if line.selectable and line.target
    }
    criteria = [c for stage in card.stages.values() for c in stage.criteria]
    assert {c.id for c in criteria} <= set(stops)
    assert len([id for id in stops if id.startswith("E") and "." in id]) == len(card.codes)
    for criterion in criteria:
        text = words(scorecard_lines(card, rubric, criterion.id))
        assert (criterion.rationale or criterion.detail or "no reason given") in text
        assert stops[criterion.id].turns == tuple(
            e.turn if e.check != "moved" else e.found_turn for e in criterion.evidence
        )


def test_json_is_the_scorecard() -> None:
    card = CARDS["vqa-lite-01"]
    assert json.loads(words(json_lines(card))) == card.to_dict()


def test_plans_and_files() -> None:
    run = load_run(DATA / "recorded" / "runs" / "kidney-lite-01")
    plan = words(plan_lines(run))
    assert run.plan.text is not None
    for word in run.plan.text.replace("**", "").replace("`", "").replace("#", "").split()[:60]:
        if word.isalnum():
            assert word in plan
    files = words(file_lines(run))
    assert all(file.name in files for file in run.outputs.files)


def test_differences_name_only_what_differs() -> None:
    left, right = CARDS["bccd-lite-01"], CARDS["bccd-lite-04"]
    rubric = load_rubric("detection")
    text = words(difference_lines(left, right, rubric))
    assert "S1a" in text
    assert "S2a" not in text
    assert "S2a" in words(difference_lines(left, right, rubric, everything=True))
    assert words(difference_lines(left, left, rubric)).count("≠") == 0


def test_summaries_are_those_of_the_rows() -> None:
    rows = [row_of(n, card.to_dict()) for n, card in enumerate(CARDS.values())]
    text = words(summary_lines(rows))
    assert "15 scored of 15" in text
    count = sum("E3" in row.codes for row in rows)
    assert f"not read, fired in {count}" in text, (
        "facts alone show some, and say nothing of the others"
    )
    read = [row_of(n, wholly_read(card).to_dict()) for n, card in enumerate(CARDS.values())]
    text = words(summary_lines([*read[:10], *rows[10:]]))
    share = sum("E3" in row.codes for row in read[:10]) / 10
    assert f"{share:.1%}" in text
    assert "of 10 read" in text
    assert "10 of 15 runs were read for all codes" in text
    assert words(summary_lines([])) == "0 scored of 0 shown runs"


def test_a_reading_shows_its_words_its_facts_and_what_it_did_not_prove() -> None:
    card = with_readings(CARDS["kidney-lite-04"])
    text = words(scorecard_lines(card, None, "E1.0"))
    assert "E2: absent" in text
    assert "E3, E5: cannot tell" in text
    assert "E4: not read" in text
    assert "turn 2 (found in turn 3): “words of turn three”" in text
    assert "facts of the record: F1, F4" in text
    assert "Readings without proof (did not fire)\n E5 S5 turn 1" in text
    assert "✗ broken  Check every mask (turn 4)" in text
    stops = {
        line.target.id: line.target
        for line in scorecard_lines(card, None)
        if line.selectable and line.target
    }
    assert stops["E1.0"].turns == (3, 5)
    assert stops["E1.0"].quotes == ("words of turn three", ""), "Enter goes to the words"
    assert stops["?E5.0"].turns == (1,)
    assert stops["p0"].turns == (4,)


def test_what_was_not_read_is_unknown_in_tables_and_no_difference() -> None:
    old, card = CARDS["kidney-lite-01"], CARDS["kidney-lite-04"]
    assert row_of(0, old.to_dict()).unknown == ("E1", "E3")
    row = row_of(0, with_readings(card).to_dict())
    assert (row.unknown, row.read) == (("E3", "E4", "E5"), True)
    assert codes_text(row) == "E1 ?"
    assert codes_text(row_of(0, wholly_read(old).to_dict())) == ""
    assert "only left (right: not known)" in words(difference_lines(with_readings(card), old, None))
    assert "only left," in words(difference_lines(with_readings(card), wholly_read(old), None))


def test_mean_leaves_out_the_unknown() -> None:
    assert mean([None, 1.0, 0.0]) == 0.5
    assert mean([None]) is None
