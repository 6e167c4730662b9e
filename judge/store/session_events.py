"""What a store notes of a command that judges: who, when, by which judge, and what came of it."""

from __future__ import annotations

import getpass
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from ..base import Usage
from . import Store

STARTED = "batch_started"
"""Kind of the event that begins a session of judging; those that end it are
batch_finished, batch_interrupted and batch_failed."""


@dataclass
class SessionEvent:
    """What came of a session; whoever judges fills it in."""

    usage: Usage = field(default_factory=Usage)
    counts: Mapping[str, Any] = field(default_factory=dict)
    interrupted: bool = False


@contextmanager
def noted_session(store: Store, command: str, judge: str, **planned: int) -> Iterator[SessionEvent]:
    """Note the beginning and the end of a session of judging; `planned`: its extent."""
    batch = uuid.uuid4().hex
    started = {"command": command, "user": _user(), "judge": judge, **planned}
    store.add_event(STARTED, started, batch)
    session = SessionEvent()
    ending = "batch_failed"
    try:
        yield session
        ending = "batch_interrupted" if session.interrupted else "batch_finished"
    finally:
        store.add_event(ending, {**session.counts, **asdict(session.usage)}, batch)


def _user() -> str | None:
    """The name of the user of this process; None if the system does not say."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None
