"""Rows of `ambjudge export`: criteria, codes, verdicts and labels as flat tables.

Tables are written as JSON Lines text here, and as CSV in `spreadsheets`. The functions are pure:
they take scorecards, stored verdicts and labels, and return rows, frames and text. The table of
runs is the run frame itself (`cohorts.cohort`). A column keeps its type and unit in all formats; an
unknown value is null (JSON Lines, Parquet) or an empty cell (CSV), never 0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple
from itertools import islice
from typing import TYPE_CHECKING, Any

import polars as pl

from .codes_read import CODES as PAPER_CODES
from .frames import FRAME_SCHEMA

if TYPE_CHECKING:
    from ...judge.card.scorecard import ScoreCard
    from ...judge.card.stage_results import CriterionResult
    from ...judge.questions.texts import Text
    from ...judge.store.card_history import OriginsByItem
    from ...judge.store.runs import StoredRun
    from ...judge.store.verdicts import StoredCall, StoredVerdict
    from ...judge.trust.human_labels import Labels
    from ...rubrics.model import Rubric

BATCH = 1_000
"""Rows held at a time. Rows carry rationales: a batch is a few megabytes."""

_TEXT, _REAL, _WHOLE, _TURNS = pl.String, pl.Float64, pl.Int64, pl.List(pl.Int64)
_TEXTS = pl.List(pl.String)
_ORIGIN: dict[str, Any] = {"verdict_keys": _TEXTS, "call_ids": _TEXTS, "judged_at": _TEXT}
"""The verdicts in the store that a row rests on, the calls that gave them, and when the last one
did: one each, or those of a panel's members and of samples. Null where no judge was asked (facts,
detectors, tiers), and for scorecards that are in no store."""
_EVIDENCE: dict[str, Any] = {"quotes": _WHOLE, "quotes_verified": _WHOLE, "evidence_turns": _TURNS}

CRITERIA: dict[str, Any] = {
    "run_id": _TEXT,
    "path": _TEXT,
    "judge": _TEXT,
    "rubric": _TEXT,
    "stage": _TEXT,
    "criterion": _TEXT,
    "value": _REAL,
    "status": _TEXT,
    "reason": _TEXT,
    "by": _TEXT,
    "detail": _TEXT,
    "rationale": _TEXT,
    **_EVIDENCE,
    **_ORIGIN,
}
"""One row a criterion of a scorecard. `value` in [0, 1]; `by`: facts where these decided it;
`evidence_turns` as cited, turn 0 being the plan."""
CODES: dict[str, Any] = {
    "run_id": _TEXT,
    "path": _TEXT,
    "judge": _TEXT,
    "taxonomy": _TEXT,
    "code": _TEXT,
    "stage": _TEXT,
    "turns": _TURNS,
    "why": _TEXT,
    "by": _TEXT,
    "independence": _TEXT,
    "confidence": _REAL,
    "facts": pl.List(pl.String),
    "quote": _TEXT,
    "quote_turn": _WHOLE,
    "quote_check": _TEXT,
    **_ORIGIN,
}
"""One row a fired code. That a code has no row does not say that it is absent: the table of runs
has what was read."""
VERDICTS: dict[str, Any] = {
    "key": _TEXT,
    "in_force": pl.Boolean,
    "created_at": _TEXT,
    "run_id": _TEXT,
    "path": _TEXT,
    "agent": _TEXT,
    "model": _TEXT,
    "task": _TEXT,
    "track": _TEXT,
    "tier": _TEXT,
    "repeat": _WHOLE,
    "stage": _TEXT,
    "criterion": _TEXT,
    "value": _REAL,
    "status": _TEXT,
    "reason": _TEXT,
    "detail": _TEXT,
    "rationale": _TEXT,
    **_EVIDENCE,
    "votes": _TEXT,
    "judge": _TEXT,
    "parameters": _TEXT,
    "sample": _WHOLE,
    "criterion_sha256": _TEXT,
    "evidence_sha256": _TEXT,
    "prompt_sha256": _TEXT,
    "call_id": _TEXT,
    "call_criteria": _WHOLE,
    "call_requests": _WHOLE,
    "call_input_tokens": _WHOLE,
    "call_output_tokens": _WHOLE,
    "call_cost_usd": _REAL,
    "call_estimated_requests": _WHOLE,
    "call_served_model": _TEXT,
}
"""One row a stored verdict, superseded ones included. `in_force`: whether a scorecard rests on it
that is the newest of its run and judge; null where such a scorecard does not say. `agent` to
`repeat` are of the run that it was judged for (others with the same evidence share it); `judge` is
the model. The `call_` columns are of the whole call, which answers `call_criteria` criteria: count
each `call_id` once when adding up. `call_estimated_requests` are those that the provider did not
count, `call_served_model` is the model that it says answered."""
LABELS: dict[str, Any] = {
    "run_id": _TEXT,
    "annotator": _TEXT,
    "kind": _TEXT,
    "item": _TEXT,
    "turn": _WHOLE,
    "value": _REAL,
    "turns": _TURNS,
    "text": _TEXT,
}
"""One row a label. `kind` stage: turn `turn` is of stage `item`; criterion: `item` has `value`,
null where it does not apply, resting on `turns`; code: `item` fired (1) or not (0), seen at
`turns`, `text` says why; notes: `text`."""

TEXTS: dict[str, Any] = {
    "sha256": _TEXT,
    "kind": _TEXT,
    "name": _TEXT,
    "rubric": _TEXT,
    "text": _TEXT,
}
"""One row a text that a hash of the other tables stands for. `kind`: rubric (`rubric_sha256`),
criterion (`criterion_sha256`), item (the same, of codes and questions) or prompt (`prompt_sha256`,
`judge_prompts`). `rubric`: id and version of the rubric, or of the first one with the criterion."""

SCHEMAS: dict[str, dict[str, Any]] = {
    "runs": FRAME_SCHEMA,
    "criteria": CRITERIA,
    "codes": CODES,
    "verdicts": VERDICTS,
    "labels": LABELS,
    "texts": TEXTS,
}

Row = tuple[Any, ...]


def criterion_rows(card: ScoreCard, origins: OriginsByItem | None = None) -> Iterator[Row]:
    """The criteria of a scorecard (CRITERIA); `origins`: the verdicts that it rests on."""
    head = card.run.id, card.run.path, card.judge.name, card.rubric.id
    for stage, result in card.stages.items():
        for item in result.criteria:
            verdict = item.judged, item.status, item.reason, item.by, item.detail, item.rationale
            origin = _origin(origins, "criterion", item.id)
            yield (*head, stage, item.id, *verdict, *_evidence(item), *origin)


def code_rows(card: ScoreCard, origins: OriginsByItem | None = None) -> Iterator[Row]:
    """The fired codes of a scorecard (CODES), of both taxonomies; `origins` as of criteria."""
    head = card.run.id, card.run.path, card.judge.name
    for code in card.codes:
        quote: tuple[Any, ...] = (None, None, None)
        if code.quote is not None:
            quote = (code.quote.quote, code.quote.turn, code.quote.check)
        yield (
            *head,
            code.taxonomy,
            code.code,
            code.stage,
            list(code.turns),
            code.why,
            code.by,
            code.independence,
            code.confidence,
            list(code.facts),
            *quote,
            *_origin(origins if code.by.startswith("judge:") else None, "code", code.code),
        )


def _origin(origins: OriginsByItem | None, kind: str, item: str) -> Row:
    """The columns of _ORIGIN."""
    votes = (origins or {}).get((kind, item))
    if not votes:
        return None, None, None
    keys, calls = [vote.key for vote in votes], [vote.call_id for vote in votes]
    return keys, calls, max(vote.judged_at for vote in votes)


def verdict_rows(
    verdicts: Iterable[StoredVerdict],
    runs: Mapping[int, StoredRun],
    calls: Mapping[str, StoredCall],
    is_in_force: Callable[[StoredVerdict], bool | None],
) -> Iterator[Row]:
    """Stored verdicts (VERDICTS) with what is known of their runs and calls."""
    for verdict in verdicts:
        key, result = verdict.key, verdict.result
        run, call = runs[verdict.run_ref], calls[verdict.call_id]
        votes = [vote.model_dump(mode="json") for vote in result.votes]
        yield (
            key.sha256,
            is_in_force(verdict),
            verdict.created_at,
            run.id,
            str(run.path),
            run.agent,
            run.model,
            run.task,
            run.track,
            run.tier,
            run.repeat,
            verdict.stage,
            result.id,
            result.value,
            result.status,
            result.reason,
            result.detail,
            result.rationale,
            *_evidence(result),
            json.dumps(votes, ensure_ascii=False) if votes else None,
            key.judge,
            key.parameters,
            key.sample,
            key.criterion_sha256,
            key.evidence_sha256,
            key.prompt_sha256,
            verdict.call_id,
            call.criteria,
            *astuple(call.usage)[:4],
            call.usage.estimated_calls,
            ", ".join(verdict.served_models) or None,
        )


def text_rows(rubrics: Iterable[Rubric], texts: Iterable[Text]) -> Iterator[Row]:
    """The texts behind hashes (TEXTS), each once."""
    from ...judge.questions.texts import item_texts
    from ...rubrics.load import dump_rubric

    shown: set[str] = set()
    for rubric in rubrics:
        version = f"{rubric.id} {rubric.version}"
        yield rubric.sha256, "rubric", rubric.id, version, dump_rubric(rubric)
        for text in item_texts(rubric.criteria()):
            if text.sha256 not in shown:
                shown.add(text.sha256)
                yield text.sha256, "criterion", text.name, version, text.readable()
    for text in texts:
        yield text.sha256, text.kind, text.name, None, text.readable()


def label_rows(labels: Labels) -> Iterator[Row]:
    """One annotator's labels of one run (LABELS).

    Where codes were labelled, each of E1-E5 has a row; where the field is missing nobody looked,
    and there is none.
    """
    head = labels.run, labels.annotator
    for turn, stage in sorted(labels.stages.items()):
        yield (*head, "stage", stage, turn, None, None, None)
    for name, value in sorted(labels.criteria.items()):
        turns = list(labels.evidence[name]) if name in labels.evidence else None
        yield (*head, "criterion", name, None, value, turns, None)
    if "codes" in labels.model_fields_set:
        other_codes = [name for name in labels.codes if name not in PAPER_CODES]
        for name in (*PAPER_CODES, *other_codes):
            code = labels.codes.get(name)
            if code is None:
                yield (*head, "code", name, None, 0.0, None, None)
            else:
                yield (*head, "code", name, None, 1.0, list(code.turns), code.why)
    if labels.notes:
        yield (*head, "notes", None, None, None, None, labels.notes)


def _evidence(item: CriterionResult) -> Row:
    """How many quotes were given and verified, and the cited turns, each once."""
    quotes = [evidence for evidence in item.evidence if evidence.quote]
    verified = sum(evidence.check == "verified" for evidence in quotes)
    turns = list(dict.fromkeys(evidence.turn for evidence in item.evidence))
    return len(quotes), verified, turns


def batches(
    rows: Iterable[Row], schema: Mapping[str, Any], size: int = BATCH
) -> Iterator[pl.DataFrame]:
    """Rows as frames of at most `size` rows; one empty frame with the columns if there are none."""
    remaining = iter(rows)
    batch = list(islice(remaining, size))
    while True:
        yield finite(pl.DataFrame(batch, schema=dict(schema), orient="row"))
        batch = list(islice(remaining, size))
        if not batch:
            return


def finite(table: pl.DataFrame) -> pl.DataFrame:
    """NaN and infinities as null: JSON does not have them, and they are not measurements."""
    if pl.Float64 not in table.dtypes:
        return table
    numbers = pl.col(pl.Float64)
    return table.with_columns(pl.when(numbers.is_finite()).then(numbers))


def json_rows(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain values for JSON."""
    return finite(table).to_dicts()


def to_jsonl(table: pl.DataFrame) -> str:
    """JSON Lines: one object for each row, with every column, null where unknown."""
    return str(table.write_ndjson())
