"""Files that are whole under their names, or as they were: no reader sees half of one, whatever ends the writer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """`NAME.part` to write to, which takes the name when all went well and is removed when not; kill -9 leaves it there.

    Links are followed. What is no file (a pipe, a terminal) is itself what to write to.
    """
    real = Path(os.path.realpath(path))
    if real.exists() and not real.is_file():
        yield real
        return
    part = real.with_name(f"{real.name}.part")
    try:
        yield part
        part.replace(real)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
