"""What `import ambjudge` offers on many scorecards: the analysis commands as functions.

A `source` is what the commands take: a file of scorecards (.jsonl, .json), a frame (.parquet, .csv,
or a polars DataFrame), a folder of these, a store, a folder of runs (its scorecards in its store;
without one the rules judge scores the runs first), a list of any of them, or scorecards themselves.
One scorecard of each run counts. `run_filter` is one as in `--where`; `judged_by` and
`rubric` (ID, ID@VERSION or a YAML file) choose scorecards as the options of these names do;
`store` names the store of folders of runs, by default the one that belongs to each.
What cannot be read is a warning and stands in `problems` of the result. No settings file is read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import ConfigError, InputError

if TYPE_CHECKING:
    from .analysis.report.agreement_result import Agreement
    from .analysis.report.board_result import Leaderboard
    from .analysis.report.comparison_result import ComparisonResult
    from .analysis.report.power_result import LabelPlan, RunPlan
    from .analysis.report.results import Analysis
    from .analysis.tables.card_sources import CardReading, FolderState
    from .analysis.tables.cohorts import Cohort
    from .analysis.tables.label_tables import Labels
    from .judge.card.choice import CardChoice
    from .views.run_query import RunQuery

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Cards:
    """Which runs and scorecards of a source count, as a user names them."""

    run_filter: str | None
    judged_by: str | None
    rubric: str | Path | None
    store: str | Path | None

    def reading(self) -> CardReading:
        from .analysis.tables.card_sources import CardReading
        from .judge.card.choice import rubric_to_score_with
        from .judge.session import ScoreOptions

        reading = CardReading(ScoreOptions(rubric=rubric_to_score_with(self.rubric)))
        if self.store is not None:
            reading.store_of = lambda folder: self.store
        return reading

    def choice(self) -> CardChoice:
        from .judge.card.choice import choice_of

        return choice_of(self.judged_by, self.rubric)

    def query(self, source: Any) -> RunQuery | None:
        """The filter; it looks for runs below the folders of the source."""
        from .views.run_query import RunQuery

        return None if not self.run_filter else RunQuery(self.run_filter, _folders(source))

    def read(self, source: Any, choice: CardChoice | None = None) -> Cohort:
        """The scorecards that count, one for each run."""
        from .analysis.report.results import read

        reading = self.reading()
        cohort = read(
            source, reading=reading, choice=choice or self.choice(), run_filter=self.query(source)
        )
        _warn_of_unscored(reading.folders)
        return cohort


def leaderboard(
    source: Any,
    group_by: str = "agent",
    *,
    boards: str | Sequence[str] = ("overall", "track"),
    outcome: str = "overall",
    run_filter: str | None = None,
    judged_by: str | None = None,
    rubric: str | Path | None = None,
    store: str | Path | None = None,
) -> Leaderboard:
    """Rank agents, or what `group_by` names, with intervals and the ranks that stay possible.

        board = ambjudge.leaderboard("cards.jsonl", group_by="model", boards="overall")
        print(board.table.select("model", "value", "lo", "hi", "rank"))

    `group_by`: agent, model, agent+model, or a field of the runs. `boards`: overall, track, tier,
    task, task-tier. `outcome`: overall, agentic, task_score, S1 to S5, `group.NAME`, or an outcome
    that came with the runs. ConfigError for an unknown name.
    """
    from .analysis.report.board_result import rank
    from .analysis.tables.score_names import outcome_column

    names = (boards,) if isinstance(boards, str) else tuple(boards)
    cohort = _Cards(run_filter, judged_by, rubric, store).read(source)
    return rank(cohort, group_by, names, outcome_column(outcome))


def compare(
    first: Any,
    second: Any,
    source: Any = None,
    *,
    factor: str | None = None,
    outcome: str = "overall",
    margin: float | None = None,
    run_filter: str | None = None,
    judged_by: str | None = None,
    rubric: str | Path | None = None,
    store: str | Path | None = None,
) -> ComparisonResult:
    """The paired difference of two agents, judges or rubrics of a source, or of two sources.

        difference = ambjudge.compare("agent-ash", "agent-elm", "cards.jsonl", margin=5)
        print(difference.verdict, *difference.sentences)

    With `source`, the first two are names in its scorecards, and `factor` says of what (agent,
    model, agent+model, judge, rubric or a field of the runs) where that is ambiguous. Without, they
    are two sources, such as the runs of two releases. `margin`: test whether they differ by less,
    in units of the outcome. ConfigError for an unknown outcome or a margin off its scale;
    InputError for unknown names.
    """
    from .analysis.report.comparison_result import (
        choice_for_names,
        compare_cohorts,
        compare_names,
        side_names,
    )
    from .analysis.tables.score_names import outcome_column

    cards = _Cards(run_filter, judged_by, rubric, store)
    column = outcome_column(outcome)
    if source is not None:
        cohort = cards.read(source, choice_for_names(cards.choice(), factor))
        names = (str(first), str(second))
        return compare_names(cohort, names, by=factor, outcome=column, margin=margin)
    for place in (first, second):
        _check_place(place)
    places = side_names((_place(first, "first"), _place(second, "second")))
    sides = cards.read(first), cards.read(second)
    return compare_cohorts(*sides, places, by=factor, outcome=column, margin=margin)


def agreement(
    source: Any = None,
    labels: Labels | str | Path | None = None,
    *,
    annotator: str | None = None,
    against: str | None = None,
    run_filter: str | None = None,
    judged_by: str | None = None,
    rubric: str | Path | None = None,
    store: str | Path | None = None,
) -> Agreement:
    """How far a judge agrees with people, judges with one another, or two annotators.

        checked = ambjudge.agreement("cards.jsonl", labels="labels/")
        print(checked.table.select("item", "coefficient", "value", "lo", "hi"))

    With `labels` (a file, a folder, a store or what `ambjudge.analysis.read_labels` returns) the
    judge of the source is compared with the `annotator`, by default `gold`, else the first by name;
    with `against` the annotator with a second one, and the source is not needed. Without labels,
    the judges among the scorecards are compared pair by pair. InputError without a run and item
    that both have.
    """
    from .analysis.report.agreement_result import (
        agreement_of_annotators,
        agreement_of_judges,
        agreement_with_labels,
    )

    cards = _Cards(run_filter, judged_by, rubric, store)
    read_labels = _labels(labels)
    if against is not None:
        if read_labels is None:
            raise InputError("no labels given", "`labels` takes their folder")
        return agreement_of_annotators(read_labels, annotator, against)
    if source is None:
        raise InputError("no source given", "give scorecards, a store or a folder of runs")
    if read_labels is None:
        return agreement_of_judges(cards.read(source))
    return agreement_with_labels(cards.read(source), read_labels, annotator)


def power(
    source: Any,
    *,
    difference: float | None = None,
    code: str | None = None,
    effect: float | None = None,
    labels: Labels | str | Path | None = None,
    half_width: float | None = None,
    agreement: str | None = None,
    outcome: str = "overall",
    target: float = 0.8,
    run_filter: str | None = None,
    judged_by: str | None = None,
    rubric: str | Path | None = None,
    store: str | Path | None = None,
) -> RunPlan | LabelPlan:
    """The tasks, repeats and labels that detect a difference or an effect, planned from a pilot.

        needed = ambjudge.power("cards.jsonl", difference=5)
        print(needed.plan.tasks, needed.plan.repeats, *needed.sentences)

    Give a `difference` of two agents in units of the outcome; or a `code` and its `effect`; or
    `labels` and the `half_width` that the 95 % interval of a corrected mean is to have, of a `code`
    its effect's, of `agreement` on a code or criterion that one's. `target` is the power to plan
    for. ConfigError if none or several are given; InputError if the pilot says nothing about it.
    """
    from .analysis.report.power_result import PlanQuestion, plan
    from .analysis.tables.score_names import outcome_column

    if not 0 < target < 1:
        raise ConfigError(f"target {target:g} is no power", "give a number between 0 and 1")
    question = PlanQuestion(
        difference=difference,
        code=code,
        effect=effect,
        half_width=half_width,
        agreement=agreement,
        outcome=outcome_column(outcome),
    )
    question.check(has_labels=labels is not None)
    cohort = _Cards(run_filter, judged_by, rubric, store).read(source)
    return plan(cohort, question, labels=_labels(labels), target=target)


def analyze(
    source: Any,
    *,
    labels: Labels | str | Path | None = None,
    only: Iterable[str] | None = None,
    outcome: str = "overall",
    codes_from: str = "any",
    group_by: str = "agent",
    run_filter: str | None = None,
    judged_by: str | None = None,
    rubric: str | Path | None = None,
    store: str | Path | None = None,
) -> Analysis:
    """All tables of the analysis, and the findings as sentences.

        results = ambjudge.analyze("cards.jsonl", only=["leaderboard", "codes"])
        print(*results.findings, sep="\\n")
        print(results["codes"], results.runs)

    `results["NAME"]` is a table as a polars frame, `results.runs` has a row for each run. `labels`
    add agreement and corrected numbers. `only`: names of tables. `codes_from`: any, judge,
    detector, score, fact or independent. `group_by`: what tables and findings about agents are
    about, as in `leaderboard`. `ambjudge.analysis.write_report(results, folder)` writes the report.
    ConfigError for an unknown name.
    """
    from .analysis.report.results import analyse
    from .analysis.tables.score_names import outcome_column

    cards = _Cards(run_filter, judged_by, rubric, store)
    reading = cards.reading()
    results = analyse(
        source,
        labels=_labels(labels),
        only=only,
        outcome=outcome_column(outcome),
        code_source=codes_from,
        by=group_by,
        reading=reading,
        choice=cards.choice(),
        run_filter=cards.query(source),
    )
    _warn_of_unscored(reading.folders)
    return results


def _labels(labels: Labels | str | Path | None) -> Labels | None:
    """Labels from where they are; those that cannot be read are warnings."""
    if not isinstance(labels, str | Path):
        return labels
    from .analysis.tables.label_tables import labels_at

    problems: list[str] = []
    try:
        return labels_at(Path(labels), problems)
    finally:
        for problem in problems:
            log.warning("%s", problem)


def _folders(source: Any) -> list[Path]:
    """The folders that a source names."""
    places = [source] if isinstance(source, str | Path) else source
    if not isinstance(places, Sequence):
        return []
    paths = [Path(place) for place in places if isinstance(place, str | Path)]
    return [path for path in paths if path.is_dir()]


def _place(source: Any, name: str) -> str:
    """The path of a source, or a name for one that has none."""
    return str(source) if isinstance(source, str | Path) else name


def _check_place(source: Any) -> None:
    """InputError for a text that is no place: it may be the name of an agent or judge."""
    if isinstance(source, str) and "://" not in source and not Path(source).exists():
        raise InputError(
            f"no such file or folder: {source}",
            "to compare two names, give the scorecards that have them as `source`",
        )


def _warn_of_unscored(folders: Iterable[FolderState]) -> None:
    for state in folders:
        for text in state.notes():
            log.warning("%s", text)
