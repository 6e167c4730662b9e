"""Sending requests in provider batches: which ones, in which files, and recovery after a crash.

The store's verdicts and the claims of open batches decide that nothing is asked or paid twice.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ...errors import ConfigError, JudgeError
from ..base import Judge, Reply, Request, SizingJudge, Usage, shared_tokens
from ..judges.api.answers import Completion
from ..judges.api.judge import without_credentials
from ..judges.api.transport import CallFailed, Retry
from ..questions.items import dump_items
from ..questions.verdict_keys import VerdictKey, identity
from ..rejudge.forecast import CallSize, Forecaster
from ..store import Store
from ..store.reuse import StoredJudge
from .batch_files import MAX_FILE_BYTES, MAX_FILE_LINES, DraftFile, request_id, to_line
from .endpoint import BatchEndpoint, BatchInDoubt, NotThere, ProviderBatch
from .ledger import BatchRequest, Ledger, OpenBatch, age_s, this_process


@runtime_checkable
class BatchJudge(Judge, Protocol):
    """A judge whose calls a provider batch can make: `ApiJudge` at an OpenAI-compatible address."""

    def endpoint(self) -> tuple[str, str | None]: ...

    def batch_body(self, request: Request) -> dict[str, Any]: ...

    def usage_without_retries(self, request: Request) -> Usage: ...

    def reply_from(self, request: Request, answer: Completion | CallFailed) -> Reply: ...


@dataclass(frozen=True)
class BatchOptions:
    """Limits of batches, and how often requests to the endpoint are tried."""

    max_cost: float | None = None
    """USD that all open batches of the judge together may cost; None: no limit. Of each request, as
    much is reserved as nearly all calls of its kind stay below, by the earlier calls in the store
    (`rejudge.forecast`)."""
    max_lines: int = MAX_FILE_LINES
    max_bytes: int = MAX_FILE_BYTES
    settle_s: float = 30.0
    """How long the provider's list may lag behind its creation of a batch."""
    retry: Retry = field(default_factory=Retry)


@dataclass
class Submission:
    """What became of the requests."""

    batches: list[OpenBatch] = field(default_factory=list)
    sent: int = 0
    """Requests in these batches, one call each."""
    waiting: int = 0
    """Requests that are part of an open batch, or equal to one that is."""
    over_budget: int = 0
    """Requests left out because of `max_cost`."""
    reserved_usd: float | None = 0.0
    """What the cost limit reserved for them; None if the price is unknown."""
    adopted: int = 0
    """Batches that were found at the provider after a crash."""
    warnings: list[str] = field(default_factory=list)


def address(judge: BatchJudge) -> str:
    """The address of the judge's provider, without credentials."""
    return without_credentials(judge.endpoint()[0]) or ""


class Sender:
    """Writes, uploads and creates batches, one file at a time; `submission` counts requests."""

    def __init__(
        self, store: Store, judge: BatchJudge, endpoint: BatchEndpoint, options: BatchOptions
    ) -> None:
        self._store, self._judge = store, judge
        self._endpoint, self._options = endpoint, options
        self._stored_judge = StoredJudge(judge, store)
        self._identity, self._address = identity(judge), address(judge)
        self._ledger = Ledger(store)
        self._forecaster = Forecaster(store, batch=True)
        self.submission = Submission()
        self._claimed_keys: set[str] = set()
        self._reserved_usd = 0.0

    # Recovery.

    async def recover(self) -> None:
        """Decide about batches of this provider that a crash left unfinished."""
        for batch in self._ledger.open_batches():
            if batch.base != self._address or batch.provider_id is not None:
                continue
            if batch.may_be_in_progress:
                self._warn(batch, "is being created by another process")
            elif batch.step != "creating":
                await self._close_uncreated(batch)
            else:
                await self._adopt_or_close(batch)

    async def _adopt_or_close(self, batch: OpenBatch) -> None:
        """Look for a batch whose creation was begun at the provider."""
        try:
            provider_batch = await self._find_once_settled(batch)
        except NotThere:
            self._warn(
                batch,
                "may or may not have been created, and the provider keeps no list: ambjudge rejudge"
                " --abandon asks again",
            )
            return
        if provider_batch is None:
            await self._close_uncreated(batch)
            return
        self._ledger.note(batch.id, "created", provider_id=provider_batch.id, adopted=True)
        self.submission.adopted += 1

    async def _find_once_settled(self, batch: OpenBatch) -> ProviderBatch | None:
        provider_batch = await self._endpoint.find(batch.id, batch.file_id)
        wait_s = self._options.settle_s - age_s(batch.noted_at)
        if provider_batch is None and wait_s > 0:
            await asyncio.sleep(wait_s)
            provider_batch = await self._endpoint.find(batch.id, batch.file_id)
        return provider_batch

    async def _close_uncreated(self, batch: OpenBatch) -> None:
        self._ledger.close(batch.id, "never created")
        if batch.file_id is not None:
            await self._endpoint.delete_file(batch.file_id)

    def _warn(self, batch: OpenBatch, problem: str) -> None:
        self.submission.warnings.append(
            f"batch {batch.id} ({batch.requests} requests, {batch.planned_at}) {problem}"
        )

    # Drafting.

    def start(self, folder: Path) -> None:
        """Begin a first draft in this folder, with what open batches claim and may cost."""
        self._folder = folder
        own_batches = [
            batch
            for batch in self._ledger.open_batches()
            if batch.judge.judge == self._judge.name and batch.base == self._address
        ]
        if self._options.max_cost is not None:
            if any(batch.reserved_usd is None for batch in own_batches):
                raise ConfigError(
                    f"{self._judge.name}: what its open batches may cost is unknown",
                    "collect them first, or leave out --max-cost",
                )
            self._reserved_usd = sum(batch.reserved_usd or 0.0 for batch in own_batches)
        self._claimed_keys = self._ledger.claimed_keys()
        self._new_draft()

    def _new_draft(self) -> None:
        self._draft = DraftFile(self._folder / f"{uuid.uuid4().hex}.jsonl")

    async def add(self, request: Request) -> None:
        """Add what is still to be asked of a request to the draft.

        The draft is sent first if the request does not fit into it.
        """
        lookup = self._stored_judge.look_up(request)
        missing = lookup.missing(request.criteria)
        if not missing:
            return
        unclaimed = tuple(
            item for item in missing if lookup.keys[item.id].sha256 not in self._claimed_keys
        )
        if not unclaimed:
            self.submission.waiting += 1
            return
        request = replace(request, criteria=unclaimed)
        reserved_usd = self._most_cost(request)
        if not self._fits_budget(reserved_usd):
            self.submission.over_budget += 1
            return
        keys = [lookup.keys[item.id] for item in unclaimed]
        id = request_id(key.sha256 for key in keys)
        line = to_line(f"{id}-0", self._judge.batch_body(request))
        self._check_fits_file(request, line)
        self._store.add_run(request.run)
        if not self._fits_draft(line):
            await self.send_draft()
        record = self._record(id, request, keys)
        self._draft.add(record, request.rubric, line, reserved_usd)
        self._claimed_keys.update(record.keys)
        self._reserved_usd += reserved_usd or 0.0

    def _most_cost(self, request: Request) -> float | None:
        """USD that the answer to a request will cost at the most; None if the price is unknown."""
        most = self._judge.usage_without_retries(request).cost_usd
        tokens = shared_tokens(self._judge, request)
        if most is None or tokens is None or not isinstance(self._judge, SizingJudge):
            return most
        call = CallSize(
            content_sha256=request.run.content_sha256,
            turns=len(request.run.turns),
            question=request.question,
            items=request.criteria,
            shared_tokens=tokens,
            is_first=True,
        )
        forecast = self._forecaster.estimate(self._judge, self._judge.name, call).high.cost_usd
        return most if forecast is None else min(most, forecast)

    def _fits_budget(self, max_cost_usd: float | None) -> bool:
        cap = self._options.max_cost
        if cap is None:
            return True
        if max_cost_usd is None:
            raise ConfigError(
                f"the price of {self._judge.name} is unknown, so a cost limit cannot be kept",
                "leave out --max-cost, or give the model's price",
            )
        return self._reserved_usd + max_cost_usd <= cap + 1e-12

    def _check_fits_file(self, request: Request, line: bytes) -> None:
        if len(line) > self._options.max_bytes:
            raise ConfigError(
                f"{request.run.id}, {request.question}: one request is larger than a batch may be",
                "lower the evidence budget",
            )

    def _fits_draft(self, line: bytes) -> bool:
        return (
            len(self._draft.requests) < self._options.max_lines
            and self._draft.size + len(line) <= self._options.max_bytes
        )

    def _record(self, id: str, request: Request, keys: Sequence[VerdictKey]) -> BatchRequest:
        run = request.run
        return BatchRequest(
            id=id,
            path=self._store.relative(run.path),
            rubric_sha256=request.rubric.sha256,
            question=request.question,
            track=run.track,
            tier=run.tier,
            sample=request.sample,
            criteria=tuple(item.id for item in request.criteria),
            keys=tuple(key.sha256 for key in keys),
            evidence_sha256=keys[0].evidence_sha256,
            items=dump_items(request.question, request.criteria),
            public=None if request.public is None else str(request.public.absolute()),
        )

    # Sending.

    async def send_draft(self) -> None:
        """Send the draft as a batch, if there is anything in it."""
        draft = self._draft
        self._new_draft()
        if not draft.requests:
            return
        batch = OpenBatch(
            id=uuid.uuid4().hex,
            judge=self._identity,
            base=self._address,
            requests=len(draft.requests),
            lines=len(draft.requests),
            reserved_usd=draft.max_cost_usd,
            owner=this_process(),
        )
        self._ledger.plan(batch, draft.requests, draft.rubrics)
        # A process that claims verdicts and then sees another claim on some of them gives way. Of
        # two that overlap, at least the later one sees the earlier, so that no verdict is asked
        # twice (at worst by neither, until the next call).
        own_keys = {key for request in draft.requests for key in request.keys}
        if self._ledger.claimed_keys(except_batch=batch.id) & own_keys:
            self._give_way(batch)
            return
        try:
            batch = await self._create(batch, draft)
        except BatchInDoubt:
            raise  # The next `recover` finds out.
        except JudgeError:
            self._ledger.close(batch.id, "never created")
            raise
        finally:
            draft.file.unlink(missing_ok=True)
        self.submission.batches.append(batch)
        self.submission.sent += batch.requests
        if self.submission.reserved_usd is None or batch.reserved_usd is None:
            self.submission.reserved_usd = None
        else:
            self.submission.reserved_usd += batch.reserved_usd

    def _give_way(self, batch: OpenBatch) -> None:
        self._ledger.close(batch.id, "gave way to another process")
        self.submission.waiting += batch.requests
        self.submission.warnings.append(
            f"{batch.requests} requests were not sent: another process is sending some of the same;"
            " run again"
        )

    async def _create(self, batch: OpenBatch, draft: DraftFile) -> OpenBatch:
        file_id = await self._endpoint.upload(draft.file)
        self._ledger.note(batch.id, "uploaded", file_id=file_id)
        self._ledger.note(batch.id, "creating")
        created = await self._endpoint.create(file_id, batch.id, self._options.settle_s)
        self._ledger.note(batch.id, "created", provider_id=created.id)
        return batch.model_copy(
            update={"step": "created", "file_id": file_id, "provider_id": created.id}
        )
