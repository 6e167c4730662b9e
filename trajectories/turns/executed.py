"""What executed code shows of a run: Python with the run's own modules that it names, shell with
the scripts that it starts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from .actions import Part, split_shell
from .cases import cases_in
from .python_module import ALL, Module, Piece, Size
from .python_uses import read_module
from .shell import Command, file_name, listed_commands, words_asked
from .shell_facts import shell_facts

MAX_DEPTH = 4
"""Scripts that start scripts are followed so deep."""
MAX_STARTS = 60
"""Scripts that one turn starts, and those that these start; more are not followed."""
MAX_READ = 5_000_000
"""Characters of written Python files that are read in a run: a file that is added to a thousand
times is no program."""
_GUESSES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("forward_pass", r"\.(?:predict|generate|forward|infer)\(|no_grad\(\)|inference_mode\(\)"),
        (
            "loads_model",
            r"from_pretrained\(|load_state_dict\(|torch\.load\(|load_model\(|InferenceSession\(",
        ),
        ("training", r"\.backward\(|optim\w*\.step\(|\.fit\("),
        ("checks_environment", r"__version__|cuda\.is_available|nvidia-smi"),
        ("loads_inputs", r"nib\.load\(|np\.load\(|Image\.open\(|imread\(|read_csv\(|json\.load\("),
        ("prints_statistics", r"print\(.{0,200}\.(?:min|max|mean|sum|std|unique)\("),
        ("prints_shapes", r"print\(.{0,200}\.(?:shape|dtype)"),
        ("writes_files", r"\.save\(|dump\(|to_csv\(|write_text\(|open\([^)]{0,200}['\"]w"),
    )
)
"""For code that does not parse, line by line."""
_WORK = frozenset(["forward_pass", "writes_outputs"])


@dataclass
class Shown:
    """Facts seen, each with the line it was first seen on, and for how many cases the work was
    done."""

    facts: dict[str, str] = field(default_factory=dict)
    scope: int = 0
    """Cases for which a model runs or an output is written: 0 none, n, or ALL."""
    loaded: int = 0
    """Cases whose inputs are loaded: 0 none, n, or ALL."""
    told: bool = False
    """Whether a command line says for how many cases."""
    weights: set[str] = field(default_factory=set)
    """Weight files that executed code names."""
    started: list[str] = field(default_factory=list)
    """Paths of the scripts that were started."""

    def merge(self, other: Shown) -> None:
        self.facts = {**other.facts, **self.facts}
        self.scope, self.loaded = max(self.scope, other.scope), max(self.loaded, other.loaded)
        self.told |= other.told
        self.weights |= other.weights


@dataclass
class Files:
    """The files that a run wrote so far, by name; of Python, what they use."""

    outputs: re.Pattern[str]
    known: frozenset[str]
    """Ids of the run's cases."""
    prefixes: tuple[str, ...] = ()
    """What their numbers follow."""
    texts: dict[str, str] = field(default_factory=dict)
    modules: dict[str, Module] = field(default_factory=dict)
    """By stem of the file's name."""
    read: int = 0
    """Characters of Python files that were read."""

    def store(self, path: str, text: str) -> None:
        """Keep what is written; a package is known by its folder, as imports name it."""
        given = PurePosixPath(path)
        if given.name in ("__init__.py", "__main__.py") and given.parent.name:
            name = f"{given.parent.name}.py"
        else:
            name = given.name
        self.texts[name] = text
        if name.endswith(".py"):
            self.read += len(text)
            module = (
                None
                if self.read > MAX_READ
                else read_module(text, self.outputs, self.modules, self.prefixes)
            )
            if module is not None:
                self.modules[name[:-3]] = module

    def only_looks(self, path: str) -> bool:
        """Whether a written module reads data, writes nothing and applies no model."""
        module = self.modules.get(PurePosixPath(path).stem) if path.endswith(".py") else None
        if module is None:
            return False
        pieces = [
            module.body,
            module.main,
            *(piece for known in module.functions.values() for piece in known),
        ]
        facts = {fact for piece in pieces for fact in piece.facts}
        return "loads_inputs" in facts and not facts & {
            *_WORK,
            "writes_files",
            "loads_model",
            "training",
        }

    def python(self, part: Part, shown: Shown) -> None:
        """Read a program that runs here and now."""
        module = read_module(part.text, self.outputs, self.modules, self.prefixes)
        if module is None:
            self._guess(part.text, shown)
        else:
            found = self._run(module, _command_before(part.before), shown, 0)
            shown.merge(found)
        if "\n!" in f"\n{part.text}":
            self.shell(
                "\n".join(line[1:] for line in part.text.split("\n") if line[:1] in ("!", "%")),
                shown,
            )

    def shell(self, text: str, shown: Shown, depth: int = 0) -> None:
        """Read shell text with the scripts that it starts."""
        listed = listed_commands(text)
        for name, quote in shell_facts(listed, self.outputs).items():
            shown.facts.setdefault(name, quote)
        for command in listed:
            path = command.script or (
                f"{command.module.rsplit('.', 1)[-1]}.py" if command.module else None
            )
            self._copied(command)
            if path is None or (command.script is None and file_name(path) not in self.texts):
                if command.words and self._delivers(command):
                    shown.facts.setdefault("writes_outputs", command.line)
                    shown.scope = max(shown.scope, self.asked(command) or 1)
                continue
            if len(shown.started) >= MAX_STARTS:
                return
            name = file_name(path)
            shown.started.append(path)
            shown.facts.setdefault("runs_script", command.line)
            if name.removesuffix(".py") in self.modules and name.endswith(".py"):
                shown.merge(self._run(self.modules[name[:-3]], command, shown, depth + 1))
            elif name in self.texts and depth < MAX_DEPTH:
                for part in split_shell(self.texts[name]):
                    if part.kind == "shell":
                        self.shell(part.text, shown, depth + 1)
                    elif part.kind == "python":
                        self.python(part, shown)
            elif self._delivers(command):
                # A given tool, whose code is not known: its command line names the place of the
                # outputs.
                shown.facts.setdefault("writes_outputs", command.line)
                shown.scope = max(shown.scope, self.asked(command) or 1)

    def _copied(self, command: Command) -> None:
        """A file of the run's own that is copied, or changed on the way: cp a.py b.py, sed ... a.py
        > b.py."""
        targets = command.targets or (
            command.operands[-1:] if command.program in ("cp", "mv") else ()
        )
        source = next(
            (name for word in command.operands if (name := file_name(word)) in self.texts), None
        )
        if (
            source is not None
            and targets
            and PurePosixPath(targets[0]).suffix == PurePosixPath(source).suffix
        ):
            self.store(targets[0], self.texts[source])

    def asked(self, command: Command) -> int | None:
        """How many cases a command line asks for: by ids, by the loop around it; None where it does
        not say."""
        given = (*command.words[1:], *(value for _, value in command.variables))
        text = " ".join(given)
        named = len(cases_in(text, self.known))
        listed = tuple(
            word
            for word in given
            if "$(" in word
            or "*" in word
            or (self.prefixes and word.startswith(self.prefixes) and "{" in word)
        )
        if listed:
            return words_asked(listed) or ALL
        if command.loop is None or (
            "$" not in text and "{}" not in text and "xargs" not in command.prefixes
        ):
            return named or None
        return len(cases_in(" ".join(command.loop), self.known)) or words_asked(command.loop) or ALL

    def _delivers(self, command: Command) -> bool:
        """Whether a command line sends results to the place of the outputs: as an option's value,
        or after the inputs."""
        if command.program in _FILERS:
            return False
        given = list(command.options.items())
        if any(self.outputs.search(value) for name, value in given if value and name[:1] == "o"):
            return True
        kinds = [bool(self.outputs.search(word)) for word in command.words[1:] if "/" in word]
        return True in kinds and False in kinds

    def _run(self, module: Module, command: Command | None, shown: Shown, depth: int) -> Shown:
        """What running a module shows, with what it enters by name in the modules of the run that
        it imports."""
        found = Shown()
        pieces, functions = self._entered(module)
        for piece in pieces:
            for fact, quote in piece.facts.items():
                found.facts.setdefault(fact, quote)
            found.weights |= piece.weights
        work, loads = _closed(functions, _WORK), _closed(functions, {"loads_inputs"})
        loops = [loop for piece in pieces for loop in piece.loops]
        for facts, names, attribute in (
            (_WORK, work, "scope"),
            ({"loads_inputs"}, loads, "loaded"),
        ):
            if found.facts.keys() & facts:
                sizes = [
                    _known(one.size, module, command)
                    for one in loops
                    if one.facts & facts or one.names & names
                ]
                setattr(found, attribute, max(sizes, default=1))
        asked = None if command is None else self.asked(command)
        if command is not None and "writes_files" in found.facts and self._delivers(command):
            found.facts.setdefault("writes_outputs", command.line)
            found.scope = max(found.scope, 1)
        elsewhere = command is not None and any(
            name in module.places and value[:1] == "/" and not self.outputs.search(value)
            for name, value in command.options.items()
        )
        # to a scratch folder: the run's own code is tried
        if elsewhere and "writes_outputs" in found.facts:
            found.facts["applies_module"] = found.facts.pop("writes_outputs")
        if asked is not None:
            found.told = found.scope > 0
            found.scope, found.loaded = (
                (asked if found.scope else 0),
                (asked if found.loaded else 0),
            )
        if depth < MAX_DEPTH:
            for line in [line for piece in pieces for line in piece.commands]:
                self.shell(line, shown, depth + 1)
        return found

    def _entered(self, module: Module) -> tuple[list[Piece], dict[str, list[Piece]]]:
        """The pieces that a module enters by name, and the functions of all modules that are in
        reach."""
        reach, waiting_modules = [module], [module]
        while waiting_modules:
            for stem in sorted(waiting_modules.pop().imports):
                own = self.modules.get(stem)
                if own is not None and not any(own is one for one in reach):
                    reach.append(own)
                    waiting_modules.append(own)
        functions: dict[str, list[Piece]] = {}
        for one in reach:
            for name, pieces in one.functions.items():
                functions.setdefault(name, []).extend(pieces)
        entered = [module.body, module.main, *(one.body for one in reach[1:])]
        seen: set[str] = set()
        for piece in entered:  # grows while it is read
            for name in sorted(piece.names & functions.keys() - seen):
                seen.add(name)
                entered += functions[name]
        return entered, functions

    def _guess(self, text: str, shown: Shown) -> None:
        for line in text.split("\n"):
            for name, pattern in _GUESSES:
                if name not in shown.facts and pattern.search(line[:1_000]):
                    shown.facts[name] = line.strip()[:160]
        if "writes_files" in shown.facts and self.outputs.search(text):
            shown.facts.setdefault("writes_outputs", shown.facts["writes_files"])
        if shown.facts.keys() & _WORK:
            shown.scope = max(shown.scope, 1)


_FILERS = frozenset(
    [
        "sort",
        "tar",
        "zip",
        "unzip",
        "curl",
        "wget",
        "tree",
        "find",
        "grep",
        "cp",
        "mv",
        "ls",
        "git",
        "pip",
        "cat",
        "echo",
        "rsync",
        "tee",
        "jq",
        "diff",
        "set",
        "mkdir",
        "head",
        "tail",
        "wc",
        "for",
        "cd",
        "test",
        "[",
        "rm",
        "chmod",
        "du",
        "stat",
        "file",
        "touch",
        "ln",
    ]
)
"""Programs that fetch, pack, show or move files; they make no results."""


def _closed(functions: dict[str, list[Piece]], facts: Iterable[str]) -> set[str]:
    """Names of the functions that show one of these facts, by themselves or by those that they
    name."""
    wanted = set(facts)
    users: dict[str, list[str]] = {}
    waiting: list[str] = []
    for name, pieces in functions.items():
        for piece in pieces:
            if piece.facts.keys() & wanted:
                waiting.append(name)
            for used in piece.names & functions.keys():
                users.setdefault(used, []).append(name)
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += users.get(name, ())
    return found


def _known(size: Size, module: Module, command: Command | None) -> int:
    """A size in numbers: of an option, what the command line gives it, else its default, else
    everything."""
    if isinstance(size, int):
        return size
    given = command.options if command is not None else {}
    if size == "argv" and command is not None:
        number = next((word for word in command.operands if word.isdigit()), "")
        return int(number[:6]) or ALL if number else ALL
    for name in (size, *(flag for flag, target in module.defaults.items() if target == size)):
        if given.get(name, "").isdigit():
            return int(given[name][:6]) or ALL
    default = module.defaults.get(size)
    return default if isinstance(default, int) and default > 0 else ALL


def _command_before(before: str) -> Command | None:
    """The command line of a here-document to Python."""
    return (
        next((c for c in reversed(listed_commands(before)) if c.program == "python"), None)
        if before
        else None
    )
