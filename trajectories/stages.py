"""The five stages of a run: names only, for modules that need no models."""

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
    """The heading of a stage, e.g. `S1 Plan`; a stage of a custom rubric is its own heading."""
    if stage not in STAGE_NAMES:
        return stage
    return f"{stage} {STAGE_NAMES[stage]}"
