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
"""The name of a reason and its weight for each stage; each stage with a weight gets one signal."""

_COMPARES = re.compile(r"\b(?:diff|cmp|md5sum|sha\d{0,3}sum|filecmp|array_equal|md5|sha256)\b")
_CHANGES = re.compile(r"\b(?:sed|perl) -\w{0,4}i\b|\.replace\(")


@dataclass(frozen=True)
class TurnContext:
    """One turn, with what its signals depend on in the run around it."""

    turn: Turn
    facts: TurnFeatures
    place: Place
    """Position relative to the full runs: before the first, up to the last, or after the last."""
    position: float
    """0 for the first turn, 1 for the last; turns that only ask for the machine's state do not
    count."""
    planned: bool
    """Whether a plan.md was written by now."""
    tested: bool
    """Whether a model ran, or an output was written, in an earlier turn."""
    repairs: bool
    """Whether the turn rewrites a script that was run before."""
    stranded: bool
    """Whether the last full run before this turn failed and none follows."""
    full_run: bool
    """Whether the turn itself runs over everything, or tries to."""
    overdue_plan: bool
    """Whether the turn writes the run's first plan after the last full run."""
    benchmark: bool
    """Whether the track's deliverables are known; otherwise scripts and training mark the main
    run."""


def turn_contexts(run: Run, facts: Sequence[TurnFeatures]) -> list[TurnContext]:
    """Place every turn in its run, relative to the full runs."""
    benchmark = run.track is not None
    full = _benchmark_full_runs(run.turns, facts) if benchmark else _main_runs(facts)
    full_indices = [index for index, is_full in enumerate(full) if is_full]
    first = full_indices[0] if full_indices else len(full)
    last = full_indices[-1] if full_indices else len(full)
    last_counted = max(1, sum(not fact.asks_machine for fact in facts) - 1)
    contexts: list[TurnContext] = []
    planned = tested = False
    scripts_run: set[str] = set()
    counted = 0
    for index, (turn, fact) in enumerate(zip(run.turns, facts, strict=True)):
        place = _place(index, first, last)
        first_plan = fact.writes_plan and not planned
        planned = planned or fact.writes_plan
        contexts.append(
            TurnContext(
                turn=turn,
                facts=fact,
                place=place,
                position=min(1.0, counted / last_counted),
                planned=planned,
                tested=tested,
                repairs=not scripts_run.isdisjoint(map(_file_name, fact.written_paths)),
                stranded=place == "after" and facts[last].failed,
                full_run=full[index],
                overdue_plan=place == "after" and first_plan,
                benchmark=benchmark,
            )
        )
        tested = tested or fact.forward_pass or fact.writes_outputs
        scripts_run.update(map(_file_name, fact.run_paths))
        counted += not fact.asks_machine
    return contexts


def _place(index: int, first: int, last: int) -> Place:
    if index < first:
        return "before"
    return "during" if index <= last else "after"


def _file_name(path: str) -> str:
    return PurePosixPath(path).name


def _benchmark_full_runs(turns: Sequence[Turn], facts: Sequence[TurnFeatures]) -> list[bool]:
    """Full runs of a run whose deliverables are known.

    If no output was seen being written, applying the model to every case is the full run.
    """
    full = _output_runs(turns, facts)
    if any(full):
        return full
    full = [fact.forward_pass and fact.cases_scope == "all" for fact in facts]
    storing = [is_full and f.stores_results for is_full, f in zip(full, facts, strict=True)]
    return storing if any(storing) else full


def _output_runs(turns: Sequence[Turn], facts: Sequence[TurnFeatures]) -> list[bool]:
    """Turns that write outputs for all cases, or what amounts to it.

    Half of the cases count if no run over all follows (a batch in two parts); any case that the
    model is applied to counts once there was a full run (resuming, repairing).
    """
    complete: list[bool] = []
    for turn, fact in zip(turns, facts, strict=True):
        over_all = fact.writes_outputs and fact.cases_scope == "all"
        complete.append(over_all and not (any(complete) and _repeats_to_compare(turn, fact)))
    last = max((index for index, is_complete in enumerate(complete) if is_complete), default=-1)
    full: list[bool] = []
    for index, (turn, fact) in enumerate(zip(turns, facts, strict=True)):
        half = index > last and fact.cases_scope == "few" and (fact.cases_share or 0) >= 0.5
        repair = (
            index > last and any(full) and fact.forward_pass and not _repeats_to_compare(turn, fact)
        )
        full.append(complete[index] or (fact.writes_outputs and (half or repair)))
    return full


def _repeats_to_compare(turn: Turn, fact: TurnFeatures) -> bool:
    """Whether everything runs once more, unchanged, to be compared with the existing files."""
    changed = fact.writes_module or fact.writes_plan or bool(_CHANGES.search(turn.code))
    return bool(not changed and _COMPARES.search(turn.code))


def _main_runs(facts: Sequence[TurnFeatures]) -> list[bool]:
    """Full runs of a run without a set of cases.

    If any turn trains or writes a file that the brief names, only such turns count. A script much
    shorter than the longest one tidies up after it and does not count.
    """
    main = [_is_main_run(fact) for fact in facts]
    productive = [
        is_main and (fact.training or fact.writes_outputs)
        for is_main, fact in zip(main, facts, strict=True)
    ]
    main = productive if any(productive) else main
    longest = max(
        (fact.run_lines for is_main, fact in zip(main, facts, strict=True) if is_main), default=0
    )
    return [
        is_main and (not fact.run_lines or fact.training or fact.run_lines * 5 >= longest)
        for is_main, fact in zip(main, facts, strict=True)
    ]


def _is_main_run(fact: TurnFeatures) -> bool:
    """Whether a turn trains, writes a file that the brief names, or starts its own program.

    A program that only looks at data, only loads a model, or tests is none.
    """
    if not fact.executed or fact.runs_tests:
        return False
    if fact.training or (fact.writes_outputs and fact.cases_scope != "none"):
        return True
    looks = fact.loads_inputs and not fact.has("writes_files", "forward_pass")
    prepares = fact.loads_model and not fact.forward_pass
    return bool(fact.run_paths) and not looks and not prepares


def turn_signals(context: TurnContext) -> tuple[Signal, ...]:
    """All signals of one turn, each with the line or words that it rests on, if any."""
    return tuple(
        Signal(name=name, stage=stage, weight=weights[stage], quote=_quote(name, context))
        for name, weights in _reasons(context)
        for stage in STAGES
        if weights.get(stage)
    )


def _quote(name: str, context: TurnContext) -> str:
    quote = context.facts.quotes.get(name, "")
    if not quote and name in ("closing_message", "message_only"):
        return context.turn.text.strip()[-160:]
    return quote


def _reasons(context: TurnContext) -> Iterator[Reason]:
    fact = context.facts
    if context.position < 0.15:
        yield "early", {"S1": 1.0}  # position alone is weak, but runs begin with reading
    if fact.submits:
        yield "submits", {"S5": 6.0}
    if fact.closing_message:
        yield "closing_message", {"S5": 5.0}
        return
    if fact.todo_only:
        # A to-do list is planning; the one that ticks off its last item closes the work.
        closes = fact.todo_done and context.place != "during" and context.position > 0.5
        yield "todo_only", {"S5": 3.0} if closes else {"S1": 4.0}
        return
    if fact.message_only:
        yield "message_only", _message_weights(context)
    yield from _planning(context)
    yield from _setup(context)
    yield from _work(context)
    yield from _handover(context)


def _message_weights(context: TurnContext) -> dict[Stage, float]:
    """Words without an action are mostly planning; once the work has begun they are about it."""
    if context.benchmark and context.place == "after":
        return {"S5": 1.5}
    begun = context.benchmark and context.planned and context.tested
    return {"S1": 0.3 if begun else 2.0}


def _planning(context: TurnContext) -> Iterator[Reason]:
    fact = context.facts
    if fact.writes_plan:
        yield from _plan_writing(context)
    if fact.writes_plan_image:
        yield "writes_plan_image", {"S1": _plan_image_weight(context)}
    if context.place != "before":
        return
    if fact.reads_docs and not fact.module_only:
        yield "reads_docs", {"S1": 1.5}
    if fact.lists_inputs and not fact.has("forward_pass", "loads_model"):
        yield "lists_inputs", {"S1": 0.8}
    checks_pilot = context.tested and fact.reads_outputs
    if fact.inspects_inputs and not (fact.forward_pass or checks_pilot):
        yield "inspects_inputs", _inspection_weights(context)


def _plan_writing(context: TurnContext) -> Iterator[Reason]:
    """Reasons of a turn that writes the plan; in a mixed turn the larger part decides."""
    fact = context.facts
    works = fact.has("forward_pass", "loads_model", "loads_inputs", "writes_module")
    if context.overdue_plan and not (works or fact.checks_outputs):
        yield "writes_plan", {"S1": 9.5}
    elif _keeps_books(context):
        yield "writes_plan", {"S1": 4.5}
    elif context.place == "after":
        closes = fact.reads_outputs or context.position > 0.75
        yield "writes_plan", {"S1": 1.5, "S5": 1.5 if closes else 0.0}
    elif _mostly_module(fact):
        tried = fact.forward_pass and not fact.dummy_forward and fact.cases_scope in ("one", "few")
        yield "writes_plan", {"S1": 0.5}
        yield "mostly_module", {"S3" if tried else "S2": 1.5}
    elif works or fact.installs_packages:
        yield "writes_plan", {"S1": 1.0 + 3.0 * _plan_share(fact)}
    else:
        yield "writes_plan", {"S1": 4.5}


def _plan_image_weight(context: TurnContext) -> float:
    fact = context.facts
    if context.place == "after" and _keeps_books(context):
        return 5.0
    # Beside a pipeline that is written and run on a case, the figure is the smaller part.
    pipeline = fact.writes_module and fact.has("forward_pass", "writes_outputs")
    beside = pipeline and not fact.drawing_lines
    return 1.0 if beside or _mostly_module(fact) else 2.0


def _inspection_weights(context: TurnContext) -> dict[Stage, float]:
    """Data are explored for the task before the plan, for the model's sake after it.

    After a pilot, a result is compared with the inputs of its own cases, while all inputs are
    examined for the pipeline's sake.
    """
    fact = context.facts
    if context.benchmark and context.tested:
        single = fact.inputs_scope in ("one", "few")
        return {"S3": 1.0, "S2": 0.8} if single else {"S2": 2.0, "S3": 0.8}
    if context.benchmark and context.planned and not fact.writes_plan:
        return {"S2": 2.0}
    return {"S2": 1.5, "S1": 0.5} if context.planned else {"S1": 2.0}


def _mostly_module(fact: TurnFeatures) -> bool:
    """Whether a pipeline takes three quarters or more of the lines beside a plan."""
    return fact.writes_plan and fact.writes_module and _plan_share(fact) <= 0.25


def _plan_share(fact: TurnFeatures) -> float:
    """The plan's share of the lines that a turn writes and executes, in [0, 1]."""
    lines = fact.plan_lines + fact.code_lines + fact.module_lines
    drawing = fact.drawing_lines if fact.writes_plan_image else 0
    return (fact.plan_lines + drawing) / max(1, lines)


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
"""Facts that a turn has none of if it only draws the plan."""


def _keeps_books(context: TurnContext) -> bool:
    """Whether results are noted in the plan after the work, with the hand-over still to come.

    A plan that is written only now counts too.
    """
    fact = context.facts
    if context.place != "after":
        return False
    if fact.writes_plan_image and not fact.has("writes_plan", *_OTHER_WORK):
        return not fact.submits
    before_handover = context.position <= 0.75 or not fact.revises_plan
    only_plan = fact.writes_plan and not fact.reads_outputs and _plan_share(fact) > 0.5
    return before_handover and only_plan


def _setup(context: TurnContext) -> Iterator[Reason]:
    fact, before = context.facts, context.place == "before"
    if fact.installs_packages:
        # A line of installation beside a plan of many: the larger part of the code decides.
        plan_share = _plan_share(fact) if fact.writes_plan else 0.0
        weight = 4.5 if plan_share <= 0.5 else 1.0 + 3.0 * (1 - plan_share)
        yield "installs_packages", {"S2": weight}
    if fact.obtains_weights:
        yield "obtains_weights", {"S2": 3.0}
    if fact.builds:
        yield "builds", {"S2": 3.0}
    if fact.checks_environment and not context.full_run:
        yield (
            "checks_environment",
            {"S2": 1.5 if fact.has("inspects_inputs", "reads_docs") else 3.0},
        )
    if fact.prepares_folders:
        yield "prepares_folders", {"S2": 3.0}
    if fact.dummy_forward:
        yield "dummy_forward", {"S2": 2.5}
    applied = (fact.forward_pass and not fact.dummy_forward) or fact.writes_outputs
    if before and fact.loads_model and not (applied or _tries_own_code(fact)):
        yield "loads_model", {"S2": 2.2}
    elif before and fact.looks_at_weights:
        yield "looks_at_weights", {"S2": 1.5}
    if before and fact.module_only:
        explores = fact.module_looks and not context.benchmark
        yield "module_only", {"S1": 3.0, "S2": 1.5} if explores else {"S2": 4.0}
    elif before and context.planned and _only_loads_inputs(fact):
        # After a pilot, single inputs are opened to see whether its results are right.
        checks_pilot = context.tested and fact.inputs_scope in ("one", "few")
        yield "loads_inputs", {"S3": 1.0} if checks_pilot else {"S2": 2.0}
    if context.place == "during" and fact.module_only and not context.repairs:
        yield "module_only", {"S2": 1.5}


def _only_loads_inputs(fact: TurnFeatures) -> bool:
    further = fact.has("inspects_inputs", "forward_pass", "writes_outputs")
    return fact.loads_inputs and not further and not _tries_own_code(fact)


def _work(context: TurnContext) -> Iterator[Reason]:
    """Running the model: on a few cases it is validation, over everything it is inference."""
    fact, place = context.facts, context.place
    if context.full_run:
        yield "full_run", {"S4": 4.5}
        return
    if fact.watches_progress:
        # Before any full run it is an installation or a download that is waited for.
        yield "watches_progress", {"S2": 1.5} if place == "before" else {"S4": 4.0}
    if place == "after":
        return
    applied = fact.has("forward_pass", "writes_outputs")
    if fact.writes_outputs:
        yield "writes_outputs", {"S3": 2.0} if place == "before" else {"S4": 2.0, "S3": 1.0}
    elif fact.forward_pass and not fact.dummy_forward:
        if _is_load_test(fact):
            yield "load_test", {"S2": 3.6 if fact.loads_model else 2.6, "S3": 1.0}
        else:
            yield "forward_pass", {"S3": 3.0 if place == "during" else 2.2}
    if context.benchmark and _tries_own_code(fact) and not applied:
        yield "tries_own_code", {"S3": 3.0 if place == "during" else 2.2}
    if not context.benchmark and fact.executed and not fact.has(*_RECOGNISED_WORK):
        yield "works_in_cells", {"S4": 1.0}
    if place == "during" and fact.loads_inputs and fact.inspects_values and not fact.reads_outputs:
        yield "inspects_values", {"S3": 1.5}  # single results are validated between full runs


_RECOGNISED_WORK = (
    "reads_docs",
    "lists_inputs",
    "inspects_inputs",
    "loads_inputs",
    "installs_packages",
    "checks_environment",
    "prepares_folders",
    "obtains_weights",
    "loads_model",
    "builds",
    "runs_script",
    "reads_outputs",
    "writes_plan",
)
"""Facts that already say what a turn is for; other executed code is taken for the work itself."""


def _is_load_test(fact: TurnFeatures) -> bool:
    """Whether a forward pass asks if model and data fit, not if the result is right.

    So does a pass beside an environment check or a look at all inputs, one without a case, and one
    of whose result only shapes are printed.
    """
    if fact.cases_scope == "few":
        return fact.checks_environment and fact.inspects_shapes
    if fact.cases_scope != "one":
        return False
    if fact.checks_environment or fact.inputs_scope == "all":
        return True
    uses_case = fact.has("loads_inputs", "applies_module", "runs_script", "reads_outputs")
    if not (uses_case or fact.cases):
        return True  # made-up values, or an example that came with the model
    return fact.inspects_shapes and not fact.inspects_values


def _tries_own_code(fact: TurnFeatures) -> bool:
    """Whether functions of the run's own module are applied to the inputs of some cases.

    That is a pilot, whatever the method is.
    """
    further = fact.has("inspects_values", "stores_results")
    if fact.loads_model and fact.inspects_shapes and not further:
        return False  # the model is loaded, and inputs are brought into its shape
    return fact.applies_module and fact.loads_inputs and fact.inputs_scope in ("one", "few")


def _handover(context: TurnContext) -> Iterator[Reason]:
    fact = context.facts
    if fact.writes_report:
        yield "writes_report", {"S5": 3.0}
    if context.place != "after":
        return
    prepares = fact.has("installs_packages", "builds", "obtains_weights")
    if context.stranded:
        # The last full run failed: until something is checked, the turn still tries to get it
        # through.
        retries = context.repairs and fact.module_only
        yield "after_failed_full_run", {"S5": 1.0, "S4": 2.0 if retries else 0.0}
    elif not (prepares or _keeps_books(context)):
        # Nothing runs over everything again: later looks serve the hand-over.
        yield "after_last_full_run", {"S5": 3.0 if context.benchmark else 2.0}
