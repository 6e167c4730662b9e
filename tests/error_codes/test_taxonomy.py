"""Taxonomies as data."""

from __future__ import annotations

import pytest
from ambjudge.error_codes.registry import detectors
from ambjudge.error_codes.taxonomy import taxonomy
from ambjudge.errors import AmbjudgeError


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
