"""Human labels from label files, folders of them, JSON Lines, verdict stores, or plain values.

Strict where labels are stored or exported: an unknown field is an error, and a file holds one
annotator's labels of one run. Not strict where labels are only compared with: their files may hold
other people's notes, and many labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...trajectories.reading.json_bytes import loads, read_json, read_jsonl
from .human_labels import Labels, parse_labels

Source = str | Path | Mapping[str, Any] | Iterable["Source"]
"""A file, a folder (read recursively), a store (a .db file or an address), a label object, or
several of these."""


def each_label(source: Source, *, strict: bool) -> Iterator[tuple[Path, Labels | InputError]]:
    """Every label of a source with its location, in the order of names.

    A label that breaks the format comes as its error, and reading continues.
    """
    for location, item in _items(source, strict):
        if isinstance(item, InputError):
            yield location, item
            continue
        try:
            labels = parse_labels(item, location, strict=strict)
        except InputError as error:
            yield location, error
        else:
            yield location, labels


def _items(source: Source, strict: bool) -> Iterator[tuple[Path, Any]]:
    """Every label as plain values, or the error of reading it, with its location."""
    if isinstance(source, Mapping):
        yield Path("label"), source
    elif not isinstance(source, str | Path):
        for part in source:
            yield from _items(part, strict)
    elif "://" in str(source) or Path(source).suffix == ".db":
        from ..store import open_store

        with open_store(source, create=False) as store:
            for run, annotator, body in store.labels():
                yield Path(f"{store.location} ({annotator} on {run})"), loads(body)
    elif Path(source).is_dir():
        files = [*Path(source).rglob("*.json")]
        if not strict:
            files += Path(source).rglob("*.jsonl")
        for file in sorted(files):
            yield from _items_of_file(file, strict)
    else:
        yield from _items_of_file(Path(source), strict)


def _items_of_file(path: Path, strict: bool) -> Iterator[tuple[Path, Any]]:
    try:
        if path.suffix == ".jsonl" and not strict:
            for line, item in read_jsonl(path):
                yield Path(f"{path}:{line}"), item
            return
        data = read_json(path)
    except InputError as error:
        yield path, error
        return
    if isinstance(data, list) and not strict:
        for position, item in enumerate(data, 1):
            yield Path(f"{path}:{position}"), item
    else:
        yield path, data
