"""What the tests of the commands share."""

from __future__ import annotations

import os
import pty
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from ambjudge.cli import run


@pytest.fixture
def out(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Run a command line; (exit code, stdout, stderr). In an empty folder, so that no settings or
    store are found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AMBJUDGE_STORE", "none")
    # Settings make this folder the project's root: a store of somebody else further up is none of
    # ours.
    (tmp_path / "ambjudge.toml").write_text("", encoding="utf-8")

    def call(*args: str | Path) -> tuple[int, str, str]:
        code = run([str(a) for a in args])
        seen = capsys.readouterr()
        return code, seen.out, seen.err

    return call


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run a command line with a terminal of its own as stdout; (exit code, what the terminal
    got)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AMBJUDGE_STORE", "none")

    def call(*args: str, **environment: str) -> tuple[int, str]:
        primary, secondary = pty.openpty()
        seen = bytearray()

        def read() -> None:
            with suppress(OSError):  # so a terminal ends
                while part := os.read(primary, 65536):
                    seen.extend(part)

        reader = threading.Thread(target=read)
        reader.start()
        with monkeypatch.context() as patched, open(secondary, "w", encoding="utf-8") as stdout:
            for name, value in environment.items():
                patched.setenv(name, value)
            patched.setattr(sys, "stdout", stdout)
            code = run(["-q", *args])
        reader.join(10)
        os.close(primary)
        return code, seen.decode("utf-8")

    return call
