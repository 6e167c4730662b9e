"""Read NIfTI volumes in slabs: the header first, then a few megabytes at a time.

Memory stays bounded whatever the header declares.
"""

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
"""Bytes that are read at a time."""
_GZIP_RATIO = 1032
"""Deflate cannot shrink data further than this (zlib's documentation), so that a file which claims
more is truncated or lies."""
_MAX_VALUES = 64
"""Distinct values up to which a volume's values are listed."""
_MAX_COUNTED = 16
"""Distinct values up to which the voxels of each are counted."""
_MAX_IN_MEMORY = 64 * 1024 * 1024
"""Voxels up to which a volume is loaded as a whole."""
_MIN_SET, _MAX_SET = 100, 400_000
"""Numbers of set voxels between which the connected components of a mask are computed."""
_NIFTI1_BYTES, _NIFTI2_BYTES = 348, 540
"""Sizes of the headers; each is also the header's first field."""


_MAGIC = (b"n+1", b"n+2", b"ni1", b"ni2")
"""First bytes of the marks of single files, and of headers that should have data beside them:
nibabel loads those from a single file too."""


@dataclass(frozen=True)
class VolumeHead:
    """The header of a NIfTI volume.

    `shape` includes axes of length 1; values are scaled by `slope` and `inter`.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    affine: npt.NDArray[np.float64]
    offset: int
    slope: float
    inter: float

    @property
    def axes(self) -> int:
        """The number of axes, without trailing ones of length 1 beyond the third."""
        axes = len(self.shape)
        while axes > 3 and self.shape[axes - 1] <= 1:
            axes -= 1
        return axes

    @property
    def voxels(self) -> int:
        """How many voxels the volume has."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class VolumeStats:
    """Statistics of a volume's values, scaled as the header says."""

    values: tuple[float, ...] | None
    """The distinct values, ascending; None if there are more than a few dozen."""
    low: float
    high: float
    finite: bool
    """Whether all values are finite; the other statistics are of the finite ones."""
    nonzero: int
    mean: float
    """0.0 if there are no values."""
    counts: dict[float, int]
    """Voxels of each value other than 0; empty for volumes of more than `_MAX_COUNTED` values."""


def volume_head(path: Path, root: Path | Fence, kinds: str = "iufb") -> VolumeHead:
    """The header of a .nii or .nii.gz file.

    Refused if it is not one, or declares more data than the file can hold. `kinds` are the allowed
    numpy kinds of voxel types; of complex voxels ("c") the real part is read.
    """
    size = checked_size(path, root)
    with _open(path) as file:
        try:
            head = _parse_header(_read(file, _NIFTI2_BYTES), kinds)
        except Refused:
            raise
        except Exception as error:  # nibabel raises many kinds on hostile headers
            raise Refused("unreadable", f"has a broken NIfTI header: {error_text(error)}") from None
    declared = head.voxels * head.dtype.itemsize
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
class _VolumeFile:
    """A volume's file as a cache key: all links to one file are equal."""

    identity: tuple[int, ...]
    path: Path = field(compare=False)
    head: VolumeHead = field(compare=False)

    @classmethod
    def of(cls, path: Path, head: VolumeHead) -> _VolumeFile:
        try:
            status = path.stat()
        except OSError as error:
            raise Refused("unreadable", f"cannot be opened: {error_text(error)}") from None
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        return cls(identity, path, head)


def volume_stats(
    path: Path, root: Path | Fence, head: VolumeHead, *, rounded: bool = False
) -> VolumeStats:
    """Statistics of a whole volume, of its values rounded to integers if asked for.

    Refused if the data ends early. Several links to one file are read once.
    """
    stats = _cached_stats(_VolumeFile.of(path, head), rounded)
    if isinstance(stats, Refused):
        # A new exception, because the path of a cached one may be another link's.
        raise Refused(stats.kind, stats.text)
    return stats


@lru_cache(maxsize=256)
def _cached_stats(volume: _VolumeFile, rounded: bool) -> VolumeStats | Refused:
    try:
        return _compute_stats(volume.path, volume.head, rounded)
    except Refused as refused:
        return refused


def _compute_stats(path: Path, head: VolumeHead, rounded: bool) -> VolumeStats:
    import numpy as np

    distinct: set[float] | None = set()
    counts: Counter[float] = Counter()
    low, high, total = math.inf, -math.inf, 0.0
    finite, nonzero, voxels = True, 0, 0
    for slab in _slabs(path, head):
        values = _scaled(slab, head, rounded)
        if values.dtype.kind == "f" and not bool(np.isfinite(values).all()):
            finite = False
            values = values[np.isfinite(values)]
        if values.size == 0:
            continue
        low, high = min(low, float(values.min())), max(high, float(values.max()))
        nonzero += int(np.count_nonzero(values))
        total += float(values.sum(dtype=np.float64))
        voxels += values.size
        if distinct is not None:
            distinct = _add_distinct(values, distinct)
        if distinct is not None and len(distinct) <= _MAX_COUNTED:
            for value in distinct:
                if value:
                    counts[value] += int(np.count_nonzero(values == value))
    few = distinct is not None and len(distinct) <= _MAX_COUNTED
    return VolumeStats(
        values=None if distinct is None else tuple(sorted(distinct)),
        low=low,
        high=high,
        finite=finite,
        nonzero=nonzero,
        mean=total / voxels if voxels else 0.0,
        counts=dict(counts) if few else {},
    )


def _scaled(slab: npt.NDArray[Any], head: VolumeHead, rounded: bool) -> npt.NDArray[Any]:
    """Stored values as the header scales them."""
    import numpy as np

    # Hostile values may overflow; the result is then not finite and reported as such.
    with np.errstate(all="ignore"):
        values = slab
        if (head.slope, head.inter) != (1, 0):
            values = slab.astype(np.float64) * head.slope + head.inter
        return np.rint(values) if rounded else values


def _add_distinct(values: npt.NDArray[Any], distinct: set[float]) -> set[float] | None:
    """The distinct values so far and those of a slab; None beyond a few dozen.

    0 and 1 are masked out first: sorting a large slab is slow, and most masks hold nothing else.
    """
    import numpy as np

    others = values[(values != 0) & (values != 1)]
    result = set(distinct)
    if others.size < values.size:
        result.update(value for value in (0.0, 1.0) if bool((values == value).any()))
    if others.size:
        # A look at the beginning spares sorting images, which have far too many values.
        if np.unique(others[:4096]).size > _MAX_VALUES:
            return None
        result.update(float(value) for value in np.unique(others))
    return result if len(result) <= _MAX_VALUES else None


def voxel_ml(head: VolumeHead) -> float:
    """The volume of a voxel in ml; 0.001 (one cubic millimetre) if the affine is degenerate."""
    import numpy as np

    volume = abs(float(np.linalg.det(head.affine[:3, :3])))
    return volume / 1000 if math.isfinite(volume) and volume > 0 else 0.001


def largest_component_share(path: Path, head: VolumeHead) -> float | None:
    """The share of a mask's set voxels in its largest face-connected component, in (0, 1].

    None if the volume is large, or too few or too many voxels are set.
    """
    return _cached_component_share(_VolumeFile.of(path, head))


@lru_cache(maxsize=256)
def _cached_component_share(volume: _VolumeFile) -> float | None:
    import numpy as np

    head = volume.head
    if head.voxels > _MAX_IN_MEMORY:
        return None
    mask = np.concatenate([slab != 0 for slab in _slabs(volume.path, head)])
    set_voxels = np.flatnonzero(mask)
    if not _MIN_SET <= set_voxels.size <= _MAX_SET:
        return None
    # Number the set voxels, and pair each with its set neighbours along every axis.
    numbers = np.full(mask.size, -1, dtype=np.int64)
    numbers[set_voxels] = np.arange(set_voxels.size)
    grid = numbers.reshape(head.shape, order="F")
    pairs = []
    for axis in range(grid.ndim):
        lines = np.moveaxis(grid, axis, 0)
        both_set = (lines[1:] >= 0) & (lines[:-1] >= 0)
        pairs.append(np.stack([lines[1:][both_set], lines[:-1][both_set]]))
    left, right = np.concatenate(pairs, axis=1)
    # Union-find on whole arrays: join the roots of neighbours, then shorten every path.
    root = np.arange(set_voxels.size)
    while bool((root[left] != root[right]).any()):
        higher = np.maximum(root[left], root[right])
        np.minimum.at(root, higher, np.minimum(root[left], root[right]))
        while bool((root[root] != root).any()):
            root = root[root]
    return float(np.bincount(root).max() / set_voxels.size)


def volume_array(path: Path, head: VolumeHead) -> npt.NDArray[Any] | None:
    """The voxels as stored, unscaled; None for a volume of more than 64 million."""
    import numpy as np

    if head.voxels > _MAX_IN_MEMORY:
        return None
    return np.concatenate(list(_slabs(path, head))).reshape(head.shape, order="F")


def _slabs(path: Path, head: VolumeHead) -> Iterator[npt.NDArray[Any]]:
    """The voxels as stored, flat, a few megabytes at a time."""
    import numpy as np

    unread = head.voxels * head.dtype.itemsize
    step = max(1, _SLAB // head.dtype.itemsize) * head.dtype.itemsize
    with _open(path) as file:
        to_skip = head.offset
        while to_skip:
            to_skip -= len(_read_exactly(file, min(to_skip, _SLAB)))
        while unread:
            data = _read_exactly(file, min(unread, step))
            unread -= len(data)
            yield np.frombuffer(data, dtype=head.dtype).real
        _read(file, 1)  # reaching the end makes gzip compare its checksum


def _open(path: Path) -> IO[bytes]:
    try:
        if path.name.endswith(".gz"):
            return cast("IO[bytes]", gzip.open(path, "rb"))
        return path.open("rb")
    except OSError as error:
        raise Refused("unreadable", f"cannot be opened: {error_text(error)}") from None


def _read(file: IO[bytes], count: int) -> bytes:
    try:
        return file.read(count)
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise Refused("unreadable", f"is not a whole gzip file: {error_text(error)}") from None


def _read_exactly(file: IO[bytes], count: int) -> bytes:
    parts: list[bytes] = []
    missing = count
    while missing:
        data = _read(file, missing)
        if not data:
            raise Refused("unreadable", "is cut: the data ends before the declared volume")
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)


def _parse_header(block: bytes, kinds: str) -> VolumeHead:
    """The first bytes of a file as a NIfTI-1 or NIfTI-2 header."""
    import numpy as np
    from nibabel.nifti1 import Nifti1Header
    from nibabel.nifti2 import Nifti2Header

    is_nifti2 = len(block) >= _NIFTI2_BYTES and _NIFTI2_BYTES in (
        *struct.unpack("<i", block[:4]),
        *struct.unpack(">i", block[:4]),
    )
    if not is_nifti2 and len(block) < _NIFTI1_BYTES:
        raise Refused("unreadable", f"is too short for NIfTI: {len(block)} bytes")
    header = Nifti2Header(block) if is_nifti2 else Nifti1Header(block[:_NIFTI1_BYTES], check=False)
    if bytes(header["magic"].tobytes())[:3] not in _MAGIC:
        raise Refused("unreadable", "is not a single-file NIfTI volume")
    shape = tuple(int(extent) for extent in header.get_data_shape())
    if not shape or any(extent < 0 for extent in shape):
        raise Refused("unreadable", f"declares the impossible shape {shape}")
    if 0 in shape:
        raise Refused("shape", f"has shape {shape}, without a voxel")
    dtype = header.get_data_dtype()
    if dtype.kind not in kinds:
        raise Refused("dtype", f"has voxels of type {dtype}")
    slope, inter = header.get_slope_inter()
    offset = int(header.get_data_offset())
    # As nibabel: 0 is read from the file's beginning, what else lies in the header is refused.
    in_header = header.is_single and 0 < offset < header.single_vox_offset
    if in_header or not 0 <= offset <= _SLAB:
        raise Refused("unreadable", f"puts its data at the impossible offset {offset}")
    return VolumeHead(
        shape=shape,
        dtype=dtype,
        affine=np.asarray(header.get_best_affine(), dtype=np.float64),
        offset=offset,
        slope=1.0 if slope is None else float(slope),
        inter=0.0 if inter is None else float(inter),
    )


def affine_differs(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> bool:
    """Whether two voxel-to-world maps differ by more than rounding in the header (1e-3 mm)."""
    import numpy as np

    return not np.allclose(first, second, rtol=1e-4, atol=1e-3, equal_nan=False)
