"""Forms in which one and the same piece of work is written.

Objects that are called, words on a command line, a model that is loaded where it is applied; each
beside its nearest neighbour of another stage.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.turns.features import features
from ambjudge.trajectories.turns.segment import segment
from conversations import SUBMIT, bash, converse

IDS = [f"eye_{side}{i}" for side in "LR" for i in range(1, 5)]
OUT = "/workspace/agents_outputs"
LISTING = bash("ls /data/public; cat /data/public/models/MODEL_CARDS.md", "\n".join(IDS))
PLAN = bash("cat > /workspace/plan/plan.md <<'EOF'\n" + "- step\n" * 14 + "EOF")
WORK = (
    "import sys, json, os\nimport numpy as np, torch\nsys.path.insert(0,"
    " '/data/public/models')\nfrom nets import Net\nfrom PIL import Image\nclass Finder:\n    def"
    " __init__(self):\n        self.model = Net.from_pretrained('/data/public/models/w.pt')\n   "
    " def tensor(self, c):\n        return"
    " torch.tensor(np.asarray(Image.open(f'/data/public/{c}/fundus.png')))\n"
)
BODY = "        with torch.no_grad(): return self.model.predict(self.tensor(c)).numpy()\n"
CALLABLE = WORK + "    def __call__(self, c):\n" + BODY
MODULE = bash(f"mkdir -p /workspace/eyes\ncat > /workspace/eyes/find.py <<'EOF'\n{CALLABLE}EOF")
GO = (
    "import sys, json, os\nimport numpy as np, torch\nfrom PIL import Image\nfrom nets import"
    " Net\nnet = Net.from_pretrained('/data/public/models/w.pt')\nfor eye in sys.argv[1:]:\n    a"
    " = np.asarray(Image.open(f'/data/public/{eye}/fundus.png'))\n    b ="
    f" net(torch.tensor(a)).tolist()\n    json.dump(b, open(f'{OUT}/{{eye}}/prediction.json',"
    " 'w'))\n    print(eye, len(b))\n"
)
SCRIPT = bash(f"cat > /workspace/go.py <<'EOF'\n{GO}EOF")
BATCH = bash(
    "cd /workspace && python go.py $(ls /data/public | grep eye)", "\n".join(f"{c} 3" for c in IDS)
)


def run_of(folder: Path, turns: list) -> Run:
    outputs = {f"{c}/prediction.json": "[]" for c in IDS}
    task = "retinal-lesion-detection-task"
    return converse(
        folder, *turns, brief="Find the lesions of every eye.", task=task, outputs=outputs
    )


def stages(folder: Path, turns: list) -> str:
    return " ".join(stage[1] for stage in segment(run_of(folder, turns)).turn_stages)


CALLED = [
    pytest.param(
        "from eyes.find import Finder\nf = Finder()\nprint(f('eye_L1'))",
        id="an object that is called",
    ),
    pytest.param(
        "from eyes.find import Finder\nclass Job:\n    def __init__(self):\n        self.find ="
        " Finder()\n    def go(self, c):\n        return self.find(c)\nprint(Job().go('eye_L1'))",
        id="held by another object",
    ),
]


@pytest.mark.parametrize("code", CALLED)
def test_objects_that_are_called(tmp_path: Path, code: str) -> None:
    turn = ("bash", f"cd /workspace && python - <<'EOF'\n{code}\nEOF", "")
    run = run_of(tmp_path, [LISTING, PLAN, MODULE, SCRIPT, turn, BATCH, SUBMIT])
    assert features(run)[4].forward_pass
    assert segment(run).turn_stages[4] == "S3"


WORDS = [
    pytest.param("python go.py eye_L1", "", "one", id="one word"),
    pytest.param("python go.py " + " ".join(IDS), "", "all", id="look-alike: every word"),
    pytest.param(
        "for c in /data/public/eye_*; do python go.py $(basename $c); done",
        "",
        "all",
        id="look-alike: a loop over folders",
    ),
]


@pytest.mark.parametrize(("line", "output", "scope"), WORDS)
def test_ids_with_a_side(tmp_path: Path, line: str, output: str, scope: str) -> None:
    turn = ("bash", f"cd /workspace\n{line}", output)
    assert (
        features(run_of(tmp_path, [LISTING, PLAN, SCRIPT, turn, BATCH, SUBMIT]))[3].cases_scope
        == scope
    )


APPLIED = [
    pytest.param("y = zoo.load('/data/public/models/w.pt')(x)", True, id="loaded and applied"),
    pytest.param(
        "y = zoo.Net.from_pretrained('/data/public/models/w.safetensors')(x)",
        True,
        id="from_pretrained",
    ),
    pytest.param("y = zoo.load('/data/public/models/w.pt')", False, id="look-alike: loaded"),
]


@pytest.mark.parametrize(("line", "applied"), APPLIED)
def test_a_model_applied_where_it_is_loaded(tmp_path: Path, line: str, applied: bool) -> None:
    code = (
        "import torch, zoo, numpy as np\nfrom PIL import Image\nx ="
        f" torch.tensor(np.asarray(Image.open('/data/public/eye_L1/fundus.png')))\n{line}"
    )
    run = run_of(tmp_path, [LISTING, PLAN, ("python", code, ""), SUBMIT])
    assert features(run)[2].forward_pass is applied


PLACES = [
    pytest.param(
        "A, B = Path('/data/public'), Path('/workspace/agents_outputs')\n",
        False,
        id="two names at once",
    ),
    pytest.param(
        "A = B = Path('/workspace/agents_outputs')\n", True, id="look-alike: the same place"
    ),
]


@pytest.mark.parametrize(("line", "output"), PLACES)
def test_places_set_in_one_assignment(tmp_path: Path, line: str, output: bool) -> None:
    code = (
        f"import json, os\nfrom pathlib import Path\n{line}print(json.load(open(os.path.join(A,"
        " 'sides.json'))))"
    )
    assert (
        features(run_of(tmp_path, [LISTING, ("python", code, ""), SUBMIT]))[1].reads_outputs
        is output
    )


FIGURE = (
    "import os\nimport matplotlib.pyplot as plt\nf, ax = plt.subplots()\nfor i, s in"
    " enumerate(['read', 'net', 'write']):\n    ax.text(i, 0,"
    " s)\nf.savefig('/workspace/plan/plan.png')\n"
)
OWED = (
    "with open('/workspace/plan/plan.md', 'w') as f:\n    f.write('''# Lesions\\n1. Load the"
    " picture\\n2. Read the boxes\\n3. Save\\n''')\n"
)
LATE = [
    pytest.param(("python", OWED + FIGURE, ""), 1, id="plan and figure"),
    pytest.param(("python", FIGURE, ""), 1, id="the figure alone"),
    pytest.param(
        (
            "python",
            OWED
            + FIGURE
            + "import json\nfor c in os.listdir('/workspace/agents_outputs'):\n    b ="
            " json.load(open(f'/workspace/agents_outputs/{c}/prediction.json'))\n    assert"
            " isinstance(b, list)\n    assert len(b) < 99, c\n    print(c, len(b))\n",
            "",
        ),
        5,
        id="look-alike: beside a check of the files",
    ),
]


@pytest.mark.parametrize(("turn", "stage"), LATE)
def test_a_plan_that_was_owed(tmp_path: Path, turn: tuple, stage: int) -> None:
    assert stages(tmp_path, [LISTING, SCRIPT, BATCH, turn, SUBMIT]).split()[3] == str(stage)


def test_a_card_read_beside_a_case_between_batches(tmp_path: Path) -> None:
    first = ("bash", "ls /data/public", "\n".join(IDS))
    card = bash("cat /data/public/models/MODEL_CARDS.md\ncd /workspace && python go.py eye_L1")
    found = stages(tmp_path, [first, SCRIPT, BATCH, card, BATCH, SUBMIT]).split()
    assert found[3] == "4"
