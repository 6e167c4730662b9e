"""One view of a scorecard: terminal, browser, page and notebook show all of it, written one way."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path

import payloads
import pytest
from ambjudge.commands.render import scorecard
from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.judge.card.view import scorecard_view
from ambjudge.judge.card.view_parts import Item, Section, turn_ranges, value_text
from ambjudge.rubrics.load import load_rubric
from ambjudge.sanitize import sanitize_line
from ambjudge.views.scorecard_panel import scorecard_lines
from ambjudge.web.site import Site

DATA = Path(__file__).parents[1] / "data" / "tui"
NOT_EVERYWHERE = ("level", "asks")
"""Details that only the browser and pages show: they repeat the rubric."""
Draw = Callable[[ScoreCard], str]


def _cards() -> list[ScoreCard]:
    lines = [
        line
        for file in ("cards.jsonl", "presumed.jsonl")
        for line in (DATA / file).read_text("utf-8").splitlines()
    ]
    return [ScoreCard.model_validate_json(line) for line in lines]


def _full_card() -> ScoreCard:
    """A scorecard with something in every section."""
    values = json.loads((DATA / "cards.jsonl").read_text("utf-8").splitlines()[1])
    quote = {"turn": 2, "quote": "words of turn three", "check": "moved", "found_turn": 3}
    code = values["codes"][0] | {"quote": quote, "facts": ["F1"], "why": "A reading."}
    lost = {"turn": 1, "quote": "words of no turn", "check": "not_found", "found_turn": None}
    values |= {
        "codes": [code, *values["codes"][1:]],
        "unproven": [code | {"code": "E5", "quote": lost, "facts": []}],
        "facts": [{"id": "F1", "source": "file", "text": "Eight files were there.", "turns": [3]}],
        "plan": [{"commitment": "Check every mask", "state": "broken", "turns": [4]}],
        "contradictions": [{"criterion": "S2a", "fact": "No model was loaded.", "turns": [3]}],
        "warnings": ["The report is of another version."],
        "imported": "inspect",
        "outcomes": {"resolved": {"value": True}},
    }
    values["status"]["disqualified"] = True
    values["judge"] |= {"calls": 2, "cost_usd": 0.5}
    stages = values["stages"]
    stages["S1"]["cap"], stages["S1"]["cap_reason"] = 0.5, "a rule"
    stages["S1"]["criteria"][1] |= {"status": "unscored", "value": None, "reason": "not_read"}
    stages["S1"]["criteria"][2]["votes"] = [{"judge": "m", "value": 0.5}]
    stages["S4"]["checks"]["problems"] = ["case_1: mask.nii.gz is missing"]
    return ScoreCard.model_validate(values)


@pytest.fixture
def sinks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Draw]:
    """What each place shows of a scorecard, as text without white space."""

    def terminal(card: ScoreCard) -> str:
        capsys.readouterr()
        scorecard(card, verbose=True)
        return capsys.readouterr().out

    def browser(card: ScoreCard) -> str:
        # The title of the screen names the run.
        rubric = load_rubric(card.rubric.id)
        items = [item.id for section in scorecard_view(card) for item in section.items]
        lines = [line for id in items for line in scorecard_lines(card, rubric, id)]
        return sanitize_line(card.run.id) + "\n".join(sanitize_line(line.text) for line in lines)

    def page(card: ScoreCard) -> str:
        site = Site(tmp_path / "site")
        site.add(card)
        site.finish()
        (file,) = (tmp_path / "site" / "pages").iterdir()
        return _without_tags(file.read_text("utf-8"))

    def notebook(card: ScoreCard) -> str:
        return _without_tags(card._repr_html_())

    return {"terminal": terminal, "browser": browser, "page": page, "notebook": notebook}


def _without_tags(text: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", text))


def _comparable(text: str, sink: str) -> str:
    """A text without white space. Pages have links in place of turns, and elements for quotes."""
    if sink == "page":
        text = re.sub(r"turns? [\d, -]+|[“”]", "", text)
    return "".join(text.split())


def _texts(section: Section, sink: str) -> list[str]:
    """What a place has to show of a section."""
    texts = [section.title, *(line.text for line in (*section.lines, *section.notes))]
    if section.kind == "totals" or (section.kind == "stage" and sink == "page"):
        # Totals have no heading; a page sets a stage's tag and name apart.
        texts = texts[1:]
    for item in section.items:
        texts += _item_texts(item, section, sink)
    return texts


def _item_texts(item: Item, section: Section, sink: str) -> list[str]:
    texts = [line.text for line in item.details if line.role not in NOT_EVERYWHERE]
    if section.kind != "stage":
        # The terminal shows criteria by their marks.
        texts.append(item.text)
    return texts


@pytest.mark.parametrize("sink", ["terminal", "browser", "page", "notebook"])
def test_every_place_shows_all_of_a_scorecard(sinks: dict[str, Draw], sink: str) -> None:
    card = _full_card()
    shown = _comparable(sinks[sink](card), sink)
    sections = scorecard_view(card)
    assert {section.kind for section in sections} >= {
        *("run", "totals", "stage", "codes", "unproven", "plan"),
        *("contradictions", "episodes", "facts", "files", "warnings"),
    }
    for section in sections:
        for text in _texts(section, sink):
            assert _comparable(text, sink)[:200] in shown, (section.kind, text)


@pytest.mark.parametrize("sink", ["terminal", "browser", "page", "notebook"])
def test_half_a_point_and_what_is_presumed_or_unscored_are_written_one_way(
    sinks: dict[str, Draw], sink: str
) -> None:
    shown = sinks[sink](_full_card())
    assert "½: Before the full run a pilot was run" in " ".join(shown.split())
    assert "=0.5" not in shown
    assert "unscored (not read): " in " ".join(shown.split())
    presumed = next(card for card in _cards() if card.presumed)
    assert "~1: nobody read it" in " ".join(sinks[sink](presumed).split())


@pytest.mark.parametrize("sink", ["terminal", "page", "notebook"])
def test_hostile_text_is_sanitised_in_every_place(sinks: dict[str, Draw], sink: str) -> None:
    """Of the browser, test_terminal_bytes.py says it of the bytes that it writes."""
    hostile = payloads.ALL.replace("\ud800", "")
    values = json.loads(_full_card().to_json())
    for criterion in (c for stage in values["stages"].values() for c in stage["criteria"]):
        criterion["rationale"] = hostile
    for key in ("codes", "unproven"):
        for code in values[key]:
            code["why"] = hostile
    values["plan"][0]["commitment"] = values["facts"][0]["text"] = hostile
    values["contradictions"][0]["fact"], values["warnings"] = hostile, [hostile]
    values["run"]["id"] = values["run"]["agent"] = hostile
    shown = sinks[sink](ScoreCard.model_validate(values)).encode("utf-8")
    assert [name for name, bad in payloads.FORBIDDEN.items() if bad in shown] == []


def test_views_of_recorded_scorecards_name_every_verdict() -> None:
    for card in _cards():
        sections = scorecard_view(card, load_rubric(card.rubric.id))
        items = {item.id for section in sections for item in section.items}
        results = [result for stage in card.stages.values() for result in stage.criteria]
        assert {result.id for result in results} <= items
        assert len(items) == sum(len(section.items) for section in sections), "ids are unique"
        lost = {item.id for section in sections for item in section.items if item.loses_points}
        assert lost == {
            result.id
            for result in results
            if result.status in ("scored", "presumed", "unscored")
            and (result.value is None or result.value < 1)
        }


def test_values_and_turns() -> None:
    assert [value_text(value) for value in (0, 0.25, 0.5, 1)] == ["0", "0.25", "½", "1"]
    assert turn_ranges([5, 1, 2, 3, 0]) == "plan or brief, 1-3, 5"
