"""Segmentation: `<case>/lesion.nii.gz` (organ.nii.gz is optional), or `<case>/dseg.nii.gz` for many
labels.

Rules of benchmark.md section 4: binary masks (or integer labels in the allowed set) with the shape
of the CT. A wrong affine, an empty mask and a floating type are facts without effect on the format
flag, as the published rule names values and shape only; so is whatever is wrong with an organ mask,
whatever the brief says of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ...tracks import PLAN_ITEMS, HarnessBranch, score_bands
from ...trajectories.models import Run
from .case_checks import CaseCheck, Fact, FactKind, TrackCheck
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

_LESION, _ORGAN, _DSEG = "lesion.nii.gz", "organ.nii.gz", "dseg.nii.gz"
_PREFIXED = ("liver_lesion.nii.gz", "kidney_lesion.nii.gz", "pancreas_lesion.nii.gz")
_WHOLE = 0.9
_APART = 0.8
"""Share of the voxels in the largest piece from which a mask counts as one piece, and below which
as scattered."""


def required(submission: Submission) -> tuple[str, ...]:
    """The file of a case: lesion.nii.gz, or dseg.nii.gz where the brief, the old task name or the
    delivered names speak of a multi-class task."""
    brief, task = submission.run.brief, submission.run.task or ""
    names = {file.name for file in submission.run.outputs.files}
    if "lesion.nii" not in brief and (
        "dseg.nii" in brief or "feta" in task.lower() or (_DSEG in names and _LESION not in names)
    ):
        return (_DSEG,)
    return (_LESION,)


def check(submission: Submission) -> TrackCheck:
    """Masks of every case, shapes against the CT when the public inputs are there, else among a
    case's own masks."""
    wanted, rules = required(submission), submission.rules
    many = wanted == (_DSEG,)
    labels = _labels(submission) if many else frozenset({0, 1})
    kinds = "iufbc" if rules.complex_voxels else "iufb"
    heads: dict[str, VolumeHead] = {}
    read: dict[Path, VolumeHead] = {}
    held: dict[str, frozenset[float]] = {}

    def inspect(work: Submission, case: str, path: Path) -> list[Fact]:
        head = read[path] = volume_head(path, work.root, kinds)
        reference = work.public.volume(case) if work.public is not None else None
        origin = "the input" if reference is not None else "the case's other mask"
        against = reference or heads.setdefault(case, head)
        facts = [] if against is head else _geometry(head, against, origin, case, path.name)
        stats = volume_stats(path, work.root, head, rounded=many and rules.rounded_labels)
        held[case] = frozenset(stats.values or ())
        if many:
            sizes = {
                f"label_{label:g}": stats.counts.get(label, 0) for label in labels or () if label
            }
        else:
            sizes = {path.name.partition(".")[0]: stats.nonzero}
        work.measure(case, **{name: n * voxel_ml(head) for name, n in sizes.items()})
        facts += _values(stats, case, path, head, labels)
        if head.axes not in _allowed_axes(work.run, reference):
            facts.append(Fact("demand", f"{path.name} has {head.axes} axes", case, path.name))
        return facts

    pieces: dict[str, dict[str, float]] = {}

    def look(work: Submission, case: str, path: Path) -> list[Fact]:
        facts = inspect(work, case, path)
        if not any(
            fact.kind in ("values", "not_finite", "empty") for fact in facts
        ) and labels == frozenset({0, 1}):
            share = largest_component_share(path, read[path])
            if share is not None:
                pieces.setdefault(path.name, {})[case] = share
        return facts

    lost: tuple[FactKind, ...] = ("unreadable",) if many and rules.unreadable_is_missing else ()
    found = submission.per_case(
        wanted, look, () if many else (_ORGAN,), (*UNDELIVERED_KINDS, *lost)
    )
    if rules.prefixed_lesions and not many:
        found = replace(found, cases=tuple(_prefixed(submission, case) for case in found.cases))
    held = {case: values for case, values in held.items() if values}
    return TrackCheck(
        found.cases,
        found.facts + _scattered(pieces) + _absent(held, labels) + _decision_csv(submission),
    )


def _allowed_axes(run: Run, reference: VolumeHead | None) -> tuple[int, ...]:
    """Numbers of axes that a mask may have: always 3, and those of the input or the task.

    Without either nothing says whether the task is planar, so 2 axes are no fault.
    """
    if reference is not None:
        return 3, reference.axes
    return 3, run.output_format.axes or 2


def delivered(submission: Submission) -> set[str]:
    """Cases with their required file, or what the harness's scorer takes for it."""
    wanted = {*required(submission), *(_PREFIXED if submission.rules.prefixed_lesions else ())}
    return {
        file.case
        for file in submission.run.outputs.files
        if file.case is not None and file.name in wanted
    }


def _prefixed(submission: Submission, check: CaseCheck) -> CaseCheck:
    there = any(submission.file(check.case, name) is not None for name in _PREFIXED)
    return replace(check, delivered=check.delivered or there)


def _labels(submission: Submission) -> frozenset[int] | None:
    """The allowed labels by the brief; by the report, where the rules say so and it names them."""
    report = submission.run.report
    named = (
        report.metrics.get("tissue_labels")
        if report is not None and submission.rules.reported_labels
        else None
    )
    if isinstance(named, dict) and all(str(label).isdecimal() for label in named):
        return frozenset({0, *map(int, named)})
    return frozenset(submission.run.output_format.labels) or None


def _scattered(pieces: Mapping[str, Mapping[str, float]]) -> tuple[Fact, ...]:
    """Masks in several pieces where the same structure is one piece in at least two thirds of four
    or more cases."""
    facts = []
    for name, shares in pieces.items():
        whole = sum(1 for share in shares.values() if share >= _WHOLE)
        if len(shares) < 4 or whole * 3 < 2 * len(shares):
            continue
        for case, share in shares.items():
            if share < _APART:
                text = (
                    f"{name} lies in pieces, the largest with {share:.0%} of its voxels; in most"
                    " cases it is one"
                )
                facts.append(Fact("scattered", text, case, name))
    return tuple(facts)


def _absent(
    held: Mapping[str, frozenset[float]], labels: frozenset[int] | None
) -> tuple[Fact, ...]:
    """Labels of a multi-class task that none of four or more masks holds, though the masks hold
    others."""
    found = frozenset[float]().union(*held.values()) - {0}
    if labels is None or len(labels) < 3 or len(held) < 4 or not found:
        return ()
    absent = sorted(labels - found - {0})
    names = (
        f"label {absent[0]} has"
        if len(absent) == 1
        else f"labels {', '.join(map(str, absent))} have"
    )
    text = f"{names} no voxel in any of {len(held)} masks"
    return (Fact("class_absent", text, None, _DSEG),) if absent else ()


def _geometry(
    head: VolumeHead, reference: VolumeHead, origin: str, case: str, name: str
) -> list[Fact]:
    facts = []
    if head.shape != reference.shape:
        facts.append(
            Fact("shape", f"{name} has shape {head.shape}, {origin} {reference.shape}", case, name)
        )
    if affine_differs(head.affine, reference.affine):
        facts.append(Fact("affine", f"{name} has another affine than {origin}", case, name))
    return facts


def _values(
    stats: VolumeStats, case: str, path: Path, head: VolumeHead, labels: frozenset[int] | None
) -> list[Fact]:
    facts = []
    if head.dtype.kind == "f":
        facts.append(
            Fact(
                "dtype",
                f"{path.name} has type {head.dtype}, not an integer",
                case,
                path.name,
                forgiven=True,
            )
        )
    if not stats.finite:
        facts.append(Fact("not_finite", f"{path.name} holds NaN or infinity", case, path.name))
    elif stats.values is None:
        text = (
            f"{path.name} holds more than a few dozen values from {stats.low:g} to {stats.high:g}"
        )
        facts.append(Fact("values", text, case, path.name))
    else:
        wrong = [
            v
            for v in stats.values
            if v != int(v) or v < 0 or (labels is not None and v not in labels)
        ]
        if wrong:
            shown = ", ".join(f"{value:g}" for value in wrong[:5])
            facts.append(
                Fact(
                    "values",
                    f"{path.name} holds values outside the allowed set: {shown}",
                    case,
                    path.name,
                )
            )
    if stats.nonzero == 0 and stats.finite:
        facts.append(Fact("empty", f"{path.name} has no voxel set", case, path.name, forgiven=True))
    return facts


def _decision_csv(submission: Submission) -> tuple[Fact, ...]:
    """agents_decision.csv is optional: its faults are facts that do not touch the format flag."""
    name = "agents_decision.csv"
    path = submission.file(None, name)
    if path is None:
        return ()
    try:
        header, rows = parse_csv(read_text(path, submission.root))
    except Refused as refused:
        return (Fact(refused.kind, f"{name} {refused.text}", None, name, forgiven=True),)
    if not {"patient_id", "lesion_present"} <= set(header):
        return (
            Fact(
                "header", f"{name} has columns {', '.join(header)[:80]}", None, name, forgiven=True
            ),
        )
    ids, column = header.index("patient_id"), header.index("lesion_present")
    wrong = [
        row for row in rows if len(row) <= max(ids, column) or row[column].strip() not in ("0", "1")
    ]
    if wrong:
        return (
            Fact(
                "values",
                f"{name}: {len(wrong)} rows where lesion_present is not 0 or 1",
                None,
                name,
                forgiven=True,
            ),
        )
    for place, word in enumerate(header):
        wanted = re.search(
            rf"(?<![\w.-]){re.escape(word)} ?= ?['\"]?([A-Za-z][\w-]{{1,40}})", submission.run.brief
        )
        if (
            wanted is not None
            and rows
            and all(
                row[place].strip().lower() != wanted[1].lower() for row in rows if len(row) > place
            )
        ):
            text = (
                f"{name}: {word} is {rows[0][place].strip()[:20] or 'empty'}, the brief says"
                f" {wanted[1]}"
            )
            return (Fact("demand", text, None, name),)
    return ()


TRACK = CheckedTrack(
    "segmentation",
    check=check,
    output="masks",
    files=(_LESION, _ORGAN, _DSEG, "agents_decision.csv"),
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
