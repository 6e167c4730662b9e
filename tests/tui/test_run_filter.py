"""The filter language: what it finds, and what it says about mistakes."""

from __future__ import annotations

import pytest
from ambjudge.tui.run_filter import QueryError, compile_query, words_sought
from ambjudge.tui.run_rows import RunRow
from hypothesis import given, settings
from hypothesis import strategies as st

ROWS = [
    RunRow(0, "kidney-lite-01", "p", "scored", "agent-a", "gpt", "kidney-seg-task", "segmentation", "lite", 1, 20, (1.0, 0.8, 0.4, 1.0, 1.0), 0.8, 0.7, 75.0, ("E3", "E5"), "S3:E3", "submitted", cost=1.5),
    RunRow(1, "vqa-std-02", "p", "scored", "agent-b", "gpt", "slake-task", "vqa", "standard", 2, 40, (1.0, 1.0, 1.0, None, 1.0), 0.9, None, None, (), None, "stopped", contradictions=2, unscored=1, outcomes={"resolved": True, "tests.a": "passed", "reward": 0.5}),
    RunRow(2, "bccd-pro-03", "p", "waiting"),
    RunRow(3, "odd run", "p", "error", error="broken"),
    RunRow(4, "ldct-lite-04", "p", "scored", "agent-a", None, "ldct-denoising-task", "enhancement", "lite", 3, 30, (0.0,) * 5, 0.0, 0.0, 0.0, ("E1",), None, "breach", True, 4, unverified=1, unknown=("E3",)),
]  # fmt: skip


def found(query: str, marked: frozenset[int] = frozenset()) -> list[int]:
    predicate = compile_query(query, marked)
    return [row.number for row in ROWS if predicate(row)]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("", [0, 1, 2, 3, 4]),
        ("LITE", [0, 4]),
        ("kidney lite", [0]),
        ("track:vqa", [1]),
        ("track:vqa track:enh", [1, 4]),
        ("tier:lite agent:agent-a", [0, 4]),
        ("-tier:lite", [1, 2, 3]),
        ("code:E3", [0]),
        ("code:e3 code:E1", [0, 4]),
        ("code:none", [1]),
        ("code:any", [0, 4]),
        ("-code:E3", [1]),
        ("-code:e5 -code:E1", [1]),
        ("-code:any", [1]),
        ("-code:none", [0, 4]),
        ("unread:E3", [4]),
        ("unread:any", [4]),
        ("unread:none", [0, 1]),
        ("-unread:any scored", [0, 1]),
        ("S3<0.5", [0, 4]),
        ("S4>=1", [0]),
        ("stage<0.5", [0, 4]),
        ("overall>50", [0]),
        ("taskscore=0.7", [0]),
        ("codes>=2", [0]),
        ("turns<=30 scored", [0, 4]),
        ("unscored", [1, 2, 3]),
        ("contradictions", [1]),
        ("waiting", [2]),
        ("error", [3]),
        ("disqualified", [4]),
        ("unverified", [4]),
        ("-error -waiting", [0, 1, 4]),
        ('"odd run"', [3]),
        ('id:"odd run"', [3]),
        ('"waiting"', []),
        ("model:none", [2, 3, 4]),
        ("ended:breach", [4]),
        ("primary:E3", [0]),
        ("marked", [1]),
        ("-marked scored", [0, 4]),
        ("-", [0, 1, 2, 4]),
        ("outcome.resolved:yes", [1]),
        ("outcome.resolved:no", []),
        ("-outcome.resolved:none", [1]),
        ("outcome.Tests.a:passed", [1]),
        ("outcome.reward>=0.5", [1]),
        ("outcome.reward>0.5", []),
    ],
)  # fmt: skip
def test_finds(query: str, numbers: list[int]) -> None:
    assert found(query, frozenset({1})) == numbers


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("colour:red", "no facet colour:"),
        ("agnet:x", "did you mean agent?"),
        ("S9<0.5", "no number 'S9'"),
        ("S3<half", "is not a number"),
        ("S3<", "is not a number"),
        ("code:", "code: needs a value"),
    ],
)
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
