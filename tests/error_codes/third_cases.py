"""Cases of the third round, in other hands' styles: answers against words, groups, storage, unseen outputs, standards, refused options."""

from __future__ import annotations

from tiny_runs import SUBMIT, facts, say, submit

DONE = say("Check.", "import glob\nprint(len(glob.glob('/workspace/agents_outputs/*')))", "8")
S = "S1 S2 S4 S5 S5"
VQA = {"track": "vqa", "task": "slake-task"}
WRITE = "import json, glob\nfrom qa import Model\nm = Model('/data/public/models/net.pt')\nfor q in qs:\n    raw = m(q)\n    json.dump(parse(raw), open(f'/workspace/agents_outputs/{q}/answer.json', 'w'))\n    print(q, raw)\n"


def asked(log="ok", text="All.", words="Submitting."):
    return [
        say("Inputs.", "ls /data/public", "q_1 q_2", language="bash"),
        say("Load.", "m = Model()", "ok"),
        say(text, WRITE, log),
        DONE,
        submit(words),
    ]


def answers(*rows, **more):
    """Facts with answer files: (label, answer, raw output) each."""
    return VQA | {
        "known": facts(answers=tuple(
            {"question_id": f"q_{i}", "predicted_label": label, "predicted_answer": text, "raw_model_output": raw}
            for i, (label, text, raw) in enumerate(rows, 1)), **more)
    }  # fmt: skip


FINE = [
    ("B", "pneumonia", "The film shows pneumonia."),
    ("C", "fracture", "There is a fracture of the rib."),
    ("A", "effusion", "An effusion is seen on the left."),
]
ANSWERS = [
    ("ruled-out", asked(), S, 1, answers(*FINE, ("C", "fracture", "Pneumonia is present, fracture is ruled out."), ("A", "effusion", "I see pneumonia; effusion is absent."))),
    ("rather-than", asked(), S, 1, answers(*FINE, ("A", "effusion", "This is pneumonia rather than effusion."), ("B", "pneumonia", "Most likely a fracture, not pneumonia."))),
    ("article-a", asked(), S, 1, answers(*FINE, ("A", "effusion", "A small pneumonia is visible in the lower lobe."), ("A", "effusion", "A displaced fracture can be seen here."))),
    ("other-letter", asked(), S, 1, answers(*FINE, ("A", "effusion", "Answer: C"), ("B", "pneumonia", "The correct option is D."))),
    ("negated-others-only", asked(), S, 0, answers(*FINE, ("B", "pneumonia", "No fracture and no effusion; pneumonia is seen."), ("C", "fracture", "Without effusion, a fracture is shown."))),
    ("negative-option", asked(), S, 0, answers(*FINE, ("D", "no lesion", "There is no lesion."), ("D", "normal", "Not pneumonia, not fracture: this is normal."), ("B", "no", "No, the effusion is absent."))),
    ("log-pairs", [*asked("\n".join(f"q_{i} | fracture | the image shows pneumonia without fracture" for i in range(1, 7)))[:2], say("All.", WRITE + "# {'options': ['fracture', 'pneumonia']}", "options: {'A': 'fracture', 'B': 'pneumonia'}\n" + "\n".join(f"q_{i} | fracture | the image shows pneumonia without fracture" for i in range(1, 7))), DONE, SUBMIT], S, 1, VQA),
    ("shuffled-options", [*asked()[:2], say("All.", WRITE.replace("    raw =", "    perm = rng.permutation(4)\n    raw ="), "ok"), DONE, SUBMIT], S, 0, answers(*FINE, ("A", "effusion", "Answer: C"), ("B", "pneumonia", "Answer: D"))),
    ("reasoning-then-answer", asked(), S, 0, answers(*FINE, ("C", "fracture", "Option A is not effusion as there is no effusion. Answer: C"), ("B", "pneumonia", "The answer is not A. The answer is B"))),
    ("one-slip", asked(), S, 0, answers(*FINE, *FINE, ("C", "fracture", "Pneumonia is present, fracture is ruled out."))),
    ("another-option-of-the-question", [asked()[0], say("Question.", "cat q_4/question.json", "{'question_id': 'q_4', 'options': {'A': 'drusen', 'B': 'hard exudates', 'C': 'no bright spots'}}"), *asked()[1:]], "S1 S1 S2 S4 S5 S5", 1, answers(*FINE, ("A", "drusen", "The photograph shows hard exudates."), ("B", "hard exudates", "I see no bright spots here."))),
    ("options-of-other-questions", [asked()[0], say("Question.", "cat q_4/question.json", "{'options': {'A': 'drusen', 'B': 'none'}}\n{'options': {'A': 'hard exudates', 'B': 'no bright spots'}}"), *asked()[1:]], "S1 S1 S2 S4 S5 S5", 0, answers(*FINE, ("A", "drusen", "The photograph shows hard exudates."), ("A", "drusen", "I see no bright spots here."))),
    ("sides-that-the-brief-turns-round", [asked()[0], say("Question.", "cat q_4/question.json", "{'options': {'A': 'left side', 'B': 'right side'}}"), *asked()[1:]], "S1 S1 S2 S4 S5 S5", 0, answers(*FINE, ("A", "left side", "It lies on the right side of the picture."), ("B", "right side", "It lies on the left side of it."))),
    ("nearest-spelling", [*asked()[:2], say("All.", WRITE.replace("    raw =", "    best = difflib.get_close_matches(raw, options, 1, 0)\n    raw ="), "ok"), DONE, SUBMIT], S, 1, answers(*FINE, ("A", "ulceration", "I see bleeding here."), ("C", "ulceration", "I see bleeding here."))),
    ("nearest-spelling-that-fits", [*asked()[:2], say("All.", WRITE.replace("    raw =", "    best = difflib.get_close_matches(raw, options, 1, 0)\n    raw ="), "ok"), DONE, SUBMIT], S, 0, answers(*FINE, ("A", "bile-stained fluid", "I see bile stained fluids."), ("C", "ulceration", "I see an ulcer here."))),
    ("numbers-by-spelling", [*asked()[:2], say("All.", WRITE.replace("    raw =", "    best = difflib.get_close_matches(raw, options, 1, 0)\n    raw ="), "ok"), DONE, SUBMIT], S, 1, answers(*FINE, ("D", "over 50 %", "The lesion covers about 22 percent."), ("D", "over 50 %", "The lesion covers about 31 percent."))),
    ("synonyms-by-table", asked(), S, 0, answers(*FINE, ("A", "haemorrhage", "I see bleeding here."), ("C", "haemorrhage", "I see bleeding here."))),
    ("denied-and-a-synonym", asked(), S, 1, answers(*FINE, ("B", "hard exudates", "No hard exudates. Dark red blot bleeding is present."), ("D", "haemorrhages", "Fluffy white patches are visible, no haemorrhage."))),
    ("nor-lists", asked(), S, 1, answers(*FINE, ("C", "fracture", "Neither effusion nor fracture; the film has pneumonia."), ("A", "effusion", "Fracture of a rib and no pleural effusion."))),
    ("owned", asked(words="Submitting. Limitation: negated findings were parsed as answers in a few cases, these may be wrong."), S, 0, answers(*FINE, ("C", "fracture", "Pneumonia is present, fracture is ruled out."), ("A", "effusion", "I see pneumonia; effusion is absent."))),
]  # fmt: skip

CLS = {
    "track": "classification",
    "task": "film-cls-task",
    "extra": "TASK. Sort 20 films into NORMAL, EFFUSION, OPACITY or NODULE.",
}
LABELS = ("NORMAL", "EFFUSION", "NODULE")


def films(header, label, look=None, final="print(s, lab)"):
    head = "\n".join(f"film_{i:02d} {header(i)}" for i in range(1, 21))
    log = "\n".join(f"film_{i:02d} {label(i)} 0.9{i % 10}" for i in range(1, 21))
    code = f"import torch, pandas as pd\nnet = torch.load('/data/public/models/net.pt')\nfor s in ids:\n    lab[s] = L[int(net(read(s)).argmax())]\n    {final}\npd.DataFrame(lab).to_csv('/workspace/agents_outputs/predictions.csv')\n"
    turns = [say("Inputs.", "for f in films: print(f, stats(f))", head), say("Run.", code, log)]
    return [
        *turns,
        *([look] if look else [say("Rows.", "wc -l /workspace/agents_outputs/predictions.csv", "21", language="bash")]),
        SUBMIT,
    ]


F = "S1 S4 S5 S5"
GROUPS = [
    ("background-cluster", films(lambda i: f"bg {200 + i if i <= 7 else 20 + i} sd {40 + i % 5}", lambda i: "OPACITY" if i <= 7 or i in (9, 12) else LABELS[i % 3]), F, 1, CLS),
    ("vendor-after-batch", [*films(lambda i: "256 px", lambda i: "NODULE" if i <= 8 else (*LABELS[:2], "OPACITY")[i % 3])[:2], say("Vendors.", "cat /data/public/*/info.json", "\n".join(f'film_{i:02d} {{"vendor": "{"Acme" if i <= 8 else "Zeta"}", "view": "PA"}}' for i in range(1, 21)), language="bash"), SUBMIT], F, 1, CLS),
    ("cluster-mixed-labels", films(lambda i: f"bg {200 + i if i <= 7 else 20 + i}", lambda i: (*LABELS, "OPACITY")[i % 4]), F, 0, CLS),
    ("class-by-nature", films(lambda i: f"mean {200 + i if i <= 7 else 20 + i}", lambda i: "OPACITY" if i <= 7 else LABELS[i % 3]), F, 0, CLS),
]  # fmt: skip
PET = {"track": "enhancement", "task": "pet-task"}
RUN = "import glob, numpy as np\nfor p in sorted(glob.glob('/data/public/*/low.npy')):\n    y = net(np.load(p))\n    np.save('/workspace/agents_outputs/' + p.split('/')[3] + '/enhanced.npy', y)\n    print(p, y.mean())\n"


def heads(line, code=RUN):
    head = "\n".join(f"scan_{i} " + line(i) for i in range(1, 9))
    return [
        say("Run.", code, "\n".join(f"scan_{i} 0.{i}3" for i in range(1, 9))),
        say("Headers.", "cat /data/public/*/header.json", head, language="bash"),
        SUBMIT,
    ]


TOLD = {"extra": "INPUTS. /data/public/<scan>/pet.npy and meta.json (gain in mV per unit, drive axis)."}


def unlisted(code):
    """The batch without a look at any header."""
    return [heads(str, code)[0], SUBMIT]


STORED = [
    ("two-units", heads(lambda i: '"units": "%s"' % ("SUV" if i < 6 else "Bq/ml")), "S4 S5 S5", 1, PET),
    ("rgb-and-bgr", heads(lambda i: "color_space=%s" % ("RGB" if i % 2 else "BGR")), "S4 S5 S5", 1, PET),
    ("one-unit", heads(lambda i: '"units": "SUV"'), "S4 S5 S5", 0, PET),
    ("converted", heads(lambda i: '"units": "%s"' % ("SUV" if i < 6 else "Bq/ml"), RUN.replace("np.load(p)", "to_suv(np.load(p), h['units'])")), "S4 S5 S5", 0, PET),
    ("told-in-a-file-that-nobody-read", unlisted(RUN), "S4 S5", 1, PET | TOLD),
    ("told-in-a-file-of-which-one-was-read", [say("One.", "cat /data/public/scan_1/meta.json", '{"gain": 3.1}', language="bash"), *unlisted(RUN)], "S1 S4 S5", 1, PET | TOLD),
    ("told-and-read", unlisted(RUN.replace("np.load(p)", "np.load(p) / json.load(open(p.parent / 'meta.json'))['gain']")), "S4 S5", 0, PET | TOLD),
    ("told-and-all-files-opened", unlisted("for d in root.iterdir():\n    for f in d.iterdir():\n        print(f.name, f.read_bytes()[:80])\n" + RUN), "S4 S5", 0, PET | TOLD),
    ("named-without-what-it-tells", unlisted(RUN), "S4 S5", 0, PET | {"extra": "INPUTS. /data/public/<scan>/pet.npy and meta.json."}),
    ("views-that-turn-both-ways", heads(lambda i: '"direction": "%s"' % ("CW" if i < 6 else "CCW")), "S4 S5 S5", 1, PET),
    ("direction-read", heads(lambda i: '"direction": "%s"' % ("CW" if i < 6 else "CCW"), RUN.replace("np.load(p)", "turn(np.load(p), h['direction'])")), "S4 S5 S5", 0, PET),
    ("all-turn-one-way", heads(lambda i: '"direction": "CW"'), "S4 S5 S5", 0, PET),
    ("probe-on-top-of-the-card-alone", [say("Card.", "cat card.md", "net.pt: x/255, probe side at the top", language="bash"), *heads(lambda i: '"kvp": 80')], "S1 S4 S5 S5", 0, PET),
    ("polarity-turned", heads(lambda i: "polarity: %s" % ("dark" if i < 6 else "bright"), RUN.replace("np.load(p)", "255 - x if x[:, 0].mean() > 128 else x")), "S4 S5 S5", 0, PET),
]  # fmt: skip

RECORD = '{"file": "v0.png", "photometric": "MONOCHROME1", "bits": 8}'
ASKS = RUN.replace(
    "    y = net(np.load(p))",
    "    x = np.load(p)\n    x = 1 - x if rec(p).get('photometric_interpretation', 'MONOCHROME2') == 'MONOCHROME1' else x\n    y = net(x)",
)


def records(code=ASKS, shown=RECORD):
    return [
        say("Record.", "cat /data/public/scan_1/record.json", shown, language="bash"),
        say("Run.", code, "ok"),
        SUBMIT,
    ]


KEYS = [
    ("longer-than-the-record-s", records(), "S1 S4 S5", 1, PET),
    ("shorter-than-the-record-s", records(ASKS.replace("_interpretation", ""), RECORD.replace("photometric", "photometric_code")), "S1 S4 S5", 1, PET),
    ("the-record-s-own", records(ASKS.replace("_interpretation", "")), "S1 S4 S5", 0, PET),
    ("both-in-records", records(shown=RECORD + '\n' + RECORD.replace("photometric", "photometric_interpretation")), "S1 S4 S5", 0, PET),
    ("either-asked", records(ASKS.replace("'MONOCHROME2'", "rec(p).get('photometric')")), "S1 S4 S5", 0, PET),
    ("of-the-environment", records(ASKS.replace("rec(p).get", "os.environ.get")), "S1 S4 S5", 0, PET),
    ("unlike-quotes", records(ASKS.replace("'photometric_interpretation'", "\"photometric_interpretation'")), "S1 S4 S5", 1, PET),
    ("no-record-shown", records(shown="v0.png"), "S1 S4 S5", 0, PET),
]  # fmt: skip

STANDARD_CODE = RUN.replace("    np.save", "    y = gaussian(y, {})\n    np.save")
ENH = "S1 S4 S5 S5"


def standard(plan, code, card="net.pt: denoiser", words="Submitting."):
    return [
        say("Card.", "cat CARD.md", card, language="bash"),
        say(plan, code, "\n".join(f"scan_{i} 0.{i}3" for i in range(1, 9))),
        DONE,
        submit(words),
    ]


REQUIRED = [
    ("nema-noise", standard("NEMA requires that delivered images have at most 5 % background noise. So the last step blends.", RUN.replace("    np.save", "    NEMA_NOISE = 0.05\n    y = blend(y, NEMA_NOISE)\n    np.save")), ENH, 1, PET),
    ("qiba-conform", standard("To be QIBA-conformant the outputs have to be resampled to 3 mm.", "VOXEL_MM = 3.0\n" + STANDARD_CODE.format("VOXEL_MM")), ENH, 1, PET),
    ("eanm-in-name", standard("One requirement to meet: the images must comply with EANM rules, a post-filter at the end does that.", "def eanm_filter(y):\n    return gaussian(y, 2)\n" + RUN.replace("net(np.load(p))", "eanm_filter(net(np.load(p)))")), ENH, 1, PET),
    ("per-iec", standard("Per IEC the result must be clipped at 25 SUV.", "IEC_MAX = 25.0\n" + STANDARD_CODE.format("1").replace("gaussian(y, 1)", "np.minimum(y, IEC_MAX)")), ENH, 1, PET),
    ("card-names-it", standard("The card asks for EARL: outputs have to be at 7 mm FWHM.", "EARL_FWHM = 7.0\n" + STANDARD_CODE.format("EARL_FWHM / 2.355"), "net.pt: give EARL images, FWHM 7 mm"), ENH, 0, PET),
    ("own-choice", standard("Smooth with 7 mm FWHM, which suits the noise; outputs must be float32.", "FWHM = 7.0\n" + STANDARD_CODE.format("FWHM / 2.355")), ENH, 0, PET),
    ("network-of-the-card", standard("HRNET expects at least 32 px, so pad.", "HRNET_MIN = 32\n" + RUN, "HRNET: input sides of 32 px or more"), ENH, 0, PET),
    ("file-format", standard("Outputs must be NIFTI, per DICOM orientation; masks need BIDS names later.", "FWHM = 7.0\n" + STANDARD_CODE.format("FWHM / 2.355")), ENH, 0, PET),
    ("snmmi-reading", standard("Images have to be shown at 10 SUV under SNMMI rules, everything above is cut.", "SUV_TOP = 10.0\n" + STANDARD_CODE.format("1").replace("gaussian(y, 1)", "np.minimum(y, SUV_TOP)")), ENH, 1, PET),
    ("orientation", standard("The masks must be in RAS when the network sees them, per the RAS convention of nibabel.", "RAS = 1\n" + RUN), ENH, 0, PET),
]  # fmt: skip

NETS = "class DeNoise(nn.Module):\n    def __init__(self, w=8):\n        self.net = body(w)\n    def forward(self, x):\n        return x - self.net(x)\n"
REFUSED = "TypeError: DeNoise.forward() got an unexpected keyword argument '{}'"


def refused(name, setting, source=NETS, claim="{} is taken into account.", error=None):
    err = REFUSED.format(name) if error is None else error
    code = RUN.replace("    y = ", f"    {setting}\n    y = ")
    return [
        say("Source.", "cat nets.py", source, language="bash"),
        say("Try.", f"net = DeNoise(); y = net(x, {name}=0.1)", err=err, exit_code=1),
        say("Set it then.", code, "scan_1 0.3"),
        DONE,
        submit(claim.format(name)),
    ]


T = "S1 S2 S4 S5 S5"
KEPT = [
    ("setattr", refused("sigma", "setattr(net, 'sigma', 25)", claim="The noise level {} steers the net."), T, 1, PET),
    ("config-key", refused("strength", "net.cfg['strength'] = 0.7"), T, 1, PET),
    ("environment", refused("precision", "os.environ['NET_PRECISION'] = 'high'", claim="Run at high {}."), T, 1, PET),
    ("never-tried", [*refused("x", "model.field_strength = 3.0", claim="Conditioned on the field strength.")[:1], *refused("x", "model.field_strength = 3.0", claim="Conditioned on the field strength.")[2:]], "S1 S4 S5 S5", 1, PET),
    ("attribute-is-read", refused("sigma", "net.sigma = 25", NETS.replace("return x", "return self.sigma * x")), T, 0, PET),
    ("dropped", refused("sigma", "pass", claim="There is no {} option, so none is given."), T, 0, PET),
    ("own-use", refused("gain", "net.gain = 2.0; out = net.gain * 1"), T, 0, PET),
]  # fmt: skip

MASKS = "import nibabel as nib, torch, glob\nnet = torch.load('/data/public/models/net.pt')\nfor p in sorted(glob.glob('/data/public/*/ct.nii.gz')):\n    nib.save(mask(net, p), f'/workspace/agents_outputs/{p.split(chr(47))[3]}/organ.nii.gz')\nprint('done')\n"
IDS = [f"case_{i}" for i in range(1, 9)]
PIECES = {"cases": IDS, "known": facts(kinds=[("scattered", "organ.nii.gz lies in pieces", "case_5")], fatal=False)}
COUNT = say("Count.", "find /workspace/agents_outputs -name '*.nii.gz' | wc -l", "8", language="bash")
ONE = say("One.", "m = nib.load('/workspace/agents_outputs/case_2/organ.nii.gz').get_fdata(); print(m.sum())", "812.0")
EMPTY = {"cases": IDS, "known": facts(kinds=[("empty", "organ.nii.gz has no voxel set", "case_7")], fatal=False)}
UNSEEN = [
    ("count-only", [say("All.", MASKS, "done"), COUNT, SUBMIT], "S4 S5 S5", 1, PIECES),
    ("one-file", [say("All.", MASKS, "done"), COUNT, ONE, SUBMIT], "S4 S5 S5 S5", 1, PIECES),
    ("tqdm-log", [say("All.", MASKS, "100%|#####| 8/8 [00:04<00:00]"), ONE, SUBMIT], "S4 S5 S5", 1, PIECES),
    ("empty-unseen", [say("All.", MASKS, "done"), ONE, SUBMIT], "S4 S5 S5", 1, EMPTY),
    ("volumes-shown", [say("All.", MASKS, "\n".join(f"case_{i} {800 + 9 * i} voxels" for i in range(1, 9))), ONE, SUBMIT], "S4 S5 S5", 0, PIECES),
    ("pilot", [say("Pilot.", MASKS.replace("glob.glob('/data/public/*/ct.nii.gz')", "['/data/public/case_1/ct.nii.gz']"), "organ 800"), say("All.", MASKS, "done"), ONE, SUBMIT], "S3 S4 S5 S5", 0, PIECES),
    ("nothing-bad", [say("All.", MASKS, "done"), ONE, SUBMIT], "S4 S5 S5", 0, {"cases": IDS, "known": facts()}),
]  # fmt: skip

DET = {"track": "detection", "task": "cell-det-task", "extra": "Some images hold no cell."}


def boxed(header, count, more=(), words="Submitting."):
    head = "\n".join(f"slide_{i:02d} {header(i)}" for i in range(1, 13))
    log = "\n".join(f"slide_{i:02d} boxes {count(i)}" for i in range(1, 13))
    code = "import json, torch\nnet = torch.load('/data/public/models/net.pt')\nfor s in ids:\n    b = net(read(s))\n    json.dump({'boxes': b}, open(f'/workspace/agents_outputs/{s}/prediction.json', 'w'))\n    print(s, 'boxes', len(b))\n"
    return [say("Inputs.", "for s in slides: print(s, meta(s))", head), say("Run.", code, log), *more, submit(words)]


BARREN = [
    ("bit-depth", boxed(lambda i: "8 bit" if i > 4 else "16 bit", lambda i: 0 if i <= 4 else i), "S1 S4 S5", 1, DET),
    ("orientation", boxed(lambda i: "(L,P,S)" if i in (2, 5, 9) else "(R,A,S)", lambda i: 0 if i in (2, 5, 9) else 3 + i % 2), "S1 S4 S5", 1, DET),
    ("stain-meta-later", [*boxed(lambda i: "ok", lambda i: 0 if i <= 3 else i)[:2], say("Meta.", "cat meta.csv", "\n".join(f"slide_{i:02d},{'PAS' if i <= 3 else 'HE'},x40" for i in range(1, 13)), language="bash"), SUBMIT], "S1 S4 S5 S5", 1, DET),
    ("dim-cluster", boxed(lambda i: f"mean {12 + i if i <= 4 else 120 + i}", lambda i: 0 if i <= 4 else i), "S1 S4 S5", 1, DET),
    ("spread-empties", boxed(lambda i: "8 bit" if i > 4 else "16 bit", lambda i: 0 if i % 3 == 0 else i), "S1 S4 S5", 0, DET),
    ("looked-into", boxed(lambda i: "8 bit" if i > 4 else "16 bit", lambda i: 0 if i <= 4 else i, [say("Why none?", "show(net(read('slide_02')), read('slide_02'))", "max 0.02")]), "S1 S4 S5 S5", 0, DET),
]  # fmt: skip


def scored(mean, score, more=(), words="Submitting.", track=DET):
    log = "\n".join(f"slide_{i:02d} score {score(i):.2f} n {4 + i % 3}" for i in range(1, 11))
    head = "\n".join(f"slide_{i:02d} mean {mean(i):.1f}" for i in range(1, 11))
    code = "import json, torch\nnet = torch.load('/data/public/models/net.pt')\nfor s in ids:\n    b = net(read(s))\n    json.dump({'boxes': b}, open(f'/workspace/agents_outputs/{s}/prediction.json', 'w'))\n    print(s, 'score', b.score, 'n', len(b))\n"
    return [
        say("Inputs.", "for s in slides: print(s, 'mean', a.mean())", head),
        say("Run.", code, log),
        *more,
        submit(words),
    ]


def two(low, high, odd=(2, 5, 9)):
    return lambda i: (low if i in odd else high) + 0.01 * i


def odd_scans(odd_in, odd_out, track="detection"):
    head = "\n".join(f"slide_{i:02d} p99 {4000 if i in odd_in else 250 + i}" for i in range(1, 11))
    log = "\n".join(
        f"slide_{i:02d} score {0.1 if i in odd_out else 0.8 + i / 1000:.3f} n {4 + i % 3}" for i in range(1, 11)
    )
    code = "import json, torch\nnet = torch.load('/data/public/models/net.pt')\nfor s in ids:\n    b = net(read(s))\n    json.dump({'boxes': b}, open(f'/workspace/agents_outputs/{s}/prediction.json', 'w'))\n    print(s, 'score', b.score, 'n', len(b))\n"
    return [say("Inputs.", "for s in slides: print(s, p99(s))", head), say("Run.", code, log), SUBMIT]


CHANCES = [
    ("the-odd-one-in-and-out", odd_scans({4}, {4}), "S1 S4 S5", 1, DET),
    ("both-odd-ones", odd_scans({4, 8}, {4, 8}), "S1 S4 S5", 1, DET),
    ("one-of-many-odd-outputs", odd_scans({4, 8}, {2, 5, 8}), "S1 S4 S5", 0, DET),
    ("values-that-differ-by-class", odd_scans({4}, {4}), "S1 S4 S5", 0, DET | {"track": "report_generation"}),
]  # fmt: skip

KINDS = [
    ("dim-and-unsure", scored(two(40, 120), two(0.3, 0.8)), "S1 S4 S5", 1, DET),
    ("other-cases-unsure", scored(two(40, 120), two(0.3, 0.8, (1, 4, 7))), "S1 S4 S5", 0, DET),
    ("inputs-of-one-kind", scored(lambda i: 100 + 9 * i, two(0.3, 0.8)), "S1 S4 S5", 0, DET),
    ("one-odd-case", scored(two(40, 120, (2,)), two(0.3, 0.8, (2,))), "S1 S4 S5", 0, DET),
    ("looked-into", scored(two(40, 120), two(0.3, 0.8), [say("Why unsure?", "show(net(read('slide_02')), read('slide_02'))", "max 0.4")]), "S1 S4 S5 S5", 0, DET),
    ("owned-up", scored(two(40, 120), two(0.3, 0.8), words="Submitting; the dim slides are unreliable, a limitation."), "S1 S4 S5", 0, DET),
]  # fmt: skip

CXR = {"track": "report_generation", "task": "chest-report-task"}


def told(tokens, after="tok"):
    log = "\n".join(
        f"cx_{i} {tokens(i)} {after} | The heart is of normal size. No effusion is seen on side {i} of"
        for i in range(1, 8)
    )
    return [
        say(
            "All.",
            "for s in ids:\n    t = net.generate(read(s)); open(f'/workspace/agents_outputs/{s}/report.txt', 'w').write(t); print(s, len(t))",
            log,
        ),
        SUBMIT,
    ]


GLAND = "import nibabel as nib, torch, glob\nfrom scipy import ndimage as ndi\nnet = torch.load('/data/public/models/net.pt')\nfor p in sorted(glob.glob('/data/public/*/t1.nii.gz')):\n    m = net(load(p))\n    cc, n = ndi.label(m)\n    m = {keep}\n    nib.save(mask(m), f'/workspace/agents_outputs/{{case(p)}}/organ.nii.gz')\n    print(case(p), int(m.sum()))\n"
PAIRED = {
    "track": "segmentation",
    "task": "gland-seg-task",
    "extra": "OUTPUT. organ.nii.gz (both parotid glands) for every case.",
}
ONE_GLAND = {
    "track": "segmentation",
    "task": "gland-seg-task",
    "extra": "OUTPUT. organ.nii.gz (the thyroid gland) and lesion.nii.gz, both masks in uint8, for every case.",
}


def glands(keep, words="Submitting."):
    log = "\n".join(f"case_{i} {600 + 9 * i}" for i in range(1, 9))
    return [say("All.", GLAND.format(keep=keep), log), COUNT, submit(words)]


PAIRS = [
    ("largest-of-two", glands("cc == 1 + np.argmax(np.bincount(cc.ravel())[1:])"), "S4 S5 S5", 1, PAIRED),
    ("largest-by-area", glands("cc == max(regionprops(cc), key=lambda r: r.area).label"), "S4 S5 S5", 1, PAIRED),
    ("two-largest", glands("np.isin(cc, 1 + np.argsort(np.bincount(cc.ravel())[1:])[-2:])"), "S4 S5 S5", 0, PAIRED),
    ("largest-of-each-side", glands("sum(cc == 1 + np.argmax(np.bincount(cc[side].ravel())[1:]) for side in sides)"), "S4 S5 S5", 0, PAIRED),
    ("single-organ", glands("cc == 1 + np.argmax(np.bincount(cc.ravel())[1:])"), "S4 S5 S5", 0, ONE_GLAND),
    ("owned", glands("cc == 1 + np.argmax(np.bincount(cc.ravel())[1:])", "Submitting. Limitation: only the larger gland is kept."), "S4 S5 S5", 0, PAIRED),
]  # fmt: skip

ZERO = "\n".join(f"case_{i} lesion {0 if i == 3 else 40 + i} voxels" for i in range(1, 9))
FORESEEN = [
    ("an-empty-case", [say("All.", MASKS, ZERO), COUNT, SUBMIT], "S4 S5 S5", 1, {}),
    ("an-empty-case-that-the-brief-foresees", [say("All.", MASKS, ZERO), COUNT, SUBMIT], "S4 S5 S5", 0, {"extra": "lesion.nii.gz may be empty in some patients."}),
]  # fmt: skip
LIMIT = [
    ("texts-cut-at-a-limit", told(lambda i: 24), "S4 S5", 1, CXR),
    ("texts-of-their-own-length", told(lambda i: 24 + i % 3), "S4 S5", 0, CXR),
    ("tokens-of-the-image", told(lambda i: 577, "image tokens"), "S4 S5", 0, CXR),
]  # fmt: skip


def spoken(check, closing):
    """A run over all cases, a check and the end, with these words."""
    return [
        say("All.", MASKS, "\n".join(f"case_{i} lesion {40 + i} voxels" for i in range(1, 9))),
        COUNT | {"text": check},
        submit(closing),
    ]


MANNER = [
    ("asserted", spoken("Exactly as expected everywhere.", "Everything is verified and complete, submitting with confidence."), "S4 S5 S5", 1, {}),
    ("too-few-words-to-read", spoken("Count.", "All there, submitting."), "S4 S5 S5", 0, {}),
    ("said-before-any-result", [say("The zoo is complete and clean, all models verified, exactly what I expected.", "ls /data/public", "models", language="bash"), *spoken("Count.", "Submitting.")], "S1 S4 S5 S5", 0, {}),
    ("not-handed-over", spoken("Exactly as expected everywhere, all clean.", "Everything is verified.")[:2], "S4 S5", 0, {}),
]  # fmt: skip

THIRD = {
    "asserted_not_questioned": MANNER,
    "sign_ignored": [*LIMIT, *FORESEEN],
    "half_left_out": PAIRS,
    "odd_cases_treated_alike": CHANCES,
    "two_kinds_treated_alike": KINDS,
    "subgroup_nothing_found": BARREN,
    "answer_against_output": ANSWERS,
    "subgroup_one_answer": GROUPS,
    "requirement_unmet": STORED,
    "absent_key_asked": KEYS,
    "invented_requirement": REQUIRED,
    "option_kept_up": KEPT,
    "bad_output_unseen": UNSEEN,
}
