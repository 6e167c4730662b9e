"""Two scorecards side by side, criterion by criterion; pure functions over scorecards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lines import Line, Part, Target, decimals, line, stop
from .run_rows import unknown_codes
from .scorecard_lines import about, evidence_target, sign, stage_head, stage_style, totals

if TYPE_CHECKING:
    from ..judge.card.scorecard import ScoreCard
    from ..judge.card.stage_results import CriterionResult
    from ..rubrics.model import Rubric


def _change(
    name: Part | str,
    before: float | None,
    after: float | None,
    words: tuple[str, str],
    digits: int = 2,
) -> list[Part | str]:
    """A value on both sides in words, and the difference where both are points and differ."""
    parts: list[Part | str] = [name, words[0], " → ", words[1]]
    if before is not None and after is not None and abs(after - before) >= 0.5 * 10**-digits:
        parts.append((f" {after - before:+.{digits}f}", "added" if after > before else "removed"))
    return parts


def difference_lines(
    left: ScoreCard,
    right: ScoreCard,
    rubric: Rubric | None,
    open_id: str = "",
    everything: bool = False,
) -> list[Line]:
    """Totals, stages, and the criteria and codes on which the two differ (`everything`: all of
    them)."""
    lines = [
        line(
            (f"{side:<7}", "dim"),
            f"{c.run.id} · {c.judge.name} · {c.rubric.id} {c.rubric.version}",
            indent=7,
        )
        for side, c in (("left", left), ("right", right))
    ]
    points = [
        (c.agentic, c.overall) if c.standing != "open" else (None, None) for c in (left, right)
    ]
    agentic, overall = zip(totals(left), totals(right), strict=True)
    lines += [
        line(""),
        line(
            *_change("Overall ", points[0][1], points[1][1], overall, 1),
            *_change("   Agentic ", points[0][0], points[1][0], agentic),
            *_change(
                "   Task ", left.task, right.task, (decimals(left.task), decimals(right.task))
            ),
        ),
    ]
    titles = {c.id: c.title for c in rubric.criteria()} if rubric else {}
    for name in dict.fromkeys([*left.stages, *right.stages]):
        sides = [side.stages.get(name) for side in (left, right)]
        before, after = (None if stage is None else stage.score for stage in sides)
        words = ["" if stage is None else about(stage.score, stage.presumed) for stage in sides]
        head = stage_head(name), stage_style(name)
        lines.append(line(*_change(head, before, after, (words[0], words[1]))))
        mine, theirs = (
            {c.id: c for c in (() if stage is None else stage.criteria)} for stage in sides
        )
        for id in dict.fromkeys([*mine, *theirs]):
            lines += _criterion(
                id, titles.get(id, ""), mine.get(id), theirs.get(id), open_id, everything
            )
    lines += _codes(left, right)
    return lines


def _criterion(
    id: str,
    title: str,
    a: CriterionResult | None,
    b: CriterionResult | None,
    open_id: str,
    everything: bool,
) -> list[Line]:
    same = a is not None and b is not None and a.value == b.value and a.status == b.status
    if same and not everything:
        return []
    signs = [sign(x) if x is not None else (" ", "dim") for x in (a, b)]
    target = Target("criterion", id, evidence_target(a).turns if a else (), ())
    mark: Part = (" " if same else "≠", "" if same else "warn")
    lines = [
        stop(
            target,
            mark,
            (f" {id} ", "id"),
            signs[0],
            (" → ", "dim"),
            signs[1],
            f" {title}",
            indent=9,
        )
    ]
    if id == open_id:
        for side, result in (("left", a), ("right", b)):
            words = (
                (result.rationale or result.detail or "no reason given")
                if result
                else "not in this rubric"
            )
            turns = (
                f" (turns {', '.join(str(e.turn) for e in result.evidence)})"
                if result and result.evidence
                else ""
            )
            lines.append(line((f"     {side}: ", "dim"), words, (turns, "link"), indent=7))
    return lines


def _codes(left: ScoreCard, right: ScoreCard) -> list[Line]:
    sets = [dict.fromkeys(code.code for code in card.codes) for card in (left, right)]
    unknown = [unknown_codes(card) for card in (left, right)]
    said = [
        " ".join([*fired, "?"] if open_ else fired) or "none"
        for fired, open_ in zip(sets, unknown, strict=True)
    ]
    lines = [line(""), line(("Error codes  ", "head"), said[0], (" → ", "dim"), said[1])]
    for card, at, side, other in ((left, 1, "left", "right"), (right, 0, "right", "left")):
        for number, code in enumerate(card.codes):
            if code.code not in sets[at]:
                unread = f" ({other}: not known)" if code.code in unknown[at] else ""
                target = Target("code", f"{side}.{number}", code.turns)
                words = f"only {side}{unread}, {code.stage}: "
                lines.append(
                    stop(target, (f" {code.code} ", "code"), (words, "dim"), code.why, indent=5)
                )
    return lines
