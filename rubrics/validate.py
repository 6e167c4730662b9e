"""What is wrong with a rubric document: its shape by the published JSON Schema, its meaning by
rules of our own."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import RubricError
from ..tracks import TRACKS
from ..trajectories.stages import STAGES
from .document import Document, Step

SCHEMA_PATH = Path(__file__).with_name("rubric.schema.json")
COMPUTED = ("S4", "S5")
"""Stages that are computed from the output files and have a weight only."""
_TAKEN = re.compile(r"[SE][0-9].*|plan")


@dataclass(frozen=True, order=True)
class Problem:
    """One thing wrong with a file, at a line and column from 1 (0: the file as a whole)."""

    line: int
    column: int
    message: str
    hint: str = ""
    path: Path | None = None

    @classmethod
    def of(cls, error: RubricError) -> Problem:
        """A problem from the error that stopped the reading."""
        line, column = error.position
        place = f"{error.path}:{line}:{column}: " if line else f"{error.path}: "
        return cls(line, column, error.message.removeprefix(place), error.hint, error.path)

    def __str__(self) -> str:
        place = "" if self.path is None else f"{self.path}:"
        place += f"{self.line}:{self.column}:" if self.line else ""
        return f"{place} {self.message}{f' ({self.hint})' if self.hint else ''}".strip()


def schema() -> dict[str, Any]:
    """The published JSON Schema (draft 2020-12) of rubric files."""
    loaded = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def find_problems(document: Document) -> list[Problem]:
    """All problems, in order of lines. Rules of meaning are only asked where the shape is right."""
    problems = list(_shape_problems(document))
    if not problems:
        problems = list(_meaning_problems(document))
    return sorted(set(problems))


def find_notes(document: Document) -> list[Problem]:
    """What is valid and may yet not be meant: a stage of the benchmark left out, weights that look
    like shares and are none."""
    stages, found = document.value["stages"], []
    absent = [stage for stage in STAGES if stage not in stages]
    if absent and len(absent) < len(STAGES):
        hint = (
            "there is an Overall for all five stages of the benchmark, and nothing beside them,"
            " only"
        )
        found.append(_problem(document, ("stages",), f"no {', '.join(absent)}", hint, key=True))
    weights = {stage: float(part["weight"]) for stage, part in stages.items()}
    total = math.fsum(weights.values())
    if len(set(weights.values())) > 1 and not math.isclose(total, 1.0, abs_tol=1e-6):
        shares = ", ".join(
            f"{stage} {weight:g} counts {weight / total:.3f}" for stage, weight in weights.items()
        )
        found.append(
            _problem(
                document,
                ("stages",),
                f"the weights add up to {total:g}, not to 1",
                shares,
                key=True,
            )
        )
    return found


def _where(path: tuple[Step, ...]) -> str:
    """A path as words: criteria are named by `criteria[2]`, as editors and other tools do."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _problem(
    document: Document, path: tuple[Step, ...], message: str, hint: str, key: bool = False
) -> Problem:
    line, column = document.position(path, key)
    place = _where(path)
    return Problem(line, column, f"{place}: {message}" if place else message, hint, document.path)


def _shape_problems(document: Document) -> Iterator[Problem]:
    from jsonschema import Draft202012Validator

    if not isinstance(document.value, dict):
        yield _problem(
            document, (), "is no mapping", "expected a mapping with id, version, stages, ..."
        )
        return
    for error in Draft202012Validator(schema()).iter_errors(document.value):
        path: tuple[Step, ...] = tuple(error.absolute_path)
        rule, wanted, found = error.validator, error.validator_value, error.instance
        hint = error.schema.get("description", "see docs/rubrics.md")
        if "propertyNames" in error.absolute_schema_path:
            yield _problem(
                document, (*path, found), "no name of a stage", f"expected {hint}", key=True
            )
        elif rule == "additionalProperties":
            known = list(error.schema["properties"])
            for name in sorted(set(found) - set(known)):
                hint = did_you_mean(name, known) or f"known: {', '.join(known)}"
                yield _problem(document, (*path, name), "unknown key", hint, key=True)
        elif rule == "required":
            yield _problem(document, path, error.message, "add it")
        elif rule == "pattern":
            yield _problem(document, path, f"{found[:60]!r} has the wrong form", f"expected {hint}")
        else:
            said = (
                error.message
                if len(error.message) <= 200
                else f"{error.message[:60]} ... {error.message[-120:]}"
            )
            near = did_you_mean(found, wanted) if rule == "enum" else ""
            yield _problem(document, path, said, near or hint)


def did_you_mean(word: Any, known: Iterable[str]) -> str:
    """A question that names the one that is spelled most like it; nothing where none is."""
    close = difflib.get_close_matches(str(word), list(known), 1)
    return f"did you mean {close[0]}?" if close else ""


def _meaning_problems(document: Document) -> Iterator[Problem]:
    stages, track = document.value["stages"], document.value.get("track")
    if set(stages) <= set(COMPUTED):
        yield _problem(
            document,
            ("stages",),
            "no stage has criteria",
            "S4 and S5 are computed; add what is to be judged",
        )
    if track is not None and track not in TRACKS.entries:
        hint = did_you_mean(track, TRACKS.names) or f"known: {', '.join(TRACKS.names)}"
        yield _problem(document, ("track",), f"unknown track {track}", hint)
    elsewhere: dict[str, str] = {}
    for stage in sorted(stages):
        criteria = stages[stage].get("criteria", [])
        base: tuple[Step, ...] = ("stages", stage, "criteria")
        ours = stage in STAGES
        if stage in COMPUTED and criteria:
            yield _problem(
                document,
                base,
                f"{stage} has criteria",
                "S4 and S5 are computed; give them a weight only",
                key=True,
            )
            continue
        seen: dict[str, int] = {}
        for index, criterion in enumerate(criteria):
            at, name = (*base, index), criterion["id"]
            if ours and not re.fullmatch(f"{stage}[a-z]?", name):
                yield _problem(
                    document,
                    (*at, "id"),
                    f"{name} stands under {stage}",
                    f"expected an id like {stage}a",
                )
            elif not ours and _TAKEN.fullmatch(name):
                hint = "S and E with a number name the benchmark's stages and error codes"
                yield _problem(document, (*at, "id"), f"the id {name} under {stage}", hint)
            if elsewhere.get(name, stage) != stage:
                yield _problem(
                    document,
                    (*at, "id"),
                    f"the id {name} stands under {elsewhere[name]} too",
                    "rename one",
                )
            if name in seen:
                line = document.position((*base, seen[name], "id"))[0]
                yield _problem(
                    document, (*at, "id"), f"the id {name} is there twice", f"first on line {line}"
                )
            if name == stage and len(criteria) > 1:
                yield _problem(
                    document, (*at, "id"), f"{name} is not the only criterion", f"name it {stage}a"
                )
            seen.setdefault(name, index)
            elsewhere.setdefault(name, stage)
            yield from _scale_problems(document, at, criterion)
            tiers, credit = criterion.get("tiers"), criterion.get("credit", [])
            for slot, tier in enumerate(credit):
                if tiers is not None and tier not in tiers:
                    yield _problem(
                        document,
                        (*at, "credit", slot),
                        f"{tier} is credited, but the item does not apply there",
                        f"add {tier} to tiers, or remove it here",
                    )
        yield from _requires_problems(document, base, criteria, seen)


def _scale_problems(
    document: Document, at: tuple[Step, ...], criterion: dict[str, Any]
) -> Iterator[Problem]:
    if criterion["scale"] == "binary":
        return
    values = [level["value"] for level in criterion["scale"]]
    for index, value in enumerate(values):
        if value in values[:index]:
            yield _problem(
                document,
                (*at, "scale", index, "value"),
                f"the value {value} is there twice",
                "one level a value",
            )
    for needed in (0, 1):
        if needed not in values:
            yield _problem(
                document,
                (*at, "scale"),
                f"no level has the value {needed}",
                "a scale runs from 0 to 1",
            )


def _requires_problems(
    document: Document,
    base: tuple[Step, ...],
    criteria: list[dict[str, Any]],
    known: dict[str, int],
) -> Iterator[Problem]:
    needs = {criterion["id"]: criterion.get("requires", []) for criterion in criteria}
    for index, criterion in enumerate(criteria):
        for slot, needed in enumerate(criterion.get("requires", [])):
            at = (*base, index, "requires", slot)
            if needed not in known:
                hint = did_you_mean(needed, known) or "name one of this stage"
                yield _problem(document, at, f"no criterion {needed} in this stage", hint)
            elif _reaches(needs, needed, criterion["id"]):
                yield _problem(
                    document,
                    at,
                    f"{criterion['id']} requires itself through {needed}",
                    "break the circle",
                )


def _reaches(needs: dict[str, list[str]], start: str, target: str) -> bool:
    todo, done = [start], set()
    while todo:
        name = todo.pop()
        if name == target:
            return True
        if name not in done:
            done.add(name)
            todo.extend(needs.get(name, []))
    return False
