"""Public inputs of a task: its cases, and what their outputs must look like."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from ...errors import InputError
from ...tasks.output_format import OutputFormat, read_format
from ...trajectories.reading.json_bytes import is_file, without_lone_surrogates
from ...trajectories.reading.layout import is_folder
from .nifti import VolumeHead, volume_head
from .untrusted_files import Refused, image_size, npy_head, read_json

T = TypeVar("T")

TASK_FILE = "task.yaml"
"""In a task's folder of public inputs: what the task demands of its outputs."""

_NOT_CASES = frozenset(
    [
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
    ]
)
"""Names of folders beside the cases, in lower case."""
_NOT_INPUTS = frozenset(
    [
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
    ]
)
"""Suffixes of programs, documents and weights; files without a suffix are not inputs either."""
_IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")
_OUTPUT_NAMES = ("lesion.nii.gz", "organ.nii.gz", "dseg.nii.gz", "sct.nii.gz", "enhanced.npy")
"""Names of outputs, which may lie beside the inputs."""
_MAX_TASK_NAME = 200


@dataclass(frozen=True)
class PublicInputs:
    """The folder of inputs of each case. `folders` maps case ids to them."""

    root: Path
    folders: Mapping[str, Path]

    @property
    def cases(self) -> tuple[str, ...]:
        """The ids of the cases."""
        return tuple(self.folders)

    def volume_path(self, case: str, brief: str = "") -> Path | None:
        """The case's reference volume: ct.nii.gz, else the one that the brief names.

        If it names none or several, the first of those if all have one shape. None if shapes
        differ, as nothing says which of them outputs must have.
        """
        known = self._first_file(case, ("ct.nii.gz",), ())
        if known is not None:
            return known
        volumes = self._files(case, (".nii.gz", ".nii"))
        volumes = [path for path in volumes if _names_file(brief, path.name)] or volumes
        if len(volumes) > 1:
            heads = [_read_or_none(path, volume_head) for path in volumes]
            if len({head.shape for head in heads if head is not None}) > 1:
                return None
        return volumes[0] if volumes else None

    def image_path(self, case: str) -> Path | None:
        """The case's image: image.png, else its first image file."""
        return self._first_file(case, ("image.png",), _IMAGE_SUFFIXES)

    def volume(self, case: str, brief: str = "") -> VolumeHead | None:
        """The header of the case's reference volume; None if it is not known."""
        return _read_or_none(self.volume_path(case, brief), volume_head)

    def array_shape(self, case: str) -> tuple[int, ...] | None:
        """The shape of the case's .npy input; None if there is none."""
        head = _read_or_none(self.array_path(case), npy_head)
        return None if head is None else head.shape

    def array_path(self, case: str) -> Path | None:
        """The case's .npy input.

        Of several the first with two axes, as clips and masks may lie beside it.
        """
        first = self._first_file(case, ("ldct.npy", "input.npy"), (".npy",))
        if first is None:
            return None
        for path in (first, *sorted(self.folders[case].glob("*.npy"))):
            if path.name in _OUTPUT_NAMES:
                continue
            head = _read_or_none(path, npy_head)
            if head is not None and len(head.shape) == 2:
                return path.resolve()
        return first

    def image_size(self, case: str) -> tuple[int, int] | None:
        """Width and height of the case's image in pixels; None if there is no image."""
        return _read_or_none(self.image_path(case), image_size)

    def question(self, case: str) -> dict[str, Any] | None:
        """The content of the case's question.json; None if there is none."""
        value: Any = _read_or_none(self._first_file(case, ("question.json",), ()), read_json)
        return value if isinstance(value, dict) else None

    def _first_file(
        self, case: str, names: tuple[str, ...], suffixes: tuple[str, ...]
    ) -> Path | None:
        """The first file of the case with one of the names, else with one of the suffixes.

        Links are resolved: these are the user's own files.
        """
        folder = self.folders.get(case)
        if folder is None:
            return None
        for name in names:
            if (folder / name).is_file():
                return (folder / name).resolve()
        if not suffixes:
            return None
        files = self._files(case, suffixes)
        return files[0] if files else None

    def _files(self, case: str, suffixes: tuple[str, ...]) -> list[Path]:
        """The case's inputs with one of the suffixes, by name; links are resolved."""
        folder = self.folders.get(case)
        if folder is None:
            return []
        return [
            path.resolve()
            for path in sorted(folder.iterdir())
            if path.name.lower().endswith(suffixes)
            and path.name not in _OUTPUT_NAMES
            and path.is_file()
        ]


def _names_file(brief: str, name: str) -> bool:
    """Whether the brief names a file, as a word or at the end of a path."""
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-]*\w)", brief) is not None


def _read_or_none(path: Path | None, read: Callable[[Path, Path], T]) -> T | None:
    """The content of a file of the user's own; None if there is no file or it is refused."""
    if path is None:
        return None
    try:
        return read(path, path.parent)
    except Refused:
        return None


def find_public(public: Path, task: str | None) -> PublicInputs | None:
    """The cases under `public/<task>/<case>/` or `public/<case>/`; None if there are none.

    A case is a folder that directly holds the kind of input file that most of its neighbours hold;
    model zoos, tools and hidden folders are left out, whatever their names. InputError if `public`
    is not a folder.
    """
    if not public.is_dir():
        raise InputError(
            "is not a folder of public inputs",
            "give DIR with DIR/<task>/<case>/ or DIR/<case>/",
            public,
        )
    root = public
    for name in _folder_names(task):
        if is_folder(public / name):
            root = public / name
            break
    try:
        cases = [path for path in sorted(root.iterdir()) if _may_be_case(path)]
    except PermissionError as error:
        place = Path(error.filename or root)
        raise InputError("cannot be listed", "check its permissions", place) from None
    folders = _with_common_inputs({without_lone_surrogates(path.name): path for path in cases})
    return PublicInputs(root=root, folders=folders) if folders else None


def demanded_format(public: Path, task: str | None) -> OutputFormat | None:
    """What the public inputs say the task demands: `public/<task>/task.yaml` or `public/task.yaml`.

    None without such a file; ConfigError for one that is not in that form (docs/tasks.md).
    """
    for folder in (*(public / name for name in _folder_names(task)), public):
        file = folder / TASK_FILE
        if is_file(file):
            status = file.stat()
            return _format_of(file, status.st_mtime_ns, status.st_size)
    return None


@lru_cache(maxsize=256)
def _format_of(file: Path, modified_ns: int, size: int) -> OutputFormat:
    """The format in a file; read again when the file has changed."""
    return read_format(file)


def _folder_names(task: str | None) -> list[str]:
    """Names that a task's folder may have; none for a task that is not a plain name."""
    if not task or len(task) > _MAX_TASK_NAME or task.startswith("."):
        return []
    if not task.isprintable() or "/" in task or "\\" in task:
        return []
    short = task.removesuffix("-task")
    return list(dict.fromkeys((task, f"{short}-task", f"{short}-seg-task", short)))


def _with_common_inputs(folders: dict[str, Path]) -> dict[str, Path]:
    """The folders that hold the most common kind of input; all if no input is found.

    Kinds of files that only programs and models have do not count.
    """
    kinds = {}
    for name, path in folders.items():
        suffixes = {_suffix(child) for child in path.iterdir() if child.is_file()}
        kinds[name] = suffixes - _NOT_INPUTS
    counts = Counter(kind for folder_kinds in kinds.values() for kind in folder_kinds)
    if not counts:
        return folders
    highest = max(counts.values())
    common = {kind for kind, count in counts.items() if count == highest}
    return {name: path for name, path in folders.items() if kinds[name] & common}


def _suffix(path: Path) -> str:
    return "".join(path.suffixes[-2:]) if path.name.endswith(".gz") else path.suffix.lower()


def _may_be_case(path: Path) -> bool:
    """Whether a path is a folder with files that is neither hidden nor known for something else."""
    if path.name.startswith((".", "_")) or path.name.lower() in _NOT_CASES or not path.is_dir():
        return False
    try:
        return any(child.is_file() for child in path.iterdir())
    except PermissionError:
        raise
    except OSError:
        return False
