"""Files that a run writes again: what changed against the turn that wrote them before.

A write is seen where a tool writes a file, or where a shell here-document goes to one (`cat > path
<<'EOF'`, `tee`).
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from ..models import Action

_OPENER = re.compile(r"<<-?[ \t]*(['\"]?)(\w{1,60})\1")
_TARGET = re.compile(r"(?:(?<!>)>|\btee)[ \t]*(?![>&|])(['\"]?)([^\s'\";|&<>]{1,300})\1")
_SHORTER = 0.6
"""A diff longer than this share of the text is no help: the text itself is shown."""
_LINES = 3_000
"""Longer files are not compared: finding what changed can take time that grows with the square."""
_WORK = 40_000
"""Lines of a run that are compared at most."""
_LEAST = 200
"""Characters below which a text is shown again rather than explained."""


@dataclass(frozen=True)
class Written:
    """A file's whole text as an action writes it, and where in the action's code it stands."""

    name: str
    text: str
    start: int
    end: int


class Rewrites:
    """What the turns so far wrote, by file name. Give it the actions of a run in order."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, str]] = {}
        self._work = 0

    def shown(self, turn: int, action: Action, code: str) -> tuple[str, tuple[int, ...]]:
        """The action's code with files that an earlier turn wrote shown by their changes, and those
        turns."""
        pieces: list[str] = []
        bases: list[int] = []
        place = 0
        for written in writes(action):
            base = self._last.get(written.name)
            self._last[written.name] = (turn, written.text)
            if base is None or base[0] == turn or len(written.text) < _LEAST:
                continue
            changes = self._changes(base[1], written.text)
            if changes is None:
                continue
            bases.append(base[0])
            pieces += [code[place : written.start], self._told(written.name, base[0], changes)]
            place = written.end
        return "".join([*pieces, code[place:]]) if pieces else code, tuple(bases)

    @staticmethod
    def _told(name: str, turn: int, changes: str) -> str:
        if not changes:
            return f"[… {name} as written in turn {turn}, unchanged …]"
        return (
            f"[… {name} as written in turn {turn}, with these changes …]\n{changes}\n[… end of the"
            " changes …]"
        )

    def _changes(self, before: str, after: str) -> str | None:
        """The diff, "" for none; None where the text itself is the shorter or the only sensible
        thing to show."""
        if before == after:
            return ""
        old, new = before.split("\n"), after.split("\n")
        self._work += len(old) + len(new)
        if max(len(old), len(new)) > _LINES or self._work > _WORK:
            return None
        if len(set(old) & set(new)) * 2 < len(set(new)):
            return None
        lines, size, limit = [], 0, _SHORTER * len(after)
        for line in list(difflib.unified_diff(old, new, n=2, lineterm=""))[2:]:
            lines.append(line)
            size += len(line) + 1
            if size > limit:
                return None
        return "\n".join(lines)


def writes(action: Action) -> list[Written]:
    """Whole files that this action writes, in order of their places in `action.code`."""
    code = action.code
    if action.kind == "write" and action.path and code:
        return [Written(PurePosixPath(action.path).name, code, 0, len(code))]
    if (
        action.kind != "execute"
        or action.language not in ("bash", "sh", "shell", None)
        or "<<" not in code
    ):
        return []
    found: list[Written] = []
    name = tag = ""
    start = place = 0
    for line in code.split("\n"):
        if tag:
            if line.strip() == tag:
                if name and place > start:
                    found.append(Written(name, code[start : place - 1], start, place - 1))
                tag = ""
        elif len(line) <= 1_000 and (opener := _OPENER.search(line)):
            tag = opener.group(2)
            # Without its own text, the command line names the file that the text goes to; `>>` adds
            # to one.
            target = _TARGET.search(line)
            name = PurePosixPath(target.group(2)).name if target else ""
            start = place + len(line) + 1
        place += len(line) + 1
    return found
