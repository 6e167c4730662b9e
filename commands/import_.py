"""ambjudge import: runs of other formats to conversation.json, and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import InputError
from ..trajectories.exporters import EXPORTERS
from ..trajectories.importers import IMPORTERS
from .options import tier_option

if TYPE_CHECKING:
    from ..trajectories.importers.draft import Draft


@click.command(
    "import",
    epilog="\b\nExamples:\n  ambjudge import inspect logs/ --out runs/ --task kidney-seg-task --tier lite\n"
    "  ambjudge import conversation runs/ --to openai --out chats/",
)
@click.argument("format", type=click.Choice(IMPORTERS.names), metavar="FORMAT")
@click.argument("sources", nargs=-1, required=True, type=click.Path(), metavar="SOURCE...")
@click.option("--out", required=True, metavar="DIR", type=click.Path(), help="Where the runs go: DIR/<run>/process/.")
@click.option("--to", type=click.Choice(EXPORTERS.names), help="Write this format instead: DIR/<run>.json.")
@click.option("--agent", metavar="NAME", help="The agent, whatever the source says.")
@click.option("--model", metavar="NAME", help="The model, likewise.")
@click.option("--task", metavar="NAME", help="The task, likewise.")
@tier_option("The tier, likewise.")
@click.option("--force", is_flag=True, help="Write over runs that are already there.")
@click.pass_obj
def command(obj: dict[str, Any], /, format: str, sources: tuple[str, ...], **flags: Any) -> int:
    """Turn recorded runs of other formats into run folders, from files or folders.

    FORMAT: openai, anthropic (transcripts), inspect, swe-agent, openhands, claude-code, or conversation (with --to).
    Texts stay as they are; what a source does not say stays unknown, and what could not be carried over is named.
    """
    return run(obj, format, sources, flags)


def run(obj: dict[str, Any], format: str, sources: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 when something could not be imported; 2 when nothing could."""
    if format == "conversation" and not flags["to"]:
        raise click.UsageError("conversation.json needs --to FORMAT")
    from ..trajectories.importers.saving import Names

    names = Names()
    done = failed = 0
    for path, item in _drafts(format, sources):
        try:
            if isinstance(item, InputError):
                raise item
            _write(item, names.name(item.name), path, flags, obj["quiet"])
            done += 1
        except InputError as error:
            failed += 1
            console.error(error)
    console.note(f"{done} run{'' if done == 1 else 's'} imported" + (f", {failed} not" if failed else ""), obj["quiet"])
    return (1 if done else 2) if failed else 0


def _drafts(format: str, sources: tuple[str, ...]) -> Iterator[tuple[Path, Draft | InputError]]:
    """Every run of every source, each with its file; what cannot be read comes as its error, and the rest goes on."""
    from ..trajectories.importers.files import source_files
    from ..trajectories.layout import find_conversations

    chosen = IMPORTERS.get(format)
    for source in map(Path, sources):
        try:
            for path in source_files(source, chosen.suffixes) if chosen.suffixes else find_conversations(source):
                try:
                    for item in chosen.read(path):
                        yield path, item
                except InputError as error:
                    yield path, error
        except InputError as error:
            yield source, error


def _write(draft: Draft, name: str, path: Path, flags: dict[str, Any], quiet: bool) -> None:
    from ..trajectories.importers.saving import save_file, save_run
    from ..trajectories.load import load_conversation

    for key in ("agent", "model", "task", "tier"):
        if flags[key] is not None:
            setattr(draft, key, flags[key])
    out = Path(flags["out"])
    said = []
    if flags["to"]:
        written = save_file(EXPORTERS.get(flags["to"])(draft), out / f"{name}.json", flags["force"])
    else:
        written = save_run(draft, out / name, path, flags["force"])
        warnings = load_conversation(written).warnings
        if warnings:
            said.append(f"reads with {len(warnings)} warning{'s' if len(warnings) > 1 else ''}: {warnings[0]}")
    if draft.lost:
        said.insert(0, "not carried over: " + ", ".join(f"{n} {what}" for what, n in draft.lost.items()))
    if name != draft.name:
        said.append(f"id was {draft.name[:80]!r}")
    if said:
        console.note(f"{name}: {'; '.join(said)}", quiet)
    console.say(str(written))
