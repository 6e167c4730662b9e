"""Shell text: its simple commands, the scripts that it starts, and for how many cases."""

from __future__ import annotations

import re

import pytest
from ambjudge.trajectories.executed import MAX_STARTS, Files, Shown
from ambjudge.trajectories.python_module import ALL
from ambjudge.trajectories.shell import commands, script_runs
from hypothesis import given
from hypothesis import strategies as st

FILES = Files(re.compile("agents_outputs"), frozenset(f"case_{i:04d}" for i in range(1, 9)), ("case_",))
ASKED = [
    pytest.param("python run.py", None, id="nothing said"),
    pytest.param("python run.py case_0001", 1, id="one id"),
    pytest.param("python run.py --cases case_0001,case_0004", 2, id="ids with a comma"),
    pytest.param("python run.py /data/public/case_0001/ct.nii.gz out.nii.gz", 1, id="a path of one case"),
    pytest.param("CASE=case_0002 python run.py", 1, id="an id in the environment"),
    pytest.param("python run.py --num-beams 4", None, id="a number of something"),
    pytest.param("python run.py | head -n 3", None, id="output cut, not input"),
    pytest.param("python run.py /data/public/*/ct.nii.gz", ALL, id="wildcard"),
    pytest.param("python run.py $(ls /data/public)", ALL, id="a listing"),
    pytest.param("python run.py $(ls /data/public | head -2)", 2, id="a listing cut"),
    pytest.param("for c in $(ls /data/public); do python run.py $c; done", ALL, id="loop over a listing"),
    pytest.param("for c in $(ls /data/public | head -n 3); do python run.py $c; done", 3, id="loop over the first"),
    pytest.param("for c in case_0001 case_0002; do python run.py $c; done", 2, id="loop over ids"),
    pytest.param("for i in $(seq 1 6); do python run.py case_000$i; done", 6, id="counted loop"),
    pytest.param("for i in {1..8}; do python run.py $i; done", 8, id="braces"),
    pytest.param("python run.py case_{0001..0003}", 3, id="braces in ids"),
    pytest.param("ls /data/public | head -2 | xargs -I{} python run.py {}", 2, id="xargs over the first"),
    pytest.param("for f in *.json; do cat $f; done; python run.py case_0003", 1, id="a loop that is closed"),
    pytest.param("for t in 0.1 0.2; do python run.py --case case_0001 --thr 1; done", 1, id="a loop that gives nothing"),
    pytest.param("python run.py \\\n  case_0001 case_0002", 2, id="continued line"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "cases"), ASKED)
def test_cases_that_a_command_line_asks_for(text: str, cases: int | None) -> None:
    (command,) = (command for command in commands(text) if command.script)
    assert FILES.asked(command) == cases


STARTED = [
    pytest.param("cd /w && LIMIT=2 python3 -u 'my run.py' a.py > log.txt 2>&1 &", ("a.py",), id="prefix, quotes, redirection"),
    pytest.param("timeout 60 nohup python /w/run.py --out x; bash go.sh # python no.py", ("/w/run.py", "go.sh"), id="wrappers, comment"),
    pytest.param("python run.py --help", (), id="help"),
    pytest.param("python -m py_compile run.py && python /w/run.py -h", (), id="compiled, short help"),
    pytest.param("python run.py --help | head; python run.py x", ("run.py",), id="help, then a run"),
    pytest.param("python run.py -h 512", ("run.py",), id="h with a value is an option of its own"),
    pytest.param("./tool.sh --version", (), id="version"),
    pytest.param('echo "python run.py"', (), id="only said"),
    pytest.param("X=/w/run.py\npython $X", ("/w/run.py",), id="a variable set before"),
]  # fmt: skip


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


@given(st.text(alphabet="python run.py -=$(){}*;|&\n\\'\"`<>for in do done head 0123 case_xargs", max_size=400))
def test_any_text_is_read(text: str) -> None:
    for command in commands(text):
        asked = FILES.asked(command)
        assert asked is None or asked >= 1


HOSTILE = [
    "'" * 199_999, '"\\' * 100_000, "a'" * 100_000, "${" * 100_000, "$(" * 100_000, "`" * 200_000, "# " * 100_000, "<" * 200_000,
    "for x in a;" * 18_000, "xargs " * 30_000, "x=$x;" * 40_000, "x=aaaaaaaa\n" + "x=$x$x$x$x\n" * 5_000, "python a.py " * 16_000,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:8] for text in HOSTILE])
def test_hostile_text_stays_fast(text: str, no_runaway) -> None:
    with no_runaway():
        for command in commands(text):
            FILES.asked(command)


def test_scripts_that_start_each_other_are_not_followed_for_ever(no_runaway) -> None:
    files = Files(re.compile("agents_outputs"), frozenset())
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        files.store(f"{name}.py", f"import os\nfor i in range(9):\n    os.system('python {other}.py')\n" * 100)
        files.store(f"{name}.sh", f"bash {other}.sh; python {other}.py\n" * 100)
    shown = Shown()
    with no_runaway():
        files.shell("bash a.sh; python a.py\n" * 100, shown)
    assert 10 <= len(shown.started) <= MAX_STARTS
