"""Human labels as tables: criterion values and fired codes by run and annotator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from ...errors import InputError
from ...judge.trust.label_sources import Source, each_label
from .codes_read import CODES

CRITERION_LABELS_SCHEMA: dict[str, Any] = {
    "run_id": pl.String,
    "annotator": pl.String,
    "criterion": pl.String,
    "value": pl.Float64,
}
CODE_LABELS_SCHEMA: dict[str, Any] = {
    "run_id": pl.String,
    "annotator": pl.String,
    **dict.fromkeys(CODES, pl.Boolean),
}
SAMPLING_SCHEMA: dict[str, Any] = {
    "run_id": pl.String,
    "annotator": pl.String,
    "probability": pl.Float64,
    "stratum": pl.String,
    "size": pl.Int64,
}


@dataclass(frozen=True)
class Labels:
    """Labels of one or several annotators."""

    criteria: pl.DataFrame
    """run_id, annotator, criterion, value."""
    codes: pl.DataFrame
    """run_id, annotator, and E1..E5: fired or not; null if the run was not read for codes."""
    sampling: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SAMPLING_SCHEMA))
    """run_id, annotator, probability, stratum, size: how runs were drawn, where labels say so."""
    n_problems: int = 0
    """Labels that could not be read."""

    def by_annotator(self, annotator: str) -> Labels:
        """The labels of one annotator."""
        is_own = pl.col("annotator") == annotator
        return Labels(
            criteria=self.criteria.filter(is_own),
            codes=self.codes.filter(is_own),
            sampling=self.sampling.filter(is_own),
        )

    def of_runs(self, aliases: Mapping[str, str]) -> Labels:
        """The labels under the ids that runs have in a cohort (`Cohort.aliases`)."""
        if not aliases:
            return self
        renamed = pl.col("run_id").replace(dict(aliases))
        return replace(
            self,
            criteria=self.criteria.with_columns(renamed),
            codes=self.codes.with_columns(renamed),
            sampling=self.sampling.with_columns(renamed),
        )

    @property
    def annotators(self) -> list[str]:
        """The names of the annotators, in order."""
        names = pl.concat([self.criteria["annotator"], self.codes["annotator"]]).unique().sort()
        return [str(name) for name in names.to_list()]

    @property
    def default_annotator(self) -> str:
        """The annotator whose labels are used if none is named: `gold`, else the first by name."""
        names = self.annotators
        return "gold" if "gold" in names or not names else names[0]


def read_labels(source: Source, on_problem: Callable[[InputError], None] | None = None) -> Labels:
    """Read the labels of a source (`judge.trust.label_sources`).

    InputError for the first that is not a label, with its file and field; with `on_problem`, it is
    called with each of them, and the other labels are read.
    """
    criteria: list[tuple[Any, ...]] = []
    codes: list[tuple[Any, ...]] = []
    sampling: list[tuple[Any, ...]] = []
    n_problems = 0
    for entry in each_label(source):
        if isinstance(entry, InputError):
            if on_problem is None:
                raise entry
            on_problem(entry)
            n_problems += 1
            continue
        label = entry.labels
        keys = (label.run, label.annotator)
        for criterion_id, value in sorted(label.criteria.items()):
            if value is not None:
                criteria.append((*keys, criterion_id, float(value)))
        if "codes" in label.model_fields_set:
            codes.append((*keys, *(code in label.codes for code in CODES)))
        if label.drawn is not None:
            design = label.drawn
            row = (*keys, design.probability, design.stratum or None, design.size)
            sampling.append(row)
    return Labels(
        criteria=pl.DataFrame(criteria, schema=CRITERION_LABELS_SCHEMA, orient="row"),
        codes=pl.DataFrame(codes, schema=CODE_LABELS_SCHEMA, orient="row"),
        sampling=pl.DataFrame(sampling, schema=SAMPLING_SCHEMA, orient="row"),
        n_problems=n_problems,
    )


def labels_at(path: Path, problems: list[str]) -> Labels:
    """The labels of a file, a folder or a store; a message for each that cannot be read is added
    to `problems`.

    InputError if there is no such place, or not a single label of a criterion or code.
    """
    if not path.exists():
        raise InputError("no such file or folder", "give label files or their folder", path)
    labels = read_labels(path, on_problem=lambda error: problems.append(str(error)))
    if not labels.annotators:
        raise InputError(
            "holds no label of a criterion or code", "a label is described in docs/labels.md", path
        )
    return labels


CONVENIENCE = (
    "convenience sample: the labels do not say how their runs were drawn (ambjudge label next), so"
    " it is unknown how far these runs represent the others"
)


def weighted(
    labelled: pl.DataFrame, sampling: pl.DataFrame
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Add `weight`, one over the probability of being labelled, to labelled runs; and notes.

    `labelled` has one row for each `run_id`. In a stratum the probability is the share of its runs
    that were labelled in the end, which allows for stopping early and drawing again. Runs that were
    not drawn are left out if others were; if none was drawn, all weigh the same and the note is
    CONVENIENCE.
    """
    joined = labelled.join(
        sampling.drop("annotator", strict=False).unique("run_id", keep="last"),
        on="run_id",
        maintain_order="left",
    )
    if joined.is_empty():
        return labelled.with_columns(weight=pl.lit(1.0)), (CONVENIENCE,)
    has_stratum = pl.col("stratum").is_not_null() & pl.col("size").is_not_null()
    runs_per_label = pl.col("size").max().over("stratum") / pl.len().over("stratum")
    result = joined.with_columns(
        weight=pl.when(has_stratum)
        .then(runs_per_label.clip(lower_bound=1.0))
        .otherwise(1 / pl.col("probability"))
    ).drop("probability", "size")
    not_drawn = labelled.height - joined.height
    if not_drawn == 0:
        return result, ()
    return result, (f"{not_drawn} labelled runs were not drawn at random and are left out",)


def weighted_code_labels(
    labels: Labels, runs: pl.DataFrame
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The default annotator's code labels of `runs`, one row each, with `weight`; and notes.

    Weights and notes are those of `weighted`.
    """
    own_labels = labels.by_annotator(labels.default_annotator)
    run_ids = runs.select("run_id").unique()
    codes = own_labels.codes.drop("annotator").join(run_ids, on="run_id", how="semi")
    return weighted(codes.unique("run_id", keep="first"), own_labels.sampling)
