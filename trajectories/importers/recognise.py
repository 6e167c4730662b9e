"""Which format a file is of, told from its name and its first kilobytes.

`shape` lists the keys and short texts of JSON that may be cut anywhere; a format is recognised by
those that only it has.
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
from .files import source_files

HEAD = 64 * 1024
"""Bytes that are looked at."""
_SEARCHED = 200
"""Files of a folder that are looked at to say what it holds."""
_DEPTH = 4
_LONGEST = 40
_READ_AS_THEY_ARE = ("openai", "anthropic", "conversation")


@lru_cache(maxsize=8)
def shape(head: bytes) -> frozenset[str]:
    """The paths of keys (`steps.source`, lists left out) and `path=text` for short texts, down to
    four keys.

    Of JSON or JSON Lines cut anywhere; linear in the head. Empty for what is no JSON.
    """
    text = head.decode("utf-8-sig", errors="replace")
    return frozenset(found for value in _values(text) for found in _paths(value, ""))


def _values(text: str) -> Iterator[Any]:
    # halves of surrogate pairs are no JSON to this parser
    text = text.replace("\\ud", "\\u0").replace("\\uD", "\\u0")
    lines = [line for line in text.split("\n") if line.strip()]
    with suppress(ValueError):
        try:
            from_json(lines[0] if lines else "")
        except ValueError:  # no line of JSON Lines, or a cut one
            lines = [text]
        for line in lines:
            yield from_json(line, allow_partial=True)


def _paths(value: Any, at: str) -> Iterator[str]:
    if isinstance(value, str) and at and len(value) <= _LONGEST:
        yield f"{at}={value}"
    elif isinstance(value, list):
        for item in value:
            yield from _paths(item, at)
    elif isinstance(value, dict) and at.count(".") < _DEPTH - 1:
        for key, item in value.items():
            path = f"{at}.{key}" if at else key
            yield path
            yield from _paths(item, path)


def has_keys(*alternatives: str) -> Recogniser:
    """Recognises files whose head has all paths (between blanks, as `shape` gives them) of one of
    these."""
    wanted = [frozenset(paths.split()) for paths in alternatives]
    return lambda head, name: any(paths <= shape(head) for paths in wanted)


def head_of(path: Path) -> bytes:
    """The first HEAD bytes, unpacked where they are gzip; empty where nothing can be read."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
        return zlib.decompressobj(31).decompress(head, HEAD) if head.startswith(GZIP) else head
    except (OSError, ValueError, zlib.error):
        return b""


def recognise(path: Path) -> str | None:
    """The format of a file, as `ambjudge import` calls it; None for one that nobody recognises."""
    head = head_of(path)
    for name in IMPORTERS.names if head else ():
        importer = IMPORTERS.find(name)
        if importer is None or not path.name.lower().endswith(importer.suffixes or ("/",)):
            continue
        if importer.recognises is None or importer.recognises(head, path.name):
            return name
    return None


def how_to_import(path: Path) -> str | None:
    """The command that reads a foreign file, or a folder that has some among its first files; None
    without any."""
    name = next(
        (
            name
            for file in _files(path)
            if (name := recognise(file)) not in (None, *_READ_AS_THEY_ARE)
        ),
        None,
    )
    if name is None:
        return None
    return f"{name}: ambjudge import {name if is_file(path) else 'auto'} {path} --out DIR reads it"


def known_suffixes() -> tuple[str, ...]:
    """How the names of files end that some format reads."""
    return tuple(sorted({suffix for importer in IMPORTERS for suffix in importer.suffixes}))


def _files(path: Path) -> Iterator[Path]:
    try:
        yield from islice(source_files(path, known_suffixes()), _SEARCHED)
    except InputError:
        return
