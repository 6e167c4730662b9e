"""E2 and E4: steps that failed again and again, or whose failure cost outputs.

E2 if access to data, a model, a package, an API or a resource stopped most attempts, else E4
(paper, table 15). A bug that is fixed in the next turns is work as usual and fires nothing.
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
"""An error of a look for a missing output, which is not the cause of the gap."""


def _repeated(ctx: CodeContext, environment: bool) -> Iterable[Finding]:
    """Steps that failed `REPEATED` times or more, by access or by the agent's own code."""
    for episode in ctx.episodes:
        attempts = episode.attempts - _finished_before_failing(ctx, episode)
        if attempts < REPEATED or episode.environment != environment:
            continue
        cause = short_cause(episode.cause)
        if episode.errors > 1:
            cause = f"with {episode.errors} different errors, e.g. {cause}"
        end = "and is not seen to work later"
        if episode.resolved_at:
            end = f"until turn {episode.resolved_at}"
        why = f"The same step failed {attempts} times ({cause}) {end}."
        yield Finding(episode.turns, why, 0.9 if attempts > REPEATED else 0.8, episode.stage)


def _finished_before_failing(ctx: CodeContext, episode: Episode) -> bool:
    """Whether the last attempt had done its work when it failed.

    It named every delivered case before, and nothing was written after it.
    """
    last = episode.turns[-1]
    cases = ctx.run.outputs.cases
    output = ctx.turn(last).output[-60_000:]
    all_named = len(cases) > 1 and all(case in output for case in cases)
    return last == ctx.final_write and all_named and not lost_outputs(ctx)


def _costly(ctx: CodeContext, environment: bool) -> Iterable[Finding]:
    """Failures that were not overcome and cost outputs."""
    lost = lost_outputs(ctx)
    if not lost:
        return
    for episode in ctx.episodes:
        if episode.resolved or episode.environment != environment or episode.attempts >= REPEATED:
            continue
        writes = any(ctx.feature(turn).writes_outputs for turn in episode.turns)
        late = writes or episode.stage in ("S4", "S5")
        if late or episode.turns[-1] >= ctx.last - 2:
            why = f"The failure was not overcome ({short_cause(episode.cause)}) and {lost}."
            yield Finding(episode.turns, why, 0.85 if late else 0.6, episode.stage)
    caught = _caught_by_case(ctx, environment)
    if caught:
        message = short_cause(next(iter(caught.values())))
        why = f"Errors caught case by case ({message}) left gaps: {lost}."
        yield Finding(tuple(caught), why, 0.8, "S4")


def _caught_by_case(ctx: CodeContext, environment: bool) -> dict[int, str]:
    """Turn -> message, of batches that caught the error of a case without an output."""
    lacking = {fact.case for fact in ctx.facts.missing if fact.case} if ctx.facts else set()
    messages: dict[int, str] = {}
    for turn in ctx.write_turns if lacking else ():
        for line in ctx.turn(turn).output.splitlines()[-MAX_LINES:]:
            names_case = any(case in line for case in lacking)
            if not names_case or _OWN_OUTPUT.search(line[:600]):
                continue
            errors = find_errors(line[:600])
            if errors and (errors[-1].family in ENVIRONMENT) == environment:
                messages.setdefault(turn, errors[-1].message)
    return messages


@detector("repeated_code_failure", code="E4", stage="S4", independence="from_trace", fact="exit")
def repeated_code_failure(ctx: CodeContext) -> Iterable[Finding]:
    """Three or more failed executions of one step, through errors of the agent's own code."""
    return _repeated(ctx, False)


@detector("repeated_access_failure", code="E2", stage="S2", independence="from_trace", fact="exit")
def repeated_access_failure(ctx: CodeContext) -> Iterable[Finding]:
    """One step failed three or more times in accessing data, a model, a package or resources.

    API access counts as well.
    """
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
    """What is missing at the end, in words; "" if nothing is known to be missing."""
    if ctx.facts is not None and ctx.facts.completion is not None:
        if ctx.facts.completion >= 1:
            return ""
        count = len({fact.case for fact in ctx.facts.missing if fact.case})
        total = ctx.facts.expected_cases
        if count and total:
            return f"{count} of {total} cases have no output"
        return "outputs are missing"
    status = ctx.run.status
    if status.completed is False:
        return "outputs are missing"
    if ctx.run.track is not None and status.ended in ("cut", "stopped") and not status.submitted:
        return "the run ended without a submission"
    return ""


def harness_code(episode: Episode) -> str:
    """The episode's code in the harness taxonomy: E2 resource (with timeouts), else E4 code."""
    return "E2" if episode.environment or episode.kind == "timeout" else "E4"
