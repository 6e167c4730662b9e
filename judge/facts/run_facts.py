"""The facts of one run, as a judge is shown them: everything known without reading prose or code.

These sentences are part of the record: a changed byte changes verdict keys and recorded replies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ...error_codes.context import CodeContext, code_context
from ...error_codes.models import FiredCode
from ...error_codes.trace_facts import finding_facts, trace_facts
from ...sanitize import sanitize_line
from ...trajectories.models import Report, Run, Segmentation
from ...trajectories.record.facts import Fact, number_facts
from ...trajectories.record.strangers import Stranger
from ..checks.check_outputs import OutputCheck
from .check_facts import flag_facts, measure_facts, problem_facts
from .file_facts import file_facts
from .wording import listed, plain_fact, short_name, yes_or_no

MAX_FACTS = 60
MAX_CHARS = 12_000
_SHARES = ((25, 4_000), (9, 2_300), (7, 1_500), (12, 2_700), (6, 1_300))
"""(facts, characters) of each part, in order. What a part leaves goes to the next one, so that no
part crowds out those after it."""
_MAX_LINE = 800
_MAX_KEPT = _MAX_LINE - 14
"""Characters of a longer line that are kept."""
_MAX_VIOLATIONS = 6


def run_facts(
    run: Run,
    segmentation: Segmentation,
    check: OutputCheck,
    codes: Sequence[FiredCode],
    context: CodeContext | None = None,
) -> tuple[Fact, ...]:
    """At most 60 facts and 12,000 characters, numbered F1..; a last one counts what was left out.

    `codes`: fired codes; those that rest on facts are shown, without the code. `context`: that of
    the run, if it exists already.
    """
    if context is None:
        context = code_context(run, segmentation)
    if run.status.ended == "running":
        return number_facts(_bounded((tuple(_facts_so_far(context, codes)),)))
    parts = (
        (*flag_facts(check), *problem_facts(check), *_harness_facts(run)),
        tuple(file_facts(run)),
        tuple(measure_facts(check)),
        trace_facts(context),
        finding_facts(codes),
    )
    return number_facts(_bounded(parts))


def _facts_so_far(context: CodeContext, codes: Sequence[FiredCode]) -> Iterator[Fact]:
    """The facts of a run that still goes on: those of its trace, without any about its end."""
    run = context.run
    last_turn = len(run.turns)
    text = (
        f"The run still goes on: turn {last_turn} is the last one so far, and what is missing may"
        " still come. The delivered files were not looked at."
    )
    yield plain_fact("running", text, "trace", last_turn)
    yield from _violation_facts(run)
    yield from trace_facts(context)
    yield from finding_facts(codes)


def _bounded(parts: Sequence[Sequence[Fact]]) -> list[Fact]:
    """The facts that fit into the limits, in order, each at most a line long."""
    selected: list[Fact] = []
    left_out: Counter[str] = Counter()
    facts_left = chars_left = 0
    for part, (more_facts, more_chars) in zip(parts, _SHARES, strict=False):
        facts_left += more_facts
        chars_left += more_chars
        for fact in part:
            text = _one_line(fact.text)
            if not facts_left or len(text) > chars_left:
                left_out[fact.kind] += 1
                continue
            facts_left -= 1
            chars_left -= len(text)
            case = None if fact.case is None else short_name(fact.case)
            selected.append(fact.model_copy(update={"text": text, "case": case}))
    if left_out:
        kinds = ", ".join(f"{count} {kind}" for kind, count in left_out.most_common(5))
        text = f"{sum(left_out.values())} more facts are not listed here, by kind: {kinds}."
        selected.append(Fact(kind="left_out", text=text[:200], source="trace"))
    return selected


def _one_line(text: str) -> str:
    line = sanitize_line(text[: 2 * _MAX_LINE])
    if len(line) <= _MAX_LINE:
        return line
    return f"{line[:_MAX_KEPT]} ... (cut here)"


_ENDED = {
    "submitted": "by handing over its results",
    "stopped": "by a closing message, without a submission",
    "breach": "by a breach of the rules",
    "cut": "cut off: killed, out of turns, or in an unanswered call",
}


def _harness_facts(run: Run) -> Iterator[Fact]:
    """The harness's own words: its report, its answer to the submission, violations. No scores."""
    last_turn = len(run.turns)
    yield plain_fact(
        "ended", f"The run ended {_ending(run)} (turn {last_turn}).", "trace", last_turn
    )
    yield plain_fact("report", _report(run.report), "harness")
    if run.submit_result is not None:
        text = f"The harness answered the submission: {_answer(run.submit_result)}."
        yield plain_fact("submit_answer", text, "harness", _submission_turn(run))
    if run.status.disqualified:
        text = "The harness disqualified the run."
        yield plain_fact("disqualified", text, "harness", run.status.breach_turn)
    yield from _violation_facts(run)


def _violation_facts(run: Run) -> Iterator[Fact]:
    violations = run.status.violation_records
    for violation in violations[:_MAX_VIOLATIONS]:
        text = f"The harness recorded a violation: {Stranger(violation.text, 240).quoted}"
        yield plain_fact("violation", text, "harness", violation.turn)
    others = violations[_MAX_VIOLATIONS:]
    if others:
        turns = tuple(sorted({violation.turn for violation in others}))
        text = f"The harness recorded {len(others)} more violations."
        yield Fact(kind="violations", text=text, turns=turns, source="harness")


def _ending(run: Run) -> str:
    has_no_submission = run.track is None or run.imported is not None
    if run.status.ended == "stopped" and has_no_submission:
        return "by a closing message"
    return _ENDED[run.status.ended]


def _report(report: Report | None) -> str:
    if report is None:
        return "No report of the harness came with the run."
    flags = {
        "output format valid": report.output_format_valid,
        "submission format valid": report.submission_format_valid,
        "decision csv valid": report.decision_csv_valid,
        "breach": report.breached,
    }
    counts = {
        "completion rate": report.completion_rate,
        "valid": report.n_valid,
        "expected": report.n_expected,
    }
    parts = [f"{name}: {yes_or_no(flag)}" for name, flag in flags.items() if flag is not None]
    parts += [f"{name}: {count:.4g}" for name, count in counts.items() if count is not None]
    return f"The harness report says: {', '.join(parts) or 'no flag and no count'}."


def _submission_turn(run: Run) -> int:
    for turn, action in run.actions():
        if action.kind == "submit":
            return turn.index
    return len(run.turns)


def _answer(answer: Mapping[str, object]) -> str:
    parts = [f"{short_name(str(key))}: {_brief(value)}" for key, value in list(answer.items())[:20]]
    return listed(parts, 400)


def _brief(value: object) -> str:
    """A value of the harness's answer in a few words."""
    if isinstance(value, bool):
        return yes_or_no(value)
    if isinstance(value, list | tuple):
        if not value:
            return "none"
        items = listed((short_name(str(item)[:200]) for item in value[:8]), 200)
        return f"{len(value)} ({items})"
    if isinstance(value, Mapping):
        return f"{len(value)} entries"
    return short_name(str(value)[:400], 80)
