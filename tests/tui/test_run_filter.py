"""The filter language: what it finds, and what it says about mistakes."""

from __future__ import annotations

import pytest
from ambjudge.views.run_filter import QueryError, compile_query, words_sought
from filter_cases import FINDS, MARKED, REFUSES, ROWS
from hypothesis import given, settings
from hypothesis import strategies as st


def found(query: str, marked: frozenset[int] = frozenset()) -> list[int]:
    predicate = compile_query(query, marked)
    return [row.number for row in ROWS if predicate(row)]


@pytest.mark.parametrize(("query", "numbers"), FINDS)
def test_finds(query: str, numbers: list[int]) -> None:
    assert found(query, MARKED) == numbers


@pytest.mark.parametrize(("query", "says"), REFUSES)
def test_mistakes_are_named(query: str, says: str) -> None:
    with pytest.raises(QueryError, match=says.replace("?", r"\?")):
        compile_query(query)


PIECES = [
    "outcome.",
    "outcome.a:",
    "code:",
    "-code:",
    "unread:",
    "text:",
    "S3<",
    "stage>=",
    "__proto__:",
    "none",
    "any",
    "marked",
    "0.5",
    "1_0",
    "inf",
    "nan",
    "-",
    '"',
    " ",
    ":",
    "=",
    "\u2028",
    "\n",
    "\x1b",
    "\ud800",
    "\0",
    "ß",
    "٣",
]


def answer_or_mistake(text: str) -> list[bool] | str:
    try:
        predicate = compile_query(text)
    except QueryError as mistake:
        return str(mistake)
    return [predicate(row) for row in ROWS]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=12).map("".join))
@settings(max_examples=400)
def test_any_text_is_a_filter_or_a_mistake_named_in_one_line(text: str) -> None:
    words_sought(text)
    said = answer_or_mistake(text)
    assert len(said.splitlines()) == 1 if isinstance(said, str) else {*said} <= {True, False}


@pytest.mark.parametrize(
    "piece", ["a", "1", "1_", "S3<", "id:x ", "-", '"', ".", ":", " outcome.a>1", "S3<1 "]
)
def test_a_filter_takes_time_linear_in_its_length(piece: str, no_runaway) -> None:
    for before in ("", "outcome.", "S3<", "colour:", '"'):
        with no_runaway():
            assert len(answer_or_mistake(before + piece * 10_000)) < 400


def test_words_in_runs_are_asked_of_whoever_knows() -> None:
    asked: list[str] = []

    def holding(words: str) -> set[int]:
        asked.append(words)
        return {1, 4} if words == "out of memory" else {2}

    def numbers(query: str) -> list[int]:
        predicate = compile_query(query, (), holding)
        return [row.number for row in ROWS if predicate(row)]

    assert numbers('text:"Out of memory"') == [1, 4]
    assert numbers('text:"out of memory" tier:lite') == [4]
    assert numbers('-text:"out of memory" -error') == [0, 2]
    assert numbers('text:"out of memory" text:other') == [1, 2, 4]
    assert set(asked) == {"out of memory", "other"}


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ('text:monai -text:"no space" text: code:E3 text', ["monai", "no space"]),
        ("", []),
        ('"text:quoted"', []),
    ],
    ids=["several", "none", "quoted"],
)
def test_words_sought(query: str, words: list[str]) -> None:
    assert words_sought(query) == words
