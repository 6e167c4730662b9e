"""The scorecard (`ambjudge.scorecard/1`) as JSON, in a notebook, and as a stored line."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ...rounding import fixed
from .fields import Gist, ScoreCardFields
from .scorecard_html import card_html


class ScoreCard(ScoreCardFields):
    """All results of judging one run: scores with bounds, verdicts with evidence, codes, checks.

    card = ambjudge.score("runs/elm-chest-1")
    print(card.overall, card.overall_bounds, card.stages["S1"].criteria[0].rationale)
    """

    def to_json(self) -> str:
        """One line of JSON, rounded (4 decimals, Overall 2)."""
        return self.model_dump_json()

    def to_dict(self) -> dict[str, Any]:
        """The JSON document as plain values."""
        return self.model_dump(mode="json")

    def __repr__(self) -> str:
        """One line."""
        agentic = _with_bounds(self.agentic, self.agentic_bounds, 2)
        overall = _with_bounds(self.overall, self.overall_bounds, 1)
        return (
            f"<ScoreCard {self.run.id}: Agentic {agentic}, Overall {overall},"
            f" rubric {self.rubric.id}, judge {self.judge.name}>"
        )

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """The scorecard in a notebook."""
        return card_html(self)


def _with_bounds(value: float | None, bounds: tuple[float, float], digits: int) -> str:
    point = "unknown" if value is None else fixed(value, digits)
    return f"{point} [{fixed(bounds[0], digits)}–{fixed(bounds[1], digits)}]"


class CardLine:
    """A scorecard as its line of JSON, parsed only if the card itself is needed."""

    def __init__(self, line: str, gist: Gist) -> None:
        self._line, self.gist = line, gist

    def to_json(self) -> str:
        return self._line

    @cached_property
    def card(self) -> ScoreCard:
        """ValueError if the line is not a scorecard."""
        return ScoreCard.model_validate_json(self._line)
