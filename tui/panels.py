"""What stands in the side panel: lines with styles and targets, built from a scorecard or a run; no widget."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..trajectories.stages import STAGE_NAMES, STAGES, Stage
from .table import decimals, grade

if TYPE_CHECKING:
    from ..judge.scorecard import CriterionResult, Evidence, FiredCode, ScoreCard, StageChecks
    from ..rubrics.model import Criterion, Rubric
    from ..trajectories.models import Run

Part = tuple[str, str]
"""Text and the name of its style ("" for plain)."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a line leads to. `turns` are where it is to be seen, `quotes` the words to look for in each of them."""

    kind: Literal["stage", "criterion", "evidence", "code", "contradiction", "episode", "plan"]
    id: str
    turns: tuple[int, ...] = ()
    quotes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A line before it is wrapped. A `selectable` one is a stop of the cursor; `indent` is that of its further rows."""

    parts: tuple[Part, ...]
    target: Target | None = None
    selectable: bool = False
    indent: int = 0


def line(*parts: Part | str, indent: int = 0) -> Line:
    """A line that leads nowhere."""
    return Line(tuple((part, "") if isinstance(part, str) else part for part in parts), indent=indent)


def numbers(turns: Sequence[int]) -> str:
    """1-3, 5 for [1, 2, 3, 5]; 0 is the plan."""
    parts: list[list[int]] = []
    for n in sorted(set(turns)):
        if parts and n == parts[-1][-1] + 1:
            parts[-1].append(n)
        else:
            parts.append([n])
    words = [str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts]
    return ", ".join("plan" if word == "0" else word for word in words)


def bar(score: float | None, width: int = 8) -> str:
    """A score in [0, 1] as a bar of eighths of a cell; points where it is unknown."""
    if score is None:
        return "·" * width
    full, rest = divmod(round(score * width * 8), 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(width, "·")


def sign(result: CriterionResult) -> Part:
    """A sign and its style: ✓ met, ✗ not met, ½ and such partly, + credited, – does not apply, ? unscored; ~ before it:
    presumed, nobody read it."""
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


def about(score: float | None, presumed: int, digits: int = 2) -> str:
    """A score in figures, ~ before it where it rests on criteria that nobody read."""
    return ("~" if presumed and score is not None else "") + decimals(score, digits)


def evidence_target(result: CriterionResult) -> Target:
    """A criterion with the turns and quotes that its value rests on; a moved quote where it really stands."""
    items = [(_place(e), e.quote) for e in result.evidence]
    return Target("criterion", result.id, tuple(t for t, _ in items), tuple(q for _, q in items))


def scorecard_lines(card: ScoreCard, rubric: Rubric | None, open_id: str = "", blind: bool = False) -> list[Line]:
    """The scorecard: totals, stages with their criteria, codes, the plan's commitments, contradictions, failed steps.

    The criterion or code named by `open_id` is shown with its reasons; `blind` hides every value and reason.
    """
    if blind:
        return _blind_lines(card, rubric, open_id)
    texts = {c.id: c for c in rubric.criteria()} if rubric else {}
    labelled = "" if card.stages_from == "rules" else f" · stages by {_LABELLED[card.stages_from]}"
    said = f"{card.rubric.id} {card.rubric.version} · {card.judge.name}{labelled}"
    lines = [_totals(card), line((said, "dim")), line("")]
    for name in STAGES:
        lines += _stage_lines(card, name, texts, open_id)
    lines += [*_code_lines(card, open_id), *_plan_lines(card)]
    if card.contradictions:
        lines += [line(""), line(("Contradicted by facts", "head"))]
        for number, item in enumerate(card.contradictions):
            target = Target("contradiction", f"!{number}", item.turns)
            lines.append(Line((("! ", "bad"), (f"{item.criterion}: {item.fact}", "")), target, True, 2))
    if card.episodes:
        lines += [line(""), line(("Failed steps", "head"))]
        for number, step in enumerate(card.episodes):
            end = f"worked in turn {step.resolved_at}" if step.resolved_at is not None else "never worked"
            turns = step.turns + ((step.resolved_at,) if step.resolved_at is not None else ())
            words = f"{step.stage} turn {numbers(step.turns)}: {step.cause} ({step.attempts}×, {end})"
            mark = ("✓ ", "good") if step.resolved_at is not None else ("✗ ", "bad")
            lines.append(Line((mark, (words, "")), Target("episode", f"x{number}", turns), True, 2))
    if card.warnings:
        lines += [
            line(""),
            line(("Warnings", "head")),
            *(line(("- ", "dim"), text, indent=2) for text in card.warnings),
        ]
    return lines


_LABELLED = {"judge": "the judge", "mixed": "rules and judge"}


def _totals(card: ScoreCard) -> Line:
    overall = None if card.overall is None else card.overall / 100
    spread = card.overall_bounds[1] - card.overall_bounds[0] > 0.005
    bounds = f" [{card.overall_bounds[0]:.1f}–{card.overall_bounds[1]:.1f}]" if spread else ""
    return line(
        ("Agentic ", "dim"), (about(card.agentic, card.presumed), grade(card.agentic)),
        ("  Task ", "dim"), (decimals(card.task), grade(card.task)),
        ("  Overall ", "dim"), (about(card.overall, card.presumed, 1), grade(overall)), (bounds, "dim"),
    )  # fmt: skip


def _stage_lines(card: ScoreCard, name: Stage, texts: dict[str, Criterion], open_id: str) -> list[Line]:
    stage = card.stages[name]
    low, high = stage.bounds
    bounds = f" {low:.2f}–{high:.2f}" if high - low > 0.005 else ""
    failure = f" {stage.failure}" if stage.failure else ""
    head: tuple[Part, ...] = (
        (f"{name} {STAGE_NAMES[name]:<9} ", name.lower()), (bar(stage.score), grade(stage.score)),
        (f" {about(stage.score, stage.presumed)}", grade(stage.score)), (bounds, "dim"), (failure, "code"),
    )  # fmt: skip
    turns = tuple(i for i, s in enumerate(card.turn_stages, 1) if s == name)
    lines = [Line(head, Target("stage", name, turns[:1]), False, 3)]
    if stage.method == "policy":
        lines.append(line(("   0 by the breach policy", "warn")))
    if stage.cap is not None:
        lines.append(line((f"   at most {stage.cap:g}: {stage.cap_reason}", "warn"), indent=5))
    for result in stage.criteria:
        title = texts[result.id].title if result.id in texts else ""
        mark, style = sign(result)
        cited = f" {len(result.evidence)}★" if result.evidence else ""
        doubt = sum(e.check != "verified" for e in result.evidence)
        parts: tuple[Part, ...] = (
            (f"{mark:>2} ", style), (f"{result.id} ", "id"), (title, ""), (cited, "dim"), (" ≠" if doubt else "", "bad")
        )  # fmt: skip
        lines.append(Line(parts, evidence_target(result), True, 7))
        if result.id == open_id:
            lines += _reasons(result, texts.get(result.id))
    if stage.checks is not None:
        lines += _check_lines(stage.checks)
    return lines


def _reasons(result: CriterionResult, criterion: Criterion | None) -> list[Line]:
    """Why a criterion has its value, and every piece of evidence as a line that leads to it."""
    lines = []
    if result.value is not None and result.status in ("scored", "presumed"):
        level = next((x.text for x in criterion.scale if x.value == result.value), "") if criterion else ""
        lines.append(line((f"     {result.value:g}", "head"), (f" {level}", "dim"), indent=5))
    state = f"{result.status.replace('_', ' ')}{f' ({result.reason})' if result.reason else ''}: "
    words = result.rationale or result.detail
    lines.append(
        line(
            ("     ", ""), (state if result.status != "scored" else "", "unknown"), words or "no reason given", indent=5
        )
    )
    lines += [_evidence_line(item, f"{result.id}#{number}") for number, item in enumerate(result.evidence)]
    for vote in result.votes:
        value = "unscored" if vote.value is None else f"{vote.value:g}"
        lines.append(line((f"     {vote.judge}: {value}{f' ({vote.reason})' if vote.reason else ''}", "dim"), indent=7))
    return lines


def _place(item: Evidence) -> int:
    """The turn in which the words really stand, as far as is known."""
    return item.found_turn if item.check == "moved" and item.found_turn is not None else item.turn


def _evidence_line(item: Evidence, id: str) -> Line:
    """A quote with its check, as a line that leads to it."""
    note = {"verified": "", "moved": f" (stands in turn {item.found_turn})", "not_found": " (not found there)"}[
        item.check
    ]
    where = "plan" if item.turn == 0 else f"turn {item.turn}"
    quote = item.quote if len(item.quote) <= 200 else item.quote[:200] + "…"
    struck = "" if item.check == "verified" else "bad"
    return Line(
        (("   ↳ ", "dim"), (where, "link"), (note, "bad"), (f" “{quote}”" if quote else "", struck or "quote")),
        Target("evidence", id, (_place(item),), (item.quote,)), False, 5,
    )  # fmt: skip


def _check_lines(checks: StageChecks) -> list[Line]:
    lines = []
    if checks.completion is not None:
        cases = "" if checks.complete_cases is None else f" ({checks.complete_cases} of {checks.expected_cases} cases)"
        lines.append(line(("   completion ", "dim"), (f"{checks.completion:.2f}", grade(checks.completion)), cases))
    for name, value in (("format valid", checks.format_valid), ("valid results", checks.has_valid_results), ("model call found", checks.model_call_found)):  # fmt: skip
        if value is not None:
            lines.append(line((" ✓ " if value else " ✗ ", "good" if value else "bad"), name))
    for name, rate in (("parse rate", checks.parse_rate), ("placeholders", checks.placeholder_rate)):
        if rate is not None:
            lines.append(line((f"   {name} ", "dim"), f"{rate:.2f}"))
    lines += [line((f"   {cap}", "warn"), indent=5) for cap in checks.caps]
    lines += [line((" ✗ ", "bad"), problem, indent=3) for problem in checks.problems]
    if checks.source:
        lines.append(line((f"   read from the {checks.source}", "dim")))
    return lines


_STATES = {"absent": "absent", "cannot_tell": "cannot tell", "not_read": "not read"}


def code_target(code: FiredCode, number: int, mark: str = "") -> Target:
    """Where a code leads to: its turns, with the quoted words in the one that holds them. `number` is its place among the
    scorecard's codes; `mark` sets apart those that did not fire."""
    place = _place(code.quote) if code.quote is not None else None
    quotes = tuple(code.quote.quote if code.quote is not None and turn == place else "" for turn in code.turns)
    return Target("code", f"{mark}{code.code}.{number}", code.turns, quotes)


def _code_lines(card: ScoreCard, open_id: str) -> list[Line]:
    primary = f" (primary {card.primary_failure})" if card.primary_failure else ""
    lines = [line(""), line(("Error codes", "head"), (primary, "dim"))]
    if not card.codes:
        lines.append(line(("   none fired", "dim")))
    for number, code in enumerate(card.codes):
        lines += _code(code, code_target(code, number), open_id)
    for state, words in _STATES.items():
        if codes := [code for code in sorted(card.codes_read) if card.codes_read[code] == state]:
            lines.append(line((f" {', '.join(codes)}: ", "dim"), (words, "dim" if state == "absent" else "unknown")))
    if card.unproven:
        lines.append(line(("Readings without proof ", "head"), ("(did not fire)", "dim")))
        for number, code in enumerate(card.unproven):
            lines += _code(code, code_target(code, number, "?"), open_id, "unknown")
    return lines


def _code(code: FiredCode, target: Target, open_id: str, style: str = "code") -> list[Line]:
    """A code as a stop of the cursor; what it rests on where it is open."""
    where = f"turn {numbers(code.turns)}" if code.turns else "no single turn"
    lines = [Line(((f" {code.code} ", style), (f"{code.stage} {where}: ", "dim"), (code.why, "")), target, True, 4)]
    if target.id != open_id:
        return lines
    kind = code.independence.replace("_", " ")
    lines.append(
        line((f"    {code.by} · {kind} · confidence {code.confidence:.2f} · {code.taxonomy}", "dim"), indent=4)
    )
    if code.quote is not None:
        lines.append(_evidence_line(code.quote, f"{target.id}#quote"))
    if code.facts:
        lines.append(line(("    facts of the record: ", "dim"), ", ".join(code.facts), indent=4))
    return lines


def _plan_lines(card: ScoreCard) -> list[Line]:
    """What the plan promised and what became of it, as read."""
    if not card.plan:
        return []
    marks: dict[str, Part] = {"kept": ("✓ ", "good"), "broken": ("✗ ", "bad"), "dropped": ("– ", "warn")}
    lines = [line(""), line(("What the plan promised", "head"))]
    for number, item in enumerate(card.plan):
        place = _place(item.quote) if item.quote is not None else None
        words = item.quote.quote if item.quote is not None else ""
        turns = item.turns or ((place,) if place is not None else ())
        where = f" {item.state}, turn {numbers(item.turns)}" if item.turns else f" {item.state}"
        doubt = " ≠" if item.quote is None or item.quote.check == "not_found" else ""
        target = Target("plan", f"p{number}", turns, tuple(words if turn == place else "" for turn in turns))
        lines.append(Line((marks[item.state], (item.commitment, ""), (where, "dim"), (doubt, "bad")), target, True, 2))
    return lines


def _blind_lines(card: ScoreCard, rubric: Rubric | None, open_id: str) -> list[Line]:
    lines = [line(("Verdicts are hidden until you have judged", "warn"), indent=0), line("")]
    for criterion in rubric.criteria() if rubric else ():
        target = Target("criterion", criterion.id)
        lines.append(Line(((f" {criterion.id} ", "id"), (criterion.title, "")), target, True, 5))
        if criterion.id == open_id:
            lines += criterion_lines(criterion)
    return lines


def criterion_lines(criterion: Criterion) -> list[Line]:
    """What a criterion asks, and its levels."""
    lines = [line(("     ", ""), criterion.text, indent=5)]
    lines += [line((f"     {level.value:g} ", "head"), (level.text, "dim"), indent=7) for level in criterion.scale]
    return lines


# Plan, files, JSON.

_FENCE = re.compile(r"^\s*(```|~~~)")
_INLINE = re.compile(r"(\*\*[^*\n]+\*\*|`[^`\n]+`)")
_LONGEST_PLAN = 20_000
"""Lines of a plan that are shown."""


def plan_lines(run: Run) -> list[Line]:
    """plan.md with headings, lists, quotes, emphasis and code told apart; nothing in it becomes a link."""
    plan = run.plan
    if plan.text is None:
        image = " There is a plan.png." if plan.image_exists else ""
        return [line((f"No plan.md.{image}", "dim"))]
    where = f"written in turn {plan.turn}" if plan.turn else "turn of writing unknown"
    head = f"plan.md from the {plan.source} · {where} · plan.png: {'yes' if plan.image_exists else 'no'}"
    lines = [Line(((head, "dim"),), Target("evidence", "plan", (plan.turn,) if plan.turn else ())), line("")]
    fenced = False
    for text in plan.text.split("\n")[:_LONGEST_PLAN]:
        if _FENCE.match(text):
            fenced = not fenced
            lines.append(line((text, "dim")))
        elif fenced:
            lines.append(line((f"  {text}", "literal"), indent=2))
        else:
            lines.append(_markdown(text))
    return lines


def _markdown(text: str) -> Line:
    stripped = text.lstrip()
    indent = len(text) - len(stripped)
    if stripped.startswith("#"):
        return line((stripped.lstrip("#").strip(), "head"))
    if stripped.startswith(("- ", "* ", "+ ")):
        return line((" " * indent + "• ", "id"), *_inline(stripped[2:]), indent=indent + 2)
    if stripped.startswith(">"):
        return line((" " * indent + "▏", "dim"), (stripped[1:].strip(), "quote"), indent=indent + 1)
    if stripped.startswith("|"):
        return line((text, "literal"))
    return line(" " * indent, *_inline(stripped), indent=indent)


def _inline(text: str) -> list[Part]:
    parts: list[Part] = []
    for piece in _INLINE.split(text):
        if piece.startswith("**") and len(piece) > 4:
            parts.append((piece[2:-2], "strong"))
        elif piece.startswith("`") and len(piece) > 2:
            parts.append((piece[1:-1], "literal"))
        elif piece:
            parts.append((piece, ""))
    return parts


_MOST_FILES = 5_000


def file_lines(run: Run) -> list[Line]:
    """The run's own files and what it delivered, by case."""
    lines = [line((str(run.path), "dim"), indent=2), line("")]
    for path in (run.path, run.plan.path, run.plan.image_path, run.report.path if run.report else None):
        if path is not None:
            full, folder = path.absolute(), run.folder.absolute()
            lines.append(line(str(full.relative_to(folder)) if full.is_relative_to(folder) else path.name))
    outputs = run.outputs
    lines += [line(""), line((f"Delivered: {len(outputs.files)} files, {len(outputs.cases)} cases", "head"))]
    if outputs.root is None:
        lines.append(line(("no agents_outputs folder came with the run", "dim")))
    case: str | None = ""
    for file in outputs.files[:_MOST_FILES]:
        if file.case != case:
            case = file.case
            lines.append(line((case if case is not None else "(directly in the folder)", "id")))
        lines.append(line(f"  {file.name}", (f"  {size(file.size)}", "dim"), indent=4))
    if len(outputs.files) > _MOST_FILES:
        lines.append(line((f"… and {len(outputs.files) - _MOST_FILES:,} more", "dim")))
    return lines


def size(count: int) -> str:
    """Bytes for people: 999 B, 1.2 kB, 3.4 MB."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


def json_lines(card: ScoreCard) -> list[Line]:
    """The scorecard as it is written to files."""
    data: dict[str, Any] = card.to_dict()
    return [
        line((text, "literal"), indent=len(text) - len(text.lstrip()) + 2)
        for text in json.dumps(data, indent=1, ensure_ascii=False).split("\n")
    ]
