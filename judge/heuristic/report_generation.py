"""S1-S3 of report generation: binary questions on the plan, the pipeline and its pilot."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from .handed import writes_each
from .manifest import opens_listed
from .names import CLASSICAL, FAMILIES, WEIGHTS, candidates, model_names
from .plan import NO_PLAN, compared, drawing_code, plan_diagram
from .programs import Step
from .view import FORWARD, SAVES, Finding, Pattern, View, met, unmet
from .zoo import called, loaded_in, model_classes, named_methods, planned_calls, starts_nothing

_ENTRY = re.compile(
    r"\b[\w/-]{1,80}\.(?:py|sh)\b|\bpython3? -m [\w.]+|\b\w+\.(?:generate|predict|forward|infer|run)\b(?:\(\w*\))?|\bfrom_pretrained\b|\bpipeline\(|\b[a-z][a-z0-9]{0,20}_\w{1,40}\(\w{0,40}\)",
    re.IGNORECASE,
)
_IMAGE = r"(?:images?|views?|films?|frames?|projections?|radiographs?|slices|pictures?|sweeps?|exposures?|photographs?|scans)"
"""What a manifest lists: the word differs with the modality."""
_SEVERAL = r"(?:images|views|films|frames|projections|radiographs|slices|pictures|sweeps|exposures|photographs|scans|pngs|files)"
_UNIT = r"(?:stud(?:y|ies)|study_id|exams?|examinations?|accessions?)\b"
_STUDY = re.compile(
    rf"(?:one|each|every|a|per)[ -]?(?:case|report)[^\n.]{{0,40}}\b(?:is|=|per|for|of)\b[^\n.]{{0,30}}\b{_UNIT}|\b{_UNIT}[^\n.]{{0,60}}\b(?:one|single|each|per)\b[^\n.]{{0,20}}\b(?:case|report)|per[- ]study|study[- ]level|case ?= ?(?:one )?study|not (?:one|per|each|an?) {_IMAGE}\b|one report (?:per|for (?:each|every|a|the)) (?:study|case)|multi-?(?:view|image|frame)"
    rf"|\b{_IMAGE}\)? (?:of|in|from|per) (?:the|a|an|one|each|every|its|that) {_UNIT}|\ba case (?:is|=) (?:a|one) {_UNIT}"
    # The images of a manifest that belong to a study, a table's row, an equation.
    rf"|\b{_IMAGE}\b[^\n.;]{{0,60}}\b(?:for|of|in|from|per) (?:the|a|an|one|each|every|its|that) {_UNIT}|\b{_IMAGE}/{_UNIT}"
    rf"|\b(?:case|unit|sample|item)s?\b[*_` ]*[|:=][^\n.]{{0,20}}\b{_UNIT}|\b{_UNIT}[^\n.]{{0,40}}= ?(?:one |a )?(?:case|report)\b"
    rf"|\bgroup\w*\b[^\n.]{{0,30}}\bby {_UNIT}",
    re.IGNORECASE,
)
_ALL_IMAGES = re.compile(
    rf"\ball\b[^\n.]{{0,30}}\b{_IMAGE}\b|\b(?:every|each) (?:listed |single )?{_IMAGE}\b|all (?:manifest|listed) {_IMAGE}|{_IMAGE} listed[^\n.]{{0,40}}\b(?:used|all)"
    rf"|\b(?:all|every|each)\b[^\n.]{{0,30}}\b(?:rows?|entries|entry|files?|pngs?)\b[^\n.]{{0,30}}\b(?:manifest|{_UNIT})|\b{_IMAGE} (?:used|read|loaded) ?==? ?[^\n.]{{0,30}}\b(?:listed|manifest)"
    # What goes in are the manifest's images, without a restriction.
    rf"|\b(?:inputs?|in)\b[*_` ]*[:=|][*_` ]*(?:the )?(?:{_SEVERAL} (?:of|in|from|listed (?:in|by)|named (?:in|by)) (?:the |each |its |a )?(?:[\w<>*]{{1,20}}['s]{{0,2}}[ /])?`?manifest|manifest(?:\.json)?`?(?:'s)? {_SEVERAL})"
    rf"|\bmanifest(?:\.\w{{2,5}})?`? ?(?:->|→) ?(?:its|the|their) {_SEVERAL}",
    re.IGNORECASE,
)
_ONE_IMAGE = re.compile(
    rf"\b(?:only|just)\b[^\n.]{{0,20}}\b(?:first|one|frontal|single)\b[^\n.]{{0,10}}\b{_IMAGE}\b|\bfirst (?:image|frame|film|picture)\b|frontal (?:image|view|film) only",
    re.IGNORECASE,
)
_SCRIPT = re.compile(r"\b[\w/-]{1,80}\.py\b")
_PATH = re.compile(r"[\w./<>{}$*\[\]-]{0,120}[/}>]report\.txt")
_PILOT = re.compile(
    r"\bpilot|\bsmoke|dry[- ]run|\b(?:first|one|single|1|two|2|few|three|3) (?:case|study|studies|cases)\b[^\n]{0,60}\b(?:before|first|then|test|check)|\btest\b[^\n]{0,30}\b(?:one|first|single) (?:case|study)",
    re.IGNORECASE,
)
_VALIDATES = re.compile(
    r"\bS3\b|\b(?:validat|try|trial|test|debug)\w*\b[^\n]{0,30}\b(?:one|single|two|a few|first|\w+[-_]\d+)\b|\b(?:before|ahead of) (?:the |all |any )?(?:batch|full run|others|rest|scaling|all)\b",
    re.IGNORECASE,
)
"""A small run before the full one, in other words."""
_CONCRETE = re.compile(
    r"exist|not? ?-?empty|non-?empty|length|characters?|chars|letters|utf-?8|findings|impression|readable|repetit|open(?:ed|s)? (?:the|its|and|it|report)|compare[ds]?\b|all (?:frames|views|films)|print|word count|words|sections?|fits the study|image count|all images|40|8,?000"
    # Its text is read, not the manifest or the films.
    r"|\b(?:proof-?read|inspect|review|eyeball|look(?:ed)? at|go through)\w{0,3} (?:(?:the|its|each|that|this|resulting|produced|written|generated|model's|raw|full) ){0,3}(?:text|wording|output|result|prose|content|paragraph)s?\b"
    r"|\b(?:re-?)?read(?:s|ing)? (?:it\b|(?:(?:the|its|each|that|this|resulting|produced|written|generated|model's|raw|full) ){0,3}(?:text|wording|output|result|prose|content|paragraph)s?\b)|\b(?:text|output|wording|result) (?:is |was )?(?:read|inspected|reviewed|looked at)\b",
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
WRITES_REPORT = re.compile(r"report\.txt")
_EXPORT = re.compile(
    r"\bexport\w*(?:\.py|\(|_\w+)|\b\w+_export\w*\b|\bexport (?:helper|script|function|path)\b|\bofficial (?:export|writer|helper)\b",
    re.IGNORECASE,
)


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
    names = named_methods(view, view.plan, model_classes(view))
    if not names:
        return unmet("The plan names no model or method.", view.plan_quote(r"\w"))
    return met(view, f"The plan names {names[0]}.", view.plan_quote(re.escape(names[0])))


def names_entry(view: View) -> Finding:
    """S1c: the plan names the script, command or call that starts the inference."""
    calls = planned_calls(view)
    if calls and (quote := view.plan_quote(re.escape(calls[0]), re.escape(calls[0].rsplit(".", 1)[-1]))):
        return met(view, f"The plan says how inference is started: {calls[0]}.", quote)
    entries = _entries(view)
    if not entries:
        return unmet("The plan does not say how inference is started." if view.run.plan.exists else NO_PLAN)
    return met(view, f"The plan says how inference is started: {entries[0]}.", view.plan_quote(re.escape(entries[0])))


def _entries(view: View) -> list[str]:
    """Scripts, commands and calls of the plan that can start an inference."""
    return [entry for m in _ENTRY.findall(view.plan) if (entry := m.strip()) and not starts_nothing(entry)]


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
    if not any(_PILOT.search(line) or _VALIDATES.search(line) for line in lines):
        return unmet("The plan foresees no pilot that could be checked.", view.plan_quote(r"check|verif", r"\w"))
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
    """S1j: the code of plan.png draws steps with arrows and names the plan's model, method or script."""
    if not view.run.plan.exists:
        return unmet(NO_PLAN)
    drawn = plan_diagram(view)
    if not drawn.value:
        return drawn
    code = _flat(drawing_code(view).replace(view.plan, "").replace("\\n", " "))
    models = (*model_names(view.plan, view.weight_names | model_classes(view)), *loaded_in(view, view.plan))
    named = (*models, *CLASSICAL.findall(view.plan), *_SCRIPT.findall(view.plan))
    stems = {n.lower().rsplit("/", 1)[-1].rsplit(".", 1)[0] for n in named}
    if any(re.search(rf"(?<![a-z0-9]){re.escape(_flat(stem))}", code) for stem in stems):
        return met(view, "plan.png draws the plan's model and its steps.", *drawn.evidence)
    return unmet("The code of plan.png does not name the plan's model.", *drawn.evidence)


def _flat(text: str) -> str:
    """Lower case, with one blank for marks and gaps between the parts of a name."""
    return re.sub(r"[\s_-]+", " ", text.lower())


def candidates_compared(view: View) -> Finding:
    """S1k: at least two candidates compared in the plan."""
    if len(candidates(view.notes)) >= 2:
        return compared(view, 2)
    families = {m.lower() for p in (FAMILIES, WEIGHTS) for m in p.findall(view.plan)}
    lower = view.plan.lower()
    named = {
        s for s in view.weight_names if re.search(r"[\d_-]", s) and re.search(rf"(?<!\w){re.escape(s)}(?![\w.])", lower)
    }
    families |= named
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


def writes_report(view: View, step: Step) -> bool:
    return bool(WRITES_REPORT.search(step.code) and SAVES.search(step.code)) or (
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
        view, lambda s: ("manifest" in s.code.lower() and bool(_IMAGE_READ.search(s.code))) or opens_listed(s.code, (*s.programs, *s.library)),
        "The pipeline opens the manifest's images.", "No succeeded execution opens images taken from the manifest.", _IMAGE_READ,
    )  # fmt: skip


def images_grouped(view: View) -> Finding:
    """S2d: executed code that reads the manifest groups images by case or study, and does not open the first alone."""
    making = [s for s in view.steps if s.ok and writes_report(view, s)]
    first = next((s for s in making if _FIRST_IMAGE.search(s.code)), None)
    if first is not None and not any(_EACH_IMAGE.search(s.code) for s in making):
        return unmet(
            "The code opens the first image of a case alone.",
            next((q for s in view.steps if (q := view.quote(s.turn, _FIRST_IMAGE, where="code"))), None),
        )
    if lost := replaced(view, making):
        return unmet(
            "Each image is run alone, and its text replaces that of the image before.",
            view.quote(lost.turn, _EACH_IMAGE, where="code") or view.any_line(lost.turn, "code out"),
        )
    return _met_by(
        view, lambda s: "manifest" in s.code.lower() and bool(_GROUPS.search(s.code)),
        "Executed code groups a case's images.", "No executed code groups the manifest's images by case.", _GROUPS,
    )  # fmt: skip


def replaced(view: View, making: Iterable[Step]) -> Step | None:
    """The first of the steps that make reports, where all of them run each image alone and overwrite what it gave."""
    applied = [s for s in making if view.applies_model(s)]
    each = [s for s in applied if any(writes_each(text) for text in (*s.programs, *s.library, s.own))]
    return each[0] if each and len(each) == len(applied) else None


def report_written(view: View) -> Finding:
    """S2e: executed code writes report.txt."""
    return _met_by(
        view,
        lambda s: writes_report(view, s),
        "Executed code writes report.txt.",
        "No succeeded execution writes a report.txt.",
        WRITES_REPORT,
    )


def entry_as_planned(view: View) -> Finding:
    """S2f: the entry point that the plan names is the one that ran."""
    if not view.run.plan.exists:
        return unmet(NO_PLAN)
    calls = planned_calls(view)
    entries = _entries(view)
    if not entries and not calls:
        return unmet("The plan names no entry point.", view.plan_quote(r"\w"))
    for step in view.steps:
        if not step.ok or not view.applies_model(step):
            continue
        for name in calls:
            if called(name, step.code, view):
                return met(
                    view,
                    f"{name} of the plan was run.",
                    view.plan_quote(re.escape(name)),
                    view.quote(step.turn, rf"\b{re.escape(name.rsplit('.', 1)[-1])}\b", where="code")
                    or view.any_line(step.turn, "code out"),
                )
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
    """S2g: the export helper that the brief prescribes was used, or the reports lie under the path that it prescribes;
    not applicable where the brief prescribes neither."""
    helpers = {m.strip("(").lower() for m in _EXPORT.findall(view.run.brief)}
    if not helpers:
        return _export_path_used(view)
    names = [h.rsplit(".", 1)[0] for h in helpers if " " not in h]
    pattern = re.compile("|".join(re.escape(n) for n in sorted(names)) or r"export", re.IGNORECASE)
    return _met_by(
        view,
        lambda s: bool(pattern.search(s.code)),
        "The prescribed export was used.",
        "The prescribed export helper does not occur in executed code.",
        pattern,
    )


def _export_path_used(view: View) -> Finding:
    """Executed code writes reports into the folder that the brief gives for them."""
    path = _PATH.search(view.run.brief)
    folder = re.search(r"[\w-]+(?=/+[<{\[$*])", path.group()) if path else None
    if folder is None:
        return Finding.inapplicable("The brief prescribes neither an export helper nor an export path.")
    name = re.compile(rf"\b{re.escape(folder.group())}\b")
    return _met_by(
        view,
        lambda s: writes_report(view, s) and bool(name.search(s.code)),
        "The reports were written under the prescribed path.",
        "No succeeded execution writes reports under the prescribed path.",
        name,
    )
