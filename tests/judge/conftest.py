"""The databases that a store can lie in, and copies of recorded runs."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import postgres
import pytest
import sqlalchemy as sa
import yaml
from ambjudge.error_codes import taxonomy
from ambjudge.judge.questions import items
from ambjudge.judge.store import Store, open_store
from ambjudge.trajectories.reading.layout import find_conversations
from stored import RECORDED, recorded_run


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    pytest.importorskip(
        "psycopg", reason="psycopg is not installed: make test installs the extra `postgresql`"
    )
    if postgres.programs() is None:
        pytest.skip(postgres.MISSING)
    with postgres.server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request, tmp_path) -> Iterator[str]:
    """An empty store's address, on each database."""
    if request.param == "sqlite":
        yield str(tmp_path / "runs" / ".ambjudge" / "ambjudge.db")
        return
    url = request.getfixturevalue("postgres_url")
    name = f"s{random.randrange(10**12)}"
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.exec_driver_sql(f"create schema {name}")
    yield f"{url}?options=-csearch_path%3D{name}"
    with engine.begin() as connection:
        connection.exec_driver_sql(f"drop schema {name} cascade")
    engine.dispose()


@pytest.fixture
def run():
    return recorded_run()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / ".ambjudge" / "ambjudge.db") as opened:
        yield opened


@pytest.fixture
def runs(request: pytest.FixtureRequest, tmp_path: Path) -> list[Path]:
    """Conversations of copies of the recorded runs that the module's RUNS names, below runs/; an
    hour old, so that their file times are trusted."""
    for name in request.module.RUNS:
        shutil.copytree(RECORDED / "runs" / name, tmp_path / "runs" / name)
    past = time.time() - 3600
    for where, folders, files in os.walk(tmp_path / "runs"):
        for name in (*folders, *files):
            os.utime(Path(where) / name, (past, past))
    return sorted(find_conversations(tmp_path / "runs"))


@pytest.fixture
def edit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator:
    """`edit_code(E3="...")` gives codes of the paper's taxonomy another description, as somebody
    who edits the file does; without any, the file is as it was."""

    def forget() -> None:
        taxonomy._read.cache_clear()
        items.diagnosis_items.cache_clear()

    original = taxonomy.TAXONOMIES_FILE

    def edit(**descriptions: str) -> None:
        data = yaml.safe_load(original.read_text(encoding="utf-8"))
        for code, text in descriptions.items():
            data["paper"]["codes"][code]["description"] = text
        changed = tmp_path / "taxonomies.yaml"
        changed.write_text(yaml.safe_dump(data), encoding="utf-8")
        monkeypatch.setattr(taxonomy, "TAXONOMIES_FILE", changed)
        forget()

    yield edit
    monkeypatch.undo()
    forget()
