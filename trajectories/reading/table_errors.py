"""Turns what polars reports of an untrusted table file into an `InputError` of one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...errors import InputError


@contextmanager
def table_errors(path: Path, message: str, hint: str) -> Iterator[None]:
    """Raise the errors and panics of polars as InputError: `message`, the reason, and `hint`.

    Panics are not an `Exception`, and polars also writes them to stderr, where they are of no use
    to whoever gave a broken file: stderr is closed meanwhile.
    """
    import polars as pl

    try:
        with _silent_stderr():
            yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        lines = str(error).splitlines()
        reason = lines[0] if lines else type(error).__name__
        raise InputError(f"{message}: {reason[:200]}", hint, path) from error


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Send file descriptor 2 to the null device: polars writes to it from Rust."""
    stderr_copy = None
    with suppress(OSError):  # stderr is closed already
        stderr_copy = os.dup(2)
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, 2)
        os.close(null_device)
    try:
        yield
    finally:
        if stderr_copy is not None:
            os.dup2(stderr_copy, 2)
            os.close(stderr_copy)
