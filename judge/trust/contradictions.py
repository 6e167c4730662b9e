"""Verdicts that observable facts speak against; the verdict stands, the contradiction is shown beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...trajectories.features import features
from ...trajectories.models import Run, Segmentation, Stage
from ...trajectories.turn_features import TurnFeatures
from ..checks import OutputCheck
from ..scorecard import Contradiction, CriterionResult


def find_contradictions(
    run: Run,
    segmentation: Segmentation,
    results: Mapping[Stage, Sequence[CriterionResult]],
    check: OutputCheck | None = None,
) -> tuple[Contradiction, ...]:
    """One line for each judged item that a fact of the run denies; credited and unscored items claim nothing."""
    facts = features(run)
    met = {
        r.id: r
        for stage in results.values()
        for r in stage
        if r.status == "scored" and r.value is not None and r.value > 0
    }
    report = run.track == "report_generation"
    found: list[Contradiction] = []
    for rule in (_plan, _environment, _model, _pilot):
        found.extend(rule(run, facts, met, report))
    return tuple(found)


def _plan(
    run: Run, facts: Sequence[TurnFeatures], met: Mapping[str, CriterionResult], report: bool
) -> Iterator[Contradiction]:
    tried = tuple(f.turn for f in facts if f.writes_plan)
    if "S1a" in met and not run.plan.exists:
        fact = "no plan.md came with the run and no execution that wrote one succeeded"
        yield Contradiction(criterion="S1a", fact=fact, turns=tried)
    image = "S1i" if report else "S1e"
    if run.track != "vqa" and image in met and not run.plan.image_exists:
        yield Contradiction(criterion=image, fact="no plan.png came with the run and no execution wrote one")


def _environment(
    run: Run, facts: Sequence[TurnFeatures], met: Mapping[str, CriterionResult], report: bool
) -> Iterator[Contradiction]:
    if "S2c" in met and not report and facts and not any(_ran(f) for f in facts):
        yield Contradiction(
            criterion="S2c", fact="no execution of the run succeeded", turns=tuple(f.turn for f in facts if f.failed)
        )


def _model(
    run: Run, facts: Sequence[TurnFeatures], met: Mapping[str, CriterionResult], report: bool
) -> Iterator[Contradiction]:
    if "S2e" in met and not report and not any(_ran(f) and _applies(f) for f in facts):
        fact = "no successful execution loads or applies a model or method"
        yield Contradiction(criterion="S2e", fact=fact, turns=tuple(f.turn for f in facts if _applies(f)))


def _pilot(
    run: Run, facts: Sequence[TurnFeatures], met: Mapping[str, CriterionResult], report: bool
) -> Iterator[Contradiction]:
    name = "S3a" if report else "S3"
    if name not in met:
        return
    batch = next((f.turn for f in facts if f.cases_scope == "all" and (f.writes_outputs or f.forward_pass)), None)
    before = [f for f in facts if batch is None or f.turn < batch]
    if not any(_ran(f) and (_applies(f) or f.inspects_values) for f in before):
        where = "anywhere in the run" if batch is None else f"before the full run of turn {batch}"
        fact = f"no successful execution of the model or method {where}"
        yield Contradiction(criterion=name, fact=fact, turns=() if batch is None else (batch,))


def _applies(f: TurnFeatures) -> bool:
    return f.loads_model or f.forward_pass or f.classical_method or f.writes_outputs


def _ran(f: TurnFeatures) -> bool:
    return f.executed and not (f.failed or f.blocked or f.timed_out or f.unanswered)
