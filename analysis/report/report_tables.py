"""Every table of a cohort by name: what the report and `analyze --json` show.

`TABLES` holds them in reading order, ours and those of packages; `all_tables` computes them. Tables
in long form have two rows a subject where both populations apply; `estimates.wide` puts these side
by side for display.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import polars as pl

from ...errors import AmbjudgeError, ConfigError
from ...plugins import Door
from ..statistics.run_arrays import check_outcome
from ..tables.cohorts import Cohort, cohort
from ..tables.frames import conform, with_total_tokens
from ..tables.grouping import RowKind, check_rows, row_kind
from ..tables.label_tables import Labels
from .failure_texts import FailureTexts
from .table_spec import Table, TableInputs

BUILT_IN = (
    "cohort",
    "basis",
    "checks",
    "who_ran",
    "leaderboard",
    "pairwise",
    "run_means",
    "stages",
    "stages_by_track",
    "tiers",
    "codes_read",
    "codes",
    "codes_by_agent",
    "codes_by_track",
    "code_stages",
    "cliff",
    "recovery",
    "stages_by_code",
    "code_effects",
    "effect_parts",
    "effects_by_agent",
    "robustness",
    "explained",
    "placebo",
    "circularity",
    "leave_agent_out",
    "cost",
    "judge_cost",
    "failures",
    "ability",
    "pass_k",
    "ratings",
    "parts",
    "first_breaks",
    "stage_use",
    "planning",
    "order",
    "rank_stability",
    "label_plan",
    "reliability",
    "agreement",
    "corrected_leaderboard",
    "corrected_effects",
    "clusters",
)
"""Names of our tables in reading order; each is a constant of `built_in_tables`."""


def _problem(name: str, loaded: Any) -> str:
    return "" if isinstance(loaded, Table) else "it is not a Table"


TABLES: Door[Table] = Door(
    "tables",
    "table",
    {name: f"{__package__}.built_in_tables:{name.upper()}" for name in BUILT_IN},
    _problem,
)

LABEL_WARNINGS = {
    "leaderboard": "the leaderboard corrected by labels removes the judge's errors",
    "pairwise": "the ranks of the leaderboard corrected by labels remove the judge's errors",
    "code_effects": "codes may be wrong; the effects corrected by labels show by how much",
    "effect_parts": "codes may be wrong; the effects corrected by labels show by how much",
    "cliff": "codes may be wrong, which makes it look smaller; no label corrects it",
}
"""Table -> warning in every row when there are labels, as the table itself is not corrected."""


def all_tables(
    source: Any,
    *,
    labels: Labels | None = None,
    texts: FailureTexts | None = None,
    only: Iterable[str] | None = None,
    outcome: str = "overall",
    code_source: str = "any",
    budget: int = 300,
    by: str = "agent",
) -> dict[str, pl.DataFrame]:
    """Compute tables by name, in the order of TABLES.

    `source`: a run frame, a Cohort, or anything `cohorts.cohort` reads. `labels` and `texts` add
    the tables that need them. `only`: names of tables to compute. `budget`: number of runs that can
    be labelled. `by`: what the rows of tables about agents stand for (`grouping.ROWS`, or a field
    of the runs); their column is `agent`. A table that cannot be computed has one row with the
    `reason`. Raises ConfigError for an unknown name and InputError if nothing can be read.
    """
    requested = set(TABLES.names if only is None else only)
    unknown = sorted(requested.difference(TABLES.names))
    if unknown:
        raise ConfigError(f"unknown table {unknown[0]!r}", f"choose from {', '.join(TABLES.names)}")
    analysed = source if isinstance(source, Cohort) else _read_cohort(source)
    check_outcome(analysed.runs, outcome)
    check_rows(by, analysed.runs)
    inputs = TableInputs(
        cohort=analysed,
        labels=labels,
        texts=texts,
        outcome=outcome,
        code_source=code_source,
        label_budget=budget,
        by=by,
    )
    by_rows, kind = inputs.by_rows(), row_kind(analysed.runs, by)
    tables: dict[str, pl.DataFrame] = {}
    for name in TABLES.names:
        table = TABLES.find(name) if name in requested else None
        if table is not None and not _lacks_input(table, inputs):
            if table.about != "rows" or by == "agent":
                tables[name] = _compute(name, table, inputs)
            else:
                tables[name] = _in_words_of(kind, _compute(name, table, by_rows))
    return tables if labels is None else _with_label_warnings(tables)


_AGENT_WORD = re.compile(r"(?<![\w-])agent(s?)\b(?!-)")
"""The word for what a row stands for, in texts that the statistics write; not part of a name."""
_OWN_TEXTS = ("reason", "method", "estimand", "kind")
"""Columns that hold such texts, beside the lists of warnings."""


def _in_words_of(kind: RowKind, table: pl.DataFrame) -> pl.DataFrame:
    """The table with what a row stands for in place of the word agent in our own texts."""

    def in_words(text: str) -> str:
        if any(name in text for name in kind.members):
            return text
        return _AGENT_WORD.sub(lambda word: kind.plural if word[1] else kind.singular, text)

    columns: list[pl.Series | pl.Expr] = []
    for name in _OWN_TEXTS:
        if name in table.columns:
            texts = table[name].drop_nulls().unique().to_list()
            columns.append(pl.col(name).replace({text: in_words(text) for text in texts}))
    if "warnings" in table.columns:
        lists = [
            None if texts is None else [in_words(text) for text in texts]
            for texts in table["warnings"].to_list()
        ]
        columns.append(pl.Series("warnings", lists, dtype=table.schema["warnings"]))
    return table.with_columns(columns)


def _lacks_input(table: Table, inputs: TableInputs) -> bool:
    return table.needs != "" and getattr(inputs, table.needs) is None


def _compute(name: str, table: Table, inputs: TableInputs) -> pl.DataFrame:
    """The table, or one row with the reason why it cannot be computed."""
    try:
        return table.compute(inputs)
    except AmbjudgeError as error:
        return pl.DataFrame({"reason": [str(error)]})
    except Exception as error:
        plugin = TABLES.entries[name]
        if not plugin.package:  # a fault of ours must be seen
            raise
        return pl.DataFrame({"reason": [f"{plugin} failed: {type(error).__name__}: {error}"[:300]]})


def _with_label_warnings(tables: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    for name, warning in LABEL_WARNINGS.items():
        table = tables.get(name)
        if table is not None and "warnings" in table.columns:
            note = pl.lit([f"as judged; {warning}"], dtype=pl.List(pl.String))
            tables[name] = table.with_columns(pl.concat_list("warnings", note))
    return tables


def _read_cohort(source: Any) -> Cohort:
    read_cohort = cohort([] if isinstance(source, pl.DataFrame) else source)
    runs = conform(source) if isinstance(source, pl.DataFrame) else read_cohort.runs
    return replace(read_cohort, runs=with_total_tokens(runs))
