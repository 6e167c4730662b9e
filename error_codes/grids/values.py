"""What the code's flow knows of a value: its pixel grid, and whether it is an index, a dimension or a box's coordinate."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

NOTHING: frozenset[str] = frozenset()
MAX_WEIGHT = 60
ALL = frozenset({"orient", "spacing", "size"})


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a value; everything empty for what is not known."""

    what: str = ""
    """"image", "data", "geometry", "zooms", "size", "dim", "text", "number", "maker", "instance", "function" or ""."""
    native: bool = False
    """It lies on, or describes, an input's own grid at least in part."""
    pending: frozenset[str] = NOTHING
    """Changes of the grid ("orient", "spacing", "size") that were made and not undone."""
    done: frozenset[str] = NOTHING
    how: str = ""
    """The call that changed the grid first."""
    target: tuple[int, ...] = ()
    """The constant size to which it was brought."""
    geometry: Value | None = None
    """Of an image that the code puts together: where its affine is from."""
    index: frozenset[str] = NOTHING
    """"row" and "column" indices that went into it."""
    dims: frozenset[str] = NOTHING
    """Of what "dim": "width" or "height"."""
    scaled: frozenset[str] = NOTHING
    """Dimensions by which it was multiplied or divided."""
    parts: tuple[Value, ...] | None = None
    keys: tuple[str, ...] = ()
    text: str = ""
    number: float | None = None
    weight: int = field(default=1, compare=False)
    """Values that it is made of; a structure that grows without end is forgotten."""

    def __post_init__(self) -> None:
        weight = 1 + sum(part.weight for part in self.parts or ())
        weight += 0 if self.geometry is None else self.geometry.weight
        if weight > MAX_WEIGHT:
            weight = 1
            for name, nothing in (("parts", None), ("keys", ()), ("geometry", None)):
                object.__setattr__(self, name, nothing)
        object.__setattr__(self, "weight", weight)


UNKNOWN = Value()
ROW, COLUMN = Value(index=frozenset({"row"})), Value(index=frozenset({"column"}))
POINT = Value(parts=(ROW, COLUMN))
"""What names a point of an array in two axes."""


def merged(a: Value, b: Value) -> Value:
    """What holds where either of two values may be there; a change undone in one way counts as undone."""
    if a == b or b == UNKNOWN:
        return a
    if a == UNKNOWN:
        return b
    done = a.done | b.done
    same = a.parts is not None and b.parts is not None and len(a.parts) == len(b.parts) and a.keys == b.keys
    return replace(
        a, what=a.what or b.what, native=a.native or b.native, pending=(a.pending | b.pending) - done, done=done,
        how=a.how or b.how, target=a.target or b.target, geometry=a.geometry or b.geometry, index=a.index | b.index,
        dims=a.dims | b.dims, scaled=a.scaled | b.scaled, number=None,
        parts=tuple(map(merged, a.parts or (), b.parts or ())) if same else a.parts if b.parts is None else b.parts,
        keys=a.keys if same or b.parts is None else b.keys,
    )  # fmt: skip


@dataclass
class Seen:
    """What the code was seen to do with grids."""

    saved: list[tuple[Value, Value, str]] = field(default_factory=list)
    """(array, geometry, path as far as it is literal) of volumes that the code put together and saved."""
    written: list[tuple[Value, str]] = field(default_factory=list)
    """(array, path) of pictures and arrays without a header."""
    boxes: list[tuple[Value, Value]] = field(default_factory=list)
    """First x and first y of boxes."""
    ratio_of_itself: list[Value] = field(default_factory=list)
    """Sizes of a resized image divided by the size that it was brought to."""
    applied: list[Value] = field(default_factory=list)
    """Resized images that went into a call which is not followed, as a model's."""
    native_size_used: bool = False
    """The size of an image as it was read went into a product, a quotient or a call that is not followed."""


def constant(value: object) -> Value:
    if isinstance(value, str):
        return Value("text", text=value[:200])
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e9:
        return Value("number", number=value)
    return UNKNOWN


def plain(value: Value) -> Value:
    """A value without what belongs to the object alone."""
    if value.geometry is not None:
        return replace(value, geometry=None, parts=None, keys=())
    return replace(value, parts=None, keys=(), text="")


def both(values: Iterable[Value]) -> Value:
    """What a result holds that is made of all these."""
    found = UNKNOWN
    for value in values:
        if value.parts is not None:
            value = both(value.parts)
        found = merged(
            found, replace(value, text="", number=None, geometry=None) if value.what != "number" else UNKNOWN
        )
    return (
        replace(found, what="data")
        if found.what in ("image", "dim", "size", "instance", "maker", "list", "text")
        else found
    )


def changed(value: Value, kind: str, how: str, target: tuple[int, ...]) -> Value:
    if kind in value.pending or kind in value.done:
        return undone(value, kind)
    other = None if value.geometry is None else changed(value.geometry, kind, how, target)
    return replace(value, pending=value.pending | {kind}, how=value.how or how, target=target, geometry=other)


def undone(value: Value, kind: str) -> Value:
    other = None if value.geometry is None else undone(value.geometry, kind)
    return replace(value, pending=value.pending - {kind}, done=value.done | {kind}, geometry=other)


def made(maker: Value, args: Sequence[Value]) -> Value:
    """What a transform object gives: fields of a dictionary are those of one image."""
    first = both(args[:1]) if args else UNKNOWN
    if not (first.native or maker.native):
        return first
    source = replace(first, native=True, what="data", parts=None, keys=())
    if maker.text == "back":
        return replace(source, pending=NOTHING, done=ALL)
    return changed(source, maker.text, maker.how, maker.target)


def dimension(owner: Value, key: ast.expr, place: object) -> Value:
    if isinstance(key, ast.Slice):
        cut = key.upper.value if isinstance(key.upper, ast.Constant) else None
        backwards = isinstance(key.step, ast.UnaryOp)
        if key.lower is None and cut == 2 and not backwards:
            return replace(owner, parts=pair_of(owner))
        if backwards and key.lower is None and owner.text == "size":
            return replace(owner, parts=tuple(reversed(pair_of(owner))))
        return owner
    if isinstance(place, int) and place in (0, 1):
        return pair_of(owner)[place]
    return replace(owner, what="dim", text="")


def pair_of(owner: Value) -> tuple[Value, Value]:
    one = replace(owner, what="dim", text="", parts=None)
    names = ("width", "height") if owner.text == "size" else ("height", "width")
    return replace(one, dims=frozenset({names[0]})), replace(one, dims=frozenset({names[1]}))


def target_of(node: ast.Call) -> tuple[int, ...]:
    """Constant numbers of pixels in the arguments of a call that resizes."""
    return tuple(
        n.value
        for a in (*node.args, *(k.value for k in node.keywords))
        for n in ast.walk(a)
        if isinstance(n, ast.Constant) and isinstance(n.value, int) and not isinstance(n.value, bool) and n.value >= 16
    )[:6]
