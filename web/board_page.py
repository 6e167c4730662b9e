"""The board of a site: its numbers as JSON, rounded as they are shown, and what its page says.

`analysis/statistics/board.py` computes them; `board.js` chooses among them and draws.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from ..analysis.report.basis import basis, sentences
from ..analysis.report.findings import named
from ..analysis.report.glossary import terms_of
from ..analysis.statistics.board import (
    GROUPINGS,
    RESOURCES,
    TOTALS,
    BoardCell,
    BoardRow,
    Selection,
    board_cell,
    board_runs,
    measures_of,
    selections,
)
from ..analysis.statistics.interval_estimates import SHARE_LIMITS, Estimate
from ..analysis.statistics.run_arrays import UNKNOWN
from ..analysis.statistics.stages_by_code import GROUPS, JUDGED
from ..analysis.tables.codes_read import CODES
from ..analysis.tables.cohorts import Cohort
from ..analysis.tables.frames import GROUP, OUTCOME
from ..analysis.tables.score_names import limits_of
from ..rounding import fixed
from ..sanitize import sanitize
from .stage_rubrics import StageText, UsedRubric, agentic_formula, stage_texts

BOARD_DATA = "board_data.js"
MAX_NAME_LENGTH = 300
"""Characters of a name; the table of runs cuts names there too."""
RATIO = "E2-E5 : E1"
MANY_TOKENS = 100_000
"""Mean tokens of a run from which they are shown in millions."""
_MINUTE = 60


class Unit(NamedTuple):
    """How a measure is shown."""

    name: str
    unit: str
    factor: float
    digits: int


class Definition(NamedTuple):
    """A column and what it means."""

    key: str
    name: str
    text: str


@dataclass(frozen=True)
class BoardPage:
    """A board, ready to be written."""

    data: str
    """The file BOARD_DATA."""
    cells: int
    """Selections that have numbers."""
    about: tuple[str, ...]
    """What the numbers rest on, in sentences."""
    stages: tuple[StageText, ...]
    definitions: tuple[Definition, ...]


def board_page(cohort: Cohort, rubrics: Sequence[UsedRubric]) -> BoardPage:
    """The board of a cohort, which may be empty; `rubrics` are those of its scorecards."""
    table = board_runs(cohort.runs)
    measures = measures_of(table)
    units = {measure: _unit(measure, table) for measure in measures}
    encoder = _Encoder(units)
    cells: dict[str, Any] = {}
    for selection in selections(table) if table.height else ():
        cells[encoder.key(selection)] = encoder.cell(board_cell(table, selection))
    data = {
        "measures": [
            [name, units[name].name, units[name].unit, units[name].digits, _kind(name)]
            for name in measures
        ],
        "groupings": list(GROUPINGS),
        "codes": list(CODES),
        "stages": list(JUDGED),
        "groups": list(GROUPS),
        **encoder.names(table),
        "cells": cells,
    }
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    about = sentences(basis(cohort).row(0, named=True)) if table.height else []
    if cohort.running:
        about.append(f"{cohort.running_sentence}.")
    names = [name.removeprefix(GROUP) for name in measures if _kind(name) == "stage"]
    return BoardPage(
        data=f"window.AMBJUDGE_BOARD = {text};\n",
        cells=len(cells),
        about=tuple(about),
        stages=tuple(stage_texts(names, rubrics)),
        definitions=tuple(_definitions(measures, units, rubrics)),
    )


def _kind(measure: str) -> str:
    """total, stage (or a group of a rubric of one's own), outcome, or resource."""
    if measure in TOTALS:
        return "total"
    if measure in RESOURCES:
        return "resource"
    return "outcome" if measure.startswith(OUTCOME) else "stage"


def _unit(measure: str, runs: pl.DataFrame) -> Unit:
    """How a measure is shown: scores times 100, as the benchmark's site prints them."""
    mean = runs[measure].cast(pl.Float64).mean() if runs.height else None
    size = float(mean) if isinstance(mean, float) and math.isfinite(mean) else math.inf
    if measure == "total_tokens":
        return Unit("Tokens", "M", 1e-6, 2) if size >= MANY_TOKENS else Unit("Tokens", "k", 1e-3, 1)
    if measure == "wall_time_s":
        return Unit("Time", "min", 1 / 60, 1) if size >= _MINUTE else Unit("Time", "s", 1, 1)
    units = {
        "overall": Unit("Overall", "", 1, 1),
        "agentic": Unit("Agentic", "", 100, 1),
        "task_score": Unit("Task", "", 100, 1),
        "turns": Unit("Turns", "", 1, 1),
        "cost_usd": Unit("Cost", "$", 1, 2 if size >= 1 else 3),
        "failed": Unit("Failure rate", "%", 100, 1),
    }
    name = sanitize(measure.removeprefix(GROUP).removeprefix(OUTCOME))[:MAX_NAME_LENGTH]
    if measure.startswith(OUTCOME):
        if limits_of(measure, runs) == SHARE_LIMITS:
            return Unit(name, "%", 100, 1)
        return Unit(name, "", 1, 1 if size >= 1 else 3)
    return units.get(measure, Unit(name, "", 100, 1))


def shown(value: float | None, unit: Unit) -> float | None:
    """A number in its unit, rounded as it is shown; None if it is unknown."""
    if value is None:
        return None
    return float(fixed(unit.factor * value, unit.digits))


def name_in_table(name: str) -> str:
    """A name as the table of runs has it."""
    return sanitize(name[:MAX_NAME_LENGTH])


def term(field: str, name: str) -> str:
    """The term of the filter that finds the runs with this name."""
    return f"{field}:none" if name == UNKNOWN else named(field, name_in_table(name))


class _Encoder:
    """Turns cells into lists of numbers, and collects the names and notes that they refer to."""

    def __init__(self, units: Mapping[str, Unit]) -> None:
        self.units = units
        self.notes: dict[str, int] = {}
        self.labels: dict[str, int] = {}
        """Names of rows, agents, models and tiers."""
        self.selected: dict[str, dict[str, int]] = {"track": {}, "task": {}, "tier": {}}
        self.track_of_task: dict[tuple[str, str], int] = {}

    def key(self, selection: Selection) -> str:
        """A selection as numbers of its track, task and tier; - is all."""
        task = "-"
        if selection.track is not None and selection.task is not None:
            pair = selection.track, selection.task
            task = str(self.track_of_task.setdefault(pair, len(self.track_of_task)))
        parts = [self._place("track", selection.track), task, self._place("tier", selection.tier)]
        return " ".join(parts)

    def _place(self, axis: str, name: str | None) -> str:
        if name is None:
            return "-"
        return str(self.selected[axis].setdefault(name, len(self.selected[axis])))

    def cell(self, cell: BoardCell) -> list[Any]:
        """Runs, notes, rows and codes by grouping, means, stages by code."""
        groupings: list[Any] = []
        for grouping in GROUPINGS:
            rows = [self._row(row) for row in cell.rows[grouping]]
            groupings.append(_shared(rows, groupings) or [rows, self._codes(cell.codes[grouping])])
        means = self._means(cell.means)
        stages = self._stages(cell.stages_by_code)
        return [cell.runs, self._notes(cell.notes), groupings, means, stages]

    def names(self, runs: pl.DataFrame) -> dict[str, Any]:
        """The names that cells refer to by number, each with the filter that finds its runs."""
        groups: dict[str, list[Any]] = {}
        for grouping, columns in GROUPINGS.items():
            parts = runs.select(pl.col(columns).fill_null(UNKNOWN)).unique().rows()
            groups[grouping] = [
                [self.labels[label], " ".join(map(term, columns, part))]
                for part in parts
                if (label := " · ".join(part)) in self.labels
            ]
        return {
            "labels": [name_in_table(label) for label in self.labels],
            "filters": groups,
            "tracks": [[name_in_table(x), term("track", x)] for x in self.selected["track"]],
            "tiers": [[name_in_table(x), term("tier", x)] for x in self.selected["tier"]],
            "tasks": [
                [
                    self.selected["track"].get(track, -1),
                    name_in_table(task),
                    term("task", task),
                ]
                for track, task in self.track_of_task
            ],
            "notes": list(self.notes),
        }

    def _row(self, row: BoardRow) -> list[Any]:
        parts = (row.agents, row.models, row.tiers)
        ranges = [
            [shown(end, self.units[outcome]) for end in row.ranges[outcome]]
            if outcome in row.ranges
            else None
            for outcome in ("overall", "agentic")
        ]
        pairs = [row.estimates.get(measure) for measure in self.units]
        numbers = [
            None if pair is None else self._estimate(*pair, unit)
            for pair, unit in zip(pairs, self.units.values(), strict=True)
        ]
        return [
            self._label(row.label),
            row.runs,
            row.tasks,
            [[self._label(name) for name in part] for part in parts],
            int(row.presumed),
            row.unread,
            ranges,
            numbers,
            self._notes(_row_notes(row)),
        ]

    def _estimate(self, new: Estimate, same: Estimate, unit: Unit) -> list[Any]:
        ends = (new.lo, new.hi, same.lo, same.hi)
        reason = new.reason if new.lo is None else None
        return self._numbers(new.value, new.n, ends, reason, unit)

    def _wide(self, row: Mapping[str, Any], unit: Unit) -> list[Any]:
        """A row of a table in wide form."""
        ends = tuple(row.get(name) for name in ("lo", "hi", "same_lo", "same_hi"))
        reason = row["reason"] if row["lo"] is None and row["hi"] is None else None
        return self._numbers(row["value"], row["n"], ends, reason, unit)

    def _numbers(
        self,
        value: float | None,
        n: int,
        ends: Sequence[float | None],
        reason: str | None,
        unit: Unit,
    ) -> list[Any]:
        """Value, runs, interval for new tasks, interval for the same tasks, note."""
        numbers: list[Any] = [shown(value, unit), n, *(shown(end, unit) for end in ends)]
        numbers.append(None if reason is None else self._note(reason))
        while numbers[-1] is None:
            numbers.pop()
        return numbers

    def _means(self, table: pl.DataFrame) -> list[Any]:
        by_measure = {row["measure"]: row for row in table.to_dicts()}
        return [self._wide(by_measure[measure], unit) for measure, unit in self.units.items()]

    def _codes(self, table: pl.DataFrame) -> dict[int, list[Any]]:
        """By label, for each code: fired, read, runs, rate and share; then the ratio."""
        percent, ratio = Unit("", "%", 100, 1), Unit("", "", 1, 1)
        by_label: dict[int, dict[tuple[str, str], dict[str, Any]]] = {}
        for row in table.to_dicts():
            label = self._label(row["agent"])
            by_label.setdefault(label, {})[row["code"], row["measure"]] = row
        codes: dict[int, list[Any]] = {}
        for label, rows in by_label.items():
            codes[label] = []
            for code in CODES:
                rate, share = rows[code, "rate per run"], rows[code, "share of fired codes"]
                counts = [rate["fired"], rate["read"], rate["runs"]]
                numbers = [self._wide(rate, percent), self._wide(share, percent)]
                codes[label].append([*counts, *numbers])
            codes[label].append(self._wide(rows[RATIO, "ratio"], ratio))
        return codes

    def _stages(self, table: pl.DataFrame) -> list[Any]:
        """By code, by stage: the numbers of each of GROUPS."""
        unit = Unit("", "", 100, 1)
        rows = {(row["code"], row["stage"], row["runs_with_code"]): row for row in table.to_dicts()}
        return [
            [[self._wide(rows[code, stage, group], unit) for group in GROUPS] for stage in JUDGED]
            for code in CODES
        ]

    def _label(self, name: str) -> int:
        return self.labels.setdefault(name, len(self.labels))

    def _note(self, text: str) -> int:
        return self.notes.setdefault(sanitize(text), len(self.notes))

    def _notes(self, texts: Iterable[str]) -> list[int]:
        return [self._note(text) for text in texts]


def _shared(rows: list[Any], groupings: Sequence[Any]) -> list[Any] | None:
    """The place of an earlier grouping that has the same rows under other labels, and the labels.

    The same runs have the same numbers, so that they need not be written again.
    """
    for place, grouping in enumerate(groupings):
        if isinstance(grouping[0], list) and [row[1:] for row in grouping[0]] == [
            row[1:] for row in rows
        ]:
            return [place, [row[0] for row in rows]]
    return None


def _row_notes(row: BoardRow) -> list[str]:
    """What is to be known of a row: of its Overall, or of its Agentic where it has none."""
    pair = row.estimates.get("overall") or row.estimates.get("agentic")
    texts = list(pair[0].warnings) if pair else []
    if 0 < row.unread < row.runs:
        runs = "1 run has" if row.unread == 1 else f"{row.unread:,} runs have"
        texts.append(f"{runs} too few judged criteria for a point score")
    return list(dict.fromkeys(texts))


def _definitions(
    measures: Sequence[str], units: Mapping[str, Unit], rubrics: Sequence[UsedRubric]
) -> list[Definition]:
    """The columns of the board that are no stages, in order."""
    terms = terms_of(())
    glossary = {entry.name: entry.text for entry in terms}
    titles = {entry.name: entry.title for entry in terms}
    texts = {
        "overall": glossary["Overall"],
        "agentic": " ".join(
            filter(None, [glossary["Agentic"], agentic_formula(rubrics), "Shown times 100."])
        ),
        "task_score": f"{glossary['Task']} Shown times 100.",
        "turns": "Replies of the agent in a run.",
        "wall_time_s": "From the first to the last entry of the run.",
        "total_tokens": "Tokens that the agent's model read and wrote in a run.",
        "cost_usd": "What the agent's model cost in a run, in dollars.",
        "failed": glossary["failure rate"],
    }
    columns = [
        Definition(name, units[name].name, texts[name]) for name in measures if name in texts
    ]
    columns += [
        Definition(name, units[name].name, "Reported by the harness that the runs came from.")
        for name in measures
        if _kind(name) == "outcome"
    ]
    codes = [Definition(code, titles[code], glossary[code]) for code in CODES]
    return [*columns, *codes]
