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
from .cohort_input import card_choice
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import JUDGED_BY, RUBRIC_OF_CARDS, STORE
from .path_types import LocalPath
from .sessions import judge_of, score_options, store_place

if TYPE_CHECKING:
    from ..judge.base import Judge
    from ..judge.session import ScoreOptions
    from ..judge.store import Store
    from ..tui.app import Browser
    from ..views.collection import Collection

_CARD_FILES = ("scorecards.jsonl", "cards.jsonl")
"""Names of files of scorecards that are looked for beside runs."""


@grouped_command(
    "browse",
    "ambjudge browse runs/",
    "ambjudge browse cards.jsonl --where 'code:E3 S3<0.5'",
)
@click.argument("path", required=False, type=LocalPath(), metavar="[PATH]")
@option(
    "--where",
    "query",
    metavar="FILTER",
    default="",
    help="Begin with this filter; ? shows the language.",
)
@option("--annotator", metavar="NAME", help="Label under this name.  [default: the user's name]")
@option(
    "--labels",
    metavar="DIR",
    type=LocalPath(),
    help="Keep labels here as files, one a run.",
)
@option(
    "--cards",
    heading="Scores",
    metavar="FILE",
    type=LocalPath(),
    help="Take the scorecards (JSON Lines) of the runs from here.",
)
@option("--no-score", heading="Scores", is_flag=True, help="Do not score runs without a scorecard.")
@JUDGED_BY
@RUBRIC_OF_CARDS
@STORE
@click.pass_obj
def command(obj: dict[str, Any], /, path: str | None, **flags: Any) -> int:
    """Read, search, compare and label runs in the terminal.

    PATH is a folder of runs, a file of scorecards (.jsonl), or a store. Scorecards come from the
    store or from a file; runs without one are scored by the rules judge while you read, unless
    those of a model count. Without PATH, the working directory is shown and nothing is scored. The
    setting `theme` names the colours: textual-light, nord, gruvbox, ...
    """
    if path is None:
        path, flags["no_score"] = ".", True
    return run(obj, path, flags)


def run(obj: dict[str, Any], path: str, flags: dict[str, Any]) -> int:
    """The exit code: 0, or 2 if there is no terminal or nothing to show."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise AmbjudgeError("browse needs a terminal", "use score, segment or codes in a pipe")
    settings = load(obj["config"])
    collection = collect(Path(path), settings, flags)
    app = browser(collection, settings, flags)
    try:
        with _log_silenced():
            app.run()
    finally:
        collection.close()
    if app.failure is not None:
        raise app.failure
    return 0


@contextmanager
def _log_silenced() -> Iterator[None]:
    """Drop log lines while the browser has the screen: they would be written across it, and may
    quote a run."""
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

    theme = settings.get("theme")
    if theme is not None and theme not in BUILTIN_THEMES:
        raise AmbjudgeError(
            f"unknown theme {theme!r}", f"choose from {', '.join(sorted(BUILTIN_THEMES))}"
        )

    def make_judge(name: str) -> Judge:
        return judge_of(settings, {"judges": (name,)})

    labels = flags.get("labels")
    judge_names = settings.get("judge") or ("rules",)
    return App(
        collection,
        score=not flags.get("no_score"),
        query=flags.get("query") or "",
        theme=theme,
        annotator=flags.get("annotator") or _user_name(),
        labels=Path(labels) if labels else None,
        judge=make_judge,
        judge_name=judge_names[0],
    )


def _user_name() -> str:
    """The user's name, for labels; "me" if the system does not know it."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "me"


def collect(path: Path, settings: Settings, flags: dict[str, Any]) -> Collection:
    """The runs and scorecards that a path and the options name.

    InputError for a path that cannot be shown.
    """
    from ..judge.card.choice import rubric_to_score_with
    from ..views.collection import Collection

    def options() -> ScoreOptions:
        rubric = rubric_to_score_with(flags.get("rubric"))
        return score_options(settings, {**flags, "rubric": rubric})

    if any(settings.get(name, flags.get(name)) for name in ("track", "public", "rubric", "policy")):
        options()  # An error must show before the screen is taken.
    cards = Path(flags["cards"]) if flags.get("cards") else None
    for file in (path, cards):
        if file is not None and not file.exists():
            raise InputError(
                "no such file or folder",
                "give a folder of runs, a .jsonl of scorecards, or a store",
                file,
            )
    is_store = path.is_file() and path.suffix in (".db", ".sqlite")
    place = store_place(settings, [path], str(path) if is_store else flags.get("store"))
    return Collection(
        path,
        options=options,
        store=lambda: _existing_store(place),
        new_store=None if place is None else lambda: _new_store(place),
        cards=_card_file(path, cards),
        choice=card_choice(flags),
    )


def _card_file(path: Path, cards: Path | None) -> Path | None:
    """The file of scorecards to show: PATH itself, --cards, or one that lies beside the runs."""
    from ..trajectories.reading.layout import is_run

    if path.is_file() and path.suffix == ".jsonl":
        return path
    # A file in the folder of a run came with that run.
    if cards is not None or not path.is_dir() or is_run(path):
        return cards
    for name in _CARD_FILES:
        if (path / name).is_file():
            return path / name
    return None


def _existing_store(place: str | Path | None) -> Store | None:
    """The store there, if it exists; it is made when there is something to keep."""
    from ..judge.session import is_store_there
    from ..judge.store import open_store

    if not is_store_there(place):
        return None

    return open_store(place, create=False)


def _new_store(place: str | Path) -> Store:
    from ..judge.store import open_store

    return open_store(place)
