"""Case-insensitive patterns that are fast enough for every line of a run.

Python's engine tries the alternatives of an IGNORECASE pattern one after the other at every
character, while a table of first characters speeds up a case-sensitive one. So the lower-cased text
is searched for the lower-cased pattern first, which is several times faster, and the pattern itself
only decides where that one matched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_UPPER = re.compile(r"\\.|\(\?P|[A-Z]", re.DOTALL)


class IgnoreCasePattern:
    """A pattern under IGNORECASE, with the same results as `re`."""

    def __init__(self, pattern: str) -> None:
        self.pattern = re.compile(pattern, re.IGNORECASE)
        # An escape keeps its case: \S is not \s.
        self._lower = re.compile(
            _UPPER.sub(lambda m: m[0].lower() if len(m[0]) == 1 else m[0], pattern)
        )

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in the text; None if there is none."""
        start = self._first(text)
        return None if start is None else self.pattern.search(text, start)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """All matches in the text, from left to right."""
        start = self._first(text)
        return iter(()) if start is None else self.pattern.finditer(text, start)

    def among(self, lines: Sequence[str]) -> set[int]:
        """The indices of the lines that match; the pattern must not match a line break."""
        text = "\n".join(lines).lower()
        indices: set[int] = set()
        index = position = 0
        for match in self._lower.finditer(text):
            index += text.count("\n", position, match.start())
            position = match.start()
            indices.add(index)
        return indices

    def _first(self, text: str) -> int | None:
        """A position at or before the first match; None without a match.

        It is 0 for a text whose length changes with its case, as positions differ there.
        """
        lower = text.lower()
        if len(lower) != len(text):
            return 0
        match = self._lower.search(lower)
        return None if match is None else match.start()
