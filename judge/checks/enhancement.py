"""Enhancement: `<case>/enhanced.npy`, floating, 2-D, of the expected shape, finite.

By the benchmark's output rules. The expected shape is the input's, except in super-resolution
tasks, where it is not known here and the report is believed. A constant image and one that equals
its input are issues without effect on the format flag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...error_codes.output_facts import OutputIssue
from ...tasks.output_format import OutputFormat
from ...tracks import PLAN_ITEMS, Bands, HarnessBranch
from .case_checks import TrackCheck
from .image_units import unit_problem
from .submission import Submission
from .track import CheckedTrack
from .untrusted_files import Refused, npy_array

if TYPE_CHECKING:
    import numpy.typing as npt

NAME = "enhanced.npy"
_SCANNER_UNITS, _NORMALISED = 50.0, 2.0
"""Images in a scanner's units go beyond the first; one that stays below the second was left divided
by its own range."""
_RESCALING_TASKS = ("super-resolution", "superres", "-sr-", "_sr_", "upsampl")


def check(submission: Submission) -> TrackCheck:
    """Check the array of every case."""
    task = f"-{(submission.run.task or '').lower()}-"
    images = _Images(rescaled=any(word in task for word in _RESCALING_TASKS))
    checked = submission.per_case((NAME,), images.inspect)
    issues = (*checked.issues, *_normalised_images(submission, images.input_peaks))
    return replace(checked, issues=issues, unsure=images.rescaled)


@dataclass
class _Images:
    """The images of a submission as they are inspected, case by case."""

    rescaled: bool
    """Whether the task changes the shape of images."""
    input_peaks: dict[str, float] = field(default_factory=dict)
    """Case -> largest value of its input, where the inputs were given."""

    def inspect(self, submission: Submission, case: str, path: Path) -> list[OutputIssue]:
        """The issues about a case's array."""
        import numpy as np

        array = npy_array(path, submission.root)
        public = submission.public
        expected = None if public is None else public.array_shape(case)
        issues = self._shape_issues(array, expected, case)
        if array.dtype.kind not in "fiub" or array.size == 0 or array.ndim != 2:
            return issues
        finite = bool(np.isfinite(array).all())
        if finite:
            with np.errstate(over="ignore"):  # the sum of values near the largest of their type
                submission.measure(
                    case, mean=array.mean(), std=array.std(), min=array.min(), max=array.max()
                )
        output_format = submission.run.output_format
        dtype = output_format.dtype
        if array.dtype.kind == "f" and dtype not in (None, array.dtype.name):
            text = f"{NAME} has type {array.dtype.name}, not {dtype}"
            issues.append(OutputIssue("dtype", text, case, NAME, forgiven=True))
        if not finite:
            issues.append(OutputIssue("not_finite", f"{NAME} holds NaN or infinity", case, NAME))
            return issues
        issue = _value_issue(array, output_format, case)
        if issue is None and array.dtype.kind == "f" and array.shape == expected:
            source = None if public is None else public.array_path(case)
            if source is not None:
                issue = self._compare_with_input(array, source, case)
        return issues if issue is None else [*issues, issue]

    def _shape_issues(
        self, array: npt.NDArray[Any], expected: tuple[int, ...] | None, case: str
    ) -> list[OutputIssue]:
        issues = []
        if array.dtype.kind != "f":
            text = f"{NAME} has type {array.dtype}, not a floating one"
            issues.append(OutputIssue("dtype", text, case, NAME))
        if array.ndim != 2 or array.size == 0:
            issues.append(
                OutputIssue("shape", f"{NAME} has shape {array.shape}, not two axes", case, NAME)
            )
        known_shape = None if self.rescaled else expected
        if known_shape is not None and array.ndim == 2 and array.shape != known_shape:
            text = f"{NAME} has shape {array.shape}, the input {expected}"
            issues.append(OutputIssue("shape", text, case, NAME))
        return issues

    def _compare_with_input(
        self, array: npt.NDArray[Any], source: Path, case: str
    ) -> OutputIssue | None:
        """The issue that an image equals its input; records the input's peak."""
        import numpy as np

        try:
            original = npy_array(source, source.parent)
        except Refused:
            return None  # the input is the user's own file: nothing to say about the run
        if original.dtype.kind in "fiu":
            self.input_peaks[case] = float(original.max())
        if bool(np.array_equal(array, original)):
            return OutputIssue("unchanged", f"{NAME} equals its input", case, NAME)
        return None


def _value_issue(
    array: npt.NDArray[Any], output_format: OutputFormat, case: str
) -> OutputIssue | None:
    """The first thing that is wrong with the values of a finite image."""
    low, high = float(array.min()), float(array.max())
    if array.min() == array.max():
        return OutputIssue("constant", f"{NAME} is {float(array.flat[0]):g} everywhere", case, NAME)
    lowest, highest = output_format.low, output_format.high
    has_range = lowest is not None and highest is not None
    if has_range and output_format.leaves_range(low, high):
        text = f"{NAME} runs from {low:.4g} to {high:.4g}, not in [{lowest:g}, {highest:g}]"
        return OutputIssue("values", text, case, NAME, forgiven=True)
    if array.dtype.kind == "f":
        text = unit_problem(output_format, NAME, low, high)
        if text:
            return OutputIssue("demand", text, case, NAME)
    return None


def _normalised_images(submission: Submission, input_peaks: dict[str, float]) -> list[OutputIssue]:
    """Issues about images left in 0..1, if at most half are and their inputs are in scanner units.

    The task must demand Hounsfield units or those of the input. Without the inputs nothing can be
    said: one of them may be stored in 0..1 itself.
    """
    peaks = {case: values["max"] for case, values in submission.measures.items() if "max" in values}
    highest = max(peaks.values(), default=0.0)
    normalised = {
        case: peak
        for case, peak in peaks.items()
        if 0 < peak <= _NORMALISED and input_peaks.get(case, 0.0) >= _SCANNER_UNITS
    }
    if highest < _SCANNER_UNITS or len(normalised) * 2 > len(peaks):
        return []
    if submission.run.output_format.unit not in ("HU", "input"):
        return []
    return [
        OutputIssue(
            "demand", f"{NAME} runs to {peak:.4g} only, others to {highest:.4g}", case, NAME
        )
        for case, peak in normalised.items()
    ]


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
