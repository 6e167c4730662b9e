"""The work of `ambjudge browse`: what a path holds, then the browser on it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import Settings, load
from ..errors import AmbjudgeError, InputError

if TYPE_CHECKING:
    from ..judge.session import ScoreOptions
    from ..judge.store import Store
    from ..tui.source import Collection

_CARD_FILES = ("scorecards.jsonl", "cards.jsonl")


def run(obj: dict[str, Any], path: str, flags: dict[str, Any]) -> int:
    """The exit code: 0, or 2 when there is no terminal or nothing to show."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise AmbjudgeError("browse needs a terminal", "use score, segment or codes in a pipe")
    settings = load(Path(path), obj["config"])
    collection = collect(Path(path), settings, flags)
    try:
        browser(collection, flags).run()
    finally:
        collection.close()
    return 0


def browser(collection: Collection, flags: dict[str, Any]) -> Any:
    """The browser, not yet running; AmbjudgeError for an unknown theme."""
    from textual.theme import BUILTIN_THEMES

    from ..tui.app import Browser

    theme = flags.get("theme")
    if theme is not None and theme not in BUILTIN_THEMES:
        raise AmbjudgeError(f"no theme {theme!r}", f"one of {', '.join(sorted(BUILTIN_THEMES))}")
    return Browser(collection, score=not flags.get("no_score"), query=flags.get("query") or "", theme=theme)


def collect(path: Path, settings: Settings, flags: dict[str, Any]) -> Collection:
    """What a path and the options name; InputError when it is nothing that can be shown."""
    from ..tui.source import Collection

    def options() -> ScoreOptions:
        from .scoring import score_options

        unused = {"missing": None, "breach": None, "malformed": None, "concurrency": None}
        return score_options(settings, {**flags, **unused})

    if any(settings.get(name, flags.get(name)) for name in ("track", "public", "rubric")):
        options()  # A wrong one is told before the screen is taken.
    named = flags.get("store") or settings.get("store")
    cards = Path(flags["cards"]) if flags.get("cards") else None
    for file in (path, cards):
        if file is not None and not file.exists():
            raise InputError(
                "no such file or folder", "give a folder of runs, a .jsonl of scorecards, or a store", file
            )
    if path.is_file() and path.suffix == ".jsonl":
        cards = path
    elif path.is_file() and path.suffix in (".db", ".sqlite"):
        named = str(path)
    elif cards is None and path.is_dir():
        cards = next((path / name for name in _CARD_FILES if (path / name).is_file()), None)
    return Collection(path, options=options, store=lambda: _store(path, named), cards=cards)


def _store(path: Path, named: str | None) -> Store | None:
    """The store to use: the one named, else one found at or above the path; None when there is none."""
    if named == "none":
        return None
    where: str | Path | None = named
    if where is None:
        start = path.absolute() if path.is_dir() else path.absolute().parent
        places = (folder / ".ambjudge" / "ambjudge.db" for folder in (start, *start.parents))
        where = next((place for place in places if place.is_file()), None)
    if where is None:
        return None
    from ..judge.store import open_store

    return open_store(where, create=False)
