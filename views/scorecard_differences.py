"""Two scorecards side by side, criterion by criterion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..judge.card.view import criterion_mark, criterion_target, totals
from ..judge.card.view_parts import Target, score_text, turn_ranges
from .run_rows import unknown_codes
from .scorecard_panel import stage_head, stage_style
from .styled_lines import StyledLine, StyledText, item_line, line

if TYPE_CHECKING:
    from ..judge.card.scorecard import ScoreCard
    from ..judge.card.stage_results import CriterionResult
    from ..rubrics.model import Rubric


def difference_lines(
    left: ScoreCard,
    right: ScoreCard,
    rubric: Rubric | None,
    open_id: str = "",
    everything: bool = False,
) -> list[StyledLine]:
    """Totals, stages, and the criteria and codes in which the two scorecards differ.

    `everything` lists all criteria; the one named by `open_id` is shown with both reasons.
    """
    lines = [
        line(
            (f"{side:<7}", "dim"),
            f"{card.run.id} · {card.judge.name} · {card.rubric.id} {card.rubric.version}",
            indent=7,
        )
        for side, card in (("left", left), ("right", right))
    ]
    lines += [line(""), _totals_line(left, right)]
    titles = {criterion.id: criterion.title for criterion in rubric.criteria()} if rubric else {}
    for name in dict.fromkeys([*left.stages, *right.stages]):
        lines.append(_stage_line(name, left, right))
        left_results, right_results = _results_by_id(left, name), _results_by_id(right, name)
        for id in dict.fromkeys([*left_results, *right_results]):
            pair = left_results.get(id), right_results.get(id)
            if everything or _differ(*pair):
                lines += _criterion_lines(id, titles.get(id, ""), *pair, is_open=id == open_id)
    lines += _code_lines(left, right)
    return lines


def _totals_line(left: ScoreCard, right: ScoreCard) -> StyledLine:
    left_agentic, left_overall = totals(left)
    right_agentic, right_overall = totals(right)
    # A difference is shown only where both sides have a point score.
    points = [
        (card.overall, card.agentic) if card.standing != "open" else (None, None)
        for card in (left, right)
    ]
    (left_overall_point, left_agentic_point), (right_overall_point, right_agentic_point) = points
    return line(
        "Overall ",
        *_change(left_overall, right_overall, left_overall_point, right_overall_point, digits=1),
        "   Agentic ",
        *_change(left_agentic, right_agentic, left_agentic_point, right_agentic_point),
        "   Task ",
        *_change(score_text(left.task), score_text(right.task), left.task, right.task),
    )


def _change(
    left_text: str, right_text: str, left: float | None, right: float | None, digits: int = 2
) -> Iterator[StyledText | str]:
    """A value on both sides, and the difference where both are points and differ as shown."""
    yield f"{left_text} → {right_text}"
    if left is None or right is None:
        return
    difference = right - left
    if abs(difference) >= 0.5 * 10**-digits:
        yield f" {difference:+.{digits}f}", "added" if difference > 0 else "removed"


def _stage_line(name: str, left: ScoreCard, right: ScoreCard) -> StyledLine:
    scores: list[float | None] = []
    texts: list[str] = []
    for card in (left, right):
        stage = card.stages.get(name)
        scores.append(None if stage is None else stage.score)
        texts.append("" if stage is None else score_text(stage.score, stage.presumed))
    head = (stage_head(name), stage_style(name))
    return line(head, *_change(texts[0], texts[1], scores[0], scores[1]))


def _results_by_id(card: ScoreCard, stage: str) -> dict[str, CriterionResult]:
    if stage not in card.stages:
        return {}
    return {result.id: result for result in card.stages[stage].criteria}


def _differ(left: CriterionResult | None, right: CriterionResult | None) -> bool:
    if left is None or right is None:
        return True
    return (left.value, left.status) != (right.value, right.status)


def _criterion_lines(
    id: str,
    title: str,
    left: CriterionResult | None,
    right: CriterionResult | None,
    *,
    is_open: bool,
) -> Iterator[StyledLine]:
    differ = _differ(left, right)
    yield item_line(
        Target("criterion", id, criterion_target(left).turns if left else ()),
        ("≠" if differ else " ", "warn" if differ else ""),
        (f" {id} ", "id"),
        _mark(left),
        (" → ", "dim"),
        _mark(right),
        f" {title}",
        indent=9,
    )
    if is_open:
        for side, result in (("left", left), ("right", right)):
            yield _reason_line(side, result)


def _mark(result: CriterionResult | None) -> StyledText:
    if result is None:
        return " ", "dim"
    mark = criterion_mark(result)
    return mark.text, mark.style


def _reason_line(side: str, result: CriterionResult | None) -> StyledLine:
    label = (f"     {side}: ", "dim")
    if result is None:
        return line(label, "not in this rubric", indent=7)
    reason = result.rationale or result.detail or "no reason given"
    turns = [evidence.turn for evidence in result.evidence]
    cited = f" (turns {turn_ranges(turns)})" if turns else ""
    return line(label, reason, (cited, "link"), indent=7)


def _code_lines(left: ScoreCard, right: ScoreCard) -> Iterator[StyledLine]:
    yield line("")
    head = ("Error codes  ", "head")
    yield line(head, _codes_text(left), (" → ", "dim"), _codes_text(right))
    yield from _codes_of_one_side(left, "left", right, "right")
    yield from _codes_of_one_side(right, "right", left, "left")


def _fired_codes(card: ScoreCard) -> Sequence[str]:
    return list(dict.fromkeys(code.code for code in card.codes))


def _codes_text(card: ScoreCard) -> str:
    codes = [*_fired_codes(card), *(["?"] if unknown_codes(card) else [])]
    return " ".join(codes) or "none"


def _codes_of_one_side(
    card: ScoreCard, side: str, other: ScoreCard, other_side: str
) -> Iterator[StyledLine]:
    """The codes of a scorecard that did not fire on the other one."""
    other_codes, unknown = _fired_codes(other), unknown_codes(other)
    for number, code in enumerate(card.codes):
        if code.code in other_codes:
            continue
        unread = f" ({other_side}: not known)" if code.code in unknown else ""
        yield item_line(
            Target("code", f"{side}.{number}", code.turns),
            (f" {code.code} ", "code"),
            (f"only {side}{unread}, {code.stage}: ", "dim"),
            code.why,
            indent=5,
        )
