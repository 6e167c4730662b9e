"""Which calls of a program are given the images that a manifest's records name, and over which lists they go.

A loader, a model or a helper of the zoo opens the files: the program itself then shows no `Image.open`. A path is
followed from the field of a record through names, loops, joins and lists up to the call that takes it. Counting,
printing and looking for a file on disk take none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ...trajectories.code_parts import parse
from ...trajectories.syntax_tree import COMPREHENSIONS, LOOPS, children, descendants, source

MAX_NODES = 40_000
"""Nodes of one program that are looked at: hostile code stays cheap."""
ROUNDS = 4
"""Names between the field of a record and the call that takes it."""

_FIELD = re.compile(
    r"(?!n_|num_|view$|has_)(?:\w{1,20}_)?(?:files?|filenames?|images?|img|paths?|relpath|frames?|films?|views|pngs?|sweeps?|dicoms?)(?:_?(?:paths?|files?|names?))?$",
    re.IGNORECASE,
)
"""Fields of a record that hold images or their files; `view` alone is the name of a projection."""
_PASSES = frozenset(
    {
        "Path", "PurePath", "str", "join", "joinpath", "list", "sorted", "tuple", "set", "dict", "enumerate", "zip", "reversed", "get", "pop", "abspath", "resolve", "items", "values",
        "as_posix", "format", "tolist", "copy", "deepcopy", "tqdm", "fspath", "iter", "next", "filter", "absolute", "with_suffix", "expanduser", "sort_values", "unique", "to_list", "strip",
    }
)  # fmt: skip
"""Calls whose result still is a path or a list of paths."""
_TAKES_NONE = frozenset(
    {
        "print", "len", "sum", "min", "max", "any", "all", "repr", "bool", "int", "float", "type", "isinstance", "Counter", "hash", "exists", "isfile", "is_file", "isdir", "is_dir", "stat", "lstat",
        "getsize", "basename", "dirname", "splitext", "relpath", "relative_to", "append", "add", "extend", "insert", "update", "setdefault", "info", "debug", "warning", "error", "log", "write", "writelines",
        "write_text", "writerow", "writerows", "dump", "dumps", "pprint", "display", "startswith", "endswith", "split", "replace", "match", "search", "sub", "findall", "index", "count", "mkdir", "makedirs",
        "copyfile", "copy2", "symlink", "remove", "unlink", "difference", "intersection", "issubset", "DataFrame", "Series", "exit", "range", "groupby", "value_counts",
    }
)  # fmt: skip
"""Calls that count, show, compare or store names, or look for a file: none of them opens an image."""
_GOES_THROUGH = frozenset({"enumerate", "sorted", "list", "tuple", "zip", "reversed", "tqdm", "iter"})
_FOLDER = re.compile(r"glob\(.{0,80}?['\"/]\*\.(?:png|jpe?g|dcm|npy|tiff?|bmp)['\"]")
"""Every image file of one folder."""
_APPENDS = re.compile(r"mode=['\"]a|, ?['\"]a[bt+]?['\"]")
_EACH_FILE = re.compile(
    r"\bfor \w+ in [^\n;]{0,120}\*\.(?:png|jpe?g|dcm|npy)\b[^\n;]{0,40}[;\n][^#]{0,400}?[^>]>\s?[^\s>]{0,120}report\.txt"
)
"""A shell loop over image files whose answers replace each other."""
_MAPS = frozenset({"map", "apply", "imap", "starmap", "submit", "transform"})
_KEEPS = frozenset({"append", "add", "extend", "insert", "setdefault", "update"})


class Handed(NamedTuple):
    """What a program hands over."""

    calls: frozenset[str]
    """Names of the calls that are given images of records."""
    whole: frozenset[str]
    """Source of the lists of which every element goes to such a call (`s["images"]`)."""


NOTHING = Handed(frozenset(), frozenset())


@lru_cache(maxsize=32)
def handed(text: str) -> Handed:
    """Calls of a program that are given images of records; nothing where the text is no Python.

    Kept: several questions ask the same of a script, and many turns run it."""
    tree = parse(text)
    if tree is None:
        return NOTHING
    nodes = descendants(tree)
    return _Reader(nodes).read() if len(nodes) <= MAX_NODES else NOTHING


@lru_cache(maxsize=32)
def writes_each(text: str, target: str = "report.txt") -> bool:
    """A loop over the images of one record, or of one folder, writes the same file for every image: what an image gave
    is lost with the next. Nothing is lost where the file is appended to, or written from what the loop gathers."""
    tree = parse(text)
    if tree is None:
        return bool(_EACH_FILE.search(text))
    nodes = descendants(tree)
    if target not in text or len(nodes) > MAX_NODES:
        return False
    reader = _Reader(nodes)
    reader.read()
    places = {target}
    for node in nodes:  # names of the file: out = folder / "report.txt"
        if isinstance(node, ast.Assign) and target in source(node.value):
            places |= {source(goal) for goal in node.targets if isinstance(goal, ast.Name)}
    writers = {
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(_writes(inner, places, frozenset()) for inner in descendants(node))
    }
    for node in nodes:
        if not isinstance(node, LOOPS) or not reader.one_record(node.iter):
            continue
        reached = _unconditional(node.body)
        grown: list[ast.expr] = [inner.target for inner in reached if isinstance(inner, ast.AugAssign)]
        grown += [
            inner.func.value
            for inner in reached
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in _KEEPS
        ]
        kept = frozenset(map(source, grown))
        called = {_name(inner) for inner in reached if isinstance(inner, ast.Call)}
        if called & writers or any(_writes(inner, places, kept) for inner in reached):
            return True
    return False


def _writes(node: ast.AST, places: Iterable[str], kept: frozenset[str]) -> bool:
    """A call that opens one of the files for writing, or gives it a text that was not gathered."""
    if not isinstance(node, ast.Call) or _name(node) not in ("open", "write_text"):
        return False
    written = source(node)
    if not any(re.search(rf"(?<!\w){re.escape(place)}(?!\w)", written) for place in places) or _APPENDS.search(written):
        return False
    if _name(node) == "open" and not re.search(r"['\"][wx][bt+]?['\"]", written):
        return False
    return not any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", written) for name in kept)


class _Reader:
    def __init__(self, nodes: list[ast.AST]) -> None:
        self.nodes = nodes
        self.paths: set[str] = set()
        """Names that hold images of records, lists of them, or records of them."""
        self.rows: set[str] = set()
        """Targets of loops: a field of one may be an attribute (`row.file`)."""
        self.built: set[str] = set()
        """Tables and lists that paths were put into one by one: any key of one may hold them."""
        self.made_of: dict[str, set[str]] = {}
        """Lists into which every element of other lists went."""

    def read(self) -> Handed:
        for _ in range(ROUNDS):
            before = len(self.paths) + len(self.rows) + sum(map(len, self.made_of.values()))
            for node in self.nodes:
                self._note(node)
            if len(self.paths) + len(self.rows) + sum(map(len, self.made_of.values())) == before:
                break
        calls: set[str] = set()
        whole: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Call) and (given := self._given(node)):
                calls.add(_name(node))
                for argument in given:
                    whole |= self._whole(argument)
        # A loop that gives each element to the call and keeps the result, without a condition or a way out.
        for node in self.nodes:
            if isinstance(node, LOOPS):
                reached = _unconditional(node.body)
                bare = {id(n.value) for n in reached if isinstance(n, ast.Expr)}
                if any(isinstance(n, ast.Call) and id(n) not in bare and self._given(n) for n in reached):
                    whole |= {ast.unparse(node.iter)[:200], *self._whole(node.iter)}
        return Handed(frozenset(calls), frozenset(whole))

    # -- names --------------------------------------------------------------------------------------------------------

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, (*LOOPS, ast.comprehension)):
            targets = [n.id for n in descendants(node.target) if isinstance(n, ast.Name)]
            self.rows.update(targets)
            if self.holds(node.iter):
                self.paths.update(targets)
        elif isinstance(node, ast.Assign) and self.holds(node.value):
            for target in node.targets:
                self._give(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign) and node.value and self.holds(node.value):
            self._give(node.target, node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS:
            root = _root(node.func.value) if any(self.holds(argument) for argument in node.args) else ""
            self.paths |= {root} - {""}
            self.built |= {root} - {""}
        if isinstance(node, LOOPS):
            for inner in _unconditional(node.body):
                if (
                    isinstance(inner, ast.Call)
                    and isinstance(inner.func, ast.Attribute)
                    and inner.func.attr == "append"
                ):
                    self.made_of.setdefault(ast.unparse(inner.func.value)[:200], set()).add(
                        ast.unparse(node.iter)[:200]
                    )

    def _give(self, target: ast.expr, value: ast.expr) -> None:
        if root := _root(target):
            self.paths.add(root)
            self.made_of.setdefault(root, set()).update(self._whole(value))

    def one_record(self, node: ast.expr) -> bool:
        """Whether a loop goes through the images of one record or folder, image by image."""
        while isinstance(node, ast.Call) and _name(node) in _GOES_THROUGH and node.args:
            node = node.args[0]
        if _FOLDER.search(source(node)):
            return True
        if isinstance(node, ast.Subscript):
            key = node.slice
            return isinstance(key, ast.Constant) and isinstance(key.value, str) and bool(_FIELD.match(key.value))
        if isinstance(node, ast.Attribute):
            return bool(_FIELD.match(node.attr))
        return isinstance(node, ast.Call) and _name(node) == "get" and self.holds(node)

    # -- expressions --------------------------------------------------------------------------------------------------

    def holds(self, node: ast.AST | None) -> bool:
        """Whether an expression is an image of a record, a path to one, or a list of such."""
        if isinstance(node, ast.Name):
            return node.id in self.paths
        if isinstance(node, ast.Subscript):
            if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
                table = isinstance(node.value, ast.Name) and node.value.id in self.built
                return table or bool(_FIELD.match(node.slice.value))
            return self.holds(node.value)
        if isinstance(node, ast.Attribute):
            row = isinstance(node.value, ast.Name) and node.value.id in self.rows
            return row and bool(_FIELD.match(node.attr))
        if isinstance(node, ast.Call):
            if _name(node) not in _PASSES:
                return False
            field = node.args[0] if node.args and _name(node) in ("get", "pop") else None
            if isinstance(field, ast.Constant) and isinstance(field.value, str):
                return bool(_FIELD.match(field.value))
            receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
            return any(self.holds(part) for part in (*node.args, receiver))
        if isinstance(node, COMPREHENSIONS):
            parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
            return any(self.holds(part) for part in parts)
        if isinstance(node, ast.BinOp | ast.JoinedStr | ast.FormattedValue | ast.List | ast.Tuple | ast.Set | ast.Dict | ast.IfExp | ast.Starred):  # fmt: skip
            return any(self.holds(child) for child in children(node))
        return False

    def _given(self, node: ast.Call) -> list[ast.expr]:
        """The images of records that a call takes; nothing for one that only counts, shows or passes them on."""
        name = _name(node)
        arguments = [*node.args, *(k.value for k in node.keywords)]
        if name in _MAPS:
            receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
            function = next((n for n in map(_function, arguments) if n), "")
            held = [part for part in (*arguments, *receiver) if self.holds(part)]
            return held if function and function not in _TAKES_NONE | _PASSES else []
        if not name or name in _TAKES_NONE or name in _PASSES:
            return []
        return [argument for argument in arguments if self.holds(argument)]

    def _whole(self, node: ast.expr) -> set[str]:
        """Lists that are gone through without a condition to make this expression."""
        if isinstance(node, ast.Name):
            made = self.made_of.get(node.id, set())
            return {node.id, *made} if made else set()
        if isinstance(node, ast.Subscript):
            return set() if isinstance(node.slice, ast.Slice) else {ast.unparse(node)[:200]}
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            first = node.generators[0]
            return {ast.unparse(first.iter)[:200]} if len(node.generators) == 1 and not first.ifs else set()
        if isinstance(node, ast.Call) and _name(node) in _PASSES:
            return set().union(*(self._whole(argument) for argument in node.args)) if node.args else set()
        return set()


def _name(node: ast.Call) -> str:
    return _function(node.func)


def _function(node: ast.AST) -> str:
    """The last part of a function's name, "" of what is none."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _root(node: ast.AST) -> str:
    """The name whose object an expression changes."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Starred):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _unconditional(body: Iterable[ast.AST]) -> list[ast.AST]:
    """Nodes of a loop's body that run for every element: nothing where it may go on or leave early."""
    found: list[ast.AST] = []
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Continue | ast.Break | ast.Return):
            return []
        if isinstance(node, ast.If) and any(
            isinstance(inner, ast.Continue | ast.Break | ast.Return) for inner in descendants(node)
        ):
            return []
        if isinstance(node, (ast.If, *LOOPS, ast.FunctionDef, ast.Lambda)):
            continue
        found.append(node)
        waiting += children(node)
    return found
