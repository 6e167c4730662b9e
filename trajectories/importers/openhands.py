"""OpenHands event lists: exported trajectories, event files, folders, and evaluation output.

Evaluation output has one instance a line, with its events in `history`. Actions of one model
response are one turn; their arguments come from the response itself. An exit code of -1 is that
project's "unknown or still running" and becomes null.

Both event formats are read: version 0 has `action`/`observation` with `args`, `extras` and `cause`;
version 1 has `tool_call_id` and `llm_message`. Source: OpenHands `openhands/events/serialization`,
`openhands/events/observation/commands.py`, `frontend/src/types/v1/core`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.answer_marks import kind_of_word, stated_kind
from ..reading.json_bytes import amount, exact_sum, number, text_or_none
from ..reading.messages import content_text
from . import Importer
from .draft import Call, Draft, parse_call
from .fields import as_id, as_object, as_objects, first_nonempty
from .files import read_runs
from .openhands_folder import EVENT_FILE, event_folder, read_folder
from .recognise import has_keys
from .usage import sum_tokens, usage_tokens

_EXPECTED = (
    "expected a list of events with `action` or `observation`, or an object with `trajectory` or"
    " `history`"
)
_BOOKKEEPING = {
    "null",
    "recall",
    "change_agent_state",
    "agent_state_changed",
    "pause",
    "resume",
    "stop",
    "start",
    "condensation",
    "condensation_request",
    "condense",
    "loop_recovery",
    "loop_detection",
}
"""Actions and observations of the harness itself."""
_NOT_ARGUMENTS = {
    "thought",
    "confirmation_state",
    "security_risk",
    "hidden",
    "kernel_init_code",
    "include_extra",
}
"""Fields of an action's `args` that the model did not write."""

_STATE_EVENTS = {
    "ConversationStateUpdateEvent",
    "PauseEvent",
    "Condensation",
    "CondensationRequest",
    "CondensationSummaryEvent",
    "TokenEvent",
    "LLMCompletionLogEvent",
}
"""Kinds of events about the program itself, in version 1."""
_WITH_ARGUMENTS = {"run", "run_ipython", "read", "write", "edit", "browse"}
"""Actions of version 0 that mean nothing without arguments."""
_EVENT_FIELDS = {
    "action",
    "id",
    "timestamp",
    "source",
    "message",
    "cause",
    "runnable",
    "timeout",
    "tool_call_metadata",
    "llm_metrics",
    "log_type",
}
"""Fields of an event that are no arguments of its action."""

Event = dict[str, Any]


def read(path: Path) -> Iterator[Draft | InputError]:
    """Every run of the file; of a folder of events, the run at its first event, else none."""
    folder = event_folder(path)
    if folder is None:
        yield from read_runs(path, _is_part, _draft)
    elif path == folder.event_files[0]:
        draft = _draft(read_folder(folder), folder.name, path, "")
        draft.files_beside += (*folder.event_files, *folder.state_files)
        yield draft


def _is_part(value: Any) -> bool:
    """Whether a value is an event: what happened, or a line about the state of the program."""
    if _is_event(value):
        return True
    event = as_object(value)
    return "source" in event and ("kind" in event or "id" in event) and "messages" not in event


def _is_event(value: Any) -> bool:
    event = as_object(value)
    return _is_action(event) or "observation" in event or "llm_message" in event


def _is_action(event: Event) -> bool:
    """Whether the agent acts here; a call that is rejected before it runs has no `action`."""
    is_call = "tool_call" in event and event.get("kind") in (None, "ActionEvent")
    return isinstance(event.get("action"), str | dict) or is_call


def _draft(value: Any, name: str, path: Path, location: str) -> Draft:
    header = as_object(value)
    events = _event_list(value, header)
    if not any(map(_is_event, events)):
        raise InputError(f"{location}holds no OpenHands events", _EXPECTED, path)
    metadata = as_object(header.get("metadata"))
    models = (
        metadata.get("llm"),
        metadata.get("llm_config"),
        header.get("llm_config"),
        {"model": header.get("llm_model")},
        as_object(header.get("agent")).get("llm"),
    )
    task = as_id(header.get("instance_id"))
    draft = Draft(
        task or name,
        "openhands",
        agent=text_or_none(metadata.get("agent_class")),
        model=_first_text(as_object(model).get("model") for model in models),
        task=task,
    )
    _EventReader(draft).add_all(events)
    _add_metrics(draft, [as_object(header.get("metrics"))])
    _add_stats(draft, header.get("stats"))
    draft.add_outcomes(header.get("test_result"), "test_result")
    for key in ("resolved", "error"):
        draft.add_outcomes(header.get(key), key, key)
    return draft


def _event_list(value: Any, header: dict[str, Any]) -> list[Any]:
    """The events of a run; the oldest evaluation output pairs actions with their observations."""
    items = value if isinstance(value, list) else first_nonempty(header, "trajectory", "history")
    events: list[Any] = []
    for item in items if isinstance(items, list) else ():
        for event in item if isinstance(item, list) else [item]:
            events += _unwrap_pair(event)
    return events


def _unwrap_pair(event: Any) -> list[Any]:
    """An action and its observation that stand as one object; any other event as it is."""
    pair = as_object(event)
    parts = [pair.get("action"), pair.get("observation")]
    if set(pair) <= {"action", "observation"} and any("action" in as_object(p) for p in parts):
        return [part for part in parts if part]
    return [event]


def _first_text(values: Iterable[Any]) -> str | None:
    return next(filter(None, map(text_or_none, values)), None)


def _add_metrics(draft: Draft, metrics: list[dict[str, Any]]) -> None:
    """Add the cost and the tokens that are accumulated over all calls, of one model or several."""
    for item in metrics:
        draft.model = draft.model or text_or_none(item.get("model_name"))
    usages = [usage_tokens(item.get("accumulated_token_usage")) for item in metrics]
    costs = [amount(item.get("accumulated_cost")) for item in metrics]
    draft.add_totals(
        cost_usd=exact_sum([cost for cost in costs if cost is not None]), **sum_tokens(usages)
    )


def _add_stats(draft: Draft, stats: Any) -> None:
    """Add the metrics of version 1, which count each use of a model: the agent, the condenser."""
    uses = as_object(as_object(stats).get("usage_to_metrics"))
    _add_metrics(draft, [as_object(metrics) for metrics in uses.values()])


def _group_by_response(events: list[Event]) -> Iterator[list[Event]]:
    """Actions of one model response together, then the events between them; other events alone."""
    index = 0
    while index < len(events):
        event = events[index]
        index += 1
        actions: list[Event] = [event]
        between: list[Event] = []
        response_id = _response_id(event)
        if response_id and _is_action(event):
            while index < len(events) and _response_id(events[index]) == response_id:
                group = actions if _is_action(events[index]) else between
                group.append(events[index])
                index += 1
        yield actions
        for other in between:
            yield [other]


class _EventReader:
    """Adds events to a draft as messages, and knows which action an observation answers."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._call_ids: dict[str, str | None] = {}
        """Call id by event id, in version 0."""
        self._last_call_id: str | None = None

    def add_all(self, values: list[Any]) -> None:
        """Add the events of a run, in order."""
        events = as_objects(values)
        if len(events) < len(values):
            self.draft.lost["events that are no objects"] += len(values) - len(events)
        for group in _group_by_response(events):
            self._add(group)

    def _add(self, group: list[Event]) -> None:
        """Add an event, or the actions of one response."""
        event = group[0]
        action, observation = event.get("action"), event.get("observation")
        if _is_action(event) and not isinstance(action, str) and not event.get("llm_message"):
            self._add_turn(group)
        elif "llm_message" in event:
            self._add_message(event)
        elif "tool_call_id" in event:
            self._add_result(event)
        elif isinstance(action, str) and action not in _BOOKKEEPING:
            self._add_action(group)
        elif isinstance(observation, str) and observation not in _BOOKKEEPING:
            self._add_observation(event)
        elif isinstance(event.get("system_prompt"), dict):
            self.draft.has_tools = self.draft.has_tools or bool(event.get("tools"))
            self.draft.system(event["system_prompt"].get("text"))
        elif event.get("key") == "stats":
            _add_stats(self.draft, event.get("value"))
        elif text_or_none(event.get("kind")) and event["kind"] not in _STATE_EVENTS:
            self.draft.lost[f"events of kind {event['kind'][:40]}"] += 1
        else:
            self.draft.lost["bookkeeping events"] += 1

    def _add_action(self, group: list[Event]) -> None:
        """Add an action of version 0, or the actions of one response."""
        event = group[0]
        action, args = event["action"], _args(event)
        is_users = event.get("source") == "user"
        if action == "message" and is_users:
            ts = self.draft.elapsed(event.get("timestamp"))
            self._count_images(args)
            self.draft.user(args.get("content"), ts)
        elif action == "system":
            self.draft.agent = self.draft.agent or text_or_none(args.get("agent_class"))
            self.draft.system(args.get("content"))
        elif is_users:
            self.draft.lost["commands that the user ran"] += 1
        else:
            self._add_turn(group)

    def _add_message(self, event: Event) -> None:
        """Add what the user or the agent says, in version 1."""
        ts = self.draft.elapsed(event.get("timestamp"))
        message = as_object(event.get("llm_message"))
        text = _joined_texts(message.get("content"))
        if message.get("role") == "assistant":
            self.draft.assistant(text or None, reasoning=_reasoning(message), ts=ts)
        elif message:
            self.draft.user(text, ts)
        for block in as_objects(message.get("content")):
            self._count_images(block)

    def _add_turn(self, actions: list[Event]) -> None:
        """Add the actions of one model response."""
        response = _response(actions[0])
        choices = as_objects(response.get("choices"))
        choice = choices[0] if choices else {}
        message = as_object(choice.get("message"))
        requested = {as_id(call.get("id")): call for call in as_objects(message.get("tool_calls"))}
        calls: list[Call] = []
        thoughts: list[str] = []
        for event in actions:
            args = _args(event)
            if event.get("action") == "message":
                self._count_images(args)
                thoughts.append(content_text(args.get("content")))
                continue
            thoughts.append(
                content_text(args.get("thought")) or _joined_texts(event.get("thought"))
            )
            if isinstance(event.get("action"), str):
                calls.append(self._call_v0(event, requested))
            else:
                calls.append(_call_v1(event))
            _add_metrics(self.draft, [as_object(event.get("llm_metrics"))])
        self.draft.model = self.draft.model or text_or_none(response.get("model"))
        times = [self.draft.elapsed(event.get("timestamp")) for event in actions]
        known_times = [ts for ts in times if ts is not None]
        content = message.get("content")
        if not text_or_none(content_text(content)):
            content = "\n".join(thought for thought in thoughts if thought)
        self.draft.assistant(
            content or None,
            calls,
            reasoning=_reasoning({**message, **actions[0]}),
            ts=known_times[0] if known_times else None,
            tokens=usage_tokens(response.get("usage")),
            finish=choice.get("finish_reason"),
        )

    def _call_v0(self, event: Event, requested: dict[str | None, dict[str, Any]]) -> Call:
        """The call of an action in version 0, with the arguments that the response has for it."""
        metadata = as_object(event.get("tool_call_metadata"))
        event_id = as_id(event.get("id")) or ""
        call_id = as_id(metadata.get("tool_call_id")) or f"event-{event_id or self.draft.turns}"
        function = as_object(as_object(requested.get(call_id)).get("function"))
        args = {name: item for name, item in _args(event).items() if name not in _NOT_ARGUMENTS}
        if not args and not function and event["action"] in _WITH_ARGUMENTS:
            self.draft.count_unread_call()
        self._call_ids[event_id] = self._last_call_id = call_id
        name = text_or_none(function.get("name")) or text_or_none(metadata.get("function_name"))
        return Call(name or event["action"], function.get("arguments", args), call_id)

    def _add_observation(self, event: Event) -> None:
        """Add a result in version 0."""
        ts = self.draft.elapsed(event.get("timestamp"))
        extras = as_object(event.get("extras")) or event  # the first versions had no `extras`
        metadata, cause = as_object(extras.get("metadata")), as_id(event.get("cause"))
        call_id = self._last_call_id if cause is None else self._call_ids.get(cause)
        text = _full_output(metadata, event.get("content"))
        self._count_images(extras)
        if call_id is None:
            self.draft.user(text)
            return
        exit_code = _exit_code(metadata.get("exit_code", extras.get("exit_code")))
        kind = kind_of_word(event["observation"])
        if kind is None and event.get("success", extras.get("success")) is False:
            kind = "failed"
        self.draft.result(call_id, text, exit_code=exit_code, kind=kind, ts=ts)

    def _add_result(self, event: Event) -> None:
        """Add a result in version 1."""
        call_id, observation = as_id(event.get("tool_call_id")), as_object(event.get("observation"))
        ts = self.draft.elapsed(event.get("timestamp"))
        error, refusal = text_or_none(event.get("error")), "rejection_reason" in event
        if error is not None or refusal:
            text = error or content_text(event.get("rejection_reason"))
            self.draft.result(call_id, text, kind="blocked" if refusal else "failed", ts=ts)
            return
        names = ("content", "output", "message")
        content = first_nonempty(observation, *names)
        if content is None and not set(names) & set(observation):
            content = _own_fields(observation)
        for block in as_objects(content):
            self._count_images(block)
        # `error` is a text in some observations and a flag in others.
        error = observation.get("error")
        error_text = error if isinstance(error, str) else ""
        kind = "timeout" if observation.get("timeout") is True else stated_kind(observation)
        self.draft.result(
            call_id,
            _full_output(as_object(observation.get("metadata")), content or ""),
            stderr=error_text,
            exit_code=_exit_code(observation.get("exit_code")),
            kind=kind,
            ts=ts,
        )

    def _count_images(self, holder: dict[str, Any]) -> None:
        urls = holder.get("image_urls")
        if isinstance(urls, list) and urls:
            self.draft.lost["images"] += len(urls)


def _args(event: Event) -> dict[str, Any]:
    """The arguments of an action in version 0; the first versions kept them beside its name."""
    if "args" in event:
        return as_object(event["args"])
    return {key: value for key, value in event.items() if key not in _EVENT_FIELDS}


def _own_fields(observation: dict[str, Any]) -> str:
    """The fields of an observation of an unknown kind as JSON; "" without any."""
    fields = {key: value for key, value in observation.items() if key not in ("kind", "is_error")}
    return json.dumps(fields, ensure_ascii=False) if fields else ""


def _call_v1(event: Event) -> Call:
    """The call of an action in version 1."""
    call = parse_call(as_object(event.get("tool_call")))
    arguments = call.arguments
    if not isinstance(arguments, str | dict):
        action = as_object(event.get("action"))
        arguments = {key: value for key, value in action.items() if key != "kind"}
    name = text_or_none(event.get("tool_name")) or call.name
    return Call(name, arguments, as_id(event.get("tool_call_id")) or call.id)


def _response(event: Event) -> dict[str, Any]:
    return as_object(as_object(event.get("tool_call_metadata")).get("model_response"))


def _response_id(event: Event) -> str | None:
    return as_id(event.get("llm_response_id")) or text_or_none(_response(event).get("id"))


def _full_output(metadata: dict[str, Any], content: Any) -> str:
    """A command's output with what OpenHands took off both of its ends."""
    parts = (metadata.get("prefix"), content, metadata.get("suffix"))
    return "".join(content_text(part) for part in parts)


def _exit_code(value: Any) -> Any:
    return None if number(value) == -1 else value


def _joined_texts(content: Any) -> str:
    texts = (content_text(block.get("text")) for block in as_objects(content))
    return "\n".join(text for text in texts if text)


def _reasoning(message: dict[str, Any]) -> str | list[dict[str, Any]] | None:
    return as_objects(message.get("thinking_blocks")) or text_or_none(
        message.get("reasoning_content")
    )


_KEYS = ("action", "observation", "llm_message", "tool_call_id")
_PREFIXES = ("", "history.", "trajectory.")

_has_event_keys = has_keys(
    *(f"{prefix}{key} {prefix}source" for prefix in _PREFIXES for key in _KEYS),
    "kind=ConversationStateUpdateEvent",
    "kind=SystemPromptEvent",
    "kind=MessageEvent",
    "kind=ActionEvent",
)


def _recognises(head: bytes, name: str) -> bool:
    is_event_file = bool(EVENT_FILE.fullmatch(name.lower())) and name.lower().startswith("event-")
    return is_event_file or _has_event_keys(head, name)


IMPORTER = Importer(read, (".json", ".jsonl"), _recognises)
