"""Per-stage turns, calls and seconds of a segmented run, and the segmentation as JSON
(`ambjudge.segments/1`)."""

from __future__ import annotations

from typing import Any

from .models import STAGES, Frozen, Run, Segmentation, Stage
from .reading.json_bytes import exact_sum, without_lone_surrogates


class StageCost(Frozen):
    """What one stage took. `exec_time_s` sums the recorded execution times; None when none was
    recorded."""

    turns: int
    calls: int
    failed_calls: int
    exec_time_s: float | None


def stage_costs(run: Run, segmentation: Segmentation) -> dict[Stage, StageCost]:
    """Costs of all five stages; a stage without turns has zeros and unknown seconds."""
    costs = {}
    for stage in STAGES:
        actions = [a for i in segmentation.turns_of(stage) for a in run.turn(i).actions]
        times = [a.exec_time_s for a in actions if a.exec_time_s is not None]
        costs[stage] = StageCost(
            turns=len(segmentation.turns_of(stage)),
            calls=len(actions),
            failed_calls=sum(
                a.observation is not None and a.observation.kind in ("failed", "timeout", "blocked")
                for a in actions
            ),
            exec_time_s=exact_sum(times),
        )
    return costs


def run_info(run: Run) -> dict[str, Any]:
    """The `run` object that every JSON of ambjudge carries."""
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


def segments_json(run: Run, segmentation: Segmentation, why: bool = False) -> dict[str, Any]:
    """The segmentation JSON of the contract; `why` adds the signals and the posterior of every
    turn."""
    data: dict[str, Any] = {
        "schema": "ambjudge.segments/1",
        "run": run_info(run),
        "turn_stages": list(segmentation.turn_stages),
        "segments": [s.model_dump() for s in segmentation.segments],
        "stages": {
            stage: cost.model_dump() for stage, cost in stage_costs(run, segmentation).items()
        },
    }
    if why:
        data["confidence"] = [round(c, 4) for c in segmentation.confidence]
        data["signals"] = [
            [signal.model_dump() for signal in turn] for turn in segmentation.signals
        ]
    return data
