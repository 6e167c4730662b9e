"""A judge that plays back answers given before, to the questions of `questions/`: a reading made
elsewhere, or of a demo.

    ambjudge score runs/ --judge replay:answers/        answers/RUN.json: {"S1": {...}, "S2": {...},
    "S3": {...}, "diagnosis": {...}}

They are read as a model's live replies are: held against the reply's schema, their quotes searched
in the run.
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
from ..card.stage_results import unscored
from ..questions.replies import MAX_REPLY, parse_reply, to_results
from .api.messages import Messages


class ReplayJudge(Messages):
    """The answers in a folder, one file a run named after the run's id; what it lacks is unscored.
    JudgeError without one."""

    members: tuple[str, ...] = ()
    prompt_sha256: str | None = None
    questions: frozenset[QuestionName] = frozenset({"S1", "S2", "S3", "diagnosis"})

    def __init__(self, folder: str | Path) -> None:
        super().__init__(DEFAULT_BUDGET, images=False, outputs=False, breakpoint_=False)
        self.name = f"replay:{Path(folder).name}"
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
        said = self._said(request) or ""
        return hashlib.sha256(
            f"{self.record(request).sha256} {request.question} {said}".encode()
        ).hexdigest()

    async def judge(self, request: Request) -> Reply:
        said = self._said(request)
        if said is None:
            return Reply(
                unscored(request.criteria, "no_evidence", "nothing was answered about this run")
            )
        parsed = parse_reply(said, request.question, request.criteria, len(request.run.turns))
        record, quotes = self.record(request), self._quotes(request)
        return Reply(
            to_results(parsed, request.question, request.criteria, record, quotes), raw=(said,)
        )

    def _said(self, request: Request) -> str | None:
        file = self._files.get(request.run.id)
        answers = _answers(file) if file is not None else {}
        return json.dumps(answers[request.question]) if request.question in answers else None


@lru_cache(maxsize=64)
def _answers(file: Path) -> dict[str, object]:
    try:
        if file.stat().st_size > 5 * MAX_REPLY:
            raise JudgeError(f"{file}: is too large to be the answers about a run")
        said = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise JudgeError(
            f"{file}: cannot be read as answers: {type(error).__name__}",
            "give JSON, as docs/labels.md says",
        ) from error
    if not isinstance(said, dict):
        raise JudgeError(
            f"{file}: not an object of questions", 'e.g. {"S1": {...}, "diagnosis": {...}}'
        )
    return said
