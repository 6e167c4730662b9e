"""Numbers of a run's last message that nothing recorded contains: a comparison of digits, for a
reader to judge.

Only numbers that say how much or how well are compared: with a decimal point, or before a percent
sign. Whole numbers count files, steps and years, and are no claim by themselves.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from ..trajectories.models import Run
from ..trajectories.record.facts import Fact

_CLAIM = re.compile(r"(?<![\w.,/-])(\d{1,12}(?:\.\d{1,12})?)(?![\w/]|[.,]\d)[ \u00a0]?(%)?")
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,15})?(?:[eE][-+]?\d{1,2})?")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,15})?")
_MOST_CLAIMS = 200
_SHOWN = 8
_LAST = 20_000
"""Characters of the last message that are looked at."""


def claimed_numbers(run: Run) -> Iterator[Fact]:
    """At most one fact: numbers of the last message that stand in no output, no code and not in the
    brief.

    A number is there also where it is rounded from what stands there, and as a share where it is a
    percentage.
    """
    last = next((turn for turn in reversed(run.turns) if turn.text.strip()), None)
    claims = (
        list(dict.fromkeys(_claims(last.text[-_LAST:])))[:_MOST_CLAIMS] if last is not None else []
    )
    if last is None or not claims:
        return
    seen = sorted(
        _numbers((run.brief, *(t.output for t in run.turns), *(t.code for t in run.turns)))
    )
    unseen = [text for text in claims if not _stands(text, seen)]
    if unseen:
        more = f" and {len(unseen) - _SHOWN} more" if len(unseen) > _SHOWN else ""
        text = (
            f"Numbers of the last message (turn {last.index}) that no recorded output, no code and"
            f" not the brief contains, also not rounded: {', '.join(unseen[:_SHOWN])}{more}."
        )
        yield Fact(kind="claimed_numbers", text=text, turns=(last.index,), source="trace")


def _claims(text: str) -> Iterator[str]:
    for found in _CLAIM.finditer(text):
        if found[2] or "." in found[1]:
            yield found[1] + (found[2] or "")


def _numbers(texts: Iterable[str]) -> set[float]:
    found: set[float] = set()
    for text in texts:
        found.update(float(one) for one in _NUMBER.findall(text))
        found.update(float(one.replace(",", "")) for one in _GROUPED.findall(text))
    return found


def _stands(claim: str, seen: list[float]) -> bool:
    digits = claim.removesuffix("%")
    value, half = float(digits), 0.5 * 10.0 ** -len(digits.partition(".")[2])
    scales = (1.0, 100.0) if claim.endswith("%") else (1.0, 0.01)
    return any(_near(value / scale, half / scale * (1 + 1e-9), seen) for scale in scales)


def _near(value: float, within: float, seen: list[float]) -> bool:
    at = bisect_left(seen, value - within)
    return at < len(seen) and seen[at] <= value + within
