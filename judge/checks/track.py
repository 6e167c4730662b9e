"""A track together with what it does with files: `CheckedTrack`.

`tracks.Track` is data that any room may read. The functions that open delivered files stand here,
so that only the room that checks outputs depends on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...tracks import TRACKS, Track
from .case_checks import TrackCheck
from .submission import Submission

if TYPE_CHECKING:
    from ...trajectories.models import Run
    from ..scoring.workspace import Workspace


@dataclass(frozen=True)
class CheckedTrack(Track):
    """A track whose delivered files can be checked. `name` and `check` are needed."""

    check: Callable[[Submission], TrackCheck] = field(kw_only=True)
    """Opens the delivered files of the expected cases and says what is wrong with them."""
    required: Callable[[Submission], tuple[str, ...]] | None = field(default=None, kw_only=True)
    """The files that every case must have, if that depends on the run; None: the first of
    `files`."""
    delivered: Callable[[Submission], set[str]] | None = field(default=None, kw_only=True)
    """The cases that were delivered, if that is not shown by a file in a folder of each."""
    workspace: Callable[[Run, int | None], Workspace] | None = field(default=None, kw_only=True)
    """What the public harness's branch reads from the agent's workspace; the second argument is
    the number of expected cases. Used by `--policy harness` alone."""


def checked_track(name: str | None) -> CheckedTrack | None:
    """The track behind a name; None for an unknown one.

    A package's track that cannot be loaded or has no check is refused by the door `TRACKS`: one
    warning here, a ConfigError from `TRACKS.get`.
    """
    track = TRACKS.find(name)
    return track if isinstance(track, CheckedTrack) else None
