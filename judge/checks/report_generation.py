"""Report generation: `<case>/report.txt`, UTF-8, 40-8,000 characters, at least 20 letters.

By the benchmark's output rules. Characters are counted as the file has them, white space included,
a line break as one.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from string import printable

from ...error_codes.output_facts import OutputIssue
from ...tracks import HarnessBranch, score_bands
from .case_checks import TrackCheck
from .submission import Submission, identical
from .track import CheckedTrack
from .untrusted_files import read_text

NAME = "report.txt"
_FILLER = re.compile(
    r"\W{0,3}(?:TODO|TBD|FIXME|placeholder|lorem ipsum|Traceback|[A-Z]\w{0,30}(?:Error|Exception)\b"
    r" ?:|n/?a\b|none\b|null\b)",
    re.IGNORECASE,
)
"""How a text begins that a program left in place of a report. Whether a sentence says that there is
no report is for the judge to read."""
_OPEN_END = re.compile(r"[A-Za-z,]$")
_NORMAL = re.compile(
    r"\b(?:no acute|unremarkable|within normal limits|(?:is|are) normal|normal"
    r" (?:chest|study|heart|size))\b",
    re.IGNORECASE,
)
"""A report of a normal finding: most studies may read like that."""
_FULL_STOP = re.compile(r"[a-z]\.\s")
MIN_CHARACTERS, MAX_CHARACTERS, MIN_LETTERS = 40, 8_000, 20
_MIN_REPEATED, _REPEATED_SHARE = 5, 0.6
_MIN_CUT_OFF, _CUT_OFF_SHARE = 4, 0.5
"""Numbers of reports, and shares of them, from which repetition and cut-off ends are issues."""


def check(submission: Submission) -> TrackCheck:
    """Check the text of every case; the same text everywhere is an issue."""
    texts: dict[str, str] = {}

    def inspect(submission: Submission, case: str, path: Path) -> list[OutputIssue]:
        content = read_text(path, submission.root)
        if submission.rules.printable_ascii:
            for character in content:
                if character not in printable:
                    text = f"{NAME} holds {character!a}, which is not printable ASCII"
                    return [OutputIssue("encoding", text, case, NAME)]
        content = content.removeprefix("\ufeff").replace("\r\n", "\n")
        texts[case] = content.strip()
        issue = _content_issue(case, content)
        return [] if issue is None else [issue]

    checked = submission.per_case((NAME,), inspect)
    issues = checked.issues + (identical(texts, "report") or _repeated(texts)) + _cut_off(texts)
    return TrackCheck(checked.cases, issues)


def _content_issue(case: str, content: str) -> OutputIssue | None:
    """The first thing that is wrong with a report: empty, of a wrong length or a mere filler."""
    text = content.strip()
    letters = sum(char.isalpha() for char in text)
    if not text:
        return OutputIssue("empty", f"{NAME} is empty", case, NAME)
    if not MIN_CHARACTERS <= len(content) <= MAX_CHARACTERS:
        reason = f"{NAME} has {len(content):,} characters, not {MIN_CHARACTERS}-{MAX_CHARACTERS:,}"
        return OutputIssue("length", reason, case, NAME)
    if letters < MIN_LETTERS:
        reason = f"{NAME} has {letters} letters, fewer than {MIN_LETTERS}"
        return OutputIssue("length", reason, case, NAME)
    if _FILLER.match(text):
        reason = f"{NAME} holds no report: {_on_one_line(text)[:40]}"
        return OutputIssue("demand", reason, case, NAME)
    return None


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _repeated(texts: dict[str, str]) -> tuple[OutputIssue, ...]:
    """An issue if 60 % of five or more reports are the same text, and not a normal finding."""
    if len(texts) < _MIN_REPEATED:
        return ()
    text, times = Counter(texts.values()).most_common(1)[0]
    if times < _REPEATED_SHARE * len(texts) or _NORMAL.search(text):
        return ()
    reason = f"{times} of {len(texts)} reports read {_on_one_line(text)[:60]}"
    return (OutputIssue("repeated", reason, None, NAME),)


def _cut_off(texts: dict[str, str]) -> tuple[OutputIssue, ...]:
    """An issue if at least half of four or more reports end in the middle of a sentence.

    Reports without any full stop are not counted, as their style may do without.
    """
    cut = [
        case for case, text in texts.items() if _OPEN_END.search(text) and _FULL_STOP.search(text)
    ]
    if len(texts) < _MIN_CUT_OFF or len(cut) < _CUT_OFF_SHARE * len(texts):
        return ()
    end = _on_one_line(texts[cut[0]])[-40:]
    reason = f"{len(cut)} of {len(texts)} reports stop in mid-sentence, e.g. ... {end}"
    return (OutputIssue("cut_off", reason, None, NAME),)


TRACK = CheckedTrack(
    "report_generation",
    check=check,
    output="texts",
    files=(NAME,),
    rubrics=("report_generation",),
    aliases=("report",),
    words=("report",),
    gate=True,
    branch=HarnessBranch(
        breach_turns=None,
        judged_digits=4,
        rate_digits=4,
        s4_digits=4,
        outputs_folder="agent_outputs",
    ),
    counts_valid=True,
    # eval_report_gen, failure_classifier.py
    weak={"observation_f1": 0.25, "report_similarity": 0.30},
    bands=score_bands(0.80, 0.55),  # eval_report_gen, mimic-cxr-report-task/config.yaml
    items={"pilot": "S3a"},
)
