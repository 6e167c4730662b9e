"""What comes with runs decides nothing for the user: no settings, no address for a key, no store
full of verdicts."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import pickle
import re
import shutil
import socket
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import polars as pl
import pytest
from ambjudge.cli import run
from ambjudge.commands.browse import browser, collect
from ambjudge.config import load as load_settings
from ambjudge.console import LogFormatter
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.judges.api.prices import key_for
from ambjudge.judge.session import default_store
from ambjudge.judge.store import open_store
from ambjudge.sanitize import mask

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "data" / "recorded"
OWN = Path(".ambjudge") / "ambjudge.db"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collection of one run, no settings anywhere."""
    monkeypatch.delenv("AMBJUDGE_STORE", raising=False)
    shutil.copytree(RECORDED / "runs" / "crc-lite-02", tmp_path / "runs" / "crc-lite-02")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def run_command(capsys, *args: str | Path) -> tuple[int, str, str]:
    code = run([str(a) for a in args])
    seen = capsys.readouterr()
    return code, seen.out, seen.err


@pytest.mark.parametrize("name", ["ambjudge.toml", "pyproject.toml"])
@pytest.mark.parametrize("at", ["crc-lite-02/process", "crc-lite-02", "."])
def test_who_stands_in_a_run_has_no_settings_but_those_that_are_named(
    runs, capsys, monkeypatch, name, at
) -> None:
    head = "[tool.ambjudge]\n" if name == "pyproject.toml" else ""
    (runs / at / name).write_text(f'{head}rubric = "workflow"\nstore = "../x.db"\n', "utf-8")
    monkeypatch.chdir(runs / "crc-lite-02")
    code, text, _ = run_command(capsys, "score", ".", "--json", "--store", "none")
    assert (code, json.loads(text)["rubric"]["id"]) == (0, "classification")
    code, text, _ = run_command(
        capsys, "--config", runs / at / name, "score", ".", "--json", "--store", "none"
    )
    assert json.loads(text)["rubric"]["id"] == "workflow"


@pytest.mark.parametrize(
    "text",
    [b"x" * (1 << 17), b"a." * 30_000 + b"a = 1", b"a = " + b"[" * 60_000],
    ids=["long", "dotted", "deep"],
)
def test_settings_that_would_eat_the_machine_are_one_line(
    runs, capsys, no_runaway, text: bytes
) -> None:
    Path("ambjudge.toml").write_bytes(text)
    with Path("pyproject.toml").open("wb") as sparse:
        sparse.truncate(20 << 30)
    with no_runaway():
        code, _, err = run_command(capsys, "score", runs)
        Path("ambjudge.toml").unlink()
        assert run_command(capsys, "score", runs, "--store", "none", "-h")[0] == 0
    assert (code, len(err.splitlines())) == (2, 1)
    assert "internal" not in err


def test_a_providers_key_goes_to_that_provider_alone(
    runs, capsys, judge_server, monkeypatch
) -> None:
    """A server that is named gets a key of its own, or none; one in the environment is meant for
    the key beside it."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai-123456")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-anthropic-1")
    judge_server.script = ["good"]
    at = ("--api-base", judge_server.url, "--store", "none")
    assert run_command(capsys, "score", runs, "--judge", "openai/m", *at)[0] in (0, 1)
    assert key_for("anthropic/claude-sonnet-4-5", judge_server.url) == "none"
    sent = "\n".join(str(headers) for headers in judge_server.headers)
    assert judge_server.count > 1
    assert "of-openai" not in sent
    monkeypatch.setenv("AMBJUDGE_API_KEY", "sk-of-this-server")
    assert run_command(capsys, "score", runs, "--judge", "openai/m", *at)[0] in (0, 1)
    assert "sk-of-this-server" in str(judge_server.headers[-1])
    official = ApiJudge("openai/gpt-5.4-mini", "https://api.openai.com/v1")
    assert official.endpoint()[1] == "sk-of-openai-123456"
    assert ApiJudge("openai/m", "http://api.openai.com/v1").endpoint()[1] == "sk-of-this-server", (
        "not in clear"
    )
    assert (
        ApiJudge("openai/m", "https://api.openai.com.evil.org/v1").endpoint()[1]
        == "sk-of-this-server"
    )


def forged(folder: Path) -> Path:
    """A store as somebody else makes it: whole and of our schema, but not noted here."""
    place = folder / OWN
    open_store(place).close()
    with sqlite3.connect(place) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'id'", ("0" * 32,))
    return place


def test_a_store_that_came_with_runs_is_used_only_by_name(runs, capsys) -> None:
    assert run_command(capsys, "score", runs)[0] == 0
    assert default_store(runs) == runs / OWN, "made here"
    shutil.rmtree(runs / ".ambjudge")
    place = forged(runs)
    code, text, err = run_command(capsys, "score", runs, "--json")
    assert (code, bool(text)) == (0, True)
    assert f"verdicts are not stored: {place} is not used: it was not made here" in err
    code, _, err = run_command(
        capsys, "score", runs, "--judge", "openai/m", "--api-base", "http://127.0.0.1:9/v1"
    )
    assert (code, "name it with --store" in err) == (2, True), "a model's verdicts must not be lost"
    for command in (["export", runs], ["label", "export", "--out", "out"], ["rejudge", runs]):
        code, _, err = run_command(capsys, *command)
        assert "internal" not in err
    code, _, err = run_command(capsys, "score", runs, "--store", place)
    assert (code, "not used" in err) == (0, False)


def test_what_is_not_the_users_is_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine" / OWN
    open_store(mine).close()
    for name in ("copied", "linked", "moved"):
        (tmp_path / name / ".ambjudge").mkdir(parents=True)
    shutil.copy(mine, tmp_path / "copied" / OWN)
    (tmp_path / "linked" / OWN).symlink_to(mine)
    for name in ("copied", "linked"):
        with pytest.raises(Exception, match="is not used"):
            default_store(tmp_path / name)
    mine.rename(tmp_path / "moved" / OWN)
    assert default_store(tmp_path / "moved") == tmp_path / "moved" / OWN
    with sqlite3.connect(tmp_path / "mine" / OWN) as connection:
        connection.execute(
            "CREATE VIEW meta AS WITH RECURSIVE c(value) AS (SELECT 1 UNION ALL SELECT value FROM"
            " c) SELECT value, 'no' AS name FROM c"
        )
    with pytest.raises(Exception, match="is not used"):
        default_store(tmp_path / "mine")


def test_verdicts_that_no_judge_gave_here_are_marked(runs, capsys, judge_server) -> None:
    judge_server.script = ["good"]
    ask = (
        "score",
        runs,
        "--judge",
        "openai/m",
        "--api-base",
        judge_server.url,
        "--json",
        "--store",
        "s.db",
    )
    first = json.loads(run_command(capsys, *ask)[1])
    asked = judge_server.count
    again = json.loads(run_command(capsys, *ask)[1])
    assert (judge_server.count, again["warnings"]) == (
        asked,
        [w for w in first["warnings"] if "quotes" not in w],
    )
    with sqlite3.connect("s.db") as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'id'", ("0" * 32,))
    marked = json.loads(run_command(capsys, *ask)[1])
    assert judge_server.count == asked
    assert any(
        "not made here; nothing proves that openai/m gave them" in warning
        for warning in marked["warnings"]
    )


def test_another_programs_database_is_left_alone(runs, capsys) -> None:
    with sqlite3.connect("theirs.db") as connection:
        connection.execute("CREATE TABLE cookies (value)")
    code, _, err = run_command(capsys, "score", runs, "--store", "theirs.db")
    assert (code, "has tables of another program: cookies" in err) == (2, True)
    with sqlite3.connect("theirs.db") as connection:
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("cookies",)]


class Owned:
    """What a pickle of a hostile model would do."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.place), "w")


def laden(run: Path, url: str, owned: Path, secret: Path) -> None:
    """Everything beside a transcript that might make somebody's command do something, naming a
    server at `url`."""
    forms = (
        url,
        f"{url}/",
        f"{url}/v1",
        url.replace("127.0.0.1", "localhost"),
        url.replace("//", "//u:p@"),
    )
    variables = (
        "OPENAI_API_BASE",
        "OPENAI_BASE_URL",
        "ANTHROPIC_BASE_URL",
        "AMBJUDGE_API_BASE",
        "HF_ENDPOINT",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "https_proxy",
        "AWS_ENDPOINT_URL",
        "LITELLM_PROXY_API_BASE",
    )
    settings = (
        'judge = ["openai/gpt-5.4-mini"]\napi_base = "{}"\nstore = "verdicts.db"\nrubric ='
        ' "rubric.yaml"\npublic = "public"\nprice = "0,0"\nsamples = 25\ntrack = "vqa"\n'
    )
    code = (
        f"open({str(owned)!r}, 'w')\nimport socket;"
        f" socket.create_connection({urlsplit(url).netloc.split(':')!r})\n"
    )
    remote = {
        "auto_map": {"AutoConfig": "modeling.C", "AutoModelForCausalLM": "modeling.M"},
        "model_type": "x",
        "_name_or_path": url,
    }
    for place, form in zip(
        (run, run / "process", run / "public", run / "model", run / "outputs"), forms, strict=True
    ):
        place.mkdir(exist_ok=True)
        texts = {
            "ambjudge.toml": settings.format(form),
            "pyproject.toml": "[tool.ambjudge]\n" + settings.format(form),
            ".env": (
                "AMBJUDGE_JUDGE=openai/gpt-5.4-mini\nAMBJUDGE_PLUGINS=modeling\n"
                + "".join(f"{v}={form}\n" for v in variables)
            ),
            ".netrc": "machine 127.0.0.1 login u password p\n",
            "litellm_config.yaml": f"api_base: {form}\n",
            "rubric.yaml": (
                (ROOT / "rubrics" / "vqa.yaml").read_text("utf-8").replace("weight: ", "weight: 9")
            ),
            "config.json": json.dumps(remote),
            "tokenizer_config.json": json.dumps(remote),
            **dict.fromkeys(
                (
                    "modeling.py",
                    "sitecustomize.py",
                    "usercustomize.py",
                    "conftest.py",
                    "numpy.py",
                    "litellm.py",
                    "ambjudge.py",
                ),
                code,
            ),
        }
        for name, text in texts.items():
            (place / name).write_text(text, "utf-8")
        for name in ("pytorch_model.bin", "model.safetensors", "model.gguf", "cards.pkl"):
            (place / name).write_bytes(pickle.dumps(Owned(owned)))
        shutil.copy(forged(place), place / "verdicts.db")
        for name, to in (
            ("elsewhere", secret.parent),
            ("passwd.json", secret),
            ("plan_link.md", secret),
        ):
            (place / name).symlink_to(to)
    task = run / "public" / "nct-crc-cls-task"
    task.mkdir()
    (task / "labels.csv").write_text(f"case,label\n1,{url}\n", "utf-8")
    for name in ("cards.jsonl", "scorecards.jsonl"):
        (run / name).write_text(
            '{"schema": "ambjudge.scorecard/1", "run": {"id": "forged"}}\n', "utf-8"
        )


@pytest.fixture
def listener():
    """Address of a server, and who connected to it."""
    came: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, peer = server.accept()
                    came.append(peer)
                    connection.close()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", came
        server.shutdown(socket.SHUT_RDWR)


async def browsed(run_folder: Path) -> list[object]:
    """What the browser has of a run that is listed, scored and opened."""
    settings = load_settings()
    collection = collect(run_folder, settings, {})
    app = browser(collection, settings, {})
    async with app.run_test() as pilot:
        for _ in range(500):
            if app.runs_screen.listed and app.runs_screen.table.rows[0].state == "scored":
                break
            await pilot.pause(0.02)
        row = app.runs_screen.table.rows[0]
    collection.close()
    return [row, collection.open(row)]


def test_a_run_folder_changes_nothing_that_its_transcript_does_not(
    tmp_path, runs, capsys, judge_server, listener, monkeypatch
) -> None:
    """Every command on a run, and on the same run with all that somebody could lay beside the
    transcript."""
    url, came = listener
    owned, secret = tmp_path / "owned", tmp_path / "secret" / "key.txt"
    secret.parent.mkdir()
    secret.write_text("the secret of another folder", "utf-8")
    for provider in ("OPENAI", "ANTHROPIC", "AMBJUDGE"):
        monkeypatch.setenv(f"{provider}_API_KEY", f"sk-of-{provider.lower()}-123456")
    judge_server.script = ["good"]
    run_folder, pristine = runs / "crc-lite-02", tmp_path / "pristine"
    shutil.copytree(run_folder, pristine)
    model = ("--judge", "openai/m", "--api-base", judge_server.url)

    def told(*command: str | Path) -> tuple[int, str, str]:
        """What a command says, but for the time at which a scorecard was made."""
        code, text, err = run_command(capsys, *command)
        return code, re.sub(r'"scored_at":"[^"]*"', "", text), err

    def seen() -> list[object]:
        out = tmp_path / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        store = ("--store", out / "s.db")
        outputs: list[object] = [
            told(*command)
            for command in (
                [
                    "score",
                    run_folder,
                    "--json",
                    "--public",
                    RECORDED / "public",
                    "--out",
                    out / "c.jsonl",
                ],
                ["score", run_folder, "--json", *store, *model],
                ["ask", run_folder, "Was a model trained?", "--dry-run", *store, *model],
                ["rejudge", run_folder, *store],
                ["rejudge", run_folder, "--dry-run", *store, *model],
                ["segment", run_folder, "--json"],
                ["codes", run_folder, "--json"],
                ["export", run_folder],
                ["leaderboard", run_folder, "--json"],
                ["verify", out / "c.jsonl"],
                ["analyze", run_folder],
                ["site", run_folder, "--out", out / "site", "--no-report"],
                ["doctor", "--json"],
            )
        ]
        outputs.append(asyncio.run(browsed(run_folder)))
        return [
            *outputs,
            {
                path: path.read_bytes()
                for path in out.rglob("*")
                if path.is_file() and "s.db" not in path.name
            },
        ]

    before, asked = seen(), judge_server.count
    shutil.rmtree(runs)
    shutil.copytree(pristine, run_folder)
    laden(run_folder, url, owned, secret)
    for number, (one, other) in enumerate(zip(before, seen(), strict=True)):
        assert one == other, number
    sent = [json.dumps(request, sort_keys=True) for request in judge_server.requests]
    assert sorted(sent[:asked]) == sorted(sent[asked:])
    assert (came, owned.exists(), "another folder" in str(sent)) == ([], False, False)


SECRET = "hunter2/hunter2+x"


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://bob:hunter2@host/db",
        "postgresql://bob@host/db?password=hunter2&x=1",
        f"key {SECRET}",
        SECRET[::-1],
        SECRET.encode().hex(),
        *(base64.b64encode(b"-" * n + SECRET.encode()).decode() for n in range(3)),
    ],
)
def test_secrets_are_masked_however_they_come_back(monkeypatch, text: str) -> None:
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    shown = mask(f"said {text} end")
    assert "***" in shown
    for form in (
        "hunter2",
        SECRET[::-1][3:-3],
        SECRET.encode().hex()[6:-6],
        base64.b64encode(SECRET.encode()).decode()[4:-4],
    ):
        assert form not in shown


def test_addresses_are_shown_without_their_credentials(runs, capsys) -> None:
    for store in (
        "postgresql://bob@127.0.0.1:9/db?password=hunter2",
        "postgresql://bob:hunter2@127.0.0.1:9/db",
    ):
        for command in (
            ["-vv", "score", runs, "--judge", "openai/m", "--store", store],
            ["doctor"],
        ):
            Path("ambjudge.toml").write_text(f'store = "{store}"\n', "utf-8")
            _, text, err = run_command(capsys, *command)
            assert "hunter2" not in text + err
    server = "http://bob:hunter2@127.0.0.1:9/v1?key=hunter2"
    Path("ambjudge.toml").write_text(f'api_base = "{server}"\n', "utf-8")
    _, text, err = run_command(capsys, "doctor")
    assert "hunter2" not in text + err


HOSTILE = "a\x1b]52;c;aGk=\x07b\x9b31m\u202ec\nambjudge: error: forged"


def test_nothing_that_a_terminal_obeys_is_in_log_lines_and_tracebacks(
    tmp_path, capsys, monkeypatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    cards = tmp_path / f"{HOSTILE}.jsonl"
    cards.write_text(json.dumps({"schema": HOSTILE, HOSTILE: 1}) + "\n{}\n", "utf-8")
    for command in (
        ["label", "next", cards],
        ["-vv", "score", cards, "--store", "none"],
        ["-vv", "verify", cards, "--json"],
        ["analyze", cards],
    ):
        _, text, err = run_command(capsys, *command)
        for char in "\x1b\x07\x9b\u202e":
            assert char not in text + err
    handler = LogFormatter("ambjudge: %(levelname)s: %(message)s")
    line = handler.format(logging.LogRecord("x", 30, "x", 1, "%s", (HOSTILE,), None))
    assert len(line.splitlines()) == 1
    assert "\x1b" not in line


def test_a_small_parquet_file_of_millions_of_runs_is_refused(tmp_path, capsys) -> None:
    table = tmp_path / "t.parquet"
    pl.select(run_id=pl.repeat("x", 1_000_001)).write_parquet(table)
    code, _, err = run_command(capsys, "leaderboard", table)
    assert (code, "1,000,001 rows, more than" in err) == (2, True)


def test_files_that_are_no_scorecards_are_told_once(tmp_path, capsys, no_runaway) -> None:
    lines, whole = tmp_path / "lines.jsonl", tmp_path / "whole.json"
    lines.write_bytes(b"{}\n" * 12_000)
    whole.write_bytes(b'{"a": "' + b"x" * (65 << 20) + b'"}')
    with no_runaway():
        for command in ("verify", "leaderboard", "analyze"):
            for file, why in (
                (lines, "12000" if command == "verify" else "more than 10,000"),
                (whole, "67,108,864"),
            ):
                code, text, err = run_command(capsys, command, file)
                assert (code != 0, len((text + err).splitlines()) < 6, why in err) == (
                    True,
                    True,
                    True,
                )
