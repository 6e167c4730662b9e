"""The code that a turn really runs: its own, and the modules of the run's own that it names, files of prose left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..trajectories.code_parts import split
from ..trajectories.models import Run, Turn

_PROSE = re.compile(r"\.(?:md|rst|txt|log|json|csv)$", re.IGNORECASE)
_COMMENT = re.compile(r"(?m)(?:^|\s)#[^\n'\"]{0,400}$")
_STATEMENT = re.compile(r"(?m)^\s{0,12}(?:import|from \S+ import|def|class|with|return) ?\b")


def written_modules(run: Run, until: int) -> dict[str, str]:
    """Stem -> text of every module that the run wrote up to this turn."""
    files: dict[str, str] = {}
    for turn in run.turns[:until]:
        for action in turn.actions:
            for part in split(action):
                stem = part.path.removesuffix("/__init__.py").rpartition("/")[2].partition(".")[0]
                if part.kind == "file" and stem and not _PROSE.search(part.path):
                    files[stem] = files.get(stem, "") + "\n" + part.text if part.append else part.text
    return files


def run_code(turn: Turn, modules: Mapping[str, str]) -> str:
    """What a turn runs, with the modules that it names, and those that they name."""
    own = "\n".join(_without_prose(p.text) for a in turn.actions for p in split(a) if p.kind != "file")
    return "\n".join((own, *run_modules(own, modules)))


def run_modules(code: str, modules: Mapping[str, str]) -> tuple[str, ...]:
    """The modules that code names, and those that they name in turn, each once."""
    waiting, added, found = dict(modules), code, list[str]()
    while used := _named(waiting, added):
        found += (texts := [waiting.pop(stem) for stem in used])
        added = "\n".join(texts)
    return tuple(found)


def without_comments(code: str) -> str:
    return _COMMENT.sub("", code)


def _without_prose(code: str) -> str:
    """Code without long strings that are text (a plan, a note): what they name is spoken of, not used."""
    for quote in ("'''", '"""'):
        pieces = code.split(quote)
        code = quote.join(t for i, t in enumerate(pieces) if i % 2 == 0 or _STATEMENT.search(t))
    return code


def _named(names: Iterable[str], text: str) -> list[str]:
    """The names that stand in the text, as words or as parts of words that "_" joins, in any case; `np.load(` names no `load.py`."""
    lower = text.lower()
    found = []
    for name in names:
        word = re.escape(name.lower())
        if name.lower() in lower and re.search(rf"(?<![a-z0-9]){word}(?![a-z0-9(])|(?<![a-z0-9.]){word}\(", lower):
            found.append(name)
    return found
