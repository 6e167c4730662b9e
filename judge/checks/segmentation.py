"""Segmentation: `<case>/lesion.nii.gz` (organ.nii.gz only where the brief demands it), or `<case>/dseg.nii.gz` for many labels.

Rules of benchmark.md section 4: binary masks (or integer labels in the allowed set) with the shape of the CT. A wrong
affine, an empty mask and a floating type are facts without effect on the format flag, as the published rule names
values and shape only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from .facts import Fact, TrackCheck
from .files import Refused, read_text
from .nifti import VolumeHead, affine_differs, main_piece, volume_head, volume_stats
from .submission import Submission
from .table import parse_csv

_DSEG = "dseg.nii.gz"
_WHOLE = 0.9
_APART = 0.8
"""Share of the voxels in the largest piece from which a mask counts as one piece, and below which as scattered."""
_RANGE = re.compile(r"labels?\b[^.\n\d]{0,30}?(\d{1,3})\s*(?:-|–|to|\.\.+)\s*(\d{1,3})", re.IGNORECASE)
_LIST = re.compile(r"labels?\b[^.\n{\d]{0,30}?\{?((?:\d{1,3}\s*,\s*)+(?:and\s+)?\d{1,3})\}?", re.IGNORECASE)

_NAMED = re.compile(
    r"labels?\b[^.\d]{0,40}?((?:\(?\d{1,3}\)?\s{0,2}[=:]?\s{0,2}[a-z][\w /()-]{0,40}(?:,|;|\n\s{0,9}[-*]?|\.)\s{0,9}(?:and\s)?){2,})",
    re.IGNORECASE,
)
"""`0 background, 1 cortex` or `0 = background; 1 = cortex`, on one line or one a line."""


def required_names(brief: str, task: str | None, names: set[str]) -> tuple[str, ...]:
    """The files of a case: lesion.nii.gz, with organ.nii.gz where the brief demands it and does not call it optional.

    dseg.nii.gz instead where the brief, the old task name or the delivered names speak of a multi-class task.
    """
    if "lesion.nii" not in brief and (
        "dseg.nii" in brief or "feta" in (task or "").lower() or (_DSEG in names and "lesion.nii.gz" not in names)
    ):
        return (_DSEG,)
    place = brief.find("organ.nii")
    demanded = place >= 0 and "optional" not in brief[max(0, place - 60) : place + 80].lower()
    return ("lesion.nii.gz", "organ.nii.gz") if demanded else ("lesion.nii.gz",)


def allowed_labels(brief: str) -> frozenset[int] | None:
    """The label set that a brief names ("labels 0-7", "labels {0, 1, 2}", "labels: 0 background, 1 cortex"), background 0 included; None if it names none."""
    if match := _RANGE.search(brief):
        first, last = int(match.group(1)), int(match.group(2))
        if first < last <= 255:
            return frozenset({0, *range(first, last + 1)})
    if match := _LIST.search(brief):
        return frozenset({0, *(int(number) for number in re.findall(r"\d+", match.group(1)))})
    if match := _NAMED.search(brief):
        numbers = [int(number) for number in re.findall(r"(?:^|[,;(\n])\s{0,9}[-*]?\s?(\d{1,3})\b", match.group(1))]
        if len(set(numbers)) >= 2:
            return frozenset({0, *numbers})
    return None


def check(submission: Submission) -> TrackCheck:
    """Masks of every case, shapes against the CT when the public inputs are there, else among a case's own masks."""
    names = {file.name for file in submission.run.outputs.files}
    required = required_names(submission.run.brief, submission.run.task, names)
    labels = allowed_labels(submission.run.brief) if required == (_DSEG,) else frozenset({0, 1})
    heads: dict[str, VolumeHead] = {}

    def inspect(work: Submission, case: str, path: Path) -> list[Fact]:
        head = volume_head(path, work.root)
        reference = work.public.volume(case) if work.public is not None else None
        origin = "the input" if reference is not None else "the case's other mask"
        against = reference or heads.setdefault(case, head)
        facts = [] if against is head else _geometry(head, against, origin, case, path.name)
        return facts + _values(work, case, path, head, labels)

    pieces: dict[str, dict[str, float]] = {}

    def look(work: Submission, case: str, path: Path) -> list[Fact]:
        facts = inspect(work, case, path)
        if not any(fact.kind in ("values", "not_finite", "empty") for fact in facts) and labels == frozenset({0, 1}):
            share = main_piece(path, volume_head(path, work.root))
            if share is not None:
                pieces.setdefault(path.name, {})[case] = share
        return facts

    optional = ("organ.nii.gz",) if required == ("lesion.nii.gz",) else ()
    found = submission.per_case(required, look, optional)
    return TrackCheck(found.cases, found.facts + _scattered(pieces) + _decision_csv(submission))


def _scattered(pieces: Mapping[str, Mapping[str, float]]) -> tuple[Fact, ...]:
    """Masks in several pieces where the same structure is one piece in at least two thirds of four or more cases."""
    facts = []
    for name, shares in pieces.items():
        whole = sum(1 for share in shares.values() if share >= _WHOLE)
        if len(shares) < 4 or whole * 3 < 2 * len(shares):
            continue
        for case, share in shares.items():
            if share < _APART:
                text = f"{name} lies in pieces, the largest with {share:.0%} of its voxels; in most cases it is one"
                facts.append(Fact("scattered", text, case, name, fatal=False))
    return tuple(facts)


def _geometry(head: VolumeHead, reference: VolumeHead, origin: str, case: str, name: str) -> list[Fact]:
    facts = []
    if head.shape != reference.shape:
        facts.append(Fact("shape", f"{name} has shape {head.shape}, {origin} {reference.shape}", case, name))
    if affine_differs(head.affine, reference.affine):
        facts.append(Fact("affine", f"{name} has another affine than {origin}", case, name, fatal=False))
    return facts


def _values(work: Submission, case: str, path: Path, head: VolumeHead, labels: frozenset[int] | None) -> list[Fact]:
    stats = volume_stats(path, work.root, head)
    facts = []
    if len(head.shape) != 3:
        facts.append(Fact("demand", f"{path.name} has {len(head.shape)} axes", case, path.name, fatal=False))
    if head.dtype.kind == "f":
        facts.append(Fact("dtype", f"{path.name} has type {head.dtype}, not an integer", case, path.name, fatal=False))
    if not stats.finite:
        facts.append(Fact("not_finite", f"{path.name} holds NaN or infinity", case, path.name))
    elif stats.values is None:
        text = f"{path.name} holds more than a few dozen values from {stats.low:g} to {stats.high:g}"
        facts.append(Fact("values", text, case, path.name))
    else:
        wrong = [v for v in stats.values if v != int(v) or v < 0 or (labels is not None and v not in labels)]
        if wrong:
            shown = ", ".join(f"{value:g}" for value in wrong[:5])
            facts.append(Fact("values", f"{path.name} holds values outside the allowed set: {shown}", case, path.name))
    if stats.nonzero == 0 and stats.finite:
        facts.append(Fact("empty", f"{path.name} has no voxel set", case, path.name, fatal=False))
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
        return (Fact(refused.kind, f"{name} {refused.text}", None, name, fatal=False),)
    if not {"patient_id", "lesion_present"} <= set(header):
        return (Fact("header", f"{name} has columns {', '.join(header)[:80]}", None, name, fatal=False),)
    ids, column = header.index("patient_id"), header.index("lesion_present")
    wrong = [row for row in rows if len(row) <= max(ids, column) or row[column].strip() not in ("0", "1")]
    if wrong:
        return (
            Fact("values", f"{name}: {len(wrong)} rows where lesion_present is not 0 or 1", None, name, fatal=False),
        )
    return ()
