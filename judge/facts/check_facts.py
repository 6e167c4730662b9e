"""Facts from the check of the outputs: its flags with their reasons, problems, and measures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

from ...error_codes.output_facts import OutputIssue, StageChecks
from ...tracks import TRACKS
from ...trajectories.record.facts import Fact, FactSource
from ..checks.check_outputs import OutputCheck
from ..scoring.formulas import VALID_SHARE
from .wording import listed, plain_fact, short_name, yes_or_no

_MAX_TEXT = 600
_MAX_REASON = 160
_MAX_REASONS = 2
_MAX_CASES = 40
"""Cases whose measure is listed."""
_MAX_TEXTS = 3
"""Different texts of one kind of problem up to which each has a line of its own."""
_ABSENT_KINDS = frozenset({"missing", "misnamed", "misplaced", "link"})
_SOURCES = {
    "files": "delivered files that were opened",
    "report": "the harness report, as no files came with the run",
    "trace": "the answer to the submission, as neither files nor a report came with the run",
    None: "nothing: neither files, report nor answer say it",
}
_CASES_FROM = {
    "public": "the public inputs",
    "agent_summary": "agent_summary.json",
    "report": "the counts of the harness report",
    "submit": "the answer to the submission",
    "trace": "ids that the run itself listed",
    None: "nobody",
}


def flag_facts(check: OutputCheck) -> Iterator[Fact]:
    """What the check concluded, each flag with its reason."""
    if check.track is None:
        text = "The track of the run is unknown: its outputs were not checked."
        yield plain_fact("unchecked", text, "trace")
        return
    s4 = check.s4_checks
    source = _source(s4)
    # What is absent explains a low completion better than what is malformed.
    absent = [issue for case in check.cases if not case.delivered for issue in case.issues]
    absent += [issue for issue in check.run_issues if issue.kind in _ABSENT_KINDS]
    fatal = [issue for issue in check.issues if issue.fatal]

    text = (
        f"How many outputs were expected: {_expected(s4)}, said by {_CASES_FROM[s4.cases_from]};"
        f" outputs known from {_SOURCES[s4.source]}."
    )
    yield plain_fact("source", text, source)
    yield plain_fact("completion", _completion(s4, absent or fatal), source)
    text = f"Output format valid: {_validity(s4.format_valid, fatal, s4.source)}."
    yield plain_fact("format_valid", text, source)
    if check.s5_checks.format_valid != s4.format_valid:
        text = f"Format of the submission valid: {_submission_validity(check, fatal)}."
        yield plain_fact("submission_valid", text, source)
    text = f"Valid results: {_valid_results(check)}."
    yield plain_fact("has_valid_results", text, source)
    yield from _answer_facts(check, fatal, source)
    yield from _limit_facts(check, source)


def _source(checks: StageChecks) -> FactSource:
    return "file" if checks.source == "files" else "harness"


def _expected(checks: StageChecks) -> str:
    return "unknown" if checks.expected_cases is None else str(checks.expected_cases)


def _completion(checks: StageChecks, reasons: Sequence[OutputIssue]) -> str:
    if checks.completion is None:
        return "Completion is unknown: nobody says which cases were expected."
    text = f"Completion {checks.completion:.3g}"
    if checks.complete_cases is not None:
        text += f", {checks.complete_cases} of {_expected(checks)} cases complete"
    if checks.completion < 1:
        text += f", {_because(reasons, checks.source)}"
    return f"{text}."


def _validity(valid: bool | None, fatal: Sequence[OutputIssue], source: str | None) -> str:
    if valid is None:
        return "unknown, as nothing says so"
    if not valid:
        return f"no, {_because(fatal, source)}"
    if source == "report":
        return "yes, by the harness report"
    return "yes, no check of the expected cases names a breach"


def _submission_validity(check: OutputCheck, fatal: Sequence[OutputIssue]) -> str:
    valid, rate = check.s5_checks.format_valid, check.s4_checks.parse_rate
    if rate is None:
        return _validity(valid, fatal, check.s4_checks.source)
    return f"{yes_or_no(valid)}, as {rate:.3g} of the answers are valid (needed: {VALID_SHARE:g})"


def _valid_results(check: OutputCheck) -> str:
    """has_valid_results with its reason: a valid output where one suffices, else a metric."""
    valid = check.s5_checks.has_valid_results
    if valid is None:
        return "unknown, as the run brings no metric of the harness"
    if valid:
        track = TRACKS.find(check.track)
        if track is not None and track.one_output_suffices:
            return "yes, at least one output is valid"
        return "yes, a metric of the harness is above zero"
    if check.cases and not any(case.delivered for case in check.cases):
        return "no, because no expected case was delivered"
    if check.cases and not any(case.valid for case in check.cases):
        return "no, because no delivered output is valid"
    return "no, because no metric of the harness is above zero"


def _answer_facts(
    check: OutputCheck, fatal: Sequence[OutputIssue], source: FactSource
) -> Iterator[Fact]:
    """What is known of answers alone."""
    s4 = check.s4_checks
    if s4.parse_rate is not None:
        reason = "" if s4.parse_rate >= 1 else f", {_because(fatal, s4.source)}"
        text = (
            "Share of the expected questions with an answer that can be read:"
            f" {s4.parse_rate:.3g}{reason}."
        )
        yield plain_fact("parse_rate", text, source)
    if s4.placeholder_rate is not None:
        placeholders = [issue for issue in check.issues if issue.kind == "placeholder"]
        reason = f", {_because(placeholders, s4.source)}" if s4.placeholder_rate else ""
        text = f"Share of answers that are placeholders: {s4.placeholder_rate:.3g}{reason}."
        yield plain_fact("placeholder_rate", text, source)
    if s4.model_call_found is not None:
        text = (
            "A model is loaded and called in an execution that worked:"
            f" {yes_or_no(s4.model_call_found)}, by the names of the calls."
        )
        yield plain_fact("model_call", text, "trace")


def _limit_facts(check: OutputCheck, source: FactSource) -> Iterator[Fact]:
    """Caps on scores, and what the check warns about."""
    for reason in check.s4_checks.caps:
        text = f"The score of the outputs (S4) is limited: {reason}."
        yield plain_fact("cap", text, source)
    for stage, cap in check.stage_caps.items():
        text = f"The score of {stage} is limited to {cap.value:g}: {cap.reason}."
        yield plain_fact("cap", text, source)
    for warning in check.warnings:
        yield plain_fact("note", f"About the outputs: {warning}.", source)


def _because(issues: Sequence[OutputIssue], source: str | None) -> str:
    """The most frequent reasons, or that there is none."""
    if not issues:
        if source == "report":
            return "as the harness report says, and gives no reason"
        return "no check names a problem"
    cases = _cases_by_text(issues)
    frequent = sorted(cases.items(), key=lambda item: -len(item[1]))[:_MAX_REASONS]
    reasons = [f"{_places(names, 30)}{text[:_MAX_REASON]}" for text, names in frequent]
    others = len(cases) - _MAX_REASONS
    more = f"; and {others} other problems" if others > 0 else ""
    return f"because {'; '.join(reasons)}{more}"


def problem_facts(check: OutputCheck) -> Iterator[Fact]:
    """Every problem that the check names, those that break the format first.

    Equal problems of several cases share a line.
    """
    source = _source(check.s4_checks)
    kinds: dict[tuple[bool, str], list[OutputIssue]] = {}
    for issue in check.issues:
        kinds.setdefault((not issue.fatal, issue.kind), []).append(issue)
    for (forgiven, kind), issues in sorted(kinds.items(), key=lambda item: item[0][0]):
        end = "the format check forgives it" if forgiven else "this makes the output invalid"
        for text, cases in _problem_lines(kind, _cases_by_text(issues)):
            yield Fact(
                kind=kind,
                text=f"{text.rstrip('.')}; {end}.",
                source=source,
                case=cases[0] if len(cases) == 1 and cases[0] else None,
                fatal=not forgiven,
            )


def _problem_lines(kind: str, cases_by_text: dict[str, list[str]]) -> list[tuple[str, list[str]]]:
    """The lines about one kind of problem, each with its cases."""
    texts = [(f"{_places(cases)}{text}", cases) for text, cases in cases_by_text.items()]
    if len(texts) <= _MAX_TEXTS:
        return texts
    cases = [case for _, each in texts for case in each]
    examples = listed((text for text, _ in texts), 500, "; ")
    return [(f"{len(cases)} problems of the kind {kind!r}: {examples}", cases)]


def _cases_by_text(issues: Sequence[OutputIssue]) -> dict[str, list[str]]:
    """The cases that each text is about; "" where an issue is about no case."""
    cases: dict[str, list[str]] = {}
    for issue in issues:
        case = short_name(issue.case) if issue.case else ""
        cases.setdefault(_issue_text(issue), []).append(case)
    return cases


def _issue_text(issue: OutputIssue) -> str:
    """The issue's text, with its file unless the case or the text names it."""
    text = " ".join(issue.text[:_MAX_TEXT].split())
    if issue.case or not issue.file or issue.file in text:
        return text
    return f"{short_name(issue.file)}: {text}"


def _places(cases: Sequence[str], room: int = 300) -> str:
    """The beginning of a text about these cases."""
    named = [case for case in cases if case]
    if not named:
        return ""
    if len(named) == 1:
        return f"{named[0]}: "
    return f"in {len(named)} cases ({listed(named, room)}): "


def measure_facts(check: OutputCheck) -> Iterator[Fact]:
    """One line for each quantity that was measured in the delivered files."""
    columns: dict[str, dict[str, float]] = {}
    for case, values in sorted(check.s4_checks.measures.items()):
        for quantity, value in values.items():
            if math.isfinite(value):
                columns.setdefault(quantity, {})[case] = value
    track = TRACKS.find(check.track)
    unit = f" ({track.unit})" if track is not None and track.unit else ""
    for quantity, column in columns.items():
        text = (
            f"{short_name(quantity)}{unit}, measured in the delivered file of each case:"
            f" {_measures(column)}."
        )
        yield plain_fact("measure", text, "file")


def _measures(column: dict[str, float]) -> str:
    """The values of one quantity by case, with their range."""
    low = min(column, key=column.__getitem__)
    high = max(column, key=column.__getitem__)
    if column[low] == column[high] and len(column) > 1:
        return f"{column[low]:.4g} in all {len(column)} cases"
    values = [f"{short_name(case, 24)} {value:.4g}" for case, value in column.items()]
    more = f" and {len(values) - _MAX_CASES} more cases" if len(values) > _MAX_CASES else ""
    span = (
        f"min {column[low]:.4g} in {short_name(low, 24)}, median {median(column.values()):.4g}, max"
        f" {column[high]:.4g} in {short_name(high, 24)}"
    )
    return f"{listed(values[:_MAX_CASES], 520)}{more} ({span})"
