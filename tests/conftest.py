"""Fixtures that several rooms share."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_HERE = Path(__file__).parent


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
