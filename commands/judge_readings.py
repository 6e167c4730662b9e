"""Questions to a judge about runs, without scoring them: one pass over the runs, answers kept in the store like verdicts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import console
from ..errors import AmbjudgeError, ConfigError, JudgeError, StoreError, unexpected

if TYPE_CHECKING:
    from ..config import Settings
    from ..judge.base import Judge, QuestionName, Reply
    from ..judge.engine import Prepared
    from ..judge.runner import Progress
    from ..judge.session import Outcome, ScoreOptions

_AHEAD = 4
"""Runs read ahead of the oldest unfinished one, in multiples of the concurrency: results come in order."""


@dataclass(frozen=True)
class Read:
    """A run and what the judge said to each question."""

    ready: Prepared
    replies: Mapping[QuestionName, Reply]
    right: Mapping[str, float] | None = None
    """By code, the share of this judge's readings that labels in the store confirm."""

    @property
    def failed(self) -> Counter[str]:
        """Items without an answer, by reason; that a judge cannot tell is an answer."""
        results = (result for reply in self.replies.values() for result in reply.results)
        return Counter(
            r.reason or "judge_error" for r in results if r.status == "unscored" and r.reason != "no_evidence"
        )


def read_runs(
    obj: dict[str, Any],
    paths: tuple[str, ...],
    settings: Settings,
    flags: dict[str, Any],
    judge: Judge,
    options: ScoreOptions,
    take: Callable[[Read], None],
) -> int:
    """Ask every run what `options.wanted` says and hand each one on, in the order of the paths; the exit code.

    What the store has is not asked again. Says on stderr what could not be read, what failed, and what it cost.
    """
    from ..judge.base import Usage
    from .options import first_there, open_session_store
    from .render import bill, spent

    quiet = obj["quiet"]
    progress = console.Progress("read", None, quiet)
    done = lost = 0
    usage, failed = Usage(), Counter[str]()
    right: Mapping[str, float] = {}

    def put(item: Read | AmbjudgeError) -> None:
        nonlocal done, lost, usage
        progress.clear()
        if isinstance(item, AmbjudgeError):
            lost += 1
            console.error(item)
            return
        done += 1
        usage = sum((reply.usage for reply in item.replies.values()), usage)
        failed.update(item.failed)
        take(replace(item, right=right))

    def tell(now: Progress) -> None:
        progress.update(now.done, " · ".join(spent(usage)) if usage.calls else "")

    with ExitStack() as stack:
        stack.callback(progress.clear)
        reader: Judge = _guarded(judge, options)
        there = first_there(paths)
        store = None if there is None else open_session_store(there, settings, flags, judge, stack, quiet)
        if store is not None:
            from ..judge.store.reuse import StoredJudge
            from ..judge.trust.rightness import shares_right

            reader, right = StoredJudge(reader, store), shares_right(store, judge.name)
        interrupted = asyncio.run(_each(paths, reader, options, put, tell))
    if usage.calls:
        console.note(bill(usage), quiet)
    if failed:
        why = ", ".join(f"{reason} {count}" for reason, count in failed.most_common())
        console.note(f"{sum(failed.values())} answers are missing: {why}", quiet)
    if interrupted:
        console.interrupted("read", quiet)
        return 130
    return 2 if lost and not done else 1 if lost or failed else 0


def _guarded(judge: Judge, options: ScoreOptions) -> Judge:
    from ..judge.limits import Budget, GuardedJudge, Pacer

    budget = None if options.max_cost is None else Budget(options.max_cost)
    return GuardedJudge(judge, Pacer(options.concurrency), budget)


async def _each(
    paths: tuple[str, ...],
    judge: Judge,
    options: ScoreOptions,
    put: Callable[[Read | AmbjudgeError], None],
    tell: Callable[[Progress], None],
) -> bool:
    """Whether it was interrupted. A run that cannot be read or worked on is an error among the others."""
    from ..judge.engine import ask_all, prepare
    from ..judge.runner import run_batch
    from ..judge.session import Outcome, conversations
    from ..rubrics.load import load_rubric, rubric_for
    from ..trajectories.load import load_conversation

    given = load_rubric(options.rubric) if options.rubric else None
    room = asyncio.Semaphore(_AHEAD * options.concurrency)
    early: dict[int, Read | AmbjudgeError] = {}
    due = 0

    async def jobs() -> AsyncIterator[tuple[int, Path | Outcome]]:
        for number, item in enumerate(conversations(paths)):
            await room.acquire()
            yield number, item

    async def call(job: tuple[int, Path | Outcome]) -> Read | AmbjudgeError:
        item = job[1]
        if isinstance(item, Outcome):
            return item.error or AmbjudgeError(f"{item.path}: cannot be read")
        try:
            run = load_conversation(item)
            run = run.model_copy(update={"track": run.track or options.track, "tier": run.tier or options.tier})
            ready = prepare(
                run, rubric=rubric_for(run.track, run.task, given), policy=options.policy, public=options.public,
                wanted=options.wanted,
            )  # fmt: skip
            return Read(ready, await ask_all(judge, ready.requests(judge)))
        except (JudgeError, StoreError, ConfigError):
            raise
        except AmbjudgeError as error:
            return error
        except Exception as error:
            return unexpected(error, item)

    def ordered(job: tuple[int, Path | Outcome], result: Read | AmbjudgeError) -> None:
        nonlocal due
        early[job[0]] = result
        while due in early:
            put(early.pop(due))
            due += 1
            room.release()

    summary = await run_batch(jobs(), call, concurrency=options.concurrency, on_result=ordered, on_progress=tell)
    for number in sorted(early):
        put(early.pop(number))
    return summary.interrupted
