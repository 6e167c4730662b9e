"""Answers of `ambjudge ask` for people and programs: a table, full texts, counts, files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from .. import console
from .table_files import texts_of, write_parquet, write_text

if TYPE_CHECKING:
    from ..judge.ad_hoc import RunAnswer
    from ..judge.questions.items import Answer
    from ..trajectories.record.quotes import Evidence

_QUOTE_COLUMNS = 60
"""Columns of a quote in the table if the answer is the column that gives way."""


class AnswerCounts:
    """Counts answers as they pass."""

    def __init__(self, form: Answer) -> None:
        choices = ("yes", "no") if form.kind == "yes_no" else form.options
        self.form = form
        self.by_value: Counter[str] = Counter(dict.fromkeys(choices, 0))
        self.numbers: list[float] = []
        self.cannot_tell = 0
        self.without_quote = 0
        """Answers without a quote that was found in the run."""
        self.unscored_reasons: Counter[str] = Counter()

    @property
    def unscored(self) -> int:
        """Runs without an answer."""
        return self.unscored_reasons.total()

    def counted(self, answers: Iterable[RunAnswer]) -> Iterator[RunAnswer]:
        """The answers, each counted as it passes."""
        for answer in answers:
            self._count(answer)
            yield answer

    def _count(self, answer: RunAnswer) -> None:
        if answer.cannot_tell:
            self.cannot_tell += 1
            return
        if answer.status == "unscored":
            self.unscored_reasons[answer.reason or "judge_error"] += 1
            return
        self.without_quote += not answer.turns
        if self.form.kind == "number" and isinstance(answer.answer, int | float):
            self.numbers.append(answer.answer)
        elif self.form.kind in ("text", "json"):
            self.by_value["answered"] += 1
        else:
            self.by_value[format_answer(answer)] += 1

    def summary(self) -> str:
        """For example: yes 12, no 30, cannot tell 3, unscored 1 (refused 1)."""
        parts = [f"{value} {count}" for value, count in self.by_value.items()]
        if self.form.kind == "number":
            parts.append(self._numbers())
        if self.cannot_tell:
            parts.append(f"cannot tell {self.cannot_tell}")
        if self.unscored:
            reasons = [f"{reason} {n}" for reason, n in self.unscored_reasons.most_common()]
            parts.append(f"unscored {self.unscored} ({', '.join(reasons)})")
        if self.without_quote:
            parts.append(f"{self.without_quote} of the answers have no quote that was found")
        return ", ".join(parts)

    def _numbers(self) -> str:
        numbers = self.numbers
        if not numbers:
            return "numbers 0"
        return (
            f"numbers {len(numbers)}"
            f" (median {median(numbers):g}, {min(numbers):g} to {max(numbers):g})"
        )


def show_answers(
    answers: Iterable[RunAnswer], form: Answer, *, as_json: bool, in_full: bool
) -> None:
    """Print answers: as JSON Lines, in full with all quotes, or one row each."""
    if as_json:
        for answer in answers:
            console.raw(answer.to_json())
    elif in_full:
        for answer in answers:
            _show_in_full(answer)
    else:
        _show_table(answers, is_prose=form.kind in ("text", "json"))


def _show_table(answers: Iterable[RunAnswer], is_prose: bool) -> None:
    rows = []
    styles: list[list[str | None]] = []
    for answer in answers:
        rows.append(_row(answer, is_prose))
        style = "dim" if answer.status == "unscored" else None
        styles.append([None, style, style, style])
    console.table(
        ["Run", "Answer", "Turns", "Quote"], rows, flexible=1 if is_prose else 3, styles=styles
    )


def _row(answer: RunAnswer, is_prose: bool) -> list[str]:
    from ..judge.card.view_parts import turn_ranges

    quote = _failure(answer) or _best_quote(answer)
    return [
        answer.run.id,
        format_answer(answer) + _vote_split(answer),
        turn_ranges(answer.turns) or "–",
        console.fit(quote, _QUOTE_COLUMNS) if is_prose else quote,
    ]


def _failure(answer: RunAnswer) -> str:
    """Why a run has no answer; empty if it has one."""
    if answer.status == "unscored" and not answer.cannot_tell:
        return f"{answer.reason}: {answer.detail}"
    return ""


def _best_quote(answer: RunAnswer) -> str:
    """The first quote, one that was found before others, and the number of the others."""
    if not answer.quotes:
        return "no quote"
    ordered = sorted(answer.quotes, key=lambda quote: quote.check == "not_found")
    others = len(ordered) - 1
    return format_quote(ordered[0]) + (f" +{others}" if others else "")


def format_answer(answer: RunAnswer) -> str:
    """An answer as a word or a short text."""
    if answer.status == "unscored":
        return "cannot tell" if answer.cannot_tell else "unscored"
    value = answer.answer
    if answer.kind == "yes_no" and isinstance(value, bool):
        return "yes" if value else "no"
    if answer.kind == "number" and isinstance(value, int | float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _vote_split(answer: RunAnswer) -> str:
    """How many of several judges or samples agree with a yes or no, if they differ; other answers
    have no votes."""
    votes = [vote.value for vote in answer.votes]
    if answer.kind != "yes_no" or len(set(votes)) < 2 or answer.status == "unscored":
        return ""
    return f" ({votes.count(1.0 if answer.answer else 0.0)} of {len(votes)})"


def format_quote(quote: Evidence) -> str:
    """A quote in quotation marks, and whether it was found elsewhere or not at all."""
    notes = {
        "verified": "",
        "moved": f" [moved: turn {quote.found_turn}]",
        "not_found": " [not found]",
    }
    return f"“{quote.quote}”{notes[quote.check]}"


def _show_in_full(answer: RunAnswer) -> None:
    failure = _failure(answer)
    head = f"{answer.run.id}: {format_answer(answer)}{_vote_split(answer)}"
    console.say(console.wrap(f"{head} ({failure})" if failure else head, "    ", ""))
    if answer.rationale:
        console.say(console.wrap(answer.rationale, "    "))
    for quote in answer.quotes:
        line = f"turn {quote.turn}: {format_quote(quote)}"
        console.say(console.wrap(line, "      ", "    ↳ "))


def write_answers(file: Path, format_name: str, answers: Iterator[RunAnswer], form: Answer) -> None:
    """Write answers as jsonl, csv or parquet."""
    if format_name == "jsonl":
        write_text(file, (answer.to_json() + "\n" for answer in answers))
        return
    from ..analysis.tables.answer_tables import answer_rows, schema_of
    from ..analysis.tables.flat_tables import batches

    tables = batches(answer_rows(answers), schema_of(form.kind))
    if format_name == "parquet":
        write_parquet(file, tables)
    else:
        write_text(file, texts_of(tables, format_name))
