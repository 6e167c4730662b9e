"""Decides what gives way if a run does not fit into a record.

Turns have weights, texts get shares of the available characters by them, and texts that are too
long are shortened. Weights rest on what the machine shows of a turn: files written, models run,
exit codes, the harness's flags. What decides verdicts gives way last.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from ..models import Run
from ..turns.features import features

DECISIVE_WEIGHT = 5.0
"""Weight from which leaving out a part of a turn could change a verdict."""

_FEATURE_WEIGHTS: dict[str, float] = {
    "writes_plan": 7,
    "writes_outputs": 5,
    "forward_pass": 5,
    "checks_outputs": 5,
    "inspects_inputs": 5,
    "blocked": 5,
    "loads_model": 4,
    "training": 4,
    "timed_out": 4,
    "failed": 4,
    "writes_plan_image": 3,
    "reads_docs": 3,
    "looks_at_weights": 3,
    "dummy_forward": 3,
    "obtains_weights": 3,
    "applies_module": 3,
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
"""Weights of `turns.features`, by field name."""
_FULL_WEIGHT_TURNS = 3
"""From its fourth turn on, a feature counts half."""
_END_WEIGHT = 2.0
"""Added to the first two and last two turns: what was found at the start, and how the run ended."""
_ERROR_LINE = re.compile(
    r"\s{0,8}(?:Traceback \(most|[\w.]{0,80}(?:Error|Exception|Interrupt)\b|E   "
    r"|FAILED|ERROR\b|error:|fatal:|TIMEOUT|BLOCKED|Killed)"
)
_MEASURE = re.compile(r"\d\.\d")
_DIGITS = re.compile(r"\d+")
_COMMON_FORM = 8
"""A form of line that occurs more often in the run says little."""
_MARK_SIZE = 34
"""Largest size in characters of a mark for a gap, newline included."""


def turn_weights(run: Run) -> tuple[float, ...]:
    """One weight for each turn, from 1; from `DECISIVE_WEIGHT` a verdict can rest on the turn."""
    occurrences: Counter[str] = Counter()
    result: list[float] = []
    key_turns = {run.plan.turn, run.plan.image_turn}
    key_turns.update(violation.turn for violation in run.status.violation_records)
    for turn in features(run):
        feature_weights = []
        for name, weight in _FEATURE_WEIGHTS.items():
            if getattr(turn, name):
                occurrences[name] += 1
                is_repeated = occurrences[name] > _FULL_WEIGHT_TURNS
                feature_weights.append(weight / 2 if is_repeated else weight)
        # The strongest feature decides; every further one adds a little.
        weight = 1 + max(feature_weights, default=0.0) + 0.2 * len(feature_weights)
        if turn.turn in key_turns:
            weight += 3
        if turn.turn <= 2 or turn.turn > len(run.turns) - 2:
            weight += _END_WEIGHT
        if turn.turn > 1 and run.turns[turn.turn - 2].failed:
            weight += 1  # it shows what was done about the failure
        result.append(weight)
    return tuple(result)


def allocate(sizes: Sequence[int], weights: Sequence[float], room: int, least: int) -> list[int]:
    """How many of `room` characters each text gets.

    All of its size if all fit. Else in proportion to its weight, but at least `least` and at most
    its size. The common factor is found by bisection.
    """
    if sum(sizes) <= room:
        return list(sizes)
    best = [min(size, least) for size in sizes]
    low, high = 0.0, float(max(sizes, default=0)) + 1
    for _ in range(40):
        factor = (low + high) / 2
        shares = [
            min(size, max(least, int(factor * weight)))
            for size, weight in zip(sizes, weights, strict=True)
        ]
        if sum(shares) <= room:
            low, best = factor, shares
        else:
            high = factor
    return best


def count_line_forms(texts: Sequence[str]) -> Counter[str]:
    """How often each form of line (digits masked) occurs in these texts."""
    return Counter(form for text in texts for form in _line_form(text).split("\n"))


def _line_form(text: str) -> str:
    return _DIGITS.sub("0", text)


def shorten(text: str, limit: int, form_counts: Mapping[str, int] | None = None) -> str:
    """At most `limit` characters of whole lines; each gap has a mark that says what is missing.

    Head and tail stay. With `form_counts` (for an output) also errors stay, and then lines of rare
    forms, those with measures first.
    """
    if len(text) <= limit:
        return text
    if limit < 2 * _MARK_SIZE:
        mark = f"[… {len(text):,} characters …]"
        return mark if len(mark) <= limit else "[…]"[:limit]
    max_line = limit // 3
    lines = [
        line if len(line) <= max_line else _without_middle(line, max_line)
        for line in text.split("\n")
    ]
    visible: set[int] = set()
    room = limit - 2 * _MARK_SIZE
    for index in _priority_order(lines, limit, form_counts):
        cost = len(lines[index]) + 1
        # A line beside a shown one extends it; any other opens another gap.
        if visible and index - 1 not in visible and index + 1 not in visible:
            cost += _MARK_SIZE
        if cost <= room:
            visible.add(index)
            room -= cost
        # In an output, a shorter line of lower priority may still fit.
        elif form_counts is None or room < _MARK_SIZE:
            break
    return _with_gap_marks(lines, visible)


def _priority_order(
    lines: Sequence[str], limit: int, form_counts: Mapping[str, int] | None
) -> list[int]:
    """Indices of lines, those that should stay first."""
    n_lines = len(lines)
    head_room = limit // 2 if form_counts is None else limit // 5
    head = _within(lines, range(n_lines), head_room)
    tail = _within(lines, range(n_lines - 1, -1, -1), limit // 3)
    if form_counts is None:
        return _unique([*head[:2], *tail[:2], *head, *tail, *range(n_lines)])
    ends = _unique([*head[:2], *tail, *head])
    error_lines = [i for i in range(n_lines - 1, -1, -1) if _ERROR_LINE.match(lines[i])]
    errors = _within(lines, error_lines, limit // 4)

    def rarity(index: int) -> tuple[bool, bool, int]:
        line = lines[index]
        is_common = form_counts.get(_line_form(line), 1) > _COMMON_FORM
        return is_common, _MEASURE.search(line) is None, index

    by_rarity = sorted(range(n_lines), key=rarity)
    return _unique([*ends[:4], *errors, *ends, *by_rarity])


def _unique(indices: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(indices))


def _within(lines: Sequence[str], indices: Sequence[int], room: int) -> list[int]:
    """The first of these lines that fit into `room` characters together."""
    fitting = []
    for index in indices:
        room -= len(lines[index]) + 1
        if room < 0:
            break
        fitting.append(index)
    return fitting


def _without_middle(line: str, limit: int) -> str:
    half = max(0, (limit - _MARK_SIZE) // 2)
    return f"{line[:half]}[… {len(line) - 2 * half:,} characters …]{line[len(line) - half :]}"


def _with_gap_marks(lines: Sequence[str], visible: set[int]) -> str:
    result: list[str] = []
    previous = -1
    for index in [*sorted(visible), len(lines)]:
        gap = index - previous - 1
        if gap > 0:
            result.append(f"[… {gap:,} line{'s' if gap > 1 else ''} left out …]")
        if index < len(lines):
            result.append(lines[index])
        previous = index
    return "\n".join(result)
