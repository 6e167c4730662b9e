"""A real process in a real pseudo-terminal, driven by keys; everything that it writes is kept."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from types import TracebackType


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

    def press(self, keys: str, pause: float = 0.25) -> None:
        """Send keys as typed and let the screen settle."""
        os.write(self.master, keys.encode())
        self.read(pause)

    def leave(self, keys: str, seconds: float = 60) -> int:
        """Send keys that end the process, one by one and again where it took two for one; its exit
        code."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            for key in keys:
                if self.process.poll() is None:
                    self.press(key, 0.5)
        code = self.process.poll()
        assert code is not None, "it does not end"
        return code
