"""E3: levels of outputs as a run printed them: a case without content beside full ones, or the same level whatever the input."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from statistics import median

from ..context import CodeContext
from ..registry import Finding, detector
from .case_signs import late_tables, looked_into, owns_up, regular, tables
from .case_tables import Row, columns, joined, outliers, rows_of, sections

ALIKE = 0.01
"""Range of a level over its middle within which outputs are the same although the inputs were shown to differ."""
ALIKE_UNSEEN = 0.005
"""The same where inputs were never compared: inputs may be alike as well, but not to half a percent."""
DIFFER = 0.05
"""Range of the inputs' level over its middle from which they differ."""

_TOP = re.compile(r"^(?:max\w{0,4}|p9\d\w{0,3}|top|peak|upper|highest)$")
_SCATTER = re.compile(r"^(?:std|sd|sigma|var|variance|contrast|iqr|entropy|range|spread)$")
_MAY_VANISH = re.compile(
    r"lesion|tumou?r|nodul|mets?\b|cyst|finding|polyp|dice|iou|overlap|outside|remov|drop|nan|bad|miss|fail|clip|change|diff|err|flag"
)


@detector("degenerate_case_accepted", code="E3", stage="S4", independence="from_trace", sign=True)
def degenerate_case_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """One output holds nothing but one kind of value (shares of 0 or 1, a maximum far below all others), and no execution looked into it."""
    if ctx.run.track not in ("enhancement", "synthesis", "segmentation") or ctx.final_write is None:
        return
    if not ctx.handed_over or owns_up(ctx):
        return
    for turn, table in tables(ctx, late_tables(ctx)).items():
        bad = degenerate(table)
        if bad and not looked_into(ctx, bad, turn):
            yield Finding(
                tuple(sorted({turn, ctx.last})),
                f"{joined(bad)} is without content in several columns at once (shares of 0 or 1, a top or scatter far below all others), and no execution looked into it.",
                0.7,
            )
            return


def degenerate(table: Iterable[Row]) -> tuple[str, ...]:
    """Cases that are without content in two columns or more, of at least five cases in a regular table."""
    table = regular(tuple(table))
    signs: Counter[str] = Counter()
    void: set[str] = set()
    for (name, _), column in columns(table).items():
        if len(column) < 5 or _MAY_VANISH.search(name):
            continue
        empty = set(_void(name, column))
        void |= empty
        signs.update(empty | set(outliers(column) if name else ()))
    found = tuple(case for case, n in signs.items() if n >= 2 and case in void)
    return found if len(found) * 5 <= 2 * len({row.case for row in table}) else ()


def _void(name: str, column: Mapping[str, float]) -> Iterator[str]:
    """Cases at the end of a share that no other reaches, or with a top or scatter far below what all others share."""
    for case, value in column.items():
        rest = [v for c, v in column.items() if c != case]
        if len(rest) < 4:
            continue
        low, high, middle = min(rest), max(rest), median(rest)
        whole = 1.0 if max(*rest, value) <= 1 else 100.0
        share = bool(name) and not _NO_SHARE.match(name) and (whole == 1.0 or name in _SHARES)
        gap = max(2 * (high - low), 0.05 * whole)
        at_end = share and ((value == 0 and low >= gap) or (value == whole and high <= whole - gap))
        below = _TOP.match(name) and value < low and low - value >= max(3 * (high - low), 0.3 * abs(middle))
        flat = _SCATTER.match(name) and 0 <= value <= low / 5 and high <= 3 * low
        if at_end or below or flat:
            yield case


_NO_SHARE = re.compile(
    r"^(?:max|min|mean|avg|median|range|std|sd|p\d|to|peak|float|ok|true|false|finite|psnr|ssim|score|conf)"
)
_SHARES = frozenset({"air", "soft", "bone", "fat", "water", "share", "fraction", "percent", "tissue", "body", "foreground", "fg", "background", "bg"})  # fmt: skip

_LEVEL = re.compile(r"\b(?:mean|average|avg|median|p50)\b|^mean_|_mean\b", re.IGNORECASE)
_MEDIAN = re.compile(r"median|p50", re.IGNORECASE)
_OF_INPUT = re.compile(
    r"\b(?:in|input|before|raw|noisy|orig\w{0,5}|src|source|mr|low)\b|_(?:in|input|raw|before)\b|\b(?:in|input|raw|noisy|before)_",
    re.IGNORECASE,
)
_NO_LEVEL = re.compile(
    r"resid|diff|delta|shift|bias|abs|err|noise|air|background|\bbg\b|corner|ratio|ssim|psnr|score|prob|conf|dice|roi|mask|region|centre|center|lesion|share|fraction|percent|%"
    r"|std|sd\b|norm|z-?scor|grad|step|time|loss|length|words|tokens|spacing|gain|scale|change|edge",
    re.IGNORECASE,
)
_NORMALISED = re.compile(
    r"\b(?:zero[- ]mean|mean (?:of |= ?|is )?(?:0|1)\b|z-?scor\w{0,4}|standardi[sz]\w{0,4}|unit variance|unit mean|mean[- ]normali[sz]\w{0,4}|normali[sz]\w{0,4} to (?:a |the )?(?:mean|median|level)"
    r"|(?:same|fixed|common|target|constant) (?:mean|median|level|brightness)|histogram[- ](?:match|equal)\w{0,4})",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    r"\d\W{0,3}(?:->|→|=>)\s{0,3}-?\d|\b(?:in|input|raw|noisy|before)\b[ :=]{0,3}-?\d|\b(?:diff|resid|corr|correlation|ssim|psnr|change|changed|shift|delta)\w{0,8}\b|\bvs\b|_in\b|_out\b",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"corrcoef|pearsonr|structural_similarity|peak_signal|\bssim\(|\bpsnr\(|allclose\([^)\n]{0,60}(?:raw|inp|noisy|\bx\b)|np\.abs\([^)\n]{0,40} - [^)\n]{0,40}\)"
    r"|(?:\b(?:x|inp\w{0,4}|raw\w{0,4}|noisy|orig\w{0,5}|src|low)\b)\.(?:mean|std|median)\(|(?:mean|median|std)\((?:x|inp\w{0,4}|raw\w{0,4}|noisy|orig\w{0,5}|src|low)\b",
)


@detector("one_level_for_all", code="E3", stage="S4", independence="from_trace", sign=True)
def one_level_for_all(ctx: CodeContext) -> Iterable[Finding]:
    """The mean of the outputs is the same in every case although the inputs differ, or were never compared, and it was accepted."""
    final, brief = ctx.final_write, ctx.run.brief[:200_000]
    if ctx.run.track not in ("enhancement", "synthesis") or final is None or not ctx.handed_over or owns_up(ctx):
        return
    if _NORMALISED.search(brief):
        return
    inputs = _input_levels(ctx, final)
    for turn in late_tables(ctx):
        for words, column in _levels(rows_of(ctx.run, turn)):
            if _OF_INPUT.search(words) or not _alike(column, ALIKE):
                continue
            shared = [inputs[case] for case in column if case in inputs]
            known = len(shared) >= 5
            differ = known and _range(shared) > DIFFER
            unseen = not known and _alike(column, ALIKE_UNSEEN) and not _ever_compared(ctx)
            if (differ or unseen) and not _gone_into(ctx, list(column), turn):
                low, high = min(column.values()), max(column.values())
                said = f"{low:g}" if low == high else f"{low:g} to {high:g}"
                which = "the inputs differ" if differ else "no output was ever compared with its input"
                why = f"The {words.strip() or 'mean'} of the outputs is {said} in all {len(column)} cases, {which}, and it was accepted."
                yield Finding(tuple(sorted({turn, final, ctx.last})), why, 0.7)
                return


_ARROW = re.compile(r"(?:mean|average|avg|median)\W{0,4}-?\d{1,7}(?:\.\d{1,7})?\s{0,2}(?:->|=>|→)", re.IGNORECASE)
_END = re.compile(
    r"^(?:(in|input|raw|noisy|before|was|from|orig\w{0,4})|(?:out|output|after|enhanced|denoised|now|to))$"
)
"""Words that stand alone before the second of two levels."""


def _levels(table: Iterable[Row]) -> Iterator[tuple[str, dict[str, float]]]:
    """(words, case -> mean or median of an image) for each such column of a table."""
    found: dict[tuple[int, str], dict[str, float]] = {}
    for row in table:
        places: Counter[str] = Counter()
        arrow = _ARROW.search(row.rest) is not None
        level = ""
        for section in sections(row):
            words = section.words[-40:].lower()
            if level and (end := _END.match(words)):
                words = f"{'input ' if end[1] else ''}{level}"
            if not _LEVEL.search(words) or _NO_LEVEL.search(words):
                level = ""
                continue
            if arrow and not level:
                level, words = words, f"input {words}"  # the first of two is what came in
            elif not _OF_INPUT.search(words) or not level:
                level = _OF_INPUT.sub("", words).strip(" _")
            found.setdefault((places[words], words), {})[row.case] = section.value
            places[words] += 1
    for (_, words), column in found.items():
        floor = _MEDIAN.search(words) and max(column.values()) <= -800  # the air around a body
        if len(column) >= 5 and not floor:
            yield words, column


def _range(values: Iterable[float]) -> float:
    values = list(values)
    middle = abs(median(values))
    return (max(values) - min(values)) / middle if middle else 0.0


def _alike(column: Mapping[str, float], limit: float) -> bool:
    """Whether all values agree within `limit`, printed with three digits or more: rounding hides less than the limit."""
    digits = max(len(f"{abs(value):.10g}".replace(".", "").lstrip("0")) for value in column.values())
    return digits >= 3 and median(column.values()) != 0 and _range(column.values()) <= limit


def _input_levels(ctx: CodeContext, final: int) -> dict[str, float]:
    """Case -> level of its input: from tables before any model ran, or marked as the input's."""
    found: dict[str, float] = {}
    for turn in range(1, ctx.last + 1):
        before = turn < final and not ctx.feature(turn).forward_pass and not ctx.feature(turn).reads_outputs
        for words, column in _levels(rows_of(ctx.run, turn)):
            if before or _OF_INPUT.search(words):
                for case, value in column.items():
                    found.setdefault(case, value)
    return found


def _ever_compared(ctx: CodeContext) -> bool:
    """Whether any execution from the first model run on set outputs beside their inputs, or a pilot showed what comes out."""
    first = (ctx.model_turns or (ctx.last,))[0]
    for turn in ctx.run.turns[first - 1 :]:
        feature = ctx.feature(turn.index)
        if not feature.executed or feature.blocked or feature.submits:
            continue
        if _COMPARES.search(turn.code[:200_000]) or any(_COMPARED.search(line) for line in ctx.lines(turn.index)):
            return True
        pilot = turn.index < (ctx.final_write or 0) and ctx.stage(turn.index) == "S3"
        if pilot and turn.index not in ctx.failed_turns and feature.has("inspects_values", "shows_results"):
            return True
    return False


def _gone_into(ctx: CodeContext, cases: list[str], turn: int) -> bool:
    return any(t > turn and ctx.feature(t).forward_pass for t in ctx.model_turns) or looked_into(ctx, cases, turn)
