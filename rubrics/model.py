"""What a rubric is: stages, criteria, scales, tier rules and dependencies, frozen after loading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from ..trajectories.models import STAGES, Tier, TrackName

EvidenceScope = Literal["plan", "S1", "S2", "S3", "S4", "S5", "executions", "outputs", "brief"]
EVIDENCE_SCOPES: tuple[EvidenceScope, ...] = get_args(EvidenceScope)


class Node(BaseModel):
    """An immutable part of a rubric; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Level(Node):
    """One allowed value of a criterion, in [0, 1], and what earns it."""

    value: float = Field(ge=0, le=1)
    text: str


class Criterion(Node):
    """One item that is judged.

    `scale` holds the allowed values, highest first; binary items have 1 and 0. The items of other
    questions (error codes, for example) are criteria too, so ids may have any form here; those of a
    rubric follow its schema.
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
    """Ids of criteria of the same stage; if one of them is 0, this one is 0."""
    credit: tuple[Tier, ...] = ()
    """Tiers in which the item counts 1 without being judged."""
    tiers: tuple[Tier, ...] | None = None
    """Tiers in which the item applies; None: all. In other tiers it does not count at all."""
    conditional: str | None = None
    """When the item applies. If set, the judge may answer `not_applicable`."""
    evidence: tuple[EvidenceScope, ...] = Field(min_length=1)
    """Where to look: the plan, the turns of a stage, the executions of the whole run, the list of
    outputs, the brief."""
    source: str
    preamble: str | None = None
    """The rubric's preamble, which a judge is told before this item."""

    @property
    def full_text(self) -> str:
        """The text, after the rubric's preamble if there is one."""
        return f"{self.preamble}\n{self.text}" if self.preamble else self.text

    @property
    def values(self) -> tuple[float, ...]:
        """The allowed values, highest first."""
        return tuple(level.value for level in self.scale)

    @property
    def binary(self) -> bool:
        """Whether the scale has only 1 and 0."""
        return set(self.values) == {0.0, 1.0}


class StageRubric(Node):
    """A stage's weight in the Agentic score and its criteria, whose weighted mean is its score.

    S4 and S5 have no criteria.
    """

    weight: float = Field(gt=0)
    criteria: tuple[Criterion, ...] = ()


class Rubric(Node):
    """The rubric of one track, or of a variant of it."""

    id: str
    version: str
    track: TrackName | None = None
    """None: for runs whose track is unknown."""
    tasks: tuple[str, ...] = ()
    """Of a variant: words that choose it if a part of the task's name begins with one (`feta` in
    `feta-seg-task`)."""
    title: str
    source: str
    derived: bool = False
    """True if no rubric was published for the track and this one is derived from the shared
    workflow."""
    preamble: str | None = None
    """What a judge is told before the criteria: what the work was, what terms mean."""
    stages: dict[str, StageRubric]
    """Any of the benchmark's S1-S5, or groups of criteria with other names."""
    sha256: str = ""
    """Hash of the meaning (canonical JSON of everything above), set by the loader."""

    def criteria(self, stage: str | None = None) -> tuple[Criterion, ...]:
        """The criteria of one stage, or of all stages in order."""
        names = [stage] if stage else sorted(self.stages)
        return tuple(criterion for name in names for criterion in self.stages[name].criteria)

    @property
    def judged_stages(self) -> tuple[str, ...]:
        """The stages that a judge scores."""
        return tuple(stage for stage in sorted(self.stages) if self.stages[stage].criteria)

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each stage."""
        return {stage: self.stages[stage].weight for stage in sorted(self.stages)}


def has_all_stages(stages: Mapping[str, Any]) -> bool:
    """Whether these are exactly the five stages of the benchmark."""
    return set(stages) == set(STAGES)
