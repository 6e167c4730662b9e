"""Names of models and methods in free text, and how many of them a plan weighs against each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ...trajectories.any_case import AnyCase

MAX_SECTIONS = 40
"""Sections on candidates that are read in one text, and ten times as many lines of each: hostile plans stay cheap."""

WEIGHTS = re.compile(r"[\w-]{2,60}\.(?:pth?|onnx|ckpt|safetensors|gguf|h5|pkl|tflite|joblib|bin)\b", re.IGNORECASE)
FAMILIES = re.compile(
    # Published models that agents meet in these tracks; a name of one says that a model is meant.
    r"\b(?:nn-?U-?Net\w*|Total ?Segmentator|Swin-?UNETR|UNETR\w*|Med-?SAM\w*|SAM-?Med\w*|(?-i:SAM2?)|(?-i:VISTA-?3D)|MONAI|Attention U-?Net|V-?Net|SegResNet|SegFormer"
    r"|(?:Res)?U-?Net\w*|Deep ?Lab\w*|SynthSeg|FastSurfer|STU-?Net|CLIP-driven|Universal model"
    r"|DnCNN|DRU-?Net\w*|SwinIR|Restormer|NAFNet|RED-?CNN|CTformer|BM3D|BM4D|ESRGAN|Real-?ESRGAN|EDSR|RCAN|SRCNN|FSRCNN|(?-i:HAT)|Noise2\w+|FFDNet|Uformer|SUNet"
    r"|LLaVA\w*(?:-Med)?|Med-?Gemma|Bio-?Med-?CLIP|Bio-?Vi[LT]\w*|Qwen[\w.-]*|BLIP\w*(?:-2)?|InstructBLIP|PaliGemma|RadFM|CheXagent|MAIRA\w*|Med-?Flamingo|InternVL[\w.-]*|Phi-3[\w.-]*|MiniCPM[\w.-]*|SmolVLM\w*|Idefics\w*|ViLT|PubMedCLIP|(?-i:MUMC)|GPT-?4\w*|(?-i:Gemini)|(?-i:Claude)|HuatuoGPT\w*|(?-i:Lingshu)"
    r"|R2Gen\w*|RGRG|CXR-?RePaiR|CXRMate\w*|M2 ?Trans\w*|CvT2DistilGPT2|SwinV2\w*|VisionEncoderDecoder\w*|RaDialog|LLM-?CXR"
    r"|YOLO[\w.-]*|Faster ?R-?CNN|Mask ?R-?CNN|RetinaNet|(?:RT-?|DINO-?)?DETR\w*|(?-i:SSD\d*)|EfficientDet|CenterNet|FCOS|Grounding ?DINO|OWL-?ViT"
    r"|ResNet-?\d*\w*|DenseNet-?\d*|EfficientNet[\w-]*|(?-i:ViT(?:-\w+)?)|ConvNeXt\w*|Inception\w*|VGG-?\d*|MobileNet\w*|CTransPath|(?-i:UNI2?)|(?-i:Phikon)|(?-i:CONCH)|(?-i:PLIP)|DINOv2\w*|Swin[\w-]*"
    r"|pix2pix\w*|Cycle-?GAN|(?-i:CUT)|SynDiff|MC-?DDPM|diffusion model|SynthRAD\w*)\b",
    re.IGNORECASE,
)
CAMEL = re.compile(
    r"\b[A-Z][A-Za-z0-9]*(?:Net|Former|CNN|VLM|VQA|GAN|GPT|BERT|CLIP|Detector|Classifier|Segmenter|Denoiser|Llama|LM)(?:\d\w*)?\b"
)
CLASSICAL = re.compile(
    r"\b(?:thresholding|otsu|connected components?|watershed|region[- ]growing|graph cuts?|active contours?|random forests?|k-?means|SVM|logistic regression|kNN|k-NN|nearest neighbou?rs?"
    r"|non-?local means|NLM|total variation|TV|bilateral|wavelets?|wiener|anisotropic diffusion|median filter|bicubic|gaussian(?: filter| blur)?|histogram matching"
    r"|template matching|hough|blob detection|LoG|DoG|HOG|colou?r(?:/texture)? (?:rules|segmentation|features)|texture features|template reports?|retrieval|rule-based|heuristics?|atlas)\b",
    re.IGNORECASE,
)
_LABELLED = re.compile(
    r"\b(?:models?|method|network|checkpoint|backbone|detector|classifier|generator|denoiser|approach)\b[*_` ]*(?:\([^)\n]{0,40}\))?[*_` ]*[:=][*_` ]*([\w./-]{3,60})",
    re.IGNORECASE,
)
_MARKS = re.compile(r"[_-]+")
_HEADING = AnyCase(
    r"candidat|compar|\boptions?\b|alternativ|(?:models?|methods?|approaches)\s+(?:considered|researched|reviewed|surveyed|looked at|survey|review|selection)|\bresearch(?:ed)?\b|shortlist|trade-?offs?|survey|\bconsidered\b"
    r"|\b(?:possible|potential|available|existing|evaluated|tested) (?:models?|methods?|approaches|algorithms?)\b"
)
_SUBJECT = re.compile(
    r"\b(?:models?|methods?|approach(?:es)?|network|detector|classifier|algorithm|famil(?:y|ies)|techniques?|routes?|ideas?|tools?|weights|checkpoints?)\b",
    re.IGNORECASE,
)
_BOTH_SIDES = re.compile(
    r"\b(?:pros?|strengths?|advantages?|benefits?|upsides?|good|plus|for)\b[^|\n]{0,30}\|[^\n]{0,60}\b(?:cons?|weakness(?:es)?|weak|disadvantages?|drawbacks?|limits?|limitations?|downsides?|risks?|bad|minus|against)\b",
    re.IGNORECASE,
)
"""The head of a table with a column for what speaks for its rows and one for what speaks against them."""
_VERDICT = re.compile(
    r"decision|verdict|\bpros?\b|\bcons?\b|\bfor\b|against|chosen|\bwhy\b|reason|comment|remark|strength|weak|limit|use\b|role",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?:^|\s)\(?[1-9a-h][.)]\s+")
_REMARKED = re.compile(r"(?:^|[,;])\s{0,4}[\w+./-]{2,40}(?: [\w+./-]{1,40}){0,4} \([^()\n]{4,200}\)")
"""A name with a remark in brackets, between commas: "U-Net (chosen), atlas (no registration tool here)"."""
_OVER = re.compile(
    r"\b(?:over|rather than|instead of|not|versus|vs\.?|against) (?:an? |the |plain |simple )?(?!the\b|all\b|each\b|every\b|\d)[A-Za-z][\w+./-]*(?: [\w+./-]+){0,3} ?(?::|\(|[,-]? (?:because|since|as|which)\b)(?! see\b)[^;)\n]{6,160}",
    re.IGNORECASE,
)
"""A candidate that is set aside with a reason within a sentence."""
ITEM = re.compile(r"^\s{0,16}(?:[-*+•]|\(?\d{1,2}[.):]|\(?[a-h][.)])\s+(\S.*)$")
_TOP = re.compile(r"^\s{0,3}(?:#{1,6}\s|\*\*[^*]+\*\*\s*$|[A-Z][\w /&-]{2,50}:\s*$|\S[^.|]{2,60}:\s*$)")
_GLOSS = re.compile(
    r"^\s{0,16}([A-Za-z][\w+./-]*(?: [\w+./-]+){0,4}?)(?:\s{2,}|\t|\s?:\s+|\s[-–—=]{1,2}>?\s|\s(?=\())\s*(\S.*)$"
)
_IDENTIFIER = re.compile(r"[A-Za-z]\w*[_\d][\w.]*|[A-Z][a-z]+[A-Z]\w*")
_REASON = AnyCase(
    r"because|since|chosen|choose|selected|rejected|dropped|discarded|not used|instead|better|worse|primary|fallback|cross-check|baseline|verdict|too (?:slow|large|big)|documented|accuracy|dice|ssim|robust|unavailable|available"
)


def model_names(text: str, weights: Iterable[str] = ()) -> tuple[str, ...]:
    """Learned models that a text names, in order: weight files, published and CamelCase names, stems of known weights."""
    found: dict[str, None] = {}
    for pattern in (WEIGHTS, FAMILIES, CAMEL):
        found.update((m, None) for m in pattern.findall(text))
    lower = text.lower()
    for stem in sorted(weights):
        if stem in lower:
            found[stem] = None
        elif spelled := _spelled_apart(stem, lower):
            found[spelled] = None
    return tuple(found)


def _spelled_apart(stem: str, lower: str) -> str | None:
    """`net_big_v2` as a text writes it with other marks between its parts: "net-big v2"."""
    parts = _MARKS.split(stem)
    if len(parts) < 2 or len(parts[-1]) < 2 or len(stem) < 6 or not all(part in lower for part in parts):
        return None
    match = re.search(rf"(?<![a-z0-9]){'[ _-]?'.join(re.escape(part) for part in parts)}(?![a-z0-9])", lower)
    return match.group() if match else None


def method_names(text: str, weights: Iterable[str] = ()) -> tuple[str, ...]:
    """Models and classical methods that a text names, and what it labels as its model or method."""
    found = dict.fromkeys(model_names(text, weights))
    found.update((m, None) for m in CLASSICAL.findall(text))
    found.update((m, None) for m in _LABELLED.findall(text))
    return tuple(found)


def candidates(text: str) -> tuple[str, ...]:
    """Candidates that a text describes: the longest list or table of a section on candidates, else the distinct
    published models or weight files that stand in lines giving a reason. A bare name (fewer than three words) is none.
    """
    best: tuple[str, ...] = ()
    for section in _sections(text.split("\n")):
        if len(section) > len(best):
            best = section
    for line in text.split("\n"):
        refused = _refused(line[:2_000])
        if len(refused) >= 2 and len(refused) + 1 > len(best):
            best = refused
    reasoned = "\n".join(line for line in text.split("\n") if _REASON.search(line))
    for pattern in (WEIGHTS, FAMILIES):
        distinct = tuple(dict.fromkeys(m.lower() for m in pattern.findall(reasoned)))
        if len(distinct) > len(best):
            best = distinct
    return best


def _refused(line: str) -> tuple[str, ...]:
    """What one sentence chooses and sets aside, each with its reason: "net.pt (over an atlas: no tool; over X: brittle)"."""
    found = tuple(dict.fromkeys(m.group().strip(" ,;(") for m in _OVER.finditer(line)))
    if len(found) < 2:
        return ()
    before = line[: line.find(found[0])]
    return (before.strip(" ,;(")[-80:], *found) if method_names(before) else found


def _sections(lines: list[str]) -> Iterator[tuple[str, ...]]:
    sections = 0
    for position, line in enumerate(lines):
        if sections >= MAX_SECTIONS:
            return
        row = line.lstrip().startswith("|")
        if row and (
            _HEADING.search(line) or (_SUBJECT.search(line) and _VERDICT.search(line)) or _BOTH_SIDES.search(line)
        ):
            sections += 1
            yield _table(lines[position : position + 400])
        elif not row and _HEADING.search(line):
            sections += 1
            yield _inline(line)
            below = lines[position + 1 : position + 401]
            yield _paragraph(below)
            if ITEM.match(line):
                yield _list(_indented(line, below))
            elif _TOP.match(line) or line.rstrip().endswith(":") or _heads_list(line, below):
                yield from (_list(below), _table(below), _headings(line, below), _glosses(line, below))
            elif _short(line):
                yield _glosses(line, below)


def _heads_list(line: str, below: list[str]) -> bool:
    """A short line without marks of a heading, such as "Models considered", right above a list or a table."""
    following = next((other for other in below[:2] if other.strip()), "")
    return _short(line) and bool(ITEM.match(following) or following.lstrip().startswith("|"))


def _short(line: str) -> bool:
    return len(line.split()) <= 6 and not line.rstrip().endswith((".", ","))


def _glosses(line: str, below: list[str]) -> tuple[str, ...]:
    """Names with a remark, one a line and without bullets, up to the first other line: "net_v2    both targets".

    A gap, a colon, a dash or a bracket parts the two. At least two names must look like one (an identifier, a known
    method), so that lines such as "input: 96 x 96" are none.
    """
    depth = _indent(line)
    found: list[str] = []
    for position, other in enumerate(below):
        match = _GLOSS.match(other[:400])
        if not other.strip() and position == 0:
            continue
        if match is None or _indent(other) < depth or len(match.group(2).split()) < 2:
            break
        found.append(other.strip())
    named = [item for item in found if _IDENTIFIER.match(item) or method_names(item[:60])]
    return tuple(found) if len(named) >= 2 else ()


def _indented(line: str, below: list[str]) -> list[str]:
    """Lines that stand deeper than an item: the list of candidates under a numbered step of the plan."""
    depth = _indent(line)
    end = next((n for n, other in enumerate(below) if other.strip() and _indent(other) <= depth), len(below))
    return below[:end]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _inline(line: str) -> tuple[str, ...]:
    """Numbered or semicolon-separated candidates within one line."""
    numbered = _NUMBERED.split(line)[1:]
    remarked = tuple(m.group().strip(" ,;") for m in _REMARKED.finditer(line.split(":", 1)[-1]))
    if len(numbered) < 2 and len(remarked) >= 2:
        return remarked
    parts = numbered if len(numbered) >= 2 else line.split(":", 1)[-1].split(";")
    return tuple(part.strip() for part in parts if len(part.split()) >= 3)


def _paragraph(below: list[str]) -> tuple[str, ...]:
    """Candidates in the running text under a heading: "U-Net (no weights), atlas (too slow) and Otsu (bias field)", or
    parted by semicolons. At least two must look like a method, as steps and checks are listed in the same way."""
    start = 1 if below and not below[0].strip() else 0
    text = ""
    for line in below[start : start + 8]:
        if not line.strip() or ITEM.match(line) or _TOP.match(line) or line.lstrip().startswith("|"):
            break
        text += f" {line.strip()[:1_000]}"
    remarked = [
        m.group().strip(" ,;.") for m in _REMARKED.finditer(re.sub(r"(?:,|;)? (?:and|or) |\. ", ", ", text.strip()))
    ]
    parted = [part.strip() for part in text.split(";") if len(part.split()) >= 3] if ";" in text else []
    for items in (remarked, parted):
        named = [item for item in items if _IDENTIFIER.match(item) or method_names(item[:60])]
        if len(named) >= 2:
            return tuple(items)
    return ()


def _headings(line: str, below: list[str]) -> tuple[str, ...]:
    """Candidates that have a heading of their own, one level below the section's, with words under it."""
    level = len(line) - len(line.lstrip("#"))
    found: list[str] = []
    for position, other in enumerate(below):
        depth = len(other) - len(other.lstrip("#"))
        if not level or 0 < depth <= level:
            break
        if depth == level + 1 and any(len(text.split()) >= 3 for text in below[position + 1 : position + 4]):
            found.append(other.strip("# "))
    return tuple(found)


def _list(lines: list[str]) -> tuple[str, ...]:
    items: list[str] = []
    base = next((_indent(line) for line in lines if ITEM.match(line)), 0)
    for line in lines:
        match = ITEM.match(line)
        if match:
            if _indent(line) >= base + 4 and items:
                continue
            if len(match.group(1).split()) >= 3:
                items.append(match.group(1))
        elif _TOP.match(line) or (items and line.strip() and not line[0].isspace()):
            break
    return tuple(items)


def _table(lines: list[str]) -> tuple[str, ...]:
    rows: list[str] = []
    for line in lines:
        if line.lstrip().startswith("|"):
            rows.append(line)
        elif rows or _TOP.match(line):
            break
    rows = [row for row in rows if not re.fullmatch(r"[|\s:\-]+", row)]
    return tuple(row for row in rows[1:] if len(row.split()) >= 4)
