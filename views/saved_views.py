"""Saved views of the table of runs: a name, a filter and an order, in one JSON file of the user."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..atomic_files import whole
from ..errors import AmbjudgeError, InputError

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True)
class View:
    """A filter and an order. `column` is a place among the table's columns, None for the order of
    the collection."""

    name: str
    query: str = ""
    column: int | None = None
    descending: bool = False


OVERALL, S3 = 11, 6
BUILT_IN: tuple[View, ...] = (
    View("All runs"),
    View("Worst first", "scored", OVERALL),
    View("Weak validation", "S3<0.5", S3),
    View("Bad output went unnoticed", "code:E3", S3),
    View("Verdicts against facts", "contradictions"),
    View("Not fully scored", "unscored"),
    View("Good work, bad score", "agentic>=0.8 taskscore<0.3", OVERALL),
)


def default_file() -> Path:
    """views.json in the user's configuration folder."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "ambjudge" / "views.json"


def _adapter() -> TypeAdapter[list[View]]:
    from pydantic import TypeAdapter

    return TypeAdapter(list[View])


class Views:
    """Built-in views, then the user's own. Nothing is written until one is saved."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or default_file()

    def own(self) -> list[View]:
        """The user's views; none where the file cannot be read."""
        try:
            return _adapter().validate_json(self.file.read_bytes())
        except (OSError, ValueError):
            return []

    def all(self) -> list[View]:
        return [*BUILT_IN, *self.own()]

    def save(self, view: View) -> None:
        """Add a view, or replace the one of the same name. AmbjudgeError when the file cannot be
        written."""
        views = [old for old in self.own() if old.name != view.name] + [view]
        try:
            with whole(self.file) as part:
                part.write_bytes(_adapter().dump_json(views, indent=1))
        except InputError as error:
            raise AmbjudgeError(error.message, "set XDG_CONFIG_HOME") from None
