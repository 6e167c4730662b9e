"""Short rationales of a local judge: a turn, a quote and a reason, in a form that a grammar keeps.

A rationale explains a verdict that was given already; it never changes it. The model can write only
`{"turn": T, "quote": Q, "reason": R}`, evidence before reason: T is a turn that it was shown, Q
consists of words of that turn, R is plain text, and both end after a number of tokens. So a
rationale always parses and never cites what does not exist; whether the words are the right ones is
another question.

Needs llguidance (extra `local`). The evidence is not read again: its key-value cache is used and
restored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....errors import JudgeError
from ....trajectories.record import Record
from ....trajectories.record.quotes import QuoteIndex

QUOTE_TOKENS = 20
REASON_TOKENS = 32
_FORM_TOKENS = 24
"""The most that the braces, keys and the number take."""
_MIN_QUOTE_CHARS = 8
"""A shorter quote occurs anywhere."""
_MAX_REASON_CHARS = 160
_MAX_PIECES = 400
"""Pieces of the record that can be quoted; the grammar grows with them."""
_NEEDS_ESCAPE = re.compile(r'["\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufffd]+')
"""What JSON would have to escape, and what `sanitize` put in: quotes are taken from between."""
_PLAIN_CHAR = r'[^"\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufffd]'


@dataclass(frozen=True)
class Rationale:
    """Why a verdict was given."""

    turn: int
    """1-based; 0 is the plan."""
    quote: str
    """Words of the turn."""
    reason: str
    """One sentence."""


def quotable_pieces(record: Record, quotes: QuoteIndex) -> dict[int, tuple[str, ...]]:
    """Pieces of the record that can be quoted literally, by turn.

    The facts and the record's own headings are no such pieces.
    """
    nonce = re.escape(record.nonce)
    turn_heading = re.compile(
        rf"^\[(?:turn (\d+)(?:, [^\]\n]*)?|(plan\.md))\] {nonce}$", re.MULTILINE
    )
    any_heading = re.compile(rf"^\[[^\n]*\] {nonce}$", re.MULTILINE)
    by_turn: dict[int, tuple[str, ...]] = {}
    room = _MAX_PIECES
    for heading in turn_heading.finditer(record.text):
        turn = int(heading.group(1) or 0)
        next_heading = any_heading.search(record.text, heading.end())
        end = next_heading.start() if next_heading else len(record.text)
        body = record.text[heading.end() : end]
        pieces = dict.fromkeys(piece.strip() for piece in _NEEDS_ESCAPE.split(body))
        verified = [
            piece
            for piece in pieces
            if len(piece) >= _MIN_QUOTE_CHARS and quotes.check(turn, piece).check == "verified"
        ]
        selected = verified[:room]
        room -= len(selected)
        if selected:
            by_turn[turn] = tuple(selected)
    return by_turn


def rationale_grammar(
    pieces: Mapping[int, Sequence[str]], quote_tokens: int, reason_tokens: int
) -> str:
    """The grammar of a rationale that quotes from these pieces, in llguidance's dialect of Lark.

    There must be at least one piece.
    """
    rules, alternatives = [], []
    for turn, texts in pieces.items():
        names = [f"P{turn}_{number}" for number in range(len(texts))]
        for name, text in zip(names, texts, strict=True):
            words = json.dumps(text)
            rules.append(
                f'{name}: %regex {{"substring_words": {words}}} & /(?s:.{{{_MIN_QUOTE_CHARS},}})/'
            )
        rules.append(f"quote{turn}[max_tokens={quote_tokens}]: {' | '.join(names)}")
        alternatives.append(f'"{turn}, \\"quote\\": \\"" quote{turn}')
    turns = " | ".join(alternatives)
    start = f'start: "{{\\"turn\\": " ({turns}) "\\", \\"reason\\": \\"" reason "\\"}}"'
    reason = f"reason[max_tokens={reason_tokens}]: /{_PLAIN_CHAR}{{1,{_MAX_REASON_CHARS}}}/"
    return "\n".join([start, reason, *rules])


class RationaleWriter:
    """Writes rationales with one model, greedily: the same evidence gives the same words."""

    def __init__(self, model: Any, tokenizer: Any, reason_tokens: int = REASON_TOKENS) -> None:
        try:
            import llguidance.hf
        except ImportError as error:
            raise JudgeError(
                f"local judge: {error.name or error} is not installed",
                "pip install 'ambjudge[local]'",
            ) from None
        self._model, self._reason_tokens = model, reason_tokens
        vocabulary_size = int(model.get_output_embeddings().weight.shape[0])
        try:
            self._tokens = llguidance.hf.from_tokenizer(tokenizer, n_vocab=vocabulary_size)
        # It raises ValueError or a panic's type, depending on the tokenizer.
        except Exception as error:
            raise JudgeError(
                f"local judge: the tokenizer cannot be used for rationales: {type(error).__name__}",
                "score without rationales",
            ) from None

    @property
    def max_tokens(self) -> int:
        """The most tokens that a rationale takes."""
        return QUOTE_TOKENS + self._reason_tokens + _FORM_TOKENS

    def matcher(self, pieces: Mapping[int, Sequence[str]]) -> Any | None:
        """A matcher that keeps one rationale in form; None if the pieces give no valid grammar."""
        from llguidance import LLMatcher

        grammar = rationale_grammar(pieces, QUOTE_TOKENS, self._reason_tokens)
        matcher = LLMatcher(self._tokens, grammar, log_level=0)
        return None if matcher.is_error() else matcher

    def write(
        self, cache: Any, prefix_length: int, question: Sequence[int], matcher: Any
    ) -> tuple[Rationale | None, int]:
        """A rationale after `question`, and the number of tokens that it took.

        None if the model could not finish it. `cache` holds the keys and values of the
        `prefix_length` tokens before the question, and just these again afterwards.
        """
        written: list[int] = []
        next_tokens = list(question)
        position = prefix_length
        try:
            # Tokens that the grammar forces (braces, keys) are read together, in one step.
            while len(written) < self.max_tokens and not matcher.is_stopped():
                logits = self._logits(cache, position, next_tokens)
                position += len(next_tokens)
                next_tokens = _choose_tokens(matcher, logits)
                if not next_tokens or not matcher.consume_tokens(next_tokens):
                    break
                written += next_tokens
        finally:
            extra = cache.get_seq_length() - prefix_length
            if extra > 0:
                cache.crop(-extra)
        if not matcher.is_accepting():
            return None, len(written)
        return parse_rationale(self._tokens.decode_bytes(written)), len(written)

    def _logits(self, cache: Any, position: int, tokens: Sequence[int]) -> Any:
        """Logits of the token after these tokens, which begin at `position`; on the CPU."""
        import torch

        device = self._model.device
        with torch.inference_mode():
            positions = torch.arange(position, position + len(tokens), device=device)
            output = self._model(
                torch.tensor([list(tokens)], device=device),
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
                position_ids=positions[None],
                cache_position=positions,
            )
            return output.logits[0, -1].float().cpu()


def _choose_tokens(matcher: Any, logits: Any) -> list[int]:
    """The tokens that the grammar forces, else the likeliest one that it allows ([] for none)."""
    import torch

    forced = list(matcher.compute_ff_tokens())
    if forced:
        return forced
    bias = torch.frombuffer(bytearray(matcher.compute_logit_bias()), dtype=torch.uint8)
    allowed = bias > 0
    if not allowed.any():
        return []
    return [int(logits.masked_fill(~allowed, float("-inf")).argmax())]


def parse_rationale(text: bytes) -> Rationale | None:
    """The rationale that the model wrote; None if it is none after all.

    A limit on tokens can fall inside a character of several bytes, whose beginning is dropped.
    """
    try:
        data = json.loads(text.decode("utf-8", "ignore"))
        turn, quote, reason = data["turn"], data["quote"], data["reason"]
    except (ValueError, KeyError, TypeError):
        return None
    if type(turn) is not int or not isinstance(quote, str) or not isinstance(reason, str):
        return None
    return Rationale(turn, " ".join(quote.split()), " ".join(reason.split()))
