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


_BIDI_CODES = {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
_SURROGATES = range(0xD800, 0xE000)
_FILLERS = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, 0x2800}
_VARIATION_SELECTORS = {*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0), *range(0x180B, 0x1810)}
_HIGH_FORMAT_CODES = {
    *range(0xE0000, 0xE0080),
    *range(0x1BCA0, 0x1BCA4),
    *range(0x1D173, 0x1D17B),
    0x110BD,
    0x110CD,
    *range(0x13430, 0x13440),
}
"""Format characters (Cf) beyond 16 bits."""


@lru_cache(maxsize=1)
def _table() -> dict[int, str]:
    """What is shown instead of each unsafe character, by its code."""
    table: dict[int, str] = {}
    for code in range(0x20):
        if chr(code) not in "\t\n":
            table[code] = chr(0x2400 + code)  # the control pictures
    table[0x7F] = "␡"
    table |= dict.fromkeys(range(0x80, 0xA0), _REPLACEMENT)
    table |= dict.fromkeys((0x2028, 0x2029), _NEWLINE)
    table |= dict.fromkeys(_SURROGATES, _REPLACEMENT)
    # Format characters, variation selectors and fillers draw nothing and can hide or reorder text.
    format_codes = {code for code in range(0x10000) if unicodedata.category(chr(code)) == "Cf"}
    invisible = format_codes | _HIGH_FORMAT_CODES | _FILLERS | _VARIATION_SELECTORS
    table |= dict.fromkeys(invisible, _INVISIBLE)
    table |= dict.fromkeys(_BIDI_CODES, _BIDI)
    return table


@lru_cache(maxsize=1)
def _maybe_unsafe() -> re.Pattern[str]:
    """Matches what is replaced, and every character beyond 16 bits.

    `re` searches a set of 16-bit characters by a bitmap, which is faster than a look-up for each
    character; most texts have none of them.
    """
    codes = "".join(re.escape(chr(code)) for code in sorted(_table()) if code < 0x10000)
    return re.compile(f"[{codes}]|[\U00010000-\U0010ffff]")


@lru_cache(maxsize=1)
def _deletions() -> dict[int, None]:
    return dict.fromkeys(_table())


def sanitize(text: str) -> str:
    """Return `text` with visible characters in place of dangerous ones.

    Control, bidi, invisible and surrogate characters are replaced. Tab and newline stay. The result
    has the same length in code points.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_table()) if _maybe_unsafe().search(text) else text


def escape_json(line: str) -> str:
    """Escape the characters of a JSON line that `sanitize` replaces.

    The line keeps its value and is safe for a terminal.
    """
    if line.isascii() and line.isprintable():
        return line
    unsafe = set(map(ord, line)) & _table().keys()
    return line.translate({code: _escape(code) for code in unsafe})


def _escape(code: int) -> str:
    units = chr(code).encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def sanitize_line(text: str) -> str:
    """Like `sanitize`, but tabs and newlines become visible too: the result stays on one line."""
    return sanitize(text).replace("\n", _NEWLINE).replace("\t", " ")


_KEY_LIKE = re.compile(
    r"""(?ix)
    \b(?:sk|pk|gsk|xai|key|AIza)[-_][\w-]{6,}   # keys of providers
    |AIza[\w-]{20,}
    |bearer\s+\S+
    |(?<=key=)\S+
    |(?<=//)[^/@\s]+@                           # user and password of a URL
    |(?<=password=)[^&\s'\"]+
    """
)
_SECRET_SUFFIXES = ("_KEY", "_TOKEN", "_SECRET", "PASSWORD")
_SHORTEST_SECRET = 6


def mask(text: str, *secrets: str | None) -> str:
    """The text with secrets masked.

    Secrets are what looks like a key or a URL's password, the given secrets, and those in the
    environment. Secrets are recognised as they are, backwards, in base64 and in hexadecimal,
    because a server that was sent a key may write it otherwise.
    """
    values = {secret for secret in secrets if secret}
    for name, value in os.environ.items():
        if name.upper().endswith(_SECRET_SUFFIXES) and len(value) >= _SHORTEST_SECRET:
            values.add(value)
    spellings = {spelling for value in values for spelling in _spellings(value)}
    for spelling in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelling, "***")
    return _KEY_LIKE.sub("***", text)


def _spellings(secret: str) -> Iterator[str]:
    """A secret in the encodings in which a server may write it."""
    yield from (secret, secret[::-1])
    data = secret.encode("utf-8", "surrogateescape")
    if len(data) < _SHORTEST_SECRET:
        return
    yield from (data.hex(), data.hex().upper())
    # The position in a longer text decides how the bytes fall into groups of three, so there are
    # three base64 spellings; the characters at both ends also encode neighbouring bytes.
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + data).decode().rstrip("=")
        start = -(-offset * 8 // 6)
        end = len(encoded) - (1 if (offset + len(data)) % 3 else 0)
        own = encoded[start:end]
        yield from (own, own.replace("+", "-").replace("/", "_"))


def replaced(text: str) -> int:
    """The number of characters of a text that `sanitize` replaces.

    It is shown to the user, as hidden text is evidence.
    """
    if text.isascii() and text.isprintable():
        return 0
    return len(text) - len(text.translate(_deletions()))
