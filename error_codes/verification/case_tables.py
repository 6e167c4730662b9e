"""Per-case tables as a run printed them: one row a case, its numbers under the words that stand before them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from statistics import median
from typing import NamedTuple

from ...trajectories.memo import once_a_run
from ...trajectories.models import Run

MAX_LINES = 3_000
MAX_NUMBERS = 60
"""Numbers read of one row."""
_ID = r"[A-Za-z][A-Za-z]{0,20}(?:[_-][A-Za-z]{1,12})?[_-]?\d{1,10}"
_ROW = re.compile(
    rf"^[^A-Za-z0-9]{{0,6}}(?:\d{{1,6}}(?:/\d{{1,6}})?[^A-Za-z0-9]{{1,8}})?"
    rf"(?:(?:case|patient|image|subject|study|scan|slice|tile|file|id|name|\w{{1,12}}_id)['\"]?\s{{0,2}}[=:]?\s{{0,2}}['\"]?)?(?:[\w.-]{{1,60}}/){{0,8}}({_ID})(?![\w-])",
    re.IGNORECASE,
)
_LOGGED = re.compile(
    r"^\s{0,4}(?=[\[\d]{1,2}\d|\[?(?:INFO|DEBUG|WARN|ERROR|[IWED]\s))(?:\[?\d{4}-\d\d-\d\d[T ]?)?(?:\[?\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d{1,6})?\]?[\s|,-]{1,4})?"
    r"(?:\[?(?:INFO|DEBUG|WARN(?:ING)?|ERROR|[IWED](?=\s))\]?[\s:|-]{1,4})?(?:[A-Za-z_.]{1,30}(?::\s| [-|] ))?"
)
"""What a logger puts in front of a message: date, time, level, its own name."""
_PAIR = re.compile(rf"['\"]?({_ID})['\"]?\s{{0,2}}[:=]\s{{0,2}}(-?\d{{1,9}}(?:\.\d{{1,9}})?)(?=\s{{0,2}}[,}}]|$)")
_NO_CASE = re.compile(
    r"^(?:epoch|step|iter\w*|turn|layer|conv|fc|line|fold|batch|channel|class|label|row|col|[xyz]|level|scale|rank|attempt|try|method"
    r"|top|percentile|stage|block|head|torch|numpy|python|float|int|uint|cuda|gpu|cpu|thr|threshold)[_-]?\d",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?<![\w.,\[(])\d{1,3}(?:,\d{3}){1,3}(?![\w,\])]|\.\d)|(?<![\w.])[-+]?\d{1,12}(?:\.\d{1,12})?(?:e[-+]?\d{1,3})?(?=(?:ml|cc|vox|px|HU|dB)\b|(?!\w|\.\d))"
)
"""A number, also with thousands set off by commas (not inside a list), or with a unit right behind it."""
_WORD = re.compile(r"[A-Za-z][A-Za-z_-]{0,30}")
_BARE_NUMBER = re.compile(r"(?<![\w.])\d")
"""A number of its own, as rows have and headers (`mean p5 p95`) do not."""
_HEAD_CELL = re.compile(r"[a-z][\w().%-]{0,30}")
_FILE = re.compile(r"^/[\w./-]{1,80}")
_UNIT_OF_TIME = re.compile(r"\s{1,2}(?:ms|s|secs?|seconds?|minutes?)\b")
_TIME = re.compile(r"^(?:s|sec|secs|seconds|ms|min|time|runtime|runtime_s|took|elapsed|dt|wall|hours?)$", re.IGNORECASE)


class Row(NamedTuple):
    """`values`: (word before the number, how many numbers followed it already) -> number; `rest` is the row after the case."""

    case: str
    values: Mapping[tuple[str, int], float]
    rest: str
    file: str = ""
    """The file of the case that the row is about ("/organ.nii.gz"), where it names one right after the case."""


def rows(output: str, cases: Sequence[str] = ()) -> tuple[Row, ...]:
    """All rows that begin with a case id, in order; a printed mapping of cases to numbers gives a row each.

    `cases` are ids that are known from the delivered folders: they need no number in them, and a logger's name may precede.
    """
    found: list[Row] = []
    known = _of_known(cases)
    head: list[str] = []
    for raw in output.splitlines()[-MAX_LINES:]:
        line = _LOGGED.sub("", raw[:2_000], count=1)
        pairs = _PAIR.findall(line)
        if len(pairs) >= 3 and len({case for case, _ in pairs}) == len(pairs):
            found += [
                Row(case, {("", 0): float(value)}, value) for case, value in pairs[:500] if not _NO_CASE.match(case)
            ]
            continue
        match = _ROW.match(line)
        if match is None or _NO_CASE.match(match[1]):
            match = known.match(line) if known else None
        if match:
            file = _FILE.match(line[match.end() :])
            rest = line[match.end() + (file.end() if file else 0) :]
            found.append(Row(match[1], _under(head, _numbers(rest), rest), rest, file[0] if file else ""))
        elif re.search(r"[^\W_]", line):
            head = _HEAD_CELL.findall(line.lower()) if not _BARE_NUMBER.search(line[:400]) and len(line) < 400 else []
    return tuple(found)


def _of_known(cases: Sequence[str]) -> re.Pattern[str] | None:
    """What finds a known case at the beginning of a line, behind at most three short words or a folder."""
    usable = sorted((case for case in cases if len(case) >= 3), key=len, reverse=True)[:500]
    names = "|".join(map(re.escape, usable))
    before = r"[^A-Za-z0-9]{0,6}(?:[\w.-]{1,20}[\s:|\]/]{1,3}){0,3}['\"]?"
    return re.compile(rf"^{before}(?<![\w-])({names})(?![\w-])") if usable else None


_CELL = re.compile(r"\([^()\n]{0,80}\)|\[[^\[\]\n]{0,80}\]|'[^'\n]{0,80}'|[^\s|,;]{1,80}")


def _under(head: Sequence[str], values: dict[tuple[str, int], float], rest: str) -> dict[tuple[str, int], float]:
    """Numbers that stand without words, under the words of the header line above (its first names the case).

    Where words, yes and no or shapes stand between them, cell by cell.
    """
    if len(head) == len(values) + 1 and not any(name for name, _ in values):
        numbers = list(values.values())
        names = head[1:]
    else:
        cells = _CELL.findall(rest)
        pairs = [
            (name, float(cell)) for name, cell in zip(head[1:], cells, strict=False) if _PLAIN_NUMBER.fullmatch(cell)
        ]
        if len(head) != len(cells) + 1 or len(pairs) < 2:
            return values
        names, numbers = [name for name, _ in pairs], [number for _, number in pairs]
    return {(name, names[:i].count(name)): v for i, (name, v) in enumerate(zip(names, numbers, strict=True))}


_SHAPE = re.compile(r"(?:\b(?:shape|size)\W{0,4}\[|\()\d{1,5}(?:, ?\d{1,5}){1,4}[)\]]", re.IGNORECASE)
"""The shape of an array: it is no quantity of a case, and that of an output repeats the input's."""
_PLAIN_NUMBER = re.compile(r"[-+]?\d{1,12}(?:\.\d{1,12})?")


def rows_of(run: Run, turn: int) -> tuple[Row, ...]:
    """The rows of one turn's output, read once a run."""
    known = _known_rows(run)
    if turn not in known:
        known[turn] = rows(run.turn(turn).output, run.outputs.cases)
    return known[turn]


@once_a_run
def _known_rows(run: Run) -> dict[int, tuple[Row, ...]]:
    return {}


def _numbers(rest: str) -> dict[tuple[str, int], float]:
    values: dict[tuple[str, int], float] = {}
    seen: dict[str, int] = {}
    word, end = "", 0
    shapes = [match.span() for match in islice(_SHAPE.finditer(rest), MAX_NUMBERS)]
    for match in islice(_NUMBER.finditer(rest), MAX_NUMBERS):
        if any(a < match.start() < b for a, b in shapes):
            continue
        if _UNIT_OF_TIME.match(rest, match.end()):
            continue
        words = _WORD.findall(rest[end : match.start()])
        word, end = (words[-1].lower() if words else word), match.end()
        values[word, seen.get(word, 0)] = float(match[0].replace(",", ""))
        seen[word] = seen.get(word, 0) + 1
    return values


class Section(NamedTuple):
    """One number of a row with all words that belong to it."""

    words: str
    value: float


_CUT = re.compile(r"[|;,(){}\[\]]|\s-\s")
_UNIT = re.compile(r"^['\"]?\s{0,2}((?:ml|cc|cm3|mm3|vox(?:els?)?|px|pixels?|HU|dB|mm|%)(?![\w]))", re.IGNORECASE)


def sections(row: Row) -> tuple[Section, ...]:
    """The numbers of a row with the words before them (since the last number or mark) and the unit behind them.

    Under a header the words are its cell. Words that follow numbers throughout ("721 organ, 29 lesion") belong to these.
    """
    numbers = _numbers(row.rest)
    if row.values.keys() != numbers.keys():
        return tuple(Section(name, value) for (name, _), value in row.values.items())
    spans = [m for m in islice(_NUMBER.finditer(row.rest), MAX_NUMBERS) if not _in_shape(row.rest, m.start())]
    parts = [row.rest[a : b.start()] for a, b in zip([0, *(m.end() for m in spans)], spans, strict=False)]
    tail = row.rest[spans[-1].end() :] if spans else ""
    behind = not re.search(r"[A-Za-z]", parts[0]) and re.search(r"[A-Za-z]{3}", tail) if spans else None
    found, before = [], ""
    for i, match in enumerate(spans):
        if _UNIT_OF_TIME.match(row.rest, match.end()):
            continue
        following = parts[i + 1] if i + 1 < len(parts) else tail
        unit = _UNIT.match(following)
        if behind:
            words = _CUT.split(following)[0]
        else:
            pieces = _CUT.split(parts[i])
            own = next((piece for piece in reversed(pieces) if re.search(r"[A-Za-z]{2}", piece)), "")
            own = _UNIT.sub("", own) if i else own
            before = words = own if re.search(r"[A-Za-z]", own) else before
        found.append(
            Section(
                f"{words} {unit[1] if unit and not behind else ''}".strip(" :='\""), float(match[0].replace(",", ""))
            )
        )
    return tuple(found)


def _in_shape(rest: str, place: int) -> bool:
    return any(m.start() < place < m.end() for m in islice(_SHAPE.finditer(rest), MAX_NUMBERS))


def columns(table: Iterable[Row]) -> dict[tuple[str, int], dict[str, float]]:
    """Column -> case -> number (the last one printed); columns of times are left out."""
    found: dict[tuple[str, int], dict[str, float]] = {}
    for row in table:
        for key, value in row.values.items():
            if not _TIME.match(key[0]) or (key[0] == "min" and ("max", key[1]) in row.values):
                found.setdefault(key, {})[row.case] = value
    return found


def outliers(column: Mapping[str, float]) -> tuple[str, ...]:
    """Cases apart from an otherwise tight column: three times, a third or the other sign of what the rest agrees on, or a
    seventh off it and five times further away than the rest reaches.

    At least five cases, at most two in five of them off; the rest may scatter by a sixth of its median, so that a column
    which varies by nature (sizes of tumours) has no outliers.
    """
    if len(column) < 5:
        return ()
    middle = median(column.values())
    off = [case for case, value in column.items() if not _near(value, middle)] or _beyond(column, middle)
    rest = [value for case, value in column.items() if case not in off]
    if not off or not middle or len(off) > 0.4 * len(column) or len(rest) < 4:
        return ()
    spread = median(abs(value - median(rest)) for value in rest) / abs(middle)
    return tuple(off) if spread <= 1 / 6 else ()


APART = 5.0
"""Times the range of all other cases by which a case lies off them."""


def _beyond(column: Mapping[str, float], middle: float) -> list[str]:
    """The furthest cases, at most two in five, where a gap of that size lies between them and all others."""
    order = sorted(column, key=lambda case: abs(column[case] - middle), reverse=True)
    for n in range(1, int(0.4 * len(order)) + 1):
        rest = [column[case] for case in order[n:]]
        low, high = min(rest), max(rest)
        gap = min(max(low - column[case], column[case] - high) for case in order[:n])
        if len(rest) >= 4 and gap >= 0.15 * abs(middle) and gap >= APART * (high - low):
            return order[:n]
    return []


def _near(value: float, middle: float) -> bool:
    return value * middle > 0 and 1 / 3 < value / middle < 3


def joined(parts: Sequence[str], most: int = 3) -> str:
    shown = ", ".join(parts[:most])
    return f"{shown} and {len(parts) - most} more" if len(parts) > most else shown


def cross_counts(lines: Iterable[str], labels: Sequence[str]) -> dict[str, dict[str, int]]:
    """Group -> label -> count, as printed over two factors: ('B', 'NORMAL') 9; B NORMAL 9; B: {'NORMAL': 9, ...}."""
    if len(labels) < 2:
        return {}
    names = "|".join(map(re.escape, sorted(labels, key=len, reverse=True)))
    one = re.compile(
        rf"^\W{{0,6}}(?:[A-Za-z_]{{1,20}}[ =:]{{1,3}})?([\w.-]{{1,20}})['\"]?[\s,|:/]{{1,6}}['\"]?({names})['\"]?[)\s,|:=]{{1,8}}(\d{{1,6}})\W{{0,4}}$"
    )
    many = re.compile(rf"['\"]?(?<![\w-])({names})['\"]?\s{{0,3}}[:=]\s{{0,3}}(\d{{1,6}})(?![\d.])")
    head = re.compile(r"^\W{0,4}(?:[A-Za-z_]{1,20}[ =:]{1,3})?([\w.-]{1,20})['\"]?\s{0,6}[:=|(]?[^{]{0,30}[{(\[]")
    found: dict[str, dict[str, int]] = {}
    for line in lines:
        single = one.match(line[:400])
        if single and single[1] not in labels:
            found.setdefault(single[1], {})[single[2]] = int(single[3])
            continue
        for part in _split_groups(line[:2_000]):
            first = head.match(part)
            pairs = many.findall(part)
            if first and pairs and first[1] not in labels:
                found[first[1]] = {label: int(number) for label, number in pairs}
    return found


def _split_groups(line: str) -> Iterator[str]:
    """The parts of a printed mapping of mappings, cut where one inner mapping ends."""
    for part in line.split("}"):
        yield part.lstrip(", {")
