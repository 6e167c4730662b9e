"""Whether somebody reacted to a printed sign: the step was run again without it, or the agent spoke about it."""

from __future__ import annotations

import re

from ..context import CodeContext
from .class_signs import balanced, distributions
from .signs import MAX_LINES, NUMBER, Sign, case_of, counts_in, prints_sign

_MENTION = {
    "never": re.compile(r"\b(?:no|zero|never|none of|not (?:found|detected)|without any|only)\b", re.IGNORECASE),
    "zero": re.compile(
        r"\b(?:zero|empty|absent|tumou?r-free|free of|without (?:a |any )?(?:tumou?r|lesion|nodule|mask)"
        r"|no (?:\w+ ){0,2}(?:tumou?r|lesion|injur(?:y|ies)|ha?emorrhages?|voxels?|mask|box(?:es)?|detections?|findings?|positives?|nodules?|objects?)"
        r"|very (?:small|few)|tiny|outlier|only \d+ (?:voxels|pixels|boxes))\b", re.IGNORECASE),
    "nan": re.compile(r"\bnan|not a number|infinit|empty|undefined", re.IGNORECASE),
    "constant": re.compile(r"\b(?:constant|identical|same (?:value|number)|every(?:thing| \w+) (?:is|has|gets)|suspicious|cannot be right)\b", re.I),
    "twins": re.compile(r"\b(?:identical|same (?:values?|results?|numbers?|accuracy)|no difference|equal(?:s|ly)?|indistinguishable)\b", re.I),
    "one_class": re.compile(r"\b(?:one class|single class|all (?:cases|tiles|images|answers) (?:are|as|get)|only (?:one )?class|imbalance|collaps)", re.I),
    "same_box": re.compile(r"\b(?:same box|identical|whole[- ]image|full[- ]image|entire image|every box|cannot be right|suspicious)\b", re.I),
    "flat": re.compile(r"\b(?:flat|constant|blank|uniform|empty|all[- ]zero|zero)\b", re.IGNORECASE),
    "same_text": re.compile(r"\b(?:same (?:text|report|wording)|identical|duplicat\w{1,4}|repeated|repetit\w{1,4}|collaps\w{1,4}|suspicious)\b", re.I),
    "unloaded": re.compile(r"\b(?:newly initiali[sz]ed|missing keys|not (?:been )?loaded|random(?:ly)? initiali|(?:keys?|weights?|heads?|layers?)\b[^.\n]{0,60}\bexpected|expected\b[^.\n]{0,60}\b(?:keys?|weights?|heads?)|head is)\b", re.IGNORECASE),
}  # fmt: skip


def answered(ctx: CodeContext, sign: Sign) -> bool:
    """Whether somebody reacted: the step was run again without the sign, or the agent spoke about it.

    A fallback is only answered by a run without it: to mention wrong answers and to hand them in is no reaction.
    """
    if _rerun_without(ctx, sign):
        return True
    if sign.kind == "nan" and any(_FINITE.search(ctx.turn(t).code[:200_000]) for t in ctx.checks):
        return True  # a figure of an empty set is no defect of files that were found finite
    if sign.kind == "zero" and not sign.subject and any(_some_found(ctx, t) for t in ctx.model_turns if t > sign.turn):
        return True
    pattern = _MENTION.get(sign.kind)
    if pattern is None:
        return False
    first = ctx.model_turns[0] if ctx.model_turns else sign.turn
    # A sign that was foreseen and explained before the batch is known, not overlooked.
    words = ctx.text_from(min(first, sign.turn))
    if sign.kind == "never" and ctx.run.track == "classification" and balanced(ctx.run.brief):
        return all(_found_later(ctx, sign.turn, name) for name in sign.subject)  # words cannot undo what the brief says
    if sign.kind == "never":
        return any(_said_of(name, pattern, words) or _found_later(ctx, sign.turn, name) for name in sign.subject)
    if pattern.search(words) and (sign.kind not in _TO_BE_TESTED or _tested(ctx, sign, pattern)):
        return True
    if sign.kind == "one_class" and len(sign.subject) > 1:  # of a part of the cases: lifted when all classes come up
        return _all_classes_later(ctx, sign)
    return any(names_case(case, words) for case in sign.subject)


_FINITE = re.compile(r"isfinite|isnan")


def _some_found(ctx: CodeContext, turn: int) -> bool:
    """Whether a later run counts something of what an empty pilot did not find."""
    lines = ctx.turn(turn).output.splitlines()[-MAX_LINES:]
    return turn not in ctx.failed_turns and any(count > 0 for line in lines for count in counts_in(line[:600]))


def speaks_of(kind: str, words: str) -> bool:
    """Whether words speak of a sign of this kind ("zero": of empty outputs)."""
    return _MENTION[kind].search(words[-200_000:]) is not None


_TO_BE_TESTED = frozenset({"zero", "constant", "twins", "one_class", "same_box", "same_text", "flat"})
"""Signs that general words do not answer: an explanation is a guess until something is run or looked at."""


def _tested(ctx: CodeContext, sign: Sign, pattern: re.Pattern[str]) -> bool:
    """Whether the sign was foreseen (by the brief or before it was seen), or an execution of substance followed it."""
    if pattern.search(ctx.text_from(1, sign.turn)) or pattern.search(ctx.run.brief):
        return True
    later = [f for f in ctx.features[sign.turn :] if f.executed and not f.blocked and not f.submits]
    return any(f.has("forward_pass", "inspects_inputs", "inspects_values", "writes_outputs") for f in later)


def _all_classes_later(ctx: CodeContext, sign: Sign) -> bool:
    for turn in ctx.run.turns[sign.turn - 1 :]:
        lines = [line[:600] for line in turn.output.splitlines()[-MAX_LINES:]]
        if any(all(counts.get(name) for name in sign.subject) for counts in distributions(lines, sign.subject)):
            return True
        given = {n for n in sign.subject for line in lines if case_of(line) and re.search(rf"\b{re.escape(n)}\b", line)}
        if turn.index > sign.turn and len(given) > 1 and len(given) * 2 > len(sign.subject):
            return True
    return False


def _said_of(name: str, pattern: re.Pattern[str], words: str) -> bool:
    return any(
        re.search(rf"\b{re.escape(name)}\b", part, re.I) and pattern.search(part) for part in re.split(r"[.\n]", words)
    )


def _found_later(ctx: CodeContext, turn: int, name: str) -> bool:
    found = re.compile(rf"\b{re.escape(name)}['\"]?\s{{0,3}}[:=]?\s{{0,3}}[1-9]", re.IGNORECASE)
    return any(found.search(ctx.turn(t).output[-60_000:]) for t in ctx.model_turns if t > turn)


def names_case(case: str, words: str) -> bool:
    """Whether words name a case: by its id, or by its number ("patients 3 and 6", "case 03")."""
    number = re.search(r"0*(\d{1,8})$", case)
    if re.search(rf"\b{re.escape(case)}\b", words, re.IGNORECASE):
        return True
    short = (
        rf"\b(?:P|patient|case|image|study|question|q|tile|slice|subject)s?[ _#]?0{{0,7}}{number[1]}\b"
        if number
        else None
    )
    return bool(short and re.search(short, words, re.IGNORECASE))


def _rerun_without(ctx: CodeContext, sign: Sign) -> bool:
    """A later turn ran the model or wrote outputs again, printed results, and the sign was not among them."""
    for turn in ctx.model_turns:
        if turn <= sign.turn or turn in ctx.failed_turns:
            continue
        lines = [line[:600] for line in ctx.turn(turn).output.splitlines()[-MAX_LINES:] if line.strip()]
        again, same_thing = prints_sign(ctx, sign.kind, turn, lines)
        if not again and len(lines) >= 3 and same_thing and ctx.feature(turn).cases_scope in ("all", "few"):
            # Only a run that would have printed the sign can lift it.
            return sign.kind in ("fallback", "zero", "constant", "nan") and _prints_alike(ctx, sign.turn, turn)
    return False


def _prints_alike(ctx: CodeContext, before: int, after: int) -> bool:
    def words(turn: int) -> set[str]:
        return set(re.findall(r"[A-Za-z]{3,20}", NUMBER.sub("", ctx.turn(turn).output[-6_000:]).lower()))

    left, right = words(before), words(after)
    return bool(left and right) and len(left & right) / len(left | right) >= 0.4
