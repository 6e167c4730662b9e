"""The rubrics of scorecards, for label forms: from the settings, the package, or the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .cohort_input import opened, place_of
from .sessions import score_options

if TYPE_CHECKING:
    import polars as pl

    from ..analysis.tables.cohorts import Cohort
    from ..judge.card.scorecard import ScoreCard
    from ..judge.trust.human_labels import Labels
    from ..judge.trust.label_form import FormRun
    from ..rubrics.model import Rubric

_Version = tuple[str, str]
"""Id and version of a rubric."""


class CardRubrics:
    """The scorecards at a path, and the rubrics that they name."""

    def __init__(self, obj: dict[str, Any], path: str) -> None:
        self._obj, self._path = obj, path
        self._hashes: dict[_Version, str] = {}
        """Of the rubrics of the scorecards in a store."""
        self._loaded: dict[_Version, Rubric | None] = {}

    def note(self, item: ScoreCard | pl.DataFrame) -> None:
        """Note the rubric of a scorecard."""
        from ..judge.card.scorecard import ScoreCard

        if isinstance(item, ScoreCard):
            self._hashes[item.rubric.id, item.rubric.version] = item.rubric.sha256

    def forms(self, drawn: Sequence[Labels], cohort: Cohort) -> list[tuple[Labels, FormRun]]:
        """Each drawn run with what its form says of it."""
        import polars as pl

        from ..judge.trust.label_form import FormRun

        rows = {row["run_id"]: row for row in cohort.runs.iter_rows(named=True)}
        forms = []
        for labels in drawn:
            row = rows[labels.run]
            criteria = cohort.criteria.filter(
                (pl.col("run_id").cast(pl.String) == labels.run)
                & (pl.col("status").cast(pl.String) != "credited")
            )
            run = FormRun(
                transcript=row["path"],
                task=row["task"],
                tier=row["tier"],
                turns=row["turns"] or 0,
                rubric=self._rubric(row["rubric"], row["rubric_version"]),
                scored_by=f"{row['rubric']} {row['rubric_version']}",
                criteria=tuple(criteria["criterion"].cast(pl.String).unique(maintain_order=True)),
            )
            forms.append((labels, run))
        return forms

    def _rubric(self, id: str | None, version: str | None) -> Rubric | None:
        """The rubric of this id and version, else another version; None if neither is at hand."""
        key = (id or "", version or "")
        if key not in self._loaded:
            self._loaded[key] = self._load(key)
        return self._loaded[key]

    def _load(self, key: _Version) -> Rubric | None:
        from ..config import load
        from ..rubrics.load import builtin_ids, load_rubric

        own = score_options(load(self._obj["config"]), {}).scope().rubrics
        candidates = [rubric for rubric in own if rubric.id == key[0]]
        if key[0] in builtin_ids():
            candidates.append(load_rubric(key[0]))
        for rubric in candidates:
            if (rubric.id, rubric.version) == key:
                return rubric
        place = place_of(self._obj, self._path)
        if place.store is not None and key in self._hashes:
            with opened(place, quiet=True) as store:
                stored = store.rubric(self._hashes[key])
            if stored is not None:
                return stored
        return candidates[0] if candidates else None
