"""Synthesis: `<case>/sct.nii.gz`, a finite volume of the input's shape (benchmark.md section 4; no
rule is published)."""

from __future__ import annotations

from pathlib import Path

from ...tracks import PLAN_ITEMS, score_bands
from .case_checks import Fact, TrackCheck
from .image_units import unit_problem
from .nifti import affine_differs, volume_head, volume_stats
from .submission import Submission
from .track import CheckedTrack

NAME = "sct.nii.gz"


def check(submission: Submission) -> TrackCheck:
    """The volume of every case; a wrong affine or a constant volume is a fact without effect on the
    format flag."""

    def inspect(work: Submission, case: str, path: Path) -> list[Fact]:
        head = volume_head(path, work.root)
        facts = []
        reference = work.public.volume(case) if work.public is not None else None
        if reference is not None and head.shape != reference.shape:
            facts.append(
                Fact(
                    "shape",
                    f"{NAME} has shape {head.shape}, the input {reference.shape}",
                    case,
                    NAME,
                )
            )
        if reference is not None and affine_differs(head.affine, reference.affine):
            facts.append(Fact("affine", f"{NAME} has another affine than the input", case, NAME))
        output_format = work.run.output_format
        if output_format.dtype not in (None, head.dtype.name):
            facts.append(
                Fact(
                    "dtype",
                    f"{NAME} has type {head.dtype.name}, not {output_format.dtype}",
                    case,
                    NAME,
                    forgiven=True,
                )
            )
        if head.axes != 3:
            facts.append(Fact("demand", f"{NAME} has {head.axes} axes", case, NAME))
        stats = volume_stats(path, work.root, head)
        if stats.finite:
            work.measure(case, mean=stats.mean, min=stats.low, max=stats.high)
        if not stats.finite:
            facts.append(Fact("not_finite", f"{NAME} holds NaN or infinity", case, NAME))
        elif stats.low == stats.high:
            facts.append(Fact("constant", f"{NAME} is {stats.low:g} everywhere", case, NAME))
        elif wrong := unit_problem(
            output_format, NAME, float(stats.low), float(stats.high), holds_air=True
        ):
            facts.append(Fact("demand", wrong, case, NAME))
        return facts

    return submission.per_case((NAME,), inspect)


OKAY = 0.95
"""SSIM of the medal `okay`; a run below it counts as failed."""
TRACK = CheckedTrack(
    "synthesis",
    check=check,
    output="images",
    files=(NAME,),
    rubrics=("synthesis",),
    words=("synth", "sct"),
    metrics=("ssim", "psnr"),
    fails_below=OKAY,
    bands=score_bands(0.98, OKAY),
    levels=("mean", "std", "max"),
    items=PLAN_ITEMS,
)
