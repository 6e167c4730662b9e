"""Runs that are exported come back equal, in everything that the format holds.

`benchmarks/round_trips.py` does the same with all runs that are there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ambjudge.cli import run as run_command
from ambjudge.trajectories.reading.layout import find_conversations
from ambjudge.trajectories.reading.load import load_conversation, load_run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from round_trips import come_back, differences

DATA = Path(__file__).parents[1] / "data"
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
WORD = st.sampled_from(["a", "b c", "{", '{"k": 1}', "Exit code 2", "[image]"])
KINDS = st.sampled_from(["ok", "failed", "timeout", "blocked", "cancelled"])


@st.composite
def answers(draw: st.DrawFn) -> dict[str, Any]:
    """The content of a result and the marks beside it."""
    if draw(st.booleans()):
        mark = draw(st.none() | st.booleans())
        return {"content": draw(TEXT | WORD), **({} if mark is None else {"is_error": mark})}
    body: dict[str, Any] = {
        "exit_code": draw(st.none() | st.integers(-1, 3)),
        "stdout": draw(TEXT | WORD),
        "stderr": draw(TEXT | WORD),
    }
    kind = draw(st.none() | KINDS)
    if kind is not None:
        body |= {"is_error": kind != "ok"}
        body |= {} if kind in ("ok", "failed") else {"kind": kind}
    return {"content": json.dumps(body)}


@st.composite
def messages(draw: st.DrawFn) -> list[dict[str, Any]]:
    """The messages of one turn: a reply with its results, and what a user or the system adds."""
    n_calls = draw(st.integers(0, 3))
    unique = draw(st.integers(0, 10**9))
    names = st.sampled_from(["execute_code", "bash", "submit_results", "view"])
    calls = [
        {
            "id": f"c{unique}-{position}",
            "type": "function",
            "function": {
                "name": draw(names),
                "arguments": json.dumps({draw(st.sampled_from(["code", "path", "n"])): draw(TEXT)}),
            },
        }
        for position in range(n_calls)
    ]
    reply: dict[str, Any] = {"role": "assistant", "content": draw(st.none() | TEXT | WORD)}
    if calls:
        reply["tool_calls"] = calls
    if draw(st.booleans()):
        reply["name"] = draw(st.sampled_from(["Planner", "Web Surfer"]))
    if draw(st.booleans()):
        reply["reasoning_content"] = draw(TEXT)
    answered = [call for call in draw(st.permutations(calls)) if draw(st.booleans())]
    results = [{"role": "tool", "tool_call_id": call["id"], **draw(answers())} for call in answered]
    roles = st.sampled_from(["user", "user", "system", "context"])
    others = [
        {"role": draw(roles), "from": "assistant", "content": draw(WORD)}
        for _ in range(draw(st.integers(0, 2)))
    ]
    return [reply, *results, *others]


@st.composite
def runs(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A conversation.json and the lines of its trace."""
    turns = draw(st.lists(messages(), min_size=1, max_size=4))
    turns[0][0]["content"] = "Begin."  # a run of empty turns is none
    names = ("agent", "model", "task", "track")
    header = {name: draw(st.none() | st.sampled_from(["x", "y-2"])) for name in names}
    header["track"] = draw(st.sampled_from([None, "vqa", "segmentation"]))
    header["tier"] = draw(st.sampled_from([None, "lite", "pro"]))
    header["repeat_idx"] = draw(st.none() | st.integers(0, 3))
    trace = [
        {
            "type": "api_call",
            "turn": number,
            "input_tokens": draw(st.integers(1, 99)),
            "output_tokens": draw(st.integers(1, 99)),
            "finish_reason": draw(st.sampled_from(["stop", "tool_calls", "length"])),
        }
        for number in range(1, len(turns) + 1)
        if draw(st.booleans())
    ]
    system = draw(st.none() | st.just("Segment the kidneys."))
    flat = [message for turn in turns for message in turn]
    conversation = {**header, "system_prompt": system, "messages": flat}
    return conversation, trace


@pytest.mark.parametrize("format", ["openai", "anthropic"])
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(parts=runs())
def test_any_run_comes_back_equal(
    format: str, parts: tuple[dict[str, Any], list[dict[str, Any]]], tmp_path: Path
) -> None:
    conversation, trace = parts
    process = tmp_path / "run" / "process"
    process.mkdir(parents=True, exist_ok=True)
    (process / "conversation.json").write_text(json.dumps(conversation), "utf-8")
    lines = "".join(json.dumps(event) + "\n" for event in trace)
    (process / "trace.jsonl").write_text(lines, "utf-8")
    run = load_run(tmp_path / "run")
    assert list(differences(run, come_back(run, format, tmp_path), format)) == []


@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_real_runs_come_back_equal(format: str, tmp_path: Path, capsys) -> None:
    """Recorded ones, and imported ones with speakers, marks and tokens; `auto` reads them back."""
    places = "autogen harbor-steps inspect.json langchain tau2 codex claude-code.jsonl".split()
    samples = [str(DATA / "imports" / place) for place in places]
    run_command(["import", "auto", *samples, "--out", str(tmp_path / "runs")])
    sources = [str(tmp_path / "runs"), str(DATA / "recorded" / "runs")]
    chats, back = str(tmp_path / "chats"), tmp_path / "back"
    assert run_command(["import", "conversation", *sources, "--to", format, "--out", chats]) == 0
    note = capsys.readouterr().err
    assert "times of replies" in note
    assert ("names of speakers" in note) == (format == "anthropic")
    assert run_command(["import", "auto", chats, "--out", str(back)]) == 0
    paths = [path for source in sources for path in find_conversations(Path(source))]
    assert len(paths) > len(samples)
    for path in paths:
        run = load_conversation(path)
        assert list(differences(run, load_run(back / run.id), format)) == []
