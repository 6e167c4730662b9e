"""The specification of a table of `analyze`: its heading, its inputs and how it is computed.

Packages add tables behind the door `tables` (`report_tables.TABLES`), each a `Table`:

    DISPUTED = Table(
        title="Disputed criteria",
        note="Criteria on which the members of a panel disagreed.",
        compute=lambda inputs: disputed(inputs.cohort.criteria),
    )
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from ...errors import ConfigError
from ..statistics.corrected_effects import corrected_code_effects
from ..statistics.corrected_means import corrected_leaderboard, human_scores, human_verdicts
from ..tables.cohorts import Cohort
from ..tables.grouping import AGENTS, RowKind, row_names, with_row_names
from ..tables.label_tables import Labels, read_labels
from ..tables.score_names import score_of
from .failure_texts import FailureTexts


@dataclass(frozen=True)
class TableInputs:
    """The inputs of tables."""

    cohort: Cohort
    labels: Labels | None
    """Human labels; None if none were given."""
    texts: FailureTexts | None
    """Texts about failures; None if they were not collected."""
    outcome: str
    """The score that the tables are about: `overall`, another column, or `outcome.NAME`."""
    code_source: str
    """Whose error codes count: `any`, `judge`, `detector`, ... (`run_arrays`)."""
    label_budget: int
    """Number of runs that can be labelled."""
    by: str = "agent"
    """What the rows of tables about agents stand for (`grouping.columns_of_rows`)."""

    @property
    def runs(self) -> pl.DataFrame:
        """The run frame: one row a run."""
        return self.cohort.runs

    @property
    def named_runs(self) -> pl.DataFrame:
        """The run frame with a column, named as `by` is, that says what each run counts for."""
        return self.runs.with_columns(row_names(self.runs, self.by).alias(self.by))

    def by_rows(self) -> TableInputs:
        """The same inputs with what a row stands for in place of the agent of each run."""
        runs = with_row_names(self.runs, self.by)
        return replace(self, cohort=replace(self.cohort, runs=runs))

    @property
    def required_labels(self) -> Labels:
        """The labels; for tables with `needs="labels"`, which are not computed without them."""
        return self.labels or read_labels([])

    @property
    def required_texts(self) -> FailureTexts:
        """The texts about failures; for tables with `needs="texts"`."""
        return self.texts or FailureTexts()

    @property
    def labelled_runs(self) -> list[str]:
        """Ids of the runs that the default annotator labelled."""
        labels = self.required_labels.by_annotator(self.required_labels.default_annotator)
        run_ids = pl.concat([labels.codes["run_id"], labels.criteria["run_id"]])
        return run_ids.unique().to_list()

    def corrected_means(self) -> pl.DataFrame:
        """The leaderboard corrected for the judge's errors; ConfigError if it is not by Overall."""
        if self.outcome != "overall":
            raise ConfigError("labels of criteria can only correct Overall", "leave --outcome out")
        labels = self.required_labels
        human, notes = human_scores(self.cohort, labels, labels.default_annotator)
        return corrected_leaderboard(self.runs, human, self.outcome, notes=notes)

    def corrected_effects(self) -> pl.DataFrame:
        """Effects of codes, corrected for the judge's errors by the default annotator's labels."""
        labels = self.required_labels
        human, notes = human_verdicts(self.cohort, labels, labels.default_annotator, self.outcome)
        return corrected_code_effects(
            self.runs, human, self.outcome, source=self.code_source, notes=notes
        )


@dataclass(frozen=True)
class Table:
    """A table: its heading, its note, and how it is computed."""

    title: str
    """`{score}` stands for the name of the analysed score, here and in the note, and `{row}` and
    `{rows}` for what the rows stand for: agent and agents, unless another grouping was chosen."""
    note: str
    compute: Callable[[TableInputs], pl.DataFrame]
    """The report shows the message of an AmbjudgeError in place of the rows."""
    needs: Literal["", "labels", "texts"] = ""
    """The input without which the table is not computed."""
    about: Literal["", "rows", "agents"] = ""
    """rows: the table follows the grouping, its column `agent` holds what a row stands for; agents:
    it speaks of agents whatever the grouping, and says so; "": of neither."""

    def heading(
        self, outcome: str, runs: pl.DataFrame | None = None, rows: RowKind = AGENTS
    ) -> tuple[str, str]:
        """Title and note, with the score and what the rows stand for named in both."""
        score = score_of(outcome, runs)
        title = self.title.replace("{score}", score.titled)
        note = self.note.replace("{score}", score.name)
        return rows.fill(title), rows.fill(" ".join([note, *self.exceptions(rows)]))

    def exceptions(self, rows: RowKind) -> tuple[str, ...]:
        """A remark if the table cannot follow the grouping by rows of this kind."""
        if self.about != "agents" or rows == AGENTS:
            return ()
        return (f"This table holds agents apart: it does not follow the grouping by {rows.by}.",)
