"""What `import ambjudge` offers: the steps of the command line as functions.

A path may be a conversation file or a run's folder; where several are taken, any folder of runs. A
judge is a name as on the command line (`rules`, `openai/gpt-5.4-mini`, `local:PATH`), several names
(a panel), or what `make_judge` returns. Nothing is stored unless `store` names a store (a .db file
or a postgresql:// address); verdicts that it has are not asked for again. No settings file is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from .console import counted
from .errors import AmbjudgeError, ConfigError, InputError
from .judge.card.fields import Policy
from .judge.card.policy_file import load_policy
from .judge.card.scorecard import ScoreCard
from .judge.judges.limits import Budget
from .judge.questions.items import (
    Answer,
    AnswerKind,
    QuestionSet,
    StagesFrom,
    ask_item,
    check_can_label_stages,
)
from .judge.run_sources import run_sources
from .judge.runner import run_sync
from .judge.select import JudgeOptions
from .judge.select import make_judge as select_judge
from .judge.session import RunScorer, ScoreOptions, ScoreOutcome, make_scorer, run_session
from .plugins import warn
from .rubrics.load import rubric_for
from .rubrics.model import Rubric
from .tracks import TRACKS
from .trajectories.models import Run, Segmentation, Tier
from .trajectories.reading.load import iter_runs as iter_files
from .trajectories.reading.load import load_run
from .trajectories.turns.segment import segment as segment_run

if TYPE_CHECKING:
    from .judge.ad_hoc import RunAnswer
    from .judge.base import Judge
    from .judge.facts.diagnosis import Diagnosis
    from .judge.store import Store

Paths = str | Path | Iterable[str | Path]


def make_judge(*names: str, **options: Any) -> Judge:
    """The judge of this name, or a panel of several.

        judge = ambjudge.make_judge("openai/my-model", api_base="http://localhost:8000/v1",
        price="0.1,0.4")

    `options` are those of `JudgeOptions`: api_base, temperature, samples, price, ... JudgeError if
    the judge cannot be made; ConfigError for an unknown option.
    """
    existing = JudgeOptions.__dataclass_fields__
    unknown = sorted(options.keys() - existing)
    if unknown:
        raise ConfigError(
            f"a judge has no option {unknown[0]!r}", f"the options are {', '.join(existing)}"
        )
    return select_judge(names, JudgeOptions(**options))


def iter_runs(
    paths: Paths,
    *,
    track: str | None = None,
    tier: Tier | None = None,
    errors: list[AmbjudgeError] | None = None,
) -> Iterator[Run]:
    """Every run at or below the paths, one at a time.

        turns = {run.id: len(run.turns) for run in ambjudge.iter_runs("runs/")}

    `track` and `tier` apply to runs whose files do not say. What cannot be read is appended to
    `errors`, or is a warning.
    """
    for path in _each(paths):
        try:
            for item in iter_files(path):
                if isinstance(item, InputError):
                    _report(item, errors)
                else:
                    yield _with_track_and_tier(item, track, tier)
        except InputError as error:
            _report(error, errors)


def segment(run: Run | str | Path) -> Segmentation:
    """The stage (S1-S5) of every turn, by rules.

    stages = ambjudge.segment("runs/vqa-std-01").turn_stages
    """
    return segment_run(_load(run))


def score(
    run: Run | str | Path,
    judge: Judge | str | Sequence[str] | None = None,
    *,
    rubric: Rubric | str | Path | None = None,
    track: str | None = None,
    tier: Tier | None = None,
    public: str | Path | None = None,
    policy: Policy | str | Path = "paper",
    diagnosis: bool = True,
    stages: StagesFrom = "rules",
    store: Store | str | Path | None = None,
) -> ScoreCard:
    """The scorecard of one run, by the rules judge unless given another.

        card = ambjudge.score("runs/vqa-std-01", judge="openai/gpt-5.4-mini", store="verdicts.db")

    `rubric`: an id, a YAML file, or a Rubric (default: the track's). `track`, `tier`: if the files
    do not say. `public`: the folder with the public inputs. `policy`: `paper`, `harness`, a TOML or
    YAML file, or a Policy. `diagnosis`: ask a model for error codes too. `stages`: who labels the
    turns: rules, judge or mixed. ConfigError for an unknown policy, for a rubric of another track
    than the run's, and for a judge that cannot label turns; JudgeError if the judge cannot be used
    at all.
    """
    loaded = _load(run)
    questions = QuestionSet(diagnosis=diagnosis, stages=stages)
    options = _options(rubric, track, tier, public, load_policy(policy), questions)
    with _scorer(judge, options, store) as scorer:
        check_can_label_stages(scorer.judge, questions)
        _check_rubric(scorer.scope.rubric, loaded, track)
        return run_sync(scorer.make_card(loaded, loaded.path))


def score_many(
    paths: Paths,
    judge: Judge | str | Sequence[str] | None = None,
    *,
    rubric: Rubric | str | Path | None = None,
    track: str | None = None,
    tier: Tier | None = None,
    public: str | Path | None = None,
    policy: Policy | str | Path = "paper",
    diagnosis: bool = True,
    stages: StagesFrom = "rules",
    store: Store | str | Path | None = None,
    concurrency: int = 8,
    max_cost: float | None = None,
    errors: list[AmbjudgeError] | None = None,
) -> list[ScoreCard]:
    """The scorecards of every run at or below the paths, in their order, several at a time.

        cards = ambjudge.score_many("runs/", judge="openai/gpt-5.4-mini", store="verdicts.db",
        max_cost=5)

    The other arguments are those of `score`; runs of another track than the rubric's are judged by
    their own rubric. `max_cost` is in USD; what does not fit is unscored for `budget`. What cannot
    be read is appended to `errors`, or is a warning, and never stops the others.
    """
    cards: list[ScoreCard] = []
    questions = QuestionSet(diagnosis=diagnosis, stages=stages)
    options = _options(
        rubric, track, tier, public, load_policy(policy), questions, concurrency, max_cost
    )

    def take(outcome: ScoreOutcome) -> None:
        if outcome.card is not None:
            cards.append(outcome.card)
        elif outcome.error is not None:
            _report(outcome.error, errors)

    with _opened(store) as opened:
        judge = _judge(judge)
        check_can_label_stages(judge, questions)
        session = run_sync(
            run_session(_each(paths), judge, options, take, store=opened, signals=False)
        )
    if session.foreign_track_runs:
        warn(
            f"judged {counted(session.foreign_track_runs, 'run')} of another track than the given"
            " rubric by the rubric of their own track"
        )
    return cards


def diagnose(
    run: Run | str | Path,
    judge: Judge | str | Sequence[str] | None = None,
    *,
    track: str | None = None,
    tier: Tier | None = None,
    public: str | Path | None = None,
    store: Store | str | Path | None = None,
) -> Diagnosis:
    """What went wrong in a run: fired codes with turns and quotes, and failed steps.

        codes = [code.code for code in ambjudge.diagnose("runs/vqa-std-01").codes]

    It also says what is known of the codes that did not fire. Without a model, only what files,
    exit codes and the harness prove; the other codes are `not_read`.
    """
    from .judge.facts.diagnosis import diagnose as merge_readings

    options = _options(None, track, tier, public, Policy(), QuestionSet(criteria=False))
    with _scorer(judge, options, store) as scorer:
        prepared, replies = run_sync(scorer.ask(_load(run)))
        return merge_readings(
            prepared.run,
            prepared.segmentation,
            prepared.detected,
            replies.get("diagnosis"),
            scorer.judge.name,
            scorer.precision,
        )


def ask(
    paths: Paths,
    question: str,
    judge: Judge | str | Sequence[str],
    *,
    kind: AnswerKind | None = None,
    options: Sequence[str] = (),
    schema: Mapping[str, Any] | None = None,
    track: str | None = None,
    tier: Tier | None = None,
    public: str | Path | None = None,
    store: Store | str | Path | None = None,
    concurrency: int = 8,
    max_cost: float | None = None,
    errors: list[AmbjudgeError] | None = None,
) -> list[RunAnswer]:
    """A model's answer about every run at or below the paths, with turns and checked quotes.

        answers = ambjudge.ask("runs/", "Did the agent look at an image?", "openai/gpt-5.4-mini",
        store="verdicts.db")

    `kind`: yes_no, number or text; `options` make it a choice, a JSON `schema` an object.
    ConfigError for a judge that reads nothing. What cannot be read is appended to `errors`, or is a
    warning.
    """
    from .judge.ad_hoc import ask as ask_runs
    from .judge.ad_hoc import ask_scope

    if kind is None:
        kind = "yes_no"
        if options:
            kind = "choice"
        elif schema:
            kind = "json"
    item = ask_item(question, Answer(kind, tuple(options), schema))
    judge = _judge(judge)
    scope = ask_scope(judge, item, track=_track(track), tier=tier, public=_path(public))
    files: list[Path] = []
    for source in run_sources(_each(paths)):
        if source.error is None:
            files.append(source.path)
        else:
            _report(source.error, errors)
    with _opened_or_temporary(store) as opened:
        answered = run_sync(
            ask_runs(
                opened,
                files,
                judge,
                scope,
                concurrency=concurrency,
                budget=None if max_cost is None else Budget(max_cost),
                signals=False,
            )
        )
        failures = list(answered.plan.errors)
        if answered.execution is not None:
            failures += answered.execution.lost
        for _, error in failures:
            _report(error, errors)
        return list(answered.answers)


@contextmanager
def _opened(store: Store | str | Path | None) -> Iterator[Store | None]:
    """The store that is named, open; None without one."""
    if not isinstance(store, str | Path):
        yield store
        return
    from .judge.store import open_store

    with open_store(store) as opened:
        yield opened


@contextmanager
def _opened_or_temporary(store: Store | str | Path | None) -> Iterator[Store]:
    """The store that is named, open; without one, a store that is deleted afterwards."""
    from .judge.store import open_store

    with _opened(store) as opened:
        if opened is not None:
            yield opened
            return
        with (
            TemporaryDirectory() as folder,
            open_store(Path(folder) / "answers.db", root=Path.cwd()) as temporary,
        ):
            yield temporary


@contextmanager
def _scorer(
    judge: Judge | str | Sequence[str] | None,
    options: ScoreOptions,
    store: Store | str | Path | None,
) -> Iterator[RunScorer]:
    with _opened(store) as opened:
        yield make_scorer(_judge(judge), options, opened)


def _options(
    rubric: Rubric | str | Path | None,
    track: str | None,
    tier: Tier | None,
    public: str | Path | None,
    policy: Policy,
    questions: QuestionSet,
    concurrency: int = 8,
    max_cost: float | None = None,
) -> ScoreOptions:
    if public is not None and not Path(public).is_dir():
        raise InputError(
            "no such folder", "`public` takes the folder with the public inputs", Path(public)
        )
    return ScoreOptions(
        rubric=rubric,
        policy=policy,
        public=_path(public),
        track=_track(track),
        tier=tier,
        concurrency=concurrency,
        max_cost=max_cost,
        questions=questions,
    )


def _check_rubric(rubric: Rubric | None, run: Run, track: str | None) -> None:
    """ConfigError if the rubric is for another track than the run's."""
    track = run.track or track
    if rubric is not None and rubric_for(track, run.task, rubric) is not rubric:
        raise ConfigError(
            f"rubric {rubric.id} is for track {rubric.track}, the run is of {track}",
            "give another rubric",
        )


def _judge(judge: Judge | str | Sequence[str] | None) -> Judge:
    if judge is None:
        return select_judge(())
    if isinstance(judge, str):
        return select_judge((judge,))
    if isinstance(judge, Sequence):
        return select_judge(tuple(judge))
    return judge


def _load(run: Run | str | Path) -> Run:
    return run if isinstance(run, Run) else load_run(run)


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)


def _with_track_and_tier(run: Run, track: str | None, tier: Tier | None) -> Run:
    """The run with this track and tier where its files do not say."""
    return run.model_copy(update={"track": run.track or _track(track), "tier": run.tier or tier})


def _track(track: str | None) -> str | None:
    """The name of the track; ConfigError if it is unknown."""
    return None if track is None else TRACKS.get(track).name


def _each(paths: Paths) -> Iterator[Path]:
    if isinstance(paths, str | Path):
        paths = [paths]
    return map(Path, paths)


def _report(error: AmbjudgeError, errors: list[AmbjudgeError] | None) -> None:
    if errors is None:
        warn(str(error))
    else:
        errors.append(error)
