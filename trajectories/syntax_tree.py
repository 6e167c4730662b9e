"""Walking syntax trees quickly: without contexts and operators, which take up half of a tree and show nothing."""

from __future__ import annotations

import ast

_NO_NODES = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "kind", "type_comment", "module", "level", "asname"})
"""Fields that hold names, contexts or operators."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    kind: tuple(name for name in kind._fields if name not in _NO_NODES)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
"""The fields of each kind of node that may hold nodes."""


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below a node, in the order of the source."""
    found: list[ast.AST] = []
    for name in _FIELDS[type(node)]:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def descendants(node: ast.AST) -> list[ast.AST]:
    """The node and all nodes below it, level by level, as `ast.walk` gives them."""
    found = [node]
    for one in found:  # grows while it is read
        found += children(one)
    return found


def source(node: ast.AST, limit: int = 400) -> str:
    """The code of a node, cut; empty where it is nested too deeply to be written back."""
    try:
        return ast.unparse(node)[:limit]
    except RecursionError:
        return ""
