"""A YAML file to plain values with the place of each: strict, because rubrics come from anyone.

One document of strings, finite numbers, booleans, nulls, lists and mappings with string keys.
Refused, each with its line: duplicate keys, anchors and aliases (a short file could expand without
bounds), tags, tab indentation, several documents, deep nesting, files over 256 KiB.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import RubricError
from ..package_data import yaml_loader

if TYPE_CHECKING:
    from yaml import Node

MAX_BYTES = 256 * 1024
MAX_DEPTH = 20
_MAX_DIGITS = 32

Step = str | int
Position = tuple[int, int]
"""Line and column, both from 1."""


def error_at(path: Path, position: Position, message: str, hint: str) -> RubricError:
    """A RubricError that starts with file:line:column."""
    error = RubricError(f"{path}:{position[0]}:{position[1]}: {message}", hint)
    error.path, error.position = path, position
    return error


@dataclass
class Document:
    """Plain values and, for each path into them, where it stands."""

    path: Path
    value: Any = None
    values: dict[tuple[Step, ...], Position] = field(default_factory=dict)
    keys: dict[tuple[Step, ...], Position] = field(default_factory=dict)

    def position(self, path: tuple[Step, ...], key: bool = False) -> Position:
        """Of the value at `path` (or of its key), else of the closest thing around it."""
        first, second = (self.keys, self.values) if key else (self.values, self.keys)
        for length in range(len(path), -1, -1):
            head = path[:length]
            if head in first or head in second:
                return first.get(head) or second[head]
        return 1, 1


def read_document(path: Path) -> Document:
    """The document of a YAML file; RubricError with file:line:column and what was expected."""
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise RubricError("is not a file", "give a rubric's YAML file or id", path)
        if size > MAX_BYTES:
            raise RubricError(
                f"has {size:,} bytes, more than the {MAX_BYTES:,} of a rubric", "split it", path
            )
        data = path.read_bytes()
    except OSError as error:
        raise RubricError(
            f"cannot be read: {error.strerror or error}", "check the path", path
        ) from None
    except ValueError:  # A NUL in the name.
        raise RubricError(
            "is not a possible file name", "check the path", repr(str(path))
        ) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise error_at(path, (line, column), "not UTF-8 text", "save the file as UTF-8") from None
    return parse_document(text, path)


def parse_document(text: str, path: Path) -> Document:
    """The same from text; `path` is named in errors."""
    import yaml

    loader = yaml_loader()
    for number, line in enumerate(text.split("\n"), 1):
        indent = line[: len(line) - len(line.lstrip())]
        if "\t" in indent and line.strip():
            raise error_at(
                path,
                (number, indent.index("\t") + 1),
                "a tab in the indentation",
                "indent with spaces",
            )
    try:
        _check_events(yaml, loader, text, path)
        node = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if error.context_mark is not None and "unexpected end of stream" in (error.problem or ""):
            mark = error.context_mark  # Where the quote or bracket was opened.
        where = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        if "nesting depth" in (
            error.problem or error.context or ""
        ):  # the reader's own limit, met while it looks ahead
            raise _too_deep(path, where) from None
        raise error_at(
            path,
            where,
            f"not YAML: {error.problem or error.context}",
            "check the indentation and quotes",
        ) from None
    except yaml.YAMLError as error:
        number, column = _unreadable(text)
        reason = str(error).splitlines()[0][:120]
        raise error_at(
            path, (number, column), f"not YAML: {reason}", "remove the character"
        ) from None
    if node is None:
        raise error_at(path, (1, 1), "is empty", "expected a rubric; see `ambjudge rubric list`")
    document = Document(path)
    document.value = _plain(document, node, ())
    return document


def _unreadable(text: str) -> Position:
    """Where the first control character stands: the only thing that YAML's reader refuses without a
    place."""
    for number, line in enumerate(text.split("\n"), 1):
        for column, char in enumerate(line, 1):
            if (
                (ord(char) < 0x20 and char not in "\t\r")
                or 0x7F <= ord(char) < 0xA0
                or 0xD800 <= ord(char) < 0xE000
            ):
                return number, column
    return 1, 1


def _too_deep(path: Path, where: Position) -> RubricError:
    return error_at(
        path, where, f"nested more than {MAX_DEPTH} deep", "a rubric needs seven levels"
    )


def _check_events(yaml: Any, loader: Any, text: str, path: Path) -> None:
    """Refuse what must not even be composed. Events come one by one, so nothing expands and nothing
    recurses."""
    depth, documents = 0, 0
    for event in yaml.parse(text, Loader=loader):
        where = (event.start_mark.line + 1, event.start_mark.column + 1)
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise error_at(
                    path, where, "a second document", "one rubric a file; remove the `---`"
                )
        elif isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise error_at(path, where, f"anchor or alias {event.anchor!r}", "write the value out")
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _too_deep(path, where)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if tag := getattr(event, "tag", None):
            raise error_at(
                path, where, f"the tag {tag[:60]!r}", "tags are not allowed; write the plain value"
            )


def _plain(document: Document, node: Node, at: tuple[Step, ...]) -> Any:
    import yaml

    where = (node.start_mark.line + 1, node.start_mark.column + 1)
    document.values[at] = where
    if isinstance(node, yaml.SequenceNode):
        return [_plain(document, item, (*at, index)) for index, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            place = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            if not isinstance(key_node, yaml.ScalarNode):
                raise error_at(
                    document.path, place, "a key that is not text", "expected `name: value`"
                )
            key = str(key_node.value)
            if key in result:
                first = document.keys[(*at, key)][0]
                raise error_at(
                    document.path,
                    place,
                    f"the key {key!r} is there twice",
                    f"first on line {first}; remove one",
                )
            document.keys[(*at, key)] = place
            result[key] = _plain(document, value_node, (*at, key))
        return result
    return _scalar(document, node, where)


def _scalar(document: Document, node: Node, where: Position) -> Any:
    kind, text = node.tag.rsplit(":", 1)[-1], str(node.value)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in ("yes", "true", "on")
    if kind in ("int", "float"):
        try:
            if len(text) > _MAX_DIGITS:
                raise ValueError
            value = int(text) if kind == "int" else float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise error_at(
                document.path,
                where,
                f"{text[:40]!r} is no plain finite number",
                "write it like 0.5, or quote it as text",
            )
        return value
    return text
