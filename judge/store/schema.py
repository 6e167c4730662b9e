"""The tables of the verdict store, the same on SQLite and PostgreSQL, and their triggers.

The database refuses UPDATE and DELETE on the tables of APPEND_ONLY. `files`, `evidence` and
`settled` are indexes over files that can be rebuilt at any time; `cards` are derived. Times are ISO
8601 in UTC. JSON is kept as text, so that both databases hold the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import (
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.engine import Connection

VERSION = 6
"""Version of the schema. An older store is brought to it (`MIGRATIONS`); a newer one is refused."""

APPEND_ONLY = (
    "rubrics",
    "calls",
    "call_replies",
    "verdicts",
    "attempts",
    "replies",
    "labels",
    "events",
    "texts",
)
_REFUSED = ("UPDATE", "DELETE")

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("ref", Integer, primary_key=True),
    Column("id", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("content_sha256", String(64), nullable=False),
    Column("agent", Text),
    Column("model", Text),
    Column("task", Text),
    Column("track", String(32)),
    Column("tier", String(16)),
    Column("repeat", Integer),
    Column("turns", Integer, nullable=False),
    Column("format", String(16), nullable=False),
    Column("created_at", String(32), nullable=False),
    UniqueConstraint("path", "content_sha256", name="runs_version"),
    Index("runs_by_content", "content_sha256"),
    Index("runs_by_id", "id"),
)
"""Every version of a run that was judged: one row for each path and content."""

files = Table(
    "files",
    metadata,
    Column("path", Text, primary_key=True),
    Column("content_sha256", String(64), nullable=False),
    Column("stamp", Text, nullable=False),
    Column("stamped_at", String(32), nullable=False),
)
"""The run at a path when last read, and the stamp of its files (`stamps`; "" for none)."""

evidence = Table(
    "evidence",
    metadata,
    Column("content_sha256", String(64), primary_key=True),
    Column("context", String(64), primary_key=True),
    Column("stage", String(16), nullable=False),
    Column("evidence_sha256", String(64), nullable=False),
    Column("created_at", String(32), nullable=False),
    Column("tokens", Integer),
    Index("evidence_by_sha", "evidence_sha256"),
)
"""Evidence hashes by run content and context (`verdict_keys.EvidenceContexts`); under the question
`facts`, what facts prove of the run instead of a hash (`facts.decided.encode`)."""

settled = Table(
    "settled",
    metadata,
    Column("content_sha256", String(64), primary_key=True),
    Column("question", String(64), primary_key=True),
    Column("verdicts", Integer, nullable=False),
)
"""Run contents for which every item has a verdict; `question`: hash of everything that is asked
(`QuestionKeys.sha256`)."""

calls = Table(
    "calls",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("run_ref", Integer, ForeignKey("runs.ref"), nullable=False),
    Column("stage", String(16), nullable=False),
    Column("judge", Text, nullable=False),
    Column("rubric_sha256", String(64), nullable=False),
    Column("sample", Integer, nullable=False),
    Column("criteria", Text, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("input_tokens", Integer),
    Column("output_tokens", Integer),
    Column("cost_usd", Float(53)),
    Column("warnings", Text, nullable=False),
    Column("created_at", String(32), nullable=False),
    Column("cached_tokens", Integer),
    Column("cache_write_tokens", Integer),
    Column("served_models", Text),
    Column("system_fingerprints", Text),
    Column("estimated_calls", Integer),
    Column("prompt_tokens", Integer),
    Index("calls_by_run", "run_ref"),
    Index("calls_by_judge", "judge", "stage"),
)
"""One answered request: its cost and its warnings.

`stage`, here and below, is the question's name (`base.QuestionName`). Cached tokens are NULL if the
provider did not count them. `served_models` and `system_fingerprints` are JSON lists of what the
provider named with its answers; these and `estimated_calls` are NULL in calls of older versions.
`prompt_tokens` are those of the prompt by our own estimate (`base.SizingJudge`), NULL if there is
none: what the provider counts is compared with it."""

replies = Table(
    "replies",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("size", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
)
"""Raw reply texts, each once: UTF-8 (lone surrogates kept), zlib. `size`: bytes of the text."""

call_replies = Table(
    "call_replies",
    metadata,
    Column("call_id", String(32), ForeignKey("calls.id"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("sha256", String(64), ForeignKey("replies.sha256"), nullable=False),
)


def _key_columns() -> list[Column[object]]:
    columns: list[Column[object]] = [
        Column("stage", String(16), nullable=False),
        Column("criterion_id", String(16), nullable=False),
        Column("criterion_sha256", String(64), nullable=False),
        Column("evidence_sha256", String(64), nullable=False),
        Column("judge", Text, nullable=False),
        Column("prompt_sha256", String(64)),
        Column("parameters", Text, nullable=False),
        Column("sample", Integer, nullable=False),
    ]
    return columns


verdicts = Table(
    "verdicts",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("key", String(64), nullable=False, unique=True),
    *_key_columns(),
    Column("value", Float(53)),
    Column("status", String(16), nullable=False),
    Column("reason", String(16)),
    Column("detail", Text, nullable=False),
    Column("rationale", Text, nullable=False),
    Column("evidence", Text, nullable=False),
    Column("votes", Text, nullable=False),
    Column("call_id", String(32), ForeignKey("calls.id"), nullable=False),
    Column("created_at", String(32), nullable=False),
    Column("answer", Text),
    Index("verdicts_by_evidence", "evidence_sha256", "criterion_id"),
    Index("verdicts_by_criterion", "criterion_sha256"),
    Index("verdicts_by_call", "call_id"),
)
"""Final verdicts, one a key for ever: a second one with the same key is dropped. `answer`:
canonical JSON, NULL for none."""

attempts = Table(
    "attempts",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("key", String(64), nullable=False),
    *_key_columns(),
    Column("reason", String(16), nullable=False),
    Column("detail", Text, nullable=False),
    Column("call_id", String(32), ForeignKey("calls.id"), nullable=False),
    Column("created_at", String(32), nullable=False),
    Index("attempts_by_key", "key"),
)
"""Failures that another attempt may overcome; never reused as verdicts."""

cards = Table(
    "cards",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("run_ref", Integer, ForeignKey("runs.ref"), nullable=False),
    Column("path", Text, nullable=False),
    Column("judge", Text, nullable=False),
    Column("rubric_id", Text, nullable=False),
    Column("rubric_sha256", String(64), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created_at", String(32), nullable=False),
    Column("key", String(64)),
    Column("gist", Text, nullable=False),
    Index("cards_by_path", "path", "judge", "rubric_id"),
)
"""Scorecards as lines of JSON, zlib; the last one of a (path, judge, rubric) is in force.

`key`: hash of everything that decided it (`verdict_keys.CardKeys`), NULL while an item has no
verdict. `gist`: a `scorecard.Gist` as JSON."""

card_bases = Table(
    "card_bases",
    metadata,
    Column("path", Text, primary_key=True),
    Column("judge", Text, primary_key=True),
    Column("key", String(64), nullable=False),
    Column("body", LargeBinary, nullable=False),
)
"""What the newest scorecard of a (path, judge) rests on beside its rubric: a `basis.ScoreBasis` as
JSON, zlib. It can be made again at any time. `key`: like that of a card, without a rubric."""

card_verdicts = Table(
    "card_verdicts",
    metadata,
    Column("card", Integer, ForeignKey("cards.seq"), primary_key=True),
    Column("verdict", Integer, ForeignKey("verdicts.seq"), primary_key=True),
)
"""The verdicts that a scorecard rests on; cards of versions before 6 have none here."""

claims = Table(
    "claims",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("holder", Text, nullable=False),
    Column("beat", String(32), nullable=False),
)
"""Verdict keys that are being asked for right now (`claims`); empty while nobody judges."""

rubrics = Table(
    "rubrics",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("id", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created_at", String(32), nullable=False),
)
"""Every rubric that verdicts or scorecards were made with, as JSON, zlib, so that the question
behind an old verdict remains readable."""

texts = Table(
    "texts",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("name", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created_at", String(32), nullable=False),
)
"""The texts behind the hashes of verdicts that no rubric holds: prompts, and items such as error
codes. `body`: the very bytes of the hash, zlib."""

labels = Table(
    "labels",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("run", Text, nullable=False),
    Column("annotator", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", String(32), nullable=False),
    Index("labels_by_run", "run", "annotator"),
)
"""Human labels as canonical JSON; the last ones of a (run, annotator) are in force."""

events = Table(
    "events",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("kind", String(32), nullable=False),
    Column("batch", String(32)),
    Column("body", Text, nullable=False),
    Column("created_at", String(32), nullable=False),
)

MIGRATIONS: Mapping[int, tuple[str | Table, ...]] = {
    4: (
        "ALTER TABLE calls ADD COLUMN served_models TEXT",
        "ALTER TABLE calls ADD COLUMN system_fingerprints TEXT",
        "ALTER TABLE calls ADD COLUMN estimated_calls INTEGER",
    ),
    5: (
        card_verdicts,
        claims,
        card_bases,
        texts,
        "ALTER TABLE evidence ADD COLUMN tokens INTEGER",
        "ALTER TABLE calls ADD COLUMN prompt_tokens INTEGER",
    ),
}
"""By version, what brings a store of it to the next one: statements, and tables to create."""

_PG_FUNCTION = """
CREATE OR REPLACE FUNCTION ambjudge_append_only() RETURNS trigger AS $$
BEGIN RAISE EXCEPTION 'ambjudge store: rows of %% are only ever added', TG_TABLE_NAME; END;
$$ LANGUAGE plpgsql
"""


def migrate(connection: Connection, version: int) -> None:
    """Bring a store of an older version to this one; the caller holds a write transaction."""
    for old_version in range(version, VERSION):
        for step in MIGRATIONS[old_version]:
            if isinstance(step, Table):
                step.create(connection)
            else:
                connection.exec_driver_sql(step)
            if isinstance(step, Table) and step.name in APPEND_ONLY:
                protect(connection, step.name)
    is_version = meta.c.name == "schema"
    connection.execute(meta.update().where(is_version).values(value=str(VERSION)))


def create(connection: Connection) -> None:
    """Create all tables and triggers that are missing.

    The caller holds a write transaction, so that two processes do not interleave.
    """
    metadata.create_all(connection)
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_PG_FUNCTION)
    for table in APPEND_ONLY:
        protect(connection, table)


def protect(connection: Connection, table: str) -> None:
    """Make the database refuse UPDATE and DELETE on a table."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION ambjudge_append_only()"
        )
        return
    for verb in _REFUSED:
        connection.exec_driver_sql(
            f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} BEGIN"
            f" SELECT RAISE(ABORT, 'ambjudge store: rows of {table} are only ever added'); END"
        )


@contextmanager
def unprotected(connection: Connection, *tables: str) -> Iterator[None]:
    """Let rows of these tables be deleted within the block, which is inside one transaction."""
    for table in tables:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"DROP TRIGGER {table}_append_only ON {table}")
        else:
            for verb in _REFUSED:
                connection.exec_driver_sql(f"DROP TRIGGER {table}_no_{verb.lower()}")
    yield
    for table in tables:
        protect(connection, table)
