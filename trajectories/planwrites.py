"""Which texts an action's code writes to a plan.md: here-documents, echo, Python writes, write and edit tools.

Read statically, in time linear in the code: nothing of a transcript is ever executed, and no pattern backtracks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .code_parts import parse
from .models import Action

PLAN_NAME = re.compile(r"(?<![\w-])plan\.md\b", re.IGNORECASE)
_OPENER = re.compile(r"<<(?P<dash>-?)\s*(?P<quote>['\"]?)(?P<tag>\w+)(?P=quote)")
_ECHO = re.compile(
    r"\b(?:echo|printf)\s+(?:-\w+\s+)*(?:'(?P<single>[^']*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\")\s*(?P<to>>{1,2})\s*(?P<path>[^\s;&|]+)",
    re.DOTALL,
)
_MAGIC = re.compile(r"%%writefile\s+(?P<append>-a\s+)?(?P<path>\S+)[^\n]*\n")
_OLD_KEYS = ("old_string", "old_str", "old_text", "search")
_NEW_KEYS = ("new_string", "new_str", "new_text", "replace", "insert_text")
_REFUSED = ("error", "<tool_use_error>", "failed", "traceback", "file not found", "no such file")
_MAX_TEXT = 1_000_000
_MAX_STEPS = 5_000
_MAX_SHELL = 256 * 1024
"""Longer scripts are not searched for echo: quotes that never close would cost time that grows with the square."""


@dataclass(frozen=True)
class PlanWrite:
    """One change of plan.md. `old` is set for an edit: that text is replaced by `text`."""

    text: str
    append: bool = False
    old: str | None = None
    everywhere: bool = False
    after_line: int | None = None
    """For an insertion: the line after which `text` goes in."""

    def apply(self, before: str) -> str:
        """The plan after this change; an edit whose old text is not there changes nothing."""
        if self.old is not None:
            times = before.count(self.old) if self.everywhere else 1
            if not self.old or times * len(self.text) > _MAX_TEXT:
                return before
            return before.replace(self.old, self.text, times)
        if self.after_line is not None:
            lines = before.splitlines(keepends=True)
            return "".join([*lines[: self.after_line], self.text, *lines[self.after_line :]])
        if self.append:
            return before + self.text
        return self.text


def succeeded(action: Action) -> bool:
    """Whether an action came back without failing; an answer without exit code must not begin as an error."""
    seen = action.observation
    if seen is None or seen.kind not in ("ok", "unknown"):
        return False
    if seen.kind == "unknown" and action.kind in ("write", "edit"):
        return not seen.stdout.lstrip()[:40].lower().startswith(_REFUSED)
    return True


def changes_of_plan(action: Action) -> Iterator[PlanWrite]:
    """Every change of a plan.md by this action, in order; none when it failed or was never answered."""
    if not succeeded(action):
        return
    if action.kind in ("write", "edit"):
        if action.path and PLAN_NAME.search(action.path):
            yield from _tool_changes(action)
        return
    if action.kind != "execute" or not PLAN_NAME.search(action.code):
        return
    if magic := _MAGIC.match(action.code.lstrip()):
        if PLAN_NAME.search(magic["path"]):
            yield PlanWrite(action.code.lstrip()[magic.end() :], append=bool(magic["append"]))
    elif action.language == "python":
        yield from _python_writes(action.code)
    else:
        found = [*_shell_writes(action.code)]
        yield from found if found or action.language else _python_writes(action.code)


def _tool_changes(action: Action) -> Iterator[PlanWrite]:
    arguments = action.arguments or {}
    command = arguments.get("command")
    if action.kind == "write" or command == "create" or isinstance(arguments.get("file_text"), str):
        yield PlanWrite(action.code)
        return
    edits = arguments.get("edits")
    for edit in edits if isinstance(edits, list) else [arguments]:
        if not isinstance(edit, dict):
            continue
        old = next((edit[key] for key in _OLD_KEYS if isinstance(edit.get(key), str)), None)
        new = next((edit[key] for key in _NEW_KEYS if isinstance(edit.get(key), str)), None)
        line = edit.get("insert_line")
        if isinstance(line, int) and new is not None and line >= 0:
            yield PlanWrite(new if new.endswith("\n") else new + "\n", after_line=line)
        elif old is not None and new is not None:
            # An empty old text is how some tools create a file.
            yield PlanWrite(new, old=old or None, everywhere=edit.get("replace_all") is True)


def _shell_writes(code: str) -> Iterator[PlanWrite]:
    """Here-documents to cat or tee (or to a Python interpreter whose code writes the plan), and echo with redirection."""
    lines = code.split("\n")
    rest: list[str] = []
    found: list[tuple[int, PlanWrite]] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        rest.append(line)
        opener = _OPENER.search(line) if "<<" in line and "<<<" not in line else None
        number += 1
        if opener is None:
            continue
        body: list[str] = []
        start = number
        while (
            number < len(lines)
            and (lines[number].lstrip("\t") if opener["dash"] else lines[number]).rstrip() != opener["tag"]
        ):
            body.append(lines[number].lstrip("\t") if opener["dash"] else lines[number])
            number += 1
        rest.extend("" for _ in range(number - start + 1))
        number += 1
        text = "".join(f"{row}\n" for row in body)
        if PLAN_NAME.search(line):
            append = bool(re.search(r">>\s*\S*plan\.md|\btee\s+(?:-a|--append)\b", line, re.IGNORECASE))
            if ">" in line.replace(opener.group(0), "") or "tee" in line:
                found.append((start, PlanWrite(text, append)))
        elif re.search(r"\b(?:python[\d.]*|ipython)\b", line):
            found.extend((start, write) for write in _python_writes(text))
    remaining = "\n".join(rest)
    for match in _ECHO.finditer(remaining) if len(remaining) <= _MAX_SHELL else ():
        if PLAN_NAME.search(match["path"].strip("'\"")):
            text = match["single"] if match["single"] is not None else match["double"]
            if "\\n" in text and re.match(r"printf|echo\s+-\w*e", match.group(0)):
                text = text.replace("\\n", "\n")
            if match.group(0).startswith("echo") and not re.match(r"echo\s+-\w*n", match.group(0)):
                text += "\n"
            found.append((remaining.count("\n", 0, match.start()) + 1, PlanWrite(text, match["to"] == ">>")))
    for _, write in sorted(found, key=lambda item: item[0]):
        yield write


def _python_writes(code: str) -> Iterator[PlanWrite]:
    """Texts given to open(...plan.md).write, Path(...plan.md).write_text, and handles of open, in order of the code."""
    if not PLAN_NAME.search(code):
        return
    tree = parse(code)
    if tree is None:
        return
    try:
        yield from _PythonPlan(tree).writes()
    except (RecursionError, MemoryError):
        return


class _PythonPlan:
    """Resolves names to the texts assigned to them, within a budget: `x = x + x` must not double for ever."""

    def __init__(self, tree: ast.Module) -> None:
        self.steps = _MAX_STEPS
        self.nodes = sorted(
            (n for n in ast.walk(tree) if isinstance(n, ast.stmt | ast.expr)), key=lambda n: (n.lineno, n.col_offset)
        )
        self.assigned: dict[str, ast.expr] = {}
        self.handles: dict[str, ast.expr] = {}

    def writes(self) -> Iterator[PlanWrite]:
        # In order of the code, so that a name means what was last assigned to it before.
        for node in self.nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self._assign(target.id, node.value)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                before = self.assigned.get(node.target.id)
                if before is not None and isinstance(node.op, ast.Add):
                    self.assigned[node.target.id] = ast.BinOp(before, ast.Add(), node.value)
            elif isinstance(node, ast.With):
                for item in node.items:
                    if isinstance(item.optional_vars, ast.Name) and self._names_plan(item.context_expr):
                        self.handles[item.optional_vars.id] = item.context_expr
            elif isinstance(node, ast.Call) and (write := self._write(node)) is not None:
                yield write

    def _assign(self, name: str, value: ast.expr) -> None:
        self.handles.pop(name, None)
        if isinstance(value, ast.Call) and _called(value) == "open" and self._names_plan(value):
            self.handles[name] = value
        elif any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(value)):
            text = self._text(value)
            if text is not None:
                self.assigned[name] = ast.Constant(text)
        else:
            self.assigned[name] = value

    def _write(self, call: ast.Call) -> PlanWrite | None:
        if isinstance(call.func, ast.Name):
            # print(text, file=handle)
            target = next((k.value for k in call.keywords if k.arg == "file"), None)
            if call.func.id != "print" or not isinstance(target, ast.Name) or target.id not in self.handles:
                return None
            parts = [self._text(part) for part in call.args]
            return PlanWrite(" ".join(p for p in parts if p is not None) + "\n", self._appends(target.id))
        if not isinstance(call.func, ast.Attribute) or not call.args:
            return None
        target, method, first = call.func.value, call.func.attr, call.args[0]
        if method in ("write_text", "write_bytes") and self._names_plan(target):
            append = False
        elif method in ("write", "writelines") and isinstance(target, ast.Name) and target.id in self.handles:
            append = self._appends(target.id)
        elif method == "write" and isinstance(target, ast.Call) and self._names_plan(target):
            append = "a" in _mode(target)
        else:
            return None
        if method == "writelines" and isinstance(first, ast.List | ast.Tuple):
            parts = [self._text(part) for part in first.elts]
            return PlanWrite("".join(p for p in parts if p is not None), append)
        text = self._text(first)
        return None if text is None else PlanWrite(text, append)

    def _appends(self, handle: str) -> bool:
        """Whether a write through this handle comes after what is there: in append mode, or after an earlier write."""
        opened = self.handles[handle]
        append = "a" in _mode(opened) or getattr(opened, "written", False)
        opened.written = True  # type: ignore[attr-defined]
        return bool(append)

    def _text(self, node: ast.AST, depth: int = 0) -> str | None:
        self.steps -= 1
        if self.steps < 0 or depth > 150:
            return None
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bytes):
                return node.value.decode("utf-8", "replace")
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Name):
            value = self.assigned.get(node.id)
            return None if value is None else self._text(value, depth + 1)
        if isinstance(node, ast.JoinedStr):
            return "".join(self._piece(part, depth) for part in node.values)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self._text(node.left, depth + 1), self._text(node.right, depth + 1)
            if left is None and right is None:
                return None
            return ((left or "") + (right or ""))[:_MAX_TEXT]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return self._text(node.left, depth + 1)
        if isinstance(node, ast.Call):
            return self._call_text(node, depth)
        return None

    def _piece(self, part: ast.expr, depth: int) -> str:
        if isinstance(part, ast.Constant):
            return str(part.value)
        inner = self._text(part.value, depth + 1) if isinstance(part, ast.FormattedValue) else None
        return "{…}" if inner is None else inner

    def _call_text(self, call: ast.Call, depth: int) -> str | None:
        name = _called(call)
        if name in ("dedent", "cleandoc") and call.args:
            import inspect

            inner = self._text(call.args[0], depth + 1)
            return None if inner is None else inspect.cleandoc(inner)
        if not isinstance(call.func, ast.Attribute):
            return None
        if name == "join" and call.args and isinstance(call.args[0], ast.List | ast.Tuple):
            separator = self._text(call.func.value, depth + 1)
            parts = [self._text(part, depth + 1) for part in call.args[0].elts]
            return ("\n" if separator is None else separator).join(p for p in parts if p is not None)[:_MAX_TEXT]
        if name in ("strip", "lstrip", "rstrip"):
            inner = self._text(call.func.value, depth + 1)
            return None if inner is None else str(getattr(inner, name)())
        if name in ("format", "encode", "replace"):
            return self._text(call.func.value, depth + 1)
        return None

    def _names_plan(self, node: ast.AST, depth: int = 0) -> bool:
        for child in ast.walk(node):
            self.steps -= 1
            if self.steps < 0 or depth > 6:
                return False
            if isinstance(child, ast.Constant) and isinstance(child.value, str) and PLAN_NAME.search(child.value):
                return True
            if (
                isinstance(child, ast.Name)
                and (value := self.assigned.get(child.id)) is not None
                and self._names_plan(value, depth + 1)
            ):
                return True
        return False


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _mode(call: ast.AST) -> str:
    if isinstance(call, ast.Call):
        # open(path, mode) and path.open(mode)
        places = call.args[:1] if isinstance(call.func, ast.Attribute) and len(call.args) == 1 else call.args[1:2]
        for value in [*places, *(k.value for k in call.keywords if k.arg == "mode")]:
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and len(value.value) <= 4:
                return value.value
    return "r"
