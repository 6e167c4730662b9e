"""Segmentation: `<case>/lesion.nii.gz` (organ.nii.gz is optional), or `<case>/dseg.nii.gz`.

By the benchmark's output rules: binary masks (or integer labels in the allowed set, in dseg.nii.gz)
with the shape of the CT. A wrong affine, an empty mask and a floating type are issues without
effect on the format flag, as the published rule names values and shape only; so is whatever is
wrong with an organ mask, whatever the brief says of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...error_codes.output_facts import IssueKind, OutputIssue
from ...tracks import PLAN_ITEMS, HarnessBranch, score_bands
from ...trajectories.models import Run
from ...trajectories.record.strangers import Stranger
from .case_checks import CaseCheck, TrackCheck
from .csv_table import parse_csv
from .nifti import (
    VolumeHead,
    VolumeStats,
    affine_differs,
    largest_component_share,
    volume_head,
    volume_stats,
    voxel_ml,
)
from .submission import UNDELIVERED_KINDS, Submission
from .track import CheckedTrack
from .untrusted_files import Refused, read_text

_LESION, _ORGAN, _LABEL_MAP = "lesion.nii.gz", "organ.nii.gz", "dseg.nii.gz"
_DECISIONS = "agents_decision.csv"
_PREFIXED_LESIONS = ("liver_lesion.nii.gz", "kidney_lesion.nii.gz", "pancreas_lesion.nii.gz")
_BINARY = frozenset({0, 1})
_ONE_PIECE, _SCATTERED = 0.9, 0.8
"""Share of the voxels in the largest component from which a mask counts as one piece, and below
which it counts as scattered."""
_MIN_CASES = 4
"""Cases from which masks are compared with each other."""


def required(submission: Submission) -> tuple[str, ...]:
    """The file that every case must have.

    lesion.nii.gz; or dseg.nii.gz if the brief, the old task name or the delivered names show a
    multi-class task.
    """
    brief, task = submission.run.brief, submission.run.task or ""
    if "lesion.nii" in brief:
        return (_LESION,)
    names = {file.name for file in submission.run.outputs.files}
    delivers_label_maps = _LABEL_MAP in names and _LESION not in names
    if "dseg.nii" in brief or "feta" in task.lower() or delivers_label_maps:
        return (_LABEL_MAP,)
    return (_LESION,)


def delivered(submission: Submission) -> set[str]:
    """Cases with their required file, or with what the harness's scorer accepts for it."""
    accepted = set(required(submission))
    if submission.rules.prefixed_lesions:
        accepted.update(_PREFIXED_LESIONS)
    return {
        file.case
        for file in submission.run.outputs.files
        if file.case is not None and file.name in accepted
    }


def check(submission: Submission) -> TrackCheck:
    """Check the masks of every case.

    Shapes are compared with the CT if the public inputs are given, else among a case's own masks.
    """
    rules = submission.rules
    files = required(submission)
    multi_class = files == (_LABEL_MAP,)
    masks = _Masks(
        labels=_allowed_labels(submission) if multi_class else _BINARY,
        multi_class=multi_class,
        voxel_kinds="iufbc" if rules.complex_voxels else "iufb",
        rounded=multi_class and rules.rounded_labels,
    )
    undelivered: tuple[IssueKind, ...] = UNDELIVERED_KINDS
    if multi_class and rules.unreadable_is_missing:
        undelivered = (*undelivered, "unreadable")
    checked = submission.per_case(
        files,
        masks.inspect,
        optional=() if multi_class else (_ORGAN,),
        undelivered=undelivered,
    )
    if multi_class and masks.labels is None:
        _add_absent_structures(submission)
    cases = checked.cases
    if rules.prefixed_lesions and not multi_class:
        cases = tuple(_accept_prefixed_lesion(submission, case) for case in cases)
    issues = (
        *checked.issues,
        *_scattered_masks(masks.largest_shares),
        *_absent_labels(masks.case_values, masks.labels),
        *_decision_issues(submission),
    )
    return TrackCheck(cases, issues)


@dataclass
class _Masks:
    """The masks of a submission as they are inspected, case by case."""

    labels: frozenset[int] | None
    """The allowed values; None if they are not known."""
    multi_class: bool
    voxel_kinds: str
    """Numpy kinds of the voxel types that can be read."""
    rounded: bool
    """Whether values are rounded to integers before they are looked at."""
    first_heads: dict[str, VolumeHead] = field(default_factory=dict)
    """Case -> header of its first mask, for the comparison with its other one."""
    case_values: dict[str, frozenset[float]] = field(default_factory=dict)
    """Case -> values in its last mask; cases with none or too many to list are left out."""
    largest_shares: dict[str, dict[str, float]] = field(default_factory=dict)
    """File name -> case -> share of the voxels in the largest component, of valid binary masks."""

    def inspect(self, submission: Submission, case: str, path: Path) -> list[OutputIssue]:
        """The issues about one mask of a case."""
        head = self._head(submission, path)
        reference = submission.reference_volume(case)
        issues = self._geometry_issues(case, path.name, head, reference)
        stats = volume_stats(path, submission.root, head, rounded=self.rounded)
        self._remember_values(case, stats)
        self._measure(submission, case, path.name, head, stats)
        issues += _value_issues(case, path.name, head, stats, self.labels)
        if head.axes not in _allowed_axes(submission.run, reference):
            issues.append(
                OutputIssue("demand", f"{path.name} has {head.axes} axes", case, path.name)
            )
        has_mask = not any(issue.kind in ("values", "not_finite", "empty") for issue in issues)
        if has_mask and self.labels == _BINARY:
            share = largest_component_share(path, head)
            if share is not None:
                self.largest_shares.setdefault(path.name, {})[case] = share
        return issues

    def _head(self, submission: Submission, path: Path) -> VolumeHead:
        """The mask's header; by the harness's rules a type that it cannot load is unreadable."""
        try:
            return volume_head(path, submission.root, self.voxel_kinds)
        except Refused as refused:
            if refused.kind == "dtype" and submission.rules.unreadable_is_missing:
                raise Refused("unreadable", refused.text) from None
            raise

    def _geometry_issues(
        self, case: str, name: str, head: VolumeHead, reference: VolumeHead | None
    ) -> list[OutputIssue]:
        """Shape and affine against the input, else against the case's first mask."""
        if reference is not None:
            return _compare_geometry(case, name, head, reference, "the input")
        first = self.first_heads.setdefault(case, head)
        if first is head:
            return []
        return _compare_geometry(case, name, head, first, "the case's other mask")

    def _remember_values(self, case: str, stats: VolumeStats) -> None:
        self.case_values.pop(case, None)
        if stats.values:
            self.case_values[case] = frozenset(stats.values)

    def _measure(
        self, submission: Submission, case: str, name: str, head: VolumeHead, stats: VolumeStats
    ) -> None:
        """Record the volumes of the mask's structures in ml."""
        if self.multi_class:
            labels = self.labels or {
                int(value) for value in stats.counts if _is_allowed(value, None)
            }
            voxels = {
                f"label_{label}": stats.counts.get(label, 0) for label in sorted(labels) if label
            }
        else:
            voxels = {name.partition(".")[0]: stats.nonzero}
        voxel_volume = voxel_ml(head)
        volumes = {structure: count * voxel_volume for structure, count in voxels.items()}
        submission.measure(case, **volumes)


def _add_absent_structures(submission: Submission) -> None:
    """Record 0 ml for structures that only other cases have, as the task's labels are unknown."""
    structures = sorted({name for volumes in submission.measures.values() for name in volumes})
    for case, volumes in submission.measures.items():
        submission.measure(case, **{name: volumes.get(name, 0.0) for name in structures})


def _allowed_labels(submission: Submission) -> frozenset[int] | None:
    """The labels that the task allows; those of the report if the rules say so and it names them.

    None if neither does.
    """
    report = submission.run.report
    if report is not None and submission.rules.reported_labels:
        reported = report.metrics.get("tissue_labels")
        if isinstance(reported, dict) and all(str(label).isdecimal() for label in reported):
            return frozenset({0, *map(int, reported)})
    return frozenset(submission.run.output_format.labels) or None


def _allowed_axes(run: Run, reference: VolumeHead | None) -> tuple[int, ...]:
    """Numbers of axes that a mask may have: always 3, and those of the input or the task.

    Without either nothing says whether the task is planar, so 2 axes are no fault.
    """
    if reference is not None:
        return 3, reference.axes
    return 3, run.output_format.axes or 2


def _compare_geometry(
    case: str, name: str, head: VolumeHead, reference: VolumeHead, reference_name: str
) -> list[OutputIssue]:
    """Issues about a shape or affine that differs from the reference's."""
    issues = []
    if head.shape != reference.shape:
        text = f"{name} has shape {head.shape}, {reference_name} {reference.shape}"
        issues.append(OutputIssue("shape", text, case, name))
    if affine_differs(head.affine, reference.affine):
        issues.append(
            OutputIssue("affine", f"{name} has another affine than {reference_name}", case, name)
        )
    return issues


def _value_issues(
    case: str, name: str, head: VolumeHead, stats: VolumeStats, labels: frozenset[int] | None
) -> list[OutputIssue]:
    """What is wrong with the type and values of a mask."""
    issues = []
    if head.dtype.kind == "f":
        text = f"{name} has type {head.dtype}, not an integer"
        issues.append(OutputIssue("dtype", text, case, name, forgiven=True))
    if not stats.finite:
        issues.append(OutputIssue("not_finite", f"{name} holds NaN or infinity", case, name))
    elif stats.values is None:
        text = f"{name} holds more than a few dozen values from {stats.low:g} to {stats.high:g}"
        issues.append(OutputIssue("values", text, case, name))
    else:
        wrong = [value for value in stats.values if not _is_allowed(value, labels)]
        if wrong:
            values = ", ".join(f"{value:g}" for value in wrong[:5])
            text = f"{name} holds values outside the allowed set: {values}"
            issues.append(OutputIssue("values", text, case, name))
    if stats.nonzero == 0 and stats.finite:
        issues.append(OutputIssue("empty", f"{name} has no voxel set", case, name, forgiven=True))
    return issues


def _is_allowed(value: float, labels: frozenset[int] | None) -> bool:
    is_label = value == int(value) and value >= 0
    return is_label and (labels is None or value in labels)


def _accept_prefixed_lesion(submission: Submission, check: CaseCheck) -> CaseCheck:
    """A case counts as delivered with a lesion mask named after its organ."""
    has_prefixed = any(submission.file(check.case, name) is not None for name in _PREFIXED_LESIONS)
    return replace(check, delivered=check.delivered or has_prefixed)


def _scattered_masks(shares_by_name: Mapping[str, Mapping[str, float]]) -> tuple[OutputIssue, ...]:
    """Issues about scattered masks of structures that are one piece in most cases.

    `shares_by_name` maps file names to the largest component's share in each case. "Most" are two
    thirds of four or more cases.
    """
    issues = []
    for name, shares in shares_by_name.items():
        in_one_piece = sum(share >= _ONE_PIECE for share in shares.values())
        if len(shares) < _MIN_CASES or in_one_piece * 3 < 2 * len(shares):
            continue
        for case, share in shares.items():
            if share < _SCATTERED:
                text = (
                    f"{name} lies in pieces, the largest with {share:.0%} of its voxels; in most"
                    " cases it is one"
                )
                issues.append(OutputIssue("scattered", text, case, name))
    return tuple(issues)


def _absent_labels(
    case_values: Mapping[str, frozenset[float]], labels: frozenset[int] | None
) -> tuple[OutputIssue, ...]:
    """An issue if some labels of a multi-class task are in no mask, while others are.

    Only for four or more masks.
    """
    present = frozenset[float]().union(*case_values.values()) - {0}
    if labels is None or len(labels) < 3 or len(case_values) < _MIN_CASES or not present:
        return ()
    absent = sorted(labels - present - {0})
    if not absent:
        return ()
    names = f"labels {', '.join(map(str, absent))} have"
    if len(absent) == 1:
        names = f"label {absent[0]} has"
    text = f"{names} no voxel in any of {len(case_values)} masks"
    return (OutputIssue("class_absent", text, None, _LABEL_MAP),)


def _decision_issues(submission: Submission) -> tuple[OutputIssue, ...]:
    """The first fault of agents_decision.csv.

    The file is optional, so that a fault never makes the format invalid.
    """
    path = submission.file(None, _DECISIONS)
    if path is None:
        return ()
    try:
        header, rows = parse_csv(read_text(path, submission.root))
    except Refused as refused:
        return (_decision_issue(refused.kind, f"{_DECISIONS} {refused.text}"),)
    if not {"patient_id", "lesion_present"} <= set(header):
        columns = ", ".join(str(Stranger(name, 40)) for name in header[:8])
        return (_decision_issue("header", f"{_DECISIONS} has columns {columns}"),)
    id_column, lesion_column = header.index("patient_id"), header.index("lesion_present")
    wrong = [
        row
        for row in rows
        if len(row) <= max(id_column, lesion_column) or row[lesion_column].strip() not in ("0", "1")
    ]
    if wrong:
        text = f"{_DECISIONS}: {len(wrong)} rows where lesion_present is not 0 or 1"
        return (_decision_issue("values", text),)
    return _constant_columns(header, rows, submission.run.brief)


def _decision_issue(kind: IssueKind, text: str) -> OutputIssue:
    return OutputIssue(kind, text, None, _DECISIONS, forgiven=True)


def _constant_columns(
    header: list[str], rows: list[list[str]], brief: str
) -> tuple[OutputIssue, ...]:
    """An issue if the brief says `column = value` and no row has that value."""
    if not rows:
        return ()
    for index, column in enumerate(header):
        match = re.search(
            rf"(?<![\w.-]){re.escape(column)} ?= ?['\"]?([A-Za-z][\w-]{{1,40}})", brief
        )
        if match is None:
            continue
        value = match[1]
        cells = [row[index].strip() for row in rows if len(row) > index]
        if all(cell.lower() != value.lower() for cell in cells):
            first = str(Stranger(cells[0], 20)) if cells and cells[0] else "empty"
            text = f"{_DECISIONS}: {column} is {first}, the brief says {value}"
            return (OutputIssue("demand", text, None, _DECISIONS),)
    return ()


TRACK = CheckedTrack(
    "segmentation",
    check=check,
    output="masks",
    files=(_LESION, _ORGAN, _LABEL_MAP, _DECISIONS),
    required=required,
    delivered=delivered,
    rubrics=("segmentation", "segmentation-multiclass"),
    words=("-seg-", "segment", "kidney", "liver", "pancreas", "feta"),
    gate=True,
    branch=HarnessBranch(),
    metrics=("dice",),
    headline="lesion_dice",
    near_zero=0.1,
    bands=score_bands(0.70, 0.30),  # eval_seg, medal_tier.py
    parts={"per_class_dice": "tissue"},
    unit="ml",
    items=PLAN_ITEMS,
)
