"""Human labels: one JSON file per run and annotator.

Files are read strictly, checked against run and rubric, and written canonically. Their form (all
keys but `run` and `annotator` may be missing; a criterion may be null for "does not apply"):

    {"run": "kidney-lite-01", "annotator": "a1", "stages": {"1": "S1", ...},
     "criteria": {"S1a": 1, "S3": 0.5}, "evidence": {"S1a": [4]},
     "codes": {"E3": {"turns": [9], "why": "one sentence"}}, "notes": "",
     "drawn": {"probability": 0.25, "stratum": "E3", "size": 120}}

Reading refuses what has no meaning (InputError names the field); `problems` lists what contradicts
the run or the rubric. Writing sorts turns and criteria, and keeps numbers and the order of codes as
they were written, so that a file comes back byte for byte.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    ValidationError,
)
from pydantic_core import PydanticCustomError

from ...atomic_files import atomic_write
from ...error_codes.paper_codes import CODES
from ...errors import InputError
from ...rubrics.model import Rubric
from ...sanitize import sanitize_line
from ...trajectories.importers.saving import safe_name
from ...trajectories.models import Run, Stage
from ...trajectories.reading.json_bytes import read_json
from ..store import Store
from ..store.connection import clean_text

LABEL_FIELDS = ("run", "annotator", "drawn", "stages", "criteria", "evidence", "codes", "notes")
_FORM = "expected a label file as docs/labels.md describes"


def _turn_from_key(key: Any) -> Any:
    """The number of a turn that is a key: JSON keys are always text."""
    if not (isinstance(key, str) and key.isascii() and key.isdigit() and len(key) < 8):
        return key
    return int(key) if str(int(key)) == key else key


def _check_value(value: Any) -> Any:
    """A value of a criterion, unchanged. Booleans are not numbers."""
    if value is None or (type(value) in (int, float) and 0 <= value <= 1):
        return value
    raise PydanticCustomError("label", "Input should be a number in [0, 1], or null")


def _empty_if_null(value: Any) -> Any:
    return {} if value is None else value


Text = Annotated[StrictStr, AfterValidator(clean_text)]
Name = Annotated[StrictStr, Field(pattern=r"\S"), AfterValidator(clean_text)]
Turn = Annotated[StrictInt, Field(ge=1, lt=10_000_000)]
TurnKey = Annotated[Turn, BeforeValidator(_turn_from_key)]
Value = Annotated[int | float | None, BeforeValidator(_check_value)]
_NullIsEmpty = BeforeValidator(_empty_if_null)


class LabelledCode(BaseModel):
    """A code that applies, the turns that show it, and the reason in a sentence."""

    model_config = ConfigDict(frozen=True)

    turns: tuple[Turn, ...] = ()
    why: Text = ""


class Sampling(BaseModel):
    """How a run was sampled for labelling.

    With this probability, from a stratum of `size` runs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    probability: Annotated[float, Field(strict=True, gt=0, le=1)]
    stratum: Text = ""
    size: Turn | None = None


class Labels(BaseModel):
    """One annotator's labels of one run."""

    model_config = ConfigDict(frozen=True)

    run: Name
    annotator: Name
    drawn: Sampling | None = None
    """None if the file does not say how the run was chosen."""
    stages: Annotated[dict[TurnKey, Stage], _NullIsEmpty] = {}
    """By turn, 1-based."""
    criteria: Annotated[dict[Text, Value], _NullIsEmpty] = {}
    """By criterion id; None if the criterion does not apply."""
    evidence: Annotated[dict[Text, tuple[Turn, ...]], _NullIsEmpty] = {}
    """By criterion id: the turns that show the value."""
    codes: Annotated[dict[Text, LabelledCode], _NullIsEmpty] = {}
    """Empty if no code applies, and also if nobody looked for codes: then `codes` is not in
    `model_fields_set`."""
    notes: Text = ""

    @property
    def has_labels(self) -> bool:
        """Whether anything is labelled; a run that was only sampled waits for its annotator."""
        return bool(self.stages or self.criteria) or "codes" in self.model_fields_set


def read_labels(path: str | Path) -> Labels:
    """The labels in a file. InputError names the field that is not a label."""
    path = Path(path)
    return parse_labels(read_json(path), path)


def parse_labels(data: Any, path: Path | None = None, *, strict: bool = True) -> Labels:
    """Labels from plain values. InputError as for `read_labels`.

    Not `strict`: unknown fields are ignored, null is as good as absent, and the annotator is `a1`
    if unnamed.
    """
    if not strict and isinstance(data, Mapping):
        known = {name: data[name] for name in LABEL_FIELDS if data.get(name) is not None}
        data = {"annotator": "a1", **known}
    if not isinstance(data, dict):
        raise InputError(f"is {type(data).__name__}, not an object", _FORM, path)
    unknown = sorted(str(key) for key in data if key not in LABEL_FIELDS)
    if unknown:
        raise InputError(
            f"unknown field {sanitize_line(unknown[0][:40])!r}",
            f"the fields are {', '.join(LABEL_FIELDS)}",
            path,
        )
    # The field is set only if the file has it, so that codes nobody looked for differ from codes
    # that did not apply.
    if data.get("codes") is None:
        data = {name: value for name, value in data.items() if name != "codes"}
    try:
        return Labels.model_validate(data)
    except ValidationError as error:
        raise InputError(_first_error(error), _FORM, path) from None


def _first_error(error: ValidationError) -> str:
    """The field of the first error, what is wrong with it, and its value."""
    first = error.errors(include_url=False)[0]
    names = [part for part in first["loc"] if isinstance(part, str) and part != "[key]"]
    field = sanitize_line(".".join(names)[:60])
    if first["type"] == "missing":
        return f"{field}: {first['msg']}"
    return f"{field}: {first['msg']}, not {sanitize_line(repr(first['input'])[:40])}"


def dump_labels(labels: Labels) -> str:
    """The labels as the text of a file.

    Fields are in a fixed order, turns and criteria sorted, and the indentation is one space.
    """
    data = {
        "run": labels.run,
        "annotator": labels.annotator,
        "drawn": labels.drawn and labels.drawn.model_dump(exclude_defaults=True),
        "stages": {str(turn): labels.stages[turn] for turn in sorted(labels.stages)},
        "criteria": dict(sorted(labels.criteria.items())),
        "evidence": {id: list(turns) for id, turns in sorted(labels.evidence.items())},
        "codes": {
            code: {"turns": list(label.turns), "why": label.why}
            for code, label in labels.codes.items()
        },
        "notes": labels.notes,
    }
    if "codes" not in labels.model_fields_set:
        del data["codes"]
    if labels.drawn is None:
        del data["drawn"]
    return clean_text(json.dumps(data, indent=1, ensure_ascii=False))


def problems(labels: Labels, run: Run | None = None, rubric: Rubric | None = None) -> list[str]:
    """What contradicts the run (turns) or the rubric (ids, scales, codes), one line each."""
    lines = []
    if run is not None:
        lines += _problems_with_run(labels, run)
    if rubric is not None:
        lines += _problems_with_rubric(labels, rubric)
    for code in labels.codes:
        if code not in CODES:
            lines.append(f"codes.{code}: not one of {', '.join(CODES)}")
    for id in labels.evidence:
        if id not in labels.criteria:
            lines.append(f"evidence.{id}: no value for {id} in criteria")
    return lines


def import_labels(store: Store, labels: Labels) -> bool:
    """Add labels to the store; False if it has the same already.

    Changed labels replace the annotator's earlier ones of the run.
    """
    return store.add_label(labels.run, labels.annotator, dump_labels(labels))


def stored_labels(
    store: Store, run: str | None = None, annotator: str | None = None
) -> Iterator[Labels]:
    """The current labels in the store, by run and annotator."""
    for _, _, body in store.labels(run, annotator):
        yield parse_labels(json.loads(body))


def export_labels(
    labels: Iterable[Labels], folder: Path, *, keep_existing: bool = False
) -> list[Path]:
    """Write `FOLDER/<annotator>/<run>.json` for each; returns the files.

    Names that could leave the folder are changed, and numbered if two runs get the same one; with
    `keep_existing`, existing files are not overwritten. InputError if a file cannot be written.
    """
    written: dict[Path, None] = {}
    for run_labels in labels:
        stem = folder / safe_name(run_labels.annotator) / safe_name(run_labels.run)
        path = stem.with_name(f"{stem.name}.json")
        numbers = count(2)
        while path in written or (keep_existing and path.exists()):
            path = stem.with_name(f"{stem.name}-{next(numbers)}.json")
        with atomic_write(path) as part:
            part.write_text(dump_labels(run_labels), encoding="utf-8", newline="\n")
        written[path] = None
    return list(written)


def _problems_with_run(labels: Labels, run: Run) -> list[str]:
    """Another run, turns that the run does not have, and turns without a stage."""
    last = len(run.turns)
    lines = []
    if labels.run != run.id:
        lines.append(f"run: labels of {labels.run!r}, the run is {run.id!r}")
    turns_by_field: dict[str, Iterable[int]] = {"stages": labels.stages}
    for id, turns in labels.evidence.items():
        turns_by_field[f"evidence.{id}"] = turns
    for code, label in labels.codes.items():
        turns_by_field[f"codes.{code}.turns"] = label.turns
    for field, field_turns in turns_by_field.items():
        outside = [turn for turn in field_turns if turn > last]
        if outside:
            lines.append(f"{field}: turn {outside[0]} of a run with {last}")
    unlabelled = [turn for turn in range(1, last + 1) if turn not in labels.stages]
    if labels.stages and unlabelled:
        more = f" and {len(unlabelled) - 1} more" if len(unlabelled) > 1 else ""
        lines.append(f"stages: turn {unlabelled[0]}{more} without a stage")
    return lines


def _problems_with_rubric(labels: Labels, rubric: Rubric) -> list[str]:
    """Criteria that the rubric does not have, missing ones, and values off their scales."""
    criteria = {criterion.id: criterion for criterion in rubric.criteria()}
    lines = [
        f"criteria.{id}: not in rubric {rubric.id}" for id in labels.criteria if id not in criteria
    ]
    if labels.criteria:
        lines += [f"criteria: {id} is missing" for id in criteria if id not in labels.criteria]
    for id, value in labels.criteria.items():
        criterion = criteria.get(id)
        if criterion is None:
            continue
        if value is None:
            if criterion.conditional is None and criterion.tiers is None:
                lines.append(f"criteria.{id}: null, but the item always applies")
        elif not any(math.isclose(value, level) for level in criterion.values):
            scale = ", ".join(f"{level:g}" for level in criterion.values)
            lines.append(f"criteria.{id}: {value} is not one of {scale}")
    return lines
