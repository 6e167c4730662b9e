"""The sink: nothing that could steer a terminal gets through it, nothing is dropped, and what was
replaced is seen."""

from __future__ import annotations

import re
from pathlib import Path

import payloads
import pytest
from ambjudge.tui.safe_text import paint, safe, safe_line
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.style import Style

PLAIN, LOUD = Style(), Style(reverse=True)


@pytest.mark.parametrize("text", payloads.PAYLOADS.values(), ids=payloads.PAYLOADS)
def test_payloads_are_replaced_and_marked(text: str) -> None:
    segments = paint(text, PLAIN, replaced=LOUD)
    shown = "".join(segment.text for segment in segments)
    assert len(shown) == len(text)
    data = shown.encode("utf-8")
    assert not [name for name, bad in payloads.FORBIDDEN.items() if bad in data]
    changed = sum(a != b for a, b in zip(text, shown, strict=True))
    assert sum(len(s.text) for s in segments if s.style == LOUD) == changed


@given(st.text(max_size=80))
@settings(max_examples=200)
def test_any_text_becomes_printable_and_keeps_its_length(text: str) -> None:
    for shown in (
        "".join(s.text for s in paint(text, PLAIN, replaced=LOUD)),
        safe_line(text).plain,
    ):
        assert len(shown) == len(text)
        assert not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in shown)
        shown.encode("utf-8")


def test_markup_stays_text() -> None:
    text = "[@click=app.quit]x[/] [red] [/Users/foo] [b +"
    assert safe(text).plain == text
    assert safe(text).spans == []


_ROOM = Path(__file__).parents[2] / "tui"
_BANNED = {
    "text that is markup": re.compile(r"\b(?:Static|Label|Button|Option|Checkbox)\(f?\"[^\"]*\{"),
    "a message with markup": re.compile(r"markup=True|Notification\("),
    "markup or ANSI read from text": re.compile(r"from_markup|from_ansi"),
    "a widget that interprets its text": re.compile(
        r"\b(?:RichLog|Markdown|MarkdownViewer|TextArea|DataTable)\("
    ),
    "a link": re.compile(r"hyperlink|open_url|Style\(.*link="),
}


@pytest.mark.parametrize("pattern", _BANNED.values(), ids=_BANNED)
def test_no_module_of_the_browser_uses_an_unsafe_sink(pattern: re.Pattern[str]) -> None:
    found = [
        f"{path.name}: {match.group()}"
        for path in sorted(_ROOM.glob("*.py"))
        for match in pattern.finditer(re.sub(r"\n\s{8,}", " ", path.read_text()))
    ]
    assert found == []
