"""What will be asked about runs, whichever runs they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..rubrics.load import rubric_for
from ..rubrics.model import Rubric
from ..trajectories.models import Run, Tier, TrackName
from ..trajectories.reading.running import RunningRule
from .base import Judge, QuestionName, Request
from .card.fields import Policy
from .engine import PreparedRun, prepare
from .questions.items import QuestionSet


@dataclass(frozen=True)
class Scope:
    """The rubrics, track, tier, questions and public inputs that a command names."""

    rubrics: tuple[Rubric, ...] = ()
    """Each for the runs of its track."""
    track: TrackName | None = None
    """Of runs whose files do not say."""
    tier: Tier | None = None
    """Of runs whose files do not say."""
    questions: QuestionSet = field(default_factory=QuestionSet)
    public: Path | None = None
    running: RunningRule = field(default_factory=RunningRule)
    """Which runs still go on."""

    def rubric_of(self, track: TrackName | None, task: str | None) -> Rubric:
        """The rubric that judges a run: the scope's for that track, else the track's own."""
        return rubric_for(track, task, self.rubrics)

    def is_foreign(self, rubric: Rubric) -> bool:
        """Whether a run's rubric is none of the scope's, though there are some."""
        return bool(self.rubrics) and all(rubric is not given for given in self.rubrics)

    def apply(self, run: Run) -> Run:
        """The run with the scope's track and tier where it has none, running if it goes on."""
        return self.running.apply(run).model_copy(
            update={"track": run.track or self.track, "tier": run.tier or self.tier}
        )

    def prepare(self, run: Run, policy: Policy | None = None) -> PreparedRun:
        """A run that this scope was applied to, ready to be judged."""
        return prepare(
            run,
            rubric=self.rubric_of(run.track, run.task),
            policy=policy,
            public=self.public,
            questions=self.questions,
        )

    def requests(self, run: Run, judge: Judge) -> dict[QuestionName, Request]:
        """Every question about a run that this scope was applied to, by name."""
        return {request.question: request for request in self.prepare(run).requests(judge)}
