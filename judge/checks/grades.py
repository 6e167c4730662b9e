"""Grades of a run beside its scores: medal, rating, progress, kind of failure, scores of parts.

These are what the benchmark's own analysis reports. Rating and medal are the report's, unless Task
is not the report's, as a user may have other bands; without them they follow from the published
limits, which stand with each track (`Track.bands`). Rules of AutoMedBench/AutoMedBench,
`aggregate.py` of each branch and `eval_image_enhancement/scripts/aggregate_v5.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ...tracks import TRACKS, Bands, Track
from ...trajectories.models import Report, Run
from ...trajectories.reading.json_bytes import count, number
from ..card.fields import FailureKind, Grades, Medal, PartScore, Rating
from ..scoring.formulas import VALID_SHARE
from .check_outputs import OutputCheck
from .report_metrics import metrics_named

_MEDALS: Mapping[Rating, Medal] = {"A": "good", "B": "okay", "C": "fail", "F": "fail"}
_NEARLY_COMPLETE = 0.9
"""Completion from which inference counts as done in the progress."""
_MAX_PARTS, _MAX_NAME = 100, 80


def grades(run: Run, check: OutputCheck) -> Grades:
    """The grades of a run whose outputs were checked.

    Without a known track there is only what a disqualification decides.
    """
    track = TRACKS.find(run.track)
    report = run.report if check.task_from in (None, "report") else None
    rating = _rating(track, run, check)
    shuffled = None
    parts: tuple[PartScore, ...] = ()
    if report is not None and track is not None:
        controls = metrics_named(report.shuffled, track.metrics[:1])
        shuffled = _unit_interval(next(controls, None))
        parts = tuple(_part_scores(track, report))
    return Grades(
        medal=_medal(track, run, report, rating),
        rating=rating,
        progress=_progress(track, check, run.report),
        failure=_failure(run, check, rating),
        pass_rate=None if report is None else report.pass_rate,
        shuffled=shuffled,
        parts=parts,
    )


def _rating(track: Track | None, run: Run, check: OutputCheck) -> Rating | None:
    """The report's rating, else that of the band which its metrics reach.

    F for an invalid submission, and if Task is not the report's.
    """
    report = run.report
    if run.status.disqualified or check.task_from not in (None, "report"):
        return "F"
    if report is None:
        return None
    stated = _as_rating(report.rating)
    if stated is not None:
        return stated
    if not _bands(track, run):
        return None
    valid = _is_valid(track, check)
    if valid is None:
        return None
    return _band_reached(track, run, report) if valid else "F"


def _is_valid(track: Track | None, check: OutputCheck) -> bool | None:
    """Whether the submission can be rated; for answers, nearly all must have been delivered."""
    if track is None or track.output != "answers":
        return check.s4_checks.format_valid
    completion = check.s4_checks.completion
    if completion is not None and completion < VALID_SHARE:
        return False
    return check.s5_checks.format_valid


def _as_rating(text: str | None) -> Rating | None:
    for rating in _MEDALS:
        if rating == text:
            return rating
    return None


def _medal(
    track: Track | None, run: Run, report: Report | None, rating: Rating | None
) -> Medal | None:
    """The report's medal, else the one of its rating.

    If the report has neither, the band that its metrics reach decides, even if the format is
    invalid. `report` is None if Task is not the report's.
    """
    if report is not None:
        for medal in _MEDALS.values():
            if report.medal == medal:
                return medal
        if report.rating not in _MEDALS:
            rating = _band_reached(track, run, report) or rating
    return None if rating is None else _MEDALS[rating]


def _band_reached(track: Track | None, run: Run, report: Report) -> Rating | None:
    """The best band whose limits the report's metrics meet, whatever the format.

    None if a metric that decides is unknown, and for tasks without bands.
    """
    bands = _bands(track, run)
    for rating, limits in bands.items():
        values = {name: _metric(track, report, name) for name in limits}
        if any(value is not None and value < limits[name] for name, value in values.items()):
            continue
        if None in values.values():
            return None
        return _as_rating(rating)
    return "F" if bands else None


def _bands(track: Track | None, run: Run) -> Bands:
    """The published limits for a run's task; empty if there are none."""
    if track is None:
        return {}
    task = f"-{(run.task or '').lower().replace('_', '-')}-"
    for part, bands in track.bands.items():
        if part in task:
            return bands
    return {}


def _metric(track: Track | None, report: Report, name: str) -> float | None:
    """A metric of the report; `score` is the track's headline metric."""
    if name != "score" or track is None:
        return number(report.metrics.get(name))
    return track.main_metric(report.metrics, report.task_score)


def _progress(track: Track | None, check: OutputCheck, report: Report | None) -> float | None:
    """The mean of two gates, 90 % of the cases and a valid format, each 0 or 1.

    For answers, the mean of completion and parse rate. The report's progress if one is unknown.
    """
    completion = check.s4_checks.completion
    validity: float | bool | None
    if track is not None and track.output == "answers":
        inferred, validity = completion, check.s4_checks.parse_rate
    else:
        inferred = None if completion is None else float(completion >= _NEARLY_COMPLETE)
        validity = check.s4_checks.format_valid
    if inferred is None or validity is None:
        return None if report is None else report.progress
    return (inferred + validity) / 2


def _failure(run: Run, check: OutputCheck, rating: Rating | None) -> FailureKind | None:
    """Why a run is rated F; None for all other ratings."""
    if run.status.disqualified:
        return "breach"
    if rating != "F":
        return None
    if check.s4_checks.completion == 0:
        return "no_output"
    return "below_band" if run.status.submitted else "timeout"


def _part_scores(track: Track, report: Report) -> Iterator[PartScore]:
    """Scores that the report splits by class, tissue or kind of question.

    Parts that the report calls unknown are left out.
    """
    for name, split_by in track.parts.items():
        for part, value in islice(_mapping_at(report.metrics, name).items(), _MAX_PARTS):
            row = value if isinstance(value, Mapping) else {"score": value}
            score = _part_score(row)
            if score is not None and part != "unknown":
                yield PartScore(
                    by=split_by,
                    name=str(part)[:_MAX_NAME],
                    value=score,
                    cases=count(row.get("total", row.get("n_gt"))),
                )


def _mapping_at(metrics: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The mapping behind a dotted name; empty if there is none."""
    value: Any = metrics
    for key in name.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _part_score(row: Mapping[str, Any]) -> float | None:
    """The score of one part, under the first of the names that reports give it."""
    for key in ("score", "accuracy", "ap"):
        if key in row:
            return _unit_interval(row[key])
    return None


def _unit_interval(value: Any) -> float | None:
    """A number in [0, 1]; None for anything else."""
    score = number(value)
    return score if score is not None and 0 <= score <= 1 else None
