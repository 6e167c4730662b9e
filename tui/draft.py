"""Labels in the making: every single-key edit, and undo; no widget. What comes out is `judge.labels.Labels`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..judge.trust.human_labels import PAPER_CODES, LabelledCode, Labels, problems
from ..trajectories.stages import Stage
from .rows import unknown_codes

if TYPE_CHECKING:
    from ..judge.scorecard import ScoreCard
    from ..rubrics.model import Criterion, Rubric
    from ..trajectories.models import Run


@dataclass(frozen=True)
class _State:
    stages: dict[int, Stage] = field(default_factory=dict)
    criteria: dict[str, float | None] = field(default_factory=dict)
    evidence: dict[str, tuple[int, ...]] = field(default_factory=dict)
    codes: dict[str, LabelledCode] = field(default_factory=dict)
    notes: str = ""


class Draft:
    """One annotator's labels of one run while they are made. Each edit can be undone."""

    def __init__(self, run: Run, rubric: Rubric, annotator: str, begun: Labels | None = None) -> None:
        """Begins from earlier labels; else with the credits of the run's tier, which are rules and not judgements."""
        self.run, self.rubric, self.annotator = run, rubric, annotator
        if begun is not None:
            state = _State(
                dict(begun.stages), dict(begun.criteria), dict(begun.evidence), dict(begun.codes), begun.notes
            )
        else:
            given: dict[str, float | None] = {c.id: 1 for c in rubric.criteria() if run.tier in c.credit}
            given |= {c.id: None for c in rubric.criteria() if c.tiers is not None and run.tier not in c.tiers}
            state = _State(criteria=given, evidence={id: () for id, value in given.items() if value is not None})
        self._state = self._saved = state
        self._past: list[_State] = []

    # What is said so far.

    @property
    def stages(self) -> dict[int, Stage]:
        return self._state.stages

    @property
    def criteria(self) -> dict[str, float | None]:
        """Values said so far; None where the item does not apply, absent where nothing is said."""
        return self._state.criteria

    @property
    def evidence(self) -> dict[str, tuple[int, ...]]:
        return self._state.evidence

    @property
    def codes(self) -> dict[str, LabelledCode]:
        return self._state.codes

    @property
    def notes(self) -> str:
        return self._state.notes

    @property
    def changed(self) -> bool:
        """Whether anything differs from what was last saved."""
        return self._state != self._saved

    @property
    def missing(self) -> tuple[int, int]:
        """Turns without a stage, and criteria without a value."""
        turns = len(self.run.turns) - len(self.stages)
        return turns, sum(c.id not in self.criteria for c in self.rubric.criteria())

    def labels(self) -> Labels:
        """The labels as they stand; whole numbers are written as such."""
        criteria = {
            id: value if value is None else int(value) if value == int(value) else value
            for id, value in self.criteria.items()
        }
        evidence = {id: self.evidence.get(id, ()) for id in criteria}
        return Labels(
            run=self.run.id, annotator=self.annotator, stages=self.stages, criteria=criteria, evidence=evidence,
            codes=self.codes, notes=self.notes,
        )  # fmt: skip

    def problems(self) -> list[str]:
        """What is missing or contradicts run or rubric."""
        return problems(self.labels(), self.run, self.rubric)

    def saved(self) -> None:
        """What stands now is kept somewhere."""
        self._saved = self._state

    # Edits.

    def _edit(self, state: _State) -> None:
        if state != self._state:
            self._past.append(self._state)
            self._state = state

    def undo(self) -> bool:
        """Take back the last edit; False when there is none."""
        if not self._past:
            return False
        self._state = self._past.pop()
        return True

    def set_stage(self, turn: int, stage: Stage) -> None:
        """Say the stage of a turn; nothing for turns that the run does not have."""
        if 1 <= turn <= len(self.run.turns):
            self._edit(replace(self._state, stages={**self.stages, turn: stage}))

    def fill_stages(self, turn: int) -> Stage | None:
        """Give a turn the stage of the last one before it that has one; None when there is none."""
        before = [t for t in self.stages if t < turn]
        if not before:
            return None
        stage = self.stages[max(before)]
        self.set_stage(turn, stage)
        return stage

    def set_value(self, id: str, value: float | None) -> None:
        """Say a criterion's value; None: it does not apply."""
        self._edit(replace(self._state, criteria={**self.criteria, id: value}))

    def step_value(self, id: str, step: int) -> None:
        """The next higher (1) or lower (-1) level of a criterion; the highest or lowest when nothing is said yet."""
        levels = sorted(self._criterion(id).values)
        now = self.criteria.get(id)
        if now is None or now not in levels:
            self.set_value(id, levels[-1 if step > 0 else 0])
        else:
            self.set_value(id, levels[min(max(0, levels.index(now) + step), len(levels) - 1)])

    def may_not_apply(self, id: str) -> bool:
        """Whether the rubric lets an item be left out."""
        criterion = self._criterion(id)
        return criterion.conditional is not None or criterion.tiers is not None

    def toggle_evidence(self, id: str, turn: int) -> None:
        """Cite a turn for a criterion, or take it back."""
        turns = set(self.evidence.get(id, ())) ^ {turn}
        self._edit(replace(self._state, evidence={**self.evidence, id: tuple(sorted(turns))}))

    def toggle_code(self, code: str, turn: int) -> bool:
        """Fire an error code on a turn, or take that back; a code without turns is gone. True when it fires now."""
        if code not in PAPER_CODES:
            raise ValueError(code)
        codes = dict(self.codes)
        old = codes.pop(code, LabelledCode(turns=(), why=""))
        turns = tuple(sorted(set(old.turns) ^ {turn}))
        if turns:
            codes[code] = LabelledCode(turns=turns, why=old.why)
        self._edit(replace(self._state, codes=dict(sorted(codes.items()))))
        return turn in turns

    def set_why(self, code: str, why: str) -> None:
        """The reason of a fired code, in a sentence."""
        if code in self.codes:
            said = LabelledCode(turns=self.codes[code].turns, why=why.strip())
            self._edit(replace(self._state, codes={**self.codes, code: said}))

    def set_notes(self, notes: str) -> None:
        self._edit(replace(self._state, notes=notes.strip()))

    def _criterion(self, id: str) -> Criterion:
        return next(c for c in self.rubric.criteria() if c.id == id)


@dataclass(frozen=True)
class Agreement:
    """How labels and a scorecard agree on one run: equal items of those that both have, and where they differ."""

    criteria: tuple[int, int]
    stages: tuple[int, int]
    codes: tuple[frozenset[str], frozenset[str]]
    """Codes that only the labels have though the scorecard knows of them, and that only the scorecard has."""
    differences: tuple[tuple[str, float | None, float | None], ...]
    """(criterion, labelled, judged)."""


def agree(labels: Labels, card: ScoreCard) -> Agreement:
    """Compare labels with a scorecard of the same run. Criteria that either leaves out, unscored or presumed do not count."""
    judged = {c.id: c.judged for stage in card.stages.values() for c in stage.criteria}
    both = [
        (id, value, judged[id])
        for id, value in sorted(labels.criteria.items())
        if value is not None and judged.get(id) is not None
    ]
    differing = tuple((id, mine, theirs) for id, mine, theirs in both if mine != theirs)
    turns = [
        (stage, card.turn_stages[turn - 1]) for turn, stage in labels.stages.items() if turn <= len(card.turn_stages)
    ]
    fired = {code.code for code in card.codes if code.taxonomy == "paper"}
    told = fired | set(PAPER_CODES) - set(unknown_codes(card))  # what was not read differs from nothing
    mine_only, theirs_only = frozenset(set(labels.codes) & told - fired), frozenset(fired - set(labels.codes))
    return Agreement(
        (len(both) - len(differing), len(both)), (sum(a == b for a, b in turns), len(turns)), (mine_only, theirs_only), differing
    )  # fmt: skip
