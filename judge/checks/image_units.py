"""Whether the values of an image can be in the unit that its task demands."""

from __future__ import annotations

from ...tasks.output_format import OutputFormat

MAX_SUV = 1_000.0
"""Larger uptake values are activity per volume (Bq/mL): a bladder full of tracer stays below some
hundred."""
MIN_HU_SPREAD = 10.0
"""Any body part spans more Hounsfield units than this; a normalised image spans less."""


def unit_problem(
    output_format: OutputFormat, name: str, low: float, high: float, *, holds_air: bool = False
) -> str:
    """Why values from `low` to `high` cannot be in the demanded unit; empty if they can.

    `holds_air`: the image shows air around the body, which is far below 0 in Hounsfield units.
    """
    observed = f"{name} runs from {low:.4g} to {high:.4g}"
    if output_format.unit == "HU" and high - low <= MIN_HU_SPREAD:
        return f"{observed}: no Hounsfield units"
    if output_format.unit == "HU" and holds_air and low >= 0:
        return f"{observed}: no air, so no Hounsfield units"
    if output_format.unit == "SUV" and high > MAX_SUV:
        return f"{observed}: no standardised uptake values"
    if output_format.low == 0 and output_format.leaves_range(low, max(high, 0.0)):
        return f"{observed}, not non-negative"
    return ""
