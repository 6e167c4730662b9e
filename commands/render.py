"""Scorecards, segments and codes as text for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..console import number, paint, say, style_of, table, wrap
from ..sanitize import sanitize_line
from ..trajectories.models import STAGE_NAMES, STAGES

if TYPE_CHECKING:
    from ..judge.base import Usage
    from ..judge.scorecard import CriterionResult, ScoreCard, StageResult

ENDINGS = {
    "submitted": "submitted",
    "stopped": "stopped without submitting",
    "breach": "ended by a breach",
    "cut": "cut off",
}


def bar(score: float | None, columns: int = 10) -> str:
    """A score in [0, 1] as a bar of eighths; dots where it is unknown."""
    if score is None:
        return "·" * columns
    eighths = round(score * columns * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(columns)


def spent(usage: Usage, form: str = "${:.2f}") -> list[str]:
    """What judging used, in parts of a line: calls, tokens where a provider's cache had to do with them, cost."""
    parts = [f"{usage.calls} calls"]
    kinds = (("from", usage.cached_tokens), ("into", usage.cache_write_tokens))
    cached = [f"{_short(tokens)} {where} cache" for where, tokens in kinds if tokens]
    if cached and usage.input_tokens is not None:
        parts.append(f"{_short(usage.input_tokens)} tokens in ({', '.join(cached)})")
    return [*parts, "cost unknown" if usage.cost_usd is None else form.format(usage.cost_usd)]


def _short(tokens: int) -> str:
    """950, 12.3k, 1.2M."""
    if tokens < 1_000:
        return str(tokens)
    return f"{tokens / 1e3:.1f}k" if tokens < 999_950 else f"{tokens / 1e6:.1f}M"


def turns(numbers: Sequence[int]) -> str:
    """1-3, 5 for [1, 2, 3, 5]."""
    parts: list[list[int]] = []
    for n in sorted(set(numbers)):
        if parts and n == parts[-1][-1] + 1:
            parts[-1].append(n)
        else:
            parts.append([n])
    return ", ".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)


def mark(result: CriterionResult) -> str:
    """One sign a criterion: met, partly, not met, credited, not applicable, unscored."""
    if result.status == "credited":
        return "+"
    if result.status == "not_applicable":
        return "–"
    if result.value is None:
        return "?"
    return "✓" if result.value >= 1 else "✗" if result.value <= 0 else f"{result.value:g}"


def stage_detail(name: str, stage: StageResult) -> str:
    """What the score of a stage rests on, in one cell."""
    if stage.criteria:
        return "  ".join(f"{c.id.removeprefix(name) or c.id}{mark(c)}" for c in stage.criteria)
    checks = stage.checks
    if checks is None:
        return ""
    parts = []
    if name == "S4" and checks.completion is not None:
        cases = (
            f" ({checks.complete_cases} of {checks.expected_cases} cases)" if checks.complete_cases is not None else ""
        )
        parts.append(f"completion {checks.completion:.2f}{cases}")
    if name == "S4" and checks.parse_rate is not None:
        parts.append(f"parse rate {checks.parse_rate:.2f}")
    if name == "S5" and checks.has_valid_results is not None:
        parts.append("results above zero" if checks.has_valid_results else "nothing above zero")
    if checks.format_valid is not None:
        parts.append("format valid" if checks.format_valid else "format invalid")
    parts.extend(checks.caps)
    if checks.source:
        parts.append(f"from the {checks.source}")
    return ", ".join(parts)


def scorecard(card: ScoreCard, verbose: bool = False) -> None:
    """One scorecard: scores, what lost points and why, codes, what was wrong with the files."""
    run, status = card.run, card.status
    who = f"{run.agent or 'unknown agent'}" + (f" ({run.model})" if run.model and run.model != run.agent else "")
    facts = [
        run.task or "unknown task",
        run.track or "unknown track",
        run.tier or "unknown tier",
        who,
        f"{run.turns} turns",
    ]
    _line(run.id, " · ".join([*facts, ENDINGS[status.ended] + (", DISQUALIFIED" if status.disqualified else "")]))
    policy = [
        f"rubric {card.rubric.id} {card.rubric.version}",
        f"judge {card.judge.name}",
        f"missing: {card.policy.missing}",
    ]
    if status.disqualified:
        policy.append(f"breach: {card.policy.breach}")
    say("  " + " · ".join(policy))
    say()
    rows, styles = [], []
    for name in STAGES:
        stage = card.stages[name]
        low, high = stage.bounds
        span = "" if stage.score is not None and low == high else f"{low:.2f}–{high:.2f}"
        rows.append(
            [f"{name} {STAGE_NAMES[name]}", number(stage.score), bar(stage.score), span, stage_detail(name, stage)]
        )
        styles.append([None, style_of(stage.score), style_of(stage.score), "dim", None])
    table(
        ["Stage", "Score", "", "Bounds" if any(r[3] for r in rows) else "", "From"],
        rows,
        right=[1],
        flexible=4,
        styles=styles,
    )
    say()
    task_note = {"gate": " (0 by the completeness gate)", "policy": " (0 by the breach policy)"}.get(
        card.task_from or "", ""
    )
    say(f"Agentic {number(card.agentic, 4)}   Task {number(card.task, 4)}{task_note}   Overall {number(card.overall)}"
        + (f"  [{card.overall_bounds[0]:.1f}–{card.overall_bounds[1]:.1f}]" if card.overall_bounds[0] != card.overall_bounds[1] else ""))  # fmt: skip
    _lost(card, verbose)
    _codes(card)
    _problems(card)


def _line(name: str, rest: str) -> None:
    import sys

    sys.stdout.write(f"{paint(sanitize_line(name), 'bold')}  {sanitize_line(rest)}\n")


def _lost(card: ScoreCard, verbose: bool) -> None:
    shown = [
        (name, c) for name in STAGES for c in card.stages[name].criteria
        if verbose or (c.status in ("scored", "unscored") and (c.value is None or c.value < 1))
    ]  # fmt: skip
    if not shown:
        return
    say()
    say("Criteria" if verbose else "Where points were lost")
    for _, c in shown:
        value = (
            "unscored"
            if c.status == "unscored"
            else {"credited": "credited", "not_applicable": "n/a"}.get(c.status) or f"{c.value:g}"
        )
        reason = f" ({c.reason})" if c.reason else ""
        say(wrap(f"{value}{reason}: {c.rationale or c.detail or 'no reason given'}", "      ", f"  {c.id:<4}"))
        for e in c.evidence[: 5 if verbose else 2]:
            flag = "" if e.check == "verified" else f" [{e.check.replace('_', ' ')}]"
            say(wrap(f"turn {e.turn}{flag}: “{e.quote}”", "           ", "      ↳ "))


def _codes(card: ScoreCard) -> None:
    say()
    if not card.codes:
        say("No error code fired.")
        return
    say("Error codes" + (f" (primary failure {card.primary_failure})" if card.primary_failure else ""))
    for code in card.codes:
        circular = " (read from the score)" if code.independence == "from_score" else ""
        say(
            wrap(
                f"{code.stage}  turn{'s' if len(code.turns) > 1 else ''} {turns(code.turns)}: {code.why}{circular}",
                "      ",
                f"  {code.code:<4}",
            )
        )


def _problems(card: ScoreCard) -> None:
    problems = [p for name in ("S4", "S5") if (checks := card.stages[name].checks) for p in checks.problems]
    blocks = (
        ("Deliverables", list(dict.fromkeys(problems))),
        (
            "Contradictions",
            [
                f"{c.criterion}: {c.fact}" + (f" (turns {turns(c.turns)})" if c.turns else "")
                for c in card.contradictions
            ],
        ),
        ("Warnings", list(card.warnings)),
    )
    for title, lines in blocks:
        if lines:
            say()
            say(title)
            for line in lines[:12]:
                say(wrap(line, "    ", "  - "))
            if len(lines) > 12:
                say(f"  … and {len(lines) - 12} more (--json shows all)")


def row(card: ScoreCard) -> tuple[list[str], list[str | None]]:
    """One line of the table of several runs: its cells and their styles."""
    scores = [card.stages[s].score for s in STAGES]
    fired = " ".join(dict.fromkeys(c.code for c in card.codes)) or "–"
    cells = [card.run.id, card.run.task or "–", card.run.tier or "–", *(number(s) for s in scores), number(card.agentic),
             number(card.task), number(card.overall, 1), fired, card.status.ended]  # fmt: skip
    bad = "bad" if card.status.ended in ("breach", "cut") else None
    return cells, [None, None, None, *(style_of(s) for s in scores), None, None, "bold", None, bad]


def rows(lines: Sequence[tuple[list[str], list[str | None]]]) -> None:
    """The table of several runs, one row a run."""
    table(["Run", "Task id", "Tier", *STAGES, "Agentic", "Task", "Overall", "Codes", "Ended"], [cells for cells, _ in lines],
          right=range(3, 11), flexible=0, styles=[styles for _, styles in lines])  # fmt: skip
