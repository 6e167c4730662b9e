"""Shows files that a run writes again by what changed since the turn that wrote them before.

A write is recognised if a tool writes a file, or if a shell here-document goes to one (`cat > path
<<'EOF'`, `tee`). The marks are part of the record that a judge is shown: their wording must not
change without a new `assembly.PACKING`.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from ..models import Action

_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)(\w{1,60})\1")
_TARGET = re.compile(r"(?:(?<!>)>|\btee)[ \t]*(?![>&|])(['\"]?)([^\s'\";|&<>]{1,300})\1")
"""The file that a command writes to; `>>` adds to one and does not count."""
_MAX_COMMAND = 1_000
"""Characters of a command line in which a here-document is looked for."""
_MAX_DIFF_SHARE = 0.6
"""A diff longer than this share of the text is no help: the text itself is shown."""
_MAX_FILE_LINES = 3_000
"""Longer files are not compared: a diff can take time that grows with the square."""
_MAX_COMPARED_LINES = 40_000
"""Lines of one run that are compared in all."""
_MIN_CHARS = 200
"""Shorter texts are shown again rather than explained."""


@dataclass(frozen=True)
class FileWrite:
    """A complete file as an action writes it, and the part of the action's code that holds it."""

    name: str
    text: str
    start: int
    end: int


class Rewrites:
    """The files that the turns so far wrote, by name. Give it the actions of a run in order."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[int, str]] = {}
        """Turn and text of the latest write of each file."""
        self._compared_lines = 0

    def render(self, turn: int, action: Action) -> tuple[str, tuple[int, ...]]:
        """The action's code, with files that an earlier turn wrote shown by their changes.

        The second value are those earlier turns.
        """
        pieces: list[str] = []
        bases: list[int] = []
        position = 0
        for write in file_writes(action):
            latest = self._latest.get(write.name)
            self._latest[write.name] = (turn, write.text)
            if latest is None or latest[0] == turn or len(write.text) < _MIN_CHARS:
                continue
            base, base_text = latest
            changes = self._changes(base_text, write.text)
            if changes is None:
                continue
            bases.append(base)
            pieces += [action.code[position : write.start], _describe(write.name, base, changes)]
            position = write.end
        return "".join([*pieces, action.code[position:]]), tuple(bases)

    def _changes(self, before: str, after: str) -> str | None:
        """The diff, "" if nothing changed; None if it is better to show the text itself."""
        if before == after:
            return ""
        old, new = before.split("\n"), after.split("\n")
        self._compared_lines += len(old) + len(new)
        is_too_long = max(len(old), len(new)) > _MAX_FILE_LINES
        if is_too_long or self._compared_lines > _MAX_COMPARED_LINES:
            return None
        # More than half of the lines are new: it is another text under the same name.
        if len(set(old) & set(new)) * 2 < len(set(new)):
            return None
        diff = list(difflib.unified_diff(old, new, n=2, lineterm=""))[2:]  # without file names
        text = "\n".join(diff)
        # The limit counts a line break for the last line, too.
        return None if len(text) + 1 > _MAX_DIFF_SHARE * len(after) else text


def _describe(name: str, turn: int, changes: str) -> str:
    if not changes:
        return f"[… {name} as written in turn {turn}, unchanged …]"
    return (
        f"[… {name} as written in turn {turn}, with these changes …]\n{changes}\n"
        "[… end of the changes …]"
    )


def file_writes(action: Action) -> list[FileWrite]:
    """The complete files that this action writes, in the order of `action.code`."""
    code = action.code
    if action.kind == "write" and action.path and code:
        return [FileWrite(PurePosixPath(action.path).name, code, 0, len(code))]
    is_shell = action.kind == "execute" and action.language in ("bash", "sh", "shell", None)
    return _heredoc_writes(code) if is_shell and "<<" in code else []


def _heredoc_writes(code: str) -> list[FileWrite]:
    """The files that here-documents of a shell script write."""
    writes: list[FileWrite] = []
    name = delimiter = ""
    start = position = 0
    for line in code.split("\n"):
        if delimiter:
            if line.strip() == delimiter:
                if name and position > start:
                    end = position - 1
                    writes.append(FileWrite(name, code[start:end], start, end))
                delimiter = ""
        elif len(line) <= _MAX_COMMAND:
            heredoc = _HEREDOC.search(line)
            if heredoc:
                delimiter = heredoc.group(2)
                target = _TARGET.search(line)
                name = PurePosixPath(target.group(2)).name if target else ""
                start = position + len(line) + 1
        position += len(line) + 1
    return writes
