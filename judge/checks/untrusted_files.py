"""Opening delivered files that nobody vouches for: size limits first, no pickles, no links that
leave it.

Each reader returns the value or raises `Refused` with the kind of fact and one line of why.
"""

from __future__ import annotations

import math
import mmap
import stat
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...errors import InputError
from ...trajectories.models import Run
from ...trajectories.reading.json_bytes import parse_json
from ...trajectories.reading.layout import Fence
from ...trajectories.turns.per_run_cache import once_a_run
from .case_checks import FactKind

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_TEXT = 16 * 1024 * 1024
"""Bytes of a JSON, CSV or text deliverable; the largest legal one is far below a megabyte."""
MAX_ARRAY = 64 * 1024 * 1024
"""Bytes that an .npy array may declare: a 2-D slice needs a fiftieth of it."""


class Refused(Exception):
    """A file that cannot be read as what it should be; `kind` and the text become a fact."""

    def __init__(self, kind: FactKind, text: str) -> None:
        super().__init__(text)
        self.kind: FactKind = kind
        self.text = text


@once_a_run
def fence_of(run: Run) -> Fence:
    """Around the run's folder, the same for whoever reads its files: of each folder is asked once
    whether it is a link."""
    return Fence(run.folder)


def guard(path: Path, root: Path | Fence) -> int:
    """The size of a regular file inside `root`; Refused for anything else, links that leave `root`
    included."""
    try:
        status = path.lstat()
        linked = stat.S_ISLNK(status.st_mode)
        if linked:
            status = path.stat()
    except OSError as error:
        raise Refused("unreadable", f"cannot be opened: {describe(error)}") from None
    fence = root if isinstance(root, Fence) else Fence(root)
    if not fence.holds(path if linked else path.parent):
        raise Refused("link", "is a link that leaves the run; not followed")
    if not stat.S_ISREG(status.st_mode):
        raise Refused("unreadable", "is not a regular file")
    return status.st_size


def read_data(path: Path, root: Path | Fence, limit: int = MAX_TEXT) -> bytes:
    """Bytes of a small file."""
    size = guard(path, root)
    if size > limit:
        raise Refused("unreadable", f"has {size:,} bytes, more than the {limit:,} that are read")
    try:
        return path.read_bytes()
    except OSError as error:
        raise Refused("unreadable", f"cannot be opened: {describe(error)}") from None


def read_text(path: Path, root: Path | Fence) -> str:
    """UTF-8 text; a byte-order mark stays, so that callers can see it."""
    data = read_data(path, root)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused("encoding", f"is not UTF-8 at byte {error.start}") from None


def read_json(path: Path, root: Path | Fence, *, mark: bool = True) -> Any:
    """A JSON value; NaN and infinities come as None. `mark`: a byte-order mark may go before it."""
    text = read_text(path, root)
    text = text.removeprefix("\ufeff") if mark else text
    try:
        return parse_json(text, path)
    except InputError as error:
        raise Refused("unreadable", error.message.removeprefix(f"{path}: ")) from None


@dataclass(frozen=True)
class ArrayHead:
    """What an .npy file declares about itself."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int
    order: Literal["C", "F"]


def npy_head(path: Path, root: Path | Fence) -> ArrayHead:
    """Shape and dtype of an .npy file, checked against its size; object arrays (pickles) are
    refused."""
    import numpy as np

    size = guard(path, root)
    try:
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of shapes that overflow
            version = np.lib.format.read_magic(file)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, fortran, dtype = read(file)
            offset = file.tell()
    # the header is a literal that the file's author chose: any error means unreadable
    except Exception as error:
        raise Refused("unreadable", f"is not an .npy file: {describe(error)}") from None
    if dtype.hasobject:
        raise Refused("unreadable", "holds pickled objects, which are never loaded")
    if dtype.kind not in "biufc":
        raise Refused("dtype", f"holds no numbers but {str(dtype)[:40]}")
    declared = math.prod(shape) * dtype.itemsize
    if any(extent < 0 for extent in shape) or declared > MAX_ARRAY:
        raise Refused(
            "unreadable", f"declares {declared:,} bytes, more than the {MAX_ARRAY:,} that are read"
        )
    if size - offset < declared:
        raise Refused("unreadable", f"is cut: {size - offset:,} of {declared:,} bytes of data")
    return ArrayHead(shape=shape, dtype=dtype, offset=offset, order="F" if fortran else "C")


def npy_array(path: Path, root: Path | Fence) -> npt.NDArray[Any]:
    """The array, mapped read-only, so that only looked-at pages are in memory."""
    import numpy as np

    head = npy_head(path, root)
    if math.prod(head.shape) == 0:
        return np.empty(head.shape, head.dtype)
    try:
        with path.open("rb") as file:
            # lives as long as the array
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.ndarray(head.shape, head.dtype, data, head.offset, order=head.order)
    except (OSError, ValueError, EOFError) as error:
        raise Refused("unreadable", f"cannot be read: {describe(error)}") from None


def image_size(path: Path, root: Path | Fence) -> tuple[int, int]:
    """(width, height) in pixels from an image's header; pixels are never decoded."""
    from PIL import Image

    guard(path, root)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path) as image:
                return image.size
    # PIL raises many kinds on broken files, decompression bombs among them
    except Exception as error:
        raise Refused("unreadable", f"is no image that can be opened: {describe(error)}") from None


def describe(error: BaseException) -> str:
    """An error's own words on one line, without paths, safe to show."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:160]
