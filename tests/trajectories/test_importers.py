"""Importers: the shapes of each format, results of calls, hostile files, and exporters.

`test_importers_files` has complete runs.
"""

from __future__ import annotations

import functools
import json
import operator
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from ambjudge.errors import InputError
from ambjudge.trajectories.importers import IMPORTERS
from ambjudge.trajectories.importers.draft import Draft
from ambjudge.trajectories.importers.exporters import plain_result, to_anthropic, to_openai
from ambjudge.trajectories.importers.saving import FolderNames, safe_name, save_run
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.load import load_run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

CODE, OUT, SAID, BRIEF = (
    "python run.py --all\n",
    "dice 0.81\n12 cases\n",
    "Now all cases.",
    "Segment the kidneys.",
)
IMPORTS = Path(__file__).parents[1] / "data" / "imports"
OPENAI, ANTHROPIC, INSPECT = "openai.json", "anthropic.json", "inspect.json"
SWE_AGENT, OPENHANDS, CLAUDE_CODE = "swe-agent.traj", "openhands.json", "claude-code.jsonl"
SAMPLES = {
    Path(place).stem: place
    for place in (OPENAI, ANTHROPIC, INSPECT, SWE_AGENT, OPENHANDS, CLAUDE_CODE)
}
ALL = SAMPLES | {
    "atif": "harbor/kidney__a1b2c3/agent/trajectory.json",
    "codex": "codex/rollout-2026-01-05T10-00-00-0199.jsonl",
    "responses": "responses.json",
    "mini-swe-agent": "mini-swe-agent/kidney.traj.json",
    "otel": "otel/traces.json",
    "terminal-bench": "terminal-bench/kidney/kidney.1-of-1.run-a/results.json",
    "tau-bench": "tau2/2026-01-05_telecom_llm_agent_gpt-x.json",
    "langchain": "langchain/state.json",
    "gemini-cli": "gemini-cli/session-2026-01-05T10-00-b1d2c3e4.jsonl",
    "autogen": "autogen/result.json",
    "smolagents": "smolagents/result.json",
    "vera": "vera/run/track-rollouts/segmentation/rollout.json",
}


SHAPES = [
    *ALL.items(),
    ("autogen", "autogen/team-state.json"),
    ("autogen", "autogen/stream.jsonl"),
    ("gemini-cli", "gemini-cli/checkpoint-kidney.json"),
    ("gemini-cli", "gemini-cli/stream.jsonl"),
    ("langchain", "langchain/history.json"),
    ("langchain", "langchain/updates.jsonl"),
    ("tau-bench", "tau-bench/tool-calling-gpt-x-0.0_range_0-1_user-gpt-y-llm_0105100000.json"),
]
"""Formats with samples of all their shapes that have one file."""


def sample(place: str, **texts: str) -> Any:
    """A sample with other texts for `code`, `out` and `said`, also within JSON kept as text."""
    text = (IMPORTS / place).read_text("utf-8")
    value = (
        [json.loads(line) for line in text.splitlines()]
        if place.endswith(".jsonl")
        else json.loads(text)
    )
    olds = {"code": CODE, "out": OUT, "said": SAID}
    return _put_texts(value, {olds[name]: new for name, new in texts.items()}) if texts else value


def _put_texts(value: Any, texts: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _put_texts(item, texts) for key, item in value.items()}
    if isinstance(value, list):
        return [_put_texts(item, texts) for item in value]
    if isinstance(value, str) and value.startswith("{"):
        return json.dumps(_put_texts(json.loads(value), texts))
    return texts.get(value, value) if isinstance(value, str) else value


def lines_of(values: list[Any]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def written(folder: Path, name: str, value: Any) -> Path:
    path = folder / name
    path.write_text(
        lines_of(value) if name.endswith(".jsonl") else json.dumps(value), encoding="utf-8"
    )
    return path


def drafts(format: str, path: Path) -> list[Draft | InputError]:
    """What a format's reader makes of a file; an error that ends the file comes last."""
    items: list[Draft | InputError] = []
    try:
        items += IMPORTERS.get(format).read(path)
    except InputError as error:
        items.append(error)
    return items


def the_draft(format: str, path: Path) -> Draft:
    (draft,) = drafts(format, path)
    assert isinstance(draft, Draft)
    return draft


def imported(format: str, path: Path, out: Path) -> Run:
    return load_run(save_run(the_draft(format, path), out, path, force=True))


def test_a_replayed_demonstration_counts_nothing(tmp_path: Path) -> None:
    data = sample(SWE_AGENT)
    data["info"]["model_stats"] = dict.fromkeys(
        ("instance_cost", "tokens_sent", "tokens_received", "api_calls"), 0
    )
    run = imported("swe-agent", written(tmp_path, "run.traj", data), tmp_path / "run")
    assert (run.resources.input_tokens, run.resources.cost_usd) == (None, None)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80).filter(str.strip)


@pytest.mark.parametrize("format", SAMPLES)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(code=TEXT, out=TEXT, text=TEXT)
def test_texts_survive_as_they_are(
    format: str, tmp_path: Path, code: str, out: str, text: str
) -> None:
    value = sample(SAMPLES[format], code=code, out=out, said=text)
    turn = imported(format, written(tmp_path, SAMPLES[format], value), tmp_path / "run").turns[0]
    assert (turn.code, turn.output, turn.text) == (code, out, text)


# Results: what came back, and where it stands.


def answered(format: str, block: dict[str, Any], beside: Any = None) -> Any:
    """A sample whose first answer is another; `beside` is what Claude Code notes next to it."""
    data = sample(SAMPLES[format])
    if format == "claude-code":
        data[5]["toolUseResult"] = beside
    places: dict[str, tuple[Any, ...]] = {
        "claude-code": (5, "message", "content", 0),
        "anthropic": ("messages", 2, "content", 0),
        "openhands": (4,),
        "inspect": ("samples", 0, "messages", 3),
    }
    functools.reduce(operator.getitem, places[format], data).update(block)
    return data


def shell(code: Any, suffix: str = "") -> dict[str, Any]:
    return {"extras": {"metadata": {"exit_code": code, "prefix": "", "suffix": suffix}}}


RESULTS = [
    pytest.param(
        "claude-code",
        answered(
            "claude-code",
            {"content": "Exit code 2\nno", "is_error": True},
            "Error: Exit code 2\nno",
        ),
        2,
        "",
        "Exit code 2\nno",
        id="a failed command of Claude Code says its exit code",
    ),
    pytest.param(
        "claude-code",
        answered(
            "claude-code", {"content": "no such file", "is_error": True}, "Error: no such file"
        ),
        None,
        "",
        "no such file",
        id="an error without an exit code has none",
    ),
    pytest.param(
        "claude-code",
        answered("claude-code", {"content": "Exit code 2 is what I print"}),
        None,
        "Exit code 2 is what I print",
        "",
        id="words of a passing command are no exit code",
    ),
    pytest.param(
        "claude-code",
        answered("claude-code", {"content": "a\nwarn"}, {"stdout": "a", "stderr": "warn"}),
        None,
        "a",
        "warn",
        id="streams are told apart where they make up what the model saw",
    ),
    pytest.param(
        "anthropic",
        answered("anthropic", {"content": "boom", "is_error": True}),
        None,
        "",
        "boom",
        id="is_error is stderr",
    ),
    pytest.param(
        "openhands",
        answered("openhands", shell(-1, "[timed out]")),
        None,
        OUT + "[timed out]",
        "",
        id="-1 of OpenHands is unknown",
    ),
    pytest.param(
        "openhands", answered("openhands", shell(137)), 137, OUT, "", id="exit code of OpenHands"
    ),
    pytest.param(
        "openhands",
        answered("openhands", {"observation": "error", "extras": {}}),
        None,
        "",
        OUT,
        id="error of OpenHands",
    ),
    pytest.param(
        "openhands",
        answered("openhands", shell(10**400)),
        None,
        OUT,
        "",
        id="an endless exit code is none",
    ),
    pytest.param(
        "inspect",
        answered("inspect", {"content": "", "error": {"type": "timeout", "message": "timed out"}}),
        None,
        "",
        "timed out",
        id="a tool error of Inspect",
    ),
]


@pytest.mark.parametrize(("format", "data", "code", "stdout", "stderr"), RESULTS)
def test_results(
    format: str, data: Any, code: int | None, stdout: str, stderr: str, tmp_path: Path
) -> None:
    run = imported(format, written(tmp_path, SAMPLES[format], data), tmp_path / "run")
    observation = run.turns[0].actions[0].observation
    assert (observation.exit_code, observation.stdout, observation.stderr) == (code, stdout, stderr)


def test_results_that_are_the_harness_json_already_stay_as_they_are(tmp_path: Path) -> None:
    answer = '{"exit_code": 1, "stdout": "a", "stderr": "b"}'
    path = written(tmp_path, "run.json", sample(OPENAI, out=answer))
    assert the_draft("openai", path).messages[2]["content"] == answer
    assert imported("openai", path, tmp_path / "run").turns[0].failed


def test_code_that_the_server_ran_brings_its_return_code(tmp_path: Path) -> None:
    data = sample(ANTHROPIC)
    data["messages"][1]["content"] += [
        {
            "type": "server_tool_use",
            "id": "srv_1",
            "name": "bash_code_execution",
            "input": {"command": "ls"},
        },
        {
            "type": "bash_code_execution_tool_result",
            "tool_use_id": "srv_1",
            "content": {
                "type": "bash_code_execution_result",
                "stdout": "o",
                "stderr": "e",
                "return_code": 3,
            },
        },
    ]
    observation = (
        imported("anthropic", written(tmp_path, "run.json", data), tmp_path / "run")
        .turns[0]
        .actions[1]
        .observation
    )
    assert (observation.exit_code, observation.stdout, observation.stderr) == (3, "o", "e")


# Shapes within a format.


def test_parallel_calls_of_one_reply_are_one_turn(tmp_path: Path) -> None:
    """Claude Code writes call, answer, call, answer for a reply with two calls."""
    data = sample(CLAUDE_CODE)
    second = json.loads(json.dumps(data[4]))
    second["uuid"], second["message"]["content"][0]["id"] = "u11", "toolu_2"
    answer = json.loads(json.dumps(data[5]))
    answer["uuid"], answer["message"]["content"][0]["tool_use_id"] = "u15", "toolu_2"
    run = imported(
        "claude-code",
        written(tmp_path, "run.jsonl", [*data[:6], second, answer, *data[6:]]),
        tmp_path / "run",
    )
    assert [len(turn.actions) for turn in run.turns] == [2, 0]
    assert all(action.observation.text == OUT for action in run.turns[0].actions)


def test_sub_agents_are_told_apart_and_notices_left_out(tmp_path: Path) -> None:
    data = sample(CLAUDE_CODE)
    side = {**data[6], "uuid": "side", "isSidechain": True}
    silent = {**data[1], "uuid": "silent", "isSidechain": True}
    notice = {
        **data[6],
        "uuid": "n",
        "message": {
            "role": "assistant",
            "model": "<synthetic>",
            "content": [{"type": "text", "text": "API Error"}],
        },
    }
    path = written(tmp_path, "run.jsonl", [*data, side, silent, notice, data[1]])
    draft, part = drafts("claude-code", path)
    assert isinstance(draft, Draft)
    assert isinstance(part, Draft)
    assert (draft.turns, draft.part_of) == (2, None)
    assert dict(draft.lost) == {
        "messages of sub-agents that never replied": 1,
        "notices that no model wrote": 1,
    }
    assert (part.turns, part.part_of) == (1, "run")


def test_a_file_of_a_sub_agent_is_a_run(tmp_path: Path) -> None:
    data = [{**entry, "isSidechain": True} for entry in sample(CLAUDE_CODE)]
    assert the_draft("claude-code", written(tmp_path, "agent-1.jsonl", data)).turns == 2


def test_later_events_of_openhands(tmp_path: Path) -> None:
    def text(value: str) -> list[dict]:
        return [{"type": "text", "text": value}]

    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "terminal", "arguments": json.dumps({"command": CODE})},
    }
    events = [
        {
            "kind": "SystemPromptEvent",
            "source": "agent",
            "system_prompt": {"type": "text", "text": "Be careful."},
            "tools": [],
        },
        {
            "kind": "MessageEvent",
            "source": "user",
            "timestamp": "2025-11-01T10:00:00",
            "llm_message": {"role": "user", "content": text(BRIEF)},
        },
        {
            "kind": "ActionEvent",
            "source": "agent",
            "timestamp": "2025-11-01T10:00:04",
            "thought": text(SAID),
            "reasoning_content": "Hm.",
            "action": {"kind": "TerminalAction", "command": CODE},
            "tool_name": "terminal",
            "tool_call_id": "call_1",
            "tool_call": call,
            "llm_response_id": "r1",
        },
        {
            "kind": "ObservationEvent",
            "source": "environment",
            "timestamp": "2025-11-01T10:00:09",
            "tool_name": "terminal",
            "tool_call_id": "call_1",
            "action_id": "e",
            "observation": {
                "kind": "TerminalObservation",
                "content": text(OUT),
                "exit_code": 1,
                "is_error": False,
            },
        },
        {
            "kind": "MessageEvent",
            "source": "agent",
            "llm_message": {"role": "assistant", "content": text("Done.")},
        },
    ]
    run = imported("openhands", written(tmp_path, "run.json", events), tmp_path / "run")
    first = run.turns[0]
    assert (first.text, first.reasoning, first.code, first.output, first.time_s) == (
        SAID,
        "Hm.",
        CODE,
        OUT,
        4.0,
    )
    assert first.actions[0].observation.exit_code == 1
    assert run.turns[1].text == "Done."


@pytest.mark.parametrize(
    ("wrap", "name", "ids"),
    [
        pytest.param(
            lambda run: {"trajectory": run}, "run.json", ["run"], id="exported trajectory"
        ),
        pytest.param(
            lambda run: [
                {"instance_id": "a", "history": run},
                {"instance_id": "b", "history": run},
            ],
            "out.jsonl",
            ["a", "b"],
            id="evaluation output",
        ),
        pytest.param(
            lambda run: [{"instance_id": 7, "history": [[run[1], run[2]], [run[3], run[4]]]}] * 2,
            "out.jsonl",
            ["7", "7"],
            id="pairs of the oldest evaluation output",
        ),
        pytest.param(lambda run: run, "events.jsonl", ["events"], id="one event a line"),
    ],
)
def test_containers_of_openhands(
    wrap: Callable[[Any], Any], name: str, ids: list[str], tmp_path: Path
) -> None:
    items = drafts("openhands", written(tmp_path, name, wrap(sample(OPENHANDS))))
    assert [draft.name for draft in items] == ids
    assert all(draft.messages[-1]["role"] in ("assistant", "tool") for draft in items)


@pytest.mark.parametrize(
    ("value", "name", "ids"),
    [
        pytest.param(sample(OPENAI), "a.json", ["a"], id="object"),
        pytest.param(sample(OPENAI)["messages"], "a.json", ["a"], id="bare list"),
        pytest.param(
            [sample(OPENAI), sample(OPENAI)["messages"]],
            "a.json",
            ["a-1", "a-2"],
            id="list of both",
        ),
        pytest.param(
            [sample(OPENAI), sample(OPENAI)["messages"]],
            "a.jsonl",
            ["a-1", "a-2"],
            id="a line each",
        ),
        pytest.param(
            [{**sample(OPENAI), "id": "x/1"}] * 2, "a.jsonl", ["x/1", "x/1"], id="ids of the source"
        ),
        pytest.param(
            [{"custom_id": "q", "body": sample(OPENAI)}] * 2,
            "a.jsonl",
            ["q", "q"],
            id="batch requests",
        ),
        pytest.param(sample(OPENAI)["messages"], "a.jsonl", ["a"], id="one message a line"),
    ],
)
def test_containers_of_chat_messages(value: Any, name: str, ids: list[str], tmp_path: Path) -> None:
    items = drafts("openai", written(tmp_path, name, value))
    assert [(draft.name, draft.turns) for draft in items] == [(name, 2) for name in ids]


def test_attempts_of_swe_agent_are_runs_until_one_is_chosen(tmp_path: Path) -> None:
    attempts = {"attempts": [sample(SWE_AGENT), sample(SWE_AGENT)]}
    path = written(tmp_path, "i.traj", attempts)
    assert [draft.name for draft in drafts("swe-agent", path)] == ["i-attempt-1", "i-attempt-2"]
    assert (
        the_draft("swe-agent", written(tmp_path, "i.traj", {**attempts, **sample(SWE_AGENT)})).lost[
            "other attempts"
        ]
        == 1
    )


def test_older_steps_of_swe_agent_are_command_lines(tmp_path: Path) -> None:
    data = sample(SWE_AGENT)
    for item in data["history"]:
        item.pop("tool_calls", None)
    data["trajectory"].insert(
        1,
        {
            "action": "",
            "observation": "Say one command.",
            "response": "Hm.",
            "thought": "Hm.",
            "state": "{}",
        },
    )
    data["history"].insert(4, {"role": "assistant", "content": "Hm.", "action": ""})
    run = imported("swe-agent", written(tmp_path, "run.traj", data), tmp_path / "run")
    assert [turn.code for turn in run.turns] == [CODE, "", ""]
    assert run.turns[1].replies == ("Say one command.",)
    assert run.status.submitted


# .eval files


def eval_file(path: Path, packed: bytes | None = None) -> Path:
    log = sample(INSPECT)
    plain = json.dumps(log.pop("samples")[0]).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(log))
        archive.writestr("samples/1_epoch_2.json", plain if packed is None else packed)
        archive.writestr("../../escape.json", "{}")
    return path


def test_an_eval_file_reads_as_its_json(tmp_path: Path) -> None:
    packed = the_draft("inspect", eval_file(tmp_path / "a.eval"))
    plain = the_draft("inspect", written(tmp_path, "a.json", sample(INSPECT)))
    assert (packed.messages, packed.events(), packed.name) == (
        plain.messages,
        plain.events(),
        plain.name,
    )
    assert not (tmp_path.parent / "escape.json").exists()


def test_a_zip_bomb_is_refused_unopened(tmp_path: Path) -> None:
    (error,) = drafts("inspect", eval_file(tmp_path / "a.eval", packed=b" " * (64 << 20)))
    assert "claims 67,108,864 bytes" in str(error)


def test_a_cut_eval_file_is_an_error(tmp_path: Path) -> None:
    path = eval_file(tmp_path / "a.eval")
    path.write_bytes(path.read_bytes()[:-40])
    assert "is not a zip file" in str(drafts("inspect", path)[0])
    data = bytearray(eval_file(path).read_bytes())
    data[data.index(b"PK\x01\x02") + 6] = 114  # the version that it takes to read
    path.write_bytes(data)
    assert "is a broken zip file: zip file version 11.4" in str(drafts("inspect", path)[0])


def zstandard_eval(path: Path, wrong: bool = False) -> Path:
    """A .eval as newer versions of Inspect write it.

    Its compression method 93 is not known to this interpreter's zipfile.
    """
    zstandard = pytest.importorskip(
        "zstandard", reason="zstandard is not installed: Zstandard logs go untested"
    )
    log = sample(INSPECT)
    members = {
        "samples/1_epoch_2.json": json.dumps(log.pop("samples")[0]).encode(),
        "header.json": json.dumps(log).encode(),
    }
    body, directory = b"", b""
    for name, data in members.items():
        packed, key, offset = zstandard.ZstdCompressor().compress(data), name.encode(), len(body)
        fields = (93, 0, 33, zlib.crc32(data) ^ wrong, len(packed), len(data), len(key), 0)
        body += (
            struct.pack(
                "<4s2B4HL2L2H", b"PK\x03\x04", 20, 0, 0, *fields[:1], *fields[1:3], *fields[3:]
            )
            + key
            + packed
        )
        directory += (
            struct.pack(
                "<4s4B4HL2L5H2L",
                b"PK\x01\x02",
                20,
                3,
                20,
                0,
                0,
                *fields[:3],
                *fields[3:7],
                0,
                0,
                0,
                0,
                0,
                offset,
            )
            + key
        )
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 2, 2, len(directory), len(body), 0)
    path.write_bytes(body + directory + tail)
    return path


def test_logs_packed_with_zstandard(tmp_path: Path) -> None:
    assert the_draft("inspect", zstandard_eval(tmp_path / "a.eval")).turns == 2
    assert "checksum" in str(drafts("inspect", zstandard_eval(tmp_path / "b.eval", wrong=True))[0])


# Hostile input


WRONG: list[Any] = [
    pytest.param("", "is empty", id="empty"),
    pytest.param(
        '{"messages": 3, "eval": 1, "trajectory": "x", "history": {}}',
        "",
        id="keys of every format, wrong values",
    ),
    pytest.param('{"messages": [{"role": "user", "con', "is not JSON", id="cut"),
    pytest.param("[" * 5000, "", id="deep"),
    pytest.param("\x00\x01\x02", "is not JSON", id="binary"),
]


@pytest.mark.parametrize("format", ALL)
@pytest.mark.parametrize(("text", "says"), WRONG)
def test_wrong_files_are_errors_of_one_line(
    format: str, text: str, says: str, tmp_path: Path
) -> None:
    path = tmp_path / Path(ALL[format]).name
    path.write_text(text, encoding="utf-8")
    items = drafts(format, path)
    assert items
    assert all(isinstance(item, InputError) for item in items)
    assert says in str(items[0])
    assert all("\n" not in str(item) and str(path) in str(item) for item in items)


@pytest.mark.parametrize("other", ALL)
def test_files_of_other_formats_never_crash_a_reader(other: str, tmp_path: Path) -> None:
    path = written(tmp_path, Path(ALL[other]).name, sample(ALL[other]))
    for format in ALL:
        assert all(isinstance(item, Draft | InputError) for item in drafts(format, path)), format


@pytest.mark.parametrize(("format", "place"), SHAPES)
def test_values_of_any_type_never_crash_a_reader(format: str, place: str, tmp_path: Path) -> None:
    """One value after the other is put where it does not belong."""
    name = Path(place).name
    odd = [None, True, -1, 10**400, 1e308, "", "x", [], [None, 3, "x", []], {}, {"type": 3}]
    rng = random.Random(1)
    for _ in range(60):
        data = sample(place)
        _put(data, rng, odd)
        for item in drafts(format, written(tmp_path, name, data)):
            if isinstance(item, Draft):
                to_openai(item), to_anthropic(item)
                with suppress(InputError):  # a run without turns, or whose calls are all unknown
                    load_run(save_run(item, tmp_path / "run", tmp_path, force=True))


def _put(data: Any, rng: random.Random, odd: list[Any]) -> None:
    """Replace one value somewhere in the tree."""
    while True:
        key = rng.choice(list(data) if isinstance(data, dict) else range(len(data)))
        if not isinstance(data[key], dict | list) or not data[key] or rng.random() < 0.2:
            data[key] = rng.choice(odd)
            return
        data = data[key]


def test_broken_lines_are_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        lines_of([sample(OPENAI)]) + '{"messages": [\n' + lines_of([sample(OPENAI)]),
        encoding="utf-8",
    )
    first, second, third = drafts("openai", path)
    assert (first.name, third.name) == ("a-1", "a-3")
    assert "line 2" in str(second)


def test_formats_that_are_easily_mixed_up_name_each_other(tmp_path: Path) -> None:
    assert "`anthropic`" in str(drafts("openai", written(tmp_path, "a.json", sample(ANTHROPIC)))[0])
    assert "`openai`" in str(drafts("anthropic", written(tmp_path, "a.json", sample(OPENAI)))[0])


@pytest.mark.parametrize(
    ("run_id", "name"),
    [
        pytest.param("../../etc/passwd", "etc-passwd", id="path"),
        pytest.param("a\\b:c*?", "a-b-c", id="signs that other systems mind"),
        pytest.param("a\x00\x1b[31m\nb", "a-31m-b", id="control characters"),
        pytest.param("", "run", id="empty"),
        pytest.param("x" * 5000, "x" * 100, id="long"),
        pytest.param("日" * 100, "日" * 66, id="long in bytes"),
    ],
)
def test_ids_become_names_that_are_safe(run_id: str, name: str) -> None:
    assert safe_name(run_id) == name


@given(st.lists(st.text(max_size=20), max_size=30))
def test_names_are_safe_and_never_alike(ids: list[str]) -> None:
    names = FolderNames()
    assigned = [names.assign(run_id) for run_id in ids]
    assert len({name.casefold() for name in assigned}) == len(ids)
    assert all(name and "/" not in name and not name.startswith(".") for name in assigned)


# And back


def test_chat_messages_come_back_as_they_were(tmp_path: Path) -> None:
    data = sample(OPENAI)
    data["messages"][2]["reasoning_content"] = "Hm."
    data["messages"].insert(
        2,
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "See:"},
                {"type": "image_url", "image_url": {"url": "u"}},
            ],
        },
    )
    data["messages"].append({"role": "developer", "content": "Shorter."})
    path = save_run(
        the_draft("openai", written(tmp_path, "a.json", data)),
        tmp_path / "run",
        tmp_path,
        force=False,
    )
    assert to_openai(the_draft("conversation", path)) == data


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(code=TEXT, out=TEXT, text=TEXT)
def test_chat_round_trip_keeps_any_text(tmp_path: Path, code: str, out: str, text: str) -> None:
    data = sample(OPENAI, code=code, out=out, said=text)
    path = save_run(
        the_draft("openai", written(tmp_path, "a.json", data)),
        tmp_path / "run",
        tmp_path,
        force=True,
    )
    assert to_openai(the_draft("conversation", path)) == data


def test_messages_api_transcripts_come_back_as_they_were(tmp_path: Path) -> None:
    data = sample(ANTHROPIC)
    data["messages"][2]["content"][0]["is_error"] = True
    data["messages"][3]["content"][0]["text"] = "Done."
    path = save_run(
        the_draft("anthropic", written(tmp_path, "a.json", data)),
        tmp_path / "run",
        tmp_path,
        force=False,
    )
    assert to_anthropic(the_draft("conversation", path)) == data


def test_parallel_answers_become_one_user_message() -> None:
    draft = Draft("a", "x")
    calls = [
        {
            "id": i,
            "type": "function",
            "function": {"name": "f", "arguments": "{broken" if i == "b" else "{}"},
        }
        for i in "ab"
    ]
    draft.messages = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        *({"role": "tool", "tool_call_id": i, "content": i} for i in "ab"),
        {"role": "user", "content": "Go on."},
    ]
    reply, answer = to_anthropic(draft)["messages"]
    assert [block["input"] for block in reply["content"]] == [{}, {"arguments": "{broken"}]
    assert [block["type"] for block in answer["content"]] == ["tool_result", "tool_result", "text"]


@pytest.mark.parametrize(
    ("content", "back"),
    [
        pytest.param(
            '{"exit_code": null, "stdout": "a", "stderr": ""}', ("a", None), id="text alone"
        ),
        pytest.param(
            '{"exit_code": null, "stdout": "", "stderr": "a", "is_error": true}',
            ("a", True),
            id="error text",
        ),
        pytest.param(
            '{"exit_code": 0, "stdout": "a", "stderr": ""}', None, id="an exit code is kept"
        ),
        pytest.param(
            '{"exit_code": null, "stdout": "a", "stderr": "", "more": 1}',
            None,
            id="more keys are kept",
        ),
        pytest.param("{not json", None, id="other text"),
    ],
)
def test_answers_go_back_as_plain_text_where_nothing_is_lost(content: str, back: Any) -> None:
    assert plain_result(content) == (back or (content, None))


def test_a_block_of_our_own_format_whose_type_is_no_text(tmp_path: Path) -> None:
    """Found by `make fuzz`."""
    file = tmp_path / "conversation.json"
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": [{"type": ["text"], "text": "y"}]},
    ]
    file.write_text(json.dumps({"messages": messages}), "utf-8")
    assert len(drafts("conversation", file)) == 1


@pytest.mark.parametrize(
    "messages", [[], [{"role": "user", "content": "Begin."}]], ids=["no-messages", "no-reply"]
)
def test_an_inspect_sample_that_failed_before_a_reply_is_named_with_its_error(
    tmp_path: Path, messages: list[dict[str, str]]
) -> None:
    from ambjudge.trajectories.importers.inspect_log import read

    error = {"message": "SandboxError: no container", "traceback": "..."}
    log = {"eval": {"task": "t"}, "samples": [{"id": 1, "messages": messages, "error": error}]}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log), "utf-8")
    (problem,) = read(path)
    assert "failed before the agent replied: SandboxError: no container" in str(problem)
