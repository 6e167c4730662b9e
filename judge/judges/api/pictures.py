"""Pictures for models that read images: plan.png, and on request one output of each kind.

Outputs are drawn over their input where the public inputs are given. Files are opened within limits
and drawn anew; no bytes of a run are passed on.
"""

from __future__ import annotations

import hashlib
import io
import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....tracks import TRACKS
from ....trajectories.models import OutputFile, Run
from ....trajectories.record.strangers import Stranger
from ...checks.nifti import volume_array, volume_head
from ...checks.public_inputs import PublicInputs, find_public
from ...checks.untrusted_files import Refused, npy_array, npy_head, read_data, read_json

MAX_FILE_BYTES = 10_000_000
MAX_PIXELS = 40_000_000
"""That the file's header may promise: a small file can unpack to gigabytes."""
MAX_SIDE = 1_024
"""Pixels of the longer side as sent: diagrams stay readable, and providers bill no more than about
1,600 tokens."""
PLAN_TITLE = "plan.png as it was delivered"
_MAX_OUTPUT_PICTURES = 3
_MAX_BOXES = 500
_MAX_ENLARGEMENT = 8
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")
_DRAWN_SUFFIXES = (".nii.gz", ".npy", "prediction.json")
_RED = (255, 0, 0)


@dataclass(frozen=True)
class Picture:
    """A picture as sent (PNG), or the reason why it cannot be sent."""

    title: str
    """What it shows. It names files and cases of the run, and belongs inside the record's fence."""
    png: bytes | None = None
    problem: str = ""

    @property
    def is_plan(self) -> bool:
        return self.title == PLAN_TITLE

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.png or b"").hexdigest()


def plan_picture(run: Run) -> Picture | None:
    """The run's plan.png, at most `MAX_SIDE` pixels a side; None if no file came with the run."""
    path = run.plan.image_path
    if path is None:
        return None
    try:
        data = read_data(path, run.folder, MAX_FILE_BYTES)
    except Refused as error:
        return Picture(PLAN_TITLE, problem=str(error))
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Pillow warns of decompression bombs before it raises.
            with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
                if image.width * image.height > MAX_PIXELS:
                    size = f"{image.width:,} x {image.height:,} pixels"
                    problem = f"{size}, at most {MAX_PIXELS:,} are opened"
                    return Picture(PLAN_TITLE, problem=problem)
                image.draft("RGB", (MAX_SIDE, MAX_SIDE))
                image.thumbnail((MAX_SIDE, MAX_SIDE))
                png = _png(image.convert("RGB"))
    except Exception as error:  # decoders raise whatever the bytes make them raise
        return Picture(PLAN_TITLE, problem=f"cannot be read as an image ({type(error).__name__})")
    return Picture(PLAN_TITLE, png)


def output_pictures(run: Run, public: Path | None) -> tuple[Picture, ...]:
    """One output of each kind (file name), over its input where the public inputs are given.

    Masks are drawn in red, boxes as frames, images beside what they were made from. Empty for
    tracks whose outputs are no pictures.
    """
    track = TRACKS.find(run.track)
    if track is None or track.output not in ("masks", "boxes", "images"):
        return ()
    if run.outputs.root is None:
        return ()
    inputs = find_public(public, run.task) if public is not None else None
    first_of_kind: dict[str, OutputFile] = {}
    for file in run.outputs.files:
        if file.case is not None and file.name.endswith(_DRAWN_SUFFIXES):
            first_of_kind.setdefault(file.name, file)
    files = list(first_of_kind.values())[:_MAX_OUTPUT_PICTURES]
    return tuple(_output_picture(run, file, inputs, track.output == "masks") for file in files)


def _output_picture(
    run: Run, file: OutputFile, inputs: PublicInputs | None, masks: bool
) -> Picture:
    title = f"the delivered {Stranger(file.name, 80)} of {Stranger(file.case or '', 80)}"
    try:
        if file.name.endswith(".json"):
            return _boxes_picture(run, file, inputs, title)
        if file.name.endswith(".npy"):
            output, reference = _array_planes(run, file, inputs)
        else:
            output, reference = _volume_planes(run, file, inputs)
    except Refused as error:
        return Picture(title, problem=str(error))
    except Exception as error:  # whatever the bytes make numpy or Pillow raise
        return Picture(title, problem=f"cannot be drawn ({type(error).__name__})")
    if output is None:
        return Picture(title, problem="too large to be drawn, or of no shape that can be")
    if masks and file.name.endswith(".nii.gz"):
        return _mask_picture(output, reference, title)
    return _image_picture(output, reference, title)


def _array_planes(
    run: Run, file: OutputFile, inputs: PublicInputs | None
) -> tuple[Any | None, Any | None]:
    """A delivered 2D array, and the input of the same shape (None without one)."""
    if math.prod(npy_head(file.path, run.folder).shape) > MAX_PIXELS:
        return None, None
    output = npy_array(file.path, run.folder)
    if output.ndim != 2:
        return None, None
    path = None
    if inputs is not None and file.case is not None:
        path = inputs.array_path(file.case)
    if path is None:
        return output, None
    reference = npy_array(path, path.parent)
    return output, reference if reference.shape == output.shape else None


def _volume_planes(
    run: Run, file: OutputFile, inputs: PublicInputs | None
) -> tuple[Any | None, Any | None]:
    """The plane of a delivered volume with most voxels set, and the same plane of the input.

    None instead of the input's plane without an input of the same shape.
    """
    import numpy as np

    head = volume_head(file.path, run.folder)
    volume = volume_array(file.path, head) if len(head.shape) == 3 else None
    if volume is None:
        return None, None
    index = int(np.argmax((volume != 0).sum(axis=(0, 1))))
    output = volume[:, :, index].T
    path = None
    if inputs is not None and file.case is not None:
        path = inputs.volume_path(file.case, run.brief)
    if path is None:
        return output, None
    reference_head = volume_head(path, path.parent)
    if reference_head.shape != head.shape:
        return output, None
    reference = volume_array(path, reference_head)
    return output, None if reference is None else reference[:, :, index].T


def _mask_picture(mask: Any, reference: Any | None, title: str) -> Picture:
    import numpy as np

    base = np.zeros(mask.shape, np.uint8) if reference is None else _grey(reference)
    pixels = np.stack([base] * 3, axis=-1)
    pixels[mask != 0] = pixels[mask != 0] // 2 + np.array([127, 0, 0], np.uint8)
    title = f"{title}, the plane with most of it in red"
    if reference is not None:
        title += " over the input"
    return Picture(title, _scaled_png(pixels))


def _image_picture(output: Any, reference: Any | None, title: str) -> Picture:
    import numpy as np

    planes = [_grey(output)]
    if reference is not None:
        planes.insert(0, _grey(reference))
        title += ", the input on its left"
    pixels = np.stack([np.concatenate(planes, axis=1)] * 3, axis=-1)
    return Picture(title, _scaled_png(pixels))


def _boxes_picture(run: Run, file: OutputFile, inputs: PublicInputs | None, title: str) -> Picture:
    from PIL import Image, ImageDraw

    path = None
    if inputs is not None and file.case is not None:
        path = inputs.image_path(file.case)
    if path is None:
        return Picture(title, problem="there is no public image to draw its boxes on")
    data = read_json(file.path, run.folder)
    boxes = data.get("boxes") if isinstance(data, dict) else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Image.open(path, formats=_FORMATS) as opened:
            if opened.width * opened.height > MAX_PIXELS:
                return Picture(title, problem="the public image is too large")
            image = opened.convert("RGB")
    draw = ImageDraw.Draw(image)
    for box in (boxes if isinstance(boxes, list) else [])[:_MAX_BOXES]:
        corners = _corners(box)
        if corners is not None:
            draw.rectangle(corners, outline=_RED)
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    return Picture(f"{title}, its boxes in red over the input", _png(image))


def _corners(box: Any) -> tuple[float, float, float, float] | None:
    """The corners of a delivered box; None for one that cannot be drawn."""
    if not isinstance(box, dict):
        return None
    values: list[Any] = [box.get(key) for key in ("x1", "y1", "x2", "y2")]
    if not all(isinstance(value, int | float) and abs(value) < 1e6 for value in values):
        return None
    x1, y1, x2, y2 = (float(value) for value in values)
    return (x1, y1, x2, y2) if x1 <= x2 and y1 <= y2 else None


def _grey(plane: Any) -> Any:
    """A plane as 8-bit grey, from its 1st to its 99th percentile."""
    import numpy as np

    values = np.nan_to_num(np.asarray(plane, dtype=np.float64), posinf=0.0, neginf=0.0)
    low, high = np.percentile(values, (1, 99)) if values.size else (0.0, 1.0)
    return (np.clip((values - low) / ((high - low) or 1.0), 0, 1) * 255).astype(np.uint8)


def _scaled_png(pixels: Any) -> bytes:
    """An RGB array as PNG, its longer side brought to MAX_SIDE, enlarged eightfold at most."""
    from PIL import Image

    image = Image.fromarray(pixels)
    scale = min(MAX_SIDE / max(image.size), _MAX_ENLARGEMENT)
    size = (max(1, int(image.width * scale)), max(1, int(image.height * scale)))
    return _png(image.resize(size, Image.Resampling.NEAREST))


def _png(image: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()
