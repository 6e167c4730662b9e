"""Facts of turns, read from runs built as the loader reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.trajectories.features import TurnFeatures, case_ids, features
from ambjudge.trajectories.load import load_run

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
LIST_CASES = "\n".join(f"case_{i:04d}" for i in range(1, 9))
HEAD = "import sys, glob, torch, numpy as np, nibabel as nib\nfrom nets import Net\nm = Net(); m.load_state_dict(torch.load('/data/public/models/w.pt')); m.eval()\n"
OUT = "/workspace/agents_outputs"
PREDICT = "    with torch.no_grad(): y = m(torch.from_numpy(nib.load(f'/data/public/{c}/ct.nii.gz').get_fdata()))\n"
SAVE = f"    nib.save(nib.Nifti1Image(y, None), f'{OUT}/{{c}}/lesion.nii.gz')\n"


def make_run(folder: Path, *turns: tuple[str, str, str] | str, task: str = "kidney-seg-task"):
    """A run of (language, code, output) turns, or plain messages; the first output lists eight cases."""
    messages: list[dict] = [{"role": "user", "content": "Segment."}]
    for i, turn in enumerate((("bash", "ls /data/public", LIST_CASES), *turns)):
        if isinstance(turn, str):
            messages.append({"role": "assistant", "content": turn})
            continue
        language, code, output = turn
        call = {"id": f"c{i}", "type": "function",
                "function": {"name": "execute_code", "arguments": json.dumps({"language": language, "code": code})}}  # fmt: skip
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        result = {"exit_code": 0, "stdout": output, "stderr": ""}
        messages.append({"role": "tool", "tool_call_id": f"c{i}", "content": json.dumps(result)})
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "conversation.json"
    path.write_text(json.dumps({"task": task, "messages": messages}))
    return load_run(path)


def facts_of(folder: Path, language: str, code: str, output: str = "", *before: tuple[str, str, str]) -> TurnFeatures:
    return features(make_run(folder, *before, (language, code, output)))[-1]


MODULE = HEAD + f"OUT = '{OUT}'\ndef predict(c):\n    c = str(c)\n" + PREDICT + "    return y\ndef save(y, c):\n" + SAVE
LOOP = f"import glob, os\nfor p in sorted(glob.glob('/data/public/case_*/ct.nii.gz')):\n    c = os.path.basename(os.path.dirname(p))\n{PREDICT}{SAVE}"

SCOPES = [
    pytest.param(HEAD + "c = 'case_0001'\nif True:\n" + PREDICT, "one", False, id="one literal case"),
    pytest.param(HEAD + "for c in ['case_0001', 'case_0002']:\n" + PREDICT, "few", False, id="two literal cases"),
    pytest.param(HEAD + LOOP, "all", True, id="glob over every case"),
    pytest.param(HEAD + LOOP.replace("ct.nii.gz'))", "ct.nii.gz'))[:2]"), "few", True, id="glob cut by a slice"),
    pytest.param(HEAD + LOOP.replace("ct.nii.gz'))", "ct.nii.gz'))[3:]"), "all", True, id="the rest of a glob"),
    pytest.param(HEAD + "for i in range(1, 9):\n    c = f'case_{i:04d}'\n" + PREDICT + SAVE, "all", True, id="range that counts every case"),
    pytest.param(HEAD + "for i in range(1, 4):\n    c = f'case_{i:04d}'\n" + PREDICT, "few", False, id="range over some cases"),
    pytest.param(HEAD + "c = 'case_0001'\nfor flip in range(8):\n" + PREDICT, "one", False, id="repetitions are no cases"),
    pytest.param(HEAD + "for name, net in [('a', m), ('b', m)]:\n    c = 'case_0001'\n" + PREDICT, "one", False, id="variants are no cases"),
    pytest.param(HEAD + "def run(c):\n" + PREDICT + "    return y\nfor p in glob.glob('/data/public/*/ct.nii.gz'):\n    run(p)\n", "all", False, id="function called in a loop"),
    pytest.param(HEAD + "def run(c):\n" + PREDICT + "    return y\n", "none", False, id="function that is never called"),
    pytest.param(HEAD + "files = glob.glob('/data/public/*/ct.nii.gz')\nX = np.stack([nib.load(f).get_fdata() for f in files])\nwith torch.no_grad(): y = m(torch.from_numpy(X))\n", "all", False, id="one pass over a stacked batch"),
    pytest.param(HEAD + "files = []\nfor f in glob.glob('/data/public/*/ct.nii.gz'):\n    files.append(f)\nfor c in files:\n" + PREDICT + SAVE, "all", True, id="list filled in a loop"),
    pytest.param(HEAD + "def load_all():\n    return sorted(glob.glob('/data/public/*/ct.nii.gz'))\nfor c in load_all():\n" + PREDICT + SAVE, "all", True, id="list from a function"),
    pytest.param(HEAD + "import json\nstudies = json.load(open('/data/public/manifest.json'))['studies']\nfor s in studies:\n    c = s['id']\n" + PREDICT + SAVE, "all", True, id="manifest entries"),
    pytest.param(HEAD + "import pandas as pd\ndf = pd.read_csv('/data/public/manifest.csv')\nfor _, r in df.iterrows():\n    c = r.id\n" + PREDICT + SAVE, "all", True, id="manifest rows"),
    pytest.param(HEAD + "from torch.utils.data import DataLoader\nds = Scans(sorted(glob.glob('/data/public/*/ct.nii.gz')))\nfor c in DataLoader(ds, batch_size=4):\n" + PREDICT + SAVE, "all", True, id="data loader"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "scope", "writes"), SCOPES)
def test_scope_is_read_from_loops(tmp_path: Path, code: str, scope: str, writes: bool) -> None:
    found = facts_of(tmp_path, "python", code)
    assert (found.cases_scope, found.writes_outputs) == (scope, writes), found
    assert found.forward_pass is (scope != "none")


SHELL = [
    pytest.param("cat > /workspace/plan/plan.md <<'EOF'\n# Plan\n1. load\n2. pilot\nEOF", {"writes_plan"}, {"writes_module", "reads_docs", "inspects_inputs"}, id="plan by here-document"),
    pytest.param("cat /workspace/plan/plan.md", {"reads_plan"}, {"writes_plan", "reads_docs"}, id="plan read"),
    pytest.param("echo '- done' >> /workspace/plan/plan.md", {"writes_plan"}, set(), id="plan appended"),
    pytest.param("ls -la /data/public; cat /data/public/models/MODEL_CARDS.md", {"lists_inputs", "reads_docs"}, {"inspects_inputs"}, id="listing and card"),
    pytest.param("find /data/public/models -name '*.md' -exec cat {} \\;", {"lists_inputs", "reads_docs"}, set(), id="cards by find"),
    pytest.param("pip install -q monai==1.3", {"installs_packages"}, {"lists_inputs"}, id="pip"),
    pytest.param("uv pip install torch", {"installs_packages"}, set(), id="uv"),
    pytest.param("nvidia-smi; python -c 'import torch; print(torch.__version__)'", {"checks_environment"}, {"forward_pass"}, id="device and version"),
    pytest.param("huggingface-cli download org/model --local-dir w", {"obtains_weights"}, set(), id="download"),
    pytest.param(f"ls {OUT} | wc -l", {"reads_outputs", "checks_outputs"}, {"writes_outputs"}, id="outputs counted"),
    pytest.param(f"cp /tmp/x.nii.gz {OUT}/case_0001/lesion.nii.gz", {"writes_outputs"}, {"reads_outputs"}, id="outputs copied"),
    pytest.param("cat > /workspace/run.py <<'EOF'\n" + HEAD + LOOP + "EOF", {"writes_module", "module_only"}, {"forward_pass", "writes_outputs", "runs_script"}, id="module written, not run"),
    pytest.param("cat > /workspace/run.py <<'EOF'\n" + HEAD + LOOP + "EOF\npython /workspace/run.py", {"writes_module", "runs_script", "forward_pass", "writes_outputs"}, {"module_only"}, id="module written and run"),
    pytest.param("python - <<'EOF'\nimport torch\nprint(torch.__version__, torch.cuda.is_available())\nEOF", {"checks_environment"}, {"writes_module"}, id="python here-document is executed"),
    pytest.param("nohup python run.py > log.txt 2>&1 &\nsleep 30; tail -n 5 run.log", {"watches_progress"}, set(), id="progress"),
    pytest.param("mkdir -p /workspace/src && cd /workspace/src", {"prepares_folders"}, set(), id="folders only"),
    pytest.param("mkdir -p x && python run.py", set(), {"prepares_folders"}, id="folders and a run"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "there", "absent"), SHELL)
def test_shell_facts(tmp_path: Path, code: str, there: set[str], absent: set[str]) -> None:
    found = facts_of(tmp_path, "bash", code)
    assert {fact for fact in there if not getattr(found, fact)} == set()
    assert {fact for fact in absent if getattr(found, fact)} == set()


PYTHON = [
    pytest.param("import nibabel as nib\ni = nib.load('/data/public/case_0001/ct.nii.gz')\nprint(i.shape, i.header.get_zooms(), i.get_fdata().min())", {"inspects_inputs", "inspects_shapes", "inspects_values"}, {"forward_pass", "reads_outputs"}, id="input looked at"),
    pytest.param(HEAD + "with torch.no_grad(): print(m(torch.zeros(1, 1, 64, 64)).shape)", {"dummy_forward", "loads_model"}, {"writes_outputs"}, id="made-up input"),
    pytest.param("import nibabel as nib, os\nfor c in os.listdir('/data/public'):\n    q = f'/workspace/agents_outputs/{c}/lesion.nii.gz'\n    assert os.path.exists(q), q\n    print(c, nib.load(q).shape)", {"reads_outputs", "checks_outputs"}, {"writes_outputs", "forward_pass"}, id="outputs checked"),
    pytest.param("loss = crit(net(x), y)\nloss.backward()\nopt.step()", {"training"}, set(), id="training"),
    pytest.param("m.train(False)", set(), {"training"}, id="mode switch is no training"),
    pytest.param("open('/workspace/plan/plan.md', 'w').write('''# Plan\n1. a\n2. b\n''')", {"writes_plan"}, {"writes_module"}, id="plan from Python"),
    pytest.param("import matplotlib.pyplot as plt\nplt.savefig('/workspace/plan/plan.png')", {"writes_plan_image"}, {"writes_plan"}, id="plan image"),
    pytest.param("from huggingface_hub import snapshot_download\nsnapshot_download('org/m')", {"obtains_weights"}, set(), id="download"),
    pytest.param("import torch\nimport numpy as np\nimport nibabel", {"imports_only"}, {"loads_model"}, id="imports"),
    pytest.param("import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pip', 'install', 'monai'])", {"installs_packages"}, set(), id="pip by subprocess"),
    pytest.param("def broken(:\n  m.load_state_dict(torch.load('w.pt'))\n  y = m.predict(x)", {"loads_model", "forward_pass"}, set(), id="code that does not parse"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "there", "absent"), PYTHON)
def test_python_facts(tmp_path: Path, code: str, there: set[str], absent: set[str]) -> None:
    found = facts_of(tmp_path, "python", code)
    assert {fact for fact in there if not getattr(found, fact)} == set()
    assert {fact for fact in absent if getattr(found, fact)} == set()


LATER = [
    pytest.param("python", "import sys; sys.path.insert(0, '/workspace')\nfrom lib import predict, save\nfor i in range(1, 9):\n    c = f'case_{i:04d}'\n    save(predict(c), c)", "all", id="imported functions"),
    pytest.param("python", "import sys; sys.path.insert(0, '/workspace')\nfrom lib import *\nsave(predict('case_0001'), 'case_0001')", "one", id="star import, one case"),
    pytest.param("bash", "for c in $(ls /data/public); do python /workspace/one.py $c; done", "all", id="shell loop over a script"),
    pytest.param("bash", "python /workspace/one.py case_0001", "one", id="script for one case"),
    pytest.param("bash", "python /workspace/one.py case_0001 case_0002 case_0003", "few", id="script for named cases"),
    pytest.param("bash", "sed 's/x/y/' /workspace/one.py > /workspace/two.py && python /workspace/two.py case_0001", "one", id="script copied with sed"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "code", "scope"), LATER)
def test_modules_of_earlier_turns_are_known(tmp_path: Path, language: str, code: str, scope: str) -> None:
    script = HEAD + "for c in sys.argv[1:]:\n" + PREDICT + SAVE
    before = ("bash", f"cat > /workspace/lib.py <<'E1'\n{MODULE}E1\ncat > /workspace/one.py <<'E2'\n{script}E2", "")
    found = facts_of(tmp_path, language, code, "", before)
    assert (found.cases_scope, found.forward_pass, found.writes_outputs, found.runs_script) == (scope, True, True, True)


def test_every_true_fact_of_code_has_a_quote_from_the_turn(tmp_path: Path) -> None:
    found = facts_of(tmp_path, "python", HEAD + LOOP)
    for fact in ("loads_model", "forward_pass", "writes_outputs", "lists_inputs"):
        assert getattr(found, fact)
        assert found.quotes[fact] in HEAD + LOOP


def test_case_ids_come_from_listings(tmp_path: Path) -> None:
    assert case_ids(make_run(tmp_path)) == tuple(LIST_CASES.split("\n"))


def test_messages_and_endings(tmp_path: Path) -> None:
    found = features(make_run(tmp_path, "Next the plan.", "All done."))
    assert [(f.message_only, f.closing_message) for f in found] == [(False, False), (True, False), (True, True)]


def test_run_without_turns_has_no_features(tmp_path: Path) -> None:
    path = tmp_path / "conversation.json"
    path.write_text(json.dumps([{"role": "user", "content": "brief"}]))
    assert features(load_run(path)) == ()


def test_features_are_deterministic_on_recorded_runs() -> None:
    for folder in sorted((RECORDED / "runs").iterdir())[:3]:
        run = load_run(folder)
        assert features(run) == features(run)
        assert [f.turn for f in features(run)] == [t.index for t in run.turns]


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
    pytest.param("python", "\n".join(f"for i{n} in glob.glob('*'):\n    g(i{n})" for n in range(5_000)), id="many loops"),
    pytest.param("python", "\x00\ud800", id="no text"),
    pytest.param("bash", "case_" * 300_000, id="ids without digits"),
    pytest.param("python", "mkdir_" + "0" * 1_500_000, id="long number"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "code"), HOSTILE)
def test_hostile_code_stays_fast(tmp_path: Path, language: str, code: str, no_runaway) -> None:
    run = make_run(tmp_path, (language, code, code[:2_000_000]))
    with no_runaway():
        assert len(features(run)) == 2
