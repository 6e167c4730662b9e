"""What the report's metrics say if no files were opened.

Whether anything was scored above zero, and whether the submission is valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...tracks import Track
from ...trajectories.models import Report
from ...trajectories.reading.json_bytes import number
from ..scoring.formulas import VALID_SHARE


def metrics_named(metrics: Mapping[str, Any], words: tuple[str, ...]) -> Iterator[float]:
    """Finite numbers whose name, or that of the mapping around them, contains one of the words."""
    for name, value in metrics.items():
        outer_matches = _contains(name, words)
        group = value if isinstance(value, Mapping) else {name: value}
        for inner_name, inner in group.items():
            metric = number(inner)
            if metric is not None and (outer_matches or _contains(str(inner_name), words)):
                yield metric


def _contains(name: str, words: tuple[str, ...]) -> bool:
    return any(word in name.lower() for word in words)


def scored_above_zero(
    track: Track, report: Report | None, psnr_needed: bool = False
) -> bool | None:
    """Whether one of the track's metrics is above zero; None if there is nothing to go by.

    For images: whether there is a valid image and a finite metric. Without such a metric the task
    score decides, except in a disqualified run, where it is 0 by policy. `psnr_needed`: for images,
    the mean PSNR alone decides, by being finite.
    """
    if report is None:
        return None
    is_images = track.output == "images"
    if is_images and report.n_valid == 0:
        return False
    if is_images and psnr_needed:
        return number(report.metrics.get("mean_psnr")) is not None
    values = list(metrics_named(report.metrics, track.metrics))
    if values and is_images:
        return True
    if not values and report.task_score is not None and not report.breached:
        values = [report.task_score]
    return any(value > 0 for value in values) if values else None


def submission_flag(track: Track, report: Report, parse_rate: float | None) -> bool | None:
    """The report's flag for the submission as a whole; None if it says nothing.

    Without that flag the one for the output format counts; for answers, a low parse rate means
    False.
    """
    if report.submission_format_valid is not None:
        return report.submission_format_valid
    if track.output != "answers":
        return report.output_format_valid
    return False if parse_rate is not None and parse_rate < VALID_SHARE else None


def accuracy(report: Report | None) -> float | None:
    """The report's accuracy in [0, 1]; None if it states none."""
    if report is None:
        return None
    value = number(report.metrics.get("accuracy"))
    return value if value is not None and 0 <= value <= 1 else None
