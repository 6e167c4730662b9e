"""Paths of a command line to runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from ..trajectories.models import Run


def each_run(paths: Sequence[str], track: str | None = None, tier: str | None = None) -> Iterator[Run | InputError]:
    """Every run at or below the paths, one at a time; what cannot be read comes as its error, and the rest goes on.

    `track` and `tier` stand where a run's files do not say.
    """
    from ..trajectories.load import iter_runs

    for path in paths:
        try:
            for item in iter_runs(Path(path)):
                if isinstance(item, InputError) or not (track or tier):
                    yield item
                else:
                    yield item.model_copy(update={"track": item.track or track, "tier": item.tier or tier})
        except InputError as error:
            yield error
