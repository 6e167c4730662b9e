"""E3: what a card, a help text or the brief states in plain words, printed in the run, and the pipeline does otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .class_signs import printed_strange_labels
from .context import CodeContext, names_weights
from .registry import Finding, detector
from .verification import admits

_WEIGHT = re.compile(r"([\w.-]{1,60})\.(?:pt|pth|onnx|ckpt|safetensors|h5)\b")
_DIVISOR = re.compile(
    r"\b(?:HU|intensit\w{1,4}|values?|pixels?|input|x|RGB|grey|gray)\s{0,2}/\s{0,2}(\d{2,5})\b", re.IGNORECASE
)
_WINDOW = re.compile(
    r"\b(?:clip\w{0,4}|window\w{0,3})\b[^|\n]{0,30}\[\s{0,2}(-?\d{2,5})\s{0,2},\s{0,2}(-?\d{2,5})\s{0,2}\]",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"\b(?:RGB|grey|gray|image|input|pixel\w{0,8})\b[^|;\n]{0,40}\bin \[0(?:\.0)?,\s{0,2}1(?:\.0)?\]|\bRGB \[0,\s{0,2}1\]",
    re.I,
)
_SCALES = re.compile(
    r"255|/=?\s{0,2}(?:\d+\.|[a-z_.]{1,20}max)|ToTensor|to_tensor|img_as_float|rescale|normali[sz]e|1/255|0\.0039|\.max\(",
    re.I,
)
_CLASS_DOC = re.compile(r"class (\w{2,40})\([^)]{0,60}\):\s{1,12}(?:r?\"\"\"|#)([^\n]{1,300})")
_ORDER = re.compile(r"\border:?\s{1,3}((?:[\w-]{1,20},\s?){1,12}[\w-]{1,20})", re.IGNORECASE)
_QUOTED_LIST = re.compile(r"[\[(]((?:\s{0,8}['\"][\w -]{1,30}['\"]\s{0,4},?){2,13})\s{0,8}[\])]")
_NUMBERED = re.compile(
    r"(?<![\w.-])(\d{1,2})(?:\s{0,2}[:=]\s{0,2}|\s{1,2}(?:is )?)(?:an? |the )?['\"]?([A-Za-z][\w-]{0,29})"
)
_SHIFTS = re.compile(
    r"\[\s?:\s?,\s?1\s?:|\[1:\]|(?:argmax\([^()\n]{0,40}\)(?:\.item\(\))?\)?|\bi|\bidx|\bk|\bindex|\bpred)\s{0,2}[-+]\s{0,2}1\b"
)


@detector("input_convention_missed", code="E3", stage="S3", independence="from_trace")
def input_convention_missed(ctx: CodeContext) -> Iterable[Finding]:
    """The card of the model states how its input is scaled, and the code that made the outputs does not do so."""
    final = ctx.final_write
    code = ctx.pipeline_code
    if final is None or not code.strip():
        return
    for turn in ctx.run.turns[:final]:
        if turn.output and (missed := _missed(turn.output, code)):
            turns = [t for t in ctx.model_turns if ctx.stage(t) in ("S3", "S4")] or [final]
            yield Finding(
                tuple(sorted({*turns, *ctx.checks})),
                f"The card asks for {missed}, the pipeline never does it, and no check of the outputs caught it.",
                0.8,
            )
            return


@detector("label_order_missed", code="E3", stage="S3", independence="from_trace")
def label_order_missed(ctx: CodeContext) -> Iterable[Finding]:
    """The card states the order of the model's labels, and the code maps the outputs in another order."""
    final, code = ctx.final_write, ctx.pipeline_code
    if final is None:
        return
    lists = [tuple(re.findall(r"['\"]([\w -]{1,30})['\"]", inner)) for inner in _QUOTED_LIST.findall(code)]
    for turn in ctx.run.turns[:final]:
        for line in turn.output[:200_000].splitlines():
            match = _ORDER.search(line[:600])
            if match is None or not any(names_weights(code, stem) for stem in _WEIGHT.findall(line[:600])):
                continue
            stated = tuple(name.strip() for name in match[1].split(","))
            used = [names for names in lists if sorted(map(str.lower, names)) == sorted(map(str.lower, stated))]
            if used and all(tuple(map(str.lower, names)) != tuple(map(str.lower, stated)) for names in used):
                order = ", ".join(used[0])
                yield Finding(
                    (final, *ctx.checks),
                    f"The card orders the labels {', '.join(stated)}, the code reads them as {order}.",
                    0.8,
                )
                return


@detector("label_index_missed", code="E3", stage="S3", independence="from_trace")
def label_index_missed(ctx: CodeContext) -> Iterable[Finding]:
    """The card numbers the model's outputs, and the code reads the labels off a list with other positions."""
    final, code = ctx.final_write, ctx.pipeline_code
    if final is None or _SHIFTS.search(code):
        return
    lists = [
        tuple(n.lower() for n in re.findall(r"['\"]([\w -]{1,30})['\"]", inner)) for inner in _QUOTED_LIST.findall(code)
    ]
    for turn in ctx.run.turns[:final]:
        for raw in turn.output[:200_000].splitlines():
            line = raw[:600]
            if not any(names_weights(code, stem) for stem in _WEIGHT.findall(line)):
                continue
            stated = numbered(line)
            if len(stated) < 3:
                continue
            used = [names for names in lists if len(names) >= 3 and all(name in stated for name in names)]
            if used and all(any(stated[n] != i for i, n in enumerate(names)) for names in used):
                name = next(n for i, n in enumerate(used[0]) if stated[n] != i)
                pilot = [t for t in ctx.model_turns if ctx.stage(t) == "S3" and t < final]
                why = (
                    f"The card gives {name} the index {stated[name]}, the code's list the index {used[0].index(name)}."
                )
                yield Finding(tuple(sorted({*pilot, final, *ctx.checks})), why, 0.8)
                return


def numbered(line: str) -> dict[str, int]:
    """Names that a line numbers upwards from 0 or 1 ("0 background, 1 nodule, 2 calc"), in lower case."""
    found: dict[str, int] = {}
    last: int | None = None
    for match in _NUMBERED.finditer(line):
        index = int(match[1])
        if (index in (0, 1) and last is None) or (last is not None and index == last + 1):
            found[match[2].lower()] = last = index
    return found


@detector("strange_labels_accepted", code="E3", stage="S5", independence="from_trace")
def strange_labels_accepted(ctx: CodeContext) -> Iterable[Finding]:
    """The run's own listing shows labels that the brief does not allow, and the masks were handed over as they are."""
    found = printed_strange_labels(ctx)
    if found is None or not ctx.handed_over or admits(ctx):
        return
    turn, labels = found
    shown = ", ".join(map(str, labels[:5]))
    yield Finding(
        tuple(sorted({turn, ctx.last})), f"The listing shows the labels {shown}, which the brief does not allow.", 0.8
    )


def _missed(output: str, code: str) -> str:
    """The input convention of a model that the code uses and does not follow; empty when all are followed."""
    lines = [line[:600] for line in output[:200_000].splitlines()]
    notes = [line for line in lines if any(names_weights(code, stem) for stem in _WEIGHT.findall(line))]
    notes += [doc for name, doc in _CLASS_DOC.findall(output[:200_000]) if re.search(rf"\b{name}\b", code)]
    for note in notes:
        for number in _DIVISOR.findall(note):
            if not _has_number(code, number):
                return f"input / {number}"
        for low, high in _WINDOW.findall(note):
            if not (_has_number(code, low) and _has_number(code, high)):
                return f"clipping to [{low}, {high}]"
        if _UNIT.search(note) and not _SCALES.search(code):
            return "input in [0, 1]"
    return ""


def _has_number(code: str, number: str) -> bool:
    value = number.lstrip("-")
    forms = [re.escape(value), f"{int(value):_}"]
    if value.strip("0") == "1":
        forms += [rf"1e\+?0?{len(value) - 1}", "0?\\." + "0" * (len(value) - 2) + "1"]
    return re.search(rf"(?<![\w.])(?:{'|'.join(forms)})(?:\.0*)?(?!\d)", code) is not None
