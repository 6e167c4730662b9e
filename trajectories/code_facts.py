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
from pathlib import PurePosixPath

from .any_case import AnyCase
from .code_evaluation import Scope
from .code_flow import Called, Flow, breaks
from .code_modules import Facts, Library, Module
from .code_names import (
    ALL,
    LISTING,
    LOADS,
    Names,
    dotted_name,
    first_name,
    integer,
    is_case,
    last_name,
    mentions,
    size_of_value,
)  # fmt: skip
from .code_options import entry_points
from .code_records import Record, class_of, computed, fields
from .code_values import PLACE, UNKNOWN, Namespace, functions, key_of, one_of
from .command_lines import Launch, cases_asked
from .syntax_tree import COMPREHENSIONS, LOOPS, children, descendants

_DOCUMENT = re.compile(r"(?:\.(?:md|rst|txt|py|ya?ml|toml|cfg)|README\w*|config\.json)$", re.I)
_OF_MODELS = re.compile(r"/(?:models?|model_zoo|zoo|weights|checkpoints?)/", re.I)
"""What lies beside the weights belongs to the models: a vocabulary, a reference image."""
_WEIGHTS = re.compile(r"\.(?:pth?|ckpt|safetensors|onnx|h5|keras|pkl|joblib|gguf|tflite)\b|state_dict", re.I)
_MODEL_NAME = re.compile(
    r"(?:model|net|unet|clf|vlm|llm|pipe|pipeline|predictor|detector|segmenter|generator|classifier)\d?"
)
_CONCERN = AnyCase(
    r"missing|mismatch|complete|valid|bad\b|problem|error|ok\b|schema|expected|dup|count|rows|total|present"
)

_MODEL_LOADERS = {
    "from_pretrained", "load_state_dict", "load_model", "InferenceSession", "pipeline", "load_checkpoint", "from_checkpoint",
    "load_from_checkpoint", "create_model", "load_net", "load_weights", "safe_open", "load_file",
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
_SAVES = {
    "save", "savez", "savetxt", "dump", "to_csv", "to_parquet", "to_json", "write_text", "imwrite", "imsave", "WriteImage",
    "write", "to_filename", "tofile", "savez_compressed", "write_h5ad", "write_bytes", "to_excel", "savefig", "writerow", "writerows",
}  # fmt: skip
_APPLIERS = {
    "map",
    "imap",
    "imap_unordered",
    "starmap",
    "apply",
    "progress_apply",
    "submit",
    "apply_async",
    "thread_map",
    "process_map",
}
_TABLES = {"writerows", "to_csv", "to_json", "to_parquet", "to_excel", "dump", "write", "write_text", "writelines"}
_LOOKS = {"exists", "isfile", "isdir", "is_file", "is_dir", "stat", "getsize", *LISTING}
_STATISTICS = {
    "min", "max", "mean", "std", "unique", "bincount", "value_counts", "sum", "percentile", "Counter", "describe", "nunique",
    "histogram", "quantile", "isnan", "isfinite", "count_nonzero", "median", "head", "allclose", "array_equal", "crosstab", "corrcoef",
}  # fmt: skip
_CHECK_CALLS = ("cuda.is_available", "device_count", "import_module", "cpu_count", "find_spec", "get_device_name",
                "python_version", "which", "mem_get_info", "get_device_properties")  # fmt: skip
_DOWNLOADS = {"hf_hub_download", "snapshot_download", "urlretrieve", "download_url_to_file", "download"}
_MADE_UP = {"zeros", "randn", "rand", "ones", "randint"}
_RANDOM = {*_MADE_UP, "normal", "default_rng", "uniform", "standard_normal", "poisson", "randint", "full"}
_READER = re.compile(
    r"_*(?:re)?(?:load|read|open|list|get|iter|find|fetch|glob|collect|ids|paths?|main|parse|log|setup|seed)", re.I
)
"""Names of functions that bring data in rather than work on them."""
_QUIET = ("no_grad", "inference_mode")
_BUILTINS = frozenset(dir(builtins))
_CHANGES = frozenset(["append", "extend", "insert", "remove", "pop", "clear", "add", "update", "discard", "setdefault"])
"""Methods after which a list or a table is no longer what it was set to."""
_VARIANTS = 4
"""How often a function is read with different values of its parameters; after that without them."""
_RESTORERS = re.compile(
    r"denoise_\w+|gaussian_filter|median_filter|bm3d\w*|unsharp_mask|wiener|threshold_otsu|watershed|fastNlMeans\w*|slic$"
)


_SILENT = (ast.Name, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
"""A name alone shows nothing, and a definition runs nothing."""
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.NamedExpr)


def python_facts(
    module: Module, library: Library, outputs: re.Pattern[str], arguments: int | None = None, scope: Scope | None = None,
) -> Facts:  # fmt: skip
    """Facts of running this module. `arguments`: how many cases its command line names (None: not known); `scope`:
    the words of that command line, of which the values of its options follow."""
    reader = _Reader(module, library, outputs, arguments, scope=scope or Scope())
    reader.values["__name__"] = "__main__"
    try:
        reader.block(module.tree.body, 1)
    except RecursionError:
        reader.facts.note("too_deep", "")
    return reader.facts


class _Reader(Names, Flow):
    """One pass over executed statements, with what is known of names at that point."""

    def __init__(
        self, module: Module, library: Library, outputs: re.Pattern[str], arguments: int | None, depth: int = 0,
        shared: _Reader | None = None, scope: Scope | None = None,
    ) -> None:  # fmt: skip
        super().__init__(outputs, arguments, module, library, scope or (shared.scope if shared else Scope()), shared)
        self.depth = depth
        self.within_function = False
        """Whether a function is read, and not the module itself."""
        self.results_reached: list[tuple[ast.expr | None, int | None, object]] = []
        """The return statements that are reached, each with the size and the value of what it returns."""
        self.pruned = False
        """Whether some branch is known not to run."""
        self.facts = Facts()
        self.params: set[str] = set()
        self.no_grad = 0
        self.results: set[str] = set()
        self.memo: dict[tuple[int, bool, object], Called] = shared.memo if shared else {}
        self.unknown_loops = 0
        self.imported: set[str] = set(shared.imported) if shared else set()
        self.foreign = {name for name, origin in module.aliases.items() if origin not in library.modules}

    # -- statements -------------------------------------------------------------------------------------------------

    def statement(self, node: ast.stmt, size: int) -> str:
        """Facts of one statement; how it leaves the block ("loop", "return", "exit"), "" where what follows may run."""
        if isinstance(node, LOOPS):
            self.walk(node.iter, size)
            if self.value_of(node.iter) == []:  # no words were given: nothing to go through
                self.pruned = True
                return self.block(node.orelse, size)
            self.forget([node.target, *node.body])
            self.bind_each(node.target, self.value_of(node.iter))
            inner = self.loop(node.target, node.iter, node.body, size)
            self.block(node.body, inner)
            self.forget([node.target, *node.body])
            self.leave(node.iter)
            self.block(node.orelse, size)
        elif isinstance(node, ast.While):
            self.walk(node.test, size)
            rounds = [self.sizes.get(n.id) or 1 for n in descendants(node.test) if isinstance(n, ast.Name)]
            self.forget(node.body)
            if self.truth_of(node.test) is not False:
                self.block(node.body, max(size, *rounds, 1))
                self.forget(node.body)
            self.block(node.orelse, max(size, *rounds, 1))
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            return self.within(node, size)
        elif isinstance(node, ast.Return):
            if node.value is not None:
                self.walk(node.value, size)
            self.results_reached.append(
                (node.value, self.size_of(node.value), self.value_of(node.value) if node.value else None)
            )
            return "return"
        elif isinstance(node, ast.ClassDef):
            self.define(node)
        else:
            return self.branching(node, size)
        return ""

    def define(self, node: ast.ClassDef) -> None:
        """A class statement: the values of its fields, and which of its attributes are places of outputs or cases."""

        def believed(value: ast.AST) -> object:
            literal = isinstance(value, ast.Constant) and not self.scope.constants
            return UNKNOWN if literal else self.held(value)

        self.bind(ast.Name(node.name, ast.Store()), class_of(node, believed))
        for name, value in (*fields(node), *computed(node)):
            if value is not None:
                self.note_attribute(name, value)

    def note_attribute(self, name: str, value: ast.AST) -> None:
        """An attribute is set, of an object that may not be known later: what holds for any object's."""
        if isinstance(self.value_of(value), Record):
            return
        if self.is_output(value):
            self.options.add(name)
        size = self.size_of(value)
        if size is not None and size > 1:
            self.attribute_sizes[name] = max(size, self.attribute_sizes.get(name, 0))

    def within(self, node: ast.With | ast.AsyncWith, size: int) -> str:
        quiet = any(last_name(item.context_expr) in _QUIET for item in node.items)
        for item in node.items:
            self.walk(item.context_expr, size)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, UNKNOWN)
            if isinstance(item.optional_vars, ast.Name):
                handle, opened = item.optional_vars.id, item.context_expr
                if self.is_output(opened):
                    self.tainted.add(handle)
                (self.of_case.add if mentions(opened, self.of_case) else self.of_case.discard)(handle)
        self.no_grad += quiet
        left = self.block(node.body, size)
        self.no_grad -= quiet
        return "" if any(last_name(item.context_expr) in ("suppress", "raises") for item in node.items) else left

    def walk(self, node: ast.AST, size: int) -> None:
        if isinstance(node, _SILENT):
            return
        if isinstance(node, (ast.IfExp, ast.BoolOp)):
            self.choice(node, size)
        elif isinstance(node, COMPREHENSIONS):
            inner = size
            for generator in node.generators:
                self.walk(generator.iter, size)
                self.bind_each(generator.target, self.value_of(generator.iter))
                inner = self.loop(generator.target, generator.iter, [ast.copy_location(ast.Expr(node), node)], inner)
                for condition in generator.ifs:
                    self.walk(condition, inner)
            for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                self.walk(part, inner)
            self.forget([generator.target for generator in node.generators])
        elif isinstance(node, _ASSIGNMENTS):
            self.assign(node, size)
        elif isinstance(node, ast.Call):
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            made = self.module.functions.get(last_name(owner)) if isinstance(owner, ast.Call) else None
            if owner is not None and made is not None and made.name == "__init__":
                self.walk(owner, size)  # Job().run(): what makes the object sets its attributes
            self.call(node, size)
            for child in children(node):
                self.walk(child, size)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
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
            for child in children(node):
                self.walk(child, size)

    def constant(self, node: ast.AST, text: str) -> None:
        if _WEIGHTS.search(text) and "." in text and " " not in text:
            self.facts.weights.add(text.rsplit("/", 1)[-1])
        if "names_concern" not in self.facts.seen and _CONCERN.search(text):
            self.facts.note("names_concern", self.quote(node))

    def loop(self, target: ast.AST, iterable: ast.AST, body: Sequence[ast.stmt], size: int) -> int:
        found = self.size_of(iterable)
        names = {n.id for n in descendants(target) if isinstance(n, ast.Name)}
        if self.is_output(iterable):
            self.tainted |= names
        for name in names:
            self.sizes[name] = 1
            self.numbers.pop(name, None)
        self.of_case |= names
        if found is None:
            self.unknown_loops += 1
            return size
        if (
            1 < found < ALL
            and isinstance(iterable, ast.Call)
            and last_name(iterable.func) == "range"
            and not self.formats_a_path(body, names)
        ):
            return size  # epochs, folds, flips: repetitions, not cases
        return max(size, min(found, breaks(body, names, self) or found))

    def formats_a_path(self, body: Sequence[ast.AST], names: set[str], depth: int = 0) -> bool:
        """Whether a loop's variable becomes part of a file name, here or in a function that it is handed to."""
        if _formats_a_path(body, names):
            return True
        if depth > 2:
            return False
        for node in (n for statement in body for n in descendants(statement) if isinstance(n, ast.Call)):
            known = self.module.functions.get(last_name(node))
            if known is None and (found := self.library.functions.get(last_name(node))) is not None:
                known = found[0]
            if known is None:
                continue
            handed = {
                parameter
                for parameter, (value, is_default) in _passed(known, node).items()
                if isinstance(value, ast.Name) and value.id in names and not is_default
            }
            if handed and self.formats_a_path(known.body, handed, depth + 1):
                return True
        return False

    def leave(self, iterable: ast.AST) -> None:
        if self.size_of(iterable) is None:
            self.unknown_loops -= 1

    def assign(self, node: ast.Assign | ast.AnnAssign | ast.NamedExpr, size: int) -> None:
        if node.value is None:
            return
        self.walk(node.value, size)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [
            n.id for t in targets for n in descendants(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        ]
        value = node.value
        known = self.value_of(value)
        if isinstance(value, ast.Constant) and not self.within_function and not self.scope.constants:
            known = UNKNOWN
        for target in targets:
            self.bind(target, known)
            for part, given in _pairs(target, value):
                if isinstance(part, ast.Attribute):
                    self.note_attribute(part.attr, given)
                    owner = self.value_of(part.value)
                    if isinstance(owner, Record) and self.is_output(given):
                        owner[part.attr] = PLACE
        # Of an object each attribute is looked at by itself.
        output = not isinstance(known, Record) and self.is_output(value)
        model, length = self.is_model(value), self.size_of(value)
        result = self.is_result(value)
        if isinstance(value, ast.Call) and last_name(value) in ("parse_args", "parse_known_args"):
            self.namespaces |= set(names)
        single = isinstance(value, ast.Attribute | ast.Call | ast.IfExp) or (
            isinstance(value, ast.BoolOp) and isinstance(value.values[-1], ast.Constant)
        )
        if single and self.is_argument(value) and length in (None, 1, self.arguments):
            self.given |= set(names)
        for name in names:
            self.sizes[name] = length
            (self.tainted.add if output else self.tainted.discard)(name)
            nothing = isinstance(value, ast.Constant) and not value.value
            (self.unlimited.add if nothing else self.unlimited.discard)(name)
            number = integer(value)
            if number is not None and number > 0:
                self.numbers[name] = number
            else:
                self.numbers.pop(name, None)
            (self.results.add if result else self.results.discard)(name)
            if model:
                self.models.add(name)
            one = isinstance(value, ast.Constant) and isinstance(value.value, str) and is_case(value.value)
            (self.of_case.add if one or mentions(value, self.of_case) else self.of_case.discard)(name)
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
            inner.values["__name__"] = stem
            inner.block([s for s in module.tree.body if not _is_main_guard(s)], size)
            self.scope.globals[id(module)] = inner.values
            self.tainted |= inner.tainted
            self.models |= inner.models
            self.sizes.update(inner.sizes)
            inner.facts.seen.pop("names_concern", None)
            self.facts.merge(inner.facts)

    # -- calls ------------------------------------------------------------------------------------------------------

    def call(self, node: ast.Call, size: int) -> None:
        name, dotted, base = last_name(node.func), dotted_name(node.func), first_name(node.func)
        if isinstance(node.func, ast.Attribute) and name in _CHANGES:
            self.values.pop(base, None)
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
            if owner is not self.module and known.name != "__init__" and not _READER.match(name):
                self.facts.note("applies_module", self.quote(node))
            entry = entry_points(node, self.module, self.value_of, self.scope.words)
            for made, held in entry:
                self.enter(made.node, made.module, node, output, size, held)
            if not entry:
                self.enter(known, owner, node, output, size)
            if known.name not in ("forward", "__init__"):
                return
        if self.depth < 6:
            for made in functions(self.value_of(node.func)) if known is None or base in self.values else ():
                self.enter(made.node, made.module, node, output, size)
            for made, held in entry_points(node, self.module, self.value_of, self.scope.words):
                self.enter(made.node, made.module, node, output, size, held)
        if name in _APPLIERS and node.args and isinstance(node.args[0], ast.Name):
            self.applied(name, node, output, size)
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
            if mentions(node, _MADE_UP) and "forward_pass" not in self.facts.seen:
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
        if dotted.endswith(_CHECK_CALLS):
            self.facts.note("checks_environment", self.quote(node))
        if name in _RANDOM and self.depth == 0 and base in ("np", "numpy", "torch", "rng", "random"):
            self.facts.note("made_up_input", self.quote(node))
        if name == "print" and any(map(self.is_result, arguments)):
            self.facts.note("shows_results", self.quote(node))
        if name in _DOWNLOADS or dotted.endswith("hub.load"):
            self.facts.note("obtains_weights", self.quote(node))
        if name in ("getsource", "help", "signature"):
            self.facts.note("reads_docs", self.quote(node))
        if name == "print" and mentions(node, _STATISTICS):
            self.facts.note("prints_statistics", self.quote(node))
        if name == "print" and mentions(
            node, {"shape", "dtype", "size", "ndim", "get_zooms", "affine", "mode", "obs", "columns"}
        ):
            self.facts.note("prints_shapes", self.quote(node))
        self.files_touched(node, name, base, output, arguments, size)

    def applied(self, name: str, node: ast.Call, output: bool, size: int) -> None:
        """A function of the run's own handed to a map, a pool or a table: it runs once for each element."""
        function = node.args[0].id if isinstance(node.args[0], ast.Name) else ""
        known, owner = self.module.functions.get(function), self.module
        if known is None and function in self.library.functions:
            known, owner = self.library.functions[function]
        if known is None or self.depth >= 6:
            return
        call = ast.copy_location(ast.Call(func=node.args[0], args=node.args[1:], keywords=[]), node)
        if name == "apply" and isinstance(node.func, ast.Attribute):
            elements = self.size_of(node.func.value)
        else:
            elements = max((s for s in map(self.size_of, node.args[1:]) if s is not None), default=None)
        rounds = 1 if name in ("submit", "apply_async") else elements
        if rounds is None:
            self.unknown_loops += 1
        one = name in ("submit", "apply_async")
        self.enter(known, owner, call, output, max(size, rounds or 1), None if one else Namespace())
        if rounds is None:
            self.unknown_loops -= 1

    def files_touched(
        self, node: ast.Call, name: str, base: str, output: bool, arguments: list[ast.expr], size: int
    ) -> None:
        writing = name in _SAVES and not (name == "write" and base in ("sys", "stdout"))
        if name == "open":
            mode = next((a.value for a in arguments[1:2] if isinstance(a, ast.Constant)), "r")
            writing = isinstance(mode, str) and any(c in mode for c in "wax")
        if writing:
            if output:
                # One table, written once, holds the rows of all cases that a loop put into it.
                rows = map(self.size_of, arguments) if name in _TABLES else ()
                self.work("writes_outputs", node, max(size, *(r for r in rows if r is not None), 0))
            elif name != "open":
                self.facts.note("writes_files", self.quote(node))
            return
        if name in LOADS:
            text = " ".join(self.texts(node))
            if output:
                self.facts.note("reads_outputs", self.quote(node))
            elif _WEIGHTS.search(text):
                self.facts.note("loads_model", self.quote(node))
            elif name in ("open", "read_text") and (named := [t for t in self.texts(node) if _DOCUMENT.search(t)]):
                if any(PurePosixPath(t).stem not in self.library.modules for t in named):
                    self.facts.note("reads_docs", self.quote(node))
            elif _OF_MODELS.search(text):
                self.facts.note("loads_model", self.quote(node))
            elif name != "loads":
                self.facts.note("loads_inputs", self.quote(node))
                self.facts.loaded = max(self.facts.loaded, size)
        elif name in _LOOKS:
            self.facts.note("reads_outputs" if output else "lists_inputs", self.quote(node))

    def enter(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, owner: Module, node: ast.Call, output: bool, size: int,
        given: Namespace | None = None,
    ) -> None:  # fmt: skip
        """Facts of a function called here; a recursion adds nothing. `given`: values of its parameters, where they do
        not stand in the call."""
        if not self.within_function:
            self.scope.globals[id(self.module)] = self.values
        expressions = _passed(function, node)
        known: dict[str, object] = {}
        for parameter, (value, is_default) in expressions.items():
            if given is not None:
                known[parameter] = given.get(parameter, UNKNOWN)
            else:
                known[parameter] = (
                    self.value_of(value) if not is_default or isinstance(value, ast.Constant) else UNKNOWN
                )
        if "self" in expressions and isinstance(node.func, ast.Attribute):
            owned = self.value_of(node.func.value)
            known["self"] = owned if isinstance(owned, Record) else UNKNOWN
        values = tuple((p, key_of(v)) for p, v in known.items() if v is not UNKNOWN)
        key = (id(function), output, values)
        if key not in self.memo:
            self.scope.variants[id(function)] = self.scope.variants.get(id(function), 0) + 1
            if self.scope.variants[id(function)] > _VARIANTS:
                known, key = {}, (id(function), output, ())
        if key not in self.memo:
            self.memo[key] = Called(Facts())
            self.memo[key] = self.read(function, owner, node, given, expressions, known)
        found = self.memo[key]
        self.returns[id(function)], self.scope.returned[id(function)] = found.size, found.value
        before = self.facts.scope
        self.facts.merge(found.facts)
        self.facts.scope = max(
            before, size if found.facts.scope == 1 else max(found.facts.scope, size) if found.facts.scope else 0
        )
        if found.facts.loaded:
            self.facts.loaded = max(self.facts.loaded, size)
        if found.facts.scope and self.unknown_loops:
            self.facts.open_ended = True
        self.exits = found.exits

    def read(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, owner: Module, node: ast.Call, given: Namespace | None,
        expressions: dict[str, tuple[ast.expr | None, bool]], known: dict[str, object],
    ) -> Called:  # fmt: skip
        """One reading of a function's body, with what the call tells of its parameters."""
        line = _command_line(node)
        asked = self.arguments if line is None else cases_asked(Launch("", line, ""), ())
        inner = _Reader(owner, self.library, self.outputs, asked, self.depth + 1, self)
        inner.within_function = True
        inner.values = dict(self.scope.globals.get(id(owner), {}))
        if owner is self.module and function.col_offset > 0:  # a function in a function sees the names around it
            inner.values.update(self.values)
        inner.params = set(expressions)
        for parameter in inner.params:
            inner.sizes[parameter] = None
            inner.numbers.pop(parameter, None)
        inner.of_case -= inner.params
        for parameter, (value, _) in expressions.items():
            held = known.get(parameter, UNKNOWN)
            inner.bind(ast.Name(parameter, ast.Store()), held)
            if given is not None:
                inner.sizes[parameter] = size_of_value(held)
                continue
            if value is None:
                continue
            inner.sizes[parameter] = self.size_of(value)
            one = isinstance(value, ast.Constant) and is_case(value.value)
            if one or mentions(value, self.of_case):
                inner.of_case.add(parameter)
            nothing = isinstance(value, ast.Constant) and not value.value
            (inner.unlimited.add if nothing else inner.unlimited.discard)(parameter)
            number = self.number(value)
            if number is not None and number > 0:
                inner.numbers[parameter] = number
            if not isinstance(held, Record) and self.is_output(value):
                inner.tainted.add(parameter)
            else:
                inner.tainted.discard(parameter)
            if self.is_model(value):
                inner.models.add(parameter)
        inner.no_grad += any(last_name(d) in _QUIET for d in function.decorator_list)
        left = inner.block(function.body, 1)
        self.options |= inner.options
        returned = [s.value for s in function.body if isinstance(s, ast.Return)]
        size = inner.size_of(returned[-1]) if returned else 1
        if inner.pruned and len(inner.results_reached) == 1:
            size = inner.results_reached[0][1]
        results = [held for _, _, held in inner.results_reached] + ([None] if not left else [])
        return Called(inner.facts, size, one_of(results), left == "exit")

    def work(self, fact: str, node: ast.AST, size: int) -> None:
        self.facts.note(fact, self.quote(node))
        self.facts.scope = max(self.facts.scope, size)
        if self.unknown_loops:
            self.facts.open_ended = True

    def is_forward(self, node: ast.Call, name: str, base: str) -> bool:
        if isinstance(node.func, ast.Name):
            if name in self.models or (self.no_grad and name in self.params):
                return True
            if (
                self.no_grad
                and node.args
                and name not in _BUILTINS
                and name not in self.foreign
                and _names_a_value(name)
            ):
                return name not in self.module.functions and name not in self.library.functions
            return bool(node.args) and (
                name in _FORWARD_CALLS - {"generate"}
                or (
                    bool(_MODEL_NAME.fullmatch(name.lower()))
                    and name != "pipeline"
                    and name not in self.module.functions
                    and _names_a_value(name)
                )
            )
        if isinstance(node.func, ast.Call | ast.Subscript):
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

    def is_result(self, node: ast.AST) -> bool:
        """Whether the expression holds values that a model returned, its shape or type alone left out."""
        if isinstance(node, ast.Attribute) and node.attr in ("shape", "dtype", "size", "ndim", "device"):
            return False
        if isinstance(node, ast.Name):
            return node.id in self.results
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if name in ("size", "len", "type", "numel", "dim"):
                return False
            if self.is_forward(node, name, first_name(node.func)):
                return not mentions(node, _MADE_UP)
        return any(map(self.is_result, children(node)))

    def quote(self, node: ast.AST) -> str:
        line = getattr(node, "lineno", 0)
        return self.module.lines[line - 1].strip()[:160] if 0 < line <= len(self.module.lines) else ""


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Each single target of an assignment with what it is given: `a.x, a.y = 1, 2`."""
    left, right = (list(n.elts) if isinstance(n, ast.Tuple | ast.List) else [] for n in (target, value))
    return list(zip(left, right, strict=True)) if left and len(left) == len(right) else [(target, value)]


def _names_a_value(name: str) -> bool:
    """Not a class: written small, or in capitals as a module's constant (NET)."""
    return name[:1].islower() or name.isupper()


def _is_main_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and any(
        isinstance(n, ast.Name) and n.id == "__name__" for n in descendants(node.test)
    )


def _formats_a_path(body: Sequence[ast.AST], names: set[str]) -> bool:
    """Whether a loop variable becomes part of a file name or case id (f"/data/patient_{i:04d}")."""
    for statement in body:
        for node in descendants(statement):
            if isinstance(node, ast.JoinedStr):
                parts = "".join(str(v.value) for v in node.values if isinstance(v, ast.Constant))
                for value in node.values:
                    if isinstance(value, ast.FormattedValue) and any(
                        isinstance(n, ast.Name) and n.id in names for n in descendants(value.value)
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


def _command_line(node: ast.Call) -> str | None:
    """The command line in main(["--limit", "2"]); None where no list of options is passed."""
    for argument in (*node.args, *(k.value for k in node.keywords)):
        if isinstance(argument, ast.List):
            words = [str(e.value) for e in argument.elts if isinstance(e, ast.Constant)]
            if words and words[0].startswith("-"):
                return " " + " ".join(words)[:1_000]
    return None


def _passed(
    function: ast.FunctionDef | ast.AsyncFunctionDef, node: ast.Call
) -> dict[str, tuple[ast.expr | None, bool]]:
    """What a call gives to each parameter, and whether that is its default; None where it cannot be told."""
    arguments = function.args
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args) if a.arg not in ("self", "cls")]
    found: dict[str, tuple[ast.expr | None, bool]] = dict.fromkeys(
        (a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)), (None, False)
    )
    spread = any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords)
    if not spread:
        defaults = zip(positional[::-1], arguments.defaults[::-1], strict=False)
        found.update({name: (value, True) for name, value in defaults})
        keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        found.update({a.arg: (value, True) for a, value in keyword if value is not None})
        found.update({name: (value, False) for name, value in zip(positional, node.args, strict=False)})
    found.update({k.arg: (k.value, False) for k in node.keywords if k.arg in found})
    return found


def _is_flag(arguments: list[ast.expr]) -> bool:
    """model.train(False) switches a mode; it trains nothing."""
    return len(arguments) == 1 and isinstance(arguments[0], ast.Constant) and isinstance(arguments[0].value, bool)
