"""A scorecard as HTML for notebooks. Everything of the run is escaped: transcripts are hostile."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ...sanitize import sanitize_line
from .fields import ScoreCardFields
from .view import scorecard_view
from .view_parts import Bounds, Item, Line, Part, Section

_LONGEST = 300
"""Characters of one text that are shown."""
_COLOURS = {"good": "#1a7f37", "warn": "#9a6700", "bad": "#cf222e", "code": "#8250df"}


def card_html(card: ScoreCardFields) -> str:
    """Totals, a table of stages with their criteria, codes and what else the scorecard has.

    Reasons and quotes open on a click.
    """
    sections = scorecard_view(card)
    stages = [section for section in sections if section.kind == "stage"]
    blocks = []
    for section in sections:
        if section.kind in ("run", "totals"):
            heading = f"<b>{_text(section.title)}</b><br>" if section.kind == "run" else ""
            blocks.append(f"<p>{heading}{'<br>'.join(map(_line, section.lines))}</p>")
            if section.kind == "totals":
                blocks.append(_stage_table(stages))
        elif section.kind != "stage":
            blocks.append(_section(section))
    return f"<div>{''.join(blocks)}</div>"


def _stage_table(stages: Iterable[Section]) -> str:
    rows = [_row("th", ("Stage", "Score", "Bounds", "Criteria"))]
    for stage in stages:
        score = [part for part in stage.head if not isinstance(part, Bounds)]
        bounds = [part for part in stage.head if isinstance(part, Bounds)]
        details = [f"<div>{_line(line)}</div>" for line in stage.lines]
        details += [_item(item) for item in stage.items]
        rows.append(
            _row("td", (_text(stage.title), _parts(score), _parts(bounds), "".join(details)))
        )
    return f"<table>{''.join(rows)}</table>"


def _section(section: Section) -> str:
    head = f"<b>{_text(section.title)}</b>{_parts(section.head)}"
    content = [f"<div>{_line(line)}</div>" for line in section.lines]
    content += [_item(item) for item in section.items]
    content += [f"<div>{_line(line)}</div>" for line in section.notes]
    return f"<div><p>{head}</p>{''.join(content)}</div>"


def _item(item: Item) -> str:
    head = _parts(item.head)
    if not item.details:
        return f"<div>{head}</div>"
    details = "<br>".join(map(_line, item.details))
    return f"<details><summary>{head}</summary>{details}</details>"


def _line(line: Line) -> str:
    return _parts(line.parts)


def _parts(parts: Iterable[Part]) -> str:
    return "".join(map(_part, parts))


def _part(part: Part) -> str:
    text = _text(part.text)
    colour = _COLOURS.get(part.style)
    return f'<span style="color:{colour}">{text}</span>' if colour else text


def _row(tag: str, cells: Iterable[str]) -> str:
    columns = (f'<{tag} style="text-align:left">{cell}</{tag}>' for cell in cells)
    return f"<tr>{''.join(columns)}</tr>"


def _text(text: str) -> str:
    shortened = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return escape(sanitize_line(shortened))
