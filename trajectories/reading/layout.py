"""Where things are: conversations in a tree, and the side files, plan and outputs around one
conversation."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from ...errors import InputError
from ..models import OutputFile, Outputs
from .json_bytes import is_file, without_lone_surrogates

CONVERSATION_NAMES = (
    "conversation.json",
    "messages.json",
    "conversation.json.gz",
    "messages.json.gz",
)
"""In the order in which they are taken where a folder holds several."""
TRACE_NAMES = ("trace.jsonl", "trace.jsonl.gz")
"""What stands for a conversation in a process/ folder that has none: an agent that is killed writes
none."""
_OUTPUT_NAMES = ("agents_outputs", "agent_outputs")
_PLAN_FOLDERS = (
    "outputs/plan",
    "plan",
    "workspace/plan",
    "outputs",
    "process/plan",
    "process",
    "workspace",
    "",
)
_OUTPUT_FOLDERS = ("outputs", "", "workspace", "outputs/workspace", "process")
_SKIPPED = {*_OUTPUT_NAMES, "node_modules", "__pycache__"}
_GENERIC = ("run", "repeat", "rep", "trial", "seed", "attempt", "r", "workspace", "")
AGENT_FOLDERS = ("workspace", "outputs")
"""What a container's agent sees of a run: its process/ may lie in here, below the run's own folder.
"""
_RECORD_FOLDERS = ("process", "workspace/process", "outputs/process", "")
_ANSWER = "answer.json"
FOLDERS_READ = frozenset({*_PLAN_FOLDERS, *_OUTPUT_FOLDERS, *_RECORD_FOLDERS})
"""Below a run's folder, those in which single files are looked for."""
TREES_READ = frozenset(
    {
        "outputs",
        *(f"{place}/{name}".lstrip("/") for place in _OUTPUT_FOLDERS for name in _OUTPUT_NAMES),
    }
)
"""Below a run's folder, those that are read with all that is in them."""
_RUN_SUMMARY = "outputs/run_summary.json"
MAX_OUTPUT_FILES = 200_000
_MAX_OUTPUT_DEPTH = 16


def resolve_run_path(path: Path, folders: Iterable[Path]) -> Path | None:
    """The file that a scorecard names: as it stands, or, where that is relative, from one of the
    folders."""
    places = [path] if path.is_absolute() else [path, *(folder / path for folder in folders)]
    return next((place for place in places if is_file(place)), None)


def find_conversations(path: Path) -> Iterator[Path]:
    """The conversation file itself, or every one below a folder, in sorted order; messages.json
    only without its alias, the trace only of a process/ folder without a conversation.

    Raises InputError when `path` does not exist or a folder holds none. Hidden folders and outputs
    are not searched; of a run with a process/ folder only that is, so that JSON files of its
    workspace are not taken for runs.
    """
    if is_file(path):
        yield path
        return
    if not _is_dir(path):
        raise InputError(
            "no such file or folder",
            "give a conversation.json, a run folder, or a folder of runs",
            path,
        )
    found = False
    for found_at in conversations_below(os.fspath(path), _listing):
        found = True
        yield Path(found_at)
    if not found:
        from ..importers.recognise import how_to_import

        hint = how_to_import(path) or "a run is <run>/process/conversation.json"
        raise InputError("holds no conversation.json at any depth", hint, path)


def conversations_below(top: str, listing: Callable[[str], Listing]) -> Iterator[str]:
    """The conversation files below a folder of any tree whose folders can be listed, in sorted
    order."""
    pending = [top]
    while pending:
        folder = pending.pop()
        subfolders, files = listing(folder)
        names: tuple[str, ...] = CONVERSATION_NAMES
        if "process" in subfolders:
            record = listing(os.path.join(folder, "process"))
            if not record.files.isdisjoint((*CONVERSATION_NAMES, *TRACE_NAMES)):
                folder, (subfolders, files) = os.path.join(folder, "process"), record
                names += TRACE_NAMES
        conversation = next((name for name in names if name in files), None)
        if conversation is not None:
            yield os.path.join(folder, conversation)
        below = (name for name in subfolders if not name.startswith(".") and name not in _SKIPPED)
        pending += [os.path.join(folder, name) for name in sorted(below, reverse=True)]


class Listing(NamedTuple):
    """Names in a folder: subfolders that are no links, and whatever is no folder."""

    subfolders: set[str]
    files: set[str]


def _listing(folder: str) -> Listing:
    """What a folder holds, told without asking about each entry; nothing when it cannot be read."""
    found = Listing(set(), set())
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    found.subfolders.add(entry.name)
                elif not (entry.is_symlink() and _is_dir(Path(entry.path))):
                    found.files.add(entry.name)
    except OSError:
        pass
    return found


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


class Fence:
    """A folder that nothing is read outside of, links followed: a run's links must not lead a
    reader to other files. Of each folder below it is asked once whether it is a link."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._plain: set[str] = set()

    def holds(self, path: Path) -> bool:
        """Whether a path lies in the folder."""
        try:
            return self._no_link_before(os.fspath(path)) or path.resolve().is_relative_to(
                self.folder.resolve()
            )
        except (OSError, RuntimeError, ValueError):  # RuntimeError: a circle of links.
            return False

    def _no_link_before(self, path: str) -> bool:
        """Whether a path is below the folder by its name, and no part of it below is a link: then
        nothing needs to be resolved, which would look at every folder from the root on."""
        at = os.fspath(self.folder).rstrip(os.sep)
        if not path.startswith(at + os.sep):
            return path == at
        for part in path[len(at) + 1 :].split(os.sep):
            at = f"{at}{os.sep}{part}"
            if part == "..":
                return False
            if at in self._plain:
                continue
            try:
                mode = os.lstat(at).st_mode
            except OSError:
                return False
            if stat.S_ISLNK(mode):
                return False
            if stat.S_ISDIR(mode):
                self._plain.add(at)
        return True


def inside(folder: Path, path: Path) -> bool:
    """Whether a path, links followed, lies in a folder."""
    return Fence(folder).holds(path)


_Kind = Literal["file", "folder", "link", "other"]


class RunFolder:
    """A run's folder, each folder below it listed once: what is there is known without asking about
    every name that might be.

    Places are written with `/`, from the run's folder on.
    """

    def __init__(self, top: Path) -> None:
        self.top = top
        self._known: dict[str, dict[str, _Kind] | None] = {}

    def entries(self, place: str) -> dict[str, _Kind] | None:
        """What a folder holds, by name; None where it cannot be listed."""
        if place not in self._known:
            self._known[place] = _kinds(os.path.join(self.top, place))
        return self._known[place]

    def kind(self, place: str) -> _Kind | None:
        """What stands at a place; `link` where only asking tells, None where nothing is."""
        at = ""
        *folders, name = place.split("/")
        for folder in folders:
            entries = self.entries(at)
            kind = "link" if entries is None else entries.get(folder)
            if kind != "folder":
                return "link" if kind == "link" else None
            at = f"{at}/{folder}" if at else folder
        entries = self.entries(at)
        return "link" if entries is None else entries.get(name)

    def is_file(self, place: str) -> bool:
        """Whether a regular file is there, wherever links lead."""
        kind = self.kind(place)
        return kind == "file" or (kind == "link" and is_file(self.top / place))

    def holds(self, place: str) -> bool:
        """Whether what is there lies in the run, links followed."""
        return self.kind(place) != "link" or inside(self.top, self.top / place)

    def file(self, *places: str) -> Path | None:
        """The first of these that is a file of the run."""
        return next(
            (self.top / place for place in places if self.is_file(place) and self.holds(place)),
            None,
        )

    def is_folder(self, place: str, leave: bool) -> bool:
        """Whether a folder is there, in the run unless it may `leave` it."""
        kind = self.kind(place)
        path = self.top / place
        return kind == "folder" or (
            kind == "link" and _is_dir(path) and (leave or inside(self.top, path))
        )


def _kinds(folder: str) -> dict[str, _Kind] | None:
    found: dict[str, _Kind] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    found[entry.name] = "link"
                elif entry.is_dir(follow_symlinks=False):
                    found[entry.name] = "folder"
                else:
                    found[entry.name] = "file" if entry.is_file(follow_symlinks=False) else "other"
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError):  # it may hold what can be read, though it cannot be listed
        return None
    return found


def _listed(run: Path | RunFolder) -> RunFolder:
    return run if isinstance(run, RunFolder) else RunFolder(run)


def run_folder(conversation: Path, listing: Callable[[str], Listing] | None = None) -> Path:
    """The run's folder: above `process/` when the file lies in one, else the file's own folder.

    Above the agent's own folder, where the harness keeps its files beside that. `listing` tells of
    another tree than this machine's.
    """
    folder = conversation.absolute().parent
    if folder.name != "process":
        return folder
    folder = folder.parent
    if folder.name not in AGENT_FOLDERS:
        return folder
    above = folder.parent
    if listing is not None:
        beside = listing(os.fspath(above))
        return (
            above
            if "detail_report.json" in beside.files or "process" in beside.subfolders
            else folder
        )
    return above if is_file(above / "detail_report.json") or _is_dir(above / "process") else folder


def run_id(conversation: Path) -> str:
    """The run folder's name; with its parents' names in front while it is only a number or "run_3";
    the stem for odd names."""
    if conversation.name not in (*CONVERSATION_NAMES, *TRACE_NAMES):
        return (
            without_lone_surrogates(conversation.name.removesuffix(".gz").removesuffix(".json"))
            or "conversation"
        )
    folder = run_folder(conversation)
    parts = [folder.name]
    while parts[0].rstrip("0123456789").rstrip("_- .").lower() in _GENERIC and folder.parent.name:
        folder = folder.parent
        parts.insert(0, folder.name)
    return without_lone_surrogates("/".join(parts)) or "conversation"


def side_file(run: Path | RunFolder, *names: str) -> Path | None:
    """The first of these files, plain or in gzip, in the run folder or a process/ folder; links
    that leave it are not followed."""
    forms = (form for plain in names for form in (plain, f"{plain}.gz"))
    return _listed(run).file(
        *(f"{base}/{name}" if base else name for name in forms for base in _RECORD_FOLDERS)
    )


def side_files(folder: Path) -> list[Path]:
    """All files that are read beside the conversation, the plan and the outputs."""
    run = RunFolder(folder)
    logs = ("trace.jsonl", "tool_calls.jsonl", "tool_log.jsonl", "api_responses.jsonl")
    found = [side_file(run, name) for name in logs]
    return [
        path
        for path in (*found, report_file(run), summary_file(run), brief_file(run))
        if path is not None
    ]


def is_run(folder: Path) -> bool:
    """Whether a folder is a run's: it holds a conversation, or its record does, or a trace."""
    return any(
        is_file(folder / place / name)
        for place in _RECORD_FOLDERS
        for name in (CONVERSATION_NAMES + TRACE_NAMES if place else CONVERSATION_NAMES)
    )


def report_file(run: Path | RunFolder) -> Path | None:
    """The harness report: detail_report.json, or the vqa branch's report.json."""
    run = _listed(run)
    return side_file(run, "detail_report.json") or run.file("report.json")


def summary_file(run: Path | RunFolder) -> Path | None:
    """agent_summary.json, or the vqa branch's summary."""
    run = _listed(run)
    return side_file(run, "agent_summary.json") or run.file(_RUN_SUMMARY)


def brief_file(run: Path | RunFolder) -> Path | None:
    """The system prompt that the harness rendered, where the agent could not write it before where
    it could."""
    places = (
        "process/system_prompt.md",
        "tier_prompt.txt",
        "outputs/tier_prompt.txt",
        "workspace/tier_prompt.txt",
    )
    return _listed(run).file(*places)


def find_plan(run: RunFolder, name: str, warnings: list[str]) -> Path | None:
    """plan.md or plan.png in any of the places where runs keep them; links that leave the run are
    not followed, and said."""
    for folder in _PLAN_FOLDERS:
        place = f"{folder}/{name}" if folder else name
        if not run.is_file(place):
            continue
        if run.holds(place):
            return run.top / place
        warnings.append(f"plan: {name} is a link that leaves the run; not followed")
    return None


def find_outputs(
    run: Path | RunFolder, questions: Collection[str] = (), *, leave: bool = False
) -> Outputs:
    """Files under agents_outputs/ (or agent_outputs/), by case; links that `leave` the run's folder
    are followed on wish.

    The vqa branch delivers `outputs/<question>/answer.json`: without such a folder, `outputs` with
    what lies in it and in the folders of questions (named in `questions`, or with an answer in
    them).
    """
    run = _listed(run)
    for folder in _OUTPUT_FOLDERS:
        for name in _OUTPUT_NAMES:
            place = f"{folder}/{name}" if folder else name
            if run.is_folder(place, leave):
                return Outputs(
                    root=run.top / place, files=tuple(_list_outputs(run, place, leave=leave))
                )
    if run.is_folder("outputs", leave):
        known = frozenset(questions)
        below = (name for name, kind in (run.entries("outputs") or {}).items() if kind == "folder")
        cases = {
            name for name in below if name in known or run.is_file(f"outputs/{name}/{_ANSWER}")
        }
        if cases or run.is_file(_RUN_SUMMARY):
            return Outputs(
                root=run.top / "outputs", files=tuple(_list_outputs(run, "outputs", cases, leave))
            )
    return Outputs()


def _list_outputs(
    run: RunFolder, root: str, cases: Collection[str] | None = None, leave: bool = False
) -> Iterator[OutputFile]:
    """Regular files only: opening a pipe or a device of a hostile run would hang. Of `cases` alone,
    where given."""
    count = 0
    pending: list[tuple[str, ...]] = [()]
    while pending:
        parts = pending.pop()
        place = "/".join((root, *parts))
        entries = run.entries(place) or {}
        subfolders = {
            n
            for n, kind in entries.items()
            if kind == "folder" or (kind == "link" and _is_dir(run.top / place / n))
        }
        for name in sorted(entries.keys() - subfolders):
            if f"{place}/{name}" == _RUN_SUMMARY:
                continue  # the harness's own file among the answers
            path = run.top / place / name
            try:
                status = path.stat() if entries[name] == "link" else path.lstat()
            except OSError:
                continue
            if not stat.S_ISREG(status.st_mode) or (
                entries[name] == "link" and not leave and not inside(run.top, path)
            ):
                continue
            case = without_lone_surrogates(parts[0]) if parts else None
            yield OutputFile(
                case=case,
                name=without_lone_surrogates("/".join((*parts[1:], name))),
                path=path,
                size=status.st_size,
            )
        count += len(entries)
        if count > MAX_OUTPUT_FILES:
            return
        if len(parts) < _MAX_OUTPUT_DEPTH:
            wanted = subfolders if cases is None or parts else subfolders.intersection(cases)
            enter = (
                n
                for n in wanted
                if entries[n] == "folder" or _may_enter(run.top / place / n, run.top, leave)
            )
            pending += ((*parts, name) for name in sorted(enter, reverse=True))


def _may_enter(link: Path, run: Path, leave: bool) -> bool:
    """Not through a link that leaves the run (unless it may) or leads back to a folder around it."""
    return (leave or inside(run, link)) and not inside(link, link.parent)
