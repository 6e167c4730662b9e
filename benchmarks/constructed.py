"""Stages, criteria, scores and codes against labels: of the constructed runs, or of any folder with runs/ and labels/.

python benchmarks/constructed.py [--folder FOLDER ...] [--misses]

Each set is compared by itself: most were looked at while rules were written, some only as totals
(tests/data/constructed/README.md says which). Where a second annotator labelled codes (labels-a2/), the agreement of the
two is printed beside: nothing can be expected to do better.
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
    parser.add_argument("--folder", type=Path, nargs="+", default=sorted(p for p in ROOT.iterdir() if p.is_dir()))
    parser.add_argument("--misses", action="store_true", help="print every difference")
    args = parser.parse_args()
    for folder in args.folder:
        print(f"-- {folder.name}")
        compare(folder, args.misses)


def compare(root: Path, show: bool) -> None:
    """Print how far the scorecards of one set agree with its labels."""
    pairs: Counter[tuple[str, str]] = Counter()
    equal = judged = lucky = unread = tp = fp = fn = same = 0
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
                if c.judged is None:
                    unread += 1
                    lucky += c.value == gold["criteria"][c.id]
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
    print(f"criteria equal to the label {equal} of {judged} ({equal / judged:.3f}); presumed {lucky} of {unread}")
    print(f"S4, S5 and Task equal to the report {same} of {runs}")
    precision, recall = tp / (tp + fp) if tp + fp else 0.0, tp / (tp + fn) if tp + fn else 0.0
    print(
        f"codes: precision {precision:.2f}, recall {recall:.2f}, micro F1 {2 * tp / (2 * tp + fp + fn):.2f} ({tp} right, {fp} wrong, {fn} missed)"
    )
    second = sorted((root / "labels-a2").glob("*.json"))
    if second and any(json.loads(p.read_text("utf-8"))["codes"] for p in second):
        both = [
            (
                set(json.loads((root / "labels" / p.name).read_text("utf-8"))["codes"]),
                set(json.loads(p.read_text("utf-8"))["codes"]),
            )
            for p in second
        ]
        right, apart = sum(len(a & b) for a, b in both), sum(len(a ^ b) for a, b in both)
        print(f"codes of a second annotator against the first: F1 {2 * right / (2 * right + apart):.2f}")


if __name__ == "__main__":
    main()
