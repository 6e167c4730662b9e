"""What a pilot showed, in other hands: own helper functions, tables, excerpts, parse functions, methods that gave way.

Each case is a small run in which one kind of evidence occurs, or almost occurs, and the value that a reader gives it.
"""

import sys
from pathlib import Path

import pytest
from ambjudge.judge.base import Request
from ambjudge.judge.heuristic import HeuristicJudge
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.models import Segmentation

sys.path.insert(0, str(Path(__file__).parent))
from small_runs import Do, make_run, module, plan, sh

IDS = [f"case_{i:03d}" for i in range(1, 9)]
LIST = sh("ls /data/public /data/models", "\n".join([*IDS, "models", "net.pt"]))
NET = "import sys, torch, numpy as np, nibabel as nib\nfrom nets import UNet\nnet = UNet(); net.load_state_dict(torch.load('/data/models/net.pt')); net.eval()\n"
SEG = (
    NET
    + "def run(cid):\n    im = nib.load(f'/data/public/{cid}/ct.nii.gz')\n    x = im.get_fdata().reshape(im.shape[0], -1)\n    with torch.no_grad():\n        return im, net(torch.from_numpy(x)).argmax(1)[0].numpy()\n"
)
SEG_ALL = Do(
    "from seg import run\nimport os, nibabel as nib\nfor cid in sorted(os.listdir('/data/public')):\n    im, m = run(cid)\n    nib.save(nib.Nifti1Image(m, im.affine), f'/workspace/agents_outputs/{cid}/lesion.nii.gz')\n    print(cid, 'saved')\n",
    "\n".join(f"{i} saved" for i in IDS),
)
SYN_ALL = Do(SEG_ALL.code.replace("lesion.nii", "sct.nii"), SEG_ALL.out)
CLS = (
    "import torch, numpy as np\nfrom PIL import Image\nL = ['benign', 'malignant', 'normal']\nnet = torch.load('/data/models/net.pt'); net.eval()\n"
    "def pixels(c):\n    return np.asarray(Image.open(f'/data/public/{c}/image.png')) / 255\n"
    "def predict(c):\n    a = pixels(c)\n    with torch.no_grad(): q = torch.softmax(net(torch.from_numpy(a)[None]), 1)[0].numpy()\n    return a, q\n"
)
CLS_ALL = Do(
    "import csv, os\nfrom cls import predict, L\nrows = [(c, L[predict(c)[1].argmax()]) for c in sorted(os.listdir('/data/public'))]\n"
    "csv.writer(open('/workspace/agents_outputs/predictions.csv', 'w')).writerows(rows)\nprint('rows', len(rows))",
    "rows 8",
)
DET = (
    "import torch\nfrom nets import Det\nnet = Det(); net.load_state_dict(torch.load('/data/models/net.pt')); net.eval()\n"
    "def detect(c):\n    from PIL import Image\n    im = Image.open(f'/data/public/{c}/image.png')\n    with torch.no_grad(): o = net(prep(im))\n    return im, decode(o)\n"
)
DET_ALL = Do(
    "import os, json\nfrom det import detect\nfor c in sorted(os.listdir('/data/public')):\n    json.dump({'boxes': detect(c)[1]}, open(f'/workspace/agents_outputs/{c}/prediction.json', 'w'))\nprint('written')",
    "written",
)
FILTERS = "import numpy as np\ndef load(p):\n    return np.load(p)\ndef nlm(x, h):\n    out = np.zeros_like(x)\n    for s in range(5):\n        out += np.roll(x, s, 0) / 5\n    return out\n"
ENH_ALL = Do(
    "import os, numpy as np\nfrom filters import load, nlm\nfor c in sorted(os.listdir('/data/public')):\n    np.save(f'/workspace/agents_outputs/{c}/enhanced.npy', nlm(load(f'/data/public/{c}/ldct.npy'), 0.1))\nprint('all')",
    "all",
)
ENH_NET = Do(
    "import torch, numpy as np\nfrom nets import DnCNN\nnet = DnCNN(); net.load_state_dict(torch.load('/data/models/net.pt')); net.eval()\na = np.load('/data/public/case_001/ldct.npy')\n"
    "with torch.no_grad(): y = net(torch.from_numpy(a)[None, None])\nprint('mean of result', float(y.mean()))",
    "mean of result 2.1",
)
ENH_NET_OK = Do(ENH_NET.code.replace("'mean of result', float(y.mean())", "'ok'"), "ok")
LOOP = "\nfor name, y in (('input', x), ('nlm', nlm(x, 0.1))):\n    report(name, y)\n"
THRESHOLD_ALL = Do(
    "import os, nibabel as nib\nfrom blob import lesions\nfor c in sorted(os.listdir('/data/public')):\n    im, m = lesions(c)\n    nib.save(nib.Nifti1Image(m, im.affine), f'/workspace/agents_outputs/{c}/lesion.nii.gz')\nprint('finished')",
    "finished",
)
BLOB = (
    "import numpy as np, nibabel as nib\ndef read(c):\n    return nib.load(f'/data/public/{c}/ct.nii.gz')\n"
    "def lesions(c):\n    im = read(c); a = im.get_fdata()\n    return im, (a > 90).astype('uint8')\n"
)
DUMMY_NET = Do(NET + "print(net(torch.rand(1, 1, 8, 8)).shape)", "torch.Size([1, 3, 8, 8])")
RULES = "import numpy as np\nfrom PIL import Image\ndef decide(c):\n    a = np.asarray(Image.open(f'/data/public/{c}/image.png')) / 255\n    s = np.array([a[..., 0].mean(), a[..., 1].mean(), a[..., 2].mean()]); return L[s.argmax()], s / s.sum()\nL = ['benign', 'malignant', 'normal']\n"
RULES_ALL = Do(
    "import csv, os\nfrom rules import decide\ncsv.writer(open('/workspace/agents_outputs/predictions.csv', 'w')).writerows((c, decide(c)[0]) for c in sorted(os.listdir('/data/public')))\nprint('rows')",
    "rows",
)
CLS_NET = Do(CLS + "a, q = predict('case_001')\nprint('done')", "done")

VQA = (
    "import json\nfrom PIL import Image\nfrom qamodel import Model\nM = Model.from_pretrained('/data/models/net.pt')\n"
    "def load(c):\n    q = json.load(open(f'/data/public/{c}/question.json'))\n    return q, Image.open(f'/data/public/{c}/{q[\"image\"]}')\n"
)
VQA_ALL = Do(
    VQA
    + "import os\nfor c in sorted(os.listdir('/data/public')):\n    q, im = load(c); s = M.generate(im, q['question'])\n    json.dump({'raw_model_output': s, 'predicted_label': pick(s, q)}, open(f'/workspace/agents_outputs/{c}/answer.json', 'w'))\nprint('all answered')",
    "all answered",
)
ASK = (
    VQA
    + "def pick(s, o):\n    for k in o:\n        if o[k].lower() in s.lower():\n            return k\n    return None\n"
    "def ask(c):\n    q, im = load(c)\n    s = M.generate(im, q['question'])\n    return {'id': c, 'letter': pick(s, q['options']), 'sentence': s}\n"
)

RG = (
    "import json, sys, os, numpy as np\nfrom PIL import Image\nfrom repnet import Rep\nM = Rep.from_pretrained('/data/models/net.pt')\n"
    "def entry(c):\n    return json.load(open(f'/data/public/{c}/manifest.json'))['images']\n"
)
RG_ALL = Do(
    "import os\nfrom rep import *\nfor c in sorted(os.listdir('/data/public')):\n    views = [np.asarray(Image.open(f'/data/public/{c}/{e}')) for e in entry(c)]\n    open(f'/workspace/agents_outputs/{c}/report.txt', 'w').write(M.generate(views))\nprint('reports written')",
    "reports written",
)
RG_ONE = "from rep import *\nc = 'case_001'\nman = json.load(open(f'/data/public/{c}/manifest.json'))\nlisted = man['images']\nviews = [np.asarray(Image.open(f'/data/public/{c}/{e}')) for e in listed]\ntext = M.generate(views)\nopen(f'/workspace/agents_outputs/{c}/report.txt', 'w').write(text)\n"
TEXT = "The lungs are clear. No pleural effusion."
SHOW_QUESTION = "import json, glob\nfor f in sorted(glob.glob('/data/public/case_*/question.json')):\n    q = json.load(open(f))\n    "
PLAN_QUESTIONS = "Model net.pt; question.json has question and options; map the sentence to the option letter."


def seg(text, out):
    return [LIST, module("seg.py", SEG), Do("from seg import *\n" + text, out), SEG_ALL]


def syn(text, out):
    return [LIST, module("seg.py", SEG), Do("from seg import *\n" + text, out), SYN_ALL]


def cls(text, out):
    return [LIST, module("cls.py", CLS), Do("from cls import *\n" + text, out), CLS_ALL]


def det(text, out):
    return [LIST, module("det.py", DET), Do("from det import *\n" + text, out), DET_ALL]


def vqa(text, out, source=VQA):
    return [LIST, module("qa.py", source), Do("from qa import *\n" + text, out), VQA_ALL]


def rg(text, out):
    return [LIST, module("rep.py", RG), Do(text, out), RG_ALL]


def asked(line, out):
    return [
        LIST,
        Do(SHOW_QUESTION + line, out),
        plan(PLAN_QUESTIONS),
        *vqa("print(M.generate(*load('case_001')))", "The left side.")[1:],
    ]


NLM_SHOW = (
    "from filters import *\nimport numpy as np\nx = load('/data/public/case_001/ldct.npy')\ndef report(name, y):\n    print(f'{name:8} sd {y[:9, :9].std():.3f} range {y.min():.2f}..{y.max():.2f} {y.shape}')\n"
    + LOOP
)
SUMMARY = "def summary(m):\n    d = {'shape': m.shape}\n    d['voxels'] = int((m > 0).sum())\n    return d\n"
CASES = [
    # A. what is printed comes out of a helper, a table or a variable
    pytest.param("segmentation", seg(SUMMARY + "im, m = run('case_001')\nprint(summary(m))", "{'shape': (64, 64, 20), 'voxels': 1532}"), {"S3": 1}, id="helper-returns-dict"),
    pytest.param("segmentation", seg("import pandas as pd\nrows = []\nfor c in ('case_001', 'case_002'):\n    im, m = run(c)\n    rows.append((c, m.shape, int(m.sum())))\ndf = pd.DataFrame(rows)\nprint(df)", "0 case_001 (64, 64, 20) 1532\n1 case_002 (64, 64, 22) 12"), {"S3": 1}, id="rows-in-a-table"),
    pytest.param("segmentation", seg("def check(m):\n    return 'ok' if m is not None else 'empty'\nim, m = run('case_001')\nprint(check(m))", "ok"), {"S3": 0}, id="helper-says-ok"),
    pytest.param("synthesis", syn("import logging\nim, y = run('case_001')\nlo, hi, mu = float(y.min()), float(y.max()), y[y > -900].mean()\nmessage = f'{y.shape} {lo} to {hi}, tissue {mu}'\nlogging.info(message)", "INFO (64, 64, 20) -1000.0 to 1450.0, tissue 12.1"), {"S3": 1}, id="numbers-in-variables-and-a-log-line"),
    pytest.param("segmentation", seg("im, m = run('case_001')\nprint('done case_001')", "done case_001"), {"S3": 0}, id="shapes-used-but-not-shown"),
    pytest.param("segmentation", seg("im, m = run('case_001')\nnp.save('/workspace/m.npy', m)\nfiles = os.listdir('/workspace')\nprint(len(files))", "3"), {"S3": 0.5}, id="files-counted"),
    # B. the values themselves stand in the output
    pytest.param("segmentation", seg("im, m = run('case_001')\nprint(m.shape)\nfor y in range(0, 64, 8):\n    print(''.join('.#'[int(v)] for v in m[y, ::4, 10]))", "(64, 64, 20)\n................\n................\n....####........\n...######.......\n...#####........\n................\n................\n................"), {"S3": 1}, id="downsampled-view"),
    pytest.param("classification", cls("for c in ('case_001', 'case_002'):\n    a, q = predict(c)\n    print(c, L[q.argmax()], q.round(2))", "case_001 benign [0.97 0.02 0.01]\ncase_002 malignant [0.1 0.9 0. ]"), {"S3": 1}, id="vector-of-probabilities"),
    pytest.param("classification", cls("for c in ('case_001', 'case_002'):\n    a, q = predict(c)\n    print(c, L[q.argmax()], a.mean((0, 1)).round(2))", "case_001 benign [0.7  0.4  0.24]\ncase_002 malignant [0.66 0.37 0.22]"), {"S3": 0.5}, id="colours-are-no-probabilities"),
    pytest.param("detection", det("im, found = detect('case_001')\nfor b in found: print(f\"{b['class']} {b['score']:.2f} box {b['x1']:.1f} {b['y1']:.1f} {b['x2']:.1f} {b['y2']:.1f}\")", "solid 0.91 box 12.5 30.0 80.1 99.0"), {"S3": 1}, id="box-written-with-spaces"),
    pytest.param("detection", det("im, found = detect('case_001')\nprint('boxes', len(found), 'image', im.size)", "boxes 5 image (640, 480)"), {"S3": 0.5}, id="boxes-counted-beside-a-size"),
    pytest.param("segmentation-multiclass", seg("im, m = run('case_001')\nv, n = np.unique(m, return_counts=True)\ntable = dict(zip(v.tolist(), n.tolist()))\nprint(m.shape == im.shape, table)", "True {0: 80000, 1: 900, 2: 80, 3: 60}"), {"S3": 1}, id="label-table-in-a-dict"),
    # C. a classical method is piloted in a run that had tried a learned model
    pytest.param("enhancement", [LIST, ENH_NET, module("filters.py", FILTERS), Do(NLM_SHOW, "input    sd 0.247 range 0.00..4.38 (96, 96)\nnlm      sd 0.102 range 0.00..4.30 (96, 96)"), ENH_ALL], {"S3": 1}, id="filter-piloted-after-a-network"),
    pytest.param("enhancement", [LIST, ENH_NET_OK, module("filters.py", FILTERS), ENH_ALL], {"S3": 0}, id="filter-unpiloted-and-a-network-that-only-ran"),
    pytest.param("segmentation", [LIST, DUMMY_NET, module("blob.py", BLOB), Do("from blob import *\nim, m = lesions('case_001')\nprint(m.shape, int(m.sum()))", "(64, 64, 20) 412"), THRESHOLD_ALL], {"S3": 1}, id="threshold-piloted-after-a-network"),
    pytest.param("segmentation", [LIST, DUMMY_NET, module("blob.py", BLOB), Do("from blob import *\na = read('case_001').get_fdata()\nprint(a.shape, a.max())", "(64, 64, 20) 900.0"), THRESHOLD_ALL], {"S3": 0}, id="only-the-reader-was-tried"),
    pytest.param("segmentation", [LIST, Do("import nibabel as nib\nfrom scipy import ndimage as ndi\na = nib.load('/data/public/case_001/ct.nii.gz').get_fdata()\nl, n = ndi.label(a > 0)\nprint(a.shape, n)", "(64, 64, 20) 3"), module("seg.py", SEG), SEG_ALL], {"S3": 0}, id="components-of-the-input-are-no-pilot"),
    pytest.param("classification", [LIST, CLS_NET, module("rules.py", RULES), Do("from rules import *\nfor c in ('case_001', 'case_002'): print(c, *decide(c))", "case_001 benign [0.5 0.3 0.2]\ncase_002 normal [0.1 0.2 0.7]"), RULES_ALL], {"S3": 1}, id="rules-piloted-after-a-network"),
    # D. raw output beside the parsed answer
    pytest.param("vqa", vqa("for c in ('case_001', 'case_002'): print(ask(c))", "{'id': 'case_001', 'letter': 'A', 'sentence': 'It lies on the left.'}\n{'id': 'case_002', 'letter': 'B', 'sentence': 'Right.'}", ASK), {"S3": 1}, id="own-function-returns-both"),
    pytest.param("vqa", vqa("q, im = load('case_001')\ns = M.generate(im, q['question'])\nbest = None\nfor k, v in q['options'].items():\n    if v in s: best = k\nprint(s, best)", "It lies on the left side. A"), {"S3": 1}, id="letter-found-in-a-loop"),
    pytest.param("vqa", vqa("q, im = load('case_001')\ns = M.generate(im, q['question'])\nshort = s.split(':')[-1].strip()\nprint(f'{s!r} / {short!r}')", "'Sentence: left' / 'left'"), {"S3": 1}, id="cut-with-a-string-method"),
    pytest.param("vqa", vqa("for c in ('case_001', 'case_002'): print(c, ask(c)['letter'])", "case_001 A\ncase_002 B", ASK), {"S3": 0.5}, id="letters-alone"),
    pytest.param("vqa", vqa("q, im = load('case_001')\ns = M.generate(im, q['question'])\nprint('case_001:', s)", "case_001: It lies on the left side."), {"S3": 0.5}, id="sentence-alone"),
    pytest.param("vqa", vqa("q, im = load('case_001')\ns = M.generate(im, q['question'])\nprint(len(s))", "21"), {"S3": 0.2}, id="length-of-the-sentence"),
    pytest.param("vqa", vqa("table = [tuple(ask(c).values()) for c in ('case_001', 'case_002')]\nfor row in table: print(*row, sep='\\t')", "case_001\tA\tIt lies on the left.\ncase_002\tB\tRight.", ASK), {"S3": 1}, id="table-of-answers"),
    # E. all listed images were used
    pytest.param("report_generation", rg(RG_ONE + "print(c, len(views), 'views', text)", f"case_001 2 views {TEXT}"), {"S3f": 1}, id="views-fed-are-counted"),
    pytest.param("report_generation", rg(RG_ONE.replace("M.generate(views)", "M.generate(views[:1])").replace("views = [np.asarray(Image.open(f'/data/public/{c}/{e}')) for e in listed]", "views = [np.asarray(Image.open(f'/data/public/{c}/{listed[0]}'))]") + "print(c, len(listed), 'listed', text)", f"case_001 2 listed {TEXT}"), {"S3f": 0}, id="listed-images-counted-one-used"),
    pytest.param("report_generation", rg(RG_ONE + "used = [e for e in listed]\nprint('complete:', used == listed, text)", f"complete: True {TEXT}"), {"S3f": 1}, id="lists-compared"),
    pytest.param("report_generation", rg(RG_ONE + "used = listed[:1]\nprint('complete:', used == listed, text)", f"complete: False {TEXT}"), {"S3f": 0}, id="lists-differ"),
    pytest.param("report_generation", rg(RG_ONE + "used = [e for e in listed]\nprint('fed', used, 'of', listed, text)", f"fed ['a.png', 'b.png'] of ['a.png', 'b.png'] {TEXT}"), {"S3f": 1}, id="same-list-twice"),
    pytest.param("report_generation", rg(RG_ONE.replace("for e in listed]", "for e in listed[:1]]") + "print('fed', listed[:1], 'of', listed, text)", f"fed ['a.png'] of ['a.png', 'b.png'] {TEXT}"), {"S3f": 0}, id="two-different-lists"),
    pytest.param("report_generation", rg(RG_ONE + "print(text)", TEXT), {"S3f": 0}, id="text-alone"),
    # F. questions shown without the names of their fields
    pytest.param("vqa", asked("print(q['question_id'], '|', q['question'], '|', list(q['options'].values()))", "case_001 | Which side? | ['left', 'right']"), {"S1c": 1, "S2a": 1}, id="question-text-printed"),
    pytest.param("vqa", asked("print(q['question_id'])", "case_001\ncase_002"), {"S1c": 0, "S2a": 0}, id="ids-printed"),
    pytest.param("vqa", asked("pass\nprint(len(f))", "44"), {"S1c": 0, "S2a": 0}, id="lengths-printed"),
    pytest.param("vqa", [LIST, sh("for d in /data/public/case_*; do jq -r '.question' $d/question.json; done", "Which side?\nHow many?"), plan(PLAN_QUESTIONS), *vqa("print(M.generate(*load('case_001')))", "The left side.")[1:]], {"S1c": 1, "S2a": 1}, id="jq-of-the-question"),
    pytest.param("vqa", asked("text, kinds = q['question'], ' / '.join(f'{k}={v}' for k, v in q['options'].items())\n    print(text, kinds)", "Which side? A=left / B=right"), {"S1c": 1, "S2a": 1}, id="question-through-variables"),
    pytest.param("vqa", asked("size = {'question': 1}\n    print(f[-20:])", "case_001/question.json"), {"S1c": 0}, id="names-of-files-are-no-record"),
    # G. plans of one line, side-car files
    pytest.param("segmentation", [LIST, plan("net.pt: reorient to RAS, z-score, axial slices, argmax, back to the grid, lesion = label 2, all cases")], {"S1b": 1}, id="one-line-of-steps"),
    pytest.param("segmentation", [LIST, plan("net.pt, it should work well, then we check, then we are done, hopefully")], {"S1b": 0}, id="one-line-of-hopes"),
    pytest.param("segmentation", [LIST, plan("Network: net.pt (over thresholding: brittle on this contrast; over an atlas: no registration tool).\nlesion.nii.gz per case")], {"S1d": 1}, id="chosen-over-two-with-reasons"),
    pytest.param("segmentation", [LIST, plan("Network: net.pt over thresholding. Slide over the volume (64 cubed), over all slices: see the card.")], {"S1d": 0}, id="over-the-volume-is-no-candidate"),
    pytest.param("classification", [LIST, sh("cat /data/public/case_001/info.json", '{"rows": 64, "columns": 64, "photometric": "MONOCHROME2", "bits": 8}')], {"S2b": 1}, id="form-read-from-a-side-car"),
    pytest.param("classification", [LIST, sh("cat /data/public/case_001/info.json", '{"age": 64, "view": "PA", "rows_in_table": 24}')], {"S2b": 0}, id="side-car-without-form"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "steps", "expected"), CASES)
async def test_what_was_shown_is_seen(tmp_path, kind, steps, expected):
    run, rubric, judge = (
        make_run(tmp_path, kind, steps, "Next step.", "All outputs are saved."),
        load_rubric(kind),
        HeuristicJudge(),
    )
    segmentation = Segmentation(turn_stages=("S1",) * len(run.turns), segments=())
    found = {}
    for stage in ("S1", "S2", "S3"):
        reply = await judge.judge(Request(run, segmentation, rubric, stage, rubric.criteria(stage)))
        found.update((r.id, r) for r in reply.results)
    assert {i: found[i].value for i in expected} == expected, {i: found[i].rationale for i in expected}
    for i in expected:
        assert not found[i].value or found[i].evidence
        assert all(e.check == "verified" for e in found[i].evidence)
