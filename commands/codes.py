"""ambjudge codes: what went wrong, on which turns."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import click

from .. import console
from .options import JSON, PATHS, reading_options, run_options

if TYPE_CHECKING:
    from ..error_codes.detectors.answers import AnswerCode
    from ..error_codes.models import FiredCode
    from ..judge.facts.diagnosis import Diagnosis
    from ..trajectories.models import Run
    from ..trajectories.record.facts import Fact
    from .judge_readings import Read


@click.command(
    "codes",
    epilog=(
        "\b\nExamples:\n  ambjudge codes runs/elm-chest-1 --taxonomy harness\n  ambjudge codes"
        " runs/ --judge openai/gpt-5.4-mini --plan"
    ),
)
@PATHS
@click.option(
    "--taxonomy",
    type=click.Choice(["paper", "harness"]),
    help="paper (default): E1-E5 of the paper; harness: one code a failed step.",
)
@click.option(
    "--plan",
    is_flag=True,
    help="Also what plan.md promised and what became of it, as a model reads it.",
)
@JSON
@reading_options
@run_options
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

    A model as --judge reads each run for E1-E5 and quotes what shows them. Without one only what
    files, exit codes and the harness prove is there, and codes that take reading are not read.
    """
    return run(obj, paths, flags, taxonomy, plan, as_json)


@dataclass(frozen=True)
class RunDiagnosis:
    """A run, its diagnosis, the taxonomy to show, and the facts that a reading may rest on."""

    run: Run
    found: Diagnosis
    taxonomy: Literal["paper", "harness"]
    unread: str
    """Why codes are not read, where some are."""
    facts: tuple[Fact, ...] = ()
    bare: tuple[Fact, ...] = ()
    """What says something of a run without a track, whoever read it."""

    @property
    def codes(self) -> tuple[FiredCode, ...]:
        """The codes of the taxonomy that fired."""
        return self.found.steps if self.taxonomy == "harness" else self.found.codes

    def to_dict(self) -> dict[str, Any]:
        """`ambjudge.codes/1`."""
        from ..trajectories.summary import run_info

        found = self.found
        data = {
            "schema": "ambjudge.codes/1",
            "run": run_info(self.run),
            "taxonomy": self.taxonomy,
            "codes": [code.model_dump(mode="json") for code in self.codes],
            "codes_read": dict(found.codes_read),
            "unproven": [code.model_dump(mode="json") for code in found.unproven],
            "plan": [item.model_dump(mode="json") for item in found.plan],
            "primary_failure": found.primary_failure,
            "episodes": [episode.model_dump(mode="json") for episode in found.episodes],
        }
        if found.answers:
            data["answers"] = [a.model_dump(mode="json") for a in found.answers]
        if found.answer_codes:
            data["answer_codes"] = dict(found.answer_codes)
        return data


def run(
    obj: dict[str, Any],
    paths: tuple[str, ...],
    flags: dict[str, Any],
    taxonomy: str | None,
    plan: bool,
    as_json: bool,
) -> int:
    """The exit code: 0; 1 when a run could not be read, by us or by the judge; 2 when none could."""

    from ..config import load
    from ..judge.base import extra_questions
    from ..judge.questions.items import QuestionSet
    from .judge_readings import read_runs
    from .options import judge_of, score_options

    settings = load(obj["config"])
    judge, options = judge_of(settings, flags), score_options(settings, flags)
    chosen: Any = settings.get("taxonomy", taxonomy) or "paper"
    shown = chosen == "paper" or plan or as_json  # the harness's codes are not read
    options = replace(options, questions=QuestionSet(criteria=False, diagnosis=shown))
    able = "diagnosis" in extra_questions(judge)
    first = True

    def show_one(read: Read) -> None:
        nonlocal first
        diagnosis = diagnose(read, judge.name, chosen)
        if as_json:
            console.raw(json.dumps(diagnosis.to_dict(), ensure_ascii=False))
        else:
            show(diagnosis, plan, first)
        first = False

    return read_runs(
        obj,
        paths,
        settings,
        {**flags, "store": flags["store"] if able else "none"},
        judge,
        options,
        show_one,
    )


def diagnose(read: Read, judge: str, taxonomy: Literal["paper", "harness"]) -> RunDiagnosis:
    """What detectors found and, where it was asked, what the judge read."""
    from ..error_codes.trace_facts import bare_facts
    from ..judge.facts.diagnosis import diagnose

    ready, reply = read.ready, read.replies.get("diagnosis")
    found = diagnose(ready.run, ready.segmentation, ready.detected, reply, judge, read.precision)
    unread = "no judge read the run" if reply is None else "the judge's reading failed"
    bare = bare_facts(ready.detected.context)
    return RunDiagnosis(
        ready.run, found, taxonomy, unread, ready.facts if reply is not None else (), bare
    )


def show(diagnosis: RunDiagnosis, plan: bool, first: bool) -> None:
    """Codes with their proof, what is known of the others, then failed steps, and the plan's
    commitments if asked for."""
    from ..judge.card.view import codes_not_fired, ending, episode_item
    from .render import say_item

    run, found = diagnosis.run, diagnosis.found
    facts = {fact.id: fact for fact in diagnosis.facts}
    if not first:
        console.say()
    primary = (
        f" · primary failure by the harness's codes {found.primary_failure}"
        if found.primary_failure
        else ""
    )
    console.say(
        console.wrap(
            f"{run.id}  {run.task or 'unknown task'} ·"
            f" {ending(run.status.ended, run.track, run.imported)}{primary}",
            "  ",
            "",
        )
    )
    if not diagnosis.codes:
        console.say("  no error code fired")
    for code in diagnosis.codes:
        _code(code, facts)
    for fact in diagnosis.bare:
        console.say(console.wrap(f"fact: {fact.text}", "    ", "  "))
    if diagnosis.taxonomy == "paper":
        not_fired = codes_not_fired(found.codes_read, diagnosis.unread)
        if words := " · ".join(line.text for line in not_fired):
            console.say(console.wrap(words, "    ", "  "))
        if found.unproven:
            console.say("  Readings without proof (did not fire)")
            for code in found.unproven:
                _code(code, facts)
    if found.episodes:
        overcome = sum(episode.resolved for episode in found.episodes)
        console.say(f"  Failed steps: {overcome} of {len(found.episodes)} overcome")
        for episode in found.episodes:
            say_item(episode_item(episode), indent="    ")
    _answers(found)
    if plan:
        _plan(diagnosis)


def _code(code: FiredCode, facts: dict[str, Fact]) -> None:
    from ..judge.card.view import code_item
    from .render import say_item

    say_item(code_item(code), roles=("evidence", "origin"))
    for name in code.facts:
        fact = facts.get(name)
        console.say(
            console.wrap(
                f"{name}: {fact.text if fact is not None else 'no fact of this run'}",
                "        ",
                "      ↳ ",
            )
        )


def _answers(found: Diagnosis) -> None:
    """vqa: codes of single answers, checked ones with their first example."""
    groups: dict[str, list[AnswerCode]] = {}
    for answer in found.answers:
        groups.setdefault(answer.code, []).append(answer)
    if found.answer_codes:
        console.say("  Answers")
    for name, count in found.answer_codes.items():
        hits = groups.get(name)
        words = f"{count} x, first {hits[0].question}: {hits[0].why}" if hits else "as read"
        console.say(console.wrap(words, "            ", f"    {name}  "))


def _plan(diagnosis: RunDiagnosis) -> None:
    from ..judge.card.view import plan_item
    from .render import say_item

    if diagnosis.found.plan:
        console.say("  What the plan promised")
    elif diagnosis.run.plan.text is None:
        console.say("  The run has no plan.")
    elif diagnosis.facts:
        console.say("  No commitment of the plan was read.")
    else:
        console.say(f"  The plan's commitments: not read ({diagnosis.unread})")
    for item in diagnosis.found.plan:
        say_item(plan_item(item), indent="    ")
