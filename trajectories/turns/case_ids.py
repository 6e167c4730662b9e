"""The cases of a run and the places of its deliverables, as listings, delivered files and the
brief's paths show them."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from pathlib import PurePosixPath

from ..models import Run
from .actions import clip
from .per_run_cache import once_a_run

CASE = re.compile(r"(?<![A-Za-z0-9])([A-Za-z][A-Za-z-]{0,19}[_-])(\d{2,10})\b")
"""A case id with a separator: patient_0001, sub-07."""
PLAIN_CASE = re.compile(r"(?<![\w-])([A-Za-z]{1,12})(\d{2,6})(?![\w-])")
"""A case id without one: q01, P017. Only trusted where a listing showed it."""
SIDED_CASE = re.compile(r"(?<![\w-])([A-Za-z]{1,12}[_-][A-Za-z]{0,2})(\d{1,6})(?![\w-])")
"""A case id whose number follows a letter or has one digit: eye_L1, case_3. Only trusted where the
case is known."""
_OUTPUTS = (
    r"agents?_outputs?\b|\blesion\.nii|\borgan\.nii|\bdseg\.nii|\bsct\.nii|\bprediction\.json|\banswer\.json|\breport\.txt"
    r"|\benhanced\.npy|\bpredictions\.csv|agents_decision\.csv"
)
"""Where the benchmark wants its outputs and how they are called (benchmark.md, section 4)."""
_NOT_MADE = frozenset(["readme.md", "task.md", "plan.md", "requirements.txt"])
_READS = re.compile(r"\b(?:im)?(?:read|load)\w{0,20}\(|\b(?:cat|head|tail|less|wc|ls|file)\s")
_BRIEF_FILE = re.compile(
    r"(?<![\w/.-])((?:/?[\w.-]{1,60}/){0,8}[\w-]{1,60}\.(?:json|jsonl|txt|csv|parquet|md|pth?|npy|pkl|h5ad|png|pdf|html|onnx|bin))\b"
)


@once_a_run
def case_ids(run: Run) -> tuple[str, ...]:
    """Ids of the run's cases: as listed, else as delivered, else the largest family of ids in what
    the run printed."""
    if run.listed_cases:
        return run.listed_cases
    delivered = run.outputs.cases
    family = CASE.fullmatch(delivered[0]) if delivered else None
    if delivered and family is None:
        return delivered
    families: dict[str, dict[str, None]] = {}
    for turn in run.turns:
        text = clip(turn.output)
        for prefix, digits in CASE.findall(
            text if family is None else _lines_with(text, (family[1],))
        ):
            families.setdefault(prefix, {})[prefix + digits] = None
    if family is not None:
        seen = families.get(family[1], {})
        return delivered if len(delivered) >= len(seen) else tuple(sorted({*delivered, *seen}))
    best = max(families.values(), key=len, default={})
    return tuple(sorted(best)) if len(best) >= 3 else _plain_ids(run)


def _plain_ids(run: Run) -> tuple[str, ...]:
    """Ids without a separator (q01, P017): a family of three or more that a listing shows, each on
    its own line."""
    families: dict[str, set[str]] = {}
    for turn in run.turns[:10]:
        for line in clip(turn.output).split("\n"):
            match = PLAIN_CASE.fullmatch(line.strip().rstrip("/:").rsplit("/", 1)[-1])
            if match:
                families.setdefault(match.group(1), set()).add(match.group(0))
    best = max(families.values(), key=len, default=set())
    return tuple(sorted(best)) if len(best) >= 3 else ()


def cases_in(text: str, known: frozenset[str]) -> tuple[str, ...]:
    """The known cases that a text names, pattern by pattern in order of appearance."""
    text = _lines_with(text, _families(known))
    if not text:
        return ()
    found = (p + d for pattern in (CASE, PLAIN_CASE, SIDED_CASE) for p, d in pattern.findall(text))
    return tuple(dict.fromkeys(case for case in found if case in known))


@lru_cache(maxsize=8)
def _families(known: frozenset[str]) -> frozenset[str]:
    return frozenset(case.rstrip("0123456789") for case in known) - {""}


def _lines_with(text: str, parts: Collection[str]) -> str:
    """The lines that hold one of these parts, each once: the patterns above try every letter of
    what they are given."""
    held = [part for part in parts if part in text]
    if not held:
        return ""
    return "\n".join(
        line for line in dict.fromkeys(text.split("\n")) if any(part in line for part in held)
    )


def output_places(run: Run) -> re.Pattern[str]:
    """What recognises places of delivered files; for other tasks, with the files that the brief
    asks to be made."""
    names = _made_files(run) if run.track is None else ()
    return re.compile("|".join((_OUTPUTS, *(rf"(?<![\w-]){re.escape(name)}" for name in names))))


def _made_files(run: Run) -> list[str]:
    """File names of the brief that the run's code names, not to read them, before any output shows
    them."""
    found = {PurePosixPath(path).name for path in _BRIEF_FILE.findall(run.brief[:200_000])}
    waiting = sorted(name for name in found if name.lower() not in _NOT_MADE)[:40]
    made: list[str] = []
    for turn in run.turns:
        code, shown = clip(turn.code), clip(turn.output)
        written = {
            PurePosixPath(action.path or "").name
            for action in turn.actions
            if action.kind in ("write", "edit")
        }
        for name in waiting:
            start = code.find(name)
            line = code[max(0, code.rfind("\n", 0, start)) : start]
            if name in written or (start >= 0 and not _READS.search(line[-400:])):
                made.append(name)
        waiting = [
            name
            for name in waiting
            if name not in code and name not in written and name not in shown
        ]
    return made
