"""What demanding and careless users do to the commands: nothing odd is made, every error is one line, stdout stays data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.cli import run

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "data" / "recorded"


@pytest.fixture
def out(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Run a command line in an empty project; (exit code, stdout, stderr)."""
    place = tmp_path / "project"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.delenv("AMBJUDGE_STORE", raising=False)

    def call(*args: str | Path) -> tuple[int, str, str]:
        code = run([str(a) for a in args])
        seen = capsys.readouterr()
        return code, seen.out, seen.err

    return call


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


NOTHING_THERE = [
    pytest.param(["score", "nowhere"], id="score"),
    pytest.param(["score", "nowhere", "nor/there", "--json"], id="score, two paths"),
    pytest.param(["score", "no\nwhere"], id="line break in a name"),
    pytest.param(["score", "\x1b[31mred"], id="escape sequence in a name"),
    pytest.param(["score", "a\0b"], id="NUL in a name"),
    pytest.param(["score", "x" * 5000], id="long name"),
    pytest.param(["score", "nowhere", "--dry-run"], id="dry run"),
    pytest.param(["rejudge", "nowhere"], id="rejudge"),
    pytest.param(["segment", "nowhere"], id="segment"),
    pytest.param(["codes", "nowhere"], id="codes"),
    pytest.param(["analyze", "nowhere"], id="analyze"),
    pytest.param(["leaderboard", "nowhere"], id="leaderboard"),
    pytest.param(["agreement", "nowhere"], id="agreement"),
    pytest.param(["export", "nowhere"], id="export"),
    pytest.param(["verify", "nowhere"], id="verify"),
    pytest.param(["selftest", "nowhere"], id="selftest"),
    pytest.param(["import", "openai", "nowhere", "--out", "new"], id="import"),
    pytest.param(["label", "import", "nowhere"], id="label import"),
    pytest.param(["label", "export", "new"], id="label export"),
    pytest.param(["label", "next", "nowhere"], id="label next"),
    pytest.param(["rubric", "validate", "nowhere.yaml"], id="rubric validate"),
    pytest.param(["rubric", "diff", "vqa", "nowhere.yaml"], id="rubric diff"),
    pytest.param(["--config", "nowhere.toml", "score", "nowhere"], id="settings"),
]


@pytest.mark.parametrize("args", NOTHING_THERE)
def test_a_wrong_path_is_one_line_and_leaves_nothing_behind(out, tmp_path: Path, args: list[str]) -> None:
    before = tree(tmp_path)
    code, text, err = out(*args)
    assert (code, text) == (2, "")
    errors = [line for line in err.split("\n") if "error: " in line]
    assert len(errors) == (2 if "nor/there" in args else 1)
    assert "\x1b" not in err
    assert len(err) < 700 + 2 * len("".join(args))
    assert tree(tmp_path) == before


def label(run: str, **more) -> str:
    return json.dumps({"run": run, "annotator": "a", "stages": {"1": "S1"}, **more})


def test_labels_of_runs_with_like_names_do_not_overwrite_each_other(out) -> None:
    Path("in").mkdir()
    for number, name in enumerate(["x/1", "x_1", "../x", "x" * 300, "x" * 299 + "y"]):
        Path(f"in/{number}.json").write_text(label(name, notes=str(number)), "utf-8")
    assert out("-q", "label", "import", "in") == (0, "", "")
    assert out("-q", "label", "export", "away")[0] == 0
    written = [json.loads(path.read_text("utf-8")) for path in Path("away").rglob("*.json")]
    assert sorted(each["notes"] for each in written) == list("01234")
    assert not Path("x.json").exists()
    Path("blocked").write_text("", "utf-8")
    code, text, err = out("label", "export", "blocked")
    assert (code, text) == (2, "")
    assert "cannot be written" in err


def test_label_files_that_are_none_are_named_and_nothing_is_made(out, tmp_path: Path) -> None:
    Path("bad.json").write_text("{}", "utf-8")
    before = tree(tmp_path)
    assert out("label", "import", "bad.json")[0] == 2
    assert tree(tmp_path) == before
    Path("good.json").write_text(label("r"), "utf-8")
    code, _, err = out("label", "import", "bad.json", "good.json")
    assert code == 1
    assert "1 kept, 0 were there already, 1 left out" in err
