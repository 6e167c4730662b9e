"""Paths of a command line to runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from .. import console
from ..errors import AmbjudgeError, InputError, unexpected

if TYPE_CHECKING:
    from ..trajectories.models import Run

T = TypeVar("T")


def found_runs(paths: Sequence[str]) -> tuple[list[Path], bool]:
    """The conversation files at or below the paths, and whether a path had none, which is said on
    stderr."""
    from ..judge.run_sources import run_sources

    sources = list(run_sources(paths))
    for source in sources:
        if source.error is not None:
            console.error(source.error)
    runs = [source.path for source in sources if source.error is None]
    return runs, len(runs) < len(sources)


def each_run(
    paths: Sequence[str], track: str | None = None, tier: str | None = None
) -> Iterator[Run | InputError]:
    """Every run at or below the paths, one at a time; what cannot be read comes as its error, and
    the rest goes on.

    `track` and `tier` stand where a run's files do not say.
    """
    from ..trajectories.reading.load import iter_runs

    for path in paths:
        try:
            for item in iter_runs(Path(path)):
                if isinstance(item, InputError) or not (track or tier):
                    yield item
                else:
                    yield item.model_copy(
                        update={"track": item.track or track, "tier": item.tier or tier}
                    )
        except InputError as error:
            yield error


def each_result(
    runs: Iterator[Run | InputError], work: Callable[[Run], T]
) -> Iterator[tuple[Run, T] | AmbjudgeError]:
    """Each run with what `work` makes of it; a run that cannot be read or worked on comes as its
    error."""
    for run in runs:
        if isinstance(run, InputError):
            yield run
            continue
        try:
            yield run, work(run)
        except AmbjudgeError as error:
            yield error
        except Exception as error:
            yield unexpected(error, run.path)
