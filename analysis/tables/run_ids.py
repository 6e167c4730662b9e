"""Runs of different folders that bear the same id, told apart.

A run's id is its folder's name, so `agent-a/kidney-01` and `agent-b/kidney-01` come with the same
one. Taken for one run, one of them would be dropped as a duplicate and labels of one would count
for both.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import polars as pl

Row = tuple[str | None, str | None]
"""Path of the conversation, hash of its bytes."""


def told_apart(runs: pl.DataFrame) -> pl.Series:
    """The ids of a run frame (`run_id`, `path`, `sha256`), with folders' names in front where
    different runs share one.

    The same run are rows with the same path or the same bytes: scored twice, by several judges, or
    under another path.
    """
    shared = (
        runs.group_by("run_id")
        .agg(paths=pl.col("path").n_unique(), bytes=pl.col("sha256").n_unique())
        .filter((pl.col("paths") > 1) & (pl.col("bytes") > 1))["run_id"]
    )
    if shared.is_empty():
        return runs["run_id"]
    ids = runs["run_id"].to_list()
    groups: dict[str, list[int]] = defaultdict(list)
    concerned = runs.with_row_index("at").filter(pl.col("run_id").is_in(shared.implode()))
    rows: dict[int, Row] = {}
    for at, name, path, digest in concerned.select("at", "run_id", "path", "sha256").iter_rows():
        groups[name].append(at)
        rows[at] = (path or None, digest or None)
    for name, members in groups.items():
        for at, longer in zip(members, _names(name, [rows[at] for at in members]), strict=True):
            ids[at] = longer
    return pl.Series("run_id", ids, dtype=pl.String)


def _names(name: str, rows: list[Row]) -> list[str]:
    """An id for each row: `name` for a single run, else as much of the path as tells the runs
    apart."""
    runs = _components(rows)
    parts = {
        run: _parts(next((rows[i][0] for i in reversed(range(len(rows))) if runs[i] == run), None))
        for run in set(runs)
    }
    if len(parts) == 1:
        return [name] * len(rows)
    longest = max(map(len, parts.values()))
    wanted = next(
        (n for n in range(1, longest + 1) if len({p[-n:] for p in parts.values()}) == len(parts)),
        longest,
    )
    return ["/".join(parts[run][-wanted:]) or name for run in runs]


def _components(rows: Iterable[Row]) -> list[int]:
    """A number for each row, the same for rows that share a path or bytes, be it through others."""
    root: dict[tuple[str, str], tuple[str, str]] = {}

    def find(key: tuple[str, str]) -> tuple[str, str]:
        while root.setdefault(key, key) != key:
            root[key] = key = root[root[key]]
        return key

    keys = []
    for number, (path, digest) in enumerate(rows):
        known = [
            (kind, value)
            for kind, value in (("path", path), ("bytes", digest))
            if value is not None
        ]
        known = known or [("row", str(number))]
        for key in known[1:]:
            root[find(key)] = find(known[0])
        keys.append(known[0])
    numbers: dict[tuple[str, str], int] = {}
    return [numbers.setdefault(find(key), len(numbers)) for key in keys]


def _parts(path: str | None) -> tuple[str, ...]:
    """The folders down to the run's own."""
    parts = [part for part in re.split(r"[/\\]", path or "") if part]
    if parts and parts[-1].endswith(".json"):
        stem = parts.pop().removesuffix(".json")
        if stem not in ("conversation", "messages"):
            parts.append(stem)
    if parts and parts[-1] == "process":
        parts.pop()
    return tuple(parts)
