"""Which of its own texts Python code writes to which files: a plan, a module, a report.

The code is read statically, within a budget.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator

from .python_code import ROWS, last_name, parse, walk_by_level, walk_in_order

_STATEMENTS = (ast.Assign, ast.AugAssign, ast.With, ast.Call)
_MAX_TEXT = 1_000_000
_MAX_STEPS = 5_000
_MAX_PATH = 1_000


def python_writes(code: str) -> Iterator[tuple[str, str, bool]]:
    """(path, text, whether it is appended) of each write, in the order of the code.

    Writes are open(...).write, write_text, file handles and print(file=...). The path is given as
    far as it is literal ("" if nothing of it is); unknown parts of a text are shown as {…}.
    """
    if "write" not in code and not ("print" in code and "file" in code):
        return
    tree = parse(code)
    if tree is None:
        return
    try:
        yield from _Writes(tree).writes()
    except (RecursionError, MemoryError):
        return


class _Writes:
    """Resolves names to the texts assigned to them.

    A budget of steps keeps `x = x + x` from doubling for ever.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.steps = _MAX_STEPS
        self.nodes = [node for node in walk_in_order(tree) if isinstance(node, _STATEMENTS)]
        self.assigned: dict[str, ast.expr] = {}
        self.handles: dict[str, ast.Call] = {}
        self.written: set[int] = set()
        """Calls of open whose file something was written to, by id."""

    def writes(self) -> Iterator[tuple[str, str, bool]]:
        """The writes in the order of the code, so that a name has its latest value."""
        for node in self.nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self._assign(target.id, node.value)
            elif isinstance(node, ast.AugAssign):
                self._extend(node)
            elif isinstance(node, ast.With):
                for item in node.items:
                    opened = _opened(item.context_expr)
                    if isinstance(item.optional_vars, ast.Name) and opened is not None:
                        self.handles[item.optional_vars.id] = opened
            elif isinstance(node, ast.Call):
                write = self._write(node)
                if write is not None:
                    yield write

    def _extend(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add):
            before = self.assigned.get(node.target.id)
            if before is not None:
                self.assigned[node.target.id] = ast.BinOp(before, ast.Add(), node.value)

    def _assign(self, name: str, value: ast.expr) -> None:
        self.handles.pop(name, None)
        opened = _opened(value)
        if opened is not None:
            self.handles[name] = opened
        elif any(isinstance(part, ast.Name) and part.id == name for part in walk_by_level(value)):
            text = self._text(value)
            if text is not None:
                self.assigned[name] = ast.Constant(text)
        else:
            self.assigned[name] = value

    def _write(self, call: ast.Call) -> tuple[str, str, bool] | None:
        if isinstance(call.func, ast.Name):
            return self._print(call)
        if not isinstance(call.func, ast.Attribute) or not call.args:
            return None
        target, method, argument = call.func.value, call.func.attr, call.args[0]
        if method in ("write_text", "write_bytes"):
            path, append = self._path(target), False
        elif method in ("write", "writelines"):
            opened = self.handles.get(target.id) if isinstance(target, ast.Name) else None
            opened = opened or _opened(target)
            if opened is None:
                return None
            path, append = self._handle(opened)
        else:
            return None
        if method == "writelines" and isinstance(argument, ROWS):
            return path, "".join(self._texts(argument.elts)), append
        text = self._text(argument)
        return None if text is None else (path, text, append)

    def _print(self, call: ast.Call) -> tuple[str, str, bool] | None:
        """What `print(..., file=handle)` writes."""
        target = next((k.value for k in call.keywords if k.arg == "file"), None)
        if last_name(call) != "print" or not isinstance(target, ast.Name):
            return None
        if target.id not in self.handles:
            return None
        text = " ".join(self._texts(call.args)) + "\n"
        path, append = self._handle(self.handles[target.id])
        return path, text, append

    def _handle(self, opened: ast.Call) -> tuple[str, bool]:
        """The path of an opened file, and whether a write adds to it.

        A write adds if the file is opened to append, or if it was written to before.
        """
        append = "a" in _mode(opened) or id(opened) in self.written
        self.written.add(id(opened))
        return self._path(opened), append

    def _texts(self, nodes: Iterable[ast.expr]) -> list[str]:
        texts = [self._text(node) for node in nodes]
        return [text for text in texts if text is not None]

    def _text(self, node: ast.AST, depth: int = 0) -> str | None:
        """The text of an expression, unknown parts as {…}; None if nothing of it is known."""
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
        if isinstance(node, ast.BinOp):
            return self._binary_text(node, depth)
        return self._call_text(node, depth) if isinstance(node, ast.Call) else None

    def _binary_text(self, node: ast.BinOp, depth: int) -> str | None:
        """The text of a sum, or the format of `"..." % values`."""
        if isinstance(node.op, ast.Mod):
            return self._text(node.left, depth + 1)
        if not isinstance(node.op, ast.Add):
            return None
        left, right = self._text(node.left, depth + 1), self._text(node.right, depth + 1)
        if left is None and right is None:
            return None
        return ((left or "") + (right or ""))[:_MAX_TEXT]

    def _piece(self, part: ast.expr, depth: int) -> str:
        """A piece of an f-string."""
        if isinstance(part, ast.Constant):
            return str(part.value)
        text = self._text(part.value, depth + 1) if isinstance(part, ast.FormattedValue) else None
        return "{…}" if text is None else text

    def _call_text(self, call: ast.Call, depth: int) -> str | None:
        name = last_name(call)
        if name in ("dedent", "cleandoc") and call.args:
            text = self._text(call.args[0], depth + 1)
            return None if text is None else inspect.cleandoc(text)
        if not isinstance(call.func, ast.Attribute):
            return None
        owner = call.func.value
        if name == "join" and call.args and isinstance(call.args[0], ROWS):
            separator = self._text(owner, depth + 1)
            parts = [self._text(part, depth + 1) for part in call.args[0].elts]
            known = [part for part in parts if part is not None]
            return ("\n" if separator is None else separator).join(known)[:_MAX_TEXT]
        if name in ("strip", "lstrip", "rstrip"):
            text = self._text(owner, depth + 1)
            return None if text is None else str(getattr(text, name)())
        if name in ("format", "encode", "replace"):
            return self._text(owner, depth + 1)
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
            literal = [str(part.value) for part in node.values if isinstance(part, ast.Constant)]
            return "".join(literal)[:_MAX_PATH]
        if isinstance(node, ast.BinOp):
            return self._path(node.right, depth + 1) or self._path(node.left, depth + 1)
        return self._call_path(node, depth) if isinstance(node, ast.Call) else ""

    def _call_path(self, call: ast.Call, depth: int) -> str:
        if _opened(call) is not None:
            if isinstance(call.func, ast.Attribute):  # path.open(mode)
                path = self._path(call.func.value, depth + 1)
                if path:
                    return path
            return self._path(call.args[0], depth + 1) if call.args else ""
        for part in reversed(call.args[-8:]):
            path = self._path(part, depth + 1)
            if path:
                return path
        return ""


def _opened(node: ast.AST) -> ast.Call | None:
    """The node if it is a call of open, else None."""
    return node if isinstance(node, ast.Call) and last_name(node) == "open" else None


def _mode(call: ast.Call) -> str:
    """The mode of open(path, mode) or path.open(mode); "r" if it is not literal."""
    is_method = isinstance(call.func, ast.Attribute) and len(call.args) == 1
    candidates = call.args[:1] if is_method else call.args[1:2]
    candidates += [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    for candidate in candidates:
        mode = candidate.value if isinstance(candidate, ast.Constant) else None
        if isinstance(mode, str) and len(mode) <= 4:
            return mode
    return "r"
