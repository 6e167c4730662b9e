"""Candidates that a plan weighs in running text: what the zoo, the brief or the field offers, and is set aside.

A table or list of candidates is read in `names.candidates`. A short plan says the same in two sentences: "Thresholding:
no, bias field", "the PA-only model misses swelling, the captioner gives one sentence: not used".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .names import CLASSICAL, FAMILIES, ITEM, WEIGHTS, method_names
from .view import View

MAX_SENTENCES = 2_000
MAX_STEMS = 200
"""Sentences of a plan, and names of weights, that are read: hostile plans stay cheap."""

_SENTENCE = re.compile(r"[;\n]|\.(?=\s|$)")
_WRAP = re.compile(r"(?<=[\w,)])\n(?=[a-z(])")
"""A line's end within a sentence."""
_AGAINST = re.compile(
    r":\s*no\b|\bnot? (?:used|chosen|taken|needed|suited|suitable|reliable|robust|available|enough|usable|credible|weights|tool)|\bsecond choice|\brejected|\bdropped|\bdiscarded|\bskipped|\bunused|\bset aside|\bruled out|\bfallback|\bbackup|\bback-up"
    r"|\bweak\w*|\bworse|\btoo \w+|\blacks?\b|\bmiss(?:es|ing)\b|\bfails?\b|\bunreliable|\bcannot|\bcan't|\bwould (?:need|fail|miss)|\bslower|\bless \w+|\bpoor\w*|\bbrittle|\boverkill|\blimited|\bonly for|\bonly if|\bkept for|\bOut\b"
    r"|\b(?:is|are|was|being) (?:the |an? )?(?:old(?:er)?|noisy|blind|outdated|obsolete|deprecated|untrained)\b|\bsuperseded|\bnoisy (?:per|by|according)|\bcalls? it \w+|\btext[- ]only|\bignores? the \w+"
    r"|\b(?:no|without) (?:\w+ )?(?:class(?:es)?|labels?|boxes|images?|head|output|views?)\b|\b(?:sees|takes|reads|uses) no \w+|\bdoes(?: not|n't) (?:see|look|know|use|give|output|cover)\b",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"(?:instead of|rather than|better than|stronger than|over|not) (?:an? |the |plain )?$", re.IGNORECASE
)
_REACH = 90
"""Characters after a name within which it is set aside."""
_LABEL = re.compile(
    r"\b(?:methods|models|options|approaches|families|candidates|alternatives)\b[^:\n]{0,30}:\s*([^\n]{10,600})",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\b(?:use|take|choose|chose[n]?|choice|pick|go with|prefer\w*|best|strongest|most (?:accurate|robust)|winner|decided)\b",
    re.IGNORECASE,
)
_OFFERED = re.compile(
    r"\b(?:FAMILIES|CANDIDATES|OPTIONS|METHODS?)\b[.:]\s*(?:Choose (?:within|from|among)\W{1,3})?([^\n]{10,600})"
)
_MARKS = re.compile(r";|,? or |\(?\b[a-f]\)|\(\d\)")
_PLAIN = re.compile(r"[a-z][a-z-]{3,}")
_VERSION = re.compile(r"v\d{1,2}|[a-z]{2,}\d{1,3}")
_MODEL_WORD = r"(?=[ -](?:models?|nets?|networks?|one|checkpoints?|variants?|versions?|weights|lm)\b)"
"""What must follow a plain part of a name: "the bigram model", "the mini one"."""
_COMMON = frozenset(
    {"model", "models", "method", "methods", "with", "from", "that", "them", "compare", "choose", "within", "network", "image", "images", "finding", "findings", "report", "reports", "data", "public", "weights", "card", "only"}
)  # fmt: skip


_WEIGHS = re.compile(
    rf"{_AGAINST.pattern}|\bbut\b|\bneeds?\b|\bhowever\b|\bweak\b|\bdrawback|\bdownside|\bcons?:|\bagainst\b|\bno longer|\bover-?fits?|\bconfus\w+|\bsensitive to",
    re.IGNORECASE,
)
_HEAD = re.compile(r"\*{0,2}`?([^:\n]{2,80}?)`?\*{0,2}(?::\*{0,2}\s|\s[-–—]{1,2}\s|\s?→\s|,\s|\s(?=\())\s*(\S.*)$")
"""An item's first words, and what it says of them."""
_STEPS = re.compile(
    r"\b(?:steps?|pipeline|workflow|procedure|checks?|checklist|risks?|failures?|problems?|todo|order|post-?processing|schedule|stages?|results?|outcome|findings)\b",
    re.IGNORECASE,
)
"""A heading of a list whose items are done one after the other, or may go wrong."""
_LETTER = re.compile(
    r"(?<!\S)\(?([a-h])\)[ \t]+(?=\S)|^[ \t>*-]{0,8}(?:(?:option|method|family|variant|route|candidate)[ \t])?\(?([a-h])[.:]\*{0,2}[ \t]+(?=\S)",
    re.IGNORECASE | re.MULTILINE,
)
_TAKEN = re.compile(
    r"^[\s>*+=-]*\(?\*{0,2}[a-h]\b\)?\*{0,2}[.!]?[ \t]*$"
    # The article is no letter: "use a net".
    r"|\b(?:use|take|took|choose|chosen|choice|pick|go(?:ing)? with|prefer|run|decision|winner|best)\b[\s:=]{0,3}(?:is |option |method |family |variant )?[(*]{0,3}[a-h](?:[)*]|(?=\s*(?:[.,;:!]|$)))"
    r"|(?:->|=>|→)\s?\(?[a-h]\b\)?[.!]?[ \t]*$|^\W*[a-h]\b\)?(?: it is\b|,? because\b|,? since\b| wins\b)",
    re.IGNORECASE | re.MULTILINE,
)
_MARKED_CHOICE = re.compile(
    r"\b(?:chosen|selected|our choice|winner|used here|preferred)\b|\*\*\s*$|[✓✔]", re.IGNORECASE
)


def weighed(view: View) -> tuple[str, ...]:
    """Names of distinct candidates that the plan's sentences weigh: each that is set aside, and one that is chosen."""
    told = (_set_aside(view), _labelled(view.plan), _weighed_list(view), _lettered(view))
    return max(told, key=len)


def _set_aside(view: View) -> tuple[str, ...]:
    offered = _offered(view.run.brief)
    against: dict[str, None] = {}
    others: dict[str, None] = {}
    stems = "|".join(re.escape(stem) for stem in sorted(view.weight_names, key=lambda s: (-len(s), s))[:MAX_STEMS])
    shown = re.compile(rf"(?<!\w)(?:{stems})(?!\w)", re.IGNORECASE) if stems else None
    parts = _parts(view.weight_names)
    for sentence in _SENTENCE.split(_WRAP.sub(" ", view.plan))[:MAX_SENTENCES]:
        for name, start, end in _mentions(sentence[:1_000], shown, offered, parts):
            refused = _AGAINST.search(sentence[end : end + _REACH]) or _BEFORE.search(sentence[:start])
            (against if refused else others)[name] = None
    chosen = [name for name in others if name not in against][:1]
    return (*chosen, *against) if against else ()


def _parts(stems: Iterable[str]) -> Mapping[str, str]:
    """Parts of the names of weights that one name alone has: "v1" and "bigram" of net_v1, net_v2 and bigram_lm."""
    owners: dict[str, set[str]] = {}
    for stem in sorted(stems)[:MAX_STEMS]:
        pieces = re.split(r"[_.-]+", stem)
        if len(pieces) >= 2:
            for piece in pieces:
                owners.setdefault(piece, set()).add(stem)
    return {piece: min(names) for piece, names in owners.items() if len(names) == 1 and len(piece) >= 2}


def _mentions(
    text: str, shown: re.Pattern[str] | None, offered: tuple[frozenset[str], ...], parts: Mapping[str, str]
) -> list[tuple[str, int, int]]:
    """Candidates that a sentence names, with their place; of names that overlap the longest."""
    patterns = (WEIGHTS, FAMILIES, CLASSICAL, *((shown,) if shown else ()))
    found = [(m.group().lower(), m.start(), m.end()) for pattern in patterns for m in pattern.finditer(text)]
    lower = text.lower()
    for part, stem in parts.items():
        after = "" if _VERSION.fullmatch(part) else _MODEL_WORD
        if part in lower:
            found += [
                (stem, m.start(), m.end()) for m in re.finditer(rf"(?<![\w-]){re.escape(part)}(?!\w){after}", lower)
            ]
    for words in offered:
        for m in _PLAIN.finditer(lower):
            if any(m.group()[:6] == word[:6] for word in words):
                found.append((" ".join(sorted(words)), m.start(), m.end()))
    found.sort(key=lambda item: (item[1], -item[2]))
    kept: list[tuple[str, int, int]] = []
    for name, start, end in found:
        if not kept or start >= kept[-1][2]:
            kept.append((re.sub(r"\.\w{2,11}$", "", name), start, end))
    return kept


def _offered(brief: str) -> tuple[frozenset[str], ...]:
    """The candidates that a brief offers, each by the words that no other one has."""
    match = _OFFERED.search(brief)
    if match is None:
        return ()
    parts = [set(_PLAIN.findall(part.lower())) - _COMMON for part in _MARKS.split(match.group(1).split(". ")[0])]
    parts = [part for part in parts if part]
    if len(parts) < 2:
        return ()
    own = [frozenset(w for w in part if sum(w in other for other in parts) == 1) for part in parts]
    return tuple(part for part in own if part)


def _weighed_list(view: View) -> tuple[str, ...]:
    """A list whose items begin with a method and say what speaks against it, whatever its heading is: "Top-hat: copes
    with uneven light, needs tuning". Two of the items must be methods and most must be weighed; steps are not."""
    best: tuple[str, ...] = ()
    items: list[str] = []
    steps = False
    for line in (*view.plan.split("\n")[:MAX_SENTENCES], "#"):
        match = ITEM.match(line[:1_000])
        if match:
            items.append(match.group(1))
            continue
        if items and line.strip() and line[0].isspace():
            items[-1] += f" {line.strip()[:1_000]}"
            continue
        if not steps and len(items) > max(len(best), 2) and _are_candidates(items, view):
            best = tuple(items)
        if line.strip():
            steps = bool(_STEPS.search(line))
            items = []
        elif items:
            items = []
    return best


def _are_candidates(items: list[str], view: View) -> bool:
    parted = [_HEAD.match(item[:1_000]) for item in items]
    heads = [m.group(1) for m in parted if m]
    named = sum(bool(method_names(head, view.weight_names)) for head in heads)
    against = sum(bool(m and _WEIGHS.search(m.group(2)) and len(m.group(2).split()) >= 3) for m in parted)
    return len(heads) == len(items) and named >= 2 and against * 3 >= 2 * len(items)


def _lettered(view: View) -> tuple[str, ...]:
    """Alternatives under letters, in one line or several, of which one letter is then taken: "a) net once b) net on
    three views c) text prior: not allowed. Take b." Two must name a method or be set aside; lettered steps are taken all."""
    best: tuple[str, ...] = ()
    lines = view.plan.split("\n")[:MAX_SENTENCES]
    for at, line in enumerate(lines):
        begins = _LETTER.search(line[:1_000])
        if begins is None or begins.group(begins.lastindex or 0).lower() != "a":
            continue
        text = "\n".join(other[:1_000] for other in lines[at : at + 8])
        marks = list(_LETTER.finditer(text))
        letters = "".join(m.group(m.lastindex or 0).lower() for m in marks)
        count = next((n for n, letter in enumerate(letters) if letter != "abcdefgh"[n : n + 1]), len(letters))
        ends = [*(m.start() for m in marks[1:]), len(text)]
        texts = [text[m.end() : end] for m, end in zip(marks, ends, strict=True)]
        items = tuple(item.split("\n")[0].strip(" ,;") for item in texts[:count])
        after = "\n".join((*texts[max(count - 1, 0) :], *lines[at + 8 : at + 12]))
        taken = _TAKEN.search(after) or any(_MARKED_CHOICE.search(item) for item in items)
        named = [item for item in items if method_names(item, view.weight_names) or _AGAINST.search(item)]
        if taken and len(named) >= 2 and len(items) > len(best) and all(len(item.split()) >= 2 for item in items):
            best = items
    return best


def _labelled(plan: str) -> tuple[str, ...]:
    """ "Methods: A, B, C. Use A, it is the strongest": at least three, two of them named methods, and a choice after."""
    lines = plan.split("\n")
    for at, line in enumerate(lines):
        match = _LABEL.search(line[:2_000])
        if match is None:
            continue
        listing, *rest = _SENTENCE.split(match.group(1))
        items = tuple(item.strip() for item in re.split(r",| or | and ", listing) if item.strip())
        after = " ".join((*rest, *lines[at + 1 : at + 3]))
        if len(items) >= 3 and sum(bool(method_names(item)) for item in items) >= 2 and _CHOICE.search(after):
            return items
    return ()
