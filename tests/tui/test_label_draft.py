"""Labels in the making: edits, undo, and how they compare with a scorecard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.judge.trust.human_labels import LabelledCode, dump_labels, read_labels
from ambjudge.judge.trust.label_form import FormRun, label_form
from ambjudge.judge.trust.label_sources import each_label
from ambjudge.rubrics.load import rubric_for
from ambjudge.trajectories.reading.load import load_run
from ambjudge.views.label_agreement import agree
from ambjudge.views.label_draft import Draft
from ambjudge.views.label_storage import LabelStorage

DATA = Path(__file__).parents[1] / "data"
NAME = "bccd-lite-04"


@pytest.fixture
def draft() -> Draft:
    run = load_run(DATA / "recorded" / "runs" / NAME)
    return Draft(run, rubric_for(run.track, run.task), "me")


def test_a_new_draft_holds_the_credits_of_the_tier_alone(draft: Draft) -> None:
    assert draft.now.criteria == {"S1d": 1, "S1e": 1, "S1f": 1}
    assert draft.now.stages == {}
    assert not draft.changed
    assert draft.missing == (9, 9)


def test_values_step_through_the_levels(draft: Draft) -> None:
    seen = []
    for step in (-1, 1, 1, 1, -1):
        draft.step_value("S3", step)
        seen.append(draft.now.criteria["S3"])
    assert seen == [0, 0.5, 1, 1, 0.5]


def test_every_edit_can_be_undone(draft: Draft) -> None:
    before = draft.labels()
    draft.set_stage(1, "S1")
    draft.step_value("S1a", 1)
    draft.toggle_evidence("S1a", 3)
    assert draft.toggle_code("E3", 4)
    draft.set_reason("E3", " nobody looked ")
    draft.set_notes("odd")
    assert draft.now.codes["E3"].why == "nobody looked"
    assert draft.changed
    for _ in range(6):
        assert draft.undo()
    assert not draft.undo()
    assert draft.labels() == before


def test_toggling_twice_is_nothing(draft: Draft) -> None:
    draft.toggle_evidence("S1a", 3)
    draft.toggle_evidence("S1a", 3)
    draft.toggle_code("E3", 4)
    assert not draft.toggle_code("E3", 4)
    assert draft.now.evidence["S1a"] == ()
    assert draft.now.codes == {}


@pytest.mark.parametrize("turn", [0, 10, -1])
def test_only_turns_of_the_run_have_stages(draft: Draft, turn: int) -> None:
    draft.set_stage(turn, "S1")
    assert draft.now.stages == {}


def test_labels_come_back_byte_for_byte(draft: Draft) -> None:
    path = DATA / "recorded" / "labels" / "gold" / f"{NAME}.json"
    gold = read_labels(path)
    again = Draft(draft.run, draft.rubric, "gold", gold)
    assert not again.changed
    assert again.problems() == []
    assert dump_labels(again.labels()) == dump_labels(gold)


def test_a_form_is_taken_up_and_its_labels_count_once(draft: Draft, tmp_path: Path) -> None:
    form = label_form(draft.now, FormRun(None, None, "lite", 9, draft.rubric))
    file = tmp_path / "me" / f"{NAME}.yaml"
    file.parent.mkdir()
    file.write_text(form.replace("\n  S1a:", "\n  S1a: 0"), encoding="utf-8")
    storage = LabelStorage("me", tmp_path)
    begun = Draft(draft.run, draft.rubric, "me", storage.find(NAME))
    assert begun.now.criteria == {"S1a": 0}
    begun.set_value("S1b", 1)
    assert storage.save(begun.labels()) == [str(file.with_suffix(".json"))]
    (entry,) = each_label(tmp_path)
    assert entry.labels.criteria == storage.all()[NAME].criteria == {"S1a": 0, "S1b": 1}


def test_agreement_of_a_run(draft: Draft) -> None:
    gold = read_labels(DATA / "recorded" / "labels" / "gold" / f"{NAME}.json")
    line = next(
        text
        for text in (DATA / "tui" / "cards.jsonl").read_text().splitlines()
        if f'"{NAME}"' in text
    )
    card = ScoreCard.model_validate(json.loads(line))
    found = agree(gold, card)
    assert found.criteria == (12, 12)
    assert found.differences == ()
    other = agree(gold.model_copy(update={"criteria": {"S1a": 1, "S3": None}, "codes": {}}), card)
    assert other.criteria == (0, 1)
    assert other.differences == (("S1a", 1, 0),)
    assert other.codes[1] == {"E3", "E4"}
    said = {
        "E1": LabelledCode(turns=(1,), why="meant so"),
        "E5": LabelledCode(turns=(9,), why="broken"),
    }
    mine = agree(gold.model_copy(update={"codes": said}), card)
    assert mine.codes[0] == {"E5"}, "E1 takes reading, and nobody read this run: no disagreement"
