"""ambjudge score: runs to scorecards."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import console
from ..config import load
from ..errors import InputError
from ..trajectories.reading.remote import is_address
from .card_files import CardFile, Part, place_of
from .options import (
    JSON,
    PATHS_OR_ADDRESSES,
    check_can_label_stages,
    judge_of,
    judge_options,
    open_session_store,
    policy_options,
    question_options,
    run_options,
    score_options,
    scorer_of,
    spread_options,
    work_options,
)
from .path_types import PathOrAddress

if TYPE_CHECKING:
    from ..judge.base import Judge, Usage
    from ..judge.card.read_share import Standing
    from ..judge.card.scorecard import ScoreCard
    from ..judge.runner import Progress
    from ..judge.session import ScoreOptions, ScoreOutcome, Session
    from ..judge.store import Store
    from .render import Row


@click.command(
    "score",
    epilog=(
        "\b\nExamples:\n  ambjudge score runs/elm-chest-1\n  ambjudge score runs/ --judge"
        " anthropic/claude-sonnet-4-5 --json --out cards.jsonl"
    ),
)
@PATHS_OR_ADDRESSES
@judge_options
@question_options
@JSON
@click.option(
    "--out", metavar="FILE|URL", type=PathOrAddress(), help="Write scorecards (JSON Lines) as well."
)
@spread_options
@run_options
@policy_options
@work_options
@click.pass_obj
def command(obj: dict[str, Any], /, paths: tuple[str, ...], **flags: Any) -> int:
    """Score runs: a conversation.json, a run folder, or every run below a folder or an address
    (s3://bucket/runs).

    S1-S3 are judged against the track's rubric, S4-S5 checked from the output files. --track and
    --tier say what the files do not.
    """
    if (flags["dry_run"] or flags["batch"]) and (
        there := [path for path in paths if is_address(path)]
    ):
        raise InputError(
            "--dry-run and --batch plan runs of this machine alone",
            "leave them out, or copy the runs",
            there[0],
        )
    if flags["dry_run"]:
        from .rejudge import run as plan

        return plan(obj, paths, {**flags, "verify_files": False})
    return run(obj, paths, flags)


def run(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 when something could not be scored; 2 when nothing could be read."""
    import asyncio

    from ..judge.base import extra_questions
    from ..judge.run_sources import run_sources
    from ..judge.session import collect_cards, unchanged_cards

    settings = load(obj["config"])
    judge = judge_of(settings, flags)
    options = score_options(settings, flags)
    check_can_label_stages(judge, options.questions)
    with ExitStack() as stack:
        # Nothing is made where nothing is to be read; what is wrong with the paths is told when
        # they are read.
        store = None
        if there := tuple(path for path in paths if next(run_sources([path])).error is None):
            store = open_session_store(
                there, settings, flags, judge, stack, obj["quiet"], required=flags["batch"]
            )
        if flags["batch"] and store is not None:
            if _through_batch(paths, judge, options, store, flags["wait"], obj["quiet"]):
                return 1
            options = replace(options, stored_only=True)
        read = options.questions.diagnosis and "diagnosis" in extra_questions(judge)
        shard, part, runs = flags["shard"], None, paths
        out = None if not flags["out"] else place_of(flags["out"])
        if shard is not None:
            runs, options = shard.slice(run_sources(paths)), shard.share(options)
            files = [source.path for source in runs]
            part = Part(shard.file(out), files, judge, options)
            out = part.file
            if (code := part.said(obj["quiet"])) is not None:
                return code
        sink = _Sink(obj, flags, stack, read, out, stored=store is not None)
        kept = None if store is None else unchanged_cards(store, judge, options)

        async def work() -> Session:
            async with scorer_of(settings, flags, judge, options, store) as scorer:
                return await collect_cards(
                    scorer, runs, sink.take, unchanged=kept, on_progress=sink.tell
                )

        code = sink.finish(asyncio.run(work()))
        if part is not None and code in (0, 1) and not sink.retriable:
            part.note(sink.done, code)
        return code


def _through_batch(
    paths: tuple[str, ...],
    judge: Judge,
    options: ScoreOptions,
    store: Store,
    wait_s: float,
    quiet: bool,
) -> int:
    """Send what the store lacks, collect what is answered; how many batches the provider still
    works on.

    Runs that cannot be read are named when the rest is scored.
    """
    from ..judge.rejudge.staleness import plan_rejudge
    from ..judge.run_sources import run_sources
    from .batch_step import step

    runs = [source.path for source in run_sources(paths) if source.error is None]
    scope = options.scope()
    bar = console.Progress("planned", len(runs), quiet)
    made = plan_rejudge(store, runs, judge, scope, on_progress=bar.update)
    bar.clear()
    return step(made, store, judge, options.max_cost, wait_s, quiet).still_open


class _Sink:
    """Takes outcomes as they come: JSON at once, people's tables at the end, errors to stderr at
    once."""

    def __init__(
        self,
        obj: dict[str, Any],
        flags: dict[str, Any],
        stack: ExitStack,
        read: bool,
        out: Path | None,
        stored: bool = True,
    ) -> None:
        """`read`: the judge is asked which codes apply, so that one it did not read is something
        that failed. `stored`: what was judged is kept in a store."""
        self.read, self.stored = read, stored
        self.quiet, self.verbose, self.as_json = obj["quiet"], obj["verbose"] > 0, flags["as_json"]
        self.file = CardFile(out, stack) if out else None
        self.progress = console.Progress("scored", None, self.quiet)
        stack.callback(self.progress.clear)
        self.only: ScoreCard | None = None
        self.rows: list[Row] = []
        self.done = self.failed = self.partial = self.unread = 0
        self.quotes = self.found = self.contradicted = 0
        self.strict = False
        self.standings: Counter[Standing] = Counter()
        self.shares: list[float] = []
        self.missed: Counter[str] = Counter()
        """Criteria without a verdict, by reason."""

    @property
    def retriable(self) -> dict[str, int]:
        """Criteria that the same command would ask for once more, by reason, the commonest first."""
        from ..judge.base import RETRIABLE

        return {reason: n for reason, n in self.missed.most_common() if reason in RETRIABLE}

    def take(self, outcome: ScoreOutcome) -> None:
        if outcome.scored is None:
            self.failed += 1
            self.progress.clear()
            console.error(outcome.error)
            return
        gist, line = (
            outcome.scored.gist,
            outcome.scored.to_json() if self.as_json or self.file is not None else "",
        )
        self.done += 1
        self.partial += gist.incomplete
        self.standings[gist.standing] += 1
        self.shares += (
            [] if gist.read_share is None or gist.standing == "read" else [gist.read_share]
        )
        self.quotes, self.found = self.quotes + gist.quotes, self.found + gist.found
        self.contradicted += gist.contradictions
        self.strict |= gist.strict
        self.missed.update(gist.missed)
        self.unread += self.read and gist.codes_unread
        if self.file is not None:
            self.file.write(line)
        if self.as_json:
            console.raw(line)
        elif (card := outcome.card) is not None:
            from .render import row

            self.only = card if self.done == 1 else None
            self.rows.append(row(card))

    def tell(self, progress: Progress, usage: Usage) -> None:
        """A status line: runs, failures, money."""
        bits = [f"{self.failed} could not be read"] if self.failed else []
        bits += [f"{count} unscored: {reason}" for reason, count in self.retriable.items()]
        if usage.calls:
            from ..judge.card.view import usage_parts

            bits += usage_parts(usage)
        self.progress.total = progress.total
        self.progress.update(progress.done, " · ".join(bits))

    def finish(self, session: Session) -> int:
        self.progress.clear()
        if not self.as_json and self.only is not None and not self.failed:
            from .render import scorecard

            scorecard(self.only, self.verbose)
        elif not self.as_json and self.rows:
            from .render import proof, rows, unread

            rows(self.rows)
            if self.standings.keys() - {"read"}:
                mean = sum(self.shares) / len(self.shares) if self.shares else None
                console.say(unread(self.standings, mean))
            if line := proof(self.quotes, self.found, self.contradicted, self.strict):
                console.say(line)
        if self.done + self.failed > 1:
            bits = [f"{self.done} scored"]
            if self.partial:
                bits.append(f"{self.partial} of them with unscored stages")
            if self.unread:
                bits.append(f"{self.unread} with codes that the judge did not read")
            if self.failed:
                bits.append(f"{self.failed} could not be read")
            console.note(", ".join(bits), self.quiet)
        if self.missed:
            from .render import limits

            for line in limits(self.missed):
                console.note(line, self.quiet)
        if session.foreign_track_runs:
            console.note(
                f"{session.foreign_track_runs} of another track than the given rubric, judged by their own",
                self.quiet,
            )
        if session.usage.calls:
            from .render import bill

            console.note(bill(session.usage), self.quiet)
        if session.summary.interrupted:
            if self.stored:
                console.interrupted("judged", self.quiet)
            if self.file is not None:
                console.note(self.file.leave(), self.quiet)
            return 130
        if self.file is not None:
            self.file.keep()
        if not self.done:
            return 2
        return 1 if self.failed or self.partial or self.unread else 0
