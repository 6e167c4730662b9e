"""ambjudge verify: does a scorecard add up?"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import AmbjudgeError, InputError
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import json_option
from .path_types import LocalPath

if TYPE_CHECKING:
    from ..rubrics.model import Rubric


@grouped_command(
    "verify", "ambjudge score runs/ --json > cards.jsonl && ambjudge verify cards.jsonl"
)
@click.argument("files", nargs=-1, required=True, type=LocalPath(), metavar="FILE...")
@option(
    "--rubric",
    "rubrics",
    multiple=True,
    metavar="FILE|ID",
    help="A rubric that was used, if it is not a built-in one; repeatable.",
)
@json_option("Print one JSON line for each scorecard.")
@click.pass_obj
def command(
    obj: dict[str, Any], files: tuple[str, ...], rubrics: tuple[str, ...], as_json: bool
) -> int:
    """Recompute every number of scorecards (JSON or JSON Lines) from their criteria and checks,
    without any model.

    Exit 1 if a number differs, a scorecard is broken, or one of several files cannot be read.
    """
    from ..rubrics.load import load_rubric

    used = [load_rubric(name) for name in rubrics]
    correct = wrong = unreadable = 0
    counts: Counter[tuple[str, ...]] = Counter()
    for location, data in _read_cards(files):
        if isinstance(data, UnreadableError):
            unreadable += 1
            console.error(data)
            continue
        run, problems = _check(location, data, used)
        if problems:
            wrong += 1
        else:
            correct += 1
        if as_json:
            line = {"where": location, "run": run, "ok": not problems, "differences": problems}
            console.raw(json.dumps(line, ensure_ascii=False))
        elif problems:
            # Thousands of cards may share the same problems: print them once and count the rest.
            key = tuple(problems)
            counts[key] += 1
            if counts[key] == 1:
                console.say(f"{run}  ({location})")
                for problem in problems:
                    console.say(f"  {problem}")
    if not correct + wrong:
        return 2
    for (first, *_), count in counts.items():
        if count > 1:
            console.say(f"{count - 1} more: {first}")
    console.note(f"{correct} of {correct + wrong} scorecards add up", obj["quiet"])
    return 1 if wrong or unreadable else 0


class UnreadableError(AmbjudgeError):
    """A file of which nothing could be read, unlike a scorecard that is broken."""


def _check(location: str, data: Any, rubrics: Sequence[Rubric]) -> tuple[str, list[str]]:
    """The name of a scorecard's run (or its location) and the problems of the scorecard."""
    from ..judge.card.verify import parse_card, rubric_of, verify

    try:
        if isinstance(data, InputError):
            raise data
        card = parse_card(data, location)
        return card.run.id, [
            str(difference) for difference in verify(card, rubric_of(card, rubrics))
        ]
    except InputError as error:
        # Without the location, broken cards of one kind have the same words and are counted.
        message = error.message.removeprefix(f"{location}: ")
        return location, [f"{message} ({error.hint})" if error.hint else message]


def _read_cards(files: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Every scorecard of every file, one at a time, with its location; an error in its place if it
    cannot be read."""
    from ..analysis.tables.card_sources import is_store

    for name in files:
        path = Path(name)
        if path.suffix == ".jsonl" and path.is_file() and os.access(path, os.R_OK):
            yield from _read_lines(name)
        elif is_store(name) and ("://" in name or path.exists()):
            yield (
                name,
                UnreadableError(
                    f"{name}: is a store, not a file of scorecards",
                    "give the scorecards: ambjudge score RUNS --out cards.jsonl writes those of"
                    " the store",
                ),
            )
        else:
            yield from _read_document(name)


def _read_lines(name: str) -> Iterator[tuple[str, Any]]:
    """The scorecards of a JSON Lines file of any length."""
    from ..trajectories.reading.json_bytes import bounded_lines, decode, parse_json

    path = Path(name)
    with path.open("rb") as stream:
        for number, (_, data) in enumerate(bounded_lines(stream), 1):
            if not data.strip():
                continue
            try:
                yield f"{name}:{number}", parse_json(decode(data, path), path, number)
            except InputError as error:
                yield f"{name}:{number}", error


def _read_document(name: str) -> Iterator[tuple[str, Any]]:
    """The scorecards of a JSON file, or of JSON Lines under another suffix."""
    from ..trajectories.reading.json_bytes import (
        MAX_CARDS,
        decode,
        parse_json,
        read_bytes,
        read_jsonl,
    )

    path = Path(name)
    try:
        text = decode(read_bytes(path, MAX_CARDS), path)
    except InputError as error:
        yield name, UnreadableError(error.message, error.hint)
        return
    try:
        value = parse_json(text, path)
    except InputError as error:
        if "\n" not in text.strip():
            yield name, error
            return
        for number, line in read_jsonl(path):
            yield f"{name}:{number}", line
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield f"{name}[{index}]", item
    else:
        yield name, value
