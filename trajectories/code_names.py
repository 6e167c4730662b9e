"""What is known of names in running code: which are outputs, which are models, and how many cases each stands for."""

from __future__ import annotations

import ast
import re

from .code_evaluation import Scope, Values
from .code_modules import Library, Module
from .code_records import Record
from .code_values import PLACE, UNKNOWN
from .syntax_tree import COMPREHENSIONS, children, descendants

ALL = 1_000_000
"""The size of a loop over everything that a folder or an index holds."""

OUTPUT_PATTERN = (
    r"agents?_outputs?\b|\blesion\.nii|\borgan\.nii|\bdseg\.nii|\bsct\.nii|\bprediction\.json|\banswer\.json|\breport\.txt"
    r"|\benhanced\.npy|\bpredictions\.csv|agents_decision\.csv"
)
"""Where the benchmark wants its outputs and how they are called (benchmark.md, section 4)."""
_INDEX = re.compile(
    r"manifest|index|cases\b|studies|questions\b|patients\b|_list\b|/test\b|\btest\.(?:csv|json)"
    r"|/public/[^/\s]{1,80}\.(?:csv|tsv|jsonl?|xlsx|parquet)$", re.I)  # fmt: skip
"""Files that list cases; a table that lies beside the cases' folders, not in one of them, is such a list."""
_CASE_ID = re.compile(r"[A-Za-z]{0,20}(?:[_-][A-Za-z]{0,2})?\d{1,10}")
_NUMBERED = re.compile(r"\d{2}")
"""A case's number: a name with one digit may be a column's (t1, v2)."""
_NOT_CASES = re.compile(r"models?\b|zoo|weights|checkpoint|\.(?:pth?|md|py|ckpt|safetensors|onnx|bin|log|ya?ml)$", re.I)
LISTING = {"glob", "iglob", "rglob", "listdir", "iterdir", "scandir", "walk"}
_SHAPES = {"shape", "dtype", "size", "ndim", "affine", "header", "T", "spacing", "columns"}
_PASS_THROUGH = {
    "sorted",
    "list",
    "tuple",
    "set",
    "reversed",
    "enumerate",
    "tqdm",
    "iter",
    "zip",
    "map",
    "filter",
    "track",
    "trange",
    "groupby",
}
LOADS = {
    "load", "open", "imread", "read_csv", "read_json", "loadtxt", "read_text", "ReadImage", "read_parquet", "read_table",
    "read_h5ad", "read_10x_mtx", "read_excel", "loads", "dcmread", "genfromtxt", "load_dataset", "fromfile", "memmap", "read_bytes",
}  # fmt: skip


class Names(Values):
    """Names at one point of the code. Sizes: n cases, ALL, 1 for what is no set of cases, None when unreadable."""

    def __init__(
        self,
        outputs: re.Pattern[str],
        arguments: int | None,
        module: Module,
        library: Library,
        scope: Scope,
        shared: Names | None = None,
    ) -> None:
        super().__init__(module, library, scope)
        self.outputs, self.arguments = outputs, arguments
        self.sizes: dict[str, int | None] = dict(shared.sizes) if shared else {}
        self.tainted: set[str] = set(shared.tainted) if shared else set()
        self.models: set[str] = set(shared.models) if shared else set()
        self.files: dict[str, str] = dict(shared.files) if shared else {}
        self.options: set[str] = set(shared.options) if shared else set()
        """Attributes that hold a place of outputs, whatever object they are of."""
        self.attribute_sizes: dict[str, int] = shared.attribute_sizes if shared else {}
        """How many cases an attribute stands for, whatever object it is of."""
        self.given: set[str] = set(shared.given) if shared else set()
        """Names that hold one value of the command line or the environment (a limit)."""
        self.numbers: dict[str, int] = dict(shared.numbers) if shared else {}
        """Names that hold a literal number (N = 3)."""
        self.of_case: set[str] = set(shared.of_case) if shared else set()
        """Names that stand for one case, or for something of it: a loop's variable, a path made with it."""
        self.unlimited: set[str] = set(shared.unlimited) if shared else set()
        """Names that hold None, 0 or '': as the end of a slice they cut nothing."""
        self.objects: dict[str, tuple[Module, str]] = dict(shared.objects) if shared else {}
        """Names that hold an object of a class of the run's own that can be called, with that class."""
        self.attribute_objects: dict[str, tuple[Module, str]] = shared.attribute_objects if shared else {}
        """The same of attributes, whatever object they are of."""
        self.namespaces: set[str] = set(shared.namespaces) if shared else {"args", "opt", "opts", "a"}
        self.returns: dict[int, int | None] = shared.returns if shared else {}
        self.model_makers: set[int] = shared.model_makers if shared else set()
        """Functions of the run's own that return a loaded model."""
        self.printers: dict[int, bool] = shared.printers if shared else {}
        """Functions of the run's own, by whether they print what they are given."""
        self.measured: dict[str, frozenset[str]] = dict(shared.measured) if shared else {}
        """Names that hold a measurement, with the facts that printing it shows (code_measures)."""

    def is_output(self, node: ast.AST) -> bool:
        """Whether the expression names, or was loaded from, the place of the outputs."""
        rest = [node]
        while rest:
            child = rest.pop()
            if isinstance(child, ast.Name) and child.id in self.tainted:
                return True
            if isinstance(child, ast.Attribute | ast.Subscript | ast.Call):
                place = self.is_place(child)
                if place:
                    return True
                if place is False:
                    continue
            if (
                isinstance(child, ast.Constant)
                and isinstance(child.value, str)
                and len(child.value) < 400
                and self.outputs.search(child.value)
            ):
                return True
            rest += children(child)
        return False

    def is_place(self, node: ast.Attribute | ast.Subscript | ast.Call) -> bool | None:
        """Whether a named value of an object or a table is a place of outputs; None for what is no such value."""
        if isinstance(node, ast.Attribute):
            owner, key = self.value_of(node.value), node.attr
            known = owner.get(key, UNKNOWN) if isinstance(owner, Record) else self.value_of(node)
            if isinstance(known, str):
                return bool(self.outputs.search(known)) or None
            if isinstance(owner, Record) and key in owner:
                return known is PLACE
            return (key in self.options or (self.is_module(node.value) and key in self.tainted)) or None
        looked_up = isinstance(node, ast.Subscript) or (last_name(node) == "get" and bool(node.args))
        if not looked_up:
            return None
        whole = node.value if isinstance(node, ast.Subscript) else getattr(node.func, "value", None)
        table = self.value_of(whole)
        if not isinstance(table, dict):
            return None
        index = self.value_of(node.slice if isinstance(node, ast.Subscript) else node.args[0])
        held = table.get(index) if isinstance(index, str) and index in table else UNKNOWN
        return bool(self.outputs.search(held)) if isinstance(held, str) else True if held is PLACE else None

    def is_module(self, node: ast.AST) -> bool:
        """Whether a name stands for a module of the run's own."""
        return isinstance(node, ast.Name) and self.module.aliases.get(node.id) in self.library.modules

    def held(self, node: ast.AST, depth: int = 0) -> object:
        value = super().held(node, depth)
        return PLACE if value is UNKNOWN and self.is_output(node) else value

    def callable_class(self, node: ast.AST) -> tuple[Module, str] | None:
        """The class of the run's own, with its module, of whose objects this is one that can be called like a function."""
        if isinstance(node, ast.Name):
            return self.objects.get(node.id)
        if isinstance(node, ast.Attribute):
            return self.attribute_objects.get(node.attr)
        if not isinstance(node, ast.Call):
            return None
        name = last_name(node)
        if name in self.module.callables:
            return self.module, name
        name = self.module.renamed.get(name, name)
        owner = self.library.modules.get(self.module.aliases.get(last_name(node), ""))
        if owner is None and isinstance(node.func, ast.Attribute):
            base = last_name(node.func.value)
            origins = (self.module.renamed.get(base, base), self.module.aliases.get(base, base))
            owner = next((self.library.modules[o] for o in origins if o in self.library.modules), None)
        if owner is None and "*" in self.module.aliases:
            owner = self.library.modules.get(self.module.aliases["*"])
        return (owner, name) if owner is not None and name in owner.callables else None

    def own(self, node: ast.Call) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The function of the run's own that a call enters, None for any other."""
        name = last_name(node.func)
        found = self.module.functions.get(name)
        return found if found is not None else self.library.functions.get(name, (None, None))[0]

    def is_model(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if name in ("from_pretrained", "load_model", "InferenceSession", "pipeline", "load_net", "create_model"):
                return True
            if name in ("eval", "to", "cuda", "cpu", "half", "float") and isinstance(node.func, ast.Attribute):
                return self.is_model(node.func.value) or name == "eval"
            if id(self.own(node)) in self.model_makers and first_name(node.func) not in ("torch", "np", "nib"):
                return True
            return name == "load" and first_name(node.func) in ("joblib", "jit", "pickle")
        if isinstance(node, ast.Dict | ast.DictComp | ast.ListComp):
            parts = (
                node.values
                if isinstance(node, ast.Dict)
                else [node.value if isinstance(node, ast.DictComp) else node.elt]
            )
            return bool(parts) and all(map(self.is_model, parts))
        held = node.value if isinstance(node, ast.Subscript) else node  # models kept in a table
        return isinstance(held, ast.Name) and held.id in self.models

    def size_of(self, node: ast.AST | None, depth: int = 0) -> int | None:
        """How many cases an iterable stands for: n, ALL, 1 for what is no set of cases, None when it cannot be read."""
        if node is None or depth > 8:
            return None
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            if not node.elts:
                return None
            cases = [e for e in node.elts if isinstance(e, ast.Constant) and is_case(e.value)]
            return len(node.elts) if len(cases) == len(node.elts) else 1
        if isinstance(node, ast.Name):
            return self.sizes.get(node.id, 1)
        if isinstance(node, ast.Subscript):
            return self.size_of_slice(node, depth)
        if isinstance(node, COMPREHENSIONS):
            return self.size_of(node.generators[0].iter, depth + 1)
        if isinstance(node, (ast.BoolOp, ast.IfExp)):
            parts = self.reached(node)
            if len(parts) == 1:
                return self.size_of(parts[0], depth + 1)
            known = [s for s in (self.size_of(p, depth + 1) for p in parts) if s is not None]
            return self.arguments if self.is_argument(node) and self.arguments else max(known, default=None)
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add):
            return self.size_of(node.left, depth + 1)
        if isinstance(node, ast.BinOp):
            sides = [self.size_of(side, depth + 1) for side in (node.left, node.right)]
            # Lists of cases add up; what is no set of cases (text, numbers) adds nothing.
            return None if None in sides else max(1, min(ALL, sum(s for s in sides if s is not None and s > 1)))
        if isinstance(node, ast.Attribute):
            if self.is_argument(node):
                held = size_of_value(self.value_of(node))
                return self.arguments if held is None else held
            owner = self.value_of(node.value)
            if isinstance(owner, Record) and isinstance(owner.get(node.attr), list):
                return size_of_value(owner[node.attr])
            if node.attr in self.attribute_sizes:
                return self.attribute_sizes[node.attr]
            if self.is_module(node.value):
                return self.sizes.get(node.attr, 1)
            column = isinstance(node.value, ast.Name) and node.attr not in _SHAPES
            return self.size_of(node.value, depth + 1) if column else 1
        if isinstance(node, ast.Call):
            return self.size_of_call(node, depth)
        return 1

    def size_of_slice(self, node: ast.Subscript, depth: int) -> int | None:
        whole = self.size_of(node.value, depth + 1)
        if self.is_argument(node.value):
            known = size_of_value(self.value_of(node))
            return self.arguments if known is None else known
        if isinstance(node.slice, ast.Tuple) and any(
            isinstance(e, ast.Slice) and e.lower is None and e.upper is None for e in node.slice.elts[:1]
        ):
            return whole
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            # A column or a list by its name stands for all; what an id is looked up by stands for its case.
            return 1 if is_case(node.slice.value) and _NUMBERED.search(node.slice.value) else whole
        if not isinstance(node.slice, ast.Slice):
            return 1
        if node.slice.upper is not None and self.is_argument(node.slice.upper):
            limit = self.limit(node.slice.upper)
            return whole if limit is None else limit if whole is None else min(whole, limit)
        if node.slice.upper is not None and self.truth_of(node.slice.upper) is False:
            return whole
        if isinstance(node.slice.upper, ast.Name) and node.slice.upper.id in self.unlimited:
            return whole
        low, high, step = (self.number(e) for e in (node.slice.lower, node.slice.upper, node.slice.step))
        if whole is None or whole <= 1:
            return whole
        if node.slice.upper is None and step is None:
            return whole
        if high is not None and high > 0:
            return min(whole, max(1, high - (low or 0)))
        if step is not None and step > 1:
            return max(2, whole // step) if whole < ALL else 3
        return None if node.slice.upper is not None and high is None else whole

    def size_of_call(self, node: ast.Call, depth: int) -> int | None:
        name = last_name(node.func)
        if name in LISTING:
            text = " ".join(self.texts(node))
            if _NOT_CASES.search(text) and not re.search(r"\*/|image|ct\.nii|\.npy|\.png", text):
                return 1
            return ALL
        if name in _PASS_THROUGH and node.args:
            return max((s for s in (self.size_of(a, depth + 1) for a in node.args) if s is not None), default=None)
        if name in ("islice", "head", "nsmallest") and (node.args or node.keywords):
            owner = (
                node.args[0] if name == "islice" else node.func.value if isinstance(node.func, ast.Attribute) else None
            )
            whole, last = self.size_of(owner, depth + 1), [*node.args, *(k.value for k in node.keywords)][-1]
            limit = self.limit(last) if self.is_argument(last) else self.number(last)
            return whole if not limit else min(whole or ALL, limit) if (whole or ALL) > 1 else whole
        if name in ("join", "dumps") and node.args:
            return self.size_of(node.args[0], depth + 1)
        if name == "range":
            numbers = [self.number(a) for a in node.args]
            if len(node.args) == 1 and numbers[0] is None:
                inner = node.args[0]
                if isinstance(inner, ast.Call) and last_name(inner.func) == "len" and inner.args:
                    return self.size_of(inner.args[0], depth + 1)
                return 1
            if any(n is None for n in numbers) or not numbers:
                return 1
            values = [n for n in numbers if n is not None]
            return max(1, len(range(*values)) if len(values) < 3 or values[2] else 1)
        if name in ("sample", "choice", "choices") and len(node.args) > 1:
            return self.number(node.args[1]) or 1
        if name in LOADS or name in ("DictReader", "reader"):
            # An index file stands for all that it lists; a file of one case for that case.
            if mentions(node, self.of_case):
                return 1
            return ALL if any(_INDEX.search(t) for t in self.texts(node)) else 1
        if name in ("items", "keys", "values", "tolist", "copy", "unique", "split") and isinstance(
            node.func, ast.Attribute
        ):
            return self.size_of(node.func.value, depth + 1)
        if (
            name
            in ("stack", "array", "concatenate", "asarray", "from_numpy", "tensor", "cat", "DataLoader", "DataFrame")
            and node.args
        ):
            return self.size_of(node.args[0], depth + 1)
        if id(known := self.own(node)) in self.returns:
            return self.returns[id(known)]
        if name[:1].isupper() and isinstance(node.func, ast.Name):
            # Dataset(files) stands for its files.
            return max((s for s in (self.size_of(a, depth + 1) for a in node.args) if s is not None), default=1)
        if name == "parse_args":
            return None
        return self.size_of(node.func.value, depth + 1) if isinstance(node.func, ast.Attribute) else 1

    def number(self, node: ast.AST | None) -> int | None:
        """A literal number, or the one that a name holds."""
        if isinstance(node, ast.Name) and node.id in self.numbers:
            return self.numbers[node.id]
        known = self.value_of(node)
        return known if isinstance(known, int) and not isinstance(known, bool) and known > 0 else integer(node)

    def limit(self, node: ast.AST) -> int | None:
        """The number that an argument holds: as given, else its default; None when it limits nothing."""
        return self.number(node) or self.arguments or None

    def reached(self, node: ast.BoolOp | ast.IfExp) -> list[ast.expr]:
        """The operands that may give the value of `a or b`, `a and b`, `a if c else b`."""
        if isinstance(node, ast.IfExp):
            taken = self.truth_of(node.test)
            return [node.body, node.orelse] if taken is None else [node.body if taken else node.orelse]
        found: list[ast.expr] = []
        for side in node.values:
            held = self.truth_of(side)
            if held is None or held is isinstance(node.op, ast.Or) or side is node.values[-1]:
                found.append(side)
            if held is isinstance(node.op, ast.Or):
                break
        return found

    def is_argument(self, node: ast.AST) -> bool:
        """Whether the expression holds command line arguments."""
        return any(
            (isinstance(n, ast.Attribute) and (n.attr in ("argv", "environ") or (isinstance(n.value, ast.Name) and n.value.id in self.namespaces)))
            or (isinstance(n, ast.Name) and (n.id in ("argv", "getenv") or n.id in self.given))
            for n in descendants(node)
        )  # fmt: skip

    def texts(self, node: ast.AST) -> list[str]:
        """String constants in an expression, and those that its names hold."""
        found = [n.value[:300] for n in descendants(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        return [
            *found,
            *(self.files[n.id] for n in descendants(node) if isinstance(n, ast.Name) and n.id in self.files),
        ]


def size_of_value(value: object) -> int | None:
    """Cases that a known value names: each of a list of ids, one for an id; None when it does not say."""
    if isinstance(value, list):
        return len(value) if value and all(map(is_case, value)) else None
    return 1 if is_case(value) or value in (None, False, "") else None


def mentions(node: ast.AST, names: set[str]) -> bool:
    return any(
        (isinstance(n, ast.Attribute) and n.attr in names)
        or (isinstance(n, ast.Name) and n.id in names and n.id != "sum")  # sum(p.numel() ...) counts parameters
        for n in descendants(node)
    )


def integer(node: ast.AST | None) -> int | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return node.value
    return None


def last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        return last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def first_name(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def dotted_name(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))


def is_case(value: object) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, str) and bool(_CASE_ID.fullmatch(value))
    )
