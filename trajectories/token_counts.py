"""Decides the tokens of a call and the totals of a run where a source states several numbers.

Providers and harnesses count cached and reasoning tokens inside the input and the output, or beside
them. `call_tokens` decides which for one call: by the stated total if there is one, by what is
possible (a part is not larger than what holds it), else by the source's convention. `run_total`
decides between a total that is stated for a run and the sum over its calls. Both say how.

Sources of the conventions: API references of OpenAI (`usage`, details inside), Anthropic (cache
beside the input, no total), xAI and Gemini (a total with reasoning or thoughts beside the output);
Langfuse (`usageDetails`, disjoint); inspect_ai `model/_model_output.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

from .reading.json_bytes import amount, count, exact_sum

Placement = Literal["inside", "beside"]
"""Whether a part is counted in the number it belongs to, or beside it."""
_PLACEMENTS: tuple[Placement, Placement] = ("inside", "beside")
_COST_DIGITS = 9


class CallTokens(NamedTuple):
    """Tokens of one call of a model; None if unknown."""

    input: int | None = None
    """All that the model read, cached or not."""
    output: int | None = None
    """All that it wrote, reasoning included."""
    cache_read: int | None = None
    """Part of `input`."""
    cache_write: int | None = None
    """Part of `input`."""
    reasoning: int | None = None
    """Part of `output`."""
    basis: Literal["total", "bounds", "convention", "unknown"] = "unknown"
    """What decided: the stated total, the only way that is possible, or the source's convention."""


class _Reading(NamedTuple):
    """One way to read the counts of a call."""

    input: int
    output: int
    deviations: int
    """Parts that are placed against the source's convention."""


def call_tokens(
    input_tokens: Any,
    output_tokens: Any,
    *,
    total: Any = None,
    cache_read: Any = None,
    cache_write: Any = None,
    reasoning: Any = None,
    cache_placement: Placement = "inside",
    reasoning_placement: Placement = "inside",
) -> CallTokens:
    """The tokens of one call from the numbers that its source states.

    The placements are the source's convention, which decides only where the numbers do not. Values
    that are not counts are unknown. A call without any token is one whose usage was not recorded.
    """
    read, written, thought = count(cache_read), count(cache_write), count(reasoning)
    if not any(map(count, (input_tokens, output_tokens, read, written, thought))):
        return CallTokens()
    # A call that only states parts has at least these.
    stated_input, stated_output = count(input_tokens), count(output_tokens)
    conventions = (cache_placement, cache_placement, reasoning_placement)
    readings = list(
        _readings(stated_input or 0, stated_output or 0, (read, written, thought), conventions)
    )
    stated_total = count(total)
    agreeing = [reading for reading in readings if reading.input + reading.output == stated_total]
    best = min(agreeing or readings, key=lambda reading: reading.deviations)
    is_input_known = stated_input is not None or bool(read or written)
    is_output_known = stated_output is not None or bool(thought)
    return CallTokens(
        input=best.input if is_input_known else None,
        output=best.output if is_output_known else None,
        cache_read=read,
        cache_write=written,
        reasoning=thought,
        basis=_basis(bool(agreeing), best),
    )


def _basis(agrees: bool, best: _Reading) -> Literal["total", "bounds", "convention"]:
    if agrees:
        return "total"
    return "bounds" if best.deviations else "convention"


def _readings(
    input_tokens: int,
    output_tokens: int,
    parts: tuple[int | None, int | None, int | None],
    conventions: tuple[Placement, Placement, Placement],
) -> Iterator[_Reading]:
    """Every possible reading; `parts` are tokens read from the cache, written to it, reasoning."""
    for placements in product(_PLACEMENTS, repeat=3):
        sizes = [part or 0 for part in parts]
        beside = [
            size if placement == "beside" else 0
            for size, placement in zip(sizes, placements, strict=True)
        ]
        inside = [size - added for size, added in zip(sizes, beside, strict=True)]
        if inside[0] + inside[1] > input_tokens or inside[2] > output_tokens:
            continue
        deviations = sum(
            bool(size) and placement != convention
            for size, placement, convention in zip(sizes, placements, conventions, strict=True)
        )
        yield _Reading(input_tokens + beside[0] + beside[1], output_tokens + beside[2], deviations)


class RunTotal(NamedTuple):
    """One total of a run."""

    value: float | None
    basis: Literal["stated", "sum", "unknown"]
    note: str = ""
    """What the numbers say beyond the value; "" if they agree."""


def run_total(stated: Any, per_call: Sequence[float | None], name: str) -> RunTotal:
    """The total of a run from what is stated for it and what each of its calls states.

    A stated total counts unless the calls sum to more: it may hold calls that are no turns. A sum
    counts if every call states its part. Zero for a run with calls means that nobody counted.
    `name` is the quantity in the note, as in "input tokens".
    """
    parts = [part for part in per_call if part is not None]
    summed = exact_sum(parts) if any(parts) else None
    is_complete = len(parts) == len(per_call)
    whole = amount(stated)
    if whole == 0 and per_call:
        whole = None
        note = "" if summed else f"{name} 0 for {_calls(per_call)}, taken as unknown"
    else:
        note = ""
    if whole is None and summed is None:
        return RunTotal(None, "unknown", note)
    if summed is None:
        return RunTotal(whole, "stated")
    if whole is not None and round(whole - summed, _COST_DIGITS) >= 0:
        excess = round(whole - summed, _COST_DIGITS)
        note = f"{_amount(excess)} {name} beyond those of its turns" if excess else ""
        return RunTotal(whole, "stated", note)
    if whole is not None:
        return RunTotal(
            summed,
            "sum",
            f"{name} stated as {_amount(whole)}, less than the {_amount(summed)} of its turns",
        )
    if is_complete:
        return RunTotal(summed, "sum")
    return RunTotal(
        None,
        "unknown",
        f"{name} of the run unknown: {len(parts)} of {_calls(per_call)} state {_amount(summed)}",
    )


def _calls(per_call: Sequence[float | None]) -> str:
    return "1 call" if len(per_call) == 1 else f"{len(per_call):,} calls"


def _amount(value: float) -> str:
    """A number as people write it: 15,235 or 0.0035."""
    text = f"{value:,.6f}".rstrip("0").rstrip(".")
    return text or "0"
