"""Runs that still go on: when a run counts as one, and what of it may be looked at.

What is absent from such a run may still come, so nothing that needs an end is concluded of it. The
state is part of the run's `content_sha256`: no verdict and no scorecard of a run that went on is
taken for one of the run that ended.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass

from ..models import Outputs, Run
from .layout import run_folder, side_files
from .remote import RemotePath

YOUNG_MINUTES = 10.0
"""A run that has no end and was written to within this time is taken to go on."""


@dataclass(frozen=True)
class RunningRule:
    """Which runs still go on.

    Without a clock, and without a word of the user, every run has ended: what has no end was cut
    off. The age of a copy says nothing: of an imported run, or of one at an address.
    """

    stated: bool | None = None
    """What the user says of all runs that are not over for sure; None: their age decides."""
    young_minutes: float = YOUNG_MINUTES
    clock: Callable[[], float] | None = None
    """Seconds since the epoch, as `time.time`."""

    def apply(self, run: Run) -> Run:
        """The run, with status `running` if it still goes on."""
        if run.status.ended == "running" or not self._goes_on(run):
            return run
        return as_running(run)

    def _goes_on(self, run: Run) -> bool:
        if self.stated is not None:
            return self.stated and not _is_over(run)
        is_copy = run.imported is not None or isinstance(run.path, RemotePath)
        if self.clock is None or is_copy:
            return False
        if run.status.ended != "cut" or run.status.end_recorded:
            return False
        written = last_written(run)
        return written is not None and self.clock() - written < 60 * self.young_minutes


def _is_over(run: Run) -> bool:
    """Whether a run is over whatever the user says: it handed over its results, broke a rule, or
    has a report.

    A closing message may still be answered.
    """
    if run.report is not None or run.summary is not None:
        return True
    if run.status.ended == "submitted":
        return any(action.kind == "submit" for _, action in run.actions())
    return run.status.ended == "breach"


def last_written(run: Run) -> float | None:
    """When the conversation or a file beside it was last written; None if that cannot be told."""
    paths = [run.path, *side_files(run_folder(run.path))]
    try:
        return max(os.stat(path).st_mtime for path in paths)
    except OSError:
        return None


def as_running(run: Run) -> Run:
    """The run as one that still goes on, without what has a meaning only at the end.

    Delivered files may be half written, so they are not looked at.
    """
    status = run.status.model_copy(
        update={"ended": "running", "submitted": False, "completed": None}
    )
    return run.model_copy(
        update={
            "status": status,
            "content_sha256": hashlib.sha256(f"running {run.content_sha256}".encode()).hexdigest(),
            "outputs": Outputs(),
            "report": None,
            "summary": None,
            "submit_result": None,
            "listed_cases": None,
        }
    )
