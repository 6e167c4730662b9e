"""Which value an expression has and whether a condition holds, as far as that is known without running anything.

What a command line gives to a script, literals, and what is looked up with them: enough to tell which branch of a
script with several commands runs.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .code_modules import Library, Module
from .code_records import Class, Record, given_to, key_of_record, named_tuple
from .code_values import (
    MANY,
    MAX_ITEMS,
    MAX_TEXT,
    OF_ONE,
    OF_TEXT,
    PLACE,
    UNKNOWN,
    Function,
    Namespace,
    compare,
    flat,
    is_key,
    key_of,
    of_one,
    of_text,
    one_of,
    truth,
)  # fmt: skip

if TYPE_CHECKING:
    from .code_options import Parser

MAX_DEPTH = 8
"""Deeper expressions are not evaluated, so that reading stays linear in the code."""
MAX_NAMES = 200
"""Names of a scope whose values are kept."""


@dataclass
class Scope:
    """What is shared by all that is read of one started program."""

    words: tuple[object, ...] | None = ()
    """The words of its command line: UNKNOWN for what a variable holds, MANY for any number; None when none is known."""
    environment: Mapping[str, object] = field(default_factory=dict)
    constants: bool = True
    """Whether literals may be believed: False for a file that was changed in ways that were not read."""
    globals: dict[int, dict[str, object]] = field(default_factory=dict)
    """Values of the names of each module, by the module's id."""
    returned: dict[int, object] = field(default_factory=dict)
    """What each function returned when it was last called, by the id of its node."""
    parsers: dict[int, Parser] = field(default_factory=dict)
    """The parser of each module, by the module's id."""
    parsed: dict[object, object] = field(default_factory=dict)
    """What parsers made of command lines."""
    lambdas: dict[int, ast.FunctionDef] = field(default_factory=dict)
    records: dict[object, Record] = field(default_factory=dict)
    """Objects that carry values, by what made them."""
    variants: dict[int, int] = field(default_factory=dict)
    """With how many combinations of values each function was read."""


class Values:
    """Names with known values at one point of the code."""

    def __init__(self, module: Module, library: Library, scope: Scope) -> None:
        self.module, self.library, self.scope = module, library, scope
        self.values: dict[str, object] = {}

    # -- names --------------------------------------------------------------------------------------------------------

    def bind(self, target: ast.AST, value: object) -> None:
        """An assignment: the name's value from here on, or none when it is not known."""
        if isinstance(target, ast.Name):
            room = len(self.values) < MAX_NAMES or target.id in self.values
            if value is UNKNOWN or not room or target.id in self.module.rebound:
                self.values.pop(target.id, None)
            else:
                self.values[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            parts = value if isinstance(value, list) and len(value) == len(target.elts) else None
            if parts is None or any(isinstance(t, ast.Starred) for t in target.elts):
                parts = [UNKNOWN] * len(target.elts)
            for inner, part in zip(target.elts, parts, strict=True):
                self.bind(inner, part)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, UNKNOWN)
        elif isinstance(target, ast.Attribute):
            owner = self.value_of(target.value)
            if isinstance(owner, Namespace):
                owner[target.attr] = UNKNOWN  # set on one of several paths, perhaps
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            self.values.pop(target.value.id, None)

    def bind_each(self, target: ast.AST, rows: object) -> None:
        """The names of a loop: the value of a single round, or the functions that a loop goes through."""
        if not isinstance(rows, list) or not rows:
            self.bind(target, UNKNOWN)
        elif len(rows) == 1:
            self.bind(target, rows[0])
        elif isinstance(target, ast.Tuple | ast.List):
            for position, inner in enumerate(target.elts):
                column = [r[position] for r in rows if isinstance(r, list) and len(r) == len(target.elts)]
                self.bind_each(inner, column if len(column) == len(rows) > 1 else UNKNOWN)
        else:
            self.bind(target, one_of(rows))

    def forget(self, nodes: Sequence[ast.AST]) -> None:
        """Names that these statements set lose their values."""
        if self.values:
            for name in stored(nodes):
                self.values.pop(name, None)

    # -- values -------------------------------------------------------------------------------------------------------

    def value_of(self, node: ast.AST | None, depth: int = 0) -> object:
        """The value of an expression as far as it is known, else UNKNOWN."""
        if node is None or depth > MAX_DEPTH:
            return UNKNOWN
        if isinstance(node, ast.Constant):
            value = node.value
            plain = value is None or isinstance(value, bool | int | float | str)
            return value if plain and not (isinstance(value, str) and len(value) > MAX_TEXT) else UNKNOWN
        if isinstance(node, ast.Name):
            return self.values[node.id] if node.id in self.values else self.function(node.id)
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
            found = (
                self.attribute(node, depth) if isinstance(node, ast.Attribute)
                else self.element(node, depth) if isinstance(node, ast.Subscript)
                else self.called(node, depth)
            )  # fmt: skip
            return UNKNOWN if found is PLACE else found
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            # An empty list is there to be filled.
            if not 0 < len(node.elts) <= MAX_ITEMS or any(isinstance(e, ast.Starred) for e in node.elts):
                return UNKNOWN
            return [flat(self.value_of(e, depth + 1)) for e in node.elts]
        if isinstance(node, ast.Dict):
            keys = [self.value_of(k, depth + 1) for k in node.keys if k is not None]
            if not 0 < len(keys) <= MAX_ITEMS or len(keys) < len(node.keys) or not all(map(is_key, keys)):
                return UNKNOWN
            values = (flat(self.held(v, depth + 1)) for v in node.values)
            return dict(zip(keys, values, strict=True))
        if isinstance(node, ast.IfExp):
            taken = self.truth_of(node.test, depth + 1)
            if taken is not None:
                return self.value_of(node.body if taken else node.orelse, depth + 1)
            return one_of([self.value_of(side, depth + 1) for side in (node.body, node.orelse)])
        if isinstance(node, ast.BoolOp):
            return self.first_deciding(node, depth)
        if isinstance(node, ast.Lambda):
            return self.as_function(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            number = self.value_of(node.operand, depth + 1)
            return -number if isinstance(number, int | float) else UNKNOWN
        if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            held = self.truth_of(node, depth)
            return UNKNOWN if held is None else held
        return UNKNOWN

    def held(self, node: ast.AST, depth: int = 0) -> object:
        """The value as an element of a table or an object."""
        return self.value_of(node, depth)

    def truth_of(self, node: ast.AST, depth: int = 0) -> bool | None:
        """Whether a condition holds; None when that is not known."""
        if depth > MAX_DEPTH:
            return None
        if isinstance(node, ast.BoolOp):
            decides = isinstance(node.op, ast.Or)
            held_by = [self.truth_of(side, depth + 1) for side in node.values]
            return decides if decides in held_by else None if None in held_by else not decides
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            held = self.truth_of(node.operand, depth + 1)
            return None if held is None else not held
        if isinstance(node, ast.Compare):
            sides = [self.value_of(side, depth + 1) for side in (node.left, *node.comparators)]
            each = [compare(op, a, b) for op, a, b in zip(node.ops, sides, sides[1:], strict=False)]
            return False if False in each else None if None in each else True
        return truth(self.value_of(node, depth))

    def first_deciding(self, node: ast.BoolOp, depth: int) -> object:
        """`a or b`, `a and b`: the first operand that decides, else the last."""
        value: object = UNKNOWN
        for side in node.values:
            value = self.value_of(side, depth + 1)
            held = truth(value) if value is not UNKNOWN else None
            if held is None or held is isinstance(node.op, ast.Or):
                return value
        return value

    def function(self, name: str) -> object:
        """A function of this module by its name, or one that it imports from another module of the run."""
        own = self.module.functions.get(name)
        if own is not None:
            return Function(own, self.module)
        spread = name not in self.module.aliases and self.module.aliases.get("*") in self.library.modules
        if name in self.library.functions and (spread or self.module.aliases.get(name) in self.library.modules):
            return Function(*self.library.functions[name])
        for origin in (self.module.aliases.get(name), self.module.aliases.get("*")):
            if (
                origin is not None
                and (found := self.imported_value(origin, self.module.renamed.get(name, name))) is not UNKNOWN
            ):
                return found
        return UNKNOWN

    def imported_value(self, origin: str, name: str) -> object:
        """What a module of the run's own sets this name to: settings and paths; other values may have changed."""
        module = self.library.modules.get(origin)
        value = UNKNOWN if module is None else self.scope.globals.get(id(module), {}).get(name, UNKNOWN)
        return value if isinstance(value, Record) else UNKNOWN

    def attribute(self, node: ast.Attribute, depth: int) -> object:
        base = node.value
        if node.attr == "argv" and isinstance(base, ast.Name) and base.id == "sys":
            words = self.scope.words
            return UNKNOWN if words is None or MANY in words else ["", *words]
        if isinstance(base, ast.Name) and self.module.aliases.get(base.id) in self.library.modules:
            value = self.imported_value(self.module.aliases[base.id], node.attr)
            if value is not UNKNOWN:
                return value
            found = self.library.functions.get(node.attr)
            return Function(*found) if found else UNKNOWN
        owner = self.value_of(base, depth + 1)
        return owner.get(node.attr, UNKNOWN) if isinstance(owner, Namespace) else UNKNOWN

    def element(self, node: ast.Subscript, depth: int) -> object:
        key = UNKNOWN if isinstance(node.slice, ast.Slice) else self.value_of(node.slice, depth + 1)
        if isinstance(node.value, ast.Call) and _name(node.value.func) in ("globals", "locals"):
            if isinstance(key, str):
                return self.function(key)
            return one_of([Function(f, self.module) for f in list(self.module.functions.values())[:MAX_ITEMS]])
        if _is_environment(node.value):
            return self.scope.environment.get(key, UNKNOWN) if isinstance(key, str) else UNKNOWN
        whole = self.value_of(node.value, depth + 1)
        if isinstance(whole, dict):
            return whole.get(key, UNKNOWN) if is_key(key) else one_of(list(whole.values()))
        if not isinstance(whole, list):
            return UNKNOWN
        if isinstance(node.slice, ast.Slice):
            ends = [None if e is None else self.value_of(e, depth + 1) for e in (node.slice.lower, node.slice.upper)]
            numbers = [e for e in ends if e is None or isinstance(e, int)]
            return whole[slice(*numbers)] if node.slice.step is None and len(numbers) == 2 else UNKNOWN
        if not isinstance(key, int):
            return one_of(whole)
        return whole[key] if -len(whole) <= key < len(whole) else UNKNOWN

    def called(self, node: ast.Call, depth: int) -> object:
        """The value of a call: of parsers, look-ups, methods of text, and functions of the run's own."""
        name = _name(node.func)
        if name in ("parse_args", "parse_known_args"):
            found = self.parsed(node)
            return found if name == "parse_args" else [found, UNKNOWN]
        made_here = self.record(node, name, depth)
        if made_here is not None:
            return made_here
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        first = node.args[0] if node.args else None
        if name == "Path" and owner is not None and len(node.args) == 1:
            return of_one(name, self.value_of(first, depth + 1))
        if name == "getenv" or (name == "get" and owner is not None and _is_environment(owner)):
            key = self.value_of(first, depth + 1)
            return self.scope.environment.get(key, UNKNOWN) if isinstance(key, str) else UNKNOWN
        if owner is None:
            if name in OF_ONE and first is not None:
                return of_one(name, self.value_of(first, depth + 1))
            if name == "getattr" and len(node.args) > 1:
                whole, key = self.value_of(first, depth + 1), self.value_of(node.args[1], depth + 1)
                return whole.get(key, UNKNOWN) if isinstance(whole, Namespace) and isinstance(key, str) else UNKNOWN
            made = self.value_of(node.func, depth + 1)
            return self.scope.returned.get(id(made.node), UNKNOWN) if isinstance(made, Function) else UNKNOWN
        whole = self.value_of(owner, depth + 1)
        if isinstance(whole, dict) and name == "get" and first is not None:
            key = self.value_of(first, depth + 1)
            other = self.value_of(node.args[1], depth + 1) if len(node.args) > 1 else None
            return whole.get(key, other) if is_key(key) else one_of([*whole.values(), *([other] if other else [])])
        if isinstance(whole, dict) and name in ("items", "keys", "values"):
            rows = {"items": [[k, v] for k, v in whole.items()], "keys": list(whole), "values": list(whole.values())}
            return rows[name]
        if isinstance(whole, str) and name in OF_TEXT:
            given = [self.value_of(a, depth + 1) for a in node.args]
            plain = [g for g in given if isinstance(g, str)]
            return of_text(name, whole, plain) if len(plain) == len(given) <= 1 else UNKNOWN
        return UNKNOWN

    def record(self, node: ast.Call, name: str, depth: int) -> object:
        """The object that a call makes to carry values; None for other calls."""
        if name == "dict" and node.keywords and not node.args and isinstance(node.func, ast.Name):
            given = given_to(node, (), lambda n: flat(self.held(n, depth + 1)), lambda n: self.value_of(n, depth + 1))
            return UNKNOWN if given is None else given
        if name == "namedtuple":
            made_of = named_tuple(node)
            return UNKNOWN if made_of is None else made_of
        call, values = node, dict[str, object]()
        maker: object = node
        order: tuple[str, ...] = ()
        if name in ("replace", "_replace"):
            whole = node.func.value if name == "_replace" and isinstance(node.func, ast.Attribute) else None
            base = self.value_of(whole or (node.args[0] if node.args else None), depth + 1)
            if not isinstance(base, Record):
                return None
            maker, values, call = base, dict(base), ast.Call(node.func, [], node.keywords)
        elif name not in ("SimpleNamespace", "Namespace") or node.args:
            made = self.value_of(node.func, depth + 1) if isinstance(node.func, ast.Name | ast.Attribute) else None
            if not isinstance(made, Class):
                return None
            if not made.plain:
                return UNKNOWN
            maker, values, order = made, dict(made), made.order
        given = given_to(call, order, lambda n: self.held(n, depth + 1), lambda n: self.value_of(n, depth + 1))
        if given is None:
            return UNKNOWN
        values.update(given)
        key = key_of_record(maker, values)
        if key not in self.scope.records:
            self.scope.records[key] = Record(values)
        return self.scope.records[key]

    def parsed(self, node: ast.Call) -> object:
        """What parse_args returns for the words given to it, or for the program's own."""
        from .code_options import parsers  # builds on this module

        given = self.value_of(node.args[0]) if node.args else None
        words = self.scope.words if given is None else given if isinstance(given, list) else None
        if words is None:
            return UNKNOWN
        key = (id(self.module), None if given is None else key_of(given))
        if key not in self.scope.parsed:
            if id(self.module) not in self.scope.parsers:
                self.scope.parsers[id(self.module)] = parsers(self.module, self.value_of)
            self.scope.parsed[key] = self.scope.parsers[id(self.module)].parse(words) or UNKNOWN
        return self.scope.parsed[key]

    def as_function(self, node: ast.Lambda) -> Function:
        known = self.scope.lambdas.get(id(node))
        if known is None:
            known = ast.FunctionDef("<lambda>", node.args, [ast.copy_location(ast.Return(node.body), node)], [])
            self.scope.lambdas[id(node)] = ast.copy_location(known, node)
        return Function(known, self.module)


def stored(nodes: Sequence[ast.AST]) -> set[str]:
    """Names that statements set."""
    return {
        n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
    }


def _is_environment(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "environ"


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
