"""A scorecard in the side panel: every verdict leads to the words that it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..judge.card.view import scorecard_view
from ..judge.card.view_parts import Item, Part, Quote, Section, Target, bar, grade, value_text
from ..trajectories.stages import STAGE_NAMES
from .styled_lines import StyledLine, StyledText, heading, item_line, line

if TYPE_CHECKING:
    from ..judge.card.scorecard import ScoreCard
    from ..rubrics.model import Criterion, Rubric


def stage_head(name: str) -> str:
    """A stage's name in a column; a group of a user's own rubric by its name alone."""
    return f"{name} {STAGE_NAMES[name]:<9} " if name in STAGE_NAMES else f"{name:<12} "


def stage_style(name: str) -> str:
    """The style of a stage's name."""
    return name.lower() if name in STAGE_NAMES else "head"


def scorecard_lines(card: ScoreCard, rubric: Rubric | None, open_id: str = "") -> list[StyledLine]:
    """The scorecard from its totals down to its warnings.

    The criterion, code or promise named by `open_id` is shown with its reason and evidence.
    """
    sections = scorecard_view(card, rubric)
    # The run itself stands in the title of the screen: its totals come first here.
    sections.sort(key=lambda section: section.kind != "totals")
    return [line for section in sections for line in _section_lines(section, open_id)]


def _section_lines(view: Section, open_id: str) -> Iterator[StyledLine]:
    if view.kind == "stage":
        yield _stage_line(view)
    elif view.kind == "run":
        yield from (line("  ", *_parts(text.parts), indent=2) for text in view.lines)
        yield line("")
        return
    elif view.kind != "totals":
        yield from heading(view.title, "".join(part.text for part in view.head))
    # Beneath a stage's name, which begins with its tag, everything is set in.
    margin = "   " if view.kind == "stage" else ""
    for text in view.lines:
        yield line(margin, *_parts(text.parts), indent=len(margin) + 2)
    for item in view.items:
        yield from _item_lines(item, open_id)
    for text in view.notes:
        yield line(" ", *_parts(text.parts), indent=4)


def _stage_line(view: Section) -> StyledLine:
    score = view.score.score if view.score is not None else None
    return line(
        (stage_head(view.key), stage_style(view.key)),
        (bar(score), grade(score)),
        " ",
        *_parts(view.head),
        target=view.target,
        indent=3,
    )


def _item_lines(item: Item, open_id: str) -> Iterator[StyledLine]:
    """An item as a stop of the cursor, with its details where it is open."""
    if item.target is None:
        yield line(" ", *_parts(item.head), indent=4)
        return
    presumed = item.mark is not None and item.mark.text.startswith("~")
    # The mark of a presumed criterion is one cell wider than the others.
    margin = "" if presumed else " "
    yield item_line(item.target, margin, *_parts(item.head), indent=4)
    if item.id != open_id:
        return
    number = 0
    for detail in item.details:
        quote = next((part for part in detail.parts if isinstance(part, Quote)), None)
        if quote is not None:
            yield _quote_line(quote, f"{item.id}#{number}")
            number += 1
        elif detail.role != "asks":
            yield line("     ", *_parts(detail.parts), indent=5)


def _quote_line(quote: Quote, id: str) -> StyledLine:
    """A quote with its check, as a line that leads to its turn."""
    evidence = quote.evidence
    return line(
        ("   ↳ ", "dim"),
        (quote.location, "link"),
        (f" ({quote.doubt})" if quote.doubt else "", "bad"),
        (f": “{quote.words}”" if quote.words else "", quote.style),
        target=Target("evidence", id, (evidence.actual_turn,), (evidence.quote,)),
        indent=5,
    )


def _parts(parts: Sequence[Part]) -> list[StyledText]:
    return [(part.text, part.style) for part in parts]


def criterion_lines(criterion: Criterion) -> list[StyledLine]:
    """What a criterion asks, and its levels."""
    lines = [line("     ", criterion.text, indent=5)]
    for level in criterion.scale:
        value = (f"     {value_text(level.value)} ", "head")
        lines.append(line(value, (level.text, "dim"), indent=7))
    return lines
