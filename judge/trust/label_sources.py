"""Human labels from label files, folders of them, verdict stores, or plain values.

Whoever uses labels reads them here, by one set of rules: `label import`, `agreement`, `analyze` and
`selftest` take the same files. A file is JSON (a label or a list of them), JSON Lines, or YAML, in
which a value may be left empty: it is not labelled. Of two files with labels of one run by one
annotator, the fuller one counts if the other says nothing else; if they differ, the second is an
error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...rubrics.document import Document, parse_document
from ...sanitize import sanitize_line
from ...trajectories.reading.json_bytes import decode, loads, read_bytes, read_json, read_jsonl
from ..card.view_parts import turn_ranges
from .human_labels import FieldPath, Labels, other_fields, parse_labels

Source = str | Path | Mapping[str, Any] | Iterable["Source"]
"""A file, a folder (read recursively), a store (a .db file or an address), a label object, or
several of these."""
YAML_SUFFIXES = (".yaml", ".yml")
_SUFFIXES = (".json", ".jsonl", *YAML_SUFFIXES)
_MAX_YAML_BYTES = 16 * 1024 * 1024
_NO_SPACE = re.compile(r"[\s-]*\w+:[^\s]")


@dataclass(frozen=True)
class LabelEntry:
    """The labels at one place of a source."""

    location: Path
    """A file, with the line or the number of the label if it holds several."""
    labels: Labels
    blanks: tuple[FieldPath, ...] = ()
    """Values that a YAML file leaves empty."""
    other_fields: tuple[str, ...] = ()
    """Fields that are no part of a label; they were not read."""


@dataclass(frozen=True)
class _Item:
    """A label as plain values, or the error of reading it."""

    location: Path
    data: Any
    blanks: tuple[FieldPath, ...] = ()
    place_of: Callable[[FieldPath], Path] | None = None
    """Where a field of the label stands, in a file with lines."""


def each_label(source: Source) -> Iterator[LabelEntry | InputError]:
    """Every label of a source, by run and annotator, so that no number depends on where it lies.

    Before them the errors of labels that break the format; they do not stop the others.
    """
    entries: dict[tuple[str, str], LabelEntry] = {}
    for item in _items(source):
        try:
            entry = _entry(item)
            key = entry.labels.run, entry.labels.annotator
            entries[key] = _fuller(entries[key], entry) if key in entries else entry
        except InputError as error:
            yield error
    for key in sorted(entries):
        yield entries[key]


def unfilled(entry: LabelEntry) -> list[str]:
    """What a YAML file leaves empty, in words; evidence and notes may stay so."""
    criteria = [str(path[1]) for path in entry.blanks if path[0] == "criteria" and len(path) == 2]
    turns = [
        int(path[1])
        for path in entry.blanks
        if path[0] == "stages" and len(path) == 2 and str(path[1]).isdecimal()
    ]
    words = criteria
    if turns:
        has_stages = bool(entry.labels.stages)
        words.append(f"stages of turns {turn_ranges(turns)}" if has_stages else "stages")
    return words + [field for field in ("criteria", "stages", "codes") if (field,) in entry.blanks]


def _entry(item: _Item) -> LabelEntry:
    """The labels of an item; InputError if it is or holds an error."""
    if isinstance(item.data, InputError):
        raise item.data
    labels = parse_labels(item.data, item.location, place_of=item.place_of)
    return LabelEntry(item.location, labels, item.blanks, tuple(other_fields(item.data)))


def _fuller(first: LabelEntry, second: LabelEntry) -> LabelEntry:
    """The one of two entries of a run that holds the labels of both; InputError if they differ."""
    for fuller, other in ((first, second), (second, first)):
        if _is_part_of(other.labels, fuller.labels):
            drawn = fuller.labels.drawn or other.labels.drawn
            return replace(fuller, labels=fuller.labels.model_copy(update={"drawn": drawn}))
    raise InputError(
        f"labels of {second.labels.run} by {second.labels.annotator} differ from those in"
        f" {first.location}",
        "keep one of the two",
        second.location,
    )


def _is_part_of(labels: Labels, others: Labels) -> bool:
    """Whether the others hold all these labels, with the same values."""
    looked_for_codes = "codes" in labels.model_fields_set
    same_codes = "codes" in others.model_fields_set and labels.codes == others.codes
    return (
        labels.stages.items() <= others.stages.items()
        and labels.criteria.items() <= others.criteria.items()
        and (same_codes or not looked_for_codes)
        and labels.notes in ("", others.notes)
    )


# Items of a source


def _items(source: Source) -> Iterator[_Item]:
    if isinstance(source, Mapping):
        yield _Item(Path("label"), source)
    elif not isinstance(source, str | Path):
        for part in source:
            yield from _items(part)
    elif "://" in str(source) or Path(source).suffix == ".db":
        from ..store import open_store

        with open_store(source, create=False) as store:
            for run, annotator, body in store.labels():
                yield _Item(Path(f"{store.location} ({annotator} on {run})"), loads(body))
    elif Path(source).is_dir():
        for file in sorted(Path(source).rglob("*")):
            if file.suffix in _SUFFIXES:
                yield from _items_of_file(file)
    else:
        yield from _items_of_file(Path(source))


def _items_of_file(path: Path) -> Iterator[_Item]:
    try:
        if path.suffix == ".jsonl":
            for line, data in read_jsonl(path):
                yield _Item(Path(f"{path}:{line}"), data)
        elif path.suffix in YAML_SUFFIXES:
            yield from _items_of_yaml(path)
        else:
            data = read_json(path)
            if isinstance(data, list):
                for position, item in enumerate(data, 1):
                    yield _Item(Path(f"{path}:{position}"), item)
            else:
                yield _Item(path, data)
    except InputError as error:
        yield _Item(path, error)


def _items_of_yaml(path: Path) -> Iterator[_Item]:
    """The label of a YAML file, or those of the list that it is."""
    text = decode(read_bytes(path, _MAX_YAML_BYTES), path)
    if not text.strip():
        raise InputError("is empty", "expected labels as docs/labels.md describes", path)
    try:
        document = parse_document(text, path)
    except InputError as error:
        raise _missing_space(text, path) or error from None
    if not isinstance(document.value, list):
        yield _yaml_item(document, document.value, ())
        return
    for position, data in enumerate(document.value):
        yield _yaml_item(document, data, (position,))


def _missing_space(text: str, path: Path) -> InputError | None:
    """The slip behind most files that are not YAML: `S1a:1`."""
    for number, line in enumerate(text.splitlines(), 1):
        if _NO_SPACE.match(line):
            message = f"no space after the colon of {sanitize_line(line.strip()[:40])}"
            return InputError(message, "write it like S1a: 1", Path(f"{path}:{number}"))
    return None


def _yaml_item(document: Document, data: Any, root: FieldPath) -> _Item:
    """The label at a path of a document, without the values that are left empty."""
    blanks = tuple(
        path[len(root) :]
        for path in sorted(document.blanks, key=document.values.__getitem__)
        if path[: len(root)] == root and len(path) > len(root)
    )
    place_of = partial(_place, document, root)
    location = place_of(()) if root else document.path
    return _Item(location, _without(data, frozenset(blanks)), blanks, place_of)


def _place(document: Document, root: FieldPath, field: FieldPath) -> Path:
    """File and line of a field."""
    names = tuple(str(name) for name in field)
    return Path(f"{document.path}:{document.position((*root, *names))[0]}")


def _without(data: Any, blanks: frozenset[FieldPath], path: FieldPath = ()) -> Any:
    """Plain values without those that are left empty."""
    if not isinstance(data, dict):
        return data
    filled = {}
    for name, value in data.items():
        if (*path, name) not in blanks:
            filled[name] = _without(value, blanks, (*path, name))
    return filled
