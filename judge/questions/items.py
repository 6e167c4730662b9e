"""Items of questions: a rubric's criteria, error codes, the stages of turns, ad-hoc questions.

All of them have the form of a criterion, so that one parser, one store and one key serve them all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from ...error_codes.taxonomy import Code, taxonomy
from ...errors import ConfigError
from ...rubrics.load import criterion_sha256
from ...rubrics.model import Criterion, Level, Rubric
from ...tracks import TRACKS
from ...trajectories.models import Segmentation, Tier, TrackName
from ..base import Judge, QuestionName, extra_questions, is_criteria
from ..card.fields import REPORTED, RULES
from ..scoring.criteria import split_criteria

PLAN_ITEM = "plan"
_YES_NO = (Level(value=1.0, text="Yes."), Level(value=0.0, text="No."))
_READING = (
    Level(value=1.0, text="Present: it occurred and mattered."),
    Level(value=0.0, text="Absent."),
)

AnswerKind = Literal["yes_no", "choice", "number", "text", "json"]


_MAX_QUESTION_CHARS = 4_000
_MAX_OPTIONS = 20
_MAX_SCHEMA_CHARS = 20_000
_REFERENCE_KEYWORDS = ('"$ref"', '"$dynamicRef"')


@dataclass(frozen=True)
class Answer:
    """The form of the answer to an ad-hoc question."""

    kind: AnswerKind = "yes_no"
    options: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = field(default=None, hash=False)
    """Compared but not hashed, as a mapping has no hash."""


class AskItem(Criterion):
    """An ad-hoc question.

    Its text says everything that decides the answer, so that it is keyed like any criterion.
    """

    answer: Answer = Answer()


def ask_item(question: str, answer: Answer | None = None) -> AskItem:
    """The item of an ad-hoc question.

    Raises ConfigError for an empty or too long question, or an answer that cannot be asked for.
    """
    answer = answer or Answer()
    text = " ".join(question.split())
    if not text:
        raise ConfigError(
            "the question is empty",
            'for example: ambjudge ask runs/ "Did the agent look at an image?"',
        )
    if len(text) > _MAX_QUESTION_CHARS:
        raise ConfigError(
            f"the question has {len(text):,} characters",
            f"shorten it to at most {_MAX_QUESTION_CHARS:,}",
        )
    scale: tuple[Level, ...] = _YES_NO
    if answer.kind == "choice":
        answer = _distinct_options(answer)
        scale = _choice_scale(answer.options)
    if answer.kind == "json":
        _check_schema(answer.schema)
    return AskItem(
        id="ask",
        title="question",
        text=f"{text}\nThe answer is {_answer_form(answer)}.",
        scale=scale,
        evidence=("executions",),
        source="the user",
        answer=answer,
    )


def _distinct_options(answer: Answer) -> Answer:
    stripped = [option.strip() for option in answer.options]
    options = tuple(dict.fromkeys(option for option in stripped if option))
    if not 2 <= len(options) <= _MAX_OPTIONS:
        raise ConfigError(
            f"a choice cannot have {len(options)} answers",
            f"name 2 to {_MAX_OPTIONS} different answers",
        )
    return Answer("choice", options)


def _choice_scale(options: Sequence[str]) -> tuple[Level, ...]:
    """The options as levels, evenly spaced from 0 to 1."""
    step = 1 / (len(options) - 1)
    return tuple(
        Level(value=min(1.0, index * step), text=option) for index, option in enumerate(options)
    )


def _answer_form(answer: Answer) -> str:
    """The form of the answer, as the question's text states it."""
    forms = {
        "yes_no": "true or false",
        "choice": "one of: " + "; ".join(json.dumps(option) for option in answer.options),
        "number": "a number",
        "text": "one or two short sentences",
        "json": f"JSON by this schema: {json.dumps(answer.schema, sort_keys=True)}",
    }
    return forms[answer.kind]


def _check_schema(schema: Mapping[str, Any] | None) -> None:
    from jsonschema import Draft202012Validator, SchemaError

    if not isinstance(schema, Mapping) or not _is_acceptable(json.dumps(schema)):
        raise ConfigError(
            f"the answer's schema is not a JSON Schema of at most {_MAX_SCHEMA_CHARS:,} characters"
            " without $ref",
            "see --help",
        )
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ConfigError(
            f"the answer's schema: {error.message[:200]}", "give a JSON Schema (draft 2020-12)"
        ) from None


def _is_acceptable(schema_text: str) -> bool:
    has_reference = any(keyword in schema_text for keyword in _REFERENCE_KEYWORDS)
    return len(schema_text) <= _MAX_SCHEMA_CHARS and not has_reference


StagesFrom = Literal["rules", "judge", "mixed"]
UNSURE_SHARE = 0.1
"""With `mixed`, the judge is asked about a run if the rules are unsure of a larger share of its
turns."""


@dataclass(frozen=True)
class QuestionSet:
    """The questions that are asked about runs."""

    criteria: bool = True
    diagnosis: bool = True
    stages: StagesFrom = "rules"
    """Who labels the stage of each turn: the rules, the judge, or the judge where the rules are
    unsure (`mixed`)."""
    ask: AskItem | None = None
    ask_all: bool = False
    """Whether a judge is also asked about criteria that facts decide (`facts.decided`)."""

    def leaves_to_facts(self, judge: str) -> bool:
        """Whether the judge of this name is not asked what facts decide.

        Rules are: they state the same facts, and cost nothing. So are reports, which are repeated.
        """
        return self.criteria and not self.ask_all and judge not in (RULES, REPORTED)

    def items(
        self,
        supported: Collection[QuestionName],
        rubric: Rubric,
        tier: Tier | None,
        track: TrackName | None,
    ) -> dict[QuestionName, tuple[Criterion, ...]]:
        """The items of each question, in the order of asking, for a judge that supports these.

        `stages` is among them also if `mixed` decides by the run (`is_unsure`), and so are criteria
        that facts of a run decide. Questions without items are left out.
        """
        items: dict[QuestionName, tuple[Criterion, ...]] = {}
        if self.stages != "rules":
            items["stages"] = stage_items()
        if self.criteria:
            for stage in rubric.judged_stages:
                items[stage] = split_criteria(rubric.stages[stage], tier).to_judge
        if self.diagnosis:
            items["diagnosis"] = diagnosis_items(track)
        if self.ask is not None:
            items["ask"] = (self.ask,)
        return {
            question: of_question
            for question, of_question in items.items()
            if of_question and (question in supported or is_criteria(question))
        }


def check_can_label_stages(judge: Judge, questions: QuestionSet) -> None:
    """Raise ConfigError if the judge is to label the stages of turns and cannot."""
    if questions.stages != "rules" and "stages" not in extra_questions(judge):
        raise ConfigError(
            f"--stages {questions.stages}: judge {judge.name} cannot label turns, only a model can",
            "name one with --judge, or give --stages rules",
        )


def unsure_below(track: TrackName | None) -> float:
    """The confidence of the rules in a turn's stage below which `mixed` takes the judge's label.

    On constructed runs of the benchmark's tasks the rules are right on .70 of the turns below .6
    and on .93 of those above; on other tasks they are right on .69 of those below .9, where a model
    is right on .97 of all turns (`benchmarks/segmentation.py`, `benchmarks/reading.py`).
    """
    return 0.9 if track is None else 0.6


def is_unsure(segmentation: Segmentation, track: TrackName | None) -> bool:
    """Whether the rules are unsure of so many turns that `mixed` asks the judge."""
    threshold = unsure_below(track)
    unsure = sum(confidence < threshold for confidence in segmentation.confidence)
    return unsure > UNSURE_SHARE * len(segmentation.confidence)


@cache
def diagnosis_items(track: TrackName | None) -> tuple[Criterion, ...]:
    """The items of the diagnosis: error codes, and the plan's commitments.

    The codes are those of the paper's taxonomy, and the answer codes where answers are delivered.
    """
    codes = [_code_item(code, track) for code in taxonomy("paper").codes]
    track_spec = TRACKS.find(track)
    if track_spec is not None and track_spec.output == "answers":
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


def diagnosis_sha256() -> str:
    """Hash of the items of the diagnosis of every track: an edited code text changes it."""
    tracks = (None, *TRACKS.names)
    items = (item for track in tracks for item in diagnosis_items(track))
    digest = hashlib.sha256()
    for item in items:
        digest.update(criterion_sha256(item).encode())
    return digest.hexdigest()


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
    """What counts for a code, what does not, and how it differs from the nearest other codes."""
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
    """The one item of the question about stages; the prompt has its guidance."""
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


def dump_items(question: QuestionName, items: Sequence[Criterion]) -> tuple[dict[str, Any], ...]:
    """Items that are part of no rubric, as plain values; empty for criteria of a rubric."""
    if is_criteria(question):
        return ()
    return tuple(item.model_dump(mode="json") for item in items)


def load_items(values: Sequence[Mapping[str, Any]]) -> tuple[Criterion, ...]:
    """The items that `dump_items` wrote."""
    return tuple(
        AskItem.model_validate(value) if "answer" in value else Criterion.model_validate(value)
        for value in values
    )
