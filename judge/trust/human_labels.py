"""Human labels: one JSON file a run and annotator, read strictly, checked against run and rubric,
written canonically.

The file (all keys but `run` and `annotator` may be missing; a criterion may be null for "does not
apply"):

    {"run": "kidney-lite-01", "annotator": "a1", "stages": {"1": "S1", ...}, "criteria": {"S1a": 1,
    "S3": 0.5},
     "evidence": {"S1a": [4]}, "codes": {"E3": {"turns": [9], "why": "one sentence"}}, "notes": "",
     "drawn": {"probability": 0.25, "stratum": "E3", "size": 120}}

Reading refuses what has no meaning (InputError names the field); `problems` lists what contradicts
the run or the rubric. Writing sorts turns and criteria, and keeps numbers and the order of codes as
they were written, so that a file comes back byte for byte.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count
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

from ...atomic_files import whole
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


def _number(key: Any) -> Any:
    """A turn as a key: JSON has numbers there as text alone."""
    plain = (
        isinstance(key, str)
        and key.isascii()
        and key.isdigit()
        and len(key) < 8
        and str(int(key)) == key
    )
    return int(key) if plain else key


def _grade(value: Any) -> Any:
    if value is None or (type(value) in (int, float) and 0 <= value <= 1):
        return value
    raise PydanticCustomError("label", "Input should be a number in [0, 1], or null")


Text = Annotated[StrictStr, AfterValidator(clean_text)]
Name = Annotated[StrictStr, Field(pattern=r"\S"), AfterValidator(clean_text)]
Turn = Annotated[StrictInt, Field(ge=1, lt=10_000_000)]
Value = Annotated[int | float | None, BeforeValidator(_grade)]
_nothing = BeforeValidator(lambda value: {} if value is None else value)


class LabelledCode(BaseModel):
    """A fired code, the turns that show it, and why, in a sentence."""

    model_config = ConfigDict(frozen=True)

    turns: tuple[Turn, ...] = ()
    why: Text = ""


class Drawn(BaseModel):
    """How a run came to be labelled: at random, with this probability, as one of the `size` runs of
    a stratum."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    probability: Annotated[float, Field(strict=True, gt=0, le=1)]
    stratum: Text = ""
    size: Turn | None = None


class Labels(BaseModel):
    """One annotator's labels of one run. `criteria` values are None where the item does not apply."""

    model_config = ConfigDict(frozen=True)

    run: Name
    annotator: Name
    drawn: Drawn | None = None
    """None when nobody says how the run was chosen."""
    stages: Annotated[dict[Annotated[Turn, BeforeValidator(_number)], Stage], _nothing] = {}
    """By turn, 1-based."""
    criteria: Annotated[dict[Text, Value], _nothing] = {}
    evidence: Annotated[dict[Text, tuple[Turn, ...]], _nothing] = {}
    codes: Annotated[dict[Text, LabelledCode], _nothing] = {}
    """Empty when none fired, and also when nobody looked: then `codes` is not in
    `model_fields_set`."""
    notes: Text = ""

    @property
    def begun(self) -> bool:
        """Whether anything is labelled: a run that was only drawn waits for its annotator."""
        return bool(self.stages or self.criteria) or "codes" in self.model_fields_set


def read_labels(path: str | Path) -> Labels:
    """The labels in a file. InputError says which field is no label, and where."""
    path = Path(path)
    return parse_labels(read_json(path), path)


def parse_labels(data: Any, path: Path | None = None, *, strict: bool = True) -> Labels:
    """Labels from plain values. InputError as for `read_labels`.

    Not `strict`: fields that are not ours are left aside, null is as good as absent, and the
    annotator is `a1` if unnamed.
    """
    if not strict and isinstance(data, Mapping):
        data = {
            "annotator": "a1",
            **{name: data[name] for name in LABEL_FIELDS if data.get(name) is not None},
        }
    if not isinstance(data, dict):
        raise InputError(f"is {type(data).__name__}, not an object", _FORM, path)
    unknown = sorted(str(key) for key in data if key not in LABEL_FIELDS)
    if unknown:
        raise InputError(
            f"unknown field {sanitize_line(unknown[0][:40])!r}",
            f"known are {', '.join(LABEL_FIELDS)}",
            path,
        )
    # Codes that nobody looked for stay apart from codes that did not fire: the field is set only
    # when the file has it.
    data = {name: value for name, value in data.items() if name != "codes" or value is not None}
    try:
        return Labels.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(part for part in first["loc"] if isinstance(part, str) and part != "[key]")
        shown = (
            ""
            if first["type"] == "missing"
            else f", not {sanitize_line(repr(first['input'])[:40])}"
        )
        raise InputError(
            f"{sanitize_line(where[:60])}: {first['msg']}{shown}", _FORM, path
        ) from None


def dump_labels(labels: Labels) -> str:
    """The labels as a file's text: fields in a fixed order, turns and criteria sorted, one space of
    indentation."""
    data = {
        "run": labels.run,
        "annotator": labels.annotator,
        "drawn": labels.drawn and labels.drawn.model_dump(exclude_defaults=True),
        "stages": {str(turn): labels.stages[turn] for turn in sorted(labels.stages)},
        "criteria": dict(sorted(labels.criteria.items())),
        "evidence": {id: list(turns) for id, turns in sorted(labels.evidence.items())},
        "codes": {
            code: {"turns": list(said.turns), "why": said.why}
            for code, said in labels.codes.items()
        },
        "notes": labels.notes,
    }
    if "codes" not in labels.model_fields_set:
        del data["codes"]
    if labels.drawn is None:
        del data["drawn"]
    return clean_text(json.dumps(data, indent=1, ensure_ascii=False))


def problems(labels: Labels, run: Run | None = None, rubric: Rubric | None = None) -> list[str]:
    """What in the labels contradicts the run (turns) or the rubric (ids, scales, codes), one line
    each."""
    found = []
    if run is not None:
        found += _against_run(labels, run)
    if rubric is not None:
        found += _against_rubric(labels, rubric)
    found += [
        f"codes.{code}: not one of {', '.join(CODES)}" for code in labels.codes if code not in CODES
    ]
    found += [
        f"evidence.{id}: no value for {id} in criteria"
        for id in labels.evidence
        if id not in labels.criteria
    ]
    return found


def import_labels(store: Store, labels: Labels) -> bool:
    """Keep these labels in the store; False when they are there already. Changed ones replace older
    ones in force."""
    return store.add_label(labels.run, labels.annotator, dump_labels(labels))


def stored_labels(
    store: Store, run: str | None = None, annotator: str | None = None
) -> Iterator[Labels]:
    """The labels in force, by run and annotator."""
    for _, _, body in store.labels(run, annotator):
        yield parse_labels(json.loads(body))


def export_labels(labels: Iterable[Labels], folder: Path, *, keep: bool = False) -> list[Path]:
    """Write `FOLDER/<annotator>/<run>.json` for each; returns the files.

    Names that could leave the folder are changed, and numbered where two runs come to the same one;
    with `keep` files that are there stay as they are. InputError when a file cannot be written.
    """
    written: dict[Path, None] = {}
    for each in labels:
        place, name = folder / safe_name(each.annotator), safe_name(each.run)
        names = (f"{name}{tail}.json" for tail in chain([""], (f"-{n}" for n in count(2))))
        path = next(
            p for p in map(place.joinpath, names) if p not in written and not (keep and p.exists())
        )
        with whole(path) as part:
            part.write_text(dump_labels(each), encoding="utf-8", newline="\n")
        written[path] = None
    return list(written)


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
    found = [
        f"criteria.{id}: not in rubric {rubric.id}" for id in labels.criteria if id not in known
    ]
    if labels.criteria:
        found += [f"criteria: {id} is missing" for id in known if id not in labels.criteria]
    for id, value in labels.criteria.items():
        if id not in known:
            continue
        scale = known[id].values
        if value is None and known[id].conditional is None and known[id].tiers is None:
            found.append(f"criteria.{id}: null, but the item always applies")
        elif value is not None and not any(math.isclose(value, level) for level in scale):
            found.append(
                f"criteria.{id}: {value} is not one of {', '.join(f'{level:g}' for level in scale)}"
            )
    return found
