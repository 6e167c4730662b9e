"""How the numbers of a cohort came about: who judged what, how, when, and which tests were made.

`methods_statements` is the block *Judge* of the report's methods; `methods_paragraph` is the same
as one paragraph of Markdown for a paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from ...judge.card.fields import REPLAY, REPORTED, RULES
from ...sanitize import sanitize_line
from ...version import __version__
from ..statistics.run_arrays import select_runs
from ..tables.grouping import AGENTS, RowKind
from ..tables.score_names import score_of
from .basis import basis
from .cohort_tables import judge_cost

if TYPE_CHECKING:
    from .results import Analysis

HASH_DIGITS = 12
"""Digits of a hash that are shown: enough to tell any two rubrics or prompts apart."""
UNKNOWN = "unknown"


class Statement(NamedTuple):
    """What is said about one subject; names stand between backticks."""

    subject: str
    text: str


def methods_paragraph(analysis: Analysis) -> str:
    """The statements as one paragraph of Markdown."""
    return " ".join(statement.text for statement in methods_statements(analysis))


def methods_statements(analysis: Analysis) -> list[Statement]:
    """Statements about the cohort's runs, judges, rubrics, rules, tests and what was left out.

    Unknown facts are said to be unknown; several judges, rubrics or versions are all listed.
    """
    runs, notes = select_runs(analysis.runs)
    selection = analysis.cohort.selection
    if selection is not None and not selection.is_everything:
        notes = [f"scorecards: {selection.left_out()}", *notes]
    table = analysis.cohort.all_judges.runs
    judges = basis(analysis.cohort)
    pairs = [
        ("Runs", _cohort(runs, score_of(analysis.outcome, runs).titled, analysis.rows)),
        ("Judge", " ".join(_judges(judges["judge"], table))),
        ("Rubric", _rubrics(runs)),
        ("Read", _read_shares(judges.row(0, named=True))),
        ("Cost of judging", " ".join(_judging_costs(table))),
        ("Rules of scoring", _policy(runs)),
        ("Intervals and tests", _tests(set(analysis.tables), analysis.rows)),
        ("Left out", _left_out(runs, notes, len(analysis.problems))),
        ("Software", _software(table)),
    ]
    return [Statement(subject, text) for subject, text in pairs if text]


# Wording


def _name(text: object) -> str:
    """A name from the data as code, which Markdown leaves as it is."""
    return f"`{sanitize_line(str(text)).replace('`', chr(39))}`"


def _short_hash(sha256: str) -> str:
    return _name(sha256[:HASH_DIGITS])


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _enumerate(parts: list[str]) -> str:
    """`A`, `A and B`, `A, B and C`."""
    if len(parts) <= 1:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _values(runs: pl.DataFrame, column: str, form: Callable[[Any], str]) -> str:
    """The values of a column; if there are several, each with its number of runs."""
    counts = runs.group_by(column).len().sort("len", column, descending=[True, False])
    values = [
        (UNKNOWN if value is None else form(value), count) for value, count in counts.iter_rows()
    ]
    if len(values) == 1:
        return values[0][0]
    return _enumerate([f"{text} ({_count(count, 'run')})" for text, count in values])


# The statements


def _cohort(runs: pl.DataFrame, score: str, rows: RowKind) -> str:
    counts = {
        noun: runs[noun].drop_nulls().n_unique() for noun in ("agent", "task", "track", "tier")
    }
    grouping = "" if rows == AGENTS else f" and compared by {rows.singular}"
    agents, tasks, tracks, tiers = (_count(count, noun) for noun, count in counts.items())
    return (
        f"{_count(runs.height, 'run')} of {agents} on {tasks} ({tracks}, {tiers}) were analysed by"
        f" {score}{grouping}."
    )


def _judges(names: Iterable[str | None], table: pl.DataFrame) -> Iterator[str]:
    """A sentence for each judge, the one whose scorecards are analysed first."""
    for name in names:
        runs = table.filter(pl.col("judge").eq_missing(pl.lit(name)))
        title = "An unknown judge" if name is None else f"The judge {_name(name)}"
        yield f"{title} scored {_count(runs.height, 'run')}{_judge_details(name, runs)}."


def _judge_details(name: str | None, runs: pl.DataFrame) -> str:
    if name == RULES:
        return ": it is no model and scores only what files, exit codes and counts decide"
    if name == REPORTED:
        models = _values(runs, "judge_served", _name)
        whose = f" ({models})" if models else ""
        return f": S1-S3 are those of the harness's own judge{whose}, as its reports state them"
    if name is not None and name.startswith(REPLAY):
        return (
            " from recorded answers; model, temperature, samples and dates of the recording are"
            " unknown"
        )
    is_local = name is not None and name.startswith("local:")
    details = {
        "members": _values(runs, "judge_members", _members),
        "served model": _values(runs, "judge_served", _name),
        "temperature": _values(runs, "judge_temperature", lambda value: f"{value:g}"),
        "samples of each answer": _values(runs, "judge_samples", str),
        "prompts": _values(runs, "judge_prompts", _short_hash),
        "days of the verdicts": _days(runs),
    }
    if not runs["judge_members"].count():
        del details["members"]
    if is_local:
        # A local model's answers are compared by their probabilities; nothing is sampled.
        for detail in ("served model", "temperature", "samples of each answer"):
            del details[detail]
    stated = [f"{detail} {value}" for detail, value in details.items() if value != UNKNOWN]
    unknown = [detail for detail, value in details.items() if value == UNKNOWN]
    if is_local:
        stated.insert(0, "a local model, by the probabilities of its answers")
    if unknown:
        stated.append(f"{_enumerate(unknown)} unknown")
    return f" ({'; '.join(stated)})"


def _members(names: str) -> str:
    return _enumerate([_name(name) for name in names.split("; ")])


def _days(runs: pl.DataFrame) -> str:
    first_days = runs["first_verdict"].drop_nulls().to_list()
    last_days = runs["last_verdict"].drop_nulls().to_list()
    if not first_days or not last_days:
        return UNKNOWN
    first, last = min(first_days), max(last_days)
    days = str(first) if first == last else f"{first} to {last}"
    n_unknown = runs["first_verdict"].null_count()
    return f"{days}, {UNKNOWN} for {_count(n_unknown, 'run')}" if n_unknown else days


def _rubrics(runs: pl.DataFrame) -> str:
    """Every rubric with its version and its hash."""
    keys = ["rubric", "rubric_version", "rubric_sha256"]
    parts = []
    for rubric, version, sha256, count in runs.group_by(keys).len().sort(keys).iter_rows():
        text = _name(rubric or "unknown")
        text += f" {version or 'of unknown version'}"
        text += f" ({_short_hash(sha256)})" if sha256 else " (hash unknown)"
        parts.append(f"{text} for {_count(count, 'run')}")
    subject = "The rubric was" if len(parts) == 1 else "The rubrics were"
    return f"{subject} {_enumerate(parts)}; in parentheses the beginning of the SHA-256."


def _read_shares(row: dict[str, Any]) -> str:
    """What was read and which quotes were found, by the row of `basis` of the judge in force."""
    parts = []
    if row["read_share"] is not None:
        parts.append(f"{row['read_share']:.0%} of the weight of S1 to S3 was read")
    if row["quotes"]:
        parts.append(f"{row['quotes_found']:,} of {row['quotes']:,} quotes were found in the runs")
    if row["contradictions"] is not None:
        verdicts = (
            _count(row["contradictions"], "verdict") if row["contradictions"] else "no verdict"
        )
        parts.append(f"facts contradict {verdicts}")
    text = _enumerate(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _judging_costs(table: pl.DataFrame) -> Iterator[str]:
    """A sentence for each judge that is asked for answers."""
    for row in judge_cost(table).iter_rows(named=True):
        judge = row["judge"] or "unknown"
        if judge in (RULES, REPORTED) or judge.startswith(REPLAY):
            continue
        if row["calls"] == 0:
            yield f"The scorecards of {_name(judge)} took no call that was counted."
            continue
        tokens = [
            "unknown" if row[name] is None else f"{row[name]:,}"
            for name in ("input_tokens", "output_tokens")
        ]
        yield (
            f"The scorecards of {_name(judge)} took {_calls(row['calls'])},"
            f" {tokens[0]} input and {tokens[1]} output tokens, cost {_dollars(row['cost_usd'])};"
            " answers that the store had already are not counted."
        )


def _calls(calls: int | None) -> str:
    return "an unknown number of calls" if calls is None else _count(calls, "call")


def _dollars(cost: float | None) -> str:
    if cost is None:
        return "unknown"
    return f"US$ {cost:,.2f}" if cost >= 0.1 or not cost else f"US$ {cost:.4f}"


_LIKE = {"paper": "the rules of the paper", "harness": "the rules of the public harness"}
_MISSING = {
    "renormalize": "what has no verdict is left out of a mean",
    "zero": "what has no verdict counts as 0",
}
_BREACH = {
    "zero-all": "a breach sets all scores of a run to 0",
    "from-stage": "a breach sets its stage and the later ones to 0",
    "from-turn": "a breach counts from its turn on, as in the harness",
    "ignored": "breaches change no score, as in the track's harness",
}
_STRICT = {
    True: "a criterion counts as met only with a quote that was found and no fact against it",
    False: "a verdict counts whether or not its quote was found",
}


def _policy(runs: pl.DataFrame) -> str:
    """The choices that the numbers depend on."""
    wordings: tuple[tuple[str, dict[Any, str]], ...] = (
        ("like", _LIKE),
        ("missing_policy", _MISSING),
        ("breach_policy", _BREACH),
        ("strict_evidence", _STRICT),
    )
    parts = []
    for column, wording in wordings:
        if runs[column].count():
            parts.append(_values(runs, column, _in_words(wording)))
    return f"Scores follow {'; '.join(parts)}." if parts else ""


def _in_words(wording: dict[Any, str]) -> Callable[[Any], str]:
    """A choice in words; one that we do not know, from a frame of somebody else's, by its name."""

    def words(choice: Any) -> str:
        return wording.get(choice) or _name(choice)

    return words


_INTERVALS = (
    "Intervals are 95 % intervals for new tasks of the same kind, with tasks as clusters, unless"
    " they are headed “same tasks”: means average runs within tasks, tasks within tracks and tracks"
    " equally; differences between {rows} are paired by task, with Holm’s correction over all"
    " pairs; effects of error codes compare repeats of the same agent, task and tier with the same"
    " other codes (overlap weights, jackknife over tasks, Holm over the codes) and are"
    " associations."
)
_CORRECTIONS = (
    " Numbers headed “corrected” use human labels with the weights by which runs were drawn"
    " (difference estimator for means, predict-then-debias for effects)."
)


def _tests(tables: set[str], rows: RowKind) -> str:
    has_labels = bool(tables & {"agreement", "corrected_leaderboard", "corrected_effects"})
    return rows.fill(_INTERVALS) + (_CORRECTIONS if has_labels else "")


def _left_out(runs: pl.DataFrame, notes: list[str], n_problems: int) -> str:
    """What is in no number, or only in some."""
    judge = runs["judge"].first()
    parts = [_with_judge_as_name(note, judge) for note in notes]
    n_disqualified = int(runs["disqualified"].sum() or 0)
    if n_disqualified:
        disqualified = _count(n_disqualified, "disqualified run")
        parts.append(f"{disqualified} from effects of codes, not from means")
    if n_problems:
        parts.append(f"{_count(n_problems, 'input')} could not be read")
    return f"Left out: {'; '.join(parts)}." if parts else "No run was left out."


def _with_judge_as_name(note: str, judge: object) -> str:
    return note.replace(f"judge {judge} ", f"judge {_name(judge)} ")


def _software(table: pl.DataFrame) -> str:
    versions = _values(table, "ambjudge", str)
    return f"Scorecards were made by ambjudge {versions}, the analysis by ambjudge {__version__}."
