"""From the paths of a command line to runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .. import console
from ..errors import AmbjudgeError, InputError, unexpected

if TYPE_CHECKING:
    from ..trajectories.models import Run
    from ..views.run_rows import RunRow

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


def matching_files(
    obj: dict[str, Any], files: Sequence[Path], paths: Sequence[str], flags: Mapping[str, Any]
) -> list[Path]:
    """Those of the conversation files below the paths that --where lets through.

    A run is known by its scorecard in the store, else by its own files. InputError if the filter
    lets none through.
    """
    from .cohort_input import run_filter

    query = run_filter(flags, paths)
    if query is None:
        return list(files)
    rows = _stored_rows(obj, paths, flags)
    matching = []
    for file in files:
        row = rows.get(str(file.absolute())) or _row_of_files(file)
        if query.accepts_row(row._replace(path=str(file))):
            matching.append(file)
    if files and not matching:
        raise InputError("no run matches the filter", "loosen --where")
    return matching


def matching_paths(
    obj: dict[str, Any], paths: tuple[str, ...], flags: Mapping[str, Any]
) -> tuple[str, ...]:
    """The paths, or with --where the conversation files below them that it lets through."""
    if not flags.get("where"):
        return paths
    files = matching_files(obj, list_runs(paths).files, paths, flags)
    return tuple(str(file) for file in files)


def _stored_rows(
    obj: dict[str, Any], paths: Sequence[str], flags: Mapping[str, Any]
) -> dict[str, RunRow]:
    """The rows of the scorecards that count in the store of the paths, by path."""
    from ..config import load
    from ..judge.session import is_store_there
    from ..judge.store import open_store
    from ..views.run_rows import row_of
    from .sessions import existing_paths, store_place

    place = store_place(load(obj["config"]), existing_paths(paths), flags.get("store"))
    if not is_store_there(place):
        return {}
    with open_store(place, create=False) as store:
        cards = store.card_data_at([stored.seq for stored in store.in_force()])
        return {str(path): row_of(0, card, path) for _, path, card in cards}


def _row_of_files(file: Path) -> RunRow:
    """The row of a run without a scorecard; of one that cannot be read, its name alone."""
    from ..trajectories.reading.layout import run_id
    from ..trajectories.reading.load import load_conversation
    from ..views.run_rows import waiting

    row = waiting(0, file, run_id(file))
    try:
        run = load_conversation(file)
    except InputError:
        return row
    return row._replace(
        agent=run.agent,
        model=run.model,
        task=run.task,
        track=run.track,
        tier=run.tier,
        repeat=run.repeat,
        turns=len(run.turns),
    )


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
