"""Bringing in the answers of provider batches: each is read as a live answer and kept under the
keys it was asked for.

Ours: keys and verdicts are this store's.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import cast

from ...errors import InputError, StoreError
from ...rubrics.load import criterion_sha256
from ...rubrics.model import Rubric
from ...trajectories.models import Stage
from ...trajectories.reading.load import load_conversation
from ..base import Reply, Request, Usage
from ..engine import Prepared, prepare
from ..questions.items import load_items
from ..questions.verdict_keys import JudgeIdentity, KeyMaker, VerdictKey
from ..store import Store
from .endpoints import BatchEndpoint, NotThere, ProviderBatch
from .ledger import BatchRequest, Ledger, OpenBatch
from .lines import MOST_ANSWER, Answers
from .sending import BatchJudge, address

UNKNOWN_HINT = (
    "use the account that created it, or give it up: ambjudge rejudge PATHS --abandon BATCH"
)


@dataclass(frozen=True)
class BatchState:
    """An open batch as the provider sees it; `provider` is None where it could not be asked."""

    batch: OpenBatch
    provider: ProviderBatch | None = None


@dataclass
class Collected:
    """What was brought in. `scored` and `unscored` (by reason) count criteria; `stale` requests
    could not be read because their run changed; `kept` ones had been brought in before; `strays`
    are lines of no use to anybody."""

    closed: list[BatchState] = field(default_factory=list)
    open: list[BatchState] = field(default_factory=list)
    scored: int = 0
    unscored: Counter[str] = field(default_factory=Counter)
    stale: int = 0
    kept: int = 0
    strays: int = 0
    usage: Usage = field(default_factory=Usage)
    warnings: list[str] = field(default_factory=list)


class Collector:
    """Brings in batches that have ended; `done` says what of them."""

    def __init__(self, store: Store, judge: BatchJudge, http: BatchEndpoint) -> None:
        self._store, self._judge, self._http = store, judge, http
        self._ledger = Ledger(store)
        self._base = address(judge)
        self.done = Collected()
        self._loaded: tuple[tuple[object, ...], Prepared] | None = None

    async def round(self) -> list[BatchState]:
        """Ask about every open batch once; returns those that remain open."""
        still = []
        for batch in self._ledger.open():
            if batch.base != self._base or batch.judge.judge != self._judge.name:
                continue
            state = BatchState(
                batch, None if batch.provider_id is None else await self._ask(batch.provider_id)
            )
            if state.provider is None or not state.provider.final:
                still.append(state)
            elif await self._bring_in(batch, state.provider):
                self.done.closed.append(state)
            else:
                still.append(BatchState(batch))
        return still

    async def _ask(self, provider_id: str) -> ProviderBatch | None:
        try:
            return await self._http.get(provider_id)
        except NotThere as error:
            self.done.warnings.append(
                f"the provider does not know {provider_id}: {error}; {UNKNOWN_HINT}"
            )
            return None

    async def _bring_in(self, batch: OpenBatch, ended: ProviderBatch) -> bool:
        """Keep every answer; False when that is not possible yet."""
        with Answers() as answers:
            for file_id in dict.fromkeys((ended.output_file_id, ended.error_file_id)):
                if file_id is None:
                    continue
                file = answers.new_file()
                try:
                    await self._http.download(file_id, file, batch.lines * MOST_ANSWER)
                except NotThere as error:
                    said = (
                        f"batch {ended.id}: its output is gone or not there yet: {error};"
                        f" {UNKNOWN_HINT}"
                    )
                    self.done.warnings.append(said)
                    return False
                answers.index(file)
            said = f": {'; '.join(ended.errors)}" if ended.errors else ""
            missing = f"the batch {ended.status} without an answer to this request{said}"
            if ended.errors:
                self.done.warnings.append(f"batch {ended.id} {ended.status}{said}")
            before = replace(self.done)
            self._keep_all(batch, answers, missing)
        here = {
            name: getattr(self.done, name) - getattr(before, name)
            for name in ("scored", "stale", "strays")
        }
        self._ledger.note(batch.id, "closed", why=ended.status, **here)
        return True

    def _keep_all(self, batch: OpenBatch, answers: Answers, missing: str) -> None:
        rubrics = self._ledger.rubrics(batch.id)
        wanted: set[str] = set()
        for record in self._ledger.requests(batch.id):
            names = [f"{record.id}-{number}" for number in range(record.lines)]
            wanted.update(names)
            call_id = hashlib.sha256(f"{batch.id}/{record.id}".encode()).hexdigest()[:32]
            if self._store.calls_of([call_id]):
                self.done.kept += 1
                continue
            rebuilt = self._rebuild(record, batch.judge, rubrics)
            if rebuilt is None:
                self.done.stale += 1
                continue
            request, keys = rebuilt
            reply = self._judge.reply_from(request, [answers.get(name, missing) for name in names])
            self._keep(request, keys, reply, call_id)
        strays = len(answers.ids() - wanted) + answers.unreadable
        self.done.strays += strays
        if strays:
            self.done.warnings.append(
                f"batch {batch.id}: {strays} lines of its output answer nothing that was asked"
            )

    def _keep(
        self, request: Request, keys: dict[str, VerdictKey], reply: Reply, call_id: str
    ) -> None:
        reference = self._store.add_run(request.run)
        ordered = [keys[result.id] for result in reply.results]
        try:
            self._store.add_reply(
                reference, request.rubric, request.question, ordered, reply, call_id
            )
        except StoreError:
            if not self._store.calls_of([call_id]):
                raise
            self.done.kept += 1  # another process was faster by a moment
            return
        self.done.usage += reply.usage
        for result in reply.results:
            if result.status == "unscored":
                self.done.unscored[result.reason or "judge_error"] += 1
            else:
                self.done.scored += 1

    def _rebuild(
        self, record: BatchRequest, who: JudgeIdentity, rubrics: dict[str, Rubric]
    ) -> tuple[Request, dict[str, VerdictKey]] | None:
        """The request as it was made, with the keys of its verdicts; None when its run is gone or
        was changed."""
        rubric = rubrics[record.rubric_sha256]
        try:
            ready = self._load(record, rubric)
        except InputError as error:
            self.done.warnings.append(f"{record.path}: cannot be read any more: {error.message}")
            return None
        stage = cast(Stage, record.question)
        every = load_items(record.items) if record.items else rubric.criteria(stage)
        criteria = tuple(c for c in every if c.id in record.criteria)
        request = Request(
            ready.run,
            ready.segmentation,
            rubric,
            record.question,
            criteria,
            record.sample,
            ready.facts,
            ready.public,
        )
        keys = {
            c.id: (
                KeyMaker(who, c.id, criterion_sha256(c), record.sample).key(record.evidence_sha256)
            )
            for c in criteria
        }
        if self._judge.evidence_sha256(request) != record.evidence_sha256:
            self.done.warnings.append(
                f"{ready.run.id}, {record.question}: was changed since it was sent; its answer"
                " cannot be checked"
            )
            return None
        return (
            (request, keys) if {key.sha256 for key in keys.values()} == set(record.keys) else None
        )

    def _load(self, record: BatchRequest, rubric: Rubric) -> Prepared:
        """One run is kept, as its questions follow each other."""
        asked = (record.path, record.rubric_sha256, record.track, record.tier, record.public)
        if self._loaded is None or self._loaded[0] != asked:
            run = load_conversation(self._store.absolute(record.path))
            run = run.model_copy(update={"track": record.track, "tier": record.tier})
            self._loaded = (asked, prepare(run, rubric=rubric, public=record.public))
        return self._loaded[1]
