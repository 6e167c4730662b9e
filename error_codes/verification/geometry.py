"""E3: a change of the pixel grid (padding, flip, rotation, axis order, size) that the code makes on the way in and not on the way out.

Counts, ranges and shapes are the same in place and out of it, so that only a comparison with the input would show it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from ...trajectories.code_parts import parse, split
from ..context import CodeContext
from ..registry import Finding, detector

MAX_CODE = 100_000
MAX_CALLS = 60
"""Calls that pad, and functions that turn, looked at in one file; each costs a walk over it."""
_UNDONE = re.compile(
    r"un_?pad|center_?crop|CenterSpatialCrop|Invert|\.inverse\(|crop_back|uncrop|remove_pad|depad", re.I
)
_CENTRED_BY_DEFAULT = frozenset({"DivisiblePad", "SpatialPad", "DivisiblePadd", "SpatialPadd", "PadIfNeeded"})
_PADS = _CENTRED_BY_DEFAULT | {"pad", "copyMakeBorder"}
_FLIPS = frozenset({"flipud", "fliplr", "flip", "rot90", "hflip", "vflip"})
_SCALED_BACK = re.compile(r"scal|ratio|\bs[xy]\b|\bf[xy]\b|factor|\bk[xy]\b|\bgain\b|zoom", re.I)
_SIZE = re.compile(r"(?<![\d.])(\d{2,4})\s{0,2}(?:x|×|,|wide,)\s{0,2}(\d{2,4})(?![\d.])")


@detector("grid_not_restored", code="E3", stage="S3", independence="from_trace")
def grid_not_restored(ctx: CodeContext) -> Iterable[Finding]:
    """Outputs lie displaced, mirrored, turned or at another size: what the code did to the input's grid is not undone."""
    final, track = ctx.final_write, ctx.run.track
    if final is None or not ctx.handed_over or track not in ("enhancement", "segmentation", "synthesis", "detection"):
        return
    for text in _current(ctx, final):
        tree = parse(text)
        if tree is None:
            continue
        what = size_kept(tree, text, _sizes(ctx)) if track == "detection" else displaced(tree, text) or turned(tree)
        if what:
            turns = [t for t in ctx.model_turns if ctx.stage(t) in ("S3", "S4")] or [final]
            yield Finding(
                tuple(sorted({*turns, *ctx.checks, ctx.last})),
                f"The code {what}, and no check held an output against its input in place.",
                0.75,
            )
            return


def _current(ctx: CodeContext, final: int) -> list[str]:
    """The Python that made the outputs: the last version of each file, and what the last write ran itself."""
    files: dict[str, str] = {}
    loose: list[str] = []
    for turn in ctx.run.turns[:final]:
        if ctx.feature(turn.index).blocked:
            continue
        for action in turn.actions:
            for part in split(action):
                if part.kind == "file" and part.path and not part.append:
                    files[part.path] = part.text[:MAX_CODE]
                elif part.kind == "python" and turn.index == final:
                    loose.append(part.text[:MAX_CODE])
                elif part.kind == "shell" and re.search(r"\bsed\b|\bpatch\b", part.text[:MAX_CODE]):
                    for path in [p for p in files if p.rpartition("/")[2] in part.text]:
                        del files[path]  # changed in a way that is not followed here
    return [*files.values(), *loose]


def displaced(tree: ast.Module, text: str) -> str | None:
    """What is wrong where an image is padded in front and cropped from the corner, or padded behind and cropped within."""
    if _UNDONE.search(text):
        return None
    halves = _halves(tree)
    bound = _bindings(tree)
    pads = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and _name(n) in _PADS][:MAX_CALLS]
    fronts = [front for front in (_front(node, bound, halves) for node in pads) if front is not None]
    corner, inner = _crops(tree, halves)
    if fronts and all(fronts) and corner and not inner:
        return "pads the input on all sides and crops the output from the corner"
    if fronts and not any(fronts) and inner == "half" and not corner:
        return "pads the input behind and crops the output from the middle"
    return None


def _half(node: ast.AST, halves: frozenset[str]) -> bool:
    """Whether an expression is half of something: `x // 2`, `int(x / 2)`, or a name bound to one."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, (ast.FloorDiv, ast.Div, ast.RShift)):
            by = inner.right.value if isinstance(inner.right, ast.Constant) else None
            if by == (1 if isinstance(inner.op, ast.RShift) else 2):
                return True
        if isinstance(inner, ast.Name) and inner.id in halves:
            return True
        if isinstance(inner, ast.Call) and _name(inner) == "divmod":
            return True
    return False


def _halves(tree: ast.Module) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            pairs = (
                zip(target.elts, node.value.elts, strict=False)
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                else [(target, node.value)]
            )
            for name, value in pairs:
                if isinstance(name, ast.Name) and isinstance(value, ast.BinOp) and _half(value, frozenset()):
                    found.add(name.id)
    return frozenset(found)


def _front(node: ast.Call, bound: Mapping[str, ast.expr], halves: frozenset[str]) -> bool | None:
    """Whether a call pads in front; None for what pads nothing, or by amounts that cannot be told."""
    name, words = _name(node), {k.arg: k.value for k in node.keywords}
    if name in _CENTRED_BY_DEFAULT:
        method = words.get("method") or words.get("position")
        return not (isinstance(method, ast.Constant) and str(method.value) in ("end", "top_left"))
    if name == "copyMakeBorder" and len(node.args) >= 5:
        return _amount(node.args[1], halves) and _amount(node.args[3], halves)
    if name != "pad" or len(node.args) + len(node.keywords) < 2:
        return None
    width = node.args[1] if len(node.args) > 1 else words.get("pad_width") or words.get("pad")
    width = bound.get(width.id) if isinstance(width, ast.Name) else width
    if width is None:
        return None
    inner = [t for t in ast.walk(width) if isinstance(t, ast.Tuple) and len(t.elts) == 2]
    if isinstance(width, (ast.Tuple, ast.List)) and len(width.elts) >= 4 and not inner:
        firsts = list(width.elts[::2])  # torch: left, right, top, bottom
    elif inner:
        firsts = [t.elts[0] for t in inner if not isinstance(t.elts[0], ast.Tuple)]
        firsts = [f for f in firsts if not (isinstance(f, ast.Constant) and len(firsts) > 2 and f.value == 0)] or firsts
    else:
        return None
    known = [_amount(first, halves) for first in firsts]
    return None if None in known else any(known)


def _amount(node: ast.AST, halves: frozenset[str]) -> bool | None:
    if isinstance(node, ast.Constant):
        return bool(node.value)
    return True if _half(node, halves) else None


def _bindings(tree: ast.Module) -> dict[str, ast.expr]:
    """Names that are bound exactly once, and to what."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Name) and isinstance(node, ast.Assign):
                found.setdefault(target.id, []).append(node.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _crops(tree: ast.Module, halves: frozenset[str]) -> tuple[bool, str]:
    """(whether two axes are cut from the corner, how others are cut within: "half", "other" or "")."""
    corner, inner = False, ""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Subscript):
            continue
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        slices = [s for s in parts if isinstance(s, ast.Slice) and s.step is None]
        cut = [
            s
            for s in slices
            if (s.lower is None or (isinstance(s.lower, ast.Constant) and s.lower.value == 0))
            and s.upper is not None
            and not isinstance(s.upper, (ast.Constant, ast.UnaryOp))
            and not any(isinstance(n, (ast.FloorDiv, ast.Mod)) for n in ast.walk(s.upper))
        ]
        corner = corner or len(cut) >= 2
        for s in slices:
            if s.lower is None or (isinstance(s.lower, ast.Constant) and s.lower.value in (0, 1)):
                continue
            inner = "half" if _half(s.lower, halves) and inner != "other" else "other"
    return corner, inner


def turned(tree: ast.Module) -> str | None:
    """What is mirrored, turned or transposed once on the way from a loaded to a saved array, and never back."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    names = {_name(n) for n in calls}
    loads, saves = names & {"load", "imread", "ReadImage"}, names & {"save", "imwrite", "WriteImage"}
    if not loads or not saves or re.search(r"ornt|canonical|axcodes|orient", " ".join(names)):
        return None
    reads_itk, writes_itk = "GetArrayFromImage" in names, "GetImageFromArray" in names
    if names & {"savefig", "imshow", "subplots"}:
        return None  # a figure is turned for the eye
    turns = Counter(_turn(n) for n in calls) + Counter(_mirror(n) for n in ast.walk(tree))
    functions = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)][:MAX_CALLS]
    if any(_inside(f, calls) for f in functions):
        return None
    odd = [kind for kind, n in turns.items() if kind and n % (4 if kind == "rot90" else 2)]
    if odd and not (kind := odd[0]).startswith("?"):
        return f"applies {kind} on the way in and never back"
    swaps = sum(1 for n in ast.walk(tree) if _swap(n))
    if swaps == 0 and ((reads_itk and "Nifti1Image" in names) or (writes_itk and "get_fdata" in names)):
        return "mixes z, y, x arrays of one library with x, y, z arrays of the other without a transposition"
    return None


def _inside(function: ast.FunctionDef, calls: list[ast.Call]) -> bool:
    """Whether a function that turns arrays is itself called more than once (there and back)."""
    if not any(isinstance(n, ast.Call) and _name(n) in _FLIPS for n in ast.walk(function)):
        return False
    return sum(1 for n in calls if _name(n) == function.name) > 1


def _turn(node: ast.Call) -> str:
    name = _name(node)
    if name not in _FLIPS:
        return ""
    if name == "rot90":
        k = node.args[1] if len(node.args) > 1 else next((w.value for w in node.keywords if w.arg == "k"), None)
        negative = isinstance(k, ast.UnaryOp) and isinstance(k.op, ast.USub)
        return "rot90" if k is None or (isinstance(k, ast.Constant) and k.value == 1 and not negative) else "?"
    if name in ("flip", "hflip", "vflip"):
        method = isinstance(node.func, ast.Attribute) and not (
            isinstance(node.func.value, ast.Name) and node.func.value.id in ("np", "numpy", "torch", "cv2", "TF", "F")
        )
        axis: list[ast.expr] = list(node.args if method else node.args[1:]) + [w.value for w in node.keywords]
        return f"flip({', '.join(ast.unparse(a) for a in axis)[:40]})"
    return name


def _mirror(node: ast.AST) -> str:
    """`a[:, ::-1]` in one of several axes."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
        return ""
    steps = [i for i, s in enumerate(node.slice.elts) if isinstance(s, ast.Slice) and s.step is not None]
    back = [
        i for i in steps if isinstance(s := node.slice.elts[i], ast.Slice) and s.step and ast.unparse(s.step) == "-1"
    ]
    return f"[::-1] in axis {back[0]}" if back and len(node.slice.elts) <= 3 else ""


def _swap(node: ast.AST) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "T") or (
        isinstance(node, ast.Call) and _name(node) in ("transpose", "swapaxes", "moveaxis", "permute", "rollaxis")
    )


def size_kept(tree: ast.Module, text: str, sizes: frozenset[tuple[int, int]]) -> str | None:
    """Detection: images of other sizes are brought to a fixed one, and the boxes are written in that one's pixels."""
    if not sizes or _SCALED_BACK.search(text):
        return None
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _name(node) not in ("resize", "interpolate", "Resize"):
            continue
        pairs = [n for n in ast.walk(node) if isinstance(n, ast.Tuple) and len(n.elts) == 2]
        for pair in pairs:
            wide, high = (e.value if isinstance(e, ast.Constant) else None for e in pair.elts)
            if not isinstance(wide, int) or not isinstance(high, int) or wide < 32:
                continue
            if all(wide not in s and high not in s for s in sizes) and not re.search(rf"/\s?{wide}\b", text):
                return f"brings images to {wide} x {high} and never the boxes back"
    return None


def _sizes(ctx: CodeContext) -> frozenset[tuple[int, int]]:
    """Image sizes as the brief states them for its inputs."""
    found: set[tuple[int, int]] = set()
    for line in ctx.run.brief[:MAX_CODE].splitlines():
        if re.search(r"INPUT|/data/public", line):
            found |= {(int(m[1]), int(m[2])) for m in _SIZE.finditer(line[:2_000])}
    return frozenset(found)


def _name(node: ast.Call) -> str:
    func = node.func
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
