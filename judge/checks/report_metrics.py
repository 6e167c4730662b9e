"""What the report says in place of files: whether anything was scored above zero, and whether the
submission is valid (benchmark.md section 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...tracks import Track
from ...trajectories.models import Report
from ...trajectories.reading.json_bytes import number
from ..card.scoring import VALID_SHARE


def named(metrics: Mapping[str, Any], words: tuple[str, ...]) -> Iterator[float]:
    """Finite numbers whose name, or the name of a mapping around them, holds one of the words."""
    for key, value in metrics.items():
        hit = any(word in key.lower() for word in words)
        if isinstance(value, Mapping):
            for inner, deep in value.items():
                found = number(deep)
                if found is not None and (hit or any(word in str(inner).lower() for word in words)):
                    yield found
        elif hit and (found := number(value)) is not None:
            yield found


def scored_above_zero(
    track: Track, report: Report | None, psnr_needed: bool = False
) -> bool | None:
    """Whether one of the track's metrics is above zero; of images, whether there are a valid one
    and a finite metric.

    Without such a metric the task score speaks (unless the run was disqualified, when it is 0 by
    policy); None if there is nothing to go by. `psnr_needed`: of images a finite mean PSNR, and
    nothing else.
    """
    if report is None:
        return None
    if track.output == "images" and report.n_valid == 0:
        return False
    if track.output == "images" and psnr_needed:
        return number(report.metrics.get("mean_psnr")) is not None
    found = list(named(report.metrics, track.metrics))
    if found and track.output == "images":
        return True
    if not found and report.task_score is not None and not report.breached:
        found = [report.task_score]
    return any(value > 0 for value in found) if found else None


def submission_flag(track: Track, report: Report, parse_rate: float | None) -> bool | None:
    """The report's flag of the submission; that of the outputs says the same, of answers a low
    parse rate denies it."""
    if report.submission_format_valid is not None:
        return report.submission_format_valid
    if track.output != "answers":
        return report.output_format_valid
    return False if parse_rate is not None and parse_rate < VALID_SHARE else None


def accuracy(report: Report | None) -> float | None:
    """The report's accuracy in [0, 1], if it names one."""
    if report is None:
        return None
    value = number(report.metrics.get("accuracy"))
    return value if value is not None and 0 <= value <= 1 else None
