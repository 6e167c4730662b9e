"""The question `brief`: what a task demands of its outputs, read once from the brief by a model.

The record of the question holds the brief and nothing else, so all runs with the same brief share
one verdict. A demand counts only if the words that state it were found in the brief.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from ...errors import JudgeError
from ...rubrics.model import Criterion, Level, Rubric
from ...tasks.output_format import OutputFormat
from ...trajectories.models import Resources, Run, Segmentation, Status
from ..base import Judge, Request, extra_questions
from ..card.stage_results import CriterionResult

BRIEF_QUESTION = "brief"
BRIEF_ITEM = Criterion(
    id="brief",
    title="demands on the output files",
    text="Only demands that a program can check in the files count.",
    scale=(Level(value=1.0, text="Read."), Level(value=0.0, text="Not read.")),
    evidence=("brief",),
    source="ours",
)

# kind of demand -> field of OutputFormat that lists its values
_LISTS = {
    "case_file": "case_files",
    "file": "files",
    "validation_file": "validation_files",
    "labels": "labels",
    "classes": "classes",
}
# kind of demand -> field of OutputFormat that holds its one value
_SINGLE = {"dtype": "dtype", "unit": "unit", "axes": "axes"}


def brief_sha256(brief: str) -> str:
    """Identifies a brief; equal for all runs that were given it."""
    return hashlib.sha256(brief.encode()).hexdigest()


def brief_request(run: Run, rubric: Rubric) -> Request:
    """The question about a run's brief; the rubric is that of the run, which the answer ignores."""
    sha256 = brief_sha256(run.brief)
    brief_alone = Run(
        id=f"brief {sha256[:12]}",
        path=run.path,
        folder=run.folder,
        sha256=sha256,
        content_sha256=sha256,
        format="object",
        brief=run.brief,
        turns=(),
        resources=Resources(turns=0, calls=0, failed_calls=0),
        status=Status(submitted=False, completed=False, disqualified=False, ended="cut"),
    )
    return Request(
        brief_alone,
        Segmentation.from_stages(()),
        rubric,
        question=BRIEF_QUESTION,
        criteria=(BRIEF_ITEM,),
    )


async def read_brief(run: Run, rubric: Rubric, judge: Judge) -> ReadBrief:
    """What a judge reads in a run's brief; JudgeError with the reason if it gives no answer."""
    if BRIEF_QUESTION not in extra_questions(judge):
        raise JudgeError(
            f"judge {judge.name} cannot read a brief: only a model called over an API can",
            "name one, for example --judge openai/gpt-5.4-mini",
        )
    reply = await judge.judge(brief_request(run, rubric))
    (result,) = reply.results
    try:
        return read_answer(result)
    except ValueError as error:
        raise JudgeError(str(error), "run the command again, or name another judge") from None


@dataclass(frozen=True)
class ReadBrief:
    """A brief's demands, and why some of what was read does not count."""

    output_format: OutputFormat
    quotes: Mapping[str, str]
    """Field of the format -> the words of the brief that state it."""
    rejected: tuple[str, ...] = ()
    """Demands that do not count, each with its reason."""


def read_answer(result: CriterionResult) -> ReadBrief:
    """Turn the verdict on BRIEF_ITEM into a format.

    ValueError for a verdict that is unscored. A demand does not count if its quote was not found,
    if its values make no sense, or if the brief leaves a choice between it and another.
    """
    if result.status != "scored" or not isinstance(result.answer, dict):
        raise ValueError(f"the brief was not read: {result.reason} {result.detail}".strip())
    demands: Any = result.answer.get("demands")
    fields: dict[str, Any] = {}
    quotes: dict[str, str] = {}
    rejected: list[str] = []
    choices: set[str] = set()
    for demand, evidence in zip(demands or (), result.evidence, strict=True):
        kind, values = str(demand["kind"]), tuple(map(str, demand["values"]))
        label = f"{kind} {', '.join(values)}"
        if evidence.check == "not_found":
            rejected.append(f"{label}: its quote is not in the brief")
            continue
        try:
            stated = _fields_of(kind, values)
            OutputFormat.model_validate(stated)
        except ValidationError as error:
            rejected.append(f"{label}: {error.errors()[0]['msg']}")
            continue
        except ValueError as error:
            rejected.append(f"{label}: {error}")
            continue
        for name, value in stated.items():
            if name in _LISTS.values() and kind.endswith("file"):
                fields[name] = tuple(dict.fromkeys((*fields.get(name, ()), *value)))
            elif name in fields and fields[name] != value:
                choices.add(name)
                rejected.append(f"{label}: the brief leaves a choice")
            else:
                fields[name] = value
            quotes.setdefault(name, evidence.quote)
    counted = {name: value for name, value in fields.items() if name not in choices}
    return ReadBrief(
        OutputFormat.model_validate(counted),
        {name: quote for name, quote in quotes.items() if name in counted},
        tuple(rejected),
    )


def _fields_of(kind: str, values: Sequence[str]) -> dict[str, Any]:
    """The fields of OutputFormat that a demand states; ValueError if its values make no sense."""
    if kind in _LISTS:
        return {_LISTS[kind]: tuple(map(int, values)) if kind == "labels" else tuple(values)}
    if kind in _SINGLE:
        (value,) = values
        return {_SINGLE[kind]: int(value) if kind == "axes" else value}
    if kind == "range":
        low, high = values
        ends = {"low": low, "high": high}
        return {name: float(end) for name, end in ends.items() if end.strip()}
    if kind == "every_class_occurs":
        return {"every_class_occurs": list(values) == ["true"]}
    raise ValueError(f"no kind of demand: {kind}")
