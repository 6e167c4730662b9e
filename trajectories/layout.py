"""Where things are: conversations in a tree, and the side files, plan and outputs around one conversation."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError
from .json_bytes import is_file, whole_text
from .models import OutputFile, Outputs

CONVERSATION_NAMES = ("conversation.json", "messages.json", "conversation.json.gz", "messages.json.gz")
"""In the order in which they are taken where a folder holds several."""
TRACE_NAMES = ("trace.jsonl", "trace.jsonl.gz")
"""What stands for a conversation in a process/ folder that has none: an agent that is killed writes none."""
_OUTPUT_NAMES = ("agents_outputs", "agent_outputs")
_PLAN_FOLDERS = ("outputs/plan", "plan", "workspace/plan", "outputs", "process/plan", "process", "workspace", "")
_OUTPUT_FOLDERS = ("outputs", "", "workspace", "outputs/workspace", "process")
_SKIPPED = {*_OUTPUT_NAMES, "node_modules", "__pycache__"}
_GENERIC = ("run", "repeat", "rep", "trial", "seed", "attempt", "r", "workspace", "")
AGENT_FOLDERS = ("workspace", "outputs")
"""What a container's agent sees of a run: its process/ may lie in here, below the run's own folder."""
_RECORD_FOLDERS = ("process", "workspace/process", "outputs/process", "")
_ANSWER = "answer.json"
FOLDERS_READ = frozenset({*_PLAN_FOLDERS, *_OUTPUT_FOLDERS, *_RECORD_FOLDERS})
"""Below a run's folder, those in which single files are looked for."""
TREES_READ = frozenset(
    {"outputs", *(f"{place}/{name}".lstrip("/") for place in _OUTPUT_FOLDERS for name in _OUTPUT_NAMES)}
)
"""Below a run's folder, those that are read with all that is in them."""
_RUN_SUMMARY = "outputs/run_summary.json"
MAX_OUTPUT_FILES = 200_000
_MAX_OUTPUT_DEPTH = 16


def nearby(path: Path, folders: Iterable[Path]) -> Path | None:
    """The file that a scorecard names: as it stands, or, where that is relative, from one of the folders."""
    places = [path] if path.is_absolute() else [path, *(folder / path for folder in folders)]
    return next((place for place in places if is_file(place)), None)


def find_conversations(path: Path) -> Iterator[Path]:
    """The conversation file itself, or every one below a folder, in sorted order; messages.json only without its alias,
    the trace only of a process/ folder without a conversation.

    Raises InputError when `path` does not exist or a folder holds none. Hidden folders and outputs are not searched;
    of a run with a process/ folder only that is, so that JSON files of its workspace are not taken for runs.
    """
    if is_file(path):
        yield path
        return
    if not _is_dir(path):
        raise InputError("no such file or folder", "give a conversation.json, a run folder, or a folder of runs", path)
    found = False
    for found_at in conversations_below(os.fspath(path), _listing):
        found = True
        yield Path(found_at)
    if not found:
        from .importers.recognise import how_to_import

        hint = how_to_import(path) or "a run is <run>/process/conversation.json"
        raise InputError("holds no conversation.json at any depth", hint, path)


def conversations_below(top: str, listing: Callable[[str], Listing]) -> Iterator[str]:
    """The conversation files below a folder of any tree whose folders can be listed, in sorted order."""
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


def inside(folder: Path, path: Path) -> bool:
    """Whether a path, links followed, lies in a folder. A run's links must not lead a reader to other files."""
    try:
        return _no_link_between(os.fspath(folder), os.fspath(path)) or path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # RuntimeError: a circle of links.
        return False


def _no_link_between(folder: str, path: str) -> bool:
    """Whether a path is below a folder by its name, and no part of it below is a link: then nothing needs to be resolved,
    which would look at every folder from the root on."""
    at = folder.rstrip(os.sep)
    if not path.startswith(at + os.sep):
        return path == at
    for part in path[len(at) + 1 :].split(os.sep):
        at = f"{at}{os.sep}{part}"
        if part == "..":
            return False
        try:
            if stat.S_ISLNK(os.lstat(at).st_mode):
                return False
        except OSError:
            return False
    return True


def run_folder(conversation: Path, listing: Callable[[str], Listing] | None = None) -> Path:
    """The run's folder: above `process/` when the file lies in one, else the file's own folder.

    Above the agent's own folder, where the harness keeps its files beside that. `listing` tells of another tree than
    this machine's.
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
        return above if "detail_report.json" in beside.files or "process" in beside.subfolders else folder
    return above if is_file(above / "detail_report.json") or _is_dir(above / "process") else folder


def run_id(conversation: Path) -> str:
    """The run folder's name; with its parents' names in front while it is only a number or "run_3"; the stem for odd names."""
    if conversation.name not in (*CONVERSATION_NAMES, *TRACE_NAMES):
        return whole_text(conversation.name.removesuffix(".gz").removesuffix(".json")) or "conversation"
    folder = run_folder(conversation)
    parts = [folder.name]
    while parts[0].rstrip("0123456789").rstrip("_- .").lower() in _GENERIC and folder.parent.name:
        folder = folder.parent
        parts.insert(0, folder.name)
    return whole_text("/".join(parts)) or "conversation"


def side_file(folder: Path, *names: str) -> Path | None:
    """The first of these files, plain or in gzip, in the run folder or a process/ folder; links that leave it are not followed."""
    for name in (form for plain in names for form in (plain, f"{plain}.gz")):
        for base in _RECORD_FOLDERS:
            if (found := _own(folder, f"{base}/{name}" if base else name)) is not None:
                return found
    return None


def _own(folder: Path, *places: str) -> Path | None:
    """The first of these that is a file of the run."""
    candidates = (folder / place for place in places)
    return next((path for path in candidates if is_file(path) and inside(folder, path)), None)


def side_files(folder: Path) -> list[Path]:
    """All files that are read beside the conversation, the plan and the outputs."""
    logs = ("trace.jsonl", "tool_calls.jsonl", "tool_log.jsonl", "api_responses.jsonl")
    found = [side_file(folder, name) for name in logs]
    return [
        path for path in (*found, report_file(folder), summary_file(folder), brief_file(folder)) if path is not None
    ]


def is_run(folder: Path) -> bool:
    """Whether a folder is a run's: it holds a conversation, or its record does, or a trace."""
    return any(
        is_file(folder / place / name)
        for place in _RECORD_FOLDERS
        for name in (CONVERSATION_NAMES + TRACE_NAMES if place else CONVERSATION_NAMES)
    )


def report_file(folder: Path) -> Path | None:
    """The harness report: detail_report.json, or the vqa branch's report.json."""
    return side_file(folder, "detail_report.json") or _own(folder, "report.json")


def summary_file(folder: Path) -> Path | None:
    """agent_summary.json, or the vqa branch's summary."""
    return side_file(folder, "agent_summary.json") or _own(folder, _RUN_SUMMARY)


def brief_file(folder: Path) -> Path | None:
    """The system prompt that the harness rendered, where the agent could not write it before where it could."""
    places = ("process/system_prompt.md", "tier_prompt.txt", "outputs/tier_prompt.txt", "workspace/tier_prompt.txt")
    return _own(folder, *places)


def find_plan(folder: Path, name: str, warnings: list[str] | None = None) -> Path | None:
    """plan.md or plan.png in any of the places where runs keep them; links that leave the run are not followed, and said."""
    for place in _PLAN_FOLDERS:
        candidate = folder / place / name
        if not is_file(candidate):
            continue
        if inside(folder, candidate):
            return candidate
        if warnings is not None:
            warnings.append(f"plan: {name} is a link that leaves the run; not followed")
    return None


def find_outputs(folder: Path, questions: Collection[str] = (), *, leave: bool = False) -> Outputs:
    """Files under agents_outputs/ (or agent_outputs/), by case; links that `leave` the run's folder are followed on wish.

    The vqa branch delivers `outputs/<question>/answer.json`: without such a folder, `outputs` with what lies in it and in
    the folders of questions (named in `questions`, or with an answer in them).
    """
    for place in _OUTPUT_FOLDERS:
        for name in _OUTPUT_NAMES:
            root = folder / place / name
            if _is_dir(root) and (leave or inside(folder, root)):
                return Outputs(root=root, files=tuple(_list_outputs(root, folder, leave=leave)))
    root = folder / "outputs"
    if _is_dir(root) and (leave or inside(folder, root)):
        known = frozenset(questions)
        cases = {name for name in _listing(str(root)).subfolders if name in known or is_file(root / name / _ANSWER)}
        if cases or is_file(folder / _RUN_SUMMARY):
            return Outputs(root=root, files=tuple(_list_outputs(root, folder, cases, leave)))
    return Outputs()


def _list_outputs(
    root: Path, run: Path, cases: Collection[str] | None = None, leave: bool = False
) -> Iterator[OutputFile]:
    """Regular files only: opening a pipe or a device of a hostile run would hang. Of `cases` alone, where given."""
    count = 0
    for folder, subfolders, files in os.walk(root, followlinks=True):
        here = Path(folder)
        deep = len(here.relative_to(root).parts) >= _MAX_OUTPUT_DEPTH
        wanted = subfolders if cases is None or here != root else [name for name in subfolders if name in cases]
        subfolders[:] = sorted(name for name in wanted if not deep and _may_enter(here / name, run, leave))
        for name in sorted(files):
            path = here / name
            if path == run / _RUN_SUMMARY:
                continue  # the harness's own file among the answers
            relative = path.relative_to(root).parts
            try:
                status = path.lstat()
                if stat.S_ISLNK(status.st_mode):
                    status = path.stat()
                    if not leave and not inside(run, path):
                        continue
            except OSError:
                continue
            if not stat.S_ISREG(status.st_mode):
                continue
            case = whole_text(relative[0]) if len(relative) > 1 else None
            below = whole_text("/".join(relative[1:] if case else relative))
            yield OutputFile(case=case, name=below, path=path, size=status.st_size)
        count += len(files) + len(subfolders)
        if count > MAX_OUTPUT_FILES:
            return


def _may_enter(folder: Path, run: Path, leave: bool) -> bool:
    """Not through a link that leaves the run (unless it may) or leads back to a folder around it."""
    if not folder.is_symlink():
        return True
    return (leave or inside(run, folder)) and not inside(folder, folder.parent)
