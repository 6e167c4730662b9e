"""The five stages of a run: names only, for those who need no models."""

from __future__ import annotations

from typing import Literal

Stage = Literal["S1", "S2", "S3", "S4", "S5"]
STAGES: tuple[Stage, ...] = ("S1", "S2", "S3", "S4", "S5")
STAGE_NAMES: dict[str, str] = {
    "S1": "Plan",
    "S2": "Setup",
    "S3": "Validate",
    "S4": "Inference",
    "S5": "Submit",
}


def stage_title(stage: str) -> str:
    """A stage as people read it; a group of a rubric of one's own goes by its name."""
    return f"{stage} {STAGE_NAMES[stage]}" if stage in STAGE_NAMES else stage
