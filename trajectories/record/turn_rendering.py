"""Renders one turn as the texts that a record shows of it: what was said, done and answered.

Noise is folded and unsafe characters are replaced. Reasoning is no evidence and is left out. The
headings are part of the record that a judge is shown: their wording must not change without a new
`assembly.PACKING`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from ...sanitize import replaced, sanitize, sanitize_line
from ..models import Action, Observation, Turn
from .folding import Earlier, fold, fold_written
from .rewrites import Rewrites
from .strangers import Stranger, is_plain

_KEPT_STDOUT, _KEPT_STDERR = 3_000, 2_000
"""The benchmark's tool results hold only so many last characters of what a call printed."""
_MAX_HEADING = 160
_CUT_OFF_REASONS = ("length", "max_tokens", "content_filter")

PartKind = Literal["text", "code", "output"]


@dataclass(frozen=True)
class Part:
    """A part of a turn under a heading of the record.

    The heading is e.g. `call 1: execute_code python`, and "" for what the agent says.
    """

    kind: PartKind
    heading: str
    body: str
    unread: int = 0
    """Characters of the transcript, before folding, that are not looked at (very long outputs)."""
    replaced: int = 0
    """Characters of `body` that `sanitize` replaced."""


@dataclass(frozen=True)
class RenderedTurn:
    """The parts of one turn.

    `bases` are the turns with the text that a rewritten file is shown against.
    """

    turn: int
    parts: tuple[Part, ...]
    bases: tuple[int, ...] = ()


class TurnRenderer:
    """Renders the turns of a run, given in order: later turns refer to what earlier ones showed.

    Of a text with more than `max_chars` characters only the two ends are looked at.
    """

    def __init__(self, max_chars: int) -> None:
        self._max_chars = max_chars
        self._rewrites = Rewrites()
        self._earlier = Earlier()

    def render(self, turn: Turn) -> RenderedTurn:
        """The turn's text, the call and result of each action, and the replies of the user."""
        self._earlier.turn = turn.index
        parts: list[Part] = []
        bases: list[int] = []
        if turn.text.strip():
            parts.append(self._written("text", "", turn.text))
        for number, action in enumerate(turn.actions, 1):
            code, code_bases = self._rewrites.render(turn.index, action)
            bases += code_bases
            texts = (other_arguments(action), code.strip("\n"))
            body = "\n".join(text for text in texts if text.strip())
            parts.append(self._written("code", f"call {number}: {_call_label(action)}", body))
            parts.append(self._result(number, action))
        if turn.finish_reason in _CUT_OFF_REASONS:
            parts.append(Part("text", f"the reply was cut off: {turn.finish_reason}", ""))
        for reply in turn.replies:
            if reply.strip():
                parts.append(self._written("text", "message to the agent", reply))
        return RenderedTurn(turn.index, tuple(parts), tuple(dict.fromkeys(bases)))

    def _result(self, number: int, action: Action) -> Part:
        observation = action.observation
        if observation is None:
            return Part("output", f"result {number}: none was recorded", "")
        facts: list[str] = [observation.kind]
        if observation.exit_code is not None:
            facts.append(f"exit code {observation.exit_code}")
        if action.exec_time_s is not None:
            facts.append(f"{action.exec_time_s:.1f} s")
        heading = f"result {number}: {', '.join(facts)}"
        text, unread = self._readable(_output_text(observation))
        return _sanitized_part("output", heading, fold(text, self._earlier), unread)

    def _written(self, kind: PartKind, heading: str, text: str) -> Part:
        """A part that somebody wrote, as opposed to the output of a call."""
        text, unread = self._readable(text)
        return _sanitized_part(kind, heading, fold_written(text), unread)

    def _readable(self, text: str) -> tuple[str, int]:
        """The text, or the ends of a very long one, and how many characters are left out."""
        text = text.strip("\n")
        unread = len(text) - self._max_chars
        if unread <= 0:
            return text, 0
        head = self._max_chars // 3
        tail_start = len(text) - (self._max_chars - head)
        return f"{text[:head]}\n[… {unread:,} characters …]\n{text[tail_start:]}", unread


def _sanitized_part(kind: PartKind, heading: str, folded: str, unread: int) -> Part:
    return Part(kind, heading, sanitize(folded), unread, replaced(folded))


def _output_text(observation: Observation) -> str:
    """stdout and stderr, each with a mark if the run itself kept only its end."""
    texts = []
    for text, kept_chars, stream in (
        (observation.stdout, _KEPT_STDOUT, "output"),
        (observation.stderr, _KEPT_STDERR, "error output"),
    ):
        if len(text) == kept_chars:
            # A complete text of exactly this length is possible, but rare.
            text = f"[the run kept only the end of this {stream}]\n{text}"
        if text:
            texts.append(text)
    return "\n".join(texts)


def _call_label(action: Action) -> str:
    words = [action.tool, action.language or "", action.path or ""]
    words = [word for word in words if word]
    if all(map(is_plain, words)):
        return sanitize_line(" ".join(words))[:_MAX_HEADING]
    # The key stands behind these words: a path must not be able to end the heading.
    return " ".join(str(Stranger(word)) for word in words)


def other_arguments(action: Action) -> str:
    """The arguments that are neither the action's code, path nor language, as JSON.

    "" if there are none, and for executed code, whose other arguments are the usual ones.
    """
    if action.kind == "execute" and action.code:
        return ""
    others: dict[str, Any] = {
        name: value
        for name, value in (action.arguments or {}).items()
        if value not in (action.path, action.language) and (not action.code or value != action.code)
    }
    if not others:
        return ""
    try:
        return json.dumps(others, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return ""
