"""Everything that analysing a cohort yields, read once: frames, tables, groups of failures; written
as files or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ...atomic_files import whole
from ...errors import InputError
from ..tables.card_sources import Scoring, each_card
from ..tables.cohorts import Cohort, cohort
from ..tables.flat_tables import finite
from ..tables.frames import write_frame
from .failure_texts import FailureTexts
from .report_tables import TABLES, all_tables

if TYPE_CHECKING:
    from ..tables.label_tables import Labels

SCHEMA = "ambjudge.analysis/1"


@dataclass(frozen=True)
class Analysis:
    """A cohort with its tables by name (TABLES), and the column of the score that they are about."""

    cohort: Cohort
    tables: dict[str, pl.DataFrame]
    outcome: str = "overall"

    @property
    def runs(self) -> pl.DataFrame:
        return self.cohort.runs

    @property
    def problems(self) -> tuple[str, ...]:
        return self.cohort.problems

    def heading(self, name: str) -> tuple[str, str]:
        """Title and note of a table."""
        table = TABLES.find(name)
        return (name, "") if table is None else table.heading(self.outcome, self.runs)


def read(
    source: Any,
    texts: FailureTexts | None = None,
    seen: Callable[[], None] | None = None,
    scoring: Scoring | None = None,
    judge: str | None = None,
) -> Cohort:
    """The cohort of a source (see `cohorts.cohort`), its words collected on the way; `seen` is
    called for every card.

    `judge` leaves out the scorecards of every other one. Raises InputError when nothing can be
    read, or when there is not a single run.
    """
    problems: list[str] = []
    judges: set[str] = set()

    def watched() -> Iterator[Any]:
        for item in each_card(source, problems, scoring):
            if seen is not None:
                seen()
            if isinstance(item, pl.DataFrame):
                judges.update(item["judge"].drop_nulls())
                yield item if judge is None else item.filter(pl.col("judge") == judge)
                continue
            judges.add(item.judge.name)
            if judge is not None and item.judge.name != judge:
                continue
            if texts is not None:
                texts.add(item)
            yield item

    found = cohort(watched())
    found = replace(found, problems=(*problems, *found.problems))
    if found.runs.is_empty() and judges - {judge}:
        raise InputError(
            f"no scorecards of judge {judge!r}", f"there are {', '.join(sorted(judges))}"
        )
    if found.runs.is_empty():
        first = f"; first problem: {found.problems[0]}" if found.problems else ""
        raise InputError(
            f"no run to analyse{first}", "give scorecards, a frame, or a folder of runs"
        )
    return found


def analyse(
    source: Any,
    *,
    labels: Labels | None = None,
    only: Iterable[str] | None = None,
    outcome: str = "overall",
    code_source: str = "any",
    budget: int = 300,
    seen: Callable[[], None] | None = None,
    scoring: Scoring | None = None,
    judge: str | None = None,
) -> Analysis:
    """Reads a source once and computes its tables; `only` limits them by name. See `all_tables` for
    the options.

        found = ambjudge.analyze(ambjudge.score_many("runs/"))
        print(found.runs, found.tables["leaderboard"])

    `source`: scorecards, files or stores of them, frames, or a folder of runs (see
    `cohorts.cohort`); `runs` and `tables` are polars frames. `seen` is called for every card that
    was read; `scoring` says how runs without a scorecard are scored. `judge` leaves out the
    scorecards of others.
    """
    chosen = list(TABLES.names if only is None else only)
    texts = FailureTexts() if "clusters" in chosen else None
    found = read(source, texts, seen, scoring, judge)
    tables = all_tables(
        found,
        labels=labels,
        texts=texts,
        only=chosen,
        outcome=outcome,
        code_source=code_source,
        budget=budget,
    )
    return Analysis(found, tables, outcome)


def rows(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain values for JSON."""
    return finite(table).to_dicts()


def to_json(analysis: Analysis) -> dict[str, Any]:
    """All tables as plain values: `tables.<name>` has title, note and rows."""
    return {
        "schema": SCHEMA,
        "outcome": analysis.outcome,
        "runs": analysis.runs.height,
        "tables": {
            name: {
                **dict(zip(("title", "note"), analysis.heading(name), strict=True)),
                "columns": table.columns,
                "rows": rows(table),
            }
            for name, table in analysis.tables.items()
        },
    }


def write_tables(analysis: Analysis, folder: Path) -> list[Path]:
    """Writes each table as CSV and Parquet below `folder`/tables, the run frame as runs.parquet and
    runs.csv, and tables.json."""
    place = folder / "tables"
    place.mkdir(parents=True, exist_ok=True)
    out = []
    for name, table in {"runs": analysis.runs, **analysis.tables}.items():
        for suffix in ("csv", "parquet"):
            path = place / f"{name}.{suffix}"
            write_frame(table, path)
            out.append(path)
    path = folder / "tables.json"
    text = json.dumps(to_json(analysis), ensure_ascii=False, allow_nan=False) + "\n"
    with whole(path) as part:
        part.write_text(text, "utf-8", "backslashreplace")
    return [*out, path]
