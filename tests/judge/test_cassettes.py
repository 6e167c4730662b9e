"""Recorded replies of a language model that saw one prompt alone, played back over real HTTP and
read as any others.

The replies stand in tests/data/readings; `python benchmarks/reading.py` holds all of them against
the labels.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.judge.engine import ask_all, assemble, prepare
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.questions.items import QuestionSet
from ambjudge.trajectories.reading.load import load_run

DATA = Path(__file__).parents[1] / "data"
READINGS = DATA / "readings" / "recorded"


@pytest.fixture
def played(judge_server):
    """A judge that answers with what was recorded for a run, each question with its own reply."""

    def judge(name: str) -> ApiJudge:
        judge_server.cassettes = {
            file.stem: json.loads(file.read_text("utf-8"))["reply"]
            for file in (READINGS / name).glob("*.json")
        }
        return ApiJudge("openai/recorded", judge_server.url)

    return judge


@pytest.mark.parametrize("name", ["kidney-lite-02", "vqa-lite-01", "ldct-lite-03", "crc-std-01"])
async def test_a_recorded_reader_finds_the_codes_and_proves_them(
    played, judge_server, name: str
) -> None:
    gold = json.loads((DATA / "recorded" / "labels" / "gold" / f"{name}.json").read_text("utf-8"))
    run = load_run(DATA / "recorded" / "runs" / name)
    # The replies were recorded before facts decided anything: they answer every criterion.
    questions = QuestionSet(stages="judge", ask_all=True)
    ready = prepare(run, public=DATA / "recorded" / "public", questions=questions)
    judge = played(name)
    replies = await ask_all(judge, ready.requests(judge))
    card = assemble(ready, judge, replies)
    assert judge_server.count == 5, "five questions, nothing asked twice and nothing to repair"
    assert {code.code for code in card.codes if code.independence != "from_score"} == set(
        gold["codes"]
    )
    assert card.codes_read == {
        c: "present" if c in gold["codes"] else "absent" for c in ("E1", "E2", "E3", "E4", "E5")
    }
    read = [code for code in card.codes if code.by.startswith("judge:")]
    assert {code.code for code in read} == set(gold["codes"]), "without the detectors, too"
    assert all(code.quote is not None and code.quote.check != "not_found" for code in read)
    assert card.unproven == ()
    assert card.stages_from == "judge"
    assert (
        sum(card.turn_stages[int(t) - 1] == s for t, s in gold["stages"].items())
        >= len(gold["stages"]) - 1
    )
    graded = [
        c
        for stage in ("S1", "S2", "S3")
        for c in card.stages[stage].criteria
        if c.status == "scored"
    ]
    assert sum(c.value == gold["criteria"][c.id] for c in graded) >= len(graded) - 1
    quotes = [e.check for c in graded for e in c.evidence]
    assert quotes.count("not_found") <= len(quotes) // 20


@pytest.mark.parametrize(
    "folder", sorted(p for p in (DATA / "readings").iterdir() if p.is_dir()), ids=lambda p: p.name
)
def test_every_recorded_reply_says_which_prompt_it_answers(folder: Path) -> None:
    kept = [json.loads(file.read_text("utf-8")) for file in folder.rglob("*.json")]
    assert kept
    for one in kept:
        assert len(one["prompt_sha256"]) == 64
        assert isinstance(json.loads(one["reply"]), dict)
