"""How well turns are told apart: ambjudge's segmentation against the harness's rule order, on reference labels.

    python benchmarks/segmentation.py [--runs]

Development labels: tests/data/recorded (15 runs of the benchmark's own shape) and, where present, labelled public runs
of other agents (AMBJUDGE_EXTERNAL_DATA, else ../shared/data/external, with ../external_labels beside it).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ambjudge.trajectories.load import load_run
from ambjudge.trajectories.models import STAGES, Run
from ambjudge.trajectories.segment import segment

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "tests" / "data" / "recorded"
_COMMENT = re.compile(r"#\s*(S[1-5])\b")
_LOOP = re.compile(r"for \w+ in [^\n]{0,200}(?:patient|case|image|question|glob|listdir)", re.IGNORECASE)


@dataclass(frozen=True)
class Labelled:
    """One run with its reference stages."""

    name: str
    run: Run
    gold: tuple[str, ...]


@dataclass(frozen=True)
class Scores:
    """Turn accuracy, F1 averaged over the stages that the reference has, and boundary F1 (one turn off counts)."""

    accuracy: float
    macro_f1: float
    boundary_f1: float | None


def harness_rules(run: Run) -> tuple[str, ...]:
    """The public harness's order of guesses (benchmark.md, section 8): an explicit comment, then package installation,
    then plan.md, then a loop over patients, else the stage before."""
    stages: list[str] = []
    for turn in run.turns:
        code = turn.code[:200_000]
        comment = _COMMENT.search(code)
        if comment:
            stages.append(comment.group(1))
        elif "pip install" in code or "venv" in code:
            stages.append("S2")
        elif "plan.md" in code:
            stages.append("S1")
        elif _LOOP.search(code):
            stages.append("S4")
        else:
            stages.append(stages[-1] if stages else "S1")
    return tuple(stages)


def ours(run: Run) -> tuple[str, ...]:
    return segment(run).turn_stages


def scores(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> Scores:
    """Scores over (reference, predicted) stage sequences, all turns pooled."""
    flat = [(g, p) for gold, found in pairs for g, p in zip(gold, found, strict=True)]
    f1 = []
    for stage in STAGES:
        gold_n, found_n = sum(g == stage for g, _ in flat), sum(p == stage for _, p in flat)
        if gold_n:
            f1.append(2 * sum(g == p == stage for g, p in flat) / (gold_n + found_n))
    hits = made = wanted = 0
    for gold, found in pairs:
        a, b = _boundaries(gold), _boundaries(found)
        hits, made, wanted = hits + _matched(a, b), made + len(b), wanted + len(a)
    return Scores(
        accuracy=sum(g == p for g, p in flat) / len(flat),
        macro_f1=sum(f1) / len(f1),
        boundary_f1=2 * hits / (made + wanted) if made + wanted else None,
    )


def _boundaries(stages: Sequence[str]) -> list[int]:
    return [i for i in range(1, len(stages)) if stages[i] != stages[i - 1]]


def _matched(gold: list[int], found: list[int]) -> int:
    """Boundaries matched one to one, at most one turn apart. Both lists ascend, so the greedy matching is the largest."""
    i = j = hits = 0
    while i < len(gold) and j < len(found):
        if abs(gold[i] - found[j]) <= 1:
            hits, i, j = hits + 1, i + 1, j + 1
        elif gold[i] < found[j]:
            i += 1
        else:
            j += 1
    return hits


def interval(pairs: Sequence[tuple[Sequence[str], Sequence[str]]], pick: Callable[[Scores], float | None]) -> str:
    """95 % percentile bootstrap over runs (2,000 resamples, seed 0)."""
    rng = random.Random(0)
    values = sorted(v for _ in range(2_000) if (v := pick(scores(rng.choices(pairs, k=len(pairs))))) is not None)
    return f"[{values[int(0.025 * len(values))]:.3f}, {values[int(0.975 * len(values)) - 1]:.3f}]" if values else "-"


def recorded() -> list[Labelled]:
    found = []
    for path in sorted((RECORDED / "labels" / "gold").glob("*.json")):
        found.append(_labelled(path.stem, RECORDED / "runs" / path.stem, path))
    return found


def external() -> list[Labelled]:
    """Labelled public runs; empty when they are not on this machine."""
    data = Path(os.environ.get("AMBJUDGE_EXTERNAL_DATA") or ROOT.parent / "shared" / "data" / "external")
    labels = data.parent / "external_labels"
    return [
        _labelled(f"{path.parent.name}/{path.stem}", data / path.parent.name / path.stem, path)
        for path in sorted(labels.glob("*/*.json"))
        if (data / path.parent.name / path.stem).is_dir()
    ]


def _labelled(name: str, folder: Path, labels: Path) -> Labelled:
    stages = json.loads(labels.read_text(encoding="utf-8"))["stages"]
    run = load_run(folder)
    return Labelled(name, run, tuple(stages[str(turn.index)] for turn in run.turns))


def report(title: str, runs: Sequence[Labelled], each: bool) -> None:
    print(f"\n{title}: {len(runs)} runs, {sum(len(r.gold) for r in runs)} turns")
    print(f"{'':16}{'accuracy':>9} {'95 % over runs':<16}{'macro F1':>9} {'95 % over runs':<16}{'boundary F1':>12}")
    for name, guess in (("ambjudge", ours), ("harness rules", harness_rules)):
        pairs = [(r.gold, guess(r.run)) for r in runs]
        found = scores(pairs)
        boundary = "-" if found.boundary_f1 is None else f"{found.boundary_f1:.3f}"
        print(
            f"{name:16}{found.accuracy:9.3f} {interval(pairs, lambda s: s.accuracy):<16}"
            f"{found.macro_f1:9.3f} {interval(pairs, lambda s: s.macro_f1):<16}{boundary:>12}"
        )
    guessed = [(r.gold, ours(r.run)) for r in runs]
    print("confusion, ambjudge (rows: reference)")
    print("      " + "".join(f"{stage:>6}" for stage in STAGES))
    for gold_stage in STAGES:
        row = [
            sum(g == gold_stage and p == s for gold, found in guessed for g, p in zip(gold, found, strict=True))
            for s in STAGES
        ]
        print(f"{gold_stage:>6}" + "".join(f"{n:6d}" for n in row))
    if each:
        for r, (gold, found) in zip(runs, guessed, strict=True):
            wrong = [f"{i}:{g}>{p}" for i, (g, p) in enumerate(zip(gold, found, strict=True), 1) if g != p]
            print(f"{r.name:56} {1 - len(wrong) / len(gold):.2f} {' '.join(wrong)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", action="store_true", help="one line a run with its wrong turns")
    options = parser.parse_args()
    report("recorded benchmark runs", recorded(), options.runs)
    public = external()
    if public:
        report("public runs of other agents", public, options.runs)
    else:
        print("\npublic runs of other agents: skipped, no labelled data here (set AMBJUDGE_EXTERNAL_DATA)")


if __name__ == "__main__":
    main()
