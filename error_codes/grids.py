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

from ..trajectories.code_parts import parse, split
from .case_signs import owns_up
from .context import CodeContext
from .grid_flow import Flow, Seen, Value
from .registry import Finding, detector
from .serving import run_modules, written_modules

MAX_CODE = 100_000
MAX_LINES = 2_000
_ORIENTATION = re.compile(r"(?<![A-Za-z])\(?\s?'?([RL])'?,?\s?'?([AP])'?,?\s?'?([IS])'?(?![A-Za-z+])")
_ASKS_ORIENTATION = re.compile(r"axcodes|orient|direction|affine", re.I)
_PROSE = re.compile(r"(?:\b[a-z]{3,}\b[\s,;.]{1,3}){4}")
_SIZE = re.compile(
    r"\((\d{2,4}), (\d{2,4})(?:, \d{1,4}){0,2}\)|(?<![\d.])(\d{2,4}) ?[x×] ?(\d{2,4})(?: ?[x×] ?\d{1,4})?(?![\d.])"
)
_ZOOMS = re.compile(r"\((?:np\.float\d\d\()?(\d{1,2}\.\d{1,4})\)?, (?:np\.float\d\d\()?\d{1,2}\.\d{1,4}")
_VARY = re.compile(r"\b(?:sizes? (?:vary|differ)|(?:different|various|varying|several) (?:image )?sizes?)\b", re.I)
_INPUT_GRID = re.compile(
    r"\b(?:affine|geometry|header|orientation|spacing|origin|grid|space)\b[^.\n]{0,60}\b(?:of (?:the|its|each)|as (?:the|in)|input|ct|mri?|scan|image|volume)\b"
    r"|\b(?:input|ct|mri?|scan|image|volume|source|native|original)(?:'s)?\b[^.\n]{0,40}\b(?:affine|geometry|header|orientation|grid|space)\b",
    re.I,
)
_PIXELS = re.compile(r"\b(?:pixels?|px|coordinates)\b", re.I)
_ASIDE = re.compile(r"debug|overlay|preview|/tmp/|cache|figure|\bqc\b", re.I)
_RELEVANT = re.compile(
    r"canonical|reorient|ornt|Orient|ToCanonical|[Rr]esampl|Spacing|argwhere|nonzero|unravel|where\(|regionprops|find_objects|center_of_mass|zoom\(|resize|peak_local|\.size\b|\.width|shape"
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
        found = next(boxes_of(ctx, seen, trees) if track == "detection" else volumes_of(ctx, seen), None)
        if found is not None or seen.saved or seen.boxes:
            return found
    return None


def _programs(ctx: CodeContext, turn: int) -> list[ast.Module]:
    """What a turn ran, as parsed Python: the modules that it names, then its own code; nothing where one was changed in place."""
    parts = [p for a in ctx.turn(turn).actions for p in split(a)]
    own = [p.text for p in parts if p.kind == "python"]
    shell = "\n".join(p.text for p in parts if p.kind != "file")
    texts = [*reversed(run_modules(shell, written_modules(ctx.run, turn))), *own]
    if not any(_RELEVANT.search(text[:MAX_CODE]) for text in texts):
        return []
    if any(_CHANGED.search(t.code[:MAX_CODE]) for t in ctx.run.turns[:turn]):
        return []
    trees = [tree for text in texts if (tree := parse(text[:MAX_CODE])) is not None]
    return trees if len(trees) == len(texts) else []


def volumes_of(ctx: CodeContext, seen: Seen) -> Iterator[Broken]:
    """Volumes saved out of place: every one that the code puts together, copies beside them left out."""
    saved = [s for s in seen.saved if not _ASIDE.search(s[2])]
    bad = [(a, g) for a, g, _ in saved if a.pending and (g.native or g.pending)]
    if not bad or len(bad) < len(saved):
        return
    array, geometry = bad[0]
    asked = _INPUT_GRID.search(_output(ctx.run.brief)) is not None
    for kind in sorted(array.pending):
        if not differ(ctx, kind, array.target):
            continue
        if kind in geometry.pending:
            if asked:
                yield Broken(f"The volumes are saved on the grid that {array.how} made, with its affine", True)
        elif geometry.native and not geometry.done:
            yield Broken(
                f"Arrays that {array.how} put on another grid are saved with the input's affine and never put back",
                asked,
            )


def boxes_of(ctx: CodeContext, seen: Seen, trees: list[ast.Module]) -> Iterator[Broken]:
    """Boxes scaled by a size that was resized before, or with row and column, or width and height, exchanged."""
    asked = _PIXELS.search(_output(ctx.run.brief)) is not None
    for size in seen.ratio_of_itself[:1]:
        if not seen.native_size_used and differ(ctx, "size", size.target):
            yield Broken(
                "The scale back to the original size is taken from the image after it was resized, so it is always 1",
                asked,
            )
    if not seen.boxes:
        return
    if all(x.index == {"row"} and y.index == {"column"} for x, y in seen.boxes) and not _transposes(trees):
        yield Broken("Row and column are exchanged: x is made from the row index and y from the column index", asked)
    if all(x.scaled == {"height"} and y.scaled == {"width"} for x, y in seen.boxes) and differ(
        ctx, "size", (), oblong=True
    ):
        yield Broken("x is scaled by the height of the image and y by its width", asked)


def differ(ctx: CodeContext, kind: str, target: tuple[int, ...], oblong: bool = False) -> bool:
    """Whether inputs were shown for which such a change does something."""
    if kind == "orient":
        return len(orientations(ctx)) > 1
    sizes, zooms = _measures(ctx)
    if oblong:
        return any(a != b for a, b in sizes)
    if kind == "spacing":
        return len(zooms) > 1 or len(sizes) > 1
    return (
        len(sizes) > 1
        or any(target and not set(s) <= set(target) for s in sizes)
        or _VARY.search(ctx.run.brief) is not None
    )


def orientations(ctx: CodeContext) -> frozenset[str]:
    """Axis codes that headers showed, one a line; a card's sentence is no header."""
    found: set[str] = set()
    for turn in ctx.run.turns:
        if not _ASKS_ORIENTATION.search(turn.code[:MAX_CODE]):
            continue
        for raw in turn.output.splitlines()[:MAX_LINES]:
            line = raw[:600]
            codes = {"".join(m) for m in _ORIENTATION.findall(line)}
            if (len(codes) == 1 and not _PROSE.search(line)) or "Counter" in line or line.lstrip()[:1] == "{":
                found |= codes
    return frozenset(found)


def _measures(ctx: CodeContext) -> tuple[frozenset[tuple[int, int]], frozenset[str]]:
    """Sizes and spacings of inputs: of lines alike that a look at three or more of them printed, or as the brief says."""
    sizes: set[tuple[int, int]] = set()
    zooms: set[str] = set()
    for line in ctx.run.brief[:MAX_CODE].splitlines():
        if re.search(r"INPUT|/data/public", line):
            sizes |= {_pair(m) for m in _SIZE.finditer(line[:2_000])}
    for turn in ctx.run.turns:
        groups: dict[str, list[str]] = {}
        for raw in turn.output.splitlines()[:MAX_LINES]:
            line = raw[:400]
            groups.setdefault(re.sub(r"\d+(?:\.\d+)?|[A-Za-z_.-]+", "#", line), []).append(line)
        for lines in groups.values():
            first = [m for m in (_SIZE.search(line) for line in lines) if m is not None]
            if len(first) >= 3:
                sizes |= {_pair(m) for m in first}
            each = [m[1] for m in (_ZOOMS.search(line) for line in lines) if m is not None]
            if len(each) >= 3:
                zooms |= set(each)
    return frozenset(sizes), frozenset(zooms)


def _pair(match: re.Match[str]) -> tuple[int, int]:
    a, b = (g for g in match.groups() if g)
    return int(a), int(b)


def _output(brief: str) -> str:
    """The paragraph of the brief that says what to write."""
    place = brief.find("agents_outputs/")
    return brief[max(brief.rfind("\n", 0, place), 0) : place + 900] if place >= 0 else ""


_KEEPS_PLANE = frozenset({(2, 0, 1), (1, 2, 0), (0, 3, 1, 2), (0, 2, 3, 1), (0, 1, 2), (0, 1, 2, 3)})


def _transposes(trees: list[ast.Module]) -> bool:
    """Whether an array's two axes in the plane may be exchanged somewhere, so that its first index is no row."""
    for node in (n for tree in trees for n in ast.walk(tree)):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in ("T", "mT")
            and "where" not in (text := ast.unparse(node.value))
            and "nonzero" not in text
        ):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in ("swapaxes", "moveaxis", "rollaxis", "rot90"):
                return True
            if name in ("transpose", "permute"):
                order = tuple(n.value for a in node.args for n in ast.walk(a) if isinstance(n, ast.Constant))
                if order not in _KEEPS_PLANE:
                    return True
    return False


__all__ = ["Broken", "Value", "broken", "orientations"]
