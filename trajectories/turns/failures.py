"""Failed executions, read from the output: tracebacks, exit codes, shell, package, device errors.

`failures(run)` gives at most one `Failure` an action: the error that ended it, with the causes that
led there. What an agent wrote itself (code, text) is never read. A text is scanned once, line by
line, with the patterns of failures.yaml, which cannot backtrack over more than one line, so that
megabytes of output stay cheap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Literal, NamedTuple

from ...package_data import read_package_yaml
from ..models import Action, Frozen, Observation, Run
from .fast_ignorecase import IgnoreCasePattern
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
"""Families of failed access to data, models, packages, APIs or resources (E2).

The others concern the agent's own code (E4).
"""

_LINE_LIMIT = 1_000
_MESSAGE_LIMIT = 300


class Failure(Frozen):
    """One failed action.

    `action` counts from 0 within the turn; `message` is one line of at most 300 characters.
    """

    turn: int
    action: int
    kind: str
    """Exception type (without module), or a short name: "pip", "command not found", "exit 1",
    "timeout", ..."""
    family: Family
    message: str
    environment: bool
    """Whether the blocker was access to data, a model, a package, an API or a resource."""
    frame: str | None = None
    """`file:line in function` of the innermost frame outside libraries; None if unknown."""
    signature: str = ""
    """Kind, function and normalised message: equal if the same thing failed again."""
    chain: tuple[str, ...] = ()
    """Exception types of a chained traceback, first cause first; one element or none otherwise."""
    exit_code: int | None = None
    confidence: float = 1.0
    """Confidence in [0, 1] that the action failed; below 0.6 it is only a hint (a message in
    passing output)."""


class ErrorText(NamedTuple):
    """One error in a text."""

    line: int
    """Index of its last line."""
    kind: str
    family: Family
    message: str
    confidence: float
    frame: str | None = None
    chain: tuple[str, ...] = ()
    in_library: bool = False
    """Whether the innermost frame is library code: packages misfit, rather than a wrong call."""


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
_SIGNALS = frozenset([137, 139, 134, 136, 143, -9, -11])
"""Exit codes of processes that a signal ended."""
_CRASHES = frozenset(["segfault", "abort", "exit 139", "exit 134", "exit 136", "exit -11"])
"""Kinds of `killed` that are the program's own fault."""
_CALLED_WRONG = frozenset({"TypeError", "AttributeError", "NameError"})


class Line(NamedTuple):
    """A line that reports an error by its beginning; without a family, the message decides it."""

    pattern: re.Pattern[str]
    kind: str
    family: Family | None
    confidence: float


class Patterns(NamedTuple):
    """The contents of failures.yaml, compiled. Causes and lines are tried in their order."""

    causes: tuple[tuple[Family, IgnoreCasePattern], ...]
    lines: tuple[Line, ...]
    any_line: re.Pattern[str]
    """Matches where any of the lines does: a quick test, as most lines match none."""
    trigger: IgnoreCasePattern
    signs: dict[str, re.Pattern[str]]

    def find(self, sign: str, text: str) -> re.Match[str] | None:
        """The match of a sign in a text; None without one."""
        return self.signs[sign].search(text)


@cache
def patterns() -> Patterns:
    """The patterns of failures.yaml, read on first use."""
    data = read_package_yaml(PATTERNS_FILE)
    by_family = groupby(data["causes"], key=lambda entry: entry["family"])
    return Patterns(
        causes=tuple(
            (family, IgnoreCasePattern("|".join(entry["pattern"] for entry in group)))
            for family, group in by_family
        ),
        any_line=re.compile("|".join(f"(?:{entry['pattern']})" for entry in data["lines"])),
        lines=tuple(
            Line(re.compile(e["pattern"]), e["kind"], e.get("family"), e["confidence"])
            for e in data["lines"]
        ),
        trigger=IgnoreCasePattern("|".join(data["triggers"])),
        signs={
            name: re.compile(e["pattern"], re.I if e.get("any_case") else 0)
            for name, e in data["signs"].items()
        },
    )


@once_a_run
def failures(run: Run) -> tuple[Failure, ...]:
    """Every failed action of the run in order, hints (confidence below 0.6) included."""
    rules = patterns()
    own_modules: set[str] = set()
    failed: list[Failure] = []
    for turn in run.turns:
        for index, action in enumerate(turn.actions):
            written = f"> {action.path}\n" if action.kind in ("write", "edit") else ""
            own_modules.update(rules.signs["module_file"].findall(written + action.code[:200_000]))
            failure = action_failure(turn.index, index, action)
            if failure is None:
                continue
            missing = rules.find("no_module", failure.message)
            if failure.family == "package" and missing is not None and missing[1] in own_modules:
                # A module of the run's own that is not on the path is no missing package.
                failure = failure.model_copy(update={"environment": False, "family": "code"})
            failed.append(failure)
    return tuple(failed)


def action_failure(turn: int, index: int, action: Action) -> Failure | None:
    """The failure of one action.

    None for a success, an unanswered call, and a displayed file that happens to name errors.
    """
    observation = action.observation
    if observation is None or action.kind in ("todo", "submit"):
        return None
    error = _action_error(action, observation)
    return None if error is None else _failure(turn, index, observation, error)


def _action_error(action: Action, observation: Observation) -> ErrorText | None:
    """The error that ended an action; None if it did not fail."""
    rules = patterns()
    failed = observation.failed
    if observation.kind == "cancelled":  # somebody else called it off
        return None
    if observation.kind == "blocked":
        return ErrorText(0, "blocked", "blocked", _first_line(observation.text), 1.0)
    # A displayed file or page may quote any error; only short tool errors count there.
    displays = action.kind in ("read", "search", "web") and not failed
    if displays and len(observation.text) > 600:
        return None
    catches = rules.find("catches", action.code[:60_000]) is not None
    error = _decisive_error(observation, failed, catches)
    if displays and (error is None or error.family != "tool"):
        return None
    if observation.kind == "timeout":
        return _timeout(action, observation, error)
    error = _error_of_exit_code(observation, error)
    if error is None:
        return _unnamed_error(action, observation) if failed else None
    if error.family == "code" and _unreadable(error, observation) and _reads_asset(action):
        error = error._replace(family="model")
    if not failed:
        return error
    if error.family in ("code", "exit") and rules.find("installer", observation.text[-40_000:]):
        # An error inside a package's own build is the package's.
        return error._replace(family="package", confidence=0.9)
    if error.confidence < 0.9:
        return error._replace(confidence=0.4 if error.kind == "look-up" else 0.9)
    return error


def _timeout(action: Action, observation: Observation, error: ErrorText | None) -> ErrorText:
    if error is not None and error.family == "timeout":
        message = error.message
    else:
        message = _first_line(observation.text)
    # Waiting for a download or an installer is access, waiting for one's own loop is not.
    fetches = patterns().find("fetches", action.code[:200_000]) is not None
    return ErrorText(0, "timeout", "network" if fetches else "timeout", message, 1.0)


def _error_of_exit_code(observation: Observation, error: ErrorText | None) -> ErrorText | None:
    """The error that a telling exit code stands for (a signal, a timeout), else the given one."""
    code, last = observation.exit_code, _last_line(observation.text)
    if code in _SIGNALS and (error is None or error.family not in ("memory", "killed")):
        return ErrorText(0, f"exit {code}", "killed", last, 1.0)
    return ErrorText(0, "timeout", "timeout", last, 1.0) if code == 124 else error


def _unnamed_error(action: Action, observation: Observation) -> ErrorText:
    """The error of an action that failed without any error text."""
    last = _last_line(observation.text)
    if action.kind not in ("execute", "other"):
        return ErrorText(0, "tool error", "tool", last, 0.7)
    family, code = _cause(last, "exit"), observation.exit_code
    # Exit 1 with little output is how grep, diff, test and pgrep say "no"; a source that only marks
    # a command as failed does not tell such a 1 from other codes.
    short_output = len(observation.text.strip()) < 400
    is_one = code is None or code == 1
    says_no = family == "exit" and is_one and short_output and action.language != "python"
    kind = "tool error" if family == "tool" or code is None else f"exit {code}"
    return ErrorText(0, kind, family, last, 0.5 if says_no else 0.7)


def _failure(turn: int, index: int, observation: Observation, error: ErrorText) -> Failure:
    message = " ".join(error.message.split())[:_MESSAGE_LIMIT]
    function = error.frame.rpartition(" in ")[2] if error.frame and " in " in error.frame else ""
    return Failure(
        turn=turn,
        action=index,
        kind=error.kind,
        family=error.family,
        message=message,
        environment=_is_environment(error),
        frame=error.frame,
        signature=f"{error.kind}|{function}|{normalise(message)}",
        chain=error.chain,
        exit_code=observation.exit_code,
        confidence=error.confidence,
    )


def _is_environment(error: ErrorText) -> bool:
    """Whether access to data, a model, a package, an API or a resource was the blocker."""
    rules, family, message = patterns(), error.family, error.message
    if family == "killed":
        return error.kind not in _CRASHES
    if family == "network":
        return rules.find("localhost", message) is None  # else the agent's own service is not up
    if family == "package" and not error.in_library and rules.find("api_misuse", message):
        return False  # the agent's own line asks for a name that the installed package lacks
    if family == "shell" or rules.find("no_command", message):
        return True  # a missing command is a missing tool
    if family == "path":
        # A missing file of the agent's own making is no matter of access.
        own = rules.find("own_path", message) is not None
        return not own and rules.find("input_path", message) is not None
    return family in ENVIRONMENT


def normalise(message: str) -> str:
    """A message without what differs between attempts: numbers, addresses, paths."""
    text = re.sub(r"0x[0-9a-fA-F]+", "#", message[:_MESSAGE_LIMIT])
    text = re.sub(r"(?:/[\w.+-]+){2,}/?", "<path>", text)
    text = re.sub(r"\d+(?:\.\d+)?", "#", text)
    return " ".join(text.lower().split())[:160]


def _decisive_error(observation: Observation, failed: bool, catches: bool) -> ErrorText | None:
    """The error that ended an action: the last sure one, stderr before stdout; None without one.

    `catches`: the code catches exceptions, and may have printed them.
    """
    best: ErrorText | None = None
    for text in (observation.stderr, observation.stdout):
        errors = list(_scan(text))
        if not errors:
            continue
        error = max(errors, key=_decisiveness)
        only_errors = _only_errors(observation, len(errors))
        if not failed and error.confidence >= 0.6 and _recovered(text, error):
            error = error._replace(confidence=0.5)
        elif catches and not failed and error.confidence == 0.5 and only_errors:
            error = error._replace(confidence=0.75)
        if best is None or error.confidence > best.confidence + 0.2:
            best = error
        if failed and best.confidence >= 0.6:
            break
    return best


def _decisiveness(error: ErrorText) -> tuple[bool, bool, float, int]:
    """The last error ends an action, but a traceback outweighs a stray line."""
    return error.confidence >= 0.6, bool(error.chain), round(error.confidence, 1), error.line


def _recovered(text: str, error: ErrorText) -> bool:
    """Whether much output follows an error of an action that exited well: it was survived."""
    following = text.splitlines()[error.line + 1 :]
    return len([line for line in following if line.strip()]) > 40


def _unreadable(error: ErrorText, observation: Observation) -> bool:
    """Whether an error means that a file cannot be read: by its type, its words, or its source."""
    rules = patterns()
    if error.kind in _UNREADABLE or rules.find("unread", error.message):
        return True
    if not error.in_library or error.kind in _CALLED_WRONG:
        return False
    return rules.find("loader", observation.text[-40_000:]) is not None


def _reads_asset(action: Action) -> bool:
    """Whether an action reads a model's file.

    If that is unreadable, it is a matter of access; the agent's own unreadable answer is not.
    """
    reads = patterns().signs["reads_asset"]
    return any(reads.match(line[:_LINE_LIMIT]) for line in action.code[:60_000].splitlines())


def _only_errors(observation: Observation, errors: int) -> bool:
    """Whether printed errors are half or more of the output.

    The action then failed, whatever its exit code says.
    """
    return errors * 2 >= sum(1 for line in observation.text.splitlines() if line.strip())


def find_errors(text: str) -> tuple[ErrorText, ...]:
    """All errors in a text, in order: tracebacks (whole, chained or cut) and single error lines."""
    return tuple(_scan(text))


def _scan(text: str) -> Iterator[ErrorText]:
    trigger, final_line = patterns().trigger, patterns().signs["final"]
    frames: list[tuple[str, str, str]] = []
    """(file, line, function) of the open traceback."""
    chain: list[str] = []
    opened = False  # inside a traceback: header or frames were read, the final line was not
    indent = 0  # of the open traceback's header: its final line is not indented deeper
    last_chain_line = -10
    pending: ErrorText | None = None  # a whole traceback that the next one may be chained to
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
        stale = starts
        if frame is None and not opened and pending is not None:
            stale = stale or number - pending.line > 8
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
                chain.append(final[1].rpartition(".")[2])
                pending = _traceback(number, final, frames, chain, pending)
                opened, frames = False, []
        elif _may_stand_alone(number, line, pending):
            error = _error_line(number, line)
            if error is not None:
                yield error
    if pending is not None:
        yield pending
    if opened:
        # The final line was cut off, or the process died while printing.
        frame_text = _innermost(frames)
        message = f"traceback cut off at {frame_text}" if frame_text else "traceback cut off"
        confidence = 0.8 if frames else 0.5
        yield ErrorText(
            len(text), "traceback", "code", message, confidence, frame_text, ("traceback",)
        )


def _traceback(
    number: int,
    final: re.Match[str],
    frames: Sequence[tuple[str, str, str]],
    chain: Sequence[str],
    before: ErrorText | None,
) -> ErrorText:
    """The error of a traceback by its final line; `before` is the one that it is chained to."""
    kind = chain[-1]
    message = f"{kind}: {final[2]}" if final[2] else kind
    return ErrorText(
        line=number,
        kind=kind,
        family=_cause(f"{before.message} {message}" if before else message, "code"),
        message=message,
        confidence=0.95,
        frame=_innermost(frames),
        chain=tuple(chain),
        in_library=bool(frames and _LIBRARY.search(frames[-1][0])),
    )


def _may_stand_alone(number: int, line: str, pending: ErrorText | None) -> bool:
    """Whether a line outside a traceback is no continuation of the message before it."""
    if pending is None or pending.family != "code":
        return True
    return number > pending.line + 1 or line[:1] in " \t"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _error_line(number: int, line: str) -> ErrorText | None:
    """The error that a single line reports; None if it reports none."""
    message = line.strip()
    for entry in patterns().lines if patterns().any_line.match(line) else ():
        if entry.pattern.match(line):
            default: Family = "shell" if entry.kind in ("shell tool", "look-up") else "code"
            family = entry.family or _cause(line, default)
            return ErrorText(number, entry.kind, family, message, entry.confidence)
    # Without a traceback around it this may be a message that a handler printed.
    match = _BARE_FINAL.match(line)
    if match is None and not _CODE_LINE.match(line):
        match = patterns().signs["caught"].match(line)
        message = line[match.start(1) :].strip() if match else ""
    if match is None:
        return None
    return ErrorText(number, match[1].rpartition(".")[2], _cause(message, "code"), message, 0.5)


def _cause(message: str, default: Family) -> Family:
    """The first family whose pattern matches a message."""
    for family, pattern in patterns().causes:
        if pattern.search(message[:2_000]):
            return family
    return default


def _innermost(frames: Sequence[tuple[str, str, str]]) -> str | None:
    """The innermost frame outside libraries, or of all; None without frames."""
    if not frames:
        return None
    own = [frame for frame in frames if not _LIBRARY.search(frame[0])]
    file, line, function = (own or frames)[-1]
    return f"{file}:{line} in {function}" if function else f"{file}:{line}"


def _first_line(text: str) -> str:
    """The first line that is not blank, cut to the limit of a message."""
    lines = (line.strip() for line in text[:20_000].splitlines())
    return next(filter(None, lines), "")[:_MESSAGE_LIMIT]


def _last_line(text: str) -> str:
    """The last line that is not blank, cut to the limit of a message."""
    lines = (line.strip() for line in reversed(text[-20_000:].splitlines()))
    return next(filter(None, lines), "")[:_MESSAGE_LIMIT]
