"""A scorecard as HTML for notebooks. Everything of the run is escaped: transcripts are hostile."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from ...sanitize import sanitize_line
from ...trajectories.stages import stage_title
from .read_share import total_words

if TYPE_CHECKING:
    from .fields import ScoreCardFields
    from .stage_results import CriterionResult, StageResult

_LONGEST = 300


def card_html(card: ScoreCardFields) -> str:
    """Totals, stages with their criteria, and fired codes; reasons and quotes open on a click."""
    run = card.run
    who = " · ".join(str(part) for part in (run.task, run.track, run.tier, run.agent) if part)
    by = f"rubric {card.rubric.id} {card.rubric.version} · judge {card.judge.name}"
    how, mark = card.standing, card.presumed > 0
    agentic = total_words(card.agentic, card.agentic_bounds, how, mark, 2)
    overall = total_words(card.overall, card.overall_bounds, how, mark, 1)
    totals = f"Agentic {agentic} · Task {_number(card.task)} · Overall {overall}"
    rows = [_row("th", ("Stage", "Score", "Bounds", "Criteria"))]
    rows += [_stage(name, stage) for name, stage in card.stages.items()]
    codes = [
        f"<li><b>{_text(code.code)}</b> {_text(code.stage)}, turns"
        f" {', '.join(map(str, code.turns)) or '–'}: {_text(code.why)}</li>"
        for code in card.codes
    ]
    unknown = sorted(
        code for code, state in card.codes_read.items() if state in ("cannot_tell", "not_read")
    )
    said = f"<p>Codes not known: {_text(', '.join(unknown))}</p>" if unknown else ""
    listed = f"<ul>{''.join(codes)}</ul>" if codes else ""
    return (
        f"<div><p><b>{_text(run.id)}</b> {_text(who)}<br>{_text(by)}<br>{_text(totals)}</p>"
        f"<table>{''.join(rows)}</table>{listed}{said}</div>"
    )


def _stage(name: str, stage: StageResult) -> str:
    low, high = stage.bounds
    presumed = "~" if stage.presumed else ""
    items = "".join(map(_criterion, stage.criteria))
    cells = (
        _text(stage_title(name)),
        presumed + _number(stage.score),
        f"{low:.2f}–{high:.2f}",
        items,
    )
    return _row("td", cells)


def _criterion(result: CriterionResult) -> str:
    value = result.status.replace("_", " ") if result.value is None else f"{result.value:g}"
    presumed = "~" if result.status == "presumed" else ""
    quotes = "".join(
        f"<br>turn {e.turn}{'' if e.check == 'verified' else f' ({_text(e.check)})'}:"
        f" <q>{_text(e.quote)}</q>"
        for e in result.evidence
    )
    why = _text(result.rationale or result.detail or result.reason or "no reason given")
    return (
        f"<details><summary>{_text(result.id)}:"
        f" {presumed}{_text(value)}</summary>{why}{quotes}</details>"
    )


def _row(kind: str, cells: Iterable[str]) -> str:
    return (
        "<tr>"
        + "".join(f'<{kind} style="text-align:left">{cell}</{kind}>' for cell in cells)
        + "</tr>"
    )


def _text(text: str) -> str:
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return escape(sanitize_line(short))


def _number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
