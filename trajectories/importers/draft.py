"""A run on its way from another format to conversation.json.

A reader makes a `Draft` and calls `system`, `user`, `assistant` and `result` in the order of the
source. Texts stay as they are. What the source does not say stays unknown, and what
conversation.json cannot hold is counted in `lost`.

Only what the agent of this run did is a turn. Replies and results that it was shown and did not
make (a forked session's history, examples, an earlier trace) are `context`. The part of another
agent is a draft of its own with `part_of`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..models import FAILED_KINDS, AnswerKind, Outcome
from ..reading.external_outcomes import MAX_OUTCOMES, flatten_outcomes
from ..reading.json_bytes import amount, count, number, text_or_none
from ..reading.messages import (
    content_text,
    is_readable_call,
    make_action,
    message_reasoning,
    message_text,
)
from ..reading.messages import exit_code as integer_exit_code
from ..token_counts import CallTokens, RunTotal, run_total
from .fields import as_id, as_object, as_objects, first_of, parse_object, unix_time

_TOTALS = {"input_tokens": "input tokens", "output_tokens": "output tokens", "cost_usd": "USD"}
"""Quantities of a run, with their names in notes."""
_CALL_BLOCKS = ("tool_use", "tool_result", "redacted_thinking")
_MIN_WAITING_S = 30
"""Seconds of waiting for a person from which on a note names them."""
RESULT_KEYS = frozenset({"exit_code", "stdout", "stderr"})
"""The fields of a result in the harness's own JSON."""

_IDENTITY = {
    "agent": "agent",
    "model": "model",
    "task": "task",
    "tier": "tier",
    "track": "track",
    "repeat_idx": "repeat",
    "part_of": "part_of",
}
"""Fields of a file's header that say what a run is, with the attributes of a draft."""
IDENTITY_FIELDS = frozenset(_IDENTITY)

_FINISH_REASONS = {
    "tool_use": "tool_calls",
    "tool_call": "tool_calls",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_length": "length",
}
"""Other APIs' words for why a reply ended, in those of the harness's trace (OpenAI's)."""


@dataclass
class Call:
    """One tool call; `arguments` is an object, or text if the source has text."""

    name: str
    arguments: Any
    id: str | None = None


@dataclass
class _Turn:
    """What the trace will say of one assistant message and of its calls."""

    event: dict[str, Any]
    calls: list[Call]
    results: dict[int, dict[str, Any]] = field(default_factory=dict)
    """The trace's fields for the result of each answered call, by its position."""
    first_open: int = 0
    """No call before this position is open."""


@dataclass
class Draft:
    """One run.

    `name` becomes its id; `origin` is kept in conversation.json under `imported`.
    """

    name: str
    format: str
    part_of: str | None = None
    """Id of the run in which this is the part of another agent, e.g. of a sub-agent."""
    source_id: str | None = None
    """The id of the run's record in its source, if one record may stand in several files."""
    agent: str | None = None
    model: str | None = None
    task: str | None = None
    tier: str | None = None
    repeat: int | None = None
    track: str | None = None
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    task_outcome: str | None = None
    """The name of the outcome that is the Task score."""
    system_prompt: str | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    origin: dict[str, Any] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)
    """Totals that the source states for the run: input_tokens, output_tokens, cost_usd."""
    has_tools: bool = False
    """Whether the source lists tools; calls show it, too."""
    submitted: bool | None = None
    """Whether the agent submitted its results, if the source says so without a call that does."""
    wall_time_s: float | None = None
    """As stated by the source; otherwise the latest time given to `elapsed` counts."""
    lost: Counter[str] = field(default_factory=Counter)
    """What conversation.json has no place for, with how often it occurred."""
    odd: Counter[str] = field(default_factory=Counter)
    """What is carried over and needs a look, likewise."""
    files_beside: tuple[Path, ...] = ()
    """Further files of the source that were read for this run."""
    n_empty_turns: int = 0
    """Turns with neither text, call nor reasoning."""
    n_unread_calls: int = 0
    """Calls of the source whose shape is unknown."""
    _turns: list[_Turn] = field(default_factory=list)
    _open_calls: dict[str, list[tuple[_Turn, int]]] = field(default_factory=dict)
    """Calls by id, those of the latest turn last."""
    _start: float | None = None
    _latest: float = 0.0
    _latest_action: float | None = None
    """When the agent or one of its calls last ended."""
    _waiting_s: float = 0.0

    @property
    def turns(self) -> int:
        """The number of assistant messages so far."""
        return len(self._turns)

    @property
    def n_calls(self) -> int:
        """The number of calls so far that can be read."""
        return sum(len(turn.calls) for turn in self._turns)

    def count_unread_call(self) -> None:
        """Count a call that is left out because its shape is unknown."""
        self.n_unread_calls += 1
        self.lost["calls of an unknown shape"] += 1

    def elapsed(self, timestamp: Any) -> float | None:
        """Seconds since the first timestamp given to this method; None if it is not a time.

        A timestamp is an ISO 8601 text or a Unix time (`fields.unix_time`).
        """
        seconds = unix_time(timestamp)
        if seconds is None:
            return None
        if self._start is None:
            self._start = seconds
        self._latest = max(self._latest, seconds - self._start)
        return seconds - self._start

    def identity(self) -> dict[str, Any]:
        """What the run is, as a header of an exported file; `read_identity` takes it back."""
        values = {name: getattr(self, attribute) for name, attribute in _IDENTITY.items()}
        if self.part_of:
            values["id"] = self.name
        return {name: value for name, value in values.items() if value is not None}

    def read_identity(self, header: dict[str, Any]) -> None:
        """Take what the header of a file says of the run."""
        for name, attribute in _IDENTITY.items():
            if text_or_none(header.get(name)):
                setattr(self, attribute, header[name])
        repeat = count(header.get("repeat_idx"))
        self.repeat = self.repeat if repeat is None else repeat

    def reply_facts(self) -> list[dict[str, Any]]:
        """What is known of each reply, in the trace's fields: tokens, cost, time, why it ended."""
        return [turn.event for turn in self._turns]

    def add_outcomes(self, value: Any, source: str, name: str = "") -> None:
        """Keep what the source found out about the run.

        Each number, flag and short text in `value` becomes an outcome; its name is made of `name`
        and the keys around it. Lists, long texts and everything beyond the limit count as lost.
        """
        for key, outcome in flatten_outcomes(value, f"{self.format} {source}".strip(), name):
            if outcome is None:
                self.lost[f"field {key}"] += 1
            elif len(self.outcomes) >= MAX_OUTCOMES and key not in self.outcomes:
                self.lost[f"outcomes beyond the first {MAX_OUTCOMES}"] += 1
            else:
                self.outcomes[key] = outcome

    def add_totals(self, **values: Any) -> None:
        """Keep totals of the run, by their names in `totals`; ignores what is not an amount.

        Of running totals that are stated again and again, the largest counts. What they mean beside
        the numbers of the turns is decided by `run_totals`.
        """
        for name, value in values.items():
            total = amount(value)
            if total is not None:
                self.totals[name] = max(total, self.totals.get(name, 0.0))

    def system(self, content: Any) -> None:
        """A system message: the system prompt if it is text and comes first, else a message."""
        is_first = self.system_prompt is None and not self.messages
        if is_first and isinstance(content, str) and content.strip():
            self.system_prompt = content
        elif content:
            self.messages.append({"role": "system", "content": content})

    def user(self, content: Any, ts: float | None = None) -> None:
        """A user message: text, or a list of content blocks.

        `ts` is when a person wrote it, in seconds since the start: the time since the agent's last
        action was spent waiting.
        """
        if ts is not None and self._latest_action is not None:
            self._waiting_s += max(0.0, ts - self._latest_action)
            self._latest_action = ts
        if content:
            self._count_blocks(content)
            self.messages.append({"role": "user", "content": content})

    def add_usage(self, tokens: CallTokens | None, cost_usd: Any = None) -> None:
        """Add what the last reply took."""
        event = self._turns[-1].event
        if tokens is not None:
            counts = {"input_tokens": tokens.input, "output_tokens": tokens.output}
            counts["cached_tokens"] = tokens.cache_read or None
            event.update({key: n for key, n in counts.items() if n is not None})
        if amount(cost_usd):
            event["cost_usd"] = amount(cost_usd)

    def add_finish(self, finish: Any) -> None:
        """Add why the last reply ended, in the harness's words."""
        if isinstance(finish, str) and finish:
            self._turns[-1].event["finish_reason"] = _FINISH_REASONS.get(finish, finish)

    def message(self, message: dict[str, Any]) -> None:
        """A message that already has the chat shape and is neither a reply nor a result."""
        self._count_blocks(message.get("content"))
        self.messages.append(message)

    def context(self, role: Any, content: Any, n_calls: int = 0) -> None:
        """A reply or a result that the agent was shown but that is not of this run.

        It is no turn; its text is kept as a message with the role "context".
        """
        text = content_text(content)
        self.odd[f"messages of earlier history ({role}), which are no turns"] += 1
        if n_calls:
            self.lost["calls of earlier history"] += n_calls
        if text:
            self.messages.append({"role": "context", "from": str(role), "content": text})

    def assistant(
        self,
        content: Any,
        calls: Iterable[Call] = (),
        *,
        reasoning: str | list[dict[str, Any]] | None = None,
        ts: float | None = None,
        tokens: CallTokens | None = None,
        cost_usd: Any = None,
        finish: Any = None,
        speaker: str | None = None,
    ) -> None:
        """An assistant message with its tool calls.

        `reasoning` is text, or blocks as chat logs keep them under `reasoning_details`. `ts` is
        seconds since the start (`elapsed`), `finish` why the reply ended, `speaker` who spoke where
        several agents do.
        """
        calls = list(calls)
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if speaker:
            message["name"] = speaker
        if reasoning:
            key = "reasoning_content" if isinstance(reasoning, str) else "reasoning_details"
            message[key] = reasoning
        if calls:
            message["tool_calls"] = [_chat_call(call) for call in calls]
        self.chat_assistant(message, calls)
        event = self._turns[-1].event
        event.update(_time_field(ts))
        self._note_action(ts)
        self.add_usage(tokens, cost_usd)
        self.add_finish(finish)

    def chat_assistant(self, message: dict[str, Any], calls: list[Call]) -> None:
        """An assistant message that already has the chat shape; `calls` repeats its calls."""
        self._count_blocks(message.get("content"))
        stated_calls = message.get("tool_calls")
        if isinstance(stated_calls, list):
            for call in stated_calls:
                if not is_readable_call(call):
                    self.count_unread_call()
        has_calls = calls or stated_calls or message.get("function_call")
        if not has_calls and not message_text(message).strip():
            self.odd["turns with neither text nor call"] += 1
            self.n_empty_turns += not message_reasoning(message)
        self.messages.append(message)
        turn = _Turn({}, calls)
        self._turns.append(turn)
        # Results take calls of one id from the end of the list: the first call must come last.
        for position, call in reversed(list(enumerate(calls))):
            if call.id is not None:
                self._open_calls.setdefault(call.id, []).append((turn, position))

    def result(
        self,
        call_id: str | None,
        text: Any,
        *,
        stderr: str = "",
        exit_code: Any = None,
        kind: AnswerKind | None = None,
        ts: float | None = None,
        exec_time_s: float | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        """The result of a tool call; without an id, of the last turn's first open call.

        `text` is its output, or a list of content blocks. An `exit_code` that is not an integer is
        unknown. `kind` is how the call went by the source's own mark, None without one. The text of
        a call that did not succeed counts as stderr unless `stderr` is given. A result in the
        harness's own JSON is kept as it is, with the mark beside it. `extra` are further fields of
        the message.
        """
        turn, position = self._take_open_call(call_id)
        output = self._result_text(text)
        body = parse_object(output)
        is_submission = turn is not None and _kind(turn.calls[position]) == "submit"
        is_harness_json = bool(body) and (is_submission or bool(RESULT_KEYS & set(body)))
        if is_harness_json and not stderr and exit_code is None:
            content = output
            code = integer_exit_code(body.get("exit_code"), [], "")
            extra = {**mark_fields(kind if code is None else None), **(extra or {})}
        else:
            code = integer_exit_code(exit_code, [], "")
            result: dict[str, Any] = {"exit_code": code, "stdout": output, "stderr": stderr}
            if kind in FAILED_KINDS and not stderr:
                result |= {"stdout": "", "stderr": output}
            content = json.dumps({**result, **mark_fields(kind)}, ensure_ascii=False)
        message = {"role": "tool", "tool_call_id": call_id, "content": content, **(extra or {})}
        self.messages.append(message)
        self._note_action(ts)
        if turn is not None:
            seconds = None if exec_time_s is None else round(exec_time_s, 3)
            turn.results[position] = {
                **_time_field(ts),
                "exit_code": code,
                "exec_time_s": seconds,
            }

    def events(self) -> list[dict[str, Any]]:
        """The lines of trace.jsonl: what is known of each reply and execution."""
        lines: list[dict[str, Any]] = []
        for index, turn in enumerate(self._turns, 1):
            if turn.event:
                lines.append({"type": "api_call", "turn": index, **turn.event})
            lines += _execution_events(index, turn)
        seconds = self.wall_time_s
        if seconds is None:
            seconds = self._latest or None
        if seconds is not None and seconds >= 0:
            end = {"type": "run_end", "wall_time_s": round(seconds, 3)}
            if self._waiting_s:
                end["active_time_s"] = round(max(0.0, seconds - self._waiting_s), 3)
            lines.append(end)
        return lines

    def run_totals(self) -> dict[str, RunTotal]:
        """Tokens and cost of the run by name, from what the source states and its turns sum to."""
        events = [turn.event for turn in self._turns]
        return {
            name: run_total(
                self.totals.get(name), [number(event.get(name)) for event in events], label
            )
            for name, label in _TOTALS.items()
        }

    def notes(self) -> list[str]:
        """What a user should know of the run beyond what was lost, in short texts."""
        notes = [f"{n} {label}" for label, n in (+self.odd).items()]
        notes += [total.note for total in self.run_totals().values() if total.note]
        if self._waiting_s >= _MIN_WAITING_S:
            notes.append(
                f"{self._waiting_s:,.0f} s of waiting for a message of the user in its wall time"
            )
        return notes

    def _note_action(self, ts: float | None) -> None:
        if ts is not None:
            self._latest_action = max(ts, self._latest_action or 0.0)

    def _count_blocks(self, content: Any) -> None:
        """Count content blocks that have no text, by their type."""
        for block in as_objects(content):
            kind = str(block.get("type") or "no type")[:40]
            has_text = content_text([block]) not in ("", "[image]")
            is_thought = bool(message_reasoning({"content": [block]}))
            if kind not in _CALL_BLOCKS and not has_text and not is_thought:
                self.odd[f"blocks without text ({kind})"] += 1

    def _take_open_call(self, call_id: str | None) -> tuple[_Turn | None, int]:
        """The open call with this id, of the latest turn; without an id, the last turn's first."""
        if call_id is not None:
            calls = self._open_calls.get(call_id)
            return calls.pop() if calls else (None, 0)
        if not self._turns:
            return None, 0
        turn = self._turns[-1]
        while turn.first_open in turn.results:
            turn.first_open += 1
        return (turn, turn.first_open) if turn.first_open < len(turn.calls) else (None, 0)

    def _result_text(self, content: Any) -> str:
        """The text of a result; blocks without text count as lost."""
        if isinstance(content, list):
            blocks = [block for block in content if isinstance(block, dict)]
            for block in blocks:
                if content_text([block]) in ("", "[image]"):
                    kind = str(block.get("type") or "no type")[:40]
                    self.lost[f"blocks of tool results without text ({kind})"] += 1
        return content_text(content)


def _execution_events(number: int, turn: _Turn) -> list[dict[str, Any]]:
    """A line for each execution of a turn; none if no time of any of them is known."""
    executions = [
        (call, turn.results.get(position, {}))
        for position, call in enumerate(turn.calls)
        if _kind(call) == "execute"
    ]
    if not any("ts" in result or result.get("exec_time_s") is not None for _, result in executions):
        return []
    return [
        {
            "type": "code_exec",
            "turn": number,
            "language": make_action(call.name, call.arguments, None).language,
            "exit_code": None,
            "exec_time_s": None,
            **result,
        }
        for call, result in executions
    ]


def mark_fields(kind: AnswerKind | None) -> dict[str, Any]:
    """The fields that keep how a call went: `is_error`, and `kind` where that says more."""
    if kind is None or kind == "unknown":
        return {}
    mark: dict[str, Any] = {"is_error": kind in FAILED_KINDS}
    return mark if kind in ("ok", "failed") else {**mark, "kind": kind}


def _time_field(ts: float | None) -> dict[str, Any]:
    return {"ts": round(ts, 3)} if ts is not None and ts >= 0 else {}


def _chat_call(call: Call) -> dict[str, Any]:
    """A call in OpenAI's chat shape."""
    arguments = call.arguments
    if not isinstance(arguments, str):
        arguments = json.dumps({} if arguments is None else arguments, ensure_ascii=False)
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _kind(call: Call) -> str:
    return make_action(call.name, call.arguments, None).kind


def parse_call(call: dict[str, Any]) -> Call:
    """A tool call, under whatever names a format uses for its name, arguments and id."""
    call = as_object(call.get("tool_call")) or call
    function = as_object(call.get("function")) or call
    names = [content_text(function.get(key)) for key in ("name", "function_name", "function")]
    names = [name for name in names if name]
    return Call(
        name=names[0] if names else "unknown",
        arguments=first_of(function, "arguments", "input", "args"),
        id=as_id(call.get("id")) or as_id(call.get("tool_call_id")),
    )
