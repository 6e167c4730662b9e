"""Human labels from wherever they are: label files, folders of them, JSON Lines, verdict stores,
plain values.

Strict where labels are kept or exported: a field that is not ours is an error, and a file holds one
annotator's labels of one run. Not strict where they are only compared with: other people's notes
stand in label files, and so may many labels.
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
    """(where, labels) of every label of a source, in the order of names; what breaks the format
    comes as its error, and the rest goes on."""
    for where, item in _items(source, strict):
        try:
            yield (
                where,
                item if isinstance(item, InputError) else parse_labels(item, where, strict=strict),
            )
        except InputError as error:
            yield where, error


def _items(source: Source, strict: bool) -> Iterator[tuple[Path, Any]]:
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
    elif (path := Path(source)).is_dir():
        files = [*path.rglob("*.json"), *(() if strict else path.rglob("*.jsonl"))]
        for file in sorted(files):
            yield from _of_file(file, strict)
    else:
        yield from _of_file(path, strict)


def _of_file(path: Path, strict: bool) -> Iterator[tuple[Path, Any]]:
    try:
        if path.suffix == ".jsonl" and not strict:
            yield from ((Path(f"{path}:{line}"), item) for line, item in read_jsonl(path))
            return
        data = read_json(path)
    except InputError as error:
        yield path, error
        return
    if isinstance(data, list) and not strict:
        yield from ((Path(f"{path}:{place}"), item) for place, item in enumerate(data, 1))
    else:
        yield path, data
