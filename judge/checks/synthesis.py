"""Synthesis: `<case>/sct.nii.gz`, a finite volume of the input's shape.

The benchmark publishes no rule for this track beyond the name of the file.
"""

from __future__ import annotations

from pathlib import Path

from ...error_codes.output_facts import OutputIssue
from ...tracks import PLAN_ITEMS, score_bands
from .case_checks import TrackCheck
from .image_units import unit_problem
from .nifti import VolumeHead, VolumeStats, affine_differs, volume_head, volume_stats
from .submission import Submission
from .track import CheckedTrack

NAME = "sct.nii.gz"
_OKAY_SSIM = 0.95
"""SSIM of the medal `okay`; a run below it counts as failed."""


def check(submission: Submission) -> TrackCheck:
    """Check the volume of every case.

    A wrong affine or a constant volume is an issue without effect on the format flag.
    """
    return submission.per_case((NAME,), _inspect)


def _inspect(submission: Submission, case: str, path: Path) -> list[OutputIssue]:
    head = volume_head(path, submission.root)
    issues = _header_issues(submission, case, head)
    stats = volume_stats(path, submission.root, head)
    if stats.finite:
        submission.measure(case, mean=stats.mean, min=stats.low, max=stats.high)
    issue = _value_issue(submission, case, stats)
    return issues if issue is None else [*issues, issue]


def _header_issues(submission: Submission, case: str, head: VolumeHead) -> list[OutputIssue]:
    """What is wrong with shape, affine and type."""
    issues = []
    reference = submission.reference_volume(case)
    if reference is not None and head.shape != reference.shape:
        text = f"{NAME} has shape {head.shape}, the input {reference.shape}"
        issues.append(OutputIssue("shape", text, case, NAME))
    if reference is not None and affine_differs(head.affine, reference.affine):
        issues.append(
            OutputIssue("affine", f"{NAME} has another affine than the input", case, NAME)
        )
    dtype = submission.run.output_format.dtype
    if dtype not in (None, head.dtype.name):
        text = f"{NAME} has type {head.dtype.name}, not {dtype}"
        issues.append(OutputIssue("dtype", text, case, NAME, forgiven=True))
    if head.axes != 3:
        issues.append(OutputIssue("demand", f"{NAME} has {head.axes} axes", case, NAME))
    return issues


def _value_issue(submission: Submission, case: str, stats: VolumeStats) -> OutputIssue | None:
    """The first thing that is wrong with the values."""
    if not stats.finite:
        return OutputIssue("not_finite", f"{NAME} holds NaN or infinity", case, NAME)
    if stats.low == stats.high:
        return OutputIssue("constant", f"{NAME} is {stats.low:g} everywhere", case, NAME)
    text = unit_problem(
        submission.run.output_format, NAME, float(stats.low), float(stats.high), holds_air=True
    )
    return OutputIssue("demand", text, case, NAME) if text else None


TRACK = CheckedTrack(
    "synthesis",
    check=check,
    output="images",
    files=(NAME,),
    rubrics=("synthesis",),
    words=("synth", "sct"),
    metrics=("ssim", "psnr"),
    fails_below=_OKAY_SSIM,
    bands=score_bands(0.98, _OKAY_SSIM),
    levels=("mean", "std", "max"),
    items=PLAN_ITEMS,
)
