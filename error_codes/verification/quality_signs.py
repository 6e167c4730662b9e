"""E3: quality as the run itself printed it (noise, scale, warnings, agreement, text against probabilities), and accepted as it was."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..context import CodeContext
from ..registry import Finding, detector
from .case_signs import owns_up
from .case_tables import rows_of

MAX_LINES = 3_000
_ARROW = r"(-?\d{1,7}(?:\.\d{1,6})?)\s{0,2}(?:HU|%)?\s{0,2}(?:->|=>|→|to)\s{0,2}(-?\d{1,7}(?:\.\d{1,6})?)"
_ENDS = (
    r"[^\w\n]{1,4}(?:in|before|input|raw|noisy|orig\w{0,4})\b\W{0,4}(-?\d{1,7}(?:\.\d{1,6})?)[^\d\n]{0,20}?"
    r"\b(?:out|after|output|denoised|enhanced|result|pred)\b\W{0,4}(-?\d{1,7}(?:\.\d{1,6})?)"
)
_NAMED = re.compile(rf"\b([A-Za-z][\w-]{{1,24}})\W{{0,4}}(?:{_ARROW})", re.IGNORECASE)
_NAMED_ENDS = re.compile(rf"\b([A-Za-z][\w-]{{1,24}})(?:{_ENDS})", re.IGNORECASE)
_SPLIT_NAMES = re.compile(
    r"\b([A-Za-z]{2,16})_(?:in|before|input|noisy|raw)\W{0,3}(-?\d{1,7}(?:\.\d{1,6})?)[^\n]{0,60}?\b\1_(?:out|after|output|denoised|enhanced)\W{0,3}(-?\d{1,7}(?:\.\d{1,6})?)",
    re.IGNORECASE,
)
_BEFORE_HEAD = re.compile(
    r"(?:([a-z]{2,16})[_.-](?:in|before|input|noisy|raw)|(?:in|before|input|noisy|raw)[_.-]([a-z]{2,16}))$"
)
_AFTER_HEAD = re.compile(
    r"(?:([a-z]{2,16})[_.-](?:out|after|output|denoised|enhanced)|(?:out|after|output|denoised|enhanced)[_.-]([a-z]{2,16}))$"
)
_NOISE = re.compile(
    r"^(?:\w*noise\w*|sigma|sd|bg_?std|background_?std|roughness|residual|rmse|mse|mae)$", re.IGNORECASE
)
_SPREAD = re.compile(r"^(?:std|stdev|variance|var)$", re.IGNORECASE)
UNTOUCHED = 0.001
"""Relative change of an image's spread below which nothing was taken out: noise of a fiftieth of it already shows."""
_QUALITY = re.compile(r"^(?:ssim|psnr|snr|cnr)$", re.IGNORECASE)
_SCALE = re.compile(r"^(?:mean|median|p50|average|avg)$", re.IGNORECASE)
_SILENCED = re.compile(
    r"filterwarnings\(\s{0,2}['\"]ignore|simplefilter\(\s{0,2}['\"]ignore|errstate\([^)\n]{0,60}ignore|nan_to_num|\bnan\s?=\s?0|\[\s?~?\s?np\.is(?:nan|finite)\([^)\n]{0,60}\)\s?\]\s?=\s?-?\d"
)
_LOG = re.compile(r"\b(?:np|numpy|torch|math)\.log(?:10|2)?\(([^()\n]{0,60}(?:\([^()\n]{0,40}\)[^()\n]{0,40}){0,3})\)")
_FLOORED = re.compile(r"maximum|clip|clamp|max\(|where|\+|eps|tiny|log1p|floor", re.IGNORECASE)
_NAN_COUNT = re.compile(
    r"\b(?:nan|inf|non[- _]?finite)s?\b(?:[ _](?:pixels?|voxels?|values?|count))?\s{0,3}[:=]?\s{0,3}([1-9]\d{0,8})\b(?!\.\d)",
    re.I,
)
_PROBABILITY = re.compile(r"\b([A-Za-z][A-Za-z_]{3,40})['\"]?\s{0,2}[:=]?\s{0,2}(0?\.\d{1,6}|1\.0{1,6})(?![\d.])")
_SIDE = frozenset({"left", "right", "upper", "lower", "mild", "severe", "acute", "prob", "score", "class", "conf"})
_NEGATED = re.compile(r"\b(?:no|not|without|absent|negative|clear|never)\b", re.IGNORECASE)


@detector("worse_than_input", code="E3", stage="S4", independence="from_trace", sign=True)
def worse_than_input(ctx: CodeContext) -> Iterable[Finding]:
    """The run's own figures say that most outputs are noisier than their inputs, as good as unchanged, or on another scale."""
    if ctx.run.track != "enhancement" or not ctx.handed_over or owns_up(ctx):
        return
    for turn in ctx.after_write:
        worse: dict[str, list[tuple[float, float]]] = {}
        total: dict[str, int] = {}
        for line in ctx.lines(turn):
            for name, before, after in _before_after(line):
                total[name] = total.get(name, 0) + 1
                if _is_worse(name, before, after):
                    worse.setdefault(name, []).append((before, after))
        for name, before, after in _under_heads(ctx, turn):
            total[name] = total.get(name, 0) + 1
            if _is_worse(name, before, after):
                worse.setdefault(name, []).append((before, after))
        for name, found in worse.items():
            if total[name] >= 3 and len(found) >= 0.6 * total[name]:
                why = f"{name} goes from {found[0][0]:g} to {found[0][1]:g} in the first of {len(found)} cases, which was accepted."
                yield Finding(tuple(sorted({turn, ctx.last})), why, 0.7)
                return


def _before_after(line: str) -> Iterator[tuple[str, float, float]]:
    for pattern in (_NAMED, _NAMED_ENDS, _SPLIT_NAMES):
        for match in pattern.finditer(line):
            yield match[1].lower(), float(match[2]), float(match[3])


def _under_heads(ctx: CodeContext, turn: int) -> Iterator[tuple[str, float, float]]:
    """The same from a table whose header names the columns (noise_in, noise_out)."""
    for row in rows_of(ctx.run, turn):
        named = {name: value for (name, place), value in row.values.items() if place == 0}
        for name, before in named.items():
            match = _BEFORE_HEAD.match(name)
            stem = match and (match[1] or match[2])
            after = next(
                (v for n, v in named.items() if stem and (m := _AFTER_HEAD.match(n)) and (m[1] or m[2]) == stem), None
            )
            if stem and after is not None and not _SPLIT_NAMES.search(f"{row.case}{row.rest}"):
                yield stem, before, after


def _is_worse(name: str, before: float, after: float) -> bool:
    if _NOISE.match(name):
        return before > 0 and after >= before
    if _SPREAD.match(name):
        return before > 0 and abs(after - before) < UNTOUCHED * before
    if _QUALITY.match(name):
        return after < before
    return bool(_SCALE.match(name)) and abs(before) > 1e-6 and not 0.4 < after / before < 2.5


@detector("warning_silenced", code="E3", stage="S3", independence="from_trace")
def warning_silenced(ctx: CodeContext) -> Iterable[Finding]:
    """Values that were no numbers showed up, and the pipeline only covers them: the logarithm of zero stays as it was."""
    final, code = ctx.final_write, ctx.pipeline_code[:400_000]
    if final is None or not ctx.handed_over or ctx.run.track is None or not _SILENCED.search(code):
        return
    open_logs = [m[1] for m in _LOG.finditer(code) if not _FLOORED.search(m[1])]
    for turn in range(1, final + 1):
        if not ctx.feature(turn).executed or not open_logs:
            continue
        output = "\n".join(ctx.lines(turn))
        warned = re.search(r"divide by zero encountered in log\w{0,3}", output)
        count = _NAN_COUNT.search(output)
        if warned and (count or "nan" in code):
            shown = f'"{warned[0]}"' + (f" and {count[0]}" if count else "")
            yield Finding(
                tuple(sorted({turn, final, ctx.last})),
                f"The output shows {shown}; the pipeline covers the values and takes the logarithm of zero all the same.",
                0.75,
            )
            return


@detector("finding_left_out", code="E3", stage="S4", independence="from_trace", sign=True)
def finding_left_out(ctx: CodeContext) -> Iterable[Finding]:
    """Reports: a finding that the encoder gives as likely is absent or denied in the text beside it; other texts do word it."""
    if ctx.run.track != "report_generation" or ctx.final_write is None or not ctx.handed_over or owns_up(ctx):
        return
    for turn in ctx.after_write:
        hits: dict[str, int] = {}
        missed: dict[str, list[str]] = {}
        denied: set[str] = set()
        for line in ctx.turn(turn).output.splitlines()[-MAX_LINES:]:
            for name, value, said in _findings(line[:2_000]):
                if value < 0.3 and not said:
                    denied.add(name)
                if value >= 0.6 and said:
                    hits[name] = hits.get(name, 0) + 1
                elif value >= 0.6:
                    missed.setdefault(name, []).append(f"{name} {value:g}")
        for name, cases in missed.items():
            if hits.get(name, 0) >= len(cases):
                why = f"The log gives {cases[0]} beside a text that does not say so, and the report was handed over as it is."
                yield Finding(tuple(sorted({turn, ctx.last})), why, 0.7)
                return


def _findings(line: str) -> Iterator[tuple[str, float, bool]]:
    """(finding, probability, whether the text after the probabilities affirms it) of one line of a log."""
    pairs = list(_PROBABILITY.finditer(line))
    text = line[pairs[-1].end() :] if pairs else ""
    if len(text.split()) < 6:
        return
    sentences = [s.lower() for s in re.split(r"[.;]", text)]
    for match in pairs:
        parts = [part for part in re.split(r"_+", match[1].lower()) if len(part) >= 4 and part not in _SIDE]
        if parts:
            stem = max(parts, key=len)[:7]
            yield match[1], float(match[2]), any(stem in s and not _NEGATED.search(s) for s in sentences)


_PAIR = re.compile(
    r"\bboth (?:the )?(?:left and right )?(?!files|masks|classes|labels|channels|images|views|structures|metrics|outputs|scans|models|tasks|phases|targets)(?:[a-z]+ ){0,2}[a-z]+s\b"
    r"|\bleft and right (?:[a-z]+ )?[a-z]+s\b|\bbilateral\b|\bpair(?:ed|s)? (?:of )?(?:organs?|glands?|kidneys?|lungs?)\b",
    re.IGNORECASE,
)
_LARGEST_ALONE = re.compile(
    r"argmax\([^\n]{0,40}(?:bincount|sizes?|areas?|counts?|volumes?)|max\([^\n]{0,80}key\s?=[^\n]{0,40}(?:area|size|sum|volume|count)|largest_?(?:component|cc|connected|blob|region|only)|keep_largest"
    r"|\(?(?:bincount|sizes?|areas?|counts?)\w{0,4}(?:\[1:\])?\)?\.argmax\(",
    re.IGNORECASE,
)
_TWO_KEPT = re.compile(
    r"\[:\s?2\]|\[-2:\]|nlargest\(\s?2|n_?keep\s?=\s?2|\btop_?k?\s?=\s?2|\bfor \w{1,12} in [(\[]?['\"]?(?:left|right|l|r|sides?|halves|labels?|classes)\b|\bsides?\b|\bhal(?:f|ves)\b|argsort|shape\[0\] ?// ?2",
    re.IGNORECASE,
)


@detector("half_left_out", code="E3", stage="S3", independence="from_trace", sign=True)
def half_left_out(ctx: CodeContext) -> Iterable[Finding]:
    """The brief asks for both of a pair in one mask, and the clean-up keeps the largest piece alone: one of the two is deleted."""
    final = ctx.final_write
    if ctx.run.track != "segmentation" or final is None or not ctx.handed_over or owns_up(ctx):
        return
    task = "\n".join(line for line in ctx.run.brief[:200_000].splitlines() if re.match(r"\s{0,9}(?:TASK|OUTPUT)", line))
    asked = _PAIR.search(task)
    code = "\n".join(line.split("#", 1)[0] for line in ctx.pipeline_code[:400_000].splitlines())
    if asked and _LARGEST_ALONE.search(code) and not _TWO_KEPT.search(code):
        yield Finding(
            tuple(sorted({*(t for t in ctx.model_turns if ctx.stage(t) in ("S3", "S4")), final, ctx.last})),
            f'The brief asks for "{asked[0]}", the code keeps the largest piece alone, and the loss was accepted.',
            0.7,
        )
