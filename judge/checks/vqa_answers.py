"""The answer files of a run, read once, and the answer-level codes that follow from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...error_codes.detectors.answers import AnswerCode, answer_codes
from ...tracks import TRACKS
from ...trajectories.models import Run
from ...trajectories.turns.per_run_cache import once_a_run
from .public_inputs import find_public
from .untrusted_files import Refused, fence_of, read_json

ANSWER = "answer.json"


@once_a_run
def answers_by_file(run: Run) -> dict[Path, Any]:
    """Path of every case's answer.json -> its content, or the Refused that reading it raised."""
    contents: dict[Path, Any] = {}
    for file in run.outputs.files:
        if file.name == ANSWER and file.case is not None:
            try:
                contents[file.path] = read_json(file.path, fence_of(run))
            except Refused as refused:
                contents[file.path] = refused
    return contents


def read_answers(run: Run) -> tuple[dict[str, Any], ...]:
    """Every answer.json that is a readable object, by case; empty if the track has no answers.

    An answer without a question_id gets its folder's name, as that is where the benchmark looks for
    it.
    """
    track = TRACKS.find(run.track)
    if track is None or track.output != "answers" or run.outputs.root is None:
        return ()
    contents = answers_by_file(run)
    answers = []
    for file in run.outputs.files:
        content = contents.get(file.path)
        # Unreadable files are reported by the checks of S4; they hold no answer to look at.
        if isinstance(content, dict):
            answers.append({"question_id": file.case, **content})
    return tuple(answers)


def answer_findings(
    run: Run, answers: tuple[dict[str, Any], ...], public: Path | None = None
) -> tuple[AnswerCode, ...]:
    """Answer-level codes of a run.

    With the public questions, also those that compare an answer with its options.
    """
    if not answers:
        return ()
    inputs = None if public is None else find_public(public, run.task)
    if inputs is None:
        return answer_codes(answers, None)
    questions: dict[str, Any] = {}
    for case in inputs.cases:
        question = inputs.question(case)
        if question is not None:
            questions[case] = question
    return answer_codes(answers, questions)
