"""Failed executions: what is recognised in an observation, and what is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ambjudge.trajectories.models import Action, Observation
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.turns.failures import (
    PATTERNS_FILE,
    action_failure,
    failures,
    find_errors,
    normalise,
    patterns,
)
from hypothesis import given
from hypothesis import strategies as st

RECORDED = Path(__file__).parents[1] / "data" / "recorded"

PLAIN = """Traceback (most recent call last):
  File "/workspace/run.py", line 25, in main
    r = CFG[name]
        ~~~^^^^^^
KeyError: 'platelets'
"""
CHAINED = """Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/requests/models.py", line 1021, in raise_for_status
    raise HTTPError(msg)
requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://hub.example/x

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/workspace/load.py", line 3, in <module>
    AutoModel.from_pretrained("org/none")
OSError: org/none is not a local folder and is not a valid model identifier
"""
NESTED = """RuntimeError: worker failed
Traceback (most recent call last):
  File "/workspace/a.py", line 9, in work
    x = 1 / 0
ZeroDivisionError: division by zero

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/workspace/a.py", line 12, in <module>
    cleanup()
NameError: name 'cleanup' is not defined
"""
TAIL = """site-packages/torch/nn/modules/conv.py", line 565, in forward
    return self._conv_forward(input, self.weight, self.bias)
  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/conv.py", line 560, in _conv_forward
    return F.conv2d(
           ^^^^^^^^^
RuntimeError: Input type (double) and bias type (float) should be the same
"""


def observation(text="", exit_code=1, err="", kind=None):
    kind = kind or ("unknown" if exit_code is None else "ok" if exit_code == 0 else "failed")
    return Observation(exit_code=exit_code, stdout=text, stderr=err, kind=kind)


def fail(text="", exit_code=1, err="", kind=None, language="python", action="execute"):
    act = Action(
        tool="execute_code",
        kind=action,
        language=language,
        observation=observation(text, exit_code, err, kind),
    )
    return action_failure(3, 0, act)


@pytest.mark.parametrize(
    ("text", "kind", "family", "environment"),
    [
        pytest.param(PLAIN, "KeyError", "code", False, id="plain"),
        pytest.param(CHAINED, "OSError", "model", True, id="chained"),
        pytest.param(NESTED, "NameError", "code", False, id="nested"),
        pytest.param(
            '  File "<stdin>", line 1\n    if x\n       ^\nSyntaxError: invalid syntax\n',
            "SyntaxError",
            "syntax",
            False,
            id="syntax",
        ),
        pytest.param(
            'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    import'
            " nets\nModuleNotFoundError: No module named 'nets'",
            "ModuleNotFoundError",
            "package",
            True,
            id="module",
        ),
        pytest.param(
            'Traceback (most recent call last):\n  File "a.py", line 1, in'
            " <module>\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
            "OutOfMemoryError",
            "memory",
            True,
            id="cuda-oom",
        ),
        pytest.param(
            'Traceback (most recent call last):\n  File "a.py", line 1, in'
            " f\nrequests.exceptions.ConnectionError: Max retries exceeded with url",
            "ConnectionError",
            "network",
            True,
            id="network",
        ),
        pytest.param(
            'Traceback (most recent call last):\n  File "a.py", line 1, in f\nFileNotFoundError:'
            " [Errno 2] No such file or directory: '/data/x.nii'",
            "FileNotFoundError",
            "path",
            True,
            id="path",
        ),
        pytest.param(
            "ERROR: Could not find a version that satisfies the requirement medzoo9 (from versions:"
            " none)\nERROR: No matching distribution found for medzoo9\n",
            "pip",
            "package",
            True,
            id="pip-none",
        ),
        pytest.param(
            "Segmentation fault (core dumped)\n", "segfault", "killed", False, id="segfault"
        ),
    ],
)
def test_families_of_failures(text, kind, family, environment):
    failure = fail(text)
    assert (failure.kind, failure.family, failure.environment) == (kind, family, environment)
    assert failure.confidence >= 0.6
    assert failure.message
    assert "\n" not in failure.message


DATA = yaml.safe_load(PATTERNS_FILE.read_text("utf-8"))


def entries(part):
    return [
        pytest.param(entry, id=f"{index}-{entry.get('kind', entry.get('family'))}")
        for index, entry in enumerate(DATA[part])
    ]


@pytest.mark.parametrize("entry", entries("causes"))
def test_a_cause_is_read_from_its_examples(entry):
    assert entry["examples"]
    for line in entry["examples"]:
        assert re.search(entry["pattern"], line, re.IGNORECASE), line
        assert (
            next(family for family, pattern in patterns().causes if pattern.search(line))
            == entry["family"]
        ), line


@pytest.mark.parametrize("entry", entries("lines"))
def test_a_line_is_known_by_its_examples(entry):
    assert entry["examples"]
    for line in entry["examples"]:
        assert re.match(entry["pattern"], line), line
        (error,) = find_errors(line)
        assert (error.kind, error.confidence) == (entry["kind"], entry["confidence"]), line
        assert error.family == entry.get("family", error.family)


@pytest.mark.parametrize("name", DATA["signs"])
def test_a_sign_is_seen_in_its_examples_only(name):
    sign = DATA["signs"][name]
    assert sign["examples"]
    assert [line for line in sign["examples"] if not patterns().find(name, line)] == []
    assert [line for line in sign.get("not", []) if patterns().find(name, line)] == []


@pytest.mark.parametrize(
    ("exit_code", "kind", "environment"),
    [
        (137, "exit 137", True),
        (139, "exit 139", False),
        (124, "timeout", False),
        (2, "exit 2", False),
    ],
)
def test_exit_codes_without_words(exit_code, kind, environment):
    failure = fail("some output\n", exit_code)
    assert (failure.kind, failure.environment) == (kind, environment)


@pytest.mark.parametrize(
    ("kwargs", "reason"),
    [
        pytest.param({"text": "all fine\n", "exit_code": 0}, "success", id="success"),
        pytest.param(
            {"text": "monai MISSING No module named 'monai'\n", "exit_code": 0},
            "a probe that reported a lack",
            id="probe",
        ),
        pytest.param(
            {"text": "epoch 3 error 0.12\nmean error: 0.5\n", "exit_code": 0},
            "the word error in a metric",
            id="metric",
        ),
        pytest.param(
            {
                "text": "    raise ValueError('x')\n  except KeyError as e:\n" * 40,
                "exit_code": None,
                "action": "read",
            },
            "code shown",
            id="code-shown",
        ),
    ],
)
def test_not_a_failure(kwargs, reason):
    failure = fail(**kwargs)
    assert failure is None or failure.confidence < 0.6, reason


def test_a_pipe_hides_the_exit_code():
    failure = fail(TAIL, 0)
    assert failure.kind == "RuntimeError"
    assert failure.confidence >= 0.9


def test_a_printed_message_is_only_a_hint():
    assert fail("Error: could not read one row, skipped\ndone\n", 0).confidence < 0.6
    assert fail("ValueError: bad row\n", 0).confidence < 0.6


def test_an_error_survived_early_in_a_long_good_output_is_a_hint():
    assert fail(PLAIN + "epoch ok\n" * 60, 0).confidence < 0.6


def test_a_look_that_finds_nothing_is_a_hint():
    assert (
        fail(
            "ls: cannot access '/app/*/': No such file or directory\n", 2, language="bash"
        ).confidence
        < 0.6
    )


def test_timeouts_and_blocks():
    assert fail("", -1, "TIMEOUT: execution exceeded 20s", kind="timeout").family == "timeout"
    assert fail("BLOCKED: forbidden pattern", -1, kind="blocked").family == "blocked"


def test_waiting_for_a_download_is_access():
    waited = Observation(exit_code=-1, stderr="TIMEOUT: execution exceeded 60s", kind="timeout")
    act = Action(
        tool="execute_code",
        kind="execute",
        language="bash",
        code="pip install monai",
        observation=waited,
    )
    assert action_failure(1, 0, act).environment
    assert not action_failure(1, 0, act.model_copy(update={"code": "python loop.py"})).environment


def test_tool_errors_of_other_tools():
    failure = fail(
        "<tool_use_error>File has not been read yet.</tool_use_error>", None, action="edit"
    )
    assert failure.family == "tool"
    assert not failure.environment


def test_the_innermost_own_frame_is_named():
    text = PLAIN.replace(
        "KeyError",
        '  File "/opt/venv/lib/python3.11/site-packages/x.py", line 1, in get\n    a\nKeyError',
    )
    assert fail(text).frame == "/workspace/run.py:25 in main"
    assert fail(CHAINED).chain == ("HTTPError", "OSError")


def test_the_same_failure_has_the_same_signature():
    again = PLAIN.replace("line 25", "line 31").replace("/workspace/run.py", "/workspace/run2.py")
    assert fail(PLAIN).signature == fail(again).signature
    assert fail(PLAIN).signature != fail(TAIL).signature
    assert normalise("size 12 at 0xff in /a/b/c.py") == normalise("size 7 at 0x1a in /d/e.py")


def test_several_errors_in_one_text_come_in_order():
    kinds = [f.kind for f in find_errors(PLAIN + "\n" * 9 + "noise\n" * 9 + TAIL)]
    assert kinds == ["KeyError", "RuntimeError"]


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ("bccd-lite-04", [(4, "RuntimeError"), (5, "RuntimeError"), (6, "KeyError")]),
        ("bccd-std-01", [(3, "RuntimeError"), (4, "FileNotFoundError")]),
        ("kidney-lite-02", [(5, "ValueError"), (6, "ValueError")]),
        ("kidney-lite-04", [(3, "timeout"), (4, "timeout")]),
        ("ldct-lite-02", [(5, "blocked"), (8, "blocked")]),
        ("vqa-std-01", []),
    ],
)
def test_recorded_runs(run, expected):
    confident = [f for f in failures(load_run(RECORDED / "runs" / run)) if f.confidence >= 0.6]
    assert [(f.turn, f.kind) for f in confident] == expected


def test_megabytes_are_read_in_linear_time(no_runaway):
    texts = [
        "error x" * 700_000,
        "error: it failed, not found\n" * 150_000,
        PLAIN * 40_000,
        "a: " * 1_600_000 + "not found",
    ]
    with no_runaway():
        for text in texts:
            find_errors(text)


@given(st.text(max_size=400))
def test_any_text_is_read(text):
    for error in find_errors(text):
        assert 0 < error.confidence <= 1
    for code in (0, 1, None, 137, -1):
        got = fail(text, code)
        assert got is None or (
            got.message == " ".join(got.message.split()) and len(got.message) <= 300
        )
