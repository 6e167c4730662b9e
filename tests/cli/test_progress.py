"""What a status line says of a job's rate and end."""

from __future__ import annotations

import json
import re

import pytest
from ambjudge import console


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch):
    """Seconds that pass as told."""
    now = [1000.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])

    def wait(seconds: float) -> None:
        now[0] += seconds

    return wait


def shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_rate_and_end_are_right_from_the_first_line(clock, capsys) -> None:
    """The clock starts with the work, not with what went before it; what was there already says
    nothing about the rate."""
    progress = console.Progress("scored", 1_000)
    clock(300)
    progress.update(0)
    for number in range(1, 13):
        clock(1)
        progress.update(500 + 5 * number, reused=500)
    assert shown(capsys) == ["scored 550/1000 · 5.0/s · 1:30 left"]


def test_the_rate_is_that_of_the_last_minute(clock, capsys) -> None:
    progress = console.Progress("scored", 10_000)
    progress.update(0)
    done = 0
    for a_second in (100, 100, 1, 1, 1, 1, 1, 1, 1, 1):
        for _ in range(20):
            clock(1)
            done += a_second
            progress.update(done)
    last = shown(capsys)[-1]
    assert re.search(r"· 1\.0/s ·", last), last


def test_lines_for_machines_have_total_and_rate(clock, capsys, monkeypatch) -> None:
    monkeypatch.setattr(console, "_json_lines", True)
    progress = console.Progress("judged", None)
    progress.total = 40
    progress.update(0)
    clock(20)
    progress.update(10)
    (line,) = [json.loads(line) for line in shown(capsys)]
    assert (line["done"], line["total"], line["rate"], line["left_s"]) == (10, 40, 0.5, 60)
