"""Human labels in the format of the labelling guideline, as tables: criteria values and fired codes by run and annotator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from ..errors import InputError
from ..judge.trust.label_sources import Source, each_label
from .codes_read import CODES

CRITERIA: dict[str, Any] = {"run_id": pl.String, "annotator": pl.String, "criterion": pl.String, "value": pl.Float64}
FIRED: dict[str, Any] = {"run_id": pl.String, "annotator": pl.String, **dict.fromkeys(CODES, pl.Boolean)}


@dataclass(frozen=True)
class Labels:
    """`criteria`: run_id, annotator, criterion, value; `codes`: run_id, annotator, E1..E5 (fired or not; null: not read)."""

    criteria: pl.DataFrame
    codes: pl.DataFrame

    def of(self, annotator: str) -> Labels:
        """The labels of one annotator."""
        keep = pl.col("annotator") == annotator
        return Labels(self.criteria.filter(keep), self.codes.filter(keep))

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
    """Labels of a source (`judge.trust.label_sources`), not strictly read. Raises InputError for the first that is none,
    naming file and field."""
    criteria: list[tuple[Any, ...]] = []
    codes: list[tuple[Any, ...]] = []
    for _, said in each_label(source, strict=False):
        if isinstance(said, InputError):
            raise said
        criteria += [(said.run, said.annotator, id, float(v)) for id, v in said.criteria.items() if v is not None]
        if "codes" in said.model_fields_set:
            codes.append((said.run, said.annotator, *(code in said.codes for code in CODES)))
    return Labels(
        pl.DataFrame(criteria, schema=CRITERIA, orient="row"), pl.DataFrame(codes, schema=FIRED, orient="row")
    )
