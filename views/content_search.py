"""Which runs hold some words in what the agent wrote, ran or saw: `text:` of the filter.

A run is parsed only if its raw files hold the words; the others are passed at the speed of the
disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import InputError
from .collection import Collection
from .run_rows import RunRow

_UNESCAPED = re.compile(r"[A-Za-z0-9_. ,:;=()-]+")
"""Characters that JSON never escapes, not even in a string that holds JSON itself."""


class ContentSearch:
    """Runs by words; `holding` gives a live set that grows while `search` goes over the runs."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._matches: dict[str, set[int]] = {}
        self._searched: dict[str, set[int]] = {}

    def holding(self, words: str) -> set[int]:
        """Numbers of the runs known to hold these words, ignoring case."""
        return self._matches.setdefault(words.lower(), set())

    def search(self, rows: list[RunRow], words: list[str]) -> Iterator[int]:
        """Look these words up in the runs that were not searched for them yet.

        Yields the number of each run when it is done.
        """
        folded = [word.lower() for word in words]
        for row in rows:
            new = [
                word for word in folded if row.number not in self._searched.setdefault(word, set())
            ]
            if new:
                self._search_run(row, new)
            yield row.number

    def _search_run(self, row: RunRow, words: list[str]) -> None:
        path = self._collection.conversation(row)
        matches = words_in_run(path, words) if path is not None else []
        for word in words:
            self._searched[word].add(row.number)
            if word in matches:
                self.holding(word).add(row.number)


def words_in_run(conversation: Path, words: list[str]) -> list[str]:
    """Those of the words that the run holds; none if it cannot be read.

    The brief is not searched: all runs of a task share it.
    """
    from ..trajectories.reading.load import load_conversation

    try:
        candidates = _words_in_files(conversation, words)
        if not candidates:
            return []
        run = load_conversation(conversation)
    except InputError:
        return []
    texts = [
        text.lower()
        for turn in run.turns
        for text in (turn.text, turn.reasoning, turn.code, turn.output, *turn.replies)
    ]
    return [word for word in candidates if any(word in text for text in texts)]


def _words_in_files(conversation: Path, words: list[str]) -> list[str]:
    """The words that the run may hold, by the bytes of its files. InputError if unreadable."""
    from ..trajectories.reading.json_bytes import read_bytes
    from ..trajectories.reading.layout import run_folder, side_file

    folder = run_folder(conversation)
    files = [
        conversation,
        side_file(folder, "tool_calls.jsonl", "tool_log.jsonl"),
        side_file(folder, "trace.jsonl"),
    ]
    content = b"\n".join(read_bytes(file).lower() for file in files if file is not None)
    if b"\0" in content[:4]:
        # UTF-16 or UTF-32: the words stand there in other bytes.
        return words
    return [word for word in words if _longest_unescaped(word) in content]


def _longest_unescaped(word: str) -> bytes:
    """The longest part of a lower-case word that every JSON file holds as it is; b"" if none."""
    return max(_UNESCAPED.findall(word), key=len, default="").encode()
