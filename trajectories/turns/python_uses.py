"""What Python code uses: functions called, places read and written, models loaded and applied,
loops over cases.

One reading of the syntax tree and no evaluation: names are followed by name alone, whatever
function they stand in, from what is assigned to them. Facts are kept by function, so that a program
shows those of the functions which it names, and a module that is imported those which the importing
code names.
"""

from __future__ import annotations

import ast
import re
import textwrap
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from .python_code import FUNCTIONS, Called, dotted_name, flat, last_name
from .python_module import Loop, Module, Piece, largest
from .python_names import (
    COMPREHENSIONS,
    LISTING,
    LOADS,
    MAX_LOOPS,
    POOLS,
    SHAPES,
    STATISTICS,
    WEIGHTS,
    Names,
)

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_WITHS = (ast.With, ast.AsyncWith)
_LOOKS = frozenset(["exists", "isfile", "isdir", "is_file", "is_dir", "stat", "getsize", *LISTING])
_SAVES = frozenset(
    [
        "save",
        "savez",
        "savetxt",
        "dump",
        "to_csv",
        "to_parquet",
        "to_json",
        "write_text",
        "imwrite",
        "imsave",
        "WriteImage",
        "write",
        "to_filename",
        "tofile",
        "savez_compressed",
        "write_h5ad",
        "write_bytes",
        "to_excel",
        "savefig",
        "writerow",
        "writerows",
    ]
)
_TO_OWNER = frozenset(["write", "write_text", "write_bytes", "writerow", "writerows"])
_QUIET = frozenset(["no_grad", "inference_mode"])
_MADE_UP = frozenset(["zeros", "randn", "rand", "ones", "randint"])
_RANDOM = frozenset(
    [*_MADE_UP, "normal", "default_rng", "uniform", "standard_normal", "poisson", "full"]
)
_PRINTS = frozenset(["print", "pprint", "echo", "info", "debug", "warning"])
_RESTORERS = re.compile(
    r"denoise_\w+|gaussian_filter|median_filter|bm3d\w*|unsharp_mask|wiener|threshold_otsu|watershed|fastNlMeans\w*|slic$"
)
_CHECKS = frozenset(
    [
        "device_count",
        "import_module",
        "cpu_count",
        "find_spec",
        "get_device_name",
        "python_version",
        "which",
        "mem_get_info",
        "get_device_properties",
    ]
)
_DOWNLOADS = frozenset(
    ["hf_hub_download", "snapshot_download", "urlretrieve", "download_url_to_file", "download"]
)
_RUNS = frozenset(["run", "system", "check_output", "check_call", "Popen", "call", "getoutput"])
_RUNS_FILES = frozenset(["exec", "execfile", "run_path", "run_module", "run_line_magic"])
_WRITE_MODE = re.compile(r"[bt]?[wax][bt+]{0,2}")
_DOCUMENT = re.compile(
    r"(?:\.(?:md|rst|txt|py|ya?ml|toml|cfg)|README\w*|config\.json)$", re.IGNORECASE
)
_WEIGHT_FILE = re.compile(rf"[\w.-]{{1,80}}(?:{WEIGHTS.pattern})", re.IGNORECASE)
_BESIDE_WEIGHTS = re.compile(r"/(?:models?|model_zoo|zoo|weights|checkpoints?)/", re.IGNORECASE)
_SCRIPT_NAME = re.compile(r"[\w./-]{1,200}")
_READS = frozenset(
    ["loads_inputs", "lists_inputs", "reads_docs", "loads_model", "compares", "reads_outputs"]
)
_OF_CASES = frozenset(["forward_pass", "writes_outputs", "loads_inputs"])


def read_module(
    source: str, outputs: re.Pattern[str], own: Mapping[str, Module], prefixes: tuple[str, ...] = ()
) -> Module | None:
    """What a source uses; None when it is no Python. `own` are modules that the run wrote, by stem;
    `prefixes` are those of its cases' ids, which numbers complete."""
    tree = flat(source)
    if tree is None:
        return None
    reader = _Uses(tree, source, outputs, own, prefixes)
    if "exec" in reader.names:
        for _, text in reader.texts:
            if text.count("\n") > 1 and (inner := flat(textwrap.dedent(text))) is not None:
                reader.executes(_Uses(inner, text, outputs, own, prefixes))
    return reader.module()


class _Uses(Names):
    """One module: what its calls show, by the function in which they stand."""

    def module(self) -> Module:
        """The facts of every function, and of what stands around them."""
        body, main = Piece(), Piece()
        functions: dict[str, list[Piece]] = {}
        pieces: list[tuple[int, Piece]] = [(len(self.nodes), body)]
        loops: list[tuple[int, Loop]] = []
        quiet = 0
        inner: list[tuple[int, int]] = []
        top = {id(statement) for statement in self.flat.nodes[0].body}  # type: ignore[attr-defined]
        for number in self.told:
            node = self.nodes[number]
            while number >= pieces[-1][0]:
                pieces.pop()
            while loops and number >= loops[-1][0]:
                loops.pop()
            kind, end = type(node), self.ends[number]
            if kind is ast.Call:
                call = self.calls[number]
                self._call(call, pieces[-1][1], loops, number < quiet)
                if call.name in POOLS and len(call.node.args) > 1:
                    self._loop(self.flat.children(number)[2], number, end, pieces[-1][1], loops)
            elif isinstance(node, FUNCTIONS):
                piece = Piece(names=set(self.names[number:end]))
                functions.setdefault(node.name, []).append(piece)
                pieces.append((end, piece))
                loops = []
                inner.append((number, end))
                if any(last_name(d) in _QUIET for d in node.decorator_list):
                    quiet = max(quiet, end)
            elif kind is ast.ClassDef:
                # To name a class is to make an object of it.
                functions.setdefault(node.name, []).append(Piece(names={"__init__"}))  # type: ignore[attr-defined]
            elif (
                kind is ast.If
                and id(node) in top
                and "__name__" in self.names[number : self.ends[number + 1]]
            ):
                main.names = set(self.names[number:end])
                pieces.append((end, main))
                inner.append((number, end))
            elif isinstance(node, _LOOPS):
                iterable = number + 1 if kind is ast.While else self.flat.children(number)[1]
                self._loop(iterable, self.ends[iterable], end, pieces[-1][1], loops)
            elif isinstance(node, COMPREHENSIONS):
                for child in self.flat.children(number):
                    if isinstance(self.nodes[child], ast.comprehension):
                        self._loop(self.flat.children(child)[1], number, end, pieces[-1][1], loops)
            elif isinstance(node, _WITHS):
                if any(last_name(item.context_expr) in _QUIET for item in node.items):
                    quiet = max(quiet, end)
            elif kind is ast.Assert or kind is ast.Compare:
                pieces[-1][1].facts.setdefault("compares", self.quote(node))
        for piece in (body, main, *(piece for known in functions.values() for piece in known)):
            if "compares" in piece.facts and "reads_outputs" in piece.facts:
                piece.facts["checks_outputs"] = piece.facts["reads_outputs"]
        start = 0
        for number, end in inner:
            if number >= start:
                body.names |= set(self.names[start:number])
                start = end
        body.names |= {*self.names[start:], *self.renamed.values()}
        for module in self.executed:
            body.facts = {**module.body.facts, **body.facts}
            body.loops += module.body.loops
            body.names |= module.body.names
            for name, found in module.functions.items():
                functions.setdefault(name, []).extend(found)
        return Module(
            body,
            main,
            functions,
            frozenset(self.classes),
            frozenset(self.imports),
            frozenset(self.places),
            self.options,
            {name: size for name, size in self.sizes.items() if size != 1},
            self.padded,
        )

    def executes(self, inner: _Uses) -> None:
        """Take in a program that this one holds as a text and executes in its own name space."""
        module = inner.module()
        self.executed.append(module)
        self.own[f"<{len(self.executed)}>"] = module

    def quote(self, node: ast.AST) -> str:
        """The source line of a node, at most 160 characters of it."""
        line = getattr(node, "lineno", 0)
        return self.lines[line - 1].strip()[:160] if 0 < line <= len(self.lines) else ""

    def _loop(
        self, iterable: int, start: int, end: int, piece: Piece, loops: list[tuple[int, Loop]]
    ) -> None:
        size = self.size(iterable)
        if size != 1 and len(loops) < MAX_LOOPS:
            loop = Loop(size, names=set(self.names[start:end]))
            piece.loops.append(loop)
            loops.append((end, loop))

    def _call(
        self, call: Called, piece: Piece, loops: Sequence[tuple[int, Loop]], quiet: bool
    ) -> None:
        number, node, name, _, start, end = call
        facts: list[str] = []
        if name in self.objects or (
            isinstance(node.func, ast.Call) and last_name(node.func) in self.classes
        ):
            piece.names.add("__call__")
            for _, loop in loops:
                loop.names.add("__call__")
        if name in _RUNS or name in _RUNS_FILES:
            piece.commands += self._command(name, number)
        if self.flat.holds(self.loads, number, number + 1):
            facts.append("loads_model")
            piece.weights |= {m[0] for m in _WEIGHT_FILE.finditer(self.text(start, end))}
        else:
            facts += self._shown(call)
            if self.flat.holds(self.forwards, number, number + 1) or (
                quiet and self._is_forward(call, True)
            ):
                facts.append("forward_pass")
                if not _MADE_UP.isdisjoint(self.names[start:end]):
                    facts.append("dummy_forward")
            if name in _SAVES or name in LOADS or name in _LOOKS:
                facts += self._files(call)
        if facts:
            if not _OF_CASES.isdisjoint(facts):
                size = largest(self.size(child) for child in self.flat.children(number))
                if size != 1:
                    piece.loops.append(Loop(size, set(facts)))
            quote = self.quote(node)
            for fact in facts:
                piece.facts.setdefault(fact, quote)
            for _, loop in loops:
                loop.facts.update(facts)

    def _shown(self, call: Called) -> Iterator[str]:
        """Facts told by what is called."""
        _, node, name, base, start, end = call
        if name in ("backward", "learn") or (
            name in ("step", "fit", "train") and isinstance(node.func, ast.Attribute)
        ):
            dotted = dotted_name(node.func).lower()
            switches = [
                isinstance(a, ast.Constant) and isinstance(a.value, bool) for a in node.args
            ] == [True]
            # model.train(False) switches a mode
            given = bool(node.args or node.keywords) and not switches
            if name == "step" and "opt" not in dotted:
                return
            if name != "train" or given or "trainer" in dotted:
                yield "training"
        elif _RESTORERS.fullmatch(name):
            yield "classical_method"
        if name in _CHECKS or (name == "is_available" and "cuda" in dotted_name(node.func)):
            yield "checks_environment"
        if name in _DOWNLOADS or (name == "load" and dotted_name(node.func).endswith("hub.load")):
            yield "obtains_weights"
        if name in ("getsource", "help", "signature"):
            yield "reads_docs"
        if name in _RANDOM and base in ("np", "numpy", "torch", "rng", "random"):
            yield "made_up_input"
        if name not in self.functions and any(
            _works(m.functions.get(name, ())) for m in self.own.values()
        ):
            yield "applies_module"
        if name in _PRINTS:
            used = {*self.names[start:end]}
            if not used.isdisjoint(STATISTICS):
                yield "prints_statistics"
            if not used.isdisjoint(SHAPES):
                yield "prints_shapes"
            if "__version__" in used:
                yield "checks_environment"

    def _files(self, call: Called) -> Iterator[str]:
        """Facts told by the places that a call names."""
        number, node, name, base, start, end = call
        writing = name in _SAVES and not (name == "write" and base in ("sys", "stdout"))
        if name == "open":
            arguments = [*node.args, *(k.value for k in node.keywords)]
            modes = [
                a.value
                for a in arguments[0 if isinstance(node.func, ast.Attribute) else 1 : 2]
                if isinstance(a, ast.Constant)
            ]
            writing = any(isinstance(mode, str) and _WRITE_MODE.fullmatch(mode) for mode in modes)
        if name in _TO_OWNER:  # the file is what it is a method of
            output = self.is_output(number + 1, start)
        elif name == "dump":
            output = any(self.is_output(n, self.ends[n]) for n in self.flat.children(number)[2:])
        else:
            output = self.is_output(start if writing and node.args else number, end)
        if writing:
            yield "writes_outputs" if output else "writes_files"
        elif name in _LOOKS:
            yield "reads_outputs" if output else "lists_inputs"
        elif output:
            yield "reads_outputs"
        else:
            text = self.text(number if name == "read_text" else start, end)
            named = text.split(" ")
            if name in ("open", "read_text") and any(map(_DOCUMENT.search, named)):
                if not any(PurePosixPath(path).stem in self.written for path in named):
                    yield "reads_docs"
            elif _BESIDE_WEIGHTS.search(text):
                yield "loads_model"
            elif name != "loads":
                yield "loads_inputs"

    def _command(self, name: str, number: int) -> list[str]:
        """The command line of subprocess.run([...]) and its like, of exec(open("x.py").read()),
        runpy.run_path("x.py")."""
        _, *arguments = self.flat.children(number)
        if not arguments:
            return []
        start, end = arguments[0], self.ends[arguments[0]]
        words = [
            text
            for _, text in self.texts[
                bisect_left(self.starts, start) : bisect_left(self.starts, end)
            ]
        ]
        if name in _RUNS_FILES:
            return [
                f"python {word if word.endswith('.py') else word + '.py'}"
                for word in words
                if _SCRIPT_NAME.fullmatch(word)
            ][:1]
        used = self.names[start:end]
        if "executable" in used:
            words.insert(0, "python")
        unread = any(
            isinstance(node, ast.Name) and node.id != "sys" for node in self.nodes[start:end]
        )
        return [" ".join([*words, *(["$@"] if unread else [])])[:4_000]] if words else []


def _works(function: Sequence[Piece]) -> bool:
    """Whether a function does more than bring data in."""
    return any(not piece.facts or piece.facts.keys() - _READS for piece in function)
