"""Every pattern of the package on text that is meant to make it slow: whose time grows faster than
the text?

    python benchmarks/patterns.py [--chars 8000]     one line for each suspect; exit 1 where there
    is one

Patterns are those that stand in the code as literals or as globals of modules, data files that are
compiled on import among them. Texts repeat a character that the pattern speaks of, a beginning of
one of its literals, or a piece of common text, and end in what cannot match. CPU time of this
process is measured, and judged by its growth: a linear pattern reads 8,000 characters in less than
a millisecond, a quadratic one in a third of a second.
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
from functools import cache
from pathlib import Path
from typing import Any

import ambjudge

ROOT = Path(ambjudge.__file__).parent
SKIPPED = ("tests", "benchmarks", "docs", "examples", "data")
MEASURABLE_S = 0.004
GROWTH = 8
"""Times the CPU for four times the text; 4 is linear, 16 quadratic."""
_COMMON = (
    "a",
    "A",
    "0",
    " ",
    "\n",
    "\t",
    "/",
    ".",
    "-",
    "_",
    "(",
    "[",
    "{",
    "'",
    '"',
    "\\",
    "a ",
    "a.",
    "a/",
    "a\n",
    " \n",
    "0.",
    "1 ",
    "a=",
    "a, ",
    "A a ",
)
_MOST_UNITS = 60
BOUNDED = (
    "ambjudge.analysis.report.failure_texts._NOISE",  # texts that are cut before
    "ambjudge.analysis.figures.rendering.",  # figures of our own
    "analysis/figures/rendering.py:",
    "ambjudge.trajectories.record.noise._QUOTED",  # 200 characters
    "ambjudge.views.transcript_search._ELLIPSIS",  # quotes that are cut before
)
"""Quadratic, on what cannot be long or is not a stranger's."""


@dataclass(frozen=True)
class Suspect:
    """A pattern with the text that slows it down."""

    where: str
    compiled: re.Pattern[str]
    unit: str


def patterns() -> dict[tuple[str, int], str]:
    """(pattern, flags) -> where it stands, a module's name and its own or a file and line."""
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
                found.setdefault(
                    (known.pattern, known.flags), f"{file.relative_to(ROOT)}:{node.lineno}"
                )  # type: ignore[attr-defined]
    return found


def _literal(node: ast.AST) -> re.Pattern[str] | None:
    """The pattern of a call `re.something("...", ...)`."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="re")), args=[ast.Constant(value=str(pattern)), *_]
        ):
            named = (n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute))
            flags = (
                getattr(re, name)
                for name in named
                if name in ("IGNORECASE", "DOTALL", "MULTILINE", "VERBOSE")
            )
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


@cache
def tried_at_the_start(where: str) -> bool:
    """Whether a module's pattern is only ever tried at the start of a text."""
    module, _, name = where.rpartition(".")
    if not module.startswith("ambjudge."):
        return False
    file = ROOT.joinpath(*module.split(".")[1:])
    source = (file / "__init__.py" if file.is_dir() else file.with_suffix(".py")).read_text("utf-8")
    uses = re.findall(rf"\b{name}\b(?! = )(?:\.(\w+))?", source)
    return bool(uses) and set(uses) <= {"match", "fullmatch"}


def seconds(where: str, compiled: re.Pattern[str], unit: str, chars: int) -> float:
    """CPU seconds for so many characters of the unit, and an end that matches nothing: for one try
    where the pattern is tried at the start, else to look for every match."""
    text = unit * (chars // len(unit)) + "\0"
    started = time.process_time()
    if tried_at_the_start(where):
        compiled.match(text)
        compiled.fullmatch(text)
    else:
        for _ in compiled.finditer(text):
            pass
    return time.process_time() - started


def grows(where: str, compiled: re.Pattern[str], unit: str, chars: int) -> bool:
    """Whether four times the text takes more than `GROWTH` times the CPU, from a size on where that
    can be measured.

    Texts grow from 250 characters, so that a pattern which takes exponential time is seen before it
    takes it.
    """
    size = 250
    while (taken := seconds(where, compiled, unit, size)) < 100 * MEASURABLE_S and size < chars:
        size = min(chars, 4 * size)
    if taken < MEASURABLE_S:
        return False
    if taken > 100 * MEASURABLE_S:
        return True
    smaller = min(seconds(where, compiled, unit, size // 4) for _ in range(3))
    return min(seconds(where, compiled, unit, size) for _ in range(3)) > GROWTH * max(
        smaller, MEASURABLE_S / 16
    )


def suspects(chars: int) -> Iterator[Suspect]:
    """The patterns whose time grows faster than a text of up to so many characters, with such a
    text's unit."""
    for (pattern, flags), where in patterns().items():
        if where.startswith(BOUNDED):
            continue
        compiled = re.compile(pattern, flags)
        for unit in units(pattern):
            if grows(where, compiled, unit, chars):
                yield Suspect(where, compiled, unit)
                break


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--chars", type=int, default=8_000)
    chars, count = parser.parse_args().chars, 0
    for suspect in suspects(chars):
        count += 1
        sizes = (chars // 16, chars // 8, chars // 4)
        shown = ", ".join(
            f"{1e3 * seconds(suspect.where, suspect.compiled, suspect.unit, n):.1f}" for n in sizes
        )
        print(
            f"{suspect.where}: {shown} ms on {suspect.unit!r}: {suspect.compiled.pattern[:90]!r}",
            flush=True,
        )
    known = len(patterns())
    print(
        f"target 0 patterns slower than linear, measured {count} of {known},"
        f" {'missed' if count else 'met'}"
    )
    return 1 if count else 0


if __name__ == "__main__":
    raise SystemExit(main())
