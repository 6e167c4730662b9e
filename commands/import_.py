"""ambjudge import: runs of other formats to conversation.json, and back."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..errors import InputError
from ..trajectories.importers import IMPORTERS
from ..trajectories.importers.exporters import EXPORTERS
from .grouped_help import command as grouped_command
from .grouped_help import option
from .path_types import LocalPath

if TYPE_CHECKING:
    from ..trajectories.importers.draft import Draft

AUTO = "auto"
_ATIF = "atif"
_NUMBER = re.compile(r"\d+")
_MAX_LOST_KINDS = 12
"""Kinds of things not carried over that are named for one run."""
_CHAT_FORMATS = ("openai", "anthropic")
_MAX_NAMES = 3
"""Files passed over that are named."""
_OVERRIDES = ("agent", "model", "task", "track", "tier")


@grouped_command(
    "import",
    "ambjudge import auto logs/ --out runs/ --task-score resolved",
    "ambjudge import inspect logs/ --out runs/ --track segmentation --tier lite",
    "ambjudge import conversation runs/ --to openai --out chats/",
)
@click.argument("format_name", type=click.Choice((AUTO, *IMPORTERS.names)), metavar="FORMAT")
@click.argument("sources", nargs=-1, required=True, type=LocalPath(), metavar="SOURCE...")
@option("--agent", metavar="NAME", help="Name the agent, whatever the source says.")
@option("--model", metavar="NAME", help="Name the model, likewise.")
@option("--task", metavar="NAME", help="Name the task, likewise.")
@option("--track", metavar="TRACK", help="Name the track, likewise.")
@option("--tier", type=click.Choice(["lite", "standard", "pro"]), help="Name the tier, likewise.")
@option(
    "--task-score",
    metavar="OUTCOME",
    help="Use this outcome as the Task score: yes or no, or 0 to 1.",
)
@option(
    "--to",
    heading="Output",
    type=click.Choice(EXPORTERS.names),
    help="Write this format instead: DIR/<run>.json.",
)
@option(
    "--out",
    heading="Output",
    required=True,
    metavar="DIR",
    type=LocalPath(),
    help="Write the runs here: DIR/<run>/process/.",
)
@option("--force", heading="Output", is_flag=True, help="Replace runs that exist.")
@click.pass_obj
def command(
    obj: dict[str, Any], /, format_name: str, sources: tuple[str, ...], **flags: Any
) -> int:
    """Turn recorded runs of other formats into run folders, from files or folders.

    FORMAT: auto, inspect, atif (Harbor), terminal-bench, claude-code, codex, vera, responses,
    openhands, swe-agent, mini-swe-agent, otel (also Langfuse, Phoenix), parquet (also Inspect
    Scout), tau-bench (also tau2), langchain (also LangGraph), gemini-cli, autogen, smolagents,
    anthropic, openai, or conversation (with --to). Texts are not changed; scores and flags become
    outcomes of the run; sub-agents become parts of it; what could not be carried over is named.
    """
    return run(obj, format_name, sources, flags)


def run(
    obj: dict[str, Any], format_name: str, sources: tuple[str, ...], flags: dict[str, Any]
) -> int:
    """The exit code: 0; 1 if something could not be imported; 2 if nothing could."""
    if format_name == "conversation" and not flags["to"]:
        raise click.UsageError("conversation.json needs --to FORMAT")
    if flags["track"] is not None:
        from ..tracks import TRACKS

        TRACKS.get(flags["track"])
    from ..trajectories.importers.saving import FolderNames

    names, complaints = FolderNames(), _Complaints(format_name)
    source_ids: set[str] = set()
    imported = parts_imported = failed = repeated = 0
    passed_over: list[Path] = []
    files_beside: set[Path] = set()
    for path, item in _drafts(format_name, sources):
        if item is None:
            passed_over.append(path)
            continue
        try:
            if isinstance(item, InputError):
                raise item
            if item.source_id is not None and item.source_id in source_ids:
                repeated += 1
                continue
            source_ids.add(item.source_id or "")
            files_beside.update(item.files_beside)
            folder = names.assign(item.name, item.part_of)
            _write(item, folder, path, flags, obj["quiet"])
            imported += 1
            parts_imported += item.part_of is not None
        except InputError as error:
            failed += 1
            complaints.add(path, error)
    complaints.finish()
    parts = [_imported(imported - parts_imported, parts_imported)]
    if failed:
        parts.append(f"{failed} not")
    if repeated:
        parts.append(f"{repeated} held by another file already")
    passed_over = [path for path in passed_over if path not in files_beside]
    if passed_over:
        parts.append(_passed_over(passed_over))
    endings = _other_endings(format_name, sources)
    if endings:
        parts.append(endings)
    console.note(", ".join(parts), obj["quiet"])
    if not imported:
        return 2
    return 1 if failed else 0


def _imported(n_runs: int, n_parts: int) -> str:
    """How many runs were imported, and how many parts of other agents within them."""
    runs = console.counted(n_runs, "run")
    return (
        f"{runs} imported with {console.counted(n_parts, 'part')}"
        if n_parts
        else f"{runs} imported"
    )


def _other_endings(format_name: str, sources: tuple[str, ...]) -> str:
    """How many files of the folders have endings that no importer, or not this one, reads."""
    from ..trajectories.importers.files import other_endings
    from ..trajectories.importers.recognise import known_suffixes

    suffixes = known_suffixes() if format_name == AUTO else IMPORTERS.get(format_name).suffixes
    if not suffixes:
        return ""
    endings: Counter[str] = Counter()
    for source in map(Path, sources):
        endings.update(other_endings(source, suffixes))
    names = ", ".join(ending[:20] for ending, _ in endings.most_common(_MAX_NAMES))
    more = ", ..." if len(endings) > _MAX_NAMES else ""
    return f"{endings.total()} with other endings ({names}{more})" if endings else ""


def _passed_over(paths: list[Path]) -> str:
    """The number of files that were not read, with the names of the first."""
    names = ", ".join(path.name[:60] for path in paths[:_MAX_NAMES])
    more = ", ..." if len(paths) > _MAX_NAMES else ""
    return f"{console.counted(len(paths), 'other file')} passed over ({names}{more})"


class _Complaints:
    """Prints errors as they come; further errors of one file with the same words are counted."""

    def __init__(self, format_name: str) -> None:
        self.format_name = format_name
        self.last: tuple[Path, str] | None = None
        """File and words of the last error, with its numbers removed."""
        self.repeats = 0

    def add(self, path: Path, error: InputError) -> None:
        """Print an error, or count it if the one before said the same."""
        key = path, _NUMBER.sub("#", error.message)
        if key == self.last:
            self.repeats += 1
            return
        is_first_of_file = self.last is None or self.last[0] != path
        self.finish()
        self.last = key
        console.error(error)
        if is_first_of_file and self.format_name != AUTO:
            self._suggest_format(path)

    def _suggest_format(self, path: Path) -> None:
        from ..trajectories.importers.recognise import recognise

        other = recognise(path)
        if other is not None and other != self.format_name:
            console.error(f"{path}: looks like {other}: ambjudge import {other}")

    def finish(self) -> None:
        """Say how often the last error was repeated."""
        if self.last is not None and self.repeats:
            console.error(f"{self.last[0]}: the same error {self.repeats} more times")
        self.repeats = 0


def _drafts(
    format_name: str, sources: tuple[str, ...]
) -> Iterator[tuple[Path, Draft | InputError | None]]:
    """Every run of every source with its file; what cannot be read comes as its error, and a file
    of another format as None."""
    for source in map(Path, sources):
        try:
            has_format = False
            for path in _files(format_name, source):
                name = _format_of(format_name, path, source)
                if name is None:
                    yield path, None
                else:
                    has_format = True
                    yield from _drafts_of(name, path, source, is_chosen=format_name != AUTO)
            if not has_format:
                kind = "a known format" if format_name == AUTO else f"the format {format_name}"
                raise InputError(f"has no file of {kind}", _hint(format_name, source), source)
        except InputError as error:
            yield source, error


def _drafts_of(
    name: str, path: Path, source: Path, *, is_chosen: bool
) -> Iterator[tuple[Path, Draft | InputError | None]]:
    """The runs of one file of a known format.

    A file that turns out to have another one is read as that, unless the user chose the format:
    then it is passed over if it was not named.
    """
    from ..trajectories.importers.files import WrongFormat
    from ..trajectories.importers.harbor_trial import join_trial
    from ..trajectories.reading.json_bytes import is_file

    is_empty = True
    try:
        for draft in IMPORTERS.get(name).read(path):
            if isinstance(draft, WrongFormat) and is_empty:
                raise draft
            is_empty = False
            if name != _ATIF and not isinstance(draft, InputError):
                join_trial(draft, path)
            yield path, draft
        if is_empty and not is_file(source):
            yield path, None
        elif is_empty:
            raise InputError(
                "does not begin a run: it continues one that begins in another file beside it",
                f"give that file or the folder: ambjudge import {name} {_folder_of_run(path)}",
                path,
            )
    except WrongFormat as error:
        if not is_chosen:
            yield from _drafts_of(error.format, path, source, is_chosen=True)
        elif is_file(source):
            yield path, error
        else:
            yield path, None
    except InputError as error:
        yield path, error


def _folder_of_run(path: Path) -> Path:
    """The folder with all files of the run that a file continues."""
    from ..trajectories.importers.harbor_trial import trial_of

    trial = trial_of(path)
    return path.parent if trial is None else trial.folder


def _files(format_name: str, source: Path) -> Iterator[Path]:
    from ..trajectories.importers.files import source_files
    from ..trajectories.importers.recognise import known_suffixes
    from ..trajectories.reading.layout import find_conversations

    is_auto = format_name == AUTO
    suffixes = known_suffixes() if is_auto else IMPORTERS.get(format_name).suffixes
    return source_files(source, suffixes) if suffixes else find_conversations(source)


def _format_of(format_name: str, path: Path, source: Path) -> str | None:
    """The format to read a file as; None if it is not of the requested one. A file that the user
    names is of it."""
    from ..trajectories.importers.harbor_trial import is_other_record
    from ..trajectories.importers.recognise import recognise
    from ..trajectories.reading.json_bytes import is_file

    if format_name == AUTO and not is_file(source) and is_other_record(path):
        return None
    if format_name != AUTO:
        is_recognisable = IMPORTERS.get(format_name).recognises is not None
        if is_file(source) or not is_recognisable:
            return format_name
    recognised = recognise(path)
    # Messages without tools and system prompt are the same in both chat formats.
    if format_name in _CHAT_FORMATS and recognised in _CHAT_FORMATS:
        return format_name
    return recognised if format_name in (AUTO, recognised) else None


def _hint(format_name: str, source: Path) -> str:
    from ..trajectories.importers.recognise import how_to_import

    hint = how_to_import(source)
    if hint:
        return hint
    if format_name == AUTO:
        return f"known: {', '.join(IMPORTERS.names)}"
    return "check the path and the format"


def _write(draft: Draft, name: str, path: Path, flags: dict[str, Any], quiet: bool) -> None:
    """Write a run and print its path; a note says what was lost or changed."""
    from ..trajectories.importers.saving import save_file, save_run
    from ..trajectories.reading.load import load_conversation

    for key in _OVERRIDES:
        if flags[key] is not None:
            setattr(draft, key, flags[key])
    out = Path(flags["out"])
    notes = []
    if flags["task_score"] is not None:
        notes += _use_as_task_score(draft, flags["task_score"])
    if flags["to"]:
        exporter = EXPORTERS.get(flags["to"])
        file_name = f"{name.replace('/', '.')}.json"
        file = save_file(exporter(draft), out / file_name, flags["force"])
        draft.lost["outcomes"] += len(draft.outcomes)
    else:
        file = save_run(draft, out / name, path, flags["force"])
        warnings = load_conversation(file).warnings
        if warnings:
            notes.append(
                f"read with {console.counted(len(warnings), 'warning')}, the first: {warnings[0]}"
            )
    lost = _lost(draft)
    if lost:
        notes.insert(0, f"not carried over: {lost}")
    notes += draft.notes()
    if draft.part_of:
        notes.append(f"the part of another agent in {draft.part_of[:80]!r}")
    if name.rsplit("/", 1)[-1] != draft.name:
        notes.append(f"its id was {draft.name[:80]!r}")
    if notes:
        console.note(f"{name}: {'; '.join(notes)}", quiet)
    console.say(str(file))


def _lost(draft: Draft) -> str:
    """What could not be carried over, by kind."""
    kinds = [f"{count} {kind}" for kind, count in (+draft.lost).items()]
    text = ", ".join(kinds[:_MAX_LOST_KINDS])
    if len(kinds) > _MAX_LOST_KINDS:
        text += f" and {len(kinds) - _MAX_LOST_KINDS} more kinds"
    return text


def _use_as_task_score(draft: Draft, name: str) -> list[str]:
    """Use an outcome as the Task score; a note if it cannot be one."""
    outcome = draft.outcomes.get(name)
    if outcome is not None and outcome.as_task_score is not None:
        draft.task_outcome = name
        return []
    if outcome is None:
        reason = f"outcomes: {', '.join(draft.outcomes) or 'none'}"
    else:
        reason = f"it is {str(outcome.value)[:40]!r}"
    return [f"no Task score from {name!r} ({reason})"]
