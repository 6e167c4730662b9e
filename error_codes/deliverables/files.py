"""E5: what is wrong with the delivered files. Read from the files where they came with the run, else from its trace."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ..context import CodeContext
from ..output_facts import OutputFact
from ..registry import Finding, detector
from ..verification.class_signs import printed_strange_labels
from ..verification.signs import case_of

_GAVE_UP = re.compile(
    r"need more steps|step limit|maximum (?:number of )?(?:steps|iterations|turns)|ran out of (?:steps|time|turns)"
    r"|(?:can[’']t|cannot|not able to|unable to|couldn[’']t) (?:install|convert|complete|proceed|produce|run)\b|tried [^.\n]{0,120}\bbut\b"
    r"|(?:could|was) not (?:able to )?(?:complete|finish|produce)|unable to (?:complete|finish|produce)",
    re.IGNORECASE,
)


_DEMANDS: dict[str, re.Pattern[str]] = {
    "dtype": re.compile(r"\b(?:u?int(?:8|16|32)?|integers?|float(?:16|32|64)|bool(?:ean)?)\b", re.IGNORECASE),
    "affine": re.compile(r"\b(?:affine|spacing|geometry|header|grid|orientation|origin|voxel size)\b", re.IGNORECASE),
    "values": re.compile(
        r"\[\s?-?\d+(?:\.\d+)?\s?,\s?-?\d+(?:\.\d+)?\s?\]|\b(?:between|range|from) -?\d", re.IGNORECASE
    ),
    "unknown_class": re.compile(r"\bclass(?:es)?\b", re.IGNORECASE),
}
"""Kinds of facts that the track's format forgives, with the words by which a brief demands them all the same."""
_SAME_SHAPE = re.compile(
    r"\bshape\b[^.\n]{0,40}\b(?:of|as)\b|\bsame (?:\w{1,12} ){0,3}(?:shape|grid)\b|'s shape\b", re.IGNORECASE
)
_SHAPE = re.compile(r"\(\s?(\d{1,4}), (\d{1,4}), (\d{1,4})\s?\)")
MAX_LINES = 3_000
"""Lines of one output that are read."""
MIN_CASES = 2
"""Files of another shape from which it is no slip of a listing."""
_OUTPUT_PART = re.compile(r"(?m)^[ \t#*]{0,6}OUTPUTS?\b|agents_outputs/")
_HANDED_BACK = re.compile(
    r"^[ \t]{0,8}(?:(?:[-*•]|\d{1,2}[.)])[ \t]{1,4})?(?:please |then |finally,? |(?:you|the user) (?:need to|must|should|have to|has to|will have to) )?"
    r"(?:move|copy|rename|place|put)\b(.{1,400})$",
    re.IGNORECASE | re.MULTILINE,
)
_FILE_NAME = re.compile(
    r"[\w-]{2,60}\.(?:md|txt|csv|json|npy|nii\.gz|png|pdf|parquet)\b|\b[\w-]{2,40}/(?=[\s`'\".,]|$)"
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
    """Delivered files break the track's format: header, schema, shape, affine, value range, coordinates."""
    if ctx.facts is None or ctx.facts.source != "files" or not ctx.last:
        return
    broken = tuple(f for f in ctx.facts.defects if f not in ctx.facts.missing)
    if broken:
        yield Finding(_turns(ctx), f"Delivered files break the required format: {_describe(broken)}.", 0.95)


@detector("brief_demand_broken", code="E5", stage="S5", independence="from_files")
def brief_demand_broken(ctx: CodeContext) -> Iterable[Finding]:
    """Delivered files break a demand of the brief that the track's format forgives: type, affine, range, class names."""
    if ctx.facts is None or ctx.facts.source != "files" or not ctx.last:
        return
    asked = _output_part(ctx.run.brief)
    broken = tuple(
        f
        for f in ctx.facts.facts
        if f.kind == "demand" or (not f.fatal and f.kind in _DEMANDS and f.case and _DEMANDS[f.kind].search(asked))
    )
    if broken:
        yield Finding(_turns(ctx), f"Delivered files break a demand of the brief: {_describe(broken)}.", 0.85)


def _output_part(brief: str) -> str:
    """What the brief says on the outputs: from its heading, else from their path, a paragraph on."""
    start = _OUTPUT_PART.search(brief)
    return brief[start.start() :].split("\n\n", 1)[0][:800] if start is not None else ""


@detector("shape_changed", code="E5", stage="S5", independence="from_trace")
def shape_changed(ctx: CodeContext) -> Iterable[Finding]:
    """The run's own listings show other shapes for the delivered volumes than for the inputs, and the brief wants the same."""
    asked = _output_part(ctx.run.brief)
    if ctx.final_write is None or not _SAME_SHAPE.search(asked):
        return
    first = min(ctx.write_turns)
    before = _shapes(ctx, (f.turn for f in ctx.features if f.turn < first and f.loads_inputs and not f.forward_pass))
    after = _shapes(ctx, (t for t in ctx.checks if t > ctx.final_write and not ctx.feature(t).loads_inputs))
    common = [case for case in after if case in before]
    changed = [case for case in common if after[case] != before[case]]
    if len(changed) >= MIN_CASES and len(changed) * 2 > len(common):
        case = changed[0]
        why = f"{len(changed)} delivered files have another shape than their input ({case}: {after[case]}, input {before[case]})."
        yield Finding(tuple(sorted({ctx.final_write, ctx.checks[-1]})), why, 0.75)


def _shapes(ctx: CodeContext, turns: Iterable[int]) -> dict[str, str]:
    """Case -> the one shape of three axes that a line of these turns prints for it."""
    found: dict[str, str] = {}
    for turn in turns:
        for line in ctx.turn(turn).output.splitlines()[:MAX_LINES]:
            case, shapes = case_of(line[:600]), _SHAPE.findall(line[:600])
            if case and len(set(shapes)) == 1:
                found[case] = " x ".join(shapes[0])
    return found


@detector("left_to_the_user", code="E5", stage="S5", independence="from_trace")
def left_to_the_user(ctx: CodeContext) -> Iterable[Finding]:
    """The closing message asks the reader to put files in the place that the brief demanded of the run."""
    if not ctx.last or (ctx.facts is not None and ctx.facts.source == "files"):
        return
    done = "\n".join(a.code[:200_000] for _, a in ctx.run.actions() if a.kind == "execute")
    for rest in _HANDED_BACK.findall(ctx.turn(ctx.last).text[-8_000:]):
        # What the run itself named in its code is in its place; a note on how to use it asks for nothing.
        names = [n for n in _FILE_NAME.findall(rest) if n.strip("/") in ctx.run.brief and n not in done]
        if names:
            why = f"The closing message leaves it to the reader to make {names[0]}, which the brief demands."
            yield Finding((ctx.last,), why, 0.8)
            return


@detector("strange_labels", code="E5", stage="S5", independence="from_trace")
def strange_labels(ctx: CodeContext) -> Iterable[Finding]:
    """Masks that were listed after the last write hold label values that the brief does not allow."""
    found = printed_strange_labels(ctx)
    if found is not None:
        turn, labels = found
        shown = ", ".join(map(str, labels[:5]))
        turns = tuple(sorted({t for t in (ctx.final_write, turn) if t}))
        yield Finding(turns, f"The delivered masks hold the labels {shown}, which the brief does not allow.", 0.85)


@detector("report_says_incomplete", code="E5", stage="S5", independence="from_trace", fact="harness")
def report_says_incomplete(ctx: CodeContext) -> Iterable[Finding]:
    """The harness's own answer or report says that deliverables are missing or invalid (where no files were opened)."""
    if not ctx.last or (ctx.facts is not None and ctx.facts.source == "files"):
        return  # where files were opened, `called_invalid` weighs the report's word
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


@detector("called_invalid", code="E5", stage="S5", independence="from_files", fact="harness")
def called_invalid(ctx: CodeContext) -> Iterable[Finding]:
    """The report calls the delivered files incomplete or invalid, and what was opened cannot show it (no public inputs)."""
    report, facts = ctx.run.report, ctx.facts
    if report is None or facts is None or facts.source != "files" or not ctx.last or ctx.run.status.disqualified:
        return
    if facts.defects or facts.missing or facts.of("skipped", "placeholder"):
        return  # seen in the files themselves, or honestly left open
    if report.completion_rate is not None and report.completion_rate < 1:
        what = f"only {report.completion_rate:.0%} of the required outputs were delivered"
    elif report.output_format_valid is False or report.submission_format_valid is False:
        what = "the format of the delivered files is not valid"
    else:
        return
    yield Finding(_turns(ctx), f"By the report, {what}.", 0.85)


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
