"""Findings and readings made one: what fires, what stays unproven, what nobody read; and how often
readings were right."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from ambjudge.error_codes.merge import Reading, merge
from ambjudge.error_codes.models import FiredCode
from ambjudge.error_codes.paper_codes import BY_FACTS
from ambjudge.error_codes.registry import detectors
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.judges.api.transport import Retry
from ambjudge.judge.session import ScoreOptions, run_session
from ambjudge.judge.store import open_store
from ambjudge.judge.trust.human_labels import import_labels, parse_labels
from ambjudge.judge.trust.judge_precision import MIN_READINGS, precision_by_code
from ambjudge.trajectories.models import Segmentation
from ambjudge.trajectories.record import check_quote
from tiny_runs import SUBMIT, say, write_run

STAGES = ("S1", "S2", "S3", "S4", "S5")
SEGMENTS = Segmentation.from_stages(STAGES)
PROOF = "one case first"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Five turns, one a stage."""
    turns = [
        say("The plan."),
        say("Weights.", "load()", "ok"),
        say("A pilot.", "go(1)", f"{PROOF}: dice 0.8"),
        say("All.", "go()", "8 done"),
    ]
    made = write_run(tmp_path_factory.mktemp("run") / "r", [*turns, SUBMIT])
    assert len(made.turns) == len(STAGES)
    return made


BY_FACT = next(detector.by for detector in detectors() if detector.fact is not None)
"""A detector whose findings rest on facts."""


def finding(
    code="E3",
    *,
    fact=False,
    independence="from_trace",
    turns=(4,),
    why="Because of this.",
):
    return FiredCode(
        code=code,
        taxonomy="paper",
        stage="S4",
        turns=turns,
        why=why,
        by=BY_FACT if fact else "detector:d",
        confidence=0.8,
        independence=independence,
    )


def reading(run, code="E3", state="present", *, turns=(3,), quote=(3, PROOF), **more):
    return Reading(
        code=code, state=state, turns=turns, quote=quote and check_quote(run, *quote), **more
    )


def codes(found) -> list[str]:
    return [code.code for code in found]


NOBODY_READ = {"E1": "not_read", "E2": "absent", "E3": "not_read", "E4": "absent", "E5": "absent"}


# Without a reader
def test_what_takes_reading_is_not_read_where_nobody_read_the_run(run):
    """Nothing looks clean because nobody looked."""
    merged = merge(run, SEGMENTS, (), ())
    assert dict(merged.states) == NOBODY_READ
    assert {code for code, state in merged.states.items() if state == "absent"} == set(BY_FACTS)


def test_a_run_without_turns_is_not_read_at_all(run):
    empty = run.model_copy(update={"turns": ()})
    assert set(merge(empty, Segmentation.from_stages(()), (), ()).states.values()) == {"not_read"}


def test_the_same_finding_twice_is_one(run):
    assert merge(run, SEGMENTS, (finding(), finding()), ()).findings == (finding(),)


# With a reader
@pytest.mark.parametrize("state", ["present", "absent", "cannot_tell"])
def test_a_fact_stands_whatever_is_read(run, state):
    fact = finding("E4", fact=True)
    merged = merge(run, SEGMENTS, (fact,), [reading(run, "E4", state)])
    assert merged.findings == (fact,)
    assert merged.states["E4"] == "present"


@pytest.mark.parametrize(
    ("said", "stands"), [("present", False), ("absent", False), ("cannot_tell", True), (None, True)]
)
def test_other_findings_give_way_to_a_reading_and_to_nothing_else(run, said, stands):
    readings = [reading(run, "E3", said)] if said else [reading(run, "E1", "absent")]
    merged = merge(run, SEGMENTS, (finding("E3"),), readings)
    assert bool(merged.findings) is stands
    assert merged.states["E3"] == {"present": "present", "absent": "absent"}.get(said, "present")


def test_what_was_read_from_the_score_is_shown_but_says_nothing_of_the_run(run):
    circular = finding("E3", independence="from_score")
    assert merge(run, SEGMENTS, (circular,), ()).states["E3"] == "not_read"
    merged = merge(run, SEGMENTS, (circular,), [reading(run, "E3", "absent")])
    assert (merged.findings, merged.states["E3"], merged.contradictions) == (
        (circular,),
        "absent",
        (),
    )


def test_a_proven_reading_fires_at_the_turn_of_its_words(run):
    merged = merge(
        run,
        SEGMENTS,
        (),
        [reading(run, turns=(4, 3), why="They were\n  not looked at.", facts=("F2",))],
    )
    (fired,) = merged.proven
    assert (fired.code, fired.stage, fired.turns, fired.facts) == ("E3", "S3", (4, 3), ("F2",))
    assert fired.why == "They were not looked at."
    assert fired.quote.check == "verified"
    assert (merged.unproven, merged.states["E3"]) == ((), "present")


def test_a_moved_quote_proves_and_places_the_code_where_it_stands(run):
    (fired,) = merge(run, SEGMENTS, (), [reading(run, turns=(5,), quote=(5, PROOF))]).proven
    assert (fired.quote.check, fired.quote.found_turn, fired.stage) == ("moved", 3, "S3")


def test_words_of_the_brief_prove_a_code_at_its_own_turns(run):
    """Cited from turn 4, they stand in no turn."""
    (fired,) = merge(
        run, SEGMENTS, (), [reading(run, turns=(2,), quote=(4, "Do the task for 8 cases"))]
    ).proven
    assert (fired.quote.check, fired.quote.found_turn, fired.stage) == ("moved", 0, "S2")


@pytest.mark.parametrize(
    ("turns", "quote"),
    [
        pytest.param((3,), (3, "words that nobody wrote"), id="quote not found"),
        pytest.param((3,), None, id="no quote"),
        pytest.param((), (0, "Do the task for 8 cases"), id="no turn"),
        pytest.param(
            (999,), (999, "words that nobody wrote"), id="turns that the run does not have"
        ),
    ],
)
def test_unproven_readings_are_listed_and_do_not_fire(run, turns, quote):
    merged = merge(run, SEGMENTS, (), [reading(run, turns=turns, quote=quote, confidence=0.99)])
    assert (merged.proven, codes(merged.unproven), merged.states["E3"]) == (
        (),
        ["E3"],
        "cannot_tell",
    )
    assert merged.unproven[0].stage in STAGES


def test_a_reader_that_speaks_against_a_fact_is_a_contradiction(run):
    fact, other = finding("E4", fact=True, turns=(2, 4)), finding("E3")
    merged = merge(
        run, SEGMENTS, (fact, other), [reading(run, c, "absent") for c in ("E3", "E4")], "judge:m"
    )
    (contradiction,) = merged.contradictions
    assert (contradiction.criterion, contradiction.turns) == ("E4", (2, 4))
    assert "(Because of this)" in contradiction.fact
    assert contradiction.fact.endswith(f"({BY_FACT}, judge:m)")
    for state in ("present", "cannot_tell"):
        assert merge(run, SEGMENTS, (fact,), [reading(run, "E4", state)]).contradictions == ()


def test_the_confidence_is_the_share_that_labels_confirm_where_it_is_known(run):
    readings = [reading(run, "E3", confidence=0.99), reading(run, "E5", confidence=0.6)]
    merged = merge(run, SEGMENTS, (), readings, precision={"E3": 0.4, "E1": 1.0})
    assert {c.code: c.confidence for c in merged.proven} == {"E3": 0.4, "E5": 0.6}


# How often readings were right
async def scored(tmp_path: Path, judge_server, runs: int, codes: str = "E3,E5"):
    """A store with this many small runs in which the reader saw these codes."""
    for number in range(runs):
        write_run(
            tmp_path / "runs" / f"r{number}",
            [say(f"Plan number {number} of them.", "go()", "8 done"), SUBMIT],
        )
    judge_server.script = [f"codes:{codes}"]
    judge = ApiJudge("reader", judge_server.url, retry=Retry(1), timeout=5)
    store = open_store(tmp_path / "s.db")
    cards = []
    await run_session(
        [tmp_path / "runs"],
        judge,
        ScoreOptions(),
        lambda o: cards.append(o.card),
        store=store,
        signals=False,
    )
    return SimpleNamespace(store=store, judge=judge, cards=cards, paths=tmp_path / "runs")


def label(store, run: str, annotator: str = "a1", **said: object) -> None:
    import_labels(store, parse_labels({"run": run, "annotator": annotator, **said}))


def saw(*names: str) -> dict:
    return {"codes": {name: {"turns": [1], "why": "Seen."} for name in names}}


async def test_labels_say_how_often_a_reader_was_right(tmp_path, judge_server):
    known = await scored(tmp_path, judge_server, 6)
    with known.store as store:
        assert {c.code for card in known.cards for c in card.codes if c.by == "judge:reader"} == {
            "E3",
            "E5",
        }
        assert precision_by_code(store, "reader") == {}
        for number, card in enumerate(known.cards[: MIN_READINGS - 1]):
            label(store, card.run.id, **saw(*(["E3"] if number else [])))
        assert precision_by_code(store, "reader") == {}, "too few to speak of a share"
        # nobody looked for codes: no evidence against the reader
        label(store, known.cards[5].run.id)
        assert precision_by_code(store, "reader") == {}
        label(store, known.cards[4].run.id, **saw("E3", "E1"))
        assert precision_by_code(store, "reader") == {"E3": 4 / 5, "E5": 0.0}
        assert precision_by_code(store, "another") == {}
        label(store, known.cards[0].run.id, annotator="a2", **saw("E3", "E5"))
        assert precision_by_code(store, "reader") == {"E3": 5 / 6, "E5": 1 / 6}


async def test_cards_carry_that_share_as_the_confidence(tmp_path, judge_server):
    known = await scored(tmp_path, judge_server, 5)
    with known.store as store:
        assert {
            c.confidence for card in known.cards for c in card.codes if c.by == "judge:reader"
        } == {0.9}
        for number, card in enumerate(known.cards):
            label(store, card.run.id, **saw(*(["E3"] if number < 2 else [])))
        asked, again = judge_server.count, []
        options = ScoreOptions(stored_only=True)
        await run_session(
            [known.paths],
            known.judge,
            options,
            lambda o: again.append(o.card),
            store=store,
            signals=False,
        )
        assert judge_server.count == asked
        shown = {
            c.code: c.confidence for card in again for c in card.codes if c.by == "judge:reader"
        }
        assert shown == {"E3": 0.4, "E5": 0.0}


def test_a_reading_of_an_older_run_does_not_break_on_its_turns(run):
    """A reading may name turns of a longer version of the run."""
    shorter = run.model_copy(update={"turns": run.turns[:2]})
    merged = merge(shorter, Segmentation.from_stages(STAGES[:2]), (), [reading(run, turns=(5,))])
    assert codes(merged.proven) == ["E3"]
