"""Report generation: `<case>/report.txt`, UTF-8, 40-8,000 characters, at least 20 letters
(benchmark.md section 4).

Characters are counted as the file has them, white space included, a line break as one.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from string import printable

from ...tracks import HarnessBranch, score_bands
from .case_checks import Fact, TrackCheck
from .submission import Submission, identical
from .track import CheckedTrack
from .untrusted_files import read_text

NAME = "report.txt"
_FILLER = re.compile(
    r"\W{0,3}(?:TODO|TBD|FIXME|placeholder|lorem ipsum|Traceback|[A-Z]\w{0,30}(?:Error|Exception)\b"
    r" ?:|n/?a\b|none\b|null\b)",
    re.IGNORECASE,
)
"""How a text begins that a program left where a report should be. What says in words that there is
none is read."""
_OPEN_END = re.compile(r"[A-Za-z,]$")
_NORMAL = re.compile(
    r"\b(?:no acute|unremarkable|within normal limits|(?:is|are) normal|normal"
    r" (?:chest|study|heart|size))\b",
    re.IGNORECASE,
)
"""A report that says that nothing is wrong: most studies may read like that."""
_STOP = re.compile(r"[a-z]\.\s")
SHORTEST, LONGEST, LETTERS = 40, 8_000, 20


def check(submission: Submission) -> TrackCheck:
    """The text of every case; the same text everywhere is a fact."""
    texts: dict[str, str] = {}

    def inspect(work: Submission, case: str, path: Path) -> list[Fact]:
        written = read_text(path, work.root)
        if work.rules.printable_ascii and (
            strange := next((c for c in written if c not in printable), None)
        ):
            return [
                Fact(
                    "encoding",
                    f"{NAME} holds {strange!a}, which is not printable ASCII",
                    case,
                    NAME,
                )
            ]
        written = written.removeprefix("\ufeff").replace("\r\n", "\n")
        text = written.strip()
        texts[case] = text
        letters = sum(char.isalpha() for char in text)
        if not text:
            return [Fact("empty", f"{NAME} is empty", case, NAME)]
        if not SHORTEST <= len(written) <= LONGEST:
            return [
                Fact(
                    "length",
                    f"{NAME} has {len(written):,} characters, not {SHORTEST}-{LONGEST:,}",
                    case,
                    NAME,
                )
            ]
        if letters < LETTERS:
            return [
                Fact("length", f"{NAME} has {letters} letters, fewer than {LETTERS}", case, NAME)
            ]
        if _FILLER.match(text):
            return [
                Fact("demand", f"{NAME} holds no report: {' '.join(text.split())[:40]}", case, NAME)
            ]
        return []

    found = submission.per_case((NAME,), inspect)
    return TrackCheck(
        found.cases,
        found.facts + (identical(texts, "report") or _repeated(texts)) + _cut_off(texts),
    )


def _repeated(texts: dict[str, str]) -> tuple[Fact, ...]:
    """A fact when three in five of at least five reports read the same, and not that all is well."""
    text, n = Counter(texts.values()).most_common(1)[0] if texts else ("", 0)
    if len(texts) < 5 or n < 0.6 * len(texts) or _NORMAL.search(text):
        return ()
    return (
        Fact(
            "repeated",
            f"{n} of {len(texts)} reports read {' '.join(text.split())[:60]}",
            None,
            NAME,
        ),
    )


def _cut_off(texts: dict[str, str]) -> tuple[Fact, ...]:
    """A fact when at least half of four or more reports stop in the middle of a sentence, though
    they have full stops."""
    cut = [case for case, text in texts.items() if _OPEN_END.search(text) and _STOP.search(text)]
    if len(texts) < 4 or len(cut) * 2 < len(texts):
        return ()
    end = " ".join(texts[cut[0]].split())[-40:]
    return (
        Fact(
            "cut_off",
            f"{len(cut)} of {len(texts)} reports stop in mid-sentence, e.g. ... {end}",
            None,
            NAME,
        ),
    )


TRACK = CheckedTrack(
    "report_generation",
    check=check,
    output="texts",
    files=(NAME,),
    rubrics=("report_generation",),
    aliases=("report",),
    words=("report",),
    gate=True,
    branch=HarnessBranch(breach_turns=None, judged_digits=4, rate_digits=4, s4_digits=4),
    counts_valid=True,
    # eval_report_gen, failure_classifier.py
    weak={"observation_f1": 0.25, "report_similarity": 0.30},
    bands=score_bands(0.80, 0.55),  # eval_report_gen, mimic-cxr-report-task/config.yaml
    items={"plan": "S1a", "picture": "S1i", "pilot": "S3a"},
)
