"""Scores as pure functions of plain values: stage means, S4 and S5, guards, aggregation, breaches.

Nothing here reads a file or a run. Stage scores, Agentic and Task are in [0, 1], Overall in [0,
100]. Unknown is None, never 0, and every score has bounds: its worst and best case over what is
unknown. A number outside its range, or NaN, is a ValueError, because it can only come from a fault
upstream.

The rules are those of the AutoMedBench paper (arXiv 2606.01961) and, where it is silent, of the
benchmark's public harness (AutoMedBench/AutoMedBench); docs/harness.md lists the differences.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from ...rubrics.model import Criterion, has_all_stages
from ...trajectories.models import STAGES, Stage
from ..card.stage_results import CriterionResult
from .criteria import results_by_id

Missing = Literal["renormalize", "zero"]
Breach = Literal["zero-all", "from-stage"]
Malformed = Literal["formula", "zero"]
Bounds = tuple[float, float]

UNKNOWN_BOUNDS: Bounds = (0.0, 1.0)
"""Bounds of a score about which nothing is known."""

PLACEHOLDER_LIMIT = 0.05
"""Above this share of placeholder answers S4 and S3 are capped."""
PLACEHOLDER_DOMINATED = 0.5
"""From this share on a run counts as a placeholder run (AutoMedBench/AutoMedBench, branch eval_vqa,
aggregate.py:69)."""
NEARLY_COMPLETE = 0.99
"""From this completion on the harness calls answers complete (branch eval_vqa, aggregate.py)."""
BROKEN_ACCURACY = 0.05
"""A complete run with real model calls below this accuracy is real but broken."""
VALID_SHARE = 0.5
"""A submission of answers is valid from this share of valid answers on."""


@dataclass(frozen=True)
class Cap:
    """A rule's upper limit on a stage score, in [0, 1], and why it is in force."""

    value: float
    reason: str


@dataclass(frozen=True)
class Aggregate:
    """Agentic in [0, 1], Overall in [0, 100]; None when unknown. Bounds are always there."""

    agentic: float | None
    agentic_bounds: Bounds
    overall: float | None
    overall_bounds: Bounds


@dataclass(frozen=True)
class Zeroed:
    """Scores after a disqualification, and the stages that the policy set to 0."""

    scores: dict[str, float | None]
    bounds: dict[str, Bounds]
    task: float | None
    stages: tuple[str, ...]


def _check_unit(value: float, label: str) -> float:
    """The value as a float if it is in [0, 1]; ValueError for anything else, NaN included."""
    number = float(value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{label} is {value!r}, not in [0, 1]")
    return number


def _checked_bounds(bounds: Bounds, label: str) -> Bounds:
    """The bounds as floats; ValueError if they are not in [0, 1] or reversed."""
    low = _check_unit(bounds[0], f"lower bound of {label}")
    high = _check_unit(bounds[1], f"upper bound of {label}")
    if low > high:
        raise ValueError(f"bounds of {label} are reversed: {low} > {high}")
    return low, high


def _mean(pairs: Iterable[tuple[float, float]]) -> float:
    """Weighted mean of (weight, value); exactly rounded sums make it independent of the order."""
    pairs = list(pairs)
    total = math.fsum(weight for weight, _ in pairs)
    return min(1.0, math.fsum(weight * value for weight, value in pairs) / total)


def _mean_in_order(pairs: Sequence[tuple[float, float]]) -> float:
    """Weighted mean of (weight, value), summed from the first pair on, as the harness sums.

    The last bit of the mean decides how ties are rounded.
    """
    total = weighted = 0.0
    for weight, value in pairs:
        total += weight
        weighted += weight * value
    return min(1.0, weighted / total)


def _widen_to(score: float | None, bounds: Bounds) -> Bounds:
    """The bounds, widened to include the score if rounding put its last bit outside."""
    if score is None:
        return bounds
    return min(bounds[0], score), max(bounds[1], score)


# Judged stages


def stage_score(
    results: Sequence[CriterionResult],
    criteria: Sequence[Criterion],
    missing: Missing = "renormalize",
    digits: int | None = None,
) -> tuple[float | None, Bounds]:
    """Weighted mean over the applicable criteria of a judged stage, and its bounds.

    `results` have been through `apply_requires`; `digits` rounds the score. Unscored criteria, also
    those without any result, are left out of the mean (`renormalize`) or count 0 (`zero`). A
    presumed criterion counts as its value under either policy. The score is None if no criterion
    has a verdict: credits and what facts decided alone do not score a stage, else a lite run whose
    judge failed would get a full S1. Only if they are all applicable criteria, so that there is
    nothing to judge, do they count. Bounds: unscored and presumed criteria at 0 and at 1; in the
    worst case whatever requires one of them is 0 too.
    """
    values, credited, presumed = _applicable(results, criteria)
    if not values:
        return None, UNKNOWN_BOUNDS
    weight = {item.id: item.weight for item in criteria}
    # In the bounds a presumed value is as unknown as a missing one.
    verdicts = {name: None if name in presumed else value for name, value in values.items()}
    worst = _worst_case(verdicts, credited, criteria)
    best = {name: 1.0 if value is None else value for name, value in verdicts.items()}
    low = _mean((weight[name], value) for name, value in worst.items())
    high = _mean((weight[name], value) for name, value in best.items())

    counted = {name: value for name, value in values.items() if value is not None}
    unjudged = credited | {result.id for result in results if result.by == "facts"}
    has_verdict = bool(counted.keys() - unjudged)
    # These alone do not score a stage in which something was left to judge.
    if not has_verdict and not unjudged >= values.keys():
        return None, (low, high)
    if missing == "zero":
        score = _mean((weight[name], counted.get(name, 0.0)) for name in values)
    else:
        score = _mean((weight[name], value) for name, value in counted.items())
    if digits is not None:
        score = round(score, digits)
    return score, _widen_to(score, (low, high))


def _applicable(
    results: Sequence[CriterionResult], criteria: Sequence[Criterion]
) -> tuple[dict[str, float | None], set[str], set[str]]:
    """The value of each applicable criterion by id, and the ids of credited and of presumed ones.

    A value is None if the criterion is unscored.
    """
    by_id = results_by_id(results, criteria)
    values: dict[str, float | None] = {}
    for item in criteria:
        result = by_id.get(item.id)
        if result is None or result.status == "unscored":
            values[item.id] = None
        elif result.status != "not_applicable":
            if result.value is None:
                raise ValueError(f"{item.id} is {result.status} without a value")
            values[item.id] = _check_unit(result.value, item.id)
    credited = {name for name, result in by_id.items() if result.status == "credited"}
    presumed = {name for name, result in by_id.items() if result.status == "presumed"}
    return values, credited, presumed


def _worst_case(
    values: Mapping[str, float | None], credited: set[str], criteria: Sequence[Criterion]
) -> dict[str, float]:
    """The values with every unknown one, and whatever requires it, at 0; credits stay."""
    worst = {name: value or 0.0 for name, value in values.items()}
    required = {item.id: item.requires for item in criteria}
    doubtful = {name for name, value in values.items() if value is None}
    # A criterion at 0 may be required by others in turn: repeat until nothing is added.
    while True:
        dependent = {
            name
            for name in worst.keys() - credited - doubtful
            if doubtful.intersection(required[name])
        }
        if not dependent:
            return worst
        doubtful |= dependent
        worst.update(dict.fromkeys(dependent, 0.0))


def apply_caps(
    score: float | None, bounds: Bounds, caps: Iterable[Cap], unscored_is_cap: bool = False
) -> tuple[float | None, Bounds]:
    """The score and its bounds, none above the lowest cap.

    `unscored_is_cap`: an unscored stage under a cap gets the cap's value.
    """
    limits = [_check_unit(cap.value, "cap") for cap in caps]
    lowest = min(limits, default=1.0)
    low, high = _checked_bounds(bounds, "a capped stage")
    if score is None and unscored_is_cap and limits:
        return lowest, (lowest, lowest)
    capped = None if score is None else min(_check_unit(score, "score"), lowest)
    return capped, (min(low, lowest), min(high, lowest))


# S4 and S5


def s4_score(
    completion: float | None,
    validity: float | bool | None,
    caps: Iterable[Cap] = (),
    digits: int | None = None,
) -> float | None:
    """S4 = 0.5 completion + 0.5 validity, capped and rounded.

    None if a part is unknown. `validity` is format_valid, or for answers the parse rate in [0, 1].
    """
    low, high = s4_bounds(completion, validity, caps, digits)
    return low if low == high else None


def s4_bounds(
    completion: float | None,
    validity: float | bool | None,
    caps: Iterable[Cap] = (),
    digits: int | None = None,
) -> Bounds:
    """Worst and best S4 over the unknown parts; arguments as of `s4_score`."""
    completion_low, completion_high = _bounds_of_part(completion, "completion")
    validity_low, validity_high = _bounds_of_part(validity, "validity")
    uncapped = (
        0.5 * completion_low + 0.5 * validity_low,
        0.5 * completion_high + 0.5 * validity_high,
    )
    _, (low, high) = apply_caps(None, uncapped, caps)
    if digits is None:
        return low, high
    return round(low, digits), round(high, digits)


def _bounds_of_part(value: float | None, label: str) -> Bounds:
    """Bounds of a part of a score: its value twice, or [0, 1] if it is unknown."""
    if value is None:
        return UNKNOWN_BOUNDS
    number = _check_unit(value, label)
    return number, number


def s5_score(
    has_valid_results: bool | None, format_valid: bool | None, malformed: Malformed = "formula"
) -> float | None:
    """S5 = 0.5 has_valid_results + 0.5 format_valid, in {0, 0.5, 1}.

    None if a part is unknown. `malformed="zero"` follows the paper's text instead: a submission
    with an invalid format scores 0.
    """
    low, high = s5_bounds(has_valid_results, format_valid, malformed)
    return low if low == high else None


def s5_bounds(
    has_valid_results: bool | None, format_valid: bool | None, malformed: Malformed = "formula"
) -> Bounds:
    """Worst and best S5 over the unknown parts; arguments as of `s5_score`."""

    def score(has_results: bool, is_valid: bool) -> float:
        if malformed == "zero" and not is_valid:
            return 0.0
        return 0.5 * has_results + 0.5 * is_valid

    # An unknown part may be either.
    results = (False, True) if has_valid_results is None else (has_valid_results,)
    formats = (False, True) if format_valid is None else (format_valid,)
    scores = [score(*parts) for parts in product(results, formats)]
    return min(scores), max(scores)


def gate_closed(gated: bool, completion: float | None) -> bool | None:
    """Whether the completeness gate sets Task to 0 and format_valid to false; None if unknown.

    It does on a gated track if completion is below 1.
    """
    if not gated:
        return False
    if completion is None:
        return None
    return _check_unit(completion, "completion") < 1.0


def answers_s4_caps(
    placeholder_rate: float | None,
    model_call_found: bool | None,
    complete: bool | None,
    accuracy: float | None,
) -> tuple[Cap, ...]:
    """Caps on S4 of answers (the benchmark's guards for vqa).

    Caps at .2 for placeholders, at .3 without a model call, at .5 for real but broken answers. A
    guard whose fact is unknown is not in force.
    """
    caps = []
    if _exceeds_limit(placeholder_rate):
        reason = f"placeholder rate {placeholder_rate:.2f} is above {PLACEHOLDER_LIMIT}"
        caps.append(Cap(0.2, reason))
    if model_call_found is False:
        caps.append(Cap(0.3, "no model call in a successful execution"))
    if real_but_broken(model_call_found, complete, accuracy):
        reason = f"real but broken: complete, accuracy {accuracy:.3f} is below {BROKEN_ACCURACY}"
        caps.append(Cap(0.5, reason))
    return tuple(caps)


def _exceeds_limit(placeholder_rate: float | None) -> bool:
    """Whether the share of placeholder answers is known and above PLACEHOLDER_LIMIT."""
    if placeholder_rate is None:
        return False
    return _check_unit(placeholder_rate, "placeholder rate") > PLACEHOLDER_LIMIT


def real_but_broken(
    model_call_found: bool | None, complete: bool | None, accuracy: float | None
) -> bool:
    """Whether a model really answered everything, and next to nothing is right."""
    if not complete or not model_call_found or accuracy is None:
        return False
    return _check_unit(accuracy, "accuracy") < BROKEN_ACCURACY


def answers_stage_caps(
    placeholder_rate: float | None,
    answers: int | None,
    artefact_missing: bool = False,
    slipped_through: bool = True,
) -> dict[Stage, Cap]:
    """Caps on S1 and S3 of answers, the lowest for each stage.

    S1 and S3 at .2 for placeholder runs (half of the answers; `heuristic:` is one) and empty ones
    (no answer); S3 at .2 when more than 5 % placeholders slipped through (`slipped_through`), and
    at .5 when an artefact that the task asks for is absent. That no model was called caps S4 alone.
    """
    caps: dict[Stage, Cap] = {}
    if artefact_missing:
        reason = "the post-processing or calibration artefact that the task asks for is absent"
        caps["S3"] = Cap(0.5, reason)
    if slipped_through and _exceeds_limit(placeholder_rate):
        caps["S3"] = Cap(0.2, f"placeholder answers slipped through ({placeholder_rate:.0%})")
    if answers == 0:
        caps["S1"] = caps["S3"] = Cap(0.2, "empty run: no answer delivered")
    elif placeholder_rate is not None and placeholder_rate >= PLACEHOLDER_DOMINATED:
        reason = f"placeholder run: {placeholder_rate:.0%} of the answers"
        caps["S1"] = caps["S3"] = Cap(0.2, reason)
    return caps


# Runs


def aggregate(
    stage_scores: Mapping[str, float | None],
    stage_bounds: Mapping[str, Bounds],
    weights: Mapping[str, float],
    task: float | None,
    missing: Missing = "renormalize",
    digits: int | None = None,
    *,
    inapplicable: Collection[str] = (),
) -> Aggregate:
    """Agentic, the weighted mean of the stages, and Overall = 100 (0.5 Agentic + 0.5 Task).

    `renormalize` rescales the weights of the scored stages, `zero` counts an unscored stage 0; with
    no scored stage Agentic is None either way. Stages that are `inapplicable` have no weight under
    either policy, in the bounds too. Overall is None without Task, and with a rubric of
    other stages than the benchmark's five. In the bounds an unscored stage and an unknown Task span
    [0, 1]. With `digits`, Agentic and then Overall / 100 are rounded, and sums run from the first
    stage on, as in the harness. ValueError for a stage without a weight, and for a weight that is
    not positive.
    """
    _check_weights(weights, stage_scores)
    # Stages are walked in the order of the weights: the harness sums from the first stage on.
    scores: dict[str, float | None] = {}
    for stage in weights:
        if stage not in inapplicable:
            score = stage_scores.get(stage)
            scores[stage] = None if score is None else _check_unit(score, stage)
    agentic = _agentic(scores, weights, missing, digits)
    bounds = {stage: _stage_bounds(stage, score, stage_bounds) for stage, score in scores.items()}
    low, high = UNKNOWN_BOUNDS
    if bounds:
        low = _mean((weights[stage], stage_low) for stage, (stage_low, _) in bounds.items())
        high = _mean((weights[stage], stage_high) for stage, (_, stage_high) in bounds.items())
    low, high = _widen_to(agentic, (low, high))
    if not has_all_stages(weights):
        return Aggregate(agentic, (low, high), None, (0.0, 100.0))
    task_low, task_high = _bounds_of_part(task, "task")
    overall_score = None
    if agentic is not None and task is not None:
        overall_score = overall(agentic, task, digits)
    return Aggregate(
        agentic=agentic,
        agentic_bounds=(low, high),
        overall=overall_score,
        overall_bounds=(overall(low, task_low, digits), overall(high, task_high, digits)),
    )


def _check_weights(weights: Mapping[str, float], stages: Iterable[str]) -> None:
    """ValueError for a stage without a weight, a weight that is not positive, or no weights."""
    unknown = [stage for stage in stages if stage not in weights]
    if unknown:
        raise ValueError(f"no weight for {', '.join(unknown)}")
    for stage, weight in weights.items():
        if not (math.isfinite(weight) and weight > 0):
            raise ValueError(f"weight of {stage} is {weight!r}, not a positive number")
    if not weights:
        raise ValueError("no weights")


def _agentic(
    scores: Mapping[str, float | None],
    weights: Mapping[str, float],
    missing: Missing,
    digits: int | None,
) -> float | None:
    """Weighted mean of the stages; None if none is scored."""
    if all(score is None for score in scores.values()):
        return None
    counted = [
        (weights[stage], score or 0.0)
        for stage, score in scores.items()
        if score is not None or missing == "zero"
    ]
    if digits is None:
        return _mean(counted)
    return round(_mean_in_order(counted), digits)


def _stage_bounds(stage: str, score: float | None, bounds: Mapping[str, Bounds]) -> Bounds:
    """The bounds given for a stage; without any, its score or [0, 1]."""
    if stage in bounds:
        return _widen_to(score, _checked_bounds(bounds[stage], stage))
    return UNKNOWN_BOUNDS if score is None else (score, score)


def overall(agentic: float, task: float, digits: int | None = None) -> float:
    """Overall = 100 (0.5 Agentic + 0.5 Task), in [0, 100].

    `digits`: decimals of the mean before it is multiplied by 100.
    """
    mean = 0.5 * _check_unit(agentic, "agentic") + 0.5 * _check_unit(task, "task")
    if digits is not None:
        mean = round(mean, digits)
    return 100.0 * mean


def apply_breach(
    stage_scores: Mapping[str, float | None],
    stage_bounds: Mapping[str, Bounds],
    task: float | None,
    policy: Breach,
    breach_stage: Stage | None,
) -> Zeroed:
    """Scores of a disqualified run.

    `zero-all` (the paper): every stage and Task are 0. `from-stage`: the breach's stage, every
    later stage and Task are 0; earlier stages keep their scores. An unknown breach stage falls back
    to `zero-all`. Groups of criteria of a user's own rubric are not stages of the benchmark and
    keep their scores.
    """
    first = 0
    if policy == "from-stage" and breach_stage is not None:
        first = STAGES.index(breach_stage)
    zeroed = tuple(stage for stage in STAGES[first:] if stage in stage_scores)
    scores: dict[str, float | None] = {**stage_scores, **dict.fromkeys(zeroed, 0.0)}
    bounds: dict[str, Bounds] = {**stage_bounds, **dict.fromkeys(zeroed, (0.0, 0.0))}
    return Zeroed(scores=scores, bounds=bounds, task=0.0, stages=zeroed)
