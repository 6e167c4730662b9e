"""ambjudge changes: what changed between scorecards, and why, from the store alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import InputError
from .cohort_input import card_choice, opened, place_of, run_filter, say_json
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import JUDGED_BY, PATHS, RUBRIC_OF_CARDS, STORE, WHERE, json_option

if TYPE_CHECKING:
    from ..analysis.report.changes_result import Changes
    from ..judge.card.choice import CardChoice
    from ..judge.rejudge.card_changes import Earlier
    from ..judge.store import Store
    from ..views.run_query import RunQuery
    from .cohort_input import StorePlace

_LAST = "last"


@grouped_command(
    "changes",
    "ambjudge changes runs/",
    "ambjudge changes runs/ --since last --where 'track:vqa'",
    "ambjudge changes runs/ --since 2026-11-01 --json",
    "ambjudge changes runs/ --judged-by openai/new --from openai/old",
)
@PATHS
@option(
    "--since",
    metavar="WHEN",
    help=(
        "Compare with the scorecards in force then: a date (UTC), a number of days ago, or `last`"
        " for before the last `score` or `rejudge`.  [each with the one before it]"
    ),
)
@option(
    "--from",
    "origin",
    metavar="JUDGE|RUBRIC",
    help="Compare with the scorecards of this judge, or by this rubric (FILE or ID[@VERSION]).",
)
@WHERE
@JUDGED_BY
@RUBRIC_OF_CARDS
@STORE
@json_option("Print one JSON object, with all runs and verdicts.")
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Show what changed between scorecards: scores, verdicts, error codes, places on the board, and
    the cause of each change.

    The store keeps every scorecard. By default the one in force of each run is compared with the
    one before it. Nothing is judged or scored.
    """
    return run(obj, paths, flags)


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0."""
    if flags["since"] and flags["origin"]:
        raise InputError("--since and --from name two different comparisons", "give one of them")
    place, below = _one_place(obj, paths, flags["store"])
    with opened(place, obj["quiet"]) as store:
        choice = card_choice(flags)
        earlier = _earlier(store, below, flags)
        where = run_filter(flags, paths)
        changes = compare(store, below, choice, earlier, obj["quiet"], where)
        if flags["as_json"]:
            say_json(changes.to_dict())
            return 0
        console.say(console.wrap(_opening(changes, _comparison(store, flags, earlier))))
        from .score_changes import show_changes

        show_changes(changes)
    return 0


def compare(
    store: Store,
    below: Sequence[Path | None],
    choice: CardChoice | None,
    earlier: Earlier,
    quiet: bool,
    where: RunQuery | None = None,
) -> Changes:
    """The changes of the scorecards in force against earlier ones, with progress on stderr."""
    from itertools import count

    from ..analysis.report.changes_result import collect
    from ..judge.rejudge.card_changes import card_pairs

    progress = console.Progress("compared", None, quiet)
    numbers = count(1)
    try:
        return collect(
            card_pairs(store, below, choice, earlier),
            None if where is None else where.accepts,
            on_pair=lambda: progress.update(next(numbers)),
        )
    finally:
        progress.clear()


def _one_place(
    obj: dict[str, Any], paths: Sequence[str], flag: str | None
) -> tuple[StorePlace, list[Path | None]]:
    """The store that all paths share, and the paths whose runs are meant. InputError without."""
    places = [place_of(obj, path, flag) for path in paths]
    for path, place in zip(paths, places, strict=True):
        if place.store is None:
            raise InputError(
                "has no scorecards to compare: it is not a store, and no store belongs to it",
                "score the runs first, or name the store with --store",
                path,
            )
    if len({str(place.store) for place in places}) > 1:
        raise InputError("these paths do not share one store", "give them one by one")
    return places[0], [place.below for place in places]


def _earlier(store: Store, below: Sequence[Path | None], flags: Mapping[str, Any]) -> Earlier:
    """What the scorecards in force are compared with, as the flags say."""
    from ..judge.rejudge.card_changes import Earlier

    if flags["since"]:
        return Earlier(until=store.last_card(before=_since(store, flags["since"])))
    if flags["origin"]:
        return Earlier(choice=_origin_choice(store, flags["origin"]))
    return Earlier()


def _origin_choice(store: Store, name: str) -> CardChoice:
    """The scorecards of the judge or by the rubric of this name."""
    from dataclasses import replace

    from ..judge.card.choice import CardChoice, choice_of

    if name in {version.judge for version in store.card_versions()}:
        return CardChoice(judge=name)
    return replace(choice_of(None, name), judge=None, versions=False)


def _since(store: Store, text: str) -> str:
    """The time that is meant, as the store writes times. InputError if it cannot be read."""
    if text == _LAST:
        from ..judge.store.session_events import STARTED

        starts = [
            made_at for made_at, _, body in store.events(STARTED) if body.get("command") != "ask"
        ]
        if not starts:
            raise InputError(
                "the store does not say when runs were scored last", "give a date with --since"
            )
        return starts[-1]
    if text.isdigit():
        return _stored_time(datetime.now(UTC) - timedelta(days=int(text)))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"--since {text}: not a time", "give a date as 2026-11-01, a number of days, or last"
        ) from None
    return _stored_time(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _stored_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _comparison(store: Store, flags: Mapping[str, Any], earlier: Earlier) -> str:
    """What the scorecards in force are compared with, in words."""
    if earlier.choice is not None:
        return f"against those of {flags['origin']}"
    if flags["since"]:
        moment = _since(store, flags["since"])[:16].replace("T", " ")
        return f"against those in force at {moment} UTC"
    return "each against the one before it"


def _opening(changes: Changes, comparison: str) -> str:
    total = len(changes.runs) + changes.unchanged + changes.added
    judges = ", ".join(changes.judges)
    text = (
        f"{len(changes.runs):,} of {console.counted(total, 'run')} changed: scorecards in force"
        f" (judge {judges}), {comparison}"
    )
    if changes.added:
        text += f"; {console.counted(changes.added, 'run')} had none then"
    return text
