"""Questions to a judge about runs without scoring them, as `codes` and `segment` put them: one pass
over the runs; the store keeps the answers like verdicts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import console
from ..errors import AmbjudgeError

if TYPE_CHECKING:
    from ..config import Settings
    from ..judge.base import Judge, QuestionName, Reply
    from ..judge.engine import PreparedRun
    from ..judge.runner import Progress
    from ..judge.session import ScoreOptions


@dataclass(frozen=True)
class Reading:
    """A run and the judge's reply to each question."""

    prepared: PreparedRun
    replies: Mapping[QuestionName, Reply]
    precision: Mapping[str, float] | None = None
    """By code, the share of this judge's findings that labels in the store confirm."""

    @property
    def failures(self) -> Counter[str]:
        """Items without an answer, by reason; "cannot tell" is an answer."""
        results = (result for reply in self.replies.values() for result in reply.results)
        return Counter(
            result.reason or "judge_error"
            for result in results
            if result.status == "unscored" and result.reason != "no_evidence"
        )


def read_runs(
    obj: dict[str, Any],
    paths: tuple[str, ...],
    settings: Settings,
    flags: Mapping[str, Any],
    judge: Judge,
    options: ScoreOptions,
    show: Callable[[Reading], None],
) -> int:
    """Ask about every run what `options.questions` names and show each reading, in the order of the
    paths; the exit code.

    Answers in the store are not asked for again; `flags` has --store and --where. Stderr names what
    could not be read, what failed, and what it cost.
    """
    from ..judge.engine import ask_all
    from ..judge.judges.limits import GuardedJudge, Pacer
    from ..judge.judges.panel import with_voters
    from ..judge.run_sources import for_each_run
    from ..trajectories.reading.load import load_conversation
    from .runs import matching_paths
    from .sessions import existing_paths, open_session_store
    from .spending import within_budget

    quiet, scope = obj["quiet"], options.scope()
    with ExitStack() as stack:
        store = None
        existing = existing_paths(paths)
        if existing:
            store = open_session_store(
                existing, settings, flags["store"], stack, judge=judge, quiet=quiet
            )
        options, _ = within_budget(store, settings, flags, options)
        pacer, budget = Pacer(options.concurrency), options.budget()
        reader = with_voters(judge, lambda voting: GuardedJudge(voting, pacer, budget))
        precision: Mapping[str, float] = {}
        if store is not None:
            from ..judge.store.reuse import StoredJudge
            from ..judge.trust.judge_precision import precision_by_code

            reader = with_voters(reader, partial(StoredJudge, store=store))
            precision = precision_by_code(store, judge.name)

        async def read(path: Path) -> Reading:
            prepared = scope.prepare(scope.apply(load_conversation(path)), options.policy)
            replies = await ask_all(reader, prepared.requests(reader))
            return Reading(prepared, replies, precision)

        results = _Results(show, quiet)
        stack.callback(results.progress.clear)
        summary = asyncio.run(
            for_each_run(
                matching_paths(obj, paths, flags),
                read,
                results.take,
                concurrency=options.concurrency,
                on_progress=results.show_progress,
            )
        )
    return results.finish(summary.interrupted)


class _Results:
    """Shows readings as they come and counts what failed."""

    def __init__(self, show: Callable[[Reading], None], quiet: bool) -> None:
        from ..judge.base import Usage

        self.show = show
        self.quiet = quiet
        self.progress = console.Progress("read", None, quiet)
        self.read = 0
        self.unreadable = 0
        self.usage = Usage()
        self.failures: Counter[str] = Counter()

    def take(self, _path: Path, item: Reading | AmbjudgeError) -> None:
        """Show a reading, or name the run that could not be read."""
        from ..judge.base import total_usage

        self.progress.clear()
        if isinstance(item, AmbjudgeError):
            self.unreadable += 1
            console.error(item)
            return
        self.read += 1
        self.usage += total_usage(item.replies.values())
        self.failures.update(item.failures)
        self.show(item)

    def show_progress(self, progress: Progress) -> None:
        """A status line: runs and cost."""
        from ..judge.card.view import usage_parts

        cost = " · ".join(usage_parts(self.usage)) if self.usage.calls else ""
        self.progress.total = progress.total
        self.progress.update(progress.done, cost)

    def finish(self, interrupted: bool) -> int:
        """Say what it cost and what is missing; the exit code."""
        from .render import bill

        if self.usage.calls:
            console.note(bill(self.usage), self.quiet)
        if self.failures:
            reasons = ", ".join(f"{reason} {n}" for reason, n in self.failures.most_common())
            console.note(f"{self.failures.total()} answers are missing: {reasons}", self.quiet)
        if interrupted:
            console.note_interrupted(self.quiet)
            return 130
        if self.unreadable and not self.read:
            return 2
        return 1 if self.unreadable or self.failures else 0
