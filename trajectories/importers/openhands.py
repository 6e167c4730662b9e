"""OpenHands event lists: the exported trajectory, event files, and evaluation output (`history`,
one instance a line).

Actions of one model response are one turn; their arguments come from the response itself. An exit
code of -1 is that project's "unknown or still running" and becomes null. Both event shapes are
read: `action`/`observation` with `args`, `extras` and `cause`, and the later one with
`tool_call_id` and `llm_message`. Source: OpenHands `openhands/events/serialization`,
`openhands/events/observation/commands.py`, `frontend/src/types/v1/core`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.json_bytes import number, text_or_none
from ..reading.messages import content_text
from . import Importer
from .draft import Call, Draft, parse_call
from .fields import as_id, as_object, as_objects
from .files import read_runs
from .recognise import has_keys

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
_NOT_ARGUMENTS = {
    "thought",
    "confirmation_state",
    "security_risk",
    "hidden",
    "kernel_init_code",
    "include_extra",
}


def read(path: Path) -> Iterator[Draft | InputError]:
    """Every run of the file."""
    return read_runs(path, _is_event, _draft)


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and (
        isinstance(value.get("action"), str | dict)
        or "observation" in value
        or "llm_message" in value
    )


def _draft(value: Any, name: str, path: Path, where: str) -> Draft:
    head = as_object(value)
    listed = value if isinstance(value, list) else head.get("trajectory") or head.get("history")
    # The oldest evaluation output pairs each action with its observation.
    flat = [
        event
        for item in (listed if isinstance(listed, list) else ())
        for event in (item if isinstance(item, list) else [item])
    ]
    if not any(_is_event(event) for event in flat):
        raise InputError(f"{where}holds no OpenHands events", _EXPECTED, path)
    metadata = as_object(head.get("metadata"))
    task = as_id(head.get("instance_id"))
    draft = Draft(
        task or name, "openhands", task=task, agent=text_or_none(metadata.get("agent_class"))
    )
    draft.model = text_or_none(as_object(metadata.get("llm_config")).get("model"))
    _Reader(draft).take(flat)
    metrics = as_object(head.get("metrics"))
    draft.add_totals(cost_usd=metrics.get("accumulated_cost") or None)
    draft.add_outcomes(head.get("test_result"), "test_result")
    for key in ("resolved", "error"):
        draft.add_outcomes(head.get(key), key, key)
    return draft


def _grouped(events: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Actions of one model response together, before the observations that stand between them; any
    other event alone."""
    at = 0
    while at < len(events):
        event, key = events[at], _response_id(events[at])
        at += 1
        same = [event]
        held: list[dict[str, Any]] = []
        while key and _is_action(event) and at < len(events) and _response_id(events[at]) == key:
            (same if _is_action(events[at]) else held).append(events[at])
            at += 1
        yield same
        yield from ([other] for other in held)


class _Reader:
    """Events to messages: which action an observation answers, and when."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.calls: dict[str, str | None] = {}
        """Event id to call id, in the first shape."""
        self.last: str | None = None

    def take(self, events: list[Any]) -> None:
        if strange := sum(not isinstance(event, dict) for event in events):
            self.draft.lost["events that are no objects"] += strange
        for group in _grouped(as_objects(events)):
            event = group[0]
            action, args = event.get("action"), as_object(event.get("args"))
            if isinstance(action, dict) and not event.get("llm_message"):
                self._turn(group)
            elif "llm_message" in event:
                self._message(event)
            elif "tool_call_id" in event:
                self._result(event)
            elif action == "message" and event.get("source") == "user":
                self.draft.elapsed(event.get("timestamp"))
                self._images(args)
                self.draft.user(args.get("content"))
            elif action == "system":
                self.draft.agent = self.draft.agent or text_or_none(args.get("agent_class"))
                self.draft.system(args.get("content"))
            elif isinstance(action, str) and action not in _BOOKKEEPING:
                if event.get("source") == "user":
                    self.draft.lost["commands that the user ran"] += 1
                else:
                    self._turn(group)
            elif (
                isinstance(event.get("observation"), str)
                and event["observation"] not in _BOOKKEEPING
            ):
                self._observation(event)
            elif isinstance(event.get("system_prompt"), dict):
                self.draft.system(event["system_prompt"].get("text"))
            else:
                self.draft.lost["bookkeeping events"] += 1

    def _message(self, event: dict[str, Any]) -> None:
        """What the user or the agent says in the later shape."""
        since, message = (
            self.draft.elapsed(event.get("timestamp")),
            as_object(event.get("llm_message")),
        )
        texts = _texts(message.get("content"))
        if message.get("role") == "assistant":
            self.draft.assistant(texts or None, reasoning=_reasoning(message), ts=since)
        elif message:
            self.draft.user(texts)
        for block in as_objects(message.get("content")):
            self._images(block)

    def _turn(self, actions: list[dict[str, Any]]) -> None:
        response = _response(actions[0])
        choice = next(iter(as_objects(response.get("choices"))), {})
        message, usage = as_object(choice.get("message")), as_object(response.get("usage"))
        requested = {as_id(call.get("id")): call for call in as_objects(message.get("tool_calls"))}
        calls, thoughts = [], []
        for event in actions:
            args = as_object(event.get("args"))
            if event["action"] == "message":
                self._images(args)
                thoughts.append(content_text(args.get("content")))
                continue
            thoughts.append(content_text(args.get("thought")) or _texts(event.get("thought")))
            calls.append(
                _later_call(event)
                if isinstance(event["action"], dict)
                else self._call(event, requested)
            )
            spent = number(as_object(event.get("llm_metrics")).get("accumulated_cost"))
            self.draft.add_totals(cost_usd=spent or None)
        text = (
            message.get("content") if text_or_none(content_text(message.get("content"))) else None
        )
        self.draft.model = self.draft.model or text_or_none(response.get("model"))
        stamps = [self.draft.elapsed(event.get("timestamp")) for event in actions]
        self.draft.assistant(
            text or "\n".join(filter(None, thoughts)) or None,
            calls,
            reasoning=_reasoning({**message, **actions[0]}),
            ts=next((stamp for stamp in stamps if stamp is not None), None),
            input_tokens=usage.get("prompt_tokens"),
            output_tokens=usage.get("completion_tokens"),
            finish=choice.get("finish_reason"),
        )

    def _call(self, event: dict[str, Any], requested: dict[str | None, dict[str, Any]]) -> Call:
        """An action of the first shape, with the arguments that the response itself has for it."""
        meta, key = as_object(event.get("tool_call_metadata")), as_id(event.get("id")) or ""
        call_id = as_id(meta.get("tool_call_id")) or f"event-{key or self.draft.turns}"
        function = as_object(as_object(requested.get(call_id)).get("function"))
        own = {
            name: value
            for name, value in as_object(event.get("args")).items()
            if name not in _NOT_ARGUMENTS
        }
        self.calls[key] = self.last = call_id
        name = (
            text_or_none(function.get("name"))
            or text_or_none(meta.get("function_name"))
            or event["action"]
        )
        return Call(name, function.get("arguments", own), call_id)

    def _observation(self, event: dict[str, Any]) -> None:
        """What came back in the first shape."""
        since, extras = self.draft.elapsed(event.get("timestamp")), as_object(event.get("extras"))
        meta, cause = as_object(extras.get("metadata")), as_id(event.get("cause"))
        call_id = self.last if cause is None else self.calls.get(cause)
        text = _whole(meta, event.get("content"))
        self._images(extras)
        if call_id is None:
            self.draft.user(text)
            return
        failed = event["observation"] in ("error", "user_rejected")
        code = _exit_code(meta.get("exit_code", extras.get("exit_code")))
        self.draft.result(call_id, text, exit_code=code, failed=failed, ts=since)

    def _result(self, event: dict[str, Any]) -> None:
        """What came back in the later shape."""
        call_id, seen = as_id(event.get("tool_call_id")), as_object(event.get("observation"))
        since = self.draft.elapsed(event.get("timestamp"))
        refusal = text_or_none(event.get("error")) or text_or_none(event.get("rejection_reason"))
        if refusal is not None:
            self.draft.result(call_id, refusal, failed=True, ts=since)
            return
        body = next((seen[key] for key in ("content", "output", "message") if seen.get(key)), "")
        problem = content_text(seen["error"]) if isinstance(seen.get("error"), str) else ""
        failed = seen.get("is_error") is True or seen.get("error") is True or bool(problem)
        for block in as_objects(body):
            self._images(block)
        text, code = (
            _whole(as_object(seen.get("metadata")), body),
            _exit_code(seen.get("exit_code")),
        )
        self.draft.result(call_id, text, stderr=problem, exit_code=code, failed=failed, ts=since)

    def _images(self, holder: dict[str, Any]) -> None:
        urls = holder.get("image_urls")
        if isinstance(urls, list) and urls:
            self.draft.lost["images"] += len(urls)


def _later_call(event: dict[str, Any]) -> Call:
    """An action of the later shape."""
    call = parse_call(as_object(event.get("tool_call")))
    if not isinstance(call.arguments, str | dict):
        call.arguments = {key: value for key, value in event["action"].items() if key != "kind"}
    return Call(
        text_or_none(event.get("tool_name")) or call.name,
        call.arguments,
        as_id(event.get("tool_call_id")) or call.id,
    )


def _is_action(event: dict[str, Any]) -> bool:
    return isinstance(event.get("action"), str | dict)


def _response_id(event: dict[str, Any]) -> str | None:
    return as_id(event.get("llm_response_id")) or text_or_none(_response(event).get("id"))


def _whole(meta: dict[str, Any], content: Any) -> str:
    return "".join(content_text(part) for part in (meta.get("prefix"), content, meta.get("suffix")))


def _exit_code(value: Any) -> Any:
    return None if number(value) == -1 else value


def _response(event: dict[str, Any]) -> dict[str, Any]:
    return as_object(as_object(event.get("tool_call_metadata")).get("model_response"))


def _texts(content: Any) -> str:
    return "\n".join(
        text for block in as_objects(content) if (text := content_text(block.get("text")))
    )


def _reasoning(event: dict[str, Any]) -> str | list[dict[str, Any]] | None:
    return as_objects(event.get("thinking_blocks")) or text_or_none(event.get("reasoning_content"))


IMPORTER = Importer(
    read,
    (".json", ".jsonl"),
    has_keys(
        *(
            f"{where}{key} {where}source"
            for where in ("", "history.", "trajectory.")
            for key in ("action", "observation", "llm_message", "tool_call_id")
        )
    ),
)
