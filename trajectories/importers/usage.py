"""Tokens of one call from its `usage`, under the names that APIs and harnesses give the counts."""

from __future__ import annotations

from typing import Any

from ..reading.json_bytes import amount
from ..token_counts import CallTokens, Placement, call_tokens
from .fields import as_object, sum_counts

_INPUT = ("input_tokens", "prompt_tokens", "promptTokens", "input", "promptTokenCount")
_OUTPUT = (
    "output_tokens",
    "completion_tokens",
    "completionTokens",
    "output",
    "candidatesTokenCount",
)
_TOTAL = ("total_tokens", "totalTokens", "total", "totalTokenCount")
_CACHE_READ = (
    "cache_read_input_tokens",
    "cached_input_tokens",
    "cache_read_tokens",
    "input_tokens_cache_read",
    "cached_tokens",
    "input_cached_tokens",
    "input_cache_read",
    "prompt_cache_hit_tokens",
    "cachedContentTokenCount",
    "cached",
)
_CACHE_WRITE = (
    "cache_creation_input_tokens",
    "cache_write_tokens",
    "input_tokens_cache_write",
    "input_cache_creation",
    "input_cache_write",
)
_REASONING = (
    "reasoning_tokens",
    "reasoning_output_tokens",
    "output_reasoning_tokens",
    "output_reasoning",
    "thoughtsTokenCount",
    "thoughts",
)
_INPUT_DETAILS = ("prompt_tokens_details", "input_tokens_details", "input_token_details")
_OUTPUT_DETAILS = ("completion_tokens_details", "output_tokens_details", "output_token_details")
_DETAIL_CACHE_READ = ("cached_tokens", "cache_read")
_DETAIL_CACHE_WRITE = ("cache_write_tokens", "cache_creation", "cache_creation_tokens")
_DETAIL_REASONING = ("reasoning_tokens", "reasoning")

_COST = ("total_cost", "cost", "cost_usd", "total_cost_usd")


def usage_tokens(
    usage: Any, *, cache: Placement = "inside", reasoning: Placement = "inside"
) -> CallTokens | None:
    """The tokens of a `usage` object; None without any.

    `cache` and `reasoning` are the source's convention, for usages that do not tell by themselves.
    """
    value = as_object(usage)
    inputs, outputs = _details(value, _INPUT_DETAILS), _details(value, _OUTPUT_DETAILS)
    # Anthropic's names mean Anthropic's count, whoever wrote them down.
    if "cache_read_input_tokens" in value or "cache_creation_input_tokens" in value:
        cache = "beside" if "prompt_tokens" not in value else cache
    tokens = call_tokens(
        _first(value, _INPUT),
        _first(value, _OUTPUT),
        total=_first(value, _TOTAL),
        cache_read=_first_or(value, _CACHE_READ, inputs, _DETAIL_CACHE_READ),
        cache_write=_first_or(value, _CACHE_WRITE, inputs, _DETAIL_CACHE_WRITE),
        reasoning=_first_or(value, _REASONING, outputs, _DETAIL_REASONING),
        cache_placement=cache,
        reasoning_placement=reasoning,
    )
    return None if tokens.basis == "unknown" else tokens


def sum_tokens(parts: list[CallTokens | None]) -> dict[str, int | None]:
    """Sums of several usages, as `Draft.add_totals` takes them."""
    counted = [part for part in parts if part is not None]
    return {
        "input_tokens": sum_counts(*(part.input for part in counted)),
        "output_tokens": sum_counts(*(part.output for part in counted)),
    }


def usage_cost(usage: Any) -> float | None:
    """The cost in dollars that a `usage` states; None without one."""
    value = as_object(usage)
    return amount(_first(value, _COST))


def _details(usage: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return as_object(_first(usage, names))


def _first(value: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((value[name] for name in names if value.get(name) is not None), None)


def _first_or(
    value: dict[str, Any], names: tuple[str, ...], details: dict[str, Any], others: tuple[str, ...]
) -> Any:
    stated = _first(value, names)
    return _first(details, others) if stated is None else stated
