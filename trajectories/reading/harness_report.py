"""Parses the harness report (detail_report.json) and unifies its old and new field names.

docs/run-folder.md says which field of the report each number comes from.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..models import STAGES, Report, Stage
from .json_bytes import count, number, text_or_none

_METRIC_BLOCKS = ("diagnostic_metrics", "task_metrics", "metrics", "scores")
"""Objects of a report that hold metrics, the most specific first."""


def _in_metrics(field: str) -> tuple[str, ...]:
    """The field in each block of metrics."""
    return tuple(f"{block}.{field}" for block in _METRIC_BLOCKS)


# Where a report may state a value, in order of preference: each branch has its own fields.
_TASK_SCORE_FIELDS = (
    "task_score",
    "clinical_score",
    "aggregate.task_score",
    "aggregate.clinical_score",
    "clinical.clinical",
)
"""`aggregate` before `clinical`: in a disqualified run, `clinical` is still the measured score and
`aggregate` is 0."""
_AGENTIC_FIELDS = ("agentic_score", "aggregate.agentic_score")
_OVERALL_FIELDS = ("agentic_tier.overall_score", "aggregate.overall_score", "overall_score")
_PROGRESS_FIELDS = ("agentic_score.progress_rate", "aggregate.progress_rate")
_COMPLETION_FIELDS = (
    "format.completion_rate",
    *_in_metrics("completion_rate"),
    "completion_rate",
)
_N_OUTPUTS_FIELDS = _in_metrics("counts.prediction_files")
_N_VALID_FIELDS = (
    "n_valid",
    "format.n_valid",
    *_in_metrics("n_valid"),
    *_in_metrics("counts.valid_outputs"),
)
_N_EXPECTED_FIELDS = (
    "n_patients",
    "format.n_patients",
    *_in_metrics("n_patients"),
    *_in_metrics("counts.expected"),
)
_MEDAL_FIELDS = (
    "agentic_tier.medal_name",
    "task_score.medal_name",
    *_in_metrics("medal_name"),
    "medal",
    *_in_metrics("medal"),
)
_MEDAL_TIER_FIELDS = ("agentic_tier.medal_tier", *_in_metrics("medal_tier"))
_BREACH_FIELDS = (
    "isolation_breach.breached",
    "isolation_breach",
    "orchestrator.isolation_breach",
)
_RATING_FIELDS = ("agentic_tier.rating", "aggregate.rating", "rating.rating")
_RUNTIME_FIELDS: dict[str, tuple[str, ...]] = {
    "wall_time_s": ("runtime.wall_time_s", "orchestrator.agent_wall_s", "agent_summary.elapsed_s"),
    "input_tokens": ("runtime.input_tokens", "agent_summary.prompt_tokens"),
    "output_tokens": ("runtime.output_tokens", "agent_summary.completion_tokens"),
    "cost_usd": ("runtime.estimated_cost_usd",),
}


def flat_report(data: Any) -> Any:
    """The report as one object.

    The vqa branch's report.json nests it in `eval_report` and `detail_report`; other reports are
    returned as they are.
    """
    if not isinstance(data, dict):
        return data
    merged = dict(data)
    for key in ("eval_report", "detail_report"):
        part = data.get(key)
        if isinstance(part, dict):
            merged.update(part)
    return merged


def report_summary(data: Any) -> dict[str, Any] | None:
    """agent_summary.json as the enhancement branch copies it into its report."""
    summary = _get(data, "agent_summary")
    return summary if isinstance(summary, dict) else None


def parse_report(data: Any, path: Path, warnings: list[str]) -> Report | None:
    """A `Report`; None, with a warning, if the file does not hold an object."""
    if not isinstance(data, dict):
        warnings.append(f"report: {path.name} does not hold an object; left out")
        return None
    scores = step_scores(data, warnings)
    medal = _medal(data)
    breached = _breached(data, medal)
    task_score, task_field = _task_score(data, warnings)
    overall = _score(_first(data, *_OVERALL_FIELDS), "overall score", warnings)
    completion = _score(_first(data, *_COMPLETION_FIELDS), "completion rate", warnings)
    n_outputs = count(_first(data, *_N_OUTPUTS_FIELDS))
    if n_outputs is None and not breached and 0 in (completion, scores["S4"]):
        n_outputs = 0
    shuffled = data.get("shuffle")
    return Report(
        path=path,
        task_score=task_score,
        task_score_from=task_field,
        agentic=_score(_first(data, *_AGENTIC_FIELDS), "agentic score", warnings),
        overall=None if overall is None else 100 * overall,
        step_scores=scores,
        metrics=_metrics(data),
        output_format_valid=_flag(
            data, "output_format_valid", "masks_valid", "predictions_valid", "reports_valid"
        ),
        submission_format_valid=_flag(data, "submission_format_valid", "submission_valid"),
        decision_csv_valid=_flag(data, "decision_csv_valid", "csv_valid"),
        completion_rate=completion,
        n_outputs=n_outputs,
        n_valid=count(_first(data, *_N_VALID_FIELDS)),
        n_expected=count(_first(data, *_N_EXPECTED_FIELDS)),
        breached=breached,
        breach_turn=count(_get(data, "isolation_breach.turn")),
        medal=medal,
        rating=text_or_none(_first(data, *_RATING_FIELDS)),
        progress=_score(_first(data, *_PROGRESS_FIELDS), "progress rate", warnings),
        pass_rate=_score(_get(data, "pass_rate.pass_rate"), "pass rate", warnings),
        shuffled=shuffled if isinstance(shuffled, dict) else {},
    )


def _metrics(data: dict[str, Any]) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    for block in reversed(_METRIC_BLOCKS):
        if isinstance(data.get(block), dict):
            metrics.update(data[block])
    if isinstance(data.get("tool_usage"), dict):
        metrics["tool_usage"] = data["tool_usage"]
    return metrics


def step_scores(data: dict[str, Any], warnings: list[str]) -> dict[Stage, float | None]:
    """The scores that a report states of S1-S5; None for those that it does not."""
    reported = _get(data, "agentic_score.step_scores")
    if not isinstance(reported, dict):
        reported = data.get("step_scores")
    if not isinstance(reported, dict):
        reported = {}
    scores: dict[Stage, float | None] = {}
    for stage in STAGES:
        value = reported.get(stage.lower(), reported.get(stage))
        if isinstance(value, dict):
            value = value.get("score")
        scores[stage] = _score(value, f"step score {stage}", warnings)
    return scores


def _medal(data: dict[str, Any]) -> str | None:
    medal = text_or_none(_first(data, *_MEDAL_FIELDS))
    tier = _first(data, *_MEDAL_TIER_FIELDS)
    # A closed gate takes the tier and leaves the name (branch eval_seg, aggregate.py:146).
    return "fail" if tier == 0 and medal in ("okay", "good") else medal


def _breached(data: dict[str, Any], medal: str | None) -> bool | None:
    """Whether the run breached isolation; None if the report does not say."""
    for field in _BREACH_FIELDS:
        value = _get(data, field)
        if isinstance(value, bool):
            return value
    if "disqualified" in (medal, _get(data, "rating.tier_name")):
        return True
    return None


def _task_score(data: dict[str, Any], warnings: list[str]) -> tuple[float | None, str | None]:
    """The task score and the field that held it."""
    for field in _TASK_SCORE_FIELDS:
        value = _first(data, field)
        if value is not None:
            score = _score(value, "task score", warnings)
            return score, None if score is None else field
    return None, None


def _get(data: Any, dotted: str) -> Any:
    """The value of a field, e.g. `format.completion_rate`; None if it is not there."""
    for key in dotted.split("."):
        if not isinstance(data, dict):
            return None
        data = data.get(key)
    return data


def _first(data: dict[str, Any], *fields: str) -> Any:
    """The first of these fields that is not null; an object with `score` stands for its score."""
    for field in fields:
        value = _get(data, field)
        if isinstance(value, dict):
            value = value.get("score")
        if value is not None:
            return value
    return None


def _score(value: Any, label: str, warnings: list[str]) -> float | None:
    """A score in [0, 1].

    Anything else is unknown, with a warning: whether 85 is a percentage would be a guess.
    """
    if value is None:
        return None
    score = number(value)
    if score is None or not 0 <= score <= 1:
        warnings.append(
            f"report: {label} is {str(value)[:40]!r}, not a number in [0, 1]; taken as unknown"
        )
        return None
    return score


def _flag(data: dict[str, Any], *names: str) -> bool | None:
    """The first of these flags that the report states, in any of the objects that may hold it."""
    for name in names:
        values = [_get(data, f"format.{name}"), data.get(name)]
        values += [_get(data, field) for field in _in_metrics(name)]
        for value in values:
            if isinstance(value, bool):
                return value
    return None


def submit_answer(answer: dict[str, Any] | None) -> dict[str, Any]:
    """The harness's answer to submit_results, with the field names of all branches unified.

    `missing_files`: `<case>/<file>` for each missing required file. `patients_checked`: the number
    of cases. `complete`: whether no file is missing. Missing organ masks are left out: the runner
    lists them, but the benchmark's output format calls them optional.
    """
    unified = dict(answer or {})
    for field in ("missing_masks", "missing_predictions"):
        paths = unified.pop(field, None)
        if isinstance(paths, list):
            unified["missing_files"] = [path for path in paths if not _is_organ_mask(path)]
            unified["complete"] = not unified["missing_files"]
    cases = unified.pop("missing_cases", None)
    if isinstance(cases, list):
        unified["missing_files"] = [f"{case}/report.txt" for case in cases if isinstance(case, str)]
    for field in ("cases_total", "n_patients_expected"):
        if field in unified:
            unified["patients_checked"] = unified.pop(field)
    if "complete" not in unified:
        rate = _completion_rate(unified)
        if rate is not None:
            unified["complete"] = rate >= 1
    return unified


def _is_organ_mask(path: Any) -> bool:
    return isinstance(path, str) and path.endswith("/organ.nii.gz")


def _completion_rate(answer: dict[str, Any]) -> float | None:
    rate = number(answer.get("completion_rate"))
    if rate is not None:
        return rate
    valid, checked = count(answer.get("n_valid")), count(answer.get("patients_checked"))
    return valid / checked if valid is not None and checked else None


def report_identity(data: Any) -> dict[str, Any]:
    """agent, model, task, tier, repeat and track from the report's header."""
    if not isinstance(data, dict):
        return {}
    header = data.get("header")
    if not isinstance(header, dict):
        header = data
    keys = ("agent", "model", "task", "tier", "repeat", "repeat_idx", "track")
    return {key: header.get(key) for key in keys}


def report_runtime(data: Any) -> dict[str, float | None]:
    """wall_time_s, input_tokens, output_tokens and cost_usd; None for what is not reported.

    They are in the report's runtime block, or in the orchestrator's.
    """
    return {name: _first_number(data, fields) for name, fields in _RUNTIME_FIELDS.items()}


def _first_number(data: Any, fields: tuple[str, ...]) -> float | None:
    for field in fields:
        value = number(_get(data, field))
        if value is not None:
            return value
    return None
