"""E5: open answers in other words than the brief, or a file that was given with the questions, wants for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..context import CodeContext
from ..registry import Finding, detector

MAX_TEXT = 200_000
MAX_WORDS = 3
"""Words of an answer above which it is a sentence and no term of a vocabulary."""
LEAST = 2
"""Answers from which other words are no slip."""
_TERM = r"['\"`“‘]?[A-Za-z][\w-]{0,24}(?: [a-z][\w-]{0,24}){0,2}?['\"`”’]?"
_LIST = re.compile(
    rf"^\W{{0,3}}({_TERM}(?:(?:, or |, |/| or | and ){_TERM}){{1,7}})(?= (?:for|in|on|when|where|if|to|as|about)\b|\W{{0,3}}$|[.(])"
)
_STATED = re.compile(
    r"\b(?:answers?|answered|words?|wording|vocabulary|terms?|spell\w*|say)\b[^.:;\n]{0,60}?(?::|\bone of\b|\beither\b|\bwith\b|\bas\b|\bby\b|\b(?:is|are|be|terms?|words?)\b|(?=\s['\"`“‘]))\s([^.\n]{3,300})",
    re.IGNORECASE,
)
_LEAD = re.compile(r"^.{0,80}\b(?:one of|either|with|by|as|are|is|be)\b:?\s{1,3}", re.IGNORECASE)
_SPLIT = re.compile(r", or |, |/| or | and ")
_WORD = r"['\"][A-Za-z][\w -]{0,30}['\"]"
_SHARES = re.compile(
    rf"['\"](\w{{3,30}})['\"]\s{{0,3}}:\s{{0,3}}\{{((?:\s{{0,3}}{_WORD}\s{{0,3}}:\s{{0,3}}[\d.]{{1,8}}\s{{0,3}},?){{2,8}})\s{{0,3}}\}}"
)
_TERMS = re.compile(rf"['\"](\w{{3,30}})['\"]\s{{0,3}}:\s{{0,3}}\[((?:\s{{0,3}}{_WORD}\s{{0,3}},?){{2,8}})\s{{0,3}}\]")
_ONE_WORD = re.compile(r"\b(?:one|a single|single) (?:lower-?case )?word\b", re.IGNORECASE)
_LOWER = re.compile(r"\blower-?case\b", re.IGNORECASE)
_OPEN = re.compile(r"\bopen\b|\bpredicted_answer\b|\bfree[- ]text\b", re.IGNORECASE)


class _Given(NamedTuple):
    """One open answer: its question, the answer, and what shows what it was asked (the model's words, log lines)."""

    case: str
    answer: str
    context: str


@detector("other_words_delivered", code="E5", stage="S5", independence="from_files")
def other_words_delivered(ctx: CodeContext) -> Iterable[Finding]:
    """Open answers use none of the words that brief or given files list for them, or break the form that the brief names."""
    if ctx.run.track != "vqa" or ctx.final_write is None:
        return
    given = _open_answers(ctx)
    why = _outside_the_brief(ctx.run.brief, given) or _outside_the_files(ctx, given) or _form(ctx.run.brief, given)
    if why:
        yield Finding(tuple(sorted({ctx.final_write, ctx.last})), why, 0.75)


def _open_answers(ctx: CodeContext) -> list[_Given]:
    lines: dict[str, list[str]] = {}
    found = []
    answers = ctx.facts.answers if ctx.facts is not None else ()
    ids = [str(a.get("question_id")) for a in answers]
    for turn in ctx.run.turns[: ctx.final_write]:
        for line in turn.output[:MAX_TEXT].splitlines():
            for case in re.findall(r"[\w-]{2,40}", line[:120])[:6]:
                lines.setdefault(case, []).append(line[:400])
    for case, answer in zip(ids, answers, strict=True):
        text = answer.get("predicted_answer")
        if isinstance(text, str) and text.strip() and not answer.get("predicted_label"):
            raw = str(answer.get("raw_model_output") or "")[:1_000]
            found.append(_Given(case, text.strip(), "\n".join([raw, *lines.get(case, [])[:20]])))
    return found


def _outside_the_brief(brief: str, given: list[_Given]) -> str | None:
    lists = list(vocabularies(brief))
    known = {word for words in lists for word in words}
    other = [g for g in given if _plain(g.answer) not in known and not re.search(r"\d", g.answer)]
    said = {_plain(g.answer) for g in given}
    kinds = {_plain(g.answer) for g in other}
    unused = next((words for words in lists if not said & set(words)), None)
    if unused is None or len(other) < LEAST or len(kinds) > len(unused):
        return None
    return _why(other, unused, "The brief")


def _outside_the_files(ctx: CodeContext, given: list[_Given]) -> str | None:
    """A given file lists the answers of one kind of question; the answers to that kind are all others."""
    stated = {word for words in vocabularies(ctx.run.brief) for word in words}
    for key, words in _shown(ctx):
        asked = [g for g in given if re.search(rf"\b{re.escape(key)}s?\b", g.context.split("{", 1)[0], re.IGNORECASE)]
        fits = any(_plain(g.answer) in stated or any(w in _plain(g.answer) for w in words) for g in asked)
        short = all(len(g.answer.split()) <= MAX_WORDS for g in asked)
        if len(asked) >= LEAST and not fits and short and len({_plain(g.answer) for g in asked}) <= len(words):
            return _why(asked, words, "A given file")
    return None


def _why(other: list[_Given], words: tuple[str, ...], source: str) -> str:
    return f'{source} has the answers {", ".join(words)}; {len(other)} answers say "{other[0].answer}" and the like ({other[0].case}).'


def _form(brief: str, given: list[_Given]) -> str | None:
    """One word, or lower case, where the brief's sentence on open answers says so."""
    for sentence in re.split(r"(?<=[.;])\s|\n", brief[:MAX_TEXT]):
        if not _OPEN.search(sentence[:1_000]):
            continue
        long = [g for g in given if len(g.answer.split()) > 1] if _ONE_WORD.search(sentence) else []
        upper = [g for g in given if g.answer != g.answer.lower()] if _LOWER.search(sentence) else []
        for broken, what in ((long, "one word"), (upper, "lower case")):
            if len(broken) >= max(LEAST, 0.2 * len(given)):
                shown = broken[0].answer[:40]
                return (
                    f'The brief wants {what}; {len(broken)} answers are otherwise, e.g. "{shown}" ({broken[0].case}).'
                )
    return None


def vocabularies(brief: str) -> Iterator[tuple[str, ...]]:
    """Lists of alternative answers that a brief names ("yes or no; superior or inferior"), in lower case."""
    for match in _STATED.finditer(brief[:MAX_TEXT]):
        for clause in re.split(r"[;(]", match[1]):
            found = _LIST.match(_LEAD.sub("", clause.strip()))
            if found is not None and (" or " in found[1] or "/" in found[1] or "one of" in match[0]):
                yield tuple(_plain(term) for term in _SPLIT.split(found[1]))


def _shown(ctx: CodeContext) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(kind of question, its answers) as files that were printed before the batch list them, as shares or names."""
    for turn in ctx.run.turns[: ctx.final_write]:
        text = turn.output[:MAX_TEXT]
        for pattern in (_SHARES, _TERMS):
            for key, inner in pattern.findall(text):
                words = tuple(_plain(w) for w in re.findall(r"['\"]([A-Za-z][\w -]{0,30})['\"]", inner))
                if key.lower() not in ("options", "choices", "answers"):
                    yield key, words


def _plain(text: str) -> str:
    return " ".join(text.lower().strip(" .,!'\"`“”‘’").split())
