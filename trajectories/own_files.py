"""Files of the run's own: how its code starts, executes, edits, copies and changes them."""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from pathlib import PurePosixPath

from .code_parts import Part, clip, literal_text, parse
from .models import Action
from .syntax_tree import descendants
from .world import World, file_name

_MODULE_RUN = re.compile(r"(\bpython[\d.]{0,5} (?:-[uBOI] ){0,3})-m ([\w.]{1,80})")
_TOOLS = frozenset(["pytest", "pip", "mypy", "black", "ruff", "flake8", "coverage", "IPython", "jupyter", "torch"])
"""Modules that others wrote and that are run by name."""
_OPENED = (
    r"""(?:(?:io\.)?open|(?:pathlib\.)?Path)\(\s{0,4}['"]([^'"\n]{1,200}\.py)['"][^)\n]{0,40}\)\.read(?:_text)?\("""
)
_READ_FILE = re.compile(rf"(?m)^(\w{{1,40}}) ?= ?{_OPENED}")
_EXEC_FILE = re.compile(rf"(?m)^exec\((?:compile\()?(?:{_OPENED}|(\w{{1,40}})[,)])[^\n]{{0,200}}$")
"""An exec of a file's text, on a line of its own."""
_CHANGED = re.compile(r"\b(?:sed|perl)\s+-\w{0,4}i[^\n;|&]{0,1000}?([\w./-]{1,120}\.py)\b")
"""Files that a shell changes in place."""
_COPIES = re.compile(
    r"(?:\b(?:cp|mv|install|rsync)\b[^\n;|&]{0,80}?[ \t](?=[\w./-]{1,120}\.py[ \t])|(?<![\w./-])(?=[\w./-]{1,120}\.py\b[^\n;|&>]{0,80}>))"
    r"([\w./-]{1,120}\.py)\b[^\n;|&]{0,80}?(?:>|[ \t])[ \t]{0,3}([\w./-]{1,120}\.py)\b"
)
"""A file that is copied to another name, or changed on the way (sed ... a.py > b.py)."""
_REWRITTEN = re.compile(_OPENED)
"""Files whose text is read, to be changed and written again."""


def store(part: Part, action: Action, world: World) -> None:
    """Keep the text of a file that an action writes, adds to or edits; an edit of an unknown file leaves nothing."""
    name = file_name(part.path)
    if action.kind != "edit":
        world.store(part.path, f"{world.texts.get(name, '')}\n{part.text}" if part.append else part.text)
        return
    arguments = action.arguments or {}
    old = arguments.get("old_string") or arguments.get("old_str")
    before = world.texts.get(name)
    if before is not None:
        changed = (
            before.replace(old, part.text, 1) if isinstance(old, str) and old in before else f"{before}\n{part.text}"
        )
        world.store(part.path, clip(changed))


def note_shell_changes(text: str, world: World) -> None:
    """Files that a shell changes in ways that are not read, and those that it copies."""
    world.changed |= {PurePosixPath(path).name for path in _CHANGED.findall(text)}
    for source, target in _COPIES.findall(text[:20_000]):
        world.copy(source, target)


def note_rewrites(text: str, world: World) -> None:
    """Files whose text Python code reads to change it."""
    if ".replace(" in text or "sub(" in text:
        world.changed |= {PurePosixPath(path).name for path in _REWRITTEN.findall(text)}


def modules_as_scripts(text: str, world: World) -> str:
    """Shell text in which `python -m package.module` starts the file that the run wrote for it."""
    return _MODULE_RUN.sub(lambda match: _as_script(match, world), text)


def _as_script(match: re.Match[str], world: World) -> str:
    """`python -m package.module` as the start of the file that the run wrote for it; as it is when it wrote none."""
    last = match.group(2).rsplit(".", 1)[-1]
    own = last in world.programs or ("" in world.programs and last not in sys.stdlib_module_names | _TOOLS)
    name = f"{last}.py" if f"{last}.py" in world.texts else "__main__.py" if own else None
    return f"{match.group(1)}{name}" if name else match.group(0)


def with_files(text: str, world: World) -> str:
    """The code with what it executes in its own name space put in: exec(open("x.py").read()), exec(code) of a text that
    it holds itself."""
    if "exec(" not in text:
        return text
    read = dict(_READ_FILE.findall(text))
    literals = _texts(text)

    def put_in(match: re.Match[str]) -> str:
        name = match.group(2) or ""
        path = match.group(1) or read.get(name, "")
        known = world.texts.get(file_name(path)) if path else literals.get(name)
        return match.group(0) if known is None else known

    return clip(_EXEC_FILE.sub(put_in, text))


def _texts(text: str) -> dict[str, str]:
    """Texts of several lines that code holds in names which it sets once, at its outermost level."""
    tree = parse(text)
    found: dict[str, list[ast.expr]] = {}
    for node in tree.body if tree is not None else ():
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    texts: dict[str, str] = {}
    for name, values in found.items():
        text_of = literal_text(values[0]) if len(values) == 1 else None
        if text_of is not None and parse(dedented := textwrap.dedent(text_of)) is not None:
            texts[name] = dedented
    return texts


def own_file(node: ast.Call) -> str:
    """The command line that does what exec(open("x.py").read()), runpy.run_path("x.py") and their like do; "" for others."""
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name not in ("exec", "execfile", "run_path", "run_module", "run_line_magic") or not node.args:
        return ""
    words = [c.value for c in descendants(node) if isinstance(c, ast.Constant) and isinstance(c.value, str)]
    if name == "run_module":
        return f"python {words[0]}.py" if words else ""
    return next((f"python {word}" for word in words if re.fullmatch(r"[\w./-]{1,200}\.py", word)), "")
