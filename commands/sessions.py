"""Turn flags and settings into what a session needs: judge, store and scoring options."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from .. import console
from ..config import Settings
from ..errors import InputError, StoreError

if TYPE_CHECKING:
    from ..judge.base import Judge
    from ..judge.select import JudgeOptions
    from ..judge.session import ScoreOptions
    from ..judge.store import Store
    from ..trajectories.reading.running import RunningRule


def existing_paths(paths: Sequence[str]) -> tuple[str, ...]:
    """The paths that exist, and all addresses: whether those exist shows when they are listed."""
    return tuple(path for path in paths if _may_exist(path))


def _may_exist(path: str) -> bool:
    from ..trajectories.reading.remote import is_address

    try:
        return is_address(path) or Path(path).exists()
    except (OSError, ValueError):
        return False


def store_place(
    settings: Settings, paths: Sequence[str | Path], flag: str | None = None
) -> str | Path | None:
    """Where verdicts on the runs at these paths are kept, or will be; None for `--store none`.

    The store that is named; otherwise that of the collection (`session.default_store`), for an
    address that of the working directory. Several paths without a store share a new one in their
    common folder. InputError if some have stores of their own, because verdicts in the others
    would be asked for again.
    """
    from ..judge.session import default_store
    from ..judge.store import DEFAULT_STORE
    from ..trajectories.reading.remote import is_address

    name = settings.get("store", flag)
    if name:
        return None if name == "none" else name
    settings_folder = settings.file.parent if settings.file else None
    places = []
    for path in paths:
        place = default_store("." if is_address(path) else path, settings_folder)
        if place not in places:
            places.append(place)
    if len(places) == 1:
        return places[0]
    existing = [place for place in places if place.is_file()]
    if existing:
        raise InputError(
            f"these paths do not share one store: {existing[0]} has verdicts on some",
            "name one store with --store, or give the paths one by one",
        )
    return Path(os.path.commonpath([place.parent.parent for place in places])) / DEFAULT_STORE


def open_session_store(
    paths: Sequence[str],
    settings: Settings,
    flag: str | None,
    stack: ExitStack,
    *,
    judge: Judge | None = None,
    quiet: bool,
    required: bool = False,
    is_dry_run: bool = False,
) -> Store | None:
    """Open the store in force and say where it is; None for `--store none`.

    A dry run makes no store: without one it plans in an empty one that is gone afterwards.

    If the default store cannot be written, the rules judge continues without one and a note says
    so, because its verdicts cost nothing. A model's verdicts must not be lost: StoreError.
    """
    from ..judge.card.fields import REPORTED, RULES

    try:
        place = store_place(settings, paths, flag)
        if place is None and required:
            raise StoreError("this command needs a store", "leave out --store none")
        if place is None:
            return None
        from ..judge.store import open_store

        if is_dry_run and not _is_there(place):
            place = Path(stack.enter_context(TemporaryDirectory(prefix="ambjudge-"))) / "plan.db"
            return stack.enter_context(open_store(place))
        store = stack.enter_context(open_store(place))
    except StoreError as error:
        is_named = bool(settings.get("store", flag))
        is_free = judge is not None and judge.name in (RULES, REPORTED)
        if is_named or required or not is_free:
            raise
        console.note(f"ambjudge: verdicts are not stored: {error.message}", quiet)
        return None
    console.note(f"verdicts in {store.location}", quiet)
    return store


def note_strangers(
    store: Store, paths: Sequence[str], files: Sequence[Path], quiet: bool, *, new: bool = False
) -> None:
    """Name the paths below which the store knows no run, though it knows others.

    `new`: new runs are usual, so only those are named that the store seems to know at another
    place. `files` are the conversations at or below the paths.
    """
    from ..trajectories.reading.remote import is_address

    for path in (Path(name) for name in existing_paths(paths) if not is_address(name)):
        folder = path.absolute()
        example = next((file for file in files if file.absolute().is_relative_to(folder)), None)
        stranger = store.stranger(path, example)
        if stranger is not None and (stranger.namesake or not new):
            console.note(f"{stranger}; so these runs are judged anew", quiet)


def _is_there(place: str | Path) -> bool:
    """Whether there is a store at a place; one on a server is not looked for."""
    from ..judge.store.opening import database_url, file_of

    file = file_of(database_url(place))
    return file is None or file.exists()


def required_store(
    paths: Sequence[str],
    settings: Settings,
    flag: str | None,
    stack: ExitStack,
    quiet: bool,
    is_dry_run: bool = False,
) -> Store:
    """Open the store of a command that cannot do without one; StoreError if there is none."""
    store = open_session_store(
        paths, settings, flag, stack, quiet=quiet, required=True, is_dry_run=is_dry_run
    )
    assert store is not None
    return store


def judge_names(settings: Settings, flags: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the judges; none: the rules."""
    return tuple(settings.get("judge", flags.get("judges")) or ())


def judge_options(settings: Settings, flags: Mapping[str, Any]) -> JudgeOptions:
    """What the judges take; commands without these flags read the settings alone."""
    from ..judge.select import JudgeOptions

    def value(name: str) -> Any:
        return settings.get(name, flags.get(name))

    return JudgeOptions(
        api_base=value("api_base"),
        temperature=value("temperature"),
        samples=value("samples") or 1,
        pictures=value("pictures") or False,
        timeout=value("timeout"),
        max_tokens=value("max_tokens"),
        price=value("price"),
        batch_rate=settings.get("batch_rate"),
        rationale=settings.get("rationale") or False,
    )


def judge_of(settings: Settings, flags: Mapping[str, Any]) -> Judge:
    """The judge that flags and settings name."""
    from ..judge.select import make_judge

    return make_judge(judge_names(settings, flags), judge_options(settings, flags))


def with_rubrics_in_force(
    options: ScoreOptions, store: Store, quiet: bool, *, is_dry_run: bool
) -> ScoreOptions:
    """The options with the rubrics that the user gave now, and with earlier commands.

    They stay in force for the next command, unless this is a dry run. Notes name them, and those
    whose text was edited under the same version.
    """
    from dataclasses import replace

    from ..judge.rejudge.rubrics_in_force import edited_texts, rubrics_in_force

    given = options.scope().rubrics
    rubrics = rubrics_in_force(store, given)
    for rubric in edited_texts(store, rubrics):
        console.note(
            f"rubric {rubric.id} {rubric.version} has another text than the {rubric.id}"
            f" {rubric.version} that earlier scorecards name: give it a new version",
            quiet,
        )
    if not is_dry_run:
        store.set_rubrics_in_force(rubrics)
    earlier = [rubric for rubric in rubrics if all(rubric is not other for other in given)]
    for rubric in earlier:
        console.note(
            f"rubric {rubric.id} {rubric.version} judges the runs of track"
            f" {rubric.track or 'any'}, as in the last command that gave it (--rubric"
            f" {rubric.track or 'workflow'} for the built-in one)",
            quiet,
        )
    return replace(options, rubric=rubrics)


def running_rule(settings: Settings, flags: Mapping[str, Any]) -> RunningRule:
    """Which runs still go on: what --running or --finished says, else their age by the clock."""
    import time

    from ..trajectories.reading.running import YOUNG_MINUTES, RunningRule

    minutes = settings.get("young_minutes")
    return RunningRule(
        stated=flags.get("running"),
        young_minutes=YOUNG_MINUTES if minutes is None else minutes,
        clock=time.time,
    )


def score_options(settings: Settings, flags: Mapping[str, Any]) -> ScoreOptions:
    """How runs are scored: flags over settings over defaults.

    ConfigError for an unknown track or policy; InputError if the folder --public does not exist.
    """
    from ..judge.card.policy_file import load_policy
    from ..judge.questions.items import QuestionSet
    from ..judge.session import ScoreOptions
    from ..tracks import TRACKS

    def value(name: str) -> Any:
        return settings.get(name, flags.get(name))

    track, public = value("track"), value("public")
    if track is not None:
        TRACKS.get(track)
    if public is not None and not Path(public).is_dir():
        raise InputError(
            f"{public}: no such folder", "--public takes the folder with the public inputs"
        )
    return ScoreOptions(
        running=running_rule(settings, flags),
        rubric=value("rubric"),
        policy=load_policy(value("policy") or "paper"),
        public=Path(public) if public else None,
        track=track,
        tier=value("tier"),
        concurrency=value("concurrency") or 8,
        max_cost=value("max_cost"),
        calls_per_minute=value("calls_per_minute"),
        tokens_per_minute=value("tokens_per_minute"),
        questions=QuestionSet(
            diagnosis=value("diagnosis") is not False,
            stages=value("stages") or "rules",
            ask_all=value("ask_all") or False,
        ),
    )
