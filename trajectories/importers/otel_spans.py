"""Traces of agents: OpenTelemetry's GenAI spans (OTLP JSON), and the exports of Langfuse and
Phoenix; one run a trace.

Every call of a model is a turn. As each call is sent the whole conversation again, of its input
only what was not there before is taken: user messages, and answers to tools. Tools' own spans bring
their seconds, and the answers that no later call was sent. Source: OpenTelemetry semantic
conventions for generative AI (input and output messages, 1.37 on, and the indexed_objects `gen_ai.prompt`
before), OpenInference specification.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..reading.json_bytes import text_or_none
from ..reading.messages import content_text
from . import Importer
from .draft import Call, Draft, parse_call
from .fields import as_id, as_object, as_objects
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
_TOKENS = (
    (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "usage.input",
        "usage.promptTokens",
    ),
    (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "usage.output",
        "usage.completionTokens",
    ),
)


def read(path: Path) -> Iterator[Draft | InputError]:
    """Every trace of the file; a trace without a model's call with messages comes as an error."""
    traces: dict[str, list[Span]] = {}
    scores: dict[str | None, list[tuple[str, Any]]] = {}
    for item in documents(path):
        if isinstance(item, InputError):
            yield item
            continue
        for span in read_spans(item.value):
            traces.setdefault(span.trace, []).append(span)
        for trace, name, value in read_scores(item.value):
            scores.setdefault(trace, []).append((name, value))
    if not traces:
        raise InputError("holds no spans", _EXPECTED, path)
    for trace, spans in traces.items():
        draft = _draft(trace or path.stem, spans)
        for name, value in scores.get(trace, ()):
            draft.add_outcomes(value, "scores", name)
        if not draft.turns:
            hint = (
                "the messages of models' calls are not in it: was the capture of contents"
                " switched on?"
            )
            yield InputError(
                f"trace {trace[:40]}: holds no call of a model with its messages", hint, path
            )
        else:
            yield draft


def _draft(trace: str, spans: list[Span]) -> Draft:
    draft = Draft(trace, "otel")
    spans = sorted(spans, key=lambda span: span.start if span.start is not None else 0.0)
    tools = {
        key: span
        for span in spans
        if span.kind == "tool" and (key := as_id(span.get("gen_ai.tool.call.id", "tool_call.id")))
    }
    for span in spans:
        draft.agent = draft.agent or text_or_none(span.get("gen_ai.agent.name", "agent.name"))
        for told in as_objects(span.attributes.get("_evaluations")):
            about = as_object(as_object(told.get("gen_ai")).get("evaluation"))
            score = as_object(about.get("score"))
            value = score.get("value") if score.get("value") is not None else score.get("label")
            draft.add_outcomes(
                value, "gen_ai.evaluation.result", content_text(about.get("name")) or "evaluation"
            )
    draft.agent = draft.agent or next(
        (name for s in spans if (name := text_or_none(s.attributes.get("_service")))), None
    )
    talk = _Talk(draft, tools)
    for span in spans:
        draft.elapsed(span.start)
        until = draft.elapsed(span.end)
        if span.kind == "llm":
            talk.take(span, until)
    talk.close()
    return draft


class _Talk:
    """The conversation that the calls of a trace show, each message once."""

    def __init__(self, draft: Draft, tools: dict[str, Span]) -> None:
        self.draft, self.tools = draft, tools
        self.known: Counter[str] = Counter()
        self.open: dict[str, None] = {}
        """Calls without an answer so far."""

    def take(self, span: Span, until: float | None) -> None:
        draft = self.draft
        draft.model = draft.model or text_or_none(
            span.get("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "model")
        )
        system = _said(span.get("gen_ai.system_instructions"))
        sent = _messages(span.get(*_INPUT))
        if system and not self.known["system"]:
            self.known["system"] += 1
            draft.system(system)
        here: Counter[str] = Counter()
        for message in sent:
            key = json.dumps(
                [message.get("role"), _said(message), [c.name for c in _calls(message)]],
                sort_keys=True,
            )
            here[key] += 1
            if here[key] > self.known[key]:
                self.known[key] += 1
                self._heard(message)
        for message in _messages(span.get(*_OUTPUT), "assistant")[:1]:
            calls = _calls(message)
            key = json.dumps(
                [message.get("role"), _said(message), [c.name for c in calls]], sort_keys=True
            )
            self.known[key] += 1
            thoughts = (part for part in _parts(message) if part.get("type") == "reasoning")
            thought = "\n".join(content_text(part.get("content")) for part in thoughts)
            used = [span.get(*names) for names in _TOKENS]
            draft.assistant(
                _said(message) or None,
                calls,
                reasoning=thought,
                ts=until,
                input_tokens=used[0],
                output_tokens=used[1],
                finish=message.get("finish_reason"),
            )
            self.open.update((call.id, None) for call in calls if call.id)

    def _heard(self, message: dict[str, Any]) -> None:
        """A message that a model was sent for the first time."""
        role, answers = message.get("role"), list(_answers(message))
        for call_id, text in answers:
            self._answer(call_id, text)
        if role == "system":
            self.draft.system(_said(message))
        elif role == "assistant":
            self.draft.assistant(_said(message) or None, _calls(message))
        elif not answers:
            self.draft.user(_said(message))

    def _answer(self, call_id: str | None, text: Any, failed: bool = False) -> None:
        ran = self.tools.get(call_id or "")
        seconds = (
            ran.end - ran.start if ran and ran.end is not None and ran.start is not None else None
        )
        said = text if isinstance(text, str | list) else json.dumps(text, ensure_ascii=False)
        self.draft.result(
            call_id, said, failed=failed or bool(ran and ran.failed), exec_time_s=seconds
        )
        self.open.pop(call_id or "", None)

    def close(self) -> None:
        """Answers that only the tools' own spans have."""
        for call_id in list(self.open):
            if (span := self.tools.get(call_id)) is not None:
                text = span.get("gen_ai.tool.call.result", "output.value")
                if text is not None:
                    self._answer(call_id, text)


def _messages(value: Any, role: str = "user") -> list[dict[str, Any]]:
    """Messages of any of the shapes, a bare text as one of `role`."""
    if isinstance(value, str):
        return [{"role": role, "content": value}] if value.strip() else []
    head = as_object(value)
    for key in ("messages", "choices"):
        if isinstance(head.get(key), list):
            value = [as_object(item.get("message")) or item for item in as_objects(head[key])]
    found = indexed_objects(value) or (
        [head] if "content" in head or "tool_calls" in head or "parts" in head else []
    )
    return [as_object(item.get("message")) or item for item in found]


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    return indexed_objects(parse_json_text(message.get("parts"))) or indexed_objects(
        parse_json_text(message.get("content"))
    )


def _said(message: Any) -> str:
    """The text of a message, or of a list of parts."""
    if isinstance(message, list):
        message = {"parts": message}
    parts = _parts(as_object(message))
    if not parts:
        return content_text(as_object(message).get("content"))
    texts = (
        part.get("content") or part.get("text")
        for part in parts
        if str(part.get("type", "text")) == "text"
    )
    return "\n".join(text for text in texts if isinstance(text, str))


def _calls(message: dict[str, Any]) -> list[Call]:
    found = [part for part in _parts(message) if part.get("type") in ("tool_call", "tool_use")]
    found += indexed_objects(message.get("tool_calls"))
    return [parse_call(call) for call in found]


def _answers(message: dict[str, Any]) -> Iterator[tuple[str | None, Any]]:
    for part in _parts(message):
        if part.get("type") in ("tool_call_response", "tool_result"):
            text = next(
                (
                    part[key]
                    for key in ("response", "result", "content")
                    if part.get(key) is not None
                ),
                "",
            )
            yield as_id(part.get("id") or part.get("tool_use_id")), text
    if message.get("role") == "tool" and not any(
        part.get("type") == "tool_call_response" for part in _parts(message)
    ):
        yield as_id(message.get("tool_call_id")), _said(message)


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
