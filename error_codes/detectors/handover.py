"""E3 at the hand-over: wrong files that no check asked for, a failed batch taken for success,
nothing looked at at all.

What was looked at is read off the calls. Whether closing words own up to a fault takes reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..context import CodeContext
from ..output_facts import OutputIssue
from ..registry import Finding, detector
from .cases import MAX_LINES, rows

_VALUE = re.compile(r"(?<![\w./:-])-?\d{1,12}(?:\.\d{1,12})?(?![\w/:%])")
_LISTED = frozenset({"missing", "misplaced"})
"""Defects that any listing shows; another name only one that prints it."""
_CONTENT = frozenset({"scattered", "constant", "unchanged", "placeholder", "skipped"})


def hand_over(ctx: CodeContext) -> tuple[int, ...]:
    """The last write, the checks after it, and the hand-over."""
    return tuple(sorted({t for t in (ctx.final_write, *ctx.checks, ctx.last) if t}))


@detector("wrong_files_unnoticed", code="E3", stage="S5", independence="from_files")
def wrong_files_unnoticed(ctx: CodeContext) -> Iterable[Finding]:
    """Delivered files are wrong and the run's own check passed, tested something else, or never
    took place."""
    if ctx.facts is None or not ctx.facts.defects or not ctx.handed_over or ctx.final_write is None:
        return
    opened = tuple(
        f.turn for f in ctx.features[ctx.final_write - 1 :] if f.checks_outputs or f.reads_outputs
    )
    shown = _shown_defects(ctx, opened)
    if shown:
        what = shown[0].text.rstrip(".")[:100]
        how = "its own check did not ask for it" if opened else "no delivered file was opened"
        why = f"The run was handed over as good although files are wrong ({what}): {how}."
        yield Finding(hand_over(ctx), why, 0.85, ctx.stage(ctx.checks[-1]) if ctx.checks else "S5")


def _shown_defects(ctx: CodeContext, opened: tuple[int, ...]) -> tuple[OutputIssue, ...]:
    """Defects that were there to see: all where nothing was opened; else those of a listing, of
    most files, or of a file that was shown."""
    facts = ctx.facts
    if facts is None or not opened:
        return facts.defects if facts is not None else ()
    printed = "\n".join(ctx.turn(t).output[-60_000:] for t in opened)
    code = "\n".join(ctx.turn(t).code[:200_000] for t in opened)
    if any(d.kind == "header" and d.text.rpartition(", not ")[2] in code for d in facts.defects):
        return ()  # the check asked for that very header, in another place
    total = facts.expected_cases or len(ctx.run.outputs.cases)
    most = len({d.case for d in facts.defects}) * 2 >= total
    return tuple(
        d
        for d in facts.defects
        if (
            d.text.partition(" instead of ")[0] in printed
            if d.kind == "misnamed"
            else most or d.case is None or d.kind in _LISTED or d.case in printed
        )
    )


@detector("rejected_unnoticed", code="E3", stage="S5", independence="from_trace")
def rejected_unnoticed(ctx: CodeContext) -> Iterable[Finding]:
    """The harness found the submission wrong where opened files show no fault or none came along,
    and the run did not."""
    facts, report, answer = ctx.facts, ctx.run.report, ctx.run.submit_result
    rate = report.completion_rate if report is not None else None
    # cases under names that only the benchmark knows to be wrong
    fewer = rate is not None and rate < 0.995
    if (
        facts is not None
        and facts.source == "files"
        and (facts.defects or (facts.format_valid is not False and not fewer))
    ):
        return
    if not ctx.handed_over or ctx.final_write is None:
        return
    lacking = any(key.startswith("missing") and value for key, value in (answer or {}).items())
    wrong = lacking or fewer or (answer is not None and ctx.run.status.completed is False)
    wrong = wrong or (report is not None and report.submission_format_valid is False)
    if wrong:
        why = (
            "The run was handed over as good and the harness found its files incomplete or invalid."
        )
        yield Finding(hand_over(ctx), why, 0.75)


@detector("failed_batch_accepted", code="E3", stage="S4", independence="from_trace")
def failed_batch_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """The last run over the cases failed, nothing was checked after it, and the run was handed
    over."""
    final = ctx.final_write
    if (
        final is None
        or final not in ctx.failed_turns
        or not ctx.handed_over
        or ctx.checks
        or ctx.run.track is None
    ):
        return
    yield Finding(
        (final, ctx.last),
        "The last run over the cases failed, and nothing was looked at after it.",
        0.85,
    )


@detector("nothing_checked", code="E3", stage="S5", independence="from_trace")
def nothing_checked(ctx: CodeContext) -> Iterable[Finding]:
    """Outputs were handed over and nothing at all was looked at after they were written, nor did
    the last write print values or texts."""
    final = ctx.final_write
    if final is None or not ctx.handed_over or ctx.run.track is None:
        return
    looked = any(
        f.checks_outputs or f.reads_outputs
        for f in ctx.features
        if f.turn >= final and not f.blocked
    )
    lines = [line[:400] for line in ctx.turn(final).output.splitlines()[-MAX_LINES:]]
    texts = {line for line in lines if len(line.split()) >= 4}
    if not looked and len(texts) < 3 and sum(len(_VALUE.findall(line)) for line in lines) < 3:
        why = "No output was opened or checked before the hand-over."
        yield Finding(tuple(sorted({final, ctx.last})), why, 0.85)


@detector("bad_output_unseen", code="E3", stage="S5", independence="from_files")
def bad_output_unseen(ctx: CodeContext) -> Iterable[Finding]:
    """There was no pilot, results of few cases were ever shown, and among the others the files hold
    something bad."""
    final = ctx.final_write
    if ctx.facts is None or final is None or not ctx.handed_over or ctx.run.track is None:
        return
    cases = set(ctx.run.outputs.cases)
    seen = _seen_cases(ctx)
    pilot = any(
        t < final and t not in ctx.failed_turns and ctx.stage(t) == "S3" for t in ctx.model_turns
    )
    if pilot or len(cases) < 4 or len(seen & cases) > len(cases) / 4:
        return
    content = (*ctx.facts.of(*_CONTENT), *ctx.facts.hollow)
    bad = [fact for fact in content if fact.case is not None and fact.case not in seen]
    if bad:
        why = (
            f"Without a pilot, results of {len(seen)} of {len(cases)} cases were ever shown;"
            f" unseen, {str(bad[0]).rstrip('.')}."
        )
        yield Finding(hand_over(ctx), why, 0.8)


def _seen_cases(ctx: CodeContext) -> set[str]:
    """Cases of which something was shown once a model ran: numbers beside their id, or code that
    opens them without writing."""
    seen: set[str] = set()
    for feature in ctx.features[(ctx.model_turns or (ctx.last + 1,))[0] - 1 :]:
        if not feature.executed or feature.blocked:
            continue
        seen |= {case for case, numbers in rows(ctx, feature.turn).items() if numbers}
        if feature.reads_outputs or (feature.forward_pass and not feature.writes_outputs):
            code = ctx.turn(feature.turn).code[:200_000]
            seen |= {case for case in ctx.run.outputs.cases if case in code}
    return seen
