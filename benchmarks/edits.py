"""Many sequences of edits between two rejudges (tests/helpers/edit_machine.py).

    python benchmarks/edits.py --seeds 500 --steps 8     500 sequences of 8 edits
    python benchmarks/edits.py --first 17 --seeds 1      the one that failed, again

Exit 1 if a sequence ends in a fault; each fault is printed with its seed and its steps.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from edit_machine import run_edits
from sequences import run_sequences

if __name__ == "__main__":
    sys.exit(run_sequences(__doc__, partial(run_edits, kills=True), seeds=500, steps=8))
