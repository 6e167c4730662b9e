"""Human labels: what one annotator says of one run.

`parse_labels` refuses what has no meaning (InputError names the field); `problems` lists what
contradicts a run or its rubric, and `unlabelled` what is not labelled yet. Written as JSON, with
all keys but `run` optional and null for a criterion that does not apply:

    {"run": "kidney-lite-01", "annotator": "a1", "stages": {"1": "S1", ...},
     "criteria": {"S1a": 1, "S3": 0.5}, "evidence": {"S1a": [4]},
     "codes": {"E3": {"turns": [9], "why": "one sentence"}}, "notes": "",
     "drawn": {"probability": 0.25, "stratum": "E3", "size": 120}}

Writing sorts turns and criteria, and keeps numbers and the order of codes as they were written, so
that a file comes back byte for byte. `label_sources` reads labels from anywhere.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
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
from ...rubrics.model import Criterion, Rubric
from ...sanitize import sanitize_line
from ...trajectories.importers.saving import safe_name
from ...trajectories.models import Run, Stage, Tier
from ...trajectories.reading.json_bytes import read_json
from ..card.view_parts import turn_ranges
from ..store import Store
from ..store.connection import clean_text

LABEL_FIELDS = ("run", "annotator", "drawn", "stages", "criteria", "evidence", "codes", "notes")
_FORM = "expected a label file as docs/labels.md describes"
FieldPath = tuple[str | int, ...]
"""The keys that lead to a value in a label."""


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


def _check_code(code: str) -> str:
    if code not in CODES:
        raise PydanticCustomError("label", "Input should be one of " + ", ".join(CODES))
    return code


Text = Annotated[StrictStr, AfterValidator(clean_text)]
Name = Annotated[StrictStr, Field(pattern=r"\S"), AfterValidator(clean_text)]
Turn = Annotated[StrictInt, Field(ge=1, lt=10_000_000)]
TurnKey = Annotated[Turn, BeforeValidator(_turn_from_key)]
Value = Annotated[int | float | None, BeforeValidator(_check_value)]
CodeName = Annotated[StrictStr, AfterValidator(_check_code)]


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
    stages: dict[TurnKey, Stage] = {}
    """By turn, 1-based."""
    criteria: dict[Text, Value] = {}
    """By criterion id; None if the criterion does not apply."""
    evidence: dict[Text, tuple[Turn, ...]] = {}
    """By criterion id: the turns that show the value."""
    codes: dict[CodeName, LabelledCode] = {}
    """Empty if no code applies, and also if nobody looked for codes: then `codes` is not in
    `model_fields_set`."""
    notes: Text = ""

    @property
    def has_labels(self) -> bool:
        """Whether anything is labelled; a run that was only sampled waits for its annotator."""
        return bool(self.stages or self.criteria) or "codes" in self.model_fields_set


def read_labels(path: str | Path) -> Labels:
    """The labels in a JSON file of one run and annotator. InputError as for `parse_labels`."""
    path = Path(path)
    return parse_labels(read_json(path), path)


def parse_labels(
    data: Any,
    path: Path | None = None,
    *,
    place_of: Callable[[FieldPath], Path] | None = None,
) -> Labels:
    """Labels from plain values; InputError names the field that is not a label.

    Null is as good as absent, but for the value of a criterion; the annotator is `a1` if unnamed.
    Fields of other programs are ignored, unless they look like a misspelt one of ours. `place_of`:
    where a field stands, for a file with lines.
    """
    if not isinstance(data, Mapping):
        raise InputError(f"is {type(data).__name__}, not an object", _FORM, path)
    if str(data.get("schema", "")).startswith("ambjudge.scorecard/"):
        raise InputError("is a scorecard and no label", "name label files or their folder", path)
    _check_spelling(data, path)
    fields = {name: data[name] for name in LABEL_FIELDS if data.get(name) is not None}
    # `codes` is set only if the file has it, so that codes nobody looked for differ from codes that
    # did not apply.
    try:
        return Labels.model_validate({"annotator": "a1", **fields})
    except ValidationError as error:
        field, message = _first_error(error)
        place = path if place_of is None else place_of(field)
        raise InputError(message, _FORM, place) from None


def other_fields(data: Mapping[str, Any]) -> list[str]:
    """The names of fields that are no part of a label."""
    return sorted(str(name) for name in data if name not in LABEL_FIELDS)


def _check_spelling(data: Mapping[str, Any], path: Path | None) -> None:
    """InputError for a field whose name is nearly one of ours: its labels would be lost."""
    for name in other_fields(data):
        close = get_close_matches(name.strip().lower()[:40], LABEL_FIELDS, 1, 0.82)
        if close:
            raise InputError(
                f"unknown field {sanitize_line(name[:40])!r}",
                f"did you mean {close[0]!r}?",
                path,
            )


def _first_error(error: ValidationError) -> tuple[FieldPath, str]:
    """The field of the first error; the field, what is wrong with it, and its value, as text."""
    first = error.errors(include_url=False)[0]
    path = tuple(part for part in first["loc"] if part != "[key]")
    names = [part for part in path if isinstance(part, str)]
    field = sanitize_line(".".join(names)[:60])
    if first["type"] == "missing":
        return path, f"{field}: {first['msg']}"
    return path, f"{field}: {first['msg']}, not {sanitize_line(repr(first['input'])[:40])}"


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
    """What contradicts the run (turns) or the rubric (ids, scales), one line each.

    What is not labelled, does not apply or is credited by the tier is no contradiction.
    """
    lines = []
    if run is not None:
        lines += _problems_with_run(labels, run)
    if rubric is not None:
        lines += _problems_with_rubric(labels, rubric)
    return lines


def unlabelled(labels: Labels, run: Run, rubric: Rubric) -> list[str]:
    """What is not labelled yet of turns, criteria and codes, in words.

    Criteria that the run's tier decides need no label.
    """
    missing = []
    for criterion in rubric.criteria():
        by_tier, _ = value_by_tier(criterion, run.tier)
        if labels.criteria.get(criterion.id) is None and not by_tier:
            may_not_apply = criterion.conditional is not None and criterion.id in labels.criteria
            if not may_not_apply:
                missing.append(criterion.id)
    turns = [turn for turn in range(1, len(run.turns) + 1) if turn not in labels.stages]
    if turns:
        missing.append(f"stages of turns {turn_ranges(turns)}" if labels.stages else "stages")
    if "codes" not in labels.model_fields_set:
        missing.append("codes")
    return missing


def value_by_tier(criterion: Criterion, tier: Tier | None) -> tuple[bool, float | None]:
    """Whether a tier decides a criterion, and its value then.

    1 where the tier credits it, None where it does not apply.
    """
    if criterion.tiers is not None and tier not in criterion.tiers:
        return True, None
    if tier in criterion.credit:
        return True, 1
    return False, None


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


def export_labels(labels: Iterable[Labels], folder: Path) -> list[Path]:
    """Write `FOLDER/<annotator>/<run>.json` for each; returns the files.

    Names that could leave the folder are changed, and numbered if two runs get the same one.
    InputError if a file cannot be written, or is a link.
    """
    written: dict[Path, None] = {}
    for run_labels in labels:
        path = label_path(folder, run_labels, ".json", written.__contains__)
        with atomic_write(path, below=folder) as part:
            part.write_text(dump_labels(run_labels), encoding="utf-8", newline="\n")
        written[path] = None
    return list(written)


def label_path(folder: Path, labels: Labels, suffix: str, is_taken: Callable[[Path], bool]) -> Path:
    """`FOLDER/<annotator>/<run><suffix>`, with a number if that is taken."""
    stem = folder / safe_name(labels.annotator) / safe_name(labels.run)
    path = stem.with_name(f"{stem.name}{suffix}")
    numbers = count(2)
    while is_taken(path):
        path = stem.with_name(f"{stem.name}-{next(numbers)}{suffix}")
    return path


def _problems_with_run(labels: Labels, run: Run) -> list[str]:
    """Another run, and turns that the run does not have."""
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
    return lines


def _problems_with_rubric(labels: Labels, rubric: Rubric) -> list[str]:
    """Criteria that the rubric does not have, and values off their scales."""
    criteria = {criterion.id: criterion for criterion in rubric.criteria()}
    lines = [
        f"{field}.{id}: not in rubric {rubric.id}"
        for field, ids in (("criteria", labels.criteria), ("evidence", labels.evidence))
        for id in ids
        if id not in criteria
    ]
    for id, value in labels.criteria.items():
        scale = criteria[id].values if id in criteria else ()
        if value is None or not scale or any(math.isclose(value, level) for level in scale):
            continue
        levels = ", ".join(f"{level:g}" for level in scale)
        lines.append(f"criteria.{id}: {value:g} is not one of {levels}")
    return lines
