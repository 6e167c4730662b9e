"""What a detector may look at: one run with its stages, features, failures, episodes and the facts
on its files.

Facts on delivered files come in as plain values (`OutputFacts`), as opening files belongs to the
room above.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from ..tracks import TRACKS, Output, Track
from ..trajectories.models import Run, Segmentation, Stage, Turn
from ..trajectories.turns.failures import Failure
from ..trajectories.turns.turn_features import TurnFeatures
from .episodes import Episode
from .output_facts import OutputFacts

_PLACED = re.compile(r"\b(?:cp|mv|rsync)\s[^\n]{1,300}[\s/]agents_outputs/")
"""Outputs put in place by a shell command rather than written by code."""


@dataclass(frozen=True)
class CodeContext:
    """The one argument of every detector."""

    run: Run
    segmentation: Segmentation
    features: tuple[TurnFeatures, ...]
    failures: tuple[Failure, ...] = ()
    episodes: tuple[Episode, ...] = ()
    facts: OutputFacts | None = None

    @cached_property
    def track(self) -> Track | None:
        """The run's track; None where it is unknown."""
        return TRACKS.find(self.run.track)

    @property
    def output(self) -> Output | None:
        """What a case's output is on that track."""
        return self.track.output if self.track is not None else None

    def stage(self, turn: int) -> Stage:
        stages = self.segmentation.turn_stages
        return stages[turn - 1] if 0 < turn <= len(stages) else "S5"

    def turn(self, index: int) -> Turn:
        return self.run.turn(index)

    def feature(self, index: int) -> TurnFeatures:
        return self.features[index - 1]

    @cached_property
    def failed_turns(self) -> frozenset[int]:
        """Turns with a sure failure, also where the exit code hid it."""
        return frozenset(f.turn for f in self.failures if f.confidence >= 0.7)

    @cached_property
    def last(self) -> int:
        """Index of the last turn (0 for a run without turns)."""
        return len(self.run.turns)

    @cached_property
    def model_turns(self) -> tuple[int, ...]:
        """Turns in which a model or method was applied and the code really ran."""
        return tuple(
            f.turn for f in self.features if (f.forward_pass or f.writes_outputs) and not f.blocked
        )

    @cached_property
    def write_turns(self) -> tuple[int, ...]:
        """Turns that wrote deliverables: by their own code, or by a script over several cases in
        S4. Blocked ones not."""
        return tuple(
            f.turn
            for f in self.features
            if not f.blocked
            and (f.writes_outputs or (self.stage(f.turn) == "S4" and self._fills_outputs(f)))
        )

    def _fills_outputs(self, feature: TurnFeatures) -> bool:
        if feature.forward_pass and feature.runs_script:
            return True
        return (
            feature.executed and _PLACED.search(self.turn(feature.turn).code[:200_000]) is not None
        )

    @cached_property
    def final_write(self) -> int | None:
        """The last turn that wrote deliverables."""
        return self.write_turns[-1] if self.write_turns else None

    @cached_property
    def checks(self) -> tuple[int, ...]:
        """Turns from the last write on that opened delivered files and compared or counted them."""
        start = self.final_write
        return (
            ()
            if start is None
            else tuple(
                f.turn
                for f in self.features
                if f.turn >= start and f.checks_outputs and f.turn not in self.failed_turns
            )
        )

    @cached_property
    def handed_over(self) -> bool:
        """The agent submitted its results by a call. Where it only stopped with a message, that has
        to be read."""
        own = self.run.status.ended in ("submitted", "stopped")
        return own and any(action.kind == "submit" for _, action in self.run.actions())
