"""E3: evidence of bad output that nobody looked at, checked or repaired; claims of checks that were never run."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..context import CodeContext
from ..output_facts import OutputFact
from ..registry import Finding, detector
from .case_signs import may_be_empty, owns_up
from .case_tables import rows_of
from .reactions import answered, speaks_of
from .signs import Sign, signs

_CLAIM = re.compile(
    r"\b(?:verified|validated|double[- ]checked|cross-checked|confirmed|fully tested|sanity[- ]checked)\b",
    re.IGNORECASE,
)
_SUCCESS = re.compile(
    r"\b(?:done|complet\w{1,3}|success\w{0,5}|finished|all set|works?|ready|submit\w{0,4}|saved|all \d+)\b",
    re.IGNORECASE,
)
_ADMITTED = re.compile(
    r"\b(?:only|just) \d+ (?:of|out of|/)|\bincomplete\b|\bnot (?:all|complete|finished|every)\b|\b(?:could|did|was|were) ?n[o']t\b"
    r"[^.\n]{0,40}\b(?:finish|complet|processed|written|produced|saved)|\bmissing\b|\bfailed for\b|\bpartial\b|\b(?:have|has|got|with) (?:still )?no (?:answer|output|prediction|report|mask|file|result|box)(?:e?s)?\b|\b(?:leave|left) (?:it|them|those|these) out\b|\bI stop here\b|\bthe rest (?:would|is|was|could|remains|needs)\b|\bneed more steps",
    re.IGNORECASE,
)
_FAILURE_SAID = re.compile(
    r"\b(?:unable|cannot|can[’']t|could ?n[o’']t|could not|tried [^.\n]{0,120}\bbut\b|not available|unfortunately|timed out|gave up)\b",
    re.IGNORECASE,
)
_DISOWNED = re.compile(
    r"\bnone of (?:them|these|the \w{1,20}|it) (?:comes?|came|is|are|was|were|stems?)\b[^.\n]{0,40}\bmodel"
    r"|\b(?:do|does|did)(?: not|n['’]t) (?:fulfil\w?|meet|satisfy|comply)|\bnot (?:real |genuine |true )?model (?:outputs?|answers?|predictions?)"
    r"|\bbreak(?:s|ing)? the rule\b|\b(?:should|must|may) not be (?:counted|scored|treated|taken) as\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:no|none|nothing|zero|0|without|any|isn't|aren't)\b[^.\n]{0,40}?\b(?:missing|incomplete|partial)\b",
    re.IGNORECASE,
)
_DEFECT = re.compile(
    r"\b(?:(?:fires?|responds?|peaks?|triggers?) (?:inside|in|on|at) [^.\n]{0,60}\b(?:not|instead|corner)|not on [^.\n]{0,40} at all"
    r"|implausibl[ey]|looks? (?:wrong|bad)|far too (?:many|few|high|low)|(?:doesn't|does not) (?:match|fit|look))\b",
    re.IGNORECASE,
)
_PROMISED = re.compile(
    r"^[^\n]{0,200}\b(?:verif\w{1,7}|check)\b[^\n]{0,80}\b(?:files?|outputs?|masks?|shapes?|json|csv|affine|dtype|rows?|schema|format)\b",
    re.IGNORECASE | re.MULTILINE,
)
MAX_ROWS = 2_000
"""Lines of one output that are read."""
_IDS = re.compile(
    r"\b[A-Za-z]{1,20}[_-]?\d{1,10}\b|\b\d+/\d+\b|\b\d+(?:\.\d+)? ?(?:s|sec|seconds|ms|it/s|%)(?!\w)|\d\d:\d\d"
)
_RUNNING = re.compile(
    r"\b(?:ok|done|saved?|wrote|written|writing|finished|process(?:ed|ing)|running|loading|loaded|complete[d]?|saving|to|in|all|case|patient|image)\b"
    r"|(?:/[\w.-]+)+|\[\d+/\d+\]|[^\w\s.-]", re.IGNORECASE)  # fmt: skip
_VALUE = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")


def _hand_over(ctx: CodeContext) -> tuple[int, ...]:
    """The last write, the checks after it, and the hand-over."""
    return tuple(sorted({t for t in (ctx.final_write, *ctx.checks, ctx.last) if t}))


@detector("wrong_files_unnoticed", code="E3", stage="S5", independence="from_files")
def wrong_files_unnoticed(ctx: CodeContext) -> Iterable[Finding]:
    """Delivered files are wrong and the run's own check passed, tested something else, or never took place."""
    if ctx.facts is None or not ctx.facts.defects or not ctx.handed_over or ctx.final_write is None:
        return
    if admits(ctx):
        return
    shown = _shown_defects(ctx)
    if not shown:
        return
    what = shown[0].text.rstrip(".")[:100]
    how = "its own check did not ask for it" if _opened(ctx) else "no delivered file was opened"
    stage = ctx.stage(ctx.checks[-1]) if ctx.checks else "S5"
    yield Finding(
        _hand_over(ctx), f"The run was handed over as good although files are wrong ({what}): {how}.", 0.85, stage
    )


def _opened(ctx: CodeContext) -> tuple[int, ...]:
    """Turns that opened delivered files, from the last write on."""
    start = ctx.final_write or ctx.last
    return tuple(f.turn for f in ctx.features[start - 1 :] if f.checks_outputs or f.reads_outputs)


def _shown_defects(ctx: CodeContext) -> tuple[OutputFact, ...]:
    """Defects that were there to see: all where nothing was opened; else those of a listing, of most files, or of a file that was shown."""
    defects = ctx.facts.defects if ctx.facts is not None else ()
    opened = _opened(ctx)
    if not opened:
        return defects
    printed = "\n".join(ctx.turn(t).output[-60_000:] for t in opened)
    code = "\n".join(ctx.turn(t).code[:200_000] for t in opened)
    hidden = [d for d in defects if _hidden_from(d, code)]
    no_header = any(d.kind == "header" for d in hidden)  # its first row is then taken for one
    defects = tuple(d for d in defects if d not in hidden and not (no_header and d.kind == "missing" and not d.case))
    total = (ctx.facts.expected_cases if ctx.facts is not None else None) or len(ctx.run.outputs.cases)
    most = len({d.case for d in defects}) * 2 >= total
    return tuple(d for d in defects if most or d.case is None or d.kind in _BY_NAME or d.case in printed)


def _hidden_from(defect: OutputFact, code: str) -> bool:
    """Whether a check could not show this defect although it asked for it.

    It counted files of more places than the delivered folder, or it looked for the very header that is not where it belongs.
    """
    if defect.kind in _BY_NAME:
        return not _GOES_TO_OUTPUTS.search(code) and any(
            "agents_outputs" not in path and not path.startswith(("/data", "data/"))
            for path in _ELSEWHERE.findall(code)
        )
    wanted = _NOT_HEADER.search(defect.text) if defect.kind == "header" else None
    return wanted is not None and wanted[1] in code


_ELSEWHERE = re.compile(r"(?<![\w./*}$-])((?:/?[\w-]{1,40}){1,6}/(?:\*\*|\*)/[\w.*-]{1,60})")
"""Files of several folders that are named by a pattern."""
_GOES_TO_OUTPUTS = re.compile(r"\b(?:cd|chdir\() ?['\"]?[\w./-]{0,60}agents_outputs")
_NOT_HEADER = re.compile(r", not ([\w,;-]{3,200})$")
_BY_NAME = frozenset({"missing", "misnamed", "misplaced"})
"""Defects that a listing shows."""


@detector("bad_output_unseen", code="E3", stage="S5", independence="from_files")
def bad_output_unseen(ctx: CodeContext) -> Iterable[Finding]:
    """There was no pilot, results of few cases were ever shown, and among the others the files hold something bad."""
    final = ctx.final_write
    if ctx.facts is None or final is None or not ctx.handed_over or ctx.run.track is None:
        return
    cases = set(ctx.run.outputs.cases)
    seen = seen_cases(ctx)
    pilot = any(t < final and t not in ctx.failed_turns and ctx.stage(t) == "S3" for t in ctx.model_turns)
    if pilot or len(cases) < 4 or len(seen & cases or seen) > len(cases) / 4:
        return
    bad = [f for f in ctx.facts.facts if f.kind in _CONTENT and f.case is not None and f.case not in seen]
    if bad and not (bad[0].kind == "empty" and may_be_empty(ctx)):
        why = f"Without a pilot, results of {len(seen)} of {len(cases)} cases were ever shown; unseen, {str(bad[0]).rstrip('.')}."
        yield Finding(_hand_over(ctx), why, 0.8)


_CONTENT = frozenset({"scattered", "empty", "constant", "unchanged", "placeholder", "skipped"})


def seen_cases(ctx: CodeContext) -> set[str]:
    """Cases of which something was shown once a model ran: a row of a log with numbers, or code that opens them without writing."""
    seen: set[str] = set()
    for turn in ctx.run.turns[(ctx.model_turns or (ctx.last + 1,))[0] - 1 :]:
        feature = ctx.feature(turn.index)
        if not feature.executed or feature.blocked:
            continue
        seen |= {row.case for row in rows_of(ctx.run, turn.index) if row.values or len(row.rest.split()) >= 3}
        if feature.reads_outputs or (feature.forward_pass and not feature.writes_outputs):
            seen |= {case for case in ctx.run.outputs.cases if case in turn.code[:200_000]}
    return seen


@detector("rejected_unnoticed", code="E3", stage="S5", independence="from_trace")
def rejected_unnoticed(ctx: CodeContext) -> Iterable[Finding]:
    """As `wrong_files_unnoticed` where no files came along, or their fault shows only beside the inputs: the harness found the submission wrong, the run did not."""
    opened = ctx.facts is not None and ctx.facts.source == "files"
    report, answer = ctx.run.report, ctx.run.submit_result
    rate = report.completion_rate if report is not None else None
    fewer = rate is not None and rate < 0.995  # cases under names that only the benchmark knows to be wrong
    if opened and ctx.facts is not None and (ctx.facts.defects or (ctx.facts.format_valid is not False and not fewer)):
        return
    if not ctx.handed_over or ctx.final_write is None:
        return
    lacking = any(key.startswith("missing") and value for key, value in (answer or {}).items())
    wrong = lacking or (answer is not None and ctx.run.status.completed is False)
    wrong = wrong or fewer or (report is not None and report.submission_format_valid is False)
    if wrong and not admits(ctx):
        yield Finding(
            _hand_over(ctx),
            "The run was handed over as good and the harness found its files incomplete or invalid.",
            0.75,
        )


@detector("failed_batch_accepted", code="E3", stage="S4", independence="from_trace")
def failed_batch_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """The last run over the cases failed, and success was declared all the same."""
    final = ctx.final_write
    if final is None or final not in ctx.failed_turns or not ctx.handed_over or ctx.checks or ctx.run.track is None:
        return
    last = ctx.turn(ctx.last).text
    if _SUCCESS.search(last) and not _FAILURE_SAID.search(last) and not admits(ctx):
        yield Finding(
            (final, ctx.last), "The last run over the cases failed and success was declared without a look.", 0.85
        )


@detector("nothing_checked", code="E3", stage="S5", independence="from_trace")
def nothing_checked(ctx: CodeContext) -> Iterable[Finding]:
    """Outputs were handed over and nothing at all was looked at after they were written."""
    final = ctx.final_write
    if final is None or not ctx.handed_over or ctx.run.track is None:
        return
    looked = any(f.checks_outputs or f.reads_outputs for f in ctx.features if f.turn >= final and not f.blocked)
    shown = _content_shown(ctx.turn(final).output)
    if not looked and not shown:
        claim = _CLAIM.search(ctx.closing)
        said = f', yet it states "{claim[0].lower()}"' if claim else ""
        yield Finding(
            (final, ctx.last) if ctx.last != final else (final,),
            f"No output was opened or checked before the hand-over{said}.",
            0.85,
        )


@detector("claim_without_check", code="E3", stage="S5", independence="from_trace")
def claim_without_check(ctx: CodeContext) -> Iterable[Finding]:
    """The closing words claim a verification of the outputs that no execution stands behind."""
    final = ctx.final_write
    if final is None or not ctx.handed_over or ctx.checks or ctx.run.track is None:
        return
    last = ctx.turn(ctx.last).text
    claim = re.search(r"[^.\n]{0,120}\b(?:verified|double[- ]checked|checked)\b[^.\n]{0,60}", last, re.IGNORECASE)
    about = claim and re.search(
        r"\b(?:files?|outputs?|masks?|predictions?|answers?|results?|saved|all \d+|everything|submission)\b",
        claim[0],
        re.I,
    )
    looked = any(f.reads_outputs for f in ctx.features if f.turn >= final)
    if about and not looked:
        yield Finding((ctx.last,), "The closing words claim a verification that was never run.", 0.8)


@detector("promised_check_skipped", code="E3", stage="S5", independence="from_trace")
def promised_check_skipped(ctx: CodeContext) -> Iterable[Finding]:
    """The plan promises a check of the delivered files, and none came before the run was handed over."""
    final, plan = ctx.final_write, ctx.run.plan.text
    if final is None or plan is None or ctx.checks or not ctx.handed_over or not _PROMISED.search(plan):
        return
    if ctx.run.status.ended != "submitted" and admits(ctx):
        return  # it stopped and said what is lacking: nothing was passed off as checked
    if not any(f.reads_outputs for f in ctx.features if f.turn >= final):
        turns = tuple(sorted({t for t in (ctx.run.plan.turn, ctx.last) if t}))
        yield Finding(turns, "The plan promises a check of the delivered files and none was run.", 0.7)


@detector("sign_ignored", code="E3", stage="S4", independence="from_trace")
def sign_ignored(ctx: CodeContext) -> Iterable[Finding]:
    """A printed sign of trouble (zero counts, constants, NaN, fallbacks, ...) was followed by no change and no check."""
    if not ctx.handed_over:
        return
    best: dict[str, Sign] = {}
    turns: dict[str, list[int]] = {}
    for sign in signs(ctx):
        if answered(ctx, sign) or (sign.kind == "fallback" and disowns(ctx)):
            continue
        if sign.kind == "zero" and sign.subject and may_be_empty(ctx):
            continue  # of single cases, in which the brief foresees it
        turns.setdefault(sign.kind, []).append(sign.turn)
        if sign.kind not in best or sign.confidence > best[sign.kind].confidence:
            best[sign.kind] = sign
    for kind, sign in best.items():
        words = " ".join(sign.words.split())[:120]
        why = f"The output showed trouble ({words}) and nothing was done about it."
        yield Finding(tuple(dict.fromkeys((*turns[kind], ctx.last))), why, sign.confidence, ctx.stage(sign.turn))


@detector("bad_content_delivered", code="E3", stage="S4", independence="from_files")
def bad_content_delivered(ctx: CodeContext) -> Iterable[Finding]:
    """The files hold what a look would have shown: placeholders, one output for all cases, the unchanged input."""
    if ctx.facts is None or not ctx.last or ctx.run.status.ended == "breach":
        return
    where = _hand_over(ctx)
    first = ctx.final_write or 1
    rate, total = ctx.facts.placeholder_rate, ctx.facts.expected_cases or len(ctx.run.outputs.cases)
    if rate is not None and rate > 0.05 and not disowns(ctx):
        yield Finding(where, f"{rate:.0%} of the delivered answers are placeholders.", 0.9)
    for kind, words in (
        ("identical", "the same output for every case"),
        ("unchanged", "the input, unchanged"),
        ("constant", "constant outputs"),
        ("empty", "empty outputs"),
    ):
        found = ctx.facts.of(kind)
        cases = len({f.case for f in found})
        allowed = kind == "empty" and cases < (total or 0) and may_be_empty(ctx)
        if allowed and speaks_of("zero", ctx.text_from(first)):
            continue  # some may be empty, and the run speaks of them
        all_empty = kind == "empty" and cases >= (total or 1)
        if all_empty and speaks_of("zero", ctx.text_from(1, first - 1)) and speaks_of("zero", ctx.closing):
            continue  # seen before the batch, and handed over as what it is
        few = kind in ("constant", "unchanged") and ctx.run.track in ("enhancement", "synthesis")
        if found and (found[0].case is None or few or (total and cases > 0.5 * total)):
            yield Finding(where, f"The delivered files hold {words}, and it was not noticed.", 0.8)
    for fact in ctx.facts.of("class_absent", "repeated", "cut_off") if not owns_up(ctx) else ():
        yield Finding(where, f"In the delivered files, {fact.text}, and it was not noticed.", 0.8)


@detector("defect_accepted", code="E3", stage="S4", independence="from_trace")
def defect_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """The agent described a defect of what its model gives, wrote all outputs in the same turn, and handed over without opening one.

    A defect that any later execution could have gone into is not claimed: words alone do not say what was looked at.
    """
    final = ctx.final_write
    if final is None or _opened_later(ctx, final) or not ctx.handed_over or ctx.run.track is None:
        return
    earlier = any(t < final for t in ctx.model_turns)
    if earlier and _DEFECT.search(ctx.turn(final).text) and not owns_up(ctx):
        why = "A defect of the results was described, and they were handed over without opening one output."
        yield Finding((final, ctx.last), why, 0.7)


def _opened_later(ctx: CodeContext, final: int) -> bool:
    """Whether anything but the submission was executed after the last write, or that write checked its files."""
    later = any(f.executed and not f.blocked and not f.submits for f in ctx.features[final:])
    return later or bool(ctx.checks)


def _content_shown(output: str) -> bool:
    """Whether a log shows what was produced (values, labels, words), not only that something ran."""
    rests = [" ".join(_RUNNING.sub("", _IDS.sub("", line[:400])).split()) for line in output.splitlines()[:MAX_ROWS]]
    values = sum(len(_VALUE.findall(rest)) for rest in rests)
    return values >= 3 or len({rest for rest in rests if re.search(r"[A-Za-z]{2}", rest)}) >= 3


def admits(ctx: CodeContext) -> bool:
    """Whether the closing text itself says that something is lacking."""
    return bool(_ADMITTED.search(_DENIED.sub("", ctx.closing)))


def disowns(ctx: CodeContext) -> bool:
    """Whether the closing words themselves say that what was handed in is no answer of a model and falls short of the brief."""
    return _DISOWNED.search(ctx.closing) is not None
