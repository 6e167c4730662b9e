"""What the tests of the commands share."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from ambjudge.cli import run


@pytest.fixture
def out(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Run a command line; (exit code, stdout, stderr). In an empty folder, so that no settings or store are found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AMBJUDGE_STORE", "none")
    # Settings make this folder the project's root: a store of somebody else further up is none of ours.
    (tmp_path / "ambjudge.toml").write_text("", encoding="utf-8")

    def call(*args: str | Path) -> tuple[int, str, str]:
        code = run([str(a) for a in args])
        seen = capsys.readouterr()
        return code, seen.out, seen.err

    return call


@pytest.fixture
def terminal(tmp_path: Path):
    """Run a command line with a terminal on stdout; (exit code, what the terminal got)."""

    def call(*args: str, **environment: str) -> tuple[int, str]:
        primary, secondary = pty.openpty()
        seen = b""

        def read() -> None:
            nonlocal seen
            while True:
                try:
                    part = os.read(primary, 65536)
                except OSError:
                    return
                if not part:
                    return
                seen += part

        reader = threading.Thread(target=read)
        reader.start()
        done = subprocess.run(
            [sys.executable, "-m", "ambjudge.cli", "-q", *args], stdout=secondary, stderr=subprocess.PIPE, cwd=tmp_path,
            env={**os.environ, "AMBJUDGE_STORE": "none", **environment}, check=False,
        )  # fmt: skip
        os.close(secondary)
        reader.join(10)
        os.close(primary)
        return done.returncode, seen.decode("utf-8")

    return call
