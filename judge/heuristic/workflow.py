"""S1 and S2 of the shared workflow, the rubric of runs whose track is unknown."""

from __future__ import annotations

import re

from ..scorecard import Evidence
from .names import candidates
from .plan import OUTPUT, STEP
from .setup import first
from .view import LOADS, READS_INPUT, Finding, View, met, unmet

_PATHS = re.compile(
    r"os\.path\.(?:exists|isfile|isdir)|\.exists\(|\.is_file\(|listdir|glob|\bls\b|\bfind\b|\btree\b|test -[efd]",
    re.IGNORECASE,
)


def task_understood(view: View) -> Finding:
    """S1a of the shared workflow: inputs or documents read before the work, and output and goal stated."""
    read = next(
        (
            s
            for s in view.steps
            if s.ok and s.turn < max(view.boundary, 2) and s.facts.has("reads_docs", "lists_inputs", "inspects_inputs")
        ),
        None,
    )
    stated = view.plan_quote(OUTPUT) or next(
        (
            q
            for t in view.run.turns[: min(view.boundary, 12)]
            if (q := view.quote(t.index, r"\b(?:task|goal|need to|asks?|objective|metric|output)\b", where="text"))
        ),
        None,
    )
    if read and stated:
        return met(view, "Inputs or documents were read and the task is stated.", view.any_line(read.turn), stated)
    return unmet(
        "No reading of brief or inputs before the work." if not read else "Goal and output are nowhere stated."
    )


def methods_researched(view: View) -> Finding:
    """S1b of the shared workflow: at least two methods weighed or tried before the choice."""
    found = candidates(view.notes)
    if len(found) >= 2:
        return met(view, f"{len(found)} methods are weighed in the plan.", view.notes_quote(found[0]))
    for step in view.before:
        if step.facts.compares_candidates:
            return met(view, "Variants were tried before the choice.", view.any_line(step.turn, "text code out"))
    for turn in view.run.turns[: min(view.boundary, 15)]:
        if len(candidates(turn.text)) >= 2:
            return met(view, "Methods are weighed in words.", view.any_line(turn.index, "text"))
    return unmet("No second method was looked into, weighed or tried.")


def plan_written(view: View) -> Finding:
    """S1c of the shared workflow: steps with outputs or checks, in a file, a planning tool or a message before the work."""
    check = re.compile(r"check|verif|valid|test|expect|assert|confirm", re.IGNORECASE)
    if view.plan and STEP.search(view.plan) and OUTPUT.search(view.plan) and check.search(view.plan):
        return met(view, "The plan gives steps, outputs and a check.", view.plan_quote(check))
    for turn in view.run.turns[: min(view.boundary, 8)]:
        todo = " ".join(str(a.arguments) for a in turn.actions if a.kind == "todo")
        for text, where in ((turn.text, "text"), (todo, "code")):
            if len(STEP.findall(text)) >= 3 and check.search(text) and OUTPUT.search(text):
                return met(
                    view,
                    "A message before the work gives steps, outputs and a check.",
                    view.quote(turn.index, check, where=where),
                )
        if todo and check.search(todo) and (quote := _todo_quote(view, turn.index, todo, check)):
            return met(view, "A planning tool lists steps with a check.", quote)
    return unmet("No plan with steps, expected outputs and a check, in a file or a message before the work.")


def _todo_quote(view: View, turn: int, text: str, pattern: re.Pattern[str]) -> Evidence | None:
    match = pattern.search(text)
    if match is None:
        return None
    for width in (60, 30, 10):
        found = view.index.check(turn, text[match.start() : match.start() + width].split("'")[0])
        if found.check == "verified":
            return found
    return None


def work_loaded(view: View) -> Finding:
    """S2b of the shared workflow: weights, data or services were loaded in a succeeded execution."""
    step = first(view, view.loads) or next(
        (s for s in view.steps if s.ok and (s.facts.loads_inputs or READS_INPUT.search(s.own))), None
    )
    if step is None:
        return unmet("No succeeded execution loads weights, data or a service.")
    return met(
        view,
        "Weights, data or services were loaded.",
        view.quote(step.turn, LOADS, READS_INPUT, where="code") or view.any_line(step.turn),
    )


def paths_verified(view: View) -> Finding:
    """S2c of the shared workflow: input or output places were listed, opened or tested before the full run."""
    for step in view.steps:
        if (
            step.ok
            and step.turn < view.boundary
            and (step.facts.has("lists_inputs", "inspects_inputs", "loads_inputs") or _PATHS.search(step.own))
        ):
            return met(
                view,
                "Places were listed or opened before the full run.",
                view.quote(step.turn, _PATHS, where="code") or view.any_line(step.turn),
            )
    for turn in view.run.turns[: view.boundary - 1]:
        if any(
            a.kind in ("read", "search") and a.observation is not None and a.observation.kind in ("ok", "unknown")
            for a in turn.actions
        ):
            return met(view, "Places were listed or opened before the full run.", view.any_line(turn.index))
    return unmet("No execution lists, opens or tests input or output places before the full run.")
