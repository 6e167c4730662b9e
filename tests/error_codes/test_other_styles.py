"""E2, E4 and E5 in styles of other agents: prescribed names, shortages, geometry, crashes on the way, models out of reach."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from tiny_runs import SUBMIT, say

TRACE = 'Traceback (most recent call last):\n  File "/workspace/go.py", line 7, in <module>\n    x()\n{}\n'


def f(code, err, text="Hm.", language="python"):
    return say(text, code, err=TRACE.format(err), exit_code=1, language=language)


ENH = {
    "brief": "Track: enhancement. Tier: lite. OUTPUT. For every scan write /workspace/agents_outputs/<scan_id>/enhanced.npy: float32, same 2-D shape, SUV.\nTASK. Denoise 9 scans. RULES. Inference only.",
    "track": "enhancement",
    "task": "pet-task",
}
DET = {
    "brief": 'Track: detection. Tier: standard. TASK. Find cells in 7 smears.\nOUTPUT. For every smear write /workspace/agents_outputs/<smear>/prediction.json: {"boxes": [{"class","x1","y1","x2","y2","score"}]}, pixels inside the image.',
    "track": "detection",
    "task": "cell-det-task",
}
CLS = {
    "brief": "Track: classification. Tier: lite. TASK. Classify 12 films as COVID, VIRAL or NORMAL.\nOUTPUT. /workspace/agents_outputs/predictions.csv with header patient_id,label, one row per film.",
    "track": "classification",
    "task": "film-cls-task",
}
SEG = {
    "brief": "Track: segmentation. Tier: pro. TASK. Segment the prostate in 6 cases.\nOUTPUT. /workspace/agents_outputs/<case>/lesion.nii.gz, uint8, shape and affine of t2.nii.gz.",
    "track": "segmentation",
    "task": "prostate-task",
}
SYN = {
    "brief": "Track: synthesis. Tier: lite. TASK. Make CT of 5 patients.\nOUTPUT. /workspace/agents_outputs/<patient>/sct.nii.gz, HU, shape and affine of mr.nii.gz.",
    "track": "synthesis",
    "task": "mr2ct-task",
}


def loop(body, pre="import numpy as np, glob, os\n"):
    return (
        pre
        + "def main():\n    for d in sorted(glob.glob('/data/public/*/')):\n        k = os.path.basename(d[:-1])\n"
        + "".join("        " + line + "\n" for line in body.split("\n"))
        + "main()\n"
    )


LOG = "\n".join(f"scan_{i:02d} mean {1.1 + i * 0.13:.2f}" for i in range(1, 10))
enh_good = loop(
    "x = np.load(d+'lowcount.npy'); y = net(x)\nos.makedirs(f'/workspace/agents_outputs/{k}', exist_ok=True)\nnp.save(f'/workspace/agents_outputs/{k}/enhanced.npy', y.astype('float32')); print(k, 'mean', y.mean())"
)
FILES = [
    # fires
    (
        "wrong-folder-argparse",
        "other_names_written",
        [
            say(
                "All.",
                "import argparse\nap = argparse.ArgumentParser(); ap.add_argument('--dst', default='/workspace/results')\nA = ap.parse_args([])\n"
                + enh_good.replace("/workspace/agents_outputs/{k}", "{A.dst}/{k}"),
                LOG,
            ),
            say("All nine are written to results. Done."),
        ],
        "S4 S5",
        ENH,
        1,
    ),
    (
        "pandas-columns",
        "other_names_written",
        [
            say(
                "Predict.",
                "import pandas as pd\nrows = [(k, net(load(k))) for k in keys]\npd.DataFrame(rows, columns=['film', 'diagnosis']).to_csv('/workspace/agents_outputs/predictions.csv', index=False)\nprint(len(rows))",
                "12",
            ),
            SUBMIT,
        ],
        "S4 S5",
        CLS,
        1,
    ),
    (
        "json-fields",
        "other_names_written",
        [
            say(
                "Boxes.",
                loop(
                    "b = [dict(label='cell', bbox=[float(v) for v in r[:4]], confidence=float(r[4])) for r in net(load(d))]\njson.dump({'boxes': b}, open(f'/workspace/agents_outputs/{k}/prediction.json','w'))"
                ),
                "ok",
            ),
            SUBMIT,
        ],
        "S4 S5",
        DET,
        1,
    ),
    (
        "sitk-no-geometry",
        "geometry_not_carried",
        [
            say(
                "Run.",
                loop(
                    "img = sitk.ReadImage(d+'t2.nii.gz'); m = seg(sitk.GetArrayFromImage(img))\nsitk.WriteImage(sitk.GetImageFromArray(m.astype('uint8')), f'/workspace/agents_outputs/{k}/lesion.nii.gz'); print(k, m.sum())",
                    "import SimpleITK as sitk, glob, os, torch\nnet = torch.load('/data/public/models/n.pt')\n",
                ),
                LOG.replace("scan", "case"),
            ),
            SUBMIT,
        ],
        "S4 S5",
        SEG,
        1,
    ),
    (
        "counted-short",
        "shortage_shown",
        [
            say("Run.", enh_good, LOG),
            say(
                "Count.",
                "import glob\nn = len(glob.glob('/workspace/agents_outputs/*/enhanced.npy'))\nprint(f'{n}/9 scans have an output'); assert n",
                "7/9 scans have an output",
            ),
            say("Good, handing over."),
        ],
        "S4 S5 S5",
        ENH,
        1,
    ),
    (
        "left-rest",
        "unfinished_batch",
        [
            say("Run.", enh_good, LOG[:120] + "\n"),
            say(
                "Four of the patients are in agents_outputs; the remaining ones could not be processed within the limit."
            ),
        ],
        "S4 S5",
        ENH,
        1,
    ),
    # silent
    ("right-names", "other_names_written", [say("All.", enh_good, LOG), SUBMIT], "S4 S5", ENH, 0),
    (
        "csv-written-by-writer",
        "other_names_written",
        [
            say(
                "Predict.",
                "import csv\nwith open('/workspace/agents_outputs/predictions.csv','w') as fh:\n    w = csv.DictWriter(fh, ['patient_id','label']); w.writeheader()\n    for k in keys: w.writerow({'patient_id': k, 'label': net(k)})",
                "",
            ),
            SUBMIT,
        ],
        "S4 S5",
        CLS,
        0,
    ),
    (
        "sitk-copied",
        "geometry_not_carried",
        [
            say(
                "Run.",
                loop(
                    "img = sitk.ReadImage(d+'t2.nii.gz'); o = sitk.GetImageFromArray(seg(sitk.GetArrayFromImage(img)))\no.CopyInformation(img); sitk.WriteImage(o, f'/workspace/agents_outputs/{k}/lesion.nii.gz')",
                    "import SimpleITK as sitk, glob, os, torch\nnet = torch.load('/data/public/models/n.pt')\n",
                ),
                "",
            ),
            SUBMIT,
        ],
        "S4 S5",
        SEG,
        0,
    ),
    (
        "counted-full",
        "shortage_shown",
        [
            say("Run.", enh_good, LOG),
            say(
                "Count.",
                "import glob\nn = len(glob.glob('/workspace/agents_outputs/*/enhanced.npy'))\nprint(f'{n}/9 scans have an output; missing: []')",
                "9/9 scans have an output; missing: []",
            ),
            say("Done."),
        ],
        "S4 S5 S5",
        ENH,
        0,
    ),
]
CRASHES = [
    (
        "resume-log-three-crashes",
        "repeated_code_failure",
        [
            f(
                'exec(open("/workspace/go.py").read())',
                "ValueError: cannot reshape array of size 4096 into shape (64,60)",
            ),
            say(
                "Patch.",
                "s = open('/workspace/go.py').read().replace('60','64'); open('/workspace/go.py','w').write(s)",
                "",
            ),
            f('exec(open("/workspace/go.py").read())', "TypeError: 'float' object cannot be interpreted as an integer"),
            say(
                "Patch.",
                "s = open('/workspace/go.py').read().replace('/2','//2'); open('/workspace/go.py','w').write(s)",
                "",
            ),
            f('exec(open("/workspace/go.py").read())', "KeyError: 'scan_07'"),
            say("Now.", enh_good, LOG),
            SUBMIT,
        ],
        "S4 S4 S4 S4 S4 S4 S5",
        ENH,
        1,
    ),
    (
        "filler-for-crashed-cases",
        "crash_cost_outputs",
        [
            say(
                "Run.",
                loop(
                    "try:\n    y = net(np.load(d+'lowcount.npy'))\nexcept Exception as ex:\n    print(k, 'error', type(ex).__name__+':', ex); y = np.zeros((64, 64))\nnp.save(f'/workspace/agents_outputs/{k}/enhanced.npy', y); print(k, 'mean', y.mean())"
                ),
                "scan_01 mean 1.1\nscan_02 error RuntimeError: size of tensor a (63) must match b (64)\nscan_02 mean 0.0\nscan_03 mean 1.3",
            ),
            SUBMIT,
        ],
        "S4 S5",
        ENH,
        1,
    ),
    (
        "api-key-thrice",
        "repeated_access_failure",
        [
            f("client.chat('hi')", "openai.AuthenticationError: Error code: 401 - Incorrect API key provided"),
            f(
                "os.environ['OPENAI_API_KEY']='sk'; client.chat('hi')",
                "openai.AuthenticationError: Error code: 401 - Incorrect API key provided",
            ),
            f("client2.messages('hi')", "anthropic.AuthenticationError: invalid x-api-key"),
            say("A rule then.", enh_good, LOG),
            SUBMIT,
        ],
        "S2 S2 S2 S4 S5",
        ENH,
        1,
    ),
    (
        "own-module-path",
        "repeated_access_failure",
        [say("Lib.", "open('/workspace/lib/netlib.py','w').write(src)", "")]
        + [f("import netlib", "ModuleNotFoundError: No module named 'netlib'")] * 3
        + [
            say("With path.", "import sys; sys.path.insert(0,'/workspace/lib')\nimport netlib\n" + enh_good, LOG),
            SUBMIT,
        ],
        "S2 S2 S2 S2 S4 S5",
        ENH,
        0,
    ),
    (
        "retried-on-the-spot",
        "crash_cost_outputs",
        [
            say(
                "Run.",
                loop(
                    "try:\n    y = net(x)\nexcept RuntimeError as ex:\n    print(k, 'RuntimeError:', ex); y = net(pad(x))\nnp.save(f'/workspace/agents_outputs/{k}/enhanced.npy', y); print(k, 'mean', y.mean())"
                ),
                "scan_01 mean 1.1\nscan_02 RuntimeError: size 63 must be 64\nscan_02 mean 1.4\nscan_03 mean 1.3",
            ),
            SUBMIT,
        ],
        "S4 S5",
        ENH,
        0,
    ),
]
REPORT = {
    "track": "report_generation",
    "task": "cxr-report-task",
    "brief": "Track: report_generation. Tier: standard. Write /workspace/agents_outputs/<study>/report.txt for 9 studies. Any of the models in /data/public/models.",
}
RETRIEVE = "for s in sorted(os.listdir('/data/public')):\n    os.makedirs(f'/workspace/agents_outputs/{s}', exist_ok=True)\n    open(f'/workspace/agents_outputs/{s}/report.txt','w').write(bank[nearest(s)])\n"
TEXTS = "\n".join(f"study_{i} 21{i} chars" for i in range(1, 10))
MODELS = [
    (
        "tf-layer",
        "model_out_of_reach",
        [
            f(
                "m = tf.keras.models.load_model('/data/public/models/radgen.keras')",
                "ValueError: Unknown layer: 'MultiAttn'. Please ensure you are using a keras.utils.custom_object_scope",
            ),
            f(
                "m = tf.keras.models.load_model('/data/public/models/radgen.keras', compile=False, custom_objects={'MultiAttn': tf.keras.layers.Layer})",
                "TypeError: Layer.__init__() got an unexpected keyword argument 'heads'",
            ),
            f(
                "import h5py; h5py.File('/data/public/models/radgen.keras')",
                "OSError: Unable to open file (file signature not found)",
            ),
            say("radgen is not loadable in this TensorFlow; retrieval from the bank it is.", RETRIEVE, TEXTS),
            SUBMIT,
        ],
        "S2 S2 S2 S4 S5",
        REPORT,
        1,
    ),
    (
        "ollama-service",
        "model_out_of_reach",
        [
            say(
                "Pull.",
                "ollama pull medgen:7b",
                "",
                exit_code=1,
                err='Error: pull model manifest: Get "https://registry.example/v2": dial tcp: lookup registry.example: no such host',
                language="bash",
            ),
            say(
                "Mirror.",
                "curl -L -o medgen.gguf https://mirror.example/medgen-7b.gguf",
                "",
                exit_code=6,
                err="curl: (6) Could not resolve host: mirror.example",
                language="bash",
            ),
            say("medgen cannot be fetched. Retrieval instead.", RETRIEVE, TEXTS),
            SUBMIT,
        ],
        "S2 S2 S4 S5",
        REPORT,
        1,
    ),
    (
        "gpu-only-kernel",
        "model_out_of_reach",
        [
            f(
                "from cxrfast import Writer\nw = Writer('/data/public/models/cxrfast.bin').to('cuda')",
                "RuntimeError: Found no NVIDIA driver on your system.",
            ),
            f(
                "from cxrfast import Writer\nw = Writer('/data/public/models/cxrfast.bin')\nw.generate(x)",
                "RuntimeError: cxrfast kernels require CUDA; no GPU available",
            ),
            say("cxrfast needs a GPU that is not here, so I drop it and retrieve.", RETRIEVE, TEXTS),
            SUBMIT,
        ],
        "S2 S2 S4 S5",
        REPORT,
        1,
    ),
    (
        "look-then-loads-cpu",
        "model_out_of_reach",
        [
            f(
                "m = torch.load('/data/public/models/w.pt')",
                "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False",
            ),
            f(
                "m = torch.load('/data/public/models/w.pt', map_location='cuda:0')",
                "RuntimeError: Found no NVIDIA driver on your system.",
            ),
            say(
                "CPU.",
                "m = torch.load('/data/public/models/w.pt', map_location='cpu')\n"
                + RETRIEVE.replace("bank[nearest(s)]", "m.generate(s)"),
                TEXTS,
            ),
            SUBMIT,
        ],
        "S2 S2 S4 S5",
        REPORT,
        0,
    ),
    (
        "plot-library",
        "model_out_of_reach",
        [
            f(
                "import graphviz; graphviz.Digraph().render('/workspace/plan/plan')",
                "graphviz.backend.execute.ExecutableNotFound: failed to execute PosixPath('dot'), make sure the Graphviz executables are on your systems' PATH",
            ),
            say(
                "apt.",
                "apt-get install -y graphviz",
                "",
                exit_code=100,
                err="E: Unable to locate package graphviz",
                language="bash",
            ),
            say(
                "matplotlib instead, then all.",
                "m = torch.load('/data/public/models/w.pt')\n" + RETRIEVE.replace("bank[nearest(s)]", "m.generate(s)"),
                TEXTS,
            ),
            SUBMIT,
        ],
        "S1 S1 S4 S5",
        REPORT,
        0,
    ),
]


@pytest.mark.parametrize(
    ("name", "turns", "stages", "options", "count"),
    [pytest.param(*row[1:], id=row[0]) for row in FILES + CRASHES + MODELS],
)
def test_other_styles(detect, name, turns, stages, options, count):
    assert len(detect(name, turns, stages, **options)) == count
