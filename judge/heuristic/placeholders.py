"""How many answers of a VQA run are placeholders: from the delivered answer files, else from printed results."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...trajectories.models import Run
from ..checks.files import Refused, read_json
from ..checks.vqa import is_placeholder

MAX_FILES = 5_000
_RAW_FIELDS = ("raw_model_output", "raw_output", "raw", "model_output")
_ANSWER_FIELDS = ("predicted_label", "predicted_answer", "answer", "label")
_PRINTED = re.compile(r"\b(?:heuristic|fallback|placeholder|mock|dummy|stub): ", re.IGNORECASE)


@dataclass(frozen=True)
class Placeholders:
    """Counts over the answers seen. `rate` is None when none was seen."""

    answers: int
    placeholders: int
    source: str
    turn: int | None = None

    @property
    def rate(self) -> float | None:
        return self.placeholders / self.answers if self.answers else None


def count_placeholders(run: Run) -> Placeholders:
    """Placeholders among the delivered answers; without files, among the answers that the last full print shows."""
    answers = bad = 0
    for file in run.outputs.files[:MAX_FILES]:
        if not file.name.endswith("answer.json") or run.outputs.root is None:
            continue
        try:
            data = read_json(file.path, run.outputs.root)
        except Refused:  # no answer; S4 says what is wrong with the file
            continue
        if isinstance(data, dict):
            raw = next((data[k] for k in _RAW_FIELDS if k in data), None)
            answer = next((data[k] for k in _ANSWER_FIELDS if data.get(k) not in (None, "")), None)
            text = raw if isinstance(raw, str) else ""
            if text.strip() or answer is not None:
                answers, bad = answers + 1, bad + is_placeholder(text, answer is not None)
    if answers:
        return Placeholders(answers, bad, "files")
    for turn in reversed(run.turns):
        lines = [line for line in turn.output.split("\n") if re.match(r"\s*[A-Za-z][\w-]{0,60}\d\W+\w", line)]
        if len(lines) >= 5:
            return Placeholders(len(lines), sum(1 for line in lines if _PRINTED.search(line)), "printed", turn.index)
    return Placeholders(0, 0, "none")
