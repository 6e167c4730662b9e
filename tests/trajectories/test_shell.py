"""Shell text: its simple commands, the scripts that it starts, and for how many cases."""

from __future__ import annotations

import re

import pytest
from ambjudge.trajectories.turns.executed_code import MAX_STARTS, CodeFacts, Files
from ambjudge.trajectories.turns.python_reader import ALL
from ambjudge.trajectories.turns.shell import commands, script_runs
from hypothesis import given
from hypothesis import strategies as st

FILES = Files(
    re.compile("agents_outputs"), frozenset(f"case_{i:04d}" for i in range(1, 9)), ("case_",)
)
ASKED = [
    pytest.param("python run.py", None, id="nothing said"),
    pytest.param("python run.py case_0001", 1, id="one id"),
    pytest.param("python run.py --num-beams 4", None, id="a number of something"),
    pytest.param("python run.py /data/public/*/ct.nii.gz", ALL, id="wildcard"),
    pytest.param(
        "for c in $(ls /data/public); do python run.py $c; done", ALL, id="loop over a listing"
    ),
    pytest.param("for i in {1..8}; do python run.py $i; done", 8, id="braces"),
    pytest.param(
        "ls /data/public | head -2 | xargs -I{} python run.py {}", 2, id="xargs over the first"
    ),
    pytest.param("python run.py \\\n  case_0001 case_0002", 2, id="continued line"),
]


@pytest.mark.parametrize(("text", "cases"), ASKED)
def test_cases_that_a_command_line_asks_for(text: str, cases: int | None) -> None:
    (command,) = (command for command in commands(text) if command.script)
    assert FILES.asked(command) == cases


STARTED = [
    pytest.param(
        "cd /w && LIMIT=2 python3 -u 'my run.py' a.py > log.txt 2>&1 &",
        ("a.py",),
        id="prefix, quotes, redirection",
    ),
    pytest.param(
        "timeout 60 nohup python /w/run.py --out x; bash go.sh # python no.py",
        ("/w/run.py", "go.sh"),
        id="wrappers, comment",
    ),
    pytest.param(
        "python -m py_compile run.py && python /w/run.py -h", (), id="compiled, short help"
    ),
    pytest.param("X=/w/run.py\npython $X", ("/w/run.py",), id="a variable set before"),
]


@pytest.mark.parametrize(("text", "paths"), STARTED)
def test_scripts_that_are_started(text: str, paths: tuple[str, ...]) -> None:
    assert script_runs(text) == paths


def test_a_command_has_its_words_its_targets_and_what_stands_around_it() -> None:
    first, second = commands(
        "LIMIT=2 /usr/bin/python3 run.py --out-dir '/x y/o' --fast > a.log 2> /dev/null | tee b.log"
    )
    assert (first.program, first.script, first.targets) == ("python", "run.py", ("a.log",))
    assert first.options == {"limit": "2", "out_dir": "/x y/o", "fast": ""}
    assert (second.words, second.piped, second.fed) == (("tee", "b.log"), True, first.words)


@given(
    st.text(
        alphabet="python run.py -=$(){}*;|&\n\\'\"`<>for in do done head 0123 case_xargs",
        max_size=400,
    )
)
def test_any_text_is_read(text: str) -> None:
    for command in commands(text):
        asked = FILES.asked(command)
        assert asked is None or asked >= 1


HOSTILE = [
    "'" * 199_999,
    '"\\' * 100_000,
    "a'" * 100_000,
    "${" * 100_000,
    "$(" * 100_000,
    "`" * 200_000,
    "# " * 100_000,
    "<" * 200_000,
    "for x in a;" * 18_000,
    "xargs " * 30_000,
    "x=$x;" * 40_000,
    "x=aaaaaaaa\n" + "x=$x$x$x$x\n" * 5_000,
    "python a.py " * 16_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:8] for text in HOSTILE])
def test_hostile_text_stays_fast(text: str, no_runaway) -> None:
    with no_runaway():
        for command in commands(text):
            FILES.asked(command)


def test_scripts_that_start_each_other_are_not_followed_for_ever(no_runaway) -> None:
    files = Files(re.compile("agents_outputs"), frozenset())
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        files.store(
            f"{name}.py",
            f"import os\nfor i in range(9):\n    os.system('python {other}.py')\n" * 100,
        )
        files.store(f"{name}.sh", f"bash {other}.sh; python {other}.py\n" * 100)
    result = CodeFacts()
    with no_runaway():
        files.shell("bash a.sh; python a.py\n" * 100, result)
    assert 10 <= len(result.started) <= MAX_STARTS
