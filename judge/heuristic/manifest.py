"""Which images a manifest lists for a case, and which of them an execution shows to have gone into its report."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from .handed import handed
from .programs import Step
from .view import View

MAX_CASES = 60
"""Names that are looked up in earlier outputs for one step: hostile code stays cheap."""

_FILE = re.compile(r"[\w-]{1,60}\.(?:png|jpe?g|dcm|dicom|npy|tiff?|bmp|webp|nii(?:\.gz)?)\b", re.IGNORECASE)
_CASE_KEY = re.compile(r"(?:\w{1,20}_)?(?:id|case|study|exam|accession|patient|name)$", re.IGNORECASE)
_LIST = re.compile(r"[\[({][^\[\](){}\n]{1,600}[\])}]")
_NAME = re.compile(r"[\"']([\w.-]{2,60})[\"']")
_WORD = re.compile(r"(?<![\w.-])([A-Za-z][\w-]{0,40}\d[\w-]{0,20})(?![\w.])")
_RESULT = re.compile(r"\b(?:used|fed|loaded|encoded|read|opened|tokens?|prob\w*)\b|\d\.\d", re.IGNORECASE)
"""A line on what was made of an image: a listing has none of these."""
_LISTED = re.compile(r"\b(?:manifest|listed|expected|on disk)\b", re.IGNORECASE)
_KEEPS_FILE = re.compile(r"\.(?:append|add)\(\s*\w+\[['\"](?:\w*file\w*|\w*image\w*|\w*path\w*|name)['\"]\]\s*\)")
"""A program that keeps the file of every record that it went through."""
_USE = re.compile(r"\b(?:used|fed|loaded|encoded|processed|opened|passed|given|went in|read)\b", re.IGNORECASE)
_IMAGES = re.compile(
    r"\b(?:n_)?(?:images?|views?|films?|frames?|projections?|sweeps?|pictures?|files)\b", re.IGNORECASE
)
_WHOLE = re.compile(r"\b(?:manifest|listed|expected|total|all|of|n_\w+)\b|/|==", re.IGNORECASE)
_COUNT = re.compile(r"(?<![\w.-])\d{1,3}(?![\w.-]*\d)(?![\w-])")
_TABLE_READ = re.compile(r"read_csv\(|read_table\(|DictReader\(|csv\.reader\(|read_json\(")
_COLUMN = re.compile(
    r"(?<!os)\.(?:(?:\w{1,20}_)?file(?:_?name)?|image|image_\w{1,20}|img|frame|png)\b(?!\()|\[['\"](?:\w*file\w*|\w*image\w*|\w*path\w*|img|frame|png)['\"]\]"
)
_OPENED = re.compile(r"Image\.open\(|imread\(|dcmread\(|read_image\(|nib\.load\(|ReadImage\(|exists\(|is_?file\(")
_ROWS_OF_CASE = re.compile(
    r"\b(?:grep|awk|jq|sed)\b[^\n]{0,200}manifest|manifest[^\n]{0,200}\|[^\n]{0,80}\b(?:grep|awk|jq)\b"
)
_EACH_ROW = re.compile(r"manifest[^\n]{0,200}\|[^\n]{0,120}\b(?:read|xargs)\b|\bdone\s*<[^\n]{0,80}manifest")
_ON_DISK = re.compile(r"\b(?:ls|file|stat|identify|diff|comm|sha1sum|md5sum)\b[ \t]|\btest -[ef]\b|\[ -[ef] ")
_MANY = r"(?:images|views|films|frames|slices|projections|sweeps|pictures|radiographs|scans)"
_RATIO = re.compile(
    rf"\b(?:n_)?{_MANY}\b['\"]?\s{{0,3}}[=:]?\s{{0,3}}(\d{{1,3}})\s?(?:/|of)\s?\1\b(?![./]\d)|(?<![\w./])(\d{{1,3}})\s?(?:/|of)\s?\2 {_MANY}\b",
    re.IGNORECASE,
)
_ONLY_THERE = re.compile(r"\b(?:exists?|on disk|found|present|missing|listed|readable|there)\b", re.IGNORECASE)
_COUNTED = re.compile(r"\blen\((.{1,200}?)\)(?=\W|$)")


def cases_of(step: Step) -> tuple[str, ...]:
    """Names of cases that a step speaks of: those known from the run's folders, then words of its own code in their
    order, at most `MAX_CASES`."""
    names = (*step.facts.cases, *_NAME.findall(step.own), *_WORD.findall(step.own))
    return tuple(dict.fromkeys(names))[:MAX_CASES]


def listed(view: View, case: str, before: int) -> frozenset[str]:
    """Image files of a case that earlier turns printed beside its name; with them, lines of this turn marked as listed."""
    found: set[str] = set()
    named = re.compile(rf"(?<![\w-]){re.escape(case)}(?![\w-])")
    for turn in view.run.turns[:before]:
        if turn.index < before and case not in turn.output:
            continue
        for line in turn.output.split("\n")[:2_000]:
            if (turn.index < before and named.search(line)) or _LISTED.search(line.split("used")[0]):
                found.update(_FILE.findall(line[:2_000]) if turn.index == before or named.search(line) else ())
    return frozenset(found)


def printed_manifests(view: View, before: int) -> dict[str, tuple[frozenset[str], ...]]:
    """What earlier turns printed of manifests: for each case its images, each by the names that a log may give it (its
    file, the file without its ending, its view)."""
    found: dict[str, tuple[frozenset[str], ...]] = {}
    for turn in view.run.turns[: before - 1]:
        if "{" not in turn.output:
            continue
        for record in _records(turn.output):
            case = next((v for k, v in record.items() if _CASE_KEY.match(k) and isinstance(v, str)), "")
            images = next((v for v in record.values() if isinstance(v, list) and len(v) >= 2), [])
            names = tuple(_names_of(image) for image in images[:60])
            if case and names and all(names):
                found[case] = names
    return found


def _records(text: str) -> Iterator[dict[str, Any]]:
    """JSON objects that an output shows, at most `MAX_CASES`, with the objects in a list of them."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    for _ in range(MAX_CASES):
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            if isinstance(value, dict):
                yield value
                for inner in value.values():
                    if isinstance(inner, list):
                        yield from (r for r in inner[:MAX_CASES] if isinstance(r, dict))
        at = text.find("{", end)


def _names_of(image: object) -> frozenset[str]:
    """Names of one image: of its file, and the short words of its record (its view)."""
    words = [image] if isinstance(image, str) else list(image.values()) if isinstance(image, dict) else []
    told = [w for w in words if isinstance(w, str) and 2 <= len(w) <= 60]
    files = [w.rsplit("/", 1)[-1] for w in told if _FILE.search(w)]
    return (
        frozenset((*files, *(f.split(".")[0] for f in files), *(w for w in told if " " not in w)))
        if files
        else frozenset()
    )


def logs_listed(view: View, step: Step) -> bool:
    """The output names every image that the case's manifest, printed before, lists, on lines with the case's name."""
    if "manifest" not in step.code.lower():
        return False
    lines = step.out.split("\n")[:2_000]
    for case, images in printed_manifests(view, step.turn).items():
        told = "\n".join(line[:2_000] for line in lines if re.search(rf"(?<![\w-]){re.escape(case)}(?![\w-])", line))
        if told and all(any(re.search(rf"(?<![\w-]){re.escape(n)}(?![\w-])", told) for n in names) for names in images):
            return True
    return False


def used(step: Step) -> frozenset[str]:
    """Image files that a step's output shows to have gone through the model: lines that give a result beside the file,
    and lists of files from a program that keeps each record's file."""
    found: set[str] = set()
    keeps = bool(_KEEPS_FILE.search(step.code))
    for line in step.out.split("\n")[:2_000]:
        told = line[:2_000]
        if _LISTED.search(told) and not _USE.search(told):
            continue
        if _RESULT.search(_FILE.sub("", told)) or (keeps and _LIST.match(told.strip())):
            found.update(_FILE.findall(told))
    return frozenset(found)


def all_used(view: View, step: Step) -> bool:
    """Every image that was listed for the step's case is shown as used. At least two must be listed."""
    shown = used(step)
    if not shown:
        return False
    return any(
        len(files) >= 2 and files <= shown for case in cases_of(step) if (files := listed(view, case, step.turn))
    )


def equal_counts(line: str) -> bool:
    """One line gives the images that were used and those that were to be used, and the numbers are equal."""
    told = line[:2_000]
    if not (_USE.search(told) and _IMAGES.search(told) and _WHOLE.search(told)):
        return False
    pairs = itertools.pairwise(_COUNT.finditer(told))
    return any(
        a.group() == b.group() != "0"
        and (_WHOLE.search(told[a.end() : b.start()]) or _USE.search(told[a.end() : b.start()]))
        for a, b in pairs
    )


def ratio_of_all(line: str) -> bool:
    """A line gives images as all of all ("slices=3/3"), and not only says that they are there."""
    match = _RATIO.search(line[:2_000])
    return match is not None and "0" not in match.groups() and not _ONLY_THERE.search(line[:2_000])


def opens_listed(code: str, programs: Iterable[str] = ()) -> bool:
    """Code that reads a manifest hands the images of its records to a function that is no mere look."""
    return "manifest" in code.lower() and any(handed(text).calls for text in (code, *programs))


def counts_handed(step: Step) -> bool:
    """The number of a list's images is printed, in a program that gives every one of them to a function."""
    if "manifest" not in step.code.lower() or not re.search(r"(?<![\w.])[1-9]\d{0,2}(?![\w.])", step.out):
        return False
    whole = {list_ for text in (*step.programs, *step.library) for list_ in handed(text).whole}
    printed = "\n".join((step.shown, *step.looks.texts)).replace('"', "'")
    return any(counted.strip() in {w.replace('"', "'") for w in whole} for counted in _COUNTED.findall(printed))


def describes_listed(step: Step) -> bool:
    """Files of the manifest are opened, or looked for on disk, one by one, and what was found stands beside their names:
    a column of a table (`row.file`), a shell loop over the rows of a case."""
    if "manifest" not in step.code.lower() or not _FILE.search(step.out):
        return False
    table = _TABLE_READ.search(step.code) and _COLUMN.search(step.code) and _OPENED.search(step.code)
    own = step.own
    rows = _EACH_ROW.search(own) or (_ROWS_OF_CASE.search(own) and any(case in own for case in step.facts.cases))
    shell = rows and _ON_DISK.search(own)
    return bool(table or shell)


def names_files(step: Step) -> bool:
    """A program that reads the manifest prints image files that it took from records."""
    texts = "\n".join((step.shown, *step.looks.texts))
    taken = re.search(r"\[['\"](?:\w*file\w*|\w*image\w*|\w*path\w*|name)['\"]\]", texts)
    taken = taken or _COLUMN.search(texts)
    return bool(taken and "manifest" in step.code.lower() and len(_FILE.findall(step.out)) >= 1)
