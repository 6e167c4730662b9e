"""Command lines: which script is started, and for how many cases."""

from __future__ import annotations

import pytest
from ambjudge.trajectories.code_names import ALL
from ambjudge.trajectories.code_parts import script_runs
from ambjudge.trajectories.command_lines import cases_asked, launches
from hypothesis import given
from hypothesis import strategies as st

ASKED = [
    pytest.param("python run.py", None, id="nothing said"),
    pytest.param("python run.py case_0001", 1, id="one id"),
    pytest.param("python3 run.py case_0001 case_0002", 2, id="two ids"),
    pytest.param("python run.py --cases case_0001,case_0004", 2, id="ids with a comma"),
    pytest.param("python run.py --films case_0001 --dry --thr 0.02 0.02", 1, id="an id beside other options"),
    pytest.param("python run.py --dry --ids case_0001 case_0004", 2, id="a bare switch before ids"),
    pytest.param("python run.py /data/public/case_0001/ct.nii.gz out.nii.gz", 1, id="a path of one case"),
    pytest.param("python run.py --limit 3", 3, id="limit"),
    pytest.param("python run.py --limit=3 --workers 8", 3, id="limit with an equals sign"),
    pytest.param("python run.py -n 4 -o /workspace/smoke", 4, id="short option"),
    pytest.param("python run.py --max-cases 2", 2, id="at most"),
    pytest.param("python run.py --num_images 5", 5, id="a number of images"),
    pytest.param("python run.py --num-beams 4 --max-new-tokens 64 --num-workers 2", None, id="numbers of other things"),
    pytest.param("python run.py --image-size 512 --batch-size 4", None, id="sizes"),
    pytest.param("python run.py --case x.png", 1, id="one file by option"),
    pytest.param("python run.py --cases all", ALL, id="all by name"),
    pytest.param("python run.py --smoke", 1, id="a bare switch for a try"),
    pytest.param("python run.py --limit 2 | tail -n 30", 2, id="numbers after a pipe are not read"),
    pytest.param("python run.py | head -n 3", None, id="output cut, not input"),
    pytest.param("python run.py 2>&1 | tee run.log", None, id="errors redirected"),
    pytest.param("python run.py 2 > run.log", 2, id="look-alike: a number before a redirection"),
    pytest.param("head -n 3 README && python run.py", None, id="another command's number"),
    pytest.param("python run.py /data/public/*/ct.nii.gz", ALL, id="wildcard"),
    pytest.param("python run.py $(ls /data/public)", ALL, id="a listing"),
    pytest.param("python run.py $(ls /data/public | head -2)", 2, id="a listing cut"),
    pytest.param("for c in $(ls /data/public); do python run.py $c; done", ALL, id="loop over a listing"),
    pytest.param("for d in /data/public/*; do\n  id=$(basename $d)\n  python run.py $d/ct.nii.gz\ndone", ALL, id="loop over folders"),
    pytest.param("for c in $(ls /data/public | head -n 3); do python run.py $c; done", 3, id="loop over the first"),
    pytest.param("for c in case_0001 case_0002; do python run.py $c; done", 2, id="loop over ids"),
    pytest.param("for i in $(seq 1 6); do python run.py case_000$i; done", 6, id="counted loop"),
    pytest.param("for i in {1..8}; do python run.py $i; done", 8, id="braces"),
    pytest.param("cd /w; python run.py case_0{1..8} | tee log", 8, id="braces in ids"),
    pytest.param("python run.py /data/case_{08..10}/ct.nii.gz", 3, id="braces with leading zeros, in paths"),
    pytest.param("python run.py --cfg '{1..8}'", None, id="braces in quotes"),
    pytest.param("python run.py case_{8..5}", 4, id="braces that count down"),
    pytest.param("python run.py case_0{1,3,7}", 3, id="listed braces"),
    pytest.param("python run.py --opts {a:1}", None, id="braces of something else"),
    pytest.param("python run.py case_{1..200000}", 1_000, id="braces without end"),
    pytest.param("ls /data/public | head -2 | xargs -I{} python run.py {}", 2, id="xargs over the first"),
    pytest.param("ls /data/public | xargs -n1 python run.py", ALL, id="xargs over all"),
    pytest.param("for f in *.json; do cat $f; done; python run.py case_0003", 1, id="a loop that is closed"),
    pytest.param("for t in 0.1 0.2; do python run.py --case case_0001 --thr $t; done", 1, id="a sweep on one case"),
    pytest.param("python run.py \\\n  --limit 2", 2, id="continued line"),
    pytest.param("python run.py --tiles q01 q02", 2, id="ids without a separator, by option"),
]  # fmt: skip


@pytest.mark.parametrize(("shell", "cases"), ASKED)
def test_cases_asked(shell: str, cases: int | None) -> None:
    (launch,) = launches(shell)
    assert cases_asked(launch, {"case_"}) == cases


def test_braces_are_written_out_as_a_shell_does() -> None:
    (launch,) = launches("python run.py a_{08..10} b_{0..2} c{2..1}.png")
    assert launch.arguments.split() == ["a_08", "a_09", "a_10", "b_0", "b_1", "b_2", "c2.png", "c1.png"]


HELP = [
    pytest.param("python run.py --help", (), id="help"),
    pytest.param("python -m py_compile run.py && python /w/run.py -h", (), id="compiled, short help"),
    pytest.param("python run.py --help | head; python run.py x", ("run.py",), id="help, then a run"),
    pytest.param("python run.py -h 512", ("run.py",), id="h with a value is an option of its own"),
    pytest.param("./tool.sh --version", (), id="version"),
]


@pytest.mark.parametrize(("shell", "paths"), HELP)
def test_asking_for_help_starts_nothing(shell: str, paths: tuple[str, ...]) -> None:
    assert script_runs(shell) == paths


@given(st.text(alphabet="python run.py -=$(){}*;|&\n\\'\"`for in do done head 0123 case_xargs", max_size=400))
def test_any_text_is_read(shell: str) -> None:
    for launch in launches(shell):
        asked = cases_asked(launch, {"case_"})
        assert asked is None or asked >= 1


@pytest.mark.parametrize(
    "text", ["python a.py " * 20_000, "for x in " * 50_000, "python a.py " + "-n" * 500_000, "./a" * 300_000]
)
def test_hostile_command_lines_stay_fast(text: str, no_runaway) -> None:
    with no_runaway():
        for launch in launches(text[:200_000]):
            cases_asked(launch, {"case_"})
