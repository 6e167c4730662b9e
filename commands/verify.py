"""ambjudge verify: does a scorecard add up?"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import click

from .. import console
from ..errors import AmbjudgeError
from .options import json_option


@click.command(
    "verify",
    epilog=(
        "\b\nExample:\n  ambjudge score runs/ --json > cards.jsonl && ambjudge verify cards.jsonl"
    ),
)
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@click.option(
    "--rubric", metavar="FILE|ID", help="The rubric that was used, where it is not a built-in one."
)
@json_option("One JSON line a scorecard.")
@click.pass_obj
def command(obj: dict[str, Any], files: tuple[str, ...], rubric: str | None, as_json: bool) -> int:
    """Recompute every number of scorecards (JSON or JSON Lines) from their criteria and checks,
    without any model.

    Exit 1 when a number differs, a card is broken, or one of several files cannot be read.
    """
    from ..errors import InputError
    from ..judge.card.verify import parse_card, rubric_of, verify

    good = bad = unread = 0
    same: Counter[tuple[str, ...]] = Counter()
    for where, data in _cards(files):
        if isinstance(data, Unreadable):
            unread += 1
            console.error(data)
            continue
        try:
            if isinstance(data, InputError):
                raise data
            card = parse_card(data, where)
            differences = verify(card, rubric_of(card, rubric))
            name, lines = card.run.id, [str(d) for d in differences]
        except InputError as error:
            # the same words, so that thousands of lines are told once
            said = error.message.removeprefix(f"{where}: ")
            name, lines = where, [said + (f" ({error.hint})" if error.hint else "")]
        good, bad = (good + 1, bad) if not lines else (good, bad + 1)
        if as_json:
            console.raw(
                json.dumps(
                    {"where": where, "run": name, "ok": not lines, "differences": lines},
                    ensure_ascii=False,
                )
            )
        elif lines:
            same[tuple(lines)] += 1
            if same[tuple(lines)] == 1:
                console.say(f"{name}  ({where})")
                for line in lines:
                    console.say(f"  {line}")
    if not good + bad:
        return 2
    for (first, *_), times in same.items():
        if times > 1:
            console.say(f"{times - 1} more: {first}")
    console.note(f"{good} of {good + bad} scorecards add up", obj["quiet"])
    return 1 if bad or unread else 0


class Unreadable(AmbjudgeError):
    """A file of which nothing could be read, as opposed to a scorecard that is broken."""


def _cards(files: tuple[str, ...]) -> Any:
    """(where, value or error) for every scorecard of every file, one at a time."""
    from ..analysis.tables.card_sources import is_store
    from ..errors import InputError
    from ..trajectories.reading.json_bytes import (
        MAX_CARDS,
        bounded_lines,
        decode,
        parse_json,
        read_bytes,
        read_jsonl,
    )

    for name in files:
        path = Path(name)
        # as many as there may be
        if path.suffix == ".jsonl" and path.is_file() and os.access(path, os.R_OK):
            with path.open("rb") as stream:
                for number, (_, data) in enumerate(bounded_lines(stream), 1):
                    if data.strip():
                        try:
                            yield f"{name}:{number}", parse_json(decode(data, path), path, number)
                        except InputError as error:
                            yield f"{name}:{number}", error
            continue
        if is_store(name) and ("://" in name or path.exists()):
            hint = (
                "give the scorecards: ambjudge score RUNS --out cards.jsonl writes those of the"
                " store"
            )
            yield name, Unreadable(f"{name}: is a store, not a file of scorecards", hint)
            continue
        try:
            text = decode(read_bytes(path, MAX_CARDS), path)
        except InputError as error:
            yield name, Unreadable(error.message, error.hint)
            continue
        try:
            value = parse_json(text, path)
        except InputError as error:
            if "\n" not in text.strip():
                yield name, error
                continue
            for number, line in read_jsonl(path):
                yield f"{name}:{number}", line
            continue
        if isinstance(value, list):
            yield from ((f"{name}[{i}]", item) for i, item in enumerate(value))
        else:
            yield name, value
