"""Number types of fields that are written as JSON: their ranges and their decimals."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PlainSerializer

from .reading.json_bytes import MAX_COUNT


def round_to(digits: int) -> PlainSerializer:
    """Round a number to so many decimals in JSON; in Python it stays exact."""
    return PlainSerializer(
        lambda value: None if value is None else round(value, digits), when_used="json"
    )


Unit = Annotated[float, Field(ge=0, le=1), round_to(4)]
Percent = Annotated[float, Field(ge=0, le=100), round_to(2)]

Whole = Annotated[int, Field(ge=-MAX_COUNT, le=MAX_COUNT)]
"""Counts and turns. Larger numbers are no count of anything, and would overflow tables, databases
and other JSON readers."""
Amount = Annotated[float, Field(ge=-1e30, le=1e30)]
"""Seconds and dollars: finite, and small enough that squares and sums of them are finite too."""
