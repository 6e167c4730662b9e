"""The options of all commands: few, under headings, and each with one sentence of help."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from ambjudge.commands.grouped_help import HEADINGS, GroupedOption
from ambjudge.commands.path_types import LocalPath
from ambjudge.commands.registry import COMMANDS, commands
from ambjudge.config import SETTINGS

MOST_OPTIONS = 278
"""Visible options over all commands, without --help; there were 308."""


def leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """The commands that do something, by their full names."""
    if isinstance(command, click.Group):
        for below, subcommand in command.commands.items():
            yield from leaves(subcommand, f"{name} {below}")
    else:
        yield name, command


ALL = dict(pair for name in COMMANDS for pair in leaves(commands().get(name), name))


def visible(command: click.Command) -> list[click.Option]:
    return [
        param for param in command.params if isinstance(param, click.Option) and not param.hidden
    ]


def test_there_are_few_options() -> None:
    count = sum(len(visible(command)) for command in ALL.values())
    assert count <= MOST_OPTIONS


def test_run_time_options_are_settings_first() -> None:
    """An option of `score`, `rejudge` and `ask` that says how calls are made is a setting, and no
    other command has it as an option; a few say what the command itself does."""
    running = {
        option.name
        for option in visible(ALL["score"])
        if option.heading in ("Judge", "Running")  # type: ignore[attr-defined]
    }
    actions = {"judges", "max_cost", "stages", "diagnosis", "dry_run", "batch"}
    assert running - actions <= SETTINGS.keys()
    for name in ("rejudge", "ask"):
        assert running - {"stages", "diagnosis", "ask_all"} <= {
            option.name for option in visible(ALL[name])
        }
    for name in ALL.keys() - {"score", "rejudge", "ask"}:
        assert not (running - actions) & {option.name for option in visible(ALL[name])}, name


@pytest.mark.parametrize("name", ALL)
def test_every_option_has_a_heading_and_a_help_text(name: str) -> None:
    for option in visible(ALL[name]):
        assert isinstance(option, GroupedOption), option.name
        assert option.heading in HEADINGS
        assert (option.help or "").partition("  [")[0].endswith("."), option.name


@pytest.mark.parametrize("name", ALL)
def test_an_address_is_no_path_of_any_command(name: str) -> None:
    paths = [param.type for param in ALL[name].params if isinstance(param.type, click.Path)]
    assert all(isinstance(kind, LocalPath) for kind in paths)
