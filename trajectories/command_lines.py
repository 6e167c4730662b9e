"""Command lines that start scripts: which script, with what arguments, and for how many cases.

A pilot and the full run are often the same script; only the command line tells them apart (an id, a limit, a loop).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from .code_names import ALL
from .code_parts import RUN

CASE = re.compile(r"(?<![A-Za-z0-9])([A-Za-z][A-Za-z-]{0,19}[_-])(\d{2,10})\b")
"""A case id with a separator: patient_0001, sub-07."""
PLAIN_CASE = re.compile(r"(?<![\w-])([A-Za-z]{1,12})(\d{2,6})(?![\w-])")
"""A case id without one: q01, P017. Only trusted where a listing showed it."""
SIDED_CASE = re.compile(r"(?<![\w-])([A-Za-z]{1,12}[_-][A-Za-z]{0,2})(\d{1,6})(?![\w-])")
"""A case id whose number follows a letter or has one digit: eye_L1, case_3. Only trusted where the case is known."""

_FLAG = re.compile(r"(?:^|(?<=\s))(--?[A-Za-z][\w-]{0,40})(?:=|[ \t]+|$)")
_CASE_WORDS = frozenset(
    [
        "case",
        "id",
        "patient",
        "subject",
        "image",
        "question",
        "slice",
        "tile",
        "scan",
        "film",
        "sample",
        "example",
        "item",
        "study",
        "volume",
        "file",
        "input",
        "record",
        "row",
        "only",
    ]
)
_COUNT_WORDS = frozenset(
    [
        "limit",
        "first",
        "subset",
        "n",
        "k",
        "head",
        "take",
        "count",
        "num",
        "max",
        "pilot",
        "smoke",
        "quick",
        "debug",
        "dry",
        "test",
    ]
)
_OTHER_WORDS = frozenset(
    [
        "size",
        "dir",
        "folder",
        "root",
        "path",
        "worker",
        "workers",
        "beam",
        "beams",
        "step",
        "steps",
        "epoch",
        "epochs",
        "batch",
        "thread",
        "threads",
        "token",
        "tokens",
        "new",
        "len",
        "length",
        "height",
        "width",
        "out",
        "output",
        "outdir",
        "seed",
        "thr",
        "threshold",
        "model",
        "score",
        "scale",
        "sigma",
        "lr",
        "prob",
        "iter",
        "iters",
        "retries",
        "proc",
        "procs",
        "gpu",
    ]
)
_OUT_FLAG = re.compile(
    r"(?:^|\s)(?:-o|--?(?:out|output|dst|dest|save|target|result)\w{0,12}(?:-\w{1,12})?)(?:=|\s+)(\S+)"
)
_VARIABLE = re.compile(r"[\w.-]{0,80}\$\{?\w")
"""A word that a shell variable completes (case_000$i) names no case by itself."""
_ENVIRONMENT = re.compile(r"(?:\b[A-Z][A-Z_0-9]{0,30}=[^\s;|&]{0,60}[ \t]{1,4}){1,6}$")
_SET = re.compile(r"\b([A-Z][A-Z_0-9]{0,30})=([^\s;|&]{0,60})")
_CHUNK = re.compile(r"[^;|&\n]{1,1000}")
_FILERS = frozenset(
    [
        "sort",
        "tar",
        "zip",
        "unzip",
        "curl",
        "wget",
        "gcc",
        "g++",
        "tree",
        "find",
        "grep",
        "cp",
        "mv",
        "ls",
        "git",
        "pip",
        "pip3",
        "cat",
        "echo",
        "rsync",
        "tee",
        "jq",
        "diff",
        "set",
        "mkdir",
    ]
)
"""Programs that fetch, pack or move files; they make no results."""
_CUT = re.compile(r"\bhead\s+-(?:n\s*)?(\d{1,6})|\bshuf\s+-n\s*(\d{1,6})|\bsed -n ['\"]?1,(\d{1,6})p")
_LOOP = re.compile(r"\bfor \w+ in ([^;\n]{0,400})|\|\s*while\s[^;\n]{0,40}?read\b|\bxargs\b|find [^|;\n]{0,200}-exec")
_SEQUENCE = re.compile(r"\bseq (?:-\w+ (?:\S+ )?)?(?:(\d{1,6}) )?(\d{1,6})\b|\{(\d{1,6})\.\.(\d{1,6})\}")
_LISTED = re.compile(r"([^\s{}'\"]{0,80})\{([\w.-]{0,40}(?:,[\w.-]{0,40}){1,200})\}([^\s{}'\"]{0,80})")
_BRACES = re.compile(r"([^\s{}'\"]{0,80})\{(\d{1,6})\.\.(\d{1,6})\}([^\s{}'\"]{0,80})")


@dataclass(frozen=True)
class Launch:
    """One start of a script by a shell."""

    path: str
    arguments: str
    before: str
    """What stands before it in the same text, at most 400 characters: loops and pipes around it."""

    @property
    def output(self) -> str | None:
        """The place that an option such as -o or --out-dir names."""
        found = _OUT_FLAG.search(self.arguments)
        return found.group(1).strip("'\"") if found else None

    @property
    def variables(self) -> dict[str, str]:
        """What is set for this command alone: LIMIT=2 python run.py."""
        found = _ENVIRONMENT.search(self.before)
        return dict(_SET.findall(found.group(0))) if found else {}

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(word.strip("'\"") for word in self.arguments.split() if "/" in word)


def launches(shell: str) -> Iterator[Launch]:
    """Scripts that a shell text starts, each with its command line."""
    text = shell.replace("\\\n", " ")
    for match in RUN.finditer(text):
        end = _end(text, match.end())
        arguments = _expanded(text[match.end() : end])
        yield Launch(match.group(1) or match.group(2), arguments, text[max(0, match.start() - 400) : match.start()])


def programs(shell: str) -> Iterator[Launch]:
    """Other programs that an option gives a place for their output (`tool --in a --out b`, `python -m tool -o b`)."""
    text = shell.replace("\\\n", " ")
    for chunk in _CHUNK.finditer(text):
        words = chunk.group(0).split(None, 1)
        while words and (words[0] in ("do", "then", "else", "time", "sudo", "nohup", "(") or "=" in words[0]):
            words = words[1].split(None, 1) if len(words) > 1 else []
        if len(words) < 2 or words[0].rsplit("/", 1)[-1] in _FILERS or RUN.search(chunk.group(0)):
            continue
        launch = Launch(words[0], " " + words[1], text[max(0, chunk.start() - 400) : chunk.start()] + " ")
        if launch.output is not None:
            yield launch


def _expanded(words: str) -> str:
    """Words with `{1..8}` and `{a,b}` written out as a shell does, with its leading zeros, up to 1,000 words a sequence."""

    def several(match: re.Match[str]) -> str:
        before, low, high, after = match.groups()
        first, last = int(low), int(high)
        numbers = range(first, last + 1) if first <= last else range(first, last - 1, -1)
        width = max(len(low), len(high)) if re.match(r"0\d", low) or re.match(r"0\d", high) else 0
        return " ".join(f"{before}{n:0{width}d}{after}" for n in numbers[:1_000])

    def listed(match: re.Match[str]) -> str:
        before, items, after = match.groups()
        return " ".join(f"{before}{item}{after}" for item in items.split(","))

    return _BRACES.sub(several, _LISTED.sub(listed, words))


def _end(text: str, start: int) -> int:
    """Where the arguments end: at a pipe, a semicolon, a redirection, a new line, but not inside $(...) or quotes."""
    depth, quote = 0, ""
    for i in range(start, min(len(text), start + 1_000)):
        c = text[i]
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
            if depth < 0:
                return i
        elif depth <= 0 and c in ";|&>\n":
            return i - 1 if text[i - 2 : i] in (" 1", " 2") and c == ">" else i  # 2> error.log
    return min(len(text), start + 1_000)


def cases_asked(launch: Launch, prefixes: Collection[str]) -> int | None:
    """How many cases a command line asks for: by ids, by a limit, by a loop around it; None when it does not say."""
    arguments = launch.arguments
    arguments += "".join(f" --{name.lower()} {value}" for name, value in launch.variables.items())
    listed = _listed(arguments)
    if listed is not None:
        return listed
    alone = re.fullmatch(r"\s*(\d{1,4})\s*", arguments)
    if alone:  # `run.py 3`: the first three, or number three
        return max(1, int(alone.group(1)))
    named = named_cases(arguments, prefixes)
    flagged = _flagged(arguments)
    if flagged is not None and flagged != 1:
        return flagged
    if named:
        return len(named)
    looped = None if _varies_an_option(launch) else _looped(launch.before)
    return looped if looped is not None else flagged


def _varies_an_option(launch: Launch) -> bool:
    """Whether the loop around a start gives its variable to an option that names no cases: `--closing $k`."""
    loops = re.findall(r"\bfor (\w{1,40}) in ", launch.before)
    if not loops:
        return False
    used = re.findall(
        rf"(?:(?:^|\s)(--?[A-Za-z][\w-]{{0,40}})(?:=|[ \t]+))?['\"]?\$\{{?{loops[-1]}\b", launch.arguments
    )
    return bool(used) and all(flag and not _names_cases(flag) for flag in used)


def _names_cases(flag: str) -> bool:
    return bool({*_CASE_WORDS, *_COUNT_WORDS}.intersection(_flag_words(flag)))


def named_cases(text: str, prefixes: Collection[str]) -> set[str]:
    """Case ids in a text. With known prefixes only those; ids without a separator only if known."""
    text = _VARIABLE.sub(" ", text)
    found = {p + d for p, d in CASE.findall(text) if not prefixes or p in prefixes}
    trusted = (*PLAIN_CASE.findall(text), *SIDED_CASE.findall(text))
    return found | {p + d for p, d in trusted if p in prefixes}


def _listed(words: str) -> int | None:
    """Everything, or the first n, of a listing put on the command line: $(ls ...), a wildcard."""
    if "$(" not in words and "`" not in words and "*" not in words:
        return None
    cut = _CUT.search(words)
    if cut:
        return max(1, int(next(g for g in cut.groups() if g)))
    sequence = _counted(words)
    if sequence is not None:
        return sequence
    return ALL if re.search(r"\*|(?:\$\(|`)\s*(?:ls|find|cat)\b", words) else None


def _counted(text: str) -> int | None:
    found = _SEQUENCE.search(text)
    if found is None:
        return None
    low, high = (found.group(1) or "1", found.group(2)) if found.group(2) else (found.group(3), found.group(4))
    return max(1, int(high) - int(low) + 1)


def _flagged(arguments: str) -> int | None:
    """Cases that options name: `--limit 3`, `-n 4`, `--cases a b`, `--image x.png`; a bare `--smoke` means one."""
    marks = list(_FLAG.finditer(arguments))
    for i, mark in enumerate(marks):
        words = _flag_words(mark.group(1))
        if _OTHER_WORDS.intersection(words):
            continue
        counts, cases = bool(_COUNT_WORDS.intersection(words)), bool(_CASE_WORDS.intersection(words))
        if not (counts or cases):
            continue
        end = marks[i + 1].start() if i + 1 < len(marks) else len(arguments)
        values = [v for v in re.split(r"[\s,]+", arguments[mark.end() : end].strip(" \t'\"")) if v]
        if values and values[0].lower() in ("all", "-1"):
            return ALL
        if len(values) >= 1 and re.fullmatch(r"\d{1,6}", values[0]) and (counts or (cases and len(values) == 1)):
            return max(1, int(values[0])) if int(values[0]) else None
        if cases and values and not any("$" in v for v in values):
            return len(values)
        if counts and not values and not {"max", "num", "count", "n", "k"}.intersection(words):
            return 1
    return None


def _flag_words(flag: str) -> list[str]:
    """The words of an option's name, in the singular."""
    words = [w[:-1] if len(w) > 3 and w.endswith("s") else w for w in re.split(r"[-_]", flag.strip("-").lower())]
    return ["study" if w == "studie" else w for w in words]


def _looped(before: str) -> int | None:
    """Cases of the shell loop that is open where the script starts."""
    marks = [m for m in _LOOP.finditer(before) if not re.search(r"\bdone\b", before[m.end() :])]
    if not marks:
        return None
    mark = marks[-1]
    words = mark.group(1)
    if words is None:  # the listing stands before the pipe
        cut = _CUT.search(before[: mark.start()].rsplit("\n", 1)[-1])
        return max(1, int(next(g for g in cut.groups() if g))) if cut else ALL
    listed = _listed(words)
    if listed is None:
        listed = _counted(words)
    if listed is None and "$" in words:
        return ALL
    return listed if listed is not None else len(words.split()) or None
