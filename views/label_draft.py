"""Labels in the making: every single-key edit, and undo; no widget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..error_codes.paper_codes import CODES
from ..judge.trust.human_labels import Drawn, LabelledCode, Labels, problems
from ..trajectories.stages import Stage

if TYPE_CHECKING:
    from ..rubrics.model import Criterion, Rubric
    from ..trajectories.models import Run


class Draft:
    """One annotator's labels of one run while they are made. Each edit can be undone."""

    def __init__(
        self,
        run: Run,
        rubric: Rubric,
        annotator: str,
        begun: Labels | None = None,
        drawn: Drawn | None = None,
    ) -> None:
        """Begins from earlier labels; else with the credits of the run's tier, which are rules and
        not judgements.

        `drawn`: how the run was drawn, if it was and the labels do not say so.
        """
        self.run, self.rubric = run, rubric
        drawn = begun.drawn or drawn if begun is not None else drawn
        if begun is None or not begun.begun:
            given: dict[str, float | None] = {
                c.id: 1 for c in rubric.criteria() if run.tier in c.credit
            }
            given |= {
                c.id: None
                for c in rubric.criteria()
                if c.tiers is not None and run.tier not in c.tiers
            }
            begun = begun or Labels(run=run.id, annotator=annotator)
            begun = begun.model_copy(update={"criteria": given})
        self.now = self._saved = begun.model_copy(update={"drawn": drawn})
        """What is said so far: a criterion is None where it does not apply, absent where nothing is
        said."""
        self._past: list[Labels] = []

    @property
    def changed(self) -> bool:
        """Whether anything differs from what was last saved."""
        return self.now != self._saved

    @property
    def missing(self) -> tuple[int, int]:
        """Turns without a stage, and criteria without a value."""
        turns = len(self.run.turns) - len(self.now.stages)
        return turns, sum(c.id not in self.now.criteria for c in self.rubric.criteria())

    def labels(self) -> Labels:
        """The labels as they are kept: evidence for each criterion that has a value, and for no
        other."""
        evidence = {id: self.now.evidence.get(id, ()) for id in self.now.criteria}
        return self.now.model_copy(update={"evidence": evidence, "codes": self.now.codes})

    def problems(self) -> list[str]:
        """What is missing or contradicts run or rubric."""
        return problems(self.labels(), self.run, self.rubric)

    def saved(self) -> None:
        """What stands now is kept somewhere."""
        self._saved = self.now

    # Edits.

    def _edit(self, **changes: Any) -> None:
        new = self.now.model_copy(update=changes)
        if new != self.now:
            self._past.append(self.now)
            self.now = new

    def undo(self) -> bool:
        """Take back the last edit; False when there is none."""
        if not self._past:
            return False
        self.now = self._past.pop()
        return True

    def set_stage(self, turn: int, stage: Stage) -> None:
        """Say the stage of a turn; nothing for turns that the run does not have."""
        if 1 <= turn <= len(self.run.turns):
            self._edit(stages={**self.now.stages, turn: stage})

    def stage_before(self, turn: int) -> Stage | None:
        """The stage of the last turn before this one that has one."""
        return self.now.stages.get(max((t for t in self.now.stages if t < turn), default=0))

    def set_value(self, id: str, value: float | None) -> None:
        """Say a criterion's value; None: it does not apply. Whole numbers are written as such."""
        if value is not None and value == int(value):
            value = int(value)
        self._edit(criteria={**self.now.criteria, id: value})

    def step_value(self, id: str, step: int) -> None:
        """The next higher (1) or lower (-1) level of a criterion; the highest or lowest when
        nothing is said yet."""
        levels = sorted(self._criterion(id).values)
        now = self.now.criteria.get(id)
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
        turns = set(self.now.evidence.get(id, ())) ^ {turn}
        self._edit(evidence={**self.now.evidence, id: tuple(sorted(turns))})

    def toggle_code(self, code: str, turn: int) -> bool:
        """Fire an error code on a turn, or take that back; a code without turns is gone. True when
        it fires now."""
        if code not in CODES:
            raise ValueError(code)
        codes = dict(self.now.codes)
        old = codes.pop(code, LabelledCode(turns=(), why=""))
        turns = tuple(sorted(set(old.turns) ^ {turn}))
        if turns:
            codes[code] = LabelledCode(turns=turns, why=old.why)
        self._edit(codes=dict(sorted(codes.items())))
        return turn in turns

    def set_why(self, code: str, why: str) -> None:
        """The reason of a fired code, in a sentence."""
        if code in self.now.codes:
            said = LabelledCode(turns=self.now.codes[code].turns, why=why.strip())
            self._edit(codes={**self.now.codes, code: said})

    def set_notes(self, notes: str) -> None:
        self._edit(notes=notes.strip())

    def _criterion(self, id: str) -> Criterion:
        return next(c for c in self.rubric.criteria() if c.id == id)
