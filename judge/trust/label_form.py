"""Label files to be filled in with an editor: YAML with each question above its empty line.

`label next --out` writes them, and `label_sources` reads them back; what stays empty is not
labelled. A form names no verdict of a judge, so that labels do not follow it, but for the stratum
at its end.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...atomic_files import atomic_write
from ...error_codes.taxonomy import taxonomy
from ...errors import InputError
from ...rubrics.document import parse_document
from ...rubrics.model import Criterion, Rubric
from ...sanitize import sanitize_line
from ...trajectories.models import Tier
from ...trajectories.reading.json_bytes import decode, read_bytes
from ...trajectories.stages import stage_title
from ..questions import prompts
from .human_labels import Labels, label_path, value_by_tier
from .label_sources import YAML_SUFFIXES, each_label

_WIDTH = 98
_PARAGRAPH = re.compile(r"\n(?=S[1-5] |\n)")
_HEAD = (
    "To fill in: the answer stands after the colon, as in `S1a: 1`. What stays empty is not"
    " labelled and can be filled in later. Then: ambjudge label import"
)
_DRAWN = (
    "How the run was drawn: numbers are weighted by it, so leave it as it is. The stratum is a code"
    " that the judge fired, so look at it last."
)
_EVIDENCE = "Turns that show a value, by criterion, as in `S1a: [2, 4]`; may stay empty."
_CODES = (
    "Error codes. If none applies, write `codes: {}`; if nobody looked for them, leave it empty."
    " Else one line for each that applies, below `codes:` and indented, as in"
    ' `  E4: {turns: [5, 6], why: "The batch crashed twice on an empty mask."}`'
)
_NOT_APPLICABLE = "null if it does not apply: "


@dataclass(frozen=True)
class FormRun:
    """What a form says of its run."""

    transcript: str | None
    """The conversation file."""
    task: str | None
    tier: Tier | None
    turns: int
    rubric: Rubric | None
    """None if the text of the rubric is not at hand; then `criteria` are asked by their ids."""
    scored_by: str = ""
    """Id and version of the rubric of the scorecard."""
    criteria: tuple[str, ...] = ()


def label_form(labels: Labels, run: FormRun) -> str:
    """The form of a drawn run as the text of a YAML file."""
    return "\n".join(_form_lines(labels, run)) + "\n"


def write_forms(forms: Sequence[tuple[Labels, FormRun]], place: Path) -> list[Path]:
    """Write forms into a folder, as `<annotator>/<run>.yaml`, or all into one .yaml file.

    Existing forms are kept: new ones get other names, or follow those in the file. InputError if
    the file holds a single label or cannot be written.
    """
    if place.suffix in YAML_SUFFIXES:
        _append_forms(forms, place)
        return [place]
    if place.suffix in (".json", ".jsonl"):
        raise InputError("is no place for forms", "name a folder or a .yaml file", place)
    taken: set[Path] = set()
    for labels, run in forms:
        path = label_path(place, labels, ".yaml", lambda path: path in taken or path.exists())
        _write(path, label_form(labels, run), below=place)
        taken.add(path)
    return sorted(taken)


def _append_forms(forms: Sequence[tuple[Labels, FormRun]], file: Path) -> None:
    text = ""
    if file.exists():
        text = decode(read_bytes(file), file)
        if not isinstance(parse_document(text, file).value, list):
            raise InputError("holds a label and no list", "name another file or a folder", file)
        text = text.rstrip("\n") + "\n\n"
    items = [_as_item(_form_lines(labels, run)) for labels, run in forms]
    _write(file, text + "\n".join(items))


def _write(path: Path, text: str, below: Path | None = None) -> None:
    with atomic_write(path, below=below) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


def _as_item(lines: Iterator[str]) -> str:
    """The lines as an item of a YAML list."""
    item = []
    is_begun = False
    for line in lines:
        begins = not is_begun and line.startswith("run:")
        is_begun = is_begun or begins
        indentation = "- " if begins else "  "
        item.append((indentation if is_begun and line else "") + line)
    return "\n".join(item) + "\n"


# Lines


def _form_lines(labels: Labels, run: FormRun) -> Iterator[str]:
    task = f"on {run.task or 'an unknown task'}, tier {run.tier or 'unknown'}"
    yield from _comment(f"Labels of {labels.run} {task}, {run.turns} turns.")
    if run.transcript:
        yield from _comment(f"Where to look: {run.transcript}")
        yield from _comment(f"in the terminal: ambjudge browse {_folder(run.transcript)}")
    yield from _comment(_HEAD)
    yield f"run: {_quoted(labels.run)}"
    yield f"annotator: {_quoted(labels.annotator)}"
    yield ""
    yield from _criteria_lines(run)
    yield ""
    yield from _comment(_EVIDENCE)
    yield "evidence:"
    yield ""
    yield from _comment(_CODES)
    for code in taxonomy("paper").codes:
        yield from _comment(f"{code.code} {code.name}: {code.description}", hanging=3)
    yield "codes:"
    yield ""
    yield from _stage_lines(run.turns)
    yield ""
    yield "notes:"
    if labels.drawn is not None:
        yield ""
        yield from _comment(_DRAWN)
        design = labels.drawn.model_dump(exclude_defaults=True)
        yield f"drawn: {_quoted(design)}"


def _criteria_lines(run: FormRun) -> Iterator[str]:
    yield "criteria:"
    if run.rubric is None:
        text = f"The text of rubric {run.scored_by} is not at hand: see its file."
        yield from _comment(text, indentation="  ")
        for id in run.criteria:
            yield f"  {id}:"
        return
    questions = f"{run.rubric.id} {run.rubric.version}"
    if run.scored_by not in ("", questions):
        text = (
            f"The run was scored by rubric {run.scored_by}; these are the questions of {questions}."
        )
        yield from _comment(text, indentation="  ")
    by_tier = []
    for stage in run.rubric.judged_stages:
        yield ""
        yield from _comment(f"{stage_title(stage)}", indentation="  ")
        if run.rubric.preamble and stage == run.rubric.judged_stages[0]:
            yield from _comment(run.rubric.preamble, indentation="  ")
        for criterion in run.rubric.criteria(stage):
            if value_by_tier(criterion, run.tier)[0]:
                by_tier.append(criterion.id)
            else:
                yield from _criterion_lines(criterion)
    if by_tier:
        yield ""
        text = f"The tier decides {', '.join(by_tier)}: nothing to label."
        yield from _comment(text, indentation="  ")


def _criterion_lines(criterion: Criterion) -> Iterator[str]:
    """The question, the levels, and the line to fill in."""
    yield ""
    yield from _comment(f"{criterion.id}, {criterion.title}: {criterion.text}", indentation="  ")
    for level in criterion.scale:
        yield from _comment(f"{level.value:g}: {level.text}", indentation="  ", hanging=3)
    if criterion.conditional is not None:
        yield from _comment(_NOT_APPLICABLE + criterion.conditional, indentation="  ", hanging=3)
    yield from _comment(f"See: {', '.join(criterion.evidence)}", indentation="  ")
    yield f"  {criterion.id}:"


def _stage_lines(turns: int) -> Iterator[str]:
    """The stage of each turn, after the question that judges are asked."""
    question = prompts.load("stages").partition("<<items>>")[0].strip()
    for paragraph in _PARAGRAPH.split(question):
        yield from _comment(" ".join(paragraph.split()), hanging=3)
    yield "stages:"
    for turn in range(1, turns + 1):
        yield f"  {turn}:"


def _comment(text: str, *, indentation: str = "", hanging: int = 0) -> Iterator[str]:
    """A text as lines of comments, each of its lines wrapped."""
    for paragraph in text.splitlines():
        printable = "".join(c for c in sanitize_line(paragraph) if c.isprintable())
        yield from textwrap.wrap(
            printable,
            _WIDTH,
            initial_indent=f"{indentation}# ",
            subsequent_indent=f"{indentation}# {' ' * hanging}",
            break_on_hyphens=False,
            break_long_words=False,
        )


def _folder(transcript: str) -> str:
    """The run folder of a conversation file; a path without a suffix is the folder."""
    path = Path(transcript)
    folder = path.parent if path.suffix else path
    return str(folder.parent if folder.name == "process" else folder)


def _quoted(value: str | Mapping[str, Any]) -> str:
    """The value as JSON, which YAML includes but for some characters: these are escaped."""
    escaped = []
    for char in json.dumps(value, ensure_ascii=False):
        if char.isprintable():
            escaped.append(char)
        else:
            escaped.append(f"\\U{ord(char):08x}")
    return "".join(escaped)


def drawn_runs(place: Path, annotator: str) -> set[str]:
    """The runs that an annotator has, labelled or to be labelled, in a folder or file.

    InputError for a file that cannot be read, as its run would be drawn again.
    """
    runs = set()
    for entry in each_label(place) if place.exists() else ():
        if isinstance(entry, InputError):
            raise entry
        if entry.labels.annotator == annotator:
            runs.add(entry.labels.run)
    return runs
