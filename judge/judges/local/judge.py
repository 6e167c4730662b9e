"""The local judge: a causal language model that scores items by the likelihood of their allowed
answers.

A run's record is read once (prefill) for all questions on it: its key-value cache stays until
another run is asked about. The items of a question are answered in one more pass over it: they are
laid side by side behind the record, each seeing the record and itself but not the others (a block
mask), so N items cost little and the cache is never copied. Every item is asked with its answers in
both orders and the probabilities are averaged, because small models favour the first option. What
has no answers to choose from (a list of commitments, a number) is left unscored.

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
from ...questions.items import PLAN_ITEM, AskItem
from ...questions.replies import describe_omissions
from .likelihoods import (
    LETTERS,
    NOT_APPLICABLE,
    PROMPTS,
    RATIONALE_PROMPT,
    Answer,
    EvidenceTooLong,
    Scorer,
    named,
    weight_files,
)
from .rationale import REASON_TOKENS, RationaleWriter, quotable

DEFAULT_BUDGET = 12_000
"""Characters of a record; small models lose the thread of longer ones, and prefill time grows with
it."""
MIN_MASS = 0.5
"""Abstain when less of the probability than this lies on the allowed answers: the model did not
understand the question."""


class LocalJudge:
    """Answers with the model at PATH. Loaded at the first question; one at a time (the model is the
    bottleneck)."""

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
        """`rationale`: explain each verdict with a quote and a reason of at most `reason_tokens`
        tokens."""
        self.path = Path(path).expanduser()
        if not self.path.exists():
            raise JudgeError(
                f"local:{path}: no such file or folder", "give a model folder or a .gguf file"
            )
        self.evidence_budget, self.min_mass = max(MIN_BUDGET, evidence_budget), min_mass
        self.rationale, self.reason_tokens = rationale, max(1, reason_tokens)
        self._scorer: Scorer | None = None
        self._writer: RationaleWriter | None = None
        self._weights: str | None = None
        self._waiting: list[tuple[Request, asyncio.Future[Reply]]] = []
        self._worker: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return f"local:{self.path.stem if self.path.is_file() else self.path.name}"

    @property
    def prompt_sha256(self) -> str:
        return prompts.prompt_sha256((*PROMPTS, RATIONALE_PROMPT) if self.rationale else PROMPTS)

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        # Named only when on: verdicts without rationales keep their keys.
        explained = {"rationale": self.reason_tokens} if self.rationale else {}
        return {
            "weights": self._fingerprint(),
            "evidence_budget": self.evidence_budget,
            "packing": PACKING,
            "min_mass": self.min_mass,
            "orders": 2,
            **explained,
        }

    def _fingerprint(self) -> str:
        """Of the weight files' names, sizes and first and last megabyte: the same weights at
        another place are the same judge."""
        if self._weights is None:
            digest = hashlib.sha256()
            for file in weight_files(self.path):
                size = file.stat().st_size
                digest.update(f"{file.name}\0{size}\0".encode())
                with file.open("rb") as stream:
                    digest.update(stream.read(1 << 20))
                    stream.seek(max(0, size - (1 << 20)))
                    digest.update(stream.read(1 << 20))
            self._weights = digest.hexdigest()
        return self._weights

    def evidence_sha256(self, request: Request) -> str:
        return self._record(request).sha256

    def _record(self, request: Request) -> Record:
        return request.memoised(
            ("record", self.evidence_budget, request.record_key),
            lambda: make_record(
                request.run, request.segmentation, request.facts, budget_chars=self.evidence_budget
            ),
        )

    async def judge(self, request: Request) -> Reply:
        """Questions on the run that was read last go first: to read a run costs far more than to
        ask about it."""
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, answer))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await answer

    async def _work(self) -> None:
        content = ""
        while self._waiting:
            place = next(
                (i for i, (r, _) in enumerate(self._waiting) if r.run.content_sha256 == content), 0
            )
            request, answer = self._waiting.pop(place)
            if answer.cancelled():
                continue
            content = request.run.content_sha256
            try:
                reply = await asyncio.to_thread(self._judge, request)
            except BaseException as error:
                if not answer.done():
                    answer.set_exception(error)
                if not isinstance(error, Exception):
                    raise
            else:
                if not answer.done():
                    answer.set_result(reply)

    def _judge(self, request: Request) -> Reply:
        record = self._record(request)
        if request.question == "stages" and (hidden := len(request.run.turns) - len(record.turns)):
            return Reply(
                unscored(request.criteria, "truncated", f"{hidden} turns are not in the record")
            )
        asked = _choices(request)
        results: list[CriterionResult] = []
        warnings: list[str] = []
        written = 0
        tokens = cached = 0
        if asked:
            if self._scorer is None:
                self._scorer = Scorer.load(self.path)
            try:
                answers, tokens, cached = self._scorer.answers(record.text, asked)
            except EvidenceTooLong as error:
                return Reply(unscored(request.criteria, "truncated", str(error)))
            results = [
                self._result(request, c, a, record) for c, a in zip(asked, answers, strict=True)
            ]
            if request.question == "stages":
                results = [_stages_of(request, results)]
            elif self.rationale:
                written = self._explain(request, asked, record, results, warnings)
        found = {r.id: r for r in results}
        none = (
            f"a local judge chooses between at most {len(LETTERS)} answers, and this is no such"
            " choice"
        )
        ordered = tuple(
            found.get(c.id) or CriterionResult.unscored(c.id, "no_evidence", none)
            for c in request.criteria
        )
        usage = Usage(
            calls=1 if asked else 0,
            input_tokens=tokens,
            output_tokens=written,
            cost_usd=0.0,
            cached_tokens=cached,
        )
        return Reply(ordered, usage, warnings=tuple(warnings))

    def _explain(
        self,
        request: Request,
        asked: Sequence[Criterion],
        record: Record,
        results: list[CriterionResult],
        warnings: list[str],
    ) -> int:
        """Add a rationale to every scored result, in place; value and status stay. Returns the
        tokens written."""
        assert self._scorer is not None
        assert self._scorer.kept is not None
        _, tokens, cache = self._scorer.kept
        prefix = len(tokens)
        if self._writer is None:
            self._writer = RationaleWriter(
                self._scorer.model, self._scorer.tokenizer, self.reason_tokens
            )
        quotes, written = QuoteIndex(request.run), 0
        pieces = quotable(record, quotes)
        for place, (criterion, result) in enumerate(zip(asked, results, strict=True)):
            if result.status != "scored" or not pieces:
                continue
            question = self._scorer.explanation_ids(criterion, result)
            matcher = self._writer.matcher(pieces)
            if (
                matcher is None
                or prefix + len(question) + self._writer.longest > self._scorer.context
            ):
                why = (
                    "the record cannot be quoted"
                    if matcher is None
                    else "the model's context is full"
                )
                warnings.append(f"{self.name}, {criterion.id}: no rationale, {why}")
                continue
            found, count = self._writer.write(cache, prefix, question, matcher)
            written += count
            if found is None:
                warnings.append(
                    f"{self.name}, {criterion.id}: no rationale, the model did not finish it"
                )
                continue
            cited = quotes.check(found.turn, found.quote)
            said = f"{found.reason} ({result.rationale})"
            results[place] = result.model_copy(update={"rationale": said, "evidence": (cited,)})
        return written

    def _result(
        self, request: Request, criterion: Criterion, answer: Answer, record: Record
    ) -> CriterionResult:
        best = max(answer.probabilities, key=lambda value: answer.probabilities[value])
        chance = answer.probabilities[best]
        spread = ", ".join(f"{value} {p:.2f}" for value, p in answer.probabilities.items())
        if answer.mass < self.min_mass:
            detail = (
                f"abstained: only {answer.mass:.0%} of the probability lies on the allowed answers"
                f" ({spread})"
            )
            return CriterionResult.unscored(criterion.id, "refused", detail)
        if best == NOT_APPLICABLE:
            detail = f"judged not applicable (probabilities {spread})"
            return CriterionResult(
                id=criterion.id, value=None, status="not_applicable", detail=detail
            )
        value = next(level.value for level in criterion.scale if named(level) == best)
        if value == 0 and record.truncated and is_criteria(request.question):
            detail = f"judged not met, while {describe_omissions(record)}"[:400]
            return CriterionResult.unscored(criterion.id, "truncated", detail)
        vote = Vote(judge=self.name, value=value, probability=chance)
        said: JsonValue = None
        if isinstance(criterion, AskItem):
            texts = {level.value: level.text for level in criterion.scale}
            said = value > 0.5 if criterion.answer.kind == "yes_no" else texts[value]
        return CriterionResult(
            id=criterion.id,
            value=(
                None
                if isinstance(criterion, AskItem) and criterion.answer.kind != "yes_no"
                else value
            ),
            status="scored",
            rationale=f"most likely answer (probabilities {spread})",
            votes=(vote,),
            answer=said,
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
    """The items that are choices between few enough answers; the stages become one choice a turn."""
    if request.question == "stages":
        scale = tuple(Level(value=i / 4, text=text) for i, text in enumerate(_STAGE_TEXTS))
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
    return tuple(
        item
        for item in request.criteria
        if item.id != PLAN_ITEM
        and (not isinstance(item, AskItem) or item.answer.kind in ("yes_no", "choice"))
        and len(item.scale) <= len(LETTERS) - (item.conditional is not None)
    )


def _stages_of(request: Request, results: Sequence[CriterionResult]) -> CriterionResult:
    """The turns' answers as one; unscored when the model abstained on one of them."""
    name = request.criteria[0].id
    if (lost := next((r for r in results if r.value is None), None)) is not None:
        return lost.model_copy(update={"id": name})
    labels: JsonValue = [STAGES[round(4 * (r.value or 0.0))] for r in results]
    return CriterionResult(
        id=name,
        value=None,
        status="scored",
        answer=labels,
        rationale="most likely stage of each turn",
    )
