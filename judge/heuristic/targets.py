"""S1c of the image tracks: whether the method that the plan chooses yields what the task asks for."""

from __future__ import annotations

import re

from .names import CLASSICAL, WEIGHTS, method_names, model_names
from .plan import NO_PLAN
from .view import Finding, View, met, unmet
from .zoo import loaded_in, model_classes, named_methods

_LESION = re.compile(
    r"lesion|tumou?r|cyst\b|cancer|carcinoma|metasta|nodule|polyp|infarct|haemorrhage|hemorrhage|stroke|plaque|mass\b",
    re.IGNORECASE,
)
_ORGAN_ONLY = re.compile(
    r"organ[-_ ]only|no (?:lesion|tumou?r) (?:class|label)|organs? alone|only the organ", re.IGNORECASE
)
_SET_ASIDE = re.compile(
    r"\bnot (?:be )?used|NOT used|reject|cross-?check|unused|discard|instead of|dropped|legacy|baseline", re.IGNORECASE
)
_BOXES = re.compile(
    r"\bbox(?:es)?\b|bbox|bounding|detector|detection model|YOLO|R-?CNN|RetinaNet|DETR|\bSSD\b|CenterNet|FCOS|EfficientDet|connected components|blobs?|peaks?|local maxima|\bcent(?:re|er)s?\b[^\n]{0,60}(?:\bw ?/ ?h\b|width|\bsize)",
    re.IGNORECASE,
)
_GIVES_BOXES = re.compile(r"\bdetector\b|detection (?:model|network)|\bbox(?:es)?\b", re.IGNORECASE)
_NO_BOXES = re.compile(r"\b(?:no|without|not) (?:\w+ )?box(?:es)?\b|image-level|classifier", re.IGNORECASE)
_LOCALISES = re.compile(
    r"detector|detection (?:model|network|head)|YOLO|R-?CNN|RetinaNet|DETR|\bSSD\b|CenterNet|FCOS|EfficientDet|components|blobs?|peaks?|maxima|slid(?:e|ing)|windows?\b|heat ?maps?|\bCAM\b|Grad-?CAM|regress|contours?|regions? of|threshold|segment|anchors?|proposals?",
    re.IGNORECASE,
)
_CLASSIFIER = re.compile(
    r"\bclassif(?:ies|ier|ication (?:model|network))\b|image-level|label for the whole", re.IGNORECASE
)
_WHOLE_IMAGE_BOX = re.compile(
    r"x1 ?[=:] ?0\D{1,8}y1 ?[=:] ?0\D{1,8}x2 ?[=:] ?(?:w|img|image|im)|\[0, ?0, ?(?:w|width)\w*, ?(?:h|height)|\b(?:whole|full|entire)[- ](?:image|scan|film|slide|picture|frame)\b[^\n]{0,20}\bbox|\bbox\b[^\n]{0,30}\b(?:whole|full|entire) (?:image|scan|film|slide|picture|frame)",
    re.IGNORECASE,
)
_LOGITS = re.compile(
    r"\b(\d{1,2}|two|three|four|five|six|seven|eight|nine|ten) (?:output )?(?:logits|classes|outputs|class probabilities)\b|logits ?\[\w+, ?(\d{1,2})\]|\b(?:num_classes|n_classes) ?[=:] ?(\d{1,2})",
    re.IGNORECASE,
)
_NUMBERS = {
    w: n for n, w in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"])
}
_MAPS_CLASSES = re.compile(
    r"\bmap(?:s|ped|ping)?\b|\b(?:reject|background|index|indices|offset|remap\w*|relabel\w*)\b|\b[0-9] ?[=:] ?[A-Za-z]"
    r"|\b(?:drop|ignor|skip|mask|exclud)\w* (?:the )?(?:first|last|extra|other|class|output|logit)",
    re.IGNORECASE,
)
"""Words on outputs of the model that are no required class, or on the order of its outputs."""
_UNOBTAINED = re.compile(
    r"(?:No matching distribution found for|satisfies the requirement|No module named|Can't load [\w ]{2,30} for|Repository Not Found[^\n]{0,80}/) ?'?([\w-]{2,60})"
)
_ENHANCER = re.compile(
    r"\b(?:DnCNN|DRU-?Net\w*|SwinIR|Restormer|NAFNet|RED-?CNN|CTformer|BM[34]D|\w*ESRGAN|EDSR|RCAN|F?SRCNN|HAT|Noise2\w+|FFDNet|Uformer|U-?Net\w*|\w*GAN|auto-?encoder|non-?local means|NLM|total variation|TV\b|wavelets?|bilateral|anisotropic diffusion|wiener|diffusion model|denois\w+|super-?resol\w+ (?:network|model))",
    re.IGNORECASE,
)
_METHOD_LINE = re.compile(
    r"\b(?:method|model|approach|algorithm|chosen|choice)\b[*_` ]*(?:\([^)\n]{0,40}\))?[*_` ]*[:=]", re.IGNORECASE
)
_BYPASS = re.compile(
    r"\b(?:identity|bicubic|bilinear|lanczos|gaussian|copy(?:ing)? the input|unchanged|interpolation|median filter)\b",
    re.IGNORECASE,
)
_SYNTHESIS = re.compile(
    r"U-?Net|GAN|pix2pix|diffusion|regress|translat|encoder|synthes|atlas|bulk density|tissue class|mapping from|network",
    re.IGNORECASE,
)
_MAPPING = re.compile(r"\bmap(?:s|ped|ping)?\b|->|→|\bsame (?:labels?|order)\b|relabel|\bremap", re.IGNORECASE)
_PAIRS = re.compile(
    r"(?<![\w.])\d{1,3}\s*(?:[:=)]|-|–|->|→)?\s*[A-Za-z][\w -]{2,}|[A-Za-z][\w ]{2,20}\s*(?:[:=(]|->|→)\s*\d{1,3}\b"
)


_CLAUSE = re.compile(r";|\.(?=\s|$)|[()]|\s[-–—]{1,2}\s|,\s(?=(?:instead of|not)\b)")
"""Where one clause of a line ends."""


def _chosen(view: View) -> str:
    """The plan without what it sets aside: a clause that names what it sets aside beside one that names another method,
    else the whole line."""
    known = view.weight_names | model_classes(view)
    return "\n".join(
        line if not _SET_ASIDE.search(line) else _without_refused(line[:2_000], known) for line in view.plan.split("\n")
    )


def _without_refused(line: str, known: frozenset[str]) -> str:
    """ "Detector: a.pt (boxes; Grader has none and is not used)" without its last clause; "" for "a.pt: blurs, not used"."""
    clauses = [clause for clause in _CLAUSE.split(line) if clause.strip()]
    refused = [clause for clause in clauses if _SET_ASIDE.search(clause)]
    kept = [clause for clause in clauses if not _SET_ASIDE.search(clause)]
    against = [frozenset(name.lower() for name in method_names(clause, known)) for clause in refused]
    spoken = {name.lower() for clause in kept for name in method_names(clause, known)}
    if not all(against) or not spoken - frozenset().union(*against):
        return ""
    return "; ".join(clause.strip() for clause in kept)


def _out_of_reach(view: View) -> Finding | None:
    """A plan that rests on a model that could not be had, and names no other method: what ran was not planned.

    The failure must name the model or its package with a word of the plan.
    """
    chosen = _chosen(view)
    if view.learned or not view.plan or CLASSICAL.search(chosen) or any(view.loads(s) for s in view.steps):
        return None
    lower = chosen.lower()
    for failure in view.failures:
        missing = _UNOBTAINED.search(failure.message)
        if missing and len(missing.group(1)) >= 4 and missing.group(1).lower() in lower:
            name = missing.group(1)
            return unmet(
                f"The plan rests on {name}, which could not be had, and names no other method.",
                view.plan_quote(re.escape(name)),
                view.quote(failure.turn, re.escape(failure.message[:60]), where="out"),
            )
    return None


def covers_target(view: View) -> Finding:
    """S1c of segmentation: the chosen model is named and the plan makes the lesion (when the task has one) with it."""
    if not view.run.plan.exists:
        return unmet(NO_PLAN)
    if refused := _out_of_reach(view):
        return refused
    chosen = _chosen(view)
    names = named_methods(view, chosen)
    if not names:
        return unmet("The plan names no model or method that would make the mask.", view.plan_quote(r"\w"))
    asks_lesion = bool(_LESION.search(view.run.brief)) or not view.run.brief
    lesion = [line for line in chosen.split("\n") if _LESION.search(line) and not _ORGAN_ONLY.search(line)]
    if asks_lesion and not lesion:
        return unmet(
            "The task asks for a lesion and the plan's chosen method names none.", view.plan_quote(re.escape(names[0]))
        )
    if (
        _ORGAN_ONLY.search(chosen)
        and len(WEIGHTS.findall(chosen)) <= 1
        and not any(_PAIRS.search(line) for line in lesion)
    ):
        return unmet("The chosen model covers the organ alone.", view.plan_quote(_ORGAN_ONLY))
    target = view.plan_quote(re.escape(lesion[0].strip())) if lesion else None
    return met(
        view,
        f"{names[0]} is chosen and the plan makes the required target with it.",
        view.plan_quote(re.escape(names[0])),
        target,
    )


def covers_labels(view: View) -> Finding:
    """S1c of multi-class segmentation: every required label is in the plan, with a mapping."""
    if not view.run.plan.exists:
        return unmet(NO_PLAN)
    if refused := _out_of_reach(view):
        return refused
    names = named_methods(view, _chosen(view))
    required = _brief_labels(view.run.brief)
    lower = view.plan.lower()
    missing = [label for label in required if label.lower() not in lower]
    pairs = _PAIRS.findall(view.plan)
    mapped = bool(_MAPPING.search(view.plan)) or len(pairs) >= 3
    if names and mapped and ((required and not missing) or (not required and len(pairs) >= 3)):
        return met(
            view,
            f"{names[0]} is chosen and all labels are mapped.",
            view.plan_quote(_MAPPING, _PAIRS),
            view.plan_quote(re.escape(names[0])),
        )
    what = (
        "model"
        if not names
        else f"labels {', '.join(missing[:5])}"
        if missing
        else "mapping of source to required labels"
    )
    return unmet(f"The plan lacks: {what}.", view.plan_quote(r"\w"))


def _brief_labels(brief: str) -> list[str]:
    found = re.findall(r"\b(\d{1,2})\s*[=:]\s*([A-Za-z][A-Za-z -]{2,30}?)(?=[,;.)\n]|$)", brief[:20_000])
    labels = [name.strip() for number, name in found if number != "0"]
    return list(dict.fromkeys(labels)) if len(labels) >= 2 else []


def covers_classes(view: View) -> Finding:
    """S1c of classification: the plan's model, and every class that the brief lists."""
    if not view.run.plan.exists:
        return unmet(NO_PLAN)
    if refused := _out_of_reach(view):
        return refused
    names = named_methods(view, _chosen(view))
    if not names:
        return unmet("The plan names no model or method that tells the classes apart.", view.plan_quote(r"\w"))
    classes = _brief_classes(view.run.brief)
    missing = [c for c in classes if not re.search(rf"\b{re.escape(c)}\b", view.plan, re.IGNORECASE)]
    count = (
        re.search(
            rf"\b{len(classes)}[- ]?class|\(\s*{len(classes)}\s*\)|\b{len(classes)} (?:classes|outputs|labels)",
            view.plan,
            re.IGNORECASE,
        )
        if classes
        else None
    )
    if missing and not count:
        return unmet(f"The plan leaves out the classes {', '.join(missing[:5])}.", view.plan_quote(re.escape(names[0])))
    outputs = _stated_outputs(view)
    if classes and outputs and min(outputs) > len(classes) and not _MAPS_CLASSES.search(view.plan):
        return unmet(
            f"The model has {min(outputs)} outputs for {len(classes)} required classes and the plan maps none of them.",
            view.plan_quote(re.escape(names[0])),
        )
    where = view.plan_quote(rf"\b{re.escape(classes[0])}\b") if classes else None
    return met(
        view,
        f"{names[0]} is chosen and the plan covers the required classes.",
        view.plan_quote(re.escape(names[0])),
        where,
    )


def _stated_outputs(view: View) -> set[int]:
    """Numbers of outputs that model cards and code showed before the full run."""
    shown = "\n".join(s.out for s in view.steps if s.ok and s.turn < view.boundary)
    words = ("".join(match).lower() for match in _LOGITS.findall(shown))
    return {_NUMBERS[w] if w in _NUMBERS else int(w) for w in words}


def _brief_classes(brief: str) -> list[str]:
    match = re.search(
        r"\bas ((?:\w[\w-]*, )+\w[\w-]* or \w[\w-]*|\w+ or \w+)\b|(?:class(?:es)?|labels?)\s*(?:in|:|are)\s*[\[{(]?((?:\w[\w-]*, ?)+(?:and |or )?\w[\w-]*)",
        brief[:20_000],
    )
    if match is None:
        return []
    return [c for c in re.split(r", ?(?:and |or )?| or | and ", match.group(1) or match.group(2)) if c]


def gives_boxes(view: View) -> Finding:
    """S1c of detection: a detector, or a stated way to boxes; what a classifier says of an image in a box is none."""
    if not view.run.plan.exists:
        return unmet(NO_PLAN)
    if refused := _out_of_reach(view):
        return refused
    chosen = _chosen(view)
    names = named_methods(view, chosen)
    whole = _WHOLE_IMAGE_BOX.search(chosen)
    if names and not _LOCALISES.search(chosen) and (whole or _classifier_only(view)):
        what = "the box is the whole image" if whole else "the model is a classifier"
        return unmet(f"No way to boxes is stated: {what}.", view.plan_quote(_WHOLE_IMAGE_BOX, re.escape(names[0])))
    if names and (_BOXES.search(chosen) or _card_says_boxes(view, names)):
        return met(
            view,
            f"{names[0]} with a stated way to boxes.",
            view.plan_quote(re.escape(names[0])),
            view.plan_quote(_BOXES),
        )
    return unmet("The plan names no detector and no way from its model to boxes.", view.plan_quote(r"\w"))


def _card_says_boxes(view: View, names: tuple[str, ...]) -> bool:
    """What the environment showed of a chosen model (its paragraph or row in a card) calls it a detector or speaks of
    the boxes that it gives."""
    stems = {name.lower().rsplit(".", 1)[0] for name in names}
    for step in view.steps:
        if not step.ok or step.turn >= view.boundary:
            continue
        for block in re.split(r"\n(?=#|[-*|] ?|\s*\n)", step.out[:50_000]):
            told = block.lower()
            if any(stem in told for stem in stems) and _GIVES_BOXES.search(block) and not _NO_BOXES.search(block):
                return True
    return False


def _classifier_only(view: View) -> bool:
    """Plan or model card call the model a classifier, and neither speaks of a detector."""
    told = view.plan + "\n".join(s.out for s in view.steps if s.ok and s.turn < view.boundary)
    return bool(_CLASSIFIER.search(told)) and not re.search(r"\bdetector\b|detection model", told, re.IGNORECASE)


def real_enhancer(view: View) -> Finding:
    """S1c of enhancement: a trained or classical enhancement method, not a bypass."""
    if not view.run.plan.exists:
        return unmet(NO_PLAN)
    chosen = _chosen(view)
    method = "\n".join(line for line in chosen.split("\n") if _METHOD_LINE.search(line))
    if (
        method
        and _BYPASS.search(method)
        and not model_names(method, view.weight_names)
        and not _ENHANCER.search(method)
    ):
        return unmet("The chosen method is a bypass (identity, interpolation, blur).", view.plan_quote(_BYPASS))
    models = (*model_names(chosen, view.weight_names), *loaded_in(view, chosen))
    named = re.sub(r"(?i)^.*(?:goal|task|metric)\b.*$", "", chosen, flags=re.MULTILINE)
    if models or (
        _ENHANCER.search(named)
        and not (
            _BYPASS.search(named)
            and not re.search(r"NLM|non-?local|TV|total var|BM[34]D|wavelet|bilateral", named, re.IGNORECASE)
        )
    ):
        name = models[0] if models else _ENHANCER.findall(named)[0]
        return met(view, f"{name} is an enhancement method.", view.plan_quote(re.escape(name)))
    return unmet(
        "The plan names no enhancement method, or only a bypass (identity, interpolation, blur).",
        view.plan_quote(_BYPASS, r"\w"),
    )


def real_synthesis(view: View) -> Finding:
    """S1c of synthesis: a model of the target image, not a copy of the input."""
    if not view.run.plan.exists:
        return unmet(NO_PLAN)
    chosen = _chosen(view)
    models = (*model_names(chosen, view.weight_names), *loaded_in(view, chosen))
    if models or _SYNTHESIS.search(chosen):
        return met(
            view,
            "The plan's method makes the target image.",
            view.plan_quote(re.escape(models[0]) if models else _SYNTHESIS),
        )
    return unmet("The plan names no method that makes the target image.", view.plan_quote(_BYPASS, r"\w"))
