"""ambjudge watch: error codes and endings of runs while agents work."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import InputError
from ..sanitize import sanitize_line
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import json_option
from .path_types import LocalPath

if TYPE_CHECKING:
    from ..judge.watching import RunEvent, Watcher

_EXEC_SECONDS = 60.0
"""Longest time that a command of --exec may take."""


@grouped_command(
    "watch",
    "ambjudge watch runs/",
    "ambjudge watch runs/ --until-done --json > events.jsonl",
    "ambjudge watch runs/ --exec 'notify-send --icon dialog-warning ambjudge'",
)
@click.argument("path", type=LocalPath(), metavar="FOLDER")
@option(
    "--every",
    type=click.FloatRange(min=0.05),
    default=5.0,
    metavar="SECONDS",
    help="Look again after this time.  [5]",
)
@option("--until-done", is_flag=True, help="Stop when all runs have ended.")
@option(
    "--exec",
    "program",
    metavar="COMMAND",
    help="Run this for each event, which it gets as JSON on stdin.",
)
@json_option("Print the events as JSON Lines.")
@click.pass_obj
def command(
    obj: dict[str, Any],
    /,
    path: str,
    every: float,
    until_done: bool,
    program: str | None,
    as_json: bool,
) -> int:
    """Watch runs while agents work: a line when an error code first fires, a line when a run ends,
    with its scores, and a summary at the end.

    Only rules judge. A run goes on while nothing shows its end and its files are younger than ten
    minutes (the setting young_minutes). Ctrl-C ends the watch. The exit code is 1 if a code fired.
    """
    from ..config import load
    from ..judge.watching import Watcher
    from .sessions import score_options

    argv = None if program is None else _program(program)
    watcher = Watcher(Path(path), score_options(load(obj["config"]), {}))
    printer = _Printer(as_json, argv, obj["quiet"])
    with _stopped_by_signals() as stop:
        while True:
            for event in watcher.look():
                printer.show(event)
                if stop.is_set():
                    break
            if stop.is_set() or (until_done and watcher.is_done):
                break
            stop.wait(every)
    printer.finish(watcher)
    return 1 if watcher.tally.codes else 0


def _program(text: str) -> list[str]:
    """The words of a command; InputError if it is none that can be run."""
    try:
        argv = shlex.split(text)
    except ValueError as error:
        raise InputError(f"--exec: {error}", "quote it as for a shell") from None
    if not argv or shutil.which(argv[0]) is None:
        name = argv[0] if argv else ""
        raise InputError(
            f"--exec: there is no command {name!r}", "give a program and its arguments"
        )
    return argv


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and a request to terminate set, so that the summary is still printed."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    names = (signal.SIGINT, signal.SIGTERM)
    before = {name: signal.signal(name, lambda *_: stop.set()) for name in names}
    try:
        yield stop
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


class _Printer:
    """Prints events as they come, and hands them to the user's command."""

    def __init__(self, as_json: bool, argv: list[str] | None, quiet: bool) -> None:
        self._as_json, self._argv, self._quiet = as_json, argv, quiet

    def show(self, event: RunEvent) -> None:
        """Print one event and run the command for it."""
        line = event.model_dump_json()
        if self._as_json:
            console.raw(line)
        else:
            console.say(sanitize_line(_line(event)))
        sys.stdout.flush()
        if self._argv is not None:
            self._run(self._argv, line)

    def _run(self, argv: list[str], line: str) -> None:
        """Run the command without a shell; nothing of a run stands in its arguments."""
        problem = ""
        try:
            done = subprocess.run(
                argv,
                input=f"{line}\n",
                encoding="utf-8",
                stdout=sys.stderr.fileno() if _has_descriptor() else subprocess.DEVNULL,
                timeout=_EXEC_SECONDS,
                check=False,
            )
            if done.returncode:
                problem = f"ended with status {done.returncode}"
        except subprocess.TimeoutExpired:
            problem = f"was stopped after {_EXEC_SECONDS:g} seconds"
        except OSError as error:
            problem = f"cannot be run: {error.strerror or error}"
        if problem:
            console.error(f"--exec: {argv[0]} {problem}")

    def finish(self, watcher: Watcher) -> None:
        """Print the summary: as an object too with --json."""
        for problem in watcher.errors:
            console.error(problem)
        if self._as_json:
            import json

            console.raw(json.dumps({"event": "summary", **_summary(watcher)}))
        else:
            console.say(_summary_line(watcher))
        sys.stdout.flush()


def _has_descriptor() -> bool:
    """Whether stderr is a file of the system, which a command can write to."""
    with suppress(OSError, ValueError, AttributeError):
        return sys.stderr.fileno() >= 0
    return False


def _line(event: RunEvent) -> str:
    head = f"{event.run}  turn {event.turns}"
    if event.event == "code":
        turns = ", ".join(map(str, event.code_turns))
        return f"{head}  {event.code} {event.stage} (turn {turns}): {event.why}"
    if event.event == "resumed":
        return f"{head}  goes on"
    verb = f"ended: {event.ended}" if event.event == "ended" else "scores changed"
    scores = "  ".join(_score(event, name) for name in event.scores)
    return f"{head}  {verb}  {scores}  codes {' '.join(event.codes) or '–'}"


_NAMES = {"agentic": "Agentic", "task": "Task", "overall": "Overall"}


def _score(event: RunEvent, name: str) -> str:
    value = event.scores[name]
    mark = "~" if value is not None and name in event.presumed else ""
    return f"{_NAMES.get(name, name)} {mark}{console.number(value, 1 if name == 'overall' else 2)}"


def _summary(watcher: Watcher) -> dict[str, Any]:
    tally = watcher.tally
    return {
        "running": watcher.running,
        "ended": watcher.ended,
        "codes": dict(sorted(tally.codes.items())),
        "taken_back": tally.taken_back,
        "gone": tally.gone,
        "unreadable": len(watcher.errors),
    }


def _summary_line(watcher: Watcher) -> str:
    tally = watcher.tally
    parts = [
        f"{console.counted(watcher.ended, 'run')} ended",
        f"{watcher.running} still running",
    ]
    fired = ", ".join(f"{code} in {count}" for code, count in sorted(tally.codes.items()))
    parts.append(f"codes: {fired}" if fired else "no code fired")
    if tally.taken_back:
        parts.append(f"{console.counted(tally.taken_back, 'code')} not in the final scorecard")
    if tally.gone:
        parts.append(f"{console.counted(tally.gone, 'run')} vanished")
    if watcher.errors:
        parts.append(f"{len(watcher.errors)} could not be read")
    return "; ".join(parts)
