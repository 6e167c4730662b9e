"""ambjudge as a library: the page's code runs, every public name is documented, notebooks are shown
nothing unescaped."""

from __future__ import annotations

import inspect
import json
import logging
import re
import shutil
from pathlib import Path

import ambjudge
import pytest
from ambjudge.cli import run as run_command
from ambjudge.errors import AmbjudgeError, ConfigError
from ambjudge.judge.card.verify import parse_card
from ambjudge.rubrics.load import load_rubric
from ambjudge.testing import ScriptedJudge, tiny_run

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "data" / "recorded" / "runs"
PUBLIC = [
    "AmbjudgeError",
    "Run",
    "ScoreCard",
    "__version__",
    "agreement",
    "analysis",
    "analyze",
    "ask",
    "compare",
    "diagnose",
    "iter_runs",
    "leaderboard",
    "load_run",
    "make_judge",
    "power",
    "score",
    "score_many",
    "segment",
]


def test_the_public_names_are_these_and_each_has_an_example() -> None:
    assert ambjudge.__all__ == PUBLIC
    assert dir(ambjudge) == sorted(PUBLIC)
    for name in PUBLIC:
        thing = getattr(ambjudge, name)
        if not isinstance(thing, str) and not inspect.ismodule(thing):
            assert "ambjudge." in (thing.__doc__ or ""), f"{name} has no example"


def test_the_page_on_python_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judge_server
) -> None:
    for name in ("vqa-std-01", "kidney-lite-01"):
        shutil.copytree(RECORDED / name, tmp_path / "runs" / name)
    shutil.copytree(RECORDED.parent / "labels", tmp_path / "labels")
    monkeypatch.chdir(tmp_path)
    sizes = [word for size in ("agents=2", "tasks=6", "repeats=3") for word in ("--set", size)]
    assert run_command(["-q", "simulate", "--out", "cards.jsonl", "--seed", "3", *sizes]) == 0
    judge_server.script = ["good"]
    blocks = re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "docs" / "python.md").read_text("utf-8"), re.M | re.S
    )
    assert len(blocks) == 7
    world: dict[str, object] = {}
    for block in blocks:
        exec(block.replace("http://localhost:8000/v1", judge_server.url), world)  # noqa: S102
    card, again = world["card"], world["again"]
    assert isinstance(card, ambjudge.ScoreCard)
    assert again.to_json() == card.to_json()
    assert card.agentic == 1, "the scripted server says yes to every question of one's own, too"
    assert judge_server.count == 2 * (4 + 1) + 2 + 1, (
        "two runs asked once for score, diagnose and ask; then the own rubric"
    )


def test_a_card_written_by_pydantic_is_what_verify_reads(tmp_path: Path) -> None:
    card = ambjudge.score(tiny_run(tmp_path / "run"))
    assert parse_card(json.loads(card.model_dump_json()), "card").run == card.run
    assert len(repr(card).splitlines()) == 1


def test_a_notebook_is_shown_a_runs_words_escaped(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", task="<script>alert(1)</script>", tier="lite")
    quoted = ScriptedJudge({"S1a": 1})
    html = ambjudge.score(run, quoted)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "S1a</summary>" in html
    assert ">1</span>: The script says so." in html


def test_bad_runs_are_named_and_the_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)  # a command before may have quieted the log
    tiny_run(tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "conversation.json").write_text("{")
    errors: list[AmbjudgeError] = []
    assert len(ambjudge.score_many(tmp_path, errors=errors)) == 1
    assert len(list(ambjudge.iter_runs(tmp_path, track="vqa", errors=errors))) == 1
    assert len(errors) == 2
    assert [
        run.track for run in ambjudge.iter_runs([tmp_path / "good", tmp_path / "bad"], track="vqa")
    ] == ["vqa"]
    assert "bad" in caplog.text


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run", track="segmentation")
    with pytest.raises(
        ConfigError, match="rubric vqa is for track vqa, the run is of track segmentation"
    ):
        ambjudge.score(run, rubric=load_rubric("vqa"))
    with pytest.raises(ConfigError, match="a judge has no option 'temprature'"):
        ambjudge.make_judge("openai/m", temprature=1)
    with pytest.raises(ConfigError, match="unknown track"):
        ambjudge.score(run, track="sgmentation")
    with pytest.raises(ConfigError, match="judge rules cannot label turns"):
        ambjudge.score(run, stages="judge")
    with pytest.raises(ConfigError, match="judge rules cannot be asked"):
        ambjudge.ask(tmp_path, "Did it?", "rules")
