"""What is known of a run's outputs, from whichever source: opened files, report or submit answer.

Without files, the summary comes from the report, else from the answer to submit_results. Where
files were opened, this module compares them with the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ...error_codes.output_facts import IssueKind, OutputIssue
from ...tracks import Track
from ...trajectories.models import Report, Run
from ...trajectories.reading.harness_report import submit_answer
from ...trajectories.reading.json_bytes import number
from ..scoring.scoring_rules import Rules
from .case_checks import CaseCheck
from .expected_cases import ExpectedCases, expected_cases, missing_cases
from .report_metrics import scored_above_zero, submission_flag

_FORGIVEN_KINDS: tuple[IssueKind, ...] = (
    "affine",
    "dtype",
    "unknown_class",
    "header",
    "unchanged",
    "constant",
)
"""Kinds of issues that this check forgives and a task's own rule may not."""
_TOLERANCE = 0.005
"""Rates of the report and of the files that differ by no more than this agree."""
_PARSE_RATES = ("parse_rate", "valid_output_rate")


@dataclass(frozen=True)
class OutputSummary:
    """What is known of the outputs; any field but `source` may be unknown. Rates are in [0, 1]."""

    source: Literal["files", "report", "trace"] | None = None
    completion: float | None = None
    output_valid: bool | None = None
    submission_valid: bool | None = None
    has_valid_results: bool | None = None
    parse_rate: float | None = None
    """Answers: share that can be read."""
    placeholder_rate: float | None = None
    """Answers: share of placeholders."""
    answers: int | None = None
    """Answers: how many were given, skipped questions left out."""
    unsure: bool = True
    """The opened files do not show everything that the format requires."""
    complete_cases: int | None = None
    expected: ExpectedCases = field(default_factory=ExpectedCases)
    cases: tuple[CaseCheck, ...] = ()
    issues: tuple[OutputIssue, ...] = ()
    """Issues about the run as a whole; those about cases are in `cases`."""
    measures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Case -> quantity -> number, measured in the files."""

    @property
    def all_issues(self) -> tuple[OutputIssue, ...]:
        """Issues about the run, then about each case, in order."""
        return (*self.issues, *(issue for case in self.cases for issue in case.issues))

    def rounded(self, digits: int) -> OutputSummary:
        """The summary with its rates rounded to so many decimals."""
        rates: dict[str, float] = {}
        for name in ("completion", "parse_rate", "placeholder_rate"):
            rate = getattr(self, name)
            if rate is not None:
                rates[name] = round(rate, digits)
        return replace(self, **rates)  # type: ignore[arg-type]


def summary_without_files(run: Run, track: Track, rules: Rules) -> OutputSummary:
    """The summary by the report, else by the answer to submit_results."""
    return _summary_from_report(run, track, rules) or _summary_from_submit_answer(run, track)


def _summary_from_report(run: Run, track: Track, rules: Rules) -> OutputSummary | None:
    """The summary by the report's flags, rates and counts; None if it states none of them."""
    report = run.report
    if report is None:
        return None
    is_answers = track.output == "answers"
    expected = ExpectedCases((), report.n_expected, "report" if report.n_expected else None)
    if report.n_outputs == 0 and run.outputs.root is None:
        return _nothing_delivered(is_answers, expected)
    parse_rate = _rate(report.metrics, *_PARSE_RATES) if is_answers else None
    summary = OutputSummary(
        source="report",
        completion=report.completion_rate,
        output_valid=report.output_format_valid,
        submission_valid=submission_flag(track, report, parse_rate),
        has_valid_results=_reported_results(track, report, parse_rate, rules),
        parse_rate=parse_rate,
        placeholder_rate=_rate(report.metrics, "placeholder_rate") if is_answers else None,
        complete_cases=report.n_valid if track.counts_valid else None,
        expected=expected,
    )
    statements = [
        summary.completion,
        summary.output_valid,
        summary.submission_valid,
        summary.parse_rate,
        summary.has_valid_results,
    ]
    if not report.breached:
        statements += [report.step_scores.get("S4"), report.step_scores.get("S5")]
    if all(statement is None for statement in statements):
        return None
    return summary


def _nothing_delivered(is_answers: bool, expected: ExpectedCases) -> OutputSummary:
    """The summary of a run whose report counts no output."""
    rate = 0.0 if is_answers else None
    return OutputSummary(
        source="report",
        completion=0.0,
        output_valid=False,
        submission_valid=False,
        has_valid_results=False,
        parse_rate=rate,
        placeholder_rate=rate,
        answers=0 if is_answers else None,
        complete_cases=0,
        expected=expected,
    )


def _reported_results(
    track: Track, report: Report, parse_rate: float | None, rules: Rules
) -> bool | None:
    """Whether there are valid results, by the report's counts or metrics."""
    if not track.one_output_suffices:
        return scored_above_zero(track, report, rules.psnr_needed)
    completion = report.completion_rate if track.counts_valid else None
    for valid_outputs in (report.n_valid, parse_rate, completion):
        if valid_outputs is not None:
            return valid_outputs > 0
    return None


def _rate(metrics: Mapping[str, object], *names: str) -> float | None:
    """The first of these metrics that is a number in [0, 1]."""
    for name in names:
        value = number(metrics.get(name))
        if value is not None and 0 <= value <= 1:
            return value
    return None


def _summary_from_submit_answer(run: Run, track: Track) -> OutputSummary:
    """The summary by the answer to submit_results.

    It says which files were missing, and nothing about the format of the others.
    """
    if run.submit_result is None:
        return OutputSummary()
    answer = submit_answer(run.submit_result)
    expected = expected_cases(run, delivered=(), public=None, counts_valid=True)
    missing = missing_cases(answer)
    completion = _rate(answer, "completion_rate")
    lists_missing = isinstance(answer.get("missing_files"), list)
    # Names from the trace may be the missing ones alone, and then they are no total.
    has_total = expected.source != "trace" or (expected.count or 0) > len(missing)
    if completion is None and lists_missing and expected.count and has_total:
        completion = max(0.0, 1.0 - len(missing) / expected.count)
    elif completion is None and answer.get("complete", answer.get("completed")) is True:
        completion = 1.0
    if completion is None and not missing:
        return OutputSummary()
    incomplete = completion is None or completion < 1.0
    # A missing case makes the outputs invalid, except for answers, which are judged one by one.
    valid = False if incomplete and track.output != "answers" else None
    return OutputSummary(
        source="trace",
        completion=completion,
        output_valid=valid,
        submission_valid=valid,
        expected=expected,
        issues=tuple(
            OutputIssue("missing", "missing by the answer to submit_results", case)
            for case in missing
        ),
    )


def report_disagreements(run: Run, opened: OutputSummary) -> list[str]:
    """Warnings about what the report says of the outputs and the opened files contradict."""
    report = run.report
    if report is None:
        return []
    warnings = []
    flags = [
        ("output format valid", report.output_format_valid, opened.output_valid),
        ("submission format valid", report.submission_format_valid, opened.submission_valid),
    ]
    for label, reported, observed in flags:
        if reported is not None and observed is not None and reported != observed:
            warnings.append(f"the report says {label}: {reported}, the files: {observed}")
    reported_rate, rate = report.completion_rate, opened.completion
    if reported_rate is not None and rate is not None and abs(reported_rate - rate) > _TOLERANCE:
        warnings.append(f"the report says completion: {reported_rate:.3f}, the files: {rate:.3f}")
    return warnings


def report_says_completion(run: Run) -> bool:
    """Whether the report states how complete the outputs are, which counts before a guess."""
    report = run.report
    if report is None or report.breached:
        return False
    return report.completion_rate is not None or report.step_scores.get("S4") is not None


def with_reported_completion(run: Run, opened: OutputSummary) -> OutputSummary:
    """The summary of outputs of an unknown total, complete as the report says."""
    if run.report is None or run.report.breached:
        return opened
    return replace(opened, completion=run.report.completion_rate)


def as_far_as_reported(run: Run, track: Track, opened: OutputSummary) -> OutputSummary:
    """The summary of outputs whose expected shape is not known: right only if the report says so.

    What is wrong with them in other ways stays wrong; what nobody compared is unknown.
    """
    report = run.report
    reported_rate = None if report is None else report.completion_rate
    summary = opened
    if opened.output_valid:
        flag = None if report is None else report.output_format_valid
        summary = replace(summary, output_valid=flag)
    if opened.submission_valid:
        flag = None if report is None else submission_flag(track, report, None)
        summary = replace(summary, submission_valid=flag)
    if track.counts_valid and opened.completion:
        rate = None if reported_rate is None else min(opened.completion, reported_rate)
        summary = replace(summary, completion=rate)
    return summary


def defer_to_report(run: Run, track: Track, opened: OutputSummary) -> OutputSummary:
    """Lower the summary of opened files to what the report says, where the files leave room for it.

    Without the public inputs, a case under another name, a wrong shape, a box beyond the border or
    a wrong option text cannot be detected; even with them, what an output must look like may be
    unknown; and affine, type and class names are forgiven here but may count by a task's own rule.
    In these cases a report that calls the outputs invalid or fewer is believed.
    """
    report = run.report
    if report is None:
        return opened
    forgiven = any(issue.kind in _FORGIVEN_KINDS for issue in opened.all_issues)
    if not (opened.unsure or forgiven):
        return opened
    summary = _lower_parse_rate(report, _lower_completion(track, report, opened))
    if report.output_format_valid is False:
        summary = replace(summary, output_valid=False)
    if submission_flag(track, report, summary.parse_rate) is False:
        summary = replace(summary, submission_valid=False)
    return summary


def _lower_completion(track: Track, report: Report, summary: OutputSummary) -> OutputSummary:
    """Lower completion to the report's if the files do not settle it.

    They do not if the case names were taken from the delivered files or their shapes are not known.
    """
    observed, reported = summary.completion, report.completion_rate
    if not summary.unsure or observed is None or reported is None:
        return summary
    if reported >= observed - _TOLERANCE:
        return summary
    if track.counts_valid and reported == 0:
        return replace(summary, completion=reported, has_valid_results=False)
    return replace(summary, completion=reported)


def _lower_parse_rate(report: Report, summary: OutputSummary) -> OutputSummary:
    """Lower the share of readable answers to the report's."""
    observed, reported = summary.parse_rate, _rate(report.metrics, *_PARSE_RATES)
    if observed is None or reported is None or reported >= observed:
        return summary
    summary = replace(summary, parse_rate=reported)
    if reported == 0:
        summary = replace(summary, has_valid_results=False)
    if reported < observed - _TOLERANCE:
        text = (
            f"by the report {reported:.0%} of the answers can be read; the files alone do not show"
            " why"
        )
        summary = replace(
            summary, issues=(*summary.issues, OutputIssue("values", text, None, None))
        )
    return summary
