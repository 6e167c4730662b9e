"""Which labelled runs a prompt may be written on (`dev`), and which only measure what came of it
(`test`)."""

from __future__ import annotations

import hashlib
from typing import Literal

from ...trajectories.models import Run

Split = Literal["dev", "test"]
SPLITS: tuple[Split, ...] = ("dev", "test")


def split_of(run: Run, test_share: float = 0.5) -> Split:
    """The side of a run, by a hash of its content: the same on every machine, under every name,
    whatever else is there.

    `test_share` in [0, 1] is the share of runs that are `test`; a larger one only moves runs from
    dev to test.
    """
    digest = hashlib.sha256(
        f"ambjudge split\0{run.content_sha256}".encode("utf-8", "surrogatepass")
    ).digest()
    return "test" if int.from_bytes(digest[:8], "big") < test_share * 2**64 else "dev"
