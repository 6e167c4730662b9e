"""What a reader is asked beside a rubric's criteria, as items of the same form: error codes,
stages, ad-hoc questions."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from ...error_codes.taxonomy import Code, taxonomy
from ...errors import ConfigError
from ...rubrics.model import Criterion, Level, Rubric
from ...tracks import TRACKS
from ...trajectories.models import Segmentation, Tier, TrackName
from ..base import Judge, QuestionName, answers, is_criteria
from ..card.scoring import split_criteria

PLAN_ITEM = "plan"
_YES_NO = (Level(value=1.0, text="Yes."), Level(value=0.0, text="No."))
_READING = (
    Level(value=1.0, text="Present: it occurred and mattered."),
    Level(value=0.0, text="Absent."),
)

AnswerKind = Literal["yes_no", "choice", "number", "text", "json"]


@dataclass(frozen=True)
class Answer:
    """What an ad-hoc question wants to hear."""

    kind: AnswerKind = "yes_no"
    options: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = field(default=None, hash=False)
    """Compared but not hashed, as a mapping has no hash."""


class AskItem(Criterion):
    """An ad-hoc question. Its text says everything that decides the answer, so that it is keyed
    like any criterion."""

    answer: Answer = Answer()


def ask_item(question: str, answer: Answer | None = None) -> AskItem:
    """The item of an ad-hoc question; ConfigError for one without words, or a schema that is none."""
    answer = answer or Answer()
    words = " ".join(question.split())
    if not words:
        raise ConfigError(
            "the question is empty",
            'for example: ambjudge ask runs/ "Did the agent look at an image?"',
        )
    if len(words) > 4_000:
        raise ConfigError(f"the question has {len(words):,} characters", "at most 4,000")
    scale: tuple[Level, ...] = _YES_NO
    if answer.kind == "choice":
        options = tuple(dict.fromkeys(o.strip() for o in answer.options if o.strip()))
        if not 2 <= len(options) <= 20:
            raise ConfigError(f"a choice of {len(options)} answers", "name 2 to 20 different ones")
        answer = Answer("choice", options)
        step = 1 / (len(options) - 1)
        scale = tuple(
            Level(value=min(1.0, i * step), text=option) for i, option in enumerate(options)
        )
    form = {
        "yes_no": "true or false",
        "choice": "one of: " + "; ".join(json.dumps(o) for o in answer.options),
        "number": "a number",
        "text": "one or two short sentences",
        "json": f"JSON by this schema: {json.dumps(answer.schema, sort_keys=True)}",
    }[answer.kind]
    if answer.kind == "json":
        _check_schema(answer.schema)
    return AskItem(
        id="ask",
        title="question",
        text=f"{words}\nThe answer is {form}.",
        scale=scale,
        evidence=("executions",),
        source="the user",
        answer=answer,
    )


_REFERENCES = ('"$ref"', '"$dynamicRef"')


def _check_schema(schema: Mapping[str, Any] | None) -> None:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        if (
            not isinstance(schema, Mapping)
            or len(text := json.dumps(schema)) > 20_000
            or any(r in text for r in _REFERENCES)
        ):
            raise ConfigError(
                "the answer's schema is no JSON Schema of at most 20,000 characters without $ref",
                "see --help",
            )
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ConfigError(
            f"the answer's schema: {error.message[:200]}", "give a JSON Schema (draft 2020-12)"
        ) from None


StagesFrom = Literal["rules", "judge", "mixed"]
UNSURE_SHARE = 0.1
"""Share of turns that the rules are unsure of from which `mixed` asks a reader about a run."""


@dataclass(frozen=True)
class Wanted:
    """What is asked about runs. `stages`: by rules, by the judge, or by the judge where the rules
    are unsure."""

    criteria: bool = True
    diagnosis: bool = True
    stages: StagesFrom = "rules"
    ask: AskItem | None = None

    def items(
        self,
        able: Collection[QuestionName],
        rubric: Rubric,
        tier: Tier | None,
        track: TrackName | None,
    ) -> dict[QuestionName, tuple[Criterion, ...]]:
        """The items of every question that a judge with these abilities is asked, in the order of
        asking; `stages` is among them also where `mixed` decides by the run (`is_unsure`)."""
        found: dict[QuestionName, tuple[Criterion, ...]] = {}
        if self.stages != "rules":
            found["stages"] = stage_items()
        if self.criteria:
            for stage in rubric.judged_stages:
                found[stage] = split_criteria(rubric.stages[stage], tier).to_judge
        if self.diagnosis:
            found["diagnosis"] = diagnosis_items(track)
        if self.ask is not None:
            found["ask"] = (self.ask,)
        return {
            name: items
            for name, items in found.items()
            if items and (name in able or is_criteria(name))
        }


def check_wanted(judge: Judge, wanted: Wanted) -> None:
    """ConfigError for stages that this judge cannot label."""
    if wanted.stages != "rules" and "stages" not in answers(judge):
        raise ConfigError(
            f"--stages {wanted.stages}: judge {judge.name} cannot label turns, only a model can",
            "name one with --judge, or give --stages rules",
        )


def unsure_below(track: TrackName | None) -> float:
    """Posterior of a turn's stage by rules below which `mixed` takes a reader's word for the turn.

    On labelled runs of the benchmark the rules are right on .75 of the turns below .6 and on .9
    above; on tasks of other kinds on .71 of those below .9, where reading reaches .85
    (docs/measurements.md, "Stages at real size").
    """
    return 0.9 if track is None else 0.6


def is_unsure(segmentation: Segmentation, track: TrackName | None) -> bool:
    """Whether the rules are unsure of so many turns that `mixed` asks."""
    low = sum(sure < unsure_below(track) for sure in segmentation.confidence)
    return low > UNSURE_SHARE * len(segmentation.confidence)


@cache
def diagnosis_items(track: TrackName | None) -> tuple[Criterion, ...]:
    """The codes of the paper's taxonomy, the answer codes where answers are delivered, and the
    plan's commitments."""
    codes = [_code_item(code, track) for code in taxonomy("paper").codes]
    known = TRACKS.find(track)
    if known is not None and known.output == "answers":
        codes += [_code_item(code, track) for code in taxonomy("answers").codes]
    plan = Criterion(
        id=PLAN_ITEM,
        title="what plan.md promised",
        scale=_YES_NO,
        evidence=("plan", "executions"),
        source="ours",
        text=(
            "List the commitments of plan.md that leave traces: the model or method, how inputs are"
            " prepared, checks and pilots, output files. For each: kept (an execution did it),"
            " broken (something else was done instead) or dropped (nothing was done about it), with"
            " the turns and words that show it. An empty list when there is no plan."
        ),
    )
    return (*codes, plan)


def _code_item(code: Code, track: TrackName | None) -> Criterion:
    return Criterion(
        id=code.code,
        title=code.name,
        text=guidance(code, track),
        scale=_READING,
        evidence=("executions", "outputs", "brief"),
        source="taxonomy",
    )


def guidance(code: Code, track: TrackName | None) -> str:
    """What counts for a code, what does not, and what sets it apart from the others, as a reader is
    told."""
    lines = [code.description]
    if track is not None and track in code.examples:
        lines.append(f"For example: {code.examples[track]}")
    if code.counts:
        lines += ["counts:", *(f"- {line}" for line in code.counts)]
    if code.does_not:
        lines += ["does not count:", *(f"- {line}" for line in code.does_not)]
    lines += [f"beside {other}: {line}" for other, line in code.nearest.items()]
    return "\n".join(lines)


@cache
def stage_items() -> tuple[Criterion, ...]:
    """The one item of the question for the stages of all turns; its guidance is the prompt's."""
    return (
        Criterion(
            id="stages",
            title="stage of every turn",
            scale=_YES_NO,
            evidence=("executions",),
            source="ours",
            text="Which stage is each turn of the record?",
        ),
    )


def dumped(question: QuestionName, items: Sequence[Criterion]) -> tuple[dict[str, Any], ...]:
    """Items that no rubric holds, as plain values that `restored` reads back; empty for criteria."""
    return () if is_criteria(question) else tuple(item.model_dump(mode="json") for item in items)


def restored(items: Sequence[Mapping[str, Any]]) -> tuple[Criterion, ...]:
    """Items from `dumped`."""
    return tuple(
        (AskItem if "answer" in item else Criterion).model_validate(item) for item in items
    )
