"""E3: sizes of organs as a run printed them: one far off all others, or most of each deleted by the clean-up, and nobody went into it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from statistics import median
from typing import NamedTuple

from ..context import CodeContext
from ..registry import Finding, detector
from .case_signs import late_tables, looked_into, owns_up
from .case_tables import Row, rows_of, sections

ODD_HIGH, ODD_LOW = 1.6, 0.6
"""Times the middle of the others from which the size of an organ is off, where nobody looked closer."""
TIGHT = 1.35
"""The largest by the smallest of the other cases: beyond it the sizes vary by nature."""
LEAST = 50
"""Voxels of a mask from which its size is compared; smaller ones jump by nature."""
LOST = 2 / 3
"""Share of a mask below which the clean-up took a large part of it."""

_VARIES_BY_NATURE = re.compile(
    r"lesion|tumou?r|nodul|finding|polyp|cyst|stone|\bmets?\b|metast|mass\b|ha?emorr|bleed|infarct|stroke|plaque|drusen|exudate|aneurys|o?edema|necro"
    r"|enhanc|calcif|node|thromb|defect|ulcer|erosion|air\b|gas\b|fluid|effusion|consolid|opacit|vessel|cancer|abscess|fract|scar|\bwmh\b|cell|nucle[ui]",
    re.IGNORECASE,
)
_NO_SIZE = re.compile(
    r"\bhu\b|mean|std|\bsd\b|median|range|max|min\b|spacing|zoom|shape|dim|byte|\bkb\b|file|affine|slice|time|\bsec|component|comps?\b|parts?\b|pieces?\b|island|labels?\b|unique|values?\b"
    r"|remov|drop|delet|discard|added|filled|outside|inside|overlap|dice|iou|conf|prob|score|thr|centre|center|com\b|\b[xyz]\b|bbox|box|diff|change|background|\bbg\b|case|id\b|seed|diameter|mm\b|cm\b|p\d\d",
    re.IGNORECASE,
)
_VOLUME = re.compile(r"\bml\b|\bcc\b|\bcm3\b|\bcm\^3|\bmm3\b|\bmm\^3|volume|\bvol\b", re.IGNORECASE)
_ORGAN = re.compile(
    r"organ|kidney|renal|liver|hepat|spleen|splen|pancrea|heart|cardiac|ventric|atri|myocard|prostat|brain|hippocamp|bladder|lung|thyroid|parotid|salivary|gland|vertebra|spine"
    r"|femur|tibia|bone|cartilage|menisc|muscle|thigh|uter|ovar|aorta|optic|retina|cerebell|thalam|tissue|cortex|white matter|grey matter|airway|trachea|fetal|eye\b|stomach|colon|rectum|breast|skull|mandib|tooth|teeth|adrenal",
    re.IGNORECASE,
)
_SIZES_VARY = re.compile(
    r"\b(?:sizes?|volumes?|organs?|patients?) (?:may |can )?(?:var(?:y|ies)|differs?|range)\b|\b(?:enlarged|splenomegal|hepatomegal|atroph|hypertroph|children|p(?:a)?ediatric|resect|nephrectom|transplant|polycystic|crops?|cropped|partial|field of view|all ages|gestation)\w{0,6}\b",
    re.IGNORECASE,
)
_CONTENT = re.compile(
    r"\.sum\(|count_nonzero|bincount|cent(?:er|re)_of_mass|centroid|\.mean\(|percentile|quantile|\.std\(|median\(|imshow|imsave|savefig|Image\.fromarray|histogram|\bdice\b|\biou\b|\blabel\(|regionprops|argwhere|find_objects",
    re.IGNORECASE,
)
"""What goes into the content of a mask; shapes, types, headers and the labels that occur are its form."""


class Size(NamedTuple):
    """One number of a row that is the size of something: its column, the words around it, and the value."""

    column: str
    words: str
    value: float


def sizes(row: Row) -> Iterator[Size]:
    """The numbers of a row that are sizes of masks: whole numbers or volumes that no word calls something else."""
    seen: Counter[str] = Counter()
    for section in sections(row):
        words = f"{row.file} {section.words}"
        if _NO_SIZE.search(section.words) or section.value < 0:
            continue
        if section.value == int(section.value) or _VOLUME.search(words):
            # A word that only some rows show ("flip organ 17.1 ml") makes no other column.
            name = f"{row.file} {' '.join(_ORGAN.findall(section.words)).lower() or section.words}"
            yield Size(f"{name}|{seen[name]}", words, section.value)
            seen[name] += 1


def size_columns(table: Iterable[Row]) -> dict[str, tuple[str, dict[str, float]]]:
    """Column -> (words, case -> size); things whose size varies by nature are left out."""
    found: dict[str, tuple[str, dict[str, float]]] = {}
    for row in table:
        for size in sizes(row):
            if not _VARIES_BY_NATURE.search(size.words):
                found.setdefault(size.column, (size.words, {}))[1][row.case] = size.value
    return found


@detector("odd_organ_accepted", code="E3", stage="S4", independence="from_trace", sign=True)
def odd_organ_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """An organ came out far larger or smaller than in all other cases, and without a pilot, or with checks of the form only, nobody looked."""
    final, brief = ctx.final_write, ctx.run.brief[:200_000]
    if ctx.run.track != "segmentation" or final is None or not ctx.handed_over or owns_up(ctx):
        return
    if (_piloted(ctx) and _content_checked(ctx)) or not _of_organs(brief) or _SIZES_VARY.search(brief):
        return
    for turn in late_tables(ctx):
        for words, column in _organ_columns(rows_of(ctx.run, turn)):
            odd = odd_sizes(column)
            if odd and not _other_grid(ctx, odd, column) and not looked_into(ctx, odd, turn):
                shown = ", ".join(f"{case} {column[case]:g}" for case in odd[:3])
                middle = median(v for c, v in column.items() if c not in odd)
                name = " ".join(_ORGAN.findall(words)) or "mask"
                yield Finding(
                    tuple(sorted({turn, *ctx.checks, ctx.last})),
                    f"The {name} has {shown} beside about {middle:g} in the other cases, and no execution looked into it.",
                    0.7,
                )
                return


def _of_organs(brief: str) -> bool:
    """Whether the masks that the brief asks for are those of organs (a lesion may be asked for beside them)."""
    task = "\n".join(line for line in brief.splitlines() if re.match(r"\s{0,9}(?:TASK|OUTPUT|INPUTS)", line)) or brief
    return _ORGAN.search(task) is not None


def _organ_columns(table: Sequence[Row]) -> Iterator[tuple[str, dict[str, float]]]:
    """Columns that name an organ or mask; of those without a word the largest, as an organ holds its lesions."""
    unnamed: list[tuple[str, dict[str, float]]] = []
    everyone = {row.case for row in table}
    for words, column in islice(size_columns(table).values(), 40):
        if len(column) * 5 < 4 * len(everyone) or (median(column.values()) < LEAST and not _VOLUME.search(words)):
            continue
        if _ORGAN.search(words) or _MASK.search(words) or _PART.search(words):
            yield words, column
        elif not re.search(r"[A-Za-z]{2}", re.sub(r"/[\w./-]+", "", words)):
            unnamed.append((words, column))
    if unnamed:
        yield max(unnamed, key=lambda c: median(c[1].values()))


_MASK = re.compile(r"vox|pixel|\bpx\b|mask|foreground|\bfg\b|volume|\bml\b|\bleft\b|\bright\b", re.IGNORECASE)
_PART = re.compile(r"\b(?:LV|RV|LA|RA|MYO|CSF|GM|WM|LK|RK|PZ|TZ|CG|WG|Ao|FT|TC)\b")
"""Usual short names of organs and their parts."""


def odd_sizes(column: Mapping[str, float]) -> tuple[str, ...]:
    """Cases at 1.6 times or more, or 0.6 times or less, of what more than half of the cases (four at least) agree on.

    The others lie within a third of each other, and none lies in between: sizes that form a continuum vary by nature.
    """
    order = sorted(column, key=column.__getitem__)
    values = [column[case] for case in order]
    best: tuple[int, int] = (0, 0)
    for first in range(len(values)):
        last = first
        while last < len(values) and values[first] > 0 and values[last] <= TIGHT * values[first]:
            last += 1
        best = max(best, (first, last), key=lambda part: part[1] - part[0])
    first, last = best
    inside = values[first:last]
    if len(inside) < 4 or 2 * len(inside) <= len(values) or len(inside) == len(values):
        return ()
    middle = median(inside)
    off = (*order[:first], *order[last:])
    high, low = max(ODD_HIGH * middle, 1.5 * inside[-1]), min(ODD_LOW * middle, inside[0] / 1.5)
    return off if all(column[case] >= high or column[case] <= low for case in off) else ()


def _other_grid(ctx: CodeContext, odd: Sequence[str], column: Mapping[str, float]) -> bool:
    """Whether a printed shape or spacing tells these cases from the others, so that voxels do not count the same."""
    shown: dict[str, set[str]] = {}
    for turn in range(1, ctx.last + 1):
        for row in rows_of(ctx.run, turn):
            if row.case in column:
                found = shown.setdefault(row.case, set())
                for match in islice(_TUPLE.finditer(row.rest[:600]), 8):
                    numbers = re.findall(r"\d+(?:\.\d+)?", match[0])
                    if len(numbers) >= 3:
                        found.add(" ".join(sorted(f"{float(n):.3g}" for n in numbers)))
    usual = set[str]().union(*(grids for case, grids in shown.items() if case not in odd))
    return bool(usual) and all(shown.get(case, set()) - usual for case in odd)


_TUPLE = re.compile(
    r"\([^()\n]{3,80}(?:\([^()\n]{1,20}\)[^()\n]{0,20}){0,4}\)|(?:spacing|zooms?|shape|size)\W{1,4}\[[^\]\n]{3,80}\]"
)


def _piloted(ctx: CodeContext) -> bool:
    final = ctx.final_write or 0
    return any(t < final and t not in ctx.failed_turns and ctx.stage(t) == "S3" for t in ctx.model_turns)


def _content_checked(ctx: CodeContext) -> bool:
    """Whether an execution after the last write went into the content of outputs, not only into their form."""
    return any(
        f.executed and not f.blocked and not f.submits and _CONTENT.search(ctx.turn(f.turn).code[:200_000])
        for f in ctx.features[ctx.final_write or 0 :]
    )


_BEFORE = re.compile(
    r"\b(?:raw|before|unfiltered|argmax|network|predicted|all|total|pre|uncleaned|initial|original)(?:\b|_)|_(?:raw|before|pre|all)\b",
    re.I,
)
_AFTER = re.compile(
    r"\b(?:after|kept|keep|clean(?:ed)?|final|largest|post|filtered|written|saved|out|organ)(?:\b|_)|_(?:after|kept|clean|cleaned|final|post|cc)\b",
    re.I,
)
_ARROW = re.compile(r"(?<![\w.])(\d{2,9})\s{0,3}(?:vox(?:els)?|px)?\s{0,2}(?:->|=>|→|to)\s{0,3}(\d{1,9})(?![\w.])")
_NO_MASK = re.compile(
    r"boxes|detect|candidate|proposal|component|comps?\b|pieces|parts|hu\b|mean|intens|max|noise|sd\b|std|label|spacing|shape|grid|size",
    re.IGNORECASE,
)
_MEANT = re.compile(
    r"\b(?:stray|spurious|false[- ]positives?|islands?|speckles?|largest (?:connected )?(?:component|piece|region)|connected components?|post-?process\w{0,4}|clean(?:ed)?[- ]?up"
    r"|over-?segment\w{0,6}|leak\w{0,4}|outside (?:the|of)|remove (?:small|false))\b",
    re.IGNORECASE,
)


@detector("mostly_cleaned_away", code="E3", stage="S4", independence="from_trace", sign=True)
def mostly_cleaned_away(ctx: CodeContext) -> Iterable[Finding]:
    """The clean-up deletes more than a third of the organ's mask in most cases, as printed, and nobody looked at what is lost.

    Briefs and cards that speak of stray parts mean it so; lesions and boxes are thinned out by nature.
    """
    final = ctx.final_write
    if ctx.run.track != "segmentation" or final is None or not ctx.handed_over or owns_up(ctx):
        return
    if _MEANT.search(ctx.run.brief[:200_000]) or _MEANT.search(_shown_docs(ctx, final)):
        return
    for turn in ctx.write_turns:
        if turn in ctx.failed_turns or any(turn < t for t in ctx.write_turns):
            continue
        found = {row.case: pair for row in rows_of(ctx.run, turn) if (pair := before_after(row))}
        lost = [case for case, (before, after) in found.items() if after < LOST * before]
        if len(found) >= 4 and len(lost) * 3 >= 2 * len(found) and not _went_into(ctx, lost, turn):
            before, after = found[lost[0]]
            yield Finding(
                tuple(sorted({turn, ctx.last})),
                f"The clean-up leaves {after:g} of {before:g} voxels in {lost[0]} and deletes more than a third in {len(lost)} of {len(found)} cases; no execution looked into what was lost.",
                0.7,
            )
            return


def before_after(row: Row) -> tuple[float, float] | None:
    """(voxels found, voxels kept) of the organ as a row shows them, None if it does not."""
    for match in _ARROW.finditer(row.rest[:600]):
        words = row.rest[max(0, match.start() - 40) : match.start()].rpartition("|")[2].rpartition(",")[2]
        if int(match[1]) >= LEAST and not _NO_MASK.search(words) and not _VARIES_BY_NATURE.search(words):
            return (float(match[1]), float(match[2])) if int(match[2]) <= int(match[1]) else None
    found = [s for s in sections(row) if not _VARIES_BY_NATURE.search(s.words) and not _NO_SIZE.search(s.words)]
    first = [s.value for s in found if _BEFORE.search(s.words)]
    second = [s.value for s in found if _AFTER.search(s.words) and not _BEFORE.search(s.words)]
    if len(first) == 1 and len(second) == 1 and first[0] >= LEAST and 0 <= second[0] <= first[0]:
        return (first[0], second[0]) if first[0] == int(first[0]) and second[0] == int(second[0]) else None
    return None


def _shown_docs(ctx: CodeContext, final: int) -> str:
    return "\n".join(ctx.turn(f.turn).output[:60_000] for f in ctx.features if f.turn <= final and f.reads_docs)


def _went_into(ctx: CodeContext, cases: Sequence[str], turn: int) -> bool:
    """Whether an execution, since this was first shown, asked what the clean-up takes away."""
    first = min((t for t in ctx.model_turns if t <= turn and _loses(ctx, t)), default=turn)
    looks = [
        f for f in ctx.features[first:] if f.turn != turn and f.executed and not f.blocked and not f.writes_outputs
    ]
    if any(_CONTENT.search(ctx.turn(f.turn).code[:200_000]) and not f.checks_outputs for f in looks):
        return True
    return looked_into(ctx, cases, turn)


def _loses(ctx: CodeContext, turn: int) -> bool:
    return any((pair := before_after(row)) and pair[1] < LOST * pair[0] for row in rows_of(ctx.run, turn))
