"""The filter language of the browser: words and facets, compiled to one predicate over rows.

    kidney                     the word stands in id, agent, model, task, track or tier
    track:vqa  agent:gpt       the field holds the text, ignoring case; several of one field: any of
    them
    code:E3  code:none         that code fired; none did. What was not read counts for neither, nor
    for -code:E3
    unread:E1  unread:any      nobody knows of that code: not read, or the reader could not tell
    text:monai  text:"no space left"    the agent wrote, ran or saw these words (looked up in the
    runs' files)
    S3<0.5  overall>=60        numbers: S1-S5, stage (the lowest), agentic, taskscore, overall,
    turns, failed, codes, cost
    outcome.resolved:yes  outcome.reward>0.5    what another harness found out, where the run was
    imported with it
    unscored  contradictions   also: scored, waiting, error, marked, disqualified, unverified,
    presumed
    -tier:lite  -marked        a minus turns any of them round
    "unscored words"           quotes keep blanks, and make a word of what would be a facet

All terms must hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from difflib import get_close_matches

from ..errors import AmbjudgeError
from ..sanitize import sanitize_line
from .run_rows import RunRow

Predicate = Callable[[RunRow], bool]
Holding = Callable[[str], Container[int]]
"""From words to the numbers of the runs that hold them."""

_TERM = re.compile(r'-?(?:(?:outcome\.[\w.-]+|[A-Za-z]\w*)(?::|<=|>=|<|>|=))?(?:"[^"]*"?|[^\s"]+)')
_COMPARISON = re.compile(r"^(outcome\.[\w.-]+|[A-Za-z]\w*)(<=|>=|<|>|=)(.*)$")
_FACET = re.compile(r"^(outcome\.[\w.-]+|[A-Za-z]\w*):(.*)$", re.DOTALL)

TEXTS: dict[str, Callable[[RunRow], str | None]] = {
    "id": lambda r: r.id,
    "run": lambda r: r.id,
    "agent": lambda r: r.agent,
    "model": lambda r: r.model,
    "task": lambda r: r.task,
    "track": lambda r: r.track,
    "tier": lambda r: r.tier,
    "ended": lambda r: r.ended,
    "judge": lambda r: r.judge,
    "rubric": lambda r: r.rubric,
    "path": lambda r: r.path,
    "primary": lambda r: r.primary,
}
NUMBERS: dict[str, Callable[[RunRow], float | None]] = {
    **{f"s{i + 1}": lambda r, i=i: r.stages[i] for i in range(5)},  # type: ignore[misc]
    "stage": lambda r: min((s for s in r.stages if s is not None), default=None),
    "agentic": lambda r: r.agentic,
    "taskscore": lambda r: r.task_score,
    "overall": lambda r: r.overall,
    "turns": lambda r: r.turns,
    "failed": lambda r: r.failed_calls,
    "codes": lambda r: len(r.codes) if r.state == "scored" else None,
    "cost": lambda r: r.cost,
    "repeat": lambda r: r.repeat,
}
FLAGS: dict[str, Predicate] = {
    "unscored": lambda r: r.unscored > 0 or r.state != "scored",
    "scored": lambda r: r.state == "scored",
    "waiting": lambda r: r.state == "waiting",
    "error": lambda r: r.state == "error",
    "contradictions": lambda r: r.contradictions > 0,
    "disqualified": lambda r: r.disqualified,
    "unverified": lambda r: r.unverified > 0,
    "presumed": lambda r: r.presumed > 0,
}


OUTCOME = "outcome."


def _outcome_text(value: bool | float | str | None) -> str | None:
    if isinstance(value, bool):
        return "yes true" if value else "no false"
    return f"{value:g}" if isinstance(value, float | int) else value


def _outcome_number(value: bool | float | str | None) -> float | None:
    return None if value is None or isinstance(value, str) else float(value)


class QueryError(AmbjudgeError):
    """A filter that names something unknown or is not complete."""


def compile_query(
    text: str, marked: Container[int] = (), holding: Holding = lambda words: ()
) -> Predicate:
    """The predicate of a filter; `marked` holds the numbers of marked rows. QueryError says what is
    wrong."""
    all_of: list[Predicate] = []
    any_of: dict[str, list[Predicate]] = {}
    for term in _TERM.findall(text):
        negative = term.startswith("-") and len(term) > 1
        name, predicate = _term(term[1:] if negative else term, marked, holding)
        if negative:
            all_of.append(_without(term[1:]) if name == "code" else _not(predicate))
        elif name:
            any_of.setdefault(name, []).append(predicate)
        else:
            all_of.append(predicate)
    tests = [*all_of, *map(_any, any_of.values())]
    return lambda row: all(test(row) for test in tests)


def words_sought(text: str) -> list[str]:
    """What the `text:` terms of a filter look for, in order; those without a value left out."""
    found = (_FACET.match(term.removeprefix("-")) for term in _TERM.findall(text))
    words = (
        match.group(2).strip('"') for match in found if match and match.group(1).lower() == "text"
    )
    return [word for word in words if word]


def _term(term: str, marked: Container[int], holding: Holding) -> tuple[str, Predicate]:
    """A facet's name ("" for what does not group) and its predicate."""
    if term.startswith('"'):
        return "", _word(term.strip('"'))
    if match := _COMPARISON.match(term):
        return "", _comparison(*match.groups())
    if match := _FACET.match(term):
        name, value = match.group(1).lower(), match.group(2).strip('"').casefold()
        if not value:
            raise QueryError(
                f"{_shown(name)}: needs a value",
                f"e.g. {_shown(name)}:{'E3' if name == 'code' else 'x'}",
            )
        if name == "code":
            return name, _code(value)
        if name == "unread":
            return name, _unread(value)
        if name == "text":
            return name, _numbered(holding(value))
        if name.startswith(OUTCOME):
            return name, _holds(
                lambda row: _outcome_text(row.outcomes.get(name.removeprefix(OUTCOME))), value
            )
        if name not in TEXTS:
            raise QueryError(
                f"no facet {_shown(name)}:", _suggest(name, [*TEXTS, "code", "unread", "text"])
            )
        return name, _holds(TEXTS[name], value)
    if term.lower() == "marked":
        return "", _numbered(marked)
    return "", FLAGS.get(term.lower()) or _word(term)


def _word(word: str) -> Predicate:
    wanted = word.casefold()

    def holds(row: RunRow) -> bool:
        fields = (row.id, row.agent, row.model, row.task, row.track, row.tier)
        return any(field is not None and wanted in field.casefold() for field in fields)

    return holds


def _holds(field: Callable[[RunRow], str | None], wanted: str) -> Predicate:
    if wanted == "none":
        return lambda row: field(row) is None
    return lambda row: (value := field(row)) is not None and wanted in value.casefold()


def _code(wanted: str) -> Predicate:
    if wanted == "none":
        return lambda row: row.state == "scored" and not row.codes and not row.unknown
    if wanted == "any":
        return lambda row: bool(row.codes)
    return lambda row: any(code.casefold() == wanted for code in row.codes)


def _without(term: str) -> Predicate:
    """The opposite of a `code:` term, where it is known: a code that was not read is neither there
    nor absent."""
    wanted = term.partition(":")[2].strip('"').casefold()
    if wanted in ("none", "any"):
        return _code("any" if wanted == "none" else "none")
    return lambda row: (
        row.state == "scored" and wanted not in map(str.casefold, (*row.codes, *row.unknown))
    )


def _unread(wanted: str) -> Predicate:
    if wanted == "none":
        return lambda row: row.state == "scored" and not row.unknown
    if wanted == "any":
        return lambda row: bool(row.unknown)
    return lambda row: any(code.casefold() == wanted for code in row.unknown)


def _comparison(name: str, sign: str, text: str) -> Predicate:
    field = NUMBERS.get(name.lower())
    if name.startswith(OUTCOME):
        key = name.removeprefix(OUTCOME).lower()
        field = lambda row: _outcome_number(row.outcomes.get(key))
    if field is None:
        raise QueryError(f"no number '{_shown(name)}'", _suggest(name.lower(), NUMBERS))
    try:
        limit = float(text)
    except ValueError:
        name, text = _shown(name), _shown(text)
        raise QueryError(
            f"{name}{sign}{text}: {text or 'nothing'} is not a number", f"e.g. {name}{sign}0.5"
        ) from None
    tests: dict[str, Callable[[float], bool]] = {
        "<": lambda v: v < limit,
        "<=": lambda v: v <= limit,
        ">": lambda v: v > limit,
        ">=": lambda v: v >= limit,
        "=": lambda v: abs(v - limit) < 1e-9,
    }
    test = tests[sign]
    return lambda row: (value := field(row)) is not None and test(value)


def _shown(text: str) -> str:
    """Of what somebody typed, as much as an error repeats."""
    return sanitize_line(text if len(text) <= 60 else f"{text[:60]}…")


def _numbered(numbers: Container[int]) -> Predicate:
    return lambda row: row.number in numbers


def _not(predicate: Predicate) -> Predicate:
    return lambda row: not predicate(row)


def _any(group: list[Predicate]) -> Predicate:
    return lambda row: any(test(row) for test in group)


def _suggest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(names)}"
