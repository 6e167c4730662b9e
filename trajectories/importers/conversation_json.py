"""conversation.json itself, in any of its shapes, to be exported to another format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..models import Action, Run, Turn
from ..reading.json_bytes import read_json, text_or_none
from ..reading.layout import TRACE_NAMES
from ..reading.load import load_conversation
from ..reading.messages import TurnBuilder
from ..token_counts import CallTokens
from . import Importer
from .anthropic_messages import add_assistant, add_user
from .draft import Draft, mark_fields
from .fields import as_object, as_objects

_ROLES = {"ai": "assistant", "model": "assistant", "human": "user", "function": "tool"}
"""Other words for roles that the reader of conversation.json takes."""


def read(path: Path) -> Iterator[Draft | InputError]:
    """The run of the file, with the identity, results and tokens that its side files add.

    Messages of Anthropic's content blocks become chat messages.
    """
    run = load_conversation(path)
    if path.name in TRACE_NAMES:
        raise InputError("is the trace of a run without a conversation", "there is no text", path)
    value = read_json(path)
    header = as_object(value)
    draft = Draft(
        run.id,
        "conversation",
        part_of=run.part_of,
        agent=run.agent,
        model=run.model,
        task=run.task,
        tier=run.tier,
        repeat=run.repeat,
        track=run.track,
        outcomes=dict(run.outcomes),
        task_outcome=run.task_outcome,
        has_tools=bool(run.has_tools),
    )
    draft.system(header.get("system_prompt"))
    messages = as_objects(value if isinstance(value, list) else header.get("messages"))
    in_messages = TurnBuilder([])
    for position, message in enumerate(messages):
        in_messages.add(position, message)
        n_before = draft.turns
        _add(draft, message)
        if n_before < draft.turns <= len(run.turns):
            _add_facts(draft, run.turns[n_before])
    _add_results(draft, in_messages.turns(), run)
    draft.add_totals(
        input_tokens=run.resources.input_tokens,
        output_tokens=run.resources.output_tokens,
        cost_usd=run.resources.cost_usd,
    )
    draft.wall_time_s = run.resources.wall_time_s
    yield draft


def _add(draft: Draft, message: dict[str, Any]) -> None:
    role = message.get("role") or message.get("type")
    if not isinstance(role, str):
        draft.lost["messages without a role"] += 1
        return
    message = {**message, "role": _ROLES.get(role, role)}
    role = message["role"]
    block_types = {text_or_none(block.get("type")) for block in as_objects(message.get("content"))}
    if role == "assistant" and "tool_use" in block_types and not message.get("tool_calls"):
        n_messages = len(draft.messages)
        add_assistant(draft, message)
        if text_or_none(message.get("name")):
            draft.messages[n_messages]["name"] = message["name"]
    elif role == "assistant":
        draft.chat_assistant(message, [])
    elif role == "user" and "tool_result" in block_types:
        add_user(draft, message.get("content"))
    else:
        draft.message(message)


def _add_facts(draft: Draft, turn: Turn) -> None:
    """Add what is known of the last reply, which is this turn."""
    draft.add_usage(CallTokens(turn.input_tokens, turn.output_tokens))
    draft.add_finish(turn.finish_reason)
    if turn.time_s is not None:
        draft.reply_facts()[-1]["ts"] = turn.time_s


def _add_results(draft: Draft, in_messages: list[Turn], run: Run) -> None:
    """Add the results that only the files beside the conversation hold, after their calls."""
    results: dict[int, list[dict[str, Any]]] = {}
    for turn, full_turn in zip(in_messages, run.turns, strict=False):
        for action, full in zip(turn.actions, full_turn.actions, strict=False):
            if full.observation == action.observation:
                continue
            if action.observation is None and action.id is not None:
                results.setdefault(turn.index, []).append(_result_message(full))
            else:
                draft.lost["results as the files beside the conversation state them"] += 1
    messages, n_turns = [], 0
    for message in draft.messages:
        messages.append(message)
        if message.get("role") == "assistant":
            n_turns += 1
            messages += results.get(n_turns, [])
    draft.messages = messages


def _result_message(action: Action) -> dict[str, Any]:
    observation = action.observation
    assert observation is not None
    body = observation.model_dump(include={"exit_code", "stdout", "stderr"})
    content = json.dumps({**body, **mark_fields(observation.kind)}, ensure_ascii=False)
    return {"role": "tool", "tool_call_id": action.id, "content": content}


IMPORTER = Importer(read, ())
