"""Rows of a transcript: every row is exactly one part of one line, whatever the text, folds and
width."""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.sanitize import sanitize_line
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.turns.segment import segment
from ambjudge.views.transcript_layout import (
    FOLD,
    FOLD_OVER,
    HEAD,
    LONGEST,
    TAIL,
    TITLE,
    Block,
    Layout,
    blocks_of,
    cuts,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

RECORDED = Path(__file__).parents[1] / "data" / "recorded"

lines = st.text(
    alphabet=st.sampled_from("ab cdé界😀\t\x1b\u202e\u200b\u0301-"), max_size=60
).filter(lambda t: "\n" not in t)
kinds = st.sampled_from(["text", "code", "output", "error"])
blocks = st.lists(
    st.builds(
        lambda kind, title, body, repeat, folded: Block(
            1, "S1", kind, title, body * repeat, folded=folded
        ),
        kinds,
        st.sampled_from(["", "output · exit 0"]),
        st.lists(lines, min_size=1, max_size=6),
        st.sampled_from([1, 20]),
        st.booleans(),
    ),
    min_size=1,
    max_size=5,
)


@given(blocks, st.integers(10, 40))
@settings(max_examples=60, deadline=None)
def test_every_row_is_one_part_of_one_line_and_is_found_again(
    found: list[Block], width: int
) -> None:
    layout = Layout(found, width)
    seen = []
    for y in range(layout.height):
        row = layout.row(y)
        assert layout.find(row.block, row.line) + row.part == y
        seen.append((row.block, row.line, row.part))
    assert len(set(seen)) == len(seen) == layout.height
    assert layout.height == sum(block.rows for block in found)


@given(lines, st.integers(10, 40), st.booleans())
@settings(max_examples=200, deadline=None)
def test_rows_hold_all_of_a_line_and_are_no_wider_than_the_screen(
    text: str, width: int, words: bool
) -> None:
    starts = cuts(text, width, words)
    ends = [*starts[1:], len(text)]
    shown = sanitize_line(text)
    parts = [shown[a:b] for a, b in zip(starts, ends, strict=True)]
    assert "".join(parts) == shown
    assert all(cell_len(part) <= width for part in parts)
    assert starts == sorted(set(starts))


@given(blocks, st.integers(10, 40), st.integers(10, 40), st.data())
@settings(max_examples=40, deadline=None)
def test_folding_and_resizing_there_and_back_changes_nothing(
    found: list[Block], width: int, other: int, data: st.DataObject
) -> None:
    layout = Layout(found, width)
    before = [layout.row(y) for y in range(layout.height)]
    number = data.draw(st.integers(0, len(found) - 1))
    was = layout.blocks[number].folded
    layout.fold([number], not was)
    layout.resize(other)
    layout.fold([number], was)
    layout.resize(width)
    assert [layout.row(y) for y in range(layout.height)] == before


def long_block(folded: bool = True) -> Block:
    return Block(1, "S1", "output", "output", [f"line {n}" for n in range(200)], folded=folded)


def test_a_fold_hides_the_middle_and_says_so() -> None:
    layout = Layout([long_block()], 40)
    assert layout.height == 1 + HEAD + 1 + TAIL
    assert layout.row(0).line == TITLE
    assert layout.row(1 + HEAD).line == FOLD
    assert layout.row(layout.height - 1).line == 199


@pytest.mark.parametrize(
    ("line", "revealed"), [(3, False), (100, True), (195, False)], ids=["head", "middle", "tail"]
)
def test_only_a_line_behind_the_fold_opens_it(line: int, revealed: bool) -> None:
    layout = Layout([long_block()], 40)
    layout.reveal(0, line)
    assert layout.blocks[0].closed is not revealed
    assert layout.row(layout.find(0, line)).line == line


def test_short_outputs_do_not_fold() -> None:
    block = Block(1, "S1", "output", "", ["x"] * FOLD_OVER, folded=True)
    assert not block.foldable
    assert Layout([block], 40).height == FOLD_OVER


def test_what_is_left_of_an_endless_line_has_a_row_of_its_own() -> None:
    layout = Layout([Block(1, None, "output", "", ["x" * (LONGEST + 123)])], 100)
    assert layout.height == LONGEST // 100 + 1
    assert layout.blocks[0].offsets(0, 100)[-1] == LONGEST


def test_hidden_kinds_take_no_rows_and_come_back() -> None:
    layout = Layout([Block(1, "S1", "text", "", ["a"]), Block(1, "S1", "output", "o", ["b"])], 40)
    layout.hide(frozenset({"output"}))
    assert layout.height == 1
    layout.reveal(1, 0)
    assert layout.height == 3
    layout.hide(frozenset())
    assert layout.height == 3


def test_an_offset_finds_the_row_that_holds_it() -> None:
    layout = Layout([Block(1, "S1", "output", "", ["0123456789" * 3])], 10)
    assert [layout.find(0, 0, offset) for offset in (0, 9, 10, 29)] == [0, 0, 1, 2]


def test_an_empty_transcript_has_no_rows() -> None:
    layout = Layout([], 40)
    assert layout.height == 0
    assert layout.turn_at(5) == 0
    with pytest.raises(IndexError):
        layout.row(0)


@pytest.mark.parametrize("name", ["kidney-lite-01", "ldct-lite-02", "vqa-std-01"])
def test_a_recorded_run_is_shown_whole(name: str) -> None:
    run = load_run(RECORDED / "runs" / name)
    blocks = list(blocks_of(run, segment(run)))
    shown = "\n".join(line for block in blocks for line in [block.title, *block.lines])
    for turn in run.turns:
        for action in turn.actions:
            assert action.code.rstrip("\n") in shown
            if action.observation is not None:
                assert action.observation.stdout.rstrip("\n") in shown
                assert action.observation.stderr.rstrip("\n") in shown
    layout = Layout(blocks, 80)
    assert [layout.turn_at(layout.turn_row(t.index)) for t in run.turns] == [
        t.index for t in run.turns
    ]
