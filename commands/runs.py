"""From the paths of a command line to runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from .. import console
from ..errors import AmbjudgeError, InputError, unexpected

if TYPE_CHECKING:
    from ..trajectories.models import Run

T = TypeVar("T")


class RunList(NamedTuple):
    """The conversation files at or below some paths."""

    files: list[Path]
    is_complete: bool
    """Whether every path has a run."""


def has_run(path: str) -> bool:
    """Whether there is a run at or below a path or an address."""
    from ..judge.run_sources import run_sources

    return any(source.error is None for source in run_sources([path]))


def list_runs(paths: Sequence[str]) -> RunList:
    """List the conversation files at or below the paths; a path without any is named on stderr."""
    from ..judge.run_sources import run_sources

    files: list[Path] = []
    is_complete = True
    for source in run_sources(paths):
        if source.error is None:
            files.append(source.path)
        else:
            is_complete = False
            console.error(source.error)
    return RunList(files, is_complete)


def each_run(
    paths: Sequence[str], track: str | None = None, tier: str | None = None
) -> Iterator[Run | InputError]:
    """Every run at or below the paths, one at a time; one that cannot be read comes as its error.

    `track` and `tier` stand in where a run's files do not name them.
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
    """Each run with the result of `work`; a run that cannot be read or worked on comes as its
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
