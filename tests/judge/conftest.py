"""The databases that a store can lie in."""

from __future__ import annotations

import random
from collections.abc import Iterator

import postgres
import pytest
import sqlalchemy as sa
from stored import recorded_run


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    pytest.importorskip("psycopg", reason="psycopg is not installed: make test installs the extra `postgresql`")
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
