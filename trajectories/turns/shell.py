"""Shell text as simple commands: words, places written, the pipe and the loop around them. Nothing
is ever run.

A scanner of its own: the parsers of shell that there are carry a grammar's binary or a copyleft
licence, and `shlex` knows no comments inside a line, no redirections and no lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import PurePosixPath
from typing import Literal

MAX_WORD = 2_000
_QUOTED = r"'[^']*'|\"(?:[^\"\\]|\\.)*\""
_EXPANSION = r"\$\([^()\n]{0,400}\)|\$\{[^}\n]{0,200}\}"
_KINDS = {
    "gap": r"[ \t\r]+|\\\n|(?<![^\s;|&(]) ?#[^\n]*",
    "end": r"\n|&&|\|\||;;|[;|()`]",
    "to": r"(?:\d|&)?>{1,2}(?:&\d)?|\d?<{1,3}|<\(",
    "and": "&",
    "word": rf"(?:{_QUOTED}|\\.|{_EXPANSION}|[^\s'\"\\;|&()<>`]|['\"\\])+",
}
"""Kinds of tokens, the first that fits."""
_TOKEN = re.compile("|".join(f"(?P<{kind}>{form})" for kind, form in _KINDS.items()), re.DOTALL)
_PIECE = re.compile(rf"({_QUOTED})|\\(.)|([^'\"\\]+|.)", re.DOTALL)
_KEYWORDS = frozenset(
    [
        "do",
        "then",
        "else",
        "elif",
        "if",
        "while",
        "until",
        "!",
        "{",
        "}",
        "time",
        "sudo",
        "nohup",
        "exec",
        "nice",
        "setsid",
    ]
)
_OF_WRAPPER = re.compile(r"-.*|\d+[smh]?|\{\}", re.DOTALL)
_SCRIPT = re.compile(r"(?!-)[\w./~${}-]{1,300}\.(?:py|sh|R|js|ipynb)")
_STARTERS = re.compile(
    r"python[\d.]*|ipython|torchrun|accelerate|bash|sh|Rscript|node|run|launch|uv|source|\."
)
_HELP = frozenset(["--help", "-h", "--version"])
_LISTED = re.compile(r"\{[\w.-]{0,80}(?:,[\w.-]{0,80}){1,100}\}")
_NUMBERS = re.compile(r"\{(\d{1,6})\.\.(\d{1,6})\}")


_INNER = re.compile(r"\$\(([^()\n]{0,400})\)")
_MAX_DEPTH = 2
_VARIABLE = re.compile(r"\$(?:\{(\w{1,60})\}|(\w{1,60}))")


@dataclass(frozen=True)
class Command:
    """One simple command. `words` begin with the program; quotes are taken off."""

    words: tuple[str, ...]
    line: str
    """The line on which it begins."""
    targets: tuple[str, ...] = ()
    """Files that its output is sent to."""
    piped: bool = False
    """Whether it reads what another command writes."""
    background: bool = False
    variables: tuple[tuple[str, str], ...] = ()
    """What is set for this command alone."""
    prefixes: tuple[str, ...] = ()
    """What stands before the program: sudo, nohup, time, if."""
    loop: tuple[str, ...] | None = None
    """The words that the loop around it goes through; None where there is none."""
    fed: tuple[str, ...] = ()
    """The words of the command whose output it reads."""

    @cached_property
    def program(self) -> str:
        """The program's name without its folder and its version: `python` of /usr/bin/python3.11."""
        name = file_name(self.words[0]) if self.words else ""
        return name.rstrip("0123456789.") if name.startswith(("python", "pip")) else name

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """Its words without the program and the options."""
        return tuple(word for word in self.words[1:] if not word.startswith("-"))

    @cached_property
    def script(self) -> str | None:
        """The script that it starts; asking for its help starts nothing."""
        if (
            not self.words
            or _HELP.intersection(self.words[:-1]) - {"-h"}
            or self.words[-1] in _HELP
        ):
            return None
        if self.words[0].startswith("./"):
            return self.words[0]
        if (
            _STARTERS.fullmatch(self.program) is None
            or "-c" in self.words[1:3]
            or self.module is not None
        ):
            return None
        return next((word for word in self.words[1:8] if _SCRIPT.fullmatch(word)), None)

    @cached_property
    def module(self) -> str | None:
        """The module that `python -m` starts."""
        if (
            self.program != "python"
            or "-m" not in self.words[1:5]
            or _HELP.intersection(self.words)
        ):
            return None
        place = self.words.index("-m") + 1
        return self.words[place] if place < len(self.words) else None

    @cached_property
    def options(self) -> dict[str, str]:
        """Options by name, dashes as underscores, with the word that follows: `--max-cases 3` is
        max_cases."""
        found = {name.lower(): value for name, value in self.variables}
        following = (*self.words[2:], "")
        for word, after in zip(self.words[1:], following, strict=False):
            if word.startswith("-"):
                name, given, value = word.lstrip("-").partition("=")
                found[name.replace("-", "_")] = (
                    value if given else "" if after.startswith("-") else after
                )
        return found


def file_name(path: str) -> str:
    """The last part of a path, as `PurePosixPath` has it."""
    name = path.rpartition("/")[2]
    return name if name not in ("", ".") else PurePosixPath(path).name


@lru_cache(maxsize=4)
def listed_commands(text: str) -> tuple[Command, ...]:
    """`commands` of a text, kept for the next who asks."""
    return tuple(commands(text))


def commands(text: str, depth: int = 0) -> Iterator[Command]:
    """The simple commands of a shell text in order, those in $(...) and (...) among them."""
    loops: list[tuple[str, ...]] = []
    words: list[str] = []
    targets: list[str] = []
    variables: dict[str, str] = {}
    piped = False
    goes_to: Literal["", "file", "nowhere"] = ""
    fed: tuple[str, ...] = ()
    start = 0
    for match in _TOKEN.finditer(f"{text}\n"):
        kind = match.lastgroup
        if kind == "word":
            if not words and not targets:
                start = match.start()
            word = match[0][:MAX_WORD] if "$(" in match[0] else _plain(match[0])
            if depth < _MAX_DEPTH:
                for inner in _INNER.findall(word):
                    yield from commands(inner, depth + 1)
            if "$" in word and variables:
                word = _VARIABLE.sub(
                    lambda found: variables.get(found[1] or found[2], found[0]), word
                )[:MAX_WORD]
            if goes_to != "nowhere":
                (targets if goes_to else words).append(word)
            goes_to = ""
        elif kind == "to":
            # Errors and what is read say nothing of results; `2>&1` and `<` name no file that is
            # written.
            written = ">" in match[0] and not match[0][-1].isdigit()
            goes_to = "" if not written else "nowhere" if match[0][0] == "2" else "file"
        elif kind in ("end", "and"):
            goes_to = ""
            if words or targets:
                command = _command(
                    words, targets, _line(text, start), piped, kind == "and", loops, fed
                )
                if command is not None:
                    if not command.words:  # set for what follows
                        variables.update(command.variables)
                    yield command
                fed = command.words if command is not None and match[0] == "|" else ()
                words, targets = [], []
            piped = match[0] == "|"


def script_runs(text: str) -> tuple[str, ...]:
    """Paths of the scripts that a shell text starts."""
    return tuple(script for command in commands(text) if (script := command.script) is not None)


def words_asked(words: tuple[str, ...]) -> int | None:
    """How many words these are when a shell has written them out; None where a folder or a variable
    says it."""
    total = 0
    for word in words:
        if inner := _INNER.search(word):
            last = list(commands(inner[1], 1))[-1:]
            count = _printed(last[0]) if last else None
        elif numbers := _NUMBERS.search(word):
            count = abs(int(numbers[2]) - int(numbers[1])) + 1
        elif listed := _LISTED.search(word):
            count = listed[0].count(",") + 1
        else:
            count = None if any(mark in word for mark in "$*?`") else 1
        if count is None:
            return None
        total += count
    return total or None


def _printed(command: Command) -> int | None:
    """How many words a command prints: seq 3, head -3, head -n 3, shuf -n 3; None where it cannot
    be told."""
    numbers = [
        int(word.lstrip("-n")[:6]) for word in command.words[1:] if word.lstrip("-n").isdigit()
    ]
    if command.program == "seq" and numbers:
        return max(1, numbers[-1] - (numbers[0] if len(numbers) > 1 else 1) + 1)
    return (numbers[0] if numbers else 10) if command.program in ("head", "shuf") else None


def _command(
    words: list[str],
    targets: list[str],
    line: str,
    piped: bool,
    background: bool,
    loops: list[tuple[str, ...]],
    fed: tuple[str, ...],
) -> Command | None:
    """The command of these words; None for what only opens or closes a loop."""
    if words[:1] == ["for"]:
        loops.append(tuple(words[3:]) if words[2:3] == ["in"] else ())
        return None
    if words[:1] == ["done"] and loops:
        loops.pop()
        return None
    loop: tuple[str, ...] | None = None
    prefixes: list[str] = []
    variables: list[tuple[str, str]] = []
    place, end = 0, len(words)
    while place < end:
        word = words[place]
        name, given, value = word.partition("=")
        if given and name.replace("_", "").isalnum():
            variables.append((name, value))
        elif word in _KEYWORDS:
            if word == "while" and (piped or words[place + 1 : place + 2] == ["read"]):
                loops.append((f"$({' '.join(fed)})",) if fed else ("$",))
            prefixes.append(word)
        elif word in ("timeout", "xargs", "env") and place + 1 < end:
            if word == "xargs":
                loop = (f"$({' '.join(fed)})",) if fed else ("$",)
            prefixes.append(word)
            while place + 1 < end and _OF_WRAPPER.fullmatch(words[place + 1]):
                place += 1
        else:
            break
        place += 1
    words = words[place:]
    return (
        Command(
            tuple(words),
            line,
            tuple(targets),
            piped,
            background,
            tuple(variables),
            tuple(prefixes),
            loop or (loops[-1] if loops else None),
            fed,
        )
        if words or targets or variables
        else None
    )


def _plain(word: str) -> str:
    """A word as the program gets it: quotes and backslashes taken off."""
    if "'" not in word and '"' not in word and "\\" not in word:
        return word[:MAX_WORD]
    return "".join(
        m[1][1:-1] if m[1] else m[2] or m[3] or "" for m in _PIECE.finditer(word[:MAX_WORD])
    )


def _line(text: str, start: int) -> str:
    begin = text.rfind("\n", max(0, start - 400), start) + 1 or max(0, start - 400)
    end = text.find("\n", start, start + 400)
    return text[begin : end if end >= 0 else start + 400].strip()[:160]
