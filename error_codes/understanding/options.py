"""E1: options that the callee does not have, silently taken, ignored, or refused and set all the same."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...trajectories.any_case import AnyCase
from ..context import CodeContext
from ..registry import Finding, detector

MAX_TEXT = 200_000
"""Characters of one text that are read."""

_FUNCTION = re.compile(r"^(\s{0,12})def (\w{3,60})\(([^\n]{0,400}),\s?\*\*(\w{1,30})\)[^\n]{0,80}:\s*$")
_CALL_ARGUMENTS = r"\b{name}\(((?:[^()\n]|\([^()\n]{{0,100}}\)){{0,400}})\)"


def swallowed(source: str) -> dict[str, set[str]]:
    """Functions shown in full that take any keyword and read only some: name -> the keywords that have an effect."""
    found: dict[str, set[str]] = {}
    lines = source[:MAX_TEXT].splitlines()
    for number, line in enumerate(lines):
        head = _FUNCTION.match(line[:600])
        if head is None:
            continue
        indent, rest = len(head[1]), head[4]
        body: list[str] = []
        for inner in lines[number + 1 : number + 120]:
            if inner.strip() and len(inner) - len(inner.lstrip()) <= indent:
                break
            body.append(inner[:600])
        text = "\n".join(body)
        reads = re.findall(rf"\b{rest}(?:\.get\(|\.pop\(|\[)\s?['\"](\w+)['\"]", text) + re.findall(
            rf"['\"](\w+)['\"] (?:not )?in {rest}\b", text
        )
        others = len(re.findall(rf"\b{rest}\b(?!\.get\(\s?['\"]|\.pop\(\s?['\"]|\[\s?['\"]|:)", text))
        others -= len(re.findall(rf"['\"]\w+['\"] (?:not )?in {rest}\b", text))
        if "return" not in text or others > 0:
            continue  # cut off, or handed on to something that is not seen
        found[head[2]] = set(reads) | set(re.findall(r"(\w+)\s?(?:=|:|,|$)", head[3]))
    return found


def keywords_of(arguments: str, code: str) -> set[str]:
    """Keyword names in the text of a call's arguments, a dictionary passed by ** included."""
    names = set(re.findall(r"(?:^|,)\s?(\w+)\s?=(?!=)", arguments))
    for table in re.findall(r"\*\*(\w+)", arguments):
        for held in re.findall(rf"^\s{{0,20}}{table}\s?=\s?(?:dict\(|\{{)([^\n]{{0,400}})", code, re.MULTILINE):
            names |= set(re.findall(r"(?:^|,)\s?['\"]?(\w+)['\"]?\s?[=:]", held))
    return names


@detector("option_without_effect", code="E1", stage="S2", independence="from_trace")
def option_without_effect(ctx: CodeContext) -> Iterable[Finding]:
    """The method relies on options that the function shown in the run does not have and silently takes."""
    final = ctx.final_write
    if final is None or not ctx.handed_over:
        return
    source = "\n".join(t.output[-40_000:] for t in ctx.run.turns[:final])
    code = ctx.pipeline_code[:MAX_TEXT]
    told = "\n".join((ctx.run.plan.text or "", ctx.text_from(1))).lower()
    for name, known in swallowed(source).items():
        for call in re.finditer(_CALL_ARGUMENTS.format(name=re.escape(name)), code):
            unknown = sorted(
                k for k in keywords_of(call[1], code) - known if k.lower().replace("_", " ") in told.replace("_", " ")
            )
            if unknown:
                yield Finding((final,), f"The method rests on {', '.join(unknown)}, which {name} does not have.", 0.7)
                return


_IGNORED = AnyCase(
    r"(?:unknown|unrecogni[sz]ed|unused|unexpected|unsupported|ignored|ignoring|no such) (?:\w+ ){0,2}?(?:options?|arguments?|keys?|kwargs?|keywords?|parameters?|flags?|settings?|fields?)\b[^\n]{0,160}"
    r"|(?:options?|arguments?|keys?|kwargs?|keywords?|parameters?|flags?|settings?)\b[^\n]{0,80}?\b(?:(?:is|are|was|were|will be) (?:\w+ )?(?:ignored|unused|unknown)|has no effect|have no effect|not (?:recogni[sz]ed|supported|used|known))\b[^\n]{0,80}"
)
_OPTION_NAME = re.compile(r"(?<![\w.])(?:--)?([a-z][a-z0-9]{1,20}(?:[_-][a-z0-9]{1,20}){0,4})(?![\w(.])", re.IGNORECASE)


@detector("ignored_option", code="E1", stage="S2", independence="from_trace")
def ignored_option(ctx: CodeContext) -> Iterable[Finding]:
    """The environment said that an option is not known and was ignored, and the run goes on as if it worked."""
    final = ctx.final_write
    if final is None or not ctx.handed_over:
        return
    code = "\n".join(line.split(" #", 1)[0] for line in ctx.turn(final).code[:MAX_TEXT].splitlines())
    told = re.sub(r"[_-]", " ", "\n".join((ctx.run.plan.text or "", ctx.text_from(1)))).lower()
    for turn in ctx.run.turns[:final]:
        if turn.index in ctx.failed_turns and turn.index != final:
            continue  # an error was raised: the option did not pass in silence
        for line in turn.output[-20_000:].splitlines():
            said = _IGNORED.search(line[:1_000])
            if said is None:
                continue
            for name in _OPTION_NAME.findall(said[0]):
                plain = re.sub(r"[_-]", " ", name).lower()
                given = re.search(
                    rf"--{re.escape(name)}\b|\b{re.escape(name)}\s?=(?!=)|['\"]{re.escape(name)}['\"]\s?:", code
                )
                if given and plain in told and plain not in _OWN_WORDS:
                    yield Finding(
                        tuple(sorted({turn.index, final})),
                        f"The method rests on {name}, which the tool said that it ignores.",
                        0.75,
                    )
                    return


_OWN_WORDS = frozenset(["key", "keys", "option", "options", "the", "and", "are", "is", "model", "input", "output", "was", "were", "device", "dtype"])  # fmt: skip

_REFUSED = re.compile(
    r"(?:(\w{1,60})\(\) )?got an unexpected keyword argument '(\w{2,40})'|unexpected keyword(?: argument)?:? '?(\w{2,40})'?|(?:no such option|unrecognized arguments?|unknown option|invalid option):? '?-{0,2}([A-Za-z][\w-]{1,39})",
    re.IGNORECASE,
)
_REFUSES = AnyCase(r"unexpected keyword|no such option|unrecognized argument|unknown option|invalid option")
"""What every refusal says; most outputs hold none."""
_CLASS_SHOWN = re.compile(r"^\s{0,8}class (\w{2,60})\(", re.MULTILINE)
_SET_ON_MODEL = re.compile(
    r"^\s{0,24}(?:self\.)?(?:(?:net|model|unet|cnn|network|predictor|generator|denoiser|segmenter|detector|m)\d?|\w{1,20}_(?:net|model))\.([a-z]\w{2,40}) ?=(?!=)\s?[\w.\[\]'\"-]{1,60}\s{0,40}(?:#[^\n]{0,200})?$",
    re.MULTILINE,
)
"""A plain value, no layer, set on a network."""
_TORCH_OWN = frozenset(
    [
        "training",
        "eval",
        "train",
        "device",
        "dtype",
        "requires_grad",
        "conf",
        "iou",
        "max_det",
        "classes",
        "agnostic",
        "names",
        "config",
        "generation_config",
        "weight",
        "bias",
        "data",
        "grad",
    ]
)


@detector("option_kept_up", code="E1", stage="S2", independence="from_trace")
def option_kept_up(ctx: CodeContext) -> Iterable[Finding]:
    """An option that the callee refused, or that the class shown never reads, is set in another way that nothing reads, and claimed."""
    final = ctx.final_write
    if final is None or not ctx.handed_over:
        return
    code = ctx.pipeline_code[:MAX_TEXT]
    shown = "\n".join(t.output[-40_000:] for t in ctx.run.turns[:final])
    told = _plain("\n".join((ctx.run.plan.text or "", *(t.text for t in ctx.run.turns), *_notes(code))))
    refused: dict[str, int] = {}
    for turn in ctx.run.turns[:final]:
        output = turn.output[-20_000:]
        for match in _REFUSED.finditer(output) if _REFUSES.search(output) else ():
            if not (match[1] and re.search(rf"\bdef {match[1]}\(", code)):
                refused[(match[2] or match[3] or match[4]).replace("-", "_")] = turn.index
    bare = _without_prints(code)
    candidates = list(refused)
    if _CLASS_SHOWN.search(shown):
        candidates += [m[1] for m in _SET_ON_MODEL.finditer(bare) if m[1] not in _TORCH_OWN]
    for name in dict.fromkeys(candidates):
        kept = re.search(rf"\.{name} ?=(?!=)|\bsetattr\([^,\n]{{1,60}},\s?['\"]{name}['\"]", bare)
        if name in refused:
            kept = kept or re.search(
                rf"\[['\"]{name}['\"]\] ?=(?!=)|\benviron[^\n]{{0,20}}['\"]\w{{0,20}}{name.upper()}['\"]", bare
            )
        read = re.search(
            rf"\.{name}\b(?! ?=(?!=))|\bgetattr\([^\n]{{1,60}}['\"]{name}['\"]|\.get\(['\"]{name}['\"]", bare
        )
        theirs = re.search(rf"\.{name}\b(?!['\"])|getattr\([^\n]{{1,60}}['\"]{name}['\"]", shown)
        if kept and not read and not theirs and _plain(name) in told:
            turns = tuple(sorted({refused.get(name, final), final, ctx.last}))
            how = "was refused and is set in another way" if name in refused else "is set on the network"
            yield Finding(turns, f"The method rests on {name}, which {how}, and nothing shown reads it.", 0.75)
            return


def _plain(text: str) -> str:
    return re.sub(r"[_-]", " ", text[:MAX_TEXT]).lower()


def _notes(code: str) -> list[str]:
    return re.findall(r"#([^\n]{4,200})", code)


def _without_prints(code: str) -> str:
    return "\n".join(line for line in code.splitlines() if not line.lstrip().startswith(("print(", "assert ")))


_METHOD = re.compile(r"\bMETHOD\b\.?(?![^\n]{0,30}\b(?:[Cc]hoose|[Pp]ick|[Ss]elect|any)\b)[^\n]{0,600}")
_SIGNATURE = re.compile(r"\bdef (\w{3,60})\(([^\n]{0,400})\)")
_DEFAULT = re.compile(r"(\w{2,30})(?:: ?\w{1,20})? ?= ?['\"]([\w.-]{1,30})['\"]")


@detector("variant_by_default", code="E1", stage="S2", independence="from_trace")
def variant_by_default(ctx: CodeContext) -> Iterable[Finding]:
    """The brief prescribes a variant of the model; the loader shown takes another one unless asked, and nobody asks."""
    method = _METHOD.search(ctx.run.brief)
    if method is None or ctx.final_write is None or not ctx.handed_over:
        return
    source = "\n".join(t.output[-40_000:] for t in ctx.run.turns[: ctx.final_write])[-MAX_TEXT:]
    code = ctx.serving_code[:MAX_TEXT]
    for name, arguments in _SIGNATURE.findall(source):
        if not re.search(rf"\b{name}\(", code):
            continue
        for option, default in _DEFAULT.findall(arguments):
            about = [line[:400] for line in source.splitlines() if re.search(rf"\b{option}\b", line[:400])]
            values = {v for line in about for v in re.findall(r"['\"]([\w.-]{2,30})['\"]", line)} - {default}
            wanted = [v for v in sorted(values) if _word(v, method[0])]
            if wanted and not _word(default, method[0]) and not any(_word(v, code) for v in wanted):
                why = f"The brief prescribes {wanted[0]}, and {name} was called without it, which gives {default}."
                yield Finding((ctx.final_write,), why, 0.75)
                return


def _word(name: str, text: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text, re.IGNORECASE) is not None
