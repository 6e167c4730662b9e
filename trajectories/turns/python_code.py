"""Python text as a syntax tree, without ever running it: parsing that survives any text, and a walk
that skips names."""

from __future__ import annotations

import ast
import sys
import threading
import warnings
from bisect import bisect_left
from functools import lru_cache
from typing import NamedTuple

_ONE_AT_A_TIME = threading.Lock()
"""Filters of warnings are the whole process's."""
_ATTEMPTS = 10
"""CPython 3.11 counts the depth of all threads' syntax trees in one place, so that a tree that a
library makes in another thread can end ours with SystemError ("AST constructor recursion depth
mismatch", cpython issue 106905): nothing is wrong with the text, and the next attempt succeeds."""


def parse(text: str) -> ast.Module | None:
    """The module, notebook magics left out; None when the text is no Python."""
    if "\n%" in text or "\n!" in text or text[:1] in ("%", "!"):
        text = "\n".join("pass" if line[:1] in ("%", "!") else line for line in text.split("\n"))
    for attempt in range(_ATTEMPTS):
        try:
            with _ONE_AT_A_TIME, warnings.catch_warnings():
                # the author's invalid escapes are not ours to report
                warnings.simplefilter("ignore")
                return _tree(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        except SystemError:
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _tree(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:
        if sys.version_info >= (3, 12) or "{" not in text:
            raise
        from .python_fstrings import parse_modern

        return parse_modern(text, ast.parse)


class Flat:
    """A syntax tree as a list in the order of the source: the nodes below number `i` are those up
    to `ends[i]`.

    What stands in an expression is then a slice: of nodes, of names, of texts.
    """

    def __init__(self, tree: ast.AST) -> None:
        self.nodes: list[ast.AST] = []
        self.ends: list[int] = []
        self.names: list[str] = []
        """The name or attribute of each node; "" for others."""
        self.texts: list[tuple[int, str]] = []
        """String constants by the number of their node."""
        self.others: list[int] = []
        """The nodes that are no name, attribute or constant."""
        nodes, ends, names = self.nodes, self.ends, self.names
        waiting: list[ast.AST | int] = [tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, int):
                ends[node] = len(nodes)
                continue
            kind = type(node)
            number = len(nodes)
            nodes.append(node)
            if kind is ast.Name:
                names.append(node.id)  # type: ignore[attr-defined]
                ends.append(number + 1)
                continue
            if kind is ast.Constant:
                names.append("")
                ends.append(number + 1)
                if isinstance(node.value, str):  # type: ignore[attr-defined]
                    self.texts.append((number, node.value))  # type: ignore[attr-defined]
                continue
            ends.append(0)
            waiting.append(number)
            if kind is ast.Attribute:
                names.append(node.attr)  # type: ignore[attr-defined]
                waiting.append(node.value)  # type: ignore[attr-defined]
                continue
            names.append("")
            self.others.append(number)
            for field in _CHILDREN[kind]:
                value = getattr(node, field, None)
                if value.__class__ is list:
                    waiting += [item for item in reversed(value) if isinstance(item, ast.AST)]
                elif isinstance(value, ast.AST):
                    waiting.append(value)

    def children(self, number: int) -> list[int]:
        """The nodes directly below a node."""
        found, child, end = [], number + 1, self.ends[number]
        while child < end:
            found.append(child)
            child = self.ends[child]
        return found

    def holds(self, marked: list[int], start: int, end: int) -> bool:
        """Whether one of these nodes, given in order, is among those from `start` to before `end`."""
        place = bisect_left(marked, start)
        return place < len(marked) and marked[place] < end


class Called(NamedTuple):
    """A call, with what is often asked of it. What it is given are the nodes from `start` to `end`."""

    number: int
    node: ast.Call
    name: str
    """The last of what is called, `c` of `a.b.c()`."""
    base: str
    """The first, `a`."""
    start: int
    end: int


@lru_cache(maxsize=2)
def flat(text: str) -> Flat | None:
    """The tree of a text as a list, None when it is no Python. Kept for the next who asks: not to
    be changed."""
    tree = parse(text)
    return None if tree is None else Flat(tree)


_NO_NODES = frozenset(
    {
        "ctx",
        "op",
        "ops",
        "id",
        "attr",
        "arg",
        "kind",
        "type_comment",
        "module",
        "level",
        "asname",
        "type_ignores",
    }
)
"""Fields that hold names, contexts or operators: half of a tree, and they show nothing."""
_CHILDREN: dict[type[ast.AST], tuple[str, ...]] = {
    kind: tuple(name for name in reversed(kind._fields) if name not in _NO_NODES)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
"""The fields of each kind of node that may hold nodes, from the last to the first."""


# Tuples, as a union of types is made anew, and looked through slowly, each time that it is asked.
_CHAINED = (ast.Attribute, ast.Call, ast.Subscript)
ROWS = (ast.Tuple, ast.List)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def last_name(node: ast.AST) -> str:
    """`c` of `a.b.c`, of `a.b.c(...)` and of a parameter `c`; "" for a node without a name."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    return node.arg or "" if isinstance(node, (ast.arg, ast.keyword)) else ""


def dotted_name(node: ast.AST) -> str:
    """`a.b.c` of a name or attribute; what stands before a call or an index is left out."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))


def first_name(node: ast.AST) -> str:
    """`a` of `a.b[0].c()`; "" for what does not begin with a name."""
    while isinstance(node, _CHAINED):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
