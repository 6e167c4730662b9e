"""The block *Judge* of the methods: facts of a real judge, several judges, and unknown ones."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ambjudge.analysis.report.html_report import render
from ambjudge.analysis.report.methods_text import methods_paragraph, methods_statements
from ambjudge.analysis.report.results import Analysis, analyse
from ambjudge.cli import run
from ambjudge.judge.store import open_store
from ambjudge.version import __version__
from html_page import Page

RECORDED = Path(__file__).parents[1] / "data" / "recorded" / "runs"
RUNS = ("bccd-lite-01", "bccd-lite-04")
JUDGE = "gpt_5*"
"""A name that Markdown would take for emphasis."""


@pytest.fixture
def judged(judge_server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of recorded runs with scorecards by a model behind HTTP, in a store."""
    monkeypatch.chdir(tmp_path)
    for name in RUNS:
        shutil.copytree(RECORDED / name, tmp_path / "runs" / name)
    judge_server.script = ["good"]
    (tmp_path / "ambjudge.toml").write_text(
        f'judge = ["{JUDGE}"]\napi-base = "{judge_server.url}"\ntemperature = 0.5\nsamples = 2\n'
        'store = "s.db"\n',
        encoding="utf-8",
    )
    assert run(["score", "runs"]) in (0, 1)
    return tmp_path / "s.db"


def texts(analysis: Analysis) -> dict[str, str]:
    return dict(methods_statements(analysis))


def test_the_paragraph_has_what_decided_the_verdicts(judged: Path, capsys) -> None:
    with open_store(judged, create=False) as store:
        verdicts = list(store.iter_verdicts())
        (card, _) = store.iter_cards()
    days = sorted({verdict.created_at[:10] for verdict in verdicts})
    analysis = analyse(str(judged), only=["cohort"])
    judge = texts(analysis)["Judge"]
    assert judge.startswith(f"The judge `{JUDGE}` scored 2 runs (")
    for part in (
        f"served model `{JUDGE}`",
        "temperature 0.5",
        "samples of each answer 2",
        f"prompts `{card.judge.prompt_sha256[:12]}`",
        f"days of the verdicts {' to '.join(days)}",
    ):
        assert part in judge
    assert "unknown" not in judge
    rubric = texts(analysis)["Rubric"]
    assert f"`{card.rubric.id}` {card.rubric.version} (`{card.rubric.sha256[:12]}`)" in rubric
    capsys.readouterr()
    assert run(["-q", "analyze", "runs", "--methods"]) == 0
    assert capsys.readouterr().out == methods_paragraph(analysis) + "\n"


def test_verdicts_from_the_store_keep_their_day(judged: Path) -> None:
    """A scorecard that is made again from stored verdicts says when these were given."""
    with open_store(judged, create=False) as store:
        before = [card.to_json() for card in store.iter_cards()]
    assert run(["score", "runs", "--policy", "harness"]) in (0, 1)
    assert run(["score", "runs"]) in (0, 1)
    with open_store(judged, create=False) as store:
        after = [card.judge for card in store.iter_cards()]
    assert all(f'"first_verdict":"{judge.first_verdict}"' in "".join(before) for judge in after)
    assert all(judge.last_verdict is not None for judge in after)


def without_space(text: str) -> str:
    return "".join(text.split())


def test_the_report_says_the_same_as_the_paragraph(judged: Path) -> None:
    analysis = analyse(str(judged), only=["cohort"])
    html = render(analysis, [])
    page = without_space(Page(html, frozenset({"script", "style"})).text)
    for statement in methods_statements(analysis):
        assert without_space(statement.text.replace("`", "")) in page


def frame(**columns: Any) -> pl.DataFrame:
    """A run frame of four runs by a model, with these columns instead of the usual ones."""
    usual: dict[str, Any] = {
        "run_id": ["a", "b", "c", "d"],
        "agent": ["x", "x", "y", "y"],
        "judge": ["m"] * 4,
        "rubric": ["vqa"] * 4,
        "rubric_version": ["1.0"] * 4,
        "overall": [10.0, 20.0, 30.0, 40.0],
        "ambjudge": ["0.1.0"] * 4,
    }
    return pl.DataFrame(usual | columns)


@pytest.mark.parametrize(
    ("columns", "subject", "part"),
    [
        pytest.param(
            {},
            "Judge",
            "(served model, temperature, samples of each answer, prompts and days of the verdicts"
            " unknown)",
            id="all unknown",
        ),
        pytest.param(
            {"judge_temperature": [0.0, 0.0, 0.0, 1.0]},
            "Judge",
            "temperature 0 (3 runs) and 1 (1 run)",
            id="two temperatures",
        ),
        pytest.param(
            {"judge_served": ["m-1", "m-1", None, "m-2"]},
            "Judge",
            "served model `m-1` (2 runs), unknown (1 run) and `m-2` (1 run)",
            id="another model answered",
        ),
        pytest.param(
            {"judge": ["panel"] * 4, "judge_members": ["m; local:n"] * 4},
            "Judge",
            "members `m` and `local:n`",
            id="panel",
        ),
        pytest.param(
            {"judge": ["rules"] * 4}, "Judge", "`rules` scored 4 runs: it is no model", id="rules"
        ),
        pytest.param(
            {"judge": ["local:q"] * 4},
            "Judge",
            "(a local model, by the probabilities of its answers; prompts and days",
            id="local model",
        ),
        pytest.param(
            {"judge": ["replay:answers"] * 4}, "Judge", "from recorded answers", id="replay"
        ),
        pytest.param(
            {"first_verdict": ["2026-03-02"] * 4, "last_verdict": ["2026-03-02", "2026-03-05"] * 2},
            "Judge",
            "days of the verdicts 2026-03-02 to 2026-03-05",
            id="days",
        ),
        pytest.param(
            {"judge": ["m", "m", "m", "n"]},
            "Judge",
            "The judge `m` scored 3 runs (served model",
            id="two judges, the first",
        ),
        pytest.param(
            {"judge": ["m", "m", "m", "n"]},
            "Judge",
            "The judge `n` scored 1 run (served model",
            id="two judges, the second",
        ),
        pytest.param(
            {"judge": ["m", "m", "m", "n"]},
            "Left out",
            "scorecards: 1 of other judges (1 run that m did not judge)",
            id="two judges, left out",
        ),
        pytest.param(
            {"rubric_version": ["1.0", "1.0", "1.0", "2.0"], "rubric_sha256": ["ab" * 32] * 4},
            "Rubric",
            "`vqa` 1.0 (`abababababab`) for 3 runs and `vqa` 2.0 (`abababababab`) for 1 run",
            id="two versions of a rubric",
        ),
        pytest.param(
            {"like": ["paper", "paper", "paper", "harness"]},
            "Rules of scoring",
            "the rules of the paper (3 runs) and the rules of the public harness (1 run)",
            id="two policies",
        ),
        pytest.param(
            {"missing_policy": ["halve"] * 4}, "Rules of scoring", "`halve`", id="unheard-of policy"
        ),
        pytest.param(
            {"judge_calls": [1] * 4, "judge_input_tokens": [1000] * 4, "judge_cost_usd": [0.5] * 4},
            "Cost of judging",
            "took 4 calls, 4,000 input and unknown output tokens, cost US$ 2.00",
            id="cost",
        ),
        pytest.param(
            {"disqualified": [True, False, False, False]},
            "Left out",
            "1 disqualified run from effects of codes",
            id="disqualified",
        ),
        pytest.param(
            {"ambjudge": ["0.0.9", "0.1.0", "0.1.0", "0.1.0"]},
            "Software",
            f"ambjudge 0.1.0 (3 runs) and 0.0.9 (1 run), the analysis by ambjudge {__version__}",
            id="two versions of ambjudge",
        ),
    ],
)
def test_each_fact_is_stated(columns: dict[str, Any], subject: str, part: str) -> None:
    assert part in texts(analyse(frame(**columns), only=["cohort"]))[subject]


def test_names_stand_as_code_whatever_they_hold(capsys) -> None:
    analysis = analyse(frame(judge=["a`b*_<x>\x1b[31m"] * 4), only=["cohort"])
    assert "`a'b*_<x>" in methods_paragraph(analysis)
    assert "\x1b" not in methods_paragraph(analysis)
    assert "<x>" not in render(analysis, [])
