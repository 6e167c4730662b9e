"""What a call shows: models loaded and applied, files read and written, statistics printed, functions entered."""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath

from .code_forward import MADE_UP, WEIGHTS
from .code_functions import Functions
from .code_measures import NOTHING, SHAPES, STATISTICS, Facts, Function, measures, prints_parameters, shows
from .code_names import LISTING, LOADS, dotted_name, first_name, last_name, mentions
from .code_options import entry_points
from .code_values import Namespace, functions

_WRITE_MODE = re.compile(r"[bt]?[wax][bt+]{0,2}")
_DOCUMENT = re.compile(r"(?:\.(?:md|rst|txt|py|ya?ml|toml|cfg)|README\w*|config\.json)$", re.I)
_OF_MODELS = re.compile(r"/(?:models?|model_zoo|zoo|weights|checkpoints?)/", re.I)
"""What lies beside the weights belongs to the models: a vocabulary, a reference image."""
_MODEL_LOADERS = {
    "from_pretrained", "load_state_dict", "load_model", "InferenceSession", "pipeline", "load_checkpoint", "from_checkpoint",
    "load_from_checkpoint", "create_model", "load_net", "load_weights", "safe_open", "load_file",
}  # fmt: skip
_SAVES = {
    "save", "savez", "savetxt", "dump", "to_csv", "to_parquet", "to_json", "write_text", "imwrite", "imsave", "WriteImage",
    "write", "to_filename", "tofile", "savez_compressed", "write_h5ad", "write_bytes", "to_excel", "savefig", "writerow", "writerows",
}  # fmt: skip
_WORK = frozenset(["forward_pass", "writes_outputs"])
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
_CHECK_CALLS = ("cuda.is_available", "device_count", "import_module", "cpu_count", "find_spec", "get_device_name",
                "python_version", "which", "mem_get_info", "get_device_properties")  # fmt: skip
_DOWNLOADS = {"hf_hub_download", "snapshot_download", "urlretrieve", "download_url_to_file", "download"}
_RANDOM = {*MADE_UP, "normal", "default_rng", "uniform", "standard_normal", "poisson", "randint", "full"}
_READER = re.compile(
    r"_*(?:re)?(?:load|read|open|list|get|iter|find|fetch|glob|collect|ids|paths?|main|parse|log|setup|seed)", re.I
)
"""Names of functions that bring data in rather than work on them."""
_CHANGES = frozenset(["append", "extend", "insert", "remove", "pop", "clear", "add", "update", "discard", "setdefault"])
"""Methods after which a list or a table is no longer what it was set to."""
_RESTORERS = re.compile(
    r"denoise_\w+|gaussian_filter|median_filter|bm3d\w*|unsharp_mask|wiener|threshold_otsu|watershed|fastNlMeans\w*|slic$"
)


class Calls(Functions):
    """Calls, told by the names of what is called and by the places that their arguments name."""

    def call(self, node: ast.Call, size: int) -> None:
        name, dotted, base = last_name(node.func), dotted_name(node.func), first_name(node.func)
        if isinstance(node.func, ast.Attribute) and name in _CHANGES:
            self.values.pop(base, None)
        arguments = [*node.args, *(k.value for k in node.keywords)]
        if isinstance(node.func, ast.Call) and self.own(node.func) is not None:
            self.call(node.func, size)  # net(name)(x): what net gives is known once it was entered
            if self.is_model(node.func) and node.args:
                self.work(
                    "forward_pass", node, max((s for s in map(self.size_of, arguments) if s is not None), default=size)
                )
                return
        made_by = self.callable_class(node.func)
        output = any(self.is_output(a) for a in arguments) or (
            isinstance(node.func, ast.Attribute) and self.is_output(node.func.value)
        )
        if made_by is not None and self.depth < 6:
            maker, kind = made_by
            if maker is not self.module and not _READER.match(kind):
                self.facts.note("applies_module", self.quote(node))
            self.enter(maker.callables[kind], maker, node, output, size)
            return
        known = self.module.functions.get(name) or None
        owner = self.module
        if (
            known is None
            and name in self.library.functions
            and (base == name or base in self.imported or self.imported)
        ):
            known, owner = self.library.functions[name]
        if known is not None and self.prints(known):
            self.shown(node)
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
        if (
            name in ("append", "add", "extend", "insert", "setdefault", "update")
            and isinstance(node.func, ast.Attribute)
            and base
        ):
            self.measured[base] = self.measured.get(base, NOTHING).union(*map(self.measures, arguments))
        if name in ("append", "add", "extend") and isinstance(node.func, ast.Attribute) and base:
            self.sizes[base] = max(size, self.sizes.get(base) or 0)
        if name == "add_argument" and output and node.args and isinstance(node.args[0], ast.Constant):
            self.options.add(str(node.args[0].value).lstrip("-").replace("-", "_"))
        loads = name in _MODEL_LOADERS or (name == "load" and base in ("torch", "joblib", "jit", "keras", "pickle"))
        if loads and not isinstance(node.func, ast.Call):  # load(...)(x) applies what load(...) gives
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
            if mentions(node, MADE_UP) and "forward_pass" not in self.facts.seen:
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
        printed = shows(node)
        if printed and any(map(self.is_result, arguments)):
            self.facts.note("shows_results", self.quote(node))
        if name in _DOWNLOADS or dotted.endswith("hub.load"):
            self.facts.note("obtains_weights", self.quote(node))
        if name in ("getsource", "help", "signature"):
            self.facts.note("reads_docs", self.quote(node))
        if printed:
            self.shown(node)
        self.files_touched(node, name, base, output, arguments, size)

    def shown(self, node: ast.Call) -> None:
        """What a call prints: statistics, shapes, or names that hold them."""
        held = NOTHING
        if not self.facts.seen.keys() & _WORK:  # after that, a number may as well be one of the results
            held = NOTHING.union(*(self.measures(a) for a in (*node.args, *(k.value for k in node.keywords))))
        if "prints_statistics" in held or mentions(node, STATISTICS):
            self.facts.note("prints_statistics", self.quote(node))
        if "prints_shapes" in held or mentions(node, SHAPES):
            self.facts.note("prints_shapes", self.quote(node))

    def measures(self, node: ast.AST | None) -> Facts:
        return measures(node, self.measured, self.own)

    def prints(self, function: Function) -> bool:
        """`prints_parameters`, asked once a function."""
        if id(function) not in self.printers:
            self.printers[id(function)] = prints_parameters(function)
        return self.printers[id(function)]

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
            # open(path, "w"), or path.open("w")
            first = 0 if isinstance(node.func, ast.Attribute) else 1
            modes = [a.value for a in arguments[first:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            writing = any(_WRITE_MODE.fullmatch(mode) for mode in modes)
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
            elif WEIGHTS.search(text):
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


def _is_flag(arguments: list[ast.expr]) -> bool:
    """model.train(False) switches a mode; it trains nothing."""
    return len(arguments) == 1 and isinstance(arguments[0], ast.Constant) and isinstance(arguments[0].value, bool)
