"""What a plan chooses beside what it sets aside, candidates in running text, and starts of a script that only look."""

import json

import pytest
from ambjudge.judge.heuristic.names import candidates
from ambjudge.judge.heuristic.targets import _without_refused
from ambjudge.judge.heuristic.values import output_kinds
from ambjudge.judge.heuristic.view import View
from ambjudge.trajectories.load import load_run

KNOWN = frozenset({"spotter", "grader", "gland_v2", "gland_only"})


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("Detector: spot.pt (Spotter, boxes; Grader has none and is not used).", "spotter"),
        ("Model: gland_v2; gland_only is legacy.", "gland_v2"),
        ("Use gland_v2.pt (gland_only.pt rejected: no tumour class).", "gland_v2"),
        ("We take gland_v2. The baseline is Otsu.", "gland_v2"),
        ("1. spot.pt finds boxes - grade.pt is discarded", "spot.pt"),
        ("Spotter gives boxes, not used are thresholds (Otsu)", None),
        ("- gland_only.pt: blurs the border; not used", None),
        ("Model: gland_only.pt - rejected, no tumour", None),
        ("gland_v2.pt was tried first (12 s a case); gland_v2.pt rejected", None),
        ("Grader (whole image, not used)", None),
    ],
)
def test_only_what_is_set_aside_is_left_out(line, kept):
    found = _without_refused(line, KNOWN).lower()
    assert kept in found if kept else found == ""
    assert kept is None or not any(word in found for word in ("grade", "gland_only", "otsu"))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("## Alternatives considered\nnnU-Net (no weights here), TotalSegmentator (download needed), MedSAM (needs prompts).\n", 3),
        ("## Alternatives\n\nnnU-Net (no weights here), watershed (leaks) and\nMedSAM (needs prompts).\n\n## Steps\n", 3),
        ("Candidates\nnnU-Net has no weights; k-means on colour is blind to form; own net is chosen\n", 3),
        ("## Models considered\nUNet_big (slow). Otsu (bias field). MedSAM (prompts).\n", 3),
        ("## Comparison\nInputs (CT, 5 mm), outputs (uint8 masks), metrics (mean Dice).\n", 0),
        ("## Options\nWe load it first; then we look at all; at last it is saved\n", 0),
        ("## Steps\nnnU-Net (no weights here), TotalSegmentator (download), MedSAM (prompts).\n", 0),
        ("## Alternatives considered\nnone\n", 1),
    ],
)  # fmt: skip
def test_candidates_in_a_paragraph_under_their_heading(text, count):
    assert len(candidates(text)) == count


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (["[[2 2 2 4 4 2]", " [2 4 5 5 4 2]", " [2 4 5 5 4 2]", " [2 2 4 4 2 2]]"], True),
        (["0, 0, 1, 1, 0, 0"] * 2 + ["0, 1, 2, 2, 1, 0"] * 2, True),
        (["[[31 30 31 36 38 36]"] * 5, False),
        (["0 1 2 3 4 5 6 7 8 9"] * 5, False),
        (["1 1 1 1 1 1"] * 5, False),
        (["0 1 0 1 0 1"] * 3, False),
        (["case 1 2 2 2 2 2 2"] * 5, False),
    ],
)
def test_a_part_of_a_label_map_shows_its_labels(rows, labels):
    assert ("labels" in output_kinds("\n".join(rows))) is labels


IDS = [f"pet_{i:02d}" for i in range(1, 9)]
SCRIPT = """import argparse, glob, sys
import numpy as np, torch
from nets import Net
def load():
    net = Net(); net.load_state_dict(torch.load('/data/public/models/net.pt')); return net
def read(c):
    return np.load(f'/data/public/{c}/low.npy')
ap = argparse.ArgumentParser()
ap.add_argument('--check', action='store_true')
ap.add_argument('--fast', action='store_true')
a = ap.parse_args()
net = load()
for c in sorted(p.split('/')[3] for p in glob.glob('/data/public/pet_*/low.npy')):
    x = read(c)
    if a.check:
        print(c, x.shape, x.dtype, x.min(), x.max())
        continue
    with torch.no_grad():
        y = net(torch.from_numpy(x)[None, None])[0, 0].numpy()
    np.save(f'/workspace/agents_outputs/{c}/enhanced.npy', y)
    print(c, y.shape)
"""
WRITE = ("bash", f"cat > /workspace/go.py <<'EOF'\n{SCRIPT}EOF\n", "")
ALL = "\n".join(f"{i} (68, 68) float32 0.0 9.1" for i in IDS)
EDIT = "python - <<'EOF'\np = '/workspace/go.py'; t = open(p).read()\nt = t.replace('9', '8')\nopen(p, 'w').write(t)\nEOF\n"
HELPER = "import pathlib, numpy as np\nOUT = pathlib.Path('/workspace/agents_outputs')\ndef restore(x): return x * 2\n"
USE = "from lib import restore\nimport numpy as np\nfor c in ('pet_01', 'pet_02', 'pet_03', 'pet_04'): print(c, restore(np.load(f'/data/public/{c}/low.npy')).std())\n"


def view_of(folder, *steps):
    messages = [{"role": "user", "content": "Begin."}]
    for number, (language, code, out) in enumerate((("bash", "ls /data/public", "\n".join(IDS)), *steps)):
        call = {"name": "execute_code", "arguments": json.dumps({"language": language, "code": code})}
        messages += [
            {"role": "assistant", "content": "Next.", "tool_calls": [{"id": str(number), "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": str(number), "content": json.dumps({"exit_code": 0, "stdout": out, "stderr": ""})},
        ]  # fmt: skip
    head = {"agent": "a", "task": "pet-task", "track": "enhancement", "tier": "pro", "messages": messages}
    (folder / "conversation.json").write_text(json.dumps(head), encoding="utf-8")
    return View(load_run(folder / "conversation.json"))


@pytest.mark.parametrize(
    ("steps", "delivers"),
    [
        pytest.param([WRITE, ("bash", "python /workspace/go.py --check", ALL)], False, id="flag-of-a-look"),
        pytest.param([WRITE, ("bash", "cd /workspace && python go.py --check | head -3", ALL)], False, id="look-cut-short"),
        pytest.param([WRITE, ("bash", "python /workspace/go.py", ALL)], True, id="no-flag"),
        pytest.param([WRITE, ("bash", "python /workspace/go.py --fast", ALL)], True, id="another-flag"),
        pytest.param([WRITE, ("bash", "python /workspace/go.py --check; python /workspace/go.py", ALL)], True, id="look-and-run"),
        pytest.param([("bash", f"cat > /workspace/lib.py <<'EOF'\n{HELPER}EOF\n", ""), ("bash", f"{EDIT}cat > /workspace/pilot.py <<'EOF'\n{USE}EOF\ncd /workspace && python pilot.py", ALL)], False, id="a-script-is-edited-and-a-part-tried"),
        pytest.param([WRITE, ("bash", f"{EDIT}python /workspace/go.py", ALL)], True, id="a-script-is-edited-and-run"),
    ],
)  # fmt: skip
def test_a_start_that_only_looks_delivers_nothing(tmp_path, steps, delivers):
    view = view_of(tmp_path, *steps)
    assert view.delivers(view.steps[-1]) is delivers
