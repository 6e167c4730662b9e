"""Lines that tools write about themselves: progress, installers, warnings of libraries, debug logs, listings.

`noise(line)` says which kind a line is, by the format that the tool prints it in. What an agent's own program prints in
words of its own is never noise here: `folding` looks at how such lines repeat instead.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, cast

Kind = Literal["progress", "installer", "warning", "log"]
Listing = Literal["files", "long", "packages", "environment", "processes"]

MAX_LINE = 1_000
"""Longer lines are no noise of these kinds; they are not searched."""


class Noise(NamedTuple):
    """The kind of a line, and what it is grouped by: bars by their label, warnings by category, logs by level."""

    kind: Kind
    group: str = ""


_INSTALLER = re.compile(
    r"""[ \t]*(?:
    # pip, uv
      Requirement\ already\ | Collecting\ [\w.\-\[\],]+(?:\ ?[<>=!~@(].*)?$ | Using\ cached\  | Obtaining\ (?:file|dependency)
    | (?:Downloading|Using\ cached|Building|Downloaded|Built)\ \S+(?:\.whl|\.tar\.gz|\.zip|\.metadata|\.tgz)?\ \([\d.]+\ ?[kKMG]?i?B
    | Downloading\ \S+(?:\.whl|\.tar\.gz|\.zip|\.metadata|://\S+)
    | Building\ wheels?\  | Created\ wheel\  | Stored\ in\ directory: | Preparing\ metadata\  | Getting\ requirements\ to[ ]
    | Installing\ (?:build\ dependencies|backend\ dependencies|collected\ packages:) | Running\ setup\.py[ ]
    | Attempting\ uninstall:\  | Found\ existing\ installation:\  | Uninstalling\ \S+: | Successfully\ uninstalled[ ]
    | WARNING:\ (?:Running\ pip\ as|Ignoring\ invalid\ distribution)\b
    | Looking\ in\ (?:indexes|links): | \[notice\]\  | (?:Resolved|Prepared|Audited)\ \d+\ packages?\ in\  | [+~-]\ [\w.-]+==\S+$
    # apt, dpkg
    | (?:Get|Hit|Ign):\d+\  | Reading\ (?:package\ lists|state\ information) | \(Reading\ database\  | Building\ dependency\ tree
    | Selecting\ previously\ unselected\  | Preparing\ to\ unpack\  | (?:Unpacking|Setting\ up)\ \S+\ \( | Processing\ triggers\ for[ ]
    | (?:Need\ to\ get|Fetched)\ [\d.,]+\ ?[kMG]?B\  | After\ this\ operation,\  | update-alternatives:\  | debconf:[ ]
    # conda, npm, docker, git
    | (?:Collecting\ package\ metadata|Solving\ environment|(?:Preparing|Verifying|Executing)\ transaction)\b
    | [\w.-]+\ +\|\ [\d.]+\ [kKMG]B\ +\| | npm\ (?:http|timing|verb|sill|notice)\b
    | [0-9a-f]{12}:\ (?:Pulling|Waiting|Downloading|Extracting|Verifying|Pull\ complete|Download\ complete|Already\ exists)
    | remote:\ (?:Enumerating|Counting|Compressing|Total)[ ]
    )""",
    re.VERBOSE,
)
"""What package managers and downloaders print while they work. Their errors and their last word (`Successfully
installed`) are none of these."""
_BAR = "[#=█▉▊▋▌▍▎▏━╸╺>-]"
_PROGRESS = re.compile(
    r"(?<!\d)\d{1,3}%(?:\|[#█▉▊▋▌▍▎▏0-9 ]{0,200}\| ?[\d.?]| ?\[[=>#. -]{3})"  # tqdm, and bars in brackets
    r"|(?<!\d)\d{1,9}/\d{1,9} \[[\d:?]+<"  # tqdm without a bar
    r"|(?<!\d)\d{1,9}/(?:\d{1,9}|Unknown) {1,9}\[[=>. ]*\]|(?<!\d)\d{1,9}/\d{1,9} [━╸╺]"  # Keras
    rf"|(?<!{_BAR}){_BAR}{{4,}}(?!{_BAR})[^\n]{{0,30}}?\d%|(?<!\d)\d{{1,3}}%[^\n]{{0,4}}{_BAR}{{4}}"
    r"|(?<![━╸╺])[━╸╺]{4,} {1,9}[\d.]{1,9}(?:/[\d.]{1,9})? [kMG]i?B"  # pip
    r"|^ *\d{1,9}K(?: [.,]{1,10}| {1,11}){1,6} {1,9}\d{1,3}%"  # wget
    r"|^ *\d{1,3}(?: +\d+(?:\.\d+)?[kMGT]?){6,8} +(?:--:--:--|\d{0,2}:\d\d:\d\d)"  # curl
    r"|^(?:remote: )?[A-Z][a-z]+ [a-z]+: +\d{1,3}% \(\d{1,9}/\d{1,9}\)"  # git
    r"|(?<![\d.?])[\d.?]{1,12} ?(?:it/s|s/it|[kMGT]i?B/s)\b[^\n]{0,40}?(?:\]|\d:\d\d|\beta\b)|\beta -?\d{1,3}:\d\d"
    r"|\bETA: *-?\d{1,4} ?[:hms]",  # fastText and others
    re.IGNORECASE,
)
_MAYBE_PROGRESS = re.compile(r"[%━]|\d/|/s\b|/it\b|:\d\d:\d\d|--:--|\beta\b", re.IGNORECASE)
_COUNT = re.compile(r"(?<!\d)(\d{1,9})/(\d{1,9})(?!\d)")
_MEASURES = re.compile(r"[A-Za-z_]=-?\d{1,9}\.|[-,] \w{1,40}: -?\d{1,9}\.")
_LABEL = re.compile(r"[\d#=█▉▊▋▌▍▎▏━╸╺>%|\[]")
_WARNING = re.compile(r"\S{1,300}:\d+: (\w*Warning)\b(.*)")
_NATIVE = re.compile(r"W\d{4} [\d:.]{8,30} +\d+ (\S+?:)\d+\]")
_FRAME = re.compile(r'\s{2,8}File "[^"\n]{0,400}(?:(?:site|dist)-packages|/lib/python3\.\d+|<frozen )')
_QUOTED = re.compile(r"`[^`]{0,80}`|'[^']{0,80}'|\"[^\"]{0,80}\"|\S*\d\S{0,80}")
_STAMP = re.compile(
    r"\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ]?)?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|[IDWE]\d{4} \d\d:\d\d:\d\d\.\d+"
)
_QUIET = re.compile(r"\b(?:DEBUG|TRACE|VERBOSE)\b|^D\d{4} ")
_LOGGER = re.compile(r"\b(?:INFO|NOTICE)\b[^\n]{0,12}?\b[a-z_]\w*(?:\.\w+)+|^I\d{4} |: I [a-z_]+/")
_FRACTION = re.compile(r"(?<![\d.:])-?\d+\.\d+(?![\d.])")

_ROW = re.compile(
    r"""\s*(?:(?P<long>[-dlcbps][-rwxsStT]{9}[.+@]?\ +\d+\ )
    |(?P<environment>[A-Z_][A-Z0-9_]*=)
    |(?P<packages>[A-Za-z][\w.-]*(?:==\S+$|\ @\ \S+$|\ +\d+\.\d+(?:\.\d+|\.?(?:post|rc|dev|a|b)\d+)\S*(?:\ +\S+){0,2}$))
    |(?P<files>[^\s=,(){}"']+\s*$)
    |(?P<processes>\S+\ +\d+\ +\d+\.\d\ +\d+\.\d\ +\d+\ +\d+\ |\d+\ (?:\?|pts/\d+|tty\d*)\ +\d+:\d\d))""",
    re.VERBOSE,
)
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
    """The form of listing that this line is a row of, if any: files, packages, environment variables, processes."""
    if len(line) > MAX_LINE or not (found := _ROW.match(line)):
        return None
    form = cast(Listing, found.lastgroup)
    if form == "files" and not ("/" in line or _SUFFIX.search(line.rstrip())):
        return None
    return form
