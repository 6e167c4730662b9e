"""Python gives what the command line prints: the same numbers, sentences and tables, from the same
scorecards."""

from __future__ import annotations

import inspect
import json
import logging
import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import ambjudge
import polars as pl
import pytest
from ambjudge.cli import run
from ambjudge.errors import AmbjudgeError
from ambjudge.testing import tiny_run

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
FUNCTIONS = ("agreement", "analyze", "compare", "leaderboard", "power")
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e&\"'"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo and its scorecards by its own judge and by the rules, the recorded
    runs with their scorecards, and a simulated pilot."""
    folder = tmp_path_factory.mktemp("parity")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        assert run(["-q", "demo", "--out", str(folder / "demo")]) == 0
        shutil.copytree(folder / "demo" / "labels", folder / "labels")
        patched.chdir(folder / "demo")
        for name, judge in (("cards", "replay:answers"), ("rules", "rules")):
            options = ["--judge", judge, "--store", str(folder / "all.db")]
            options += ["--out", str(folder / f"{name}.jsonl")]
            assert run(["-q", "score", "runs", *options]) == 0
        patched.chdir(folder)
        options = ["--store", "none", "--out", "recorded.jsonl"]
        assert run(["-q", "score", str(RECORDED / "runs"), *options]) in (0, 1)
        sizes = [word for size in ("agents=3", "tasks=6", "repeats=4") for word in ("--set", size)]
        assert run(["-q", "simulate", "--out", "pilot.jsonl", "--seed", "3", *sizes]) == 0
    return folder


@pytest.fixture
def at_place(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That folder as the place to work in, without a store above it."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("AMBJUDGE_STORE", "none")
    return place


LABELS = str(RECORDED / "labels")
Call = Callable[[], Any]
CASES = [
    pytest.param(
        ["leaderboard", "cards.jsonl"], lambda: ambjudge.leaderboard("cards.jsonl"), id="board"
    ),
    pytest.param(
        ["leaderboard", "pilot.jsonl", "--by", "model", "--by", "task", "--outcome", "S2"],
        lambda: ambjudge.leaderboard("pilot.jsonl", "model", boards="task", outcome="S2"),
        id="board of models by task",
    ),
    pytest.param(
        ["leaderboard", "recorded.jsonl", "--where", "track:vqa", "--outcome", "agentic"],
        lambda: ambjudge.leaderboard("recorded.jsonl", run_filter="track:vqa", outcome="agentic"),
        id="board of recorded runs that match",
    ),
    pytest.param(
        ["leaderboard", "rules.jsonl", "cards.jsonl", "--judged-by", "rules"],
        lambda: ambjudge.leaderboard(["rules.jsonl", "cards.jsonl"], judged_by="rules"),
        id="board by one of two judges",
    ),
    pytest.param(
        ["leaderboard", "demo/runs", "--rubric", "classification@1.1"],
        lambda: ambjudge.leaderboard("demo/runs", rubric="classification@1.1"),
        id="board of runs that are scored first",
    ),
    pytest.param(
        ["leaderboard", "demo/runs", "--store", "all.db", "--judged-by", "rules"],
        lambda: ambjudge.leaderboard("demo/runs", store="all.db", judged_by="rules"),
        id="board of runs with a store elsewhere",
    ),
    pytest.param(
        ["compare", "agent-ash", "agent-elm", "cards.jsonl", "--margin", "5"],
        lambda: ambjudge.compare("agent-ash", "agent-elm", "cards.jsonl", margin=5),
        id="agents",
    ),
    pytest.param(
        ["compare", "agent-1", "agent-2", "pilot.jsonl", "--outcome", "S3"],
        lambda: ambjudge.compare("agent-1", "agent-2", "pilot.jsonl", outcome="S3"),
        id="agents of the pilot",
    ),
    pytest.param(
        ["compare", "rules", "replay:answers", "rules.jsonl", "cards.jsonl", "--outcome", "S2"],
        lambda: ambjudge.compare(
            "rules", "replay:answers", ["rules.jsonl", "cards.jsonl"], outcome="S2"
        ),
        id="judges",
    ),
    pytest.param(
        ["compare", "rules.jsonl", "cards.jsonl", "--where", "agent:ash"],
        lambda: ambjudge.compare("rules.jsonl", "cards.jsonl", run_filter="agent:ash"),
        id="releases",
    ),
    pytest.param(
        ["agreement", "cards.jsonl", "--labels", "labels"],
        lambda: ambjudge.agreement("cards.jsonl", "labels"),
        id="judge and people",
    ),
    pytest.param(
        ["agreement", "recorded.jsonl", "--labels", LABELS, "--annotator", "a1"],
        lambda: ambjudge.agreement("recorded.jsonl", LABELS, annotator="a1"),
        id="judge and one annotator of recorded runs",
    ),
    pytest.param(
        ["agreement", "rules.jsonl", "cards.jsonl"],
        lambda: ambjudge.agreement(["rules.jsonl", "cards.jsonl"]),
        id="judge and judge",
    ),
    pytest.param(
        ["agreement", "--labels", LABELS, "--annotator", "a1", "--against", "a2"],
        lambda: ambjudge.agreement(labels=LABELS, annotator="a1", against="a2"),
        id="annotator and annotator",
    ),
    pytest.param(
        ["power", "pilot.jsonl", "--difference", "5", "--power", "0.9"],
        lambda: ambjudge.power("pilot.jsonl", difference=5, target=0.9),
        id="power for a difference",
    ),
    pytest.param(
        ["power", "cards.jsonl", "--difference", "-5", "--labels", "labels"],
        lambda: ambjudge.power("cards.jsonl", difference=-5, labels="labels"),
        id="power with labels",
    ),
    pytest.param(
        ["power", "pilot.jsonl", "--code", "E3", "--effect", "8"],
        lambda: ambjudge.power("pilot.jsonl", code="E3", effect=8),
        id="power for an effect",
    ),
    pytest.param(
        ["power", "cards.jsonl", "--labels", "labels", "--half-width", "1.5"],
        lambda: ambjudge.power("cards.jsonl", labels="labels", half_width=1.5),
        id="labels for a mean",
    ),
    pytest.param(
        ["analyze", "cards.jsonl", "--labels", "labels"],
        lambda: ambjudge.analyze("cards.jsonl", labels="labels"),
        id="all tables",
    ),
    pytest.param(
        ["analyze", "recorded.jsonl", "--outcome", "agentic", "--codes-from", "fact"],
        lambda: ambjudge.analyze("recorded.jsonl", outcome="agentic", codes_from="fact"),
        id="all tables of recorded runs",
    ),
]


@pytest.mark.parametrize(("args", "call"), CASES)
@pytest.mark.filterwarnings("error")
def test_python_has_the_numbers_and_the_words_of_the_command(
    at_place: Path, capsys: pytest.CaptureFixture[str], args: list[str], call: Call
) -> None:
    assert run(["-q", *args, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    result = call()
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False)) == printed
    assert run(["-q", *args]) == 0
    text = " ".join(capsys.readouterr().out.split())
    sentences = result.findings if args[0] == "analyze" else result.sentences
    for sentence in sentences:
        # Of several pairs of judges, the terminal has the pair in a line above.
        assert sentence in text or sentence.partition(": ")[2] in text
    html = _Cells(result._repr_html_())
    assert all(cell in text for cell in html.cells), "a notebook has the terminal's tables"
    assert result.title if args[0] != "analyze" else result.findings
    lines = repr(result).splitlines()
    assert 2 <= len(lines) <= 2 + len(sentences) + 2
    assert max(map(len, lines)) < 320
    if args[0] == "agreement" and "--against" in args:
        assert result.selection == ""
    else:
        assert re.match(r"\d+ scorecards? of judge ", result.selection)


class _Cells(HTMLParser):
    """The texts of a page's cells, and the tags on it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: set[str] = set()
        self._is_cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"style"}
        self._is_cell = tag in ("td", "th")

    def handle_endtag(self, tag: str) -> None:
        self._is_cell = False

    def handle_data(self, data: str) -> None:
        if self._is_cell:
            self.cells.append(" ".join(data.split()))


def test_a_table_is_the_frame_of_its_rows(at_place: Path) -> None:
    board = ambjudge.leaderboard("pilot.jsonl", group_by="model", boards="overall")
    assert {"model", "value", "lo", "hi", "rank"} <= set(board.table.columns)
    assert board.table["model"].null_count() == 0
    results = ambjudge.analyze("pilot.jsonl", only=["codes"])
    assert results["codes"].equals(results.tables["codes"])
    with pytest.raises(KeyError, match="no table 'cods': choose from codes"):
        results["cods"]
    frame_again = ambjudge.leaderboard(results.runs, group_by="model", boards="overall")
    assert frame_again.table["value"].to_list() == board.table["value"].to_list()


def test_rows_are_named_by_what_they_stand_for(
    at_place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for by in ("model", "agent+model", "judge"):
        assert run(["-q", "leaderboard", "cards.jsonl", "--by", by]) == 0
        text = capsys.readouterr().out
        board = ambjudge.leaderboard("cards.jsonl", by)
        heading = next(line for line in text.splitlines() if "estimate" in line)
        assert by in heading.split()
        assert all(name in text for name in board.table[by].to_list())


def test_notebooks_are_shown_names_of_runs_escaped(tmp_path: Path) -> None:
    cards = []
    for number in range(12):
        made = tiny_run(tmp_path / str(number), task=f"{HOSTILE} task {number // 4}", tier="lite")
        names = {"agent": f"{HOSTILE}{number % 2}", "model": HOSTILE, "repeat": number % 4 // 2}
        cards.append(ambjudge.score(made.model_copy(update={**names, "track": "vqa"})))
    runs = ambjudge.analyze(cards, only=["cohort"]).runs.with_columns(
        overall=pl.Series([50.0, 40, 30, 20, 60, 10, 80, 15, 45, 25, 35, 55]),
        read_share=pl.lit(1.0),
    )
    results = [
        ambjudge.leaderboard(runs, boards=["overall", "task"]),
        ambjudge.compare(f"{HOSTILE}0", f"{HOSTILE}1", runs),
        ambjudge.power(runs, difference=5),
        ambjudge.analyze(runs),
    ]
    for result in results:
        html = result._repr_html_()
        tags = {"div", "p", "b", "ul", "li", "table", "tr", "th", "td", "small"}
        assert _Cells(html).tags <= tags
        assert "\x1b" not in html
        assert "\u202e" not in html
    for result in results[:2]:
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in result._repr_html_()


def _examples(name: str) -> str:
    """The code of a docstring: what is indented in it."""
    lines = inspect.cleandoc(getattr(ambjudge, name).__doc__).splitlines()
    return "\n".join(line[4:] for line in lines if line.startswith("    "))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_function_runs(
    at_place: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    code = _examples(name)
    assert f"ambjudge.{name}(" in code
    exec(code, {"ambjudge": ambjudge})  # noqa: S102
    assert capsys.readouterr().out.strip()


REFUSED = [
    pytest.param(lambda: ambjudge.leaderboard("cards.jsonl", "agnt"), "no such field", id="by"),
    pytest.param(
        lambda: ambjudge.leaderboard("cards.jsonl", group_by="tier"),
        "'tier' is a board",
        id="a board",
    ),
    pytest.param(
        lambda: ambjudge.leaderboard("cards.jsonl", boards="tasks"),
        "there is no board 'tasks' .choose from overall",
        id="board",
    ),
    pytest.param(
        lambda: ambjudge.leaderboard("cards.jsonl", outcome="solved"), "solved", id="outcome"
    ),
    pytest.param(
        lambda: ambjudge.leaderboard("cards.jsonl", run_filter="agent:oak"),
        "no run matches",
        id="where",
    ),
    pytest.param(
        lambda: ambjudge.leaderboard("cards.jsonl", judged_by="me"), "of judge 'me'", id="judge"
    ),
    pytest.param(
        lambda: ambjudge.leaderboard("cards.jsonl", rubric="vqa@9"), "by rubric vqa@9", id="rubric"
    ),
    pytest.param(lambda: ambjudge.leaderboard("none.jsonl"), "no such file", id="source"),
    pytest.param(
        lambda: ambjudge.compare("agent-ash", "agent-oak", "cards.jsonl", factor="agent"),
        "no runs of agent 'agent-oak'",
        id="name",
    ),
    pytest.param(
        lambda: ambjudge.compare("agent-ash", "agent-elm", "cards.jsonl", margin=500),
        "margin 500",
        id="margin",
    ),
    pytest.param(
        lambda: ambjudge.compare("agent-ash", "agent-elm"),
        "no such file or folder: agent-ash .to compare two names, give",
        id="names without scorecards",
    ),
    pytest.param(ambjudge.agreement, "no source given", id="nothing"),
    pytest.param(
        lambda: ambjudge.agreement("cards.jsonl"), "nothing to compare", id="one judge alone"
    ),
    pytest.param(
        lambda: ambjudge.agreement("cards.jsonl", "labels", annotator="zz"),
        "no labels of annotator 'zz'",
        id="annotator",
    ),
    pytest.param(
        lambda: ambjudge.agreement(against="a2"), "no labels given", id="against without labels"
    ),
    pytest.param(
        lambda: ambjudge.power("cards.jsonl"), "difference or effect to detect", id="no question"
    ),
    pytest.param(
        lambda: ambjudge.power("cards.jsonl", difference=5, code="E3", effect=5),
        "difference or effect to detect",
        id="two questions",
    ),
    pytest.param(
        lambda: ambjudge.power("cards.jsonl", code="E9", effect=5), "no code 'E9'", id="code"
    ),
    pytest.param(
        lambda: ambjudge.power("cards.jsonl", half_width=2),
        "estimate that the labels correct",
        id="half-width without labels",
    ),
    pytest.param(
        lambda: ambjudge.power("cards.jsonl", difference=5, target=1), "is no power", id="power"
    ),
    pytest.param(
        lambda: ambjudge.analyze("cards.jsonl", labels="nowhere"), "no such file", id="labels"
    ),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_what_cannot_be_meant_is_refused_in_words(at_place: Path, call: Call, words: str) -> None:
    with pytest.raises(AmbjudgeError, match=words) as caught:
        call()
    assert caught.value.hint


def test_what_was_not_read_is_named(
    at_place: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{}\n" + (at_place / "cards.jsonl").read_text("utf-8"), encoding="utf-8")
    board = ambjudge.leaderboard(broken)
    assert board.selection.startswith("30 scorecards of judge replay:answers")
    assert len(board.problems) == 1
    assert "broken.jsonl" in caplog.text
    runs = tmp_path / "runs"
    for name in ("agent-ash-1", "agent-ash-2"):
        tiny_run(runs / name, tier="lite")
    ambjudge.score(runs / "agent-ash-1", store=runs / ".ambjudge" / "ambjudge.db")
    assert ambjudge.leaderboard(runs, outcome="agentic").selection.startswith("1 scorecard of")
    assert "left out 1 run below" in caplog.text
