"""What the models that came with a task are called, and how they are called: read from cards, listings and their code.

A plan names its model and its entry point in the words of the zoo. These words are facts of the run: what the
environment showed (class and function definitions, calls in a card, modules) and what the run's own code defines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .names import method_names
from .view import View

MAX_CHARS = 200_000
"""Characters of one code or output in which names are looked for."""

_DEFINED = re.compile(
    r"^(?:[\w./-]{0,120}:?\d{1,6}[:-])?[ \t]*(?:async )?(?:def|class) ([A-Za-z]\w{2,60})", re.MULTILINE
)
"""Definitions, also as grep shows them with file and line."""
_CLASS = re.compile(r"^[ \t]*class ([A-Z]\w{2,60})", re.MULTILINE)
_CALLED = re.compile(r"[\w)`.]?\b([A-Za-z_]\w{2,60})\(")
_MADE = re.compile(r"(?<!class )\b([A-Z]\w{4,60})(?:\.(?:from_\w{1,40}|load\w{0,40}))?\(")
_MODULE = re.compile(r"(?<![\w.-])([A-Za-z]\w{2,40})\.(?:py\b|\w{3,40}\()")
_IMPORTED = re.compile(r"(?:^|[\n;])[ \t]*(?:from|import)[ \t]+([\w., \t]{3,200})")
_DOCUMENT = re.compile(r"\.md\b|\.txt\b|README|CARD|\bdir\(|signature|getdoc", re.IGNORECASE)
_PLANNED_CALL = re.compile(
    r"(?<![\w/.<])((?:[A-Za-z_]\w*\.){0,3}[A-Za-z_]\w{2,60})(?:\([^()\n]{0,10}\)\.(\w{3,40}))?\("
)
_CHAINED = re.compile(
    r"(?<![\w/.<'\"])([A-Z]\w{2,60}|[a-z]\w{2,60})(?:\.\w{2,40})?(?:\([^()\n]{0,60}\))?\.([a-z]\w{2,40})\b(?![\w(./])|`\.?([a-z]\w{2,40})(?:\(\))?`"
)
"""A method or function that a plan names without calling it: `Writer.load("base").compose -> report`, "the `compose` method"."""
_AFTER_MARK = re.compile(
    r"\b(?:entry[ -]?points?|entry|started (?:by|with)|inference (?:by|with|via))\b[\s:=*_]{0,4}(?:is )?([a-z]\w{2,40})\b(?![\w/.-])",
    re.IGNORECASE,
)
_CALL_NAME = r"[A-Za-z]\w{1,40}(?:\.\w{2,40}){0,3}(?:\([^()\n]{0,60}\))?"
_MARKED = re.compile(
    rf"\b(?:entry[ -]?points?|entry|started (?:by|with)|inference (?:by|with|via))\b[\s:=*_]{{0,4}}(?:(?:is|are) )?({_CALL_NAME}(?:\s?(?:\+|->|→|,|&|/|\bthen\b|\band\b)\s?{_CALL_NAME}){{0,4}})",
    re.IGNORECASE,
)
"""What is named right after the mark, one or several: "entry point zoo.load + generate"."""
_NO_START = re.compile(
    r"^(?:load|open|save|write|resize|measure|convert|clip|pad|crop|normali[sz]|suppress|(?:nms|len|range|print|float|int|min|max|mean|sum|argmax|sigmoid|softmax|exp|log)$)",
    re.IGNORECASE,
)
"""Names of calls that read, write or shape something: none of them starts an inference."""
_ON_LINE = re.compile(r"\bentry[ -]?points?\b|\bentry\b[^\w\n]{0,6}(?=[\w`])", re.IGNORECASE)
_ID = r"([A-Za-z][\w-]{2,39})"
_LOADED = re.compile(
    # Writer.load("base_v2"), Writer.from_preset(name="base_v2").
    rf"(?<![\w.])(?!Image|Path|Dataset|DataFrame)[A-Z]\w{{1,40}}\.(?:load|open|build|create|make|from|get)(?:_\w{{1,20}})?\((?:\w{{1,20}}\s?=\s?)?['\"]{_ID}['\"]"
    # zoo.load("base_v2"), hub.load(repo, "base_v2").
    rf"|(?<![\w.])(?!(?:np|numpy|json|pickle|yaml|nib|joblib|pd|cv2|plt|torch|io|data|datasets)\.)[a-z]\w{{1,30}}\.load\((?:[\w./'\"-]{{1,60}},\s?)?(?:\w{{1,20}}\s?=\s?)?['\"]{_ID}['\"]"
    # build_reporter("base_v2"), zoo.open_model(name="base_v2").
    rf"|\b(?:load|open|get|build|create|make|init)_(?:\w{{1,20}}_)?(?:model|net|network|reporter|generator|writer|pipeline|pipe|detector|segmenter|captioner|classifier|encoder|decoder|preset|variant|pretrained|config|weights|checkpoint)\((?:\w{{1,20}}\s?=\s?)?['\"]{_ID}['\"]"
)
_CHOSEN = re.compile(
    # MODELS["base_v2"], --model base_v2, model_name = "base_v2".
    rf"\b\w*(?:MODELS?|ZOO|REGISTRY|CONFIGS?|PRESETS?|VARIANTS?)\[['\"]{_ID}['\"]\]|--(?:model|config|variant|preset|net|checkpoint)(?:[_-]name)?[ =]['\"]?{_ID}(?![\w./-])|\b(?:model|config|variant|preset)(?:_name)?\s?[=:]\s?['\"]{_ID}['\"]",
    re.IGNORECASE,
)
_DEFAULT = re.compile(rf"\bdef (?:load|open|get|build|create|from)\w*\([^()\n]{{0,80}}['\"]{_ID}['\"]")
_ROW = re.compile(
    rf"^[ \t]*(?:\||#{{2,4}}|[-*])[ \t]*[`*]*{_ID}[`*]*[ \t]*(?:\||:|\(|--|->)[^\n]{{0,120}}\.(?:pth?|onnx|ckpt|safetensors|npz|gguf|h5)\b",
    re.MULTILINE,
)
"""A card's row or item that begins with a name and gives its files of weights."""
_HELPER = re.compile(
    r"(?:Data|Dataset|Config|Tokenizer|Vocab\w*|Block|Layer|Transform|Loader|Error|Exception|Utils|Mixin|Base|Head|Stage)$"
)
"""Classes around a model: none of them is one."""
_PLAIN_CLASS = re.compile(r"[A-Z][a-z]*$")
"""A class that is called by one plain word (Reporter, Encoder): plans use the word for anything."""
_GENERIC = frozenset({"model", "models", "net", "nets", "network", "networks", "weights", "common", "utils", "infer"})


def callables(view: View) -> frozenset[str]:
    """Functions, classes and methods that code or cards showed, or that the run's own code defines."""
    names: set[str] = set()
    for step in view.steps:
        if step.ok and step.turn < view.boundary:
            names.update(_DEFINED.findall(step.out))
            if _DOCUMENT.search(step.own):
                names.update(_CALLED.findall(step.out))
    for turn in view.run.turns:
        names.update(_DEFINED.findall(turn.code))
    return frozenset(names)


def modules(view: View) -> frozenset[str]:
    """Modules of the zoo: the environment showed the file or a call of it, and some code imports it."""
    shown: set[str] = set()
    imported: set[str] = set()
    for turn in view.run.turns:
        shown.update(_MODULE.findall(turn.output))
        imported.update(word for names in _IMPORTED.findall(turn.code) for word in re.findall(r"\w+", names))
    return frozenset((shown & imported) - _GENERIC)


def classes(view: View) -> frozenset[str]:
    """Classes that shown code defines."""
    return frozenset(name for s in view.steps if s.ok for name in _CLASS.findall(s.out))


def model_classes(view: View) -> frozenset[str]:
    """Lower-case names of shown classes that are models of the zoo: cards, shown code or the run's own code call them."""
    shown = {c for c in classes(view) if len(c) >= 5 and not _HELPER.search(c) and not _PLAIN_CLASS.match(c)}
    if not shown:
        return frozenset()
    made: set[str] = set()
    for turn in view.run.turns:
        for text in (turn.code, turn.output):
            made.update(name for name in _MADE.findall(text) if name in shown)
    return frozenset(name.lower() for name in made)


def loaded_names(view: View) -> frozenset[str]:
    """Lower-case names by which code, cards and plan load or choose a model: of a configuration, a preset, a variant.

    Only what looks like an identifier (two_view, base-v2): a plain word (frontal) stands in plans without meaning one.
    """
    found: set[str] = set()
    for turn in view.run.turns:
        for text in (turn.code, turn.output):
            text = text[:MAX_CHARS]
            found.update(name for pattern in (_DEFAULT, _ROW) for name in pattern.findall(text))
            found.update(name for pattern in (_LOADED, _CHOSEN) for m in pattern.findall(text) for name in m if name)
    cases = {case.lower() for case in view.cases}
    names = {name.lower() for name in found}
    return frozenset(n for n in names - cases if re.search(r"[a-z]", n) and re.search(r"[\d_-]", n))


def loaded_in(view: View, text: str) -> tuple[str, ...]:
    """Of the names by which a model is loaded those in a text, as they are written: "two-view studies" is not two_view."""
    lower = text.lower()
    return tuple(
        name
        for name in sorted(loaded_names(view))
        if name in lower and re.search(rf"(?<![\w/.-]){re.escape(name)}(?![\w/-]|\.\w{{2,5}}\b)", lower)
    )


def named_methods(view: View, text: str, known: Iterable[str] = ()) -> tuple[str, ...]:
    """Models and methods that a text of the run names, those that are loaded by a name of their own among them."""
    names = method_names(text, view.weight_names.union(known))
    return tuple(dict.fromkeys((*names, *loaded_in(view, text))))


def starts_nothing(name: str) -> bool:
    """A call that a plan names only reads, writes or shapes something; a script is no call."""
    last = name.split("(")[0].rsplit(".", 1)[-1]
    return "(" in name and bool(_NO_START.match(last))


def planned_calls(view: View) -> tuple[str, ...]:
    """Calls that the plan names and that start something known: `describe_study(net, images)`, `ReportPipeline(...)`.

    Where a line of the plan is marked as the entry point, those of such lines alone.
    """
    known, here = callables(view), modules(view)
    marked: list[str] = []
    others: list[str] = []
    for line in view.plan.split("\n"):
        for match in _PLANNED_CALL.finditer(line.replace("`", "")):
            name = ".".join(part for part in match.groups() if part)
            last = name.rsplit(".", 1)[-1]
            if _NO_START.match(last) or not (last in known or name.split(".")[0] in here):
                continue
            (marked if _ON_LINE.search(line) else others).append(name)
    return tuple(dict.fromkeys(marked or others)) or _named_calls(view, known)


def _named_calls(view: View, known: frozenset[str]) -> tuple[str, ...]:
    """Known methods and functions that the plan names without a call; one that only reads or writes is none."""
    found: dict[str, None] = {}
    for line in view.plan.split("\n"):
        for match in _CHAINED.finditer(line[:2_000]):
            before, last, alone = match.groups()
            name = last or alone
            if name in known and not _NO_START.match(name):
                found[f"{before}.{name}" if before else name] = None
        for name in _AFTER_MARK.findall(line[:2_000].replace("`", "")):
            if name in known and not _NO_START.match(name):
                found[name] = None
        for listing in _MARKED.findall(line[:2_000].replace("`", "")):
            for name in re.findall(r"[A-Za-z][\w.]{2,120}", re.sub(r"\([^()]*\)", "", listing)):
                last = name.strip(".").rsplit(".", 1)[-1]
                if last in known and not _NO_START.match(last):
                    found[name.strip(".")] = None
    return tuple(found)


def called(name: str, code: str, view: View) -> bool:
    """Code calls what the plan names: a method of a shown class through any object, else the name itself."""
    *before, last = name.split(".")
    if not re.search(rf"(?<!def )(?<!class )\b{re.escape(last)}\(", code):
        return False
    return (
        not before
        or before[-1] in classes(view)
        or bool(re.search(rf"\b{re.escape(before[-1])}\b", code, re.IGNORECASE))
    )
