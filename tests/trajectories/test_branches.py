"""Scripts that can do several things: only what the given command line reaches shows facts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ambjudge.trajectories.code_evaluation import Scope, Values
from ambjudge.trajectories.code_modules import Library, Module
from ambjudge.trajectories.code_options import MANY, parsers, words
from ambjudge.trajectories.code_values import UNKNOWN
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from shell_turns import facts_of

OUT = "/workspace/agents_outputs"
WORK = f"""import argparse, glob, os, sys, torch, numpy as np, nibabel as nib
from nets import Net
CASES = sorted(os.listdir('/data/public'))
def predict(c):
    m = Net(); m.load_state_dict(torch.load('/data/public/models/w.pt')); m.eval()
    with torch.no_grad(): return m(torch.from_numpy(nib.load(f'/data/public/{{c}}/ct.nii.gz').get_fdata()))
def save(y, c): nib.save(nib.Nifti1Image(y, None), f'{OUT}/{{c}}/lesion.nii.gz')
def pilot(scan='case_0003', **rest): print(predict(scan).shape)
def batch(**rest):
    for c in CASES: save(predict(c), c)
def verify(**rest):
    for c in CASES: assert nib.load(f'{OUT}/{{c}}/lesion.nii.gz').get_fdata().any()
"""
PARSE = "ap = argparse.ArgumentParser()\n"
CHOICES = (
    PARSE
    + "ap.add_argument('cmd', choices=['pilot', 'batch', 'verify'])\nap.add_argument('--scan', default='case_0003')\na = ap.parse_args()\n"
)
SUB = PARSE + "sub = ap.add_subparsers(dest='what', required=True)\n"
LOOP = "    save(predict(c), c)\n"
SCRIPTS = {
    "if_else": CHOICES + """if a.cmd == 'verify':
    verify()
else:
    for c in [a.scan] if a.cmd == 'pilot' else CASES:
        y = predict(c)
        if a.cmd == 'batch': save(y, c)
""",
    "returns": CHOICES.replace("a = ap", "args = ap") + """def main(args):
    if args.cmd == 'pilot':
        return pilot(args.scan)
    if args.cmd in ('verify', 'check'):
        verify()
        sys.exit(0)
    batch()
if __name__ == '__main__':
    main(args)
""",
    "match": CHOICES + """match a.cmd:
    case 'pilot': pilot(a.scan)
    case 'verify' | 'check': verify()
    case _: batch()
""",
    "table": CHOICES + "{'pilot': pilot, 'batch': batch, 'verify': verify}[a.cmd]()\n",
    "named_table": CHOICES + "COMMANDS = {'pilot': lambda: pilot(a.scan), 'batch': batch, 'verify': verify}\nrun = COMMANDS.get(a.cmd)\nif run is None: sys.exit('?')\nrun()\n",
    "globals": CHOICES + "globals()[a.cmd]()\n",
    "argv": "cmd = sys.argv[1] if len(sys.argv) > 1 else 'batch'\nif cmd == 'pilot': pilot()\nelif cmd == 'verify': verify()\nelif cmd == 'batch': batch()\n",
    "short_circuit": CHOICES + "a.cmd == 'pilot' and pilot()\na.cmd == 'batch' and batch()\nverify() if a.cmd == 'verify' else None\n",
    "sub_func": SUB + """p = sub.add_parser('pilot'); p.add_argument('--scan', default='case_0003'); p.set_defaults(func=lambda a: pilot(a.scan))
p = sub.add_parser('batch', aliases=['all']); p.set_defaults(func=lambda a: batch())
sub.add_parser('verify').set_defaults(func=lambda a: verify())
args = ap.parse_args()
args.func(args)
""",
    "sub_dest": SUB + """for name in ('pilot', 'batch', 'verify'): sub.add_parser(name)
def main(argv=None):
    args = ap.parse_args(argv)
    what = args.what
    if what == 'pilot': pilot()
    elif what == 'batch': batch()
    else: verify()
main()
""",
    "sub_loop": SUB + """for name, fn in (('pilot', pilot), ('batch', batch), ('verify', verify)):
    p = sub.add_parser(name)
    p.set_defaults(run=fn)
ns = ap.parse_args()
ns.run()
""",
    "click": "import click\n@click.group()\ndef cli(): pass\n@cli.command('pilot')\n@click.option('--scan', default='case_0003')\ndef p(scan): pilot(scan)\n@cli.command()\ndef verify_(): verify()\n@cli.command('batch')\ndef b(): batch()\n@cli.command('verify')\ndef v(): verify()\nif __name__ == '__main__': cli()\n",
    "typer": "import typer\napp = typer.Typer()\n@app.command('pilot')\ndef p(scan: str = 'case_0003'): pilot(scan)\n@app.command('batch')\ndef b(): batch()\n@app.command('verify')\ndef v(): verify()\napp()\n",
    "fire": "import fire\nfire.Fire({'pilot': pilot, 'batch': batch, 'verify': verify})\n",
    "fire_all": "import fire\nif __name__ == '__main__':\n    fire.Fire()\n",
}  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize(
    ("word", "scope", "writes", "reads"),
    [
        pytest.param("pilot", "one", False, False, id="pilot"),
        pytest.param("batch", "all", True, False, id="batch"),
        pytest.param("verify", "none", False, True, id="verify"),
        pytest.param("$1", "all", True, True, id="not-known"),
    ],
)
def test_only_the_named_command_runs(
    tmp_path: Path, script: str, word: str, scope: str, writes: bool, reads: bool
) -> None:
    facts = facts_of(tmp_path, f"python cli.py {word}", cli=WORK + SCRIPTS[script])
    assert (facts.cases_scope, facts.writes_outputs, facts.reads_outputs) == (scope, writes, reads)


FLAGS = WORK + PARSE + """ap.add_argument('--ids', nargs='*'); ap.add_argument('--first', type=int)
ap.add_argument('--load-only', action='store_true'); ap.add_argument('--no-save', dest='save', action='store_false')
ap.add_argument('--check', action='store_true'); ap.add_argument('-q', '--quiet', action='store_true')
ap.add_argument('--wait', action=argparse.BooleanOptionalAction, default=False)
def main():
    a = ap.parse_args()
    m = Net(); m.load_state_dict(torch.load('/data/public/models/w.pt'))
    if a.load_only: sys.exit()
    if a.check and not a.quiet:
        verify()
        return
    ids = a.ids or CASES
    for i, c in enumerate(ids):
        if a.first is not None and i >= a.first: break
        y = predict(c)
        if a.wait or not a.save: continue
        save(y, c)
main()
"""  # fmt: skip
LINES = [
    pytest.param("", "all", True, False, id="no option: everything"),
    pytest.param("--quiet", "all", True, False, id="a switch that changes nothing"),
    pytest.param("--load-only", "none", False, False, id="the rest after an exit is dead"),
    pytest.param("--load", "none", False, False, id="a flag's beginning"),
    pytest.param("--check", "none", False, True, id="a check, then return"),
    pytest.param("--check -q", "all", True, False, id="look-alike: the condition has two sides"),
    pytest.param("--ids case_0001 case_0002", "few", True, False, id="ids given"),
    pytest.param("--ids case_0001", "one", True, False, id="one id given"),
    pytest.param("--ids", "all", True, False, id="look-alike: an option for ids without any"),
    pytest.param("--first 2", "few", True, False, id="a loop that breaks at a limit"),
    pytest.param("--no-save", "all", False, False, id="nothing is written"),
    pytest.param("--wait", "all", False, False, id="the rest of a round after continue is dead"),
    pytest.param("--no-wait", "all", True, False, id="look-alike: the switch's no"),
    pytest.param("$MODE", "all", True, True, id="a variable may be any flag"),
    pytest.param("--verbose", "all", True, True, id="an option that is not known keeps every branch"),
    pytest.param("--load-only 2>&1 | tee log.txt", "none", False, False, id="redirected errors are no word"),
    pytest.param("  # --load-only", "all", True, False, id="look-alike: a comment"),
]


@pytest.mark.parametrize(("line", "scope", "writes", "reads"), LINES)
def test_switches_and_limits(tmp_path: Path, line: str, scope: str, writes: bool, reads: bool) -> None:
    facts = facts_of(tmp_path, f"python run.py {line}", run=FLAGS)
    assert (facts.cases_scope, facts.writes_outputs, facts.reads_outputs) == (scope, writes, reads)


ANSWER = WORK + """def answer(c, save_it=True, mode='full'):
    y = predict(c)
    if save_it: save(y, c)
    if mode == 'full': return y
    return y.mean()
if __name__ == '__main__': batch()
"""  # fmt: skip
IMPORTED = [
    pytest.param("for c in runner.CASES: runner.answer(c, save_it=False)", False, id="a repeat that saves nothing"),
    pytest.param("for c in runner.CASES: runner.answer(c, False)", False, id="by position"),
    pytest.param("for c in runner.CASES: runner.answer(c)", True, id="look-alike: the default saves"),
    pytest.param("quick = dict(save_it=False)\nfor c in runner.CASES: runner.answer(c, **quick)", True, id="look-alike: not known"),
    pytest.param("for c in runner.CASES: runner.answer(c, save_it=False)\nrunner.answer('case_0001')", True, id="look-alike: once more with saving"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "writes"), IMPORTED)
def test_arguments_of_a_call_decide(tmp_path: Path, code: str, writes: bool) -> None:
    facts = facts_of(tmp_path, "python verify.py", runner=ANSWER, verify=f"import runner\n{code}\n")
    assert facts.forward_pass
    assert facts.writes_outputs is writes


NOT_KNOWN = [
    pytest.param("DRY = True\nfor d in (1, 2):\n    DRY = False\nif not DRY: batch()", id="set again in a loop"),
    pytest.param("DRY = True\nif os.path.exists('go'): DRY = False\nif not DRY: batch()", id="set again on one path"),
    pytest.param("DRY = True\ntry:\n    import fast; DRY = False\nexcept ImportError: pass\nif not DRY: batch()", id="set again in a try"),
    pytest.param("DRY = True\ndef go():\n    global DRY\n    DRY = False\ngo()\nif not DRY: batch()", id="set by a function"),
    pytest.param("N = 0\nN += len(CASES)\nif N: batch()", id="counted up"),
    pytest.param("todo = []\nfor c in CASES: todo.append(c)\nif todo: batch()", id="a list that is filled"),
    pytest.param("todo = ['x']\ntodo.clear()\nif not todo: batch()", id="a list that is emptied"),
    pytest.param("try:\n    check()\n    sys.exit(1)\nexcept NameError: pass\nbatch()", id="an exit that may not be reached"),
    pytest.param("if os.environ.get('DRY'): sys.exit()\nbatch()", id="a variable of the environment"),
    pytest.param("while True:\n    break\nbatch()", id="a break leaves the loop alone"),
    pytest.param("from contextlib import suppress\nwith suppress(SystemExit):\n    sys.exit()\nbatch()", id="a suppressed exit"),
    pytest.param("for f in (pilot, batch): f()", id="functions in a loop"),
    pytest.param("for i, (n, f) in enumerate({'a': pilot, 'b': batch}.items()): f()", id="functions of a table in a loop"),
    pytest.param("if len(sys.argv) > 1: sys.exit()\nbatch()", id="no word is given"),
]  # fmt: skip


@pytest.mark.parametrize("code", NOT_KNOWN)
def test_what_is_not_known_keeps_its_branches(tmp_path: Path, code: str) -> None:
    facts = facts_of(tmp_path, "python run.py", run=f"{WORK}{code}\n")
    assert (facts.cases_scope, facts.writes_outputs) == ("all", True)


def test_an_environment_variable_of_the_command_is_a_value(tmp_path: Path) -> None:
    script = WORK + "if os.environ.get('MODE') == 'dry': sys.exit()\nbatch()\n"
    assert not facts_of(tmp_path, "MODE=dry python run.py", run=script).writes_outputs
    assert facts_of(tmp_path, "MODE=full python run.py", run=script).writes_outputs


def test_a_literal_of_a_file_that_was_edited_is_not_believed(tmp_path: Path) -> None:
    script = WORK + "DRY = True\nif DRY: sys.exit()\nbatch()\n"
    assert not facts_of(tmp_path, "python run.py", run=script).writes_outputs
    assert facts_of(tmp_path, "sed -i 's/DRY = True/DRY = False/' run.py; python run.py", run=script).writes_outputs
    edit = (
        "python - <<'P'\ns = open('run.py').read()\nopen('run.py', 'w').write(s.replace('DRY = True', 'DRY = 0'))\nP\n"
    )
    assert facts_of(tmp_path, edit + "python run.py", run=script).writes_outputs


def test_a_command_started_from_python(tmp_path: Path) -> None:
    script = WORK + SCRIPTS["if_else"]
    start = "python - <<'P'\nimport subprocess, sys\nsubprocess.run([sys.executable, 'cli.py', {}])\nP"
    assert facts_of(tmp_path, start.format("'pilot'"), cli=script).cases_scope == "one"
    assert facts_of(tmp_path, start.format("mode"), cli=script).cases_scope == "all"


WORDS = [
    pytest.param(" pilot --n=2 'a b'", ("pilot", "--n=2", "a b"), id="quotes"),
    pytest.param(" $c --x ${Y}z", (UNKNOWN, "--x", UNKNOWN), id="variables"),
    pytest.param(" $(ls /data) *.png {1..3}", (MANY, MANY, MANY), id="any number"),
    pytest.param(' "pilot', ("pilot",), id="an open quote"),
    pytest.param(" a < in.txt", ("a",), id="input from a file"),
]


@pytest.mark.parametrize(("line", "found"), WORDS)
def test_words(line: str, found: tuple[object, ...]) -> None:
    assert words(line) == found


DEFINED = PARSE + """ap.add_argument('name'); ap.add_argument('rest', nargs='*')
ap.add_argument('-n', '--num-cases', type=int, default=5); ap.add_argument('--tag', action='append')
ap.add_argument('--kind', nargs='?', const='short', default='long'); ap.add_argument('--thr', type=lambda s: s)
ap.add_argument('-v', action='count', default=0)
"""  # fmt: skip
PARSED = [
    pytest.param("x", {"name": "x", "rest": [], "num_cases": 5, "tag": None, "kind": "long", "thr": None, "v": 0}, id="defaults"),
    pytest.param("x --num-cases 3 y z", {"name": "x", "num_cases": 3}, id="a number between"),
    pytest.param("x -n=-1", {"num_cases": -1}, id="a number below zero"),
    pytest.param("--tag a --tag b x", {"tag": ["a", "b"], "name": "x"}, id="repeated"),
    pytest.param("x --kind", {"kind": "short"}, id="a value left out"),
    pytest.param("x --thr 3 -v", {"thr": UNKNOWN, "v": UNKNOWN}, id="converted by own code"),
    pytest.param("$NAME", {"name": UNKNOWN, "num_cases": 5}, id="one unknown word"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "values"), PARSED)
def test_parsed_values(line: str, values: dict[str, object]) -> None:
    module = Module.of(DEFINED)
    assert module is not None
    found = parsers(module, Values(module, Library(), Scope()).value_of).parse(words(line))
    assert found is not None
    assert {name: found[name] for name in values} == values


@given(st.lists(st.sampled_from(["x", "-n", "--num-cases", "3", "--tag", "--", "-", "--kind=", UNKNOWN, MANY, "-v"]), max_size=12))  # fmt: skip
def test_any_words_are_parsed(line: list[object]) -> None:
    module = Module.of(DEFINED)
    assert module is not None
    found = parsers(module, Values(module, Library(), Scope()).value_of).parse(line)
    assert found is None or set(found) >= {"name", "rest", "num_cases", "tag"}


CALLS = "\n".join(f"def f{i}(a, b=0):\n" + "".join(f"    f{i + 1}(a, {n})\n    f{i + 1}({n}, b)\n" for n in range(40)) for i in range(8))  # fmt: skip
HOSTILE = [
    pytest.param("x = 0\n" + "".join(f"x{i} = {i}\nif x{i}: y{i} = 1\n" for i in range(4_000)), id="many branches"),
    pytest.param("".join(f"{' ' * i}if u{i}:\n{' ' * i} v{i} = {i}\n" for i in range(90)), id="deep branches"),
    pytest.param("if u: pass\n" + "elif u == 1: x = 1\n" * 3_000, id="a long chain"),
    pytest.param("a0 = [1]\nb0 = [1]\n" + "".join(f"a{i + 1} = [a{i}, a{i}]\nb{i + 1} = [b{i}, b{i}]\n" for i in range(80)) + "if a80 == b80: pass\n", id="shared lists"),
    pytest.param("f0 = lambda: 1\n" + "".join(f"f{i + 1} = lambda: (f{i}(), f{i}())\n" for i in range(60)) + "f60()\n", id="doubling functions"),
    pytest.param("f = lambda: f()\nf()\n", id="a function that calls itself"),
    pytest.param(CALLS + "\nf0(1)\n", id="calls with many values"),
    pytest.param("x = " + "not " * 3_000 + "u\nif x: pass\n", id="a deep condition"),
    pytest.param("if " + " and ".join(["u"] * 8_000) + ": pass\n", id="a wide condition"),
    pytest.param("import argparse\nap = argparse.ArgumentParser()\n" + "ap.add_argument('--x', nargs='*')\n" * 4_000 + "a = ap.parse_args()\n" + "if ap.parse_args().x: pass\n" * 200, id="many options, parsed often"),
]  # fmt: skip


@pytest.mark.parametrize("code", HOSTILE)
def test_hostile_branches_stay_fast(tmp_path: Path, code: str, no_runaway) -> None:
    with no_runaway():
        assert facts_of(tmp_path, "python run.py " + "--x a " * 100, run=code).runs_script
