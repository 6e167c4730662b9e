"""The local judge: a causal language model that scores items by the likelihood of their answers.

A run's record is read once (prefill) for all questions on it: its key-value cache stays until
another run is asked about. The items of a question are answered in one more pass: they are placed
side by side behind the record, each attending to the record and itself but not to the others (a
block mask), so N items cost little and the cache is never copied. Every item is asked with its
answers in both orders and the probabilities are averaged, because small models favour the first
option. What has no answers to choose from (a list of commitments, a number) is left unscored.

With `rationale=True` each verdict gets a short explanation with a quote (`rationale`), which never
changes it.

Needs the extra `local` (torch, transformers, llguidance). Nothing is downloaded: PATH is a folder
with a model, or a GGUF file.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from ....errors import JudgeError
from ....rubrics.model import Criterion, Level
from ....trajectories.models import STAGES
from ....trajectories.record import MIN_BUDGET, PACKING, Record, make_record
from ....trajectories.record.quotes import QuoteIndex
from ...base import EXTRA_QUESTIONS, QuestionName, Reply, Request, Usage, is_criteria
from ...card.stage_results import CriterionResult, Vote, unscored
from ...questions import prompts
from ...questions.forms import NOT_APPLICABLE
from ...questions.items import PLAN_ITEM, AskItem
from ...questions.replies import describe_omissions
from .likelihoods import (
    LETTERS,
    QUESTION_PROMPT,
    RATIONALE_PROMPT,
    RECORD_PROMPT,
    SYSTEM_PROMPT,
    AnswerLikelihoods,
    EvidenceTooLong,
    LikelihoodScorer,
    value_label,
    weight_files,
)
from .rationale import REASON_TOKENS, Rationale, RationaleWriter, quotable_pieces

DEFAULT_BUDGET = 12_000
"""Characters of a record; small models lose the thread of longer ones, and prefill time grows with
it."""
MIN_MASS = 0.5
"""Abstain if the allowed answers have less of the probability than this: the model did not
understand the question."""
_HASHED_BYTES = 1 << 20
"""Of the beginning and the end of each weight file."""


class LocalJudge:
    """Answers with the model at PATH, one question at a time, as the model is the bottleneck.

    The model is loaded at the first question.
    """

    members: tuple[str, ...] = ()
    questions: frozenset[QuestionName] = EXTRA_QUESTIONS - {"brief"}

    def __init__(
        self,
        path: str,
        *,
        evidence_budget: int = DEFAULT_BUDGET,
        min_mass: float = MIN_MASS,
        rationale: bool = False,
        reason_tokens: int = REASON_TOKENS,
    ) -> None:
        """`evidence_budget`: characters of a record. `min_mass`: see MIN_MASS.

        `rationale`: explain each verdict with a quote and a reason of at most `reason_tokens`
        tokens.
        """
        self.path = Path(path).expanduser()
        if not self.path.exists():
            raise JudgeError(
                f"local:{path}: no such file or folder", "give a model folder or a .gguf file"
            )
        self.evidence_budget, self.min_mass = max(MIN_BUDGET, evidence_budget), min_mass
        self.rationale, self.reason_tokens = rationale, max(1, reason_tokens)
        self._scorer: LikelihoodScorer | None = None
        self._writer: RationaleWriter | None = None
        self._weights_sha256: str | None = None
        self._waiting: list[tuple[Request, asyncio.Future[Reply]]] = []
        self._worker: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return f"local:{self.path.stem if self.path.is_file() else self.path.name}"

    @property
    def prompt_sha256(self) -> str:
        return prompts.prompt_sha256(self._prompt_names)

    @property
    def prompt_bytes(self) -> bytes:
        return prompts.prompt_bytes(self._prompt_names)

    @property
    def _prompt_names(self) -> tuple[str, ...]:
        names: tuple[str, ...] = (SYSTEM_PROMPT, RECORD_PROMPT, QUESTION_PROMPT)
        return (*names, RATIONALE_PROMPT) if self.rationale else names

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        parameters: dict[str, str | int | float | bool | None] = {
            "weights": self._fingerprint(),
            "evidence_budget": self.evidence_budget,
            "packing": PACKING,
            "min_mass": self.min_mass,
            "orders": 2,
        }
        # Part of the key only if on, so that verdicts without rationales keep their keys.
        if self.rationale:
            parameters["rationale"] = self.reason_tokens
        return parameters

    def _fingerprint(self) -> str:
        """Hash of the weight files' names, sizes, first and last megabyte.

        The same weights at another place are the same judge.
        """
        if self._weights_sha256 is None:
            digest = hashlib.sha256()
            for file in weight_files(self.path):
                size = file.stat().st_size
                digest.update(f"{file.name}\0{size}\0".encode())
                with file.open("rb") as stream:
                    digest.update(stream.read(_HASHED_BYTES))
                    stream.seek(max(0, size - _HASHED_BYTES))
                    digest.update(stream.read(_HASHED_BYTES))
            self._weights_sha256 = digest.hexdigest()
        return self._weights_sha256

    def evidence_sha256(self, request: Request) -> str:
        return self._record(request).sha256

    def _record(self, request: Request) -> Record:
        return request.memoised(
            ("record", self.evidence_budget, request.record_key),
            lambda: make_record(
                request.run, request.segmentation, request.facts, budget_chars=self.evidence_budget
            ),
        )

    # The queue of requests.

    async def judge(self, request: Request) -> Reply:
        """The reply, once the requests before it are answered.

        Requests on the run that was read last go first: to read a run costs far more than to ask
        about it.
        """
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, reply))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._answer_waiting())
        return await reply

    async def _answer_waiting(self) -> None:
        last_run = ""
        while self._waiting:
            request, answer = self._waiting.pop(self._next_index(last_run))
            if answer.cancelled():
                continue
            last_run = request.run.content_sha256
            try:
                reply = await asyncio.to_thread(self._reply, request)
            except BaseException as error:
                if not answer.done():
                    answer.set_exception(error)
                if not isinstance(error, Exception):
                    raise
            else:
                if not answer.done():
                    answer.set_result(reply)

    def _next_index(self, last_run: str) -> int:
        for index, (request, _) in enumerate(self._waiting):
            if request.run.content_sha256 == last_run:
                return index
        return 0

    # One reply.

    def _reply(self, request: Request) -> Reply:
        record = self._record(request)
        hidden_turns = len(request.run.turns) - len(record.turns)
        if request.question == "stages" and hidden_turns:
            detail = f"{hidden_turns} turns are not in the record"
            return Reply(unscored(request.criteria, "truncated", detail))
        choices = _choices(request)
        if not choices:
            return Reply(self._in_order(request, []), Usage())
        if self._scorer is None:
            self._scorer = LikelihoodScorer.load(self.path)
        try:
            answers, input_tokens, cached_tokens = self._scorer.answers(record, choices)
        except EvidenceTooLong as error:
            return Reply(unscored(request.criteria, "truncated", str(error)))
        results = [
            self._result(request, choice, answer, record)
            for choice, answer in zip(choices, answers, strict=True)
        ]
        output_tokens = 0
        warnings: list[str] = []
        if request.question == "stages":
            results = [_stages_result(request, results)]
        elif self.rationale:
            output_tokens, warnings = self._add_rationales(
                self._scorer, request, choices, record, results
            )
        usage = Usage(
            calls=1,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cost_usd=0.0,
            cached_tokens=cached_tokens,
        )
        return Reply(self._in_order(request, results), usage, warnings=tuple(warnings))

    def _in_order(
        self, request: Request, results: Sequence[CriterionResult]
    ) -> tuple[CriterionResult, ...]:
        """A result for every item, in the order of the request."""
        by_id = {result.id: result for result in results}
        no_choice = (
            f"a local judge can only answer items that are a choice of at most {len(LETTERS)}"
            " answers"
        )
        return tuple(
            by_id.get(item.id) or CriterionResult.unscored(item.id, "no_evidence", no_choice)
            for item in request.criteria
        )

    def _add_rationales(
        self,
        scorer: LikelihoodScorer,
        request: Request,
        choices: Sequence[Criterion],
        record: Record,
        results: list[CriterionResult],
    ) -> tuple[int, list[str]]:
        """Add a rationale to every scored result, in place; value and status stay.

        Returns the number of tokens written, and warnings.
        """
        quotes = QuoteIndex(request.run)
        pieces = quotable_pieces(record, quotes)
        tokens = 0
        warnings = []
        for index, (criterion, result) in enumerate(zip(choices, results, strict=True)):
            if result.status != "scored" or not pieces:
                continue
            question = scorer.explanation_ids(criterion, result)
            rationale, written = self._write_rationale(scorer, question, pieces)
            tokens += written
            if isinstance(rationale, str):
                warnings.append(f"{self.name}, {criterion.id}: no rationale, {rationale}")
                continue
            evidence = quotes.check(rationale.turn, rationale.quote)
            text = f"{rationale.reason} ({result.rationale})"
            update = {"rationale": text, "evidence": (evidence,)}
            results[index] = result.model_copy(update=update)
        return tokens, warnings

    def _write_rationale(
        self,
        scorer: LikelihoodScorer,
        question: Sequence[int],
        pieces: Mapping[int, Sequence[str]],
    ) -> tuple[Rationale | str, int]:
        """A rationale, or why there is none, and the number of tokens written."""
        assert scorer.evidence is not None
        if self._writer is None:
            self._writer = RationaleWriter(scorer.model, scorer.tokenizer, self.reason_tokens)
        prefix_length = len(scorer.evidence.tokens)
        matcher = self._writer.matcher(pieces)
        if matcher is None:
            return "the record cannot be quoted", 0
        if prefix_length + len(question) + self._writer.max_tokens > scorer.context:
            return "the model's context is full", 0
        rationale, written = self._writer.write(
            scorer.evidence.cache, prefix_length, question, matcher
        )
        return rationale or "the model did not finish it", written

    def _result(
        self, request: Request, criterion: Criterion, answer: AnswerLikelihoods, record: Record
    ) -> CriterionResult:
        """The verdict that the likeliest answer means; `refused` if the model abstains."""
        probabilities = answer.probabilities
        best = max(probabilities, key=lambda value: probabilities[value])
        likelihoods = ", ".join(f"{value} {p:.2f}" for value, p in probabilities.items())
        if answer.mass < self.min_mass:
            detail = (
                f"abstained: only {answer.mass:.0%} of the probability lies on the allowed answers"
                f" ({likelihoods})"
            )
            return CriterionResult.unscored(criterion.id, "refused", detail)
        if best == NOT_APPLICABLE:
            return CriterionResult(
                id=criterion.id,
                value=None,
                status="not_applicable",
                detail=f"judged not applicable (probabilities {likelihoods})",
            )
        (level,) = [level for level in criterion.scale if value_label(level) == best]
        # What was left out of the record may be what meets the criterion.
        if level.value == 0 and record.truncated and is_criteria(request.question):
            detail = f"judged not met, while {describe_omissions(record)}"[:400]
            return CriterionResult.unscored(criterion.id, "truncated", detail)
        value: float | None = level.value
        reply: JsonValue = None
        if isinstance(criterion, AskItem) and criterion.answer.kind == "yes_no":
            reply = level.value > 0.5
        elif isinstance(criterion, AskItem):
            reply, value = level.text, None
        return CriterionResult(
            id=criterion.id,
            value=value,
            status="scored",
            rationale=f"most likely answer (probabilities {likelihoods})",
            votes=(Vote(judge=self.name, value=level.value, probability=probabilities[best]),),
            answer=reply,
        )


_STAGE_TEXTS = (
    (
        "Plan: reading the task, looking at inputs to understand it, comparing methods, writing the"
        " plan."
    ),
    "Setup: packages, devices, weights, fitting inputs to the model, writing the program.",
    "Validate: running one or a few cases as a test, looking at their results, debugging on them.",
    "Inference: running the whole case set.",
    "Submit: checking the produced files, packaging, submitting, the closing message.",
)


def _choices(request: Request) -> tuple[Criterion, ...]:
    """The items that are choices between few enough answers; of the stages one choice a turn."""
    if request.question == "stages":
        return _stage_choices(request)
    return tuple(item for item in request.criteria if _is_choice(item))


def _stage_choices(request: Request) -> tuple[Criterion, ...]:
    scale = tuple(Level(value=index / 4, text=text) for index, text in enumerate(_STAGE_TEXTS))
    return tuple(
        Criterion(
            id=f"turn{turn.index}",
            title=f"stage of turn {turn.index}",
            text="Which stage of the work is this turn?",
            scale=scale,
            evidence=("executions",),
            source="ours",
        )
        for turn in request.run.turns
    )


def _is_choice(item: Criterion) -> bool:
    if item.id == PLAN_ITEM:
        return False
    if isinstance(item, AskItem) and item.answer.kind not in ("yes_no", "choice"):
        return False
    answers = len(item.scale) + (item.conditional is not None)
    return answers <= len(LETTERS)


def _stages_result(request: Request, results: Sequence[CriterionResult]) -> CriterionResult:
    """The turns' stages as one answer; unscored if the model abstained on one of them."""
    item_id = request.criteria[0].id
    stages: list[JsonValue] = []
    for result in results:
        if result.value is None:
            return result.model_copy(update={"id": item_id})
        stages.append(STAGES[round(4 * result.value)])
    return CriterionResult(
        id=item_id,
        value=None,
        status="scored",
        answer=stages,
        rationale="most likely stage of each turn",
    )
