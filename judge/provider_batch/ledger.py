"""What was handed to provider batches, kept as events of the store: written before and after every
step that matters.

A batch of ours has an id of our own, which the provider keeps in the batch's metadata. Its steps,
in this order:

    parts, planned   which requests it stands for; from here on nobody else asks for their verdicts
    uploaded         the input file is at the provider (costs nothing)
    creating         about to create the batch: from here on it may exist and be paid for
    created          the provider's id is known
    closed           answered and kept, or never created; its unanswered verdicts may be asked again

A crash leaves the batch in its last noted step. Only one that stopped at `creating` is in doubt;
see provider_batch. Ours: litellm remembers no batch, and the store must know what is paid for.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ...rubrics.model import Rubric
from ...trajectories.models import Tier, TrackName
from ..base import QuestionName
from ..questions.verdict_keys import JudgeIdentity
from ..store import Store

Step = Literal["planned", "uploaded", "creating", "created", "closed"]

_STEPS = "provider_batch"
_PARTS = "provider_batch_part"
_PART_SIZE = 1_000
_OWNED_S = 3_600.0
"""For so long an unfinished batch is left to a process that seems to be alive, or that runs on
another machine."""


class BatchRequest(BaseModel):
    """One question of a batch: enough to read its answers in another process, long after."""

    model_config = ConfigDict(frozen=True)

    id: str
    """Hash of its verdict keys. Its lines are called `<id>-0`, `<id>-1`, ... (one a sample)."""
    path: str
    """As the store keeps paths."""
    rubric_sha256: str
    question: QuestionName
    track: TrackName | None
    tier: Tier | None
    sample: int
    criteria: tuple[str, ...]
    keys: tuple[str, ...]
    """Of the verdicts on `criteria`, in their order."""
    evidence_sha256: str
    lines: int
    items: tuple[dict[str, Any], ...] = ()
    """The items that are no criteria of its rubric, as they were put: they may have been edited
    since."""
    public: str | None = None
    """The public inputs that the facts were checked against."""


class OpenBatch(BaseModel):
    """A batch that is not closed. `reserved_usd` is the most that it can cost at list prices; None
    when unknown."""

    model_config = ConfigDict(frozen=True)

    id: str
    judge: JudgeIdentity
    base: str
    """Address of the provider, without credentials."""
    requests: int
    lines: int
    reserved_usd: float | None
    owner: str
    planned_at: str = ""
    step: Step = "planned"
    noted_at: str = ""
    """When the last step was noted."""
    file_id: str | None = None
    provider_id: str | None = None

    @property
    def left_alone(self) -> bool:
        """Whether another process may still be about to create it."""
        return (
            self.provider_id is None
            and _alive_elsewhere(self.owner)
            and age_s(self.noted_at) < _OWNED_S
        )


class Ledger:
    """Provider batches in a store's events."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def plan(
        self, batch: OpenBatch, requests: Sequence[BatchRequest], rubrics: Mapping[str, Rubric]
    ) -> None:
        """Claim the verdicts of `requests` for this batch."""
        for start in range(0, len(requests), _PART_SIZE):
            rows = [request.model_dump() for request in requests[start : start + _PART_SIZE]]
            self._store.add_event(_PARTS, {"requests": rows}, batch.id)
        shown = {sha: rubric.model_dump(mode="json") for sha, rubric in rubrics.items()}
        self._store.add_event(_PARTS, {"rubrics": shown}, batch.id)
        known = {"judge", "base", "requests", "lines", "reserved_usd", "owner"}
        self.note(batch.id, "planned", **batch.model_dump(include=known))

    def note(self, batch: str, step: Step, **body: Any) -> None:
        """The batch has come to this step."""
        self._store.add_event(_STEPS, {"step": step, "batch": batch, **body}, batch)

    def open(self) -> list[OpenBatch]:
        """Batches that are not closed, oldest first."""
        found: dict[str, OpenBatch] = {}
        for at, _, body in self._store.events(_STEPS):
            batch, step = str(body["batch"]), body["step"]
            if step == "planned":
                found[batch] = OpenBatch.model_validate(
                    {**body, "id": batch, "planned_at": at, "noted_at": at}
                )
            elif step == "closed":
                found.pop(batch, None)
            elif batch in found:
                known: dict[str, Any] = {
                    k: body[k] for k in ("file_id", "provider_id") if k in body
                }
                found[batch] = found[batch].model_copy(
                    update={"step": step, "noted_at": at, **known}
                )
        return list(found.values())

    def requests(self, batch: str) -> Iterator[BatchRequest]:
        """What the batch stands for, in the order of its file."""
        for _, _, body in self._store.events(_PARTS, batch):
            for row in body.get("requests", ()):
                yield BatchRequest.model_validate(row)

    def rubrics(self, batch: str) -> dict[str, Rubric]:
        """The rubrics that its requests were made of, by hash: they may have been edited since."""
        found: dict[str, Rubric] = {}
        for _, _, body in self._store.events(_PARTS, batch):
            found |= {
                sha: Rubric.model_validate(data) for sha, data in body.get("rubrics", {}).items()
            }
        return found

    def claimed(self, but: str = "") -> set[str]:
        """Keys of all verdicts that open batches (other than `but`) stand for."""
        return {
            key
            for batch in self.open()
            if batch.id != but
            for r in self.requests(batch.id)
            for key in r.keys
        }


def owner() -> str:
    """This process, without naming the machine."""
    return f"{hashlib.sha256(platform.node().encode()).hexdigest()[:12]}:{os.getpid()}"


def _alive_elsewhere(other: str) -> bool:
    here, _, pid = owner().partition(":")
    machine, _, its = other.partition(":")
    if machine != here or not its.isdigit() or os.name == "nt":  # there, signal 0 is a Ctrl-C
        return other != owner()
    if its == pid:
        return False
    try:
        os.kill(int(its), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def age_s(at: str) -> float:
    """Seconds since a time as the store writes it."""
    return (datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()
