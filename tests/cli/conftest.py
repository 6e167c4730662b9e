"""What the tests of the commands share."""

from __future__ import annotations

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
