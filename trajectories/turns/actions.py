"""What an action executes and what it writes: its code split into Python, shell and files,
here-documents included.

A turn's command is rarely one language: a bash call holds here-documents that are files, and
`python - <<` bodies that are programs; a Python cell holds a string that is the module it saves.
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
"""More code than this in one action is cut: no author writes that much in a turn, and parsing must
stay cheap."""
MAX_LINE = 4_000
"""Longer lines are embedded data; only their beginning can be code."""

PLAN_NAME = re.compile(r"(?<![\w-])plan\.md\b", re.IGNORECASE)
HEREDOC = re.compile(r"<<(-?)\s{0,4}(['\"]?)([A-Za-z_]\w{0,40})\2")
"""Where a here-document begins: its dash, its quote, its tag."""
_TARGET = re.compile(r"(?:>{1,2}|\btee\s(?:-a\s)?)\s{0,8}([^\s<>|;&]{1,300})")
_PYTHON = re.compile(r"\b(?:python[\d.]{0,5}|ipython|uv run)\b")
_INLINE = re.compile(r"\bpython[\d.]{0,5}\s+(?:-[a-zA-Z]\s+){0,3}-c\s*(['\"])")
_ECHO = re.compile(r"\b(?P<program>echo|printf)\s+(?P<options>-[neE]{1,3}\s+)?(?P<quote>['\"])")
_SENT = re.compile(r"['\"]\s{0,4}(>{1,2})\s{0,4}([^\s<>|;&]{1,300})")
_MAGIC = re.compile(r"\s{0,40}%%writefile\s+(?P<append>-a\s+)?(?P<path>\S+)[^\n]*\n")
_NO_HELP = r"(?![^\n;|&]{0,300}\s(?:--help\b|--version\b|-h(?:[ \t]*$|[ \t]*[\n;|&])))"
RUN = re.compile(
    r"\b(?:python[\d.]{0,5}|torchrun|accelerate"
    r" launch|bash|sh|Rscript|node)\s+(?:-[\w=]{1,20}\s+){0,4}(?:-m\s+)?([\w./~$\{\}-]{1,200}\.(?:py|sh|R|js|ipynb))\b"
    + _NO_HELP
    + r"|(?:^|[;&|]\s{0,3})(\./[\w./-]{1,200})"
    + _NO_HELP
)
"""A script that is started; asking for its help starts nothing."""
_PATCHED = re.compile(
    r"(?m)^(?:[AMU] (\S{1,300})|\*\*\* (?:Add|Update) File: (\S{1,300})|\+\+\+ (?:b/)?(\S{1,300}))["
    r" \t]*$"
)


@dataclass(frozen=True)
class Part:
    """A piece of an action. `python` and `shell` run here and now; `file` is text written to
    `path`."""

    kind: Literal["python", "shell", "file"]
    text: str
    path: str = ""
    append: bool = False
    before: str = ""
    """The end of the shell text in which a Python here-document stands: its command line and the
    loops around it."""

    @property
    def lines(self) -> int:
        """Lines that hold more than white space or a comment."""
        return sum(
            1
            for line in self.text.split("\n")
            if line.strip() and not line.lstrip().startswith("#")
        )


def clip(text: str) -> str:
    """The text with its size and its line lengths bounded, so that every later pass over it is
    cheap."""
    text = text[:MAX_CHARS]
    if len(text) <= MAX_LINE:
        return text
    lines = text.split("\n")
    return (
        text if max(map(len, lines)) <= MAX_LINE else "\n".join(line[:MAX_LINE] for line in lines)
    )


def split(action: Action) -> tuple[Part, ...]:
    """The parts of an action in order; nothing for tools that neither run nor write."""
    if action.kind in ("write", "edit"):
        if not action.code:
            return ()
        code = clip(action.code)
        return (Part("file", code, action.path or _patched(code), action.kind == "edit"),)
    if action.kind != "execute" or not action.code.strip():
        return ()
    code = action.code[:MAX_CHARS]
    if action.language == "python":
        return tuple(_python(code))
    if action.language not in ("bash", "sh", None) or (
        action.language is None and _looks_python(code)
    ):
        return (Part("python", clip(code)),) if action.language else tuple(_python(code))
    return split_shell(code)


def split_shell(code: str) -> tuple[Part, ...]:
    """The parts of a shell text, such as a script that the run wrote: files and programs in order,
    then the shell."""
    found: list[tuple[int, Part]] = []
    shell: list[str] = []
    lines = code[:MAX_CHARS].split("\n")
    position = 0
    while position < len(lines):
        line = lines[position][:MAX_LINE]
        start = position
        shell.append(lines[position])
        position += 1
        for match in HEREDOC.finditer(line) if "<<" in line else ():
            dash, tag, body = match[1], match[3], []
            while position < len(lines):
                row = lines[position].lstrip("\t") if dash else lines[position]
                position += 1
                if row.rstrip() == tag:
                    break
                body.append(row)
            text = "".join(f"{row}\n" for row in body)
            target = _TARGET.search(line)
            if target is not None:
                append = target[0].startswith(">>") or "-a" in target[0].split()
                found.append((start, Part("file", text, target[1].strip("'\""), append)))
            elif _PYTHON.search(line):
                found += ((start, part) for part in _python(text, "\n".join(shell[-9:])[-400:]))
            else:
                shell.append(text)
    text = _without_programs("\n".join(shell), found)
    text = _without_texts(text, found)
    parts = [part for _, part in sorted(found, key=lambda item: item[0])]
    return (*parts, Part("shell", clip(text))) if text.strip() else tuple(parts)


def script_runs(shell: str) -> tuple[str, ...]:
    """Paths of the scripts that a shell text starts."""
    return tuple(found[0] or found[1] for found in RUN.findall(shell))


def _patched(patch: str) -> str:
    """The file that a patch text names: `A path`, `*** Update File: path`, `+++ b/path`."""
    match = _PATCHED.search(patch[:4_000])
    return next((g for g in match.groups() if g), "") if match else ""


def _looks_python(code: str) -> bool:
    return (
        bool(re.search(r"(?m)^(?:import|from) \w|\bopen\(|\bwrite_text\(", code))
        and parse(code) is not None
    )


def _python(code: str, before: str = "") -> Iterator[Part]:
    """The files that Python code writes from texts of its own, and the code."""
    if magic := _MAGIC.match(code):
        yield Part("file", code[magic.end() :], magic["path"], bool(magic["append"]))
    for path, text, append in python_writes(code):
        if path and (text.count("\n") >= 2 or PLAN_NAME.search(path)):
            yield Part("file", text, path, append)
    yield Part("python", clip(code), before=before)


def _without_texts(shell: str, found: list[tuple[int, Part]]) -> str:
    """Shell text without what echo or printf sends to a file, if that has several lines or is a
    plan; such texts are added to `found` as files, with their lines."""
    rest: list[str] = []
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
        found.append((lines, Part("file", text, target[2].strip("'\""), target[1] == ">>")))
        lines += shell.count("\n", match.start(), end)
        rest.append(f"{shell[position : match.end()]}…")
        position = end
    return "".join((*rest, shell[position:]))


def _without_programs(shell: str, found: list[tuple[int, Part]]) -> str:
    """Shell text without the bodies of `python -c "..."`, which are added to `found`, with their
    lines."""
    rest: list[str] = []
    position = lines = 0
    for match in _INLINE.finditer(shell):
        if match.start() < position:
            continue
        end = _closing(shell, match.end(), match[1])
        rest.append(shell[position : match.end()])
        body = shell[match.end() : end]
        body = body.replace('\\"', '"').replace("\\$", "$") if match[1] == '"' else body
        lines += shell.count("\n", position, match.start())
        found += (
            (lines, part)
            for part in _python(body, shell[max(0, match.start() - 400) : match.start()])
        )
        lines += shell.count("\n", match.start(), end)
        position = end
    return "".join((*rest, shell[position:]))


def _closing(text: str, start: int, quote: str) -> int:
    position = start
    while (position := text.find(quote, position)) >= 0:
        if quote == "'" or text[position - 1] != "\\":
            return position
        position += 1
    return len(text)
