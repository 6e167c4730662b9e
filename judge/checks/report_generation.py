"""Report generation: `<case>/report.txt`, UTF-8, 40-8,000 characters, at least 20 letters (benchmark.md section 4)."""

from __future__ import annotations

from pathlib import Path

from .facts import Fact, TrackCheck
from .files import read_text
from .submission import Submission, identical

NAME = "report.txt"
SHORTEST, LONGEST, LETTERS = 40, 8_000, 20


def check(submission: Submission) -> TrackCheck:
    """The text of every case, counted without surrounding white space; the same text everywhere is a fact."""
    texts: dict[str, str] = {}

    def inspect(work: Submission, case: str, path: Path) -> list[Fact]:
        text = read_text(path, work.root).removeprefix("\ufeff").strip()
        texts[case] = text
        letters = sum(char.isalpha() for char in text)
        if not text:
            return [Fact("empty", f"{NAME} is empty", case, NAME)]
        if not SHORTEST <= len(text) <= LONGEST:
            return [Fact("length", f"{NAME} has {len(text):,} characters, not {SHORTEST}-{LONGEST:,}", case, NAME)]
        if letters < LETTERS:
            return [Fact("length", f"{NAME} has {letters} letters, fewer than {LETTERS}", case, NAME)]
        return []

    found = submission.per_case((NAME,), inspect)
    return TrackCheck(found.cases, found.facts + identical(texts, "report"))
