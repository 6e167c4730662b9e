"""Classification: one `predictions.csv` with the header patient_id,label and one row per case.

By the benchmark's output rules. No harness rule is published for a table with a wrong header. The
simplest one that fits is used: a row still delivers its case (first column the case, second the
label), and the format is invalid.
"""

from __future__ import annotations

from collections import Counter

from ...error_codes.output_facts import IssueKind, OutputIssue
from ...tasks.output_format import OutputFormat
from ...tracks import PLAN_ITEMS
from ...trajectories.record.strangers import Stranger
from .case_checks import CaseCheck, TrackCheck
from .csv_table import parse_csv
from .submission import Submission, identical
from .track import CheckedTrack
from .untrusted_files import Refused, read_text

NAME = "predictions.csv"
HEADER = ["patient_id", "label"]
_ID_COLUMNS = frozenset(
    [
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
    ]
)
_LABEL_COLUMNS = frozenset(
    [
        "label",
        "class",
        "prediction",
        "predicted_label",
        "pred",
        "category",
        "predicted_class",
        "y_pred",
    ]
)
_MIN_CASES, _MIN_BALANCED_CASES = 10, 5
"""Cases per class from which chance does not explain a class that is never predicted; the second
number holds if the brief says that all classes occur."""


def rows_of(submission: Submission) -> tuple[list[tuple[str, str]], list[OutputIssue]]:
    """The (case, label) rows of predictions.csv, and issues about the table as a whole."""
    path = submission.file(None, NAME)
    if path is None:
        return [], [_why_missing(submission)]
    try:
        header, rows = parse_csv(read_text(path, submission.root))
    except Refused as refused:
        return [], [_table_issue(refused.kind, f"{NAME} {refused.text}")]
    issues: list[OutputIssue] = []
    if header != HEADER:
        columns = Stranger(",".join(header), 80)
        issues.append(
            _table_issue("header", f"{NAME} has the header {columns}, not {','.join(HEADER)}")
        )
    id_column = _column(header, _ID_COLUMNS)
    label_column = _column(header, _LABEL_COLUMNS)
    if id_column is None or label_column is None:
        # Without known column names, position decides; without any, the first row may be a case.
        if id_column is None and label_column is None:
            rows = [header, *rows]
        id_column = 0 if id_column is None else id_column
        label_column = 1 if label_column is None else label_column
    complete = [row for row in rows if len(row) > max(id_column, label_column)]
    short = len(rows) - len(complete)
    if short:
        issues.append(_table_issue("schema", f"{NAME}: {short} rows with fewer than two columns"))
    return [(row[id_column].strip(), row[label_column].strip()) for row in complete], issues


def _table_issue(kind: IssueKind, text: str) -> OutputIssue:
    """An issue about the table as a whole."""
    return OutputIssue(kind, text, None, NAME)


def _column(header: list[str], names: frozenset[str]) -> int | None:
    """The first column that has one of the names."""
    for index, cell in enumerate(header):
        if cell.strip().lower() in names:
            return index
    return None


def _why_missing(submission: Submission) -> OutputIssue:
    """The issue about a missing table: misplaced, misnamed or absent."""
    files = submission.run.outputs.files
    for file in files:
        place = f"{file.case}/{file.name}" if file.case else file.name
        if place.endswith(f"/{NAME}"):
            return OutputIssue("misplaced", f"{place} instead of {NAME}", None, place)
    for file in files:
        if file.case is None and file.name.endswith((".csv", ".tsv")):
            return OutputIssue("misnamed", f"{file.name} instead of {NAME}", None, file.name)
    return _table_issue("missing", f"{NAME} is missing")


def check(submission: Submission) -> TrackCheck:
    """Check that every case has exactly one row with a label."""
    rows, issues = rows_of(submission)
    row_counts = Counter(case for case, _ in rows)
    labels = dict(reversed(rows))  # the first row of a case counts
    cases = []
    for case in submission.cases:
        issue = _case_issue(case, row_counts[case], labels.get(case, ""))
        cases.append(CaseCheck(case, case in row_counts, () if issue is None else (issue,)))
    expected = set(submission.cases)
    issues += [
        OutputIssue("extra", "is no expected case", case, NAME)
        for case in row_counts
        if case not in expected
    ]
    labels = {case: label for case, label in labels.items() if case in expected}
    issues += _unlisted_labels(labels, submission.run.output_format.classes)
    issues += identical(labels, "label")
    issues += _absent_classes(labels, submission.run.output_format)
    return TrackCheck(tuple(cases), tuple(issues))


def _case_issue(case: str, rows: int, label: str) -> OutputIssue | None:
    """What is wrong with the rows of a case."""
    if rows == 0:
        return OutputIssue("missing", "has no row", case, NAME)
    if rows > 1:
        return OutputIssue("duplicate", f"has {rows} rows", case, NAME)
    if not label:
        return OutputIssue("empty", "has an empty label", case, NAME)
    return None


def _unlisted_labels(labels: dict[str, str], classes: tuple[str, ...]) -> tuple[OutputIssue, ...]:
    """An issue if cases have labels that are none of the task's classes."""
    cases = [case for case, label in labels.items() if _is_foreign(label, classes)]
    if not cases:
        return ()
    text = (
        f"{len(cases)} rows have a label that the brief does not list, e.g. {labels[cases[0]][:30]}"
    )
    return (OutputIssue("demand", text, cases[0], NAME),)


def _is_foreign(label: str, classes: tuple[str, ...]) -> bool:
    """Whether a label is none of the classes; a number may stand for any of them."""
    is_number = label.lstrip("-").isdigit()
    return bool(label and classes) and label not in classes and not is_number


def _absent_classes(labels: dict[str, str], output_format: OutputFormat) -> tuple[OutputIssue, ...]:
    """An issue if classes of the task are never predicted and chance does not explain it."""
    classes = output_format.classes
    predicted = {label.lower() for label in labels.values()}
    absent = [name for name in classes if name.lower() not in predicted]
    if len(classes) < 3 or not absent or len(absent) == len(classes) or len(predicted) < 2:
        return ()
    cases_per_class = _MIN_BALANCED_CASES if output_format.every_class_occurs else _MIN_CASES
    if len(labels) < cases_per_class * len(classes):
        return ()
    text = f"{', '.join(absent)} is given to none of {len(labels)} cases"
    return (_table_issue("class_absent", text),)


def delivered(submission: Submission) -> set[str]:
    """The cases that have a row."""
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
