"""Facts of the trace: what failed, was blocked or stayed unanswered, and what detectors prove.

- `trace_facts`: executions, exit codes, failed steps, blocked calls, what came after the last write
- `bare_facts`: those that say something by themselves, whatever a judge makes of them
- `finding_facts`: findings of detectors that rest on facts

These sentences are part of the record that a judge is shown: a changed byte changes verdict keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..trajectories.models import Observation
from ..trajectories.record.facts import Fact
from ..trajectories.record.strangers import Stranger
from ..trajectories.turns.runner_results import RunnerResult, runner_results
from ..trajectories.turns.tool_calls import closing_turn
from .claimed_numbers import claimed_numbers
from .context import CodeContext
from .episodes import Episode
from .models import FiredCode
from .registry import fact_source

_MAX_LISTED = 25
"""Turns that one line lists; the others are counted."""
_MAX_CAUSE = 200
_MAX_QUOTE = 160
_MAX_STEPS = 8
"""Failed steps with a line of their own."""


def finding_facts(codes: Sequence[FiredCode]) -> tuple[Fact, ...]:
    """The findings that rest on facts, in their order, without the code that each fired."""
    facts: dict[tuple[str, str], Fact] = {}
    for code in codes:
        source = fact_source(code)
        if source is not None:
            kind = code.by.partition(":")[2]
            fact = Fact(kind=kind, text=code.why, turns=code.turns, source=source)
            facts.setdefault((kind, code.why), fact)
    return tuple(facts.values())


def trace_facts(ctx: CodeContext) -> tuple[Fact, ...]:
    """The facts of the trace of a run.

    They are a last run of tests that failed, the executions with their exit codes, blocked and
    unanswered calls, the last write, and the failed steps. A run without a track has no checked
    files and no report; its facts include the numbers that only its last message contains,
    once it has ended.
    """
    is_running = ctx.run.status.ended == "running"
    claims = claimed_numbers(ctx.run) if ctx.run.track is None and not is_running else ()
    return (
        *_failed_tests(ctx),
        *_executions(ctx),
        *claims,
        *_stopped_calls(ctx),
        *_unanswered_calls(ctx),
        *_last_write(ctx),
        *_failed_steps(ctx),
    )


def bare_facts(ctx: CodeContext, facts: Sequence[Fact] | None = None) -> tuple[Fact, ...]:
    """That the last run of tests failed; without a track, also that nothing was executed, and
    numbers that nothing recorded.

    `facts`: those of the run's record, if they exist already.
    """
    kinds = {"failed_tests"}
    if ctx.run.track is None:
        kinds |= {"nothing_executed", "claimed_numbers"}
    facts = trace_facts(ctx) if facts is None else facts
    return tuple(fact for fact in facts if fact.kind in kinds)


def _failed_tests(ctx: CodeContext) -> Iterator[Fact]:
    """At most one fact: the last run of tests failed, and the agent ended with a message."""
    results = list(runner_results(ctx.run))
    closing = closing_turn(ctx.run)
    if not results or closing is None or not results[-1].failed:
        return
    last = results[-1]
    if closing < last.turn or (closing == last.turn and _is_last_call(ctx, last)):
        return
    text = f"The last run of tests (turn {last.turn}) failed: {_test_words(last)}; "
    changed = _changed_between(ctx, last)
    if changed:
        text += f"calls wrote or edited files after it ({_turns(changed)}), and "
    text += f"the closing message (turn {closing}) follows it without another run of tests."
    turns = tuple(dict.fromkeys((last.turn, *changed, closing)))
    yield Fact(kind="failed_tests", text=text, turns=turns, source="exit")


def _test_words(result: RunnerResult) -> str:
    """The runner's own summary and the exit code, as far as they are recorded."""
    parts = [Stranger(result.summary, _MAX_QUOTE).quoted] if result.summary else []
    if result.exit_code is not None:
        parts.append(f"exit code {result.exit_code}")
    return ", ".join(parts)


def _is_last_call(ctx: CodeContext, result: RunnerResult) -> bool:
    """Whether no call of the run comes after a run of tests."""
    return result.place == sum(1 for _ in ctx.run.actions()) - 1


def _changed_between(ctx: CodeContext, result: RunnerResult) -> tuple[int, ...]:
    """Turns in which tools for files wrote or edited some after a run of tests."""
    turns = (
        turn.index
        for place, (turn, action) in enumerate(ctx.run.actions())
        if place > result.place and action.kind in ("write", "edit")
    )
    return tuple(dict.fromkeys(turns))


def _executions(ctx: CodeContext) -> Iterator[Fact]:
    executions = [
        (turn.index, action.observation)
        for turn, action in ctx.run.actions()
        if action.kind == "execute"
    ]
    if not executions:
        text = "No call of the run executed any code or command."
        yield Fact(kind="nothing_executed", text=text, source="trace")
        return
    exit_codes = [
        (turn, observation.exit_code)
        for turn, observation in executions
        if observation is not None and observation.exit_code is not None
    ]
    failed = [f"turn {turn}: {exit_code}" for turn, exit_code in exit_codes if exit_code]
    text = (
        f"Of {len(executions)} calls that execute code, {len(exit_codes)} have a recorded exit"
        f" code, {len(failed)} another one than 0"
    )
    listed = f" ({_listed(failed)})" if failed else ""
    marked = [
        f"turn {turn}: {observation.kind}"
        for turn, observation in executions
        if observation is not None and observation.exit_code is None and observation.failed
    ]
    marks = f"; {len(marked)} without one did not succeed ({_listed(marked)})" if marked else ""
    yield Fact(kind="executions", text=f"{text}{listed}{marks}.", source="exit")
    last_turn, last = executions[-1]
    yield Fact(
        kind="last_execution",
        text=f"The last call that executes code (turn {last_turn}) {_ending(last)}.",
        turns=(last_turn,),
        source="exit",
    )


def _ending(observation: Observation | None) -> str:
    if observation is None:
        return "was never answered"
    if observation.exit_code is None:
        return f"ended as {observation.kind!r} without a recorded exit code"
    return f"ended with exit code {observation.exit_code}"


def _stopped_calls(ctx: CodeContext) -> Iterator[Fact]:
    """Calls that were blocked or cancelled, or that timed out."""
    is_imported = ctx.run.imported is not None
    for kind, reason in (
        ("blocked", "not allowed" if is_imported else "blocked by the harness"),
        ("timeout", "stopped by a time limit"),
        ("cancelled", "cancelled"),
    ):
        answers = [
            (turn.index, action.observation.text)
            for turn, action in ctx.run.actions()
            if action.observation is not None and action.observation.kind == kind
        ]
        if answers:
            turns = tuple(dict.fromkeys(turn for turn, _ in answers))
            start = Stranger(answers[0][1], _MAX_QUOTE).quoted
            quote = f"; the first answer begins: {start}" if answers[0][1].strip() else ""
            text = f"Calls {reason}: {len(answers)} ({_turns(turns)}){quote}"
            yield Fact(kind=kind, text=text, turns=turns, source="harness")


def _unanswered_calls(ctx: CodeContext) -> Iterator[Fact]:
    unanswered = (turn.index for turn, action in ctx.run.actions() if action.observation is None)
    # The answers to the last calls of a run that goes on are still awaited.
    awaited = ctx.last if ctx.run.status.ended == "running" else None
    turns = tuple(turn for turn in dict.fromkeys(unanswered) if turn != awaited)
    if turns:
        text = f"Calls without any recorded answer: {_turns(turns)}."
        yield Fact(kind="unanswered", text=text, turns=turns, source="trace")


def _last_write(ctx: CodeContext) -> Iterator[Fact]:
    last = ctx.final_write
    if last is None:
        return
    executed = (
        turn.index
        for turn, action in ctx.run.actions()
        if turn.index > last and action.kind == "execute" and action.observation
    )
    later = tuple(dict.fromkeys(executed))
    after = "no code was executed after it"
    if later:
        after = f"code was executed after it in {_turns(later)}"
    text = f"The last turn that is seen to write outputs is turn {last}; {after}."
    yield Fact(kind="after_last_write", text=text, turns=(last, *later), source="trace")


def _failed_steps(ctx: CodeContext) -> Iterator[Fact]:
    """The most telling failed steps in the order of the run, then the number of the others."""
    exit_codes = {failure.turn: failure.exit_code for failure in ctx.failures}
    # Only some steps get a line, so that a run that failed often does not crowd out other facts.
    # Steps that were never overcome come first, then those that failed often, then late ones.
    ranked = sorted(ctx.episodes, key=lambda step: (step.resolved, -step.attempts, -step.turns[-1]))
    for step in sorted(ranked[:_MAX_STEPS], key=lambda step: step.first_turn):
        codes = [exit_codes.get(turn) for turn in step.turns]
        listed = _listed(["none" if code is None else str(code) for code in codes])
        text = (
            f"A step failed {_times(step)} ({_turns(step.turns)}; exit codes: {listed}):"
            f" {_cause(step)}; {_resolution(step)}."
        )
        yield Fact(kind="failed_step", text=text, turns=step.turns, source="exit")
    others = ranked[_MAX_STEPS:]
    if others:
        turns = tuple(sorted({turn for step in others for turn in step.turns}))
        text = (
            f"{len(others)} more steps failed; those with a line of their own were not"
            f" overcome, or failed more often or later ({_turns(turns)})."
        )
        yield Fact(kind="failed_steps", text=text, turns=turns, source="exit")


def _times(step: Episode) -> str:
    if step.attempts == 1:
        return "once"
    return f"{step.attempts} times with {step.errors} different errors"


def _cause(step: Episode) -> str:
    return Stranger(step.cause, _MAX_CAUSE).quoted


def _resolution(step: Episode) -> str:
    if step.resolved_at is None:
        return "nothing like it is seen to work later"
    return f"the step or what it was for is seen to work in turn {step.resolved_at}"


def _listed(parts: Sequence[str]) -> str:
    listed = ", ".join(parts[:_MAX_LISTED])
    if len(parts) > _MAX_LISTED:
        return f"{listed} and {len(parts) - _MAX_LISTED} more"
    return listed


def _turns(turns: Sequence[int]) -> str:
    return f"{'turn' if len(turns) == 1 else 'turns'} {_listed([str(turn) for turn in turns])}"
