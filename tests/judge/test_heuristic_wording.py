"""The same evidence in other words: models named by class or stem, candidates without bullets, manifests that are tables,
images compared with their list, inputs shown before a later line failed.

Each case is a small run in which one kind of evidence occurs, or almost occurs, and the value that a reader gives it.
"""

import sys
from pathlib import Path

import pytest
from ambjudge.judge.base import Request
from ambjudge.judge.heuristic import HeuristicJudge
from ambjudge.judge.heuristic.names import candidates, model_names
from ambjudge.rubrics.load import load_rubric
from ambjudge.trajectories.models import Segmentation

sys.path.insert(0, str(Path(__file__).parent))
from small_runs import Do, make_run, plan, sh

IDS = [f"HP{i}" for i in range(31, 39)]
ZOO = sh(
    "ls /data/public; cat /data/public/models/MODEL_CARDS.md; sed -n 1,20p /data/public/models/hiprep.py",
    "\n".join(IDS)
    + "\n| file | class |\n| hiprep_v3.npz | HipReporter |\n| hiprep_v2_child.npz | HipReporter |\n| trigram_lm.npz | TrigramWriter, takes no image |\n| lung.npz | old |\n"
    "class HipReporter:\n    def generate(self, films):\nclass Reporter:\nclass FilmDataset:\nclass TrigramWriter:\n",
)
READ = "import csv, numpy as np\nfrom PIL import Image\nfrom hiprep import HipReporter\nM = HipReporter('/data/public/models/hiprep_v3.npz')\nman = list(csv.DictReader(open('/data/public/manifest.csv')))\n"
ALL = Do(
    READ
    + "for s in IDS:\n    films = {r['view']: np.asarray(Image.open(f\"/data/public/{s}/{r['file']}\")) for r in man if r['study'] == s}\n"
    "    open(f'/workspace/agents_outputs/{s}/report.txt', 'w').write(M.generate(films))\n    print(s)\n",
    "\n".join(IDS),
)
TEXT = "The joint space is preserved on both sides."


def rg(*steps):
    return [ZOO, *steps, ALL]


def pilot(body, out):
    return rg(Do(READ + "s = 'HP31'\nrows = [r for r in man if r['study'] == s]\n" + body, f"{out}\n{TEXT}"))


ONE = "films = {r['view']: np.asarray(Image.open(r['file'])) for r in rows}\ntext = M.generate(films)\nprint(text)\n"
LOOP = "films = {}\nfor r in rows:\n    films[r['view']] = np.asarray(Image.open(r['file']))\ntext = M.generate(films)\nprint(text)\n"
DRAWN = (
    "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nfor i, t in enumerate(['manifest.csv', '%s', 'report.txt']):\n"
    "    ax.text(i, 0, t, bbox=dict(boxstyle='round'))\n    ax.annotate('', (i, 0), (i + 1, 0), arrowprops=dict(arrowstyle='->'))\nplt.savefig('/workspace/plan/plan.png')\n"
)
LOOK = "import numpy as np, pandas as pd, glob\nfrom PIL import Image\ndef about(f):\n    a = np.asarray(Image.open(f))\n    return {'file': f[-6:], 'h': a.shape[0], 'w': a.shape[1], 'dtype': str(a.dtype), 'min': a.min(), 'max': a.max()}\n"
SEG_ALL = Do(
    "import glob, torch, nibabel as nib\nnet = torch.load('/data/models/net.pt')\nfor p in sorted(glob.glob('/data/public/*/ct.nii.gz')):\n"
    "    with torch.no_grad(): m = net(nib.load(p).get_fdata())\n    nib.save(nib.Nifti1Image(m, None), f'/workspace/agents_outputs/{p[-14:-10]}/lesion.nii.gz')\nprint('all')",
    "all",
)
NO_CV = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'cv2'"
LIST = sh("ls /data/public /data/models", "\n".join([*IDS, "net.pt"]))

EYE = "import numpy as np\nfrom PIL import Image\nim = Image.open('/data/public/HP31/image.png')\n"
CASES = [
    # the model of a plan
    pytest.param("report_generation", rg(plan("hiprep_v3 on every study, report.txt each.")), {"S1b": 1}, id="stem-of-an-array-file"),
    pytest.param("report_generation", rg(plan("The HipRep v3 weights on every study, report.txt each.")), {"S1b": 1}, id="stem-in-two-words"),
    pytest.param("report_generation", rg(plan("HipReporter reads the films, text to report.txt.")), {"S1b": 1}, id="class-of-the-zoo"),
    pytest.param("report_generation", rg(plan("A reporter turns the films of the lung and hip into report.txt.")), {"S1b": 0}, id="plain-words-of-classes-and-files"),
    pytest.param("report_generation", rg(plan("The FilmDataset gives the films, then report.txt.")), {"S1b": 0}, id="helper-class"),
    pytest.param("report_generation", rg(sh("ls HP31", "film_01.npy\nfilm_02.npy"), plan("film_01 and film_02 go in, report.txt.")), {"S1b": 0}, id="arrays-of-a-case"),
    pytest.param("report_generation", rg(plan("hiprep_v3.npz per study."), Do(DRAWN % "HipReporter\\nhiprep_v3.npz")), {"S1j": 1}, id="drawn-after-a-line-break"),
    pytest.param("report_generation", rg(plan("HipReporter per study."), Do(DRAWN % "HipReporter")), {"S1j": 1}, id="drawn-by-its-class"),
    pytest.param("report_generation", rg(plan("hiprep_v3.npz per study."), Do(DRAWN % "some network")), {"S1j": 0}, id="drawn-without-it"),
    pytest.param("report_generation", rg(sh("ls /data/public/models/hip-dictation/", "model.safetensors"), Do("from transformers import AutoModel\nm = AutoModel.from_pretrained('/data/public/models/hip-dictation')"), plan("hip-dictation on every study.")), {"S1b": 1}, id="folder-of-weights"),
    pytest.param("report_generation", rg(sh("ls /data/public/models/hip-dictation/", "model.safetensors"), plan("The model writes a text on every study.")), {"S1b": 0}, id="the-word-model"),
    # what it was weighed against
    pytest.param("report_generation", rg(plan("hiprep_v3 for all. v2 is older, the trigram model is blind.")), {"S1k": 1}, id="two-refused-by-parts-of-their-names"),
    pytest.param("report_generation", rg(plan("hiprep_v3 for all. A child is older than v3 knows.")), {"S1k": 0}, id="a-part-that-is-a-plain-word"),
    pytest.param("report_generation", rg(plan("hiprep_v3 for all, the films are old.")), {"S1k": 0}, id="old-films-refuse-nothing"),
    pytest.param("report_generation", rg(plan("hiprep_v3 because it is current; hiprep_v2_child is for children.")), {"S1k": 1}, id="two-stems-and-a-reason"),
    pytest.param("report_generation", rg(plan("hiprep_v3 because it is current.")), {"S1k": 0}, id="one-stem-and-a-reason"),
    # one line of steps
    pytest.param("enhancement", [LIST, plan("net.pt on (dB+60)/60, back to dB, save enhanced.npy for the 9 scans, submit.")], {"S1b": 1}, id="scaled-by-a-formula"),
    pytest.param("enhancement", [LIST, plan("net.pt on all, 9/9 files, then submit (no tests).")], {"S1b": 0}, id="a-count-is-no-formula"),
    # the manifest is a table
    pytest.param("report_generation", rg(Do("import pandas as pd\nfrom PIL import Image\nman = pd.read_csv('/data/public/manifest.csv')\nman['px'] = [Image.open(f'/data/public/{r.study}/{r.file}').size for r in man.itertuples()]\nprint(man.to_string())", "0 HP31 ap.png (96, 96)\n1 HP31 lat.png (96, 96)")), {"S3e": 1}, id="rows-opened-and-described"),
    pytest.param("report_generation", rg(Do("import pandas as pd\nman = pd.read_csv('/data/public/manifest.csv')\nprint(man.study.nunique())", "8")), {"S3e": 0}, id="studies-counted"),
    pytest.param("report_generation", rg(sh("grep HP31 /data/public/manifest.csv; ls -l /data/public/HP31", "HP31,ap.png\nHP31,lat.png\nap.png\nlat.png")), {"S3e": 1}, id="rows-of-the-case-beside-its-folder"),
    pytest.param("report_generation", rg(sh("cut -d, -f3 /data/public/manifest.csv | sort | uniq -c; ls -R /data/public", "10 AP\nHP31: ap.png")), {"S3e": 0}, id="a-column-counted"),
    pytest.param("report_generation", rg(Do("import pandas as pd\nman = pd.read_csv('/data/public/manifest.csv')\nprint(man.groupby('study').file.apply(list))", "HP31 [ap.png, lat.png]\nHP32 [ap.png]")), {"S3e": 1}, id="files-of-each-study-grouped"),
    # the films that went in
    pytest.param("report_generation", pilot(ONE + "print(s, sorted(films), len(rows))", "HP31 ['AP', 'LAT'] 2"), {"S3f": 1}, id="names-of-the-opened-printed"),
    pytest.param("report_generation", pilot(LOOP + "print(s, list(films))", "HP31 ['AP', 'LAT']"), {"S3f": 1}, id="opened-in-a-loop-into-a-dictionary"),
    pytest.param("report_generation", pilot(ONE.replace("in rows}", "in rows[:1]}") + "print(s, sorted(films))", "HP31 ['AP']"), {"S3f": 0}, id="only-a-part-opened"),
    pytest.param("report_generation", pilot(ONE.replace("M.generate(films)", "M.generate(films['AP'])") + "print(s, sorted(films))", "HP31 ['AP', 'LAT']"), {"S3f": 0}, id="opened-but-not-handed-over"),
    pytest.param("report_generation", pilot("films = load_films(s)\nprint(M.generate(films))\nprint('complete', set(films) == wanted)", "complete True"), {"S3e": 1, "S3f": 1}, id="set-equals-the-listed"),
    pytest.param("report_generation", pilot("films = load_films(s)\nprint(M.generate(films))\nprint('all:', len(films) == sum(r['study'] == s for r in man))", "all: True"), {"S3e": 1, "S3f": 1}, id="number-equals-the-listed"),
    pytest.param("report_generation", pilot("films = load_films(s)\nprint(M.generate(films))\nprint('two:', len(films) == 2)", "two: True"), {"S3f": 0}, id="number-equals-a-constant"),
    pytest.param("report_generation", pilot("films = load_films(s)\nprint(M.generate(films))\nprint('all:', len(films) == sum(r['study'] == s for r in man))", "all: False"), {"S3f": 0}, id="numbers-differ"),
    pytest.param("report_generation", pilot("films = load_films(s)\nprint(M.generate(films))\nprint('left out', set(wanted) - set(films))", "left out set()"), {"S3f": 1}, id="nothing-left-out"),
    pytest.param("report_generation", pilot("films = load_films(s)\nprint(M.generate(films))\nprint('left out', set(wanted) - set(films))", "left out {'LAT'}"), {"S3f": 0}, id="one-left-out"),
    pytest.param("report_generation", pilot("films = load_films(s)\nassert set(films) == {r['view'] for r in rows}\nprint(M.generate(films))", "HP31"), {"S3f": 1}, id="asserted-against-the-rows"),
    pytest.param("report_generation", pilot("films = load_films(s)\nassert set(films) == {'AP', 'LAT'}\nprint(M.generate(films))", "HP31"), {"S3f": 0}, id="asserted-against-a-constant"),
    # inputs looked at
    pytest.param("segmentation", [LIST, sh("file /data/public/HP31/image.png\npython -c 'import cv2'", "image.png: PNG image data, 128 x 128, 8-bit/color RGB", 1, NO_CV), SEG_ALL], {"S2b": 1}, id="seen-before-a-later-command-failed"),
    pytest.param("segmentation", [LIST, Do("import cv2\nfrom PIL import Image\nim = Image.open('/data/public/HP31/image.png')\nprint(im.size, im.mode)", "", 1, err=NO_CV), SEG_ALL], {"S2b": 0}, id="failed-before-anything-was-seen"),
    pytest.param("segmentation", [LIST, Do(LOOK + "print(pd.DataFrame([about(f) for f in sorted(glob.glob('/data/public/*/a.png'))]).to_string(index=False))", " file   h   w  dtype  min  max\na.png 128 128  uint8    0  255"), SEG_ALL], {"S2b": 1}, id="table-of-a-helper"),
    pytest.param("segmentation", [LIST, Do(LOOK + "print(pd.DataFrame([about(f) for f in sorted(glob.glob('/data/public/*/a.png'))]).file.to_string())", "0 a.png\n1 b.png"), SEG_ALL], {"S2b": 0}, id="table-without-sizes"),
    pytest.param("segmentation", [LIST, Do(EYE + "print(im.size)", "(128, 128)"), Do(EYE + "a = np.asarray(im)\nprint(im.mode)", "RGB"), SEG_ALL], {"S2b": 1}, id="size-and-mode-in-two-turns"),
    pytest.param("segmentation", [LIST, Do("import numpy as np\nfor c in C: print(c, np.load(f'/data/public/{c}/a.npy').shape)", "HP31 (64, 64)"), Do("a = np.load('/data/public/HP31/a.npy')\nprint(np.percentile(a, [1, 99]))", "[0. 3.]"), SEG_ALL], {"S2b": 1}, id="shapes-then-percentiles"),
    pytest.param("segmentation", [LIST, Do(EYE + "print(im.size)", "(128, 128)"), Do(EYE + "print(im.size)", "(128, 96)"), SEG_ALL], {"S2b": 0}, id="sizes-twice"),
    pytest.param("segmentation", [LIST, Do(EYE + "print(im.size)", "(128, 128)"), Do(EYE + "d = edges(im)\nprint(d.max())", "9.1"), SEG_ALL], {"S2b": 0}, id="size-and-a-range-of-something-else"),
    pytest.param("segmentation", [LIST, Do(EYE + "print(im.mode)", "RGB"), Do("import os\nprint(os.stat('/data/public/HP31/image.png').st_size)", "4100"), SEG_ALL], {"S2b": 0}, id="mode-and-bytes-of-the-file"),
    # a plan that names deliverables is no full run
    pytest.param("segmentation", [LIST, Do("open('/workspace/plan/plan.md', 'w').write('''net.pt to agents_outputs/<case>/lesion.nii.gz''')\nimport glob, nibabel as nib\nfor p in sorted(glob.glob('/data/public/*/ct.nii.gz')):\n    im = nib.load(p)\n    print(p, im.shape, im.get_data_dtype())", "\n".join(f"/data/public/{i}/ct.nii.gz (64, 64, 9) int16" for i in IDS)), SEG_ALL], {"S2b": 1, "S3": 0}, id="plan-beside-a-look-at-all-cases"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "steps", "expected"), CASES)
async def test_the_same_evidence_in_other_words(tmp_path, kind, steps, expected):
    run, rubric, judge = make_run(tmp_path, kind, steps), load_rubric(kind), HeuristicJudge()
    segmentation = Segmentation(turn_stages=("S1",) * len(run.turns), segments=())
    found = {}
    for stage in ("S1", "S2", "S3"):
        reply = await judge.judge(Request(run, segmentation, rubric, stage, rubric.criteria(stage)))
        found.update((r.id, r) for r in reply.results)
    assert {i: found[i].value for i in expected} == expected, {i: found[i].rationale for i in expected}
    assert all(e.check == "verified" for i in expected for e in found[i].evidence)


CT = "import nibabel as nib, numpy as np\ndef read(c):\n    im = nib.load(f'/data/public/{c}/ct.nii.gz')\n    return im.get_fdata(), im.header\ndef info(c):\n    a, h = read(c)\n    return {'case': c, 'shape': a.shape, 'zooms': h.get_zooms(), 'lo': a.min(), 'hi': a.max()}\ndef cut(c):\n    a, h = read(c)\n    return a > 100\n"
ROW = "(64, 64, 12)  (2.0, 2.0, 5.0)  -1000.0  1400.0"
NIFTI = "sizeof_hdr : 348\ndim        : [  3  64  64  12   1   1   1   1]\ndatatype   : int16\npixdim     : [1. 2. 2. 5. 1. 1. 1. 1.]"
SEEN = [
    pytest.param("import logging\nlog = logging.getLogger()\nfor c in C:\n    a, h = read(c)\n    log.info('%s %s %.1f %.1f', c, a.shape, a.min(), a.max())", "INFO HP31 (64, 64, 12) -1000.0 1400.0", 1, id="logged-by-position"),
    pytest.param("print(nib.load('/data/public/HP31/ct.nii.gz').header)", NIFTI, 1, id="nifti-header"),
    pytest.param("h = open('/data/public/HP31/ct.mhd').read()\nprint(h)", "NDims = 3\nDimSize = 64 64 12\nElementSpacing = 2 2 5\nElementType = MET_SHORT", 1, id="metaimage-header"),
    pytest.param("import pydicom\nprint(pydicom.dcmread('/data/public/HP31/a.dcm'))", "(0028, 0010) Rows      US: 512\n(0028, 0100) Bits Allocated   US: 16", 1, id="dicom-dump"),
    pytest.param("from tabulate import tabulate\nprint(tabulate([info(c) for c in C], headers='keys'))", f"case  shape  zooms  lo  hi\n----  -----\nHP31  {ROW}", 1, id="tabulate"),
    pytest.param("import pandas as pd\nprint(pd.DataFrame([info(c) for c in C]).to_markdown())", "|  | case | shape | zooms | lo | hi |\n|:--|--:|\n| 0 | HP31 | (64, 64, 12) | (2.0, 2.0, 5.0) | -1000 | 1400 |", 1, id="markdown-table"),
    pytest.param("import json\nfor c in C: print(json.dumps(info(c), default=str))", '{"case": "HP31", "shape": [64, 64, 12], "zooms": "(2.0, 2.0, 5.0)", "lo": -1000.0}', 1, id="json-lines"),
    pytest.param("for c in C:\n    a, h = read(c)\n    print(f\"{c} {'x'.join(map(str, a.shape))} {a.min():.0f}..{a.max():.0f}\")", "HP31 64x64x12 -1000..1400", 1, id="size-written-with-crosses"),
    pytest.param("lines = []\nfor c in C:\n    a, h = read(c)\n    lines.append(f'{c}: {a.shape}, spacing {h.get_zooms()}')\nprint('\\n'.join(lines))", f"HP31: {ROW[:30]}", 1, id="lines-joined"),
    pytest.param("for c in C:\n    a, h = read(c)\n    print(c, len(a))", "HP31 64", 0, id="length-alone"),
    pytest.param("for c in C: print(c, int(cut(c).sum()))", "HP31 6400", 0, id="voxels-of-a-mask"),
    pytest.param("import pandas as pd\nt = pd.read_csv('/data/public/labels.csv')\na, h = read('HP31')\nprint(t.shape, t.max())", "(44, 3) 12", 0, id="a-table-of-labels"),
    pytest.param("for c in C:\n    a, h = read(c)\n    print(c, 'ok')", "HP31 ok\nHP32 ok", 0, id="read-but-not-shown"),
]  # fmt: skip


@pytest.mark.parametrize(("look", "out", "wanted"), SEEN)
async def test_inputs_shown_by_helpers_and_headers(tmp_path, look, out, wanted):
    steps = [LIST, sh(f"cat > /workspace/ct.py <<'EOF'\n{CT}EOF\n"), Do(f"from ct import *\n{look}", out), SEG_ALL]
    run, rubric = make_run(tmp_path, "segmentation", steps), load_rubric("segmentation")
    segmentation = Segmentation(turn_stages=("S1",) * len(run.turns), segments=())
    reply = await HeuristicJudge().judge(Request(run, segmentation, rubric, "S2", rubric.criteria("S2")))
    assert next(r.value for r in reply.results if r.id == "S2b") == wanted


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param("methods looked at\n  gland_v2     both targets in one\n  gland_only   no tumour class here\n  fast_net     noisy per its card\nsteps\n  1 read\n", 3, id="columns"),
        pytest.param("Options\nnet_a: four classes, chosen\nnet_b: stopped early, weaker\n\nSteps follow.", 2, id="colons"),
        pytest.param("Models considered\nUNet_big - strong but slow\nOtsu - no weights needed\n", 2, id="dashes"),
        pytest.param("## Candidates\nnet_a (four classes, chosen)\nnet_b (stopped too early)\n", 2, id="brackets"),
        pytest.param("Options\ninput: 96 x 96 grey\noutput: one text file\nworkers: two of them\n", 0, id="settings"),
        pytest.param("Options\n  we looked at the cards and\n  took what they call current\n", 0, id="wrapped-sentence"),
        pytest.param("steps\n  net_a     load it first\n  net_b     load it next\n", 0, id="other-heading"),
    ],
)  # fmt: skip
def test_candidates_without_bullets(text, count):
    assert len(candidates(text)) == count


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the Gland-V2 weights", ("gland-v2",)),
        ("gland v2, all cases", ("gland v2",)),
        ("gland_v2.pt", ("gland_v2.pt", "gland_v2")),
        ("the gland, v2 of the plan", ()),
        ("gland v21", ()),
    ],
)
def test_a_stem_is_found_however_its_parts_are_joined(text, found):
    assert model_names(text, {"gland_v2"}) == found
