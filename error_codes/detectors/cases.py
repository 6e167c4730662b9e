"""Which delivered cases a run showed or went into, read off ids in its code and output: guards of
the E3 detectors."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..context import CodeContext

MAX_LINES = 3_000
"""Lines of one output that are read, from the end."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,12}(?:\.\d{1,12})?(?![\w])")


def rows(ctx: CodeContext, turn: int) -> dict[str, list[float]]:
    """Delivered case -> the numbers printed beside it by this turn, of all lines that name it."""
    known = frozenset(ctx.run.outputs.cases)
    begins = {case[:4] for case in known}
    found: dict[str, list[float]] = {}
    for line in ctx.turn(turn).output.splitlines()[-MAX_LINES:] if known else ():
        if not any(begin in line for begin in begins):
            continue
        for case in {word for word in _ID.findall(line[:600]) if word in known}:
            found.setdefault(case, []).extend(
                float(n) for n in _NUMBER.findall(line[:600].replace(case, " "))[:60]
            )
    return found


def looked_into(ctx: CodeContext, cases: Sequence[str], since: int) -> bool:
    """Whether an execution went into these cases: one after turn `since` that names a case in its
    code, or runs the model again without saving and shows it. The last write does not count, nor
    code that lists (nearly) all cases by name.
    """
    everyone = set(ctx.run.outputs.cases)
    for feature in ctx.features[since:]:
        if (
            not feature.executed
            or feature.blocked
            or feature.turn in (*ctx.failed_turns, ctx.final_write)
        ):
            continue
        turn, code = ctx.turn(feature.turn), ctx.turn(feature.turn).code[:200_000]
        named = sum(case in code for case in everyone) if len(everyone) >= 5 else 0
        if any(case in code for case in cases) and not (named and named >= 0.8 * len(everyone)):
            return True
        again = feature.forward_pass and not feature.writes_outputs and not feature.dummy_forward
        if again and any(case in turn.output[-60_000:] for case in cases):
            return True
    return False
