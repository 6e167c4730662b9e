"""E3: answers that do not vary or carry nothing: one answer for all questions, labels at chance, a class that no mask holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from ..context import CodeContext
from ..registry import Finding, detector
from .case_signs import looked_into, owns_up
from .case_tables import Row, columns, joined, rows_of
from .class_signs import classes, mask_labels

_ANSWER = re.compile(
    r"(?:->|=>|→|\b(?:answer|predicted(?:_answer|_label)?|pred|label|choice)['\"]?\s{0,2}[:=])\s{0,3}['\"]?([A-Za-z][\w -]{0,40}?)['\"]?\s{0,3}(?:[|,;(}\[]|$)",
    re.IGNORECASE,
)
_CONFIDENCE = re.compile(r"^(?:p|prob\w{0,10}|conf\w{0,8}|score|max_?p\w{0,4}|softmax)$", re.IGNORECASE)
_BLANK = re.compile(
    r"\b(?:raw\w{0,20}|answer|output|pred\w{0,12}|generated|text)['\"]?\s{0,2}[:=|]?\s{0,2}(?:''|\"\"|None\b|null\b|nan\b|N/?A\b|\[\]|<empty>|unknown\b)|(?:->|=>)\s{0,2}(?:''|\"\"|None\b|null\b|N/A\b|unknown\b|$)"
)
_VECTOR = re.compile(r"[\[(]\s{0,6}(\d{1,9}(?:,?\s{1,8}\d{1,9}){2,12})\s{0,3}[\])]")
_REPEATED = re.compile(r"\b([A-Za-z]{2,20})(?: \1\b){3}|(?:<unk>|\[UNK\]|<pad>)(?:\s?(?:<unk>|\[UNK\]|<pad>)){2}")


@detector("one_answer_for_all", code="E3", stage="S4", independence="from_trace")
def one_answer_for_all(ctx: CodeContext) -> Iterable[Finding]:
    """Questions of all kinds, or at least eight of the same words, got one and the same answer."""
    if ctx.run.track != "vqa" or owns_up(ctx):
        return
    for turn in ctx.after_write if ctx.handed_over else ():
        found = same_answer(rows_of(ctx.run, turn))
        if found:
            yield Finding(
                tuple(sorted({turn, ctx.last})),
                f'The answer "{found[0]}" was given to all {found[1]} questions shown.',
                0.7,
            )
            return


def same_answer(table: Sequence[Row]) -> tuple[str, int] | None:
    """The one answer of at least eight rows, and how many, when no row shows another."""
    given = {row.case: m[1].strip().lower() for row in table if (m := _ANSWER.search(row.rest[:600]))}
    counts = Counter(given.values())
    return (*counts.most_common(1)[0],) if len(given) >= 8 and len(counts) == 1 else None


@detector("blank_answers", code="E3", stage="S4", independence="from_trace")
def blank_answers(ctx: CodeContext) -> Iterable[Finding]:
    """The log shows many answers or texts without a word, and nothing was run again."""
    if ctx.run.track not in ("vqa", "report_generation") or owns_up(ctx):
        return
    for turn in ctx.after_write if ctx.handed_over else ():
        table = rows_of(ctx.run, turn)
        blank = [row.case for row in table if _BLANK.search(row.rest[:600])]
        if len(table) >= 5 and len(blank) >= 0.2 * len(table):
            yield Finding(
                tuple(sorted({turn, ctx.last})),
                f"The log shows no words for {joined(blank)}, and nothing was run again.",
                0.7,
            )
            return


@detector("gibberish_accepted", code="E3", stage="S4", independence="from_trace")
def gibberish_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """Delivered texts repeat a word or an unknown token over and over."""
    if ctx.run.track not in ("vqa", "report_generation") or owns_up(ctx):
        return
    for turn in ctx.after_write if ctx.handed_over else ():
        lines = [line for line in ctx.turn(turn).output.splitlines()[-3_000:] if _REPEATED.search(line[:2_000])]
        if len(lines) >= 2:
            yield Finding(
                tuple(sorted({turn, ctx.last})),
                f"Texts of the batch repeat themselves ({' '.join(lines[0].split())[:60]}).",
                0.7,
            )
            return


@detector("labels_at_chance", code="E3", stage="S4", independence="from_trace", sign=True)
def labels_at_chance(ctx: CodeContext) -> Iterable[Finding]:
    """The probabilities printed with the labels are hardly above those of guessing in most cases."""
    names = classes(ctx.run.brief) if ctx.run.track == "classification" else ()
    if len(names) < 3 or owns_up(ctx):
        return
    for turn in ctx.after_write if ctx.handed_over else ():
        for (name, place), column in columns(rows_of(ctx.run, turn)).items():
            values = list(column.values())
            named = _CONFIDENCE.match(name) or name.upper() in {n.upper() for n in names}
            if place or not named or len(values) < 8 or not all(0 < value <= 1 for value in values):
                continue
            if name.upper() not in {n.upper() for n in names} and median(values) < 1.25 / len(names):
                yield Finding(
                    tuple(sorted({turn, ctx.last})),
                    f"The {name} printed is {median(values):.2f} in the middle of {len(values)} cases with {len(names)} classes: guessing.",
                    0.65,
                )
                return


@detector("class_left_empty", code="E3", stage="S4", independence="from_trace", sign=True)
def class_left_empty(ctx: CodeContext) -> Iterable[Finding]:
    """Multi-class masks: a label that the brief asks for has no voxel in any case, or none in a few."""
    allowed = mask_labels(ctx)
    if len(allowed) < 3 or owns_up(ctx):
        return
    for turn in ctx.after_write if ctx.handed_over else ():
        held = {row.case: found for row in rows_of(ctx.run, turn) if (found := labels_held(row.rest, allowed))}
        if len(held) < 4:
            continue
        since = (
            turn if turn == ctx.final_write else turn - 1
        )  # a check may single a case out in the turn that lists them all
        lacking = {label: [c for c, found in held.items() if label not in found] for label in allowed - {0}}
        for label, cases in lacking.items():
            few = 0 < len(cases) <= 0.3 * len(held) and not _of_disease(ctx, label)
            if len(cases) == len(held) or (few and not looked_into(ctx, cases, since)):
                which = "any case" if len(cases) == len(held) else joined(cases)
                yield Finding(
                    tuple(sorted({turn, ctx.last})),
                    f"Label {label} has no voxel in {which}, and no execution looked into it.",
                    0.7,
                )
                return


_DISEASE = r"fluid|cysts?|lesions?|tumou?rs?|o?edema|h(?:a)?emorrhages?|nodules?|metastas\w{2}|calcifications?|drusen|plaques?|necrosis|stones?"


def _of_disease(ctx: CodeContext, label: int) -> bool:
    """Whether the brief gives a label to what a healthy case does not have."""
    named = re.compile(
        rf"(?<![\w.-]){label}\s{{0,2}}[=:]?\s{{0,2}}(?:[a-z-]{{3,20}} ){{0,2}}(?:{_DISEASE})\b", re.IGNORECASE
    )
    return named.search(ctx.run.brief[:200_000]) is not None


def labels_held(row: str, allowed: frozenset[int]) -> frozenset[int]:
    """Labels with voxels as a row shows them: counts per label from 0 on, or a list of the labels found; empty if neither."""
    for match in _VECTOR.finditer(row[:600]):
        numbers = [int(n) for n in re.findall(r"\d+", match[1])]
        if set(numbers) <= allowed and numbers == sorted(set(numbers)) and numbers[0] == 0:
            return frozenset(numbers)
        if (
            len(numbers) == len(allowed)
            and allowed == frozenset(range(len(numbers)))
            and numbers[0] > 10 * max(1, len(numbers))
        ):
            return frozenset(i for i, n in enumerate(numbers) if n)
    return frozenset()
