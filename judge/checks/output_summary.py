"""What is known of a run's outputs without opening them: by the report, else by the answer to
submit_results; and what the report says against opened ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ...tracks import Track
from ...trajectories.models import Run
from ...trajectories.reading.harness_report import submit_answer
from ...trajectories.reading.json_bytes import number
from ..card.scoring_rules import Rules
from .case_checks import CaseCheck, Fact
from .expected_cases import Expected, expected_cases, missing_cases
from .report_metrics import scored_above_zero, submission_flag

_DOUBTFUL = ("affine", "dtype", "unknown_class", "header", "unchanged", "constant")


@dataclass(frozen=True)
class Found:
    """What is known about the outputs, whoever said it; everything but `source` may be unknown."""

    source: Literal["files", "report", "trace"] | None = None
    completion: float | None = None
    output_valid: bool | None = None
    submission_valid: bool | None = None
    results: bool | None = None
    parse_rate: float | None = None
    placeholder_rate: float | None = None
    answers: int | None = None
    unsure: bool = True
    """The opened files do not show all that the format asks for."""
    complete_cases: int | None = None
    expected: Expected = field(default_factory=Expected)
    cases: tuple[CaseCheck, ...] = ()
    facts: tuple[Fact, ...] = ()
    measures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def rounded(self, digits: int) -> Found:
        """With so many decimals of its shares."""
        shares = {
            name: getattr(self, name) for name in ("completion", "parse_rate", "placeholder_rate")
        }
        return replace(
            self,
            **{name: round(share, digits) for name, share in shares.items() if share is not None},
        )


def from_report(run: Run, track: Track, rules: Rules) -> Found | None:
    report = run.report
    if report is None:
        return None
    metrics, answers = report.metrics, track.output == "answers"
    expected = Expected((), report.n_expected, "report" if report.n_expected else None)
    if report.n_outputs == 0 and run.outputs.root is None:
        zero = 0.0 if answers else None
        return Found(
            source="report",
            completion=0.0,
            output_valid=False,
            submission_valid=False,
            results=False,
            parse_rate=zero,
            placeholder_rate=zero,
            answers=0 if answers else None,
            complete_cases=0,
            expected=expected,
        )
    parse_rate = _rate(metrics, "parse_rate", "valid_output_rate") if answers else None
    results = scored_above_zero(track, report, rules.psnr_needed)
    if track.one_output_suffices:
        counted = (
            report.n_valid,
            parse_rate,
            report.completion_rate if track.counts_valid else None,
        )
        results = next((value > 0 for value in counted if value is not None), None)
    found = Found(
        source="report",
        completion=report.completion_rate,
        output_valid=report.output_format_valid,
        submission_valid=submission_flag(track, report, parse_rate),
        results=results,
        parse_rate=parse_rate,
        placeholder_rate=_rate(metrics, "placeholder_rate") if answers else None,
        complete_cases=report.n_valid if track.counts_valid else None,
        expected=expected,
    )
    steps = () if report.breached else (report.step_scores.get("S4"), report.step_scores.get("S5"))
    known = (
        found.completion,
        found.output_valid,
        found.submission_valid,
        found.parse_rate,
        found.results,
        *steps,
    )
    return None if all(value is None for value in known) else found


def _rate(metrics: Mapping[str, object], *names: str) -> float | None:
    for name in names:
        value = number(metrics.get(name))
        if value is not None and 0 <= value <= 1:
            return value
    return None


def from_trace(run: Run, track: Track) -> Found:
    """The answer to submit_results says which files were missing, nothing about their format."""
    if run.submit_result is None:
        return Found()
    result = submit_answer(run.submit_result)
    expected = expected_cases(run, (), None, True)
    missed = missing_cases(result)
    complete = result.get("complete", result.get("completed"))
    completion = _rate(result, "completion_rate")
    named = isinstance(result.get("missing_files"), list)
    if (
        completion is None
        and named
        and expected.count
        and (expected.source != "trace" or expected.count > len(missed))
    ):
        completion = max(0.0, 1.0 - len(missed) / expected.count)
    elif completion is None and complete is True:
        completion = 1.0
    if completion is None and not missed:
        return Found()
    facts = tuple(
        Fact("missing", "missing by the answer to submit_results", case) for case in missed
    )
    short = completion is None or completion < 1.0
    valid = False if short and track.output != "answers" else None  # a missing case is no valid one
    return Found(
        source="trace",
        completion=completion,
        output_valid=valid,
        submission_valid=valid,
        expected=expected,
        facts=facts,
    )


def against_report(run: Run, found: Found) -> list[str]:
    """Where the opened files and the report disagree."""
    report = run.report
    if report is None:
        return []
    said: list[tuple[str, object, object]] = [
        ("output format valid", report.output_format_valid, found.output_valid),
        ("submission format valid", report.submission_format_valid, found.submission_valid),
    ]
    differences = [
        f"the report says {what}: {a}, the files: {b}"
        for what, a, b in said
        if None not in (a, b) and a != b
    ]
    if None not in (report.completion_rate, found.completion):
        assert report.completion_rate is not None
        assert found.completion is not None
        if abs(report.completion_rate - found.completion) > 0.005:
            differences.append(
                f"the report says completion: {report.completion_rate:.3f}, the files:"
                f" {found.completion:.3f}"
            )
    return differences


def denied(run: Run, track: Track, found: Found) -> Found:
    """What opened files look like when the report calls them invalid or fewer and they leave room
    for doubt.

    Without the public inputs nobody sees a case under another name, a wrong shape, a box beyond the
    border or a wrong option text; with them it may still be unknown what an output must look like;
    and affine, type and class names are facts that this check forgives and a task's own rule may
    not. There the report's word stands.
    """
    report = run.report
    facts = (*found.facts, *(fact for case in found.cases for fact in case.facts))
    if report is None or not (found.unsure or any(fact.kind in _DOUBTFUL for fact in facts)):
        return found
    rate, seen = report.completion_rate, found.completion
    if found.unsure and rate is not None and seen is not None and rate < seen - 0.005:
        # the names of the cases were read off the delivered files, or their shapes are not known
        found = replace(
            found,
            completion=rate,
            results=False if track.counts_valid and rate == 0 else found.results,
        )
    if (rate_seen := found.parse_rate) is not None:
        said = _rate(report.metrics, "parse_rate", "valid_output_rate")
        if said is not None and said < rate_seen:
            found = replace(found, parse_rate=said, results=found.results if said else False)
            if said < rate_seen - 0.005:
                text = (
                    f"by the report {said:.0%} of the answers can be read; the files alone do not"
                    " show why"
                )
                found = replace(found, facts=(*found.facts, Fact("values", text, None, None)))
    if found.output_valid is not False and report.output_format_valid is False:
        found = replace(found, output_valid=False)
    if (
        found.submission_valid is not False
        and submission_flag(track, report, found.parse_rate) is False
    ):
        found = replace(found, submission_valid=False)
    return found
