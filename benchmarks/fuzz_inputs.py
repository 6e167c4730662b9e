"""Inputs made from real ones, and the folder that they are read from: what every target of
`fuzz.py` needs."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
RUNS = DATA / "recorded" / "runs"
MOST = 40_000
"""Bytes of a seed; longer files are cut where a message ends, to keep inputs fast."""
_FRAGMENTS = [
    b"\\ud800",
    b"\\u0000",
    b"NaN",
    b"-1e999",
    b"9" * 400,
    b"[" * 300,
    b'{"a":' * 120,
    b"null",
    b"true",
    b'""',
    b"[]",
    b"{}",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    "\u202e\u2028\x9b\x1b[31m".encode(),
    b"0",
    b"-1",
    b"1e308",
    b"\n",
    b"\r\n",
    b'"',
    b"\\",
    b"/" * 3000,
    b" " * 3000,
    b"!!python/object:os.system x",
    b"&a [*a, *a]",
    b"../../..",
    b"a." * 200,
    b"1" * 5000,
    b'"role": 5',
    b'"content": [[]]',
    b'"tool_calls": {}',
    b"\x1f\x8b\x08",
    b"'''",
    b"<<EOF\n",
    b"$(",
    b"{{" * 50,
]
_VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    2**70,
    1.5,
    1e308,
    float("nan"),
    "",
    "x",
    "\ud800",
    "\x1b[2J\u202e",
    "a" * 5000,
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"role": {}},
    ["a", 1],
    "1e999",
    "2024-99-99",
    "/../",
    "..",
    "/",
    ".",
    "a\0",
    "٣",
    "NaN",
]


def mutated(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """The bytes with one to six changes: in their JSON where they are JSON or JSON Lines, else
    anywhere."""
    if rng.random() < 0.5 and (value := _parsed(data)) is not None:
        for _ in range(rng.randint(1, 4)):
            value = _changed(value, rng, value)
        if isinstance(value, Lines):
            return b"\n".join(map(_dumped, value))
        return _dumped(value)
    out = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(out) + 1)
        end = min(len(out), at + rng.choice((1, 2, 8, 64, 512)))
        match rng.randrange(6):
            case 0:
                out[at:end] = b""
            case 1:
                out[at:at] = rng.choice(_FRAGMENTS)
            case 2:
                out[at:end] = rng.choice(_FRAGMENTS)
            case 3 if at < len(out):
                out[at] = rng.randrange(256)
            case 4:
                out[at:at] = bytes(out[at:end]) * rng.choice((1, 2, 50))
            case _:
                other = rng.choice(others)
                start = rng.randrange(len(other) + 1)
                out[at:end] = other[start : start + rng.choice((8, 64, 1024))]
    return bytes(out[: 4 * MOST])


class Lines(list[Any]):
    """The values of JSON Lines."""


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        pass
    try:
        return Lines(map(json.loads, data.splitlines()))
    except (ValueError, RecursionError):
        return None


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _changed(value: Any, rng: random.Random, whole: Any) -> Any:
    """One place of a JSON value, found by going down at random (also into JSON that is kept as
    text), put otherwise."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: _changed(value[key], rng, whole)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        if rng.random() < 0.1:
            return type(value)(
                value[:at] + value[at + 1 :] + value[at : at + 1] * rng.randint(0, 3)
            )
        return type(value)([*value[:at], _changed(value[at], rng, whole), *value[at + 1 :]])
    if isinstance(value, str) and value[:1] in ("{", "[") and rng.random() < 0.7:
        inner = _parsed(value.encode("utf-8", "surrogatepass"))
        if isinstance(inner, dict | list):
            return json.dumps(_changed(inner, rng, inner))
    return _some_part(whole, rng) if rng.random() < 0.3 else rng.choice(_VALUES)


def _some_part(value: Any, rng: random.Random) -> Any:
    """What stands somewhere else in the same value."""
    while isinstance(value, dict | list) and value and rng.random() < 0.8:
        value = rng.choice(list(value.values()) if isinstance(value, dict) else value)
    return value


class Place:
    """A folder of the worker's own, with a run in it whose files are overwritten."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = folder / "run"
        (self.run / "process").mkdir(parents=True)

    def put(self, name: str, data: bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path


Target = Callable[[Place, bytes, random.Random], None]
"""Reads one input; the randomness is what made the input, which goes on."""
