"""Lines that tools write about themselves: progress, installers, warnings of libraries, debug logs,
listings.

`noise(line)` says which kind a line is, by the format that the tool prints it in. What an agent's
own program prints in words of its own is never noise here: `folding` looks at how such lines repeat
instead. The patterns stand in noise.yaml.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from ...package_data import read_shipped

Kind = Literal["progress", "installer", "warning", "log"]
Listing = Literal["files", "long", "packages", "environment", "processes"]

MAX_LINE = 1_000
"""Longer lines are no noise of these kinds; they are not searched."""


class Noise(NamedTuple):
    """The kind of a line, and what it is grouped by: bars by their label, warnings by category,
    logs by level."""

    kind: Kind
    group: str = ""


_PATTERNS: dict[str, list[dict[str, Any]]] = read_shipped(Path(__file__).with_suffix(".yaml"))
_INSTALLER = re.compile(
    rf"[ \t]*(?:{'|'.join(entry['pattern'] for entry in _PATTERNS['installer'])})"
)
_PROGRESS = re.compile("|".join(entry["pattern"] for entry in _PATTERNS["progress"]), re.IGNORECASE)
_ROW = re.compile(
    rf"\s*(?:{'|'.join('(?P<{form}>{pattern})'.format_map(entry) for entry in _PATTERNS['listing'])})"
)
_MAYBE_PROGRESS = re.compile(r"[%━]|\d/|/s\b|/it\b|:\d\d:\d\d|--:--|\beta\b", re.IGNORECASE)
_COUNT = re.compile(r"(?<!\d)(\d{1,9})/(\d{1,9})(?!\d)")
_MEASURES = re.compile(r"[A-Za-z_]=-?\d{1,9}\.|[-,] \w{1,40}: -?\d{1,9}\.")
_LABEL = re.compile(r"[\d#=█▉▊▋▌▍▎▏━╸╺>%|\[]")
_WARNING = re.compile(r"\S{1,300}:\d+: (\w*Warning)\b(.*)")
_NATIVE = re.compile(r"W\d{4} [\d:.]{8,30} +\d+ (\S+?:)\d+\]")
_FRAME = re.compile(
    r'\s{2,8}File "[^"\n]{0,400}(?:(?:site|dist)-packages|/lib/python3\.\d+|<frozen )'
)
_QUOTED = re.compile(r"`[^`]{0,80}`|'[^']{0,80}'|\"[^\"]{0,80}\"|\S*\d\S{0,80}")
_STAMP = re.compile(
    r"\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ]?)?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|[IDWE]\d{4} \d\d:\d\d:\d\d\.\d+"
)
_QUIET = re.compile(r"\b(?:DEBUG|TRACE|VERBOSE)\b|^D\d{4} ")
_LOGGER = re.compile(r"\b(?:INFO|NOTICE)\b[^\n]{0,12}?\b[a-z_]\w*(?:\.\w+)+|^I\d{4} |: I [a-z_]+/")
_FRACTION = re.compile(r"(?<![\d.:])-?\d+\.\d+(?![\d.])")

_SUFFIX = re.compile(r"\w\.[A-Za-z]\w{0,9}$|:$")


def noise(line: str) -> Noise | None:
    """What kind of tool chatter this line is; None for anything else. Bounded time."""
    if len(line) > MAX_LINE:
        return None
    if _INSTALLER.match(line):
        return Noise("installer")
    if _MAYBE_PROGRESS.search(line) and _PROGRESS.search(line):
        return Noise("progress", _LABEL.split(line, maxsplit=1)[0].strip())
    if "Warning" in line and (found := _WARNING.match(line)):
        return Noise("warning", f"{found.group(1)} {_QUOTED.sub('*', found.group(2)[:200])}")
    if found := _NATIVE.match(line):
        return Noise("warning", f"native {found.group(1)}")
    stamp = _STAMP.match(line)
    rest = line[stamp.end() :] if stamp else line.lstrip(" [<(")
    quiet = _QUIET.search(rest[:120]) or _LOGGER.search(line[:160]) if stamp else _QUIET.match(rest)
    if quiet and not _FRACTION.search(rest):  # a fraction is a measure that somebody logged
        return Noise("log", _QUOTED.sub("*", rest[:200]))
    return None


def complete(line: str) -> bool:
    """Whether a progress line is a last state (100 %, n of n) that also states a measure by name."""
    done = "100%" in line or any(a == b for a, b in _COUNT.findall(line))
    return done and _MEASURES.search(line) is not None


def library_frame(line: str) -> bool:
    """Whether this is the first line of a traceback's frame in library code."""
    return _FRAME.match(line) is not None


def unstamped(line: str) -> str:
    """The line without a time at its start."""
    found = _STAMP.match(line)
    return line[found.end() :] if found else line


def listing(line: str) -> Listing | None:
    """The form of listing that this line is a row of, if any: files, packages, environment
    variables, processes."""
    if len(line) > MAX_LINE or not (found := _ROW.match(line)):
        return None
    form = cast(Listing, found.lastgroup)
    if form == "files" and not ("/" in line or _SUFFIX.search(line.rstrip())):
        return None
    return form
