"""S1 of the image tracks: what the plan says, read from plan.md, plan.png and the code that drew it."""

from __future__ import annotations

import re

from .alternatives import weighed
from .names import FAMILIES, WEIGHTS, candidates
from .view import Finding, View, met, unmet
from .zoo import model_classes, named_methods

NO_PLAN = "No plan.md came with the run and no succeeded execution wrote one."
STEP = re.compile(r"^[ \t]{0,12}(?:[-*+]|\(?\d{1,2}[.):])[ \t]+\S|^[ \t]{0,12}\|.*\|", re.MULTILINE)
_ARROW = re.compile(r"->|→|=>|⇒")
_INPUT = re.compile(
    r"input|load|read|clip|scal|normali[sz]|standardi[sz]|resampl|resiz|reorient|/ ?255|/ ?1000|/ ?(?:4095|65535)|preprocess|\bHU\b|RGB|grayscale|tokeni[sz]|manifest|crop|patch|slices?"
    # A formula that scales the data: (dB+60)/60, (x - mean) / std; "divide by 4095".
    r"|\(\s*[\w.]{1,20}\s?[-+−]\s?[\w.]{1,20}\s*\)\s?/\s?[\w.(]|\bdivided? by\b",
    re.IGNORECASE,
)
_COMPUTE = re.compile(
    r"argmax|softmax|sigmoid|forward|infer|predict|run|generate|denois|segment|detect|classif|peaks?|maxima|threshold|decod|post-?process|ensembl",
    re.IGNORECASE,
)
OUTPUT = re.compile(
    r"outputs?\b|\bsaved?\b|\bwrit(?:e|ten)\b|export|\w\.(?:json|csv|npy|txt|nii(?:\.gz)?)\b|agents?_outputs",
    re.IGNORECASE,
)
_GRID = re.compile(
    r"z-?score|canonical|\bRAS\b|\bLPS\b|native (?:grid|space)|label ?[=>]|window|transpos|\baxis\b|back to|tiles?\b|mirror|averag",
    re.IGNORECASE,
)
_BOX_DRAWN = re.compile(
    r"FancyBboxPatch|bbox ?= ?(?:dict|\{)|Rectangle\(|add_patch|Digraph|graphviz|node\[|\.node\(|rounded_rectangle|\.rectangle\(|shape ?= ?[\"']?box|flowchart|graph (?:LR|TD|TB)|boxstyle",
    re.IGNORECASE,
)
_ARROW_DRAWN = re.compile(r"arrow|\.edge\(|->|-->|\.line\(|connect|quiver|→", re.IGNORECASE)
_CHART = re.compile(r"\.(?:imshow|bar|barh|hist|scatter|pie|boxplot)\(")
_TEXT_DRAWN = re.compile(r"\.text\(|annotate\(|label ?=|\.node\(|title\(")


def plan_exists(view: View) -> Finding:
    """S1a: plan.md came with the run, or succeeded code wrote it."""
    if not view.run.plan.exists:
        return unmet("Looked for plan.md among the run's files and in succeeded code: none.")
    where = "came with the run" if view.run.plan.source == "file" else "was written by succeeded code"
    return met(view, f"plan.md {where}.", view.plan_quote(r"^#|plan", r"\w.*\w"))


def plan_pipeline(view: View) -> Finding:
    """S1b: the plan names a model or method and at least two of input, ordered steps and output."""
    if not view.run.plan.exists:
        return unmet(NO_PLAN)
    names = named_methods(view, view.plan, model_classes(view))
    steps = (
        len(STEP.findall(view.plan)) >= 2
        or len(_ARROW.findall(view.plan)) >= 2
        or len(_COMPUTE.findall(view.plan)) >= 3
        or _chain(view.plan)
    )
    parts = {"input": bool(_INPUT.search(view.plan)), "steps": steps, "output": bool(OUTPUT.search(view.plan))}
    present = [name for name, there in parts.items() if there]
    if names and len(present) >= 2:
        first = view.plan_quote(re.escape(names[0]))
        return met(
            view, f"The plan names {names[0]} and gives its {', '.join(present)}.", first, view.plan_quote(OUTPUT)
        )
    missing = [name for name, there in parts.items() if not there] + ([] if names else ["model or method"])
    return unmet(f"The plan gives no pipeline to follow: {', '.join(missing)} not found.", view.plan_quote(r"\w"))


def _chain(text: str) -> bool:
    """One sentence of at least four clauses between commas or semicolons, three of which say what is done to the data."""
    for line in text.split("\n"):
        clauses = [c for c in re.split(r"[;,]\s", line[:2_000]) if c.strip()]
        doing = [c for c in clauses if _INPUT.search(c) or _COMPUTE.search(c) or _GRID.search(c) or OUTPUT.search(c)]
        if len(clauses) >= 4 and len(doing) >= 3:
            return True
    return False


def three_candidates(view: View) -> Finding:
    """S1d: at least three candidates, each with words on it."""
    return compared(view, 3)


def compared(view: View, wanted: int) -> Finding:
    """Whether the plan (or a document beside it) describes at least `wanted` candidates."""
    found = candidates(view.notes)
    if len(found) >= wanted:
        quotes = [view.notes_quote(item) for item in found[:3]]
        return met(view, f"{len(found)} candidates are described in the plan.", *quotes)
    told = weighed(view)
    if len(told) >= wanted:
        quotes = [view.plan_quote(re.escape(item[:60])) for item in told[:3]]
        return met(view, f"The plan weighs {len(told)} candidates in its sentences.", *quotes)
    if not view.notes:
        return unmet(f"No plan or document in which {wanted} candidates could be compared.")
    return unmet(
        f"{len(found)} of {wanted} required candidates are described.",
        view.plan_quote(r"candidat|option|compar", FAMILIES, WEIGHTS, r"\w"),
    )


def plan_image(view: View) -> Finding:
    """S1e: plan.png came with the run, or succeeded code saved it."""
    plan = view.run.plan
    if not plan.image_exists:
        return unmet("Looked for plan.png among the run's files and in succeeded code: none.")
    turn = _image_turn(view)
    quote = view.quote(turn, r"plan\.png", where="code out text") if turn else None
    return met(view, "plan.png is there.", quote)


def _image_turn(view: View) -> int | None:
    if view.run.plan.image_turn is not None:
        return view.run.plan.image_turn
    named = (t.index for t in view.run.turns if "plan.png" in t.code)
    return next(named, next((t.index for t in view.run.turns if "plan.png" in t.output), None))


def plan_diagram(view: View) -> Finding:
    """S1f: the code that drew plan.png puts at least three texts into boxes and joins them with arrows."""
    if not view.run.plan.image_exists:
        return unmet("There is no plan.png, so it shows no pipeline.")
    code = drawing_code(view)
    boxes, arrows = _BOX_DRAWN.search(code), _ARROW_DRAWN.search(code)
    labels = len(re.findall(r"[\"'][^\"'\n]{3,80}[\"']", code))
    arranged = boxes and not _CHART.search(code)
    if labels >= 3 and (arranged or (arrows and (boxes or _TEXT_DRAWN.search(code)))):
        turn = _image_turn(view) or 0
        joined = "joined by arrows" if arrows else "in boxes, in order"
        return met(
            view, f"The code draws named steps {joined}.",
            view.quote(turn, _BOX_DRAWN, _TEXT_DRAWN, where="code"), view.quote(turn, _ARROW_DRAWN, where="code"),
        )  # fmt: skip
    return unmet("No code was found that draws named steps and arrows into plan.png.")


def drawing_code(view: View) -> str:
    """Code of the turn that drew plan.png, with the script that it ran, plan.md's own text left out."""
    turn = _image_turn(view)
    if turn is None:
        return ""
    step = view.steps[turn - 1]
    return step.code or step.attempted
