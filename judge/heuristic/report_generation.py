"""S1-S3 of report generation: binary questions on the plan, the pipeline and its pilot."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..scorecard import Evidence
from .names import FAMILIES, WEIGHTS, candidates, method_names, model_names
from .plan import NO_PLAN, compared, drawing_code, plan_diagram
from .programs import Step
from .validate import pilots
from .values import same_files_twice
from .view import FORWARD, LOADS, SAVES, Finding, Pattern, View, met, unmet

_ENTRY = re.compile(
    r"\b[\w/-]{1,80}\.(?:py|sh)\b|\bpython3? -m [\w.]+|\b\w+\.(?:generate|predict|forward|infer|run)\b(?:\(\w*\))?|\bfrom_pretrained\b|\bpipeline\(|\b[a-z][a-z0-9]{0,20}_\w{1,40}\(\w{0,40}\)",
    re.IGNORECASE,
)
_STUDY = re.compile(
    r"(?:one|each|every|a|per)[ -]?(?:case|report)[^\n.]{0,40}\b(?:is|=|per|for|of)\b[^\n.]{0,30}\bstud(?:y|ies)|\bstud(?:y|ies)\b[^\n.]{0,60}\b(?:one|single|each|per)\b[^\n.]{0,20}\b(?:case|report)|per[- ]study|study[- ]level|case ?= ?(?:one )?study|not (?:one|per|each|an?) image|one report (?:per|for (?:each|every|a|the)) (?:study|case)|multi-?(?:view|image)"
    r"|\b(?:images?|views?|films?)\)? (?:of|in|from|per) (?:the|a|an|one|each|every|its|that) study|\ba case (?:is|=) (?:a|one) study",
    re.IGNORECASE,
)
_ALL_IMAGES = re.compile(
    r"\ball\b[^\n.]{0,30}\b(?:images?|views?)\b|\b(?:every|each) (?:listed )?(?:image|view)\b|all (?:manifest|listed) images|images? listed[^\n.]{0,40}\b(?:used|all)",
    re.IGNORECASE,
)
_ONE_IMAGE = re.compile(
    r"\b(?:only|just)\b[^\n.]{0,20}\b(?:first|one|frontal|single)\b[^\n.]{0,10}\b(?:image|view)|\bfirst image\b|frontal (?:image|view) only",
    re.IGNORECASE,
)
_PATH = re.compile(r"[\w./<>{}$*\[\]-]{0,120}[/}>]report\.txt")
_PILOT = re.compile(
    r"\bpilot|\bsmoke|dry[- ]run|\b(?:first|one|single|1|two|2|few|three|3) (?:case|study|studies|cases)\b[^\n]{0,60}\b(?:before|first|then|test|check)|\btest\b[^\n]{0,30}\b(?:one|first|single) (?:case|study)",
    re.IGNORECASE,
)
_CONCRETE = re.compile(
    r"exist|not? ?-?empty|non-?empty|length|characters?|chars|letters|utf-?8|findings|impression|readable|repetit|open(?:ed|s)? (?:the|its|and)|print|word count|words|sections?|fits the study|image count|all images|40|8,?000",
    re.IGNORECASE,
)
_MANIFEST_READ = re.compile(
    r"(?:open|read_csv|read_json|read_table|json\.loads?|DictReader|read_text|load\w*|cat|head|jq|Path)\b[^\n]{0,80}manifest|manifest\w*(?:\.\w+)?[^\n]{0,40}\b(?:open|read_text|read_csv|load|json)",
    re.IGNORECASE,
)
_IMAGE_READ = re.compile(r"Image\.open\(|imread\(|dcmread\(|read_image\(|load_image\w*\(|nib\.load\(|ReadImage\(")
_GROUPS = re.compile(
    r"groupby\(|defaultdict\(list\)|setdefault\([^)\n]*\[\]\)|\[['\"](?:images?|image_paths?|image_files?|views|files|paths)['\"]\]|\.get\(['\"](?:images?|image_paths?|image_files?|views)['\"]|study_id|\bfor \w+ in \w+\.images?\b|images_of|by_(?:case|study)",
    re.IGNORECASE,
)
_FIRST_IMAGE = re.compile(
    r"(?:Image\.open|imread|dcmread|read_image|load_image\w*)\([^\n]{0,120}\[0\]|\[['\"](?:images?|image_paths?|image_files?|views|files|paths)['\"]\]\[0\]"
)
"""Only the first image of a case is opened."""
_EACH_IMAGE = re.compile(
    r"\bfor \w+(?:, ?\w+)? in (?:enumerate\()?[^\n:]{0,60}(?:images?|image_paths?|image_files?|views|files|paths|names)\b",
    re.IGNORECASE,
)
_WRITES_REPORT = re.compile(r"report\.txt")
_EXPORT = re.compile(
    r"\bexport\w*(?:\.py|\(|_\w+)|\b\w+_export\w*\b|\bexport (?:helper|script|function|path)\b|\bofficial (?:export|writer|helper)\b",
    re.IGNORECASE,
)
_TEXT_SHOWN = re.compile(r"report|text|out|generated|read_text|\bcat\b|findings", re.IGNORECASE)
_REPORT_WORDS = re.compile(
    r"\b(?:findings|impression|lungs?|cardiac|pleural|effusion|pneumothorax|opacit|normal|heart|mediastin|consolidation|acute|no evidence|unremarkable)\b",
    re.IGNORECASE,
)
_IMAGES_CHECKED = re.compile(r"exist|len\(|is_file|isfile|open|size|shape|count|missing|n_images", re.IGNORECASE)
_ALL_USED = re.compile(
    r"assert[^\n]{0,120}len\([^\n]{0,80}==[^\n]{0,120}len\(|\b(?:used|loaded|processed|encoded|fed)\b[^\n]{0,30}\b(\d+)\s*(?:/|of)\s*\1\b|\b(\d+)\s*(?:/|of)\s*\2\s+(?:images|views)|\ball \d+ (?:manifest )?images (?:used|loaded|fed)|images? used:? ?\d+ (?:of|/|expected|listed|manifest)|n_images\D{1,4}\d+\D{1,12}used\D{1,4}\d+|used_images",
    re.IGNORECASE,
)
_FILE_LIST = re.compile(r"\[\s*['\"][^\]\n]{1,200}\.\w{3,4}['\"]")
_USED_EQUALS = re.compile(
    r"\b\w*(?:used|loaded|fed|opened)\w*\)?\s*==|==\s*\w{0,10}\(?\w*(?:used|loaded|fed|opened)\w*|len\(\w*(?:image|view|film)\w*\)\s*==\s*len\(",
    re.IGNORECASE,
)
_OPENED = re.compile(
    r"\b(\w+) ?= ?\[[^\n]{0,200}?(?:Image\.open|imread|dcmread|ReadImage|np\.load|\b(?:load|read|open|prep)\w*)\([^\n]{0,200}? for \w+ in ([^\n]{1,120}?)\]\s*(?:$|\n|;)"
)
_OPENED_IN_LOOP = re.compile(
    r"\bfor \w+ in ([^\n:]{1,120}):[^\n]*\n(?:[^\n]*\n){0,6}?[ \t]*(\w+)\.append\([^\n]{0,160}?(?:Image\.open|imread|dcmread|ReadImage|np\.load|\b(?:load|read|open|prep)\w*)\("
)
_PART = re.compile(r"\[\s*(?:\d+|:\s*\d+|-\d+:?)\s*\]?$|\[:\s*\d+\]|\bif\b|islice")
"""Only a part of a list is gone through."""
_STAND_IN = re.compile(r"\b(?:mock|dummy|placeholder|stub|fake|template)\w*\b", re.IGNORECASE)


# -- S1: the plan -----------------------------------------------------------------------------------------------------


def says(pattern: Pattern, what: str, against: Pattern | None = None) -> Callable[[View], Finding]:
    """A rule on the plan's text: met when a line matches `pattern` and none that matches stands `against` it."""

    def rule(view: View) -> Finding:
        if not view.run.plan.exists:
            return unmet(NO_PLAN)
        quote = view.plan_quote(pattern)
        if quote is None:
            return unmet(f"The plan does not say {what}.", view.plan_quote(r"\w"))
        if against is not None and (contrary := view.plan_quote(against)):
            return unmet(f"The plan contradicts {what}.", contrary)
        return met(view, f"The plan says {what}.", quote)

    return rule


def names_model(view: View) -> Finding:
    """S1b: the plan names the model or method that writes the reports."""
    if not view.run.plan.exists:
        return unmet(NO_PLAN)
    names = method_names(view.plan, view.weight_names)
    if not names:
        return unmet("The plan names no model or method.", view.plan_quote(r"\w"))
    return met(view, f"The plan names {names[0]}.", view.plan_quote(re.escape(names[0])))


names_entry = says(_ENTRY, "how inference is started")
case_is_study = says(
    _STUDY,
    "that one case is one study",
    re.compile(r"(?:each|every|one) image (?:is|=) (?:a|one) case|per[- ]image report|report per image", re.IGNORECASE),
)
all_images = says(_ALL_IMAGES, "that every image of the manifest is used", _ONE_IMAGE)
output_path = says(_PATH, "the exact output path")
pilot_required = says(_PILOT, "that a pilot comes before the full run")


def pilot_check(view: View) -> Finding:
    """S1h: a line on the pilot (or a check) names something concrete to look at."""
    if not view.run.plan.exists:
        return unmet(NO_PLAN)
    lines = view.plan.split("\n")
    near = [
        i
        for i, line in enumerate(lines)
        if _PILOT.search(line) or re.search(r"check|verif|valid|S3", line, re.IGNORECASE)
    ]
    for at in near:
        for line in lines[at : at + 3]:
            match = _CONCRETE.search(line)
            if match and (quote := view.plan_quote(re.escape(line.strip()))):
                return met(view, "The plan names a concrete check of the pilot.", quote)
    return unmet("The plan names no concrete check of the pilot.", view.plan_quote(r"\w"))


def image_agrees(view: View) -> Finding:
    """S1j: the code of plan.png draws steps with arrows and names the plan's model."""
    if not view.run.plan.exists:
        return unmet(NO_PLAN)
    drawn = plan_diagram(view)
    if not drawn.value:
        return drawn
    code = drawing_code(view).replace(view.plan, "").lower()
    stems = {n.lower().rsplit(".", 1)[0] for n in model_names(view.plan, view.weight_names)}
    if any(stem in code for stem in stems):
        return met(view, "plan.png draws the plan's model and its steps.", *drawn.evidence)
    return unmet("The code of plan.png does not name the plan's model.", *drawn.evidence)


def candidates_compared(view: View) -> Finding:
    """S1k: at least two candidates compared in the plan."""
    if len(candidates(view.notes)) >= 2:
        return compared(view, 2)
    families = {m.lower() for p in (FAMILIES, WEIGHTS) for m in p.findall(view.plan)}
    reason = view.plan_quote(
        r"because|chosen|rejected|instead of|better|compared (?:to|with)|over the|rather than|versus|vs\.?"
    )
    if len(families) >= 2 and reason:
        return met(view, "The plan compares models and gives a reason.", reason)
    return compared(view, 2)


# -- S2: the pipeline -------------------------------------------------------------------------------------------------


def _met_by(view: View, holds: Callable[[Step], bool], yes: str, no: str, *patterns: Pattern | str) -> Finding:
    step = next((s for s in view.steps if s.ok and holds(s)), None)
    if step is None:
        return unmet(no)
    return met(view, yes, view.quote(step.turn, *patterns, where="code out") or view.any_line(step.turn, "out code"))


def _writes_report(view: View, step: Step) -> bool:
    return bool(_WRITES_REPORT.search(step.code) and SAVES.search(step.code)) or (
        step.facts.writes_outputs and "report" in step.code
    )


def pipeline_executed(view: View) -> Finding:
    """S2a: a succeeded execution makes a report with the model."""
    return _met_by(
        view,
        view.applies_model,
        "The pipeline ran in a succeeded execution.",
        "No succeeded execution runs the report pipeline.",
        FORWARD,
    )


def manifest_read(view: View) -> Finding:
    """S2b: an executed line reads the manifest."""
    return _met_by(
        view, lambda s: bool(_MANIFEST_READ.search(s.code)) or ("manifest" in s.code.lower() and "manifest" in " ".join(s.facts.quotes.values()).lower()),
        "Executed code reads the manifest.", "No succeeded execution reads the manifest.", _MANIFEST_READ, re.compile("manifest", re.IGNORECASE),
    )  # fmt: skip


def images_from_manifest(view: View) -> Finding:
    """S2c: executed code opens images in a program that reads the manifest."""
    return _met_by(
        view, lambda s: "manifest" in s.code.lower() and bool(_IMAGE_READ.search(s.code)),
        "The pipeline opens the manifest's images.", "No succeeded execution opens images taken from the manifest.", _IMAGE_READ,
    )  # fmt: skip


def images_grouped(view: View) -> Finding:
    """S2d: executed code that reads the manifest groups images by case or study, and does not open the first alone."""
    making = [s for s in view.steps if s.ok and _writes_report(view, s)]
    first = next((s for s in making if _FIRST_IMAGE.search(s.code)), None)
    if first is not None and not any(_EACH_IMAGE.search(s.code) for s in making):
        return unmet(
            "The code opens the first image of a case alone.",
            next((q for s in view.steps if (q := view.quote(s.turn, _FIRST_IMAGE, where="code"))), None),
        )
    return _met_by(
        view, lambda s: "manifest" in s.code.lower() and bool(_GROUPS.search(s.code)),
        "Executed code groups a case's images.", "No executed code groups the manifest's images by case.", _GROUPS,
    )  # fmt: skip


def report_written(view: View) -> Finding:
    """S2e: executed code writes report.txt."""
    return _met_by(
        view,
        lambda s: _writes_report(view, s),
        "Executed code writes report.txt.",
        "No succeeded execution writes a report.txt.",
        _WRITES_REPORT,
    )


def entry_as_planned(view: View) -> Finding:
    """S2f: the entry point that the plan names is the one that ran."""
    if not view.run.plan.exists:
        return unmet(NO_PLAN)
    entries = [m.strip() for m in _ENTRY.findall(view.plan)]
    if not entries:
        return unmet("The plan names no entry point.", view.plan_quote(r"\w"))
    for step in view.steps:
        if not step.ok or not view.applies_model(step):
            continue
        for entry in entries:
            token = re.split(r"[/.(]", entry.split(" ")[-1].removesuffix(".py").removesuffix(".sh"))
            words = [w for w in token if len(w) >= 3]
            if words and all(
                re.search(rf"\b{re.escape(w)}\b", step.code) or any(w in p for p in step.facts.run_paths)
                for w in words[-2:]
            ):
                return met(
                    view,
                    f"{entry} of the plan was run.",
                    view.plan_quote(re.escape(entry)),
                    view.quote(step.turn, rf"\b{re.escape(words[-1])}\b", where="code"),
                )
    return unmet("The planned entry point was not run.", view.plan_quote(_ENTRY))


def export_used(view: View) -> Finding:
    """S2g: the export helper that the brief prescribes was used; not applicable without one."""
    helpers = {m.strip("(").lower() for m in _EXPORT.findall(view.run.brief)}
    if not helpers:
        return Finding.inapplicable("The brief prescribes no export helper.")
    names = [h.rsplit(".", 1)[0] for h in helpers if " " not in h]
    pattern = re.compile("|".join(re.escape(n) for n in sorted(names)) or r"export", re.IGNORECASE)
    return _met_by(
        view,
        lambda s: bool(pattern.search(s.code)),
        "The prescribed export was used.",
        "The prescribed export helper does not occur in executed code.",
        pattern,
    )


# -- S3: the pilot ----------------------------------------------------------------------------------------------------


def _pilot_steps(view: View) -> tuple[Step, ...]:
    return tuple(p.step for p in pilots(view) if view.applies_model(p.step))


def pilot_first(view: View) -> Finding:
    """S3a: the pipeline ran on one or a few cases before the full run."""
    found = _pilot_steps(view)
    if not found:
        return unmet("No succeeded execution runs the pipeline on one or a few cases before the full run.")
    return met(view, "The pipeline ran on a few cases before the full run.", *(_case_quote(view, s) for s in found[:2]))


def _case_quote(view: View, step: Step) -> Evidence | None:
    named = [re.escape(c) for c in step.facts.cases[:3]]
    return (view.quote(step.turn, *named, where="out code") if named else None) or view.any_line(step.turn, "out code")


def same_model(view: View) -> Finding:
    """S3b: the pilot loads the weights, or runs the script, that the full run (or setup) uses, and no stand-in."""
    found = _pilot_steps(view)
    if not found:
        return unmet("There was no pilot.")
    others = view.batches or tuple(s for s in view.steps if view.loads(s) and s not in found) or found
    used = set().union(*(_identity(s) for s in others))
    for step in found:
        shared = _identity(step) & used
        if shared and not _STAND_IN.search(step.own):
            return met(
                view,
                "The pilot uses the same model and entry point.",
                view.quote(step.turn, *(re.escape(t) for t in sorted(shared)), LOADS, FORWARD, where="code"),
            )
    return unmet("The pilot shares neither weights nor entry point with the full run.", _case_quote(view, found[0]))


def _identity(step: Step) -> set[str]:
    """Weight files, hub names, scripts and model calls of a step."""
    names = {m.lower() for m in WEIGHTS.findall(step.code)} | {p.rsplit("/", 1)[-1] for p in step.facts.run_paths}
    names |= set(re.findall(r"from_pretrained\(\s*[rf]?['\"]([^'\"\n]{2,120})", step.code))
    names |= set(re.findall(r"\b([A-Za-z_]\w*(?:\.\w+)?)\.generate\(", step.code))
    names |= set(re.findall(r"from (\w+) import (?:\w+)", step.code)) - {
        "PIL",
        "pathlib",
        "transformers",
        "collections",
        "os",
        "json",
    }
    return names


def pilot_writes(view: View) -> Finding:
    """S3c: the pilot wrote a report.txt."""
    for step in _pilot_steps(view):
        if _writes_report(view, step):
            return met(view, "The pilot writes report.txt.", view.quote(step.turn, _WRITES_REPORT, where="code out"))
    return unmet("No pilot writes a report.txt.")


def pilot_opened(view: View) -> Finding:
    """S3d: the pilot's report, or its text, was printed before the full run."""
    for step in view.steps:
        if not step.ok or step.turn >= view.boundary or view.is_batch(step):
            continue
        reads = re.search(
            r"\b(?:cat|head|less|tail)\b[^\n]*report\.txt|report\.txt[^\n]*(?:read|open)|(?:read|open)[^\n]*report\.txt",
            step.code,
        )
        prints = step in _pilot_steps(view) and _TEXT_SHOWN.search(step.shown) and _REPORT_WORDS.search(step.out)
        if (reads or prints) and step.out.strip() and len(re.findall(r"[A-Za-z]{3,}", step.out)) >= 5:
            return met(
                view,
                "The pilot's report was printed.",
                view.quote(step.turn, _REPORT_WORDS, r"[A-Za-z]{3,} [A-Za-z]{2,} [A-Za-z]{2,}", where="out"),
            )
    return unmet("Nothing prints or reads the pilot's report before the full run.")


def pilot_images(view: View) -> Finding:
    """S3e: an execution checked the manifest's images of the pilot case."""
    for step in view.steps:
        if not step.ok or step.turn >= view.boundary or view.is_batch(step):
            continue
        shown = step.shown
        lists = re.search(r"image|view|files|paths", shown, re.IGNORECASE) and _IMAGES_CHECKED.search(
            f"{shown}\n{step.code}"
        )
        if (
            "manifest" in step.code.lower()
            and lists
            and re.search(r"\.(?:png|jpe?g|dcm|npy)\b|images?\W+\d+|\d+ images?|views?", step.out, re.IGNORECASE)
        ):
            return met(
                view,
                "The manifest's images of a case were listed and checked.",
                view.quote(step.turn, r"\.(?:png|jpe?g|dcm|npy)\b|images?\W+\d+|\d+ images?", r"image", where="out"),
            )
    return unmet("No execution before the full run checks which images the manifest lists for the pilot case.")


def images_used(view: View) -> Finding:
    """S3f: an execution confirms that all listed images of the pilot went into its report."""
    for step in view.steps:
        if not step.ok or step.turn >= view.boundary or view.is_batch(step):
            continue
        if (
            _ALL_USED.search(step.out)
            or _ALL_USED.search(step.shown)
            or re.search(r"assert len\([^\n]{0,120}images", step.code)
            or _used_as_listed(step)
        ):
            return met(
                view,
                "All listed images of the pilot were confirmed used.",
                view.quote(step.turn, _ALL_USED, _FILE_LIST, r"\d+ (?:images|views|films)", where="out")
                or view.quote(step.turn, _ALL_USED, r"assert len\(", r"images|views", where="code out"),
            )
    return unmet("No execution confirms that all listed images of the pilot went into its report.")


def _used_as_listed(step: Step) -> bool:
    """The images that went in are shown to be those listed: two equal lists of files, a comparison that came out true,
    or the number of images that were opened one by one from the list and given to the model."""
    if any(same_files_twice(line) for line in step.out.split("\n")):
        return True
    texts = "\n".join((step.shown, *step.looks.texts))
    if _USED_EQUALS.search(texts) and re.search(r"\bTrue\b", step.out) and not re.search(r"\bFalse\b", step.out):
        return True
    opened = {name for name, over in _OPENED.findall(step.code) if not _PART.search(over)}
    opened |= {name for over, name in _OPENED_IN_LOOP.findall(step.code) if not _PART.search(over)}
    counted = {name for name in opened if re.search(rf"\blen\({re.escape(name)}\)", texts)}
    return any(re.search(rf"\.?\b(?!len\b)\w+\({re.escape(name)}\s*[,)]", step.code) for name in counted)


def pilot_rerun(view: View) -> Finding:
    """S3g: a failed pilot was run again with success; not applicable when the first one did not fail."""
    done = _pilot_steps(view)
    first = done[0].turn if done else view.boundary
    tried = [
        s for s in view.steps if s.failed and s.turn < first and FORWARD.search(s.attempted) and not view.is_batch(s)
    ]
    if not tried:
        return Finding.inapplicable("The first pilot did not fail.")
    if done:
        return met(
            view,
            "The pilot failed first and was run again with success.",
            view.any_line(tried[0].turn),
            _case_quote(view, done[0]),
        )
    return unmet(
        "The pilot failed and was not run again with success before the full run.", view.any_line(tried[0].turn)
    )
