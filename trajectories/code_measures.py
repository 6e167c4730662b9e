"""Which values hold a measurement (a statistic or a shape), however it reaches what prints it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

from .code_names import last_name
from .syntax_tree import COMPREHENSIONS, descendants

STATISTICS = {
    "min", "max", "mean", "std", "unique", "bincount", "value_counts", "sum", "percentile", "Counter", "describe", "nunique",
    "histogram", "quantile", "isnan", "isfinite", "count_nonzero", "median", "head", "allclose", "array_equal", "crosstab", "corrcoef",
}  # fmt: skip
SHAPES = {"shape", "dtype", "size", "ndim", "get_zooms", "affine", "mode", "obs", "columns"}
_KEEPS = {
    "round", "float", "int", "str", "bool", "list", "tuple", "dict", "sorted", "item", "tolist", "format", "join", "dumps", "DataFrame",
    "Series", "zip", "items", "values", "to_string", "to_markdown", "from_records", "tabulate", "enumerate", "reversed", "map", "astype",
}  # fmt: skip
"""Calls that hand on what they are given, in another form."""
_LOGGER = re.compile(r"_{0,2}(?:log|logger|logging|lg|getLogger)_{0,2}", re.I)
Facts = frozenset[str]
NOTHING: Facts = frozenset()
_STATISTIC: Facts = frozenset({"prints_statistics"})
_SHAPE: Facts = frozenset({"prints_shapes"})
Function = ast.FunctionDef | ast.AsyncFunctionDef


def measures(
    node: ast.AST | None, names: Mapping[str, Facts], own: Callable[[ast.Call], Function | None], depth: int = 0
) -> Facts:
    """What printing this value would show: "prints_statistics", "prints_shapes", both or nothing.

    `names` tells it of variables, `own` gives the function of the run's own that a call enters. What is computed with a
    statistic (an image over its maximum) is no measurement; what keeps it (round, a row, a table of rows) is.
    """
    if node is None or depth > 12:
        return NOTHING

    def of(parts: list[ast.expr]) -> Facts:
        return NOTHING.union(*(measures(part, names, own, depth + 1) for part in parts))

    if isinstance(node, ast.Name):
        return names.get(node.id, NOTHING)
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return of(node.elts)
    if isinstance(node, ast.Dict):
        return of(node.values)
    if isinstance(node, ast.JoinedStr):
        return of([v.value for v in node.values if isinstance(v, ast.FormattedValue)])
    if isinstance(node, ast.IfExp):
        return of([node.body, node.orelse])
    if isinstance(node, ast.Starred | ast.Subscript):
        return of([node.value])
    if isinstance(node, ast.BinOp):  # "%d" % n, rows + rows
        return (
            of([node.left, node.right])
            if isinstance(node.left, ast.Constant | ast.JoinedStr | ast.List | ast.BinOp)
            else NOTHING
        )
    if isinstance(node, COMPREHENSIONS):
        inner = dict(names)
        for generator in node.generators:
            inner.update(dict.fromkeys(stored(generator.target), measures(generator.iter, inner, own, depth + 1)))
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        return NOTHING.union(*(measures(part, inner, own, depth + 1) for part in parts))
    if isinstance(node, ast.Attribute):
        return _SHAPE if node.attr in SHAPES else NOTHING
    if not isinstance(node, ast.Call):
        return NOTHING
    name = last_name(node.func)
    if name in SHAPES:
        return _SHAPE
    if name in STATISTICS:
        return _STATISTIC
    if name in _KEEPS:
        owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return of([*owner, *node.args, *(k.value for k in node.keywords)])
    function = own(node) if depth < 4 else None
    return returned(function, own, depth + 1) if function is not None else NOTHING


def returned(function: Function, own: Callable[[ast.Call], Function | None], depth: int = 0) -> Facts:
    """What printing the result of a function would show, whatever it is given."""
    names: dict[str, Facts] = {}
    found = NOTHING
    for node in sorted(
        (n for n in descendants(function) if isinstance(n, ast.Assign | ast.Return)), key=lambda n: n.lineno
    ):
        held = measures(node.value, names, own, depth)
        if isinstance(node, ast.Return):
            found |= held
        else:
            names.update((name, held) for target in node.targets for name in stored(target))
    return found


def stored(target: ast.AST) -> list[str]:
    """The names that an assignment to this target sets."""
    return [n.id for n in descendants(target) if isinstance(n, ast.Name)]


def shows(node: ast.Call) -> bool:
    """Whether a call prints its arguments: print, echo, or a method of what is named as a logger."""
    name = last_name(node.func)
    if name in ("print", "pprint", "echo"):
        return True
    if not isinstance(node.func, ast.Attribute):
        return False
    owner = last_name(node.func.value)
    logs = name in ("debug", "info", "warning", "error") and _LOGGER.fullmatch(owner) is not None
    return logs or (name == "write" and owner in ("stdout", "stderr"))


def prints_parameters(function: Function) -> bool:
    """Whether a function prints what it is given (a log line of the run's own)."""
    arguments = function.args
    given = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs) if a.arg != "self"}
    given |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None}
    return any(
        isinstance(call, ast.Call) and shows(call) and any(isinstance(n, ast.Name) and n.id in given for n in descendants(call))
        for call in descendants(function)
    )  # fmt: skip
