"""Which runs hold some words in what the agent wrote, ran or saw: `text:` of the filter, looked up
behind the table.

A run is parsed only when its raw files hold the words' plainest stretch; the others are passed at
the speed of the disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import InputError
from .collection import Collection
from .run_rows import RunRow

_PLAIN = re.compile(r"[A-Za-z0-9_. ,:;=()-]+")
"""Characters that JSON never escapes, also not when JSON stands in JSON."""


class ContentSearch:
    """Runs by words; `holding` gives a live set that grows while `search` goes over the runs."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._found: dict[str, set[int]] = {}
        self._searched: dict[str, set[int]] = {}

    def holding(self, words: str) -> set[int]:
        """Numbers of the runs known to hold these words, ignoring case."""
        return self._found.setdefault(words.lower(), set())

    def search(self, rows: list[RunRow], words: list[str]) -> Iterator[int]:
        """Look these words up in the runs where nobody has yet; the number of each run as it is
        done with."""
        wanted = [word.lower() for word in words]
        for row in rows:
            open = [
                word for word in wanted if row.number not in self._searched.setdefault(word, set())
            ]
            if open:
                where = self._collection.conversation(row)
                held = _held(where, open) if where is not None else ()
                for word in open:
                    self._searched[word].add(row.number)
                    if word in held:
                        self.holding(word).add(row.number)
            yield row.number


def _held(conversation: Path, words: list[str]) -> list[str]:
    """Those of the words that the run holds; none when it cannot be read. The brief is not
    searched: it is everyone's."""
    from ..trajectories.reading.json_bytes import read_bytes
    from ..trajectories.reading.layout import run_folder, side_file
    from ..trajectories.reading.load import load_conversation

    folder = run_folder(conversation)
    files = [
        conversation,
        side_file(folder, "tool_calls.jsonl", "tool_log.jsonl"),
        side_file(folder, "trace.jsonl"),
    ]
    try:
        raw = b"\n".join(read_bytes(file).lower() for file in files if file is not None)
        if b"\0" not in raw[:4]:  # Not UTF-16 or UTF-32.
            words = [word for word in words if _plainest(word) in raw]
        if not words:
            return []
        run = load_conversation(conversation)
    except InputError:
        return []
    texts = [
        part.lower()
        for turn in run.turns
        for part in (turn.text, turn.reasoning, turn.code, turn.output, *turn.replies)
    ]
    return [word for word in words if any(word in text for text in texts)]


def _plainest(word: str) -> bytes:
    """The longest stretch of folded words that stands as it is in every JSON file; b"" when there
    is none."""
    return max(_PLAIN.findall(word), key=len, default="").encode()
