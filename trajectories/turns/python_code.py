"""Parse Python text into a syntax tree, whatever the text holds, without ever running it."""

from __future__ import annotations

import ast
import sys
import threading
import warnings
from collections.abc import Iterator

_PARSE_LOCK = threading.Lock()
"""Warning filters belong to the whole process."""
_ATTEMPTS = 10
"""Attempts to parse a text.

CPython 3.11 counts the depth of all threads' syntax trees in one place, so that a tree which a
library makes in another thread can end ours with SystemError ("AST constructor recursion depth
mismatch", cpython issue 106905). Nothing is wrong with the text, and the next attempt succeeds.
"""


def parse(text: str) -> ast.Module | None:
    """The syntax tree of a text without its notebook magics; None if it is not Python."""
    if "\n%" in text or "\n!" in text or text[:1] in ("%", "!"):
        lines = ["pass" if line[:1] in ("%", "!") else line for line in text.split("\n")]
        text = "\n".join(lines)
    for attempt in range(_ATTEMPTS):
        try:
            with _PARSE_LOCK, warnings.catch_warnings():
                # Invalid escapes in the agent's code are not ours to report.
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


def child_nodes(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below a node, without contexts and operators, which hold nothing.

    They are nearly half of a tree; leaving them out makes walks twice as fast.
    """
    children: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            children += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST) and value._fields:
            children.append(value)
    return children


def walk_in_order(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a tree in the order of the source."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(child_nodes(node)))


def walk_by_level(tree: ast.AST) -> list[ast.AST]:
    """All nodes of a tree, outer ones first, as `ast.walk` gives them."""
    nodes = [tree]
    for node in nodes:  # the list grows while it is walked
        nodes += child_nodes(node)
    return nodes


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
    """`a.b.c` of a name or attribute; the part before a call or an index is left out."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))
