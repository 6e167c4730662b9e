"""E1: another target than the brief's: the wrong region, side, image or set of classes, or the file that names the target unread."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...trajectories.code_parts import parse
from ...trajectories.syntax_tree import descendants, source
from ..context import CodeContext
from ..registry import Finding, detector
from ..setup.out_of_reach import out_of_reach
from ..verification.class_signs import classes
from .constraints import FILE, MAX_CODE, code_that_ran
from .invented import prose_of_code

# -- what the brief wants looked at --------------------------------------------------------------------------------------

_ALL_IMAGES = re.compile(
    r"(?:every|all|both|each) (?:of the )?(?:listed |manifest |its |the )?(?:images?|views?|frames?|slices?|projections?)[^.\n]{0,40}\b(?:belong|must|use|stud|report|case|exam|list|combin)"
    r"|(?:one|two) (?:to|or) (?:two|three|four|five|six) (?:images|views|projections)|combine the (?:images|views)|images_used|all listed images",
    re.IGNORECASE,
)
_FIRST_ONLY = re.compile(
    r"(?:\[['\"](?:images?|image_files|views|files|frames|image_paths)['\"]\]|\.get\(['\"](?:images?|image_files|views|files|image_paths)['\"][^)\n]{0,20}\)|\b(?:images|imgs|image_files|views|paths|pngs|files|frames))\[\s?(?:0|:\s?1|0\s?:\s?1|-1)\s?\]"
    r"|next\((?:iter\()?[^\n]{0,60}\.glob\(|next\(iter\([^)\n]{0,60}(?:images|views|files)|(?:sorted\()?glob(?:\.glob)?\([^)\n]{0,120}\)\)?\[0\]"
)
_VIEW = re.compile(r"['\"](PA|AP|LAT|LL|lateral|frontal|CC|MLO|axial|coronal|sagittal)['\"]", re.IGNORECASE)
_BY_VIEW = re.compile(
    r"\bfor \w+[^\n]{0,80}\bif\b[^\n]{0,40}view[^\n]{0,12}(?:==|\bin\b)\s?[(\[{]?['\"]|view[^\n]{0,12}(?:!=|not in)\s?[(\[{]?['\"][^\n]{1,40}:\s?continue",
    re.IGNORECASE,
)
"""Images of one view picked, the others left out."""
_VIEW_COMPARED = re.compile(r"view\w*['\"]?[\])]?\s?(?:==|!=|in\b|not in\b)", re.IGNORECASE)
_EACH_IMAGE = re.compile(
    r"for \w+(?:, ?\w+)? in (?:enumerate\()?[^\n:]{0,60}(?:images?|image_files|views|imgs|paths|pngs|frames|listed|entries|man\b|manifest)|torch\.stack\(|np\.stack\(|map\(",
    re.IGNORECASE,
)


@detector("one_image_of_many", code="E1", stage="S4", independence="from_trace")
def one_image_of_many(ctx: CodeContext) -> Iterable[Finding]:
    """A case has several images that all count, and the code that made the outputs takes one of them."""
    if ctx.final_write is None or not ctx.handed_over or not _ALL_IMAGES.search(ctx.run.brief):
        return
    code = "\n".join(line.split("#", 1)[0] for line in ctx.pipeline_code[:MAX_CODE].splitlines())
    views = {v.lower() for v in _VIEW.findall(code)}
    if over := overwritten(ctx.serving_code[:MAX_CODE]):
        yield Finding(
            (ctx.final_write,),
            f"Every image of a case counts for the brief, and each one's result overwrites that of the one before ({over}).",
            0.8,
        )
        return
    if (_FIRST_ONLY.search(code) and not _EACH_IMAGE.search(code)) or (
        len(views) == 1 and _BY_VIEW.search(code) and len(_VIEW_COMPARED.findall(code)) == 1
    ):
        yield Finding(
            (ctx.final_write,), "Every image of a case counts for the brief, and the code takes only one of them.", 0.75
        )


_IMAGES = re.compile(r"\b\w{0,12}(?:images?|imgs?|views?|frames?|slices|files|pngs|paths)\b", re.IGNORECASE)
_WRITES = re.compile(r"write_text$|np\.save$|imwrite$|imsave$|\.save$|to_filename$")


def overwritten(code: str) -> str:
    """The path that a loop over the images of a case writes anew for every image, as it names the case alone; else nothing."""
    for text in _programs(code):
        for outer in descendants(text):
            if not isinstance(outer, ast.For | ast.FunctionDef):
                continue
            for loop in outer.body:
                if isinstance(loop, ast.For) and _IMAGES.search(source(loop.iter, 120)):
                    path = _written_anew(loop)
                    if path:
                        return path
    return ""


def _written_anew(loop: ast.For) -> str:
    """A path written by statements of this loop itself, under no condition, that nothing of the loop's own goes into."""
    own = {n.id for n in descendants(loop.target) if isinstance(n, ast.Name)}
    for statement in loop.body:
        if isinstance(statement, ast.Assign) and own & {
            n.id for n in descendants(statement.value) if isinstance(n, ast.Name)
        }:
            own |= {n.id for target in statement.targets for n in descendants(target) if isinstance(n, ast.Name)}
        if isinstance(statement, ast.If | ast.While | ast.Try | ast.For):
            continue
        for call in descendants(statement):
            if isinstance(call, ast.Call) and (place := _place(call)) is not None:
                names = {n.id for n in descendants(place) if isinstance(n, ast.Name)}
                if names and not names & own:
                    return source(place, 60)
    return ""


def _place(call: ast.Call) -> ast.expr | None:
    """The path that a call writes a whole file to."""
    name = source(call.func)[-40:]
    if (
        name == "open"
        and len(call.args) > 1
        and isinstance(call.args[1], ast.Constant)
        and str(call.args[1].value).startswith("w")
    ):
        return call.args[0]
    if name.endswith("write_text") and isinstance(call.func, ast.Attribute):
        return call.func.value
    return call.args[0] if call.args and _WRITES.search(name) and name.endswith("np.save") else None


def _programs(code: str) -> Iterator[ast.Module]:
    """The code as one program, or each stretch of it that parses."""
    whole = parse(code)
    if whole is not None:
        yield whole
        return
    yield from filter(None, map(parse, re.split(r"(?m)^(?=(?:import|from) )", code)[:40]))


_INPUT_FILE = re.compile(rf"(?P<file>{FILE})(?=(?P<what>[^.;\n]{{0,120}}))", re.IGNORECASE)
_NAMES_TARGET = re.compile(
    r"\b(?:boxe?s?|region|roi|marks?|marked|outlin\w+|landmarks?|crop|gives? the|tells? (?:which|where)|which (?:\w+ ){0,2}(?:to|is)|side|target)\b",
    re.IGNORECASE,
)
_OPTIONAL = re.compile(
    r"optional|may be (?:used|ignored)|not needed|for (?:looking|information|display)|only for|if (?:present|needed)|writ|output|metadata"
    r"|\b(?:device|camera|scanner|vendor|manufacturer|probe|detector|bit depth|spacing|photometric|sizes?)\b",
    re.IGNORECASE,
)


_ALL_FILES = re.compile(r"\*\.(?:json|\*)|for \w+ in (?:os\.listdir|[^\n]{1,60}\.iterdir)\([^\n]{0,60}\bd\b")
"""Code that opens whatever lies in a case's folder."""


@detector("target_file_unread", code="E1", stage="S4", independence="from_trace")
def target_file_unread(ctx: CodeContext) -> Iterable[Finding]:
    """The brief names a file of each case that says what to look at, and no executed code ever opens it."""
    inputs = re.search(r"INPUTS?\b[^\n]{0,2000}", ctx.run.brief[:MAX_CODE])
    if inputs is None or ctx.final_write is None or not ctx.handed_over:
        return
    everything = "\n".join("\n".join(lines) for _, lines in code_that_ran(ctx))
    # A helper of the benchmark may open the file itself.
    shown = [
        line[:1_000] for t in ctx.run.turns for line in t.output.splitlines() if re.search(r"open\(|load\(|read", line)
    ]
    for found in _INPUT_FILE.finditer(inputs[0]):
        name, what = (
            found["file"],
            re.sub(r"(?:,| and| or| plus| with)(?: an?| the)? [\w/<>-]{1,40}$", "", found["what"]),
        )
        if not _NAMES_TARGET.search(what) or _OPTIONAL.search(what):
            continue
        stem = re.compile(rf"(?<!\w){re.escape(name.split('.', 1)[0])}(?!\w)")
        if stem.search(everything) or any(stem.search(line) for line in shown) or _ALL_FILES.search(everything):
            continue
        yield Finding((ctx.final_write,), f"{name}, which says what to look at in each case, was never opened.", 0.7)
        return


# -- the part of the input that the answer is about -----------------------------------------------------------------------


class Scope(NamedTuple):
    """A restriction of the target: how a brief states it, how code keeps to it, and the words that contradict it."""

    name: str
    asked: str
    kept: str
    other: str


_PLACE = r"(?:tile|image|patch|picture|field|film|slice|volume|scan|photo\w*|frame|view|crop|section|slide|region)"
_WHOLE = rf"\b(?:whole|entire|full|complete)[ -](?:\w+ )?{_PLACE}|\b(?:dominant|predominant|prevailing|main|majority|most (?:common|frequent)|largest share|overall)\b[^.\n]{{0,30}}\b(?:tissue|class|pattern|content|texture|type|label|finding|{_PLACE})|\b(?:everything|all) (?:that is )?in the {_PLACE}|\b(?:global|{_PLACE}-level) (?:class|label|pooling|average)|\buses? (?:all|everything)\b"
_CROP = (
    r"\[[^\]\n]{0,40}?[\w./*() +-]{0,30}:[\w./*() +-]{1,30}\s?,\s?[\w./*() +-]{0,30}:[\w./*() +-]{1,30}[^\]\n]{0,20}\]|\.crop\(|[Cc]enter_?[Cc]rop|[Cc]entral_?[Cc]rop|CenterSpatialCrop|crop_?cent|\bcrop\w*\("
    r"|\.narrow\(|extract_?(?:roi|box|patch)|RandomCrop|SpatialCrop|\bcenter\b|\bcentre\b|\bcentral\b"
)
SCOPES = (
    Scope(
        "the central part",
        r"\b(?:labels?|class(?:es)?|grades?|diagnos[ei]s|answers?|questions?|target|scor\w+|findings?|predictions?)\b[^.\n]{0,60}\b(?:cent(?:ral|re|er)|middle|inner)\b|\bonly (?:the|its) (?:cent(?:ral|re|er)|middle|inner)\b|\b(?:margins?|surroundings?|border|outer \w+|context)\b[^.\n]{0,60}\b(?:does|do|must|shall)(?: not|n't) (?:count|influence|matter|decide)",
        _CROP,
        _WHOLE,
    ),
    Scope(
        "the marked region",
        r"\b(?:assess|grade|classify|judge|rate|describe|label|segment|name|score) (?:only )?the (?:\w+ )?(?:marked|outlined|annotated|boxed|circled|indicated|delineated)\b|\b(?:labels?|class(?:es)?|grades?|diagnos[ei]s|answers?|questions?|describe|assess|judge|rate)\b[^.\n]{0,60}\b(?:inside|within|in|of|to|on|for|about|concerns?) (?:the |its |a )?(?:\w+ )?(?:marked|outlined|annotated|boxed|circled|indicated|given|delineated)\b[^.\n]{0,30}|\b(?:region of interest|\bROI\b)[^.\n]{0,30}\b(?:only|alone)\b|\b(?:inside|within) (?:the|its) (?:box|roi|outline|contour|circle)",
        rf"{_CROP}|\broi\b|\bbox\b|bbox|contour|\bmask\b|\boutline\b",
        _WHOLE,
    ),
    Scope(
        "the largest one",
        r"\b(?:only|just|solely) the (?:single )?(?:largest|biggest|index|dominant|main)\b|\b(?:largest|biggest|index|dominant) (?:\w+ )?(?:only|alone)\b",
        r"argmax|max\(|sorted\(|largest|biggest|bincount|argsort|\.sort\(",
        r"\b(?:all|every|each|any|both) (?:of the )?(?:\w+ )?(?:lesions?|nodules?|tumou?rs?|components?|foci|cells?|masses|objects?)\b",
    ),
    Scope(
        "the worst finding",
        r"\b(?:most severe|worst|highest(?:-grade| grade| stage)?|most advanced)\b[^.\n]{0,60}\b(?:counts?|decides?|is (?:the|its)|label|grade|determines?|given|reported|wins)\b|\b(?:label|grade|class|stage)\b[^.\n]{0,60}\b(?:most severe|worst|highest)\b",
        r"\bmax\((?![^\n]{0,60}\.count\b)|\.max\(|\.any\(|\bany\(|argmax\([^\n]{0,20}(?:grade|sever)|sorted\(|severity|worst|np\.maximum|quantile|topk",
        r"\b(?:mean|averag\w+|majority|dominant|most (?:common|frequent)|median|vote)\b",
    ),
    Scope(
        "the predominant finding",
        r"\b(?:predominant|dominant|prevailing|majority|most (?:common|frequent)|largest area)\b[^.\n]{0,60}\b(?:counts?|decides?|is (?:the|its)|label|class|determines?|given|wins)\b|\b(?:label|grade|class)\b[^.\n]{0,60}\b(?:predominant|dominant|prevailing|majority|most (?:common|frequent))\b",
        r"bincount|Counter\(|\.mean\(|\.sum\(|mode\(|most_common|value_counts|argmax|area|AvgPool",
        r"\b(?:most severe|worst|highest grade|any (?:patch|tile|field|window|sign)|central|cent(?:re|er) (?:of|crop|patch))\b",
    ),
    Scope(
        "every object",
        r"\b(?:every|all|each)\b (?:\w+ ){0,3}?(?:nodules?|lesions?|cells?|objects?|polyps?|fractures?|foci|metastas[ei]s|findings?|tumou?rs?|aneurysms?|hardware|devices?|kinds)\b|\b(?:several|more than one|any number of) (?:\w+ ){0,2}(?:nodules?|lesions?|cells?|objects?|polyps?|metastas[ei]s|tumou?rs?|of them)\b|\bmay hold (?:several|more)",
        r"\bnever\b(?!)",
        r"\b(?:only|just|keep|take|report|give|leave|one|single)\b[^.\n]{0,30}\b(?:best|top|strongest|largest|biggest|most confident|highest[- ]scoring|single|one|brightest)\b[^.\n]{0,20}\b(?:box|detection|candidate|peak|lesion|nodule|object|cell|polyp|metastas[ei]s|tumou?r|fracture|finding|(?:component|blob) (?:per|in each|of each|of every|as the (?:lesion|tumou?r|nodule)))\b(?! (?:of|in) (?:each|every|an?) (?:pair|group|cluster))",
    ),
)  # fmt: skip
_ONE_KEPT = re.compile(
    r"\[:\s?1\]|\[0:1\]|max\([^\n]{0,80}key\s?=|(?:heat|score|prob|conf)\w*\.argmax\(|np\.argmax\([^\n]{0,40}(?:score|prob|heat|conf|bincount|size|area|vol)|topk\([^\n]{0,40}1\)|largest_?(?:component|cc|only)|sorted\([^\n]{0,100}\)\[(?:0|-1)\]|nlargest\(1"
)
_NEGATED = re.compile(
    r"\b(?:not|never|no|n't|rather than|instead of|without|unlike|wrong|except|ignor\w+|but (?:the|only)|against|outside)\b[^.\n]{0,40}$",
    re.IGNORECASE,
)
_TABLE_ROW = re.compile(r"^\s{0,10}\|")
_ABOUT_SCREEN = re.compile(r"context|surround|border|preview|thumbnail|pad", re.IGNORECASE)


def _says(text: str, pattern: re.Pattern[str]) -> bool:
    """Whether a text states something of its own aim or method: not negated, not a row that compares candidates."""
    for line in text[:MAX_CODE].splitlines():
        line = line[:2_000]
        if _TABLE_ROW.match(line):
            continue
        for found in pattern.finditer(line):
            if not _NEGATED.search(line[: found.start()]) and not _ABOUT_SCREEN.search(found[0]):
                return True
    return False


@detector("other_target", code="E1", stage="S1", independence="from_trace")
def other_target(ctx: CodeContext) -> Iterable[Finding]:
    """The brief says which part of the input the answer is about; the run says another, and its code follows that."""
    final = ctx.final_write
    if final is None or not ctx.handed_over:
        return
    code = "\n".join(line.split("#", 1)[0] for line in ctx.pipeline_code[:MAX_CODE].splitlines())
    code = "\n".join(line for line in code.splitlines() if "print(" not in line)
    task = "\n".join(line for line in ctx.run.brief[:MAX_CODE].splitlines() if not _NOT_TASK.match(line))
    swapped = opposite_part(task, code)
    if swapped:
        yield Finding((final,), f"The brief asks for the {swapped[0]}, and the code takes the {swapped[1]} one.", 0.8)
        return
    for scope in SCOPES:
        if not re.search(scope.asked, task, re.IGNORECASE):
            continue
        kept = re.search(scope.kept, code, re.IGNORECASE)
        if kept or (scope.name == "every object" and not _ONE_KEPT.search(code)):
            continue
        if scope.name == "every object" and ctx.run.track not in ("detection", "segmentation"):
            continue
        other = re.compile(scope.other, re.IGNORECASE)
        told = next(
            (t.index for t in ctx.run.turns[:final] if _says(t.text + "\n" + prose_of_code(t.code), other)), None
        )
        if told is None and not (ctx.run.plan.text and _says(ctx.run.plan.text, other)):
            continue
        turns = tuple(sorted({told or ctx.run.plan.turn or final, final}))
        yield Finding(turns, f"The brief asks for {scope.name}, and the run aims at something else.", 0.75)
        return


_OPPOSITES = (
    ("left", "right"), ("upper", "lower"), ("anterior", "posterior"), ("superior", "inferior"), ("nasal", "temporal"), ("systol", "diastol"), ("medial", "lateral"),
    ("arterial", "venous"), ("proximal", "distal"), ("baseline", "follow"), ("first", "last"), ("cortical", "trabecular"), ("grey", "white"), ("gray", "white"), ("findings", "impression"),
)  # fmt: skip


def opposite_part(task: str, code: str) -> tuple[str, str] | None:
    """(asked, taken) where a task names one of two opposite parts and code picks the other by name; None otherwise.

    The picked name has to hold the same noun ("the left kidney", `kidney_right`), so that axes and sides of plots are none.
    """
    task, code = task.lower(), code.lower()
    for pair in _OPPOSITES:
        for asked, other in (pair, pair[::-1]):
            if asked not in task or other not in code:
                continue
            if re.search(rf"(?<![a-z]){other}", task) or re.search(rf"(?<![a-z]){asked}", code):
                continue
            for found in re.finditer(rf"(?<![a-z]){asked}\w{{0,6}}[ -](\w{{2,20}})(?: (\w{{4,20}}))?", task):
                noun = "|".join(re.escape(word.rstrip("s")) for word in found.groups() if word and len(word) >= 4)
                noun = f"(?:{noun or found[1]})"
                picked = rf"(?:{noun}\w{{0,3}}[ _-]{other}|{other}\w{{0,6}}[ _-]{noun})"
                if re.search(rf"['\"\w._]{picked}|(?<![\w ]){picked}", code):
                    return f"{asked} {found[1]}", other
    return None


_NOT_TASK = re.compile(r"\s{0,10}(?:RULES|WORKFLOW|METHOD|CANDIDATE|FAMILIES|Begin)\b")


# -- the set of classes ----------------------------------------------------------------------------------------------------

_CLASS_WORD = r"[A-Za-z][\w-]{1,29}"
_TOLD_CLASSES = (
    re.compile(rf"\(({_CLASS_WORD}(?:(?:, (?:or |and )?| or | and ){_CLASS_WORD}){{1,14}})\)"),
    re.compile(rf"\b(?:one of|either|label|class(?:es)?|kinds?|each (?:its class|one)?)[:,]? \(?({_CLASS_WORD}(?:(?:, (?:or |and )?| or | and ){_CLASS_WORD}){{1,14}})"),
)  # fmt: skip
_DYNAMIC = re.compile(
    r"\[['\"](?:classes|labels|names|class_names|categories|id2label|idx_to_class)['\"]\]|\.(?:classes_?|names|id2label|config|categories)\b|json\.load\(|yaml\.|read_csv\(|label_?map|get\(['\"](?:classes|labels|names)|load_labels|\bLABELS\b|\bCLASSES\b|\bNAMES\b"
)


def asked_classes(brief: str) -> tuple[str, ...]:
    """Names of the two or more classes that a brief wants told apart; empty when that is unclear."""
    names = classes(brief)
    if names:
        return names
    for line in brief[:MAX_CODE].splitlines():
        if not line.startswith(("TASK", "OUTPUT")):
            continue
        for pattern in _TOLD_CLASSES:
            match = pattern.search(line)
            if match:
                found = tuple(dict.fromkeys(re.split(r", (?:or |and )?| or | and ", match[1])))
                if len(found) >= 2 and all(brief.count(name) >= 1 for name in found):
                    return found
    return ()


@detector("classes_left_out", code="E1", stage="S4", independence="from_trace")
def classes_left_out(ctx: CodeContext) -> Iterable[Finding]:
    """The code that made the outputs names some of the classes that the brief wants told apart and never the others."""
    final = ctx.final_write
    names = asked_classes(ctx.run.brief)
    if final is None or not ctx.handed_over or ctx.run.track not in ("classification", "detection") or len(names) < 2:
        return
    if out_of_reach(ctx) is not None:
        return  # what serves in the place of a lost model gives what it can
    code = "\n".join(
        line.split(" #", 1)[0] for line in ctx.pipeline_code[:MAX_CODE].splitlines() if "print(" not in line
    )
    quoted = [name for name in names if re.search(rf"['\"]{re.escape(name)}['\"]", code)]
    absent = [name for name in names if not re.search(rf"(?<![A-Za-z]){re.escape(name)}(?![a-z])", code, re.IGNORECASE)]
    if not quoted or not absent or len(quoted) + len(absent) != len(names) or _DYNAMIC.search(code):
        return
    if (
        re.search(
            r"^\s{0,8}from (?!PIL|numpy|scipy|torch|skimage|pathlib|collections|glob|os\b)\w+ import \*",
            code,
            re.MULTILINE,
        )
        and len(quoted) < 1
    ):
        return
    yield Finding((final,), f"The brief asks for {', '.join(names)}; the code can give {', '.join(quoted)} only.", 0.75)


# -- which image of a case -------------------------------------------------------------------------------------------------

_IMAGE_FILE = re.compile(
    r"(?<![\w*-])([\w-]{1,40}\.(?:npy|npz|nii(?:\.gz)?|png|jpe?g|dcm|mha|nrrd|tiff?))(?![\w-])", re.IGNORECASE
)
_SUBJECT = r"(?:\b(?:of|on|in|from|for|like|is|as) (?:the |its |their |each |every )?(?:case's |patient's |subject's )?{file}|\b{file} (?:is|are|shows?|holds?) (?:the |what )?(?:image|scan|series|volume|one)? ?(?:to be|that|which)|\b(?:segment|denoise|classify|restore|enhance|read|describe) (?:the )?{file})(?!\w|[.-]\w)"
_ANY_IMAGE = re.compile(
    r"glob\([^\n]{0,120}\*\.|listdir|iterdir|os\.walk|scandir|\{\w{1,20}\}\.(?:nii|npy|png|jpe?g)|['\"]\.(?:nii|npy|png|jpe?g)|manifest|\+ ?['\"]\."
)


@detector("other_image", code="E1", stage="S1", independence="from_trace")
def other_image(ctx: CodeContext) -> Iterable[Finding]:
    """A case holds several images; the one that the brief's task or output is about was never opened, another was."""
    final = ctx.final_write
    inputs = re.search(r"INPUTS?\b[^\n]{0,2000}", ctx.run.brief[:MAX_CODE])
    if final is None or inputs is None or not ctx.handed_over:
        return
    listed = list(dict.fromkeys(f.lower() for f in _IMAGE_FILE.findall(inputs[0])))
    if len(listed) < 2:
        return
    everything = "\n".join("\n".join(lines) for _, lines in code_that_ran(ctx)).lower()
    if _ANY_IMAGE.search(everything):
        return
    rest = "\n".join(
        line for line in ctx.run.brief[:MAX_CODE].splitlines() if line.startswith(("TASK", "OUTPUT", "METHOD"))
    )
    for name in listed:
        stem = re.escape(name.split(".", 1)[0])
        opened = re.search(rf"(?<![a-z0-9]){stem}(?![a-z0-9])", everything)
        if opened or not re.search(_SUBJECT.format(file=re.escape(name)), rest, re.IGNORECASE):
            continue
        others = [o for o in listed if o != name and re.search(rf"(?<![a-z0-9]){re.escape(o)}", everything)]
        if others:
            yield Finding((final,), f"The task is about {name}, and the run opened {others[0]} only.", 0.8)
            return


# -- empty results ------------------------------------------------------------------------------------------------------

_MAY_BE_EMPTY = re.compile(
    r"\bempty (?:list|mask|file|boxes)\b|\bor none\b|\b(?:may|can|might) (?:have|hold|contain|show) (?:no|none|zero)\b|\b(?:mask|list) (?:is|may be|stays?) (?:then )?empty\b|\bno \w+ at all\b|\bwithout (?:any )?(?:lesions?|findings?|nodules?|objects?)\b",
    re.IGNORECASE,
)
_NEVER_EMPTY = re.compile(
    r"\b(?:at least one|never (?:be |an )?empty|not (?:be |an )?(?:left )?empty|no empty|non-?empty|always (?:one|give|return|write|has|have)|every (?:image|case|slice|scan|film|patient) (?:has|holds|contains|shows|must|needs)|(?:cannot|can't|must not|may not) be empty|forbids? empty|empty \w+ (?:is|are|counts? as|would be|will be) (?:\w+ )?(?:invalid|missing|rejected|wrong|not|an error|penali[sz]ed))\b",
    re.IGNORECASE,
)
_IF_EMPTY = re.compile(
    r"\bif (?:not (?:len\()?\w{1,20}\)?(?:\.any\(\)|\.sum\(\))?\s?:|len\(\w{1,20}\) ?(?:==|<) ?[01]\b|\w{1,20}\.(?:sum|any|max)\(\) ?(?:==|<) ?[01]\b|\w{1,20} ?== ?\[\])"
)
_FILLS = re.compile(
    r"\.append\(|=\s?\[\s?[{(\w]|argmax|\bmax\(|topk|\[:1\]|\[\w+ ?: ?\w+, ?\w+ ?: ?\w+\]\s?=\s?1|quantile|percentile|>=?\s?[\w.]*(?:max|thr|low)|sorted\("
)


@detector("empty_filled", code="E1", stage="S4", independence="from_trace")
def empty_filled(ctx: CodeContext) -> Iterable[Finding]:
    """The brief allows empty results, the run says that none may be empty, and its code puts something in."""
    final = ctx.final_write
    if final is None or not ctx.handed_over or not _MAY_BE_EMPTY.search(ctx.run.brief[:MAX_CODE]):
        return
    lines = [line.split(" #", 1)[0][:1_000] for line in ctx.pipeline_code[:MAX_CODE].splitlines()]
    filled = any(
        _IF_EMPTY.search(line)
        and any(
            _FILLS.search(part) and "print(" not in part for part in (line.split(":", 1)[-1], *lines[n + 1 : n + 3])
        )
        for n, line in enumerate(lines)
    )
    if not filled:
        return
    for turn in ctx.run.turns[:final]:
        if _says(turn.text + "\n" + prose_of_code(turn.code), _NEVER_EMPTY):
            yield Finding(
                tuple(sorted({turn.index, final})),
                "The brief allows empty results, and the run fills every one of them.",
                0.75,
            )
            return
