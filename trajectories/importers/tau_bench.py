"""Results of tau-bench (a list of objects with `reward` and `traj`) and of tau2 (`simulations`).

The unit of statistics is the task in its domain; a trial is its repeat. tau2 also writes one file a
simulation, beside a results.json that has the agent and the policy. The calls of the simulated user
are not the agent's, nor is the greeting with which every conversation of tau2 begins. Source:
tau-bench `tau_bench/types.py`, `run.py`; tau2-bench `src/tau2/data_model/simulation.py`,
`message.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.answer_marks import stated_kind
from ..reading.json_bytes import count, number, read_json, text_or_none
from ..reading.layout import file_in
from ..reading.messages import content_text
from . import Importer
from .draft import Call, Draft
from .fields import as_id, as_object, as_objects
from .files import Document, documents, draft_or_error, source_name
from .openai_chat import chat_calls
from .recognise import has_keys
from .usage import usage_tokens

_EXPECTED = "expected results of tau-bench (`traj`, `reward`) or tau2 (`simulations`)"
_RESULT_NAME = re.compile(
    r"(?P<agent>tool-calling|act|react|few-shot)-(?P<model>.+)-\d+\.\d+_range_"
)
"""How tau-bench names its files: strategy, model, temperature, range of tasks, user, time."""
_POLICY_TITLE = re.compile(r"# (\w+) agent policy", re.IGNORECASE)
"""The first line of a domain's policy, the only place where tau-bench names the domain."""
_FAILURE = "Error: "
"""How the environment of tau-bench answers a call that raised."""
_STOP = "###"
"""What the simulated user ends a conversation with: ###STOP###, ###TRANSFER###."""
_RESULTS = "results.json"
_CHECKS = (
    "db_check",
    "env_assertions",
    "action_checks",
    "nl_assertions",
    "communicate_checks",
)
"""The checks of which tau2 makes the reward."""


def read(path: Path) -> Iterator[Draft | InputError]:
    """Every trial of the file."""
    for document in documents(path):
        if isinstance(document, InputError):
            yield document
            continue
        yield from _trials(document, path)


def _trials(document: Document, path: Path) -> Iterator[Draft | InputError]:
    value, line = document
    if isinstance(value, dict) and not {"simulations", "simulation_index"}.isdisjoint(value):
        if not as_objects(value.get("simulations")) and not value.get("simulation_index"):
            raise InputError("holds no simulations", _EXPECTED, path)
        # With an index, the simulations are files of their own beside this one.
        for position, simulation in enumerate(as_objects(value.get("simulations"))):
            yield draft_or_error(_simulation, simulation, value, path, f"simulations[{position}]: ")
        return
    if isinstance(value, dict) and "termination_reason" in value:
        yield draft_or_error(_simulation, value, _results_beside(path), path, "")
        return
    trials = value if isinstance(value, list) else [value]
    for position, trial in enumerate(trials):
        location = f"line {line}: " if line is not None else f"[{position}]: "
        yield draft_or_error(_trial, trial, path, location)


def _trial(value: Any, path: Path, location: str) -> Draft:
    """One trial of tau-bench."""
    trial = as_object(value)
    messages, info = trial.get("traj"), as_object(trial.get("info"))
    if not isinstance(messages, list):
        raise InputError(f"{location}is not a trial of tau-bench", _EXPECTED, path)
    if not messages:
        reason = " ".join(content_text(info.get("error")).split())[:200] or "no reason given"
        raise InputError(
            f"{location}failed before the agent replied: {reason}", "run the trial again", path
        )
    task_id, repeat = as_id(trial.get("task_id")), count(trial.get("trial"))
    draft = Draft(f"{source_name(path)}-task-{task_id}-trial-{repeat}", "tau-bench", repeat=repeat)
    name = _RESULT_NAME.match(path.name)
    if name:
        draft.agent, draft.model = name["agent"], name["model"]
    policy = content_text(as_object(messages[0]).get("content"))
    title = _POLICY_TITLE.match(policy.lstrip())
    draft.task = "/".join(part for part in (title and title[1].lower(), task_id) if part) or None
    _add_messages(draft, messages, path, location)
    draft.add_outcomes(trial.get("reward"), "reward", "reward")
    draft.add_outcomes({key: item for key, item in info.items() if key != "task"}, "info")
    draft.has_tools = True
    return draft


def _simulation(simulation: dict[str, Any], results: dict[str, Any], path: Path, at: str) -> Draft:
    """One simulation of tau2."""
    messages = simulation.get("messages")
    if not messages and simulation.get("ticks"):
        raise InputError(
            f"{at}is a spoken simulation, whose messages are pieces of sound",
            "only written simulations (`messages`) are read",
            path,
        )
    if not isinstance(messages, list) or not messages:
        reason = str(simulation.get("termination_reason"))[:80]
        raise InputError(f"{at}holds no messages (it ended by {reason})", _EXPECTED, path)
    info = as_object(results.get("info"))
    agent, environment = as_object(info.get("agent_info")), as_object(info.get("environment_info"))
    task_id, domain = as_id(simulation.get("task_id")), text_or_none(environment.get("domain_name"))
    run_id = as_id(simulation.get("id"))
    draft = Draft(
        run_id or source_name(path),
        "tau-bench",
        source_id=run_id,
        agent=text_or_none(agent.get("implementation")),
        model=text_or_none(agent.get("llm")),
        task="/".join(part for part in (domain, task_id) if part) or None,
        repeat=count(simulation.get("trial")),
        has_tools=True,
    )
    draft.system(text_or_none(simulation.get("policy")) or environment.get("policy"))
    draft.elapsed(simulation.get("start_time"))
    _add_messages(draft, messages, path, at)
    _add_results(draft, simulation)
    return draft


def _add_results(draft: Draft, simulation: dict[str, Any]) -> None:
    reward_info = as_object(simulation.get("reward_info"))
    draft.add_outcomes(reward_info.get("reward"), "reward_info", "reward")
    draft.add_outcomes(reward_info.get("reward_breakdown"), "reward_info", "reward_breakdown")
    for key in _CHECKS:
        if reward_info.get(key):
            draft.lost[f"reward_info.{key}"] += 1
    for key in ("termination_reason", "user_cost", "hallucination_retries_used"):
        draft.add_outcomes(simulation.get(key), "simulation", key)
    for key in ("review", "user_only_review", "hallucination_check", "auth_classification"):
        if simulation.get(key):
            draft.lost[key.replace("_", " ")] += 1
    draft.add_totals(cost_usd=simulation.get("agent_cost"))
    draft.wall_time_s = number(simulation.get("duration"))


def _results_beside(path: Path) -> dict[str, Any]:
    """The results to which a file of one simulation belongs; empty without them."""
    results = file_in(path.parent.parent, _RESULTS)
    return {} if results is None else as_object(read_json(results))


def _add_messages(draft: Draft, messages: list[Any], path: Path, location: str) -> None:
    has_user_spoken = False
    last = as_object(messages[-1])
    if last.get("role") == "user" and _STOP in content_text(last.get("content")):
        draft.origin["user_stop"] = last["content"]  # nobody is asked to answer it
        messages = messages[:-1]
    for position, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise InputError(f"{location}message {position} has no role", _EXPECTED, path)
        if message["role"] == "user":
            has_user_spoken = True
        if message["role"] == "assistant" and not has_user_spoken and not message.get("usage"):
            draft.context("assistant", message.get("content"))
        else:
            _add(draft, message, path, f"{location}message {position}")


def _add(draft: Draft, message: dict[str, Any], path: Path, location: str) -> None:
    role, content = message["role"], message.get("content")
    ts = draft.elapsed(message.get("timestamp"))
    if role == "system":
        draft.system(content)
    elif role == "user":
        draft.user(content)
        for call in as_objects(message.get("tool_calls")):
            _keep_user_call(draft, {"call": call})
    elif role == "assistant":
        _add_reply(draft, message, ts)
    elif role == "tool" and isinstance(message.get("tool_messages"), list):
        for answer in as_objects(message["tool_messages"]):
            _add_result(draft, answer, draft.elapsed(answer.get("timestamp")))
    elif role == "tool":
        _add_result(draft, message, ts)
    else:
        raise InputError(f"{location} has the unknown role {role[:40]!r}", _EXPECTED, path)


def _keep_user_call(draft: Draft, record: dict[str, Any]) -> None:
    """Keep a call of the simulated user or its result, which the agent does not see."""
    draft.origin.setdefault("user_calls", []).append(record)
    draft.odd["calls of the simulated user"] += "call" in record


def _add_reply(draft: Draft, message: dict[str, Any], ts: float | None) -> None:
    stated_calls = as_objects(message.get("tool_calls"))
    calls: list[Call] = list(chat_calls(message))
    for _ in range(len(stated_calls) - len(calls)):
        draft.count_unread_call()
    raw_data = as_object(message.get("raw_data"))
    raw_message = as_object(raw_data.get("message")) or raw_data
    draft.assistant(
        message.get("content"),
        calls,
        reasoning=text_or_none(message.get("reasoning_content"))
        or text_or_none(raw_message.get("reasoning_content")),
        ts=ts,
        tokens=usage_tokens(message.get("usage")),
        cost_usd=message.get("cost"),
        finish=raw_data.get("finish_reason"),
    )


def _add_result(draft: Draft, message: dict[str, Any], ts: float | None) -> None:
    """The result of a call: tau2 marks errors, the environment of tau-bench begins them so."""
    if message.get("requestor") == "user":
        _keep_user_call(draft, {"result": message})
        return
    call_id = as_id(message.get("tool_call_id")) or as_id(message.get("id"))
    text = message.get("content")
    kind = stated_kind(message)
    if kind is None and isinstance(message.get("error"), bool):
        kind = "ok"
    if kind is None and isinstance(text, str) and text.startswith(_FAILURE):
        kind = "failed"
    draft.result(call_id, text, kind=kind, ts=ts)


IMPORTER = Importer(
    read,
    (".json", ".jsonl"),
    has_keys(
        "traj reward task_id",
        "simulations.messages.role simulations.termination_reason",
        "info.agent_info info.environment_info info.user_info",
        "termination_reason task_id messages.role",
    ),
)
