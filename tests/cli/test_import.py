"""ambjudge import as a user runs it: what lands where, what is said, exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from ambjudge.trajectories.reading.load import load_run

IMPORTS = Path(__file__).parents[1] / "data" / "imports"
EXAMPLE = Path(__file__).parents[2] / "examples" / "codes"
CHAT = {
    "messages": [
        {"role": "user", "content": "Segment."},
        {
            "role": "assistant",
            "content": "Running.",
            "tool_calls": [
                {
                    "id": "c",
                    "type": "function",
                    "function": {"name": "bash", "arguments": '{"command": "ls"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": "ct.nii.gz"},
    ]
}


def chats(*values: object) -> Path:
    path = Path("chats.jsonl")
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def test_import_then_score(out) -> None:
    code, text, err = out(
        "import",
        "openai",
        chats(CHAT, {**CHAT, "id": "second"}),
        "--out",
        "runs",
        "--agent",
        "a",
        "--model",
        "m",
        "--task",
        "kidney-seg-task",
        "--tier",
        "lite",
    )
    assert code == 0
    assert text.splitlines() == [
        "runs/chats-1/process/conversation.json",
        "runs/second/process/conversation.json",
    ]
    assert err == "2 runs imported\n"
    loaded = load_run("runs/second")
    assert (loaded.agent, loaded.model, loaded.task, loaded.tier) == (
        "a",
        "m",
        "kidney-seg-task",
        "lite",
    )
    code, text, _ = out("score", "runs", "--json")
    cards = [json.loads(line) for line in text.splitlines()]
    assert [card["run"]["id"] for card in cards] == ["chats-1", "second"]
    assert {card["run"]["track"] for card in cards} == {"segmentation"}


def test_nothing_is_written_over_without_force(out) -> None:
    source = chats({**CHAT, "id": "a"})
    assert out("import", "openai", source, "--out", "runs")[0] == 0
    kept = Path("runs/a/process/conversation.json").read_bytes()
    code, text, err = out("import", "openai", source, "--out", "runs", "--task", "other")
    assert (code, text) == (2, "")
    assert "runs/a: exists already (--force overwrites it)" in err
    assert Path("runs/a/process/conversation.json").read_bytes() == kept
    assert out("import", "openai", source, "--out", "runs", "--task", "other", "--force")[0] == 0
    assert load_run("runs/a").task == "other"


def test_what_cannot_be_read_is_named_and_the_rest_goes_on(out) -> None:
    source = chats(
        {**CHAT, "id": "../../up/a\x1b"},
        {"messages": []},
        {**CHAT, "id": "UP-A"},
        CHAT["messages"][:1],
    )
    code, text, err = out("import", "openai", source, "gone.json", "--out", "runs")
    assert code == 1
    assert text.splitlines() == [
        "runs/up-a/process/conversation.json",
        "runs/UP-A-2/process/conversation.json",
    ]
    assert "chats.jsonl: line 2: is not a chat conversation" in err
    assert "chats.jsonl: chats-4: holds no assistant message" in err
    assert "gone.json: no such file or folder" in err
    assert "2 runs imported, 3 not" in err
    assert "\x1b" not in err
    assert sorted(path.name for path in Path("runs").iterdir()) == ["UP-A-2", "up-a"]


def test_what_is_left_behind_is_said_in_one_line_a_run(out) -> None:
    source = chats({**CHAT, "tools": [{"type": "function"}]})
    _, _, err = out("import", "openai", source, "--out", "runs")
    assert err.splitlines() == [
        "chats: not carried over: 1 list of tool definitions",
        "1 run imported",
    ]
    assert out("-q", "import", "openai", source, "--out", "quiet")[2] == ""


def test_links_are_not_written_through(out) -> None:
    Path("elsewhere").mkdir()
    Path("runs").mkdir()
    Path("runs/a").symlink_to(Path("elsewhere").resolve())
    code, _, err = out("import", "openai", chats({**CHAT, "id": "a"}), "--out", "runs", "--force")
    assert (code, "runs/a: is a link" in err) == (2, True)
    assert list(Path("elsewhere").iterdir()) == []


@pytest.mark.parametrize("to", ["openai", "anthropic"])
def test_a_recorded_run_goes_out_and_comes_back(out, to: str) -> None:
    code, text, _ = out("import", "conversation", EXAMPLE, "--to", to, "--out", "chats")
    assert (code, text) == (0, "chats/codes.json\n")
    assert out("import", to, "chats/codes.json", "--out", "runs", "--tier", "lite")[0] == 0
    before, after = load_run(EXAMPLE), load_run("runs/codes")
    assert [(t.text, t.code, t.output) for t in after.turns] == [
        (t.text, t.code, t.output) for t in before.turns
    ]
    codes = [
        [a.observation and a.observation.exit_code for _, a in r.actions()] for r in (before, after)
    ]
    assert codes[0] == codes[1]
    assert after.brief == before.brief


def test_bad_usage(out) -> None:
    assert "needs --to" in out("import", "conversation", EXAMPLE, "--out", "x")[2]
    code, _, err = out("import", "nonsense", EXAMPLE, "--out", "x")
    assert code == 2
    assert "is not one of 'auto', 'inspect'" in err
    assert out("import", "inspect", EXAMPLE / "process", "--out", "x")[0] == 2
    assert not Path("x").exists()


INSPECT = {
    "version": 2,
    "status": "success",
    "eval": {"task": "sums", "model": "gpt-x"},
    "plan": {},
    "samples": [
        {
            "id": n,
            "epoch": 1,
            "scores": {
                "match": {"value": "CI"[n % 2], "answer": "2"},
                "steps": {"value": {"made": n + 0.5}},
            },
            "messages": [
                {"role": "user", "content": "1 + 1?"},
                {"role": "assistant", "content": "2"},
            ],
        }
        for n in range(3)
    ],
}


def logs(folder: Path) -> Path:
    """Logs of five harnesses beside each other, as a user has them."""
    import polars as pl

    shutil.copytree(IMPORTS / "harbor", folder / "harbor")
    shutil.copytree(IMPORTS / "codex", folder / "codex")
    shutil.copy(IMPORTS / "otel" / "traces.json", folder)
    (folder / "log.json").write_text(json.dumps(INSPECT), encoding="utf-8")
    pl.DataFrame(
        [{**CHAT, "instance_id": f"t{n}", "resolved": n > 0} for n in range(2)]
    ).write_parquet(folder / "set.parquet")
    (folder / "notes.json").write_text('{"a": 1}', encoding="utf-8")
    return folder


def test_outcomes_of_five_harnesses_are_told_analysed_and_ranked(out, tmp_path: Path) -> None:
    code, text, err = out(
        "import",
        "auto",
        logs(tmp_path / "logs"),
        "--out",
        "runs",
        "--agent",
        "a",
        "--task-score",
        "reward",
    )
    assert code == 0
    assert len(text.splitlines()) == 8
    assert err.splitlines()[-1] == (
        "8 runs imported, 2 other files passed over (notes.json, config.json)"
    )
    assert (
        "sums_1_epoch_1: no Task score from 'reward' (outcomes: has_error, has_limit, match," in err
    )
    assert out("-q", "score", "runs", "--out", "cards.jsonl")[0] == 0
    cards = {
        card["run"]["id"]: card
        for card in map(json.loads, Path("cards.jsonl").read_text("utf-8").splitlines())
    }
    harbor = cards["kidney__a1b2c3"]
    assert (harbor["task"], harbor["task_from"], harbor["imported"]) == (1.0, "outcome", "atif")
    assert harbor["outcomes"]["dice"] == {
        "value": 0.81,
        "source": "atif result.json verifier_result.rewards",
    }
    assert cards["sums_1_epoch_1"]["outcomes"]["match"] == {
        "value": 0.0,
        "source": "inspect scores.match.value (I)",
    }
    for name, mean, runs in (
        ("match", 2 / 3, 3),
        ("steps.made", 1.5, 3),
        ("reward", 1, 1),
        ("correct", 0.75, 1),
        ("resolved", 0.5, 2),
    ):
        code, text, _ = out(
            "analyze", "cards.jsonl", "--outcome", name, "--table", "leaderboard", "--json"
        )
        row = json.loads(text)["tables"]["leaderboard"]["rows"][0]
        assert (code, row["value"], row["runs"]) == (0, pytest.approx(mean), runs)
    code, text, _ = out("leaderboard", "cards.jsonl", "--outcome", "resolved")
    assert code == 0
    assert "All tracks, by resolved (share of runs, 0–1)" in text
    code, _, err = out("analyze", "cards.jsonl", "--outcome", "nonsense")
    assert code == 2
    assert "no numeric outcome 'nonsense'" in err
    assert "these runs also have" in err
    assert "resolved" in err
    code, _, _ = out("export", "cards.jsonl", "--out", "runs.parquet")
    assert code == 0
    assert (
        json.loads(out("leaderboard", "runs.parquet", "--outcome", "match", "--json")[1])["rows"][
            0
        ]["runs"]
        == 3
    )


def test_a_run_of_another_harness_is_shown_with_its_outcomes(out) -> None:
    trial = IMPORTS / "harbor"
    assert (
        out(
            "import",
            "atif",
            trial,
            "--out",
            "runs",
            "--track",
            "segmentation",
            "--task-score",
            "dice",
        )[0]
        == 0
    )
    assert load_run("runs").track == "segmentation"
    text = " ".join(out("score", "runs")[1].split())
    assert "stopped by itself" in text
    assert "without submitting" not in text
    assert "Task 0.81 " in text
    assert "Outcomes of atif: reward 1, dice 0.81" in text
    code, _, err = out("import", "atif", trial, "--out", "b", "--task-score", "nope")
    assert code == 0
    assert "no Task score from 'nope' (outcomes: reward, dice)" in err
    assert "unknown track 'x'" in out("import", "atif", trial, "--out", "c", "--track", "x")[2]


def test_a_run_that_did_nothing_says_so_without_a_judge(out) -> None:
    idle = {
        "messages": [
            {"role": "user", "content": "Classify."},
            {"role": "assistant", "content": "Accuracy is 99 %."},
        ]
    }
    out("import", "openai", chats(idle), "--out", "runs")
    text = " ".join(out("codes", "runs")[1].split())
    assert "fact: No call of the run executed any code or command." in text
    assert "also not rounded: 99%." in text


@pytest.mark.parametrize("command", ["score", "codes", "segment"])
def test_commands_on_a_foreign_log_name_the_import_that_reads_it(out, command: str) -> None:
    log = next((IMPORTS / "codex").iterdir())
    code, _, err = out(command, log)
    assert code == 2
    assert f"codex: ambjudge import codex {log} --out DIR reads it" in err
    assert err.count("\n") == 1
    code, _, err = out(command, IMPORTS / "harbor")
    assert code == 2
    assert f"atif: ambjudge import auto {IMPORTS / 'harbor'} --out DIR reads it" in err


def test_what_a_file_is_not_is_said_once(out) -> None:
    log = next((IMPORTS / "codex").iterdir())
    code, _, err = out("import", "openai", log, "--out", "runs")
    assert code == 2
    first, hint, more, count = err.splitlines()
    assert "line 1: is not a chat conversation" in first
    assert "looks like codex: ambjudge import codex" in hint
    assert "the same error 11 more times" in more
    assert count == "0 runs imported, 12 not"
    Path("x.json").write_text('{"a": 1}', encoding="utf-8")
    code, _, err = out("import", "auto", "x.json", "--out", "runs")
    assert code == 2
    assert "has no file of a known format (known: inspect, atif" in err
