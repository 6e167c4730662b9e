"""One rounding: a number reads the same in terminal, browser, site, report, Python and JSON."""

from __future__ import annotations

import html
import json
import re
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

import pytest
from ambjudge.analysis.tables.number_format import number
from ambjudge.commands.render import row, scorecard
from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.rounding import fixed
from ambjudge.views.run_columns import overall_text
from ambjudge.views.run_rows import row_of
from ambjudge.web.site import Site
from chromium import browse
from hypothesis import given
from hypothesis import strategies as st

DATA = Path(__file__).parents[1] / "data" / "tui"
OVERALL = {
    83.75: "83.8",
    83.25: "83.2",
    83.65: "83.6",
    0.05: "0.0",
    0.15: "0.2",
    99.95: "100.0",
    83.7482: "83.8",
    64.35: "64.4",
    100.0: "100.0",
    0.0: "0.0",
}
"""Overall -> how it reads. 83.7482 is stored as 83.75."""
SCORES = {0.125: "0.12", 0.135: "0.14", 0.145: "0.14", 0.155: "0.16", 0.005: "0.00", 0.0049: "0.00"}
"""The same for scores from 0 to 1."""


def card(overall: float, agentic: float = 0.5) -> ScoreCard:
    """A scorecard of the recorded ones, with these totals."""
    line = (DATA / "cards.jsonl").read_text("utf-8").splitlines()[0]
    values = json.loads(line) | {"overall": overall, "agentic": agentic, "task": agentic}
    values["run"] |= {"id": f"run-{overall}-{agentic}"}
    return ScoreCard.model_validate(values)


@pytest.mark.parametrize(("overall", "text"), OVERALL.items())
def test_overall_reads_the_same_in_every_place(
    overall: float, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = card(overall)
    again = ScoreCard.model_validate_json(made.to_json())
    assert made.overall == again.overall == json.loads(made.to_json())["overall"]
    scorecard(made)
    site = Site(tmp_path)
    site.add(made)
    site.finish()
    (page,) = (tmp_path / "pages").iterdir()
    shown = {
        "table": row(made).overall,
        "terminal": _overall(capsys.readouterr().out),
        "browser": overall_text(row_of(0, made.to_dict())),
        "page": _overall(html.unescape(re.sub(r"<[^>]*>", "", page.read_text("utf-8")))),
        "python": _overall(repr(made)),
        "json": fixed(json.loads(made.to_json())["overall"], 1),
    }
    assert shown == dict.fromkeys(shown, text)
    if 10 <= made.overall < 1000:
        assert number(made.overall) == text, "the tables of the report"


def _overall(text: str) -> str:
    match = re.search(r"Overall\s+([\d.]+)", text)
    assert match is not None
    return match[1]


@pytest.mark.parametrize(("score", "text"), SCORES.items())
def test_scores_from_0_to_1_read_the_same_in_every_place(score: float, text: str) -> None:
    made = card(50.0, score)
    assert row(made).agentic == text == row(made).task
    assert fixed(made.agentic or 0, 2) == text


@given(st.integers(-(10**6), 10**6), st.integers(0, 4), st.integers(0, 3))
def test_rounding_is_half_even_on_the_decimal_digits(units: int, stored: int, digits: int) -> None:
    decimal = Decimal(units).scaleb(-stored)
    rounded = decimal.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN)
    assert Decimal(fixed(float(decimal), digits)) == rounded
    assert not fixed(float(decimal), digits).startswith("-") or rounded < 0


def test_the_pages_round_as_python_does(tmp_path: Path) -> None:
    """`site.js` in Chromium: every tie, and what floats make of it."""
    values = [(n / 100, 1) for n in range(0, 10_001, 5)] + [(n / 1000, 2) for n in range(1001)]
    values += [(-0.05, 1), (-0.151, 1), (1e-7, 2), (1234.5, 0), (0.30000000000000004, 1)]
    source = (Path(__file__).parents[2] / "web" / "site.js").read_text("utf-8")
    function = re.search(r"const fixed = function .*?\n  };", source, re.DOTALL)
    assert function is not None
    page = tmp_path / "page.html"
    page.write_text(
        f"<!DOCTYPE html><meta charset='utf-8'><body><pre id='out'></pre><script>{function[0]}\n"
        f"document.getElementById('out').textContent = JSON.stringify({json.dumps(values)}"
        ".map(function (pair) { return fixed(pair[0], pair[1]); }));</script>",
        "utf-8",
    )
    dom = browse(page, tmp_path, "--dump-dom")
    match = re.search(r"<pre id=\"out\">(.*?)</pre>", dom)
    assert match is not None
    assert json.loads(html.unescape(match[1])) == [fixed(value, digits) for value, digits in values]
