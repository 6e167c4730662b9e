"""Commands whose help lists the options under headings and ends with examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

HEADINGS = ("Options", "Judge", "Scores", "Running", "Output")
"""In the order in which the help shows them; an option without a heading stands under the first."""
_NAMES_AT_MOST = 30
"""Columns for the names of options; a longer name has a line of its own."""


class GroupedOption(click.Option):
    """An option that the help lists under a heading."""

    def __init__(self, *args: Any, heading: str = HEADINGS[0], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heading = heading

    def get_help_extra(self, ctx: click.Context) -> Any:
        """What click adds to the help text, without the range of a number."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


class GroupedCommand(click.Command):
    """A command whose help has one section for each heading of its options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections, their columns aligned with one another."""
        sections: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                sections[getattr(param, "heading", HEADINGS[0])].append(record)
        names = [name for rows in sections.values() for name, _ in rows]
        width = min(max(map(len, names)), _NAMES_AT_MOST)
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    padded = [(name.ljust(width), text) for name, text in rows]
                    formatter.write_dl(padded, col_max=_NAMES_AT_MOST)


class CommandGroup(click.Group):
    """A group whose commands are `GroupedCommand`s."""

    command_class = GroupedCommand


def option(
    *names: str, heading: str = HEADINGS[0], **attributes: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`click.option` for an option that the help lists under a heading."""
    return click.option(*names, cls=GroupedOption, heading=heading, **attributes)


def command(name: str, *examples: str) -> Callable[[Callable[..., Any]], GroupedCommand]:
    """`click.command` with grouped help that ends with the examples, one a line."""
    return click.command(name, cls=GroupedCommand, epilog=example_lines(*examples))


def example_lines(*examples: str) -> str:
    """The end of a help text: a heading and the examples, which click must not wrap."""
    heading = "Example:" if len(examples) == 1 else "Examples:"
    return "\n".join(["\b", heading, *(f"  {example}" for example in examples)])
