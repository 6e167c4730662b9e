"""E3: what brief, card or a header says of how single inputs are stored, and that the executed code neither allows for nor asks.

One table of requirements. Each is held against the same four facts, whatever the run says: was it stated for the model that
served, do the headers shown differ, does the code that made the outputs allow for it, did any execution ask the cases for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from statistics import median
from typing import NamedTuple

from ..context import CodeContext, names_weights
from ..registry import Finding, detector
from ..serving import run_code, without_comments, written_modules
from .case_groups import two_clusters
from .case_signs import owns_up
from .case_tables import columns, joined, rows_of
from .input_conventions import (
    CODE_LINE,
    HEADING,
    INVERTS,
    NARROWED,
    PER_IMAGE,
    RESAMPLES,
    WIDENS,
    silent_code,
    unwrapped,
    weights_in,
    where_served,
)

MAX_TEXT = 200_000
_REORIENTS = re.compile(
    r"canonical|orient|flip|\[\s?::\s?-1|fliplr|reorient|resampl|ornt|axcodes|argmin\([\w.]{1,40}\.shape", re.IGNORECASE
)


class Requirement(NamedTuple):
    """How texts state it, how code allows for it, how a header line shows its value (first group that matched).

    `asked` is code or output that asks an input for it; None where an image file alone cannot tell. `narrows` is code without
    which nothing can go wrong.
    """

    name: str
    stated: re.Pattern[str]
    met: re.Pattern[str]
    shown: re.Pattern[str]
    asked: re.Pattern[str] | None = None
    narrows: re.Pattern[str] | None = None
    tracks: tuple[str, ...] = ()
    of_model: bool = False
    """Only a model cares: thresholds and region growing work in any orientation and at any spacing."""


TABLE = (
    Requirement(
        "the orientation of the array axes",
        re.compile(
            r"\b(?:RAS|LPS|LAS|RAI|LPI|RPI)\+?(?![\w-])|\(\s?'[LR]',\s?'[AP]',\s?'[IS]'\s?\)|\bcanonical (?:axes|orientation|order)",
        ),
        _REORIENTS,
        re.compile(r"\(\s?'([LR]',\s?'[AP]',\s?'[IS])'\s?\)|\b([LR][AP][IS])\b"),
        re.compile(r"axcodes|io_orientation|GetDirection|\borientation\b|print\((?![^\n]{0,300}(?:==|allclose|equal|Nifti1Image))[^\n]{0,200}affine|sform|qform", re.I),
        None,
        ("segmentation", "synthesis"),
        True,
    ),
    Requirement(
        "the polarity of the image",
        re.compile(
            r"\bMONOCHROME[12]\b|\bpolarity\b|\bphotometric|\b(?:white|bright|black|dark)[ -]on[ -](?:a |an )?(?:white|bright|black|dark)\b|\b(?:is|are|was|were|stored|saved|exported|shown|come|delivered|map|scale|lut|levels?|values?|contrast|films?|images?|frames?) inverted\b|\binverted (?:films?|images?|frames?|scans?|exports?|grey|gray|lut|scale|contrast|levels?)|\b(?:as|photographic) negatives?\b",
            re.IGNORECASE,
        ),
        INVERTS,
        re.compile(
            r"\b(MONOCHROME[12])\b|\b(?:photometric\w{0,20}|polarity|inverted)['\"]?\s{0,2}[:=]\s{0,2}['\"]?([A-Za-z0-9][\w-]{0,20})"
            r"|\b((?:white|bright|black|dark)[ -]on[ -](?:white|bright|black|dark))\b",
            re.IGNORECASE,
        ),
    ),
    Requirement(
        "the stored range of the file",
        re.compile(
            r"\bfull range\b|\bbits?[ _]stored\b|\b(?:native|own|whole|entire|stored) (?:bit[- ]depth|range)\b|\brange of (?:its|the|each) (?:file|type|dtype|format)"
            r"|\b(?:1[0246]|twelve|sixteen)[- ]?bits?\b|\buint16\b|\bI;16\b|\b\d{1,4} ?(?:-|to|\.\.) ?(?:4095|16383|65535)\b",
            re.IGNORECASE,
        ),
        WIDENS,
        re.compile(r"\b(I;16|uint16|16[- ]bit|uint8|8[- ]bit)\b", re.IGNORECASE),
        re.compile(r"I;16|uint16|16[- ]bit|uint8|8[- ]bit|\bmode\b['\"]?\s?[:=]?\s?['\"]?(?:L|RGB)\b|\bL \(?\d", re.IGNORECASE),
        NARROWED,
    ),
    Requirement(
        "the spacing of the pixels",
        re.compile(r"\b(?:mm|um|µm) ?(?:/|per) ?(?:px|pixel|voxel)|\bmpp\b|\b(?:resampl\w{1,4}|trained) (?:to|at|on)\s{0,2}\d{1,2}(?:\.\d{1,3})? ?(?:x [\d. x]{1,20})?(?:mm|um|µm)\b|\bpixel_?spacing\b", re.IGNORECASE),
        RESAMPLES,
        re.compile(r"\b(?!)(x)"),
        of_model=True,
    ),
    Requirement(
        "which way round the image lies",
        re.compile(
            r"\b(?:probe|transducer|vitreous|cornea|skin|apex|head|crown|surface)\b[^.\n]{0,20}\b(?:at|on|to|facing|points?) (?:the )?(?:top|bottom|left|right|index 0|row 0|first row|up\w{0,5}|down\w{0,5})\b"
            r"|\bupside[- ]down\b|\bflipped_\w{1,12}\b|\b(?:CCW|counter-?clockwise|anti-?clockwise)\b",
            re.IGNORECASE,
        ),
        re.compile(r"flip|\brot90|ROTATE_|\[\s?::\s?-1|\[::-1|mirror|probe_side|\bdirection\b|orient|\bCCW\b", re.IGNORECASE),
        re.compile(r"\b(?:flipped\w{0,12}|probe_side|direction|mirrored|upside_down)['\"]?\s{0,2}[:=]\s{0,2}['\"]?([A-Za-z][\w-]{0,20})", re.IGNORECASE),
        of_model=True,
    ),
    Requirement(
        "slope, offset or unit of the stored values",
        re.compile(r"\brescale[ _]?(?:slope|intercept)|\b(?:slope|gain|scale factor|calibration factor|units?) (?:is|are|stands?|given|stated|in|of each)\b", re.IGNORECASE),
        re.compile(rf"intercept|slope|gain|factor|units?\b|{PER_IMAGE.pattern}", re.IGNORECASE),
        re.compile(r"\b(?:units?|rescale_?slope|rescale_?intercept|colou?r_?space|channel_?order)['\"]?\s{0,2}[:=]\s{0,2}['\"]?([A-Za-z0-9][\w./-]{0,20})", re.IGNORECASE),
    ),
)  # fmt: skip
_DEEP = re.compile(r"(?:I;?16|uint16|16-?bit)$", re.IGNORECASE)
_UNIFORM = re.compile(
    r"\b(?:all|every|each) (?:of the )?(?:\d+ )?(?:given |input )?(?:cases?|scans?|volumes?|images?|films?|files?|inputs?|stacks?|slices?|tiles?) (?:is|are|come|have|has|share|in|were)\b|\bsame (?:orientation|polarity|spacing|bit depth)\b|\balready (?:in|at|resampled|oriented|inverted)\b",
    re.IGNORECASE,
)
_LENGTHS = frozenset({"mm", "cm", "m", "um", "s", "sec", "ms", "seconds", "px", "pixels", "voxels"})
_HEADER = re.compile(r"(?<![\w.*-])([\w-]{1,40}\.(?:json|ya?ml|xml|hdr|tsv|txt|ini|toml))\b")
_NO_HEADER = re.compile(
    r"^(?:questions?|predictions?|answers?|reports?|manifest|phrases|labels?|classes|plan|requirements|readme\w*|model_?cards?|cards?|config|index|vocab\w*|prompts?|submission|results?|summary|schema|tokenizer\w*)\.",
    re.IGNORECASE,
)
_MODEL = re.compile(
    r"\b(?:torch\w{0,10}|onnx\w{0,10}|tensorflow|tf|keras|monai|jax|flax|openvino|transformers|ultralytics|mmdet|mmseg|timm"
    r"|nnunet\w{0,4}|totalsegmentator|model\w{0,12}|predictor|net\w{0,10}|\w{1,20}_?net|unet\w{0,6}|pipeline|infer\w{0,8}|checkpoint|weights)\b"
    r"|\.(?:pth?|onnx|ckpt|safetensors|h5|engine|tflite)\b",
    re.IGNORECASE,
)
"""That the code of the outputs applies a model, by library, name or file."""
_POINTS_AT = re.compile(
    r"\b(?:see|given|stated|noted|recorded|says?|tells?|differs?|depends?|each|every|per|beside|according)\b", re.I
)
_LISTED = re.compile(r"(?<![\w.])[\w-]{0,40}\d/([\w-]{1,40}\.(?:json|ya?ml|xml|hdr|tsv|txt|ini|toml))\b")
_HELPER = re.compile(
    r"\b(pre_?process\w{0,10}|prepare\w{0,12}|\w{0,20}processor|\w{0,10}transforms?|standardi[sz]e\w{0,8}|to_input|canonical\w{0,8})\s{0,2}\(",
    re.I,
)


@detector("requirement_unmet", code="E3", stage="S3", independence="from_trace")
def requirement_unmet(ctx: CodeContext) -> Iterable[Finding]:
    """How inputs are stored differs from case to case or is stated by the card, and the code neither allows for it nor asks."""
    final, code = ctx.final_write, silent_code(ctx).replace("aff2axcodes", "")
    if final is None or not code.strip() or not ctx.handed_over or ctx.run.track is None or owns_up(ctx):
        return
    for need in TABLE:
        if need.met.search(code) or (need.narrows and not need.narrows.search(code)):
            continue
        if need.tracks and ctx.run.track not in need.tracks:
            continue
        if need.of_model and not _MODEL.search(ctx.serving_code[:400_000]):
            continue
        why = next(_unmet(ctx, need, code), None)
        if why:
            turn, words, confidence = why
            turns = tuple(sorted({*([turn] if turn else []), *where_served(ctx, final)}))
            yield Finding(turns, words, confidence)
            return
    pointed = next((h for h in _pointed_at(ctx, code) if not _asked_over_cases(ctx, h)), None)
    if pointed:
        why_ = (
            f"The card refers to {pointed} of each case for how it is stored, and no execution reads it over the cases."
        )
        yield Finding(where_served(ctx, final), why_, 0.7)
        return
    unread = next(_described_and_unread(ctx), None)
    if unread:
        name, what = unread
        why_ = f"The brief says that {name} tells {what} of the inputs, and no execution reads it over the cases."
        yield Finding(where_served(ctx, final), why_, 0.75)


_DESCRIBED = re.compile(r"(?<![\w.*-])([\w-]{1,40}\.(?:json|csv|tsv|ya?ml|hdr|xml|txt))\s?\(([^()\n]{3,160})\)")
_ANY_FILE = re.compile(r"iterdir\(|rglob\(|os\.walk\(|os\.listdir\([^)\n]{0,60}\bd\b")


def _described_and_unread(ctx: CodeContext) -> Iterator[tuple[str, str]]:
    """(name, what it tells) of files beside the inputs whose content the brief describes and no code opens for every case."""
    inputs = re.search(r"INPUTS?\b[^\n]{0,2000}", ctx.run.brief[:MAX_TEXT])
    for name, what in _DESCRIBED.findall(inputs[0]) if inputs is not None else ():
        opened = _asked_over_cases(ctx, name) or any(_ANY_FILE.search(text) for text in _executed(ctx))
        if not _NO_HEADER.match(name) and not opened:
            yield name, " ".join(what.split())[:80]


def _unmet(ctx: CodeContext, need: Requirement, code: str) -> Iterator[tuple[int, str, float]]:
    """(turn, reason, confidence) for each way in which this requirement is seen to be missed, the surest first."""
    for turn in ctx.run.turns[: ctx.last]:  # a header read after the batch counts as well
        values = shown_values(need, turn.output)
        if 2 <= len(values) <= 4 and sum(values.values()) >= 3:
            each = " and ".join(f"{v} ({n} times)" for v, n in values.most_common())
            yield turn.index, f"Headers show {need.name} as {each}, and the code treats all alike.", 0.75
        elif "MONOCHROME1" in map(str.upper, values):
            yield turn.index, "A header shows MONOCHROME1 (inverted film), and the code never inverts it.", 0.75
        deep = [v for v in values if _DEEP.match(v)] if need.narrows and turn.index < (ctx.final_write or 0) else []
        if deep and not ctx.feature(turn.index).forward_pass:
            yield turn.index, f"Inputs are shown as {deep[0]}, and the code cuts them to 8 bits as it reads them.", 0.75
    said = next(_stated(ctx, need, code), None)
    if said is None or _helped(code) or _all_alike(ctx, need):
        return
    at = need.stated.search(said)
    stated = " ".join(said[max(0, at.start() - 45 if at else 0) :].split())[:90]
    if need.name == "the polarity of the image" and (apart := _bright_and_dark(ctx)):
        why = f'It is stated "{stated}", {joined(apart[1])} are of another brightness altogether, and the code treats all alike.'
        yield apart[0], why, 0.65
    field = _field_unread(ctx, need)
    if field:
        seen, name = field
        yield (
            seen,
            f'It is stated "{stated}", the listing shows a field {name} of each input, and no execution reads it.',
            0.7,
        )
    if need.narrows and said in ctx.run.brief:
        yield (
            0,
            f'The brief says "{" ".join(said.split())[:90]}", and the code cuts the inputs to 8 bits as it reads them.',
            0.75,
        )
    unread = next((h for h in headers_beside(ctx) if not _asked_over_cases(ctx, h)), None)
    if unread:
        yield (
            0,
            f'It is stated "{stated}" ({need.name}); {unread} beside each input would tell and was never read over the cases.',
            0.7,
        )
    elif need.asked and not _asked_at_all(ctx, need):
        yield (
            0,
            f'It is stated "{stated}" ({need.name}), the code does nothing for it and no execution asked the inputs for it.',
            0.65,
        )


def _bright_and_dark(ctx: CodeContext) -> tuple[int, list[str]] | None:
    """Turn and the fewer cases, where the printed brightness of the inputs falls in two clusters of which one is twice the other."""
    for turn in range(1, ctx.final_write or 0):
        for (name, place), column in (
            columns(rows_of(ctx.run, turn)).items() if not ctx.feature(turn).forward_pass else ()
        ):
            split = (
                two_clusters(column, 3)
                if place == 0
                and re.match(r"mean|median|average|p\d|brightness|level|bg|background|border|corner", name)
                else None
            )
            if split is None:
                continue
            parts = sorted(set(split.values()), key=list(split.values()).count)
            means = [median(column[c] for c in split if split[c] == part) for part in parts]
            if min(means) >= 0 and max(means) >= 2 * min(means):
                return turn, [case for case in split if split[case] == parts[0]]
    return None


_FIELDS = {
    "the polarity of the image": re.compile(r"['\"](photometric\w{0,20}|polarity|inverted)['\"]\s{0,2}:"),
    "slope, offset or unit of the stored values": re.compile(
        r"['\"](units?|rescale_?slope|rescale_?intercept|slope|intercept|colou?r_?space)['\"]\s{0,2}:"
    ),
    "the spacing of the pixels": re.compile(r"['\"](pixel_?spacing|spacing|mpp|um_per_px|mm_per_px)['\"]\s{0,2}:"),
}
"""Requirement -> a field of a manifest or header that tells the property of an input."""


def _field_unread(ctx: CodeContext, need: Requirement) -> tuple[int, str] | None:
    """Turn and name of a field that tells this property of each input: shown for fewer cases than there are, and no code names it."""
    pattern = _FIELDS.get(need.name)
    cases = len(ctx.run.outputs.cases)
    for turn in ctx.run.turns[: ctx.final_write] if pattern is not None and cases else ():
        shown = [m[1] for m in pattern.finditer(turn.output[:MAX_TEXT])] if pattern is not None else []
        if shown and len(shown) < cases and not any(shown[0] in text for text in _executed(ctx)):
            return turn.index, shown[0]
    return None


def _all_alike(ctx: CodeContext, need: Requirement) -> bool:
    """Whether brief or card say that all inputs have the property alike, so that nothing is to be done for it."""
    texts = (ctx.run.brief, *(turn.output for turn in ctx.run.turns[: ctx.final_write]))
    lines = (line[:1_000] for text in texts for line in text[:MAX_TEXT].splitlines())
    return any(need.stated.search(line) and _UNIFORM.search(line) for line in lines)


def shown_values(need: Requirement, output: str) -> Counter[str]:
    """Value of a property -> number of header lines that show it; lines that speak of a model's file are no headers."""
    values: Counter[str] = Counter()
    for raw in output[:MAX_TEXT].splitlines():
        line = raw[:2_000]
        if weights_in(line) or CODE_LINE.match(line):
            continue
        found = {re.sub(r"[^A-Za-z0-9./-]", "", next(g for g in m.groups() if g)) for m in need.shown.finditer(line)}
        if len(found) == 1:
            values.update(found)
    return Counter() if set(values) & _LENGTHS else values


def _stated(ctx: CodeContext, need: Requirement, code: str) -> Iterator[str]:
    served = ctx.serving_code[:400_000]
    inputs = [line[:2_000] for line in ctx.run.brief[:MAX_TEXT].splitlines() if re.search(r"INPUT|/data/public", line)]
    yield from (line for line in inputs if need.narrows and need.stated.search(line))
    for turn in ctx.run.turns[: ctx.final_write]:
        yield from (line for line in statements(turn.output, served) if need.stated.search(line))


def statements(output: str, code: str) -> Iterator[str]:
    """Lines of cards that hold for the model in use: those of no other model's section, and no code, listing or header."""
    owned: bool | None = None
    for raw in unwrapped(output[:MAX_TEXT]).splitlines():
        line = raw[:1_000]
        stems = weights_in(line)
        if stems:
            owned = any(names_weights(code, stem) for stem in stems)
        elif HEADING.match(line) or CODE_LINE.match(line) or not line.strip():
            owned = None
        header = line.lstrip()[:1] in "{[\"'" and not stems
        if owned is not False and not CODE_LINE.match(line) and not header and len(line.split()) >= 3:
            yield line


def headers_beside(ctx: CodeContext) -> tuple[str, ...]:
    """Names of small text files that lie beside each input, as brief or listings show."""
    found: list[str] = []
    for line in ctx.run.brief[:MAX_TEXT].splitlines():
        if re.search(r"INPUT|/data/public/<", line) and "/workspace" not in line:
            found += _HEADER.findall(line[:2_000])
    for turn in ctx.run.turns[: ctx.final_write]:
        listed = [name for line in turn.output[:MAX_TEXT].splitlines()[:2_000] for name in _LISTED.findall(line[:400])]
        found += [name for name, n in Counter(listed).items() if n >= 1]
    return tuple(dict.fromkeys(name for name in found if not _NO_HEADER.match(name)))


def _pointed_at(ctx: CodeContext, code: str) -> Iterator[str]:
    """Files beside the inputs to which a card refers ("see scan.json of each eye")."""
    served = ctx.serving_code[:400_000]
    beside = headers_beside(ctx)
    for turn in ctx.run.turns[: ctx.final_write]:
        for line in statements(turn.output, served):
            yield from (h for h in beside if h in line and _POINTS_AT.search(line))


def _asked_over_cases(ctx: CodeContext, header: str) -> bool:
    """Whether an execution opens this file by a path that is not one case's."""
    kind = re.escape(header[header.rfind(".") :])
    path = re.compile(
        rf"(?<!\d)(?<!\d\]\}})['\"/}}]{re.escape(header)}|\*{kind}|['\"]{re.escape(header.rpartition('.')[0])}['\"]"
    )
    return any(path.search(text) for text in _executed(ctx))


def _asked_at_all(ctx: CodeContext, need: Requirement) -> bool:
    if need.asked is None:
        return True
    if need.narrows is None and any(need.asked.search(text) for text in _executed(ctx)):
        return True
    return any(
        need.asked.search(line[:600]) or need.shown.search(line[:600])
        for turn in ctx.run.turns
        for line in turn.output[:MAX_TEXT].splitlines()[:2_000]
        if not CODE_LINE.match(line) and not need.stated.search(line[:600])
    )


def _executed(ctx: CodeContext) -> Iterator[str]:
    for turn in ctx.run.turns:
        if ctx.feature(turn.index).executed and not ctx.feature(turn.index).blocked:
            yield without_comments(run_code(turn, written_modules(ctx.run, turn.index)))[:MAX_TEXT]


def _helped(code: str) -> bool:
    """Whether inputs go through a helper that is not in sight, whose name says that it prepares them."""
    return any(not re.search(rf"\bdef {re.escape(name)}\b", code) for name in _HELPER.findall(code))
