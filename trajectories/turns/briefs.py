"""What a brief states in words that both the checks of the files and the detectors hold against a
run."""

from __future__ import annotations

import re
from itertools import takewhile

MAX_BRIEF = 200_000
_ARTEFACT = re.compile(
    r"\b(\w{0,40}?(?:calibration|postprocess\w{0,40}|post_process\w{0,40}|normali[sz]ation_map)\.(?:json|csv|yaml|md|txt|py))\b"
)
_RANGE = re.compile(
    r"\blabels?\b[^.\n\d]{0,30}?([01])\s?(?:-|–|to|\.\.+)\s?(\d{1,3})\b", re.IGNORECASE
)
_LIST = re.compile(
    r"\blabels?\b[^.\n\d]{0,30}?([01](?:\s?(?:,\s?(?:and|or)?|/|\band\b|\bor\b)\s?\d{1,3}\b){1,60})",
    re.IGNORECASE,
)
_EACH = re.compile(r"\blabel\s(\d{1,3})\b", re.IGNORECASE)
_SENTENCE = re.compile(r"\.\s+|\n\s{0,20}\n")
_ITEM = re.compile(r"[,;\n]\s{0,20}(?:[-*•]\s{1,4})?(?:and\s|or\s)?|\sand\s|\sor\s", re.IGNORECASE)
_GLOSS = re.compile(r"\([^()\n\d]{0,80}\)")
_NUMBER_FIRST = re.compile(r"(?<![\w.])(\d{1,3})(?!\w|\.\d)[\s=:()-]{0,4}[A-Za-z][^\d]{0,80}$")
_NAME_FIRST = re.compile(r"[A-Za-z][\s=:(]{1,4}(\d{1,3})\)?(?!\w|\.\d)[^\d]{0,60}$")
_SAYS_SO = re.compile(
    r"\blabels?\b|\bbackground\b|\b(?:everything|anything|else) ?(?:else|where)\b", re.IGNORECASE
)


def allowed_labels(brief: str) -> frozenset[int] | None:
    """The label set of a multi-class mask that a brief names, background 0 included; None if it
    names none.

    "labels 0-7", "labels {0, 1, 2}", "0 background, 1 cortex", "background=0, cortex=1", one a
    line, "liver (label 1)".
    """
    brief = brief[:MAX_BRIEF]
    if (match := _RANGE.search(brief)) and int(match[1]) < int(match[2]) <= 255:
        return frozenset(range(int(match[2]) + 1))
    if match := _LIST.search(brief):
        return frozenset({0, *map(int, re.findall(r"\d+", match[1]))})
    for sentence in _SENTENCE.split(brief):
        if _SAYS_SO.search(sentence) and (named := _named(sentence)):
            return named
    each = set(map(int, _EACH.findall(brief)))
    return frozenset({0, *each}) if len(each) >= 2 and 1 in each else None


_UNIT = re.compile(
    r"\bHU\b|\bHounsfield|\bSUV\b|\bdB\b|[\[(]\s?-?\d+(?:\.\d+)?\s?(?:,|\.\.+|to|-|–)\s?\d|\bdata"
    r" range\b|\bin the range\b"
)


def absolute_scale(brief: str) -> bool:
    """Whether the output of an image task is declared in a unit or an interval (HU, SUV, dB, [0,
    1])."""
    start = brief.find("OUTPUT")
    text = (
        brief[max(start, 0) : max(start, 0) + 800].split("\n", 1)[0]
        if start >= 0
        else brief[:MAX_BRIEF]
    )
    return _UNIT.search(text) is not None


def validation_artefacts(brief: str) -> frozenset[str]:
    """Names of calibration and post-processing files that a brief asks validation to leave behind."""
    return frozenset(_ARTEFACT.findall(brief[:MAX_BRIEF]))


def _named(sentence: str) -> frozenset[int] | None:
    """Numbers of a chain of pairs of number and name, in either order, from 0 or 1 on."""
    items = _ITEM.split(_GLOSS.sub(lambda gloss: _ITEM.sub(" ", gloss[0]), sentence))
    for form in (_NUMBER_FIRST, _NAME_FIRST):
        chain: list[int] = []
        for item in (*items, ""):
            match = form.search(item[-200:])
            if match and int(match[1]) not in chain:
                chain.append(int(match[1]))
                continue
            if len(chain) >= 2 and chain[0] in (0, 1) and max(chain) < 2 * len(chain):
                return frozenset({0, *chain})
            chain = [int(match[1])] if match else []
    return None


_NAME = r"[A-Za-z][\w-]{0,29}"
_AS = re.compile(
    rf"\b(?:as|into|class(?:es)?:?|labels?:?|categor(?:y|ies):?|one of:?|either) \(?({_NAME}(?:(?:,"
    rf" (?:or |and )?| or | and ){_NAME}){{2,14}})"
)
_BETWEEN = re.compile(r", (?:or |and )?| or | and |\s?[/|]\s?")
_GOES_ON = frozenset(
    {
        "on",
        "in",
        "at",
        "for",
        "with",
        "from",
        "of",
        "per",
        "by",
        "to",
        "the",
        "a",
        "an",
        "each",
        "one",
        "then",
        "write",
        "use",
        "using",
    }
)
"""Words with which the sentence goes on after the last class ("solid and ground_glass, on 9
slices")."""
_SLASHED = re.compile(
    r"\b(?:as|into|class(?:es)?:?|labels?:?|categor(?:y|ies):?|one of:?|either|pattern,?)"
    rf" \(?({_NAME}(?:\s?[/|]\s?{_NAME}){{2,14}})(?=[\s).,;]|$)"
)
_BRACKETS = re.compile(r"\s?\([^()\n]{1,80}\)")
_SHORT = re.compile(r"[a-z]{3} \(([A-Z][A-Z0-9]{1,8})\)")
_QUOTES = re.compile(r"[`'\"*]")
_BALANCED = re.compile(
    r"\b(?:\w{1,12} of each|\w{1,12} (?:cases |images |patches |tiles |samples )?per class|each"
    r" class (?:has|holds)|balanced|equally many|in equal numbers)\b",
    re.IGNORECASE,
)


def classes(brief: str) -> tuple[str, ...]:
    """Names of at least three classes that a brief asks for ("as CNV, DME or NORMAL", "one of CEN
    (centromere), HOM (...)", "A / B / C", "fat (ADI), stroma (STR)")."""
    text = _QUOTES.sub("", brief[:200_000])
    for form in (text, _BRACKETS.sub("", text)):
        match = _AS.search(form) or _SLASHED.search(form)
        if match:
            names = tuple(
                dict.fromkeys(
                    takewhile(lambda name: name not in _GOES_ON, _BETWEEN.split(match[1]))
                )
            )
            return names if len(names) >= 3 else ()
    lines = (tuple(dict.fromkeys(_SHORT.findall(line[:2_000]))) for line in text.splitlines())
    return next((names for names in lines if len(names) >= 3), ())


def balanced(brief: str) -> bool:
    """Whether the brief says that every class occurs, and how often."""
    return _BALANCED.search(brief[:200_000]) is not None
