"""A causal language model that gives the likelihood of labelled answers after a shared text.

The text is read once; its key-value cache stays until another text is asked about. Questions are
placed side by side behind it, each attending to the text and itself but not to the others (a block
mask), and each is asked with its answers in both orders. Needs the extra `local` (torch,
transformers).
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
from typing import Any, NamedTuple

from ....errors import JudgeError
from ....rubrics.model import Criterion, Level
from ....trajectories.record import Record
from ...card.stage_results import CriterionResult
from ...questions import prompts
from ...questions.forms import NOT_APPLICABLE

LETTERS = string.ascii_uppercase[:20]
"""Labels of the answers to choose from."""
SYSTEM_PROMPT, RECORD_PROMPT, QUESTION_PROMPT, RATIONALE_PROMPT = (
    "local_system",
    "record",
    "local_question",
    "local_rationale",
)
_WEIGHT_SUFFIXES = (".safetensors", ".gguf", ".bin")
_UNLIMITED_CONTEXT = 1 << 30


@dataclass(frozen=True)
class AnswerLikelihoods:
    """How likely each allowed answer of a criterion is."""

    probabilities: Mapping[str, float]
    """Value as text (`1`, `0.5`, `0`, `not_applicable`) -> probability; they sum to 1."""
    mass: float
    """The probability that all of them have together among all tokens."""


class CachedEvidence(NamedTuple):
    """The record that was read last."""

    text: str
    """In its fence."""
    nonce: str
    """The key of the fence."""
    tokens: list[int]
    """With the chat template before it."""
    cache: Any
    """Keys and values of these tokens. Whoever uses them leaves them as they were."""


class EvidenceTooLong(Exception):
    """The evidence with its longest question does not fit into the model's context."""


def weight_files(path: Path) -> list[Path]:
    """The files with a model's weights; JudgeError if the folder has none."""
    if path.is_file():
        return [path]
    files = sorted(
        file for file in path.iterdir() if file.suffix in _WEIGHT_SUFFIXES and file.is_file()
    )
    if not files:
        raise JudgeError(
            f"{path}: no model weights in this folder", "expected .safetensors or .gguf files"
        )
    return files


@contextlib.contextmanager
def gguf_header_cached() -> Iterator[None]:
    """Parse the header of a GGUF file once.

    transformers parses it again for the tokenizer, the configuration and the weights, which takes
    seven seconds each time for a vocabulary of 50,000.
    """
    gguf: Any = importlib.import_module("gguf")
    reader = gguf.GGUFReader
    gguf.GGUFReader = functools.cache(reader)
    try:
        yield
    finally:
        gguf.GGUFReader = reader


class LikelihoodScorer:
    """A loaded model that gives the probabilities of labelled answers after a shared text."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer
        context = getattr(model.config, "max_position_embeddings", 0)
        self.context = int(context or _UNLIMITED_CONTEXT)
        """Tokens that the model can read."""
        self._letter_tokens = self._find_letter_tokens()
        self._letter_ids = sorted({id for ids in self._letter_tokens.values() for id in ids})
        self.evidence: CachedEvidence | None = None

    @classmethod
    def load(cls, path: Path, device: str | None = None) -> LikelihoodScorer:
        """Load a model from a folder or a GGUF file, without network.

        Raises JudgeError if the extra is not installed or the model cannot be read.
        """
        _silence_transformers()
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
        dtype = torch.bfloat16 if device.startswith("cuda") else torch.float32
        gguf = _gguf_file(path)
        options: dict[str, Any] = {"local_files_only": True}
        if gguf is not None:
            options["gguf_file"] = gguf.name
        folder = str(gguf.parent if gguf is not None else path)
        header = gguf_header_cached() if gguf is not None else contextlib.nullcontext()
        try:
            # Loaders draw progress bars whatever they are told; errors come as exceptions.
            with contextlib.redirect_stderr(io.StringIO()), header:
                tokenizer = AutoTokenizer.from_pretrained(folder, **options)
                model = AutoModelForCausalLM.from_pretrained(
                    folder, dtype=dtype, attn_implementation="sdpa", **options
                )
        except Exception as error:  # the loaders raise whatever the file makes them raise
            lines = str(error).strip().splitlines() or [""]
            raise JudgeError(
                f"{path}: cannot be loaded as a causal language model: {type(error).__name__}:"
                f" {lines[0][:200]}",
                "give a transformers model folder or a .gguf file",
            ) from None
        return cls(model.to(device).eval(), tokenizer)

    # Tokens.

    def _find_letter_tokens(self) -> dict[str, list[int]]:
        """Letter -> ids of the tokens that mean it at the beginning of an answer ("A", " A")."""
        tokens: dict[str, list[int]] = {}
        for letter in LETTERS:
            spellings = {tuple(self._text_ids(text)) for text in (letter, f" {letter}")}
            single = sorted(ids[0] for ids in spellings if len(ids) == 1)
            if not single:
                raise JudgeError(
                    f"local judge: the tokenizer has no single token for {letter!r}",
                    "use another model",
                )
            tokens[letter] = single
        return tokens

    def _text_ids(self, text: str) -> list[int]:
        # Special tokens that a transcript spells out must stay ordinary text, or it could end its
        # own message.
        encoded = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)
        return list(encoded["input_ids"])

    def _template_ids(self, text: str) -> list[int]:
        # The special tokens of the chat template itself are meant as such.
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _template_around_evidence(self, nonce: str) -> tuple[list[int], list[int]]:
        """Tokens before the evidence and after a question: the template of one user message.

        `nonce`: the key of the fence, which the system text names.
        """
        marker = "\x1fevidence\x1f"
        system = prompts.fill(SYSTEM_PROMPT, {"nonce": nonce})
        if getattr(self.tokenizer, "chat_template", None):
            text = self._apply_chat_template(system, marker)
        else:
            text = f"{system}\n\n{marker}\n\nAnswer: "
        before, _, after = text.partition(marker)
        return self._template_ids(before), self._template_ids(after)

    def _apply_chat_template(self, system: str, user: str) -> str:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        merged = [{"role": "user", "content": f"{system}\n\n{user}"}]
        options: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True}
        try:
            return str(self.tokenizer.apply_chat_template(messages, **options))
        except Exception:  # some templates refuse a system message
            return str(self.tokenizer.apply_chat_template(merged, **options))

    def explanation_ids(self, criterion: Criterion, result: CriterionResult) -> list[int]:
        """The tokens, to follow the evidence, that ask why this verdict was given."""
        texts = {level.value: level.text for level in criterion.scale}
        answer = result.answer if result.value is None else texts.get(result.value, "")
        assert self.evidence is not None
        slots = {
            "nonce": self.evidence.nonce,
            "title": criterion.title,
            "text": criterion.full_text,
            "answer": str(answer or ""),
        }
        _, after = self._template_around_evidence(self.evidence.nonce)
        return [*self._text_ids(prompts.fill(RATIONALE_PROMPT, slots)), *after]

    # Answers.

    def answers(
        self, record: Record, criteria: Sequence[Criterion]
    ) -> tuple[list[AnswerLikelihoods], int, int]:
        """The likelihoods of each criterion's answers, with the number of input and cached tokens.

        The cache of the record stays for the next call on it. Raises EvidenceTooLong if the
        tokens do not fit into the context.
        """
        evidence = fenced(record)
        before, after = self._template_around_evidence(record.nonce)
        orders = [
            order
            for criterion in criteria
            for order in question_in_both_orders(criterion, record.nonce)
        ]
        suffixes = [[*self._text_ids(order.text), *after] for order in orders]
        longest_suffix = max(map(len, suffixes))
        cached = 0
        if self.evidence is not None and self.evidence.text == evidence:
            prefix = self.evidence.tokens
            cached = len(prefix)
        else:
            prefix = [*before, *self._text_ids(evidence)]
        if len(prefix) + longest_suffix > self.context:
            raise EvidenceTooLong(
                f"{len(prefix) + longest_suffix:,} tokens, but the model's context has"
                f" {self.context:,}"
            )
        if self.evidence is None or not cached:
            self.evidence = None  # Frees the last cache before the next one is made.
            self.evidence = CachedEvidence(evidence, record.nonce, prefix, self._read(prefix))
        rows = self._next_token_probabilities(self.evidence.cache, len(prefix), suffixes)
        by_order = [
            self._answer_probabilities(row, order.values_by_letter)
            for row, order in zip(rows, orders, strict=True)
        ]
        answers = [
            _mean_of_orders(first, second)
            for first, second in zip(by_order[::2], by_order[1::2], strict=True)
        ]
        return answers, len(prefix) + sum(map(len, suffixes)), cached

    def _answer_probabilities(
        self, row: Any, values_by_letter: Mapping[str, str]
    ) -> dict[str, float]:
        """Value -> probability of its letter, over all spellings. `row`: of `_letter_ids`."""
        by_token = dict(zip(self._letter_ids, row.tolist(), strict=True))
        return {
            value: sum(by_token[id] for id in self._letter_tokens[letter])
            for letter, value in values_by_letter.items()
        }

    def _read(self, tokens: list[int]) -> Any:
        """The key-value cache of these tokens."""
        import torch

        with torch.inference_mode():
            batch = torch.tensor([tokens], device=self.model.device)
            return self.model(batch, use_cache=True, logits_to_keep=1).past_key_values

    def _next_token_probabilities(
        self, cache: Any, prefix_length: int, suffixes: list[list[int]]
    ) -> Any:
        """Probabilities of `_letter_ids` as the next token after the cached prefix and each suffix.

        Shape [len(suffixes), len(_letter_ids)], on the CPU in float32. `cache` holds just the
        prefix again afterwards.
        """
        import torch

        device = self.model.device
        max_tokens = max(prefix_length // 5, max(map(len, suffixes)))
        rows = []
        with torch.inference_mode():
            for group in _pack(suffixes, max_tokens):
                lengths = [len(suffix) for suffix in group]
                mask, positions = _block_mask(prefix_length, lengths, self.model.dtype, device)
                # The answer to a question is what follows the last token of its suffix.
                last_tokens = torch.tensor(lengths, device=device).cumsum(0) - 1
                tokens = torch.tensor(
                    [[token for suffix in group for token in suffix]], device=device
                )
                length = tokens.shape[1]
                output = self.model(
                    tokens,
                    past_key_values=cache,
                    attention_mask=mask,
                    position_ids=positions,
                    use_cache=True,
                    cache_position=torch.arange(
                        prefix_length, prefix_length + length, device=device
                    ),
                    logits_to_keep=last_tokens,
                )
                probabilities = output.logits[0].float().softmax(-1)
                rows.append(probabilities[:, self._letter_ids].cpu())
                cache.crop(-length)
        return torch.cat(rows)


def _silence_transformers() -> None:
    """No network, progress bars or advice; these variables are read when it is imported."""
    variables = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TQDM_DISABLE": "1"}
    for name, value in variables.items():
        os.environ.setdefault(name, value)


def _gguf_file(path: Path) -> Path | None:
    """The GGUF file of a model; None for a folder without one."""
    if path.is_file():
        return path
    for file in weight_files(path):
        if file.suffix == ".gguf":
            return file
    return None


def _mean_of_orders(first: Mapping[str, float], second: Mapping[str, float]) -> AnswerLikelihoods:
    mass = (sum(first.values()) + sum(second.values())) / 2
    means = {value: (first[value] + second[value]) / 2 for value in first}
    total = sum(means.values()) or 1.0
    return AnswerLikelihoods({value: mean / total for value, mean in means.items()}, mass)


def _pack(suffixes: list[list[int]], max_tokens: int) -> list[list[list[int]]]:
    """Suffixes in order, packed into passes of at most `max_tokens`, so that the cache stays small.

    A longer suffix has a pass of its own.
    """
    groups: list[list[list[int]]] = [[]]
    for suffix in suffixes:
        if groups[-1] and sum(map(len, groups[-1])) + len(suffix) > max_tokens:
            groups.append([])
        groups[-1].append(suffix)
    return groups


def _block_mask(prefix_length: int, lengths: list[int], dtype: Any, device: Any) -> tuple[Any, Any]:
    """Additive mask [1, 1, sum(lengths), prefix + sum(lengths)] and positions [1, sum(lengths)].

    Every suffix attends to the whole prefix and its own past, as if it followed the prefix alone.
    """
    import torch

    total = sum(lengths)
    hidden = torch.finfo(dtype).min
    mask = torch.full((total, prefix_length + total), hidden, dtype=dtype, device=device)
    mask[:, :prefix_length] = 0
    start = 0
    for length in lengths:
        square = torch.full((length, length), hidden, dtype=dtype, device=device)
        rows = slice(start, start + length)
        columns = slice(prefix_length + start, prefix_length + start + length)
        mask[rows, columns] = torch.triu(square, 1)
        start += length
    positions = torch.cat(
        [torch.arange(prefix_length, prefix_length + length, device=device) for length in lengths]
    )
    return mask[None, None], positions[None]


class OrderedQuestion(NamedTuple):
    """A question with its answers in one order."""

    text: str
    values_by_letter: dict[str, str]


def fenced(record: Record) -> str:
    """A record between two lines that carry its key, as every model is shown it."""
    return prompts.fill(RECORD_PROMPT, {"nonce": record.nonce, "record": record.text})


def question_in_both_orders(criterion: Criterion, nonce: str) -> list[OrderedQuestion]:
    """The question about a criterion with its answers in order and reversed.

    `nonce`: the key of the record's fence, which no text of a run can carry.
    """
    options = [(value_label(level), level.text) for level in criterion.scale]
    if criterion.conditional:
        text = f"It does not apply. It applies only when: {criterion.conditional}"
        options.append((NOT_APPLICABLE, text))
    return [_question(criterion, order, nonce) for order in (options, options[::-1])]


def _question(
    criterion: Criterion, options: Sequence[tuple[str, str]], nonce: str
) -> OrderedQuestion:
    lettered = list(zip(string.ascii_uppercase, options, strict=False))
    lines = [f"{letter}. {text}" for letter, (_, text) in lettered]
    slots = {
        "nonce": nonce,
        "title": criterion.title,
        "text": criterion.full_text,
        "answers": "\n".join(lines),
    }
    values_by_letter = {letter: value for letter, (value, _) in lettered}
    return OrderedQuestion(prompts.fill(QUESTION_PROMPT, slots), values_by_letter)


def value_label(level: Level) -> str:
    """A level's value as a key of `AnswerLikelihoods.probabilities`."""
    return f"{level.value:g}"
