"""S1 and S2 of VQA where they differ from the image tracks: questions, answers and the model that gives them."""

from __future__ import annotations

import re

from ..scorecard import Evidence
from .names import WEIGHTS, model_names
from .plan import NO_PLAN
from .programs import Step
from .setup import model_works, weights_obtained
from .view import LOADS, Finding, View, met, unmet

_NORMALISE = re.compile(
    r"normali[sz]|\bmap(?:s|ped|ping)?\b|\bpars(?:e|ing)\b|extract|match|option text|letter|lower-?case|regex|strip|synonym|fuzzy|fallback",
    re.IGNORECASE,
)
_SMOKE = re.compile(
    r"pilot|smoke|sanity|dry[- ]run|(?:test|try|run|check)\b[^\n]{0,40}\b(?:one|1|two|2|three|3|a few|few|first|single|\d)\b[^\n]{0,20}(?:questions?|samples?|cases?|examples?)",
    re.IGNORECASE,
)
_SCHEMA = re.compile(
    r"[\"'](?:question|options|choices|question_id|image_files?|answer_type|answer)[\"']\s*:|^[ \t]*(?:question|options)\b",
    re.IGNORECASE,
)
_FIELD = re.compile(
    r"\[['\"](?:question|options|choices)['\"]\]|\.get\(['\"](?:question|options|choices)['\"]|\.(?:question|options|choices)\b"
)
_JQ = re.compile(r"\bjq\b[^\n]{0,80}\.(?:question|options|choices)\b")
_ASKS = re.compile(
    r"\b(?:what|which|where|is|are|how|does|do|can|who|why)\b[^\n]{0,200}\?|\w{3,}[^\n]{3,200}\?(?:\s|$|['\"|])",
    re.IGNORECASE,
)
_CHOICES = re.compile(
    r"\bA ?[=:.)] ?\w[^\n]{0,120}\bB ?[=:.)] ?\w|\[\s*['\"][^\]\n]{1,80}['\"]\s*,\s*['\"][^\]\n]{1,80}['\"]",
    re.IGNORECASE,
)
_PATTERN = re.compile(
    # A field that is cut out of the records' text by a pattern or a column, or counted in a table.
    r"\\?[\"'](?:question|options|choices|[A-E])\\?[\"']\s?:|\b(?:cut|awk|sed|grep|sort|uniq)\b[^\n]{0,160}\bquestions?\w*\.(?:jsonl?|csv|tsv)\b|\bquestions?\w*\.(?:jsonl?|csv|tsv)\b[^\n]{0,160}\|\s?(?:cut|awk|sed|grep|sort|uniq)\b"
    r"|(?:groupby|value_counts|itemgetter|drop_duplicates|unique)\([^\n]{0,60}[\"'](?:question|options|choices)[\"']"
)
_LISTED = re.compile(
    r"[\"']\w[^\"'\n]{4,200}\?[\"']\s?[:,)\]]|^\s*\d{1,5}[\s:]+[\"']?\w[^\n]{4,200}\?[\"']?\s*$|^[\"']?\w[^\n]{4,200}\?[\"']?,?\s+\d{1,5}\s*$",
    re.MULTILINE,
)
"""Question texts in a list or with their counts: a card's prose has neither."""
_QUESTION = re.compile(r"[\"'](?:question|options|question_id|choices)[\"']|\bquestions?\b", re.IGNORECASE)


def _record_shown(step: Step) -> bool:
    """Question texts or options are printed through the fields of a record, whether or not the output names the fields."""
    if not step.ok or not step.out.strip():
        return False
    if _PATTERN.search(step.own) and _LISTED.search(step.out):
        return True
    printed = "\n".join((step.shown, *step.looks.texts)) if step.programs else step.shown
    jq = _JQ.search(step.own)
    return bool((_FIELD.search(printed) or jq) and (_ASKS.search(step.out) or _CHOICES.search(step.out)))


def runnable_model(view: View) -> Finding:
    """S1b of VQA: a model named while planning that is there or could be loaded."""
    until = max((t for t in view.plan_turns if t < view.boundary), default=0)
    spoken = "\n".join([view.plan, *(t.text for t in view.run.turns[:until])])
    names = model_names(spoken, view.weight_names)
    if not names:
        return unmet("No model is named in the plan or while planning.", view.plan_quote(r"\w"))
    tried = next((s for s in view.steps if LOADS.search(s.attempted)), None)
    if tried is not None and not any(view.loads(s) or (view.applies_model(s) and view.learned) for s in view.steps):
        return unmet(
            "Every attempt to load a model failed, and none replaced it.", view.quote(tried.turn, LOADS, where="code")
        )
    ready = next((s for s in view.steps if view.loads(s) or (s.ok and WEIGHTS.search(s.out))), None)
    if ready is None:
        return unmet(f"{names[0]} is named, but was never found or loaded.", view.plan_quote(re.escape(names[0])))
    name = next((n for n in names if view.plan_quote(re.escape(n))), names[0])
    return met(
        view,
        f"{name} is named and there.",
        view.plan_quote(re.escape(name)),
        view.quote(ready.turn, WEIGHTS, re.escape(names[0])),
    )


def schema_understood(view: View) -> Finding:
    """S1c of VQA: question records were printed, and their fields are used in the plan or in code."""
    seen = next(
        (s for s in view.steps if s.ok and s.turn <= view.boundary and (_SCHEMA.search(s.out) or _record_shown(s))),
        None,
    )
    if seen is None:
        return unmet("No execution before the full run shows a question record or its fields.")
    fields = re.compile(
        r"question_id|options|predicted_label|image_files?|multiple-choice|open-ended|answer\.json", re.IGNORECASE
    )
    used = view.plan_quote(fields)
    if used is None and not any(fields.search(s.code) for s in view.steps if s.turn > seen.turn):
        return unmet(
            "Question records were printed, but neither plan nor code uses their fields.",
            view.quote(seen.turn, _SCHEMA, _ASKS, _CHOICES, where="out"),
        )
    return met(
        view,
        "Question records were printed and their fields are used.",
        view.quote(seen.turn, _SCHEMA, _ASKS, _CHOICES, where="out"),
        used,
    )


def normalisation_planned(view: View) -> Finding:
    """S1e of VQA: the plan says how raw output becomes an answer."""
    quote = view.plan_quote(r"mapping|normali[sz]|pars(?:e|ing)", _NORMALISE)
    if quote:
        return met(view, "The plan says how the raw output becomes an answer.", quote)
    return unmet(
        "No words on mapping, parsing or normalising the model's output in the plan." if view.plan else NO_PLAN
    )


def smoke_planned(view: View) -> Finding:
    """S1f of VQA: the plan foresees a test on one or a few questions."""
    quote = view.plan_quote(_SMOKE)
    if quote:
        return met(view, "The plan foresees a small test before the full run.", quote)
    return unmet("No pilot or smoke test on a few questions in the plan." if view.plan else NO_PLAN)


def dataset_ready(view: View) -> Finding:
    """S2a of VQA: questions (and images) were read in a succeeded execution."""
    for step in view.steps:
        read = re.search(r"question|\.jsonl?\b|load_dataset|parquet", step.code)
        if step.ok and read and (_QUESTION.search(step.out) or _record_shown(step)):
            return met(
                view,
                "Questions were read where they lie.",
                view.quote(step.turn, _QUESTION, _ASKS, _CHOICES, where="out"),
                _image_seen(view, step.turn),
            )
    return unmet("No succeeded execution shows questions that were read.")


def assets_ready(view: View) -> Finding:
    """S2b of VQA: as `weights_obtained`, of a model that can answer; rules in its place are no model."""
    return (
        weights_obtained(view)
        if view.learned
        else unmet("No execution finds or reads a model: answers come from rules.")
    )


def question_answered(view: View) -> Finding:
    """S2e of VQA: the model answered in a succeeded execution."""
    return model_works(view) if view.learned else unmet("No execution applies a model: answers come from rules.")


def _image_seen(view: View, after: int) -> Evidence | None:
    step = next(
        (s for s in view.steps if s.ok and s.turn > after and s.turn < view.boundary and "Image.open" in s.code), None
    )
    return view.quote(step.turn, r"Image\.open", where="code") if step else None
