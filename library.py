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
from .judge.scope import Scope
from .judge.select import JudgeOptions, default_judges
from .judge.select import make_judge as select_judge
from .judge.session import RunScorer, ScoreOptions, ScoreOutcome, make_scorer, run_session
from .plugins import warn
from .rubrics.load import RubricNames
from .tracks import TRACKS
from .trajectories.models import Run, Segmentation, Tier
from .trajectories.reading.load import iter_runs as iter_files
from .trajectories.reading.load import load_run
from .trajectories.reading.running import RunningRule
from .trajectories.turns.segment import segment as segment_run

if TYPE_CHECKING:
    from .judge.ad_hoc import RunAnswer
    from .judge.base import Judge
    from .judge.facts.diagnosis import Diagnosis
    from .judge.store import Store

Paths = str | Path | Iterable[str | Path]


def make_judge(*names: str, **options: Any) -> Judge:
    """The judge of this name, or a panel of several.

        judge = ambjudge.make_judge(
            "openai/my-model", api_base="http://localhost:8000/v1", price="0.1,0.4"
        )

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

    `track` and `tier` apply to runs whose files do not name them. The error of a run that cannot be
    read is appended to `errors`, or is a warning without such a list.
    """
    for path in _as_paths(paths):
        try:
            for run in iter_files(path):
                if isinstance(run, InputError):
                    _collect_or_warn(run, errors)
                else:
                    yield _with_track_and_tier(run, track, tier)
        except InputError as error:
            _collect_or_warn(error, errors)


def segment(run: Run | str | Path) -> Segmentation:
    """The stage (S1-S5) of every turn, by rules.

        stages = ambjudge.segment("runs/vqa-std-01").turn_stages

    `run`: a run that is loaded already, or the path of one.
    """
    return segment_run(_as_run(run))


def score(
    run: Run | str | Path,
    judge: Judge | str | Sequence[str] | None = None,
    *,
    rubric: RubricNames = None,
    track: str | None = None,
    tier: Tier | None = None,
    public: str | Path | None = None,
    policy: Policy | str | Path = "paper",
    diagnosis: bool = True,
    stages: StagesFrom = "rules",
    ask_all: bool = False,
    running: bool = False,
    store: Store | str | Path | None = None,
) -> ScoreCard:
    """The scorecard of one run, by the rules judge unless given another.

        card = ambjudge.score("runs/vqa-std-01", judge="openai/gpt-5.4-mini", store="verdicts.db")

    `rubric`: an id, a YAML file, a folder of them, a Rubric, or several of these (default: the
    track's). `track`, `tier`: for a run whose files do not name them. `public`: the folder with the
    public inputs. `policy`: `paper`, `harness`, a TOML or YAML file, or a Policy; with `harness`
    the default judge is `reported` if the report states S1-S3. `diagnosis`: ask
    a model for error codes too.
    `stages`: who labels the turns: rules, judge or mixed. `ask_all`: ask a model also about
    criteria that facts decide. `running`: a run that is not over still goes on, so what needs its
    end is withheld (the commands look at the clock, functions do not). ConfigError for an unknown
    policy, for a rubric of another track than the run's, and for a judge that cannot label turns;
    JudgeError if the judge cannot be used at all.
    """
    loaded = _as_run(run)
    questions = QuestionSet(diagnosis=diagnosis, stages=stages, ask_all=ask_all)
    options = _score_options(
        rubric=rubric,
        track=track,
        tier=tier,
        public=public,
        policy=load_policy(policy),
        questions=questions,
        running=running,
    )
    if judge is None:
        judge = default_judges(options.policy, [loaded.path])
    with _open_scorer(judge, options, store) as scorer:
        check_can_label_stages(scorer.judge, questions)
        _check_rubrics(scorer.scope, loaded, track)
        return run_sync(scorer.make_card(loaded, loaded.path))


def score_many(
    paths: Paths,
    judge: Judge | str | Sequence[str] | None = None,
    *,
    rubric: RubricNames = None,
    track: str | None = None,
    tier: Tier | None = None,
    public: str | Path | None = None,
    policy: Policy | str | Path = "paper",
    diagnosis: bool = True,
    stages: StagesFrom = "rules",
    ask_all: bool = False,
    running: bool = False,
    store: Store | str | Path | None = None,
    concurrency: int = 8,
    max_cost: float | None = None,
    errors: list[AmbjudgeError] | None = None,
) -> list[ScoreCard]:
    """The scorecards of every run at or below the paths, in their order, several at a time.

        cards = ambjudge.score_many(
            "runs/", judge="openai/gpt-5.4-mini", store="verdicts.db", max_cost=5
        )

    The other arguments are those of `score`; runs of another track than the rubric's are judged by
    their own track's rubric. `max_cost` is in USD; items beyond it are unscored for `budget`. The
    error of a run that cannot be read is appended to `errors`, or is a warning without such a list;
    it never stops the others.
    """
    cards: list[ScoreCard] = []
    questions = QuestionSet(diagnosis=diagnosis, stages=stages, ask_all=ask_all)
    options = _score_options(
        rubric=rubric,
        track=track,
        tier=tier,
        public=public,
        policy=load_policy(policy),
        questions=questions,
        running=running,
        concurrency=concurrency,
        max_cost=max_cost,
    )

    def on_outcome(outcome: ScoreOutcome) -> None:
        if outcome.card is not None:
            cards.append(outcome.card)
        elif outcome.error is not None:
            _collect_or_warn(outcome.error, errors)

    paths = list(_as_paths(paths))
    if judge is None:
        judge = default_judges(options.policy, (each.path for each in run_sources(paths)))
    with _open_optional_store(store) as opened_store:
        resolved_judge = _resolve_judge(judge)
        check_can_label_stages(resolved_judge, questions)
        totals = run_sync(
            run_session(
                paths,
                resolved_judge,
                options,
                on_outcome,
                store=opened_store,
                signals=False,
            )
        )
    if totals.foreign_track_runs:
        warn(
            f"judged {counted(totals.foreign_track_runs, 'run')} of another track than the given"
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

    `codes_read` has the reading of every code, fired or not. Without a model, only codes that
    files, exit codes and the harness prove can fire; the others are `not_read`.
    """
    from .judge.facts.diagnosis import diagnose as merge_readings

    options = _score_options(
        rubric=None,
        track=track,
        tier=tier,
        public=public,
        policy=Policy(),
        questions=QuestionSet(criteria=False),
    )
    with _open_scorer(judge, options, store) as scorer:
        prepared, replies = run_sync(scorer.ask(_as_run(run)))
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

        answers = ambjudge.ask(
            "runs/", "Did the agent look at an image?", "openai/gpt-5.4-mini", store="verdicts.db"
        )

    `kind`: yes_no, number or text; with `options` the answer is one of them, with a JSON `schema`
    an object of that form. ConfigError for a judge that answers no such questions. The error of a
    run that cannot be read is appended to `errors`, or is a warning without such a list.
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
    resolved_judge = _resolve_judge(judge)
    scope = ask_scope(
        resolved_judge, item, track=_known_track(track), tier=tier, public=_optional_path(public)
    )
    files: list[Path] = []
    for source in run_sources(_as_paths(paths)):
        if source.error is None:
            files.append(source.path)
        else:
            _collect_or_warn(source.error, errors)
    with _open_or_temporary_store(store) as opened_store:
        result = run_sync(
            ask_runs(
                opened_store,
                files,
                resolved_judge,
                scope,
                concurrency=concurrency,
                budget=None if max_cost is None else Budget(max_cost),
                signals=False,
            )
        )
        failures = list(result.plan.errors)
        if result.execution is not None:
            failures += result.execution.lost
        for _, error in failures:
            _collect_or_warn(error, errors)
        return list(result.answers)


@contextmanager
def _open_optional_store(store: Store | str | Path | None) -> Iterator[Store | None]:
    """Open the store at an address or path; an open store, or None, is passed through."""
    if not isinstance(store, str | Path):
        yield store
        return
    from .judge.store import open_store

    with open_store(store) as opened_store:
        yield opened_store


@contextmanager
def _open_or_temporary_store(store: Store | str | Path | None) -> Iterator[Store]:
    """Open a store, or for None a temporary one that is deleted afterwards."""
    from .judge.store import open_store

    with _open_optional_store(store) as opened_store:
        if opened_store is not None:
            yield opened_store
            return
        with (
            TemporaryDirectory() as folder,
            open_store(Path(folder) / "answers.db", root=Path.cwd()) as temporary,
        ):
            yield temporary


@contextmanager
def _open_scorer(
    judge: Judge | str | Sequence[str] | None,
    options: ScoreOptions,
    store: Store | str | Path | None,
) -> Iterator[RunScorer]:
    """A scorer for this judge, with its store open, if any."""
    with _open_optional_store(store) as opened_store:
        yield make_scorer(_resolve_judge(judge), options, opened_store)


def _score_options(
    *,
    rubric: RubricNames,
    track: str | None,
    tier: Tier | None,
    public: str | Path | None,
    policy: Policy,
    questions: QuestionSet,
    running: bool = False,
    concurrency: int = 8,
    max_cost: float | None = None,
) -> ScoreOptions:
    """The options of a session; InputError if `public` is no folder."""
    if public is not None and not Path(public).is_dir():
        raise InputError(
            "no such folder", "`public` takes the folder with the public inputs", Path(public)
        )
    return ScoreOptions(
        rubric=rubric,
        policy=policy,
        public=_optional_path(public),
        track=_known_track(track),
        tier=tier,
        concurrency=concurrency,
        max_cost=max_cost,
        questions=questions,
        running=RunningRule(stated=running),
    )


def _check_rubrics(scope: Scope, run: Run, track: str | None) -> None:
    """ConfigError if the rubrics are for other tracks than the run's."""
    track = run.track or track
    if scope.is_foreign(scope.rubric_of(track, run.task)):
        names = ", ".join(f"{rubric.id} is for track {rubric.track}" for rubric in scope.rubrics)
        raise ConfigError(
            f"rubric {names}, the run is of {f'track {track}' if track else 'an unknown track'}",
            "give another rubric" if track else "name the track of the run",
        )


def _resolve_judge(judge: Judge | str | Sequence[str] | None) -> Judge:
    """The judge of a name, a panel of names, the rules judge for None, or the given judge."""
    if judge is None:
        return select_judge(())
    if isinstance(judge, str):
        return select_judge((judge,))
    if isinstance(judge, Sequence):
        return select_judge(tuple(judge))
    return judge


def _as_run(run: Run | str | Path) -> Run:
    """The run, loaded if it is a path."""
    return run if isinstance(run, Run) else load_run(run)


def _optional_path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)


def _with_track_and_tier(run: Run, track: str | None, tier: Tier | None) -> Run:
    """The run, with this track and tier if its files do not name them."""
    return run.model_copy(
        update={"track": run.track or _known_track(track), "tier": run.tier or tier}
    )


def _known_track(track: str | None) -> str | None:
    """The track's name, None for None; ConfigError if there is no such track."""
    return None if track is None else TRACKS.get(track).name


def _as_paths(paths: Paths) -> Iterator[Path]:
    """One path or several, as Paths."""
    if isinstance(paths, str | Path):
        paths = [paths]
    return map(Path, paths)


def _collect_or_warn(error: AmbjudgeError, errors: list[AmbjudgeError] | None) -> None:
    """Append the error to the caller's list; without a list it is a warning."""
    if errors is None:
        warn(str(error))
    else:
        errors.append(error)
