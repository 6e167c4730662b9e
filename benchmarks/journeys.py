"""Many steps of the state machine over whole commands (tests/helpers/cohort_machine.py).

    python benchmarks/journeys.py --seeds 50 --steps 40      50 sequences of up to 40 steps
    python benchmarks/journeys.py --first 17 --seeds 1       the one that failed, again

Exit 1 if a sequence ends in a fault; each fault is printed with its seed and its steps.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from cohort_machine import run_sequence
from sequences import run_sequences

if __name__ == "__main__":
    sys.exit(run_sequences(__doc__, partial(run_sequence, kills=True), seeds=50, steps=40))
