"""Untrusted files: each gives a run with warnings, or one line that names the file."""

from __future__ import annotations

import copy
import gzip
import json
import shutil
from functools import lru_cache
from pathlib import Path

import pytest
from ambjudge import score
from ambjudge.errors import InputError
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.json_bytes import (
    MAX_LINE,
    MAX_VALUES,
    bounded_lines,
    has_too_many_values,
)
from ambjudge.trajectories.reading.load import MAX_MESSAGES, iter_runs, load_run
from ambjudge.trajectories.reading.messages import MAX_TEXT
from conversations import round_trip
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

RECORDED = Path(__file__).parents[1] / "data" / "recorded" / "runs"
GOOD = json.dumps(
    {"messages": [{"role": "user", "content": "task ü"}, {"role": "assistant", "content": "done"}]},
    ensure_ascii=False,
)


def head(value: str) -> bytes:
    return (
        f'{{"task": "x", "n": {value}, "messages": [{{"role": "assistant", "content": "a", "n":'
        f" {value}}}]}}"
    ).encode()


LOADS = {
    "utf-8 with mark": GOOD.encode("utf-8-sig"),
    "utf-16 with mark": GOOD.encode("utf-16"),
    "utf-32 with mark": GOOD.encode("utf-32"),
    "number too large": head("1e999"),
    "integer of 5,000 digits": head("9" * 5000),
    "NaN": head("NaN"),
    "minus infinity": head("-Infinity"),
    "gzip": gzip.compress(GOOD.encode()),
    "half surrogate in text": (
        b'[{"role": "user", "content": "\\ud800"}, {"role": "assistant", "content": "a\\udfffb",'
        b' "name": "\\ud801"}]'
    ),
    "half surrogate in a key": (
        b'{"\\ud800": 1, "messages": [{"role": "assistant", "content": "a"}]}'
    ),
    "half surrogate in an identity": (
        b'{"task": "\\ud800", "agent": "\\udc00", "messages": [{"role": "assistant", "content":'
        b' "a"}]}'
    ),
    "escaped NUL": b'[{"role": "assistant", "content": "a\\u0000b"}]',
    "one message of many": b'[1, null, "x", [], {"role": "assistant", "content": "a"}]',
    "role missing in one": b'[{"content": "a"}, {"role": "assistant", "content": "a"}]',
    "content number": b'[{"role": "assistant", "content": 5}]',
    "content object": b'[{"role": "assistant", "content": {"a": {"b": 1}}}]',
    "tool_calls object": b'[{"role": "assistant", "tool_calls": {"a": 1}}]',
    "arguments number": (
        b'[{"role": "assistant", "tool_calls": [{"function": {"name": "bash", "arguments": 1}}]}]'
    ),
    "duplicate keys": b'{"messages": 3, "messages": [{"role": "assistant", "content": "a"}]}',
    "only a brief": b'[{"role": "user", "content": "a"}]',
    "identity of other types": (
        b'{"task": 5, "tier": [], "agent": {}, "model": true, "repeat": "x", "track": 3,'
        b' "system_prompt": [1], "messages": [{"role": "assistant", "content": "a"}]}'
    ),
    "repeat beyond any count": (
        b'{"repeat": 1e300, "messages": [{"role": "assistant", "content": "a"}]}'
    ),
    "5 MB in one line": json.dumps([{"role": "assistant", "content": "x" * 5_000_000}]).encode(),
    "arguments nested deep": (
        json.dumps(
            [
                {
                    "role": "assistant",
                    "tool_calls": [
                        {"function": {"name": "bash", "arguments": '{"a":' * 500 + "1" + "}" * 500}}
                    ],
                }
            ]
        ).encode()
    ),
    "answer nested deep": (
        json.dumps(
            [
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "1", "function": {"name": "submit", "arguments": "{}"}}],
                },
                {"role": "tool", "tool_call_id": "1", "content": '{"a":' * 150 + "1" + "}" * 150},
            ]
        ).encode()
    ),
}
REFUSED = {
    "empty": (b"", "is empty"),
    "white space": (b" \n\t ", "is empty"),
    "not JSON": (b"hello", "is not JSON"),
    "cut in its first message": (GOOD.encode()[:20], "is not JSON"),
    "gzip cut": (gzip.compress(GOOD.encode())[:-12], "is not a complete gzip file"),
    "gzip in name only": (b"\x1f\x8bhello", "is not a complete gzip file"),
    "gzip that unpacks beyond the limit": (
        gzip.compress(b" " * 2**20) * 40,
        "unpacks to more than",
    ),
    "more gzip parts than any packer makes": (
        gzip.compress(b"") * 10_001,
        "more than 10,000 gzip parts",
    ),
    "more values than memory": (
        b'{"messages":[' + b"{}," * MAX_VALUES + b"{}]}",
        f"holds more than {MAX_VALUES:,} values",
    ),
    "two values": (b"[] []", "is not JSON"),
    "utf-16 without mark": (GOOD.encode("utf-16-le"), "UTF-16 without a byte-order mark"),
    "latin-1": (GOOD.encode("latin-1"), "is not UTF-8 text at byte"),
    "utf-16, cut": (GOOD.encode("utf-16")[:-1], "is not UTF-16 text"),
    "NUL bytes": (b"\0" * 100, "NUL"),
    "raw surrogate": (b'["\xed\xa0\x80"]', "is not UTF-8"),
    "nested lists": (b"[" * 100_000, "nested more than"),
    "nested objects": (b'{"a":' * 100_000, "nested more than"),
    "nested and closed": (b"[" * 5000 + b"]" * 5000, "nested more than"),
    "null": (b"null", "is null"),
    "number": (b"5", "is int"),
    "text": (b'"x"', "is str"),
    "list of numbers": (b"[1, 2]", "is a list of int"),
    "empty list": (b"[]", "holds no messages"),
    "empty object": (b"{}", "keys (none)"),
    "other object": (b'{"a": 1}', "keys a"),
    "messages null": (b'{"messages": null}', "`messages` that is NoneType"),
    "messages object": (b'{"messages": {"0": {}}}', "`messages` that is dict"),
    "messages empty": (b'{"messages": []}', "holds no messages"),
    "more messages than any run": (
        b"[" + b'{"role":"user"},' * MAX_MESSAGES + b'{"role":"assistant"}]',
        "more than the 50,000",
    ),
    "no roles": (b'{"messages": [{"content": "a"}]}', "without any `role`"),
    "types of another tool": (
        b'{"messages": [{"type": "TextMessage", "content": "a"}, {"type": 3}]}',
        "without any `role`",
    ),
}


def test_values_are_counted_before_they_take_memory() -> None:
    assert not has_too_many_values(json.dumps(['[{,\\"' * MAX_VALUES])), (
        "within a text they are no values"
    )
    assert has_too_many_values('{"a":1},' * (MAX_VALUES // 2 + 1))
    assert has_too_many_values('"' + '\\"' * MAX_VALUES + '",' * MAX_VALUES) is False, (
        "a text without end"
    )


def test_answers_find_their_calls_in_time_linear_in_both(tmp_path, no_runaway) -> None:
    """Results without a call, and calls answered in any order.

    A result whose id occurs twice belongs to the last open call.
    """

    def told(call_ids: list[str | None], answers: list[str | None]) -> list[str | None]:
        calls = [{"id": i, "function": {"name": "bash", "arguments": "{}"}} for i in call_ids]
        messages = [{"role": "assistant", "content": "", "tool_calls": [c]} for c in calls[:-2]]
        messages.append({"role": "assistant", "content": "", "tool_calls": calls[-2:]})
        messages += [
            {"role": "tool", "tool_call_id": a, "content": str(n)} for n, a in enumerate(answers)
        ]
        (tmp_path / "conversation.json").write_text(json.dumps(messages), "utf-8")
        observations = [a.observation for turn in load_run(tmp_path).turns for a in turn.actions]
        return [o and o.stdout for o in observations]

    assert told(["a", "a", "a"], ["a", "a", "b", "a", "a"]) == ["3", "0", "1"]
    assert told([None, "b", None, None], [None, "b", "x", None]) == [None, "1", "0", "2"]
    assert told(["a", "b", "c"], [None, "c", None, "b"]) == [None, "0", "1"]
    with no_runaway():
        assert told(["a"] * 8_000, ["z"] * 8_000).count(None) == 8_000
        assert told([str(i) for i in range(8_000)], [str(i) for i in range(8_000)])[-1] == "7999"


def test_of_a_text_without_measure_both_ends_are_kept(tmp_path) -> None:
    """Of an output in any form, and of a program."""
    long = "a" + "x" * MAX_TEXT + "b"
    for code, content in (
        ("", long),
        ("", json.dumps({"exit_code": 0, "stdout": long})),
        (long, "ab"),
    ):
        call = {"id": "1", "function": {"name": "bash", "arguments": json.dumps({"command": code})}}
        messages = [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": content},
        ]
        (tmp_path / "conversation.json").write_text(json.dumps(messages), "utf-8")
        run = load_run(tmp_path)
        action = run.turns[0].actions[0]
        assert action.observation is not None
        text = action.code or action.observation.stdout
        assert (text[0], text[-1], len(text) - MAX_TEXT < 100) == ("a", "b", True)
        assert any("its middle is left out" in warning for warning in run.warnings)


def test_a_trace_of_more_values_than_memory_is_left_out(tmp_path) -> None:
    (tmp_path / "conversation.json").write_text(GOOD, "utf-8")
    (tmp_path / "trace.jsonl.gz").write_bytes(gzip.compress(b'{"type":"x"}\n' * (MAX_VALUES + 1)))
    assert any(
        "trace.jsonl.gz: " in warning and "more than" in warning
        for warning in load_run(tmp_path).warnings
    )


def test_a_line_without_end_is_cut_and_the_next_ones_are_read(tmp_path) -> None:
    file = tmp_path / "cards.jsonl"
    file.write_bytes(b"{}\n" + b"x" * (2 * MAX_LINE + 5) + b"\n{}\n")
    with file.open("rb") as stream:
        lines = list(bounded_lines(stream))
    assert [(offset, len(line)) for offset, line in lines] == [
        (0, 3),
        (3, MAX_LINE + 1),
        (2 * MAX_LINE + 9, 3),
    ]


@pytest.mark.parametrize("name", LOADS)
def test_odd_files_that_load(name, tmp_path):
    file = tmp_path / "conversation.json"
    file.write_bytes(LOADS[name])
    run = load_run(file)
    assert round_trip(run) == run


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_are_refused(name, tmp_path):
    data, words = REFUSED[name]
    file = tmp_path / "conversation.json"
    file.write_bytes(data)
    with pytest.raises(InputError) as caught:
        load_run(file)
    message = str(caught.value)
    assert message.startswith(f"{file}: ")
    assert words in message
    assert "\n" not in message
    assert len(message) < len(str(file)) + 250


@pytest.mark.parametrize("value", [10**400, 1e308, -1, "1e308", True, [], "x"])
def test_side_files_say_only_what_can_be(tmp_path, value):
    (tmp_path / "conversation.json").write_text(GOOD, "utf-8")
    trace = [
        {"type": "api_call", "turn": 1, "input_tokens": value, "ts": value},
        {"type": "code_exec", "turn": 1, "exec_time_s": value},
        {"type": "run_end", "wall_time_s": value},
    ]
    (tmp_path / "trace.jsonl").write_text("\n".join(map(json.dumps, trace)), "utf-8")
    (tmp_path / "agent_summary.json").write_text(
        json.dumps({"elapsed_s": value, "prompt_tokens": value, "cost_usd": value}), "utf-8"
    )
    (tmp_path / "detail_report.json").write_text(
        json.dumps({"runtime": {"wall_time_s": value, "input_tokens": value, "cost_usd": value}}),
        "utf-8",
    )
    run = load_run(tmp_path)
    used = run.resources
    assert (used.wall_time_s, used.input_tokens, used.cost_usd) == (None, None, None)
    assert score(run).resources.cost_usd is None


NAMES = ["kidney-lite-04", "vqa-lite-01", "ldct-lite-02"]


@lru_cache
def original(name: str) -> str:
    return (RECORDED / name / "process/conversation.json").read_text(encoding="utf-8")


def places(value, path=()):
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(len(value)):
            yield from places(value[index], (*path, index))


@lru_cache
def all_places(name: str):
    return list(places(json.loads(original(name))))[1:]


ANYTHING = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        10**40,
        1e308,
        "",
        "x",
        "\ud800",
        "S1",
        [],
        {},
        [None],
        [[]],
        {"a": {}},
        {"role": 1},
        "[" * 200,
        '{"exit_code": []}',
        {"text": 3},
        [{"type": "tool_use"}, {"type": "tool_result", "content": [1]}, {"type": "text"}],
    ]
)


def loads_or_says_why(folder: Path, data: bytes) -> None:
    file = folder / "conversation.json"
    file.write_bytes(data)
    try:
        run = load_run(file)
    except InputError as error:
        message = str(error)
    else:
        message = f"{file}: {len(run.model_dump_json())}"
    assert message.startswith(str(file))
    assert "\n" not in message


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
@given(st.data())
def test_damaged_values(tmp_path, data):
    name = data.draw(st.sampled_from(NAMES))
    value = copy.deepcopy(json.loads(original(name)))
    spots = all_places(name)
    for _ in range(data.draw(st.integers(1, 6))):
        path = spots[data.draw(st.integers(0, len(spots) - 1))]
        target = value
        try:
            for step in path[:-1]:
                target = target[step]
            if data.draw(st.booleans()):
                del target[path[-1]]
            else:
                # else two damages share one list
                target[path[-1]] = copy.deepcopy(data.draw(ANYTHING))
        except (KeyError, IndexError, TypeError):
            continue  # An earlier damage took this place away.
    loads_or_says_why(tmp_path, json.dumps(value).encode())


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.sampled_from(NAMES),
    st.lists(st.tuples(st.floats(0, 0.9999), st.integers(0, 255)), min_size=1, max_size=4),
    st.floats(0.5, 1),
)
def test_damaged_bytes(tmp_path, name, flips, share):
    data = bytearray(original(name).encode())
    for offset, byte in flips:
        data[int(offset * len(data))] = byte
    loads_or_says_why(tmp_path, bytes(data[: int(share * len(data))] if share < 0.75 else data))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "role",
                        "content",
                        "messages",
                        "tool_calls",
                        "function",
                        "arguments",
                        "type",
                        "text",
                        "id",
                        "task",
                        "turn",
                        "result",
                        "score",
                        "step_scores",
                        "metrics",
                        "name",
                        "args",
                        "api_s",
                        "pre",
                        "eval_report",
                        "prompt_tokens",
                        "response",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=20,
    )
)
def test_any_side_files(tmp_path, value):
    text = json.dumps(value)
    (tmp_path / "outputs").mkdir(exist_ok=True)
    (tmp_path / "detail_report.json").unlink(missing_ok=True)
    for name in (
        "agent_summary.json",
        "report.json",
        "trace.jsonl",
        "tool_log.jsonl",
        "api_responses.jsonl",
        "outputs/run_summary.json",
        "tier_prompt.txt",
    ):
        (tmp_path / name).write_text(text)
    loads_or_says_why(tmp_path, GOOD.encode())
    for name in ("detail_report.json", "tool_calls.jsonl"):
        (tmp_path / name).write_text(text)
    loads_or_says_why(tmp_path, GOOD.encode())
    loads_or_says_why(tmp_path, text.encode())


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["api_call", "submit", None])},
            optional={
                "turn": st.integers(-1, 3) | st.none(),
                "tool_calls": st.lists(
                    st.sampled_from(["execute_code", "x", None, 3, []]), max_size=3
                ),
                "tool": st.sampled_from(["execute_code", 3, None]),
                "name": st.sampled_from(["execute_code", "submit_results", []]),
                "arguments": st.sampled_from([{"code": "ls"}, {"code": 3}, [], None]),
                "args": st.sampled_from([{}, 3]),
                "code": st.sampled_from(["ls", 3]),
                "content_preview": st.sampled_from(["a", 3, None]),
                "result": st.sampled_from([{"exit_code": []}, {"stdout": {}}, 3, None]),
                "api_s": st.just(1),
            },
        ),
        max_size=6,
    )
)
def test_any_trace_in_place_of_a_conversation(tmp_path, entries):
    process = tmp_path / "dead/process"
    process.mkdir(parents=True, exist_ok=True)
    for name in ("trace.jsonl", "tool_calls.jsonl"):
        (process / name).write_text("\n".join(map(json.dumps, entries)))
    replies = sum(e["type"] == "api_call" for e in entries)
    items = list(iter_runs(tmp_path / "dead"))
    assert [type(item) for item in items] == [Run if replies else InputError]
    assert not replies or len(items[0].turns) == replies


def test_a_run_in_gzip_is_the_run_itself(tmp_path: Path) -> None:
    """A folder whose files were packed one by one is found and read as before."""
    source = RECORDED / "kidney-lite-02" / "process"
    packed = tmp_path / "kidney-lite-02" / "process"
    packed.mkdir(parents=True)
    shutil.copytree(source.parent / "outputs", packed.parent / "outputs")
    for file in source.iterdir():
        (packed / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    imported, recorded = (
        load_run(tmp_path / "kidney-lite-02"),
        load_run(RECORDED / "kidney-lite-02"),
    )
    assert (imported.id, imported.turns, imported.warnings) == (
        recorded.id,
        recorded.turns,
        recorded.warnings,
    )
