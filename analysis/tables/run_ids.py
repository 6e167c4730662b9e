"""Longer ids for different runs that share one.

A run's id is its folder's name, so `agent-a/kidney-01` and `agent-b/kidney-01` have the same id.
Without longer ids one of them would be dropped as a duplicate, and labels of one would count for
both.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

import polars as pl

PathAndHash = tuple[str | None, str | None]
"""Path of a conversation and hash of its bytes."""
_Key = tuple[str, str]


def disambiguate(runs: pl.DataFrame) -> pl.Series:
    """The ids of a run frame, with folder names in front where different runs share one.

    `runs` has `run_id`, `path` and `sha256`. Rows with the same path or the same bytes are the same
    run: scored twice, by several judges, or under another path.
    """
    is_shared = (pl.col("paths") > 1) & (pl.col("hashes") > 1)
    shared = (
        runs.group_by("run_id")
        .agg(paths=pl.col("path").n_unique(), hashes=pl.col("sha256").n_unique())
        .filter(is_shared)["run_id"]
    )
    if shared.is_empty():
        return runs["run_id"]
    ids = runs["run_id"].to_list()
    members: dict[str, list[int]] = defaultdict(list)
    rows: dict[int, PathAndHash] = {}
    ambiguous = runs.with_row_index("index").filter(pl.col("run_id").is_in(shared.implode()))
    for index, run_id, path, digest in ambiguous.select(
        "index", "run_id", "path", "sha256"
    ).iter_rows():
        members[run_id].append(index)
        rows[index] = (path or None, digest or None)
    for run_id, indices in members.items():
        longer_ids = _longer_ids(run_id, [rows[index] for index in indices])
        for index, longer_id in zip(indices, longer_ids, strict=True):
            ids[index] = longer_id
    return pl.Series("run_id", ids, dtype=pl.String)


def _longer_ids(run_id: str, rows: Sequence[PathAndHash]) -> list[str]:
    """An id for each row: the plain one for a single run, else the shortest distinct path ends."""
    runs = _run_numbers(rows)
    # Of several paths of one run the last counts.
    folders = {run: _folder_names(path) for run, (path, _) in zip(runs, rows, strict=True)}
    if len(folders) == 1:
        return [run_id] * len(rows)
    longest = max(map(len, folders.values()))
    length = longest
    for candidate in range(1, longest + 1):
        if len({names[-candidate:] for names in folders.values()}) == len(folders):
            length = candidate
            break
    return ["/".join(folders[run][-length:]) or run_id for run in runs]


def _run_numbers(rows: Sequence[PathAndHash]) -> list[int]:
    """A number for each row, equal for rows connected by shared paths or bytes (union-find)."""
    parent: dict[_Key, _Key] = {}

    def root(key: _Key) -> _Key:
        while parent.setdefault(key, key) != key:
            parent[key] = key = parent[parent[key]]
        return key

    first_keys = []
    for number, (path, digest) in enumerate(rows):
        keys = [("path", path)] if path is not None else []
        if digest is not None:
            keys.append(("bytes", digest))
        if not keys:
            keys.append(("row", str(number)))
        for key in keys[1:]:
            parent[root(key)] = root(keys[0])
        first_keys.append(keys[0])
    numbers: dict[_Key, int] = {}
    return [numbers.setdefault(root(key), len(numbers)) for key in first_keys]


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
