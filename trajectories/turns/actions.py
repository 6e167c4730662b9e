"""Split the code of an action into what it executes (Python, shell) and what it writes (files).

A turn's command is rarely one language: a bash call contains here-documents that are files, and
`python - <<` bodies that are programs; a Python cell contains a string that is the module it saves.
Facts are read from each part in its own terms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ..models import Action
from .python_code import parse
from .python_writes import python_writes

MAX_CHARS = 200_000
"""Longer code is cut: nobody writes that much in a turn, and parsing must stay cheap."""
MAX_LINE = 4_000
"""Longer lines are embedded data, of which only the beginning can be code."""

PLAN_NAME = re.compile(r"(?<![\w-])plan\.md\b", re.IGNORECASE)
HEREDOC = re.compile(r"<<(-?)\s{0,4}(['\"]?)([A-Za-z_]\w{0,40})\2")
"""The beginning of a here-document: its dash, its quote, its tag."""
_TARGET = re.compile(r"(?:>{1,2}|\btee\s(?:-a\s)?)\s{0,8}([^\s<>|;&]{1,300})")
_PYTHON = re.compile(r"\b(?:python[\d.]{0,5}|ipython|uv run)\b")
_INLINE = re.compile(r"\bpython[\d.]{0,5}\s+(?:-[a-zA-Z]\s+){0,3}-c\s*(['\"])")
_ECHO = re.compile(r"\b(?P<program>echo|printf)\s+(?P<options>-[neE]{1,3}\s+)?(?P<quote>['\"])")
_SENT = re.compile(r"['\"]\s{0,4}(>{1,2})\s{0,4}([^\s<>|;&]{1,300})")
_MAGIC = re.compile(r"\s{0,40}%%writefile\s+(?P<append>-a\s+)?(?P<path>\S+)[^\n]*\n")
_NO_HELP = r"(?![^\n;|&]{0,300}\s(?:--help\b|--version\b|-h(?:[ \t]*$|[ \t]*[\n;|&])))"
RUN = re.compile(
    r"\b(?:python[\d.]{0,5}|torchrun|accelerate launch|bash|sh|Rscript|node)\s+"
    r"(?:-[\w=]{1,20}\s+){0,4}(?:-m\s+)?([\w./~$\{\}-]{1,200}\.(?:py|sh|R|js|ipynb))\b"
    + _NO_HELP
    + r"|(?:^|[;&|]\s{0,3})(\./[\w./-]{1,200})"
    + _NO_HELP
)
"""A script that is started; asking for its help starts nothing."""
_PATCHED = re.compile(
    r"(?m)^(?:[AMU] (\S{1,300})|\*\*\* (?:Add|Update) File: (\S{1,300})"
    r"|\+\+\+ (?:b/)?(\S{1,300}))[ \t]*$"
)


@dataclass(frozen=True)
class Part:
    """A piece of an action: `python` and `shell` run now, `file` is text written to `path`."""

    kind: Literal["python", "shell", "file"]
    text: str
    path: str = ""
    append: bool = False
    before: str = ""
    """The end of the shell text before a Python here-document: its command line and its loops."""

    @property
    def lines(self) -> int:
        """Number of lines that are neither blank nor a comment."""
        lines = (line.strip() for line in self.text.split("\n"))
        return sum(1 for line in lines if line and not line.startswith("#"))


def clip(text: str) -> str:
    """Bound a text and its lines in length, so that every later pass over it is cheap."""
    text = text[:MAX_CHARS]
    if len(text) <= MAX_LINE:
        return text
    return "\n".join(line[:MAX_LINE] for line in text.split("\n"))


def split(action: Action) -> tuple[Part, ...]:
    """The parts of an action in order; none for tools that neither run nor write."""
    if action.kind in ("write", "edit"):
        if not action.code:
            return ()
        code = clip(action.code)
        return (Part("file", code, action.path or _patched(code), action.kind == "edit"),)
    if action.kind != "execute" or not action.code.strip():
        return ()
    code, language = action.code[:MAX_CHARS], action.language
    if language == "python" or (language is None and _looks_python(code)):
        return tuple(_python(code))
    if language in ("bash", "sh", None):
        return split_shell(code)
    return (Part("python", clip(code)),)


def split_shell(code: str) -> tuple[Part, ...]:
    """The parts of a shell text: files and programs in order, then the shell itself."""
    parts: list[tuple[int, Part]] = []
    shell: list[str] = []
    lines = code[:MAX_CHARS].split("\n")
    position = 0
    while position < len(lines):
        line = lines[position][:MAX_LINE]
        start = position
        shell.append(lines[position])
        position += 1
        for match in HEREDOC.finditer(line) if "<<" in line else ():
            body, position = _here_document(lines, position, match)
            text = "".join(f"{row}\n" for row in body)
            target = _TARGET.search(line)
            if target is not None:
                append = target[0].startswith(">>") or "-a" in target[0].split()
                parts.append((start, Part("file", text, target[1].strip("'\""), append)))
            elif _PYTHON.search(line):
                parts += ((start, part) for part in _python(text, "\n".join(shell[-9:])[-400:]))
            else:
                shell.append(text)
    text = _without_programs("\n".join(shell), parts)
    text = _without_texts(text, parts)
    in_order = [part for _, part in sorted(parts, key=lambda item: item[0])]
    return (*in_order, Part("shell", clip(text))) if text.strip() else tuple(in_order)


def _here_document(lines: list[str], position: int, start: re.Match[str]) -> tuple[list[str], int]:
    """The lines of a here-document, and the position after it."""
    dash, tag = start[1], start[3]
    body: list[str] = []
    while position < len(lines):
        row = lines[position].lstrip("\t") if dash else lines[position]
        position += 1
        if row.rstrip() == tag:
            break
        body.append(row)
    return body, position


def script_runs(shell: str) -> tuple[str, ...]:
    """Paths of the scripts that a shell text starts."""
    return tuple(by_program or by_path for by_program, by_path in RUN.findall(shell))


def _patched(patch: str) -> str:
    """The file that a patch text names: `A path`, `*** Update File: path`, `+++ b/path`."""
    match = _PATCHED.search(patch[:4_000])
    return next(filter(None, match.groups()), "") if match else ""


def _looks_python(code: str) -> bool:
    return (
        bool(re.search(r"(?m)^(?:import|from) \w|\bopen\(|\bwrite_text\(", code))
        and parse(code) is not None
    )


def _python(code: str, before: str = "") -> Iterator[Part]:
    """The files that Python code writes from its own texts, then the code."""
    if magic := _MAGIC.match(code):
        yield Part("file", code[magic.end() :], magic["path"], bool(magic["append"]))
    for path, text, append in python_writes(code):
        if path and (text.count("\n") >= 2 or PLAN_NAME.search(path)):
            yield Part("file", text, path, append)
    yield Part("python", clip(code), before=before)


def _without_texts(shell: str, parts: list[tuple[int, Part]]) -> str:
    """Shell text without the texts that echo or printf sends to a file.

    Only texts of several lines and plans are taken out; they are added to `parts` as files, each
    with its line.
    """
    remaining: list[str] = []
    position = lines = 0
    for match in _ECHO.finditer(shell):
        if match.start() < position:
            continue
        end = _closing(shell, match.end(), match["quote"])
        target = _SENT.match(shell, end)
        text = shell[match.end() : end]
        if target is None or ("\n" not in text and not PLAN_NAME.search(target[2])):
            continue
        options = match["options"] or ""
        if "\\n" in text and (match["program"] == "printf" or "e" in options):
            text = text.replace("\\n", "\n")
        if match["program"] == "echo" and "n" not in options:
            text += "\n"
        lines += shell.count("\n", position, match.start())
        parts.append((lines, Part("file", text, target[2].strip("'\""), target[1] == ">>")))
        lines += shell.count("\n", match.start(), end)
        remaining.append(f"{shell[position : match.end()]}…")
        position = end
    return "".join((*remaining, shell[position:]))


def _without_programs(shell: str, parts: list[tuple[int, Part]]) -> str:
    """Shell text without the bodies of `python -c "..."`, which are added to `parts`.

    Each part comes with its line.
    """
    remaining: list[str] = []
    position = lines = 0
    for match in _INLINE.finditer(shell):
        if match.start() < position:
            continue
        end = _closing(shell, match.end(), match[1])
        remaining.append(shell[position : match.end()])
        body = shell[match.end() : end]
        if match[1] == '"':
            body = body.replace('\\"', '"').replace("\\$", "$")
        lines += shell.count("\n", position, match.start())
        before = shell[max(0, match.start() - 400) : match.start()]
        parts += [(lines, part) for part in _python(body, before)]
        lines += shell.count("\n", match.start(), end)
        position = end
    return "".join((*remaining, shell[position:]))


def _closing(text: str, start: int, quote: str) -> int:
    """The position of the closing quote, or the end of the text."""
    position = text.find(quote, start)
    while position >= 0:
        if quote == "'" or text[position - 1] != "\\":
            return position
        position = text.find(quote, position + 1)
    return len(text)
