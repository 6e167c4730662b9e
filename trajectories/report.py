"""The harness report (detail_report.json): its old and new names made one (benchmark.md, section 2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from .models import STAGES, Report, Stage
from .reading import count, number, text_or_none

_METRIC_KEYS = ("diagnostic_metrics", "task_metrics", "metrics", "scores")


def _get(data: Any, dotted: str) -> Any:
    for key in dotted.split("."):
        if not isinstance(data, dict):
            return None
        data = data.get(key)
    return data


def _first(data: dict[str, Any], *dotted: str) -> Any:
    """The first of these paths that is there and not null; an object with `score` stands for its score."""
    for path in dotted:
        value = _get(data, path)
        if isinstance(value, dict):
            value = value.get("score")
        if value is not None:
            return value
    return None


def _unit(value: Any, name: str, warnings: list[str]) -> float | None:
    """A score in [0, 1]; a percentage is not guessed at, it is refused with a warning."""
    found = number(value)
    if value is not None and (found is None or not 0 <= found <= 1):
        warnings.append(f"report: {name} is {str(value)[:40]!r}, not a number in [0, 1]; taken as unknown")
        return None
    return found


def _flag(data: dict[str, Any], *names: str) -> bool | None:
    for name in names:
        for value in (_get(data, f"format.{name}"), data.get(name), *(_get(data, f"{k}.{name}") for k in _METRIC_KEYS)):
            if isinstance(value, bool):
                return value
    return None


def parse_report(data: Any, path: Path, warnings: list[str]) -> Report | None:
    """A `Report`, or None with a warning when the file holds no object."""
    if not isinstance(data, dict):
        warnings.append(f"report: {path.name} holds no object; left out")
        return None
    metrics: dict[str, Any] = {}
    for key in reversed(_METRIC_KEYS):
        if isinstance(data.get(key), dict):
            metrics.update(data[key])
    steps: dict[Stage, float | None] = {}
    source = next(
        (s for s in (_get(data, "agentic_score.step_scores"), data.get("step_scores")) if isinstance(s, dict)), {}
    )
    for stage in STAGES:
        raw = source.get(stage.lower(), source.get(stage))
        steps[stage] = _unit(raw.get("score") if isinstance(raw, dict) else raw, f"step score {stage}", warnings)
    overall = number(_first(data, "agentic_tier.overall_score", "aggregate.overall_score", "overall_score"))
    if overall is not None and not 0 <= overall <= 100:
        warnings.append(f"report: overall score {overall} is outside [0, 100]; taken as unknown")
        overall = None
    breach = data.get("isolation_breach")
    breach = breach if isinstance(breach, dict) else {}
    return Report(
        path=path,
        task_score=_unit(
            _first(data, "task_score", "clinical_score", "clinical.clinical", "aggregate.task_score", "aggregate.clinical_score"),
            "task score", warnings,
        ),
        agentic=_unit(_first(data, "agentic_score", "aggregate.agentic_score"), "agentic score", warnings),
        overall=overall,
        step_scores=steps,
        metrics=metrics,
        output_format_valid=_flag(data, "output_format_valid", "masks_valid"),
        submission_format_valid=_flag(data, "submission_format_valid", "submission_valid"),
        decision_csv_valid=_flag(data, "decision_csv_valid", "csv_valid"),
        completion_rate=_unit(
            _first(data, "format.completion_rate", *(f"{k}.completion_rate" for k in _METRIC_KEYS), "completion_rate"),
            "completion rate", warnings,
        ),
        n_valid=count(_first(data, "n_valid", "format.n_valid", *(f"{k}.n_valid" for k in _METRIC_KEYS),
                             *(f"{k}.counts.valid_outputs" for k in _METRIC_KEYS))),
        n_expected=count(_first(data, "n_patients", "format.n_patients", *(f"{k}.n_patients" for k in _METRIC_KEYS),
                                *(f"{k}.counts.expected" for k in _METRIC_KEYS))),
        breached=breach.get("breached") if isinstance(breach.get("breached"), bool) else None,
        breach_turn=count(breach.get("turn")),
        medal=text_or_none(_first(data, "medal", *(f"{k}.medal" for k in _METRIC_KEYS))),
    )  # fmt: skip


def report_identity(data: Any) -> dict[str, Any]:
    """agent, model, task, tier, repeat as the report's header names them."""
    if not isinstance(data, dict):
        return {}
    header = data.get("header") if isinstance(data.get("header"), dict) else data
    assert isinstance(header, dict)
    return {key: header.get(key) for key in ("agent", "model", "task", "tier", "repeat", "repeat_idx", "track")}


def report_runtime(data: Any) -> dict[str, float | None]:
    """wall_time_s, input_tokens, output_tokens, cost_usd from the report's runtime block."""
    runtime = _get(data, "runtime")
    names: tuple[tuple[Literal["wall_time_s", "input_tokens", "output_tokens", "cost_usd"], str], ...] = (
        ("wall_time_s", "wall_time_s"), ("input_tokens", "input_tokens"),
        ("output_tokens", "output_tokens"), ("cost_usd", "estimated_cost_usd"),
    )  # fmt: skip
    return {ours: number(_get(runtime, theirs)) for ours, theirs in names}
