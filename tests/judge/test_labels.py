"""Human labels: every recorded file comes back byte for byte; what has no meaning is refused by
field."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.error_codes.paper_codes import CODES
from ambjudge.errors import InputError
from ambjudge.judge.store import open_store
from ambjudge.judge.trust.human_labels import (
    dump_labels,
    export_labels,
    import_labels,
    other_fields,
    parse_labels,
    problems,
    read_labels,
    stored_labels,
    unlabelled,
)
from ambjudge.rubrics.load import load_rubric, rubric_for
from ambjudge.trajectories.reading.load import load_run
from hypothesis import given, settings
from hypothesis import strategies as st

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
FILES = sorted((RECORDED / "labels").glob("*/*.json"))
GOLD = RECORDED / "labels" / "gold" / "kidney-lite-01.json"
GOLD_CRITERIA = json.loads(GOLD.read_text("utf-8"))["criteria"]


def test_every_recorded_file_goes_through_the_store_unchanged(tmp_path):
    assert len(FILES) > 30
    with open_store(tmp_path / "s.db") as store:
        assert all(import_labels(store, read_labels(path)) for path in FILES)
        assert not any(import_labels(store, read_labels(path)) for path in FILES)
        written = export_labels(stored_labels(store), tmp_path / "out")
    assert {path.relative_to(tmp_path / "out") for path in written} == {
        p.relative_to(RECORDED / "labels") for p in FILES
    }
    for path in FILES:
        assert (
            tmp_path / "out" / path.relative_to(RECORDED / "labels")
        ).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "path", sorted((RECORDED / "labels" / "gold").glob("*.json")), ids=lambda p: p.stem
)
def test_gold_labels_fit_their_run_and_rubric(path):
    run = load_run(RECORDED / "runs" / path.stem)
    assert problems(read_labels(path), run, rubric_for(run.track, run.task)) == []


def _with(**update):
    return {**json.loads(GOLD.read_text()), **update}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param([], "is list", id="list"),
        pytest.param({"annotator": "a"}, "run: Field required", id="no-run"),
        pytest.param({"run": None}, "run: Field required", id="null-run"),
        pytest.param(_with(critera={}), "'critera' .did you mean 'criteria'", id="misspelt"),
        pytest.param(_with(Codes={}), "'Codes' .did you mean 'codes'", id="capital"),
        pytest.param(
            _with(schema="ambjudge.scorecard/1"), "is a scorecard and no label", id="scorecard"
        ),
        pytest.param(
            _with(stages={"0": "S1"}),
            "stages.0: Input should be greater than or equal to 1",
            id="turn-0",
        ),
        pytest.param(
            _with(stages={"١": "S1"}),
            "stages.١: Input should be a valid integer, not",
            id="arabic-digit",
        ),
        pytest.param(
            _with(stages={"1": "S6"}), "stages.1: Input should be 'S1', .* not 'S6'", id="stage-6"
        ),
        pytest.param(
            _with(criteria={"S1a": True}),
            "criteria.S1a: Input should be a number in .*, not True",
            id="bool-is-no-grade",
        ),
        pytest.param(_with(criteria={"S1a": float("nan")}), "criteria.S1a: .* not nan", id="nan"),
        pytest.param(
            _with(evidence={"S1a": 4}),
            "evidence.S1a: Input should be a valid tuple, not 4",
            id="evidence-number",
        ),
        pytest.param(
            _with(codes={"E3": {"turns": [-1]}}), "codes.E3.turns: .* not -1", id="code-turn"
        ),
        pytest.param(
            _with(codes={"E9": {"turns": [1]}}), "codes.E9: .* one of E1, .* not 'E9'", id="code"
        ),
    ],
)
def test_what_is_no_label_is_refused_by_field(data, message):
    with pytest.raises(InputError, match=message) as caught:
        parse_labels(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("update", "message"),
    [
        pytest.param(
            {"run": "other"}, "labels of 'other', the run is 'kidney-lite-01'", id="other-run"
        ),
        pytest.param(
            {"stages": {"1": "S1", "99": "S5"}},
            "stages: turn 99 of a run with 17",
            id="turn-outside",
        ),
        pytest.param(
            {"criteria": {"S1z": 1}},
            "criteria.S1z: not in rubric segmentation",
            id="unknown-criterion",
        ),
        pytest.param(
            {"criteria": {"S3": 0.7}}, "criteria.S3: 0.7 is not one of 1, 0.5, 0", id="off-scale"
        ),
        pytest.param({"evidence": {"S3": [18]}}, "evidence.S3: turn 18", id="evidence-outside"),
        pytest.param(
            {"codes": {"E3": {"turns": [40], "why": ""}}},
            "codes.E3.turns: turn 40",
            id="code-outside",
        ),
    ],
)
def test_what_contradicts_run_or_rubric_is_listed(update, message):
    run = load_run(RECORDED / "runs" / "kidney-lite-01")
    lines = problems(parse_labels(_with(**update)), run, load_rubric("segmentation"))
    assert any(message in line for line in lines), lines


CREDITED = ("S1d", "S1e", "S1f")


@pytest.mark.parametrize(
    ("update", "gaps"),
    [
        pytest.param({}, [], id="complete"),
        pytest.param({"criteria": {"S1a": 1}}, ["S1b", "S1c", "S2a"], id="criteria"),
        pytest.param({"criteria": {**GOLD_CRITERIA, "S3": None}}, ["S3"], id="null"),
        pytest.param({"stages": {"1": "S1", "3": "S1"}}, ["stages of turns 2, 4-17"], id="turns"),
        pytest.param({"stages": {}}, ["stages"], id="no turn"),
        pytest.param({"codes": None}, ["codes"], id="codes"),
    ],
)
def test_what_is_not_labelled_is_named_and_is_no_contradiction(update, gaps):
    run, rubric = load_run(RECORDED / "runs" / "kidney-lite-01"), load_rubric("segmentation")
    labels = parse_labels(_with(**update))
    assert unlabelled(labels, run, rubric)[: len(gaps) or None] == gaps
    assert not set(unlabelled(labels, run, rubric)) & set(CREDITED), "the tier decides these"
    assert problems(labels, run, rubric) == []


def test_fields_of_other_programs_are_not_read():
    data = _with(source="mine", split="dev", tags=["a"])
    assert dump_labels(parse_labels(data)) == GOLD.read_text("utf-8")
    assert other_fields(data) == ["source", "split", "tags"]


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/abs", "a/b", "..", "", " . ", "x\0y", "\ud800", "é" * 300]
)
def test_hostile_names_stay_in_the_folder(tmp_path, name):
    labels = parse_labels({"run": "r", "annotator": "a"}).model_copy(
        update={"run": name, "annotator": name}
    )
    (path,) = export_labels([labels], tmp_path / "out")
    assert path.resolve().is_relative_to((tmp_path / "out").resolve())
    assert len(path.relative_to(tmp_path / "out").parts) == 2


def test_labels_without_criteria_are_fine():
    labels = parse_labels(
        {"run": "r", "annotator": "a", "stages": {"2": "S1", "10": "S2", "1": "S1"}}
    )
    assert list(json.loads(dump_labels(labels))["stages"]) == ["1", "2", "10"]
    assert problems(labels, rubric=load_rubric("vqa")) == []


_TURN = st.integers(1, 9_999_999)
_TEXT = st.text()
_LABELS = st.fixed_dictionaries(
    {"run": _TEXT.filter(str.strip), "annotator": _TEXT.filter(str.strip)},
    optional={
        "stages": st.dictionaries(_TURN.map(str), st.sampled_from(["S1", "S2", "S3", "S4", "S5"])),
        "criteria": st.dictionaries(
            _TEXT, st.one_of(st.none(), st.integers(0, 1), st.floats(0, 1))
        ),
        "evidence": st.dictionaries(_TEXT, st.lists(_TURN)),
        "codes": st.dictionaries(
            st.sampled_from(CODES),
            st.fixed_dictionaries({"turns": st.lists(_TURN), "why": _TEXT}),
        ),
        "notes": _TEXT,
    },
)


@given(_LABELS)
@settings(max_examples=150, deadline=None)
def test_writing_and_reading_agree(data):
    text = dump_labels(parse_labels(data))
    assert dump_labels(parse_labels(json.loads(text))) == text
    text.encode("utf-8")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["run", "annotator", "stages", "criteria", "evidence", "codes", "notes"]),
        _JSON,
    )
)
@settings(max_examples=200, deadline=None)
def test_anything_else_is_labels_or_an_input_error(data):
    try:
        dump_labels(parse_labels(data)).encode()
    except InputError as refused:
        error = refused
    else:
        return
    assert "\n" not in str(error)


@pytest.mark.parametrize("codes", [{}, None, "absent"])
def test_codes_that_nobody_looked_for_are_not_codes_that_did_not_fire(codes, tmp_path):
    data = {"run": "r", "annotator": "a1", "stages": {"1": "S1"}} | (
        {} if codes == "absent" else {"codes": codes}
    )
    with open_store(tmp_path / "s.db") as store:
        import_labels(store, parse_labels(data))
        (stored,) = stored_labels(store)
        assert ("codes" in json.loads(dump_labels(stored))) is (codes == {})
