"""Labels in the making: every single-key edit, and undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..error_codes.paper_codes import CODES
from ..judge.trust.human_labels import (
    LabelledCode,
    Labels,
    Sampling,
    problems,
    unlabelled,
    value_by_tier,
)
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
        earlier: Labels | None = None,
        drawn: Sampling | None = None,
    ) -> None:
        """Start from earlier labels, or from what the run's tier decides without a judgement.

        `drawn`: how the run was sampled for labelling, where the earlier labels do not say so.
        """
        self.run, self.rubric = run, rubric
        labels = earlier or Labels(run=run.id, annotator=annotator)
        if not labels.has_labels:
            labels = labels.model_copy(update={"criteria": _decided_by_tier(run, rubric)})
        labels = labels.model_copy(update={"drawn": labels.drawn or drawn})
        self.now = self._saved = labels
        """The labels so far: a criterion is None where it does not apply, absent if not labelled.
        """
        self._past: list[Labels] = []

    @property
    def changed(self) -> bool:
        """Whether anything differs from what was last saved."""
        return self.now != self._saved

    @property
    def missing(self) -> tuple[int, int]:
        """Turns without a stage, and criteria without a value."""
        turns = len(self.run.turns) - len(self.now.stages)
        criteria = sum(item.id not in self.now.criteria for item in self.rubric.criteria())
        return turns, criteria

    def labels(self) -> Labels:
        """The labels as they are stored: evidence for each criterion with a value, and no other."""
        evidence = {id: self.now.evidence.get(id, ()) for id in self.now.criteria}
        return self.now.model_copy(update={"evidence": evidence, "codes": self.now.codes})

    def problems(self) -> list[str]:
        """What contradicts run or rubric, and what is not labelled yet."""
        labels = self.labels()
        contradictions = problems(labels, self.run, self.rubric)
        return contradictions + unlabelled(labels, self.run, self.rubric)

    def saved(self) -> None:
        """Note that the present labels have been stored."""
        self._saved = self.now

    # Edits.

    def _edit(self, **changes: Any) -> None:
        edited = self.now.model_copy(update=changes)
        if edited != self.now:
            self._past.append(self.now)
            self.now = edited

    def undo(self) -> bool:
        """Take back the last edit; False if there is none."""
        if not self._past:
            return False
        self.now = self._past.pop()
        return True

    def set_stage(self, turn: int, stage: Stage) -> None:
        """Label the stage of a turn; turns that the run does not have are ignored."""
        if 1 <= turn <= len(self.run.turns):
            self._edit(stages={**self.now.stages, turn: stage})

    def stage_before(self, turn: int) -> Stage | None:
        """The stage of the nearest earlier turn that has one."""
        earlier = [labelled for labelled in self.now.stages if labelled < turn]
        return self.now.stages[max(earlier)] if earlier else None

    def set_value(self, id: str, value: float | None) -> None:
        """Label a criterion; None: it does not apply. Integral values are stored as integers."""
        if value is not None and value == int(value):
            value = int(value)
        self._edit(criteria={**self.now.criteria, id: value})

    def step_value(self, id: str, step: int) -> None:
        """Go to the next higher (1) or lower (-1) level of a criterion.

        An unlabelled criterion gets its highest or lowest level.
        """
        levels = sorted(self._criterion(id).values)
        value = self.now.criteria.get(id)
        if value is None or value not in levels:
            self.set_value(id, levels[-1 if step > 0 else 0])
            return
        place = levels.index(value) + step
        self.set_value(id, levels[min(max(0, place), len(levels) - 1)])

    def may_not_apply(self, id: str) -> bool:
        """Whether the rubric lets a criterion be left out."""
        criterion = self._criterion(id)
        return criterion.conditional is not None or criterion.tiers is not None

    def toggle_evidence(self, id: str, turn: int) -> None:
        """Cite a turn for a criterion, or take it back."""
        turns = set(self.now.evidence.get(id, ())) ^ {turn}
        self._edit(evidence={**self.now.evidence, id: tuple(sorted(turns))})

    def toggle_code(self, code: str, turn: int) -> bool:
        """Fire an error code on a turn, or take that back. True if it fires now.

        A code without turns no longer fires. ValueError for an unknown code.
        """
        if code not in CODES:
            raise ValueError(code)
        codes = dict(self.now.codes)
        earlier = codes.pop(code, LabelledCode(turns=(), why=""))
        turns = tuple(sorted(set(earlier.turns) ^ {turn}))
        if turns:
            codes[code] = LabelledCode(turns=turns, why=earlier.why)
        self._edit(codes=dict(sorted(codes.items())))
        return turn in turns

    def set_reason(self, code: str, reason: str) -> None:
        """Give the reason of a fired code, in a sentence."""
        if code in self.now.codes:
            labelled = LabelledCode(turns=self.now.codes[code].turns, why=reason.strip())
            self._edit(codes={**self.now.codes, code: labelled})

    def set_notes(self, notes: str) -> None:
        """Replace the notes on the run."""
        self._edit(notes=notes.strip())

    def _criterion(self, id: str) -> Criterion:
        return next(criterion for criterion in self.rubric.criteria() if criterion.id == id)


def _decided_by_tier(run: Run, rubric: Rubric) -> dict[str, float | None]:
    """Values that the tier decides: 1 where it credits a criterion, None where none applies."""
    values: dict[str, float | None] = {}
    for criterion in rubric.criteria():
        by_tier, value = value_by_tier(criterion, run.tier)
        if by_tier:
            values[criterion.id] = value
    return values
