"""Scorecards, segments and codes as text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..console import fit, number, paint, say, style_of, table, width, wrap
from ..judge.card.read_share import total_words
from ..sanitize import sanitize_line
from ..trajectories.stages import STAGES, stage_title

if TYPE_CHECKING:
    from ..error_codes.models import FiredCode
    from ..judge.base import Usage
    from ..judge.card.fields import JudgeInfo, PlanItem
    from ..judge.card.read_share import Standing
    from ..judge.card.scorecard import ScoreCard
    from ..judge.card.stage_results import CriterionResult, StageResult
    from ..trajectories.record.quotes import Evidence

_ENDINGS = {
    "submitted": "submitted",
    "stopped": "stopped without submitting",
    "breach": "ended by a breach",
    "cut": "cut off",
}
STAGES_BY = {"judge": "stages by the judge", "mixed": "stages by rules and judge"}
"""Who labelled the turns, where it was not the rules alone."""
_STATES = {"absent": "absent", "cannot_tell": "cannot tell", "not_read": "not read"}
_LONGEST_QUOTE = 240


def bar(score: float | None, columns: int = 10) -> str:
    """A score in [0, 1] as a bar of eighths; dots where it is unknown."""
    if score is None:
        return "·" * columns
    eighths = round(score * columns * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(columns)


def spent(usage: Usage | JudgeInfo, form: str = "${:.2f}", tokens: bool = False) -> list[str]:
    """What judging used, in parts of a line: calls, input tokens (`tokens`: also where no
    provider's cache had to do with them), cost."""
    parts = [f"{usage.calls} call{'' if usage.calls == 1 else 's'}"]
    kinds = (("from", usage.cached_tokens), ("into", usage.cache_write_tokens))
    cached = [f"{_short(count)} {where} cache" for where, count in kinds if count]
    if usage.input_tokens is not None and (cached or tokens):
        parts.append(
            f"{_short(usage.input_tokens)} tokens in"
            + (f" ({', '.join(cached)})" if cached else "")
        )
    return [*parts, "cost unknown" if usage.cost_usd is None else form.format(usage.cost_usd)]


def bill(usage: Usage | JudgeInfo) -> str:
    """What judging used in the end, to a hundredth of a cent."""
    return ", ".join(spent(usage, "${:.4f}"))


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
    """One sign a criterion: met, partly, not met, credited, not applicable, unscored; ~ before it
    where it is presumed."""
    if result.status == "credited":
        return "+"
    if result.status == "not_applicable":
        return "–"
    if result.value is None:
        return "?"
    sign = "✓" if result.value >= 1 else "✗" if result.value <= 0 else f"={result.value:g}"
    return about(sign, result.status == "presumed")


UNITS = (
    "Stages, Agentic and Task 0-1, Overall 0-100; E1-E5 fired error codes, – none (ambjudge score"
    " RUN says why)"
)
_SIGNS = {
    "✓": "✓ met",
    "✗": "✗ not met",
    "=": "= partly",
    "+": "+ credited by the tier",
    "–": "– does not apply",
    "?": "? without a verdict",
}


def signs(card: ScoreCard) -> str:
    """What the signs of this scorecard's criteria mean."""
    used = {mark(c).removeprefix("~")[0] for stage in card.stages.values() for c in stage.criteria}
    return " · ".join(text for sign, text in _SIGNS.items() if sign in used)


def about(text: str, presumed: int) -> str:
    """A value, marked where it rests on criteria that nobody read."""
    return f"~{text}" if presumed and text != number(None) else text


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
            f" ({checks.complete_cases} of {checks.expected_cases} cases)"
            if checks.complete_cases is not None
            else ""
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
    who = f"{run.agent or 'unknown agent'}" + (
        f" ({run.model})" if run.model and run.model != run.agent else ""
    )
    facts = [
        run.task or "unknown task",
        run.track or "unknown track",
        run.tier or "unknown tier",
        who,
        f"{run.turns} turn{'s' * (run.turns != 1)}",
    ]
    _line(
        run.id,
        " · ".join(
            [
                *facts,
                ending(status.ended, run.track, card.imported)
                + (", DISQUALIFIED" if status.disqualified else ""),
            ]
        ),
    )
    policy = [
        f"rubric {card.rubric.id} {card.rubric.version}",
        f"judge {card.judge.name}",
        *((STAGES_BY[card.stages_from],) if card.stages_from in STAGES_BY else ()),
        *((f"like: {card.policy.like}",) if card.policy.like != "paper" else ()),
        f"missing: {card.policy.missing}",
        *(("strict evidence",) if card.policy.strict_evidence else ()),
    ]
    if status.disqualified:
        policy.append(f"breach: {card.policy.breach}")
    say(wrap(" · ".join(policy), "    ", "  "))
    if card.judge.calls:
        say(wrap(" · ".join(spent(card.judge, "${:.4f}", tokens=True)), "    ", "  "))
    say()
    rows, styles = [], []
    for name, stage in card.stages.items():
        low, high = stage.bounds
        span = "" if stage.score is not None and low == high else f"{low:.2f}–{high:.2f}"
        value, drawn = about(number(stage.score), stage.presumed), bar(stage.score)
        rows.append([stage_title(name), value, drawn, span, stage_detail(name, stage)])
        styles.append([None, style_of(stage.score), style_of(stage.score), "dim", None])
    table(
        ["Stage", "Score", "", "Bounds" if any(r[3] for r in rows) else "", "From"],
        rows,
        right=[1],
        flexible=4,
        styles=styles,
    )
    if legend := signs(card):
        say(wrap(legend, "  ", "  "))
    say()
    task_note = {
        "gate": " (0 by the completeness gate)",
        "policy": " (0 by the breach policy)",
    }.get(card.task_from or "", "")
    low, high = card.overall_bounds
    span = (
        f"  [{low:.1f}–{high:.1f}]"
        if low != high and (card.standing == "read" or card.overall is None)
        else ""
    )
    agentic, overall = totals(card, 4, 2 if card.standing == "read" else 1)
    say(
        wrap(
            f"Agentic {agentic}   Task {number(card.task, 4)}{task_note}   Overall {overall}{span}"
            " of 100",
            "  ",
            "",
        )
    )
    if card.outcomes:
        told = ", ".join(
            f"{name} {_told(outcome.value)}" for name, outcome in card.outcomes.items()
        )
        say(wrap(f"Outcomes of {card.imported or 'the run'}: {told}", "  ", ""))
    if card.standing != "read":
        say(unread({card.standing: 1}, card.read_share))
    quotes, found = card.quotes
    if found < quotes or card.contradictions:
        say(
            wrap(
                proof(quotes, found, len(card.contradictions), card.policy.strict_evidence),
                "  ",
                "",
            )
        )
    _lost(card, verbose)
    _codes(card)
    _problems(card)


def _told(value: bool | float | str) -> str:
    return (
        value
        if isinstance(value, str)
        else ("yes" if value else "no")
        if isinstance(value, bool)
        else f"{value:g}"
    )


def ending(ended: str, track: str | None, imported: str | None) -> str:
    """How a run ended, in words. Runs without a track, and of other harnesses, have nothing to
    submit with."""
    foreign = ended == "stopped" and (track is None or imported is not None)
    return "stopped by itself" if foreign else _ENDINGS[ended]


def totals(card: ScoreCard, agentic_digits: int, overall_digits: int) -> tuple[str, str]:
    """Agentic and Overall in words (`total_words`)."""
    kind, mark = card.standing, card.presumed > 0
    return (
        total_words(card.agentic, card.agentic_bounds, kind, mark, agentic_digits),
        total_words(card.overall, card.overall_bounds, kind, mark, overall_digits),
    )


def unread(runs: Mapping[Standing, int], share: float | None) -> str:
    """Why there are ranges, and how to be rid of them. `share`: of the weight of S1-S3 that was
    read, on average."""
    read = "" if share is None else f" ({share:.0%} of the weight of the judged criteria was read)"
    lines = []
    if n := runs.get("presumed"):
        what = "rests" if n == 1 else f"{n} runs rest"
        lines.append(
            f"~  {what} on presumed criteria, which nobody read{read}: --judge MODEL has them read"
        )
    if n := runs.get("open"):
        what = "too little was read" if n == 1 else f"too little of {n} runs was read"
        lines.append(f"–  {what} for a point{read}: the range holds whatever a judge would say")
    return "\n".join(wrap(line, "   ", "") for line in lines)


def proof(quotes: int, found: int, contradicted: int, strict: bool) -> str:
    """How many quotes were found in their runs, and how many verdicts facts contradict."""
    parts = [f"{found} of {quotes} quotes found in the runs"] if quotes else []
    if contradicted:
        parts.append(
            f"{contradicted} verdict{'' if contradicted == 1 else 's'} contradicted by facts (!)"
        )
    if found < quotes or contradicted:
        parts.append(
            "strict evidence: such verdicts do not count"
            if strict
            else "--strict-evidence leaves such verdicts out"
        )
    return "; ".join(parts)


LIMITS = {
    "budget": (
        "not asked, as the cost limit was reached: raise --max-cost and give the same command again"
    ),
    "judge_error": (
        "without an answer, as the provider failed: the same command asks for these alone"
    ),
    "truncated": "with an answer that was cut off",
    "refused": "that the judge refused to answer",
    "unparsable": "with an answer that could not be read",
    "no_evidence": "that the judge could not tell, or without proof",
    "not_read": "that no rule decides: --judge MODEL has them read",
}
"""What stopped the judging of criteria, by the reason of the unscored ones, and what to do."""


def limits(missed: Mapping[str, int]) -> list[str]:
    """One line a reason, the commonest first."""
    ordered = sorted(missed.items(), key=lambda pair: -pair[1])
    return [f"{n} criteri{'on' if n == 1 else 'a'} {LIMITS[reason]}" for reason, n in ordered]


def _line(name: str, rest: str) -> None:
    import sys

    name = sanitize_line(name)
    text = wrap(f"{name}  {rest}", "  ", "")
    rest = text.removeprefix(name)
    sys.stdout.write((paint(name, "bold") + rest if rest != text else text) + "\n")


def _lost(card: ScoreCard, verbose: bool) -> None:
    shown = [
        c
        for stage in card.stages.values()
        for c in stage.criteria
        if verbose
        or (c.status in ("scored", "presumed", "unscored") and (c.value is None or c.value < 1))
    ]
    if not shown:
        return
    say()
    say("Criteria" if verbose else "Where points were lost")
    for c in shown:
        value = (
            "unscored"
            if c.status == "unscored"
            else {"credited": "credited", "not_applicable": "n/a"}.get(c.status)
            or about(f"{c.value:g}", c.status == "presumed")
        )
        reason = f" ({c.reason})" if c.reason else ""
        say(
            wrap(
                f"{value}{reason}: {c.rationale or c.detail or 'no reason given'}",
                "      ",
                f"  {c.id:<4}",
            )
        )
        for e in c.evidence[: 5 if verbose else 2]:
            say(quoted(e))


def _codes(card: ScoreCard) -> None:
    say()
    if card.codes:
        say(
            "Error codes"
            + (
                f" (primary failure by the harness's codes {card.primary_failure})"
                if card.primary_failure
                else ""
            )
        )
    else:
        say("No error code fired.")
    for code in card.codes:
        fired(code)
    if rest := states(card.codes_read):
        say(wrap(rest, "    ", "  "))
    if card.unproven:
        say()
        say(UNPROVEN)
        for code in card.unproven:
            fired(code)
    if card.plan:
        say()
        say("What the plan promised")
        for item in card.plan:
            say(promised(item))


UNPROVEN = "Readings without proof (listed, not fired)"


def quoted(evidence: Evidence) -> str:
    """The words that something rests on, with where they were found."""
    where = "plan or brief" if evidence.turn == 0 else f"turn {evidence.turn}"
    found = "plan or brief" if evidence.found_turn == 0 else f"turn {evidence.found_turn}"
    flag = {"verified": "", "moved": f" [stands in {found}]", "not_found": " [not found]"}[
        evidence.check
    ]
    quote = (
        evidence.quote
        if len(evidence.quote) <= _LONGEST_QUOTE
        else evidence.quote[:_LONGEST_QUOTE] + "…"
    )
    return wrap(f"{where}{flag}: “{quote}”", "        ", "      ↳ ")


def fired(code: FiredCode, source: str = "") -> None:
    """A code with its turns and reason, and the words and facts that a reading of it rests on."""
    circular = " (read from the score)" if code.independence == "from_score" else ""
    at = (
        f"turn{'s' if len(code.turns) > 1 else ''} {turns(code.turns)}"
        if code.turns
        else "no turn named"
    )
    say(wrap(f"{code.stage}  {at}: {code.why}{circular}{source}", "      ", f"  {code.code:<4}"))
    if code.quote is not None:
        say(quoted(code.quote))


def states(read: Mapping[str, str], unread: str = "") -> str:
    """What is known of codes that did not fire: `E2, E4: absent · E1, E3: not read`. `unread` says
    why those are not."""
    parts = []
    for state, words in _STATES.items():
        if codes := [code for code in sorted(read) if read[code] == state]:
            parts.append(
                f"{', '.join(codes)}: {words}"
                + (f" ({unread})" if unread and state == "not_read" else "")
            )
    return " · ".join(parts)


def promised(item: PlanItem, indent: int = 2) -> str:
    """A commitment of the plan in one line, with its fate and turns."""
    mark = {"kept": "✓", "broken": "✗", "dropped": "–"}[item.state]
    at = f" (turn{'s' if len(item.turns) > 1 else ''} {turns(item.turns)})" if item.turns else ""
    proof = (
        "" if item.quote is not None and item.quote.check != "not_found" else " [quote not found]"
    )
    head = f"{' ' * indent}{mark} {item.state:<8}"
    room = min(width(), 110) - len(f"{head}{at}{proof}")
    return f"{head}{fit(sanitize_line(item.commitment), max(room, 10))}{at}{proof}"


def _problems(card: ScoreCard) -> None:
    problems = [p for stage in card.stages.values() if stage.checks for p in stage.checks.problems]
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


class Row(NamedTuple):
    """One line of the table of several runs: cells and styles of what all runs have, around those
    of the stages."""

    head: list[str]
    stages: dict[str, tuple[str, str | None]]
    tail: list[str]
    bad: str | None
    """The style of the last cell."""


def row(card: ScoreCard) -> Row:
    """A scorecard's line."""
    unknown = ["?"] if {"cannot_tell", "not_read"} & set(card.codes_read.values()) else []
    codes = " ".join([*dict.fromkeys(c.code for c in card.codes), *unknown]) or "–"
    stages: dict[str, tuple[str, str | None]] = {
        name: (about(number(s.score), s.presumed), style_of(s.score))
        for name, s in card.stages.items()
    }
    # One range in full is enough for a row.
    kind: Standing = "open" if card.standing != "read" else "read"
    agentic = total_words(card.agentic, card.agentic_bounds, kind, card.presumed > 0, 2)
    overall = totals(card, 2, 1 if kind == "read" else 0)[1]
    quotes, found = card.quotes
    doubt = " ".join(
        [
            *([f"{found}/{quotes}"] if found < quotes else []),
            *([f"!{n}"] if (n := len(card.contradictions)) else []),
        ]
    )
    return Row(
        [card.run.id, card.run.task or "–", card.run.tier or "–"],
        stages,
        [agentic, number(card.task), overall, codes, doubt, card.status.ended],
        "bad" if card.status.ended in ("breach", "cut") else None,
    )


def rows(lines: Sequence[Row]) -> None:
    """The table of several runs, one row a run; its stages are those of the rubrics, the
    benchmark's before others."""
    stages = sorted(
        {name for line in lines for name in line.stages},
        key=lambda name: (name not in STAGES, name),
    )
    head = [
        "Run",
        "Task id",
        "Tier",
        *stages,
        "Agentic",
        "Task",
        "Overall",
        "Codes",
        "Doubt",
        "Ended",
    ]
    cells, styles = [], []
    for line in lines:
        drawn = [line.stages.get(name, ("", None)) for name in stages]
        cells.append([*line.head, *(text for text, _ in drawn), *line.tail])
        styles.append(
            [
                None,
                None,
                None,
                *(style for _, style in drawn),
                None,
                None,
                "bold",
                None,
                "bad",
                line.bad,
            ]
        )
    kept = [i for i in range(len(head)) if head[i] != "Doubt" or any(row[i] for row in cells)]
    spare = [
        kept.index(head.index(name)) for name in ("Tier", "Task id", "Ended", "Task", "Agentic")
    ]
    table(
        [head[i] for i in kept],
        [[row[i] for i in kept] for row in cells],
        right=range(3, 6 + len(stages)),
        flexible=0,
        spare=spare,
        styles=[[row[i] for i in kept] for row in styles],
    )
    say(wrap(UNITS, "   ", ""))
    if any("?" in line.tail[3].split() for line in lines):
        say("?  codes that nobody read, or that the judge could not tell")
