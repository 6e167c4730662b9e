"""What each turn executed: its own code without the files that it only writes, with the scripts that it runs.

Agents write a pipeline to a file in one turn and run or import it in another. When it is asked whether something was
executed, a file's text counts where it is run, not where it is written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple

from ...trajectories.code_parts import Part, parse, script_runs, split
from ...trajectories.models import Action, Run, Turn
from ...trajectories.turn_features import TurnFeatures
from ...trajectories.world import file_name
from .shown import Shown, Source, read_source

MAX_TEXT = 200_000
"""Characters of a turn's code, and of its output, that the rules read."""
MAX_LINE = 2_000

_COMMENT = re.compile(r"^[ \t]*#[^\n]*|(?<=[\s;])#[ \t][^\n]*", re.MULTILINE)
_SHOWS = re.compile(r"\b(?:print|display|logging\.\w+|logger\.\w+|log|info)\(|\bassert\b|\becho\b|\bprintf\b")
_MODULE_RUN = re.compile(r"\bpython[\d.]{0,5} -m ([\w.]{1,80})")
_PROCESS = re.compile(r"subprocess|os\.system|sys\.executable|runpy|%run|\bexec\(")
_HELP = re.compile(r"\.py\b[^\n|;&]{0,200}\s(?:--help|-h|--version)(?=[\s|;&]|$)")
"""A script that is asked for its usage: it runs on nothing."""
_INLINE = re.compile(r"\bpython[\d.]{0,5} (?:-\w+ ){0,2}-c\b")
_REDIRECT = re.compile(r">\s{0,4}[\w./~$\{\}'\"-]{0,150}$")
_ASKS_LAST = re.compile(r"(?:^|[\n;&|])[ \t]*(?:grep|egrep|diff|cmp|test|\[)[ \t][^\n]*\Z")
_WORD = re.compile(r"[A-Za-z_]\w*")
_MAIN = re.compile(r"^if __name__ ?==", re.MULTILINE)
_LOOKED_FOR = re.compile(
    r"""\.(?:index|rindex|find|rfind|split|rsplit|partition|rpartition|startswith|endswith|count|replace|removeprefix)\(\s{0,4}[rf]?(['"])(?:(?!\1)[^\n]){0,200}\1"""
    r"""|\bre\.(?:search|match|findall|finditer|split|sub|compile)\(\s{0,4}[rf]?(['"])(?:(?!\2)[^\n]){0,200}\2"""
    r"""|(['"])(?:(?!\3)[^\n]){1,200}\3 (?:not )?in (?=\w)"""
    r"""|(?:^|[|;&(\n])[ \t]*(?:e?grep|rg|ack|awk|sed)[ \t](?:[^\n|;&'"]|'[^'\n]{0,300}'|"[^"\n]{0,300}"){1,40}""",
    re.MULTILINE,
)
"""Words that are looked for in a text (a script that is read in parts, a log): none of them is run."""
_IMPORT = re.compile(r"(?:^|[\n;:'\"])[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import|import[ \t]+([\w., \t]+))")


@dataclass(frozen=True)
class Step:
    """One turn as the rules see it. `code` and `out` hold succeeded actions only, comments left out."""

    turn: int
    facts: TurnFeatures
    ok: bool
    """At least one action ran and did not fail."""
    failed: bool
    own: str
    code: str
    """`own` with the written scripts that it ran."""
    attempted: str
    """`code` of every action, failed ones included."""
    out: str
    usage_only: bool = False
    """Every script that it starts was only asked for its usage (`--help`)."""
    started: tuple[str, ...] = ()
    """Command lines that start scripts whose text the agent did not write (tools that came with the task)."""

    programs: tuple[str, ...] = ()
    """Python texts that ran: cells, inline programs and started scripts."""
    library: tuple[str, ...] = ()
    """Modules of the run's own that they import."""
    read: Callable[[str], Source | None] = field(default=read_source, repr=False, compare=False)
    """Parses them; the steps of a run share what was parsed."""

    @cached_property
    def looks(self) -> Shown:
        """What the printed values are, followed through names and the run's own functions."""
        return Shown(self.programs, self.library, self.read)

    @cached_property
    def shown(self) -> str:
        """The parts of the code that print, assert or log something."""
        return shown(self.code)


def steps(run: Run, facts: tuple[TurnFeatures, ...], failed: frozenset[tuple[int, int]]) -> tuple[Step, ...]:
    """One step a turn. `failed` names actions (turn, position) that failed although they came back as passed."""
    files: dict[str, str] = {}
    read = cache(read_source)  # lives as long as the steps do
    return tuple(
        replace(_step(turn, fact, files, failed), read=read) for turn, fact in zip(run.turns, facts, strict=True)
    )


def shown(code: str) -> str:
    """Arguments of print, logging and display calls, assert statements and echo lines, one a line."""
    found: list[str] = []
    end = 0
    for match in _SHOWS.finditer(code):
        if match.start() < end:
            continue  # inside the last one
        if match.group().endswith("("):
            end = _closing(code, match.end())
        else:
            line = code.find("\n", match.end())
            end = line if line >= 0 else len(code)
        found.append(code[match.end() : end])
    return "\n".join(found)


def _closing(code: str, start: int) -> int:
    """Where the parenthesis opened before `start` closes; a bound keeps hostile code cheap."""
    depth = 1
    for position in range(start, min(len(code), start + 4_000)):
        char = code[position]
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                return position
    return min(len(code), start + 4_000)


def clip(text: str) -> str:
    """`text` with its size and its lines bounded; its end is kept as well as its beginning."""
    if len(text) > MAX_TEXT:
        text = f"{text[: MAX_TEXT // 2]}\n{text[-MAX_TEXT // 2 :]}"
    if len(text) <= MAX_LINE:
        return text
    lines = text.split("\n")
    return text if max(map(len, lines)) <= MAX_LINE else "\n".join(line[:MAX_LINE] for line in lines)


def _step(turn: Turn, fact: TurnFeatures, files: dict[str, str], failed: frozenset[tuple[int, int]]) -> Step:
    own: list[str] = []
    code: list[str] = []
    attempted: list[str] = []
    out: list[str] = []
    passed = broken = False
    helped = False
    started: list[str] = []
    programs: list[str] = []
    library: list[str] = []
    for position, action in enumerate(turn.actions):
        parts = split(action)
        ran = _COMMENT.sub("", "\n".join(_running(parts)))
        for part in parts:
            if part.kind == "file" and part.path:
                name = file_name(part.path)
                files[name] = f"{files.get(name, '')}\n{part.text}" if part.append else part.text
        shell = "\n".join(part.text for part in parts if part.kind == "shell")
        helped = helped or bool(_HELP.search(shell))
        scripts, modules = _used(ran, parts, files)
        callers = "\n".join((ran, *scripts))
        called = _words(callers) if modules else frozenset()
        kept = [
            _reached(text, called.union(*(_pieces(other).words for other in modules if other is not text)))
            for text in modules
        ]
        used = "\n".join((*map(without_comments, scripts), *kept))
        attempted += [ran, used]
        good = _answered(action) or (_passed(action) and (turn.index, position) not in failed)
        if action.kind == "execute":
            passed, broken = passed or good, broken or not good
        if good:
            own.append(ran)
            started += _foreign(shell, files)
            code += [ran, used]
            programs += [part.text for part in parts if part.kind == "python"]
            programs += scripts
            library += modules
            if action.observation is not None:
                out.append(action.observation.text)
    return Step(
        turn=turn.index, facts=fact, ok=passed, failed=broken, own=clip("\n".join(own)), code=clip("\n".join(code)),
        attempted=clip("\n".join(attempted)), out=clip("\n".join(out)),
        usage_only=helped and not any(_runs_work(action) for action in turn.actions), started=tuple(started),
        programs=tuple(programs), library=tuple(library),
    )  # fmt: skip


def _runs_work(action: Action) -> bool:
    """An executed action does more than ask scripts for their usage: it runs Python text, or a script on something."""
    if action.kind != "execute":
        return False
    parts = split(action)
    shell = _HELP.sub("", "\n".join(part.text for part in parts if part.kind == "shell"))
    working = any(part.kind not in ("file", "shell") and part.text.strip() for part in parts)
    runs = [line for line in shell.split("\n") if "py_compile" not in line and script_runs(line)]
    return working or bool(runs) or bool(_INLINE.search(shell))


def _foreign(shell: str, files: dict[str, str]) -> list[str]:
    return [
        line
        for line in shell.replace("\\\n", " ").split("\n")
        if not _HELP.search(line) and any(PurePosixPath(p).name not in files for p in script_runs(line))
    ]


def _passed(action: Action) -> bool:
    return action.observation is not None and action.observation.kind in ("ok", "unknown")


def _answered(action: Action) -> bool:
    """The exit code 1 is the answer of a question that closes the command: grep counts no hit, diff finds a difference."""
    seen = action.observation
    if seen is None or seen.kind != "failed" or seen.exit_code != 1 or seen.stderr.strip():
        return False
    return bool(seen.stdout.strip()) and bool(_ASKS_LAST.search(action.code.rstrip()))


def _running(parts: Iterable[Part]) -> list[str]:
    """Texts that run here and now; a module that a cell writes as a string is taken out of the cell."""
    parts = list(parts)
    written = [part.text for part in parts if part.kind == "file" and part.text]
    texts = []
    for part in parts:
        if part.kind == "file":
            continue
        text = part.text
        for file in written:
            text = text.replace(file, "")
        if written and part.kind == "python":
            text = _without_strings(text, frozenset(written))
        texts.append(text)
    return texts


def _without_strings(text: str, values: frozenset[str]) -> str:
    """Code without the string literals of these values; escapes keep a literal from standing in it as it is written."""
    tree = parse(text)
    if tree is None:
        return text
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in values and (found := ast.get_source_segment(text, node)):
            text = text.replace(found, "''")
            return _without_strings(text, values)
    return text


def _used(ran: str, parts: Iterable[Part], files: dict[str, str]) -> tuple[list[str], list[str]]:
    """Texts of known files that the code starts as scripts (whole), and that it imports (without their main part)."""
    parts = list(parts)
    shell = "\n".join(part.text for part in parts if part.kind == "shell")
    started = {PurePosixPath(p).name for p in script_runs(shell)}
    started |= {f"{module.rsplit('.', 1)[-1]}.py" for module in _MODULE_RUN.findall(shell)}
    # A script that a run one is made from (sed, cp), or one that a cell starts as a process; a redirect only writes it.
    calls = shell if started else ""
    calls += ran if _PROCESS.search(ran) else ""
    for name in files:
        if any(
            not _REDIRECT.search(calls[: m.start()][-200:])
            for m in re.finditer(rf"(?<![\w.-]){re.escape(name)}\b", calls)
        ):
            started.add(name)
    scripts = [text for name, text in files.items() if name in started]
    modules: dict[str, str] = {}
    waiting = [ran, *scripts]
    while waiting:  # a module that a started script imports, and one that this module imports in turn
        imported = _imported(waiting.pop())
        for name, text in files.items():
            if name not in started and name not in modules and name.endswith(".py") and name[:-3] in imported:
                main = _MAIN.search(text)
                modules[name] = text[: main.start()] if main else text
                waiting.append(modules[name])
    return scripts, list(modules.values())


@lru_cache(maxsize=32)
def _imported(text: str) -> frozenset[str]:
    """Every part of the module names that a text imports. Kept: many turns import the same modules."""
    return frozenset(
        part
        for module, names in _IMPORT.findall(text)
        for name in (module or names).split(",")
        for part in name.strip().split(" ")[0].split(".")
    )


def _reached(text: str, called: frozenset[str]) -> str:
    """A module without its comments, and without the functions that neither the code that imports it (by its words) nor
    a kept part of it names."""
    pieces = _pieces(text)
    if pieces.statements is None:
        return without_comments(text)
    kept, waiting = list(pieces.statements), dict(pieces.functions)
    named = called.union(*(piece.words for piece in kept))
    while reached := [name for name in waiting if name in named]:
        for name in reached:
            kept.append(waiting.pop(name))
            named |= kept[-1].words
    return "\n".join(piece.code for piece in kept)


def without_searches(code: str) -> str:
    """Code without the words that it only looks for in a text: `src.index("@torch.no_grad")`, `grep -n generate`."""
    return _LOOKED_FOR.sub(" ", code)


@lru_cache(maxsize=32)
def without_comments(text: str) -> str:
    """A text as steps hold it. Kept: many turns run the same scripts."""
    return _COMMENT.sub("", text) if "#" in text else text


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text))


class _Piece(NamedTuple):
    """One statement of a module without its comments, and the words in it, those of the comments among them."""

    code: str
    words: frozenset[str]


class _Pieces(NamedTuple):
    """A module's words, its statements (None when it does not parse), and its functions by name."""

    words: frozenset[str]
    statements: tuple[_Piece, ...] | None
    functions: tuple[tuple[str, _Piece], ...]


@lru_cache(maxsize=32)
def _pieces(text: str) -> _Pieces:
    """Kept: many turns import the same module."""
    tree = parse(text)
    if tree is None:
        return _Pieces(_words(text), None, ())
    lines = text.split("\n")
    statements: list[_Piece] = []
    functions: list[tuple[str, _Piece]] = []
    for node in tree.body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        source = "\n".join(lines[first - 1 : node.end_lineno])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append((node.name, _Piece(without_comments(source), _words(source))))
        else:
            statements.append(_Piece(without_comments(source), _words(source)))
    return _Pieces(_words(text), tuple(statements), tuple(functions))
