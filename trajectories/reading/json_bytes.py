"""Bytes to JSON values, for files that nobody vouches for.

Every failure is an `InputError` with the file and the place in it. NaN and infinities are read as
None ("not known"), because JSON has no such numbers and every later comparison with them would be
silently false.
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
_UNPACKED = 16 * 1024 * 1024
_MOST_PACKED = 200
"""What a gzip file may unpack to: `_UNPACKED` bytes and so many times its own size. Text packs to a
fifth or a twentieth."""
_MEMBERS = 10_000
"""Parts of a gzip file, each of which takes time however little it holds; block-wise packers make
parts of 64 kB."""
MAX_VALUES = 1_000_000
"""Objects, lists and members beyond the first: each takes a hundred bytes of memory or more, and
three in the file."""
MAX_LINE = 16 * 1024 * 1024
"""Bytes of a scorecard; a long one has a hundredth."""
MAX_CARDS = 64 * 1024 * 1024
"""Bytes of a file of scorecards that is one JSON value, which is read whole; JSON Lines may be of
any length."""

MAX_DEPTH = 100
"""Deeper JSON is refused: conversations need about ten levels, and pydantic cannot write more than
about 200."""
MAX_COUNT = 2**53
"""Larger counts are nonsense and would overflow the integers of tables and databases."""

GZIP = b"\x1f\x8b"
_BOMS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


def read_bytes(path: Path, most: int = MAX_BYTES) -> bytes:
    """The file's bytes, unpacked where it is gzip; InputError when it is missing, not a file,
    unreadable or too large."""
    try:
        status = path.stat()
        size = status.st_size
        if not stat.S_ISREG(status.st_mode):
            raise InputError("is not a regular file", "give a conversation.json or a folder", path)
        if size > most:
            raise InputError(
                f"has {size:,} bytes, more than the {most:,} that are read",
                "split or shorten it",
                path,
            )
        data = path.read_bytes()
        return _unpacked(data, path, most) if data.startswith(GZIP) else data
    except FileNotFoundError:
        raise InputError("no such file", "check the path", path) from None
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror or error}", "check its permissions", path
        ) from None
    except ValueError:  # A NUL in the name.
        raise InputError("is not a possible file name", "check the path", repr(str(path))) from None


def _unpacked(data: bytes, path: Path, most: int) -> bytes:
    """The content of a gzip file, read up to the limit so that a small file cannot fill the memory."""
    if data.count(GZIP + b"\x08") > _MEMBERS:  # as each begins; by chance once in 16 MB
        raise InputError(f"has more than {_MEMBERS:,} gzip parts", "pack it as one", path)
    most = min(most, _UNPACKED + _MOST_PACKED * len(data))
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            content = stream.read(most + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"is not a whole gzip file: {error}", "check that it was written completely", path
        ) from None
    if len(content) > most:
        raise InputError(
            f"unpacks to more than the {most:,} bytes that are read", "split or shorten it", path
        )
    return content


def decode(data: bytes, path: Path) -> str:
    """UTF-8 (a byte-order mark of UTF-8, -16 or -32 is honoured); InputError with the offset
    otherwise."""
    encoding = next((name for bom, name in _BOMS if data.startswith(bom)), "utf-8-sig")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        where = f"byte {error.start} (0x{data[error.start]:02x})"
        hint = (
            "UTF-16 without a byte-order mark? Save it as UTF-8"
            if b"\0" in data[:64]
            else "save it as UTF-8"
        )
        raise InputError(
            f"is not {encoding.removesuffix('-sig').upper()} text at {where}", hint, path
        ) from None


def is_file(path: Path) -> bool:
    """Whether this is a regular file that can be asked about; False, not an exception, when it
    cannot."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _integer(digits: str) -> int | None:
    # CPython refuses to parse more than 4,300 digits; nothing that long is a count of anything.
    return int(digits) if len(digits) <= 300 else None


def _real(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


def _not_a_number(_name: str) -> None:
    return None


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_real, parse_constant=_not_a_number)
_NESTED = (dict, list)


def loads(text: str) -> Any:
    """A JSON value that can be kept, compared and written again; ValueError for what is none.

    NaN, infinities and endless integers are None; halves of surrogate pairs, which no UTF-8 file
    can hold, become U+FFFD; nesting deeper than `MAX_DEPTH` is refused, because models could not be
    written as JSON again.
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
            _refuse_depth(value)
        return value
    except RecursionError:
        raise NestingError from None


class NestingError(ValueError):
    """JSON nested too deeply."""

    def __init__(self) -> None:
        super().__init__(f"is nested more than {MAX_DEPTH} deep")


class TooManyError(ValueError):
    """JSON of more than `MAX_VALUES` values."""

    def __init__(self) -> None:
        super().__init__(f"holds more than {MAX_VALUES:,} values")


_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{,]', re.DOTALL)


def has_too_many_values(text: str) -> bool:
    """Whether JSON text, or JSON Lines, has more than `MAX_VALUES` values, told before any of them
    takes memory."""
    if len(text) <= MAX_VALUES or sum(map(text.count, "[{,")) <= MAX_VALUES:
        return False
    seen = 0  # those within texts do not count
    for token in _TOKEN.finditer(text):
        seen += text[token.start()] != '"'
        if seen > MAX_VALUES:
            return True
    return False


def _refuse_depth(value: Any) -> None:
    """The same where no text can hold half a pair."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            below
            for item in level
            if isinstance(item, _NESTED)
            for below in (item.values() if isinstance(item, dict) else item)
            if isinstance(below, _NESTED)
        ]
        if not level:
            return
    raise NestingError


def _storable(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return without_lone_surrogates(value)
    if isinstance(value, _NESTED) and depth <= 0:
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
    """A JSON value (see `loads`); InputError naming line and column. `line` is the line's number in
    a JSONL file."""
    try:
        return loads(text)
    except json.JSONDecodeError as error:
        if not text.strip():
            raise InputError("is empty", "expected JSON", path) from None
        if "\0" in text[:64]:
            raise InputError(
                "is not JSON: NUL characters",
                "UTF-16 without a byte-order mark? Save it as UTF-8",
                path,
            ) from None
        where = f"line {line or error.lineno} column {error.colno}"
        raise InputError(
            f"is not JSON: {error.msg} at {where}", "check that it was written completely", path
        ) from None
    except TooManyError as error:
        raise InputError(str(error), "split or shorten it", path) from None
    except NestingError as error:
        raise InputError(str(error), "expected an object or a list of messages", path) from None


def read_json(path: Path) -> Any:
    """The JSON value of a file."""
    return parse_json(decode(read_bytes(path), path), path)


def read_jsonl(
    path: Path, data: bytes | None = None, *, kept: bool = False
) -> Iterator[tuple[int, dict[str, Any] | InputError]]:
    """(line number, object) for each non-empty line; a broken line comes as the error that it is,
    and reading goes on.

    `data`: the file's bytes, where they were read already. `kept`: all objects will be held at the
    same time, so that `MAX_VALUES` is for all lines together: InputError beyond.
    """
    text = decode(read_bytes(path) if data is None else data, path)
    if kept and has_too_many_values(text):
        raise InputError(str(TooManyError()), "split or shorten it", path)
    number = end = 0
    while end < len(text):
        start, number = end, number + 1
        end = text.find("\n", start) + 1 or len(text)
        line = text[start:end].removesuffix("\n")
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
            yield (
                number,
                InputError(
                    f"line {number} is not an object", "expected one JSON object a line", path
                ),
            )


def bounded_lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """(offset, line) of a file of scorecards; of a line beyond `MAX_LINE` only that much, which is
    no scorecard."""
    offset = 0
    while line := stream.readline(MAX_LINE + 1):
        yield offset, line
        while len(line) > MAX_LINE and not line.endswith(b"\n"):
            offset += len(line)
            line = stream.readline(MAX_LINE + 1)
        offset += len(line)


def exact_sum(values: Collection[float]) -> float | None:
    """Their exactly rounded sum: `sum` rounds otherwise from Python 3.12 on. None of none, and
    beyond all floats."""
    try:
        return math.fsum(values) if values else None
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
    result = number(value)
    return (
        int(result)
        if result is not None and 0 <= result <= MAX_COUNT and result == int(result)
        else None
    )


def amount(value: Any) -> float | None:
    """A number of seconds, dollars or tokens from 0 to `MAX_COUNT`, else None."""
    result = number(value)
    return result if result is not None and 0 <= result <= MAX_COUNT else None


def text_or_none(value: Any) -> str | None:
    """A non-empty string, else None."""
    return value if isinstance(value, str) and value.strip() else None
