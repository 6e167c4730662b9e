"""The one place where text from a transcript is made safe for a terminal.

`sanitize` is length-preserving, so that offsets into the raw text stay valid on screen, and it
replaces rather than drops, so that hidden text is seen. Raw text stays in the models; sinks
(console, browser, HTML) call this.
"""

from __future__ import annotations

import base64
import os
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

_BIDI = "⇄"
_INVISIBLE = "·"
_NEWLINE = "␤"
_REPLACEMENT = "\ufffd"


def _pairs() -> Iterator[tuple[int, str]]:
    for code in range(0x20):
        if code not in (0x09, 0x0A):
            yield code, chr(0x2400 + code)
    yield 0x7F, "␡"
    for code in range(0x80, 0xA0):
        yield code, _REPLACEMENT
    yield 0x2028, _NEWLINE
    yield 0x2029, _NEWLINE
    for code in range(0xD800, 0xE000):
        yield code, _REPLACEMENT
    bidi = {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
    for code in bidi:
        yield code, _BIDI
    # Format characters (Cf), variation selectors and fillers draw nothing and can hide or reorder
    # text.
    invisible = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, 0x2800}
    invisible |= (
        set(range(0xFE00, 0xFE10)) | set(range(0xE0100, 0xE01F0)) | set(range(0x180B, 0x1810))
    )
    invisible |= {code for code in range(0x10000) if unicodedata.category(chr(code)) == "Cf"}
    invisible |= (
        set(range(0xE0000, 0xE0080))
        | set(range(0x1BCA0, 0x1BCA4))
        | set(range(0x1D173, 0x1D17B))
        | {0x110BD, 0x110CD}
        | set(range(0x13430, 0x13440))
    )
    for code in invisible - bidi:
        yield code, _INVISIBLE


@lru_cache(maxsize=1)
def _table() -> dict[int, str]:
    return dict(_pairs())


@lru_cache(maxsize=1)
def _doubtful() -> re.Pattern[str]:
    """What is replaced, and all beyond 16 bits: `re` searches a set of smaller ones by a bitmap,
    faster than a table is asked for each character, and most text has none of them."""
    return re.compile(
        f"[{''.join(re.escape(chr(code)) for code in sorted(_table()) if code < 0x10000)}]|[\U00010000-\U0010ffff]"
    )


@lru_cache(maxsize=1)
def _deletions() -> dict[int, None]:
    return dict.fromkeys(_table())


def sanitize(text: str) -> str:
    """Return `text` with every control, bidi, invisible and surrogate character replaced by a
    visible one.

    Tab and newline stay. The result has the same length in code points.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_table()) if _doubtful().search(text) else text


def escape_json(line: str) -> str:
    """A line of JSON with every character that `sanitize` replaces written as its escape: the same
    value, and no character in it that a terminal obeys."""
    if line.isascii() and line.isprintable():
        return line
    return line.translate({code: _escape(code) for code in set(map(ord, line)) & _table().keys()})


def _escape(code: int) -> str:
    units = chr(code).encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def sanitize_line(text: str) -> str:
    """`sanitize`, and tabs and newlines become visible too, so that the result stays on one line."""
    return sanitize(text).replace("\n", _NEWLINE).replace("\t", " ")


_KEY_LIKE = re.compile(
    r"(?i)\b(?:sk|pk|gsk|xai|key|AIza)[-_][\w-]{6,}|AIza[\w-]{20,}|bearer\s+\S+|(?<=key=)\S+|(?<=//)[^/@\s]+@"
    r"|(?<=password=)[^&\s'\"]+"
)
_SECRET = ("_KEY", "_TOKEN", "_SECRET", "PASSWORD")


def mask(text: str, *secrets: str | None) -> str:
    """The text without anything that looks like a key or a URL's password, the given secrets, and
    those that stand in the environment: as they are, backwards, in base64, in hexadecimal. A server
    that was sent a key may write it otherwise."""
    known = {v for k, v in os.environ.items() if k.upper().endswith(_SECRET) and len(v) >= 6}
    forms = {form for secret in known.union(s for s in secrets if s) for form in _spellings(secret)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, "***")
    return _KEY_LIKE.sub("***", text)


def _spellings(secret: str) -> Iterator[str]:
    yield from (secret, secret[::-1])
    data = secret.encode("utf-8", "surrogateescape")
    if len(data) < 6:
        return
    yield from (data.hex(), data.hex().upper())
    # where it stands in a longer text decides how its bytes fall into groups of three
    for before in range(3):
        packed = base64.b64encode(bytes(before) + data).decode().rstrip("=")
        own = packed[-(-before * 8 // 6) : len(packed) - (1 if (before + len(data)) % 3 else 0)]
        yield from (own, own.replace("+", "-").replace("/", "_"))


def replaced(text: str) -> int:
    """How many characters `sanitize` replaces in `text`: a count to show beside it, as hidden text
    is evidence."""
    if text.isascii() and text.isprintable():
        return 0
    return len(text) - len(text.translate(_deletions()))
