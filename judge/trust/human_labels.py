"""Human labels: one JSON file a run and annotator, read strictly, checked against run and rubric, written canonically.

The file (all keys but `run` and `annotator` may be missing; a criterion may be null for "does not apply"):

    {"run": "kidney-lite-01", "annotator": "a1", "stages": {"1": "S1", ...}, "criteria": {"S1a": 1, "S3": 0.5},
     "evidence": {"S1a": [4]}, "codes": {"E3": {"turns": [9], "why": "one sentence"}}, "notes": ""}

Reading refuses what has no meaning (InputError names the field); `problems` lists what contradicts the run or the
rubric. Writing sorts turns and criteria, and keeps numbers and the order of codes as they were written, so that a file
comes back byte for byte.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from ...errors import InputError
from ...rubrics.model import Rubric
from ...sanitize import sanitize_line
from ...trajectories.json_bytes import read_json
from ...trajectories.models import STAGES, Run, Stage
from ..store import Store
from ..store.connection import clean_text

PAPER_CODES = ("E1", "E2", "E3", "E4", "E5")
LABEL_FIELDS = ("run", "annotator", "stages", "criteria", "evidence", "codes", "notes")
_FORM = "expected a label file as docs/labels.md describes"


class LabelledCode(BaseModel):
    """A fired code, the turns that show it, and why, in a sentence."""

    model_config = ConfigDict(frozen=True)

    turns: tuple[int, ...]
    why: str


class Labels(BaseModel):
    """One annotator's labels of one run. `criteria` values are None where the item does not apply."""

    model_config = ConfigDict(frozen=True)

    run: str
    annotator: str
    stages: dict[int, Stage] = {}
    """By turn, 1-based."""
    criteria: dict[str, int | float | None] = {}
    evidence: dict[str, tuple[int, ...]] = {}
    codes: dict[str, LabelledCode] = {}
    """Empty when none fired, and also when nobody looked: then `codes` is not in `model_fields_set`."""
    notes: str = ""


def read_labels(path: str | Path) -> Labels:
    """The labels in a file. InputError says which field is no label, and where."""
    path = Path(path)
    return parse_labels(read_json(path), path)


def parse_labels(data: Any, path: Path | None = None, *, strict: bool = True) -> Labels:
    """Labels from plain values. InputError as for `read_labels`.

    Not `strict`: fields that are not ours are left aside, null is as good as absent, and the annotator is `a1` if unnamed.
    """
    if not strict and isinstance(data, Mapping):
        data = {"annotator": "a1", **{name: data[name] for name in LABEL_FIELDS if data.get(name) is not None}}
    if not isinstance(data, dict):
        raise InputError(f"is {type(data).__name__}, not an object", _FORM, path)
    reader = _Reader(path)
    unknown = sorted(str(key) for key in data if key not in LABEL_FIELDS)
    if unknown:
        raise InputError(
            f"unknown field {sanitize_line(unknown[0][:40])!r}", f"known are {', '.join(LABEL_FIELDS)}", path
        )
    # Codes that nobody looked for stay apart from codes that did not fire: the field is set only when the file has it.
    looked = (
        {}
        if data.get("codes") is None
        else {"codes": {k: reader.code(v, f"codes.{k}") for k, v in reader.items(data, "codes")}}
    )
    return Labels(
        run=reader.text(data.get("run"), "run", required=True),
        annotator=reader.text(data.get("annotator"), "annotator", required=True),
        stages={reader.turn(k, f"stages.{k}"): reader.stage(v, f"stages.{k}") for k, v in reader.items(data, "stages")},
        criteria={k: reader.value(v, f"criteria.{k}") for k, v in reader.items(data, "criteria")},
        evidence={k: reader.turns(v, f"evidence.{k}") for k, v in reader.items(data, "evidence")},
        **looked,
        notes=reader.text(data.get("notes", ""), "notes"),
    )


def dump_labels(labels: Labels) -> str:
    """The labels as a file's text: fields in a fixed order, turns and criteria sorted, one space of indentation."""
    data = {
        "run": labels.run,
        "annotator": labels.annotator,
        "stages": {str(turn): labels.stages[turn] for turn in sorted(labels.stages)},
        "criteria": dict(sorted(labels.criteria.items())),
        "evidence": {id: list(turns) for id, turns in sorted(labels.evidence.items())},
        "codes": {code: {"turns": list(said.turns), "why": said.why} for code, said in labels.codes.items()},
        "notes": labels.notes,
    }
    if "codes" not in labels.model_fields_set:
        del data["codes"]
    return clean_text(json.dumps(data, indent=1, ensure_ascii=False))


def problems(labels: Labels, run: Run | None = None, rubric: Rubric | None = None) -> list[str]:
    """What in the labels contradicts the run (turns) or the rubric (ids, scales, codes), one line each."""
    found = []
    if run is not None:
        found += _against_run(labels, run)
    if rubric is not None:
        found += _against_rubric(labels, rubric)
    found += [f"codes.{code}: not one of {', '.join(PAPER_CODES)}" for code in labels.codes if code not in PAPER_CODES]
    found += [f"evidence.{id}: no value for {id} in criteria" for id in labels.evidence if id not in labels.criteria]
    return found


def import_labels(store: Store, labels: Labels) -> bool:
    """Keep these labels in the store; False when they are there already. Changed ones replace older ones in force."""
    return store.add_label(labels.run, labels.annotator, dump_labels(labels))


def stored_labels(store: Store, run: str | None = None, annotator: str | None = None) -> Iterator[Labels]:
    """The labels in force, by run and annotator."""
    for _, _, body in store.labels(run, annotator):
        yield parse_labels(json.loads(body))


def export_labels(labels: Iterable[Labels], folder: Path) -> list[Path]:
    """Write `FOLDER/<annotator>/<run>.json` for each; returns the files.

    Names that could leave the folder are changed, and numbered where two runs come to the same one. InputError when a file
    cannot be written.
    """
    written: dict[Path, None] = {}
    for each in labels:
        place, name = folder / _file_name(each.annotator), _file_name(each.run)
        names = (f"{name}{tail}.json" for tail in chain([""], (f"-{n}" for n in count(2))))
        path = next(p for p in map(place.joinpath, names) if p not in written)
        try:
            place.mkdir(parents=True, exist_ok=True)
            path.write_text(dump_labels(each), encoding="utf-8", newline="\n")
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", "choose another folder", path) from error
        written[path] = None
    return list(written)


def _file_name(name: str) -> str:
    kept = "".join(c if c.isalnum() or c in "-_.+ " else "_" for c in clean_text(name)).strip(" .")
    return kept[:120] or "_"


def _against_run(labels: Labels, run: Run) -> list[str]:
    last = len(run.turns)
    found = []
    if labels.run != run.id:
        found.append(f"run: labels of {labels.run!r}, the run is {run.id!r}")
    named: list[tuple[str, Iterable[int]]] = [("stages", labels.stages)]
    named += [(f"evidence.{id}", turns) for id, turns in labels.evidence.items()]
    named += [(f"codes.{code}.turns", said.turns) for code, said in labels.codes.items()]
    for where, turns in named:
        outside = [turn for turn in turns if turn > last]
        if outside:
            found.append(f"{where}: turn {outside[0]} of a run with {last}")
    missing = [turn for turn in range(1, last + 1) if turn not in labels.stages]
    if labels.stages and missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        found.append(f"stages: turn {missing[0]}{more} without a stage")
    return found


def _against_rubric(labels: Labels, rubric: Rubric) -> list[str]:
    known = {c.id: c for c in rubric.criteria()}
    found = [f"criteria.{id}: not in rubric {rubric.id}" for id in labels.criteria if id not in known]
    if labels.criteria:
        found += [f"criteria: {id} is missing" for id in known if id not in labels.criteria]
    for id, value in labels.criteria.items():
        if id not in known:
            continue
        scale = known[id].values
        if value is None and known[id].conditional is None and known[id].tiers is None:
            found.append(f"criteria.{id}: null, but the item always applies")
        elif value is not None and not any(math.isclose(value, level) for level in scale):
            found.append(f"criteria.{id}: {value} is not one of {', '.join(f'{level:g}' for level in scale)}")
    return found


class _Reader:
    """Takes values apart; every refusal names the field."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def _no(self, where: str, value: Any, wanted: str) -> InputError:
        shown = "missing" if value is None else type(value).__name__
        if isinstance(value, str):
            shown = repr(sanitize_line(value[:40]))
        return InputError(f"{sanitize_line(where[:60])}: {shown}, not {wanted}", _FORM, self._path)

    def items(self, data: Mapping[str, Any], name: str) -> list[tuple[str, Any]]:
        value = data.get(name)
        if value is None:
            return []
        if not isinstance(value, dict):
            raise self._no(name, value, "an object")
        return [(str(key), item) for key, item in value.items()]

    def text(self, value: Any, where: str, required: bool = False) -> str:
        if not isinstance(value, str) or (required and not value.strip()):
            raise self._no(where, value, "a text")
        return clean_text(value)

    def stage(self, value: Any, where: str) -> Stage:
        for stage in STAGES:
            if value == stage:
                return stage
        raise self._no(where, value, "one of S1-S5")

    def turn(self, value: Any, where: str) -> int:
        if (
            isinstance(value, str)
            and value.isascii()
            and value.isdigit()
            and len(value) < 8
            and str(int(value)) == value
        ):
            value = int(value)
        if type(value) is not int or not 1 <= value < 10_000_000:
            raise self._no(where, value, "a turn number from 1")
        return value

    def turns(self, value: Any, where: str) -> tuple[int, ...]:
        if not isinstance(value, list):
            raise self._no(where, value, "a list of turn numbers")
        if any(type(turn) is not int for turn in value):
            raise self._no(where, value, "a list of turn numbers")
        return tuple(self.turn(turn, where) for turn in value)

    def value(self, value: Any, where: str) -> int | float | None:
        if value is None:
            return None
        if type(value) not in (int, float) or not 0 <= value <= 1:
            raise self._no(where, value, "a number in [0, 1]")
        return value  # type: ignore[no-any-return]

    def code(self, value: Any, where: str) -> LabelledCode:
        if not isinstance(value, dict):
            raise self._no(where, value, 'an object {"turns", "why"}')
        return LabelledCode(
            turns=self.turns(value.get("turns", []), f"{where}.turns"),
            why=self.text(value.get("why", ""), f"{where}.why"),
        )
