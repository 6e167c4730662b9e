"""Search in a transcript, and finding the words of a quote again; pure functions over blocks."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ..trajectories.record.quotes import split_at_ellipses
from .transcript_layout import Block

_LONGEST_QUOTE = 2000
"""Characters of a quote that are looked for; more would only make the pattern slow."""


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of a line of a block."""

    block: int
    line: int
    start: int
    end: int


def search(blocks: Sequence[Block], needle: str) -> list[tuple[int, int]]:
    """(block, line) of every line that holds the text, ignoring case, in order. Headings of turns
    are not searched."""
    wanted = needle.casefold()
    if not wanted:
        return []
    return [
        (number, line)
        for number, block in enumerate(blocks)
        if block.kind != "turn"
        for line, text in enumerate(block.lines)
        if wanted in text.casefold()
    ]


def occurrences(text: str, needle: str) -> list[tuple[int, int]]:
    """(start, end) of each occurrence in one line, ignoring case."""
    return (
        [match.span() for match in re.finditer(re.escape(needle), text, re.IGNORECASE)]
        if needle
        else []
    )


def locate(quote: str, blocks: Sequence[Block], numbers: Sequence[int]) -> list[Span]:
    """Where a quote stands in these blocks, white space and ellipses aside; [] when it does not.

    The first place is taken. Parts around an ellipsis must follow each other in one block.
    """
    parts = split_at_ellipses(" ".join(quote[:_LONGEST_QUOTE].split()))
    if not parts:
        return []
    patterns = [re.compile(r"\s+".join(re.escape(word) for word in part.split())) for part in parts]
    for number in numbers:
        block = blocks[number]
        text = "\n".join(block.lines)
        found: list[tuple[int, int]] = []
        position = 0
        for pattern in patterns:
            match = pattern.search(text, position)
            if match is None:
                break
            found.append(match.span())
            position = match.end()
        else:
            return [span for start, end in found for span in _spans(number, block, start, end)]
    return []


def _spans(number: int, block: Block, start: int, end: int) -> list[Span]:
    """A stretch of a block's text as one span a line."""
    begins = [0, *accumulate(len(line) + 1 for line in block.lines)]
    spans = []
    line = bisect_right(begins, start) - 1
    while line < len(block.lines) and begins[line] < end:
        low, high = max(start - begins[line], 0), min(end - begins[line], len(block.lines[line]))
        if low < high:
            spans.append(Span(number, line, low, high))
        line += 1
    return spans
