"""Facts about delivered files: how many of each kind, the head of one, and files that differ.

Files are opened by the checks' own readers: no pickles, no links that leave the run, only headers
and first kilobytes. That a file cannot be opened is a fact itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from ...trajectories.models import OutputFile, Run
from ...trajectories.reading.layout import Fence
from ...trajectories.record.facts import Fact
from ...trajectories.record.strangers import quoted_line
from ..checks.nifti import volume_head
from ..checks.untrusted_files import (
    Refused,
    checked_size,
    fence_of,
    image_size,
    npy_head,
    read_json,
)
from .wording import listed, plain_fact, short_name

_MAX_HEAD = 300
"""Characters of a text file that are shown."""
_HEAD_BYTES = 4_096
_MAX_KEYED = 64 * 1024
"""Bytes of a JSON file up to which its keys are read."""
_MAX_KINDS = 6
"""Kinds of files of which one file's head is shown."""
_MAX_COMPARED = 8
"""Other files of a kind that are compared with that one."""
_SAME_SUFFIX = 4
"""Files with different names and one suffix from which they count as one kind."""
_TEXTS = frozenset({".json", ".jsonl", ".csv", ".tsv", ".txt", ".md", ".yaml", ".yml", ".log"})
_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp"})
_ARRAYS = frozenset({".npy", ".nii", ".nii.gz"})


class _Kind(NamedTuple):
    """Files that should look alike: of one name, or of one suffix where names differ."""

    name: str
    files: list[OutputFile]

    @property
    def in_cases(self) -> bool:
        """Whether they lie in the folders of the cases rather than beside them."""
        return self.files[0].case is not None


def file_facts(run: Run) -> Iterator[Fact]:
    """The number of files of each kind, one head of each, and where others of a kind differ."""
    if run.outputs.root is None:
        yield plain_fact("files", "No folder of delivered files came with the run.", "file")
        return
    if not run.outputs.files:
        yield plain_fact("files", "The folder of delivered files is empty.", "file")
        return
    kinds = _kinds(run.outputs.files)
    yield plain_fact("files", _counts(run, kinds), "file")
    openable = [kind for kind in kinds if _suffix(kind.files[0]) in _TEXTS | _IMAGES | _ARRAYS]
    for kind in openable[:_MAX_KINDS]:
        yield from _kind_facts(kind, fence_of(run))


def _counts(run: Run, kinds: Sequence[_Kind]) -> str:
    in_cases = [f"{kind.name} {len(kind.files)} times" for kind in kinds if kind.in_cases]
    beside = []
    for kind in kinds:
        if not kind.in_cases:
            count = len(kind.files)
            beside.append(f"{kind.name} {count} times" if count > 1 else kind.name)
    text = f"Delivered: {len(run.outputs.files)} files in {len(run.outputs.cases)} case folders"
    if in_cases:
        text += f"; of the cases: {listed(in_cases, 350)}"
    if beside:
        text += f"; beside the case folders: {listed(beside, 250)}"
    return f"{text}."


def _kinds(files: Sequence[OutputFile]) -> list[_Kind]:
    """The kinds of files: those in the cases first, then the most frequent.

    Files whose names occur once are grouped by suffix if there are many of them.
    """
    keys = [(file.case is None, PurePosixPath(file.name).name) for file in files]
    counts = Counter(keys)
    unique_by_suffix = Counter(
        (beside, _suffix_of(name)) for (beside, name), count in counts.items() if count == 1
    )
    groups: dict[tuple[bool, str], list[OutputFile]] = {}
    for file, (beside, name) in zip(files, keys, strict=True):
        suffix = _suffix_of(name)
        if counts[beside, name] == 1 and unique_by_suffix[beside, suffix] >= _SAME_SUFFIX:
            name = f"*{suffix}"
        groups.setdefault((beside, name), []).append(file)
    ordered = sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1]))
    return [
        _Kind(short_name(name), sorted(group, key=lambda file: (file.case or "", file.name)))
        for (_, name), group in ordered
    ]


def _kind_facts(kind: _Kind, root: Fence) -> Iterator[Fact]:
    first, *others = kind.files
    form = _form(first, root)
    case = None if first.case is None else short_name(first.case)
    text = f"The file {_place(first)} {_head(first, form, root)}"
    yield Fact(kind="file_head", text=text, source="file", case=case)
    if form is None:
        return
    # Evenly spread over all others, so that a fault in the last cases is seen too.
    step = max(1, math.ceil(len(others) / _MAX_COMPARED))
    compared = [(file, _form(file, root)) for file in others[::step]]
    different = [
        f"{_place(file)} {other_form}"
        for file, other_form in compared
        if other_form is not None and other_form != form
    ]
    if different:
        text = (
            f"{len(different)} of {len(compared)} other files {kind.name} that were looked at"
            f" differ from {_place(first)} ({form}): {listed(different, 400, '; ')}"
        )
        yield plain_fact("files_differ", text, "file")


def _head(file: OutputFile, form: str | None, root: Fence) -> str:
    """What a file contains, in words; `form` as of `_form`."""
    if _suffix(file) not in _TEXTS:
        return f"{form}."
    try:
        checked_size(file.path, root)
        with file.path.open("rb") as opened:
            start = opened.read(_HEAD_BYTES)
    except Refused as refused:
        return f"cannot be opened: {refused.text}."
    except OSError:
        return "cannot be opened: the system refuses it."
    if not start.strip():
        return "is empty."
    if b"\0" in start:
        return f"is binary; its first bytes are {start[:8].hex(' ')}."
    is_json = file.name.endswith(".json")
    lines = [" ".join(line.split()) for line in start.decode("utf-8", "replace").splitlines()]
    text = (" " if is_json else "\n").join(line for line in lines if line)
    is_whole = len(text) <= _MAX_HEAD and len(start) < _HEAD_BYTES
    more = "" if is_whole else " ..."
    keys = f"has {form} and " if is_json and form is not None else ""
    return f"{keys}begins: {quoted_line(text[:_MAX_HEAD])}{more}"


def _form(file: OutputFile, root: Fence) -> str | None:
    """What files of one kind should have in common: shape and type, keys, or the header.

    None for kinds without such a thing; that a file is broken, whatever its kind.
    """
    try:
        return _readable_form(file, root)
    except Refused as refused:
        return f"is broken: it {refused.text}"
    except (OSError, ValueError, ArithmeticError):
        return "cannot be opened"


def _readable_form(file: OutputFile, root: Fence) -> str | None:
    path, suffix = file.path, _suffix(file)
    if suffix == ".npy":
        array = npy_head(path, root)
        return f"holds an array of shape {array.shape} and type {short_name(str(array.dtype))}"
    if suffix in (".nii", ".nii.gz"):
        volume = volume_head(path, root)
        spacing = (math.hypot(*map(float, volume.affine[:3, axis])) for axis in range(3))
        size = " x ".join(f"{step:.3g}" for step in spacing)
        return f"holds a volume of shape {volume.shape}, type {volume.dtype} and spacing {size} mm"
    if suffix in _IMAGES:
        width, height = image_size(path, root)
        return f"holds an image of {width} x {height} pixels"
    if suffix == ".json":
        is_small = checked_size(path, root) <= _MAX_KEYED
        return _keys(read_json(path, root)) if is_small else None
    if suffix in (".csv", ".tsv"):
        checked_size(path, root)
        with path.open("rb") as opened:
            header = opened.readline(_HEAD_BYTES)
        return f"has the header {short_name(header.decode('utf-8', 'replace'), 120)}"
    return None


def _keys(value: object) -> str:
    if isinstance(value, dict):
        if not value:
            return "no keys"
        names = [short_name(str(key)) for key in sorted(value, key=str)]
        return f"the keys {listed(names, 160)}"
    if isinstance(value, list):
        if value and isinstance(value[0], dict):
            return f"a list of objects with {_keys(value[0])}"
        return "a list"
    return "a single value"


def _place(file: OutputFile) -> str:
    path = file.name if file.case is None else f"{file.case}/{file.name}"
    return short_name(path, 80)


def _suffix(file: OutputFile) -> str:
    return _suffix_of(file.name)


def _suffix_of(name: str) -> str:
    lower = name.lower()
    return ".nii.gz" if lower.endswith(".nii.gz") else PurePosixPath(lower).suffix
