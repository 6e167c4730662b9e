"""Whether something was scored above zero, read from the report's metrics (benchmark.md section 4, has_valid_results)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...tracks import Track
from ...trajectories.json_bytes import number
from ...trajectories.models import Report


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


def scored_above_zero(track: Track, report: Report | None) -> bool | None:
    """Whether one of the track's metrics is above zero; of images, whether there are a valid one and a finite metric.

    Without such a metric the task score speaks (unless the run was disqualified, when it is 0 by policy); None if there
    is nothing to go by.
    """
    if report is None:
        return None
    if track.output == "images" and report.n_valid == 0:
        return False
    found = list(named(report.metrics, track.metrics))
    if found and track.output == "images":
        return True
    if not found and report.task_score is not None and not report.breached:
        found = [report.task_score]
    return any(value > 0 for value in found) if found else None


def accuracy(report: Report | None) -> float | None:
    """The report's accuracy in [0, 1], if it names one."""
    if report is None:
        return None
    value = number(report.metrics.get("accuracy"))
    return value if value is not None and 0 <= value <= 1 else None
