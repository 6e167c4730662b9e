"""Detection: `<case>/prediction.json` with {"boxes": [{class, x1, y1, x2, y2, score?}]}
(benchmark.md section 4).

Boxes have x1 < x2 and y1 < y2 and lie inside the image (its border included); a score is in [0, 1].
No box at all is a legal answer. A class is a non-empty text; one that neither the report nor the
brief knows is a fact without effect on the format flag. A score that is there is a number, null is
none.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from ...tracks import PLAN_ITEMS, HarnessBranch, score_bands
from ...trajectories.reading.json_bytes import number
from .case_checks import Fact, FactKind, TrackCheck
from .demands import wants_pixels, wants_score
from .submission import Submission, identical
from .track import CheckedTrack
from .untrusted_files import read_json

NAME = "prediction.json"


def known_classes(submission: Submission) -> frozenset[str] | None:
    """Class names of the report's per-class figures; None when it has none."""
    metrics = submission.run.report.metrics if submission.run.report is not None else {}
    for key, value in metrics.items():
        if "class" in key.lower() and isinstance(value, dict) and value:
            return frozenset(map(str, value))
    return None


def check(submission: Submission) -> TrackCheck:
    """Boxes of every case; inside the image only when the public inputs give its size, else at
    least not negative."""
    classes = known_classes(submission)
    brief = submission.run.brief.lower()
    scored = wants_score(submission.run.brief)
    corners: list[float] = []
    alike: dict[str, str] = {}
    given: list[set[str]] = []

    def known(name: str) -> bool:
        if classes is not None:
            return name in classes
        return not brief or name.lower() in brief

    def inspect(work: Submission, case: str, path: Path) -> list[Fact]:
        value = read_json(path, work.root, allow_bom=not work.rules.no_byte_order_mark)
        boxes = value.get("boxes") if isinstance(value, dict) else None
        if not isinstance(boxes, list):
            return [Fact("schema", f"{NAME} is no object with a list `boxes`", case, NAME)]
        _measure(work, case, boxes)
        alike[case] = repr(
            [
                [box.get(key) for key in ("x1", "y1", "x2", "y2")]
                for box in boxes
                if isinstance(box, dict)
            ]
        )
        given.append({str(box.get("class")) for box in boxes if isinstance(box, dict)})
        size = work.public.image_size(case) if work.public is not None else None
        if not boxes:
            return [Fact("empty", f"{NAME} has no boxes", case, NAME, forgiven=True)]
        wrong: dict[FactKind, list[str]] = {}
        strange: set[str] = set()
        unscored = 0
        for index, box in enumerate(boxes):
            for kind, text in _box(box, size, work.rules.true_is_one):
                wrong.setdefault(kind, []).append(f"box {index} {text}")
            if isinstance(box, dict):
                if isinstance(box.get("class"), str) and not known(box["class"]):
                    strange.add(box["class"])
                unscored += scored and box.get("score") is None
                ends = [number(box.get(key)) for key in ("x2", "y2")]
                corners.extend(end for end in ends if end is not None)
        facts = [
            Fact(
                kind,
                texts[0] + (f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""),
                case,
                NAME,
            )
            for kind, texts in wrong.items()
        ]
        if unscored:
            facts.append(
                Fact("demand", f"{unscored} boxes have no score, which the brief names", case, NAME)
            )
        if strange:
            shown = ", ".join(sorted(strange)[:5])[:80]
            facts.append(
                Fact("unknown_class", f"classes that the task does not name: {shown}", case, NAME)
            )
        return facts

    found = submission.per_case((NAME,), inspect)
    found = TrackCheck(
        found.cases, found.facts + identical(alike, "boxes", 4) + _never_found(given, classes)
    )
    if len(corners) >= 6 and max(corners) <= 1.5 and wants_pixels(submission.run.brief):
        text = f"no box reaches beyond {max(corners):g}: fractions of the image, not pixels"
        return TrackCheck(found.cases, (*found.facts, Fact("demand", text, None, NAME)))
    return found


def _never_found(given: list[set[str]], classes: frozenset[str] | None) -> tuple[Fact, ...]:
    """Classes that the benchmark scores and that no box of six or more cases has, though others are
    found."""
    found = set[str]().union(*given)
    absent = sorted((classes or frozenset()) - found)
    if len(given) < 6 or not absent or not found & (classes or frozenset()):
        return ()
    return (
        Fact(
            "class_absent",
            f"{', '.join(absent)} is found in none of {len(given)} cases",
            None,
            NAME,
        ),
    )


def _measure(work: Submission, case: str, boxes: list[Any]) -> None:
    """Number of boxes; in the middle, their score, width and height."""
    values: dict[str, list[float]] = {}
    for box in boxes:
        x1, y1, x2, y2, score = (
            number(box.get(key)) if isinstance(box, dict) else None
            for key in ("x1", "y1", "x2", "y2", "score")
        )
        if x1 is not None and y1 is not None and x2 is not None and y2 is not None:
            values.setdefault("width", []).append(x2 - x1)
            values.setdefault("height", []).append(y2 - y1)
        if score is not None:
            values.setdefault("score", []).append(score)
    work.measure(case, boxes=len(boxes), **{name: median(found) for name, found in values.items()})


def _box(box: Any, size: tuple[int, int] | None, true_is_one: bool) -> list[tuple[FactKind, str]]:
    if not isinstance(box, dict):
        return [("schema", "is no object")]
    if true_is_one:
        box = {
            key: int(value) if isinstance(value, bool) else value
            for key, value in box.items()
            if key != "class"
        } | {"class": box.get("class")}
    name = box.get("class")
    if not (isinstance(name, str) and name.strip()):
        return [("schema", "has no class that is a text")]
    corners = [
        None if isinstance(box.get(key), str) else number(box.get(key))
        for key in ("x1", "y1", "x2", "y2")
    ]
    if any(corner is None for corner in corners):
        return [("schema", "lacks a number in x1, y1, x2, y2")]
    x1, y1, x2, y2 = (corner or 0.0 for corner in corners)
    found: list[tuple[FactKind, str]] = []
    if not (x1 < x2 and y1 < y2):
        found.append(("box_reversed", f"is reversed or flat: ({x1:g}, {y1:g}, {x2:g}, {y2:g})"))
    if min(x1, y1, x2, y2) < 0 or (
        size is not None and (max(x1, x2) > size[0] or max(y1, y2) > size[1])
    ):
        where = f"the {size[0]}x{size[1]} image" if size is not None else "the image"
        found.append(("box_outside", f"leaves {where}: ({x1:g}, {y1:g}, {x2:g}, {y2:g})"))
    if "score" in box:
        score = None if isinstance(box["score"], str) else number(box["score"])
        if score is None or not 0 <= score <= 1:
            found.append(("values", f"has the score {str(box['score'])[:20]}, not in [0, 1]"))
    return found


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
