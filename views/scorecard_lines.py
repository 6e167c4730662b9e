"""A scorecard as lines for the side panel: every verdict leads to the words that it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..judge.card.read_share import total_words
from ..trajectories.stages import STAGE_NAMES
from .lines import Line, Part, Target, bar, decimals, grade, line, numbers, section, stop

if TYPE_CHECKING:
    from ..error_codes.models import FiredCode
    from ..error_codes.output_facts import StageChecks
    from ..judge.card.scorecard import ScoreCard
    from ..judge.card.stage_results import CriterionResult
    from ..rubrics.model import Criterion, Rubric
    from ..trajectories.record.quotes import Evidence


def sign(result: CriterionResult) -> Part:
    """A sign and its style: ✓ met, ✗ not met, ½ and such partly, + credited, – does not apply, ?
    unscored; ~ before it: presumed, nobody read it."""
    if result.status == "credited":
        return "+", "good"
    if result.status == "not_applicable":
        return "–", "dim"
    if result.value is None:
        return "?", "unknown"
    if result.value >= 1:
        mark, style = "✓", "good"
    elif result.value <= 0:
        mark, style = "✗", "bad"
    else:
        mark, style = "½" if result.value == 0.5 else "◐", "warn"
    return (f"~{mark}", "unknown") if result.status == "presumed" else (mark, style)


def about(score: float | None, presumed: int) -> str:
    """A score in figures, ~ before it where it rests on criteria that nobody read."""
    return ("~" if presumed and score is not None else "") + decimals(score)


def stage_head(name: str) -> str:
    """A stage's name in a column; a group of a rubric of one's own by its name alone."""
    return f"{name} {STAGE_NAMES[name]:<9} " if name in STAGE_NAMES else f"{name:<12} "


def stage_style(name: str) -> str:
    """The style of a stage's name."""
    return name.lower() if name in STAGE_NAMES else "head"


def evidence_target(result: CriterionResult) -> Target:
    """A criterion with the turns and quotes that its value rests on; a moved quote where it really
    stands."""
    items = [(e.actual_turn, e.quote) for e in result.evidence]
    return Target("criterion", result.id, tuple(t for t, _ in items), tuple(q for _, q in items))


def scorecard_lines(card: ScoreCard, rubric: Rubric | None, open_id: str = "") -> list[Line]:
    """The scorecard: totals, stages with their criteria, codes, the plan's commitments,
    contradictions, failed steps.

    The criterion or code named by `open_id` is shown with its reasons.
    """
    texts = {c.id: c for c in rubric.criteria()} if rubric else {}
    labelled = "" if card.stages_from == "rules" else f" · stages by {_LABELLED[card.stages_from]}"
    said = f"{card.rubric.id} {card.rubric.version} · {card.judge.name}{labelled}"
    lines = [_totals(card), line((said, "dim")), line("")]
    for name in card.stages:
        lines += _stage_lines(card, name, texts, open_id)
    lines += [*_code_lines(card, open_id), *_plan_lines(card)]
    if card.contradictions:
        lines += section("Contradicted by facts")
        for number, item in enumerate(card.contradictions):
            target = Target("contradiction", f"!{number}", item.turns)
            lines.append(stop(target, ("! ", "bad"), f"{item.criterion}: {item.fact}", indent=2))
    if card.episodes:
        lines += section("Failed steps")
        for number, step in enumerate(card.episodes):
            end = (
                f"worked in turn {step.resolved_at}"
                if step.resolved_at is not None
                else "never worked"
            )
            turns = step.turns + ((step.resolved_at,) if step.resolved_at is not None else ())
            words = (
                f"{step.stage} turn {numbers(step.turns)}: {step.cause} ({step.attempts}×, {end})"
            )
            mark = ("✓ ", "good") if step.resolved_at is not None else ("✗ ", "bad")
            lines.append(stop(Target("episode", f"x{number}", turns), mark, words, indent=2))
    if card.warnings:
        lines += [
            *section("Warnings"),
            *(line(("- ", "dim"), text, indent=2) for text in card.warnings),
        ]
    return lines


_LABELLED = {"judge": "the judge", "mixed": "rules and judge"}


def _totals(card: ScoreCard) -> Line:
    point = card.standing != "open"
    overall = card.overall / 100 if card.overall is not None and point else None
    spread = card.overall_bounds[1] - card.overall_bounds[0] > 0.005
    told = card.standing == "read" or card.overall is None
    bounds = (
        f" [{card.overall_bounds[0]:.1f}–{card.overall_bounds[1]:.1f}]" if spread and told else ""
    )
    said = totals(card)
    return line(
        ("Agentic ", "dim"),
        (said[0], grade(card.agentic if point else None)),
        ("  Task ", "dim"),
        (decimals(card.task), grade(card.task)),
        ("  Overall ", "dim"),
        (said[1], grade(overall)),
        (bounds, "dim"),
    )


def totals(card: ScoreCard) -> tuple[str, str]:
    """Agentic and Overall: points, points on presumed criteria with their ranges, or ranges
    (`total_words`)."""
    kind, mark = card.standing, card.presumed > 0
    return (
        total_words(card.agentic, card.agentic_bounds, kind, mark, 2, decimals(None)),
        total_words(card.overall, card.overall_bounds, kind, mark, 1, decimals(None)),
    )


def _stage_lines(
    card: ScoreCard, name: str, texts: dict[str, Criterion], open_id: str
) -> list[Line]:
    stage = card.stages[name]
    low, high = stage.bounds
    bounds = f" {low:.2f}–{high:.2f}" if high - low > 0.005 else ""
    failure = f" {stage.failure}" if stage.failure else ""
    turns = tuple(i for i, s in enumerate(card.turn_stages, 1) if s == name)
    lines = [
        line(
            (stage_head(name), stage_style(name)),
            (bar(stage.score), grade(stage.score)),
            (f" {about(stage.score, stage.presumed)}", grade(stage.score)),
            (bounds, "dim"),
            (failure, "code"),
            target=Target("stage", name, turns[:1]),
            indent=3,
        )
    ]
    if stage.method == "policy":
        lines.append(line(("   0 by the breach policy", "warn")))
    if stage.cap is not None:
        lines.append(line((f"   at most {stage.cap:g}: {stage.cap_reason}", "warn"), indent=5))
    for result in stage.criteria:
        title = texts[result.id].title if result.id in texts else ""
        mark, style = sign(result)
        cited = f" {len(result.evidence)}★" if result.evidence else ""
        doubt = sum(e.check != "verified" for e in result.evidence)
        lines.append(
            stop(
                evidence_target(result),
                (f"{mark:>2} ", style),
                (f"{result.id} ", "id"),
                title,
                (cited, "dim"),
                (" ≠" if doubt else "", "bad"),
                indent=7,
            )
        )
        if result.id == open_id:
            lines += _reasons(result, texts.get(result.id))
    if stage.checks is not None:
        lines += _check_lines(stage.checks)
    return lines


def _reasons(result: CriterionResult, criterion: Criterion | None) -> list[Line]:
    """Why a criterion has its value, and every piece of evidence as a line that leads to it."""
    lines = []
    if result.value is not None and result.status in ("scored", "presumed"):
        level = (
            next((x.text for x in criterion.scale if x.value == result.value), "")
            if criterion
            else ""
        )
        lines.append(line((f"     {result.value:g}", "head"), (f" {level}", "dim"), indent=5))
    state = f"{result.status.replace('_', ' ')}{f' ({result.reason})' if result.reason else ''}: "
    state = state if result.status != "scored" else ""
    lines.append(
        line(
            "     ",
            (state, "unknown"),
            result.rationale or result.detail or "no reason given",
            indent=5,
        )
    )
    lines += [
        _evidence_line(item, f"{result.id}#{number}") for number, item in enumerate(result.evidence)
    ]
    for vote in result.votes:
        value = "unscored" if vote.value is None else f"{vote.value:g}"
        lines.append(
            line(
                (f"     {vote.judge}: {value}{f' ({vote.reason})' if vote.reason else ''}", "dim"),
                indent=7,
            )
        )
    return lines


def _evidence_line(item: Evidence, id: str) -> Line:
    """A quote with its check, as a line that leads to it."""
    notes = {
        "verified": "",
        "moved": f" (stands in turn {item.found_turn})",
        "not_found": " (not found there)",
    }
    where = "plan" if item.turn == 0 else f"turn {item.turn}"
    words = item.quote if len(item.quote) <= 200 else item.quote[:200] + "…"
    quote: Part = (f" “{words}”" if words else "", "quote" if item.check == "verified" else "bad")
    target = Target("evidence", id, (item.actual_turn,), (item.quote,))
    return line(
        ("   ↳ ", "dim"),
        (where, "link"),
        (notes[item.check], "bad"),
        quote,
        target=target,
        indent=5,
    )


def _check_lines(checks: StageChecks) -> list[Line]:
    lines = []
    if checks.completion is not None:
        cases = (
            ""
            if checks.complete_cases is None
            else f" ({checks.complete_cases} of {checks.expected_cases} cases)"
        )
        lines.append(
            line(
                ("   completion ", "dim"),
                (f"{checks.completion:.2f}", grade(checks.completion)),
                cases,
            )
        )
    for name, value in (
        ("format valid", checks.format_valid),
        ("valid results", checks.has_valid_results),
        ("model call found", checks.model_call_found),
    ):
        if value is not None:
            lines.append(line((" ✓ " if value else " ✗ ", "good" if value else "bad"), name))
    for name, rate in (
        ("parse rate", checks.parse_rate),
        ("placeholders", checks.placeholder_rate),
    ):
        if rate is not None:
            lines.append(line((f"   {name} ", "dim"), f"{rate:.2f}"))
    lines += [line((f"   {cap}", "warn"), indent=5) for cap in checks.caps]
    lines += [line((" ✗ ", "bad"), problem, indent=3) for problem in checks.problems]
    if checks.source:
        lines.append(line((f"   read from the {checks.source}", "dim")))
    return lines


def not_fired(card: ScoreCard) -> Iterator[tuple[str, str]]:
    """Codes that did not fire, by what is known of them, in words."""
    for state in ("absent", "cannot_tell", "not_read"):
        if codes := [code for code in sorted(card.codes_read) if card.codes_read[code] == state]:
            yield state.replace("_", " "), ", ".join(codes)


def code_target(code: FiredCode, number: int, mark: str = "") -> Target:
    """Where a code leads to: its turns, with the quoted words in the one that holds them. `number`
    is its place among the scorecard's codes; `mark` sets apart those that did not fire."""
    place = code.quote.actual_turn if code.quote is not None else None
    quotes = tuple(
        code.quote.quote if code.quote is not None and turn == place else "" for turn in code.turns
    )
    return Target("code", f"{mark}{code.code}.{number}", code.turns, quotes)


def _code_lines(card: ScoreCard, open_id: str) -> list[Line]:
    primary = f" (primary {card.primary_failure})" if card.primary_failure else ""
    lines = section("Error codes", primary)
    if not card.codes:
        lines.append(line(("   none fired", "dim")))
    for number, code in enumerate(card.codes):
        lines += _code(code, code_target(code, number), open_id)
    for words, codes in not_fired(card):
        lines.append(
            line((f" {codes}: ", "dim"), (words, "dim" if words == "absent" else "unknown"))
        )
    if card.unproven:
        lines.append(line(("Readings without proof ", "head"), ("(did not fire)", "dim")))
        for number, code in enumerate(card.unproven):
            lines += _code(code, code_target(code, number, "?"), open_id, "unknown")
    return lines


def _code(code: FiredCode, target: Target, open_id: str, style: str = "code") -> list[Line]:
    """A code as a stop of the cursor; what it rests on where it is open."""
    where = f"turn {numbers(code.turns)}" if code.turns else "no single turn"
    lines = [
        stop(
            target,
            (f" {code.code} ", style),
            (f"{code.stage} {where}: ", "dim"),
            code.why,
            indent=4,
        )
    ]
    if target.id != open_id:
        return lines
    kind = code.independence.replace("_", " ")
    origin = f"    {code.by} · {kind} · confidence {code.confidence:.2f} · {code.taxonomy}"
    lines.append(line((origin, "dim"), indent=4))
    if code.quote is not None:
        lines.append(_evidence_line(code.quote, f"{target.id}#quote"))
    if code.facts:
        lines.append(line(("    facts of the record: ", "dim"), ", ".join(code.facts), indent=4))
    return lines


def _plan_lines(card: ScoreCard) -> list[Line]:
    """What the plan promised and what became of it, as read."""
    if not card.plan:
        return []
    marks: dict[str, Part] = {
        "kept": ("✓ ", "good"),
        "broken": ("✗ ", "bad"),
        "dropped": ("– ", "warn"),
    }
    lines = section("What the plan promised")
    for number, item in enumerate(card.plan):
        place = item.quote.actual_turn if item.quote is not None else None
        words = item.quote.quote if item.quote is not None else ""
        turns = item.turns or ((place,) if place is not None else ())
        where = f" {item.state}, turn {numbers(item.turns)}" if item.turns else f" {item.state}"
        doubt = " ≠" if item.quote is None or item.quote.check == "not_found" else ""
        target = Target(
            "plan", f"p{number}", turns, tuple(words if turn == place else "" for turn in turns)
        )
        lines.append(
            stop(
                target, marks[item.state], item.commitment, (where, "dim"), (doubt, "bad"), indent=2
            )
        )
    return lines


def criterion_lines(criterion: Criterion) -> list[Line]:
    """What a criterion asks, and its levels."""
    lines = [line("     ", criterion.text, indent=5)]
    lines += [
        line((f"     {level.value:g} ", "head"), (level.text, "dim"), indent=7)
        for level in criterion.scale
    ]
    return lines
