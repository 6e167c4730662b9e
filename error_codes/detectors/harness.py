"""The second taxonomy (`harness`): one code per failed step, from the same episodes and facts.

E1 hallucination, E2 resource (time included), E3 logic, E4 code, E5 format. The heuristics on the
metric follow the public harness and read the score: they are marked `from_score`, as they are
circular wherever the score is explained.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...trajectories.reading.json_bytes import number
from ..context import CodeContext
from ..episodes import short_cause
from ..registry import Finding, detector
from .breaches import invented_name
from .failures import REPEATED, harness_code, lost_outputs

GOOD_ENOUGH = 0.3
"""Metric from which a valid run has no failed step (or from medal "okay" on)."""


def metric(ctx: CodeContext) -> float | None:
    """The track's main metric, else the task score; None if unknown."""
    report = ctx.run.report
    score = ctx.facts.task_score if ctx.facts is not None else None
    if score is None and report is not None:
        score = report.task_score
    if report is None or ctx.track is None:
        return score
    return ctx.track.main_metric(report.metrics, score)


@detector("near_zero_metric", code="E3", stage="S4", independence="from_score")
def near_zero_metric(ctx: CodeContext) -> Iterable[Finding]:
    """The outputs are valid and the metric is near zero, as the score shows.

    Something in the pipeline is then wrong.
    """
    limit, value = ctx.track.near_zero if ctx.track is not None else None, metric(ctx)
    if limit is not None and value is not None and value < limit and _complete(ctx):
        why = f"Valid outputs reach a metric of {value:.2f} only."
        yield Finding((ctx.final_write or ctx.last,), why, 0.8)


@detector("step_failure", code="E4", stage="S4", independence="from_trace", taxonomy="harness")
def step_failure(ctx: CodeContext) -> Iterable[Finding]:
    """A step failed three times or was never overcome, through the agent's code."""
    return _steps(ctx, resource=False)


@detector("step_resource", code="E2", stage="S2", independence="from_trace", taxonomy="harness")
def step_resource(ctx: CodeContext) -> Iterable[Finding]:
    """A step failed three times or was never overcome for lack of resources or access.

    The causes are memory, time, downloads, packages and data access.
    """
    return _steps(ctx, resource=True)


def _steps(ctx: CodeContext, resource: bool) -> Iterable[Finding]:
    lost = lost_outputs(ctx)
    for episode in ctx.episodes:
        if (harness_code(episode) == "E2") != resource:
            continue
        if episode.attempts < REPEATED and (episode.resolved or not lost):
            continue
        times = f"{episode.attempts} times" if episode.attempts > 1 else "once"
        end = "" if episode.resolved else " and was not overcome"
        # A step that was never overcome causes the gaps in the files, so it goes before their
        # format.
        confidence = 0.92 if lost and not episode.resolved else 0.75
        why = f"The step failed {times}{end} ({short_cause(episode.cause)})."
        yield Finding(episode.turns, why, confidence, episode.stage)


@detector(
    "output_format_invalid", code="E5", stage="S4", independence="from_files", taxonomy="harness"
)
def output_format_invalid(ctx: CodeContext) -> Iterable[Finding]:
    """The outputs are complete or not, and their format is invalid."""
    if ctx.facts is None or not ctx.last or ctx.facts.real_but_broken:
        return
    if ctx.facts.format_valid is False:
        yield Finding((ctx.final_write or ctx.last,), "The format of the outputs is invalid.", 0.9)


@detector(
    "submission_invalid", code="E5", stage="S5", independence="from_files", taxonomy="harness"
)
def submission_invalid(ctx: CodeContext) -> Iterable[Finding]:
    """The submission is incomplete or its format is invalid."""
    if not ctx.last or ctx.facts is None or ctx.facts.real_but_broken:
        return
    report = ctx.run.report
    stated = report is not None and report.submission_format_valid is False
    if stated or (ctx.facts.completion is not None and ctx.facts.completion < 1):
        yield Finding((ctx.last,), "The submission is incomplete or invalid.", 0.9)


@detector("near_zero_step", code="E3", stage="S4", independence="from_score", taxonomy="harness")
def near_zero_step(ctx: CodeContext) -> Iterable[Finding]:
    """As `near_zero_metric`, but also if the answers are malformed.

    That a model answered all and failed goes before the form of its answers
    (AutoMedBench/AutoMedBench, branch eval_vqa, failure_classifier.py:97).
    """
    if ctx.facts is not None and ctx.facts.real_but_broken and ctx.last:
        why = "A model answered everything, and next to nothing is right."
        return (Finding((ctx.final_write or ctx.last,), why, 0.8),)
    if ctx.track is not None and ctx.track.weak:
        return _weak(ctx, ctx.track.weak)
    return near_zero_metric(ctx)


def _weak(ctx: CodeContext, limits: Mapping[str, float]) -> Iterable[Finding]:
    """Complete, valid outputs of which every metric is below its limit."""
    metrics = ctx.run.report.metrics if ctx.run.report is not None else {}
    values = {name: number(metrics.get(name)) for name in limits}
    weak = all(value is not None and value < limits[name] for name, value in values.items())
    if weak and _complete(ctx):
        text = ", ".join(f"{name} {value:.2f}" for name, value in values.items())
        yield Finding((ctx.final_write or ctx.last,), f"Valid outputs are weak: {text}.", 0.8)


def _complete(ctx: CodeContext) -> bool:
    """Whether every case has an output, and all are valid."""
    if not ctx.last or ctx.facts is None or not ctx.facts.format_valid:
        return False
    return (ctx.facts.completion or 0) >= 1


@detector("broken_rule_step", code="E1", stage="S1", independence="from_trace", taxonomy="harness")
def broken_rule_step(ctx: CodeContext) -> Iterable[Finding]:
    """A model or package that does not exist was relied on."""
    return invented_name(ctx)


@detector(
    "validation_artefact_missing",
    code="E8",
    stage="S3",
    independence="from_files",
    taxonomy="harness",
)
def validation_artefact_missing(ctx: CodeContext) -> Iterable[Finding]:
    """A calibration or post-processing file that the brief asks for was never delivered.

    The brief asks for it beside the answers.
    """
    if ctx.output != "answers" or ctx.run.outputs.root is None or not ctx.last:
        return
    delivered = {file.name.rsplit("/", 1)[-1] for file in ctx.run.outputs.files}
    lacking = sorted(ctx.run.output_format.validation_files_in(ctx.run.brief) - delivered)
    if lacking:
        pilots = [turn for turn in ctx.model_turns if ctx.stage(turn) == "S3"]
        turn = pilots[0] if pilots else ctx.final_write or ctx.last
        yield Finding((turn,), f"{', '.join(lacking)} was asked for and never written.", 0.85)


def good_run(ctx: CodeContext) -> bool:
    """Whether a run is valid, complete and at least as good as the baseline.

    The harness gives such a run no step failure.
    """
    report, value = ctx.run.report, metric(ctx)
    if not _complete(ctx) or ctx.run.status.disqualified:
        return False
    medal = (report.medal or "").lower() if report is not None else ""
    return medal in ("okay", "good") or (value is not None and value >= GOOD_ENOUGH)
