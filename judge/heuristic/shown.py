"""What the values that a program prints are: shapes, ranges, label counts, a model's raw answer, what was made of it.

Agents print through helper functions, tables, variables and log lines. A printed expression is followed back through
names and through the run's own functions to the calls that made its values, and no further: what a value was computed
from (the reshape inside a preprocessing step) was not shown.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from ...trajectories.any_case import AnyCase
from ...trajectories.code_parts import parse
from ...trajectories.syntax_tree import COMPREHENSIONS, FUNCTIONS, LOOPS, children, descendants

Kinds = frozenset[str]
Function = ast.FunctionDef | ast.AsyncFunctionDef
NONE: Kinds = frozenset()
MAX_DEPTH = 12
"""Names, calls and functions between a print and the call that made its value; more is not followed."""
MAX_TEXTS = 400
"""Expressions of one program that are written back as source."""
MAX_STEPS = 20_000
"""Expressions that are looked at in one program: hostile code stays cheap."""

_PRINTS = frozenset({"print", "display", "pprint", "pp", "echo", "info", "debug", "warning", "log"})
_BUILDS = frozenset({"append", "add", "extend", "insert", "update", "setdefault", "add_row", "writerow", "writerows"})
_PASSES = frozenset(
    {
        "round", "around", "int", "float", "str", "repr", "bool", "tuple", "list", "dict", "set", "sorted", "reversed", "zip", "enumerate", "map", "abs",
        "format", "dumps", "pformat", "DataFrame", "Series", "tabulate", "array", "stack", "concat", "asdict", "vars", "SimpleNamespace", "namedtuple", "iter", "next",
    }
)  # fmt: skip
"""Functions that show what they are given."""
_KEEPS = frozenset(
    {
        "item", "items", "values", "keys", "tolist", "round", "astype", "numpy", "cpu", "detach", "join", "format", "lower", "upper", "strip", "title", "all", "any",
        "to_string", "to_markdown", "head", "ljust", "rjust", "center", "copy", "most_common", "elements", "pop", "write", "squeeze",
    }
)  # fmt: skip
"""Methods whose result shows the object that they are called on."""
_CUTS = frozenset({"split", "replace", "partition", "rpartition", "removeprefix", "removesuffix", "rsplit", "find", "index", "group", "splitlines"})  # fmt: skip
_VOTES = frozenset({"Counter", "mode", "multimode", "unique"})
"""Counts that keep what they count: the answer that most of several runs gave is still the model's."""
_RAW_CALLS = frozenset(
    {"generate", "chat", "complete", "create", "answer", "ask", "infer", "decode", "batch_decode", "predict", "respond", "run"}
)  # fmt: skip
"""Methods of foreign objects whose result is a model's answer."""


MEASURES: dict[str, re.Pattern[str] | AnyCase] = {
    "shape": re.compile(r"\.shape\b|\.size\b|\.ndim\b|get_data_shape|GetSize"),
    "range": re.compile(r"\.(?:min|max|amin|amax)\(|\b(?:np|torch)\.(?:min|max|amin|amax|ptp)\(|percentile|quantile|getextrema|describe\("),
    "finite": re.compile(r"isfinite|isnan|isinf"),
    "labels": re.compile(r"np\.unique\(|torch\.unique\(|bincount\(|value_counts\(|Counter\("),
    "size": re.compile(r"\.sum\(|count_nonzero\(|\blen\("),
    "statistics": re.compile(r"\.(?:mean|std|median|var|describe)\(|np\.(?:mean|std|median)\("),
    "components": re.compile(r"ndi(?:mage)?\.label\(|measure\.label|regionprops|find_objects|connected_components|cc3d"),
    "geometry": re.compile(r"affine|get_zooms|spacing|aff2axcodes|GetSpacing|GetDirection|GetOrigin"),
    "view": re.compile(r"savefig\(|imshow\(|imsave\(|overlay|add_patch\(|\.show\(|ImageDraw"),
    "comparison": AnyCase(r"\bdice\b|\biou\b|agree|corrcoef|ssim|psnr|allclose|array_equal"),
    "scores": AnyCase(r"softmax|prob|score|conf\b|confidence|margin|logit"),
    "quality": AnyCase(
        r"ssim|psnr|lpips|\bsnr\b|\bcnr\b|sigma|noise|residual|edge|sharp|gradient|laplac|resolution|local std|flat|blur|before|after"
    ),
}  # fmt: skip
"""What code looks at, by the calls and attributes that measure it."""


@dataclass
class _Scope:
    """What is known of the names of one function or program: the expressions that they were given."""

    names: dict[str, list[ast.expr]] = field(default_factory=dict)
    items: dict[tuple[str, object], list[ast.expr]] = field(default_factory=dict)
    """What was put under a constant key of a name: d["shape"] = ..."""
    conditions: dict[str, list[ast.expr]] = field(default_factory=dict)
    """Tests under which a name was given its value."""
    given: dict[str, Kinds] = field(default_factory=dict)
    """Kinds of a function's arguments at this call."""
    prints: list[ast.expr] = field(default_factory=list)
    calls: list[ast.Call] = field(default_factory=list)


class Source(NamedTuple):
    """A parsed program, with the functions that are defined anywhere in it."""

    tree: ast.Module
    functions: tuple[Function, ...]


def read_source(text: str) -> Source | None:
    """The parsed text, None when it is no Python."""
    tree = parse(text)
    return None if tree is None else Source(tree, tuple(_functions(tree)))


class Shown:
    """Kinds of everything that a program prints or asserts."""

    def __init__(
        self, programs: Iterable[str], library: Iterable[str], read: Callable[[str], Source | None] = read_source
    ) -> None:
        self.functions: dict[str, Function] = {}
        self.budget = MAX_STEPS
        self._known: dict[tuple[str, int, frozenset[tuple[str, Kinds]]], Kinds] = {}
        """Kinds of names that were followed to their end: by name, scope and what the scope was given."""
        self._returned: dict[int, list[ast.expr]] = {}
        self._cut = 0
        """How often following was cut short: by a circle, the depth or the budget."""
        self._kept: list[ast.expr] = []
        self._found: Kinds | None = None
        self._scopes: dict[int, _Scope] = {}
        self._heads: dict[str, Kinds] = {}
        """What the heads of calls measure."""
        trees = [source for text in programs if (source := read(text)) is not None]
        shared = [source for text in library if (source := read(text)) is not None]
        for source in (*shared, *trees):
            self.functions.update((n.name, n) for n in source.functions)
        self.globals = _Scope()
        for source in shared:
            _read(source.tree.body, self.globals, ())
        self.globals.prints.clear()
        self.globals.calls.clear()
        for source in trees:
            _read(source.tree.body, self.globals, ())

    def kinds(self) -> Kinds:
        """Kinds of what the program prints, in its own lines and in the functions that it calls."""
        if self._found is None:
            try:
                self._found = self._printed(self.globals, 0, set())
            except RecursionError:
                self._found = NONE
        return self._found

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Source of the printed expressions and of those that they were followed to."""
        self.kinds()
        found: list[str] = []
        for node in self._kept:
            with contextlib.suppress(ValueError, RecursionError):  # what cannot be written back has no words to search
                found.append(ast.unparse(node)[:2_000])
            if len(found) == MAX_TEXTS:
                break
        return tuple(found)

    # -- prints -------------------------------------------------------------------------------------------------------

    def _printed(self, scope: _Scope, depth: int, entered: set[tuple[int, Kinds]]) -> Kinds:
        found: set[str] = set()
        for expression in scope.prints:
            self._kept.append(expression)
            found |= self._of(expression, scope, depth, frozenset())
        for call in scope.calls:
            name = _last(call.func)
            function = self.functions.get(name)
            if function is None or depth >= MAX_DEPTH:
                continue
            inner = self._enter(function, call, scope, depth)
            key = (id(function), frozenset().union(*inner.given.values()) if inner.given else NONE)
            if key in entered:
                continue
            entered.add(key)
            found |= self._printed(inner, depth + 1, entered)
        return frozenset(found)

    def _enter(self, function: Function, call: ast.Call, scope: _Scope, depth: int) -> _Scope:
        """The function's scope with the kinds of the arguments of this call."""
        if id(function) not in self._scopes:
            made = _Scope()
            _read(function.body, made, ())
            self._scopes[id(function)] = made
        known = self._scopes[id(function)]
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args) if a.arg not in ("self", "cls")]
        pairs = [*zip(names, call.args, strict=False), *((k.arg, k.value) for k in call.keywords if k.arg)]
        rest = [k for k in (function.args.vararg, function.args.kwarg) if k]
        pairs += [(r.arg, value) for r in rest for value in (*call.args, *(k.value for k in call.keywords))]
        given: dict[str, Kinds] = {}
        for name, value in pairs:
            given[name] = given.get(name, NONE) | self._of(value, scope, depth + 1, frozenset())
        return replace(known, given=given)

    # -- expressions --------------------------------------------------------------------------------------------------

    def _of(self, node: ast.AST | None, scope: _Scope, depth: int, seen: frozenset[str]) -> Kinds:
        self.budget -= 1
        if node is None or isinstance(node, (ast.Constant, ast.Lambda)):
            return NONE
        if depth > MAX_DEPTH or self.budget < 0:
            self._cut += 1
            return NONE
        if isinstance(node, ast.Name):
            return self._of_name(node.id, scope, depth, seen)
        if isinstance(node, ast.Call):
            return self._of_call(node, scope, depth, seen)
        if isinstance(node, ast.Attribute):
            return self._measured(f".{node.attr}") or self._of(node.value, scope, depth, seen)
        if isinstance(node, ast.Subscript):
            picked = self._pick(node, scope, depth, seen)
            if picked is not None:
                return picked
            inside = self._of(node.value, scope, depth, seen)
            if "raw" in inside and isinstance(node.slice, ast.Slice):
                inside |= {"parsed"}
            chosen = "raw" in self._of(node.slice, scope, depth, seen)
            return inside | ({"parsed"} if chosen else NONE)
        if isinstance(node, COMPREHENSIONS):
            return self._of_comprehension(node, scope, depth, seen)
        if isinstance(node, ast.IfExp):
            test = self._of(node.test, scope, depth, seen)
            found = self._of(node.body, scope, depth, seen) | self._of(node.orelse, scope, depth, seen)
            return found | ({"parsed"} if "raw" in test else NONE)
        found = NONE
        for child in children(node):
            if isinstance(child, (ast.expr, ast.comprehension, ast.keyword)):
                found |= self._of(child, scope, depth, seen)
        return found

    def _pick(self, node: ast.Subscript, scope: _Scope, depth: int, seen: frozenset[str]) -> Kinds | None:
        """Kinds of one part of a tuple or dictionary whose parts are known; None where they are not."""
        if not isinstance(node.slice, ast.Constant):
            return None
        key = node.slice.value
        found = NONE
        known = False
        for value, at in self._made(node.value, scope, depth):
            chosen = _parts(value, key, at)
            known = known or bool(chosen)
            for part in chosen:
                found |= self._of(part, at, depth + 1, seen if at is scope else frozenset())
        return found if known else None

    def _made(self, node: ast.AST, scope: _Scope, depth: int) -> list[tuple[ast.AST, _Scope]]:
        """The expressions that made a value, through names and the run's own functions."""
        if depth > MAX_DEPTH:
            self._cut += 1
            return []
        if isinstance(node, ast.Name):
            at = scope if node.id in scope.names else self.globals
            found: list[tuple[ast.AST, _Scope]] = [(node, at)]
            for value in at.names.get(node.id, ())[:5]:
                found += self._made(value, at, depth + 3)
            return found
        if isinstance(node, ast.Call) and (function := self.functions.get(_last(node.func))) is not None:
            inner = self._enter(function, node, scope, depth)
            return [pair for value in self._returns(function)[:5] for pair in self._made(value, inner, depth + 3)]
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            held = self._made(node.value, scope, depth + 1)
            parts = [(part, at) for value, at in held[:5] for part in _parts(value, node.slice.value, at)[:5]]
            return [(node, scope), *(pair for part, at in parts for pair in self._made(part, at, depth + 2))]
        return [(node, scope)]

    def _of_comprehension(self, node: ast.expr, scope: _Scope, depth: int, seen: frozenset[str]) -> Kinds:
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [getattr(node, "elt", None)]
        found = NONE
        for part in parts:
            found |= self._of(part, scope, depth, seen)
        for generator in getattr(node, "generators", ()):
            if any(self._of(test, scope, depth, seen) & {"raw", "parsed"} for test in generator.ifs):
                found |= {"parsed"}
        return found

    def _of_name(self, name: str, scope: _Scope, depth: int, seen: frozenset[str]) -> Kinds:
        at = scope if name in scope.names or name in scope.given else self.globals
        key = (name, id(at.names), frozenset(at.given.items()))
        if key in self._known:
            return self._known[key]
        if name in scope.given:
            found = scope.given[name]
        elif name in seen:
            self._cut += 1
            return NONE
        else:
            found = NONE
        before = self._cut
        found |= frozenset(k for k in self._measured(name) if k in ("scores", "comparison", "geometry"))
        at = scope if name in scope.names else self.globals
        for value in at.names.get(name, ())[:20]:
            self._kept.append(value)
            found |= self._of(value, at, depth + 1, seen | {name})
        for test in at.conditions.get(name, ())[:10]:
            if "raw" in self._of(test, at, depth + 1, seen | {name}):
                found |= {"parsed"}
        if self._cut == before:
            self._known[key] = found
        return found

    def _of_call(self, node: ast.Call, scope: _Scope, depth: int, seen: frozenset[str]) -> Kinds:
        name = _last(node.func)
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        arguments = [*node.args, *(k.value for k in node.keywords)]
        function = self.functions.get(name)
        if function is not None:
            inner = self._enter(function, node, scope, depth)
            found = NONE
            for value in self._returns(function):
                self._kept.append(value)
                found |= self._of(value, inner, depth + 1, frozenset())
            if any("raw" in kinds for kinds in inner.given.values()):
                found |= {"parsed"}
            return found
        base = f"{receiver.id}." if isinstance(receiver, ast.Name) else "."
        measured = self._measured(f"{base}{name}(" if receiver is not None else f"{name}(")
        if measured and name not in _VOTES:
            return measured
        given = NONE
        for argument in arguments:
            given |= self._of(argument, scope, depth, seen)
        if name in _VOTES and (measured or given):
            return measured | (given & {"raw", "parsed"})
        if receiver is None:
            if name in _PASSES or (name in ("min", "max") and given):
                return given | (frozenset({"range"}) if name in ("min", "max") else NONE)
            return frozenset({"parsed"}) if given & {"raw", "parsed"} else NONE
        held = self._of(receiver, scope, depth, seen)
        if name in _KEEPS:
            cut = name == "strip" and bool(node.args) and "raw" in held
            return held | given | ({"parsed"} if cut else NONE)
        if name in _PASSES:
            return given
        if (held | given) & {"raw", "parsed"}:
            # A letter that is looked up by the answer, a piece that is cut from it, a match in it.
            kept = held if name in _CUTS - {"group"} else NONE
            return (kept - {"raw"}) | {"parsed"}
        if name in _RAW_CALLS and not _library(receiver):
            return frozenset({"raw"})
        if name in ("group", "get"):
            return held
        return NONE

    def _returns(self, function: Function) -> list[ast.expr]:
        if id(function) not in self._returned:
            nodes = (n for n in descendants(function) if isinstance(n, (ast.Return, ast.Yield)))
            self._returned[id(function)] = [n.value for n in nodes if n.value is not None][:20]
        return self._returned[id(function)]

    def _measured(self, head: str) -> Kinds:
        if head not in self._heads:
            self._heads[head] = frozenset(kind for kind, pattern in MEASURES.items() if pattern.search(head))
        return self._heads[head]


def _parts(value: ast.AST, key: object, at: _Scope) -> list[ast.expr]:
    """What stands under a constant key of a dictionary, a tuple, or a name whose keys were given one by one."""
    if isinstance(value, ast.Name):
        return at.items.get((value.id, key), [])
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        return [v for k, v in pairs if isinstance(k, ast.Constant) and k.value == key]
    if isinstance(value, ast.Tuple | ast.List) and isinstance(key, int) and -len(value.elts) <= key < len(value.elts):
        return [value.elts[key]]
    return []


def _functions(tree: ast.Module) -> list[Function]:
    return [n for n in descendants(tree) if isinstance(n, FUNCTIONS)]


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _library(node: ast.AST) -> bool:
    """Whether an object is a package that is no model: subprocess.run, np.random, random.choice."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in (
        "subprocess",
        "os",
        "np",
        "numpy",
        "torch",
        "random",
        "json",
        "re",
        "sp",
    )


_SKIPPED = (ast.Name, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
"""What holds no assignment, print or call of the program itself."""


def _read(body: Iterable[ast.AST], scope: _Scope, tests: tuple[ast.expr, ...]) -> None:
    """Assignments, prints and calls of statements, without those of the functions that they define."""
    for node in body:
        if isinstance(node, _SKIPPED):
            continue
        if isinstance(node, ast.If):
            if not _main(node.test):
                _read([node.test], scope, tests)
            _read(node.body, scope, (*tests, node.test))
            _read(node.orelse, scope, (*tests, node.test))
            continue
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _give(target, node.value, scope, tests)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            if node.value is not None:
                _give(node.target, node.value, scope, tests)
        elif isinstance(node, (*LOOPS, ast.comprehension)):
            _give(node.target, node.iter, scope, ())
        elif isinstance(node, ast.Assert):
            scope.prints.append(node.test)
        elif isinstance(node, ast.Call):
            name = _last(node.func)
            scope.calls.append(node)
            if name in _PRINTS or _writes_out(node):
                scope.prints += [*node.args, *(k.value for k in node.keywords if k.arg in ("msg", "obj"))]
            elif name in _BUILDS and isinstance(node.func, ast.Attribute) and (root := _root(node.func.value)):
                for value in (*node.args, *(k.value for k in node.keywords)):
                    scope.names.setdefault(root, []).append(value)
        _read(children(node), scope, tests)


def _give(target: ast.AST, value: ast.expr, scope: _Scope, tests: tuple[ast.expr, ...]) -> None:
    if isinstance(target, ast.Tuple | ast.List):
        parts: list[ast.expr] = list(value.elts) if isinstance(value, ast.Tuple | ast.List) else []
        matched = len(parts) == len(target.elts) and not any(isinstance(p, ast.Starred) for p in (*parts, *target.elts))
        for position, element in enumerate(target.elts):
            whole = ast.Subscript(value=value, slice=ast.Constant(value=position), ctx=ast.Load())
            _give(element, parts[position] if matched else whole, scope, tests)
        return
    root = _root(target)
    if not root:
        return
    scope.names.setdefault(root, []).append(value)
    if isinstance(target, ast.Subscript):
        scope.names[root].append(target.slice)
        if isinstance(target.slice, ast.Constant):
            scope.items.setdefault((root, target.slice.value), []).append(value)
    scope.conditions.setdefault(root, []).extend(tests)


def _root(node: ast.AST) -> str:
    """The name whose object an expression changes: `d` of d["a"], of d.rows and of d.setdefault(k, [])."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _writes_out(node: ast.Call) -> bool:
    """sys.stdout.write(...) and csv rows that go there."""
    return isinstance(node.func, ast.Attribute) and node.func.attr == "write" and "stdout" in ast.dump(node.func)[:300]


def _main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"
