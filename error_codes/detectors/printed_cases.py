"""Which delivered cases a run printed or looked into, by the ids in its code and output.

Guards of the E3 detectors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...trajectories.turns.turn_features import TurnFeatures
from ..context import CodeContext

MAX_LINES = 3_000
"""Lines of one output that are read, from the end."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,12}(?:\.\d{1,12})?(?![\w])")


def printed_numbers(ctx: CodeContext, turn: int) -> dict[str, list[float]]:
    """Delivered case -> the numbers that this turn printed in the lines with its id."""
    cases = frozenset(ctx.run.outputs.cases)
    beginnings = {case[:4] for case in cases}
    numbers: dict[str, list[float]] = {}
    for line in ctx.turn(turn).output.splitlines()[-MAX_LINES:] if cases else ():
        if not any(beginning in line for beginning in beginnings):
            continue
        for case in cases.intersection(_ID.findall(line[:600])):
            texts = _NUMBER.findall(line[:600].replace(case, " "))
            numbers.setdefault(case, []).extend(map(float, texts[:60]))
    return numbers


def looked_into(ctx: CodeContext, cases: Sequence[str], since: int) -> bool:
    """Whether an execution after turn `since` looked into one of these cases.

    It names one in its code, or runs the model again without saving and prints one. The last write
    does not count, nor code that lists (nearly) all cases by name.
    """
    for feature in ctx.features[since:]:
        if not feature.executed or feature.blocked:
            continue
        if feature.turn in ctx.failed_turns or feature.turn == ctx.final_write:
            continue
        if _looks_into(ctx, feature, cases):
            return True
    return False


def _looks_into(ctx: CodeContext, feature: TurnFeatures, cases: Sequence[str]) -> bool:
    code = ctx.turn(feature.turn).code[:200_000]
    delivered = set(ctx.run.outputs.cases)
    listed = sum(case in code for case in delivered) if len(delivered) >= 5 else 0
    lists_all = bool(listed) and listed >= 0.8 * len(delivered)
    if not lists_all and any(case in code for case in cases):
        return True
    reruns = feature.forward_pass and not feature.writes_outputs and not feature.dummy_forward
    output = ctx.turn(feature.turn).output[-60_000:]
    return reruns and any(case in output for case in cases)
