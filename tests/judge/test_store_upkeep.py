"""Copies, backups and slimming of a store: every board stays as it is, byte for byte."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from ambjudge.cli import run as run_command
from ambjudge.errors import StoreError
from ambjudge.judge.base import Reply, Usage
from ambjudge.judge.provider_batch.ledger import PART_EVENT, Ledger
from ambjudge.judge.questions.texts import Text
from ambjudge.judge.store import open_store, schema
from ambjudge.judge.store.contents import contents
from ambjudge.judge.store.copying import back_up, copy_store
from ambjudge.judge.store.pruning import prune_cards, prune_events, prune_replies, vacuum
from stored import RECORDED, RUBRIC, key, recorded_run, scored

BOARDS = (("leaderboard",), ("export", "--what", "criteria"))


@pytest.fixture
def collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with runs and their store, in which every table has rows."""
    folder = tmp_path / "collection"
    names = sorted(path.name for path in (RECORDED / "runs").iterdir())[:2]
    for name in names:
        shutil.copytree(RECORDED / "runs" / name, folder / "runs" / name)
    monkeypatch.chdir(folder)
    (folder / "ambjudge.toml").write_text("", encoding="utf-8")
    assert run_command(["-q", "score", "runs", "--out", str(tmp_path / "cards.jsonl")]) in (0, 1)
    with open_store(folder / ".ambjudge" / "ambjudge.db") as store:
        (ref, *_) = [stored.ref for stored in store.iter_runs()]
        failed = scored().unscored("S1b", "judge_error")
        reply = Reply((scored(0.5), failed), Usage(1, 10, 5, 0.25), raw=("old text", "ü"))
        store.add_reply(ref, RUBRIC, "S1", [key(1), key(2, criterion="S1b")], reply)
        store.add_label("r", "a1", "{}")
        store.add_texts([Text("prompt", "system.txt", b"Judge.")])
        for batch in ("open", "closed"):
            store.add_event(PART_EVENT, {"requests": [{"path": "runs/x"}]}, batch)
        Ledger(store).note("closed", "closed")
    return folder


@pytest.fixture
def boards(capsys: pytest.CaptureFixture[str]):
    """What the reading commands print from a store."""

    def read(store: object) -> list[str]:
        capsys.readouterr()
        texts = []
        for words in BOARDS:
            assert run_command(["-q", *words, "runs", "--store", str(store)]) == 0
            texts.append(capsys.readouterr().out)
        return texts

    return read


def rows_of(target: object) -> dict[str, list]:
    """All rows of all tables that are copied."""
    with open_store(str(target), create=False) as store, store._engine.connect() as connection:
        return {
            name: [tuple(row) for row in connection.execute(sa.select(table).order_by(*table.c))]
            for name, table in schema.metadata.tables.items()
            if name not in ("meta", "claims")
        }


def test_a_copy_and_its_copy_have_the_same_rows_and_boards(collection, target, boards, tmp_path):
    original, back = collection / ".ambjudge" / "ambjudge.db", tmp_path / "other" / "back.db"
    if "://" not in target:
        target = str(tmp_path / "elsewhere" / "copy.db")
    for source, copy in ((original, target), (target, back)):
        assert run_command(["-q", "store", "copy", str(source), str(copy)]) == 0
        assert boards(copy) == boards(original)
        with open_store(copy, create=False) as store:
            assert (store.made_here, store.root) == (True, collection)
            assert contents(store).gone == ()
        assert run_command(["-q", "store", "copy", str(source), str(copy)]) == 2  # it is not empty
    assert rows_of(target) == rows_of(back) == rows_of(original)
    assert all(rows_of(target).values())
    with open_store(target) as store:  # New rows are numbered after the copied ones.
        ref = store.add_run(recorded_run())
        store.add_reply(ref, RUBRIC, "S1", [key(9)], Reply((scored(),)))
        assert [verdict.key.sha256 for verdict in store.iter_verdicts()][-1] == key(9).sha256


def test_paths_of_a_store_without_a_base_become_relative_to_the_one_given(
    collection, postgres_url, tmp_path, boards
):
    original = collection / ".ambjudge" / "ambjudge.db"
    engine = sa.create_engine(postgres_url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.exec_driver_sql("create schema absolute")
    url = f"{postgres_url}?options=-csearch_path%3Dabsolute"
    assert run_command(["-q", "score", "runs", "--store", url]) in (0, 1)
    moved = tmp_path / "moved"
    shutil.copytree(collection / "runs", moved / "runs")
    for base, copy in ((collection, "here.db"), (moved, "there.db")):
        with open_store(url, create=False) as source:
            assert source.root is None
            copy_store(source, tmp_path / copy, base=collection)
        with open_store(tmp_path / copy, create=False) as first:
            copied = copy_store(first, tmp_path / f"again-{copy}", base=base)
        assert copied.root == base
        with open_store(copied.location, create=False) as store:
            held = contents(store)
            assert (held.runs, held.gone) == (2, ())
    assert boards(tmp_path / "here.db")[0] == boards(original)[0]
    engine.dispose()


def test_a_backup_is_whole_while_somebody_writes_and_works_at_any_place(
    collection, boards, tmp_path
):
    original, backup = collection / ".ambjudge" / "ambjudge.db", tmp_path / "b" / "backup.db"
    before = rows_of(original)
    writer = sqlite3.connect(original, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO events (kind, body, created_at) VALUES ('late', '{}', '')")
    with open_store(original) as store:
        back_up(store, backup)
        with pytest.raises(StoreError, match="exists already"):
            back_up(store, backup)
    writer.execute("COMMIT")
    writer.close()
    assert rows_of(backup) == before != rows_of(original)
    assert boards(backup) == boards(original)
    with open_store(backup) as store:
        assert store.made_here
    original.unlink()
    shutil.copyfile(backup, original)
    assert run_command(["-q", "leaderboard", "runs"]) == 0
    with open_store(original) as store:
        assert store.made_here


def test_slimming_takes_what_nothing_rests_on(collection, target, boards):
    original = collection / ".ambjudge" / "ambjudge.db"
    with open_store(original) as source:
        path = next(source.iter_runs()).path
        card = next(source.cards(path))
        for note in ("again", "and again"):
            source.add_card(1, path, card.model_copy(update={"warnings": (note,)}))
        if "://" in target:
            copy_store(source, target)
        else:
            target = str(original)
    before, shown = rows_of(target), boards(target)
    for dry_run in (True, False):
        with open_store(target) as store:
            closed = Ledger(store).closed_batches()
            kinds = [
                prune_replies(store, "2000-01-01", dry_run=dry_run),
                prune_replies(store, "2999-01-01", dry_run=dry_run),
                prune_cards(store, dry_run=dry_run),
                prune_events(store, "events", PART_EVENT, closed, dry_run=dry_run),
            ]
            assert [kind.rows for kind in kinds] == [0, 2, 2, 1]
            assert all(kind.bytes for kind in kinds[1:])
            if not dry_run:
                vacuum(store)
        assert (rows_of(target) == before) == dry_run
    after = rows_of(target)
    assert boards(target) == shown
    changed = {name for name, rows in after.items() if rows != before[name]}
    assert changed - {"card_verdicts"} == {"replies", "call_replies", "cards", "events"}
    with (
        open_store(target) as store,
        pytest.raises(sa.exc.DBAPIError, match="only ever added"),
        store._engine.begin() as connection,
    ):
        connection.exec_driver_sql("delete from events")


def test_a_store_that_knows_none_of_the_runs_says_so(collection, capsys, tmp_path):
    """A copied file whose paths are not those of the runs: no command takes that for new runs."""
    misplaced = tmp_path / "elsewhere" / "misplaced.db"
    misplaced.parent.mkdir()
    with open_store(collection / ".ambjudge" / "ambjudge.db") as store:
        back_up(store, tmp_path / "backup.db")
    with closing(sqlite3.connect(tmp_path / "backup.db")) as connection, connection:
        connection.execute("DELETE FROM meta WHERE name = 'root'")
    for words in (
        ("leaderboard", "runs"),
        ("analyze", "runs", "--table", "stages"),
        ("export", "runs"),
        ("rejudge", "runs", "--dry-run"),
        ("score", "runs"),
    ):
        shutil.copyfile(tmp_path / "backup.db", misplaced)
        run_command([*words, "--store", str(misplaced)])
        seen = capsys.readouterr().err
        assert f"{misplaced} has 2 runs, none of them at runs: the nearest is" in seen, words
        assert str(misplaced.parent / "runs") in seen
    run_command(["leaderboard", "runs"])
    assert "none of them" not in capsys.readouterr().err
