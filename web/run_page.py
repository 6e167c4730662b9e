"""What the page of one run says: its scorecard, its transcript with verdicts beside the turns, its
facts and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..trajectories.stages import STAGE_NAMES, Stage
from ..views.collection import stages_of
from ..views.lines import numbers
from ..views.run_lines import size
from ..views.scorecard_lines import not_fired, sign
from .transcript import Citation, Limits, TurnView, turns_of

if TYPE_CHECKING:
    from ..error_codes.models import FiredCode
    from ..judge.card.scorecard import ScoreCard
    from ..judge.card.stage_results import CriterionResult
    from ..rubrics.model import Criterion, Rubric
    from ..trajectories.models import Run
    from ..trajectories.record.quotes import Evidence

LIMITS = (
    Limits(400, 1600, 190_000, 1200),
    Limits(250, 900, 90_000, 400),
    Limits(60, 200, 30_000, 120),
)
"""Tried in order until a page is small enough."""
MOST_FILES = 200
MOST_ITEMS = 40
"""Criteria of a stage, codes, promises, steps, warnings that a page lists; a scorecard of ours has
fewer."""
MOST_EVIDENCE = 8
"""Quotes of one criterion."""


@dataclass(frozen=True)
class Item:
    """A criterion of the scorecard with its place on the page, and where its evidence stands."""

    place: str
    result: CriterionResult
    mark: str
    style: str
    title: str
    asks: str
    level: str
    evidence: tuple[tuple[Evidence, Citation], ...]


@dataclass(frozen=True)
class CodeItem:
    """A fired code, or a reading without proof, with its place and its citations by turn."""

    place: str
    code: FiredCode
    evidence: tuple[Citation, ...]


@dataclass(frozen=True)
class Band:
    """Turns of one stage that follow each other, as the minimap draws them."""

    stage: Stage | None
    turns: tuple[TurnView, ...]


class Contents:
    """Everything that the template of a run's page asks for."""

    def __init__(self, card: ScoreCard, rubric: Rubric | None, limits: Limits) -> None:
        self.card, self.limits = card, limits
        self.citations: list[Citation] = []
        self.criteria: dict[str, list[Item]] = {}
        asked = {c.id: c for c in rubric.criteria()} if rubric else {}
        place = 0
        for stage in sorted(card.stages):
            results = card.stages[stage].criteria
            self.criteria[stage] = [
                self._item(f"c{place + n}", result, asked.get(result.id))
                for n, result in enumerate(results[:MOST_ITEMS])
            ]
            place += len(results)
        self.codes = [
            self._code(f"e{n}", code, True) for n, code in enumerate(card.codes[:MOST_ITEMS])
        ]
        self.unproven = [
            self._code(f"u{n}", code, False) for n, code in enumerate(card.unproven[:MOST_ITEMS])
        ]
        self.plan = [
            (
                item,
                self._cite(
                    item.quote,
                    {"kept": "✓", "broken": "✗", "dropped": "–"}[item.state],
                    "plan",
                    "plan",
                    item.commitment,
                    f"p{n}",
                ),
            )
            for n, item in enumerate(card.plan[:MOST_ITEMS])
        ]
        self.turns: list[TurnView] = []
        self.shown: frozenset[int] = frozenset()
        """Numbers of the turns on the page."""
        self.facts = card.facts[:MOST_ITEMS]
        self.files: list[tuple[str, str]] = []
        self.more_files = 0
        self.note = "The transcript did not come with this scorecard: its turns cannot be shown."
        self.run: Run | None = None

    def read(self, run: Run) -> None:
        """Adds what the run's own files hold."""
        self.run, self.note = run, ""
        self.turns = turns_of(run, stages_of(run, self.card), self.citations, self.limits)
        self.shown = frozenset(view.number for view in self.turns)
        files = run.outputs.files
        self.files = [
            ("/".join((f.case, f.name) if f.case else (f.name,)), size(f.size))
            for f in files[:MOST_FILES]
        ]
        self.more_files = len(files) - len(self.files)

    @property
    def bands(self) -> Iterator[Band]:
        """The turns by stage, for the minimap."""
        group: list[TurnView] = []
        for view in self.turns:
            if view.number and group and view.stage != group[-1].stage:
                yield Band(group[0].stage, tuple(group))
                group = []
            if view.number:
                group.append(view)
        if group:
            yield Band(group[0].stage, tuple(group))

    @property
    def readings(self) -> Iterator[tuple[str, str]]:
        """Codes that did not fire, by what is known of them."""
        return not_fired(self.card)

    @property
    def steps(self) -> Iterator[tuple[bool, str, int]]:
        """Failed steps: whether they worked in the end, in words, their first turn."""
        for step in self.card.episodes[:MOST_ITEMS]:
            end = (
                f"worked in turn {step.resolved_at}"
                if step.resolved_at is not None
                else "never worked"
            )
            words = (
                f"{step.cause} ({step.attempts}×, turn {numbers(step.turns[:MOST_ITEMS])}; {end})"
            )
            yield step.resolved_at is not None, words, step.first_turn

    @property
    def fact_ids(self) -> frozenset[str]:
        """What codes may name and the page shows."""
        return frozenset(fact.id for fact in self.facts)

    @property
    def fact_sources(self) -> str:
        """How many facts come from where."""
        counts = Counter(fact.source for fact in self.facts)
        return ", ".join(
            f"{count} from {_SOURCES[source]}" for source, count in counts.most_common()
        )

    def _item(self, place: str, result: CriterionResult, asked: Criterion | None) -> Item:
        mark, style = sign(result)
        title = asked.title if asked else self.card.rubric.titles.get(result.id, "")
        says = result.rationale or result.detail
        evidence = tuple(
            (e, self._cite(e, mark, style, result.id, title or says, place))
            for e in result.evidence[:MOST_EVIDENCE]
        )
        level = next((x.text for x in asked.scale if x.value == result.value), "") if asked else ""
        return Item(place, result, mark, style, title, asked.text if asked else "", level, evidence)

    def _code(self, place: str, code: FiredCode, fired: bool) -> CodeItem:
        """A code beside all its turns, its quote in the one that holds it."""
        style, mark = ("code", "!") if fired else ("unknown", "?")
        at = (
            None
            if code.quote is None or code.quote.check == "not_found"
            else code.quote.actual_turn
        )
        turns = dict.fromkeys([*code.turns[:MOST_EVIDENCE], *([] if at is None else [at])])
        words = code.quote.quote if code.quote is not None else ""
        cites = tuple(
            Citation(t, words if t == at else "", mark, style, code.code, code.why, place)
            for t in turns
        )
        self.citations += cites
        return CodeItem(place, code, cites)

    def _cite(
        self, evidence: Evidence | None, mark: str, style: str, name: str, says: str, place: str
    ) -> Citation:
        turn = -1 if evidence is None else evidence.actual_turn
        quote = evidence.quote if evidence is not None and evidence.check != "not_found" else ""
        citation = Citation(turn, quote, mark, style, name, says, place)
        self.citations.append(citation)
        return citation


_SOURCES = {
    "file": "delivered files",
    "exit": "exit codes",
    "harness": "the harness",
    "trace": "the trace",
}


def heading(card: ScoreCard) -> list[str]:
    """Under the run's name: what it is, and who judged it."""
    run = card.run
    parts = [
        run.agent,
        run.model if run.model != run.agent else None,
        run.task,
        run.track,
        run.tier,
    ]
    parts.append(f"repeat {run.repeat}" if run.repeat is not None else None)
    return [part for part in parts if part]


def globals_of() -> dict[str, Any]:
    """What templates may call."""
    from ..views.lines import decimals, grade
    from ..views.scorecard_lines import about, totals

    return {
        "decimals": decimals,
        "grade": grade,
        "about": about,
        "totals": totals,
        "numbers": numbers,
        "STAGE_NAMES": STAGE_NAMES,
    }
