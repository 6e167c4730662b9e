"""What a brief demands of an output file beyond its track's format: the number type and the range of its values."""

from __future__ import annotations

import re
from typing import NamedTuple

_DTYPE = re.compile(r"\b(float(?:16|32|64)|u?int(?:8|16|32|64))\b", re.IGNORECASE)
_RANGE = re.compile(r"\bin \[\s?(-?\d{1,6}(?:\.\d{1,6})?)\s?,\s?(-?\d{1,6}(?:\.\d{1,6})?)\s?\]")
_SENTENCE = re.compile(r"\.\s|\n")
SLACK = 1e-3
"""Share of the range by which rounding may leave it."""


class Demand(NamedTuple):
    """A NumPy type name and an interval; None where the brief names none."""

    dtype: str | None = None
    low: float | None = None
    high: float | None = None

    def leaves(self, low: float, high: float) -> bool:
        """Whether values from `low` to `high` leave the interval."""
        if self.low is None or self.high is None:
            return False
        slack = SLACK * (self.high - self.low)
        return low < self.low - slack or high > self.high + slack


def demanded(brief: str, name: str) -> Demand:
    """What the sentence that names the file says on its numbers; the first sentence with the output's path counts."""
    place = brief.find(f"/{name}")
    if place < 0:
        return Demand()
    sentence = _SENTENCE.split(brief[place + len(name) + 1 : place + 400], maxsplit=1)[0]
    types = {t.lower() for t in _DTYPE.findall(sentence)}
    interval = _RANGE.search(sentence)
    return Demand(
        types.pop() if len(types) == 1 else None,
        float(interval[1]) if interval else None,
        float(interval[2]) if interval else None,
    )
