"""Which texts of its own Python code writes to which files: a plan, a module, a report. Read
statically, within a budget."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

from .python_code import ROWS, Flat, flat, last_name

_WRITTEN = (ast.Assign, ast.AugAssign, ast.With, ast.Call)
_MAX_TEXT = 1_000_000
_MAX_STEPS = 5_000
_MAX_PATH = 1_000


def python_writes(code: str) -> Iterator[tuple[str, str, bool]]:
    """(path, text, added to what was there) for open(...).write, write_text, handles and
    print(file=), in order of the code.

    The path is as far as it is literal ("" where nothing of it is); what is not known of a text
    stands as {…}.
    """
    tree = flat(code) if "write" in code or ("print" in code and "file" in code) else None
    if tree is None:
        return
    try:
        yield from _Writes(tree).found()
    except (RecursionError, MemoryError):
        return


class _Writes:
    """Resolves names to the texts assigned to them, within a budget: `x = x + x` must not double
    for ever."""

    def __init__(self, tree: Flat) -> None:
        self.steps = _MAX_STEPS
        self.nodes = [n for n in tree.nodes if isinstance(n, _WRITTEN)]
        self.assigned: dict[str, ast.expr] = {}
        self.handles: dict[str, ast.Call] = {}
        self.written: set[int] = set()
        """Opened files that something was written to."""

    def found(self) -> Iterator[tuple[str, str, bool]]:
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
                    opened = _opened(item.context_expr)
                    if isinstance(item.optional_vars, ast.Name) and opened is not None:
                        self.handles[item.optional_vars.id] = opened
            elif isinstance(node, ast.Call) and (write := self._write(node)) is not None:
                yield write

    def _assign(self, name: str, value: ast.expr) -> None:
        self.handles.pop(name, None)
        if (opened := _opened(value)) is not None:
            self.handles[name] = opened
        elif any(isinstance(part, ast.Name) and part.id == name for part in Flat(value).nodes):
            text = self._text(value)
            if text is not None:
                self.assigned[name] = ast.Constant(text)
        else:
            self.assigned[name] = value

    def _write(self, call: ast.Call) -> tuple[str, str, bool] | None:
        if isinstance(call.func, ast.Name):
            target = next((k.value for k in call.keywords if k.arg == "file"), None)
            if (
                call.func.id != "print"
                or not isinstance(target, ast.Name)
                or target.id not in self.handles
            ):
                return None
            parts = [self._text(part) for part in call.args]
            path, append = self._handle(self.handles[target.id])
            return path, " ".join(p for p in parts if p is not None) + "\n", append
        if not isinstance(call.func, ast.Attribute) or not call.args:
            return None
        target, method, first = call.func.value, call.func.attr, call.args[0]
        opened = self.handles.get(target.id) if isinstance(target, ast.Name) else _opened(target)
        if method in ("write_text", "write_bytes"):
            path, append = self._path(target), False
        elif method in ("write", "writelines") and opened is not None:
            path, append = self._handle(opened)
        else:
            return None
        if method == "writelines" and isinstance(first, ROWS):
            parts = [self._text(part) for part in first.elts]
            return path, "".join(p for p in parts if p is not None), append
        text = self._text(first)
        return None if text is None else (path, text, append)

    def _handle(self, opened: ast.Call) -> tuple[str, bool]:
        """The path of an opened file, and whether a write comes after what is there: appended, or
        after an earlier one."""
        append = "a" in _mode(opened) or id(opened) in self.written
        self.written.add(id(opened))
        return self._path(opened), append

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
        return self._call_text(node, depth) if isinstance(node, ast.Call) else None

    def _piece(self, part: ast.expr, depth: int) -> str:
        if isinstance(part, ast.Constant):
            return str(part.value)
        inner = self._text(part.value, depth + 1) if isinstance(part, ast.FormattedValue) else None
        return "{…}" if inner is None else inner

    def _call_text(self, call: ast.Call, depth: int) -> str | None:
        name = last_name(call)
        if name in ("dedent", "cleandoc") and call.args:
            inner = self._text(call.args[0], depth + 1)
            return None if inner is None else inspect.cleandoc(inner)
        if not isinstance(call.func, ast.Attribute):
            return None
        if name == "join" and call.args and isinstance(call.args[0], ROWS):
            separator = self._text(call.func.value, depth + 1)
            parts = [self._text(part, depth + 1) for part in call.args[0].elts]
            return ("\n" if separator is None else separator).join(
                p for p in parts if p is not None
            )[:_MAX_TEXT]
        if name in ("strip", "lstrip", "rstrip"):
            inner = self._text(call.func.value, depth + 1)
            return None if inner is None else str(getattr(inner, name)())
        if name in ("format", "encode", "replace"):
            return self._text(call.func.value, depth + 1)
        return None

    def _path(self, node: ast.AST, depth: int = 0) -> str:
        """The end of the path in open(...), Path(...) or a joined path, as far as it is literal."""
        self.steps -= 1
        if self.steps < 0 or depth > 6:
            return ""
        if isinstance(node, ast.Constant):
            return node.value[:_MAX_PATH] if isinstance(node.value, str) else ""
        if isinstance(node, ast.Name):
            return self._path(self.assigned[node.id], depth + 1) if node.id in self.assigned else ""
        if isinstance(node, ast.JoinedStr):
            return "".join(str(v.value) for v in node.values if isinstance(v, ast.Constant))[
                :_MAX_PATH
            ]
        if isinstance(node, ast.BinOp):
            return self._path(node.right, depth + 1) or self._path(node.left, depth + 1)
        if not isinstance(node, ast.Call):
            return ""
        if _opened(node) is not None:
            if isinstance(node.func, ast.Attribute) and (
                own := self._path(node.func.value, depth + 1)
            ):
                return own
            return self._path(node.args[0], depth + 1) if node.args else ""
        return next(
            (found for part in reversed(node.args[-8:]) if (found := self._path(part, depth + 1))),
            "",
        )


def _opened(node: ast.AST) -> ast.Call | None:
    """The node if it is a call of open, else None."""
    return node if isinstance(node, ast.Call) and last_name(node) == "open" else None


def _mode(call: ast.Call) -> str:
    # open(path, mode) and path.open(mode)
    places = (
        call.args[:1]
        if isinstance(call.func, ast.Attribute) and len(call.args) == 1
        else call.args[1:2]
    )
    for value in [*places, *(k.value for k in call.keywords if k.arg == "mode")]:
        if (
            isinstance(value, ast.Constant)
            and isinstance(value.value, str)
            and len(value.value) <= 4
        ):
            return value.value
    return "r"
