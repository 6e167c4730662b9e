"""The local judge: a causal language model that scores criteria by the likelihood of their allowed answers.

A stage's evidence is read once (prefill). All criteria are then answered in one more pass over its key-value cache:
their questions are laid side by side behind the evidence, each seeing the evidence and itself but not the others (a
block mask), so N criteria cost about one prefill and the cache is never copied. Every question is asked with its
answers in both orders and the probabilities are averaged, because small models favour the first option.

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
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import JudgeError
from ..rubrics.model import Criterion
from . import prompts
from .base import StageReply, StageRequest, Usage
from .evidence import MIN_BUDGET, PACKING, EvidencePack, pack
from .local_rationale import REASON_TOKENS, RationaleWriter, quotable
from .quotes import QuoteIndex
from .scorecard import CriterionResult, Vote

DEFAULT_BUDGET = 12_000
"""Characters of evidence a stage; small models lose the thread of longer ones, and prefill time grows with it."""
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
    """Scores criteria with the model at PATH. Loaded at the first verdict; one run at a time (the model is the bottleneck)."""

    members: tuple[str, ...] = ()

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
        self._lock = threading.Lock()
        self._weights: str | None = None

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

    def evidence_sha256(self, request: StageRequest) -> str:
        return self._pack(request).sha256

    def _pack(self, request: StageRequest) -> EvidencePack:
        return pack(request.run, request.segmentation, request.stage, budget_chars=self.evidence_budget)

    async def judge(self, request: StageRequest) -> StageReply:
        return await asyncio.to_thread(self._judge, request)

    def _judge(self, request: StageRequest) -> StageReply:
        packed = self._pack(request)
        results: list[CriterionResult] = []
        warnings: list[str] = []
        written = 0

        def take(answers: Sequence[Answer], cache: Any, prefix: int) -> None:
            nonlocal written
            results.extend(self._result(c, a, packed) for c, a in zip(request.criteria, answers, strict=True))
            if self.rationale:
                written = self._explain(request, packed, results, cache, prefix, warnings)

        with self._lock:
            if self._scorer is None:
                self._scorer = Scorer.load(self.path, self._device)
            try:
                _, tokens = self._scorer.answers(packed.text, request.criteria, take)
            except EvidenceTooLong as error:
                return StageReply(tuple(
                    CriterionResult(id=c.id, value=None, status="unscored", reason="truncated", detail=str(error))
                    for c in request.criteria
                ))  # fmt: skip
        usage = Usage(calls=1, input_tokens=tokens, output_tokens=written, cost_usd=0.0)
        return StageReply(tuple(results), usage, warnings=tuple(warnings))

    def _explain(
        self, request: StageRequest, packed: EvidencePack, results: list[CriterionResult], cache: Any, prefix: int,
        warnings: list[str],
    ) -> int:  # fmt: skip
        """Add a rationale to every scored result, in place; value and status stay. Returns the tokens written."""
        assert self._scorer is not None
        if self._writer is None:
            self._writer = RationaleWriter(self._scorer.model, self._scorer.tokenizer, self.reason_tokens)
        quotes, written = QuoteIndex(request.run), 0
        pieces = quotable(packed, quotes)
        for place, (criterion, result) in enumerate(zip(request.criteria, results, strict=True)):
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

    def _result(self, criterion: Criterion, answer: Answer, packed: EvidencePack) -> CriterionResult:
        best = max(answer.probabilities, key=lambda value: answer.probabilities[value])
        chance = answer.probabilities[best]
        spread = ", ".join(f"{value} {p:.2f}" for value, p in answer.probabilities.items())
        if answer.mass < self.min_mass:
            detail = f"abstained: only {answer.mass:.0%} of the probability lies on the allowed answers ({spread})"
            return CriterionResult(id=criterion.id, value=None, status="unscored", reason="refused", detail=detail)
        if best == NOT_APPLICABLE:
            detail = f"judged not applicable (probabilities {spread})"
            return CriterionResult(id=criterion.id, value=None, status="not_applicable", detail=detail)
        value = float(best)
        if value == 0 and packed.truncated:
            what = "; ".join(f"turn {o.turn}: {o.what}" for o in packed.left_out if o.relevant)[:300]
            return CriterionResult(
                id=criterion.id,
                value=None,
                status="unscored",
                reason="truncated",
                detail=f"judged not met, but evidence was left out: {what}",
            )
        vote = Vote(judge=self.name, value=value, probability=chance)
        return CriterionResult(
            id=criterion.id,
            value=value,
            status="scored",
            rationale=f"most likely answer (probabilities {spread})",
            votes=(vote,),
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
        for letter in string.ascii_uppercase[:8]:
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
        answer = texts.get(result.value, "") if result.value is not None else ""
        slots = {"title": criterion.title, "text": criterion.text, "answer": answer}
        return [*self._ids(prompts.fill(RATIONALE_PROMPT, slots)), *self._frame()[1]]

    def answers(
        self, evidence: str, criteria: Sequence[Criterion],
        while_cached: Callable[[Sequence[Answer], Any, int], None] | None = None,
    ) -> tuple[list[Answer], int]:  # fmt: skip
        """One Answer a criterion, and how many tokens were read. EvidenceTooLong when they do not fit the context.

        `while_cached(answers, cache, prefix)` may use the key-value cache of the `prefix` tokens up to the evidence's
        end, and must leave it as it was.
        """
        before, after = self._frame()
        prefix = [*before, *self._ids(evidence)]
        asked = [question for criterion in criteria for question in _questions(criterion)]
        suffixes = [[*self._ids(text), *after] for text, _ in asked]
        longest = max(len(s) for s in suffixes)
        if len(prefix) + longest > self.context:
            raise EvidenceTooLong(f"{len(prefix) + longest:,} tokens, but the model's context has {self.context:,}")
        cache = self._read(prefix)
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
        return answers, len(prefix) + sum(map(len, suffixes))

    def _weigh(self, probabilities: Any, labels: Mapping[str, str]) -> dict[str, float]:
        """value -> probability of its label, both spellings taken together."""
        return {value: float(sum(probabilities[i] for i in self.labels[letter])) for letter, value in labels.items()}

    def _read(self, prefix: list[int]) -> Any:
        """The key-value cache of these tokens."""
        import torch

        with torch.inference_mode():
            tokens = torch.tensor([prefix], device=self.model.device)
            return self.model(tokens, use_cache=True, logits_to_keep=1).past_key_values

    def _next_token(self, cache: Any, prefix: int, suffixes: list[list[int]]) -> Any:
        """Next-token probabilities after the cached prefix (of so many tokens) + each suffix.

        Shape [len(suffixes), vocabulary], on the CPU in float32.
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
                rows.append(out.logits[0].float().softmax(-1).cpu())
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
    options = [(f"{level.value:g}", level.text) for level in criterion.scale]
    if criterion.conditional:
        options.append((NOT_APPLICABLE, f"It does not apply. It applies only when: {criterion.conditional}"))
    asked = []
    for order in (options, options[::-1]):
        letters = dict(zip(string.ascii_uppercase, (value for value, _ in order), strict=False))
        lines = "\n".join(f"{letter}. {text}" for letter, (_, text) in zip(string.ascii_uppercase, order, strict=False))
        slots = {"title": criterion.title, "text": criterion.text, "answers": lines}
        asked.append((prompts.fill(PROMPTS[1], slots), letters))
    return asked
