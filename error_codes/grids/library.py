"""What calls of imaging libraries do to the grid of a value, for `grid_flow`; what is not known is taken to restore it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from .calls import (
    CLEARS,
    COMPOSES,
    GETTERS,
    INDEXES,
    KEEPS_FIRST,
    LOADS,
    MAKERS,
    ORIENTS,
    POINTS,
    RESAMPLES,
    SIZES,
    loaded,
)
from .values import (
    ALL,
    NOTHING,
    POINT,
    UNKNOWN,
    Seen,
    Value,
    both,
    changed,
    made,
    merged,
    plain,
    target_of,
    undone,
)


class LibraryCalls:
    """The calls of libraries; one value in, one value out, what was seen on the way kept in `seen`."""

    def __init__(self) -> None:
        self.seen = Seen()

    def element(self, value: Value) -> Value:
        """One element of what is iterated."""
        if value.what == "regions":
            return value
        if value.what == "indices" or value.what == "list":
            return (
                replace(value, what="indices")
                if value.what == "indices"
                else value.parts[0]
                if value.parts
                else UNKNOWN
            )
        if value.parts and not value.keys:
            first = value.parts[0]
            for part in value.parts[1:]:
                first = merged(first, part)
            return first
        return replace(value, parts=None, keys=()) if value.parts is None else UNKNOWN

    def held(self, keys: tuple[str, ...], parts: tuple[Value, ...]) -> Value:
        """A dictionary, and the box in it."""
        named = {key.lower(): part for key, part in zip(keys, parts, strict=True)}
        for x, y in (("x1", "y1"), ("xmin", "ymin"), ("x_min", "y_min"), ("x0", "y0"), ("left", "top"), ("x", "y")):
            if x in named and y in named:
                self.seen.boxes.append((named[x], named[y]))
                break
        else:
            for key in ("bbox", "box", "bounding_box"):
                four = named[key].parts if key in named else None
                if four is not None and len(four) >= 4 and not named[key].keys:
                    self.seen.boxes.append((four[0], four[1]))
        return Value(parts=parts, keys=keys)

    def known(self, node: ast.Call, name: str, on: Value, args: list[Value], words: Mapping[str, Value]) -> Value:
        """The result of a call of a library."""
        every = [v for v in (on, *args, *words.values()) if v != UNKNOWN]
        first = args[0] if args and (on.what in ("", "maker") or on == UNKNOWN) else on
        if on.what == "maker" and name in ("Execute", "__call__", "apply_transform", "transform"):
            return made(on, args)
        if name in LOADS and (kind := loaded(node)):
            return Value(kind, native=True)
        if name in INDEXES or (name == "where" and len(node.args) == 1):
            over = both([v for v in (on, *args) if v != UNKNOWN]) if every else UNKNOWN
            return Value("indices", pending=over.pending, native=over.native)
        if name in ("zip", "enumerate", "map"):
            return self.paired(name, args)
        if name in MAKERS:
            return Value("maker", text=MAKERS[name], how=name, target=target_of(node))
        if name in ("regionprops", "regionprops_table"):
            return Value("regions")
        if name in COMPOSES:
            inner = [v for a in args for v in (a.parts or ())]
            one = next((v for v in inner if v.what == "maker"), UNKNOWN)
            return replace(one, native=any(v.native for v in inner))
        if name in ("Nifti1Image", "Nifti2Image", "new_img_like", "make_nifti") or name == "__class__":
            return self.put_together(name, args, words)
        if name in ("save", "to_filename", "WriteImage", "imwrite", "write_image"):
            self.saves(node, on, args)
            return UNKNOWN
        if name == "GetImageFromArray":
            return replace(first, what="image", geometry=UNKNOWN)
        if name in CLEARS and name[0].isupper():
            return Value("maker", text="back")
        if name in CLEARS:
            found = both(every)
            return replace(found, pending=NOTHING, done=ALL) if found.native else UNKNOWN
        if name == "ornt_transform" and len(args) > 1:
            return replace(args[1], what="back" if args[1].native and not args[1].pending else "forth", parts=None)
        if name in ORIENTS:
            back = any(v.what == "back" for v in args)
            return undone(first, "orient") if back else changed(first, "orient", name, ()) if first.native else first
        if name in RESAMPLES:
            return self.resampled(name, first, [v for v in (*args, *words.values()) if v is not first])
        if name in SIZES:
            return self.resized(node, name, first, [v for v in (*args, *words.values()) if v is not first])
        if name in ("flip", "flipud", "fliplr", "rot90", "Flip") and "orient" in first.pending:
            return undone(first, "orient")
        if name in GETTERS:
            return replace(plain(on), what=GETTERS[name])
        if name in ("min", "max", "clip", "clamp", "minimum", "maximum"):
            return self.bounded(args, first)
        if name == "dict" and words:
            return self.held(tuple(words), tuple(words.values()))
        pairs = [p.parts for p in args[0].parts or ()] if name == "dict" and args else []
        if pairs and all(p is not None and len(p) == 2 and p[0].text for p in pairs):
            return self.held(tuple(p[0].text for p in pairs if p), tuple(p[1] for p in pairs if p))
        if name in POINTS:
            return replace(
                POINT,
                what="list" if name in ("find_objects", "peak_local_max") else "",
                parts=(POINT,) if name in ("find_objects", "peak_local_max") else POINT.parts,
            )
        if name in KEEPS_FIRST:
            return first
        return self.unfollowed(name, on, args, words)

    def unfollowed(self, name: str, on: Value, args: list[Value], words: Mapping[str, Value]) -> Value:
        every = [v for v in (on, *args, *words.values()) if v not in (UNKNOWN,) and v.what not in ("text", "number")]
        flat = [p for v in every for p in (v.parts if v.parts is not None else (v,))]
        quiet = name in (
            "print",
            "info",
            "debug",
            "warning",
            "zeros",
            "empty",
            "full",
            "ones",
            "format",
            "write",
            "append",
        )
        if any(v.what in ("dim", "size") and v.native and not v.pending for v in flat) and not quiet:
            self.seen.native_size_used = True
        found = both(flat)
        if "size" in found.pending and not quiet:
            self.seen.applied.append(found)
        grids = [
            v for v in flat if v.native and v.what in ("image", "geometry", "size", "dim", "data") and not v.pending
        ]
        if grids and found.pending:
            return replace(found, pending=NOTHING, done=found.done | found.pending)  # it may put things back
        return found if found.what != "image" or not args else replace(found, what="data")

    def paired(self, name: str, args: list[Value]) -> Value:
        if name == "zip" and all(a.parts and not a.keys and a.what != "list" for a in args):
            return Value(parts=tuple(Value(parts=p) for p in zip(*(a.parts or () for a in args), strict=False)))
        inner = tuple(self.element(a) for a in (args[1:] if name == "map" else args))
        if name == "map":
            return Value("list", parts=(both(inner),)) if args and args[1:] else UNKNOWN
        return Value("list", parts=(Value(parts=(UNKNOWN, *inner) if name == "enumerate" else inner),))

    def put_together(self, name: str, args: list[Value], words: Mapping[str, Value]) -> Value:
        array = (
            words.get("dataobj")
            or words.get("data")
            or (args[1] if name == "new_img_like" and len(args) > 1 else args[0] if args else UNKNOWN)
        )
        other = (
            words.get("affine")
            or words.get("ref_niimg")
            or (args[0] if name == "new_img_like" and args else args[1] if len(args) > 1 else UNKNOWN)
        )
        array = array if array.parts is None else both(array.parts)
        return replace(array, what="image", geometry=other)

    def saves(self, node: ast.Call, on: Value, args: list[Value]) -> None:
        every = (*node.args, *(k.value for k in node.keywords))
        words = [n.value for a in every for n in ast.walk(a) if isinstance(n, ast.Constant)]
        path = "/".join(w for w in words if isinstance(w, str))
        image = next((v for v in (*args, on) if v.geometry is not None), None)
        if image is not None and image.geometry is not None:
            self.seen.saved.append((image, image.geometry, path))
            return
        array = next((v for v in (*args, on) if v.native and v.what in ("data", "image")), None)
        if array is not None:
            self.seen.written.append((array, path))

    def resampled(self, name: str, first: Value, others: Sequence[Value]) -> Value:
        flat = [p for v in others for p in (v.parts if v.parts is not None else (v,))]
        if any(v.native and not v.pending and v.what in ("image", "geometry", "size") for v in flat):
            # onto the grid of an input, whatever the array was before
            return replace(
                first, pending=NOTHING, done=ALL, geometry=None if first.geometry is None else next(iter(flat))
            )
        return changed(first, "spacing", name, ()) if first.native else first

    def resized(self, node: ast.Call, name: str, first: Value, others: Sequence[Value]) -> Value:
        if first.what in ("size", "dim"):  # the array is out of sight, what is known is the size that it is brought to
            self.seen.native_size_used |= first.native and not first.pending
            return UNKNOWN
        flat = [p for v in others for p in (v.parts if v.parts is not None else (v,))]
        if any(v.native and not v.pending and v.what in ("size", "dim") for v in flat):
            self.seen.native_size_used = True
            return replace(undone(first, "size"), pending=first.pending - {"size", "spacing"})
        if "spacing" in first.pending:
            return undone(first, "spacing")
        if not first.native and first.parts is None:
            return first
        return changed(first, "size", name, target_of(node))

    def bounded(self, args: Sequence[Value], first: Value) -> Value:
        """`min`, `max`, `clip`: limits do not tell where a value lies."""
        if first.parts is not None and len(args) > 1:
            return replace(first, what="")
        kept = [v for v in (first, *args) if v.what not in ("dim", "size", "number")]
        return both(kept) if kept else UNKNOWN
