"""E5: what is wrong with the delivered files. Read from the files where they came with the run, else from its trace."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from .class_signs import printed_strange_labels
from .context import CodeContext
from .output_facts import OutputFact
from .registry import Finding, detector

_GAVE_UP = re.compile(
    r"need more steps|step limit|maximum (?:number of )?(?:steps|iterations|turns)|ran out of (?:steps|time|turns)"
    r"|(?:can[’']t|cannot|not able to|unable to|couldn[’']t) (?:install|convert|complete|proceed|produce|run)\b|tried [^.\n]{0,120}\bbut\b"
    r"|(?:could|was) not (?:able to )?(?:complete|finish|produce)|unable to (?:complete|finish|produce)",
    re.IGNORECASE,
)


def _turns(ctx: CodeContext) -> tuple[int, ...]:
    """Where the files came from and where they were handed over."""
    ends = {t for t in (ctx.final_write, ctx.last) if t}
    return tuple(sorted(ends))


def _describe(facts: tuple[OutputFact, ...]) -> str:
    cases = {f.case for f in facts if f.case}
    text, count = Counter(f.text for f in facts).most_common(1)[0]
    where = f" in {len(cases)} cases" if len(cases) > 1 else ""
    return f"{' '.join(text.split())[:140].rstrip('.')}{where}" + (" (most common)" if count < len(facts) > 1 else "")


@detector("missing_files", code="E5", stage="S5", independence="from_files")
def missing_files(ctx: CodeContext) -> Iterable[Finding]:
    """Required files are absent, under another name, or in another place."""
    if ctx.facts is None or ctx.facts.source != "files" or not ctx.last:
        return
    lacking = ctx.facts.missing
    if lacking:
        kind = "misnamed or misplaced" if any(f.kind != "missing" for f in lacking) else "missing"
        yield Finding(_turns(ctx), f"Required files are {kind}: {_describe(lacking)}.", 0.95)


@detector("malformed_files", code="E5", stage="S5", independence="from_files")
def malformed_files(ctx: CodeContext) -> Iterable[Finding]:
    """Delivered files break the track's format: header, schema, shape, affine, value range, coordinates."""
    if ctx.facts is None or ctx.facts.source != "files" or not ctx.last:
        return
    broken = tuple(f for f in ctx.facts.defects if f not in ctx.facts.missing)
    if broken:
        yield Finding(_turns(ctx), f"Delivered files break the required format: {_describe(broken)}.", 0.95)


@detector("strange_labels", code="E5", stage="S5", independence="from_trace")
def strange_labels(ctx: CodeContext) -> Iterable[Finding]:
    """Masks that were listed after the last write hold label values that the brief does not allow."""
    found = printed_strange_labels(ctx)
    if found is not None:
        turn, labels = found
        shown = ", ".join(map(str, labels[:5]))
        turns = tuple(sorted({t for t in (ctx.final_write, turn) if t}))
        yield Finding(turns, f"The delivered masks hold the labels {shown}, which the brief does not allow.", 0.85)


@detector("report_says_incomplete", code="E5", stage="S5", independence="from_trace")
def report_says_incomplete(ctx: CodeContext) -> Iterable[Finding]:
    """The harness's own answer or report says that deliverables are missing or invalid (where no files were opened)."""
    if not ctx.last or (ctx.facts is not None and ctx.facts.source == "files"):
        return
    submitted = next((t.index for t in ctx.run.turns for a in t.actions if a.kind == "submit"), ctx.last)
    lacking = _lacking(ctx.run.submit_result)
    if ctx.run.submit_result is not None and (lacking or ctx.run.status.completed is False):
        what = f"{len(lacking)} missing files" if lacking else "an incomplete submission"
        yield Finding((submitted,), f"The answer to the submission names {what}.", 0.95)
        return
    report = ctx.run.report
    if report is not None and report.completion_rate is not None and report.completion_rate < 1:
        yield Finding((ctx.last,), f"Only {report.completion_rate:.0%} of the required outputs were delivered.", 0.9)
    elif report is not None and report.submission_format_valid is False:
        yield Finding((ctx.last,), "The report calls the format of the submission invalid.", 0.85)


@detector("ended_without_deliverable", code="E5", stage="S5", independence="from_trace")
def ended_without_deliverable(ctx: CodeContext) -> Iterable[Finding]:
    """The run gave up or was cut before it wrote any deliverable."""
    if not ctx.last or ctx.run.outputs.files or ctx.run.status.submitted or ctx.run.submit_result is not None:
        return
    if ctx.facts is not None and ctx.facts.completion:
        return
    gave_up = _GAVE_UP.search(ctx.turn(ctx.last).text)
    written = [t for t in ctx.write_turns if t not in ctx.failed_turns]
    if gave_up and not written and not (ctx.run.track is None and not ctx.failures):
        yield Finding((ctx.last,), "The run ended by giving up, and no deliverable was written.", 0.85)
    elif not written and ctx.run.track is not None and ctx.run.status.ended in ("cut", "stopped"):
        yield Finding((ctx.last,), "The run ended without a submission and without having written outputs.", 0.85)


def _lacking(result: dict[str, Any] | None) -> list[Any]:
    if result is None:
        return []
    return [
        item for key, value in result.items() if key.startswith("missing") and isinstance(value, list) for item in value
    ]
