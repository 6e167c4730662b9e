"""What each stage of a run cost, and the segmentation as JSON (`ambjudge.segments/1`)."""

from __future__ import annotations

from typing import Any

from ..sanitize import sanitize_line
from .models import STAGES, Frozen, Run, Segmentation, Stage
from .quantities import Amount, Whole
from .reading.json_bytes import exact_sum, without_lone_surrogates

_MAX_SPEAKER = 60
"""Characters of a speaker's name."""


def speaker_name(speaker: str) -> str:
    """Who spoke, on one line and without brackets, which end the title of a turn in the record."""
    name = sanitize_line(speaker[: 4 * _MAX_SPEAKER]).replace("[", "(").replace("]", ")")
    return name[:_MAX_SPEAKER]


class StageUse(Frozen):
    """What the turns of one stage used.

    Seconds are None if no call of the stage has a recorded time.
    """

    turns: Whole
    """Turns of the stage."""
    calls: Whole
    """Tool calls."""
    failed_calls: Whole
    """Tool calls that ended in an error."""
    exec_time_s: Amount | None = None
    """Sum of the recorded execution times, in seconds."""


def stage_uses(run: Run, segmentation: Segmentation) -> dict[Stage, StageUse]:
    """The use of each of the five stages; a stage without turns has zeros and unknown seconds."""
    return {stage: _stage_use(run, segmentation.turns_of(stage)) for stage in STAGES}


def _stage_use(run: Run, turns: tuple[int, ...]) -> StageUse:
    actions = [action for index in turns for action in run.turn(index).actions]
    seconds = [action.exec_time_s for action in actions if action.exec_time_s is not None]
    return StageUse(
        turns=len(turns),
        calls=len(actions),
        failed_calls=sum(action.failed for action in actions),
        exec_time_s=exact_sum(seconds),
    )


def run_info(run: Run) -> dict[str, Any]:
    """The `run` object that every JSON output of ambjudge carries."""
    return {
        "id": run.id,
        "path": without_lone_surrogates(str(run.path)),
        "sha256": run.sha256,
        "agent": run.agent,
        "model": run.model,
        "task": run.task,
        "track": run.track,
        "tier": run.tier,
        "repeat": run.repeat,
        "turns": len(run.turns),
        "format": run.format,
    }


def segments_json(
    run: Run, segmentation: Segmentation, with_signals: bool = False
) -> dict[str, Any]:
    """The segmentation as JSON; `with_signals` adds the signals and posterior of every turn."""
    costs = stage_uses(run, segmentation)
    data: dict[str, Any] = {
        "schema": "ambjudge.segments/1",
        "run": run_info(run),
        "turn_stages": list(segmentation.turn_stages),
        "segments": [segment.model_dump() for segment in segmentation.segments],
        "stages": {stage: cost.model_dump() for stage, cost in costs.items()},
    }
    if any(turn.speaker for turn in run.turns):
        data["speakers"] = [turn.speaker for turn in run.turns]
    if with_signals:
        data["confidence"] = [round(posterior, 4) for posterior in segmentation.confidence]
        data["signals"] = [
            [signal.model_dump() for signal in signals] for signals in segmentation.signals
        ]
    return data
