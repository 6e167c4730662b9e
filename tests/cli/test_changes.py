"""`changes` and the audit of numbers, as a user follows a folder of runs through edits."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ambjudge.cli import run
from ambjudge.rubrics.load import dump_rubric, load_rubric

RUNS = Path(__file__).parents[1] / "data" / "recorded" / "runs"
NAMES = ("crc-lite-01", "crc-lite-02", "vqa-std-01")
Out = Callable[..., tuple[int, str, str]]


@pytest.fixture
def out(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Out:
    """Run a command line in a project with three runs; (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AMBJUDGE_STORE", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "ambjudge.toml").write_text("", encoding="utf-8")
    for name in NAMES:
        shutil.copytree(RUNS / name, tmp_path / "runs" / name)

    def call(*args: str | Path) -> tuple[int, str, str]:
        code = run([str(arg) for arg in args])
        seen = capsys.readouterr()
        return code, seen.out, seen.err

    return call


def changes(out: Out, *args: str) -> dict[str, Any]:
    code, text, err = out("changes", "runs", *args, "--json")
    assert code == 0, err
    data: dict[str, Any] = json.loads(text)
    for row in data["runs"]:
        for name in ("agentic", "overall"):
            split = row["change"][name]
            difference = row["after"][name] - row["before"][name]
            assert sum(split["parts"].values()) == pytest.approx(difference, abs=1e-9)
    return data


def causes(data: dict[str, Any]) -> set[str]:
    return {row["cause"] for row in data["causes"]}


def edited_rubric(tmp_path: Path, version: str, **weights: float) -> Path:
    """The rubric of classification with another text of S3, at other weights of stages."""
    data = yaml.safe_load(dump_rubric(load_rubric("classification")))
    data["version"] = version
    (criterion,) = data["stages"]["S3"]["criteria"]
    criterion["text"] += " Say it once more."
    for stage, weight in weights.items():
        data["stages"][stage]["weight"] = weight
    file = tmp_path / f"{version}.yaml"
    file.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return file


def test_every_edit_is_told_by_its_cause_at_any_later_time(
    out: Out, tmp_path: Path, judge_server: Any
) -> None:
    judge = ("--judge", "openai/first", "--api-base", judge_server.url)

    judge_server.script = ["good"]
    assert out("-q", "score", "runs", *judge)[0] == 0
    first = changes(out)
    assert (first["changed"], first["unchanged"], first["runs"]) == (0, 3, [])
    assert "0 of 3 runs changed" in out("changes", "runs")[1]

    judge_server.script = ["lowest"]
    text_edit = edited_rubric(tmp_path, "9.1")
    printed = out("-q", "rejudge", "runs", *judge, "--rubric", text_edit)[1]
    assert "text of criteria or codes" in printed
    assert "Places on the whole board by Overall (3 runs, judge openai/first)" in printed
    data = changes(out)
    assert (data["changed"], data["unchanged"], causes(data)) == (2, 1, {"text"})
    (item,) = data["items"]
    assert (item["item"], item["flips"], item["down"], item["causes"]) == ("S3", 2, 2, {"text": 2})
    assert all(row["after"]["rubric"] == "classification 9.1" for row in data["runs"])
    assert data["board"]["runs_after"] == 3, "the whole board, not the runs that changed"
    narrowed = changes(out, "--where", "run:crc-lite-02")
    assert [row["run"] for row in narrowed["runs"]] == ["crc-lite-02"]
    assert narrowed["board"] == data["board"]

    weights = edited_rubric(tmp_path, "9.2", S1=0.6)
    assert out("-q", "rejudge", "runs", *judge, "--rubric", weights)[0] == 0
    assert causes(changes(out)) == {"weights"}
    since_first = changes(out, "--from", f"classification@{load_rubric('classification').version}")
    assert causes(since_first) == {"text", "weights"}
    assert causes(changes(out, "--since", "last")) == {"weights"}
    assert changes(out, "--since", "1")["added"] == 3

    plan = tmp_path / "runs" / "crc-lite-01" / "process" / "conversation.json"
    plan.write_text(plan.read_text("utf-8").replace("the", "thee", 1), encoding="utf-8")
    judge_server.script = ["good"]
    assert out("-q", "rejudge", "runs", *judge)[0] == 0
    data = changes(out, "--since", "last")
    assert [row["run"] for row in data["runs"]] == ["crc-lite-01"]
    assert causes(data) == {"data"}

    judge_server.script = ["codes:E1"]
    plan.write_text(plan.read_text("utf-8").replace("thee", "theee", 1), encoding="utf-8")
    assert "E1    code" in out("-q", "rejudge", "runs", *judge)[1]

    judge_server.script = ["lowest"]
    other = ("--judge", "openai/second", "--api-base", judge_server.url)
    assert "another judge" in out("-q", "rejudge", "runs", *other)[1]
    data = changes(out, "--judged-by", "openai/second", "--from", "openai/first")
    assert (causes(data), data["judges"]) == ({"judge"}, ["openai/second"])
    wide = out("changes", "runs", "--judged-by", "openai/second")[1]
    rows_of_tables = [line for line in wide.splitlines() if "  " in line]
    assert 60 < max(len(line) for line in rows_of_tables) <= 100


def test_a_verdict_that_fails_and_comes_back_is_a_cause_of_its_own(
    out: Out, tmp_path: Path, judge_server: Any
) -> None:
    judge = ("--judge", "openai/first", "--api-base", judge_server.url)
    judge_server.script = ["lowest"]
    assert out("-q", "score", "runs", *judge)[0] == 0
    judge_server.script = ["refusal"]
    rubric = edited_rubric(tmp_path, "9.1")
    assert out("-q", "rejudge", "runs", *judge, "--rubric", rubric, "--incomplete")[0] == 1
    data = changes(out)
    assert causes(data) == {"unscored"}
    assert {flip["after_state"] for row in data["runs"] for flip in row["change"]["flips"]} == {
        "refused"
    }


@pytest.mark.parametrize(
    ("args", "words"),
    [
        pytest.param(("--since", "soon"), "not a time", id="a time that is none"),
        pytest.param(("--since", "1", "--from", "rules"), "two different", id="two comparisons"),
        pytest.param(("--from", "nobody"), "nobody", id="a judge or rubric that is none"),
    ],
)
def test_a_comparison_that_cannot_be_made_is_refused(
    out: Out, args: tuple[str, ...], words: str
) -> None:
    out("-q", "score", "runs")
    code, _, err = out("changes", "runs", *args)
    assert code == 2
    assert words in err


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("samples", ["1", "2"])
def test_every_number_joins_to_verdict_text_prompt_call_time_and_cost(
    out: Out, tmp_path: Path, judge_server: Any, samples: str
) -> None:
    judge_server.script = ["codes:E1"]
    judge = ("--judge", "openai/first", "--api-base", judge_server.url, "--price", "1,5")
    options = (*judge, "--samples", samples)
    assert out("-q", "score", "runs", *options)[0] == 0
    rubric = edited_rubric(tmp_path, "9.1")
    assert out("-q", "rejudge", "runs", *options, "--rubric", rubric)[0] == 0

    tables = {
        name: rows(out("-q", "export", "runs", "--what", name)[1])
        for name in ("runs", "criteria", "codes", "verdicts", "texts")
    }
    texts = {row["sha256"]: row for row in tables["texts"]}
    verdicts = {row["key"]: row for row in tables["verdicts"]}
    in_force = {key for key, row in verdicts.items() if row["in_force"]}
    judged = [row for row in tables["criteria"] if row["status"] == "scored" and not row["by"]]
    read = [row for row in tables["codes"] if row["by"].startswith("judge:")]
    assert judged
    assert read
    for row in (*judged, *read):
        assert len(row["verdict_keys"]) == int(samples)
        for key, call_id in zip(row["verdict_keys"], row["call_ids"], strict=True):
            verdict = verdicts[key]
            assert key in in_force
            assert verdict["criterion"] == row.get("criterion", row.get("code"))
            assert verdict["call_id"] == call_id
            assert verdict["call_cost_usd"] > 0
            assert verdict["created_at"] <= row["judged_at"]
            assert texts[verdict["criterion_sha256"]]["kind"] in ("criterion", "item")
            assert texts[verdict["prompt_sha256"]]["kind"] == "prompt"
    outdated = {row["criterion"] for key, row in verdicts.items() if key not in in_force}
    assert outdated == {"S3"}, "the verdicts on the text that was edited"
    for row in tables["runs"]:
        assert texts[row["rubric_sha256"]]["rubric"] == f"{row['rubric']} {row['rubric_version']}"
        assert row["judge_prompts"] in texts
        of_run = [verdict for verdict in tables["verdicts"] if verdict["run_id"] == row["run_id"]]
        assert max(verdict["created_at"] for verdict in of_run) <= row["scored_at"]

    code_text = verdicts[read[0]["verdict_keys"][0]]["criterion_sha256"]
    for sha256 in (tables["runs"][0]["judge_prompts"], code_text):
        code, text, _ = out("rubric", "show", sha256[:10], "runs")
        assert code == 0
        assert texts[sha256]["text"].splitlines()[0] in text
    changed = {row["rubric_sha256"] for row in tables["runs"] if row["rubric"] == "classification"}
    (new,) = changed
    diff = out("rubric", "diff", load_rubric("classification").sha256[:12], new[:12], "runs")[1]
    assert "{+Say it once more.+}" in diff


def test_a_store_notes_who_scored_when_and_what_it_cost(out: Out, judge_server: Any) -> None:
    from ambjudge.judge.questions import prompts
    from ambjudge.judge.store import open_store

    judge = ("--judge", "openai/first", "--api-base", judge_server.url, "--price", "1,5")
    judge_server.script = ["good"]
    out("-q", "score", "runs", *judge)
    with open_store(".ambjudge/ambjudge.db", create=False) as store:
        (started, ended) = [
            (kind, body) for _, kind, body in store.events() if kind.startswith("batch")
        ]
        assert started[0] == "batch_started"
        assert (started[1]["command"], started[1]["judge"]) == ("score", "openai/first")
        assert started[1]["user"]
        assert ended[0] == "batch_finished"
        assert ended[1]["calls"] == judge_server.count
        assert ended[1]["cost_usd"] > 0
        (prompt,) = [text for text in store.texts() if text.kind == "prompt"]
    assert prompt.sha256 == hashlib.sha256(prompt.body).hexdigest() == prompts.prompt_sha256()
