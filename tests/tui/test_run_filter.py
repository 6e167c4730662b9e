"""The filter language: what it finds, and what it says about mistakes."""

from __future__ import annotations

import pytest
from ambjudge.tui.run_filter import QueryError, compile_query, words_sought
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


@given(st.text(max_size=40))
@settings(max_examples=200)
def test_any_text_is_a_filter_or_a_named_mistake(text: str) -> None:
    try:
        predicate = compile_query(text)
    except QueryError:
        return
    assert all(predicate(row) in (True, False) for row in ROWS)


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
