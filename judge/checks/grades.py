"""What the benchmark's own analysis says of a run beside its scores: medal, rating, progress, why
it failed, scores of parts.

Rating and medal are the report's unless the Task is not, as a user may have other bands; what the
report leaves out is told by the published limits, which stand with each track (`Track.bands`).
Rules of AutoMedBench/AutoMedBench, `aggregate.py` of each branch and
`eval_image_enhancement/scripts/aggregate_v5.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ...tracks import TRACKS, Bands, Track
from ...trajectories.models import Report, Run
from ...trajectories.reading.json_bytes import count, number
from ..card.fields import FailureKind, Grades, Medal, PartScore, Rating
from ..card.scoring import VALID_SHARE
from .check_outputs import OutputCheck
from .report_metrics import metrics_named

_MEDALS: Mapping[Rating, Medal] = {"A": "good", "B": "okay", "C": "fail", "F": "fail"}
_GATE = 0.9
"""Completion from which on inference counts as done in the progress."""
_MOST_PARTS, _LONGEST = 100, 80


def grades(run: Run, check: OutputCheck) -> Grades:
    """The grades of a run whose outputs were checked; without a known track only what a
    disqualification says."""
    track, report = TRACKS.find(run.track), run.report
    scored = report if check.task_from in (None, "report") else None
    rating = _rating(track, run, check)
    return Grades(
        medal=_medal(track, run, scored, rating),
        rating=rating,
        progress=_progress(track, check, report),
        failure=_failure(run, check, rating),
        pass_rate=scored.pass_rate if scored is not None else None,
        shuffled=(
            _unit(next(metrics_named(scored.shuffled, track.metrics[:1]), None))
            if scored and track
            else None
        ),
        parts=tuple(_parts(track, scored)) if scored and track else (),
    )


def _rating(track: Track | None, run: Run, check: OutputCheck) -> Rating | None:
    """F without a valid submission or a Task of its own; else the report's, else the band that its
    metrics reach."""
    report = run.report
    if run.status.disqualified or check.task_from not in (None, "report"):
        return "F"
    if report is not None and report.rating in _MEDALS:
        return next(rating for rating in _MEDALS if rating == report.rating)
    if report is None or not _bands(track, run):
        return None
    valid = check.s4_checks.format_valid
    if track is not None and track.output == "answers":
        valid = check.s5_checks.format_valid
        if check.s4_checks.completion is not None and check.s4_checks.completion < VALID_SHARE:
            valid = False
    return "F" if valid is False else None if valid is None else _reached(track, run, report)


def _medal(
    track: Track | None, run: Run, scored: Report | None, rating: Rating | None
) -> Medal | None:
    """The report's; else that of its rating, or of the band that its metrics reach though their
    format is invalid."""
    if scored is not None:
        for medal in _MEDALS.values():
            if scored.medal == medal:
                return medal
        if scored.rating not in _MEDALS:
            rating = _reached(track, run, scored) or rating
    return None if rating is None else _MEDALS[rating]


def _reached(track: Track | None, run: Run, report: Report) -> Rating | None:
    """The best band whose limits the report's metrics meet, whatever the format; None where one
    that decides is unknown."""
    bands = _bands(track, run)
    for rating, limits in bands.items():
        known = {name: _metric(track, report, name) for name in limits}
        if any(value is not None and value < limits[name] for name, value in known.items()):
            continue
        return (
            next((r for r in _MEDALS if r == rating), None) if None not in known.values() else None
        )
    return "F" if bands else None


def _bands(track: Track | None, run: Run) -> Bands:
    task = f"-{(run.task or '').lower().replace('_', '-')}-"
    return (
        next((found for part, found in track.bands.items() if part in task), {})
        if track is not None
        else {}
    )


def _metric(track: Track | None, report: Report, name: str) -> float | None:
    if name != "score" or track is None:
        return number(report.metrics.get(name))
    return track.main_metric(report.metrics, report.task_score)


def _progress(track: Track | None, check: OutputCheck, report: Report | None) -> float | None:
    """Two gates, nine tenths of the cases and a valid format; of answers, the mean of the two
    shares. Else the report's."""
    done, answers = check.s4_checks.completion, track is not None and track.output == "answers"
    valid = check.s4_checks.parse_rate if answers else check.s4_checks.format_valid
    if done is None or valid is None:
        return report.progress if report is not None else None
    return ((done if answers else done >= _GATE) + valid) / 2


def _failure(run: Run, check: OutputCheck, rating: Rating | None) -> FailureKind | None:
    if run.status.disqualified:
        return "breach"
    if rating != "F":
        return None
    if check.s4_checks.completion == 0:
        return "no_output"
    return "below_band" if run.status.submitted else "timeout"


def _parts(track: Track, report: Report) -> Iterator[PartScore]:
    """Scores that the report splits by class, tissue or kind of question; parts that it calls
    unknown are none."""
    for name, by in track.parts.items():
        groups: Any = report.metrics
        for key in name.split("."):
            groups = groups.get(key) if isinstance(groups, Mapping) else None
        for part, told in (
            islice(groups.items(), _MOST_PARTS) if isinstance(groups, Mapping) else ()
        ):
            row = told if isinstance(told, Mapping) else {"score": told}
            value = _unit(
                next((row[key] for key in ("score", "accuracy", "ap") if key in row), None)
            )
            if value is not None and part != "unknown":
                yield PartScore(
                    by=by,
                    name=str(part)[:_LONGEST],
                    value=value,
                    cases=count(row.get("total", row.get("n_gt"))),
                )


def _unit(value: Any) -> float | None:
    found = number(value)
    return found if found is not None and 0 <= found <= 1 else None
