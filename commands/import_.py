"""ambjudge import: runs of other formats to conversation.json, and back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import InputError
from ..trajectories.importers import IMPORTERS
from ..trajectories.importers.exporters import EXPORTERS
from .options import tier_option

if TYPE_CHECKING:
    from ..trajectories.importers.draft import Draft

AUTO = "auto"
_NUMBER = re.compile(r"\d+")
_SHOWN = 12
"""Kinds of things that were not carried over, of one run."""


@click.command(
    "import",
    epilog=(
        "\b\nExamples:\n  ambjudge import auto logs/ --out runs/ --task-score resolved\n"
        "  ambjudge import inspect logs/ --out runs/ --track segmentation --tier lite\n"
        "  ambjudge import conversation runs/ --to openai --out chats/"
    ),
)
@click.argument("format", type=click.Choice((AUTO, *IMPORTERS.names)), metavar="FORMAT")
@click.argument("sources", nargs=-1, required=True, type=click.Path(), metavar="SOURCE...")
@click.option(
    "--out",
    required=True,
    metavar="DIR",
    type=click.Path(),
    help="Where the runs go: DIR/<run>/process/.",
)
@click.option(
    "--to", type=click.Choice(EXPORTERS.names), help="Write this format instead: DIR/<run>.json."
)
@click.option("--agent", metavar="NAME", help="The agent, whatever the source says.")
@click.option("--model", metavar="NAME", help="The model, likewise.")
@click.option("--task", metavar="NAME", help="The task, likewise.")
@click.option("--track", metavar="TRACK", help="The track, likewise.")
@tier_option("The tier, likewise.")
@click.option(
    "--task-score",
    metavar="OUTCOME",
    help="The outcome that is the Task score: yes or no, or 0 to 1.",
)
@click.option("--force", is_flag=True, help="Write over runs that are already there.")
@click.pass_obj
def command(obj: dict[str, Any], /, format: str, sources: tuple[str, ...], **flags: Any) -> int:
    """Turn recorded runs of other formats into run folders, from files or folders.

    FORMAT: auto, inspect, atif (Harbor), terminal-bench, claude-code, codex, responses, openhands,
    swe-agent, mini-swe-agent, otel (also Langfuse, Phoenix), parquet, anthropic, openai, or
    conversation (with --to). Texts stay as they are; scores and flags become outcomes of the run;
    what could not be carried over is named.
    """
    return run(obj, format, sources, flags)


def run(obj: dict[str, Any], format: str, sources: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 when something could not be imported; 2 when nothing could."""
    if format == "conversation" and not flags["to"]:
        raise click.UsageError("conversation.json needs --to FORMAT")
    if flags["track"] is not None:
        from ..tracks import TRACKS

        TRACKS.get(flags["track"])
    from ..trajectories.importers.saving import FolderNames

    names, complaints, passed = FolderNames(), _Complaints(format), 0
    done = failed = 0
    for path, item in _drafts(format, sources):
        if item is None:
            passed += 1
            continue
        try:
            if isinstance(item, InputError):
                raise item
            _write(item, names.assign(item.name), path, flags, obj["quiet"])
            done += 1
        except InputError as error:
            failed += 1
            complaints.add(path, error)
    complaints.end()
    bits = [f"{done} run{'' if done == 1 else 's'} imported"]
    bits += [f"{failed} not"] if failed else []
    bits += [f"{passed} other file{'' if passed == 1 else 's'} passed over"] if passed else []
    console.note(", ".join(bits), obj["quiet"])
    return (1 if done else 2) if failed or not done else 0


class _Complaints:
    """Errors as they come, those of one file that say the same in one line and a count."""

    def __init__(self, format: str) -> None:
        self.format = format
        self.said: tuple[Path, str] | None = None
        self.more = 0

    def add(self, path: Path, error: InputError) -> None:
        from ..trajectories.importers.recognise import recognise

        same = path, _NUMBER.sub("#", error.message)
        if same == self.said:
            self.more += 1
            return
        first = self.said is None or self.said[0] != path
        self.end()
        self.said = same
        console.error(error)
        other = recognise(path) if first and self.format != AUTO else None
        if other not in (None, self.format):
            console.error(f"{path}: looks like {other}: ambjudge import {other}")

    def end(self) -> None:
        """Says how many more there were."""
        if self.said is not None and self.more:
            console.error(f"{self.said[0]}: the same of {self.more} more")
        self.more = 0


def _drafts(
    format: str, sources: tuple[str, ...]
) -> Iterator[tuple[Path, Draft | InputError | None]]:
    """Every run of every source, each with its file; what cannot be read comes as its error, and
    the rest goes on.

    None for a file of a folder that is not of the format.
    """
    from ..trajectories.reading.json_bytes import is_file

    for source in map(Path, sources):
        try:
            known = False
            for path in _files(format, source):
                name = _format_of(format, path, named=is_file(source))
                known = known or name is not None
                if name is None:
                    yield path, None
                    continue
                held = False
                try:
                    for item in IMPORTERS.get(name).read(path):
                        held = True
                        yield path, item
                    if not held and is_file(source):
                        raise InputError(
                            "holds no run of its own: it goes on with one that another file beside"
                            " it begins",
                            f"give that file or the folder: ambjudge import {name} {path.parent}",
                            path,
                        )
                except InputError as error:
                    yield path, error
            if not known:
                what = "a known format" if format == AUTO else f"the format {format}"
                raise InputError(f"holds no file of {what}", _hint(format, source), source)
        except InputError as error:
            yield source, error


def _files(format: str, source: Path) -> Iterator[Path]:
    from ..trajectories.importers.files import source_files
    from ..trajectories.importers.recognise import known_suffixes
    from ..trajectories.reading.layout import find_conversations

    suffixes = known_suffixes() if format == AUTO else IMPORTERS.get(format).suffixes
    return source_files(source, suffixes) if suffixes else find_conversations(source)


def _format_of(format: str, path: Path, named: bool) -> str | None:
    """The format to read a file as; None where it is not of the wanted one. A file that the user
    named is of it."""
    from ..trajectories.importers.recognise import recognise

    if format != AUTO and (named or IMPORTERS.get(format).recognises is None):
        return format
    found = recognise(path)
    return found if format in (AUTO, found) else None


def _hint(format: str, source: Path) -> str:
    from ..trajectories.importers.recognise import how_to_import

    return how_to_import(source) or (
        f"known: {', '.join(IMPORTERS.names)}"
        if format == AUTO
        else "check the path and the format"
    )


def _write(draft: Draft, name: str, path: Path, flags: dict[str, Any], quiet: bool) -> None:
    from ..trajectories.importers.saving import save_file, save_run
    from ..trajectories.reading.load import load_conversation

    for key in ("agent", "model", "task", "track", "tier"):
        if flags[key] is not None:
            setattr(draft, key, flags[key])
    out = Path(flags["out"])
    said = []
    if flags["task_score"] is not None:
        said += _task_score(draft, flags["task_score"])
    if flags["to"]:
        written = save_file(EXPORTERS.get(flags["to"])(draft), out / f"{name}.json", flags["force"])
        draft.lost["outcomes"] += len(draft.outcomes)
    else:
        written = save_run(draft, out / name, path, flags["force"])
        warnings = load_conversation(written).warnings
        if warnings:
            said.append(
                f"reads with {len(warnings)} warning{'s' if len(warnings) > 1 else ''}:"
                f" {warnings[0]}"
            )
    if lost := [f"{n} {what}" for what, n in (+draft.lost).items()]:
        more = f" and {len(lost) - _SHOWN} more kinds" if len(lost) > _SHOWN else ""
        said.insert(0, f"not carried over: {', '.join(lost[:_SHOWN])}{more}")
    if name != draft.name:
        said.append(f"id was {draft.name[:80]!r}")
    if said:
        console.note(f"{name}: {'; '.join(said)}", quiet)
    console.say(str(written))


def _task_score(draft: Draft, name: str) -> list[str]:
    """Takes the outcome for the Task score; what is to be said where it is none."""
    told = draft.outcomes.get(name)
    if told is not None and told.as_task_score is not None:
        draft.task_outcome = name
        return []
    why = (
        f"it is {str(told.value)[:40]!r}"
        if told is not None
        else f"outcomes: {', '.join(draft.outcomes) or 'none'}"
    )
    return [f"no Task score from {name!r} ({why})"]
