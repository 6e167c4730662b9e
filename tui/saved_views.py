"""Saved views of the table of runs: a name, a filter and an order, in one JSON file of the user."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from ..errors import AmbjudgeError, InputError
from ..whole_files import whole


@dataclass(frozen=True)
class View:
    """A filter and an order. `column` is a place among the table's columns, None for the order of the collection."""

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


class Views:
    """Built-in views, then the user's own. Nothing is written until one is saved."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or default_file()

    def own(self) -> list[View]:
        """The user's views; those that cannot be read are left out."""
        from pydantic import TypeAdapter, ValidationError

        read = TypeAdapter(View).validate_python
        try:
            data = json.loads(self.file.read_text("utf-8"))
        except (OSError, ValueError):
            return []
        found = []
        for item in data if isinstance(data, list) else ():
            with suppress(ValidationError):
                found.append(read(item))
        return found

    def all(self) -> list[View]:
        return [*BUILT_IN, *self.own()]

    def save(self, view: View) -> None:
        """Add a view, or replace the one of the same name. AmbjudgeError when the file cannot be written."""
        views = [old for old in self.own() if old.name != view.name] + [view]
        try:
            with whole(self.file) as part:
                part.write_text(json.dumps([asdict(v) for v in views], indent=1), "utf-8")
        except InputError as error:
            raise AmbjudgeError(error.message, "set XDG_CONFIG_HOME") from None
