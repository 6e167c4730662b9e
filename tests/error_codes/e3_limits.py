"""Cases for limits that a plan sets, levels that move, and folds no better than guessing."""

from __future__ import annotations

from tiny_runs import SUBMIT, facts, say, submit

LOAD = "import torch\nnet = torch.load('/data/public/models/net.pt')\n"
BATCH = (
    LOAD
    + "import glob\nfor p in sorted(glob.glob('/data/public/patient_*/ct.nii.gz')):\n    x = load(p)\n    y = net(x)\n"
    "    nib.save(y, f'/workspace/agents_outputs/{pid}/lesion.nii.gz')\n    print(pid, agree(y, other(x)))\n"
)
FILES = "import glob, nibabel as nib\nfor f in glob.glob('/workspace/agents_outputs/*/lesion.nii.gz'):\n    k = nib.load(f); assert k.shape == (64, 64, 24)\n    print(f, k.shape, 'ok')\n"
LOOK = say("Files.", FILES, "f (64, 64, 24) ok\n" * 8)
TABLE = "patient_0001 420 0.91\npatient_0002 390 0.74\npatient_0003 402 0.93\n"


def batch(last, after=()):
    return [say("All.", BATCH, TABLE + last), *after, LOOK, SUBMIT]


def plan(line):
    return {"plan": f"# Plan\n- method: net.pt\n- {line}\n"}


RERUN = say("The odd one.", LOAD + "y = net(load('/data/public/patient_0002/ct.nii.gz')); print(y.sum())\n", "390")
LIMITS = [
    ("named-in-the-log", batch("lowest agreement 0.74"), "S4 S5 S5", 1, plan("agreement below 0.8 -> look at that case")),
    ("a-list-of-minima", batch("min Dice per tissue [0.97, 0.66]"), "S4 S5 S5", 1, plan("Inspect by eye if Dice < 0.7.")),
    ("a-share-too-high", batch("flagged 31 % of the voxels"), "S4 S5 S5", 1, plan("stop when flagged > 20 % and review the model")),
    ("a-count-too-high", batch("components: 14"), "S4 S5 S5", 1, plan("repeat the case if components exceed 5")),
    ("kept", batch("lowest agreement 0.86"), "S4 S5 S5", 0, plan("agreement below 0.8 -> look at that case")),
    ("looked-at", batch("lowest agreement 0.74", [RERUN]), "S4 S4 S5 S5", 0, plan("agreement below 0.8 -> look at that case")),
    ("a-count-is-no-share", batch("agreement over 8 cases: 7"), "S4 S5 S5", 0, plan("agreement below 0.8 -> look at that case")),
    ("nothing-to-be-done", batch("lowest agreement 0.74"), "S4 S5 S5", 0, plan("agreement is mostly above 0.8 in the paper")),
    ("said-at-the-end", [say("All.", BATCH, TABLE + "lowest agreement 0.74"), LOOK, submit("Limitation: patient 2 is unreliable.")], "S4 S5 S5", 0, plan("agreement below 0.8 -> look at that case")),
]  # fmt: skip

CLEAN = {"track": "enhancement", "task": "ldct-task", "extra": "TASK. Denoise 8 frames."}
DENOISE = (
    LOAD
    + "for p in paths:\n    x = np.load(p); y = net(x)\n    np.save(f'/workspace/agents_outputs/{pid}/enhanced.npy', y)\n    print(pid, x.mean(), y.mean())\n"
)
READ = say("Read back.", "import numpy as np, glob\nfor f in glob.glob('/workspace/agents_outputs/*/enhanced.npy'):\n    v = np.load(f); assert v.shape == (64, 64); print(f, v.dtype)\n", "f float32\n" * 8)  # fmt: skip


def frames(form, by=lambda i: 1.1):
    return "\n".join(form.format(i=i, a=0.5 + 0.01 * i, b=(0.5 + 0.01 * i) * by(i)) for i in range(1, 9))


def denoised(form, by=lambda i: 1.1, after=()):
    return [say("All.", DENOISE, frames(form, by)), *after, READ, SUBMIT]


LEVELS = [
    ("arrow", denoised("fr_{i} range 0.1..1.2 mean {a:.3f} -> {b:.3f}"), "S4 S5 S5", 1, CLEAN),
    ("input-in-brackets", denoised("fr_{i} mean {b:.3f} (input {a:.3f})", lambda i: 0.9), "S4 S5 S5", 1, CLEAN),
    ("in-and-out", denoised("fr_{i}: mean in {a:.3f} out {b:.3f}"), "S4 S5 S5", 1, CLEAN),
    ("kept", denoised("fr_{i} mean {a:.3f} -> {b:.3f}", lambda i: 1.02), "S4 S5 S5", 0, CLEAN),
    ("to-and-fro", denoised("fr_{i} mean {a:.3f} -> {b:.3f}", lambda i: 1.1 if i % 2 else 0.9), "S4 S5 S5", 0, CLEAN),
    ("of-the-air", denoised("fr_{i} air mean {a:.3f} -> {b:.3f}"), "S4 S5 S5", 0, CLEAN),
    ("gone-into", denoised("fr_{i} mean {a:.3f} -> {b:.3f}", after=[say("Why?", LOAD + "print(net(np.load('/data/public/fr_1/q.npy')).mean())\n", "0.56")]), "S4 S3 S5 S5", 0, CLEAN),
    ("levels-are-the-task", denoised("fr_{i} mean {a:.3f} -> {b:.3f}"), "S4 S5 S5", 0, CLEAN | {"extra": "TASK. Brighten 8 dark endoscopy frames."}),
]  # fmt: skip

BOXES = {"track": "detection", "task": "kub-det-task"}
FIT = "from sklearn.linear_model import LogisticRegression\nclf = LogisticRegression().fit(X, y)\nprint(clf.score(X, y), 'cv', cross_val_score(clf, X, y, cv=4).round(2))\n"
DECIDES = LOAD + "for f in films:\n    B = [b for b in net(load(f)) if clf.predict([profile(b)])[0]]\n    json.dump({'boxes': B}, open(f'/workspace/agents_outputs/{f}/prediction.json', 'w'))\n    print(f, len(B))\n"  # fmt: skip


def fitted(shown, decides=DECIDES):
    return [say("Fit.", FIT, shown), say("All.", decides, "kub_1 3\nkub_2 4\nkub_3 2"), SUBMIT]


FOLDS = [
    ("one-fold-below", fitted("0.97 cv [0.38 0.88 1.   1.  ]"), "S3 S4 S5", 1, BOXES),
    ("held-out", fitted("train 0.99, held-out accuracy per fold [0.41, 0.52, 0.47]"), "S3 S4 S5", 1, BOXES),
    ("good-folds", fitted("0.97 cv [0.91 0.88 0.94 0.9]"), "S3 S4 S5", 0, BOXES),
    ("not-used", fitted("0.97 cv [0.38 0.88 1.   1.  ]", DECIDES.replace("if clf.predict([profile(b)])[0]", "")), "S3 S4 S5", 0, BOXES),
]  # fmt: skip

ANSWERS = [("values", "predicted_label 1 is not one of A-E", "patient_0003")]
TWO = say("Last look.", "import glob\nfs = sorted(glob.glob('/workspace/agents_outputs/*/lesion.nii.gz'))\nprint(open(fs[0]).read(), open(fs[-1]).read())\n", "patient_0001 A brown\npatient_0008 D 3")  # fmt: skip
SEEN = [
    ("another-file-was-shown", [say("All.", BATCH, TABLE), TWO, SUBMIT], "S4 S5 S5", 0, {"known": facts(format_valid=False, kinds=ANSWERS)}),
    ("the-wrong-file-was-shown", [say("All.", BATCH, TABLE), say("Look.", FILES, "patient_0003 label 1"), SUBMIT], "S4 S5 S5", 1, {"known": facts(format_valid=False, kinds=ANSWERS)}),
    ("most-files-are-wrong", [say("All.", BATCH, TABLE), TWO, SUBMIT], "S4 S5 S5", 1, {"known": facts(format_valid=False, kinds=[("values", "label 24", f"patient_{i:04d}") for i in range(2, 8)])}),
    ("never-opened", [say("All.", BATCH, TABLE), SUBMIT], "S4 S5", 1, {"known": facts(format_valid=False, kinds=ANSWERS)}),
]  # fmt: skip

LIMIT_TABLES = {
    "own_limit_ignored": LIMITS,
    "level_moved": LEVELS,
    "poor_folds_accepted": FOLDS,
    "wrong_files_unnoticed": SEEN,
}
