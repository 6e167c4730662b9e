"""From replies to verdicts: a scored value is always one that the reply literally states for that criterion."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.judge.evidence import EvidencePack, Omission
from ambjudge.judge.quotes import QuoteIndex
from ambjudge.judge.replies import NOT_APPLICABLE, parse_reply, reply_schema, to_codes, to_results
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.load import load_run
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
SEG = load_rubric("segmentation").criteria("S1")[:3]
LEVELS = load_rubric("enhancement").criteria("S3")
REPORT = tuple(c for c in load_rubric("report_generation").criteria("S2") if c.conditional)[:1]
RUN = load_run(RECORDED / "runs" / "kidney-lite-02")
QUOTE = RUN.turns[1].code.split("\n")[0]


def entry(name: str, value: object = 1, **more: object) -> dict:
    return {"id": name, "evidence": [{"turn": 2, "quote": QUOTE}], "reason": "r", "value": value, **more}


def reply(*entries: dict, **more: object) -> str:
    return json.dumps({"criteria": list(entries), "codes": [], **more})


def whole(**values: object) -> list[dict]:
    return [entry(c.id, values.get(c.id, 1)) for c in SEG]


def evidence(*left_out: Omission, facts: str = "plan.md: none") -> EvidencePack:
    return EvidencePack("S1", "", facts, "0" * 10, (1, 2), tuple(left_out), 0, "0" * 64)


def verdicts(text: str | None, criteria=SEG, pack: EvidencePack | None = None) -> dict[str, tuple]:
    results = to_results(parse_reply(text, criteria), criteria, pack or evidence(), QuoteIndex(RUN))
    assert [r.id for r in results] == [c.id for c in criteria]
    return {r.id: (r.value, r.status, r.reason) for r in results}


ONE, ZERO = (1.0, "scored", None), (0.0, "scored", None)
BAD = (None, "unscored", "unparsable")
GOOD = reply(*whole())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(GOOD, (ONE, ONE, ONE), id="good"),
        pytest.param(reply(*whole(S1b=0)), (ONE, ZERO, ONE), id="mixed"),
        pytest.param(f"```json\n{GOOD}\n```", (ONE, ONE, ONE), id="one fence"),
        pytest.param(f"  \n{GOOD}\n\n", (ONE, ONE, ONE), id="blank around"),
        pytest.param(reply(*whole(S1a=1.0)), (ONE, ONE, ONE), id="1.0 is 1"),
        pytest.param(reply(*reversed(whole(S1b=0))), (ONE, ZERO, ONE), id="other order"),
        pytest.param(reply(*whole()[1:]), (BAD, ONE, ONE), id="one missing"),
        pytest.param(reply(*whole(), entry("S1b", 0)), (ONE, BAD, ONE), id="two answers"),
        pytest.param(reply(*whole(), entry("S1b", 1)), (ONE, BAD, ONE), id="same answer twice"),
        pytest.param(reply(*whole(), entry("S9z", 1)), (ONE, ONE, ONE), id="stranger"),
        pytest.param(reply(*whole(S1a=0.5)), (BAD, ONE, ONE), id="off the scale"),
        pytest.param(reply(*whole(S1a="1")), (BAD, ONE, ONE), id="string"),
        pytest.param(reply(*whole(S1a=True)), (BAD, ONE, ONE), id="true"),
        pytest.param(reply(*whole(S1a=False)), (BAD, ONE, ONE), id="false"),
        pytest.param(reply(*whole(S1a=None)), (BAD, ONE, ONE), id="null"),
        pytest.param(reply(*whole(S1a=[1])), (BAD, ONE, ONE), id="list"),
        pytest.param(reply(*whole(S1a=NOT_APPLICABLE)), (BAD, ONE, ONE), id="not applicable where not offered"),
        pytest.param(reply(*whole(S1a=1e308), entry("x")), (BAD, ONE, ONE), id="huge"),
        pytest.param(reply(entry("S1a", score=0), *whole()[1:]), (BAD, ONE, ONE), id="second value under another key"),
        pytest.param(reply({"id": "S1a", "value": 1}, *whole()[1:]), (BAD, ONE, ONE), id="value without reason"),
        pytest.param(reply("S1a", 3, None, *whole()[1:]), (BAD, ONE, ONE), id="entries of other types"),
        pytest.param(GOOD.replace('"value": 1', '"value": 0, "value": 1', 1), (BAD,) * 3, id="same key twice"),
        pytest.param(GOOD.replace('"value": 1', '"value": NaN', 1), (BAD,) * 3, id="NaN"),
        pytest.param(GOOD[:-1], (BAD,) * 3, id="cut"),
        pytest.param(f"Here you are: {GOOD}", (BAD,) * 3, id="prose before"),
        pytest.param(f"{GOOD} Good luck", (BAD,) * 3, id="prose after"),
        pytest.param(f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```", (BAD,) * 3, id="two fences"),
        pytest.param(f"[{GOOD}]", (BAD,) * 3, id="in a list"),
        pytest.param(json.dumps({"S1a": 1, "S1b": 1, "S1c": 1}), (BAD,) * 3, id="bare mapping"),
        pytest.param('{"criteria": {"S1a": 1}}', (BAD,) * 3, id="mapping of criteria"),
        pytest.param("1", (BAD,) * 3, id="number"),
        pytest.param("", (BAD,) * 3, id="empty"),
        pytest.param(None, (BAD,) * 3, id="none"),
        pytest.param("[" * 100_000, (BAD,) * 3, id="deep"),
        pytest.param("9" * 5_000, (BAD,) * 3, id="long number"),
        pytest.param(" " * 300_000 + GOOD, (ONE, ONE, ONE), id="padded"),
        pytest.param("x" * 300_000, (BAD,) * 3, id="too long"),
    ],
)
def test_cases(text: str | None, expected: tuple) -> None:
    assert tuple(verdicts(text).values()) == expected


@pytest.mark.parametrize("value", [1, 0.5, 0.2, 0])
def test_levels_are_taken_as_stated(value: float) -> None:
    assert verdicts(reply(entry("S3", value)), LEVELS)["S3"] == (float(value), "scored", None)


@pytest.mark.parametrize("value", [0.3, 0.19999, 1.0000001, -0.0001, 2])
def test_levels_are_never_rounded(value: float) -> None:
    assert verdicts(reply(entry("S3", value)), LEVELS)["S3"] == BAD


def test_not_applicable_where_it_is_offered() -> None:
    name = REPORT[0].id
    assert verdicts(reply(entry(name, NOT_APPLICABLE)), REPORT)[name] == (None, "not_applicable", None)


CUT = Omission(turn=7, what="the whole turn", chars=9_000, relevant=True)
MINOR = Omission(turn=7, what="part", chars=9_000, relevant=False)


@pytest.mark.parametrize(
    ("cited", "left_out", "expected"),
    [
        pytest.param([], CUT, (None, "unscored", "truncated"), id="absence is not seen in what is not shown"),
        pytest.param([{"turn": 2, "quote": "made up by the judge"}], CUT, (None, "unscored", "truncated"), id="false proof"),
        pytest.param([{"turn": 2, "quote": QUOTE}], CUT, ZERO, id="proof"),
        pytest.param([{"turn": 0, "quote": "plan.md: none"}], CUT, ZERO, id="proof by a fact"),
        pytest.param([], MINOR, ZERO, id="nothing relevant left out"),
    ],
)  # fmt: skip
def test_not_met_on_truncated_evidence_needs_proof(cited: list, left_out: Omission, expected: tuple) -> None:
    text = reply(*[entry(c.id, 0) | {"evidence": cited} for c in SEG])
    assert set(verdicts(text, pack=evidence(left_out)).values()) == {expected}


def test_met_on_truncated_evidence_stands() -> None:
    assert set(verdicts(reply(*whole()), pack=evidence(CUT)).values()) == {ONE}


def test_quotes_are_checked() -> None:
    cited = [{"turn": 2, "quote": QUOTE}, {"turn": 1, "quote": QUOTE}, {"turn": 2, "quote": "never written"}]
    text = reply(entry("S1a") | {"evidence": cited})
    (result,) = to_results(parse_reply(text, SEG[:1]), SEG[:1], evidence(), QuoteIndex(RUN))
    assert [e.check for e in result.evidence] == ["verified", "moved", "not_found"]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([{"code": "E3", "turns": [2, 2, 1], "why": "kept"}], [("E3", (1, 2))]),
        ([{"code": "E3", "turns": [999], "why": "nowhere"}], []),
        ([{"code": "E9", "turns": [1], "why": "unknown"}], []),
        ([{"code": "E1", "turns": "1", "why": ""}, 7, None], []),
        ("E1", []),
        (None, []),
    ],
)
def test_proposed_codes(codes: object, expected: list) -> None:
    parsed = parse_reply(reply(*whole(), codes=codes), SEG)
    found = to_codes(parsed, "S1", RUN, "m")
    assert [(c.code, c.turns) for c in found] == expected
    assert all(c.by == "judge:m" and c.independence == "from_judge" for c in found)


@pytest.mark.parametrize("rubric", ["segmentation", "enhancement", "vqa", "report_generation", "detection"])
@pytest.mark.parametrize("stage", ["S1", "S2", "S3"])
def test_schema_is_valid_and_puts_the_value_last(rubric: str, stage: str) -> None:
    criteria = load_rubric(rubric).criteria(stage)
    schema = reply_schema(criteria)
    Draft202012Validator.check_schema(schema)
    text = json.dumps(schema)
    assert text.index('"evidence": {"type"') < text.index('"reason": {"type"') < text.index('"value": {')
    good = {"criteria": [entry(c.id, c.values[0]) for c in criteria], "codes": []}
    assert not list(Draft202012Validator(schema).iter_errors(good))


# Properties over mutated replies ------------------------------------------------------------------------------------

VALUES = st.sampled_from([0, 1, 0.0, 1.0, 0.5, -1, 2, True, False, None, "1", "0", "met", [1], {"v": 1}, 1e-9, 0.9999])
ENTRY = st.builds(
    lambda name, value, drop, more: {k: v for k, v in (entry(name, value) | more).items() if k not in drop},
    st.sampled_from([c.id for c in SEG] + ["S2a", "s1a", "S1a ", ""]),
    VALUES,
    st.sets(st.sampled_from(["evidence", "reason", "value", "id"]), max_size=1),
    st.sampled_from([{}, {}, {}, {"score": 1}, {"evidence": "turn 4"}, {"reason": 5}]),
)


def literally_stated(text: str, name: str) -> list[object]:
    """An independent reading: the values of all entries of that id, when the reply is one JSON object."""
    try:
        data = json.loads(text)
    except ValueError:
        return []
    entries = data.get("criteria") if isinstance(data, dict) else None
    return [e.get("value") for e in entries or [] if isinstance(e, dict) and e.get("id") == name]


@settings(max_examples=1_500, deadline=None)
@given(st.lists(ENTRY, max_size=6))
def test_a_scored_value_is_the_stated_one(entries: list[dict]) -> None:
    text = reply(*entries)
    for name, (value, status, _) in verdicts(text).items():
        said = literally_stated(text, name)
        if status == "scored":
            assert len(said) == 1
            assert type(said[0]) in (int, float)
            assert said[0] == value
        else:
            assert value is None


@settings(max_examples=1_500, deadline=None)
@given(
    base=st.permutations([0, 1, 1]),
    place=st.floats(0, 1),
    length=st.integers(0, 12),
    insert=st.text(alphabet='01{}[]",:.\\e-abS \n', max_size=6),
)
@example(base=[0, 1, 1], place=0.755859375, length=0, insert="e100")
def test_damaged_text_never_becomes_a_grade(base: list[int], place: float, length: int, insert: str) -> None:
    text = reply(*[entry(c.id, v) for c, v in zip(SEG, base, strict=True)])
    at = int(place * len(text))
    damaged = text[:at] + insert + text[at + length :]
    for name, (value, status, _) in verdicts(damaged).items():
        if status == "scored":
            assert literally_stated(damaged, name) == [value]


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda b: b.decode("utf-8", "surrogateescape")))
def test_arbitrary_text_is_unparsable(text: str) -> None:
    assert {v for v, _, _ in verdicts(text).values()} == {None}
