"""Exports every run below the given folders to every format, imports it again and compares.

    python benchmarks/round_trips.py [FOLDER ...]

Without a folder: recorded and constructed runs. Calls, answers and how they went, texts, speakers,
tokens and the identity of a run must be equal, in what the format holds.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from ambjudge.errors import InputError
from ambjudge.trajectories.importers.exporters import EXPORTERS
from ambjudge.trajectories.reading.layout import find_conversations
from ambjudge.trajectories.reading.load import load_conversation

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from round_trips import come_back, differences  # noqa: E402

DEFAULT = (ROOT / "tests" / "data" / "recorded", ROOT / "tests" / "data" / "imports")
_MAX_SHOWN = 5


def main(folders: list[Path]) -> int:
    """The exit code: 1 if a run differs."""
    differing = 0
    for format in EXPORTERS.names:
        counts: Counter[str] = Counter()
        for folder in folders:
            for path in find_conversations(folder):
                outcome, lines = _round_trip(path, format)
                counts[outcome] += 1
                if outcome == "differs":
                    print(path, *lines[:_MAX_SHOWN], sep="\n  ")
        print(f"{format}: {', '.join(f'{n} {outcome}' for outcome, n in sorted(counts.items()))}")
        differing += counts["differs"]
    return 1 if differing else 0


def _round_trip(path: Path, format: str) -> tuple[str, list[str]]:
    try:
        run = load_conversation(path)
    except InputError:
        return "unreadable", []
    if not any(turn.text or turn.reasoning or turn.actions for turn in run.turns):
        return "empty", []
    with tempfile.TemporaryDirectory() as folder:
        lines = list(differences(run, come_back(run, format, Path(folder)), format))
    return ("differs" if lines else "equal"), lines


if __name__ == "__main__":
    sys.exit(main([Path(argument) for argument in sys.argv[1:]] or list(DEFAULT)))
