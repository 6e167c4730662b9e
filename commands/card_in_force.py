"""The stored scorecard of a single run, which `score RUN` and `codes RUN` show."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import console
from ..errors import StoreError
from ..trajectories.reading.json_bytes import read_bytes

if TYPE_CHECKING:
    from ..config import Settings
    from ..judge.card.scorecard import ScoreCard

_SCORING_FLAGS = ("rubric", "policy", "track", "tier", "public", "stages", "where")
"""Flags and settings that ask for another scorecard than the one in the store."""


def card_in_force(
    obj: dict[str, Any], paths: tuple[str, ...], settings: Settings, flags: Mapping[str, Any]
) -> ScoreCard | None:
    """A single run's scorecard by the judge in force (`card.choice`), if that is a model.

    None if the user names a judge or a way to score, for several runs, and for a run that has
    changed; then the rules score it. A note says which it is.
    """
    from .sessions import judge_names

    if judge_names(settings, flags):
        return None
    if any(settings.get(name, flags.get(name)) is not None for name in _SCORING_FLAGS):
        return None
    file = _single_run(paths)
    card = None if file is None else _stored_card(file, settings, flags.get("store"))
    if file is None or card is None:
        return None
    judge = card.judge.name
    if card.run.sha256 != hashlib.sha256(read_bytes(file)).hexdigest():
        console.note(
            f"the scorecard by judge {judge} is of an earlier state of this run, so the rules score"
            f" it; to judge it again: --judge {judge}",
            obj["quiet"],
        )
        return None
    console.note(
        f"the scorecard by judge {judge} from the store; --judge rules scores by rules alone",
        obj["quiet"],
    )
    return card


def _single_run(paths: tuple[str, ...]) -> Path | None:
    """The conversation file of a run of this machine; None if there is more than one run."""
    from ..judge.run_sources import run_sources
    from ..trajectories.reading.remote import is_address

    if any(is_address(path) for path in paths):
        return None
    sources = list(islice(run_sources(paths), 2))
    if len(sources) != 1 or sources[0].error is not None:
        return None
    return sources[0].path.absolute()


def _stored_card(file: Path, settings: Settings, flag: str | None) -> ScoreCard | None:
    """The run's scorecard by the judge in force of its store, if that is a model."""
    from ..judge.card.choice import CardChoice
    from ..judge.card.fields import RULES
    from ..judge.session import is_store_there
    from ..judge.store import open_store
    from .sessions import store_place

    try:
        place = store_place(settings, [file], flag)
    except StoreError:  # A store that came with the runs: scoring says that it is not used.
        return None
    if not is_store_there(place):
        return None
    with open_store(place, create=False) as store:
        models = set(store.judges([file])) - {RULES}
        # Which judge is in force is asked of the whole store only if it matters for this run.
        judge = store.judge_in_force() if models else None
        if judge not in models:
            return None
        in_force = store.in_force(file, CardChoice(judge))
        # What was at this path before may be a run of its own.
        in_force.sort(key=lambda stored: stored.head.sha256 == stored.bytes_now)
        return next(store.cards_at([stored.seq for stored in in_force[-1:]]), None)
