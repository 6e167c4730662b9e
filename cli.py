"""The command line: a group that imports a command only when it is run, and one place where errors
become lines.

Commands live in `commands/`, one module each; they parse, call and print.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

import click

from .commands.path_types import LocalPath
from .commands.registry import COMMANDS, commands
from .console import LogFormatter, note, traceback_of
from .errors import AmbjudgeError
from .version import __version__

_EPILOG = """\b
Exit codes: 0 done; 1 finished, but something could not be scored or a check failed;
2 bad usage or unreadable input; 3 judge or provider unavailable; 130 interrupted.

\b
Example:
  ambjudge score runs/ --json > scorecards.jsonl
"""


class _ReaderLeftError(Exception):
    """A broken pipe under a name that click does not know: it would end with 1, which means
    something else here."""


def _in_the_group(command: click.Command) -> click.Command:
    """The command, all of whose paths are told from addresses, with the group's own options after
    its name too."""
    for param in command.params:
        if type(param.type) is click.Path:
            param.type.__class__ = LocalPath
    taken = {name for param in command.params for name in param.opts}
    command.params.extend(
        click.Option(
            [*shared.opts, shared.name or ""],
            is_flag=shared.is_flag,
            count=shared.count,
            type=shared.type,
            hidden=True,
            expose_value=False,
            callback=_also,
            default=None,
        )
        for shared in app.params
        if isinstance(shared, click.Option) and shared.expose_value and not taken & set(shared.opts)
    )
    if not taken & {"--version"}:
        command.params.append(
            click.Option(
                ["--version"],
                is_flag=True,
                is_eager=True,
                hidden=True,
                expose_value=False,
                callback=_version,
            )
        )
    if isinstance(command, click.Group):
        for below in command.commands.values():
            _in_the_group(below)
    return command


def _version(context: click.Context, option: click.Parameter, value: bool) -> None:
    """What `ambjudge --version` says, after the name of a command."""
    if value and not context.resilient_parsing:
        click.echo(f"ambjudge, version {__version__}")
        context.exit()


def _also(context: click.Context, option: click.Parameter, value: Any) -> None:
    """An option of the group that stood after the command's name."""
    if value:
        context.find_root().params[option.name or ""] = value
        _settle(context.find_root())


class LazyGroup(click.Group):
    """A group whose commands are imported when they are run, not when they are listed."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderLeftError from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(commands().names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _in_the_group(commands().get(cmd_name)) if cmd_name in commands().entries else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, COMMANDS[name][1] if name in COMMANDS else f"From {plugin}.")
                    for name, plugin in commands().entries.items()
                ]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in commands().entries and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], commands().names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "; see ambjudge --help"
            raise click.UsageError(f"no command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""For every command: click keeps the names of --help that a command meets first."""


@click.group(cls=LazyGroup, epilog=_EPILOG, context_settings=CONTEXT)
@click.version_option(__version__, "--version", prog_name="ambjudge")
@click.option("-v", "--verbose", count=True, help="More on stderr; twice: tracebacks of errors.")
@click.option("-q", "--quiet", is_flag=True, help="Only errors on stderr.")
@click.option(
    "--log-json", is_flag=True, help="Progress, notes and errors on stderr as JSON Lines."
)
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(),
    help="Settings to use instead of the ambjudge.toml found upward.",
)
@click.pass_context
def app(ctx: click.Context, /, **_options: Any) -> None:
    """Read what a research agent did, judge each stage, tag what went wrong.

    -v, -q, --log-json and --config stand before the command or after it.
    """
    import logging

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("ambjudge: %(levelname)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
    # Warnings of libraries are for who works on ambjudge: seen with -vv, through the same
    # formatter.
    logging.captureWarnings(True)
    ctx.obj = ctx.params
    _settle(ctx)


def _settle(ctx: click.Context) -> None:
    """What the options of the group say of messages."""
    import logging

    from . import console

    verbose = ctx.params["verbose"]
    console.as_json(ctx.params["log_json"])
    level = (
        logging.ERROR
        if ctx.params["quiet"]
        else (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    )
    logging.getLogger().setLevel(level)
    logging.getLogger("py.warnings").setLevel(logging.WARNING if verbose >= 2 else logging.CRITICAL)


def main(args: list[str] | None = None) -> None:
    """Entry point: run a command and leave with the exit code of the contract."""
    sys.exit(run(args))


def run(args: list[str] | None = None) -> int:
    """The exit code of one command line; errors go to stderr as one line each."""
    argv = sys.argv[1:] if args is None else args
    # Streams that the caller closed are None: what would go there goes nowhere.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")
    loud = (
        sum(a.count("v") for a in argv if a.startswith("-v") and set(a[1:]) == {"v"})
        + argv.count("--verbose")
        >= 2
    )
    try:
        result: Any = app.main(argv, prog_name="ambjudge", standalone_mode=False)
        code = result if isinstance(result, int) else 0
        sys.stdout.flush()
        return code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        where = (
            error.ctx.command_path
            if isinstance(error, click.UsageError) and error.ctx
            else "ambjudge"
        )
        return _complain(f"{where}: error: {error.format_message()}", 2)
    except AmbjudgeError as error:
        if loud:
            traceback_of(error)
        return _complain(f"ambjudge: error: {error}", error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _complain("ambjudge: interrupted; what was finished is kept", 130)
    except (BrokenPipeError, _ReaderLeftError):
        # The reader (head, less) went away: say nothing, and end as a program does that the broken
        # pipe killed.
        _forget_stdout()
        return 141
    except OSError as error:
        if loud:
            traceback_of(error)
        _forget_stdout()
        where = error.filename if error.filename is not None else "output"
        return _complain(
            f"ambjudge: error: {where}: {error.strerror or error} (check free space and"
            " permissions)",
            2,
        )
    except MemoryError:
        return _complain("ambjudge: error: not enough memory (give it less at a time)", 2)
    except Exception as error:
        if loud:
            traceback_of(error)
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        return _complain(
            f"ambjudge: internal error: {text} (run again with -vv for the traceback and"
            " report it)",
            2,
        )


def _forget_stdout() -> None:
    """What stdout still holds cannot be written: keep the interpreter from trying, and complaining,
    at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(text: str, code: int) -> int:
    """One line on stderr, whatever names and texts it quotes."""
    note(text)
    return code


if __name__ == "__main__":
    main()
