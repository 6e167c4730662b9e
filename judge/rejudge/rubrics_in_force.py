"""Which rubrics judge the runs of a collection: those that the user gave, until told otherwise.

A rubric that was given with one command stays in force for the runs of its track: what a later
command does not give stays as it was. A built-in rubric, given by its id, takes the place of the
user's own again.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...rubrics.load import builtin_ids, load_rubric
from ...rubrics.model import Rubric
from ..store import Store


def rubrics_in_force(store: Store, given: Sequence[Rubric]) -> tuple[Rubric, ...]:
    """The user's rubrics in force when these are given: one for the same runs replaces another.

    Built-in rubrics are not among them: without one of the user's, they judge the runs of their
    tracks anyway.
    """
    in_force = {(rubric.track, rubric.tasks): rubric for rubric in store.rubrics_in_force()}
    in_force |= {(rubric.track, rubric.tasks): rubric for rubric in given}
    return tuple(rubric for rubric in in_force.values() if not _is_builtin(rubric))


def edited_texts(store: Store, rubrics: Sequence[Rubric]) -> list[Rubric]:
    """Those of the rubrics whose text was edited, though scorecards name the same version."""
    edited = []
    for rubric in rubrics:
        texts = store.rubric_texts(rubric.id, rubric.version)
        if texts and rubric.sha256 not in texts:
            edited.append(rubric)
    return edited


def _is_builtin(rubric: Rubric) -> bool:
    return rubric.id in builtin_ids() and load_rubric(rubric.id).sha256 == rubric.sha256
