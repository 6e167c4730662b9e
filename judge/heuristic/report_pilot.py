"""S3 of report generation: the pilot, its report and the images that went into it."""

from __future__ import annotations

import re

from ..scorecard import Evidence
from .manifest import (
    all_used,
    cases_of,
    counts_handed,
    describes_listed,
    equal_counts,
    listed,
    logs_listed,
    names_files,
    ratio_of_all,
)
from .names import WEIGHTS
from .programs import Step
from .report_generation import WRITES_REPORT, replaced, writes_report
from .validate import pilots
from .values import same_files_twice
from .view import FORWARD, LOADS, Finding, View, met, unmet

_TEXT_SHOWN = re.compile(r"report|text|out|generated|read_text|\bcat\b|findings", re.IGNORECASE)
_REPORT_WORDS = re.compile(
    r"\b(?:findings|impression|lungs?|cardiac|pleural|effusion|pneumothorax|opacit|normal|heart|mediastin|consolidation|acute|no evidence|unremarkable)\b",
    re.IGNORECASE,
)
_PROSE = re.compile(r"\b[A-Z][a-z]+(?: [a-z][a-z-]{0,30},?){4,40}\.(?=\s|$)", re.MULTILINE)
"""A sentence: what a report of any region of the body is made of, and no log line."""
_IMAGES_CHECKED = re.compile(r"exist|len\(|is_file|isfile|open|size|shape|count|missing|n_images", re.IGNORECASE)
_ALL_USED = re.compile(
    r"assert[^\n]{0,120}len\([^\n]{0,80}==[^\n]{0,120}len\(|\b(?:used|loaded|processed|encoded|fed)\b[^\n]{0,30}\b(\d+)\s*(?:/|of)\s*\1\b|\b(\d+)\s*(?:/|of)\s*\2\s+(?:images|views)|\ball \d+ (?:manifest )?images (?:used|loaded|fed)|used_images",
    re.IGNORECASE,
)
_FILE_LIST = re.compile(r"\[\s*['\"][^\]\n]{1,200}\.\w{3,4}['\"]")
_HELD = r"\w*(?:image|view|film|frame|projection|sweep|picture|radiograph|scan|file)\w*"
_USED_EQUALS = re.compile(
    r"\b\w*(?:used|loaded|fed|opened)\w*\)?\s*==|==\s*\w{0,10}\(?\w*(?:used|loaded|fed|opened)\w*"
    # Counts or sets of images against something that is no constant: len(views) == (man.study == s).sum().
    rf"|\b(?:len|set|sorted|list)\({_HELD}\)\s*==\s*(?![\s\d'\"]|[\[{{](?![^\n]{{0,120}}\bfor\b)|(?:set|list|sorted)\(\s*[\[({{'\"])"
    rf"|\b[A-Za-z_][\w.]{{0,60}}(?:\[[^\[\]\n]{{1,60}}\]|\([^()\n]{{0,60}}\)){{0,3}}\s*==\s*(?:len|set|sorted|list)\({_HELD}\)",
    re.IGNORECASE,
)
_LEFT_OUT = re.compile(
    rf"\bset\([^()\n]{{1,80}}\)\s*-\s*set\({_HELD}\)|\b(?:unused|not_used|left_out)\w*\b|\b(?:missing|skipped)_(?:image|view|film|frame|file)\w*",
    re.IGNORECASE,
)
"""What of the listed images did not go in."""
_NONE_LEFT = re.compile(
    r"\b(?:missing|unused|left[ _]out|skipped|not[ _]used)\b[^\n\d\[\]{}()]{0,24}(?:\[\]|set\(\)|\{\}|none\b|0\b)|(?:set\(\)|\[\])\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_READER = r"(?:Image\.open|imread|dcmread|ReadImage|np\.load|\b(?:load|read|open|prep)\w*)\("
_OVER = r"\bfor \w+(?:, ?\w+){0,3} in "
_OPENED = re.compile(
    rf"\b(\w+) ?= ?[\[{{][^\n]{{0,200}}?{_READER}[^\n]{{0,200}}? {_OVER}([^\n]{{1,120}}?)[\]}}]\s*(?:$|\n|;)"
)
_OPENED_IN_LOOP = re.compile(
    rf"{_OVER}([^\n:]{{1,120}}):[^\n]*\n(?:[^\n]*\n){{0,6}}?[ \t]*(\w+)(?:\.append\(|\[[^\n]{{1,60}}?\] ?= ?)[^\n]{{0,160}}?{_READER}"
)
_READS_REPORT = re.compile(
    r"\b(?:cat|head|less|tail)\b[^\n]*report\.txt|report\.txt[^\n]*(?:read|open)|(?:read|open)[^\n]*report\.txt"
)
_MAKES_REPORT = re.compile(
    r"report\.txt[^\n]{0,60}?['\"]\)?,\s?(?:mode=)?['\"][wxa][bt+]?['\"]|report\.txt['\"]\)?\.(?:open\(\s?(?:mode=)?['\"][wxa]|write_)|>\s?[^\s|;&<]{0,160}report\.txt"
)
_NO_MODEL = r"(?:len|sorted|list|tuple|set|dict|print|str|repr|enumerate|zip|sum|max|min|join|keys)"
"""Functions that only count or show what they are given."""
_PART = re.compile(r"\[\s*(?:\d+|:\s*\d+|-\d+:?)\s*\]?$|\[:\s*\d+\]|\bif\b|islice")
"""Only a part of a list is gone through."""
_STAND_IN = re.compile(r"\b(?:mock|dummy|placeholder|stub|fake|template)\w*\b", re.IGNORECASE)

_FAULT = re.compile(
    r"\b(?:cut(?: off)?|truncat\w+|wrong|nonsense|gibberish|garbled|too (?:short|long|small|large|low|high|few|many)|missing|gone|fix\w*|fail\w*|bugs?|broken|repeat\w*|repetit\w*|empty|implausibl\w*|odd|off by|swapped|mixed up|not (?:right|plausible|what|usable)|unusable|doesn't|don't|isn't)\b",
    re.IGNORECASE,
)
"""What is said of a result that cannot stay."""
_EDITS = re.compile(r"\bsed -i|\.replace\([^\n]*\)[\s\S]{0,2000}(?:write_text|\.write\()|\bpatch\b")
_FUNCTION = re.compile(r"^[ \t]*def (\w+)\(", re.MULTILINE)


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
        if writes_report(view, step):
            return met(view, "The pilot writes report.txt.", view.quote(step.turn, WRITES_REPORT, where="code out"))
    return unmet("No pilot writes a report.txt.")


def pilot_opened(view: View) -> Finding:
    """S3d: the pilot's report, or its text, was printed before the full run."""
    for step in view.steps:
        if not step.ok or step.turn >= view.boundary or view.is_batch(step):
            continue
        reads = _reads_report(step.code)
        prints = (
            step in _pilot_steps(view)
            and _TEXT_SHOWN.search(step.shown)
            and (_REPORT_WORDS.search(step.out) or _PROSE.search(step.out))
        )
        if (reads or prints) and step.out.strip() and len(re.findall(r"[A-Za-z]{3,}", step.out)) >= 5:
            return met(
                view,
                "The pilot's report was printed.",
                view.quote(step.turn, _REPORT_WORDS, _PROSE, r"[A-Za-z]{3,} [A-Za-z]{2,} [A-Za-z]{2,}", where="out"),
            )
    return unmet("Nothing prints or reads the pilot's report before the full run.")


def _reads_report(code: str) -> bool:
    """A line shows or opens report.txt; one that opens it to write into it only makes it."""
    return any(_READS_REPORT.search(line) and not _MAKES_REPORT.search(line) for line in re.split(r"[\n;]", code))


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
            names_files(step)
            or describes_listed(step)
            or (view.applies_model(step) and logs_listed(view, step))
            or ("manifest" in step.code.lower() and _compared(step))
            or (
                "manifest" in step.code.lower()
                and lists
                and re.search(r"\.(?:png|jpe?g|dcm|npy)\b|images?\W+\d+|\d+ images?|views?", step.out, re.IGNORECASE)
            )
        ):
            return met(
                view,
                "The manifest's images of a case were listed and checked.",
                view.quote(
                    step.turn,
                    r"\.(?:png|jpe?g|dcm|npy)\b|images?\W+(?:\d+|True)|\d+ images?",
                    r"image",
                    r"\bTrue\b",
                    where="out",
                ),
            )
    return unmet("No execution before the full run checks which images the manifest lists for the pilot case.")


def images_used(view: View) -> Finding:
    """S3f: an execution confirms that all listed images of the pilot went into its report."""
    if lost := replaced(view, (s for s in _pilot_steps(view) if writes_report(view, s))):
        return unmet("The text of each image replaced that of the one before.", view.any_line(lost.turn, "code out"))
    for step in view.steps:
        if not step.ok or step.turn >= view.boundary or view.is_batch(step):
            continue
        if (
            _ALL_USED.search(step.out)
            or _ALL_USED.search(step.shown)
            or re.search(r"assert len\([^\n]{0,120}images", step.code)
            or _used_as_listed(step)
            or all_used(view, step)
            or (view.applies_model(step) and (counts_handed(step) or _ratio_shown(step)))
        ):
            return met(
                view,
                "All listed images of the pilot were confirmed used.",
                view.quote(step.turn, _ALL_USED, _FILE_LIST, r"\d+ (?:images|views|films)", where="out")
                or view.quote(step.turn, _ALL_USED, r"assert len\(", r"images|views", where="code out"),
            )
    return unmet("No execution confirms that all listed images of the pilot went into its report.")


def _ratio_shown(step: Step) -> bool:
    return any(ratio_of_all(line) for line in step.out.split("\n")[:2_000])


def _used_as_listed(step: Step) -> bool:
    """The images that went in are shown to be those listed: two equal lists of files, a comparison that came out true,
    or the number of images that were opened one by one from the list and given to the model."""
    if any(same_files_twice(line) or equal_counts(line) for line in step.out.split("\n")[:2_000]):
        return True
    if _compared(step):
        return True
    texts = "\n".join((step.shown, *step.looks.texts))
    opened = {name for name, over in _OPENED.findall(step.code) if not _PART.search(over)}
    opened |= {name for over, name in _OPENED_IN_LOOP.findall(step.code) if not _PART.search(over)}
    counted = {
        name
        for name in opened
        if re.search(rf"\b(?:len|sorted|list|tuple|set)\({re.escape(name)}\)|\b{re.escape(name)}\.keys\(\)", texts)
    }
    return any(re.search(rf"\.?\b(?!{_NO_MODEL}\b)\w+\({re.escape(name)}\s*[,)]", step.code) for name in counted)


def _compared(step: Step) -> bool:
    """The images that went in were compared with those listed, and nothing differed."""
    texts = "\n".join((step.shown, *step.looks.texts))
    if re.search(r"\bFalse\b", step.out):
        return False
    if any(_USED_EQUALS.search(line) for line in step.code.split("\n") if line.lstrip().startswith("assert ")):
        return True
    if _USED_EQUALS.search(texts) and re.search(r"\bTrue\b", step.out):
        return True
    return bool(_LEFT_OUT.search(texts) and "manifest" in step.code.lower() and _NONE_LEFT.search(step.out))


def pilot_rerun(view: View) -> Finding:
    """S3g: a failed pilot was run again with success; not applicable when the first one did not fail."""
    done = _pilot_steps(view)
    first = done[0].turn if done else view.boundary
    tried = [
        s
        for s in view.steps
        if s.failed
        and s.turn < first
        and FORWARD.search(s.attempted)
        and WRITES_REPORT.search(s.attempted)
        and not view.is_batch(s)
    ]
    if not tried:
        again = _repaired(view, done)
        if again is None:
            return Finding.inapplicable("The first pilot did not fail.")
        return met(
            view,
            "The pilot's result was unusable, the pipeline was changed and the same case run again.",
            view.quote(again.turn, _FAULT, where="text") or view.any_line(again.turn),
            _case_quote(view, again),
        )
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


def _repaired(view: View, done: tuple[Step, ...]) -> Step | None:
    """The first pilot on a case that an earlier pilot had, after lines of the pipeline were replaced (not only added)
    because its result was wrong, and with another output."""
    for at, later in enumerate(done):
        for earlier in done[:at]:
            between = view.run.turns[earlier.turn : later.turn]
            said = any(_FAULT.search(turn.text) for turn in between)
            changed = said and any(_EDITS.search(turn.code) or _defines_again(view, turn.index) for turn in between)
            if changed and earlier.out.strip() != later.out.strip() and _share_case(view, earlier, later):
                return later
    return None


def _share_case(view: View, earlier: Step, later: Step) -> bool:
    """Both speak of one case: a known one, or a word beside which an earlier output names image files."""
    shared = set(cases_of(earlier)).intersection(cases_of(later))
    return bool(shared.intersection(view.cases)) or any(listed(view, name, later.turn) for name in sorted(shared))


def _defines_again(view: View, turn: int) -> bool:
    """A turn writes a function that an earlier one had defined."""
    now = set(_FUNCTION.findall(view.steps[turn - 1].attempted)) & set(_FUNCTION.findall(view.run.turns[turn - 1].code))
    return any(now & set(_FUNCTION.findall(earlier.code)) for earlier in view.run.turns[: turn - 1])
