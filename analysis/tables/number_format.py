"""Numbers, p values and intervals as people read them, the same in tables and in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...rounding import fixed

NONE = "–"
"""In place of a number that is not known."""


def _digits(size: float) -> int:
    """Decimals that show three significant digits, and never more than three."""
    if size >= 1000:
        return 0
    if size >= 10:
        return 1
    if size >= 1:
        return 2
    return 3


def _signed(value: float, digits: int) -> str:
    """A number with a real minus sign, and none where it is rounded to 0."""
    whole, point, decimals = fixed(abs(value), digits).partition(".")
    text = f"{int(whole):,}{point}{decimals}"
    is_zero = not text.strip("0.,")
    return f"−{text}" if value < 0 and not is_zero else text


def column_digits(values: Iterable[float | None]) -> int:
    """Decimals of a column: three significant digits of its largest number, three for shares; none
    if all are whole numbers, some of them of two digits."""
    sizes = [abs(value) for value in values if value is not None and math.isfinite(value)]
    largest = max(sizes, default=0.0)
    if largest <= 1:
        return 3
    if largest >= 10 and all(size.is_integer() for size in sizes):
        return 0
    return _digits(largest)


def number(value: float | None, digits: int | None = None) -> str:
    """A number with these decimals, by default three significant digits; a dash for None and what
    is not finite."""
    if value is None or not math.isfinite(value):
        return NONE
    return _signed(value, _digits(abs(value)) if digits is None else digits)


def probability(p: float | None) -> str:
    """A p value with three decimals; below .001 only that."""
    if p is None:
        return NONE
    if p < 0.001:
        return "<.001"
    return "1" if p >= 1 else fixed(p, 3).lstrip("0")


def interval(low: float | None, high: float | None, digits: int | None = None) -> str:
    """`[low, high]` with these decimals, by default those that the larger end needs; one-sided ones
    in words."""
    if low is None:
        return NONE if high is None else f"at most {number(high, digits)}"
    if high is None:
        return f"at least {number(low, digits)}"
    if digits is None:
        digits = _digits(max(abs(low), abs(high)))
    return f"[{_signed(low, digits)}, {_signed(high, digits)}]"
