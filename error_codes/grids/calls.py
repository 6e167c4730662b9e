"""Calls of the usual imaging libraries that read, turn, resample or restore a grid of pixels, by the last part of their name."""

from __future__ import annotations

import ast

LOADS = {
    "load": "image", "ReadImage": "image", "imread": "data", "open": "image", "ScalarImage": "image", "LabelMap": "image",
    "LoadImage": "image", "LoadImaged": "image", "read_image": "data", "load_img": "image", "dcmread": "image",
}  # fmt: skip
ORIENTS = frozenset({
    "as_closest_canonical", "as_reoriented", "apply_orientation", "DICOMOrient", "reorder_img", "reorient_image", "to_canonical",
})  # fmt: skip
RESAMPLES = frozenset({
    "resample_from_to", "resample_to_output", "conform", "resample_img", "resample_to_img", "Resample", "resample",
    "resample_image",
})  # fmt: skip
SIZES = frozenset({"resize", "interpolate", "zoom", "thumbnail", "rescale", "resize_image"})
MAKERS = {
    "Orientationd": "orient", "Orientation": "orient", "ToCanonical": "orient", "DICOMOrientImageFilter": "orient",
    "OrientImageFilter": "orient", "Spacingd": "spacing", "Spacing": "spacing", "ResampleImageFilter": "spacing",
    "Resize": "size", "Resized": "size", "CropOrPad": "size",
}  # fmt: skip
"""Classes whose objects change the grid when they are called."""
COMPOSES = frozenset({"Compose", "Sequential", "ComposeV2"})
CLEARS = frozenset({
    "inverse", "Invert", "Invertd", "apply_inverse_transform", "invert", "ResampleToMatch", "ResampleToMatchd", "inverse_transform",
    "affine_transform", "map_coordinates", "grid_sample", "scale_boxes", "scale_coords", "rescale_boxes", "post_process_object_detection", "unletterbox",
})  # fmt: skip
"""What may restore a grid, in ways that are not followed."""
INDEXES = frozenset({"argwhere", "nonzero", "unravel_index"})
POINTS = frozenset({"center_of_mass", "maximum_position", "find_objects", "peak_local_max"})
KEEPS_FIRST = frozenset({
    "float", "int", "round", "abs", "asarray", "array", "ascontiguousarray", "astype", "tensor", "from_numpy", "tolist", "copy",
    "convert", "numpy", "item", "detach", "cpu", "to", "list", "tuple", "squeeze", "unsqueeze", "get_fdata", "fromarray",
    "GetArrayFromImage", "GetArrayViewFromImage", "argmax", "sorted", "rint", "stack", "reversed", "eval", "float32",
})  # fmt: skip
GETTERS = {
    "GetSize": "size", "GetSpacing": "zooms", "get_zooms": "zooms", "get_sform": "geometry", "get_qform": "geometry",
    "GetDirection": "axes", "GetOrigin": "axes",
}  # fmt: skip
PARTS = {
    "affine": "geometry", "header": "geometry", "dataobj": "data", "data": "data", "spacing": "zooms", "direction": "geometry",
    "meta": "geometry", "T": "data",
}  # fmt: skip


def name_of(node: ast.Call) -> str:
    """The last part of a called name: `resize` of `img.convert("L").resize(...)`."""
    func = node.func
    if isinstance(func, ast.Attribute):
        return func.attr
    return func.id if isinstance(func, ast.Name) else ""


def loaded(node: ast.Call) -> str:
    """Whether a call reads an "image" or an array ("data"); "" for weights, tables and text."""
    name = name_of(node)
    if any(
        isinstance(n, ast.Constant) and isinstance(n.value, str) and "models" in n.value
        for a in node.args
        for n in ast.walk(a)
    ):
        return ""  # a prior or a template of the model folder is no input
    of = ast.unparse(node.func)[:40].partition(".")[0]
    if name == "load":
        return "image" if of in ("nib", "nibabel", "nb") else "data" if of in ("np", "numpy") else ""
    if name == "open":
        return "image" if of in ("Image", "PIL", "PILImage") else ""
    return LOADS.get(name, "")
