"""Why a turn may belong to a stage: the named reasons and their weights.

Weights are log-odds: 0.5 leans, 1 hints, 2 is a good reason, 4 is next to certain. They are set
from the labelling rules, not fitted: the main purpose of the executed code counts, a failed attempt
counts for what it attempted, looking at data before the plan is planning and after it setup,
candidates that run on cases are validation, and what follows the last run over everything belongs
to the hand-over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from ..models import STAGES, Run, Signal, Stage, Turn
from .turn_features import TurnFeatures

Place = Literal["before", "during", "after"]
Reason = tuple[str, dict[Stage, float]]

_COMPARES = re.compile(r"\b(?:diff|cmp|md5sum|sha\d{0,3}sum|filecmp|array_equal|md5|sha256)\b")
_CHANGES = re.compile(r"\b(?:sed|perl) -\w{0,4}i\b|\.replace\(")


@dataclass(frozen=True)
class Scene:
    """One turn with what its reasons need to know of the run around it."""

    turn: Turn
    facts: TurnFeatures
    place: Place
    """Where the turn stands to the runs over everything: before the first, up to the last, after
    the last."""
    position: float
    """0 for the first turn, 1 for the last; turns that only ask the machine for its state are not
    counted."""
    planned: bool
    """Whether a plan was written by now: a plan.md, or a message that lays out a plan."""
    tested: bool
    """Whether a model ran, or an output was written, in an earlier turn."""
    applied: bool
    """The same of turns that did not fail: what failed is tried again for the same end."""
    repairs: bool
    """Whether the turn rewrites a script that was run before."""
    stranded: bool
    """Whether the last full run before this turn failed and none follows."""
    full_run: bool
    """Whether the turn itself runs over everything, or tries to."""
    owed: bool
    """Whether the turn writes the run's first plan, and the last full run is over."""
    benchmark: bool
    """Whether the track's deliverables are known; else the main run is recognised by scripts and
    training."""


def scenes(run: Run, facts: Sequence[TurnFeatures]) -> list[Scene]:
    """Every turn with its place in the run. The full runs are found first, as all else is placed by
    them."""
    benchmark = run.track is not None
    full = _full_runs(run.turns, facts) if benchmark else [_is_main_run(f) for f in facts]
    if benchmark and not any(full):
        # No output was seen being written: then applying the model to everything is the full run.
        full = [f.forward_pass and f.cases_scope == "all" for f in facts]
        kept = [is_full and f.stores_results for is_full, f in zip(full, facts, strict=True)]
        full = kept if any(kept) else full
    if not benchmark:
        full = _without_helpers(full, facts)
    marks = [i for i, is_full in enumerate(full) if is_full]
    first, last = (marks[0], marks[-1]) if marks else (len(full), len(full))
    made: list[Scene] = []
    planned = tested = applied = False
    ran: set[str] = set()
    done = 0
    last_done = max(1, sum(not f.asks_machine for f in facts) - 1)
    for i, (turn, fact) in enumerate(zip(run.turns, facts, strict=True)):
        place: Place = "before" if i < first else "during" if i <= last else "after"
        owed = place == "after" and fact.writes_plan and not any(f.writes_plan for f in facts[:i])
        planned = planned or fact.writes_plan
        stranded = place == "after" and facts[last].failed
        repairs = any(PurePosixPath(p).name in ran for p in fact.written_paths)
        made.append(
            Scene(
                turn,
                fact,
                place,
                min(1.0, done / last_done),
                planned,
                tested,
                applied,
                repairs,
                stranded,
                full[i],
                owed,
                benchmark,
            )
        )
        tested = tested or fact.forward_pass or fact.writes_outputs
        applied = applied or ((fact.forward_pass or fact.writes_outputs) and not fact.failed)
        ran |= {PurePosixPath(p).name for p in fact.run_paths}
        done += not fact.asks_machine
    return made


def _full_runs(turns: Sequence[Turn], facts: Sequence[TurnFeatures]) -> list[bool]:
    """Outputs written for all cases; for half of them, if no run over all follows (a batch in two
    parts); and with the model for any case once a full run was there (resuming, repairing)."""
    complete: list[bool] = []
    for turn, fact in zip(turns, facts, strict=True):
        whole = fact.writes_outputs and fact.cases_scope == "all"
        complete.append(whole and not (any(complete) and _repeats_to_compare(turn, fact)))
    last = max((i for i, is_complete in enumerate(complete) if is_complete), default=-1)
    found: list[bool] = []
    for i, (turn, fact) in enumerate(zip(turns, facts, strict=True)):
        half = (
            fact.writes_outputs
            and i > last
            and fact.cases_scope == "few"
            and (fact.cases_share or 0) >= 0.5
        )
        unread = fact.writes_outputs and fact.cases_scope == "unknown"
        repair = any(found) and fact.writes_outputs and fact.forward_pass and i > last
        repair = repair and not (_mostly_checks(fact) or _repeats_to_compare(turn, fact))
        found.append(complete[i] or half or unread or repair)
    return found


def _repeats_to_compare(turn: Turn, fact: TurnFeatures) -> bool:
    """Everything once more, unchanged, and held against the files that are there: a check of them."""
    changed = fact.writes_module or fact.writes_plan or bool(_CHANGES.search(turn.code))
    return bool(not changed and _COMPARES.search(turn.code))


def _mostly_checks(fact: TurnFeatures) -> bool:
    """A case or two run once more by a script that is only called, in a turn that writes and runs a
    check of all."""
    fresh = {PurePosixPath(p).name for p in fact.written_paths}
    called = [p for p in fact.run_paths if PurePosixPath(p).name not in fresh]
    few = fact.cases_scope in ("one", "few") and (fact.cases_share or 1.0) < 0.5
    return (
        few
        and fact.checks_outputs
        and bool(called)
        and fact.module_lines + fact.code_lines >= 4 * len(called) + 4
    )


def _is_main_run(fact: TurnFeatures) -> bool:
    """Runs of other tasks have no case set: training, writing what the brief names, or starting a
    program of one's own that is no check, is the main run."""
    if not fact.executed or fact.runs_tests:
        return False
    looks = fact.loads_inputs and not fact.has("writes_files", "forward_pass")
    prepares = fact.loads_model and not fact.forward_pass
    return (
        fact.training
        or (fact.writes_outputs and fact.cases_scope != "none")
        or (bool(fact.run_paths) and not looks and not prepares)
    )


def _without_helpers(full: list[bool], facts: Sequence[TurnFeatures]) -> list[bool]:
    """Only turns that train or write what the brief names, when there are any; and no script much
    shorter than the main one, which tidies up after it."""
    if any(
        f.training or f.writes_outputs for f, is_full in zip(facts, full, strict=True) if is_full
    ):
        full = [
            is_full and (f.training or f.writes_outputs)
            for f, is_full in zip(facts, full, strict=True)
        ]
    longest = max(
        (f.run_lines for f, is_full in zip(facts, full, strict=True) if is_full), default=0
    )
    return [
        is_full and (not f.run_lines or f.training or f.run_lines * 5 >= longest)
        for f, is_full in zip(facts, full, strict=True)
    ]


def signals(scene: Scene) -> tuple[Signal, ...]:
    """All reasons for one turn, each with the words it rests on where there are any."""
    quotes = scene.facts.quotes
    return tuple(
        Signal(
            name=name,
            stage=stage,
            weight=weights[stage],
            quote=_quote(name, scene, quotes.get(name, "")),
        )
        for name, weights in _reasons(scene)
        for stage in STAGES
        if weights.get(stage)
    )


def _quote(name: str, scene: Scene, found: str) -> str:
    return found or (
        scene.turn.text.strip()[-160:] if name.startswith(("says", "closing", "message")) else ""
    )


def _reasons(scene: Scene) -> Iterator[Reason]:
    fact = scene.facts
    # Position alone is weak: runs begin with reading and end with handing over.
    if scene.position < 0.15:
        yield "early", {"S1": 1.0}
    elif scene.position > 0.9:
        yield "late", {"S5": 0.7}
    if fact.submits:
        yield "submits", {"S5": 6.0}
    if fact.closing_message:
        yield "closing_message", {"S5": 5.0}
        return
    if fact.todo_only:
        # A list of what is to be done is planning; the one that ticks off the last item closes the
        # work.
        closes = fact.todo_done and scene.place != "during" and scene.position > 0.5
        yield "todo_only", {"S5": 3.0} if closes else {"S1": 4.0}
        return
    if fact.message_only:
        # Words without an action are mostly planning; once the work has begun they are about that
        # work.
        begun = scene.benchmark and scene.planned and scene.tested
        yield (
            "message_only",
            (
                {"S5": 1.5}
                if scene.place == "after" and scene.benchmark
                else {"S1": 0.3 if begun else 2.0}
            ),
        )
    if fact.stage_comment and fact.quotes.get("stage_comment", "").startswith(("#", "//", "--")):
        # Code is labelled, not its heading: where outputs are seen to be made, the comment only
        # leans. A pass without
        # outputs may be setup or validation, so there the comment keeps its weight.
        shown = fact.writes_outputs and fact.cases_scope != "unknown"
        yield "stage_comment", {fact.stage_comment: 1.5 if shown else 2.5}
    elif fact.stage_comment:
        yield "stage_comment", {fact.stage_comment: 1.5}
    yield from _planning(scene)
    yield from _setup(scene)
    yield from _work(scene)
    yield from _handover(scene)


def _planning(scene: Scene) -> Iterator[Reason]:
    fact, place = scene.facts, scene.place
    if fact.writes_plan:
        # In a mixed turn the part that takes most of the code decides.
        share = _plan_share(fact)
        if scene.owed and not fact.has(
            "forward_pass", "loads_model", "loads_inputs", "writes_module", "checks_outputs"
        ):
            yield "writes_plan", {"S1": 9.5}
        elif _keeps_books(scene):
            yield "writes_plan", {"S1": 4.5}
        elif place == "after":
            yield (
                "writes_plan",
                {"S1": 1.5, "S5": 1.5 if fact.reads_outputs or scene.position > 0.75 else 0.0},
            )
        elif _mostly_module(fact):
            tried = (
                fact.forward_pass and not fact.dummy_forward and fact.cases_scope in ("one", "few")
            )
            yield "writes_plan", {"S1": 0.5}
            yield "mostly_module", {"S3" if tried else "S2": 1.5}
        elif fact.has(
            "forward_pass", "loads_model", "loads_inputs", "writes_module", "installs_packages"
        ):
            yield "writes_plan", {"S1": 1.0 + 3.0 * share}
        else:
            yield "writes_plan", {"S1": 4.5}
    if fact.writes_plan_image:
        # Beside a pipeline that is written and run on a case, the figure is the smaller part.
        beside = (
            fact.writes_module
            and fact.has("forward_pass", "writes_outputs")
            and not fact.drawing_lines
        )
        lean = 1.0 if beside or _mostly_module(fact) else 2.0
        yield "writes_plan_image", {"S1": 5.0 if place == "after" and _keeps_books(scene) else lean}
    if place == "during" and _studies_anew(scene):
        yield "reads_docs", {"S1": 5.0}
        if fact.inspects_inputs:
            yield "inspects_inputs", {"S1": 2.0}
    if place != "before":
        return
    if fact.reads_docs and not fact.module_only:
        yield "reads_docs", {"S1": 1.5}
    if fact.lists_inputs and not (fact.forward_pass or fact.loads_model):
        yield "lists_inputs", {"S1": 0.8}
    if fact.inspects_inputs and not fact.forward_pass and not (scene.tested and fact.reads_outputs):
        # Data are explored for the task before the plan, for the model's sake after it, for a
        # result's sake later.
        # A result is held against the inputs of its own cases; all inputs are gone through for the
        # pipeline's sake.
        if scene.tested and scene.benchmark:
            single = fact.inputs_scope in ("one", "few")
            yield "inspects_inputs", {"S3": 1.0, "S2": 0.8} if single else {"S2": 2.0, "S3": 0.8}
        elif scene.planned and scene.benchmark and not fact.writes_plan:
            yield "inspects_inputs", {"S2": 2.0}
        else:
            yield "inspects_inputs", {"S2": 1.5, "S1": 0.5} if scene.planned else {"S1": 2.0}


def _mostly_module(fact: TurnFeatures) -> bool:
    """A plan, with its figure, beside a pipeline that takes three quarters of the lines or more."""
    return fact.writes_plan and fact.writes_module and _plan_share(fact) <= 0.25


def _plan_share(fact: TurnFeatures) -> float:
    lines = fact.plan_lines + fact.code_lines + fact.module_lines
    return (fact.plan_lines + (fact.drawing_lines if fact.writes_plan_image else 0)) / max(1, lines)


def _keeps_books(scene: Scene) -> bool:
    """Results noted in the plan after the work, while the hand-over is still to come; or the plan
    itself, owed until now."""
    fact = scene.facts
    if fact.writes_plan_image and not fact.has("writes_plan", *_OTHER_WORK):
        return scene.place == "after" and not fact.submits
    late = scene.place == "after" and (scene.position <= 0.75 or not fact.revises_plan)
    return late and fact.writes_plan and not fact.reads_outputs and _plan_share(fact) > 0.5


_OTHER_WORK = (
    "forward_pass",
    "writes_outputs",
    "reads_outputs",
    "loads_inputs",
    "loads_model",
    "writes_module",
    "writes_report",
    "packages_outputs",
)
"""What a turn that only draws the plan has none of."""


def _studies_anew(scene: Scene) -> bool:
    """Cards and inputs that a hasty first run over everything left unread, before there is any
    plan. In other tasks the runs over everything are only guessed."""
    fact = scene.facts
    return (
        scene.benchmark
        and fact.reads_docs
        and not scene.planned
        and not fact.has("runs_script", "loads_model", *_OTHER_WORK[:3])
    )


def _setup(scene: Scene) -> Iterator[Reason]:
    fact = scene.facts
    if fact.installs_packages:
        # A line of installation beside a plan of many: the part that takes most of the code
        # decides.
        beside_plan = _plan_share(fact) if fact.writes_plan else 0.0
        yield (
            "installs_packages",
            {"S2": 4.5 if beside_plan <= 0.5 else 1.0 + 3.0 * (1 - beside_plan)},
        )
    if fact.obtains_weights:
        yield "obtains_weights", {"S2": 3.0}
    if fact.builds:
        yield "builds", {"S2": 3.0}
    if fact.checks_environment and not scene.full_run:
        yield "checks_environment", {"S2": 1.5 if fact.inspects_inputs or fact.reads_docs else 3.0}
    if fact.imports_only:
        yield "imports_only", {"S2": 2.5}
    if fact.prepares_folders:
        yield "prepares_folders", {"S2": 3.0}
    applied = (fact.forward_pass and not fact.dummy_forward) or fact.writes_outputs
    if fact.loads_model and scene.place == "before" and not (applied or _tries_own_code(fact)):
        yield "loads_model", {"S2": 2.2}
    elif fact.looks_at_weights and scene.place == "before":
        yield "looks_at_weights", {"S2": 1.5}
    if fact.dummy_forward:
        yield "dummy_forward", {"S2": 2.5}
    if fact.module_only and scene.place == "before":
        yield (
            "module_only",
            {"S1": 3.0, "S2": 1.5} if fact.module_looks and not scene.benchmark else {"S2": 4.0},
        )
    elif (
        fact.loads_inputs
        and scene.planned
        and scene.place == "before"
        and not (
            fact.inspects_inputs
            or fact.has("forward_pass", "writes_outputs")
            or _tries_own_code(fact)
        )
    ):
        # After a pilot, single inputs are opened to see whether its results are right.
        yield (
            "loads_inputs",
            {"S3": 1.0} if scene.tested and fact.inputs_scope in ("one", "few") else {"S2": 2.0},
        )
    if fact.module_only and scene.place == "during" and not scene.repairs:
        yield "module_only", {"S2": 1.5}


def _work(scene: Scene) -> Iterator[Reason]:
    """Running the model: on a few cases it is validation, over everything it is inference."""
    fact, place = scene.facts, scene.place
    if scene.full_run:
        yield "full_run", {"S4": 4.5}
        return
    if fact.watches_progress:
        # Before any full run it is an installation or a download that is waited for.
        yield "watches_progress", {"S2": 1.5} if place == "before" else {"S4": 4.0}
    if fact.starts_background and fact.runs_script:
        yield "starts_background", {"S4": 2.5}  # nobody sends a single case to the background
    if place == "after":
        return
    if fact.writes_outputs:
        yield "writes_outputs", {"S3": 2.0} if place == "before" else {"S4": 2.0, "S3": 1.0}
    elif fact.forward_pass and not fact.dummy_forward:
        if _is_load_test(fact):
            yield "load_test", {"S2": 2.6, "S3": 1.0}
            if fact.loads_model:
                yield "loads_model", {"S2": 1.0}
        else:
            yield "forward_pass", {"S3": 3.0 if place == "during" else 2.2}
    if fact.training and scene.benchmark:
        yield "training", {"S3": 0.5}
    if fact.reads_outputs and scene.tested and place == "before":
        yield "reads_outputs", {"S3": 2.5}  # there is only the pilot's output yet
    if (
        fact.runs_tests
        and scene.benchmark
        and place == "before"
        and not fact.has("forward_pass", "writes_outputs")
    ):
        yield "runs_tests", {"S2": 2.2}  # the parts are tested, no case is run
    elif (
        scene.benchmark and _tries_own_code(fact) and not fact.has("forward_pass", "writes_outputs")
    ):
        yield "tries_own_code", {"S3": 3.0 if place == "during" else 2.2}
    elif fact.made_up_input and not fact.has("forward_pass", "writes_outputs"):
        # No case has been touched: the parts are being got to work.
        yield "made_up_input", {"S2": 2.0}
    elif fact.runs_script and not fact.forward_pass:
        # A script of one's own that neither runs a model nor makes anything: a unit test, or a look
        # at the data.
        looks = fact.loads_inputs and not scene.benchmark
        # A pipeline written with some unit tests beside it has touched no case.
        prepares = place == "before" and fact.module_lines >= 3 * max(
            1, fact.run_lines + fact.code_lines
        )
        yield "runs_script", {"S2": 2.0} if prepares else {"S1": 1.5} if looks else {"S3": 1.0}
    if not scene.benchmark and fact.executed and not fact.has(*_KNOWN_WORK):
        yield "works_in_cells", {"S4": 1.0}
    if place == "during":
        # Between two full runs: repairs belong to the run, looks at single results to validation.
        if fact.module_only and scene.repairs:
            yield "repairs_module", {"S4": 2.0}
        elif fact.reads_outputs or fact.checks_outputs:
            yield "checks_before_rerun", {"S4": 1.5}
        elif fact.loads_inputs and fact.inspects_values and not _studies_anew(scene):
            yield "inspects_values", {"S3": 1.5}
        if not (fact.installs_packages or fact.forward_pass or _studies_anew(scene)):
            yield "between_full_runs", {"S4": 0.8}


_KNOWN_WORK = (
    "reads_docs",
    "lists_inputs",
    "inspects_inputs",
    "loads_inputs",
    "installs_packages",
    "checks_environment",
    "imports_only",
    "prepares_folders",
    "obtains_weights",
    "loads_model",
    "builds",
    "runs_script",
    "reads_outputs",
    "writes_plan",
)
"""Facts that already say what a turn is for; executed code with none of them is taken for the work
itself."""


def _is_load_test(fact: TurnFeatures) -> bool:
    """One pass beside an environment check or a look at all inputs, or one of which only shapes are
    shown, asks whether model and data fit, not whether the result is right."""
    if fact.cases_scope not in ("one", "few") or fact.compares_candidates or fact.writes_outputs:
        return False
    if fact.cases_scope == "few":
        return fact.checks_environment and fact.inspects_shapes
    if fact.checks_environment or fact.inputs_scope == "all":
        return True
    if not (
        fact.loads_inputs
        or fact.cases
        or fact.has("applies_module", "runs_script", "reads_outputs")
    ):
        return True  # no case is in it: made-up values, or what came with the model
    return fact.inspects_shapes and not fact.inspects_values


def _tries_own_code(fact: TurnFeatures) -> bool:
    """Functions of the run's own module applied to the inputs of some cases: a pilot, whatever the
    method is."""
    if (
        fact.loads_model
        and fact.inspects_shapes
        and not fact.has("inspects_values", "stores_results")
    ):
        return False  # the model is loaded and inputs are brought into its shape
    return fact.applies_module and fact.loads_inputs and fact.inputs_scope in ("one", "few")


def _handover(scene: Scene) -> Iterator[Reason]:
    fact = scene.facts
    if fact.writes_report:
        yield "writes_report", {"S5": 3.0}
    if scene.place != "after":
        return
    if scene.stranded:
        # The last full run failed: until something is checked, this is still about getting it to
        # run.
        yield (
            "after_failed_full_run",
            {"S5": 1.0, "S4": 2.0 if scene.repairs and fact.module_only else 0.0},
        )
    elif not fact.has("installs_packages", "builds", "obtains_weights") and not _keeps_books(scene):
        # Nothing is run on everything again: what is looked at now is looked at to hand over.
        yield "after_last_full_run", {"S5": 3.0 if scene.benchmark else 2.0}
    if fact.checks_outputs:
        yield "checks_outputs", {"S5": 2.0}
    elif fact.reads_outputs:
        yield "reads_outputs", {"S5": 1.5}
