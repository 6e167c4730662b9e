"""Boxes in other coordinates than the image's: what the way of every value, the code's text and the model's card show of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from ...trajectories.syntax_tree import source
from ..context import CodeContext
from ..verification.requirements import statements
from .calls import name_of
from .inputs import differ
from .values import Seen

MAX_TEXT = 200_000
_SCALED_BACK = re.compile(
    r"scal|ratio|\bs[xyhw]\b|\bf[xy]\b|factor|\bk[xy]\b|\bgain\b|zoom|orig|native|full_?size|width|height|\b[WHwh]0?\b|meta|sizes?\b\s?\[",
    re.I,
)
_UNPADS = re.compile(
    r"un_?pad|post_process|target_sizes|orig_sizes|unletterbox|uncrop|scale_(?:boxes|coords)|map_back|to_original|inverse",
    re.I,
)
_EQUAL_SIDES = re.compile(r"[(\[](\w{1,12}), \1[)\]]")
_PADS = re.compile(
    r"\bpad|letterbox|\bpaste\(|thumbnail|\bmax\((?:[WHwh]\b|width|height|[\w.]{1,20}(?:size|shape))", re.I
)
"""What keeps the proportions of an image that is brought to a square."""
_FIGURE = re.compile(r"\bplt\b|savefig|ImageDraw|putText|rectangle\(|overlay|montage|contact", re.I)
_DECODED = re.compile(r"\b(decode\w{0,20}|post_?process\w{0,20}|to_(?:boxes|corners|xyxy)|\w{0,20}_boxes)\(", re.I)
"""Given code that turns raw outputs into boxes: its result is not what the card says of the model's."""
_RELATIVE_WANTED = re.compile(r"\b(?:normali[sz]ed|relative|fractions?|YOLO)\b", re.I)


class Convention(NamedTuple):
    """How a card says that a model gives its boxes, and what code does about it."""

    name: str
    stated: re.Pattern[str]
    met: re.Pattern[str]


CONVENTIONS = (
    Convention(
        "as centre and size",
        re.compile(r"\bcx\w{0,3}[,;] ?cy\w{0,3}[,;] ?w\w{0,5}[,;] ?h\w{0,6}\b|\bcxcywh\b|\bboxes?\b[^|\n]{0,40}\bcentre(?:/| and | \+ )size\b|\bxywh centred\b", re.I),
        re.compile(r"/\s?2\b|\*\s?0?\.5\b|\b0\.5\s?\*|>>\s?1\b|cxcywh|xywh|xyxy|convert|half", re.I),
    ),
    Convention(
        "as corner and size",
        re.compile(r"\(?\bx[,;] ?y[,;] ?w(?:idth)?[,;] ?h(?:eight)?\b|\bCOCO (?:format|boxes|order)\b", re.I),
        re.compile(r"\+\s?(?:\w{1,20}\[[^\]\n]{0,20}[23]\]|\w{0,6}(?:w|h|width|height)\d?\b)|xywh|xyxy|convert|/\s?2\b|['\"]w(?:idth)?['\"]", re.I),
    ),
    Convention(
        "relative to the image (0..1)",
        re.compile(r"\b(?:box\w{0,3}|coordinates?|corners?|x1|cx)\b[^|\n]{0,80}\b(?:normali[sz]ed|relative)\b|\b(?:normali[sz]ed|relative)\b[^|\n]{0,20}\b(?:box\w{0,3}|coordinates?|corners?)\b", re.I),
        re.compile(r"\*|denorm|to_pixel|absolute|scale", re.I),
    ),
)  # fmt: skip
"""In the words of cards for detectors (COCO, YOLO, DETR, Pascal VOC ways to write a box)."""


def boxes_of(ctx: CodeContext, seen: Seen, trees: list[ast.Module], wanted: str) -> Iterator[str]:
    """What is wrong with the coordinates of the boxes that this code writes; `wanted` is what the brief says of the files."""
    try:
        text = "\n".join(map(ast.unparse, trees))[:MAX_TEXT]
    except RecursionError:
        return
    text = text.replace("'w'", "'wt'")  # the mode of a file is no width
    for size in seen.ratio_of_itself[:1]:
        if not seen.native_size_used and differ(ctx, "size", size.target):
            yield "The scale back to the original size is taken from the image after it was resized, so it is always 1"
    if _UNPADS.search(text):
        return
    in_place = not _transposes(trees) and not re.search(r"\bnib(?:abel)?\.", text)  # a header's x is the first axis
    swapped = seen.boxes and all(x.index == {"row"} and y.index == {"column"} for x, y in seen.boxes)
    if swapped and in_place:
        yield "Row and column are exchanged: x is made from the row index and y from the column index"
    if (doubled := _twice_the_size(trees)) and not _HALF_SIZES.search(_cards(ctx)):
        yield f"{TWICE} ({doubled}) to each side of their centre, so they are twice as large"
    exchanged = seen.boxes and all(x.scaled == {"height"} and y.scaled == {"width"} for x, y in seen.boxes)
    if exchanged and differ(ctx, "size", (), oblong=True):
        yield "x is scaled by the height of the image and y by its width"
    one = seen.boxes and all(x.scaled == y.scaled and len(x.scaled) == 1 for x, y in seen.boxes)
    square = any(len(set(image.target)) == 1 < len(image.target) for image in seen.applied)
    if one and square and _EQUAL_SIDES.search(text) and not _PADS.search(text) and differ(ctx, "size", (), oblong=True):
        side = "".join(seen.boxes[0][0].scaled)
        yield f"{SQUEEZED}, and x and y are both scaled back by the {side} alone"
    for image in seen.applied[:1] if seen.boxes and not seen.native_size_used else ():
        by_it = rf"/ (?:{'|'.join(map(str, image.target))})\b"
        if (
            image.target
            and not _SCALED_BACK.search(text)
            and not re.search(by_it, text)
            and differ(ctx, "size", image.target)
        ):
            yield f"The code brings images to {' x '.join(map(str, image.target[:2]))} and never the boxes back"
    if offset := _offset_left(trees):
        yield f"The image is set into a larger one at an offset ({offset}) that is never taken off the boxes"
    yield from _conventions(ctx, trees, text, wanted)


TWICE = "Boxes reach their whole width and height"
SQUEEZED = "Images are squeezed to a square"
"""Wrong sizes, not other conventions of coordinates."""
_SIZE = re.compile(r"(?:b|box_?|obj_?|det_?)?(w|h|width|height)\d?$", re.I)
_HALVES = re.compile(r"/ 2\b|// 2\b|\* 0?\.5\b|\b0\.5 \*|>> 1|half|radi", re.I)
_HALF_SIZES = re.compile(
    r"\bhalf[- ](?:the )?(?:size|width|height|extent)|\bradi(?:us|i)\b|\bl,? ?t,? ?r,? ?b\b|distances? to the (?:sides|edges)",
    re.I,
)


def _twice_the_size(trees: list[ast.Module]) -> str:
    """Names of the width and height that are both taken off a centre and added to it without being halved, else nothing."""
    for tree in trees:
        values: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    values.update(_assigned(target, node.value))
        for node in ast.walk(tree):
            if not isinstance(node, ast.List | ast.Tuple | ast.Call | ast.Dict):
                continue
            sides: dict[tuple[str, str], set[type]] = {}
            for part in ast.walk(node):
                if (
                    isinstance(part, ast.BinOp)
                    and isinstance(part.op, ast.Add | ast.Sub)
                    and isinstance(part.right, ast.Name)
                ):
                    sides.setdefault((source(part.left, 60), part.right.id), set()).add(type(part.op))
            sizes = {name for (_, name), ops in sides.items() if len(ops) == 2 and _SIZE.match(name)}
            kinds = {match[1][0].lower() for name in sizes if (match := _SIZE.match(name))}
            if kinds == {"w", "h"} and all(name in values and not _HALVES.search(values[name]) for name in sizes):
                return " and ".join(sorted(sizes, reverse=True))
    return ""


def _assigned(target: ast.expr, value: ast.expr) -> dict[str, str]:
    """Name -> text of what it is given, item by item for tuples of the same length."""
    if isinstance(target, ast.Name):
        return {target.id: source(value)}
    if isinstance(target, ast.Tuple | ast.List):
        same = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        values = value.elts if same else [value] * len(target.elts)  # type: ignore[attr-defined]
        return {k: v for t, each in zip(target.elts, values, strict=True) for k, v in _assigned(t, each).items()}
    return {}


def _cards(ctx: CodeContext) -> str:
    """What the environment printed up to the last write, and the brief."""
    return "\n".join((ctx.run.brief[:MAX_TEXT], *(t.output[:MAX_TEXT] for t in ctx.run.turns[: ctx.final_write])))


def _conventions(ctx: CodeContext, trees: list[ast.Module], text: str, wanted: str) -> Iterator[str]:
    relative = _RELATIVE_WANTED.search(wanted) is not None
    divides = any(isinstance(n, ast.Div) for tree in trees for n in ast.walk(tree))
    if relative and not divides and re.search(r"\.xyxy\b|\.xywh\b", text):
        yield "Boxes are written in pixels, and the brief wants them relative to the image"
    given = any(f"def {name}(" not in text for name in _DECODED.findall(text))
    if relative or given or not re.search(r"\bx2\b|\bx_?max\b|\bright\b", wanted):
        return
    for need in CONVENTIONS:
        if need.met.search(text):
            continue
        for turn in ctx.run.turns[: ctx.final_write]:
            said = next((x for x in statements(turn.output, ctx.serving_code[:400_000]) if need.stated.search(x)), None)
            if said is not None:
                yield f"The model gives its boxes {need.name}, and the code writes them as corners in pixels as they are"
                return


def _offset_left(trees: list[ast.Module]) -> str:
    """An offset of half the free room at which an image is pasted and that nothing else reads, else nothing."""
    for tree in trees:
        if _FIGURE.search(ast.unparse(tree)):
            continue  # pasted for the eye
        halves = {
            t.id
            for n in ast.walk(tree)
            if isinstance(n, ast.Assign)
            for target in n.targets
            for t in ast.walk(target)
            if isinstance(t, ast.Name) and _half(n.value)
        }
        pasted = [n for n in ast.walk(tree) if isinstance(n, (ast.Assign, ast.Expr, ast.Call)) and _pastes(n)]
        inside = {n.id for p in pasted for n in ast.walk(p) if isinstance(n, ast.Name) and n.id in halves}
        if not inside:
            continue
        read = [n.id for t in trees for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        here = [
            n.id
            for p in {id(n): n for q in pasted for n in ast.walk(q)}.values()
            if isinstance(p, ast.Name) and isinstance(p.ctx, ast.Load)
            for n in [p]
        ]
        # the room on the other side, `right = size - width - left`, is no way back
        other = [
            m.id
            for n in ast.walk(tree)
            if isinstance(n, ast.Assign)
            and isinstance(n.value, ast.BinOp)
            and isinstance(n.value.op, ast.Sub)
            and any(isinstance(t, ast.Name) and t.id in here for target in n.targets for t in ast.walk(target))
            for m in ast.walk(n.value)
            if isinstance(m, ast.Name)
        ]
        if all(read.count(name) <= here.count(name) + other.count(name) for name in inside):
            return ", ".join(sorted(inside))[:40]
    return ""


def _half(value: ast.expr) -> bool:
    return any(
        isinstance(n, ast.BinOp)
        and isinstance(n.op, (ast.FloorDiv, ast.Div))
        and isinstance(n.right, ast.Constant)
        and n.right.value == 2
        and isinstance(n.left, ast.BinOp)
        and isinstance(n.left.op, ast.Sub)
        for n in ast.walk(value)
    )


def _pastes(node: ast.AST) -> bool:
    """`canvas[top:top + h, left:left + w] = image`, a paste of PIL, or a border."""
    if isinstance(node, ast.Assign):
        target = node.targets[0]
        return isinstance(target, ast.Subscript) and sum(isinstance(n, ast.Slice) for n in ast.walk(target.slice)) >= 2
    return isinstance(node, ast.Call) and name_of(node) in ("copyMakeBorder", "paste")


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
