"""A judge that plays back recorded answers: readings made elsewhere, or those of the demo.

    ambjudge score runs/ --judge replay:answers/

answers/RUN.json holds {"S1": {...}, "S2": {...}, "S3": {...}, "diagnosis": {...}}. The answers are
parsed like a model's live replies: checked against the reply's schema, their quotes searched in the
run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from ...errors import JudgeError
from ...trajectories.record import DEFAULT_BUDGET
from ..base import QuestionName, Reply, Request
from ..card.fields import REPLAY
from ..card.stage_results import unscored
from ..questions.replies import MAX_REPLY_CHARS, parse_reply, to_results
from .api.messages import Messages


class ReplayJudge(Messages):
    """The answers in a folder, one file a run, named after the run's id.

    What a file lacks is unscored. Raises JudgeError for a folder without answers.
    """

    members: tuple[str, ...] = ()
    prompt_sha256: str | None = None
    questions: frozenset[QuestionName] = frozenset({"S1", "S2", "S3", "diagnosis"})

    def __init__(self, folder: str | Path) -> None:
        super().__init__(DEFAULT_BUDGET, images=False, outputs=False, cache_breakpoint=False)
        self.name = f"{REPLAY}{Path(folder).name}"
        self._files = {file.stem: file for file in Path(folder).glob("*.json")}
        if not self._files:
            raise JudgeError(
                f"{folder}: no such folder, or no RUN.json in it",
                "replay: takes a folder of answers",
            )

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        return {"evidence_budget": self._budget}

    def evidence_sha256(self, request: Request) -> str:
        text = self._answer(request) or ""
        parts = f"{self.record(request).sha256} {request.question} {text}"
        return hashlib.sha256(parts.encode()).hexdigest()

    async def judge(self, request: Request) -> Reply:
        text = self._answer(request)
        if text is None:
            detail = "the folder has no answer about this run"
            return Reply(unscored(request.criteria, "no_evidence", detail))
        parsed = parse_reply(text, request.question, request.criteria, len(request.run.turns))
        results = to_results(
            parsed, request.question, request.criteria, self.record(request), self._quotes(request)
        )
        return Reply(results, raw=(text,))

    def _answer(self, request: Request) -> str | None:
        """The recorded answer to a question as JSON text; None if there is none."""
        file = self._files.get(request.run.id)
        if file is None:
            return None
        answers = _read_answers(file)
        return json.dumps(answers[request.question]) if request.question in answers else None


@lru_cache(maxsize=64)
def _read_answers(file: Path) -> dict[str, object]:
    try:
        if file.stat().st_size > 5 * MAX_REPLY_CHARS:
            raise JudgeError(f"{file}: is too large to be the answers about a run")
        answers = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise JudgeError(
            f"{file}: cannot be read as answers: {type(error).__name__}",
            "give JSON as described in docs/labels.md",
        ) from error
    if not isinstance(answers, dict):
        raise JudgeError(
            f"{file}: not an object of questions", 'for example {"S1": {...}, "diagnosis": {...}}'
        )
    return answers
