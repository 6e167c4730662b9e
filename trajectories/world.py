"""What is known of a run before and while its turns are read: its cases, its deliverables, the files that it wrote."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from .code_modules import Library, Module
from .code_names import OUTPUT_PATTERN
from .code_parts import clip
from .command_lines import CASE, PLAIN_CASE, SIDED_CASE
from .memo import once_a_run
from .models import Run

_BRIEF_FILE = re.compile(
    r"(?<![\w/.-])((?:/?[\w.-]{1,60}/){0,8}[\w-]{1,60}\.(?:json|jsonl|txt|csv|parquet|md|pth?|npy|pkl|h5ad|png|pdf|html|onnx|bin))\b"
)
_TAKE = re.compile(
    r"read|given|provided|input|from|based on|using|load|locat|contains|convert|called with", re.IGNORECASE
)
_MAKE_OR_TAKE = re.compile(
    r"\b(?:sav|writ|outputs?\b|creat|produc|generat|stor(?:e|ed)\b|named\b|into\b|read|given|provided|input|from\b|based on|using\b"
    r"|load|locat|contains|convert|called with)",
    re.IGNORECASE,
)


@dataclass
class World:
    """What is known so far while walking through the turns: files written, modules, cases, the plan."""

    outputs: re.Pattern[str]
    known: frozenset[str]
    total: int | None
    prefixes: frozenset[str]
    files: dict[str, Module] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    library: Library = field(default_factory=Library)
    programs: set[str] = field(default_factory=set)
    """Names of packages whose __main__.py the run wrote; "" where the folder does not stand in the path."""
    planned: bool = False
    changed: set[str] = field(default_factory=set)
    """Files that were changed in ways that were not read: what they set may differ from what is known of them."""

    def store(self, path: str, text: str) -> None:
        name = file_name(path)
        self.texts[name] = text
        if name == "__main__.py":
            self.programs.add(PurePosixPath(path).parent.name)
        self.changed.discard(name)
        if name.endswith(".py") and (module := Module.of(text)) is not None:
            self.files[name] = module
            self.library.modules[name[:-3]] = module
            for name, function in module.functions.items():
                self.library.functions[name] = (function, module)

    def copy(self, source: str, target: str) -> None:
        name = PurePosixPath(source).name
        if name in self.texts:
            self.store(target, self.texts[name])


def file_name(path: str) -> str:
    """The name under which a written file is kept; a package is known by its folder, as imports name it."""
    given = PurePosixPath(path)
    return f"{given.parent.name}.py" if given.name == "__init__.py" and given.parent.name else given.name


@once_a_run
def case_ids(run: Run) -> tuple[str, ...]:
    """Ids of the run's cases: as listed, else as delivered, else the largest family of ids in what the run printed."""
    if run.listed_cases:
        return run.listed_cases
    families: dict[str, dict[str, None]] = {}
    for turn in run.turns:
        for prefix, digits in CASE.findall(clip(turn.output)):
            families.setdefault(prefix, {})[prefix + digits] = None
    delivered = run.outputs.cases
    if delivered:
        found = CASE.fullmatch(delivered[0])
        seen = families.get(found.group(1), {}) if found else {}
        return delivered if len(delivered) >= len(seen) else tuple(sorted({*delivered, *seen}))
    best = max(families.values(), key=len, default={})
    return tuple(sorted(best)) if len(best) >= 3 else _plain_ids(run)


def _plain_ids(run: Run) -> tuple[str, ...]:
    """Ids without a separator (q01, P017): a family of three or more that a listing shows, each on its own line."""
    families: dict[str, set[str]] = {}
    for turn in run.turns[:10]:
        for line in clip(turn.output).split("\n"):
            match = PLAIN_CASE.fullmatch(line.strip().rstrip("/:").rsplit("/", 1)[-1])
            if match:
                families.setdefault(match.group(1), set()).add(match.group(0))
    best = max(families.values(), key=len, default=set())
    return tuple(sorted(best)) if len(best) >= 3 else ()


def world_of(run: Run) -> World:
    """What is known before the first turn."""
    ids = case_ids(run)
    kinds = (CASE, PLAIN_CASE, SIDED_CASE)
    matches = (next((m for kind in kinds if (m := kind.fullmatch(i))), None) for i in ids)
    prefixes = frozenset(m.group(1) for m in matches if m)
    pattern = OUTPUT_PATTERN
    if run.track is None:
        names = _named_deliverables(run.brief[:200_000])
        if names:
            pattern += "|" + "|".join(rf"(?<![\w-]){re.escape(n)}" for n in sorted(names)[:40])
    return World(re.compile(pattern), frozenset(ids), len(ids) or None, prefixes)


def _named_deliverables(brief: str) -> set[str]:
    """File names that a brief asks to be made: those after a word for writing that no word for reading follows."""
    found: set[str] = set()
    for match in _BRIEF_FILE.finditer(brief):
        before = _MAKE_OR_TAKE.findall(brief[max(0, match.start() - 120) : match.start()])
        if before and not _TAKE.match(before[-1]):
            found.add(PurePosixPath(match.group(1)).name)
    return {n for n in found if n.lower() not in ("readme.md", "task.md", "plan.md", "requirements.txt")}
