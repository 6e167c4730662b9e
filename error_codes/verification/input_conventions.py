"""E3: how inputs are stored and how a model wants them, in the words of brief, card and headers, held against the code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..context import CodeContext, names_weights
from ..registry import Finding, detector
from ..serving import without_comments

WEIGHT = re.compile(r"([\w.-]{1,60})\.(?:pt|pth|onnx|ckpt|safetensors|h5)\b")
_WEIGHT_END = re.compile(r"\.(?:pt|pth|onnx|ckpt|safetensors|h5)\b")
MAX_TEXT = 200_000
HEADING = re.compile(r"^\s{0,3}(?:#{1,4}\s|={2,}|-{3,}|\*\*)")
CODE_LINE = re.compile(r"^\s{0,12}(?:def |return\b|import |from \w|self\.|class |>>>)")
_DIVISOR = re.compile(
    r"(?<![\w/])(?!(?:cases?|images?|samples?|scans?|slices?|epochs?|steps?|batch|fold|page|version|v|of|top|rank|iteration|https?|Dice|accuracy|AUC)\b)[A-Za-z][A-Za-z_]{0,20}(?:\s{0,2}/\s{0,2}|\s(?:is |are )?divided by )(255|256|400|500|1000|1023|1024|2000|3000|4000|4095|4096|10000|16383|32767|65535)(?![\w/-]|\.\d)",
    re.IGNORECASE,
)
_WINDOW = re.compile(
    r"\b(?:clip\w{0,4}|window\w{0,3})\b[^|\n]{0,30}\[\s{0,2}(-?\d{2,5})\s{0,2},\s{0,2}(-?\d{2,5})\s{0,2}\]",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"\b(?:RGB|grey|gray|image|input|pixel\w{0,8})\b[^|;\n]{0,40}\bin \[0(?:\.0)?,\s{0,2}1(?:\.0)?\]|\bRGB \[0,\s{0,2}1\]"
    r"|\b(?:input|image|RGB|pixel\w{0,8})\b[^|;.\n]{0,40}\b(?:float\w{0,3}|range|scaled to|values? (?:in|from)?)\s{0,2}[\[(]?0(?:\.0)?\s?(?:\.\.+|-|–|to|,)\s?1(?:\.0)?\b(?!\.\d)",
    re.I,
)
_WINDOWED = re.compile(r"\bwindow|\bclip|\bHU\b|(?<!\w)-\d{2}", re.IGNORECASE)
"""A range that is reached by a window of its own, which is another convention."""
_SCALES = re.compile(
    r"255|/=?\s{0,2}(?:\d+\.|[a-z_.]{1,20}max)|ToTensor|to_tensor|img_as_float|rescale|normali[sz]e|1/255|0\.0039|\.max\(",
    re.I,
)
_CLASS_DOC = re.compile(r"class (\w{2,40})\([^)]{0,60}\):\s{1,12}(?:r?\"\"\"|#)([^\n]{1,300})")
_HELPED = re.compile(
    r"\b(?:pre_?process\w{0,10}|prepare\w{0,12}|\w{0,20}processor|\w{0,10}transforms?|standardi[sz]e\w{0,8}|to_input|rescale\w{0,10})\s{0,2}\(",
    re.I,
)
"""A helper whose name says that it prepares the input: what it does is not always in sight."""

_STATED = (
    (
        "channels in BGR order",
        re.compile(r"\bBGR\b"),
        re.compile(r"BGR|cv2\.imread|::\s?-1|\[\s?2\s?,\s?1\s?,\s?0\s?\]|\.flip\("),
    ),
    (
        "zero mean and unit variance",
        re.compile(
            r"\b(?:z-?scor\w{1,4}|zero[- ]mean(?: and |, |/)unit[- ](?:variance|std)|standardi[sz]ed per|mean 0(?:,| and) (?:std|sd|variance) 1\b)",
            re.I,
        ),
        re.compile(r"mean|std|z_?score|normali[sz]e|standard", re.I),
    ),
    (
        "scaling by a percentile",
        re.compile(
            r"\binput\b[^|;\n]{0,60}\b(?:\d{1,2}(?:\.\d)?(?:st|nd|rd|th)? ?(?:percentile|quantile)|percentile|p9\d(?:\.\d)?\b)",
            re.I,
        ),
        re.compile(r"percentile|quantile|sort\(|partition|kthvalue", re.I),
    ),
    (
        "the logarithm of the input",
        re.compile(
            r"\b(?:log1p|log-?transformed|log-?compressed|logarithm of)\b[^|\n]{0,40}\b(?:input|intensit|count|signal)|\binput\b[^|;\n]{0,40}\blog(?:1p|10|2)?\b(?![^|;\n]{0,30}\bdB\b)",
            re.I,
        ),
        re.compile(r"\blog|20 ?\*", re.I),
    ),
    (
        "a sigmoid over its logits",
        re.compile(
            r"\b(?:logits?\b[^|;\n]{0,60}\b(?:apply|needs?|take|use) (?:a |the )?sigmoid|sigmoid (?:is )?not applied)",
            re.I,
        ),
        re.compile(r"sigmoid|expit|softmax|\bexp\(|argmax|>\s?=?\s?-?0(?:\.0)?\b(?!\.\d)|logit", re.I),
    ),
)
"""(what is asked for, how a card says so, how code shows that it is done)"""
_ENCODED = re.compile(
    r"\b(?:values?|pixels?|intensit\w{1,4}|stored|data|grey|gray|int16|uint16|png|voxels?)\b[^.\n]{0,40}?(?:=|\bis\b|\bas\b|\bare\b|:)\s{0,2}(HU|SUV|Hounsfield units?|mm2/s|ms|ADC|T1|T2)"
    r"\s{0,2}(\+|-|\*|x|×|plus|times|minus)\s{0,2}(\d{2,6})\b",
    re.IGNORECASE,
)
_OFFSET = re.compile(
    r"\b(?:offset|shifted|bias)\b(?: of| by| is|:|=)?\s{0,2}[+-]?(\d{3,5})\b[^.\n]{0,30}|[+-]?(\d{3,5}) (?:was |is |has been )?added to (?:every|each|all|the) (?:HU|pixel|voxel|value)",
    re.IGNORECASE,
)
_INTERCEPT = re.compile(r"\b(?:rescale[ _]?)?intercept['\"]?\s{0,2}[:=]\s{0,2}(-?\d{3,5})(?:\.0)?\b", re.IGNORECASE)
_DECODES = re.compile(r"intercept|offset|rescale|slope|bias\b|\bHU\s?=|hounsfield|sitk|pydicom|apply_modality", re.I)
PER_IMAGE = re.compile(
    r"-=?\s{0,2}(?:np\.)?\w{0,20}\.?(?:mean|min|median|amin|percentile)\(|normali[sz]e|z_?score|mean\(\)|\bmu\b|\blo\b|percentile",
    re.I,
)
_WANTED = re.compile(
    r"\b(?:input|takes|expects|trained|fed|forward|wants|needs|in)\b[^|\n]{0,60}\b(HU|SUV|Hounsfield)\b|\b(HU|SUV)\s{0,2}/\s{0,2}\d",
    re.I,
)
NARROWED = re.compile(
    r"open\([^()\n]{0,120}(?:\([^()\n]{0,80}\)[^()\n]{0,60}){0,2}\)\s{0,2}\.convert\(\s?['\"](?:L|RGB)['\"]|cv2\.imread\([^,\n()]{1,120}(?:,\s?(?:0|1|cv2\.IMREAD_(?:GRAYSCALE|COLOR)))?\)"
)
WIDENS = re.compile(
    r"65535|4095|1023|16383|\.point\(|I;16|mode\s?=\s?['\"]I|IMREAD_UNCHANGED|IMREAD_ANYDEPTH|,\s?-1\)|uint16|int32|/\s?16\b|>>\s?\d|\.max\("
)
INVERTS = re.compile(
    r"MONOCHROME|invert|(?:255|65535|4095|1|1\.0|max\w{0,3}\(?\)?)\s{0,2}-\s{0,2}[a-z]|bitwise_not|~|\*\s?-1|-\s?1\s?\*|PhotometricInterp|photometric",
    re.I,
)
_PITCH = re.compile(
    r"\b(?:resampl\w{1,4} (?:to|at)|trained (?:at|on)|input[^|;\n]{0,40}\bat|spacing(?: of)?|expects?[^|;\n]{0,30}\bat)\s{0,2}(\d{1,2}(?:\.\d{1,3})?)\s{0,2}(?:x [\d. x]{1,20})?(mm|um/px|µm/px|um per pixel|mpp)\b",
    re.IGNORECASE,
)
_SHOWN_PITCH = re.compile(
    r"\b(?:spacing\w{0,4}|zooms|pixdim|pixel_?spacing|voxel[ _]?size|mpp|um_per_px|resolution)\b['\"]?[^\d\n]{0,12}(\d{1,2}\.\d{1,4})",
    re.IGNORECASE,
)
RESAMPLES = re.compile(r"zoom|resampl|resiz|interpolat|spacing|rescale|affine_transform|map_coordinates|mpp", re.I)


_SCALING_CODE = re.compile(r"\b(?:np|numpy|torch|Image|cv2|nib|sitk)\.\w{1,30}\([^\n]{0,300}(?:/|\*)=?\s{0,2}\d")


@detector("input_convention_missed", code="E3", stage="S3", independence="from_trace")
def input_convention_missed(ctx: CodeContext) -> Iterable[Finding]:
    """The card of the model states how its input is scaled, and the code that made the outputs does not do so."""
    final, code = ctx.final_write, silent_code(ctx)
    if final is None or not code.strip():
        return
    served = ctx.serving_code[:400_000]  # a model that was tried and given up asks for nothing
    # A given class that scales what it loads does so for whoever calls it.
    shown = (line[:600] for turn in ctx.run.turns[:final] for line in turn.output[:MAX_TEXT].splitlines())
    code += "\n".join(("", *(line for line in shown if _SCALING_CODE.search(line))))
    for turn in ctx.run.turns[:final]:
        if turn.output and (missed := _missed(turn.output, code, served)):
            yield Finding(
                where_served(ctx, final),
                f"The card asks for {missed}, the pipeline never does it, and no check of the outputs caught it.",
                0.8,
            )
            return


@detector("stored_values_taken_as_they_are", code="E3", stage="S3", independence="from_trace")
def stored_values_taken_as_they_are(ctx: CodeContext) -> Iterable[Finding]:
    """Brief or headers say how values are stored (offset, factor), and the code never turns them back."""
    final, code = ctx.final_write, ctx.pipeline_code[:400_000]
    if final is None or not code.strip() or not ctx.handed_over or ctx.run.track is None or _HELPED.search(code):
        return
    before = "\n".join(turn.output[:MAX_TEXT] for turn in ctx.run.turns[:final])
    missed = next(_undecoded(ctx.run.brief[:MAX_TEXT], before, code), None)
    if missed:
        yield Finding(where_served(ctx, final), f"{missed}, and no check of the outputs caught it.", 0.75)


def where_served(ctx: CodeContext, final: int) -> tuple[int, ...]:
    turns = [t for t in ctx.model_turns if ctx.stage(t) in ("S3", "S4")] or [final]
    return tuple(sorted({*turns, *ctx.checks}))


def weights_in(line: str) -> list[str]:
    """Stems of the weight files that a line names."""
    return WEIGHT.findall(line) if _WEIGHT_END.search(line) else []


def silent_code(ctx: CodeContext) -> str:
    """Code of the outputs, without what is only printed or asserted and without remarks."""
    lines = without_comments(ctx.pipeline_code[:400_000]).splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith(("print(", "assert ")))


_WRAPPED = re.compile(r"(?<=[^\n]{60}[a-z,)])\n(?=[a-z(])")


def unwrapped(text: str) -> str:
    """Prose in the lines in which it was meant: a long line that ends in the middle of a sentence goes on in the next."""
    return _WRAPPED.sub(" ", text)


def notes(output: str, code: str) -> list[str]:
    """Lines of cards that speak of a model which the code uses: they name its file, or stand in a section that does."""
    owned, found = False, []
    for raw in unwrapped(output[:MAX_TEXT]).splitlines():
        line = raw[:600]
        stems = weights_in(line)
        if stems:
            owned = any(names_weights(code, stem) for stem in stems)
        elif HEADING.match(line) or CODE_LINE.match(line):
            owned = False
        if owned:
            found.append(line)
    found += [doc for name, doc in _CLASS_DOC.findall(output[:MAX_TEXT]) if re.search(rf"\b{name}\b", code)]
    return found


def _missed(output: str, code: str, served: str) -> str:
    """The input convention of a model that the code uses and does not follow; empty when all are followed."""
    for note in notes(output, served):
        for number in _DIVISOR.findall(note):
            if not has_number(code, number):
                return f"input / {number}"
        for low, high in _WINDOW.findall(note):
            if not (has_number(code, low) and has_number(code, high)):
                return f"clipping to [{low}, {high}]"
        if _UNIT.search(note) and not _SCALES.search(code) and not _WINDOWED.search(note):
            return "input in [0, 1]"
        for what, stated, done in _STATED:
            if stated.search(note) and not done.search(code) and not _HELPED.search(code):
                return what
        for pitch, unit in _PITCH.findall(note):
            other = [v for v in map(float, _SHOWN_PITCH.findall(output)) if not 0.9 < v / (float(pitch) or 1) < 1.1]
            if other and not RESAMPLES.search(code):
                return f"{pitch} {unit}, while a header shows {other[0]:g}"
    return ""


def _undecoded(brief: str, shown: str, code: str) -> Iterator[str]:
    """Statements on how inputs are stored that nothing in the code allows for."""
    if not _DECODES.search(code) and not PER_IMAGE.search(code) and _WANTED.search(shown):
        for line in (*brief.splitlines(), *(part[:600] for part in shown.splitlines())):
            match = _ENCODED.search(line[:2_000])
            if match and not has_number(code, match[3]):
                yield f"Values are stored as {match[1]} {match[2]} {match[3]}, the model wants {match[1]}, and the code never turns them back"
            offset = _OFFSET.search(line[:2_000]) or _INTERCEPT.search(line[:2_000])
            number = next((g for g in offset.groups() if g), "0") if offset else "0"
            if offset and int(number) and not has_number(code, number):
                yield f"An offset of {number} is stated for the stored values, and the code never takes it off"


def has_number(code: str, number: str) -> bool:
    """Whether code holds a number, also as 1_024, 1e3 or the factor 0.001."""
    value = number.lstrip("-")
    forms = [re.escape(value), f"{int(value):_}"]
    if value.strip("0") == "1":
        forms += [rf"1e\+?0?{len(value) - 1}", "0?\\." + "0" * (len(value) - 2) + "1"]
    return re.search(rf"(?<![\w.])(?:{'|'.join(forms)})(?:\.0*)?(?!\d)", code) is not None
