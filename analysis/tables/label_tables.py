"""Human labels in the format of the labelling guideline, as tables: criteria values and fired codes
by run and annotator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ...errors import InputError
from ...judge.trust.label_sources import Source, each_label
from .codes_read import CODES

CRITERIA: dict[str, Any] = {
    "run_id": pl.String,
    "annotator": pl.String,
    "criterion": pl.String,
    "value": pl.Float64,
}
FIRED: dict[str, Any] = {
    "run_id": pl.String,
    "annotator": pl.String,
    **dict.fromkeys(CODES, pl.Boolean),
}
DRAWN: dict[str, Any] = {
    "run_id": pl.String,
    "annotator": pl.String,
    "probability": pl.Float64,
    "stratum": pl.String,
    "size": pl.Int64,
}


@dataclass(frozen=True)
class Labels:
    """`criteria`: run_id, annotator, criterion, value; `codes`: run_id, annotator, E1..E5 (fired or
    not; null: not read); `drawn`: run_id, annotator, probability, stratum, size (of labels that say
    how their run was chosen)."""

    criteria: pl.DataFrame
    codes: pl.DataFrame
    drawn: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=DRAWN))

    def of(self, annotator: str) -> Labels:
        """The labels of one annotator."""
        keep = pl.col("annotator") == annotator
        return Labels(self.criteria.filter(keep), self.codes.filter(keep), self.drawn.filter(keep))

    @property
    def annotators(self) -> list[str]:
        names = pl.concat([self.criteria["annotator"], self.codes["annotator"]]).unique().sort()
        return [str(name) for name in names.to_list()]

    @property
    def usual(self) -> str:
        """The annotator who counts where none is named: `gold`, else the first by name."""
        names = self.annotators
        return "gold" if "gold" in names or not names else names[0]


def read_labels(source: Source) -> Labels:
    """Labels of a source (`judge.trust.label_sources`), not strictly read. Raises InputError for
    the first that is none, naming file and field."""
    criteria: list[tuple[Any, ...]] = []
    codes: list[tuple[Any, ...]] = []
    drawn: list[tuple[Any, ...]] = []
    for _, said in each_label(source, strict=False):
        if isinstance(said, InputError):
            raise said
        criteria += [
            (said.run, said.annotator, id, float(v))
            for id, v in said.criteria.items()
            if v is not None
        ]
        if "codes" in said.model_fields_set:
            codes.append((said.run, said.annotator, *(code in said.codes for code in CODES)))
        if said.drawn is not None:
            drawn.append(
                (
                    said.run,
                    said.annotator,
                    said.drawn.probability,
                    said.drawn.stratum or None,
                    said.drawn.size,
                )
            )
    return Labels(
        pl.DataFrame(criteria, schema=CRITERIA, orient="row"),
        pl.DataFrame(codes, schema=FIRED, orient="row"),
        pl.DataFrame(drawn, schema=DRAWN, orient="row"),
    )


CONVENIENCE = (
    "convenience sample: the labels do not say how their runs were drawn (ambjudge label next), so"
    " nothing says how far these runs stand for the others"
)


def weighted(labelled: pl.DataFrame, drawn: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Labelled runs (`run_id`, one row each) with their `weight`, one over the probability of being
    labelled; and notes.

    In a stratum that is the share of its runs that are labelled in the end, so that stopping early
    and drawing again are allowed for. Runs that were not drawn are left out beside drawn ones;
    where none was, all weigh the same, and the note is CONVENIENCE.
    """
    known = labelled.join(
        drawn.drop("annotator", strict=False).unique("run_id", keep="last"),
        on="run_id",
        maintain_order="left",
    )
    if known.is_empty():
        return labelled.with_columns(weight=pl.lit(1.0)), (CONVENIENCE,)
    strata = pl.col("size").max().over("stratum") / pl.len().over("stratum")
    grouped = pl.col("stratum").is_not_null() & pl.col("size").is_not_null()
    out = known.with_columns(
        weight=pl.when(grouped)
        .then(strata.clip(lower_bound=1.0))
        .otherwise(1 / pl.col("probability"))
    )
    left = labelled.height - known.height
    said = (f"{left} labelled runs were not drawn at random and are left out",) if left else ()
    return out.drop("probability", "size"), said
