"""E3: limits that the run set itself in its plan, or that hold for any method, printed as passed, and nobody went into it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from statistics import median
from typing import NamedTuple

from ..context import CodeContext
from ..registry import Finding, detector
from .case_signs import looked_into, owns_up
from .case_tables import rows

_UNDER = r"(?:below|under|less than|lower than|smaller than|<=?|≤)"
_OVER = r"(?:above|over|more than|greater than|higher than|larger than|exceed(?:s|ing)?|>=?|≥)"
_LIMIT = re.compile(
    rf"(?:(?P<under>{_UNDER})|(?P<over>{_OVER})) ?~?(?P<value>\d{{1,7}}(?:\.\d{{1,4}})?) ?(?P<share>%)?(?!\w|\.\d)",
    re.I,
)
_DUTY = re.compile(
    r"(?<!\bnot )(?<!\bno )\b(?:look(?: at| into)?|inspect|stop|re-?run|run again|repeat|review|redo|investigate|examine|view|by eye|debug|re-?check|go back)\b",
    re.IGNORECASE,
)
_FILLING = re.compile(
    r"^(?:is|are|was|be|falls?|drops?|lies|goes|gets|with|whose|where|when|if|an?|the|any|each|every|cases?|of|at|values?|on|and|or|than)$"
)
_NUMBER = re.compile(r"(?<![\w.])\d{1,7}(?:\.\d{1,6})?(?![\w]|\.\d)")
_CLEANS = re.compile(r"\b(?:de-?nois\w{0,4}|noise|speckle|de-?speckl\w{0,4}|low-?(?:dose|count))", re.IGNORECASE)
_VALUE = r"(\d{1,6}(?:\.\d{1,6})?)"
_MEAN = r"(?<![A-Za-z] )(?<![A-Za-z]_)\b(?:mean|average|avg)\b"
_ARROW = re.compile(rf"{_MEAN}[^\w\n-]{{0,3}}{_VALUE}\s{{0,2}}(?:->|=>|→)\s{{0,2}}{_VALUE}", re.IGNORECASE)
_BEFORE_LAST = re.compile(
    rf"{_MEAN}[^\w\n-]{{0,3}}{_VALUE}\s{{0,2}}\((?:in|input|before|raw|noisy)\b[^\w\n-]{{0,3}}{_VALUE}", re.IGNORECASE
)
_BEFORE_FIRST = re.compile(
    rf"{_MEAN}[ _](?:in|input|before|raw|noisy)\b[^\w\n-]{{0,3}}{_VALUE}[^\w\n-]{{1,4}}(?:mean[ _])?(?:out|output|after|denoised|enhanced)\b[^\w\n-]{{0,3}}{_VALUE}",
    re.IGNORECASE,
)
SHIFT = 0.07
"""Share by which the mean of an image moves in the middle case; a method that only removes noise keeps it within 0.03."""


class Limit(NamedTuple):
    """`quantity` compared with `value`, as the plan wrote it; broken below (`under`) or above it."""

    quantity: str
    value: float
    under: bool
    share: bool
    line: str


@detector("own_limit_ignored", code="E3", stage="S5", independence="from_trace")
def own_limit_ignored(ctx: CodeContext) -> Iterable[Finding]:
    """The plan sets a limit from which something has to be looked at or repeated; results broke it, and no execution did so."""
    final, plan = ctx.final_write, ctx.run.plan.text
    if final is None or plan is None or not ctx.handed_over or ctx.run.track is None or owns_up(ctx):
        return
    limits = tuple(limits_of(plan))
    for turn in ctx.after_write if limits else ():
        for line in ctx.lines(turn):
            for limit in limits:
                broken = breaks(limit, line)
                cases = [row.case for row in rows(ctx.turn(turn).output)] or ["\0"]
                if broken is not None and not _gone_into(ctx, cases, turn):
                    why = f'The plan says "{limit.line[:80]}", the output shows {broken:g}, and no execution went into it.'
                    yield Finding(tuple(sorted({turn, ctx.last})), why, 0.75)
                    return


def _gone_into(ctx: CodeContext, cases: list[str], turn: int) -> bool:
    return any(t > turn for t in ctx.model_turns) or looked_into(ctx, cases, turn)


def limits_of(plan: str) -> Iterator[Limit]:
    """Limits of a plan with something to be done where they are broken ("agreement below 0.8 -> look at that leg")."""
    for raw in plan[:100_000].splitlines():
        for part in re.split(r";|(?<=[a-z)])\. ", raw[:600]):
            found = list(_LIMIT.finditer(part))
            if len(found) != 1 or not _DUTY.search(part):
                continue
            words = [w for w in re.findall(r"[a-z]{2,30}", part[: found[0].start()].lower()) if not _FILLING.match(w)]
            if words and len(words[-1]) >= 4:
                match = found[0]
                yield Limit(
                    words[-1],
                    float(match["value"]),
                    bool(match["under"]),
                    bool(match["share"]),
                    " ".join(part.split()).lstrip("-* "),
                )


def breaks(limit: Limit, line: str) -> float | None:
    """The number of a line that breaks a limit: the first after the quantity's name, or any of a list there; None if none does.

    Numbers of another kind (a count beside a limit with decimals, a share beside a count) are not compared.
    """
    text = line[:600]
    at = re.search(rf"\b{re.escape(limit.quantity.rstrip('s'))}s?\b", text, re.IGNORECASE)
    if at is None or _LIMIT.search(text):
        return None
    rest = text[at.end() : at.end() + 200]
    bracket = re.match(r"[^\[\d]{0,60}\[([^\]]{1,150})\]", rest)
    found = (
        [m[0] + rest[m.end() : m.end() + 2] for m in _NUMBER.finditer(rest)]
        if bracket is None
        else bracket[1].replace(",", " ").split()
    )
    for word in found if bracket else found[:1]:
        number = re.match(r"\d+(?:\.\d+)?", word)
        if number is None or ("." in f"{limit.value:g}") != ("." in number[0]) or limit.share != ("%" in word):
            continue
        value = float(number[0])
        if value < limit.value if limit.under else value > limit.value:
            return value
    return None


@detector("level_moved", code="E3", stage="S4", independence="from_trace", sign=True)
def level_moved(ctx: CodeContext) -> Iterable[Finding]:
    """Denoising: the mean of the images moved the same way in every case by more than noise explains, as printed, and no execution asked why."""
    final = ctx.final_write
    if ctx.run.track != "enhancement" or final is None or not ctx.handed_over or owns_up(ctx):
        return
    if not _CLEANS.search(ctx.run.brief[:200_000]):
        return
    for turn in ctx.write_turns:
        ratios = [after / before for line in ctx.lines(turn) for before, after in means(line) if before > 1e-6]
        if len(ratios) < 4 or not (all(r > 1 for r in ratios) or all(r < 1 for r in ratios)):
            continue
        middle = median(ratios)
        later = any(t > turn and ctx.feature(t).forward_pass for t in ctx.model_turns)
        if SHIFT <= abs(middle - 1) <= 0.6 and not later:
            why = f"The mean of the images moves by {middle - 1:+.0%} in the middle of {len(ratios)} cases, all the same way, and it was accepted."
            yield Finding(tuple(sorted({turn, final, ctx.last})), why, 0.7)
            return


def means(line: str) -> Iterator[tuple[float, float]]:
    """(before, after) of a whole image's mean, as one line shows them; means of a region are left out."""
    for pattern, swapped in ((_ARROW, False), (_BEFORE_LAST, True), (_BEFORE_FIRST, False)):
        match = pattern.search(line[:600])
        if match:
            one, other = float(match[1]), float(match[2])
            yield (other, one) if swapped else (one, other)
            return


_FITS = re.compile(r"\.fit\(")
_CLASSIFIER = re.compile(r"LogisticRegression|Classifier|\bSVC\b|LinearDiscriminant|accuracy|\bGaussianNB\b")
_FOLDS = re.compile(
    r"\b(?:cv|cross[- _]?val\w{0,8}|folds?|held[- ]?out)\b[^\[\n]{0,30}\[([\d.,\s]{3,120})\]", re.IGNORECASE
)
_PREDICTS = re.compile(r"\.predict(?:_proba)?\(")
CHANCE = 0.5


@detector("poor_folds_accepted", code="E3", stage="S3", independence="from_trace")
def poor_folds_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """A classifier was fitted, its printed cross-validation had a fold no better than guessing, and it decided the outputs."""
    final = ctx.final_write
    if final is None or not ctx.handed_over or ctx.run.track is None or owns_up(ctx):
        return
    if not _PREDICTS.search(ctx.serving_code[:400_000]):
        return
    for turn in range(1, final + 1):
        code = ctx.turn(turn).code[:200_000]
        if turn in ctx.failed_turns or not (_FITS.search(code) and _CLASSIFIER.search(code)):
            continue
        for line in ctx.lines(turn):
            match = _FOLDS.search(line)
            folds = [float(n) for n in re.findall(r"\d+(?:\.\d+)?|\.\d+", match[1])] if match else []
            again = any(_FITS.search(ctx.turn(t).code[:200_000]) for t in range(turn + 1, final + 1))
            if len(folds) >= 3 and max(folds) <= 1 and min(folds) < CHANCE and not again:
                why = f"The cross-validation printed has a fold at {min(folds):g}, and the fitted model decided the outputs all the same."
                yield Finding(tuple(sorted({turn, final, ctx.last})), why, 0.65)
                return
