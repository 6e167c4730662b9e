"""What a brief demands of an output file beyond its track's format: the number type and the range
of its values."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...trajectories.turns.briefs import classes

_DTYPE = re.compile(r"\b(float(?:16|32|64)|u?int(?:8|16|32|64))\b", re.IGNORECASE)
_RANGE = re.compile(r"\bin \[\s?(-?\d{1,6}(?:\.\d{1,6})?)\s?,\s?(-?\d{1,6}(?:\.\d{1,6})?)\s?\]")
_SENTENCE = re.compile(r"\.\s|\n")
_CLAUSE = re.compile(r"[.;]\s|\n|agents?_outputs/")
MAX_SUV = 1_000.0
"""Uptake values beyond it are activity per volume (Bq/mL): a bladder full of tracer stays below
some hundred."""
SLACK = 1e-3
"""Share of the range by which rounding may leave it."""


class Demand(NamedTuple):
    """A NumPy type name and an interval; None where the brief names none."""

    dtype: str | None = None
    low: float | None = None
    high: float | None = None

    def leaves(self, low: float, high: float) -> bool:
        """Whether values from `low` to `high` leave the interval."""
        if self.low is None or self.high is None:
            return False
        slack = SLACK * (self.high - self.low)
        return low < self.low - slack or high > self.high + slack


_SECTIONS = re.compile(
    r"\bfindings\b[^.\n]{0,60}\b(?:and|,|/|&)[^.\n]{0,30}\bimpression\b", re.IGNORECASE
)
_ONLY = re.compile(r"\bonly\b|\boptional|\bno impression|\bwithout\b", re.IGNORECASE)
_PIXELS = re.compile(r"\bpixels?\b|\bpx\b", re.IGNORECASE)
_RELATIVE = re.compile(r"\bnormali[sz]ed\b|\brelative\b|\bfractions?\b", re.IGNORECASE)
_OUTPUT_FILE = re.compile(
    r"agents?_outputs/((?:[<{\[][^>}\]\n/]{1,40}[>}\]]/|case_?id/|\*/)?)([\w-]{2,60}\.(?:csv|json|npy|nii\.gz|txt|md|tsv|yaml))\b"
)
_CASE_FILE = re.compile(
    r"agents?_outputs/(?:[<{\[][^>}\]\n/]{1,40}[>}\]]|case_?id|\*)/([\w-]{1,60}\.\w{1,8}(?:\.gz)?)\b"
)
_SIMILAR = re.compile(
    r"(?:,|\band\b|\bplus\b|\bwith\b) (?:a |an |also"
    r" )?([\w-]{2,60}\.(?:csv|json|npy|nii\.gz|txt|md|tsv))\b"
)
_VOLUNTARY = re.compile(
    r"\boptional|\bmay\b|\bif you (?:like|want)\b|\bnot required\b", re.IGNORECASE
)
_PLANAR = re.compile(r"\b2[- ]?D\b|\btwo[- ]dimensional\b", re.IGNORECASE)
_TWO = re.compile(
    r"[Cc]lassify [^.\n]{1,120}? (?:as|into|for) ([A-Za-z][\w-]{1,29}) (?:or|and|versus|vs\.?)"
    r" ([A-Za-z][\w-]{1,29})\b"
)


def planar(brief: str) -> bool:
    """Whether the brief speaks of images with two axes."""
    return _PLANAR.search(brief) is not None


def sections(brief: str, name: str = "report.txt") -> tuple[str, ...]:
    """Sections that the sentence on the report names; empty where it names none or asks for one of
    them only."""
    place = brief.find(name)
    text = brief[place : place + 400].split("\n\n", 1)[0] if place >= 0 else ""
    match = _SECTIONS.search(text)
    if match is None or _ONLY.search(text[: match.end() + 40]):
        return ()
    # "findings (stones, wall) and an impression" says what to write about, not how to head it
    return () if "(" in match[0] and match[0] == match[0].lower() else ("findings", "impression")


_MEASURED = re.compile(
    r"\b(?:lengths?|sizes?|diameters?|measurements?|thickness\w*|distances?|volumes?)\b[^.;:\n]{0,20}?"
    r" in (cm|mm|ml)\b(?:[^.;\n]{0,12}\b(one|two|no) decimals?)?",
    re.IGNORECASE,
)
_MEASURE = re.compile(
    r"(?<![\w.])\d{1,5}(?:\.(\d{1,4}))?\s?(cm|mm|ml|cc|millilit\w*|centimet\w*|millimet\w*)\b",
    re.IGNORECASE,
)
_AT_MOST = re.compile(
    r"\b(?:at most|no more than|not more than|up to|a maximum of|maximum) (\d{1,4})"
    r" (words|sentences)\b",
    re.IGNORECASE,
)
_DECIMALS = {"no": 0, "one": 1, "two": 2}
_SENTENCE_END = re.compile(r"[A-Za-z)][.!?](?=\s|$)")


def wrong_wording(brief: str, text: str, name: str = "report.txt") -> str:
    """What in a report breaks the brief's sentence on it: units, decimals, length; empty when
    nothing does."""
    place = brief.find(name)
    asked = (
        re.split(r"\bMetric\b|\n\n", brief[place : place + 600], maxsplit=1)[0]
        if place >= 0
        else ""
    )
    if (wanted := _MEASURED.search(asked)) is not None:
        unit = wanted[1].lower()
        kinds = ("ml", "cc", "mi") if unit == "ml" else ("cm", "mm", "ce", "mi")
        alike = [
            (unit_of(m[2]), len(m[1] or ""))
            for m in _MEASURE.finditer(text)
            if m[2].lower().startswith(kinds)
        ]
        mine = [digits for found, digits in alike if found == unit]
        if alike and not mine:
            return f"measures stand in {alike[0][0]}, not in {unit}"
        decimals = _DECIMALS.get((wanted[2] or "").lower())
        if decimals is not None and mine and all(digits != decimals for digits in mine):
            return f"measures have {mine[0]} decimals, not {decimals}"
    for number, what in _AT_MOST.findall(asked):
        count = len(text.split()) if what.lower() == "words" else len(_SENTENCE_END.findall(text))
        if count > int(number):
            return f"has {count} {what}, at most {number} are wanted"
    return ""


def unit_of(word: str) -> str:
    """cm, mm or ml, as a text writes it."""
    plain = word.lower()
    if plain in ("cc", "ml") or plain.startswith("millil"):
        return "ml"
    return "cm" if plain.startswith(("cm", "ce")) else "mm"


def wants_pixels(brief: str) -> bool:
    """Whether boxes are to be in pixels."""
    place = brief.find("prediction.json")
    text = brief[place : place + 500] if place >= 0 else ""
    return _PIXELS.search(text) is not None and not _RELATIVE.search(text)


def wants_score(brief: str) -> bool:
    """Whether the shown schema of a box has a score that is not called optional."""
    place = brief.find('"score"')
    return (
        place >= 0
        and "x1" in brief[max(0, place - 200) : place]
        and not _VOLUNTARY.search(brief[place : place + 120])
    )


def files(brief: str) -> tuple[tuple[bool, str], ...]:
    """(one a case?, name) of every file that the brief wants below the output folder, optional ones
    left out."""
    found: dict[tuple[bool, str], None] = {}
    for match in _OUTPUT_FILE.finditer(brief):
        sentence = _CLAUSE.split(brief[match.end() : match.end() + 400], maxsplit=1)[0]
        before = _CLAUSE.split(brief[max(0, match.start() - 60) : match.start()])[-1]
        if not _VOLUNTARY.search(sentence) and not _VOLUNTARY.search(before):
            found[bool(match[1]), match[2]] = None
            for other in _SIMILAR.finditer(sentence):
                found[bool(match[1]), other[1]] = None
    return tuple(found)


def other_format(brief: str, known: frozenset[str]) -> tuple[str, ...]:
    """Names of a case's files where the brief asks for others than a track knows, and nowhere
    speaks of one that it knows."""
    names = dict.fromkeys(_CASE_FILE.findall(brief))
    return () if any(name in brief for name in known) else tuple(names)


def class_names(brief: str) -> tuple[str, ...]:
    """Class names that a classification brief lists; empty when it lists none."""
    match = _TWO.search(brief)
    return classes(brief) or ((match[1], match[2]) if match else ())


def foreign_label(label: str, names: tuple[str, ...], brief: str) -> bool:
    """Whether a label is none of the listed classes. One that the brief spells somewhere is left
    alone: a name of two words."""
    if not names or label in names:
        return False
    if label.lstrip("-").isdigit():
        return not re.search(
            rf"(?<![\w.]){label}\b\s{{0,2}}(?:[=:(-]|is\b|for\b)?\s{{0,2}}\(?(?:{'|'.join(map(re.escape, names))})",
            brief,
        )
    return re.search(rf"(?<!\w){re.escape(label)}(?!\w)", brief) is None


def wrong_unit(brief: str, name: str, low: float, high: float) -> str:
    """What is wrong with values from `low` to `high` by the unit that the file's sentence names;
    empty when nothing is."""
    place = brief.find(f"/{name}")
    sentence = _SENTENCE.split(brief[place : place + 400], maxsplit=1)[0] if place >= 0 else ""
    shown = f"{name} runs from {low:.4g} to {high:.4g}"
    if re.search(r"\bHU\b|Hounsfield", sentence):
        if high - low <= 10:
            return f"{shown}: no Hounsfield units"
        if name == "sct.nii.gz" and low >= 0:
            return f"{shown}: no air, so no Hounsfield units"
    if re.search(r"\bSUV\b", sentence) and high > MAX_SUV:
        return f"{shown}: no standardised uptake values"
    if re.search(r"\bnon-?negative\b", sentence, re.IGNORECASE) and low < -SLACK * max(
        abs(high), 1e-9
    ):
        return f"{shown}, not non-negative"
    return ""


def demanded(brief: str, name: str) -> Demand:
    """What the sentence that names the file says on its numbers; the first sentence with the
    output's path counts."""
    place = brief.find(f"/{name}")
    if place < 0:
        return Demand()
    sentence = _SENTENCE.split(brief[place + len(name) + 1 : place + 400], maxsplit=1)[0]
    types = {t.lower() for t in _DTYPE.findall(sentence)}
    interval = _RANGE.search(sentence)
    return Demand(
        types.pop() if len(types) == 1 else None,
        float(interval[1]) if interval else None,
        float(interval[2]) if interval else None,
    )
