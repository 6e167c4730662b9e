"""E5: what is wrong with the delivered files.

Read from the files if they came with the run, else from its trace.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ..context import CodeContext
from ..output_facts import MISSING, OutputIssue
from ..registry import Finding, detector

_DEMANDS: dict[str, re.Pattern[str]] = {
    "dtype": re.compile(r"\b(?:u?int|float)(?:8|16|32|64)\b"),
    "values": re.compile(r"\[\s?-?\d+(?:\.\d+)?\s?,\s?-?\d+(?:\.\d+)?\s?\]"),
    "unknown_class": re.compile(r"\bclass\b"),
}
"""Kinds of facts that the track's format forgives, with the type, interval or field by which a
brief declares them."""
_OUTPUT_PART = re.compile(r"(?m)^[ \t#*]{0,6}OUTPUTS?\b|agents_outputs/")


def _turns(ctx: CodeContext) -> tuple[int, ...]:
    """The turns in which the files were last written and handed over."""
    return tuple(sorted({turn for turn in (ctx.final_write, ctx.last) if turn}))


def _describe(facts: tuple[OutputIssue, ...]) -> str:
    """The most common issue with its number of cases."""
    cases = {fact.case for fact in facts if fact.case}
    text, count = Counter(map(_sentence, facts)).most_common(1)[0]
    description = " ".join(text.split())[:140].rstrip(".")
    if len(cases) > 1:
        description += f" in {len(cases)} cases"
    return f"{description} (most common)" if count < len(facts) else description


def _sentence(fact: OutputIssue) -> str:
    """The text of an issue; one that begins with its verb gets the file as its subject."""
    lacks_subject = fact.text.startswith(("has ", "is ", "holds "))
    return f"{fact.file} {fact.text}" if lacks_subject and fact.file else fact.text


@detector("missing_files", code="E5", stage="S5", independence="from_files", fact="file")
def missing_files(ctx: CodeContext) -> Iterable[Finding]:
    """Required files are absent, under another name, or in another place."""
    if ctx.facts is None or ctx.facts.source != "files" or not ctx.last:
        return
    lacking = ctx.facts.missing
    if lacking:
        kind = "misnamed or misplaced" if any(f.kind != "missing" for f in lacking) else "missing"
        yield Finding(_turns(ctx), f"Required files are {kind}: {_describe(lacking)}.", 0.95)


@detector("malformed_files", code="E5", stage="S5", independence="from_files", fact="file")
def malformed_files(ctx: CodeContext) -> Iterable[Finding]:
    """Delivered files break the track's format.

    Examples are header, schema, shape, affine, value range and coordinates.
    """
    if ctx.facts is None or ctx.facts.source != "files" or not ctx.last:
        return
    broken = tuple(issue for issue in ctx.facts.defects if issue.kind not in MISSING)
    if broken:
        yield Finding(
            _turns(ctx), f"Delivered files break the required format: {_describe(broken)}.", 0.95
        )


@detector("brief_demand_broken", code="E5", stage="S5", independence="from_files")
def brief_demand_broken(ctx: CodeContext) -> Iterable[Finding]:
    """Delivered files break a demand of the brief that the track's format forgives.

    Such demands concern type, affine, range and class names.
    """
    if ctx.facts is None or ctx.facts.source != "files" or not ctx.last:
        return
    asked = _output_part(ctx.run.brief)
    broken = tuple(
        f
        for f in ctx.facts.issues
        if f.kind == "demand"
        or (not f.fatal and f.kind in _DEMANDS and f.case and _DEMANDS[f.kind].search(asked))
    )
    if broken:
        yield Finding(
            _turns(ctx), f"Delivered files break a demand of the brief: {_describe(broken)}.", 0.85
        )


def _output_part(brief: str) -> str:
    """The paragraph of the brief about the outputs, from its heading or from their path on."""
    start = _OUTPUT_PART.search(brief)
    return brief[start.start() :].split("\n\n", 1)[0][:800] if start is not None else ""


@detector(
    "report_says_incomplete", code="E5", stage="S5", independence="from_trace", fact="harness"
)
def report_says_incomplete(ctx: CodeContext) -> Iterable[Finding]:
    """The harness says that deliverables are missing or invalid, and no files were opened.

    It says so in its answer to the submission or in its report.
    """
    if not ctx.last or (ctx.facts is not None and ctx.facts.source == "files"):
        return  # `called_invalid` weighs the report against opened files
    submitted = next(
        (t.index for t in ctx.run.turns for a in t.actions if a.kind == "submit"), ctx.last
    )
    lacking = _lacking(ctx.run.submit_result)
    if ctx.run.submit_result is not None and (lacking or ctx.run.status.completed is False):
        problem = f"{len(lacking)} missing files" if lacking else "an incomplete submission"
        yield Finding((submitted,), f"The answer to the submission names {problem}.", 0.95)
        return
    report = ctx.run.report
    if report is not None and report.completion_rate is not None and report.completion_rate < 1:
        yield Finding(
            (ctx.last,),
            f"Only {report.completion_rate:.0%} of the required outputs were delivered.",
            0.9,
        )
    elif report is not None and report.submission_format_valid is False:
        yield Finding((ctx.last,), "The report calls the format of the submission invalid.", 0.85)


@detector("called_invalid", code="E5", stage="S5", independence="from_files", fact="harness")
def called_invalid(ctx: CodeContext) -> Iterable[Finding]:
    """The report calls the delivered files incomplete or invalid, and opened files cannot show it.

    They cannot without public inputs.
    """
    report, facts = ctx.run.report, ctx.facts
    if report is None or facts is None or facts.source != "files":
        return
    if not ctx.last or ctx.run.status.disqualified:
        return
    if facts.defects or facts.missing or facts.of("skipped", "placeholder"):
        return  # seen in the files themselves, or honestly left open
    if report.completion_rate is not None and report.completion_rate < 1:
        problem = f"only {report.completion_rate:.0%} of the required outputs were delivered"
    elif report.output_format_valid is False or report.submission_format_valid is False:
        problem = "the format of the delivered files is not valid"
    else:
        return
    yield Finding(_turns(ctx), f"By the report, {problem}.", 0.85)


@detector("ended_without_deliverable", code="E5", stage="S5", independence="from_trace")
def ended_without_deliverable(ctx: CodeContext) -> Iterable[Finding]:
    """The run stopped or was cut before it wrote any deliverable."""
    status = ctx.run.status
    if not ctx.last or status.submitted or ctx.run.submit_result is not None:
        return
    if ctx.run.outputs.files or (ctx.facts is not None and ctx.facts.completion):
        return
    written = any(turn not in ctx.failed_turns for turn in ctx.write_turns)
    if not written and ctx.run.track is not None and status.ended in ("cut", "stopped"):
        yield Finding(
            (ctx.last,),
            "The run ended without a submission and without having written outputs.",
            0.85,
        )


def _lacking(result: dict[str, Any] | None) -> list[Any]:
    """The items that the answer to the submission lists as missing."""
    items: list[Any] = []
    for key, value in (result or {}).items():
        if key.startswith("missing") and isinstance(value, list):
            items += value
    return items
