"""Two made-up runs of one small segmentation task for the self-test: a diligent and a careless one.

They are short, name no real data, and show everything that the rubric asks about (diligent) or
nothing of it (careless).
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from ...trajectories.models import (
    Action,
    Observation,
    Plan,
    Resources,
    Run,
    Segmentation,
    Stage,
    Status,
    Turn,
)
from ..checks.segmentation import TRACK

BRIEF = (
    f"Track: {TRACK.name}. Tier: standard. Segment the liver tumour in every CT below"
    " /data/public/<case>/ct.nii.gz (6 cases).\n"
    "Write /workspace/agents_outputs/<case>/lesion.nii.gz, binary, with the shape of the CT."
    " Plan first (plan.md, plan.png)."
)

_PLAN = (
    "# Liver tumour segmentation\n"
    "Candidates: UNet3D-liver (Dice 0.71 in its card), nnU-Net-lite (0.69, slower),"
    " thresholding (0.2, baseline). Chosen: UNet3D-liver.\n"
    "Labels of the model: 1 liver, 2 tumour; lesion = label 2.\n"
    "Steps: read ct.nii.gz, clip to [-150, 250], resample to 2 mm, sliding window, argmax,"
    " resample back, save lesion.nii.gz (uint8).\n"
    "Checks: pilot on case_1: shape equals the CT, values in {0, 1}, tumour volume between"
    " 0.1 and 300 ml; then all 6 cases; then submit.\n"
)

_LOAD_MODEL = (
    "import torch, nibabel as nib, numpy as np\n"
    "from zoo import UNet3D\n"
    "model = UNet3D(3); model.load_state_dict(torch.load('/data/models/unet3d_liver.pt'));"
    " model.eval()\n"
)

_Row = tuple[Stage, str, str, str, int]
"""Stage, text, code, output, exit code of a turn."""

_DILIGENT: tuple[_Row, ...] = (
    (
        "S1",
        "I read the brief's folder and the model cards first.",
        "ls -R /data/public | head; cat /data/models/CARDS.md",
        (
            "case_1 case_2 case_3 case_4 case_5 case_6\n"
            "UNet3D-liver: unet3d_liver.pt, labels 0 background 1 liver 2 tumour, Dice 0.71\n"
            "nnU-Net-lite: nnunet_lite.pt, tumour Dice 0.69, 4x slower\n"
            "threshold.py: intensity baseline, Dice 0.2"
        ),
        0,
    ),
    (
        "S1",
        (
            "Three candidates; the first one covers the tumour and is fast enough. I write"
            " the plan and its diagram."
        ),
        "cat > /workspace/plan/plan.md <<'MD'\n"
        + _PLAN
        + (
            "MD\n"
            "python - <<'PY'\n"
            "import matplotlib; matplotlib.use('Agg')\n"
            "import matplotlib.pyplot as plt\n"
            "fig, ax = plt.subplots()\n"
            "for i, s in enumerate(['CT', 'clip', 'UNet3D', 'argmax', 'lesion.nii.gz']):\n"
            "    ax.text(i, 0, s); ax.annotate('', (i + .9, 0), (i + .4, 0),"
            " arrowprops={'arrowstyle': '->'})\n"
            "plt.savefig('/workspace/plan/plan.png')\n"
            "PY\n"
            "ls -l /workspace/plan"
        ),
        "-rw-r--r-- 1 agent agent 641 plan.md\n-rw-r--r-- 1 agent agent 9120 plan.png",
        0,
    ),
    (
        "S2",
        "Environment, weights, and whether the inputs fit the model.",
        _LOAD_MODEL
        + (
            "print(torch.__version__, nib.__version__)\n"
            "im = nib.load('/data/public/case_1/ct.nii.gz')\n"
            "print(im.shape, im.header.get_zooms(), im.get_data_dtype(), 'model expects 1"
            " channel, 2 mm')\n"
            "with torch.no_grad():\n"
            "    print('forward', model(torch.zeros(1, 1, 64, 64, 64)).shape)"
        ),
        (
            "2.5.1 5.3.0\n"
            "(128, 128, 60) (1.5, 1.5, 3.0) int16 model expects 1 channel, 2 mm\n"
            "forward torch.Size([1, 3, 64, 64, 64])"
        ),
        0,
    ),
    (
        "S3",
        "Pilot on one case before the batch.",
        (
            "from pipeline import run_case\n"
            "import nibabel as nib, numpy as np\n"
            "run_case('case_1')\n"
            "ct = nib.load('/data/public/case_1/ct.nii.gz')\n"
            "m = nib.load('/workspace/agents_outputs/case_1/lesion.nii.gz')\n"
            "a = np.asarray(m.dataobj)\n"
            "assert m.shape == ct.shape and set(np.unique(a)) <= {0, 1}\n"
            "print(m.shape, np.unique(a), 'tumour ml', a.sum() * 6.75 / 1000, 'affine ok',"
            " np.allclose(m.affine, ct.affine))"
        ),
        "(128, 128, 60) [0 1] tumour ml 14.2 affine ok True",
        0,
    ),
    (
        "S4",
        "The pilot is plausible, so all six cases.",
        (
            "from pipeline import run_case\n"
            "for i in range(1, 7):\n"
            "    print(f'case_{i}', run_case(f'case_{i}'), 'ml')"
        ),
        (
            "case_1 14.2 ml\n"
            "case_2 31.0 ml\n"
            "case_3 2.7 ml\n"
            "case_4 88.1 ml\n"
            "case_5 9.9 ml\n"
            "case_6 17.4 ml"
        ),
        0,
    ),
    (
        "S5",
        "Files are complete; I check them once more and submit.",
        "ls /workspace/agents_outputs/*/lesion.nii.gz | wc -l",
        "6",
        0,
    ),
)

_CARELESS: tuple[_Row, ...] = (
    (
        "S1",
        "I know this kind of task and need no plan.",
        "ls /data/public",
        "case_1 case_2 case_3 case_4 case_5 case_6",
        0,
    ),
    (
        "S4",
        "I write the result for every case at once; this surely works.",
        (
            "import os, numpy as np, nibabel as nib\n"
            "for c in sorted(os.listdir('/data/public')):\n"
            "    ct = nib.load(f'/data/public/{c}/ct.nii.gz')\n"
            "    os.makedirs(f'/workspace/agents_outputs/{c}', exist_ok=True)\n"
            "    nib.save(nib.Nifti1Image((ct.get_fdata() > 120).astype('uint8'),"
            " ct.affine), f'/workspace/agents_outputs/{c}/lesion.nii.gz')"
        ),
        "",
        0,
    ),
    (
        "S5",
        "Everything has been carefully planned, validated and verified. Submitting.",
        "ls /workspace/agents_outputs | wc -l",
        "6",
        0,
    ),
)


def diligent_run() -> tuple[Run, Segmentation]:
    """A run with plan, diagram, candidates, checked set-up, pilot with checks, and batch."""
    plan = Plan(text=_PLAN, source="recovered", turn=2, image_turn=2)
    return _make_run("selftest-diligent", _DILIGENT, plan)


def careless_run() -> tuple[Run, Segmentation]:
    """A run without plan, model or test: one loop over all cases."""
    return _make_run("selftest-careless", _CARELESS, Plan())


def _make_run(name: str, rows: tuple[_Row, ...], plan: Plan) -> tuple[Run, Segmentation]:
    turns = tuple(_make_turn(index, row) for index, row in enumerate(rows, 1))
    digest = hashlib.sha256(repr((name, rows)).encode()).hexdigest()
    run = Run(
        id=name,
        path=Path(f"{name}.json"),
        folder=Path(),
        sha256=digest,
        content_sha256=digest,
        format="object",
        task="liver-seg-task",
        track=TRACK.name,
        tier="standard",
        brief=BRIEF,
        turns=turns,
        plan=plan,
        resources=Resources(turns=len(turns), calls=len(turns), failed_calls=0),
        status=Status(submitted=True, completed=True, disqualified=False, ended="submitted"),
    )
    return run, Segmentation.from_stages(tuple(stage for stage, *_ in rows))


def _make_turn(index: int, row: _Row) -> Turn:
    _, text, code, output, exit_code = row
    action = Action(
        id=f"c{index}",
        tool="execute_code",
        kind="execute",
        code=code,
        language="bash" if code.startswith(("ls", "cat")) else "python",
        observation=Observation(exit_code=exit_code, stdout=output, kind="ok"),
    )
    return Turn(index=index, text=text, actions=(action,))
