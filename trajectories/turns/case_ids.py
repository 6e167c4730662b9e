"""The ids of a run's cases and the places of its deliverables.

They are read from listings, from delivered files and from the paths in the brief.
"""

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
"""A case id without a separator: q01, P017. Only trusted where a listing showed it."""
SIDED_CASE = re.compile(r"(?<![\w-])([A-Za-z]{1,12}[_-][A-Za-z]{0,2})(\d{1,6})(?![\w-])")
"""A case id whose number follows a letter or has one digit: eye_L1, case_3.

Only trusted where the case is known.
"""
_OUTPUTS = (
    r"agents?_outputs?\b|\b(?:lesion|organ|dseg|sct)\.nii|\bprediction\.json|\banswer\.json"
    r"|\breport\.txt|\benhanced\.npy|\bpredictions\.csv|agents_decision\.csv"
)
"""Where the benchmark expects outputs, and their names."""
_NOT_MADE = frozenset(["readme.md", "task.md", "plan.md", "requirements.txt"])
_READS = re.compile(r"\b(?:im)?(?:read|load)\w{0,20}\(|\b(?:cat|head|tail|less|wc|ls|file)\s")
_BRIEF_FILE = re.compile(
    r"(?<![\w/.-])((?:/?[\w.-]{1,60}/){0,8}[\w-]{1,60}"
    r"\.(?:json|jsonl|txt|csv|parquet|md|pth?|npy|pkl|h5ad|png|pdf|html|onnx|bin))\b"
)


@once_a_run
def case_ids(run: Run) -> tuple[str, ...]:
    """Ids of the run's cases.

    As listed by the task, else as delivered, else the largest family of ids that the run printed.
    """
    if run.listed_cases:
        return run.listed_cases
    delivered = run.outputs.cases
    family = CASE.fullmatch(delivered[0]) if delivered else None
    if delivered and family is None:
        return delivered
    printed: dict[str, dict[str, None]] = {}
    for turn in run.turns:
        text = clip(turn.output)
        if family is not None:
            text = _lines_with(text, (family[1],))
        for prefix, digits in CASE.findall(text):
            printed.setdefault(prefix, {})[prefix + digits] = None
    if family is not None:
        same_family = printed.get(family[1], {})
        if len(delivered) >= len(same_family):
            return delivered
        return tuple(sorted({*delivered, *same_family}))
    largest = max(printed.values(), key=len, default={})
    return tuple(sorted(largest)) if len(largest) >= 3 else _plain_ids(run)


def _plain_ids(run: Run) -> tuple[str, ...]:
    """Ids without a separator (q01, P017), of a family of three or more, each on its own line."""
    families: dict[str, set[str]] = {}
    for turn in run.turns[:10]:
        for line in clip(turn.output).split("\n"):
            match = PLAIN_CASE.fullmatch(line.strip().rstrip("/:").rsplit("/", 1)[-1])
            if match:
                families.setdefault(match.group(1), set()).add(match.group(0))
    largest = max(families.values(), key=len, default=set())
    return tuple(sorted(largest)) if len(largest) >= 3 else ()


def cases_in(text: str, ids: frozenset[str]) -> tuple[str, ...]:
    """The case ids that a text names, pattern by pattern in order of appearance."""
    text = _lines_with(text, _families(ids))
    if not text:
        return ()
    named: dict[str, None] = {}
    for pattern in (CASE, PLAIN_CASE, SIDED_CASE):
        for prefix, digits in pattern.findall(text):
            if prefix + digits in ids:
                named[prefix + digits] = None
    return tuple(named)


@lru_cache(maxsize=8)
def _families(ids: frozenset[str]) -> frozenset[str]:
    """The ids without their numbers."""
    return frozenset(case.rstrip("0123456789") for case in ids) - {""}


def _lines_with(text: str, parts: Collection[str]) -> str:
    """The distinct lines that contain one of these parts.

    The patterns above try every letter of a text, so it is worth reducing it first.
    """
    contained = [part for part in parts if part in text]
    if not contained:
        return ""
    lines = dict.fromkeys(text.split("\n"))
    return "\n".join(line for line in lines if any(part in line for part in contained))


def output_places(run: Run) -> re.Pattern[str]:
    """A pattern for places of deliverables.

    For tasks without a track, the files that the brief asks for are among them.
    """
    names = _made_files(run) if run.track is None else ()
    patterns = [rf"(?<![\w-]){re.escape(name)}" for name in names]
    return re.compile("|".join((_OUTPUTS, *patterns)))


def _made_files(run: Run) -> list[str]:
    """Files of the brief that the run's code names before any output shows them, unless to read."""
    in_brief = {PurePosixPath(path).name for path in _BRIEF_FILE.findall(run.brief[:200_000])}
    pending = sorted(name for name in in_brief if name.lower() not in _NOT_MADE)[:40]
    made: list[str] = []
    for turn in run.turns:
        code, output = clip(turn.code), clip(turn.output)
        written = {
            PurePosixPath(action.path or "").name
            for action in turn.actions
            if action.kind in ("write", "edit")
        }
        for name in pending:
            start = code.find(name)
            line = code[max(0, code.rfind("\n", 0, start)) : start]
            if name in written or (start >= 0 and not _READS.search(line[-400:])):
                made.append(name)
        pending = [
            name
            for name in pending
            if name not in code and name not in written and name not in output
        ]
    return made
