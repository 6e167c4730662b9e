"""ambjudge rubric: list, show, compare, validate and begin rubrics."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..config import load
from ..errors import InputError
from .grouped_help import CommandGroup, example_lines, option
from .options import json_option
from .path_types import LocalPath
from .sessions import store_place

if TYPE_CHECKING:
    from ..analysis.report.changes_result import Changes
    from ..rubrics.model import Criterion, Rubric


@click.group(
    "rubric", cls=CommandGroup, epilog=example_lines("ambjudge rubric show vqa --tier lite")
)
def command() -> None:
    """List, show, compare and validate rubrics."""


@command.command("list")
@json_option()
def list_(as_json: bool) -> int:
    """List the built-in rubrics."""
    from ..rubrics.load import builtin_ids, load_rubric

    rubrics = [load_rubric(name) for name in builtin_ids()]
    if as_json:
        console.raw(json.dumps([_summary(rubric) for rubric in rubrics], ensure_ascii=False))
        return 0
    console.table(
        ["Id", "Version", "Track", "Criteria", "Source", "Title"],
        [
            [
                rubric.id,
                rubric.version,
                rubric.track or "any",
                str(len(rubric.criteria())),
                "derived" if rubric.derived else "published",
                rubric.title,
            ]
            for rubric in rubrics
        ],
        right=[3],
        flexible=5,
    )
    return 0


def _summary(rubric: Rubric) -> dict[str, Any]:
    return {
        "id": rubric.id,
        "version": rubric.version,
        "track": rubric.track,
        "title": rubric.title,
        "criteria": len(rubric.criteria()),
        "derived": rubric.derived,
        "sha256": rubric.sha256,
    }


@command.command("show")
@click.argument("rubric", metavar="ID|FILE|HASH")
@click.argument("paths", nargs=-1, type=LocalPath(), metavar="[PATH]...")
@option(
    "--tier",
    type=click.Choice(["lite", "standard", "pro"]),
    help="Say what this tier credits and leaves out.",
)
@json_option("Print the rubric as JSON, with every shorthand written out.")
@option(
    "--yaml",
    "as_yaml",
    heading="Output",
    is_flag=True,
    help="Print the rubric as YAML that can be read back, without comments.",
)
@click.pass_obj
def show(
    obj: dict[str, Any],
    rubric: str,
    paths: tuple[str, ...],
    tier: str | None,
    as_json: bool,
    as_yaml: bool,
) -> int:
    """Show one rubric in full, or the text behind a hash.

    HASH: the first digits of the hash of a rubric, criterion, error code or prompt that scorecards
    and verdicts name, in the store of PATH, by default that of the working directory.
    """
    from ..rubrics.load import dump_rubric
    from .hashed_texts import rubric_or_text

    loaded = rubric_or_text(obj, rubric, paths)
    if isinstance(loaded, str):
        if as_json:
            console.raw(json.dumps({"text": loaded}, ensure_ascii=False))
        else:
            console.say(loaded)
        return 0
    if as_yaml:
        console.raw(dump_rubric(loaded).rstrip())
    elif as_json:
        console.raw(loaded.model_dump_json())
    else:
        _show_rubric(loaded, tier)
    return 0


def _show_rubric(rubric: Rubric, tier: str | None) -> None:
    from ..trajectories.stages import stage_title

    console.say(f"{rubric.id} {rubric.version}: {rubric.title}")
    console.say(console.wrap(f"source: {rubric.source}"))
    console.say(f"sha256 {rubric.sha256}")
    if rubric.preamble:
        console.say(console.wrap(f"preamble: {rubric.preamble}"))
    for name, stage in sorted(rubric.stages.items()):
        console.say()
        checks = "" if stage.criteria else ": deterministic checks of the output files"
        console.say(f"{stage_title(name)}, weight {stage.weight:g}{checks}")
        for criterion in stage.criteria:
            _show_criterion(criterion, tier)


def _show_criterion(criterion: Criterion, tier: str | None) -> None:
    from ..rubrics.conditions import conditions

    notes = conditions(criterion, tier)
    brackets = f"  [{'; '.join(notes)}]" if notes else ""
    console.say(f"  {criterion.id}  {criterion.title}{brackets}")
    console.say(console.wrap(criterion.text, "        "))
    if criterion.conditional:
        console.say(console.wrap(f"applies when: {criterion.conditional}", "        "))
    if not criterion.binary:
        for level in criterion.scale:
            console.say(console.wrap(level.text, "             ", f"        {level.value:<4g} "))
    sources = f"evidence: {', '.join(criterion.evidence)} · source: {criterion.source}"
    console.say(console.wrap(sources, "        "))


@command.command("new", epilog=example_lines("ambjudge rubric new vqa > mine.yaml"))
@click.argument("rubric", metavar="[ID]", required=False)
def new(rubric: str | None) -> int:
    """Print a commented rubric to begin your own with.

    With an ID, a copy of that rubric; without one, two questions that fit runs of any kind.
    """
    from ..rubrics.load import starter_rubric

    console.raw(starter_rubric(rubric).rstrip())
    return 0


@command.command("validate")
@click.argument("files", nargs=-1, required=True, type=LocalPath(), metavar="FILE...")
def validate(files: tuple[str, ...]) -> int:
    """Check rubric files: every problem with its line, and notes on what may not be intended.

    Exit 1 if there is a problem, 2 if a file cannot be read.
    """
    from ..rubrics.load import file_notes, validate_file
    from ..trajectories.reading.json_bytes import read_bytes

    has_problems = has_unreadable = False
    for name in files:
        try:
            read_bytes(Path(name))
        except InputError as error:
            has_unreadable = True
            console.error(error)
            continue
        problems = validate_file(name)
        for problem in problems or file_notes(name):
            location = f"{name}:{problem.line}:{problem.column}"
            kind = "" if problems else "note: "
            hint = f" ({problem.hint})" if problem.hint else ""
            console.say(f"{location}: {kind}{problem.message}{hint}")
        if problems:
            has_problems = True
        else:
            console.say(f"{name}: valid")
    if has_unreadable:
        return 2
    return 1 if has_problems else 0


@command.command("diff", epilog=example_lines("ambjudge rubric diff vqa my-vqa.yaml runs/"))
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.argument("paths", nargs=-1, type=LocalPath(), metavar="[PATH]...")
@option(
    "--store",
    metavar="FILE|URL",
    help="The store of the runs.  [default: the one of PATH]",
)
@json_option()
@click.pass_obj
def diff(
    obj: dict[str, Any], a: str, b: str, paths: tuple[str, ...], store: str | None, as_json: bool
) -> int:
    """Show what changed between two rubrics, and which criteria would have to be judged again.

    A, B: a rubric's ID, FILE, or the first digits of its hash in the store. With PATH, a folder of
    runs with verdicts in a store: how many stored verdicts are concerned and, after a rejudge, how
    scores changed and why.
    """
    from ..rubrics.diff import diff_rubrics, render_diff
    from .hashed_texts import rubric_of

    old, new = (rubric_of(obj, name, paths, store) for name in (a, b))
    result = diff_rubrics(old, new)
    place = None
    stale: dict[str, int] = {}
    changes: Changes | None = None
    if paths or store:
        place = store_place(load(obj["config"]), paths, store)
    if place:
        stale, changes = _stored_changes(place, old, new)
    if as_json:
        data = result.model_dump(mode="json")
        if changes is not None:
            data["stale_verdicts"] = stale
            data["changes"] = changes.to_dict()
        console.raw(json.dumps(data, ensure_ascii=False))
        return 0
    console.say(render_diff(result))
    if changes is not None:
        from .score_changes import show_changes

        counts = ", ".join(f"{criterion} {count}" for criterion, count in stale.items())
        console.say()
        console.say(f"Scorecards with a verdict on the old text: {counts or 'none'}")
        show_changes(changes)
    return 0


def _stored_changes(store: str | Path, old: Rubric, new: Rubric) -> tuple[dict[str, int], Changes]:
    """How many verdicts are on criteria whose text changed or that are gone, by criterion, and what
    changed in the runs with scorecards by both rubrics."""
    from ..analysis.report.changes_result import collect
    from ..judge.rejudge.card_changes import rubric_pairs
    from ..judge.store import open_store
    from ..rubrics.load import criterion_sha256

    new_texts = {criterion_sha256(criterion) for criterion in new.criteria()}
    changed = {
        criterion.id for criterion in old.criteria() if criterion_sha256(criterion) not in new_texts
    }
    counts: Counter[str] = Counter()
    with open_store(store, create=False) as opened:
        for _, card in opened.cards_of_rubric(old.sha256):
            for stage in card.stages.values():
                counts.update(
                    result.id
                    for result in stage.criteria
                    if result.status in ("scored", "unscored") and result.id in changed
                )
        return dict(sorted(counts.items())), collect(
            rubric_pairs(opened, old, new), with_board=False
        )


@command.command("schema")
def schema() -> int:
    """Print the JSON Schema of rubric files."""
    from importlib.resources import files

    console.say((files("ambjudge.rubrics") / "rubric.schema.json").read_text("utf-8").rstrip())
    return 0
