"""Campaigns: one judge asked about many runs, as `score`, `rejudge` and `ask` do.

`campaign` decides from the flags how the calls are made: not at all (--dry-run), through the
provider's batch endpoint (--batch), from this process, or from several workers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from .. import console
from ..config import Settings
from ..errors import InputError
from .open_batches import note_open_batches, reserved_usd
from .sessions import judge_names, judge_options
from .shards import Part, Shard

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from ..judge.base import Judge
    from ..judge.card.fields import Policy
    from ..judge.provider_batch.collecting import Collected
    from ..judge.provider_batch.sending import Submission
    from ..judge.rejudge.selection import ItemSelection
    from ..judge.rejudge.staleness import RejudgePlan
    from ..judge.scope import Scope
    from ..judge.select import JudgeOptions
    from ..judge.session import ScoreOptions, Scorer
    from ..judge.store import Store

T = TypeVar("T")
Result = TypeVar("Result")


@dataclass(frozen=True)
class RunFlags:
    """How a campaign is run: the flags of `campaign_options` over the settings."""

    judges: tuple[str, ...]
    """Names of the judges; none: the rules."""
    judge_options: JudgeOptions
    dry_run: bool
    batch: bool
    ask_open: bool
    """Whether what waits in an open batch is asked too."""
    wait_s: float
    """Seconds that --batch waits for answers."""
    workers: int
    use_ray: bool
    address: str | None
    """Of the Ray cluster; None: a new one on this machine."""
    shard: Shard | None

    def judge(self) -> Judge:
        """The judge of these names and options."""
        from ..judge.select import make_judge

        return make_judge(self.judges, self.judge_options)


def read_run_flags(settings: Settings, flags: Mapping[str, Any]) -> RunFlags:
    """Read the flags of a campaign.

    ConfigError for an impossible shard; InputError for the address of a Ray cluster that is not
    used.
    """

    def value(name: str) -> Any:
        return settings.get(name, flags.get(name))

    use_ray = value("engine") == "ray"
    if flags.get("address") and not use_ray:
        raise InputError("--address is the address of a Ray cluster", "add --engine ray")
    return RunFlags(
        judges=judge_names(settings, flags),
        judge_options=judge_options(settings, flags),
        dry_run=flags["dry_run"],
        batch=flags["batch"],
        ask_open=flags.get("ask_open", False),
        wait_s=value("wait") or 0.0,
        workers=value("workers") or 1,
        use_ray=use_ray,
        address=value("address"),
        shard=Shard.parse(value("shard")) if value("shard") else None,
    )


def with_default_judge(
    run_flags: RunFlags, policy: Policy, paths: Sequence[str], quiet: bool
) -> RunFlags:
    """The flags with who judges these runs if nobody is named; a note says so."""
    from ..judge.run_sources import run_sources
    from ..judge.select import default_judges

    if run_flags.judges:
        return run_flags
    judges = default_judges(policy, (source.path for source in run_sources(paths)))
    if judges:
        console.note(
            "S1-S3 are taken as the harness's reports state them (--judge NAME has others)", quiet
        )
    return replace(run_flags, judges=judges)


class Work(Protocol[Result]):
    """What one command does in a campaign."""

    def plan(self) -> RejudgePlan:
        """What is missing."""

    def show_forecast(self, plan: RejudgePlan) -> int:
        """Show what the calls would cost; the exit code."""

    def finish_batch(self, plan: RejudgePlan, step: BatchStep) -> int:
        """Use the answers when the provider has returned all of them; the exit code."""

    async def carry_out(self, scorer: Scorer) -> Result:
        """Ask what is missing, now."""

    def report(self, result: Result) -> int:
        """Show what came of it; the exit code."""


def campaign(
    work: Work[Result],
    *,
    flags: RunFlags,
    judge: Judge,
    options: ScoreOptions,
    store: Store | None,
    quiet: bool,
) -> int:
    """Carry out the work in the way that the flags ask for; the exit code.

    1 while the provider still works on a batch.
    """
    if store is not None and not flags.batch:
        note_open_batches(store, asks_open=flags.ask_open, quiet=quiet)
    if flags.dry_run:
        return work.show_forecast(work.plan())
    if flags.batch:
        assert store is not None
        plan = work.plan()
        step = exchange_batches(plan, store, judge, options.max_cost, flags.wait_s, quiet)
        return 1 if step.still_open else work.finish_batch(plan, step)
    return judge_runs(work, flags=flags, judge=judge, options=options, store=store)


def judge_runs(
    work: Work[Result],
    *,
    flags: RunFlags,
    judge: Judge,
    options: ScoreOptions,
    store: Store | None,
) -> int:
    """Do the work with calls made now, from this process or from workers; the exit code."""

    async def judge_all() -> Result:
        if flags.workers == 1 and not flags.use_ray:
            from ..judge.session import make_scorer

            return await work.carry_out(make_scorer(judge, options, store))
        async with _workers(flags, options, store) as scorer:
            return await work.carry_out(scorer)

    return work.report(asyncio.run(judge_all()))


def _workers(
    flags: RunFlags, options: ScoreOptions, store: Store | None
) -> AbstractAsyncContextManager[Scorer]:
    """The worker processes, or the workers on a Ray cluster."""
    from functools import partial

    from ..judge.spread.workers import WorkerPool, WorkerSettings

    engine = None
    if flags.use_ray:
        from ..judge.spread.ray_workers import RayCluster

        engine = partial(RayCluster, address=flags.address)
    store_location = None if store is None else (store.address, store.root)
    settings = WorkerSettings(options, flags.judges, flags.judge_options, store_location)
    return WorkerPool(flags.workers, settings, engine)


# Shards


def select_shard(
    flags: RunFlags, runs: Iterable[T], options: ScoreOptions
) -> tuple[Iterable[T], ScoreOptions]:
    """The runs of this shard and its share of the budget; everything without --shard."""
    if flags.shard is None:
        return runs, options
    return flags.shard.slice(runs), flags.shard.share(options)


def open_part(
    flags: RunFlags,
    out: Path | None,
    files: Iterable[Path],
    judge: Judge,
    options: ScoreOptions,
) -> Part | None:
    """The file of this shard in the folder --out; None without --shard, or in a dry run."""
    if flags.shard is None or flags.dry_run:
        return None
    return Part(flags.shard.file(out), files, judge, options)


# Plans and batches


def make_plan(
    store: Store,
    runs: Sequence[Path],
    judge: Judge,
    scope: Scope,
    quiet: bool,
    verify_files: bool = False,
    batch: bool = False,
    ask_open: bool = False,
    selection: ItemSelection | None = None,
) -> RejudgePlan:
    """Find out which verdicts are missing or stale, with progress on stderr."""
    from ..judge.rejudge.staleness import plan_rejudge

    progress = console.Progress("planned", len(runs), quiet)
    plan = plan_rejudge(
        store,
        runs,
        judge,
        scope,
        verify=verify_files,
        batch=batch,
        ask_open=ask_open,
        selection=selection,
        on_progress=progress.update,
    )
    progress.clear()
    return plan


@dataclass(frozen=True)
class BatchStep:
    """What one command did with the provider's batches."""

    scored: int
    """Verdicts collected."""
    unscored: int
    """Criteria that failed."""
    still_open: int
    """Batches that the provider still works on."""
    over_budget: int
    """Requests that the cost limit held back."""


def exchange_batches(
    plan: RejudgePlan,
    store: Store,
    judge: Judge,
    max_cost: float | None,
    wait_s: float,
    quiet: bool,
) -> BatchStep:
    """Collect the answers to earlier batches, then send what is still missing and wait for it.

    A note says what happened.
    """
    from ..judge.judges.panel import voting_judges
    from ..judge.provider_batch import BatchOptions, collect, status, submit
    from ..judge.rejudge.staleness import planned_requests

    judges = voting_judges(judge)

    async def exchange() -> tuple[list[Collected], list[Submission]]:
        collected: list[Collected] = []
        sent: list[Submission] = []
        if status(store):
            collected += [await collect(store, voting) for voting in judges]
        deadline = time.monotonic() + wait_s
        spent = 0.0
        while True:
            limit = None if max_cost is None else max(0.0, max_cost - spent)
            latest = []
            for voting in judges:
                requests = planned_requests(plan, judge, voting)
                latest.append(await submit(store, voting, requests, BatchOptions(max_cost=limit)))
            sent += latest
            if any(part.batches or part.waiting for part in latest):
                remaining_s = max(0.0, deadline - time.monotonic())
                answered = [await collect(store, each, wait_s=remaining_s) for each in judges]
                collected += answered
                spent += sum(part.usage.cost_usd or 0.0 for part in answered)
            # What the limit reserved and the answers did not cost has room for more requests.
            has_more = any(part.over_budget for part in latest) and any(p.sent for p in latest)
            if not has_more or status(store):
                return collected, sent

    collected, sent = asyncio.run(exchange())
    warnings = [line for part in collected for line in part.warnings]
    warnings += [line for part in sent for line in part.warnings]
    for line in dict.fromkeys(warnings):
        console.note(f"ambjudge: {line}", quiet)
    step = BatchStep(
        scored=sum(part.scored for part in collected),
        unscored=sum(sum(part.unscored.values()) for part in collected),
        still_open=len(status(store)),
        over_budget=sum(part.over_budget for part in sent[-len(judges) :]),
    )
    _note_exchange(store, step, collected, sent)
    if step.still_open:
        console.note(
            "the provider is still working: the same command collects the answers later", quiet
        )
    return step


def _note_exchange(
    store: Store, step: BatchStep, collected: Sequence[Collected], sent: Sequence[Submission]
) -> None:
    """Say what was sent, collected and is open, with its cost."""
    from ..judge.base import Usage
    from ..judge.provider_batch import status

    batches = [batch for part in sent for batch in part.batches]
    spent = sum((part.usage for part in collected), Usage()).cost_usd
    console.note(
        f"requests: {sum(part.sent for part in sent)} sent in {len(batches)} new batches"
        f"{_up_to(reserved_usd(batches))}, {sum(part.waiting for part in sent)} waiting in earlier"
        f" ones, {step.over_budget} over the cost limit; verdicts: {step.scored} collected"
        f" ({_dollars(spent)}), {step.unscored} unscored; batches open: {step.still_open}"
        f"{_up_to(reserved_usd(status(store)))}"
    )
    twice = sum(part.bought_twice for part in collected)
    if twice:
        console.note(
            f"{console.counted(twice, 'answer')} of batches had been asked for in another way"
            " meanwhile, and were paid twice"
        )


def _up_to(cost_usd: float | None) -> str:
    """` (up to $0.12)`; nothing for no cost."""
    return "" if cost_usd == 0 else f" (up to {_dollars(cost_usd)})"


def _dollars(cost_usd: float | None) -> str:
    return "cost unknown" if cost_usd is None else f"${cost_usd:.4f}"
