"""The files of a source, and the JSON values in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import InputError
from ..reading.json_bytes import NestingError, decode, is_file, loads, parse_json, read_bytes

if TYPE_CHECKING:
    from .draft import Draft


def source_files(source: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """The file itself, or every file below a folder whose name ends so, in sorted order.

    Hidden folders and links below the folder are not followed. Raises InputError for a missing path
    and for a folder without such files.
    """
    if is_file(source):
        yield source
        return
    if not os.path.isdir(source):
        raise InputError("no such file or folder", "check the path", source)
    found = False
    for here, subfolders, names in os.walk(source):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in sorted(names):
            path = Path(here, name)
            if name.lower().endswith(suffixes) and not path.is_symlink() and is_file(path):
                found = True
                yield path
    if not found:
        raise InputError(
            f"holds no {' or '.join(suffixes)} file at any depth",
            "check the path and the format",
            source,
        )


class Document(NamedTuple):
    """One JSON value of a file. `line` counts from 1 in JSON Lines and is None for a file that is
    one value."""

    value: Any
    line: int | None


def documents(path: Path) -> Iterator[Document | InputError]:
    """The value of a JSON file, or of each line of a JSON Lines file; broken lines come as the
    errors that they are.

    What is inside decides: a file that is one JSON value is that value, whatever its name.
    """
    text = decode(read_bytes(path), path)
    if not text.strip():
        raise InputError("is empty", "expected JSON", path)
    try:
        yield Document(loads(text), None)
        return
    except NestingError:
        parse_json(text, path)
    except ValueError:
        pass
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not path.name.lower().endswith((".jsonl", ".ndjson")) and not (
        len(lines) > 1 and _is_json(lines[0][1])
    ):
        parse_json(text, path)
    for number, line in lines:
        try:
            yield Document(parse_json(line, path, number), number)
        except InputError as error:
            yield error


def read_entries(path: Path) -> tuple[list[dict[str, Any]], list[InputError]]:
    """The objects of a log that has one a line, and an error for every line that is none."""
    entries: list[dict[str, Any]] = []
    broken: list[InputError] = []
    for item in documents(path):
        if isinstance(item, InputError):
            broken.append(item)
        elif isinstance(item.value, dict):
            entries.append(item.value)
        else:
            broken.append(
                InputError(
                    f"line {item.line or 1} is no object", "expected one JSON object a line", path
                )
            )
    return entries, broken


def read_runs(
    path: Path, is_part: Callable[[Any], bool], draft: Callable[[Any, str, Path, str], Draft]
) -> Iterator[Draft | InputError]:
    """The runs of a file: one of all its lines where each `is_part` of a run, else one a value, and
    lists of runs taken apart.

    `draft` gets what is known of a run, a name for it, the file, and words that say where in the
    file it stands.
    """
    found = list(documents(path))
    values = [item for item in found if isinstance(item, Document)]
    if values and values[0].line is not None and all(is_part(item.value) for item in values):
        yield from (item for item in found if isinstance(item, InputError))
        yield draft_or_error(draft, [item.value for item in values], path.stem, path, "")
        return
    for item in found:
        if isinstance(item, InputError):
            yield item
            continue
        value, line = item
        several = isinstance(value, list) and bool(value) and not any(map(is_part, value))
        for position, part in enumerate(value if several else [value], 1):
            alone = line is None and (not several or len(value) == 1)
            where = "" if alone else f"[{position - 1}]: " if line is None else f"line {line}: "
            yield draft_or_error(
                draft, part, path.stem if alone else f"{path.stem}-{line or position}", path, where
            )


def draft_or_error(draft: Callable[..., Draft], *given: Any) -> Draft | InputError:
    """The draft made of what is given, or the error that says why there is none."""
    try:
        return draft(*given)
    except InputError as error:
        return error


def _is_json(line: str) -> bool:
    try:
        return isinstance(loads(line), dict | list)
    except ValueError:
        return False
