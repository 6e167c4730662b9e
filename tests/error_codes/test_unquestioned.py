"""How a run speaks, as a likelihood that a visible defect passed: the words, the probability, and its place behind facts."""

from __future__ import annotations

import pytest
from ambjudge.error_codes.detectors.tone import ASSERTS, QUESTIONS, Manner, manner, probability
from ambjudge.error_codes.fired import context, fired_in
from ambjudge.error_codes.registry import detectors
from ambjudge.trajectories.models import Segmentation
from hypothesis import given
from hypothesis import strategies as st
from tiny_runs import say, submit, write_run

NAME = "detector:asserted_not_questioned"
MASKS = "import nibabel as nib, torch, glob\nnet = torch.load('/data/public/models/net.pt')\nfor p in sorted(glob.glob('/data/public/*/ct.nii.gz')):\n    nib.save(mask(net, p), f'/workspace/agents_outputs/{p.split(chr(47))[3]}/organ.nii.gz')\nprint('done')\n"
COUNT = say("Count.", "find /workspace/agents_outputs -name '*.nii.gz' | wc -l", "8", language="bash")
SURE = ("Exactly as expected everywhere.", "Everything is verified and complete.")


def spoken(check, closing):
    """A run over all cases, a check and the end, with these words."""
    return [
        say("All.", MASKS, "\n".join(f"case_{i} lesion {40 + i} voxels" for i in range(1, 9))),
        COUNT | {"text": check},
        submit(closing),
    ]


@pytest.fixture
def of(tmp_path):
    def build(turns, stages="S4 S5 S5"):
        run = write_run(tmp_path / f"run{len(list(tmp_path.iterdir()))}", turns)
        return context(run, Segmentation(turn_stages=tuple(stages.split()), segments=()))

    return build


@pytest.mark.parametrize(
    ("text", "asserts", "questions"),
    [
        pytest.param("Exactly what the card wants, all clean.", 3, 0, id="assertions"),
        pytest.param("Is the mask empty, or was it cut?", 0, 2, id="questions"),
        pytest.param("That doesn't fit, so I look again.", 0, 3, id="objections"),
        pytest.param("Allocation of the passage, a goodness of fit, button.", 0, 0, id="parts-of-words"),
        pytest.param("No problems, but I wonder why.", 1, 2, id="both"),
        pytest.param("", 0, 0, id="silence"),
    ],
)
def test_words(text, asserts, questions):
    assert len(ASSERTS.findall(text)) == asserts
    assert len(QUESTIONS.findall(text)) == questions


def test_the_same_run_with_doubts_fires_nothing(of):
    assert NAME in {code.by for code in fired_in(of(spoken(*SURE)))}
    doubts = (
        "Why is case_3 lower? I look at whether it was cut, compare it against the input and try again before I trust it. "
        * 3
    )
    assert NAME not in {code.by for code in fired_in(of(spoken(f"{SURE[0]} {doubts}", f"{SURE[1]} {doubts}")))}


def test_a_fact_of_the_same_code_takes_its_place(of):
    unseen = [spoken(*SURE)[0] | {"text": SURE[0], "out": "done"}, spoken(*SURE)[2]]
    found = [code.by for code in fired_in(of(unseen, "S4 S5")) if code.code == "E3"]
    assert found
    assert NAME not in found


def test_codes_come_in_order_with_the_likelihood_among_them(of):
    codes = [code.code for code in fired_in(of([*spoken(*SURE)[:2], say("Everything is verified, all complete.")]))]
    assert codes == sorted(codes)


def test_the_reason_quotes_the_turns_it_names(of):
    ctx = of(spoken(*SURE))
    (code,) = (code for code in fired_in(ctx) if code.by == NAME)
    text = " ".join(ctx.turn(turn).text.lower() for turn in code.turns)
    quoted = code.why.split("(")[1].split(")")[0].split(", ")
    assert quoted
    assert all(word in text for word in quoted)
    assert code.confidence == round(probability(manner(ctx)), 2)


@given(st.integers(0, 500), st.integers(0, 500), st.floats(2.3, 25))
def test_more_assertions_raise_and_more_questions_or_prints_lower_it(asserts, questions, printed):
    from math import log

    def at(a, q, amount):
        return probability(Manner(log((a + 5) / (q + 5)), amount, a, q, {}))

    here = at(asserts, questions, printed)
    assert 0 < here < 1
    assert at(asserts + 5, questions, printed) > here
    assert at(asserts, questions + 5, printed) < here
    assert at(asserts, questions, printed + 0.5) < here


def test_one_detector_is_a_likelihood():
    assert [d.name for d in detectors("paper") if d.likelihood] == ["asserted_not_questioned"]
