"""Spans of traced agents, of whatever export: OTLP JSON, Langfuse observations, Phoenix spans, as
one shape.

A span is a call of a model, of a tool, or neither; its attributes come as nested objects, however
an export keeps them (`llm.input_messages.0.message.role` as a flat key, or nested). Source:
OpenTelemetry protocol (OTLP/JSON encoding), Langfuse API reference (observations, scores), Phoenix
`phoenix/trace/schemas.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..reading.json_bytes import loads, number, text_or_none
from .draft import as_id, as_object, as_objects, unix_time

_MAX_PARTS = 12
_MAX_INDEX = 10_000
_LLM = {"CHAT", "TEXT_COMPLETION", "GENERATE_CONTENT", "LLM", "GENERATION"}
_TOOL = {"EXECUTE_TOOL", "TOOL"}


class Span(NamedTuple):
    """One span. Times are seconds since 1970; `kind` is llm, tool or "" for what only holds others
    together."""

    trace: str
    kind: str
    name: str
    start: float | None
    end: float | None
    attributes: dict[str, Any]
    failed: bool = False

    def get(self, *paths: str) -> Any:
        """The attribute under the first of these dotted names that is there; JSON text as its
        value."""
        for path in paths:
            found: Any = self.attributes
            for key in path.split("."):
                found = found.get(key) if isinstance(found, dict) else None
            if found is not None:
                return value_of(found)
        return None


def value_of(value: Any) -> Any:
    """JSON text as what it says, anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return loads(value)
        except ValueError:
            return value
    return value


def spans_of(value: Any) -> Iterator[Span]:
    """The spans of one JSON value of an export; nothing for what is none."""
    head = as_object(value)
    for resource in as_objects(head.get("resourceSpans") or head.get("resource_spans")):
        about = _otlp(as_object(resource.get("resource")).get("attributes"))
        for scope in as_objects(resource.get("scopeSpans") or resource.get("scope_spans")):
            for span in as_objects(scope.get("spans")):
                yield _of_otlp(span, about)
    if "resourceSpans" in head or "resource_spans" in head:
        return
    for item in (
        as_objects(value)
        or as_objects(head.get("observations") or head.get("data") or head.get("spans"))
        or [head]
    ):
        trace = as_id(item.get("traceId") or item.get("trace_id")) or as_id(head.get("id"))
        if (
            isinstance(item.get("type"), str)
            and trace
            and ("input" in item or "output" in item or "startTime" in item)
        ):
            yield _of_langfuse(item, trace)
        elif "span_kind" in item or "context" in item or "context.trace_id" in item:
            yield _of_phoenix(item)


def scores_of(value: Any) -> Iterator[tuple[str | None, str, Any]]:
    """(trace, name, value) of Langfuse's scores beside the observations."""
    head = as_object(value)
    for score in as_objects(head.get("scores")):
        told = score.get("value") if score.get("value") is not None else score.get("stringValue")
        if name := text_or_none(score.get("name")):
            yield as_id(score.get("traceId")) or as_id(head.get("id")), name, told


def _of_otlp(span: dict[str, Any], resource: dict[str, Any]) -> Span:
    attributes = {**_otlp(span.get("attributes"))}
    for event in as_objects(span.get("events")):
        if event.get("name") == "gen_ai.evaluation.result":
            attributes.setdefault("_evaluations", []).append(
                _nested(_otlp(event.get("attributes")))
            )
        elif str(event.get("name")).startswith("gen_ai."):  # contents that are kept as an event
            attributes = {**_otlp(event.get("attributes")), **attributes}
    named = ("gen_ai.operation.name", "openinference.span.kind", "langfuse.observation.type")
    operation = next((told for name in named if (told := attributes.get(name))), None)
    nested = _nested(attributes)
    nested["_service"] = resource.get("service.name")
    status = as_object(span.get("status")).get("code")
    kind = _kind(operation) or (
        "llm" if any(key.startswith("gen_ai.prompt.") for key in attributes) else ""
    )
    return Span(
        as_id(span.get("traceId") or span.get("trace_id")) or "",
        kind,
        str(span.get("name") or ""),
        _nanoseconds(span.get("startTimeUnixNano")),
        _nanoseconds(span.get("endTimeUnixNano")),
        nested,
        status in (2, "STATUS_CODE_ERROR"),
    )


def _of_langfuse(item: dict[str, Any], trace: str) -> Span:
    attributes = {
        "input": {"value": item.get("input")},
        "output": {"value": item.get("output")},
        "model": item.get("model") or item.get("providedModelName"),
        "metadata": value_of(item.get("metadata")),
        "usage": value_of(
            item.get("usageDetails") or item.get("usage_details") or item.get("usage")
        ),
    }
    since, until = (
        unix_time(item.get(a) or item.get(b))
        for a, b in (("startTime", "start_time"), ("endTime", "end_time"))
    )
    return Span(
        trace,
        _kind(item["type"]),
        str(item.get("name") or ""),
        since,
        until,
        attributes,
        item.get("level") == "ERROR",
    )


def _of_phoenix(item: dict[str, Any]) -> Span:
    flat = {
        k.removeprefix("attributes."): v for k, v in item.items() if k.startswith("attributes.")
    }
    context = as_object(item.get("context"))
    attributes = _nested({**as_object(value_of(item.get("attributes"))), **flat})
    trace = as_id(context.get("trace_id")) or as_id(item.get("context.trace_id")) or ""
    return Span(
        trace,
        _kind(item.get("span_kind")),
        str(item.get("name") or ""),
        unix_time(item.get("start_time")),
        unix_time(item.get("end_time")),
        attributes,
        item.get("status_code") == "ERROR",
    )


def _kind(operation: Any) -> str:
    said = str(operation).upper()
    return "llm" if said in _LLM else "tool" if said in _TOOL else ""


def _otlp(attributes: Any) -> dict[str, Any]:
    """OTLP's list of keys and typed values as an object."""
    return {str(pair.get("key")): _typed(pair.get("value")) for pair in as_objects(attributes)}


def _typed(value: Any) -> Any:
    box = as_object(value)
    if "arrayValue" in box:
        return [_typed(item) for item in as_objects(as_object(box["arrayValue"]).get("values"))]
    if "kvlistValue" in box:
        return _otlp(as_object(box["kvlistValue"]).get("values"))
    if "intValue" in box:
        return number(box["intValue"])
    return next(
        (box[key] for key in ("stringValue", "boolValue", "doubleValue") if key in box), None
    )


def _nested(flat: dict[str, Any]) -> dict[str, Any]:
    """Dotted keys taken apart; what is no object gives way to keys below it."""
    whole: dict[str, Any] = {}
    for key, value in flat.items():
        at = whole
        *above, last = key.split(".")[:_MAX_PARTS]
        for part in above:
            below = at.get(part)
            if not isinstance(below, dict):
                at[part] = below = {}
            at = below
        if not (isinstance(at.get(last), dict) and not isinstance(value, dict)):
            at[last] = value
    return whole


def indexed(value: Any) -> list[dict[str, Any]]:
    """Objects of a list, or of an object with the keys 0, 1, ..."""
    if isinstance(value, dict):
        keys = sorted((key for key in value if key.isdigit() and len(key) < 6), key=int)[
            :_MAX_INDEX
        ]
        return [value[key] for key in keys if isinstance(value[key], dict)]
    return as_objects(value)


def _nanoseconds(value: Any) -> float | None:
    found = number(value)
    return None if found is None else found / 1e9
