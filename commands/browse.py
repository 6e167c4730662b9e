"""ambjudge browse: the browser in the terminal."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..config import Settings, load
from ..errors import AmbjudgeError, InputError
from .options import POLICIES, run_options, store_place

if TYPE_CHECKING:
    from ..judge.base import Judge
    from ..judge.session import ScoreOptions
    from ..judge.store import Store
    from ..tui.app import Browser
    from ..views.collection import Collection


@click.command(
    "browse",
    epilog=(
        "\b\nExamples:\n  ambjudge browse runs/\n  ambjudge browse cards.jsonl --filter 'code:E3"
        " S3<0.5'"
    ),
)
@click.argument("path", required=False, type=click.Path(), metavar="[PATH]")
@click.option(
    "--cards",
    metavar="FILE",
    type=click.Path(),
    help="Scorecards (JSON Lines) of the runs below PATH.",
)
@click.option(
    "--store",
    metavar="FILE|URL|none",
    help="Verdict store; default: the one found upward from PATH.",
)
@click.option(
    "--filter",
    "query",
    metavar="TEXT",
    default="",
    help="Begin with this filter (? shows the language).",
)
@click.option("--annotator", metavar="NAME", help="Who labels; default: the user's name.")
@click.option(
    "--labels", metavar="DIR", type=click.Path(), help="Where labels are kept as files, one a run."
)
@click.option("--no-score", is_flag=True, help="Do not score runs that have no scorecard.")
@click.option("--theme", metavar="NAME", help="Colours, e.g. textual-light, nord, gruvbox.")
@run_options
@click.pass_obj
def command(obj: dict[str, Any], /, path: str | None, **flags: Any) -> int:
    """Read, search, compare and label runs in the terminal.

    PATH is a folder of runs, a file of scorecards (.jsonl), or a store. Scorecards come from the
    store or from a file; runs without one are scored by the rules judge while you read. Without
    PATH the current folder is shown as it is, and nothing is scored.
    """
    if path is None:
        path, flags["no_score"] = ".", True
    return run(obj, path, flags)


_CARD_FILES = ("scorecards.jsonl", "cards.jsonl")


def run(obj: dict[str, Any], path: str, flags: dict[str, Any]) -> int:
    """The exit code: 0, or 2 when there is no terminal or nothing to show."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise AmbjudgeError("browse needs a terminal", "use score, segment or codes in a pipe")
    settings = load(obj["config"])
    collection = collect(Path(path), settings, flags)
    app = browser(collection, settings, flags)
    try:
        with _quiet_log():
            app.run()
    finally:
        collection.close()
    if app.failure is not None:
        raise app.failure
    return 0


@contextmanager
def _quiet_log() -> Iterator[None]:
    """No log lines while the browser has the screen: they would be written across it, and may quote
    a run."""
    root = logging.getLogger()
    handlers = root.handlers[:]
    root.handlers[:] = [logging.NullHandler()]
    try:
        yield
    finally:
        root.handlers[:] = handlers


def browser(collection: Collection, settings: Settings, flags: dict[str, Any]) -> Browser:
    """The browser, not yet running; AmbjudgeError for an unknown theme."""
    from textual.theme import BUILTIN_THEMES

    from ..tui.app import Browser as App

    theme = flags.get("theme")
    if theme is not None and theme not in BUILTIN_THEMES:
        raise AmbjudgeError(f"no theme {theme!r}", f"one of {', '.join(sorted(BUILTIN_THEMES))}")
    labels = flags.get("labels")

    def judge(name: str) -> Judge:
        from .options import judge_of

        unused = dict.fromkeys(("api_base", "temperature", "samples", "timeout", "price"))
        return judge_of(settings, {**unused, **flags, "judges": (name,)})

    named = settings.get("judge") or ("rules",)
    return App(
        collection,
        score=not flags.get("no_score"),
        query=flags.get("query") or "",
        theme=theme,
        annotator=flags.get("annotator") or _user(),
        labels=Path(labels) if labels else None,
        judge=judge,
        judge_name=named[0],
    )


def _user() -> str:
    """The user's name, for labels; "me" where the system does not say."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "me"


def collect(path: Path, settings: Settings, flags: dict[str, Any]) -> Collection:
    """What a path and the options name; InputError when it is nothing that can be shown."""
    from ..trajectories.reading.layout import is_run
    from ..views.collection import Collection

    def options() -> ScoreOptions:
        from .options import score_options

        unused = dict.fromkeys((*POLICIES, "concurrency"))
        return score_options(settings, {**flags, **unused})

    if any(settings.get(name, flags.get(name)) for name in ("track", "public", "rubric")):
        options()  # A wrong one is told before the screen is taken.
    named = flags.get("store") or settings.get("store")
    cards = Path(flags["cards"]) if flags.get("cards") else None
    for file in (path, cards):
        if file is not None and not file.exists():
            raise InputError(
                "no such file or folder",
                "give a folder of runs, a .jsonl of scorecards, or a store",
                file,
            )
    if path.is_file() and path.suffix == ".jsonl":
        cards = path
    elif path.is_file() and path.suffix in (".db", ".sqlite"):
        named = str(path)
    # those in the folder of a run came with it
    elif cards is None and path.is_dir() and not is_run(path):
        cards = next((path / name for name in _CARD_FILES if (path / name).is_file()), None)
    place = store_place(settings, [path], named)
    new = None if place is None else lambda: _new_store(place)
    return Collection(
        path, options=options, store=lambda: _store(place), new_store=new, cards=cards
    )


def _store(place: str | Path | None) -> Store | None:
    """The store there; None when there is none: it is made when there is something to keep."""
    if place is None or not ("://" in str(place) or Path(place).exists()):
        return None
    from ..judge.store import open_store

    return open_store(place, create=False)


def _new_store(place: str | Path) -> Store:
    from ..judge.store import open_store

    return open_store(place)
