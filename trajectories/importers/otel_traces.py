"""Traces of agents: OpenTelemetry's GenAI spans (OTLP JSON), and exports of Langfuse and Phoenix.

Each trace is a run, and each call of a model a turn. Every call repeats the conversation so far, so
only what is new in its input is read: user messages, and results of tools. The tools' own
spans have their seconds, and the results that no later call was sent. Source: OpenTelemetry
semantic conventions for generative AI (input and output messages, from 1.37, and the indexed
`gen_ai.prompt` before), OpenInference specification.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..models import FAILED_KINDS, AnswerKind
from ..reading.answer_marks import kind_of_error, stated_kind
from ..reading.json_bytes import text_or_none
from ..reading.messages import content_text
from . import Importer
from .draft import Call, Draft, parse_call
from .fields import as_id, as_object, as_objects, first_of
from .files import documents
from .recognise import has_keys
from .spans import Span, indexed_objects, parse_json_text, read_scores, read_spans

_EXPECTED = "expected OTLP JSON (`resourceSpans`), Langfuse observations, or Phoenix spans"
_INPUT = (
    "gen_ai.input.messages",
    "gen_ai.input_messages",
    "llm.input_messages",
    "gen_ai.prompt",
    "input.value",
    "langfuse.observation.input",
)
_OUTPUT = (
    "gen_ai.output.messages",
    "gen_ai.output_messages",
    "llm.output_messages",
    "gen_ai.completion",
    "output.value",
    "langfuse.observation.output",
)
_INPUT_TOKENS = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "usage.input",
    "usage.promptTokens",
)
_OUTPUT_TOKENS = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "usage.output",
    "usage.completionTokens",
)
_MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "model")


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
        draft = _draft(trace or path.stem, spans)
        for name, value in scores.get(trace, ()):
            draft.add_outcomes(value, "scores", name)
        if draft.turns:
            yield draft
            continue
        yield InputError(
            f"trace {trace[:40]}: holds no call of a model with its messages",
            "the messages of models' calls are not in it: was the capture of contents switched on?",
            path,
        )


def _draft(trace: str, spans: list[Span]) -> Draft:
    draft = Draft(trace, "otel")
    spans = sorted(spans, key=lambda span: 0.0 if span.start is None else span.start)
    draft.agent = _agent(spans)
    for span in spans:
        _add_evaluations(draft, span)
    conversation = _Conversation(draft, _tool_spans(spans))
    for span in spans:
        draft.elapsed(span.start)
        ended = draft.elapsed(span.end)
        if span.kind == "llm":
            conversation.add_model_call(span, ended)
    conversation.add_unsent_results()
    return draft


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

    def add_model_call(self, span: Span, ended: float | None) -> None:
        """Add what a call of a model was sent for the first time, and its reply."""
        self._draft.model = self._draft.model or text_or_none(span.get(*_MODEL))
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
        replies = _messages(span.get(*_OUTPUT), default_role="assistant")
        if replies:
            self._add_reply(replies[0], span, ended)

    def _add_input(self, message: dict[str, Any]) -> None:
        role, results = message.get("role"), list(_results(message))
        for call_id, result, kind in results:
            self._add_result(call_id, result, kind)
        if role == "system":
            self._draft.system(_text(message))
        elif role == "assistant":
            self._draft.assistant(_text(message) or None, _calls(message))
        elif not results:
            self._draft.user(_text(message))

    def _add_reply(self, message: dict[str, Any], span: Span, ended: float | None) -> None:
        self._messages[_message_key(message)] += 1
        calls = _calls(message)
        thoughts = [
            content_text(part.get("content"))
            for part in _parts(message)
            if part.get("type") == "reasoning"
        ]
        self._draft.assistant(
            _text(message) or None,
            calls,
            reasoning="\n".join(thoughts),
            ts=ended,
            input_tokens=span.get(*_INPUT_TOKENS),
            output_tokens=span.get(*_OUTPUT_TOKENS),
            finish=message.get("finish_reason"),
        )
        for call in calls:
            if call.id:
                self._open_calls[call.id] = None

    def _add_result(self, call_id: str | None, result: Any, kind: AnswerKind | None = None) -> None:
        span = self._tool_spans.get(call_id or "")
        seconds = None
        if span is not None and span.start is not None and span.end is not None:
            seconds = span.end - span.start
        if not isinstance(result, str | list):
            result = json.dumps(result, ensure_ascii=False)
        if span is not None and span.failed and kind not in FAILED_KINDS:
            kind = kind_of_error(span.get("error.type") or True)
        self._draft.result(call_id, result, kind=kind, exec_time_s=seconds)
        self._open_calls.pop(call_id or "", None)

    def add_unsent_results(self) -> None:
        """Add the results that only the tools' own spans have."""
        for call_id in list(self._open_calls):
            span = self._tool_spans.get(call_id)
            if span is not None:
                result = span.get("gen_ai.tool.call.result", "output.value")
                if result is not None:
                    self._add_result(call_id, result)


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
    parts = indexed_objects(parse_json_text(message.get("parts")))
    return parts or indexed_objects(parse_json_text(message.get("content")))


def _text(message: Any) -> str:
    """The text of a message, or of a list of parts."""
    if isinstance(message, list):
        message = {"parts": message}
    message = as_object(message)
    parts = _parts(message)
    if not parts:
        return content_text(message.get("content"))
    texts = (
        part.get("content") or part.get("text")
        for part in parts
        if str(part.get("type", "text")) == "text"
    )
    return "\n".join(text for text in texts if isinstance(text, str))


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
