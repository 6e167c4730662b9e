"""All scorecards that a store ever had of each run, each with the verdicts that it rests on."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from ...errors import StoreError
from ..base import is_criteria
from ..card.scorecard import ScoreCard
from ..questions.verdict_keys import VerdictKey
from . import schema
from .connection import StorePart, chunks
from .verdicts import key_of

_PAGE = 200
"""Scorecards in memory at a time."""
_KEY_COLUMNS = ("key", *(name for name in VerdictKey.model_fields if name != "sha256"))
CardKeysByItem = dict[tuple[str, str], tuple[VerdictKey, ...]]
"""By (criterion or code, id), the keys of the verdicts that a scorecard rests on: several if a
panel or samples voted."""


class CardVersion(NamedTuple):
    """One scorecard of a run, not read; those of one store are numbered by their age."""

    seq: int
    path: Path
    """Of the run's conversation."""
    judge: str
    made_at: str
    """ISO 8601, UTC."""


class StoredCard(NamedTuple):
    """A scorecard with what the store has of its making."""

    version: CardVersion
    card: ScoreCard
    content_sha256: str
    """Of the run's files."""
    keys: CardKeysByItem


class VerdictOrigin(NamedTuple):
    """Where a number of a scorecard comes from."""

    key: str
    """Of the verdict."""
    call_id: str
    """Of the call that gave it."""
    judged_at: str
    """ISO 8601, UTC."""


OriginsByItem = dict[tuple[str, str], tuple[VerdictOrigin, ...]]
"""By (criterion or code, id); several if a panel or samples voted."""


class CardHistory(StorePart):
    """Scorecards are only ever added, so any two of a run can be compared."""

    def card_versions(self, below: Path | None = None) -> list[CardVersion]:
        """Every scorecard of the runs at or below a path, oldest first."""
        table = schema.cards
        query = sa.select(table.c.seq, table.c.path, table.c.judge, table.c.created_at)
        if below is not None:
            query = query.where(self.at_or_below(table.c.path, below))
        rows = self._read(query.order_by(table.c.seq))
        return [
            CardVersion(row.seq, self.absolute(row.path), row.judge, row.created_at) for row in rows
        ]

    def versions_by_rubric(self, sha256: str) -> list[CardVersion]:
        """The newest scorecard of every (run, judge) made with this very rubric, oldest first."""
        table = schema.cards
        newest = sa.select(sa.func.max(table.c.seq)).where(table.c.rubric_sha256 == sha256)
        query = sa.select(table.c.seq, table.c.path, table.c.judge, table.c.created_at).where(
            table.c.seq.in_(newest.group_by(table.c.path, table.c.judge))
        )
        rows = self._read(query.order_by(table.c.seq))
        return [
            CardVersion(row.seq, self.absolute(row.path), row.judge, row.created_at) for row in rows
        ]

    def last_card(self, before: str | None = None) -> int:
        """The number of the newest scorecard, or of the newest that was made before a time (ISO
        8601, UTC); 0 if there is none."""
        table = schema.cards
        query = sa.select(sa.func.max(table.c.seq))
        if before is not None:
            query = query.where(table.c.created_at < before)
        return int(self._read(query)[0][0] or 0)

    def stored_cards(self, seqs: Iterable[int]) -> Iterator[StoredCard]:
        """The scorecards with these numbers, oldest first."""
        for page in chunks(sorted(set(seqs)), _PAGE):
            yield from self._stored_page(page)

    def _stored_page(self, seqs: Sequence[int]) -> Iterator[StoredCard]:
        cards, runs = schema.cards, schema.runs
        query = (
            sa.select(
                cards.c.seq,
                cards.c.path,
                cards.c.judge,
                cards.c.created_at,
                cards.c.body,
                runs.c.content_sha256,
            )
            .join_from(cards, runs, cards.c.run_ref == runs.c.ref)
            .where(cards.c.seq.in_(seqs))
            .order_by(cards.c.seq)
        )
        keys = self._keys_of_cards(seqs)
        for row in self._read(query):
            version = CardVersion(row.seq, self.absolute(row.path), row.judge, row.created_at)
            card = self._parsed(row.body)
            yield StoredCard(version, card, row.content_sha256, keys.get(row.seq, {}))

    def _keys_of_cards(self, seqs: Sequence[int]) -> dict[int, CardKeysByItem]:
        links, verdicts = schema.card_verdicts, schema.verdicts
        query = (
            sa.select(
                links.c.card,
                verdicts.c.stage,
                *(
                    verdicts.c[name]
                    for name in ("key", *VerdictKey.model_fields)
                    if name != "sha256"
                ),
            )
            .join_from(links, verdicts, links.c.verdict == verdicts.c.seq)
            .where(links.c.card.in_(seqs))
            .order_by(links.c.verdict)
        )
        keys: dict[int, CardKeysByItem] = {}
        for row in self._read(query):
            of_card = keys.setdefault(row.card, {})
            item = (_item_kind(row.stage), row.criterion_id)
            of_card[item] = (*of_card.get(item, ()), key_of(row))
        return keys

    # From scorecards to their verdicts

    def card_index(self) -> dict[str, tuple[int, str]]:
        """By the hash of its JSON (`card_sha256`), the number of each scorecard and when it was
        made; of equal ones the newest."""
        table = schema.cards
        query = sa.select(table.c.sha256, table.c.seq, table.c.created_at).order_by(table.c.seq)
        return {row.sha256: (row.seq, row.created_at) for row in self._read(query)}

    def origins_of(self, seqs: Sequence[int]) -> dict[int, OriginsByItem]:
        """By the number of a scorecard, the verdicts that it rests on; those that name none are
        left out."""
        links, verdicts = schema.card_verdicts, schema.verdicts
        query = sa.select(
            links.c.card,
            verdicts.c.stage,
            verdicts.c.criterion_id,
            verdicts.c.key,
            verdicts.c.call_id,
            verdicts.c.created_at,
        )
        query = query.join_from(links, verdicts, links.c.verdict == verdicts.c.seq)
        query = query.order_by(links.c.verdict)
        origins: dict[int, OriginsByItem] = {}
        rows: Iterator[Any] = self._in_chunks(query, links.c.card, seqs)
        for card, question, item, *origin in rows:
            of_card = origins.setdefault(card, {})
            kind = _item_kind(question)
            of_card[kind, item] = (*of_card.get((kind, item), ()), VerdictOrigin(*origin))
        return origins

    def _parsed(self, body: bytes) -> ScoreCard:
        try:
            return ScoreCard.model_validate_json(zlib.decompress(body))
        except (zlib.error, ValueError) as error:
            reason = " ".join(str(error).split())[:120]
            raise StoreError(
                f"{self.location}: a scorecard cannot be read: {reason}", "score its run again"
            ) from error


def _item_kind(question: str) -> str:
    """What the items of a question are: criteria, codes, or what the question is called."""
    if is_criteria(question):
        return "criterion"
    return "code" if question == "diagnosis" else question
