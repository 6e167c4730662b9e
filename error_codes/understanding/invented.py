"""E1: requirements that nothing shown to the run states, on which its outputs rest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ...trajectories.any_case import AnyCase
from ...trajectories.memo import once_a_run
from ...trajectories.models import Run
from ..context import CodeContext
from ..registry import Finding, detector

MAX_TEXT = 200_000
"""Characters of one text that are read."""
MAX_CLAIMS = 300
"""Claims of one run that are looked up."""
MAX_UNIT = 700
"""Characters of one sentence that are read."""

OUTCOME = (
    r"\b(?:ground[- ]truth|gold[- ]standard|reference (?:standard|annotation|labels?|masks?|list|text|boxes|does|do|leaves?|contains?|excludes?|omits?|ignores?|only|which|that)"
    r"|(?:the|benchmark's|dataset's|and|in|of|task's) references?(?= (?:set|standard|annot|label|mask|list|text|box|does|do|leav|contain|exclud|omit|ignor|only|follow|count|is|are|was|were|will|has|have|not|never|drawn|start|list)|[ ,.;:)]*$|[,.;:)])"
    r"|annotat\w+|raters?|readers|labell?ers?|radiologists?|pathologists?|graders?|benchmark\w*|challenge\w*|scorers?|scoring|evaluat(?:ion|or)s?|metrics?|mAP|COCO|leaderboard|organi[sz]ers?|submission (?:format|rules?)|the format|checker|(?:data ?set|collection|corpus)(?:'s)? (?:rules?|definition|convention|counts?|lists?|labels?|treats?|contains?|leaves?|excludes?|is|does|has)|(?:definition|rules|convention) of the (?:data ?set|collection|corpus|task)|(?:the |task )(?:brief|instructions|task statement|task description|rules?) (?:says?|states?|asks?|requires?|wants?|demands?|limits?|caps?|allows?|expects?|forbids?|prescribes?|excludes?)|(?:model )?card (?:says|states|requires|demands|prescribes|asks)|according to the (?:brief|card|rules|instructions)|per the (?:brief|rules|instructions))\b"
)
AUTHORITY = (
    r"\b(?:protocols?|reading rules?|lexicon|textbook|regulat\w+|guidelines?|manuals?|criteri(?:a|on)|consensus|recommendations?|reporting (?:threshold|range|standard|rule|practice|limit)|conventions?|polic(?:y|ies)|clinical (?:rule|standard|practice|definition)"
    r"|(?:official|standard|usual|radiolog\w+|clinical) (?:definition|rule|practice)|Fleischner|RECIST|BI-?RADS|LI-?RADS|PI-?RADS|TI-?RADS|Lung-?RADS|ICDR|ESC|WHO|ACR|ESUR|AAPM|FDA)\b"
)
_STANDARD = re.compile(
    r"\b(?-i:([A-Z]{3,}[A-Z0-9]*))\b(?:[- ](?:\w{1,20}[- ])?(?:demand|requir|prescrib|mandat|stipulat|call|ask|expect|want|compli|conform|harmoni|standard|guideline|protocol|rule|criteri|recommend|certif|accredit)\w*)"
    r"|\b(?:according to|as per|per|by|under|following|demanded by|required by|prescribed by|to meet|meets?|fulfil\w*|honou?rs?|compl(?:y|ies|iant) with|conforms? (?:to|with)) (?:the )?(?-i:([A-Z]{3,}[A-Z0-9]*))\b",
    re.IGNORECASE,
)
"""A body or standard by its initials, as what demands or is to be met."""
_DELIVERED = re.compile(
    r"\b(?:deliverables?|outputs?|submissions?|results?|predictions?|masks?|images?|slices?|volumes?|boxes|answers?|reports?|labels?|scans?)\b[^.;\n]{0,60}?\b(?:has to|have to|had to|must|(?:is|are) (?:required|obliged|expected) to|needs? to be)\b"
    r"|\b(?:requirement|constraint|obligation|rule)s? (?:to (?:honou?r|meet|respect|keep|observe|fulfil)|that (?:applies|holds)|here|is|says|comes)\b",
    re.IGNORECASE,
)
_EXCLUSION = (
    r"\b(?:(?:is|are|was|were|be|do|does|did|has|have|had|will|would)(?: not|n't)|isn't|aren't|never|not|nor|none (?:is|are)) (?:\w+ ){0,3}?(?:annotat\w+|label\w*|report\w*|count\w*|score[ds]?|contain\w*|includ\w+|measur\w+|part of"
    r"|consider\w*|mark\w*|evaluat\w*|present|drawn|outlin\w+|credit\w*|in the|eligible|accept\w*|allow\w*|treat\w*|list\w*|recogni[sz]\w+|assess\w*|significant|relevant|actionable)"
    r"|\b(?:exclud\w+|ignor\w+|omit\w*|skip\w*|neglect\w*|pass(?:es|ed)? over|leav\w+ (?:\w+ )?out|left out|outside|disregard\w*|penali[sz]\w+|reject\w*|non-?(?:target|reportable|measurable)|irrelevant|insignificant|restricted to|limited to|confined to|masked out|cut off|un(?:label|annotat|mark|report|scor|list|count)\w+)\b"
    r"|\bonly (?:\w+ ){0,4}?(?:count\w*|annotat\w+|label\w+|scor\w+|keep\w*|report\w*|mark\w*|list\w*|contain\w*|look\w*|read\w*|tak\w*|consider\w*|carr\w+|draw\w*|drawn|if\b|from\b|of\b)|\b(?:count|annotat|mark|label|scor|report|accept|contain|list|consider|keep|record|drawn|look|read)\w* only\b|\bstarts? at\b"
)
OBLIGATION = (
    r"\b(?:has to|have to|had to|must|requires?|required|needs? to|needs|wants?|expects?|expected|demands?|mandat\w+|obligatory|prescribes?|stipulates?|calls? for|asks? for|insists?"
    r"|treats?|counts? as|is counted|are counted|considers?|merges?|lumps?|caps?|capped|clips?|limits? (?:the|it|to)|at most|no more than|at least|minimum|maximum|up to)\b"
)
_JUDGES, _RULES, _EXCLUDES, _OBLIGES = map(AnyCase, (OUTCOME, AUTHORITY, _EXCLUSION, OBLIGATION))
_UNITS = r"(?:mm2|mm3|mm²|mm³|millimet\w+|mm|cm|ml|cc|µm|um|microns?|px|pixels?|voxels?|%|percent|per cent|HU|words?|characters|sentences?|boxes|detections|lesions|nodules|slices|degrees|dB)"
_THRESHOLD = re.compile(
    rf"(?:<=?|>=?|≤|≥|\b(?:below|under|beneath|less than|smaller than|shorter than|fewer than|more than|larger than|over|above|exceed\w*|at least|at most|minimum(?: of)?|maximum(?: of)?|up to|within|top|starts? at|from|than|least|caps? \w+ at|capped at|at|to|first|grade|class|label|level|category|stage))[ -]?(\d{{1,6}}(?:\.\d{{1,4}})?)[ -]?({_UNITS}(?![\w-]))?"
    rf"|\b(\d{{1,6}}(?:\.\d{{1,4}})?)[ -]?(?:(?:highest|best|largest|top|strongest|biggest|brightest|most)[ -](?:\w{{1,12}} )?)?({_UNITS})(?![\w-])",
    re.IGNORECASE,
)
_SMALL = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SPELLED = re.compile(rf"\b(?:{'|'.join(_SMALL)})\b", re.IGNORECASE)
_BOOKKEEPING = re.compile(
    r"\b(?:files?|cases|patients|studies|questions|images|answers|rows|folders|candidates|turns|calls|[KMG]i?B|bytes|seconds|minutes|s)\b",
    re.IGNORECASE,
)
_FLAT = re.compile(
    r"\bclinically (?:ir\w+|in\w+|not \w+|meaningless)|\b(?:do|does)(?: not|n't) count\b|\b(?:is|are)(?: not|n't) (?:annotated|labell?ed|scored|reportable)\b",
    re.IGNORECASE,
)
HEDGED = re.compile(
    r"\b(?:whether|unclear|unknown|not stated|nothing (?:in|says)|no (?:rule|threshold|minimum)|does not say|doesn't say|nowhere)\b|\?\s*$",
    re.IGNORECASE,
)
TAKEN_BACK = re.compile(
    r"\b(?:not (?:stated|given|written|found) in the brief|nowhere|my own (?:assumption|invention)|no basis|unfounded|(?:brief|card) (?:says nothing|does not|doesn't)|(?:lift|undo|revert|drop|remov)\w* (?:the|this|that) (?:size |length |diameter )?(?:filter|rule|threshold|criterion))\b",
    re.IGNORECASE,
)
_ACTION = re.compile(
    r"\b(?:drop|remov|delet|discard|filter|suppress|exclud|skip|eras|prun|cap|clip|truncat|cut|merg|remap|relabel|map|blank|zero|add|append|complet|insert|prepend|clos|keep|kept|restrict|limit|ignor|goes?\b|out\b|follow)\w*",
    re.IGNORECASE,
)
_OWN_CLAUSE = re.compile(r"\b(?:so|therefore|hence|thus|accordingly|consequently|I|I'll|we|We|let me|my|our)\b")
"""Where a sentence passes from what is said to hold to what the agent does."""
_CAUSE = re.compile(
    r"\b(?:so|therefore|hence|thus|accordingly|consequently|which is why|that is why|I|we|are|is|get)\b", re.IGNORECASE
)
COMMON_NAMES = frozenset(
    ["nifti", "json", "utf", "float", "int", "uint", "numpy", "pytorch", "monai", "simpleitk", "opencv", "imagenet", "coco", "rgba", "ssim", "psnr", "lpips", "dice", "bleu", "meteor", "rouge", "auroc", "auc", "iou", "nms", "tta", "clahe", "otsu", "bgr", "rgb", "readme", "todo", "note", "warning", "true", "false", "none", "null", "begin", "plan", "step", "steps", "task", "output", "input", "metric", "rules", "method", "workflow", "inputs", "radgraph", "f1radgraph", "micro", "macro", "dicom", "nrrd", "torchvision", "sklearn", "github", "huggingface"]
)  # fmt: skip
TECHNICAL = frozenset(
    [
        "hu",
        "ras",
        "lps",
        "las",
        "lpi",
        "rai",
        "suv",
        "gpu",
        "cpu",
        "cuda",
        "cnn",
        "roi",
        "rois",
        "gt",
        "csv",
        "png",
        "jpg",
        "jpeg",
        "nan",
        "inf",
        "ram",
        "api",
        "pca",
        "svm",
        "wbf",
        "crf",
        "clip",
        "vqa",
        "mri",
        "adc",
        "dwi",
        "pet",
        "snr",
        "cnr",
        "mse",
        "mae",
        "rmse",
        "bce",
        "relu",
        "unet",
        "vit",
        "sam",
        "yolo",
        "fft",
        "dct",
        "bm3d",
        "gamma",
        "rle",
        "sha",
        "lfs",
        "npy",
        "mask",
        "iqr",
        "otsu",
        "lut",
        "rgb",
        "hsv",
        "lab",
        "uint8",
    ]
)
"""Initials that name a format, a measure or a method, not a body that demands anything."""
_WORDS = re.compile(r"[a-z]{5,}")
_PROSE = re.compile(r"^[^=\[\]{}]{20,}$")
_SPLIT = re.compile(r"(?<=[.;!?])\s+(?=\S)")
_LIMIT_LINE = AnyCase(
    r"[<>]|^\s{0,8}[A-Z][A-Z0-9_]{2,40}\s?=|\b\w{0,30}(?:FWHM|SIGMA|RADIUS|MIN|MAX|LIMIT|THR|CUT|TOP|KEEP|SIZE|DIAM|CAP|LEN|HI|LO)\w{0,30}\s?[=:]|\[:\s?\d|:\s?\d{1,4}\s?\]|clip\(|clamp\(|remove_small|resampl|\bzoom\(|spacing|pixdim|minimum\(|maximum\(|min_\w{1,30}=|max_\w{1,30}="
)
_NUMBER = re.compile(r"(?<![\w.])\d{1,6}(?:\.\d{1,4})?(?![\w.])")


def units_of(text: str) -> Iterator[str]:
    """Sentences of a text, wrapped lines joined; at most `MAX_UNIT` characters each."""
    joined = re.sub(r"\n[ \t]{0,20}(?=[a-z(0-9])", " ", text[:MAX_TEXT])
    for line in joined.splitlines():
        for unit in _SPLIT.split(line[:6_000]):
            if len(unit) > 20:
                yield unit[:MAX_UNIT]


def prose_of_code(code: str) -> str:
    """Comments and lines of running text (a plan, a docstring) in code."""
    lines = []
    for line in code[:MAX_TEXT].splitlines():
        bare = line.strip()[:400]
        comment = bare.split("#", 1)[1] if "#" in bare and not bare.startswith("#") else bare.lstrip("#-*> \t")
        words = comment.split()
        if len(words) < 5 or not (comment != bare or _PROSE.match(comment)):
            continue
        if sum(1 for word in words if word.strip(".,;:()").isalpha()) >= 5:
            lines.append(comment)
    return "\n".join(lines)


def told_units(run: Run, turn: int) -> tuple[str, ...]:
    """Sentences of a turn's text, and of the comments and running text in its code, read once a run."""
    known = _known_units(run)
    if turn not in known:
        told = run.turn(turn)
        known[turn] = (*units_of(told.text), *units_of(prose_of_code(told.code)))
    return known[turn]


@once_a_run
def _known_units(run: Run) -> dict[int, tuple[str, ...]]:
    return {}


def known_before(ctx: CodeContext, turn: int) -> str:
    """What the brief and the environment had told before a turn."""
    told = [ctx.run.brief[:MAX_TEXT]]
    for earlier in ctx.run.turns[: max(turn - 1, 0)]:
        told.append(earlier.output[-40_000:])
        told.extend(earlier.replies)
    return "\n".join(told)


def stems(text: str) -> set[str]:
    return {word[:6] for word in _WORDS.findall(text.lower())}


def grounded_number(number: str, unit: str, claim: str, known: str, brief: str = "") -> bool:
    """Whether the brief or an observation states this number: with its unit, or on a line that shares words with the claim."""
    digits = rf"(?<![\d.]){re.escape(number)}(?:\.0+)?(?![\d]|\.\d)"
    if unit and re.search(rf"{digits}[ -]?{re.escape(unit[:3])}", known, re.IGNORECASE):
        return True
    if not unit and re.search(digits, brief):
        return True
    mine = stems(claim)
    for line in known.splitlines():
        line = line[:2_000]
        if re.search(digits, line) and (len(mine & stems(line)) >= (1 if not unit else 2)):
            return True
    return False


def limits_in(code: str) -> set[float]:
    """Numbers on lines of code that compare, cut or name a limit."""
    found: set[float] = set()
    for line in code[:MAX_TEXT].splitlines():
        numbers = _NUMBER.findall(line[:1_000])
        if numbers and "print(" not in line and _LIMIT_LINE.search(line[:1_000]):
            found |= {float(n) for n in numbers}
    return found


def claimed_limits(unit: str) -> list[tuple[str, str]]:
    """(number, unit) of the thresholds in a sentence; counts of files and cases, 0 and 1 are none."""
    found = []
    unit = _SPELLED.sub(lambda m: str(_SMALL.index(m[0].lower()) + 2), unit)
    for match in _THRESHOLD.finditer(unit):
        number, measure = match[1] or match[3], match[2] or match[4] or ""
        if float(number) in (0.0, 1.0) or _BOOKKEEPING.match(unit[match.end() : match.end() + 20].lstrip()):
            continue
        found.append((number, measure))
    return found


def variants(number: str, unit: str) -> set[float]:
    """The values under which code may hold a claimed limit: itself, a radius, a share, another unit of length."""
    value = float(number)
    out = {value}
    if unit.lower() in ("mm", "cm", "px", "pixel", "pixels", "voxels", "um", "µm"):
        out.add(value / 2)
    if unit.lower() == "cm":
        out.add(value * 10)
    if unit.lower() in ("%", "percent", "per cent"):
        out.add(value / 100)
    return out - {0.0, 1.0}


@detector("invented_requirement", code="E1", stage="S1", independence="from_trace")
def invented_requirement(ctx: CodeContext) -> Iterable[Finding]:
    """A rule is ascribed to the reference, the scorer or a guideline, nothing shown states it, and the outputs follow it."""
    final = ctx.final_write
    if final is None or not ctx.handed_over or not ctx.run.brief:
        return
    code = ctx.pipeline_code[:MAX_TEXT]
    limits = limits_in(code)
    looked_up = 0
    for turn in ctx.run.turns[:final]:
        prose = told_units(ctx.run, turn.index)
        known: str | None = None
        for place, unit in enumerate(prose):
            source, authority, excluded = _ascribed(unit)
            if not (source or authority) and any(_standards(unit)):
                known = known_before(ctx, turn.index) if known is None else known
                authority = any(not _holds(known, name) for name in _standards(unit))
            if not (source or authority) or HEDGED.search(unit):
                continue
            looked_up += 1
            if looked_up > MAX_CLAIMS:
                return
            if known is None:
                known = known_before(ctx, turn.index)
            near = " ".join(prose[place : place + 2])
            claim = _limit_claim(unit, near, known, limits, ctx.run.brief)
            if claim is None:
                claim = _standard_claim(unit, known, code)
            if claim is None and source and excluded and not claimed_limits(unit):
                claim = _bare_claim(unit, near, known)
            if claim and not TAKEN_BACK.search(ctx.text_from(turn.index + 1, final)):
                turns = tuple(sorted({turn.index, final}))
                yield Finding(turns, f"The outputs follow a requirement that nothing shown states ({claim}).", 0.75)
                return


def _ascribed(unit: str) -> tuple[bool, bool, bool]:
    """Whether a clause ascribes a rule to what judges the outputs, to an authority or to nobody; and whether it excludes.

    What the agent says of itself (from "so" or "I" on) is its own design and no such rule.
    """
    source = authority = excluded = False
    for clause in _OWN_CLAUSE.split(unit):
        out = _EXCLUDES.search(clause) is not None
        if not out and not _OBLIGES.search(clause):
            continue
        here = _JUDGES.search(clause) is not None
        by = (out and _FLAT.search(clause) is not None) or _RULES.search(clause) is not None
        source, authority, excluded = source or here, authority or by, excluded or (out and (here or by))
    return source, authority, excluded


def _limit_claim(unit: str, near: str, known: str, limits: set[float], brief: str) -> str | None:
    """The claimed limit that nothing states and that the code applies, itself or as the value derived beside it."""
    new = [(n, u) for n, u in claimed_limits(unit) if not grounded_number(n, u, unit, known, brief)]
    if not new:
        return None
    derived = {float(n) for n in _NUMBER.findall(near)} - {0.0, 1.0} if _ACTION.search(near) else set()
    derived -= {float(n) for n, u in claimed_limits(near) if grounded_number(n, u, near, known, brief)}
    for number, measure in new:
        if (variants(number, measure) | derived) & limits:
            return f"{number} {measure}".strip()
    return None


def _standard_claim(unit: str, known: str, code: str) -> str | None:
    """A standard by its initials that demands something of the outputs, that nothing shown names, and that names a part of the code."""
    if not (_DELIVERED.search(unit) or _OBLIGES.search(unit)):
        return None
    for name in _standards(unit):
        if _holds(known, name):
            continue
        if re.search(rf"(?<![A-Za-z]){name}(?![a-z])|(?<![A-Za-z]){name.lower()}(?=_|\b)", _code_only(code)):
            return str(name)
    return None


def _holds(text: str, name: str) -> bool:
    return re.search(rf"(?<![A-Za-z]){name}(?![A-Za-z])", text, re.IGNORECASE) is not None


def _standards(unit: str) -> Iterator[str]:
    """Initials in a sentence that demand something or are to be met, those of formats, measures and methods left out."""
    for match in _STANDARD.finditer(unit):
        name = str(match[1] or match[2])
        if name.lower() not in COMMON_NAMES | TECHNICAL:
            yield name


def _code_only(code: str) -> str:
    """Lines of code that bind, define or call something; comments and running text left out."""
    lines = (line.split("#", 1)[0][:400] for line in code[:MAX_TEXT].splitlines())
    return "\n".join(
        line
        for line in lines
        if re.match(r"\s{0,24}(?:def \w|[\w.\[\]'\", ]{1,60}\s?[-+*/]?=(?!=)|return\b)", line)
        and not _PROSE.match(line.strip())
    )


def _bare_claim(unit: str, near: str, known: str) -> str | None:
    """An exclusion ascribed to what judges the outputs, with what is done for it, that no line shown resembles."""
    act = re.search(rf"(?:{_CAUSE.pattern})\b[^.;\n]{{0,60}}?(?:{_ACTION.pattern})", near, re.IGNORECASE)
    if act is None or not re.search(
        r"\b(?:so|therefore|hence|thus|accordingly|consequently|why)\b", near, re.IGNORECASE
    ):
        return None
    mine = stems(unit)
    if any(len(mine & stems(line[:2_000])) >= 3 for line in known.splitlines()):
        return None
    return " ".join(unit.split())[:80].rstrip(" .,;:")


def printed_number(number: str, known: str) -> bool:
    """Whether a text holds the number, or one that rounds to it, also as a share or a percentage."""
    value, places = float(number), len(number.partition(".")[2])
    for text in set(re.findall(r"(?<![\w.])\d{1,3}(?:\.\d{1,20})?(?![\w.]*\d)", known[-1_000_000:])):
        for scale in (1.0, 100.0, 0.01):
            if abs(float(text) * scale - value) <= 0.51 * 10**-places:
                return True
    return False
