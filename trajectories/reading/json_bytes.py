"""Parses JSON from untrusted files, within limits of size, depth and number of values.

Every failure is an `InputError` that names the file and the position in it. NaN and infinities are
read as None ("unknown"): JSON has no such numbers, and every later comparison with them would
silently be false.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import stat
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any

from ...errors import InputError

MAX_BYTES = 256 * 1024 * 1024
"""Larger conversation files are refused: no transcript is that long, and reading one would exhaust
memory."""
_UNPACKED_BYTES = 16 * 1024 * 1024
_UNPACKED_RATIO = 200
"""A gzip file may unpack to `_UNPACKED_BYTES` plus this many times its own size. Text shrinks to a
fifth or a twentieth."""
_MAX_MEMBERS = 10_000
"""Members of a gzip file. Each takes time however little it holds; block-wise packers make members
of 64 kB."""
MAX_VALUES = 1_000_000
"""Objects, lists, and members after the first. Each takes a hundred bytes of memory or more, but
only three in the file."""
MAX_LINE = 16 * 1024 * 1024
"""Bytes of one scorecard; a long one has a hundredth of that."""
MAX_CARDS = 64 * 1024 * 1024
"""Bytes of a file of scorecards that is one JSON value and is read as a whole; JSON Lines may have
any length."""

MAX_DEPTH = 100
"""Deeper JSON is refused: conversations need about ten levels, and pydantic cannot write more than
about 200."""
MAX_COUNT = 2**53
"""Larger counts are nonsense and would overflow the integers of tables and databases."""

GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """The file's bytes, unpacked if it is gzipped.

    InputError if it is missing, is not a regular file, cannot be read, or has more than `limit`
    bytes.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError("is not a regular file", "give a conversation.json or a folder", path)
        if status.st_size > limit:
            raise InputError(
                f"has {status.st_size:,} bytes, more than the {limit:,} that are read",
                "split or shorten it",
                path,
            )
        data = path.read_bytes()
        return _unpack(data, path, limit) if data.startswith(GZIP) else data
    except FileNotFoundError:
        raise InputError("no such file", "check the path", path) from None
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror or error}", "check its permissions", path
        ) from None
    except ValueError:  # a NUL in the name
        raise InputError("is not a valid file name", "check the path", repr(str(path))) from None


def _unpack(data: bytes, path: Path, limit: int) -> bytes:
    """The content of a gzip file, read up to the limit: a small file must not fill the memory."""
    # Every member begins with these bytes; by chance they occur once in 16 MB.
    if data.count(GZIP + b"\x08") > _MAX_MEMBERS:
        raise InputError(f"has more than {_MAX_MEMBERS:,} gzip parts", "pack it as one", path)
    limit = min(limit, _UNPACKED_BYTES + _UNPACKED_RATIO * len(data))
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            content = stream.read(limit + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"is not a complete gzip file: {error}", "check that it was written completely", path
        ) from None
    if len(content) > limit:
        raise InputError(
            f"unpacks to more than the {limit:,} bytes that are read", "split or shorten it", path
        )
    return content


def decode(data: bytes, path: Path) -> str:
    """The text of a UTF-8 file, or of one that begins with a byte-order mark of UTF-8, -16 or -32.

    InputError with the offset of the first byte that is not text.
    """
    encoding = "utf-8-sig"
    for mark, marked_encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            encoding = marked_encoding
            break
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        location = f"byte {error.start} (0x{data[error.start]:02x})"
        hint = "save it as UTF-8"
        if b"\0" in data[:64]:
            hint = "it may be UTF-16 without a byte-order mark: save it as UTF-8"
        raise InputError(
            f"is not {encoding.removesuffix('-sig').upper()} text at {location}", hint, path
        ) from None


def decode_start(data: bytes) -> str | None:
    """The text of a UTF-8 file that may break off within a character; None if it is none."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":
            return None
        return data[: error.start].decode("utf-8-sig")


def is_file(path: Path) -> bool:
    """Whether this is a regular file; False, without an exception, if that cannot be told."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _integer(digits: str) -> int | None:
    # CPython refuses to parse more than 4,300 digits; no count of anything is that long.
    return int(digits) if len(digits) <= 300 else None


def _real(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


def _not_a_number(_name: str) -> None:
    return None


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_real, parse_constant=_not_a_number)
_CONTAINERS = (dict, list)


def loads(text: str) -> Any:
    """A JSON value that can be stored, compared and written again; ValueError if it is not JSON.

    NaN, infinities and integers of more than 300 digits become None. Halves of surrogate pairs,
    which no UTF-8 file can hold, become U+FFFD. Nesting deeper than `MAX_DEPTH` is refused, because
    models could not be written as JSON again.
    """
    if has_too_many_values(text):
        raise TooManyError
    try:
        if text.startswith("\ufeff"):
            raise json.JSONDecodeError("Unexpected UTF-8 BOM (decode using utf-8-sig)", text, 0)
        value = _DECODER.decode(text)
        if "\\u" in text or without_lone_surrogates(text) is not text:
            return _storable(value, MAX_DEPTH)
        if text.count("[") + text.count("{") > MAX_DEPTH:
            _check_depth(value)
        return value
    except RecursionError:
        raise NestingError from None


class NestingError(ValueError):
    """The JSON is nested too deeply."""

    def __init__(self) -> None:
        super().__init__(f"is nested more than {MAX_DEPTH} deep")


class TooManyError(ValueError):
    """The JSON has more than `MAX_VALUES` values."""

    def __init__(self) -> None:
        super().__init__(f"holds more than {MAX_VALUES:,} values")


_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{,]', re.DOTALL)
"""A string, or a character outside of strings that begins a value."""


def has_too_many_values(text: str) -> bool:
    """Whether JSON text, or JSON Lines, has more than `MAX_VALUES` values.

    Counted in the text, before any value takes memory.
    """
    if len(text) <= MAX_VALUES or sum(map(text.count, "[{,")) <= MAX_VALUES:
        return False
    values = 0
    for token in _TOKEN.finditer(text):
        if text[token.start()] != '"':
            values += 1
        if values > MAX_VALUES:
            return True
    return False


def _check_depth(value: Any) -> None:
    """NestingError if a value is nested too deeply; cheaper than `_storable`, level by level."""
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(MAX_DEPTH):
        containers = []
        for item in level:
            children = item.values() if isinstance(item, dict) else item
            containers += [child for child in children if isinstance(child, _CONTAINERS)]
        if not containers:
            return
        level = containers
    raise NestingError


def _storable(value: Any, depth: int) -> Any:
    """The value without lone surrogates; NestingError if it has more than `depth` levels."""
    if isinstance(value, str):
        return without_lone_surrogates(value)
    if isinstance(value, _CONTAINERS) and depth <= 0:
        raise NestingError
    if isinstance(value, dict):
        return {
            without_lone_surrogates(key): _storable(item, depth - 1) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_storable(item, depth - 1) for item in value]
    return value


def without_lone_surrogates(text: str) -> str:
    """The text with halves of surrogate pairs replaced by U+FFFD, so that it can be encoded."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if 0xD800 <= ord(char) < 0xE000 else char for char in text)
    return text


def parse_json(text: str, path: Path, line: int | None = None) -> Any:
    """A JSON value (see `loads`); InputError with line and column.

    `line` is the number of the line if the text is one line of a JSONL file.
    """
    try:
        return loads(text)
    except json.JSONDecodeError as error:
        if not text.strip():
            raise InputError("is empty", "expected JSON", path) from None
        if "\0" in text[:64]:
            raise InputError(
                "is not JSON: NUL characters",
                "it may be UTF-16 without a byte-order mark: save it as UTF-8",
                path,
            ) from None
        location = f"line {line or error.lineno} column {error.colno}"
        raise InputError(
            f"is not JSON: {error.msg} at {location}", "check that it was written completely", path
        ) from None
    except TooManyError as error:
        raise InputError(str(error), "split or shorten it", path) from None
    except NestingError as error:
        raise InputError(str(error), "expected an object or a list of messages", path) from None


def complete_part(text: str) -> str | None:
    """The JSON of a file that breaks off, up to the last complete member of its outermost value.

    In an object the members of `messages` count too. None if no member is complete, or if the text
    is not broken off but broken.
    """
    try:
        text = text.removeprefix("\ufeff").lstrip()
        if text.startswith("["):
            end = _complete_items(text, 1)
            return None if end is None else text[:end] + "]"
        return _complete_members(text) if text.startswith("{") else None
    except (RecursionError, json.JSONDecodeError):
        return None


_SPACE = re.compile(r"[ \t\n\r]*")
_LONGEST_LITERAL = 30
"""Characters of a word, a number or an escape that is cut in two at the end of a text."""


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return position if match is None else match.end()


def _value_end(text: str, position: int) -> int | None:
    """Where the value that begins here ends; None if the text breaks off in it.

    JSONDecodeError if it is no JSON. A number at the very end may have lost digits.
    """
    try:
        _, end = _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        if text[error.pos : error.pos + 1] in ("]", "}"):
            raise
        is_at_end = len(text) - _after_space(text, error.pos) <= _LONGEST_LITERAL
        is_cut_off = is_at_end or error.msg.startswith("Unterminated string")
        if is_cut_off:
            return None
        raise
    return end if end < len(text) or text[end - 1] in "]}" else None


def _complete_items(text: str, position: int) -> int | None:
    """Where the last complete item of the list that was opened before `position` ends."""
    last_end = None
    while True:
        position = _after_space(text, position)
        end = _value_end(text, position) if position < len(text) else None
        if end is None:
            return last_end
        last_end, position = end, _after_space(text, end)
        if position >= len(text):
            return last_end
        if text[position] != ",":
            raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
        position += 1


def _complete_members(text: str) -> str | None:
    """An object that breaks off, up to its last complete member or message."""
    last_end, position = None, 1
    while True:
        start = _after_space(text, position)
        name_end = _value_end(text, start) if start < len(text) else None
        colon = len(text) if name_end is None else _after_space(text, name_end)
        if name_end is None or colon >= len(text):
            break
        value = _after_space(text, colon + 1)
        end = _value_end(text, value) if value < len(text) else None
        if end is None:
            if text[start:name_end] == '"messages"' and text.startswith("[", value):
                items_end = _complete_items(text, value + 1)
                if items_end is not None:
                    return text[:items_end] + "]}"
            break
        delimiter = _after_space(text, end)
        if text[delimiter : delimiter + 1] not in (",", ""):
            return None
        last_end, position = end, delimiter + 1
    return None if last_end is None else text[:last_end] + "}"


def read_json(path: Path) -> Any:
    """The JSON value of a file."""
    return parse_json(decode(read_bytes(path), path), path)


def read_jsonl(
    path: Path, data: bytes | None = None, *, in_memory: bool = False
) -> Iterator[tuple[int, dict[str, Any] | InputError]]:
    """(line number, object) for each non-empty line; a broken line is yielded as its error.

    `data`: the file's bytes, if they were read already. `in_memory`: the caller keeps all objects
    at the same time, so `MAX_VALUES` applies to all lines together; InputError beyond it.
    """
    text = decode(read_bytes(path) if data is None else data, path)
    if in_memory and has_too_many_values(text):
        raise InputError(str(TooManyError()), "split or shorten it", path)
    for number, line in enumerate(_split_lines(text), 1):
        if not line.strip():
            continue
        try:
            value = parse_json(line, path, number)
        except InputError as error:
            yield number, error
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            message = f"line {number} is not an object"
            yield number, InputError(message, "expected one JSON object a line", path)


def _split_lines(text: str) -> Iterator[str]:
    """The lines of a text, one at a time: a list of them all would double the memory."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end].removesuffix("\n")
        start = end


def bounded_lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """(offset, line) for each line of a file of scorecards.

    A line longer than `MAX_LINE` is not a scorecard; only its beginning is returned.
    """
    offset = 0
    while line := stream.readline(MAX_LINE + 1):
        yield offset, line
        while len(line) > MAX_LINE and not line.endswith(b"\n"):
            offset += len(line)
            line = stream.readline(MAX_LINE + 1)
        offset += len(line)


def exact_sum(values: Collection[float]) -> float | None:
    """The exactly rounded sum; None if there are no values, or if it is larger than any float.

    `sum` rounds differently from Python 3.12 on.
    """
    if not values:
        return None
    try:
        return math.fsum(values)
    except OverflowError:
        return None


def number(value: Any) -> float | None:
    """A finite float from a JSON number or numeric string, else None. Booleans are not numbers."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None


def count(value: Any) -> int | None:
    """A non-negative integer up to `MAX_COUNT`, else None."""
    result = amount(value)
    return int(result) if result is not None and result == int(result) else None


def amount(value: Any) -> float | None:
    """A number of seconds, dollars or tokens from 0 to `MAX_COUNT`, else None."""
    result = number(value)
    if result is None or not 0 <= result <= MAX_COUNT:
        return None
    return result


def text_or_none(value: Any) -> str | None:
    """A non-empty string, else None."""
    return value if isinstance(value, str) and value.strip() else None
