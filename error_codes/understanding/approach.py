"""E1: the wrong problem, a broken constraint, or a method, model or requirement that does not exist."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..context import CodeContext, names_weights
from ..registry import Finding, detector
from ..setup.out_of_reach import out_of_reach
from ..verification.signs import box_corners, case_of
from .constraints import INFERENCE_ONLY, changed_again

_UPDATES = re.compile(
    r"\.backward\(|(?<![\w.])(?:self\.)?\w{0,12}(?:opt|optim|optimizer|adam|sgd|lbfgs|rmsprop)\w{0,6}\.(?:step|minimize|apply_gradients)\(|\bautograd\.(?:grad|backward)\(|\.fit_generator\(|\.train_on_batch\("
    r"|\b\w{0,12}trainer\w{0,4}\.(?:train|fit)\(|\b(?:model|net|network|unet|student|clf_head)\.fit\(|GradScaler\(|GradientTape\(|\b(?:jax|func|functorch)\.(?:value_and_)?grad\(|\blgb\.train\(|\bxgb\.train\("
)
_GRADIENT = re.compile(
    r"\.backward\(|\bautograd\.(?:grad|backward)\(|GradientTape\(|\b(?:jax|func|functorch)\.(?:value_and_)?grad\("
)
_STEP = re.compile(
    r"optim|adam|sgd|\.step\(|\.(?:sub|add|copy|lerp|set|mul|addcdiv|addcmul|clamp)_\(|\.data\b|\.assign|\blr\b|learning_rate|functional_call"
    r"|setattr\(|tree_map|[-+]=[^\n]{0,80}\bg(?:rad)?s?\b|[-+*][^\n]{0,40}\bg(?:rad)?s?\b",
    re.IGNORECASE,
)
"""What a gradient is used for when weights change; without it a gradient is a look (saliency, Grad-CAM)."""
_TRAINING_BLOCK = re.compile(r"backward\(|optimizer|\.step\(|\.fit\(|training pattern|train\(", re.IGNORECASE)
_WEIGHTS = r"[\w.-]{1,80}\.(?:pt|pth|onnx|ckpt|safetensors|h5|pkl|joblib|bin)"
_PRESCRIBED = re.compile(rf"\bMETHOD\b[^\n]{{0,40}}?\buse ({_WEIGHTS})\b", re.IGNORECASE)
_PRESCRIBED_FIRST = re.compile(rf"\bMETHOD\b\.?(?: (?:run|apply|slide|take|load))? ({_WEIGHTS})\b", re.IGNORECASE)
_OWN_IMPORT = re.compile(
    r"^\s{0,12}(?:from|import) (?!(?:numpy|scipy|torch|torchvision|skimage|sklearn|PIL|cv2|nibabel|SimpleITK|monai|matplotlib|pandas|glob|os|sys|json|csv|re|math|time|pathlib|collections|itertools|functools|random|shutil|pickle|joblib|tqdm|pywt|warnings|argparse|subprocess|copy)\b)\w",
    re.MULTILINE,
)
"""A module that is none of the common libraries: it may load the weights itself."""
_METHOD = re.compile(r"\bMETHOD\b\.?(?![^\n]{0,30}\b(?:[Cc]hoose|[Pp]ick|[Ss]elect|any)\b)[^\n]{0,600}")
"""The paragraph that fixes the method; one that leaves a choice prescribes nothing."""
_ABSENT = (
    (("no matching distribution",), re.compile(r"No matching distribution found for ([\w.-]{2,60})")),
    (("repository",), re.compile(r"(?:Repository Not Found|RepositoryNotFoundError)[^\n]{0,200}?hub[^\s/]{0,30}/(?:api/models/|models/)?([\w.-]{1,60}/[\w.-]{1,80})", re.I)),
    (("valid model identifier",), re.compile(r"([\w.-]{1,60}/[\w.-]{1,80}) is not a (?:local folder and is not a )?valid model identifier")),
    (("on the hub",), re.compile(r"Dataset '?([\w./-]{2,80})'? doesn't exist on the Hub")),
    (("unknown model",), re.compile(r"Unknown model \(([\w.-]{2,80})\)")),
    (("cannot find callable",), re.compile(r"Cannot find callable ([\w.-]{2,80}) in hubconf")),
    (("no pretrained weights",), re.compile(r"No pretrained weights exist for (?:model )?\(?([\w.-]{2,80})")),
    (("not found", "unknown", "not known", "does not exist", "not registered", "not available"), re.compile(r"(?:[Mm]odel|[Aa]rchitecture|[Cc]heckpoint|[Bb]ackbone|[Ee]ntry) '?\"?([\w./-]{3,80})'?\"? (?:is )?(?:not found|unknown|not known|does not exist|not registered|not available)\b(?! in the cache)")),
    (("unknown", "no such", "invalid"), re.compile(r"(?:[Uu]nknown|[Nn]o such|[Ii]nvalid) (?:model|architecture|backbone|checkpoint|variant)(?: name)?:? '?\"?([\w./-]{3,80})")),
    (("404",), re.compile(r"404[^\n]{0,80}(?:huggingface\.co|hub|api)[^\s/]{0,30}/(?:api/)?(?:models/|datasets/)?([\w.-]{1,60}/[\w.-]{1,80}?)(?:/(?:resolve|tree|raw)\b|[\s'\"?]|$)")),
)  # fmt: skip
"""Words of which an output holds one, in lower case, when it says that something does not exist; and how it names that."""
_REAL_PACKAGES = frozenset({
    "torch", "torchvision", "torchio", "timm", "transformers", "accelerate", "monai", "einops", "open-clip-torch", "open-clip", "safetensors",
    "huggingface-hub", "scikit-image", "scikit-learn", "opencv-python", "opencv-python-headless", "simpleitk", "itk", "nibabel", "pydicom",
    "pywavelets", "bm3d", "ultralytics", "segmentation-models-pytorch", "totalsegmentator", "nnunetv2", "nnunet", "medpy", "antspyx", "tensorflow",
    "keras", "onnxruntime", "onnx", "xgboost", "lightgbm", "cellpose", "stardist", "detectron2", "mmdet", "sentencepiece", "tokenizers",
    "bitsandbytes", "nltk", "spacy", "rouge-score", "pandas", "numpy", "scipy", "matplotlib", "pillow", "tifffile", "imageio", "h5py", "kornia",
    "albumentations", "torchxrayvision", "faiss-cpu", "peft", "radgraph", "f1chexbert", "bert-score", "sacrebleu", "evaluate", "surface-distance", "lpips", "piq",
    "pytorch-msssim", "dipy", "nilearn", "elastix", "itk-elastix", "pyradiomics", "hd-bet", "segment-anything", "sam2", "torchmetrics", "openslide-python", "tiatoolbox",
    "csbdeep", "bm4d", "xformers", "diffusers", "effdet", "ensemble-boxes", "micro-sam", "voxelmorph", "lungmask", "scispacy", "efficientnet-pytorch", "statsmodels",
    "tensorflow-hub", "opencv-contrib-python", "pylibjpeg", "python-gdcm", "highdicom", "dicom2nifti", "pycocotools", "lightning", "pytorch-lightning", "sympy", "cupy",
})  # fmt: skip
"""Packages that exist: where no index can be reached, pip says the same of them as of an invented one."""
_NO_FAKE = re.compile(
    r"(?:do not|don't|must not|never|avoid|forbid\w*|no)\s[^.\n]{0,80}\b(?:synthetic|fake|fabricated?|made-?up|simulated|dummy)\b",
    re.IGNORECASE,
)
_FAKE = re.compile(
    r"\b(?:simulat\w{0,6}|synthetic|dummy|fake|mock(?:ed)?|placeholder|made-?up|fabricat\w{0,4})[ _](?:\w{1,20}[ _]){0,2}"
    r"(?:data\w{0,4}|results?|metrics?|scores?|values?|experiments?|accurac\w{1,3}|performance|model zoo|log)\b"
    r"|\b(?:create|generate|make)_(?:synthetic|dummy|fake|mock|simulated|toy)\w{0,30}",
    re.IGNORECASE,
)
_WHOLE_BOX = re.compile(
    r"x1['\"]?\s{0,2}[:=]\s{0,2}0(?:\.0)?\s{0,2},\s{0,2}['\"]?y1['\"]?\s{0,2}[:=]\s{0,2}0(?:\.0)?\s{0,2},\s{0,2}['\"]?x2['\"]?\s{0,2}[:=]\s{0,2}"
    r"(?:w|width|im(?:age|g)?\.(?:size\[0\]|width)|im(?:age|g)?\.shape\[1\])\b"
    r"|^(?![^\n]{0,300}\b(?:crop|paste|clip|rectangle|resize|pad|view)\w{0,10}\()[^\n]{0,300}[\[(]\s?0(?:\.0)?\s?,\s?0(?:\.0)?\s?,\s?(?:w|width|im(?:age|g)?\.(?:size\[0\]|width)|im(?:age|g)?\.shape\[1\])\b", re.IGNORECASE | re.MULTILINE)  # fmt: skip
MAX_LINES = 3_000
"""Lines of one output that are read, from the end."""
_MODEL_ACCESS = frozenset({"model", "network", "package", "memory", "device", "disk"})
TRIED_HARD = 2
"""Turns that failed on access to a model from which a run without one counts as kept from it."""
_RANDOM = re.compile(r"\b(?:np\.random|random\.(?:random|uniform|gauss|randint|choice)|torch\.randn?|rng\.)")


@detector("forbidden_training", code="E1", stage="S3", independence="from_trace")
def forbidden_training(ctx: CodeContext) -> Iterable[Finding]:
    """Weights are updated although the brief forbids training; one blocked and dropped attempt does not count."""
    brief = INFERENCE_ONLY.search(ctx.run.brief)
    tried: list[int] = []
    ran = False
    for turn, action in ctx.run.actions():
        observation = action.observation
        blocked = observation is not None and observation.kind == "blocked"
        if action.kind != "execute" or not (brief or blocked):
            continue
        if not _UPDATES.search(action.code) or (not blocked and _only_looks(action.code)):
            continue
        # Without the rule in the brief, the sandbox's own words are the rule.
        ruled = brief is not None or (blocked and observation is not None and _TRAINING_BLOCK.search(observation.text))
        if ruled and ctx.feature(turn.index).executed:
            tried.append(turn.index)
            ran = ran or not (blocked or observation is None)
    turns = tuple(dict.fromkeys(tried))
    again = changed_again(ctx, turns[0]) if turns and not ran else None
    if again:
        why = "Training was blocked, and after the warning the weights were changed on the evaluation cases by another way."
        yield Finding(tuple(sorted({*turns, again})), why, 0.85, ctx.stage(again))
    elif ran:
        yield Finding(turns, "Weights were updated although the brief allows inference only.", 0.9, ctx.stage(turns[0]))
    elif len(turns) >= 2:
        yield Finding(
            turns,
            f"Forbidden training was attempted {len(turns)} times, again after the block.",
            0.95,
            ctx.stage(turns[0]),
        )


def _only_looks(code: str) -> bool:
    """Whether gradients are taken and nothing is changed with them."""
    return not _UPDATES.search(_GRADIENT.sub(" ", code)) and not _STEP.search(code)


@detector("repeated_violation", code="E1", stage="S1", independence="from_trace", fact="harness")
def repeated_violation(ctx: CodeContext) -> Iterable[Finding]:
    """A forbidden access was repeated after the warning, or ended the run."""
    turns = tuple(sorted({v.turn for v in ctx.run.status.violations if 0 < v.turn <= ctx.last}))
    if len(ctx.run.status.violations) >= 2 or (ctx.run.status.disqualified and turns):
        said = ctx.run.status.violations[-1].text
        rule = re.search(r"BLOCKED:[^\n]{1,100}|Violation:[^\n]{1,100}", said)
        words = " ".join((rule[0] if rule else said).split())[:100].rstrip(".")
        yield Finding(turns or (ctx.last,), f"A rule was broken again after the warning ({words}).", 0.9)


@detector("prescribed_model_not_used", code="E1", stage="S4", independence="from_trace")
def prescribed_model_not_used(ctx: CodeContext) -> Iterable[Finding]:
    """The brief prescribes a weight file and the code that made the outputs never names it, or names another instead."""
    final = ctx.final_write
    if final is None or not ctx.pipeline_code.strip() or _kept_from_model(ctx):
        return
    named = _PRESCRIBED.search(ctx.run.brief)
    if named is None and not _OWN_IMPORT.search(ctx.pipeline_code):
        named = _PRESCRIBED_FIRST.search(ctx.run.brief)
    method = _METHOD.search(ctx.run.brief)
    asked = re.findall(_WEIGHTS, method[0]) if method else []
    if named is None and not asked:
        return
    wanted = [named[1]] if named else asked
    if any(names_weights(ctx.pipeline_code, name.rsplit(".", 1)[0]) for name in {*wanted, *asked}):
        return
    if any(_refused(ctx, name.rsplit(".", 1)[0]) for name in {*wanted, *asked}):
        return  # the change of method was forced
    if re.search(r"\*\.(?:pt|pth|onnx|ckpt|safetensors)|glob\([^)]{0,80}models", ctx.pipeline_code):
        return
    everything = "\n".join(t.code for t in ctx.run.turns if not ctx.feature(t.index).blocked)
    others = re.search(_WEIGHTS, ctx.pipeline_code)
    if not others and (named is None or names_weights(everything, named[1].rsplit(".", 1)[0])):
        return  # loaded once, kept in memory, by a helper of the benchmark, or by one that is not seen
    yield Finding((final,), f"The outputs were not made with the prescribed {wanted[0]}.", 0.8)


def _refused(ctx: CodeContext, stem: str) -> bool:
    """Whether the last attempt at a weight file failed, with whatever error: no later turn applied it."""
    final = ctx.final_write or 0
    at = [t for t in range(1, final + 1) if names_weights(ctx.turn(t).code[:200_000], stem) and ctx.feature(t).executed]
    failed = [t for t in at if t in ctx.failed_turns]
    return bool(failed) and not any(t > failed[-1] and ctx.feature(t).forward_pass for t in at)


def _kept_from_model(ctx: CodeContext) -> bool:
    """Whether a model could not be had: another method served, or `TRIED_HARD` turns failed before the outputs were written."""
    if out_of_reach(ctx) is not None:
        return True
    kept = {f.turn for f in ctx.failures if f.environment and f.family in _MODEL_ACCESS and f.confidence >= 0.7}
    return len([t for t in kept if ctx.final_write is None or t <= ctx.final_write]) >= TRIED_HARD


@detector("no_model_behind_answers", code="E1", stage="S4", independence="from_trace")
def no_model_behind_answers(ctx: CodeContext) -> Iterable[Finding]:
    """vqa: answers were delivered and no executed code ever loaded and called a model.

    A run that tried for a model and was kept from it has another fault (E2, and E3 for what it handed in): its approach
    was right.
    """
    if ctx.run.track != "vqa" or ctx.facts is None or ctx.facts.model_call_found is not False:
        return
    if _kept_from_model(ctx):
        return
    if ctx.facts.completion and ctx.final_write:
        yield Finding((ctx.final_write,), "Answers were delivered although no model was ever called.", 0.8)


@detector("image_label_as_box", code="E1", stage="S4", independence="from_trace")
def image_label_as_box(ctx: CodeContext) -> Iterable[Finding]:
    """Detection: one label for the whole image is written as a box over all of it; nothing is located (wrong target)."""
    final = ctx.final_write
    if ctx.run.track != "detection" or final is None or not ctx.handed_over:
        return
    for turn in sorted({final, *ctx.checks}):
        shown = {}
        for line in ctx.turn(turn).output.splitlines()[-MAX_LINES:]:
            case, boxes = case_of(line), box_corners(line[:600])
            if case and boxes:
                shown[case] = boxes
        whole = [boxes for boxes in shown.values() if len(boxes) == 1 and float(boxes[0][0]) <= 0 >= float(boxes[0][1])]
        if (len(shown) >= 3 and len(whole) == len(shown)) or (
            turn == final and not shown and _WHOLE_BOX.search(ctx.turn(final).code[:200_000])
        ):
            planned = ctx.run.plan.turn if _WHOLE_BOX.search((ctx.run.plan.text or "")[:200_000]) else None
            turns = tuple(sorted({t for t in (planned, final) if t}))
            yield Finding(
                turns, "Every box spans the image from its corner: an image label is handed in as a detection.", 0.8
            )
            return


@detector("invented_name", code="E1", stage="S2", independence="from_trace")
def invented_name(ctx: CodeContext) -> Iterable[Finding]:
    """A package or model that the index does not know was part of the plan, or is still claimed at the end."""
    seen: dict[str, list[int]] = {}
    for turn in ctx.run.turns:
        if not ctx.feature(turn.index).failed and turn.index not in ctx.failed_turns:
            continue
        output = turn.output[-20_000:]
        lower = output.lower()
        patterns = [pattern for words, pattern in _ABSENT if any(word in lower for word in words)]
        for line in output.splitlines() if patterns else ():
            for pattern in patterns:
                for match in pattern.findall(line[:2_000]):
                    seen.setdefault(match.strip(".").lower(), []).append(turn.index)
    plan = (ctx.run.plan.text or "").lower()
    for name, turns in seen.items():
        short = name.rpartition("/")[2]
        if _shown(ctx, short, turns[0]) or short.replace("_", "-") in _REAL_PACKAGES:
            continue
        whole = re.compile(rf"(?<![\w-]){re.escape(short)}(?![\w-])")
        claimed = [
            line
            for line in ctx.closing.lower().splitlines()
            if whole.search(line)
            and not re.search(r"\bnot?\b|n't|unavailable|instead|missing|absent|fail|without|fall", line)
        ]
        if (whole.search(plan) and turns[-1] < ctx.last) or claimed:
            yield Finding(tuple(dict.fromkeys(turns)), f"The run rests on {name}, which the index does not know.", 0.75)


def _shown(ctx: CodeContext, name: str, turn: int) -> bool:
    """Whether the brief or the environment named it before the index denied it (a model card's "needs", a listing)."""
    if name in ctx.run.brief.lower():
        return True
    return any(
        name in line.lower() and not re.search(r"No module named|No matching|Could not find|ERROR|Error", line)
        for earlier in ctx.run.turns[: turn - 1]
        for line in earlier.output[-40_000:].splitlines()
        if name not in earlier.code.lower()
    )


@detector("fabricated_results", code="E1", stage="S4", independence="from_trace")
def fabricated_results(ctx: CodeContext) -> Iterable[Finding]:
    """The brief forbids made-up data and the code that feeds the results makes them from random numbers."""
    rule = _NO_FAKE.search(ctx.run.brief)
    if rule is None:
        return
    turns = []
    for turn in ctx.run.turns:
        code = "\n".join(a.code[:200_000] for a in turn.actions if a.kind in ("execute", "write", "edit"))
        # Where outputs are known, a made-up input on which a model is tried out is no made-up result.
        feeds = ctx.final_write is None or turn.index in ctx.write_turns or ctx.feature(turn.index).writes_module
        if code and feeds and _FAKE.search(code) and _RANDOM.search(code):
            turns.append(turn.index)
    if turns:
        yield Finding(
            tuple(turns), "The brief forbids made-up data, yet the code generates its data or results at random.", 0.65
        )


_LESIONS = r"(?:tumou?rs?|lesions?|metastas[ei]s|mets|cysts?|nodules?)"
_ORGAN_WITH_LESION = re.compile(
    rf"organ[^\n]{{0,80}}\b{_LESIONS} included|organ[^\n;]{{0,60}}\b(?:including|includes|with|plus|together with|incl\.) (?:the |its |all )?{_LESIONS}|mask includes (?:the )?{_LESIONS}",
    re.IGNORECASE,
)
_ORGAN_LINE = re.compile(r"^[^\n]{0,300}\borgan\b[^\n]{0,300}$", re.IGNORECASE | re.MULTILINE)
_ORGAN_SAVED = re.compile(
    r"\b(?:save|write\w*|dump|imwrite|to_nii\w*|put)\w{0,12}\(\s?(?:\w{1,20}\.\w{1,24}\(\s?)?([A-Za-z_]\w{0,30})[^\n]{0,200}\borgan\b",
    re.IGNORECASE,
)
_ORGAN_LOOP = re.compile(r"\(\s?1\s?,\s?['\"]organ|['\"]organ['\"]\s?[:,]\s?1\b(?!\s?,\s?2)", re.IGNORECASE)
_EACH_LABEL = re.compile(r"==\s?(?:k|v|i|c|idx|lab|label|value|cls|n)\b")
_ONE_LABEL = re.compile(r"==\s?1\b(?!\s?[+*(.])")
_UNION = re.compile(
    r">\s?0|>=\s?1|!=\s?0|\||logical_or|isin|maximum|==\s?2|\bor\b|in \(1, ?2\)|in \[1, ?2\]|\+=|fill_holes|closing"
)


def organ_lines(code: str) -> list[str]:
    """Lines that make the organ's mask: those that name it, and those that assign the variable saved as it.

    Of an assignment to several names only the part for that variable is kept.
    """
    lines = [line for line in _ORGAN_LINE.findall(code) if "print(" not in line]
    for name in dict.fromkeys(_ORGAN_SAVED.findall(code)):
        for line in code.splitlines():
            line = line[:600]
            many = re.match(r"\s{0,40}((?:\w{1,30}\s?,\s?)+\w{1,30})\s?=(?!=)\s?([^\n]+)$", line)
            if many and name in (targets := [t.strip() for t in many[1].split(",")]):
                values = re.split(r",\s?(?![^()\[\]]*[)\]])", many[2])
                lines += [values[targets.index(name)]] if len(values) == len(targets) else [line]
            elif re.match(rf"\s{{0,40}}{name}(?:\[[^\]\n]{{1,40}}\])?\s?[|+]?=(?!=)", line):
                lines.append(line)
    return lines


@detector("organ_without_lesion", code="E1", stage="S4", independence="from_trace")
def organ_without_lesion(ctx: CodeContext) -> Iterable[Finding]:
    """The brief wants the organ with the lesion in it, and the code writes the organ's own label only."""
    if ctx.final_write is None or not _ORGAN_WITH_LESION.search(ctx.run.brief):
        return
    lines = organ_lines(ctx.pipeline_code[:200_000])
    own_label = any(_ONE_LABEL.search(line) for line in lines) or (
        any(_ORGAN_LOOP.search(line) for line in lines) and _EACH_LABEL.search(ctx.pipeline_code)
    )
    if own_label and not any(_UNION.search(line) for line in lines):
        yield Finding(
            (ctx.final_write,),
            "The organ mask holds the organ's own label only, although the brief includes the lesion.",
            0.75,
        )
