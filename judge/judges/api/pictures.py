"""Pictures for models that take images: plan.png, and on request one output of each kind laid over
its input.

Files are opened within limits and drawn anew; nothing is passed on as it came.
"""

from __future__ import annotations

import hashlib
import io
import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....sanitize import sanitize_line
from ....tracks import TRACKS
from ....trajectories.models import OutputFile, Run
from ...checks.nifti import VolumeHead, volume_array, volume_head
from ...checks.public_inputs import PublicInputs, find_public
from ...checks.untrusted_files import Refused, npy_array, npy_head, read_data, read_json

MAX_BYTES = 10_000_000
"""Of the file."""
MAX_PIXELS = 40_000_000
"""That its header may promise: a small file can unpack to gigabytes."""
SIDE = 1_024
"""Pixels of the longer side as sent; diagrams stay readable, and providers bill no more than about
1,600 tokens."""
PLAN = "plan.png as it was delivered"
_KINDS = 3
"""Pictures of outputs, at the most."""
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")


@dataclass(frozen=True)
class Picture:
    """A picture as sent (PNG), or the reason why there is none to send."""

    title: str
    """What it shows, in a few words of ours."""
    png: bytes | None = None
    problem: str = ""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.png or b"").hexdigest()


def plan_picture(run: Run) -> Picture | None:
    """The run's plan.png, at most `SIDE` pixels a side; None when no file came with the run."""
    path = run.plan.image_path
    if path is None:
        return None
    try:
        data = read_data(path, run.folder, MAX_BYTES)
    except Refused as error:
        return Picture(PLAN, problem=str(error))
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Pillow warns of bombs before it raises
            with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
                if image.width * image.height > MAX_PIXELS:
                    return Picture(
                        PLAN,
                        problem=(
                            f"{image.width:,} x {image.height:,} pixels, at most {MAX_PIXELS:,} are"
                            " opened"
                        ),
                    )
                image.draft("RGB", (SIDE, SIDE))
                image.thumbnail((SIDE, SIDE))
                png = _png(image.convert("RGB"))
    except Exception as error:  # decoders raise whatever the bytes make them raise
        return Picture(PLAN, problem=f"cannot be read as an image ({type(error).__name__})")
    return Picture(PLAN, png)


def output_pictures(run: Run, public: Path | None) -> tuple[Picture, ...]:
    """One output of each kind (file name), over its input where the public inputs are given: masks
    in red, boxes as frames, images beside what they were made from. Empty for tracks whose outputs
    are no pictures."""
    track = TRACKS.find(run.track)
    if (
        run.outputs.root is None
        or track is None
        or track.output not in ("masks", "boxes", "images")
    ):
        return ()
    inputs = find_public(public, run.task) if public is not None else None
    first: dict[str, OutputFile] = {}
    for file in run.outputs.files:
        if file.case is not None and file.name.endswith((".nii.gz", ".npy", "prediction.json")):
            first.setdefault(file.name, file)
    return tuple(
        _output(run, file, inputs, track.output == "masks")
        for file in list(first.values())[:_KINDS]
    )


def _output(run: Run, file: OutputFile, inputs: PublicInputs | None, masks: bool) -> Picture:
    title = sanitize_line(f"the delivered {file.name} of {file.case}")
    try:
        if file.name.endswith(".json"):
            return _boxes(run, file, inputs, title)
        shown, under = _planes(run, file, inputs)
    except Refused as error:
        return Picture(title, problem=str(error))
    except Exception as error:  # whatever the bytes make numpy or Pillow raise
        return Picture(title, problem=f"cannot be drawn ({type(error).__name__})")
    if shown is None:
        return Picture(title, problem="too large to be drawn, or of no shape that can be")
    return _drawn(shown, under, title, mask=masks and file.name.endswith(".nii.gz"))


def _planes(run: Run, file: OutputFile, inputs: PublicInputs | None) -> tuple[Any, Any]:
    """The plane with most in it, and the same plane of the input (None without one of this shape)."""
    import numpy as np

    if file.name.endswith(".npy"):
        if math.prod(npy_head(file.path, run.folder).shape) > MAX_PIXELS:
            return None, None
        shown = npy_array(file.path, run.folder)
        path = (
            inputs.array_path(file.case) if inputs is not None and file.case is not None else None
        )
        under = npy_array(path, path.parent) if path is not None else None
        return (shown if shown.ndim == 2 else None), (
            under if under is not None and under.shape == shown.shape else None
        )
    head = volume_head(file.path, run.folder)
    volume = volume_array(file.path, head) if len(head.shape) == 3 else None
    if volume is None:
        return None, None
    plane = int(np.argmax((volume != 0).sum(axis=(0, 1))))
    reference = (
        inputs.volume_path(file.case) if inputs is not None and file.case is not None else None
    )
    under = None
    if reference is not None:
        below: VolumeHead = volume_head(reference, reference.parent)
        image = volume_array(reference, below) if below.shape == head.shape else None
        under = None if image is None else image[:, :, plane].T
    return volume[:, :, plane].T, under


def _drawn(shown: Any, under: Any, title: str, *, mask: bool) -> Picture:
    import numpy as np
    from PIL import Image

    if mask:
        base = np.zeros(shown.shape, np.uint8) if under is None else _grey(under)
        colour = np.stack([base] * 3, axis=-1)
        colour[shown != 0] = colour[shown != 0] // 2 + np.array([127, 0, 0], np.uint8)
        title = (
            f"{title}, the plane with most of it in red{'' if under is None else ' over the input'}"
        )
    else:
        parts = [_grey(part) for part in (under, shown) if part is not None]
        colour = np.stack([np.concatenate(parts, axis=1)] * 3, axis=-1)
        title = f"{title}{'' if under is None else ', the input on its left'}"
    image = Image.fromarray(colour)
    scale = min(SIDE / max(image.size), 8)
    image = image.resize(
        (max(1, int(image.width * scale)), max(1, int(image.height * scale))),
        Image.Resampling.NEAREST,
    )
    return Picture(title, _png(image))


def _grey(plane: Any) -> Any:
    """A plane as 8-bit grey, from its 1st to its 99th percentile."""
    import numpy as np

    values = np.nan_to_num(np.asarray(plane, dtype=np.float64), posinf=0.0, neginf=0.0)
    low, high = np.percentile(values, (1, 99)) if values.size else (0.0, 1.0)
    return (np.clip((values - low) / ((high - low) or 1.0), 0, 1) * 255).astype(np.uint8)


def _boxes(run: Run, file: OutputFile, inputs: PublicInputs | None, title: str) -> Picture:
    from PIL import Image, ImageDraw

    path = inputs.image_path(file.case) if inputs is not None and file.case is not None else None
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
    for box in (boxes if isinstance(boxes, list) else [])[:500]:
        corners: list[Any] = (
            [box.get(key) for key in ("x1", "y1", "x2", "y2")] if isinstance(box, dict) else [None]
        )
        if not all(isinstance(c, int | float) and abs(c) < 1e6 for c in corners):
            continue
        x1, y1, x2, y2 = (float(c) for c in corners)
        if x1 <= x2 and y1 <= y2:
            draw.rectangle((x1, y1, x2, y2), outline=(255, 0, 0))
    image.thumbnail((SIDE, SIDE))
    return Picture(f"{title}, its boxes in red over the input", _png(image))


def _png(image: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()
