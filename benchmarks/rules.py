"""How often the rules judge agrees with labels, where it scores and where it presumes, beside
"always met".

    python benchmarks/rules.py [--differences] [--write]

Unit: one criterion of one run, tier credits left out (nobody judges them). Of every labelled run:
the recorded ones (gold) and the constructed sets (`make data`). Presumed values leave the run's own
set out, so that no set is presumed from itself; `--write` writes judge/card/presumed.yaml from all
of them. Kappa is Cohen's, unweighted; undefined where one side never varies. The rules were written
with these labels in sight, so this is no held-out figure.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ambjudge.judge.card.presumed import MIN_RUNS, MIN_SHARE, TABLE
from ambjudge.judge.card.scoring import apply_requires
from ambjudge.judge.card.stage_results import CriterionResult
from ambjudge.judge.engine import prepare
from ambjudge.judge.judges.rules import RulesJudge
from ambjudge.rubrics.load import criterion_sha256
from ambjudge.rubrics.model import Criterion
from ambjudge.trajectories.reading.load import load_run
from labelled_runs import constructed, recorded


@dataclass(frozen=True)
class Row:
    """A labelled criterion of a run, and what the rules say of it, requirements of other criteria
    included."""

    group: str
    run: str
    rubric: str
    criterion: Criterion
    gold: float | None
    found: CriterionResult

    @property
    def key(self) -> str:
        return criterion_sha256(self.criterion)

    @property
    def kind(self) -> str:
        """Rubrics of images share their criteria's ids."""
        return (
            f"{self.rubric if self.rubric in ('vqa', 'report_generation') else 'images'}"
            f" {self.criterion.id}"
        )


def rows() -> list[Row]:
    """Every criterion that the rules are asked, of every labelled run."""
    found = []
    for run in (*recorded(), *constructed()):
        group, folder, gold = run.group, run.folder, run.label["criteria"]
        ready, judge = prepare(load_run(folder)), RulesJudge()
        for request in ready.requests(judge):
            said = asyncio.run(judge.judge(request)).results
            credited = ready.splits[request.question].credited
            settled = {
                r.id: r
                for r in apply_requires((*credited, *said), ready.rubric.criteria(request.question))
            }
            for item in request.criteria:
                found.append(
                    Row(
                        group,
                        folder.name,
                        ready.rubric.id,
                        item,
                        gold.get(item.id),
                        settled[item.id],
                    )
                )
    return found


def commonest(undecided: Sequence[Row]) -> tuple[float, float, int] | None:
    """(value, share, n) of the labels of one criterion; None where they are few or show no clear
    value."""
    # A label of null is that the criterion does not apply; elsewhere it is that there is no label.
    counts = Counter(
        row.gold
        for row in undecided
        if row.gold is not None or row.criterion.conditional is not None
    )
    n = sum(counts.values())
    if n < MIN_RUNS:
        return None
    value = max(counts, key=lambda v: (counts[v], v is None, v or 0.0))
    return None if value is None or counts[value] / n < MIN_SHARE else (value, counts[value] / n, n)


def presumptions(every: Sequence[Row]) -> dict[int, float]:
    """Presumed values by the place of the row, each from the sets that the row is not of."""
    by_key: dict[str, list[Row]] = defaultdict(list)
    for row in every:
        if row.found.value is None:
            by_key[row.key].append(row)
    found, known = {}, dict[tuple[str, str], tuple[float, float, int] | None]()
    for place, row in enumerate(every):
        if row.found.value is not None:
            continue
        key = row.key, row.group
        if key not in known:
            known[key] = commonest([other for other in by_key[row.key] if other.group != row.group])
        if (guess := known[key]) is not None:
            found[place] = guess[0]
    return found


def write(every: Sequence[Row]) -> None:
    """judge/card/presumed.yaml anew."""
    by_key: dict[str, list[Row]] = defaultdict(list)
    for row in every:
        if row.found.value is None:
            by_key[row.key].append(row)
    lines = [
        (
            "# The commonest value of each criterion on the labelled runs of which the rules do not"
            " decide it; `of`: their rubrics."
        ),
        "# Written by benchmarks/rules.py --write; bound to the criterion's text by its hash.",
    ]
    for key, group in sorted(by_key.items(), key=lambda each: each[1][0].kind):
        if (guess := commonest(group)) is not None:
            value, share, n = guess
            names = ", ".join(sorted({row.rubric for row in group}))
            said = f"value: {value:g}, share: {share:.3f}, n: {n}"
            lines.append(
                f"- {{criterion: {group[0].criterion.id}, {said}, of: [{names}], sha256: {key}}}"
            )
    TABLE.write_text("\n".join(lines) + "\n", "utf-8")


def kappa(pairs: Sequence[tuple[float | None, float | None]]) -> float | None:
    """Cohen's kappa; None where either side never varies."""
    left, right = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    if len(left) < 2 or len(right) < 2:
        return None
    chance = sum(left[v] * right[v] for v in left) / len(pairs) ** 2
    return (sum(a == b for a, b in pairs) / len(pairs) - chance) / (1 - chance)


def table(every: Sequence[Row], guesses: dict[int, float], key: Callable[[Row], str]) -> None:
    """Scored, presumed and left open, by group, and all together."""
    print(
        f"{'':22} {'n':>5} {'scored':>6} {'equal':>6} {'share':>6} {'kappa':>9} {'presumed':>8}"
        f" {'equal':>6} {'share':>6} {'open':>5} {'both':>6} {'met':>6}"
    )
    groups: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(every):
        if row.gold is not None:
            groups[key(row)].append(place)
    for name, places in [
        *sorted(groups.items()),
        ("all", [p for group in groups.values() for p in group]),
    ]:
        scored = [
            (every[p].found.value, every[p].gold)
            for p in places
            if every[p].found.value is not None
        ]
        guessed = [(guesses[p], every[p].gold) for p in places if p in guesses]
        right, lucky = (sum(a == b for a, b in pairs) for pairs in (scored, guessed))
        value = kappa(scored)
        n, met = len(places), sum(every[p].gold == 1 for p in places)
        print(
            f"{name:22} {n:5} {len(scored):6} {right:6} {right / max(1, len(scored)):6.3f}"
            f" {'undefined' if value is None else f'{value:.2f}':>9} {len(guessed):8} {lucky:6}"
            f" {lucky / max(1, len(guessed)):6.3f} {n - len(scored) - len(guessed):5}"
            f" {(right + lucky) / n:6.3f} {met / n:6.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--differences", action="store_true", help="list every scored verdict that is not the label"
    )
    parser.add_argument("--write", action="store_true", help="write judge/card/presumed.yaml anew")
    args = parser.parse_args()
    every = rows()
    if args.write:
        write(every)
    guesses = presumptions(every)
    table(every, guesses, lambda row: row.kind)
    print()
    table(every, guesses, lambda row: row.group)
    if args.differences:
        for row in every:
            if row.gold is not None and row.found.value is not None and row.found.value != row.gold:
                print(
                    f"{row.group}/{row.run} {row.criterion.id}: {row.found.value} (label"
                    f" {row.gold}): {row.found.rationale}"
                )


if __name__ == "__main__":
    main()
