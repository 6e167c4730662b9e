"""Text from a transcript reaches a terminal only after every character that could act on it was
replaced."""

from __future__ import annotations

import json
import unicodedata

import pytest
from ambjudge.sanitize import escape_json, replaced, sanitize, sanitize_line
from hypothesis import given
from hypothesis import strategies as st

CASES = [
    pytest.param("\x1b[2J", "␛[2J", id="clear screen"),
    pytest.param(
        "\x1b]8;;http://x\x07click\x1b]8;;\x07", "␛]8;;http://x␇click␛]8;;␇", id="OSC 8 link"
    ),
    pytest.param("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇", id="OSC 52 clipboard"),
    pytest.param("\x9b31m", "\ufffd31m", id="C1 introducer"),
    pytest.param("12 failed\rall passed", "12 failed␍all passed", id="carriage return overwrites"),
    pytest.param("a\x00b\x7f", "a␀b␡", id="NUL and DEL"),
    pytest.param("user\u202etxt.exe", "user⇄txt.exe", id="bidi override"),
    pytest.param("pay\u200bload\ufeff", "pay·load·", id="zero width"),
    pytest.param("a\u2028b", "a␤b", id="line separator"),
    pytest.param("\ud800", "\ufffd", id="lone surrogate"),
    pytest.param("x\U000e0041", "x·", id="tag character"),
    pytest.param("tab\tand\nnewline é 漢字 🎉", "tab\tand\nnewline é 漢字 🎉", id="harmless stays"),
]


@pytest.mark.parametrize(("text", "shown"), CASES)
def test_shown_as(text: str, shown: str) -> None:
    assert sanitize(text) == shown
    assert len(sanitize(text)) == len(text)
    assert (replaced(text) > 0) == (text != shown)


def test_one_line() -> None:
    assert sanitize_line("a\nb\tc") == "a␤b c"


@given(st.text(st.characters(codec=None)))
def test_nothing_that_acts_is_left(text: str) -> None:
    safe = sanitize(text)
    assert len(safe) == len(text)
    assert sanitize(safe) == safe
    for char in safe:
        assert char in "\t\n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_escaped_json_is_the_same_value_without_anything_that_acts(text: str) -> None:
    line = escape_json(json.dumps({text: text}, ensure_ascii=False))
    assert json.loads(line) == {text: text}
    assert sanitize(line) == line
