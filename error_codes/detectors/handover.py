"""E3 at the hand-over: wrong files that no check found, a failed batch accepted, nothing checked.

The calls show what was looked at. Whether closing words admit a fault is for a judge to read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..context import CodeContext
from ..output_facts import OutputIssue
from ..registry import Finding, detector
from .printed_cases import MAX_LINES, printed_numbers

_VALUE = re.compile(r"(?<![\w./:-])-?\d{1,12}(?:\.\d{1,12})?(?![\w/:%])")
_IN_LISTINGS = frozenset({"missing", "misplaced"})
"""Kinds of defects that any listing shows; a wrong name is shown by one that prints it."""
_CONTENT = frozenset({"scattered", "constant", "unchanged", "placeholder", "skipped"})


def hand_over(ctx: CodeContext) -> tuple[int, ...]:
    """The last write, the checks after it, and the hand-over."""
    return tuple(sorted({t for t in (ctx.final_write, *ctx.checks, ctx.last) if t}))


@detector("wrong_files_unnoticed", code="E3", stage="S5", independence="from_files")
def wrong_files_unnoticed(ctx: CodeContext) -> Iterable[Finding]:
    """Delivered files are wrong, and the run's own check missed it or never took place.

    A check missed it if it passed or tested something else.
    """
    if ctx.facts is None or not ctx.facts.defects or not ctx.handed_over or ctx.final_write is None:
        return
    opened = tuple(
        f.turn for f in ctx.features[ctx.final_write - 1 :] if f.checks_outputs or f.reads_outputs
    )
    defects = _visible_defects(ctx, opened)
    if defects:
        defect = defects[0].text.rstrip(".")[:100]
        reason = "its own check did not ask for it" if opened else "no delivered file was opened"
        why = f"The run was handed over as good although files are wrong ({defect}): {reason}."
        stage = ctx.stage(ctx.checks[-1]) if ctx.checks else "S5"
        yield Finding(hand_over(ctx), why, 0.85, stage)


def _visible_defects(ctx: CodeContext, opened: tuple[int, ...]) -> tuple[OutputIssue, ...]:
    """Defects that the run could have seen.

    All of them if no file was opened; else those that any listing shows, those of most files, and
    those of files whose case was printed.
    """
    if ctx.facts is None:
        return ()
    defects = ctx.facts.defects
    if not opened:
        return defects
    printed = "\n".join(ctx.turn(turn).output[-60_000:] for turn in opened)
    code = "\n".join(ctx.turn(turn).code[:200_000] for turn in opened)
    headers = [d.text.rpartition(", not ")[2] for d in defects if d.kind == "header"]
    if any(header in code for header in headers):
        return ()  # the check asked for that very header, in another place
    total = ctx.facts.expected_cases or len(ctx.run.outputs.cases)
    in_most_cases = len({defect.case for defect in defects}) * 2 >= total
    return tuple(defect for defect in defects if _is_visible(defect, printed, in_most_cases))


def _is_visible(defect: OutputIssue, printed: str, in_most_cases: bool) -> bool:
    if defect.kind == "misnamed":
        return defect.text.partition(" instead of ")[0] in printed
    if in_most_cases or defect.case is None or defect.kind in _IN_LISTINGS:
        return True
    return defect.case in printed


@detector("rejected_unnoticed", code="E3", stage="S5", independence="from_trace")
def rejected_unnoticed(ctx: CodeContext) -> Iterable[Finding]:
    """The harness found the submission wrong, and the run did not.

    Opened files show no fault, or no files came with the run.
    """
    if not ctx.handed_over or ctx.final_write is None:
        return
    facts, report, answer = ctx.facts, ctx.run.report, ctx.run.submit_result
    rate = report.completion_rate if report is not None else None
    # Cases may lie under names that only the benchmark knows to be wrong.
    incomplete = rate is not None and rate < 0.995
    if facts is not None and facts.source == "files":
        valid = facts.format_valid is not False
        if facts.defects or (valid and not incomplete):
            return
    lacking = any(key.startswith("missing") and value for key, value in (answer or {}).items())
    rejected = answer is not None and ctx.run.status.completed is False
    invalid = report is not None and report.submission_format_valid is False
    if incomplete or lacking or rejected or invalid:
        why = (
            "The run was handed over as good and the harness found its files incomplete or invalid."
        )
        yield Finding(hand_over(ctx), why, 0.75)


@detector("failed_batch_accepted", code="E3", stage="S4", independence="from_trace")
def failed_batch_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """The last run over the cases failed, and its outputs were handed over without a check."""
    final = ctx.final_write
    if final is None or final not in ctx.failed_turns or ctx.run.track is None:
        return
    if ctx.handed_over and not ctx.checks:
        why = "The last run over the cases failed, and nothing was looked at after it."
        yield Finding((final, ctx.last), why, 0.85)


@detector("nothing_checked", code="E3", stage="S5", independence="from_trace")
def nothing_checked(ctx: CodeContext) -> Iterable[Finding]:
    """Outputs were handed over, and nothing was looked at after they were written.

    The last write did not print values or texts either.
    """
    final = ctx.final_write
    if final is None or not ctx.handed_over or ctx.run.track is None:
        return
    looked = any(
        feature.checks_outputs or feature.reads_outputs
        for feature in ctx.features
        if feature.turn >= final and not feature.blocked
    )
    lines = [line[:400] for line in ctx.turn(final).output.splitlines()[-MAX_LINES:]]
    texts = {line for line in lines if len(line.split()) >= 4}
    values = sum(len(_VALUE.findall(line)) for line in lines)
    if not looked and len(texts) < 3 and values < 3:
        why = "No output was opened or checked before the hand-over."
        yield Finding(tuple(sorted({final, ctx.last})), why, 0.85)


@detector("bad_output_unseen", code="E3", stage="S5", independence="from_files")
def bad_output_unseen(ctx: CodeContext) -> Iterable[Finding]:
    """Bad outputs were handed over without a pilot, and few results were ever displayed.

    The bad outputs are among the cases that were not displayed.
    """
    final = ctx.final_write
    if ctx.facts is None or final is None or not ctx.handed_over or ctx.run.track is None:
        return
    cases = set(ctx.run.outputs.cases)
    displayed = _displayed_cases(ctx)
    pilot = any(
        turn < final and turn not in ctx.failed_turns and ctx.stage(turn) == "S3"
        for turn in ctx.model_turns
    )
    if pilot or len(cases) < 4 or len(displayed & cases) > len(cases) / 4:
        return
    content = (*ctx.facts.of(*_CONTENT), *ctx.facts.hollow)
    bad = [fact for fact in content if fact.case is not None and fact.case not in displayed]
    if bad:
        why = (
            f"Without a pilot, results of {len(displayed)} of {len(cases)} cases were ever shown;"
            f" unseen, {str(bad[0]).rstrip('.')}."
        )
        yield Finding(hand_over(ctx), why, 0.8)


def _displayed_cases(ctx: CodeContext) -> set[str]:
    """Cases whose results were displayed once a model ran.

    That is, numbers beside their id, or code that opens them without writing.
    """
    displayed: set[str] = set()
    first = ctx.model_turns[0] if ctx.model_turns else ctx.last + 1
    for feature in ctx.features[first - 1 :]:
        if not feature.executed or feature.blocked:
            continue
        numbers = printed_numbers(ctx, feature.turn)
        displayed |= {case for case, values in numbers.items() if values}
        if feature.reads_outputs or (feature.forward_pass and not feature.writes_outputs):
            code = ctx.turn(feature.turn).code[:200_000]
            displayed |= {case for case in ctx.run.outputs.cases if case in code}
    return displayed
