"""Reads scorecards from files, folders, stores and objects, and scores runs that have none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import polars as pl
from pydantic import ValidationError

from ...errors import AmbjudgeError, InputError, unexpected
from ...judge.card.scorecard import ScoreCard
from ...trajectories.reading.json_bytes import (
    MAX_CARDS,
    TooManyError,
    bounded_lines,
    has_too_many_values,
    read_bytes,
)
from ...trajectories.reading.layout import CONVERSATION_NAMES, TRACE_NAMES
from ...trajectories.reading.remote import find_files, is_address, staged
from .frames import conform, read_frame, run_columns

if TYPE_CHECKING:
    from ...judge.session import ScoreOptions

_FRAME_SUFFIXES = (".parquet", ".csv")
_MAX_BROKEN_LINES = 10_000
"""A file with more broken lines holds no scorecards, and a message for each would take memory."""
_NAMED_BROKEN_LINES = 10
"""Broken lines of such a file that stay among the problems."""
_CARD_SUFFIXES = (".jsonl", ".json", ".ndjson")


@dataclass
class RulesScoring:
    """How the rules judge scores runs without a scorecard, and how many it scored."""

    options: ScoreOptions | None = None
    """None for the defaults."""
    n_scored: int = 0


def read_cards(
    source: Any, frames: list[pl.DataFrame], problems: list[str], scoring: RulesScoring
) -> Iterator[ScoreCard]:
    """Yield the scorecards of a source.

    Run frames in the source are added to `frames`, and a message for each item that cannot be read
    to `problems`.
    """
    if isinstance(source, pl.DataFrame):
        frames.append(run_columns(conform(source)))
    elif isinstance(source, ScoreCard):
        yield source
    elif isinstance(source, Mapping):
        yield from _validated(source, "scorecard", problems)
    elif isinstance(source, str | Path):
        if is_store(source):
            from ...judge.store import open_store

            with open_store(source, create=False) as store:
                yield from store.iter_cards()
            return
        if is_address(source):
            yield from _from_address(str(source), frames, problems, scoring)
        else:
            yield from _from_path(Path(source), frames, problems, scoring)
    # An open Store, recognised without an import of its heavy module.
    elif hasattr(source, "iter_cards"):
        yield from source.iter_cards()
    elif isinstance(source, Iterable):
        for item in source:
            yield from read_cards(item, frames, problems, scoring)
    else:
        raise InputError(
            f"cannot read scorecards from {type(source).__name__}", "give a path or scorecards"
        )


def is_store(source: str | Path) -> bool:
    """Whether a path or URL names a verdict store: a .db file or a PostgreSQL address."""
    return ("://" in str(source) and not is_address(source)) or Path(source).suffix == ".db"


def _from_address(
    address: str, frames: list[pl.DataFrame], problems: list[str], scoring: RulesScoring
) -> Iterator[ScoreCard]:
    """Scorecards and frames of the file at an address, or of the files directly below it."""
    files = find_files(address, _FRAME_SUFFIXES + _CARD_SUFFIXES)
    if not files:
        raise InputError(
            "holds no scorecards", "score the runs first, with --out at this address", address
        )
    for file in files:
        n_before = len(problems)
        try:
            with staged(file) as local_file:
                yield from _from_path(local_file, frames, problems, scoring)
                # Problems name the address, not the temporary copy that was read.
                problems[n_before:] = [
                    text.replace(str(local_file), str(file)) for text in problems[n_before:]
                ]
        except InputError as error:
            problems.append(str(error))


def _from_path(
    path: Path, frames: list[pl.DataFrame], problems: list[str], scoring: RulesScoring
) -> Iterator[ScoreCard]:
    if not path.exists():
        raise InputError(
            "no such file or folder", "give scorecards, a frame or a folder of runs", path
        )
    if path.is_file():
        if path.suffix in _FRAME_SUFFIXES:
            frames.append(run_columns(read_frame(path)))
        elif path.name in CONVERSATION_NAMES + TRACE_NAMES:
            yield from _score_runs(path, problems, scoring)
        else:
            yield from _from_json(path, problems)
        return
    if _holds_runs(path):
        yield from _score_runs(path, problems, scoring)
        return
    files = sorted(
        p for p in path.iterdir() if p.suffix in _FRAME_SUFFIXES + _CARD_SUFFIXES and p.is_file()
    )
    if not files:
        raise InputError(
            "holds neither scorecards nor runs",
            "score the runs first, or name their folder",
            path,
        )
    for file in files:
        try:
            yield from _from_path(file, frames, problems, scoring)
        except InputError as error:
            problems.append(str(error))


def _holds_runs(folder: Path) -> bool:
    from ...trajectories.reading.layout import find_conversations

    try:
        return next(find_conversations(folder), None) is not None
    except InputError:
        return False


def _from_json(path: Path, problems: list[str]) -> Iterator[ScoreCard]:
    """Cards of a JSON Lines file, or of a .json file with one card or a list of cards."""
    try:
        with path.open("rb") as stream:
            start = stream.read(64).lstrip()
            stream.seek(0)
            if path.suffix == ".json" or start.startswith(b"["):
                items = _items_of_document(path)
                if items is not None:
                    for index, item in enumerate(items, 1):
                        yield from _validated(item, f"{path}: card {index}", problems)
                    return
            yield from _from_lines(stream, path, problems)
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", "check its permissions", path
        ) from error


def _items_of_document(path: Path) -> list[Any] | None:
    """The items of a file that is one JSON document; None if it is not, as with JSON Lines."""
    text = read_bytes(path, MAX_CARDS)
    if has_too_many_values(text.decode("utf-8", "replace")):
        raise InputError(str(TooManyError()), "give JSON Lines, one scorecard a line", path)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if data is None:
        return None
    return data if isinstance(data, list) else [data]


def _from_lines(stream: BinaryIO, path: Path, problems: list[str]) -> Iterator[ScoreCard]:
    """Cards of a JSON Lines file; InputError if more than `_MAX_BROKEN_LINES` are broken."""
    n_before = len(problems)
    for number, (_, line) in enumerate(bounded_lines(stream), 1):
        if line.strip():
            yield from _validated(line, f"{path}:{number}", problems)
        if len(problems) - n_before > _MAX_BROKEN_LINES:
            del problems[n_before + _NAMED_BROKEN_LINES :]
            raise InputError(
                f"more than {_MAX_BROKEN_LINES:,} lines are not scorecards",
                f"the first: {problems[n_before]}",
                path,
            )


def _validated(item: Any, location: str, problems: list[str]) -> Iterator[ScoreCard]:
    """Yield the scorecard that an item holds, or add a problem that names its location."""
    if isinstance(item, ScoreCard):
        yield item
        return
    try:
        yield ScoreCard.model_validate_json(item if isinstance(item, bytes) else json.dumps(item))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        problems.append(
            f"{location}: {field or 'line'}: {first['msg']} (not a scorecard; score the run again)"
        )
    except (TypeError, ValueError, RecursionError):
        problems.append(f"{location}: is not JSON (score the run again)")


def _score_runs(root: Path, problems: list[str], scoring: RulesScoring) -> Iterator[ScoreCard]:
    """Score the runs at or below a path by rules; add a problem for each that cannot be read."""
    from ...judge.engine import make_scorecard
    from ...rubrics.load import load_rubric, rubric_for
    from ...trajectories.reading.load import iter_runs

    options = scoring.options
    rubric = load_rubric(options.rubric) if options is not None and options.rubric else None
    for run in iter_runs(root):
        if isinstance(run, InputError):
            problems.append(str(run))
            continue
        try:
            if options is None:
                card = make_scorecard(run)
            else:
                run = run.model_copy(
                    update={"track": run.track or options.track, "tier": run.tier or options.tier}
                )
                card = make_scorecard(
                    run,
                    rubric=rubric_for(run.track, run.task, rubric),
                    policy=options.policy,
                    public=options.public,
                )
        except AmbjudgeError as error:
            problems.append(str(error))
            continue
        except Exception as error:
            problems.append(str(unexpected(error, run.path)))
            continue
        scoring.n_scored += 1
        yield card


def iter_cards_and_frames(
    source: Any, problems: list[str], scoring: RulesScoring | None = None
) -> Iterator[ScoreCard | pl.DataFrame]:
    """Yield the scorecards of a source one at a time, then its frames.

    A message for each item that cannot be read is added to `problems`. This is for callers that
    need the texts of scorecards, which `cohort` does not keep; the items may be passed to `cohort`.
    """
    frames: list[pl.DataFrame] = []
    yield from read_cards(source, frames, problems, scoring or RulesScoring())
    yield from frames
