"""Questions to a judge about runs, without scoring them: one pass over the runs, answers kept in
the store like verdicts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import console
from ..errors import AmbjudgeError

if TYPE_CHECKING:
    from ..config import Settings
    from ..judge.base import Judge, QuestionName, Reply
    from ..judge.engine import Prepared
    from ..judge.runner import Progress
    from ..judge.session import ScoreOptions


@dataclass(frozen=True)
class Read:
    """A run and what the judge said to each question."""

    ready: Prepared
    replies: Mapping[QuestionName, Reply]
    precision: Mapping[str, float] | None = None
    """By code, the share of this judge's readings that labels in the store confirm."""

    @property
    def failed(self) -> Counter[str]:
        """Items without an answer, by reason; that a judge cannot tell is an answer."""
        results = (result for reply in self.replies.values() for result in reply.results)
        return Counter(
            r.reason or "judge_error"
            for r in results
            if r.status == "unscored" and r.reason != "no_evidence"
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
    """Ask every run what `options.questions` says and hand each one on, in the order of the paths; the
    exit code.

    What the store has is not asked again. Says on stderr what could not be read, what failed, and
    what it cost.
    """
    from ..judge.base import Usage, total_usage
    from ..judge.card.view import usage_parts
    from ..judge.engine import ask_all
    from ..judge.judges.limits import GuardedJudge, Pacer
    from ..judge.run_sources import for_each_run
    from ..trajectories.reading.load import load_conversation
    from .options import existing, open_session_store
    from .render import bill

    quiet, scope = obj["quiet"], options.scope()
    progress = console.Progress("read", None, quiet)
    done = lost = 0
    usage, failed = Usage(), Counter[str]()
    precision: Mapping[str, float] = {}

    def put(_: Path, item: Read | AmbjudgeError) -> None:
        nonlocal done, lost, usage
        progress.clear()
        if isinstance(item, AmbjudgeError):
            lost += 1
            console.error(item)
            return
        done += 1
        usage += total_usage(item.replies.values())
        failed.update(item.failed)
        take(replace(item, precision=precision))

    def tell(now: Progress) -> None:
        progress.update(now.done, " · ".join(usage_parts(usage)) if usage.calls else "")

    with ExitStack() as stack:
        stack.callback(progress.clear)
        reader: Judge = GuardedJudge(judge, Pacer(options.concurrency), options.budget())
        there = existing(paths)
        store = (
            None if not there else open_session_store(there, settings, flags, judge, stack, quiet)
        )
        if store is not None:
            from ..judge.store.reuse import StoredJudge
            from ..judge.trust.judge_precision import shares_right

            reader, precision = StoredJudge(reader, store), shares_right(store, judge.name)

        async def read(path: Path) -> Read:
            ready = scope.prepare(scope.apply(load_conversation(path)), options.policy)
            return Read(ready, await ask_all(reader, ready.requests(reader)))

        summary = asyncio.run(
            for_each_run(paths, read, put, concurrency=options.concurrency, on_progress=tell)
        )
    if usage.calls:
        console.note(bill(usage), quiet)
    if failed:
        why = ", ".join(f"{reason} {count}" for reason, count in failed.most_common())
        console.note(f"{sum(failed.values())} answers are missing: {why}", quiet)
    if summary.interrupted:
        console.interrupted("read", quiet)
        return 130
    return 2 if lost and not done else 1 if lost or failed else 0
