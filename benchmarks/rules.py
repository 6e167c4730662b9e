"""How often the rules judge agrees with labels, where it scores and where it presumes.

    python benchmarks/rules.py [--differences] [--write]

Unit: one criterion of one run; criteria credited by the tier are left out, as nobody judges them.
Runs: every labelled run, recorded (gold labels) and constructed (`make data`). Beside the rules
stands "always met", the share of criteria that are met. A presumed value is taken from the other
sets of runs, so that no set is presumed from itself; `--write` writes judge/card/presumed.yaml from
all of them. Kappa is Cohen's, unweighted; undefined where one side never varies. The rules were
written with these labels in sight, so this is no held-out figure.
"""

from __future__ import annotations

import argparse
import asyncio
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ambjudge.judge.card.presumed import MIN_RUNS, MIN_SHARE, TABLE_FILE
from ambjudge.judge.card.stage_results import CriterionResult
from ambjudge.judge.engine import prepare
from ambjudge.judge.judges.rules import RulesJudge
from ambjudge.judge.scoring.criteria import apply_requires, split_criteria
from ambjudge.rubrics.bindings import BindingKey, binding_key
from ambjudge.rubrics.load import builtin_ids, load_rubric
from ambjudge.rubrics.model import Criterion
from labelled_runs import constructed, load_labelled, recorded

TABLE_HEAD = """\
# The most common value of each criterion on the labelled runs in which rules do not decide it.
# Written by benchmarks/rules.py --write. `rubrics`, `criterion`, `meaning`: what it is bound to
# (`rubrics.bindings`); `labels_from`: the rubrics of the labelled runs; `n`: their number; `share`:
# the share of them that have the value.
"""


@dataclass(frozen=True)
class Row:
    """A labelled criterion of a run, and its result by the rules with `requires` applied."""

    group: str
    """The set that the run belongs to."""
    run: str
    rubric: str
    criterion: Criterion
    gold: float | None
    result: CriterionResult

    @property
    def key(self) -> BindingKey:
        return binding_key(self.criterion)

    @property
    def kind(self) -> str:
        """Heading of the criterion; rubrics of images share their criteria's ids."""
        rubric = self.rubric if self.rubric in ("vqa", "report_generation") else "images"
        return f"{rubric} {self.criterion.id}"


@dataclass(frozen=True)
class CommonValue:
    """The most common label of a criterion, its share of the labels, and their number."""

    value: float
    share: float
    n: int


def labelled_rows() -> list[Row]:
    """Every criterion that the rules are asked, of every labelled run."""
    rows = []
    for labelled in (*recorded(), *constructed()):
        gold = labelled.label["criteria"]
        prepared, judge = prepare(load_labelled(labelled)), RulesJudge()
        for request in prepared.requests(judge):
            verdicts = asyncio.run(judge.judge(request)).results
            credited = split_criteria(
                prepared.rubric.stages[request.question], prepared.run.tier
            ).credited
            criteria = prepared.rubric.criteria(request.question)
            results = apply_requires((*credited, *verdicts), criteria)
            by_id = {result.id: result for result in results}
            for criterion in request.criteria:
                rows.append(
                    Row(
                        group=labelled.group,
                        run=labelled.name,
                        rubric=prepared.rubric.id,
                        criterion=criterion,
                        gold=gold.get(criterion.id),
                        result=by_id[criterion.id],
                    )
                )
    return rows


def most_common(undecided: Sequence[Row]) -> CommonValue | None:
    """The most common label of one criterion; None if labels are few or show no clear value."""
    # A label of null says that a conditional criterion does not apply; for any other criterion it
    # says that there is no label.
    counts = Counter(
        row.gold
        for row in undecided
        if row.gold is not None or row.criterion.conditional is not None
    )
    n = sum(counts.values())
    if n < MIN_RUNS:
        return None
    # Ties go to "does not apply", then to the higher value.
    value = max(counts, key=lambda label: (counts[label], label is None, label or 0.0))
    share = counts[value] / n
    if value is None or share < MIN_SHARE:
        return None
    return CommonValue(value, share, n)


def presumed_values(rows: Sequence[Row]) -> dict[int, float]:
    """Presumed values by the row's index, each from the sets that the row does not belong to."""
    undecided = undecided_by_key(rows)
    presumed = {}
    common_values: dict[tuple[BindingKey, str], CommonValue | None] = {}
    for index, row in enumerate(rows):
        if row.result.value is not None:
            continue
        key = row.key, row.group
        if key not in common_values:
            other_sets = [other for other in undecided[row.key] if other.group != row.group]
            common_values[key] = most_common(other_sets)
        common = common_values[key]
        if common is not None:
            presumed[index] = common.value
    return presumed


def undecided_by_key(rows: Sequence[Row]) -> dict[BindingKey, list[Row]]:
    """The rows that rules do not decide; criteria with the same words are taken together."""
    by_key: dict[BindingKey, list[Row]] = defaultdict(list)
    for row in rows:
        if row.result.value is None:
            by_key[row.key].append(row)
    return by_key


def write_table(rows: Sequence[Row]) -> None:
    """Write judge/card/presumed.yaml anew."""
    lines = []
    groups = sorted(undecided_by_key(rows).items(), key=lambda group: group[1][0].kind)
    for key, undecided in groups:
        common = most_common(undecided)
        if common is None:
            continue
        criterion = undecided[0].criterion
        lines += [
            f"- criterion: {criterion.id}",
            f"  meaning: {criterion.meaning}",
            *list_lines("rubrics", rubrics_with(key)),
            f"  value: {common.value:g}",
            f"  share: {common.share:.3f}",
            f"  n: {common.n}",
            *list_lines("labels_from", sorted({row.rubric for row in undecided})),
        ]
    TABLE_FILE.write_text(TABLE_HEAD + "\n".join(lines) + "\n", "utf-8")


def rubrics_with(key: BindingKey) -> list[str]:
    """Ids of the shipped rubrics that have this criterion, with labelled runs or without."""
    return sorted(
        rubric_id
        for rubric_id in builtin_ids()
        if any(binding_key(criterion) == key for criterion in load_rubric(rubric_id).criteria())
    )


def list_lines(key: str, values: Sequence[str]) -> list[str]:
    """A YAML list under a key, in lines of at most 98 columns."""
    return textwrap.wrap(
        f"{key}: [{', '.join(values)}]",
        width=98,
        initial_indent="  ",
        subsequent_indent="    ",
        break_on_hyphens=False,
    )


def kappa(pairs: Sequence[tuple[float | None, float | None]]) -> float | None:
    """Cohen's kappa; None where either side never varies."""
    left, right = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    if len(left) < 2 or len(right) < 2:
        return None
    chance = sum(left[value] * right[value] for value in left) / len(pairs) ** 2
    observed = sum(a == b for a, b in pairs) / len(pairs)
    return (observed - chance) / (1 - chance)


def print_table(
    rows: Sequence[Row], presumed: dict[int, float], heading: Callable[[Row], str]
) -> None:
    """Print scored, presumed and open criteria by group, and a last row for all together."""
    print(
        f"{'':22} {'n':>5} {'scored':>6} {'equal':>6} {'share':>6} {'kappa':>9} {'presumed':>8}"
        f" {'equal':>6} {'share':>6} {'open':>5} {'both':>6} {'met':>6}"
    )
    groups: dict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        if row.gold is not None:
            groups[heading(row)].append(index)
    for name, indices in sorted(groups.items()):
        print_group(name, rows, indices, presumed)
    print_group("all", rows, [index for group in groups.values() for index in group], presumed)


def print_group(
    name: str, rows: Sequence[Row], indices: Sequence[int], presumed: dict[int, float]
) -> None:
    """Print one line of the table: the rows of these indices."""
    scored_pairs = [
        (rows[index].result.value, rows[index].gold)
        for index in indices
        if rows[index].result.value is not None
    ]
    presumed_pairs = [(presumed[index], rows[index].gold) for index in indices if index in presumed]
    scored_equal = sum(value == gold for value, gold in scored_pairs)
    presumed_equal = sum(value == gold for value, gold in presumed_pairs)
    agreement = kappa(scored_pairs)
    n = len(indices)
    n_scored, n_presumed = len(scored_pairs), len(presumed_pairs)
    n_met = sum(rows[index].gold == 1 for index in indices)
    print(
        f"{name:22} {n:5} {n_scored:6} {scored_equal:6} {scored_equal / max(1, n_scored):6.3f}"
        f" {'undefined' if agreement is None else f'{agreement:.2f}':>9}"
        f" {n_presumed:8} {presumed_equal:6} {presumed_equal / max(1, n_presumed):6.3f}"
        f" {n - n_scored - n_presumed:5} {(scored_equal + presumed_equal) / n:6.3f}"
        f" {n_met / n:6.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--differences",
        action="store_true",
        help="list every scored verdict that differs from its label",
    )
    parser.add_argument("--write", action="store_true", help="write judge/card/presumed.yaml anew")
    args = parser.parse_args()
    rows = labelled_rows()
    if args.write:
        write_table(rows)
    presumed = presumed_values(rows)
    print_table(rows, presumed, lambda row: row.kind)
    print()
    print_table(rows, presumed, lambda row: row.group)
    if args.differences:
        for row in rows:
            value = row.result.value
            if row.gold is not None and value is not None and value != row.gold:
                print(
                    f"{row.group}/{row.run} {row.criterion.id}: {value} (label {row.gold}):"
                    f" {row.result.rationale}"
                )


if __name__ == "__main__":
    main()
