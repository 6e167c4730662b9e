"""What an action executes and what it writes: its code split into Python, shell and files, here-documents included.

A turn's command is rarely one language: a bash call holds here-documents that are files, and `python - <<` bodies that
are programs; a Python cell holds a string that is the module it saves. Facts are read from each part in its own terms.
"""

from __future__ import annotations

import ast
import re
import textwrap
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from .models import Action
from .syntax_tree import descendants

MAX_CHARS = 200_000
"""More code than this in one action is cut: no author writes that much in a turn, and parsing must stay cheap."""
MAX_LINE = 4_000
"""Longer lines are embedded data; only their beginning can be code."""

HEREDOC = re.compile(r"<<-?\s{0,4}(['\"]?)([A-Za-z_]\w{0,40})\1")
"""Where a here-document begins: its quote, its tag."""
_TARGET = re.compile(r"(?:>{1,2}|\btee\s(?:-a\s)?)\s{0,8}([^\s<>|;&]{1,300})")
_PYTHON = re.compile(r"\b(?:python[\d.]{0,5}|ipython|uv run)\b")
_INLINE = re.compile(r"\bpython[\d.]{0,5}\s+(?:-[a-zA-Z]\s+){0,3}-c\s*(['\"])")
_ECHO = re.compile(r"\b(?:echo|printf)\s+(?:-[ne]{1,2}\s+)?(['\"])")
_SENT = re.compile(r"['\"]\s{0,4}(>{1,2})\s{0,4}([^\s<>|;&]{1,300})")
_KEEPS_TEXT = frozenset({"strip", "lstrip", "rstrip", "format", "replace", "encode"})
_WRITES = re.compile(r"\bwrite(?:_text)?\b")
_NO_HELP = r"(?![^\n;|&]{0,300}\s(?:--help\b|--version\b|-h(?:[ \t]*$|[ \t]*[\n;|&])))"
RUN = re.compile(
    r"\b(?:python[\d.]{0,5}|torchrun|accelerate launch|bash|sh|Rscript|node)\s+(?:-[\w=]{1,20}\s+){0,4}(?:-m\s+)?([\w./~$\{\}-]{1,200}\.(?:py|sh|R|js|ipynb))\b"
    + _NO_HELP
    + r"|(?:^|[;&|]\s{0,3})(\./[\w./-]{1,200})"
    + _NO_HELP
)
"""A script that is started; asking for its help starts nothing."""
_PATCHED = re.compile(
    r"(?m)^(?:[AMU] (\S{1,300})|\*\*\* (?:Add|Update) File: (\S{1,300})|\+\+\+ (?:b/)?(\S{1,300}))[ \t]*$"
)


@dataclass(frozen=True)
class Part:
    """A piece of an action. `python` and `shell` run here and now; `file` is text written to `path`."""

    kind: Literal["python", "shell", "file"]
    text: str
    path: str = ""
    append: bool = False
    before: str = ""
    """The end of the shell text in which a Python here-document stands: its command line and the loops around it."""

    @property
    def lines(self) -> int:
        """Lines that hold more than white space or a comment."""
        return sum(1 for line in self.text.split("\n") if line.strip() and not line.lstrip().startswith("#"))


_ONE_AT_A_TIME = threading.Lock()
"""Filters of warnings are the whole process's."""
_ATTEMPTS = 10
"""CPython 3.11 counts the depth of all threads' syntax trees in one place, so that a tree that a library makes in another
thread can end ours with SystemError ("AST constructor recursion depth mismatch", cpython issue 106905): nothing is wrong
with the text, and the next attempt succeeds."""


def clip(text: str) -> str:
    """The text with its size and its line lengths bounded, so that every later pass over it is cheap."""
    text = text[:MAX_CHARS]
    if len(text) <= MAX_LINE:
        return text
    lines = text.split("\n")
    return text if max(map(len, lines)) <= MAX_LINE else "\n".join(line[:MAX_LINE] for line in lines)


def parse(text: str) -> ast.Module | None:
    """The module, notebook magics left out; None when the text is no Python."""
    if "\n%" in text or "\n!" in text or text[:1] in ("%", "!"):
        text = "\n".join("pass" if line[:1] in ("%", "!") else line for line in text.split("\n"))
    for attempt in range(_ATTEMPTS):
        try:
            with _ONE_AT_A_TIME, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the author's invalid escapes are not ours to report
                return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        except SystemError:
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def split(action: Action) -> tuple[Part, ...]:
    """The parts of an action in order; nothing for tools that neither run nor write."""
    if action.kind in ("write", "edit"):
        if not action.code:
            return ()
        code = clip(action.code)
        return (Part("file", code, action.path or _patched(code), action.kind == "edit"),)
    if action.kind != "execute" or not action.code.strip():
        return ()
    code = clip(action.code)
    if action.language == "python":
        return (*_written_modules(code), Part("python", code))
    if action.language not in ("bash", "sh", None) or (action.language is None and _looks_python(code)):
        return (Part("python", code),)
    return tuple(_shell_parts(code))


def _patched(patch: str) -> str:
    """The file that a patch text names: `A path`, `*** Update File: path`, `+++ b/path`."""
    match = _PATCHED.search(patch[:4_000])
    return next((g for g in match.groups() if g), "") if match else ""


def split_shell(code: str) -> tuple[Part, ...]:
    """The parts of a shell text, such as a script that the run wrote."""
    return tuple(_shell_parts(clip(code)))


def script_runs(shell: str) -> tuple[str, ...]:
    """Paths of the scripts that a shell text starts."""
    return tuple(found[0] or found[1] for found in RUN.findall(shell))


def _looks_python(code: str) -> bool:
    return bool(re.search(r"(?m)^(?:import|from) \w", code)) and parse(code) is not None


def _shell_parts(code: str) -> Iterator[Part]:
    shell: list[str] = []
    lines = code.split("\n")
    position = 0
    while position < len(lines):
        line = lines[position]
        shell.append(line)
        position += 1
        for match in HEREDOC.finditer(line):
            tag, body = match.group(2), []
            while position < len(lines) and lines[position].strip() != tag:
                body.append(lines[position])
                position += 1
            position += 1
            text = "\n".join(body)
            target = _TARGET.search(line)
            if target is None and _PYTHON.search(line):
                yield Part("python", text, before="\n".join(shell)[-400:])
            elif target is not None:
                written = target.group(0)
                yield Part("file", text, target.group(1).strip("'\""), ">>" in written or "-a " in written)
            else:
                shell.append(text)
    files, text = _echoed("\n".join(shell))
    yield from files
    yield from _inline_python(text)


def _echoed(shell: str) -> tuple[list[Part], str]:
    """Texts of several lines, or a plan of one, that echo or printf sends to a file, and the shell text without them."""
    found: list[Part] = []
    rest: list[str] = []
    position = 0
    for match in _ECHO.finditer(shell):
        if match.start() < position:
            continue
        end = _closing(shell, match.end(), match.group(1))
        target = _SENT.match(shell, end)
        if target is None or ("\n" not in shell[match.end() : end] and "plan.md" not in target.group(2)):
            continue
        found.append(Part("file", shell[match.end() : end], target.group(2).strip("'\""), target.group(1) == ">>"))
        rest.append(f"{shell[position : match.end()]}…")
        position = end
    return found, "".join((*rest, shell[position:]))


def _inline_python(shell: str) -> Iterator[Part]:
    """`python -c "..."` bodies as Python, the rest as shell."""
    rest: list[str] = []
    position = 0
    for match in _INLINE.finditer(shell):
        if match.start() < position:
            continue
        end = _closing(shell, match.end(), match.group(1))
        rest.append(shell[position : match.end()])
        body = shell[match.end() : end]
        yield Part("python", body.replace('\\"', '"').replace("\\$", "$") if match.group(1) == '"' else body)
        position = end
    rest.append(shell[position:])
    text = "".join(rest)
    if text.strip():
        yield Part("shell", text)


def _closing(text: str, start: int, quote: str) -> int:
    position = start
    while (position := text.find(quote, position)) >= 0:
        if quote == "'" or text[position - 1] != "\\":
            return position
        position += 1
    return len(text)


def _written_modules(code: str) -> Iterator[Part]:
    """Files that a Python cell writes from string literals: `%%writefile`, open(...).write(text), write_text(text)."""
    if code.startswith("%%writefile"):
        head, _, body = code.partition("\n")
        yield Part("file", body, head.split()[-1])
        return
    if not _WRITES.search(code):  # the methods that are looked for below
        return
    tree = parse(code)
    if tree is None:
        return
    names: dict[str, ast.expr] = {}
    handles: dict[str, tuple[str, bool]] = {}
    nodes = descendants(tree)
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            names.setdefault(node.targets[0].id, node.value)
        elif isinstance(node, ast.With):
            for item in node.items:
                if isinstance(item.optional_vars, ast.Name):
                    handles[item.optional_vars.id] = (_path_of(item.context_expr, names), _appends(item.context_expr))
    for node in nodes:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        if node.func.attr not in ("write", "write_text"):
            continue
        target = node.func.value
        named = handles.get(target.id) if isinstance(target, ast.Name) else None
        path, append = named or (_path_of(target, names), _appends(target))
        text = _literal(node.args[0], names)
        if text is not None and (text.count("\n") >= 2 or "plan.md" in path) and path:
            yield Part("file", text, path, append)


def _appends(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and any(
        isinstance(a, ast.Constant) and a.value in ("a", "at", "a+")
        for a in (*node.args, *(k.value for k in node.keywords))
    )


def literal_text(node: ast.AST) -> str | None:
    """The text of a string constant, also where a method only trims, fills in or changes it; None for others."""
    return _literal(node, {})


def _literal(node: ast.AST, names: dict[str, ast.expr], depth: int = 0) -> str | None:
    if depth > 5:
        return None
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name) and node.id in names:
        return _literal(names[node.id], names, depth + 1)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else "…" for v in node.values)
    if isinstance(node, ast.BinOp):
        sides = [_literal(side, names, depth + 1) for side in (node.left, node.right)]
        return None if sides == [None, None] else "".join(side or "" for side in sides)
    if isinstance(node, ast.Call):
        if node.args and _name(node.func) == "dedent":
            text = _literal(node.args[0], names, depth + 1)
            return text if text is None else textwrap.dedent(text)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS_TEXT:
            return _literal(node.func.value, names, depth + 1)
    return None


def _path_of(node: ast.AST, names: dict[str, ast.expr], depth: int = 0) -> str:
    """The file name inside open(...), Path(...) or a joined path, as far as it is literal."""
    if depth > 5:
        return ""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.Name):
        return _path_of(names[node.id], names, depth + 1) if node.id in names else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) for v in node.values if isinstance(v, ast.Constant))
    if isinstance(node, ast.BinOp):
        return _path_of(node.right, names, depth + 1) or _path_of(node.left, names, depth + 1)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "open" and not node.args:
            return _path_of(node.func.value, names, depth + 1)
        for argument in [*reversed(node.args[:1])] if _name(node.func) == "open" else [*reversed(node.args)]:
            if found := _path_of(argument, names, depth + 1):
                return found
    return ""


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
