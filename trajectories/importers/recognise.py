"""Recognises the format of a file by its name and its first kilobytes.

`shape` lists the keys and short texts of JSON that may be cut off anywhere; a format is recognised
by those that only it has.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from ...errors import InputError
from ..reading.json_bytes import GZIP, is_file
from . import IMPORTERS, Recogniser
from .files import has_suffix, source_files

HEAD = 64 * 1024
"""Bytes of a file that are looked at."""
_MAX_FILES = 200
"""Files of a folder that are looked at to say what it holds."""
_MAX_LINES = 400
"""Lines of a log that are looked at."""
_MAX_DEPTH = 4
"""Keys in a path."""
_MAX_TEXT = 40
"""Characters of a text that is part of a shape."""
_READ_WITHOUT_IMPORT = ("openai", "anthropic", "conversation")


@lru_cache(maxsize=8)
def shape(head: bytes) -> frozenset[str]:
    """The keys and short texts in the head of a file of JSON or JSON Lines, as paths.

    A path is `steps.source` for a key (lists are left out), `type=message` for a short text; it has
    four keys at most. Empty if the head is not JSON. Time is linear in the head.
    """
    text = head.decode("utf-8-sig", errors="replace")
    return frozenset(path for value in _values(text) for path in _paths(value, ""))


def _values(text: str) -> Iterator[Any]:
    """The JSON values of a text that may be cut off."""
    # To this parser, halves of surrogate pairs are not JSON.
    text = text.replace("\\ud", "\\u0").replace("\\uD", "\\u0")
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        return
    if not _is_container(_parse(lines[0])):
        value = _parse(text, allow_partial=True)
        if _is_container(value):  # one value, whose first line is a part of it or cut off
            yield value
            return
    # Programs write banners and warnings before and between the lines of their logs.
    for line in lines[:_MAX_LINES]:
        value = _parse(line, allow_partial=line is lines[-1])
        if _is_container(value):
            yield value


def _parse(text: str, *, allow_partial: bool = False) -> Any:
    with suppress(ValueError):
        return from_json(text, allow_partial=allow_partial)
    return None


def _is_container(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _paths(value: Any, prefix: str) -> Iterator[str]:
    if isinstance(value, str) and prefix and len(value) <= _MAX_TEXT:
        yield f"{prefix}={value}"
    elif isinstance(value, list):
        for item in value:
            yield from _paths(item, prefix)
    elif isinstance(value, dict) and prefix.count(".") < _MAX_DEPTH - 1:
        for key, item in value.items():
            path = f"{prefix}.{key}" if prefix else key
            yield path
            yield from _paths(item, path)


def has_keys(*alternatives: str) -> Recogniser:
    """Recognises files whose head has all paths of one of these alternatives.

    An alternative is a text of paths as `shape` gives them, separated by spaces:
    `has_keys("messages.role", "steps.source schema_version")`.
    """
    path_sets = [frozenset(paths.split()) for paths in alternatives]

    def recognises(head: bytes, name: str) -> bool:
        return any(paths <= shape(head) for paths in path_sets)

    return recognises


def head_of(path: Path, size: int = HEAD) -> bytes:
    """The first bytes of a file, unpacked if it is gzipped; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(size)
        if head.startswith(GZIP):
            return zlib.decompressobj(wbits=31).decompress(head, size)  # 31: gzip
        return head
    except (OSError, ValueError, zlib.error):
        return b""


def recognise(path: Path) -> str | None:
    """The format of a file, by its name in `ambjudge import`; None if no importer recognises it."""
    head = head_of(path)
    if not head:
        return None
    for name in IMPORTERS.names:
        importer = IMPORTERS.find(name)
        # An importer without suffixes recognises no file.
        if importer is None or not importer.suffixes:
            continue
        if not has_suffix(path.name, importer.suffixes):
            continue
        name_unpacked = path.name.removesuffix(".gz")
        if importer.recognises is None or importer.recognises(head, name_unpacked):
            return name
    return None


def how_to_import(path: Path) -> str | None:
    """The command that imports a foreign file or a folder with some; None for anything else.

    Only the first files of a folder are looked at.
    """
    for file in _importable_files(path):
        name = recognise(file)
        if name is not None and name not in _READ_WITHOUT_IMPORT:
            format = name if is_file(path) else "auto"
            return f"{name}: ambjudge import {format} {path} --out DIR reads it"
    return None


def known_suffixes() -> tuple[str, ...]:
    """The suffixes of file names that some importer reads."""
    return tuple(sorted({suffix for importer in IMPORTERS for suffix in importer.suffixes}))


def _importable_files(path: Path) -> Iterator[Path]:
    try:
        yield from islice(source_files(path, known_suffixes()), _MAX_FILES)
    except InputError:
        return
