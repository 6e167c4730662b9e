"""Functions of shell scripts: where one is called, its body stands in its place, with the words that the call gives it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from .code_parts import HEREDOC

MAX_CALLS = 30
MAX_CHARS = 100_000
"""Calls written out in one action, and characters that it may grow to."""
_DEFINED = re.compile(
    r"[ \t]{0,20}(?:function[ \t]{1,4}([A-Za-z_][\w-]{0,60})[ \t]{0,4}(?:\(\))?|([A-Za-z_][\w-]{0,60})[ \t]{0,4}\(\))[ \t]{0,4}\{(.*)"
)
_SOURCED = re.compile(r"(?m)(?:^|[;&|])[ \t]{0,8}(?:\.|source)[ \t]{1,4}([^\s;&|]{1,300})")
_ARGUMENT = re.compile(r"\$(?:\{([1-9])\}|([1-9])|([@*]))")


def defines_or_sources(code: str) -> bool:
    """Whether a shell text may hold functions: a cheap look."""
    return _DEFINED.search(code) is not None or _SOURCED.search(code) is not None


def written_out(code: str, files: Mapping[str, str]) -> str:
    """Shell text with its own functions, and those of the files that it sources (by file name), put where they are called.

    The text as it is where it defines and sources none. Functions that call functions are followed two deep.
    """
    sourced = "\n".join(files.get(PurePosixPath(path).name, "") for path in _SOURCED.findall(code))[:MAX_CHARS]
    if not (_DEFINED.search(code) or _DEFINED.search(sourced)):
        return code
    functions = {**_defined(sourced)[0], **_defined(code)[0]}
    text = _defined(code)[1]
    for _ in range(2):
        text = _called(text, functions) if functions and len(text) < MAX_CHARS else text
    return text


def _defined(code: str) -> tuple[dict[str, str], str]:
    """Function name -> body, and the text without the definitions. What stands in a here-document defines nothing."""
    functions: dict[str, str] = {}
    rest: list[str] = []
    body: list[str] | None = None
    name, tag = "", ""
    for line in code.split("\n"):
        held = rest if body is None else body
        if tag:
            held.append(line)
            tag = "" if line.strip() == tag else tag
            continue
        start = _DEFINED.match(line) if body is None else None
        if start is not None:
            name, first = start[1] or start[2], start[3].strip()
            if first.endswith("}"):
                functions[name] = first[:-1].rstrip(" ;")
            else:
                body = [first] if first else []
        elif body is not None and line.strip().startswith("}"):
            functions[name], body = "\n".join(body), None
        else:
            held.append(line)
        opened = HEREDOC.search(line)
        tag = opened[2] if opened is not None else ""
    return functions, "\n".join([*rest, *(body or [])])


def _called(code: str, functions: Mapping[str, str]) -> str:
    names = "|".join(map(re.escape, functions))
    call = re.compile(rf"(^|[;&|(]|\b(?:do|then|else|time)\b)([ \t]*)({names})(?![\w.=/-])([^;&|\n)]{{0,400}})")
    found: list[str] = []
    tag, calls = "", 0

    def body(match: re.Match[str]) -> str:
        nonlocal calls
        calls += 1
        if calls > MAX_CALLS:
            return match[0]
        words = [word.strip("'\"") for word in match[4].split() if not word.startswith((">", "<", "2>"))]
        return f"{match[1]}\n{_with(functions[match[3]], words)}\n"

    for line in code.split("\n"):
        found.append(line if tag else call.sub(body, line))
        opened = None if tag else HEREDOC.search(line)
        tag = opened[2] if opened is not None else "" if line.strip() == tag else tag
    return "\n".join(found)


def _with(body: str, words: list[str]) -> str:
    """A body with what the call gives for $1, $2, ... and $@; without a word for it, a parameter stays as it is."""

    def given(match: re.Match[str]) -> str:
        if match[3]:
            return " ".join(words)
        place = int(match[1] or match[2]) - 1
        return words[place] if place < len(words) else match[0]

    return _ARGUMENT.sub(given, body)
