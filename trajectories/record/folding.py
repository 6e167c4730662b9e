"""Folds the noise of outputs, before anything is left out of a record for its length.

What is folded says next to nothing: earlier states of a progress bar, what installers and loggers
print, repeated warnings, lines that differ in a counter only, long listings, encoded data. Each
fold leaves a mark in square brackets that says what was folded and how many lines. Every remaining
line is the transcript's, complete and unchanged, so that a quote from it is found again. Measures
remain: similar lines in which several numbers differ are a table, not noise.

Time is linear in the length of the text. The marks are part of the record that a judge is shown:
their wording must not change without a new `assembly.PACKING`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from .noise import (
    Noise,
    is_final_state,
    is_library_frame,
    listing_form,
    noise,
    without_timestamp,
)

_MIN_IDENTICAL = 4
"""Adjacent equal lines that are folded."""
_MIN_SIMILAR = 8
"""Lines that differ in a counter only that are folded."""
_MIN_CHATTER = 3
"""Lines of one kind of tool chatter that are folded."""
_MAX_WARNINGS = 3
"""Different warnings of one category that are shown, and progress bars of one output."""
_TABLE_ROWS = 64
"""Rows of a table of measures that is shown whole; a longer one keeps its head and tail."""
_TABLE_HEAD, _TABLE_TAIL = 24, 8
_MIN_LISTING, _LISTING_HEAD, _LISTING_TAIL = 60, 12, 5
_MIN_BOILERPLATE = 120
"""Characters of a line that is not shown a third time."""
_MIN_FRAMES = 5
"""Consecutive frames of libraries from which a traceback's inner ones are folded."""
_MIN_ENCODED = 200
"""Characters without white space that are encoded data rather than text."""
_MAX_LINE = 20_000
"""Longer lines keep their head and tail."""

_MASKED = re.compile(r"[0-9a-fA-F]{12,}|\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?")
_RULES = re.compile(r"[#=█▉▊▋▌▍▎▏━╸╺─>.\- ]{2,}")
_COLOUR = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_DATA = re.compile(rf"[A-Za-z0-9+/=_\-]{{{_MIN_ENCODED},}}")
_WRAPPED = re.compile(r"[A-Za-z0-9+/]{60,76}={0,2}|[0-9a-f]{64,}")


@dataclass
class Earlier:
    """What earlier outputs of a run showed: tool messages, and the turns of each long line."""

    messages: set[str] = field(default_factory=set)
    lines: dict[str, list[int]] = field(default_factory=dict)
    turn: int = 0


class _Lines:
    """The lines of a text while it is folded: which are hidden, and the marks in their place."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.hidden = [False] * len(lines)
        self.marks: dict[int, str] = {}
        """Marks by the index of the line before which they stand."""

    def hide(self, indices: Sequence[int], mark: str) -> None:
        """Hide these lines and put a mark before the first of them."""
        for index in indices:
            self.hidden[index] = True
        self.mark(indices[0], mark)

    def hide_middle(self, indices: Sequence[int], *, head: int, tail: int, word: str) -> None:
        """Of the visible ones of these lines show `head` and `tail`, and hide those between."""
        visible = self.visible(indices)
        middle = visible[head : len(visible) - tail]
        if len(middle) < 2:
            return
        scattered = middle[-1] - middle[0] >= 2 * len(middle)
        location = ", here and below" if scattered else ""
        self.hide(middle, f"[… {len(middle):,} {word} lines{location} …]")

    def mark(self, index: int, text: str) -> None:
        """Put a mark before a line, after marks that are there already."""
        earlier_mark = self.marks.get(index)
        self.marks[index] = text if earlier_mark is None else f"{earlier_mark}\n{text}"

    def visible(self, indices: Sequence[int]) -> list[int]:
        """Those of these lines that are not hidden."""
        return [index for index in indices if not self.hidden[index]]

    def render(self, texts: Sequence[str]) -> str:
        """The folded text; `texts` are the lines as they are to be shown."""
        rendered: list[str] = []
        for index, text in enumerate(texts):
            if index in self.marks:
                rendered.append(self.marks[index])
            if not self.hidden[index]:
                rendered.append(_shorten_line(text) if len(text) >= _MIN_ENCODED else text)
        return "\n".join(rendered)


def fold(text: str, earlier: Earlier | None = None) -> str:
    """An output with its noise folded. The result is raw text: `sanitize` comes after.

    With `earlier`, messages and long lines that the run's outputs showed before are counted rather
    than shown again; what this output shows is added to it.
    """
    if text.count("\n") < _MIN_CHATTER and len(text) < _MIN_BOILERPLATE and "\r" not in text:
        return text
    if earlier is None:
        earlier = Earlier()
    # What a carriage return overwrote becomes a line of its own.
    raw = text.replace("\r\n", "\n").replace("\r", "\n")
    plain = _COLOUR.sub("", raw) if "\x1b[" in raw else raw
    folded = _Lines(plain.split("\n"))
    # Lines that differ in numbers, rules and bars only have the same form.
    forms = _RULES.sub(" ", _MASKED.sub("0", plain)).split("\n")
    # Kinds with a name of their own come first; what merely repeats comes last.
    _fold_chatter(folded, forms, earlier.messages)
    _fold_boilerplate(folded, earlier)
    if "Traceback (most recent call last)" in plain:
        _fold_library_frames(folded)
    _fold_listings(folded)
    _fold_encoded(folded)
    _fold_identical(folded)
    _fold_similar(folded, forms)
    return folded.render(raw.split("\n"))


def fold_written(text: str) -> str:
    """What the agent wrote (a message, code), with repeated lines and encoded data folded."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    folded = _Lines(text.split("\n"))
    _fold_encoded(folded)
    _fold_identical(folded)
    return folded.render(folded.lines)


def _fold_chatter(folded: _Lines, forms: Sequence[str], messages: set[str]) -> None:
    """Hide lines that tools print about themselves; one mark counts them all by kind.

    `messages` are those shown so far in the run; new ones are added.
    """
    groups = _chatter_groups(folded.lines, forms)
    sizes: Counter[str] = Counter()
    for group, indices in groups.items():
        sizes[group.kind] += len(indices)
    hidden: Counter[str] = Counter()
    shown_counts: Counter[str] = Counter()
    shown_before = frozenset(messages)
    first = len(folded.lines)
    for group, indices in groups.items():
        if sizes[group.kind] < _MIN_CHATTER:
            continue
        # A bar keeps its last state, a warning or log message its first appearance.
        representative = None
        category = group.kind + group.group.split(" ", 1)[0]
        if group.kind in ("warning", "log"):
            if group.group not in shown_before and shown_counts[category] < _MAX_WARNINGS:
                shown_counts[category] += 1
                messages.add(group.group)
                representative = indices[0]
        elif group.kind == "progress" and shown_counts["progress"] < _MAX_WARNINGS:
            shown_counts["progress"] += 1
            representative = indices[-1]
        for index in indices:
            if index == representative:
                continue
            folded.hidden[index] = True
            hidden[group.kind] += 1
            first = min(first, index)
            if group.kind == "warning" and _is_source_line(folded.lines, index + 1):
                folded.hidden[index + 1] = True
    if hidden:
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in sorted(hidden.items()))
        folded.mark(first, f"[… {sum(hidden.values()):,} lines of tools: {kinds} …]")


def _chatter_groups(lines: Sequence[str], forms: Sequence[str]) -> dict[Noise, list[int]]:
    """The lines of tool chatter by group; final states that state a measure are left out."""
    noise_of_form: dict[str, Noise | None] = {}
    groups: dict[Noise, list[int]] = {}
    for index, (line, form) in enumerate(zip(lines, forms, strict=True)):
        if form not in noise_of_form:
            noise_of_form[form] = noise(line)
        group = noise_of_form[form]
        if group is None or (group.kind == "progress" and is_final_state(line)):
            continue
        groups.setdefault(group, []).append(index)
    return groups


def _is_source_line(lines: Sequence[str], index: int) -> bool:
    """Whether this can be the line of source code that Python prints under a warning."""
    return index < len(lines) and lines[index].startswith("  ")


def _fold_boilerplate(folded: _Lines, earlier: Earlier) -> None:
    """Hide long lines that at least two earlier turns had word for word, e.g. a harness's hints."""
    repeated: list[int] = []
    for index, line in enumerate(folded.lines):
        if len(line) < _MIN_BOILERPLATE or folded.hidden[index]:
            continue
        turns = earlier.lines.setdefault(line, [])
        if len(set(turns)) >= 2:
            repeated.append(index)
        elif earlier.turn not in turns:
            turns.append(earlier.turn)
    if repeated:
        first_turn = earlier.lines[folded.lines[repeated[0]]][0]
        count = f"{len(repeated):,} line{'' if len(repeated) == 1 else 's'}"
        folded.hide(repeated, f"[… {count} seen before, as in turn {first_turn} …]")


def _fold_library_frames(folded: _Lines) -> None:
    """Of consecutive frames in library code, show where the code went in and where it broke."""
    frames: list[int] = []
    for index, line in enumerate([*folded.lines, ""]):
        if is_library_frame(line):
            frames.append(index)
        # The source line of a frame is indented by four: it belongs to the frame.
        elif not (frames and line.startswith("    ")):
            if len(frames) >= _MIN_FRAMES:
                middle = range(frames[1], frames[-1])
                folded.hide(middle, f"[… {len(frames) - 2} frames of libraries …]")
            frames = []


def _fold_listings(folded: _Lines) -> None:
    for start, end in list(_long_listings(folded)):
        folded.hide_middle(range(start, end), head=_LISTING_HEAD, tail=_LISTING_TAIL, word="listed")


def _long_listings(folded: _Lines) -> Iterator[tuple[int, int]]:
    """The start and end of each run of rows of one listing that is long enough to fold."""
    if len(folded.lines) < _MIN_LISTING:
        return
    start, form = 0, None
    for index, line in enumerate(folded.lines):
        # `ls -R` puts blank lines between folders.
        if folded.hidden[index] or (form == "files" and not line.strip()):
            continue
        row_form = listing_form(line)
        if row_form != form:
            if form is not None and index - start >= _MIN_LISTING:
                yield start, index
            start, form = index, row_form
    if form is not None and len(folded.lines) - start >= _MIN_LISTING:
        yield start, len(folded.lines)


def _fold_identical(folded: _Lines) -> None:
    lines = folded.lines
    start = 0
    for index in range(1, len(lines) + 1):
        if index < len(lines) and lines[index] == lines[start]:
            continue
        if index - start >= _MIN_IDENTICAL and lines[start].strip():
            folded.hide_middle(range(start, index), head=2, tail=1, word="identical")
        start = index


def _fold_similar(folded: _Lines, forms: Sequence[str]) -> None:
    """Fold lines of one form: of counters show the ends, of long tables the head and tail."""
    groups: dict[str, list[int]] = {}
    for index, form in enumerate(forms):
        if not folded.hidden[index] and "0" in form:
            groups.setdefault(form, []).append(index)
    visible_rank = list(accumulate(not hidden for hidden in folded.hidden))
    for indices in groups.values():
        if len(indices) < _MIN_SIMILAR or len(folded.lines[indices[0]]) > _MAX_LINE:
            continue
        if len(indices) > _TABLE_ROWS:
            folded.hide_middle(indices, head=_TABLE_HEAD, tail=_TABLE_TAIL, word="similar")
        # Counters that stand apart are headings of what follows them.
        for run in _adjacent_runs(folded.visible(indices), visible_rank):
            rows = [folded.lines[index] for index in run]
            if len(run) >= _MIN_SIMILAR and _is_counter(rows):
                folded.hide_middle(run, head=2, tail=1, word="similar")


def _adjacent_runs(indices: Sequence[int], visible_rank: Sequence[int]) -> Iterator[list[int]]:
    """The lines in runs that have no other visible line between them."""
    run: list[int] = []
    for index in indices:
        if run and visible_rank[index] > visible_rank[run[-1]] + 1:
            yield run
            run = []
        run.append(index)
    if run:
        yield run


def _is_counter(rows: Sequence[str]) -> bool:
    """Whether these lines differ only in counters that advance in equal steps, and in times."""
    table = [_NUMBER.findall(without_timestamp(row)) for row in rows[: 4 * _TABLE_ROWS]]
    if any(len(row) != len(table[0]) for row in table):
        return False
    for column in zip(*table, strict=True):
        if all(value == column[0] for value in column):
            continue
        if any("." in value or len(value) > 15 for value in column):
            return False
        steps = {after - before for before, after in pairwise(map(int, column))}
        if len(steps) > 1:
            return False
    return True


def _fold_encoded(folded: _Lines) -> None:
    """Of encoded data that is wrapped into lines, show the first line."""
    start = None
    for index, line in enumerate([*folded.lines, ""]):
        if len(line) >= 60 and _WRAPPED.fullmatch(line) and _has_digits_and_letters(line):
            if start is None:
                start = index
            continue
        if start is not None and index - start > 1:
            n_lines = index - start - 1
            folded.hide(range(start + 1, index), f"[… {n_lines:,} lines of encoded data …]")
        start = None


def _has_digits_and_letters(text: str) -> bool:
    """Whether a text has both, as encoded data does."""
    return any(c.isdigit() for c in text) and any(c.isalpha() for c in text)


def _shorten_line(line: str) -> str:
    """A line without its encoded data; without its middle if it is excessively long."""
    if len(line) > _MAX_LINE:
        half = _MAX_LINE * 2 // 5
        line = f"{line[:half]} [… {len(line) - 2 * half:,} characters …] {line[-half:]}"
    if " " in line and max(map(len, line.split())) < _MIN_ENCODED:
        return line
    return _DATA.sub(_shorten_data, line)


def _shorten_data(match: re.Match[str]) -> str:
    data = match[0]
    if not _has_digits_and_letters(data):
        return data
    return f"{data[:40]}[… {len(data) - 40:,} characters of encoded data …]"
