"""Every pattern of the package on text that is meant to make it slow: which take more than twice as long for twice the text.

    python benchmarks/patterns.py [--chars 8000]     one line for each suspect; exit 1 where there is one

Patterns are those that stand in the code as literals or as globals of modules, data files that are compiled on import
among them. Texts repeat a character that the pattern speaks of, a beginning of one of its literals, or a piece of common
text, and end in what cannot match. A linear pattern reads 8,000 characters in less than a millisecond, a quadratic one in
a third of a second.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ambjudge

ROOT = Path(ambjudge.__file__).parent
SKIPPED = ("tests", "benchmarks", "docs", "examples", "data")
SLOW_S = 0.05
_COMMON = ("a", "A", "0", " ", "\n", "\t", "/", ".", "-", "_", "(", "[", "{", "'", '"', "\\", "a ", "a.", "a/", "a\n", " \n", "0.", "1 ", "a=", "a, ", "A a ")  # fmt: skip
_MOST_UNITS = 60
BOUNDED = ("ambjudge.analysis.failure_texts._NOISE", "ambjudge.analysis.figures.style._PROLOG")
"""Quadratic, on what cannot be long or is not a stranger's: texts that are cut before, and figures of our own."""


@dataclass(frozen=True)
class Suspect:
    """A pattern with the text that slows it down, and the seconds that it takes."""

    where: str
    compiled: re.Pattern[str]
    unit: str
    seconds: float


def patterns() -> dict[tuple[str, int], str]:
    """(pattern, flags) -> where it stands."""
    found: dict[tuple[str, int], str] = {}
    for info in pkgutil.walk_packages([str(ROOT)], "ambjudge."):
        if info.name.split(".")[1] in SKIPPED:
            continue
        try:
            module = importlib.import_module(info.name)
        except ImportError:  # an extra that is not installed
            continue
        for name, value in vars(module).items():
            for pattern in _held(value, 4):
                found.setdefault((pattern.pattern, pattern.flags), f"{info.name}.{name}")
    for file in sorted(ROOT.rglob("*.py")):
        if file.relative_to(ROOT).parts[0] in SKIPPED or ".venv" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if (known := _literal(node)) is not None:
                found.setdefault((known.pattern, known.flags), f"{file.relative_to(ROOT)}:{node.lineno}")  # type: ignore[attr-defined]
    return found


def _literal(node: ast.AST) -> re.Pattern[str] | None:
    """The pattern of a call `re.something("...", ...)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re")), args=[ast.Constant(value=str(pattern)), *_]):
            named = (n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute))
            flags = (getattr(re, name) for name in named if name in ("IGNORECASE", "DOTALL", "MULTILINE", "VERBOSE"))
            return re.compile(pattern, sum(map(int, flags)))
    return None


def _held(value: Any, depth: int) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif depth and isinstance(value, dict):
        for item in (*value.keys(), *value.values()):
            yield from _held(item, depth - 1)
    elif depth and isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _held(item, depth - 1)
    elif depth and hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        for name in value.__dataclass_fields__:
            yield from _held(getattr(value, name, None), depth - 1)


def units(pattern: str) -> list[str]:
    """What to repeat: pieces of the pattern's own literals before anything else."""
    literals = re.findall(r"[A-Za-z0-9_ :=./<>#*+-]{2,}", re.sub(r"\\[AbBdDsSwWZ]", " ", pattern))
    own = [piece for literal in literals for piece in (literal, literal + " ", literal[:-1])]
    marks = [char for char in dict.fromkeys(pattern) if not char.isalnum()]
    both = [f"{mark}a" for mark in marks] + [f"{literal}a" for literal in literals[:5]]
    return list(dict.fromkeys((*_COMMON, *marks, *own[:25], *both)))[:_MOST_UNITS]


def seconds(compiled: re.Pattern[str], text: str) -> float:
    """CPU seconds to look for every match."""
    started = time.process_time()
    for _ in compiled.finditer(text):
        pass
    return time.process_time() - started


def suspects(chars: int, slow_s: float = SLOW_S, most_units: int = _MOST_UNITS) -> Iterator[Suspect]:
    """The patterns that take `slow_s` or more for a text of so many characters, with the worst text found."""
    for (pattern, flags), where in patterns().items():
        if where in BOUNDED:
            continue
        compiled = re.compile(pattern, flags)
        worst = Suspect(where, compiled, "", 0.0)
        for unit in units(pattern)[:most_units]:
            taken = seconds(compiled, unit * (chars // len(unit)) + "\0")
            if taken > worst.seconds:
                worst = Suspect(where, compiled, unit, taken)
            if taken >= 4 * slow_s:
                break
        if worst.seconds >= slow_s and seconds(compiled, worst.unit * (chars // len(worst.unit)) + "\0") >= slow_s:
            yield worst


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--chars", type=int, default=8_000)
    chars = parser.parse_args().chars
    count = 0
    for suspect in suspects(chars):
        count += 1
        sizes = (chars // 4, chars // 2, chars)
        times = (seconds(suspect.compiled, suspect.unit * (n // len(suspect.unit)) + "\0") for n in sizes)
        shown = ", ".join(f"{t * 1e3:.1f}" for t in times)
        print(f"{suspect.where}: {shown} ms on {suspect.unit!r}: {suspect.compiled.pattern[:90]!r}")
    print(f"{len(patterns())} patterns, {count} slow at {chars:,} characters")
    return 1 if count else 0


if __name__ == "__main__":
    raise SystemExit(main())
