"""Values that are known without running the code: literals, functions, arguments, and what comparing them says.

Three-valued: what is not known is UNKNOWN, and a condition on it is None. There is no arithmetic and no text is put
together, so values stay as small as they stand in the source.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from .code_modules import Module

MAX_ITEMS = 64
MAX_TEXT = 1_000


class Unknown:
    """The value of what cannot be told without running the code."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()
PLACE = Unknown()
"""A value that is not known but for one thing: it is a place of outputs."""
MANY = Unknown()
"""Stands in a command line for any number of words: $(ls), $@, a wildcard."""


@dataclass(frozen=True, eq=False)
class Function:
    """A function as a value: in a table of commands, as a parser's default, as a loop's name."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    module: Module


@dataclass(frozen=True, eq=False)
class OneOf:
    """One of these functions, it is not known which, or something else."""

    functions: tuple[Function, ...]


class Namespace(dict[str, object]):
    """What parse_args returns."""


def one_of(values: Sequence[object]) -> object:
    """One of several values: itself when they are all the same, the functions among them, else UNKNOWN."""
    if values and all(same(values[0], other) for other in values):
        return values[0]
    found = {id(function.node): function for value in values for function in functions(value)}
    return OneOf(tuple(found.values())) if found else UNKNOWN


def functions(value: object) -> tuple[Function, ...]:
    """The functions that a value may be."""
    return (value,) if isinstance(value, Function) else value.functions if isinstance(value, OneOf) else ()


def truth(value: object) -> bool | None:
    """Whether a value counts as true; None when it is not known."""
    if isinstance(value, Unknown | OneOf):
        return None
    return True if isinstance(value, Function | Namespace) else bool(value)


def same(one: object, other: object) -> bool:
    """Whether two values are known to be equal; containers only when they are one and the same."""
    if isinstance(one, Function) and isinstance(other, Function):
        return one.node is other.node
    return one is other or (type(one) is type(other) and isinstance(one, bool | int | float | str) and one == other)


def key_of(value: object) -> object:
    """A hashable stand-in for a value, equal for equal values."""
    if isinstance(value, list):
        return tuple(key_of(v) for v in value)
    if isinstance(value, Function):
        return id(value.node)
    return (type(value), value) if is_key(value) else id(value)


def compare(op: ast.cmpop, left: object, right: object) -> bool | None:
    """What a comparison says; None when it is not known."""
    if isinstance(left, Unknown | OneOf) or isinstance(right, Unknown | OneOf):
        return None
    if isinstance(op, ast.In | ast.NotIn):
        found = _contains(right, left)
        return found if found is None or isinstance(op, ast.In) else not found
    if isinstance(op, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
        if not (is_key(left) and is_key(right)):
            differ = is_key(left) != is_key(right)
            return isinstance(op, ast.NotEq | ast.IsNot) if differ else None
        return (left == right) is isinstance(op, ast.Eq | ast.Is)
    if not (isinstance(left, int | float) and isinstance(right, int | float)):
        return None
    if isinstance(op, ast.Lt | ast.GtE):
        return (left < right) is isinstance(op, ast.Lt)
    return (left > right) is isinstance(op, ast.Gt)


def _contains(whole: object, part: object) -> bool | None:
    if isinstance(whole, str) and isinstance(part, str):
        return part in whole
    if not isinstance(whole, list | dict) or not is_key(part):
        return None
    if any(is_key(item) and item == part for item in whole):
        return True
    return None if any(item is UNKNOWN for item in whole) else False


def flat(value: object) -> object:
    """The value as an element of another: containers in containers are not followed further, so none grows."""
    items = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    return UNKNOWN if any(isinstance(item, list | dict) for item in items) else value


def is_key(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


OF_ONE = frozenset(["len", "bool", "str", "int", "float", "Path", "list", "tuple", "sorted", "set", "vars", "enumerate", "any", "all"])  # fmt: skip
OF_TEXT = frozenset(["lower", "upper", "strip", "startswith", "endswith", "split"])


def of_text(name: str, text: str, given: Sequence[str]) -> object:
    """Methods of a known text with at most one argument."""
    if name in ("startswith", "endswith") and given:
        return text.startswith(given[0]) if name == "startswith" else text.endswith(given[0])
    if name == "strip":
        return text.strip(*given)
    if name == "split" and given != [""]:
        return list((text.split(given[0]) if given else text.split())[:MAX_ITEMS])
    return {"lower": text.lower(), "upper": text.upper()}.get(name, UNKNOWN)


def of_one(name: str, value: object) -> object:
    """Built-in functions of one known value."""
    if value is UNKNOWN:
        return UNKNOWN
    if name in ("list", "tuple", "sorted", "set"):
        return value if isinstance(value, list) else UNKNOWN
    if name == "enumerate":
        return [[UNKNOWN, flat(item)] for item in value] if isinstance(value, list) else UNKNOWN
    if name == "vars":
        return dict(value) if isinstance(value, Namespace) else UNKNOWN
    if name in ("any", "all") and isinstance(value, list):
        held = [truth(item) for item in value]
        decides = name == "any"
        return decides if decides in held else UNKNOWN if None in held else not decides
    if name == "len":
        return len(value) if isinstance(value, list | dict | str) else UNKNOWN
    if name == "bool":
        return truth(value)
    if name in ("str", "Path"):
        return value if isinstance(value, str) else UNKNOWN
    if isinstance(value, list | dict):
        return UNKNOWN
    return number(value, name)


def number(value: object, kind: str) -> object:
    """int(value) or float(value); UNKNOWN for what is no number."""
    if not isinstance(value, bool | int | float | str) or (isinstance(value, str) and len(value) > 20):
        return UNKNOWN
    try:
        return int(value) if kind == "int" else float(value)
    except (ValueError, OverflowError):
        return UNKNOWN
