"""Which pixel grid a value of the code lies on, followed through helpers, modules, tuples and dictionaries without running it.

A small abstract interpreter: a value knows which changes of the grid are still to be undone on it (`pending`), and whether it
holds a row or a column index or the width or height of an image. What is not understood is taken as undone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .grid_calls import (
    CLEARS,
    COMPOSES,
    GETTERS,
    INDEXES,
    KEEPS_FIRST,
    LOADS,
    MAKERS,
    ORIENTS,
    PARTS,
    POINTS,
    RESAMPLES,
    SIZES,
    loaded,
    name_of,
)

MAX_STEPS = 40_000
"""Expressions looked at in one program."""
MAX_DEPTH = 12
"""Calls within calls that are followed."""
NOTHING: frozenset[str] = frozenset()
ALL = frozenset({"orient", "spacing", "size"})
Env = dict[str, "Value"]


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a value; everything empty for what is not known."""

    what: str = ""
    """"image", "data", "geometry", "zooms", "size", "dim", "text", "number", "maker", "instance", "function" or ""."""
    native: bool = False
    """It lies on, or describes, an input's own grid at least in part."""
    pending: frozenset[str] = NOTHING
    """Changes of the grid ("orient", "spacing", "size") that were made and not undone."""
    done: frozenset[str] = NOTHING
    how: str = ""
    """The call that changed the grid first."""
    target: tuple[int, ...] = ()
    """The constant size to which it was brought."""
    geometry: Value | None = None
    """Of an image that the code puts together: where its affine is from."""
    index: frozenset[str] = NOTHING
    """"row" and "column" indices that went into it."""
    dims: frozenset[str] = NOTHING
    """Of what "dim": "width" or "height"."""
    scaled: frozenset[str] = NOTHING
    """Dimensions by which it was multiplied or divided."""
    parts: tuple[Value, ...] | None = None
    keys: tuple[str, ...] = ()
    text: str = ""
    number: float | None = None


UNKNOWN = Value()
ROW, COLUMN = Value(index=frozenset({"row"})), Value(index=frozenset({"column"}))
POINT = Value(parts=(ROW, COLUMN))
"""What names a point of an array in two axes."""


def merged(a: Value, b: Value) -> Value:
    """What holds where either of two values may be there; a change undone in one way counts as undone."""
    if a == b or b == UNKNOWN:
        return a
    if a == UNKNOWN:
        return b
    done = a.done | b.done
    same = a.parts is not None and b.parts is not None and len(a.parts) == len(b.parts) and a.keys == b.keys
    return replace(
        a, what=a.what or b.what, native=a.native or b.native, pending=(a.pending | b.pending) - done, done=done,
        how=a.how or b.how, target=a.target or b.target, geometry=a.geometry or b.geometry, index=a.index | b.index,
        dims=a.dims | b.dims, scaled=a.scaled | b.scaled, number=None,
        parts=tuple(map(merged, a.parts or (), b.parts or ())) if same else a.parts if b.parts is None else b.parts,
        keys=a.keys if same or b.parts is None else b.keys,
    )  # fmt: skip


@dataclass
class Seen:
    """What the code was seen to do with grids."""

    saved: list[tuple[Value, Value, str]] = field(default_factory=list)
    """(array, geometry, path as far as it is literal) of volumes that the code put together and saved."""
    written: list[tuple[Value, str]] = field(default_factory=list)
    """(array, path) of pictures and arrays without a header."""
    boxes: list[tuple[Value, Value]] = field(default_factory=list)
    """First x and first y of boxes."""
    ratio_of_itself: list[Value] = field(default_factory=list)
    """Sizes of a resized image divided by the size that it was brought to."""
    applied: list[Value] = field(default_factory=list)
    """Resized images that went into a call which is not followed, as a model's."""
    native_size_used: bool = False
    """The size of an image as it was read went into a product, a quotient or a call that is not followed."""


class Flow:
    """One program: texts of its modules in the order in which they run, the entry last."""

    def __init__(self, trees: Sequence[ast.Module]) -> None:
        self.seen = Seen()
        self.steps = 0
        self.depth = 0
        self.globals: Env = {}
        self.attributes: Env = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.classes: dict[str, dict[str, ast.FunctionDef]] = {}
        self.returned: list[list[Value]] = []
        for tree in trees:
            for node in tree.body:
                if isinstance(node, ast.FunctionDef):
                    self.functions[node.name] = node
                elif isinstance(node, ast.ClassDef):
                    self.classes[node.name] = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
        for tree in trees:
            self.block(tree.body, self.globals)

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
                else:
                    env[target.value.id] = merged(held, value)

    def unpack(self, targets: Sequence[ast.expr], value: Value, env: Env) -> None:
        if value.what == "size" and value.parts is None and len(targets) in (2, 3, 4):
            # height and width of an array stand first, behind batch and channel where there are four
            start = 2 if len(targets) == 4 else 0
            rest = replace(value, what="dim", text="")
            value = Value(
                parts=tuple(_pair(value)[i - start] if 0 <= i - start < 2 else rest for i in range(len(targets)))
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

    def element(self, value: Value) -> Value:
        """One element of what is iterated."""
        if value.what == "regions":
            return value
        if value.what == "indices" or value.what == "list":
            return (
                replace(value, what="indices")
                if value.what == "indices"
                else value.parts[0]
                if value.parts
                else UNKNOWN
            )
        if value.parts and not value.keys:
            first = value.parts[0]
            for part in value.parts[1:]:
                first = merged(first, part)
            return first
        return replace(value, parts=None, keys=()) if value.parts is None else UNKNOWN

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
                return _constant(node.value)
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
                return _both([self.value(v, env) for v in inner])
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

    def held(self, keys: tuple[str, ...], parts: tuple[Value, ...]) -> Value:
        """A dictionary, and the box in it."""
        named = {key.lower(): part for key, part in zip(keys, parts, strict=True)}
        for x, y in (("x1", "y1"), ("xmin", "ymin"), ("x_min", "y_min"), ("x0", "y0"), ("left", "top"), ("x", "y")):
            if x in named and y in named:
                self.seen.boxes.append((named[x], named[y]))
                break
        else:
            for key in ("bbox", "box", "bounding_box"):
                four = named[key].parts if key in named else None
                if four is not None and len(four) >= 4 and not named[key].keys:
                    self.seen.boxes.append((four[0], four[1]))
        return Value(parts=parts, keys=keys)

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
        found = _both([left, right])
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
            return replace(_plain(owner), what="dim", dims=frozenset({node.attr}))
        if node.attr in ("size", "shape", "spatial_shape") and owner.what in ("image", "data"):
            order = "size" if node.attr == "size" and owner.what == "image" else "shape"
            return replace(_plain(owner), what="size", text=order)
        return replace(_plain(owner), what=PARTS[node.attr]) if node.attr in PARTS and owner != UNKNOWN else owner

    def subscript(self, node: ast.Subscript, env: Env) -> Value:
        owner = self.value(node.value, env)
        key = node.slice
        place = key.value if isinstance(key, ast.Constant) else None
        if owner.keys and isinstance(place, str):
            return dict(zip(owner.keys, owner.parts or (), strict=False)).get(place, UNKNOWN)
        if owner.what == "size":
            return _dimension(owner, key, place)
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
            upper = key.upper.value if isinstance(key.upper, ast.Constant) else None
            lower = key.lower.value if isinstance(key.lower, ast.Constant) else None
            if owner.what == "list" or not isinstance(upper, int | None) or not isinstance(lower, int | None):
                return owner
            return replace(owner, parts=owner.parts[lower:upper])
        mirrored = any(isinstance(s, ast.Slice) and s.step is not None for s in ast.walk(key))
        if mirrored and "orient" in owner.pending:
            return _undone(owner, "orient")
        return owner if owner.parts is None else _both(owner.parts)

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
            env[name] = _changed(held, "size", "thumbnail", _target(node))
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
            return _made(held, args)
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
        if name in self.functions and (isinstance(node.func, ast.Name) or on == UNKNOWN):
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

    def known(self, node: ast.Call, name: str, on: Value, args: list[Value], words: Mapping[str, Value]) -> Value:
        """The result of a call of a library."""
        every = [v for v in (on, *args, *words.values()) if v != UNKNOWN]
        first = args[0] if args and (on.what in ("", "maker") or on == UNKNOWN) else on
        if on.what == "maker" and name in ("Execute", "__call__", "apply_transform", "transform"):
            return _made(on, args)
        if name in LOADS and (kind := loaded(node)):
            return Value(kind, native=True)
        if name in INDEXES or (name == "where" and len(node.args) == 1):
            over = _both([v for v in (on, *args) if v != UNKNOWN]) if every else UNKNOWN
            return Value("indices", pending=over.pending, native=over.native)
        if name in ("zip", "enumerate", "map"):
            return self.paired(name, args)
        if name in MAKERS:
            return Value("maker", text=MAKERS[name], how=name, target=_target(node))
        if name in ("regionprops", "regionprops_table"):
            return Value("regions")
        if name in COMPOSES:
            inner = [v for a in args for v in (a.parts or ())]
            one = next((v for v in inner if v.what == "maker"), UNKNOWN)
            return replace(one, native=any(v.native for v in inner))
        if name in ("Nifti1Image", "Nifti2Image", "new_img_like", "make_nifti") or name == "__class__":
            return self.put_together(name, args, words)
        if name in ("save", "to_filename", "WriteImage", "imwrite", "write_image"):
            self.saves(node, on, args)
            return UNKNOWN
        if name == "GetImageFromArray":
            return replace(first, what="image", geometry=UNKNOWN)
        if name in CLEARS and name[0].isupper():
            return Value("maker", text="back")
        if name in CLEARS:
            found = _both(every)
            return replace(found, pending=NOTHING, done=ALL) if found.native else UNKNOWN
        if name == "ornt_transform" and len(args) > 1:
            return replace(args[1], what="back" if args[1].native and not args[1].pending else "forth", parts=None)
        if name in ORIENTS:
            back = any(v.what == "back" for v in args)
            return _undone(first, "orient") if back else _changed(first, "orient", name, ()) if first.native else first
        if name in RESAMPLES:
            return self.resampled(name, first, [v for v in (*args, *words.values()) if v is not first])
        if name in SIZES:
            return self.resized(node, name, first, [v for v in (*args, *words.values()) if v is not first])
        if name in ("flip", "flipud", "fliplr", "rot90", "Flip") and "orient" in first.pending:
            return _undone(first, "orient")
        if name in GETTERS:
            return replace(_plain(on), what=GETTERS[name])
        if name in ("min", "max", "clip", "clamp", "minimum", "maximum"):
            return self.bounded(args, first)
        if name == "dict" and words:
            return self.held(tuple(words), tuple(words.values()))
        pairs = [p.parts for p in args[0].parts or ()] if name == "dict" and args else []
        if pairs and all(p is not None and len(p) == 2 and p[0].text for p in pairs):
            return self.held(tuple(p[0].text for p in pairs if p), tuple(p[1] for p in pairs if p))
        if name in POINTS:
            return replace(
                POINT,
                what="list" if name in ("find_objects", "peak_local_max") else "",
                parts=(POINT,) if name in ("find_objects", "peak_local_max") else POINT.parts,
            )
        if name in KEEPS_FIRST:
            return first
        return self.unfollowed(name, on, args, words)

    def unfollowed(self, name: str, on: Value, args: list[Value], words: Mapping[str, Value]) -> Value:
        every = [v for v in (on, *args, *words.values()) if v not in (UNKNOWN,) and v.what not in ("text", "number")]
        flat = [p for v in every for p in (v.parts if v.parts is not None else (v,))]
        quiet = name in (
            "print",
            "info",
            "debug",
            "warning",
            "zeros",
            "empty",
            "full",
            "ones",
            "format",
            "write",
            "append",
        )
        if any(v.what in ("dim", "size") and v.native and not v.pending for v in flat) and not quiet:
            self.seen.native_size_used = True
        found = _both(flat)
        if "size" in found.pending and not quiet:
            self.seen.applied.append(found)
        grids = [
            v for v in flat if v.native and v.what in ("image", "geometry", "size", "dim", "data") and not v.pending
        ]
        if grids and found.pending:
            return replace(found, pending=NOTHING, done=found.done | found.pending)  # it may put things back
        return found if found.what != "image" or not args else replace(found, what="data")

    def paired(self, name: str, args: list[Value]) -> Value:
        if name == "zip" and all(a.parts and not a.keys and a.what != "list" for a in args):
            return Value(parts=tuple(Value(parts=p) for p in zip(*(a.parts or () for a in args), strict=False)))
        inner = tuple(self.element(a) for a in (args[1:] if name == "map" else args))
        if name == "map":
            return Value("list", parts=(_both(inner),)) if args and args[1:] else UNKNOWN
        return Value("list", parts=(Value(parts=(UNKNOWN, *inner) if name == "enumerate" else inner),))

    def put_together(self, name: str, args: list[Value], words: Mapping[str, Value]) -> Value:
        array = (
            words.get("dataobj")
            or words.get("data")
            or (args[1] if name == "new_img_like" and len(args) > 1 else args[0] if args else UNKNOWN)
        )
        other = (
            words.get("affine")
            or words.get("ref_niimg")
            or (args[0] if name == "new_img_like" and args else args[1] if len(args) > 1 else UNKNOWN)
        )
        return replace(array, what="image", geometry=other)

    def saves(self, node: ast.Call, on: Value, args: list[Value]) -> None:
        every = (*node.args, *(k.value for k in node.keywords))
        words = [n.value for a in every for n in ast.walk(a) if isinstance(n, ast.Constant)]
        path = "/".join(w for w in words if isinstance(w, str))
        image = next((v for v in (*args, on) if v.geometry is not None), None)
        if image is not None and image.geometry is not None:
            self.seen.saved.append((image, image.geometry, path))
            return
        array = next((v for v in (*args, on) if v.native and v.what in ("data", "image")), None)
        if array is not None:
            self.seen.written.append((array, path))

    def resampled(self, name: str, first: Value, others: Sequence[Value]) -> Value:
        flat = [p for v in others for p in (v.parts if v.parts is not None else (v,))]
        if any(v.native and not v.pending and v.what in ("image", "geometry", "size") for v in flat):
            # onto the grid of an input, whatever the array was before
            return replace(
                first, pending=NOTHING, done=ALL, geometry=None if first.geometry is None else next(iter(flat))
            )
        return _changed(first, "spacing", name, ()) if first.native else first

    def resized(self, node: ast.Call, name: str, first: Value, others: Sequence[Value]) -> Value:
        flat = [p for v in others for p in (v.parts if v.parts is not None else (v,))]
        if any(v.native and not v.pending and v.what in ("size", "dim") for v in flat):
            self.seen.native_size_used = True
            return replace(_undone(first, "size"), pending=first.pending - {"size", "spacing"})
        if "spacing" in first.pending:
            return _undone(first, "spacing")
        if not first.native and first.parts is None:
            return first
        return _changed(first, "size", name, _target(node))

    def bounded(self, args: Sequence[Value], first: Value) -> Value:
        """`min`, `max`, `clip`: limits do not tell where a value lies."""
        if first.parts is not None and len(args) > 1:
            return replace(first, what="")
        kept = [v for v in (first, *args) if v.what not in ("dim", "size", "number")]
        return _both(kept) if kept else UNKNOWN


def _constant(value: object) -> Value:
    if isinstance(value, str):
        return Value("text", text=value[:200])
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e9:
        return Value("number", number=value)
    return UNKNOWN


def _plain(value: Value) -> Value:
    """A value without what belongs to the object alone."""
    if value.geometry is not None:
        return replace(value, geometry=None, parts=None, keys=())
    return replace(value, parts=None, keys=(), text="")


def _both(values: Iterable[Value]) -> Value:
    """What a result holds that is made of all these."""
    found = UNKNOWN
    for value in values:
        if value.parts is not None:
            value = _both(value.parts)
        found = merged(
            found, replace(value, text="", number=None, geometry=None) if value.what != "number" else UNKNOWN
        )
    return (
        replace(found, what="data")
        if found.what in ("image", "dim", "size", "instance", "maker", "list", "text")
        else found
    )


def _changed(value: Value, kind: str, how: str, target: tuple[int, ...]) -> Value:
    if kind in value.pending or kind in value.done:
        return _undone(value, kind)
    other = None if value.geometry is None else _changed(value.geometry, kind, how, target)
    return replace(value, pending=value.pending | {kind}, how=value.how or how, target=target, geometry=other)


def _undone(value: Value, kind: str) -> Value:
    other = None if value.geometry is None else _undone(value.geometry, kind)
    return replace(value, pending=value.pending - {kind}, done=value.done | {kind}, geometry=other)


def _made(maker: Value, args: Sequence[Value]) -> Value:
    """What a transform object gives: fields of a dictionary are those of one image."""
    first = _both(args[:1]) if args else UNKNOWN
    if not (first.native or maker.native):
        return first
    source = replace(first, native=True, what="data", parts=None, keys=())
    if maker.text == "back":
        return replace(source, pending=NOTHING, done=ALL)
    return _changed(source, maker.text, maker.how, maker.target)


def _dimension(owner: Value, key: ast.expr, place: object) -> Value:
    if isinstance(key, ast.Slice):
        cut = key.upper.value if isinstance(key.upper, ast.Constant) else None
        backwards = isinstance(key.step, ast.UnaryOp)
        if key.lower is None and cut == 2 and not backwards:
            return replace(owner, parts=_pair(owner))
        if backwards and key.lower is None and owner.text == "size":
            return replace(owner, parts=tuple(reversed(_pair(owner))))
        return owner
    if isinstance(place, int) and place in (0, 1):
        return _pair(owner)[place]
    return replace(owner, what="dim", text="")


def _pair(owner: Value) -> tuple[Value, Value]:
    one = replace(owner, what="dim", text="", parts=None)
    names = ("width", "height") if owner.text == "size" else ("height", "width")
    return replace(one, dims=frozenset({names[0]})), replace(one, dims=frozenset({names[1]}))


def _target(node: ast.Call) -> tuple[int, ...]:
    """Constant numbers of pixels in the arguments of a call that resizes."""
    return tuple(
        n.value
        for a in (*node.args, *(k.value for k in node.keywords))
        for n in ast.walk(a)
        if isinstance(n, ast.Constant) and isinstance(n.value, int) and not isinstance(n.value, bool) and n.value >= 16
    )[:6]
