"""The answer files of a run as read, and the answer-level codes that they earn."""

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
    """What every case's answer.json holds, or the Refused that stopped the reading; each is read
    once."""
    found: dict[Path, Any] = {}
    for file in run.outputs.files:
        if file.name == ANSWER and file.case is not None:
            try:
                found[file.path] = read_json(file.path, fence_of(run))
            except Refused as refused:
                found[file.path] = refused
    return found


def read_answers(run: Run) -> tuple[dict[str, Any], ...]:
    """Every readable answer.json that is an object, by case; empty where a track delivers something
    else.

    An answer without a question_id gets its folder's name, as that is where the benchmark looks for
    it.
    """
    track = TRACKS.find(run.track)
    if track is None or track.output != "answers" or run.outputs.root is None:
        return ()
    # The checks of S4 name what cannot be read; there is no answer to look at.
    known = answers_by_file(run)
    files = [file for file in run.outputs.files if isinstance(known.get(file.path), dict)]
    return tuple({"question_id": file.case, **known[file.path]} for file in files)


def findings(
    run: Run, answers: tuple[dict[str, Any], ...], public: Path | None = None
) -> tuple[AnswerCode, ...]:
    """Answer-level codes; with the public questions also those that hold an answer against its
    options."""
    if not answers:
        return ()
    inputs = find_public(public, run.task) if public is not None else None
    questions = (
        {case: q for case in inputs.cases if (q := inputs.question(case)) is not None}
        if inputs is not None
        else None
    )
    return answer_codes(answers, questions)
