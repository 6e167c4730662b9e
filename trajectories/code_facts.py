"""What Python code does, read from its syntax tree: loads, forward passes, outputs, and over how many cases.

The reader follows what is executed: a function counts where it is called, a module where it is run or imported. Loop
sizes are followed through assignments as far as they are literal, so that "one case", "three cases" and "every case of
the folder" can be told apart without running anything.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .code_parts import parse

ALL = 1_000_000
"""The size of a loop over everything that a folder or an index holds."""

OUTPUT_PATTERN = (
    r"agents?_outputs?\b|\blesion\.nii|\borgan\.nii|\bdseg\.nii|\bsct\.nii|\bprediction\.json|\banswer\.json|\breport\.txt"
    r"|\benhanced\.npy|\bpredictions\.csv|agents_decision\.csv"
)
"""Where the benchmark wants its outputs and how they are called (benchmark.md, section 4)."""

_CASE_ID = re.compile(r"[A-Za-z]{0,20}[_-]?\d{1,10}")
_NOT_CASES = re.compile(r"models?\b|zoo|weights|checkpoint|\.(?:pth?|md|py|ckpt|safetensors|onnx|bin|log|ya?ml)$", re.I)
_INDEX = re.compile(r"manifest|index|cases\b|studies|questions\b|patients\b|_list\b|/test\b|\btest\.(?:csv|json)", re.I)
_DOCUMENT = re.compile(r"(?:\.(?:md|rst|txt|py|ya?ml|toml|cfg)|README\w*|config\.json)$", re.I)
_WEIGHTS = re.compile(r"\.(?:pth?|ckpt|safetensors|onnx|h5|keras|pkl|joblib|gguf|tflite)\b|state_dict", re.I)
_MODEL_NAME = re.compile(
    r"(?:model|net|unet|clf|vlm|llm|pipe|pipeline|predictor|detector|segmenter|generator|classifier)\d?"
)
_CONCERN = re.compile(
    r"missing|mismatch|complete|valid|bad\b|problem|error|ok\b|schema|expected|dup|count|rows|total|present", re.I
)

_LISTING = {"glob", "iglob", "rglob", "listdir", "iterdir", "scandir", "walk"}
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
}
_MODEL_LOADERS = {
    "from_pretrained", "load_state_dict", "load_model", "InferenceSession", "pipeline", "load_checkpoint", "from_checkpoint",
    "load_from_checkpoint", "create_model", "load_net", "load_weights",
}  # fmt: skip
_FORWARD_CALLS = {
    "predict", "predict_proba", "predict_one", "generate", "infer", "inference", "forward", "sliding_window_inference",
    "run_inference", "decision_function", "transcribe", "apply_model",
}  # fmt: skip
_NOT_FORWARD = {
    "eval", "to", "cuda", "cpu", "load_state_dict", "parameters", "named_parameters", "state_dict", "train", "modules",
    "children", "half", "float", "named_modules", "requires_grad_", "size", "items", "keys", "values", "get", "buffers",
    "compile", "summary", "fit", "save", "save_pretrained", "zero_grad", "encode_text", "get_inputs", "get_outputs", "update",
}  # fmt: skip
_LOADS = {
    "load", "open", "imread", "read_csv", "read_json", "loadtxt", "read_text", "ReadImage", "read_parquet", "read_table",
    "read_h5ad", "read_10x_mtx", "read_excel", "loads", "dcmread", "genfromtxt", "load_dataset", "fromfile", "memmap", "read_bytes",
}  # fmt: skip
_SAVES = {
    "save", "savez", "savetxt", "dump", "to_csv", "to_parquet", "to_json", "write_text", "imwrite", "imsave", "WriteImage",
    "write", "to_filename", "tofile", "savez_compressed", "write_h5ad", "write_bytes", "to_excel", "savefig", "writerow", "writerows",
}  # fmt: skip
_LOOKS = {"exists", "isfile", "isdir", "is_file", "is_dir", "stat", "getsize", *_LISTING}
_STATISTICS = {
    "min", "max", "mean", "std", "unique", "bincount", "value_counts", "sum", "percentile", "Counter", "describe", "nunique",
    "histogram", "quantile", "isnan", "isfinite", "count_nonzero", "median", "head", "allclose", "array_equal", "crosstab", "corrcoef",
}  # fmt: skip
_CHECK_CALLS = {"cuda.is_available", "device_count", "import_module", "cpu_count", "find_spec", "get_device_name",
                "python_version", "which", "mem_get_info", "get_device_properties"}  # fmt: skip
_DOWNLOADS = {"hf_hub_download", "snapshot_download", "urlretrieve", "download_url_to_file", "download"}
_MADE_UP = {"zeros", "randn", "rand", "ones", "randint"}
_QUIET = ("no_grad", "inference_mode")
_BUILTINS = frozenset(dir(builtins))
_RESTORERS = re.compile(
    r"denoise_\w+|gaussian_filter|median_filter|bm3d\w*|unsharp_mask|wiener|threshold_otsu|watershed|fastNlMeans\w*|slic$"
)


@dataclass
class Facts:
    """Facts seen, each with the source line it was first seen on, and how many cases the work was done for."""

    seen: dict[str, str] = field(default_factory=dict)
    scope: int = 0
    """Cases for which a model runs or an output is written: 0 none, n, or ALL."""
    loaded: int = 0
    """Cases whose inputs are loaded: 0 none, n, or ALL."""
    open_ended: bool = False
    """Whether that work sits in a loop whose size could not be read (arguments, a file)."""
    weights: set[str] = field(default_factory=set)
    """Names of the weight files mentioned by executed code."""

    def note(self, fact: str, quote: str) -> None:
        self.seen.setdefault(fact, quote)

    def merge(self, other: Facts) -> None:
        for fact, quote in other.seen.items():
            self.note(fact, quote)
        self.scope, self.loaded = max(self.scope, other.scope), max(self.loaded, other.loaded)
        self.open_ended |= other.open_ended
        self.weights |= other.weights


@dataclass(frozen=True)
class Library:
    """The functions and classes' methods that modules written earlier in the run define, by name."""

    functions: dict[str, tuple[ast.FunctionDef | ast.AsyncFunctionDef, Module]] = field(default_factory=dict)
    modules: dict[str, Module] = field(default_factory=dict)
    """Module by stem of its file name."""


@dataclass(frozen=True)
class Module:
    """Parsed source; `functions` by name, methods under their bare name."""

    tree: ast.Module
    lines: tuple[str, ...]
    functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef]
    aliases: dict[str, str]
    """Names bound by imports, with the stem of the module each comes from."""

    @staticmethod
    def of(source: str) -> Module | None:
        """The module of this source, None when it does not parse."""
        tree = parse(source)
        if tree is None:
            return None
        try:
            nodes = list(ast.walk(tree))
        except RecursionError:
            return None
        found = {n.name: n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
        aliases = {}
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    origin = (getattr(node, "module", None) or alias.name).rsplit(".", 1)[-1]
                    aliases[(alias.asname or alias.name).split(".", 1)[0]] = origin
        return Module(tree, tuple(source.split("\n")), found, aliases)


def python_facts(module: Module, library: Library, outputs: re.Pattern[str], arguments: int | None = None) -> Facts:
    """Facts of running this module. `arguments`: how many cases its command line names (None: not known)."""
    reader = _Reader(module, library, outputs, arguments)
    try:
        reader.block(module.tree.body, 1)
    except RecursionError:
        reader.facts.note("too_deep", "")
    return reader.facts


class _Reader:
    """One pass over executed statements, with what is known of names at that point."""

    def __init__(
        self, module: Module, library: Library, outputs: re.Pattern[str], arguments: int | None, depth: int = 0,
        shared: _Reader | None = None,
    ) -> None:  # fmt: skip
        self.module, self.library, self.outputs, self.arguments, self.depth = module, library, outputs, arguments, depth
        self.facts = Facts()
        self.sizes: dict[str, int | None] = dict(shared.sizes) if shared else {}
        self.tainted: set[str] = set(shared.tainted) if shared else set()
        self.models: set[str] = set(shared.models) if shared else set()
        self.files: dict[str, str] = dict(shared.files) if shared else {}
        self.params: set[str] = set()
        self.options: set[str] = set(shared.options) if shared else set()
        self.no_grad = 0
        self.memo: dict[tuple[str, bool], Facts] = shared.memo if shared else {}
        self.returns: dict[int, int | None] = shared.returns if shared else {}
        self.unknown_loops = 0
        self.imported: set[str] = set(shared.imported) if shared else set()
        self.foreign = {name for name, origin in module.aliases.items() if origin not in library.modules}

    # -- statements -------------------------------------------------------------------------------------------------

    def block(self, body: list[ast.stmt], size: int) -> None:
        for statement in body:
            self.walk(statement, size)

    def walk(self, node: ast.AST, size: int) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            return
        if isinstance(node, ast.For | ast.AsyncFor):
            self.walk(node.iter, size)
            inner = self.loop(node.target, node.iter, node.body, size)
            self.block(node.body, inner)
            self.leave(node.iter)
            self.block(node.orelse, size)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            inner = size
            for generator in node.generators:
                self.walk(generator.iter, size)
                inner = self.loop(generator.target, generator.iter, [node], inner)
                for condition in generator.ifs:
                    self.walk(condition, inner)
            for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                self.walk(part, inner)
        elif isinstance(node, ast.With | ast.AsyncWith):
            quiet = any(_last_name(item.context_expr) in _QUIET for item in node.items)
            for item in node.items:
                self.walk(item.context_expr, size)
                if isinstance(item.optional_vars, ast.Name) and self.is_output(item.context_expr):
                    self.tainted.add(item.optional_vars.id)
            self.no_grad += quiet
            self.block(node.body, size)
            self.no_grad -= quiet
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            self.assign(node, size)
        elif isinstance(node, ast.Call):
            self.call(node, size)
            for child in ast.iter_child_nodes(node):
                self.walk(child, size)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self.imports(node, size)
        elif isinstance(node, ast.Assert):
            self.facts.note("asserts", self.quote(node))
            self.walk(node.test, size)
        elif (
            isinstance(node, ast.Attribute)
            and node.attr in ("__version__", "version")
            and isinstance(node.value, ast.Name)
        ):
            self.facts.note("checks_environment", self.quote(node))
        else:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 300:
                self.constant(node, node.value)
            for child in ast.iter_child_nodes(node):
                self.walk(child, size)

    def constant(self, node: ast.AST, text: str) -> None:
        if _WEIGHTS.search(text) and "." in text and " " not in text:
            self.facts.weights.add(text.rsplit("/", 1)[-1])
        if _CONCERN.search(text):
            self.facts.note("names_concern", self.quote(node))

    def loop(self, target: ast.AST, iterable: ast.AST, body: Sequence[ast.AST], size: int) -> int:
        found = self.size_of(iterable)
        names = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
        if self.is_output(iterable):
            self.tainted |= names
        for name in names:
            self.sizes[name] = 1
        if found is None:
            self.unknown_loops += 1
            return size
        if (
            1 < found < ALL
            and isinstance(iterable, ast.Call)
            and _last_name(iterable.func) == "range"
            and not _formats_a_path(body, names)
        ):
            return size  # epochs, folds, flips: repetitions, not cases
        return max(size, found)

    def leave(self, iterable: ast.AST) -> None:
        if self.size_of(iterable) is None:
            self.unknown_loops -= 1

    def assign(self, node: ast.Assign | ast.AnnAssign | ast.NamedExpr, size: int) -> None:
        if node.value is None:
            return
        self.walk(node.value, size)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        value = node.value
        output, model, length = self.is_output(value), self.is_model(value), self.size_of(value)
        for name in names:
            self.sizes[name] = length
            (self.tainted.add if output else self.tainted.discard)(name)
            if model:
                self.models.add(name)
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                self.files[name] = value.value[:300]

    def imports(self, node: ast.Import | ast.ImportFrom, size: int) -> None:
        """Importing a module written in this run executes it."""
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        for name in names:
            stem = name.rsplit(".", 1)[-1]
            module = self.library.modules.get(stem)
            if module is None or stem in self.imported or self.depth > 4:
                continue
            self.imported.add(stem)
            inner = _Reader(module, self.library, self.outputs, self.arguments, self.depth + 1, self)
            inner.block([s for s in module.tree.body if not _is_main_guard(s)], size)
            self.tainted |= inner.tainted
            self.models |= inner.models
            self.sizes.update(inner.sizes)
            inner.facts.seen.pop("names_concern", None)
            self.facts.merge(inner.facts)

    # -- calls ------------------------------------------------------------------------------------------------------

    def call(self, node: ast.Call, size: int) -> None:
        name, dotted, base = _last_name(node.func), _dotted(node.func), _first_name(node.func)
        arguments = [*node.args, *(k.value for k in node.keywords)]
        output = any(self.is_output(a) for a in arguments) or (
            isinstance(node.func, ast.Attribute) and self.is_output(node.func.value)
        )
        known = self.module.functions.get(name) or None
        owner = self.module
        if (
            known is None
            and name in self.library.functions
            and (base == name or base in self.imported or self.imported)
        ):
            known, owner = self.library.functions[name]
        if known is not None and self.depth < 6 and base not in self.foreign:
            self.enter(name, known, owner, node, output, size)
            if known.name != "forward":
                return
        if name in ("append", "add", "extend") and isinstance(node.func, ast.Attribute) and base:
            self.sizes[base] = max(size, self.sizes.get(base) or 0)
        if name == "add_argument" and output and node.args and isinstance(node.args[0], ast.Constant):
            self.options.add(str(node.args[0].value).lstrip("-").replace("-", "_"))
        if name in _MODEL_LOADERS or (name == "load" and base in ("torch", "joblib", "jit", "keras", "pickle")):
            self.facts.note("loads_model", self.quote(node))
            if (
                isinstance(node.func, ast.Attribute)
                and name == "load_state_dict"
                and isinstance(node.func.value, ast.Name)
            ):
                self.models.add(node.func.value.id)
            return
        if name == "eval" and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            self.models.add(node.func.value.id)
        if self.is_forward(node, name, base):
            given = max((s for s in map(self.size_of, arguments) if s is not None), default=1)
            if _mentions(node, _MADE_UP) and "forward_pass" not in self.facts.seen:
                self.facts.note("dummy_forward", self.quote(node))
            self.work("forward_pass", node, max(size, given))
        if (
            name in ("backward", "learn")
            or (name == "step" and "opt" in dotted)
            or (
                name == "train"
                and bool(arguments or "trainer" in dotted.lower())
                and isinstance(node.func, ast.Attribute)
                and not _is_flag(arguments)
            )
        ) or (name == "fit" and isinstance(node.func, ast.Attribute)):
            self.facts.note("training", self.quote(node))
        elif _RESTORERS.fullmatch(name):
            self.facts.note("classical_method", self.quote(node))
        if any(dotted.endswith(known) for known in _CHECK_CALLS):
            self.facts.note("checks_environment", self.quote(node))
        if name in _DOWNLOADS or dotted.endswith("hub.load"):
            self.facts.note("obtains_weights", self.quote(node))
        if name in ("getsource", "help", "signature"):
            self.facts.note("reads_docs", self.quote(node))
        if name == "print" and _mentions(node, _STATISTICS):
            self.facts.note("prints_statistics", self.quote(node))
        if name == "print" and _mentions(
            node, {"shape", "dtype", "size", "ndim", "get_zooms", "affine", "mode", "obs", "columns"}
        ):
            self.facts.note("prints_shapes", self.quote(node))
        self.files_touched(node, name, base, output, arguments, size)

    def files_touched(
        self, node: ast.Call, name: str, base: str, output: bool, arguments: list[ast.expr], size: int
    ) -> None:
        writing = name in _SAVES and not (name == "write" and base in ("sys", "stdout"))
        if name == "open":
            mode = next((a.value for a in arguments[1:2] if isinstance(a, ast.Constant)), "r")
            writing = isinstance(mode, str) and any(c in mode for c in "wax")
        if writing:
            if output:
                self.work("writes_outputs", node, size)
            elif name != "open":
                self.facts.note("writes_files", self.quote(node))
            return
        if name in _LOADS:
            text = " ".join(self.texts(node))
            if output:
                self.facts.note("reads_outputs", self.quote(node))
            elif _WEIGHTS.search(text):
                self.facts.note("loads_model", self.quote(node))
            elif name in ("open", "read_text") and any(_DOCUMENT.search(t) for t in self.texts(node)):
                self.facts.note("reads_docs", self.quote(node))
            elif name != "loads":
                self.facts.note("loads_inputs", self.quote(node))
                self.facts.loaded = max(self.facts.loaded, size)
        elif name in _LOOKS:
            self.facts.note("reads_outputs" if output else "lists_inputs", self.quote(node))

    def enter(
        self, name: str, function: ast.FunctionDef | ast.AsyncFunctionDef, owner: Module, node: ast.Call, output: bool, size: int,
    ) -> None:  # fmt: skip
        """Facts of a function called here; a recursion adds nothing."""
        key = (f"{id(function)}", output)
        if key not in self.memo:
            self.memo[key] = Facts()
            inner = _Reader(owner, self.library, self.outputs, self.arguments, self.depth + 1, self)
            inner.params = {a.arg for a in (*function.args.args, *function.args.kwonlyargs)}
            for parameter in inner.params:
                inner.sizes[parameter] = None
            positional = [a for a in function.args.args if a.arg not in ("self", "cls")]
            values = dict(zip((a.arg for a in positional), node.args, strict=False))
            values |= {k.arg: k.value for k in node.keywords if k.arg}
            defaults = dict(zip((a.arg for a in positional[::-1]), function.args.defaults[::-1], strict=False))
            for parameter in inner.params:
                value = values.get(parameter, defaults.get(parameter))
                if value is None:
                    continue
                inner.sizes[parameter] = self.size_of(value)
                if self.is_output(value):
                    inner.tainted.add(parameter)
                else:
                    inner.tainted.discard(parameter)
                if self.is_model(value):
                    inner.models.add(parameter)
            inner.no_grad += any(_last_name(d) in _QUIET for d in function.decorator_list)
            inner.block(function.body, 1)
            self.options |= inner.options
            returned = [s.value for s in function.body if isinstance(s, ast.Return)]
            self.returns[id(function)] = inner.size_of(returned[-1]) if returned else 1
            self.memo[key] = inner.facts
        found = self.memo[key]
        before = self.facts.scope
        self.facts.merge(found)
        self.facts.scope = max(before, size if found.scope == 1 else max(found.scope, size) if found.scope else 0)
        if found.loaded:
            self.facts.loaded = max(self.facts.loaded, size)
        if found.scope and self.unknown_loops:
            self.facts.open_ended = True

    def work(self, fact: str, node: ast.AST, size: int) -> None:
        self.facts.note(fact, self.quote(node))
        self.facts.scope = max(self.facts.scope, size)
        if self.unknown_loops:
            self.facts.open_ended = True

    def is_forward(self, node: ast.Call, name: str, base: str) -> bool:
        if isinstance(node.func, ast.Name):
            if name in self.models or (self.no_grad and name in self.params):
                return True
            if self.no_grad and node.args and name not in _BUILTINS and name not in self.foreign and name[:1].islower():
                return name not in self.module.functions and name not in self.library.functions
            return bool(node.args) and (
                name in _FORWARD_CALLS - {"generate"}
                or (
                    bool(_MODEL_NAME.fullmatch(name.lower()))
                    and name != "pipeline"
                    and name not in self.module.functions
                    and name[:1].islower()
                )
            )
        if isinstance(node.func, ast.Call):
            return self.no_grad > 0 and bool(node.args)
        if isinstance(node.func, ast.Attribute):
            if base in ("np", "numpy", "os", "plt", "pd", "random", "torch", "F", "json", "re"):
                return False
            if name in _FORWARD_CALLS:
                return True
            return (
                base in self.models
                and name not in _NOT_FORWARD
                and bool(node.args)
                and (
                    self.no_grad > 0
                    or name in ("net", "model", "run", "answer", "ask", "detect", "segment", "denoise", "enhance")
                )
            )
        return False

    # -- values -----------------------------------------------------------------------------------------------------

    def is_output(self, node: ast.AST) -> bool:
        """Whether the expression names, or was loaded from, the place of the outputs."""
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and child.id in self.tainted:
                return True
            if isinstance(child, ast.Attribute) and child.attr in self.options:
                return True
            if (
                isinstance(child, ast.Constant)
                and isinstance(child.value, str)
                and len(child.value) < 400
                and self.outputs.search(child.value)
            ):
                return True
        return False

    def is_model(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            name = _last_name(node.func)
            if name in ("from_pretrained", "load_model", "InferenceSession", "pipeline", "load_net", "create_model"):
                return True
            if name in ("eval", "to", "cuda", "cpu", "half", "float") and isinstance(node.func, ast.Attribute):
                return self.is_model(node.func.value) or name == "eval"
            return name == "load" and _first_name(node.func) in ("joblib", "jit", "pickle")
        return isinstance(node, ast.Name) and node.id in self.models

    def size_of(self, node: ast.AST | None, depth: int = 0) -> int | None:
        """How many cases an iterable stands for: n, ALL, 1 for what is no set of cases, None when it cannot be read."""
        if node is None or depth > 8:
            return None
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            if not node.elts:
                return None
            cases = [e for e in node.elts if isinstance(e, ast.Constant) and _is_case(e.value)]
            return len(node.elts) if len(cases) == len(node.elts) else 1
        if isinstance(node, ast.Name):
            return self.sizes.get(node.id, 1)
        if isinstance(node, ast.Subscript):
            return self.size_of_slice(node, depth)
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            return self.size_of(node.generators[0].iter, depth + 1)
        if isinstance(node, ast.BoolOp | ast.IfExp):
            parts = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
            known = [s for s in (self.size_of(p, depth + 1) for p in parts) if s is not None]
            return self.arguments if _is_argument(node) and self.arguments else max(known, default=None)
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add):
            return self.size_of(node.left, depth + 1)
        if isinstance(node, ast.BinOp):
            sides = [self.size_of(side, depth + 1) for side in (node.left, node.right)]
            return None if None in sides else min(ALL, sum(s for s in sides if s))
        if isinstance(node, ast.Attribute):
            return self.arguments if _is_argument(node) else 1
        if isinstance(node, ast.Call):
            return self.size_of_call(node, depth)
        return 1

    def size_of_slice(self, node: ast.Subscript, depth: int) -> int | None:
        whole = self.size_of(node.value, depth + 1)
        if _is_argument(node.value):
            return self.arguments
        if isinstance(node.slice, ast.Tuple) and any(
            isinstance(e, ast.Slice) and e.lower is None and e.upper is None for e in node.slice.elts[:1]
        ):
            return whole
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return whole
        if not isinstance(node.slice, ast.Slice):
            return 1
        low, high, step = (_integer(e) for e in (node.slice.lower, node.slice.upper, node.slice.step))
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
        name = _last_name(node.func)
        if name in _LISTING:
            text = " ".join(self.texts(node))
            if _NOT_CASES.search(text) and not re.search(r"\*/|image|ct\.nii|\.npy|\.png", text):
                return 1
            return ALL
        if name in _PASS_THROUGH and node.args:
            return max((s for s in (self.size_of(a, depth + 1) for a in node.args) if s is not None), default=None)
        if name == "range":
            numbers = [_integer(a) for a in node.args]
            if len(node.args) == 1 and numbers[0] is None:
                inner = node.args[0]
                if isinstance(inner, ast.Call) and _last_name(inner.func) == "len" and inner.args:
                    return self.size_of(inner.args[0], depth + 1)
                return 1
            if any(n is None for n in numbers) or not numbers:
                return 1
            values = [n for n in numbers if n is not None]
            return max(1, len(range(*values)) if len(values) < 3 or values[2] else 1)
        if name in ("sample", "choice", "choices") and len(node.args) > 1:
            return _integer(node.args[1]) or 1
        if name in _LOADS or name in ("DictReader", "reader"):
            # An index file stands for all that it lists; a file of one case for that case.
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
        known = self.module.functions.get(name) or self.library.functions.get(name, (None, None))[0]
        if known is not None and id(known) in self.returns:
            return self.returns[id(known)]
        if name[:1].isupper() and isinstance(node.func, ast.Name):
            # Dataset(files) stands for its files.
            return max((s for s in (self.size_of(a, depth + 1) for a in node.args) if s is not None), default=1)
        if name == "parse_args":
            return None
        return self.size_of(node.func.value, depth + 1) if isinstance(node.func, ast.Attribute) else 1

    def texts(self, node: ast.AST) -> list[str]:
        """String constants in an expression, and those that its names hold."""
        found = [n.value[:300] for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        return [*found, *(self.files[n.id] for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in self.files)]

    def quote(self, node: ast.AST) -> str:
        line = getattr(node, "lineno", 0)
        return self.module.lines[line - 1].strip()[:160] if 0 < line <= len(self.module.lines) else ""


def _is_main_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(node.test))


def _is_case(value: object) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, str) and bool(_CASE_ID.fullmatch(value))
    )


def _is_argument(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Attribute) and (n.attr == "argv" or (isinstance(n.value, ast.Name) and n.value.id in ("args", "opt", "opts", "a")))
               for n in ast.walk(node))  # fmt: skip


def _formats_a_path(body: Sequence[ast.AST], names: set[str]) -> bool:
    """Whether a loop variable becomes part of a file name or case id (f"/data/patient_{i:04d}")."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.JoinedStr):
                parts = "".join(str(v.value) for v in node.values if isinstance(v, ast.Constant))
                for value in node.values:
                    if isinstance(value, ast.FormattedValue) and any(
                        isinstance(n, ast.Name) and n.id in names for n in ast.walk(value.value)
                    ):
                        spec = value.format_spec
                        padded = isinstance(spec, ast.JoinedStr) and any(
                            isinstance(v, ast.Constant) and str(v.value).startswith("0") for v in spec.values
                        )
                        if padded or "/" in parts:
                            return True
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
                if isinstance(node.left.value, str) and ("/" in node.left.value or "%0" in node.left.value):
                    return True
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and node.slice.id in names:
                return True
    return False


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(
        (isinstance(n, ast.Attribute) and n.attr in names)
        or (isinstance(n, ast.Name) and n.id in names and n.id != "sum")  # sum(p.numel() ...) counts parameters
        for n in ast.walk(node)
    )


def _is_flag(arguments: list[ast.expr]) -> bool:
    """model.train(False) switches a mode; it trains nothing."""
    return len(arguments) == 1 and isinstance(arguments[0], ast.Constant) and isinstance(arguments[0].value, bool)


def _integer(node: ast.AST | None) -> int | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return node.value
    return None


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _first_name(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _dotted(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))
