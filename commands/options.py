"""Options that several commands share, and how they become what the judge room takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

PATHS = click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")
JSON = click.option("--json", "as_json", is_flag=True, help="JSON on stdout (several runs: JSON Lines).")


def run_options(function: F) -> F:
    """--track, --tier, --rubric, --public: what to hold a run against."""
    for option in reversed(
        (
            click.option("--rubric", metavar="FILE|ID", help="Rubric file or id; default: the track's own."),
            click.option("--track", metavar="TRACK", help="Track, where the files do not say."),
            click.option(
                "--tier", type=click.Choice(["lite", "standard", "pro"]), help="Tier, where the files do not say."
            ),
            click.option(
                "--public", metavar="DIR", type=click.Path(), help="Public inputs: expected cases and reference shapes."
            ),
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
                help="Unscored stages: rescale the others (default), or count 0.",
            ),
            click.option(
                "--breach",
                type=click.Choice(["zero-all", "from-stage"]),
                help="Disqualified: all stages 0 (default), or from the breach on.",
            ),
            click.option(
                "--malformed",
                type=click.Choice(["formula", "zero"]),
                help="S5 of a malformed submission: its formula (default), or 0.",
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
                help="heuristic (default), a model, or local:PATH; several: a panel.",
            ),
            click.option("--api-base", metavar="URL", help="Server of the model, for OpenAI-compatible ones."),
            click.option("--temperature", type=float, help="Sampling temperature of a model judge."),
            click.option(
                "--samples", type=click.IntRange(1, 25), help="Ask a model judge so many times; the majority counts."
            ),
            click.option("--timeout", type=float, metavar="SECONDS", help="For one call of a model judge."),
            click.option(
                "--price",
                metavar="IN,OUT",
                help="USD per million tokens of a model that the price table does not know.",
            ),
        )
    ):
        function = option(function)
    return function
