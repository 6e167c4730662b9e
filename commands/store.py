"""ambjudge store: look into the store of verdicts, copy it, back it up and slim it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..config import load
from ..errors import ConfigError, StoreError
from .grouped_help import CommandGroup, example_lines, option
from .options import json_option
from .path_types import LocalPath
from .sessions import store_place

if TYPE_CHECKING:
    from ..judge.provider_batch.ledger import OpenBatch
    from ..judge.store import Store
    from ..judge.store.contents import StoreContents
    from ..judge.store.pruning import Pruned

_MAX_NAMED = 5
"""Paths of runs that are gone which are named; the others are counted."""

STORE = option("--store", metavar="FILE|URL", help="This store.  [that of the working directory]")


@click.group(
    "store",
    cls=CommandGroup,
    epilog=example_lines(
        "ambjudge store info", "ambjudge store copy .ambjudge/ambjudge.db postgresql://host/db"
    ),
)
def command() -> None:
    """Look into the store of verdicts and scorecards, copy it, back it up or slim it.

    A store of an older schema is brought up to date by the first command that opens it, which says
    so.
    """


@command.command("info", epilog=example_lines("ambjudge store info --store team.db --json"))
@STORE
@json_option()
@click.pass_obj
def info(obj: dict[str, Any], store: str | None, as_json: bool) -> int:
    """Show what the store holds: its size by table, runs, scorecards, verdicts, spending by month,
    open batches, and runs that are no longer at their paths."""
    from ..judge.provider_batch import status
    from ..judge.store.contents import contents

    with _opened(obj, store) as opened:
        held, batches = contents(opened), status(opened)
    if as_json:
        console.raw(json.dumps(_to_json(held, batches), ensure_ascii=False))
    else:
        _show(held, batches)
    return 0


@command.command(
    "copy",
    epilog=example_lines(
        "ambjudge store copy runs/.ambjudge/ambjudge.db postgresql://user@host/judging"
    ),
)
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@option(
    "--base",
    metavar="DIR",
    type=LocalPath(),
    help="The folder that paths of runs are relative to.  [as in SRC]",
)
@click.pass_obj
def copy(obj: dict[str, Any], source: str, target: str, base: str | None) -> int:
    """Copy a store into a new one: between files, or between a file and PostgreSQL.

    Every row is copied, and DST finds the runs where SRC does, from any place. If the runs lie
    elsewhere now, --base names the folder. DST must be empty.
    """
    from ..judge.store import open_store
    from ..judge.store.copying import copy_store, row_count

    with open_store(source, create=False) as opened:
        progress = console.Progress("copied rows", row_count(opened), obj["quiet"])
        try:
            copied = copy_store(
                opened,
                target,
                base=None if base is None else Path(base),
                on_progress=progress.update,
            )
        finally:
            progress.clear()
    console.say(f"copied {copied.rows:,} rows to {copied.location}")
    with open_store(target, create=False) as opened:
        _show_paths(opened)
    return 0


@command.command("backup", epilog=example_lines("ambjudge store backup ~/backups/judging.db"))
@click.argument("target", metavar="DST", type=LocalPath())
@STORE
@click.pass_obj
def backup(obj: dict[str, Any], target: str, store: str | None) -> int:
    """Copy the store's file while other commands may use it.

    The backup works from its place (--store DST), and when it is put back.
    """
    from ..judge.store.copying import back_up

    with _opened(obj, store) as opened:
        copied = back_up(opened, Path(target))
    console.say(f"backed up {copied.rows:,} rows to {copied.location}")
    return 0


@command.command(
    "prune",
    epilog=example_lines("ambjudge store prune --superseded-cards --closed-batches --dry-run"),
)
@option("--replies-before", metavar="DATE", help="Remove raw replies older than YYYY-MM-DD.")
@option(
    "--superseded-cards",
    is_flag=True,
    help="Remove scorecards that a later one replaced.",
)
@option("--closed-batches", is_flag=True, help="Remove the requests of closed batches.")
@option("--dry-run", heading="Running", is_flag=True, help="Only show what would go.")
@STORE
@click.pass_obj
def prune(
    obj: dict[str, Any],
    replies_before: str | None,
    superseded_cards: bool,
    closed_batches: bool,
    dry_run: bool,
    store: str | None,
) -> int:
    """Remove what no number rests on any more, and give its room back to the disk.

    Verdicts, scorecards in force, labels and the record of what calls cost always stay. A
    scorecard that was removed can be made again from its verdicts without a call.
    """
    if not (replies_before or superseded_cards or closed_batches):
        raise click.UsageError(
            "name what to remove: --replies-before DATE, --superseded-cards or --closed-batches"
        )
    before = None if replies_before is None else _checked_date(replies_before)
    with _opened(obj, store) as opened:
        kinds = _prune(opened, before, superseded_cards, closed_batches, dry_run)
        verb = "would go" if dry_run else "removed"
        for kind in kinds:
            console.say(f"{kind.rows:,} {kind.what} {verb}, {_megabytes(kind.bytes)}")
        if not dry_run and any(kind.rows for kind in kinds):
            _vacuum(opened)
    return 0


def _prune(
    store: Store, before: str | None, cards: bool, closed_batches: bool, dry_run: bool
) -> list[Pruned]:
    from ..judge.provider_batch.ledger import PART_EVENT, Ledger
    from ..judge.store.pruning import prune_cards, prune_events, prune_replies

    kinds = []
    if before is not None:
        kinds.append(prune_replies(store, before, dry_run=dry_run))
    if cards:
        kinds.append(prune_cards(store, dry_run=dry_run))
    if closed_batches:
        closed = Ledger(store).closed_batches()
        what = "events of closed batches"
        kinds.append(prune_events(store, what, PART_EVENT, closed, dry_run=dry_run))
    return kinds


def _vacuum(store: Store) -> None:
    """Shrink the store, and say by how much."""
    from ..judge.store.contents import size_of
    from ..judge.store.pruning import vacuum

    before = size_of(store)
    vacuum(store)
    console.say(f"the store has {_megabytes(size_of(store))} now, {_megabytes(before)} before")


def _checked_date(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ConfigError(f"{text!r} is not a date", "give YYYY-MM-DD") from None


@contextmanager
def _opened(obj: dict[str, Any], flag: str | None) -> Iterator[Store]:
    """Open the store that is named, or that of the working directory; StoreError if none is."""
    from ..judge.store import open_store

    place = store_place(load(obj["config"]), [Path.cwd()], flag)
    if place is None:
        raise StoreError("no store is in use", "name one with --store")
    with open_store(place, create=False) as store:
        yield store


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


# What a store holds


def _show(held: StoreContents, batches: tuple[OpenBatch, ...]) -> None:
    owner = "" if held.made_here else ", not made here"
    console.say(f"{held.location}: {_megabytes(held.bytes)}, schema {held.schema}{owner}")
    console.say(
        f"{console.counted(held.runs, 'run')} in {held.versions:,} versions,"
        f" {console.counted(held.verdicts, 'verdict')}, {console.counted(held.labels, 'label')}"
    )
    _say_paths(held.runs, held.gone, held.root)
    _show_batches(batches)
    console.say()
    console.table(
        ["Table", "Rows", "MB"],
        [
            [table.name, f"{table.rows:,}", console.number(_in_mb(table.bytes))]
            for table in held.tables
        ],
        right=[1, 2],
    )
    if held.cards:
        console.say()
        console.table(
            ["Judge", "Rubric", "Version", "Runs", "Scorecards"],
            [
                [row.judge, row.rubric, row.version or "–", f"{row.runs:,}", f"{row.cards:,}"]
                for row in held.cards
            ],
            right=[3, 4],
            flexible=0,
        )
    if held.spending:
        console.say()
        _show_spending(held)


def _show_batches(batches: tuple[OpenBatch, ...]) -> None:
    if not batches:
        return
    rows = [
        [
            batch.provider_id or batch.id,
            batch.planned_at[:16].replace("T", " "),
            batch.judge.judge,
            batch.base,
            f"{batch.requests:,}",
            console.number(batch.reserved_usd, 4),
        ]
        for batch in batches
    ]
    columns = ["Open batch", "Sent (UTC)", "Judge", "Provider", "Requests", "Up to USD"]
    console.table(columns, rows, right=[4, 5], flexible=3)


def _show_spending(held: StoreContents) -> None:
    rows = [
        [
            row.month,
            row.judge,
            row.question,
            f"{row.requests:,}",
            _tokens(row.input_tokens),
            _tokens(row.output_tokens),
            console.number(row.cost_usd, 4),
        ]
        for row in held.spending
    ]
    console.table(
        ["Month", "Judge", "Question", "Requests", "Input", "Output", "USD"],
        rows,
        right=[3, 4, 5, 6],
        flexible=1,
    )
    total = sum(row.cost_usd or 0.0 for row in held.spending)
    unknown = sum(row.without_cost for row in held.spending)
    requests = sum(row.requests for row in held.spending)
    text = f"${total:.4f} in {console.counted(requests, 'request')}"
    if unknown:
        text += f"; {console.counted(unknown, 'answer')} of unknown cost not counted"
    console.say(text)


def _tokens(count: int | None) -> str:
    return "–" if count is None else f"{count:,}"


def _in_mb(size: int | None) -> float | None:
    return None if size is None else size / 1e6


def _show_paths(store: Store) -> None:
    """Say whether the store finds its runs."""
    from ..judge.store.contents import contents

    held = contents(store)
    _say_paths(held.runs, held.gone, held.root)


def _say_paths(runs: int, gone: tuple[str, ...], root: Path | None) -> None:
    place = "paths are absolute" if root is None else f"paths are relative to {root}"
    if not gone:
        console.say(f"{place}; all runs are there")
        return
    console.say(f"{place}; {len(gone):,} of {runs:,} runs are not there any more:")
    for path in gone[:_MAX_NAMED]:
        console.say(f"  {path}")
    if len(gone) > _MAX_NAMED:
        console.say(f"  and {len(gone) - _MAX_NAMED:,} more (store info --json names all)")


def _to_json(held: StoreContents, batches: tuple[OpenBatch, ...]) -> dict[str, Any]:
    data = asdict(held)
    data["root"] = None if held.root is None else str(held.root)
    data["open_batches"] = [
        {
            "id": batch.id,
            "provider_id": batch.provider_id,
            "judge": batch.judge.judge,
            "requests": batch.requests,
            "step": batch.step,
            "planned_at": batch.planned_at,
            "provider": batch.base,
            "reserved_usd": batch.reserved_usd,
        }
        for batch in batches
    ]
    return {"schema": "ambjudge.store/1", "store_schema": data.pop("schema"), **data}
