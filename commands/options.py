"""Options that several commands share; `sessions` and `campaign` turn their values into objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from .grouped_help import option
from .path_types import LocalPath, PathOrAddress

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[F], F]


def combined(*decorators: Decorator[Any]) -> Decorator[Any]:
    """Several options as one decorator; the help lists them in this order."""

    def decorate(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


# Arguments

PATHS = click.argument("paths", nargs=-1, required=True, type=LocalPath(), metavar="PATH...")
PATHS_OR_ADDRESSES = click.argument(
    "paths", nargs=-1, required=True, type=PathOrAddress(), metavar="PATH|URL..."
)
OPTIONAL_PATHS = click.argument("paths", nargs=-1, type=LocalPath(), metavar="[PATH]...")


# Output


def json_option(text: str = "Print JSON.") -> Decorator[Any]:
    """--json, as `as_json`."""
    return option("--json", "as_json", heading="Output", is_flag=True, help=text)


JSON = json_option("Print JSON; of several runs, JSON Lines.")


# What runs are scored against


def tier_option(text: str) -> Decorator[Any]:
    """--tier."""
    return option(
        "--tier", heading="Scores", type=click.Choice(["lite", "standard", "pro"]), help=text
    )


STORE = option(
    "--store",
    heading="Scores",
    metavar="FILE|URL|none",
    help="Keep verdicts here.  [.ambjudge/ambjudge.db]",
)
RUBRIC = option(
    "--rubric",
    heading="Scores",
    multiple=True,
    metavar="FILE|DIR|ID",
    help="Judge runs of its track by it; repeatable.",
)
WHERE = option(
    "--where",
    heading="Scores",
    metavar="FILTER",
    help="Only runs that match, as 'tier:lite S3<0.5'.",
)
RUNNING = option(
    "--running/--finished",
    heading="Scores",
    default=None,
    help="Runs without an end go on, or not.  [by age]",
)
AGAIN = option(
    "--again",
    heading="Scores",
    is_flag=True,
    help="Ask what has a verdict too; both are kept.",
)
selection_options = combined(
    WHERE,
    option(
        "--criteria",
        heading="Scores",
        metavar="S2b,E3",
        help="Ask only these criteria, codes or stages.",
    ),
    option(
        "--disagree",
        heading="Scores",
        metavar="A,B",
        help="Ask only what these two judges differ on.",
    ),
    option(
        "--below-confidence",
        heading="Scores",
        type=click.FloatRange(0, 1, min_open=True),
        metavar="X",
        help="Ask only what is less sure than this.",
    ),
    AGAIN,
)
"""Which runs are meant, and which items of them are asked."""
POLICY = option(
    "--policy",
    heading="Scores",
    metavar="paper|harness|FILE",
    help="Score by these rules.  [paper]",
)
run_facts_options = combined(
    option(
        "--track",
        heading="Scores",
        metavar="TRACK",
        help="Of runs that name none; selects no runs.",
    ),
    tier_option("Of runs that name none; selects no runs."),
    option(
        "--public",
        heading="Scores",
        metavar="DIR",
        type=LocalPath(),
        help="Public inputs: expected cases and shapes.",
    ),
)
"""Facts about a run that its files may lack."""


# The judge

JUDGE = option(
    "--judge",
    "judges",
    heading="Judge",
    multiple=True,
    metavar="NAME",
    help="Repeatable: rules, reported, MODEL, local:DIR.",
)
MAX_COST = option(
    "--max-cost",
    heading="Judge",
    type=click.FloatRange(min=0),
    metavar="USD",
    help="Spend no more; the rest stays unscored.",
)
MAX_COST_MONTH = option(
    "--max-cost-month",
    heading="Judge",
    type=click.FloatRange(min=0),
    metavar="USD",
    help="Spend no more a month, all commands together.",
)
STAGES_FROM = option(
    "--stages",
    heading="Judge",
    type=click.Choice(["rules", "judge", "mixed"]),
    help="Who labels the turns; mixed: judge if unsure.",
)
DIAGNOSIS = option(
    "--diagnosis/--no-diagnosis",
    heading="Judge",
    default=None,
    help="Ask a model for error codes too.  [yes]",
)
ASK_ALL = option(
    "--ask-all/--no-ask-all",
    heading="Judge",
    default=None,
    help="Ask a model what facts decide too.  [no]",
)
model_options = combined(
    option(
        "--api-base", heading="Judge", metavar="URL", help="Call this OpenAI-compatible server."
    ),
    option(
        "--temperature",
        heading="Judge",
        type=float,
        metavar="T",
        help="Sampling temperature of a model judge.",
    ),
    option(
        "--samples",
        heading="Judge",
        type=click.IntRange(1, 25),
        metavar="N",
        help="Ask a model N times; the majority counts.",
    ),
    option(
        "--timeout",
        heading="Judge",
        type=float,
        metavar="SECONDS",
        help="Give up on a call after this time.",
    ),
    option(
        "--price",
        heading="Judge",
        metavar="IN,OUT…",
        help="USD per million tokens: in, out, cached.",
    ),
)
"""What a model judge takes; other commands read these from the settings."""


# How the calls of a campaign are made

DRY_RUN = option(
    "--dry-run",
    heading="Running",
    is_flag=True,
    help="Only forecast the calls and their cost.",
)
running_options = combined(
    DRY_RUN,
    option(
        "--batch",
        heading="Running",
        is_flag=True,
        help="Send to the provider's batches, or collect.",
    ),
    option(
        "--wait",
        heading="Running",
        type=float,
        metavar="SECONDS",
        help="Wait this long for a batch.  [0]",
    ),
    option(
        "--concurrency",
        heading="Running",
        type=click.IntRange(1, 1000),
        metavar="N",
        help="Make N calls at the same time.  [8]",
    ),
    option(
        "--calls-per-minute",
        heading="Running",
        type=click.FloatRange(min=0, min_open=True),
        metavar="N",
        help="Start at most N calls a minute.",
    ),
    option(
        "--tokens-per-minute",
        heading="Running",
        type=click.FloatRange(min=0, min_open=True),
        metavar="N",
        help="Use at most N tokens a minute.",
    ),
    option(
        "--workers",
        heading="Running",
        type=click.IntRange(1, 256),
        metavar="N",
        help="Spread the runs over N processes.  [1]",
    ),
    option(
        "--engine",
        heading="Running",
        type=click.Choice(["processes", "ray"]),
        help="Run the workers on this.  [processes]",
    ),
    option(
        "--address",
        heading="Running",
        metavar="ADDR",
        help="Address of the Ray cluster.  [a new one here]",
    ),
    option(
        "--shard",
        heading="Running",
        metavar="I/N",
        help="Take part I of N; write it below --out.",
    ),
)
"""Every one of these is a setting too."""
campaign_options = combined(JUDGE, model_options, MAX_COST, MAX_COST_MONTH, running_options)
"""The options that `score`, `rejudge` and `ask` share."""


# Cohorts


def _outcome_column(_context: click.Context, _option: click.Parameter, name: str) -> str:
    from ..analysis.tables.score_names import outcome_column

    return outcome_column(name)


OUTCOME = option(
    "--outcome",
    callback=_outcome_column,
    default="overall",
    metavar="NAME",
    help=(
        "Analyse overall, agentic, task_score, S1 to S5, turns, time, tokens, cost, or an outcome"
        " that came with the runs."
        "  [overall]"
    ),
)


def _refuse_judge(_context: click.Context, _option: click.Parameter, name: str | None) -> None:
    if name is not None:
        raise click.UsageError(
            f"this command judges nothing, so --judge has no effect: --judged-by {name} selects the"
            " scorecards of one judge"
        )


JUDGED_BY = combined(
    option(
        "--judged-by",
        "judge",
        heading="Scores",
        metavar="NAME",
        help="Use the scorecards of this judge.  [the one of most runs]",
    ),
    click.option("--judge", "_judge", hidden=True, expose_value=False, callback=_refuse_judge),
)
"""--judged-by, as `judge`: whose scorecards are used. `--judge` is refused with a hint."""
RUBRIC_OF_CARDS = option(
    "--rubric",
    heading="Scores",
    metavar="FILE|ID[@VERSION]",
    help="Use the scorecards by this rubric.  [the newest]",
)
cohort_options = combined(
    WHERE,
    JUDGED_BY,
    RUBRIC_OF_CARDS,
    POLICY,
    STORE,
)
"""Which runs and scorecards make the cohort, and how runs without a scorecard are scored."""
