"""The filter language of the browser and of sites: words and facets as one predicate over rows.

`FILTER_HELP` says what can be written. `web/run_filter.js` is the same in JavaScript; a test holds
both to one table of examples.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from difflib import get_close_matches

from ..errors import AmbjudgeError
from ..sanitize import sanitize_line
from .run_fields import (
    COUNT_FLAGS,
    DERIVED_FLAGS,
    DERIVED_NUMBERS,
    NUMBER_FIELDS,
    STATE_FLAGS,
    TEXT_FIELDS,
    WORD_FIELDS,
    NumberValue,
    TextValue,
)
from .run_rows import RunRow

FILTER_HELP: tuple[tuple[str, str], ...] = (
    ("kidney", "the word stands in id, agent, model, task, track or tier"),
    (
        "track:vqa agent:gpt",
        "the field holds the text, ignoring case; also task, tier, model, id, ended, judge, rubric,"
        " path, primary; of several terms of one field, any",
    ),
    ("code:E3 code:none", "that code fired, no code fired; an unread code counts for neither"),
    ("unread:E1 unread:any", "that code was not read, or the judge could not tell"),
    ('text:monai text:"no space left"', "the agent wrote, ran or saw these words"),
    ('id="elm-chest-1" task=demo', "the field is exactly this text, ignoring case"),
    (
        "S3<0.5 overall>=60",
        "numbers: S1-S5, stage (the lowest), agentic, taskscore, overall, turns, failed, codes,"
        " cost, repeat",
    ),
    (
        "outcome.resolved:yes outcome.reward>0.5",
        "what another harness reported, where the run was imported with it",
    ),
    (
        "group.Safety<0.5 group.Safety:none",
        "the score (0-1) of a group of criteria of your own rubric",
    ),
    (
        "unscored contradictions",
        "also scored, waiting, error, marked, disqualified, unverified, presumed",
    ),
    ("-tier:lite -marked", "a minus negates any term"),
    ('"unscored words"', "quotes keep spaces together, and make a word of what would be a facet"),
)
"""Examples of terms and what they find. All terms of a filter must hold."""

OUTCOME_PREFIX = "outcome."
GROUP_PREFIX = "group."

Predicate = Callable[[RunRow], bool]
Holding = Callable[[str], Container[int]]
"""From words to the numbers of the runs that hold them."""

_NAME = r"(?:(?:outcome|group)\.[\w.-]+|[A-Za-z]\w*)"
_TERM = re.compile(rf'-?(?:{_NAME}(?::|<=|>=|<|>|=))?(?:"[^"]*"?|[^\s"]+)')
_COMPARISON = re.compile(rf"^({_NAME})(<=|>=|<|>|=)(.*)$")
_FACET = re.compile(rf"^({_NAME}):(.*)$", re.DOTALL)


class QueryError(AmbjudgeError):
    """A filter that names something unknown or is not complete."""


def compile_query(
    text: str, marked: Container[int] = (), holding: Holding = lambda words: ()
) -> Predicate:
    """Compile a filter to a predicate over rows. QueryError says what is wrong with it.

    `marked` holds the numbers of marked rows, `holding` answers `text:` terms.
    """
    all_of: list[Predicate] = []
    any_of: dict[str, list[Predicate]] = {}
    for term in _TERM.findall(text):
        is_negated = term.startswith("-") and len(term) > 1
        if is_negated:
            term = term[1:]
        facet, predicate = _compile_term(term, marked, holding)
        if is_negated and facet == "code":
            all_of.append(_lacks_code(_facet_value(term)))
        elif is_negated:
            all_of.append(_not(predicate))
        elif facet:
            any_of.setdefault(facet, []).append(predicate)
        else:
            all_of.append(predicate)
    all_of += [_any(alternatives) for alternatives in any_of.values()]
    return lambda row: all(test(row) for test in all_of)


def words_sought(text: str) -> list[str]:
    """The words that the `text:` terms of a filter look for, in order; empty ones are left out."""
    words = []
    for term in _TERM.findall(text):
        match = _FACET.match(term.removeprefix("-"))
        if match and match.group(1).lower() == "text":
            words.append(match.group(2).strip('"'))
    return [word for word in words if word]


def _compile_term(term: str, marked: Container[int], holding: Holding) -> tuple[str, Predicate]:
    """The facet of a term ("" where terms do not group) and its predicate."""
    if term.startswith('"'):
        return "", _word(term.strip('"'))
    if match := _COMPARISON.match(term):
        name, sign, value = match.groups()
        facet = name.lower()
        if sign == "=" and facet in TEXT_FIELDS:
            return facet, _equals(facet, value.strip('"').casefold())
        return "", _comparison(name, sign, value)
    if match := _FACET.match(term):
        facet = match.group(1).lower()
        return facet, _facet(facet, _facet_value(term), holding)
    return "", _flag(term.lower(), marked) or _word(term)


def _facet_value(term: str) -> str:
    return term.partition(":")[2].strip('"').casefold()


def _facet(facet: str, value: str, holding: Holding) -> Predicate:
    if not value:
        example = "E3" if facet == "code" else "x"
        name = _excerpt(facet)
        raise QueryError(f"{name}: needs a value", f"e.g. {name}:{example}")
    if facet == "code":
        return _has_code(value)
    if facet == "unread":
        return _has_unread_code(value)
    if facet == "text":
        return _is_among(holding(value))
    if facet.startswith(OUTCOME_PREFIX):
        return _contains(_outcome_text(facet.removeprefix(OUTCOME_PREFIX)), value)
    if facet.startswith(GROUP_PREFIX):
        return _contains(_group_text(facet.removeprefix(GROUP_PREFIX)), value)
    if facet not in TEXT_FIELDS:
        names = [*TEXT_FIELDS, "code", "unread", "text"]
        raise QueryError(f"no facet {_excerpt(facet)}:", _suggest(facet, names))
    return _contains(TEXT_FIELDS[facet].of, value)


def _flag(word: str, marked: Container[int]) -> Predicate | None:
    """The predicate of a word that stands for a property of runs; None for other words."""
    if word == "marked":
        return _is_among(marked)
    if word in STATE_FLAGS:
        return lambda row: row.state == word
    if word in COUNT_FLAGS:
        field = COUNT_FLAGS[word]
        return lambda row: field.of(row) > 0
    return DERIVED_FLAGS.get(word)


def _word(word: str) -> Predicate:
    folded = word.casefold()
    fields = [TEXT_FIELDS[name] for name in WORD_FIELDS]

    def holds(row: RunRow) -> bool:
        values = [field.of(row) for field in fields]
        return any(value is not None and folded in value.casefold() for value in values)

    return holds


def _contains(text_of: TextValue, value: str) -> Predicate:
    """Whether a text field holds the value; `none` asks whether there is no text."""

    def holds(row: RunRow) -> bool:
        text = text_of(row)
        if value == "none":
            return text is None
        return text is not None and value in text.casefold()

    return holds


def _equals(field: str, value: str) -> Predicate:
    """Whether a text field is exactly the value."""
    if not value:
        name = _excerpt(field)
        raise QueryError(f"{name}= needs a value", f"e.g. {name}=x; {name}:none finds empty ones")

    def holds(row: RunRow) -> bool:
        text = TEXT_FIELDS[field].of(row)
        return text is not None and text.casefold() == value

    return holds


def _has_code(code: str) -> Predicate:
    if code == "none":
        return lambda row: row.state == "scored" and not row.codes and not row.unknown
    if code == "any":
        return lambda row: bool(row.codes)
    return lambda row: code in _folded(row.codes)


def _lacks_code(code: str) -> Predicate:
    """The opposite of a `code:` term where it is known.

    A code that was not read is neither there nor absent.
    """
    if code == "none":
        return _has_code("any")
    if code == "any":
        return _has_code("none")
    return lambda row: row.state == "scored" and code not in _folded((*row.codes, *row.unknown))


def _has_unread_code(code: str) -> Predicate:
    if code == "none":
        return lambda row: row.state == "scored" and not row.unknown
    if code == "any":
        return lambda row: bool(row.unknown)
    return lambda row: code in _folded(row.unknown)


def _folded(codes: Iterable[str]) -> list[str]:
    return [code.casefold() for code in codes]


def _comparison(name: str, sign: str, text: str) -> Predicate:
    value_of = _number(name)
    if value_of is None:
        names = [*NUMBER_FIELDS, *DERIVED_NUMBERS]
        raise QueryError(f"no number '{_excerpt(name)}'", _suggest(name.lower(), names))
    try:
        limit = float(text)
    except ValueError:
        name, text = _excerpt(name), _excerpt(text)
        raise QueryError(
            f"{name}{sign}{text}: {text or 'nothing'} is not a number", f"e.g. {name}{sign}0.5"
        ) from None
    tests: dict[str, Callable[[float], bool]] = {
        "<": lambda value: value < limit,
        "<=": lambda value: value <= limit,
        ">": lambda value: value > limit,
        ">=": lambda value: value >= limit,
        "=": lambda value: abs(value - limit) < 1e-9,
    }
    test = tests[sign]

    def holds(row: RunRow) -> bool:
        value = value_of(row)
        return value is not None and test(value)

    return holds


def _number(name: str) -> NumberValue | None:
    """The number of a row that a comparison names; None if there is none of this name."""
    if name.startswith(OUTCOME_PREFIX):
        return _outcome_number(name.removeprefix(OUTCOME_PREFIX).lower())
    if name.startswith(GROUP_PREFIX):
        return _group_score(name.removeprefix(GROUP_PREFIX).lower())
    if name.lower() in NUMBER_FIELDS:
        return NUMBER_FIELDS[name.lower()].of
    return DERIVED_NUMBERS.get(name.lower())


def _outcome_text(name: str) -> TextValue:
    def text(row: RunRow) -> str | None:
        value = row.outcomes.get(name)
        if isinstance(value, bool):
            return "yes true" if value else "no false"
        return f"{value:g}" if isinstance(value, float | int) else value

    return text


def _group_score(name: str) -> NumberValue:
    def score(row: RunRow) -> float | None:
        scores = (score for group, score in row.groups.items() if group.lower() == name)
        return next(scores, None)

    return score


def _group_text(name: str) -> TextValue:
    score_of = _group_score(name)

    def text(row: RunRow) -> str | None:
        score = score_of(row)
        return None if score is None else f"{score:g}"

    return text


def _outcome_number(name: str) -> NumberValue:
    def number(row: RunRow) -> float | None:
        value = row.outcomes.get(name)
        return None if value is None or isinstance(value, str) else float(value)

    return number


def _is_among(numbers: Container[int]) -> Predicate:
    return lambda row: row.number in numbers


def _not(predicate: Predicate) -> Predicate:
    return lambda row: not predicate(row)


def _any(alternatives: list[Predicate]) -> Predicate:
    return lambda row: any(test(row) for test in alternatives)


def _excerpt(text: str) -> str:
    """What an error repeats of a typed text."""
    return sanitize_line(text if len(text) <= 60 else f"{text[:60]}…")


def _suggest(name: str, names: Iterable[str]) -> str:
    existing = list(names)
    close = get_close_matches(name, existing, n=1)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(existing)}"
