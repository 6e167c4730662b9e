"""Who gives way when a run does not fit into a record: weights of turns, shares of the room, texts
made shorter.

Weights rest on what the machine shows of a turn: files written, models run, exit codes, the
harness's flags. Every turn keeps something; what decides verdicts gives way last.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from ..models import Run
from ..turns.features import features

DECIDES = 5.0
"""Weight from which leaving something of a turn out could change a verdict."""

_FLAGS: dict[str, float] = {
    "writes_plan": 7,
    "writes_outputs": 5,
    "forward_pass": 5,
    "checks_outputs": 5,
    "inspects_inputs": 5,
    "blocked": 5,
    "loads_model": 4,
    "compares_candidates": 4,
    "training": 4,
    "timed_out": 4,
    "failed": 4,
    "writes_plan_image": 3,
    "reads_docs": 3,
    "looks_at_weights": 3,
    "dummy_forward": 3,
    "made_up_input": 3,
    "obtains_weights": 3,
    "applies_module": 3,
    "classical_method": 3,
    "writes_module": 3,
    "runs_script": 3,
    "runs_tests": 3,
    "stores_results": 3,
    "reads_outputs": 3,
    "inspects_values": 3,
    "inspects_shapes": 3,
    "closing_message": 3,
    "packages_outputs": 3,
    "writes_report": 2,
    "submits": 2,
    "installs_packages": 2,
    "checks_environment": 2,
    "lists_inputs": 2,
    "loads_inputs": 2,
    "unanswered": 2,
}
_OFTEN = 3
"""From its fourth turn on, a thing done again counts half."""
_ENDS = 2.0
"""More weight for the first two turns and the last two: what was found at the start, and how it
ended."""
_ERROR = re.compile(
    r"\s{0,8}(?:Traceback \(most|[\w.]{0,80}(?:Error|Exception|Interrupt)\b|E  "
    r" |FAILED|ERROR\b|error:|fatal:|TIMEOUT|BLOCKED|Killed)"
)
_MEASURE = re.compile(r"\d\.\d")
_DIGITS = re.compile(r"\d+")
_GAP = 34
"""Characters of a mark between kept lines, newline included, at most."""


def weights(run: Run) -> tuple[float, ...]:
    """One weight a turn, from 1; from `DECIDES` on, a verdict can rest on the turn."""
    seen: Counter[str] = Counter()
    found: list[float] = []
    breaches = {v.turn for v in run.status.violation_records} | {run.plan.turn, run.plan.image_turn}
    for facts in features(run):
        worth = []
        for name, weight in _FLAGS.items():
            if getattr(facts, name):
                seen[name] += 1
                worth.append(weight if seen[name] <= _OFTEN else weight / 2)
        weight = 1 + max(worth, default=0.0) + 0.2 * len(worth)
        if facts.turn in breaches:
            weight += 3
        if facts.turn <= 2 or facts.turn > len(run.turns) - 2:
            weight += _ENDS
        if facts.turn > 1 and run.turns[facts.turn - 2].failed:
            weight += 1  # what was done about it
        found.append(weight)
    return tuple(found)


def shares(sizes: Sequence[int], worth: Sequence[float], room: int, least: int) -> list[int]:
    """How much of `room` each text gets: whole ones where they fit, else in proportion to their
    worth, and `least` whatever their worth."""
    if sum(sizes) <= room:
        return list(sizes)
    given = [min(size, least) for size in sizes]
    low, high = 0.0, float(max(sizes, default=0)) + 1
    for _ in range(40):
        level = (low + high) / 2
        tried = [
            min(size, max(least, int(level * w))) for size, w in zip(sizes, worth, strict=True)
        ]
        if sum(tried) <= room:
            low, given = level, tried
        else:
            high = level
    return given


def forms(texts: Sequence[str]) -> Counter[str]:
    """How often each form of line (digits masked) occurs in the run: what a machine prints all the
    time says little."""
    return Counter(key for text in texts for key in _DIGITS.sub("0", text).split("\n"))


def shorten(text: str, limit: int, common: Mapping[str, int] | None = None) -> str:
    """At most `limit` characters of whole lines, each gap marked with what is gone.

    Head and tail stay; with `common` (an output), also errors, and then lines of rare forms, those
    with measures first.
    """
    if len(text) <= limit:
        return text
    if limit < 2 * _GAP:
        mark = f"[… {len(text):,} characters …]"
        return mark if len(mark) <= limit else "[…]"[:limit]
    lines = [
        line if len(line) <= limit // 3 else _middle(line, limit // 3) for line in text.split("\n")
    ]
    order = _order(lines, limit, common)
    kept: set[int] = set()
    room = limit - 2 * _GAP
    for place in order:
        cost = len(lines[place]) + 1
        # A line beside a kept one extends it; one apart opens another gap.
        cost += 0 if place - 1 in kept or place + 1 in kept or not kept else _GAP
        if cost <= room:
            kept.add(place)
            room -= cost
        elif common is None or room < _GAP:
            break
    return _with_gaps(lines, kept)


def _order(lines: Sequence[str], limit: int, common: Mapping[str, int] | None) -> list[int]:
    """Places of the lines, those first that are to stay."""
    count = len(lines)
    head = _within(lines, range(count), limit // (5 if common is not None else 2))
    tail = _within(lines, range(count - 1, -1, -1), limit // 3)
    ends = list(dict.fromkeys([*head[:2], *tail, *head]))
    if common is None:
        return list(dict.fromkeys([*head[:2], *tail[:2], *head, *tail, *range(count)]))
    errors = _within(
        lines, [p for p in range(count - 1, -1, -1) if _ERROR.match(lines[p])], limit // 4
    )
    rare = sorted(
        range(count),
        key=lambda p: (
            common.get(_DIGITS.sub("0", lines[p]), 1) > 8,
            not _MEASURE.search(lines[p]),
            p,
        ),
    )
    return list(dict.fromkeys([*ends[:4], *errors, *ends, *rare]))


def _within(lines: Sequence[str], places: Sequence[int], room: int) -> list[int]:
    found = []
    for place in places:
        room -= len(lines[place]) + 1
        if room < 0:
            break
        found.append(place)
    return found


def _middle(line: str, limit: int) -> str:
    """A line without its middle."""
    half = max(0, (limit - _GAP) // 2)
    return f"{line[:half]}[… {len(line) - 2 * half:,} characters …]{line[len(line) - half :]}"


def _with_gaps(lines: Sequence[str], kept: set[int]) -> str:
    found: list[str] = []
    before = -1
    for place in [*sorted(kept), len(lines)]:
        if (gap := place - before - 1) > 0:
            found.append(f"[… {gap:,} line{'s' if gap > 1 else ''} left out …]")
        if place < len(lines):
            found.append(lines[place])
        before = place
    return "\n".join(found)
