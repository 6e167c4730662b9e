"""Saved views of the table of runs: a name, a filter and an order, in one JSON file of the user."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..atomic_files import atomic_write
from ..errors import AmbjudgeError, InputError

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True)
class View:
    """A filter and an order. `sort` is the key of a column; None leaves the order as it is."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 - read by pydantic, never changed

    name: str
    query: str = ""
    sort: str | None = None
    descending: bool = False


BUILT_IN: tuple[View, ...] = (
    View("All runs"),
    View("Worst first", "scored", "overall"),
    View("Weak validation", "S3<0.5", "s3"),
    View("Bad output went unnoticed", "code:E3", "s3"),
    View("Verdicts against facts", "contradictions"),
    View("Not fully scored", "unscored"),
    View("Good work, bad score", "agentic>=0.8 taskscore<0.3", "overall"),
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
        """The user's views. InputError if the file is there and holds no views of this form."""
        try:
            return _adapter().validate_json(self.file.read_bytes())
        except FileNotFoundError:
            return []
        except (OSError, ValueError):
            raise InputError(
                "holds no views that this version can read",
                "move the file away and save the views again",
                self.file,
            ) from None

    def save(self, view: View) -> None:
        """Add a view, or replace the one of the same name.

        AmbjudgeError if the file cannot be written, or holds something that would be lost.
        """
        views = [existing for existing in self.own() if existing.name != view.name] + [view]
        try:
            with atomic_write(self.file) as part:
                part.write_bytes(_adapter().dump_json(views, indent=1))
        except InputError as error:
            raise AmbjudgeError(error.message, "set XDG_CONFIG_HOME") from None
