"""What demanding and careless users do to the commands: nothing odd is made, every error is one
line, stdout stays data."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ambjudge.cli import run
from ambjudge.commands.render import scorecard
from ambjudge.commands.runs import each_result
from ambjudge.error_codes.models import FiredCode
from ambjudge.judge.card.fields import JudgeInfo, PlanItem
from ambjudge.judge.engine import make_scorecard
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.record.quotes import Evidence

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
    pytest.param(["label", "export", "--out", "new"], id="label export"),
    pytest.param(["label", "next", "nowhere"], id="label next"),
    pytest.param(["rubric", "validate", "nowhere.yaml"], id="rubric validate"),
    pytest.param(["rubric", "diff", "vqa", "nowhere.yaml"], id="rubric diff"),
    pytest.param(["--config", "nowhere.toml", "score", "nowhere"], id="settings"),
]


@pytest.mark.parametrize("args", NOTHING_THERE)
def test_a_wrong_path_is_one_line_and_leaves_nothing_behind(
    out, tmp_path: Path, args: list[str]
) -> None:
    before = tree(tmp_path)
    code, text, err = out(*args)
    assert (code, text) == (2, "")
    errors = [line for line in err.split("\n") if "error: " in line]
    assert len(errors) == (2 if "nor/there" in args else 1)
    assert "\x1b" not in err
    assert len(err) < 700 + 2 * len("".join(args))
    assert tree(tmp_path) == before


GOOD = {
    "task": "kidney-seg-task",
    "tier": "lite",
    "agent": "a",
    "messages": [
        {"role": "user", "content": "Track: segmentation"},
        {
            "role": "assistant",
            "content": "x",
            "tool_calls": [
                {
                    "id": "1",
                    "function": {"name": "execute_code", "arguments": '{"code": "print(1)"}'},
                }
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "1",
            "content": '{"exit_code": 0, "stdout": "ok", "stderr": ""}',
        },
        {"role": "assistant", "content": "done"},
    ],
}
EVIL = "\x1b]0;owned\x07\x9b31m\u202e<script>\u200b\x7f"
NAMES = [
    b"with space",
    b"line\nbreak",
    b"not\xffutf8",
    b"=1+1",
    b"-rf",
    b"quo'te\"",
    "\u202ertl\u202c".encode(),
    b"\x1b[31m",
]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Runs in folders with every odd name, one that cannot be read, and texts that a terminal would
    obey."""
    root = tmp_path / "runs"
    for name in [*NAMES, b"evil", b"broken"]:
        place = os.path.join(os.fsencode(root), name, b"process")
        os.makedirs(place)
        data = (
            {
                **GOOD,
                "task": EVIL,
                "agent": EVIL,
                "messages": [*GOOD["messages"], {"role": "assistant", "content": EVIL}],
            }
            if name == b"evil"
            else {**GOOD, "note": f"the bytes of {name!r}"}
        )
        text = json.dumps(data, ensure_ascii=False)
        with open(os.path.join(place, b"conversation.json"), "wb") as file:
            file.write(text.replace("{", "{,", 1).encode() if name == b"broken" else text.encode())
    return root


@pytest.mark.parametrize(
    "command",
    [["score"], ["segment"], ["codes"], ["export"], ["score", "--store", "kept.db"]],
    ids=" ".join,
)
def test_one_bad_run_never_stops_the_others_whatever_they_are_called(
    out, runs: Path, command: list[str]
) -> None:
    options = [] if command == ["export"] else ["--json"]
    code, text, err = out("-q", command[0], runs, *options, *command[1:])
    found = [json.loads(line) for line in text.splitlines()]
    assert code == 1
    assert len(found) == len(NAMES) + 1
    (error,) = err.splitlines()
    assert "broken/process/conversation.json: is not JSON" in error


def test_a_fault_met_on_one_run_is_an_error_about_that_run() -> None:
    def work(run: Run) -> str:
        if run.id == "two":
            raise ZeroDivisionError("of\nours")
        return run.id

    found = list(
        each_result(
            iter([Run.model_construct(id=n, path=Path(n)) for n in ("one", "two", "three")]), work
        )
    )
    assert [item[1] for item in found if isinstance(item, tuple)] == ["one", "three"]
    assert (
        str(found[1])
        == "two: internal error: ZeroDivisionError: of ours (run again with -vv for the traceback"
        " and report it)"
    )


@pytest.mark.parametrize(
    "command",
    [
        ["score"],
        ["score", "--json"],
        ["segment", "--why"],
        ["segment", "--json"],
        ["codes", "--plan"],
        ["codes", "--json"],
        ["leaderboard"],
    ],
    ids=" ".join,
)
def test_nothing_that_a_terminal_obeys_reaches_it(
    runs: Path, tmp_path: Path, terminal, command: list[str]
) -> None:
    code, seen = terminal(command[0], str(runs), *command[1:], NO_COLOR="1", COLUMNS="140")
    assert code in (0, 1)
    assert "script" in seen or command == ["leaderboard"]
    for char in "\x1b\x07\x9b\u202e\u200b\x7f":
        assert char not in seen
    if "--json" in command:
        assert all(json.loads(line) for line in seen.splitlines() if line.startswith("{"))


@pytest.mark.parametrize("columns", ["", "0", "1", "-5", "many", "²", "33", "100000"])
@pytest.mark.parametrize("command", [["codes", "--plan"], ["score"]], ids=" ".join)
def test_any_width_of_the_terminal_will_do(
    runs: Path, terminal, command: list[str], columns: str
) -> None:
    code, seen = terminal(command[0], str(runs / "=1+1"), *command[1:], COLUMNS=columns)
    assert code in (0, 1)
    assert "kidney-seg-task" in seen


def test_a_scorecard_fits_eighty_columns(
    terminal, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    """Also one with long readings, readings without proof, a plan, and a crowd of tokens."""
    _, seen = terminal("score", str(ROOT / "examples" / "codes"), NO_COLOR="1", COLUMNS="80")
    assert max(len(line.rstrip()) for line in seen.splitlines()) <= 80
    quote = Evidence(turn=2, quote="a line of the log " * 40, check="moved", found_turn=3)
    reading = {
        "taxonomy": "paper",
        "stage": "S3",
        "turns": (1, 3),
        "why": "So it reads. " * 30,
        "confidence": 0.8,
    }
    code = FiredCode(code="E3", by="judge:m", independence="from_judge", quote=quote, **reading)
    unproven = FiredCode(code="E1", by="judge:m", independence="from_judge", **reading)
    card = make_scorecard(load_run(ROOT / "examples" / "clean")).model_copy(
        update={
            "codes": (code,),
            "unproven": (unproven,),
            "codes_read": {"E1": "cannot_tell", "E2": "absent", "E3": "present"},
            "plan": (
                PlanItem(
                    commitment="run one case first, and look at it " * 9,
                    state="dropped",
                    turns=(1, 3, 5),
                ),
            ),
            "stages_from": "mixed",
            "judge": JudgeInfo(
                name="provider/model",
                calls=4,
                input_tokens=120_400,
                cached_tokens=98_000,
                cost_usd=None,
            ),
        }
    )
    monkeypatch.setattr("ambjudge.console.width", lambda: 80)
    scorecard(card)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "4 calls · 120.4k tokens in (98.0k from cache) · cost unknown" in text
    assert "stages by rules and judge" in text
    assert "turn 2 (found in turn 3): “a line of the log" in text
    assert "E2: absent · E1: cannot tell" in text
    assert "Readings without proof (did not fire)\n  E1" in text
    assert "  – dropped run one case first, and" in text


def label(run: str, **more) -> str:
    return json.dumps({"run": run, "annotator": "a", "stages": {"1": "S1"}, **more})


def test_labels_of_runs_with_like_names_do_not_overwrite_each_other(out) -> None:
    Path("in").mkdir()
    for number, name in enumerate(["x/1", "x_1", "../x", "x" * 300, "x" * 299 + "y"]):
        Path(f"in/{number}.json").write_text(label(name, notes=str(number)), "utf-8")
    assert out("-q", "label", "import", "in") == (0, "", "")
    assert out("-q", "label", "export", "--out", "away")[0] == 0
    written = [json.loads(path.read_text("utf-8")) for path in Path("away").rglob("*.json")]
    assert sorted(each["notes"] for each in written) == list("01234")
    assert not Path("x.json").exists()
    Path("blocked").write_text("", "utf-8")
    code, text, err = out("label", "export", "--out", "blocked")
    assert (code, text) == (2, "")
    assert "cannot be written" in err


def test_label_files_that_are_none_are_named_and_nothing_is_made(out, tmp_path: Path) -> None:
    Path("bad.json").write_text("{}", "utf-8")
    before = tree(tmp_path)
    assert out("label", "import", "bad.json")[0] == 1
    assert tree(tmp_path) == before
    Path("good.json").write_text(label("r"), "utf-8")
    code, _, err = out("label", "import", "bad.json", "good.json")
    assert code == 1
    assert "1 label added, 0 already stored, 1 left out" in err


BAD_OPTIONS = [
    pytest.param(["--timeout", "nan"], "timeout", id="timeout nan"),
    pytest.param(["--timeout", "inf"], "timeout", id="timeout inf"),
    pytest.param(["--timeout", "-1"], "timeout", id="timeout negative"),
    pytest.param(["--temperature", "nan"], "temperature", id="temperature nan"),
    pytest.param(["--price", "1e300,1"], "price", id="price beyond any"),
    pytest.param(["--price", "nan,1"], "price", id="price nan"),
    pytest.param(["--price", "1"], "price", id="half a price"),
    pytest.param(["--max-cost", "nan"], "cost limit of nan", id="cost nan"),
    pytest.param(
        ["--api-base", "localhost:8000"],
        "'localhost:8000' is not an http(s) address",
        id="no scheme",
    ),
    pytest.param(
        ["--api-base", "file:///etc/passwd"], "is not an http(s) address", id="other scheme"
    ),
    pytest.param(["--api-base", "http://"], "is not an http(s) address", id="no host"),
    pytest.param(
        ["--api-base", "me:secret@["], "the address of the API cannot be read", id="no URL at all"
    ),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_options_of_a_model_that_make_no_sense_ask_nobody(
    out, judge_server, options: list[str], message: str
) -> None:
    base = [] if "--api-base" in options else ["--api-base", judge_server.url]
    code, text, err = out(
        "score",
        ROOT / "examples" / "codes",
        "--judge",
        "openai/good",
        "--store",
        "none",
        *base,
        *options,
    )
    assert (code, text) == (2, "")
    assert message in err
    assert "secret" not in err
    assert len(err.splitlines()) == 1
    assert judge_server.count == 0


def test_verify_goes_on_after_a_file_that_cannot_be_read(out) -> None:
    assert (
        out("-q", "score", ROOT / "examples" / "codes", "--store", "none", "--out", "cards.jsonl")[
            0
        ]
        == 0
    )
    code, text, err = out("verify", "nowhere", "cards.jsonl", "nor-here")
    assert (code, text) == (1, "")
    assert [line.partition(": no such")[0] for line in err.splitlines()][:2] == [
        "ambjudge: error: nowhere",
        "ambjudge: error: nor-here",
    ]
    assert err.splitlines()[2] == "1 of 1 scorecards add up"
    code, text, err = out("verify", "nowhere")
    assert (code, text, len(err.splitlines())) == (2, "", 1)


STREAMS = [
    pytest.param(
        "{0} rubric show vqa | head -n 1 >/dev/null; exit ${{PIPESTATUS[0]}}",
        141,
        0,
        id="reader left",
    ),
    pytest.param(
        "{0} score {1} --json --store none | true; exit ${{PIPESTATUS[0]}}",
        141,
        0,
        id="nobody read",
    ),
    pytest.param("{0} score {1} --json --store none >/dev/full", 2, 1, id="no space, many lines"),
    pytest.param("{0} rubric list >&-", 0, 0, id="stdout closed"),
    pytest.param("{0} score {1} --store none >/dev/null 2>&-", 0, 0, id="stderr closed"),
]


@pytest.mark.parametrize(("line", "code", "lines"), STREAMS)
def test_broken_streams_are_no_faults_of_ours(
    tmp_path: Path, line: str, code: int, lines: int
) -> None:
    command = line.format(f"{sys.executable} -m ambjudge.cli -q", ROOT / "examples" / "codes")
    if "/dev/full" in line and not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (code, lines), done.stderr
    assert "internal" not in done.stderr


def test_a_cohort_beyond_memory_is_refused(out) -> None:
    code, text, err = out("simulate", "--set", "agents=100000", "--set", "tasks=100000")
    assert (code, text) == (2, "")
    assert "are more than 2,000,000 (take fewer agents, tasks or repeats)" in err


def test_the_answer_of_a_dry_run_is_data(out) -> None:
    assert out("-q", "selftest", "--dry-run") == (0, "65 calls about stages\n", "")
    assert out("-q", "selftest", "--dry-run", "--json") == (0, '{"calls": 65}\n', "")


INTERRUPTED = [
    pytest.param(["selftest"], 2, id="selftest, twice", marks=pytest.mark.slow),
    pytest.param(["score", "RUNS", "--json", "--store", "kept.db"], 1, id="score"),
]


@pytest.mark.parametrize(("args", "times"), INTERRUPTED)
def test_ctrl_c_ends_with_130_and_says_so(
    judge_server, tmp_path: Path, args: list[str], times: int
) -> None:
    judge_server.script = ["slow:1"]
    named = [str(RECORDED / "runs") if a == "RUNS" else a for a in args]
    command = [
        sys.executable,
        "-m",
        "ambjudge.cli",
        *named,
        "--judge",
        "openai/slow",
    ]
    settings = f'api_base = "{judge_server.url}"\nconcurrency = 2\n'
    (tmp_path / "ambjudge.toml").write_text(settings, "utf-8")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        try:
            while judge_server.count == 0 and process.poll() is None:
                time.sleep(0.05)
            for _ in range(times):
                process.send_signal(signal.SIGINT)
                time.sleep(0.2)
            text, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, err
    assert "interrupted" in err.splitlines()[-1]
    assert "Warning" not in err
    assert "Traceback" not in err
    if "--json" in args:
        assert all(json.loads(line) for line in text.splitlines())


BAD_SETTINGS = [
    pytest.param(b"nope = 1", "nope: no such setting", id="unknown"),
    pytest.param(b"conccurrency = 1", "did you mean concurrency?", id="misspelt"),
    pytest.param(b"concurrency = inf", "inf is not a number from 1 to 1000", id="infinite"),
    pytest.param(b"concurrency = 0", "0 is not a number from 1 to 1000", id="none at a time"),
    pytest.param(b"samples = 99", "99 is not a number from 1 to 25", id="too many"),
    pytest.param(b"samples = 1.5", "1.5 is not a whole number", id="half a sample"),
    pytest.param(b"samples = true", "True is not a number", id="flag"),
    pytest.param(b"max_cost = nan", "nan is not a number >= 0", id="nan"),
    pytest.param(b"temperature = 3", "3 is not a number from 0 to 2", id="hot"),
    pytest.param(b'tier = "lit"', "'lit' is not one of", id="tier"),
    pytest.param(b"judge = 5", "must be a string or a list of strings", id="judge"),
    pytest.param(b"= 1", "not TOML", id="syntax"),
    pytest.param(b"samples = " + b"1" * 5000, "not TOML", id="endless number"),
    pytest.param(b"\xff\xfe", "is not UTF-8 text at byte 0", id="bytes"),
]


@pytest.mark.parametrize(("text", "message"), BAD_SETTINGS)
def test_settings_that_make_no_sense_are_one_line_with_their_file(
    out, text: bytes, message: str
) -> None:
    Path("ambjudge.toml").write_bytes(text)
    code, text, err = out("--config", "ambjudge.toml", "score", ROOT / "examples" / "codes")
    assert (code, text) == (2, "")
    assert err.startswith("ambjudge: error: ambjudge.toml: ")
    assert message in err
    assert len(err.splitlines()) == 1


def test_paths_in_settings_are_meant_from_their_file(out, monkeypatch, tmp_path: Path) -> None:
    place = tmp_path / "project"
    (place / "public").symlink_to(RECORDED / "public")
    (place / "mine.yaml").write_bytes((ROOT / "rubrics" / "segmentation.yaml").read_bytes())
    text = 'public = "public"\nstore = "kept/my.db"\nrubric = "mine.yaml"\njudge = "heuristic"\n'
    (place / "ambjudge.toml").write_text(text, "utf-8")
    (place / "sub").mkdir()
    monkeypatch.chdir(place / "sub")
    (place / "run").symlink_to(RECORDED / "runs" / "kidney-lite-04")
    code, text, err = out("score", place / "run", "--json")
    assert (code, err) == (0, f"verdicts in {place / 'kept' / 'my.db'}\n")
    assert json.loads(text)["stages"]["S4"]["checks"]["cases_from"] == "public"
    assert (place / "kept" / "my.db").is_file()
    assert list((place / "sub").iterdir()) == []
    (place / "ambjudge.toml").write_text('judge = ["heuristic", "local:models/x"]\n', "utf-8")
    assert f"local:{place / 'models' / 'x'}: no such file" in out("score", place / "run")[2]


@pytest.mark.parametrize("place", ["run", "run/process", "collection"])
def test_settings_that_come_with_runs_are_not_the_users(
    out, monkeypatch, tmp_path: Path, place: str
) -> None:
    """They could name another judge, send keys elsewhere or set prices to zero."""
    collection, home = tmp_path / "theirs", tmp_path / "mine"
    shutil.copytree(RECORDED / "runs" / "crc-lite-02", collection / "run")
    home.mkdir()
    (tmp_path / "ambjudge.toml").unlink(missing_ok=True)
    hostile = (
        'judge = "openai/theirs"\napi_base = "http://127.0.0.1:9/v1"\nprice = "0,0"\nrubric ='
        ' "workflow"\n'
    )
    at = collection if place == "collection" else collection / place
    (at / "ambjudge.toml").write_text(hostile, "utf-8")
    monkeypatch.chdir(home)
    code, text, err = out("score", collection / "run", "--json", "--store", "none")
    assert (code, err) == (0, "")
    assert json.loads(text)["judge"]["name"] == "rules", "heuristic is what it was called"
    if place != "collection":
        monkeypatch.chdir(collection / "run")  # to stand in a run is not to own it
        assert (
            json.loads(out("score", ".", "--json", "--store", "none")[1])["rubric"]["id"]
            == "classification"
        )
