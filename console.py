"""What reaches a terminal: plain tables, status lines and progress. All text passes the sanitiser
here.

Data goes to stdout, everything else to stderr. Colour and moving bars only on a terminal; NO_COLOR
is honoured.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Iterable, Sequence
from typing import TextIO

from .sanitize import escape_json, mask, sanitize, sanitize_line

WIDE = 200
"""Columns assumed where stdout is no terminal: nothing is cut short in a pipe."""
NARROWEST = 30
"""Narrower terminals wrap by themselves."""


def colour(stream: TextIO) -> bool:
    """Whether to colour: a terminal, NO_COLOR unset or empty, TERM not dumb."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width() -> int:
    """Columns of the terminal on stdout, at least NARROWEST; 80 where it does not know; WIDE where
    there is none."""
    if not sys.stdout.isatty():
        return WIDE
    asked = os.environ.get("COLUMNS", "")
    columns = (
        int(asked)
        if asked.isascii() and asked.isdecimal()
        else os.get_terminal_size(sys.stdout.fileno()).columns
    )
    return max(columns, NARROWEST) if columns else 80


def say(text: str = "") -> None:
    """A line of data on stdout; lone surrogates and control characters are shown, never sent."""
    sys.stdout.write(_encodable(sanitize(text), sys.stdout) + "\n")


def raw(line: str) -> None:
    """A line of JSON on stdout; what a terminal would obey is escaped, also into a pipe, which may
    end at one."""
    sys.stdout.write(escape_json(line) + "\n")


_json_lines = False


def as_json(wanted: bool) -> None:
    """Whether what goes to stderr from now on is JSON Lines: `event` is note, error or progress."""
    global _json_lines
    _json_lines = wanted


def note(text: str, quiet: bool = False, event: str = "note") -> None:
    """A line on stderr, unless quiet."""
    if quiet:
        return
    if _json_lines:
        _log(event, message=sanitize_line(text))
        return
    sys.stderr.write(_encodable(sanitize_line(text), sys.stderr) + "\n")
    sys.stderr.flush()


class LogFormatter(logging.Formatter):
    """Log records and their tracebacks as `note` writes lines: nothing in them that a terminal
    obeys, and no secret."""

    def format(self, record: logging.LogRecord) -> str:
        safe = sanitize if record.exc_info else sanitize_line
        return _encodable(safe(mask(super().format(record))), sys.stderr)


def traceback_of(error: BaseException) -> None:
    """The traceback on stderr, for -vv."""
    import traceback

    sys.stderr.write(
        _encodable(sanitize(mask("".join(traceback.format_exception(error)))), sys.stderr)
    )
    sys.stderr.flush()


def error(what: object) -> None:
    """A line on stderr that names what went wrong, quiet or not."""
    note(f"ambjudge: error: {what}", event="error")


def _log(event: str, **said: object) -> None:
    sys.stderr.write(json.dumps({"at": round(time.time(), 3), "event": event, **said}) + "\n")
    sys.stderr.flush()


def interrupted(what: str, quiet: bool) -> None:
    """After Ctrl-C: what was done (`judged`, `read`) is kept."""
    note(f"interrupted: what was {what} is kept; the same command goes on from there", quiet)


def _encodable(text: str, stream: TextIO) -> str:
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


_CODES = {"good": "32", "bad": "31", "warn": "33", "dim": "2", "bold": "1", "head": "1;36"}


def paint(text: str, style: str) -> str:
    """Colour for text that is already safe, when stdout takes colour."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if colour(sys.stdout) else text


def style_of(score: float | None) -> str:
    """good from .8, warn from .4, bad below, dim for unknown."""
    return "dim" if score is None else "good" if score >= 0.8 else "warn" if score >= 0.4 else "bad"


def cells(text: str) -> int:
    """Terminal columns of a sanitised text (wide East Asian characters take two)."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def fit(text: str, columns: int) -> str:
    """The text cut to so many columns, the last one an ellipsis when something was cut."""
    if cells(text) <= columns:
        return text
    while text and cells(text) > columns - 1:
        text = (
            text[:-1]
            if cells(text) - columns < 8
            else text[: -max(1, (cells(text) - columns) // 2)]
        )
    return text + "…"


def middle(text: str, columns: int) -> str:
    """The text cut in its middle to so many columns: names of runs differ at both ends."""
    if cells(text) <= columns or columns < 5:
        return fit(text, columns)
    tail = text
    while cells(tail) > (columns - 1) // 2:
        tail = tail[1:]
    return fit(text, columns - cells(tail)) + tail


_NAME = 18
"""Columns that a cell which names its row keeps while other columns can be left out."""


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Iterable[int] = (),
    flexible: int | None = None,
    spare: Sequence[int] | None = None,
    styles: Sequence[Sequence[str | None]] | None = None,
) -> None:
    """Print aligned columns. `right`: right-aligned columns; `flexible`: the one that gives way on
    a narrow terminal, the first column in its middle. `spare`: what such a terminal is not shown,
    in this order (by default from the right); a line below says so."""
    body = [[sanitize_line(str(cell)) for cell in row] for row in rows]
    heads = [sanitize_line(h) for h in header]
    widths = [max([cells(heads[i]), *(cells(r[i]) for r in body)]) for i in range(len(heads))]
    least = [min(w, _NAME) if i == flexible else w for i, w in enumerate(widths)]
    shown = set(range(len(heads)))
    for i in [i for i in range(len(heads) - 1, 1, -1) if i != flexible] if spare is None else spare:
        if not sys.stdout.isatty() or sum(least[i] + 2 for i in shown) - 2 <= width():
            break
        shown.discard(i)
    over = sum(widths[i] + 2 for i in shown) - 2 - width()
    if flexible is not None and over > 0:
        widths[flexible] = max(10, cells(heads[flexible]), widths[flexible] - over)
    aligned = set(right)

    def line(parts: Sequence[str], styled: Sequence[str | None] | None) -> str:
        out = []
        for i, part in enumerate(parts):
            if i not in shown:
                continue
            part = (fit if i else middle)(part, widths[i])
            pad = " " * (widths[i] - cells(part))
            text = _encodable(part, sys.stdout)
            painted = paint(text, styled[i] or "dim") if styled and styled[i] else text
            out.append(pad + painted if i in aligned else painted + pad)
        return "  ".join(out).rstrip()

    sys.stdout.write(line(heads, ["bold"] * len(heads)) + "\n")
    for number, row in enumerate(body):
        sys.stdout.write(line(row, styles[number] if styles else None) + "\n")
    if left := [head for i, head in enumerate(heads) if i not in shown]:
        sys.stdout.write(
            paint(wrap(f"({width()} columns: without {', '.join(left)})"), "dim") + "\n"
        )


def wrap(text: str, indent: str = "", first: str | None = None) -> str:
    """Fold a text to the terminal's width; the first line may have its own indent."""
    import textwrap

    return textwrap.fill(
        sanitize_line(text),
        width=min(width(), 110),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


class Progress:
    """Progress of a long job on stderr: one line rewritten in place on a terminal, else a plain
    line every ten seconds.

    As JSON Lines it is an object with done, total, rate (a second), left_s and what else there is
    to say."""

    def __init__(self, what: str, total: int | None, quiet: bool = False) -> None:
        self.what, self.total, self.quiet = what, total, quiet
        self.started = self._shown = time.monotonic()
        self.live = not _json_lines and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._drawn = False

    def update(self, done: int, extra: str = "") -> None:
        """`done` of the total are finished; `extra` says more (failures, cost)."""
        now = time.monotonic()
        if self.quiet or now - self._shown < (0.1 if self.live else 10.0):
            return
        self._shown = now
        rate = done / (now - self.started) if now > self.started else 0.0
        left_s = (self.total - done) / rate if self.total and rate and done < self.total else None
        if _json_lines:
            _log(
                "progress",
                what=self.what,
                done=done,
                total=self.total,
                rate=round(rate, 3),
                left_s=left_s and round(left_s),
                also=extra,
            )
            return
        left = "" if left_s is None else f" · {clock(left_s)} left"
        of = f"/{self.total}" if self.total else ""
        text = f"{self.what} {done}{of} · {rate:.1f}/s{left}{' · ' + extra if extra else ''}"
        if self.live:
            sys.stderr.write("\r\x1b[2K" + sanitize_line(text)[: max(20, width() - 1)])
            self._drawn = True
        else:
            sys.stderr.write(sanitize_line(text) + "\n")
        sys.stderr.flush()

    def busy(self, text: str) -> None:
        """On a terminal, what goes on now that there is nothing to count."""
        if self.live and not self.quiet:
            sys.stderr.write(f"\r\x1b[2K{text}…")
            sys.stderr.flush()
            self._drawn = True

    def clear(self) -> None:
        """Wipe the live line before other output, or at the end."""
        if self._drawn:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._drawn = False


def clock(seconds: float) -> str:
    """3 s, 2:05, 1:02:05."""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


def number(value: float | None, digits: int = 2, unknown: str = "–") -> str:
    """A fixed number of decimals, or a dash for what is unknown."""
    return unknown if value is None else f"{value:.{digits}f}"
