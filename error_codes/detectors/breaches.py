"""E1: a rule broken again after the harness's warning, and a plan that rests on a name which no
index knows.

Training where the brief allows inference only is read; here it shows where the harness blocks it
again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..context import CodeContext
from ..package_names import denied_names, is_known
from ..registry import Finding, detector


@detector("repeated_violation", code="E1", stage="S1", independence="from_trace", fact="harness")
def repeated_violation(ctx: CodeContext) -> Iterable[Finding]:
    """A forbidden access was repeated after the warning, or ended the run."""
    turns = tuple(
        sorted({v.turn for v in ctx.run.status.violation_records if 0 < v.turn <= ctx.last})
    )
    if len(ctx.run.status.violation_records) >= 2 or (ctx.run.status.disqualified and turns):
        said = ctx.run.status.violation_records[-1].text
        rule = re.search(r"BLOCKED:[^\n]{1,100}|Violation:[^\n]{1,100}", said)
        words = " ".join((rule[0] if rule else said).split())[:100].rstrip(".")
        yield Finding(
            turns or (ctx.last,), f"A rule was broken again after the warning ({words}).", 0.9
        )


@detector("invented_name", code="E1", stage="S2", independence="from_trace")
def invented_name(ctx: CodeContext) -> Iterable[Finding]:
    """The plan names a package or model that neither the brief nor an earlier output shows and that
    the index denies."""
    seen: dict[str, list[int]] = {}
    for turn in ctx.run.turns:
        if turn.index in ctx.failed_turns or ctx.feature(turn.index).failed:
            for name in denied_names(turn.output[-20_000:]):
                seen.setdefault(name.rpartition("/")[2], []).append(turn.index)
    plan = (ctx.run.plan.text or "").lower()
    for name, turns in seen.items():
        planned = (
            re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", plan) is not None
            and turns[-1] < ctx.last
        )
        if planned and not is_known(name) and not _shown(ctx, name, turns[0]):
            yield Finding(
                tuple(dict.fromkeys(turns)),
                f"The run rests on {name}, which the index does not know.",
                0.75,
            )


def _shown(ctx: CodeContext, name: str, before: int) -> bool:
    """Whether the brief, or an output of an earlier turn whose code does not name it, shows the
    name."""
    earlier = (turn for turn in ctx.run.turns[: before - 1] if name not in turn.code.lower())
    return name in ctx.run.brief.lower() or any(
        name in turn.output[-40_000:].lower() for turn in earlier
    )
