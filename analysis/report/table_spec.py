"""What a table of `analyze` is: its heading, what it needs, and the function that computes it.

Packages add tables behind the door `tables` (`report_tables.TABLES`), each a `Table`:

    DISPUTED = Table(
        title="Disputed criteria",
        note="Criteria on which the members of a panel disagreed.",
        compute=lambda inputs: disputed(inputs.cohort.criteria),
    )
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import polars as pl

from ...errors import ConfigError
from ..statistics.corrected_effects import corrected_code_effects
from ..statistics.corrected_means import corrected_leaderboard, human_scores
from ..tables.cohorts import Cohort
from ..tables.label_tables import Labels, read_labels, weighted
from ..tables.score_names import score_of
from .failure_texts import FailureTexts


@dataclass(frozen=True)
class TableInputs:
    """What tables are computed from."""

    cohort: Cohort
    labels: Labels | None
    """Human labels; None without any."""
    texts: FailureTexts | None
    """Texts about failures; None if they were not collected."""
    outcome: str
    """The score that the tables are about: `overall`, another column, or `outcome.NAME`."""
    code_source: str
    """Whose error codes count: `any`, `judge`, `detector`, ... (`run_arrays`)."""
    label_budget: int
    """Number of runs that can be labelled."""

    @property
    def runs(self) -> pl.DataFrame:
        """The run frame: one row a run."""
        return self.cohort.runs

    @property
    def given_labels(self) -> Labels:
        """The labels; for tables that need them, which are computed only with labels."""
        return self.labels or read_labels([])

    @property
    def given_texts(self) -> FailureTexts:
        """The texts about failures; for tables that need them."""
        return self.texts or FailureTexts()

    @property
    def labelled_runs(self) -> list[str]:
        """Ids of the runs that the usual annotator labelled."""
        labels = self.given_labels.of(self.given_labels.usual)
        run_ids = pl.concat([labels.codes["run_id"], labels.criteria["run_id"]])
        return run_ids.unique().to_list()

    def corrected_means(self) -> pl.DataFrame:
        """The leaderboard corrected for the judge's errors; ConfigError unless it is of Overall."""
        if self.outcome != "overall":
            raise ConfigError("labels of criteria correct Overall alone", "leave --outcome out")
        labels = self.given_labels
        human, notes = human_scores(self.cohort, labels, labels.usual)
        return corrected_leaderboard(self.runs, human, self.outcome, notes=notes)

    def corrected_effects(self) -> pl.DataFrame:
        """Effects of codes corrected for wrong codes by the usual annotator's labels."""
        labels = self.given_labels.of(self.given_labels.usual)
        run_ids = self.runs.select("run_id").unique()
        codes = labels.codes.drop("annotator").join(run_ids, on="run_id", how="semi")
        human, notes = weighted(codes.unique("run_id", keep="first"), labels.drawn)
        return corrected_code_effects(
            self.runs, human, self.outcome, source=self.code_source, notes=notes
        )


@dataclass(frozen=True)
class Table:
    """A table: its heading, its note, and how it is computed."""

    title: str
    """`{score}` stands for the score that is asked for, here and in the note."""
    note: str
    compute: Callable[[TableInputs], pl.DataFrame]
    """An AmbjudgeError is shown in place of the rows, as the reason why there are none."""
    needs: Literal["", "labels", "texts"] = ""
    """What the table is not computed without."""

    def heading(self, outcome: str, runs: pl.DataFrame | None = None) -> tuple[str, str]:
        """Title and note, with the score named in both."""
        score = score_of(outcome, runs)
        return self.title.replace("{score}", score.titled), self.note.replace("{score}", score.name)
