"""Single turns that are easily taken for another stage, each in the same run around it, beside
their look-alikes."""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.trajectories.turns.segment import segment
from conversations import SUBMIT, bash, converse, python

IDS = [f"case_{i:04d}" for i in range(1, 21)]
OUT = "/workspace/agents_outputs"
HEAD = (
    "import sys, glob, os, json, torch, numpy as np\nsys.path.insert(0,"
    " '/data/public/models')\nfrom nets import Net\nm = Net();"
    " m.load_state_dict(torch.load('/data/public/models/w.pt')); m.eval()\n"
)
PASS = (
    "    a = np.load(f'/data/public/{c}/ldct.npy')\n    with torch.no_grad(): y ="
    " m(torch.from_numpy(a)).numpy()\n"
)
SAVE = f"    np.save(f'{OUT}/{{c}}/enhanced.npy', y)\n"
SHOW = "    print(c, y.min(), y.max(), y.mean())\n"
EVERY = "for c in sorted(os.listdir('/data/public')):\n"
LOOK = (
    "import numpy as np, glob\nfor p in glob.glob('/data/public/*/ldct.npy'):\n    a = np.load(p);"
    " print(a.shape, a.min())\n"
)
LISTING = bash(
    "ls /data/public; cat /data/public/models/MODEL_CARDS.md\npython - <<'EOF'\n" + LOOK + "EOF",
    "\n".join(IDS),
)
PLAN_TEXT = "# Plan\n" + "".join(f"{i}. step\n" for i in range(1, 15))
PLAN = bash(f"cat > /workspace/plan/plan.md <<'EOF'\n{PLAN_TEXT}EOF")
LOAD = python(HEAD + "print(m)\nprint(m(torch.zeros(1, 1, 8, 8)).shape)")
PILOT = python(HEAD + "for c in ['case_0001']:\n" + PASS + SHOW, "case_0001 0 1 0.5")
BATCH = python(HEAD + EVERY + PASS + SAVE)
CHECK = (
    "for c in os.listdir('/data/public'):\n    q = f'/workspace/agents_outputs/{c}/enhanced.npy'\n "
    "   assert os.path.exists(q), c\n    b = np.load(q)\n    a ="
    " np.load(f'/data/public/{c}/ldct.npy')\n    assert b.shape == a.shape\n    assert b.dtype =="
    " np.float32\n    assert np.isfinite(b).all()\nprint('ok')\n"
)
VERIFY = python("import os, numpy as np\n" + CHECK)
CORE = (
    "import sys, torch, numpy as np\nsys.path.insert(0, '/data/public/models')\nfrom nets import"
    " Net\ndef load():\n    m = Net(); m.load_state_dict(torch.load('/data/public/models/w.pt'))\n "
    "   return m.eval()\ndef restore(m, c):\n    a = np.load(f'/data/public/{c}/ldct.npy')\n   "
    " with torch.no_grad(): return m(torch.from_numpy(a)).numpy()\n"
    + "".join(f"def part{i}(x):\n    return x * {i}\n" for i in range(12))
)
MAIN = (
    "import argparse, os, numpy as np\nfrom .core import load, restore\nap ="
    " argparse.ArgumentParser(); ap.add_argument('ids', nargs='*'); a = ap.parse_args()\nm ="
    " load()\nfor c in a.ids or sorted(os.listdir('/data/public')):\n   "
    f" np.save(f'{OUT}/{{c}}/enhanced.npy', restore(m, c))\n"
)
PACKAGE = (
    f"cat > /workspace/den/core.py <<'EOF'\n{CORE}EOF\ncat > /workspace/den/__main__.py"
    f" <<'EOF'\n{MAIN}EOF\ntouch /workspace/den/__init__.py\ncd /workspace\n"
)
ONLY = MAIN.replace("a.ids or sorted(os.listdir('/data/public'))", "a.ids").replace(".core", "core")
SCRIPT = (
    f"cat > /workspace/core.py <<'EOF'\n{CORE}EOF\ncat > /workspace/go.py <<'EOF'\n{ONLY}EOF\ncd"
    " /workspace\n"
)
TESTS = "import numpy as np\nfrom core import part1\ndef test_part():\n    assert part1(2) == 2\n"
WITH_TESTS = SCRIPT + f"mkdir -p tests\ncat > tests/test_core.py <<'EOF'\n{TESTS}EOF\n"
FIGURE = (
    "import matplotlib; matplotlib.use('Agg')\nimport matplotlib.pyplot as plt\nf, ax ="
    " plt.subplots()\nfor i, s in enumerate(['read', 'net', 'write']):\n    ax.text(i, 0,"
    " s)\nf.savefig('/workspace/plan/plan.png')\n"
)
NOTE = "open('/workspace/plan/plan.md', 'a').write('\\n## Changes\\nThreshold kept.\\n')\n"
PACKAGE_PARTS = bash(PACKAGE)
ONE_MORE = "cd /workspace && python -m den case_0004\n"


def stages(folder: Path, turns: list) -> str:
    run = converse(folder, *turns, brief="Denoise every case.", task="ldct-denoising-task")
    return " ".join(stage[1] for stage in segment(run).turn_stages)


BEFORE = [
    pytest.param(
        bash(WITH_TESTS + "PYTHONPATH=. python -m pytest -q tests 2>&1 | tail -5"),
        2,
        id="pytest as a module",
    ),
    pytest.param(
        bash(WITH_TESTS + "pytest -q && python go.py case_0003"),
        3,
        id="look-alike: tests, then a case",
    ),
    pytest.param(
        bash(PACKAGE + "python -m py_compile den/core.py den/__main__.py && python -m den --help"),
        2,
        id="compiled, help of a package",
    ),
    pytest.param(
        bash(PACKAGE + "python -m den case_0001"), 3, id="look-alike: the package on a case"
    ),
    pytest.param(
        python(
            HEAD + "a = np.load('/data/public/case_0001/ldct.npy')\nprint(a.shape,"
            " m(torch.from_numpy(a)).shape)"
        ),
        2,
        id="one pass for the shapes",
    ),
    pytest.param(
        python(
            HEAD + "a = np.load('/data/public/case_0001/ldct.npy')\nprint(a.mean(),"
            " m(torch.from_numpy(a)).mean())"
        ),
        3,
        id="look-alike: one pass for the values",
    ),
]


@pytest.mark.parametrize(("turn", "stage"), BEFORE)
def test_before_the_batch(tmp_path: Path, turn: tuple, stage: int) -> None:
    assert stages(tmp_path, [LISTING, PLAN, turn, BATCH, VERIFY, SUBMIT]) == f"1 1 {stage} 4 5 5"


AFTER = [
    pytest.param(
        python("import os, numpy as np\n" + CHECK + NOTE), 5, id="a note in the plan beside a check"
    ),
    pytest.param(python(FIGURE), 1, id="the plan's figure alone"),
    pytest.param(bash(ONE_MORE), 4, id="look-alike: one case again"),
    pytest.param(
        bash(
            "cd /workspace\ncp -r agents_outputs first\npython -m den\ndiff -r first agents_outputs"
            " && echo identical"
        ),
        5,
        id="a repeat that must give the same files",
    ),
    pytest.param(
        bash(
            "cd /workspace\ncp -r agents_outputs first\nsed -i 's/x \\* 1/x/' den/core.py\npython"
            " -m den\ndiff -r first agents_outputs && echo identical"
        ),
        4,
        id="look-alike: the code was changed",
    ),
]


@pytest.mark.parametrize(("turn", "stage"), AFTER)
def test_after_the_batch(tmp_path: Path, turn: tuple, stage: int) -> None:
    run = [
        LISTING,
        PLAN,
        PACKAGE_PARTS,
        PILOT,
        ("bash", "cd /workspace && python -m den", ""),
        turn,
        SUBMIT,
    ]
    assert stages(tmp_path, run) == f"1 1 2 3 4 {stage} 5"


def test_the_input_of_a_pilot_is_looked_at_for_its_result(tmp_path: Path) -> None:
    look = python(
        "import numpy as np\na = np.load('/data/public/case_0001/ldct.npy')\nprint(a.min(),"
        " a.max())"
    )
    assert (
        stages(tmp_path, [LISTING, PLAN, LOAD, PILOT, look, BATCH, VERIFY, SUBMIT])
        == "1 1 2 3 3 4 5 5"
    )
