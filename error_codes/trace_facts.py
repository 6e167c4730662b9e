"""Facts of the trace: what failed, was blocked or stayed unanswered, and what detectors prove
without reading.

trace_facts     executions, exit codes, failed steps, blocks, what came after the last write
bare_facts      those that say something of a run without a track by themselves
finding_facts   findings of detectors that are marked as resting on facts
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..trajectories.record.facts import Fact
from .claimed_numbers import claimed_numbers
from .context import CodeContext
from .fired import Fired
from .registry import detectors

_NAMED = 25
"""Turns that one line names; the rest are counted."""
_CAUSE = 200
_STEPS = 8
"""Failed steps that have a line of their own: never overcome before overcome, often before once,
late before early."""


def finding_facts(found: Sequence[Fired]) -> tuple[Fact, ...]:
    """What marked detectors found, in their order; the code that each fired is not named."""
    sources = {
        f"detector:{d.name}": d.fact
        for taxonomy in ("paper", "harness")
        for d in detectors(taxonomy)
    }
    facts: dict[tuple[str, str], Fact] = {}
    for code in found:
        source = sources.get(code.by)
        if code.fact and source is not None:
            kind = code.by.partition(":")[2]
            facts.setdefault(
                (kind, code.why), Fact(kind=kind, text=code.why, turns=code.turns, source=source)
            )
    return tuple(facts.values())


def trace_facts(ctx: CodeContext) -> tuple[Fact, ...]:
    """Executions and their exit codes first, then blocked and unanswered calls, the last write, and
    every failed step.

    Of a run without a track also the numbers that its last message alone has: no file and no report
    speaks there.
    """
    claims = claimed_numbers(ctx.run) if ctx.run.track is None else ()
    return (*_executions(ctx), *claims, *_stopped(ctx), *_last_write(ctx), *_failed_steps(ctx))


def bare_facts(ctx: CodeContext) -> tuple[Fact, ...]:
    """Of a run without a track: that nothing was executed, and numbers that nothing recorded
    contains."""
    if ctx.run.track is not None:
        return ()
    return tuple(
        fact for fact in trace_facts(ctx) if fact.kind in ("nothing_executed", "claimed_numbers")
    )


def _executions(ctx: CodeContext) -> Iterator[Fact]:
    ran = [(t.index, a.observation) for t, a in ctx.run.actions() if a.kind == "execute"]
    if not ran:
        yield Fact(
            kind="nothing_executed",
            text="No call of the run executed any code or command.",
            source="trace",
        )
        return
    codes = [
        (turn, seen.exit_code)
        for turn, seen in ran
        if seen is not None and seen.exit_code is not None
    ]
    failed = [(turn, code) for turn, code in codes if code]
    text = (
        f"Of {len(ran)} calls that execute code, {len(codes)} have a recorded exit code,"
        f" {len(failed)} another one than 0"
    )
    shown = _listed([f"turn {turn}: {code}" for turn, code in failed])
    yield Fact(kind="executions", text=f"{text}{f' ({shown})' if shown else ''}.", source="exit")
    turn, seen = ran[-1]
    ended = (
        "was never answered"
        if seen is None
        else f"ended as {seen.kind!r} without a recorded exit code"
    )
    if seen is not None and seen.exit_code is not None:
        ended = f"ended with exit code {seen.exit_code}"
    yield Fact(
        kind="last_execution",
        text=f"The last call that executes code (turn {turn}) {ended}.",
        turns=(turn,),
        source="exit",
    )


def _stopped(ctx: CodeContext) -> Iterator[Fact]:
    """Calls that were blocked, timed out, or got no answer."""
    for kind, words in (
        ("blocked", "blocked by the harness"),
        ("timeout", "stopped by a time limit"),
    ):
        hit = [
            t.index
            for t, a in ctx.run.actions()
            if a.observation is not None and a.observation.kind == kind
        ]
        if hit:
            turns = tuple(dict.fromkeys(hit))
            said = next(
                a.observation.text
                for _, a in ctx.run.actions()
                if a.observation and a.observation.kind == kind
            )
            quote = (
                f"; the first answer begins: {' '.join(said[:600].split())[:160]}"
                if said.strip()
                else ""
            )
            text = f"Calls {words}: {len(hit)} ({_turns(turns)}){quote}"
            yield Fact(kind=kind, text=text, turns=turns, source="harness")
    silent = tuple(dict.fromkeys(t.index for t, a in ctx.run.actions() if a.observation is None))
    if silent:
        text = f"Calls without any recorded answer: {_turns(silent)}."
        yield Fact(kind="unanswered", text=text, turns=silent, source="trace")


def _last_write(ctx: CodeContext) -> Iterator[Fact]:
    last = ctx.final_write
    if last is None:
        return
    later = tuple(
        dict.fromkeys(
            t.index
            for t, a in ctx.run.actions()
            if t.index > last and a.kind == "execute" and a.observation
        )
    )
    after = (
        f"code was executed after it in {_turns(later)}"
        if later
        else "no code was executed after it"
    )
    text = f"The last turn that is seen to write outputs is turn {last}; {after}."
    yield Fact(kind="after_last_write", text=text, turns=(last, *later), source="trace")


def _failed_steps(ctx: CodeContext) -> Iterator[Fact]:
    codes = {f.turn: f.exit_code for f in ctx.failures}
    first = sorted(ctx.episodes, key=lambda e: (e.resolved, -e.attempts, -e.turns[-1]))
    for episode in sorted(first[:_STEPS], key=lambda e: e.first_turn):
        cause = " ".join(episode.cause.split())
        cause = cause if len(cause) <= _CAUSE else f"{cause[:_CAUSE]}..."
        shown = _listed(["none" if codes.get(t) is None else codes[t] for t in episode.turns])
        times = (
            "once"
            if episode.attempts == 1
            else f"{episode.attempts} times with {episode.errors} different errors"
        )
        end = "nothing like it is seen to work later"
        if episode.resolved_at is not None:
            end = f"the step or what it was for is seen to work in turn {episode.resolved_at}"
        text = (
            f"A step failed {times} ({_turns(episode.turns)}; exit codes: {shown}): {cause}; {end}."
        )
        yield Fact(kind="failed_step", text=text, turns=episode.turns, source="exit")
    rest = tuple(sorted({turn for episode in first[_STEPS:] for turn in episode.turns}))
    if rest:
        text = (
            f"{len(first) - _STEPS} more steps failed; those with a line of their own were not"
            f" overcome, or failed more often or later ({_turns(rest)})."
        )
        yield Fact(kind="failed_steps", text=text, turns=rest, source="exit")


def _listed(parts: Sequence[object]) -> str:
    shown = ", ".join(map(str, parts[:_NAMED]))
    return f"{shown} and {len(parts) - _NAMED} more" if len(parts) > _NAMED else shown


def _turns(turns: Sequence[int]) -> str:
    return f"{'turn' if len(turns) == 1 else 'turns'} {_listed(turns)}"
