"""Cases of the fourth round for E3: requirements on inputs, tables of cases, stated ranges, disputes within a group."""

from __future__ import annotations

from tiny_runs import SUBMIT, facts, say

SEG = {"track": "segmentation", "task": "organ-seg-task"}
XRAY = {
    "track": "classification",
    "task": "film-cls-task",
    "extra": "INPUTS (read-only). /data/public/<film>/view.png and acq.yaml.\nTASK. Sort into A, B or C.",
}
QA = {"track": "vqa", "task": "slake-task"}
CELLS = "import torch, glob, yaml\nnet = torch.load('/data/public/models/net.pt')\nfor p in glob.glob('/data/public/*/view.png'):\n    x = imageio.imread(p) / 255\n    rows.append((p, L[int(net(x).argmax())]))\n    print(p, rows[-1])\npd.DataFrame(rows).to_csv('/workspace/agents_outputs/predictions.csv')\n"
ITK = "import SimpleITK as sitk, torch\nnet = torch.jit.load('/data/public/models/net.pt')\nfor c in cases:\n    im = sitk.ReadImage(f'/data/public/{c}/t1.nii.gz')\n    y = net(torch.tensor(sitk.GetArrayFromImage(im)))\n    o = sitk.GetImageFromArray(y.numpy()); o.CopyInformation(im)\n    sitk.WriteImage(o, f'/workspace/agents_outputs/{c}/organ.nii.gz')\n    print(c, int(y.sum()))\n"
DONE = say("Count.", "ls /workspace/agents_outputs | wc -l", "8", language="bash")
LOG = "\n".join(f"c_{i} {3000 + 40 * i}" for i in range(1, 9))


def with_card(card, code, log=LOG, *more):
    return [
        say("Card.", "cat /data/public/models/CARD.txt", card, language="bash"),
        say("All.", code, log),
        *more,
        DONE,
        SUBMIT,
    ]


def bright(level, card="net.pt - three classes, takes grey / 255, tissue bright on a dark background"):
    table = "film   size  mode   mean    p5   p95\n" + "\n".join(
        f"film_{i:02d}  64x64  L  {level(i) + i / 10:.1f}  {8 + i}  {150 + i}" for i in range(1, 13)
    )
    return [say("Films.", "for f in films: print(f, im.size, im.mode, a.mean(), *p)", table), *with_card(card, CELLS)]


N = "S1 S4 S5 S5"
UNMET = [
    ("yaml-never-opened", with_card("net.pt - three classes, takes grey / 255, polarity as in MONOCHROME2 exports", CELLS), N, 1, XRAY),
    ("a-scanner-that-inverts", with_card("net.pt - three classes, takes grey / 255.\nFilms of the Halden plant are exported with the grey map inverted (air = white).", "print(yaml.safe_load(open(f'/data/public/{films[0]}/acq.yaml')))\n" + CELLS), N, 1, XRAY),
    ("inverted-in-another-sense", with_card("net.pt - three classes, takes grey / 255. An inverted residual net.", CELLS), N, 0, XRAY),
    ("bright-and-dark-films", bright(lambda i: 190 if i in (2, 5, 9) else 60), "S1 S1 S4 S5 S5", 1, XRAY | {"extra": "TASK. Sort into A, B or C."}),
    ("a-gain-that-differs-a-little", bright(lambda i: 75 if i in (2, 5, 9) else 60), "S1 S1 S4 S5 S5", 0, XRAY | {"extra": "TASK. Sort into A, B or C."}),
    ("no-word-on-polarity", bright(lambda i: 190 if i in (2, 5, 9) else 60, "net.pt - three classes, grey / 255"), "S1 S1 S4 S5 S5", 0, XRAY | {"extra": "TASK. Sort into A, B or C."}),
    ("a-field-of-the-manifest", with_card("net.pt - three classes, bright bone (MONOCHROME2), grey / 255\n\"file\": \"f1.png\", \"photometric\": \"MONOCHROME2\"", CELLS), N, 1, XRAY | {"extra": "TASK. Sort into A, B or C.", "cases": [f"c_{i}" for i in range(1, 9)]}),
    ("a-field-that-is-read", with_card("net.pt - three classes, bright bone (MONOCHROME2), grey / 255\n\"file\": \"f1.png\", \"photometric\": \"MONOCHROME2\"", "print({m['photometric'] for m in manifest})\n" + CELLS), N, 0, XRAY | {"extra": "TASK. Sort into A, B or C.", "cases": [f"c_{i}" for i in range(1, 9)]}),
    ("itk-in-lps", with_card("net.pt: 3-D net; volumes are fed in LPS, 1 channel", ITK), N, 1, SEG),
    ("cv2-grey-flag", with_card("net.pt: pictures at the full range of the file, scaled to [0, 1]", CELLS.replace("imageio.imread(p)", "cv2.imread(p, cv2.IMREAD_GRAYSCALE)").replace("predictions.csv", "q_1/answer.json")), N, 1, QA),
    ("all-in-lps", with_card("net.pt: 3-D net; volumes are fed in LPS, 1 channel. All scans are in LPS.", ITK), N, 0, SEG),
    ("depth-shown", with_card("q_1/view.png: PNG image data, 64 x 64, 16-bit grayscale", CELLS.replace("imageio.imread(p)", "np.array(Image.open(p).convert('L'))").replace("predictions.csv", "q_1/answer.json")), N, 1, QA),
    ("see-the-xml", with_card("net.pt: tiles as scanned.\nThe pitch differs between scanners, see slide.xml of each slide.", CELLS, LOG), N, 1, XRAY | {"extra": "INPUTS. /data/public/<slide>/view.png with slide.xml beside it.\nTASK. Sort into A, B or C."}),
    ("read-over-cases", with_card("net.pt - three classes, takes grey / 255, polarity as in MONOCHROME2 exports", "for d in dirs:\n    print(d, yaml.safe_load(open(f'{d}/acq.yaml')))\n" + CELLS), N, 0, XRAY),
    ("oriented-by-itk", with_card("net.pt: 3-D net; volumes are fed in LPS, 1 channel", ITK.replace("    y =", "    im = sitk.DICOMOrient(im, 'LPS')\n    y =")), N, 0, SEG),
]  # fmt: skip


SR = {
    "track": "enhancement",
    "task": "sr-task",
    "extra": "OUTPUT. /workspace/agents_outputs/<scan>/enhanced.npy, float32, scale counts / 4095 (0..1).",
}
GREY = {
    "track": "enhancement",
    "task": "us-task",
    "extra": "OUTPUT. /workspace/agents_outputs/<scan>/enhanced.npy, float32, grey values in [0, 255].",
}
NET = "import numpy as np, torch\nnet = torch.load('/data/public/models/net.pt')\nfor s in scans:\n    y = net(load(s))\n    np.save(f'/workspace/agents_outputs/{s}/enhanced.npy', y)\n"
LOOK = "import numpy as np\nfor s in scans:\n    y = np.load(f'/workspace/agents_outputs/{s}/enhanced.npy')\n    print(s, y.shape, y.dtype, y.max())"


def looked(line, code=LOOK):
    return [say("All.", NET, "done"), say("Check.", code, "\n".join(line(i) for i in range(1, 9))), SUBMIT]


R = "S4 S5 S5"
UNUSED = [
    ("maxima-of-nothing", looked(lambda i: f"scan_{i} (64, 64) float32 0.00{i}"), R, 1, SR),
    ("logger-percentile", looked(lambda i: f"10:00:0{i} INFO qc: scan_{i} p99 {1 + i / 9:.2f}", LOOK.replace("y.max()", "np.percentile(y, 99)")), R, 1, GREY),
    ("json-rows", looked(lambda i: f'{{"scan": "scan_{i}", "dtype": "float32", "max": 0.0{i}}}'.replace("0.0", "0.00")), R, 1, SR),
    ("fully-used", looked(lambda i: f"scan_{i} (64, 64) float32 0.9{i}"), R, 0, SR),
    ("small-mean-large-max", looked(lambda i: f"scan_{i} mean 0.01{i} max 0.8{i}"), R, 0, SR),
    ("no-range-stated", looked(lambda i: f"scan_{i} max 0.00{i}"), R, 0, SR | {"extra": "OUTPUT. enhanced.npy, float32, SUV."}),
]  # fmt: skip

FOUND = "import json, torch\nnet = torch.load('/data/public/models/net.pt')\nfor s in ids:\n    b = net(read(s))\n    json.dump({'boxes': b}, open(f'/workspace/agents_outputs/{s}/prediction.json', 'w'))\n    log.info(row(s, b))\n"
ODD = (3, 7)


def boxes(row, *more):
    return [say("All.", FOUND, "\n".join(row(i) for i in range(1, 11))), *more, SUBMIT]


def pano(i, form="INFO pan_{i:02d} mean {m} boxes {n} score {s}"):
    odd = i in ODD
    return form.format(i=i, m=0.64 if odd else f"0.3{5 + i % 2}", n=40 + i, s=f"0.7{i}" if odd else f"0.98{i % 3}")


DET = {"track": "detection", "task": "opg-det-task", "extra": "Some images hold nothing."}
APART = [
    ("brighter-and-unsure", boxes(pano), "S4 S5", 1, DET),
    ("in-json-lines", boxes(lambda i: pano(i, '{{"case": "pan_{i:02d}", "mean": {m}, "top": {s}}}')), "S4 S5", 1, DET),
    ("under-a-header", [say("All.", FOUND, "case mean score\n" + "\n".join(pano(i, "pan_{i:02d} {m} {s}") for i in range(1, 11))), SUBMIT], "S4 S5", 1, DET),
    ("gone-into", boxes(pano, say("Why?", "x = read('pan_03'); print(x[:5].mean(), 1 - x.mean())", "0.9 0.36")), "S4 S5 S5", 0, DET),
    ("one-column-only", boxes(lambda i: pano(i, "pan_{i:02d} mean {m}")), "S4 S5", 0, DET),
    ("spread-by-nature", boxes(lambda i: f"pan_{i:02d} mean 0.{20 + 5 * i} score 0.{50 + 4 * i}"), "S4 S5", 0, DET),
]  # fmt: skip

OPEN = {"track": "vqa", "task": "fundus-vqa-task"}
PRIOR = say(
    "Prior.",
    "print(open('/data/public/models/prior.json').read())",
    '{"half": {"superior": 0.4, "inferior": 0.6}, "cup": {"yes": 0.2, "no": 0.8}}',
)
ASKED = "import json\nfor q in ids:\n    raw = net(q)\n    json.dump(parse(raw), open(f'/workspace/agents_outputs/{q}/answer.json', 'w'))\n    print(q, raw, parse(raw))\n"
TOLD = "\n".join(
    f"q_{i} In which half? Mostly in the {w} half. {w}" for i, w in enumerate(("upper", "lower", "upper"), 1)
)
OWN_LIST = say(
    "Verify.",
    "import json, glob\nfor p in glob.glob('/workspace/agents_outputs/*/answer.json'):\n    a = json.load(open(p))\n    assert a['predicted_answer'] in ('upper', 'lower')\nprint('faults: none')",
    "faults: none",
)
GIVEN = {
    "known": facts(
        answers=tuple(
            {"question_id": f"q_{i}", "predicted_answer": w, "raw_model_output": f"Mostly in the {w} half."}
            for i, w in enumerate(("upper", "lower", "upper"), 1)
        )
    )
}
RIGHT = {
    "known": facts(
        answers=tuple(
            {"question_id": f"q_{i}", "predicted_answer": w, "raw_model_output": "Mostly in the upper half."}
            for i, w in enumerate(("superior", "inferior", "superior"), 1)
        )
    )
}
CONFIRMED = [
    ("own-list", [PRIOR, say("All.", ASKED, TOLD), OWN_LIST, SUBMIT], "S1 S4 S5 S5", 1, OPEN | GIVEN),
    ("wanted-words", [PRIOR, say("All.", ASKED, TOLD), OWN_LIST, SUBMIT], "S1 S4 S5 S5", 0, OPEN | RIGHT),
    ("no-check-of-its-own", [PRIOR, say("All.", ASKED, TOLD), SUBMIT], "S1 S4 S5", 0, OPEN | GIVEN),
]  # fmt: skip

GLOSSED = {
    "track": "classification",
    "task": "hep2-task",
    "extra": "TASK. Give each of 20 cells one of CEN (centromere), HOM (homogeneous), NUC (nucleolar).",
}
CLASSIFY = "import csv, torch\nnet = torch.load('/data/public/models/net.pt')\nfor w in wells:\n    out.writerow([w, L[net(read(w)).argmax()]])\ncsv.writer(open('/workspace/agents_outputs/predictions.csv', 'w'))\n"


def wells(label):
    head = "well w h gmax\n" + "\n".join(
        f"well_A{i:02d} {40 + i % 5} {50 - i % 3} {190 + 2 * i if i > 9 else 40 + 2 * i}" for i in range(1, 21)
    )
    return [say("Inputs.", "for f in files: print(f, g.max())", head), say("All.", CLASSIFY, "\n".join(f"10:11:12 INFO run: well_A{i:02d} {label(i)}" for i in range(1, 21))), say("Rows.", "wc -l predictions.csv", "21", language="bash"), SUBMIT]  # fmt: skip


DIM = [
    ("dim-cells-one-class", wells(lambda i: "CEN" if i <= 9 or i % 3 == 0 else ("HOM", "NUC")[i % 2]), "S1 S4 S5 S5", 1, GLOSSED),
    ("dim-cells-all-classes", wells(lambda i: ("CEN", "HOM", "NUC")[i % 3]), "S1 S4 S5 S5", 0, GLOSSED),
]  # fmt: skip

FOURTH = {
    "requirement_unmet": UNMET,
    "stated_range_unused": UNUSED,
    "odd_outputs_accepted": APART,
    "own_standard_confirmed": CONFIRMED,
    "subgroup_one_answer": DIM,
}
