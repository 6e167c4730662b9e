"""Where a site shows its runs: addresses of its pages and its table, for the links of a report."""

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


class SiteLinks:
    """Links from a report to the pages of runs."""

    def __init__(self, root: str = "") -> None:
        """`root` leads from the report's folder to the site's, with a slash at its end.

        It is "" where they are the same folder.
        """
        self.root = root
        self.names: dict[str, list[str]] = {}
        """Names of the pages of each run id."""

    def add(self, run_id: str, name: str) -> None:
        self.names.setdefault(run_id, []).append(name)

    def link(self, run_id: str, turn: int | None = None) -> str:
        """Where a run, or a turn of it, is shown; "" if the site does not have it.

        That is its page, or the table where several scorecards or runs have its name.
        """
        from ..analysis.report.findings import named

        # An analysis writes folders in front of the ids of runs that would share one.
        id = run_id if run_id in self.names else run_id.rpartition("/")[2]
        names = self.names.get(id, [])
        if not names:
            return ""
        if len(names) > 1:
            return self.search(named("id", id))
        anchor = f"#t{turn}" if turn is not None else ""
        return f"{self.root}{PAGES}/{names[0]}.html{anchor}"

    def search(self, query: str) -> str:
        """The table with a filter."""
        anchor = f"#{quote(sanitize(query), safe='')}" if query else ""
        return f"{self.root}index.html{anchor}"


def links_to_site(site: Path, report: Path) -> SiteLinks:
    """Links from a report in the folder `report` to a site. InputError if `site` is none."""
    try:
        with (site / DATA).open(encoding="utf-8") as file:
            head = file.readline().rstrip("\n")
            if not (head.startswith(_START) and head.endswith(_ROWS)):
                raise ValueError
            fields = json.loads(head[len(_START) : -len(_ROWS)])
            page, run = fields.index("page"), fields.index("id")
            links = SiteLinks(f"{quote(Path(os.path.relpath(site, report)).as_posix())}/")
            for line in file:
                if line.startswith("]"):
                    return links
                row = json.loads(line.rstrip(",\n"))
                if row[page]:
                    links.add(row[run], row[page])
    except (OSError, ValueError, AttributeError, IndexError, TypeError):
        pass
    raise InputError("is not a site", "make one: ambjudge site RUNS --out DIR", site)
