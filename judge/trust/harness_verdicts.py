"""The harness's own verdicts (`llm_judge` in its reports), as labels of an annotator `harness`.

With them, `ambjudge agreement` compares any judge with the one that the benchmark itself used. Only
S1-S3 are read, criterion by criterion: the harness's failure codes are of another taxonomy, its S4
and S5 are measured, and branch eval_report_gen records stage means alone
(AutoMedBench/AutoMedBench, llm_judge.py of each branch, `JudgeVerdict`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from ...rubrics.load import rubric_for
from ...rubrics.model import Rubric
from ...trajectories.models import Run
from ...trajectories.reading.harness_report import flat_report
from ...trajectories.reading.json_bytes import number, read_json, text_or_none
from ...trajectories.reading.layout import report_file, side_file
from .human_labels import Labels

ANNOTATOR = "harness"
_CRITERION_FIELD = re.compile(r"s([1-3])([a-z])_\w{1,60}")
_S3_FIELD = "s3_validate_score"
"""The field of rubrics in which S3 is one criterion."""


def harness_labels(run: Run) -> tuple[Labels | None, list[str]]:
    """The verdicts that came with the run, and a line for each that could not be read.

    If the run was judged twice, these are the later ones.

    No labels if no report has any, or if the harness could not parse its judge's reply: it then
    writes zeros without a word, and a judge's failure is not a grade. InputError if the report
    cannot be read.
    """
    path = side_file(run.folder, "detail_report_new-rubrics.json") or report_file(run.folder)
    report = None if path is None else flat_report(read_json(path))
    verdicts = report.get("llm_judge") if isinstance(report, dict) else None
    if path is None or not isinstance(verdicts, dict) or not verdicts:
        return None, ["no llm_judge in a report"]
    if _is_unparsed(verdicts):
        return None, [
            f"{path.name}: llm_judge is all zeros without a reason, as after a reply that was not"
            " parsed"
        ]
    criteria, unread = _criteria(verdicts, rubric_for(run.track, run.task))
    problems = [f"{path.name}: llm_judge.{line}" for line in unread]
    if not criteria:
        return None, problems or [f"{path.name}: llm_judge has no verdict on a single criterion"]
    notes = [text_or_none(verdicts.get(field)) for field in ("judge_model", "overall_rationale")]
    labels = Labels(
        run=run.id,
        annotator=ANNOTATOR,
        criteria=criteria,
        notes="\n".join(note for note in notes if note),
    )
    return labels, problems


def _is_unparsed(verdicts: Mapping[str, Any]) -> bool:
    """Whether these are the zeros of a reply that the harness could not parse."""
    has_reason = any(
        text_or_none(value) for field, value in verdicts.items() if field.endswith("_rationale")
    )
    has_item = any(value for field, value in verdicts.items() if _criterion_id(field) is not None)
    return not has_reason and not has_item


def _criteria(
    verdicts: dict[str, Any], rubric: Rubric
) -> tuple[dict[str, int | float | None], list[str]]:
    """Values by criterion id, and a line for each field that is not a value of its scale."""
    scales = {criterion.id: criterion.values for criterion in rubric.criteria()}
    values: dict[str, int | float | None] = {}
    unread = []
    for field, raw_value in verdicts.items():
        id = _criterion_id(field)
        if id is None or (field == _S3_FIELD and id not in scales):
            continue
        value = float(raw_value) if isinstance(raw_value, bool) else number(raw_value)
        if value is None or not any(math.isclose(value, level) for level in scales.get(id, ())):
            unread.append(
                f"{field} is {str(raw_value)[:40]!r}, no value of {id} in rubric {rubric.id}"
            )
        else:
            values[id] = int(value) if value == int(value) else value
    return values, unread


def _criterion_id(field: str) -> str | None:
    """The criterion that a field of the verdicts is about; None for other fields."""
    match = _CRITERION_FIELD.fullmatch(field)
    if match is not None:
        return f"S{match[1]}{match[2]}"
    return "S3" if field == _S3_FIELD else None
