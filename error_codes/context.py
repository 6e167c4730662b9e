"""What a detector may look at: a run with its stages, features, failures, failed steps and outputs.

Facts about delivered files come in as plain values (`OutputFacts`): `judge.checks` opens the files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from ..tracks import TRACKS, Output, Track
from ..trajectories.models import Run, Segmentation, Stage, Turn
from ..trajectories.turns.failures import Failure, failures
from ..trajectories.turns.features import features
from ..trajectories.turns.turn_features import TurnFeatures
from .episodes import SURE_FAILURE, Episode, find_episodes
from .output_facts import OutputFacts

_MAX_CODE = 200_000
"""Characters of a turn's code that are searched."""
_PLACED = re.compile(r"\b(?:cp|mv|rsync)\s[^\n]{1,300}[\s/]agents_outputs/")
"""Outputs put in place by a shell command rather than written by code."""


def code_context(
    run: Run, segmentation: Segmentation, facts: OutputFacts | None = None
) -> CodeContext:
    """Everything that detectors look at, computed once; `facts`: about the delivered files."""
    turn_features = features(run)
    run_failures = failures(run)
    return CodeContext(
        run=run,
        segmentation=segmentation,
        features=turn_features,
        failures=run_failures,
        episodes=find_episodes(run, segmentation, turn_features, run_failures),
        facts=facts,
    )


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
        """The run's track; None if it is unknown."""
        return TRACKS.find(self.run.track)

    @property
    def output(self) -> Output | None:
        """What a case's output is on that track."""
        return self.track.output if self.track is not None else None

    def stage(self, turn: int) -> Stage:
        """The stage of a turn; S5 outside the run."""
        return self.segmentation.stage_of(turn) or "S5"

    def turn(self, index: int) -> Turn:
        return self.run.turn(index)

    def feature(self, index: int) -> TurnFeatures:
        return self.features[index - 1]

    @cached_property
    def failed_turns(self) -> frozenset[int]:
        """Turns with a sure failure, including failures that the exit code hid."""
        return frozenset(
            failure.turn for failure in self.failures if failure.confidence >= SURE_FAILURE
        )

    @cached_property
    def last(self) -> int:
        """Index of the last turn; 0 for a run without turns."""
        return len(self.run.turns)

    @cached_property
    def model_turns(self) -> tuple[int, ...]:
        """Turns in which a model or method was applied and the code really ran."""
        return tuple(
            feature.turn
            for feature in self.features
            if (feature.forward_pass or feature.writes_outputs) and not feature.blocked
        )

    @cached_property
    def write_turns(self) -> tuple[int, ...]:
        """Turns that wrote deliverables: by their own code, or in S4 by a script over the cases.

        Blocked turns are left out.
        """
        return tuple(feature.turn for feature in self.features if self._writes(feature))

    def _writes(self, feature: TurnFeatures) -> bool:
        if feature.blocked:
            return False
        if feature.writes_outputs:
            return True
        return self.stage(feature.turn) == "S4" and self._fills_outputs(feature)

    def _fills_outputs(self, feature: TurnFeatures) -> bool:
        if feature.forward_pass and feature.runs_script:
            return True
        code = self.turn(feature.turn).code[:_MAX_CODE]
        return feature.executed and _PLACED.search(code) is not None

    @cached_property
    def final_write(self) -> int | None:
        """The last turn that wrote deliverables."""
        return self.write_turns[-1] if self.write_turns else None

    @cached_property
    def checks(self) -> tuple[int, ...]:
        """Turns from the last write on that opened delivered files and compared or counted them."""
        start = self.final_write
        if start is None:
            return ()
        return tuple(
            feature.turn
            for feature in self.features
            if feature.turn >= start
            and feature.checks_outputs
            and feature.turn not in self.failed_turns
        )

    @cached_property
    def handed_over(self) -> bool:
        """Whether the agent submitted its results by a call.

        Whether an agent that only stopped with a message handed over takes reading.
        """
        by_itself = self.run.status.ended in ("submitted", "stopped")
        return by_itself and any(action.kind == "submit" for _, action in self.run.actions())
