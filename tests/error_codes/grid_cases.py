"""Cases for grids that are changed on the way in: saved with the wrong affine, boxes in other pixels, row and column exchanged."""

from __future__ import annotations

from tiny_runs import SUBMIT, say

OUT = "OUTPUT. /workspace/agents_outputs/<case>/mask.nii.gz, uint8 NIfTI with the shape and affine of the input CT."
VOLUMES = {"track": "segmentation", "task": "organ-seg-task", "extra": OUT}
FREE = VOLUMES | {"extra": "OUTPUT. /workspace/agents_outputs/<case>/mask.nii.gz, uint8 NIfTI."}
PIXELS = "INPUTS. /data/public/<eye>/image.png.\nOUTPUT. /workspace/agents_outputs/<eye>/prediction.json: boxes with class, x1, y1, x2, y2, score, pixels of the original image."
BOXES = {"track": "detection", "task": "lesion-det-task", "extra": PIXELS}
PLACE = "f'/workspace/agents_outputs/{c}/mask.nii.gz'"
IN = "f'/data/public/{c}/ct.nii.gz'"
MIXED = "c1 (48, 48, 14) LAS\nc2 (48, 48, 14) LAS\nc3 (48, 48, 14) RAS\nc4 (48, 48, 14) LAS"
ALIKE = MIXED.replace("RAS", "LAS")
SPACED = "c1 (48, 48, 14) (0.8, 0.8, 3.0)\nc2 (52, 48, 14) (0.9, 0.9, 3.0)\nc3 (60, 60, 20) (0.7, 0.7, 2.0)"
MANY = "eye_01 (128, 128) RGB\neye_02 (128, 128) RGB\neye_03 (176, 128) RGB\neye_04 (160, 160) RGB"
SAME = "eye_01 (128, 128) RGB\neye_02 (128, 128) RGB\neye_03 (128, 128) RGB"
HEAD = "import nibabel as nib, numpy as np, torch, SimpleITK as sitk\nfrom PIL import Image\nimport cv2, json\nnet = torch.load('/data/public/models/net.pt')\n"


def volumes(body, shown=MIXED):
    """Headers, then a batch over the cases whose loop holds this code."""
    loop = "\n".join("    " + line for line in body.strip().split("\n"))
    look = "for p in paths:\n    im = nib.load(p); print(p, im.shape, ''.join(nib.aff2axcodes(im.affine)), im.header.get_zooms())"
    return [
        say("Headers.", look, shown),
        say("All.", f"{HEAD}for c in cases:\n{loop}\n    print(c, 1)", "c1 1"),
        SUBMIT,
    ]


def module(functions, call, shown=MIXED):
    """The same with functions in a module that was written before, and a script that calls them."""
    text = f"cat > /workspace/grid.py <<'P'\n{HEAD}{functions}\nP"
    look = 'python -c "print(nib.aff2axcodes(im.affine), im.shape)"'
    run = f"cd /workspace && python - <<'P'\nfrom grid import *\nfor c in cases:\n    {call}\nP\nls agents_outputs"
    return [
        say("Headers.", look, shown, language="bash"),
        say("Module.", text, language="bash"),
        say("All.", run, "c1", language="bash"),
        SUBMIT,
    ]


def found(body, shown=MANY):
    """Sizes, then a batch of detections."""
    loop = "\n".join("    " + line for line in body.strip().split("\n"))
    saves = "    json.dump({'boxes': boxes}, open(f'/workspace/agents_outputs/{c}/prediction.json', 'w'))\n"
    return [
        say("Sizes.", "for p in paths: print(p, Image.open(p).size)", shown),
        say(
            "All.",
            f"{HEAD}for c in ids:\n    boxes = []\n    p = f'/data/public/{{c}}/image.png'\n{loop}\n{saves}",
            "eye_01 3",
        ),
        SUBMIT,
    ]


def save(affine):
    return f"nib.save(nib.Nifti1Image(y, {affine}), {PLACE})"


ARRAYS = {
    "track": "enhancement",
    "task": "us-task",
    "extra": "OUTPUT. /workspace/agents_outputs/<scan>/enhanced.npy, float32, same shape as the input.",
}


def arrays(body, shown=MANY):
    loop = "\n".join("    " + line for line in body.split("\n"))
    look = "for p in paths: print(p, np.load(p).shape)"
    return [say("Sizes.", look, shown), say("All.", f"{HEAD}for c, p in scans:\n{loop}\n", "s1"), SUBMIT]


READ = f"im = nib.load({IN}); can = nib.as_closest_canonical(im); v = can.get_fdata()\ny = (net(torch.tensor(v)) > 0).numpy().astype('uint8')\n"
TURN = "from nibabel.orientations import *\nt = ornt_transform(io_orientation(im.affine), axcodes2ornt('LPS'))\nb = ornt_transform(axcodes2ornt('LPS'), io_orientation(im.affine))\n"
MONAI = f"tf = Compose([LoadImaged(keys=['image']), EnsureChannelFirstd(keys=['image']), Orientationd(keys=['image'], axcodes='RAS'), ScaleIntensityd(keys=['image'])])\nd = tf({{'image': {IN}}})\ny = net(d['image'][None]).argmax(1)[0].numpy()\n"
ITK = f"im = sitk.ReadImage({IN}); o = sitk.DICOMOrient(im, 'LPS')\ny = net(torch.tensor(sitk.GetArrayFromImage(o))).numpy()\nm = sitk.GetImageFromArray(y)\n"
SETUP = "def read(p):\n    im = nib.load(p)\n    return nib.as_closest_canonical(im), im\n"
CLASS = (
    "class Case:\n    def __init__(self, p):\n        self.im = nib.load(p)\n        self.can = nib.as_closest_canonical(self.im)\n    def save(self, m, path):\n        nib.save(nib.Nifti1Image(m.astype(np.uint8), self.im.affine), path)\ndef go(c):\n    k = Case("
    + IN
    + ")\n    k.save(net(k.can.get_fdata()), "
    + PLACE
    + ")\n"
)
N = "S2 S4 S5"
M = "S2 S2 S4 S5"

# (id, turns, stages, count of E3, count of E5, options)
_VOLUMES = [
    ("array-turned-affine-not", volumes(READ + save("im.affine")), N, 1, 1, VOLUMES),
    ("grid-and-affine-turned", volumes(READ + save("can.affine")), N, 1, 1, VOLUMES),
    ("turned-affine-not-asked", volumes(READ + save("can.affine")), N, 0, 0, FREE),
    ("affine-not-asked-but-wrong", volumes(READ + save("im.affine")), N, 1, 0, FREE),
    ("all-stored-alike", volumes(READ + save("im.affine"), ALIKE), N, 0, 0, VOLUMES),
    ("resampled-back", volumes(READ + "b = nib.processing.resample_from_to(nib.Nifti1Image(y, can.affine), im, order=0)\nnib.save(b, " + PLACE + ")"), N, 0, 0, VOLUMES),
    ("reoriented-back", volumes(READ + TURN + "b = nib.Nifti1Image(y, can.affine).as_reoriented(b)\nnib.save(b, " + PLACE + ")"), N, 0, 0, VOLUMES),
    ("array-applied-and-back", volumes(f"im = nib.load({IN})\n" + TURN + "v = apply_orientation(im.get_fdata(), t)\ny = apply_orientation(net(v), b)\n" + save("im.affine, im.header")), N, 0, 0, VOLUMES),
    ("array-applied-only", volumes(f"im = nib.load({IN})\n" + TURN + "v = apply_orientation(im.get_fdata(), t)\ny = net(v)\n" + save("im.affine, im.header")), N, 1, 1, VOLUMES),
    ("mirrored-back-by-hand", volumes(READ + "if nib.aff2axcodes(im.affine)[0] == 'L': y = y[::-1]\n" + save("im.affine")), N, 0, 0, VOLUMES),
    ("helper-of-two-values", module(SETUP + "def run(c):\n    a, b = read(" + IN + ")\n    y = net(a.get_fdata())\n    " + save("b.affine"), "run(c)"), M, 1, 1, VOLUMES),
    ("helper-out-of-sight-restores", module(SETUP + "from zoo import restore\ndef run(c):\n    a, b = read(" + IN + ")\n    y = restore(net(a.get_fdata()), b)\n    " + save("b.affine"), "run(c)"), M, 0, 0, VOLUMES),
    ("own-function-named-as-a-librarys", module("def load(p):\n    im = nib.load(p)\n    return nib.as_closest_canonical(im)\ndef run(c):\n    a = load(" + IN + ")\n    y = net(a.get_fdata())\n    " + save("a.affine"), "run(c)"), M, 1, 1, VOLUMES),
    ("affine-turned-array-out-of-sight", volumes(READ + "y = known.only(c)\n" + save("can.affine")), N, 1, 1, VOLUMES),
    ("affine-of-the-named-file", volumes(READ + save("can.affine")), N, 1, 1, VOLUMES | {"extra": OUT.replace("affine of the input CT", "affine of ct.nii.gz")}),
    ("class-keeps-both", module(CLASS, "go(c)"), M, 1, 1, VOLUMES),
    ("through-a-dictionary", volumes(f"im = nib.load({IN})\nd = {{'v': nib.as_closest_canonical(im).get_fdata(), 'aff': im.affine}}\ny = net(d['v'])\n" + save("d['aff']")), N, 1, 1, VOLUMES),
    ("workers", module("def run(c):\n    im = nib.load(" + IN + ")\n    y = net(nib.as_closest_canonical(im).get_fdata())\n    " + save("im.affine"), "Pool(2).map(run, cases)"), M, 1, 1, VOLUMES),
    ("itk-copied-from-the-input", volumes(ITK + f"m.CopyInformation(im); sitk.WriteImage(m, {PLACE})"), N, 1, 1, VOLUMES),
    ("itk-saved-as-turned", volumes(ITK + f"m.CopyInformation(o); sitk.WriteImage(m, {PLACE})"), N, 1, 1, VOLUMES),
    ("itk-turned-back", volumes(ITK + f"m.CopyInformation(o); m = sitk.DICOMOrient(m, code(im)); sitk.WriteImage(m, {PLACE})"), N, 0, 0, VOLUMES),
    ("itk-resampled-onto-the-input", volumes(ITK + f"m.CopyInformation(o); m = sitk.Resample(m, im, sitk.Transform(), sitk.sitkNearestNeighbor); sitk.WriteImage(m, {PLACE})"), N, 0, 0, VOLUMES),
    ("itk-filter-object", volumes(f"im = sitk.ReadImage({IN})\nf = sitk.DICOMOrientImageFilter(); f.SetDesiredCoordinateOrientation('LPS')\no = f.Execute(im)\nm = sitk.GetImageFromArray(net(sitk.GetArrayFromImage(o)))\nm.CopyInformation(im); sitk.WriteImage(m, {PLACE})"), N, 1, 1, VOLUMES),
    ("monai-without-inverse", volumes(MONAI + f"nib.save(nib.Nifti1Image(y, nib.load({IN}).affine), {PLACE})"), N, 1, 1, VOLUMES),
    ("monai-inverted", volumes(MONAI + f"y = Invertd(keys='pred', transform=tf)(dict(pred=y))['pred']\nnib.save(nib.Nifti1Image(y, nib.load({IN}).affine), {PLACE})"), N, 0, 0, VOLUMES),
    ("torchio-canonical", volumes(f"im = nib.load({IN})\ns = tio.ToCanonical()(tio.ScalarImage({IN}))\ny = net(s.data)\n" + save("im.affine")), N, 1, 1, VOLUMES),
    ("spacing-never-back", volumes(f"im = nib.load({IN})\nr = nib.processing.resample_to_output(im, (1, 1, 3))\ny = net(r.get_fdata())\n" + save("r.affine"), SPACED), N, 1, 1, VOLUMES),
    ("zoomed-and-zoomed-back", volumes(f"im = nib.load({IN}); a = im.get_fdata()\nz = np.array(im.header.get_zooms())\ny = net(zoom(a, z / 1.0))\ny = zoom(y, 1.0 / z, order=0)\n" + save("im.affine"), SPACED), N, 0, 0, VOLUMES),
    ("zoomed-only", volumes(f"im = nib.load({IN}); a = im.get_fdata()\nz = np.array(im.header.get_zooms())\ny = net(zoom(a, z / 1.0))\n" + save("im.affine"), SPACED), N, 1, 1, VOLUMES),
    ("brought-to-the-shape", volumes(f"im = nib.load({IN}); a = im.get_fdata()\nx = resize(a, (64, 64, 32))\ny = resize(net(x), im.shape, order=0)\n" + save("im.affine"), SPACED), N, 0, 0, VOLUMES),
    ("brought-back-out-of-sight", volumes(f"im = nib.load({IN}); a = im.get_fdata()\nx = resize(a, (64, 64, 32))\ny = table[net(x)]\ny = resize(y, a.shape, order=0)\n" + save("im.affine"), SPACED), N, 0, 0, VOLUMES),
    ("one-input-on-the-other", volumes(f"im = nib.load({IN}); t2 = nib.load(f'/data/public/{{c}}/t2.nii.gz')\nr = nib.processing.resample_from_to(t2, im)\ny = net(np.stack([im.get_fdata(), r.get_fdata()]))\n" + save("im.affine"), SPACED), N, 0, 0, VOLUMES),
    ("a-prior-of-the-models", volumes(f"im = nib.load({IN})\nq = zoom(np.load('/data/public/models/prior.npy'), 2)\ny = q > .5\n" + save("im.affine"), SPACED), N, 0, 0, VOLUMES),
    ("transform-ends-at-the-input", volumes(f"im = nib.load({IN}); v, r = given(c)\nt = nib.orientations.ornt_transform(nib.io_orientation(r.affine), nib.io_orientation(im.affine))\ny = nib.orientations.apply_orientation(net(v), t)\n" + save("im.affine")), N, 0, 0, VOLUMES),
    ("itk-spacing-saved-as-resampled", volumes(f"im = sitk.ReadImage({IN})\nn = [int(round(a * b)) for a, b in zip(im.GetSize(), im.GetSpacing())]\no = sitk.Resample(im, n, sitk.Transform(), sitk.sitkLinear, im.GetOrigin(), (1, 1, 1), im.GetDirection())\nm = sitk.GetImageFromArray(net(sitk.GetArrayFromImage(o)))\nm.CopyInformation(o); sitk.WriteImage(m, {PLACE})", SPACED), N, 1, 1, VOLUMES),
    ("itk-filter-onto-the-input", volumes(f"im = sitk.ReadImage({IN}); o = sitk.DICOMOrient(im, 'LPS')\nm = sitk.GetImageFromArray(net(sitk.GetArrayFromImage(o))); m.CopyInformation(o)\nf = sitk.ResampleImageFilter(); f.SetReferenceImage(im)\nm = f.Execute(m); sitk.WriteImage(m, {PLACE})"), N, 0, 0, VOLUMES),
    ("monai-without-dictionaries", volumes(f"x = LoadImage(image_only=True)({IN})\nx = Orientation(axcodes='RAS')(x)\ny = net(x[None])\n" + save(f"nib.load({IN}).affine")), N, 1, 1, VOLUMES),
    ("only-looked-at", volumes(f"im = nib.load({IN}); can = nib.as_closest_canonical(im)\nprint(can.get_fdata().mean())\ny = net(im.get_fdata())\n" + save("im.affine")), N, 0, 0, VOLUMES),
    ("arrays-at-the-nets-size", arrays("x = resize(np.load(p), (128, 128))\ny = net(x)\nnp.save(f'/workspace/agents_outputs/{c}/enhanced.npy', y)"), N, 1, 1, ARRAYS),
    ("pictures-at-the-nets-size", arrays("x = cv2.resize(cv2.imread(p, 0), (128, 128))\ny = net(x)\ncv2.imwrite(f'/workspace/agents_outputs/{c}/enhanced.png', y)"), N, 1, 1, ARRAYS),
    ("arrays-brought-back", arrays("a = np.load(p)\ny = resize(net(resize(a, (128, 128))), a.shape)\nnp.save(f'/workspace/agents_outputs/{c}/enhanced.npy', y)"), N, 0, 0, ARRAYS),
    ("arrays-enlarged-as-asked", arrays("y = net(zoom(np.load(p), 2))\nnp.save(f'/workspace/agents_outputs/{c}/enhanced.npy', y)"), N, 0, 0, ARRAYS | {"extra": "OUTPUT. /workspace/agents_outputs/<scan>/enhanced.npy at twice the resolution."}),
    ("all-arrays-alike", arrays("x = resize(np.load(p), (128, 128))\ny = net(x)\nnp.save(f'/workspace/agents_outputs/{c}/enhanced.npy', y)", SAME), N, 0, 0, ARRAYS),
    ("owned-up", [*volumes(READ + save("can.affine"))[:-1], SUBMIT | {"text": "A limitation: the masks lie on the canonical grid, not on the CT's."}], N, 0, 1, VOLUMES),
]  # fmt: skip

SMALL = "img = Image.open(p).convert('RGB').resize((128, 128))\nx = torch.tensor(np.asarray(img))\n"
TAKE = "for q in net(x):\n    boxes.append({'x1': q[0] * sx, 'y1': q[1] * sy, 'x2': q[2] * sx, 'y2': q[3] * sy, 'class': 'a', 'score': q[4]})"
PEAKS = "img = Image.open(p)\nheat = net(torch.tensor(np.asarray(img).transpose(2, 0, 1)))[0]\n"
ROW = "boxes.append({'class': 'a', 'x1': cx - w / 2, 'y1': cy - h / 2, 'x2': cx + w / 2, 'y2': cy + h / 2, 'score': float(heat[0])})"
PLAIN = (
    "for q in net(x):\n    boxes.append({'x1': q[0], 'y1': q[1], 'x2': q[2], 'y2': q[3], 'class': 'a', 'score': q[4]})"
)
PAD = "img = cv2.imread(p)\nh, w = img.shape[:2]\ntop = (256 - h) // 2; left = (256 - w) // 2\ncanvas = x = np.zeros((256, 256, 3))\n"
CXCYWH = say("Card.", "cat card.md", "net.pt: rows of [cx, cy, w, h, score], pixels", language="bash")
TWICE = "for j, i in np.argwhere(heat > 0.3):\n    cx, cy = i * 4, j * 4\n    bw = {w}; bh = {h}\n    boxes.append({{'class': 'a', 'x1': max(0, cx - bw{half}), 'y1': max(0, cy - bh{half}), 'x2': cx + bw{half}, 'y2': cy + bh{half}, 'score': 1}})"
_BOXES = [
    ("scale-of-the-small-image", found(SMALL + "sx, sy = img.width / 128, img.height / 128\n" + TAKE), N, 1, 1, BOXES),
    ("opencv-shape", found("img = cv2.resize(cv2.imread(p), (128, 128))\nh, w = img.shape[:2]\nsx, sy = w / 128, h / 128\nx = torch.tensor(img)\n" + TAKE), N, 1, 1, BOXES),
    ("tensor-shape", found(SMALL + "n, k, h, w = x.shape\nsx = w / 128; sy = h / 128\n" + TAKE), N, 1, 1, BOXES),
    ("torch-interpolate", found("x = torch.tensor(np.asarray(Image.open(p)))\nx = F.interpolate(x[None], size=(128, 128))\nsy, sx = x.shape[-2] / 128, x.shape[-1] / 128\n" + TAKE), N, 1, 1, BOXES),
    ("scale-of-the-original", found("im = Image.open(p)\nimg = im.resize((128, 128))\nsx, sy = im.width / 128, im.height / 128\nx = torch.tensor(np.asarray(img))\n" + TAKE), N, 0, 0, BOXES),
    ("original-size-kept-before", found("img = Image.open(p)\nW, H = img.size\nimg = img.resize((128, 128))\nx = torch.tensor(np.asarray(img))\nsx, sy = W / img.width, H / img.height\n" + TAKE), N, 0, 0, BOXES),
    ("scale-one-but-all-alike", found(SMALL + "sx, sy = img.width / 128, img.height / 128\n" + TAKE, SAME), N, 0, 0, BOXES),
    ("x-from-the-row", found(PEAKS + "for i, j in np.argwhere(heat > 0.3):\n    cx, cy, w, h = (i + .5) * 4, (j + .5) * 4, 9, 9\n    " + ROW), N, 1, 1, BOXES),
    ("whole-size-to-each-side", found(PEAKS + TWICE.format(w="size[0] * 4", h="size[1] * 4", half="")), N, 1, 0, BOXES),
    ("half-size-to-each-side", found(PEAKS + TWICE.format(w="size[0] * 4", h="size[1] * 4", half=" / 2")), N, 0, 0, BOXES),
    ("halved-where-it-is-read", found(PEAKS + TWICE.format(w="size[0] * 4 / 2", h="size[1] * 4 / 2", half="")), N, 0, 0, BOXES),
    ("x-from-the-column", found(PEAKS + "for i, j in np.argwhere(heat > 0.3):\n    cx, cy, w, h = (j + .5) * 4, (i + .5) * 4, 9, 9\n    " + ROW), N, 0, 0, BOXES),
    ("clipped-by-every-second", found(PEAKS + "for c, i, j in (heat > .3).nonzero().tolist():\n    cx, cy = (j + .5) * 4, (i + .5) * 4\n    b = np.array([cx - 4, cy - 4, cx + 4, cy + 4])\n    b[0::2] = b[0::2].clip(0, 90); b[1::2] = b[1::2].clip(0, 60)\n    boxes.append(dict(zip(('x1', 'y1', 'x2', 'y2'), b.tolist())) | {'class': 'a', 'score': 1})"), N, 0, 0, BOXES),
    ("clipped-by-every-second-and-exchanged", found(PEAKS + "for c, i, j in (heat > .3).nonzero().tolist():\n    cx, cy = (i + .5) * 4, (j + .5) * 4\n    b = np.array([cx - 4, cy - 4, cx + 4, cy + 4])\n    b[0::2] = b[0::2].clip(0, 90); b[1::2] = b[1::2].clip(0, 60)\n    boxes.append(dict(zip(('x1', 'y1', 'x2', 'y2'), b.tolist())) | {'class': 'a', 'score': 1})"), N, 1, 1, BOXES),
    ("names-in-order", found(PEAKS + "for x, y in np.argwhere(heat > 0.3):\n    cx, cy, w, h = y * 4, x * 4, 9, 9\n    " + ROW), N, 0, 0, BOXES),
    ("torch-nonzero", found(PEAKS + "for _, c, i, j in (heat > .3).nonzero().tolist():\n    cx, cy, w, h = i * 4 + 2, j * 4 + 2, 9, 9\n    " + ROW), N, 1, 1, BOXES),
    ("where-into-x-and-y", found(PEAKS + "xs, ys = np.where(heat > 0.3)\nboxes.append({'class': 'a', 'x1': int(xs.min()), 'y1': int(ys.min()), 'x2': int(xs.max()), 'y2': int(ys.max()), 'score': 1})"), N, 1, 1, BOXES),
    ("where-into-y-and-x", found(PEAKS + "ys, xs = np.where(heat > 0.3)\nboxes.append({'class': 'a', 'x1': int(xs.min()), 'y1': int(ys.min()), 'x2': int(xs.max()), 'y2': int(ys.max()), 'score': 1})"), N, 0, 0, BOXES),
    ("regions-of-skimage", found(PEAKS + "for r in regionprops(label(heat > .3)):\n    x1, y1, x2, y2 = r.bbox\n    boxes.append(dict(label='a', x1=x1, y1=y1, x2=x2, y2=y2, score=.9))"), N, 1, 1, BOXES),
    ("regions-in-order", found(PEAKS + "for r in regionprops(label(heat > .3)):\n    y1, x1, y2, x2 = r.bbox\n    boxes.append(dict(label='a', x1=x1, y1=y1, x2=x2, y2=y2, score=.9))"), N, 0, 0, BOXES),
    ("box-list-of-a-peak", found(PEAKS + "r, k = np.unravel_index(heat.argmax(), heat.shape)\nboxes.append({'bbox': [r * 4 - 8, k * 4 - 8, r * 4 + 8, k * 4 + 8], 'label': 'a', 'score': 1.0})"), N, 1, 1, BOXES),
    ("map-was-transposed", found(PEAKS.replace("[0]\n", "[0].T\n") + "for i, j in np.argwhere(heat > 0.3):\n    cx, cy, w, h = i * 4, j * 4, 9, 9\n    " + ROW), N, 0, 0, BOXES),
    ("reversed-before", found(PEAKS + "for i, j in np.argwhere(heat > 0.3)[:, ::-1]:\n    cx, cy, w, h = i * 4, j * 4, 9, 9\n    " + ROW), N, 0, 0, BOXES),
    ("point-reversed", found(PEAKS + "for q in np.argwhere(heat > 0.3):\n    cx, cy = q[::-1] * 4\n    w = h = 9\n    " + ROW), N, 0, 0, BOXES),
    ("width-and-height-exchanged", found("im = Image.open(p)\nh, w = im.size\nx = torch.tensor(np.asarray(im.resize((128, 128))))\nsx, sy = w / 128, h / 128\n" + TAKE), N, 1, 1, BOXES),
    ("squeezed-and-back-by-the-width", found("im = Image.open(p)\nw, h = im.size\nx = torch.tensor(np.asarray(im.resize((128, 128))))\nsx = sy = w / 128\n" + TAKE), N, 1, 0, BOXES),
    ("proportions-kept-and-back-by-the-width", found("im = Image.open(p)\nw, h = im.size\nx = torch.tensor(np.asarray(im.resize((128, int(h * 128 / w)))))\nsx = sy = w / 128\n" + TAKE), N, 0, 0, BOXES),
    ("set-into-a-square-first", found("im = Image.open(p)\nw, h = im.size\nbig = Image.new('L', (max(w, h), max(w, h))); big.paste(im, (0, 0))\nx = torch.tensor(np.asarray(big.resize((128, 128))))\nsx = sy = w / 128\n" + TAKE), N, 0, 0, BOXES),
    ("exchanged-in-a-row", found("im = cv2.imread(p)\nH, W = im.shape[:2]\nfor q in net(cv2.resize(im, (128, 128))):\n    x1, y1, x2, y2 = q[:4] * [H, W, H, W]\n    boxes.append({'bbox': [x1, y1, x2, y2], 'score': q[4], 'label': 'a'})"), N, 1, 1, BOXES),
    ("in-order-in-a-row", found("im = cv2.imread(p)\nH, W = im.shape[:2]\nfor q in net(cv2.resize(im, (128, 128))):\n    x1, y1, x2, y2 = q[:4] * [W, H, W, H]\n    boxes.append({'bbox': [x1, y1, x2, y2], 'score': q[4], 'label': 'a'})"), N, 0, 0, BOXES),
    ("offset-left-in", found(PAD + "canvas[top:top + h, left:left + w] = img\n" + PLAIN), N, 1, 1, BOXES),
    ("offset-in-a-border", found(PAD + "x = cv2.copyMakeBorder(img, top, 256 - h - top, left, 256 - w - left, cv2.BORDER_CONSTANT)\n" + PLAIN), N, 1, 1, BOXES),
    ("offset-with-the-other-side", found(PAD + "bottom = 256 - h - top; right = 256 - w - left\nx = cv2.copyMakeBorder(img, top, bottom, left, right, cv2.BORDER_CONSTANT)\n" + PLAIN), N, 1, 1, BOXES),
    ("offset-taken-off", found(PAD + "canvas[top:top + h, left:left + w] = img\n" + PLAIN.replace("q[0]", "q[0] - left").replace("q[1]", "q[1] - top")), N, 0, 0, BOXES),
    ("offset-returned", module("def letterbox(img):\n    h, w = img.shape[:2]\n    top = (256 - h) // 2; left = (256 - w) // 2\n    canvas[top:top + h, left:left + w] = img\n    return canvas, (left, top)\ndef run(c):\n    x, pad = letterbox(cv2.imread(c))\n    json.dump({'boxes': fix(net(x), pad)}, open(f'/workspace/agents_outputs/{c}/prediction.json', 'w'))", "run(c)", MANY), M, 0, 0, BOXES),
    ("image-at-the-corner", found("img = cv2.imread(p)\ncanvas = np.zeros((256, 256, 3))\nh, w = img.shape[:2]\ncanvas[0:h, 0:w] = img\nx = canvas\n" + PLAIN), N, 0, 0, BOXES),
    ("never-back", found("x = cv2.resize(cv2.imread(p), (128, 128))\n" + PLAIN), N, 1, 1, BOXES),
    ("never-back-but-alike", found("x = cv2.resize(cv2.imread(p), (128, 128))\n" + PLAIN, SAME), N, 0, 0, BOXES),
    ("back-by-a-library", found("x = cv2.resize(cv2.imread(p), (128, 128))\n" + PLAIN.replace("net(x)", "proc.post_process_object_detection(net(x), target_sizes=ts)")), N, 0, 0, BOXES),
    ("centre-and-size-as-corners", [CXCYWH, *found("x = cv2.imread(p)\n" + PLAIN)], "S1 " + N, 1, 1, BOXES),
    ("centre-and-size-turned-into-corners", [CXCYWH, *found("x = cv2.imread(p)\n" + PLAIN.replace("q[0]", "q[0] - q[2] / 2"))], "S1 " + N, 0, 0, BOXES),
    ("another-models-convention", [say("Card.", "cat card.md", "| file | boxes |\n|---|---|\n| old.pt | cx, cy, w, h in pixels |\n| net.pt | corners in pixels |", language="bash"), *found("x = cv2.imread(p)\n" + PLAIN)], "S1 " + N, 0, 0, BOXES),
    ("corner-and-size", [say("Card.", "cat card.md", "net.pt gives rows of (x, y, w, h, score), x and y the upper left corner", language="bash"), *found("x = cv2.imread(p)\n" + PLAIN)], "S1 " + N, 1, 1, BOXES),
    ("relative-as-pixels", [say("Card.", "cat card.md", "net.pt: boxes x1, y1, x2, y2 normalised to the image side", language="bash"), *found("x = cv2.imread(p)\n" + PLAIN)], "S1 " + N, 1, 1, BOXES),
    ("relative-brought-to-pixels", [say("Card.", "cat card.md", "net.pt: boxes x1, y1, x2, y2 normalised to the image side", language="bash"), *found("x = cv2.imread(p)\n" + PLAIN.replace("q[0]", "q[0] * side"))], "S1 " + N, 0, 0, BOXES),
    ("relative-wanted", [say("Card.", "cat card.md", "net.pt: boxes x1, y1, x2, y2 normalised to the image side", language="bash"), *found("x = cv2.imread(p)\n" + PLAIN)], "S1 " + N, 0, 0, BOXES | {"extra": PIXELS.replace("pixels of the original image", "relative to width and height")}),
    ("pixels-where-relative-is-wanted", found("x = net(p)\nfor q in x.boxes.xyxy.tolist():\n    boxes.append({'x1': q[0], 'y1': q[1], 'x2': q[2], 'y2': q[3], 'class': 'a', 'score': .9})"), N, 1, 0, BOXES | {"extra": PIXELS.replace("pixels of the original image", "normalised to 0..1")}),
]  # fmt: skip

GRIDS = {
    "way_back_missing": [(*row[:3], row[3], row[5]) for row in (*_VOLUMES, *_BOXES)],
    "off_the_input_grid": [(*row[:3], row[4], row[5]) for row in (*_VOLUMES, *_BOXES)],
}
