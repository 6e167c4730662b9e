"""`ambjudge search`: words and patterns in the turns of runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.cli import run
from ambjudge.trajectories.reading.load import load_run

RUNS = Path(__file__).parents[1] / "data" / "recorded" / "runs"


@pytest.fixture
def search(capsys: pytest.CaptureFixture[str]):
    def call(*args: str) -> tuple[int, str, str]:
        code = run(["search", *args])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.mark.parametrize(
    ("pattern", "words"),
    [("No Module named", "no module named"), (r"/no\s+module named '\w+'/", "no module named")],
    ids=["words", "regex"],
)
def test_every_match_names_its_turn(search, pattern: str, words: str) -> None:
    code, out, err = search(pattern, str(RUNS), "--json", "--most", "1000")
    assert code == 0
    matches = [json.loads(line) for line in out.splitlines()]
    assert matches
    for match in matches:
        turn = load_run(match["path"]).turns[match["turn"] - 1]
        parts = {"text": turn.text, "reasoning": turn.reasoning, "code": turn.code}
        text = {**parts, "output": turn.output, "reply": "\n".join(turn.replies)}[match["part"]]
        assert match["line"] in text.splitlines()
        assert words in match["line"][match["start"] : match["end"]].lower()
    n_runs = len({match["run"] for match in matches})
    assert err == f"{len(matches)} lines in {n_runs} of 15 runs\n"


def test_runs_can_be_filtered_and_matches_limited(search) -> None:
    code, out, err = search("import", str(RUNS), "--where", "track:vqa tier=lite", "--most", "2")
    assert code == 0
    heading, *lines = out.splitlines()
    assert heading.startswith("vqa-lite-01  (")
    assert len(lines) == 2
    assert "in 1 of 1 run\n" in err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["/(/"], "is no regular expression"),
        ([" "], "there is nothing to search for"),
        (["x", "--where", "agnet:x"], "did you mean agent?"),
        (["x", "--where", "id:nothing-like-it"], "no run matches the filter"),
    ],
    ids=["regex", "empty", "filter", "no run"],
)
def test_mistakes_are_one_line(search, args: list[str], message: str) -> None:
    pattern, *options = args
    code, out, err = search(pattern, str(RUNS), *options)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
