"""What reaches a terminal: tables, status lines and progress. All text passes the sanitiser here.

Data goes to stdout, everything else to stderr. Colour and moving lines appear only on a terminal;
NO_COLOR is honoured.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TextIO

from .rounding import fixed
from .sanitize import escape_json, mask, sanitize, sanitize_line

WIDE = 200
"""Columns assumed if stdout is not a terminal: nothing is cut short in a pipe."""
NARROWEST = 30
"""Narrower terminals wrap by themselves."""
_DEFAULT_WIDTH = 80
_WIDEST_PROSE = 110
_ROW_NAME_COLUMNS = 18
"""Columns that a cell which names its row keeps while other columns can be left out."""
_LIVE_INTERVAL_S = 0.1
_LINE_INTERVAL_S = 10.0
_RATE_WINDOW_S, _RATE_STEP_S = 60.0, 1.0
_ERASE_LINE = "\r\x1b[2K"


def colour(stream: TextIO) -> bool:
    """Whether to colour: on a terminal, unless NO_COLOR is set or TERM is dumb."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width() -> int:
    """Width in columns of the terminal on stdout, at least NARROWEST.

    It is 80 if the terminal does not state its width, and WIDE without a terminal.
    """
    if not sys.stdout.isatty():
        return WIDE
    variable = os.environ.get("COLUMNS", "")
    if variable.isascii() and variable.isdecimal():
        columns = int(variable)
    else:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    return max(columns, NARROWEST) if columns else _DEFAULT_WIDTH


def say(text: str = "") -> None:
    """Print a line of data; lone surrogates and control characters are shown, never sent."""
    sys.stdout.write(_encodable(sanitize(text), sys.stdout) + "\n")


def raw(line: str) -> None:
    """Print a line of JSON, with the characters escaped that a terminal would obey.

    They are escaped even into a pipe, which may end at a terminal.
    """
    sys.stdout.write(escape_json(line) + "\n")


_json_lines = False
_live_line: Progress | None = None
"""The progress that stands on the last line of the terminal, to be erased before other output."""


def as_json(is_on: bool) -> None:
    """Whether stderr is JSON Lines from now on, with `event` note, error or progress."""
    global _json_lines
    _json_lines = is_on


def note(text: str, quiet: bool = False, event: str = "note") -> None:
    """Print a line on stderr, unless quiet."""
    if quiet:
        return
    if _json_lines:
        _log(event, message=sanitize_line(text))
        return
    erase_progress()
    sys.stderr.write(_encodable(sanitize_line(text), sys.stderr) + "\n")
    sys.stderr.flush()


def erase_progress() -> None:
    """Erase a live line of progress, so that what comes next begins a line of its own."""
    if _live_line is not None:
        _live_line.clear()


class LogHandler(logging.StreamHandler[TextIO]):
    """Writes log records on stderr, each text once a command, on lines of their own."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self._written: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self._written or record.levelno < logging.WARNING:
            self._written.add(text)
            erase_progress()
            super().emit(record)


class LogFormatter(logging.Formatter):
    """Formats log records and tracebacks as `note` does: safe for a terminal, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        safe = sanitize if record.exc_info else sanitize_line
        return _encodable(safe(mask(super().format(record))), sys.stderr)


def traceback_of(error: BaseException) -> None:
    """Print a traceback on stderr, for -vv."""
    import traceback

    text = mask("".join(traceback.format_exception(error)))
    sys.stderr.write(_encodable(sanitize(text), sys.stderr))
    sys.stderr.flush()


def error(message: object) -> None:
    """Print an error on stderr, quiet or not."""
    note(f"ambjudge: error: {message}", event="error")


def _log(event: str, **fields: object) -> None:
    entry = {"at": round(time.time(), 3), "event": event, **fields}
    sys.stderr.write(json.dumps(entry) + "\n")
    sys.stderr.flush()


def note_interrupted(quiet: bool) -> None:
    """Say after Ctrl-C that the results so far are kept."""
    note("interrupted: the results so far are kept; the same command continues from there", quiet)


def _encodable(text: str, stream: TextIO) -> str:
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


_CODES = {"good": "32", "bad": "31", "warn": "33", "dim": "2", "bold": "1", "head": "1;36"}


def paint(text: str, style: str) -> str:
    """Colour a text that is already safe, if stdout takes colour."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if colour(sys.stdout) else text


def style_of(score: float | None) -> str:
    """good from .8, warn from .4, bad below, dim if unknown."""
    if score is None:
        return "dim"
    if score >= 0.8:
        return "good"
    return "warn" if score >= 0.4 else "bad"


def cells(text: str) -> int:
    """Terminal columns of a sanitised text; wide East Asian characters take two."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    columns = 0
    for character in text:
        if not combining(character):
            columns += 2 if east_asian_width(character) in "WF" else 1
    return columns


def fit(text: str, columns: int) -> str:
    """Cut a text to so many columns; an ellipsis replaces what was cut."""
    if cells(text) <= columns:
        return text
    while text and cells(text) > columns - 1:
        excess = cells(text) - columns
        # Long texts are cut in halves of the excess, because counting columns takes time.
        text = text[:-1] if excess < 8 else text[: -(excess // 2)]
    return text + "…"


def middle(text: str, columns: int) -> str:
    """Cut a text in its middle to so many columns: names of runs differ at both ends."""
    if cells(text) <= columns or columns < 5:
        return fit(text, columns)
    tail = text
    while cells(tail) > (columns - 1) // 2:
        tail = tail[1:]
    return fit(text, columns - cells(tail)) + tail


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Iterable[int] = (),
    flexible: int | None = None,
    spare: Sequence[int] | None = None,
    styles: Sequence[Sequence[str | None]] | None = None,
) -> None:
    """Print aligned columns.

    `right`: right-aligned columns. `flexible`: the column that is cut on a narrow terminal; the
    first column is cut in its middle. `spare`: columns that such a terminal does without, in this
    order (default: from the right); a line below names them. `styles`: a style for each cell.
    """
    heads = [sanitize_line(head) for head in header]
    body = [[sanitize_line(str(cell)) for cell in row] for row in rows]
    widths = [
        max(cells(head), *(cells(row[i]) for row in body)) if body else cells(head)
        for i, head in enumerate(heads)
    ]
    visible = _visible_columns(widths, flexible, spare)
    excess = sum(widths[i] + 2 for i in visible) - 2 - width()
    if flexible is not None and excess > 0:
        widths[flexible] = max(10, cells(heads[flexible]), widths[flexible] - excess)
    line = _LineFormat(widths, visible, frozenset(right))
    sys.stdout.write(line.format(heads, ["bold"] * len(heads)) + "\n")
    for number, row in enumerate(body):
        sys.stdout.write(line.format(row, styles[number] if styles else None) + "\n")
    hidden = [head for i, head in enumerate(heads) if i not in visible]
    if hidden:
        text = wrap(f"({width()} columns: without {', '.join(hidden)})")
        sys.stdout.write(paint(text, "dim") + "\n")


def _visible_columns(
    widths: Sequence[int], flexible: int | None, spare: Sequence[int] | None
) -> list[int]:
    """The columns that fit on the terminal; in a pipe all."""
    visible = list(range(len(widths)))
    if not sys.stdout.isatty():
        return visible
    least = list(widths)
    if flexible is not None:
        least[flexible] = min(widths[flexible], _ROW_NAME_COLUMNS)
    if spare is None:
        spare = [i for i in range(len(widths) - 1, 1, -1) if i != flexible]
    for column in spare:
        if sum(least[i] + 2 for i in visible) - 2 <= width():
            break
        visible.remove(column)
    return visible


class _LineFormat:
    """Aligns and colours the cells of a table's lines."""

    def __init__(
        self, widths: Sequence[int], visible: Sequence[int], right: frozenset[int]
    ) -> None:
        self.widths = widths
        self.visible = visible
        self.right = right

    def format(self, row: Sequence[str], styles: Sequence[str | None] | None) -> str:
        """One line."""
        parts = []
        for column in self.visible:
            shorten = fit if column else middle
            text = shorten(row[column], self.widths[column])
            padding = " " * (self.widths[column] - cells(text))
            style = styles[column] if styles else None
            text = _encodable(text, sys.stdout)
            if style:
                text = paint(text, style)
            parts.append(padding + text if column in self.right else text + padding)
        return "  ".join(parts).rstrip()


def wrap(text: str, indent: str = "", first: str | None = None) -> str:
    """Fold a text to the terminal's width; the first line may have its own indent."""
    import textwrap

    return textwrap.fill(
        sanitize_line(text),
        width=min(width(), _WIDEST_PROSE),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


class Progress:
    """Progress of a long job on stderr.

    It is one line that is rewritten on a terminal, otherwise a plain line every ten seconds. As
    JSON Lines it is an object with done, total, rate (per second), left_s and what else there is to
    say.
    """

    def __init__(self, label: str, total: int | None, quiet: bool = False) -> None:
        self.label = label
        self.total = total
        self.quiet = quiet
        self._counts: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])
        """(time, number done) of the last minute, oldest first: what the rate is computed from."""
        self.live = not _json_lines and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._last_shown = self._counts[0][0]
        self._is_drawn = False

    def update(self, done: int, extra: str = "", *, reused: int = 0) -> None:
        """Show that `done` of the total are finished; `extra` adds failures, cost and the like.

        With none done, the clock starts anew: the work begins now. `reused`: how many of them were
        there already, which says nothing about the rate.
        """
        now = time.monotonic()
        if not done:
            self._counts.clear()
            self._last_shown = now
        self._count(now, done - reused)
        interval = _LIVE_INTERVAL_S if self.live else _LINE_INTERVAL_S
        if self.quiet or now - self._last_shown < interval:
            return
        self._last_shown = now
        rate = self._rate()
        left_s = None
        if self.total and rate and done < self.total:
            left_s = (self.total - done) / rate
        if _json_lines:
            _log(
                "progress",
                what=self.label,
                done=done,
                total=self.total,
                rate=round(rate, 3),
                left_s=None if left_s is None else round(left_s),
                also=extra,
            )
            return
        text = self._line(done, rate, left_s, extra)
        if self.live:
            sys.stderr.write(_ERASE_LINE + sanitize_line(text)[: max(20, width() - 1)])
            self._set_drawn()
        else:
            sys.stderr.write(sanitize_line(text) + "\n")
        sys.stderr.flush()

    def _count(self, now: float, done: int) -> None:
        counts = self._counts
        if len(counts) < 2 or now - counts[-2][0] >= _RATE_STEP_S:
            counts.append((now, done))
        else:
            counts[-1] = now, done
        while len(counts) > 2 and now - counts[1][0] >= _RATE_WINDOW_S:
            counts.popleft()

    def _rate(self) -> float:
        """How many a second were finished in the last minute."""
        (first_time, first), (last_time, last) = self._counts[0], self._counts[-1]
        return (last - first) / (last_time - first_time) if last_time > first_time else 0.0

    def _line(self, done: int, rate: float, left_s: float | None, extra: str) -> str:
        total = f"/{self.total}" if self.total else ""
        parts = [f"{self.label} {done}{total}", f"{rate:.1f}/s"]
        if left_s is not None:
            parts.append(f"{clock(left_s)} left")
        if extra:
            parts.append(extra)
        return " · ".join(parts)

    def busy(self, text: str) -> None:
        """On a terminal, say what happens now that there is nothing to count."""
        if self.live and not self.quiet:
            sys.stderr.write(f"{_ERASE_LINE}{text}…")
            sys.stderr.flush()
            self._set_drawn()

    def _set_drawn(self) -> None:
        global _live_line
        self._is_drawn, _live_line = True, self

    def clear(self) -> None:
        """Erase the live line before other output, or at the end."""
        global _live_line
        _live_line = None
        if self._is_drawn:
            sys.stderr.write(_ERASE_LINE)
            sys.stderr.flush()
            self._is_drawn = False


def clock(seconds: float) -> str:
    """3 s, 2:05, 1:02:05."""
    total = int(seconds + 0.5)
    if total < 60:
        return f"{total} s"
    minutes, second = divmod(total, 60)
    if minutes < 60:
        return f"{minutes}:{second:02d}"
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}"


def number(value: float | None, digits: int = 2, unknown: str = "–") -> str:
    """A fixed number of decimals, or a dash for an unknown value."""
    return unknown if value is None else fixed(value, digits)


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """1 run, 3 runs; `plural` is that of a noun that does not just take an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {plural or noun + 's'}"
