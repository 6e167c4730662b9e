"""The labelled runs that benchmarks measure on: recorded, constructed, public runs of other agents,
or any folder's.

The constructed runs come from an archive (`make data`), their labels from
benchmarks/data/labels.jsonl; benchmarks/data/ README.md says what they are. Public runs are read
from AMBJUDGE_EXTERNAL_DATA, else ../shared/data/external, their labels from external_labels beside
it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ambjudge.judge.checks.public_inputs import demanded_format
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.load import load_run

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "tests" / "data" / "recorded"
CONSTRUCTED = ROOT / "data" / "constructed"
TASKS = ROOT / "benchmarks" / "data" / "tasks"
"""What the constructed tasks demand of their outputs, by set: read by a model in their briefs."""
LABELS = ROOT / "benchmarks" / "data" / "labels.jsonl"
EXTERNAL = Path(
    os.environ.get("AMBJUDGE_EXTERNAL_DATA") or ROOT.parent / "shared" / "data" / "external"
)


@dataclass(frozen=True)
class LabelledRun:
    """One run's folder and what its annotator said of it (docs/labels.md)."""

    group: str
    """The set that the run belongs to."""
    folder: Path
    label: dict[str, Any]
    second: dict[str, Any] | None = None
    """A second annotator's codes, where there are any."""
    split: str | None = None
    """`dev` or `opened` for constructed runs."""
    public: Path | None = None
    """Public inputs of the run's tasks."""

    @property
    def name(self) -> str:
        return self.folder.name


def load_labelled(labelled: LabelledRun) -> Run:
    """The run, with the demands of its task if they are known."""
    run = load_run(labelled.folder)
    folder = TASKS / labelled.group
    demanded = demanded_format(folder, run.task) if folder.is_dir() else None
    return run if demanded is None else run.model_copy(update={"output_format": demanded})


def recorded(root: Path = RECORDED) -> list[LabelledRun]:
    """The recorded runs of the benchmark's own shape, with the adjudicated labels, or those of a
    like folder."""
    public = root / "public" if (root / "public").is_dir() else None
    return [
        LabelledRun(
            "recorded",
            root / "runs" / path.stem,
            json.loads(path.read_text("utf-8")),
            public=public,
        )
        for path in sorted((root / "labels" / "gold").glob("*.json"))
    ]


def constructed(*sets: str) -> list[LabelledRun]:
    """The constructed runs of the named sets, of all without a name; ends the program when they are
    not unpacked."""
    if not CONSTRUCTED.is_dir():
        sys.exit("the constructed runs are not unpacked: run `make data`")
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for label in constructed_labels():
        if not sets or label["set"] in sets:
            found.setdefault((label["set"], label["run"]), []).append(label)
    runs = []
    for (group, name), (first, *more) in found.items():
        folder = CONSTRUCTED / group / "runs" / name
        runs.append(LabelledRun(group, folder, first, more[0] if more else None, first["split"]))
    return runs


def constructed_labels() -> Iterator[dict[str, Any]]:
    """Every label of the constructed runs, by set and run; the gold one, which has stages, before a
    second annotator's."""
    with LABELS.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def external() -> list[LabelledRun]:
    """Public runs of other agents that have labels; none where they are not on this machine."""
    return [
        LabelledRun(
            "external", EXTERNAL / path.parent.name / path.stem, json.loads(path.read_text("utf-8"))
        )
        for path in sorted((EXTERNAL.parent / "external_labels").glob("*/*.json"))
        if (EXTERNAL / path.parent.name / path.stem).is_dir()
    ]


def of_folder(folder: Path) -> list[LabelledRun]:
    """The runs of a folder with runs/ and labels/; the gold labels where several annotators' lie
    beside each other."""
    labels = folder / "labels"
    labels = labels / "gold" if (labels / "gold").is_dir() else labels
    second = folder / "labels-a2"
    return [
        LabelledRun(
            folder.name,
            folder / "runs" / path.stem,
            json.loads(path.read_text("utf-8")),
            _read(second / path.name),
        )
        for path in sorted(labels.glob("*.json"))
    ]


def _read(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text("utf-8")) if path.is_file() else None
