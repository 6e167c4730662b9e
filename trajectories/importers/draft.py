"""A run on its way from another format to conversation.json: chat messages, and what is known of
time and tokens.

Readers call `user`, `assistant` and `result` in the order of the source. Texts stay as they are.
What the source does not say stays unknown, and what conversation.json cannot hold is counted in
`lost`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ..models import Outcome
from ..reading.external_outcomes import MAX_OUTCOMES, flatten_outcomes
from ..reading.json_bytes import amount, count, loads, number, text_or_none
from ..reading.messages import content_text, make_action
from ..reading.messages import exit_code as whole_code

RESULT_KEYS = frozenset({"exit_code", "stdout", "stderr"})

# Words of other APIs for why a reply ended, in those of the harness's trace (OpenAI's).
_FINISH = {
    "tool_use": "tool_calls",
    "tool_call": "tool_calls",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_length": "length",
}


@dataclass
class Call:
    """One tool call: `arguments` is an object, or text where the source has text."""

    name: str
    arguments: Any
    id: str | None = None


@dataclass
class _Turn:
    event: dict[str, Any]
    calls: list[Call]
    done: dict[int, dict[str, Any]] = field(default_factory=dict)
    """By the place of a call: its answer's part of the trace's line."""
    first_open: int = 0
    """No call before it is open."""


@dataclass
class Draft:
    """One run. `name` becomes its id; `origin` is kept in conversation.json under `imported`."""

    name: str
    format: str
    agent: str | None = None
    model: str | None = None
    task: str | None = None
    tier: str | None = None
    repeat: int | None = None
    track: str | None = None
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    task_outcome: str | None = None
    """The outcome that is the Task score."""
    system_prompt: str | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    origin: dict[str, Any] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)
    """Of the whole run, where the source counts no single calls: prompt_tokens, completion_tokens,
    cost_usd, elapsed_s."""
    submitted: bool | None = None
    """Whether the agent handed over its results, where the source says so without a call that does.
    """
    wall_time_s: float | None = None
    """Where it is stated; else the time up to the last moment that `since` was asked about."""
    lost: Counter[str] = field(default_factory=Counter)
    _turns: list[_Turn] = field(default_factory=list)
    _open: dict[str, list[tuple[_Turn, int]]] = field(default_factory=dict)
    _start: float | None = None
    _last: float = 0.0

    @property
    def turns(self) -> int:
        """Assistant messages so far."""
        return len(self._turns)

    def elapsed(self, stamp: Any) -> float | None:
        """Seconds since the first moment asked about; None for what is no moment (`unix_time`)."""
        when = unix_time(stamp)
        if when is None:
            return None
        if self._start is None:
            self._start = when
        self._last = max(self._last, when - self._start)
        return when - self._start

    def add_outcomes(self, value: Any, source: str, name: str = "") -> None:
        """Keep what the source found out about the run: scalars of `value` as outcomes, `name` and
        keys before them.

        What is no outcome (lists, long texts) and what is beyond the limit counts as lost, by name.
        """
        for key, outcome in flatten_outcomes(value, f"{self.format} {source}".strip(), name):
            if outcome is None:
                self.lost[f"field {key}"] += 1
            elif len(self.outcomes) >= MAX_OUTCOMES and key not in self.outcomes:
                self.lost[f"outcomes beyond the first {MAX_OUTCOMES}"] += 1
            else:
                self.outcomes[key] = outcome

    def add_totals(self, **found: Any) -> None:
        """Totals of the run by their names in `totals`, as far as they are amounts; of sums told
        again and again the largest."""
        for name, value in found.items():
            if (known := amount(value)) is not None:
                self.totals[name] = max(known, self.totals.get(name, 0.0))

    def system(self, content: Any) -> None:
        """A system message: the system prompt when it is a text and comes first, else a message in
        its place."""
        if (
            self.system_prompt is None
            and not self.messages
            and isinstance(content, str)
            and content.strip()
        ):
            self.system_prompt = content
        elif content:
            self.messages.append({"role": "system", "content": content})

    def user(self, content: Any) -> None:
        """A user message: text, or a list of content blocks."""
        if content:
            self.messages.append({"role": "user", "content": content})

    def assistant(
        self,
        content: Any,
        calls: Iterable[Call] = (),
        *,
        reasoning: str | list[dict[str, Any]] | None = None,
        ts: float | None = None,
        input_tokens: Any = None,
        output_tokens: Any = None,
        finish: Any = None,
    ) -> None:
        """An assistant message; `reasoning` is a text, or blocks as chat logs keep them under
        `reasoning_details`."""
        calls = list(calls)
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if reasoning:
            message["reasoning_content" if isinstance(reasoning, str) else "reasoning_details"] = (
                reasoning
            )
        if calls:
            message["tool_calls"] = [_chat_call(call) for call in calls]
        self.chat_assistant(message, calls)
        event = self._turns[-1].event
        event.update(_stamp(ts))
        for key, value in (
            ("input_tokens", count(input_tokens)),
            ("output_tokens", count(output_tokens)),
        ):
            if value is not None:
                event[key] = value
        if isinstance(finish, str) and finish:
            event["finish_reason"] = _FINISH.get(finish, finish)

    def chat_assistant(self, message: dict[str, Any], calls: list[Call]) -> None:
        """An assistant message that already has the chat shape, with its calls once more for the
        trace."""
        self.messages.append(message)
        turn = _Turn({}, calls)
        self._turns.append(turn)
        for slot, call in reversed(list(enumerate(calls))):
            if call.id is not None:
                self._open.setdefault(call.id, []).append((turn, slot))

    def result(
        self,
        call_id: str | None,
        text: Any,
        *,
        stderr: str = "",
        exit_code: Any = None,
        failed: bool = False,
        ts: float | None = None,
        exec_time_s: float | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        """What a tool answered. `text` is its output, or a list of content blocks; an `exit_code`
        that is none is unknown.

        `failed` says that the source itself marks the answer as an error: a text without streams of
        its own then counts as stderr. An answer that already is the harness's JSON is kept as it
        is.
        """
        turn, slot = self._find(call_id)
        output = self._text(text)
        body = parse_object(output)
        submit = turn is not None and _kind(turn.calls[slot]) == "submit"
        if body and not stderr and exit_code is None and (submit or RESULT_KEYS & set(body)):
            content = output
            exit_code = whole_code(body.get("exit_code"), [], "")
        else:
            exit_code = whole_code(exit_code, [], "")
            streams = (
                {"stdout": "", "stderr": output}
                if failed and not stderr
                else {"stdout": output, "stderr": stderr}
            )
            content = json.dumps(
                {"exit_code": exit_code, **streams, **({"is_error": True} if failed else {})},
                ensure_ascii=False,
            )
        self.messages.append(
            {"role": "tool", "tool_call_id": call_id, "content": content, **(extra or {})}
        )
        if turn is not None:
            spent = None if exec_time_s is None else round(exec_time_s, 3)
            turn.done[slot] = _stamp(ts) | {"exit_code": exit_code, "exec_time_s": spent}

    def events(self) -> list[dict[str, Any]]:
        """Lines of trace.jsonl: what is known of each reply and execution, nothing for what is not."""
        lines: list[dict[str, Any]] = []
        for index, turn in enumerate(self._turns, 1):
            if turn.event:
                lines.append({"type": "api_call", "turn": index, **turn.event})
            runs = [
                (slot, call) for slot, call in enumerate(turn.calls) if _kind(call) == "execute"
            ]
            known = any(
                "ts" in done or done["exec_time_s"] is not None
                for slot, _ in runs
                if (done := turn.done.get(slot))
            )
            for slot, call in runs if known else ():
                line = {
                    "type": "code_exec",
                    "turn": index,
                    "language": make_action(call.name, call.arguments, None).language,
                }
                lines.append(
                    {**line, "exit_code": None, "exec_time_s": None, **turn.done.get(slot, {})}
                )
        spent = (self._last or None) if self.wall_time_s is None else self.wall_time_s
        if spent is not None and spent >= 0:
            lines.append({"type": "run_end", "wall_time_s": round(spent, 3)})
        return lines

    def _find(self, call_id: str | None) -> tuple[_Turn | None, int]:
        """The open call that this id names, latest turn first; without an id the last turn's first
        open call."""
        if call_id is not None:
            waiting = self._open.get(call_id)
            return waiting.pop() if waiting else (None, 0)
        turn = self._turns[-1] if self._turns else None
        if turn is None:
            return None, 0
        while turn.first_open in turn.done:
            turn.first_open += 1
        return (turn, turn.first_open) if turn.first_open < len(turn.calls) else (None, 0)

    def _text(self, content: Any) -> str:
        if isinstance(content, list):
            blocks = [block for block in content if isinstance(block, dict)]
            images = sum("image" in str(block.get("type")) for block in blocks)
            other = sum(not isinstance(block.get("text"), str) for block in blocks) - images
            if images:
                self.lost["images in tool results"] += images
            if other > 0:
                self.lost["blocks without text in tool results"] += other
        return content_text(content)


def _stamp(ts: float | None) -> dict[str, Any]:
    return {"ts": round(ts, 3)} if ts is not None and ts >= 0 else {}


def _chat_call(call: Call) -> dict[str, Any]:
    arguments = call.arguments
    if not isinstance(arguments, str):
        arguments = json.dumps({} if arguments is None else arguments, ensure_ascii=False)
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _kind(call: Call) -> str:
    return make_action(call.name, call.arguments, None).kind


def parse_call(call: dict[str, Any]) -> Call:
    """A tool call, under whatever names a format has for its name, its arguments and its id."""
    call = as_object(call.get("tool_call")) or call
    said = as_object(call.get("function")) or call
    names = (content_text(said.get(key)) for key in ("name", "function_name", "function"))
    arguments = next(
        (said[key] for key in ("arguments", "input", "args") if said.get(key) is not None), None
    )
    return Call(
        next(filter(None, names), "unknown"),
        arguments,
        as_id(call.get("id")) or as_id(call.get("tool_call_id")),
    )


def as_id(value: Any) -> str | None:
    """An id as text: a string, or an integer written out."""
    return (
        str(value)
        if isinstance(value, int) and not isinstance(value, bool)
        else text_or_none(value)
    )


def as_object(value: Any) -> dict[str, Any]:
    """The object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def parse_object(value: Any) -> dict[str, Any]:
    """The object, also where it is kept as JSON text; an empty one for anything else."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = loads(value)
        except ValueError:
            return {}
    return as_object(value)


def as_objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; empty for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def unwrap_text(content: Any) -> Any:
    """One block of nothing but text as that text, no blocks as no text, anything else as it is."""
    only = content[0] if isinstance(content, list) and len(content) == 1 else None
    if (
        isinstance(only, dict)
        and only.get("type") == "text"
        and not any(only[key] for key in set(only) - {"type", "text"})
    ):
        return only.get("text")
    return None if content == [] else content


def sum_counts(*parts: Any) -> int | None:
    """The sum of the counts that are known; None when none is."""
    known = [value for part in parts if (value := count(part)) is not None]
    return sum(known) if known else None


def unix_time(stamp: Any) -> float | None:
    """Seconds since 1970 of an ISO 8601 time (without a zone: UTC) or a Unix time; None for
    anything else."""
    if isinstance(stamp, str):
        try:
            when = datetime.fromisoformat(stamp)
            return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    return number(stamp)
