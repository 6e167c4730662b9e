"""Traces of agents: OpenTelemetry's GenAI spans (OTLP JSON), and exports of Langfuse and Phoenix.

Each trace is a run, and each call of a model a turn; agents inside the main one are runs of their
own (`agent_spans`). Every call repeats the conversation so far, so only what is new in its input is
read: user messages, and results of tools. Replies that stand in an input and that no call of the
trace made are context. The tools' own spans have their seconds, and the results that no later call
was sent. Source: OpenTelemetry
semantic conventions for generative AI (input and output messages, from 1.37, and the indexed
`gen_ai.prompt` before), OpenInference specification.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import InputError
from ..models import FAILED_KINDS, AnswerKind
from ..reading.answer_marks import kind_of_error, stated_kind
from ..reading.json_bytes import text_or_none
from ..reading.messages import content_text
from ..token_counts import CallTokens, call_tokens
from . import Importer
from .agent_spans import AgentPath, spans_by_agent
from .draft import Call, Draft, parse_call
from .fields import as_id, as_object, as_objects, first_of
from .files import documents, source_name
from .recognise import has_keys
from .spans import OUTPUT, Span, indexed_objects, parse_json_text, read_scores, read_spans
from .usage import usage_tokens

_EXPECTED = "expected OTLP JSON (`resourceSpans`), Langfuse observations, or Phoenix spans"
_INPUT = (
    "gen_ai.input.messages",
    "gen_ai.input_messages",
    "llm.input_messages",
    "gen_ai.prompt",
    "input.value",
    "langfuse.observation.input",
)
_INPUT_TOKENS = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
)
_OUTPUT_TOKENS = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
)
_TOTAL_TOKENS = (
    "gen_ai.usage.total_tokens",
    "llm.usage.total_tokens",
    "llm.token_count.total",
)
_CACHE_READ = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.cached_tokens",
    "llm.token_count.prompt_details.cache_read",
)
_CACHE_WRITE = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "llm.token_count.prompt_details.cache_write",
)
_REASONING = (
    "gen_ai.usage.reasoning_tokens",
    "gen_ai.usage.output_tokens.reasoning",
    "llm.token_count.completion_details.reasoning",
)
_COST = ("cost.total", "cost.details.total", "llm.cost.total", "gen_ai.usage.cost")
_STRUCTURE = (
    "",
    "CHAIN",
    "SPAN",
    "AGENT",
    "INVOKE_AGENT",
    "CREATE_AGENT",
    "INVOKE_WORKFLOW",
    "TASK",
)
"""Spans that only hold others together."""
_MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "model")


_READ_PARTS = (
    "text",
    "reasoning",
    "tool_call",
    "tool_use",
    "tool_call_response",
    "tool_result",
)


def read(path: Path) -> Iterator[Draft | InputError]:
    """Every trace of the file; one without a model's call with messages is yielded as an error."""
    traces: dict[str, list[Span]] = {}
    scores: dict[str | None, list[tuple[str, Any]]] = {}
    for document in documents(path):
        if isinstance(document, InputError):
            yield document
            continue
        for span in read_spans(document.value):
            traces.setdefault(span.trace, []).append(span)
        for trace, name, value in read_scores(document.value):
            scores.setdefault(trace, []).append((name, value))
    if not traces:
        raise InputError("holds no spans", _EXPECTED, path)
    for trace, spans in traces.items():
        drafts = _drafts(trace or source_name(path), spans)
        for draft in drafts[:1]:
            for name, value in scores.get(trace, ()):
                draft.add_outcomes(value, "scores", name)
        if drafts:
            yield from drafts
            continue
        yield InputError(
            f"trace {trace[:40]}: holds no call of a model with its messages",
            "the messages of models' calls are not in it: was the capture of contents switched on?",
            path,
        )


def _drafts(trace: str, spans: list[Span]) -> list[Draft]:
    """The run of the main agent, then those of its sub-agents; none without a reply."""
    spans = sorted(spans, key=lambda span: 0.0 if span.start is None else span.start)
    tools = _tool_spans(spans)
    names: dict[AgentPath, str] = {}
    drafts: list[Draft] = []
    for calls in spans_by_agent(spans):
        name = f"{trace}-{calls.path[-1]}" if calls.path else trace
        draft = Draft(name, "otel", part_of=_outer_run(calls.path, names) if drafts else None)
        names[calls.path] = name
        draft.agent = calls.agent if calls.path else _agent(spans)
        if not drafts:  # the trace's seconds count from its first span
            draft.elapsed(spans[0].start)
        conversation = _Conversation(draft, tools)
        for span, speaker in zip(calls.calls, calls.speakers, strict=True):
            draft.elapsed(span.start)
            conversation.add_model_call(span, draft.elapsed(span.end), speaker)
        conversation.finish()
        if draft.turns:
            drafts.append(draft)
    for draft in drafts[:1]:
        _add_trace(draft, spans)
    return drafts


def _outer_run(path: AgentPath, names: dict[AgentPath, str]) -> str | None:
    """The name of the run of the next agent around a path that has one."""
    for length in range(len(path) - 1, -1, -1):
        if path[:length] in names:
            return names[path[:length]]
    return next(iter(names.values()), None)


def _add_trace(draft: Draft, spans: list[Span]) -> None:
    """Add what the whole trace says: evaluations, seconds, and spans that are not read."""
    for span in spans:
        draft.elapsed(span.start)
        draft.elapsed(span.end)
        _add_evaluations(draft, span)
        if not span.kind and span.operation.upper() not in _STRUCTURE:
            draft.lost[f"spans of kind {span.operation[:40]}"] += 1


def _agent(spans: list[Span]) -> str | None:
    """The first agent that a span names, else the first service."""
    agents = [text_or_none(span.get("gen_ai.agent.name", "agent.name")) for span in spans]
    services = [text_or_none(span.attributes.get("_service")) for span in spans]
    for name in (*agents, *services):
        if name:
            return name
    return None


def _add_evaluations(draft: Draft, span: Span) -> None:
    """Add the results of evaluations that a span has as events."""
    for event in as_objects(span.attributes.get("_evaluations")):
        evaluation = as_object(as_object(event.get("gen_ai")).get("evaluation"))
        value = first_of(as_object(evaluation.get("score")), "value", "label")
        name = content_text(evaluation.get("name")) or "evaluation"
        draft.add_outcomes(value, "gen_ai.evaluation.result", name)


def _tool_spans(spans: list[Span]) -> dict[str, Span]:
    """The spans of tools by call id."""
    by_id = {}
    for span in spans:
        call_id = as_id(span.get("gen_ai.tool.call.id", "tool_call.id"))
        if span.kind == "tool" and call_id:
            by_id[call_id] = span
    return by_id


class _ModelCall(NamedTuple):
    """A call of a model, when it ended, and the agent that made it if there are several."""

    span: Span
    ended: float | None
    speaker: str | None


class _Conversation:
    """The conversation that the model calls of a trace show, each message once."""

    def __init__(self, draft: Draft, tool_spans: dict[str, Span]) -> None:
        self._draft = draft
        self._tool_spans = tool_spans
        self._messages: Counter[str] = Counter()
        """How often each message occurs in the conversation so far."""
        self._has_system_prompt = False
        self._open_calls: dict[str, None] = {}
        """Ids of calls without a result so far, in order."""
        self._call_ids: set[str] = set()
        self._unrecorded: list[_ModelCall] = []
        """Calls whose spans lack the reply, which the next call's input may show."""

    def add_model_call(self, span: Span, ended: float | None, speaker: str | None) -> None:
        """Add what a call of a model was sent for the first time, and its reply."""
        self._draft.model = self._draft.model or text_or_none(span.get(*_MODEL))
        tools = span.get("gen_ai.tool.definitions", "llm.tools", "llm.request.functions")
        self._draft.has_tools = self._draft.has_tools or bool(tools)
        system = _text(span.get("gen_ai.system_instructions"))
        if system and not self._has_system_prompt:
            self._has_system_prompt = True
            self._draft.system(system)
        in_input: Counter[str] = Counter()
        for message in _messages(span.get(*_INPUT)):
            key = _message_key(message)
            in_input[key] += 1
            if in_input[key] > self._messages[key]:
                self._messages[key] += 1
                self._add_input(message)
        self._drop_unrecorded()
        replies = _messages(span.get(*OUTPUT), default_role="assistant")
        call = _ModelCall(span, ended, speaker)
        if not replies:
            self._unrecorded.append(call)
            return
        self._messages[_message_key(replies[0])] += 1
        self._add_reply(replies[0], call)
        if len(replies) > 1:
            self._draft.lost["further replies to one request"] += len(replies) - 1

    def finish(self) -> None:
        """Add the results that only the tools' own spans have."""
        self._drop_unrecorded()
        for call_id in list(self._open_calls):
            span = self._tool_spans.get(call_id)
            if span is not None:
                result = span.get("gen_ai.tool.call.result", "output.value")
                if result is not None or span.failed:
                    self._add_result(call_id, "" if result is None else result)

    def _drop_unrecorded(self) -> None:
        """Name the calls without a reply, neither in their span nor in what came next."""
        if self._unrecorded:
            self._draft.lost["model calls without a recorded reply"] += len(self._unrecorded)
            self._unrecorded.clear()

    def _add_input(self, message: dict[str, Any]) -> None:
        role, results = message.get("role"), list(_results(message))
        for call_id, result, kind in results:
            if call_id is None or call_id in self._call_ids:
                self._add_result(call_id, result, kind)
            else:
                self._draft.context("tool", _result_text(result))
        if role == "system":
            self._draft.system(_text(message))
        elif role == "assistant" and self._unrecorded:  # the reply that its own span lacks
            self._add_reply(message, self._unrecorded.pop(0))
        elif role == "assistant":
            self._draft.context("assistant", _text(message), len(_calls(message)))
        elif not results:
            self._draft.user(_text(message))
        self._count_parts(message)

    def _count_parts(self, message: dict[str, Any]) -> None:
        """Count the parts of a message that have no text, by type."""
        for part in _parts(message):
            kind = str(part.get("type", "text"))
            if kind not in _READ_PARTS and _part_text(part) in ("", "[image]"):
                self._draft.odd[f"blocks without text ({kind[:40]})"] += 1

    def _add_reply(self, message: dict[str, Any], call: _ModelCall) -> None:
        calls, span = _calls(message), call.span
        self._count_parts(message)
        thoughts = [
            content_text(part.get("content"))
            for part in _parts(message)
            if part.get("type") == "reasoning"
        ]
        self._draft.assistant(
            _text(message) or None,
            calls,
            reasoning="\n".join(thoughts),
            ts=call.ended,
            tokens=_tokens(span),
            cost_usd=span.get(*_COST),
            finish=message.get("finish_reason"),
            speaker=call.speaker,
        )
        for tool_call in calls:
            if tool_call.id:
                self._open_calls[tool_call.id] = None
                self._call_ids.add(tool_call.id)

    def _add_result(self, call_id: str | None, result: Any, kind: AnswerKind | None = None) -> None:
        span = self._tool_spans.get(call_id or "")
        seconds = None
        if span is not None and span.start is not None and span.end is not None:
            seconds = span.end - span.start
        if span is not None and span.failed and kind not in FAILED_KINDS:
            kind = kind_of_error(span.get("error.type") or True)
        self._draft.result(call_id, _result_text(result), kind=kind, exec_time_s=seconds)
        self._open_calls.pop(call_id or "", None)


def _tokens(span: Span) -> CallTokens | None:
    """The tokens of a call: attributes as OpenTelemetry and OpenInference name them, or a usage."""
    usage = span.get("usage")
    if usage:  # Langfuse's, whose parts add up
        return usage_tokens(usage, cache="beside", reasoning="beside")
    return call_tokens(
        span.get(*_INPUT_TOKENS),
        span.get(*_OUTPUT_TOKENS),
        total=span.get(*_TOTAL_TOKENS),
        cache_read=span.get(*_CACHE_READ),
        cache_write=span.get(*_CACHE_WRITE),
        reasoning=span.get(*_REASONING),
    )


def _result_text(result: Any) -> Any:
    return result if isinstance(result, str | list) else json.dumps(result, ensure_ascii=False)


def _message_key(message: dict[str, Any]) -> str:
    """What tells a message from others: its role, its text, and the tools that it calls."""
    tools = [call.name for call in _calls(message)]
    return json.dumps([message.get("role"), _text(message), tools], sort_keys=True)


def _messages(value: Any, default_role: str = "user") -> list[dict[str, Any]]:
    """Messages of any of the shapes; a bare text is one of `default_role`."""
    if isinstance(value, str):
        return [{"role": default_role, "content": value}] if value.strip() else []
    header = as_object(value)
    for key in ("messages", "choices"):
        if isinstance(header.get(key), list):
            value = [_unwrap_message(item) for item in as_objects(header[key])]
    messages = indexed_objects(value)
    if not messages and not {"content", "tool_calls", "parts"}.isdisjoint(header):
        messages = [header]
    return [_unwrap_message(item) for item in messages]


def _unwrap_message(item: dict[str, Any]) -> dict[str, Any]:
    return as_object(item.get("message")) or item


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    for key in ("parts", "content", "contents"):
        parts = indexed_objects(parse_json_text(message.get(key)))
        if parts:
            return [as_object(part.get("message_content")) or part for part in parts]
    return []


def _text(message: Any) -> str:
    """The text of a message, or of a list of parts."""
    if isinstance(message, list):
        message = {"parts": message}
    message = as_object(message)
    parts = _parts(message)
    if not parts:
        return content_text(message.get("content"))
    texts = [_part_text(part) for part in parts]
    return "\n".join(text for text in texts if text)


def _part_text(part: dict[str, Any]) -> str:
    """The text of a part; "[image]" for an image, "" for calls, results and thoughts."""
    kind = str(part.get("type", "text"))
    if kind in ("text", "output_text", "input_text", "refusal"):
        text = part.get("content") or part.get("text") or part.get("refusal")
        return text if isinstance(text, str) else ""
    modality = part.get("modality")
    return "[image]" if "image" in kind or modality == "image" else ""


def _calls(message: dict[str, Any]) -> list[Call]:
    calls = [part for part in _parts(message) if part.get("type") in ("tool_call", "tool_use")]
    calls += indexed_objects(message.get("tool_calls"))
    return [parse_call(call) for call in calls]


def _results(message: dict[str, Any]) -> Iterator[tuple[str | None, Any, AnswerKind | None]]:
    """The call id, the result and its mark, for each result of a message."""
    parts = _parts(message)
    for part in parts:
        if part.get("type") in ("tool_call_response", "tool_result"):
            result = first_of(part, "response", "result", "content")
            call_id = as_id(part.get("id") or part.get("tool_use_id"))
            yield call_id, "" if result is None else result, stated_kind(part)
    has_responses = any(part.get("type") == "tool_call_response" for part in parts)
    if message.get("role") == "tool" and not has_responses:
        yield as_id(message.get("tool_call_id")), _text(message), stated_kind(message)


IMPORTER = Importer(
    read,
    (".json", ".jsonl"),
    has_keys(
        "resourceSpans",
        "resource_spans",
        "traceId type=GENERATION",
        "trace_id type=GENERATION",
        "observations.type=GENERATION",
        "context.trace_id span_kind",
        "data.context.trace_id data.span_kind",
    ),
)
