"""Pages in a real browser: Chromium, where there is one; else the test is skipped and says so."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def browse(page: Path, profile: Path, *flags: str) -> str:
    """What Chromium prints for a page (`--dump-dom`); it must not have said a word of errors or of
    a forbidden request."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(
            "NO BROWSER: install chromium to see the pages rendered; nothing of their look was"
            " tested"
        )
    done = subprocess.run(
        [
            path,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
            "--hide-scrollbars",
            f"--user-data-dir={profile / 'profile'}",
            "--window-size=1300,1600",
            "--enable-logging=stderr",
            *flags,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "Content Security Policy" not in done.stderr
    assert "Uncaught" not in done.stderr
    return done.stdout
