"""Segmentation: small stories turn by turn, properties, recorded runs, and runs made to be slow."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from ambjudge.trajectories.models import STAGES, Action, Observation, Run, Turn
from ambjudge.trajectories.reading.load import load_run
from ambjudge.trajectories.turns.features import features
from ambjudge.trajectories.turns.segment import segment
from conversations import SUBMIT, bash, converse, python
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "data" / "recorded"

IDS = [f"case_{i:04d}" for i in range(1, 9)]
HEAD = (
    "import sys, glob, os, torch, numpy as np\nfrom nets import Net\nm = Net();"
    " m.load_state_dict(torch.load('/data/public/models/w.pt')); m.eval()\n"
)
FORWARD = (
    "    a = np.load(f'/data/public/{c}/ldct.npy')\n    with torch.no_grad(): y ="
    " m(torch.from_numpy(a)).numpy()\n"
)
SAVE = "    np.save(f'/workspace/agents_outputs/{c}/enhanced.npy', y)\n"
STATS = "    print(c, y.shape, y.min(), y.max(), y.mean())\n"
EVERY = "for p in sorted(glob.glob('/data/public/case_*/ldct.npy')):\n    c = p.split('/')[-2]\n"

LISTING = bash("ls /data/public; cat /data/public/models/MODEL_CARDS.md", "\n".join(IDS))
LOOK = python(
    "import numpy as np, glob\nfor p in glob.glob('/data/public/*/ldct.npy'):\n    a = np.load(p);"
    " print(a.shape, a.min())"
)
PLAN = bash("cat > /workspace/plan/plan.md <<'EOF'\n# Plan\n1. load\n2. pilot\n3. all\nEOF")
ENVIRONMENT = bash("nvidia-smi; python --version; pip list")
INSTALL = bash("pip install monai")
LOAD = python(HEAD + "print(m)\nprint(m(torch.zeros(1, 1, 8, 8)).shape)")
MODULE = bash(
    "cat > /workspace/run.py <<'EOF'\n"
    + HEAD
    + "def main():\n  for c in sys.argv[1:]:\n"
    + FORWARD.replace("    ", "      ")
    + SAVE.replace("    ", "      ")
    + "if __name__ == '__main__':\n    main()\nEOF",
    "",
)
PILOT = python(HEAD + "for c in ['case_0001']:\n" + FORWARD + STATS, "case_0001 (8, 8) 0 1 0.5")
PILOT_SAVED = python(
    HEAD + "for c in ['case_0001']:\n" + FORWARD + SAVE + STATS, "case_0001 (8, 8) 0 1 0.5"
)
BATCH = python(HEAD + EVERY + FORWARD + SAVE + STATS, "\n".join(IDS))
FAILED_BATCH = python(BATCH[1], "", 1)
RESUME = python(HEAD + "for c in ['case_0007', 'case_0008']:\n" + FORWARD + SAVE)
PLAUSIBLE = python(HEAD + "for c in ['case_0003']:\n" + FORWARD + STATS)
VERIFY = python(
    "import os, numpy as np\nfor c in os.listdir('/data/public'):\n    q ="
    " f'/workspace/agents_outputs/{c}/enhanced.npy'\n    assert os.path.exists(q)\n    print(c,"
    " np.load(q).shape)"
)
LIST_OUT = bash("ls /workspace/agents_outputs | wc -l", "8")
COMMENT = "# S3: batch\n"
OWN = bash(
    "cat > /workspace/own.py <<'EOF'\nimport numpy as np\ndef load(c):\n    return"
    " np.load(f'/data/public/{c}/ldct.npy')\ndef smooth(a):\n    return (a + np.roll(a, 1)) /"
    " 2\nEOF"
)
OWN_PILOT = python(
    "from own import *\nfor c in ('case_0001', 'case_0002'):\n    print(c, smooth(load(c)).std())"
)
OWN_BATCH = bash(
    "cat > /workspace/all.py <<'EOF'\nimport os\nfrom own import *\nfor c in"
    " os.listdir('/data/public'):\n"
    + "    y = smooth(load(c))\n"
    + SAVE
    + "EOF\npython /workspace/all.py"
)
OPTIONS = bash(
    "cat > /workspace/go.py <<'EOF'\n"
    + HEAD
    + "import argparse\nap = argparse.ArgumentParser(); ap.add_argument('--cases', nargs='*')\nns ="
    " ap.parse_args()\n"
    + "for c in ns.cases or sorted(os.listdir('/data/public')):\n"
    + FORWARD
    + SAVE
    + "EOF\npython /workspace/go.py --help",
    "usage",
)
OUTPUTS = "/workspace/agents_outputs"
NOTED = bash(
    "cat >> /workspace/plan/plan.md <<'EOF'\n## Results\n| case | mean |\n| 1 | 0.5 |\n| 2 | 0.4"
    " |\nEOF"
)
TOOL_ONE = bash(
    f"python /opt/f.py /data/public/case_0001/ldct.npy {OUTPUTS}/case_0001/enhanced.npy"
)
TOOL_ALL = bash(
    "for c in $(ls /data/public); do python /opt/f.py /data/public/$c/ldct.npy"
    f" {OUTPUTS}/$c/enhanced.npy; done"
)
TOOL_HELP = bash("python -c 'import numpy; print(numpy.__version__)'; python /opt/f.py --help")


def make_run(
    folder: Path, *turns: tuple | str, task: str | None = "ldct-denoising-task", text: str = ""
) -> Run:
    return converse(folder, *turns, brief="Denoise every case.", task=task, text=text)


STORIES = [
    pytest.param(
        [LISTING, LOOK, PLAN, ENVIRONMENT, LOAD, PILOT, BATCH, VERIFY, SUBMIT],
        "1 1 1 2 2 3 4 5 5",
        id="by the book",
    ),
    pytest.param([LISTING, BATCH, SUBMIT], "1 4 5", id="batch at once"),
    pytest.param(
        [
            LISTING,
            PLAN,
            INSTALL,
            MODULE,
            ("bash", "python /workspace/run.py case_0001", ""),
            ("bash", "python /workspace/run.py $(ls /data/public)", ""),
            SUBMIT,
        ],
        "1 1 2 2 3 4 5",
        id="module, then pilot, then all by the shell",
    ),
    pytest.param(
        [LISTING, PLAN, LOAD, PILOT, FAILED_BATCH, FAILED_BATCH, BATCH, VERIFY, SUBMIT],
        "1 1 2 3 4 4 4 5 5",
        id="failed attempts count for what they attempt",
    ),
    pytest.param(
        [LISTING, PLAN, LOAD, PILOT, BATCH, RESUME, VERIFY, SUBMIT],
        "1 1 2 3 4 4 5 5",
        id="missing cases run again",
    ),
    pytest.param(
        [LISTING, PLAN, LOAD, PILOT, BATCH, PLAUSIBLE, VERIFY, SUBMIT],
        "1 1 2 3 4 5 5 5",
        id="a look after the batch without a re-run is hand-over",
    ),
    pytest.param(
        [LISTING, PLAN, LOAD, PILOT, BATCH, VERIFY, BATCH, VERIFY, SUBMIT],
        "1 1 2 3 4 4 4 5 5",
        id="a check that leads to a re-run is inference",
    ),
    pytest.param(
        [LISTING, PLAN, LOAD, PLAN, PILOT, BATCH, SUBMIT],
        "1 1 2 1 3 4 5",
        id="a plan revised after setup is planning",
    ),
    pytest.param(
        [LISTING, PLAN, INSTALL, INSTALL, LOAD, INSTALL, LOAD], "1 1 2 2 2 2 2", id="died in setup"
    ),
    pytest.param(
        [LISTING, PLAN, LOAD, PILOT, BATCH, "All eight cases are denoised."],
        "1 1 2 3 4 5",
        id="closing message",
    ),
    pytest.param(
        [LISTING, PLAN, LOAD, PILOT, (BATCH[0], COMMENT + BATCH[1], BATCH[2]), VERIFY, SUBMIT],
        "1 1 2 3 4 5 5",
        id="a comment does not override what the code does",
    ),
    pytest.param(
        [LISTING, PLAN, ("python", "# S2: open the case\n" + LOOK[1], ""), PILOT, BATCH, SUBMIT],
        "1 1 2 3 4 5",
        id="data after the plan are looked at for the model",
    ),
    pytest.param(
        [
            LISTING,
            PLAN,
            OPTIONS,
            ("bash", "python /workspace/go.py --cases case_0001", ""),
            ("bash", "python /workspace/go.py", ""),
            SUBMIT,
        ],
        "1 1 2 3 4 5",
        id="help, one case, everything",
    ),
    pytest.param(
        [
            LISTING,
            PLAN,
            TOOL_HELP,
            (TOOL_ONE[0], "# S4 inference\n" + TOOL_ONE[1], ""),
            TOOL_ALL,
            SUBMIT,
        ],
        "1 1 2 3 4 5",
        id="one case is a pilot, whatever the comment says",
    ),
    pytest.param(
        [LISTING, PLAN, ENVIRONMENT, OWN, OWN_PILOT, OWN_BATCH, VERIFY, SUBMIT],
        "1 1 2 2 3 4 5 5",
        id="own method: pilot, batch",
    ),
    pytest.param(
        [LISTING, PLAN, LOAD, PILOT, BATCH, NOTED, VERIFY, VERIFY, SUBMIT],
        "1 1 2 3 4 1 5 5 5",
        id="results noted in the plan, hand-over still to come",
    ),
    pytest.param(
        [
            LISTING,
            PLAN,
            LOAD,
            PILOT,
            ("bash", "nohup python /workspace/all.py > all.log 2>&1 &", ""),
            BATCH,
            ("bash", "sleep 60; tail -n 3 /workspace/all.log", ""),
            SUBMIT,
        ],
        "1 1 2 3 4 4 4 5",
        id="watching progress",
    ),
]


@pytest.mark.parametrize(("turns", "stages"), STORIES)
def test_stories(tmp_path: Path, turns: list, stages: str) -> None:
    segmentation = segment(make_run(tmp_path, *turns), explain=True)
    signals = [
        [f"{s.name}:{s.stage}{s.weight:+.1f}" for s in reasons] for reasons in segmentation.signals
    ]
    assert " ".join(stage[1] for stage in segmentation.turn_stages) == stages, signals


TODO = {"content": "do it", "status": "pending", "activeForm": "doing"}


def claude_turn(name: str, **arguments: object) -> dict:
    return {
        "type": "function",
        "id": name,
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }


def test_other_agents_tools(tmp_path: Path) -> None:
    """To-do lists are planning, even between other work; the finished list after the main run
    closes it."""
    calls = [
        claude_turn("TodoWrite", todos=[TODO]),
        claude_turn("Read", file_path="/app/README.md"),
        claude_turn(
            "Write",
            file_path="/app/train.py",
            content="import torch\nloss.backward()\nopt.step()\n",
        ),
        claude_turn("TodoWrite", todos=[TODO]),
        claude_turn("Write", file_path="/app/net.py", content="import torch\nclass Net: pass\n"),
        claude_turn("Bash", command="pip install torch"),
        claude_turn("Bash", command="python train.py"),
        claude_turn("Bash", command="ls -la /app/model"),
        claude_turn("TodoWrite", todos=[{**TODO, "status": "completed"}]),
    ]
    messages: list[dict] = [{"role": "user", "content": "Train a model."}]
    for call in calls:
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": "ok"},
        ]
    messages.append({"role": "assistant", "content": "The model is trained."})
    path = tmp_path / "conversation.json"
    path.write_text(json.dumps({"messages": messages}))
    stages = segment(load_run(path)).turn_stages
    assert " ".join(s[1] for s in stages) == "1 1 2 1 2 2 4 5 5 5"


def _gold(name: str, folder: Path = RECORDED / "labels" / "gold") -> dict[str, str]:
    return json.loads((folder / f"{name}.json").read_text())["stages"]


LOOKS = [
    pytest.param("nvidia-smi; free -m; df -h", True, id="a chain of looks"),
    pytest.param('echo "cpus: $(nproc)"; date; whoami', True, id="a look inside words"),
    pytest.param("sudo timeout 5 /usr/bin/lscpu", True, id="started by another program"),
    pytest.param("find . -name '*.tmp' -delete", False, id="find deletes"),
    pytest.param("ls; python train.py", False, id="work beside a look"),
    pytest.param("env CUDA_VISIBLE_DEVICES=0 python run.py", False, id="env starts a program"),
    pytest.param("nvidia-smi; echo $(python run.py)", False, id="work inside words"),
    pytest.param("ls /workspace/agents_outputs | wc -l", False, id="what was delivered"),
]


@pytest.mark.parametrize(("command", "neutral"), LOOKS)
def test_looks_at_the_machine_are_told_from_work(
    tmp_path: Path, command: str, neutral: bool
) -> None:
    assert features(make_run(tmp_path, LISTING, ("bash", command, "")))[1].asks_machine is neutral


def test_a_look_takes_the_stage_around_it(tmp_path: Path) -> None:
    """Inside a stage it belongs to it; between two it is what it is by itself: setup, before a
    pilot."""
    look = ("bash", "nvidia-smi; pip list", "")
    run = make_run(
        tmp_path,
        look,
        LISTING,
        look,
        PLAN,
        look,
        PILOT,
        look,
        PILOT,
        BATCH,
        look,
        BATCH,
        VERIFY,
        look,
        SUBMIT,
    )
    segmentation = segment(run)
    assert " ".join(stage[1] for stage in segmentation.turn_stages) == "1 1 1 1 2 3 3 3 4 4 4 5 5 5"
    assert segmentation.confidence[6] == min(segmentation.confidence[5], segmentation.confidence[7])
    assert set(segment(make_run(tmp_path / "only", look, look)).turn_stages) <= {"S1", "S2"}


def _at_real_size(run: Run, looks: int) -> Run:
    """Log noise before every output and `looks` looks at the machine after every turn but the
    last."""
    rng = random.Random(run.id)
    noise = "".join(
        f"{i:3d}%|{'█' * (i % 9):9}| {i}/100 [00:01<00:02]\rDEBUG pool-{i} reused\nCollecting"
        f" numpy>=1.{i}\n"
        for i in range(60)
    )
    turns = []
    for turn in run.turns:
        actions = tuple(
            (
                a.model_copy(
                    update={
                        "observation": a.observation.model_copy(
                            update={"stdout": noise + a.observation.stdout}
                        )
                    }
                )
                if a.observation is not None
                else a
            )
            for a in turn.actions
        )
        turns.append(turn.model_copy(update={"actions": actions, "index": len(turns) + 1}))
        for _ in range(looks if turn is not run.turns[-1] else 0):
            code = rng.choice([p.values[0] for p in LOOKS if p.values[1]])
            observation = Observation(exit_code=0, stdout=noise, kind="ok")
            look = Action(
                tool="execute_code",
                kind="execute",
                language="bash",
                code=code,
                observation=observation,
            )
            turns.append(Turn(index=len(turns) + 1, text="", actions=(look,)))
    return run.model_copy(update={"turns": tuple(turns)})


@pytest.mark.parametrize("looks", [1, 4])
def test_the_size_of_a_run_leaves_its_stages(looks: int) -> None:
    for folder in sorted((RECORDED / "runs").iterdir())[::2]:
        run = load_run(folder)
        large = segment(_at_real_size(run, looks))
        assert large.turn_stages[:: looks + 1] == segment(run).turn_stages, folder.name


def test_recorded_runs_without_words_and_comments(tmp_path: Path) -> None:
    """The code alone must carry the segmentation: messages emptied, stage comments taken out."""
    pairs = []
    for folder in sorted((RECORDED / "runs").iterdir()):
        run = load_run(folder)
        turns = []
        for turn in run.turns:
            actions = tuple(
                a.model_copy(
                    update={
                        "code": "\n".join(x for x in a.code.split("\n") if not x.startswith("# S"))
                    }
                )
                for a in turn.actions
            )
            turns.append(
                turn.model_copy(update={"text": "." if turn.text else "", "actions": actions})
            )
        gold = _gold(folder.name)
        stages = segment(run.model_copy(update={"turns": tuple(turns)})).turn_stages
        pairs += [(gold[str(i)], stage) for i, stage in enumerate(stages, 1)]
    assert sum(g == p for g, p in pairs) / len(pairs) >= 0.88


TURNS = st.lists(
    st.sampled_from(
        [
            LISTING,
            LOOK,
            PLAN,
            ENVIRONMENT,
            INSTALL,
            LOAD,
            MODULE,
            PILOT,
            PILOT_SAVED,
            BATCH,
            FAILED_BATCH,
            VERIFY,
            SUBMIT,
            "Now what?",
        ]
    ),
    min_size=1,
    max_size=12,
)


@given(turns=TURNS)
@settings(max_examples=60, deadline=None)
def test_properties(turns: list, tmp_path_factory: pytest.TempPathFactory) -> None:
    run = make_run(tmp_path_factory.mktemp("run"), *turns)
    segmentation = segment(run, explain=True)
    n = len(run.turns)
    assert (
        len(segmentation.turn_stages)
        == len(segmentation.confidence)
        == len(segmentation.signals)
        == n
    )
    assert set(segmentation.turn_stages) <= set(STAGES)
    assert all(0 < c <= 1 for c in segmentation.confidence)
    covered = [i for s in segmentation.segments for i in range(s.first_turn, s.last_turn + 1)]
    assert covered == list(range(1, n + 1))
    assert all(
        segmentation.turn_stages[i - 1] == s.stage
        for s in segmentation.segments
        for i in (s.first_turn, s.last_turn)
    )
    assert all(
        a.stage != b.stage
        for a, b in zip(segmentation.segments, segmentation.segments[1:], strict=False)
    )
    assert segmentation == segment(run, explain=True)
    assert segment(run).turn_stages == segmentation.turn_stages
    assert segment(run).signals == ()


def test_reasons_are_named_and_quoted(tmp_path: Path) -> None:
    segmentation = segment(make_run(tmp_path, LISTING, PLAN, INSTALL, BATCH, SUBMIT), explain=True)
    reasons = {s.name: s for s in segmentation.signals[2]}
    assert reasons["installs_packages"].stage == "S2"
    assert reasons["installs_packages"].quote == "pip install monai"
    assert any(s.name == "full_run" and s.stage == "S4" for s in segmentation.signals[3])


def test_every_reason_quotes_its_own_turn() -> None:
    for folder in sorted((RECORDED / "runs").iterdir())[:4]:
        run = load_run(folder)
        for turn, reasons in zip(run.turns, segment(run, explain=True).signals, strict=True):
            assert all(s.weight > 0 and s.stage in STAGES for s in reasons)
            assert len(reasons) == len({(s.name, s.stage) for s in reasons})
            for s in (
                s
                for s in reasons
                if s.name in ("installs_packages", "says_S3", "checks_environment")
            ):
                assert s.quote in f"{turn.code}\n{turn.text}"


def test_a_thousand_turns(tmp_path: Path, no_runaway) -> None:
    rng = random.Random(1)
    run = make_run(
        tmp_path,
        *(rng.choice([LOOK, PLAN, INSTALL, MODULE, PILOT, BATCH, VERIFY]) for _ in range(1_000)),
    )
    with no_runaway():
        assert len(segment(run).turn_stages) == 1_000


@pytest.mark.parametrize(
    "text",
    ["plan " * 400_000, "a" * 2_000_000, "# S1 " * 300_000, "all " * 500_000],
    ids=["plan", "line", "comments", "all"],
)
def test_hostile_text_stays_fast(tmp_path: Path, text: str, no_runaway) -> None:
    run = make_run(tmp_path, ("python", text, text), ("bash", f"echo {text}", text), text=text)
    with no_runaway():
        assert len(segment(run).turn_stages) == 2
