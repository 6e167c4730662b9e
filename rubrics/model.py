"""A rubric is data: stages, criteria, scales, tier rules and dependencies, frozen after loading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..trajectories.models import STAGES, Tier, TrackName

EvidenceScope = Literal["plan", "S1", "S2", "S3", "S4", "S5", "executions", "outputs", "brief"]
EVIDENCE_SCOPES: tuple[EvidenceScope, ...] = (
    "plan",
    "S1",
    "S2",
    "S3",
    "S4",
    "S5",
    "executions",
    "outputs",
    "brief",
)


class Node(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Level(Node):
    """One allowed value of a criterion, in [0, 1], and what earns it."""

    value: float = Field(ge=0, le=1)
    text: str


class Criterion(Node):
    """One judged item. `scale` holds the allowed values, highest first; binary items have 1 and 0.

    The items of other questions (error codes, say) have the same form; a rubric's own ids are held
    to its schema.
    """

    id: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,15}$")
    title: str
    """A few words, for tables."""
    text: str
    """The question that the judge answers, with what counts and what does not."""
    scale: tuple[Level, ...] = Field(min_length=2)
    meaning: int = Field(default=1, ge=1)
    """Version of what the criterion means: raise it when an edit changes which runs meet it.

    Rules and presumed values are bound to it (`rubrics.bindings`)."""
    weight: float = Field(default=1.0, gt=0)
    requires: tuple[str, ...] = ()
    """Ids of criteria of the same stage that must be above 0, else this one is 0."""
    credit: tuple[Tier, ...] = ()
    """Tiers in which the item counts 1 without being judged."""
    tiers: tuple[Tier, ...] | None = None
    """Tiers in which the item applies; None: all. Elsewhere it leaves the denominator."""
    conditional: str | None = None
    """When set, the judge may answer `not_applicable`; says when the item applies."""
    evidence: tuple[EvidenceScope, ...] = Field(min_length=1)
    """Where to look: the plan, the turns of stages, executions of the whole run, output listing,
    the brief."""
    source: str
    preamble: str | None = None
    """The rubric's, as a judge is told it before this item."""

    @property
    def full_text(self) -> str:
        """The text, behind the rubric's preamble where there is one."""
        return f"{self.preamble}\n{self.text}" if self.preamble else self.text

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(level.value for level in self.scale)

    @property
    def binary(self) -> bool:
        return set(self.values) == {0.0, 1.0}


class StageRubric(Node):
    """A stage's weight in the Agentic score and its criteria (none: S4 and S5); the score is their
    weighted mean."""

    weight: float = Field(gt=0)
    criteria: tuple[Criterion, ...] = ()


class Rubric(Node):
    """Rubric of one track (or of a variant of it)."""

    id: str
    version: str
    track: TrackName | None = None
    """None: for runs whose track is unknown."""
    tasks: tuple[str, ...] = ()
    """Of a variant: words that begin a part of the task's name (`feta` in `feta-seg-task`) and
    choose it."""
    title: str
    source: str
    derived: bool = False
    """True where no per-item rubric was published and this one is derived from the shared workflow.
    """
    preamble: str | None = None
    """What a judge is told before the criteria: what the work was, what words mean."""
    stages: dict[str, StageRubric]
    """The benchmark's S1-S5, any of them, or groups of criteria with names of one's own."""
    sha256: str = ""
    """Of the meaning (canonical JSON of everything above), set by the loader."""

    def criteria(self, stage: str | None = None) -> tuple[Criterion, ...]:
        """Criteria of one stage, or all in order."""
        stages = [stage] if stage else sorted(self.stages)
        return tuple(c for s in stages for c in self.stages[s].criteria)

    @property
    def judged_stages(self) -> tuple[str, ...]:
        """The stages that a judge scores."""
        return tuple(stage for stage in sorted(self.stages) if self.stages[stage].criteria)

    @property
    def weights(self) -> dict[str, float]:
        return {stage: self.stages[stage].weight for stage in sorted(self.stages)}


def has_all_stages(stages: Mapping[str, Any]) -> bool:
    """Whether these are all five stages of the benchmark, and nothing else."""
    return set(stages) == set(STAGES)
