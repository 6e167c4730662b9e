"""The tabs beside a scorecard: the run's plan, its files, and the scorecard as JSON."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ..judge.card.view_parts import Target
from .styled_lines import StyledLine, StyledText, heading, line

if TYPE_CHECKING:
    from ..judge.card.scorecard import ScoreCard
    from ..trajectories.models import Run

_FENCE = re.compile(r"^\s*(```|~~~)")
_INLINE = re.compile(r"(\*\*[^*\n]+\*\*|`[^`\n]+`)")
_LONGEST_PLAN = 20_000
"""Lines of a plan that are shown."""


def plan_lines(run: Run) -> list[StyledLine]:
    """plan.md with styles for headings, lists, quotes, emphasis and code, and without links."""
    plan = run.plan
    if plan.text is None:
        image = " There is a plan.png." if plan.image_exists else ""
        return [line((f"No plan.md.{image}", "dim"))]
    origin = f"written in turn {plan.turn}" if plan.turn else "turn of writing unknown"
    image = "yes" if plan.image_exists else "no"
    head = f"plan.md from the {plan.source} · {origin} · plan.png: {image}"
    target = Target("evidence", "plan", (plan.turn,) if plan.turn else ())
    lines = [line((head, "dim"), target=target), line("")]
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


def _markdown(text: str) -> StyledLine:
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


def _inline(text: str) -> list[StyledText]:
    parts: list[StyledText] = []
    for piece in _INLINE.split(text):
        if piece.startswith("**") and len(piece) > 4:
            parts.append((piece[2:-2], "strong"))
        elif piece.startswith("`") and len(piece) > 2:
            parts.append((piece[1:-1], "literal"))
        elif piece:
            parts.append((piece, ""))
    return parts


_MAX_FILES = 5_000
"""Delivered files that are listed."""


def file_lines(run: Run) -> list[StyledLine]:
    """The run's own files and what it delivered, by case."""
    lines = [line((str(run.path), "dim"), indent=2), line("")]
    folder = run.folder.absolute()
    report = run.report.path if run.report else None
    for path in (run.path, run.plan.path, run.plan.image_path, report):
        if path is None:
            continue
        full = path.absolute()
        inside = full.is_relative_to(folder)
        lines.append(line(str(full.relative_to(folder)) if inside else path.name))
    outputs = run.outputs
    lines += heading(f"Delivered: {len(outputs.files)} files, {len(outputs.cases)} cases")
    if outputs.root is None:
        lines.append(line(("no agents_outputs folder came with the run", "dim")))
    case: str | None = ""
    for file in outputs.files[:_MAX_FILES]:
        if file.case != case:
            case = file.case
            lines.append(line((case if case is not None else "(directly in the folder)", "id")))
        lines.append(line(f"  {file.name}", (f"  {size(file.size)}", "dim"), indent=4))
    if len(outputs.files) > _MAX_FILES:
        lines.append(line((f"… and {len(outputs.files) - _MAX_FILES:,} more", "dim")))
    return lines


def size(count: int) -> str:
    """Bytes for people: 999 B, 1.2 kB, 3.4 MB."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


def json_lines(card: ScoreCard) -> list[StyledLine]:
    """The scorecard as it is written to files."""
    data: dict[str, Any] = card.to_dict()
    return [
        line((text, "literal"), indent=len(text) - len(text.lstrip()) + 2)
        for text in json.dumps(data, indent=1, ensure_ascii=False).split("\n")
    ]
