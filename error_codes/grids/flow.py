"""Which pixel grid a value of the code lies on, followed through helpers, modules, tuples and dictionaries without running it.

A small abstract interpreter: a value knows which changes of the grid are still to be undone on it (`pending`), and whether it
holds a row or a column index or the width or height of an image. What is not understood is taken as undone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from .calls import (
    PARTS,
    name_of,
)
from .library import LibraryCalls
from .values import (
    COLUMN,
    NOTHING,
    POINT,
    ROW,
    UNKNOWN,
    Seen,
    Value,
    both,
    changed,
    constant,
    dimension,
    made,
    merged,
    pair_of,
    plain,
    target_of,
    undone,
)

MAX_STEPS = 40_000
"""Expressions looked at in one program."""
MAX_DEPTH = 12
"""Calls within calls that are followed."""
Env = dict[str, Value]
_LIBRARIES = frozenset([
    "SimpleITK", "PIL", "ants", "cv2", "h5py", "imageio", "itk", "joblib", "json", "monai", "nibabel", "nilearn", "numpy", "os", "pandas",
    "pickle", "pydicom", "scipy", "skimage", "tifffile", "torch", "torchio", "torchvision",
])  # fmt: skip


class Flow(LibraryCalls):
    """One program: texts of its modules in the order in which they run, the entry last."""

    def __init__(self, trees: Sequence[ast.Module]) -> None:
        super().__init__()
        self.steps = 0
        self.depth = 0
        self.globals: Env = {}
        self.attributes: Env = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.classes: dict[str, dict[str, ast.FunctionDef]] = {}
        self.returned: list[list[Value]] = []
        self.libraries = {
            alias.asname or alias.name.split(".", 1)[0]
            for tree in trees
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
            if (node.module or "" if isinstance(node, ast.ImportFrom) else alias.name).split(".", 1)[0] in _LIBRARIES
        }
        """Names that stand for libraries or for parts of them: `nib.load` is none of the program's own functions."""
        for tree in trees:
            for node in tree.body:
                if isinstance(node, ast.FunctionDef):
                    self.functions[node.name] = node
                elif isinstance(node, ast.ClassDef):
                    self.classes[node.name] = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
        try:
            for tree in trees:
                self.block(tree.body, self.globals)
        except RecursionError:  # no author nests so deep: nothing is known of such code
            self.seen = Seen()

    # statements

    def block(self, body: Iterable[ast.stmt], env: Env) -> None:
        for node in body:
            self.steps += 1
            if self.steps > MAX_STEPS:
                return
            self.statement(node, env)

    def statement(self, node: ast.stmt, env: Env) -> None:
        match node:
            case ast.FunctionDef() if env is not self.globals:
                self.functions.setdefault(node.name, node)
            case ast.Assign():
                value = self.value(node.value, env)
                for target in node.targets:
                    self.bind(target, value, env)
            case ast.AnnAssign() if node.value is not None:
                self.bind(node.target, self.value(node.value, env), env)
            case ast.AugAssign():
                both = self.value(ast.BinOp(node.target, node.op, node.value), env)
                self.bind(node.target, both, env)
            case ast.Expr():
                self.value(node.value, env)
            case ast.Return():
                value = UNKNOWN if node.value is None else self.value(node.value, env)
                if self.returned:
                    self.returned[-1].append(value)
            case ast.If():
                self.value(node.test, env)
                self.branches([node.body, node.orelse], env)
            case ast.For() | ast.AsyncFor():
                self.bind(node.target, self.element(self.value(node.iter, env)), env)
                self.block(node.body, env)
                self.block(node.orelse, env)
            case ast.While():
                self.block(node.body, env)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    value = self.value(item.context_expr, env)
                    if item.optional_vars is not None:
                        self.bind(item.optional_vars, value, env)
                self.block(node.body, env)
            case ast.Try():
                self.branches([[*node.body, *node.orelse], *(h.body for h in node.handlers)], env)
                self.block(node.finalbody, env)
            case _:
                return

    def branches(self, bodies: Sequence[Sequence[ast.stmt]], env: Env) -> None:
        ends = []
        for body in bodies:
            own = dict(env)
            self.block(body, own)
            ends.append(own)
        for name in {n for end in ends for n in end}:
            value = UNKNOWN
            for end in ends:
                value = merged(value, end.get(name, UNKNOWN))
            env[name] = value

    def bind(self, target: ast.expr, value: Value, env: Env) -> None:
        match target:
            case ast.Name():
                env[target.id] = value
            case ast.Tuple() | ast.List():
                self.unpack(target.elts, value, env)
            case ast.Starred():
                self.bind(target.value, value, env)
            case ast.Attribute() if isinstance(target.value, ast.Name) and target.value.id == "self":
                self.attributes[target.attr] = merged(self.attributes.get(target.attr, UNKNOWN), value)
            case ast.Subscript() if isinstance(target.value, ast.Name):
                held = env.get(target.value.id, UNKNOWN)
                if isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str):
                    keys, parts = (*held.keys, target.slice.value), (*(held.parts or ()), value)
                    env[target.value.id] = replace(held, keys=keys, parts=parts) if len(keys) == len(parts) else held
                elif held.parts is not None and held.what != "list" and isinstance(target.slice, ast.Slice):
                    chosen = range(len(held.parts))[_bounds(target.slice)]
                    given = (
                        dict(zip(chosen, value.parts or (), strict=False))
                        if len(value.parts or ()) == len(chosen)
                        else {}
                    )
                    env[target.value.id] = replace(held, parts=tuple(given.get(i, p) for i, p in enumerate(held.parts)))
                else:
                    env[target.value.id] = merged(held, value)

    def unpack(self, targets: Sequence[ast.expr], value: Value, env: Env) -> None:
        if value.what == "size" and value.parts is None and len(targets) in (2, 3, 4):
            # height and width of an array stand first, behind batch and channel where there are four
            start = 2 if len(targets) == 4 else 0
            rest = replace(value, what="dim", text="")
            value = Value(
                parts=tuple(pair_of(value)[i - start] if 0 <= i - start < 2 else rest for i in range(len(targets)))
            )
        parts = value.parts
        if value.what == "indices":
            for place, target in enumerate(targets):
                kind = {0: "column", 1: "row"}.get(len(targets) - 1 - place)
                self.bind(target, Value(index=frozenset({kind}) if kind else NOTHING), env)
            return
        if parts is not None and not value.keys:
            stars = [i for i, t in enumerate(targets) if isinstance(t, ast.Starred)]
            if len(parts) == len(targets) and not stars:
                for target, part in zip(targets, parts, strict=True):
                    self.bind(target, part, env)
                return
        rest = replace(value, parts=None, keys=(), index=NOTHING)
        for target in targets:
            self.bind(target, rest, env)

    # expressions

    def value(self, node: ast.expr, env: Env) -> Value:
        self.steps += 1
        if self.steps > MAX_STEPS:
            return UNKNOWN
        match node:
            case ast.Name():
                if node.id in env or node.id in self.globals:
                    return env.get(node.id) or self.globals.get(node.id, UNKNOWN)
                if node.id in self.functions:
                    return Value("function", text=node.id)
                return UNKNOWN
            case ast.Constant():
                return constant(node.value)
            case ast.Tuple() | ast.List():
                return Value(parts=tuple(self.value(e, env) for e in node.elts))
            case ast.Dict():
                return self.dictionary(node, env)
            case ast.BinOp():
                return self.arithmetic(node, env)
            case ast.UnaryOp():
                return self.value(node.operand, env)
            case ast.BoolOp() | ast.Compare():
                inner = node.values if isinstance(node, ast.BoolOp) else [node.left, *node.comparators]
                return both([self.value(v, env) for v in inner])
            case ast.IfExp():
                return merged(self.value(node.body, env), self.value(node.orelse, env))
            case ast.NamedExpr():
                value = self.value(node.value, env)
                self.bind(node.target, value, env)
                return value
            case ast.Attribute():
                return self.attribute(node, env)
            case ast.Subscript():
                return self.subscript(node, env)
            case ast.Call():
                return self.call(node, env)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                own = self.generators(node.generators, env)
                over = self.value(node.generators[0].iter, env)
                if (
                    over.parts
                    and not over.keys
                    and over.what != "list"
                    and len(over.parts) <= 8
                    and len(node.generators) == 1
                ):
                    return Value(parts=tuple(self.with_bound(node, part, env) for part in over.parts))
                return Value("list", parts=(self.value(node.elt, own),))
            case ast.DictComp():
                return self.dictionary_of(node, env)
            case ast.Starred() | ast.Await():
                return self.value(node.value, env)
            case _:
                return UNKNOWN

    def with_bound(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, part: Value, env: Env) -> Value:
        own = dict(env)
        self.bind(node.generators[0].target, part, own)
        return self.value(node.elt, own)

    def generators(self, generators: Sequence[ast.comprehension], env: Env) -> Env:
        own = dict(env)
        for generator in generators:
            self.bind(generator.target, self.element(self.value(generator.iter, own)), own)
        return own

    def dictionary(self, node: ast.Dict, env: Env) -> Value:
        keys: list[str] = []
        parts: list[Value] = []
        for key, value in zip(node.keys, node.values, strict=True):
            found = self.value(value, env)
            if key is None and found.keys:
                keys += found.keys
                parts += found.parts or ()
            elif isinstance(key, ast.Constant) and isinstance(key.value, str):
                keys.append(key.value)
                parts.append(found)
        return self.held(tuple(keys), tuple(parts))

    def dictionary_of(self, node: ast.DictComp, env: Env) -> Value:
        over = self.value(node.generators[0].iter, env)
        keys: list[str] = []
        parts: list[Value] = []
        for pair in (over.parts or ())[:12]:
            own = dict(env)
            self.bind(node.generators[0].target, pair, own)
            key = self.value(node.key, own)
            if key.text:
                keys.append(key.text)
                parts.append(self.value(node.value, own))
        if not keys:
            self.value(node.value, self.generators(node.generators, env))
        return self.held(tuple(keys), tuple(parts))

    def arithmetic(self, node: ast.BinOp, env: Env) -> Value:
        left, right = self.value(node.left, env), self.value(node.right, env)
        if (
            left.parts
            and not left.keys
            and isinstance(node.op, ast.Add)
            and right.parts
            and isinstance(node.left, ast.List)
        ):
            return Value(parts=(*left.parts, *right.parts))
        return self.combined(left, right, node.op)

    def combined(self, left: Value, right: Value, op: ast.operator) -> Value:
        """The result of an operation, element by element where one side is a short row of values."""
        rows = [v.parts for v in (left, right) if v.parts and not v.keys and v.what != "list" and len(v.parts) <= 8]
        if rows and len({len(r) for r in rows}) == 1:
            sides = [v.parts if v.parts in rows else (v,) * len(rows[0]) for v in (left, right)]
            return Value(
                parts=tuple(self.combined(a, b, op) for a, b in zip(sides[0] or (), sides[1] or (), strict=True))
            )
        found = both([left, right])
        if not isinstance(op, (ast.Mult, ast.Div, ast.FloorDiv)):
            return found
        for own, other in ((left, right), (right, left)):
            if own.what not in ("dim", "size"):
                continue
            if own.native and not own.pending:
                self.seen.native_size_used = True
            found = replace(found, scaled=found.scaled | own.dims)
            constant = other.number is not None and int(other.number) in own.target
            same = other.what in ("dim", "size") and other.pending == own.pending and other.target == own.target
            if own is left and isinstance(op, ast.Div) and "size" in own.pending and (constant or same):
                self.seen.ratio_of_itself.append(own)
        return replace(found, what="" if left.number is None and right.number is None else "factor", dims=NOTHING)

    def attribute(self, node: ast.Attribute, env: Env) -> Value:
        if isinstance(node.value, ast.Name) and node.value.id == "self" and node.attr in self.attributes:
            return self.attributes[node.attr]
        owner = self.value(node.value, env)
        if owner.what == "instance" and node.attr in self.attributes:
            return self.attributes[node.attr]
        if node.attr in ("bbox", "centroid", "weighted_centroid") and owner.what == "regions":
            return POINT if node.attr != "bbox" else replace(POINT, parts=(ROW, COLUMN, ROW, COLUMN))
        if node.attr in ("width", "height"):
            return replace(plain(owner), what="dim", dims=frozenset({node.attr}))
        if node.attr in ("size", "shape", "spatial_shape") and owner.what in ("image", "data"):
            order = "size" if node.attr == "size" and owner.what == "image" else "shape"
            return replace(plain(owner), what="size", text=order)
        return replace(plain(owner), what=PARTS[node.attr]) if node.attr in PARTS and owner != UNKNOWN else owner

    def subscript(self, node: ast.Subscript, env: Env) -> Value:
        owner = self.value(node.value, env)
        key = node.slice
        place = key.value if isinstance(key, ast.Constant) else None
        if owner.keys and isinstance(place, str):
            return dict(zip(owner.keys, owner.parts or (), strict=False)).get(place, UNKNOWN)
        if owner.what == "size":
            return dimension(owner, key, place)
        if owner.what == "indices":
            return owner if isinstance(key, (ast.Constant, ast.Name)) else UNKNOWN
        if (
            owner.parts is not None
            and not owner.keys
            and isinstance(place, int)
            and -len(owner.parts) <= place < len(owner.parts)
        ):
            return owner.parts[place]
        if owner.parts is not None and not owner.keys and isinstance(key, ast.Slice):
            if isinstance(key.step, ast.UnaryOp):
                return replace(owner, parts=tuple(reversed(owner.parts)))
            return owner if owner.what == "list" else replace(owner, parts=owner.parts[_bounds(key)])
        mirrored = any(isinstance(s, ast.Slice) and s.step is not None for s in ast.walk(key))
        if mirrored and "orient" in owner.pending:
            return undone(owner, "orient")
        return owner if owner.parts is None else both(owner.parts)

    # calls

    def call(self, node: ast.Call, env: Env) -> Value:
        name = name_of(node)
        on = self.value(node.func.value, env) if isinstance(node.func, ast.Attribute) else UNKNOWN
        args = [self.value(a, env) for a in node.args]
        words = {k.arg or "": self.value(k.value, env) for k in node.keywords}
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and name in ("append", "add"):
            self.gather(node.func.value.id, args, env)
            return UNKNOWN
        if (
            isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and name in ("CopyInformation", "SetDirection", "SetOrigin", "SetReferenceImage", "thumbnail")
        ):
            self.in_place(node.func.value.id, name, node, args, env)
            return UNKNOWN
        called = self.followed(node, name, on, args, words, env)
        if called is not None:
            return called
        for value in (*args, *words.values()):
            if value.what == "function" and value.text in self.functions:
                self.invoke(self.functions[value.text], [], {}, UNKNOWN)
        return self.known(node, name, on, args, words)

    def gather(self, name: str, args: Sequence[Value], env: Env) -> None:
        held = env.get(name) or self.globals.get(name, UNKNOWN)
        element = held.parts[0] if held.what == "list" and held.parts else UNKNOWN
        for value in args:
            element = merged(element, value)
        env[name] = Value("list", parts=(element,))

    def in_place(self, name: str, method: str, node: ast.Call, args: Sequence[Value], env: Env) -> None:
        held = env.get(name, UNKNOWN)
        if method == "thumbnail":
            env[name] = changed(held, "size", "thumbnail", target_of(node))
        elif method == "SetReferenceImage":
            onto_input = bool(args) and args[0].native and not args[0].pending
            env[name] = replace(held, text="back") if onto_input else held
        elif args:
            env[name] = replace(held, geometry=args[0])

    def followed(
        self, node: ast.Call, name: str, on: Value, args: list[Value], words: Mapping[str, Value], env: Env
    ) -> Value | None:
        """The result of a function or class of the run's own, None for what is not in sight."""
        held = (env.get(name) or self.globals.get(name, UNKNOWN)) if isinstance(node.func, ast.Name) else UNKNOWN
        held = self.value(node.func, env) if isinstance(node.func, ast.Call) else held
        if held.what == "maker":
            return made(held, args)
        if held.what == "image" and args:
            return held  # an object that loads, called
        if held.what == "instance":
            method = self.classes.get(held.text, {}).get("__call__") or self.classes.get(held.text, {}).get("forward")
            return self.invoke(method, [held, *args], words, held) if method is not None else None
        if on.what == "instance" and name in self.classes.get(on.text, {}):
            return self.invoke(self.classes[on.text][name], [on, *args], words, on)
        own = (
            isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "self"
        )
        if own:
            for methods in self.classes.values():
                if name in methods:
                    return self.invoke(methods[name], [UNKNOWN, *args], words, UNKNOWN)
        if name in self.classes:
            held = Value("instance", text=name)
            if "__init__" in self.classes[name]:
                self.invoke(self.classes[name]["__init__"], [held, *args], words, held)
            return held
        of_library = (
            isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id in self.libraries
        )
        if name in self.functions and not of_library and (isinstance(node.func, ast.Name) or on == UNKNOWN):
            return self.invoke(self.functions[name], args, words, UNKNOWN)
        return None

    def invoke(self, function: ast.FunctionDef, args: list[Value], words: Mapping[str, Value], owner: Value) -> Value:
        if self.depth >= MAX_DEPTH:
            return UNKNOWN
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        env: Env = dict(zip(names, args, strict=False))
        defaults = function.args.defaults
        for name, default in zip(names[len(names) - len(defaults) :], defaults, strict=True):
            env.setdefault(name, self.value(default, {}))
        for name in (*names, *(a.arg for a in function.args.kwonlyargs)):
            env[name] = words.get(name) or env.get(name, UNKNOWN)
        self.depth += 1
        self.returned.append([])
        self.block(function.body, env)
        found = self.returned.pop()
        self.depth -= 1
        value = UNKNOWN
        for one in found:
            value = merged(value, one)
        return value


def _bounds(key: ast.Slice) -> slice:
    """The slice that stands in the code; bounds that are no plain numbers are left open."""
    low, high, step = (
        p.value if isinstance(p, ast.Constant) and isinstance(p.value, int) else None
        for p in (key.lower, key.upper, key.step)
    )
    return slice(low, high, step or None)
