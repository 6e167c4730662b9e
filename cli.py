"""The command line: a group that imports a command only when it is run.

This is also the one place where errors become lines. Commands are modules of `commands/`; they
parse, call and print.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click

from .commands.grouped_help import example_lines
from .commands.path_types import LocalPath
from .commands.registry import COMMANDS, commands
from .console import LogFormatter, LogHandler, note, traceback_of
from .errors import AmbjudgeError
from .version import __version__

EXIT_CODES = """\b
Exit codes: 0 done; 1 finished, but something could not be scored or a check failed;
2 bad usage or unreadable input; 3 judge or provider unavailable; 130 interrupted.
"""
CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""For every command: click keeps the names of --help that a command meets first."""
_BROKEN_PIPE = 141
"""The exit code of a program that a broken pipe killed."""


class _BrokenPipeError(Exception):
    """A broken pipe under a name that click does not know.

    For its own broken pipe click would exit with 1, which means something else here.
    """


class LazyGroup(click.Group):
    """A group whose commands are imported when they are run, not when they are listed."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _BrokenPipeError from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(commands().names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in commands().entries:
            return None
        command = commands().get(cmd_name)
        _accept_global_options(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = []
        for name, plugin in commands().entries.items():
            text = COMMANDS[name][1] if name in COMMANDS else f"From {plugin}."
            rows.append((name, text))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in commands().entries and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], commands().names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "see ambjudge --help"
            raise click.UsageError(f"no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    epilog=f"{EXIT_CODES}\n{example_lines('ambjudge score runs/ --json > scorecards.jsonl')}",
    context_settings=CONTEXT,
)
@click.version_option(__version__, "--version", prog_name="ambjudge")
@click.option("-v", "--verbose", count=True, help="More on stderr; twice: tracebacks of errors.")
@click.option("-q", "--quiet", is_flag=True, help="Only errors on stderr.")
@click.option(
    "--log-json", is_flag=True, help="Progress, notes and errors on stderr as JSON Lines."
)
@click.option(
    "--config",
    metavar="FILE",
    type=LocalPath(),
    help="Use these settings instead of the ambjudge.toml found upward.",
)
@click.pass_context
def app(ctx: click.Context, /, **_options: Any) -> None:
    """Read what a research agent did, judge each stage, name what went wrong.

    -v, -q, --log-json and --config may stand before the command or after it.
    """
    import logging

    handler = LogHandler()
    handler.setFormatter(LogFormatter("ambjudge: %(levelname)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
    # Warnings of libraries concern people who work on ambjudge: -vv shows them, through the same
    # formatter.
    logging.captureWarnings(True)
    ctx.obj = ctx.params
    _apply_global_options(ctx)


# The group's own options


def _accept_global_options(command: click.Command) -> None:
    """Let a command and its subcommands take the group's options after their names too."""
    names = {name for param in command.params for name in param.opts}
    for shared in app.params:
        if not isinstance(shared, click.Option) or not shared.expose_value:
            continue
        if not names.intersection(shared.opts):
            command.params.append(_hidden_copy(shared))
    if "--version" not in names:
        command.params.append(
            click.Option(
                ["--version"],
                is_flag=True,
                is_eager=True,
                hidden=True,
                expose_value=False,
                callback=_print_version,
            )
        )
    if isinstance(command, click.Group):
        for subcommand in command.commands.values():
            _accept_global_options(subcommand)


def _hidden_copy(shared: click.Option) -> click.Option:
    """The option of the group for use after a command's name, where the help does not show it."""
    return click.Option(
        [*shared.opts, shared.name or ""],
        is_flag=shared.is_flag,
        count=shared.count,
        type=shared.type,
        hidden=True,
        expose_value=False,
        callback=_set_global_option,
        default=None,
    )


def _print_version(context: click.Context, _option: click.Parameter, is_given: bool) -> None:
    if is_given and not context.resilient_parsing:
        click.echo(f"ambjudge, version {__version__}")
        context.exit()


def _set_global_option(context: click.Context, option: click.Parameter, value: Any) -> None:
    """Use a group's option that was given after the command's name."""
    if value:
        root = context.find_root()
        root.params[option.name or ""] = value
        _apply_global_options(root)


def _apply_global_options(ctx: click.Context) -> None:
    """Set what is logged and in which form."""
    import logging

    from . import console

    verbosity = ctx.params["verbose"]
    console.as_json(ctx.params["log_json"])
    if ctx.params["quiet"]:
        level = logging.ERROR
    elif verbosity == 0:
        level = logging.WARNING
    else:
        level = logging.INFO if verbosity == 1 else logging.DEBUG
    logging.getLogger().setLevel(level)
    warnings_level = logging.WARNING if verbosity >= 2 else logging.CRITICAL
    logging.getLogger("py.warnings").setLevel(warnings_level)


# Running a command line


def main(args: list[str] | None = None) -> None:
    """Entry point: run a command and leave with its exit code."""
    sys.exit(run(args))


def run(args: list[str] | None = None) -> int:
    """Run one command line; the exit code. Errors go to stderr as one line each."""
    args = sys.argv[1:] if args is None else args
    # Streams that the caller closed are None: what would go there is dropped.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        result: Any = app.main(args, prog_name="ambjudge", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except (BrokenPipeError, _BrokenPipeError):
        # The reader (head, less) is gone: say nothing.
        _discard_stdout()
        return _BROKEN_PIPE
    except (Exception, KeyboardInterrupt) as error:
        is_usual = isinstance(error, click.ClickException | click.Abort | KeyboardInterrupt)
        if _wants_traceback(args) and not is_usual:
            traceback_of(error)
        return _report(error)


def _wants_traceback(args: Sequence[str]) -> bool:
    """Whether the arguments hold -vv, which must be known before they are parsed."""
    count = args.count("--verbose")
    for arg in args:
        if arg.startswith("-v") and set(arg[1:]) == {"v"}:
            count += arg.count("v")
    return count >= 2


def _report(error: BaseException) -> int:
    """Print an error as one line; the exit code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return 2
    if isinstance(error, click.ClickException):
        context = error.ctx if isinstance(error, click.UsageError) else None
        command = context.command_path if context else "ambjudge"
        note(f"{command}: error: {error.format_message()}")
        return 2
    if isinstance(error, AmbjudgeError):
        note(f"ambjudge: error: {error}")
        return error.exit_code
    if isinstance(error, KeyboardInterrupt | click.Abort):
        note("ambjudge: interrupted; finished results are kept")
        return 130
    if isinstance(error, OSError):
        _discard_stdout()
        place = error.filename if error.filename is not None else "output"
        reason = error.strerror or error
        note(f"ambjudge: error: {place}: {reason} (check free space and permissions)")
        return 2
    if isinstance(error, MemoryError):
        note("ambjudge: error: not enough memory (give it less at a time)")
        return 2
    text = f"{type(error).__name__}: {error}".splitlines()[0]
    note(f"ambjudge: internal error: {text} (run again with -vv for the traceback and report it)")
    return 2


def _discard_stdout() -> None:
    """Drop the text that stdout still buffers because it cannot be written.

    The interpreter would try to write it at exit, and complain.
    """
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
