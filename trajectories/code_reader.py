"""One reading of running code: what is known at that point, and the facts it has shown so far."""

from __future__ import annotations

import ast
import re

from .code_evaluation import Scope
from .code_flow import Called, Flow
from .code_modules import Facts, Library, Module
from .code_names import Names


class Reader(Names, Flow):
    """One pass over executed statements, with what is known of names at that point."""

    def __init__(
        self, module: Module, library: Library, outputs: re.Pattern[str], arguments: int | None, depth: int = 0,
        shared: Reader | None = None, scope: Scope | None = None,
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

    def work(self, fact: str, node: ast.AST, size: int) -> None:
        """Note a fact that is seen on so many cases."""
        self.facts.note(fact, self.quote(node))
        self.facts.scope = max(self.facts.scope, size)
        if self.unknown_loops:
            self.facts.open_ended = True

    def quote(self, node: ast.AST) -> str:
        """The source line of a node, at most 160 characters of it."""
        line = getattr(node, "lineno", 0)
        return self.module.lines[line - 1].strip()[:160] if 0 < line <= len(self.module.lines) else ""
