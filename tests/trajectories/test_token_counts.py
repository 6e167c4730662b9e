"""Tokens of a call and totals of a run, over the conventions of providers and harnesses."""

from __future__ import annotations

from typing import Any

import pytest
from ambjudge.trajectories.token_counts import CallTokens, call_tokens, run_total
from hypothesis import given
from hypothesis import strategies as st

INSIDE: dict[str, Any] = {"cache_placement": "inside", "reasoning_placement": "inside"}
BESIDE: dict[str, Any] = {"cache_placement": "beside", "reasoning_placement": "beside"}

CALLS: dict[str, tuple[dict[str, Any], tuple[int | None, int | None, str]]] = {
    "OpenAI: everything inside": (
        {"input": 2006, "output": 300, "total": 2306, "cache_read": 1920, "reasoning": 256},
        (2006, 300, "total"),
    ),
    "Anthropic: the cache beside, no total": (
        {"input": 21, "output": 393, "cache_read": 188_086, "cache_write": 12, **BESIDE},
        (188_119, 393, "convention"),
    ),
    "Anthropic behind a proxy that sums input and output": (
        {"input": 21, "output": 393, "total": 414, "cache_read": 188_086},
        (188_107, 393, "bounds"),
    ),
    "xAI: reasoning beside": (
        {"input": 900, "output": 100, "total": 6000, "reasoning": 5000},
        (900, 5100, "total"),
    ),
    "xAI: reasoning smaller than the reply, still beside": (
        {"input": 900, "output": 100, "total": 1050, "cache_read": 800, "reasoning": 50},
        (900, 150, "total"),
    ),
    "Gemini: thoughts beside, cache inside": (
        {"input": 1000, "output": 40, "total": 1440, "cache_read": 900, "reasoning": 400},
        (1000, 440, "total"),
    ),
    "Langfuse: disjoint": (
        {"input": 86, "output": 20, "total": 18_023, "cache_read": 17_817, "reasoning": 100},
        (17_903, 120, "total"),
    ),
    "Inspect before 0.3.184: cache inside": (
        {"input": 5915, "output": 207, "total": 6122, "cache_read": 3840, **BESIDE},
        (5915, 207, "total"),
    ),
    "Inspect since: cache beside, reasoning inside": (
        {"input": 2075, "output": 207, "total": 6122, "cache_read": 3840, "reasoning": 100},
        (5915, 207, "total"),
    ),
    "what is written to the cache beside, what is read inside": (
        {"input": 500, "output": 10, "total": 560, "cache_read": 400, "cache_write": 50},
        (550, 10, "total"),
    ),
    "a total that is no sum of these": (
        {"input": 500, "output": 10, "total": 77, "cache_read": 400},
        (500, 10, "convention"),
    ),
    "reasoning larger than the output": (
        {"input": 5, "output": 10, "reasoning": 40},
        (5, 50, "bounds"),
    ),
    "parts alone": ({"cache_read": 400, "reasoning": 40}, (400, 40, "bounds")),
    "only output": ({"output": 10}, (None, 10, "convention")),
    "zeros are no usage": ({"input": 0, "output": 0, "total": 0}, (None, None, "unknown")),
    "nothing": ({}, (None, None, "unknown")),
    "no counts": ({"input": "many", "output": -1, "total": 1.5}, (None, None, "unknown")),
}


@pytest.mark.parametrize("name", CALLS)
def test_tokens_of_a_call(name: str) -> None:
    stated, (input_tokens, output_tokens, basis) = CALLS[name]
    stated = dict(stated)
    tokens = call_tokens(stated.pop("input", None), stated.pop("output", None), **stated)
    assert (tokens.input, tokens.output, tokens.basis) == (input_tokens, output_tokens, basis)


_counts = st.integers(0, 10**6)


@given(_counts, _counts, _counts, _counts, _counts, st.tuples(*[st.booleans()] * 3), st.booleans())
def test_the_stated_total_is_kept_however_the_parts_are_placed(
    fresh: int,
    read: int,
    written: int,
    text: int,
    thoughts: int,
    inside: tuple[bool, bool, bool],
    is_convention_inside: bool,
) -> None:
    """Whatever a source counts inside or beside: with its total, the two numbers add up to it."""
    total = fresh + read + written + text + thoughts
    tokens = call_tokens(
        fresh + read * inside[0] + written * inside[1],
        text + thoughts * inside[2],
        total=total,
        cache_read=read,
        cache_write=written,
        reasoning=thoughts,
        **(INSIDE if is_convention_inside else BESIDE),
    )
    if not total:
        assert tokens == CallTokens()
        return
    assert (tokens.input or 0) + (tokens.output or 0) == total
    assert (tokens.input or 0) >= read + written
    assert (tokens.output or 0) >= thoughts


TOTALS: dict[str, tuple[Any, list[float | None], float | None, str, str]] = {
    "all calls state theirs": (None, [10, 20], 30, "sum", ""),
    "costs of steps, no total": (None, [0.25, 0.5], 0.75, "sum", ""),
    "stated and equal": (30, [10, 20], 30, "stated", ""),
    "equal but for rounding": (0.3, [0.1, 0.2], 0.3, "stated", ""),
    "stated alone": (30, [None, None], 30, "stated", ""),
    "stated above the sum": (50, [10, 20], 50, "stated", "20 tokens beyond those of its turns"),
    "stated, some calls": (50, [10, None], 50, "stated", "40 tokens beyond those of its turns"),
    "stated below the sum": (
        15_235,
        [10_000, 14_323],
        24_323,
        "sum",
        "tokens stated as 15,235, less than the 24,323 of its turns",
    ),
    "some calls only": (
        None,
        [10, None, None],
        None,
        "unknown",
        "tokens of the run unknown: 1 of 3 calls state 10",
    ),
    "zero with calls": (0, [None] * 13, None, "unknown", "tokens 0 for 13 calls, taken as unknown"),
    "zero, and calls that state more": (0, [10, 20], 30, "sum", ""),
    "zeros everywhere": (0, [0, 0], None, "unknown", "tokens 0 for 2 calls, taken as unknown"),
    "zero without calls": (0, [], 0, "stated", ""),
    "nothing": (None, [], None, "unknown", ""),
    "not a number": ("n/a", [None], None, "unknown", ""),
}


@pytest.mark.parametrize("name", TOTALS)
def test_total_of_a_run(name: str) -> None:
    stated, per_call, value, basis, note = TOTALS[name]
    assert run_total(stated, per_call, "tokens") == (value, basis, note)
