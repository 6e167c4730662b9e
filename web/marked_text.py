"""Text of a run as HTML: made visible, escaped, cut in the middle to the room it has, quoted words
marked at their place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from ..sanitize import sanitize

AROUND = 160
"""Characters kept on either side of a quote that stands in what would be cut."""
_HEAD = 0.6
"""Of what is kept of a long text, the part that stands before the cut."""


class Mark(NamedTuple):
    """Characters `start` to `end` of a text are a quote; `anchor` is the name that links lead to."""

    start: int
    end: int
    anchor: str


def weight(text: str) -> int:
    """Bytes that a text takes on a page, escapes included; at most a little too many."""
    return len(text.encode("utf-8", "replace")) + 4 * sum(map(text.count, "<>&\"'"))


def room_for_each(weights: Sequence[int], budget: int) -> int:
    """The largest room that every text may take when all together take no more than `budget`."""
    left, room = budget, 0
    for number, size in enumerate(sorted(weights)):
        room = max(0, left) // (len(weights) - number)
        if size > room:
            return room
        left -= size
    return max(room, *weights, 0) if weights else budget


def apart(marks: Sequence[Mark]) -> tuple[list[Mark], dict[str, str]]:
    """The marks in order and without overlaps; of those that others cover, which one stands for
    them."""
    kept: list[Mark] = []
    covered: dict[str, str] = {}
    for mark in sorted(marks):
        end = kept[-1].end if kept else 0
        if mark.end > end:
            kept.append(mark._replace(start=max(mark.start, end)))
        else:
            covered[mark.anchor] = kept[-1].anchor
    return kept, covered


def marked(text: str, marks: Sequence[Mark], room: int) -> Markup:
    """The text with its marks, which are apart; where it weighs more than `room`, the middle is
    left out and the characters counted."""
    size = weight(text)
    if size <= room:
        return _piece(text, 0, len(text), marks)
    out, at = Markup(), 0
    for start, end in _kept(len(text), len(text) * room // size, marks):
        out += _gap(start - at) + _piece(text, start, end, marks)
        at = end
    return out + _gap(len(text) - at)


def _gap(count: int) -> Markup:
    return (
        Markup('<span class="cut">… {:,} characters left out …</span>').format(count)
        if count
        else Markup()
    )


def _kept(length: int, room: int, marks: Sequence[Mark]) -> Iterator[tuple[int, int]]:
    """Stretches to show, apart and in order: the beginning, what stands around each mark, the end."""
    head = int(room * _HEAD)
    wanted = [(0, head), *((max(0, m.start - AROUND), min(length, m.end + AROUND)) for m in marks)]
    wanted.append((length - (room - head), length))
    low, high = 0, 0
    for start, end in sorted(wanted):
        if start > high:
            yield low, high
            low = start
        high = max(high, end)
    yield low, high


def _piece(text: str, start: int, end: int, marks: Sequence[Mark]) -> Markup:
    out, at = Markup(), start
    for mark in marks:
        if start <= mark.start and mark.end <= end:
            out += _safe(text[at : mark.start])
            out += Markup('<mark id="{}">{}</mark>').format(
                mark.anchor, _safe(text[mark.start : mark.end])
            )
            at = mark.end
    return out + _safe(text[at:end])


def _safe(text: str) -> Markup:
    return escape(sanitize(text))
