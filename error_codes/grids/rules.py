"""E3 and E5: outputs that do not lie on the input's grid, as the way of every value from loading to saving shows.

An array that was reoriented or resampled and is saved with the input's affine, or saved on the new grid though the brief wants
the input's; boxes that are scaled by the size of an image that was resized before, or whose x comes from the row. It counts only
where inputs are shown to differ, so that the change did something.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...trajectories.code_parts import parse, split
from ..context import CodeContext
from ..registry import Finding, detector
from ..serving import run_modules, written_modules
from ..verification.case_signs import owns_up
from .boxes import SQUEEZED, TWICE, boxes_of
from .flow import Flow
from .inputs import differ
from .values import Seen

MAX_CODE = 100_000
_INPUT_GRID = re.compile(
    r"\b(?:affine|geometry|header|orientation|spacing|origin|grid|space)\b[^.\n]{0,60}\b(?:of (?:the|its|each)|as (?:the|in)|input|ct|mri?|scan|image|volume|\w{1,20}\.nii)\b"
    r"|\b(?:input|ct|mri?|scan|image|volume|source|native|original)(?:'s)?\b[^.\n]{0,40}\b(?:affine|geometry|header|orientation|grid|space)\b",
    re.I,
)
_SAME_SIZE = re.compile(
    r"\b(?:same|identical|equal|input'?s?|own|original) (?:shape|size|dimensions)\b|\b(?:shape|size|dimensions) (?:as|of) (?:the|its|each)\b",
    re.I,
)
_PIXELS = re.compile(r"\b(?:pixels?|px|coordinates)\b", re.I)
_ASIDE = re.compile(r"debug|overlay|preview|/tmp/|cache|figure|\bqc\b", re.I)
_RELEVANT = re.compile(
    r"canonical|reorient|ornt|[Oo]rient|Canonical|[Rr]esampl|[Ss]pacing|zoom\(|[Rr]esize|interpolate"
)
_CHANGED = re.compile(r"(?m)^[^#\n]{0,200}\b(?:sed\s+-i|patch)\b")


class Broken(NamedTuple):
    """What lies out of place, and whether a wrong coordinate or affine is in the files for it."""

    why: str
    asked: bool
    """The brief names the grid that was left: a defect of the files."""


@detector("way_back_missing", code="E3", stage="S3", independence="from_trace")
def way_back_missing(ctx: CodeContext) -> Iterable[Finding]:
    """Outputs are displaced for some inputs, and no check held them against the input in place."""
    found = broken(ctx)
    if found is not None and not owns_up(ctx):
        turns = [t for t in ctx.model_turns if ctx.stage(t) in ("S3", "S4")] or [ctx.final_write or ctx.last]
        yield Finding(tuple(sorted({*turns, *ctx.checks, ctx.last})), f"{found.why}; no check saw it.", 0.75)


@detector("off_the_input_grid", code="E5", stage="S5", independence="from_trace")
def off_the_input_grid(ctx: CodeContext) -> Iterable[Finding]:
    """Files lie on another grid, or boxes in other coordinates, than the brief names."""
    found = broken(ctx)
    if found is not None and found.asked and ctx.final_write is not None:
        yield Finding((ctx.final_write,), f"{found.why}, although the brief wants the input's own.", 0.75)


def broken(ctx: CodeContext) -> Broken | None:
    """What is out of place in the delivered files, None where nothing is known to be."""
    track = ctx.run.track
    if (
        ctx.final_write is None
        or not ctx.handed_over
        or track not in ("segmentation", "synthesis", "detection", "enhancement")
    ):
        return None
    for turn in [t for t in reversed(ctx.write_turns) if t not in ctx.failed_turns][:4]:
        trees = _programs(ctx, turn)
        if not trees:
            continue
        seen = Flow(trees).seen
        found = next(_boxes(ctx, seen, trees) if track == "detection" else volumes_of(ctx, seen), None)
        if found is not None or seen.saved or seen.boxes or seen.written:
            return found
    return None


def _programs(ctx: CodeContext, turn: int) -> list[ast.Module]:
    """What a turn ran, as parsed Python: the modules that it names, then its own code; nothing where one was changed in place."""
    parts = [p for a in ctx.turn(turn).actions for p in split(a)]
    own = [p.text for p in parts if p.kind == "python"]
    shell = "\n".join(p.text for p in parts if p.kind != "file")
    texts = [*reversed(run_modules(shell, written_modules(ctx.run, turn))), *own]
    if ctx.run.track != "detection" and not any(_RELEVANT.search(text[:MAX_CODE]) for text in texts):
        return []
    if any(_CHANGED.search(t.code[:MAX_CODE]) for t in ctx.run.turns[:turn]):
        return []
    trees = [tree for text in texts if (tree := parse(text[:MAX_CODE])) is not None]
    return trees if len(trees) == len(texts) else []


def volumes_of(ctx: CodeContext, seen: Seen) -> Iterator[Broken]:
    """Volumes saved out of place: every one that the code puts together, copies beside them left out."""
    saved = [s for s in seen.saved if not _ASIDE.search(s[2])]
    # an affine that is another than the input's is wrong whatever is known of the array
    bad = [(a, g) for a, g, _ in saved if (a.pending and (g.native or g.pending)) or "orient" in g.pending]
    if not bad or len(bad) < len(saved):
        yield from () if saved else _arrays_of(ctx, seen)
        return
    array, geometry = bad[0]
    asked = _INPUT_GRID.search(_output(ctx.run.brief)) is not None
    for kind in sorted(array.pending | (geometry.pending & {"orient"})):
        if not differ(ctx, kind, array.target):
            continue
        if kind in geometry.pending:
            if asked:
                made = array.how or geometry.how or "the reorientation"
                yield Broken(f"The volumes are saved on the grid that {made} made, with its affine", True)
        elif geometry.native and not geometry.done:
            yield Broken(
                f"Arrays that {array.how} put on another grid are saved with the input's affine and never put back",
                asked,
            )


def _arrays_of(ctx: CodeContext, seen: Seen) -> Iterator[Broken]:
    """Arrays and pictures that are written at the size to which inputs were brought, though the brief wants theirs."""
    arrays = [array for array, path in seen.written if not _ASIDE.search(path)]
    if (
        not arrays
        or not all("size" in array.pending for array in arrays)
        or not _SAME_SIZE.search(_output(ctx.run.brief))
    ):
        return
    if differ(ctx, "size", arrays[0].target):
        yield Broken(f"Outputs are written at the size that {arrays[0].how} made and never brought back", True)


def _output(brief: str) -> str:
    """The paragraph of the brief that says what to write."""
    place = brief.find("agents_outputs/")
    return brief[max(brief.rfind("\n", 0, place), 0) : place + 900] if place >= 0 else ""


def _boxes(ctx: CodeContext, seen: Seen, trees: list[ast.Module]) -> Iterator[Broken]:
    wanted = _output(ctx.run.brief)
    for why in boxes_of(ctx, seen, trees, wanted):
        yield Broken(why, _PIXELS.search(wanted) is not None and not why.startswith((TWICE, SQUEEZED)))
