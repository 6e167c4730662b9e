"""Options that several commands share, and how they become what the judge room takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

PATHS = click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")
STAGES_FROM = click.option(
    "--stages",
    type=click.Choice(["rules", "judge", "mixed"]),
    help="Who labels the turns; mixed: the judge where rules are unsure.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="JSON on stdout (several runs: JSON Lines).")


def run_options(function: F) -> F:
    """--rubric, --track, --tier, --public: what to hold a run against."""
    rubric = click.option("--rubric", metavar="FILE|ID", help="For the runs of its track. Default: the built-in one.")
    return rubric(known_options(function))


def known_options(function: F) -> F:
    """--track, --tier, --public: what is known of a run beside its files."""
    for option in reversed(
        (
            click.option("--track", metavar="TRACK", help="Where the files do not say."),
            click.option("--tier", type=click.Choice(["lite", "standard", "pro"]), help="Where the files do not say."),
            click.option("--public", metavar="DIR", type=click.Path(), help="Public inputs: cases, reference shapes."),
        )
    ):
        function = option(function)
    return function


def policy_options(function: F) -> F:
    """--missing, --breach, --malformed: choices that the numbers depend on."""
    for option in reversed(
        (
            click.option(
                "--missing",
                type=click.Choice(["renormalize", "zero"]),
                help="Unscored stages: left out (default) or 0.",
            ),
            click.option(
                "--breach",
                type=click.Choice(["zero-all", "from-stage"]),
                help="Zero all stages (default) or later ones.",
            ),
            click.option(
                "--malformed",
                type=click.Choice(["formula", "zero"]),
                help="S5 then: by formula (default) or 0.",
            ),
        )
    ):
        function = option(function)
    return function


def judge_options(function: F) -> F:
    """--judge and what a model judge takes."""
    for option in reversed(
        (
            click.option(
                "--judge",
                "judges",
                multiple=True,
                metavar="NAME",
                help="rules, a model, local:PATH; several: panel.",
            ),
            click.option("--api-base", metavar="URL", help="OpenAI-compatible server."),
            click.option("--temperature", type=float, help="Of a model judge."),
            click.option("--samples", type=click.IntRange(1, 25), help="Ask a model so often; the majority counts."),
            click.option("--timeout", type=float, metavar="SECONDS", help="For one call of a model."),
            click.option(
                "--price",
                metavar="IN,OUT…",
                help="USD per million tokens: in, out, cached.",
            ),
            click.option("--pictures", is_flag=True, default=None, help="Show it an output of each kind, too."),
        )
    ):
        function = option(function)
    return function


def question_options(function: F) -> F:
    """--stages and --no-diagnosis: what a judge that reads is asked beside the criteria."""
    for option in reversed(
        (
            STAGES_FROM,
            click.option(
                "--diagnosis/--no-diagnosis", default=None, help="Ask a model which codes apply.  [default: yes]"
            ),
        )
    ):
        function = option(function)
    return function


def reading_options(function: F) -> F:
    """A judge for commands that read runs without scoring them: the judge's options, --max-cost, --store."""
    for option in reversed(
        (
            click.option(
                "--max-cost", type=click.FloatRange(min=0), metavar="USD", help="Never spend more on a model."
            ),
            click.option("--store", metavar="FILE|none", help="Where a model's readings are kept."),
        )
    ):
        function = option(function)
    return judge_options(function)


def batch_options(function: F) -> F:
    """--batch and --wait: the provider's batch endpoint."""
    for option in reversed(
        (
            click.option("--batch", is_flag=True, help="Send as provider batches, or collect."),
            click.option("--wait", type=float, default=0.0, metavar="SECONDS", help="How long --batch waits."),
        )
    ):
        function = option(function)
    return function
