"""Scorecards as text on a terminal: one in full, or many as a table."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..console import cells, paint, say, style_of, table, wrap
from ..judge.card.read_share import format_total
from ..judge.card.view import (
    evidence_words,
    mark_legend,
    scorecard_view,
    standing_reasons,
    usage_parts,
)
from ..judge.card.view_parts import UNKNOWN, Bounds, Item, Role, Section, bar, score_text
from ..sanitize import sanitize_line
from ..trajectories.stages import STAGES
from ..views.outcome_columns import OutcomeColumn, outcome_columns
from ..views.run_columns import cost_text, model_text

if TYPE_CHECKING:
    from ..judge.card.fields import JudgeInfo
    from ..judge.card.read_share import Standing
    from ..judge.card.scorecard import ScoreCard
    from ..judge.card.view import Usage

MAX_QUOTES = 2
"""Quotes of one item that are shown without --verbose."""
MAX_LINES = 12
"""Lines of a list of problems that are shown without --verbose."""
JUDGE_HINT = "--judge MODEL has them judged"
EVIDENCE_HINT = "a policy with strict_evidence leaves out verdicts without proof"


def other_models(judge: JudgeInfo) -> list[str]:
    """The models that answered in place of those that were asked, as the provider names them."""
    from ..judge.card.fields import REPORTED
    from ..judge.judges.api.model_names import is_same_model

    if judge.name == REPORTED:
        return []  # the model is the harness's judge, whom nobody asked
    asked = judge.members or (judge.name,)
    return [
        served
        for served in (judge.served_model or "").split(", ")
        if served and not any(is_same_model(name, served) for name in asked)
    ]


def bill(usage: Usage) -> str:
    """What judging used in the end, to a hundredth of a cent."""
    return ", ".join(usage_parts(usage, "${:.4f}"))


def scorecard(card: ScoreCard, verbose: bool = False) -> None:
    """Print one scorecard: scores, what lost points and why, codes, problems of the files.

    `verbose` adds criteria without loss, all quotes, votes, origins of codes, failed steps, facts.
    """
    sections = scorecard_view(card)
    stages = [section for section in sections if section.kind == "stage"]
    for section in sections:
        if section.kind == "run":
            _print_run(section)
            say()
            _print_stage_table(stages)
            if legend := mark_legend(sections):
                say(wrap(legend, "  ", "  "))
            say()
        elif section.kind == "totals":
            _print_totals(section, card)
            _print_criteria(stages, verbose)
        elif section.kind == "stage":
            continue
        elif verbose or section.kind not in ("episodes", "facts"):
            _print_section(section, verbose)


def _print_run(section: Section) -> None:
    first, *others = section.lines
    name = sanitize_line(section.title)
    text = wrap(f"{name}  {first.text}", "  ", "")
    if text.startswith(name):
        text = paint(name, "bold") + text.removeprefix(name)
    # `say` would show the colour instead of sending it; `wrap` has made the text safe.
    sys.stdout.write(text + "\n")
    for line in others:
        say(wrap(line.text, "    ", "  "))


def _print_stage_table(stages: Sequence[Section]) -> None:
    rows, styles = [], []
    for section in stages:
        score = section.score.score if section.score is not None else None
        value = section.score.text if section.score is not None else ""
        bounds = "".join(part.text for part in section.head if isinstance(part, Bounds))
        rows.append([section.title, value, bar(score, 10), bounds, _stage_basis(section)])
        styles.append([None, style_of(score), style_of(score), "dim", None])
    any_bounds = any(row[3] for row in rows)
    header = ["Stage", "Score", "", "Bounds" if any_bounds else "", "From"]
    table(header, rows, right=[1], flexible=4, styles=styles)


def _stage_basis(section: Section) -> str:
    """What the score of a stage rests on, in one cell: marks of criteria, checks of outputs."""
    marks = []
    for item in section.items:
        # `a` for S1a: the stage stands in the first column.
        name = item.name.removeprefix(section.key) or item.name
        marks.append(f"{name}{item.mark.text if item.mark is not None else ''}")
    checks = ", ".join(line.text for line in section.lines)
    return "  ".join([*marks, *([checks] if checks else [])])


def _print_totals(section: Section, card: ScoreCard) -> None:
    for line in section.lines:
        say(wrap(line.text, "   ", ""))
    if card.standing != "read" and card.status.ended != "running":
        say(f"   {JUDGE_HINT}")
    quotes, verified = card.quotes
    if (verified < quotes or card.contradictions) and not card.policy.strict_evidence:
        say(f"   {EVIDENCE_HINT}")


def _print_criteria(stages: Sequence[Section], verbose: bool) -> None:
    items = [item for section in stages for item in section.items if verbose or item.loses_points]
    if not items:
        return
    say()
    say("Criteria" if verbose else "Where points were lost")
    width = max(3, *(cells(sanitize_line(item.name)) for item in items))
    for item in items:
        reason = next((line.text for line in item.details if line.role == "reason"), "")
        name = sanitize_line(item.name)
        say(wrap(reason, "      ", f"  {name}{' ' * (width + 1 - cells(name))}"))
        _print_details(item, ("evidence", "vote") if verbose else ("evidence",), verbose)


def _print_section(section: Section, verbose: bool) -> None:
    say()
    say(wrap(section.title + "".join(part.text for part in section.head), "    ", ""))
    lines = section.lines if verbose else section.lines[:MAX_LINES]
    for line in lines:
        say(wrap(line.text, "    ", "  "))
    if len(section.lines) > len(lines):
        say(f"  … and {len(section.lines) - len(lines)} more (--json shows all)")
    roles: tuple[Role, ...] = ("reading", "evidence", "facts")
    if verbose:
        roles += ("origin",)
    for item in section.items:
        say_item(item, roles=roles, verbose=verbose)
    if section.notes:
        say(wrap(" · ".join(note.text for note in section.notes), "    ", "  "))


def say_item(
    item: Item,
    indent: str = "  ",
    roles: Iterable[Role] = ("evidence", "facts"),
    verbose: bool = False,
) -> None:
    """Print an item with those of its details that have one of these roles."""
    say(wrap(item.text, f"{indent}    ", indent))
    _print_details(item, roles, verbose, indent)


def _print_details(item: Item, roles: Iterable[Role], verbose: bool, indent: str = "  ") -> None:
    selected = set(roles)
    quotes = 0
    for line in item.details:
        if line.role not in selected:
            continue
        bullet = "  "
        if line.role == "evidence":
            bullet = "↳ "
            quotes += 1
            if quotes > MAX_QUOTES and not verbose:
                continue
        say(wrap(line.text, f"{indent}      ", f"{indent}    {bullet}"))


_CODES_MEANING = "E1-E5 fired error codes, – none (ambjudge score RUN says why)"


def units(columns: Collection[str], has_stages: bool, has_outcomes: bool) -> str:
    """What the numbers of a table with these columns mean."""
    from_0_to_1 = [name for name in ("Agentic", "Task") if name in columns]
    if has_stages:
        from_0_to_1.insert(0, "Stages")
    parts = []
    if from_0_to_1:
        *others, last = from_0_to_1
        names = f"{', '.join(others)} and {last}" if others else last
        scales = f"{names} 0-1"
        parts.append(f"{scales}, Overall 0-100" if "Overall" in columns else scales)
    if has_outcomes:
        parts.append("outcomes as their harness recorded them")
    return "; ".join([*parts, _CODES_MEANING])


def unread(runs: Mapping[Standing, int], share: float | None, has_ranges: bool = True) -> str:
    """Why scores of these runs are ranges or rest on presumed criteria, and what to do about it.

    `share`: of the weight of S1-S3 that was judged, on average. `has_ranges`: ranges are shown.
    """
    reasons = standing_reasons(runs, share, has_ranges)
    return "\n".join(wrap(f"{reason}: {JUDGE_HINT}", "   ", "") for reason in reasons)


def proof(quotes: int, verified: int, contradicted: int, strict: bool) -> str:
    """How many quotes were found and verdicts contradicted, and what counts; "" without either."""
    parts = [evidence_words(quotes, verified, contradicted)]
    if verified < quotes or contradicted:
        parts.append("strict evidence: such verdicts do not count" if strict else EVIDENCE_HINT)
    return "; ".join(part for part in parts if part)


UNSCORED_REASONS = {
    "budget": (
        "not asked, as the cost limit was reached: raise --max-cost and give the same command again"
    ),
    "judge_error": (
        "without an answer, as the provider failed: the same command asks for only these"
    ),
    "truncated": "with an answer that was cut off",
    "refused": "that the judge refused to answer",
    "unparsable": "with an answer that could not be read",
    "no_evidence": "without evidence: the judge could not tell, or its quote is not in the run",
    "not_read": f"that no rule decides: {JUDGE_HINT}",
    "running": "not met so far, of runs that still go on: score them again when they have ended",
}
"""Why criteria have no verdict, by their reason, and what to do about it."""


def unscored_notes(missed: Mapping[str, int]) -> list[str]:
    """How many criteria have no verdict, one line a reason, the commonest first."""
    by_count = sorted(missed.items(), key=lambda pair: -pair[1])
    return [
        f"{count} criteri{'on' if count == 1 else 'a'} {UNSCORED_REASONS[reason]}"
        for reason, count in by_count
    ]


@dataclass(frozen=True)
class Row:
    """The texts of one run in the table of several; `stages` maps a stage to its text and style."""

    run: str
    task_id: str
    tier: str
    stages: dict[str, tuple[str, str | None]]
    agentic: str
    task: str
    overall: str
    codes: str
    doubt: str
    """Quotes that were not found, and verdicts that facts contradict."""
    ended: str
    model: str = ""
    outcomes: Mapping[str, bool | float | str] = field(default_factory=dict)
    """By name in lower case."""
    turns: str = ""
    failed_steps: str = ""
    cost: str = ""
    has_total: bool = True
    """Whether Agentic says anything: a point, or the range of a run of the benchmark."""


def row(card: ScoreCard) -> Row:
    """A scorecard's row."""
    codes = list(dict.fromkeys(code.code for code in card.codes))
    if {"cannot_tell", "not_read", "withheld"} & set(card.codes_read.values()):
        codes.append("?")
    quotes, verified = card.quotes
    doubts = [f"{verified}/{quotes}"] if verified < quotes else []
    if card.contradictions:
        doubts.append(f"!{len(card.contradictions)}")
    presumed = card.presumed > 0
    # One range in full is enough for a row: Agentic is a range wherever Overall has one.
    standing: Standing = "open" if card.standing != "read" else "read"
    overall_digits = 1 if standing == "read" else 0
    return Row(
        run=card.run.id,
        task_id=card.run.task or UNKNOWN,
        tier=card.run.tier or UNKNOWN,
        stages={
            name: (score_text(stage.score, stage.presumed), style_of(stage.score))
            for name, stage in card.stages.items()
        },
        agentic=format_total(card.agentic, card.agentic_bounds, standing, presumed, 2),
        task=score_text(card.task),
        overall="running"
        if card.status.ended == "running"
        else format_total(
            card.overall, card.overall_bounds, card.standing, presumed, overall_digits
        ),
        codes=" ".join(codes) or "–",
        doubt=" ".join(doubts),
        ended=card.status.ended,
        model=model_text(card.run.model, card.run.agent),
        outcomes={name.lower(): outcome.value for name, outcome in card.outcomes.items()},
        turns=str(card.run.turns),
        failed_steps=str(len(card.episodes)),
        cost=cost_text(card.resources.cost_usd),
        has_total=card.run.track is not None or card.standing != "open",
    )


@dataclass(frozen=True)
class _Column:
    name: str
    cells: list[str]
    styles: list[str | None] | None = None
    right: bool = False

    @property
    def has_value(self) -> bool:
        return any(cell not in ("", UNKNOWN) for cell in self.cells) or self.name == "Codes"


def rows(scored: Sequence[Row]) -> bool:
    """Print the table of several runs; whether it shows Agentic.

    A column in which no run has a value is left out. Outcomes of other harnesses stand first, then
    the stages of the runs' rubrics, S1-S5 before groups of one's own.
    """
    stages = sorted(
        {name for row in scored for name in row.stages}, key=lambda name: (name not in STAGES, name)
    )
    outcomes = outcome_columns(row.outcomes for row in scored)
    columns = [
        _Column("Run", [row.run for row in scored]),
        _Column("Task id", [row.task_id for row in scored]),
        _Column("Tier", [row.tier for row in scored]),
        _Column("Model", [row.model for row in scored]),
        *(_outcome_column(outcome, scored) for outcome in outcomes),
        *(_stage_column(name, scored) for name in stages),
        _Column("Agentic", [row.agentic for row in scored], right=True),
        _Column("Task", [row.task for row in scored], right=True),
        _Column("Overall", [row.overall for row in scored], ["bold"] * len(scored), right=True),
        _Column("Codes", [row.codes for row in scored]),
        _Column("Doubt", [row.doubt for row in scored], ["bad"] * len(scored)),
        _Column("Failed steps", [row.failed_steps for row in scored], right=True),
        _Column("Turns", [row.turns for row in scored], right=True),
        _Column("Cost", [row.cost for row in scored], right=True),
        _Column("Ended", [row.ended for row in scored], [_ended_style(row) for row in scored]),
    ]
    has_total = any(row.has_total for row in scored)
    columns = [
        column for column in columns if column.has_value and (has_total or column.name != "Agentic")
    ]
    names = [column.name for column in columns]
    plain: list[str | None] = [None] * len(scored)
    table(
        names,
        list(zip(*(column.cells for column in columns), strict=True)),
        right=[place for place, column in enumerate(columns) if column.right],
        flexible=names.index("Run"),
        spare=[
            names.index(name)
            for name in (*_SPARE, *(outcome.title for outcome in reversed(outcomes[1:])))
            if name in names
        ],
        styles=list(zip(*(column.styles or plain for column in columns), strict=True)),
    )
    has_stages = any(name in names for name in stages)
    say(wrap(units(names, has_stages, bool(outcomes)), "   ", ""))
    if any("?" in row.codes.split() for row in scored):
        say("?  codes that nobody read, or that the judge could not tell")
    return "Agentic" in names


_SPARE = ("Cost", "Turns", "Failed steps", "Model", "Tier", "Task id", "Ended", "Task", "Agentic")
"""Columns that a narrow terminal does without, the least worth first."""


def _outcome_column(outcome: OutcomeColumn, scored: Sequence[Row]) -> _Column:
    values = [row.outcomes.get(outcome.name) for row in scored]
    styles: list[str | None] = []
    for value in values:
        style = "good" if value else "bad"
        styles.append(style if isinstance(value, bool) else None)
    texts = [outcome.text(value) for value in values]
    return _Column(outcome.title, texts, styles, right=not outcome.is_text)


def _stage_column(name: str, scored: Sequence[Row]) -> _Column:
    cells = [row.stages.get(name, ("", None)) for row in scored]
    return _Column(name, [text for text, _ in cells], [style for _, style in cells], right=True)


def _ended_style(row: Row) -> str | None:
    return "bad" if row.ended in ("breach", "cut") else None
