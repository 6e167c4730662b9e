"""ambjudge codes: what went wrong in a run, and on which turns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import click

from .. import console
from .card_in_force import card_in_force
from .grouped_help import command as grouped_command
from .grouped_help import option
from .options import JSON, JUDGE, MAX_COST, PATHS, RUBRIC, STORE, WHERE

if TYPE_CHECKING:
    from ..error_codes.detectors.answers import AnswerCode
    from ..error_codes.models import FiredCode
    from ..judge.card.scorecard import ScoreCard
    from ..judge.card.view_parts import Item
    from ..judge.facts.diagnosis import Diagnosis
    from ..trajectories.models import Run
    from ..trajectories.record.facts import Fact, FactInfo
    from .judge_readings import Reading


@grouped_command(
    "codes",
    "ambjudge codes runs/elm-chest-1 --taxonomy harness",
    "ambjudge codes runs/ --judge openai/gpt-5.4-mini --plan",
)
@PATHS
@option(
    "--taxonomy",
    type=click.Choice(["paper", "harness"]),
    help="paper: E1-E5; harness: one code for each failed step.  [default: paper]",
)
@option("--plan", is_flag=True, help="Also show what a model says became of the plan's promises.")
@JUDGE
@MAX_COST
@WHERE
@RUBRIC
@STORE
@JSON
@click.pass_obj
def command(
    obj: dict[str, Any],
    /,
    paths: tuple[str, ...],
    taxonomy: str | None,
    plan: bool,
    as_json: bool,
    **flags: Any,
) -> int:
    """Show the error codes of runs, each with its turns and a reason, and the episodes of failed
    steps.

    With a model as --judge, E1-E5 come with quotes from the transcript. Without one, only codes
    that files, exit codes and the harness prove can fire; the others are not read.
    """
    return run(obj, paths, flags, taxonomy, plan, as_json)


@dataclass(frozen=True)
class RunDiagnosis:
    """A run with its diagnosis, the taxonomy to show, and the facts that a reading may cite."""

    run: Run
    diagnosis: Diagnosis
    taxonomy: Literal["paper", "harness"]
    not_read_reason: str
    """Why some codes were not read."""
    facts: tuple[FactInfo, ...] = ()
    bare_facts: tuple[Fact, ...] = ()
    """Facts about a run without a track, whoever read it."""

    @property
    def codes(self) -> tuple[FiredCode, ...]:
        """The fired codes of the taxonomy."""
        return self.diagnosis.steps if self.taxonomy == "harness" else self.diagnosis.codes

    def to_dict(self) -> dict[str, Any]:
        """`ambjudge.codes/1`."""
        from ..trajectories.summary import run_info

        diagnosis = self.diagnosis
        data = {
            "schema": "ambjudge.codes/1",
            "run": run_info(self.run),
            "taxonomy": self.taxonomy,
            "codes": [code.model_dump(mode="json") for code in self.codes],
            "codes_read": dict(diagnosis.codes_read),
            "unproven": [code.model_dump(mode="json") for code in diagnosis.unproven],
            "plan": [item.model_dump(mode="json") for item in diagnosis.plan],
            "primary_failure": diagnosis.primary_failure,
            "episodes": [episode.model_dump(mode="json") for episode in diagnosis.episodes],
        }
        if diagnosis.answers:
            data["answers"] = [answer.model_dump(mode="json") for answer in diagnosis.answers]
        if diagnosis.answer_codes:
            data["answer_codes"] = dict(diagnosis.answer_codes)
        return data


def run(
    obj: dict[str, Any],
    paths: tuple[str, ...],
    flags: dict[str, Any],
    taxonomy: str | None,
    with_plan: bool,
    as_json: bool,
) -> int:
    """The exit code: 0; 1 if a run could not be read, by us or by the judge; 2 if none could."""
    from ..config import load
    from ..judge.base import extra_questions
    from ..judge.questions.items import QuestionSet
    from .judge_readings import read_runs
    from .sessions import judge_of, score_options

    settings = load(obj["config"])
    judge, options = judge_of(settings, flags), score_options(settings, flags)
    chosen: Any = settings.get("taxonomy", taxonomy) or "paper"
    # A judge reads only the paper's codes, so nobody is asked for the harness's alone.
    needs_reading = chosen == "paper" or with_plan or as_json
    options = replace(options, questions=QuestionSet(criteria=False, diagnosis=needs_reading))
    store = flags["store"] if "diagnosis" in extra_questions(judge) else "none"
    is_first = True
    stored = card_in_force(obj, paths, settings, flags)

    def show(reading: Reading) -> None:
        nonlocal is_first
        diagnosis = diagnose(reading, judge.name, chosen)
        if stored is not None:
            diagnosis = with_stored_readings(diagnosis, stored)
        if as_json:
            console.raw(json.dumps(diagnosis.to_dict(), ensure_ascii=False))
        else:
            if not is_first:
                console.say()
            show_diagnosis(diagnosis, with_plan)
        is_first = False

    return read_runs(obj, paths, settings, {**flags, "store": store}, judge, options, show)


def diagnose(reading: Reading, judge: str, taxonomy: Literal["paper", "harness"]) -> RunDiagnosis:
    """Combine what detectors found and, where a judge was asked, what it read."""
    from ..error_codes.trace_facts import bare_facts
    from ..judge.facts.diagnosis import diagnose as combine

    prepared, reply = reading.prepared, reading.replies.get("diagnosis")
    diagnosis = combine(
        prepared.run,
        prepared.segmentation,
        prepared.detected,
        reply,
        judge,
        reading.precision,
    )
    return RunDiagnosis(
        prepared.run,
        diagnosis,
        taxonomy,
        not_read_reason="no judge read the run" if reply is None else "the judge's reading failed",
        facts=() if reply is None else prepared.facts,
        bare_facts=bare_facts(prepared.detected.context),
    )


def with_stored_readings(by_rules: RunDiagnosis, card: ScoreCard) -> RunDiagnosis:
    """The diagnosis of the rules with the readings of a scorecard of the same run."""
    diagnosis = replace(
        by_rules.diagnosis,
        codes=tuple(code for code in card.codes if code.taxonomy == "paper"),
        steps=tuple(code for code in card.codes if code.taxonomy == "harness"),
        unproven=card.unproven,
        codes_read=card.codes_read,
        plan=card.plan,
        primary_failure=card.primary_failure,
        answer_codes=card.answer_codes,
    )
    return replace(
        by_rules,
        diagnosis=diagnosis,
        not_read_reason="the judge's reading failed",
        facts=card.facts,
    )


def show_diagnosis(run_diagnosis: RunDiagnosis, with_plan: bool) -> None:
    """Print the fired codes, the state of the others, the failed steps and, if asked for, the
    plan."""
    from ..judge.card.view import code_entries, code_item, codes_not_fired, episode_item
    from .render import say_item

    diagnosis = run_diagnosis.diagnosis
    facts = {fact.id: fact for fact in run_diagnosis.facts}
    console.say(console.wrap(_head(run_diagnosis), "  ", ""))
    if not run_diagnosis.codes:
        console.say("  no error code fired")
    for item, supports in code_entries(run_diagnosis.codes):
        _show_code(item, supports, facts)
    for fact in run_diagnosis.bare_facts:
        console.say(console.wrap(f"fact: {fact.text}", "    ", "  "))
    if run_diagnosis.taxonomy == "paper":
        not_fired = codes_not_fired(diagnosis.codes_read, run_diagnosis.not_read_reason)
        if not_fired:
            states = " · ".join(line.text for line in not_fired)
            console.say(console.wrap(states, "    ", "  "))
        if diagnosis.unproven:
            console.say("  Readings without proof (did not fire)")
            for code in diagnosis.unproven:
                _show_code(code_item(code), [code], facts)
    if diagnosis.episodes:
        overcome = sum(episode.resolved for episode in diagnosis.episodes)
        console.say(f"  Failed steps: {overcome} of {len(diagnosis.episodes)} overcome")
        for episode in diagnosis.episodes:
            say_item(episode_item(episode), indent="    ")
    _show_answer_codes(diagnosis)
    if with_plan:
        _show_plan(run_diagnosis)


def _head(run_diagnosis: RunDiagnosis) -> str:
    """Name, task and ending of the run, and its primary failure."""
    from ..judge.card.view import ending

    run = run_diagnosis.run
    parts = [
        run.task or "unknown task",
        ending(run.status.ended, run.track, run.imported),
    ]
    failure = run_diagnosis.diagnosis.primary_failure
    if failure:
        parts.append(f"primary failure by the harness's codes {failure}")
    return f"{run.id}  {' · '.join(parts)}"


def _show_code(item: Item, supports: Sequence[FiredCode], facts: Mapping[str, FactInfo]) -> None:
    """Print a code with all that supports it, and the facts that readings of it name."""
    from .render import say_item

    say_item(item, roles=("reading", "evidence", "origin"))
    for name in dict.fromkeys(name for code in supports for name in code.facts):
        text = facts[name].text if name in facts else "no fact of this run"
        console.say(console.wrap(f"{name}: {text}", "        ", "      ↳ "))


def _show_answer_codes(diagnosis: Diagnosis) -> None:
    """Print the codes of single answers (vqa); a checked code has its first example."""
    examples: dict[str, AnswerCode] = {}
    for answer in diagnosis.answers:
        examples.setdefault(answer.code, answer)
    if diagnosis.answer_codes:
        console.say("  Answers")
    for code, count in diagnosis.answer_codes.items():
        words = "as read by the judge"
        if code in examples:
            example = examples[code]
            words = f"{count} times, first {example.question}: {example.why}"
        console.say(console.wrap(words, "            ", f"    {code}  "))


def _show_plan(run_diagnosis: RunDiagnosis) -> None:
    from ..judge.card.view import plan_item
    from .render import say_item

    plan = run_diagnosis.diagnosis.plan
    if plan:
        console.say("  What the plan promised")
    elif run_diagnosis.run.plan.text is None:
        console.say("  The run has no plan.")
    elif run_diagnosis.facts:
        console.say("  The judge read no promise in the plan.")
    else:
        console.say(f"  The plan's promises: not read ({run_diagnosis.not_read_reason})")
    for item in plan:
        say_item(plan_item(item), indent="    ")
