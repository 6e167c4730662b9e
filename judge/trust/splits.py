"""The dev and test split of labelled runs.

Prompts may be written on `dev` runs; `test` runs only measure the result.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from ...trajectories.models import Run

Split = Literal["dev", "test"]
SPLITS: tuple[Split, ...] = ("dev", "test")


def split_of(run: Run, test_share: float = 0.5) -> Split:
    """The split of a run, by a hash of its content.

    It is the same on every machine, under every name, whatever other runs there are. `test_share`
    in [0, 1] is the share of `test` runs; a larger one only moves runs from dev to test.
    """
    text = f"ambjudge split\0{run.content_sha256}"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return "test" if int.from_bytes(digest[:8], "big") < test_share * 2**64 else "dev"
