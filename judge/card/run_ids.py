"""The ids of runs: the name of a run's folder, with folders in front where another run has it too.

`agent-a/kidney-01` and `agent-b/kidney-01` would both be `kidney-01`. Ids are made of all runs that
a store or a source of scorecards knows, so that a filter, a judge or a part of the folder that is
looked at changes no id.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple


class NamedRun(NamedTuple):
    """A scorecard's run, by the name of its folder."""

    run_id: str | None
    path: str | None
    run: Hashable
    """Equal for scorecards of one run."""


def distinct_ids(runs: Sequence[NamedRun]) -> list[str]:
    """An id for each: its own, or the shortest end of its path that no other run of the name has.

    Of several paths of one run the last counts.
    """
    members: dict[str, dict[Hashable, str | None]] = defaultdict(dict)
    for named in runs:
        members[named.run_id or ""][named.run] = named.path
    longer = {
        run_id: _path_ends(run_id, paths) for run_id, paths in members.items() if len(paths) > 1
    }
    ids = []
    for named in runs:
        run_id = named.run_id or ""
        ids.append(longer.get(run_id, {}).get(named.run) or run_id)
    return ids


def names_of(path: Path) -> Iterator[str]:
    """The ids that the run at a path may have, the longest first."""
    from ...trajectories.reading.layout import run_id

    folders = _folder_names(str(path))
    for length in range(len(folders), 0, -1):
        yield "/".join(folders[-length:])
    yield run_id(path)


def _path_ends(run_id: str, paths: dict[Hashable, str | None]) -> dict[Hashable, str]:
    """The shortest ends of these paths that differ, none shorter than the id; runs that were at
    one path after another are numbered."""
    folders = {run: _folder_names(path) for run, path in paths.items()}
    n_places = len(set(folders.values()))
    length = run_id.count("/") + 1
    longest = max(map(len, folders.values()))
    while length < longest and len({_end(names, length) for names in folders.values()}) < n_places:
        length += 1
    seen: Counter[str] = Counter()
    ids = {}
    for run, names in folders.items():
        end = run_id if n_places == 1 else _end(names, length) or run_id
        seen[end] += 1
        ids[run] = end if seen[end] == 1 else f"{end}#{seen[end]}"
    return ids


def _end(names: tuple[str, ...], length: int) -> str:
    return "/".join(names[-length:])


def _folder_names(path: str | None) -> tuple[str, ...]:
    """The folders down to the run's own."""
    names = [name for name in re.split(r"[/\\]", path or "") if name]
    if names and names[-1].endswith(".json"):
        stem = names.pop().removesuffix(".json")
        if stem not in ("conversation", "messages"):
            names.append(stem)
    if names and names[-1] == "process":
        names.pop()
    return tuple(names)
