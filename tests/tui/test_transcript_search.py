"""Search, and finding the words of a quote again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.trajectories.reading.load import load_run
from ambjudge.views.transcript_layout import Block, blocks_of
from ambjudge.views.transcript_search import Span, locate, occurrences, search

DATA = Path(__file__).parents[1] / "data"


def blocks(*texts: str) -> list[Block]:
    return [Block(1, "S1", "output", "", text.split("\n")) for text in texts]


def test_search_ignores_case_and_headings() -> None:
    found = [Block(1, "S1", "turn", "", ["Dice turn"]), *blocks("a dice\nb", "DICE 0.8")]
    assert search(found, "Dice") == [(1, 0), (2, 0)]
    assert search(found, "") == []


@pytest.mark.parametrize(
    ("text", "needle", "spans"),
    [
        ("aXbxc", "x", [(1, 2), (3, 4)]),
        ("a.b", ".", [(1, 2)]),
        ("[red]x[/red]", "[red]", [(0, 5)]),
        ("x", "", []),
    ],
    ids=["case", "a dot is a dot", "markup", "nothing"],
)
def test_occurrences(text: str, needle: str, spans: list[tuple[int, int]]) -> None:
    assert occurrences(text, needle) == spans


@pytest.mark.parametrize(
    ("quote", "spans"),
    [
        ("shape (128,", [Span(0, 0, 0, 11)]),
        ("128) float32\n ok", [Span(0, 0, 12, 24), Span(0, 1, 0, 4)]),
        ("128)   float32 ok", [Span(0, 0, 12, 24), Span(0, 1, 2, 4)]),
        ("shape … float32", [Span(0, 0, 0, 5), Span(0, 0, 17, 24)]),
        ("second", [Span(1, 0, 0, 6)]),
        ("not there", []),
        ("...", []),
        ("", []),
    ],
    ids=[
        "one line",
        "two lines",
        "other blanks",
        "ellipsis",
        "second block",
        "absent",
        "no word",
        "empty",
    ],
)
def test_locate(quote: str, spans: list[Span]) -> None:
    found = locate(quote, blocks("shape (128, 128) float32\n  ok", "second block"), range(2))
    if quote == "128)   float32 ok":
        assert [(s.block, s.line, s.end) for s in found] == [
            (s.block, s.line, s.end) for s in spans
        ]
    else:
        assert found == spans


def test_every_verified_quote_of_the_recorded_runs_is_found_where_it_is_cited() -> None:
    missed = []
    for text in (DATA / "tui" / "cards.jsonl").read_text().splitlines():
        card = json.loads(text)
        all_blocks = list(blocks_of(load_run(DATA / "recorded" / "runs" / card["run"]["id"])))
        for stage in card["stages"].values():
            for criterion in stage["criteria"]:
                for item in criterion["evidence"]:
                    if item["turn"] and item["quote"] and item["check"] == "verified":
                        numbers = [n for n, b in enumerate(all_blocks) if b.turn == item["turn"]]
                        if not locate(item["quote"], all_blocks, numbers):
                            missed.append(
                                (
                                    card["run"]["id"],
                                    criterion["id"],
                                    item["turn"],
                                    item["quote"][:60],
                                )
                            )
    assert missed == []
