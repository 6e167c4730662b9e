"""What scorecards embed about error codes: fired codes, failed steps, contradictions."""

from __future__ import annotations

from typing import Literal

from ..trajectories.models import Frozen, Stage
from ..trajectories.quantities import Unit, Whole
from ..trajectories.record.quotes import Evidence

CodeTaxonomy = Literal["paper", "harness"]

CodeReading = Literal["present", "absent", "cannot_tell", "not_read", "withheld"]
"""What is known of a code: it fired, it did not, a reader could not tell, nobody read the run for
it, or the run still goes on, so that it cannot be called absent."""


class FiredCode(Frozen):
    """An error code with the turns it rests on, a reason in one sentence, and who says so."""

    code: str
    """E1 to E5 of the paper's taxonomy, or of the harness's."""
    taxonomy: CodeTaxonomy
    """The taxonomy of the code."""
    stage: Stage
    """The stage that the code counts for."""
    turns: tuple[Whole, ...]
    """The turns that show it, 1-based."""
    why: str
    """One sentence."""
    by: str
    """`detector:<name>` or `judge:<model>`."""
    confidence: Unit
    """0 to 1: how often such findings of a detector are right, or a reader's own estimate."""
    independence: Literal["from_trace", "from_files", "from_score", "from_judge"]
    """Where the code was read from; from_score ones are circular when related to the score."""
    facts: tuple[str, ...] = ()
    """Numbers of the record's facts that a reading rests on (`F3`)."""
    quote: Evidence | None = None
    """The words that a reading rests on, checked against the run."""


class EpisodeInfo(Frozen):
    """A failed step with its error, its attempts and its resolution.

    The turn of the resolution is None if the step never worked.
    """

    cause: str
    """The error on one line: the most frequent kind, the first of equals, and its first message."""
    kind: str
    """Family of causes."""
    stage: Stage
    """Stage of its first turn."""
    environment: bool
    """Whether most attempts failed for lack of data, models, packages, an API or resources."""
    first_turn: Whole
    """The turn of its first failure."""
    turns: tuple[Whole, ...]
    """All turns in which it failed."""
    attempts: Whole
    """Number of failed attempts."""
    resolved_at: Whole | None = None
    """The turn in which it worked; null: never."""

    @property
    def resolved(self) -> bool:
        return self.resolved_at is not None


class Contradiction(Frozen):
    """A verdict that a fact speaks against."""

    criterion: str
    """The criterion or code whose verdict the fact contradicts."""
    fact: str
    """The fact, in words."""
    turns: tuple[Whole, ...] = ()
    """The turns that show it."""
