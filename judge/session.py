"""Many runs: read one at a time, judged at the same time, returned in order; one bad run never stops the others."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import AmbjudgeError, InputError
from ..rubrics.load import load_rubric
from ..rubrics.model import Rubric
from ..trajectories.layout import find_conversations
from ..trajectories.load import load_conversation
from ..trajectories.models import Tier, Track
from .base import Judge
from .engine import score_run
from .scorecard import Policy, ScoreCard


@dataclass(frozen=True)
class Outcome:
    """What became of one conversation file (or of a path that holds none): a scorecard, or the error that stopped it."""

    path: Path
    card: ScoreCard | None = None
    error: AmbjudgeError | None = None


@dataclass(frozen=True)
class ScoreOptions:
    """How runs are scored. `track` and `tier` stand where the files do not say; `concurrency` counts runs."""

    rubric: str | Path | None = None
    policy: Policy = field(default_factory=Policy)
    public: Path | None = None
    track: Track | None = None
    tier: Tier | None = None
    concurrency: int = 8


def conversations(paths: Iterable[str | Path]) -> Iterator[Path | Outcome]:
    """Every conversation file at or below the paths; a path without any comes as an Outcome with its error."""
    for path in paths:
        try:
            yield from find_conversations(Path(path))
        except InputError as error:
            yield Outcome(Path(path), error=error)


async def score_many(paths: Iterable[str | Path], judge: Judge, options: ScoreOptions) -> AsyncIterator[Outcome]:
    """Outcomes in the order of the paths. At most `concurrency` runs are in memory.

    JudgeError (the judge cannot be used at all) ends the whole batch; every other error belongs to its run.
    """
    rubric = load_rubric(options.rubric) if options.rubric else None
    waiting: deque[asyncio.Task[Outcome]] = deque()
    try:
        for item in conversations(paths):
            work = _done(item) if isinstance(item, Outcome) else _score(item, judge, rubric, options)
            waiting.append(asyncio.create_task(work))
            while len(waiting) >= max(1, options.concurrency):
                yield await waiting.popleft()
        while waiting:
            yield await waiting.popleft()
    finally:
        for task in waiting:
            task.cancel()


async def _done(outcome: Outcome) -> Outcome:
    return outcome


async def _score(path: Path, judge: Judge, rubric: Rubric | None, options: ScoreOptions) -> Outcome:
    try:
        run = load_conversation(path)
        named = {"track": run.track or options.track, "tier": run.tier or options.tier}
        run = run.model_copy(update=named)
        card = await score_run(run, judge, rubric=rubric, policy=options.policy, public=options.public)
    except InputError as error:
        return Outcome(path, error=error)
    return Outcome(path, card=card)
