"""Objects that only carry values: settings in a dataclass, a NamedTuple, a class, a SimpleNamespace.

Paths and limits of a script often stand in such an object and not in names of their own. A class statement gives a
Class with the values of its fields; calling it, or SimpleNamespace(...), gives a Record. Equal calls give the same
object, so that functions are read once for each combination of values.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence

from .code_values import MAX_ITEMS, UNKNOWN, Namespace, key_of
from .syntax_tree import descendants

Evaluate = Callable[[ast.AST], object]
_FIELD_MAKERS = frozenset(["field", "Field", "ib", "attrib"])


class Record(Namespace):
    """An object with named values. What it holds under a name that it lacks is not known."""


class Class(Record):
    """A class with the values of its fields, which its instances start with."""

    def __init__(self, values: Mapping[str, object], order: Sequence[str], *, plain: bool) -> None:
        super().__init__(values)
        self.order = tuple(order)
        """Names of the fields in the order of the arguments that make an instance."""
        self.plain = plain
        """Whether calling it does no more than set the fields: there is no __init__ of its own."""


def fields(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr | None]]:
    """Names that a class statement sets or declares, each with the expression of its value."""
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id, default_of(statement.value)
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    yield target.id, default_of(statement.value)


def default_of(value: ast.expr | None) -> ast.expr | None:
    """The default in field(default=...), field(default_factory=lambda: ...) and their like; else the value itself."""
    if not isinstance(value, ast.Call) or getattr(value.func, "attr", getattr(value.func, "id", "")) not in _FIELD_MAKERS:  # fmt: skip
        return value
    given = {k.arg: k.value for k in value.keywords}
    factory = given.get("default_factory") or given.get("factory")
    if isinstance(factory, ast.Lambda):
        return factory.body
    return given.get("default") or (value.args[0] if value.args else None)


def computed(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """Names that read as fields but are computed (properties), each with what it returns."""
    for function in node.body:
        if not isinstance(function, ast.FunctionDef):
            continue
        marks = {getattr(d, "id", getattr(d, "attr", "")) for d in function.decorator_list}
        if marks & {"property", "cached_property"}:
            for statement in function.body:
                if isinstance(statement, ast.Return) and statement.value is not None:
                    yield function.name, statement.value


def class_of(node: ast.ClassDef, evaluate: Evaluate) -> Class:
    """The values of a class's fields; those that its methods set anew are left out."""
    own = {s.name for s in node.body if isinstance(s, ast.FunctionDef)}
    changed = {
        n.attr for n in descendants(node)
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and getattr(n.value, "id", "") in ("self", "cls")
    }  # fmt: skip
    values: dict[str, object] = {}
    order: dict[str, None] = {}
    plain = "__init__" not in own
    for base in node.bases[:4]:
        parent = evaluate(base)
        if isinstance(parent, Class):
            values.update(parent)
            order.update(dict.fromkeys(parent.order))
            plain = plain and parent.plain
    for name, value in fields(node):
        order.setdefault(name)
        if value is not None and name not in changed and len(values) < MAX_ITEMS:
            values[name] = evaluate(value)
    for name in changed:
        values.pop(name, None)
    return Class(values, tuple(order), plain=plain)


def named_tuple(node: ast.Call) -> Class | None:
    """namedtuple("Settings", "public out") as a class without defaults."""
    listed = node.args[1] if len(node.args) > 1 else None
    names: list[str] = []
    if isinstance(listed, ast.Constant) and isinstance(listed.value, str):
        names = listed.value.replace(",", " ").split()
    elif isinstance(listed, ast.List | ast.Tuple):
        names = [str(e.value) for e in listed.elts if isinstance(e, ast.Constant)]
    return Class({}, names[:MAX_ITEMS], plain=True) if names else None


def given_to(node: ast.Call, order: Sequence[str], evaluate: Evaluate, known: Evaluate) -> dict[str, object] | None:
    """What a call gives to the fields; None where values are spread into it that are not known."""
    found: dict[str, object] = {}
    if any(isinstance(a, ast.Starred) for a in node.args) or len(node.args) > len(order):
        return None
    found.update({name: evaluate(value) for name, value in zip(order, node.args, strict=False)})
    for keyword in node.keywords[:MAX_ITEMS]:
        if keyword.arg is not None:
            found[keyword.arg] = evaluate(keyword.value)
            continue
        spread = known(keyword.value)
        if not isinstance(spread, dict):
            return None
        found.update({str(name): value for name, value in spread.items()})
    return found


def key_of_record(maker: object, values: Mapping[str, object]) -> object:
    """Equal for equal calls of one maker."""
    return id(maker), tuple((name, key_of(value)) for name, value in values.items() if value is not UNKNOWN)
