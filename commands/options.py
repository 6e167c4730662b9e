"""Options that several commands share, and how they become what the judge room takes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .. import console
from ..config import Settings
from ..errors import InputError, StoreError
from .path_types import PathOrAddress

if TYPE_CHECKING:
    from ..judge.base import Judge
    from ..judge.questions.items import QuestionSet
    from ..judge.select import JudgeOptions
    from ..judge.session import ScoreOptions, Scorer
    from ..judge.store import Store
    from .card_files import Shard


F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[F], F]


def _together(*options: Decorator[Any]) -> Decorator[Any]:
    """Several options as one decorator, in the order of the help."""

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def json_option(text: str = "JSON on stdout.") -> Decorator[Any]:
    """--json, as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def tier_option(text: str = "Where the files do not say.") -> Decorator[Any]:
    """--tier."""
    return click.option("--tier", type=click.Choice(["lite", "standard", "pro"]), help=text)


PATHS = click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")
PATHS_OR_ADDRESSES = click.argument(
    "paths", nargs=-1, required=True, type=PathOrAddress(), metavar="PATH|URL..."
)
SOURCES = click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATH]...")
STAGES_FROM = click.option(
    "--stages",
    type=click.Choice(["rules", "judge", "mixed"]),
    help="Who labels the turns; mixed: the judge where rules are unsure.",
)
OUTCOMES = ("overall", "agentic", "task_score", "S1", "S2", "S3", "S4", "S5")


def _outcome(_context: click.Context, _option: click.Parameter, name: str) -> str:
    """A score of ours, a group of a rubric of one's own, or the column of an outcome that the runs
    brought along."""
    return (
        name
        if name in OUTCOMES or name.startswith("group.")
        else f"outcome.{name.removeprefix('outcome.')}"
    )


OUTCOME = click.option(
    "--outcome",
    callback=_outcome,
    default="overall",
    metavar="NAME",
    help=f"{', '.join(OUTCOMES[:4])} … S5, or an outcome that came with the runs.  [overall]",
)


def _who_judges(_context: click.Context, _option: click.Parameter, name: str | None) -> None:
    if name is not None:
        raise click.UsageError(
            f"--judge names who is to judge, and nothing is judged here: --judged-by {name} takes"
            " the scorecards of one judge"
        )


def judged_by(usual: str) -> Decorator[Any]:
    """--judged-by, as `judge`: whose scorecards are looked at. `--judge` would have runs judged,
    and says so."""
    return _together(
        click.option(
            "--judged-by",
            "judge",
            metavar="NAME",
            help=f"Only the scorecards of this judge.  [{usual}]",
        ),
        click.option(
            "--judge", "who_judges", hidden=True, expose_value=False, callback=_who_judges
        ),
    )


def _shard_of(context: click.Context, option: click.Parameter, text: str | None) -> Shard | None:
    """`card_files` loads what other commands do not need."""
    from .card_files import shard_of

    return shard_of(context, option, text)


JSON = json_option("JSON on stdout (several runs: JSON Lines).")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Only say what is missing and its cost.")
MAX_COST = click.option(
    "--max-cost",
    type=click.FloatRange(min=0),
    metavar="USD",
    help="Never spend more; the rest is unscored.",
)
CALLS_PER_MINUTE = click.option(
    "--calls-per-minute",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Never start more calls.",
)
TOKENS_PER_MINUTE = click.option(
    "--tokens-per-minute",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Never send for more tokens.",
)
CONCURRENCY = click.option(
    "--concurrency",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Calls at the same time.  [default: 8]",
)
STORE = click.option(
    "--store", metavar="FILE|URL|none", help="Default: .ambjudge/ambjudge.db at the root."
)

known_options = _together(
    click.option("--track", metavar="TRACK", help="Where the files do not say."),
    tier_option(),
    click.option(
        "--public", metavar="DIR", type=click.Path(), help="Public inputs: cases, reference shapes."
    ),
)
"""What is known of a run beside its files."""
run_options = _together(
    click.option(
        "--rubric", metavar="FILE|ID", help="For the runs of its track. Default: the built-in one."
    ),
    known_options,
)
"""What to hold a run against."""
POLICIES = ("like", "missing", "breach", "malformed", "strict_evidence")
policy_options = _together(
    click.option(
        "--like",
        type=click.Choice(["paper", "harness"]),
        help="Whose rules where the two part.  [default: paper]",
    ),
    click.option(
        "--missing",
        type=click.Choice(["renormalize", "zero"]),
        help="Unscored stages: left out (default) or 0.",
    ),
    click.option(
        "--breach",
        type=click.Choice(["zero-all", "from-stage"]),
        help="Zero all stages (default) or later ones.",
    ),
    click.option(
        "--malformed",
        type=click.Choice(["formula", "zero"]),
        help="S5 then: by formula (default) or 0.",
    ),
    click.option(
        "--strict-evidence",
        is_flag=True,
        default=None,
        help="Met without a found quote, or against a fact: unscored.",
    ),
)
"""Choices that the numbers depend on."""
cohort_options = _together(STORE, run_options, policy_options)
"""Where the scorecards of a cohort come from, and how runs without one are scored."""
judge_options = _together(
    click.option(
        "--judge",
        "judges",
        multiple=True,
        metavar="NAME",
        help="rules, a model, local:PATH; several: panel.",
    ),
    click.option("--api-base", metavar="URL", help="OpenAI-compatible server."),
    click.option("--temperature", type=float, help="Of a model judge."),
    click.option(
        "--samples",
        type=click.IntRange(1, 25),
        metavar="N",
        help="Ask a model N times; most votes count.",
    ),
    click.option("--timeout", type=float, metavar="SECONDS", help="For one call of a model."),
    click.option("--price", metavar="IN,OUT…", help="USD per million tokens: in, out, cached."),
    click.option(
        "--pictures", is_flag=True, default=None, help="Show it an output of each kind, too."
    ),
)
"""--judge and what a model judge takes."""
question_options = _together(
    STAGES_FROM,
    click.option(
        "--diagnosis/--no-diagnosis",
        default=None,
        help="Ask a model which codes apply.  [default: yes]",
    ),
)
"""What a judge that reads is asked beside the criteria."""
reading_options = _together(judge_options, MAX_COST, STORE)
"""A judge for commands that read runs without scoring them."""
batch_options = _together(
    click.option("--batch", is_flag=True, help="Send as provider batches, or collect."),
    click.option(
        "--wait", type=float, default=0.0, metavar="SECONDS", help="How long --batch waits."
    ),
)
"""The provider's batch endpoint."""
work_options = _together(
    batch_options, DRY_RUN, MAX_COST, CALLS_PER_MINUTE, TOKENS_PER_MINUTE, CONCURRENCY, STORE
)
"""How calls are made, and what they may cost."""
spread_options = _together(
    click.option(
        "--workers",
        type=click.IntRange(1, 256),
        metavar="N",
        default=1,
        help="Processes at the same time.",
    ),
    click.option(
        "--engine",
        type=click.Choice(["processes", "ray"]),
        default="processes",
        help="Where the workers are.",
    ),
    click.option("--address", metavar="ADDR", help="Of the Ray cluster.  [a new one here]"),
    click.option(
        "--shard",
        callback=_shard_of,
        metavar="I/N",
        help="Only part I of N, into the folder --out.",
    ),
)
"""Over how many processes and machines the runs are spread."""


def store_place(
    settings: Settings, paths: Sequence[str | Path], flag: str | None = None
) -> str | Path | None:
    """Where the verdicts on these runs are or will be kept, for every command; None for `--store
    none`.

    The store named; else that of the collection (`session.default_store`), of an address that of
    the working directory. Several paths without a store get one in the folder that holds them all.
    InputError where they have stores of their own, as one of them would be asked again.
    """
    import os

    from ..judge.session import default_store
    from ..judge.store import DEFAULT_STORE
    from ..trajectories.reading.remote import is_address

    named = settings.get("store", flag)
    if named:
        return None if named == "none" else named
    folder = settings.file.parent if settings.file else None
    places = list(
        dict.fromkeys(default_store("." if is_address(path) else path, folder) for path in paths)
    )
    if len(places) == 1:
        return places[0]
    if made := [place for place in places if place.is_file()]:
        raise InputError(
            f"not all of these paths are in one store: {made[0]} holds verdicts on some",
            "name one store with --store, or give the paths one by one",
        )
    return Path(os.path.commonpath([place.parent.parent for place in places])) / DEFAULT_STORE


def open_session_store(
    paths: Sequence[str],
    settings: Settings,
    flags: dict[str, Any],
    judge: Judge | None,
    stack: ExitStack,
    quiet: bool,
    required: bool = False,
) -> Store | None:
    """The store in force, or None for `--store none`; says where it is.

    Where nothing can be written the rules judge goes on without one, with a note, as its verdicts
    cost nothing; a model's verdicts must not be lost, so there it is the StoreError that it is.
    """
    from ..judge.card.fields import RULES

    try:
        where = store_place(settings, paths, flags.get("store"))
        if where is None and required:
            raise StoreError("this command works on a store", "leave out --store none")
        if where is None:
            return None
        from ..judge.store import open_store

        store = stack.enter_context(open_store(where))
    except StoreError as error:
        if (
            settings.get("store", flags.get("store"))
            or required
            or judge is None
            or judge.name != RULES
        ):
            raise
        console.note(f"ambjudge: nothing is kept: {error.message}", quiet)
        return None
    console.note(f"verdicts in {store.location}", quiet)
    return store


def judge_of(settings: Settings, flags: dict[str, Any]) -> Judge:
    """The judge that flags and settings name."""
    from ..judge.select import make_judge

    return make_judge(*judge_named(settings, flags))


def judge_named(settings: Settings, flags: dict[str, Any]) -> tuple[tuple[str, ...], JudgeOptions]:
    """What `make_judge` takes."""
    from ..judge.select import JudgeOptions

    return (
        tuple(settings.get("judge", flags["judges"]) or ()),
        JudgeOptions(
            api_base=settings.get("api_base", flags["api_base"]),
            temperature=settings.get("temperature", flags["temperature"]),
            samples=settings.get("samples", flags["samples"]) or 1,
            pictures=settings.get("pictures", flags.get("pictures")) or False,
            timeout=settings.get("timeout", flags["timeout"]),
            price=settings.get("price", flags["price"]),
            rationale=settings.get("rationale") or False,
        ),
    )


def score_options(settings: Settings, flags: dict[str, Any]) -> ScoreOptions:
    """Flags over settings over defaults; InputError for an unknown track or a missing --public
    folder."""
    from ..judge.card.fields import Policy
    from ..judge.questions.items import QuestionSet
    from ..judge.session import ScoreOptions
    from ..tracks import TRACKS

    chosen = {key: settings.get(key, flags.get(key)) for key in POLICIES}
    if chosen["like"] == "harness" and (
        given := [f"--{key}" for key in ("missing", "breach", "malformed") if chosen[key]]
    ):
        raise InputError(f"--like harness decides {', '.join(given)} too", "leave one of them out")
    track = settings.get("track", flags.get("track"))
    if track is not None:
        TRACKS.get(track)
    public = settings.get("public", flags.get("public"))
    if public is not None and not Path(public).is_dir():
        raise InputError(
            f"{public}: no such folder", "--public takes the folder with the public inputs"
        )
    return ScoreOptions(
        rubric=settings.get("rubric", flags.get("rubric")),
        policy=Policy(**{key: value for key, value in chosen.items() if value}),
        public=Path(public) if public else None,
        track=track,
        tier=settings.get("tier", flags.get("tier")),
        concurrency=settings.get("concurrency", flags.get("concurrency")) or 8,
        max_cost=settings.get("max_cost", flags.get("max_cost")),
        calls_per_minute=settings.get("calls_per_minute", flags.get("calls_per_minute")),
        tokens_per_minute=settings.get("tokens_per_minute", flags.get("tokens_per_minute")),
        questions=QuestionSet(
            diagnosis=settings.get("diagnosis", flags.get("diagnosis")) is not False,
            stages=settings.get("stages", flags.get("stages")) or "rules",
        ),
    )


@asynccontextmanager
async def scorer_of(
    settings: Settings,
    flags: dict[str, Any],
    judge: Judge,
    options: ScoreOptions,
    store: Store | None,
) -> AsyncIterator[Scorer]:
    """What scores and asks: this process, or the workers that the flags name. To be entered in a
    running event loop.

    InputError for an address without the engine that it is of.
    """
    if flags["address"] and flags["engine"] != "ray":
        raise InputError("--address is of a Ray cluster", "add --engine ray")
    if flags["workers"] == 1 and flags["engine"] == "processes":
        from ..judge.session import make_scorer

        yield make_scorer(judge, options, store)
        return
    from ..judge.spread.workers import Work, Workers

    engine = None
    if flags["engine"] == "ray":
        from functools import partial

        from ..judge.spread.ray_workers import RayCluster

        engine = partial(RayCluster, address=flags["address"])
    names, how = judge_named(settings, flags)
    work = Work(options, names, how, None if store is None else (store.address, store.root))
    async with Workers(flags["workers"], work, engine) as workers:
        yield workers


def check_can_label_stages(judge: Judge, questions: QuestionSet) -> None:
    """ConfigError for stages that this judge cannot label."""
    from ..judge.questions import items

    items.check_can_label_stages(judge, questions)


def existing(paths: Sequence[str]) -> tuple[str, ...]:
    """The paths at which there is something, and addresses, which are asked when they are listed."""
    from ..trajectories.reading.remote import is_address

    def exists(path: str) -> bool:
        try:
            return is_address(path) or Path(path).exists()
        except (OSError, ValueError):
            return False

    return tuple(path for path in paths if exists(path))
