"""What a dry run plans for runs without tools, track, outputs or end is what is asked then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

QUESTION = {"role": "user", "content": "How many cases have a mask?"}
CALL = {
    "id": "c",
    "type": "function",
    "function": {"name": "bash", "arguments": '{"command": "ls masks | wc -l"}'},
}
TOOLS = [
    QUESTION,
    {"role": "assistant", "content": "I count.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "12"},
    {"role": "assistant", "content": "12 cases."},
]
RUNS: dict[str, dict[str, Any]] = {
    "no-tools": {"messages": [QUESTION, {"role": "assistant", "content": "12 cases."}]},
    "tools-without-calls": {
        "messages": [QUESTION, {"role": "assistant", "content": "12 cases."}],
        "tools": [{"type": "function", "function": {"name": "bash"}}],
    },
    "no-track": {"messages": TOOLS},
    "track": {"messages": TOOLS, "track": "segmentation", "tier": "lite"},
    "track-without-tools": {"messages": [QUESTION, TOOLS[-1]], "track": "vqa", "tier": "pro"},
    "never-answered": {"messages": TOOLS[:2], "track": "segmentation", "tier": "standard"},
}
"""Chats by name, none with outputs."""
WITHOUT_TOOLS = ("no-tools", "track-without-tools")


def test_as_many_requests_are_made_as_were_planned(out, tmp_path: Path, judge_server) -> None:
    chats = [{"id": name, **chat} for name, chat in RUNS.items()]
    (tmp_path / "chats.jsonl").write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    runs = tmp_path / "runs"
    assert out("import", "openai", tmp_path / "chats.jsonl", "--out", runs)[0] == 0
    options = ["--judge", "good", "--api-base", judge_server.url, "--store", "s.db"]
    options += ["--stages", "judge"]
    plans = [
        json.loads(out(command, runs, *options, "--dry-run", "--json")[1])
        for command in ("score", "rejudge")
    ]
    cards = [json.loads(line) for line in out("score", runs, *options, "--json")[1].splitlines()]
    assert judge_server.count == plans[0]["calls"] == plans[1]["calls"] > 0
    assert len(cards) == len(RUNS)
    for card in cards:
        criteria = [c for stage in card["stages"].values() for c in stage["criteria"]]
        assert "unscored" not in {criterion["status"] for criterion in criteria}
        if card["run"]["id"] in WITHOUT_TOOLS:
            methods = [card["stages"][stage]["method"] for stage in ("S2", "S3")]
            assert methods == ["not_applicable"] * 2
    # One question a run and stage: those of runs without tools are not among them.
    asked = {entry["criterion"]: entry["stale"] for entry in plans[0]["by_criterion"]}
    assert asked["S3"] <= len(RUNS) - len(WITHOUT_TOOLS)
    done = json.loads(out("score", runs, *options, "--dry-run", "--json")[1])
    assert done["calls"] == 0, "every planned key was stored"
