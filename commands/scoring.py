"""The work of `ambjudge score`: settings to options, outcomes to output and exit code."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .. import console
from ..config import Settings, load
from ..errors import ConfigError, InputError, StoreError

if TYPE_CHECKING:
    from ..judge.base import Judge, Usage
    from ..judge.questions.items import Wanted
    from ..judge.runner import Progress
    from ..judge.scorecard import ScoreCard
    from ..judge.session import Outcome, ScoreOptions, Session
    from ..judge.store import Store


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 when something could not be scored; 2 when nothing could be read."""
    from ..judge.base import answers
    from ..judge.session import score_many

    settings = load(obj["config"])
    judge = judge_of(settings, flags)
    options = score_options(settings, flags)
    check_wanted(judge, options.wanted)
    with ExitStack() as stack:
        # Nothing is made where nothing is to be read; what is wrong with the paths is told when they are read.
        there = first_there(paths)
        store = (
            None
            if there is None
            else open_session_store(
                there, settings, flags, judge, stack, obj["quiet"], required=flags.get("batch", False)
            )
        )
        if flags.get("batch") and store is not None:
            if _through_batch(paths, judge, options, store, flags["wait"], obj["quiet"]):
                return 1
            options = replace(options, stored_only=True)
        read = options.wanted.diagnosis and "diagnosis" in answers(judge)
        sink = _Sink(obj, flags, stack, read)
        session = asyncio.run(score_many(paths, judge, options, sink.take, store=store, on_progress=sink.tell))
        return sink.finish(session)


def _through_batch(
    paths: tuple[str, ...], judge: Judge, options: ScoreOptions, store: Store, wait_s: float, quiet: bool
) -> int:
    """Send what the store lacks, collect what is answered; how many batches the provider still works on.

    Runs that cannot be read are named when the rest is scored.
    """
    from ..judge.rejudge.staleness import plan
    from ..judge.session import Outcome, conversations, scope_of
    from .batching import step

    runs = [item for item in conversations(paths) if not isinstance(item, Outcome)]
    scope = scope_of(options)
    bar = console.Progress("planned", len(runs), quiet)
    made = plan(store, runs, judge, scope, on_progress=bar.update)
    bar.clear()
    return step(made, store, judge, options.max_cost, wait_s, quiet).still_open


def open_session_store(
    path: str,
    settings: Settings,
    flags: dict[str, Any],
    judge: Judge,
    stack: ExitStack,
    quiet: bool,
    required: bool = False,
) -> Store | None:
    """The store in force, or None for `--store none`.

    Where nothing can be written the heuristic judge goes on without one, with a note, as its verdicts cost nothing; a
    model's verdicts must not be lost, so there it is the StoreError that it is.
    """
    from ..judge.session import default_store
    from ..judge.store import open_store

    named = settings.get("store", flags.get("store"))
    if named == "none" and not required:
        return None
    if named == "none":
        raise StoreError("this command works on a store", "leave out --store none")
    where = named or default_store(path, settings.file.parent if settings.file else None)
    try:
        return stack.enter_context(open_store(where))
    except StoreError as error:
        if named or required or judge.name != "heuristic":
            raise
        console.note(f"ambjudge: nothing is kept: {error.message}", quiet)
        return None


def judge_of(settings: Settings, flags: dict[str, Any]) -> Judge:
    """The judge that flags and settings name."""
    from ..judge.select import JudgeOptions, make_judge

    return make_judge(
        settings.get("judge", flags["judges"]) or (),
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
    """Flags over settings over defaults; InputError for an unknown track or a missing --public folder."""
    from ..judge.questions.items import Wanted
    from ..judge.scorecard import Policy
    from ..judge.session import ScoreOptions
    from ..tracks import TRACKS

    chosen = {key: settings.get(key, flags.get(key)) for key in ("missing", "breach", "malformed")}
    track = settings.get("track", flags.get("track"))
    if track is not None:
        TRACKS.get(track)
    public = settings.get("public", flags.get("public"))
    if public is not None and not Path(public).is_dir():
        raise InputError(f"{public}: no such folder", "--public takes the folder with the public inputs")
    return ScoreOptions(
        rubric=settings.get("rubric", flags.get("rubric")),
        policy=Policy(**{key: value for key, value in chosen.items() if value}),
        public=Path(public) if public else None,
        track=track,
        tier=settings.get("tier", flags.get("tier")),
        concurrency=settings.get("concurrency", flags.get("concurrency")) or 8,
        max_cost=settings.get("max_cost", flags.get("max_cost")),
        wanted=Wanted(
            diagnosis=settings.get("diagnosis", flags.get("diagnosis")) is not False,
            stages=settings.get("stages", flags.get("stages")) or "rules",
        ),
    )


def check_wanted(judge: Judge, wanted: Wanted) -> None:
    """ConfigError for stages that this judge cannot label."""
    from ..judge.base import answers

    if wanted.stages != "rules" and "stages" not in answers(judge):
        raise ConfigError(
            f"--stages {wanted.stages}: judge {judge.name} cannot label turns, only a model can",
            "name one with --judge, or give --stages rules",
        )


def first_there(paths: tuple[str, ...]) -> str | None:
    """The first path at which there is something."""

    def exists(path: str) -> bool:
        try:
            return Path(path).exists()
        except (OSError, ValueError):
            return False

    return next((path for path in paths if exists(path)), None)


class _Sink:
    """Takes outcomes as they come: JSON at once, people's tables at the end, errors to stderr at once."""

    def __init__(self, obj: dict[str, Any], flags: dict[str, Any], stack: ExitStack, read: bool) -> None:
        """`read`: the judge is asked which codes apply, so that one it did not read is something that failed."""
        self.read = read
        self.quiet, self.verbose, self.as_json = obj["quiet"], obj["verbose"] > 0, flags["as_json"]
        self.file: IO[str] | None = None
        if flags["out"]:
            out = Path(flags["out"])
            try:
                out.parent.mkdir(parents=True, exist_ok=True)
                self.file = stack.enter_context(out.open("w", encoding="utf-8", errors="backslashreplace"))
            except OSError as error:
                raise InputError(f"{out}: cannot be written: {error.strerror}", "choose another --out") from None
        self.progress = console.Progress("scored", None, self.quiet)
        stack.callback(self.progress.clear)
        self.only: ScoreCard | None = None
        self.rows: list[tuple[list[str], list[str | None]]] = []
        self.done = self.failed = self.partial = self.unread = 0

    def take(self, outcome: Outcome) -> None:
        if outcome.card is None:
            self.failed += 1
            self.progress.clear()
            console.note(f"ambjudge: error: {outcome.error}")
            return
        card = outcome.card
        self.done += 1
        self.partial += any(card.stages[s].score is None for s in card.stages)
        self.unread += self.read and "not_read" in card.codes_read.values()
        if self.file is not None:
            self.file.write(card.to_json() + "\n")
        if self.as_json:
            console.raw(card.to_json())
        else:
            from .render import row

            self.only = card if self.done == 1 else None
            self.rows.append(row(card))

    def tell(self, progress: Progress, usage: Usage) -> None:
        """A status line: runs, failures, money."""
        bits = [f"{self.failed} failed"] if self.failed else []
        if usage.calls:
            from .render import spent

            bits += spent(usage)
        self.progress.update(progress.done, " · ".join(bits))

    def finish(self, session: Session) -> int:
        self.progress.clear()
        if not self.as_json and self.only is not None and not self.failed:
            from .render import scorecard

            scorecard(self.only, self.verbose)
        elif not self.as_json and self.rows:
            from .render import rows

            rows(self.rows)
        if self.done + self.failed > 1:
            bits = [f"{self.done} scored"]
            if self.partial:
                bits.append(f"{self.partial} of them with unscored stages")
            if self.unread:
                bits.append(f"{self.unread} with codes that the judge did not read")
            if self.failed:
                bits.append(f"{self.failed} could not be read")
            console.note(", ".join(bits), self.quiet)
        if session.apart:
            console.note(f"{session.apart} of another track than the given rubric, judged by their own", self.quiet)
        if session.usage.calls:
            from .render import spent

            console.note(", ".join(spent(session.usage, "${:.4f}")), self.quiet)
        if session.summary.interrupted:
            console.note("interrupted: what was judged is kept; the same command goes on from there", self.quiet)
            return 130
        if not self.done:
            return 2
        return 1 if self.failed or self.partial or self.unread else 0
