"""Watching runs while agents work: what each look at their files shows that the last one did not.

`Watcher.look` is one look at all runs of a folder. A run whose files are unchanged costs a `stat`
of each; of a run only what was reported of it stays in memory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from ..errors import AmbjudgeError, InputError, unexpected
from ..trajectories.models import Frozen, Run
from ..trajectories.reading.layout import find_conversations, run_folder
from ..trajectories.reading.load import load_conversation
from ..trajectories.reading.running import as_running, last_written
from .card.scorecard import ScoreCard
from .engine import make_scorecard
from .session import ScoreOptions

EventKind = Literal["code", "ended", "rescored", "resumed"]
_Signature = tuple[tuple[str, int, int], ...]
"""Name, time and size of every file that tells whether a run changed."""


class RunEvent(Frozen):
    """Something that happened in a run, or became known of it, since the last look."""

    event: EventKind
    """code: one fired for the first time; ended; rescored: a report or another file changed the
    scores of a run that had ended; resumed: a run that had ended goes on."""
    run: str
    path: str
    """The conversation file."""
    turns: int
    """Turns so far."""
    code: str | None = None
    stage: str | None = None
    code_turns: tuple[int, ...] = ()
    """The turns that show the code."""
    why: str = ""
    """The code in one sentence, with the words of the run that it rests on."""
    by: str | None = None
    ended: str | None = None
    """How the run ended: submitted, stopped, breach or cut."""
    codes: tuple[str, ...] = ()
    """All codes of a run that has ended."""
    scores: dict[str, float | None] = Field(default_factory=dict)
    """S1 to S5, agentic, task (0 to 1) and overall (0 to 100) of a run that has ended."""
    presumed: tuple[str, ...] = ()
    """Names of the scores that rest on criteria that nobody judged."""


@dataclass
class _Watched:
    """What is remembered of a run between two looks."""

    signature: _Signature
    fired: set[str] = field(default_factory=set)
    ended: str | None = None
    """None while the run goes on, and before it could be read."""
    scores: dict[str, float | None] = field(default_factory=dict)
    may_end_at: float | None = None
    """When a run that goes on counts as cut off, unless its files change before."""
    is_settling: bool = False
    """Whether the last change may have been a closing message; unchanged a look later, it was."""
    error: str = ""


@dataclass
class Tally:
    """What was seen so far."""

    codes: dict[str, int] = field(default_factory=dict)
    """Code -> runs in which it fired."""
    taken_back: int = 0
    """Codes that fired while a run went on and that its scorecard does not have in the end."""
    gone: int = 0
    """Runs whose files vanished."""


class Watcher:
    """Looks at the runs at or below a path, again and again; rules alone judge."""

    def __init__(
        self, path: Path, options: ScoreOptions, clock: Callable[[], float] = time.time
    ) -> None:
        """InputError if the path does not exist."""
        if not path.exists():
            raise InputError("no such file or folder", "give a folder of runs", path)
        self._path = path
        self._options = options
        self._scope = replace(options, running=replace(options.running, clock=clock)).scope()
        self._clock = clock
        self._runs: dict[Path, _Watched] = {}
        self.tally = Tally()

    @property
    def running(self) -> int:
        """Runs that go on."""
        return sum(watched.ended is None for watched in self._runs.values())

    @property
    def ended(self) -> int:
        """Runs that have ended."""
        return len(self._runs) - self.running

    @property
    def errors(self) -> tuple[str, ...]:
        """Why runs could not be read at the last look."""
        return tuple(watched.error for watched in self._runs.values() if watched.error)

    @property
    def is_done(self) -> bool:
        """Whether there are runs and all of them have ended."""
        return bool(self._runs) and not self.running

    def look(self) -> Iterator[RunEvent]:
        """What happened since the last look, in the order of the runs."""
        present = set()
        for path in self._conversations():
            present.add(path)
            signature = _signature(path)
            watched = self._runs.get(path)
            if watched is None:
                watched = self._runs[path] = _Watched(())
            if signature and self._is_due(watched, signature):
                yield from self._look_at(path, watched, signature)
        for path in self._runs.keys() - present:
            del self._runs[path]
            self.tally.gone += 1

    def _conversations(self) -> list[Path]:
        try:
            return list(find_conversations(self._path))
        except InputError:  # none yet, or none any more
            return []

    def _is_due(self, watched: _Watched, signature: _Signature) -> bool:
        if watched.signature != signature or watched.is_settling:
            return True
        return watched.may_end_at is not None and self._clock() >= watched.may_end_at

    def _look_at(self, path: Path, watched: _Watched, signature: _Signature) -> Iterator[RunEvent]:
        is_changed = watched.signature != signature
        watched.signature = signature
        try:
            loaded = load_conversation(path)
            run = self._scope.apply(loaded)
            watched.is_settling = is_changed and _ended_by_message(run)
            if watched.is_settling:
                run = as_running(run)
            card = make_scorecard(
                run,
                rubric=self._scope.rubric_of(run.track, run.task),
                policy=self._options.policy,
                public=self._options.public,
            )
        except AmbjudgeError as error:
            # Half a file, or one that vanished: what was seen of the run before stands.
            watched.error = str(error)
            return
        except Exception as error:
            watched.error = str(unexpected(error, path))
            return
        watched.error = ""
        watched.may_end_at = self._end_by_age(run)
        yield from self._events(path, watched, card)

    def _end_by_age(self, run: Run) -> float | None:
        written = last_written(run) if run.status.ended == "running" else None
        return None if written is None else written + 60 * self._scope.running.young_minutes

    def _events(self, path: Path, watched: _Watched, card: ScoreCard) -> Iterator[RunEvent]:
        about = RunEvent(event="resumed", run=card.run.id, path=str(path), turns=card.run.turns)
        codes = {code.code: code for code in card.codes if code.taxonomy == "paper"}
        is_running = card.status.ended == "running"
        if is_running and watched.ended is not None:
            yield about
            watched.ended, watched.scores = None, {}
        for name in sorted(codes.keys() - watched.fired):
            fired = codes[name]
            watched.fired.add(name)
            self.tally.codes[name] = self.tally.codes.get(name, 0) + 1
            yield about.model_copy(
                update={
                    "event": "code",
                    "code": name,
                    "stage": fired.stage,
                    "code_turns": fired.turns,
                    "why": fired.why,
                    "by": fired.by,
                }
            )
        if is_running:
            return
        before, scores = watched.ended, _scores(card)
        if before is None:
            self.tally.taken_back += len(watched.fired - codes.keys())
        if before != card.status.ended or scores != watched.scores:
            watched.ended, watched.scores = card.status.ended, scores
            yield about.model_copy(
                update={
                    "event": "ended" if before is None else "rescored",
                    "ended": card.status.ended,
                    "codes": tuple(sorted(codes)),
                    "scores": scores,
                    "presumed": _presumed(card),
                }
            )


def _ended_by_message(run: Run) -> bool:
    """Whether only a closing message, which may still be answered, shows that a run ended."""
    if run.status.ended not in ("stopped", "submitted") or run.status.end_recorded:
        return False
    return not any(action.kind == "submit" for _, action in run.actions())


def _scores(card: ScoreCard) -> dict[str, float | None]:
    stages: dict[str, float | None] = {name: stage.score for name, stage in card.stages.items()}
    is_point = card.standing != "open"
    return stages | {
        "agentic": card.agentic if is_point else None,
        "task": card.task,
        "overall": card.overall if is_point else None,
    }


def _presumed(card: ScoreCard) -> tuple[str, ...]:
    stages = tuple(name for name, stage in card.stages.items() if stage.presumed)
    return (*stages, "agentic", "overall") if stages else ()


def _signature(path: Path) -> _Signature:
    """The files beside a conversation and in its run's folder; empty if the run has vanished."""
    folders = dict.fromkeys((os.fspath(path.parent), os.fspath(run_folder(path))))
    entries: list[tuple[str, int, int]] = []
    try:
        for folder in folders:
            with os.scandir(folder) as listing:
                for entry in listing:
                    if entry.is_file():
                        status = entry.stat()
                        entries.append((entry.path, status.st_mtime_ns, status.st_size))
    except OSError:
        return ()
    return tuple(sorted(entries))
