"""How often the heuristic judge agrees with the adjudicated labels, beside two baselines that read nothing.

    python benchmarks/heuristic.py [--recorded DIR] [--differences]

Unit: one criterion of one run, tier credits left out (nobody judges them). `majority` answers each criterion with its
most frequent gold value over the other runs (leave one out); `always 1` gives full marks. Kappa is Cohen's,
unweighted; undefined where one side never varies. The labels are used for development, so this is no held-out figure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from ambjudge.judge.base import Request
from ambjudge.judge.heuristic import HeuristicJudge
from ambjudge.judge.scorecard import CriterionResult
from ambjudge.rubrics.load import rubric_for
from ambjudge.trajectories.load import load_run
from ambjudge.trajectories.models import Run, Segmentation, Stage

RECORDED = Path(__file__).parents[1] / "tests" / "data" / "recorded"
STAGES: tuple[Stage, ...] = ("S1", "S2", "S3")


@dataclass(frozen=True)
class Row:
    run: str
    criterion: str
    gold: float
    gold_turns: frozenset[int]
    found: CriterionResult


def judged(run: Run) -> dict[str, CriterionResult]:
    """The heuristic judge's verdicts on every criterion that the run's rubric asks for and does not credit."""
    rubric, judge = rubric_for(run.track, run.task), HeuristicJudge()
    segmentation = Segmentation(turn_stages=("S1",) * len(run.turns), segments=())
    results: dict[str, CriterionResult] = {}
    for stage in STAGES:
        asked = tuple(
            c for c in rubric.criteria(stage) if run.tier not in c.credit and (c.tiers is None or run.tier in c.tiers)
        )
        request = Request(run, segmentation, rubric, stage, asked)
        results.update((r.id, r) for r in asyncio.run(judge.judge(request)).results)
    return results


def rows_of(recorded: Path) -> list[Row]:
    rows = []
    for path in sorted((recorded / "labels" / "gold").glob("*.json")):
        label = json.loads(path.read_text(encoding="utf-8"))
        for criterion, result in judged(load_run(recorded / "runs" / path.stem)).items():
            turns = frozenset(label["evidence"].get(criterion, ()))
            rows.append(Row(path.stem, criterion, float(label["criteria"][criterion]), turns, result))
    return rows


def kappa(pairs: list[tuple[float | None, float]]) -> float | None:
    """Cohen's kappa; None where either side never varies."""
    left, right = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    if len(left) < 2 or len(right) < 2:
        return None
    chance = sum(left[v] * right[v] for v in left) / len(pairs) ** 2
    return (sum(a == b for a, b in pairs) / len(pairs) - chance) / (1 - chance)


def majority(row: Row, rows: list[Row]) -> float:
    """The most frequent gold value of this criterion over the other runs; 1 without any, ties to the higher value."""
    counts = Counter(r.gold for r in rows if r.criterion == row.criterion and r.run != row.run)
    return max(counts, key=lambda v: (counts[v], v)) if counts else 1.0


def table(rows: list[Row]) -> None:
    print(
        f"{'criterion':9} {'n':>4} {'gold 1':>6} {'equal':>6} {'share':>6} {'kappa':>9} {'majority':>8} {'always 1':>8}"
    )
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.criterion].append(row)
    for name, group in [*sorted(groups.items()), ("all", rows)]:
        equal = sum(r.found.value == r.gold for r in group)
        value = kappa([(r.found.value, r.gold) for r in group])
        base = sum(majority(r, rows) == r.gold for r in group)
        ones = sum(r.gold == 1 for r in group)
        shown = "undefined" if value is None else f"{value:.2f}"
        n = len(group)
        print(f"{name:9} {n:4} {ones:6} {equal:6} {equal / n:6.3f} {shown:>9} {base / n:8.3f} {ones / n:8.3f}")


def stages(rows: list[Row]) -> None:
    print(
        f"\n{'stage':9} {'runs':>4} {'mean absolute error':>20} {'majority':>9} {'always 1':>9}   (means over judged criteria)"
    )
    for stage in STAGES:
        by_run: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            if row.criterion.startswith(stage):
                by_run[row.run].append(row)

        def error(value, groups=by_run) -> float:  # type: ignore[no-untyped-def]
            sums = [abs(sum(value(r) or 0 for r in g) - sum(r.gold for r in g)) / len(g) for g in groups.values()]
            return sum(sums) / len(sums)

        ours, base, ones = error(lambda r: r.found.value), error(lambda r: majority(r, rows)), error(lambda r: 1.0)
        print(f"{stage:9} {len(by_run):4} {ours:20.3f} {base:9.3f} {ones:9.3f}")


def evidence(rows: list[Row]) -> None:
    cited = [(r, e.turn) for r in rows for e in r.found.evidence if r.gold_turns]
    inside = sum(turn in r.gold_turns for r, turn in cited)
    with_gold = [r for r in rows if r.gold_turns and r.found.value == r.gold and r.found.evidence]
    hit = sum(any(e.turn in r.gold_turns for e in r.found.evidence) for r in with_gold)
    checks = Counter(e.check for r in rows for e in r.found.evidence)
    met = [r for r in rows if (r.found.value or 0) > 0]
    print(
        f"\nevidence: {sum(checks.values())} quotes, {dict(checks)}; {sum(bool(r.found.evidence) for r in met)} of {len(met)} met values have one"
    )
    print(f"  cited turns that gold cites too: {inside} of {len(cited)} ({inside / max(1, len(cited)):.3f})")
    print(
        f"  equal verdicts with gold evidence of which a turn is hit: {hit} of {len(with_gold)} ({hit / max(1, len(with_gold)):.3f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--recorded", type=Path, default=RECORDED)
    parser.add_argument("--differences", action="store_true", help="list every verdict that differs from gold")
    args = parser.parse_args()
    rows = rows_of(args.recorded)
    table(rows)
    stages(rows)
    evidence(rows)
    if args.differences:
        print()
        for row in rows:
            if row.found.value != row.gold:
                print(f"{row.run} {row.criterion}: {row.found.value} (gold {row.gold}): {row.found.rationale}")


if __name__ == "__main__":
    main()
