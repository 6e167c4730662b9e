"""One turn as the texts that a record shows of it: what was said, done and answered, noise folded,
made safe.

Reasoning is no evidence and stays out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from ...sanitize import replaced, sanitize, sanitize_line
from ..models import Action, Observation, Turn
from .folding import Earlier, fold, fold_written
from .rewrites import Rewrites

_KEPT_STDOUT, _KEPT_STDERR = 3_000, 2_000
"""The benchmark keeps so many last characters of what a call printed (its tool results hold no
more)."""
_HEADING = 160
_CUT_REPLIES = ("length", "max_tokens", "content_filter")


@dataclass(frozen=True)
class Part:
    """A piece of a turn under a heading of ours (`call 1: execute_code python`; "" for what the
    agent says)."""

    kind: Literal["text", "code", "output"]
    heading: str
    body: str
    unread: int = 0
    """Characters of the transcript before folding that are not even looked at (endless outputs)."""
    replaced: int = 0
    """Characters of `body` that `sanitize` replaced."""


@dataclass(frozen=True)
class RenderedTurn:
    """The parts of one turn. `bases`: turns that hold the text which a rewritten file is shown
    against."""

    turn: int
    parts: tuple[Part, ...]
    bases: tuple[int, ...] = ()


class TurnRenderer:
    """Makes the parts of a run's turns, given in order: later ones refer to what earlier ones
    showed.

    `most` is how many characters of one text are looked at; of a longer one its ends.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._rewrites = Rewrites()
        self._earlier = Earlier()

    def read(self, turn: Turn) -> RenderedTurn:
        """Text, then call and result of each action, then what the user said before the next turn."""
        self._earlier.turn = turn.index
        found: list[Part] = []
        bases: list[int] = []
        if turn.text.strip():
            found.append(self._part("text", "", turn.text))
        for number, action in enumerate(turn.actions, 1):
            code, earlier = self._rewrites.shown(turn.index, action, action.code)
            bases += earlier
            given = arguments(action)
            body = "\n".join(x for x in (given, code.strip("\n")) if x.strip())
            found.append(self._part("code", f"call {number}: {_call(action)}", body))
            found.append(self._result(number, action))
        if turn.finish_reason in _CUT_REPLIES:
            found.append(Part("text", f"the reply was cut off: {turn.finish_reason}", ""))
        found += [
            self._part("text", "message to the agent", reply)
            for reply in turn.replies
            if reply.strip()
        ]
        return RenderedTurn(turn.index, tuple(found), tuple(dict.fromkeys(bases)))

    def _result(self, number: int, action: Action) -> Part:
        seen = action.observation
        if seen is None:
            return Part("output", f"result {number}: none was recorded", "")
        facts: list[str] = [seen.kind]
        if seen.exit_code is not None:
            facts.append(f"exit code {seen.exit_code}")
        if action.exec_time_s is not None:
            facts.append(f"{action.exec_time_s:.1f} s")
        return self._part(
            "output", f"result {number}: {', '.join(facts)}", _with_cuts(seen), output=True
        )

    def _part(
        self,
        kind: Literal["text", "code", "output"],
        heading: str,
        text: str,
        *,
        output: bool = False,
    ) -> Part:
        text = text.strip("\n")
        unread = max(0, len(text) - self._most)
        if unread:
            head = self._most // 3
            text = (
                f"{text[:head]}\n[… {unread:,} characters"
                f" …]\n{text[len(text) - (self._most - head) :]}"
            )
        folded = fold(text, self._earlier) if output else fold_written(text)
        return Part(kind, heading, sanitize(folded), unread, replaced(folded))


def _with_cuts(seen: Observation) -> str:
    """stdout and stderr, with a mark where the run itself kept only the end."""
    texts = []
    for text, kept, name in (
        (seen.stdout, _KEPT_STDOUT, "output"),
        (seen.stderr, _KEPT_STDERR, "error output"),
    ):
        if text:
            # Exactly as long as what is kept: nothing that was whole is, but by rare chance.
            mark = f"[the run kept only the end of this {name}]\n" if len(text) == kept else ""
            texts.append(mark + text)
    return "\n".join(texts)


def _call(action: Action) -> str:
    words = [action.tool, action.language or "", action.path or ""]
    return sanitize_line(" ".join(word for word in words if word))[:_HEADING]


def arguments(action: Action) -> str:
    """The arguments that neither `code` nor `path` holds, as JSON; "" for the usual arguments of
    executed code."""
    if action.kind == "execute" and action.code:
        return ""
    rest: dict[str, Any] = {
        key: value
        for key, value in (action.arguments or {}).items()
        if value not in (action.path, action.language) and (not action.code or value != action.code)
    }
    if not rest:
        return ""
    try:
        return json.dumps(rest, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return ""
