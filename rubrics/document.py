"""Reads YAML (a rubric, a label file) into plain values, with the position of each.

Strict, because such files come from anyone: one document of strings, finite numbers, booleans,
nulls, lists and mappings with string keys. Refused, each with its line: duplicate keys, anchors and
aliases (a short file could expand without bounds), tags, tab indentation, several documents, deep
nesting, rubrics over 256 KiB.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import RubricError
from ..package_data import yaml_loader

if TYPE_CHECKING:
    from yaml import MappingNode, Mark, MarkedYAMLError, Node

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
    """Plain values and, for each path into them, its position in the file."""

    path: Path
    value: Any = None
    values: dict[tuple[Step, ...], Position] = field(default_factory=dict)
    """Positions of values."""
    keys: dict[tuple[Step, ...], Position] = field(default_factory=dict)
    """Positions of the keys of values."""
    blanks: set[tuple[Step, ...]] = field(default_factory=set)
    """Paths of values that are left empty, as in `name:`; their value is None."""

    def position(self, path: tuple[Step, ...], key: bool = False) -> Position:
        """The position of the value at `path` (or of its key), else of the closest parent."""
        preferred, other = (self.keys, self.values) if key else (self.values, self.keys)
        for length in range(len(path), -1, -1):
            prefix = path[:length]
            position = preferred.get(prefix) or other.get(prefix)
            if position is not None:
                return position
        return 1, 1


def read_document(path: Path) -> Document:
    """The document of a YAML file; RubricError with file:line:column and what was expected."""
    data = _read_bytes(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        line_start = data.rfind(b"\n", 0, error.start) + 1
        position = line, error.start - line_start + 1
        raise error_at(path, position, "not UTF-8 text", "save the file as UTF-8") from None
    return parse_document(text, path)


def _read_bytes(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise RubricError("is not a file", "give a rubric's YAML file or id", path)
        if size > MAX_BYTES:
            raise RubricError(
                f"has {size:,} bytes, more than the {MAX_BYTES:,} of a rubric", "split it", path
            )
        return path.read_bytes()
    except OSError as error:
        raise RubricError(
            f"cannot be read: {error.strerror or error}", "check the path", path
        ) from None
    except ValueError:  # a NUL in the name
        raise RubricError("is not a valid file name", "check the path", repr(str(path))) from None


def parse_document(text: str, path: Path) -> Document:
    """The document of a YAML text; `path` is named in errors."""
    import yaml

    loader = yaml_loader()
    _check_indentation(text, path)
    try:
        _check_events(text, path, loader)
        node = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, path) from None
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0][:120]
        raise error_at(
            path, _unreadable_position(text), f"not YAML: {reason}", "remove the character"
        ) from None
    if node is None:
        raise error_at(path, (1, 1), "is empty", "expected a rubric; see `ambjudge rubric list`")
    document = Document(path)
    document.value = _read_node(document, node, ())
    return document


def _check_indentation(text: str, path: Path) -> None:
    for number, line in enumerate(text.split("\n"), 1):
        indentation = line[: len(line) - len(line.lstrip())]
        if "\t" in indentation and line.strip():
            position = number, indentation.index("\t") + 1
            raise error_at(path, position, "a tab in the indentation", "indent with spaces")


def _check_events(text: str, path: Path, loader: Any) -> None:
    """Refuse what must not even be composed.

    Events come one by one, so nothing is expanded and nothing recurses.
    """
    import yaml

    depth = n_documents = 0
    event: Any  # kinds of events have different attributes
    for event in yaml.parse(text, Loader=loader):
        position = _position(event.start_mark)
        if isinstance(event, yaml.DocumentStartEvent):
            n_documents += 1
            if n_documents > 1:
                hint = "one document a file; remove the `---`"
                raise error_at(path, position, "a second document", hint)
        elif isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            message = f"anchor or alias {event.anchor!r}"
            raise error_at(path, position, message, "write the value out")
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _nesting_error(path, position)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        tag = getattr(event, "tag", None)
        if tag:
            hint = "tags are not allowed; write the plain value"
            raise error_at(path, position, f"the tag {tag[:60]!r}", hint)


def _position(mark: Mark) -> Position:
    return mark.line + 1, mark.column + 1


def _nesting_error(path: Path, position: Position) -> RubricError:
    message = f"nested more than {MAX_DEPTH} deep"
    return error_at(path, position, message, "no file of this kind needs that")


def _syntax_error(error: MarkedYAMLError, path: Path) -> RubricError:
    """The error of YAML's parser as one with the file and the hint."""
    mark = error.problem_mark or error.context_mark
    if error.context_mark is not None and "unexpected end of stream" in (error.problem or ""):
        mark = error.context_mark  # where the quote or bracket was opened
    position = (1, 1) if mark is None else _position(mark)
    problem = error.problem or error.context or ""
    if "nesting depth" in problem:  # the parser's own limit, met while it looks ahead
        return _nesting_error(path, position)
    return error_at(path, position, f"not YAML: {problem}", "check the indentation and quotes")


def _unreadable_position(text: str) -> Position:
    """The position of the first control character.

    Only for such characters does YAML's reader raise an error without a position.
    """
    for number, line in enumerate(text.split("\n"), 1):
        for column, char in enumerate(line, 1):
            code = ord(char)
            is_control = (code < 0x20 and char not in "\t\r") or 0x7F <= code < 0xA0
            if is_control or 0xD800 <= code < 0xE000:
                return number, column
    return 1, 1


def _read_node(document: Document, node: Node, path: tuple[Step, ...]) -> Any:
    """The plain value of a node; notes the positions of everything in it."""
    import yaml

    document.values[path] = _position(node.start_mark)
    if isinstance(node, yaml.SequenceNode):
        return [_read_node(document, item, (*path, i)) for i, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        return _read_mapping(document, node, path)
    return _read_scalar(document, node, path)


def _read_mapping(document: Document, node: MappingNode, path: tuple[Step, ...]) -> dict[str, Any]:
    import yaml

    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        position = _position(key_node.start_mark)
        if not isinstance(key_node, yaml.ScalarNode):
            message = "a key that is not text"
            raise error_at(document.path, position, message, "expected `name: value`")
        key = str(key_node.value)
        if key in mapping:
            first_line = document.keys[(*path, key)][0]
            raise error_at(
                document.path,
                position,
                f"the key {key!r} occurs twice",
                f"first on line {first_line}; remove one",
            )
        document.keys[(*path, key)] = position
        mapping[key] = _read_node(document, value_node, (*path, key))
    return mapping


def _read_scalar(document: Document, node: Node, path: tuple[Step, ...]) -> Any:
    kind, text = node.tag.rsplit(":", 1)[-1], str(node.value)
    if kind == "null":
        if not text:
            document.blanks.add(path)
        return None
    if kind == "bool":
        return text.lower() in ("yes", "true", "on")
    if kind not in ("int", "float"):
        return text
    value = _parse_number(kind, text)
    if value is None:
        raise error_at(
            document.path,
            _position(node.start_mark),
            f"{text[:40]!r} is not a plain finite number",
            "write it like 0.5, or quote it as text",
        )
    return value


def _parse_number(kind: str, text: str) -> int | float | None:
    """The number; None if it is infinite, too long, or in another notation of YAML."""
    if len(text) > _MAX_DIGITS:
        return None
    try:
        value = int(text) if kind == "int" else float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
