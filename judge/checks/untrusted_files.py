"""Open untrusted delivered files: size limits first, no pickles, no links that leave the run.

Each reader returns the value or raises `Refused` with the kind of issue and the reason in one line.
"""

from __future__ import annotations

import math
import mmap
import stat
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...error_codes.output_facts import IssueKind
from ...errors import InputError
from ...trajectories.models import Run
from ...trajectories.reading.json_bytes import parse_json
from ...trajectories.reading.layout import Fence
from ...trajectories.turns.per_run_cache import once_a_run

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_TEXT = 16 * 1024 * 1024
"""Bytes of a JSON, CSV or text deliverable; the largest legal one is far below a megabyte."""
MAX_ARRAY = 64 * 1024 * 1024
"""Bytes that an .npy array may declare: a 2-D slice needs a fiftieth of it."""


class Refused(Exception):
    """A file cannot be read as what it should be; `kind` and `text` become an issue."""

    def __init__(self, kind: IssueKind, text: str) -> None:
        super().__init__(text)
        self.kind: IssueKind = kind
        self.text = text


@once_a_run
def fence_of(run: Run) -> Fence:
    """The fence around a run's folder.

    All readers of the run share it, so that each folder is tested once for being a link.
    """
    return Fence(run.folder)


def checked_size(path: Path, root: Path | Fence) -> int:
    """The size in bytes of a regular file inside `root`.

    Refused for anything else, and for links that leave `root`.
    """
    try:
        status = path.lstat()
        is_link = stat.S_ISLNK(status.st_mode)
        if is_link:
            status = path.stat()
    except OSError as error:
        raise Refused("unreadable", f"cannot be opened: {error_text(error)}") from None
    fence = root if isinstance(root, Fence) else Fence(root)
    if not fence.holds(path if is_link else path.parent):
        raise Refused("link", "is a link that leaves the run; not followed")
    if not stat.S_ISREG(status.st_mode):
        raise Refused("unreadable", "is not a regular file")
    return status.st_size


def read_data(path: Path, root: Path | Fence, limit: int = MAX_TEXT) -> bytes:
    """The bytes of a file of at most `limit` bytes."""
    size = checked_size(path, root)
    if size > limit:
        raise Refused("unreadable", f"has {size:,} bytes, more than the {limit:,} that are read")
    try:
        return path.read_bytes()
    except OSError as error:
        raise Refused("unreadable", f"cannot be opened: {error_text(error)}") from None


def read_text(path: Path, root: Path | Fence) -> str:
    """The text of a UTF-8 file; a byte-order mark is retained, so that callers can see it."""
    data = read_data(path, root)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused("encoding", f"is not UTF-8 at byte {error.start}") from None


def read_json(path: Path, root: Path | Fence, *, allow_bom: bool = True) -> Any:
    """The JSON value in a file, with None for NaN and infinities.

    `allow_bom`: whether a byte-order mark may precede it.
    """
    text = read_text(path, root)
    if allow_bom:
        text = text.removeprefix("\ufeff")
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
    """Shape and dtype of an .npy file, checked against its size.

    Arrays of objects (pickles) and of anything but numbers are Refused.
    """
    import numpy as np

    size = checked_size(path, root)
    try:
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy warns about shapes that overflow
            if np.lib.format.read_magic(file) == (1, 0):
                shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
            else:
                shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
            offset = file.tell()
    # The header is a literal that the file's author chose: any error means unreadable.
    except Exception as error:
        raise Refused("unreadable", f"is not an .npy file: {error_text(error)}") from None
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
    """The array of an .npy file, mapped read-only: only pages that are accessed are in memory."""
    import numpy as np

    head = npy_head(path, root)
    if math.prod(head.shape) == 0:
        return np.empty(head.shape, head.dtype)
    try:
        with path.open("rb") as file:
            # The mapping lives as long as the array.
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.ndarray(head.shape, head.dtype, data, head.offset, order=head.order)
    except (OSError, ValueError, EOFError) as error:
        raise Refused("unreadable", f"cannot be read: {error_text(error)}") from None


def image_size(path: Path, root: Path | Fence) -> tuple[int, int]:
    """Width and height in pixels from an image's header; the pixels are never decoded."""
    from PIL import Image

    checked_size(path, root)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path) as image:
                return image.size
    # PIL raises many kinds of errors on broken files and on decompression bombs.
    except Exception as error:
        raise Refused(
            "unreadable", f"is no image that can be opened: {error_text(error)}"
        ) from None


def error_text(error: BaseException) -> str:
    """The message of an error on one line, without paths, safe to display."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:160]
