"""The store: the same on SQLite and on a real PostgreSQL server, append-only, safe under kill -9
and many processes."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
import stored
from ambjudge.errors import StoreError
from ambjudge.judge.base import Reply, Usage
from ambjudge.judge.card.stage_results import CriterionResult, Vote
from ambjudge.judge.questions.texts import Text
from ambjudge.judge.store import is_final, open_store
from ambjudge.judge.store.connection import EvidenceRow
from ambjudge.judge.store.served_models import ServedModels
from ambjudge.trajectories.record.quotes import Evidence
from stored import RECORDED, RUBRIC, key, scored, sound, spent


def unscored(reason: str, id: str = "S1a") -> CriterionResult:
    return CriterionResult(id=id, value=None, status="unscored", reason=reason, detail="why")


def test_a_verdict_comes_back_as_it_was_given(target, run):
    result = scored(
        1 / 3,
        rationale="because\nthe turn says so",
        detail="d",
        evidence=(Evidence(turn=4, quote="Ünïcode ✓ 𝔘", check="verified"),),
        votes=(
            Vote(judge="a", value=1 / 3, probability=0.123456789),
            Vote(judge="b", value=None, reason="refused"),
        ),
    )
    reply = Reply((result,), Usage(1, 10, 5, 0.25), warnings=("odd",), raw=("{...}", "second"))
    with open_store(target) as store:
        ref = store.add_run(run)
        assert store.add_reply(ref, RUBRIC, "S1", [key(1)], reply) == (result,)
    with open_store(target, create=False) as store:
        (stored,) = store.verdicts([key(1).sha256, key(2).sha256]).values()
        assert stored.result == result
        assert stored.key == key(1)
        assert store.keys_with_verdict([key(1).sha256, key(2).sha256]) == {key(1).sha256}
        assert store.raw_replies(stored.call_id) == ("{...}", "second")
        assert spent(store) == Usage(1, 10, 5, 0.25)
        (call,) = store.past_calls("tester")
        assert (call.question, call.input_tokens, call.output_tokens) == ("S1", 10, 5)
        assert (store.past_calls("nobody"), store.spent(), store.spent("2999")) == ([], 0.25, 0.0)


ANSWERS = (
    None,
    {"turns": [3, 4], "facts": ["F2"], "confidence": 0.7, "plan": None, "b": {"ä": [[], {}]}},
    {"1": "S1", "2": "S2"},
    "Ja – 是的 🙂 \u202e \0",
    [None],
    False,
    "",
)


def test_an_answer_beside_the_value_comes_back(target, run):
    with open_store(target) as store:
        ref = store.add_run(run)
        for number, answer in enumerate(ANSWERS):
            result = CriterionResult(
                id="diagnosis:E1", value=None, status="not_applicable", answer=answer
            )
            reply = store.add_reply(
                ref, RUBRIC, "diagnosis", [key(number, criterion="diagnosis:E1")], Reply((result,))
            )
            assert reply == (result,)
        assert [(v.stage, v.result.answer) for v in store.iter_verdicts()] == [
            ("diagnosis", each) for each in ANSWERS
        ]
        with store._engine.connect() as connection:
            texts = connection.exec_driver_sql(
                "select answer from verdicts order by seq"
            ).fetchall()
        assert [text is None for (text,) in texts] == [answer is None for answer in ANSWERS]


def test_equal_answers_are_the_same_bytes_and_text_that_no_database_holds_is_mapped(target, run):
    answers = ({"b": 1, "a": "\ud800"}, {"a": "\ud800", "b": 1})
    with open_store(target) as store:
        ref = store.add_run(run)
        for number, answer in enumerate(answers):
            result = CriterionResult(id="ask", value=None, status="not_applicable", answer=answer)
            (stands,) = store.add_reply(
                ref, RUBRIC, "ask", [key(number, criterion="ask")], Reply((result,))
            )
            stands.model_dump_json()
        with store._engine.connect() as connection:
            texts = connection.exec_driver_sql("select distinct answer from verdicts").fetchall()
    assert [text for (text,) in texts] == ['{"a":"\ufffd","b":1}']


def test_cached_tokens_are_kept_by_call_and_added_up(target, run):
    with open_store(target) as store:
        ref = store.add_run(run)
        used = Usage(1, 1_000, 50, 0.01, cached_tokens=900, cache_write_tokens=40)
        store.add_reply(ref, RUBRIC, "S1", [key(1)], Reply((scored(),), used))
        store.add_reply(ref, RUBRIC, "S2", [key(2)], Reply((scored(),), used))
        calls = store.calls_of([v.call_id for v in store.iter_verdicts()])
        assert {call.usage for call in calls.values()} == {used}
        assert spent(store) == used + used
        unknown = Usage(1, 1_000, 50, 0.01, cached_tokens=None, cache_write_tokens=None)
        store.add_reply(ref, RUBRIC, "S3", [key(3)], Reply((scored(),), unknown))
        assert spent(store) == used + used + unknown
        assert spent(store).cached_tokens is None


def test_the_first_verdict_under_a_key_stands_for_everyone(target, run):
    with open_store(target) as one, open_store(target) as two:
        ref = one.add_run(run)
        assert two.add_run(run) == ref
        one.add_reply(ref, RUBRIC, "S1", [key(1)], Reply((scored(1.0),)))
        assert two.add_reply(ref, RUBRIC, "S1", [key(1)], Reply((scored(0.0),))) == (scored(1.0),)
        assert [v.result.value for v in two.iter_verdicts()] == [1.0]


COUNTS = (
    ("a zero that was judged", scored(0.0), (), True),
    ("not applicable", CriterionResult(id="S1a", value=None, status="not_applicable"), (), True),
    ("credited is a rule", CriterionResult(id="S1a", value=1.0, status="credited"), (), False),
    ("judge error", unscored("judge_error"), (), False),
    ("never called", unscored("budget"), (), False),
    ("evidence left out", unscored("truncated"), (), True),
    ("reply cut short", unscored("truncated"), ("S1a",), False),
    ("unparsable", unscored("unparsable"), (), True),
    ("refused", unscored("refused"), (), True),
    ("no evidence", unscored("no_evidence"), (), True),
)


def test_what_counts_as_a_verdict(target, run):
    with open_store(target) as store:
        ref = store.add_run(run)
        for number, (name, result, transient, final) in enumerate(COUNTS):
            reply, sha = Reply((result,), transient=frozenset(transient)), key(number).sha256
            assert is_final(result, reply) is final, name
            store.add_reply(ref, RUBRIC, "S1", [key(number)], reply)
            assert (sha in store.keys_with_verdict([sha])) is final, name
            failed = result.status == "unscored" and not final
            assert store.attempts([sha]) == ({sha: [(result.reason, "why")]} if failed else {}), (
                name
            )


def test_an_attempt_is_mended_later(target, run):
    with open_store(target) as store:
        ref = store.add_run(run)
        store.add_reply(ref, RUBRIC, "S1", [key(1)], Reply((unscored("judge_error"),)))
        store.add_reply(ref, RUBRIC, "S1", [key(1)], Reply((unscored("judge_error"),)))
        store.add_reply(ref, RUBRIC, "S1", [key(1)], Reply((scored(),)))
        assert store.verdicts([key(1).sha256])[key(1).sha256].result == scored()
        assert len(store.attempts([key(1).sha256])[key(1).sha256]) == 2


def test_the_database_refuses_changes(target, run):
    columns = {
        "verdicts": "stage",
        "attempts": "stage",
        "calls": "judge",
        "replies": "size",
        "labels": "run",
        "events": "kind",
    }
    with open_store(target) as store:
        ref = store.add_run(run)
        reply = Reply((scored(), unscored("judge_error", "S1b")), raw=("text",))
        store.add_reply(ref, RUBRIC, "S1", [key(1), key(2, criterion="S1b")], reply)
        store.add_label("r", "a1", "{}")
        store.add_event("batch_started", {})
        for table, column in columns.items():
            for statement in (f"update {table} set {column} = {column}", f"delete from {table}"):
                with (
                    pytest.raises(sa.exc.DBAPIError, match="only ever added"),
                    store._engine.begin() as connection,
                ):
                    connection.exec_driver_sql(statement)


TEXTS = (
    "lone \ud800 surrogate",
    "pair \ud83d\ude00 split",
    "nul \0 byte",
    "\udc80 from a file name",
    "\u202e bidi",
    "",
)


def test_text_that_a_database_cannot_hold_is_mapped_not_fatal(target, run):
    with open_store(target) as store:
        for number, text in enumerate(TEXTS):
            result = scored(
                rationale=text,
                detail=text,
                evidence=(Evidence(turn=1, quote=text, check="not_found"),),
            )
            hostile = run.model_copy(
                update={"agent": text, "path": run.path.parent / text.replace("\0", "")}
            )
            reply, sha = Reply((result,), warnings=(text,), raw=(text,)), key(number).sha256
            (stands,) = store.add_reply(
                store.add_run(hostile, stamp="s"), RUBRIC, "S1", [key(number)], reply
            )
            stands.model_dump_json()
            assert len(stands.rationale) in (len(text), len(text) - 1)
            assert store.raw_replies(store.verdicts([sha])[sha].call_id) == (text,)
            assert list(store.stamped([hostile.path])) == [hostile.path]
        assert all(r.path for r in store.iter_runs())


def test_a_raw_reply_is_kept_once_and_small(target, run):
    text = "the same long answer " * 5_000
    with open_store(target) as store:
        ref = store.add_run(run)
        for number in range(5):
            store.add_reply(ref, RUBRIC, "S1", [key(number)], Reply((scored(),), raw=(text, text)))
        with store._engine.connect() as connection:
            rows = connection.exec_driver_sql("select size, length(body) from replies").fetchall()
    assert len(rows) == 1
    assert rows[0][0] == len(text)
    assert rows[0][1] < len(text) / 50


def test_thousands_of_keys_in_one_look_up(target, run):
    with open_store(target) as store:
        ref = store.add_run(run)
        for start in range(0, 6_000, 1_000):
            keys = [key(n) for n in range(start, start + 1_000)]
            store.add_reply(ref, RUBRIC, "S1", keys, Reply(tuple(scored() for _ in keys)))
        keys = [f"{n:064x}" for n in range(12_000)]
        assert len(store.keys_with_verdict(keys)) == 6_000
        assert len(store.verdicts(keys[5_990:6_010])) == 10
        assert sum(1 for _ in store.iter_verdicts()) == 6_000
        assert store.verdicts([]) == {}


def test_runs_have_versions_and_the_stamp_says_which_is_there_now(target, run, tmp_path):
    later = run.model_copy(update={"content_sha256": "f" * 64})
    with open_store(target, root=RECORDED) as store:
        first = store.add_run(run, stamp="one")
        assert store.add_run(run, stamp="one") == first
        second = store.add_run(later, stamp="two")
        assert second != first
        assert store.stamped([run.path, tmp_path])[run.path].run.ref == second
        store.add_run(run, stamp="three")
        stamped = store.stamped([run.path])[run.path]
        assert (stamped.stamp, stamped.run.ref, stamped.run.tier) == ("three", first, "lite")
        assert [r.ref for r in store.iter_runs()] == [first]
        assert stamped.run.path == run.path.absolute()
        assert store.relative(run.path) == "runs/kidney-lite-02/process/conversation.json"


def test_evidence_index(target, run):
    with open_store(target) as store:
        store.add_run(run)
        rows = [
            EvidenceRow(run.content_sha256, "ctx1", "S1", "e1"),
            EvidenceRow(run.content_sha256, "ctx3", "S3", "e3"),
        ]
        store.add_evidence(rows)
        store.add_evidence(rows)
        assert store.evidence([run.content_sha256, "other"], ["ctx1", "ctx3"]) == {
            (run.content_sha256, "ctx1"): "e1",
            (run.content_sha256, "ctx3"): "e3",
        }
        name = store.relative(run.path)
        assert store.evidence_by_path([name]) == {name: {("S1", "e1"), ("S3", "e3")}}
        store.add_reply(
            store.add_run(run), RUBRIC, "S1", [key(1, evidence="e1")], Reply((scored(),))
        )
        assert store.keys_by_evidence(["e1", "e2"]) == {("e1", "S1a"): [key(1, evidence="e1")]}


def test_scorecards_append_and_the_last_one_is_in_force(target, run):
    from ambjudge.judge.engine import make_scorecard

    card = make_scorecard(run)
    changed = card.model_copy(update={"warnings": ("new",)})
    with open_store(target) as store:
        ref = store.add_run(run)
        for each in (card, card, changed):
            store.add_card(ref, run.path, each)
        assert [stored_card.to_json() for stored_card in store.cards(run.path)] == [
            changed.to_json(),
            card.to_json(),
        ]
        assert list(store.cards(run.path, judge="other")) == []
        assert [stored_card.to_json() for stored_card in store.iter_cards()] == [changed.to_json()]
        store.add_card(ref, run.path, card)
        assert [stored_card.to_json() for stored_card in store.iter_cards(chunk=1)] == [
            card.to_json()
        ]


def test_labels_and_events(target):
    with open_store(target) as store:
        assert store.add_label("r1", "a1", '{"x":1}')
        assert not store.add_label("r1", "a1", '{"x":1}')
        assert store.add_label("r1", "a1", '{"x":2}')
        store.add_label("r1", "a2", "{}")
        assert list(store.labels("r1")) == [("r1", "a1", '{"x":2}'), ("r1", "a2", "{}")]
        assert list(store.labels(annotator="a2")) == [("r1", "a2", "{}")]
        store.add_event("batch_started", {"n": 1}, batch="b")
        store.add_event("batch_finished", {"n": 2}, batch="b")
        assert [(kind, body) for _, kind, body in store.events(batch="b")] == [
            ("batch_started", {"n": 1}),
            ("batch_finished", {"n": 2}),
        ]
        assert [body for _, _, body in store.events("batch_finished")] == [{"n": 2}]


@pytest.mark.parametrize(("version", "words"), [(99, "a newer"), (2, "an older")])
def test_a_store_of_another_schema_is_refused_and_left_as_it_is(target, version, words):
    with open_store(target) as store, store._engine.begin() as connection:
        connection.exec_driver_sql(f"update meta set value = '{version}' where name = 'schema'")
    for create in (True, False):
        with pytest.raises(
            StoreError, match=rf"by {words} ambjudge \(schema {version}, this version reads 6\)"
        ):
            open_store(target, create=create)


DATA = Path(__file__).parents[1] / "data"


def test_a_store_of_the_version_before_opens_with_all_that_it_has(tmp_path):
    """The file was written by the last version with schema 4: three calls, nine verdicts."""
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as connection:
        connection.executescript((DATA / "store_schema_4.sql").read_text("utf-8"))
    with open_store(path, create=False) as store:
        verdicts = list(store.iter_verdicts())
        assert len(verdicts) == 9
        assert {verdict.served_models for verdict in verdicts} == {()}
        assert spent(store) == Usage(3, 15_813, 352, 0.019333)
        assert store.served_models("openai/small-judge") == set()
        (run,) = store.iter_runs()
        add_served(store, run.ref, "openai/small-judge", "first-model")
        assert store.served_models("openai/small-judge") == {"first-model"}
        sound(store)
    with open_store(path) as store:
        assert len(list(store.iter_verdicts())) == 10


def test_an_older_schema_is_brought_up_to_date_on_each_database(target, run):
    with open_store(target) as store:
        add_served(store, store.add_run(run), "tester", "lost-with-the-column")
        with store._engine.begin() as connection:
            for column in (
                "served_models",
                "system_fingerprints",
                "estimated_calls",
                "prompt_tokens",
            ):
                connection.exec_driver_sql(f"alter table calls drop column {column}")
            connection.exec_driver_sql("alter table evidence drop column tokens")
            for table in ("card_verdicts", "card_bases", "claims", "texts"):
                connection.exec_driver_sql(f"drop table {table}")
            connection.exec_driver_sql("update meta set value = '4' where name = 'schema'")
    for _ in range(2):
        with open_store(target, create=False) as store:
            assert len(list(store.iter_verdicts())) == 1
            assert store.served_models("tester") == set()
            assert spent(store) == Usage(1, 10, 5, 0.25)
            store.add_texts([Text("item", "E1", b"{}")])
            with pytest.raises(StoreError), store._write() as connection:
                connection.exec_driver_sql("delete from texts")


def add_served(store, ref: int, judge: str, *models: str, number: int = 77) -> None:
    """A verdict of this judge that these models gave."""
    served = Reply((scored(),), Usage(1, 10, 5, 0.25), served_models=models)
    store.add_reply(ref, RUBRIC, "S1", [key(number).model_copy(update={"judge": judge})], served)


def test_a_change_of_the_model_that_answers_is_named_once(target, run):
    def answered(*models: str) -> Reply:
        return Reply((scored(),), served_models=models)

    with open_store(target) as store:
        ref = store.add_run(run)
        first = ServedModels(store, "tester")
        assert first.warnings(answered("a")) == ()
        add_served(store, ref, "tester", "a", number=1)
        assert first.warnings(answered("a")) == ()
        assert first.warnings(answered()) == ()
        later = ServedModels(store, "tester")
        assert later.warnings(answered("b")) == (
            "tester: b answered; a gave the earlier verdicts in this store",
        )
        assert later.warnings(answered("b", "a")) == ()
        add_served(store, ref, "tester", "b", number=2)
        assert ServedModels(store, "tester").warnings(answered("b")) == ()
        assert ServedModels(store, "other").warnings(answered("b")) == ()


def _sqlite_with(statement: str):
    def make(path: Path) -> None:
        with sqlite3.connect(path) as connection:
            connection.execute(statement)

    return make


def _damaged(path: Path) -> None:
    open_store(path).close()
    data = bytearray(path.read_bytes())
    data[100:4096] = b"\xff" * 3996
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(
            lambda p: p.write_text("hello, not a database, but long enough" * 50),
            "not a readable store",
            id="text",
        ),
        pytest.param(_damaged, "not a readable store", id="damaged"),
        pytest.param(lambda p: p.mkdir(), "is a folder", id="folder"),
        pytest.param(
            _sqlite_with("create table meta (other int)"),
            "not ambjudge's",
            id="another-programs-meta",
        ),
        pytest.param(
            _sqlite_with("create table runs (other int)"),
            "tables of another program: runs",
            id="another-programs-runs",
        ),
    ],
)
def test_what_is_no_store_of_ours_is_one_clear_line(tmp_path, make, message):
    path = tmp_path / "s.db"
    make(path)
    with pytest.raises(StoreError, match=message) as caught:
        open_store(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("mysql://host/db", "'mysql' is not supported"),
        ("sqlite://", "does not name a file"),
        ("postgresql://user:geheim@127.0.0.1:1/db", "127.0.0.1:1/db"),
        ("postgresql://user:geheim@127.0.0.1:notaport/db", "cannot be read"),
    ],
)
def test_bad_addresses_are_errors_that_show_no_password(address, message):
    with pytest.raises(StoreError, match=message) as caught:
        open_store(address)
    assert "geheim" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_store_is_not_made_by_readers(tmp_path):
    with pytest.raises(StoreError, match="no such store"):
        open_store(tmp_path / "none.db", create=False)
    assert not list(tmp_path.iterdir())


_WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, {folder!r})
from stored import RUBRIC, key, recorded_run, scored
from ambjudge.judge.base import Reply
from ambjudge.judge.store import open_store
run = recorded_run()
store = open_store(sys.argv[1])
ref = store.add_run(run)
number = int(sys.argv[2])
print("ready", flush=True)
while True:
    reply = Reply((scored(rationale="x" * 500),), raw=(str(number) * 99,))
    store.add_reply(ref, RUBRIC, "S1", [key(number)], reply)
    print(number, flush=True)
    number += 1
"""


def _writer(target: str, start: int) -> subprocess.Popen:
    code = _WRITER.format(folder=str(Path(stored.__file__).parent))
    return subprocess.Popen(
        [sys.executable, "-c", code, target, str(start)], stdout=subprocess.PIPE, text=True
    )


def test_kill_9_loses_nothing_that_was_stored(tmp_path):
    target = str(tmp_path / "s.db")
    moments = random.Random(1)
    promised, start = set(), 0
    children = []
    for _ in range(3):
        child = _writer(target, start)
        children.append(child)
        assert child.stdout.readline() == "ready\n"
        lines = [child.stdout.readline().strip() for _ in range(moments.randint(1, 12))]
        os.kill(child.pid, signal.SIGKILL)
        lines += child.stdout.read().split("\n")[:-1]
        child.wait()
        child.stdout.close()
        promised |= {f"{int(n):064x}" for n in lines}
        with open_store(target) as store:
            sound(store)
            assert promised <= store.keys_with_verdict(promised)
            total = sum(1 for _ in store.iter_verdicts())
        start += len(lines) + 1
        assert len(promised) <= total <= len(promised) + len(children)
    assert len(promised) > 10


_RANGE = """
import random, sys
sys.path.insert(0, {folder!r})
from stored import RUBRIC, key, recorded_run, scored
from ambjudge.judge.base import Reply
from ambjudge.judge.store import open_store
target, worker = sys.argv[1], int(sys.argv[2])
with open_store(target) as store:
    ref = store.add_run(recorded_run())
    numbers = list(range(40))
    random.Random(worker).shuffle(numbers)
    for at in range(0, 40, 4):
        keys = [key(n) for n in numbers[at : at + 4]]
        results = tuple(scored(worker / 10) for _ in keys)
        reply = Reply(results, raw=(f"same{{at}}", f"mine{{worker}}"))
        store.add_reply(ref, RUBRIC, "S1", keys, reply)
"""


def test_processes_at_once_on_a_new_store(target):
    code = _RANGE.format(folder=str(Path(stored.__file__).parent))
    workers = [subprocess.Popen([sys.executable, "-c", code, target, str(n)]) for n in range(3)]
    assert [worker.wait(timeout=60) for worker in workers] == [0] * 3
    with open_store(target) as store:
        sound(store)
        stored_keys = [v.key.sha256 for v in store.iter_verdicts()]
    assert sorted(stored_keys) == [f"{n:064x}" for n in range(40)]


def test_threads_share_one_store(tmp_path, run):
    from concurrent.futures import ThreadPoolExecutor

    with open_store(tmp_path / "s.db") as store:
        ref = store.add_run(run)

        def put(number: int) -> None:
            store.add_reply(ref, RUBRIC, "S1", [key(number % 50)], Reply((scored(),)))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(put, range(200)))
        assert sum(1 for _ in store.iter_verdicts()) == 50


def test_the_wal_is_on_and_commits_are_on_disk(tmp_path):
    with open_store(tmp_path / "s.db") as store, store._engine.connect() as connection:
        assert connection.exec_driver_sql("pragma journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("pragma synchronous").scalar() == 2
        assert connection.exec_driver_sql("pragma foreign_keys").scalar() == 1
