"""Stages, criteria, scores and codes against labels: of the constructed runs, or of any folder with runs/ and labels/.

python benchmarks/constructed.py [--folder tests/data/constructed] [--misses]
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from ambjudge.judge.engine import score
from ambjudge.trajectories.load import iter_runs
from ambjudge.trajectories.models import STAGES

ROOT = Path(__file__).parents[1] / "tests" / "data" / "constructed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, default=ROOT)
    parser.add_argument("--misses", action="store_true", help="print every difference")
    args = parser.parse_args()
    root, show = args.folder, args.misses
    pairs: Counter[tuple[str, str]] = Counter()
    equal = judged = tp = fp = fn = same = 0
    runs = 0
    for run in iter_runs(root / "runs"):
        if isinstance(run, Exception):
            raise run
        runs += 1
        card = score(run)
        gold = json.loads((root / "labels" / f"{run.id}.json").read_text("utf-8"))
        for turn, stage in gold["stages"].items():
            ours = card.turn_stages[int(turn) - 1]
            pairs[stage, ours] += 1
            if show and ours != stage:
                print(f"{run.id} turn {turn}: {ours}, labelled {stage}")
        for stage in ("S1", "S2", "S3"):
            for c in card.stages[stage].criteria:
                if c.status == "credited" or gold["criteria"].get(c.id) is None:
                    continue
                judged += 1
                equal += c.value == gold["criteria"][c.id]
                if show and c.value != gold["criteria"][c.id]:
                    print(f"{run.id} {c.id}: {c.value}, labelled {gold['criteria'][c.id]}: {c.rationale}")
        fired = {c.code for c in card.codes if c.independence != "from_score"}
        tp, fp, fn = (
            tp + len(fired & set(gold["codes"])),
            fp + len(fired - set(gold["codes"])),
            fn + len(set(gold["codes"]) - fired),
        )
        if show and fired != set(gold["codes"]):
            print(f"{run.id} codes: {sorted(fired)}, labelled {sorted(gold['codes'])}")
        report = run.report
        stated = (report.step_scores["S4"], report.step_scores["S5"], report.task_score) if report else ()
        ours_scores = (card.stages["S4"].score, card.stages["S5"].score, card.task)
        same += all(
            a == b or (a is not None and b is not None and abs(a - b) < 1e-3)
            for a, b in zip(stated, ours_scores, strict=True)
        )
    total = sum(pairs.values())
    f1 = []
    for stage in STAGES:
        hit = pairs[stage, stage]
        gold_n = sum(n for (g, _), n in pairs.items() if g == stage)
        ours_n = sum(n for (_, o), n in pairs.items() if o == stage)
        f1.append(2 * hit / (gold_n + ours_n) if gold_n + ours_n else 0.0)
    print(f"{runs} runs, {total} turns")
    print(
        f"turn accuracy {sum(pairs[s, s] for s in STAGES) / total:.3f}   macro F1 {sum(f1) / 5:.3f}   ({'  '.join(f'{s} {f:.2f}' for s, f in zip(STAGES, f1, strict=True))})"
    )
    print(f"criteria equal to the label {equal} of {judged} ({equal / judged:.3f})")
    print(f"S4, S5 and Task equal to the report {same} of {runs}")
    precision, recall = tp / (tp + fp) if tp + fp else 0.0, tp / (tp + fn) if tp + fn else 0.0
    print(
        f"codes: precision {precision:.2f}, recall {recall:.2f}, micro F1 {2 * tp / (2 * tp + fp + fn):.2f} ({tp} right, {fp} wrong, {fn} missed)"
    )


if __name__ == "__main__":
    main()
