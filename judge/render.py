"""One turn as prompt text: verbatim where it fits, folded where lines repeat, cut with the cut named where it must be.

Every line of the transcript that is kept is kept whole and unchanged (but for `sanitize`), so that a quote copied from
the prompt is found again in the turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ..sanitize import sanitize
from ..trajectories.models import Action, Turn

Kind = Literal["text", "code", "output"]

_IDENTICAL = 4
"""Runs of identical lines from this length are folded always: nothing is lost but their number, which is stated."""
_SIMILAR = 8
"""Runs of lines alike but for their numbers (progress, per-step losses) are folded from this length when space is short."""
_DIGITS = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_BAR = re.compile(r"[#=█▉▊▋▌▍▎▏>.\-]{4,}")


@dataclass(frozen=True)
class Part:
    """A piece of a turn, with a heading of ours (`code (python)`) and the transcript's text, already sanitised."""

    kind: Kind
    heading: str
    body: str

    def __len__(self) -> int:
        return len(self.heading) + len(self.body) + 6


def parts(turn: Turn) -> tuple[Part, ...]:
    """Text, then code and output of each action, in order. Reasoning is no evidence and stays out."""
    found = [Part("text", "text", sanitize(turn.text.strip("\n")))] if turn.text.strip() else []
    for number, action in enumerate(turn.actions, 1):
        which = f" {number}" if len(turn.actions) > 1 else ""
        if action.code.strip() or action.tool:
            found.append(Part("code", f"call{which}: {_call(action)}", sanitize(action.code.strip("\n"))))
        found.append(_output(action, which))
    return tuple(found)


def _call(action: Action) -> str:
    words = [action.tool]
    if action.language:
        words.append(action.language)
    if action.path:
        words.append(action.path)
    return sanitize(" ".join(words)).replace("\n", " ")[:160]


def _output(action: Action, which: str) -> Part:
    seen = action.observation
    if seen is None:
        return Part("output", f"result{which}: none was recorded", "")
    facts: list[str] = [seen.kind]
    if seen.exit_code is not None:
        facts.append(f"exit code {seen.exit_code}")
    if action.exec_time_s is not None:
        facts.append(f"{action.exec_time_s:.1f} s")
    return Part("output", f"result{which}: {', '.join(facts)}", sanitize(seen.text.strip("\n")))


def fold(text: str, *, similar: bool) -> str:
    """`text` with runs of identical lines folded, and with `similar` also runs alike but for numbers and bars.

    The first two and the last line of a run stay; the rest becomes one line that says how many there were.
    """
    lines = text.split("\n")
    kept: list[str] = []
    start = 0
    while start < len(lines):
        end = _run_end(lines, start, _same)
        least, word = _IDENTICAL, "identical"
        if similar and end - start < _IDENTICAL:
            end, least, word = _run_end(lines, start, _shape), _SIMILAR, "similar"
        if end - start >= least and lines[start].strip():
            kept += [*lines[start : start + 2], f"[… {end - start - 3:,} {word} lines …]", lines[end - 1]]
        else:
            end = start + 1 if word == "similar" else end
            kept += lines[start:end]
        start = end
    return "\n".join(kept)


def _run_end(lines: list[str], start: int, form: Callable[[str], str]) -> int:
    key = form(lines[start])
    end = start + 1
    while end < len(lines) and form(lines[end]) == key:
        end += 1
    return end


def _same(line: str) -> str:
    return line


def _shape(line: str) -> str:
    return _BAR.sub("~", _DIGITS.sub("0", line))


def cut(text: str, limit: int) -> str:
    """At most about `limit` characters: head and tail at line ends, between them how much was cut.

    The tail gets more, as results and errors come last.
    """
    if len(text) <= limit:
        return text
    mark = len("\n[… 1,000,000 characters cut …]\n")
    room = max(0, limit - mark)
    head, tail = text[: int(room * 0.4)], text[len(text) - (room - int(room * 0.4)) :]
    if (end := head.rfind("\n")) > len(head) // 2:
        head = head[:end]
    if 0 <= (begin := tail.find("\n")) < len(tail) // 2:
        tail = tail[begin + 1 :]
    return f"{head}\n[… {len(text) - len(head) - len(tail):,} characters cut …]\n{tail}"


def shrink(pieces: tuple[Part, ...], limit: int) -> tuple[Part, ...]:
    """The parts within about `limit` characters: everything is folded, then the longest bodies are cut first."""
    pieces = tuple(Part(p.kind, p.heading, fold(p.body, similar=p.kind == "output")) for p in pieces)
    room = limit - sum(len(p.heading) + 6 for p in pieces)
    if sum(len(p.body) for p in pieces) <= room:
        return pieces
    # The largest per-part limit under which the whole fits: short parts stay whole, long ones share the rest.
    left, share = room, 0
    sizes = sorted(len(p.body) for p in pieces)
    for rank, size in enumerate(sizes):
        share = max(0, left) // (len(sizes) - rank)
        if size > share:
            break
        left -= size
    return tuple(Part(p.kind, p.heading, cut(p.body, share)) for p in pieces)
