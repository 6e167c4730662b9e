"""A model that could not be had: tracks, tools and styles in which it shows, and the nearest
innocent runs."""

from __future__ import annotations

import pytest
from tiny_runs import say

TRACE = (
    'Traceback (most recent call last):\n  File "/workspace/run.py", line 3, in <module>\n   '
    " load()\n{}\n"
)
CASES = (
    "import glob\nfor p in sorted(glob.glob('/data/public/patient_*/ct.nii.gz')):\n    x ="
    " load(p)\n"
)
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


CORRUPT = (
    "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"
)
POINTER = "_pickle.UnpicklingError: invalid load key, 'v'."
NO_PIP = (
    "ERROR: Could not find a version that satisfies the requirement {0} (from versions:"
    " none)\nERROR: No matching distribution found for {0}"
)
NO_HUB = (
    "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find"
    " them in the cached files."
)
FREE = {
    "brief": "Track: segmentation. Tier: pro. Write lesion.nii.gz for 8 cases. Choose any method."
}
FIXED = "Track: {0}. Tier: lite. Write /workspace/agents_outputs/<id>/x for 8 cases.\nMETHOD. {1}\n"


def fixed(method, track="segmentation"):
    return {"brief": FIXED.format(track, method), "track": track}


FROM_MODULE = (
    'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n  File'
    ' "/workspace/net.py", line 4, in <module>\n    net ='
    ' torch.load("/data/public/models/net.pt")\n  File'
    ' "/usr/lib/python3/site-packages/torch/serialization.py", line 1568, in load\n    f(x)\n{}\n'
)
USE_NET = "Use net.pt from /data/public/models."
CUT = "OSError: [Errno 22] Invalid argument"


def in_module(error, code="python -c 'import net'"):
    return say("Load.", code, err=FROM_MODULE.format(error), exit_code=1, language="bash")


FIRES = [
    (
        "cut-file-prescribed",
        [
            fail(CUT),
            hidden("000000 P K 003 004", "tail -c 64 /data/public/models/net.pt | od -c"),
            threshold("net.pt is cut off and cannot be had; a rule."),
        ],
        "S2 S2 S4",
        fixed(USE_NET),
    ),
    (
        "module-names-it",
        [
            in_module("_pickle.UnpicklingError: Weights only load failed."),
            threshold("net.pt is a pointer and cannot be had; a rule."),
        ],
        "S2 S4",
        fixed(USE_NET),
    ),
    (
        "checkpoint-corrupt-twice",
        [
            fail(CORRUPT),
            fail(CORRUPT, MODEL.format("net.pt").replace(")", ", weights_only=False)")),
            threshold(),
        ],
        "S2 S2 S4",
        {},
    ),
    (
        "undeclared-other-weights",
        [fail(POINTER), fail(POINTER), fail(POINTER), other()],
        "S2 S2 S2 S4",
        {},
    ),
    (
        "prescribed-once-hub",
        [
            fail(
                NO_HUB,
                "from transformers import AutoModel\nm ="
                " AutoModel.from_pretrained('lab/MedVLM-2B')",
            ),
            say(
                "Keyword rules.",
                "for q in qs:\n    json.dump({'answer': rule(q)},"
                " open(f'/workspace/agents_outputs/{q}/answer.json', 'w'))\n",
                "done 8",
            ),
        ],
        "S2 S4",
        fixed("Answer with MedVLM-2B (hub id lab/MedVLM-2B) through transformers.", "vqa"),
    ),
]


SILENT = [
    (
        "cut-file-then-the-copy",
        [fail(CUT), other("The copy under /data/public/models/backup loads.", "net.pt")],
        "S2 S4",
        fixed(USE_NET),
    ),
    (
        "optional-package",
        [
            fail("ModuleNotFoundError: No module named 'monai'", "import monai"),
            hidden(NO_PIP.format("monai"), "pip install monai"),
            other("Without it.", "net.pt"),
        ],
        "S2 S2 S4",
        {"plan": "net.pt with MONAI sliding window"},
    ),
    (
        "loads-at-the-third-attempt",
        [
            fail(POINTER),
            fail("_pickle.UnpicklingError: Weights only load failed."),
            say("Loaded.", MODEL.format("net.pt"), "ok"),
            other("Run instead of asking.", "net.pt"),
        ],
        "S2 S2 S2 S4",
        {},
    ),
    (
        "code-errors-are-not-access",
        [
            fail("RuntimeError: expected 3 channels, got 1"),
            fail("TypeError: forward() missing 1 argument"),
            other("small.pt instead."),
        ],
        "S3 S3 S4",
        FREE,
    ),
    (
        "one-of-two-offered",
        [fail(POINTER, MODEL.format("seg_a.pt")), other("B.", "seg_b.pt")],
        "S2 S4",
        fixed("Use seg_a.pt or seg_b.pt from /data/public/models."),
    ),
]


@pytest.mark.parametrize(
    ("turns", "stages", "options"), [pytest.param(*row[1:], id=row[0]) for row in FIRES]
)
def test_a_model_that_could_not_be_had(detect, turns, stages, options):
    found = detect("model_out_of_reach", turns, stages, **options)
    assert len(found) == 1


@pytest.mark.parametrize(
    ("turns", "stages", "options"), [pytest.param(*row[1:], id=row[0]) for row in SILENT]
)
def test_a_model_that_served_or_was_not_needed(detect, turns, stages, options):
    assert not detect("model_out_of_reach", turns, stages, **options)
