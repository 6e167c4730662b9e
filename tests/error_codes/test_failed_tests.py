"""The fact that the last run of tests failed and the agent closed with a message."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ambjudge.error_codes.context import code_context
from ambjudge.error_codes.trace_facts import bare_facts
from ambjudge.judge.engine import make_scorecard
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.turns.runner_results import runner_results
from ambjudge.trajectories.turns.segment import segment
from tool_turns import call, run_of, shell

EXTERNAL = Path(
    os.environ.get(
        "AMBJUDGE_EXTERNAL_DATA", Path(__file__).parents[3] / "shared" / "data" / "external"
    )
)
RECORDED = Path(__file__).parents[1] / "data" / "recorded" / "runs"
DONE = "All done! The tests pass."
PYTEST = "tests/test_a.py .F.\n==== 1 failed, 2 passed in 0.12s ===="
PASSED = "tests/test_a.py ...\n==== 3 passed in 0.10s ===="
UNITTEST = "F..\nFAIL: test_a\n-----\nRan 3 tests in 0.001s\n\nFAILED (failures=1)"

SUMMARIES = {
    "pytest": (PYTEST, True),
    "pytest-quiet": ("..F\n1 failed, 2 passed in 0.12s", True),
    "pytest-colours": ("\x1b[31m\x1b[1m1 failed\x1b[0m, \x1b[32m2 passed\x1b[0m in 1.2s", True),
    "pytest-error": ("== 1 error in 0.31s ==", True),
    "pytest-passed": ("== 9 passed, 1 xfailed, 2 warnings in 63.1s (0:01:03) ==", False),
    "unittest": (UNITTEST, True),
    "unittest-passed": ("...\nRan 3 tests in 0.001s\n\nOK (skipped=1)", False),
    "jest": ("Tests:       2 failed, 5 passed, 7 total\nTime:        1.2 s", True),
    "jest-passed": ("Tests:       7 passed, 7 total\nSnapshots:   0 total", False),
    "vitest": (" Tests  1 failed | 4 passed (5)\n  Duration  300ms", True),
    "mocha": ("  4 passing (20ms)\n  1 failing\n\n  1) adds", True),
    "mocha-passed": ("  5 passing (20ms)\n", False),
    "node": ("# tests 3\n# pass 2\n# fail 1\n# cancelled 0", True),
    "go": ("--- FAIL: TestAdd (0.00s)\nFAIL\nFAIL\texample.com/a\t0.002s\nFAIL", True),
    "go-passed": ("ok  \texample.com/a\t0.002s", False),
    "cargo": ("test result: FAILED. 1 passed; 1 failed; 0 ignored; finished in 0.01s", True),
    "cargo-passed": ("test result: ok. 2 passed; 0 failed; 0 ignored; finished in 0.0s", False),
    "rspec": ("5 examples, 1 failure", True),
    "maven": ("[ERROR] Tests run: 5, Failures: 1, Errors: 0, Skipped: 0", True),
    "maven-passed": ("[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 0", False),
    "phpunit": ("Tests: 5, Assertions: 9, Failures: 1.", True),
    "phpunit-passed": ("OK (5 tests, 9 assertions)", False),
    "ctest": ("50% tests passed, 1 tests failed out of 2", True),
    "dotnet": ("Failed!  - Failed:     1, Passed:     4, Skipped:     0, Total:     5", True),
    "last-of-two": (f"{PYTEST}\n{PASSED}", False),
}
"""Outputs of test runners, and whether tests failed."""

NO_RESULT = {
    "prose": shell("python eval.py", "3 failed attempts, giving up"),
    "a-word": shell("make deploy", "FAILED"),
    "ok": shell("curl host", "OK"),
    "a-log-is-read": shell("cat pytest.log", PYTEST),
    "a-log-is-searched": shell("grep -n failed out.log | tail -3", "1 failed, 2 passed in 0.12s"),
    "the-runner-is-not-there": shell("pytest -q", "bash: pytest: command not found", 127),
    "no-module": shell("python -m pytest", "/usr/bin/python: No module named pytest", 1),
    "no-tests": shell("pytest tests/none", "", 5),
    "no-exit-code": shell("pytest -q | tee log", "collecting ...", None),
    "a-file-of-that-name": shell("ls pytest.ini && python train.py", "", 1),
    "another-program-failed": shell("python train.py", "loss 0.3", 1),
}

RUNS: dict[str, tuple[list[Any], str]] = {
    "a-message": ([shell("pytest", PYTEST, 1), DONE], '"1 failed, 2 passed in 0.12s", exit code 1'),
    "exit-code-hidden-by-a-pipe": ([shell("pytest | tail -3", PYTEST), DONE], "exit code 0"),
    "exit-code-alone": ([shell("npm test", "", 1), DONE], "failed: exit code 1;"),
    "finish": ([shell("pytest", PYTEST, 1), call("finish", None, message=DONE)], "turn 2"),
    "final-answer": ([shell("pytest", PYTEST, 1), call("final_answer", answer=DONE)], "turn 2"),
    "submit": ([shell("pytest", PYTEST, 1), call("submit", None)], "closing message (turn 2)"),
    "a-tool-that-runs-tests": ([call("run_tests", PYTEST, path="tests"), DONE], "turn 1"),
    "a-file-is-edited-after-it": (
        [
            shell("pytest", PYTEST, 1),
            call("str_replace", path="a.py", old_str="1", new_str="2"),
            DONE,
        ],
        "calls wrote or edited files after it (turn 2)",
    ),
    "passed-before": ([shell("pytest", PASSED), shell("pytest", PYTEST, 1), DONE], "turn 2"),
}
SILENT: dict[str, list[Any]] = {
    "passed-in-the-end": [shell("pytest", PYTEST, 1), shell("pytest", PASSED), DONE],
    "passed": [shell("pytest", PASSED), DONE],
    "no-tests": [shell("python train.py", "", 1), DONE],
    "cut-off": [shell("pytest", PYTEST, 1)],
    "cut-off-later": [shell("pytest", PYTEST, 1), shell("ls", "a.py")],
}


def facts_of(run: Run) -> list[str]:
    facts = bare_facts(code_context(run, segment(run)))
    return [fact.text for fact in facts if fact.kind == "failed_tests"]


@pytest.mark.parametrize(("output", "failed"), SUMMARIES.values(), ids=SUMMARIES)
def test_a_runner_says_itself_whether_tests_failed(
    output: str, failed: bool, tmp_path: Path
) -> None:
    (result,) = runner_results(run_of(tmp_path, shell("./check.sh", output), DONE))
    assert result.failed is failed
    assert "\x1b" not in result.summary


@pytest.mark.parametrize("turn", NO_RESULT.values(), ids=NO_RESULT)
def test_what_is_no_run_of_tests_has_no_result(turn: Any, tmp_path: Path) -> None:
    assert not list(runner_results(run_of(tmp_path, turn, DONE)))


@pytest.mark.parametrize(("turns", "text"), RUNS.values(), ids=RUNS)
def test_a_last_run_of_tests_that_failed_is_a_fact(
    turns: list[Any], text: str, tmp_path: Path
) -> None:
    run = run_of(tmp_path, *turns)
    (fact,) = facts_of(run)
    assert fact.startswith("The last run of tests (turn ")
    assert text in fact
    card = make_scorecard(run)
    assert [f.text for f in card.facts if "run of tests" in f.text] == [fact]
    assert not card.codes, "a fact, and no code"


@pytest.mark.parametrize("turns", SILENT.values(), ids=SILENT)
def test_otherwise_there_is_no_such_fact(turns: list[Any], tmp_path: Path) -> None:
    assert not facts_of(run_of(tmp_path, *turns))


@pytest.mark.skipif(not EXTERNAL.is_dir(), reason=f"NOT RUN: no external runs at {EXTERNAL}")
def test_real_runs_of_other_agents(tmp_path: Path) -> None:
    """No run of the recorded or external ones closed after failed tests; with the last word of a
    real test output changed, one did."""
    folders = [path.parent for path in EXTERNAL.glob("*/*/conversation.json")]
    runs = [load_run(folder) for folder in folders]
    tested = [run for run in runs if list(runner_results(run))]
    assert len(runs) > 200
    assert {run.id for run in tested} >= {"Algorithm-Generated__22", "Algorithm-Generated__51"}
    assert not [run.id for run in runs if facts_of(run)]

    path = EXTERNAL / "whoandwhen" / "Algorithm-Generated__22" / "conversation.json"
    text = path.read_text("utf-8").replace(r"\\n\\nOK", r"\\n\\nFAILED (failures=2)")
    (tmp_path / "conversation.json").write_text(text, "utf-8")
    results = list(runner_results(load_run(tmp_path)))
    assert [result.failed for result in results] == [True] * len(results)
    assert results


def test_recorded_runs_have_no_such_fact() -> None:
    runs = [load_run(folder) for folder in sorted(RECORDED.iterdir()) if folder.is_dir()]
    assert len(runs) >= 10
    assert not [run.id for run in runs if facts_of(run)]
