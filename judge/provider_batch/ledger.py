"""What was handed to provider batches, noted as events of the store before and after every step.

A batch has an id of our own, which the provider keeps in the batch's metadata. Its steps, in order:

    parts, planned   which requests it stands for; from here on nobody else asks for their verdicts
    uploaded         the input file is at the provider (costs nothing)
    creating         about to create the batch: from here on it may exist and be paid for
    created          the provider's id is known
    closed           answered and stored, or never created; verdicts that it did not answer may be
                     asked again, and its parts leave the store

A crash leaves the batch in its last noted step. Only one that stopped at `creating` is in doubt;
see provider_batch. litellm remembers no batch, and the store must know what is paid for.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ...errors import StoreError
from ...rubrics.model import Rubric
from ...trajectories.models import Tier, TrackName
from ..base import QuestionName
from ..questions.verdict_keys import JudgeIdentity
from ..store import Store
from ..store.pruning import prune_events

Step = Literal["planned", "uploaded", "creating", "created", "closed"]

_STEP_EVENT = "provider_batch"
PART_EVENT = "provider_batch_part"
"""Kind of the events that hold the requests of a batch."""
_REQUESTS_PER_PART = 1_000
_MAX_OWNED_S = 3_600.0
"""For so long an unfinished batch belongs to the process that began it, if that process seems to
be alive or runs on another machine."""
_PLANNED_FIELDS = {"judge", "base", "requests", "lines", "reserved_usd", "owner"}
_LATER_FIELDS = ("file_id", "provider_id")


class BatchRequest(BaseModel):
    """One question of a batch: enough to read its answers in another process, long after."""

    model_config = ConfigDict(frozen=True)

    id: str
    """Hash of its verdict keys. Its line is called `<id>-0`."""
    path: str
    """Of the run, as the store keeps paths."""
    rubric_sha256: str
    question: QuestionName
    track: TrackName | None
    tier: Tier | None
    sample: int
    criteria: tuple[str, ...]
    """Ids of the items."""
    keys: tuple[str, ...]
    """Of the verdicts on `criteria`, in the same order."""
    evidence_sha256: str
    lines: int = 1
    """More in requests of older versions, which asked for several samples at once; then the lines
    are `<id>-0`, `<id>-1`, ..."""
    items: tuple[dict[str, Any], ...] = ()
    """The items that are no criteria of its rubric, as they were asked: they may have been edited
    since."""
    public: str | None = None
    """The public inputs that the facts were checked against."""

    @property
    def line_ids(self) -> list[str]:
        """The ids of its lines in the batch's files."""
        return [f"{self.id}-{number}" for number in range(self.lines)]


class OpenBatch(BaseModel):
    """A batch that is not closed."""

    model_config = ConfigDict(frozen=True)

    id: str
    judge: JudgeIdentity
    base: str
    """Address of the provider, without credentials."""
    requests: int
    lines: int
    reserved_usd: float | None
    """What a cost limit reserved for it; None if its price is unknown."""
    owner: str
    """The process that began it (`this_process`)."""
    planned_at: str = ""
    step: Step = "planned"
    noted_at: str = ""
    """When the last step was noted."""
    file_id: str | None = None
    provider_id: str | None = None

    @property
    def may_be_in_progress(self) -> bool:
        """Whether another process may still be about to create it."""
        return (
            self.provider_id is None
            and _is_other_live_process(self.owner)
            and age_s(self.noted_at) < _MAX_OWNED_S
        )


class Ledger:
    """Provider batches in a store's events."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def plan(
        self, batch: OpenBatch, requests: Sequence[BatchRequest], rubrics: Mapping[str, Rubric]
    ) -> None:
        """Claim the verdicts of `requests` for this batch; `rubrics` are theirs, by hash."""
        for start in range(0, len(requests), _REQUESTS_PER_PART):
            part = requests[start : start + _REQUESTS_PER_PART]
            rows = [request.model_dump() for request in part]
            self._store.add_event(PART_EVENT, {"requests": rows}, batch.id)
        rubric_rows = {sha256: rubric.model_dump(mode="json") for sha256, rubric in rubrics.items()}
        self._store.add_event(PART_EVENT, {"rubrics": rubric_rows}, batch.id)
        self.note(batch.id, "planned", **batch.model_dump(include=_PLANNED_FIELDS))

    def note(self, batch_id: str, step: Step, **details: Any) -> None:
        """Note that the batch has come to this step."""
        event = {"step": step, "batch": batch_id, **details}
        self._store.add_event(_STEP_EVENT, event, batch_id)

    def close(self, batch_id: str, why: str, **details: Any) -> None:
        """Note that a batch is closed, and why.

        Its requests, which nothing asks for any more, leave the store; a store that does not let
        this user delete keeps them.
        """
        self.note(batch_id, "closed", why=why, **details)
        with suppress(StoreError):
            prune_events(self._store, "requests", PART_EVENT, [batch_id], dry_run=False)

    def open_batches(self) -> list[OpenBatch]:
        """Batches that are not closed, oldest first."""
        batches: dict[str, OpenBatch] = {}
        for time, _, body in self._store.events(_STEP_EVENT):
            batch_id, step = str(body["batch"]), body["step"]
            if step == "planned":
                batches[batch_id] = OpenBatch.model_validate(
                    {**body, "id": batch_id, "planned_at": time, "noted_at": time}
                )
            elif step == "closed":
                batches.pop(batch_id, None)
            elif batch_id in batches:
                update = {name: body[name] for name in _LATER_FIELDS if name in body}
                update |= {"step": step, "noted_at": time}
                batches[batch_id] = batches[batch_id].model_copy(update=update)
        return list(batches.values())

    def closed_batches(self) -> set[str]:
        """Ids of the batches that are closed: nothing asks for their requests any more."""
        steps = (body for _, _, body in self._store.events(_STEP_EVENT))
        return {str(body["batch"]) for body in steps if body["step"] == "closed"}

    def requests(self, batch_id: str) -> Iterator[BatchRequest]:
        """The requests of a batch, in the order of its file."""
        for _, _, body in self._store.events(PART_EVENT, batch_id):
            for row in body.get("requests", ()):
                yield BatchRequest.model_validate(row)

    def rubrics(self, batch_id: str) -> dict[str, Rubric]:
        """The rubrics of a batch's requests, by hash; files may have been edited since."""
        rubrics: dict[str, Rubric] = {}
        for _, _, body in self._store.events(PART_EVENT, batch_id):
            for sha256, data in body.get("rubrics", {}).items():
                rubrics[sha256] = Rubric.model_validate(data)
        return rubrics

    def claimed_keys(self, except_batch: str = "") -> set[str]:
        """Keys of all verdicts that open batches stand for, one batch possibly left out."""
        return {
            key
            for batch in self.open_batches()
            if batch.id != except_batch
            for request in self.requests(batch.id)
            for key in request.keys
        }


def waiting_keys(store: Store) -> frozenset[str]:
    """Keys of the verdicts that wait in open batches: to ask for them too would be to pay twice."""
    return frozenset(Ledger(store).claimed_keys())


def this_process() -> str:
    """A name for this process that does not reveal the machine's: `hash:pid`."""
    return f"{hashlib.sha256(platform.node().encode()).hexdigest()[:12]}:{os.getpid()}"


def _is_other_live_process(owner: str) -> bool:
    """Whether the owner is another process that is alive, or may be on another machine."""
    this_machine, _, this_pid = this_process().partition(":")
    machine, _, pid = owner.partition(":")
    # On Windows signal 0 is a Ctrl-C, so that a process cannot be asked.
    if machine != this_machine or not pid.isdigit() or os.name == "nt":
        return owner != this_process()
    if pid == this_pid:
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def age_s(time: str) -> float:
    """Seconds since a time as the store writes it."""
    return (datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds()
