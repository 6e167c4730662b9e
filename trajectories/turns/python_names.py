"""What names stand for in Python code: places of outputs, models, results, and sets of cases of
some size.

Names are followed by name alone, whatever function they stand in, from what is assigned to them;
nothing is evaluated.
"""

from __future__ import annotations

import ast
import builtins
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import cached_property

from .python_code import FUNCTIONS, ROWS, Called, Flat, first_name, last_name
from .python_module import ALL, Module, Size, largest, smaller

_GIVEN = (ast.AnnAssign, ast.NamedExpr, ast.AugAssign)
_LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)
_IMPORTS = (ast.Import, ast.ImportFrom)
_SIDES = (ast.BoolOp, ast.IfExp, ast.BinOp)
_COLLECTIONS = (*ROWS, ast.Set)
_TOLD = frozenset(
    [
        ast.Call,
        ast.Assign,
        ast.AnnAssign,
        ast.NamedExpr,
        ast.AugAssign,
        ast.For,
        ast.AsyncFor,
        ast.While,
        ast.comprehension,
        ast.withitem,
        ast.With,
        ast.AsyncWith,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.ClassDef,
        ast.Return,
        ast.Import,
        ast.ImportFrom,
        ast.If,
        ast.Assert,
        ast.Compare,
        ast.ListComp,
        ast.SetComp,
        ast.GeneratorExp,
        ast.DictComp,
    ]
)
_SIZED = frozenset(
    [
        ast.Name,
        ast.Call,
        ast.Attribute,
        ast.List,
        ast.Tuple,
        ast.Set,
        ast.Subscript,
        ast.ListComp,
        ast.SetComp,
        ast.GeneratorExp,
        ast.DictComp,
        ast.BoolOp,
        ast.IfExp,
        ast.BinOp,
    ]
)
"""What may stand for cases."""
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
LISTING = frozenset(["glob", "iglob", "rglob", "listdir", "iterdir", "scandir", "walk"])
LOADS = frozenset(
    [
        "load",
        "open",
        "imread",
        "read_csv",
        "read_json",
        "loadtxt",
        "read_text",
        "ReadImage",
        "read_parquet",
        "read_table",
        "read_h5ad",
        "read_10x_mtx",
        "read_excel",
        "loads",
        "dcmread",
        "genfromtxt",
        "load_dataset",
        "fromfile",
        "memmap",
        "read_bytes",
    ]
)
_KEEPS = frozenset(
    [
        "sorted",
        "list",
        "tuple",
        "set",
        "reversed",
        "enumerate",
        "tqdm",
        "iter",
        "zip",
        "filter",
        "track",
        "groupby",
        "join",
        "dumps",
        "stack",
        "array",
        "concatenate",
        "asarray",
        "from_numpy",
        "tensor",
        "cat",
        "DataLoader",
        "DataFrame",
    ]
)
"""Calls that hand on as many elements as they are given."""
POOLS = frozenset(
    [
        "map",
        "imap",
        "imap_unordered",
        "starmap",
        "apply",
        "progress_apply",
        "thread_map",
        "process_map",
    ]
)
_LOADERS = frozenset(
    [
        "from_pretrained",
        "load_state_dict",
        "load_model",
        "InferenceSession",
        "pipeline",
        "load_checkpoint",
        "from_checkpoint",
        "load_from_checkpoint",
        "create_model",
        "load_net",
        "load_weights",
        "safe_open",
        "load_file",
    ]
)
_FORWARD = frozenset(
    [
        "predict",
        "predict_proba",
        "predict_one",
        "generate",
        "infer",
        "inference",
        "forward",
        "sliding_window_inference",
        "run_inference",
        "decision_function",
        "transcribe",
        "apply_model",
    ]
)
_OF_MODELS = frozenset(
    [
        "eval",
        "to",
        "cuda",
        "cpu",
        "load_state_dict",
        "parameters",
        "named_parameters",
        "state_dict",
        "train",
        "modules",
        "children",
        "half",
        "float",
        "named_modules",
        "requires_grad_",
        "size",
        "items",
        "keys",
        "values",
        "get",
        "buffers",
        "compile",
        "summary",
        "fit",
        "save",
        "save_pretrained",
        "zero_grad",
        "encode_text",
        "get_inputs",
        "get_outputs",
        "update",
    ]
)
"""Methods of a model that do not apply it."""
_MODEL_NAME = re.compile(
    r"(?:model|net|unet|clf|vlm|llm|pipe|predictor|detector|segmenter|generator|classifier)\d?"
)
STATISTICS = frozenset(
    [
        "min",
        "max",
        "mean",
        "std",
        "unique",
        "bincount",
        "value_counts",
        "percentile",
        "Counter",
        "describe",
        "nunique",
        "sum",
        "histogram",
        "quantile",
        "isnan",
        "isfinite",
        "count_nonzero",
        "median",
        "head",
        "allclose",
        "array_equal",
        "crosstab",
        "corrcoef",
    ]
)
SHAPES = frozenset(
    ["shape", "dtype", "size", "ndim", "get_zooms", "affine", "mode", "obs", "columns"]
)
_LIBRARIES = frozenset(["np", "numpy", "os", "plt", "pd", "random", "torch", "F", "json", "re"])
_BUILTINS = frozenset(dir(builtins))
WEIGHTS = re.compile(
    r"\.(?:pth?|ckpt|safetensors|onnx|h5|keras|pkl|joblib|gguf|tflite)\b|state_dict", re.IGNORECASE
)
"""Texts that name a file of weights."""
_NO_CASES = re.compile(
    r"models?\b|zoo|weights|checkpoint|\.(?:pth?|md|py|ckpt|safetensors|onnx|bin|log|ya?ml)$",
    re.IGNORECASE,
)
_INDEX = re.compile(
    r"manifest|index|cases\b|studies|questions\b|patients\b|_list\b|/test\b|\btest\.(?:csv|json)"
    r"|/public/[^/\s]{1,80}\.(?:csv|tsv|jsonl?|xlsx|parquet)$",
    re.IGNORECASE,
)
"""Files that list cases; a table that lies beside the cases' folders is such a list."""
_GROWS = frozenset(["append", "add", "extend", "update", "setdefault"])
MAX_LOOPS = 12
"""Loops in loops that are followed."""
_CASE = re.compile(r"[A-Za-z]{0,20}(?:[_-][A-Za-z]{0,2})?\d{1,10}")
_PADDED = re.compile(r"0\d{1,2}d?|[^%]*%0\d")
"""A number written with leading zeros, as in the names of cases."""


class Names:
    """What the names of one module stand for. Nodes go by their number in `flat`."""

    def __init__(
        self,
        tree: Flat,
        source: str,
        outputs: re.Pattern[str],
        own: Mapping[str, Module],
        prefixes: tuple[str, ...],
    ) -> None:
        self.flat = tree
        self.nodes, self.ends, self.names = self.flat.nodes, self.flat.ends, self.flat.names
        self.lines = source.split("\n")
        self.texts = self.flat.texts
        self.calls: dict[int, Called] = {}
        """By number."""
        self.told: list[int] = []
        """What is looked at below: calls, loops, definitions, comparisons."""
        self.functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self.classes: set[str] = set()
        self.origins: dict[str, str] = {}
        self.imports: set[str] = set()
        self.executed: list[Module] = []
        self.renamed: dict[str, str] = {}
        """Names under which others are imported."""
        self.assigned: list[tuple[str, int]] = []
        """Each name, attribute or parameter with the number of what it is given."""
        self.grown: list[tuple[str, int]] = []
        """Lists and tables that a loop adds to, with the number of what it goes through."""
        self.returns: list[int] = []
        self._read()
        if "exec" in self.names:  # what it executes is not followed: any module of the run's own
            self.imports |= own.keys()
        self.starts = [number for number, _ in self.texts]
        self.written = own
        self.own = {stem: own[stem] for stem in sorted(self.imports) if stem in own}
        self.classes = {
            *self.classes,
            *(name for module in self.own.values() for name in module.classes),
        }
        self.classes |= {
            name for name, original in self.renamed.items() if original in self.classes
        }
        self.objects = {
            name
            for name, n in (self.assigned if self.classes else ())
            if n >= 0 and not self.classes.isdisjoint(self.names[n : self.ends[n]])
        }
        self.own_functions = {
            *self.functions,
            *(name for module in self.own.values() for name in module.functions),
        }
        self.padded = any(
            _PADDED.match(text[:80]) or text.endswith(prefixes) for _, text in self.texts
        ) or any(m.padded for m in self.own.values())
        self.options: dict[str, Size | None] = {"argv": None}
        for call in self.calls.values():
            self._given(call)
        place_marks = [
            number
            for number, text in self.texts
            if len(text) < 400 and ("_" in text or "." in text) and outputs.search(text)
        ]
        self.loads = [call.number for call in self.calls.values() if self._loads_model(call)]
        self.places = self._reached(
            place_marks, {name for m in self.own.values() for name in m.places}
        )
        makers = {
            n
            for m in self.own.values()
            for n, found in m.functions.items()
            if any("loads_model" in p.facts for p in found)
        }
        if self.loads:
            makers |= {
                n
                for number, n in self._functions()
                if tree.holds(self.loads, number, self.ends[number])
            }
        self.models = self._reached(self.loads, makers) - makers
        for call in self.calls.values():
            function = call.node.func
            if (
                call.name in ("load_state_dict", "eval")
                and isinstance(function, ast.Attribute)
                and isinstance(function.value, ast.Name)
            ):
                self.models.add(function.value.id)
        self.forwards = [
            call.number for call in self.calls.values() if self._is_forward(call, False)
        ]
        """Calls that apply a model wherever they stand."""
        named = (
            [n for n, name in enumerate(self.names) if name in self.places] if self.places else []
        )
        self.output_marks = sorted({*place_marks, *named})
        self.sizes: dict[str, Size] = {
            name: size for m in self.own.values() for name, size in m.sizes.items()
        }
        self.limits: dict[str, Size] = {}
        for name, number in self.assigned:
            self.sizes[name] = self.size(number)
            limit = self._limit(number)
            if limit is not None:
                self.limits[name] = limit
        for name, number in self.grown:
            self.sizes[name] = largest((self.sizes.get(name, 1), self.size(number)))
        for number, name in self._functions():
            self._size_of_function(name, number, 0)

    @cached_property
    def _users(self) -> dict[str, set[str]]:
        """By name, the names that are given something that holds it."""
        users: dict[str, set[str]] = {}
        for name, number in self.assigned:
            number = number if number >= 0 else ~number
            for part in {*self.names[number : self.ends[number]]}:
                if part:
                    users.setdefault(part, set()).add(name)
        return users

    def _read(self) -> None:
        """Sort the nodes by what they are."""
        loops: list[tuple[int, int]] = []
        for number in self.flat.others:
            node = self.nodes[number]
            kind = type(node)
            if kind not in _TOLD:
                continue
            while loops and number >= loops[-1][0]:
                loops.pop()
            self.told.append(number)
            if isinstance(node, ast.Call):
                name, base = last_name(node), first_name(node.func)
                self.calls[number] = Called(
                    number, node, name, base, self.ends[number + 1], self.ends[number]
                )
                if loops and name in _GROWS:
                    self.grown += ((base, iterable) for _, iterable in loops[-MAX_LOOPS:])
            elif isinstance(node, ast.Assign):
                *targets, value = self.flat.children(number)
                for target in targets:
                    self._assign(target, value)
                    if loops and isinstance(self.nodes[target], ast.Subscript):
                        self.grown += (
                            (first_name(self.nodes[target]), iterable)
                            for _, iterable in loops[-MAX_LOOPS:]
                        )
            elif isinstance(node, _GIVEN) and node.value is not None:
                parts = self.flat.children(number)
                self._assign(parts[0], parts[-1])
            elif isinstance(node, _LOOPS):
                target, iterable, *_ = self.flat.children(number)
                self.assigned += ((name, ~iterable) for name in _stored(self.nodes[target]))
                if kind is not ast.comprehension:
                    loops.append((self.ends[number], iterable))
            elif isinstance(node, ast.withitem) and node.optional_vars is not None:
                value, target = self.flat.children(number)
                self._assign(target, value)
            elif isinstance(node, FUNCTIONS):
                self.functions[node.name] = node
            elif kind is ast.ClassDef:
                self.classes.add(node.name)  # type: ignore[attr-defined]
            elif kind is ast.While:
                loops.append((self.ends[number], number + 1))
            elif isinstance(node, ast.Return) and node.value is not None:
                self.returns.append(number + 1)
            elif isinstance(node, _IMPORTS):
                for alias in node.names:
                    origin = (getattr(node, "module", None) or alias.name).rsplit(".", 1)[-1]
                    self.imports |= {origin, alias.name.rsplit(".", 1)[-1]}
                    if alias.asname and isinstance(node, ast.ImportFrom):
                        self.renamed[alias.asname] = alias.name
                    self.origins[(alias.asname or alias.name).split(".", 1)[0]] = origin

    def _assign(self, target: int, value: int) -> None:
        left, right = (
            [*self.flat.children(n)] if isinstance(self.nodes[n], ROWS) else []
            for n in (target, value)
        )
        for one, given in (
            zip(left, right, strict=True) if left and len(left) == len(right) else [(target, value)]
        ):
            self.assigned += ((name, given) for name in _stored(self.nodes[one]))

    def _given(self, call: Called) -> None:
        """What a call gives to parameters, to lists and to options of the command line."""
        node, name = call.node, call.name
        function = self.functions.get(name)
        if function is None and isinstance(node.func, ast.Name) and name[:1].isupper():
            function = self.functions.get("__init__")
        if function is None and name not in _GROWS and name not in POOLS and name != "add_argument":
            return
        _, *given = self.flat.children(call.number)
        arguments, keywords = given[: len(node.args)], given[len(node.args) :]
        if function is not None:
            known = [
                a.arg
                for a in (*function.args.posonlyargs, *function.args.args)
                if a.arg not in ("self", "cls")
            ]
            self.assigned += zip(known, arguments, strict=False)
            known += (a.arg for a in function.args.kwonlyargs)
            self.assigned += (
                (k.arg, n + 1)
                for k, n in zip(node.keywords, keywords, strict=True)
                if k.arg in known
            )
        elif name in _GROWS and isinstance(node.func, ast.Attribute) and arguments:
            self.assigned.append((call.base, arguments[0]))
        elif name in POOLS and len(arguments) > 1 and isinstance(node.args[0], ast.Name):
            function = self.functions.get(node.args[0].id)
            if function is not None and function.args.args:
                self.assigned.append((function.args.args[0].arg, ~arguments[1]))
        elif name == "add_argument":
            flags = [
                str(a.value).lstrip("-").replace("-", "_").lower()
                for a in node.args
                if isinstance(a, ast.Constant)
            ]
            default = next(
                (n + 1 for k, n in zip(node.keywords, keywords, strict=True) if k.arg == "default"),
                None,
            )
            value = None if default is None else getattr(self.nodes[default], "value", None)
            for flag in flags:
                self.options[flag] = (
                    flags[-1] if flag != flags[-1] else value if type(value) is int else None
                )
                if default is not None:
                    self.assigned.append((flag, default))

    def _functions(self) -> Iterator[tuple[int, str]]:
        return ((n, node.name) for n in self.told if isinstance(node := self.nodes[n], FUNCTIONS))

    def _reached(self, marked: list[int], known: set[str]) -> set[str]:
        """Names given something that holds one of these nodes, or a name that is known, or one that
        was so reached."""
        found = set(known)
        for name, number in self.assigned if marked else ():
            number = number if number >= 0 else ~number
            if self.flat.holds(marked, number, self.ends[number]):
                found.add(name)
        waiting = list(found)
        while waiting:
            fresh = self._users.get(waiting.pop(), set()) - found
            found |= fresh
            waiting += fresh
        return found

    def text(self, start: int, end: int) -> str:
        """The string constants of these nodes in one text."""
        found = self.texts[bisect_left(self.starts, start) : bisect_left(self.starts, end)]
        return " ".join(text[:300] for _, text in found[:20])

    def size(self, number: int, depth: int = 0) -> Size:
        """How many cases an iterable stands for; 1 for what is no set of cases, or one of it."""
        if depth > 8 or number < 0:
            return 1
        node = self.nodes[number]
        if type(node) not in _SIZED:
            return 1
        if isinstance(node, ast.Name):
            return self.sizes.get(node.id, 1)
        if isinstance(node, ast.Call):
            return self._size_of_call(self.calls[number], depth)
        if isinstance(node, ast.Attribute):
            own = self.sizes.get(node.attr, 1)
            return own if own != 1 or node.attr in SHAPES else self.size(number + 1, depth + 1)
        if isinstance(node, _COLLECTIONS):
            cases = [e for e in node.elts if isinstance(e, ast.Constant) and self._is_case(e.value)]
            return len(node.elts) if node.elts and len(cases) == len(node.elts) else 1
        if isinstance(node, ast.Subscript):
            return self._size_of_part(node, number, depth)
        if isinstance(node, COMPREHENSIONS):
            first = next(
                c
                for c in self.flat.children(number)
                if isinstance(self.nodes[c], ast.comprehension)
            )
            return self.size(self.flat.children(first)[1], depth + 1)
        if isinstance(node, _SIDES):
            return largest(self.size(side, depth + 1) for side in self.flat.children(number))
        return 1

    def _size_of_call(self, call: Called, depth: int) -> Size:
        node, number, name, end = call.node, call.number, call.name, call.end
        function, *arguments = self.flat.children(number)
        if name in LISTING:
            text = self.text(number, end)
            return 1 if _NO_CASES.search(text) and "*/" not in text else ALL
        if name in _KEEPS or (name[:1].isupper() and isinstance(node.func, ast.Name)):
            return largest(self.size(argument, depth + 1) for argument in arguments)
        if name == "islice" and len(arguments) > 1:
            return smaller(self.size(arguments[0], depth + 1), self._limit(arguments[-1]))
        if name in ("head", "sample") and isinstance(node.func, ast.Attribute):
            owner = self.size(
                arguments[0] if name == "sample" and len(arguments) > 1 else function + 1, depth + 1
            )
            return smaller(owner, self._limit(arguments[-1]) if arguments else 5)
        if name == "range":
            if len(arguments) == 1 and last_name(node.args[0]) == "len":
                return self.size(self.flat.children(arguments[0])[-1], depth + 1)
            ends = [getattr(a, "value", None) for a in node.args[:2]]
            return (
                max(1, ends[-1] - (ends[0] if len(ends) > 1 else 0))
                if self.padded and ends and all(type(e) is int for e in ends)
                else 1
            )  # type: ignore[operator]
        if name in LOADS or name in ("DictReader", "reader"):
            indexed = _INDEX.search(self.text(number, end)) is not None
            return (
                ALL
                if indexed
                else largest(self.size(argument, depth + 1) for argument in arguments)
            )
        if self.sizes.get(name, 1) != 1:
            return self.sizes[name]
        if name in self.own_functions:
            return largest(self.size(argument, depth + 1) for argument in arguments)
        return self.size(function + 1, depth + 1) if isinstance(node.func, ast.Attribute) else 1

    def _size_of_function(self, name: str, number: int, depth: int) -> None:
        returned = self.returns[
            bisect_left(self.returns, number) : bisect_left(self.returns, self.ends[number])
        ]
        self.sizes[name] = largest(self.size(value, depth + 1) for value in returned[:MAX_LOOPS])

    def _size_of_part(self, node: ast.Subscript, number: int, depth: int) -> Size:
        whole = self.size(number + 1, depth + 1)
        part = self.ends[number + 1]
        if isinstance(node.slice, ast.Slice):
            bounds = self.flat.children(part)
            if (
                isinstance(node.slice.step, ast.Constant)
                and type(node.slice.step.value) is int
                and node.slice.step.value > 1
            ):
                return smaller(whole, 3)
            if node.slice.upper is None:
                return whole
            lower = node.slice.lower.value if isinstance(node.slice.lower, ast.Constant) else 0
            upper = self._limit(bounds[0 if node.slice.lower is None else 1])
            return smaller(
                whole,
                max(1, upper - lower) if isinstance(upper, int) and type(lower) is int else upper,
            )
        column = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
        return whole if column and not self._is_case(node.slice.value) else 1  # type: ignore[attr-defined]

    def _is_case(self, value: object) -> bool:
        return (self.padded and type(value) is int) or (
            isinstance(value, str) and _CASE.fullmatch(value) is not None
        )

    def _limit(self, number: int) -> Size | None:
        """The end of a slice: a number, the name of an option, None where it cannot be told."""
        if number < 0:
            return None
        node = self.nodes[number]
        if isinstance(node, ast.Constant):
            return node.value if type(node.value) is int and node.value > 0 else None
        if isinstance(node, ast.Name) and node.id in self.limits:
            return self.limits[node.id]
        if self.ends[number] - number > 12:
            return None
        names = self.names[number : self.ends[number]]
        if "environ" in names or "getenv" in names:
            text = self.text(number, self.ends[number]).split(" ")[0].lower()
            return self.options.setdefault(text, None) or text
        return next((name for name in names if name in self.options), None)

    def _loads_model(self, call: Called) -> bool:
        name = call.name
        if name in _LOADERS or (
            name == "load" and call.base in ("torch", "joblib", "jit", "keras", "pickle")
        ):
            return True
        if name not in LOADS and not name.startswith("load"):
            return False
        return WEIGHTS.search(self.text(call.start, call.end)) is not None

    def _is_forward(self, call: Called, quiet: bool) -> bool:
        node, name, base = call.node, call.name, call.base
        if isinstance(node.func, ast.Name):
            if name in self.models or (name in _FORWARD and name != "generate" and bool(node.args)):
                return True
            if (
                not node.args
                or name in self.own_functions
                or name in _BUILTINS
                or name in self.origins
            ):
                return False
            return not name[:1].isupper() and (
                quiet or _MODEL_NAME.fullmatch(name.lower()) is not None
            )
        if isinstance(node.func, ast.Call | ast.Subscript):
            loaded = self.flat.holds(self.loads, call.number + 1, call.start)
            return bool(node.args) and (quiet or base in self.models or loaded)
        if base in _LIBRARIES:
            return False
        if name in _FORWARD:
            return True
        return (
            base in self.models
            and bool(node.args)
            and name not in _OF_MODELS
            and (quiet or name in ("net", "model", "run"))
        )

    def is_output(self, start: int, end: int) -> bool:
        """Whether these nodes name a place of outputs, or what was read from one."""
        return self.flat.holds(self.output_marks, start, end)


def _stored(target: ast.AST) -> Iterator[str]:
    """The names and attributes that an assignment to this target sets."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Attribute):
        yield target.attr
    elif isinstance(target, ast.Subscript):
        yield first_name(target)
    elif isinstance(target, ROWS):
        yield from (name for part in target.elts for name in _stored(part))
    elif isinstance(target, ast.Starred):
        yield from _stored(target.value)
