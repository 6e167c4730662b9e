"""The tasks, repeats and labels that a result takes, planned from a cohort."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from ...console import counted
from ...errors import ConfigError
from ..statistics.comparison import check_effect_size
from ..statistics.power_analysis import (
    TARGET,
    ErrorComponents,
    LabelErrorComponents,
    PowerPlan,
    agreement_error,
    difference_noise,
    effect_error,
    effect_noise,
    format_power,
    mean_error,
    plan_sentences,
    plan_sizes,
    power,
)
from ..statistics.score_variance import variance_components
from ..tables.codes_read import CODES
from ..tables.cohorts import Cohort
from ..tables.flat_tables import json_rows
from ..tables.label_tables import Labels
from ..tables.number_format import number
from ..tables.score_names import noun_of
from .cohort_result import CohortResult, TitledTable
from .display import Cell, Display

SCHEMA = "ambjudge.plan/1"


@dataclass(frozen=True)
class PlanQuestion:
    """What a plan is to detect or to narrow: a difference, a code's effect, or an interval."""

    difference: float | None = None
    """Of two agents, in units of the outcome."""
    code: str | None = None
    effect: float | None = None
    """Of the code."""
    half_width: float | None = None
    """Of the 95 % interval of a corrected mean, of the code's effect, or of the agreement."""
    agreement: str | None = None
    """The code or criterion whose agreement of judge and people is meant."""
    outcome: str = "overall"

    @property
    def is_about_labels(self) -> bool:
        """Whether labels are to be counted that narrow an interval."""
        return self.half_width is not None or self.agreement is not None

    @property
    def size(self) -> float:
        """The size to detect, or the half-width to reach; ConfigError if none or several are
        given."""
        if self.is_about_labels:
            conflicts = (self.code and self.agreement) or self.effect or self.difference
            if self.half_width is None or conflicts:
                raise _no_estimate()
            return self.half_width
        is_effect = None not in (self.code, self.effect) and self.difference is None
        is_difference = self.difference is not None and self.code is None and self.effect is None
        if not (is_effect or is_difference):
            raise ConfigError(
                "the difference or effect to detect is missing",
                "give --difference SIZE, or --code E3 --effect SIZE, or --labels DIR --half-width"
                " SIZE",
            )
        return abs((self.effect if is_effect else self.difference) or 0.0)

    def check(self, has_labels: bool) -> None:
        """ConfigError for a question that is incomplete, ambiguous or off the scale."""
        size = self.size
        if self.code is not None and self.code not in CODES:
            raise ConfigError(f"there is no code {self.code!r}", f"choose from {', '.join(CODES)}")
        if not self.is_about_labels:
            check_effect_size("effect" if self.code else "difference", size, self.outcome)
            return
        if not has_labels:
            raise _no_estimate()
        check_effect_size("half-width", size, "agentic" if self.agreement else self.outcome)


def _no_estimate() -> ConfigError:
    return ConfigError(
        "the estimate that the labels correct is missing",
        "give --labels DIR --half-width SIZE, and --code E3 or --agreement E3",
    )


@dataclass(frozen=True, repr=False)
class RunPlan(CohortResult):
    """How many tasks and repeats detect a difference or an effect."""

    cohort: Cohort
    question: PlanQuestion
    plan: PowerPlan
    grid: pl.DataFrame
    """Power and detectable size (MDE80) by tasks and repeats."""

    @property
    def title(self) -> str:
        return f"Power to detect {_subject(self.question, article='a')} of {self.plan.size:g}"

    @property
    def table(self) -> pl.DataFrame:
        return self.grid

    @property
    def cohorts(self) -> tuple[Cohort, ...]:
        return (self.cohort,)

    @property
    def sentences(self) -> tuple[str, ...]:
        unit = " points" if self.question.outcome == "overall" else ""
        return tuple(plan_sentences(self.plan, _subject(self.question, article="A"), unit))

    def displays(self) -> Iterator[TitledTable]:
        repeats = self.grid["repeats"].unique().sort().to_list()
        cells: dict[int, list[Cell]] = {}
        for row in self.grid.iter_rows(named=True):
            text = f"{format_power(row['power'])} ({number(row['mde80'])})"
            cells.setdefault(row["tasks"], [Cell(str(row["tasks"]))]).append(Cell(text))
        yield TitledTable(
            "Power by the number of tasks and of runs of an agent on each task and tier (in"
            " brackets the size that is detected with power .8):",
            Display(
                columns=("tasks", *map(str, repeats)),
                headings=("Tasks", *(counted(count, "run") for count in repeats)),
                numeric=tuple(True for _ in range(len(repeats) + 1)),
                rows=tuple(map(tuple, cells.values())),
                notes=(),
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "outcome": self.question.outcome,
            "code": self.question.code,
            "plan": asdict(self.plan),
            "rows": json_rows(self.grid),
            "sentences": list(self.sentences),
        }


@dataclass(frozen=True, repr=False)
class LabelPlan(CohortResult):
    """How many labels make an interval as narrow as was asked for."""

    cohort: Cohort
    question: PlanQuestion
    error: LabelErrorComponents
    labels: int | None
    """The labels needed; None if no number is enough."""

    @property
    def title(self) -> str:
        return f"Labels for {self.error.what}"

    @property
    def table(self) -> pl.DataFrame:
        """The half-width with the labels as now, and with those needed."""
        numbers = [self.error.labels, *([] if self.labels is None else [self.labels])]
        half_widths = [self.error.half_width(count) for count in numbers]
        return pl.DataFrame({"labels": numbers, "half_width": half_widths})

    @property
    def cohorts(self) -> tuple[Cohort, ...]:
        return (self.cohort,)

    @property
    def sentences(self) -> tuple[str, ...]:
        error = self.error
        answer = "cannot be reached with any number of labels, because the tasks limit it"
        if self.labels:
            answer = f"takes {self.labels} {error.of}"
        return (
            f"A 95 % interval of ±{self.question.size:g} for {error.what} {answer}; the present"
            f" number ({error.labels}) gives ±{error.half_width(error.labels):.3g}.",
        )

    def displays(self) -> Iterator[TitledTable]:
        """None: the sentence has all numbers."""
        yield from ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "outcome": self.question.outcome,
            "code": self.question.code,
            "agreement": self.question.agreement,
            "half_width": self.question.half_width,
            "labels": self.labels,
            "error": asdict(self.error),
            "sentences": list(self.sentences),
        }


def plan(
    cohort: Cohort, question: PlanQuestion, *, labels: Labels | None = None, target: float = TARGET
) -> RunPlan | LabelPlan:
    """Answer a question from a pilot; `labels` correct the judge's error. Check it first.

    InputError with the reason if the cohort or the labels say nothing about it.
    """
    error = None
    if labels is not None:
        error = _label_error(cohort, labels.of_runs(cohort.aliases), question)
    if question.is_about_labels:
        if error is None:
            raise _no_estimate()
        return LabelPlan(cohort, question, error, error.labels_for(question.size))
    size = question.size
    if question.code:
        noise = effect_noise(cohort.runs, question.code, question.outcome)
    else:
        noise = difference_noise(variance_components(cohort.runs, question.outcome))
    sizes = plan_sizes(noise, size, target=target, judged=error)
    return RunPlan(cohort, question, sizes, _grid(noise, size))


def _grid(noise: ErrorComponents, size: float) -> pl.DataFrame:
    """Power around the pilot's own number of tasks and repeats."""
    pilot_repeats = max(noise.least_repeats, round(noise.repeats))
    tasks = sorted({max(2, noise.tasks // 2), noise.tasks, 2 * noise.tasks, 4 * noise.tasks})
    repeats = sorted({noise.least_repeats, 5, pilot_repeats, 20})
    return power(noise, tasks=tasks, repeats=repeats, size=size)


def _subject(question: PlanQuestion, article: str) -> str:
    name = noun_of(question.outcome)
    if question.code:
        return f"{article}n effect of {question.code} on {name}"
    return f"{article} difference of two agents in mean {name}"


def _label_error(cohort: Cohort, labels: Labels, question: PlanQuestion) -> LabelErrorComponents:
    """The error that correcting by labels adds: of the agreement, of the code's effect, or of an
    agent's mean."""
    if question.agreement:
        return agreement_error(cohort, labels, question.agreement)
    if question.code:
        return effect_error(cohort, labels, question.code, question.outcome)
    return mean_error(cohort, labels, question.outcome)
