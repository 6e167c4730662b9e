"""A model that could not be had: tracks, tools and styles in which it shows, and the nearest innocent runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from tiny_runs import SUBMIT, say

TRACE = 'Traceback (most recent call last):\n  File "/workspace/run.py", line 3, in <module>\n    load()\n{}\n'
CASES = "import glob\nfor p in sorted(glob.glob('/data/public/patient_*/ct.nii.gz')):\n    x = load(p)\n"
SAVE = "    nib.save(y, f'/workspace/agents_outputs/{pid}/lesion.nii.gz')\n"
LOG = "\n".join(f"patient_{i:04d} tumour {400 + 37 * i}" for i in range(1, 9))
MODEL = "import torch\nnet = torch.load('/data/public/models/{}')\n"


NET = MODEL.format("net.pt")


def fail(error, code=NET, text="Again.", language="python"):
    return say(text, code, err=TRACE.format(error), exit_code=1, language=language)


def hidden(out, code, text="Look.", language="bash"):
    return say(text, code, out, language=language)


def threshold(text="No way to the network, so a threshold instead for all cases."):
    return say(text, CASES + "    y = x > 60\n" + SAVE + "    print(pid, y.sum())\n", LOG)


def other(text="All cases.", name="small.pt"):
    return say(text, MODEL.format(name) + CASES + "    y = net(x)\n" + SAVE, LOG)


CORRUPT = "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"
POINTER = "_pickle.UnpicklingError: invalid load key, 'v'."
MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 12.00 GiB"
NO_GPU = "AssertionError: Torch not compiled with CUDA enabled"
NO_PIP = "ERROR: Could not find a version that satisfies the requirement {0} (from versions: none)\nERROR: No matching distribution found for {0}"
WHEEL = "ERROR: netkit-1.2-cp38-cp38-linux_x86_64.whl is not a supported wheel on this platform."
NO_HUB = "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files."
PLAN = {"plan": "# Plan\nmodel: BigSeg (pip install bigseg), fallback threshold\n"}
FREE = {"brief": "Track: segmentation. Tier: pro. Write lesion.nii.gz for 8 cases. Choose any method."}
FIXED = "Track: {0}. Tier: lite. Write /workspace/agents_outputs/<id>/x for 8 cases.\nMETHOD. {1}\n"


def fixed(method, track="segmentation"):
    return {"brief": FIXED.format(track, method), "track": track}


KIT = {"extra": "Through netkit==1.2."}
USES = "from netkit import predict\n"

FROM_MODULE = 'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n  File "/workspace/net.py", line 4, in <module>\n    net = torch.load("/data/public/models/net.pt")\n  File "/usr/lib/python3/site-packages/torch/serialization.py", line 1568, in load\n    f(x)\n{}\n'
USE_NET = "Use net.pt from /data/public/models."
CUT = "OSError: [Errno 22] Invalid argument"


def in_module(error, code="python -c 'import net'"):
    return say("Load.", code, err=FROM_MODULE.format(error), exit_code=1, language="bash")


FIRES = [
    ("cut-file-prescribed", [fail(CUT), hidden("000000 P K 003 004", "tail -c 64 /data/public/models/net.pt | od -c"), threshold("net.pt is cut off and cannot be had; a rule.")], "S2 S2 S4", fixed(USE_NET)),
    ("module-names-it", [in_module("_pickle.UnpicklingError: Weights only load failed."), threshold("net.pt is a pointer and cannot be had; a rule.")], "S2 S4", fixed(USE_NET)),
    ("library-reader-of-weights", [in_module("KeyError: 'storages'", MODEL.format("net.pt")), threshold("net.pt cannot be opened; a rule.")], "S2 S4", fixed(USE_NET)),
    ("checkpoint-corrupt-twice", [fail(CORRUPT), fail(CORRUPT, MODEL.format("net.pt").replace(")", ", weights_only=False)")), threshold()], "S2 S2 S4", {}),
    ("pointer-then-download", [fail(POINTER), hidden("curl: (6) Could not resolve host: zoo.example", "cd /workspace; curl -O https://zoo.example/net.pt || true"), threshold()], "S2 S2 S4", {}),
    ("undeclared-other-weights", [fail(POINTER), fail(POINTER), other()], "S2 S2 S4", {}),
    ("caught-and-printed", [
        hidden(f"failed: {CORRUPT}", "import torch\ntry:\n    net = torch.load('/data/public/models/net.pt')\nexcept Exception as e:\n    print('failed:', type(e).__name__ + ':', e)\n", language="python"),
        hidden(f"failed: {CORRUPT}", "import torch\ntry:\n    net = torch.jit.load('/data/public/models/net.pt')\nexcept Exception as e:\n    print('failed:', type(e).__name__ + ':', e)\n", language="python"),
        threshold("Threshold.")], "S2 S2 S4", {}),
    ("no-gpu", [fail(NO_GPU), fail(NO_GPU, MODEL.format("net.pt") + "net.cuda()"), threshold("Threshold.")], "S2 S2 S4", {}),
    ("prescribed-once-onnx", [fail("InvalidProtobuf: [ONNXRuntimeError] : 7 : INVALID_PROTOBUF : Load model from /m/deepliver_v3.onnx failed:Protobuf parsing failed.", "import onnxruntime as ort\ns = ort.InferenceSession('/data/public/models/deepliver_v3.onnx')"), threshold("So Otsu it is.")], "S2 S4", fixed("The method is fixed: run deepliver_v3.onnx on every case.")),
    ("prescribed-once-hub", [fail(NO_HUB, "from transformers import AutoModel\nm = AutoModel.from_pretrained('lab/MedVLM-2B')"), say("Keyword rules.", "for q in qs:\n    json.dump({'answer': rule(q)}, open(f'/workspace/agents_outputs/{q}/answer.json', 'w'))\n", "done 8")], "S2 S4", fixed("Answer with MedVLM-2B (hub id lab/MedVLM-2B) through transformers.", "vqa")),
    ("prescribed-once-caught", [say("Load.", "import torch\ntry:\n    net = torch.load('/data/public/models/dncnn_ld.ckpt')\nexcept Exception as e:\n    print('could not load:', type(e).__name__, e)", "could not load: EOFError Ran out of input"), say("NLM.", "for p in cases:\n    y = denoise_nl_means(x)\n    np.save(f'/workspace/agents_outputs/{p}/enhanced.npy', y)\n    print(p, y.mean())", "c1 0.1\nc2 0.2")], "S2 S4", fixed("Apply the DnCNN checkpoint dncnn_ld.ckpt in /data/public/models.", "enhancement")),
    ("two-sources-in-one-go", [hidden(WHEEL + "\n" + "curl: (22) The requested URL returned error: 404", "pip install netkit-1.2-cp38-cp38-linux_x86_64.whl; curl -fO https://zoo.example/models/net.pt"), threshold()], "S2 S4", KIT),
]  # fmt: skip

ONNX = "import onnxruntime as ort, logging\nfor p in ['/data/public/models/vesselnet.onnx']:\n    try:\n        s = ort.InferenceSession(p{})\n    except Exception as e:\n        logging.warning('load failed for %s: %s', p, e)\n"
ROWS = "import torch\nfor n in ('a_unet.pth', 'b_unet.pth'):\n    try:\n        torch.load('/data/public/models/' + n{})\n        st = 'ok'\n    except Exception as e:\n        st = f'{{type(e).__name__}}: {{e}}'\n    print('|', n, '|', st, '|')\n"
BROKEN_ROWS = "| a_unet.pth | RuntimeError: PytorchStreamReader failed reading zip archive |\n| b_unet.pth | EOFError: Ran out of input |"
VIT = "import torch\ntry:\n    ck = torch.load('/data/public/models/cardio_vit.ckpt')\n    m = build(ck['hyper_parameters'])\n    m.load_state_dict(ck['state_dict'])\nexcept Exception as e:\n    print('cardio_vit.ckpt ->', repr(e)[:200])\n"

SILENT = [
    ("called-the-reader-wrongly", [in_module("TypeError: load() got an unexpected keyword argument 'mapping'", MODEL.format("net.pt")), threshold("A rule.")], "S2 S4", fixed(USE_NET)),
    ("cut-file-then-the-copy", [fail(CUT), other("The copy under /data/public/models/backup loads.", "net.pt")], "S2 S4", fixed(USE_NET)),
    ("worked-then-lost-the-comparison", [hidden("| a_unet.pth | UnpicklingError: Weights only load failed. |\n| b_unet.pth | ok |", ROWS.format(""), language="python"), hidden("| a_unet.pth | RuntimeError: Attempting to deserialize object on a CUDA device |", ROWS.format(", weights_only=False"), language="python"), say("Pilot of both.", MODEL.format("a_unet.pth', weights_only=False, map_location='cpu") + "print(net(x).sum(), score(net(x)))", "812 0.71"), other("b_unet is better on the pilot.", "b_unet.pth")], "S2 S2 S3 S4", FREE),
    ("hub-worked-from-the-cache", [hidden("lab/chex-writer: OSError We couldn't connect to 'https://huggingface.co'", "from transformers import AutoModel\ntry:\n    AutoModel.from_pretrained('lab/chex-writer')\nexcept OSError as e:\n    print('lab/chex-writer:', type(e).__name__, e)\n", language="python"), hidden("lab/chex-writer: OSError We couldn't connect to 'https://huggingface.co'", "from transformers import AutoModel\ntry:\n    AutoModel.from_pretrained('lab/chex-writer')\nexcept OSError as e:\n    print('lab/chex-writer:', type(e).__name__, e)\n", language="python"), say("Cache.", "import torch\nfrom transformers import AutoModel\nm = AutoModel.from_pretrained('lab/chex-writer', local_files_only=True)\n" + CASES + "    y = m(x)\n" + SAVE, LOG)], "S2 S2 S4", FREE),
    ("one-caught-of-a-listing", [hidden("| a_unet.pth | EOFError: Ran out of input |\n| b_unet.pth | ok |", ROWS.format(""), language="python"), other("b_unet it is.", "b_unet.pth")], "S2 S4", FREE),
    ("one-failed-import-replaced", [fail("ModuleNotFoundError: No module named 'netkit'", USES), other("Through torch.", "net.pt")], "S2 S4", KIT),
    ("optional-package", [fail("ModuleNotFoundError: No module named 'monai'", "import monai"), hidden(NO_PIP.format("monai"), "pip install monai"), other("Without it.", "net.pt")], "S2 S2 S4", {"plan": "net.pt with MONAI sliding window"}),
    ("loads-at-the-third-attempt", [fail(POINTER), fail("_pickle.UnpicklingError: Weights only load failed."), say("Loaded.", MODEL.format("net.pt"), "ok"), other("Run instead of asking.", "net.pt")], "S2 S2 S2 S4", {}),
    ("converted-and-used", [fail(CORRUPT), fail(CORRUPT), say("Unpacked by hand instead.", "import torch\nsd = read('/data/public/models/net.pt')\ntorch.save(sd, '/workspace/clean.pt')", "ok"), other("All.", "clean.pt")], "S2 S2 S2 S4", {}),
    ("code-errors-are-not-access", [fail("RuntimeError: expected 3 channels, got 1"), fail("TypeError: forward() missing 1 argument"), other("small.pt instead.")], "S3 S3 S4", FREE),
    ("one-miss-of-a-candidate", [fail(POINTER, MODEL.format("big.pt")), other("It is a pointer; small.pt instead.")], "S2 S4", FREE),
    ("given-kit-loads-it", [fail("ModuleNotFoundError: No module named 'kit'"), fail("ModuleNotFoundError: No module named 'kit'"), say("With the path set.", "import sys; sys.path.append('/data/public/models')\nimport kit\nnet = kit.load_model()\n" + CASES + "    y = net(x)\n" + SAVE, LOG)], "S2 S2 S4", {}),
    ("one-of-two-offered", [fail(POINTER, MODEL.format("seg_a.pt")), other("B.", "seg_b.pt")], "S2 S4", fixed("Use seg_a.pt or seg_b.pt from /data/public/models.")),
    ("next-candidate-of-the-plan", [say("Plan.", "cat > /workspace/plan/plan.md <<'E'\nA zonal.pt\nB gland.pt and a rule\nE", language="bash"), fail(POINTER, MODEL.format("zonal.pt")), fail(POINTER, MODEL.format("zonal.pt") + "# again\n"), other("It is out of reach; B instead.", "gland.pt")], "S1 S2 S2 S4", fixed("Choose within: a network from /data/public/models, or thresholds.")),
    ("weights-only-once", [fail("_pickle.UnpicklingError: Weights only load failed."), other("All.", "net.pt")], "S2 S4", fixed("Use net.pt from /data/public/models.")),
    ("two-candidates-compared", [say("Compare.", MODEL.format("a.pt") + MODEL.format("b.pt") + "print(net(x))", "1"), other("b.pt is better; it replaces a.pt.", "b.pt"), SUBMIT], "S3 S4 S5", FREE),
]  # fmt: skip


@pytest.mark.parametrize(("turns", "stages", "options"), [pytest.param(*row[1:], id=row[0]) for row in FIRES])
def test_a_model_that_could_not_be_had(detect, turns, stages, options):
    found = detect("model_out_of_reach", turns, stages, **options)
    assert len(found) == 1


@pytest.mark.parametrize(("turns", "stages", "options"), [pytest.param(*row[1:], id=row[0]) for row in SILENT])
def test_a_model_that_served_or_was_not_needed(detect, turns, stages, options):
    assert not detect("model_out_of_reach", turns, stages, **options)
