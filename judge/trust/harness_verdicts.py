"""The harness's own verdicts, as its reports keep them under `llm_judge`, in the form of an
annotator's labels.

So `ambjudge agreement` holds any judge against the one that the benchmark itself asked. Only S1-S3
are taken, criterion by criterion: the harness's failure codes are of another taxonomy, its S4 and
S5 are measured, and branch eval_report_gen keeps stage means alone (AutoMedBench/AutoMedBench,
llm_judge.py of each branch, `JudgeVerdict`).
"""

from __future__ import annotations

import math
import re
from typing import Any

from ...rubrics.load import rubric_for
from ...rubrics.model import Rubric
from ...trajectories.models import Run
from ...trajectories.reading.harness_report import flat_report
from ...trajectories.reading.json_bytes import number, read_json, text_or_none
from ...trajectories.reading.layout import report_file, side_file
from .human_labels import Labels

ANNOTATOR = "harness"
_ITEM = re.compile(r"s([1-3])([a-z])_\w{1,60}")
_LEVEL = "s3_validate_score"


def harness_labels(run: Run) -> tuple[Labels | None, list[str]]:
    """The verdicts that came with the run, judged again or at first, and what of them could not be
    taken.

    None when no report has any, and for a reply that the harness could not parse: it writes zeros
    without a word then, and a judge's failure is no grade. Raises InputError when the report cannot
    be read.
    """
    path = side_file(run.folder, "detail_report_new-rubrics.json") or report_file(run.folder)
    data = flat_report(read_json(path)) if path is not None else None
    said = data.get("llm_judge") if isinstance(data, dict) else None
    if path is None or not isinstance(said, dict) or not said:
        return None, ["no llm_judge in a report"]
    if not any(text_or_none(value) for key, value in said.items() if key.endswith("_rationale")):
        return None, [
            f"{path.name}: llm_judge gives no reason for anything, as after a reply that was not"
            " parsed"
        ]
    criteria, left = _criteria(said, rubric_for(run.track, run.task))
    lost = [f"{path.name}: llm_judge.{line}" for line in left]
    if not criteria:
        return None, lost or [f"{path.name}: llm_judge has no verdict on a single criterion"]
    notes = [text_or_none(said.get(key)) for key in ("judge_model", "overall_rationale")]
    labels = Labels(
        run=run.id, annotator=ANNOTATOR, criteria=criteria, notes="\n".join(n for n in notes if n)
    )
    return labels, lost


def _criteria(
    said: dict[str, Any], rubric: Rubric
) -> tuple[dict[str, int | float | None], list[str]]:
    """Values by criterion id, and the fields that are no value of the rubric."""
    scales = {criterion.id: criterion.values for criterion in rubric.criteria()}
    found: dict[str, int | float | None] = {}
    left = []
    for key, value in said.items():
        match = _ITEM.fullmatch(key)
        id = (
            f"S{match[1]}{match[2]}"
            if match
            else "S3"
            if key == _LEVEL and "S3" in scales
            else None
        )
        if id is None:
            continue
        level = number(value)
        if level is None or not any(math.isclose(level, one) for one in scales.get(id, ())):
            left.append(f"{key} is {str(value)[:40]!r}, no value of {id} in rubric {rubric.id}")
        else:
            found[id] = int(level) if level == int(level) else level
    return found, left
