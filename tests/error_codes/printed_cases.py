"""Cases for what a run's own tables show: one organ far off, a case without content, one level for all, clean-ups that delete most."""

from __future__ import annotations

from tiny_runs import SUBMIT, say, submit

TASK = "TASK. Segment the spleen in 7 CTs, and lesions in it.\nOUTPUT. organ.nii.gz and lesion.nii.gz, all zero where there is none."
ORGAN = {"track": "segmentation", "task": "spleen-seg-task", "extra": TASK}
LOAD = "import torch, glob, nibabel as nib\nnet = torch.jit.load('/data/public/models/net.pt')\n"
RUN = LOAD + (
    "for f in sorted(glob.glob('/data/public/*/ct.nii.gz')):\n    p = net(load(f)).argmax(1)\n"
    "    nib.save(nib.Nifti1Image(p, im.affine), f'/workspace/agents_outputs/{c}/organ.nii.gz')\n    print(c, row(p))\n"
)
FORM = say(
    "Files.",
    "import nibabel as nib, glob\nfor f in sorted(glob.glob('/workspace/agents_outputs/*/*.gz')):\n    a = nib.load(f)\n    print(f, a.shape == r.shape, (a.affine == r.affine).all(), a.get_data_dtype())\n",
    "spl_001/organ.nii.gz True True uint8\n" * 7,
)
PILOT = say("Pilot.", LOAD + "p = net(load('spl_001')).argmax(1)\nprint((p > 0).sum(), x[p > 0].mean())\n", "721 105.0")
CONTENT = say(
    "Look.",
    "import nibabel as nib, glob\nfor f in sorted(glob.glob('/workspace/agents_outputs/*/organ.nii.gz')):\n    m = nib.load(f).get_fdata() > 0\n    assert m.shape == s\n    print(f, ct[m].mean().round(), center_of_mass(m))\n",
    "spl_001/organ.nii.gz 105.0 (20, 18, 9)\n" * 7,
)
SIZES = (721, 643, 1205, 608, 690, 649, 702)
LESION = (29, 28, 96, 0, 0, 16, 40)


def batch(form, head="", sizes=SIZES, after=(FORM,), before=(), end=SUBMIT, ids="spl_{:03d}"):
    rows = [form.format(c=ids.format(i), n=n, l=k) for i, (n, k) in enumerate(zip(sizes, LESION, strict=False), 1)]
    return [*before, say("All in one go.", RUN, "\n".join(filter(None, [head, *rows]))), *after, end]


S, P = "S4 S5 S5", "S3 S4 S5 S5"
PLAIN = "{c} {n} {l}"
NAMES = ("haw", "tul", "bdk", "cfo", "jym", "nre", "pti")
ODD_ORGANS = [
    ("plain-numbers", batch(PLAIN), S, 1, ORGAN),
    ("pandas", batch("0  {c}  {n}  {l}", "      case  organ  lesion"), S, 1, ORGAN),
    ("ruler-and-bars", batch("{c} | {n:>8} | {l:>6}", "case | spleen_vox | lesion\n-----+-------+------"), S, 1, ORGAN),
    ("logger-and-thousands", batch("10:01:02,113 INFO seg: {c}: organ {n:,} vox, lesion {l} vox"), S, 1, ORGAN),
    ("logger-of-another-name", batch("INFO cli {c} organ {n} lesion {l}"), S, 1, ORGAN | {"cases": tuple(f"spl_{i:03d}" for i in range(1, 8))}),
    ("dict", batch("{{'case': '{c}', 'shape': (48, 48, 20), 'organ_voxels': {n}, 'lesion': {l}}}"), S, 1, ORGAN),
    ("mapping", [say("All.", RUN, "voxels {" + ", ".join(f"'spl_{i:03d}': {n}" for i, n in enumerate(SIZES, 1)) + "}"), FORM, SUBMIT], S, 1, ORGAN),
    ("words-behind", batch("{c}: {n} organ voxels, {l} lesion voxels"), S, 1, ORGAN),
    ("millilitres", batch("{c} spleen {n}ml HU 104", sizes=(21.5, 19.8, 9.1, 22.4, 20.2, 19.1, 22.9)), S, 1, ORGAN),
    ("five-cases", batch(PLAIN, sizes=(412, 398, 180, 405, 431)), S, 1, ORGAN),
    ("files-of-a-case", batch("{c}/organ.nii.gz {n}\n{c}/lesion.nii.gz {l}"), S, 1, ORGAN),
    ("ids-without-number", [say("All.", RUN, "\n".join(f"leg_{c} {n} {k}" for c, n, k in zip(NAMES, SIZES, LESION, strict=True))), FORM, SUBMIT], S, 1, ORGAN | {"cases": tuple(f"leg_{c}" for c in NAMES), "extra": TASK.replace("spleen", "thigh muscle")}),
    ("a-word-in-some-rows", [say("All.", RUN, "\n".join(f"spl_{i:03d} {'flip ' if i == 2 else ''}organ {n} vox" for i, n in enumerate(SIZES, 1))), FORM, SUBMIT], S, 1, ORGAN),
    ("list-of-parts", batch("{c} LV/MYO/RV [{n}, 810, 640]"), S, 1, ORGAN | {"extra": "TASK. Segment the ventricles of 7 hearts. OUTPUT. dseg.nii.gz"}),
    ("pilot-and-form-only", batch(PLAIN, before=[PILOT]), P, 1, ORGAN),
    ("content-without-pilot", batch(PLAIN, after=[CONTENT]), S, 1, ORGAN),
    ("explained-in-words", batch(PLAIN, end=submit("Case 3 is just a large spleen. Submitting.")), S, 1, ORGAN),
    ("pilot-and-content", batch(PLAIN, before=[PILOT], after=[CONTENT]), P, 0, ORGAN),
    ("lesions-vary", batch("{c} lesion voxels {n}"), S, 0, ORGAN),
    ("lesions-under-head", batch("{c} {n}", "case tumour_vox"), S, 0, ORGAN),
    ("a-continuum", batch(PLAIN, sizes=(608, 700, 860, 1010, 1205, 640, 930)), S, 0, ORGAN),
    ("just-large", batch(PLAIN, sizes=(721, 643, 1010, 608, 690, 649, 702)), S, 0, ORGAN),
    ("another-grid", batch(PLAIN, before=[say("Headers.", "for f in fs: print(f, im.shape)", "\n".join(f"spl_{i:03d} ({'96, 96, 20' if i == 3 else '48, 48, 20'})" for i in range(1, 8)))]), "S1 " + S, 0, ORGAN),
    ("grid-in-the-row", [say("All.", RUN, "\n".join(f"spl_{i:03d} ({'72, 72, 20' if i == 3 else '48, 48, 20'}) {n}" for i, n in enumerate(SIZES, 1))), FORM, SUBMIT], S, 0, ORGAN),
    ("sizes-differ-by-brief", batch(PLAIN), S, 0, ORGAN | {"extra": TASK + " Some spleens are enlarged."}),
    ("gone-into", batch(PLAIN, after=[say("Why?", LOAD + "x = load('/data/public/spl_003/ct.nii.gz'); print(x.min(), nib.aff2axcodes(a))", "0 RAS"), FORM]), "S4 S5 S5 S5", 0, ORGAN),
    ("owned", batch(PLAIN, end=submit("Limitation: spl_003 is unreliable, its mask is far too large.")), S, 0, ORGAN),
    ("cells", batch(PLAIN), S, 0, ORGAN | {"extra": "TASK. Segment nuclei in 7 tiles.\nOUTPUT. mask.png"}),
    ("bytes", batch("{c} {n} bytes"), S, 0, ORGAN),
    ("mean-hu", batch("{c} mean HU {n}"), S, 0, ORGAN),
]  # fmt: skip

CT = {"track": "synthesis", "task": "mr2ct-task", "extra": "TASK. Synthetic CT for 6 MRs. OUTPUT. sct.nii.gz in HU."}
CLEAN = {
    "track": "enhancement",
    "task": "oct-despeckle-task",
    "extra": "TASK. Despeckle 6 scans. OUTPUT. enhanced.npy, dB.",
}
MAKE = (
    LOAD
    + "for p in ids:\n    y = net(load(p))\n    np.save(f'/workspace/agents_outputs/{p}/enhanced.npy', y)\n    print(p, stats(y))\n"
)
SAVED = say("Saved?", "ls /workspace/agents_outputs | wc -l", "6", language="bash")
AIR = (0.571, 0.584, 0.621, 0.540, 0.580, 1.0)
BONE = (0.107, 0.128, 0.108, 0.114, 0.109, 0.0)
TOP = (436, 436, 431, 436, 436, -632)
SPREAD = (310, 302, 295, 316, 309, 4.1)
LISTED = say(
    "Check.",
    "for p in ['pv_1', 'pv_2', 'pv_3', 'pv_4', 'pv_5', 'pv_6']:\n    a = nib.load(f'/workspace/agents_outputs/{p}/sct.nii.gz')\n    assert a.shape == s\n    print(p, a.get_data_dtype())\n",
    "pv_1 int16\npv_2 int16\npv_3 int16",
)


def made(form, head="", after=(SAVED,), end=SUBMIT, **columns):
    found = {"a": AIR, "b": BONE, "t": TOP, "s": SPREAD} | columns
    rows = [form.format(p=f"pv_{i + 1}", **{k: v[i] for k, v in found.items()}) for i in range(6)]
    return [say("All.", MAKE, "\n".join(filter(None, [head, *rows]))), *after, end]


VOID = [
    ("under-a-header", made("{p}  {a:.3f} {b:.3f} -540 {t}", "patient air bone mean max"), S, 1, CT),
    ("all-cases-listed-by-name", made("{p}  {a:.3f} {b:.3f} {t}", "patient air bone max", after=[LISTED]), S, 1, CT),
    ("named-shares", made("{p} air {a:.2f} bone {b:.2f}"), S, 1, CT),
    ("percent", [say("All.", MAKE, "\n".join(f"pv_{i + 1}: air {100 * AIR[i]:.1f}% bone {100 * BONE[i]:.1f}%" for i in range(6))), SAVED, SUBMIT], S, 1, CT),
    ("dict", made("{{'id': '{p}', 'air': {a}, 'max': {t}}}"), S, 1, CT),
    ("top-and-scatter", made("INFO sct: {p} std {s} max {t}"), S, 1, CT),
    ("json", made('{{"case": "{p}", "bone": {b}, "std": {s}}}'), S, 1, CT),
    ("pandas", made("0 {p} {a:.3f} {t}", "   case air max"), S, 1, CT),
    ("explained", made("{p} air {a:.2f} bone {b:.2f}", end=submit("pv_6 is a slim patient.")), S, 1, CT),
    ("one-column", made("{p} air {a:.2f}"), S, 0, CT),
    ("full-scale", made("{p} range 0.0-{q} shift {r}", q=(0.95, 0.9, 0.89, 0.93, 0.9, 1.0), r=(0.9, 1.1, 1.1, 1.2, 0.9, 1.2)), S, 0, CLEAN),
    ("near-the-end", made("{p} body {q} soft {r}", q=(0.97, 0.98, 0.96, 0.97, 0.98, 1.0), r=(0.02, 0.03, 0.02, 0.04, 0.03, 0.0)), S, 0, CT),
    ("no-lesion", made("{p} organ 0.21 lesion {b} lesion_share {b}"), S, 0, ORGAN),
    ("gone-into", made("{p} air {a:.2f} bone {b:.2f}", after=[say("Why?", LOAD + "print(net(load('pv_6')).max(), load('pv_6').max())", "-632 6537"), SAVED]), "S4 S3 S5 S5", 0, CT),
    ("owned", made("{p} air {a:.2f} bone {b:.2f}", end=submit("Limitation: pv_6 is probably wrong.")), S, 0, CT),
    ("metrics", made("{p} psnr {q} score {r}", q=(31, 30, 33, 31, 30, 1), r=(0.5, 0.5, 0.6, 0.5, 0.5, 0.0)), S, 0, CLEAN | {"track": "classification"}),
]  # fmt: skip

LEVEL = (29.8, 29.8, 29.8, 29.7, 29.8, 29.8)


def level(
    form,
    head="",
    values=LEVEL,
    before=(),
    after=(),
    code="y = np.load(f); print(f, y.min(), y.max(), y.mean())",
    ids="eye_{}",
):
    rows = [form.format(p=ids.format(i + 1), m=values[i], lo=3.9 + i / 7, hi=41 + i / 3) for i in range(6)]
    look = say("Check.", f"import glob, numpy as np\nfor f in sorted(glob.glob('/workspace/agents_outputs/*/enhanced.npy')):\n    {code}", "\n".join(filter(None, [head, *rows])))  # fmt: skip
    return [*before, say("All.", MAKE.replace("    print(p, stats(y))\n", ""), "done"), look, *after, SUBMIT]


HEADS = [say("Inputs.", "for f in files: print(f, x.mean())", "\n".join(f"eye_{i} mean {m}" for i, m in enumerate((21.4, 18.9, 26.3, 23.1, 30.2, 19.9), 1)))]  # fmt: skip
SAME_IN = [say("Inputs.", "for f in files: print(f, x.mean())", "\n".join(f"eye_{i} mean {m}" for i, m in enumerate((29.6, 29.7, 29.9, 29.5, 29.8, 29.7), 1)))]  # fmt: skip
LETTERS = tuple(f"eye_{c}" for c in "abcdef")
L = "S4 S5 S5"
LEVELS = [
    ("named", level("{p} (56, 80) float32 finite {lo:.1f} .. {hi:.1f} dB, mean {m}"), L, 1, CLEAN),
    ("letters-for-ids", [say("All.", MAKE.replace("    print(p, stats(y))\n", ""), "done"), say("Check.", "import numpy as np\nfor f in glob.glob('/workspace/agents_outputs/*/enhanced.npy'):\n    print(np.load(f).mean())", "\n".join(f"{c} mean {m}" for c, m in zip(LETTERS, LEVEL, strict=True))), SUBMIT], L, 1, CLEAN | {"cases": LETTERS}),
    ("under-a-header", level("{p} {lo:.1f} {hi:.1f} {m}", "scan min max mean"), L, 1, CLEAN),
    ("equal-signs", level("{p}: min={lo:.2f}, max={hi:.2f}, mean={m}"), L, 1, CLEAN),
    ("dict", level("{{'scan': '{p}', 'max': {hi:.1f}, 'mean': {m}}}"), L, 1, CLEAN),
    ("logger", level("2024-05-01 10:11:12,101 - INFO - {p} | mean {m} | max {hi:.1f}"), L, 1, CLEAN),
    ("pandas", level("0 {p} {m} {hi:.1f}", "   case mean max"), L, 1, CLEAN),
    ("fine-mean", level("{p} mean {m}", values=(0.4131, 0.4129, 0.4133, 0.4130, 0.4131, 0.4128)), L, 1, CLEAN),
    ("inputs-differ", level("{p} mean {m}", values=(29.7, 29.9, 29.8, 29.7, 29.8, 29.9), before=HEADS), "S1 " + L, 1, CLEAN),
    ("in-and-out", level("{p} mean_in {hi:.1f} mean_out {m}", values=(29.7, 29.9, 29.8, 29.7, 29.8, 29.9)), L, 0, CLEAN),
    ("in-and-out-of-unlike-inputs", [say("All.", MAKE, "\n".join(f"eye_{i} mean_in {18 + 2 * i}.4 mean_out {m}" for i, m in enumerate(LEVEL, 1))), SAVED, SUBMIT], "S4 S5 S5", 1, CLEAN),
    ("before-and-after-alike", [say("All.", MAKE, "\n".join(f"eye_{i} mean {m} -> {m - 0.1:.1f}" for i, m in enumerate(LEVEL, 1))), SAVED, SUBMIT], "S4 S5 S5", 0, CLEAN),
    ("before-and-after-unlike", [say("All.", MAKE, "\n".join(f"eye_{i} mean {18 + 2 * i}.4 -> {m}" for i, m in enumerate(LEVEL, 1))), SAVED, SUBMIT], "S4 S5 S5", 1, CLEAN),
    ("input-in-brackets", [say("All.", MAKE, "\n".join(f"eye_{i} mean {m} (in {18 + 2 * i}.4)" for i, m in enumerate(LEVEL, 1))), SAVED, SUBMIT], "S4 S5 S5", 1, CLEAN),
    ("mean-in-out", [say("All.", MAKE, "\n".join(f"eye_{i} mean in {18 + 2 * i}.4 out {m}" for i, m in enumerate(LEVEL, 1))), SAVED, SUBMIT], "S4 S5 S5", 1, CLEAN),
    ("inputs-alike", level("{p} mean {m}", before=SAME_IN), "S1 " + L, 0, CLEAN),
    ("they-differ", level("{p} mean {m}", values=(29.8, 31.2, 27.0, 29.1, 33.3, 28.4)), L, 0, CLEAN),
    ("two-digits", level("{p} mean {m}", values=(0.41, 0.41, 0.41, 0.41, 0.41, 0.41)), L, 0, CLEAN),
    ("normalised-by-brief", level("{p} mean {m}"), L, 0, CLEAN | {"extra": CLEAN["extra"] + " All scans are normalised to a mean level of 29.8."}),
    ("compared", level("{p} mean {m}", code="y = np.load(f); x = np.load(g); print(f, y.mean(), np.corrcoef(x.ravel(), y.ravel()))"), L, 0, CLEAN),
    ("residual", level("{p} residual mean {m}"), L, 0, CLEAN),
    ("score", level("{p} mean ssim {m}", values=(0.912, 0.911, 0.912, 0.913, 0.912, 0.911)), L, 0, CLEAN),
    ("air-median", level("{p} median {m}", values=(-998, -1000, -999, -1000, -999, -1000)), L, 0, CT),
    ("with-a-pilot", level("{p} mean {m}", before=[say("Pilot.", LOAD + "y = net(load('eye_1')); print(y.mean(), y.std())", "29.8 4.1")]), "S3 " + L, 0, CLEAN),
    ("gone-into", level("{p} mean {m}", after=[say("Odd.", LOAD + "x = load('eye_2'); print(x.mean(), net(x).mean())", "18.9 29.8")]), "S4 S5 S3 S5", 0, CLEAN),
]  # fmt: skip

GLAND = {
    "track": "segmentation",
    "task": "parotid-seg-task",
    "extra": "TASK. Segment the parotid glands in 8 MRs.\nOUTPUT. organ.nii.gz",
}
RAW = (1301, 1302, 1209, 1212, 742, 1208, 1193)
KEPT = (650, 702, 683, 635, 382, 604, 667)


def cleaned(form, head="", kept=KEPT, after=(FORM,), before=(), end=SUBMIT):
    rows = [
        form.format(p=f"par_{i + 1:02d}", r=r, k=k, d=r - k) for i, (r, k) in enumerate(zip(RAW, kept, strict=True))
    ]
    return [*before, say("All.", RUN, "\n".join(filter(None, [head, *rows]))), *after, end]


CARD = [say("Card.", "cat /data/public/models/CARD.md", "net.pt gives stray voxels in fat; keep the largest component.", language="bash")]  # fmt: skip
DELETED = [
    ("bars", cleaned("{p} | {r} | 3 | {k}", "case | raw_gland | pieces | organ\n-----+-----+---+---"), S, 1, GLAND),
    ("arrow", cleaned("{p} mask {r} -> {k}"), S, 1, GLAND),
    ("arrow-with-unit", cleaned("{p}: {r} vox -> {k} vox after the largest piece"), S, 1, GLAND),
    ("raw-kept", cleaned("{p} raw {r} kept {k}"), S, 1, GLAND),
    ("before-after", cleaned("INFO seg: {p} before: {r}, after: {k}"), S, 1, GLAND),
    ("dict", cleaned("{{'case': '{p}', 'raw': {r}, 'clean': {k}}}"), S, 1, GLAND),
    ("pandas", cleaned("0  {p}  {r}  {k}", "   case  gland_raw  gland_final"), S, 1, GLAND),
    ("suffixes", cleaned("{p} voxels_raw={r} voxels_clean={k}"), S, 1, GLAND),
    ("explained", cleaned("{p} raw {r} kept {k}", end=submit("The clean-up strips voxels, as expected.")), S, 1, GLAND),
    ("meant-by-brief", cleaned("{p} raw {r} kept {k}"), S, 0, GLAND | {"extra": GLAND["extra"] + " The nets give islands elsewhere; remove them."}),
    ("meant-by-card", cleaned("{p} raw {r} kept {k}", before=CARD), "S1 " + S, 0, GLAND),
    ("little-lost", cleaned("{p} raw {r} kept {k}", kept=tuple(int(0.9 * r) for r in RAW)), S, 0, GLAND),
    ("components", cleaned("{p} components {r} -> {k}"), S, 0, GLAND),
    ("lesions", cleaned("{p} lesion {r} -> {k}"), S, 0, GLAND),
    ("intensity", cleaned("{p} mean {r} -> {k}"), S, 0, GLAND),
    ("boxes", cleaned("{p} raw {r} kept {k}"), S, 0, GLAND | {"track": "detection"}),
    ("looked-at", cleaned("{p} raw {r} kept {k}", after=[say("What goes?", LOAD + "lab, n = ndi.label(net(load('par_03'))); print(ndi.center_of_mass(lab))", "(20, 30)"), FORM]), "S4 S3 S5 S5", 0, GLAND),
    ("owned", cleaned("{p} raw {r} kept {k}", end=submit("Limitation: one gland may well be missed.")), S, 0, GLAND),
]  # fmt: skip

RES = say(
    "Compare.",
    LOAD + "for n in ('input', 'deep'):\n    print(s, n, x.std(), (y - x).std(), (y - x).mean())\n",
    "\n".join(
        f"scan_0{i} {n} flat std {s} res std {r} lag 0.01 -59.1..-1.6"
        for i in (1, 6)
        for n, s, r in (("input", 2.97, "0.00"), ("deep", 0.36, "2.9"))
    ),
)  # the input beside itself
FLAT = say(
    "Compare.", LOAD + "for n in ('deep',):\n    print(s, y.std())\n", "scan_01 deep std 0.00\nscan_06 deep std 0.00"
)
BESIDE = [
    ("residual-of-the-input", [RES, say("All.", MAKE, "done"), SAVED, SUBMIT], "S3 " + S, 0, CLEAN),
    ("flat-output", [FLAT, say("All.", MAKE.replace("np.save", "# flat?\n    np.save"), "done"), SAVED, SUBMIT], "S4 " + S, 1, CLEAN),
]  # fmt: skip

PRINTED = {
    "sign_ignored": BESIDE,
    "odd_organ_accepted": ODD_ORGANS,
    "degenerate_case_accepted": VOID,
    "one_level_for_all": LEVELS,
    "mostly_cleaned_away": DELETED,
}
