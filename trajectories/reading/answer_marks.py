"""How a call went, as its source marks it: errors, timeouts, refusals, interruptions.

Harnesses state an exit code only for commands. For everything else, and often for commands too, the
answer has a mark: `is_error`, `status`, an `error` object. An exit code decides where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from ..models import FAILED_KINDS, AnswerKind

_WORDS: dict[AnswerKind, str] = {
    "ok": "ok success succeeded",
    "failed": "failed failure error errored",
    "timeout": "timeout timed_out timedout timeoutexpired timeouterror execution_time_exceeded"
    " deadline_exceeded",
    "blocked": "blocked declined denied rejected user_rejected permission_denied approval"
    " not_allowed",
    "cancelled": "cancelled canceled aborted interrupted incomplete",
}
_KINDS = {word: kind for kind, words in _WORDS.items() for word in words.split()}
_BY_PRECISION: tuple[AnswerKind, ...] = ("timeout", "blocked", "cancelled", "failed", "ok")
_FLAGS = ("is_error", "isError", "tool_result_is_error")
_STATES = ("kind", "status", "outcome")
_ERROR_NAMES = ("type", "error_code", "code", "name")


def kind_of_word(word: Any) -> AnswerKind | None:
    """The kind that a status or the name of an error stands for; None for any other word."""
    if not isinstance(word, str):
        return None
    return _KINDS.get(word.strip().lower().replace("-", "_").replace(" ", "_"))


def kind_of_error(error: Any) -> AnswerKind | None:
    """The kind of an answer with this `error`: a name, a text, or an object with its type.

    None without an error. An error of an unknown name is a failure.
    """
    if not error or error in ("null", "none"):
        return None
    if isinstance(error, bool | str):
        word = kind_of_word(error)
    elif isinstance(error, dict):
        words = (kind_of_word(error.get(name)) for name in _ERROR_NAMES)
        word = next((word for word in words if word is not None), None)
    else:
        return "failed"
    return word if word in FAILED_KINDS else "failed"


def stated_kind(answer: Mapping[str, Any]) -> AnswerKind | None:
    """How a call went by the marks of its answer; None if it has none.

    The most specific mark counts: `"is_error": true` with the status "timeout" is a timeout.
    """
    states = [kind_of_word(answer.get(name)) for name in _STATES]
    flags = [answer[name] for name in _FLAGS if isinstance(answer.get(name), bool)]
    error = kind_of_error(answer.get("error"))
    kinds = {*states, error, *("failed" if flag else "ok" for flag in flags)}
    return next((kind for kind in _BY_PRECISION if kind in kinds), None)


def body_kind(body: Mapping[str, Any]) -> AnswerKind | None:
    """The mark that an importer wrote beside exit code and streams; None if there is none."""
    kind = body.get("kind")
    if kind in get_args(AnswerKind) and kind != "unknown":
        return kind
    flag = body.get("is_error")
    if not isinstance(flag, bool):
        return None
    return "failed" if flag else "ok"
