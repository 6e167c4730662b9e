"""Facts of turns, read from runs built as the loader reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.turns.case_ids import case_ids
from ambjudge.trajectories.turns.features import features
from ambjudge.trajectories.turns.turn_features import TurnFeatures
from conversations import bash, converse

LIST_CASES = "\n".join(f"case_{i:04d}" for i in range(1, 9))
HEAD = (
    "import os, sys, glob, torch, numpy as np, nibabel as nib\nfrom nets import Net\nm = Net();"
    " m.load_state_dict(torch.load('/data/public/models/w.pt')); m.eval()\n"
)
OUT = "/workspace/agents_outputs"
PREDICT = (
    "    with torch.no_grad(): y ="
    " m(torch.from_numpy(nib.load(f'/data/public/{c}/ct.nii.gz').get_fdata()))\n"
)
SAVE = f"    nib.save(nib.Nifti1Image(y, None), f'{OUT}/{{c}}/lesion.nii.gz')\n"


def make_run(folder: Path, *turns: tuple | str) -> Run:
    """A run whose first output lists eight cases."""
    return converse(
        folder,
        bash("ls /data/public", LIST_CASES),
        *turns,
        brief="Segment.",
        task="kidney-seg-task",
    )


def facts_of(
    folder: Path, language: str, code: str, output: str = "", *before: tuple[str, str, str]
) -> TurnFeatures:
    return features(make_run(folder, *before, (language, code, output)))[-1]


MODULE = (
    HEAD + f"OUT = '{OUT}'\nIDS = {{c: 1 for c in sorted(os.listdir('/data/public'))}}\ndef"
    " predict(c):\n    c = str(c)\n" + PREDICT + "    return y\ndef save(y, c):\n" + SAVE
)
LOOP = (
    "import glob, os\nfor p in sorted(glob.glob('/data/public/case_*/ct.nii.gz')):\n    c ="
    f" os.path.basename(os.path.dirname(p))\n{PREDICT}{SAVE}"
)

SCOPES = [
    pytest.param(
        HEAD + "for c in ['case_0001', 'case_0002']:\n" + PREDICT,
        "few",
        False,
        id="two literal cases",
    ),
    pytest.param(HEAD + LOOP, "all", True, id="glob over every case"),
    pytest.param(
        HEAD + LOOP.replace("ct.nii.gz'))", "ct.nii.gz'))[:2]"),
        "few",
        True,
        id="glob cut by a slice",
    ),
    pytest.param(
        HEAD + "c = 'case_0001'\nfor flip in range(8):\n" + PREDICT,
        "one",
        False,
        id="repetitions are no cases",
    ),
    pytest.param(
        HEAD
        + "def run(c):\n"
        + PREDICT
        + "    return y\nfor p in glob.glob('/data/public/*/ct.nii.gz'):\n    run(p)\n",
        "all",
        False,
        id="function called in a loop",
    ),
    pytest.param(
        HEAD
        + "files = glob.glob('/data/public/*/ct.nii.gz')\nX = np.stack([nib.load(f).get_fdata() for"
        " f in files])\nwith torch.no_grad(): y = m(torch.from_numpy(X))\n",
        "all",
        False,
        id="one pass over a stacked batch",
    ),
    pytest.param(
        HEAD
        + "import json\nstudies = json.load(open('/data/public/manifest.json'))['studies']\nfor s"
        " in studies:\n    c = s['id']\n" + PREDICT + SAVE,
        "all",
        True,
        id="manifest entries",
    ),
]


@pytest.mark.parametrize(("code", "scope", "writes"), SCOPES)
def test_scope_is_read_from_loops(tmp_path: Path, code: str, scope: str, writes: bool) -> None:
    found = facts_of(tmp_path, "python", code)
    assert (found.cases_scope, found.writes_outputs) == (scope, writes), found
    assert found.forward_pass is (scope != "none")


TURNS = [
    pytest.param(
        "bash",
        "cat > /workspace/plan/plan.md <<'EOF'\n# Plan\n1. load\n2. pilot\nEOF",
        {"writes_plan"},
        {"writes_module", "reads_docs", "inspects_inputs"},
        id="plan by here-document",
    ),
    pytest.param(
        "bash",
        "ls -la /data/public; cat /data/public/models/MODEL_CARDS.md",
        {"lists_inputs", "reads_docs"},
        {"inspects_inputs"},
        id="listing and card",
    ),
    pytest.param(
        "bash", "pip install -q monai==1.3", {"installs_packages"}, {"lists_inputs"}, id="pip"
    ),
    pytest.param(
        "bash",
        "nvidia-smi; python -c 'import torch; print(torch.__version__)'",
        {"checks_environment"},
        {"forward_pass"},
        id="device and version",
    ),
    pytest.param(
        "bash",
        f"ls {OUT} | wc -l",
        {"reads_outputs", "checks_outputs"},
        {"writes_outputs"},
        id="outputs counted",
    ),
    pytest.param(
        "bash",
        "cat > /workspace/run.py <<'EOF'\n" + HEAD + LOOP + "EOF",
        {"writes_module", "module_only"},
        {"forward_pass", "writes_outputs", "runs_script"},
        id="module written, not run",
    ),
    pytest.param(
        "bash",
        "cat > /workspace/run.py <<'EOF'\n" + HEAD + LOOP + "EOF\npython /workspace/run.py",
        {"writes_module", "runs_script", "forward_pass", "writes_outputs"},
        {"module_only"},
        id="module written and run",
    ),
    pytest.param(
        "python",
        "import nibabel as nib\ni = nib.load('/data/public/case_0001/ct.nii.gz')\nprint(i.shape,"
        " i.header.get_zooms(), i.get_fdata().min())",
        {"inspects_inputs", "inspects_shapes", "inspects_values"},
        {"forward_pass", "reads_outputs"},
        id="input looked at",
    ),
    pytest.param(
        "python",
        HEAD + "with torch.no_grad(): print(m(torch.zeros(1, 1, 64, 64)).shape)",
        {"dummy_forward", "loads_model"},
        {"writes_outputs"},
        id="made-up input",
    ),
    pytest.param(
        "python",
        "import nibabel as nib, os\nfor c in os.listdir('/data/public'):\n    q ="
        " f'/workspace/agents_outputs/{c}/lesion.nii.gz'\n    assert os.path.exists(q), q\n   "
        " print(c, nib.load(q).shape)",
        {"reads_outputs", "checks_outputs"},
        {"writes_outputs", "forward_pass"},
        id="outputs checked",
    ),
    pytest.param(
        "python",
        "loss = crit(net(x), y)\nloss.backward()\nopt.step()",
        {"training"},
        set(),
        id="training",
    ),
    pytest.param(
        "python",
        "open('/workspace/plan/plan.md', 'w').write('''# Plan\n1. a\n2. b\n''')",
        {"writes_plan"},
        {"writes_module"},
        id="plan from Python",
    ),
]


@pytest.mark.parametrize(("language", "code", "there", "absent"), TURNS)
def test_facts_of_a_turn(
    tmp_path: Path, language: str, code: str, there: set[str], absent: set[str]
) -> None:
    found = facts_of(tmp_path, language, code)
    assert {fact for fact in there if not getattr(found, fact)} == set()
    assert {fact for fact in absent if getattr(found, fact)} == set()


LATER = [
    pytest.param(
        "python",
        "import sys; sys.path.insert(0, '/workspace')\nfrom lib import predict, save\nfor i in"
        " range(1, 9):\n    c = f'case_{i:04d}'\n    save(predict(c), c)",
        "all",
        id="imported functions",
    ),
    pytest.param(
        "bash",
        "for c in $(ls /data/public); do python /workspace/one.py $c; done",
        "all",
        id="shell loop over a script",
    ),
    pytest.param("bash", "python /workspace/one.py case_0001", "one", id="script for one case"),
]


@pytest.mark.parametrize(("language", "code", "scope"), LATER)
def test_modules_of_earlier_turns_are_known(
    tmp_path: Path, language: str, code: str, scope: str
) -> None:
    script = HEAD + "for c in sys.argv[1:]:\n" + PREDICT + SAVE
    before = (
        "bash",
        f"cat > /workspace/lib.py <<'E1'\n{MODULE}E1\ncat > /workspace/one.py <<'E2'\n{script}E2",
        "",
    )
    found = facts_of(tmp_path, language, code, "", before)
    assert (found.cases_scope, found.forward_pass, found.writes_outputs, found.runs_script) == (
        scope,
        True,
        True,
        True,
    )


OPTIONS = """import argparse, os
ap = argparse.ArgumentParser()
ap.add_argument('--ids', nargs='*')
ns = ap.parse_args()
for c in ns.ids or sorted(os.listdir('/data/public')):
"""
GO = HEAD + f"OUT = '{OUT}'\n" + OPTIONS + PREDICT + SAVE
COMMANDS = [
    pytest.param("python go.py", "all", True, id="no option: everything"),
    pytest.param(
        f"for c in $(ls /data/public); do python /opt/f.py --in /data/public/$c --out {OUT}/$c;"
        " done",
        "all",
        True,
        id="given tool, loop",
    ),
    pytest.param("python go.py --help", "none", False, id="help"),
]


@pytest.mark.parametrize(("shell", "scope", "writes"), COMMANDS)
def test_the_command_line_decides(tmp_path: Path, shell: str, scope: str, writes: bool) -> None:
    before = ("bash", f"cat > /workspace/go.py <<'EOF'\n{GO}EOF", "")
    found = facts_of(tmp_path, "bash", shell, "", before)
    assert (found.cases_scope, found.writes_outputs) == (scope, writes), found


BATCH = (
    "import glob, os\nfrom lib import predict, save\nfor p in"
    " sorted(glob.glob('/data/public/case_*/ct.nii.gz')):\n    c ="
    " os.path.basename(os.path.dirname(p))\n    save(predict(c), c)\n"
)
WRITE = (
    "mkdir -p /workspace/lib\ncat > /workspace/lib.py <<'PY'\n"
    + MODULE
    + "PY\ncat > /workspace/batch.py <<'PY'\n"
    + BATCH
    + "PY"
)
CELLS = MODULE + "LEGS = sorted(os.path.basename(p) for p in glob.glob('/data/public/case_*'))\n"
BY_NUMBER = "from lib import predict, save\nfor k in range(1, 9):\n"
BY_NAME = (
    "import json\nfrom lib import predict\nd = json.load(open('/data/public/manifest.json'))\nids ="
    " list(d)\n"
)
WITH_FILES = [
    pytest.param("python", "exec(open('/workspace/batch.py').read())", "all", id="exec of a file"),
    pytest.param("bash", "cd /workspace && python -u -m batch", "all", id="python -m"),
    pytest.param(
        "python", "open('/workspace/notes.txt').read()", "none", id="a file that is only read"
    ),
    pytest.param("python", BY_NUMBER + "    predict(f'case_{k:04d}')\n", "all", id="an id at once"),
    pytest.param(
        "python",
        BY_NUMBER + "    word = f'round {k}'\n    print(word, predict('case_0001'))\n",
        "one",
        id="look-alike: rounds",
    ),
    pytest.param(
        "python",
        BY_NAME + "for v in d['images']:\n    print(predict(v))\n",
        "all",
        id="look-alike: a list by its name",
    ),
    pytest.param(
        "python",
        "exec(open('/workspace/cells.py').read())\nprint(len(LEGS))",
        "none",
        id="nothing is called",
    ),
]


@pytest.mark.parametrize(("language", "code", "scope"), WITH_FILES)
def test_cases_of_what_earlier_files_do(
    tmp_path: Path, language: str, code: str, scope: str
) -> None:
    own = (
        f"cat > /workspace/cells.py <<'P'\nimport glob, os\n{CELLS}P"
        if "cells.py" in code
        else WRITE
    )
    facts = facts_of(tmp_path, language, code, "", bash(own))
    assert facts.cases_scope == scope
    assert facts.reads_docs is ("notes.txt" in code), "one's own source is no documentation"


def test_a_here_document_in_a_shell_loop_runs_for_each_case(tmp_path: Path) -> None:
    body = "import sys\nfrom lib import predict, save\nc = sys.argv[1]\nsave(predict(c), c)\n"
    loop = f"for d in /data/public/case_*; do\npython3 - $(basename $d) <<'PY'\n{body}PY\ndone"
    library = ("bash", f"cat > lib.py <<'P'\n{MODULE}P", "")
    assert facts_of(tmp_path / "a", "bash", loop, "", library).cases_scope == "all"
    kept = f"cat > run.sh <<'SH'\n{loop}\nSH\nbash run.sh"
    assert facts_of(tmp_path / "b", "bash", kept, "", library).cases_scope == "all"
    alone = f"python3 - case_0001 <<'PY'\n{body}PY"
    assert facts_of(tmp_path / "c", "bash", alone, "", library).cases_scope == "one"


def test_ids_without_a_separator_are_read_from_a_listing(tmp_path: Path) -> None:
    names = ["models", *(f"q{i:02d}" for i in range(1, 8))]
    listed = bash("ls /data/public", "\n".join(names) + "\nfloat32 float64")
    assert case_ids(converse(tmp_path, listed, brief="Answer.")) == tuple(names[1:])


OWN = (
    "import numpy as np\ndef load(c):\n    return np.load(f'/data/public/{c}/x.npy')\ndef"
    " smooth(a):\n    return (a + np.roll(a, 1)) / 2\n"
)
OWN_USED = [
    pytest.param(
        "from own import *\nfor c in ('case_0001', 'case_0002'):\n    print(c,"
        " smooth(load(c)).std())",
        {"applies_module", "loads_inputs"},
        set(),
        "one",
        id="on cases",
    ),
    pytest.param(
        "from own import smooth\na = np.random.default_rng(0).normal(size=(8,"
        " 8))\nprint(smooth(a).std())",
        {"applies_module"},
        {"loads_inputs"},
        "none",
        id="on made-up arrays",
    ),
]


def test_an_import_alone_runs_nothing(tmp_path: Path) -> None:
    code = (
        f"cat > /workspace/lib.py <<'E'\n{MODULE}E\ncd /workspace && python -c \"import lib;"
        " print('ok', lib.OUT)\""
    )
    found = facts_of(tmp_path, "bash", code)
    assert (found.module_only, found.runs_script) == (True, False)
    used = facts_of(tmp_path / "used", "bash", code.replace("lib.OUT", "lib.predict('case_0001')"))
    assert (used.module_only, used.runs_script) == (False, True)


@pytest.mark.parametrize(("code", "there", "absent", "scope"), OWN_USED)
def test_methods_of_ones_own(
    tmp_path: Path, code: str, there: set[str], absent: set[str], scope: str
) -> None:
    found = facts_of(
        tmp_path, "python", code, "", ("bash", f"cat > /workspace/own.py <<'EOF'\n{OWN}EOF", "")
    )
    assert {fact for fact in there if not getattr(found, fact)} == set()
    assert {fact for fact in absent if getattr(found, fact)} == set()
    assert found.inputs_scope == scope


TABLE = (
    "import os, csv\nrows = []\nfor c in os.listdir('/data/public'):\n    rows.append((c,"
    " label(c)))\nwith open('/workspace/agents_outputs/predictions.csv', 'w') as h:\n   "
    " csv.writer(h).writerows(rows)\n"
)


def test_a_table_written_once_holds_all_rows(tmp_path: Path) -> None:
    assert facts_of(tmp_path, "python", TABLE).cases_scope == "all"
    assert facts_of(tmp_path, "python", TABLE.replace("')", "')[:2]", 1)).cases_scope == "few"


def test_every_true_fact_of_code_has_a_quote_from_the_turn(tmp_path: Path) -> None:
    found = facts_of(tmp_path, "python", HEAD + LOOP)
    for fact in ("loads_model", "forward_pass", "writes_outputs", "lists_inputs"):
        assert getattr(found, fact)
        assert found.quotes[fact] in HEAD + LOOP


def test_messages_and_endings(tmp_path: Path) -> None:
    found = features(make_run(tmp_path, "Next the plan.", "All done."))
    assert [(f.message_only, f.closing_message) for f in found] == [
        (False, False),
        (True, False),
        (True, True),
    ]


HOSTILE = [
    pytest.param("python", "x = '" + "a" * 2_000_000 + "'", id="2 MB line"),
    pytest.param("bash", "cat " * 400_000, id="2 MB of one command word"),
    pytest.param("bash", "ls /data " + "-" * 2_000_000 + ".md", id="2 MB option"),
    pytest.param("bash", "cat << " * 20_000, id="unfinished here-documents"),
    pytest.param("bash", "python -c '" * 20_000, id="unfinished quotes"),
    pytest.param("python", "(" * 50_000, id="open brackets"),
    pytest.param("python", "x = " + "+".join(["a"] * 50_000), id="deep sum"),
    pytest.param("python", "x = " + "f(" * 90 + ")" * 90, id="nested calls"),
    pytest.param("python", "def f():\n    return f()\nf()", id="recursion"),
    pytest.param(
        "python",
        "\n".join(f"for i{n} in glob.glob('*'):\n    g(i{n})" for n in range(5_000)),
        id="many loops",
    ),
    pytest.param("python", "\x00\ud800", id="no text"),
    pytest.param("bash", "case_" * 300_000, id="ids without digits"),
    pytest.param("python", "mkdir_" + "0" * 1_500_000, id="long number"),
]


@pytest.mark.parametrize(("language", "code"), HOSTILE)
def test_hostile_code_stays_fast(tmp_path: Path, language: str, code: str, no_runaway) -> None:
    run = make_run(tmp_path, (language, code, code[:2_000_000]))
    with no_runaway():
        assert len(features(run)) == 2
