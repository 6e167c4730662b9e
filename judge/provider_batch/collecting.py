"""Collecting the answers of provider batches.

Each answer is read like a live one and stored under the keys that it was asked for.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import NamedTuple, cast

from ...errors import InputError, StoreError
from ...rubrics.model import Rubric
from ...trajectories.models import Stage
from ...trajectories.reading.load import load_conversation
from ..base import Request, Usage
from ..engine import PreparedRun, prepare
from ..judges.api.answers import Completion
from ..judges.api.transport import CallFailed
from ..questions.items import load_items
from ..questions.verdict_keys import JudgeIdentity, VerdictKey, canonical_json, key_maker
from ..store import Store
from ..store.served_models import ServedModels
from .batch_files import MAX_ANSWER_BYTES, Answers
from .endpoint import BatchEndpoint, NotThere, ProviderBatch
from .ledger import BatchRequest, Ledger, OpenBatch
from .sending import BatchJudge, address

UNKNOWN_HINT = (
    "use the account that created it, or give it up: ambjudge rejudge PATHS --abandon BATCH"
)


@dataclass(frozen=True)
class BatchState:
    """An open batch as the provider sees it."""

    batch: OpenBatch
    provider: ProviderBatch | None = None
    """None if the provider could not be asked."""


@dataclass
class Collected:
    """What was collected."""

    closed: list[BatchState] = field(default_factory=list)
    open: list[BatchState] = field(default_factory=list)
    scored: int = 0
    """Items with a verdict."""
    unscored: Counter[str] = field(default_factory=Counter)
    """Items without one, by reason."""
    stale: int = 0
    """Requests whose answers could not be read because their run changed."""
    already_stored: int = 0
    """Requests whose answers were collected before."""
    bought_twice: int = 0
    """Requests whose every verdict was in the store already, asked for in another way meanwhile."""
    strays: int = 0
    """Lines of output files that answer no request."""
    usage: Usage = field(default_factory=Usage)
    warnings: list[str] = field(default_factory=list)


class _Vote(NamedTuple):
    """A request as it was sent, with the keys of its verdicts by item."""

    request: Request
    keys: dict[str, VerdictKey]


def _vote_on(sent: _Vote, judge: JudgeIdentity, record: BatchRequest, number: int) -> _Vote:
    """The vote that one line of a request asked for."""
    if record.lines == 1:
        return sent
    # Older versions asked for all samples under one key; each is a vote of its own now.
    parameters = canonical_json({**json.loads(judge.parameters), "samples": 1})
    voting = judge.model_copy(update={"parameters": parameters})
    request = replace(sent.request, sample=record.sample * record.lines + number)
    keys = {
        item.id: key_maker(voting, item, request.sample).key(record.evidence_sha256)
        for item in request.criteria
    }
    return _Vote(request, keys)


class Collector:
    """Stores the answers of batches that have ended; `collected` counts them."""

    def __init__(self, store: Store, judge: BatchJudge, endpoint: BatchEndpoint) -> None:
        self._store, self._judge, self._endpoint = store, judge, endpoint
        self._ledger = Ledger(store)
        self._address = address(judge)
        self._served = ServedModels(store, judge.name)
        self.collected = Collected()
        self._last_prepared: tuple[tuple[object, ...], PreparedRun] | None = None

    async def collect_ended(self) -> list[BatchState]:
        """Ask about every open batch once and collect those that ended; returns the others."""
        still_open = []
        for batch in self._ledger.open_batches():
            if batch.base != self._address or batch.judge.judge != self._judge.name:
                continue
            provider = None
            if batch.provider_id is not None:
                provider = await self._state_at_provider(batch.provider_id)
            if provider is None or not provider.final:
                still_open.append(BatchState(batch, provider))
            elif await self._collect(batch, provider):
                self.collected.closed.append(BatchState(batch, provider))
            else:
                still_open.append(BatchState(batch))
        return still_open

    async def _state_at_provider(self, provider_id: str) -> ProviderBatch | None:
        try:
            return await self._endpoint.get(provider_id)
        except NotThere as error:
            self.collected.warnings.append(
                f"the provider does not know {provider_id}: {error}; {UNKNOWN_HINT}"
            )
            return None

    async def _collect(self, batch: OpenBatch, ended: ProviderBatch) -> bool:
        """Store every answer of a batch; False if its output cannot be downloaded yet."""
        with Answers() as answers:
            if not await self._download(batch, ended, answers):
                return False
            errors = f": {'; '.join(ended.errors)}" if ended.errors else ""
            if ended.errors:
                self.collected.warnings.append(f"batch {ended.id} {ended.status}{errors}")
            before = replace(self.collected)
            reason_if_missing = (
                f"the batch {ended.status} without an answer to this request{errors}"
            )
            self._store_answers(batch, answers, reason_if_missing)
        counts = {
            name: getattr(self.collected, name) - getattr(before, name)
            for name in ("scored", "stale", "strays")
        }
        cost = None
        if self.collected.usage.cost_usd is not None and before.usage.cost_usd is not None:
            cost = self.collected.usage.cost_usd - before.usage.cost_usd
        self._ledger.close(batch.id, ended.status, cost_usd=cost, **counts)
        await self._delete_input(batch)
        return True

    async def _delete_input(self, batch: OpenBatch) -> None:
        """Delete the uploaded file, which holds records of runs, at the provider."""
        if batch.file_id is None:
            return
        problem = await self._endpoint.delete_file(batch.file_id)
        if problem is not None:
            self.collected.warnings.append(
                f"batch {batch.provider_id or batch.id}: its uploaded file {batch.file_id} could"
                f" not be deleted at the provider: {problem}"
            )

    async def _download(self, batch: OpenBatch, ended: ProviderBatch, answers: Answers) -> bool:
        for file_id in dict.fromkeys((ended.output_file_id, ended.error_file_id)):
            if file_id is None:
                continue
            file = answers.new_file()
            try:
                await self._endpoint.download(file_id, file, batch.lines * MAX_ANSWER_BYTES)
            except NotThere as error:
                self.collected.warnings.append(
                    f"batch {ended.id}: its output is gone or not there yet: {error};"
                    f" {UNKNOWN_HINT}"
                )
                return False
            answers.index(file)
        return True

    def _store_answers(self, batch: OpenBatch, answers: Answers, reason_if_missing: str) -> None:
        rubrics = self._ledger.rubrics(batch.id)
        expected_lines: set[str] = set()
        for record in self._ledger.requests(batch.id):
            expected_lines.update(record.line_ids)
            rebuilt = None
            for number, line_id in enumerate(record.line_ids):
                # Derived from the batch, so that collecting it twice cannot store two calls.
                name = f"{batch.id}/{record.id}" + (f"/{number}" if number else "")
                call_id = hashlib.sha256(name.encode()).hexdigest()[:32]
                if self._store.calls_of([call_id]):
                    self.collected.already_stored += 1
                    continue
                rebuilt = rebuilt or self._rebuild(record, batch.judge, rubrics)
                if rebuilt is None:
                    self.collected.stale += 1
                    break
                self._store_answer(
                    _vote_on(rebuilt, batch.judge, record, number),
                    answers.get(line_id, reason_if_missing),
                    call_id,
                )
        strays = len(answers.ids() - expected_lines) + answers.unreadable
        self.collected.strays += strays
        if strays:
            self.collected.warnings.append(
                f"batch {batch.id}: {strays} lines of its output match no request"
            )

    def _store_answer(self, vote: _Vote, answer: Completion | CallFailed, call_id: str) -> None:
        request, keys = vote
        reply = self._judge.reply_from(request, answer)
        reply = replace(reply, warnings=(*reply.warnings, *self._served.warnings(reply)))
        reference = self._store.add_run(request.run)
        ordered_keys = [keys[result.id] for result in reply.results]
        hashes = {key.sha256 for key in ordered_keys}
        is_bought_twice = self._store.keys_with_verdict(hashes) == hashes
        try:
            self._store.add_reply(
                reference, request.rubric, request.question, ordered_keys, reply, call_id
            )
        except StoreError:
            if not self._store.calls_of([call_id]):
                raise
            # Another process stored it in the meantime.
            self.collected.already_stored += 1
            return
        self.collected.usage += reply.usage
        if is_bought_twice:
            self.collected.bought_twice += 1
            return
        for result in reply.results:
            if result.status == "unscored":
                self.collected.unscored[result.reason or "judge_error"] += 1
            else:
                self.collected.scored += 1

    def _rebuild(
        self, record: BatchRequest, judge: JudgeIdentity, rubrics: dict[str, Rubric]
    ) -> _Vote | None:
        """A request as it was sent; None if its run is gone or was changed."""
        rubric = rubrics[record.rubric_sha256]
        try:
            prepared = self._prepare(record, rubric)
        except InputError as error:
            self.collected.warnings.append(
                f"{record.path}: cannot be read any more: {error.message}"
            )
            return None
        stage = cast(Stage, record.question)
        items = load_items(record.items) if record.items else rubric.criteria(stage)
        request = Request(
            run=prepared.run,
            segmentation=prepared.segmentation,
            rubric=rubric,
            question=record.question,
            criteria=tuple(item for item in items if item.id in record.criteria),
            sample=record.sample,
            facts=prepared.facts,
            public=prepared.public,
        )
        keys = {
            item.id: key_maker(judge, item, record.sample).key(record.evidence_sha256)
            for item in request.criteria
        }
        if self._judge.evidence_sha256(request) != record.evidence_sha256:
            self.collected.warnings.append(
                f"{prepared.run.id}, {record.question}: the run was changed since it was sent;"
                " its answer cannot be checked"
            )
            return None
        # A rubric of the same hash has the same criteria; an edited taxonomy may not.
        if {key.sha256 for key in keys.values()} != set(record.keys):
            return None
        return _Vote(request, keys)

    def _prepare(self, record: BatchRequest, rubric: Rubric) -> PreparedRun:
        """The prepared run of a request; the last one is reused, as its questions are in a row."""
        key = (record.path, record.rubric_sha256, record.track, record.tier, record.public)
        if self._last_prepared is None or self._last_prepared[0] != key:
            run = load_conversation(self._store.absolute(record.path))
            run = run.model_copy(update={"track": record.track, "tier": record.tier})
            self._last_prepared = (key, prepare(run, rubric=rubric, public=record.public))
        return self._last_prepared[1]
