"""E3: two ways of getting the results disagree, as the run itself printed, and nobody found out which is right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

from ..context import CodeContext
from ..registry import Finding, detector
from .case_signs import looked_into, owns_up
from .case_tables import Row, rows_of
from .class_signs import classes

LIMIT = 0.3
"""Share of cases in dispute from which a run has to find out more."""
_RATIO = r"(\d{1,5})\s{0,2}(?:of|/|out of)\s{0,2}(\d{1,5})\b"
_ALIKE = r"(?:agree(?:s|d|ment|ing)?|same (?:label|answer|class|result)s?|concordan\w{1,3}|consistent|stable|unchanged|match(?:es|ed|ing)?)"
_OTHER = r"(?:disagree\w{0,6}|conflict\w{0,3}|flipped|flips?|differ(?:s|ent|ing)?|chang(?:e|es|ed|ing)|inconsistent|unstable|in dispute|mismatch\w{0,3})"
_AGREE = re.compile(rf"\b{_ALIKE}\b[^\d\n]{{0,40}}{_RATIO}", re.IGNORECASE)
_AGREE_AFTER = re.compile(rf"(?<![\d.]){_RATIO}\s{{1,3}}(?:\w{{1,12}} ){{0,2}}(?:{_ALIKE}|the same)\b", re.IGNORECASE)
_DISAGREE = re.compile(rf"\b{_OTHER}\b[^\d\n]{{0,40}}{_RATIO}", re.IGNORECASE)
_DISAGREE_AFTER = re.compile(rf"(?<![\d.]){_RATIO}\s{{1,3}}(?:\w{{1,12}} ){{0,2}}{_OTHER}\b", re.IGNORECASE)
_AGREEMENT = re.compile(
    r"\b(?:agreement|consistency|concordance)\b[^\d\n]{0,30}(0?\.\d{1,4}|\d{1,2}(?:\.\d{1,2})?\s?%)", re.IGNORECASE
)
_EQUALS = re.compile(
    r"['\"]?\b([A-Za-z]\w{0,20})\s{0,2}(?:==?|vs\.?|~|&)\s{0,2}([A-Za-z]\w{0,20})['\"]?\s{0,2}:\s{0,2}(\d{1,5})\b"
)
_ABOUT_FORM = re.compile(
    r"\b(?:shapes?|affines?|headers?|names?|ids?|files?|columns?|dtypes?|keys?|rows?|sha\w{0,6}|md5|lines?|pixels?|voxels?|weights?|params?|tensors?|layers?)\b",
    re.IGNORECASE,
)
_PERTURBED = re.compile(
    r"\b(?:flip\w{0,4}|mirror\w{0,4}|rotat\w{1,4}|shuffl\w{1,4}|permut\w{1,5}|reorder\w{0,3}|re-?run|repeat\w{0,3}|second (?:run|pass)|seeds?|tta|augment\w{0,6}|jitter\w{0,3}|shift\w{0,3}|rephras\w{1,4}|paraphras\w{1,4}|other prompt|prompt [ab12]|crop\w{0,4}|order of (?:the )?(?:options|choices))\b",
    re.IGNORECASE,
)
_SPOKEN = re.compile(
    r"\b(?:dis)?agree\w{0,6}|\bdiffer\w{0,5}|\bbaseline|\bconflict|\bweak(?:er)?\b|\bcross-check|\bconsisten\w{1,4}|\bstab(?:le|ility)\b",
    re.I,
)
_WEIGHED = re.compile(
    r"\b(?:brief|task|card|trained (?:on|for|with)|made for|out of (?:its )?(?:domain|range)|reference|definition|readme|asks? for)\b",
    re.I,
)
_COMBINED = re.compile(
    r"\b(?:votes?|voting|majority|ensembl\w{1,3}|averag\w{1,3}|mean of|weighted|consensus|stack(?:ed|ing)|combin\w{1,4}|median of)\b",
    re.I,
)
_SURE = 0.9


class Dispute(NamedTuple):
    """`share` of the cases in which two ways differ; `firm` where both were sure, or one and the same model wavers."""

    share: float
    words: str
    firm: bool
    cases: tuple[str, ...] = ()


@detector("disagreement_ignored", code="E3", stage="S5", independence="from_trace", sign=True)
def disagreement_ignored(ctx: CodeContext) -> Iterable[Finding]:
    """A second method or pass, held against the outputs, disagrees on many cases, and nobody found out which is right.

    Two sure answers, or a model that wavers, are settled by an execution on the cases in dispute, by combining the two or
    by what brief and card say of them; a weak second method also by words.
    """
    final = ctx.final_write
    if ctx.run.track in (None, "enhancement", "synthesis") or final is None or not ctx.handed_over or owns_up(ctx):
        return
    for feature in ctx.features:
        turn = feature.turn
        if not feature.executed or feature.blocked or ctx.stage(turn) not in ("S3", "S4", "S5"):
            continue
        found = _dispute(ctx, turn)
        if found is None or found.share < LIMIT or (turn < final and not found.firm):
            continue
        if not _settled(ctx, turn, found):
            yield Finding(
                tuple(sorted({turn, final, ctx.last})),
                f"Two ways of getting the results disagree ({found.words}), and it was passed over.",
                0.65,
            )
            return


def _dispute(ctx: CodeContext, turn: int) -> Dispute | None:
    found = side_by_side(rows_of(ctx.run, turn), classes(ctx.run.brief))
    total = ctx.facts.expected_cases if ctx.facts is not None else None
    for line in ctx.lines(turn):
        share = None if _ABOUT_FORM.search(line) else disagreement(line, total)
        if share is not None and share >= LIMIT and (found is None or not found.firm):
            words = " ".join(line.split())[:80]
            found = Dispute(share, words, _PERTURBED.search(line) is not None)
    return found


def _settled(ctx: CodeContext, turn: int, found: Dispute) -> bool:
    later = ctx.text_from(turn + 1)[-200_000:]
    code = "\n".join(t.code[:100_000] for t in ctx.run.turns[turn:])
    if _COMBINED.search(code) or _COMBINED.search(later) or looked_into(ctx, found.cases or ("\0",), turn):
        return True
    if not found.firm:
        return any(t > turn for t in ctx.model_turns) or _SPOKEN.search(later) is not None
    said = [part for part in re.split(r"(?<=[.!?])\s|\n", later) if _SPOKEN.search(part)]
    if found.cases:
        return any(_WEIGHED.search(part) for part in said)
    return turn >= (ctx.final_write or 0) and any(t > turn for t in ctx.model_turns)


def disagreement(line: str, total: int | None = None) -> float | None:
    """Share of at least six cases on which two methods disagree, as a line states it; None where it does not."""
    for pattern, turned in ((_AGREE, True), (_AGREE_AFTER, True), (_DISAGREE, False), (_DISAGREE_AFTER, False)):
        match = pattern.search(line)
        if match and 6 <= int(match[2]) >= int(match[1]):
            if re.search("chang", match[0], re.IGNORECASE) and not _PERTURBED.search(line):
                continue  # a repair changes files too
            if turned and re.search(r"\bdisagree|\bnot\b|\bun(?:stable)\b|\binconsistent", line, re.IGNORECASE):
                continue
            share = int(match[1]) / int(match[2])
            return 1 - share if turned else share
    match = _AGREEMENT.search(line)
    if match:
        number = float(match[1].rstrip("% "))
        return 1 - (number / 100 if match[1].endswith("%") else number)
    pairs = [int(m[3]) for m in _EQUALS.finditer(line) if m[1].lower() != m[2].lower()]
    if total and total >= 6 and pairs and max(pairs) <= total:
        return 1 - max(pairs) / total
    return None


def side_by_side(table: Sequence[Row], labels: Sequence[str]) -> Dispute | None:
    """The dispute of two labels that stand beside each other in at least eight rows, most at odds among all pairs.

    Firm where in an eighth of the rows, and at least three, they differ and both carry a probability of 0.9 or more.
    """
    if len(labels) < 3:
        return None
    one = re.compile(
        rf"(?<![\w-])({'|'.join(map(re.escape, labels))})(?![\w-])(?:['\"]?[\s,(:=p]{{1,6}}(0?\.\d{{1,5}}|1(?:\.0{{1,5}})?)(?![\d.]))?"
    )
    given = {row.case: one.findall(row.rest[:400]) for row in table}
    width = min((len(found) for found in given.values()), default=0)
    if len(given) < 8 or not 2 <= width <= 6:
        return None
    best: Dispute | None = None
    for left, right in combinations(range(width), 2):
        odd = [case for case, found in given.items() if found[left][0] != found[right][0]]
        sure = [c for c in odd if min(float(given[c][i][1] or 0) for i in (left, right)) >= _SURE]
        firm = len(sure) >= max(3, len(given) / 8)
        share = len(odd) / len(given)
        words = f"{len(odd)} of {len(given)} cases, {len(sure)} of them with two sure answers"
        if firm and (best is None or share > best.share):
            best = Dispute(share, words, firm, tuple(sure))
    return best
