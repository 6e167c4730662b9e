"""Cases of the fourth round for E3: requirements on inputs, tables of cases, stated ranges, disputes within a group."""

from __future__ import annotations

from tiny_runs import SUBMIT, say

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


N = "S1 S4 S5 S5"
UNMET = [
    ("yaml-never-opened", with_card("net.pt - three classes, takes grey / 255, polarity as in MONOCHROME2 exports", CELLS), N, 1, XRAY),
    ("itk-in-lps", with_card("net.pt: 3-D net; volumes are fed in LPS, 1 channel", ITK), N, 1, SEG),
    ("cv2-grey-flag", with_card("net.pt: pictures at the full range of the file, scaled to [0, 1]", CELLS.replace("imageio.imread(p)", "cv2.imread(p, cv2.IMREAD_GRAYSCALE)").replace("predictions.csv", "q_1/answer.json")), N, 1, QA),
    ("see-the-xml", with_card("net.pt: tiles as scanned.\nThe pitch differs between scanners, see slide.xml of each slide.", CELLS, LOG), N, 1, XRAY | {"extra": "INPUTS. /data/public/<slide>/view.png with slide.xml beside it.\nTASK. Sort into A, B or C."}),
    ("read-over-cases", with_card("net.pt - three classes, takes grey / 255, polarity as in MONOCHROME2 exports", "for d in dirs:\n    print(d, yaml.safe_load(open(f'{d}/acq.yaml')))\n" + CELLS), N, 0, XRAY),
    ("oriented-by-itk", with_card("net.pt: 3-D net; volumes are fed in LPS, 1 channel", ITK.replace("    y =", "    im = sitk.DICOMOrient(im, 'LPS')\n    y =")), N, 0, SEG),
]  # fmt: skip

FOURTH = {"requirement_unmet": UNMET}
