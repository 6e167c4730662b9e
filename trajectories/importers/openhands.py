"""OpenHands event lists: the exported trajectory, event files, and evaluation output (`history`, one instance a line).

Actions of one model response are one turn; their arguments come from the response itself. An exit code of -1 is that
project's "unknown or still running" and becomes null. Both event shapes are read: `action`/`observation` with `args`,
`extras` and `cause`, and the later one with `tool_call_id` and `llm_message`. Source: OpenHands
`openhands/events/serialization`, `openhands/events/observation/commands.py`, `frontend/src/types/v1/core`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..json_bytes import number
from ..messages import content_text
from ..messages import exit_code as whole_code
from . import Importer
from .draft import Call, Clock, Draft, id_of, object_of, objects_of, text_of
from .files import Document, documents, tried
from .recognise import holding

_EXPECTED = "expected a list of events with `action` or `observation`, or an object with `trajectory` or `history`"
_BOOKKEEPING = {
    "null", "recall", "change_agent_state", "agent_state_changed", "pause", "resume", "stop", "start", "condensation",
    "condensation_request", "condense", "loop_recovery", "loop_detection",
}  # fmt: skip
_NOT_ARGUMENTS = {"thought", "confirmation_state", "security_risk", "hidden", "kernel_init_code", "include_extra"}


def read(path: Path) -> Iterator[Draft | InputError]:
    """Every run of the file."""
    found = list(documents(path))
    values = [item.value for item in found if isinstance(item, Document)]
    yield from (item for item in found if isinstance(item, InputError))
    if len(values) > 1 and all(_is_event(value) for value in values):
        yield _draft(values, {}, path.stem, path, "")
        return
    for position, value in enumerate(values, 1):
        head = object_of(value)
        events = value if isinstance(value, list) else head.get("trajectory") or head.get("history")
        where = "" if len(values) == 1 else f"value {position}: "
        name = id_of(head.get("instance_id")) or (path.stem if len(values) == 1 else f"{path.stem}-{position}")
        yield tried(_draft, events, head, name, path, where)


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and (
        isinstance(value.get("action"), str | dict) or "observation" in value or "llm_message" in value
    )


def _draft(events: Any, head: dict[str, Any], name: str, path: Path, where: str) -> Draft:
    listed = events if isinstance(events, list) else []
    # The oldest evaluation output pairs each action with its observation.
    flat = [event for item in listed for event in (item if isinstance(item, list) else [item])]
    if not any(_is_event(event) for event in flat):
        raise InputError(f"{where}holds no OpenHands events", _EXPECTED, path)
    metadata = object_of(head.get("metadata"))
    draft = Draft(name, "openhands", agent=text_of(metadata.get("agent_class")))
    draft.model = text_of(object_of(metadata.get("llm_config")).get("model"))
    draft.task = id_of(head.get("instance_id"))
    _Reader(draft).take(flat)
    metrics = object_of(head.get("metrics"))
    if "cost_usd" not in draft.totals and number(metrics.get("accumulated_cost")):
        draft.totals["cost_usd"] = float(metrics["accumulated_cost"])
    draft.tell(head.get("test_result"), "test_result")
    for key in ("resolved", "error"):
        draft.tell(head.get(key), key, key)
    return draft


class _Reader:
    """Events to messages: which response an action belongs to, and which action an observation answers."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.clock = Clock()
        self.calls: dict[str, str | None] = {}
        """Event id to call id."""
        self.last: str | None = None
        self.position = 0

    def take(self, events: list[Any]) -> None:
        while self.position < len(events):
            event = events[self.position]
            self.position += 1
            if not isinstance(event, dict):
                self.draft.lost["events that are no objects"] += 1
            elif isinstance(event.get("action"), dict) or "llm_message" in event or "tool_call_id" in event:
                self._later(event, events)
            elif isinstance(event.get("action"), str):
                self._action(event, events)
            elif isinstance(event.get("observation"), str):
                self._observation(event)
            elif isinstance(event.get("system_prompt"), dict):
                self.draft.system(event["system_prompt"].get("text"))
            else:
                self.draft.lost["bookkeeping events"] += 1
        self.draft.wall_time_s = self.clock.last or None

    # The first shape.

    def _action(self, event: dict[str, Any], events: list[Any]) -> None:
        kind, args = event["action"], object_of(event.get("args"))
        if kind == "message" and event.get("source") == "user":
            self.clock.seconds(event.get("timestamp"))
            self._images(args)
            self.draft.user(args.get("content"))
        elif kind == "system":
            self.draft.agent = self.draft.agent or text_of(args.get("agent_class"))
            self.draft.system(args.get("content"))
        elif kind in _BOOKKEEPING:
            self.draft.lost["bookkeeping events"] += 1
        elif event.get("source") == "user":
            self.draft.lost["commands that the user ran"] += 1
        else:
            self._turn([event, *self._same_response(event, events)])

    def _same_response(self, first: dict[str, Any], events: list[Any]) -> Iterator[dict[str, Any]]:
        """The next actions of the same response. Observations may stand between them; each is taken as it comes."""
        key = _response(first).get("id")
        if not text_of(key):
            return
        held = []
        while self.position < len(events):
            event = object_of(events[self.position])
            if isinstance(event.get("action"), str) and _response(event).get("id") == key:
                yield event
            elif isinstance(event.get("observation"), str) and _response(event).get("id") == key:
                held.append(event)
            else:
                break
            self.position += 1
        events[self.position : self.position] = held

    def _turn(self, actions: list[dict[str, Any]]) -> None:
        response = _response(actions[0])
        choice = next(iter(objects_of(response.get("choices"))), {})
        message, usage = object_of(choice.get("message")), object_of(response.get("usage"))
        requested = {id_of(call.get("id")): call for call in objects_of(message.get("tool_calls"))}
        calls, thoughts = [], []
        stamp: float | None = None
        for event in actions:
            args, meta = object_of(event.get("args")), object_of(event.get("tool_call_metadata"))
            thoughts.append(content_text(args.get("content" if event["action"] == "message" else "thought")))
            stamp = self.clock.seconds(event.get("timestamp")) if stamp is None else stamp
            if event["action"] == "message":
                self._images(args)
                continue
            call_id = id_of(meta.get("tool_call_id")) or f"event-{id_of(event.get('id')) or self.position}"
            function = object_of(object_of(requested.get(call_id)).get("function"))
            own = {key: value for key, value in args.items() if key not in _NOT_ARGUMENTS}
            name = text_of(function.get("name")) or text_of(meta.get("function_name")) or event["action"]
            calls.append(Call(name, function.get("arguments", own), call_id))
            self.calls[id_of(event.get("id")) or ""] = self.last = call_id
            self._cost(event)
        text = message.get("content") if text_of(content_text(message.get("content"))) else None
        reasoning = message.get("reasoning_content")
        self.draft.model = self.draft.model or text_of(response.get("model"))
        self.draft.assistant(
            text or "\n".join(filter(None, thoughts)) or None, calls,
            extra={"reasoning_content": reasoning} if text_of(reasoning) else None, ts=stamp,
            input_tokens=usage.get("prompt_tokens"), output_tokens=usage.get("completion_tokens"),
            finish=choice.get("finish_reason"),
        )  # fmt: skip

    def _observation(self, event: dict[str, Any]) -> None:
        kind, extras = event["observation"], object_of(event.get("extras"))
        if kind in _BOOKKEEPING:
            self.draft.lost["bookkeeping events"] += 1
            return
        since = self.clock.seconds(event.get("timestamp"))
        meta = object_of(extras.get("metadata"))
        cause = id_of(event.get("cause"))
        call_id = self.last if cause is None else self.calls.get(cause)
        text = "".join(content_text(part) for part in (meta.get("prefix"), event.get("content"), meta.get("suffix")))
        code = whole_code(meta.get("exit_code", extras.get("exit_code")), [], "")
        self._images(extras)
        if call_id is None:
            self.draft.user(text)
            return
        self.draft.result(
            call_id, text, exit_code=None if code == -1 else code, failed=kind in ("error", "user_rejected"), ts=since
        )

    def _images(self, args: dict[str, Any]) -> None:
        urls = args.get("image_urls")
        if isinstance(urls, list) and urls:
            self.draft.lost["images"] += len(urls)

    def _cost(self, event: dict[str, Any]) -> None:
        spent = number(object_of(event.get("llm_metrics")).get("accumulated_cost"))
        if spent:
            self.draft.totals["cost_usd"] = max(spent, self.draft.totals.get("cost_usd", 0.0))

    # The later shape.

    def _later(self, event: dict[str, Any], events: list[Any]) -> None:
        since = self.clock.seconds(event.get("timestamp"))
        message = object_of(event.get("llm_message"))
        if message:
            texts = _texts(message.get("content"))
            if message.get("role") == "assistant":
                self.draft.assistant(texts or None, extra=_reasoning(message), ts=since)
            else:
                self.draft.user(texts)
            self._blocks(message.get("content"))
        elif isinstance(event.get("action"), dict):
            same = [event]
            key = id_of(event.get("llm_response_id"))
            while key and self.position < len(events):
                following = object_of(events[self.position])
                if (
                    not isinstance(following.get("action"), dict)
                    or following.get("llm_response_id") != event["llm_response_id"]
                ):
                    break
                same.append(following)
                self.position += 1
            self._later_turn(same, since)
        else:
            self._later_result(event, since)

    def _later_turn(self, actions: list[dict[str, Any]], since: float | None) -> None:
        calls = []
        for event in actions:
            call = object_of(event.get("tool_call"))
            function = object_of(call.get("function")) or call
            arguments = function.get("arguments")
            if not isinstance(arguments, str | dict):
                arguments = {key: value for key, value in event["action"].items() if key != "kind"}
            name = text_of(event.get("tool_name")) or content_text(function.get("name"))
            calls.append(Call(name or "unknown", arguments, id_of(event.get("tool_call_id")) or id_of(call.get("id"))))
        texts = [text for event in actions if (text := _texts(event.get("thought")))]
        self.draft.assistant("\n".join(texts) or None, calls, extra=_reasoning(actions[0]), ts=since)

    def _later_result(self, event: dict[str, Any], since: float | None) -> None:
        call_id, seen = id_of(event.get("tool_call_id")), object_of(event.get("observation"))
        refusal = text_of(event.get("error")) or text_of(event.get("rejection_reason"))
        if refusal is not None:
            self.draft.result(call_id, refusal, failed=True, ts=since)
            return
        meta = object_of(seen.get("metadata"))
        body = next((seen[key] for key in ("content", "output", "message") if seen.get(key)), "")
        text = "".join(content_text(part) for part in (meta.get("prefix"), body, meta.get("suffix")))
        code = whole_code(seen.get("exit_code"), [], "")
        failed = seen.get("is_error") is True or seen.get("error") is True
        problem = seen.get("error") if isinstance(seen.get("error"), str) else ""
        self._blocks(body)
        self.draft.result(
            call_id, text, stderr=problem or "", exit_code=None if code == -1 else code, failed=failed or bool(problem),
            ts=since,
        )  # fmt: skip

    def _blocks(self, content: Any) -> None:
        for block in objects_of(content):
            if isinstance(block.get("image_urls"), list):
                self.draft.lost["images"] += len(block["image_urls"])


def _response(event: dict[str, Any]) -> dict[str, Any]:
    return object_of(object_of(event.get("tool_call_metadata")).get("model_response"))


def _texts(content: Any) -> str:
    return "\n".join(text for block in objects_of(content) if (text := content_text(block.get("text"))))


def _reasoning(event: dict[str, Any]) -> dict[str, Any] | None:
    thoughts = objects_of(event.get("thinking_blocks"))
    if thoughts:
        return {"reasoning_details": thoughts}
    said = text_of(event.get("reasoning_content"))
    return {"reasoning_content": said} if said else None


IMPORTER = Importer(
    read,
    (".json", ".jsonl"),
    holding(
        *(
            f"{where}{key} {where}source"
            for where in ("", "history.", "trajectory.")
            for key in ("action", "observation", "llm_message", "tool_call_id")
        )
    ),
)
