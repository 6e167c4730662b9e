"""The commands by name, each imported only when it is run."""

from __future__ import annotations

from functools import cache

import click

from ..plugins import Door

# name -> (module in commands/, one-line help). The help stands here so that `--help` imports no
# command.
# Packages add commands behind the door `commands`.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "Write thirty runs of two agents to try everything on."),
    "score": ("score", "Score runs: one conversation.json, a run folder, or a folder of runs."),
    "segment": ("segment", "Show which stage, S1 to S5, each turn of a run belongs to."),
    "codes": ("codes", "Show the error codes that fired, with the turns they rest on."),
    "rejudge": ("rejudge", "Bring stored verdicts up to date; judge only what changed."),
    "ask": (
        "ask",
        "Ask a model one question about every run: answers with turns and checked quotes.",
    ),
    "rubric": ("rubric", "List, show, compare and validate rubrics."),
    "analyze": (
        "analyze",
        "Tables, figures and a report: stages, codes, effects, cost, with intervals.",
    ),
    "leaderboard": (
        "leaderboard",
        "Rank agents overall, by track and by task, with intervals and rank ranges.",
    ),
    "compare": (
        "compare",
        "Two agents, releases, judges or rubrics: difference, interval, equivalence.",
    ),
    "plan": ("plan", "How many tasks, repeats and labels show a difference or a code's effect."),
    "agreement": ("agreement", "Judge against human labels, judge against judge."),
    "site": (
        "site",
        "Pages to share: runs, transcripts, verdicts and the report, without a server.",
    ),
    "simulate": ("simulate", "A cohort with planted truth, and the estimators checked on it."),
    "export": (
        "export",
        "Scorecards, criteria, codes, verdicts and labels as JSON Lines, CSV or Parquet.",
    ),
    "import": ("import_", "Runs of other formats to conversation.json, and back."),
    "verify": ("verify", "Recompute every number of a scorecard, without any model."),
    "label": ("label", "Human labels in and out, and what to label next."),
    "selftest": ("selftest", "Test a judge's robustness: changes with a known effect."),
    "browse": ("browse", "Read, search, compare and label runs in the terminal."),
    "doctor": ("doctor", "Show what is installed, which judges can be used, where the store is."),
}


@cache
def commands() -> Door[click.Command]:
    """Every command by name."""
    ours = {name: f"{__package__}.{module}:command" for name, (module, _) in COMMANDS.items()}
    return Door(
        "commands",
        "command",
        ours,
        lambda _, it: "" if isinstance(it, click.Command) else "it is no click.Command",
    )
