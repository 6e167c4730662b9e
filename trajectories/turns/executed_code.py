"""What executed code does in a run: Python with the run's own modules, shell with its scripts.

The texts of files are kept as they are written, so that a command that starts a script, or code
that imports a module, shows what the file does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from .actions import Part, split_shell
from .case_ids import cases_in
from .python_reader import ALL, Loop, Module, Piece, read_module
from .shell import Command, file_name, listed_commands, words_asked
from .shell_facts import shell_facts

MAX_DEPTH = 4
"""Depth to which scripts that start scripts are followed."""
MAX_STARTS = 60
"""Scripts that one turn starts, directly or through other scripts; more are not followed."""
MAX_READ = 5_000_000
"""Characters of written Python files that are read in a run.

A file that is appended to a thousand times is not a program.
"""
_WORK = frozenset(["forward_pass", "writes_outputs"])
_LOADS = frozenset(["loads_inputs"])
_FILE_PROGRAMS = re.compile(
    r"cat|cd|chmod|cp|curl|diff|du|echo|file|find|for|git|grep|head|jq|ln|ls|mkdir|mv|pip|rm|rsync"
    r"|set|sort|stat|tail|tar|tee|test|touch|tree|unzip|wc|wget|zip|\["
)
"""Programs that fetch, pack, show or move files; they make no results."""


@dataclass
class CodeFacts:
    """Facts of executed code, each with the line it was first seen on, and its number of cases."""

    facts: dict[str, str] = field(default_factory=dict)
    scope: int = 0
    """Cases for which a model runs or an output is written: 0 none, n, or ALL."""
    loaded: int = 0
    """Cases whose inputs are loaded: 0 none, n, or ALL."""
    scope_from_command: bool = False
    """Whether a command line gives the number of cases."""
    started: list[str] = field(default_factory=list)
    """Paths of the scripts that were started."""

    def merge(self, other: CodeFacts) -> None:
        """Add the facts of another piece of code; the scripts it starts are not added."""
        self.facts = {**other.facts, **self.facts}
        self.scope = max(self.scope, other.scope)
        self.loaded = max(self.loaded, other.loaded)
        self.scope_from_command |= other.scope_from_command

    def delivers(self, command: Command, cases: int) -> None:
        """Record that a command writes deliverables of so many cases."""
        self.facts.setdefault("writes_outputs", command.line)
        self.scope = max(self.scope, cases)


@dataclass
class Files:
    """The files that a run has written so far, by name, and what its Python modules do."""

    outputs: re.Pattern[str]
    """Matches places of deliverables."""
    case_ids: frozenset[str]
    """Ids of the run's cases."""
    prefixes: tuple[str, ...] = ()
    """The ids without their numbers."""
    texts: dict[str, str] = field(default_factory=dict)
    modules: dict[str, Module] = field(default_factory=dict)
    """By stem of the file's name."""
    read: int = 0
    """Characters of Python files that were read."""

    def store(self, path: str, text: str) -> None:
        """Keep a written file; a package goes by its folder's name, as imports name it."""
        written = PurePosixPath(path)
        name = written.name
        if name in ("__init__.py", "__main__.py") and written.parent.name:
            name = f"{written.parent.name}.py"
        self.texts[name] = text
        if not name.endswith(".py"):
            return
        self.read += len(text)
        if self.read <= MAX_READ:
            module = read_module(text, self.outputs, self.modules, self.prefixes)
            if module is not None:
                self.modules[name[:-3]] = module

    def only_looks(self, path: str) -> bool:
        """Whether a written module reads data, writes nothing and applies no model."""
        module = self.modules.get(PurePosixPath(path).stem) if path.endswith(".py") else None
        if module is None:
            return False
        facts = {fact for piece in module.pieces() for fact in piece.facts}
        return "loads_inputs" in facts and facts.isdisjoint(
            {*_WORK, "writes_files", "loads_model", "training"}
        )

    def python(self, part: Part, result: CodeFacts) -> None:
        """Add the facts of a Python program that runs now; none if it does not parse."""
        module = read_module(part.text, self.outputs, self.modules, self.prefixes)
        if module is not None:
            result.merge(self._run(module, _command_before(part.before), result, 0))
        if "\n!" in f"\n{part.text}":  # shell lines of a notebook
            lines = [line[1:] for line in part.text.split("\n") if line[:1] in ("!", "%")]
            self.shell("\n".join(lines), result)

    def shell(self, text: str, result: CodeFacts, depth: int = 0) -> None:
        """Add the facts of a shell text and of the scripts that it starts."""
        commands = listed_commands(text)
        for name, quote in shell_facts(commands, self.outputs).items():
            result.facts.setdefault(name, quote)
        for command in commands:
            self._copy(command)
            path = self._script(command)
            if path is None:
                if command.words and self._delivers(command):
                    result.delivers(command, self.asked(command) or 1)
            elif len(result.started) >= MAX_STARTS:
                return
            else:
                self._start(path, command, result, depth)

    def _script(self, command: Command) -> str | None:
        """The script that a command starts; `python -m` counts if the run wrote the module."""
        if command.script is not None or not command.module:
            return command.script
        name = f"{command.module.rpartition('.')[2]}.py"
        return name if name in self.texts else None

    def _start(self, path: str, command: Command, result: CodeFacts, depth: int) -> None:
        name = file_name(path)
        result.started.append(path)
        result.facts.setdefault("runs_script", command.line)
        module = self.modules.get(name[:-3]) if name.endswith(".py") else None
        if module is not None:
            result.merge(self._run(module, command, result, depth + 1))
        elif name in self.texts and depth < MAX_DEPTH:
            for part in split_shell(self.texts[name]):
                if part.kind == "shell":
                    self.shell(part.text, result, depth + 1)
                elif part.kind == "python":
                    self.python(part, result)
        elif self._delivers(command):
            # A tool that came with the task: only its command line names the place of the outputs.
            result.delivers(command, self.asked(command) or 1)

    def _copy(self, command: Command) -> None:
        """Follow a copied file of the run: `cp a.py b.py`, `sed ... a.py > b.py`."""
        targets = command.targets
        if not targets and command.program in ("cp", "mv"):
            targets = command.operands[-1:]
        sources = [name for word in command.operands if (name := file_name(word)) in self.texts]
        if not sources or not targets:
            return
        if PurePosixPath(targets[0]).suffix == PurePosixPath(sources[0]).suffix:
            self.store(targets[0], self.texts[sources[0]])

    def asked(self, command: Command) -> int | None:
        """How many cases a command line asks for, by ids or by the loop around it.

        None if it does not say.
        """
        words = (*command.words[1:], *(value for _, value in command.variables))
        text = " ".join(words)
        patterns = tuple(filter(self._stands_for_cases, words))
        if patterns:
            return words_asked(patterns) or ALL
        uses_loop = "$" in text or "{}" in text or "xargs" in command.prefixes
        if command.loop is None or not uses_loop:
            return len(cases_in(text, self.case_ids)) or None
        in_loop = len(cases_in(" ".join(command.loop), self.case_ids))
        return in_loop or words_asked(command.loop) or ALL

    def _stands_for_cases(self, word: str) -> bool:
        """Whether a shell word expands to several words: `$(ls)`, `case_*`, `case_{1..8}`."""
        if "$(" in word or "*" in word:
            return True
        return bool(self.prefixes) and word.startswith(self.prefixes) and "{" in word

    def _delivers(self, command: Command) -> bool:
        """Whether a command line names the place of the outputs: by an option, or after inputs."""
        if _FILE_PROGRAMS.fullmatch(command.program):
            return False
        for name, value in command.options.items():
            if value and name.startswith("o") and self.outputs.search(value):
                return True
        paths = [word for word in command.words[1:] if "/" in word]
        are_outputs = {self.outputs.search(path) is not None for path in paths}
        return are_outputs == {True, False}

    def _run(
        self, module: Module, command: Command | None, result: CodeFacts, depth: int
    ) -> CodeFacts:
        """The facts of running a module, with the functions of the run's modules that it names.

        Scripts that it starts are added to `result`.
        """
        run = CodeFacts()
        pieces, functions = self._entered(module)
        for piece in pieces:
            run.facts = {**piece.facts, **run.facts}
        loops = [loop for piece in pieces for loop in piece.loops]
        if run.facts.keys() & _WORK:
            run.scope = _largest_loop(loops, functions, _WORK)
        if run.facts.keys() & _LOADS:
            run.loaded = _largest_loop(loops, functions, _LOADS)
        if command is not None:
            if "writes_files" in run.facts and self._delivers(command):
                run.delivers(command, 1)
            asked = self.asked(command)
            if asked is not None:
                run.scope_from_command = run.scope > 0
                run.scope = asked if run.scope else 0
                run.loaded = asked if run.loaded else 0
        if depth < MAX_DEPTH:
            for line in [line for piece in pieces for line in piece.commands]:
                self.shell(line, result, depth + 1)
        return run

    def _entered(self, module: Module) -> tuple[list[Piece], dict[str, list[Piece]]]:
        """The pieces that a module enters by name, and all functions of the modules in reach."""
        reach = [module]
        for importer in reach:  # grows while it is read
            for stem in sorted(importer.imports & self.modules.keys()):
                imported = self.modules[stem]
                if not any(imported is reached for reached in reach):
                    reach.append(imported)
        functions: dict[str, list[Piece]] = {}
        for reached in reach:
            for name, pieces in reached.functions.items():
                functions.setdefault(name, []).extend(pieces)
        entered = [module.body, module.main, *(imported.body for imported in reach[1:])]
        names: set[str] = set()
        for piece in entered:  # grows while it is read
            for name in sorted(piece.names & functions.keys() - names):
                names.add(name)
                entered += functions[name]
        return entered, functions


def _largest_loop(
    loops: Iterable[Loop], functions: dict[str, list[Piece]], facts: frozenset[str]
) -> int:
    """The size of the largest loop that shows one of the facts, itself or by what it calls."""
    names = _functions_with(functions, facts)
    sizes = [loop.size for loop in loops if loop.facts & facts or loop.names & names]
    return max(sizes, default=1)


def _functions_with(functions: dict[str, list[Piece]], facts: frozenset[str]) -> set[str]:
    """Names of the functions that show one of the facts, themselves or by those they name."""
    callers: dict[str, list[str]] = {}
    pending: list[str] = []
    for name, pieces in functions.items():
        for piece in pieces:
            if piece.facts.keys() & facts:
                pending.append(name)
            for called in piece.names & functions.keys():
                callers.setdefault(called, []).append(name)
    names: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in names:
            names.add(name)
            pending += callers.get(name, ())
    return names


def _command_before(before: str) -> Command | None:
    """The command line of a here-document that Python runs."""
    commands = listed_commands(before) if before else ()
    return next((c for c in reversed(commands) if c.program == "python"), None)
