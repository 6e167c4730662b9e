"""Failures grouped into episodes: same step, attempts, resolution."""

from __future__ import annotations

import pytest
from ambjudge.error_codes.context import code_context
from ambjudge.trajectories.models import Segmentation
from tiny_runs import say, write_run

TRACE = 'Traceback (most recent call last):\n  File "/workspace/a.py", line 3, in main\n{}\n'
PIP = (
    "ERROR: Could not find a version that satisfies the requirement x\nERROR: No matching"
    " distribution found for x"
)


def episodes_of(tmp_path, turns, stages):
    run = write_run(tmp_path / "run", turns)
    return code_context(run, Segmentation(turn_stages=tuple(stages.split()), segments=())).episodes


def bad(code, error, language="python"):
    return say(
        "",
        code,
        exit_code=1,
        err=(
            error
            if error.startswith("ERROR") or ":" not in error or "bash" in error
            else TRACE.format(error)
        ),
        language=language,
    )


RUN = say("", "python train.py --fast", "epoch 1 ok", language="bash")
FAIL = bad("python train.py", "KeyError: 'a'", "bash")
FAIL2 = bad("python train.py --lr 1", "ValueError: bad lr", "bash")


@pytest.mark.parametrize(
    ("turns", "stages", "expected"),
    [
        pytest.param([FAIL, FAIL2, RUN], "S4 S4 S4", [(1, 2, 3, False)], id="one-step-two-causes"),
        pytest.param(
            [FAIL, RUN, FAIL],
            "S4 S4 S4",
            [(1, 1, 2, False), (3, 1, None, False)],
            id="worked-between",
        ),
        pytest.param(
            [FAIL, say("", "print(1)", "1"), FAIL, RUN],
            "S4 S1 S4 S4",
            [(1, 2, 4, False)],
            id="a-look-between",
        ),
        pytest.param(
            [
                bad("pip install x", PIP, "bash"),
                bad("pip3 install x -i y", PIP, "bash"),
                say("", "pip install x2", "Successfully installed", language="bash"),
            ],
            "S2 S2 S2",
            [(1, 2, 3, True)],
            id="installers",
        ),
        pytest.param(
            [
                bad("a = q['k']", "KeyError: 'k'"),
                bad("figure.savefig(path_of_plot)", "OSError: [Errno 28] No space left on device"),
            ],
            "S1 S4",
            [(1, 1, None, False), (2, 1, None, True)],
            id="two-steps",
        ),
        pytest.param(
            [
                say(
                    "",
                    "ls /nothing",
                    exit_code=2,
                    err="ls: cannot access '/nothing': No such file or directory",
                    language="bash",
                ),
                RUN,
            ],
            "S1 S4",
            [],
            id="look-up",
        ),
        pytest.param(
            [say("", "ls /data/private", exit_code=-1, err="BLOCKED: forbidden pattern"), RUN],
            "S1 S4",
            [],
            id="block",
        ),
        pytest.param([RUN], "S4", [], id="none"),
    ],
)
def test_episodes(tmp_path, turns, stages, expected):
    found = episodes_of(tmp_path, turns, stages)
    assert [(e.first_turn, e.attempts, e.resolved_at, e.environment) for e in found] == expected
