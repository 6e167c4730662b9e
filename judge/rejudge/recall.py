"""Scorecards renewed without reading their runs again.

A run is not read where all that its scorecard rests on, but for the rubric, is in the store:

- its newest scorecard is the one that would be made now under its old rubric, as its key says
  (`verdict_keys.CardKeys`: the run's files, the judge, policy, prompt, public inputs, our code);
- the basis of its scores (`basis.ScoreBasis`) was kept under such a key too;
- every verdict that the rubric in force asks for is there, by its key.

The scorecard then follows by the same functions that make one from a run that was read.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ...errors import StoreError
from ...rubrics.model import Criterion, Rubric
from ...trajectories.models import Run, Segmentation
from ...trajectories.reading.remote import RemotePath
from ..base import Judge, QuestionName, Reply, Request
from ..basis import ScoreBasis
from ..card.scorecard import ScoreCard
from ..engine import renew
from ..facts.decided import without_decided
from ..judges.panel import ask_first_alone, with_voters
from ..questions.question_keys import VoteKeys
from ..questions.verdict_keys import BASIS
from ..runner import run_sync
from ..scoring.run_scores import STAGES_WITH_TOOLS
from ..session import ScoreOptions, card_keys
from ..store import Store, stamps
from ..store.connection import SettledRow
from ..store.reuse import RecalledVerdicts
from ..store.scorecards import LatestCard, NewCard
from ..trust.judge_precision import precision_by_code

Items = Mapping[QuestionName, tuple[Criterion, ...]]
_NO_TURNS = Segmentation.from_stages(())


@dataclass(frozen=True)
class _Known:
    """A run whose scorecard may be renewed without reading it."""

    path: Path
    run_ref: int
    card: ScoreCard
    basis: ScoreBasis
    rubric: Rubric
    """In force."""
    run: Run
    """What a request says of it: path, content, track and tier."""
    items: Items


class _Renewed(NamedTuple):
    new: NewCard
    is_foreign: bool


class RecalledCards:
    """Renews scorecards from the store alone, as far as that is possible (`CardCache`)."""

    def __init__(self, store: Store, judge: Judge, options: ScoreOptions) -> None:
        self._store, self._judge, self._options = store, judge, options
        self._scope = options.scope()
        self._keys = card_keys(judge, options, precision_by_code(store, judge.name))
        self._votes = VoteKeys(judge, options.questions, options.public)
        self._rubrics: set[str] = set()
        self.foreign_track_runs = 0
        """Runs judged by another rubric than the given ones, as they are of another track."""

    def current_cards(self, paths: Sequence[Path]) -> dict[Path, ScoreCard]:
        """The scorecards of those of these runs that need not be read; they are stored."""
        is_possible = (
            self._store.made_here
            and not self._options.some_items
            and self._options.policy.like == "paper"
            # Whether a run is asked for its stages shows only when it is read.
            and self._options.questions.stages != "mixed"
            and not self._scope.running.stated
        )
        if not is_possible:
            return {}
        renewed = self._renewed(list(self._known_runs(paths)))
        self._store.add_cards([card.new for card in renewed])
        self.foreign_track_runs += sum(card.is_foreign for card in renewed)
        return {card.new.path: card.new.card for card in renewed}

    # What is known of the runs

    def _known_runs(self, paths: Sequence[Path]) -> Iterator[_Known]:
        local = [path for path in paths if not isinstance(path, RemotePath)]
        stamped = self._store.stamped([path.absolute() for path in local])
        bases = self._store.bases(local, self._judge.name)
        for latest in self._store.latest_cards(local, self._judge.name):
            file_stamp = stamped.get(latest.path.absolute())
            body = bases.get(latest.path)
            if file_stamp is None or body is None or body.key != self._basis_key(latest):
                continue
            if not stamps.unchanged(latest.path.absolute(), latest.stamp):
                continue
            known = self._known_run(latest, file_stamp.run.ref, body.body)
            if known is not None:
                yield known

    def _basis_key(self, latest: LatestCard) -> str:
        return self._keys.key(latest.path, latest.content_sha256, BASIS)

    def _known_run(self, latest: LatestCard, run_ref: int, body: bytes) -> _Known | None:
        """What is known of a run; None if its scorecard is not what it would be now."""
        try:
            card = self._store.card_line(latest).card
            basis = ScoreBasis.from_json(zlib.decompress(body))
        except (ValueError, zlib.error) as error:
            raise StoreError(
                f"{self._store.location}: what the scores of {latest.path} rest on cannot be read",
                "restore a copy of the store",
            ) from error
        content = latest.content_sha256
        if latest.key != self._keys.key(latest.path, content, card.rubric.sha256):
            return None
        rubric = self._scope.rubric_of(basis.track, latest.task)
        run = Run.model_construct(
            path=latest.path, content_sha256=content, track=basis.track, tier=basis.tier
        )
        items = self._items(basis, rubric)
        return _Known(latest.path, run_ref, card, basis, rubric, run, items)

    def _items(self, basis: ScoreBasis, rubric: Rubric) -> Items:
        """What the judge is asked about the run (`engine.PreparedRun.requests`)."""
        items = dict(self._votes.items(rubric, basis.tier, basis.track))
        if not basis.has_tools:
            items = {name: asked for name, asked in items.items() if name not in STAGES_WITH_TOOLS}
        if self._options.questions.leaves_to_facts(self._judge.name):
            items = without_decided(items, basis.proven_values)
        return items

    # Verdicts and scorecards

    def _renewed(self, runs: Sequence[_Known]) -> list[_Renewed]:
        """The new scorecards of those runs of which every verdict is there."""
        evidence = self._evidence(runs)
        keys = {
            (run.path, voter, question): [
                self._votes[voter].key_maker(item).sha256(evidence[run.run.content_sha256, context])
                for item in run.items[question]
            ]
            for run in runs
            for voter, question in self._votes.votes(run.items)
            if (run.run.content_sha256, context := self._context(run, voter, question)) in evidence
        }
        verdicts = self._store.verdicts(key for of_vote in keys.values() for key in of_vote)
        whole = [
            run
            for run in runs
            if all(
                all(key in verdicts for key in keys.get((run.path, *vote), [""]))
                for vote in self._votes.votes(run.items)
            )
        ]
        judge = with_voters(
            self._judge, lambda voting: RecalledVerdicts(voting, evidence, verdicts)
        )
        replies = run_sync(self._replies(judge, whole))
        return [self._renew(run, of_run) for run, of_run in zip(whole, replies, strict=True)]

    def _context(self, run: _Known, voter: int, question: QuestionName) -> str:
        return self._votes[voter].context(question, run.basis.track, run.basis.tier)

    def _evidence(self, runs: Sequence[_Known]) -> Mapping[tuple[str, str], str]:
        """Evidence hashes by run content and context."""
        contexts = {
            self._context(run, voter, question)
            for run in runs
            for voter, question in self._votes.votes(run.items)
        }
        return self._store.evidence({run.run.content_sha256 for run in runs}, contexts)

    async def _replies(
        self, judge: Judge, runs: Sequence[_Known]
    ) -> list[dict[QuestionName, Reply]]:
        """The judge's replies about each of these runs, from its verdicts."""
        return await asyncio.gather(*(self._replies_of(judge, run) for run in runs))

    async def _replies_of(self, judge: Judge, run: _Known) -> dict[QuestionName, Reply]:
        requests = [
            Request(
                run=run.run,
                segmentation=_NO_TURNS,
                rubric=run.rubric,
                question=question,
                criteria=items,
                public=self._options.public,
            )
            for question, items in run.items.items()
        ]
        replies = await ask_first_alone(judge, requests)
        return {request.question: reply for request, reply in zip(requests, replies, strict=True)}

    def _renew(self, run: _Known, replies: Mapping[QuestionName, Reply]) -> _Renewed:
        rubric, content = run.rubric, run.run.content_sha256
        if rubric.sha256 not in self._rubrics:
            self._rubrics.add(rubric.sha256)
            self._store.add_rubric(rubric)
        card = renew(run.card, run.basis, rubric, self._options.questions, self._judge, replies)
        of_items = (keys for reply in replies.values() for keys in reply.verdict_keys.values())
        settled = SettledRow(
            content,
            self._votes.sha256(rubric, run.basis.tier, run.basis.track),
            self._votes.number_of_votes(run.items),
        )
        new = NewCard(
            run_ref=run.run_ref,
            path=run.path,
            card=card,
            key=self._keys.key(run.path, content, rubric.sha256),
            settled=settled,
            verdict_keys=tuple(key for keys in of_items for key in keys),
        )
        return _Renewed(new, self._scope.is_foreign(rubric))
