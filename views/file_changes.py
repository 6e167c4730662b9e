"""Changes of files as lines with signs: `+` new, `-` gone, a space for lines that stay."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from ..trajectories.turns.tool_calls import FileEdit

_MOST_COMPARED = 4_000_000
"""Pairs of lines up to which two texts are compared; longer ones stand one after the other."""
_SEARCH, _MIDDLE, _REPLACE = (
    re.compile(r"<{5,9} ?SEARCH\b"),
    re.compile(r"={5,9}\s*$"),
    re.compile(r">{5,9} ?REPLACE\b"),
)


def signed_lines(edit: FileEdit) -> tuple[list[str], str]:
    """The lines of a change, and one sign for each; a patch keeps its own signs in its lines."""
    if edit.is_patch:
        lines = _lines(edit.new)
        return lines, _patch_signs(lines)
    new = _lines(edit.new)
    if edit.old is None:
        return new, "+" * len(new)
    return _difference(_lines(edit.old), new)


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _difference(old: list[str], new: list[str]) -> tuple[list[str], str]:
    if len(old) * len(new) > _MOST_COMPARED:
        return [*old, *new], "-" * len(old) + "+" * len(new)
    lines: list[str] = []
    signs = ""
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for kind, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if kind == "equal":
            lines += new[new_start:new_end]
            signs += " " * (new_end - new_start)
            continue
        lines += [*old[old_start:old_end], *new[new_start:new_end]]
        signs += "-" * (old_end - old_start) + "+" * (new_end - new_start)
    return lines, signs


def _patch_signs(lines: list[str]) -> str:
    """The signs of a patch: of a unified diff, of `*** Begin Patch`, or of SEARCH and REPLACE."""
    signs = ""
    within = ""
    for line in lines:
        if _SEARCH.match(line):
            within = "-"
        elif within and _MIDDLE.match(line):
            within = "+"
        elif _REPLACE.match(line):
            within = ""
        elif within:
            signs += within
            continue
        is_header = line.startswith(("+++ ", "--- "))
        signs += line[0] if line[:1] in ("+", "-") and not is_header else " "
    return signs
