"""The harness report (detail_report.json): its old and new names made one (benchmark.md, section
2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..models import STAGES, Report, Stage
from .json_bytes import count, number, text_or_none

_METRIC_KEYS = ("diagnostic_metrics", "task_metrics", "metrics", "scores")


def _get(data: Any, dotted: str) -> Any:
    for key in dotted.split("."):
        if not isinstance(data, dict):
            return None
        data = data.get(key)
    return data


def _first(data: dict[str, Any], *dotted: str) -> Any:
    """The first of these paths that is there and not null; an object with `score` stands for its
    score."""
    for path in dotted:
        value = _get(data, path)
        if isinstance(value, dict):
            value = value.get("score")
        if value is not None:
            return value
    return None


def flat_report(data: Any) -> Any:
    """The vqa branch's report.json (`eval_report`, `detail_report` and a head) as one object like
    those of the others."""
    parts = (
        [data.get(key) for key in ("eval_report", "detail_report")]
        if isinstance(data, dict)
        else []
    )
    if not any(isinstance(part, dict) for part in parts):
        return data
    whole = dict(data)
    for part in parts:
        whole.update(part if isinstance(part, dict) else {})
    return whole


def report_summary(data: Any) -> dict[str, Any] | None:
    """agent_summary.json as the enhancement branch copies it into its report."""
    found = _get(data, "agent_summary")
    return found if isinstance(found, dict) else None


def _unit(value: Any, name: str, warnings: list[str]) -> float | None:
    """A score in [0, 1]; a percentage is not guessed at, it is refused with a warning."""
    found = number(value)
    if value is not None and (found is None or not 0 <= found <= 1):
        warnings.append(
            f"report: {name} is {str(value)[:40]!r}, not a number in [0, 1]; taken as unknown"
        )
        return None
    return found


def _flag(data: dict[str, Any], *names: str) -> bool | None:
    for name in names:
        for value in (
            _get(data, f"format.{name}"),
            data.get(name),
            *(_get(data, f"{k}.{name}") for k in _METRIC_KEYS),
        ):
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
    if isinstance(data.get("tool_usage"), dict):
        metrics["tool_usage"] = data["tool_usage"]
    steps: dict[Stage, float | None] = {}
    source = next(
        (
            s
            for s in (_get(data, "agentic_score.step_scores"), data.get("step_scores"))
            if isinstance(s, dict)
        ),
        {},
    )
    for stage in STAGES:
        raw = source.get(stage.lower(), source.get(stage))
        steps[stage] = _unit(
            raw.get("score") if isinstance(raw, dict) else raw, f"step score {stage}", warnings
        )
    overall = _unit(
        _first(data, "agentic_tier.overall_score", "aggregate.overall_score", "overall_score"),
        "overall score",
        warnings,
    )
    breach = data.get("isolation_breach")
    breach = breach if isinstance(breach, dict) else {}
    medal = text_or_none(
        _first(
            data,
            "agentic_tier.medal_name",
            "task_score.medal_name",
            *(f"{k}.medal_name" for k in _METRIC_KEYS),
            "medal",
            *(f"{k}.medal" for k in _METRIC_KEYS),
        )
    )
    tier = _first(data, "agentic_tier.medal_tier", *(f"{k}.medal_tier" for k in _METRIC_KEYS))
    if tier == 0 and medal in ("okay", "good"):
        # a closed gate takes the tier and leaves the name (branch eval_seg, aggregate.py:146)
        medal = "fail"
    breached = breach.get("breached") if isinstance(breach.get("breached"), bool) else None
    if breached is None and isinstance(said := _get(data, "orchestrator.isolation_breach"), bool):
        breached = said
    if breached is None and "disqualified" in (medal, _get(data, "rating.tier_name")):
        breached = True
    task, task_from = _task(data, warnings)
    completion = _unit(
        _first(
            data,
            "format.completion_rate",
            *(f"{k}.completion_rate" for k in _METRIC_KEYS),
            "completion_rate",
        ),
        "completion rate",
        warnings,
    )
    n_outputs = count(_first(data, *(f"{k}.counts.prediction_files" for k in _METRIC_KEYS)))
    if n_outputs is None and not breached and 0 in (completion, steps["S4"]):
        n_outputs = 0
    return Report(
        path=path,
        task_score=task,
        task_score_from=task_from,
        agentic=_unit(
            _first(data, "agentic_score", "aggregate.agentic_score"), "agentic score", warnings
        ),
        overall=None if overall is None else 100 * overall,
        step_scores=steps,
        metrics=metrics,
        output_format_valid=_flag(
            data, "output_format_valid", "masks_valid", "predictions_valid", "reports_valid"
        ),
        submission_format_valid=_flag(data, "submission_format_valid", "submission_valid"),
        decision_csv_valid=_flag(data, "decision_csv_valid", "csv_valid"),
        completion_rate=completion,
        n_outputs=n_outputs,
        n_valid=count(
            _first(
                data,
                "n_valid",
                "format.n_valid",
                *(f"{k}.n_valid" for k in _METRIC_KEYS),
                *(f"{k}.counts.valid_outputs" for k in _METRIC_KEYS),
            )
        ),
        n_expected=count(
            _first(
                data,
                "n_patients",
                "format.n_patients",
                *(f"{k}.n_patients" for k in _METRIC_KEYS),
                *(f"{k}.counts.expected" for k in _METRIC_KEYS),
            )
        ),
        breached=breached,
        breach_turn=count(breach.get("turn")),
        medal=medal,
        rating=text_or_none(
            _first(data, "agentic_tier.rating", "aggregate.rating", "rating.rating")
        ),
        progress=_unit(
            _first(data, "agentic_score.progress_rate", "aggregate.progress_rate"),
            "progress rate",
            warnings,
        ),
        pass_rate=_unit(_get(data, "pass_rate.pass_rate"), "pass rate", warnings),
        shuffled=shuffled if isinstance(shuffled := data.get("shuffle"), dict) else {},
    )


_TASK_NAMES = (
    "task_score",
    "clinical_score",
    "aggregate.task_score",
    "aggregate.clinical_score",
    "clinical.clinical",
)
"""`aggregate` before `clinical`: a disqualified run keeps the latter as it was measured, and has 0
in the former."""


def _task(data: dict[str, Any], warnings: list[str]) -> tuple[float | None, str | None]:
    """The task score and the name that it stood under."""
    for name in _TASK_NAMES:
        value = _first(data, name)
        if value is not None:
            found = _unit(value, "task score", warnings)
            return found, None if found is None else name
    return None, None


def submit_answer(answer: dict[str, Any] | None) -> dict[str, Any]:
    """The harness's answer to submit_results with the names of all branches made one.

    `missing_files`: `<case>/<file>` for each required one, `patients_checked`: how many cases,
    `complete`: none is missing. Missing organ masks, which the runner lists and the scorer calls
    optional (benchmark.md section 4), are left out.
    """
    found = dict(answer or {})
    for theirs in ("missing_masks", "missing_predictions"):
        if isinstance(listed := found.pop(theirs, None), list):
            found["missing_files"] = [
                f for f in listed if not (isinstance(f, str) and f.endswith("/organ.nii.gz"))
            ]
            found["complete"] = not found["missing_files"]
    if isinstance(cases := found.pop("missing_cases", None), list):
        found["missing_files"] = [f"{case}/report.txt" for case in cases if isinstance(case, str)]
    for theirs in ("cases_total", "n_patients_expected"):
        if theirs in found:
            found["patients_checked"] = found.pop(theirs)
    valid, checked = count(found.get("n_valid")), count(found.get("patients_checked"))
    rate = number(found.get("completion_rate"))
    if rate is None and valid is not None and checked:
        rate = valid / checked
    if "complete" not in found and rate is not None:
        found["complete"] = rate >= 1
    return found


def report_identity(data: Any) -> dict[str, Any]:
    """agent, model, task, tier, repeat as the report's header names them."""
    if not isinstance(data, dict):
        return {}
    header = data.get("header") if isinstance(data.get("header"), dict) else data
    assert isinstance(header, dict)
    return {
        key: header.get(key)
        for key in ("agent", "model", "task", "tier", "repeat", "repeat_idx", "track")
    }


def report_runtime(data: Any) -> dict[str, float | None]:
    """wall_time_s, input_tokens, output_tokens, cost_usd from the report's runtime block, or what
    the orchestrator put there."""
    names: dict[str, tuple[str, ...]] = {
        "wall_time_s": (
            "runtime.wall_time_s",
            "orchestrator.agent_wall_s",
            "agent_summary.elapsed_s",
        ),
        "input_tokens": ("runtime.input_tokens", "agent_summary.prompt_tokens"),
        "output_tokens": ("runtime.output_tokens", "agent_summary.completion_tokens"),
        "cost_usd": ("runtime.estimated_cost_usd",),
    }
    return {
        ours: next((v for path in paths if (v := number(_get(data, path))) is not None), None)
        for ours, paths in names.items()
    }
