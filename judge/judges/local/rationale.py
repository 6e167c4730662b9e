"""Short rationales of a local judge: where in the record to look and why, as JSON that a grammar
keeps in form.

A rationale explains a verdict that stands already; it never changes it. The model may write only
`{"turn": T, "quote": Q, "reason": R}`, evidence before reason: T is a turn that it was shown, Q
consists of words that stand in that turn, R is plain text, and both end after a number of tokens.
So a rationale always parses and never cites what is not there; whether the words are the right ones
is another question.

Needs llguidance (extra `local`). The evidence is not read again: its key-value cache is used and
given back as it was.
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
"""At most for the braces, keys and the number around them."""
_SHORTEST = 8
"""Characters of a quote; shorter ones stand anywhere."""
_LONGEST = 160
"""Characters of a reason."""
_MOST_QUOTABLE = 400
"""Pieces of the record that may be quoted from; the grammar grows with them."""
_UNQUOTED = re.compile(r'["\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufffd]+')
"""What JSON would have to escape, and what `sanitize` left: quotes are taken from the text between.
"""
_PLAIN = r'[^"\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufffd]'


@dataclass(frozen=True)
class Rationale:
    """Turn (1-based, 0 for the plan), words from it, and one sentence."""

    turn: int
    quote: str
    reason: str


def quotable(packed: Record, quotes: QuoteIndex) -> dict[int, tuple[str, ...]]:
    """Pieces of the shown evidence that can be quoted as they stand, by turn; the facts and our
    headings are none."""
    found: dict[int, tuple[str, ...]] = {}
    count = 0
    heading = re.compile(
        rf"^\[(?:turn (\d+)(?:, [^\]\n]*)?|(plan\.md))\] {re.escape(packed.nonce)}$", re.MULTILINE
    )
    ours = re.compile(rf"^\[[^\n]*\] {re.escape(packed.nonce)}$", re.MULTILINE)
    for match in heading.finditer(packed.text):
        turn = int(match.group(1) or 0)
        end = ours.search(packed.text, match.end())
        body = packed.text[match.end() : end.start() if end else len(packed.text)]
        pieces = dict.fromkeys(piece.strip() for piece in _UNQUOTED.split(body))
        good = [
            p for p in pieces if len(p) >= _SHORTEST and quotes.check(turn, p).check == "verified"
        ]
        good = good[: max(0, _MOST_QUOTABLE - count)]
        count += len(good)
        if good:
            found[turn] = tuple(good)
    return found


def grammar(pieces: Mapping[int, Sequence[str]], quote_tokens: int, reason_tokens: int) -> str:
    """The grammar of a rationale that quotes from these pieces (not empty), in llguidance's Lark."""
    rules, turns = [], []
    for turn, texts in pieces.items():
        names = [f"P{turn}_{number}" for number in range(len(texts))]
        rules += [
            f'{name}: %regex {{"substring_words": {json.dumps(text)}}} & /(?s:.{{{_SHORTEST},}})/'
            for name, text in zip(names, texts, strict=True)
        ]
        rules.append(f"quote{turn}[max_tokens={quote_tokens}]: {' | '.join(names)}")
        turns.append(f'"{turn}, \\"quote\\": \\"" quote{turn}')
    start = f'start: "{{\\"turn\\": " ({" | ".join(turns)}) "\\", \\"reason\\": \\"" reason "\\"}}"'
    reason = f"reason[max_tokens={reason_tokens}]: /{_PLAIN}{{1,{_LONGEST}}}/"
    return "\n".join([start, reason, *rules])


class RationaleWriter:
    """Writes rationales with one model. Greedy, so that the same evidence gives the same words."""

    def __init__(self, model: Any, tokenizer: Any, reason_tokens: int = REASON_TOKENS) -> None:
        try:
            import llguidance.hf
        except ImportError as error:
            raise JudgeError(
                f"local judge: {error.name or error} is not installed",
                "pip install 'ambjudge[local]'",
            ) from None
        self._model, self._reason_tokens = model, reason_tokens
        size = int(model.get_output_embeddings().weight.shape[0])
        try:
            self._tokens = llguidance.hf.from_tokenizer(tokenizer, n_vocab=size)
        # raised as ValueError or as a panic's type, depending on the tokenizer
        except Exception as error:
            raise JudgeError(
                f"local judge: the tokenizer cannot be used for rationales: {type(error).__name__}",
                "score without rationales",
            ) from None

    @property
    def longest(self) -> int:
        """Tokens of a rationale, at the most."""
        return QUOTE_TOKENS + self._reason_tokens + _FORM_TOKENS

    def matcher(self, pieces: Mapping[int, Sequence[str]]) -> Any | None:
        """What keeps a rationale in form, fresh for each; None when the pieces make no grammar."""
        from llguidance import LLMatcher

        found = LLMatcher(
            self._tokens, grammar(pieces, QUOTE_TOKENS, self._reason_tokens), log_level=0
        )
        return None if found.is_error() else found

    def write(
        self, cache: Any, prefix: int, question: Sequence[int], matcher: Any
    ) -> tuple[Rationale | None, int]:
        """A rationale after `question`, and how many tokens it took; None when the model could not
        finish it.

        `cache` holds the keys and values of the `prefix` tokens before, and holds just them again
        afterwards.
        """
        import torch

        made: list[int] = []
        feed = list(question)
        at = prefix
        try:
            while len(made) < self.longest and not matcher.is_stopped():
                logits = self._step(cache, at, feed)
                at += len(feed)
                feed = list(matcher.compute_ff_tokens())
                if not feed:
                    allowed = (
                        torch.frombuffer(bytearray(matcher.compute_logit_bias()), dtype=torch.uint8)
                        > 0
                    )
                    if not allowed.any():
                        break
                    feed = [int(logits.masked_fill(~allowed, float("-inf")).argmax())]
                if not matcher.consume_tokens(feed):
                    break
                made += feed
        finally:
            if (extra := cache.get_seq_length() - prefix) > 0:
                cache.crop(-extra)
        if not matcher.is_accepting():
            return None, len(made)
        return parse(self._tokens.decode_bytes(made)), len(made)

    def _step(self, cache: Any, at: int, feed: Sequence[int]) -> Any:
        """Logits of the next token after `feed`, on the CPU."""
        import torch

        device = self._model.device
        with torch.inference_mode():
            positions = torch.arange(at, at + len(feed), device=device)
            out = self._model(
                torch.tensor([list(feed)], device=device),
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
                position_ids=positions[None],
                cache_position=positions,
            )
            return out.logits[0, -1].float().cpu()


def parse(text: bytes) -> Rationale | None:
    """The rationale in what was written; None if it is none after all.

    A limit on tokens can fall inside a character of several bytes: its beginning is dropped.
    """
    try:
        data = json.loads(text.decode("utf-8", "ignore"))
        turn, quote, reason = data["turn"], data["quote"], data["reason"]
    except (ValueError, KeyError, TypeError):
        return None
    if type(turn) is not int or not isinstance(quote, str) or not isinstance(reason, str):
        return None
    return Rationale(turn, " ".join(quote.split()), " ".join(reason.split()))
