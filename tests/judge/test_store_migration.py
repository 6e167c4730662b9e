"""A store of version 1 opens, keeps what it holds and takes new verdicts, whoever opens it first and however often."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
import stored
from ambjudge.errors import StoreError
from ambjudge.judge.base import Reply, Usage
from ambjudge.judge.scorecard import CriterionResult, Evidence, Vote
from ambjudge.judge.store import open_store, opening, schema
from ambjudge.judge.store.opening import locate
from stored import RUBRIC, key, recorded_run

_KEYS = """stage VARCHAR(2) NOT NULL, criterion_id VARCHAR(8) NOT NULL, criterion_sha256 VARCHAR(64) NOT NULL,
  evidence_sha256 VARCHAR(64) NOT NULL, judge TEXT NOT NULL, prompt_sha256 VARCHAR(64), parameters TEXT NOT NULL,
  sample INTEGER NOT NULL"""
VERSION_1 = f"""
CREATE TABLE meta (name VARCHAR(64) NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE runs (ref SERIAL PRIMARY KEY, id TEXT NOT NULL, path TEXT NOT NULL, sha256 VARCHAR(64) NOT NULL,
  content_sha256 VARCHAR(64) NOT NULL, agent TEXT, model TEXT, task TEXT, track VARCHAR(32), tier VARCHAR(16),
  repeat INTEGER, turns INTEGER NOT NULL, format VARCHAR(16) NOT NULL, created_at VARCHAR(32) NOT NULL,
  CONSTRAINT runs_version UNIQUE (path, content_sha256));
CREATE INDEX runs_by_content ON runs (content_sha256);
CREATE INDEX runs_by_id ON runs (id);
CREATE TABLE files (path TEXT NOT NULL PRIMARY KEY, content_sha256 VARCHAR(64) NOT NULL, stamp TEXT NOT NULL,
  stamped_at VARCHAR(32) NOT NULL);
CREATE TABLE evidence (content_sha256 VARCHAR(64) NOT NULL, context VARCHAR(64) NOT NULL, stage VARCHAR(2) NOT NULL,
  evidence_sha256 VARCHAR(64) NOT NULL, created_at VARCHAR(32) NOT NULL, PRIMARY KEY (content_sha256, context));
CREATE INDEX evidence_by_sha ON evidence (evidence_sha256);
CREATE TABLE settled (content_sha256 VARCHAR(64) NOT NULL, question VARCHAR(64) NOT NULL, verdicts INTEGER NOT NULL,
  PRIMARY KEY (content_sha256, question));
CREATE TABLE calls (id VARCHAR(32) NOT NULL PRIMARY KEY, run_ref INTEGER NOT NULL REFERENCES runs (ref),
  stage VARCHAR(2) NOT NULL, judge TEXT NOT NULL, rubric_sha256 VARCHAR(64) NOT NULL, sample INTEGER NOT NULL,
  criteria TEXT NOT NULL, calls INTEGER NOT NULL, input_tokens INTEGER, output_tokens INTEGER, cost_usd FLOAT,
  codes TEXT NOT NULL, warnings TEXT NOT NULL, created_at VARCHAR(32) NOT NULL);
CREATE INDEX calls_by_run ON calls (run_ref);
CREATE INDEX calls_by_judge ON calls (judge, stage);
CREATE TABLE replies (sha256 VARCHAR(64) NOT NULL PRIMARY KEY, size INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE call_replies (call_id VARCHAR(32) NOT NULL REFERENCES calls (id), position INTEGER NOT NULL,
  sha256 VARCHAR(64) NOT NULL REFERENCES replies (sha256), PRIMARY KEY (call_id, position));
CREATE TABLE verdicts (seq SERIAL PRIMARY KEY, key VARCHAR(64) NOT NULL UNIQUE, {_KEYS}, value FLOAT,
  status VARCHAR(16) NOT NULL, reason VARCHAR(16), detail TEXT NOT NULL, rationale TEXT NOT NULL,
  evidence TEXT NOT NULL, votes TEXT NOT NULL, call_id VARCHAR(32) NOT NULL REFERENCES calls (id),
  created_at VARCHAR(32) NOT NULL);
CREATE INDEX verdicts_by_evidence ON verdicts (evidence_sha256, criterion_id);
CREATE INDEX verdicts_by_criterion ON verdicts (criterion_sha256);
CREATE INDEX verdicts_by_call ON verdicts (call_id);
CREATE TABLE attempts (seq SERIAL PRIMARY KEY, key VARCHAR(64) NOT NULL, {_KEYS}, reason VARCHAR(16) NOT NULL,
  detail TEXT NOT NULL, call_id VARCHAR(32) NOT NULL REFERENCES calls (id), created_at VARCHAR(32) NOT NULL);
CREATE INDEX attempts_by_key ON attempts (key);
CREATE TABLE cards (seq SERIAL PRIMARY KEY, run_ref INTEGER NOT NULL REFERENCES runs (ref), path TEXT NOT NULL,
  judge TEXT NOT NULL, rubric_id TEXT NOT NULL, rubric_sha256 VARCHAR(64) NOT NULL, sha256 VARCHAR(64) NOT NULL,
  body BLOB NOT NULL, created_at VARCHAR(32) NOT NULL);
CREATE INDEX cards_by_path ON cards (path, judge, rubric_id);
CREATE TABLE rubrics (sha256 VARCHAR(64) NOT NULL PRIMARY KEY, id TEXT NOT NULL, version TEXT NOT NULL,
  body BLOB NOT NULL, created_at VARCHAR(32) NOT NULL);
CREATE TABLE labels (seq SERIAL PRIMARY KEY, run TEXT NOT NULL, annotator TEXT NOT NULL, body TEXT NOT NULL,
  created_at VARCHAR(32) NOT NULL);
CREATE INDEX labels_by_run ON labels (run, annotator);
CREATE TABLE events (seq SERIAL PRIMARY KEY, kind VARCHAR(32) NOT NULL, batch VARCHAR(32), body TEXT NOT NULL,
  created_at VARCHAR(32) NOT NULL);
INSERT INTO meta VALUES ('schema', '1');
INSERT INTO runs VALUES (1, 'r', 'runs/r', 'a', 'b', 'agent', 'm', 'kidney', 'segmentation', 'lite', 1, 9, 'plain', 't');
INSERT INTO evidence VALUES ('b', 'ctx', 'S1', 'e', 't');
INSERT INTO calls VALUES ('{"0" * 32}', 1, 'S1', 'tester', 'r', 0, '["S1a","S1b"]', 1, 10, 5, 0.25,
  '[{{"code":"E3","taxonomy":"paper","stage":"S3","turns":[9],"why":"w","by":"judge:tester","confidence":0.9,"independence":"from_judge"}}]',
  '[]', 't');
INSERT INTO verdicts VALUES (1, '{1:064x}', 'S1', 'S1a', '{"c" * 64}', 'e', 'tester', NULL, '{{}}', 0, 0.5, 'scored', NULL,
  'd', 'because ✓', '[{{"turn":4,"quote":"q","check":"verified"}}]', '[{{"judge":"a","value":0.5}}]', '{"0" * 32}', 't');
INSERT INTO attempts VALUES (1, '{2:064x}', 'S1', 'S1b', '{"c" * 64}', 'e', 'tester', NULL, '{{}}', 0, 'judge_error', 'why',
  '{"0" * 32}', 't');
"""
"""What the first version of the schema made on PostgreSQL, and one call with a verdict and a failed attempt."""

OLD = CriterionResult(
    id="S1a", value=0.5, status="scored", detail="d", rationale="because ✓",
    evidence=(Evidence(turn=4, quote="q", check="verified"),), votes=(Vote(judge="a", value=0.5),),
)  # fmt: skip


def version_1(address: str) -> None:
    """A store as the first version left it."""
    url = locate(address)
    postgres = url.get_backend_name() == "postgresql"
    if not postgres:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = sa.create_engine(url)
    text = VERSION_1
    if postgres:
        text = text.replace("BLOB", "BYTEA").replace(" FLOAT", " FLOAT(53)")
    else:
        text = text.replace("SERIAL", "INTEGER")
    with engine.begin() as connection:
        if not postgres:
            connection.exec_driver_sql("pragma journal_mode = wal")
        for statement in text.split(";\n")[:-1]:
            connection.exec_driver_sql(statement.replace("%", "%%"))
        if postgres:
            # Rows were given their numbers by hand: the sequences go on behind them, as they would have.
            for table, column in (("runs", "ref"), ("verdicts", "seq"), ("attempts", "seq")):
                connection.exec_driver_sql(f"select setval(pg_get_serial_sequence('{table}', '{column}'), 1)")
            connection.exec_driver_sql(schema._PG_FUNCTION)
        for table in ("rubrics", "calls", "call_replies", "verdicts", "attempts", "replies", "labels", "events"):
            if postgres:
                connection.exec_driver_sql(
                    f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
                    "FOR EACH STATEMENT EXECUTE FUNCTION ambjudge_append_only()"
                )
                continue
            for verb in ("UPDATE", "DELETE"):
                connection.exec_driver_sql(
                    f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
                    f"BEGIN SELECT RAISE(ABORT, 'ambjudge store: rows of {table} are only ever added'); END"
                )
    engine.dispose()


@pytest.fixture
def old(target) -> str:
    version_1(target)
    return target


def schema_of(address: str) -> dict[str, dict[str, str]]:
    """Columns and their types by table, as the database tells them."""
    engine = sa.create_engine(locate(address))
    inspector = sa.inspect(engine)
    found = {
        table: {column["name"]: str(column["type"]) for column in inspector.get_columns(table)}
        for table in inspector.get_table_names()
    }
    engine.dispose()
    return found


def test_a_store_of_version_1_keeps_its_verdicts_and_takes_new_ones(old):
    run = recorded_run()
    for create in (False, True):  # a reader brings it up as well; the second time there is nothing to do
        with open_store(old, create=create) as store:
            store.check()
            assert [(v.key, v.result, v.stage) for v in store.iter_verdicts()] == [(key(1), OLD, "S1")]
            assert store.attempts([key(2).sha256]) == {key(2).sha256: [("judge_error", "why")]}
            (call,) = store.calls_of(["0" * 32]).values()
            assert call.usage == Usage(1, 10, 5, 0.25, None, None)
            assert store.total_usage() == Usage(1, 10, 5, 0.25, None, None)
            with store._engine.connect() as connection:
                assert connection.exec_driver_sql("select value from meta where name = 'schema'").scalar() == "3"
    with open_store(old) as store:
        answer = {"turns": [4], "sure": None, "ü": ["🙂"]}
        given = CriterionResult(id="diagnosis:E1", value=1.0, status="scored", answer=answer)
        reply = Reply((given,), Usage(1, 100, 5, 0.1, cached_tokens=90, cache_write_tokens=3))
        where = (run.content_sha256, "ctx", "diagnosis", "e9")
        ref = store.add_run(run)
        store.add_reply(ref, RUBRIC, "diagnosis", [key(9, criterion="diagnosis:E1")], reply, packed=where)
        failed = CriterionResult(id="diagnosis:E2", value=None, status="unscored", reason="judge_error")
        store.add_reply(ref, RUBRIC, "diagnosis", [key(8, criterion="diagnosis:E2")], Reply((failed,)))
        assert [v.result for v in store.iter_verdicts()] == [OLD, given]
        assert store.evidence([run.content_sha256], ["ctx"]) == {(run.content_sha256, "ctx"): "e9"}


def test_it_then_has_the_columns_of_a_new_one(old, tmp_path):
    """On PostgreSQL with their types; SQLite keeps the declared lengths of names, which it does not enforce."""
    open_store(old).close()
    brought_up = schema_of(old)
    open_store(tmp_path / "new.db").close()
    fresh = schema_of(str(tmp_path / "new.db"))
    assert {table: set(columns) for table, columns in brought_up.items()} == {t: set(c) for t, c in fresh.items()}
    if old.startswith("postgresql"):
        asked = ("evidence", "calls", "verdicts", "attempts")
        assert {brought_up[table]["stage"] for table in asked} == {"VARCHAR(16)"}
        assert {brought_up[table]["criterion_id"] for table in ("verdicts", "attempts")} == {"VARCHAR(16)"}


@pytest.mark.parametrize("table", ["verdicts", "attempts", "calls"])
def test_it_stays_append_only(old, table):
    with open_store(old) as store:
        for statement in (f"update {table} set stage = 'S2'", f"delete from {table}"):
            with pytest.raises(sa.exc.DBAPIError, match="only ever added"), store._engine.begin() as connection:
                connection.exec_driver_sql(statement)


_OPENER = """
import sys, time
from ambjudge.judge.store import open_store
from stored import RUBRIC, key, recorded_run, scored
from ambjudge.judge.base import Reply
run = recorded_run()
target, number, at = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
time.sleep(max(0.0, at - time.time()))
with open_store(target) as store:
    ref = store.add_run(run)
    store.add_reply(ref, RUBRIC, "diagnosis", [key(number)], Reply((scored(answer={"by": number}),)))
"""


def _opener(address: str, number: int, at: float) -> subprocess.Popen:
    code = f"import sys; sys.path.insert(0, {str(Path(stored.__file__).parent)!r})\n{_OPENER}"
    return subprocess.Popen([sys.executable, "-c", code, address, str(number), str(at)])


def test_two_processes_that_open_it_at_once_do_not_collide(old):
    at = time.time() + 2
    workers = [_opener(old, number, at) for number in (10, 11)]
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0]
    with open_store(old) as store:
        store.check()
        assert sorted(v.key.sha256 for v in store.iter_verdicts()) == [f"{n:064x}" for n in (1, 10, 11)]


def test_threads_that_open_it_at_once_do_not_collide(old):
    from concurrent.futures import ThreadPoolExecutor
    from threading import Barrier

    barrier = Barrier(6)

    def open_it(_: int) -> int:
        barrier.wait()
        with open_store(old) as store:
            return sum(1 for _ in store.iter_verdicts())

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(open_it, range(6))) == [1] * 6


_KILLED = """
import os, signal, sys
from ambjudge.judge.store import schema
from ambjudge.judge.store import open_store
whole = schema.upgrade
def upgrade(connection, found):
    whole(connection, found)
    os.kill(os.getpid(), signal.SIGKILL)
schema.upgrade = upgrade
open_store(sys.argv[1])
"""


def test_a_crash_in_between_leaves_what_was_there(old):
    killed = subprocess.run([sys.executable, "-c", _KILLED, old], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert "answer" not in schema_of(old)["verdicts"]
    with open_store(old) as store:
        store.check()
        assert [v.result for v in store.iter_verdicts()] == [OLD]


def test_a_writer_that_is_in_the_middle_is_waited_for(old):
    """An older process that stores a verdict while the store is brought up: both get what they want."""
    engine = sa.create_engine(locate(old))
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("begin immediate")
        connection.exec_driver_sql(
            f"insert into calls select '{'1' * 32}', run_ref, stage, judge, rubric_sha256, sample, criteria, calls, "
            "input_tokens, output_tokens, cost_usd, codes, warnings, created_at from calls"
        )
        worker = _opener(old, 10, time.time())
        with pytest.raises(subprocess.TimeoutExpired):
            worker.wait(timeout=2)
        connection.exec_driver_sql("insert into evidence values ('b2', 'ctx', 'S1', 'e2', 't')")
        connection.commit()
    engine.dispose()
    assert worker.wait(timeout=60) == 0
    with open_store(old) as store:
        assert set(store.calls_of(["0" * 32, "1" * 32])) == {"0" * 32, "1" * 32}
        assert sum(1 for _ in store.iter_verdicts()) == 2


def test_where_it_cannot_be_written_the_error_says_why_it_would_be(tmp_path, monkeypatch):
    path = tmp_path / "s.db"
    version_1(str(path))
    monkeypatch.setattr(opening, "BUSY_TIMEOUT_S", 0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(StoreError, match=r"held by another process.*older ambjudge \(schema 1\).*schema 3") as caught:
        open_store(path, create=False)
    assert "\n" not in str(caught.value)
    other.close()
    open_store(path, create=False).close()
