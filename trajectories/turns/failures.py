"""Failed executions read from what the environment answered: tracebacks, exit codes, shell, package
and device errors.

`failures(run)` gives at most one `Failure` an action: the error that ended it, with the causes that
led there. What an agent wrote itself (code, text) is never read. A text is scanned once, line by
line, with the patterns of failures.yaml, which cannot backtrack over more than one line, so that
megabytes of output stay cheap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Literal, NamedTuple

from ...package_data import read_package_yaml
from ..models import Action, Frozen, Observation, Run
from .fast_ignorecase import AnyCase
from .per_run_cache import once_a_run

Family = Literal[
    "code",
    "syntax",
    "package",
    "path",
    "permission",
    "device",
    "memory",
    "disk",
    "network",
    "model",
    "timeout",
    "killed",
    "blocked",
    "shell",
    "tool",
    "exit",
]
ENVIRONMENT: frozenset[Family] = frozenset(
    {"package", "path", "permission", "device", "memory", "disk", "network", "model"}
)
"""Families that speak of access to data, models, packages, APIs or resources (E2), not of the
agent's own code (E4)."""

_LINE_LIMIT = 1_000
_MESSAGE_LIMIT = 300


class Failure(Frozen):
    """One failed action. `action` counts from 0 within the turn; `message` is one line of at most
    300 characters."""

    turn: int
    action: int
    kind: str
    """Exception type (without module), or a short name: "pip", "command not found", "exit 1",
    "timeout", ..."""
    family: Family
    message: str
    environment: bool
    """The blocker was access to data, model, package, API or resource."""
    frame: str | None = None
    """`file:line in function` of the innermost frame that is not library code, if a traceback
    showed one."""
    signature: str = ""
    """kind, frame function and message without numbers, paths and quotes: equal when the same thing
    failed again."""
    chain: tuple[str, ...] = ()
    """Exception types of a chained traceback, first cause first; one element or none otherwise."""
    exit_code: int | None = None
    confidence: float = 1.0
    """How sure it is that the action failed, in [0, 1]; below 0.6 it is a hint only (a message in
    passing output)."""


class Finding(NamedTuple):
    """One error found in a text: where its last line starts, and what it says."""

    line: int
    kind: str
    family: Family
    message: str
    confidence: float
    frame: str | None = None
    chain: tuple[str, ...] = ()
    in_library: bool = False
    """The innermost frame is library code: packages that do not fit each other rather than a wrong
    call."""


PATTERNS_FILE = Path(__file__).with_name("failures.yaml")
_HEADER = "Traceback (most recent call last)"
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
_FRAME = re.compile(r'\s*File "([^"\n]{1,400})", line (\d+)(?:, in (\S{1,120}))?')
_PREFIX = re.compile(r"^(?:\[rank\d+\]: ?|E {2,}(?=\w)|\s*[|+]-?[ +-]*(?=\S))")
_LIBRARY = re.compile(
    r"site-packages|dist-packages|/lib/python\d|<frozen |/runpy\.py|<__array_function__"
)
_TYPE_NAME = re.compile(
    r"(?:Error|Exception|Interrupt|Exit|Expired|Warning|Timeout|NotFound|Invalid|Iteration|error)$"
)
_BARE_FINAL = re.compile(
    r"((?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Expired))(?:: ?(.*))?$"
)
_CODE_LINE = re.compile(
    r"\s*(?:raise|except|import|from|class|def|return|if|assert|with|#|>>>|\w{1,40} = )"
)
_UNREADABLE = frozenset(
    {
        "JSONDecodeError",
        "BadZipFile",
        "BadGzipFile",
        "EOFError",
        "UnicodeDecodeError",
        "UnpicklingError",
        "ParseError",
        "ReadError",
    }
)
"""Errors that mean a file cannot be read."""
_CALLED_WRONG = frozenset({"TypeError", "AttributeError", "NameError"})


class Line(NamedTuple):
    """A line that tells of an error by how it begins; without a family its message says the cause."""

    pattern: re.Pattern[str]
    kind: str
    family: Family | None
    confidence: float


class Patterns(NamedTuple):
    """What failures.yaml holds, compiled. Causes and lines are tried in their order."""

    causes: tuple[tuple[Family, AnyCase], ...]
    lines: tuple[Line, ...]
    any_line: re.Pattern[str]
    """Matches where one of the lines does: most lines are none of them."""
    trigger: AnyCase
    signs: dict[str, re.Pattern[str]]

    def says(self, sign: str, text: str) -> re.Match[str] | None:
        """Where a text shows a sign, None where it does not."""
        return self.signs[sign].search(text)


@cache
def patterns() -> Patterns:
    """The patterns of failures.yaml, read on first use."""
    data = read_package_yaml(PATTERNS_FILE)
    by_family = groupby(data["causes"], key=lambda entry: entry["family"])
    return Patterns(
        causes=tuple(
            (family, AnyCase("|".join(one["pattern"] for one in group)))
            for family, group in by_family
        ),
        any_line=re.compile("|".join(f"(?:{entry['pattern']})" for entry in data["lines"])),
        lines=tuple(
            Line(re.compile(e["pattern"]), e["kind"], e.get("family"), e["confidence"])
            for e in data["lines"]
        ),
        trigger=AnyCase("|".join(data["triggers"])),
        signs={
            name: re.compile(e["pattern"], re.I if e.get("any_case") else 0)
            for name, e in data["signs"].items()
        },
    )


@once_a_run
def failures(run: Run) -> tuple[Failure, ...]:
    """Every failed action of the run, in order; at most one an action. Hints (confidence < 0.6) are
    among them."""
    known = patterns()
    own: set[str] = set()
    found: list[Failure] = []
    for turn in run.turns:
        for slot, action in enumerate(turn.actions):
            written = f"> {action.path}\n" if action.kind in ("write", "edit") else ""
            own.update(known.signs["module_file"].findall(written + action.code[:200_000]))
            failure = action_failure(turn.index, slot, action)
            if failure is None:
                continue
            missing = known.says("no_module", failure.message)
            if failure.family == "package" and missing is not None and missing[1] in own:
                # A module of the run's own that is not where it is looked for is no missing
                # package.
                failure = failure.model_copy(update={"environment": False, "family": "code"})
            found.append(failure)
    return tuple(found)


def action_failure(turn: int, slot: int, action: Action) -> Failure | None:
    """The failure of one action, or None: a success, an unanswered call, or a file shown that
    happens to name errors."""
    observation = action.observation
    if observation is None or action.kind in ("todo", "submit"):
        return None
    known = patterns()
    failed = observation.kind in ("failed", "timeout", "blocked")
    if observation.kind == "blocked":
        return _failure(
            turn,
            slot,
            observation,
            Finding(0, "blocked", "blocked", _first_line(observation.text), 1.0),
        )
    # A file or page that was merely shown may quote any error; only short tool errors count there.
    shown = action.kind in ("read", "search", "web") and not failed
    if shown and len(observation.text) > 600:
        return None
    found = _worst(
        observation, failed, catches=known.says("catches", action.code[:60_000]) is not None
    )
    if shown and (found is None or found.family != "tool"):
        return None
    if observation.kind == "timeout":
        message = (
            found.message if found and found.family == "timeout" else _first_line(observation.text)
        )
        # Waiting for a download or an installer is access, waiting for one's own loop is not.
        family: Family = "network" if known.says("fetches", action.code[:200_000]) else "timeout"
        return _failure(turn, slot, observation, Finding(0, "timeout", family, message, 1.0))
    code = observation.exit_code
    if code in (137, 139, 134, 136, 143, -9, -11) and (
        found is None or found.family not in ("memory", "killed")
    ):
        found = Finding(0, f"exit {code}", "killed", _last_line(observation.text), 1.0)
    elif code == 124:
        found = Finding(0, "timeout", "timeout", _last_line(observation.text), 1.0)
    if (
        found is not None
        and found.family == "code"
        and _unread(found, observation)
        and _reads_asset(action)
    ):
        found = found._replace(family="model")
    if found is None:
        if not failed:
            return None
        # Exit 1 without any error text is how grep, diff, test and pgrep say "no".
        last = _last_line(observation.text)
        family = "tool" if action.kind not in ("execute", "other") else _cause(last, "exit")
        quiet = (
            family == "exit"
            and code == 1
            and len(observation.text.strip()) < 400
            and action.language != "python"
        )
        found = Finding(
            0,
            "tool error" if family == "tool" else f"exit {code}",
            family,
            last,
            0.5 if quiet else 0.7,
        )
    elif (
        failed
        and found.family in ("code", "exit")
        and known.says("installer", observation.text[-40_000:])
    ):
        # An error inside a package's own build is the package's.
        found = found._replace(family="package", confidence=0.9)
    elif failed and found.confidence < 0.9:
        found = found._replace(confidence=0.4 if found.kind == "look-up" else 0.9)
    return _failure(turn, slot, observation, found)


def _failure(turn: int, slot: int, observation: Observation, found: Finding) -> Failure:
    known, family = patterns(), found.family
    environment = family in ENVIRONMENT
    if family == "path" and (
        known.says("own_path", found.message) or not known.says("input_path", found.message)
    ):
        environment = False  # a file of the agent's own making that is not where it was looked for
    if family == "shell" or known.says("no_command", found.message):
        environment = True  # a missing command is a missing tool
    if family == "package" and known.says("api_misuse", found.message) and not found.in_library:
        # the agent's own line asks for a name that the installed package does not have
        environment = False
    if family == "network" and known.says("localhost", found.message):
        environment = False  # the agent's own service is not up
    if family == "killed":
        environment = found.kind not in (
            "segfault",
            "abort",
            "exit 139",
            "exit 134",
            "exit 136",
            "exit -11",
        )
    message = " ".join(found.message.split())[:_MESSAGE_LIMIT]
    function = found.frame.rpartition(" in ")[2] if found.frame and " in " in found.frame else ""
    return Failure(
        turn=turn,
        action=slot,
        kind=found.kind,
        family=family,
        message=message,
        environment=environment,
        frame=found.frame,
        signature=f"{found.kind}|{function}|{normalise(message)}",
        chain=found.chain,
        exit_code=observation.exit_code,
        confidence=found.confidence,
    )


def normalise(message: str) -> str:
    """A message without what changes from one attempt to the next: numbers, addresses, paths and
    quoted values."""
    text = re.sub(r"0x[0-9a-fA-F]+", "#", message[:_MESSAGE_LIMIT])
    text = re.sub(r"(?:/[\w.+-]+){2,}/?", "<path>", text)
    text = re.sub(r"\d+(?:\.\d+)?", "#", text)
    return " ".join(text.lower().split())[:160]


def _worst(observation: Observation, failed: bool, catches: bool = False) -> Finding | None:
    """The error that speaks for the action: the last sure one, stderr before stdout; None when
    there is none."""
    best: Finding | None = None
    for text in (observation.stderr, observation.stdout):
        found = list(_scan(text))
        if not found:
            continue
        # The last error ends the action; of equal weight the later one, and a traceback beats a
        # stray line.
        pick = max(
            found,
            key=lambda f: (f.confidence >= 0.6, bool(f.chain), round(f.confidence, 1), f.line),
        )
        if not failed and pick.confidence >= 0.6 and _recovered(text, pick):
            pick = pick._replace(confidence=0.5)
        elif (
            catches
            and not failed
            and pick.confidence == 0.5
            and _only_errors(observation, len(found))
        ):
            pick = pick._replace(confidence=0.75)
        if best is None or pick.confidence > best.confidence + 0.2:
            best = pick
        if failed and best.confidence >= 0.6:
            break
    return best


def _recovered(text: str, found: Finding) -> bool:
    """Whether much ordinary output follows an error line in an action that exited well: it was
    survived on the way."""
    rest = text.splitlines()[found.line + 1 :]
    return len([line for line in rest if line.strip()]) > 40


def _unread(found: Finding, observation: Observation) -> bool:
    """Whether an error means that a file cannot be read: by its type, its words, or the library's
    reader it came from."""
    known = patterns()
    if found.kind in _UNREADABLE or known.says("unread", found.message):
        return True
    if not found.in_library or found.kind in _CALLED_WRONG:
        return False
    return known.says("loader", observation.text[-40_000:]) is not None


def _reads_asset(action: Action) -> bool:
    """A model's own file that cannot be read is a matter of access; the agent's own answer that
    cannot is not."""
    reads = patterns().signs["reads_asset"]
    return any(reads.match(line[:_LINE_LIMIT]) for line in action.code[:60_000].splitlines())


def _only_errors(observation: Observation, errors: int) -> bool:
    """Whether caught and printed errors are most of what an action brought: it failed, whatever its
    exit code says."""
    return errors * 2 >= sum(1 for line in observation.text.splitlines() if line.strip())


def find_errors(text: str) -> tuple[Finding, ...]:
    """All errors that a text shows, in order: tracebacks (whole, chained, cut at either end) and
    single error lines."""
    return tuple(_scan(text))


def _scan(text: str) -> Iterator[Finding]:
    trigger, final_line = patterns().trigger, patterns().signs["final"]
    frames: list[tuple[str, str, str]] = []
    chain: list[str] = []
    opened = False  # inside a traceback (header or frames seen, final line not yet)
    indent = 0  # of the open traceback's header: its final line stands no deeper
    last_chain_line = -10
    pending: Finding | None = None  # a whole traceback that the next one may be chained to
    lines = [line[:_LINE_LIMIT] for line in text.splitlines()]
    triggered = trigger.among(lines)
    for number, line in enumerate(lines if triggered else ()):
        if not line or (not opened and number not in triggered):
            continue
        if line.startswith(("[", "E ", "|", " ", "+")):
            line = _PREFIX.sub("", line, count=1)
        header, frame = _HEADER in line, _FRAME.match(line)
        if not header and any(mark in line for mark in _CHAIN):
            last_chain_line = number
            continue
        starts = header or (frame is not None and not opened)
        stale = starts or (
            frame is None and not opened and pending is not None and number - pending.line > 8
        )
        if pending is not None and stale and number - last_chain_line > 6:
            yield pending
            pending, chain = None, []
        if header:
            opened, frames, indent = True, [], _indent(line)
        elif frame is not None:
            if not opened:
                opened, frames, indent = True, [], max(_indent(line) - 2, 0)
            frames.append((frame[1], frame[2], frame[3] or ""))
        elif opened:
            final = final_line.match(line) if _indent(line) <= indent else None
            if final is not None and (_TYPE_NAME.search(final[1]) or final[2] is not None):
                kind = final[1].rpartition(".")[2]
                message = f"{kind}: {final[2]}" if final[2] else kind
                chain.append(kind)
                cause = _cause(f"{pending.message} {message}" if pending else message, "code")
                library = bool(frames and _LIBRARY.search(frames[-1][0]))
                pending = Finding(
                    number, kind, cause, message, 0.95, _frame(frames), tuple(chain), library
                )
                opened, frames = False, []
        elif (
            pending is None
            or pending.family != "code"
            or number > pending.line + 1
            or line[:1] in " \t"
        ):
            plain = _plain(number, line)
            if plain is not None:
                yield plain
    if pending is not None:
        yield pending
    if opened:
        # The final line was cut off (or the process died while printing).
        place = _frame(frames)
        message = f"traceback cut off at {place}" if place else "traceback cut off"
        yield Finding(
            len(text), "traceback", "code", message, 0.8 if frames else 0.5, place, ("traceback",)
        )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _plain(number: int, line: str) -> Finding | None:
    message = line.strip()
    for entry in patterns().lines if patterns().any_line.match(line) else ():
        if entry.pattern.match(line):
            family = entry.family or _cause(
                line, "shell" if entry.kind in ("shell tool", "look-up") else "code"
            )
            return Finding(number, entry.kind, family, message, entry.confidence)
    # Without a traceback around it this may be a message that a handler printed.
    found = _BARE_FINAL.match(line)
    if found is None and not _CODE_LINE.match(line):
        found = patterns().signs["caught"].match(line)
        message = line[found.start(1) :].strip() if found else ""
    if found is None:
        return None
    return Finding(number, found[1].rpartition(".")[2], _cause(message, "code"), message, 0.5)


def _cause(message: str, default: Family) -> Family:
    return next(
        (family for family, said in patterns().causes if said.search(message[:2_000])), default
    )


def _frame(frames: list[tuple[str, str, str]]) -> str | None:
    if not frames:
        return None
    own = [f for f in frames if not _LIBRARY.search(f[0])]
    file, line, function = (own or frames)[-1]
    return f"{file}:{line}" + (f" in {function}" if function else "")


def _first_line(text: str) -> str:
    return next((line.strip() for line in text[:20_000].splitlines() if line.strip()), "")[
        :_MESSAGE_LIMIT
    ]


def _last_line(text: str) -> str:
    return next(
        (line.strip() for line in reversed(text[-20_000:].splitlines()) if line.strip()), ""
    )[:_MESSAGE_LIMIT]
