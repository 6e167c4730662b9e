"""Scores as pure functions on plain values: tier credits, requirements, stage means, S4-S5, guards,
aggregation.

Nothing here reads a file or a run. Stage scores, Agentic and Task are in [0, 1], Overall in [0,
100]. Unknown is None, never 0, and every score has bounds: its worst and best case over what is
unknown. A number outside its range, or NaN, is a ValueError, because it can only come from a fault
upstream.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ...rubrics.model import Criterion, StageRubric, has_all_stages
from ...trajectories.models import STAGES, Stage, Tier
from ..card.stage_results import CriterionResult

Missing = Literal["renormalize", "zero"]
Breach = Literal["zero-all", "from-stage"]
Malformed = Literal["formula", "zero"]
Bounds = tuple[float, float]

UNKNOWN: Bounds = (0.0, 1.0)
"""Bounds of a score about which nothing is known."""

PLACEHOLDER_LIMIT = 0.05
"""Above this share of placeholder answers S4 and S3 are capped (benchmark.md sections 3 and 4)."""
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


class Split(NamedTuple):
    """Criteria of a stage: those that need a verdict, and the results that the tier decides."""

    to_judge: tuple[Criterion, ...]
    credited: tuple[CriterionResult, ...]
    not_applicable: tuple[CriterionResult, ...]


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


def unit(value: float, what: str) -> float:
    """`value` as a float in [0, 1]; ValueError for anything else, NaN included."""
    number = float(value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{what} is {value!r}, not in [0, 1]")
    return number


def _interval(bounds: Bounds, what: str) -> Bounds:
    low, high = unit(bounds[0], f"lower bound of {what}"), unit(bounds[1], f"upper bound of {what}")
    if low > high:
        raise ValueError(f"bounds of {what} are reversed: {low} > {high}")
    return low, high


def _mean(pairs: Iterable[tuple[float, float]]) -> float:
    """Weighted mean of (weight, value); exactly rounded sums make it independent of the order."""
    pairs = list(pairs)
    total = math.fsum(weight for weight, _ in pairs)
    return min(1.0, math.fsum(weight * value for weight, value in pairs) / total)


def _in_order(pairs: Sequence[tuple[float, float]]) -> float:
    """The same, summed one after the other: the last bit decides ties of rounding."""
    total = weighted = 0.0
    for weight, value in pairs:
        total, weighted = total + weight, weighted + weight * value
    return min(1.0, weighted / total)


def _around(score: float | None, bounds: Bounds) -> Bounds:
    """Bounds that hold the score itself, against the last bit of rounding."""
    return bounds if score is None else (min(bounds[0], score), max(bounds[1], score))


# Criteria of S1-S3
def split_criteria(stage: StageRubric, tier: Tier | None) -> Split:
    """What the tier decides by itself, and what is left for a judge (benchmark.md section 3,
    labels.md).

    An item credited in the tier counts 1, also without the plan that it speaks of. An item limited
    to other tiers leaves the denominator. An unknown tier credits nothing and excludes nothing:
    every item is judged, which favours nobody.
    """
    to_judge: list[Criterion] = []
    credited: list[CriterionResult] = []
    outside: list[CriterionResult] = []
    for item in stage.criteria:
        if tier is not None and item.tiers is not None and tier not in item.tiers:
            detail = f"applies to {', '.join(item.tiers)} only"
            outside.append(
                CriterionResult(id=item.id, value=None, status="not_applicable", detail=detail)
            )
        elif tier is not None and tier in item.credit:
            rationale = f"credited in tier {tier}"
            credited.append(
                CriterionResult(id=item.id, value=1.0, status="credited", rationale=rationale)
            )
        else:
            to_judge.append(item)
    return Split(tuple(to_judge), tuple(credited), tuple(outside))


def apply_requires(
    results: Sequence[CriterionResult], criteria: Sequence[Criterion]
) -> tuple[CriterionResult, ...]:
    """The results with every item at 0 whose required item is 0 (paper table 7: "0 without a
    plan").

    Chains are followed. The judged value stays readable in the rationale. Credited and inapplicable
    items are left as they are. An unscored or presumed item becomes a scored 0 too, as no verdict
    could change it. A requirement that is itself unscored or presumed changes no value here;
    `stage_score` lowers the worst case for it.
    """
    by_id = _by_id(results, criteria)
    needs = {item.id: item.requires for item in criteria}
    done: dict[str, CriterionResult] = {}

    def settle(name: str, path: tuple[str, ...]) -> CriterionResult | None:
        if name in done:
            return done[name]
        if name in path:
            raise ValueError(
                f"criteria require each other in a circle: {' -> '.join((*path, name))}"
            )
        result = by_id.get(name)
        if result is None:
            return None
        if result.status in ("scored", "presumed", "unscored"):
            for other in needs[name]:
                required = settle(other, (*path, name))
                if (
                    required is not None
                    and required.value == 0
                    and required.status in ("scored", "credited")
                ):
                    result = _zeroed(result, other)
                    break
        done[name] = result
        return result

    for name in by_id:
        settle(name, ())
    return tuple(done[result.id] for result in results)


def _zeroed(result: CriterionResult, required: str) -> CriterionResult:
    if result.status == "scored" and result.value == 0:
        return result
    was = f"unscored ({result.reason or 'no verdict'})"
    if result.value is not None:
        was = f"{'presumed' if result.status == 'presumed' else 'judged'} {result.value:g}"
    rationale = f"0 because {required} is 0; {was}" + (
        f": {result.rationale}" if result.rationale else ""
    )
    update = {
        "value": 0.0,
        "status": "scored",
        "reason": None,
        "rationale": rationale,
        "detail": "",
    }
    return result.model_copy(update=update)


def _by_id(
    results: Sequence[CriterionResult], criteria: Sequence[Criterion]
) -> dict[str, CriterionResult]:
    known = {item.id for item in criteria}
    found: dict[str, CriterionResult] = {}
    for result in results:
        if result.id not in known:
            raise ValueError(f"result for {result.id}, which is no criterion of the stage")
        if result.id in found:
            raise ValueError(f"two results for {result.id}")
        found[result.id] = result
    return found


def stage_score(
    results: Sequence[CriterionResult],
    criteria: Sequence[Criterion],
    missing: Missing = "renormalize",
    digits: int | None = None,
) -> tuple[float | None, Bounds]:
    """Score of a judged stage and its bounds: the weighted mean over applicable criteria
    (benchmark.md section 3), rounded.

    `results` have been through `apply_requires`. Unscored items (also criteria without any result)
    are left out of the mean (`renormalize`) or count 0 (`zero`). The score is None when no item has
    a verdict: credits alone do not score a stage, else a lite run whose judge failed would get a
    full S1. Only where the tier credits every applicable item is there nothing to judge, and it
    counts. A presumed item counts in the score as its value, under either policy. Bounds: unscored
    and presumed items at 0 and at 1; in the worst case whatever requires one of them is 0 too.
    """
    by_id = _by_id(results, criteria)
    values: dict[str, float | None] = {}
    known: dict[str, float | None] = {}
    fixed: set[str] = set()
    for item in criteria:
        result = by_id.get(item.id)
        if result is None or result.status == "unscored":
            values[item.id] = None
        elif result.status != "not_applicable":
            if result.value is None:
                raise ValueError(f"{item.id} is {result.status} without a value")
            values[item.id] = unit(result.value, item.id)
            if result.status == "credited":
                fixed.add(item.id)
        if item.id in values:
            known[item.id] = (
                None if result is None or result.status == "presumed" else values[item.id]
            )
    if not values:
        return None, UNKNOWN
    weight = {item.id: item.weight for item in criteria}
    worst = _worst_case(known, fixed, criteria)
    low = _mean((weight[name], value) for name, value in worst.items())
    high = _mean((weight[name], 1.0 if value is None else value) for name, value in known.items())
    judged = [name for name, value in values.items() if value is not None and name not in fixed]
    if not judged and len(fixed) < len(values):
        return None, (low, high)
    if missing == "zero":
        score = _mean((weight[name], value or 0.0) for name, value in values.items())
    else:
        score = _mean((weight[name], value) for name, value in values.items() if value is not None)
    score = score if digits is None else round(score, digits)
    return score, _around(score, (low, high))


def _worst_case(
    values: Mapping[str, float | None], fixed: set[str], criteria: Sequence[Criterion]
) -> dict[str, float]:
    worst = {name: value or 0.0 for name, value in values.items()}
    needs = {item.id: item.requires for item in criteria}
    doubtful = {name for name, value in values.items() if value is None}
    while True:
        more = {
            name
            for name in worst
            if name not in fixed and name not in doubtful and doubtful.intersection(needs[name])
        }
        if not more:
            return worst
        doubtful |= more
        worst.update(dict.fromkeys(more, 0.0))


def apply_caps(
    score: float | None, bounds: Bounds, caps: Iterable[Cap], unscored_is_cap: bool = False
) -> tuple[float | None, Bounds]:
    """The score and its bounds, none above the lowest cap (benchmark.md section 4, guards on
    answers)."""
    limits = [unit(cap.value, "cap") for cap in caps]
    limit = min(limits, default=1.0)
    low, high = _interval(bounds, "a capped stage")
    if score is None and unscored_is_cap and limits:
        return limit, (limit, limit)
    capped = None if score is None else min(unit(score, "score"), limit)
    return capped, (min(low, limit), min(high, limit))


# S4 and S5
def s4_score(
    completion: float | None,
    validity: float | bool | None,
    caps: Iterable[Cap] = (),
    digits: int | None = None,
) -> float | None:
    """S4 = 0.5 completion + 0.5 validity, then capped (benchmark.md section 4) and rounded; None
    when a part is unknown.

    `validity` is format_valid, or for answers the parse rate in [0, 1].
    """
    low, high = s4_bounds(completion, validity, caps, digits)
    return low if low == high else None


def s4_bounds(
    completion: float | None,
    validity: float | bool | None,
    caps: Iterable[Cap] = (),
    digits: int | None = None,
) -> Bounds:
    """Worst and best S4 over the unknown parts."""
    first = UNKNOWN if completion is None else (unit(completion, "completion"),) * 2
    second = UNKNOWN if validity is None else (unit(validity, "validity"),) * 2
    _, bounds = apply_caps(
        None, (0.5 * first[0] + 0.5 * second[0], 0.5 * first[1] + 0.5 * second[1]), caps
    )
    return bounds if digits is None else (round(bounds[0], digits), round(bounds[1], digits))


def s5_score(
    has_valid_results: bool | None, format_valid: bool | None, malformed: Malformed = "formula"
) -> float | None:
    """S5 = 0.5 has_valid_results + 0.5 format_valid, in {0, 0.5, 1} (benchmark.md section 4); None
    when unknown.

    `malformed="zero"` follows the paper's text instead: a submission with an invalid format scores
    0.
    """
    low, high = s5_bounds(has_valid_results, format_valid, malformed)
    return low if low == high else None


def s5_bounds(
    has_valid_results: bool | None, format_valid: bool | None, malformed: Malformed = "formula"
) -> Bounds:
    """Worst and best S5 over the unknown parts."""

    def score(results: bool, valid: bool) -> float:
        return 0.0 if malformed == "zero" and not valid else 0.5 * results + 0.5 * valid

    results = (False, True) if has_valid_results is None else (has_valid_results,)
    valid = (False, True) if format_valid is None else (format_valid,)
    scores = [score(r, v) for r in results for v in valid]
    return min(scores), max(scores)


def gate_closed(gated: bool, completion: float | None) -> bool | None:
    """Whether the completeness gate zeroes Task and format_valid: completion < 1 on a gated track;
    None if unknown."""
    if not gated:
        return False
    return None if completion is None else unit(completion, "completion") < 1.0


def answers_s4_caps(
    placeholder_rate: float | None,
    model_call_found: bool | None,
    complete: bool | None,
    accuracy: float | None,
) -> tuple[Cap, ...]:
    """Guards on S4 of answers (benchmark.md section 4): placeholders .2, no model call .3, real but
    broken .5.

    A guard whose fact is unknown is not in force.
    """
    caps = []
    if (
        placeholder_rate is not None
        and unit(placeholder_rate, "placeholder rate") > PLACEHOLDER_LIMIT
    ):
        caps.append(
            Cap(0.2, f"placeholder rate {placeholder_rate:.2f} is above {PLACEHOLDER_LIMIT}")
        )
    if model_call_found is False:
        caps.append(Cap(0.3, "no model call in a successful execution"))
    if real_but_broken(model_call_found, complete, accuracy):
        caps.append(
            Cap(
                0.5,
                f"real but broken: complete, accuracy {accuracy:.3f} is below {BROKEN_ACCURACY}",
            )
        )
    return tuple(caps)


def real_but_broken(
    model_call_found: bool | None, complete: bool | None, accuracy: float | None
) -> bool:
    """Whether a model really answered everything, and next to nothing is right (benchmark.md
    section 4, vqa guards)."""
    return bool(
        complete
        and model_call_found
        and accuracy is not None
        and unit(accuracy, "accuracy") < BROKEN_ACCURACY
    )


def answers_stage_caps(
    placeholder_rate: float | None,
    answers: int | None,
    artefact_missing: bool = False,
    slipped_through: bool = True,
) -> dict[Stage, Cap]:
    """Caps on S1 and S3 of answers (benchmark.md sections 3 and 4), the lowest for each stage.

    S1 and S3 at .2 for placeholder runs (half of the answers; `heuristic:` is one) and empty ones
    (no answer); S3 at .2 when more than 5 % placeholders slipped through (`slipped_through`), and
    at .5 when an artefact that the task asks for is absent. That no model was called caps S4 alone.
    """
    caps: dict[Stage, Cap] = {}
    if artefact_missing:
        caps["S3"] = Cap(
            0.5, "the post-processing or calibration artefact that the task asks for is absent"
        )
    if (
        slipped_through
        and placeholder_rate is not None
        and unit(placeholder_rate, "placeholder rate") > PLACEHOLDER_LIMIT
    ):
        caps["S3"] = Cap(0.2, f"placeholder answers slipped through ({placeholder_rate:.0%})")
    why = None
    if answers == 0:
        why = "empty run: no answer delivered"
    elif placeholder_rate is not None and placeholder_rate >= PLACEHOLDER_DOMINATED:
        why = f"placeholder run: {placeholder_rate:.0%} of the answers"
    if why is not None:
        caps["S1"] = caps["S3"] = Cap(0.2, why)
    return caps


# Runs
def aggregate(
    stage_scores: Mapping[str, float | None],
    stage_bounds: Mapping[str, Bounds],
    weights: Mapping[str, float],
    task: float | None,
    missing: Missing = "renormalize",
    digits: int | None = None,
) -> Aggregate:
    """Agentic = weighted stage mean; Overall = 100 (0.5 Agentic + 0.5 Task) (benchmark.md sections
    1 and 5).

    `renormalize` rescales the weights of the scored stages, `zero` counts an unscored stage 0; with
    no scored stage Agentic is None either way. Overall is None without Task, and with a rubric of
    other stages than the benchmark's five. Bounds let an unscored stage and an unknown Task span
    [0, 1]. With `digits`, Agentic and then Overall / 100 are rounded, summed from the first stage
    on as the harness does.
    """
    unknown = [stage for stage in stage_scores if stage not in weights]
    if unknown:
        raise ValueError(f"no weight for {', '.join(unknown)}")
    for stage, weight in weights.items():
        if not (math.isfinite(weight) and weight > 0):
            raise ValueError(f"weight of {stage} is {weight!r}, not a positive number")
    if not weights:
        raise ValueError("no weights")
    scores = {
        stage: None if stage_scores.get(stage) is None else unit(stage_scores[stage] or 0.0, stage)
        for stage in weights
    }
    intervals = {stage: _stage_interval(stage, scores[stage], stage_bounds) for stage in weights}
    agentic = None
    if any(score is not None for score in scores.values()):
        counted = [
            (weights[stage], score or 0.0)
            for stage, score in scores.items()
            if score is not None or missing == "zero"
        ]
        agentic = _mean(counted) if digits is None else round(_in_order(counted), digits)
    bounds = _around(
        agentic,
        (
            _mean((weights[stage], low) for stage, (low, _) in intervals.items()),
            _mean((weights[stage], high) for stage, (_, high) in intervals.items()),
        ),
    )
    task_low, task_high = UNKNOWN if task is None else (unit(task, "task"),) * 2
    if not has_all_stages(weights):
        return Aggregate(agentic, bounds, None, (0.0, 100.0))
    return Aggregate(
        agentic=agentic,
        agentic_bounds=bounds,
        overall=None if agentic is None or task is None else overall(agentic, task, digits),
        overall_bounds=(
            overall(bounds[0], task_low, digits),
            overall(bounds[1], task_high, digits),
        ),
    )


def _stage_interval(stage: str, score: float | None, bounds: Mapping[str, Bounds]) -> Bounds:
    if stage in bounds:
        return _around(score, _interval(bounds[stage], stage))
    return UNKNOWN if score is None else (score, score)


def overall(agentic: float, task: float, digits: int | None = None) -> float:
    """Overall in [0, 100] = 100 (0.5 Agentic + 0.5 Task) (benchmark.md section 1); `digits`:
    decimals before the 100."""
    share = 0.5 * unit(agentic, "agentic") + 0.5 * unit(task, "task")
    return 100.0 * (share if digits is None else round(share, digits))


def apply_breach(
    stage_scores: Mapping[str, float | None],
    stage_bounds: Mapping[str, Bounds],
    task: float | None,
    policy: Breach,
    breach_stage: Stage | None,
) -> Zeroed:
    """Scores of a disqualified run (benchmark.md section 4, isolation).

    `zero-all` (the paper): every stage and Task are 0. `from-stage`: the breach's stage, every
    later stage and Task are 0; earlier stages keep their scores. An unknown breach stage falls back
    to `zero-all`. Groups of a rubric of one's own are no stages of the benchmark and keep their
    scores.
    """
    first = 0 if policy == "zero-all" or breach_stage is None else STAGES.index(breach_stage)
    zeroed = tuple(stage for stage in STAGES[first:] if stage in stage_scores)
    scores: dict[str, float | None] = {**stage_scores, **dict.fromkeys(zeroed, 0.0)}
    bounds: dict[str, Bounds] = {**stage_bounds, **dict.fromkeys(zeroed, (0.0, 0.0))}
    return Zeroed(scores=scores, bounds=bounds, task=0.0, stages=zeroed)
