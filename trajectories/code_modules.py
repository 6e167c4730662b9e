"""Parsed source of a run: modules, the library of all that it wrote, and the facts that running some of it shows."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from .code_parts import parse
from .syntax_tree import FUNCTIONS, descendants


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
    told: bool = False
    """Whether a command line says for how many cases the work was done."""
    weights: set[str] = field(default_factory=set)
    """Names of the weight files mentioned by executed code."""

    def note(self, fact: str, quote: str) -> None:
        self.seen.setdefault(fact, quote)

    def merge(self, other: Facts) -> None:
        for fact, quote in other.seen.items():
            self.note(fact, quote)
        self.scope, self.loaded = max(self.scope, other.scope), max(self.loaded, other.loaded)
        self.open_ended |= other.open_ended
        self.told |= other.told
        self.weights |= other.weights


@dataclass(frozen=True)
class Library:
    """The functions and classes' methods that modules written earlier in the run define, by name."""

    functions: dict[str, tuple[ast.FunctionDef | ast.AsyncFunctionDef, Module]] = field(default_factory=dict)
    modules: dict[str, Module] = field(default_factory=dict)
    """Module by stem of its file name."""


@dataclass(frozen=True)
class Module:
    """Parsed source; `functions` by name, methods under their bare name, what makes an object under its class's."""

    tree: ast.Module
    lines: tuple[str, ...]
    functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef]
    aliases: dict[str, str]
    """Names bound by imports, with the stem of the module each comes from."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Names bound by `from module import name as other`, with the name in that module."""
    rebound: frozenset[str] = frozenset()
    """Names that functions set outside themselves (global, nonlocal): their values are not followed."""
    callables: dict[str, ast.FunctionDef] = field(default_factory=dict)
    """Classes whose objects are called like functions, each with its __call__."""

    @staticmethod
    def of(source: str) -> Module | None:
        """The module of this source, None when it does not parse."""
        tree = parse(source)
        if tree is None:
            return None
        nodes = descendants(tree)
        found = {n.name: n for n in nodes if isinstance(n, FUNCTIONS)}
        callables: dict[str, ast.FunctionDef] = {}
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                made = (n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
                found.update((node.name, function) for function in made)
                called = (n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__call__")
                callables.update((node.name, function) for function in called)
        aliases, renamed = {}, {}
        for node in nodes:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    if isinstance(node, ast.ImportFrom) and alias.asname:
                        renamed[alias.asname] = alias.name
                    origin = (getattr(node, "module", None) or alias.name).rsplit(".", 1)[-1]
                    aliases[(alias.asname or alias.name).split(".", 1)[0]] = origin
        rebound = frozenset(name for n in nodes if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names)
        return Module(tree, tuple(source.split("\n")), found, aliases, renamed, rebound, callables)
