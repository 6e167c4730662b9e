"""What a Python program does, read from its syntax tree in a plain walk.

Nothing is evaluated. A call is judged by its name and by the paths and names in it, a loop by what
it iterates over. A name stands for whatever the file assigns to it: a place of deliverables, a
collection of cases. Facts are kept by function, so that a program shows the facts of the functions
it names.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .python_code import FUNCTIONS, child_nodes, dotted_name, last_name, parse, walk_by_level

ALL = 1_000_000
"""The size of a loop over everything in a folder or an index."""
MAX_NODES = 400
"""Nodes of one expression that are looked at."""
MAX_LOOPS = 12
"""Nested loops that are followed."""

_LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_LISTS = re.compile(r"[ir]?glob|(?:list|iter|scan)dir|walk")
_READS = re.compile(r"open|(?:im|dcm)?(?:read|load)\w*|ReadImage")
_WRITES = re.compile(
    r"(?:im)?(?:write|save)\w*|dump|to(?:_csv|_json|_parquet|_filename|file)|WriteImage"
)
_LOADS_MODEL = re.compile(
    r"from_pretrained|load_(?:state_dict|model|checkpoint)|InferenceSession|safe_open|pipeline"
)
_APPLIES_MODEL = re.compile(r"predict\w*|generate|infer(?:ence)?|forward|sliding_window_inference")
_DOWNLOADS = frozenset(["hf_hub_download", "snapshot_download", "urlretrieve"])
_STARTS = frozenset(["run", "system", "check_output", "check_call", "Popen", "call", "getoutput"])
_STARTS_FILE = frozenset(["exec", "run_path", "run_module"])
_STATISTICS = frozenset(["min", "max", "mean", "std", "sum", "median", "percentile", "unique"])
_SHAPES = frozenset(["shape", "dtype", "size", "ndim"])
_MADE_UP = frozenset(["zeros", "ones", "rand", "randn"])
_MODEL_FOLDER = re.compile(r"/(?:models?|model_zoo|zoo|weights|checkpoints?)/", re.IGNORECASE)
_CASE_TABLE = re.compile(
    r"/public/[^/\s]{1,80}\.(?:csv|tsv|jsonl?|xlsx|parquet)$|manifest|index", re.IGNORECASE
)
_DOCUMENT = re.compile(r"\.(?:md|rst|txt|ya?ml|toml|cfg)$", re.IGNORECASE)
_PADDED_NUMBER = re.compile(r":0\dd?\}|%0\d")
_WRITE_MODE = re.compile(r"[bt]?[wax][bt+]{0,2}")
_SCRIPT_NAME = re.compile(r"[\w./-]{1,200}")


@dataclass
class Loop:
    """A loop over cases: its size, its facts, and the names of what it may call."""

    size: int
    facts: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


@dataclass
class Piece:
    """What one function, or the code around all functions, does."""

    facts: dict[str, str] = field(default_factory=dict)
    """Fact -> the line on which it was first seen."""
    names: set[str] = field(default_factory=set)
    """Every name and attribute in it: the functions that it may call."""
    loops: list[Loop] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    """Command lines that it starts."""


@dataclass
class Module:
    """A parsed source, by function; functions of one name share an entry."""

    body: Piece = field(default_factory=Piece)
    main: Piece = field(default_factory=Piece)
    """The code under the `__main__` guard."""
    functions: dict[str, list[Piece]] = field(default_factory=dict)
    imports: set[str] = field(default_factory=set)
    """Stems of the modules that it imports."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Names of collections of cases, with their sizes."""

    def pieces(self) -> Iterator[Piece]:
        """The pieces of the module and of all its functions."""
        yield self.body
        yield self.main
        for pieces in self.functions.values():
            yield from pieces


def read_module(
    source: str, outputs: re.Pattern[str], own: Mapping[str, Module], prefixes: tuple[str, ...] = ()
) -> Module | None:
    """Read a Python source; None if it does not parse.

    `outputs` matches places of deliverables, `own` holds the modules that the run wrote, by stem,
    `prefixes` are what the numbers of its cases' ids follow.
    """
    tree = parse(source)
    if tree is None:
        return None
    reader = _Reader(source, outputs, own, prefixes)
    reader.collect_names(tree)
    reader.walk(tree)
    return reader.module


class _Reader:
    """Collects the facts of one source: `collect_names`, then `walk`."""

    def __init__(
        self,
        source: str,
        outputs: re.Pattern[str],
        own: Mapping[str, Module],
        prefixes: tuple[str, ...],
    ) -> None:
        self.lines = source.split("\n")
        self.outputs = outputs
        self.own = own
        # A loop over numbers is one over cases if the program makes ids from numbers.
        self.numbers_cases = _PADDED_NUMBER.search(source) is not None or any(
            f"{prefix}{{" in source for prefix in prefixes
        )
        self.module = Module()
        self.places: set[str] = set()
        """Names of places of deliverables."""
        self.defined = set(dir(builtins))
        """Functions, classes and modules; a call of any other name calls a variable."""

    def collect_names(self, tree: ast.Module) -> None:
        """Collect imports and definitions, then what each name stands for."""
        nodes = walk_by_level(tree)
        functions = {node.name: node for node in nodes if isinstance(node, FUNCTIONS)}
        for node in nodes:
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                self.defined.add(node.name)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                self.defined.update(map(last_name, node.targets))
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    origin = getattr(node, "module", None) or alias.name
                    self.module.imports |= {_stem(origin), _stem(alias.name)}
                    self.defined.add((alias.asname or alias.name).partition(".")[0])
        for stem in self.module.imports & self.own.keys():
            self.module.sizes |= self.own[stem].sizes
            self.defined |= self.own[stem].functions.keys()
        for node in nodes:
            for target, value in _assignments(node, functions):
                names = [name for part in _parts(target) if (name := last_name(part))]
                if self._names_output(value):
                    self.places.update(names)
                if not isinstance(node, _LOOPS):
                    self.module.sizes |= dict.fromkeys(names, self._size(value))

    def walk(self, tree: ast.Module) -> None:
        """Collect the facts of every function and loop, in the order of the source."""
        functions = self.module.functions
        stack: list[tuple[ast.AST, Piece, tuple[Loop, ...]]] = [(tree, self.module.body, ())]
        while stack:
            node, piece, loops = stack.pop()
            if isinstance(node, FUNCTIONS):
                piece, loops = Piece(), ()
                functions.setdefault(node.name, []).append(piece)
            elif isinstance(node, ast.ClassDef):
                # Code that names a class makes an object of it and may call that.
                functions.setdefault(node.name, []).append(Piece(names={"__init__", "__call__"}))
            elif isinstance(node, ast.If) and "__name__" in map(last_name, _parts(node.test)):
                piece = self.module.main
            elif isinstance(node, (ast.Name, ast.Attribute)):
                piece.names.add(last_name(node))
                for loop in loops:
                    loop.names.add(last_name(node))
            elif isinstance(node, ast.Call):
                self._call(node, piece, loops)
            elif isinstance(node, (ast.Assert, ast.Compare)):
                piece.facts.setdefault("compares", self._line(node))
            size = self._loop_size(node)
            if size != 1 and len(loops) < MAX_LOOPS:
                loops = (*loops, Loop(size))
                piece.loops.append(loops[-1])
            stack.extend((child, piece, loops) for child in reversed(child_nodes(node)))
        for piece in self.module.pieces():
            if "compares" in piece.facts and "reads_outputs" in piece.facts:
                piece.facts["checks_outputs"] = piece.facts["reads_outputs"]

    def _call(self, node: ast.Call, piece: Piece, loops: tuple[Loop, ...]) -> None:
        name = last_name(node)
        piece.commands += _commands(node, name)
        facts = set(self._facts(node, name))
        for fact in facts:
            piece.facts.setdefault(fact, self._line(node))
        for loop in loops:
            loop.facts |= facts
        # One call may be given all cases: a stacked batch, the rows of a table.
        for size in map(self._size, node.args if facts else ()):
            if size != 1:
                piece.loops.append(Loop(size, facts))

    def _facts(self, node: ast.Call, name: str) -> Iterator[str]:
        if _LOADS_MODEL.fullmatch(name) or dotted_name(node.func) in ("torch.load", "joblib.load"):
            yield "loads_model"
            return
        if _trains(node, name):
            yield "training"
        if name in _DOWNLOADS:
            yield "obtains_weights"
        if name == "print":
            yield from _printed_facts(node)
        if name not in self.module.functions and self._is_own_function(name):
            yield "applies_module"
        if self._applies_model(node, name):
            yield "forward_pass"
            if not _MADE_UP.isdisjoint(map(last_name, _parts(node))):
                yield "dummy_forward"
        yield from self._file_facts(node, name)

    def _is_own_function(self, name: str) -> bool:
        return any(name in module.functions for module in self.own.values())

    def _applies_model(self, node: ast.Call, name: str) -> bool:
        if isinstance(node.func, ast.Attribute):
            return _APPLIES_MODEL.fullmatch(name) is not None
        return bool(node.args) and name not in self.defined

    def _file_facts(self, node: ast.Call, name: str) -> Iterator[str]:
        lists = _LISTS.fullmatch(name) is not None
        writes = _WRITES.fullmatch(name) is not None
        if name == "open":
            writes = any(_WRITE_MODE.fullmatch(text) for text in _strings(node))
        if not (lists or writes or _READS.fullmatch(name)):
            return
        text = " ".join(_strings(node))
        if self._names_output(node):
            yield "writes_outputs" if writes else "reads_outputs"
        elif writes:
            yield "writes_files"
        elif lists:
            yield "lists_inputs"
        elif name in ("open", "read_text") and _DOCUMENT.search(text):
            yield "reads_docs"
        elif _MODEL_FOLDER.search(text):
            yield "loads_model"
        elif name != "loads":
            yield "loads_inputs"

    def _names_output(self, node: ast.AST) -> bool:
        """Whether an expression names a place of deliverables."""
        return not self.places.isdisjoint(map(last_name, _parts(node))) or any(
            len(text) < 400 and self.outputs.search(text) for text in _strings(node)
        )

    def _loop_size(self, node: ast.AST) -> int:
        if isinstance(node, (ast.For, ast.AsyncFor)):
            return self._size(node.iter)
        return self._size(node.generators[0].iter) if isinstance(node, _COMPREHENSIONS) else 1

    def _size(self, node: ast.AST) -> int:
        """How many cases an expression holds; 1 if it is no collection of cases."""
        size, limit = 1, ALL
        for part in _parts(node):
            if isinstance(part, ast.Call):
                size = max(size, self._size_of_call(part))
            elif isinstance(part, ast.Slice) and isinstance(part.upper, ast.Constant):
                end = part.upper.value
                limit = end if type(end) is int and end > 0 else limit
            size = max(size, self.module.sizes.get(last_name(part), 1))
        return min(size, limit)

    def _size_of_call(self, node: ast.Call) -> int:
        name = last_name(node)
        if _LISTS.fullmatch(name):
            return ALL
        if _READS.fullmatch(name) and _CASE_TABLE.search(" ".join(_strings(node))):
            return ALL
        if name == "range" and self.numbers_cases:
            ends = [getattr(argument, "value", None) for argument in (*node.args, ast.Constant(0))]
            if type(ends[0]) is int and type(ends[1]) is int:
                return max(1, abs(ends[0] - ends[1]))
        return 1

    def _line(self, node: ast.expr | ast.Assert) -> str:
        return self.lines[node.lineno - 1].strip()[:160]


def _assignments(
    node: ast.AST, functions: Mapping[str, ast.FunctionDef | ast.AsyncFunctionDef]
) -> Iterator[tuple[ast.AST, ast.AST]]:
    """(target, value) of what a node assigns, with parameters and command-line options."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from zip(target.elts, node.value.elts, strict=False)
            else:
                yield target, node.value
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, _LOOPS):
        yield node.target, node.iter
    elif isinstance(node, ast.Call) and last_name(node) in functions:
        yield from zip(functions[last_name(node)].args.args, node.args, strict=False)
        for keyword in node.keywords:
            yield keyword, keyword.value
    elif isinstance(node, ast.Call) and last_name(node) == "add_argument":
        for keyword in node.keywords:
            if keyword.arg == "default":
                for flag in _strings(node):
                    yield ast.Name(flag.lstrip("-").replace("-", "_")), keyword.value


def _printed_facts(node: ast.Call) -> Iterator[str]:
    names = set(map(last_name, _parts(node)))
    if names & _STATISTICS:
        yield "prints_statistics"
    if names & _SHAPES:
        yield "prints_shapes"
    if names & {"__version__", "is_available"}:
        yield "checks_environment"


def _trains(node: ast.Call, name: str) -> bool:
    if name == "step":
        return "opt" in dotted_name(node.func).lower()
    fits = name in ("fit", "train", "learn") and isinstance(node.func, ast.Attribute)
    return name == "backward" or (fits and bool(node.args or node.keywords))


def _commands(node: ast.Call, name: str) -> list[str]:
    """The command line of subprocess.run([...]), exec(open("x.py").read()) and the like."""
    if not node.args or name not in _STARTS | _STARTS_FILE:
        return []
    words = _strings(node.args[0])
    if "executable" in map(last_name, _parts(node.args[0])):
        words.insert(0, "python")
    if name in _STARTS_FILE:
        stems = [word.removesuffix(".py") for word in words if _SCRIPT_NAME.fullmatch(word)]
        words = ["python", f"{stems[0]}.py"] if stems else []
    return [" ".join(words)[:4_000]] if words else []


def _stem(dotted: str) -> str:
    return dotted.rpartition(".")[2]


def _parts(node: ast.AST) -> list[ast.AST]:
    return walk_by_level(node)[:MAX_NODES]


def _strings(node: ast.AST) -> list[str]:
    """The string constants of an expression."""
    constants = [part.value for part in _parts(node) if isinstance(part, ast.Constant)]
    return [value[:400] for value in constants if isinstance(value, str)]
