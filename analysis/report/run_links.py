"""Where a reader of the report finds the runs that it names: on a site, or in a list at its end."""

from __future__ import annotations

from typing import Protocol

import polars as pl

_DESCRIBED_BY = ("agent", "task", "track", "tier")


class RunLinks(Protocol):
    """Addresses of runs."""

    def link(self, run_id: str, turn: int | None = None) -> str:
        """The address of a run, or of one of its turns; "" if there is none."""

    def search(self, query: str) -> str:
        """The address of the runs that a filter selects; "" if nothing can filter runs."""


class ListedRuns:
    """A list of the named runs at the end of the report, where there is no site."""

    def __init__(self, runs: pl.DataFrame) -> None:
        columns = runs.select("run_id", *_DESCRIBED_BY, "path").unique("run_id")
        self._rows = {row["run_id"]: row for row in columns.to_dicts()}
        self._turns: dict[str, set[int]] = {}

    def link(self, run_id: str, turn: int | None = None) -> str:
        turns = self._turns.setdefault(run_id, set())
        if turn is not None:
            turns.add(turn)
        return f"#r-{list(self._turns).index(run_id)}"

    def search(self, query: str) -> str:
        return ""

    def entries(self) -> list[dict[str, str]]:
        """Id, description and path of each run that was linked, in the order of the links."""
        entries = []
        for run_id, turns in self._turns.items():
            row = self._rows.get(run_id, {})
            parts = [str(row[column]) for column in _DESCRIBED_BY if row.get(column)]
            if turns:
                noun = "turn" if len(turns) == 1 else "turns"
                parts.append(f"{noun} {', '.join(map(str, sorted(turns)))}")
            entries.append(
                {"id": run_id, "about": " · ".join(parts), "path": str(row.get("path") or "")}
            )
        return entries
