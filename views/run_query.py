"""`--where`: the filter language over scorecards and run frames that a command reads.

`run_filter.py` has the language. A `text:` term reads the run, where its conversation is still
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .content_search import words_in_run
from .run_filter import compile_query
from .run_rows import RunRow, row_of

if TYPE_CHECKING:
    import polars as pl

    from ..judge.card.scorecard import ScoreCard


class RunQuery:
    """A filter that lets runs through."""

    def __init__(self, text: str, folders: Sequence[Path] = ()) -> None:
        """`folders`: where runs are looked for that a scorecard names relative to another folder.

        QueryError if the filter names something unknown.
        """
        self._folders = (Path(), *folders)
        self._row: RunRow | None = None
        self._matches = compile_query(text, holding=self._holding)

    def accepts_row(self, row: RunRow) -> bool:
        """Whether the filter lets a row through."""
        self._row = row
        return self._matches(row)

    def accepts(self, card: ScoreCard) -> bool:
        """Whether the filter lets the run of a scorecard through."""
        return self.accepts_row(row_of(0, card.to_dict()))

    def accepted_rows(self, frame: pl.DataFrame) -> list[bool]:
        """Whether the filter lets each row of a run frame through."""
        from .frame_rows import rows_of_frame

        return [self.accepts_row(row) for row in rows_of_frame(frame, 0)]

    def _holding(self, words: str) -> _RunsHolding:
        return _RunsHolding(self, words)

    def row_holds(self, words: str) -> bool:
        """Whether the run of the row under test holds these words."""
        from ..trajectories.reading.layout import resolve_run_path

        if self._row is None:
            return False
        path = resolve_run_path(Path(self._row.path), self._folders)
        return path is not None and bool(words_in_run(path, [words.lower()]))


@dataclass(frozen=True)
class _RunsHolding:
    """The runs that hold some words: the filter asks it about the row under test alone."""

    query: RunQuery
    words: str

    def __contains__(self, number: object) -> bool:
        return self.query.row_holds(self.words)
