"""Which cases a run had to deliver, and who says so.

In this order: the public inputs, agent_summary.json, the report's counts, the answer to
submit_results, the ids that the run itself saw in listings. A count without names is filled with
names that the run delivered, missed or listed, when exactly so many are known. A folder that only
the run itself named is no case where most of the others were listed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from ...trajectories.models import Run
from ...trajectories.reading.harness_report import submit_answer
from ...trajectories.reading.json_bytes import count
from .public_inputs import PublicInputs

Source = Literal["public", "agent_summary", "report", "submit", "trace"]
_DIGIT = re.compile("[0-9]")
_ID = re.compile(r"(?<![\w.-])[A-Za-z][A-Za-z0-9]{0,30}(?:[_-][A-Za-z0-9]{1,30}){0,4}(?![\w-])")
_MAX_IDS = 20_000


@dataclass(frozen=True)
class Expected:
    """`cases`: names known; `count`: how many there are (at least as many as names). Both empty and
    None: unknown."""

    cases: tuple[str, ...] = ()
    count: int | None = None
    source: Source | None = None


def expected_cases(
    run: Run, delivered: Iterable[str], public: PublicInputs | None, counts_valid: bool
) -> Expected:
    """The expected cases. `delivered`: cases that have their required file; `counts_valid`: the
    report's completion rate counts valid files, so that only a rate of 1 tells how many cases there
    are."""
    if public is not None:
        return Expected(public.cases, len(public.cases), "public")
    if run.listed_cases:
        return Expected(run.listed_cases, len(run.listed_cases), "agent_summary")
    have = _one_family(tuple(delivered))
    listed = _listed(run, have)
    missed = missing_cases(run.submit_result)
    known = {*missed, *listed}
    asked = tuple(name for name in have if name in known)
    if len(asked) * 2 <= len(have):
        asked = have  # what was printed is no list of the inputs
    report = run.report
    total = report.n_expected if report is not None and report.n_expected else None
    rate = report.completion_rate if report is not None else None
    if total is None and rate and have and (rate == 1.0 or not counts_valid):
        total = next(
            (n for names in (have, asked) if (n := _whole(len(names) / rate)) is not None), None
        )
    if total:
        return Expected(_names(total, have, missed, listed), total, "report")
    checked = count(submit_answer(run.submit_result).get("patients_checked"))
    if checked:
        return Expected(_names(checked, have, missed, listed), checked, "submit")
    seen = tuple(sorted({*asked, *known}))
    return Expected(seen, len(seen), "trace") if missed or len(listed) > 1 else Expected()


def _whole(guess: float) -> int | None:
    return round(guess) if abs(guess - round(guess)) < 0.01 * guess else None


def missing_cases(submit_result: dict[str, Any] | None) -> tuple[str, ...]:
    """Cases of the files that the submit answer calls missing."""
    files = submit_answer(submit_result).get("missing_files")
    if not isinstance(files, list):
        return ()
    names = [str(f).replace("\\", "/").strip("/").split("/") for f in files if isinstance(f, str)]
    return tuple(dict.fromkeys(parts[-2] for parts in names if len(parts) > 1))


def _names(total: int, have: tuple[str, ...], *more: tuple[str, ...]) -> tuple[str, ...]:
    """Delivered names, with missed and then listed ones while these are not more than `total`.

    Where these alone are `total`, what was delivered beyond them is no case.
    """
    named = set[str]().union(*more)
    if len(named) == total:
        return tuple(sorted(named))
    names = set(have)
    for extra in more:
        if len(names | set(extra)) <= total:
            names |= set(extra)
    return tuple(sorted(names))


def _shape(name: str) -> str:
    return re.sub(r"\d", "#", name)


def _one_family(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names that are built alike; a pilot or scratch folder among numbered cases is left out."""
    families = Counter(_shape(name) for name in names)
    numbered = {shape for shape in families if "#" in shape}
    return (
        tuple(sorted(n for n in names if _shape(n) in numbered))
        if numbered
        else tuple(sorted(names))
    )


def _listed(run: Run, have: tuple[str, ...]) -> tuple[str, ...]:
    """Ids that the environment printed, built like the delivered ones; without those, the family of
    the inputs."""
    shapes = {_shape(name) for name in have if "#" in _shape(name)}
    if shapes:
        parts = [shape.split("#", 1)[0] for shape in shapes]
        return tuple(sorted(name for name in _printed(run, parts) if _shape(name) in shapes))
    inputs: Counter[str] = Counter()
    members: dict[str, set[str]] = {}
    for name, seen in _printed(run).items():
        if re.search(r"(?:[_-]\d\d|\d{3})$", name):
            inputs[_shape(name)] += seen
            members.setdefault(_shape(name), set()).add(name)
    large = {shape: ids for shape, ids in members.items() if len(ids) > 1}
    if not large:
        return ()
    best = max(large, key=lambda shape: (inputs[shape], len(large[shape]), shape))
    return tuple(sorted(large[best]))


def _printed(run: Run, parts: Iterable[str] = ("",)) -> Counter[str]:
    """Id-like words in what the environment answered, with how often they stood alone on a line or
    in a path. Of lines that hold one of these parts alone."""
    found: Counter[str] = Counter()
    for _, action in run.actions():
        if action.observation is None:
            continue
        text = action.observation.stdout
        for line in text.splitlines() if any(part in text for part in parts) else ():
            if not any(part in line for part in parts) or _DIGIT.search(line) is None:
                continue
            for match in _ID.finditer(line[:4000]):
                if _DIGIT.search(match[0]):
                    alone = line.strip().strip("/") == match[0] or line[: match.start()].endswith(
                        "/"
                    )
                    found[match[0]] += 1 if alone else 0
            if len(found) > _MAX_IDS:
                return found
    return found
