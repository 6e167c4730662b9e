"""Numbers in a run's last message that nothing recorded contains, for a reader to judge.

Only numbers that state an amount or a quality are compared: those with a decimal point or before a
percent sign. Whole numbers count files, steps and years, and claim nothing by themselves.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from ..trajectories.models import Run, Turn
from ..trajectories.record.facts import Fact

_CLAIM = re.compile(r"(?<![\w.,/-])(\d{1,12}(?:\.\d{1,12})?)(?![\w/]|[.,]\d)[ \u00a0]?(%)?")
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,15})?(?:[eE][-+]?\d{1,2})?")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,15})?")
_MAX_CLAIMS = 200
_MAX_LISTED = 8
_MAX_MESSAGE = 20_000
"""Characters of the last message that are searched."""


def claimed_numbers(run: Run) -> Iterator[Fact]:
    """At most one fact: numbers of the last message that no output, no code and no brief contains.

    A number also counts as contained if it is rounded from a recorded one, and a percentage if the
    record has it as a share.
    """
    last = _last_message(run)
    if last is None:
        return
    claims = list(dict.fromkeys(_claims(last.text[-_MAX_MESSAGE:])))[:_MAX_CLAIMS]
    if not claims:
        return
    outputs = (turn.output for turn in run.turns)
    code = (turn.code for turn in run.turns)
    recorded = sorted(_numbers((run.brief, *outputs, *code)))
    missing = [claim for claim in claims if not _is_recorded(claim, recorded)]
    if missing:
        more = f" and {len(missing) - _MAX_LISTED} more" if len(missing) > _MAX_LISTED else ""
        text = (
            f"Numbers of the last message (turn {last.index}) that no recorded output, no code and"
            f" not the brief contains, also not rounded: {', '.join(missing[:_MAX_LISTED])}{more}."
        )
        yield Fact(kind="claimed_numbers", text=text, turns=(last.index,), source="trace")


def _last_message(run: Run) -> Turn | None:
    for turn in reversed(run.turns):
        if turn.text.strip():
            return turn
    return None


def _claims(text: str) -> Iterator[str]:
    for match in _CLAIM.finditer(text):
        number, percent = match[1], match[2] or ""
        if percent or "." in number:
            yield number + percent


def _numbers(texts: Iterable[str]) -> set[float]:
    numbers: set[float] = set()
    for text in texts:
        numbers.update(float(number) for number in _NUMBER.findall(text))
        numbers.update(float(number.replace(",", "")) for number in _GROUPED.findall(text))
    return numbers


def _is_recorded(claim: str, recorded: list[float]) -> bool:
    """Whether a recorded number rounds to the claim, as it is or by a factor of 100."""
    digits = claim.removesuffix("%")
    decimals = len(digits.partition(".")[2])
    value, rounding = float(digits), 0.5 * 10.0**-decimals
    scales = (1.0, 100.0) if claim.endswith("%") else (1.0, 0.01)
    return any(
        _has_near(value / scale, rounding / scale * (1 + 1e-9), recorded) for scale in scales
    )


def _has_near(value: float, tolerance: float, numbers: list[float]) -> bool:
    """Whether any of the sorted numbers lies within the tolerance of the value."""
    position = bisect_left(numbers, value - tolerance)
    return position < len(numbers) and numbers[position] <= value + tolerance
