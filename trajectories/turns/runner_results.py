"""Results of test runners in a run: by a runner's own summary line, else by its exit code.

A summary line is the last line that a test runner prints, in its own format. Nothing else of an
output is read, and no word of the agent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..models import Action, Run

_TAIL = 20_000
"""Characters at the end of an output that are searched: a summary comes last."""
_LONGEST_LINE = 300
_ANSI = re.compile(r"\x1b\[[0-9;]{0,12}m")

_COUNT = r"\d{1,9}"
_PYTEST_WORD = r"(?:passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?|rerun)"
_SUMMARIES = (
    # pytest, with or without its rulers: `== 3 failed, 2 passed in 0.12s ==`
    rf"=*\s*{_COUNT} {_PYTEST_WORD}(?:, {_COUNT} {_PYTEST_WORD}){{0,8}}"
    rf" in [\d.]{{1,12}}s(?: \([\d:]{{1,12}}\))?\s*=*",
    # unittest, below `Ran 3 tests in 0.001s`
    rf"OK(?: \(\w[\w =,]{{0,80}}\))?|FAILED \((?:(?:failures|errors|skipped|expected failures"
    rf"|unexpected successes)={_COUNT}(?:, )?){{1,5}}\)",
    # jest, vitest
    rf"Tests:?\s{{1,8}}(?:{_COUNT} (?:failed|skipped|todo|passed)[,|\s]{{1,4}}){{1,4}}"
    rf"(?:{_COUNT} total|\({_COUNT}\))",
    # mocha
    rf"{_COUNT} (?:passing|failing)(?: \([\d.]{{1,9}}m?s\))?",
    # node --test and other TAP
    rf"(?:#|ℹ) (?:pass|fail) {_COUNT}",
    # go test
    r"(?:ok|FAIL)\s{1,8}\S{1,200}\s{1,8}(?:[\d.]{1,12}s|\(cached\)|\[build failed\])"
    r"|FAIL|PASS",
    # cargo test
    rf"test result: (?:ok|FAILED)\. {_COUNT} passed; {_COUNT} failed;.{{0,120}}",
    # rspec
    rf"{_COUNT} examples?, {_COUNT} failures?(?:, {_COUNT} (?:pending|errors?).{{0,60}})?",
    # JUnit by Maven
    rf"(?:\[\w{{4,8}}\]\s)?Tests run: {_COUNT}, Failures: {_COUNT}, Errors: {_COUNT}.{{0,120}}",
    # PHPUnit
    rf"Tests: {_COUNT}, Assertions: {_COUNT}.{{0,80}}|OK \({_COUNT} tests?, {_COUNT} assertions?\)",
    # ctest
    rf"{_COUNT}% tests passed, {_COUNT} tests failed out of {_COUNT}",
    # dotnet test
    rf"(?:Failed|Passed)!\s{{1,4}}- Failed:\s{{1,8}}{_COUNT}, Passed:\s{{1,8}}{_COUNT},.{{0,120}}",
)
_SUMMARY = re.compile(rf"\s{{0,8}}(?:{'|'.join(_SUMMARIES)})\s{{0,8}}")
_FAILED = re.compile(
    r"\b[1-9]\d{0,8} (?:failed|errors?|failing|failures?|tests failed)\b"
    r"|\b(?:failures|errors|unexpected successes)=[1-9]"
    r"|(?:Failures|Errors|Failed):\s{1,8}[1-9]|(?:#|ℹ) fail [1-9]"
    r"|^\s{0,8}FAIL(?:ED)?\b|test result: FAILED"
)
_NEEDS_OTHER_LINES = {
    "OK": re.compile(r"(?m)^Ran \d{1,9} tests? in "),
    "FAILED": re.compile(r"(?m)^Ran \d{1,9} tests? in "),
    "PASS": re.compile(r"(?m)^(?:--- |=== RUN|ok\s)"),
    "FAIL": re.compile(r"(?m)^\s{0,8}(?:--- FAIL|=== RUN|FAIL\s+\S)"),
}
"""Summary lines of one word, which other programs print too, and what the runner prints besides."""

_RUNNER = re.compile(
    r"(?:^|[;&|(\n]|\bpython[\d.]{0,5} -m|\b(?:uv|poetry|pipenv|hatch) run|\bnpx|\bbundle exec"
    r"|\bcd \S{1,200} &&)\s{0,8}(?:\w{1,40}=\S{0,200}\s){0,4}(?P<name>"
    r"pytest|py\.test|unittest|nose2|tox|nox|(?:npm|yarn|pnpm|bun)(?: run)? test|jest|vitest|mocha"
    r"|go test|cargo (?:nextest run|test)|mvn [^\n;&|]{0,80}\btest|(?:\./)?gradlew? [^\n;&|]{0,80}"
    r"\btest|rspec|phpunit|ctest|dotnet test|make (?:test|check)|node --test)(?![\w.-])"
)
_NOT_STARTED = re.compile(
    r"No module named '?(?:pytest|nose2|tox|nox|unittest)\b|: (?:command )?not found\b"
    r"|Missing script: \"?test"
)
_NO_TEST_RAN = (5, 126, 127)
"""Exit codes of pytest without tests, and of a shell that could not start a program."""
_READERS = frozenset("cat head tail less more grep rg sed awk bat type".split())
"""Programs that print what a file holds: a summary in it is of an earlier run."""


@dataclass(frozen=True)
class RunnerResult:
    """What one execution of a test runner came to. `place` counts the calls of the run from 0."""

    turn: int
    place: int
    failed: bool
    summary: str
    """The runner's own last line; "" where only its exit code tells."""
    exit_code: int | None


def runner_results(run: Run) -> Iterator[RunnerResult]:
    """Every execution of a test runner of which the runner or its exit code states the result."""
    for place, (turn, action) in enumerate(run.actions()):
        result = _result(action)
        if result is not None:
            failed, summary = result
            observation = action.observation
            exit_code = observation.exit_code if observation is not None else None
            yield RunnerResult(turn.index, place, failed, summary, exit_code)


def _result(action: Action) -> tuple[bool, str] | None:
    """Whether tests failed, and the summary; None for what is no run of tests with a result."""
    observation = action.observation
    if action.kind not in ("execute", "other") or observation is None:
        return None
    if observation.kind in ("timeout", "blocked", "cancelled") or _only_reads(action.code):
        return None
    summary = _summary(observation.text)
    if summary:
        return _FAILED.search(summary) is not None, summary
    is_runner = action.kind == "execute" and _RUNNER.search(action.code) is not None
    exit_code = observation.exit_code
    if not is_runner or exit_code is None or exit_code in _NO_TEST_RAN or exit_code < 0:
        return None
    return None if _NOT_STARTED.search(observation.text[-_TAIL:]) else (exit_code != 0, "")


def _summary(output: str) -> str:
    """The last summary line of a test runner in an output; "" if there is none."""
    text = _ANSI.sub("", output[-_TAIL:])
    for line in reversed(text.splitlines()):
        if len(line) > _LONGEST_LINE or _SUMMARY.fullmatch(line) is None:
            continue
        summary = line.strip().strip("=").strip()
        # PHPUnit's `OK (3 tests, 5 assertions)` needs nothing beside it.
        word = "" if "assertion" in summary else summary.split(" (")[0]
        besides = _NEEDS_OTHER_LINES.get(word)
        if besides is None or besides.search(text):
            return summary
    return ""


def _only_reads(code: str) -> bool:
    """Whether every command of a shell text only prints what files hold."""
    commands = [part.split() for part in re.split(r"[;&|\n]+", code) if part.strip()]
    return bool(commands) and all(words[0] in _READERS for words in commands)
