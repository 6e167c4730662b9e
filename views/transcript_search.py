"""Search in a transcript, and the place of quoted words in it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
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
    """(block, line) of every line that holds the text, ignoring case, in order.

    Headings of turns are not searched.
    """
    folded = needle.casefold()
    if not folded:
        return []
    hits = []
    for number, block in enumerate(blocks):
        if block.kind != "turn":
            for line, text in enumerate(block.lines):
                if folded in text.casefold():
                    hits.append((number, line))
    return hits


def occurrences(text: str, needle: str) -> list[tuple[int, int]]:
    """(start, end) of each occurrence in one line, ignoring case."""
    if not needle:
        return []
    return [match.span() for match in re.finditer(re.escape(needle), text, re.IGNORECASE)]


def locate(quote: str, blocks: Sequence[Block], numbers: Sequence[int]) -> list[Span]:
    """Where a quote first stands in the blocks of these numbers; [] if nowhere.

    White space may differ. Parts around an ellipsis must follow each other in one block.
    """
    parts = split_at_ellipses(" ".join(quote[:_LONGEST_QUOTE].split()))
    if not parts:
        return []
    patterns = [re.compile(r"\s+".join(re.escape(word) for word in part.split())) for part in parts]
    for number in numbers:
        block = blocks[number]
        for lines in _readings(block):
            texts = [block.lines[line] for line in lines]
            stretches = _in_order(patterns, "\n".join(texts))
            if stretches:
                return [
                    Span(number, lines[place], start, end)
                    for stretch in stretches
                    for place, start, end in _spans(texts, *stretch)
                ]
    return []


def _readings(block: Block) -> Iterator[Sequence[int]]:
    """The lines of a block that follow each other in a text: of a diff the new, then the old."""
    if not block.signs:
        yield range(len(block.lines))
        return
    for gone in "-+":
        yield [line for line, sign in enumerate(block.signs) if sign != gone]


def _in_order(patterns: Sequence[re.Pattern[str]], text: str) -> list[tuple[int, int]]:
    """Where the patterns match one after the other; [] unless all do."""
    stretches = []
    position = 0
    for pattern in patterns:
        match = pattern.search(text, position)
        if match is None:
            return []
        stretches.append(match.span())
        position = match.end()
    return stretches


def _spans(lines: Sequence[str], start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Characters `start` to `end` of a text as (line, start, end) for each of its lines."""
    line_starts = [0, *accumulate(len(line) + 1 for line in lines)]
    line = bisect_right(line_starts, start) - 1
    while line < len(lines) and line_starts[line] < end:
        low = max(start - line_starts[line], 0)
        high = min(end - line_starts[line], len(lines[line]))
        if low < high:
            yield line, low, high
        line += 1
