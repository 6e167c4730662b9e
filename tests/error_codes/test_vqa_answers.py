"""Answer-level codes of the vqa track."""

from __future__ import annotations

import pytest
from ambjudge.error_codes.detectors.answers import answer_codes
from ambjudge.error_codes.taxonomy import taxonomy
from hypothesis import given
from hypothesis import strategies as st

QUESTION = {
    "q_1": {"options": {"A": "effusion", "B": "nodule", "C": "left lung", "D": "right lung"}}
}
GOOD = {
    "question_id": "q_1",
    "predicted_label": "B",
    "predicted_answer": "nodule",
    "raw_model_output": "The film shows nodule.",
    "model_name": "TinyVLM",
    "runtime_s": 0.2,
}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({}, None, id="good"),
        pytest.param({"predicted_label": "E"}, "HAL001", id="label-made-up"),
        pytest.param({"predicted_answer": "pneumonia"}, "HAL001", id="text-made-up"),
        pytest.param({"raw_model_output": "Request timed out after 60 s"}, "RES001", id="timeout"),
        pytest.param({"raw_model_output": "CUDA out of memory"}, "RES002", id="memory"),
        pytest.param({"raw_model_output": "RateLimitError: 429"}, "PRV001", id="provider"),
        pytest.param({"predicted_answer": "effusion"}, "LOG001", id="label-against-text"),
        pytest.param({"raw_model_output": "Effusion."}, "LOG002", id="label-against-output"),
        pytest.param(
            {"raw_model_output": "No effusion, I would say."},
            None,
            id="a-sentence-is-read-by-nobody-here",
        ),
        pytest.param({"runtime_s": None}, "FMT002", id="runtime"),
        pytest.param({"runtime_s": -1}, "FMT002", id="negative-runtime"),
        pytest.param(
            {"predicted_label": "", "predicted_answer": "", "raw_model_output": ""},
            "CMP001",
            id="skipped",
        ),
        pytest.param({"model_name": "none"}, "AUX001", id="no-model"),
        pytest.param({"raw_model_output": "fallback: unknown"}, "PLC001", id="fallback"),
        pytest.param({"raw_model_output": ""}, "PLC001", id="answer-without-output"),
        pytest.param({"raw_model_output": "Unknown "}, "PLC001", id="unknown"),
        pytest.param(
            {"raw_model_output": "Unknown mass beside a nodule."}, None, id="unknown-as-a-word"
        ),
    ],
)
def test_one_answer(change, code):
    found = [c.code for c in answer_codes([GOOD | change], QUESTION)]
    assert found == ([code] if code else [])


def test_required_fields():
    assert [c.code for c in answer_codes([{"question_id": "q_1"}])] == ["FMT001"]


def test_missing_answers_are_named():
    found = answer_codes([], QUESTION)
    assert [(c.question, c.code) for c in found] == [("q_1", "CMP001")]


def test_one_label_for_all():
    answers = [
        GOOD | {"question_id": f"q_{i}", "raw_model_output": f"The film shows thing {i}."}
        for i in range(6)
    ]
    assert "SCT001" in [c.code for c in answer_codes(answers)]
    varied = [a | {"predicted_label": "AB"[i % 2]} for i, a in enumerate(answers)]
    assert "SCT001" not in [c.code for c in answer_codes(varied)]


@given(
    st.dictionaries(
        st.sampled_from([*GOOD, "x"]),
        st.none()
        | st.text(max_size=20)
        | st.integers()
        | st.lists(st.text(max_size=3), max_size=2),
    )
)
def test_any_answer_has_codes_of_the_taxonomy(answer):
    known = {c.code for c in taxonomy("answers").codes}
    for found in answer_codes([answer], QUESTION):
        assert found.code in known
        assert found.why.endswith(".")
