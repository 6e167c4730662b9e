"""Reads the spans of traced agents into one shape: OTLP JSON, Langfuse observations, Phoenix spans.

A span is a call of a model, a call of a tool, or neither. Its attributes become nested objects,
whether an export writes flat keys (`llm.input_messages.0.message.role`) or nested ones. Source:
OpenTelemetry protocol (OTLP/JSON encoding), Langfuse API reference (observations, scores), Phoenix
`phoenix/trace/schemas.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from ..reading.json_bytes import loads, number, text_or_none
from .fields import as_id, as_object, as_objects, first_nonempty, first_of, unix_time

_MAX_KEY_PARTS = 12
_MAX_ITEMS = 10_000
_LLM = {"CHAT", "TEXT_COMPLETION", "GENERATE_CONTENT", "LLM", "GENERATION"}
_TOOL = {"EXECUTE_TOOL", "TOOL"}
_AGENT = {"INVOKE_AGENT", "AGENT"}
OUTPUT = (
    "gen_ai.output.messages",
    "gen_ai.output_messages",
    "llm.output_messages",
    "gen_ai.completion",
    "output.value",
    "langfuse.observation.output",
)
"""Attributes with what a model answered."""
_OPERATION_KEYS = (
    "gen_ai.operation.name",
    "openinference.span.kind",
    "langfuse.observation.type",
)


class Span(NamedTuple):
    """One span. Times are seconds since 1970."""

    trace: str
    id: str
    parent: str
    """The id of the span around it; "" without one."""
    kind: Literal["llm", "tool", "agent", ""]
    """"" for a span that only holds others together."""
    operation: str
    """What the source calls this kind of span."""
    name: str
    start: float | None
    end: float | None
    attributes: dict[str, Any]
    failed: bool = False

    @property
    def agent(self) -> str | None:
        """The agent that the span names; that of an agent's span is its own name, without one."""
        stated = text_or_none(self.get("gen_ai.agent.name", "agent.name"))
        return stated or (self.name or None if self.kind == "agent" else None)

    @property
    def has_reply(self) -> bool:
        """Whether the span holds what a model answered."""
        return self.get(*OUTPUT) is not None

    def get(self, *names: str) -> Any:
        """The first of these attributes that is not null; dots in a name separate nested keys.

        JSON text is returned as its value.
        """
        for name in names:
            value: Any = self.attributes
            for key in name.split("."):
                value = value.get(key) if isinstance(value, dict) else None
            if value is not None:
                return parse_json_text(value)
        return None


def parse_json_text(value: Any) -> Any:
    """The value of JSON text that is an object or a list; anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return loads(value)
        except ValueError:
            return value
    return value


def read_spans(value: Any) -> Iterator[Span]:
    """The spans in one JSON value of an export; none if it has another format."""
    header = as_object(value)
    if "resourceSpans" in header or "resource_spans" in header:
        yield from _read_otlp(header)
        return
    items = first_nonempty(header, "observations", "data", "spans")
    for item in as_objects(value) or as_objects(items) or [header]:
        trace = as_id(item.get("traceId") or item.get("trace_id")) or as_id(header.get("id"))
        has_content = "input" in item or "output" in item or "startTime" in item
        if isinstance(item.get("type"), str) and trace and has_content:
            yield _langfuse_span(item, trace)
        elif "span_kind" in item or "context" in item or "context.trace_id" in item:
            yield _phoenix_span(item)


def read_scores(value: Any) -> Iterator[tuple[str | None, str, Any]]:
    """The (trace, name, value) of Langfuse's scores beside the observations."""
    header = as_object(value)
    for score in as_objects(header.get("scores")):
        name = text_or_none(score.get("name"))
        if name:
            trace = as_id(score.get("traceId")) or as_id(header.get("id"))
            yield trace, name, first_of(score, "value", "stringValue")


def _read_otlp(header: dict[str, Any]) -> Iterator[Span]:
    for resource in as_objects(first_nonempty(header, "resourceSpans", "resource_spans")):
        attributes = _otlp_attributes(as_object(resource.get("resource")).get("attributes"))
        for scope in as_objects(first_nonempty(resource, "scopeSpans", "scope_spans")):
            for span in as_objects(scope.get("spans")):
                yield _otlp_span(span, service=attributes.get("service.name"))


def _otlp_span(span: dict[str, Any], service: Any) -> Span:
    attributes = _otlp_attributes(span.get("attributes"))
    evaluations = []
    for event in as_objects(span.get("events")):
        event_attributes = _otlp_attributes(event.get("attributes"))
        if event.get("name") == "gen_ai.evaluation.result":
            evaluations.append(_nest_keys(event_attributes))
        elif str(event.get("name")).startswith("gen_ai."):  # some exports keep messages in events
            attributes = {**event_attributes, **attributes}
    operation = str(first_nonempty(attributes, *_OPERATION_KEYS) or "")
    kind = _kind(operation)
    if not kind and any(key.startswith("gen_ai.prompt.") for key in attributes):
        kind = "llm"
    nested = _nest_keys(attributes)
    nested["_service"] = service
    if evaluations:
        nested["_evaluations"] = evaluations
    return Span(
        trace=as_id(first_nonempty(span, "traceId", "trace_id")) or "",
        id=as_id(first_nonempty(span, "spanId", "span_id")) or "",
        parent=as_id(first_nonempty(span, "parentSpanId", "parent_span_id")) or "",
        kind=kind,
        operation=operation,
        name=str(span.get("name") or ""),
        start=_seconds(span.get("startTimeUnixNano")),
        end=_seconds(span.get("endTimeUnixNano")),
        attributes=nested,
        failed=as_object(span.get("status")).get("code") in (2, "STATUS_CODE_ERROR"),
    )


def _langfuse_span(item: dict[str, Any], trace: str) -> Span:
    attributes = {
        "input": {"value": item.get("input")},
        "output": {"value": item.get("output")},
        "model": item.get("model") or item.get("providedModelName"),
        "metadata": parse_json_text(item.get("metadata")),
        "usage": parse_json_text(
            item.get("usageDetails") or item.get("usage_details") or item.get("usage")
        ),
        "cost": {
            "details": parse_json_text(item.get("costDetails") or item.get("cost_details")),
            "total": first_of(item, "calculatedTotalCost", "totalCost", "total_cost"),
        },
    }
    return Span(
        trace=trace,
        id=as_id(item.get("id")) or "",
        parent=as_id(item.get("parentObservationId") or item.get("parent_observation_id")) or "",
        kind=_kind(item["type"]),
        operation=item["type"],
        name=str(item.get("name") or ""),
        start=unix_time(item.get("startTime") or item.get("start_time")),
        end=unix_time(item.get("endTime") or item.get("end_time")),
        attributes=attributes,
        failed=item.get("level") == "ERROR",
    )


def _phoenix_span(item: dict[str, Any]) -> Span:
    flat = {
        key.removeprefix("attributes."): value
        for key, value in item.items()
        if key.startswith("attributes.")
    }
    nested = as_object(parse_json_text(item.get("attributes")))
    context = as_object(item.get("context"))
    return Span(
        trace=as_id(context.get("trace_id")) or as_id(item.get("context.trace_id")) or "",
        id=as_id(context.get("span_id") or item.get("context.span_id") or item.get("id")) or "",
        parent=as_id(item.get("parent_id")) or "",
        kind=_kind(item.get("span_kind")),
        operation=str(item.get("span_kind") or ""),
        name=str(item.get("name") or ""),
        start=unix_time(item.get("start_time")),
        end=unix_time(item.get("end_time")),
        attributes=_nest_keys({**nested, **flat}),
        failed=item.get("status_code") == "ERROR",
    )


def _kind(operation: Any) -> Literal["llm", "tool", "agent", ""]:
    name = str(operation).upper()
    if name in _LLM:
        return "llm"
    if name in _AGENT:
        return "agent"
    return "tool" if name in _TOOL else ""


def _otlp_attributes(attributes: Any) -> dict[str, Any]:
    """OTLP's list of keys and typed values as an object."""
    return {str(pair.get("key")): _otlp_value(pair.get("value")) for pair in as_objects(attributes)}


def _otlp_value(value: Any) -> Any:
    """The value in an OTLP value, which names its type."""
    typed = as_object(value)
    if "arrayValue" in typed:
        items = as_objects(as_object(typed["arrayValue"]).get("values"))
        return [_otlp_value(item) for item in items]
    if "kvlistValue" in typed:
        return _otlp_attributes(as_object(typed["kvlistValue"]).get("values"))
    if "intValue" in typed:
        return number(typed["intValue"])  # a 64-bit integer is a string in JSON
    for key in ("stringValue", "boolValue", "doubleValue"):
        if key in typed:
            return typed[key]
    return None


def _nest_keys(flat: dict[str, Any]) -> dict[str, Any]:
    """The object with dotted keys as nested ones; an object wins over a value of the same key."""
    nested: dict[str, Any] = {}
    for key, value in flat.items():
        parent = nested
        *parents, last = key.split(".")[:_MAX_KEY_PARTS]
        for part in parents:
            child = parent.get(part)
            if not isinstance(child, dict):
                parent[part] = child = {}
            parent = child
        if isinstance(value, dict) or not isinstance(parent.get(last), dict):
            parent[last] = value
    return nested


def indexed_objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, or of an object whose keys are 0, 1, ..."""
    if not isinstance(value, dict):
        return as_objects(value)
    keys = [key for key in value if key.isdigit() and len(key) < 6]
    keys = sorted(keys, key=int)[:_MAX_ITEMS]
    return [value[key] for key in keys if isinstance(value[key], dict)]


def _seconds(nanoseconds: Any) -> float | None:
    value = number(nanoseconds)
    return None if value is None else value / 1e9
