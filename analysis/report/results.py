"""The analysis of a cohort: reads it once, computes its tables, and writes files or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ...atomic_files import atomic_write, refuse_links
from ...console import counted
from ...errors import InputError
from ...judge.card.choice import CardChoice
from ...judge.card.scorecard import ScoreCard
from ..tables.card_sources import CardFilter, CardReading
from ..tables.cohorts import Cohort, cohort
from ..tables.flat_tables import json_rows
from ..tables.frames import with_total_tokens, write_frame
from ..tables.grouping import RowKind, mixture_notes, row_kind, with_row_names
from ..tables.score_names import score_of
from .board_result import HIDDEN_COLUMNS
from .cohort_result import TitledTable, result_html, result_text, selection_line
from .display import display
from .failure_texts import FailureTexts
from .findings import findings
from .report_tables import TABLES, all_tables

if TYPE_CHECKING:
    from ..tables.label_tables import Labels

SCHEMA = "ambjudge.analysis/1"
SUMMARY = ("leaderboard", "corrected_leaderboard", "code_effects")
"""Tables of the summary, which a terminal and a notebook show. The second needs labels."""
_SUMMARY_HIDES = (
    "name",
    *HIDDEN_COLUMNS["overall"],
    "loo_task",
    "loo_min",
    "loo_max",
    "n",
    "n_clusters",
)


@dataclass(frozen=True, repr=False)
class Analysis:
    """A cohort, its tables by name, and the score that they are about (a column of the runs)."""

    cohort: Cohort
    tables: dict[str, pl.DataFrame]
    outcome: str = "overall"
    by: str = "agent"
    """What the rows of tables about agents stand for; their column is `agent`."""

    @property
    def rows(self) -> RowKind:
        """What the rows stand for, in words."""
        return row_kind(self.runs, self.by)

    @property
    def runs_by_row(self) -> pl.DataFrame:
        """The run frame with what each run counts for in place of its agent."""
        return with_row_names(self.runs, self.by)

    @property
    def mixtures(self) -> tuple[str, ...]:
        """Rows that mix agents or models, and tiers that rows average over."""
        return tuple(mixture_notes(self.runs, self.by))

    @property
    def runs(self) -> pl.DataFrame:
        return self.cohort.runs

    @property
    def problems(self) -> tuple[str, ...]:
        return self.cohort.problems

    @property
    def selection(self) -> str:
        """Which scorecards count, in one line."""
        return selection_line([self.cohort])

    @property
    def findings(self) -> tuple[str, ...]:
        """The main results as sentences, from the tables that were computed."""
        score = score_of(self.outcome, self.runs)
        return tuple(finding.text for finding in findings(self.tables, score, self.rows))

    def __getitem__(self, name: str) -> pl.DataFrame:
        """A table by its name; KeyError with the names that there are.

        A row's name is in the column that is named as `by` is.
        """
        if name not in self.tables:
            raise KeyError(f"no table {name!r}: choose from {', '.join(self.tables)}")
        table = self.tables[name]
        if not self._is_by_rows(name) or self.by in table.columns:
            return table
        return table.rename({"agent": self.by}, strict=False)

    def _is_by_rows(self, name: str) -> bool:
        """Whether a table follows the grouping."""
        table = TABLES.find(name)
        return table is not None and table.about == "rows"

    def heading(self, name: str) -> tuple[str, str]:
        """Title and note of a table."""
        table = TABLES.find(name)
        return (name, "") if table is None else table.heading(self.outcome, self.runs, self.rows)

    def display(self, name: str, hide: Sequence[str] = ()) -> TitledTable:
        """A table as people read it, or the reason why it is empty."""
        return self._titled(name, self.tables[name], hide)

    def summary(self) -> Iterator[TitledTable]:
        """The main tables in short, as far as they were computed."""
        for name in SUMMARY:
            if name in self.tables:
                table = self.tables[name]
                if name == "leaderboard" and "scope" in table.columns:
                    table = table.filter(pl.col("scope") == "overall")
                yield self._titled(name, table, _SUMMARY_HIDES)

    def _titled(self, name: str, table: pl.DataFrame, hide: Sequence[str]) -> TitledTable:
        title = self.heading(name)[0]
        if table.columns == ["reason"] or table.is_empty():
            return TitledTable(title, None, (table["reason"][0] if table.height else "no rows",))
        spec = TABLES.find(name)
        exceptions = () if spec is None else spec.exceptions(self.rows)
        rows_of = self.rows_of(name)
        return TitledTable(title, display(table, name, hide=hide, rows_of=rows_of), exceptions)

    def rows_of(self, name: str) -> str:
        """The heading of the column `agent` of a table."""
        return self.by if self._is_by_rows(name) else "agent"

    def to_dict(self) -> dict[str, Any]:
        """All tables as plain values: `tables.<name>` has title, note, columns and rows."""
        tables = {}
        for name, table in self.tables.items():
            title, note = self.heading(name)
            tables[name] = {
                "title": title,
                "note": note,
                "columns": table.columns,
                "rows": json_rows(table),
            }
        return {
            "schema": SCHEMA,
            "outcome": self.outcome,
            "by": self.by,
            "mixtures": list(self.mixtures),
            "runs": self.runs.height,
            "tables": tables,
        }

    @property
    def _title(self) -> str:
        score = score_of(self.outcome, self.runs).titled
        rows = "" if self.by == "agent" else f" of each {self.rows.singular}"
        return f"Analysis of {counted(self.runs.height, 'run')}{rows} by {score}"

    @property
    def _contents(self) -> str:
        return f"tables: {', '.join(self.tables) or 'none'}"

    def __repr__(self) -> str:
        return result_text(
            self._title, (*self.findings, *self.mixtures), self.selection, self._contents
        )

    def _repr_html_(self) -> str:
        """Findings and main tables in a notebook; every text of a run is escaped."""
        lines = (self.selection, self._contents)
        sentences = (*self.findings, *self.mixtures)
        return result_html(self._title, sentences, self.summary(), *lines)


def read(
    source: Any,
    texts: FailureTexts | None = None,
    on_item: Callable[[ScoreCard | pl.DataFrame], None] | None = None,
    reading: CardReading | None = None,
    choice: CardChoice | None = None,
    run_filter: CardFilter | None = None,
) -> Cohort:
    """Read the cohort of a source (see `cohorts.cohort`) and collect its texts about failures.

    Runs that still go on are left out. InputError if nothing can be read, or if there is not a
    single run that has ended.
    """

    def on_each(item: ScoreCard | pl.DataFrame) -> None:
        if on_item is not None:
            on_item(item)
        if texts is not None and isinstance(item, ScoreCard):
            texts.add(item)

    read_cohort = cohort(source, reading, choice, run_filter, on_each).without_running()
    if read_cohort.runs.is_empty() and read_cohort.running:
        raise InputError(
            read_cohort.running_sentence, "score them again when they have ended (--finished)"
        )
    if read_cohort.runs.is_empty():
        raise _no_runs(read_cohort.problems, is_filtered=run_filter is not None)
    if texts is not None and read_cohort.selection is not None:
        texts.restrict(read_cohort.selection.numbers)
    return replace(read_cohort, runs=with_total_tokens(read_cohort.runs))


def _no_runs(problems: Sequence[str], *, is_filtered: bool) -> InputError:
    if is_filtered:
        return InputError("no run matches the filter", "loosen --where")
    first_problem = f"; first problem: {problems[0]}" if problems else ""
    hint = "give scorecards, a frame, or a folder of runs"
    return InputError(f"there is no run to analyse{first_problem}", hint)


def analyse(
    source: Any,
    *,
    labels: Labels | None = None,
    only: Iterable[str] | None = None,
    outcome: str = "overall",
    code_source: str = "any",
    budget: int = 300,
    on_item: Callable[[ScoreCard | pl.DataFrame], None] | None = None,
    reading: CardReading | None = None,
    choice: CardChoice | None = None,
    run_filter: CardFilter | None = None,
    by: str = "agent",
) -> Analysis:
    """Read a source once and compute its tables; `ambjudge.analyze` takes texts.

    `source`: scorecards, files or stores of them, frames, or a folder of runs (see
    `cohorts.cohort`); `runs` and `tables` are polars frames. `only` limits the tables by name; see
    `all_tables` for it and the other options. For `on_item`, `reading`, `choice` and `run_filter`
    see `read`.
    """
    names = list(TABLES.names if only is None else only)
    texts = FailureTexts() if "clusters" in names else None
    read_cohort = read(source, texts, on_item, reading, choice, run_filter)
    tables = all_tables(
        read_cohort,
        labels=None if labels is None else labels.of_runs(read_cohort.aliases),
        texts=texts,
        only=names,
        outcome=outcome,
        code_source=code_source,
        budget=budget,
        by=by,
    )
    return Analysis(read_cohort, tables, outcome, by)


def write_tables(analysis: Analysis, folder: Path) -> list[Path]:
    """Write the tables and the run frame below a folder; return the paths.

    The files are `tables/NAME.csv` and `tables/NAME.parquet` for each table and for `runs`, and
    `tables.json` with all tables.
    """
    table_folder = folder / "tables"
    refuse_links(table_folder, folder)
    table_folder.mkdir(parents=True, exist_ok=True)
    named_tables = {name: analysis[name] for name in analysis.tables}
    paths = []
    for name, table in {"runs": analysis.runs, **named_tables}.items():
        for suffix in ("csv", "parquet"):
            path = table_folder / f"{name}.{suffix}"
            write_frame(table, path, below=folder)
            paths.append(path)
    path = folder / "tables.json"
    text = json.dumps(analysis.to_dict(), ensure_ascii=False, allow_nan=False) + "\n"
    with atomic_write(path, below=folder) as part:
        part.write_text(text, "utf-8", "backslashreplace")
    return [*paths, path]
