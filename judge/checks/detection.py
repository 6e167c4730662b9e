"""Detection: `<case>/prediction.json` with {"boxes": [{class, x1, y1, x2, y2, score?}]}.

By the benchmark's output rules. Boxes have x1 < x2 and y1 < y2 and lie inside the image (its border
included); a score is in [0, 1]. No box at all is a legal answer. A class is a non-empty text; one
that neither the report nor the brief knows is an issue without effect on the format flag. A `score`
that is present must be a number, and null is not one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from ...error_codes.output_facts import IssueKind, OutputIssue
from ...tracks import PLAN_ITEMS, HarnessBranch, score_bands
from ...trajectories.reading.json_bytes import number
from ...trajectories.record.strangers import Stranger
from .case_checks import TrackCheck
from .submission import Submission, identical
from .track import CheckedTrack
from .untrusted_files import read_json

NAME = "prediction.json"
_CORNERS = ("x1", "y1", "x2", "y2")
_LARGEST_FRACTION = 1.5
"""Boxes none of which reaches beyond this are given in fractions of the image, not in pixels."""

Problem = tuple[IssueKind, str]


def report_classes(submission: Submission) -> frozenset[str] | None:
    """Class names of the report's figures by class; None if it has none."""
    metrics = submission.run.report.metrics if submission.run.report is not None else {}
    for name, value in metrics.items():
        if "class" in name.lower() and isinstance(value, dict) and value:
            return frozenset(map(str, value))
    return None


def check(submission: Submission) -> TrackCheck:
    """Check the boxes of every case.

    They must lie inside the image if the public inputs give its size, else just not be negative.
    """
    boxes = _Boxes(
        classes=report_classes(submission),
        brief=submission.run.brief.lower(),
    )
    checked = submission.per_case((NAME,), boxes.inspect)
    issues = checked.issues + identical(boxes.contents, "boxes", 4) + boxes.absent_classes()
    ends = boxes.ends
    in_fractions = len(ends) >= 6 and max(ends) <= _LARGEST_FRACTION
    if in_fractions and submission.run.output_format.unit == "pixels":
        text = f"no box reaches beyond {max(ends):g}: fractions of the image, not pixels"
        issues += (OutputIssue("demand", text, None, NAME),)
    return TrackCheck(checked.cases, issues)


@dataclass
class _Boxes:
    """The boxes of a submission as they are inspected, case by case."""

    classes: frozenset[str] | None
    """The classes that the report knows."""
    brief: str
    """In lower case."""
    contents: dict[str, str] = field(default_factory=dict)
    """Case -> its coordinates as text, to compare cases."""
    case_classes: list[set[str]] = field(default_factory=list)
    """The classes found in each case."""
    ends: list[float] = field(default_factory=list)
    """Every x2 and y2."""

    def inspect(self, submission: Submission, case: str, path: Path) -> list[OutputIssue]:
        """The issues about a case's boxes."""
        rules = submission.rules
        value = read_json(path, submission.root, allow_bom=not rules.no_byte_order_mark)
        boxes = value.get("boxes") if isinstance(value, dict) else None
        if not isinstance(boxes, list):
            return [OutputIssue("schema", f"{NAME} is no object with a list `boxes`", case, NAME)]
        _measure(submission, case, boxes)
        self._remember(case, boxes)
        if not boxes:
            return [OutputIssue("empty", f"{NAME} has no boxes", case, NAME, forgiven=True)]
        size = None if submission.public is None else submission.public.image_size(case)
        problems: dict[IssueKind, list[str]] = {}
        for index, box in enumerate(boxes):
            for kind, text in _box_problems(box, size, rules.true_is_one):
                problems.setdefault(kind, []).append(f"box {index} {text}")
        issues = [
            OutputIssue(kind, _first_of(texts), case, NAME) for kind, texts in problems.items()
        ]
        return issues + self._remarks(case, boxes)

    def _remember(self, case: str, boxes: list[Any]) -> None:
        """Keep what is compared across cases."""
        rows = [box for box in boxes if isinstance(box, dict)]
        self.contents[case] = repr([[box.get(name) for name in _CORNERS] for box in rows])
        self.case_classes.append({str(box.get("class")) for box in rows})
        for box in rows:
            for name in ("x2", "y2"):
                end = number(box.get(name))
                if end is not None:
                    self.ends.append(end)

    def _remarks(self, case: str, boxes: list[Any]) -> list[OutputIssue]:
        """Facts that no rule of the track names: missing scores and unknown classes."""
        unknown: set[str] = set()
        for box in boxes:
            if not isinstance(box, dict):
                continue
            name = box.get("class")
            if isinstance(name, str) and not self._is_known(name):
                unknown.add(name)
        issues = []
        if unknown:
            names = ", ".join(str(Stranger(name, 40)) for name in sorted(unknown)[:5])
            text = f"classes that the task does not name: {names}"
            issues.append(OutputIssue("unknown_class", text, case, NAME))
        return issues

    def _is_known(self, name: str) -> bool:
        if self.classes is not None:
            return name in self.classes
        return not self.brief or name.lower() in self.brief

    def absent_classes(self) -> tuple[OutputIssue, ...]:
        """An issue if some of the scored classes are in no box, while others are.

        Only for six or more cases.
        """
        found = set[str]().union(*self.case_classes)
        classes = self.classes or frozenset()
        absent = sorted(classes - found)
        if len(self.case_classes) < 6 or not absent or not found & classes:
            return ()
        text = f"{', '.join(absent)} is found in none of {len(self.case_classes)} cases"
        return (OutputIssue("class_absent", text, None, NAME),)


def _first_of(texts: list[str]) -> str:
    more = f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""
    return texts[0] + more


def _measure(submission: Submission, case: str, boxes: list[Any]) -> None:
    """Record the number of boxes and the medians of their score, width and height."""
    values: dict[str, list[float]] = {}
    for box in boxes:
        if not isinstance(box, dict):
            continue
        x1, y1, x2, y2, score = (number(box.get(name)) for name in (*_CORNERS, "score"))
        if x1 is not None and y1 is not None and x2 is not None and y2 is not None:
            values.setdefault("width", []).append(x2 - x1)
            values.setdefault("height", []).append(y2 - y1)
        if score is not None:
            values.setdefault("score", []).append(score)
    medians = {name: median(numbers) for name, numbers in values.items()}
    submission.measure(case, boxes=len(boxes), **medians)


def _box_problems(box: Any, size: tuple[int, int] | None, true_is_one: bool) -> list[Problem]:
    """What is wrong with a box; `size` is the image's width and height, if known."""
    if not isinstance(box, dict):
        return [("schema", "is no object")]
    name = box.get("class")
    if not (isinstance(name, str) and name.strip()):
        return [("schema", "has no class that is a text")]
    if true_is_one:
        box = {key: int(value) if isinstance(value, bool) else value for key, value in box.items()}
    corners = [_json_number(box.get(key)) for key in _CORNERS]
    x1, y1, x2, y2 = corners
    if x1 is None or y1 is None or x2 is None or y2 is None:
        return [("schema", "lacks a number in x1, y1, x2, y2")]
    return _corner_problems((x1, y1, x2, y2), size) + _score_problems(box)


def _corner_problems(
    corners: tuple[float, float, float, float], size: tuple[int, int] | None
) -> list[Problem]:
    x1, y1, x2, y2 = corners
    coordinates = f"({x1:g}, {y1:g}, {x2:g}, {y2:g})"
    problems: list[Problem] = []
    if not (x1 < x2 and y1 < y2):
        problems.append(("box_reversed", f"is reversed or flat: {coordinates}"))
    outside = min(corners) < 0
    image = "the image"
    if size is not None:
        width, height = size
        outside = outside or max(x1, x2) > width or max(y1, y2) > height
        image = f"the {width}x{height} image"
    if outside:
        problems.append(("box_outside", f"leaves {image}: {coordinates}"))
    return problems


def _score_problems(box: Mapping[str, Any]) -> list[Problem]:
    if "score" not in box:
        return []
    score = _json_number(box["score"])
    if score is not None and 0 <= score <= 1:
        return []
    return [("values", f"has the score {str(box['score'])[:20]}, not in [0, 1]")]


def _json_number(value: Any) -> float | None:
    """A finite number; None for anything else, numeric strings included."""
    return None if isinstance(value, str) else number(value)


TRACK = CheckedTrack(
    "detection",
    check=check,
    output="boxes",
    files=(NAME,),
    rubrics=("detection",),
    words=("chest-abnormality", "-det-", "detect", "bccd"),
    gate=True,
    branch=HarnessBranch(),
    metrics=("map", "ap50", "ap_50", "ap@"),
    near_zero=0.1,
    bands=score_bands(0.60, 0.30),  # eval_det2d, medal_tier.py
    parts={"per_class_ap": "class"},
    items=PLAN_ITEMS,
)
