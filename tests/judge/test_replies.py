"""From replies to verdicts: a scored value is always one that the reply literally states for that
item."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.errors import ConfigError
from ambjudge.judge.base import QuestionName
from ambjudge.judge.card.stage_results import CriterionResult
from ambjudge.judge.questions.forms import MAX_TEXT, NOT_APPLICABLE
from ambjudge.judge.questions.items import Answer, ask_item, diagnosis_items, stage_items
from ambjudge.judge.questions.replies import parse_reply, reply_schema, to_results
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.record import Omission, QuoteIndex, Record
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
SEG = load_rubric("segmentation").criteria("S1")[:3]
LEVELS = load_rubric("enhancement").criteria("S3")
REPORT = tuple(c for c in load_rubric("report_generation").criteria("S2") if c.conditional)[:1]
RUN = load_run(RECORDED / "runs" / "kidney-lite-02")
TURNS = len(RUN.turns)
QUOTE = RUN.turns[1].code.split("\n")[0]
QUOTES = QuoteIndex(RUN)
CODES = diagnosis_items(None)


def entry(value: object = 1, **more: object) -> dict:
    return {"evidence": [{"turn": 2, "quote": QUOTE}], "reason": "r", "value": value, **more}


def whole(**values: object) -> dict[str, dict]:
    return {c.id: entry(values.get(c.id, 1)) for c in SEG}


def reply(entries: dict[str, object], *twins: tuple[str, object]) -> str:
    """The entries as JSON; `twins` follow under keys that may be there already."""
    text = json.dumps(entries)
    return (
        text
        if not twins
        else f"{text[:-1]}, {', '.join(f'{json.dumps(k)}: {json.dumps(v)}' for k, v in twins)}}}"
    )


def record(
    *left_out: Omission, facts: str = "plan.md: none", fact_ids: tuple[str, ...] = ("F1", "F2")
) -> Record:
    return Record("", facts, "0" * 10, (1, 2), tuple(left_out), 0, "0" * 64, fact_ids)


def results(
    text: str | None, question: QuestionName, items, shown: Record | None = None
) -> dict[str, CriterionResult]:
    parsed = parse_reply(text, question, items, TURNS)
    checked = to_results(parsed, question, items, shown or record(), QUOTES)
    assert [r.id for r in checked] == [c.id for c in items]
    assert all(r.model_dump_json() for r in checked)  # whatever a reply says can be written down
    return {r.id: r for r in checked}


def verdicts(text: str | None, criteria=SEG, shown: Record | None = None) -> dict[str, tuple]:
    return {
        name: (r.value, r.status, r.reason)
        for name, r in results(text, "S1", criteria, shown).items()
    }


ONE, ZERO = (1.0, "scored", None), (0.0, "scored", None)
BAD = (None, "unscored", "unparsable")
GOOD = reply(whole())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(GOOD, (ONE, ONE, ONE), id="good"),
        pytest.param(reply(whole(S1b=0)), (ONE, ZERO, ONE), id="mixed"),
        pytest.param(f"```json\n{GOOD}\n```", (ONE, ONE, ONE), id="one fence"),
        pytest.param(f"\ufeff{GOOD}", (ONE, ONE, ONE), id="byte-order mark"),
        pytest.param(
            reply({k: v for k, v in whole().items() if k != "S1a"}),
            (BAD, ONE, ONE),
            id="one missing",
        ),
        pytest.param(reply(whole(), ("S1b", entry(0))), (BAD,) * 3, id="two answers"),
        pytest.param(reply({**whole(), "S9z": entry(1)}), (ONE, ONE, ONE), id="stranger"),
        pytest.param(reply(whole(S1a=0.5)), (BAD, ONE, ONE), id="off the scale"),
        pytest.param(reply(whole(S1a="1")), (BAD, ONE, ONE), id="string"),
        pytest.param(reply(whole(S1a=True)), (BAD, ONE, ONE), id="true"),
        pytest.param(reply(whole(S1a=None)), (BAD, ONE, ONE), id="null"),
        pytest.param(
            reply(whole(S1a=NOT_APPLICABLE)), (BAD, ONE, ONE), id="not applicable where not offered"
        ),
        pytest.param(
            reply({**whole(), "S1a": entry(score=0)}),
            (BAD, ONE, ONE),
            id="second value under another key",
        ),
        pytest.param(
            reply({**whole(), "S1a": 1, "S1b": None, "S1c": [entry()]}),
            (BAD,) * 3,
            id="entries of other types",
        ),
        pytest.param(
            reply({**whole(), "S1a": entry() | {"evidence": [{"turn": 2**60, "quote": QUOTE}]}}),
            (BAD, ONE, ONE),
            id="turn beyond counting",
        ),
        pytest.param(
            GOOD.replace('"value": 1', '"value": 0, "value": 1', 1), (BAD,) * 3, id="same key twice"
        ),
        pytest.param(GOOD.replace('"value": 1', '"value": NaN', 1), (BAD,) * 3, id="NaN"),
        pytest.param(
            GOOD.replace('"value": 1', f'"value": {"9" * 4_000}', 1),
            (BAD,) * 3,
            id="endless integer",
        ),
        pytest.param(GOOD[:-1], (BAD,) * 3, id="cut"),
        pytest.param(f"Here you are: {GOOD}", (BAD,) * 3, id="prose before"),
        pytest.param(f"{GOOD} Good luck", (BAD,) * 3, id="prose after"),
        pytest.param(f"{GOOD}\n{GOOD}", (BAD,) * 3, id="two objects"),
        pytest.param(json.dumps({"criteria": whole()}), (BAD,) * 3, id="under another key"),
        pytest.param("", (BAD,) * 3, id="empty"),
        pytest.param("[" * 100_000, (BAD,) * 3, id="deep"),
        pytest.param(GOOD[:-1] + " " * 1_000_000 + "}", (BAD,) * 3, id="a million characters"),
    ],
)
def test_cases(text: str | None, expected: tuple) -> None:
    assert tuple(verdicts(text).values()) == expected


@pytest.mark.parametrize("value", [1, 0.5, 0.2, 0, 0.3, 0.19999, 1.0000001, -0.0001, 2])
def test_levels_are_taken_as_stated_and_never_rounded(value: float) -> None:
    expected = (float(value), "scored", None) if value in LEVELS[0].values else BAD
    assert verdicts(reply({"S3": entry(value)}), LEVELS)["S3"] == expected


def test_not_applicable_where_it_is_offered() -> None:
    name = REPORT[0].id
    assert verdicts(reply({name: entry(NOT_APPLICABLE)}), REPORT)[name] == (
        None,
        "not_applicable",
        None,
    )


def test_what_was_not_asked_is_counted() -> None:
    parsed = parse_reply(reply({**whole(), "S9z": entry(1), "E3": {}}), "S1", SEG, TURNS)
    assert parsed.ignored == ("2 entries on nothing that was asked",)


CUT = Omission(turn=7, label="the whole turn", chars=9_000, relevant=True)
MINOR = Omission(turn=7, label="part", chars=9_000, relevant=False)


@pytest.mark.parametrize(
    ("cited", "left_out", "expected"),
    [
        pytest.param(
            [], CUT, (None, "unscored", "truncated"), id="absence is not seen in what is not shown"
        ),
        pytest.param(
            [{"turn": 2, "quote": "made up by the judge"}],
            CUT,
            (None, "unscored", "truncated"),
            id="false proof",
        ),
        pytest.param([{"turn": 2, "quote": QUOTE}], CUT, ZERO, id="proof"),
        pytest.param([{"turn": 0, "quote": "plan.md: none"}], CUT, ZERO, id="proof by a fact"),
        pytest.param([], MINOR, ZERO, id="nothing relevant left out"),
    ],
)
def test_not_met_on_truncated_evidence_needs_proof(
    cited: list, left_out: Omission, expected: tuple
) -> None:
    text = reply({c.id: entry(0) | {"evidence": cited} for c in SEG})
    assert set(verdicts(text, shown=record(left_out)).values()) == {expected}


def test_quotes_are_checked() -> None:
    cited = [
        {"turn": 2, "quote": QUOTE},
        {"turn": 1, "quote": QUOTE},
        {"turn": 2, "quote": "never written"},
    ]
    result = results(reply({"S1a": entry() | {"evidence": cited}}), "S1", SEG[:1])["S1a"]
    assert [e.check for e in result.evidence] == ["verified", "moved", "not_found"]


def test_what_is_kept_of_a_reply_has_an_end() -> None:
    cited = [{"turn": 2, "quote": "x" * 5_000}] * 30
    result = results(
        reply({"S1a": entry(reason="y" * 5_000) | {"evidence": cited}}), "S1", SEG[:1]
    )["S1a"]
    assert len(result.rationale) == max(len(e.quote) for e in result.evidence) == MAX_TEXT
    assert len(result.evidence) == 20


def test_halves_of_surrogate_pairs_are_replaced() -> None:
    """A scorecard with one could not be written."""
    text = GOOD.replace('"reason": "r"', '"reason": "so \\ud83d, and \\ud83d\\ude00"', 1)
    assert results(text, "S1", SEG)["S1a"].rationale == "so \ufffd, and \U0001f600"


@pytest.mark.parametrize(
    "rubric", ["segmentation", "enhancement", "vqa", "report_generation", "detection"]
)
@pytest.mark.parametrize("stage", ["S1", "S2", "S3"])
def test_schema_is_valid_and_puts_the_value_last(rubric: str, stage: str) -> None:
    criteria = load_rubric(rubric).criteria(stage)
    schema = reply_schema(stage, criteria)
    Draft202012Validator.check_schema(schema)
    text = json.dumps(schema)
    assert (
        text.index('"evidence": {"type"')
        < text.index('"reason": {"type"')
        < text.index('"value": {')
    )
    good = {c.id: entry(c.values[0]) for c in criteria}
    assert not list(Draft202012Validator(schema).iter_errors(good))
    assert schema["required"] == [c.id for c in criteria]


# Diagnosis
def said_of_code(verdict: object = "present", **more: object) -> dict:
    words = {"turn": 2, "quote": QUOTE} if verdict == "present" else {"turn": 0, "quote": ""}
    turns = [2] if verdict == "present" else []
    return {
        "turns": turns,
        "quote": words,
        "facts": [],
        "why": "w",
        "verdict": verdict,
        "confidence": 0.8,
    } | more


def read_codes(**codes: object) -> dict[str, CriterionResult]:
    entries = {c.id: said_of_code("absent") for c in CODES} | {"plan": {"commitments": []}} | codes
    return results(reply(entries), "diagnosis", CODES)


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [("present", ONE), ("absent", ZERO), ("cannot_tell", (None, "unscored", "no_evidence"))],
)
def test_verdicts_on_a_code(verdict: str, expected: tuple) -> None:
    result = read_codes(E3=said_of_code(verdict))["E3"]
    assert (result.value, result.status, result.reason) == expected
    assert result.answer == {
        "turns": [2] if verdict == "present" else [],
        "facts": [],
        "confidence": 0.8,
    }


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "yes"},
        {"verdict": True},
        {"verdict": None},
        {"confidence": 1.2},
        {"confidence": -0.1},
        {"confidence": True},
        {"confidence": "0.9"},
        {"turns": "2"},
        {"turns": [2.5]},
        {"turns": [True]},
        {"turns": None},
        {"facts": "F1"},
        {"facts": [1]},
        {"quote": QUOTE},
        {"quote": [QUOTE]},
        {"quote": {"turn": 2}},
        {"why": None},
        {"quote": {"turn": 2**60, "quote": QUOTE}},
        {"second_verdict": "absent"},
    ],
)
def test_a_doubtful_entry_on_a_code_is_unparsable_and_spoils_only_itself(change: dict) -> None:
    result = read_codes(E3=said_of_code(**change))
    assert (result["E3"].status, result["E3"].reason) == ("unscored", "unparsable")
    assert {r.status for name, r in result.items() if name != "E3"} == {"scored"}


def test_codes_that_nobody_said_a_word_about_are_unparsable_not_absent() -> None:
    result = results(reply({"E3": said_of_code()}), "diagnosis", CODES)
    assert {name: r.status for name, r in result.items()} == {
        "E1": "unscored",
        "E2": "unscored",
        "E3": "scored",
        "E4": "unscored",
        "E5": "unscored",
        "plan": "unscored",
    }


def test_turns_that_the_run_does_not_have_and_unknown_facts_are_dropped() -> None:
    code_entry = said_of_code(
        turns=[999, 2, 0, -1, 2, 1, 10**20, 3.0], facts=["F2", "F77", "because"]
    )
    assert read_codes(E3=code_entry)["E3"].answer == {
        "turns": [1, 2, 3],
        "facts": ["F2"],
        "confidence": 0.8,
    }


def test_a_quote_on_a_code_is_checked() -> None:
    for words, check in ((QUOTE, "verified"), ("words that nobody wrote", "not_found")):
        (evidence,) = read_codes(E3=said_of_code(quote={"turn": 2, "quote": words}))["E3"].evidence
        assert evidence.check == check


def test_commitments_of_the_plan() -> None:
    commitment = {
        "commitment": "a pilot",
        "turns": [2, 999],
        "quote": {"turn": 2, "quote": QUOTE},
        "state": "kept",
    }
    none = commitment | {"quote": {"turn": 0, "quote": ""}, "state": "dropped", "turns": []}
    plan = read_codes(plan={"commitments": [commitment, none]})["plan"]
    assert (plan.status, plan.value, len(plan.evidence)) == ("scored", None, 1)
    kept_commitment, dropped_commitment = plan.answer["commitments"]
    assert (kept_commitment["state"], kept_commitment["turns"]) == ("kept", [2])
    assert (dropped_commitment["state"], dropped_commitment["turns"]) == ("dropped", [])
    many = read_codes(plan={"commitments": [commitment] * 100})["plan"]
    assert len(many.answer["commitments"]) == 40
    for broken in (
        {"commitments": [commitment | {"state": "maybe"}]},
        {"commitments": commitment},
        [commitment],
        {},
    ):
        assert read_codes(plan=broken)["plan"].reason == "unparsable"


# Stages
def part(first: object, last: object, stage: object = "S1") -> dict:
    return {"first_turn": first, "last_turn": last, "what": "w", "stage": stage}


def read_stages(*segments: object) -> CriterionResult:
    return results(reply({"stages": {"segments": list(segments)}}), "stages", stage_items())[
        "stages"
    ]


def test_segments_become_the_stage_of_every_turn() -> None:
    result = read_stages(part(3, TURNS, "S4"), part(1, 2))
    assert (result.status, result.value) == ("scored", None)
    assert result.answer == ["S1", "S1", *["S4"] * (TURNS - 2)]
    # 1.0 is an integer in JSON
    assert read_stages(part(1.0, float(TURNS), "S2")).answer == ["S2"] * TURNS


@pytest.mark.parametrize(
    "segments",
    [
        pytest.param([part(2, TURNS)], id="begins late"),
        pytest.param([part(1, TURNS - 1)], id="ends early"),
        pytest.param([part(1, 2), part(4, TURNS)], id="gap"),
        pytest.param([part(1, 3), part(3, TURNS)], id="overlap"),
        pytest.param([part(1, TURNS), part(1, TURNS)], id="twice"),
        pytest.param([part(1, TURNS + 1)], id="beyond the run"),
        pytest.param([part(1, 10**20)], id="far beyond the run"),
        pytest.param([part(0, TURNS)], id="turn 0"),
        pytest.param([part(-1, TURNS)], id="below 0"),
        pytest.param([part(3, 1), part(4, TURNS)], id="backwards"),
        pytest.param([part(1, TURNS, "S6")], id="no stage"),
        pytest.param([part(1, TURNS, None)], id="stage null"),
        pytest.param([part("1", TURNS)], id="text is no turn"),
        pytest.param(["S1"] * TURNS, id="a list of stages"),
    ],
)
def test_segments_with_gaps_or_overlaps_are_no_answer(segments: list) -> None:
    assert read_stages(*segments).reason == "unparsable"


# Ad-hoc questions
SCHEMA = {"type": "object", "properties": {"epochs": {"type": "integer"}}, "required": ["epochs"]}
ANSWERS = {
    "yes_no": Answer(),
    "choice": Answer("choice", ("CT", "MR", "none")),
    "number": Answer("number"),
    "text": Answer("text"),
    "json": Answer("json", (), SCHEMA),
}


def asked(kind: str, answer: object) -> CriterionResult:
    items = (ask_item("What was it?", ANSWERS[kind]),)
    ask_entry = {"evidence": [{"turn": 2, "quote": QUOTE}], "reason": "r", "answer": answer}
    return results(reply({"ask": ask_entry}), "ask", items)["ask"]


@pytest.mark.parametrize(
    ("kind", "answer", "value"),
    [
        ("yes_no", True, 1.0),
        ("yes_no", False, 0.0),
        ("choice", "MR", None),
        ("number", 3.5, None),
        ("number", 0, None),
        ("number", -7, None),
        ("text", "Two networks.", None),
        ("json", {"epochs": 3}, None),
    ],
)
def test_answers(kind: str, answer: object, value: float | None) -> None:
    result = asked(kind, answer)
    assert (result.status, result.answer, result.value) == ("scored", answer, value)
    assert [e.check for e in result.evidence] == ["verified"]


@pytest.mark.parametrize("kind", ANSWERS)
def test_null_is_cannot_tell(kind: str) -> None:
    result = asked(kind, None)
    assert (result.status, result.reason, result.value, result.answer) == (
        "unscored",
        "no_evidence",
        None,
        None,
    )


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("yes_no", 1),
        ("yes_no", "yes"),
        ("yes_no", [True]),
        ("choice", "PET"),
        ("choice", "ct"),
        ("choice", 0),
        ("choice", ["CT"]),
        ("number", True),
        ("number", "3"),
        ("number", 1e31),
        ("number", [3]),
        ("text", 3),
        ("text", {"a": 1}),
        ("json", {"epochs": "three"}),
        ("json", []),
        ("json", "{}"),
        ("json", {"epochs": 1, "all": ["x" * 100] * 300}),
    ],
)
def test_answers_of_another_type_are_none(kind: str, answer: object) -> None:
    assert asked(kind, answer).reason == "unparsable"


def test_a_long_text_is_cut() -> None:
    assert asked("text", "x" * 10_000).answer == "x" * MAX_TEXT


@pytest.mark.parametrize("key", ["$ref", "$dynamicRef"])
def test_a_schema_of_the_users_reaches_nothing_else(key: str) -> None:
    with pytest.raises(ConfigError, match="without"):
        ask_item(
            "What was it?",
            Answer("json", (), {"properties": {"a": {key: "http://127.0.0.1:9/schema"}}}),
        )


# Properties over mutated replies
VALUES = st.sampled_from(
    [0, 1, 0.0, 1.0, 0.5, -1, 2, True, False, None, "1", "0", "met", [1], {"v": 1}, 1e-9, 0.9999]
)
ENTRY = st.builds(
    lambda value, drop, more: {k: v for k, v in (entry(value) | more).items() if k not in drop},
    VALUES,
    st.sets(st.sampled_from(["evidence", "reason", "value"]), max_size=1),
    st.sampled_from([{}, {}, {}, {"score": 1}, {"evidence": "turn 4"}, {"reason": 5}]),
)
NAMES = st.sampled_from([*(c.id for c in SEG), *(c.id for c in SEG), "S2a", "s1a", "S1a ", ""])


def literally_stated(text: str, name: str) -> list[object]:
    """An independent reading: all values under that id at the top, when the reply is one JSON
    object."""
    try:
        pairs = json.loads(text, object_pairs_hook=lambda found: found)
        json.loads(text, parse_constant=lambda name: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return []
    return [dict(e).get("value") for key, e in pairs if key == name and isinstance(e, list)]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(NAMES, ENTRY), max_size=6))
def test_a_scored_value_is_the_stated_one(entries: list[tuple[str, dict]]) -> None:
    text = f"{{{', '.join(f'{json.dumps(name)}: {json.dumps(e)}' for name, e in entries)}}}"
    for name, (value, status, _) in verdicts(text).items():
        values = literally_stated(text, name)
        if status == "scored":
            assert len(values) == 1
            assert type(values[0]) in (int, float)
            assert values[0] == value
        else:
            assert value is None


@settings(max_examples=300, deadline=None)
@given(
    base=st.permutations([0, 1, 1]),
    place=st.floats(0, 1),
    length=st.integers(0, 12),
    insert=st.text(alphabet='01{}[]",:.\\e-abS \n', max_size=6),
)
@example(base=[0, 1, 1], place=0.755859375, length=0, insert="e100")
def test_damaged_text_never_becomes_a_grade(
    base: list[int], place: float, length: int, insert: str
) -> None:
    text = reply({c.id: entry(v) for c, v in zip(SEG, base, strict=True)})
    position = int(place * len(text))
    damaged = text[:position] + insert + text[position + length :]
    for name, (value, status, _) in verdicts(damaged).items():
        if status == "scored":
            assert literally_stated(damaged, name) == [value]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, TURNS + 3)
    | st.floats(-1, 2)
    | st.sampled_from(["S1", "present", QUOTE]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["turn", "quote", "turns"]), inner)
    ),
    max_leaves=5,
)
FORMS = [
    ("diagnosis", CODES[2:3], said_of_code(), "E3"),
    (
        "diagnosis",
        CODES[-1:],
        {
            "commitments": [
                {
                    "commitment": "c",
                    "turns": [1],
                    "quote": {"turn": 1, "quote": "q"},
                    "state": "kept",
                }
            ]
        },
        "plan",
    ),
    ("stages", stage_items(), {"segments": [part(1, 3), part(4, TURNS)]}, "stages"),
    *(
        ("ask", (ask_item("What?", a),), {"evidence": [], "reason": "r", "answer": True}, "ask")
        for a in ANSWERS.values()
    ),
]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FORMS), st.data())
def test_any_part_replaced_by_anything_is_a_verdict_of_the_form_or_none(form, data) -> None:
    """Whatever stands in a reply's place: no error, no value outside [0, 1], no turn that the run
    does not have."""
    question, items, good, name = form
    damaged = json.loads(json.dumps(good))
    place = damaged
    while True:
        key = data.draw(
            st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place)))
        )
        if not (isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans())):
            break
        place = place[key]
    place[key] = data.draw(JSON)
    result = results(json.dumps({name: damaged}), question, items)[name]
    assert result.status in ("scored", "unscored")
    assert result.value in (None, 0.0, 1.0)
    if result.status == "scored" and question == "stages":
        assert len(result.answer) == TURNS
    if result.status == "scored" and question == "diagnosis" and name != "plan":
        assert all(1 <= turn <= TURNS for turn in result.answer["turns"])
        assert 0 <= result.answer["confidence"] <= 1


@settings(max_examples=300, deadline=None)
@given(
    st.text(max_size=300)
    | st.binary(max_size=300).map(lambda b: b.decode("utf-8", "surrogateescape"))
)
def test_arbitrary_text_is_unparsable(text: str) -> None:
    assert {v for v, _, _ in verdicts(text).values()} == {None}
