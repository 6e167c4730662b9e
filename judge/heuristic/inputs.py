"""Whether a program shows an input as it was read: its size beside its type or range, in one print.

A reading is followed through names, loops over written-out lists ("lr", a), helpers and tables up to the print, so that
an input that stands in a table beside the model's output is seen, and a table of outputs alone is not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import lru_cache

from ...trajectories.code_names import last_name
from ...trajectories.code_parts import parse
from ...trajectories.syntax_tree import COMPREHENSIONS, FUNCTIONS, LOOPS, descendants, source

MAX_NODES = 40_000
"""Nodes of one program that are looked at: hostile code stays cheap."""
MAX_DEPTH = 6
"""Names and helpers between a print and what it shows."""
MAX_STEPS = 60_000
"""Expressions of one run's turn that are followed; what comes after is not seen."""
ROUNDS = 4
"""Names and calls between the reading and the print."""

_READS = re.compile(
    r"(?:nib|nibabel)\.load$|Image\.open$|imread$|(?:np|numpy)\.load$|dcmread$|read_image$|ReadImage$|LoadImage|(?:^|[._])(?:load|read|open)_(?:image|volume|slice|frame|scan|ct|mri?|input|img)s?$"
)
_KEEPS = frozenset(
    {
        "asarray", "array", "asanyarray", "ascontiguousarray", "float32", "astype", "convert", "get_fdata", "squeeze", "copy", "rot90", "transpose", "flip", "fliplr", "flipud", "from_numpy", "tensor",
        "as_tensor", "float", "numpy", "GetArrayFromImage", "to_numpy", "stack", "get", "list", "tuple", "abs",
    }
)  # fmt: skip
"""Calls whose result still is what was read."""
_PRINTS = frozenset({"print", "display", "pprint", "info", "debug", "warning", "log"})
_SIZE = frozenset({"shape", "size", "ndim", "width", "height", "Rows"})
_FORM = frozenset({"dtype", "mode", "min", "max", "mean", "std", "ptp", "getextrema", "header", "affine", "get_data_dtype", "GetSpacing", "GetPixelIDTypeAsString"})  # fmt: skip
_FORM_CALLS = frozenset({"min", "max", "amin", "amax", "percentile", "quantile", "nanpercentile", "ptp", "unique", "mean", "std", "median"})  # fmt: skip


@lru_cache(maxsize=32)
def shows_input(programs: tuple[str, ...], library: tuple[str, ...] = ()) -> bool:
    """One print of the programs gives the size of an input and its type, range or spacing; `library` holds helpers."""
    trees = [tree for text in programs if (tree := parse(text)) is not None]
    helpers = [tree for text in library if (tree := parse(text)) is not None]
    if not trees or sum(len(descendants(tree)) for tree in (*trees, *helpers)) > MAX_NODES:
        return False
    try:
        return _Program(trees, helpers).shows()
    except RecursionError:
        return False


class _Body:
    """One function or the programs' own lines: what its names hold."""

    def __init__(self, nodes: list[ast.AST], parameters: Iterable[str]) -> None:
        self.nodes = nodes
        self.parameters = frozenset(parameters)
        self.inputs: set[str] = set()
        self.made: dict[str, list[ast.expr]] = {}


class _Program:
    def __init__(self, trees: list[ast.Module], helpers: list[ast.Module]) -> None:
        functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda] = {}
        own: list[ast.AST] = []
        for tree in (*helpers, *trees):
            nodes = descendants(tree)
            functions.update((n.name, n) for n in nodes if isinstance(n, FUNCTIONS))
            for n in nodes:
                if isinstance(n, ast.Assign) and isinstance(n.value, ast.Lambda) and isinstance(n.targets[0], ast.Name):
                    functions[n.targets[0].id] = n.value
            if tree in trees:
                inner = {id(x) for f in nodes if isinstance(f, (*FUNCTIONS, ast.Lambda)) for x in _inside(f)}
                own += [n for n in nodes if id(n) not in inner]
        self.functions = functions
        self.budget = MAX_STEPS
        self.main = _Body(own, ())
        self.bodies = {
            name: _Body(_inside(f), [a.arg for a in (*f.args.posonlyargs, *f.args.args)])
            for name, f in functions.items()
        }

    def shows(self) -> bool:
        everywhere = (self.main, *self.bodies.values())
        for _ in range(ROUNDS):
            before = sum(len(body.inputs) for body in everywhere)
            for body in everywhere:
                body.made.clear()
                for node in body.nodes:
                    self._note(node, body)
            if sum(len(body.inputs) for body in everywhere) == before:
                break
        for body in everywhere:
            for node in body.nodes:
                printed = isinstance(node, ast.Call) and last_name(node.func) in _PRINTS
                parts = (
                    [*node.args, *(k.value for k in node.keywords)] if isinstance(node, ast.Call) and printed else []
                )
                parts = [node.test] if isinstance(node, ast.Assert) else parts
                found = frozenset[str]().union(*(self._seen(part, body, 0) for part in parts))
                if found >= {"size", "form"}:
                    return True
        return False

    # -- names ----------------------------------------------------------------------------------------------------------

    def _note(self, node: ast.AST, body: _Body) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value, body)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            self._bind(node.target, node.value, body)
        elif isinstance(node, (*LOOPS, ast.comprehension)):
            for element in self._elements(node.iter, body, 0):
                self._bind(node.target, element, body)
        elif isinstance(node, ast.Call):
            held = node.func.value if isinstance(node.func, ast.Attribute) else None
            if isinstance(held, ast.Name) and last_name(node.func) in ("append", "extend") and node.args:
                body.made.setdefault(held.id, []).append(node.args[0])
            function = self.functions.get(last_name(node.func))
            if function is not None:
                inner = self.bodies[last_name(node.func)]
                names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
                pairs = [*zip(names, node.args, strict=False), *((k.arg, k.value) for k in node.keywords if k.arg)]
                inner.inputs.update(name for name, value in pairs if name in names and self.is_input(value, body))

    def _bind(self, target: ast.expr, value: ast.expr, body: _Body) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
                for goal, part in zip(target.elts, value.elts, strict=True):
                    self._bind(goal, part, body)
        elif isinstance(target, ast.Name):
            body.made.setdefault(target.id, []).append(value)
            if self.is_input(value, body):
                body.inputs.add(target.id)

    def _elements(self, node: ast.expr, body: _Body, depth: int) -> list[ast.expr]:
        """The elements of a list that is written out, of a dictionary's items or values, and of lists side by side."""
        if depth > MAX_DEPTH:
            return []
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return list(node.elts)[:200]
        if isinstance(node, ast.Name):
            made = body.made.get(node.id, []) or self.main.made.get(node.id, [])
            return [e for value in made[:5] for e in self._elements(value, body, depth + 1)]
        if isinstance(node, COMPREHENSIONS) and not isinstance(node, ast.DictComp):
            return [node.elt]
        if not isinstance(node, ast.Call):
            return []
        name = last_name(node.func)
        if name in ("items", "values") and isinstance(node.func, ast.Attribute):
            tables = [
                node.func.value,
                *(body.made.get(node.func.value.id, []) if isinstance(node.func.value, ast.Name) else []),
            ]
            pairs = [p for t in tables if isinstance(t, ast.Dict) for p in zip(t.keys, t.values, strict=True)]
            return [v if name == "values" or k is None else ast.Tuple(elts=[k, v], ctx=ast.Load()) for k, v in pairs]
        if name == "zip":
            columns = [self._elements(argument, body, depth + 1) for argument in node.args]
            rows = zip(*columns, strict=False) if columns and all(columns) else ()
            return [ast.Tuple(elts=list(row), ctx=ast.Load()) for row in rows]
        if name == "enumerate" and node.args:
            return [
                ast.Tuple(elts=[ast.Constant(value=0), e], ctx=ast.Load())
                for e in self._elements(node.args[0], body, depth + 1)
            ]
        if name in ("list", "tuple", "sorted", "reversed", "iter") and node.args:
            return self._elements(node.args[0], body, depth + 1)
        return []

    # -- expressions ----------------------------------------------------------------------------------------------------

    def is_input(self, node: ast.AST | None, body: _Body, depth: int = 0) -> bool:
        """Whether an expression is an input as it was read, a part of it, or it in another type."""
        self.budget -= 1
        if node is None or depth > MAX_DEPTH or self.budget < 0:
            return False
        if isinstance(node, ast.Name):
            known = node.id in body.parameters or node.id in body.made
            return node.id in body.inputs or (not known and node.id in self.main.inputs)
        if isinstance(node, ast.Subscript):
            return self.is_input(node.value, body, depth + 1)
        if isinstance(node, ast.Attribute):
            return node.attr in ("T", "pixel_array", "dataobj", "values") and self.is_input(node.value, body, depth + 1)
        if not isinstance(node, ast.Call):
            return False
        name = last_name(node.func)
        if name in self.functions:
            return any(self.is_input(value, self.bodies[name], depth + 1) for value in self._returned(name))
        if _READS.search(source(node.func)[-80:]):
            return True
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        return name in _KEEPS and any(self.is_input(part, body, depth + 1) for part in (*node.args[:1], receiver))

    def _returned(self, name: str) -> list[ast.expr]:
        function = self.functions[name]
        if isinstance(function, ast.Lambda):
            return [function.body]
        return [n.value for n in self.bodies[name].nodes if isinstance(n, ast.Return) and n.value is not None][:10]

    def _seen(self, node: ast.AST, body: _Body, depth: int) -> frozenset[str]:
        """What an expression that is printed gives of an input: its size, its form."""
        found: set[str] = set()
        if depth > MAX_DEPTH or self.budget < 0:
            return frozenset()
        for part in descendants(node):
            if isinstance(part, ast.Attribute) and self.is_input(part.value, body):
                found |= {"size"} if part.attr in _SIZE else {"form"} if part.attr in _FORM else set()
            elif isinstance(part, ast.Call):
                name = last_name(part.func)
                if name in self.functions:
                    for value in self._returned(name):
                        found |= self._seen(value, self.bodies[name], depth + 1)
                elif name in _FORM_CALLS and part.args and self.is_input(part.args[0], body):
                    found.add("form")
                elif name == "len" and part.args and self.is_input(part.args[0], body):
                    found.add("size")
            elif isinstance(part, ast.Name):
                for value in body.made.get(part.id, ())[:5]:
                    if not self.is_input(value, body) and not isinstance(value, ast.Lambda):
                        found |= self._seen(value, body, depth + 2)
        return frozenset(found)


def _inside(function: ast.AST) -> list[ast.AST]:
    """Nodes of a function without its own head."""
    return [node for node in descendants(function) if node is not function]
