"""The second taxonomy (`harness`): one code per failed step, derived from the same episodes and
facts.

E1 hallucination, E2 resource (time included), E3 logic, E4 code, E5 format. The heuristics on the
metric follow benchmark.md section 6 and read the score: they are marked `from_score`, circular
wherever the score is explained.
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
"""From this metric on (or medal okay) a valid run has no failed step."""


def metric(ctx: CodeContext) -> float | None:
    """The metric that the heuristics look at: the track's headline, else the task score; None when
    unknown."""
    report = ctx.run.report
    score = ctx.facts.task_score if ctx.facts is not None else None
    if score is None and report is not None:
        score = report.task_score
    return (
        score
        if report is None or ctx.track is None
        else ctx.track.main_metric(report.metrics, score)
    )


@detector("near_zero_metric", code="E3", stage="S4", independence="from_score")
def near_zero_metric(ctx: CodeContext) -> Iterable[Finding]:
    """The outputs are valid and the metric is near zero: something in the pipeline is wrong. Read
    from the score."""
    limit, value = ctx.track.near_zero if ctx.track is not None else None, metric(ctx)
    if limit is not None and value is not None and value < limit and _complete(ctx):
        yield Finding(
            (ctx.final_write or ctx.last,),
            f"Valid outputs reach a metric of {value:.2f} only.",
            0.8,
        )


@detector("step_failure", code="E4", stage="S4", independence="from_trace", taxonomy="harness")
def step_failure(ctx: CodeContext) -> Iterable[Finding]:
    """A step failed three times or was never overcome, through the agent's code."""
    return _steps(ctx, resource=False)


@detector("step_resource", code="E2", stage="S2", independence="from_trace", taxonomy="harness")
def step_resource(ctx: CodeContext) -> Iterable[Finding]:
    """A step failed three times or was never overcome, through memory, time, download, package or
    data access."""
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
        # A step that was never overcome is the cause of what its files lack, so it goes before
        # their format.
        sure = 0.92 if lost and not episode.resolved else 0.75
        yield Finding(
            episode.turns,
            f"The step failed {times}{end} ({short_cause(episode.cause)}).",
            sure,
            episode.stage,
        )


@detector(
    "output_format_invalid", code="E5", stage="S4", independence="from_files", taxonomy="harness"
)
def output_format_invalid(ctx: CodeContext) -> Iterable[Finding]:
    """The outputs are complete or not, and their format is invalid."""
    if (
        ctx.facts is not None
        and ctx.facts.format_valid is False
        and ctx.last
        and not ctx.facts.real_but_broken
    ):
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
    """As `near_zero_metric`, also where answers are malformed: that a model answered all and failed
    goes before their form (AutoMedBench/AutoMedBench, branch eval_vqa, failure_classifier.py:97).
    """
    if ctx.facts is not None and ctx.facts.real_but_broken and ctx.last:
        return (
            Finding(
                (ctx.final_write or ctx.last,),
                "A model answered everything, and next to nothing is right.",
                0.8,
            ),
        )
    return (
        near_zero_metric(ctx)
        if ctx.track is None or not ctx.track.weak
        else _weak(ctx, ctx.track.weak)
    )


def _weak(ctx: CodeContext, limits: Mapping[str, float]) -> Iterable[Finding]:
    said = ctx.run.report.metrics if ctx.run.report is not None else {}
    values = {name: number(said.get(name)) for name in limits}
    if all(
        value is not None and value < limits[name] for name, value in values.items()
    ) and _complete(ctx):
        shown = ", ".join(f"{name} {value:.2f}" for name, value in values.items())
        yield Finding((ctx.final_write or ctx.last,), f"Valid outputs are weak: {shown}.", 0.8)


def _complete(ctx: CodeContext) -> bool:
    """Every case has an output, and all are valid."""
    return bool(
        ctx.last
        and ctx.facts is not None
        and ctx.facts.format_valid
        and (ctx.facts.completion or 0) >= 1
    )


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
    """A calibration or post-processing file that the brief asks for beside the answers was never
    delivered."""
    if ctx.output != "answers" or ctx.run.outputs.root is None or not ctx.last:
        return
    have = {file.name.rsplit("/", 1)[-1] for file in ctx.run.outputs.files}
    lacking = sorted(ctx.run.output_format.validation_files_in(ctx.run.brief) - have)
    if lacking:
        pilot = next(
            (t for t in ctx.model_turns if ctx.stage(t) == "S3"), ctx.final_write or ctx.last
        )
        yield Finding((pilot,), f"{', '.join(lacking)} was asked for and never written.", 0.85)


def good_run(ctx: CodeContext) -> bool:
    """A valid, complete run at or above the baseline: the harness gives it no step failure."""
    report, value = ctx.run.report, metric(ctx)
    if not _complete(ctx) or ctx.run.status.disqualified:
        return False
    medal = (report.medal or "").lower() if report is not None else ""
    return medal in ("okay", "good") or (value is not None and value >= GOOD_ENOUGH)
