"""E2 and E4: steps that failed again and again, or whose failure cost outputs.

E2 where most attempts were stopped by data, model, package, API or resource access, else E4 (paper,
table 15). A bug met and fixed in the next turns is work as usual and fires nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...trajectories.turns.failures import ENVIRONMENT, find_errors
from ..context import CodeContext
from ..episodes import Episode, short_cause
from ..registry import Finding, detector

MAX_LINES = 3_000
"""Lines of one output that are read, from the end."""
REPEATED = 3
"""Failed executions of one step from which they count, even if the step worked in the end."""


_OWN_OUTPUT = re.compile(r"No such file[^\n]{0,60}agents?_outputs/")
"""A look for an output that is lacking: what it meets is no cause."""


def _repeated(ctx: CodeContext, environment: bool) -> Iterable[Finding]:
    for episode in ctx.episodes:
        attempts = episode.attempts - _went_through(ctx, episode)
        if attempts >= REPEATED and episode.environment == environment:
            end = (
                f"until turn {episode.resolved_at}"
                if episode.resolved_at
                else "and is not seen to work later"
            )
            many = f"with {episode.errors} different errors, e.g. " if episode.errors > 1 else ""
            why = (
                f"The same step failed {attempts} times ({many}{short_cause(episode.cause)}) {end}."
            )
            yield Finding(episode.turns, why, 0.9 if attempts > REPEATED else 0.8, episode.stage)


def _went_through(ctx: CodeContext, episode: Episode) -> bool:
    """Whether the last of the failures named every delivered case before, and nothing was written
    after it: the work was done."""
    last = episode.turns[-1]
    cases = ctx.run.outputs.cases
    shown = ctx.turn(last).output[-60_000:]
    return (
        last == ctx.final_write
        and len(cases) > 1
        and not lost_outputs(ctx)
        and all(case in shown for case in cases)
    )


def _costly(ctx: CodeContext, environment: bool) -> Iterable[Finding]:
    lost = lost_outputs(ctx)
    if not lost:
        return
    for episode in ctx.episodes:
        late = episode.stage in ("S4", "S5") or any(
            ctx.feature(t).writes_outputs for t in episode.turns
        )
        if episode.resolved or episode.environment != environment or episode.attempts >= REPEATED:
            continue
        if late or episode.turns[-1] >= ctx.last - 2:
            why = f"The failure was not overcome ({short_cause(episode.cause)}) and {lost}."
            yield Finding(episode.turns, why, 0.85 if late else 0.6, episode.stage)
    dropped = _dropped(ctx, environment)
    if dropped:
        turns, message = tuple(dropped), next(iter(dropped.values()))
        yield Finding(
            turns,
            f"Errors caught case by case ({short_cause(message)}) left gaps: {lost}.",
            0.8,
            "S4",
        )


def _dropped(ctx: CodeContext, environment: bool) -> dict[int, str]:
    """Turn -> message, where a batch caught the error of a case whose output is missing in the end."""
    lacking = {f.case for f in ctx.facts.missing if f.case} if ctx.facts is not None else set()
    found: dict[int, str] = {}
    for turn in ctx.write_turns if lacking else ():
        for line in ctx.turn(turn).output.splitlines()[-MAX_LINES:]:
            named = any(case in line for case in lacking) and not _OWN_OUTPUT.search(line[:600])
            errors = find_errors(line[:600]) if named else ()
            if errors and (errors[-1].family in ENVIRONMENT) == environment:
                found.setdefault(turn, errors[-1].message)
    return found


@detector("repeated_code_failure", code="E4", stage="S4", independence="from_trace", fact="exit")
def repeated_code_failure(ctx: CodeContext) -> Iterable[Finding]:
    """Three or more failed executions of one step, through errors of the agent's own code."""
    return _repeated(ctx, False)


@detector("repeated_access_failure", code="E2", stage="S2", independence="from_trace", fact="exit")
def repeated_access_failure(ctx: CodeContext) -> Iterable[Finding]:
    """Three or more failed executions of one step, through data, model, package, API or resource
    access."""
    return _repeated(ctx, True)


@detector("crash_cost_outputs", code="E4", stage="S4", independence="from_trace", fact="exit")
def crash_cost_outputs(ctx: CodeContext) -> Iterable[Finding]:
    """A crash that was not overcome, and outputs are missing."""
    return _costly(ctx, False)


@detector("access_cost_outputs", code="E2", stage="S2", independence="from_trace", fact="exit")
def access_cost_outputs(ctx: CodeContext) -> Iterable[Finding]:
    """Access to data, model, package, API or resource was never gained, and outputs are missing."""
    return _costly(ctx, True)


def lost_outputs(ctx: CodeContext) -> str:
    """What is missing at the end, in words; empty when nothing is known to be missing."""
    if ctx.facts is not None and ctx.facts.completion is not None:
        if ctx.facts.completion >= 1:
            return ""
        count = len({f.case for f in ctx.facts.missing if f.case})
        total = ctx.facts.expected_cases
        return (
            f"{count} of {total} cases have no output" if count and total else "outputs are missing"
        )
    if ctx.run.status.completed is False:
        return "outputs are missing"
    left = ctx.run.status.ended in ("cut", "stopped") and not ctx.run.status.submitted
    if left and ctx.run.track is not None:
        return "the run ended without a submission"
    return ""


def harness_code(episode: Episode) -> str:
    """The harness taxonomy's code of an episode: E2 resource (timeouts included), else E4 code."""
    return "E2" if episode.environment or episode.kind == "timeout" else "E4"
