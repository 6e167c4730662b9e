"""`OutputFormat`: the demands of one task on its output files, from YAML or from a read brief."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ..errors import ConfigError
from ..package_data import yaml_loader

ROUNDING = 1e-3
"""Share of the range of values by which rounding may leave it."""
FileName = Annotated[str, Field(pattern=r"^[\w.-]{1,80}$")]
DType = Literal[
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
Unit = Literal["HU", "SUV", "dB", "normalized", "input", "pixels", "fraction"]
"""Unit of the values. Images: Hounsfield units, standardised uptake values, decibels, a fixed
interval, or whatever unit the input has. Boxes: pixels or fractions of the image."""
_ABSOLUTE_UNITS = ("HU", "SUV", "dB", "normalized")


class OutputFormat(BaseModel):
    """What one task demands of its output files; None or empty where it demands nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    case_files: tuple[FileName, ...] = ()
    """Names of the files that every case must have, in the case's own folder."""
    files: tuple[FileName, ...] = ()
    """Names of the files that the submission as a whole must have."""
    validation_files: tuple[FileName, ...] = ()
    """Names of calibration and post-processing files that validation must leave behind."""
    dtype: DType | None = None
    """NumPy type of the values of an image."""
    low: float | None = None
    """Least value of an image, in `unit`."""
    high: float | None = None
    """Greatest value of an image, in `unit`."""
    unit: Unit | None = None
    labels: tuple[Annotated[int, Field(ge=0, le=65_535)], ...] = ()
    """Values that a mask may hold, the background 0 included."""
    classes: tuple[Annotated[str, Field(min_length=1, max_length=80)], ...] = ()
    """Names of the classes that a case may be assigned to."""
    every_class_occurs: bool = False
    """Whether the brief says that each class occurs among the cases."""
    axes: Literal[2, 3] | None = None
    """Number of axes of an image or a mask."""

    @model_validator(mode="after")
    def _check_range(self) -> OutputFormat:
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ValueError(f"low {self.low:g} is not below high {self.high:g}")
        return self

    @property
    def has_absolute_scale(self) -> bool:
        """Whether values of different cases can be compared: they have a unit or an interval."""
        has_range = self.low is not None and self.high is not None
        return self.unit in _ABSOLUTE_UNITS or has_range

    def validation_files_in(self, brief: str) -> frozenset[str]:
        """The validation files that this version of the brief names; others ask for none."""
        return frozenset(name for name in self.validation_files if name in brief)

    def leaves_range(self, low: float, high: float) -> bool:
        """Whether values from `low` to `high` leave the demanded range by more than rounding."""
        lowest = self.low if self.low is not None else min(low, 0.0)
        highest = self.high if self.high is not None else max(high, 0.0)
        tolerance = ROUNDING * max(highest - lowest, 1e-9)
        return low < lowest - tolerance or high > highest + tolerance


NO_DEMANDS = OutputFormat()


class TaskFile(OutputFormat):
    """A format as it stands in a file, with what is said about it."""

    source: str = ""
    """Where the demands come from."""
    aliases: tuple[str, ...] = ()
    """Other names of the task."""
    brief_sha256: str = ""
    """Of the brief that a model read; empty for a file that was written by hand."""


def read_format(file: Path) -> OutputFormat:
    """The format in a YAML file; ConfigError if it holds anything else."""
    task_file = read_task_file(file)
    return OutputFormat.model_validate(
        task_file.model_dump(exclude={"source", "aliases", "brief_sha256"})
    )


@cache
def published_formats() -> Mapping[str, OutputFormat]:
    """Formats of the benchmark's published tasks by task id and alias."""
    formats: dict[str, OutputFormat] = {}
    for file in sorted(Path(__file__).parent.glob("*.yaml")):
        for name in (file.stem, *read_task_file(file).aliases):
            formats[name] = read_format(file)
    return formats


def published_format(task: str | None) -> OutputFormat:
    """The format of a published task; no demands for any other."""
    return published_formats().get(task or "", NO_DEMANDS)


def read_task_file(file: Path) -> TaskFile:
    """A task's file as it stands; ConfigError if it is not in the form of docs/tasks.md."""
    try:
        return TaskFile.model_validate(_read_mapping(file))
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, first["loc"])) or "demands"
        hint = "docs/tasks.md lists what a task may demand"
        raise ConfigError(f"{file}: {location}: {first['msg']}", hint) from None


def _read_mapping(file: Path) -> dict[str, Any]:
    """The YAML mapping in a file; ConfigError if it holds anything else."""
    import yaml

    try:
        document = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml_loader())
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}", "check the file") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        message = " ".join(str(error).split())[:200]
        raise ConfigError(f"{file}: is not YAML: {message}", "correct the file") from None
    if not isinstance(document, Mapping):
        raise ConfigError(f"{file}: is not a mapping", "write one demand a line: dtype: float32")
    return dict(document)
