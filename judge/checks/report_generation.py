"""Report generation: `<case>/report.txt`, UTF-8, 40-8,000 characters, at least 20 letters (benchmark.md section 4)."""

from __future__ import annotations

import re
from pathlib import Path

from .demands import sections, wrong_wording
from .facts import Fact, TrackCheck
from .files import read_text
from .submission import Submission, identical

NAME = "report.txt"
_FILLER = re.compile(
    r"\W{0,3}(?:TODO|TBD|FIXME|placeholder|lorem ipsum|traceback|(?:\w{0,20}error|exception|failed)\b ?:|n/?a\b|none\b|null\b|(?:could not|unable to|failed to) (?:generate|process|load)|error (?:while|during|processing)|no report (?:available|generated)|report (?:not available|generation failed)|insert )",
    re.IGNORECASE,
)
"""How a text begins that stands where a report should be."""
SHORTEST, LONGEST, LETTERS = 40, 8_000, 20


def check(submission: Submission) -> TrackCheck:
    """The text of every case, counted without surrounding white space; the same text everywhere is a fact."""
    texts: dict[str, str] = {}
    wanted = sections(submission.run.brief)

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
        lacking = [s for s in wanted if not re.search(rf"\b{s}s?\b", text, re.IGNORECASE)]
        if lacking:
            return [Fact("demand", f"{NAME} lacks the section {lacking[0]}", case, NAME, fatal=False)]
        if _FILLER.match(text):
            return [Fact("demand", f"{NAME} holds no report: {' '.join(text.split())[:40]}", case, NAME, fatal=False)]
        if wrong := wrong_wording(submission.run.brief, text):
            return [Fact("demand", f"{NAME}: {wrong}", case, NAME, fatal=False)]
        return []

    found = submission.per_case((NAME,), inspect)
    return TrackCheck(found.cases, found.facts + identical(texts, "report"))
