"""Noise of an output folded away before anything is left out of a record for its length.

What is folded says next to nothing: earlier states of a progress bar, what installers and loggers
print, the same warning again, lines alike but for a counter, long listings, encoded data. Each fold
leaves a mark in square brackets that says what and how many. Every line that stays is the
transcript's, whole and unchanged, so that a quote from it is found again. Measures stay: lines
alike in which several cases differ in a number are a table, not noise.

Time is linear in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from .noise import Noise, complete, library_frame, listing, noise, unstamped

_IDENTICAL = 4
"""Adjacent lines that are equal are folded from so many on."""
_SIMILAR = 8
"""Lines alike but for a counter are folded from so many on."""
_CHATTER = 3
"""Lines of tools are folded from so many of a kind on."""
_WARNINGS = 3
"""Different warnings of one category that are shown."""
_TABLE = 64
"""Rows of a table of measures up to which it is whole; a longer one keeps its head and tail."""
_HEAD, _TAIL = 24, 8
_LISTING, _LISTING_HEAD, _LISTING_TAIL = 60, 12, 5
_BOILERPLATE = 120
"""Characters of a line that is not shown a third time."""
_FRAMES = 5
"""Frames of libraries in a row from which a traceback's inner ones are folded."""
_ENCODED = 200
"""Characters without a gap from which data is encoded rather than written."""
_LONGEST = 20_000
"""Longer lines keep their head and tail."""

_MASKED = re.compile(r"[0-9a-fA-F]{12,}|\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?")
_RULES = re.compile(r"[#=█▉▊▋▌▍▎▏━╸╺─>.\- ]{2,}")
_COLOUR = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_DATA = re.compile(rf"[A-Za-z0-9+/=_\-]{{{_ENCODED},}}")
_WRAPPED = re.compile(r"[A-Za-z0-9+/]{60,76}={0,2}|[0-9a-f]{64,}")


@dataclass
class Earlier:
    """What earlier outputs of a run showed: messages of tools, and the turns of lines long enough
    to be boilerplate."""

    messages: set[str] = field(default_factory=set)
    lines: dict[str, list[int]] = field(default_factory=dict)
    turn: int = 0


def fold(text: str, earlier: Earlier | None = None) -> str:
    """An output with its noise folded. Raw text in, raw text out: `sanitize` comes after.

    With `earlier`, what the run's outputs said before is counted rather than shown again; it learns
    from this one.
    """
    if text.count("\n") < _CHATTER and len(text) < _BOILERPLATE and "\r" not in text:
        return text
    if earlier is None:
        earlier = Earlier()
    # what a carriage return wrote over becomes a line of its own
    raw = text.replace("\r\n", "\n").replace("\r", "\n")
    plain = _COLOUR.sub("", raw) if "\x1b[" in raw else raw
    lines = plain.split("\n")
    keys = _RULES.sub(" ", _MASKED.sub("0", plain)).split("\n")
    gone, marks = _chatter(lines, keys, earlier.messages)
    _boilerplate(lines, gone, marks, earlier)
    if "Traceback (most recent call last)" in plain:
        _frames(lines, gone, marks)
    for start, end in _listings(lines, gone):
        _cut(gone, marks, range(start, end), _LISTING_HEAD, _LISTING_TAIL, "listed")
    _encoded(lines, gone, marks)
    _alike(lines, keys, gone, marks)
    return _joined(raw.split("\n"), gone, marks)


def fold_written(text: str) -> str:
    """What the agent wrote (a message, code): only equal lines in a row and encoded data are
    folded."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    gone = [False] * len(lines)
    marks: dict[int, str] = {}
    _encoded(lines, gone, marks)
    _equal(lines, gone, marks)
    return _joined(lines, gone, marks)


def _chatter(
    lines: Sequence[str], keys: Sequence[str], seen: set[str]
) -> tuple[list[bool], dict[int, str]]:
    """Lines that tools write about themselves: which are gone, and one mark for all of them."""
    gone = [False] * len(lines)
    known: dict[str, Noise | None] = {}
    groups: dict[Noise, list[int]] = {}
    for place, (line, key) in enumerate(zip(lines, keys, strict=True)):
        if key not in known:
            known[key] = noise(line)
        found = known[key]
        if found is not None and not (found.kind == "progress" and complete(line)):
            groups.setdefault(found, []).append(place)
    total = Counter[str]()
    for found, places in groups.items():
        total[found.kind] += len(places)
    counted: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    before = frozenset(seen)
    first = len(lines)
    for found, places in groups.items():
        if total[found.kind] < _CHATTER:
            continue
        category = found.group.split(" ", 1)[0]
        # A bar keeps its last state, a warning or log message its first appearance; the rest is
        # named by kind and number.
        spared = -1
        if (
            found.kind in ("warning", "log")
            and found.group not in before
            and shown[found.kind + category] < _WARNINGS
        ):
            shown[found.kind + category] += 1
            seen.add(found.group)
            spared = places[0]
        elif found.kind == "progress" and shown["progress"] < _WARNINGS:
            shown["progress"] += 1
            spared = places[-1]
        for place in places:
            if place == spared:
                continue
            gone[place] = True
            counted[found.kind] += 1
            first = min(first, place)
            following = place + 1
            if (
                found.kind == "warning"
                and following < len(lines)
                and lines[following].startswith("  ")
            ):
                gone[following] = True  # the source line that Python prints under a warning
    if not counted:
        return gone, {}
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in sorted(counted.items()))
    return gone, {first: f"[… {sum(counted.values()):,} lines of tools: {kinds} …]"}


def _boilerplate(
    lines: Sequence[str], gone: list[bool], marks: dict[int, str], earlier: Earlier
) -> None:
    """Long lines that at least two earlier turns got word for word, as a harness adds its
    reminders."""
    again: list[int] = []
    for place, line in enumerate(lines):
        if len(line) >= _BOILERPLATE and not gone[place]:
            turns = earlier.lines.setdefault(line, [])
            if len(set(turns)) >= 2:
                again.append(place)
            elif earlier.turn not in turns:
                turns.append(earlier.turn)
    for place in again:
        gone[place] = True
    if again:
        first = earlier.lines[lines[again[0]]][0]
        _mark(
            marks,
            again[0],
            f"[… {len(again):,} line{'s' if len(again) > 1 else ''} seen before, as in turn"
            f" {first} …]",
        )


def _frames(lines: Sequence[str], gone: list[bool], marks: dict[int, str]) -> None:
    """Of frames in library code that follow each other, the first and the last say where it went in
    and where it broke."""
    run: list[int] = []
    for place in range(len(lines) + 1):
        line = lines[place] if place < len(lines) else ""
        if library_frame(line):
            run.append(place)
        elif not (run and line.startswith("    ")):
            if len(run) >= _FRAMES:
                middle = range(run[1], run[-1])
                for inner in middle:
                    gone[inner] = True
                _mark(marks, run[1], f"[… {len(run) - 2} frames of libraries …]")
            run = []


def _listings(lines: Sequence[str], gone: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Runs of rows of one listing that are long enough to fold: first and end."""
    start, form = 0, None
    for place, line in enumerate(lines if len(lines) >= _LISTING else ()):
        if gone[place] or (form == "files" and not line.strip()):
            continue
        now = listing(line)
        if now != form:
            if form is not None and place - start >= _LISTING:
                yield start, place
            start, form = place, now
    if len(lines) >= _LISTING and form is not None and len(lines) - start >= _LISTING:
        yield start, len(lines)


def _cut(
    gone: list[bool], marks: dict[int, str], places: Sequence[int], head: int, tail: int, word: str
) -> None:
    """Of these lines, keep some at both ends and say how many are gone between them."""
    left = [p for p in places if not gone[p]]
    middle = left[head : len(left) - tail]
    if len(middle) < 2:
        return
    for place in middle:
        gone[place] = True
    apart = ", here and below" if middle[-1] - middle[0] >= 2 * len(middle) else ""
    _mark(marks, middle[0], f"[… {len(middle):,} {word} lines{apart} …]")


def _mark(marks: dict[int, str], place: int, text: str) -> None:
    marks[place] = f"{marks[place]}\n{text}" if place in marks else text


def _equal(lines: Sequence[str], gone: list[bool], marks: dict[int, str]) -> None:
    start = 0
    for place in range(1, len(lines) + 1):
        if place == len(lines) or lines[place] != lines[start]:
            if place - start >= _IDENTICAL and lines[start].strip():
                _cut(gone, marks, range(start, place), 2, 1, "identical")
            start = place


def _alike(
    lines: Sequence[str], keys: Sequence[str], gone: list[bool], marks: dict[int, str]
) -> None:
    """Lines of one form: counters keep their ends, tables of measures are whole up to some dozens
    of rows."""
    _equal(lines, gone, marks)
    groups: dict[str, list[int]] = {}
    for place, key in enumerate(keys):
        if not gone[place] and "0" in key:
            groups.setdefault(key, []).append(place)
    rank = list(accumulate(not g for g in gone))
    for places in groups.values():
        if len(places) < _SIMILAR or len(lines[places[0]]) > _LONGEST:
            continue
        if len(places) > _TABLE:
            _cut(gone, marks, places, _HEAD, _TAIL, "similar")
        for run in _together([p for p in places if not gone[p]], rank):
            # Counters that stand apart are headings of what follows them.
            if len(run) >= _SIMILAR and _counts([lines[p] for p in run]):
                _cut(gone, marks, run, 2, 1, "similar")


def _together(places: Sequence[int], rank: Sequence[int]) -> Iterator[list[int]]:
    """The places in runs without another shown line between them; `rank` numbers the shown lines."""
    run: list[int] = []
    for place in places:
        if run and rank[place] > rank[run[-1]] + 1:
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _counts(rows: Sequence[str]) -> bool:
    """Whether nothing but counters that go on in equal steps (and times) tells these lines apart."""
    table = [_NUMBER.findall(unstamped(row)) for row in rows[: 4 * _TABLE]]
    if any(len(row) != len(table[0]) for row in table):
        return False
    for column in zip(*table, strict=True):
        if all(value == column[0] for value in column):
            continue
        if any("." in value or len(value) > 15 for value in column):
            return False
        values = [int(value) for value in column]
        if len({b - a for a, b in pairwise(values)}) > 1:
            return False
    return True


def _encoded(lines: Sequence[str], gone: list[bool], marks: dict[int, str]) -> None:
    """Encoded data wrapped into lines: the first line stays."""
    start = -1
    for place in range(len(lines) + 1):
        line = lines[place] if place < len(lines) else ""
        if len(line) >= 60 and _WRAPPED.fullmatch(line) and _mixed(line):
            start = place if start < 0 else start
            continue
        if start >= 0 and place - start > 1:
            for inner in range(start + 1, place):
                gone[inner] = True
            _mark(marks, start + 1, f"[… {place - start - 1:,} lines of encoded data …]")
        start = -1


def _joined(lines: Sequence[str], gone: Sequence[bool], marks: dict[int, str]) -> str:
    kept: list[str] = []
    for place, line in enumerate(lines):
        if place in marks:
            kept.append(marks[place])
        if not gone[place]:
            kept.append(_short(line) if len(line) >= _ENCODED else line)
    return "\n".join(kept)


def _mixed(line: str) -> bool:
    """Digits and letters both, as encoded data has."""
    return any(c.isdigit() for c in line) and any(c.isalpha() for c in line)


def _short(line: str) -> str:
    """A line without its encoded data, and one of excessive length without its middle."""
    if len(line) > _LONGEST:
        half = _LONGEST * 2 // 5
        line = f"{line[:half]} [… {len(line) - 2 * half:,} characters …] {line[-half:]}"
    if " " in line and max(map(len, line.split())) < _ENCODED:
        return line
    return _DATA.sub(
        lambda m: (
            f"{m[0][:40]}[… {len(m[0]) - 40:,} characters of encoded data …]"
            if _mixed(m[0])
            else m[0]
        ),
        line,
    )
