"""Patterns that disregard case: what they find is what `re` finds."""

import re

import pytest
from ambjudge.trajectories.turns.fast_ignorecase import IgnoreCasePattern
from hypothesis import given
from hypothesis import strategies as st

PATTERNS = (
    r"error|no such|can't|E: |\S+Error",
    r"(?<![A-Z])left\b|^RIGHT$|\bcp\b",
    r"(?P<What>size|[A-F]{2}) ?[=:]\s?(\d{1,3})",
    r"not (?:found|[^A-Z\n]{2})|(?-i:RED)",
)
WORDS = st.sampled_from(
    [
        "error",
        "ERROR",
        "No such",
        "LEFT",
        "aleft",
        "right",
        "Size = 3",
        "ab:12",
        "not é",
        "RED",
        "red",
        "İ",
        "é",
        "\n",
        " ",
    ]
)


def spans(matches):
    return [(m.span(), m.groups()) for m in matches]


@pytest.mark.parametrize("pattern", PATTERNS)
@given(words=st.lists(WORDS, max_size=12), between=st.sampled_from(["", " ", "\n"]))
def test_finds_what_re_finds(pattern, words, between):
    text = between.join(words)
    plain, quick = re.compile(pattern, re.IGNORECASE), IgnoreCasePattern(pattern)
    assert spans(quick.finditer(text)) == spans(plain.finditer(text))
    first, other = quick.search(text), plain.search(text)
    assert spans([first] if first else []) == spans([other] if other else [])
