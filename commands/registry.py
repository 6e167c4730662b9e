"""The commands by name, each imported only when it is run."""

from __future__ import annotations

from functools import cache

import click

from ..plugins import Door

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "Write thirty constructed runs to try everything on."),
    "score": ("score", "Score a run, or every run below a folder."),
    "watch": ("watch", "Watch runs while agents work: codes as they fire, endings with scores."),
    "segment": ("segment", "Show the stage of every turn, and what each stage cost."),
    "codes": ("codes", "Show the error codes that fired, with their turns and reasons."),
    "search": ("search", "Find words or a pattern in the turns of runs."),
    "rejudge": ("rejudge", "Bring stored verdicts up to date by judging only what changed."),
    "changes": ("changes", "Show what changed between scorecards, and why."),
    "ask": ("ask", "Ask a model one question about every run."),
    "rubric": ("rubric", "List, show, compare and validate rubrics."),
    "tasks": ("tasks", "Show what tasks demand of their outputs, or read it in briefs."),
    "analyze": ("analyze", "Write tables, figures and a report, all with intervals."),
    "leaderboard": ("leaderboard", "Rank agents overall, by track and by task, with intervals."),
    "compare": ("compare", "Test the difference of two agents, releases, judges or rubrics."),
    "power": ("power", "Compute the tasks, repeats and labels that detect a difference."),
    "agreement": ("agreement", "Measure the agreement of a judge with people or other judges."),
    "site": ("site", "Write static pages to share: runs, verdicts, the report."),
    "simulate": ("simulate", "Write a cohort with planted truth, to check the estimators."),
    "export": ("export", "Export scorecards, verdicts and labels as tables."),
    "import": ("import_", "Turn runs of other formats into conversation.json, and back."),
    "verify": ("verify", "Recompute every number of a scorecard without any model."),
    "label": ("label", "Import and export human labels; choose runs to label."),
    "selftest": ("selftest", "Measure a judge's robustness, or its agreement with labels."),
    "store": ("store", "Look into the store, copy it, back it up or slim it."),
    "browse": ("browse", "Read, search, compare and label runs in the terminal."),
    "doctor": ("doctor", "Show what is installed, and which judges work."),
}
"""Name -> (module in commands/, help in one line). The help is here so that `ambjudge --help`
imports no command. Other packages add commands through the door `commands`."""


def _problem(_name: str, loaded: object) -> str:
    return "" if isinstance(loaded, click.Command) else "it is not a click.Command"


@cache
def commands() -> Door[click.Command]:
    """Every command by name."""
    targets = {name: f"{__package__}.{module}:command" for name, (module, _) in COMMANDS.items()}
    return Door("commands", "command", targets, _problem)
