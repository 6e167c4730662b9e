"""A real process in a real pseudo-terminal, driven by keys; everything that it writes is kept."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from types import TracebackType

from rich.cells import cell_len

_OUTPUT = re.compile(
    r"\x1b\[(?P<parameters>[0-9;?<=>]*)(?P<command>[@-~])"  # cursor, colours, modes
    r"|\x1b[\]P_^].*?(?:\x07|\x1b\\)|\x1b[()].|\x1b[^\[\]P_^()]"  # titles, character sets
    r"|(?P<control>[\r\n\b])|(?P<text>[^\x00-\x1f\x7f]+)|.",
    re.DOTALL,
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;?<=>]*|[\]P_^][^\x07\x1b]*|[()])?$")


class Screen:
    """What a terminal shows after the output that it was fed, as far as the browser uses it."""

    def __init__(self, columns: int, rows: int) -> None:
        self._rows = [[" "] * columns for _ in range(rows)]
        self._row = self._column = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._left = ""

    def feed(self, output: bytes) -> None:
        """Draw what was written; an escape sequence that is cut off waits for its rest."""
        text = self._left + self._decoder.decode(output)
        cut_off = _UNFINISHED.search(text)
        end = cut_off.start() if cut_off else len(text)
        self._left = text[end:]
        for match in _OUTPUT.finditer(text[:end]):
            if match["command"]:
                self._obey(match["command"], match["parameters"])
            elif match["text"]:
                for character in match["text"]:
                    self._put(character)
            elif match["control"]:
                self._control(match["control"])

    @property
    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self._rows)

    def _obey(self, command: str, parameters: str) -> None:
        if command == "H":
            row, _, column = parameters.partition(";")
            self._row, self._column = int(row or 1) - 1, int(column or 1) - 1
        elif (command == "J" and parameters == "2") or parameters.startswith("?1049"):
            for line in self._rows:
                line[:] = " " * len(line)

    def _control(self, control: str) -> None:
        if control == "\r":
            self._column = 0
        elif control == "\n":
            self._row += 1
        else:
            self._column = max(0, self._column - 1)

    def _put(self, character: str) -> None:
        width = cell_len(character)
        if 0 <= self._row < len(self._rows) and self._column < len(self._rows[0]) and width:
            line = self._rows[self._row]
            line[self._column] = character
            if width == 2 and self._column + 1 < len(line):
                line[self._column + 1] = ""
        self._column += width


class Terminal:
    """Runs `ambjudge ARGS` in a pseudo-terminal of a given size."""

    def __init__(
        self,
        args: list[str],
        *,
        size: tuple[int, int] = (100, 30),
        env: dict[str, str] | None = None,
    ) -> None:
        columns, rows = size
        self.screen = Screen(columns, rows)
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        clean = {
            k: v
            for k, v in os.environ.items()
            if k not in ("NO_COLOR", "COLUMNS", "LINES") and not k.startswith("AMBJUDGE_")
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ambjudge.cli", *args],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**clean, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})},
        )
        os.close(slave)
        os.set_blocking(self.master, False)
        self.output = b""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(5)
        os.close(self.master)

    def read(self, seconds: float) -> bytes:
        """What is written within this time; it is also added to `output`."""
        got, end = b"", time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.master], [], [], left)[0]:
                break
            try:
                piece = os.read(self.master, 1 << 16)
            except OSError:
                break
            if not piece:
                break
            got += piece
        self.output += got
        self.screen.feed(got)
        return got

    def wait_for(self, text: bytes, seconds: float = 90, since: int = 0) -> None:
        """Read until the text was written (after byte `since`); AssertionError when that takes too
        long."""
        end = time.monotonic() + seconds
        while text not in self.output[since:]:
            drawn = f"never drew {text!r}: {self.output[-800:]!r}"
            assert time.monotonic() < end, drawn
            assert self.process.poll() is None or self.read(0.2), drawn
            self.read(0.1)

    def wait_until(self, holds: Callable[[str], bool], expected: str, seconds: float = 90) -> None:
        """Read until something holds of the screen's text and nothing is drawn for a moment.

        AssertionError with the screen, and what was `expected`, when that takes too long.
        """
        end = time.monotonic() + seconds
        while self.read(0.15) or not holds(self.screen.text):
            never = f"never on the screen: {expected}\n{self.screen.text}"
            assert time.monotonic() < end, never
            assert self.process.poll() is None, never

    def press(self, keys: str) -> None:
        """Send keys as typed."""
        os.write(self.master, keys.encode())

    def leave(self, keys: str, seconds: float = 60) -> int:
        """Send keys that end the process, one by one and again where it took two for one; its exit
        code."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            for key in keys:
                if self.process.poll() is None:
                    self.press(key)
                    self.read(0.5)
        code = self.process.poll()
        assert code is not None, "it does not end"
        return code
