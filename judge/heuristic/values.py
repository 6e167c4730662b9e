"""What printed values are by themselves: probabilities, label tables, ranges, boxes, excerpts of an image, equal lists."""

from __future__ import annotations

import itertools
import re

MAX_LINES = 400
_NUMBER = r"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?"
_VECTOR = re.compile(rf"[\[(]\s*({_NUMBER}(?:[,\s]\s{{0,8}}{_NUMBER})+)\s*,?\s*[\])]")
_NAMED = re.compile(rf"[\"']?[A-Za-z][\w -]{{0,30}}[\"']?\s*[:=]\s*({_NUMBER})(?![\d.])")
_DOTS = re.compile(r"-?\d+(?:\.\d+)?\s?(?:\.\.\.?|…)\s?-?\d")
_INTEGERS = re.compile(r"(?:array\()?\[\s*(\d{1,3}(?:[,\s]\s{0,4}\d{1,3})+)\s*\]")
_TABLE = re.compile(r"(?:Counter\()?\{\s*(?:np\.\w+\()?\d{1,3}\)?\s*:\s*(?:np\.\w+\()?\d+\)?(?:,|\})")
_RUN = re.compile(rf"{_NUMBER}(?:[\s,;x()\[\]-]{{1,4}}{_NUMBER})+")
_FILES = re.compile(r"\[(\s*['\"][^\[\]\n]{1,400}['\"]\s*,?)\]")


def output_kinds(text: str) -> frozenset[str]:
    """Kinds of looks (`MEASURES` names them) that the values in an output are."""
    lines = [line[:1_000] for line in text.split("\n")[:MAX_LINES]]
    found = set()
    if any(is_probabilities(line) for line in lines):
        found.add("scores")
    if any(_DOTS.search(line) for line in lines):
        found.add("range")
    if any(_TABLE.search(line) for line in lines):
        found |= {"labels", "size"}
    if any(_counts_up(line) for line in lines):
        found.add("labels")
    if is_excerpt(lines):
        found.add("view")
        if _label_rows(lines) >= 4:
            found.add("labels")
    return frozenset(found)


def is_probabilities(line: str) -> bool:
    """A vector of shares that sum to one, or a list of names with such shares."""
    vectors = [re.split(r"[,\s]+", match.strip(" ,")) for match in _VECTOR.findall(line)]
    if (":" in line or "=" in line) and len(named := _NAMED.findall(line)) >= 2:
        vectors.append(named)
    return any(_sums_to_one(vector) for vector in vectors)


def _sums_to_one(words: list[str]) -> bool:
    if not 2 <= len(words) <= 200 or not any("." in word or "e" in word for word in words):
        return False
    values = [float(word) for word in words]
    return all(0 <= v <= 1 for v in values) and abs(sum(values) - 1) <= min(0.03, 0.005 * len(values) + 0.002)


def _counts_up(line: str) -> bool:
    """Label values as np.unique prints them: small distinct integers from 0 upward."""
    for match in _INTEGERS.findall(line):
        values = [int(word) for word in re.split(r"[,\s]+", match)]
        if len(values) >= 2 and values[0] == 0 and all(a < b for a, b in itertools.pairwise(values)):
            return True
    return False


def _label_rows(lines: list[str]) -> int:
    """Rows in a row of single digits, of which few differ: a part of a label map, where an image has many values."""
    best = rows = 0
    seen: set[str] = set()
    for line in lines:
        digits = line.strip("[] \t,").replace(",", " ").split()
        if len(digits) >= 6 and all(len(d) == 1 and d.isdigit() for d in digits):
            rows, seen = rows + 1, seen | set(digits)
        else:
            rows, seen = 0, set()
        if 2 <= len(seen) <= 8:
            best = max(best, rows)
    return best


def is_excerpt(lines: list[str]) -> bool:
    """Rows of an image: at least four lines in a row of the same length, drawn with few signs or of many numbers."""
    drawn = numbers = width = count = 0
    for line in lines:
        row = re.sub(r"^\s{0,4}\d{1,4}[ :|]", "", line.rstrip("\n"))
        body = row.strip("[] \t,")
        values = re.findall(_NUMBER, body)
        numbers = (
            numbers + 1 if len(values) >= 6 and not re.search(r"[A-Za-z]{2}", body) and len(values) == count else 1
        )
        count = len(values)
        plain = len(row) >= 8 and len(set(row)) <= 12 and not re.search(r"[A-Za-z]{3}|\d{3}|[-=_*]{8}", row)
        drawn = drawn + 1 if plain and abs(len(row) - width) <= 1 else int(plain)
        width = len(row)
        if drawn >= 4 or (numbers >= 4 and count >= 6):
            return True
    return False


def has_box(text: str) -> bool:
    """A line with four numbers in a row that are the corners of a box, x1 < x2 and y1 < y2."""
    for line in text.split("\n")[:MAX_LINES]:
        for run in _RUN.findall(line[:1_000]):
            values = [float(v) for v in re.findall(_NUMBER, run)]
            for x1, y1, x2, y2 in zip(values, values[1:], values[2:], values[3:], strict=False):
                if 0 <= x1 < x2 and 0 <= y1 < y2:
                    return True
    return False


def rows_of_both(text: str, before: re.Pattern[str]) -> bool:
    """Lines of one form, of which one is labelled as the input (`before`) and another is not: a table that compares."""
    forms: dict[str, set[bool]] = {}
    for line in text.split("\n")[:MAX_LINES]:
        label, *rest = line[:1_000].split(maxsplit=1)[:2] or [""]
        form = re.sub(r"[\s]+", " ", re.sub(_NUMBER, "#", rest[0] if rest else ""))
        # A parameter after the name (nlm 0.1) belongs to the label.
        form = re.sub(r"^(?:# )+(?=[A-Za-z])", "", form)
        if form.count("#") >= 2:
            forms.setdefault(form, set()).add(bool(before.search(label)))
    return any(len(sides) == 2 for sides in forms.values())


def same_files_twice(line: str) -> bool:
    """The same list of file names stands twice in a line: those listed and those used."""
    lists = [re.sub(r"[\s'\"]", "", match).strip(",") for match in _FILES.findall(line[:2_000])]
    lists = [item for item in lists if re.search(r"\.\w{3,4}\b", item)]
    return len(lists) >= 2 and len(set(lists)) < len(lists)
