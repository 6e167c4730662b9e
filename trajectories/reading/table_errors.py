"""Tables that polars reads for us and nobody vouches for: what is wrong with one is an
`InputError`, and one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...errors import InputError


@contextmanager
def table_errors(path: Path, message: str, hint: str) -> Iterator[None]:
    """Errors of polars as InputError. So are its panics, which are no `Exception` and are reported
    on stderr, where what a broken file has set off is of no use: it is closed meanwhile."""
    import polars as pl

    try:
        with _no_stderr():
            yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)[:200]
        raise InputError(f"{message}: {reason}", hint, path) from error


@contextmanager
def _no_stderr() -> Iterator[None]:
    kept = None
    with suppress(OSError):  # it is closed already
        kept = os.dup(2)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)
    try:
        yield
    finally:
        if kept is not None:
            os.dup2(kept, 2)
            os.close(kept)
