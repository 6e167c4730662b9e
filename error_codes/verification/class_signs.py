"""What a brief says of its classes and labels, and what a run printed of them: classes never given, one class only, labels not allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from ...trajectories.briefs import allowed_labels
from ..context import CodeContext

_NAME = r"[A-Za-z][\w-]{0,29}"
_AS = re.compile(
    rf"\b(?:as|into|class(?:es)?:?|labels?:?|categor(?:y|ies):?|one of:?|either) \(?({_NAME}(?:(?:, (?:or |and )?| or | and ){_NAME}){{2,14}})"
)
_SPLIT = re.compile(r", (?:or |and )?| or | and |\s?[/|]\s?")
_GOES_ON = frozenset({
    "on", "in", "at", "for", "with", "from", "of", "per", "by", "to", "the", "a", "an", "each", "one", "then", "write", "use", "using",
})  # fmt: skip
"""Words with which the sentence goes on after the last class ("solid and ground_glass, on 9 slices")."""
_SLASHED = re.compile(
    rf"\b(?:as|into|class(?:es)?:?|labels?:?|categor(?:y|ies):?|one of:?|either|pattern,?) \(?({_NAME}(?:\s?[/|]\s?{_NAME}){{2,14}})(?=[\s).,;]|$)"
)
_GLOSS = re.compile(r"\s?\([^()\n]{1,80}\)")
_SHORT = re.compile(r"[a-z]{3} \(([A-Z][A-Z0-9]{1,8})\)")
_QUOTES = re.compile(r"[`'\"*]")
_BALANCED = re.compile(
    r"\b(?:\w{1,12} of each|\w{1,12} (?:cases |images |patches |tiles |samples )?per class|each class (?:has|holds)|balanced|equally many|in equal numbers)\b",
    re.IGNORECASE,
)
_COUNTS = re.compile(r"[{,]\s{0,2}(?:np\.\w{1,8}\()?(\d{1,4})\)?\s{0,2}:\s{0,2}(?:np\.\w{1,8}\()?\d{1,9}")
_LISTED = re.compile(
    r"\b(?:labels?|unique|classes|values)\b[^\[({\n]{0,20}[\[({]\s{0,3}(\d{1,4}(?:(?:,\s{0,3}|\s{1,4})\d{1,4}){1,40})\s{0,3}[\])}]",
    re.IGNORECASE,
)
MAX_LINES = 3_000


def classes(brief: str) -> tuple[str, ...]:
    """Names of at least three classes that a brief asks for ("as CNV, DME or NORMAL", "one of CEN (centromere), HOM (...)", "A / B / C", "fat (ADI), stroma (STR)")."""
    text = _QUOTES.sub("", brief[:200_000])
    for form in (text, _GLOSS.sub("", text)):
        match = _AS.search(form) or _SLASHED.search(form)
        if match:
            names = tuple(dict.fromkeys(takewhile(lambda name: name not in _GOES_ON, _SPLIT.split(match[1]))))
            return names if len(names) >= 3 else ()
    lines = (tuple(dict.fromkeys(_SHORT.findall(line[:2_000]))) for line in text.splitlines())
    return next((names for names in lines if len(names) >= 3), ())


def balanced(brief: str) -> bool:
    """Whether the brief says that every class occurs, and how often."""
    return _BALANCED.search(brief[:200_000]) is not None


def distributions(lines: Sequence[str], names: Sequence[str]) -> Iterator[dict[str, int]]:
    """Counts per class as printed: several on one line, or one a line (a value_counts table)."""
    if not names:
        return
    one = re.compile(
        rf"(?<![\w-])({'|'.join(map(re.escape, names))})['\"]?\s{{0,20}}[:=]?\s{{0,20}}(\d{{1,7}})(?![\d.\w])"
    )
    table: dict[str, int] = {}
    for line in lines:
        pairs = {m[1]: int(m[2]) for m in one.finditer(line[:600])}
        row = re.fullmatch(
            rf"\s{{0,20}}({_NAME})(?:\s{{1,60}}|\s{{0,9}}[,|;]\s{{0,9}})(\d{{1,7}})\s{{0,20}}", line[:200]
        )
        counted = re.fullmatch(rf"\s{{0,20}}(\d{{1,7}})\s{{1,60}}({_NAME})\s{{0,20}}", line[:200])  # uniq -c
        if counted and counted[2] in names and counted[2] not in table:
            table[counted[2]] = int(counted[1])
            continue
        if row and row[1] in names and row[1] not in table:
            table[row[1]] = int(row[2])
            continue
        if len(table) >= 2:
            yield table
        table = {}
        if len(pairs) >= 2:
            yield pairs
    if len(table) >= 2:
        yield table


def never_given(lines: Sequence[str], names: Sequence[str], total: int | None, even: bool) -> tuple[str, ...]:
    """Classes without one case in a printed distribution over all cases; only where chance is no explanation.

    Where the brief says that all classes occur, five cases a class are enough, else ten.
    """
    for counts in distributions(lines, names):
        cases = sum(counts.values())
        if cases == total and len(names) >= 3 and cases >= (5 if even else 10) * len(names):
            missing = tuple(name for name in names if not counts.get(name))
            if missing:
                return missing
    return ()


def one_class(rows: Iterable[tuple[str, str]], names: Sequence[str]) -> tuple[str, int] | None:
    """The class that at least five different cases share, and how many, when a log gives no other; None otherwise.

    `rows` are (case, line). With three classes or more, five alike in a row are no chance.
    """
    if len(names) < 3:
        return None
    word = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, names))})(?![\w-])")
    seen: dict[str, str] = {}
    for case, line in rows:
        found = set(word.findall(line[:600]))
        if len(found) == 1:
            seen[case] = found.pop()
    given = set(seen.values())
    return (given.pop(), len(seen)) if len(seen) >= 5 and len(given) == 1 else None


def strange_labels(output: str, allowed: frozenset[int]) -> tuple[int, ...]:
    """Label values that a listing of masks shows and the brief does not allow; in at least two lines, else none."""
    strange: set[int] = set()
    lines = 0
    for raw in output.splitlines()[-MAX_LINES:] if allowed else ():
        line = raw[:600]
        found = {int(v) for v in _COUNTS.findall(line)}
        for match in _LISTED.finditer(line):
            found |= {int(v) for v in re.findall(r"\d+", match[1])}
        if len(found) >= 2 and 0 in found and found - allowed:
            strange |= found - allowed
            lines += 1
    return tuple(sorted(strange)) if lines >= 2 else ()


def mask_labels(ctx: CodeContext) -> frozenset[int]:
    """Label values of the multi-class masks that a segmentation brief asks for; empty if it names none."""
    return (allowed_labels(ctx.run.brief) if ctx.run.track == "segmentation" else None) or frozenset()


def printed_strange_labels(ctx: CodeContext) -> tuple[int, tuple[int, ...]] | None:
    """Turn and label values, where masks listed after the last write hold values that the brief does not allow."""
    final = ctx.final_write
    allowed = mask_labels(ctx)
    if final is None or not allowed:
        return None
    for feature in ctx.features[final - 1 :]:
        if feature.executed and not feature.blocked and feature.has("reads_outputs", "writes_outputs", "forward_pass"):
            labels = strange_labels(ctx.turn(feature.turn).output, allowed)
            if labels:
                return feature.turn, labels
    return None
