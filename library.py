"""What `import ambjudge` offers: the steps of the command line as functions on runs, paths and
scorecards.

Paths may be a conversation file, a run's folder, or where several are taken any folder of runs. A
judge is a name as on the command line (`rules`, `openai/gpt-5.4-mini`, `local:PATH`), several names
(a panel), or what `make_judge` gives. Nothing is kept unless `store` names a store (a .db file or a
postgresql:// address): then verdicts that it has are not asked for again. No settings file is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from .errors import AmbjudgeError, ConfigError, InputError
from .judge.card.fields import Policy
from .judge.card.policy_file import load_policy
from .judge.card.scorecard import ScoreCard
from .judge.engine import Prepared
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
from .judge.runner import finished
from .judge.select import JudgeOptions
from .judge.select import make_judge as select_judge
from .judge.session import RunScorer, ScoreOptions, ScoreOutcome, make_scorer, run_session
from .plugins import warn
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
    """The judge of this name, a panel of several; `options` as in `JudgeOptions`: api_base,
    temperature, samples, price, ...

        judge = ambjudge.make_judge("openai/my-model", api_base="http://localhost:8000/v1",
        price="0.1,0.4")

    JudgeError when it cannot be made; ConfigError for an option that there is not.
    """
    known = JudgeOptions.__dataclass_fields__
    unknown = sorted(options.keys() - known)
    if unknown:
        raise ConfigError(f"a judge has no option {unknown[0]!r}", f"known are {', '.join(known)}")
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

    `track` and `tier` stand where the files do not say. What cannot be read goes into `errors`, or
    is warned of.
    """
    for path in _each(paths):
        try:
            for item in iter_files(path):
                if isinstance(item, InputError):
                    _lost(item, errors)
                else:
                    yield _named(item, track, tier)
        except InputError as error:
            _lost(error, errors)


def segment(run: Run | str | Path) -> Segmentation:
    """The stage (S1-S5) of every turn, by rules.

    stages = ambjudge.segment("runs/vqa-std-01").turn_stages
    """
    return segment_run(_run(run))


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

    `rubric`: an id, a YAML file, or a Rubric (default: the track's). `track`, `tier`: where the
    files do not say. `public`: the folder with the public inputs. `policy`: `paper`, `harness`, a
    TOML or YAML file, or a Policy. `diagnosis`: a model is asked for error codes too; `stages`: who
    labels the turns, rules, judge or mixed. ConfigError for an unknown policy, for a rubric of
    another track than the run's, and for a judge that cannot label turns; JudgeError when the judge
    cannot be used at all.
    """
    found = _run(run)
    questions = QuestionSet(diagnosis=diagnosis, stages=stages)
    options = _options(rubric, track, tier, public, load_policy(policy), questions)
    with _scorer(judge, options, store) as scorer:
        check_can_label_stages(scorer.judge, questions)
        given, of = scorer.scope.rubric, found.track or track
        if given is not None and scorer.scope.rubric_of(of, found.task) is not given:
            raise ConfigError(
                f"rubric {given.id} is for track {given.track}, the run is of {of}",
                "give another rubric",
            )
        return finished(scorer.make_card(found, found.path))


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

    The rest as for `score`; runs of another track than the rubric's are judged by their own.
    `max_cost` in USD; what does not fit is unscored for `budget`. What cannot be read goes into
    `errors`, or is warned of, and never stops the others.
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
            _lost(outcome.error, errors)

    with _opened(store) as opened:
        asked = _judge(judge)
        check_can_label_stages(asked, questions)
        work = run_session(_each(paths), asked, options, take, store=opened, signals=False)
        session = finished(work)
    if session.foreign_track_runs:
        warn(
            f"{session.foreign_track_runs} of another track than the given rubric, judged by their"
            " own"
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
    """What went wrong in a run: fired codes with turns and quotes, what is known of the others,
    failed steps.

        codes = [code.code for code in ambjudge.diagnose("runs/vqa-std-01").codes]

    Without a model only what files, exit codes and the harness prove; the other codes are
    `not_read`.
    """
    from .judge.facts.diagnosis import diagnose as merge_readings

    options = _options(None, track, tier, public, Policy(), QuestionSet(criteria=False))
    with _scorer(judge, options, store) as scorer:
        asked: tuple[Prepared, Mapping[str, Any]] = finished(scorer.ask(_run(run)))
        ready, replies = asked
        return merge_readings(
            ready.run,
            ready.segmentation,
            ready.detected,
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
    """A model's answer about every run at or below the paths, with turns and quotes that were
    searched in the run.

        answers = ambjudge.ask("runs/", "Did the agent look at an image?", "openai/gpt-5.4-mini",
        store="verdicts.db")

    `kind`: yes_no, number, text; `options` make it a choice, a JSON `schema` an object. ConfigError
    for a judge that reads nothing. What cannot be read goes into `errors`, or is warned of.
    """
    from .judge.ad_hoc import ask as ask_runs
    from .judge.ad_hoc import ask_scope

    asked = _judge(judge)
    wanted = kind or ("choice" if options else "json" if schema else "yes_no")
    item = ask_item(question, Answer(wanted, tuple(options), schema))
    scope = ask_scope(
        asked, item, track=_track(track), tier=tier, public=None if public is None else Path(public)
    )
    files: list[Path] = []
    for source in run_sources(_each(paths)):
        if source.error is None:
            files.append(source.path)
        else:
            _lost(source.error, errors)
    with _opened(store, always=True) as opened:
        assert opened is not None
        work = ask_runs(
            opened,
            files,
            asked,
            scope,
            concurrency=concurrency,
            budget=None if max_cost is None else Budget(max_cost),
            signals=False,
        )
        answered = finished(work)
        for _, error in (
            *answered.plan.errors,
            *(answered.execution.lost if answered.execution else ()),
        ):
            _lost(error, errors)
        return list(answered.answers)


@contextmanager
def _opened(store: Store | str | Path | None, always: bool = False) -> Iterator[Store | None]:
    """The store that is named; where one is needed `always`, else one that is gone afterwards."""
    if not (always or isinstance(store, str | Path)):
        yield store
        return
    from .judge.store import open_store

    if store is None:
        with (
            TemporaryDirectory() as folder,
            open_store(Path(folder) / "answers.db", root=Path.cwd()) as opened,
        ):
            yield opened
    elif isinstance(store, str | Path):
        with open_store(store) as opened:
            yield opened
    else:
        yield store


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
        rubric,
        policy,
        None if public is None else Path(public),
        _track(track),
        tier,
        concurrency,
        max_cost,
        questions=questions,
    )


def _judge(judge: Judge | str | Sequence[str] | None) -> Judge:
    if judge is None or isinstance(judge, str):
        return select_judge(() if judge is None else (judge,))
    return select_judge(tuple(judge)) if isinstance(judge, Sequence) else judge


def _run(run: Run | str | Path) -> Run:
    return run if isinstance(run, Run) else load_run(run)


def _named(run: Run, track: str | None, tier: Tier | None) -> Run:
    return run.model_copy(update={"track": run.track or _track(track), "tier": run.tier or tier})


def _track(track: str | None) -> str | None:
    """The track, which must be known: ConfigError else."""
    return None if track is None else TRACKS.get(track).name


def _each(paths: Paths) -> Iterator[Path]:
    return iter([Path(paths)] if isinstance(paths, str | Path) else map(Path, paths))


def _lost(error: AmbjudgeError, errors: list[AmbjudgeError] | None) -> None:
    if errors is None:
        warn(str(error))
    else:
        errors.append(error)
