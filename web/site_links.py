"""Where the runs of a site are shown: its pages and its table, as addresses for a report."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import quote

from ..errors import InputError
from ..sanitize import sanitize

PAGES = "pages"
"""Folder of the runs' pages."""
DATA = "runs.js"
_START, _ROWS = "window.AMBJUDGE = {fields: ", ", rows: ["


class Pages:
    """Run id -> names of its pages, and how they are reached from where the report lies."""

    def __init__(self, root: str = "") -> None:
        """`root`: from the report's folder to the site's, with a slash at its end; "" where they
        are one."""
        self.root = root
        self.names: dict[str, list[str]] = {}

    def add(self, run_id: str, name: str) -> None:
        self.names.setdefault(run_id, []).append(name)

    def link(self, run_id: str, turn: int | None = None) -> str:
        """Where a run, or a turn of it, is shown: its page, or the table where several scorecards
        or runs bear its name; "" for none."""
        from ..analysis.report.findings import named

        # Runs of one name bear their folders' names in front in an analysis.
        id = run_id if run_id in self.names else run_id.rpartition("/")[2]
        names = self.names.get(id, [])
        if len(names) == 1:
            return f"{self.root}{PAGES}/{names[0]}.html" + (f"#t{turn}" if turn is not None else "")
        return self.search(named("id", id)) if names else ""

    def search(self, query: str) -> str:
        """The table with a filter."""
        return f"{self.root}index.html" + (f"#{quote(sanitize(query), safe='')}" if query else "")


def pages_of(site: Path, report: Path) -> Pages:
    """The pages of a site that was written before, for a report that is written into the folder
    `report`.

    InputError when there is no site.
    """
    try:
        with (site / DATA).open(encoding="utf-8") as file:
            head = file.readline().rstrip("\n")
            if not (head.startswith(_START) and head.endswith(_ROWS)):
                raise ValueError
            fields = json.loads(head[len(_START) : -len(_ROWS)])
            page, run = fields.index("page"), fields.index("id")
            out = Pages(f"{quote(Path(os.path.relpath(site, report)).as_posix())}/")
            for line in file:
                if line.startswith("]"):
                    return out
                row = json.loads(line.rstrip(",\n"))
                if row[page]:
                    out.add(row[run], row[page])
    except (OSError, ValueError, AttributeError, IndexError, TypeError):
        pass
    raise InputError("is no site", "make one: ambjudge site RUNS --out DIR", site)
