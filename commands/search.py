"""ambjudge search: words or a pattern in the turns of runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import AmbjudgeError, InputError
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import JSON, STORE, WHERE
from .path_types import LocalPath

if TYPE_CHECKING:
    from ..trajectories.models import Run, Turn

CONTEXT = 80
"""Characters before and after a match that are shown."""


@grouped_command(
    "search",
    "ambjudge search 'no space left' runs/",
    "ambjudge search '/resiz(e|ing)/' runs/ --where 'track:segmentation S3<0.5'",
)
@click.argument("pattern", metavar="TEXT|/REGEX/")
@click.argument("paths", nargs=-1, required=True, type=LocalPath(), metavar="PATH...")
@option(
    "--most",
    type=click.IntRange(min=1),
    default=5,
    metavar="N",
    help="Show at most N matches of a run; the others are counted.  [5]",
)
@WHERE
@STORE
@JSON
@click.pass_obj
def command(
    obj: dict[str, Any], /, pattern: str, paths: tuple[str, ...], most: int, **flags: Any
) -> int:
    """Find words, ignoring case, or a regular expression between slashes in what agents wrote, ran
    and saw; each match with its turn.

    The brief is not searched: all runs of a task share it.
    """
    from .runs import each_run, matching_paths

    finder = _compile(pattern)
    printer = _Printer(flags["as_json"], most)
    failed = 0
    for run in each_run(matching_paths(obj, paths, flags)):
        if isinstance(run, AmbjudgeError):
            failed += 1
            console.error(run)
        else:
            printer.add(run, list(matches_of(run, finder)))
    printer.finish(obj["quiet"])
    if not failed:
        return 0
    return 1 if printer.searched else 2


@dataclass(frozen=True)
class Match:
    """A line of a turn that holds the pattern."""

    turn: int
    part: str
    """What it is: text, reasoning, code, output or reply."""
    line: str
    start: int
    end: int
    """Characters of the first match in the line."""

    def excerpt(self) -> str:
        """The line, cut to CONTEXT around the match."""
        first, last = max(0, self.start - CONTEXT), self.end + CONTEXT
        text = self.line[first:last].strip()
        before = "…" if first else ""
        after = "…" if last < len(self.line) else ""
        return f"{before}{text}{after}"


def _compile(pattern: str) -> re.Pattern[str]:
    """The pattern between slashes, or the words; InputError for a pattern that is none."""
    if not pattern.strip():
        raise InputError("there is nothing to search for", "give words, or /REGEX/")
    is_regex = len(pattern) > 2 and pattern.startswith("/") and pattern.endswith("/")
    if not is_regex:
        return re.compile(re.escape(pattern), re.IGNORECASE)
    try:
        return re.compile(pattern[1:-1], re.IGNORECASE)
    except re.error as error:
        raise InputError(
            f"{pattern}: is no regular expression: {error}", "leave out the slashes to find words"
        ) from None


def matches_of(run: Run, pattern: re.Pattern[str]) -> Iterator[Match]:
    """The lines of a run's turns that hold the pattern, in order."""
    for turn in run.turns:
        for part, text in _parts(turn):
            for line in text.splitlines():
                match = pattern.search(line)
                if match is not None:
                    yield Match(turn.index, part, line, match.start(), match.end())


def _parts(turn: Turn) -> Iterator[tuple[str, str]]:
    yield "text", turn.text
    yield "reasoning", turn.reasoning
    yield "code", turn.code
    yield "output", turn.output
    for reply in turn.replies:
        yield "reply", reply


class _Printer:
    """Prints the matches of each run as they come, and their number at the end."""

    def __init__(self, as_json: bool, most: int) -> None:
        self.as_json, self.most = as_json, most
        self.searched = 0
        self.matching_runs = 0
        self.matches = 0

    def add(self, run: Run, matches: list[Match]) -> None:
        """Print the matches of a run."""
        self.searched += 1
        self.matches += len(matches)
        self.matching_runs += bool(matches)
        if not matches:
            return
        if self.as_json:
            for match in matches[: self.most]:
                console.raw(json.dumps(_to_json(run, match), ensure_ascii=False))
            return
        more = len(matches) - self.most
        console.say(run.id + (f"  ({more} more)" if more > 0 else ""))
        for match in matches[: self.most]:
            label = f"  turn {match.turn:<4} {match.part:<9} "
            console.say(console.fit(label + match.excerpt(), console.width()))

    def finish(self, quiet: bool) -> None:
        """Say on stderr how many matches and runs there are."""
        lines = console.counted(self.matches, "line")
        console.note(
            f"{lines} in {self.matching_runs} of {console.counted(self.searched, 'run')}", quiet
        )


def _to_json(run: Run, match: Match) -> dict[str, Any]:
    """`ambjudge.search/1`."""
    return {
        "schema": "ambjudge.search/1",
        "run": run.id,
        "path": str(run.path),
        "turn": match.turn,
        "part": match.part,
        "line": match.line,
        "start": match.start,
        "end": match.end,
    }
