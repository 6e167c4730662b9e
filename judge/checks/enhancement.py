"""Enhancement: `<case>/enhanced.npy`, floating, 2-D, of the expected shape, finite (benchmark.md
section 4).

The expected shape is the input's, except in super-resolution tasks, where it is not known here and
the report's word stands. A constant image and one that equals its input are facts without effect on
the format flag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ...tracks import PLAN_ITEMS, Bands, HarnessBranch
from .case_checks import Fact, TrackCheck
from .image_units import unit_problem
from .submission import Submission
from .track import CheckedTrack
from .untrusted_files import Refused, npy_array

NAME = "enhanced.npy"
UNITS, NORMALISED = 50.0, 2.0
"""Images in a scanner's units go beyond the first; one that stays below the second was left divided
by its own range."""
_RESCALING = ("super-resolution", "superres", "-sr-", "_sr_", "upsampl")


def check(submission: Submission) -> TrackCheck:
    """The array of every case."""
    import numpy as np

    task = f"-{(submission.run.task or '').lower()}-"
    inputs: dict[str, float] = {}
    rescaled = any(word in task for word in _RESCALING)

    def inspect(work: Submission, case: str, path: Path) -> list[Fact]:
        array = npy_array(path, work.root)
        facts = []
        if array.dtype.kind != "f":
            facts.append(
                Fact("dtype", f"{NAME} has type {array.dtype}, not a floating one", case, NAME)
            )
        if array.ndim != 2 or array.size == 0:
            facts.append(Fact("shape", f"{NAME} has shape {array.shape}, not two axes", case, NAME))
        source = work.public.array_path(case) if work.public is not None else None
        expected = work.public.array_shape(case) if work.public is not None else None
        if expected is not None and not rescaled and array.shape != expected and array.ndim == 2:
            facts.append(
                Fact("shape", f"{NAME} has shape {array.shape}, the input {expected}", case, NAME)
            )
        if array.dtype.kind not in "fiub" or array.size == 0 or array.ndim != 2:
            return facts
        if bool(np.isfinite(array).all()):
            with np.errstate(over="ignore"):  # the sum of values near the largest of their type
                work.measure(
                    case, mean=array.mean(), std=array.std(), min=array.min(), max=array.max()
                )
        output_format = work.run.output_format
        if array.dtype.kind == "f" and output_format.dtype not in (None, array.dtype.name):
            facts.append(
                Fact(
                    "dtype",
                    f"{NAME} has type {array.dtype.name}, not {output_format.dtype}",
                    case,
                    NAME,
                    forgiven=True,
                )
            )
        if array.dtype.kind == "f" and not bool(np.isfinite(array).all()):
            facts.append(Fact("not_finite", f"{NAME} holds NaN or infinity", case, NAME))
        elif array.min() == array.max():
            facts.append(
                Fact("constant", f"{NAME} is {float(array.flat[0]):g} everywhere", case, NAME)
            )
        elif (
            output_format.low is not None
            and output_format.high is not None
            and output_format.leaves_range(float(array.min()), float(array.max()))
        ):
            text = (
                f"{NAME} runs from {array.min():.4g} to {array.max():.4g}, not in"
                f" [{output_format.low:g}, {output_format.high:g}]"
            )
            facts.append(Fact("values", text, case, NAME, forgiven=True))
        elif array.dtype.kind == "f" and (
            wrong := unit_problem(output_format, NAME, float(array.min()), float(array.max()))
        ):
            facts.append(Fact("demand", wrong, case, NAME))
        elif source is not None and array.shape == expected and array.dtype.kind == "f":
            try:
                given = npy_array(source, source.parent)
                if given.dtype.kind in "fiu":
                    inputs[case] = float(given.max())
                if bool(np.array_equal(array, given)):
                    facts.append(Fact("unchanged", f"{NAME} equals its input", case, NAME))
            except Refused:
                pass  # the reference is the user's own file: nothing to say about the run
        return facts

    checked = submission.per_case((NAME,), inspect)
    return replace(
        checked, facts=(*checked.facts, *_normalised(submission, inputs)), unsure=rescaled
    )


def _normalised(submission: Submission, inputs: dict[str, float]) -> list[Fact]:
    """Up to half of the images stay in 0..1 where the others, and their own inputs, are in the
    units that the brief keeps.

    Without the inputs nothing is said: one of them may be stored in 0..1 itself.
    """
    peaks = {case: values["max"] for case, values in submission.measures.items() if "max" in values}
    top = max(peaks.values(), default=0.0)
    low = {
        c: peak
        for c, peak in peaks.items()
        if 0 < peak <= NORMALISED and inputs.get(c, 0.0) >= UNITS
    }
    if (
        top < UNITS
        or len(low) * 2 > len(peaks)
        or submission.run.output_format.unit not in ("HU", "input")
    ):
        return []
    text = f"{NAME} runs to {{:.4g}} only, others to {top:.4g}"
    return [Fact("demand", text.format(peak), case, NAME) for case, peak in low.items()]


BANDS: Mapping[str, Bands] = {
    "ldct": {
        "A": {"mean_psnr": 42.798, "mean_ssim": 0.9863},
        "B": {"mean_psnr": 40.798, "mean_ssim": 0.9463},
        "C": {"mean_psnr": 38.798, "mean_ssim": 0.9163},
    },
    "mri-sr": {
        "A": {"mean_psnr": 25.599, "mean_ssim": 0.6332},
        "B": {"mean_psnr": 23.599, "mean_ssim": 0.5932},
        "C": {"mean_psnr": 21.599, "mean_ssim": 0.5632},
    },
}
"""dB and SSIM around classical and learned baselines (branch eval_image_enhancement,
<task>/baseline_bands.json)."""


TRACK = CheckedTrack(
    "enhancement",
    check=check,
    output="images",
    files=(NAME,),
    rubrics=("enhancement",),
    words=("denois", "enhanc", "super-resolution", "ldct", "-sr-"),
    counts_valid=True,
    branch=HarnessBranch(
        missing="renormalize", breach_turns=(0, 0, 0), judged_digits=4, s4_digits=4
    ),
    metrics=("ssim", "psnr"),
    levels=("mean", "std"),
    bands=BANDS,
    items=PLAN_ITEMS,
)
