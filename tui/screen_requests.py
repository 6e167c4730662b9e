"""What a screen asks of the browser. No screen knows the browser or another screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from ..views.run_rows import RunRow

if TYPE_CHECKING:
    from ..judge.card.scorecard import ScoreCard
    from ..trajectories.models import Run


@dataclass
class ReadRun(Message):
    """Show a run."""

    row: RunRow


@dataclass
class _RunsRequest(Message):
    rows: Sequence[RunRow]


class CompareRuns(_RunsRequest):
    """Show two runs side by side, or two of the scorecards of one."""


class JudgeRuns(_RunsRequest):
    """Judge runs, after showing what that would cost."""


@dataclass
class RunScored(Message):
    """A run has a scorecard now, or cannot be scored."""

    row: RunRow


@dataclass
class LabelRun(Message):
    """Label a run. Its scorecard is shown once the labels are complete."""

    run: Run
    card: ScoreCard | None


@dataclass
class LabelNext(Message):
    """Label the next run of the label plan."""

    labelled: str | None = None
    """The run that was labelled last."""


class SummariseRuns(_RunsRequest):
    """Show what these runs have in common."""
