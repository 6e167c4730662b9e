"""Fixtures that several rooms share."""

from __future__ import annotations

import importlib.util
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

_HERE = Path(__file__).parent


def pytest_make_parametrize_id(val: object) -> str | None:
    """A long text is named by its beginning and its length: megabytes of hostile text are no name of a test."""
    if isinstance(val, str | bytes) and len(val) > 60:
        return f"{val[:40]!r}... {len(val)}"
    return None


def _loopback():
    """tests/judge/loopback_server.py as a module; tests are no package, so it is loaded by its path, once."""
    name = "ambjudge_tests_loopback_server"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, _HERE / "judge" / "loopback_server.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def loopback():
    """The module of the loopback server, for its helpers."""
    return _loopback()


@pytest.fixture
def judge_server() -> Iterator:
    """A fresh scripted OpenAI-compatible server: `url`, `script`, `requests`, `headers`, `count`."""
    server = _loopback().JudgeServer().start()
    yield server
    server.stop()


@pytest.fixture
def no_runaway() -> Callable[[], AbstractContextManager[None]]:
    """`with no_runaway():` fails when the block burns a minute of CPU, as a regex or loop that explodes on hostile text does.

    A guard against hanging, not a timing: what it guards takes seconds at most, and a busy machine burns no CPU of ours.
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
