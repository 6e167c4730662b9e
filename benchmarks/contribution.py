"""What every detector and every judged criterion of the rules judge is worth, against labels.

    python benchmarks/contribution.py [--only detectors|criteria]

Detector: on how many labelled runs it fired, on how many of these its code is a label, and where it
was the only reason for its code (what would go with it: right, wrong). Unit: a run; circular codes
(`from_score`) are left out. Criterion: the share of verdicts equal to the label beside that of
"always met". Sets: recorded, constructed, and external where AMBJUDGE_EXTERNAL_DATA names the
foreign runs (their labels stand beside it, in external_labels/).
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict

from ambjudge.error_codes.registry import detectors
from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.judge.engine import make_scorecard
from labelled_runs import EXTERNAL, constructed, external, load_labelled, recorded


class Codes:
    """Fired codes of one set against its labels, by detector and by code."""

    def __init__(self) -> None:
        self.runs = self.clean = self.clean_fired = 0
        self.cells: Counter[tuple[str, bool, bool]] = Counter()
        self.fired: Counter[tuple[str, bool]] = Counter()
        self.alone: Counter[tuple[str, bool]] = Counter()

    def add(self, card: ScoreCard, gold: frozenset[str]) -> None:
        by_code: dict[str, set[str]] = defaultdict(set)
        for code in card.codes:
            if code.taxonomy == "paper" and code.independence != "from_score":
                by_code[code.code].add(code.by.partition(":")[2])
        self.runs += 1
        self.clean += not gold
        self.clean_fired += not gold and bool(by_code)
        for code in ("E1", "E2", "E3", "E4", "E5"):
            self.cells[code, code in by_code, code in gold] += 1
        for code, names in by_code.items():
            self.fired.update((name, code in gold) for name in names)
            if len(names) == 1:
                self.alone.update((name, code in gold) for name in names)

    def table(self, title: str) -> None:
        print(
            f"\n-- {title}: {self.runs} runs, {self.clean} without a label, codes on"
            f" {self.clean_fired} of these"
        )
        print(f"{'code  detector':38} fired right | only reason: right wrong")
        for d in detectors():
            right, wrong = self.fired[d.name, True], self.fired[d.name, False]
            if right + wrong:
                only = f"{self.alone[d.name, True]:12} {self.alone[d.name, False]:5}"
                print(f"{d.code:5} {d.name:32} {right + wrong:5} {right:5} | {only}")
        for code in ("E1", "E2", "E3", "E4", "E5", "all"):
            some = [code] if code != "all" else ["E1", "E2", "E3", "E4", "E5"]
            tp, fp, fn = (
                sum(self.cells[c, *cell] for c in some)
                for cell in ((True, True), (True, False), (False, True))
            )
            shown = [
                f"{a / b:.2f}" if b else " -  "
                for a, b in ((tp, tp + fp), (tp, tp + fn), (2 * tp, 2 * tp + fp + fn))
            ]
            print(
                f"{code:4} precision {shown[0]}, recall {shown[1]}, F1 {shown[2]}   ({tp} right,"
                f" {fp} wrong, {fn} missed)"
            )


class Criteria:
    """Verdicts of the rules judge against labels, by criterion."""

    def __init__(self) -> None:
        self.equal: Counter[str] = Counter()
        self.met: Counter[str] = Counter()
        self.judged: Counter[str] = Counter()
        self.presumed: Counter[str] = Counter()

    def add(self, card: ScoreCard, gold: dict[str, float | None]) -> None:
        for stage in card.stages.values():
            for c in stage.criteria:
                label = gold.get(c.id)
                if c.status != "credited" and label is not None:
                    for name in (c.id, "all"):
                        self.judged[name] += 1
                        self.equal[name] += c.value == label
                        self.met[name] += label == 1
                        self.presumed[name] += c.status == "presumed"

    def table(self, title: str) -> None:
        if not self.judged:
            return
        print(
            f"\n-- {title}: criteria\n{'criterion':9} {'n':>5} {'equal':>6} {'presumed':>9}"
            f" {'always met':>11}"
        )
        for name in sorted(self.judged):
            n = self.judged[name]
            print(
                f"{name:9} {n:5} {self.equal[name] / n:6.3f} {self.presumed[name] / n:9.3f}"
                f" {self.met[name] / n:11.3f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=("detectors", "criteria"))
    args = parser.parse_args()
    codes: dict[str, Codes] = defaultdict(Codes)
    criteria: dict[str, Criteria] = defaultdict(Criteria)
    for group, runs in (
        ("recorded", recorded()),
        ("constructed", constructed()),
        ("external", external()),
    ):
        for run in runs:
            card = make_scorecard(load_labelled(run), public=run.public)
            codes[group].add(card, frozenset(run.label["codes"]))
            criteria[group].add(card, run.label.get("criteria") or {})
    for group in codes:
        if args.only != "criteria":
            codes[group].table(group)
        if args.only != "detectors":
            criteria[group].table(group)
    if "external" not in codes:
        print(f"\nNO EXTERNAL LABELS beside {EXTERNAL}: foreign runs are not measured")


if __name__ == "__main__":
    main()
