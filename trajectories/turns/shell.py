"""Shell text as simple commands: words, files written, the pipe and the loop around them.

Nothing is ever run.

The existing shell parsers come with a compiled grammar or a copyleft licence, and `shlex` knows no
comments inside a line, no redirections and no lines; hence this scanner.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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
"""Kinds of tokens; the first that matches counts."""
_TOKEN = re.compile("|".join(f"(?P<{kind}>{form})" for kind, form in _KINDS.items()), re.DOTALL)
_PIECE = re.compile(rf"({_QUOTED})|\\(.)|([^'\"\\]+|.)", re.DOTALL)
_KEYWORDS = re.compile(r"do|then|else|elif|if|while|until|!|\{|\}|time|sudo|nohup|exec|nice|setsid")
_WRAPPER_WORD = re.compile(r"-.*|\d+[smh]?|\{\}", re.DOTALL)
_SCRIPT = re.compile(r"(?!-)[\w./~${}-]{1,300}\.(?:py|sh|R|js|ipynb)")
_STARTERS = re.compile(
    r"python[\d.]*|ipython|torchrun|accelerate|bash|sh|Rscript|node|run|launch|uv|source|\."
)
_HELP = frozenset(["--help", "-h", "--version"])
_BRACE_LIST = re.compile(r"\{[\w.-]{0,80}(?:,[\w.-]{0,80}){1,100}\}")
_BRACE_RANGE = re.compile(r"\{(\d{1,6})\.\.(\d{1,6})\}")


_SUBSTITUTION = re.compile(r"\$\(([^()\n]{0,400})\)")
_MAX_DEPTH = 2
_VARIABLE = re.compile(r"\$(?:\{(\w{1,60})\}|(\w{1,60}))")


@dataclass(frozen=True)
class Command:
    """One simple command. `words` begin with the program and are without quotes."""

    words: tuple[str, ...]
    line: str
    """The line on which it begins."""
    targets: tuple[str, ...] = ()
    """Files that its output is sent to."""
    piped: bool = False
    """Whether it reads what another command writes."""
    background: bool = False
    variables: tuple[tuple[str, str], ...] = ()
    """Variables that are set for this command alone."""
    prefixes: tuple[str, ...] = ()
    """Words before the program: sudo, nohup, time, if."""
    loop: tuple[str, ...] | None = None
    """The words that the loop around it iterates over; None without a loop."""
    fed: tuple[str, ...] = ()
    """The words of the command whose output it reads."""

    @cached_property
    def program(self) -> str:
        """The program's name without folder and version: `python` of /usr/bin/python3.11."""
        name = file_name(self.words[0]) if self.words else ""
        return name.rstrip("0123456789.") if name.startswith(("python", "pip")) else name

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """Its words without the program and the options."""
        return tuple(word for word in self.words[1:] if not word.startswith("-"))

    @cached_property
    def script(self) -> str | None:
        """The script that it starts; asking for its help starts nothing."""
        if not self.words or self.words[-1] in _HELP:
            return None
        if not _HELP.intersection(self.words[:-1]) <= {"-h"}:
            return None
        if self.words[0].startswith("./"):
            return self.words[0]
        starts_script = _STARTERS.fullmatch(self.program) is not None
        if not starts_script or "-c" in self.words[1:3] or self.module is not None:
            return None
        return next((word for word in self.words[1:8] if _SCRIPT.fullmatch(word)), None)

    @cached_property
    def module(self) -> str | None:
        """The module that `python -m` starts."""
        if self.program != "python" or "-m" not in self.words[1:5]:
            return None
        if _HELP.intersection(self.words):
            return None
        index = self.words.index("-m") + 1
        return self.words[index] if index < len(self.words) else None

    @cached_property
    def options(self) -> dict[str, str]:
        """Options by name, dashes as underscores, with the word that follows.

        `--max-cases 3` is {"max_cases": "3"}.
        """
        options = {name.lower(): value for name, value in self.variables}
        following = (*self.words[2:], "")
        for word, next_word in zip(self.words[1:], following, strict=False):
            if word.startswith("-"):
                name, equals, value = word.lstrip("-").partition("=")
                if not equals and not next_word.startswith("-"):
                    value = next_word
                options[name.replace("-", "_")] = value
        return options


def file_name(path: str) -> str:
    """The last part of a path, as `PurePosixPath` has it."""
    name = path.rpartition("/")[2]
    return name if name not in ("", ".") else PurePosixPath(path).name


@lru_cache(maxsize=4)
def listed_commands(text: str) -> tuple[Command, ...]:
    """`commands` of a text, cached."""
    return tuple(commands(text))


def commands(text: str, depth: int = 0) -> Iterator[Command]:
    """The simple commands of a shell text in order, those in $(...) and (...) among them."""
    loops: list[tuple[str, ...]] = []
    words: list[str] = []
    targets: list[str] = []
    variables: dict[str, str] = {}
    piped = False
    redirects: Literal["", "file", "nowhere"] = ""
    fed: tuple[str, ...] = ()
    start = 0
    for match in _TOKEN.finditer(f"{text}\n"):
        kind, token = match.lastgroup, match[0]
        if kind == "word":
            if not words and not targets:
                start = match.start()
            word = token[:MAX_WORD] if "$(" in token else _unquoted(token)
            if depth < _MAX_DEPTH:
                for inner in _SUBSTITUTION.findall(word):
                    yield from commands(inner, depth + 1)
            if "$" in word and variables:
                word = _expanded(word, variables)
            if redirects != "nowhere":
                (targets if redirects else words).append(word)
            redirects = ""
        elif kind == "to":
            redirects = _redirection(token)
        elif kind in ("end", "and"):
            redirects = ""
            if words or targets:
                line = _line(text, start)
                command = _command(words, targets, line, piped, kind == "and", loops, fed)
                if command is not None:
                    if not command.words:  # variables set for what follows
                        variables.update(command.variables)
                    yield command
                fed = command.words if command is not None and token == "|" else ()
                words, targets = [], []
            piped = token == "|"


def _expanded(word: str, variables: Mapping[str, str]) -> str:
    """A word with the values of the variables that were set before."""
    return _VARIABLE.sub(lambda name: variables.get(name[1] or name[2], name[0]), word)[:MAX_WORD]


def _redirection(token: str) -> Literal["", "file", "nowhere"]:
    """Where a redirection sends the output: to a file, or to one that says nothing of results.

    `2>` sends errors away; `2>&1` and `<` name no file that is written.
    """
    if ">" not in token or token[-1].isdigit():
        return ""
    return "nowhere" if token[0] == "2" else "file"


def script_runs(text: str) -> tuple[str, ...]:
    """Paths of the scripts that a shell text starts."""
    return tuple(script for command in commands(text) if (script := command.script) is not None)


def words_asked(words: tuple[str, ...]) -> int | None:
    """How many words these are once a shell has expanded them.

    None if that depends on a folder or a variable.
    """
    total = 0
    for word in words:
        count = _expanded_count(word)
        if count is None:
            return None
        total += count
    return total or None


def _expanded_count(word: str) -> int | None:
    substitution = _SUBSTITUTION.search(word)
    if substitution:
        inner = list(commands(substitution[1], 1))
        return _printed_words(inner[-1]) if inner else None
    numbers = _BRACE_RANGE.search(word)
    if numbers:
        return abs(int(numbers[2]) - int(numbers[1])) + 1
    alternatives = _BRACE_LIST.search(word)
    if alternatives:
        return alternatives[0].count(",") + 1
    return None if any(mark in word for mark in "$*?`") else 1


def _printed_words(command: Command) -> int | None:
    """How many words a command prints: seq 3, head -3, head -n 3, shuf -n 3; None if unknown."""
    digits = [word.lstrip("-n") for word in command.words[1:]]
    numbers = [int(number[:6]) for number in digits if number.isdigit()]
    if command.program == "seq" and numbers:
        return max(1, numbers[-1] - (numbers[0] if len(numbers) > 1 else 1) + 1)
    if command.program in ("head", "shuf"):
        return numbers[0] if numbers else 10
    return None


def _command(
    words: list[str],
    targets: list[str],
    line: str,
    piped: bool,
    background: bool,
    loops: list[tuple[str, ...]],
    fed: tuple[str, ...],
) -> Command | None:
    """The command of these words; None if they only open or close a loop."""
    if words[:1] == ["for"]:
        loops.append(tuple(words[3:]) if words[2:3] == ["in"] else ())
        return None
    if words[:1] == ["done"] and loops:
        loops.pop()
        return None
    # What a loop over lines, or xargs, iterates over: the output of the command before the pipe.
    lines = (f"$({' '.join(fed)})",) if fed else ("$",)
    loop: tuple[str, ...] | None = None
    prefixes: list[str] = []
    variables: list[tuple[str, str]] = []
    index, end = 0, len(words)
    while index < end:
        word = words[index]
        name, equals, value = word.partition("=")
        if equals and name.replace("_", "").isalnum():
            variables.append((name, value))
        elif _KEYWORDS.fullmatch(word):
            if word == "while" and (piped or words[index + 1 : index + 2] == ["read"]):
                loops.append(lines)
            prefixes.append(word)
        elif word in ("timeout", "xargs", "env") and index + 1 < end:
            if word == "xargs":
                loop = lines
            prefixes.append(word)
            while index + 1 < end and _WRAPPER_WORD.fullmatch(words[index + 1]):
                index += 1
        else:
            break
        index += 1
    words = words[index:]
    if not (words or targets or variables):
        return None
    return Command(
        words=tuple(words),
        line=line,
        targets=tuple(targets),
        piped=piped,
        background=background,
        variables=tuple(variables),
        prefixes=tuple(prefixes),
        loop=loop or (loops[-1] if loops else None),
        fed=fed,
    )


def _unquoted(word: str) -> str:
    """A word as the program gets it, without quotes and backslashes."""
    if "'" not in word and '"' not in word and "\\" not in word:
        return word[:MAX_WORD]
    pieces = []
    for piece in _PIECE.finditer(word[:MAX_WORD]):
        quoted, escaped, plain = piece.groups()
        pieces.append(quoted[1:-1] if quoted else escaped or plain or "")
    return "".join(pieces)


def _line(text: str, start: int) -> str:
    """The line around a position, at most 160 characters of it."""
    begin = text.rfind("\n", max(0, start - 400), start) + 1 or max(0, start - 400)
    end = text.find("\n", start, start + 400)
    return text[begin : end if end >= 0 else start + 400].strip()[:160]
