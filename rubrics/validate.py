"""Finds what is wrong with a rubric document.

The published JSON Schema checks its shape, rules of this module its meaning.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import RubricError
from ..tracks import TRACKS
from ..trajectories.stages import STAGES
from .document import Document, Step

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

SCHEMA_PATH = Path(__file__).with_name("rubric.schema.json")
COMPUTED = ("S4", "S5")
"""Stages that are computed from the output files and have a weight only."""
_RESERVED_ID = re.compile(r"[SE][0-9].*|plan")
"""Ids of stages, error codes and the plan, which a custom group's criteria must not have."""
_MAX_MESSAGE = 200

_Path = tuple[Step, ...]
"""Keys and indices that lead to a value of the document."""


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong with a file, at a line and column from 1.

    0 stands for the file as a whole.
    """

    line: int
    column: int
    message: str
    hint: str = ""
    path: Path | None = None

    @classmethod
    def from_error(cls, error: RubricError) -> Problem:
        """The problem that made the file unreadable."""
        line, column = error.position
        prefix = f"{error.path}:{line}:{column}: " if line else f"{error.path}: "
        return cls(line, column, error.message.removeprefix(prefix), error.hint, error.path)

    def __str__(self) -> str:
        location = "" if self.path is None else f"{self.path}:"
        if self.line:
            location += f"{self.line}:{self.column}:"
        hint = f" ({self.hint})" if self.hint else ""
        return f"{location} {self.message}{hint}".strip()


def schema() -> dict[str, Any]:
    """The published JSON Schema (draft 2020-12) of rubric files."""
    loaded = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def find_problems(document: Document) -> list[Problem]:
    """All problems in order of lines; the meaning is checked only if the shape is right."""
    problems = list(_shape_problems(document))
    if not problems:
        problems = list(_meaning_problems(document))
    return sorted(set(problems))


def find_notes(document: Document) -> list[Problem]:
    """What is valid but may be unintended.

    Stages of the benchmark that are left out, and weights that look like shares but do not add up
    to 1.
    """
    stages = document.value["stages"]
    notes = []
    missing = [stage for stage in STAGES if stage not in stages]
    if missing and len(missing) < len(STAGES):
        hint = "only rubrics with exactly the benchmark's five stages have an Overall"
        notes.append(_problem(document, ("stages",), f"no {', '.join(missing)}", hint, key=True))
    weights = {name: float(stage["weight"]) for name, stage in stages.items()}
    total = math.fsum(weights.values())
    are_different = len(set(weights.values())) > 1
    if are_different and not math.isclose(total, 1.0, abs_tol=1e-6):
        message = f"the weights add up to {total:g}, not to 1"
        shares = ", ".join(
            f"{name} {weight:g} counts {weight / total:.3f}" for name, weight in weights.items()
        )
        notes.append(_problem(document, ("stages",), message, shares, key=True))
    return notes


def _problem(
    document: Document, path: _Path, message: str, hint: str, key: bool = False
) -> Problem:
    """A problem of the value at `path`, or of its key."""
    line, column = document.position(path, key)
    name = _path_text(path)
    text = f"{name}: {message}" if name else message
    return Problem(line, column, text, hint, document.path)


def _path_text(path: _Path) -> str:
    """A path in the notation of editors and other tools: `stages.S1.criteria[2]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def _shape_problems(document: Document) -> Iterator[Problem]:
    from jsonschema import Draft202012Validator

    if not isinstance(document.value, dict):
        hint = "expected a mapping with id, version, stages, ..."
        yield _problem(document, (), "is not a mapping", hint)
        return
    for error in Draft202012Validator(schema()).iter_errors(document.value):
        yield from _schema_problems(document, error)


def _schema_problems(document: Document, error: ValidationError) -> Iterator[Problem]:
    """An error of the JSON Schema in the words of rubrics."""
    path: _Path = tuple(error.absolute_path)
    rule = error.validator
    value: Any = error.instance
    value_schema: Any = error.schema
    hint = value_schema.get("description", "see docs/rubrics.md")
    if "propertyNames" in error.absolute_schema_path:
        expected = f"expected {hint}"
        yield _problem(document, (*path, value), "not a stage name", expected, key=True)
    elif rule == "additionalProperties":
        allowed = list(value_schema["properties"])
        for name in sorted(set(value) - set(allowed)):
            suggestion = did_you_mean(name, allowed) or f"known: {', '.join(allowed)}"
            yield _problem(document, (*path, name), "unknown key", suggestion, key=True)
    elif rule == "required":
        yield _problem(document, path, error.message, "add it")
    elif rule == "pattern":
        message = f"{value[:60]!r} has the wrong form"
        yield _problem(document, path, message, f"expected {hint}")
    else:
        message = error.message
        if len(message) > _MAX_MESSAGE:
            message = f"{message[:60]} ... {message[-120:]}"
        allowed_values: Any = error.validator_value
        suggestion = did_you_mean(value, allowed_values) if rule == "enum" else ""
        yield _problem(document, path, message, suggestion or hint)


def did_you_mean(word: Any, candidates: Iterable[str]) -> str:
    """A question that names the candidate spelled most like the word; "" if none is close."""
    close = difflib.get_close_matches(str(word), list(candidates), 1)
    return f"did you mean {close[0]}?" if close else ""


def _meaning_problems(document: Document) -> Iterator[Problem]:
    stages, track = document.value["stages"], document.value.get("track")
    if set(stages) <= set(COMPUTED):
        hint = "S4 and S5 are computed; add criteria for a judge"
        yield _problem(document, ("stages",), "no stage has criteria", hint)
    if track is not None and track not in TRACKS.entries:
        hint = did_you_mean(track, TRACKS.names) or f"known: {', '.join(TRACKS.names)}"
        yield _problem(document, ("track",), f"unknown track {track}", hint)
    stage_of_id: dict[str, str] = {}
    for stage in sorted(stages):
        criteria = stages[stage].get("criteria", [])
        path: _Path = ("stages", stage, "criteria")
        # Criteria of a computed stage are wrong as a whole: no need to check each.
        if stage in COMPUTED and criteria:
            hint = "S4 and S5 are computed; give them a weight only"
            yield _problem(document, path, f"{stage} has criteria", hint, key=True)
            continue
        yield from _id_problems(document, path, criteria, stage, stage_of_id)
        for index, criterion in enumerate(criteria):
            yield from _scale_problems(document, (*path, index), criterion)
            yield from _credit_problems(document, (*path, index), criterion)
        yield from _requires_problems(document, path, criteria)


def _id_problems(
    document: Document,
    path: _Path,
    criteria: list[dict[str, Any]],
    stage: str,
    stage_of_id: dict[str, str],
) -> Iterator[Problem]:
    """Problems with the ids of a stage's criteria.

    `stage_of_id` has the ids of the stages before; those of this one are added.
    """
    index_of_id: dict[str, int] = {}
    for index, criterion in enumerate(criteria):
        name = criterion["id"]
        id_path = (*path, index, "id")
        if stage in STAGES and not re.fullmatch(f"{stage}[a-z]?", name):
            hint = f"expected an id like {stage}a"
            yield _problem(document, id_path, f"{name} is under {stage}", hint)
        if stage not in STAGES and _RESERVED_ID.fullmatch(name):
            hint = "S and E with a number name the benchmark's stages and error codes"
            yield _problem(document, id_path, f"the id {name} under {stage}", hint)
        other_stage = stage_of_id.setdefault(name, stage)
        if other_stage != stage:
            message = f"the id {name} is also under {other_stage}"
            yield _problem(document, id_path, message, "rename one")
        if name in index_of_id:
            first_line = document.position((*path, index_of_id[name], "id"))[0]
            message = f"the id {name} occurs twice"
            yield _problem(document, id_path, message, f"first on line {first_line}")
        if name == stage and len(criteria) > 1:
            message = f"{name} is not the only criterion"
            yield _problem(document, id_path, message, f"name it {stage}a")
        index_of_id.setdefault(name, index)


def _scale_problems(
    document: Document, path: _Path, criterion: Mapping[str, Any]
) -> Iterator[Problem]:
    if criterion["scale"] == "binary":
        return
    values = [level["value"] for level in criterion["scale"]]
    for index, value in enumerate(values):
        if value in values[:index]:
            message = f"the value {value} occurs twice"
            value_path = (*path, "scale", index, "value")
            yield _problem(document, value_path, message, "one level a value")
    for end in (0, 1):
        if end not in values:
            message = f"no level has the value {end}"
            yield _problem(document, (*path, "scale"), message, "a scale runs from 0 to 1")


def _credit_problems(
    document: Document, path: _Path, criterion: Mapping[str, Any]
) -> Iterator[Problem]:
    tiers = criterion.get("tiers")
    if tiers is None:
        return
    for index, tier in enumerate(criterion.get("credit", [])):
        if tier not in tiers:
            message = f"{tier} is credited, but the item does not apply there"
            hint = f"add {tier} to tiers, or remove it here"
            yield _problem(document, (*path, "credit", index), message, hint)


def _requires_problems(
    document: Document, path: _Path, criteria: list[dict[str, Any]]
) -> Iterator[Problem]:
    requirements = {criterion["id"]: criterion.get("requires", []) for criterion in criteria}
    for index, criterion in enumerate(criteria):
        name = criterion["id"]
        for position, required in enumerate(criterion.get("requires", [])):
            item_path = (*path, index, "requires", position)
            if required not in requirements:
                hint = did_you_mean(required, requirements) or "name one of this stage"
                message = f"no criterion {required} in this stage"
                yield _problem(document, item_path, message, hint)
            elif _leads_to(requirements, required, name):
                message = f"{name} requires itself through {required}"
                yield _problem(document, item_path, message, "break the circle")


def _leads_to(requirements: Mapping[str, list[str]], start: str, target: str) -> bool:
    """Whether `start` is `target`, or requires it directly or through others."""
    pending, visited = [start], set()
    while pending:
        name = pending.pop()
        if name == target:
            return True
        if name not in visited:
            visited.add(name)
            pending.extend(requirements.get(name, []))
    return False
