"""ambjudge tasks: what tasks demand of their outputs, and the reading of briefs by a model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..config import load
from ..errors import AmbjudgeError, ConfigError, InputError
from .grouped_help import CommandGroup, example_lines, option
from .options import JUDGE, MAX_COST, PATHS, json_option
from .path_types import LocalPath
from .runs import list_runs
from .sessions import judge_of, score_options

if TYPE_CHECKING:
    from ..judge.base import Judge
    from ..judge.questions.briefs import ReadBrief
    from ..trajectories.models import Run

PUBLIC = option(
    "--public",
    metavar="DIR",
    type=LocalPath(),
    help="The public inputs, with DIR/<task>/task.yaml.",
)


@click.group(
    "tasks",
    cls=CommandGroup,
    epilog=example_lines("ambjudge tasks read runs/ --public data/public --judge openai/gpt-5.4"),
)
def command() -> None:
    """Show what tasks demand of their outputs, or let a model read it in their briefs."""


@command.command("list")
@PUBLIC
@json_option()
@click.pass_obj
def list_(obj: dict[str, Any], /, public: str | None, as_json: bool) -> int:
    """List the demands of the published tasks and of those among the public inputs."""
    from ..judge.checks.public_inputs import TASK_FILE
    from ..tasks.output_format import published_formats, read_format

    formats = {
        task: ("ambjudge", demands)
        for task, demands in published_formats().items()
        if task.endswith("-task")  # the others are aliases
    }
    folder = load(obj["config"]).get("public", public)
    if folder is not None:
        for file in sorted(Path(folder).glob(f"*/{TASK_FILE}")):
            formats[file.parent.name] = (str(file), read_format(file))
    rows = [
        (task, source, demands.model_dump(mode="json", exclude_defaults=True))
        for task, (source, demands) in formats.items()
    ]
    if as_json:
        keys = ("task", "source", "demands")
        console.raw(json.dumps([dict(zip(keys, row, strict=True)) for row in rows]))
        return 0
    lines = [[task, source, _in_words(demands)] for task, source, demands in rows]
    console.table(["Task", "Source", "Demands"], lines, flexible=2)
    return 0


def _in_words(demands: dict[str, Any]) -> str:
    parts = []
    for name, value in demands.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        parts.append(f"{name.replace('_', ' ')}: {text}")
    return "; ".join(parts)


@command.command("read")
@PATHS
@PUBLIC
@JUDGE
@MAX_COST
@click.pass_obj
def read(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Let a model read the brief of each task once, and write its demands to DIR/<task>/task.yaml.

    Published tasks and tasks with a file for this brief are left as they are. Check the files
    before you score: S4 and S5 are computed from them.
    """
    settings, quiet = load(obj["config"]), obj["quiet"]
    folder = settings.get("public", flags["public"])
    if folder is None:
        raise ConfigError("no folder to write to", "name the public inputs with --public DIR")
    public = Path(folder)
    public.mkdir(parents=True, exist_ok=True)
    options = score_options(settings, flags)
    judge = judge_of(settings, flags)
    run_list = list_runs(paths)
    if not run_list.files:
        return 2
    tasks, unreadable = _unread_tasks(run_list.files, public)
    from ..judge.session import make_scorer

    guarded = make_scorer(judge, options, None).judge
    written = asyncio.run(_read_all(tasks, guarded, public, quiet))
    console.note(f"{written} of {len(tasks)} briefs were read", quiet)
    is_complete = run_list.is_complete and not unreadable and written == len(tasks)
    return 0 if is_complete else 1


def _unread_tasks(files: Sequence[Path], public: Path) -> tuple[dict[str, Run], int]:
    """One run of each task whose brief was not read yet, and the number of unreadable runs."""
    from ..tasks.output_format import published_formats
    from ..trajectories.reading.load import load_conversation

    tasks: dict[str, Run] = {}
    unreadable = 0
    for file in files:
        try:
            run = load_conversation(file)
        except InputError as error:
            console.error(error)
            unreadable += 1
            continue
        task = run.task
        if not task or task in tasks or task in published_formats() or not run.brief.strip():
            continue
        if _is_folder_name(task) and not _was_read(run, public / task):
            tasks[task] = run
    return tasks, unreadable


def _is_folder_name(task: str) -> bool:
    return task == Path(task).name and task.isprintable() and not task.startswith(".")


def _was_read(run: Run, folder: Path) -> bool:
    """Whether the task's file is of this run's brief, or written by hand."""
    from ..judge.checks.public_inputs import TASK_FILE
    from ..judge.questions.briefs import brief_sha256
    from ..tasks.output_format import read_task_file

    file = folder / TASK_FILE
    return file.is_file() and read_task_file(file).brief_sha256 in ("", brief_sha256(run.brief))


async def _read_all(tasks: dict[str, Run], judge: Judge, public: Path, quiet: bool) -> int:
    """Read the briefs one by one, writing each file at once; the number of files written."""
    from ..judge.questions.briefs import read_brief
    from ..rubrics.load import rubric_for

    written = 0
    for task, run in tasks.items():
        try:
            answer = await read_brief(run, rubric_for(run.track, task), judge)
        except AmbjudgeError as error:
            if not written and error.exit_code == 3:
                raise  # nothing works: no use in trying the others
            console.error(error)
            continue
        file = _write(_TaskBrief(task, run), answer, public)
        written += 1
        console.note(f"{file}: {_in_words(answer.output_format.model_dump(exclude_defaults=True))}")
        for reason in answer.rejected:
            console.note(f"  rejected: {reason}", quiet)
    return written


@dataclass(frozen=True)
class _TaskBrief:
    task: str
    run: Run


def _write(brief: _TaskBrief, answer: ReadBrief, public: Path) -> Path:
    """Write a task's file, with the words of the brief as comments; its path."""
    from ..atomic_files import atomic_write
    from ..judge.checks.public_inputs import TASK_FILE
    from ..judge.questions.briefs import brief_sha256
    from ..sanitize import sanitize_line

    lines = [
        f"# What {brief.task} demands of its outputs, read by a model: check it.",
        f"brief_sha256: {brief_sha256(brief.run.brief)}",
    ]
    demands = answer.output_format.model_dump(mode="json", exclude_defaults=True)
    for name, value in demands.items():
        text = f"{name}: {json.dumps(value, ensure_ascii=False)}"  # JSON is YAML in flow style
        quote = answer.quotes.get(name)
        lines.append(text if quote is None else f"{text}  # {sanitize_line(quote)}")
    file = public / brief.task / TASK_FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(file) as part:
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file
