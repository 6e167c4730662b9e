"""Public inputs of a task: which cases there are, and what their outputs must look like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ...errors import InputError
from .nifti import VolumeHead, volume_head
from .untrusted_files import Refused, image_size, npy_head, read_json

T = TypeVar("T")

_NO_CASES = {
    "models",
    "model",
    "model_zoo",
    "weights",
    "checkpoints",
    "private",
    "scripts",
    "docs",
    "examples",
    "cache",
}
_NOT_INPUTS = frozenset(
    (
        ".py",
        ".pyc",
        ".sh",
        ".md",
        ".rst",
        ".ipynb",
        ".cfg",
        ".toml",
        ".yaml",
        ".yml",
        ".pt",
        ".pth",
        ".ckpt",
        ".onnx",
        ".safetensors",
        ".bin",
        ".h5",
        ".pkl",
        ".joblib",
        ".gguf",
        "",
    )
)
"""Suffixes of programs, documents and weights."""
_IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")
_OUTPUT_LIKE = ("lesion.nii.gz", "organ.nii.gz", "dseg.nii.gz", "sct.nii.gz", "enhanced.npy")


@dataclass(frozen=True)
class PublicInputs:
    """Case id -> folder of its inputs."""

    root: Path
    folders: Mapping[str, Path]

    @property
    def cases(self) -> tuple[str, ...]:
        return tuple(self.folders)

    def volume_path(self, case: str) -> Path | None:
        """The case's reference volume: ct.nii.gz, else its first .nii.gz."""
        return self._first(case, ("ct.nii.gz",), (".nii.gz", ".nii"))

    def image_path(self, case: str) -> Path | None:
        """The case's image."""
        return self._first(case, ("image.png",), _IMAGE_SUFFIXES)

    def volume(self, case: str) -> VolumeHead | None:
        """Header of the case's reference volume; None when there is none."""
        return _readable(self.volume_path(case), volume_head)

    def array_shape(self, case: str) -> tuple[int, ...] | None:
        """Shape of the case's .npy input."""
        head = _readable(self.array_path(case), npy_head)
        return None if head is None else head.shape

    def array_path(self, case: str) -> Path | None:
        """The case's .npy input; of several the first with two axes, as clips and masks may lie
        beside it."""
        first = self._first(case, ("ldct.npy", "input.npy"), (".npy",))
        folder = self.folders.get(case)
        for path in (
            [first, *sorted(folder.glob("*.npy"))]
            if first is not None and folder is not None
            else []
        ):
            head = _readable(path, npy_head) if path.name not in _OUTPUT_LIKE else None
            if head is not None and len(head.shape) == 2:
                return path.resolve()
        return first

    def image_size(self, case: str) -> tuple[int, int] | None:
        """(width, height) of the case's image."""
        return _readable(self.image_path(case), image_size)

    def question(self, case: str) -> dict[str, Any] | None:
        """question.json of a case."""
        value: Any = _readable(self._first(case, ("question.json",), ()), read_json)
        return value if isinstance(value, dict) else None

    def _first(self, case: str, names: tuple[str, ...], suffixes: tuple[str, ...]) -> Path | None:
        folder = self.folders.get(case)
        if folder is None:
            return None
        for name in names:
            if (folder / name).is_file():
                return (folder / name).resolve()  # the user's own links are followed
        if not suffixes:
            return None
        return next(
            (
                p.resolve()
                for p in sorted(folder.iterdir())
                if p.name.lower().endswith(suffixes) and p.name not in _OUTPUT_LIKE and p.is_file()
            ),
            None,
        )


def _readable(path: Path | None, read: Callable[[Path, Path], T]) -> T | None:
    """What a reader makes of a file of the user's own; None without one, and for one that it
    refuses."""
    try:
        return None if path is None else read(path, path.parent)
    except Refused:
        return None


def find_public(public: Path, task: str | None) -> PublicInputs | None:
    """Cases under `public/<task>/<case>/` or `public/<case>/`; None when there is none for this
    task.

    A case is a folder that directly holds the kind of input file that most of its neighbours hold;
    model zoos, tools and hidden folders are none, whatever their names. InputError when `public` is
    not a folder.
    """
    if not public.is_dir():
        raise InputError(
            "is not a folder of public inputs",
            "give DIR with DIR/<task>/<case>/ or DIR/<case>/",
            public,
        )
    places = [public / name for name in _task_names(task) if (public / name).is_dir()]
    for place in (*places[:1], *(() if places else (public,))):
        folders = _with_inputs(
            {path.name: path for path in sorted(place.iterdir()) if _is_case(path)}
        )
        if folders:
            return PublicInputs(root=place, folders=folders)
    return None


def _task_names(task: str | None) -> list[str]:
    if (
        not task
        or len(task) > 200
        or task.startswith(".")
        or not task.isprintable()
        or "/" in task
        or "\\" in task
    ):
        return []
    short = task.removesuffix("-task")
    return list(dict.fromkeys((task, f"{short}-task", f"{short}-seg-task", short)))


def _with_inputs(folders: dict[str, Path]) -> dict[str, Path]:
    """Folders that hold the commonest kind of input; kinds that only programs and models come in do
    not count."""
    kinds = {
        name: {_suffix(child) for child in path.iterdir() if child.is_file()} - _NOT_INPUTS
        for name, path in folders.items()
    }
    counts = Counter(kind for found in kinds.values() for kind in found)
    if not counts:
        return folders
    most = max(counts.values())
    common = {kind for kind, count in counts.items() if count == most}
    return {name: path for name, path in folders.items() if kinds[name] & common}


def _suffix(path: Path) -> str:
    return "".join(path.suffixes[-2:]) if path.name.endswith(".gz") else path.suffix.lower()


def _is_case(path: Path) -> bool:
    if path.name.startswith((".", "_")) or path.name.lower() in _NO_CASES or not path.is_dir():
        return False
    try:
        return any(child.is_file() for child in path.iterdir())
    except OSError:
        return False
