"""A causal language model that gives the likelihood of labelled answers behind a shared text.

The text is read once; its key-value cache stays until another text is asked about. Questions are
laid side by side behind it, each seeing the text and itself but not the others (a block mask), and
each is asked with its answers in both orders. Needs the extra `local` (torch, transformers).
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....errors import JudgeError
from ....rubrics.model import Criterion, Level
from ...card.stage_results import CriterionResult
from ...questions import prompts

LETTERS = string.ascii_uppercase[:20]
"""Names of the answers to choose from."""
NOT_APPLICABLE = "not_applicable"
PROMPTS = ("local_system", "local_question")
RATIONALE_PROMPT = "local_rationale"


@dataclass(frozen=True)
class Answer:
    """Probabilities of a criterion's allowed answers (they sum to 1) and the mass that they had
    among all tokens."""

    probabilities: Mapping[str, float]
    """Value as text (`1`, `0.5`, `0`, `not_applicable`) -> probability."""
    mass: float


class EvidenceTooLong(Exception):
    """The evidence with its longest question does not fit the model's context."""


def weight_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(
        f for f in path.iterdir() if f.suffix in (".safetensors", ".gguf", ".bin") and f.is_file()
    )
    if not found:
        raise JudgeError(
            f"{path}: no model weights in this folder", "expected .safetensors or .gguf files"
        )
    return found


@contextlib.contextmanager
def header_read_once() -> Iterator[None]:
    """transformers parses a GGUF file's header anew for the tokenizer, the configuration and the
    weights: seven seconds each for a vocabulary of 50,000."""
    gguf: Any = importlib.import_module("gguf")
    reader = gguf.GGUFReader
    gguf.GGUFReader = functools.cache(reader)
    try:
        yield
    finally:
        gguf.GGUFReader = reader


class Scorer:
    """A loaded model that gives the probabilities of labelled answers after a shared text."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.context = int(getattr(model.config, "max_position_embeddings", 0) or 1 << 30)
        self.labels = self._label_tokens()
        self.label_ids = sorted({i for ids in self.labels.values() for i in ids})
        self.kept: tuple[str, list[int], Any] | None = None
        """The evidence read last, its tokens, and their keys and values: who uses these leaves them
        as they were."""

    @classmethod
    def load(cls, path: Path, device: str | None = None) -> Scorer:
        """Load from a folder or a GGUF file, offline. JudgeError when the extra is missing or the
        model cannot be read."""
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
                f"local judge: {error.name or error} is not installed",
                "pip install 'ambjudge[local]'",
            ) from None
        disable_progress_bar()
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        kind = torch.bfloat16 if device.startswith("cuda") else torch.float32
        gguf = (
            path
            if path.is_file()
            else next((f for f in weight_files(path) if f.suffix == ".gguf"), None)
        )
        extra: dict[str, Any] = {"gguf_file": gguf.name} if gguf else {}
        folder = str(gguf.parent if gguf else path)
        try:
            # Loaders draw bars whatever they are told; what matters comes as an exception.
            with (
                contextlib.redirect_stderr(io.StringIO()),
                header_read_once() if gguf else contextlib.nullcontext(),
            ):
                tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, **extra)
                model = AutoModelForCausalLM.from_pretrained(
                    folder, local_files_only=True, dtype=kind, attn_implementation="sdpa", **extra
                )
        except Exception as error:  # the loaders raise whatever the file makes them raise
            first = str(error).strip().splitlines()[0][:200] if str(error).strip() else ""
            raise JudgeError(
                f"{path}: cannot be loaded as a causal language model: {type(error).__name__}:"
                f" {first}",
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
                raise JudgeError(
                    f"local judge: the tokenizer has no single token for {letter!r}",
                    "use another model",
                )
            found[letter] = single
        return found

    def _ids(self, text: str) -> list[int]:
        # Special tokens spelled out in a transcript must stay ordinary text, or it could end its
        # own message.
        return list(
            self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        )

    def _template_ids(self, text: str) -> list[int]:
        # The chat template's own text: its special tokens are meant.
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _frame(self) -> tuple[list[int], list[int]]:
        """Tokens before the evidence and after a question: the chat template around one user
        message."""
        mark = "\x1fevidence\x1f"
        system = prompts.load(PROMPTS[0])
        if getattr(self.tokenizer, "chat_template", None):
            messages = [{"role": "system", "content": system}, {"role": "user", "content": mark}]
            try:
                text = self.tokenizer.apply_chat_template(
                    messages, tokenize=False, add_generation_prompt=True
                )
            except Exception:  # some templates refuse a system message
                merged = [{"role": "user", "content": f"{system}\n\n{mark}"}]
                text = self.tokenizer.apply_chat_template(
                    merged, tokenize=False, add_generation_prompt=True
                )
        else:
            text = f"{system}\n\n{mark}\n\nAnswer: "
        before, _, after = text.partition(mark)
        return self._template_ids(before), self._template_ids(after)

    def explanation_ids(self, criterion: Criterion, result: CriterionResult) -> list[int]:
        """The tokens that ask, right behind the evidence, why this verdict was given."""
        texts = {level.value: level.text for level in criterion.scale}
        answer = result.answer if result.value is None else texts.get(result.value, "")
        slots = {"title": criterion.title, "text": criterion.full_text, "answer": str(answer or "")}
        return [*self._ids(prompts.fill(RATIONALE_PROMPT, slots)), *self._frame()[1]]

    def answers(
        self, evidence: str, criteria: Sequence[Criterion]
    ) -> tuple[list[Answer], int, int]:
        """One Answer a criterion, how many tokens they rest on, and how many of these were in the
        key-value cache already.

        EvidenceTooLong when they do not fit the context. The cache of the evidence stays for the
        next call on it.
        """
        before, after = self._frame()
        kept = self.kept if self.kept is not None and self.kept[0] == evidence else None
        cached = 0 if kept is None else len(kept[1])
        prefix = kept[1] if kept is not None else [*before, *self._ids(evidence)]
        asked = [question for criterion in criteria for question in questions(criterion)]
        suffixes = [[*self._ids(text), *after] for text, _ in asked]
        longest = max(len(s) for s in suffixes)
        if len(prefix) + longest > self.context:
            raise EvidenceTooLong(
                f"{len(prefix) + longest:,} tokens, but the model's context has {self.context:,}"
            )
        if kept is None:
            self.kept = None  # freed before the next one is read
            self.kept = kept = (evidence, prefix, self._read(prefix))
        cache = kept[2]
        rows = self._next_token(cache, len(prefix), suffixes)
        answers = []
        for number, _ in enumerate(criteria):
            both = [self._weigh(rows[2 * number + k], asked[2 * number + k][1]) for k in (0, 1)]
            mass = sum(sum(part.values()) for part in both) / 2
            means = {value: (both[0][value] + both[1][value]) / 2 for value in both[0]}
            total = sum(means.values()) or 1.0
            answers.append(Answer({value: p / total for value, p in means.items()}, mass))
        return answers, len(prefix) + sum(map(len, suffixes)), cached

    def _weigh(self, probabilities: Any, labels: Mapping[str, str]) -> dict[str, float]:
        """value -> probability of its label, both spellings taken together. `probabilities`: of
        `label_ids`."""
        each = dict(zip(self.label_ids, probabilities.tolist(), strict=True))
        return {
            value: sum(each[i] for i in self.labels[letter]) for letter, value in labels.items()
        }

    def _read(self, prefix: list[int]) -> Any:
        """The key-value cache of these tokens."""
        import torch

        with torch.inference_mode():
            tokens = torch.tensor([prefix], device=self.model.device)
            return self.model(tokens, use_cache=True, logits_to_keep=1).past_key_values

    def _next_token(self, cache: Any, prefix: int, suffixes: list[list[int]]) -> Any:
        """Probabilities of `label_ids` as the next token after the cached prefix (of so many
        tokens) + each suffix.

        Shape [len(suffixes), len(label_ids)], on the CPU in float32.
        """
        import torch

        device = self.model.device
        rows = []
        with torch.inference_mode():
            for group in _groups(suffixes, max(prefix // 5, max(map(len, suffixes)))):
                mask, positions = _block_mask(
                    prefix, [len(s) for s in group], self.model.dtype, device
                )
                ends = torch.tensor(
                    [sum(map(len, group[: i + 1])) - 1 for i in range(len(group))], device=device
                )
                tokens = torch.tensor([[t for s in group for t in s]], device=device)
                out = self.model(
                    tokens,
                    past_key_values=cache,
                    attention_mask=mask,
                    position_ids=positions,
                    use_cache=True,
                    cache_position=torch.arange(prefix, prefix + tokens.shape[1], device=device),
                    logits_to_keep=ends,
                )
                rows.append(out.logits[0].float().softmax(-1)[:, self.label_ids].cpu())
                cache.crop(-tokens.shape[1])
        return torch.cat(rows)


def _groups(suffixes: list[list[int]], room: int) -> list[list[list[int]]]:
    """Suffixes packed in order into passes of at most `room` tokens: the cache grows by no more
    than a fifth."""
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
        block = torch.triu(
            torch.full((length, length), torch.finfo(dtype).min, dtype=dtype, device=device), 1
        )
        mask[start : start + length, prefix + start : prefix + start + length] = block
        start += length
    positions = torch.cat(
        [torch.arange(prefix, prefix + length, device=device) for length in lengths]
    )
    return mask[None, None], positions[None]


def questions(criterion: Criterion) -> list[tuple[str, dict[str, str]]]:
    """The question in both orders of its answers, with letter -> value for each."""
    options = [(named(level), level.text) for level in criterion.scale]
    if criterion.conditional:
        options.append(
            (NOT_APPLICABLE, f"It does not apply. It applies only when: {criterion.conditional}")
        )
    asked = []
    for order in (options, options[::-1]):
        letters = dict(zip(string.ascii_uppercase, (value for value, _ in order), strict=False))
        lines = "\n".join(
            f"{letter}. {text}"
            for letter, (_, text) in zip(string.ascii_uppercase, order, strict=False)
        )
        slots = {"title": criterion.title, "text": criterion.full_text, "answers": lines}
        asked.append((prompts.fill(PROMPTS[1], slots), letters))
    return asked


def named(level: Level) -> str:
    """A level's value as it stands among the probabilities."""
    return f"{level.value:g}"
