"""Taxonomies as data."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ambjudge.error_codes.registry import detectors
from ambjudge.error_codes.taxonomy import Code, Taxonomy, taxonomy
from ambjudge.errors import AmbjudgeError
from ambjudge.tracks import BUILT_IN
from pydantic import ValidationError

ROOT = Path(__file__).parents[2]
PAPER = taxonomy("paper").codes
MAX_LINES = 16


def guidance(code: Code) -> list[str]:
    return [*code.counts, *code.does_not, *code.nearest.values(), *code.examples.values()]


def test_the_three_taxonomies():
    assert [c.code for c in taxonomy("paper").codes] == ["E1", "E2", "E3", "E4", "E5"]
    assert taxonomy("harness")["E8"].tracks == ("vqa",)
    answers = taxonomy("answers")
    assert len(answers.codes) == 14
    assert len(answers.categories) == 8
    assert {c.category for c in answers.codes} == set(answers.categories)
    for name in ("paper", "harness", "answers"):
        assert taxonomy(name).source
        assert all(c.description for c in taxonomy(name).codes)


def test_an_unknown_taxonomy_names_the_known_ones():
    with pytest.raises(AmbjudgeError, match="paper, harness, answers"):
        taxonomy("folk")


@pytest.mark.parametrize("name", ["paper", "harness"])
def test_detectors_use_codes_of_their_taxonomy(name):
    known = {c.code for c in taxonomy(name).codes}
    assert {d.code for d in detectors(name)} <= known


@pytest.mark.parametrize("code", PAPER, ids=lambda c: c.code)
def test_a_reader_of_a_paper_code_is_told_what_counts_and_what_does_not(code):
    assert code.counts
    assert code.does_not
    assert set(code.nearest) == {c.code for c in PAPER if c != code}
    # The tracks whose codes the paper describes; the other two have no published text.
    assert set(code.examples) == set(BUILT_IN) - {"classification", "synthesis"}
    # With the description and the example of one track: a third of a screen.
    assert 1 + len(code.counts) + len(code.does_not) + len(code.nearest) <= MAX_LINES
    assert all(text.endswith(".") for text in guidance(code))
    assert len(set(guidance(code))) == len(guidance(code))


def test_no_guidance_names_a_run_or_a_task_of_the_data_sets():
    labels = (ROOT / "benchmarks" / "data" / "labels.jsonl").read_text("utf-8").splitlines()
    runs = {path.name for path in ROOT.glob("tests/data/recorded/runs/*")} | {
        json.loads(line)["run"] for line in labels
    }
    assert len(runs) > 350
    names = {run.lower() for run in runs} | {run.split("-")[0].lower() for run in runs}
    names |= {"kidney", "liver", "pancreas", "feta"}
    said = {
        w
        for code in PAPER
        for t in [code.description, *guidance(code)]
        for w in re.findall(r"[\w-]+", t.lower())
    }
    assert said & names == set()


@pytest.mark.parametrize("name", ["paper", "harness", "answers"])
def test_descriptions_are_a_line_each(name):
    for code in taxonomy(name).codes:
        assert 20 <= len(code.description) <= 240
        assert "\n" not in code.description


@pytest.mark.parametrize(
    "broken",
    [
        {"nearest": {"E9": "No such code."}},
        {"nearest": {"E1": "Itself."}},
        {"counts": ["two\nlines"]},
        {"counts": ["x" * 221]},
        {"does_not": [""]},
        {"example": {}},
    ],
)
def test_broken_guidance_is_refused(broken):
    with pytest.raises(ValidationError):
        Taxonomy(
            name="mine",
            title="t",
            source="s",
            codes=(Code(code="E1", name="n", description="d", **broken),),
        )
