"""Synthesis: `<case>/sct.nii.gz`, a finite volume of the input's shape.

benchmark.md section 4; the benchmark publishes no rule for it.
"""

from __future__ import annotations

from pathlib import Path

from ...tracks import PLAN_ITEMS, score_bands
from .case_checks import Fact, TrackCheck
from .image_units import unit_problem
from .nifti import VolumeHead, VolumeStats, affine_differs, volume_head, volume_stats
from .submission import Submission
from .track import CheckedTrack

NAME = "sct.nii.gz"
_OKAY_SSIM = 0.95
"""SSIM of the medal `okay`; a run below it counts as failed."""


def check(submission: Submission) -> TrackCheck:
    """Check the volume of every case.

    A wrong affine or a constant volume is a fact without effect on the format flag.
    """
    return submission.per_case((NAME,), _inspect)


def _inspect(submission: Submission, case: str, path: Path) -> list[Fact]:
    head = volume_head(path, submission.root)
    facts = _header_facts(submission, case, head)
    stats = volume_stats(path, submission.root, head)
    if stats.finite:
        submission.measure(case, mean=stats.mean, min=stats.low, max=stats.high)
    fact = _value_fact(submission, case, stats)
    return facts if fact is None else [*facts, fact]


def _header_facts(submission: Submission, case: str, head: VolumeHead) -> list[Fact]:
    """What is wrong with shape, affine and type."""
    facts = []
    reference = None if submission.public is None else submission.public.volume(case)
    if reference is not None and head.shape != reference.shape:
        text = f"{NAME} has shape {head.shape}, the input {reference.shape}"
        facts.append(Fact("shape", text, case, NAME))
    if reference is not None and affine_differs(head.affine, reference.affine):
        facts.append(Fact("affine", f"{NAME} has another affine than the input", case, NAME))
    dtype = submission.run.output_format.dtype
    if dtype not in (None, head.dtype.name):
        text = f"{NAME} has type {head.dtype.name}, not {dtype}"
        facts.append(Fact("dtype", text, case, NAME, forgiven=True))
    if head.axes != 3:
        facts.append(Fact("demand", f"{NAME} has {head.axes} axes", case, NAME))
    return facts


def _value_fact(submission: Submission, case: str, stats: VolumeStats) -> Fact | None:
    """The first thing that is wrong with the values."""
    if not stats.finite:
        return Fact("not_finite", f"{NAME} holds NaN or infinity", case, NAME)
    if stats.low == stats.high:
        return Fact("constant", f"{NAME} is {stats.low:g} everywhere", case, NAME)
    text = unit_problem(
        submission.run.output_format, NAME, float(stats.low), float(stats.high), holds_air=True
    )
    return Fact("demand", text, case, NAME) if text else None


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
