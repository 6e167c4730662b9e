"""The answer files of a run as read, and the answer-level codes that they earn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...error_codes.detectors.answers import AnswerCode, answer_codes
from ...tracks import TRACKS
from ...trajectories.layout import Fence
from ...trajectories.models import Run
from .files import Refused, read_json
from .public import find_public

ANSWER = "answer.json"


def read_answers(run: Run) -> tuple[dict[str, Any], ...]:
    """Every readable answer.json that is an object, by case; empty where a track delivers something else.

    An answer without a question_id gets its folder's name, as that is where the benchmark looks for it.
    """
    track = TRACKS.find(run.track)
    if track is None or track.output != "answers" or run.outputs.root is None:
        return ()
    root = Fence(run.outputs.root)
    found = []
    for file in run.outputs.files:
        if file.name != ANSWER or file.case is None:
            continue
        try:
            value = read_json(file.path, root)
        except Refused:
            continue  # The checks of S4 name it; there is no answer to look at.
        if isinstance(value, dict):
            found.append({"question_id": file.case, **value})
    return tuple(found)


def findings(run: Run, answers: tuple[dict[str, Any], ...], public: Path | None = None) -> tuple[AnswerCode, ...]:
    """Answer-level codes; with the public questions also those that hold an answer against its options."""
    if not answers:
        return ()
    inputs = find_public(public, run.task) if public is not None else None
    questions = (
        {case: q for case in inputs.cases if (q := inputs.question(case)) is not None} if inputs is not None else None
    )
    return answer_codes(answers, questions)
