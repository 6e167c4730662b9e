"""Stages, criteria, scores and codes against labels: of the constructed runs, or of any folder with
runs/ and labels/.

python benchmarks/constructed.py [--folder FOLDER ...] [--misses]

Each set is compared by itself: most were looked at while rules were written, some only as totals
(their split says which, benchmarks/data/README.md). Where a second annotator labelled codes, the
agreement of the two is printed beside: nothing can be expected to do better.

Then all sets together, against bounds that leave room for rules to move; the command fails below
them.
"""

from __future__ import annotations

import argparse
from collections import Counter
from itertools import groupby
from pathlib import Path

from ambjudge.judge.card.verify import rubric_of, verify
from ambjudge.judge.engine import make_scorecard
from ambjudge.trajectories.models import STAGES
from labelled_runs import LabelledRun, constructed, load_labelled, of_folder

FLOOR = 0.9
"""What turns and criteria of every set of the `dev` split reach."""
PRECISION = 0.95
"""What codes that machines' words fire reach over all sets of the `dev` split."""
DISPUTED = {"c/derm-std-01", "j/despeckle-lite-j2", "u/bonescan-std-02", "w/fundusqa-std-02"}
"""Where the benchmark leaves the answer open. Every answer is a placeholder (all but the second):
the authors count the submission as valid, we do not. Files of two cases are missing in enhancement,
where the completeness gate does not apply: its author counts the format as valid, the authors of
the like runs ldct-lite-03 and oct-lite-i2 do not, nor do we."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, nargs="+")
    parser.add_argument("--misses", action="store_true", help="print every difference")
    args = parser.parse_args()
    runs = (
        [run for folder in args.folder for run in of_folder(folder)]
        if args.folder
        else constructed()
    )
    good, right, fired = True, 0, 0
    for group, some in groupby(runs, key=lambda run: run.group):
        print(f"-- {group}")
        ok, *codes = compare(list(some), args.misses)
        good, right, fired = good and ok, right + codes[0], fired + codes[1]
    if fired:
        print(
            f"-- codes of the dev split that facts show: {right} of {fired} right, bound"
            f" {PRECISION}"
        )
    return 0 if good and right >= PRECISION * fired else 1


def compare(labelled: list[LabelledRun], show: bool) -> tuple[bool, int, int]:
    """Print how far the scorecards of one set agree with its labels.

    Whether every bound is kept; right and all codes of the set that facts, not likelihoods, show
    (none of opened sets).
    """
    pairs: Counter[tuple[str, str]] = Counter()
    equal = judged = lucky = unread = tp = fp = fn = same = 0
    sure: list[bool] = []
    broken = []
    for one in labelled:
        run, gold = load_labelled(one), one.label
        card = make_scorecard(run)
        if f"{one.group}/{run.id}" not in DISPUTED and verify(card, rubric_of(card)):
            broken.append(run.id)
        sure += [
            c.code in gold["codes"]
            for c in card.codes
            if c.independence != "from_score" and c.by != "detector:asserted_not_questioned"
        ]
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
                    print(
                        f"{run.id} {c.id}: {c.value}, labelled {gold['criteria'][c.id]}:"
                        f" {c.rationale}"
                    )
        fired = {c.code for c in card.codes if c.independence != "from_score"}
        tp, fp, fn = (
            tp + len(fired & set(gold["codes"])),
            fp + len(fired - set(gold["codes"])),
            fn + len(set(gold["codes"]) - fired),
        )
        if show and fired != set(gold["codes"]):
            print(f"{run.id} codes: {sorted(fired)}, labelled {sorted(gold['codes'])}")
        report = run.report
        stated = (
            (report.step_scores["S4"], report.step_scores["S5"], report.task_score)
            if report
            else ()
        )
        ours_scores = (card.stages["S4"].score, card.stages["S5"].score, card.task)
        agree = all(
            a == b or (a is not None and b is not None and abs(a - b) < 1e-3)
            for a, b in zip(stated, ours_scores, strict=True)
        )
        same += agree
        if one.split is not None and not agree and f"{one.group}/{run.id}" not in DISPUTED:
            broken.append(run.id)
    total = sum(pairs.values())
    f1 = []
    for stage in STAGES:
        hit = pairs[stage, stage]
        gold_n = sum(n for (g, _), n in pairs.items() if g == stage)
        ours_n = sum(n for (_, o), n in pairs.items() if o == stage)
        f1.append(2 * hit / (gold_n + ours_n) if gold_n + ours_n else 0.0)
    accuracy, criteria = sum(pairs[s, s] for s in STAGES) / total, equal / judged
    print(f"{len(labelled)} runs, {total} turns")
    print(
        f"turn accuracy {accuracy:.3f}   macro F1 {sum(f1) / 5:.3f}  "
        f" ({'  '.join(f'{s} {f:.2f}' for s, f in zip(STAGES, f1, strict=True))})"
    )
    print(
        f"criteria equal to the label {equal} of {judged} ({criteria:.3f}); presumed {lucky} of"
        f" {unread}"
    )
    print(f"S4, S5 and Task equal to the report {same} of {len(labelled)}")
    precision, recall = tp / (tp + fp) if tp + fp else 0.0, tp / (tp + fn) if tp + fn else 0.0
    print(
        f"codes: precision {precision:.2f}, recall {recall:.2f}, micro F1"
        f" {2 * tp / (2 * tp + fp + fn):.2f} ({tp} right, {fp} wrong, {fn} missed)"
    )
    both = [(set(one.label["codes"]), set(one.second["codes"])) for one in labelled if one.second]
    if any(second for _, second in both):
        hit, apart = sum(len(a & b) for a, b in both), sum(len(a ^ b) for a, b in both)
        print(
            f"codes of a second annotator against the first: F1 {2 * hit / (2 * hit + apart):.2f}"
        )
    dev = {one.split for one in labelled} == {"dev"}
    if broken:
        print(f"SCORES that differ from the report or do not add up: {', '.join(broken)}")
    if dev and min(accuracy, criteria) < FLOOR:
        print(f"BELOW {FLOOR}: turns {accuracy:.3f}, criteria {criteria:.3f}")
    return (
        not broken and (not dev or min(accuracy, criteria) >= FLOOR),
        sum(sure) if dev else 0,
        len(sure) if dev else 0,
    )


if __name__ == "__main__":
    raise SystemExit(main())
