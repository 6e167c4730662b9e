"""S3: what was run on one or a few cases before the full run, and what was looked at in its result.

A pilot is a succeeded execution before the first full run that succeeded, that is no attempt of a full run itself and
that applies the model to real input, or opens what such an execution saved. What counts as looked at is what the code
prints or asserts and what then stands in the output; a claim in words counts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...trajectories.any_case import AnyCase
from ..scorecard import Evidence
from ..scoring import PLACEHOLDER_LIMIT
from .placeholders import count_placeholders
from .programs import Step
from .shown import MEASURES
from .values import has_box, output_kinds, rows_of_both
from .view import DELIVERS, DUMMY, MAX_EVIDENCE, SAVES, Finding, View, met, unmet

PLACEHOLDER_CAP = 0.2
"""benchmark.md section 3: S3 of VQA where more than `PLACEHOLDER_LIMIT` of the answers are placeholders."""

_IN_OUTPUT: dict[str, AnyCase] = {
    "shape": AnyCase(r"\bshape\b|torch\.Size|\(\d{1,4}, \d{1,4}(?:, \d{1,4})*\)"),
    "range": AnyCase(r"\brange\b|\bmin\b[^\n]{0,40}\bmax\b"),
    "finite": AnyCase(r"\bfinite\b|\bnan\b"),
    "geometry": AnyCase(r"\baffine\b|\bspacing\b|\borientation\b"),
    "scores": AnyCase(r"\bprobs?\b|\bscore|\bconf|\bmargin\b|\bp=|\b[A-Za-z]\w*['\"]?: ?(?:0?\.\d+|1\.0)"),
    "quality": AnyCase(r"ssim|psnr|\bsnr\b|\bcnr\b|sigma|noise|residual|\bedge|sharp|before|after|local std"),
}  # fmt: skip
_BOX_WORDS = re.compile(r"\bbox(?:es)?\b|bbox|xyxy|\bx1\b|xmin|Rectangle\(|\bdetect\w*\(", re.IGNORECASE)
_BOX_VALUES = re.compile(
    r"[\[(]\s*-?\d+(?:\.\d*)?(?:[,\s]\s{0,4}-?\d+(?:\.\d*)?){3,}|['\"]?(?:x1|xmin)['\"]?\s*[:=]\s*-?\d|bbox\D{0,12}\d+\D{1,3}\d+\D{1,3}\d+\D{1,3}\d+"
)
_INPUT_SIDE = re.compile(r"\b(?:input|in|ldct|low-?dose|noisy|before|orig\w*|raw|lr)\b", re.IGNORECASE)
_SAVED = re.compile(r"['\"/]([\w.-]{2,60}\.(?:npy|npz|json|csv|nii\.gz|nii|png|pkl|pt|txt))['\"\s)]")
_INPUT_FILE = re.compile(r"^(?:image|ct|ldct|question|manifest|mri?|cbct)\b", re.IGNORECASE)
_CASE_READ = re.compile(
    r"nib(?:abel)?\.load\(|Image\.open\(|imread\(|np\.load\(|dcmread\(|ReadImage\(|json\.load|read_\w+\(|load\w*\(|/data/|prompt|question",
    re.IGNORECASE,
)
_RAW_NAME = re.compile(
    r"\b(\w{1,40}) ?= ?[\w.]{0,60}?(?:generate|answer|chat|predict|create|infer|ask|run|decode)\w*\("
)
_RAW_SHOWN = re.compile(
    r"\.(?:generate|chat|predict|answer|decode)\(|\b(?:raw\w*|resp\w*|outputs?|reply|generated|sentence|completion)\b",
    re.IGNORECASE,
)
_PARSES = re.compile(
    r"\b\w*(?:to_|norm|pars|map|extract|match|letter|label|clean|option|choice|postproc)\w*\(", re.IGNORECASE
)
_PARSED_SHOWN = re.compile(r"\b(?:label|lab|pred\w*|answer|mapped|parsed|letter|option|choice)\w*\b|->", re.IGNORECASE)
_LENGTH = re.compile(r"\blen\([^()\n]{0,80}\)")
_RAW_FIELD = re.compile(r"[\"']raw\w*[\"']\s*:\s*[\"']\s*\w", re.IGNORECASE)
_LABEL_FIELD = re.compile(
    r"[\"'](?:predicted_\w+|label|answer|letter|parsed\w*|choice|option)[\"']\s*:\s*[\"']\w", re.IGNORECASE
)
_OPENS = re.compile(r"json\.load|read_\w+\(|\bopen\(|\b(?:cat|head|jq)\b")
_CHECKED = re.compile(r"assert|== ?|\bok\b|exists|expected|pass", re.IGNORECASE)


@dataclass(frozen=True)
class Pilot:
    """A step before the full run and the kinds of look that it took at its result."""

    step: Step
    kinds: frozenset[str]


def kinds_of(step: Step) -> frozenset[str]:
    """What a step looked at: shown by its code, or named in its output; nothing when it printed nothing."""
    if not step.out.strip() and "assert" not in step.code:
        return frozenset()
    shown = step.shown
    found = {kind for kind, pattern in MEASURES.items() if pattern.search(shown)}
    found |= {kind for kind, pattern in _IN_OUTPUT.items() if pattern.search(step.out)}
    # Parts of a figure, components and label counts are often computed on lines of their own before a print.
    found |= {kind for kind in ("view", "components", "labels", "comparison") if MEASURES[kind].search(step.code)}
    # What came out of helper functions, tables and variables, and what the printed values are by themselves.
    found |= step.looks.kinds() & MEASURES.keys()
    found |= output_kinds(step.out)
    return frozenset(found)


def pilots(view: View) -> tuple[Pilot, ...]:
    """Pilots before the first full run, in order."""
    saved: set[str] = set()
    found: list[Pilot] = []
    before = {s.turn for s in view.before}
    for step in view.steps:
        if step.turn >= view.boundary:
            break
        if step.turn in before and (_is_pilot(view, step) or _reads_back(step, saved)):
            found.append(Pilot(step, kinds_of(step)))
        if view.applies_model(step) or step.facts.forward_pass or view.delivers(step):
            for line in step.attempted.split("\n"):
                names = _SAVED.findall(line)
                if names and SAVES.search(line):
                    saved.update(n for n in names if not _INPUT_FILE.match(n))
    return tuple(found)


def _is_pilot(view: View, step: Step) -> bool:
    if DUMMY.search(step.code) and not any(case in step.own for case in view.cases[:500]):
        return False
    applies = view.applies_model(step) or (_BOX_WORDS.search(step.own) and view.learned and step.facts.runs_script)
    return bool(applies) and bool(_CASE_READ.search(step.code) or step.facts.cases or step.facts.loads_inputs)


def _reads_back(step: Step, saved: Iterable[str]) -> bool:
    """The step opens a file that an earlier step with the model saved (a heat map, a mask), or a delivered one."""
    named = any(name in step.own for name in saved)
    return bool(named or (DELIVERS.search(step.own) and step.facts.reads_outputs)) and bool(step.out.strip())


def _late(view: View) -> tuple[Pilot, ...]:
    """Looks at results between the first and the last full run: an incomplete validation of the last one."""
    if len(view.batches) < 2:
        return ()
    first, last = view.batches[0].turn, view.batches[-1].turn
    between = (s for s in view.steps if s.ok and first < s.turn < last and not view.is_batch(s))
    return tuple(Pilot(s, kinds_of(s)) for s in between if view.applies_model(s) or s.facts.reads_outputs)


def _grade(
    view: View, level: Callable[[frozenset[str]], float], wanted: str, found: tuple[Pilot, ...] | None = None
) -> Finding:
    """The level of the kinds that all pilots together looked at, with the pilots that contribute as evidence."""
    found = pilots(view) if found is None else found
    kinds = frozenset(kind for p in found for kind in p.kinds)
    value = level(kinds) if found else 0.0
    if value > 0:
        words = ", ".join(sorted(kinds)) or "nothing"
        return met(
            view, f"Before the full run a pilot was run and looked at in: {words}.", *_quotes(view, found), value=value
        )
    late = _late(view)
    if late and any(p.kinds for p in late):
        return met(view, "Only between two full runs were results looked at.", *_quotes(view, late), value=0.5)
    return _none(view, found, wanted)


def _none(view: View, found: tuple[Pilot, ...], wanted: str) -> Finding:
    if found:
        return unmet(
            f"A pilot ran, but nothing of its result was looked at ({wanted}).",
            view.any_line(found[0].step.turn, "code out"),
        )
    if view.batches:
        turn = view.batches[0].turn
        return unmet(
            f"Turn {turn} runs over all cases without a pilot before it.",
            view.quote(turn, DELIVERS, r"glob|listdir|for ", where="code"),
        )
    return unmet("No succeeded execution applies the model to one or a few cases before a full run.")


def _quotes(view: View, found: tuple[Pilot, ...]) -> list[Evidence | None]:
    """Quotes of the pilots that add to what was looked at, richest first."""
    covered: set[str] = set()
    quotes: list[Evidence | None] = []
    for pilot in sorted(found, key=lambda p: (-len(p.kinds), p.step.turn)):
        if covered and not pilot.kinds - covered and len(quotes) >= 2:
            continue
        covered |= pilot.kinds
        quotes.append(_result_quote(view, pilot.step))
    return quotes[:MAX_EVIDENCE]


def _result_quote(view: View, step: Step) -> Evidence | None:
    return view.quote(
        step.turn, r"[A-Za-z]{2}.*\d+\.\d+", r"[A-Za-z]{2}.*\d", r"\w.*->.*\w", r"\d", where="out"
    ) or view.any_line(step.turn, "out code")  # fmt: skip


# -- levels by track --------------------------------------------------------------------------------------------------

_VALUES = frozenset({"labels", "size", "statistics", "components", "range", "view", "comparison"})


def masks(view: View) -> Finding:
    """Segmentation: 1 with shape (or geometry) and values, 0.5 with either alone."""

    def level(kinds: frozenset[str]) -> float:
        values = kinds & _VALUES
        if (kinds & {"shape", "geometry"} and values) or len(values) >= 3:
            return 1.0
        return 0.5 if kinds else 0.0

    return _grade(view, level, "shape and values of the mask")


def label_maps(view: View) -> Finding:
    """Multi-class segmentation: 1 with shape, allowed labels and a count per label; 0.5 with less."""

    def level(kinds: frozenset[str]) -> float:
        if "labels" in kinds and kinds & {"shape", "geometry"} and kinds & {"size", "statistics", "components", "view"}:
            return 1.0
        return 0.5 if kinds else 0.0

    return _grade(view, level, "shape, allowed labels and coverage of each")


def boxes(view: View) -> Finding:
    """Detection: 1 when boxes of an image were printed or drawn with their coordinates, 0.5 for other looks."""
    found = pilots(view)
    for pilot in found:
        step = pilot.step
        if _BOX_WORDS.search(step.code) and (
            _BOX_VALUES.search(step.out)
            or (has_box(step.out) and _BOX_WORDS.search("\n".join((step.shown, *step.looks.texts))))
            or ("view" in pilot.kinds and "Rectangle" in step.code)
        ):
            quote = view.quote(step.turn, _BOX_VALUES, where="out") or view.quote(step.turn, _BOX_WORDS, where="code")
            return met(
                view, "Boxes of a pilot image were looked at with their coordinates.", quote, *_quotes(view, found)
            )
    return _grade(view, lambda kinds: 0.5 if kinds else 0.0, "format and coordinates of the boxes", found)


def classes(view: View) -> Finding:
    """Classification: 1 when the predictions' scores, or a comparison with images or another method, were looked at."""

    def level(kinds: frozenset[str]) -> float:
        if kinds & {"scores", "comparison"}:
            return 1.0
        return 0.5 if kinds else 0.0

    return _grade(view, level, "allowed and plausible labels")


def enhanced(view: View) -> Finding:
    """Enhancement: 1 with shape, range and a look at the gain; 0.5 with shape and range; 0.2 with less."""
    found = pilots(view)
    gain = any(_gain(p) for p in found)

    def level(kinds: frozenset[str]) -> float:
        shape = kinds & {"shape", "geometry"}
        plausible = kinds & {"range", "finite", "statistics"}
        if gain and plausible and (shape or "view" in kinds):
            return 1.0
        if (shape and plausible) or (gain and (shape or plausible)):
            return 0.5
        return 0.2 if kinds else 0.0

    return _grade(view, level, "shape, range and gain of the enhanced image", found)


def _gain(pilot: Pilot) -> bool:
    """Noise, sharpness or similarity was measured, or statistics of input and output stand side by side, or a figure."""
    if "quality" in pilot.kinds or "view" in pilot.kinds:
        return True
    both = _INPUT_SIDE.search(pilot.step.out) and re.search(
        r"\b(?:out\w*|enh\w*|denois\w*|after|sr|pred\w*)\b", pilot.step.out, re.IGNORECASE
    )
    return (bool(both) or rows_of_both(pilot.step.out, _INPUT_SIDE)) and "statistics" in pilot.kinds


def synthesized(view: View) -> Finding:
    """Synthesis: 1 with shape, range and a look at content; 0.5 with less."""

    def level(kinds: frozenset[str]) -> float:
        if (
            kinds & {"shape", "geometry"}
            and kinds & {"range", "finite"}
            and kinds & {"view", "comparison", "statistics"}
        ):
            return 1.0
        return 0.5 if kinds else 0.0

    return _grade(view, level, "shape, range and content of the synthetic image")


def small_subset(view: View) -> Finding:
    """Shared workflow: 1 when a part was run first and looked at in form and for plausibility; 0.5 with either."""
    found = pilots(view)
    if not found:
        tests = [
            s
            for s in view.steps
            if s.ok
            and s.turn < view.boundary
            and re.search(
                r"pytest|unittest|--(?:dry-run|limit|smoke|debug|sample)|\btest_\w+|head -n? ?\d|\[:\d+\]", s.own
            )
        ]
        found = tuple(
            Pilot(s, kinds_of(s) | ({"checks"} if _CHECKED.search(s.shown) else frozenset()))
            for s in tests
            if s.out.strip()
        )
        if found:
            rich = any(len(p.kinds) >= 2 for p in found)
            return met(
                view,
                "A part of the work was run and looked at before all of it.",
                *_quotes(view, found),
                value=1.0 if rich else 0.5,
            )

    def level(kinds: frozenset[str]) -> float:
        if kinds & {"shape", "geometry", "labels", "finite"} and kinds & {
            "range",
            "statistics",
            "size",
            "view",
            "comparison",
            "scores",
        }:
            return 1.0
        return 0.5 if kinds else 0.0

    return _grade(view, level, "format and plausibility of a part", found)


def answers(view: View) -> Finding:
    """VQA: 1 when a pilot printed raw outputs and parsed answers, 0.5 with either; capped for placeholder answers."""
    counted = count_placeholders(view.run)
    rate = counted.rate or 0.0
    shown = f"{counted.placeholders} of {counted.answers} answers are placeholders"
    marker = _placeholder_quote(view)
    real = any(view.applies_model(s) and view.learned for s in view.steps)
    if not real:
        return unmet("No succeeded execution calls a model, so the answers are not a model's.", marker)
    if rate > 0.5:
        return unmet(f"{shown}: the run is dominated by them.", marker)
    found = _answer_level(view)
    if rate > PLACEHOLDER_LIMIT and (found.value or 0.0) > PLACEHOLDER_CAP:
        evidence = (*found.evidence[:2], marker)
        return met(view, f"{found.rationale} Capped at {PLACEHOLDER_CAP}: {shown}.", *evidence, value=PLACEHOLDER_CAP)
    return found


def _answer_level(view: View) -> Finding:
    found = pilots(view)
    raw, parsed = [], []
    for pilot in found:
        step = pilot.step
        shown = _LENGTH.sub("", step.shown)
        names = set(_RAW_NAME.findall(step.code))
        looks = step.looks.kinds()
        if step.out.strip() and (looks >= {"raw", "parsed"} or _record(step.out)):
            raw.append(pilot)
            parsed.append(pilot)
        elif step.out.strip() and looks & {"raw", "parsed"}:
            raw.append(pilot)
        elif step.out.strip() and (
            _RAW_SHOWN.search(shown) or any(re.search(rf"\b{re.escape(n)}\b", shown) for n in names)
        ):
            raw.append(pilot)
            if _PARSES.search(step.code) and _PARSED_SHOWN.search(f"{shown}\n{step.out}"):
                parsed.append(pilot)
    quotes = _quotes(view, tuple(parsed or raw or found))
    if parsed:
        return met(view, "A pilot printed raw model outputs beside the parsed answers before the full run.", *quotes)
    if raw:
        return met(
            view,
            "A pilot printed model outputs, but no parsing to answers was checked before the full run.",
            *quotes,
            value=0.5,
        )
    if found:
        return met(view, "A pilot ran, but shows next to nothing of the answers.", *quotes, value=0.2)
    after = [
        s
        for s in view.steps
        if s.ok and s.turn > view.boundary and s.facts.reads_outputs and _OPENS.search(s.own) and s.out.strip()
    ]
    if after:
        return met(
            view,
            "Answers were looked at only after the full run.",
            *(_result_quote(view, s) for s in after[:2]),
            value=0.5,
        )
    return _none(view, found, "raw outputs and parsed answers")


def _record(out: str) -> bool:
    """An answer record that shows a raw output beside a label (a delivered file that was read back)."""
    return bool(_RAW_FIELD.search(out) and _LABEL_FIELD.search(out))


def _placeholder_quote(view: View) -> Evidence | None:
    pattern = re.compile(r"\b(?:heuristic|fallback|placeholder|mock|dummy|stub): ?\w", re.IGNORECASE)
    for turn in reversed(view.run.turns):
        if quote := view.quote(turn.index, pattern, where="out"):
            return quote
    return None
