"""What the models that came with a task are called, and how they are called: read from cards, listings and their code.

A plan names its model and its entry point in the words of the zoo. These words are facts of the run: what the
environment showed (class and function definitions, calls in a card, modules) and what the run's own code defines.
"""

from __future__ import annotations

import re

from .view import View

_DEFINED = re.compile(r"^[ \t]*(?:async )?(?:def|class) ([A-Za-z]\w{2,60})", re.MULTILINE)
_CLASS = re.compile(r"^[ \t]*class ([A-Z]\w{2,60})", re.MULTILINE)
_CALLED = re.compile(r"[\w)`.]?\b([A-Za-z_]\w{2,60})\(")
_MADE = re.compile(r"(?<!class )\b([A-Z]\w{4,60})(?:\.(?:from_\w{1,40}|load\w{0,40}))?\(")
_MODULE = re.compile(r"(?<![\w.-])([A-Za-z]\w{2,40})\.(?:py\b|\w{3,40}\()")
_IMPORTED = re.compile(r"(?:^|[\n;])[ \t]*(?:from|import)[ \t]+([\w., \t]{3,200})")
_DOCUMENT = re.compile(r"\.md\b|\.txt\b|README|CARD|\bdir\(|signature|getdoc", re.IGNORECASE)
_PLANNED_CALL = re.compile(
    r"(?<![\w/.<])((?:[A-Za-z_]\w*\.){0,3}[A-Za-z_]\w{2,60})(?:\([^()\n]{0,10}\)\.(\w{3,40}))?\("
)
_NO_START = re.compile(
    r"^(?:load|open|save|write|resize|measure|convert|clip|pad|crop|normali[sz]|suppress|(?:nms|len|range|print|float|int|min|max|mean|sum|argmax|sigmoid|softmax|exp|log)$)",
    re.IGNORECASE,
)
"""Names of calls that read, write or shape something: none of them starts an inference."""
_ON_LINE = re.compile(r"\bentry[ -]?points?\b|\bentry\b[^\w\n]{0,6}(?=[\w`])", re.IGNORECASE)
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
    return tuple(dict.fromkeys(marked or others))


def called(name: str, code: str, view: View) -> bool:
    """Code calls what the plan names: a method of a shown class through any object, else the name itself."""
    *before, last = name.split(".")
    if not re.search(rf"(?<!def )(?<!class )\b{re.escape(last)}\(", code):
        return False
    return not before or before[-1] in classes(view) or bool(re.search(rf"\b{re.escape(before[-1])}\b", code))
