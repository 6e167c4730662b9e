"""The local judge: a causal language model that scores items by the likelihood of their allowed answers.

A run's record is read once (prefill) for all questions on it: its key-value cache stays until another run is asked
about. The items of a question are answered in one more pass over it: they are laid side by side behind the record, each
seeing the record and itself but not the others (a block mask), so N items cost little and the cache is never copied.
Every item is asked with its answers in both orders and the probabilities are averaged, because small models favour the
first option. What has no answers to choose from (a list of commitments, a number) is left unscored.

With `rationale=True` each verdict gets a short explanation with a quote (`local_rationale`), which never changes it.

Needs the extra `local` (torch, transformers, llguidance). Nothing is downloaded: PATH is a folder with a model, or a GGUF file.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import os
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from ...errors import JudgeError
from ...rubrics.model import Criterion, Level
from ...trajectories.models import STAGES
from ...trajectories.record import MIN_BUDGET, PACKING, Record, make_record
from ...trajectories.record.quotes import QuoteIndex
from .. import prompts
from ..base import CRITERIA, QuestionName, Reply, Request, Usage
from ..questions.items import PLAN_ITEM, AskItem
from ..questions.replies import describe_omissions, unscored
from ..scorecard import CriterionResult, Vote
from .rationale import REASON_TOKENS, RationaleWriter, quotable

LETTERS = string.ascii_uppercase[:20]
"""Names of the answers to choose from."""
DEFAULT_BUDGET = 12_000
"""Characters of a record; small models lose the thread of longer ones, and prefill time grows with it."""
MIN_MASS = 0.5
"""Abstain when less of the probability than this lies on the allowed answers: the model did not understand the question."""
NOT_APPLICABLE = "not_applicable"
PROMPTS = ("local_system", "local_question")
RATIONALE_PROMPT = "local_rationale"


@dataclass(frozen=True)
class Answer:
    """Probabilities of a criterion's allowed answers (they sum to 1) and the mass that they had among all tokens."""

    probabilities: Mapping[str, float]
    """Value as text (`1`, `0.5`, `0`, `not_applicable`) -> probability."""
    mass: float


class LocalJudge:
    """Answers with the model at PATH. Loaded at the first question; one at a time (the model is the bottleneck)."""

    members: tuple[str, ...] = ()
    questions: frozenset[QuestionName] = frozenset({"S1", "S2", "S3", "diagnosis", "stages", "ask"})

    def __init__(
        self, path: str, *, evidence_budget: int = DEFAULT_BUDGET, min_mass: float = MIN_MASS,
        device: str | None = None, rationale: bool = False, reason_tokens: int = REASON_TOKENS,
    ) -> None:  # fmt: skip
        """`rationale`: explain each verdict with a quote and a reason of at most `reason_tokens` tokens."""
        self.path = Path(path).expanduser()
        if not self.path.exists():
            raise JudgeError(f"local:{path}: no such file or folder", "give a model folder or a .gguf file")
        self.evidence_budget, self.min_mass, self._device = max(MIN_BUDGET, evidence_budget), min_mass, device
        self.rationale, self.reason_tokens = rationale, max(1, reason_tokens)
        self._scorer: Scorer | None = None
        self._writer: RationaleWriter | None = None
        self._weights: str | None = None
        self._waiting: list[tuple[Request, asyncio.Future[Reply]]] = []
        self._worker: asyncio.Task[None] | None = None
        self._last: tuple[object, Record] | None = None

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
            "weights": self._fingerprint(), "evidence_budget": self.evidence_budget, "packing": PACKING,
            "min_mass": self.min_mass, "orders": 2, **explained,
        }  # fmt: skip

    def _fingerprint(self) -> str:
        """Of the weight files' names, sizes and first and last megabyte: the same weights at another place are the same judge."""
        if self._weights is None:
            digest = hashlib.sha256()
            for file in _weight_files(self.path):
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
        key = (
            request.run.content_sha256,
            request.run.track,
            request.run.tier,
            request.segmentation.turn_stages,
            request.facts,
        )
        last = self._last  # once: keys are made while another thread judges
        if last is None or last[0] != key:
            record = make_record(request.run, request.segmentation, request.facts, budget_chars=self.evidence_budget)
            self._last = last = (key, record)
        return last[1]

    async def judge(self, request: Request) -> Reply:
        """Questions on the run that was read last go first: to read a run costs far more than to ask about it."""
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, answer))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await answer

    async def _work(self) -> None:
        content = ""
        while self._waiting:
            place = next((i for i, (r, _) in enumerate(self._waiting) if r.run.content_sha256 == content), 0)
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
            return Reply(unscored(request.criteria, "truncated", f"{hidden} turns are not in the record"))
        asked = _choices(request)
        results: list[CriterionResult] = []
        warnings: list[str] = []
        written = 0

        def take(answers: Sequence[Answer], cache: Any, prefix: int) -> None:
            nonlocal written
            results.extend(self._result(request, c, a, record) for c, a in zip(asked, answers, strict=True))
            if self.rationale and request.question != "stages":
                written = self._explain(request, asked, record, results, cache, prefix, warnings)

        tokens = cached = 0
        if asked:
            if self._scorer is None:
                self._scorer = Scorer.load(self.path, self._device)
            try:
                _, tokens, cached = self._scorer.answers(record.text, asked, take)
            except EvidenceTooLong as error:
                return Reply(unscored(request.criteria, "truncated", str(error)))
        if asked and request.question == "stages":
            results = [_stages_of(request, results)]
        found = {r.id: r for r in results}
        none = f"a local judge chooses between at most {len(LETTERS)} answers, and this is no such choice"
        ordered = tuple(
            found.get(c.id)
            or CriterionResult(id=c.id, value=None, status="unscored", reason="no_evidence", detail=none)
            for c in request.criteria
        )
        usage = Usage(
            calls=1 if asked else 0, input_tokens=tokens, output_tokens=written, cost_usd=0.0, cached_tokens=cached
        )
        return Reply(ordered, usage, warnings=tuple(warnings))

    def _explain(
        self, request: Request, asked: Sequence[Criterion], record: Record, results: list[CriterionResult], cache: Any,
        prefix: int, warnings: list[str],
    ) -> int:  # fmt: skip
        """Add a rationale to every scored result, in place; value and status stay. Returns the tokens written."""
        assert self._scorer is not None
        if self._writer is None:
            self._writer = RationaleWriter(self._scorer.model, self._scorer.tokenizer, self.reason_tokens)
        quotes, written = QuoteIndex(request.run), 0
        pieces = quotable(record, quotes)
        for place, (criterion, result) in enumerate(zip(asked, results, strict=True)):
            if result.status != "scored" or not pieces:
                continue
            question = self._scorer.explanation_ids(criterion, result)
            matcher = self._writer.matcher(pieces)
            if matcher is None or prefix + len(question) + self._writer.longest > self._scorer.context:
                why = "the record cannot be quoted" if matcher is None else "the model's context is full"
                warnings.append(f"{self.name}, {criterion.id}: no rationale, {why}")
                continue
            found, count = self._writer.write(cache, prefix, question, matcher)
            written += count
            if found is None:
                warnings.append(f"{self.name}, {criterion.id}: no rationale, the model did not finish it")
                continue
            cited = quotes.check(found.turn, found.quote)
            said = f"{found.reason} ({result.rationale})"
            results[place] = result.model_copy(update={"rationale": said, "evidence": (cited,)})
        return written

    def _result(self, request: Request, criterion: Criterion, answer: Answer, record: Record) -> CriterionResult:
        best = max(answer.probabilities, key=lambda value: answer.probabilities[value])
        chance = answer.probabilities[best]
        spread = ", ".join(f"{value} {p:.2f}" for value, p in answer.probabilities.items())
        if answer.mass < self.min_mass:
            detail = f"abstained: only {answer.mass:.0%} of the probability lies on the allowed answers ({spread})"
            return CriterionResult(id=criterion.id, value=None, status="unscored", reason="refused", detail=detail)
        if best == NOT_APPLICABLE:
            detail = f"judged not applicable (probabilities {spread})"
            return CriterionResult(id=criterion.id, value=None, status="not_applicable", detail=detail)
        value = next(level.value for level in criterion.scale if _named(level) == best)
        if value == 0 and record.truncated and request.question in CRITERIA:
            detail = f"judged not met, while {describe_omissions(record)}"[:400]
            return CriterionResult(id=criterion.id, value=None, status="unscored", reason="truncated", detail=detail)
        vote = Vote(judge=self.name, value=value, probability=chance)
        said: JsonValue = None
        if isinstance(criterion, AskItem):
            texts = {level.value: level.text for level in criterion.scale}
            said = value > 0.5 if criterion.answer.kind == "yes_no" else texts[value]
        return CriterionResult(
            id=criterion.id,
            value=None if isinstance(criterion, AskItem) and criterion.answer.kind != "yes_no" else value,
            status="scored",
            rationale=f"most likely answer (probabilities {spread})",
            votes=(vote,),
            answer=said,
        )


def _named(level: Level) -> str:
    """A level's value as it stands among the probabilities."""
    return f"{level.value:g}"


_STAGE_TEXTS = (
    "Plan: reading the task, looking at inputs to understand it, comparing methods, writing the plan.",
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
            Criterion(id=f"turn{turn.index}", title=f"stage of turn {turn.index}", text="Which stage of the work is this turn?",
                      scale=scale, evidence=("executions",), source="ours")
            for turn in request.run.turns
        )  # fmt: skip
    return tuple(
        item for item in request.criteria
        if item.id != PLAN_ITEM and (not isinstance(item, AskItem) or item.answer.kind in ("yes_no", "choice"))
        and len(item.scale) <= len(LETTERS) - (item.conditional is not None)
    )  # fmt: skip


def _stages_of(request: Request, results: Sequence[CriterionResult]) -> CriterionResult:
    """The turns' answers as one; unscored when the model abstained on one of them."""
    name = request.criteria[0].id
    if (lost := next((r for r in results if r.value is None), None)) is not None:
        return lost.model_copy(update={"id": name})
    labels: JsonValue = [STAGES[round(4 * (r.value or 0.0))] for r in results]
    return CriterionResult(
        id=name, value=None, status="scored", answer=labels, rationale="most likely stage of each turn"
    )


class EvidenceTooLong(Exception):
    """The evidence with its longest question does not fit the model's context."""


def _weight_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(f for f in path.iterdir() if f.suffix in (".safetensors", ".gguf", ".bin") and f.is_file())
    if not found:
        raise JudgeError(f"{path}: no model weights in this folder", "expected .safetensors or .gguf files")
    return found


class Scorer:
    """A loaded model that gives the probabilities of labelled answers after a shared text."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.context = int(getattr(model.config, "max_position_embeddings", 0) or 1 << 30)
        self.labels = self._label_tokens()
        self.label_ids = sorted({i for ids in self.labels.values() for i in ids})
        self._kept: tuple[str, list[int], Any] | None = None
        """The evidence read last, its tokens, and their keys and values."""

    @classmethod
    def load(cls, path: Path, device: str | None = None) -> Scorer:
        """Load from a folder or a GGUF file, offline. JudgeError when the extra is missing or the model cannot be read."""
        # Read at import: no network, and no bars or advice on the user's terminal.
        quiet = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TQDM_DISABLE": "1"}
        for key, value in quiet.items():
            os.environ.setdefault(key, value)
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
            from transformers.utils.logging import disable_progress_bar
        except ImportError as error:
            raise JudgeError(
                f"local judge: {error.name or error} is not installed", "pip install 'ambjudge[local]'"
            ) from None
        disable_progress_bar()
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        kind = torch.bfloat16 if device.startswith("cuda") else torch.float32
        gguf = path if path.is_file() else next((f for f in _weight_files(path) if f.suffix == ".gguf"), None)
        extra: dict[str, Any] = {"gguf_file": gguf.name} if gguf else {}
        folder = str(gguf.parent if gguf else path)
        try:
            # Loaders draw bars whatever they are told; what matters comes as an exception.
            with contextlib.redirect_stderr(io.StringIO()):
                tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, **extra)
                model = AutoModelForCausalLM.from_pretrained(
                    folder, local_files_only=True, dtype=kind, attn_implementation="sdpa", **extra
                )
        except Exception as error:  # the loaders raise whatever the file makes them raise
            first = str(error).strip().splitlines()[0][:200] if str(error).strip() else ""
            raise JudgeError(
                f"{path}: cannot be loaded as a causal language model: {type(error).__name__}: {first}",
                "give a transformers model folder or a .gguf file",
            ) from None
        return cls(model.to(device).eval(), tokenizer)

    def _label_tokens(self) -> dict[str, list[int]]:
        """Letter -> ids of the tokens that mean it at the start of an answer ("A", " A")."""
        found: dict[str, list[int]] = {}
        for letter in LETTERS:
            ids = {tuple(self._ids(text)) for text in (letter, f" {letter}")}
            single = sorted(i[0] for i in ids if len(i) == 1)
            if not single:
                raise JudgeError(f"local judge: the tokenizer has no single token for {letter!r}", "use another model")
            found[letter] = single
        return found

    def _ids(self, text: str) -> list[int]:
        # Special tokens spelled out in a transcript must stay ordinary text, or it could end its own message.
        return list(self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"])

    def _template_ids(self, text: str) -> list[int]:
        # The chat template's own text: its special tokens are meant.
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _frame(self) -> tuple[list[int], list[int]]:
        """Tokens before the evidence and after a question: the chat template around one user message."""
        mark = "\x1fevidence\x1f"
        system = prompts.load(PROMPTS[0])
        if getattr(self.tokenizer, "chat_template", None):
            messages = [{"role": "system", "content": system}, {"role": "user", "content": mark}]
            try:
                text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            except Exception:  # some templates refuse a system message
                merged = [{"role": "user", "content": f"{system}\n\n{mark}"}]
                text = self.tokenizer.apply_chat_template(merged, tokenize=False, add_generation_prompt=True)
        else:
            text = f"{system}\n\n{mark}\n\nAnswer: "
        before, _, after = text.partition(mark)
        return self._template_ids(before), self._template_ids(after)

    def explanation_ids(self, criterion: Criterion, result: CriterionResult) -> list[int]:
        """The tokens that ask, right behind the evidence, why this verdict was given."""
        texts = {level.value: level.text for level in criterion.scale}
        answer = result.answer if result.value is None else texts.get(result.value, "")
        slots = {"title": criterion.title, "text": criterion.text, "answer": str(answer or "")}
        return [*self._ids(prompts.fill(RATIONALE_PROMPT, slots)), *self._frame()[1]]

    def answers(
        self, evidence: str, criteria: Sequence[Criterion],
        while_cached: Callable[[Sequence[Answer], Any, int], None] | None = None,
    ) -> tuple[list[Answer], int, int]:  # fmt: skip
        """One Answer a criterion, how many tokens they rest on, and how many of these were in the key-value cache already.

        EvidenceTooLong when they do not fit the context. The cache of the evidence stays for the next call on it.

        `while_cached(answers, cache, prefix)` may use the key-value cache of the `prefix` tokens up to the evidence's
        end, and must leave it as it was.
        """
        before, after = self._frame()
        kept = self._kept if self._kept is not None and self._kept[0] == evidence else None
        cached = 0 if kept is None else len(kept[1])
        prefix = kept[1] if kept is not None else [*before, *self._ids(evidence)]
        asked = [question for criterion in criteria for question in _questions(criterion)]
        suffixes = [[*self._ids(text), *after] for text, _ in asked]
        longest = max(len(s) for s in suffixes)
        if len(prefix) + longest > self.context:
            raise EvidenceTooLong(f"{len(prefix) + longest:,} tokens, but the model's context has {self.context:,}")
        if kept is None:
            self._kept = None  # freed before the next one is read
            self._kept = kept = (evidence, prefix, self._read(prefix))
        cache = kept[2]
        rows = self._next_token(cache, len(prefix), suffixes)
        answers = []
        for number, _ in enumerate(criteria):
            both = [self._weigh(rows[2 * number + k], asked[2 * number + k][1]) for k in (0, 1)]
            mass = sum(sum(part.values()) for part in both) / 2
            means = {value: (both[0][value] + both[1][value]) / 2 for value in both[0]}
            total = sum(means.values()) or 1.0
            answers.append(Answer({value: p / total for value, p in means.items()}, mass))
        if while_cached is not None:
            import torch

            with torch.inference_mode():
                while_cached(answers, cache, len(prefix))
        return answers, len(prefix) + sum(map(len, suffixes)), cached

    def _weigh(self, probabilities: Any, labels: Mapping[str, str]) -> dict[str, float]:
        """value -> probability of its label, both spellings taken together. `probabilities`: of `label_ids`."""
        each = dict(zip(self.label_ids, probabilities.tolist(), strict=True))
        return {value: sum(each[i] for i in self.labels[letter]) for letter, value in labels.items()}

    def _read(self, prefix: list[int]) -> Any:
        """The key-value cache of these tokens."""
        import torch

        with torch.inference_mode():
            tokens = torch.tensor([prefix], device=self.model.device)
            return self.model(tokens, use_cache=True, logits_to_keep=1).past_key_values

    def _next_token(self, cache: Any, prefix: int, suffixes: list[list[int]]) -> Any:
        """Probabilities of `label_ids` as the next token after the cached prefix (of so many tokens) + each suffix.

        Shape [len(suffixes), len(label_ids)], on the CPU in float32.
        """
        import torch

        device = self.model.device
        rows = []
        with torch.inference_mode():
            for group in _groups(suffixes, max(prefix // 5, max(map(len, suffixes)))):
                mask, positions = _block_mask(prefix, [len(s) for s in group], self.model.dtype, device)
                ends = torch.tensor([sum(map(len, group[: i + 1])) - 1 for i in range(len(group))], device=device)
                tokens = torch.tensor([[t for s in group for t in s]], device=device)
                out = self.model(
                    tokens, past_key_values=cache, attention_mask=mask, position_ids=positions, use_cache=True,
                    cache_position=torch.arange(prefix, prefix + tokens.shape[1], device=device),
                    logits_to_keep=ends,
                )  # fmt: skip
                rows.append(out.logits[0].float().softmax(-1)[:, self.label_ids].cpu())
                cache.crop(-tokens.shape[1])
        return torch.cat(rows)


def _groups(suffixes: list[list[int]], room: int) -> list[list[list[int]]]:
    """Suffixes packed in order into passes of at most `room` tokens: the cache grows by no more than a fifth."""
    groups: list[list[list[int]]] = [[]]
    for suffix in suffixes:
        if groups[-1] and sum(map(len, groups[-1])) + len(suffix) > room:
            groups.append([])
        groups[-1].append(suffix)
    return groups


def _block_mask(prefix: int, lengths: list[int], dtype: Any, device: Any) -> tuple[Any, Any]:
    """Additive mask [1, 1, sum(lengths), prefix + sum(lengths)] and positions [1, sum(lengths)].

    Every suffix sees the whole prefix and its own past, and sits right behind the prefix.
    """
    import torch

    total = sum(lengths)
    mask = torch.full((total, prefix + total), torch.finfo(dtype).min, dtype=dtype, device=device)
    mask[:, :prefix] = 0
    start = 0
    for length in lengths:
        block = torch.triu(torch.full((length, length), torch.finfo(dtype).min, dtype=dtype, device=device), 1)
        mask[start : start + length, prefix + start : prefix + start + length] = block
        start += length
    positions = torch.cat([torch.arange(prefix, prefix + length, device=device) for length in lengths])
    return mask[None, None], positions[None]


def _questions(criterion: Criterion) -> list[tuple[str, dict[str, str]]]:
    """The question in both orders of its answers, with letter -> value for each."""
    options = [(_named(level), level.text) for level in criterion.scale]
    if criterion.conditional:
        options.append((NOT_APPLICABLE, f"It does not apply. It applies only when: {criterion.conditional}"))
    asked = []
    for order in (options, options[::-1]):
        letters = dict(zip(string.ascii_uppercase, (value for value, _ in order), strict=False))
        lines = "\n".join(f"{letter}. {text}" for letter, (_, text) in zip(string.ascii_uppercase, order, strict=False))
        slots = {"title": criterion.title, "text": criterion.text, "answers": lines}
        asked.append((prompts.fill(PROMPTS[1], slots), letters))
    return asked
