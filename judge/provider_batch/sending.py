"""Sending requests to a provider's batches: which ones, in which files, and what a crash left
unfinished before.

Ours: that nothing is asked or paid twice is decided by this store's verdicts and claims.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ...errors import ConfigError, JudgeError
from ..base import Judge, Reply, Request, Usage
from ..judges.api.judge import without_credentials
from ..judges.api.transport import CallFailed, Completion, Retry
from ..questions.items import dump_items
from ..questions.verdict_keys import identity
from ..store import Store
from ..store.reuse import StoredJudge
from .endpoints import BatchEndpoint, InDoubt, NotThere
from .ledger import BatchRequest, Ledger, OpenBatch, age_s, owner
from .lines import MOST_BYTES, MOST_LINES, Draft, request_id, to_line


@runtime_checkable
class BatchJudge(Judge, Protocol):
    """A judge whose calls can be made by a provider batch: `ApiJudge` at an OpenAI-compatible
    address."""

    def endpoint(self) -> tuple[str, str | None]: ...

    def request_bodies(self, request: Request) -> tuple[dict[str, Any], ...]: ...

    def usage_without_retries(self, request: Request) -> Usage: ...

    def reply_from(self, request: Request, answers: Sequence[Completion | CallFailed]) -> Reply: ...


@dataclass(frozen=True)
class BatchOptions:
    """max_cost: USD that all open batches of the judge together may cost at the most, at list
    prices (providers mostly ask less for batches). settle_s: how long the provider's list may lag
    behind its creation of a batch."""

    max_cost: float | None = None
    most_lines: int = MOST_LINES
    most_bytes: int = MOST_BYTES
    settle_s: float = 30.0
    retry: Retry = field(default_factory=Retry)


@dataclass
class Submission:
    """What became of the requests: sent in `batches`; all verdicts `known` already; `waiting` in an
    open batch (or for an equal request); left out as `over_budget`. `adopted` batches were found at
    the provider after a crash."""

    batches: list[OpenBatch] = field(default_factory=list)
    sent: int = 0
    lines: int = 0
    known: int = 0
    waiting: int = 0
    over_budget: int = 0
    worst: Usage = field(default_factory=Usage)
    adopted: int = 0
    warnings: list[str] = field(default_factory=list)


def address(judge: BatchJudge) -> str:
    """Of the judge's provider, without credentials."""
    return without_credentials(judge.endpoint()[0]) or ""


class Sender:
    """Writes, uploads and creates batches, one file at a time; `done` says what has come of it."""

    def __init__(
        self, store: Store, judge: BatchJudge, http: BatchEndpoint, options: BatchOptions
    ) -> None:
        self._store, self._judge, self._http, self._options = store, judge, http, options
        self._stored, self._who, self._base = (
            StoredJudge(judge, store),
            identity(judge),
            address(judge),
        )
        self._ledger = Ledger(store)
        self.done = Submission()
        self._claimed: set[str] = set()
        self._reserved = 0.0

    async def recover(self) -> None:
        """Decide about batches of this provider that a crash left unfinished."""
        for batch in self._ledger.open():
            if batch.base != self._base or batch.provider_id is not None:
                continue
            if batch.left_alone:
                self._warn(batch, "is being created by another process")
            elif batch.step != "creating":
                await self._never_created(batch)
            else:
                await self._decide(batch)

    async def _decide(self, batch: OpenBatch) -> None:
        try:
            found = await self._http.find(batch.id, batch.file_id)
            if found is None and (wait := self._options.settle_s - age_s(batch.noted_at)) > 0:
                await asyncio.sleep(wait)
                found = await self._http.find(batch.id, batch.file_id)
        except NotThere:
            self._warn(
                batch,
                "may or may not have been created, and the provider keeps no list: ambjudge rejudge"
                " --abandon asks again",
            )
            return
        if found is None:
            await self._never_created(batch)
        else:
            self._ledger.note(batch.id, "created", provider_id=found.id, adopted=True)
            self.done.adopted += 1

    async def _never_created(self, batch: OpenBatch) -> None:
        self._ledger.note(batch.id, "closed", why="never created")
        if batch.file_id is not None:
            await self._http.delete_file(batch.file_id)

    def _warn(self, batch: OpenBatch, what: str) -> None:
        self.done.warnings.append(
            f"batch {batch.id} ({batch.requests} requests, {batch.planned_at}) {what}"
        )

    def start(self, folder: Path) -> None:
        self._folder = folder
        mine = [
            b
            for b in self._ledger.open()
            if b.judge.judge == self._judge.name and b.base == self._base
        ]
        if self._options.max_cost is not None:
            if any(b.reserved_usd is None for b in mine):
                raise ConfigError(
                    f"{self._judge.name}: what its open batches may cost is unknown",
                    "collect them first, or leave out --max-cost",
                )
            self._reserved = sum(b.reserved_usd or 0.0 for b in mine)
        self._claimed = self._ledger.claimed()
        self._new_draft()

    def _new_draft(self) -> None:
        self._draft = Draft(self._folder / f"{uuid.uuid4().hex}.jsonl")

    async def take(self, request: Request) -> None:
        """Put what of a request is still to be asked into the draft, which is sent first where it
        has no room for it."""
        known = self._stored.look_up(request)
        missing = known.missing(request.criteria)
        if not missing:
            self.done.known += 1
            return
        asked = tuple(c for c in missing if known.keys[c.id].sha256 not in self._claimed)
        if not asked:
            self.done.waiting += 1
            return
        request = replace(request, criteria=asked)
        worst = self._judge.usage_without_retries(request)
        if not self._affordable(worst.cost_usd):
            self.done.over_budget += 1
            return
        keys = [known.keys[c.id] for c in asked]
        name = request_id(key.sha256 for key in keys)
        lines = tuple(
            to_line(f"{name}-{number}", body)
            for number, body in enumerate(self._judge.request_bodies(request))
        )
        size, options = sum(map(len, lines)), self._options
        if len(lines) > options.most_lines or size > options.most_bytes:
            raise ConfigError(
                f"{request.run.id}, {request.question}: one request is larger than a batch may be",
                "lower the evidence budget or the number of samples",
            )
        self._store.add_run(request.run)
        record = BatchRequest(
            id=name,
            path=self._store.relative(request.run.path),
            rubric_sha256=request.rubric.sha256,
            question=request.question,
            track=request.run.track,
            tier=request.run.tier,
            sample=request.sample,
            criteria=tuple(c.id for c in asked),
            keys=tuple(key.sha256 for key in keys),
            evidence_sha256=keys[0].evidence_sha256,
            lines=len(lines),
            items=dump_items(request.question, asked),
            public=None if request.public is None else str(request.public.absolute()),
        )
        if (
            self._draft.lines + len(lines) > options.most_lines
            or self._draft.size + size > options.most_bytes
        ):
            await self.flush()
        self._draft.add(record, request.rubric, lines, worst.cost_usd)
        self._claimed.update(record.keys)
        self._reserved += worst.cost_usd or 0.0
        self.done.worst += worst

    def _affordable(self, worst: float | None) -> bool:
        cap = self._options.max_cost
        if cap is None:
            return True
        if worst is None:
            raise ConfigError(
                f"the price of {self._judge.name} is unknown, so a cost limit cannot be kept",
                "leave out --max-cost, or give the model's price",
            )
        return self._reserved + worst <= cap + 1e-12

    async def flush(self) -> None:
        """Send the draft, if there is anything in it."""
        draft = self._draft
        self._new_draft()
        if not draft.requests:
            return
        batch = OpenBatch(
            id=uuid.uuid4().hex,
            judge=self._who,
            base=self._base,
            requests=len(draft.requests),
            lines=draft.lines,
            reserved_usd=draft.worst_usd,
            owner=owner(),
        )
        self._ledger.plan(batch, draft.requests, draft.rubrics)
        # Whoever claims and then sees another claim on the same verdicts gives way: of two that
        # overlap, at least the
        # later one sees the earlier, so that no verdict is asked twice (at worst by nobody, until
        # the next call).
        if self._ledger.claimed(but=batch.id) & {key for r in draft.requests for key in r.keys}:
            self._ledger.note(batch.id, "closed", why="gave way to another process")
            self.done.waiting += len(draft.requests)
            self.done.warnings.append(
                f"{len(draft.requests)} requests were not sent: another process is sending some of"
                " the same; run again"
            )
            return
        try:
            batch = await self._create(batch, draft)
        except InDoubt:
            raise  # `recover` finds out
        except JudgeError:
            self._ledger.note(batch.id, "closed", why="never created")
            raise
        finally:
            draft.file.unlink(missing_ok=True)
        self.done.batches.append(batch)
        self.done.sent += batch.requests
        self.done.lines += batch.lines

    async def _create(self, batch: OpenBatch, draft: Draft) -> OpenBatch:
        file_id = await self._http.upload(draft.file)
        self._ledger.note(batch.id, "uploaded", file_id=file_id)
        self._ledger.note(batch.id, "creating")
        made = await self._http.create(file_id, batch.id, self._options.settle_s)
        self._ledger.note(batch.id, "created", provider_id=made.id)
        return batch.model_copy(
            update={"step": "created", "file_id": file_id, "provider_id": made.id}
        )
