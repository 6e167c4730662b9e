"""Recognises lines that tools print about themselves: progress bars, installers, warnings, logs.

`noise(line)` says which kind a line is, by the format in which the tool prints it; `listing_form`
recognises rows of listings. What an agent's own program prints in its own words is never noise
here: for such lines `folding` looks at how they repeat. The patterns are in noise.yaml.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from ...package_data import read_package_yaml

NoiseKind = Literal["progress", "installer", "warning", "log"]
ListingForm = Literal["files", "long", "packages", "environment", "processes"]

MAX_LINE = 1_000
"""Longer lines are not noise of these kinds and are not searched."""


class Noise(NamedTuple):
    """The kind of a line, and the group of lines that it is folded with.

    Bars are grouped by their label, warnings by category and message, logs by message.
    """

    kind: NoiseKind
    group: str = ""


_PATTERNS: dict[str, list[dict[str, Any]]] = read_package_yaml(Path(__file__).with_suffix(".yaml"))
_INSTALLER = re.compile(
    rf"[ \t]*(?:{'|'.join(entry['pattern'] for entry in _PATTERNS['installer'])})"
)
_PROGRESS = re.compile("|".join(entry["pattern"] for entry in _PATTERNS["progress"]), re.IGNORECASE)
_LISTING_FORMS = "|".join(
    f"(?P<{entry['form']}>{entry['pattern']})" for entry in _PATTERNS["listing"]
)
_ROW = re.compile(rf"\s*(?:{_LISTING_FORMS})")
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
    """The kind of tool chatter that this line is; None for anything else. Time is bounded."""
    if len(line) > MAX_LINE:
        return None
    if _INSTALLER.match(line):
        return Noise("installer")
    if _MAYBE_PROGRESS.search(line) and _PROGRESS.search(line):
        return Noise("progress", _LABEL.split(line, maxsplit=1)[0].strip())
    return _warning(line) or _log(line)


def _warning(line: str) -> Noise | None:
    """A warning of Python, or of native code such as TensorFlow's."""
    if "Warning" in line:
        match = _WARNING.match(line)
        if match:
            category, message = match.groups()
            return Noise("warning", f"{category} {_QUOTED.sub('*', message[:200])}")
    native = _NATIVE.match(line)
    return Noise("warning", f"native {native.group(1)}") if native else None


def _log(line: str) -> Noise | None:
    """A line of a quiet log level, or of a library's logger, that states no measure."""
    stamp = _STAMP.match(line)
    if stamp:
        message = line[stamp.end() :]
        is_log = _QUIET.search(message[:120]) or _LOGGER.search(line[:160])
    else:
        message = line.lstrip(" [<(")
        is_log = _QUIET.match(message)
    if not is_log or _FRACTION.search(message):  # a fraction is a measure that somebody logged
        return None
    return Noise("log", _QUOTED.sub("*", message[:200]))


def is_final_state(line: str) -> bool:
    """Whether a progress line is complete (100 %, n of n) and also states a measure by name."""
    done = "100%" in line or any(n == total for n, total in _COUNT.findall(line))
    return done and _MEASURES.search(line) is not None


def is_library_frame(line: str) -> bool:
    """Whether this is the first line of a traceback's frame in library code."""
    return _FRAME.match(line) is not None


def without_timestamp(line: str) -> str:
    """The line without a time at its start."""
    stamp = _STAMP.match(line)
    return line[stamp.end() :] if stamp else line


def listing_form(line: str) -> ListingForm | None:
    """The form of listing that this line is a row of; None for other lines.

    Files, long listings of files, packages, environment variables, and processes are recognised.
    """
    if len(line) > MAX_LINE:
        return None
    row = _ROW.match(line)
    if row is None:
        return None
    form = cast(ListingForm, row.lastgroup)
    if form == "files" and not ("/" in line or _SUFFIX.search(line.rstrip())):
        return None
    return form
