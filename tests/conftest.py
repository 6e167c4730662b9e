"""Fixtures that several rooms share."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import loopback_server
import pytest
from hypothesis import settings

settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


def pytest_make_parametrize_id(val: object) -> str | None:
    """A long text is named by its beginning and its length: megabytes of hostile text are no name
    of a test."""
    if isinstance(val, str | bytes) and len(val) > 60:
        return f"{val[:40]!r}... {len(val)}"
    return None


@pytest.fixture(scope="session")
def loopback():
    """The module of the loopback server, for its helpers."""
    return loopback_server


@pytest.fixture
def judge_server() -> Iterator:
    """A fresh scripted OpenAI-compatible server: `url`, `script`, `requests`, `headers`,
    `count`."""
    server = loopback_server.JudgeServer().start()
    yield server
    server.stop()


@pytest.fixture(autouse=True, scope="session")
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What ambjudge notes of the user's stores goes into a folder of the tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True, scope="session")
def no_run_is_young() -> Iterator[None]:
    """Runs that tests wrote a moment ago do not count as still running: tests of that say so."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("AMBJUDGE_YOUNG_MINUTES", "0")
        yield


@pytest.fixture
def no_runaway() -> Callable[[], AbstractContextManager[None]]:
    """`with no_runaway():` fails when the block burns a minute of CPU, as a regex or loop that
    explodes on hostile text does.

    A guard against hanging, not a timing: what it guards takes seconds at most, and a busy machine
    burns no CPU of ours.
    """

    @contextmanager
    def guard() -> Iterator[None]:
        def stop(*_: object) -> None:
            pytest.fail("a minute of CPU is gone and there is no end in sight")

        before = signal.signal(signal.SIGPROF, stop)
        signal.setitimer(signal.ITIMER_PROF, 60)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)

    return guard
