"""Messages to turns: every shape of tool call and answer."""

from __future__ import annotations

import json

import pytest
from ambjudge.trajectories.reading.messages import (
    TurnBuilder,
    content_text,
    make_action,
    make_observation,
)


def build(*messages):
    builder = TurnBuilder([])
    for position, message in enumerate(messages):
        builder.add(position, message)
    return builder, builder.turns()


def call(code="print(1)", call_id="c1", name="execute_code", language="python"):
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps({"language": language, "code": code})},
    }


def said(*calls, content="text", **more):
    return {"role": "assistant", "content": content, "tool_calls": list(calls), **more}


def answer(call_id="c1", **body):
    return {
        "role": "tool",
        "tool_call_id": call_id,
        "content": json.dumps({"exit_code": 0, "stdout": "out", "stderr": "", **body}),
    }


def test_openai_shape():
    builder, (turn,) = build(
        {"role": "system", "content": "be good"},
        {"role": "user", "content": "task"},
        said(call()),
        answer(),
    )
    assert builder.brief == ["be good", "task"]
    (action,) = turn.actions
    assert turn.index == 1
    assert turn.text == "text"
    assert action.kind == "execute"
    assert action.language == "python"
    assert action.code == "print(1)"
    assert (action.observation.exit_code, action.observation.stdout, action.observation.kind) == (
        0,
        "out",
        "ok",
    )
    assert builder.warnings == []


def test_anthropic_blocks_with_results_in_user_messages():
    _, turns = build(
        {"role": "user", "content": [{"type": "text", "text": "task"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "go"},
                {
                    "type": "tool_use",
                    "id": "t1",
                    "name": "execute_code",
                    "input": {"language": "bash", "code": "ls"},
                },
                {
                    "type": "tool_use",
                    "id": "t2",
                    "name": "Write",
                    "input": {"file_path": "a.py", "content": "x"},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t2",
                    "content": [{"type": "text", "text": "written"}],
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": '{"exit_code": 2, "stdout": "", "stderr": "no"}',
                },
                {"type": "text", "text": "and hurry"},
            ],
        },
    )
    (turn,) = turns
    assert (turn.text, turn.reasoning, turn.replies) == ("go", "hm", ("and hurry",))
    assert [(a.kind, a.observation.kind, a.observation.text) for a in turn.actions] == [
        ("execute", "failed", "no"),
        ("write", "unknown", "written"),
    ]
    assert turn.actions[1].path == "a.py"


def test_several_calls_answered_out_of_order():
    _, (turn,) = build(
        said(call("a", "1"), call("b", "2"), call("c", "3")),
        answer("3", stdout="C"),
        answer("1", stdout="A"),
        answer("2", stdout="B"),
    )
    assert [(a.code, a.observation.stdout) for a in turn.actions] == [
        ("a", "A"),
        ("b", "B"),
        ("c", "C"),
    ]


def test_answers_without_ids_go_to_the_open_calls_in_order():
    messages = [
        said(call("a", None), call("b", None)),
        answer(None, stdout="A"),
        answer(None, stdout="B"),
    ]
    assert [a.observation.stdout for a in build(*messages)[1][0].actions] == ["A", "B"]


def test_ids_that_are_numbers_and_ids_used_again():
    _, turns = build(
        said(call("a", 7)), answer(7, stdout="A"), said(call("b", 7)), answer(7, stdout="B")
    )
    assert [t.actions[0].observation.stdout for t in turns] == ["A", "B"]


def test_late_answers_find_their_turn():
    _, turns = build(said(call("a", "1")), said(call("b", "2")), answer("1", stdout="A"))
    assert turns[0].actions[0].observation.stdout == "A"
    assert turns[1].actions[0].observation is None


def test_an_answer_to_nothing_is_kept_and_named():
    builder, (turn,) = build(said(call("a", "1")), answer("other"), answer("1"), answer("1"))
    assert len(turn.replies) == 2
    assert [w.split(";")[0] for w in builder.warnings] == [
        "messages[1] answers no open tool call",
        "messages[3] answers no open tool call",
    ]


def test_a_truncated_reply_and_its_continue_request():
    _, turns = build(
        said(content="I will", finish_reason="length"),
        {"role": "user", "content": "Continue."},
        said(call()),
        answer(),
    )
    assert (turns[0].finish_reason, turns[0].replies, turns[0].actions) == (
        "length",
        ("Continue.",),
        (),
    )
    assert len(turns) == 2


def test_legacy_function_call():
    legacy = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "execute_code", "arguments": '{"language":"bash","code":"ls"}'},
    }
    _, (turn,) = build(
        legacy,
        {
            "role": "function",
            "name": "execute_code",
            "content": '{"exit_code":0,"stdout":"x","stderr":""}',
        },
    )
    assert (turn.actions[0].code, turn.actions[0].observation.stdout) == ("ls", "x")


def test_reasoning_details():
    details = [
        {"type": "reasoning.text", "text": "one"},
        {"type": "reasoning.summary", "summary": "two"},
        {"type": "reasoning.encrypted", "data": "…"},
        "x",
        3,
    ]
    _, (turn,) = build(said(reasoning="one", reasoning_details=details))
    assert turn.reasoning == "one\ntwo"


def test_the_answer_to_submit_is_kept():
    builder, _ = build(
        said(call(call_id="s", name="submit_results")),
        {"role": "tool", "tool_call_id": "s", "content": '{"success": true, "n": 3}'},
    )
    assert builder.submit_result == {"success": True, "n": 3}


EXIT_CODES = {
    "zero": (0, 0, "ok"),
    "one": (1, 1, "failed"),
    "text": ("2", 2, "failed"),
    "whole float": (3.0, 3, "failed"),
    "null": (None, None, "unknown"),
    "missing": (..., None, "unknown"),
    "fraction": (1.5, None, "unknown"),
    "word": ("ok", None, "unknown"),
    "truth": (True, None, "unknown"),
    "list": ([1], None, "unknown"),
    "object": ({}, None, "unknown"),
    "huge": (10**30, None, "unknown"),
    "negative": (-9, -9, "failed"),
    "timeout": (-1, -1, "timeout"),
}


@pytest.mark.parametrize("name", EXIT_CODES)
def test_exit_codes(name):
    value, code, kind = EXIT_CODES[name]
    body = {"stdout": "a", "stderr": ""} | ({} if value is ... else {"exit_code": value})
    warnings: list[str] = []
    observation, _ = make_observation(json.dumps(body), warnings, "turn 1")
    assert (observation.exit_code, observation.kind) == (code, kind)
    assert bool(warnings) == (code is None and value not in (None, ...))


ANSWERS = {
    "timeout": ({"exit_code": -1, "stdout": "", "stderr": "TIMEOUT: 300 s"}, "timeout"),
    "timeout after a printed BLOCKED": (
        {"exit_code": -1, "stdout": "BLOCKED 3 of 4", "stderr": "TIMEOUT: 300 s"},
        "timeout",
    ),
    "blocked": ({"exit_code": -1, "stdout": "", "stderr": "BLOCKED: /data/private"}, "blocked"),
    "violation": (
        {"exit_code": -1, "stdout": "", "stderr": "1st SANDBOX VIOLATION: path"},
        "blocked",
    ),
    "violation without code": (
        {"exit_code": None, "stdout": "SANDBOX VIOLATION", "stderr": ""},
        "blocked",
    ),
    "violation as its own field": (
        {"exit_code": -1, "violation": "SANDBOX VIOLATION: x"},
        "blocked",
    ),
    "the word in a good run": ({"exit_code": 0, "stdout": "BLOCKED", "stderr": ""}, "ok"),
    "the word in a failed run": ({"exit_code": 1, "stdout": "BLOCKED", "stderr": ""}, "failed"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_kinds_of_answers(name):
    body, kind = ANSWERS[name]
    assert make_observation(json.dumps(body), [], "turn 1")[0].kind == kind


CONTENTS = {
    "null": (None, ""),
    "text": ("a", "a"),
    "blocks": ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
    "image": ([{"type": "image_url", "image_url": {}}], "[image]"),
    "strings": (["a", "b"], "a\nb"),
    "number": (5, "5"),
    "one block": ({"type": "text", "text": "a"}, "a"),
    "odd blocks": ([None, 3, {}, {"text": 3}], ""),
    "truth": (True, "true"),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_contents(name):
    content, expected = CONTENTS[name]
    assert content_text(content) == expected
    _, (turn,) = build({"role": "assistant", "content": content})
    assert turn.text == expected


def test_a_message_without_content():
    _, (turn,) = build({"role": "assistant", "tool_calls": [call()]})
    assert (turn.text, len(turn.actions)) == ("", 1)


ODD_CALLS = {
    "calls as object": {"a": 1},
    "calls as text": "run",
    "null inside": [None],
    "without function": [{"id": "x"}],
    "function as text": [{"function": "f"}],
    "arguments number": [{"function": {"name": "execute_code", "arguments": 5}}],
    "arguments list": [{"function": {"name": "execute_code", "arguments": "[1]"}}],
    "arguments broken": [{"function": {"name": "execute_code", "arguments": '{"code": "pri'}}],
    "no name": [{"function": {"arguments": "{}"}}],
    "name object": [{"function": {"name": {"a": 1}, "arguments": "{}"}}],
    "flat": [{"name": "bash", "arguments": '{"command": "ls"}'}],
    "deep": [{"function": {"name": "x", "arguments": "[" * 100_000}}],
    "code list": [{"function": {"name": "bash", "arguments": {"command": ["bash", "-lc", "ls"]}}}],
    "half surrogate": [{"function": {"name": "bash", "arguments": '{"command": "\\ud800"}'}}],
    "endless": [{"function": {"name": "x", "arguments": '{"n": ' + "9" * 5000 + ', "m": NaN}'}}],
    "invocations odd": [
        {"function": {"name": "batch", "arguments": {"invocations": [None, 3, {"input": 5}]}}}
    ],
}


@pytest.mark.parametrize("name", ODD_CALLS)
def test_odd_calls_never_break_a_turn(name):
    builder, (turn,) = build({"role": "assistant", "content": "a", "tool_calls": ODD_CALLS[name]})
    turn.model_dump_json()
    assert turn.actions or builder.warnings


def test_broken_arguments_stay_as_code():
    action = make_action("execute_code", '{"code": "pri', "c")
    assert (action.arguments, action.code) == (None, '{"code": "pri')


MESSAGES = [
    None,
    3,
    "text",
    [],
    {},
    {"role": None},
    {"role": 5},
    {"role": []},
    {"role": "nobody", "content": "x"},
]


@pytest.mark.parametrize("message", MESSAGES, ids=repr)
def test_what_is_no_message_is_a_warning(message):
    builder, turns = build(message)
    assert turns == []
    assert builder.warnings[0].startswith("messages[0]")
