"""Locates conversations in a tree of folders, and the files of one run around its conversation."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from ...errors import InputError
from .json_bytes import is_file, without_lone_surrogates

if TYPE_CHECKING:
    from ..models import OutputFile, Outputs

CONVERSATION_NAMES = (
    "conversation.json",
    "messages.json",
    "conversation.json.gz",
    "messages.json.gz",
)
"""In order of preference, for folders that hold several."""
TRACE_NAMES = ("trace.jsonl", "trace.jsonl.gz")
"""Read instead of a conversation in a process/ folder that has none: an agent that is killed writes
none."""
PARTS = "parts"
"""The folder of a run that holds the parts of other agents, each a run's folder itself."""
OUTPUT_NAMES = ("agents_outputs", "agent_outputs")
"""Folders of outputs, in order of preference."""
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
_SKIPPED_FOLDERS = {*OUTPUT_NAMES, "node_modules", "__pycache__"}
_GENERIC_NAMES = ("run", "repeat", "rep", "trial", "seed", "attempt", "r", "workspace", "")
"""Folder names that, with a number, do not identify a run."""
AGENT_FOLDERS = ("workspace", "outputs")
"""The part of a run that an agent in a container sees: process/ may lie in here, one level below
the run's own folder."""
_RECORD_FOLDERS = ("process", "workspace/process", "outputs/process", "")
"""Folders in which the harness leaves its logs."""
_ANSWER_NAME = "answer.json"
FOLDERS_READ = frozenset({*_PLAN_FOLDERS, *_OUTPUT_FOLDERS, *_RECORD_FOLDERS})
"""Folders of a run, relative to it, in which single files are looked for."""
TREES_READ = frozenset(
    {
        "outputs",
        *(f"{folder}/{name}".lstrip("/") for folder in _OUTPUT_FOLDERS for name in OUTPUT_NAMES),
    }
)
"""Folders of a run, relative to it, that are read with everything below them."""
REJUDGED_NAME = "detail_report_new-rubrics.json"
"""The report that the harness's rejudging writes beside the first one."""
_RUN_SUMMARY = "outputs/run_summary.json"
MAX_OUTPUT_FILES = 200_000
_MAX_OUTPUT_DEPTH = 16
_EFFECTIVE_IDS = os.access in os.supports_effective_ids


_SCORECARD = re.compile(
    rb'(?:\xef\xbb\xbf)?[\s\[]{0,200}\{\s{0,20}"schema"\s{0,20}:\s{0,20}"ambjudge\.scorecard/'
)
"""How a file of scorecards begins."""


def resolve_run_path(path: Path, folders: Iterable[Path]) -> Path | None:
    """The run file that a scorecard names; None if it is not there.

    A relative path is tried from the working directory, then from each of `folders`.
    """
    candidates = [path]
    if not path.is_absolute():
        candidates += [folder / path for folder in folders]
    for candidate in candidates:
        if is_file(candidate):
            return candidate
    return None


def find_conversations(path: Path) -> Iterator[Path]:
    """The conversation file itself, or every one below a folder, in sorted order.

    Of a folder with several, the first of `CONVERSATION_NAMES`; the trace only of a process/ folder
    without a conversation. Hidden folders and outputs are not searched. Of a run with a process/
    folder only that is searched, so that JSON files of its workspace are not taken for runs.

    Raises InputError if `path` does not exist, or if a folder holds no conversation.
    """
    if is_file(path):
        _refuse_scorecards(path)
        yield path
        return
    if not is_folder(path):
        raise InputError(
            "no such file or folder",
            "give a conversation.json, a run folder, or a folder of runs",
            path,
        )
    is_empty = True
    for conversation in conversations_below(os.fspath(path), _list_folder):
        is_empty = False
        yield Path(conversation)
    if is_empty:
        from ..importers.recognise import how_to_import

        hint = how_to_import(path) or "a run is <run>/process/conversation.json"
        raise InputError("holds no conversation.json at any depth", hint, path)


def _refuse_scorecards(path: Path) -> None:
    """InputError for a file of scorecards, which is given for its runs by mistake."""
    from ..importers.recognise import head_of

    if _SCORECARD.match(head_of(path)):
        raise InputError(
            "holds scorecards, not a run",
            "analyze, leaderboard, compare, export, site and browse read them; to score again, give"
            " the folder of the runs",
            path,
        )


class Listing(NamedTuple):
    """The names in a folder: subfolders that are not links, and everything that is not a folder."""

    subfolders: set[str]
    files: set[str]
    is_readable: bool = True
    """Whether this user may list the folder."""


def run_around(conversation: Path) -> Path | None:
    """The folder of the run in which this is the part of another agent; None for a run.

    Parts lie in `<run>/parts/<part>/`. One whose run is not there is a run by itself.
    """
    # Most paths are told by their names, without a look at any folder.
    if f"{os.sep}{PARTS}{os.sep}" not in str(conversation):
        return None
    folder = conversation.parent.parent if conversation.parent.name == "process" else None
    if folder is None or folder.parent.name != PARTS:
        return None
    run = folder.parent.parent
    return run if (run / "process").is_dir() else None


def parts_of(run: Path) -> list[Path]:
    """The conversations of the parts of other agents in a run's folder, in order."""
    folder = run / PARTS
    return [Path(path) for path in conversations_below(os.fspath(folder), _list_folder)]


def conversations_below(top: str, list_folder: Callable[[str], Listing]) -> Iterator[str]:
    """The conversation files below a folder, in sorted order.

    `list_folder` lists a folder of the tree, which need not be on this machine.
    """
    pending = [top]
    while pending:
        folder = pending.pop()
        listing = list_folder(folder)
        if not listing.is_readable:
            # It may hold a run: reading the file says why it cannot be read.
            yield os.path.join(folder, "process", CONVERSATION_NAMES[0])
            continue
        names: tuple[str, ...] = CONVERSATION_NAMES
        # A run: go on in its process/ folder, past everything else that it holds.
        if "process" in listing.subfolders:
            process = list_folder(os.path.join(folder, "process"))
            if not process.is_readable:
                yield os.path.join(folder, "process", CONVERSATION_NAMES[0])
                continue
            if not process.files.isdisjoint((*CONVERSATION_NAMES, *TRACE_NAMES)):
                folder, listing = os.path.join(folder, "process"), process
                names += TRACE_NAMES
        for name in names:
            if name in listing.files:
                yield os.path.join(folder, name)
                break
        for subfolder in sorted(listing.subfolders, reverse=True):
            if not subfolder.startswith(".") and subfolder not in _SKIPPED_FOLDERS:
                pending.append(os.path.join(folder, subfolder))


def _list_folder(folder: str) -> Listing:
    """The names in a folder, without a system call for each."""
    listing = Listing(set(), set())
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    listing.subfolders.add(entry.name)
                elif not (entry.is_symlink() and is_folder(Path(entry.path))):
                    listing.files.add(entry.name)
    except PermissionError:
        return listing._replace(is_readable=False)
    except OSError:
        pass
    return listing


def is_folder(path: Path) -> bool:
    """Whether there is a folder, as far as this user may look."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


class Fence:
    """A folder outside of which nothing is read, links followed.

    A run's links must not lead to other files of this machine. Each folder below is checked once
    for being a link.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._plain_folders: set[str] = set()

    def holds(self, path: Path) -> bool:
        """Whether a path lies in the folder."""
        try:
            if self._is_plain_path(os.fspath(path)):
                return True
            return path.resolve().is_relative_to(self.folder.resolve())
        except (OSError, RuntimeError, ValueError):  # RuntimeError: a circle of links
            return False

    def _is_plain_path(self, path: str) -> bool:
        """Whether a path is below the folder by its name and no part of it below is a link.

        Then nothing needs to be resolved, which would look at every folder from the root on.
        """
        prefix = os.fspath(self.folder).rstrip(os.sep)
        if not path.startswith(prefix + os.sep):
            return path == prefix
        for part in path[len(prefix) + 1 :].split(os.sep):
            prefix = f"{prefix}{os.sep}{part}"
            if part == "..":
                return False
            if prefix in self._plain_folders:
                continue
            try:
                mode = os.lstat(prefix).st_mode
            except OSError:
                return False
            if stat.S_ISLNK(mode):
                return False
            if stat.S_ISDIR(mode):
                self._plain_folders.add(prefix)
        return True


def inside(folder: Path, path: Path) -> bool:
    """Whether a path, links followed, lies in a folder."""
    return Fence(folder).holds(path)


def file_in(folder: Path, name: str) -> Path | None:
    """The file of this name in a folder, compressed or not; None without one or outside of it."""
    for file in (folder / name, folder / f"{name}.gz"):
        if is_file(file) and inside(folder, file):
            return file
    return None


_EntryKind = Literal["file", "folder", "link", "other"]


class RunFolder:
    """A run's folder whose subfolders are each listed at most once.

    Listing is cheaper than asking for every name that a harness might have used. Paths are relative
    to the run's folder and written with `/`.
    """

    def __init__(self, top: Path) -> None:
        self.top = top
        self._listed: dict[str, dict[str, _EntryKind] | None] = {}

    def entries(self, path: str) -> dict[str, _EntryKind] | None:
        """The entries of a folder by name; None if it cannot be listed."""
        if path not in self._listed:
            self._listed[path] = _entry_kinds(os.path.join(self.top, path))
        return self._listed[path]

    def kind(self, path: str) -> _EntryKind | None:
        """What is at a path: None if nothing, `link` if the file system must be asked."""
        *folders, name = path.split("/")
        parent = ""
        for folder in folders:
            entries = self.entries(parent)
            kind = "link" if entries is None else entries.get(folder)
            if kind == "link":
                return "link"
            if kind != "folder":
                return None
            parent = f"{parent}/{folder}" if parent else folder
        entries = self.entries(parent)
        return "link" if entries is None else entries.get(name)

    def is_file(self, path: str) -> bool:
        """Whether there is a regular file, wherever links lead."""
        kind = self.kind(path)
        return kind == "file" or (kind == "link" and is_file(self.top / path))

    def holds(self, path: str) -> bool:
        """Whether what is at a path lies in the run, links followed."""
        return self.kind(path) != "link" or inside(self.top, self.top / path)

    def file(self, *paths: str) -> Path | None:
        """The first of these paths that is a file of the run."""
        for path in paths:
            if self.is_file(path) and self.holds(path):
                return self.top / path
        return None

    def is_folder(self, path: str, *, follow_out: bool) -> bool:
        """Whether there is a folder; links out of the run count only with `follow_out`."""
        kind = self.kind(path)
        if kind != "link":
            return kind == "folder"
        target = self.top / path
        return is_folder(target) and (follow_out or inside(self.top, target))


def _entry_kinds(folder: str) -> dict[str, _EntryKind] | None:
    kinds: dict[str, _EntryKind] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    kinds[entry.name] = "link"
                elif entry.is_dir(follow_symlinks=False):
                    kinds[entry.name] = "folder"
                elif entry.is_file(follow_symlinks=False):
                    kinds[entry.name] = "file"
                else:
                    kinds[entry.name] = "other"
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError):  # its files may be readable though it cannot be listed
        return None
    return kinds


def _as_run_folder(run: Path | RunFolder) -> RunFolder:
    return run if isinstance(run, RunFolder) else RunFolder(run)


def run_folder(conversation: Path, list_folder: Callable[[str], Listing] | None = None) -> Path:
    """The run's folder: the parent of `process/` if the file lies in one, else the file's folder.

    If that is the agent's folder (`workspace`, `outputs`) and the harness keeps its files beside
    it, the run is the folder above. `list_folder` lists folders of a tree on another machine.
    """
    folder = conversation.absolute().parent
    if folder.name != "process":
        return folder  # no known layout around the file
    folder = folder.parent
    if folder.name not in AGENT_FOLDERS:
        return folder
    parent = folder.parent
    if list_folder is not None:
        listing = list_folder(os.fspath(parent))
        harness_above = "detail_report.json" in listing.files or "process" in listing.subfolders
    else:
        harness_above = is_file(parent / "detail_report.json") or is_folder(parent / "process")
    return parent if harness_above else folder


def run_id(conversation: Path) -> str:
    """The run's id: the name of its folder, with parents in front while it is generic (`run_3`).

    A conversation file with a name of its own gives its stem.
    """
    if conversation.name not in (*CONVERSATION_NAMES, *TRACE_NAMES):
        stem = conversation.name.removesuffix(".gz").removesuffix(".json")
        return without_lone_surrogates(stem) or "conversation"
    folder = run_folder(conversation)
    parts = [folder.name]
    while is_generic(parts[0]) and folder.parent.name:
        folder = folder.parent
        parts.insert(0, folder.name)
    return without_lone_surrogates("/".join(parts)) or "conversation"


def is_generic(name: str) -> bool:
    """Whether a folder's name says only that it is some run: `run_3`, `attempt_0`."""
    return name.rstrip("0123456789").rstrip("_- .").lower() in _GENERIC_NAMES


def side_file(run: Path | RunFolder, *names: str) -> Path | None:
    """The first of these files, plain or gzipped, in the run folder or a process/ folder.

    Links out of the run are not followed.
    """
    paths = [
        f"{folder}/{file}" if folder else file
        for name in names
        for file in (name, f"{name}.gz")
        for folder in _RECORD_FOLDERS
    ]
    return _as_run_folder(run).file(*paths)


def side_files(folder: Path) -> list[Path]:
    """All files that are read beside the conversation, the plan and the outputs."""
    run = RunFolder(folder)
    logs = ("trace.jsonl", "tool_calls.jsonl", "tool_log.jsonl", "api_responses.jsonl")
    paths = [side_file(run, name) for name in logs]
    paths += [report_file(run), side_file(run, REJUDGED_NAME), summary_file(run), brief_file(run)]
    return [path for path in paths if path is not None]


def is_run(folder: Path) -> bool:
    """Whether a folder is a run's: it, or its process/ folder, has a conversation or a trace."""
    for record in _RECORD_FOLDERS:
        names = CONVERSATION_NAMES + TRACE_NAMES if record else CONVERSATION_NAMES
        if any(is_file(folder / record / name) for name in names):
            return True
    return False


def report_file(run: Path | RunFolder) -> Path | None:
    """The harness report: detail_report.json, or the vqa branch's report.json."""
    run = _as_run_folder(run)
    return side_file(run, "detail_report.json") or run.file("report.json")


def summary_file(run: Path | RunFolder) -> Path | None:
    """agent_summary.json, or the vqa branch's summary."""
    run = _as_run_folder(run)
    return side_file(run, "agent_summary.json") or run.file(_RUN_SUMMARY)


def brief_file(run: Path | RunFolder) -> Path | None:
    """The system prompt as the harness rendered it.

    Places that the agent cannot write come first.
    """
    return _as_run_folder(run).file(
        "process/system_prompt.md",
        "tier_prompt.txt",
        "outputs/tier_prompt.txt",
        "workspace/tier_prompt.txt",
    )


def find_plan(run: RunFolder, name: str, warnings: list[str]) -> Path | None:
    """plan.md or plan.png in any folder where runs keep them.

    Links out of the run are not followed; each adds a warning.
    """
    for folder in _PLAN_FOLDERS:
        path = f"{folder}/{name}" if folder else name
        if not run.is_file(path):
            continue
        if run.holds(path):
            return run.top / path
        warnings.append(f"plan: {name} is a link that leaves the run; not followed")
    return None


def find_outputs(
    run: Path | RunFolder,
    questions: Collection[str] = (),
    *,
    names: Collection[str] = OUTPUT_NAMES,
    follow_out: bool = False,
) -> Outputs:
    """The files under the first folder with one of `names`, by case.

    Links out of the run are followed only with `follow_out`. The vqa branch delivers
    `outputs/<question>/answer.json` instead: without a folder of outputs, `outputs` is read with
    the folders of questions (those in `questions`, or with an answer in them).
    """
    # The browser's list asks this module where runs are; the models would delay its first rows.
    from ..models import Outputs

    run = _as_run_folder(run)
    for folder in _OUTPUT_FOLDERS:
        for name in names:
            path = f"{folder}/{name}" if folder else name
            if run.is_folder(path, follow_out=follow_out):
                return _list_outputs(run, path, follow_out=follow_out)
    if run.is_folder("outputs", follow_out=follow_out):
        cases = _answered_questions(run, questions)
        if cases or run.is_file(_RUN_SUMMARY):
            return _list_outputs(run, "outputs", cases=cases, follow_out=follow_out)
    hidden = [folder for folder in _OUTPUT_FOLDERS if run.entries(folder) is None]
    return Outputs(unreadable=tuple(hidden))


def _answered_questions(run: RunFolder, questions: Collection[str]) -> set[str]:
    """Folders in `outputs` that belong to a question."""
    ids = frozenset(questions)
    folders = [name for name, kind in (run.entries("outputs") or {}).items() if kind == "folder"]
    return {
        name for name in folders if name in ids or run.is_file(f"outputs/{name}/{_ANSWER_NAME}")
    }


def _list_outputs(
    run: RunFolder, root: str, *, cases: Collection[str] | None = None, follow_out: bool
) -> Outputs:
    """The regular files below `root`; of case folders only `cases`, if given.

    None of them if this user may not read one.
    """
    from ..models import Outputs

    files: list[OutputFile] = []
    unreadable: list[str] = []
    for path, file in _walk_outputs(run, root, cases=cases, follow_out=follow_out):
        if file is not None:
            files.append(file)
        if file is None or not os.access(file.path, os.R_OK, effective_ids=_EFFECTIVE_IDS):
            unreadable.append(without_lone_surrogates(path))
    if unreadable:
        # A part would look like all that was delivered.
        return Outputs(unreadable=tuple(unreadable))
    return Outputs(root=run.top / root, files=tuple(files))


def _walk_outputs(
    run: RunFolder, root: str, *, cases: Collection[str] | None = None, follow_out: bool
) -> Iterator[tuple[str, OutputFile | None]]:
    """Each regular file below `root` with its path in the run; None for a folder that cannot be
    listed.

    Others than regular files are left out: opening a pipe or a device of a hostile run would hang.
    """
    from ..models import OutputFile

    count = 0
    pending: list[tuple[str, ...]] = [()]
    while pending:
        parts = pending.pop()
        folder = "/".join((root, *parts))
        entries = run.entries(folder)
        if entries is None:
            yield folder, None
            continue
        subfolders = {
            name
            for name, kind in entries.items()
            if kind == "folder" or (kind == "link" and is_folder(run.top / folder / name))
        }
        for name in sorted(entries.keys() - subfolders):
            path = f"{folder}/{name}"
            if path == _RUN_SUMMARY:
                continue  # the harness's own file among the answers
            size = _output_size(run, path, is_link=entries[name] == "link", follow_out=follow_out)
            if size is not None:
                file = OutputFile(
                    case=without_lone_surrogates(parts[0]) if parts else None,
                    name=without_lone_surrogates("/".join((*parts[1:], name))),
                    path=run.top / path,
                    size=size,
                )
                yield path, file
        count += len(entries)
        if count > MAX_OUTPUT_FILES:
            return
        if len(parts) >= _MAX_OUTPUT_DEPTH:
            continue
        if cases is not None and not parts:
            subfolders = subfolders.intersection(cases)
        for name in sorted(subfolders, reverse=True):
            link = run.top / folder / name
            # A link back to a folder around it would be followed without end.
            if entries[name] == "folder" or _may_enter(link, run.top, follow_out=follow_out):
                pending.append((*parts, name))


def _output_size(run: RunFolder, path: str, *, is_link: bool, follow_out: bool) -> int | None:
    """The size of a regular file in bytes; None for anything else and for links out of the run."""
    file = run.top / path
    try:
        status = file.stat() if is_link else file.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    if is_link and not follow_out and not inside(run.top, file):
        return None
    return status.st_size


def _may_enter(link: Path, run: Path, *, follow_out: bool) -> bool:
    """Whether a linked folder may be listed: not out of the run, not back to a folder around it."""
    return (follow_out or inside(run, link)) and not inside(link, link.parent)
