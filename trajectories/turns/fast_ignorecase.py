"""Patterns that disregard case and are searched in every line of a run.

Python's engine tries the alternatives of an IGNORECASE pattern one after the other at every
character, while it finds those of a plain pattern by a table of first characters. So the
lower-cased text is searched for the lower-cased pattern first, several times faster, and the
pattern itself speaks only where that one was found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_UPPER = re.compile(r"\\.|\(\?P|[A-Z]", re.DOTALL)


class AnyCase:
    """A pattern under IGNORECASE, with the results that `re` gives for it."""

    def __init__(self, pattern: str) -> None:
        self.pattern = re.compile(pattern, re.IGNORECASE)
        # An escape keeps its case: \S is not \s.
        self._lower = re.compile(
            _UPPER.sub(lambda m: m[0].lower() if len(m[0]) == 1 else m[0], pattern)
        )

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in the text, None without one."""
        start = self._first(text)
        return None if start is None else self.pattern.search(text, start)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """All matches in the text, from left to right."""
        start = self._first(text)
        return iter(()) if start is None else self.pattern.finditer(text, start)

    def among(self, lines: Sequence[str]) -> set[int]:
        """The numbers of the lines, from 0, that `search` finds something in; for a pattern that no
        line break fits."""
        text, found, number, counted = "\n".join(lines).lower(), set[int](), 0, 0
        for match in self._lower.finditer(text):
            number += text.count("\n", counted, match.start())
            counted = match.start()
            found.add(number)
        return found

    def _first(self, text: str) -> int | None:
        """Where the first match begins; 0, which is no later, where a letter changes its length
        with its case."""
        lower = text.lower()
        if len(lower) != len(text):
            return 0
        found = self._lower.search(lower)
        return None if found is None else found.start()
