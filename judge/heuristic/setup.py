"""S2: environment, weights, input compatibility and a working forward pass, each by an execution that succeeded."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from ...trajectories.failures import Failure
from ..scorecard import Evidence
from .inputs import shows_input
from .names import WEIGHTS
from .programs import Step
from .view import DUMMY, FORWARD, LOADS, Finding, View, met, unmet

MAX_ENVIRONMENT_FAILURES = 5
"""Paper, table 7: resolved within five attempts."""
_ENVIRONMENT = frozenset({"package", "device", "memory", "disk", "network", "model"})
_SHAPE = re.compile(r"\.(?:shape|size|ndim)\b|get_data_shape|GetSize|\.width|\.height|\.Rows|getImageSize")
_FORM = re.compile(
    r"\.dtype|get_data_dtype|\.mode\b|getbands|GetPixelID|\.(?:min|max|mean|std)\(|percentile|quantile|get_zooms|zooms|affine|aff2axcodes|GetSpacing|PixelSpacing|spacing|SamplesPerPixel|BitsStored|channels"
)
_IMAGE_READ = re.compile(
    r"nib(?:abel)?\.load\(|Image\.open\(|imread\(|np\.load\(|dcmread\(|ReadImage\(|h5py\.File\(|LoadImage|read_image\(|load_volume|load_image"
)
_SIZE_OF = r"\.(?:shape|size|width|height|GetSize)\b"
_FORM_OF = r"\.(?:dtype|mode|min|max|mean|std|affine|header|getextrema|GetSpacing|get_data_dtype|PhotometricInterpretation|BitsStored)\b"
_SHELL_LOOK = re.compile(r"\b(?:file|identify|nib-ls|fslinfo|fslhd|c3d|mrinfo|gdcminfo|dcmdump|exiftool)\b[ \t]+\S")
_SIDE_CAR_SIZE = re.compile(
    r"\b(?:rows|height)\b[^\n]{0,12}\d{2,5}\D{1,20}(?:columns|cols|width)\b\D{0,6}\d{2,5}|\b(?:columns|cols|width)\b[^\n]{0,12}\d{2,5}\D{1,20}(?:rows|height)\b\D{0,6}\d{2,5}"
    r"|\b(?:shape|size|dims?|matrix)[\"']?\s*[:=]\s*[\[(]\s*\d{2,5}\s*,\s*\d{1,5}",
    re.IGNORECASE,
)
_SIDE_CAR_FORM = re.compile(
    r"[\"']?\b(?:photometric\w*|bits\w*|dtype|mode|spacing\w*|pixel_?spacing\w*|voxel_?(?:size|spacing)\w*|zooms|orientation|rescale_?\w+|slope|intercept)[\"']?\s*[:=]\s*[\[(\"']{0,2}\s*[-\w.]+",
    re.IGNORECASE,
)
"""Fields of a file beside the image (info.json, a header dump) that give its size, and its type, scale or spacing."""
_HEADER_SIZE = re.compile(
    r"^[ \t]*dim\s*:\s*\[[ \d]+\]|\bDimSize\s*=\s*\d+ \d+|^sizes:\s*\d+ \d+|\bRows\b[^\n]{0,40}\b\d{2,5}\b",
    re.MULTILINE,
)
_HEADER_FORM = re.compile(
    r"^[ \t]*(?:pixdim|datatype|bitpix)\s*:|\bElement(?:Spacing|Type)\s*=|^(?:type|space directions|spacings):|\b(?:Bits ?(?:Stored|Allocated)|Pixel ?Spacing|Photometric ?Interpretation)\b",
    re.MULTILINE,
)
"""How printed headers of NIfTI, MetaImage, NRRD and DICOM files give the size, and the type or spacing."""
_RULE = re.compile(r"[\s|+:=\u2500-\u257f-]*$")
"""A line that only parts the head of a table from its rows."""
_DIMENSIONS = re.compile(r"\d{2,5}\s*(?:,|x|×|X)\s*\d{1,5}|\b\d{2,5}\b")
_TUPLE = re.compile(r"[\[(]\d{1,5}, ?\d{1,5}(?:, ?\d{1,5}){0,2}[\])]|\b\d{2,5} ?[x×] ?\d{2,5}\b")
_SIZE = re.compile(r"[\[(]\d{1,5}(?:, ?\d{1,5}){1,3}[\])]|(?<![\w.])\d{2,5}(?: ?[x×] ?\d{1,5}){1,3}(?!\w)")
_FORM_SEEN = re.compile(
    r"\b(?:u?int(?:8|16|32)|float(?:16|32|64)|bool|RGBA?|YCbCr|CMYK|I;16|min|max|range|spacing|dtype|mode)\b|'(?:L|1|P|I|F)'|[\[(]\d{1,5}, ?\d{1,5}[\])],? '?(?:L|P|I|F)\b",
    re.IGNORECASE,
)
_FILE_LINE = re.compile(
    r"\b(?:image|bitmap) data\b[^\n]{0,80}\d+ ?x ?\d+|\bdim\d\b|\b(?:PNG|JPEG|TIFF|DCM|BMP) \d+x\d+\b"
)
"""How `file`, `identify` or a header dump describe an image."""
_SIZE_HEAD = re.compile(r"\b(?:h|w|rows|cols|columns|height|width|nx|ny|size|shape)\b", re.IGNORECASE)
_FORM_HEAD = re.compile(r"\b(?:dtype|type|mode|min|max|range|spacing|lo|hi)\b", re.IGNORECASE)
_OWN_READER = re.compile(
    r"\bload\w*\(|\bread(?!_?(?:csv|json|text|excel|table|bytes|lines?|parquet))\w*\((?!\))", re.IGNORECASE
)
_TABLE_READ = re.compile(r"\bread_(?:csv|table|excel|json|parquet)\(")
_MISSING = re.compile(r"No module named '?([\w.]+)")
_TRAINING = re.compile(
    r"\.backward\(|\b\w*optim(?:izer)?\w*\.step\(|\bopt\.step\(|autograd\.grad\(|torch\.optim\.\w+\(|\boptim\.(?:Adam|SGD|RMS)\w*\(|\b(?:model|net|network)\.fit\(|[Tt]rainer\.train\(|\bGradientTape\b|nnUNetv2_train"
)
_HEAVY_IMPORT = re.compile(
    r"^[ \t]*(?:import|from)[ \t]+(?:[\w., ]*\b)?(?:torch\w*|tensorflow|numpy|nibabel|monai|transformers|PIL|skimage|scipy|sklearn|cv2|SimpleITK|pandas|onnxruntime|ultralytics|jax|timm|pydicom)\b",
    re.MULTILINE,
)
_VERSIONS = re.compile(
    r"\b\d+\.\d+(?:\.\d+)?(?:\+\w+)?\b.*\b(?:cuda|torch|numpy|python)|\b(?:python|torch|numpy|cuda|monai|nibabel|transformers|PIL)\b[^\n]{0,20}\b\d+\.\d+|Successfully installed|Requirement already satisfied|NVIDIA-SMI|\bcuda\b[^\n]{0,12}(?:True|False)|^\d+\.\d+\.\d+(?:\+\w+)?\b",
    re.IGNORECASE,
)


def weights_obtained(view: View) -> Finding:
    """S2a (VQA: S2b): a succeeded execution reads or fetches weights; for a classical method the implementation ran."""
    step = first(view, view.loads)
    if step is None and view.learned:
        # Weights that were read in a turn that failed later, but whose model answered in that turn's output.
        tried = [s.turn for s in view.steps if LOADS.search(s.attempted)]
        evidence = view.any_line(tried[0], "code") if tried else None
        return unmet("No succeeded execution downloads, finds or reads the model's weights.", evidence)
    if step is None:
        step = first(view, view.applies_model)
        if step is None:
            return unmet("Neither weights nor a classical implementation were run successfully.")
        return met(view, "A classical method: its implementation ran.", view.any_line(step.turn, "code out"))
    listed = next((s for s in view.steps if s.ok and s.turn < step.turn and WEIGHTS.search(s.out)), None)
    return met(
        view, "Weights were found and read in a succeeded execution.",
        view.quote(listed.turn, WEIGHTS, where="out") if listed else None,
        view.quote(step.turn, r"keys matched", LOADS, where="out code") or view.any_line(step.turn, "code out"),
    )  # fmt: skip


def inputs_checked(view: View) -> Finding:
    """S2b: shape and one of dtype, range, mode or spacing of the inputs were printed or asserted before the full run."""
    before = {s.turn for s in view.before}
    looks = [
        s
        for s in view.steps
        if (s.turn in before and (_looks_at_inputs(s) or _followed_look(view, s)))
        or (s.failed and s.turn < view.boundary and not view.is_batch(s) and _looked_before_failing(view, s))
    ]
    looks = looks or _in_parts([s for s in view.steps if s.turn in before and not view.applies_model(s)])
    if not looks:
        return unmet(
            "No execution before the full run prints or asserts shape and dtype, range or spacing of the inputs."
        )
    quotes = [_look_quote(view, s) for s in looks[:3]]
    return met(view, "Shape and form of the inputs were printed before the full run.", *quotes)


def inputs_checked_untrained(view: View) -> Finding:
    """S2b of enhancement: as `inputs_checked`, and no training pattern in any executed or attempted code."""
    for step in view.steps:
        if _TRAINING.search(step.attempted):
            quote = view.quote(step.turn, _TRAINING, where="code")
            return unmet(f"Training of weights was attempted in turn {step.turn}.", quote)
    return inputs_checked(view)


def _looks_at_inputs(step: Step) -> bool:
    shown = step.shown
    if _SIDE_CAR_SIZE.search(step.out) and _SIDE_CAR_FORM.search(step.out) and not FORWARD.search(step.code):
        return True
    if _HEADER_SIZE.search(step.out) and _HEADER_FORM.search(step.out) and not FORWARD.search(step.code):
        return True
    if _SHELL_LOOK.search(step.own) and re.search(r"\d+ ?x ?\d+|image data|dim\d", step.out):
        return True
    if _SIZE.search(step.out) and shows_input(step.programs, step.library):
        return True
    if not (_SHAPE.search(shown) and _FORM.search(shown) and _IMAGE_READ.search(step.code)):
        return bool(_quiet_look(step))
    if step.out and not _DIMENSIONS.search(step.out):
        return False
    inputs = _input_names(step.code)
    if _IMAGE_READ.search(shown) or not inputs:
        return True
    return any(
        re.search(
            rf"\b{re.escape(name)}\b(?:\[[^\]\n]*\]|\.header|\.dataobj)*\.?(?:shape|size|ndim|mode|dtype|get_data|header)",
            shown,
        )
        for name in inputs
    )


def _in_parts(steps: list[Step]) -> list[Step]:
    """A step that prints the size of inputs and another that prints their type, range or spacing; none without both."""
    size = next((s for s in steps if _prints_of_input(s, _SIZE_OF) and _TUPLE.search(s.out)), None)
    form = next((s for s in steps if _prints_of_input(s, _FORM_OF) and s.out.strip()), None)
    return [size, form] if size and form else []


def _prints_of_input(step: Step, part: str) -> bool:
    """A part of an input itself is printed: `im.size`, `np.load(f).dtype`, `np.percentile(a, 99)`."""
    if not _IMAGE_READ.search(step.code):
        return False
    read = rf"(?:{_IMAGE_READ.pattern})[^\n]{{0,120}}?\){part}"
    names = "|".join(re.escape(name) for name in sorted(_read_names(step.code))[:40])
    own = rf"\b(?:{names})\b(?:\[[^\]\n]*\])?{part}" if names else "(?!)"
    measured = rf"\bnp\.(?:min|max|percentile|quantile|ptp)\((?:{names})\b" if names and part is _FORM_OF else "(?!)"
    return bool(re.search(rf"{read}|{own}|{measured}", step.shown))


def _read_names(code: str) -> set[str]:
    """Variables that a reader gives, and nothing derived from them."""
    assigned = re.findall(r"(?:^|[\n;:(])[ \t]*(\w+) ?=(?!=) ?([^\n;]{1,400})", code)
    return {name for name, value in assigned if _IMAGE_READ.search(value)}


def _followed_look(view: View, step: Step) -> bool:
    """Sizes beside ranges or spacings of what was read, printed through helpers, records and tables; or the table of a
    tool that came with the task. No model or method ran in that step, and nothing delivered was opened."""
    if view.applies_model(step) or view.delivers(step) or step.facts.reads_outputs or FORWARD.search(step.code):
        return False
    if step.started and _table_look(step.out.split("\n")[:400]):
        return True
    if not (_IMAGE_READ.search(step.code) and _SHAPE.search(step.code) and _DIMENSIONS.search(step.out)):
        return False
    if _TABLE_READ.search(step.own):
        return False  # the size may be that of a table of labels
    kinds = step.looks.kinds()
    if "shape" not in kinds or not kinds & {"range", "geometry"}:
        return False
    return any(_size_and_more(line[:1_000]) for line in step.out.split("\n")[:400])


def _size_and_more(line: str) -> bool:
    """A line gives a size, and beside it a type or at least two numbers (a range, a spacing)."""
    rest, sizes = _SIZE.subn(" ", line)
    return bool(sizes) and bool(_FORM_SEEN.search(rest) or len(re.findall(r"-?\d+(?:\.\d*)?", rest)) >= 2)


def _quiet_look(step: Step) -> bool:
    """Size and form of inputs collected first and printed later (a dictionary, a counter): no `.shape` in the print
    itself, but a line of the output shows dimensions beside a type, a mode or a range. No model ran in that step."""
    if FORWARD.search(step.code) or not _IMAGE_READ.search(step.code):
        return False
    computed = _SHAPE.search(step.code) and _FORM.search(step.code)
    lines = step.out.split("\n")
    return bool(computed) and (
        any(_TUPLE.search(line) and _FORM_SEEN.search(line) for line in lines) or _table_look(lines[:400])
    )


def _looked_before_failing(view: View, step: Step) -> bool:
    """A failed action had shown the inputs before a later command or line of it failed: what was printed was seen."""
    for action in view.run.turns[step.turn - 1].actions:
        seen = action.observation
        if (
            seen is None
            or seen.kind not in ("ok", "failed", "unknown")
            or not seen.stdout
            or FORWARD.search(action.code)
        ):
            continue
        lines = [line[:1_000] for line in seen.stdout.split("\n")[:400]]
        if _SHELL_LOOK.search(action.code) and any(_FILE_LINE.search(line) for line in lines):
            return True
        reads = _IMAGE_READ.search(action.code) and _SHAPE.search(action.code) and _FORM.search(action.code)
        if reads and any(_TUPLE.search(line) and _FORM_SEEN.search(line) for line in lines):
            return True
    return False


def _table_look(lines: list[str]) -> bool:
    """A table with a column of a size and one of a type or range, and a row of numbers under its head."""
    told = [line for line in lines if not _RULE.match(line)]
    for head, row in itertools.pairwise(told):
        if _SIZE_HEAD.search(head) and _FORM_HEAD.search(head) and not _DIMENSIONS.search(head):
            return len(re.findall(r"\b\d{2,5}\b", row)) >= 2
    return False


def _input_names(code: str) -> set[str]:
    """Variables that hold inputs: assigned from a reader, or one step derived from such without a forward pass."""
    names: set[str] = set()
    assignments = re.findall(r"(?:^|[\n;:(])[ \t]*(\w+) ?=(?!=) ?([^\n;]{1,400})", code)
    for several, value in re.findall(r"(?:^|[\n;:])[ \t]*(\w+(?: ?, ?\w+){1,4}) ?=(?!=) ?([^\n;]{1,400})", code):
        assignments += [(name, value) for name in re.findall(r"\w+", several)]
    for name, value in assignments:
        if _IMAGE_READ.search(value) or _OWN_READER.search(value):
            names.add(name)
    for name, value in assignments:
        words = set(re.findall(r"\b\w+\b(?!\()", value))
        if words & names and not re.search(r"\b(?:net|model|m|vlm|predict|enhance|denoise|run|infer)\(", value):
            names.add(name)
    return names


def _look_quote(view: View, step: Step) -> Evidence | None:
    return (
        view.quote(step.turn, _SIDE_CAR_SIZE, where="out") if _SIDE_CAR_FORM.search(step.out) and not _SHAPE.search(step.shown) else None
    ) or (
        view.quote(step.turn, r"\(\d+, ?\d+[^)]*\).*(?:int|float|RGB|\bL\b|min|max|range)|\d+ x \d+", r"\(\d+, ?\d+", _DIMENSIONS, where="out")
        or view.quote(step.turn, _SHAPE, where="code")
    )  # fmt: skip


def environment_works(view: View) -> Finding:
    """S2c: an execution imports what the pipeline needs (or prints versions, installs packages) without failing."""
    for step in view.steps:
        if (
            step.ok
            and step.facts.has("checks_environment", "installs_packages")
            and (quote := view.quote(step.turn, _VERSIONS, where="out"))
        ):
            return met(
                view, "Packages were imported or installed and answer with their versions.", quote, _working(view)
            )
    working = _working(view)
    if working:
        return met(view, "The packages that the pipeline needs were imported without failing.", working)
    checked = next((s for s in view.steps if s.ok and s.facts.checks_environment), None)
    if checked:
        return met(view, "The environment was asked and answered.", view.any_line(checked.turn))
    return unmet("No succeeded execution imports the packages that the pipeline needs.")


def environment_works_for_model(view: View) -> Finding:
    """S2c of VQA: as `environment_works`; packages of image rules do not stand for those of a model that answers."""
    if missing := _never_available(view):
        return unmet(
            f"{missing.message[:80]}: the package stayed missing and no model ever loaded.",
            view.quote(missing.turn, re.escape(missing.message[:60]), where="out"),
        )
    return environment_works(view)


def _never_available(view: View) -> Failure | None:
    """A package that the agent failed to import and never imported later, in a run whose model never loaded."""
    tried = any(LOADS.search(s.attempted) for s in view.steps)
    if not tried or any(view.loads(s) for s in view.steps):
        return None
    for failure in view.failures:
        if failure.family == "package" and (name := _MISSING.search(failure.message)):
            module = re.escape(name.group(1).split(".")[0])
            imported = re.compile(rf"^[ \t]*(?:import|from)[ \t]+{module}\b", re.MULTILINE)
            if not any(s.ok and s.turn > failure.turn and imported.search(s.code) for s in view.steps):
                return failure
    return None


def _working(view: View) -> Evidence | None:
    step = next((s for s in view.steps if s.ok and _HEAVY_IMPORT.search(s.code)), None)
    model = next((s for s in view.steps if view.loads(s) or view.applies_model(s)), None)
    step = model or step
    if step is None:
        return None
    return view.quote(step.turn, _HEAVY_IMPORT, r"\bimport\b", where="code") or view.any_line(step.turn, "code out")


def few_environment_failures(view: View) -> Finding:
    """S2d: at most five executions failed because of packages, downloads, devices or memory."""
    failed = [f for f in view.failures if f.family in _ENVIRONMENT]
    turns: dict[int, Failure] = {}
    for failure in failed:
        turns.setdefault(failure.turn, failure)
    quotes = [view.quote(t, re.escape(f.message[:60]), re.escape(f.kind), where="out") for t, f in turns.items()]
    if len(failed) > MAX_ENVIRONMENT_FAILURES:
        return unmet(f"{len(failed)} executions failed because of the environment, more than five.", *quotes[:4])
    working = _working(view) or next((view.any_line(s.turn) for s in view.steps if s.ok), None)
    if working is None and not any(s.facts.executed for s in view.steps):
        return unmet("Nothing was executed, so no environment was set up.")
    said = (
        f"{len(failed)} executions failed because of the environment"
        if failed
        else "No execution failed because of the environment"
    )
    return met(view, f"{said}; at most five are allowed.", *quotes[:3], working)


def model_works(view: View) -> Finding:
    """S2e: a succeeded execution applies the model (or the classical implementation) and gives an output."""
    works = [s for s in view.steps if view.applies_model(s) and (s.out.strip() or view.delivers(s))]
    if not works:
        return unmet("No succeeded execution applies the model to an input.")
    real = [s for s in works if not DUMMY.search(s.code)]
    chosen = [works[0], *(s for s in real[:1] if s is not works[0])]
    quotes = [_output_quote(view, s) for s in chosen]
    return met(view, "The model was loaded and gave an output in a succeeded execution.", *quotes)


def _output_quote(view: View, step: Step) -> Evidence | None:
    return (
        view.quote(step.turn, r"torch\.Size|->|shape|output|forward|prob|label", r"\d", where="out")
        or view.quote(step.turn, FORWARD, where="code")
        or view.any_line(step.turn, "out code")
    )  # fmt: skip


def first(view: View, holds: Callable[[Step], bool]) -> Step | None:
    """The first step for which something holds."""
    return next((s for s in view.steps if holds(s)), None)
