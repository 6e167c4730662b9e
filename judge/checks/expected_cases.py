"""Which cases a run had to deliver, and which source names them.

Sources, the first that knows: the public inputs, agent_summary.json, the report's counts, the
answer to submit_results, the ids that the run itself saw in listings. Where only the number of
cases is known, their names are those that the run delivered, missed or listed, if there are exactly
that many. A folder that only the run itself named is not a case if most of the others were listed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ...trajectories.models import Report, Run
from ...trajectories.reading.harness_report import submit_answer
from ...trajectories.reading.json_bytes import count
from .public_inputs import PublicInputs

Source = Literal["public", "agent_summary", "report", "submit", "trace"]
_DIGIT = re.compile("[0-9]")
_ID = re.compile(r"(?<![\w.-])[A-Za-z][A-Za-z0-9]{0,30}(?:[_-][A-Za-z0-9]{1,30}){0,4}(?![\w-])")
_NUMBERED = re.compile(r"(?:[_-]\d\d|\d{3})$")
"""How the ids of numbered inputs end."""
_MAX_IDS = 20_000
_MAX_LINE = 4000


@dataclass(frozen=True)
class ExpectedCases:
    """The expected cases; without a source nothing is known.

    `cases` are the known names and `count` is how many there are, at least as many as names.
    """

    cases: tuple[str, ...] = ()
    count: int | None = None
    source: Source | None = None


def expected_cases(
    run: Run, delivered: Iterable[str], public: PublicInputs | None, counts_valid: bool
) -> ExpectedCases:
    """The cases that a run had to deliver.

    `delivered` are the cases that have their required file. `counts_valid`: the report's completion
    rate counts valid files, so that only a rate of 1 shows how many cases there are.
    """
    if public is not None:
        return ExpectedCases(public.cases, len(public.cases), "public")
    if run.listed_cases:
        return ExpectedCases(run.listed_cases, len(run.listed_cases), "agent_summary")
    delivered_names = _one_family(tuple(delivered))
    listed = _listed(run, delivered_names)
    missing = missing_cases(run.submit_result)
    mentioned = {*missing, *listed}
    confirmed = tuple(name for name in delivered_names if name in mentioned)
    if len(confirmed) * 2 <= len(delivered_names):
        confirmed = delivered_names  # what was printed is not a list of the inputs
    total = _reported_total(run.report, delivered_names, confirmed, counts_valid)
    if total:
        names = _fill_names(total, delivered_names, missing, listed)
        return ExpectedCases(names, total, "report")
    total = count(submit_answer(run.submit_result).get("patients_checked"))
    if total:
        names = _fill_names(total, delivered_names, missing, listed)
        return ExpectedCases(names, total, "submit")
    if missing or len(listed) > 1:
        names = tuple(sorted({*confirmed, *mentioned}))
        return ExpectedCases(names, len(names), "trace")
    return ExpectedCases()


def _reported_total(
    report: Report | None,
    delivered: tuple[str, ...],
    confirmed: tuple[str, ...],
    counts_valid: bool,
) -> int | None:
    """How many cases the report counts, or implies by its completion rate."""
    if report is None:
        return None
    if report.n_expected:
        return report.n_expected
    rate = report.completion_rate
    if not rate or not delivered or (counts_valid and rate != 1.0):
        return None
    for names in (delivered, confirmed):
        total = _whole_number(len(names) / rate)
        if total is not None:
            return total
    return None


def _whole_number(value: float) -> int | None:
    """The integer within 1 % of a value; None if there is none."""
    return round(value) if abs(value - round(value)) < 0.01 * value else None


def missing_cases(submit_result: dict[str, Any] | None) -> tuple[str, ...]:
    """Cases of the files that the answer to submit_results calls missing."""
    files = submit_answer(submit_result).get("missing_files")
    if not isinstance(files, list):
        return ()
    cases: dict[str, None] = {}
    for file in files:
        if isinstance(file, str):
            parts = file.replace("\\", "/").strip("/").split("/")
            if len(parts) > 1:
                cases[parts[-2]] = None
    return tuple(cases)


def _fill_names(
    total: int, delivered: tuple[str, ...], *others: tuple[str, ...]
) -> tuple[str, ...]:
    """The names of `total` cases as far as they are known.

    If the other names alone are `total`, what was delivered beyond them is not a case. Otherwise
    these are the delivered names, with each group of others added while the sum is at most `total`.
    """
    other_names = set[str]().union(*others)
    if len(other_names) == total:
        return tuple(sorted(other_names))
    names = set(delivered)
    for group in others:
        if len(names | set(group)) <= total:
            names |= set(group)
    return tuple(sorted(names))


def _pattern(name: str) -> str:
    """A name with `#` for every digit: the same for all ids of one numbering."""
    return re.sub(r"\d", "#", name)


def _one_family(names: tuple[str, ...]) -> tuple[str, ...]:
    """The numbered names, sorted; all names if none has a number.

    This leaves out a pilot or scratch folder.
    """
    numbered = [name for name in names if "#" in _pattern(name)]
    return tuple(sorted(numbered or names))


def _listed(run: Run, delivered: tuple[str, ...]) -> tuple[str, ...]:
    """Ids that the environment printed and that are built like the delivered ones.

    Without delivered ids: the largest family of ids that look like inputs.
    """
    patterns = {_pattern(name) for name in delivered if "#" in _pattern(name)}
    if patterns:
        prefixes = [pattern.split("#", 1)[0] for pattern in patterns]
        printed = _printed_ids(run, prefixes)
        return tuple(sorted(name for name in printed if _pattern(name) in patterns))
    listings: Counter[str] = Counter()
    families: dict[str, set[str]] = {}
    for name, times in _printed_ids(run).items():
        if _NUMBERED.search(name):
            listings[_pattern(name)] += times
            families.setdefault(_pattern(name), set()).add(name)
    families = {pattern: names for pattern, names in families.items() if len(names) > 1}
    if not families:
        return ()
    best = max(families, key=lambda pattern: (listings[pattern], len(families[pattern]), pattern))
    return tuple(sorted(families[best]))


def _printed_ids(run: Run, prefixes: Iterable[str] = ("",)) -> Counter[str]:
    """Id-like words in the output of actions, with how often each was a listing's entry.

    Only lines that contain one of the prefixes are searched.
    """
    ids: Counter[str] = Counter()
    for line in _lines_with(run, tuple(prefixes)):
        for match in _ID.finditer(line[:_MAX_LINE]):
            name = match[0]
            if _DIGIT.search(name) is None:
                continue
            # An entry of a listing stands alone on its line, or at the end of a path.
            is_entry = line.strip().strip("/") == name or line[: match.start()].endswith("/")
            ids[name] += int(is_entry)
        if len(ids) > _MAX_IDS:
            return ids
    return ids


def _lines_with(run: Run, parts: tuple[str, ...]) -> Iterator[str]:
    """Lines of output that contain a digit and one of the parts."""
    for _, action in run.actions():
        if action.observation is None:
            continue
        text = action.observation.stdout
        if not any(part in text for part in parts):
            continue
        for line in text.splitlines():
            if _DIGIT.search(line) is not None and any(part in line for part in parts):
                yield line
