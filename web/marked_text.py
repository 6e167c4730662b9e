"""Text of a run as HTML: sanitised, escaped, cut to the room there is, with quotes marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from ..sanitize import sanitize

AROUND = 160
"""Characters that are shown on either side of a quote in the middle of a cut text."""
_HEAD_SHARE = 0.6
"""Share of the room of a cut text that goes to its beginning; the rest goes to its end."""


class Mark(NamedTuple):
    """A quote, characters `start` to `end` of a text; `anchor` is the name that links lead to."""

    start: int
    end: int
    anchor: str


def weight(text: str) -> int:
    """Bytes that a text takes on a page, escapes included; at most a little too many."""
    return len(text.encode("utf-8", "replace")) + 4 * sum(map(text.count, "<>&\"'"))


def room_for_each(weights: Sequence[int], budget: int) -> int:
    """The largest room for each text with which all together take no more than `budget`.

    What small texts leave unused goes to the larger ones.
    """
    if not weights:
        return budget
    unused, room = budget, 0
    for count, size in enumerate(sorted(weights)):
        room = max(0, unused) // (len(weights) - count)
        if size > room:
            return room
        unused -= size
    return max(room, *weights, 0)


def disjoint(marks: Sequence[Mark]) -> tuple[list[Mark], dict[str, str]]:
    """The marks in order and without overlaps.

    For marks that lie wholly within others, the second value says whose anchor stands for theirs.
    """
    separate: list[Mark] = []
    covered_by: dict[str, str] = {}
    for mark in sorted(marks):
        end = separate[-1].end if separate else 0
        if mark.end > end:
            separate.append(mark._replace(start=max(mark.start, end)))
        else:
            covered_by[mark.anchor] = separate[-1].anchor
    return separate, covered_by


def marked(text: str, marks: Sequence[Mark], room: int, signs: str = "") -> Markup:
    """The text with its marks, which must be disjoint; `signs` of a diff: one for each line.

    Of a text that weighs more than `room` the middle is left out, and its characters are counted.
    """
    size = weight(text)
    if size <= room:
        return _signed(text, 0, len(text), marks, signs)
    html, position = Markup(), 0
    for start, end in _shown_stretches(len(text), len(text) * room // size, marks):
        html += _gap(start - position) + _signed(text, start, end, marks, signs)
        position = end
    return html + _gap(len(text) - position)


def _gap(count: int) -> Markup:
    if not count:
        return Markup()
    return Markup('<span class="cut">… {:,} characters left out …</span>').format(count)


def _shown_stretches(length: int, room: int, marks: Sequence[Mark]) -> Iterator[tuple[int, int]]:
    """Disjoint stretches in order: the beginning, the surroundings of each mark, the end."""
    head = int(room * _HEAD_SHARE)
    stretches = [(0, head), (length - (room - head), length)]
    for mark in marks:
        stretches.append((max(0, mark.start - AROUND), min(length, mark.end + AROUND)))
    low, high = 0, 0
    for start, end in sorted(stretches):
        if start > high:
            yield low, high
            low = start
        high = max(high, end)
    yield low, high


_SIGNS = {"+": "added", "-": "removed", " ": "same"}


def _signed(text: str, start: int, end: int, marks: Sequence[Mark], signs: str) -> Markup:
    """A stretch of a text; of a diff, each line as an element of its own."""
    if not signs:
        return _stretch(text, start, end, marks)
    html, position = Markup(), 0
    for number, (line, sign) in enumerate(zip(text.split("\n"), signs, strict=False)):
        low, high = max(start, position), min(end, position + len(line))
        if low <= high:
            pieces = list(_within(marks, low, high, number))
            body = _stretch(text, low, high, pieces)
            html += Markup('<span class="{}">{}\n</span>').format(_SIGNS[sign], body)
        position += len(line) + 1
    return html


def _within(marks: Sequence[Mark], start: int, end: int, line: int) -> Iterator[Mark]:
    """The parts of marks on a line; those after the first are named after it."""
    for mark in marks:
        low, high = max(mark.start, start), min(mark.end, end)
        if low < high:
            is_first = mark.start >= start
            yield Mark(low, high, mark.anchor if is_first else f"{mark.anchor}-0-{line}")


def _stretch(text: str, start: int, end: int, marks: Sequence[Mark]) -> Markup:
    html, position = Markup(), start
    for mark in marks:
        if start <= mark.start and mark.end <= end:
            html += _safe(text[position : mark.start])
            quote = _safe(text[mark.start : mark.end])
            html += Markup('<mark id="{}">{}</mark>').format(mark.anchor, quote)
            position = mark.end
    return html + _safe(text[position:end])


def _safe(text: str) -> Markup:
    return escape(sanitize(text))
