"""Classification: one `predictions.csv` with the header patient_id,label and one row a case
(benchmark.md section 4).

No harness rule is published for a table with a wrong header. The simplest one that fits: a row
still delivers its case (first column the case, second the label), and the format is invalid.
"""

from __future__ import annotations

from collections import Counter

from ...tracks import PLAN_ITEMS
from ...trajectories.turns.briefs import balanced
from .case_checks import CaseCheck, Fact, TrackCheck
from .csv_table import parse_csv
from .demands import class_names, foreign_label
from .submission import Submission, identical
from .track import CheckedTrack
from .untrusted_files import Refused, read_text

NAME = "predictions.csv"
HEADER = ["patient_id", "label"]


def rows_of(submission: Submission) -> tuple[list[tuple[str, str]], list[Fact]]:
    """(case, label) rows of predictions.csv, with facts about the table as a whole."""
    path = submission.file(None, NAME)
    if path is None:
        return [], [_absent(submission)]
    try:
        header, rows = parse_csv(read_text(path, submission.root))
    except Refused as refused:
        return [], [Fact(refused.kind, f"{NAME} {refused.text}", None, NAME)]
    facts: list[Fact] = []
    if header != HEADER:
        shown = ",".join(header)[:80]
        facts.append(
            Fact("header", f"{NAME} has the header {shown}, not {','.join(HEADER)}", None, NAME)
        )
    ids, labels = _columns(header)
    # no header at all, or foreign names: by position, the first row may be a case
    if ids is None or labels is None:
        first = (
            []
            if any(cell.strip().lower() in _ID_NAMES | _LABEL_NAMES for cell in header)
            else [header]
        )
        rows, ids, labels = first + rows, ids or 0, 1 if labels is None else labels
    short = [row for row in rows if len(row) <= max(ids, labels)]
    if short:
        facts.append(
            Fact("schema", f"{NAME}: {len(short)} rows with fewer than two columns", None, NAME)
        )
    return [
        (row[ids].strip(), row[labels].strip()) for row in rows if len(row) > max(ids, labels)
    ], facts


_ID_NAMES = {
    "patient_id",
    "case_id",
    "case",
    "id",
    "image_id",
    "image",
    "filename",
    "file",
    "name",
    "sample_id",
}
_LABEL_NAMES = {
    "label",
    "class",
    "prediction",
    "predicted_label",
    "pred",
    "category",
    "predicted_class",
    "y_pred",
}


def _columns(header: list[str]) -> tuple[int | None, int | None]:
    names = [cell.strip().lower() for cell in header]
    ids = next((i for i, name in enumerate(names) if name in _ID_NAMES), None)
    labels = next((i for i, name in enumerate(names) if name in _LABEL_NAMES), None)
    return ids, labels


def _absent(submission: Submission) -> Fact:
    for file in submission.run.outputs.files:
        place = f"{file.case}/{file.name}" if file.case else file.name
        if place.endswith(f"/{NAME}"):
            return Fact("misplaced", f"{place} instead of {NAME}", None, place)
    for file in submission.run.outputs.files:
        if file.case is None and file.name.endswith((".csv", ".tsv")):
            return Fact("misnamed", f"{file.name} instead of {NAME}", None, file.name)
    return Fact("missing", f"{NAME} is missing", None, NAME)


def check(submission: Submission) -> TrackCheck:
    """One row a case: present, once, with a label."""
    rows, facts = rows_of(submission)
    times = Counter(case for case, _ in rows)
    label = dict(reversed(rows))  # the first row of a case counts
    cases = []
    for case in submission.cases:
        found: list[Fact] = []
        if case not in times:
            found.append(Fact("missing", "has no row", case, NAME))
        elif times[case] > 1:
            found.append(Fact("duplicate", f"has {times[case]} rows", case, NAME))
        elif not label[case]:
            found.append(Fact("empty", "has an empty label", case, NAME))
        cases.append(CaseCheck(case, case in times, tuple(found)))
    known = set(submission.cases)
    facts += [
        Fact("extra", "is no expected case", case, NAME) for case in times if case not in known
    ]
    labels = {case: text for case, text in label.items() if case in known}
    names = class_names(submission.run.brief)
    foreign = [
        case
        for case, text in labels.items()
        if text and foreign_label(text, names, submission.run.brief)
    ]
    if foreign:
        text = (
            f"{len(foreign)} rows have a label that the brief does not list, e.g."
            f" {labels[foreign[0]][:30]}"
        )
        facts.append(Fact("demand", text, foreign[0], NAME))
    return TrackCheck(
        tuple(cases),
        (*facts, *identical(labels, "label"), *_never_given(labels, submission.run.brief)),
    )


def _never_given(labels: dict[str, str], brief: str) -> tuple[Fact, ...]:
    """Classes of the brief that no case got, where chance is no explanation: ten cases a class,
    five if it says that all occur."""
    names, given = class_names(brief), {label.lower() for label in labels.values()}
    absent = [name for name in names if name.lower() not in given]
    if len(names) < 3 or not absent or len(absent) == len(names) or len(given) < 2:
        return ()
    if len(labels) < (5 if balanced(brief) else 10) * len(names):
        return ()
    return (
        Fact(
            "class_absent",
            f"{', '.join(absent)} is given to none of {len(labels)} cases",
            None,
            NAME,
        ),
    )


def delivered(submission: Submission) -> set[str]:
    """Cases that have a row."""
    rows, _ = rows_of(submission)
    return {case for case, _ in rows}


TRACK = CheckedTrack(
    "classification",
    check=check,
    output="labels",
    files=(NAME,),
    delivered=delivered,
    rubrics=("classification",),
    words=("-cls-", "classif"),
    metrics=("accuracy",),
    items=PLAN_ITEMS,
)
