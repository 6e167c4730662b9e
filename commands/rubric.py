"""ambjudge rubric: list, show, validate, diff, schema."""

from __future__ import annotations

import json

import click


@click.group("rubric", epilog="\b\nExample:\n  ambjudge rubric show vqa --tier lite")
def command() -> None:
    """List, show, compare and validate rubrics."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
def list_(as_json: bool) -> int:
    """The built-in rubrics."""
    from ..console import raw, table
    from ..rubrics.load import builtin_ids, load_rubric

    rubrics = [load_rubric(name) for name in builtin_ids()]
    if as_json:
        raw(json.dumps([{"id": r.id, "version": r.version, "track": r.track, "title": r.title, "criteria": len(r.criteria()),
                         "derived": r.derived, "sha256": r.sha256} for r in rubrics], ensure_ascii=False))  # fmt: skip
        return 0
    table(["Id", "Version", "Track", "Criteria", "Source", "Title"],
          [[r.id, r.version, r.track or "any", str(len(r.criteria())), "derived" if r.derived else "published", r.title] for r in rubrics],
          right=[3], flexible=5)  # fmt: skip
    return 0


@command.command("show")
@click.argument("rubric", metavar="ID|FILE")
@click.option(
    "--tier", type=click.Choice(["lite", "standard", "pro"]), help="Say what this tier credits and leaves out."
)
@click.option("--json", "as_json", is_flag=True, help="The rubric as JSON, every shorthand written out.")
def show(rubric: str, tier: str | None, as_json: bool) -> int:
    """One rubric in full."""
    from ..console import raw, say, wrap
    from ..rubrics.load import load_rubric
    from ..trajectories.models import STAGE_NAMES

    chosen = load_rubric(rubric)
    if as_json:
        raw(chosen.model_dump_json())
        return 0
    say(f"{chosen.id} {chosen.version}: {chosen.title}")
    say(wrap(f"source: {chosen.source}"))
    say(f"sha256 {chosen.sha256}")
    for stage in sorted(chosen.stages):
        part = chosen.stages[stage]
        say()
        say(
            f"{stage} {STAGE_NAMES[stage]}, weight {part.weight:g}"
            + ("" if part.criteria else ": deterministic checks of the output files")
        )
        for c in part.criteria:
            notes = []
            if tier and tier in c.credit:
                notes.append(f"credited in {tier}")
            elif c.credit and not tier:
                notes.append(f"credited in {', '.join(c.credit)}")
            if c.tiers is not None:
                notes.append("left out" if tier and tier not in c.tiers else f"only in {', '.join(c.tiers)}")
            if c.requires:
                notes.append(f"0 without {', '.join(c.requires)}")
            if c.weight != 1:
                notes.append(f"weight {c.weight:g}")
            say(f"  {c.id}  {c.title}" + (f"  [{'; '.join(notes)}]" if notes else ""))
            say(wrap(c.text, "        "))
            if c.conditional:
                say(wrap(f"applies when: {c.conditional}", "        "))
            if not c.binary:
                for level in c.scale:
                    say(wrap(f"{level.text}", "             ", f"        {level.value:<4g} "))
            say(wrap(f"evidence: {', '.join(c.evidence)} · source: {c.source}", "        "))
    return 0


@command.command("validate")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
def validate(files: tuple[str, ...]) -> int:
    """Check rubric files; every problem with its line. Exit 1 when there is one."""
    from ..console import say
    from ..rubrics.load import validate_file

    bad = 0
    for name in files:
        problems = validate_file(name)
        bad += bool(problems)
        for problem in problems:
            say(
                f"{name}:{problem.line}:{problem.column}: {problem.message}"
                + (f" ({problem.hint})" if problem.hint else "")
            )
        if not problems:
            say(f"{name}: valid")
    return 1 if bad else 0


@command.command("diff")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
def diff(a: str, b: str, as_json: bool) -> int:
    """What changed between two rubrics, and which criteria would have to be judged again."""
    from ..console import raw, say
    from ..rubrics.diff import diff_rubrics, render_diff
    from ..rubrics.load import load_rubric

    result = diff_rubrics(load_rubric(a), load_rubric(b))
    if as_json:
        raw(result.model_dump_json())
    else:
        say(render_diff(result))
    return 0


@command.command("schema")
def schema() -> int:
    """The JSON Schema of rubric files."""
    from importlib.resources import files

    from ..console import say

    say((files("ambjudge.rubrics") / "rubric.schema.json").read_text("utf-8").rstrip())
    return 0
