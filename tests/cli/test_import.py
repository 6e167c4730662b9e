"""ambjudge import as a user runs it: what lands where, what is said, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.trajectories.load import load_run

EXAMPLE = Path(__file__).parents[2] / "examples" / "codes"
CHAT = {
    "messages": [
        {"role": "user", "content": "Segment."},
        {
            "role": "assistant",
            "content": "Running.",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "ct.nii.gz"},
    ]
}  # fmt: skip


def chats(*values: object) -> Path:
    path = Path("chats.jsonl")
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def test_import_then_score(out) -> None:
    code, text, err = out(
        "import", "openai", chats(CHAT, {**CHAT, "id": "second"}), "--out", "runs", "--agent", "a", "--model", "m",
        "--task", "kidney-seg-task", "--tier", "lite",
    )  # fmt: skip
    assert code == 0
    assert text.splitlines() == ["runs/chats-1/process/conversation.json", "runs/second/process/conversation.json"]
    assert err == "2 runs imported\n"
    loaded = load_run("runs/second")
    assert (loaded.agent, loaded.model, loaded.task, loaded.tier) == ("a", "m", "kidney-seg-task", "lite")
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
    assert "runs/a: exists already (--force writes over it)" in err
    assert Path("runs/a/process/conversation.json").read_bytes() == kept
    assert out("import", "openai", source, "--out", "runs", "--task", "other", "--force")[0] == 0
    assert load_run("runs/a").task == "other"


def test_what_cannot_be_read_is_named_and_the_rest_goes_on(out) -> None:
    source = chats({**CHAT, "id": "../../up/a\x1b"}, {"messages": []}, {**CHAT, "id": "UP-A"}, CHAT["messages"][:1])
    code, text, err = out("import", "openai", source, "gone.json", "--out", "runs")
    assert code == 1
    assert text.splitlines() == ["runs/up-a/process/conversation.json", "runs/UP-A-2/process/conversation.json"]
    assert "chats.jsonl: line 2: is no chat conversation" in err
    assert "chats.jsonl: chats-4: holds no assistant message" in err
    assert "gone.json: no such file or folder" in err
    assert "2 runs imported, 3 not" in err
    assert "\x1b" not in err
    assert sorted(path.name for path in Path("runs").iterdir()) == ["UP-A-2", "up-a"]


def test_what_is_left_behind_is_said_in_one_line_a_run(out) -> None:
    source = chats({**CHAT, "tools": [{"type": "function"}]})
    _, _, err = out("import", "openai", source, "--out", "runs")
    assert err.splitlines() == ["chats: not carried over: 1 list of tool definitions", "1 run imported"]
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
    assert [(t.text, t.code, t.output) for t in after.turns] == [(t.text, t.code, t.output) for t in before.turns]
    codes = [[a.observation and a.observation.exit_code for _, a in r.actions()] for r in (before, after)]
    assert codes[0] == codes[1]
    assert after.brief == before.brief


def test_bad_usage(out) -> None:
    assert "needs --to" in out("import", "conversation", EXAMPLE, "--out", "x")[2]
    code, _, err = out("import", "nonsense", EXAMPLE, "--out", "x")
    assert code == 2
    assert "is not one of 'auto', 'inspect'" in err
    assert out("import", "inspect", EXAMPLE / "process", "--out", "x")[0] == 2
    assert not Path("x").exists()
