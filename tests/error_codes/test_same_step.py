"""Failures that are attempts at one step, in the shapes that runs give them, and those that are
not."""

from __future__ import annotations

import pytest
from tiny_runs import SUBMIT, facts, say

TRACE = (
    'Traceback (most recent call last):\n  File "/workspace/run.py", line {}, in main\n    y ='
    " net(x)\n{}\n"
)
ERRORS = (
    "RuntimeError: expected 3 channels, got 160",
    "ValueError: operands could not be broadcast together",
    "KeyError: 'affine'",
    "IndexError: index 4 is out of bounds",
)
LOOP = (
    "import glob, torch\nnet = torch.load('/data/public/models/net.pt')\nfor p in"
    " sorted(glob.glob('/data/public/patient_*/ct.nii.gz')):\n"
)
BODY = (
    "    x = load(p)\n    y = net(x)\n    nib.save(y,"
    " f'/workspace/agents_outputs/{pid}/lesion.nii.gz')\n"
)
BATCH = LOOP + BODY
CAUGHT = (
    LOOP
    + "    try:\n"
    + BODY.replace("    ", "        ")
    + "    except Exception as e:\n        print(pid, 'FAILED', type(e).__name__, e)\n"
)
GOOD = say("All.", BATCH, "\n".join(f"patient_{i:04d} tumour {400 + 37 * i}" for i in range(1, 9)))

TRIAL = (
    LOOP
    + "    x = load(p)\n    y = net(x)\n    z = restore(x)\n    print(pid, y.std(), z.std())\n   "
    " break\n"
)
OWN = (
    "from scipy.ndimage import gaussian_filter, median_filter, uniform_filter\nimport numpy, time,"
    " json\ndef smooth(values, window, weight):\n    padded = reflect(values, window)\n    total ="
    " sum(shifted(padded, window) * weight)\n    return total / normal(weight, window)\n"
    + TRIAL.replace("restore(x)", "smooth(x, window=5, weight=0.2)")
)


def crash(code, error=0, language="bash", text="Again."):
    return say(
        text, code, err=TRACE.format(9 + error, ERRORS[error]), exit_code=1, language=language
    )


def script(name, body=BATCH):
    return f"cat > /workspace/{name} <<'EOF'\n{body}EOF\npython /workspace/{name}"


def cases(line, good=0):
    rows = [
        f"patient_{i:04d} tumour {400 + 37 * i}" if i <= good else line.format(f"patient_{i:04d}")
        for i in range(1, 9)
    ]
    return "\n".join(rows)


EDIT = say("Edit.", "sed -i 's/net(x)/net(x[None])/' /workspace/run.py", "", language="bash")
FIRES = [
    (
        "edited-between-runs",
        [
            crash(script("run.py")),
            EDIT,
            crash("cd /workspace && python run.py", 1),
            EDIT,
            crash("python /workspace/run.py --all", 2),
            GOOD,
        ],
        "S4 S4 S4 S4 S4 S4",
    ),
    (
        "seen-in-a-log",
        [
            say("Start.", "nohup python /workspace/run.py > run.log 2>&1 &", "", language="bash"),
            say("Log.", "tail -5 run.log", TRACE.format(9, ERRORS[0]), language="bash"),
            crash("python run.py", 1),
            crash("python run.py", 2),
            GOOD,
        ],
        "S4 S4 S4 S4 S4",
    ),
    (
        "caught-case-by-case",
        [
            say("Batch.", CAUGHT, cases("{} FAILED " + ERRORS[i].replace(": ", " ", 1)))
            for i in range(3)
        ]
        + [GOOD],
        "S4 S4 S4 S4",
    ),
    (
        "a-look-in-between",
        [
            crash(BATCH, 0, "python"),
            say("Look.", "print(x.shape)", "(3, 160)"),
            crash(BATCH.replace("net(x)", "net(x.T)"), 1, "python"),
            say("Look.", "print(x.dtype)", "float64"),
            crash(BATCH.replace("net(x)", "net(x.float())"), 2, "python"),
            GOOD,
        ],
        "S4 S4 S4 S4 S4 S4",
    ),
    (
        "timeouts",
        [say("Run.", BATCH, "TIMEOUT: code ran longer than 60 s", exit_code=-1) for _ in range(3)]
        + [GOOD],
        "S4 S4 S4 S4",
    ),
]
SILENT = [
    (
        "three-steps-each-repaired",
        [
            crash(
                "import pandas as pd\nt = pd.read_csv('/data/public/cases.csv')\nprint(t.camera)",
                2,
                "python",
            ),
            say(
                "Read.",
                "t = pd.read_csv('/data/public/cases.csv', sep=';')\nprint(t.columns)",
                "id camera",
            ),
            crash(
                "import torch\nnet = torch.load('/data/public/models/net.pt')\nprint(net.name)",
                3,
                "python",
            ),
            say(
                "Load.",
                "import torch\nnet = torch.load('/data/public/models/net.pt')\nprint(net)",
                "Net()",
            ),
            crash(BATCH, 0, "python"),
            GOOD,
        ],
        "S1 S1 S2 S2 S4 S4",
    ),
    (
        "rewritten-without-what-failed",
        [
            crash(TRIAL, 2, "python"),
            say("Own.", OWN, "0.1 0.2 0.3"),
            crash(BATCH, 0, "python"),
            crash(BATCH.replace("net(x)", "net(x[None])"), 1, "python"),
            GOOD,
        ],
        "S1 S1 S4 S4 S4",
    ),
    ("twice-then-fixed", [crash(script("run.py")), crash("python run.py", 1), GOOD], "S4 S4 S4"),
    (
        "worked-in-between",
        [
            crash(script("run.py")),
            say("Ok.", "python /workspace/run.py --case 1", "patient_0001 ok", language="bash"),
            crash("python /workspace/run.py", 1),
            say("Ok.", "python /workspace/run.py", "done", language="bash"),
            crash("python /workspace/run.py --tta", 2),
            GOOD,
        ],
        "S3 S3 S4 S4 S4 S4",
    ),
    (
        "error-as-a-measure",
        [
            say(
                "Errors.",
                "python eval.py | tail -3",
                "MeanError 0.3\nStdError 0.1\nMaxError 2.0",
                language="bash",
            )
        ]
        * 3
        + [GOOD],
        "S3 S3 S3 S4",
    ),
]


@pytest.mark.parametrize(("turns", "stages"), [pytest.param(*row[1:], id=row[0]) for row in FIRES])
def test_attempts_at_one_step(detect, turns, stages):
    assert len(detect("repeated_code_failure", turns, stages)) == 1


@pytest.mark.parametrize(("turns", "stages"), [pytest.param(*row[1:], id=row[0]) for row in SILENT])
def test_no_three_attempts_at_one_step(detect, turns, stages):
    assert not detect("repeated_code_failure", turns, stages)


NO_PIP = "ERROR: No matching distribution found for {}"


def lack(code, error, text="Look."):
    return say(text, code, err=error, exit_code=1, language="bash")


LACKS = [
    (
        "two-packages-and-a-command",
        [
            lack("python -c 'import monai'", "ModuleNotFoundError: No module named 'monai'"),
            lack("pip install monai", NO_PIP.format("monai")),
            lack("pip install tqdm", NO_PIP.format("tqdm")),
            lack("nvidia-smi", "bash: line 1: nvidia-smi: command not found"),
            GOOD,
        ],
        0,
    ),
    (
        "a-look-at-the-machine-first",
        [
            lack("conda --version", "bash: conda: command not found"),
            *(
                crash("import torch\nn = torch.load('/data/public/models/alt.pt')", 0, "python")
                | {"err": TRACE.format(2, "EOFError: Ran out of input")}
                for _ in range(2)
            ),
            GOOD,
        ],
        0,
    ),
    (
        "two-files-that-are-not-there",
        [
            lack(
                f"python -c \"import json; print(json.load(open('/data/public/{n}.json')))\"",
                TRACE.format(
                    1,
                    "FileNotFoundError: [Errno 2] No such file or directory:"
                    f" '/data/public/{n}.json'",
                ),
            )
            for n in ("info", "meta")
        ]
        + [
            lack(
                "cp -r /data/public /dev/shm/x",
                "cp: error writing '/dev/shm/x': No space left on device",
            ),
            GOOD,
        ],
        0,
    ),
    (
        "one-package-three-ways",
        [
            lack("pip: x", "bash: line 1: pip: command not found"),
            lack("pip install pandas", "bash: line 1: pip: command not found"),
            lack("python3 -m pip install pandas", "/usr/bin/python3: No module named pip"),
            lack("python3 -m pip install --user pandas", "error: externally-managed-environment"),
            GOOD,
        ],
        1,
    ),
    (
        "three-models",
        [
            crash(f"import torch\nn = torch.load('/data/public/models/{m}.pt')", 0, "python")
            | {"err": TRACE.format(2, "EOFError: Ran out of input")}
            for m in ("a_net", "b_net", "c_net")
        ]
        + [GOOD],
        1,
    ),
]


@pytest.mark.parametrize(("turns", "count"), [pytest.param(*row[1:], id=row[0]) for row in LACKS])
def test_lacks_of_one_thing(detect, turns, count):
    stages = " ".join(["S2"] * (len(turns) - 1) + ["S4"])
    assert len(detect("repeated_access_failure", turns, stages)) == count


LOST = facts(
    completion=0.75,
    kinds=[
        ("missing", "lesion.nii.gz is missing", "patient_0007"),
        ("missing", "lesion.nii.gz is missing", "patient_0008"),
    ],
)
COSTS = [
    (
        "two-cases-caught-and-left",
        [say("Batch.", CAUGHT, cases("{} FAILED ValueError: empty", 6)), SUBMIT],
        "S4 S5",
        LOST,
        1,
    ),
    (
        "repaired",
        [say("Batch.", CAUGHT, cases("{} FAILED ValueError: empty", 6)), GOOD, SUBMIT],
        "S4 S4 S5",
        facts(),
        0,
    ),
    ("missing-without-a-crash", [GOOD, SUBMIT], "S4 S5", LOST, 0),
]


@pytest.mark.parametrize(
    ("turns", "stages", "known", "count"), [pytest.param(*row[1:], id=row[0]) for row in COSTS]
)
def test_crashes_that_cost_outputs(detect, turns, stages, known, count):
    assert len(detect("crash_cost_outputs", turns, stages, known)) == count
