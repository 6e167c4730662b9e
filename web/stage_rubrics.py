"""What a board says of a stage: its formula, and its criteria in the rubrics that were used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..rubrics.conditions import conditions
from ..rubrics.model import Criterion, Rubric
from ..trajectories.stages import stage_title

COMPUTED = {
    "S4": (
        "S4 = 0.5 × completion + 0.5 × valid format. Completion is the share of the expected cases"
        " that have their output. Answers: the share of readable ones stands for the format, and S4"
        " has an upper limit of 0.2 if more than 5 % are placeholders, of 0.3 if no model was"
        " called, and of 0.5 if nearly all answers of a real model are wrong."
    ),
    "S5": (
        "S5 = 0.5 × valid results + 0.5 × valid format, each 0 or 1. Results are valid if something"
        " scored above zero; of answers and reports, if one of them is valid."
    ),
}
"""The formulas of the stages that are computed from the delivered files."""


@dataclass(frozen=True)
class UsedRubric:
    """A rubric that scorecards name."""

    id: str
    version: str
    text: Rubric | None
    """The rubric, if the site has it."""
    titles: Mapping[str, Mapping[str, str]]
    """Stage -> criterion -> title, as far as a scorecard has them."""
    is_exact: bool
    """Whether `text` is the very rubric that was used."""

    @property
    def title(self) -> str:
        name = f"{self.id} {self.version}".strip()
        return f"{name}: {self.text.title}" if self.text else name


@dataclass(frozen=True)
class CriterionText:
    id: str
    title: str
    text: str
    conditions: str
    """When and how much it counts; "" if always and like the others."""
    levels: tuple[tuple[str, str], ...]
    """Values of a scale that is not 1 or 0, with what earns each."""


@dataclass(frozen=True)
class StageInRubric:
    """A stage in one rubric."""

    rubric: str
    track: str
    """The track of the rubric; "" if it is of none, or not known."""
    formula: str
    note: str
    """What is not the very text that was used; "" if it is."""
    criteria: tuple[CriterionText, ...]


@dataclass(frozen=True)
class StageText:
    """A stage, or a group of criteria of a rubric of one's own."""

    name: str
    title: str
    rubrics: tuple[StageInRubric, ...]


def stage_texts(names: Iterable[str], rubrics: Iterable[UsedRubric]) -> list[StageText]:
    """The texts of these stages in the rubrics that have them."""
    used = list(rubrics)
    texts = []
    for name in names:
        parts = [part for rubric in used if (part := _stage_in_rubric(name, rubric)) is not None]
        texts.append(StageText(name, stage_title(name), tuple(parts)))
    return texts


def _stage_in_rubric(name: str, used: UsedRubric) -> StageInRubric | None:
    """A stage in a rubric; None if the rubric does not have it."""
    if used.text is None:
        titles = used.titles.get(name)
        if not titles:
            return None
        criteria = tuple(CriterionText(id, title, "", "", ()) for id, title in titles.items())
        note = "The site was made without its file (--rubric): these are titles of its criteria."
        return StageInRubric(used.title, "", "", note, criteria)
    stage = used.text.stages.get(name)
    if stage is None:
        return None
    note = ""
    if not used.is_exact:
        note = (
            f"The runs were judged by {used.id} {used.version} with another text; this is"
            f" {used.text.id} {used.text.version}."
        )
    weights = used.text.weights
    share = f"Weight {stage.weight:g} of {sum(weights.values()):g} in Agentic."
    formula = f"{_formula(name, stage.criteria)} {share}"
    criteria = tuple(_criterion_text(criterion) for criterion in stage.criteria)
    return StageInRubric(used.title, used.text.track or "", formula, note, criteria)


def _formula(name: str, criteria: tuple[Criterion, ...]) -> str:
    """How a stage adds up."""
    if not criteria:
        return COMPUTED.get(name, "Computed from the delivered files; nobody judges it.")
    if len(criteria) == 1:
        return f"{name} = the level of {criteria[0].id}."
    weights = [criterion.weight for criterion in criteria]
    terms = [_term(criterion) for criterion in criteria]
    text = f"{name} = ({' + '.join(terms)}) / {sum(weights):g}."
    if any(criterion.tiers is not None or criterion.conditional for criterion in criteria):
        text += " Criteria that do not apply to a run leave the sum and the divisor."
    if any(criterion.credit for criterion in criteria):
        text += " A credited criterion counts 1 in its tier."
    return text


def _term(criterion: Criterion) -> str:
    return criterion.id if criterion.weight == 1 else f"{criterion.weight:g} × {criterion.id}"


def _criterion_text(criterion: Criterion) -> CriterionText:
    texts = conditions(criterion)
    if criterion.conditional:
        texts.append(f"applies when: {criterion.conditional}")
    levels = () if criterion.binary else tuple((f"{x.value:g}", x.text) for x in criterion.scale)
    return CriterionText(criterion.id, criterion.title, criterion.text, "; ".join(texts), levels)


def agentic_formula(rubrics: Iterable[UsedRubric]) -> str:
    """Agentic as a sum of the stages, if all rubrics weigh them alike; "" if none is there."""
    weights = [tuple(used.text.weights.items()) for used in rubrics if used.text is not None]
    if not weights:
        return ""
    if len(set(weights)) > 1:
        return "A click on a stage gives its weight in each rubric."
    total = sum(weight for _, weight in weights[0])
    terms = [f"{weight / total:.2g} × {name}" for name, weight in weights[0]]
    return f"{' + '.join(terms)}. Unscored stages are left out and the others weigh more."
