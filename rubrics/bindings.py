"""Tie data that ships with ambjudge (rules, presumed values) to criteria of its own rubrics.

A binding names rubrics, a criterion's id and its `meaning`; it does not quote the text. So a
contributor may reword a criterion of a shipped rubric, and everything bound to it stays bound.
Whoever changes which runs meet the criterion raises its `meaning`, and whatever was bound to the
old meaning no longer applies until somebody reads it against the new text. A test fails for every
binding without a criterion (`unmatched`), so that none is lost silently.

Users' rubrics are matched by their words, not by their ids. `ambjudge rubric new` hands out copies
of the shipped rubrics, and whoever edits a copy does not know of `meaning`. Hence a criterion of a
user's rubric has the rule and the presumed value of a shipped one if a judge would be asked exactly
the same (`criterion_sha256`) and the `meaning` is the same, whatever the id of the rubric; an
edited criterion has neither, even under the id of a shipped rubric.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .load import builtin_ids, criterion_sha256, load_rubric
from .model import Criterion

BindingKey = tuple[str, int]
"""A criterion's hash and its meaning."""


@dataclass(frozen=True)
class Binding:
    """One criterion, in a certain meaning, of one or several shipped rubrics."""

    criterion: str
    """The criterion's id."""
    meaning: int
    rubrics: tuple[str, ...]
    """Ids of the shipped rubrics that have the criterion."""

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Binding:
        """The binding in a row of a YAML table with `criterion`, `meaning` and `rubrics`."""
        return cls(str(row["criterion"]), int(row["meaning"]), tuple(row["rubrics"]))

    def bound_keys(self) -> set[BindingKey]:
        """Keys of the bound criteria, as the shipped rubrics word them now."""
        return {
            binding_key(criterion)
            for rubric_id in self.rubrics
            if (criterion := self._criterion_in(rubric_id)) is not None
        }

    def unmatched(self) -> tuple[str, ...]:
        """The rubrics that have no criterion of this id and meaning; empty when all is well."""
        return tuple(
            rubric_id for rubric_id in self.rubrics if self._criterion_in(rubric_id) is None
        )

    def _criterion_in(self, rubric_id: str) -> Criterion | None:
        if rubric_id not in builtin_ids():
            return None
        for criterion in load_rubric(rubric_id).criteria():
            if criterion.id == self.criterion and criterion.meaning == self.meaning:
                return criterion
        return None


def binding_key(criterion: Criterion) -> BindingKey:
    """What a criterion of any rubric is looked up by."""
    return criterion_sha256(criterion), criterion.meaning
