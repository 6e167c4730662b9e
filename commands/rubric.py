"""ambjudge rubric: list, show, validate, diff, schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..config import load
from .options import json_option, store_place, tier_option

if TYPE_CHECKING:
    from ..judge.rejudge.update import CardUpdate
    from ..rubrics.model import Rubric


@click.group("rubric", epilog="\b\nExample:\n  ambjudge rubric show vqa --tier lite")
def command() -> None:
    """List, show, compare and validate rubrics."""


@command.command("list")
@json_option()
def list_(as_json: bool) -> int:
    """The built-in rubrics."""
    from ..rubrics.load import builtin_ids, load_rubric

    rubrics = [load_rubric(name) for name in builtin_ids()]
    if as_json:
        console.raw(
            json.dumps(
                [
                    {
                        "id": r.id,
                        "version": r.version,
                        "track": r.track,
                        "title": r.title,
                        "criteria": len(r.criteria()),
                        "derived": r.derived,
                        "sha256": r.sha256,
                    }
                    for r in rubrics
                ],
                ensure_ascii=False,
            )
        )
        return 0
    console.table(
        ["Id", "Version", "Track", "Criteria", "Source", "Title"],
        [
            [
                r.id,
                r.version,
                r.track or "any",
                str(len(r.criteria())),
                "derived" if r.derived else "published",
                r.title,
            ]
            for r in rubrics
        ],
        right=[3],
        flexible=5,
    )
    return 0


@command.command("show")
@click.argument("rubric", metavar="ID|FILE")
@tier_option("Say what this tier credits and leaves out.")
@json_option("The rubric as JSON, every shorthand written out.")
@click.option(
    "--yaml",
    "as_yaml",
    is_flag=True,
    help="The rubric as YAML that can be read back, without comments.",
)
def show(rubric: str, tier: str | None, as_json: bool, as_yaml: bool) -> int:
    """One rubric in full."""
    from ..rubrics.load import dump_rubric, load_rubric
    from ..trajectories.stages import stage_title

    chosen = load_rubric(rubric)
    if as_yaml:
        console.raw(dump_rubric(chosen).rstrip())
        return 0
    if as_json:
        console.raw(chosen.model_dump_json())
        return 0
    console.say(f"{chosen.id} {chosen.version}: {chosen.title}")
    console.say(console.wrap(f"source: {chosen.source}"))
    console.say(f"sha256 {chosen.sha256}")
    if chosen.preamble:
        console.say(console.wrap(f"told before: {chosen.preamble}"))
    for stage in sorted(chosen.stages):
        part = chosen.stages[stage]
        console.say()
        console.say(
            f"{stage_title(stage)}, weight {part.weight:g}"
            + ("" if part.criteria else ": deterministic checks of the output files")
        )
        for c in part.criteria:
            notes = []
            if tier and tier in c.credit:
                notes.append(f"credited in {tier}")
            elif c.credit and not tier:
                notes.append(f"credited in {', '.join(c.credit)}")
            if c.tiers is not None:
                notes.append(
                    "left out" if tier and tier not in c.tiers else f"only in {', '.join(c.tiers)}"
                )
            if c.requires:
                notes.append(f"0 without {', '.join(c.requires)}")
            if c.weight != 1:
                notes.append(f"weight {c.weight:g}")
            console.say(f"  {c.id}  {c.title}" + (f"  [{'; '.join(notes)}]" if notes else ""))
            console.say(console.wrap(c.text, "        "))
            if c.conditional:
                console.say(console.wrap(f"applies when: {c.conditional}", "        "))
            if not c.binary:
                for level in c.scale:
                    console.say(
                        console.wrap(
                            f"{level.text}", "             ", f"        {level.value:<4g} "
                        )
                    )
            console.say(
                console.wrap(f"evidence: {', '.join(c.evidence)} · source: {c.source}", "        ")
            )
    return 0


@command.command("new", epilog="\b\nExample:\n  ambjudge rubric new vqa > mine.yaml")
@click.argument("rubric", metavar="[ID]", required=False)
def new(rubric: str | None) -> int:
    """A rubric to begin your own with, commented, on stdout.

    A copy of the one with this id; without one, two questions that can be put to runs of any kind.
    """
    from ..rubrics.load import starter_rubric

    console.raw(starter_rubric(rubric).rstrip())
    return 0


@command.command("validate")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
def validate(files: tuple[str, ...]) -> int:
    """Check rubric files; every problem with its line, and what may not be meant as a note.

    Exit 1 when there is a problem, 2 when a file cannot be read.
    """
    from ..errors import InputError
    from ..rubrics.load import file_notes, validate_file
    from ..trajectories.reading.json_bytes import read_bytes

    bad = unreadable = 0
    for name in files:
        try:
            read_bytes(Path(name))
        except InputError as error:
            unreadable += 1
            console.error(error)
            continue
        problems = validate_file(name)
        bad += bool(problems)
        for problem in problems or file_notes(name):
            console.say(
                f"{name}:{problem.line}:{problem.column}:"
                f" {'' if problems else 'note: '}{problem.message}"
                + (f" ({problem.hint})" if problem.hint else "")
            )
        if not problems:
            console.say(f"{name}: valid")
    return 2 if unreadable else 1 if bad else 0


@command.command("diff", epilog="\b\nExample:\n  ambjudge rubric diff vqa my-vqa.yaml runs/")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATH]...")
@click.option(
    "--store",
    metavar="FILE|URL",
    help="The store of the runs.  [default: the one of PATH]",
)
@json_option()
@click.pass_obj
def diff(
    obj: dict[str, Any], a: str, b: str, paths: tuple[str, ...], store: str | None, as_json: bool
) -> int:
    """What changed between two rubrics, and which criteria would have to be judged again.

    With PATH, a folder of runs with verdicts in a store: how many stored verdicts that concerns,
    and, where a rejudge was done, each score change split into text, weights, judge and data.
    """
    from ..rubrics.diff import diff_rubrics, render_diff
    from ..rubrics.load import load_rubric

    old, new = load_rubric(a), load_rubric(b)
    result = diff_rubrics(old, new)
    place = store_place(load(obj["config"]), paths, store) if paths or store else None
    stale, runs = _stored(place, old, new) if place else ({}, ())
    if as_json:
        from dataclasses import asdict

        data = result.model_dump(mode="json")
        if place:
            data |= {
                "stale_verdicts": stale,
                "changes": [asdict(r.change) for r in runs if r.change is not None],
            }
        console.raw(json.dumps(data, ensure_ascii=False))
        return 0
    console.say(render_diff(result))
    if place:
        from .rejudge import show_changes

        console.say()
        console.say(
            "Scorecards that rest on a verdict about the old text: "
            + (", ".join(f"{name} {n}" for name, n in stale.items()) or "none")
        )
        show_changes(runs)
    return 0


def _stored(
    store: str | Path, old: Rubric, new: Rubric
) -> tuple[dict[str, int], tuple[CardUpdate, ...]]:
    """Verdicts on criteria whose text changed or went, by id; and runs with scorecards by both
    rubrics."""
    from collections import Counter

    from ..judge.rejudge.update import changes_between
    from ..judge.store import open_store
    from ..rubrics.load import criterion_sha256

    kept = {criterion_sha256(c) for c in new.criteria()}
    gone = {c.id for c in old.criteria() if criterion_sha256(c) not in kept}
    counts: Counter[str] = Counter()
    with open_store(store, create=False) as opened:
        for _, card in opened.cards_of_rubric(old.sha256):
            judged = (
                c
                for stage in card.stages.values()
                for c in stage.criteria
                if c.status in ("scored", "unscored")
            )
            counts.update(c.id for c in judged if c.id in gone)
        return dict(sorted(counts.items())), changes_between(opened, old, new)


@command.command("schema")
def schema() -> int:
    """The JSON Schema of rubric files."""
    from importlib.resources import files

    console.say((files("ambjudge.rubrics") / "rubric.schema.json").read_text("utf-8").rstrip())
    return 0
