"""plan.png as a picture for models that take images: opened within limits, drawn anew, never passed on as it came."""

from __future__ import annotations

import hashlib
import io
import warnings
from dataclasses import dataclass

from ..trajectories.models import Run
from .checks.files import Refused, read_data

MAX_BYTES = 10_000_000
"""Of the file."""
MAX_PIXELS = 40_000_000
"""That its header may promise: a small file can unpack to gigabytes."""
SIDE = 1_024
"""Pixels of the longer side as sent; diagrams stay readable, and providers bill no more than about 1,600 tokens."""
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")


@dataclass(frozen=True)
class Picture:
    """A picture as sent (PNG), or the reason why there is none to send."""

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
        return Picture(problem=str(error))
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Pillow warns of bombs before it raises
            with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
                if image.width * image.height > MAX_PIXELS:
                    return Picture(
                        problem=f"{image.width:,} x {image.height:,} pixels, at most {MAX_PIXELS:,} are opened"
                    )
                image.draft("RGB", (SIDE, SIDE))
                image.thumbnail((SIDE, SIDE))
                out = io.BytesIO()
                image.convert("RGB").save(out, "PNG")
    except Exception as error:  # decoders raise whatever the bytes make them raise
        return Picture(problem=f"cannot be read as an image ({type(error).__name__})")
    return Picture(out.getvalue())
