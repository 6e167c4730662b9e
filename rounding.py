"""How every number that people read is rounded: half to even, on its decimal digits.

83.75 is 83.8 and 83.25 is 83.2, in terminal, browser, pages, report and figures; `site.js` does the
same. Formatting a float rounds its binary value instead, which makes a tie of 0.125 and none of
0.145.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache

_NOISE = 9
"""Decimals beyond which a computed mean differs from its decimal value by float noise alone."""
_LARGEST = 1e15
"""From here on floats have no decimals to round."""


def fixed(value: float, digits: int) -> str:
    """A finite number with so many decimals, never `-0.0`: `fixed(83.25, 1)` is 83.2."""
    if abs(value) >= _LARGEST:
        return f"{value:.{digits}f}"
    decimal = Decimal(repr(round(float(value), _NOISE)))
    text = f"{decimal.quantize(_unit(digits), ROUND_HALF_EVEN):f}"
    return text.removeprefix("-") if not text.strip("-0.") else text


@cache
def _unit(digits: int) -> Decimal:
    """The last decimal place: 0.01 for two digits."""
    return Decimal(1).scaleb(-digits)
