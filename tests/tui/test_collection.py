"""Collections: folders, files of scorecards and stores become rows, without reading
trajectories."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import ambjudge
import pytest
from ambjudge.errors import InputError
from ambjudge.judge.session import ScoreOptions
from ambjudge.judge.store import Store, open_store
from ambjudge.views.collection import BATCH, Collection
from ambjudge.views.run_rows import RunRow

DATA = Path(__file__).parents[1] / "data"
RUNS = DATA / "recorded" / "runs"
CARDS = DATA / "tui" / "cards.jsonl"


def rows(collection: Collection) -> list[RunRow]:
    return [row for batch in collection.batches() for row in batch]


def test_a_folder_lists_runs_that_wait() -> None:
    found = rows(Collection(RUNS, options=ScoreOptions))
    assert len(found) == 15
    assert {row.state for row in found} == {"waiting"}
    assert [row.number for row in found] == list(range(15))


def test_a_folder_with_cards_lists_scores() -> None:
    collection = Collection(RUNS, options=ScoreOptions, cards=CARDS)
    found = rows(collection)
    assert {row.state for row in found} == {"scored"}
    card = collection.card(found[0])
    assert card is not None
    assert (card.run.id, card.overall) == (found[0].id, found[0].overall)


def test_a_file_of_cards_finds_its_runs_from_another_folder(tmp_path: Path) -> None:
    shutil.copytree(RUNS / "crc-lite-01", tmp_path / "runs" / "crc-lite-01")
    lines = [line for line in CARDS.read_text().splitlines() if '"crc-lite-0' in line]
    file = tmp_path / "cards.jsonl"
    file.write_text("\n".join(lines) + "\n")
    collection = Collection(file, options=ScoreOptions, cards=file)
    first, second = rows(collection)
    opened = collection.open(first)
    assert opened.run is not None
    assert opened.card is not None
    assert opened.notes == ()
    missing = collection.open(second)
    assert missing.run is None
    assert missing.card is not None
    assert "is missing" in missing.notes[0]


def test_broken_lines_are_counted_and_left_out(tmp_path: Path) -> None:
    file = tmp_path / "cards.jsonl"
    good, other = CARDS.read_text().splitlines()[:2]
    file.write_text(
        "\n".join(["{", good, "[1]", '{"run": {"id": "x"}}', "", "null", "[" * 5000, other]) + "\n"
    )
    collection = Collection(file, options=ScoreOptions, cards=file)
    assert [row.id for row in rows(collection)] == ["bccd-lite-01", "bccd-lite-04"]
    assert collection.skipped == 5


@pytest.mark.parametrize("text", ["", "nonsense\n"], ids=["empty", "no JSON"])
def test_nothing_to_show_is_an_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "cards.jsonl"
    file.write_text(text)
    with pytest.raises(InputError, match="holds no scorecards"):
        rows(Collection(file, options=ScoreOptions, cards=file))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    opened = open_store(tmp_path / ".ambjudge" / "ambjudge.db")
    for name in ("crc-lite-01", "crc-lite-02"):
        shutil.copytree(RUNS / name, tmp_path / name)
        run = ambjudge.load_run(tmp_path / name)
        opened.add_card(opened.add_run(run), run.path, ambjudge.score(run))
    shutil.copytree(RUNS / "crc-std-01", tmp_path / "crc-std-01")
    return opened


def test_a_store_gives_cards_to_a_folder(store: Store, tmp_path: Path) -> None:
    collection = Collection(tmp_path, options=ScoreOptions, store=lambda: store)
    assert [(row.id, row.state) for row in rows(collection)] == [
        ("crc-lite-01", "scored"),
        ("crc-lite-02", "scored"),
        ("crc-std-01", "waiting"),
    ]


def test_a_store_alone_lists_what_it_knows(store: Store, tmp_path: Path) -> None:
    store.add_run(ambjudge.load_run(tmp_path / "crc-std-01"))
    collection = Collection(
        tmp_path / ".ambjudge" / "ambjudge.db", options=ScoreOptions, store=lambda: store
    )
    found = rows(collection)
    assert [(row.id, row.state) for row in found] == [
        ("crc-lite-01", "scored"),
        ("crc-lite-02", "scored"),
        ("crc-std-01", "waiting"),
    ]
    opened = collection.open(found[0])
    assert opened.run is not None
    assert opened.card is not None


def test_scoring_a_run_gives_its_row_and_card() -> None:
    collection = Collection(RUNS, options=ScoreOptions)
    row = rows(collection)[3]
    scored = collection.score(row)
    assert scored.state == "scored"
    assert scored.number == row.number
    assert collection.cards_of(scored)[0].run.id == row.id


def test_a_run_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "conversation.json").write_text("{broken")
    collection = Collection(tmp_path, options=ScoreOptions)
    row = collection.score(rows(collection)[0])
    assert row.state == "error"
    assert "conversation.json" in row.error
    assert collection.open(row).notes


def test_a_card_of_other_bytes_is_noted(tmp_path: Path) -> None:
    shutil.copytree(RUNS / "crc-lite-01", tmp_path / "crc-lite-01")
    path = tmp_path / "crc-lite-01" / "process" / "conversation.json"
    path.chmod(0o644)
    path.write_text(path.read_text() + "\n")
    collection = Collection(tmp_path, options=ScoreOptions, cards=CARDS)
    assert "another version" in collection.open(rows(collection)[0]).notes[0]


def test_many_runs_come_in_batches(tmp_path: Path) -> None:
    file = tmp_path / "cards.jsonl"
    card = json.loads(CARDS.read_text().splitlines()[0])
    file.write_text(
        "".join(
            json.dumps({**card, "run": {**card["run"], "id": f"r{n}"}}) + "\n"
            for n in range(BATCH + 3)
        )
    )
    assert [
        len(batch) for batch in Collection(file, options=ScoreOptions, cards=file).batches()
    ] == [BATCH, 3]
