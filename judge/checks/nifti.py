"""NIfTI volumes read in slabs: the header first, then a few megabytes at a time, whatever the
header declares."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from ...trajectories.reading.layout import Fence
from .untrusted_files import Refused, checked_size, error_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_VOLUME = 4 * 1024 * 1024 * 1024
"""Bytes that a volume may declare; 1024 x 1024 x 1000 voxels of 32 bits."""
_SLAB = 4 * 1024 * 1024
_GZIP_RATIO = 1032
"""Deflate cannot shrink data further than this (zlib's documentation), so a larger claim is false
or cut."""
_MAX_VALUES = 64
_MAX_COUNTED = 16
_MAX_PIECED = 64 * 1024 * 1024
_MIN_SET, _MAX_SET = 100, 400_000
"""Voxels of a volume up to which, and voxels set between which, pieces are told apart."""


@dataclass(frozen=True)
class VolumeHead:
    """What a NIfTI header says; an axis of length 1 is an axis."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    affine: npt.NDArray[np.float64]
    offset: int
    slope: float
    inter: float

    @property
    def axes(self) -> int:
        """How many axes there are, those of length 1 after the third left out."""
        return max(
            (place + 1 for place, extent in enumerate(self.shape) if place < 3 or extent > 1),
            default=0,
        )


@dataclass(frozen=True)
class VolumeStats:
    """Values seen in a volume: `values` is None when there are more than a few dozen different
    ones."""

    values: tuple[float, ...] | None
    low: float
    high: float
    finite: bool
    nonzero: int
    mean: float
    """Of the finite values; 0.0 where there are none."""
    counts: dict[float, int]
    """Voxels per value other than 0, where a volume has no more than `_MAX_COUNTED` values; else
    empty."""


def volume_head(path: Path, root: Path | Fence, kinds: str = "iufb") -> VolumeHead:
    """The header of a .nii or .nii.gz file; Refused when it is none or declares more than the file
    can hold.

    `kinds`: of voxel types; of complex ones ("c") the real part is read.
    """
    size = checked_size(path, root)
    with _open(path) as file:
        try:
            head = _parse(_read(file, 540), kinds)
        except Refused:
            raise
        except Exception as error:  # nibabel raises many kinds on hostile headers
            raise Refused("unreadable", f"has a broken NIfTI header: {error_text(error)}") from None
    declared = math.prod(head.shape) * head.dtype.itemsize
    if declared > MAX_VOLUME:
        raise Refused(
            "unreadable", f"declares {declared:,} bytes, more than the {MAX_VOLUME:,} that are read"
        )
    possible = size * _GZIP_RATIO if path.name.endswith(".gz") else size - head.offset
    if declared > possible:
        raise Refused(
            "unreadable", f"declares {declared:,} bytes, more than a file of {size:,} can hold"
        )
    return head


@dataclass(frozen=True)
class _Volume:
    """A volume's file, equal to every link to it."""

    identity: tuple[int, ...]
    path: Path = field(compare=False)
    head: VolumeHead = field(compare=False)

    @classmethod
    def of(cls, path: Path, head: VolumeHead) -> _Volume:
        try:
            status = path.stat()
        except OSError as error:
            raise Refused("unreadable", f"cannot be opened: {error_text(error)}") from None
        return cls((status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns), path, head)


def volume_stats(
    path: Path, root: Path | Fence, head: VolumeHead, *, rounded: bool = False
) -> VolumeStats:
    """Values of the whole volume, scaled as the header says and rounded on wish; Refused when the
    data ends early. Links cost it once."""
    found = _stats(_Volume.of(path, head), rounded)
    if isinstance(found, Refused):
        raise Refused(found.kind, found.text)
    return found


@lru_cache(maxsize=256)
def _stats(volume: _Volume, rounded: bool) -> VolumeStats | Refused:
    try:
        return _counted(volume.path, volume.head, rounded)
    except Refused as refused:
        return refused


def _counted(path: Path, head: VolumeHead, rounded: bool) -> VolumeStats:
    import numpy as np

    values: set[float] | None = set()
    low, high, finite, nonzero, total, voxels = math.inf, -math.inf, True, 0, 0.0, 0
    counts: Counter[float] = Counter()
    for slab in _slabs(path, head):
        with np.errstate(all="ignore"):
            real = (
                slab.astype(np.float64) * head.slope + head.inter
                if (head.slope, head.inter) != (1, 0)
                else slab
            )
            real = np.rint(real) if rounded else real
            if real.dtype.kind == "f" and not bool(np.isfinite(real).all()):
                finite = False
                real = real[np.isfinite(real)]
        if real.size == 0:
            continue
        low, high = min(low, float(real.min())), max(high, float(real.max()))
        nonzero += int(np.count_nonzero(real))
        total, voxels = total + float(real.sum(dtype=np.float64)), voxels + real.size
        if values is not None:
            values = _different(real, values)
        if values is not None and len(values) <= _MAX_COUNTED:
            counts.update(
                {value: int(np.count_nonzero(real == value)) for value in values if value}
            )
    return VolumeStats(
        values=None if values is None else tuple(sorted(values)),
        low=low,
        high=high,
        finite=finite,
        nonzero=nonzero,
        mean=total / voxels if voxels else 0.0,
        counts=dict(counts) if values is not None and len(values) <= _MAX_COUNTED else {},
    )


def voxel_ml(head: VolumeHead) -> float:
    """Volume of a voxel in millilitres; 0.001 (one cubic millimetre) where the affine gives none."""
    import numpy as np

    size = abs(float(np.linalg.det(head.affine[:3, :3])))
    return size / 1000 if math.isfinite(size) and size > 0 else 0.001


def main_piece(path: Path, head: VolumeHead) -> float | None:
    """Share of the voxels that are set which the largest face-connected piece holds, in (0, 1];
    None for too few or too many."""
    return _main_piece(_Volume.of(path, head))


@lru_cache(maxsize=256)
def _main_piece(volume_: _Volume) -> float | None:
    import numpy as np

    path, head = volume_.path, volume_.head
    if math.prod(head.shape) > _MAX_PIECED:
        return None
    volume = np.concatenate([slab != 0 for slab in _slabs(path, head)])
    where = np.flatnonzero(volume)
    if not _MIN_SET <= where.size <= _MAX_SET:
        return None
    place = np.full(volume.size, -1, dtype=np.int64)
    place[where] = np.arange(where.size)
    grid = place.reshape(head.shape, order="F")
    pairs = []
    for axis in range(grid.ndim):
        one = np.moveaxis(grid, axis, 0)
        both = (one[1:] >= 0) & (one[:-1] >= 0)
        pairs.append(np.stack([one[1:][both], one[:-1][both]]))
    left, right = np.concatenate(pairs, axis=1)
    root = np.arange(where.size)
    # join the roots of neighbours, then shorten every path
    while bool((root[left] != root[right]).any()):
        np.minimum.at(
            root, np.maximum(root[left], root[right]), np.minimum(root[left], root[right])
        )
        while bool((root[root] != root).any()):
            root = root[root]
    return float(np.bincount(root).max() / where.size)


def volume_array(path: Path, head: VolumeHead) -> npt.NDArray[Any] | None:
    """The voxels as stored, unscaled; None for a volume of more than 64 million."""
    import numpy as np

    if math.prod(head.shape) > _MAX_PIECED:
        return None
    return np.concatenate(list(_slabs(path, head))).reshape(head.shape, order="F")


def _different(slab: npt.NDArray[Any], seen: set[float]) -> set[float] | None:
    """The different values so far; None beyond a few dozen. Known values are masked out first:
    sorting is slow."""
    import numpy as np

    rest = slab[(slab != 0) & (slab != 1)]
    found = set(seen)
    if rest.size < slab.size:
        found.update(value for value in (0.0, 1.0) if bool((slab == value).any()))
    if rest.size:
        if np.unique(rest[:4096]).size > _MAX_VALUES:
            return None
        found.update(float(value) for value in np.unique(rest))
    return found if len(found) <= _MAX_VALUES else None


def _slabs(path: Path, head: VolumeHead) -> Iterator[npt.NDArray[Any]]:
    import numpy as np

    left = math.prod(head.shape) * head.dtype.itemsize
    step = max(1, _SLAB // head.dtype.itemsize) * head.dtype.itemsize
    with _open(path) as file:
        skip = head.offset
        while skip:
            skip -= len(_exactly(file, min(skip, _SLAB)))
        while left:
            data = _exactly(file, min(left, step))
            left -= len(data)
            yield np.frombuffer(data, dtype=head.dtype).real
        _read(file, 1)  # reaching the end makes gzip compare its checksum


def _open(path: Path) -> IO[bytes]:
    try:
        return (
            cast("IO[bytes]", gzip.open(path, "rb"))
            if path.name.endswith(".gz")
            else path.open("rb")
        )
    except OSError as error:
        raise Refused("unreadable", f"cannot be opened: {error_text(error)}") from None


def _read(file: IO[bytes], count: int) -> bytes:
    try:
        return file.read(count)
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise Refused("unreadable", f"is not a whole gzip file: {error_text(error)}") from None


def _exactly(file: IO[bytes], count: int) -> bytes:
    parts: list[bytes] = []
    left = count
    while left:
        data = _read(file, left)
        if not data:
            raise Refused("unreadable", "is cut: the data ends before the declared volume")
        parts.append(data)
        left -= len(data)
    return b"".join(parts)


def _parse(block: bytes, kinds: str) -> VolumeHead:
    import numpy as np
    from nibabel.nifti1 import Nifti1Header
    from nibabel.nifti2 import Nifti2Header

    second = len(block) >= 540 and 540 in struct.unpack("<i", block[:4]) + struct.unpack(
        ">i", block[:4]
    )
    if not second and len(block) < 348:
        raise Refused("unreadable", f"is too short for NIfTI: {len(block)} bytes")
    header = Nifti2Header(block) if second else Nifti1Header(block[:348], check=False)
    if bytes(header["magic"].tobytes())[:3] not in (b"n+1", b"n+2"):
        raise Refused("unreadable", "is not a single-file NIfTI volume")
    shape = tuple(int(extent) for extent in header.get_data_shape())
    if not shape or any(extent < 1 for extent in shape):
        raise Refused("unreadable", f"declares the impossible shape {shape}")
    dtype = header.get_data_dtype()
    if dtype.kind not in kinds:
        raise Refused("dtype", f"has voxels of type {dtype}")
    slope, inter = header.get_slope_inter()
    offset = int(header["vox_offset"])
    if not 0 <= offset <= _SLAB:
        raise Refused("unreadable", f"puts its data at the impossible offset {offset}")
    return VolumeHead(
        shape=shape,
        dtype=dtype,
        affine=np.asarray(header.get_best_affine(), dtype=np.float64),
        offset=offset,
        slope=1.0 if slope is None else float(slope),
        inter=0.0 if inter is None else float(inter),
    )


def affine_differs(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> bool:
    """Whether two voxel-to-world maps differ by more than rounding in the header (1e-3 mm)."""
    import numpy as np

    return not np.allclose(one, other, rtol=1e-4, atol=1e-3, equal_nan=False)
