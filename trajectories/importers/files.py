"""Finds the files of a source, the JSON values in a file, and the runs among them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import InputError
from ..reading.json_bytes import NestingError, decode, is_file, loads, parse_json, read_bytes

if TYPE_CHECKING:
    from .draft import Draft

MakeDraft = Callable[[Any, str, Path, str], "Draft"]
"""Makes a draft of a JSON value, a name for the run, its file, and its location in the file (e.g.
"line 3: ", "" if the value is the whole file). Raises InputError."""


def source_files(source: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """The file itself, or every file below a folder with one of these suffixes, in sorted order.

    Hidden folders and links below the folder are not followed. Raises InputError for a missing path
    and for a folder without such files.
    """
    if is_file(source):
        yield source
        return
    if not os.path.isdir(source):
        raise InputError("no such file or folder", "check the path", source)
    is_empty = True
    for folder, subfolders, names in os.walk(source):
        # Changed in place: os.walk enters what is left in the list, in this order.
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            if has_suffix(name, suffixes) and not path.is_symlink() and is_file(path):
                is_empty = False
                yield path
    if is_empty:
        raise InputError(
            f"holds no {' or '.join(suffixes)} file at any depth",
            "check the path and the format",
            source,
        )


def source_name(path: Path) -> str:
    """The file's name without its ending and that of its compression."""
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return Path(name).stem


def has_suffix(name: str, suffixes: tuple[str, ...]) -> bool:
    """Whether a file has one of these suffixes, compressed or not."""
    return name.lower().removesuffix(".gz").endswith(suffixes)


def other_endings(source: Path, suffixes: tuple[str, ...]) -> Counter[str]:
    """The files below a folder that have none of these suffixes, counted by their ending."""
    endings: Counter[str] = Counter()
    for _, subfolders, names in os.walk(source):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and not has_suffix(name, suffixes):
                endings[Path(name).suffix.lower() or name] += 1
    return endings


class WrongFormat(InputError):
    """A file that another importer reads."""

    def __init__(self, message: str, format: str, path: Path) -> None:
        super().__init__(message, f"use the format `{format}`", path)
        self.format = format


class Document(NamedTuple):
    """One JSON value of a file.

    `line` is its line number in JSON Lines, from 1; None if the file is one value.
    """

    value: Any
    line: int | None


def documents(path: Path) -> Iterator[Document | InputError]:
    """The value of a JSON file, or of each line of a JSON Lines file.

    The content decides: a file that is one JSON value is read as one, whatever its name. A broken
    line is yielded as its error.
    """
    text = decode(read_bytes(path), path)
    if not text.strip():
        raise InputError("is empty", "expected JSON", path)
    try:
        yield Document(loads(text), None)
        return
    except NestingError:
        parse_json(text, path)  # raises the error with the file's name
    except ValueError:
        pass
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    is_named_so = has_suffix(path.name, (".jsonl", ".ndjson"))
    if not is_named_so and not _are_json_lines([line for _, line in lines[:3]]):
        parse_json(text, path)  # one broken value: raises where it breaks
    for number, line in lines:
        try:
            yield Document(parse_json(line, path, number), number)
        except InputError as error:
            yield error


def read_entries(path: Path) -> tuple[list[dict[str, Any]], list[InputError]]:
    """The objects of a log with one object a line, and an error for every other line."""
    entries: list[dict[str, Any]] = []
    errors: list[InputError] = []
    for document in documents(path):
        if isinstance(document, InputError):
            errors.append(document)
        elif isinstance(document.value, dict):
            entries.append(document.value)
        else:
            line = document.line or 1
            errors.append(
                InputError(f"line {line} is not an object", "expected one JSON object a line", path)
            )
    return entries, errors


def read_runs(
    path: Path,
    is_part: Callable[[Any], bool],
    make_draft: MakeDraft,
    unwrap: Callable[[Any], Any] = lambda value: value,
) -> Iterator[Draft | InputError]:
    """The runs of a file.

    If each line is a part of a run (a message, an event), all lines together are one run. Else each
    value is a run, and a list of values a list of runs. `unwrap` returns the list of runs that a
    value holds, or the value itself.
    """
    items = list(documents(path))
    values = [item for item in items if isinstance(item, Document)]
    if values and values[0].line is not None and all(is_part(item.value) for item in values):
        yield from (item for item in items if isinstance(item, InputError))
        yield draft_or_error(
            make_draft, [item.value for item in values], source_name(path), path, ""
        )
        return
    for item in items:
        if isinstance(item, InputError):
            yield item
            continue
        document = Document(unwrap(item.value), item.line)
        for value, position, location in _run_values(document, is_part):
            stem = source_name(path)
            name = stem if position is None else f"{stem}-{position}"
            yield draft_or_error(make_draft, value, name, path, location)


def _run_values(
    document: Document, is_part: Callable[[Any], bool]
) -> Iterator[tuple[Any, int | None, str]]:
    """The runs of a value: each with its number in the file, from 1, and its location.

    The number is None for the only run of a file.
    """
    value, line = document
    is_list_of_runs = isinstance(value, list) and bool(value) and not any(map(is_part, value))
    runs = value if is_list_of_runs else [value]
    for position, run in enumerate(runs, 1):
        if line is not None:
            yield run, line, f"line {line}: "
        elif len(runs) == 1:
            yield run, None, ""
        else:
            yield run, position, f"[{position - 1}]: "


def draft_or_error(make_draft: Callable[..., Draft], *arguments: Any) -> Draft | InputError:
    """The draft that `make_draft` returns, or the InputError that it raises."""
    try:
        return make_draft(*arguments)
    except InputError as error:
        return error


def _are_json_lines(lines: list[str]) -> bool:
    """Whether the first lines are JSON, or those after a line of something else."""
    if len(lines) > 1 and _is_json(lines[0]):
        return True
    return len(lines) > 2 and _is_json(lines[1]) and _is_json(lines[2])


def _is_json(line: str) -> bool:
    try:
        return isinstance(loads(line), dict | list)
    except ValueError:
        return False
