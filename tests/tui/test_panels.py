"""Panel contents: every criterion can be reached, reasons are shown, blind mode shows none, plans keep every word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.judge.scorecard import ScoreCard
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.load import load_run
from ambjudge.tui.differences import difference_lines
from ambjudge.tui.panels import Line, file_lines, json_lines, numbers, plan_lines, scorecard_lines, size
from ambjudge.tui.rows import row_of
from ambjudge.tui.summaries import mean, summary_lines

DATA = Path(__file__).parents[1] / "data"
CARDS = {
    (value := json.loads(line))["run"]["id"]: ScoreCard.model_validate(value)
    for line in (DATA / "tui" / "cards.jsonl").read_text().splitlines()
}


def words(lines: list[Line]) -> str:
    return "\n".join("".join(part for part, _ in line.parts) for line in lines)


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_every_criterion_and_code_is_a_stop_and_opens(card: ScoreCard) -> None:
    rubric = load_rubric(card.rubric.id)
    stops = {line.target.id: line.target for line in scorecard_lines(card, rubric) if line.selectable and line.target}
    criteria = [c for stage in card.stages.values() for c in stage.criteria]
    assert {c.id for c in criteria} <= set(stops)
    assert len([id for id in stops if id.startswith("E") and "." in id]) == len(card.codes)
    for criterion in criteria:
        text = words(scorecard_lines(card, rubric, criterion.id))
        assert (criterion.rationale or criterion.detail or "no reason given") in text
        assert stops[criterion.id].turns == tuple(
            e.turn if e.check != "moved" else e.found_turn for e in criterion.evidence
        )


def test_blind_shows_no_verdict() -> None:
    card = CARDS["bccd-lite-04"]
    text = words(scorecard_lines(card, load_rubric("detection"), "S1a", blind=True))
    assert "hidden" in text
    assert "✗" not in text
    assert "58.7" not in text
    assert card.stages["S1"].criteria[0].rationale not in text


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


@pytest.mark.parametrize(("turns", "text"), [((), ""), ((3,), "3"), ((1, 2, 3, 5), "1-3, 5"), ((0, 4), "plan, 4")])
def test_numbers(turns: tuple[int, ...], text: str) -> None:
    assert numbers(turns) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (1200, "1.2 kB"), (3_400_000, "3.4 MB")])
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text


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
    share = sum("E3" in row.codes for row in rows) / 15
    assert f"{share:.1%}" in text
    assert words(summary_lines([])) == "0 scored of 0 shown runs"


def test_mean_leaves_out_the_unknown() -> None:
    assert mean([None, 1.0, 0.0]) == 0.5
    assert mean([None]) is None
